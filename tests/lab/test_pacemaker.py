# SPDX-License-Identifier: GPL-2.0-or-later
"""earshotd as a resource of Pacemaker on four nodes, under load: what serves a node costs no client anything."""
import os
import shutil

import pytest

from earshotlab import Lab, daemon
from test_membership import ALL, TOKEN, settled
from traffic import Traffic

pytestmark = [pytest.mark.earshot, pytest.mark.corosync, pytest.mark.pacemaker]

AGENT = os.path.join(os.path.dirname(__file__), "../../membership/ocf/earshotd")

# nginx is the lab's own here: tests/ocf has it as a resource, with the sample configuration.
CLONE = """<clone id="earshotd-clone">
  <meta_attributes id="earshotd-clone-meta"><nvpair id="interleave" name="interleave" value="true"/></meta_attributes>
  <primitive id="earshotd" class="ocf" provider="earshot" type="earshotd">
    <instance_attributes id="earshotd-parameters">
      <nvpair id="earshotd-config" name="config" value="{config}"/>
      <nvpair id="earshotd-binary" name="binary" value="{earshotd}"/>
      <nvpair id="earshotd-client" name="client" value="{earshot}"/>
      <nvpair id="earshotd-logfile" name="logfile" value="/var/log/earshotd.log"/>
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
