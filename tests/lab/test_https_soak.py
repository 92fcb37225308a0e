# SPDX-License-Identifier: GPL-2.0-or-later
"""HTTPS for a while, every request moving, some keys renewed, while earshot-tls is restarted, reloaded, and loses workers: nothing fails but
what was on a worker that was killed. EARSHOT_HTTPS_SECONDS sets the time, EARSHOT_SEED the order of events."""
import collections
import contextlib
import os
import random
import signal
import subprocess
import threading
import time

import pytest

from cluster import secure as cluster
from cluster.secure import ALL
from earshotlab import families, tls, wait_for
from sizes import size
from web import raw, secure
from web.backend import content
from web.reader import sha256

pytestmark = pytest.mark.earshot
SECONDS = size(10.0, 60.0, "EARSHOT_HTTPS_SECONDS")
SEED = int(os.environ.get("EARSHOT_SEED") or 17)
CLIENTS = 6
KILLED_S = 3  # so long after a worker was killed, what was on it may break
Failure = collections.namedtuple("Failure", "at number error")


@pytest.fixture(scope="module", name="lab")
def _lab():
    with cluster.moving_lab() as lab:
        yield lab


class Clients:
    """Connections of up to 50 requests each; what has failed, and how many were answered."""

    def __init__(self, lab):
        self.lab, self.failures, self.answered, self.renewed, self.is_over = lab, [], 0, 0, False
        self.threads = [threading.Thread(target=self.client, args=(seed,)) for seed in range(CLIENTS)]
        self.threads.append(threading.Thread(target=self.renews_keys))

    def client(self, seed):
        order = random.Random(seed)
        how = secure.context(self.lab, ("1.2", "1.3")[seed % 2])
        while not self.is_over:
            number, sock = 0, None
            try:
                sock, reader = cluster.connect(self.lab, how, timeout=20)
                while number < 50 and not self.is_over:
                    length = order.choice((0, 100, 16384, 50_000, 400_000))
                    self.ask(sock, reader, order, length, f"{seed}.{number}")
                    self.answered += 1
                    number += 1
            except (OSError, EOFError, AssertionError) as error:
                # Between two requests a server may end a connection, as it says then.
                if not (number and isinstance(error, EOFError) and "after b''" in str(error)):
                    self.failures.append(Failure(time.monotonic(), number, repr(error)))
            finally:
                if sock:
                    sock.close()

    @staticmethod
    def ask(sock, reader, order, length, name):
        node = order.choice(ALL)
        if order.random() < 0.7:
            sock.sendall(raw.head(f"/len/{length}?{name}", X_To=node))
            reader.response(f"/len/{length}?{name}")
        else:
            body = order.randbytes(length)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # an answer may be there all the same
                sock.sendall(raw.head("/upload", "POST", Content_Length=length, X_To=node) + body)
            assert reader.response().text.decode() == sha256(body)

    def renews_keys(self):
        """openssl s_client, which asks for new keys before each of its requests."""
        while not self.is_over:
            child = self.lab.client.popen(["openssl", "s_client", "-tls1_3", "-crlf", "-connect", f"{families.in_url(self.lab.net.vip)}:{tls.PORT}"],
                                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=False)
            os.set_blocking(child.stdout.fileno(), False)
            with contextlib.suppress(BrokenPipeError):
                self.renew(child)
            child.kill()
            child.wait()

    def renew(self, child):
        seen = b""
        for number in range(20):
            for text, awaited in ((b"K\n", b"KEYUPDATE"), (b"GET /len/5%d HTTP/1.1\nHost: x\nX-To: %s\n\n" % (number, ALL[number % 3].encode()),
                                                           content(f"/len/5{number}", int(f"5{number}")))):
                count, end = seen.count(awaited), time.monotonic() + 20
                child.stdin.write(text)
                child.stdin.flush()
                while seen.count(awaited) == count:
                    seen += child.stdout.read() or b""
                    if child.poll() is not None or b"closed" in seen or self.is_over:
                        return
                    if time.monotonic() > end:
                        self.failures.append(Failure(time.monotonic(), number, f"{text}: {seen[-500:]}"))
                        return
                    time.sleep(0.02)
            self.renewed += 1

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        for thread in self.threads:
            thread.join()


def restart(lab, node):
    said = cluster.log_of(lab, node).count("service https:")
    lab.stop(node, tls.NAME)
    lab.start(node, tls.NAME)
    wait_for(lambda: cluster.log_of(lab, node).count("service https:") > said, f"the new earshot-tls of {node}")


def reload(lab, _):
    tls.make_certificate(tls.directory(lab.directory), "www", tls.NAMES, lab.net.vips)
    cluster.reload(lab)


def kill_worker(lab, node):
    os.kill(random.choice(cluster.workers(lab, node)), signal.SIGKILL)


def test_for_a_while(lab):
    order, happened = random.Random(SEED), []
    with Clients(lab) as clients:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            what, node = order.choice((restart, reload, kill_worker)), order.choice(ALL)
            happened.append((time.monotonic(), what.__name__, node))
            what(lab, node)
            answered = clients.answered
            wait_for(lambda answered=answered: clients.answered > answered + 20, "further answers", 20)
            time.sleep(order.random())  # until the next event; nothing depends on it
    kills = [at for at, what, _ in happened if what == kill_worker.__name__]
    broken = [failure for failure in clients.failures if not any(0 <= failure.at - at < KILLED_S for at in kills)]
    print(f"\n{len(happened)} events, {clients.answered} answers, {clients.renewed} keys renewed, {len(clients.failures)} broken; seed {SEED}")
    assert not broken, (broken[:5], happened)
    assert len(clients.failures) <= CLIENTS * len(kills), clients.failures
    assert clients.answered > 100 and clients.renewed
    for node in lab.nodes:
        open_ones = ["ss", "-Htn", "state", "established", f"sport = :{tls.PORT} and dst {lab.net.client_address}"]
        wait_for(lambda node=node, command=open_ones: not node.exec(command).stdout, f"no connection on {node.name}", 20)
