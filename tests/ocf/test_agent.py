# SPDX-License-Identifier: GPL-2.0-or-later
"""The agent's actions with the real daemon: what each says of each state, and that it leaves the state it should."""
import contextlib
import os
import signal
import subprocess
import threading
import time

import pytest
from lxml import etree

from agent import (AGENT, ARGS, CONFIGURED, GENERIC, INSTALLED, NOT_RUNNING, OCF_ROOT, SUCCESS, UNIMPLEMENTED)
from earshotlab import netns, wait_for
from tree import EARSHOTD


@contextlib.contextmanager
def config_changed(network, old, new):
    """The configuration file with something else in it."""
    with open(network.config_path, encoding="ascii") as handle:
        text = handle.read()
    assert old in text
    try:
        with open(network.config_path, "w", encoding="ascii") as handle:
            handle.write(text.replace(old, new))
        yield text[:text.index(old)].count("\n") + 1
    finally:
        with open(network.config_path, "w", encoding="ascii") as handle:
            handle.write(text)


def took_over(agent):
    return "took over a running datapath" in agent.read("daemon.log").splitlines()[-1]


# Meta-data

def test_meta_data(agent):
    """What pcs accepts as an OCF 1.1 agent; and the actions it names are those that it has."""
    result = agent.run("meta-data")
    assert result.rc == SUCCESS and not result.errors
    document = etree.fromstring(result.output.encode())
    schema = etree.RelaxNG(etree.parse("/usr/share/pcs/data/ocf-1.1.rng"))
    assert schema.validate(document), schema.error_log
    for action in {e.get("name") for e in document.iter("action")} - {"meta-data"}:
        assert agent.run(action).rc != UNIMPLEMENTED, action
    # Each parameter is read, and what is read is a parameter.
    with open(AGENT, encoding="utf-8") as handle:
        text = handle.read()
    for parameter in document.iter("parameter"):
        name = parameter.get("name")
        assert name == "revision" or f"OCF_RESKEY_{name}:-" in text, name


def test_unknown_action(agent):
    assert agent.run("promote").rc == UNIMPLEMENTED
    assert agent.run("reload").rc == UNIMPLEMENTED  # its OCF 1.0 meaning is another one


def test_notify_is_a_hint(agent):
    meta = {"notify_type": "post", "notify_operation": "stop", "notify_stop_uname": "n2"}
    assert agent.run("notify", meta=meta).rc == SUCCESS
    assert not agent.calls()


# Stopped and running

def test_stopped(agent):
    assert agent.probe().rc == NOT_RUNNING
    result = agent.run("monitor")
    assert (result.rc, result.reason) == (NOT_RUNNING, "earshotd is not running")
    assert agent.run("stop").rc == SUCCESS
    assert agent.run("reload-agent").rc == NOT_RUNNING


def test_life(agent):
    pid = agent.start()
    assert agent.runs() == [pid]
    assert os.getsid(pid) == pid  # nothing that happens to the agent's session happens to it
    assert agent.probe().rc == SUCCESS
    for level in (0, 10):
        assert agent.run("monitor", level=level).rc == SUCCESS
    assert agent.run("start").rc == SUCCESS and agent.runs() == [pid]  # once is enough
    result = agent.run("stop")
    assert result.rc == SUCCESS and result.seconds < 5
    assert not agent.runs() and not os.path.exists(agent.pidfile)
    assert agent.run("monitor").rc == NOT_RUNNING
    agent.start()
    assert took_over(agent)  # the stop has left the datapath


def test_detach(agent):
    agent.start()
    assert agent.run("stop", detach="true").rc == SUCCESS
    assert not agent.runs()
    agent.start()
    assert not took_over(agent)


def test_logs_to_syslog(agent):
    """The daemon's lines with their priority; and a line that comes long after the start."""
    agent.start(logfile=None)
    assert not os.path.exists(agent.pidfile + ".start")
    agent.node.earshot("reload")
    wait_for(lambda: "reloaded" in agent.read("syslog"), "a line of the reload")
    lines = agent.read("syslog").splitlines()
    assert all(line.startswith("<6>earshotd: ") for line in lines if "warning" not in line), lines
    assert any("is serving" in line for line in lines)


def test_ocf_tester(agent):
    """resource-agents' own test, whose schema for meta-data is of OCF 1.0: test_meta_data does that part."""
    agent._script("bin/xmllint", "#!/bin/sh\nexec cat >/dev/null\n")
    done = subprocess.run(
        ["nsenter", f"--net={netns.path(agent.node.namespace)}", "ocf-tester", "-n", "earshotd",
         *(word for name, value in agent.parameters.items() for word in ("-o", f"{name}={value}")), AGENT],
        env={"PATH": f"{agent.path('bin')}:/usr/sbin:/usr/bin:/sbin:/bin", "OCF_ROOT": OCF_ROOT,
             "HA_LOGFILE": agent.path("agent.log")}, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and "passed all tests" in done.stdout, done.stdout + done.stderr


# Pid files and processes

@pytest.mark.parametrize("content", ["", "\n", "no number\n", "0\n", "999999999\n", "../1\n"])
def test_odd_pid_file(agent, content):
    os.makedirs(os.path.dirname(agent.pidfile))
    agent.write("run/earshotd.pid", content)
    assert agent.probe().rc == NOT_RUNNING
    agent.start()
    assert agent.run("stop").rc == SUCCESS


def test_pid_of_somebody_else(agent):
    """The number in a stale pid file may be another process by now, which nobody may touch."""
    os.makedirs(os.path.dirname(agent.pidfile))
    with subprocess.Popen(["sleep", "600"]) as other:
        try:
            agent.write("run/earshotd.pid", f"{other.pid}\n")
            assert agent.run("monitor").rc == NOT_RUNNING
            assert agent.run("stop").rc == SUCCESS
            agent.write("run/earshotd.pid", f"{other.pid}\n")
            agent.start()
            assert agent.run("stop").rc == SUCCESS
            assert other.poll() is None
        finally:
            other.kill()


def test_pid_file_lost(agent):
    pid = agent.start()
    os.unlink(agent.pidfile)
    assert agent.run("monitor").rc == SUCCESS
    assert agent.run("start").rc == SUCCESS and agent.pid() == pid
    os.unlink(agent.pidfile)
    assert agent.run("stop").rc == SUCCESS and not agent.runs()


def test_daemon_of_another_configuration(agent):
    """Not ours, though it is the same program in the same namespace: left alone, and no place to start beside it."""
    copy = agent.path("other.conf")
    with open(agent.node.config_path, encoding="ascii") as handle:
        agent.write("other.conf", handle.read())
    result = agent.run("start", config=copy, pidfile=agent.path("run/other.pid"))
    assert result.rc == SUCCESS
    assert agent.probe().rc == NOT_RUNNING
    assert agent.run("stop").rc == SUCCESS and agent.runs()
    result = agent.run("start")
    assert result.rc == GENERIC and "another earshotd" in result.reason
    assert agent.run("stop", config=copy, pidfile=agent.path("run/other.pid")).rc == SUCCESS and not agent.runs()


def test_killed(agent):
    pid = agent.start()
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not agent.runs(), "the daemon's end")
    assert agent.run("monitor").rc == NOT_RUNNING
    assert agent.start() != pid
    assert took_over(agent)


def test_frozen(agent):
    """It lives, and answers nobody: failed, which is not the same as not running. It must be gone soon."""
    pid = agent.start()
    os.kill(pid, signal.SIGSTOP)
    result = agent.run("monitor")
    assert result.rc == GENERIC and f"process {pid}" in result.reason and "does not answer" in result.reason
    result = agent.run("start")
    assert result.rc == GENERIC and "does not answer" in result.reason
    result = agent.run("stop", timeout_s=60)
    assert result.rc == SUCCESS and result.seconds < 15 and not agent.runs()
    agent.start()


def test_control_socket_missing(agent):
    pid = agent.start()
    os.unlink(agent.node.control)
    result = agent.run("monitor")
    assert result.rc == GENERIC and "does not answer" in result.reason and agent.node.control in result.reason
    result = agent.run("stop", drain="always")
    assert result.rc == SUCCESS and result.seconds < 5 and pid not in agent.runs()


# A process is without a command line while it becomes another program: here for long enough to be seen.
BARE = """#!/usr/bin/python3
import ctypes, os, sys, time
with open("/proc/self/stat") as handle:
    start, end = map(int, handle.read().rpartition(")")[2].split()[45:47])
ctypes.memset(start, 0, end - start)
with open("/proc/self/cmdline", "rb") as handle:
    assert not handle.read().strip(bytes(1))
time.sleep(1)
os.execv({earshotd!r}, [{earshotd!r}, *sys.argv[1:]])
"""


def test_becomes_the_daemon_slowly(agent):
    binary = agent._script("earshotd", BARE.format(earshotd=EARSHOTD))
    agent.start(binary=binary)
    assert agent.run("monitor", binary=binary).rc == SUCCESS


def test_agent_killed_while_it_starts(agent):
    """The daemon has written its own pid, so the stop that follows finds it."""
    agent.answer("status", "sleep 60; exit 1")
    with subprocess.Popen(["nsenter", f"--net={netns.path(agent.node.namespace)}", AGENT, "start"],
                          env=agent.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          start_new_session=True) as starting:
        wait_for(agent.runs, "a daemon")
        os.killpg(starting.pid, signal.SIGKILL)
    agent.answer("status", None)
    wait_for(lambda: agent.run("monitor").rc == SUCCESS, "a daemon that answers")  # nobody waited for it
    assert agent.run("stop").rc == SUCCESS and not agent.runs()


# What is wrong before it starts

def test_wrong_configuration(agent):
    with config_changed(agent.node, "policy = wrr", "policy = wrrr") as line:
        for action in ("validate-all", "start"):
            result = agent.run(action)
            assert result.rc == ARGS, result  # this node's file: another node may have a right one
            for part in (f"{agent.node.config_path}:{line}:", "policy", "wrrr"):
                assert part in result.reason
    assert not agent.runs()
    assert agent.run("validate-all").rc == SUCCESS


@pytest.mark.parametrize("logfile", ["file", "syslog"])
def test_daemon_refuses(agent, logfile):
    """What only the daemon finds: its last line is the reason."""
    settings = {} if logfile == "file" else {"logfile": None}
    with config_changed(agent.node, "interface = eth0", "interface = eth7"):
        result = agent.run("start", **settings)
    assert (result.rc, result.reason) == (GENERIC, "datapath: no interface eth7 on this node: expected one of lo, eth0, eth1")
    assert result.seconds < 5 and not os.path.exists(agent.pidfile) and not os.path.exists(agent.pidfile + ".start")
    agent.start(**settings)


@pytest.mark.parametrize("parameter,value,rc,words", [
    ("config", "/nonexistent.conf", INSTALLED, "no configuration /nonexistent.conf"),
    ("binary", "/nonexistent/earshotd", INSTALLED, "no program /nonexistent/earshotd"),
    ("client", "no-such-client", INSTALLED, "no program no-such-client"),
    ("drain", "sometimes", CONFIGURED, "expected leaving, always or never"),
    ("drain_timeout", "1min", CONFIGURED, "expected seconds"),
])


def test_wrong_parameter(agent, parameter, value, rc, words):
    for action in ("validate-all", "start"):
        result = agent.run(action, **{parameter: value})
        assert result.rc == rc and words in result.reason, result
    assert agent.probe(**{parameter: value}).rc == NOT_RUNNING
    assert agent.run("stop", **{parameter: value}).rc == SUCCESS


def test_unwritable(agent):
    result = agent.run("start", pidfile="/proc/earshotd.pid")
    assert result.rc != SUCCESS and "/proc/earshotd.pid" in result.reason
    assert not agent.runs()


# Reload

def test_reload(agent):
    agent.start()
    epoch = agent.node.ask("status")["ring"]["epoch"]
    assert agent.run("reload-agent").rc == SUCCESS
    assert agent.node.ask("status")["ring"]["epoch"] == epoch + 1


def test_begins_anew(agent):
    """In its process, as by `earshot rollout --restart`: to Pacemaker, which looks at every moment of it, nothing has happened."""
    pid = agent.start()
    agent.node.ask("restart")
    for _ in range(6):
        assert agent.run("monitor").rc == SUCCESS
        assert agent.run("monitor", level=10).rc == SUCCESS
    assert agent.pid() == pid and agent.node.ask("status")["uptime_s"] < 30


def test_reload_of_a_wrong_file(agent):
    """The old one stays in force. To Pacemaker it is no failure: it would restart the daemon for it, everywhere."""
    pid = agent.start()
    before = agent.node.ask("status")["ring"]
    with config_changed(agent.node, "policy = wrr", "policy = wrrr") as line:
        result = agent.run("reload-agent")
        assert result.rc == SUCCESS
        assert "old configuration stays" in result.reason and f"{agent.node.config_path}:{line}:" in result.reason
        assert agent.run("monitor", level=10).rc == SUCCESS
    assert agent.pid() == pid and agent.node.ask("status")["ring"] == before


# Depth 10, with a status that is made up

SILENT = {"datapath": "silent", "silent": True}


@pytest.mark.parametrize("status,quorum,words", [
    ({"datapath": "fallback"}, 1, "no worker"),
    ({"datapath": "detached"}, 1, "detached"),
    ({**SILENT, "connected": False, "quorate": False, "why": "corosync, where is it?"}, 1,
     "no connection to corosync: corosync, where is it?"),
    ({**SILENT, "quorate": False}, 1, "no quorum"),  # but Pacemaker has it
    ({**SILENT, "phase": "out", "why": "the bus"}, 1, "silent: the bus"),
    ({**SILENT, "refused": "ring_secret is 1 there, 2 in the cluster"}, 1, "refuses this node: ring_secret is 1 there"),
])


def test_not_serving(agent, status, quorum, words):
    agent.start()
    agent.answer_status(**status)
    agent.write("attributes/quorum", f"{quorum}\n")
    assert agent.run("monitor").rc == SUCCESS  # it lives
    assert agent.probe().rc == SUCCESS
    result = agent.run("monitor", level=10)
    assert result.rc == GENERIC and words in result.reason, result


@pytest.mark.parametrize("status,quorum", [
    ({}, 1),
    ({**SILENT, "quorate": False, "phase": "out"}, 0),  # as it should be; to restart it would not help
    ({**SILENT, "phase": "view"}, 1),
    ({"phase": "stopping"}, 1),
    ({**SILENT, "phase": "out", "why": "the public interface eth0 has no carrier"}, 1),
    ({"other": "draining"}, 1),
])


def test_serving_as_it_should(agent, status, quorum):
    agent.start()
    agent.answer_status(**status)
    agent.write("attributes/quorum", f"{quorum}\n")
    assert agent.run("monitor", level=10).rc == SUCCESS


def test_mends_itself(agent):
    agent.start()
    agent.answer_status(connected=False)
    later = threading.Timer(1, lambda: agent.answer_status())
    later.start()
    assert agent.run("monitor", level=10).rc == SUCCESS
    later.join()


def test_start_waits_for_the_ring(agent):
    agent.answer_status(phase="stopping")
    later = threading.Timer(2, lambda: agent.answer_status())
    later.start()
    began = time.monotonic()
    agent.start()
    assert time.monotonic() - began >= 2
    later.join()


def test_start_outside_the_ring_fails(agent):
    agent.answer_status(**SILENT, refused="ring_secret is 1 there, 2 in the cluster")
    result = agent.run("start", timeout_s=6)
    assert result.rc == GENERIC and "ring_secret is 1 there, 2 in the cluster" in result.reason
    assert agent.run("stop").rc == SUCCESS and not agent.runs()
