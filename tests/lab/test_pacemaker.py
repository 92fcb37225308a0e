# SPDX-License-Identifier: GPL-2.0-or-later
"""earshotd as a resource of Pacemaker on four nodes, under load: what serves a node costs no client anything."""
import contextlib
import os
import re
import shutil

import pytest

from cluster.membership import ALL, TOKEN, settled
from cluster.poison import ask, plugin_load
from earshotlab import Lab, LabError, daemon, wait_for
from sizes import FULL
from web.traffic import Traffic

pytestmark = [pytest.mark.earshot, pytest.mark.corosync, pytest.mark.pacemaker]

AGENT = os.path.join(os.path.dirname(__file__), "../../membership/ocf/earshotd")

# nginx is the lab's own here: tests/ocf has it as a resource, with the sample configuration, from which the failures are
# that a node may have.
CLONE = """<clone id="earshotd-clone">
  <meta_attributes id="earshotd-clone-meta"><nvpair id="interleave" name="interleave" value="true"/></meta_attributes>
  <primitive id="earshotd" class="ocf" provider="earshot" type="earshotd">
    <meta_attributes id="earshotd-meta">
      <nvpair id="earshotd-migration-threshold" name="migration-threshold" value="3"/>
      <nvpair id="earshotd-failure-timeout" name="failure-timeout" value="120s"/>
    </meta_attributes>
    <instance_attributes id="earshotd-parameters">
      <nvpair id="earshotd-config" name="config" value="{config}"/>
      <nvpair id="earshotd-binary" name="binary" value="{earshotd}"/>
      <nvpair id="earshotd-client" name="client" value="{earshot}"/>
      <nvpair id="earshotd-logfile" name="logfile" value="/var/log/pacemaker/earshotd.log"/>
      <nvpair id="earshotd-drain-timeout" name="drain_timeout" value="30"/>
    </instance_attributes>
    <operations>
      <op id="earshotd-start" name="start" interval="0" timeout="30s"/>
      <op id="earshotd-stop" name="stop" interval="0" timeout="45s"/>
      <op id="earshotd-monitor" name="monitor" interval="2s" timeout="20s"/>
      <op id="earshotd-monitor-10" name="monitor" interval="5s" timeout="20s">
        <instance_attributes id="earshotd-monitor-10-parameters">
          <nvpair id="earshotd-monitor-10-level" name="OCF_CHECK_LEVEL" value="10"/>
        </instance_attributes>
      </op>
    </operations>
  </primitive>
</clone>"""


@pytest.fixture(scope="module", name="module_lab")
def _module_lab(tmp_path_factory):
    agents = tmp_path_factory.mktemp("agents")
    shutil.copy(AGENT, agents)
    with Lab(nodes=4, membership="corosync", policy="uri-hash", token=int(TOKEN * 1000), pacemaker=True,
             agents=str(agents), autostart=["nginx"],
             settings={"service.inspect": "every", "service.load_bound": 0}) as lab:
        lab.node("n1").pacemaker.cibadmin(CLONE.format(
            config=lab.config_file, earshotd=daemon.binary("earshotd"), earshot=daemon.binary("earshot")))
        lab.node("n1").pacemaker.wait_resource("earshotd", ALL)
        yield lab


@pytest.fixture(name="lab")
def _lab(module_lab):
    module_lab.node("n1").pacemaker.wait_resource("earshotd", ALL)
    settled(module_lab)
    return module_lab


def agent_log(lab, node):
    with open(lab.node(node).pacemaker.log, encoding="utf-8", errors="replace") as file:
        return file.read()


def test_standby_drains(lab):
    """500 persistent connections leave the node, and only then does its daemon stop; then it comes back."""
    with Traffic(lab, kept=500, fresh=10, pause=0.5) as traffic:
        traffic.run(2)
        traffic.wait_nodes(ALL)
        lab.node("n3").pacemaker.standby()
        lab.node("n1").pacemaker.wait_resource("earshotd", ["n1", "n2", "n4"], timeout=60)
        assert "drained: n3 is drained, after " in agent_log(lab, "n3")
        away = traffic.now()
        traffic.run(1.5)
        assert "n3" not in traffic.nodes(away)
        lab.node("n3").pacemaker.standby(False)
        lab.node("n1").pacemaker.wait_resource("earshotd", ALL)
        settled(lab)
        back = traffic.now()
        traffic.run(2)
        traffic.wait_nodes(ALL, back)
    traffic.assert_whole()


def test_restart(lab):
    """One node after the other, as for an upgrade: no drain, and no client notices."""
    began = {node: len(agent_log(lab, node)) for node in ALL}
    with Traffic(lab, kept=100, fresh=10, pause=0.1) as traffic:
        traffic.run(1)
        for node in ALL:
            before = lab.status(node)["uptime_s"]
            lab.node("n1").exec(["crm_resource", "--restart", "--resource", "earshotd-clone", "--node", node])
            lab.node("n1").pacemaker.wait_resource("earshotd", ALL)
            settled(lab)
            assert lab.status(node)["uptime_s"] < before
        traffic.run(1)
    traffic.assert_whole()
    assert not any("drained: " in agent_log(lab, node)[began[node]:] for node in ALL)


def test_ban(lab):
    """`crm resource move` and `ban` take Earshot off the node; the server stays, and so do its open connections."""
    with Traffic(lab, kept=100, fresh=10, pause=0.1) as traffic:
        traffic.run(1)
        lab.node("n1").exec(["crm_resource", "--ban", "--resource", "earshotd-clone", "--node", "n2"])
        lab.node("n1").pacemaker.wait_resource("earshotd", ["n1", "n3", "n4"])
        traffic.run(2)
        lab.node("n1").exec(["crm_resource", "--clear", "--resource", "earshotd-clone"])
        lab.node("n1").pacemaker.wait_resource("earshotd", ALL)
        settled(lab)
        traffic.run(1)
    traffic.assert_whole()


def test_maintenance(lab):
    """Nothing happens, to the daemons or to the clients."""
    uptime = {node: lab.status(node)["uptime_s"] for node in ALL}
    with Traffic(lab, kept=100, fresh=10, pause=0.1) as traffic:
        lab.node("n1").pacemaker.property("maintenance-mode", "true")
        traffic.run(3)
        lab.node("n1").pacemaker.property("maintenance-mode", "false")
        traffic.run(2)
    traffic.assert_whole()
    assert all(lab.status(node)["uptime_s"] > uptime[node] + 4 for node in ALL)


def test_whole_cluster_stops_without_draining(lab):
    """With nobody left to take the connections over, nobody waits for them."""
    lab.node("n1").exec(["crm_resource", "--restart", "--resource", "earshotd-clone"], timeout=60)
    lab.node("n1").pacemaker.wait_resource("earshotd", ALL)
    settled(lab)


def test_pacemaker_stops(lab):
    """The shutdown of a node's Pacemaker drains, too."""
    began = len(agent_log(lab, "n4"))
    with Traffic(lab, kept=50, fresh=5, pause=0.1) as traffic:
        traffic.run(1)
        lab.node("n4").pacemaker.stop()
        assert "drained: n4 is drained, after " in agent_log(lab, "n4")[began:]
        away = traffic.now()
        traffic.run(1)
        assert "n4" not in traffic.nodes(away)
        lab.node("n4").pacemaker.start()
        lab.node("n1").pacemaker.wait_resource("earshotd", ALL, timeout=60)
        settled(lab)
    traffic.assert_whole()


# --- requests that harm who reads them; the plugin `debug` does what their header says

REPEATS = 12  # three for each node
PLUGIN_HARM = [("crash", REPEATS), ("hang", 1)] + [("abort", REPEATS), ("overflow", REPEATS)] * FULL
DAEMON_HARM = ["die", "stuck"] + ["fatal"] * FULL  # three: more, and for a minute none is inspected (ES_POISON_STORM)


@pytest.fixture(name="harmed")
def _harmed(lab):
    """The plugin is in force everywhere, as if it had never failed; so is Pacemaker's opinion of the daemons, then."""
    if not lab.status("n1")["plugins"]:
        plugin_load(lab)
    for node in ALL:
        lab.node(node).exec(["earshot", "reload"])
    yield lab
    lab.node("n1").exec(["crm_resource", "--cleanup", "--resource", "earshotd"])


def statuses(lab):
    """Of all daemons; none if one does not answer."""
    try:
        return [lab.status(node) for node in ALL]
    except (OSError, LabError):
        return []


def starts(lab):
    """How often Pacemaker has started each node's daemon."""
    return [agent_log(lab, node).count(") serves") for node in ALL]


def failures(lab):
    """How often a daemon has failed, as Pacemaker sees it."""
    text = lab.node("n1").exec(["crm_mon", "-1", "--failcounts", "--output-as=xml"]).stdout
    return sum(int(count) for count in re.findall(r'fail-count="(\d+)"', text))


@pytest.mark.parametrize("wish,times", PLUGIN_HARM)
def test_request_that_harms_a_plugin(harmed, wish, times):
    """No daemon ends, so Pacemaker has nothing to do; the one who asks is served, too."""
    before = starts(harmed)
    with Traffic(harmed, kept=20, fresh=5, pause=0.1, patience=30) as traffic:
        traffic.wait_nodes(ALL)
        assert [ask(harmed, wish) for _ in range(times)] == [200] * times
        traffic.run(1)
    assert sum(s["plugins"][0]["crashes"] for s in statuses(harmed))
    assert starts(harmed) == before
    assert not failures(harmed)
    traffic.assert_whole()


@pytest.mark.parametrize("wish", DAEMON_HARM)
def test_request_that_ends_a_daemon(harmed, wish):
    """Pacemaker starts that daemon again, once; its client repeats the request, and no other node's daemon ends."""
    lab, before = harmed, starts(harmed)
    known = [len(s["poison"]) for s in statuses(lab)]
    answers = []
    with Traffic(lab, kept=20, fresh=5, pause=0.1, patience=30) as traffic:
        traffic.wait_nodes(ALL)
        for _ in range(REPEATS):
            with contextlib.suppress(OSError):
                answers.append(ask(lab, wish))
        wait_for(lambda: sum(starts(lab)) > sum(before), "a daemon that is started again", 30)
        lab.node("n1").pacemaker.wait_resource("earshotd", ALL)
        settled(lab)
        wait_for(lambda: [len(s["poison"]) for s in statuses(lab)] == [n + 1 for n in known], "all nodes know it", 15,
                 lambda: [s["poison"] for s in statuses(lab)])
        assert [ask(lab, wish) for _ in range(REPEATS)] == [200] * REPEATS
        traffic.run(1)
    assert sum(starts(lab)) == sum(before) + 1, (before, starts(lab))
    assert failures(lab) == 1
    assert answers[-1] == 200, answers
    traffic.assert_whole()
