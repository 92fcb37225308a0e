# SPDX-License-Identifier: GPL-2.0-or-later
"""earshot-tls in front of a server, nothing moved: bytes, ends, and what is refused."""
import base64
import contextlib
import json
import os
import random
import select
import signal
import socket
import ssl
import subprocess
import time

import pytest

from cluster import secure as cluster
from earshotlab import families, probe, server, tls, wait_for
from web import raw, secure
from web.backend import content
from web.reader import sha256
from web.secure import Secure

pytestmark = pytest.mark.earshot
VERSIONS = ["1.2", "1.3"]
LENGTHS = [0, 1, 1000, 16384, 16385, 100_000, 5_000_000]
PAUSE_S = 8  # longer than ES_SERVE_LINGER_S, shorter than ES_SERVE_STUCK_S


@pytest.fixture(scope="module", name="lab")
def _lab():
    with cluster.lab_of({"https.inspect": "never"}) as lab:
        cluster.start_backends(lab)
        yield lab


@pytest.fixture(name="how", params=VERSIONS)
def _how(lab, request):
    return secure.context(lab, request.param)


def ask(lab, target, how=None, data=None, **keywords):
    """One request on a connection of its own."""
    sock, reader = cluster.connect(lab, how)
    with sock:
        sock.sendall(data or raw.head(target, **keywords))
        return reader.response()


def test_lengths(lab, how):
    """Bodies of all lengths, both ways, one after the other on one connection."""
    sock, reader = cluster.connect(lab, how)
    with sock:
        for length in LENGTHS:
            sock.sendall(raw.head(f"/len/{length}"))
            reader.response(f"/len/{length}")
            body = random.Random(length).randbytes(length)
            sock.sendall(raw.head("/upload", "POST", Content_Length=length) + body)
            assert reader.response().text.decode() == sha256(body)


@pytest.mark.parametrize("cipher", list(secure.CIPHERS))
def test_ciphers(lab, cipher):
    """Each cipher of TLS 1.2."""
    how = secure.context(lab, "1.2", cipher=cipher)
    sock, reader = cluster.connect(lab, how)
    with sock:
        assert sock.tls.cipher()[0] == secure.CIPHERS[cipher]
        for _ in range(3):
            sock.sendall(raw.head("/len/100000"))
            reader.response("/len/100000")


@pytest.mark.parametrize("version", VERSIONS)
def test_curl(lab, version):
    """A stock client: 20 MB each way."""
    body = os.path.join(lab.directory, "body")
    with open(body, "wb") as out:
        out.write(random.Random(1).randbytes(20 << 20))
    base = ["curl", "-sS", "--max-time", "60", "--cacert", f"{tls.directory(lab.directory)}/ca.pem", "--tls-max", version]
    url = f"https://{families.in_url(lab.net.vip)}"
    done = lab.client.exec([*base, "-H", "Expect:", "--data-binary", f"@{body}", f"{url}/upload"])
    with open(body, "rb") as sent:
        assert done.stdout == sha256(sent.read())
    lab.client.exec([*base, "-o", body, f"{url}/len/20971520"])
    with open(body, "rb") as got:
        assert got.read() == content("/len/20971520", 20 << 20)
    done = lab.client.exec([*base, "-T", body, f"{url}/upload"])  # with Expect: 100-continue
    assert done.stdout == sha256(content("/len/20971520", 20 << 20))


def test_kinds(lab, how):
    """Responses that end in all the ways there are, pipelined and not."""
    cases = [("/chunks/20/0", "GET"), ("/len/5000", "HEAD"), ("/status/204", "GET"), ("/status/304", "GET"), ("/hints/3000", "GET"),
             ("/len/10", "OPTIONS"), ("/slow/30", "GET"), ("/nowhere", "GET"), ("/early/7000", "GET")]
    sock, reader = cluster.connect(lab, how)
    with sock:
        def answered():
            for target, method in cases:
                response = reader.response(method=method)
                if "/chunks/" in target:
                    assert response.text == b"".join(content(f"{target} {i}", 100) for i in range(20))
                elif target == "/len/5000":
                    assert response.fields["content-length"] == "5000"
                elif "/status/" in target:
                    assert response.status == int(target[-3:])
                elif target == "/nowhere":
                    assert response.status == 404
                else:
                    assert response.text == content(target, response.size) and response.size

        for target, method in cases:
            sock.sendall(raw.head(target, method))
        answered()
        heads = b"".join(raw.head(target, method) for target, method in cases)
        sock.sendall(heads)
        answered()
        for byte in heads:
            sock.sendall(bytes((byte,)))  # a record for each
        answered()


def test_cut(lab, how):
    """Encrypted bytes that arrive one by one, and records that hold parts of three requests."""
    sock, reader = cluster.connect(lab, how)
    with sock:
        for byte in sock.protect(raw.head("/len/300")):
            sock.sock.sendall(bytes((byte,)))
        reader.response("/len/300")
        heads = b"".join(raw.head(f"/len/{i}") for i in range(100, 160))
        records = sock.records(heads, 97)
        stream = b"".join(records)
        for at in range(0, len(stream), 611):
            sock.sock.sendall(stream[at:at + 611])
        for i in range(100, 160):
            reader.response(f"/len/{i}")


def test_uploads(lab, how):
    """Chunked ones, ones with 100 Continue, one that is answered before it is read."""
    sock, reader = cluster.connect(lab, how)
    body = random.Random(7).randbytes(300_000)
    pieces = [body[at:at + 7777] for at in range(0, len(body), 7777)]
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\nX-Trailer: 1\r\n\r\n"
    with sock:
        sock.sendall(raw.head("/upload", "POST", Transfer_Encoding="chunked") + chunked + raw.head("/len/20"))
        assert reader.response().text.decode() == sha256(body)
        reader.response("/len/20")
        sock.sendall(raw.head("/continue", "PUT", Content_Length=len(body), Expect="100-continue"))
        assert reader.response(interim=True).status == 100
        sock.sendall(body)
        assert reader.response().text.decode() == sha256(body)
        sock.sendall(raw.head("/early/5000", "POST", Content_Length=len(body)))
        reader.response()
        sock.sendall(body + raw.head("/len/21"))
        reader.response("/len/21")


def test_many(lab, how):
    """A thousand requests on one connection."""
    sock, reader = cluster.connect(lab, how)
    with sock:
        for i in range(1000):
            sock.sendall(raw.head(f"/len/{i}"))
            reader.response(f"/len/{i}")


def test_slow_reader(lab, how):
    """Who does not read stops the server, and gets everything in the end; others do not notice."""
    sock, reader = cluster.connect(lab, how)
    with sock:
        sock.sendall(raw.head("/len/8000000"))
        time.sleep(0.3)  # the time in which all buffers become full; nothing depends on it
        assert ask(lab, "/len/10", how).status == 200
        reader.response("/len/8000000")


def test_pause_before_the_end(lab, how):
    """The last response of a connection, to a client that reads nothing for a while: it waits in TCP, and nobody takes it back."""
    def narrow(sock):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)

    sock, reader = cluster.connect(lab, how, sock=raw.connect(lab.client, (lab.net.vip, tls.PORT), before=narrow))
    with sock:
        sock.sendall(raw.head("/len/60000", Connection="close"))
        ends = select.poll()
        ends.register(sock.sock, select.POLLRDHUP)  # as a RST is an error, too
        assert not ends.poll(PAUSE_S * 1000)
        reader.response("/len/60000")
        assert sock.recv(1) == b""


def test_until_close(lab, how):
    """A response without a length ends with close_notify; one that the server breaks off does not."""
    with Secure(lab, how) as sock:
        sock.sendall(raw.head("/close/70000"))
        data = b""
        while piece := sock.recv(1 << 16):
            data += piece
        assert data.partition(b"\r\n\r\n")[2] == content("/close/70000", 70000)


def test_half_close(lab, how):
    """FIN after a request: its response arrives nevertheless, and then close_notify."""
    sock, reader = cluster.connect(lab, how)
    with sock:
        sock.sendall(raw.head("/slow/100"))
        sock.sock.shutdown(socket.SHUT_WR)
        assert reader.response().text == content("/slow/100", 10)
        assert sock.recv(1) == b""


def test_close_notify(lab, how):
    """The same after close_notify, behind which Python reads no more: so these are records as they come."""
    with Secure(lab, how) as sock:
        sock.sendall(raw.head("/slow/100"))
        sock.close_notify()
        kinds = secure.types(b"".join(iter(lambda: sock.sock.recv(1 << 16), b"")))
    assert len(kinds) >= 2 and set(kinds[:-1]) == {secure.DATA} and kinds[-1] in (secure.DATA, secure.ALERT), kinds


def test_websocket(lab, how):
    """After 101 both sides speak, with what the client has sent too early."""
    def frame(data):
        return b"\x82" + (bytes((0x80 | len(data),)) if len(data) < 126 else b"\xfe" + len(data).to_bytes(2, "big")) + bytes(4) + data

    sock, reader = cluster.connect(lab, how)
    key = base64.b64encode(b"0123456789abcdef").decode()
    with sock:
        sock.sendall(raw.head("/ws", Upgrade="websocket", Connection="Upgrade", Sec_WebSocket_Key=key, Sec_WebSocket_Version=13) +
                     frame(b"early"))
        assert reader.response().status == 101
        assert reader.exactly(7) == b"\x82\x05early"
        for size in (0, 125, 126, 16000, 65000):
            data = random.Random(size).randbytes(size)
            sock.sendall(frame(data))
            reader.exactly(2 if size < 126 else 4)
            assert reader.exactly(size) == data
        sock.sendall(b"\x88\x80" + bytes(4))
        assert sock.recv(1) == b""


REFUSED = {
    "two lengths": (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
    "length and coding": (b"POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "space before colon": (b"GET /len/1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n", 400),
    "bare line feeds": (b"GET /len/1 HTTP/1.1\nHost: x\n\n", 400),
    "no HTTP": (b"hello there, what is this?\r\n\r\n", 400),
    "HTTP/2 without ALPN": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "tunnel": (b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n", 405),
    "long head": (b"GET /len/1 HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 70_000 + b"\r\n\r\n", 431),
}


@pytest.mark.parametrize("what", list(REFUSED))
def test_refused(lab, how, what):
    """What two servers could read differently goes to none; the answer arrives, and the connection ends."""
    data, status = REFUSED[what]
    sock, reader = cluster.connect(lab, how)
    with sock:
        sock.sendall(data + raw.head("/len/1"))
        assert reader.response().status == status
        assert sock.recv(1) == b""


def test_bad_chunks(lab, how):
    """A chunked body that is none ends the connection, and the server gets no request of it."""
    sock, reader = cluster.connect(lab, how)
    with sock:
        sock.sendall(raw.head("/upload", "POST", Transfer_Encoding="chunked") + b"zz\r\n" + raw.head("/len/1"))
        assert reader.response().status == 400


def test_told(lab):
    """What the server behind is told, and that clients cannot lie about it."""
    sock, reader = cluster.connect(lab)
    with sock:
        sock.sendall(raw.head("/head", X_Forwarded_For="6.6.6.6", X_Real_IP="6.6.6.6", Forwarded="for=6.6.6.6", X_FORWARDED_PROTO="http",
                              X_Mine="stays"))
        response, address = reader.response(), sock.getsockname()[0]
    told = json.loads(response.text)
    assert told["x-forwarded-for"] == address and told["x-forwarded-proto"] == "https"
    assert "6.6.6.6" not in response.text.decode() and told["x-mine"] == "stays" and told["host"] == raw.HOST


@pytest.fixture(name="other_files")
def _other_files(lab):
    with cluster.changed(lab) as change:
        yield change


def test_client_certificate(lab, other_files):
    """One that the authority has issued is verified, and told; without one, or with another's, there is no connection."""
    place = tls.directory(lab.directory)
    tls.make_certificate(place, "client", ["client"], more=["-addext", "extendedKeyUsage=clientAuth"])
    other_files("tls {", f"tls {{ client_ca = {place}/ca.pem ")
    for version in VERSIONS:
        response = ask(lab, "/head", secure.context(lab, version, certificate=f"{place}/client"))
        digest = lab.client.exec(["openssl", "x509", "-in", f"{place}/client.pem", "-noout", "-fingerprint", "-sha256"]).stdout
        assert json.loads(response.text)["x-ssl-client-sha256"].upper() == digest.partition("=")[2].strip().replace(":", "")
        with pytest.raises((ssl.SSLError, ConnectionResetError)):
            ask(lab, "/head", secure.context(lab, version))


@pytest.mark.parametrize("tell", ["x-forwarded", "forwarded", "nothing"])
def test_tell(lab, other_files, tell):
    """What is told instead, and what then is not."""
    other_files("tls {", f"tls {{ tell = {tell} ")
    told = json.loads(ask(lab, "/head", X_Forwarded_For="6.6.6.6").text)
    assert ("x-forwarded-for" in told, "forwarded" in told) == (tell == "x-forwarded", tell == "forwarded")
    assert "6.6.6.6" not in str(told)


def test_proxy_protocol(lab, other_files):
    """nginx on a UNIX socket hears of the client by the PROXY protocol: of each, with all of its requests."""
    path = os.path.join(lab.directory, "proxy.sock")
    place = os.path.join(lab.directory, "proxy")
    os.makedirs(place, exist_ok=True)
    lab.node("n1").popen(server.nginx(place, f"""
        access_log off;
        server {{
            listen unix:{path} proxy_protocol;
            location / {{ return 200 "$proxy_protocol_addr $proxy_protocol_port"; }}
        }}""", "proxy"))  # all nodes reach it
    wait_for(lambda: probe.connects(path), "nginx")
    other_files(f'server = "{cluster.BEHIND}"', f'tell = proxy server = "unix:{path}"')
    for _ in range(9):
        connections = [cluster.connect(lab) for _ in range(2)]
        for _ in range(3):
            for sock, reader in connections:
                sock.sendall(raw.head("/"))
                assert reader.response().text.decode() == "{} {}".format(*sock.getsockname())
        for sock, _ in connections:
            sock.close()


def test_names(lab):
    """The name that the client asks for decides on the certificate."""
    for name, shown in (("www.example.org", "www"), ("a.www.example.org", "www"), ("other.example.org", "other")):
        with Secure(lab, name=name) as sock:
            assert dict(each[0] for each in sock.tls.getpeercert()["subject"])["commonName"] == shown
    with pytest.raises(ssl.SSLCertVerificationError):
        Secure(lab, name="third.example.org")


@pytest.mark.parametrize("version", VERSIONS)
def test_resumed(lab, version):
    """Each node resumes what any has begun."""
    how, session, nodes = secure.context(lab, version), None, set()
    for number in range(30):
        sock, reader = cluster.connect(lab, how, session=session)
        with sock:
            assert sock.tls.session_reused == bool(number)
            sock.sendall(raw.head("/len/3"))
            nodes.add(reader.response("/len/3").node)
            session = sock.tls.session
    assert nodes == set(cluster.ALL)


def test_key_update(lab):
    """KeyUpdates of both kinds between requests, and within a head."""
    child = lab.client.popen(["openssl", "s_client", "-tls1_3", "-crlf", "-connect", f"{families.in_url(lab.net.vip)}:{tls.PORT}"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=False)
    os.set_blocking(child.stdout.fileno(), False)
    seen = b""

    def sees(text, times=1):
        nonlocal seen
        seen += child.stdout.read() or b""
        return seen.count(text) >= times

    def types_in(text, until, times):
        child.stdin.write(text)
        child.stdin.flush()
        wait_for(lambda: sees(until, times), f"{until} {times} times", seen=lambda: seen[-2000:])

    wait_for(lambda: sees(b"Verify return code"), "the handshake", seen=lambda: seen)
    for number, letter in enumerate((b"K\n", b"k\n") * 2, 1):
        types_in(letter, b"KEYUPDATE", 2 * number - 1)
        child.stdin.write(b"GET /len/4%d HTTP/1.1\nHost: x\nX-A: " % number)
        child.stdin.flush()
        time.sleep(0.1)  # s_client takes what it reads at once for one text: a letter for itself is a command
        types_in(letter, b"KEYUPDATE", 2 * number)
        types_in(b"x\n\n", content(f"/len/4{number}", 40 + number), 1)
    child.kill()


def test_garbage(lab):
    """What is no TLS, and records that are not authentic, end the connection, and nothing else."""
    for data in (b"GET / HTTP/1.0\r\n\r\n", b"\x16\x03\x01\x00\x05hello", b"\xe5" + bytes(600), random.Random(5).randbytes(3000)):
        with raw.connect(lab.client, (lab.net.vip, tls.PORT)) as sock, contextlib.suppress(ConnectionResetError):
            sock.sendall(data)
            while sock.recv(1000):
                pass
    for version in VERSIONS:
        with Secure(lab, secure.context(lab, version)) as sock:
            record = bytearray(sock.protect(raw.head("/len/1")))
            record[-1] ^= 1
            sock.sock.sendall(record)
            with pytest.raises(ssl.SSLError, match="(?i)bad.record.mac"):
                sock.recv(1)
    assert ask(lab, "/len/5").status == 200
    assert cluster.total(lab, "records_bad") >= 2


def test_client_leaves(lab, how):
    """A client that resets its connection in the middle leaves nothing behind."""
    for _ in range(20):
        sock = Secure(lab, how)
        sock.sendall(raw.head("/len/5000000"))
        sock.recv(1000)
        raw.reset(sock.sock)
    wait_for(lambda: all((lambda c: c["accepted"] == c["ended"])(cluster.counters(lab, node)) for node in cluster.ALL), "all to be ended")
