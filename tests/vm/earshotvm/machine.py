# SPDX-License-Identifier: GPL-2.0-or-later
"""One QEMU machine: boots a kernel on the host's root directory, does one job, and is judged.

    ttyS0     kernel messages from "warning" up           file `console` in the job's directory
    hvc0      the job's terminal                          our standard output (and input, for a shell)
    /run/vm   the job's directory, shared                 job.json in; dmesg, result.json out

A run is good when the job's exit status is 0, the machine turned itself off after it wrote result.json, and the
kernel has nothing to complain about (dmesg.py).
"""
import contextlib
import ctypes
import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field

from . import dmesg, initramfs
from .errors import VmError

RUN = "/run/earshot-vm"
QEMU = "qemu-system-x86_64"
GUEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guest.py")
PYTHON = "/usr/bin/python3"
MEMORY_MB = 2048
CPUS = 2
STALL_S = 300  # an emulated CPU may stand still for long when the host is busy; a real stall lasts for ever
POWER_OFF_S = 20
# For our tests in a machine: no traces in the overlay's memory, and patience.
ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": "1", "EARSHOT_LAB_TIMEOUT": "120"}
_libc = ctypes.CDLL(None)

# Debian's kernels have no KASAN and no kmemleak; this they have: red zones, poison, and who allocated what.
SLUB_DEBUG = "slub_debug=FZPU"
_KERNEL_ARGUMENTS = (
    "console=ttyS0", "loglevel=5", "panic=-1", "oops=panic", "net.ifnames=0", "mitigations=off", "nokaslr",
    # The kernel measures how fast the TSC is when it boots. Where the host is busy, that may be wrong by a factor of five, and all
    # timeouts are: so clocks are read from a timer that tells its rate. It costs 1 us more.
    "clocksource=hpet", "tsc=reliable", "random.trust_cpu=on", "nmi_watchdog=0",
    "no_timer_check",  # whether the timer ticks: it may not in time, when the host is busy
    "log_buf_len=8M",  # what a long suite says of its interfaces must not push out a warning
    f"rcupdate.rcu_cpu_stall_timeout={STALL_S}", "sysctl.kernel.watchdog_thresh=60",
    f"sysctl.kernel.hung_task_timeout_secs={STALL_S}",
)


@dataclass
class Result:
    """How a machine ended. `status` is the job's exit status, None if it did not come to that."""

    status: int | None
    troubles: list = field(default_factory=list)
    release: str = ""

    @property
    def good(self):
        return self.status == 0 and not self.troubles


def _remove_stale():
    """Directories of runs that were killed: names tell the process."""
    for name in os.listdir(RUN):
        if not os.path.exists(f"/proc/{name.split('-')[-2]}"):
            shutil.rmtree(os.path.join(RUN, name), ignore_errors=True)


def _die_with_parent():
    _libc.prctl(1, signal.SIGKILL)


class Machine:
    """`argv` runs in `cwd` with `env` added to a plain environment. A context manager: afterwards it is off.

    taps        (interface, MAC address) of each NIC, tap devices that exist in `namespace`
    namespace   the network namespace of the host that QEMU runs in; None: ours
    shell       the terminal is for a person
    insmod      files of modules of ours, loaded before and unloaded after
    output      where the job's output goes: a file descriptor, None for ours
    append      further arguments of the kernel
    """

    def __init__(self, kernel, argv, *, cwd="/", env=None, taps=(), namespace=None, shell=False, insmod=(),
                 output=None, append=(), cpus=CPUS, memory_mb=MEMORY_MB, name="vm"):
        self.kernel, self.name = kernel, name
        self.taps, self.namespace, self.output, self.append = list(taps), namespace, output, append
        self.cpus, self.memory_mb = cpus, memory_mb
        self.job = {"name": name, "argv": list(argv), "cwd": cwd, "env": dict(env or {}), "shell": shell,
                    "modules": kernel.modules, "insmod": [os.path.abspath(file) for file in insmod]}
        self.directory = None
        self.qemu = None
        self.dead = False  # killed, and not of itself

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()

    def _path(self, name):
        return os.path.join(self.directory, name)

    def read(self, name):
        """A file of the job's directory; empty if it is not there."""
        try:
            with open(self._path(name), encoding="utf-8", errors="replace") as handle:
                return handle.read()
        except FileNotFoundError:
            return ""

    def command(self):
        """QEMU's command line."""
        argv = []
        if self.namespace:
            argv += [shutil.which("ip") or "/sbin/ip", "netns", "exec", self.namespace]
        argv += [shutil.which(QEMU) or QEMU, "-name", self.name, "-nodefaults", "-no-user-config", "-no-reboot",
                 "-display", "none", "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max,la57=off",
                 "-smp", str(self.cpus), "-m", str(self.memory_mb),
                 "-kernel", self.kernel.image, "-initrd", self._path("initramfs"),
                 "-append", " ".join((*_KERNEL_ARGUMENTS, *self.append)),
                 "-serial", f"file:{self._path('console')}",
                 "-device", "virtio-serial-pci", "-chardev", "stdio,id=terminal,signal=off",
                 "-device", "virtconsole,chardev=terminal",
                 "-device", "virtio-rng-pci",
                 "-virtfs", "local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap",
                 "-virtfs", f"local,path={self.directory},mount_tag=job,security_model=none,multidevs=remap"]
        for number, (interface, mac) in enumerate(self.taps):
            argv += ["-netdev", f"tap,id=net{number},ifname={interface},script=no,downscript=no",
                     "-device", f"virtio-net-pci,netdev=net{number},mac={mac}"]
        return argv

    def start(self):
        """Turn it on."""
        if not shutil.which(QEMU):
            raise VmError(f"{QEMU} is not installed: apt-get install qemu-system-x86")
        os.makedirs(RUN, exist_ok=True)
        _remove_stale()
        self.directory = tempfile.mkdtemp(prefix=f"{self.name}-{os.getpid()}-", dir=RUN)
        try:
            with open(self._path("job.json"), "w", encoding="utf-8") as handle:
                json.dump(self.job, handle)
            initramfs.build(self.kernel, shlex.join([PYTHON, "-I", GUEST]), self._path("initramfs"))
            with open(self._path("qemu.log"), "wb") as log:
                self.qemu = subprocess.Popen(self.command(), stdin=None if self.job["shell"] else subprocess.DEVNULL,
                                             stdout=self.output, stderr=log, preexec_fn=_die_with_parent)
        except BaseException:
            self.kill()
            raise

    @property
    def running(self):
        return self.qemu is not None and self.qemu.poll() is None

    def wait(self, timeout=None):
        """Until it has turned itself off, `timeout` seconds at most; returns the Result."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.running:
            if os.path.exists(self._path("result.json")):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.qemu.wait(POWER_OFF_S)
                break
            if deadline is not None and time.monotonic() > deadline:
                return self._judge(f"not done after {timeout:g} s")
            time.sleep(0.05)
        return self._judge("does not turn itself off" if self.running else None)

    def _judge(self, late):
        result = json.loads(self.read("result.json") or "{}")
        log = self.read("dmesg") or self.read("console")
        troubles = dmesg.troubles(log, result.get("tainted", 0))
        if not result and troubles:  # it died of that: its whole last message
            lines = log.splitlines()
            troubles = lines[lines.index(troubles[0]):][:60]
        elif not result and not late:
            tail = (self.read("qemu.log") + log).strip().splitlines()[-12:]
            troubles = ["ended without a result; the last that was heard:", *tail]
        if late:
            troubles += [late]
        return Result(result.get("status"), [f"{self.name} ({self.kernel.release}): {text}" for text in troubles],
                      result.get("release", ""))

    def kill(self):
        """Cut its power if it is on, and remove its directory."""
        if self.running:
            self.dead = True
            self.qemu.kill()
        if self.qemu:
            self.qemu.wait()
        if self.directory:
            shutil.rmtree(self.directory, ignore_errors=True)
