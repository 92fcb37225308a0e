# SPDX-License-Identifier: GPL-2.0-or-later
"""Stops that drain and stops that do not. The daemon is real; the client's `drain` is the test's."""
import os
import re
import signal
import subprocess

import pytest

from agent import AGENT, SUCCESS
from earshotlab import netns, wait_for

DRAINED = "echo 'drained in 0.4 s'; exit 0"
TIMED_OUT = "echo 'earshot: 3 flows are left after 4 s' >&2; exit 1"


@pytest.fixture
def drainable(agent):
    """A running daemon, and a client that can drain."""
    agent.answer("drain", DRAINED)
    agent.answer("undrain", "exit 0")
    agent.start()
    return agent


def stopped(agent, **settings):
    result = agent.run("stop", **settings)
    assert result.rc == SUCCESS and not agent.runs(), result
    return result


# When

@pytest.mark.parametrize("name,lifetime,value", [
    ("standby", "forever", "on"), ("standby", "reboot", "true"), ("shutdown", "reboot", "1753000000")])


def test_node_is_left(drainable, name, lifetime, value):
    drainable.attribute(name, lifetime, value)
    stopped(drainable, timeout_s=90)
    assert drainable.calls("drain") == ["drain --until-restart --wait=60"]
    assert "drained in 0.4 s" in drainable.log()


@pytest.mark.parametrize("name,lifetime,value,node", [
    (None, None, None, None), ("standby", "forever", "off", "n1"), ("shutdown", "reboot", "0", "n1"),
    ("standby", "forever", "on", "n2")])


def test_restart(drainable, name, lifetime, value, node):
    """Recovery, another parameter, `crm resource restart`, a ban: the server stays, and so do its connections."""
    if name:
        drainable.attribute(name, lifetime, value, node)
    result = stopped(drainable, timeout_s=90)
    assert not drainable.calls("drain") and result.seconds < 5


def test_parameter(drainable):
    drainable.attribute("standby", "forever", "on")
    stopped(drainable, drain="never")
    assert not drainable.calls("drain")
    os.unlink(drainable.path("attributes/n1.standby.forever"))
    drainable.start()
    stopped(drainable, drain="always", timeout_s=90, drain_timeout=33)
    assert drainable.calls("drain") == ["drain --until-restart --wait=33"]


@pytest.mark.parametrize("membership", [
    {"connected": False, "quorate": False, "silent": True}, {"quorate": False, "silent": True}, {"other": "draining"},
    {"other": "down"}])


def test_nobody_to_take_over(drainable, membership):
    drainable.answer_status(**membership)
    stopped(drainable, drain="always")
    assert not drainable.calls("drain")


def test_member(drainable):
    drainable.answer_status()
    stopped(drainable, drain="always")
    assert drainable.calls("drain")


# How long

@pytest.mark.parametrize("timeout_s,drain_timeout,at_least,at_most", [(90, 75, 75, 75), (60, 75, 48, 50), (20, 75, 8, 10)])
def test_fits_into_the_stop(drainable, timeout_s, drain_timeout, at_least, at_most):
    stopped(drainable, drain="always", timeout_s=timeout_s, drain_timeout=drain_timeout)
    call, = drainable.calls("drain")
    assert at_least <= int(re.fullmatch(r"drain --until-restart --wait=(\d+)", call)[1]) <= at_most
    assert ("is cut to" in drainable.log()) == (at_most < drain_timeout)


def test_times_out(drainable):
    drainable.answer("drain", TIMED_OUT)
    stopped(drainable, drain="always")
    assert "not drained: 3 flows are left after 4 s" in drainable.log()
    assert not os.path.exists(drainable.pidfile + ".draining")


def test_client_hangs(drainable):
    """The drain is broken off in time for an orderly end of the daemon."""
    drainable.answer("drain", "exec sleep 600")
    result = stopped(drainable, drain="always", timeout_s=16)
    assert result.seconds < 16 and "no answer within" in drainable.log() and "killing" not in drainable.log()
    assert "signal 15: stopping" in drainable.read("daemon.log")


def test_daemon_ignores_sigterm(drainable):
    """Here: it is frozen while it drains. SIGKILL comes before Pacemaker's patience ends."""
    drainable.answer("drain", f"kill -STOP {drainable.pid()}; exit 1")
    result = stopped(drainable, drain="always", timeout_s=14)
    assert 8 < result.seconds < 14 and "killing it" in drainable.log()


# Not longer than it is meant

def test_broken_off(drainable):
    """The stop is killed while it drains: the daemon, and its drain, live. The next start or monitor ends the drain."""
    for action in ("start", "monitor"):
        os.path.exists(drainable.path("calls")) and os.unlink(drainable.path("calls"))
        drainable.answer("drain", "exec sleep 600")
        with subprocess.Popen(["nsenter", f"--net={netns.path(drainable.node.namespace)}", AGENT, "stop"],
                              env=drainable.environment(drain="always"), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, start_new_session=True) as stopping:
            wait_for(lambda: drainable.calls("drain"), "the drain")
            os.killpg(stopping.pid, signal.SIGKILL)
        assert drainable.runs()
        assert drainable.probe().rc == SUCCESS and not drainable.calls("undrain")  # a probe changes nothing
        for _ in range(2):
            assert drainable.run(action).rc == SUCCESS
        assert drainable.calls("undrain") == ["undrain"]
    drainable.answer("drain", DRAINED)


def test_operators_drain_stays(drainable):
    """A start or monitor ends only a drain that our own stop began."""
    assert drainable.run("monitor", level=10).rc == SUCCESS and drainable.run("start").rc == SUCCESS
    assert not drainable.calls("undrain")
