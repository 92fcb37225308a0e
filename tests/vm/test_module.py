# SPDX-License-Identifier: GPL-2.0-or-later
"""earshot.ko on Debian 12's own kernel: its life, packets by the packet suite, and a cluster of both datapaths."""
import contextlib
import os
import socket

from cluster import crash, programs
from earshotlab import server
from earshotvm import cluster
from earshotvm.cluster import Lab, LabError, topology, wait_for
from earshotvm.machine import PYTHON, SLUB_DEBUG
from earshotvm.modules import OLD, module_of
from job import PYTEST, run
from serving import TIMEOUT_S, on_one_connection
from sizes import FULL, size
from web import raw

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
    test_strays.py::test_nobodys test_strays.py::TestAsked test_strays.py::TestKept test_strays_many.py::test_answers
    test_ceded.py::test_idle test_ceded.py::test_the_server_ends_it test_ceded.py::test_in_the_middle_of_a_response
    test_ceded.py::TestAsked test_ceded.py::test_end test_other.py
    test_ring_change.py::TestSlot::test_request
    test_lease.py::TestGoesOn test_lease_unproven.py::TestEnd test_load.py::TestActive
    test_connection.py test_program.py::test_handover test_program.py::test_there_and_back
    test_program_refused.py::test_lost_messages
    """
DOWNLOAD, DOWNLOAD_S = "1m", 1_000_000_000
TOKEN_MS = 5000  # of corosync: a machine may stand still for a second
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


def asked(connections):
    """{socket: who answers}: each client sends its next request, all at once."""
    for sock in connections:
        sock.settimeout(TIMEOUT_S)
        sock.sendall(raw.head("/1k"))
    return {sock: raw.receive(sock).node for sock in connections}


def is_member(lab):
    """n3, as n1 sees it."""
    return next(node for node in lab.status("n1")["nodes"] if node["name"] == "n3")["state"] == "up"


def flows(lab, vm, node):
    return vm.ask("flows") if node == "n3" else lab.node(node).ask({"command": "flows", "limit": 1000})


def idle(lab, vm, count):
    """Connections that n3 has, between two requests; other nodes know each of them."""
    cluster.wait_for(lambda: is_member(lab), "n3 is a member", TIMEOUT_S)
    found = []
    while len(found) < count:
        sock, node = next(iter(crash.idle(lab, 1, None).items()))
        if node == "n3":
            found.append(sock)
        else:
            sock.close()
    told = {sock.getsockname()[1] for sock in found}
    cluster.wait_for(lambda: told <= {flow["port"] for name in ("n1", "n2") for flow in flows(lab, vm, name)["kept"]["flows"]
                                      if flow["node"] == "n3"},
                     "nodes that know the idle connections of n3", TIMEOUT_S, lambda: flows(lab, vm, "n3")["kept"])
    return found


def same_everywhere(lab, vm):
    """The file has the same strong validator on all nodes: nginx makes it of time and size."""
    os.utime(os.path.join(lab.docroot, DOWNLOAD), (DOWNLOAD_S, DOWNLOAD_S))
    vm.exec(["touch", "-d", f"@{DOWNLOAD_S}", f"{cluster.DIRECTORY}/docroot/{DOWNLOAD}"])


def download(lab, vm, node, keepers):
    """(socket, what has come of the body): a client in the middle of a response of `node`, which one of `keepers` knows."""
    def told():
        return [flows(lab, vm, name)["downloads"]["total"] for name in keepers]

    while True:
        sock = raw.connect(lab.client, timeout=TIMEOUT_S, before=lambda s: s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536))
        sock.sendall(raw.head(f"/{DOWNLOAD}"))
        response = raw.receive(sock, body=False)
        if response.node == node:
            with contextlib.suppress(LabError):  # another node knows it
                cluster.wait_for(lambda: flows(lab, vm, node)["downloads"]["own"] == 1 and sum(told()) == 1, "a keeper", 10, told)
                return sock, bytearray(response.text)
        sock.close()


def is_whole(sock, body):
    """The rest comes, byte for byte."""
    while len(body) < server.FILES[DOWNLOAD]:
        piece = sock.recv(1 << 16)
        assert piece, f"the body ended after {len(body)} bytes"
        body += piece
    return body == server.file_content(DOWNLOAD, server.FILES[DOWNLOAD])


@contextlib.contextmanager
def survivors(old):
    """(lab, n3): of three nodes whose connections survive, n1 and n2 with BPF, n3 a machine with the module."""
    with Lab(nodes=3, policy="wrr", membership="corosync", token=TOKEN_MS, transport="udpu", datapath="auto",
             settings={"service.inspect": "every", "service.survive": 1, "service.resume": "on"}, autostart=[]) as lab:
        for node in ("n1", "n2"):
            lab.start(node, "nginx")
            lab.start(node, "earshotd")
        with cluster.nodes(lab, {"n3": old}, insmod={"n3": [module_of(old)]}) as vms:
            lab.wait_serving()
            assert vms["n3"].ask("status")["datapath"]["type"] == "module" and lab.status("n1")["datapath"]["type"] == "bpf"
            cluster.wait_for(lambda: is_member(lab), "n3 is a member", TIMEOUT_S)
            same_everywhere(lab, vms["n3"])
            yield lab, vms["n3"]


def test_survive(kernel):
    """Idle connections of a machine with the module, beside two nodes with BPF: while it is cut off from these they stand still
    there, and go on at the others; and so they do, and its download, when it has lost its power. Its clients notice nothing."""
    with survivors(kernel(OLD)) as (lab, vm):
        connections = idle(lab, vm, 12)
        lab.cut("n3", "cluster")
        cluster.wait_for(lambda: not is_member(lab), "n3 is none", TIMEOUT_S)
        before = vm.counters()["drop_silent"]
        assert set(asked(connections[:6]).values()) <= {"n1", "n2"}
        assert vm.counters()["drop_silent"] > before  # it has heard them, too
        # One that nobody has asked about is not given up: it waits until its node is back.
        lab.mend("n3", "cluster")
        assert set(asked(connections).values()) <= {"n1", "n2", "n3"}
        for sock in connections:
            sock.close()
        connections = idle(lab, vm, 6)
        sock, body = download(lab, vm, "n3", ("n1", "n2"))
        vm.kill()
        assert is_whole(sock, body)
        cluster.wait_for(lambda: not is_member(lab), "n3 is gone", TIMEOUT_S)
        for _ in range(2):
            assert set(asked([*connections, sock]).values()) <= {"n1", "n2"}


def test_goes_on_with_a_download(kernel):
    """A node with BPF loses its power, and the machine with the module sends the rest of its response."""
    with survivors(kernel(OLD)) as (lab, vm):
        sock, body = download(lab, vm, "n1", ("n3",))
        lab.kill("n1")
        assert is_whole(sock, body)
        cluster.wait_for(lambda: flows(lab, vm, "n3")["downloads"]["whole"] == 1, "all of it is acknowledged", TIMEOUT_S)
        assert set(asked([sock]).values()) <= {"n2", "n3"}
