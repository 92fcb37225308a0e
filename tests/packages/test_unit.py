# SPDX-License-Identifier: GPL-2.0-or-later
"""earshotd does its work with what its systemd unit leaves it: systemd does not run here, confined.py does the same."""
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
    control = daemon.control_path(node.namespace)
    os.makedirs(os.path.dirname(control), exist_ok=True)
    with open(os.path.join(lab.directory, "confined.log"), "ab") as log:
        return subprocess.Popen(["ip", "netns", "exec", node.namespace, sys.executable, CONFINED, unit,
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
    assert bin(int(status["CapEff"], 16)).count("1") == 4 and status["Seccomp"] == "2", status
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
    ("CapabilityBoundingSet=", "CAP_NET_ADMIN", "cannot make eth0 take frames"),
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
