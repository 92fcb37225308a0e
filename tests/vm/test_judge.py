# SPDX-License-Identifier: GPL-2.0-or-later
"""What makes a kernel's log a failure, and what does not: lines as kernels write them."""
import pytest

from earshotvm import dmesg

pytestmark = pytest.mark.host

CONTENT = """\
<6>[    0.000000] Linux version 6.1.0-56-amd64
<4>[    0.000000] Warning: unable to open an initial console.
<6>[    0.010000] kfence: initialized - using 2097152 bytes for 255 objects
<4>[    1.400000] clocksource: timekeeping watchdog on CPU1: Marking clocksource 'tsc' as unstable
<4>[    3.100000] earshot: loading out-of-tree module taints kernel.
<4>[    3.100000] earshot: module verification failed: signature and/or required key missing - tainting kernel
<6>[    3.200000] workqueue: drm_fb_helper_damage_work hogged CPU for >10000us 4 times, consider switching to WQ_UNBOUND
<6>[    3.300000] rcu: Hierarchical RCU implementation.
<6>[    3.400000] earshot-vm: the job begins
"""

TROUBLES = (
    "<4>[    9.1] WARNING: CPU: 0 PID: 812 at net/ipv4/tcp_input.c:3312 tcp_ack+0x9a2/0x1220",
    "<4>[    9.1] WARNING: possible circular locking dependency detected",
    "<4>[    9.1] WARNING: suspicious RCU usage",
    "<1>[    9.1] BUG: kernel NULL pointer dereference, address: 0000000000000018",
    "<3>[    9.1] BUG: sleeping function called from invalid context at mm/slab.h:421",
    "<3>[    9.1] BUG: scheduling while atomic: swapper/0/0/0x00000100",
    "<3>[    9.1] BUG: KASAN: use-after-free in es_lookup+0x12/0x40 [earshot]",
    "<3>[    9.1] BUG: KFENCE: use-after-free read in es_free+0x22/0x40 [earshot]",
    "<3>[    9.1] BUG kmalloc-64 (Tainted: G           OE     ): Right Redzone overwritten",
    "<2>[    9.1] kernel BUG at net/core/skbuff.c:112!",
    "<4>[    9.1] Oops: 0002 [#1] PREEMPT SMP NOPTI",
    "<4>[    9.1] general protection fault, probably for non-canonical address 0xdead000000000122: 0000 [#1]",
    "<4>[    9.1] refcount_t: underflow; use-after-free.",
    "<4>[    9.1] list_del corruption. prev->next should be ffff8880, but was dead0000",
    "<3>[    9.1] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
    "<3>[    9.1] rcu: INFO: rcu_preempt self-detected stall on CPU",
    "<3>[    9.1] INFO: task rmmod:931 blocked for more than 300 seconds.",
    "<0>[    9.1] watchdog: BUG: soft lockup - CPU#1 stuck for 122s! [nginx:413]",
    "<0>[    9.1] unregister_netdevice: waiting for lo to become free. Usage count = 2",
    "<6>[    9.1] kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
    "<3>[    9.1] Out of memory: Killed process 400 (python3)",
    "<3>[    9.1] UBSAN: array-index-out-of-bounds in net/core/dev.c:11",
    "<0>[    9.1] Kernel panic - not syncing: Fatal exception in interrupt",
    "<4>[    9.1] Call Trace:",
    "<5>[    9.1] earshot-vm: rmmod earshot failed: rmmod: ERROR: Module earshot is in use",
)


def test_content():
    assert not dmesg.troubles(CONTENT, tainted=1 << 12 | 1 << 13)


@pytest.mark.parametrize("line", TROUBLES)
def test_trouble(line):
    assert dmesg.troubles(CONTENT + line + "\n") == [line]


@pytest.mark.parametrize("bit", (4, 5, 7, 9, 14))
def test_taint(bit):
    """A kernel that lost its log still says by its flags that something was wrong."""
    assert len(dmesg.troubles(CONTENT, tainted=1 << bit)) == 1
