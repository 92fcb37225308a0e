# SPDX-License-Identifier: GPL-2.0-or-later
"""Connections made by netfilter/: clients' SYNs are answered with cookies, and stock nginx gets what is made of their requests."""
import concurrent.futures
import contextlib
import errno
import os
import signal
import socket
import struct
import subprocess
import threading

import pytest

import namespaces
from earshotlab import in_namespace, wait_for
from place import CLIENT, FAMILIES, LARGE, REBUILDER, RELOAD, Place, ask, run, who

pytestmark = pytest.mark.usefixtures("possible")


@pytest.fixture(scope="module", name="shared")
def _shared():
    with Place() as place:
        yield place


@pytest.fixture(name="one_cpu")
def _one_cpu():
    """For what is started in the test, and the test: what two CPUs send may overtake each other by more than timestamps allow, where a
    machine is emulated, on any connection."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


def test_probe_knows_both_families():
    done = subprocess.run([REBUILDER, "probe"], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["0", "1"]


def test_servers_of_programs_are_found():
    """By addresses of their own, which the kernel translates."""
    done = subprocess.run([REBUILDER, "translation"], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["0"]


def test_a_label_leaves_others_alone():
    done = subprocess.run([REBUILDER, "labels"], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["ours proven held", "ours proven"]


def test_the_rules_of_64_services_fit():
    """In a network namespace of its own, which goes with the program."""
    done = subprocess.run(["unshare", "--net", REBUILDER, "rules"], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["0", "1"]


@pytest.mark.parametrize("what", ("rules", "overheard", "ingress"))
def test_what_waits_outlives_a_reload(what):
    """A packet is in the queue when the rules change, or the ring does: the daemon's word about it holds."""
    done = subprocess.run(["unshare", "--net", RELOAD, what], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["1", "1", "message"]


def test_what_is_leaving_says_nothing_behind_a_reload():
    """It was of a service that inspected every request, and there is none any more."""
    done = subprocess.run(["unshare", "--net", RELOAD, "held"], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["dropped", "dropped"]


def test_what_is_being_made_tells_no_window():
    """The hook's own acknowledgements, at the end of each handshake; the SYN-ACK must come to the hook, and a RST to the client."""
    done = subprocess.run(["unshare", "--net", RELOAD, "making"], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["sent", "dropped", "sent", "sent"]


def test_a_connection_that_was_given_away_says_nothing():
    """Not to the node that has inspected its request; a new one of the same ports does, but for bare acknowledgements."""
    done = subprocess.run(["unshare", "--net", RELOAD, "gone"], capture_output=True, text=True, check=False)
    assert done.stdout.split() == list("1000101")


@FAMILIES
def test_server_sees_the_client_and_a_keep_alive_connection(shared, family):
    before = shared.counts()["made"]
    connection = shared.connect(family)
    address, port = connection.sock.getsockname()[:2]
    for _ in range(50):
        assert who(connection) == (address, str(port))
        assert ask(connection) == (200, b"x" * 1024)
    counts = shared.counts()
    assert (counts["made"], counts["failed"]) == (before + 1, 0)
    connection.close()


@FAMILIES
def test_large_bodies_both_ways(shared, family):
    connection = shared.connect(family)
    half = LARGE[:len(LARGE) // 2]
    assert ask(connection, "PUT", "/upload/first", half)[0] in (201, 204)  # the rebuilt request itself
    assert ask(connection, path="/large") == (200, LARGE)
    assert ask(connection, "PUT", "/upload/second", half)[0] in (201, 204)
    assert ask(connection, path="/upload/first") == ask(connection, path="/upload/second") == (200, half)
    connection.close()


@FAMILIES
def test_where_new_devices_have_no_ipv6(family):
    with Place(before={"net.ipv6.conf.default.disable_ipv6": 1}) as place:
        connection = place.connect(family)
        assert ask(connection) == (200, b"x" * 1024)
        connection.close()


@pytest.mark.usefixtures("one_cpu")
def test_nothing_is_dropped_for_its_timestamps():
    """What the client sees of the server's clock never goes back."""
    with Place() as place:
        for _ in range(20):
            connection = place.connect()
            for _ in range(5):
                assert ask(connection)[0] == 200
            connection.close()
        seen = place.counters(place.client)
    for name in ("PAWSEstab", "TCPSpuriousRTOs", "TCPTimeouts"):
        assert not seen[name], name


@FAMILIES
def test_ends_of_connections(shared, family):
    """The server's, the client's, and a client's port that is used again at once."""
    for _ in range(3):
        connection = wait_for(lambda: shared.connect(family, port=41000), "the end before is acknowledged", 10)
        with connection.sock.dup() as sock:  # http.client closes its own, perhaps before the server does
            assert ask(connection, path="/close/small") == (200, b"x" * 1024)
            assert sock.recv(1) == b""
        connection.close()
    for port in (41001, 41001):
        connection = shared.connect(family, port=port)
        assert ask(connection)[0] == 200
        assert shared.counts()["failed"] == 0
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a RST
        connection.close()
    assert shared.counts()["failed"] == 0


def test_entries_are_told_apart(shared):
    """Ours have a label; what packets make has none."""
    assert shared.counts()["label"] == 1
    before = shared.entries()
    connections = [shared.connect() for _ in range(3)]
    for connection in connections:
        assert ask(connection)[0] == 200
    assert shared.entries() == before + 3
    for connection in connections:
        connection.close()


@pytest.mark.parametrize("client", (
    {"net.ipv4.tcp_timestamps": 0}, {"net.ipv4.tcp_window_scaling": 0}, {"net.ipv4.tcp_sack": 0},
    {"net.ipv4.tcp_timestamps": 0, "net.ipv4.tcp_window_scaling": 0, "net.ipv4.tcp_sack": 0}), ids=("ts", "wscale", "sack", "none"))
def test_clients_without_options(client):
    with Place(client=client) as place:
        connection = place.connect()
        assert ask(connection, path="/large") == (200, LARGE)
        assert ask(connection, "PUT", "/upload/x", LARGE)[0] in (201, 204)
        connection.close()


def test_server_without_timestamps():
    with Place(before={"net.ipv4.tcp_timestamps": 0}) as place:
        connection = place.connect()
        assert ask(connection)[0] == 200
        connection.close()


@FAMILIES
def test_a_repeated_request_makes_no_second_connection(family):
    with Place(words=["twice"]) as place:
        connection = place.connect(family)
        for _ in range(10):
            assert ask(connection)[0] == 200
        assert ask(connection, path="/large") == (200, LARGE)
        counts = place.counts()
        assert (counts["made"], counts["copies"], counts["failed"]) == (1, 2, 0)
        connection.close()


@FAMILIES
def test_without_a_server_the_client_is_told(family):
    with Place(serves=False) as place:
        connection = place.connect(family)
        with pytest.raises(ConnectionResetError):
            ask(connection)
        connection.close()


@FAMILIES
def test_moves(shared, family):
    """Its socket vanishes, and comes again from the next request: the client does not notice."""
    connection = shared.connect(family)
    assert ask(connection)[0] == 200
    before = shared.counts()
    for turn in range(8):
        shared.hold(True)
        assert shared.tell("move") == "0"
        connection.request("GET", "/large" if turn % 4 == 3 else "/small")
        wait_for(lambda n=turn: shared.counts()["moved"] == before["moved"] + n + 1, "the connection has moved", 10, shared.counts)
        shared.hold(False)
        response = connection.getresponse()
        assert response.status == 200 and response.read() == (LARGE if turn % 4 == 3 else b"x" * 1024)
        assert who(connection)[0] == CLIENT[family]
    assert shared.counts()["failed"] == before["failed"]
    connection.close()


def test_leaving_with_a_wrong_number_changes_nothing():
    with Place() as place:
        connection = place.connect()
        assert ask(connection)[0] == 200
        assert place.tell("leave-wrongly") == "-16"  # EBUSY
        assert ask(connection, path="/large") == (200, LARGE)
        connection.close()


def test_without_the_daemon_connections_go_on():
    with Place() as place:
        connection = place.connect()
        assert ask(connection)[0] == 200
        place.rebuilder.kill()
        place.rebuilder.wait()
        wait_for(lambda: "earshot-nf" not in run(place.server, "ip", "link"), "the tun device has gone", 10)
        assert ask(connection, path="/large") == (200, LARGE)
        assert ask(connection, "PUT", "/upload/x", LARGE)[0] in (201, 204)
        place.rebuilder = place.start_rebuilder([])
        again = place.connect()
        assert ask(connection)[0] == ask(again)[0] == 200
        connection.close()
        again.close()


@pytest.mark.skipif(os.cpu_count() < 2, reason="needs another CPU for packets")
def test_packets_that_another_cpu_takes():
    """As RPS has it: the kernel is not through with a SYN when it has taken it."""
    with Place() as place:
        run(place.server, "sh", "-c", "echo 2 >/sys/class/net/earshot-nf/queues/rx-0/rps_cpus")
        os.sched_setaffinity(place.rebuilder.pid, {0})
        for _ in range(100):
            connection = place.connect()
            assert ask(connection)[0] == 200
            connection.close()
        counts = place.counts()
        assert counts["made"] == 100 and counts["failed"] < 20, counts  # of a CPU that stands still, the client repeats its request


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def behind(request):
    """The bare acknowledgement with the next number behind a request, both frames of IPv4."""
    ip, tcp = bytearray(request[14:34]), bytearray(request[34:34 + (request[46] >> 4) * 4])
    seq = struct.unpack_from("!I", tcp, 4)[0] + len(request) - 34 - len(tcp)
    struct.pack_into("!I", tcp, 4, seq & 0xffffffff)
    tcp[13] = 0x10
    struct.pack_into("!H", tcp, 16, 0)
    struct.pack_into("!H", tcp, 16, checksum(bytes(ip[12:20]) + struct.pack("!HH", 6, len(tcp)) + bytes(tcp)))
    struct.pack_into("!H", ip, 2, 20 + len(tcp))
    struct.pack_into("!H", ip, 10, 0)
    struct.pack_into("!H", ip, 10, checksum(bytes(ip)))
    return bytes(request[:14] + ip + tcp)


@pytest.mark.skipif(os.cpu_count() < 2, reason="needs another CPU for packets")
def test_what_comes_while_a_connection_is_made():
    """It has an entry already, and no handshake: what is acknowledged too early makes it neither whole nor reset."""
    with Place() as place, concurrent.futures.ThreadPoolExecutor(1) as pool, contextlib.ExitStack() as stack:
        wire = stack.enter_context(in_namespace(place.client, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)))
        wire.bind(("wire", 0))

        def flood(frame, is_on, is_over):
            """Not for ever: the client may have to repeat its request, and that must be heard."""
            for _ in range(50):
                for _ in range(100):
                    wire.send(frame)
                is_on.set()
                if is_over.is_set():
                    break

        for _ in range(50):
            connection, is_on, is_over = place.connect(), threading.Event(), threading.Event()
            connection.sock.settimeout(60)  # what the kernel's hook has missed, the client has to begin again
            with in_namespace(place.client, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))) as ear:
                place.rebuilder.send_signal(signal.SIGSTOP)
                connection.request("GET", "/small")
                frame = b""
                while b"GET /small" not in frame:
                    frame = ear.recv(9000)
            flooding = pool.submit(flood, behind(frame), is_on, is_over)
            is_on.wait()
            place.rebuilder.send_signal(signal.SIGCONT)
            try:
                assert connection.getresponse().read() == b"x" * 1024
            finally:
                is_over.set()
                flooding.result()
            assert ask(connection) == (200, b"x" * 1024)
            connection.close()


def test_the_kernel_is_left_as_it_was():
    """Without the daemon and without the table, nothing of ours is there; and the table is gone when it is removed."""
    with Place(before={"net.ipv4.conf.all.rp_filter": 1}) as place:
        assert "fwmark 0x45000000/0xff000000" in run(place.server, "ip", "rule")
        assert place.tell("remove-hook") == "0"
        wait_for(lambda: place.counts()["hooked"] == 2, "the hook is set again", 10, place.counts)
        place.rebuilder.stdin.close()  # an orderly end
        assert place.rebuilder.wait() == 0
        for command in (("ip", "rule"), ("ip", "-6", "rule"), ("ip", "link")):
            assert "fwmark" not in run(place.server, *command) and "earshot" not in run(place.server, *command)


@pytest.mark.parametrize("words", (["compat"], ["plain"], ["compat", "plain"]), ids="-".join)
def test_what_older_kernels_lack(words):
    """Hooks by xtables' target, entries without labels: all works the same."""
    with Place(words=["keep", *words]) as place:
        assert place.counts()["way"] == ("compat" in words) and place.counts()["label"] == ("plain" not in words)
        for family in (4, 6):
            connection = place.connect(family)
            assert ask(connection)[0] == 200
            assert ask(connection, path="/large") == (200, LARGE)
            assert place.tell("flush") == "0"
            wait_for(lambda: place.entries() == place.counts()["kept"], "the entries are there again", 10, place.counts)
            assert ask(connection, "PUT", "/upload/x", LARGE)[0] in (201, 204)
            connection.close()


LOSS = """\
table inet loss {
    chain in { type filter hook prerouting priority -400; iifname "wire" meta l4proto tcp numgen random mod 100 0 drop; }
}
"""


@FAMILIES
@pytest.mark.usefixtures("one_cpu")
def test_a_network_that_loses(family):
    """One packet of a hundred, both ways: SACK and timestamps are what both sides believe them to be."""
    with Place() as place:
        for namespace in (place.client, place.server):
            run(namespace, "nft", "-f", "-", stdin=LOSS)
        connection = place.connect(family)
        for _ in range(3):
            assert ask(connection, path="/large") == (200, LARGE)
        assert ask(connection, "PUT", "/upload/x", LARGE)[0] in (201, 204)
        seen = place.counters(place.client)
        assert seen["TCPSACKReorder"] + seen["TCPSackRecovery"] > 0 and seen["PAWSEstab"] == 0
        connection.close()


def test_windows_are_scaled_as_agreed():
    """The client's scale comes from the cookie, and ours is the kernel's own, which the cookie has promised."""
    with Place(client={"net.ipv4.tcp_rmem": "4096 131072 33554432"}) as place:
        connection = place.connect()
        assert ask(connection)[0] == 200
        assert place.tell("scales") == "10 7"
        connection.close()


IPPROTO_MPTCP, DEFER = 262, 9
WAYS = {"mptcp": (IPPROTO_MPTCP, {}), "defer": (0, {DEFER: 5})}


def ways():
    """Those of this kernel: Debian 11's has no MPTCP."""
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP).close()
    except OSError as failed:
        assert failed.errno in (errno.EPROTONOSUPPORT, errno.ENOPROTOOPT), failed
        return ["defer"]
    return list(WAYS)


@pytest.mark.parametrize("way", ways())
def test_servers_that_listen_in_other_ways(way):
    protocol, options = WAYS[way]
    with Place(serves=False) as place, namespaces.listen(place.server, "0.0.0.0", 80, protocol=protocol) as server:
        for option, value in options.items():
            server.setsockopt(socket.IPPROTO_TCP, option, value)
        server.settimeout(10)
        for _ in range(3):
            connection = place.connect()
            connection.request("GET", "/small")
            with server.accept()[0] as accepted:
                assert accepted.getpeername() == connection.sock.getsockname()
                assert accepted.recv(100).startswith(b"GET /small")
                accepted.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                assert connection.getresponse().read() == b"ok"
            connection.close()
        assert place.counts()["failed"] == 0


@FAMILIES
@pytest.mark.parametrize("timestamps", (1, 0), ids=("timestamps", "no-timestamps"))
def test_the_handshake_measures_nothing(timestamps, family):
    """How far the client is, its first acknowledgement tells: what BBR believes before that, it believes for ten seconds."""
    with Place(client={"net.ipv4.tcp_timestamps": timestamps}, serves=False) as place, \
            namespaces.listen(place.server, "::", 80) as server:
        server.settimeout(10)
        for _ in range(4):
            connection = place.connect(family)
            connection.request("GET", "/small")
            with server.accept()[0] as accepted:
                assert accepted.recv(100).startswith(b"GET /small")
                text = run(place.server, "ss", "-Htin", "state", "established")
                assert " cwnd:" in text and " rtt:" not in text and " minrtt:" not in text, text
                accepted.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                assert connection.getresponse().read() == b"ok"
                assert " minrtt:" in run(place.server, "ss", "-Htin", "state", "established")
            connection.close()
            wait_for(lambda: not run(place.server, "ss", "-Htn", "state", "established"), "its socket has gone")


def test_full_accept_queue():
    """The client is not reset: it repeats its request, and gets its connection when there is room again."""
    with Place(serves=False, before={"net.ipv4.tcp_syncookies": 0}) as place, \
            namespaces.listen(place.server, "0.0.0.0", 80, backlog=0) as server, contextlib.ExitStack() as taken:
        server.settimeout(10)
        connections = [place.connect() for _ in range(3)]
        for connection in connections:
            connection.request("GET", "/small")
        wait_for(lambda: place.counts()["failed"] >= 2, "two requests find no room", 10, place.counts)
        assert place.counts()["error"] == -errno.ENOBUFS
        assert place.entries() == 1
        for _ in connections:
            accepted = taken.enter_context(server.accept()[0])
            assert accepted.recv(100).startswith(b"GET /small")
            accepted.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        for connection in connections:
            assert connection.getresponse().status == 200
            connection.close()
