# SPDX-License-Identifier: GPL-2.0-or-later
"""A node's page cache, disk and CPU: a memory, a blkio and a cpu control group (cgroup v1) around its server.

The page cache is limited together with all other memory of the group, and charged to who reads first. The block layer's
throttle makes of the machine's disk one of a stated speed; its limits of requests and of bytes hold at once.
What is in the cache is not slowed down. The group's own counter tells what was read from the disk.
"""
import contextlib
import os
import time

from earshotlab import LabError

MOUNT = "/sys/fs/cgroup"
CONTROLLERS = ("memory", "blkio", "cpu")
_PERIOD_US = 10000  # in which a group gets its share of a CPU; what has used it waits for the next one
_SHARES_USUAL, _SHARES_MOST = 1024, 262144
_PATIENCE_S = 5.0


def disk_of(path):
    """The "major:minor" of the disk that a directory is on."""
    status = os.stat(path)
    device = f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}"
    link = f"/sys/dev/block/{device}"
    if not os.path.exists(link):
        raise LabError(f"{path} is on no disk of this machine (device {device}): name another directory")
    if os.path.exists(os.path.join(link, "partition")):
        with open(os.path.join(link, "..", "dev"), encoding="ascii") as handle:
            return handle.read().strip()
    return device


def check():
    """LabError if the machine has no such controllers."""
    for controller in CONTROLLERS:
        if not os.path.exists(os.path.join(MOUNT, controller, "cgroup.procs")):
            raise LabError(f"no cgroup v1 controller {controller} at {MOUNT}/{controller}: "
                           f"mount -t cgroup -o {controller} {controller} {MOUNT}/{controller}")


class Group:
    """One node's. As a context manager it is there inside the block; its processes must have ended at the end."""

    def __init__(self, name, device, memory_bytes):
        self.device = device
        self.memory_bytes = memory_bytes
        self.paths = {controller: os.path.join(MOUNT, controller, name) for controller in CONTROLLERS}

    def __enter__(self):
        check()
        try:
            for path in self.paths.values():
                os.mkdir(path)
            self.set_memory(self.memory_bytes)
        except OSError as error:
            self.__exit__()
            raise LabError(f"control group {self.paths['memory']}: {error.strerror}") from error
        return self

    def __exit__(self, *_):
        for path in self.paths.values():
            deadline = time.monotonic() + _PATIENCE_S
            while os.path.exists(path):
                try:
                    os.rmdir(path)
                except OSError as error:  # its processes are on their way out
                    if time.monotonic() > deadline:
                        raise LabError(f"{path} cannot be removed: {error.strerror}") from error
                    time.sleep(0.01)

    def _file(self, controller, name):
        return os.path.join(self.paths[controller], name)

    def _write(self, controller, name, value):
        with open(self._file(controller, name), "w", encoding="ascii") as handle:
            handle.write(str(value))

    def _read(self, controller, name):
        with open(self._file(controller, name), encoding="ascii") as handle:
            return handle.read()

    def _numbers(self, controller, name):
        """The file's lines as {all but the last word: number}."""
        lines = (line.rpartition(" ") for line in self._read(controller, name).splitlines())
        return {key: int(value) for key, _, value in lines}

    def join(self):
        """Put the calling process inside, with all that it will ever start; as Popen's preexec_fn, for one."""
        for controller in CONTROLLERS:
            self._write(controller, "cgroup.procs", os.getpid())

    def set_disk(self, requests_per_s, bytes_per_s):
        """Limit reads; 0 each: no limit."""
        self._write("blkio", "blkio.throttle.read_iops_device", f"{self.device} {requests_per_s}")
        self._write("blkio", "blkio.throttle.read_bps_device", f"{self.device} {bytes_per_s}")

    def set_memory(self, limit_bytes):
        """Of the page cache and all else."""
        self._write("memory", "memory.limit_in_bytes", limit_bytes)

    def set_cpu(self, share):
        """So much of one CPU for all processes, whatever else runs on the machine; 0: no limit, and what others leave."""
        self._write("cpu", "cpu.shares", _SHARES_MOST if share else _SHARES_USUAL)
        self._write("cpu", "cpu.cfs_period_us", _PERIOD_US)
        self._write("cpu", "cpu.cfs_quota_us", round(share * _PERIOD_US) or -1)

    def forget(self):
        """Give back what the group holds that nobody uses, cached files above all."""
        self._write("memory", "memory.force_empty", 0)

    def reads(self):
        """(requests, bytes) read from the disk so far."""
        return tuple(self._numbers("blkio", f"blkio.throttle.{name}").get(f"{self.device} Read", 0)
                     for name in ("io_serviced", "io_service_bytes"))

    def cached_bytes(self):
        return self._numbers("memory", "memory.stat")["cache"]

    def kills(self):
        """Processes that the kernel killed since the group had no memory left."""
        return self._numbers("memory", "memory.oom_control").get("oom_kill", 0)

    def waiting(self):
        """Tasks that wait for the disk now."""
        count = 0
        for task in self._read("blkio", "tasks").split():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                with open(f"/proc/{task}/stat", encoding="utf-8", errors="replace") as handle:
                    count += handle.read().rpartition(")")[2].split()[0] == "D"
        return count
