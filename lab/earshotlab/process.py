# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab's processes: started into a namespace as a session of their own, remembered, ended, and no others.

A process is remembered by its pid and its start time. What it forked (nginx' workers) is found by its session id,
which is that pid. Whatever is to be signalled must also be in the namespace that the lab started it in: pids are
used again, namespaces of the lab are the lab's.
"""
import contextlib
import glob
import os
import signal
import time

from . import netns
from .errors import LabError

TERM_PATIENCE = 5.0
# Who does not go by then hangs in the kernel; where the machine is emulated, more has to happen before.
KILL_PATIENCE = max(30, float(os.environ.get("EARSHOT_LAB_TIMEOUT") or 0))


def _stat(pid):
    """(state, session, start time in clock ticks) of a process; None if there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as handle:
            fields = handle.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return fields[0], int(fields[3]), int(fields[19])


def start_time(pid):
    stat = _stat(pid)
    return stat and stat[2]


def _namespace_of(pid):
    try:
        status = os.stat(f"/proc/{pid}/ns/net")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    return status.st_dev, status.st_ino


def _pids():
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def _running(pid, stat):
    """Also one whose first thread has ended, and is a zombie: until the others have, its files are open, and its devices there."""
    if stat is None or stat[0] not in "ZX":
        return stat is not None
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return len(os.listdir(f"/proc/{pid}/task")) > 1
    return False


def _inheritable():
    """Our file descriptors that a program would get: who started us may wait until nobody has them any more."""
    for fd in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):  # the directory's own, which is closed by now
            if fd > 2 and os.get_inheritable(fd):
                yield fd


def spawn(name, machine, namespace, argv, log, env=None, enter=None):
    """Start `argv` in the namespace with its output appended to the file `log`; returns its record (JSON-able).

    `enter` is the beginning of a command line that gets there (mounts.py), and must exec the rest.
    """
    command = [*(enter or [netns.ip_command(), "netns", "exec", namespace]), *argv]
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    # posix_spawn, not Popen: the process outlives this one, and nobody waits for it.
    pid = os.posix_spawn(command[0], command, {**os.environ, **(env or {})}, setsid=True, setsigmask=[],
                         setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGPIPE],
                         file_actions=[(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                                       (os.POSIX_SPAWN_OPEN, 1, log, flags, 0o644),
                                       (os.POSIX_SPAWN_DUP2, 1, 2),
                                       *((os.POSIX_SPAWN_CLOSE, fd) for fd in _inheritable())])
    return {"name": name, "machine": machine, "namespace": namespace, "pid": pid, "start": start_time(pid),
            "log": log}


def alive(record):
    """Whether the process itself (not only something it forked) is running."""
    with contextlib.suppress(ChildProcessError):  # not ours to reap, or reaped
        os.waitpid(record["pid"], os.WNOHANG)
    stat = _stat(record["pid"])
    return _running(record["pid"], stat) and stat[2] == record["start"]


def pids_in(namespaces):
    """All processes in any of the namespaces, whoever started them."""
    identities = {netns.identity(namespace) for namespace in namespaces} - {None}
    return [pid for pid in _pids() if _namespace_of(pid) in identities and _running(pid, _stat(pid))]


def _members(records):
    """Pids of all processes of the records' sessions that are still running."""
    sessions = {record["pid"]: (record["start"], netns.identity(record["namespace"])) for record in records}
    members = []
    for pid in _pids():
        stat = _stat(pid)
        if not _running(pid, stat) or stat[1] not in sessions:
            continue
        start, identity = sessions[stat[1]]
        # A moment after the start the process may still be `ip`, on its way into the namespace.
        if _namespace_of(pid) == identity or (pid == stat[1] and stat[2] == start):
            members.append(pid)
    return members


def signal_pids(pids, number):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def send(record, number):
    """Signal the process and what it forked."""
    signal_pids(_members([record]), number)


def _wait_gone(list_pids, timeout):
    deadline = time.monotonic() + timeout
    pause = 0.002
    while list_pids():
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause)
        pause = min(2 * pause, 0.05)
    return True


def _reap(records):
    for record in records:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(record["pid"], os.WNOHANG)


def end(records, patience=TERM_PATIENCE):
    """End the processes: SIGTERM to each record's leader, and after a while SIGKILL to all that is left."""
    if not records:
        return
    for record in records:
        if alive(record):
            signal_pids([record["pid"]], signal.SIGTERM)
            signal_pids([record["pid"]], signal.SIGCONT)  # a frozen one hears nothing else
    # A leader that died earlier cannot tell its children.
    signal_pids(_members([record for record in records if not alive(record)]), signal.SIGTERM)
    if not _wait_gone(lambda: _members(records), patience):
        kill(lambda: _members(records))
    _reap(records)


def _where(pid):
    """Where its threads are in the kernel."""
    lines = []
    for task in glob.glob(f"/proc/{pid}/task/*"):
        with contextlib.suppress(OSError), open(f"{task}/stack", encoding="ascii") as stack:
            lines.append(f"{task}: {stack.read().strip()}")
    return "\n".join(lines)


def kill(list_pids):
    """SIGKILL what `list_pids` lists, until it lists nothing: they may fork meanwhile."""
    deadline = time.monotonic() + KILL_PATIENCE
    while pids := list_pids():
        signal_pids(pids, signal.SIGKILL)
        if time.monotonic() >= deadline:
            raise LabError(f"processes survive SIGKILL: {pids}", "\n".join(map(_where, pids)))
        time.sleep(0.002)


def kill_records(records):
    """SIGKILL at once, children too."""
    kill(lambda: _members(records))
    _reap(records)


def kill_namespaces(namespaces):
    """SIGKILL everything in the namespaces, as a power cut does."""
    kill(lambda: pids_in(namespaces))


def log_tail(path, lines=15):
    """The last lines of a log; an empty text if there is none."""
    try:
        with open(path, "rb") as handle:
            handle.seek(0, os.SEEK_END)
            handle.seek(max(0, handle.tell() - 64 * 1024))
            content = handle.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    return "\n".join(content.splitlines()[-lines:])
