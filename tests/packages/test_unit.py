# SPDX-License-Identifier: GPL-2.0-or-later
"""earshotd does its work with what its systemd unit leaves it: systemd does not run here, confined.py plays each line of it."""
import contextlib
import os
import re
import signal
import subprocess
import sys

import pytest

from earshotlab import Lab, daemon, wait_for

UNIT = os.path.join(os.environ["EARSHOT_BUILD"], "conf/earshotd.service")
LEAST = "CAP_NET_ADMIN", "CAP_BPF", "CAP_PERFMON", "CAP_NET_RAW"  # earshotd(8)
CONFINED = os.path.join(os.path.dirname(__file__), "confined.py")


@pytest.fixture(name="lab")
def _lab():
    if os.geteuid():
        pytest.fail("needs root")
    with Lab(nodes=1, autostart=["nginx"], settings={"service.inspect": "every", "service.document_root": "/etc"}) as lab:
        yield lab


def start(lab, unit=UNIT):
    node = lab.node("n1")
    if lab.options["membership"] == "corosync":
        control = "/run/earshot/n1.sock"  # in mounts of its own
    else:
        control = daemon.control_path(node.namespace)
        os.makedirs(os.path.dirname(control), exist_ok=True)
    with open(os.path.join(lab.directory, "confined.log"), "ab") as log:
        return subprocess.Popen([*lab.enter("n1", "/"), sys.executable, CONFINED, unit,
                                 *daemon.command_line(lab.config_file, "n1", control)], stdin=subprocess.DEVNULL,
                                stdout=log, stderr=log)


def log_of(lab):
    with open(os.path.join(lab.directory, "confined.log"), encoding="utf-8") as handle:
        return handle.read()


def answers(lab, process):
    assert process.poll() is None, log_of(lab)
    return lab.status("n1")["datapath"]["state"] == "inspecting"


def end(process):
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0


def test_serves_and_takes_over(lab):
    first = start(lab)
    wait_for(lambda: answers(lab, first), "the daemon")
    assert lab.client.get("/1k")[0] == 200
    with open(f"/proc/{first.pid}/status", encoding="ascii") as handle:
        status = dict(line.split(":\t", 1) for line in handle.read().splitlines() if ":\t" in line)
    assert bin(int(status["CapEff"], 16)).count("1") == 5 and status["Seccomp"] == "2", status
    lab.node("n1").ask({"command": "reload"})
    end(first)
    assert "took over" not in log_of(lab)
    second = start(lab)
    wait_for(lambda: answers(lab, second), "the next daemon")
    assert "took over a running datapath" in log_of(lab)
    assert lab.client.get("/1k")[0] == 200
    assert lab.counters("n1")["request_queued"] >= 2
    lab.node("n1").ask({"command": "stop"})
    assert second.wait(10) == 0


def test_netfilter():
    """The third datapath tries in a network namespace of its own whether the kernel has what it needs, and opens a tun device."""
    settings = {"service.inspect": "first", "service.document_root": "/etc"}
    with Lab(nodes=1, datapath="netfilter", autostart=["nginx"], settings=settings) as lab:
        process = start(lab)
        wait_for(lambda: answers(lab, process), "the daemon", seen=lambda: log_of(lab))
        assert lab.status("n1")["datapath"]["type"] == "netfilter"
        assert lab.client.get("/1k")[0] == 200
        end(process)


def real_time(process):
    """Threads of the daemon with real-time priority."""
    threads = os.listdir(f"/proc/{process.pid}/task")
    return sum(os.sched_getscheduler(int(thread)) & ~os.SCHED_RESET_ON_FORK == os.SCHED_RR for thread in threads)


@pytest.fixture(name="with_corosync")
def _with_corosync():
    with Lab(nodes=1, membership="corosync", autostart=["nginx"]) as lab:
        yield lab


@pytest.mark.parametrize("less, has_it", ((None, True), ("CAP_SYS_NICE", False)))
def test_real_time(with_corosync, tmp_path, less, has_it):
    """A busy machine must not cost the node its place: the two threads that keep it, the control thread and the bus's, have
    real-time priority, and no other, such as the one that serves HTTP; or people are told."""
    with open(UNIT, encoding="utf-8") as handle:
        names = re.search(r"^CapabilityBoundingSet=(.*)$", handle.read(), re.M)[1].split()
    process = start(with_corosync, with_capabilities(tmp_path, *(name for name in names if name != less)))
    wait_for(lambda: answers(with_corosync, process), "the daemon", seen=lambda: log_of(with_corosync))
    assert real_time(process) == (2 if has_it else 0)
    assert ("no real-time priority" in log_of(with_corosync)) == (not has_it), log_of(with_corosync)
    end(process)


def confined(*command, unit=UNIT):
    return subprocess.run([sys.executable, CONFINED, unit, *command], capture_output=True, text=True, check=False)


def test_devices():
    """The module's device is of the kind misc; the kernel's log, for one, is not."""
    misc = [entry.name for entry in os.scandir("/dev") if entry.is_file(follow_symlinks=False) is False and
            not entry.is_symlink() and not entry.is_dir() and os.major(entry.stat().st_rdev) == 10]
    assert misc, "this machine has no misc device to look for"
    seen = confined("/bin/ls", "/dev").stdout.split()
    assert set(misc) <= set(seen) and {"null", "urandom", "shm"} <= set(seen), seen
    assert "kmsg" not in seen and "console" not in seen, seen
    assert len(confined("/usr/bin/head", "-c8", "/dev/zero").stdout) == 8


def test_every_line_is_played(tmp_path):
    """A line that confined.py does not know is an error, not a hole in these tests."""
    with open(UNIT, encoding="utf-8") as handle:
        text = handle.read()
    unit = tmp_path / "earshotd.service"
    unit.write_text(text.replace("[Install]", "PrivateUsers=yes\n[Install]"))
    done = confined("/bin/true", unit=unit)
    assert done.returncode and "PrivateUsers= is not played" in done.stderr, done
    assert not confined("/bin/true").returncode


def test_files_for_127_nodes(lab, tmp_path):
    """Each worker has a socket for each node: started with the usual limits, it raises its own."""
    with open(lab.config_file, encoding="utf-8") as handle:
        text = handle.read()
    text = re.sub(r"workers = .*", "workers = 8", text) if "workers =" in text else text + "inspector { workers = 8 }\n"
    text += "".join(f"node x{i} {{ address = 10.78.0.{i + 1} id = {i + 1000} }}\n" for i in range(1, 127))
    config = tmp_path / "earshot.conf"
    config.write_text(text)
    node = lab.node("n1")
    control = daemon.control_path(node.namespace)
    with open(os.path.join(lab.directory, "confined.log"), "ab") as log:
        process = subprocess.Popen(["sh", "-c", 'ulimit -S -n 256; exec "$@"', "sh", "ip", "netns", "exec", node.namespace,
                                    *daemon.command_line(str(config), "n1", control)], stdout=log, stderr=log)
    try:
        wait_for(lambda: answers(lab, process), "the daemon")
        assert len(os.listdir(f"/proc/{process.pid}/fd")) > 127 * 8
        node.ask({"command": "reload"})  # which has twice as many for a moment
        assert lab.status("n1")["ring"]["epoch"] == 2
    finally:
        end(process)


@pytest.mark.parametrize("is_writable", (True, False))
def test_rollout(lab, tmp_path, is_writable):
    """The configuration's directory is one of the few that it may write in; elsewhere a rollout is refused, and changes nothing."""
    with open(UNIT, encoding="utf-8") as handle:
        text = handle.read()
    assert "\nReadWritePaths=-/etc/earshot\n" in text
    unit = tmp_path / "earshotd.service"
    unit.write_text(text.replace("-/etc/earshot", lab.directory if is_writable else "-/nowhere"))
    with open(lab.config_file, encoding="utf-8") as handle:
        before = handle.read()
    new = tmp_path / "new.conf"
    new.write_text(before + "# new\n")
    process = start(lab, unit)
    try:
        wait_for(lambda: answers(lab, process), "the daemon")
        done = lab.node("n1").exec(["earshot", "rollout", str(new)], check=False)
        assert (done.returncode == 0) == is_writable and ("Read-only file system" in done.stdout) != is_writable, done
        with open(lab.config_file, encoding="utf-8") as handle:
            assert handle.read() == before + "# new\n" * is_writable
        assert os.path.exists(lab.config_file + ".previous") == is_writable
    finally:
        end(process)


def with_capabilities(tmp_path, *names):
    """The unit with these instead of its own."""
    with open(UNIT, encoding="utf-8") as handle:
        text = re.sub(r"^CapabilityBoundingSet=.*$", f"CapabilityBoundingSet={' '.join(names)}", handle.read(), flags=re.M)
    unit = tmp_path / "earshotd.service"
    unit.write_text(text)
    return unit


def test_least_capabilities(lab, tmp_path):
    """Those of earshotd(8) are enough to serve; to take over what a daemon before it left attached, they are not, and then two
    datapaths would answer each packet: it does not start."""
    unit = with_capabilities(tmp_path, *LEAST)
    first = start(lab, unit)
    wait_for(lambda: answers(lab, first), "the daemon")
    assert lab.client.get("/1k")[0] == 200 and "refuses" not in log_of(lab)
    end(first)
    second = start(lab, unit)
    assert second.wait(10) and "needs CAP_SYS_ADMIN" in log_of(lab), log_of(lab)


@pytest.mark.parametrize("less, said", (("CAP_PERFMON", "the kernel refuses the program"), ("CAP_BPF", "bpf datapath: ")))
def test_less_than_the_least(lab, tmp_path, less, said):
    process = start(lab, with_capabilities(tmp_path, *(name for name in LEAST if name != less)))
    assert process.wait(10) and said in log_of(lab), log_of(lab)


@pytest.mark.parametrize("line,less,said", [
    ("CapabilityBoundingSet=", "CAP_SYS_ADMIN", "bpf datapath: "),
    ("CapabilityBoundingSet=", "CAP_NET_ADMIN", "looking for the netfilter datapath failed"),
    ("CapabilityBoundingSet=", "CAP_NET_RAW", "worker 0: "),
    ("SystemCallFilter=", "bpf", "bpf datapath: "),
    ("RestrictAddressFamilies=", "AF_PACKET", "worker 0: ")])
def test_nothing_is_too_much(lab, tmp_path, line, less, said):
    """Without any of it the daemon does not start, and says why: the confinement is one, and leaves no more than it must."""
    with open(UNIT, encoding="utf-8") as handle:
        text = handle.read().splitlines()
    number = next(i for i, each in enumerate(text) if each.startswith(line))
    words = text[number].partition("=")[2].split()
    words.remove(less)
    text[number] = line + " ".join(words)
    unit = tmp_path / "earshotd.service"
    unit.write_text("\n".join(text))
    process = start(lab, unit)
    try:
        status = process.wait(10)
    finally:
        process.kill()
    assert status and said in log_of(lab) and "not permitted" in log_of(lab), log_of(lab)


def test_an_early_reload_ends_nothing():
    """`systemctl reload` right behind `start`: from its first line on earshot-tls takes SIGHUP, here while it still prints its
    options; before that, the unit starts it again."""
    with open(os.path.join(os.environ["EARSHOT_BUILD"], "conf/earshot-tls.service"), encoding="utf-8") as handle:
        assert "\nRestartForceExitStatus=SIGHUP\n" in handle.read()
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    for size in (1 << 16, 1):
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writing, bytes(size))
    os.set_blocking(writing, True)
    child = subprocess.Popen([daemon.binary("earshot-tls"), "--help"], stdout=writing)
    os.close(writing)

    def is_full():
        with open(f"/proc/{child.pid}/wchan", encoding="ascii") as wchan:
            return wchan.read().endswith("pipe_write")

    wait_for(is_full, "it waits for its reader")
    child.send_signal(signal.SIGHUP)
    with open(reading, "rb") as handle:
        text = handle.read()
    assert child.wait() == 0 and b"--config" in text
