# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a kernel was content: what in its log, or in its taint flags, makes a run red whatever the tests say.

The stall detectors wait so long (machine.py) that an emulated machine on a busy host does not reach their time: a
stall is a fault.
"""
import re

_TROUBLE = re.compile("|".join((
    r"\bWARNING: ", r"\bBUG:", r"\bBUG at ", r"\bOops\b", r"general protection fault", r"Kernel panic", r"Call Trace:",
    r"KASAN", r"KCSAN", r"KFENCE: (?!initialized)", r"UBSAN:", r"kmemleak: \d+ new suspected",
    r"possible (circular|recursive) locking", r"inconsistent lock state", r"suspicious RCU usage", r"INFO: possible",
    r"held lock freed", r"sleeping function called", r"scheduling while atomic", r"DEBUG_LOCKS_WARN_ON",
    r"refcount_t: ", r"list_(add|del) corruption", r"detected stalls? on", r"self-detected stall",
    r"blocked for more than \d+ seconds", r"(soft|hard) lockup", r"hard LOCKUP",
    r"unregister_netdevice: waiting for", r"Unable to handle kernel", r"protection fault", r"Out of memory: Killed",
    r"invoked oom-killer", r"stack-protector", r"\bBUG \S+ \(", r"(Slab|SLUB|Object) .*(corrupt|overwritten)", r"Bad page",
    r"earshot-vm: .* failed")))

# Documentation/admin-guide/tainted-kernels.rst. Out-of-tree and unsigned modules are what we are here for.
_TAINTS = {4: "machine check", 5: "bad page", 7: "died (Oops, BUG)", 9: "warning", 14: "soft lockup"}


def troubles(log, tainted=0):
    """What is wrong, in the order in which it happened: lines of the log, then taint flags that no line explains."""
    found = [line for line in log.splitlines() if _TROUBLE.search(line)]
    flags = [text for bit, text in _TAINTS.items() if tainted >> bit & 1]
    if flags and not found:
        found = [f"tainted {tainted}: {', '.join(flags)}, with no line in the log"]
    return found
