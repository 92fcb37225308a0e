#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""confined.py UNIT COMMAND...: runs a command as systemd would confine the unit, where no systemd runs.

Each line of the unit's [Service] has a function below that plays it, or is one that says when and what to start; a line that
is neither is an error. What is not allowed gives EPERM.
"""
import ctypes
import errno
import os
import resource
import socket
import stat
import subprocess
import sys

import seccomp

PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_SET_MDWE = 24, 38, 65
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWNET, CLONE_NEW_ANY = 0x20000, 0x4000000, 0x40000000, 0x7E020080
KEYCTL_JOIN_SESSION_KEYRING, SYS_KEYCTL = 1, {"x86_64": 250, "aarch64": 219}[os.uname().machine]
S_ISUID, S_ISGID = 0o4000, 0o2000
MS_BIND, MS_REC = 0x1000, 0x4000
CAPABILITIES = (
    "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE "
    "NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN "
    "SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE "
    "MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE").split()
STARTING = {"Type", "EnvironmentFile", "ExecStart", "ExecReload", "Restart", "RestartSec", "RuntimeDirectoryPreserve"}
libc = ctypes.CDLL(None, use_errno=True)


def must(result, what):
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def run(*command):
    subprocess.run(command, check=True)


def system_calls(names):
    """The filter's system calls; groups as systemd has them."""
    calls = set()
    for name in names:
        if not name.startswith("@"):
            calls.add(name)
            continue
        text = subprocess.run(["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True).stdout
        words = [line.strip() for line in text.splitlines()[1:] if line.strip() and not line.strip().startswith("#")]
        calls |= system_calls(words)
    return calls


class Confinement:
    """What the lines ask for, gathered; enter() does it, in the order in which one does not take away what another needs."""
    def __init__(self):
        self.kept = set(CAPABILITIES)
        self.calls = None
        self.refused = {}  # system call: its arguments, or () for any
        self.families = None
        self.devices = None
        self.binds = []
        self.mounts = []
        self.early = []
        self.late = []

    def enter(self):
        for each in self.early:
            each()
        must(libc.unshare(CLONE_NEWNS), "unshare")
        run("mount", "--make-rprivate", "/")
        for each in self.binds:
            run("mount", "--bind", each, each)
        for each in self.mounts:
            if callable(each):
                each()
            else:
                run(*each)
        if self.devices is not None:
            self._hide_devices()
        for number, name in enumerate(CAPABILITIES):
            if name not in self.kept:
                must(libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0), name)
        for each in self.late:
            each()
        self._filter()

    def _hide_devices(self):
        """What systemd forbids by the cgroup is not there."""
        with open("/proc/devices", encoding="ascii") as handle:
            numbers = {line.split()[1]: int(line.split()[0]) for line in handle if line.strip()[:1].isdigit()}
        allowed = {numbers[name] for name in self.devices}
        kept = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm"}
        for folder in ("/dev", "/dev/net"):
            kept |= {entry.path.removeprefix("/dev/") for entry in os.scandir(folder)
                     if stat.S_ISCHR(entry.stat(follow_symlinks=False).st_mode)
                     and os.major(entry.stat().st_rdev) in allowed}
        files = {name: os.open(f"/dev/{name}", os.O_PATH) for name in kept if os.path.exists(f"/dev/{name}")}
        run("mount", "-t", "tmpfs", "-o", "mode=755", "dev", "/dev")
        for name, descriptor in files.items():
            path = f"/dev/{name}"
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if os.path.isdir(f"/proc/self/fd/{descriptor}"):
                os.mkdir(path)
            else:
                os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
            # Not by mount(8), which would look the name up where it means the new file.
            must(libc.mount(f"/proc/self/fd/{descriptor}".encode(), path.encode(), None, MS_BIND | MS_REC, None), path)
            os.close(descriptor)

    def make_read_only(self):
        """All but the kernel's file systems and what the unit has of its own."""
        with open("/proc/self/mounts", encoding="ascii") as handle:
            mounts = [line.split()[:3] for line in handle]
        for _, path, kind in mounts:
            if (path.split("/")[1] not in ("dev", "proc", "sys") and path not in self.binds and kind != "nsfs"
                    and os.path.ismount(path)):  # and not hidden by another
                run("mount", "-o", "remount,bind,ro", path)

    def _filter(self):
        rules = seccomp.SyscallFilter(seccomp.ERRNO(errno.EPERM))  # other architectures' calls end the process
        calls = self.calls | {"execve"}
        if "clone" in self.refused:
            calls -= {"clone3"}
        if self.families is not None:
            calls -= {"socket"}
            for family in self.families:
                rules.add_rule(seccomp.ALLOW, "socket", seccomp.Arg(0, seccomp.EQ, int(family)))
        for name in sorted(calls):
            try:
                if name not in self.refused:
                    rules.add_rule(seccomp.ALLOW, name)
                elif self.refused[name]:
                    argument, mask = self.refused[name]
                    rules.add_rule(seccomp.ALLOW, name, seccomp.Arg(argument, seccomp.MASKED_EQ, mask, 0))
            except (RuntimeError, ValueError):
                pass  # not of this architecture, or newer than the library
        if "clone" in self.refused:
            rules.add_rule(seccomp.ERRNO(errno.ENOSYS), "clone3")
        rules.load()


def capability_bounding_set(c, words):
    c.kept &= {name.removeprefix("CAP_") for name in words}
    assert len(c.kept) == len(words), words


def no_new_privileges(c, words):
    assert words == ["yes"]
    c.late.append(lambda: must(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges"))


def memory_deny_write_execute(c, words):
    assert words == ["yes"]
    c.late.append(lambda: must(libc.prctl(PR_SET_MDWE, 1, 0, 0, 0), "memory"))  # Linux 6.3; systemd has a filter for it


def limit_nofile(c, words):
    # As far as it may be raised here; systemd may raise any.
    limit = min(int(words[0]), resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    c.early.append(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))


def umask(c, words):
    c.early.append(lambda: os.umask(int(words[0], 8)))


def runtime_directory(c, words):
    c.binds += [f"/run/{word}" for word in words]


def state_directory(c, words):
    for word in words:
        os.makedirs(f"/var/lib/{word}", exist_ok=True)
    c.binds += [f"/var/lib/{word}" for word in words]


def logs_directory(c, words):
    for word in words:
        os.makedirs(f"/var/log/{word}", exist_ok=True)
    c.binds += [f"/var/log/{word}" for word in words]


def read_write_paths(c, words):
    for word in words:
        path = word.removeprefix("-")
        if os.path.isdir(path) or not word.startswith("-"):
            c.binds.append(path)


def protect_system(c, words):
    assert words == ["strict"]
    c.mounts.insert(0, c.make_read_only)


def protect_home(c, words):
    assert words == ["read-only"]
    for path in ("/home", "/root", "/run/user"):
        if os.path.isdir(path):
            c.mounts += [("mount", "--bind", path, path), ("mount", "-o", "remount,bind,ro", path)]


def private_tmp(c, words):
    assert words == ["yes"]
    c.mounts += [("mount", "-t", "tmpfs", "-o", "mode=1777", "tmp", path) for path in ("/tmp", "/var/tmp")]


def private_mounts(_, words):
    assert words == ["yes"]  # as enter() has them


def protect_proc(c, words):
    c.mounts.append(("mount", "-t", "proc", "-o", f"hidepid={words[0]}", "proc", "/proc"))


def device_policy(c, words):
    assert words == ["closed"]
    c.devices = c.devices or set()


def device_allow(c, words):
    kind, access = words
    assert kind.startswith("char-") and access == "rw"
    c.devices = (c.devices or set()) | {kind.removeprefix("char-")}


def protect_kernel_modules(c, words):
    assert words == ["yes"]
    c.kept -= {"SYS_MODULE"}
    c.refused.update(dict.fromkeys(system_calls(["@module"]), ()))
    if os.path.isdir("/usr/lib/modules"):
        c.mounts.append(("mount", "-t", "tmpfs", "-o", "mode=000", "none", "/usr/lib/modules"))


def protect_kernel_logs(c, words):
    assert words == ["yes"]
    c.kept -= {"SYSLOG"}
    c.refused["syslog"] = ()


def protect_control_groups(c, words):
    assert words == ["yes"]
    if os.path.ismount("/sys/fs/cgroup"):
        c.mounts.append(("mount", "-o", "remount,bind,ro", "/sys/fs/cgroup"))


def protect_clock(c, words):
    assert words == ["yes"]
    c.kept -= {"SYS_TIME", "WAKE_ALARM"}
    c.refused.update(dict.fromkeys(system_calls(["@clock"]), ()))


def protect_hostname(c, words):
    assert words == ["yes"]
    c.early.append(lambda: must(libc.unshare(CLONE_NEWUTS), "unshare"))
    c.refused.update(sethostname=(), setdomainname=())


def restrict_address_families(c, words):
    c.families = {getattr(socket, name) for name in words}


def restrict_namespaces(c, words):
    assert words in (["yes"], ["net"])
    refused = CLONE_NEW_ANY & ~CLONE_NEWNET if words == ["net"] else CLONE_NEW_ANY
    # clone3 has its flags in memory, so for systemd, too, there is none (_filter()), and libc goes on with clone. With "net",
    # systemd lets setns() enter a network namespace; nothing here needs that.
    c.refused.update(setns=(), unshare=(0, refused), clone=(0, refused))


def restrict_realtime(c, words):
    assert words == ["yes"]
    c.refused.update(sched_setscheduler=(), sched_setattr=())


def restrict_suid_sgid(c, words):
    assert words == ["yes"]
    for name, argument in (("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("mkdir", 1), ("mkdirat", 2), ("mknod", 1),
                           ("mknodat", 2)):
        c.refused[name] = (argument, S_ISUID | S_ISGID)


def lock_personality(c, words):
    assert words == ["yes"]
    c.refused["personality"] = ()


def keyring_mode(c, words):
    assert words == ["private"]
    # A system without keyrings has none to share.
    c.late.append(lambda: libc.syscall(SYS_KEYCTL, KEYCTL_JOIN_SESSION_KEYRING, None))


def system_call_architectures(_, words):
    assert words == ["native"]  # the library's filter is


def system_call_filter(c, words):
    c.calls = system_calls(words)


def system_call_error_number(_, words):
    assert words == ["EPERM"]


PLAYED = {
    "CapabilityBoundingSet": capability_bounding_set, "NoNewPrivileges": no_new_privileges, "LimitNOFILE": limit_nofile,
    "MemoryDenyWriteExecute": memory_deny_write_execute, "UMask": umask, "RuntimeDirectory": runtime_directory,
    "StateDirectory": state_directory, "LogsDirectory": logs_directory, "ReadWritePaths": read_write_paths,
    "ProtectSystem": protect_system, "ProtectHome": protect_home, "PrivateTmp": private_tmp,
    "PrivateMounts": private_mounts, "ProtectProc": protect_proc, "DevicePolicy": device_policy,
    "DeviceAllow": device_allow, "ProtectKernelModules": protect_kernel_modules, "ProtectKernelLogs": protect_kernel_logs,
    "ProtectControlGroups": protect_control_groups, "ProtectClock": protect_clock, "ProtectHostname": protect_hostname,
    "RestrictAddressFamilies": restrict_address_families, "RestrictNamespaces": restrict_namespaces,
    "RestrictRealtime": restrict_realtime, "RestrictSUIDSGID": restrict_suid_sgid, "LockPersonality": lock_personality,
    "KeyringMode": keyring_mode, "SystemCallArchitectures": system_call_architectures,
    "SystemCallFilter": system_call_filter, "SystemCallErrorNumber": system_call_error_number,
}


def main():
    with open(sys.argv[1], encoding="utf-8") as handle:
        lines = handle.read().partition("[Service]")[2].partition("\n[")[0].splitlines()
    confinement = Confinement()
    for line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        key, _, value = line.partition("=")
        if key in PLAYED:
            PLAYED[key](confinement, value.split())
        elif key not in STARTING:
            sys.exit(f"{sys.argv[1]}: {key}= is not played here")
    confinement.enter()
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
