# SPDX-License-Identifier: GPL-2.0-or-later
"""A request that ends daemons: it costs one of them at most, and no other client's request.

The plugin `debug` does to the daemon what a request's header says. Its client repeats the request, as clients do: its
kernel sends it again while nobody answers, and it connects anew. Who starts daemons in real clusters is played by the
test.
"""
import contextlib
import itertools
import threading

import pytest

from cluster.membership import ALL
from cluster.poison import ask, asked, known, plugin_load
from earshotlab import Lab, daemon, wait_for
from sizes import FULL
from web.traffic import Traffic

pytestmark = [pytest.mark.earshot, pytest.mark.corosync]

REPEATS = 12  # three for each node
MEMBERSHIPS = ["corosync", "static"] if FULL else ["corosync"]


class Supervisor:
    """Starts daemons that have ended again, a second later, as systemd does; counts them."""

    def __init__(self, lab):
        self.lab, self.restarts, self.is_over = lab, [], threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self):
        while not self.is_over.wait(0.1):
            for node in ALL:
                if not self.lab.is_running("earshotd", node):
                    self.restarts.append(node)
                    self.is_over.wait(1)
                    self.lab.start(node, "earshotd")

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join(60)
        assert not self.thread.is_alive()


@contextlib.contextmanager
def cluster(membership, **settings):
    """Four nodes with the plugin, on which each serves."""
    options = {"token": 500} if membership == "corosync" else {}
    with Lab(nodes=4, membership=membership, policy="wrr", settings=settings, **options) as lab:
        plugin_load(lab)
        yield lab


def check(lab, node):
    """What `earshot check` finds there, as text on one line."""
    machine = lab.node(node)
    control = f"/run/earshot/{machine.environment()['EARSHOT_NODE']}.sock"
    done = machine.exec(["earshot", "check", "--config", lab.config_file, "--control", control], check=False)
    return " ".join(done.stdout.split())


def serving(lab):
    """All nodes are where they were, and inspect."""
    def check():
        seen = [lab.status(node) for node in ALL]
        return all(s["datapath"]["state"] == "inspecting" and s["ring"]["members"] == len(ALL) for s in seen)

    wait_for(check, "all nodes inspect", 30)


@pytest.mark.parametrize("wish", ["crash", "abort", "hang"])
@pytest.mark.parametrize("membership", MEMBERSHIPS)
def test_plugin(membership, wish):
    """What a plugin does to itself: the call fails, the client is served, no daemon ends; and it is said."""
    with cluster(membership) as lab, Supervisor(lab) as supervisor, Traffic(lab, kept=8, fresh=4) as traffic:
        def off():
            return any(p["is_off"] for node in ALL for p in lab.status(node)["plugins"])

        traffic.wait_nodes(ALL)
        # While a call hangs, the other nodes do not ask the plugin: more may be needed until it is off.
        for number in itertools.count():
            assert ask(lab, wish) == 200
            if number >= REPEATS and off():
                break
            assert number < 10 * REPEATS, lab.status("n1")["plugins"]
        traffic.run(1)
        serving(lab)
        plugins = [lab.status(node)["plugins"][0] for node in ALL]
        assert not supervisor.restarts
        wait_for(lambda: known(lab) == [set()] * 4, "no poison, or none any more")
        failed = "hung" if wish == "hang" else "crashed"
        assert sum(p["failures"][failed] for p in plugins) == sum(p["crashes"] for p in plugins)
        # The other worker may have been in the plugin already when it was too much.
        assert all(p["crashes"] < 3 + daemon.WORKERS and p["is_off"] == (p["crashes"] >= 3) for p in plugins), plugins
        assert wish == "hang" or sum(p["crashes"] + p["failures"]["off"] for p in plugins) >= REPEATS
        for node, p in zip(ALL, plugins):
            if p["is_off"]:
                assert "is OFF" in lab.node(node).exec(["earshot", "status"]).stdout
                assert "plugin debug of service web is off" in check(lab, node)
    traffic.assert_whole()


@pytest.mark.parametrize("wish", ["die", "fatal", "stuck"])
@pytest.mark.parametrize("membership", MEMBERSHIPS)
def test_daemon(membership, wish):
    """What ends a daemon: one of them, once; all nodes are told, and the request is served uninspected from then on."""
    with cluster(membership) as lab, Supervisor(lab) as supervisor, Traffic(lab, kept=8, fresh=4) as traffic:
        traffic.wait_nodes(ALL)
        statuses = []
        for _ in range(REPEATS):
            with contextlib.suppress(OSError):
                statuses.append(ask(lab, wish))
        wait_for(lambda: supervisor.restarts, "a daemon that is started again")
        serving(lab)
        wait_for(lambda: all(known(lab)), "all nodes know")
        assert [ask(lab, wish) for _ in range(REPEATS)] == [200] * REPEATS
        traffic.run(1)
        assert len(supervisor.restarts) == 1, supervisor.restarts
        assert statuses[-1] == 200, statuses
        victim = supervisor.restarts[0]
        assert all({node for node, _ in seen} == {victim} for seen in known(lab)), known(lab)
        assert f"the daemon of {victim}" in lab.node("n1").exec(["earshot", "status"]).stdout
        assert f"ended the daemon of {victim}" in check(lab, "n4")
        # Others are still inspected.
        before = asked(lab)
        assert ask(lab, "pass") == 200
        assert asked(lab) > before
    traffic.assert_whole()


def test_refused():
    """By setting: who sends it is told that there is nothing for him, and nobody else is."""
    with cluster("corosync", **{"inspector.poison": "refuse"}) as lab, Supervisor(lab) as supervisor:
        with contextlib.suppress(OSError):
            ask(lab, "die")
        wait_for(lambda: supervisor.restarts, "a daemon that is started again")
        serving(lab)
        wait_for(lambda: all(known(lab)), "all nodes know")
        for _ in range(REPEATS):
            with pytest.raises(ConnectionResetError):
                ask(lab, "die")
            assert ask(lab, "pass") == 200
        assert len(supervisor.restarts) == 1
