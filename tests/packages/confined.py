#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""confined.py UNIT COMMAND...: runs a command as systemd would confine the unit, where no systemd runs.

Of the unit's lines: CapabilityBoundingSet, NoNewPrivileges, SystemCallFilter, RestrictAddressFamilies,
MemoryDenyWriteExecute, ProtectSystem=strict, RuntimeDirectory, ProtectProc. What is not allowed gives EPERM.
"""
import ctypes
import errno
import os
import re
import socket
import subprocess
import sys

import seccomp

PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_SET_MDWE = 24, 38, 65
CLONE_NEWNS = 0x20000
CAPABILITIES = (
    "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE "
    "NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN "
    "SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE "
    "MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE").split()
libc = ctypes.CDLL(None, use_errno=True)


def value(unit, key):
    found = re.findall(rf"^{key}=(.*)$", unit, re.M)
    assert len(found) == 1, (key, found)
    return found[0].split()


def must(result, what):
    if result:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


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


def main():
    with open(sys.argv[1], encoding="utf-8") as handle:
        unit = handle.read()
    calls = system_calls(value(unit, "SystemCallFilter")) | {"execve"}
    kept = {name.removeprefix("CAP_") for name in value(unit, "CapabilityBoundingSet")}
    assert kept <= set(CAPABILITIES), kept
    families = {getattr(socket, name) for name in value(unit, "RestrictAddressFamilies")}

    assert value(unit, "ProtectSystem") == ["strict"] and value(unit, "ProtectProc") == ["invisible"]
    must(libc.unshare(CLONE_NEWNS), "unshare")
    runtime = "/run/" + value(unit, "RuntimeDirectory")[0]
    for command in ("mount --make-rprivate /", f"mount --bind {runtime} {runtime}", "mount -o remount,bind,ro /",
                    "mount -t proc -o hidepid=invisible proc /proc"):
        subprocess.run(command.split(), check=True)

    for number, name in enumerate(CAPABILITIES):
        if name not in kept:
            must(libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0), name)
    assert value(unit, "NoNewPrivileges") == ["yes"] and value(unit, "MemoryDenyWriteExecute") == ["yes"]
    must(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    must(libc.prctl(PR_SET_MDWE, 1, 0, 0, 0), "memory")  # Linux 6.3; systemd has a filter for it

    rules = seccomp.SyscallFilter(seccomp.ERRNO(errno.EPERM))
    for name in sorted(calls - {"socket"}):
        try:
            rules.add_rule(seccomp.ALLOW, name)
        except (RuntimeError, ValueError):
            pass  # not of this architecture, or newer than the library
    for family in families:
        rules.add_rule(seccomp.ALLOW, "socket", seccomp.Arg(0, seccomp.EQ, int(family)))
    rules.load()
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
