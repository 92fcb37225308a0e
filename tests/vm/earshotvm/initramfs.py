# SPDX-License-Identifier: GPL-2.0-or-later
"""What a machine boots into: enough to mount the host's root directory, read-only, under a file system in memory.

    /            overlay: upper layer in memory, lower layer the host's / over 9p
    /run, /tmp   /run is empty; /tmp is the host's, as the rest (build trees may be there)
    /run/vm      the job's directory on the host, writable (machine.py, guest.py)

So every program of the host is there, in the same place, and nothing that a machine does stays.
"""
import io
import lzma
import os
import shutil
import stat
import subprocess

from .errors import VmError

# In the order in which they are loaded; what they depend on comes before them. Some may be built in.
MODULES = ("virtio_pci", "virtio_console", "virtio_net", "9p", "9pnet_virtio", "overlay", "virtio_rng")

_INIT = """\
#!/bin/busybox sh
export PATH=/bin
fail() {{ echo "earshot-vm: $1 failed" >/dev/kmsg; poweroff -f; sleep 60; }}
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
for m in {modules}; do insmod /modules/$m || fail "insmod $m"; done
mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose root /lower || fail "mounting the host's root"
mount -t tmpfs -o size=80% memory /memory
mkdir /memory/upper /memory/work
mount -t overlay -o lowerdir=/lower,upperdir=/memory/upper,workdir=/memory/work overlay /root || fail "the overlay"
for d in dev proc sys; do mount -o move /$d /root/$d || fail "moving $d"; done
mount -t tmpfs -o mode=755 run /root/run
mkdir /root/run/vm
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=none job /root/run/vm || fail "mounting the job"
exec switch_root /root {guest}
"""


def _module_files(kernel):
    """Paths of the modules that are not built in, each after what it depends on."""
    depends, by_name = {}, {}
    with open(os.path.join(kernel.modules, "modules.dep"), encoding="ascii") as handle:
        for line in handle:
            file, _, needs = line.partition(":")
            depends[file] = needs.split()
            by_name[os.path.basename(file).partition(".")[0].replace("-", "_")] = file
    with open(os.path.join(kernel.modules, "modules.builtin"), encoding="ascii") as handle:
        built_in = {os.path.basename(line).partition(".")[0].replace("-", "_") for line in handle}
    files = []

    def add(file):
        for need in depends[file]:
            if need not in files:
                add(need)
        if file not in files:
            files.append(file)

    for name in MODULES:
        if name in by_name:
            add(by_name[name])
        elif name not in built_in:
            raise VmError(f"kernel {kernel.name} has no module {name}")
    return [os.path.join(kernel.modules, file) for file in files]


def _content(file):
    """A module as insmod takes it, and its name without compression's ending."""
    name = os.path.basename(file)
    if name.endswith(".xz"):
        with lzma.open(file) as handle:
            return name[:-3], handle.read()
    if name.endswith(".zst"):
        done = subprocess.run(["zstd", "-dc", file], capture_output=True, check=True)
        return name[:-4], done.stdout
    with open(file, "rb") as handle:
        return name, handle.read()


class _Cpio:
    """An archive in the kernel's format ("newc", Documentation/driver-api/early-userspace/buffer-format.rst)."""

    def __init__(self):
        self.out = io.BytesIO()
        self.number = 0

    def add(self, name, mode, data=b"", device=(0, 0)):
        self.number += 1
        fields = (self.number, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name) + 1, 0)
        header = b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
        for part in (header, data):
            self.out.write(part + b"\0" * (-len(part) % 4))

    def file(self):
        self.add("TRAILER!!!", 0)
        return self.out.getvalue()


def build(kernel, guest, path):
    """Write the initramfs to `path`. `guest` is the command line that is process 1 once the root is there."""
    busybox = shutil.which("busybox")
    if not busybox:
        raise VmError("busybox is not installed: apt-get install busybox-static")
    cpio = _Cpio()
    for directory in ("bin", "dev", "lower", "memory", "modules", "proc", "root", "sys"):
        cpio.add(directory, stat.S_IFDIR | 0o755)
    cpio.add("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
    with open(busybox, "rb") as handle:
        cpio.add("bin/busybox", stat.S_IFREG | 0o755, handle.read())
    for applet in ("sh", "mount", "mkdir", "insmod", "switch_root", "poweroff", "sleep"):
        cpio.add(f"bin/{applet}", stat.S_IFLNK | 0o777, b"busybox")
    modules = [_content(file) for file in _module_files(kernel)]
    for name, data in modules:
        cpio.add(f"modules/{name}", stat.S_IFREG | 0o644, data)
    init = _INIT.format(modules=" ".join(name for name, _ in modules), guest=guest)
    cpio.add("init", stat.S_IFREG | 0o755, init.encode())
    with open(path, "wb") as handle:
        handle.write(cpio.file())
