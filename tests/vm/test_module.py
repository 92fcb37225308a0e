# SPDX-License-Identifier: GPL-2.0-or-later
"""earshot.ko on Debian 12's own kernel: its life, packets by the packet suite, and a cluster of both datapaths."""
import contextlib

from cluster import programs
from earshotvm import cluster
from earshotvm.cluster import Lab, topology, wait_for
from earshotvm.machine import PYTHON, SLUB_DEBUG
from earshotvm.modules import OLD, module_of
from job import PYTEST, run
from serving import on_one_connection
from sizes import FULL, size

# Of tests/datapath, each feature of the module once, of IPv6 what it alone has, in some minutes; in full runs all of it. What its
# headers decide as they do for BPF, tests/unit and the same files have with that.
PACKETS = "." if FULL else """
    test_handshake.py::test_every_option_class_survives test_overheard.py::test_first_request
    test_below_first.py::test_before_the_request test_urgent.py::test_first_request test_merged.py::test_moves test_vlan.py test_v6.py
    test_handover.py::test_request test_freshness.py::TestTime::test_late test_freshness.py::TestPublicSide test_nack.py::test_retry
    test_nack.py::test_options_come_back test_settled.py::TestRefused test_doubt.py::TestOverheard::test_refused
    test_doubt.py::TestNotHeard::test_refused test_serving.py::test_redirected
    test_later_requests.py::TestStay test_later_requests.py::TestMove test_later_requests.py::TestResponse::test_complete
    test_half_close.py::TestPacketFilter test_time_wait.py test_resets.py::test_told_again test_resets.py::test_reset_by_the_stack
    test_strays.py::test_nobodys test_strays.py::TestAsked test_strays_many.py::test_answers test_other.py
    test_ring_change.py::TestSlot::test_request
    test_lease.py::TestGoesOn test_lease_unproven.py::TestEnd test_load.py::TestActive
    test_connection.py test_program.py::test_handover test_program.py::test_there_and_back
    test_program_refused.py::test_lost_messages
    """
ONCE = "" if FULL else '--each-value -k "not v6 or test_v6"'


def test_packets(kernel, tmp_path):
    """Loaded, asked, lied to, short of memory, unloaded with connections open and under traffic; then PACKETS. All that
    under a kernel that watches its memory."""
    module_of(kernel(OLD))
    command = f"""
    EARSHOT_UNLOADS=2 EARSHOT_FUZZ=300 {PYTEST} --durations=10 tests/module
    cd tests/datapath
    {PYTEST} --datapath=module --durations=5 {ONCE} {" ".join(PACKETS.split())}
    rmmod earshot
    """
    # Little memory: a test takes it all, and zeroing it is slow where the machine is emulated.
    print(run(kernel(OLD), command, size(1200, 3600), tmp_path, append=[SLUB_DEBUG], memory_mb=1500))


def test_https(kernel, tmp_path):
    """A cluster of namespaces that all have the module: each request on a TLS connection to another node, bodies both ways."""
    old = kernel(OLD)
    command = f"{PYTEST} tests/lab/test_https_moves.py -k 'test_each_request and 1.3'"
    print(run(old, command, size(1200, 3600), tmp_path, {"EARSHOT_DATAPATH": "module"}, insmod=[module_of(old)]))


def start_programs(lab, vms, stack):
    """Its program on each node."""
    for node in ("n1", "n2"):
        programs.start_program(stack, lab.node(node))
    vms["n3"].spawn([PYTHON, "-I", programs.FILE, programs.LIBRARY,
                     *map(str, programs.PROGRAM)], "/run/program.log")
    wait_for(lambda: f":{programs.PROGRAM[1]} " in vms["n3"].exec(["ss", "-ltn"]).stdout, "program of n3")


def hand_over(lab, vms):
    """Programs of nodes of both kinds, to servers of both kinds: each file is whole, from the node that was named."""
    def counted(name):
        return [counters[name] for counters in (lab.counters("n1"), lab.counters("n2"), vms["n3"].counters())]

    for number in range(90):
        target = programs.ALL[number % 3]
        response = programs.ask(lab, "/100k", X_To=target)
        assert programs.right(response) and response.node == target
        # As many programs as nodes have had connections, most of which went elsewhere.
        if number >= 20 and min(counted("handshake_blind")) > 4:
            break
    assert min(counted("handshake_blind")) > 4 and min(counted("connection_rebuilt")) > 4
    assert sum(counted("connection_rebuilt")) == number + 1


def served_by_each(lab, machine, vip):
    """Connections to this address, and one that moves between all nodes; each of them gives requests away and takes some."""
    def counted():
        return [machine.counters(), lab.counters("n1"), lab.counters("n2")]

    before = counted()
    for number in range(60):
        status, _, body = lab.client.get(f"/u/1k/{number}", host=vip)
        assert status == 200 and len(body) == 1024
    answered = on_one_connection(lab, address=(vip, topology.PORT))
    assert set(answered) == {"n1", "n2", "n3"}
    for old, new in zip(before, counted()):
        assert all(new[name] > old[name] for name in ("handover_rebuilt", "inspect_handovers", "end_done")), new


def test_mixed_cluster(kernel):
    """A machine with 6.1 and the module, and two namespaces with BPF: one connection, of either family, is served by all three."""
    old = kernel(OLD)
    with Lab(nodes=3, policy="uri-hash", family="46", datapath="auto", settings={"service.inspect": "every", "service.load_bound": 0},
             autostart=[]) as lab, contextlib.ExitStack() as stack:
        with open(lab.config_file, "a", encoding="utf-8") as handle:
            handle.write(programs.services(lab))
        with cluster.nodes(lab, {"n3": old}, insmod={"n3": [module_of(old)]}) as vms:
            for node in ("n1", "n2"):
                lab.start(node, "nginx")
                lab.start(node, "earshotd")
            lab.wait_serving()
            assert vms["n3"].ask("status")["datapath"]["type"] == "module" and lab.status("n1")["datapath"]["type"] == "bpf"
            for vip in lab.net.vips:
                served_by_each(lab, vms["n3"], vip)
            start_programs(lab, vms, stack)
            hand_over(lab, vms)
