# SPDX-License-Identifier: GPL-2.0-or-later
"""The sample configuration in a real Pacemaker, on one node: who stops when, with a drain or without.

What drains and who takes over is for a cluster of several nodes to show (tests/lab); here the client's `drain` notes
only that it was called, and whether nginx still served.
"""
import os
import signal

import pytest

from earshotlab import wait_for
from pacemaker import Pacemaker
from packets.node import VIP

DRAIN = f"""
bash -c 'exec 3<>/dev/tcp/{VIP}/80 && printf "GET / HTTP/1.0\\r\\n\\r\\n" >&3 && grep -q served <&3' &&
	echo served-while-draining >>{{directory}}/calls
echo "drained in 0.1 s"
exit 0
"""


@pytest.fixture(scope="module")
def cluster(network):
    pacemaker = Pacemaker(network)
    try:
        pacemaker.agent.answer("drain", DRAIN.format(directory=pacemaker.agent.directory))
        pacemaker.load_sample()
        pacemaker.serving()
        yield pacemaker
    finally:
        pacemaker.close()


@pytest.fixture
def quiet(cluster):
    """The cluster with everything running, and no call noted yet."""
    cluster.serving()
    cluster.run("crm_resource", "--cleanup")
    cluster.serving()
    cluster.agent.write("calls", "")
    cluster.begun = len(cluster.log())
    return cluster


def drains(cluster):
    return [call for call in cluster.agent.calls() if call.startswith(("drain", "served"))]


def test_standby_drains_first(quiet):
    quiet.run("crm", "node", "standby", "n1")
    quiet.stopped()
    assert drains(quiet) == ["drain --until-restart --wait=75", "served-while-draining"]
    quiet.run("crm", "node", "online", "n1")
    quiet.serving()


def test_standby_until_reboot(quiet):
    quiet.run("crm", "node", "standby", "n1", "reboot")
    quiet.stopped()
    assert drains(quiet)
    quiet.run("crm", "node", "online", "n1")
    quiet.serving()


@pytest.mark.parametrize("host", [[], ["--node", "n1"]])
def test_restart_does_not_drain(quiet, host):
    """All at once, which is by the target role; and on one node, which is by a ban that comes and goes."""
    before = quiet.serving()
    quiet.run("crm_resource", "--restart", "--resource", "earshotd-clone", *host)
    after = quiet.serving()
    assert before[0] != after[0] and before[1] == after[1]  # nginx has seen nothing of it
    assert not drains(quiet)


def test_ban_of_earshotd(quiet):
    """It leaves; nginx, and with it the open connections, stay."""
    nginx = quiet.nginx()
    quiet.run("crm_resource", "--ban", "--resource", "earshotd-clone", "--node", "n1")
    wait_for(lambda: not quiet.earshotd(), "earshotd's end", 30)
    quiet.idle()
    assert quiet.nginx() == nginx and not drains(quiet)
    quiet.run("crm_resource", "--clear", "--resource", "earshotd-clone")
    quiet.serving()


def test_ban_of_nginx(quiet):
    """earshotd leaves with it, and before it."""
    quiet.run("crm_resource", "--ban", "--resource", "nginx-clone", "--node", "n1")
    quiet.stopped()
    log = quiet.log(since=quiet.begun)
    assert log.rindex("Result of stop operation for earshotd") < log.rindex("Result of stop operation for nginx")
    quiet.run("crm_resource", "--clear", "--resource", "nginx-clone")
    quiet.serving()


@pytest.mark.parametrize("parameter,value", [("revision", "2"), ("drain_timeout", "70")])
def test_reload(quiet, parameter, value):
    """Before any test that needs a cleanup: a resource that Pacemaker found by a probe, it does not reload at once."""
    before = quiet.serving()
    quiet.run("crm_resource", "--resource", "earshotd", "--set-parameter", parameter, "--parameter-value", value)
    done = "Result of reload-agent operation for earshotd on n1: ok"
    wait_for(lambda: done in quiet.log(since=quiet.begun), "reload", 30)
    assert quiet.agent.calls("reload") == ["reload"] and quiet.serving() == before


def test_reload_of_a_wrong_file(quiet):
    """Changes nothing, neither in the daemon nor in what Pacemaker runs."""
    before = quiet.serving()
    with open(quiet.node.config_path, encoding="ascii") as handle:
        text = handle.read()
    try:
        with open(quiet.node.config_path, "a", encoding="ascii") as handle:
            handle.write("nonsense = 1\n")
        quiet.run("crm_resource", "--resource", "earshotd", "--set-parameter", "revision", "--parameter-value", "3")
        wait_for(lambda: "the old configuration stays in force" in quiet.log(since=quiet.begun), "reload", 30)
        quiet.run("crm_resource", "--wait")
        assert quiet.serving() == before
    finally:
        with open(quiet.node.config_path, "w", encoding="ascii") as handle:
            handle.write(text)


def test_maintenance(quiet):
    """Nobody stops anything, and nobody mends anything, until it is over."""
    earshotd, nginx = quiet.serving()
    quiet.run("crm_attribute", "--name", "maintenance-mode", "--update", "true")
    wait_for(lambda: "DISABLED" in quiet.run("crm_mon", "-1"), "maintenance mode")
    quiet.run("crm_resource", "--wait")
    assert (quiet.earshotd(), quiet.nginx()) == (earshotd, nginx)
    os.kill(earshotd, signal.SIGKILL)
    quiet.run("crm_resource", "--wait")
    assert not quiet.earshotd() and quiet.nginx() == nginx
    quiet.run("crm_attribute", "--name", "maintenance-mode", "--delete")
    assert quiet.serving()[0] != earshotd and not drains(quiet)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_earshotd_fails(quiet, number):
    earshotd, nginx = quiet.serving()
    os.kill(earshotd, number)
    wait_for(lambda: quiet.earshotd() not in (None, earshotd), "another earshotd", 60)
    assert quiet.serving()[1] == nginx and not drains(quiet)


def test_nginx_fails(quiet):
    """Its restart is no reason to leave the ring."""
    earshotd, nginx = quiet.serving()
    for pid in quiet.pids("nginx"):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: quiet.nginx() not in (None, nginx), "another nginx", 30)
    assert quiet.serving()[0] == earshotd


def test_shutdown_drains(quiet):
    """The last test: Pacemaker is gone after it."""
    quiet.run("pacemakerd", "--shutdown", check=False)
    wait_for(lambda: not quiet.pids("pacemakerd"), "Pacemaker's end", 60)
    assert not quiet.earshotd() and not quiet.nginx()
    assert drains(quiet)[0] == "drain --until-restart --wait=70"
