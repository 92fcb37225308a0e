# SPDX-License-Identifier: GPL-2.0-or-later
"""The checks of a real corosync on both machines: as it should be, and wrong in one way after the other."""
import os
import signal
import subprocess
import time

import pytest

import corosync
from earshotlab import wait_for
from site_of_two import NOBODY
from tree import skip

CRYPTO = ("crypto_cipher: none\ncrypto_hash: none\n"
          "interface {\nlinknumber: 0\nknet_ping_interval: 300\nknet_ping_timeout: 1500\n}\n")
TWO_NODES = {"corosync.two_nodes": "warning"}  # of a site of two
NO_CRYPTO = {"corosync.crypto": "warning"}  # of these tests: no key file is on this machine
USUAL = {**TWO_NODES, **NO_CRYPTO}


@pytest.fixture(autouse=True, scope="module")
def installed():
    skip(corosync.missing())


@pytest.fixture(scope="module")
def membership():
    return corosync.membership()


@pytest.fixture
def error(membership):
    """What an error is: beside a static cluster corosync's faults are warnings."""
    return "error" if membership == "corosync" else "warning"


@pytest.fixture
def site(site, membership):
    site.configure(cluster=f"membership = {membership}")
    return site


def of_corosync(result):
    return {check: severity for check, severity in result.wrong().items() if check.startswith("corosync.")}


def found(result, check):
    return found_in(result, f"corosync.{check}")


def found_in(result, check_id):
    return result.of(check_id)[0]["found"]


def until(condition):
    wait_for(condition, "the checks to say so", 40)


def test_token_1000(site):
    """Without crypto, with one link, and two nodes that no device decides between; all else is well."""
    corosync.start_both(site, token=1000, totem=CRYPTO)
    result = site.check()
    assert of_corosync(result) == USUAL
    assert found(result, "detection") == "a dead node is noticed after 2.2 s (token 1000 + consensus 1200 ms)"
    assert found(result, "crypto") == "crypto_hash is none"
    assert result.of("corosync.links")[0]["severity"] == "info"
    assert found(result, "quorate") == "this node is quorate"
    assert found(result, "votes") == "2 votes expected, 2 for quorum"


def test_token_5000(site):
    corosync.start_both(site, token=5000)
    result = site.check()
    assert of_corosync(result) == {**USUAL, "corosync.detection": "warning"}
    assert found(result, "detection") == "a dead node is noticed after 11.0 s (token 5000 + consensus 6000 ms)"


def test_token_too_fast(site):
    corosync.start_both(site, token=200)
    assert of_corosync(site.check())["corosync.token_fast"] == "warning"


def test_ping_timeout(site):
    corosync.start_both(site, totem="crypto_hash: none\n")
    result = site.check()
    assert of_corosync(result) == {**USUAL, "corosync.ping_timeout": "warning"}
    assert "of link 0 is" in found(result, "ping_timeout")


def test_two_links(site):
    corosync.start_both(site, links=2)
    result = site.check()
    assert of_corosync(result) == USUAL and found(result, "links").startswith("2 links: ")


def test_udpu(site):
    corosync.start_both(site, totem="transport: udpu\n")
    result = site.check()
    assert of_corosync(result) == {**USUAL, "corosync.links_up": "unchecked"}
    assert "not knet" in found(result, "crypto")


def test_two_node(site, error):
    corosync.start_both(site, quorum="two_node: 1")
    result = site.check()
    assert of_corosync(result) == {**USUAL, "corosync.two_nodes": error}
    assert found(result, "wait_for_all") == "wait_for_all is on"


def test_two_node_without_waiting(site, error):
    corosync.start_both(site, quorum="two_node: 1\nwait_for_all: 0")
    assert of_corosync(site.check()) == {**USUAL, "corosync.two_nodes": error, "corosync.wait_for_all": error}


def test_quorum_lost(site, error):
    """The other machine's corosync is killed."""
    _, other = corosync.start_both(site)
    assert of_corosync(site.check()) == USUAL
    other.send_signal(signal.SIGKILL)
    until(lambda: of_corosync(site.check()) == {**USUAL, "corosync.quorate": error, "corosync.links_up": "warning"})
    assert "node 2 (10.78.0.2) is down" in found(site.check(), "links_up")


def test_no_provider(site, error):
    path = os.path.join(site.directory, "made")
    corosync.write(site, path)
    with open(path, encoding="ascii") as handle:
        text = handle.read().replace("provider: corosync_votequorum", "")
    corosync.start(site, site.n1, text=text)
    assert of_corosync(site.check())["corosync.provider"] == error


def test_expected_votes(site):
    corosync.start(site, site.n1, quorum="expected_votes: 5")
    result = site.check()
    assert of_corosync(result)["corosync.votes"] == "warning"
    assert found(result, "votes") == "expected_votes is 5, and there are 2 votes"


def test_other_nodes(site, error):
    """Corosync's nodes are n1 and n3, ours n1 and n2."""
    corosync.start(site, site.n1, nodes=(1, 3))
    result = site.check()
    wrong = of_corosync(result)
    assert wrong["corosync.nodes"] == error and wrong["corosync.strangers"] == "warning"
    assert found(result, "nodes") == "node n2 (10.78.0.2) is not in corosync's nodelist"
    assert found(result, "strangers").startswith("corosync's node 3 (10.78.0.3) is not a node in")


def test_other_network(site):
    """Corosync runs on the clients' network."""
    path = os.path.join(site.directory, "made")
    corosync.write(site, path)
    with open(path, encoding="ascii") as handle:
        text = handle.read().replace("10.78.0.", "10.77.0.")
    corosync.start(site, site.n1, text=text)
    result = site.check()
    assert of_corosync(result)["corosync.network"] == "warning"
    assert found(result, "network") == "node n1: corosync knows it by 10.77.0.1 only, not by 10.78.0.1"


def test_firewall(site, error):
    """A packet filter of n1 lets nothing of corosync's out any more, not even to itself."""
    corosync.start_both(site, totem="transport: udpu\n")
    subprocess.run(site.command(site.n1, "nft", "-f", "-"), text=True, check=True, input=(
        "table ip f { chain out { type filter hook output priority 0\n meta l4proto udp drop\n }\n }"))
    until(lambda: of_corosync(site.check()).get("corosync.ring") == error)


def test_not_running(site, membership):
    result = site.check()
    if membership == "corosync":
        assert of_corosync(result) == {"corosync.running": "error"}
        assert len(result.of("corosync.running")) == 2  # and what could not be looked at
    else:
        assert of_corosync(result) == {}


def test_not_this_user(site):
    os.chmod(site.directory, 0o755)
    corosync.start_both(site)
    result = site.check(user=NOBODY)
    assert of_corosync(result) == {"corosync.running": "unchecked"}
    assert f"user {NOBODY}" in found(result, "running")


def timed(site):
    """What the command says, and how long that took."""
    begun = time.monotonic()
    result = site.check()
    return result, time.monotonic() - begun


def hangs(site, usual_s):
    """The command says that corosync hangs, not long after the time that it usually takes, on a busy machine, and that it gives
    corosync (2.5 s)."""
    result, took_s = timed(site)
    assert found(result, "running") == "corosync hangs: it takes connections and answers nothing"
    assert took_s < 3 * usual_s + 10, f"it took {took_s:.1f} s, usually {usual_s:.1f} s"
    return result


def test_stopped(site, error):
    """A corosync that hangs does not hang the command."""
    first = corosync.start(site, site.n1)
    _, usual_s = timed(site)
    first.send_signal(signal.SIGSTOP)
    hangs(site, usual_s)
    first.send_signal(signal.SIGCONT)
    assert of_corosync(site.check())["corosync.quorate"] == error


@pytest.fixture
def members(site, membership):
    """Starts earshotd on both machines, members of one cluster."""
    if membership == "static":
        pytest.skip("this earshot has no membership = corosync")

    def start(config=None):
        corosync.start_both(site)
        site.start_daemon()
        site.start_daemon(site.n2, config)

    return start


def of_members(result):
    return {check: severity for check, severity in result.wrong().items() if check.startswith("members.")}


def test_members(site, members):
    """Both are members; then the other's daemon dies."""
    members()
    until(lambda: not of_members(site.check()))
    assert "no setting differs between the 2 nodes" in found_in(site.check(), "members.settings")
    site.processes[-1].kill()
    until(lambda: of_members(site.check()) == {"members.away": "warning", "members.settings": "unchecked"})
    assert found_in(site.check(), "members.away") == "node n2 is not a member: its daemon died"


def test_member_whose_corosync_hangs(site, members):
    """The daemon answers all the same, and says why it is silent."""
    members()
    until(lambda: not of_members(site.check()))
    _, usual_s = timed(site)
    site.processes[0].send_signal(signal.SIGSTOP)
    until(lambda: of_members(hangs(site, usual_s)).get("members.membership") == "error")
    assert "does not answer" in found_in(site.check(), "members.membership")


def test_members_differ(site, members):
    """In a sysctl, of which a rebuilt socket must keep what the handshake has promised elsewhere."""
    site.sysctl({"net.ipv4.tcp_rmem": "4096 131072 6291456"})
    site.sysctl({"net.ipv4.tcp_rmem": "4096 131072 4194304"}, site.n2)
    members()
    until(lambda: of_members(site.check()) == {"members.settings": "error"})
    assert found_in(site.check(), "members.settings") == \
        "tcp_rmem: n1 4096 131072 6291456, n2 4096 131072 4194304"


def test_member_refused(site, members):
    """It has another window scale."""
    with open(site.config, encoding="ascii") as handle:
        text = handle.read()
    other = os.path.join(site.directory, "other.conf")
    with open(other, "w", encoding="ascii") as handle:
        handle.write(text.replace("datapath {", "datapath { receive_window_scale = 7 "))
    members(other)
    until(lambda: of_members(site.check()).get("members.refused") == "error")
    result = site.check()
    assert "receive_window_scale" in found_in(result, "members.refused")
    assert "receive_window_scale: n1 10, n2 7" in [f["found"] for f in result.of("members.settings")]


def test_member_without_quorum(site, members):
    members()
    until(lambda: not of_members(site.check()))
    second = site.processes[1]  # the other machine's corosync
    second.kill()
    until(lambda: of_members(site.check()).get("members.membership") == "error")
    assert "silent" in found_in(site.check(), "members.membership")
