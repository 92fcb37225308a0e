# SPDX-License-Identifier: GPL-2.0-or-later
"""HTTPS whose requests move: the connection goes to the node that each request is for, with its TLS state."""
import concurrent.futures
import contextlib
import hashlib
import itertools
import os
import random
import re
import signal
import ssl
import subprocess
import time

import pytest

from cluster import secure as cluster
from cluster.secure import ALL, round_trip
from earshotlab import families, tls, wait_for
from sizes import FULL
from web import raw, secure
from web.backend import content
from web.reader import Reader, sha256

pytestmark = pytest.mark.earshot
VERSIONS = ["1.2", "1.3"]
MOVES = 12
LARGE = 100 << 20


@pytest.fixture(scope="module", name="lab")
def _lab():
    with cluster.moving_lab() as lab:
        yield lab


@pytest.fixture(name="how", params=VERSIONS)
def _how(lab, request):
    return secure.context(lab, request.param)


@pytest.fixture(name="moves")
def _moves(lab):
    """Asserts in the end that connections have moved, so that what was tested is what it says."""
    before = cluster.total(lab, "moved")
    yield
    assert cluster.total(lab, "moved") > before


def test_each_request(lab, how, moves):
    """Each request to another node: bodies of all lengths, both ways, on one connection."""
    sock, reader = cluster.connect(lab, how)
    nodes = round_trip()
    with sock:
        for number, length in enumerate([0, 1, 1000, 16384, 16385, 100_000, 3_000_000] * 2):
            node = next(nodes)
            target = f"/len/{length}?{number}"
            sock.sendall(raw.head(target, X_To=node))
            reader.response(target)
            body = random.Random(number).randbytes(length)
            sock.sendall(raw.head("/upload", "POST", Content_Length=length, X_To=node) + body)
            response = reader.response()
            assert response.text.decode() == sha256(body)


def swallow(reader, size):
    """The digest of that much, which is too much to be kept."""
    digest = hashlib.sha256(reader.data[:size])
    size -= len(reader.data)
    assert size > 0
    reader.data = b""
    while size > 0:
        piece = reader.sock.recv(1 << 18)
        assert piece, f"{size} bytes are missing"
        digest.update(piece[:size])
        reader.data = piece[size:]
        size -= len(piece)
    return digest.hexdigest()


@pytest.mark.parametrize("version", VERSIONS if FULL else ["1.3"])
def test_large(lab, version, moves):
    """100 MB down and up, each with a request behind it at once that is for another node."""
    sock, reader = cluster.connect(lab, secure.context(lab, version), timeout=60)
    nodes, target = round_trip(), f"/len/{LARGE}"
    body = content(target, LARGE)
    right = sha256(body)
    with sock:
        sock.sendall(raw.head("/len/1", X_To=next(nodes)))
        reader.response("/len/1")
        sock.sendall(raw.head(target, X_To=next(nodes)) + raw.head("/len/2000", X_To=next(nodes)))
        assert b" 200 " in reader.until(b"\r\n\r\n")
        assert swallow(reader, LARGE) == right
        reader.response("/len/2000")
        sock.sendall(raw.head("/upload", "POST", Content_Length=LARGE, X_To=next(nodes)) + body + raw.head("/len/2000", X_To=next(nodes)))
        assert reader.response().text.decode() == right
        reader.response("/len/2000")


def stayed(lab):
    """Requests that were served where they were, since a machine that is busy did not answer in time, or for another reason."""
    counted = [cluster.counters(lab, node) for node in lab.net.nodes]
    return sum(each[name] for each in counted for name in ("asked_in_vain", "stayed_unacknowledged", "stayed_refused"))


def test_where(lab, how, moves):
    """A hundred requests in a row, each where it belongs, or it is counted why not. With netfilter a connection comes to a node
    eight times a minute, and then no more."""
    before = stayed(lab)
    sock, reader = cluster.connect(lab, how)
    right = 0
    with sock:
        for number, node in zip(range(100), round_trip()):
            sock.sendall(raw.head(f"/len/{number}", X_To=node))
            right += reader.response(f"/len/{number}").node == node
    assert 100 - right <= stayed(lab) - before, right
    assert right >= (23 if lab.options["datapath"] == "netfilter" else 50), right


def test_back(lab, how, moves):
    """To and fro: the socket that a node has given away is gone before its connection comes back, without the kernel's grace period. With
    netfilter, no oftener than a connection may come to a node there."""
    seen, times = [], 12 if lab.options["datapath"] == "netfilter" else 40

    def refused():
        return sum(lab.counters(node)["connection_refused"] for node in lab.net.nodes)

    def went_to_and_fro():
        before = refused()
        sock, reader = cluster.connect(lab, how)
        with sock:
            for number in range(times):
                sock.sendall(raw.head(f"/len/{number}", X_To=["n1", "n2"][number % 2]))
                reader.response(f"/len/{number}")
        seen.append(refused() - before)
        return seen[-1] < times / 8  # some, where the machine is slow

    wait_for(went_to_and_fro, "a connection that is not refused where it comes from", seen=lambda: seen)


def congestion_window(lab, node, sock):
    """Of the socket that this node has for it, in segments; 0: none."""
    shown = lab.node(node).exec(["ss", "-Htin", "dport", "=", f":{sock.getsockname()[1]}"]).stdout
    found = re.search(r" cwnd:(\d+)", shown)
    return int(found[1]) if found else 0


def test_window(lab, how, moves):
    """The congestion window comes along, unless the connection has paused for longer than a retransmission would."""
    seen = []

    def moved():
        sock, reader = cluster.connect(lab, how)
        with sock:
            for length, node in ((1, "n2"), (3_000_000, "n1"), (2, "n2")):
                sock.sendall(raw.head(f"/len/{length}", X_To=node))
                reader.response(f"/len/{length}")
            seen.append(congestion_window(lab, "n2", sock))
        return seen[-1] > 50

    wait_for(moved, "a window that comes along", seen=lambda: seen)


@pytest.mark.parametrize("cipher", list(secure.CIPHERS))
def test_ciphers(lab, cipher, moves):
    """Each cipher of TLS 1.2."""
    sock, reader = cluster.connect(lab, secure.context(lab, "1.2", cipher=cipher))
    with sock:
        for number, node in zip(range(MOVES), round_trip()):
            sock.sendall(raw.head(f"/len/{number}000", X_To=node))
            reader.response(f"/len/{number}000")


@pytest.mark.parametrize("suite", ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"])
def test_suites(lab, suite, moves):
    """Each suite of TLS 1.3, by curl."""
    ca = f"{tls.directory(lab.directory)}/ca.pem"
    argv = ["curl", "-sS", "--tls13-ciphers", suite, "--cacert", ca]
    for number, node in zip(range(MOVES), round_trip()):
        argv += ["--next"] * bool(number) + ["-sS", "--max-time", "10", "--tls13-ciphers", suite, "--cacert", ca, "-H", f"X-To: {node}",
                                             "-o", f"{lab.directory}/out{number}", f"https://{families.in_url(lab.net.vip)}/len/{number}123"]
    lab.client.exec(argv)
    for number in range(MOVES):
        with open(f"{lab.directory}/out{number}", "rb") as got:
            assert got.read() == content(f"/len/{number}123", int(f"{number}123"))


def test_cut(lab, how, moves):
    """Records that arrive byte by byte, and requests cut into records everywhere."""
    sock, reader = cluster.connect(lab, how)
    nodes = round_trip()
    with sock:
        text = raw.head("/len/200", X_To="n1")
        for at in range(1, len(text), 9):
            head = raw.head("/len/200", X_To=next(nodes))
            for record in (sock.protect(head[:at]), sock.protect(head[at:])):
                for byte in range(0, len(record), 7):
                    sock.sock.sendall(record[byte:byte + 7])
            reader.response("/len/200")
        head = raw.head("/len/201", X_To=next(nodes))
        for record in sock.records(head, 1):
            sock.sock.sendall(record)
        reader.response("/len/201")


def test_pipelined(lab, how, moves):
    """Requests in one record, for different nodes: answered in order, wherever the connection is then."""
    sock, reader = cluster.connect(lab, how)
    with sock:
        for turn in range(5):
            targets = [f"/len/{turn}{number}" for number in range(10)]
            heads = b"".join(raw.head(target, X_To=node) for target, node in zip(targets, round_trip()))
            for record in sock.records(heads, (1 << 14, 100, 333, 1000, 50)[turn]):
                sock.sock.sendall(record)
            for target in targets:
                reader.response(target)


def test_uploads(lab, how, moves):
    """Bodies that are on their way while their request moves, chunked, with 100 Continue, answered early."""
    sock, reader = cluster.connect(lab, how)
    body = random.Random(7).randbytes(700_000)
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (
        body[at:at + 7777] for at in range(0, len(body), 7777))) + b"0\r\nX-Trailer: 1\r\n\r\n"
    with sock:
        for node in ("n1", "n2", "n3"):
            sock.sendall(raw.head("/upload", "POST", Transfer_Encoding="chunked", X_To=node) + chunked)
            assert reader.response().text.decode() == sha256(body)
            sock.sendall(raw.head("/continue", "PUT", Content_Length=len(body), Expect="100-continue", X_To=node))
            assert reader.response(interim=True).status == 100
            sock.sendall(body)
            assert reader.response().text.decode() == sha256(body)
            sock.sendall(raw.head("/early/5000", "POST", Content_Length=len(body), X_To=node))
            reader.response()
            sock.sendall(body)


def test_long_head(lab, how):
    """A head of more than can move is served where it is."""
    sock, reader = cluster.connect(lab, how)
    with sock:
        for node in ALL:
            sock.sendall(raw.head("/len/100", X_To=node, X_Long="a" * 62_000))
            reader.response("/len/100")
            sock.sendall(raw.head("/len/101", X_To=node, X_Long="a" * 40_000))
            reader.response("/len/101")


def test_kinds(lab, how, moves):
    """Responses that end in all the ways there are."""
    cases = [("/chunks/20/0", "GET"), ("/len/5000", "HEAD"), ("/status/204", "GET"), ("/status/304", "GET"), ("/hints/3000", "GET"),
             ("/slow/30", "GET"), ("/early/7000", "GET")]
    sock, reader = cluster.connect(lab, how)
    with sock:
        for (target, method), node in zip(cases * 3, round_trip()):
            sock.sendall(raw.head(target, method, X_To=node))
            response = reader.response(method=method)
            if target.startswith(("/hints", "/early", "/slow")):
                assert response.text == content(target, response.size) and response.size


def test_names_and_certificates(lab, moves):
    """The name that the client has asked for stays with the connection, and so does its certificate."""
    for name in ("www.example.org", "other.example.org"):
        sock, reader = cluster.connect(lab, name=name)
        with sock:
            for node in ALL:
                sock.sendall(raw.head("/len/9", X_To=node))
                reader.response("/len/9")


def test_end(lab, how, moves):
    """After a move: close_notify, half-closing, a last request with Connection: close."""
    for node in ALL:
        sock, reader = cluster.connect(lab, how)
        with sock:
            sock.sendall(raw.head("/len/10", X_To=node))
            reader.response("/len/10")
            sock.sendall(raw.head("/slow/50", Connection="close", X_To=ALL[ALL.index(node) - 1]))
            assert reader.response().text == content("/slow/50", 10)
            assert sock.recv(1) == b""
        with contextlib.suppress(ssl.SSLError):
            sock, reader = cluster.connect(lab, how)
            with sock:
                sock.sendall(raw.head("/len/11", X_To=node))
                reader.response("/len/11")
                sock.close_notify()
                assert sock.sock.recv(100)
        with cluster.connect(lab, how)[0] as sock:
            sock.sendall(raw.head("/slow/20", X_To=node))
            sock.sock.shutdown(1)
            data = b""
            while piece := sock.recv(1000):
                data += piece
            assert data.endswith(content("/slow/20", 10))


def test_tickets(lab, moves):
    """A client whose first request has moved has got its tickets all the same, and each node takes them."""
    how, session = secure.context(lab, "1.3"), None
    for number, node in zip(range(MOVES), round_trip()):
        sock, reader = cluster.connect(lab, how, session=session)
        with sock:
            assert sock.tls.session_reused == bool(number)
            sock.sendall(raw.head("/len/3", X_To=node))
            reader.response("/len/3")
            session = sock.tls.session


@pytest.mark.parametrize("version", VERSIONS)
def test_short_records(lab, version):
    """A client that wants records of 512 bytes has its requests moved, between nodes that have heard of each other."""
    sock, reader = cluster.connect(lab, secure.context(lab, version))
    with sock:
        for node in itertools.islice(round_trip(), 7):
            sock.sendall(raw.head("/len/1", X_To=node))
            reader.response("/len/1")
    before = cluster.total(lab, "moved")
    client = lab.client.popen(["openssl", "s_client", "-quiet", "-maxfraglen", "512", f"-tls{version.replace('.', '_')}",
                               "-connect", f"{families.in_url(lab.net.vip)}:{tls.PORT}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=False)
    try:
        for node in itertools.islice(round_trip(), 7):
            client.stdin.write(raw.head("/len/5000", X_To=node))
            client.stdin.flush()
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                byte = client.stdout.read(1)
                assert byte, client.stderr.read()
                head += byte
            assert client.stdout.read(5000) == content("/len/5000", 5000)
    finally:
        client.kill()
    assert cluster.total(lab, "moved") > before


def test_many(lab, how, moves):
    """Many connections at a time, each to and fro."""
    def one(seed):
        order = random.Random(seed)
        sock, reader = cluster.connect(lab, how, timeout=30)
        with sock:
            for number in range(15):
                target = f"/len/{order.randrange(30000)}?{seed}.{number}"
                sock.sendall(raw.head(target, X_To=order.choice(ALL)))
                reader.response(target)
        return 1

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(one, range(48))) == 48


def test_replayed(lab):
    """Nothing of a moved connection can be used a second time, nor by who only has the network: what is no state is refused."""
    before = cluster.total(lab, "arrived")
    with raw.connect(lab.client, (lab.net.vip, tls.PORT)) as sock, contextlib.suppress(ConnectionResetError):
        sock.sendall(b"\xe5\x01" + random.Random(3).randbytes(1000))
        while sock.recv(1000):
            pass
    assert cluster.total(lab, "arrived") == before


@pytest.mark.no_netfilter("the daemon is the datapath: while it stands still, no packet of a new connection gets through")
def test_asks_nobody(lab, how):
    """Where the daemon does not answer, a node serves what it has."""
    lab.node("n1").signal("earshotd", signal.SIGSTOP)
    try:
        for _ in range(6):
            sock, reader = cluster.connect(lab, how)
            with sock:
                for _ in range(3):
                    sock.sendall(raw.head("/len/10", X_To="n2"))
                    reader.response("/len/10")
    finally:
        lab.node("n1").signal("earshotd", signal.SIGCONT)


def downloads(lab, how, stop, errors, seed):
    """A client that goes on until `stop`, and whose connection may end between two requests only."""
    order = random.Random(seed)
    done = 0
    while not stop.is_set():
        sock, reader = cluster.connect(lab, how, timeout=30)
        with sock:
            for number in range(50):
                if stop.is_set():
                    break
                target = f"/len/{order.randrange(100000)}?{seed}.{number}"
                sock.sendall(raw.head(target, X_To=order.choice(ALL)))
                try:
                    reader.response(target)
                except Exception as error:  # pylint: disable=broad-exception-caught
                    errors.append(f"{target}: {type(error).__name__}: {error}")
                    return done
                done += 1
    return done


@contextlib.contextmanager
def load(lab, how, clients=6):
    import threading  # pylint: disable=import-outside-toplevel
    stop, errors = threading.Event(), []
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        runs = [pool.submit(downloads, lab, how, stop, errors, seed) for seed in range(clients)]
        try:
            yield errors
        finally:
            stop.set()
        assert sum(run.result() for run in runs) > clients
    assert not errors


def test_reload(lab, how, moves):
    """New certificates while requests are under way: no request fails, and the next handshake shows them."""
    place = tls.directory(lab.directory)
    with load(lab, how):
        for turn in range(3):
            tls.make_certificate(place, "www", (*tls.NAMES, f"turn{turn}.example.org"), lab.net.vips)
            cluster.reload(lab)
            for _ in range(6):
                with secure.Secure(lab, name=f"turn{turn}.example.org"):
                    pass


def test_bad_reload(lab):
    """Files that are wrong change nothing, and the log says which, and where that is asked for."""
    place = tls.directory(lab.directory)
    os.rename(f"{place}/other.key", f"{place}/other.kept")
    pid = lab.pid("n1", tls.NAME)
    try:
        os.kill(pid, signal.SIGHUP)
        wait_for(lambda: "what was in force stays so" in cluster.log_of(lab, "n1"), "the log")
        line = next(line for line in cluster.log_of(lab, "n1").splitlines() if "stays so" in line)
        assert f"{place}/other.key" in line and f"{lab.config_file}:" in line and "service https" in line
        for _ in range(6):
            with secure.Secure(lab, name="other.example.org"):
                pass
    finally:
        os.rename(f"{place}/other.kept", f"{place}/other.key")


def test_worker_dies(lab, how):
    """Who is on a worker that is killed is cut off; nobody else is, and another worker takes its place."""
    wait_for(lambda: len(cluster.workers(lab, "n1")) == 2, "no worker of a generation before", seen=lambda: cluster.workers(lab, "n1"))
    before = cluster.workers(lab, "n1")
    os.kill(before[0], signal.SIGKILL)
    wait_for(lambda: len(cluster.workers(lab, "n1")) == len(before) and cluster.workers(lab, "n1") != before, "another worker")
    for number in range(20):
        sock, reader = cluster.connect(lab, how)
        with sock:
            sock.sendall(raw.head(f"/len/{number}", X_To="n1"))
            reader.response(f"/len/{number}")
    assert "was ended by signal 9" in cluster.log_of(lab, "n1")


def test_stop(lab, how):
    """SIGTERM: who is being served is served to the end, who waits is told by close_notify, and other nodes go on."""
    idle, idle_reader = cluster.connect(lab, how)
    idle.sendall(raw.head("/len/1", X_To="n1"))
    assert idle_reader.response("/len/1").node == "n1"
    busy, busy_reader = cluster.connect(lab, how)
    busy.sendall(raw.head("/chunks/20/50", X_To="n1"))
    busy_reader.until(b"\r\n\r\n")
    lab.stop("n1", tls.NAME)
    try:
        assert idle.recv(1) == b""
        busy_reader.until(b"0\r\nX-Trailer: yes\r\n\r\n")
        assert busy.recv(1) == b""
        wait_for(lambda: lab.status("n2")["nodes"][0].get("trouble") or True, "n2")
        for _ in range(6):
            sock, reader = cluster.connect(lab, how, timeout=20)
            with sock:
                sock.sendall(raw.head("/len/2"))
                assert reader.response("/len/2").node in ("n2", "n3")
    finally:
        lab.start("n1", tls.NAME)
    idle.close()
    busy.close()


def start_again(lab):
    """n1's earshot-tls, which is about to end."""
    wait_for(lambda: lab.pid("n1", tls.NAME) is None, "the end")
    lab.start("n1", tls.NAME)
    wait_for(lambda: not lab.status("n2")["nodes"][0].get("trouble"), "n1")


def test_arrivals_at_a_stop(lab, how):
    """Who comes to a node just when its earshot-tls ends is served, there or elsewhere."""
    ports = raw.ports(lab, "n1", 20000, "https")
    ours = [next(ports) for _ in range(12)]
    for _ in range(3):
        os.kill(lab.pid("n1", tls.NAME), signal.SIGTERM)
        with contextlib.ExitStack() as stack:
            stack.callback(start_again, lab)
            socks = [stack.enter_context(raw.connect(lab.client, (lab.net.vip, tls.PORT), port=port, timeout=20)) for port in ours]
            for number, sock in enumerate(socks):
                secured = secure.Secure(lab, how, sock=sock)
                secured.sendall(raw.head(f"/len/{number}"))
                Reader(secured).response(f"/len/{number}")


def answered(lab, how, sock, number):
    secured = secure.Secure(lab, how, sock=sock)
    secured.sendall(raw.head(f"/len/{number}"))
    Reader(secured).response(f"/len/{number}")


def listening(lab, node):
    return lab.node(node).exec(["ss", "-Hltn", f"sport = :{tls.PORT}"]).stdout


def test_nobody_arrives_at_sockets_that_will_be_closed(lab, how):
    """From the moment at which earshot-tls is told to end, others take who comes: while its workers, which stand still here, have their sockets."""
    ports = raw.ports(lab, "n1", 21000, "https")
    with contextlib.ExitStack() as stack:
        frozen = cluster.workers(lab, "n1")
        stack.callback(start_again, lab)
        for pid in frozen:
            stack.callback(os.kill, pid, signal.SIGCONT)
            os.kill(pid, signal.SIGSTOP)
        os.kill(lab.pid("n1", tls.NAME), signal.SIGTERM)
        wait_for(lambda: "%" in listening(lab, "n1"), "they are bound to no interface that there is", 5, lambda: listening(lab, "n1"))
        for number in range(5):
            answered(lab, how, stack.enter_context(raw.connect(lab.client, (lab.net.vip, tls.PORT), port=next(ports), timeout=10)), number)


def waiting(lab):
    """Connections that nobody has accepted yet."""
    return sum(int(row.split()[1]) for node in ALL for row in listening(lab, node).splitlines())


def test_fewer_workers(lab, how):
    """A reload takes a worker away, in whose queue some wait: it accepts them before it closes it."""
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(raw.connect(lab.client, (lab.net.vip, tls.PORT), timeout=20)) for _ in range(16)]
        change = stack.enter_context(cluster.changed(lab))
        pool = stack.enter_context(concurrent.futures.ThreadPoolExecutor(len(socks)))
        frozen = [pid for node in ALL for pid in cluster.workers(lab, node)]
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        try:
            results = [pool.submit(answered, lab, how, sock, number) for number, sock in enumerate(socks)]
            wait_for(lambda: waiting(lab) >= len(socks), "all in the queues", 10, lambda: waiting(lab))  # and checks of the servers
            change("workers = 2", "workers = 1")
        finally:
            for pid in frozen:
                with contextlib.suppress(ProcessLookupError):  # one of a generation before was about to end
                    os.kill(pid, signal.SIGCONT)
        for result in results:
            result.result()


def test_forbidden(lab):
    """A worker cannot do what serving does not need: its own filter says so."""
    for pid in cluster.workers(lab, "n2"):
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            fields = dict(line.split(":", 1) for line in status)
        assert fields["Seccomp"].strip() == "2" and fields["NoNewPrivs"].strip() == "1"
        with open(f"/proc/{pid}/limits", encoding="ascii") as limits:
            assert next(line for line in limits if line.startswith("Max core")).split()[4:6] == ["0", "0"]


def test_wrk(lab, moves):
    """A load generator for some seconds, with all requests of each connection to other nodes: no error."""
    script = f"{lab.directory}/nodes.lua"
    with open(script, "w", encoding="ascii") as out:
        out.write('local i = 0\nrequest = function() i = i + 1 return wrk.format("GET", "/len/1000", {["X-To"] = "n" .. i % 3 + 1}) end\n')
    done = lab.client.exec(["wrk", "-t1", "-c8", "-d3s", "--timeout", "10s", "-s", script, f"https://{families.in_url(lab.net.vip)}/"])
    assert "Socket errors" not in done.stdout and "Non-2xx" not in done.stdout, done.stdout
