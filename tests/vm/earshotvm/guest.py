# SPDX-License-Identifier: GPL-2.0-or-later
"""Process 1 of a machine: makes it a usable system, does the job, leaves the result, turns the power off.

Runs inside the machine, on the host's Python. The job is /run/vm/job.json (machine.py writes it):

    name             of the machine
    argv, cwd, env   the command; its terminal is /dev/hvc0
    shell            the terminal is for a person
    modules          the kernel's modules, a directory of the host
    insmod           modules of ours: loaded before the job, unloaded after it

Left behind in /run/vm: `dmesg`, and last of all `result.json`: {"status", "tainted", "release"}.
"""
import ctypes
import fcntl
import json
import os
import platform
import resource
import signal
import socket
import stat
import subprocess
import sys
import termios

JOB = "/run/vm"
POWER_OFF = 0x4321FEDC  # linux/reboot.h
MS_BIND = 4096
FILES_MAX = 1 << 20
_libc = ctypes.CDLL(None, use_errno=True)

MOUNTS = (
    ("devpts", "/dev/pts", "mode=620,ptmxmode=666"),
    ("tmpfs", "/dev/shm", "mode=1777"),
    ("bpf", "/sys/fs/bpf", ""),
    ("cgroup2", "/sys/fs/cgroup", ""),
    ("debugfs", "/sys/kernel/debug", ""),
    ("tracefs", "/sys/kernel/tracing", ""),
)


def mount(kind, where, options, source=None, flags=0):
    os.makedirs(where, exist_ok=True)
    if _libc.mount((source or kind).encode(), where.encode(), kind.encode(), flags, options.encode()):
        number = ctypes.get_errno()
        print(f"earshot-vm: mount {where}: {os.strerror(number)}", file=sys.stderr)


def write(path, text):
    with open(path, "w", encoding="ascii") as handle:
        handle.write(text)


def set_up(job):
    """What an init system would do, as far as our tests need it."""
    socket.sethostname(job["name"])
    for kind, where, options in MOUNTS:
        mount(kind, where, options)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        if not os.path.lexists(f"/dev/{name}"):
            os.symlink(target, f"/dev/{name}")
    for directory in ("/run/lock", "/run/netns", "/run/earshot", "/dev/net"):
        os.makedirs(directory, exist_ok=True)
    if not os.path.exists("/dev/net/tun"):
        os.mknod("/dev/net/tun", 0o600 | stat.S_IFCHR, os.makedev(10, 200))  # whose module comes when it is opened
    # Mounted over what the host may have of that name: installed headers make the directory too.
    mount("", f"/lib/modules/{platform.release()}", "", job["modules"], MS_BIND)
    subprocess.run(["/sbin/ip", "link", "set", "lo", "up"], check=True)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES_MAX, FILES_MAX))


def terminal(job):
    """/dev/hvc0 as input, output and controlling terminal of this process."""
    os.setsid()
    fd = os.open("/dev/hvc0", os.O_RDWR)
    fcntl.ioctl(fd, termios.TIOCSCTTY, 1)
    attributes = termios.tcgetattr(fd)
    if not job.get("shell"):  # what the command prints arrives as it is
        attributes[1] &= ~termios.OPOST
        attributes[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG)
        termios.tcsetattr(fd, termios.TCSANOW, attributes)
    for number in (0, 1, 2):
        os.dup2(fd, number)


def do(job):
    """In a child of process 1: become the command."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    terminal(job)
    if not job.get("shell"):
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    os.chdir(job["cwd"])
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
                   "LANG": "C.UTF-8", "TERM": "dumb", **job["env"]}
    try:
        os.execvpe(job["argv"][0], job["argv"], environment)
    except OSError as error:
        print(f"earshot-vm: {job['argv'][0]}: {error.strerror}", file=sys.stderr)
        os._exit(127)


def reap_until(child):
    """Wait for `child`, and for everybody else's orphans meanwhile; returns its exit status as a shell would."""
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def ours(command, modules):
    """insmod or rmmod our modules; what fails goes into the kernel's log, where it is found (dmesg.py)."""
    for file in modules:
        name = file if command == "insmod" else os.path.basename(file).removesuffix(".ko")
        done = subprocess.run([f"/sbin/{command}", name], capture_output=True, text=True, check=False)
        if done.returncode:
            write("/dev/kmsg", f"earshot-vm: {command} {name} failed: {done.stderr.strip()}")
            return done.returncode
    return 0


def kernel_log():
    with open("/dev/kmsg", "rb", buffering=0) as kmsg:
        os.set_blocking(kmsg.fileno(), False)
        while True:
            try:
                record = kmsg.read(8192)
            except BrokenPipeError:  # overwritten meanwhile: go on with the oldest that is left
                continue
            if not record:
                return
            prefix, _, text = record.decode("utf-8", "replace").partition(";")
            level, _, stamp, *_ = prefix.split(",")
            lines = text.splitlines()
            yield f"<{int(level) & 7}>[{int(stamp) / 1e6:12.6f}] {lines[0] if lines else ''}\n"


def main():
    with open(f"{JOB}/job.json", encoding="utf-8") as handle:
        job = json.load(handle)
    set_up(job)
    write("/dev/kmsg", "earshot-vm: the job begins")
    status = ours("insmod", job["insmod"])
    if not status:
        child = os.fork()
        if not child:
            do(job)
        status = reap_until(child)
        status = ours("rmmod", reversed(job["insmod"])) or status
    with open(f"{JOB}/dmesg", "w", encoding="utf-8") as handle:
        handle.writelines(kernel_log())
    with open("/proc/sys/kernel/tainted", encoding="ascii") as handle:
        tainted = int(handle.read())
    with open(f"{JOB}/result.new", "w", encoding="ascii") as handle:
        json.dump({"status": status, "tainted": tainted, "release": platform.release()}, handle)
    os.rename(f"{JOB}/result.new", f"{JOB}/result.json")


if __name__ == "__main__":
    try:
        main()
    finally:  # process 1 must not end: the kernel would panic, and the traceback scroll away
        sys.stderr.flush()
        os.sync()
        _libc.reboot(POWER_OFF)
