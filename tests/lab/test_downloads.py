# SPDX-License-Identifier: GPL-2.0-or-later
"""Long responses of a node that is lost (config key resume): another one sends the rest, or the client is told at once."""
import hashlib
import json
import os
import re
import socket
import threading
import time

import pytest

from cluster.membership import ALL, DETECTED, TOKEN, serving, settled
from earshotlab import Lab, server, wait_for
from web import raw

pytestmark = [pytest.mark.earshot, pytest.mark.corosync]

SURVIVORS = ["n1", "n3", "n4"]
COUNT = int(os.environ.get("EARSHOT_DOWNLOADS", "12"))
NAME, SIZE = "long", 20 << 20
RATE = 4 << 20  # bytes a second of each client
PIECE = 32 << 10


@pytest.fixture(scope="module", name="module_lab")
def _module_lab():
    with Lab(nodes=4, membership="corosync", policy="wrr", token=int(TOKEN * 1000), datapath="bpf",
             settings={"service.inspect": "every", "service.survive": 1, "service.resume": "on"}) as lab:
        yield lab


@pytest.fixture(name="content")
def _content(module_lab):
    content = server.file_content(NAME, SIZE)
    write(module_lab, content)
    return content


@pytest.fixture(name="lab")
def _lab(module_lab, content):
    settled(module_lab)
    serving(module_lab)
    yield module_lab
    module_lab.heal("n2")
    settled(module_lab)
    assert content


def write(lab, content):
    """Other content is another file, with a time of its own: nginx makes its ETag of time and size."""
    path = os.path.join(lab.docroot, NAME)
    with open(path + ".new", "wb") as handle:
        handle.write(content)
    os.utime(path + ".new", (1_000_000_000, 1_000_000_000 + hashlib.sha256(content).digest()[0]))
    os.rename(path + ".new", path)


class Download(threading.Thread):
    """A client that reads slowly, with a small buffer: what it has not read is at its node still."""

    def __init__(self, lab, rate=RATE, **fields):
        super().__init__(daemon=True)
        self.sock = raw.connect(lab.client, timeout=30, before=lambda sock: sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536))
        self.sock.sendall(raw.head(f"/{NAME}", **fields))
        self.response = raw.receive(self.sock, body=False)
        self.body = bytearray(self.response.text)
        self.rate = rate
        self.error = None
        self.ended = None
        self.longest = 0.0
        self.start()

    @property
    def node(self):
        return self.response.node

    def run(self):
        wanted = int(self.response.fields["content-length"])
        before = time.monotonic()
        try:
            while len(self.body) < wanted:
                piece = self.sock.recv(PIECE)
                if not piece:
                    raise EOFError(f"the body ended after {len(self.body)} of {wanted} bytes")
                now = time.monotonic()
                self.longest, before = max(self.longest, now - before), now
                self.body += piece
                time.sleep(len(piece) / self.rate)
        except (OSError, EOFError) as error:
            self.error = error
        self.ended = time.monotonic()


def downloads(lab, count=COUNT, **fields):
    """Clients that are in the middle of a response; some of them of n2, and known to the others."""
    found = [Download(lab, **fields) for _ in range(count)]
    assert "n2" in {download.node for download in found}
    wait_for(lambda: sum(told(lab)) >= count, "all responses told", seen=lambda: told(lab))
    return found


def told(lab):
    return [node.ask({"command": "flows"})["downloads"]["total"] for node in lab.nodes if node.name not in lab.dead]


def figures(lab):
    """What the survivors say that they have done: how many are whole and broken, and were reset, by why."""
    found = [lab.node(name).ask({"command": "flows"})["downloads"] for name in SURVIVORS]
    sums = {what: sum(f[what] for f in found) for what in ("whole", "broken")}
    sums.update({why: sum(f["reset"][why] for f in found) for why in found[0]["reset"]})
    return sums


def counted(lab):
    """The same, as counters say it, and as metrics do."""
    counters = [lab.counters(name) for name in SURVIVORS]
    ours = {name.removeprefix("downloads_").removeprefix("reset_") for name in counters[0] if name.startswith("downloads_")} - {"told"}
    by_counter = {what: sum(c.get(f"downloads_{what}", c.get(f"downloads_reset_{what}")) for c in counters) for what in ours}
    text = "".join(lab.node(name).exec(["earshot", "metrics"]).stdout for name in SURVIVORS)
    by_metric = dict.fromkeys(ours, 0)
    for labels, value in re.findall(r'^earshot_connections_(?:survived|reset)_total\{kind="download"(.*)\} (\d+)$', text, re.M):
        by_metric[labels.partition('reason="')[2].rstrip('"') or "whole"] += int(value)
    return by_counter, by_metric


def done(lab, before):
    return {what: n - before[what] for what, n in figures(lab).items() if n != before[what]}


def end(found):
    for download in found:
        download.join(60)
        assert not download.is_alive()


def test_go_on(lab, content):
    """A node loses its power: its clients get the rest, each byte once, and their next requests are answered on the same
    connections. When all of it is over, nothing is kept."""
    before = figures(lab)
    found = downloads(lab)
    time.sleep(1)
    foretold = json.loads(lab.node("n2").exec(["earshot", "explain", "--crash", "n2", "--json"]).stdout)
    assert (foretold["resume"], foretold["reset"]) == (sum(download.node == "n2" for download in found), 0)
    lab.kill("n2")
    end(found)
    lost = [download for download in found if download.node == "n2"]
    print(f"{len(lost)} of {len(found)} were of n2; the longest pause was {max(d.longest for d in found):.2f} s", done(lab, before))
    assert [download.error for download in found] == [None] * len(found)
    assert all(download.body == content for download in found)
    wait_for(lambda: done(lab, before) == {"whole": len(lost)}, "all counted", seen=lambda: done(lab, before))
    for download in found:
        download.sock.sendall(raw.head("/1k"))
        answer = raw.receive(download.sock)
        assert answer.status == 200 and answer.node in SURVIVORS
        download.sock.close()
    wait_for(lambda: sum(told(lab)) == 0, "nothing kept", seen=lambda: told(lab))


def test_told_at_once(lab):
    """Another node has other content by now: the clients need not wait for the rest."""
    before = figures(lab)
    found = downloads(lab)
    write(lab, server.file_content("other", SIZE))
    began = time.monotonic()
    lab.kill("n2")
    end(found)
    lost = [download for download in found if download.node == "n2"]
    slowest = max(download.ended - began for download in lost)
    print(f"{len(lost)} of {len(found)} were of n2, told after {slowest:.2f} s", done(lab, before))
    for download in found:
        assert isinstance(download.error, ConnectionResetError) == (download.node == "n2"), download.error
        download.sock.close()
    assert slowest < DETECTED
    assert done(lab, before) == {"status": len(lost)}  # 200 for 206: RFC 9110, 13.1.5
    assert counted(lab) == (figures(lab), figures(lab))


@pytest.mark.parametrize("fields,why", [({"Cookie": "a=b"}, "content"), ({"Range": "bytes=1000-15000000"}, None)], ids=["cookie", "range"])
def test_requests(lab, content, fields, why):
    """A part is gone on with like the whole; nobody is asked in the name of a client with credentials."""
    before = figures(lab)
    found = downloads(lab, **fields)
    lab.kill("n2")
    end(found)
    lost = [download for download in found if download.node == "n2"]
    print(f"{len(lost)} of {len(found)} were of n2", done(lab, before))
    for download in found:
        if why and download.node == "n2":
            assert isinstance(download.error, ConnectionResetError)
        else:
            assert download.error is None
            assert download.body == (content if why else content[1000:15000001])
        download.sock.close()
    wait_for(lambda: done(lab, before) == {why or "whole": len(lost)}, "all counted", seen=lambda: done(lab, before))


def test_members_only(lab, content):
    """Nodes that live go on with their own, whoever joins or leaves in order."""
    found = [download for download in downloads(lab) if download.node != "n2"]
    lab.stop("n2", "earshotd")
    end(found)
    lab.start("n2", "earshotd")
    settled(lab, ALL)
    assert all(download.body == content for download in found)


def holder(lab, download):
    """The node that has the client's connection."""
    port = download.sock.getsockname()[1]
    found = [node.name for node in lab.nodes if node.name not in lab.dead and raw.sockets(node, port)]
    return found[0] if found else None


def test_twice():
    """The node that goes on with it is lost, too."""
    with Lab(nodes=5, membership="corosync", policy="wrr", token=int(TOKEN * 1000), datapath="bpf",
             settings={"service.inspect": "every", "service.survive": 1, "service.resume": "on"}) as lab:
        content = server.file_content(NAME, SIZE)
        write(lab, content)
        settled(lab, ALL + ["n5"])
        serving(lab)
        found = downloads(lab, rate=RATE / 3)
        lab.kill("n2")
        lost = next(download for download in found if download.node == "n2")
        wait_for(lambda: holder(lab, lost), "a node that goes on")
        second = holder(lab, lost)
        before = sum(told(lab))
        wait_for(lambda: sum(told(lab)) >= COUNT, "all told again", seen=lambda: (before, told(lab)))
        assert lost.is_alive()
        lab.kill(second)
        end(found)
        print(f"n2 and {second}; the longest pause was {max(d.longest for d in found):.2f} s")
        assert [download.error for download in found] == [None] * COUNT
        assert all(download.body == content for download in found)
