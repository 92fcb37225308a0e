# SPDX-License-Identifier: GPL-2.0-or-later
"""The netfilter datapath on Debian's kernels: connections by conntrack and SYNPROXY, whole clusters in one machine, and what the daemon
says where something is missing."""
import json

import pytest

from earshotvm.cluster import daemon, wait_for
from earshotvm.machine import PYTHON
from earshotvm.remote import Remote
from job import PYTEST, run

KERNELS = ("5.10", "6.1", "6.12")
OLD = "5.10"
# Where nf_tables have neither, as before Linux 5.3 (RHEL 8), xtables' targets do it.
AS_BEFORE_5_3 = ["module_blacklist=nft_synproxy,nft_queue"]
WITHOUT_SYNPROXY = ["module_blacklist=nft_synproxy,ipt_SYNPROXY,ip6t_SYNPROXY"]
# Minutes of an emulated machine, so not all.
PACKETS = ("test_first_request.py", "test_drops.py", "test_resets.py", "test_vlan.py", "test_handover.py::TestNack", "test_strays.py::TestAsked")
LAB = {"EARSHOT_DATAPATH": "netfilter"}
SUITE_S = 2400  # two busy CPUs take a quarter of it
LAB_S = 1200
PATIENCE_S = 180  # the kernel looks for each module that is missing, with each way that is tried

NODE = """\
cluster { name = "alone" key_file = "/run/key" }
datapath { type = TYPE interface = eth0 cluster_interface = eth1 }
node n1 { address = "10.78.0.1" }
service web { address = "10.77.0.100" port = 80 }
"""
LINKS = """\
link add eth0 up type dummy
link add eth1 up type dummy
address add 10.78.0.1/24 dev eth1
address add 10.77.0.1/24 dev eth0
address add 10.77.0.100/32 dev lo
"""
CONFIG = "/run/node.conf"
NO_BPF = "no bpf_sk_assign_tcp_reqsk(); the bpf datapath needs Linux 6.9 or later with CONFIG_SYN_COOKIES"


@pytest.mark.parametrize("release", KERNELS)
def test_connections(kernel, release, tmp_path):
    """All of tests/netfilter."""
    print(run(kernel(release), f"{PYTEST} --durations=5 tests/netfilter", SUITE_S, tmp_path))


@pytest.mark.parametrize("release", KERNELS)
def test_packets(kernel, release, tmp_path):
    """What each feature does with exact packets, as tests/datapath has it in short runs. It watches the queues before there is a daemon."""
    suite = f"{PYTEST} --datapath=netfilter --durations=5 {' '.join(PACKETS)}"
    print(run(kernel(release), f"modprobe nfnetlink_queue; cd tests/datapath; {suite}", SUITE_S, tmp_path))


@pytest.mark.parametrize("release, append", [*((release, ()) for release in KERNELS), (OLD, AS_BEFORE_5_3)],
                         ids=[*KERNELS, "as-before-5.3"])
def test_demo(kernel, release, append, tmp_path):
    """A cluster of namespaces, all of whose nodes have this datapath."""
    print(run(kernel(release), f"{PYTHON} lab/demo.py --name vm", LAB_S, tmp_path, LAB, append=append))


@pytest.mark.parametrize("release", KERNELS)
def test_programs(kernel, release, tmp_path):
    """Programs hand over, from such nodes to such nodes: other kernels translate, and tell of sockets, in their own way."""
    print(run(kernel(release), f"{PYTEST} tests/lab/test_programs.py -k 'download or upload or later_request'", LAB_S, tmp_path, LAB))


def set_up(machine):
    machine.exec(["ip", "-batch", "-"], stdin=LINKS)
    machine.exec([daemon.binary("earshot"), "keygen", "/run/key"])


def configured(machine, datapath):
    """A node of its own in a machine: earshotd's command line."""
    machine.write(CONFIG, NODE.replace("TYPE", datapath))
    return [daemon.binary("earshotd"), "--config", CONFIG]


def checked(machine):
    """What `earshot check` says: {id: finding}."""
    done = machine.exec([daemon.binary("earshot"), "--json", "check", "--config", CONFIG], check=False, timeout=PATIENCE_S)
    return {finding["id"]: finding for finding in json.loads(done.stdout)["findings"]}


@pytest.mark.parametrize("release", ("5.10", "6.1"))
def test_what_auto_takes(kernel, release):
    """A kernel without what BPF needs, on which our module is not: `check` says so, with or without a daemon."""
    with Remote(kernel(release), name="auto") as machine:
        set_up(machine)
        command = configured(machine, "auto")
        before = checked(machine)
        machine.spawn(command, "/run/log")
        wait_for(lambda: "is serving" in machine.exec(["cat", "/run/log"]).stdout, "earshotd serves", 60,
                 lambda: machine.exec(["cat", "/run/log"]).stdout)
        status = json.loads(machine.exec([daemon.binary("earshot"), "--json", "status"]).stdout)
        assert status["datapath"]["type"] == "netfilter"
        for found in (before, checked(machine)):
            assert found["kernel.programs"]["severity"] == found["kernel.reqsk"]["severity"] == "ok"
            said = found["kernel.reqsk"]["found"]
            assert "netfilter datapath" in said and f"not bpf: kernel: {NO_BPF}" in said and "not module: " in said
        machine.ask_to_end()
        assert machine.wait(60).good


def test_what_a_kernel_without_synproxy_says(kernel):
    with Remote(kernel(OLD), name="without", append=WITHOUT_SYNPROXY) as machine:
        set_up(machine)
        for datapath in ("netfilter", "auto"):
            done = machine.exec(configured(machine, datapath), check=False, timeout=PATIENCE_S)
            assert done.returncode not in (0, None)
            lines = (done.stdout + done.stderr).splitlines()
            lack = ("netfilter datapath: the kernel has no SYNPROXY (CONFIG_NFT_SYNPROXY, or CONFIG_NFT_COMPAT and "
                    "CONFIG_IP_NF_TARGET_SYNPROXY)")
            assert len(lines) == 1 and lines[0].endswith(lack), lines
            assert (NO_BPF in lines[0]) == (datapath == "auto")
            found = checked(machine)["kernel.programs" if datapath == "netfilter" else "kernel.reqsk"]
            assert found["severity"] == "error" and lack in found["found"], found
        machine.ask_to_end()
        assert machine.wait(60).good
