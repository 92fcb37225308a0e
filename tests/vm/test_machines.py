# SPDX-License-Identifier: GPL-2.0-or-later
"""Earshot on Debian's kernels: one without what the bpf datapath needs, one with it, and a cluster of machines."""
import os

from earshotvm import cluster
from earshotvm.cluster import Lab, daemon
from earshotvm.machine import PYTHON
from earshotvm.remote import Remote
from job import PYTEST, run
from serving import on_one_connection

NODE = """\
cluster { name = "alone" key_file = "/run/key" }
datapath { type = bpf interface = eth0 cluster_interface = eth1 }
node n1 { address = "10.78.0.1" }
service web { address = "10.77.0.100" port = 80 }
"""


def test_what_the_kernel_lacks(kernel):
    """earshotd says it in one line and does not start. And a machine that crashes is not taken for a good one."""
    with Remote(kernel("6.1"), name="old") as machine:
        machine.exec(["ip", "-batch", "-"], stdin="link add eth0 up type dummy\nlink add eth1 up type dummy\n"
                                                  "address add 10.78.0.1/24 dev eth1\n")
        machine.write("/run/node.conf", NODE)
        machine.exec([daemon.binary("earshot"), "keygen", "/run/key"])
        done = machine.exec([daemon.binary("earshotd"), "--config", "/run/node.conf"], check=False)
        assert done.returncode not in (0, None)
        assert [line.partition(" ")[2] for line in (done.stdout + done.stderr).splitlines()] == [
            "earshotd: error: kernel: no bpf_sk_assign_tcp_reqsk(); "
            "the bpf datapath needs Linux 6.9 or later with CONFIG_SYN_COOKIES"]

        machine.spawn(["sh", "-c", "sleep 0.5; echo c >/proc/sysrq-trigger"], "/run/crash.log")
        result = machine.wait(60)
        assert result.status is None and not result.good
        assert "sysrq triggered crash" in result.troubles[0]


def test_suites(kernel, tmp_path):
    """With the bpf datapath on 6.12: some of the packet suite, and a lab, a cluster of namespaces in the machine."""
    command = f"""
    {PYTEST} --datapath=bpf tests/datapath/test_lease.py -k TestNothingNew
    lab='{PYTHON} lab/lab.py'
    $lab up --nodes 2 --datapath bpf --membership static
    $lab exec client -- curl -sSf -H 'Connection: close' -o /dev/null -D - 'http://10.77.0.100/u/1k/[1-20]' >/run/headers
    grep -q 'X-Node: n1' /run/headers
    grep -q 'X-Node: n2' /run/headers
    $lab down
    """
    run(kernel("6.12"), command, 180, tmp_path)
    assert kernel("6.12").release != os.uname().release


def served(lab):
    """A request per connection, to enough different pages that each node inspects some and serves some."""
    nodes = set()
    for number in range(100):
        status, headers, body = lab.client.get(f"/u/1k/{number}")
        assert status == 200 and len(body) == 1024
        nodes.add(headers["X-Node"])
    assert nodes == set(lab.net.nodes)


def test_cluster(kernel):
    """Three machines with 6.12 and a namespace of this kernel are one server; connections move between all of them."""
    with Lab(nodes=4, policy="uri-hash", settings={"service.inspect": "every", "service.load_bound": 0}, autostart=[]) as lab:
        machines = [node for node in lab.net.nodes if node != "n4"]
        with cluster.nodes(lab, {node: kernel("6.12") for node in machines}) as vms:
            lab.start("n4", "nginx")
            lab.start("n4", "earshotd")
            served(lab)
            answered = on_one_connection(lab)
            assert set(answered) == set(lab.net.nodes)  # the same connection, on each of them
            moves = sum(before != after for before, after in zip(answered, answered[1:]))
            counters = [vm.counters() for vm in vms.values()] + [lab.counters("n4")]
            assert all(of["handover_rebuilt"] and of["inspect_handovers"] and of["end_done"] for of in counters)
            assert sum(of["end_done"] for of in counters) >= moves
