# SPDX-License-Identifier: GPL-2.0-or-later
"""The request log of a real cluster: each request once, rotated under load, and a log that hangs holds up nobody."""
import collections
import http.client
import json
import os
import re
import threading
import time

import pytest

from earshotlab import Lab, wait_for
from web import raw

pytestmark = pytest.mark.earshot

ADDRESS = r"[0-9a-f.:]+"
COMMON = re.compile(rf'{ADDRESS} - - \[\d\d/\w{{3}}/\d{{4}}:\d\d:\d\d:\d\d [+-]\d{{4}}\] "([^"]*)" (-|\d+) (-|\d+)')
RULES = 'rule no { path = "/no/"  deny = yes  body = "not here" }\n'


@pytest.fixture(scope="module", name="lab")
def _lab():
    with Lab(nodes=3, policy="wrr", settings={"service.inspect": "every"}) as lab:
        lab.plain = read(lab.config_file)
        yield lab


def read(path):
    with open(path, encoding="utf-8") as handle:
        return handle.read()


def log_to(lab, text):
    """Another section log { }, on all nodes."""
    with open(lab.config_file, "w", encoding="utf-8") as handle:
        handle.write(lab.plain + RULES + text)
    for node in lab.nodes:
        node.exec(["earshot", "reload"])


def ask(lab, target):
    with raw.connect(lab.client) as sock:
        sock.sendall(raw.head(target, Connection="close"))
        return raw.receive(sock)


def requests(path):
    """What is in the file, by what was asked for; each line is one that analysers read."""
    found = collections.Counter()
    for line in read(path).splitlines():
        match = COMMON.fullmatch(line)
        assert match, line
        found[match.groups()] += 1
    return found


def lines(lab, result):
    """Of all nodes."""
    total = 0
    for node in lab.nodes:
        text = node.exec(["earshot", "metrics"]).stdout
        total += int(re.search(rf'^earshot_log_lines_total{{result="{result}"}} (\d+)', text, re.M)[1])
    return total


def test_each_request_once(lab, tmp_path):
    path = tmp_path / "requests.log"
    log_to(lab, f'log {{ to = file  file = "{path}" }}\n')
    for number in range(20):
        assert ask(lab, f"/u/1k/{number}").status == 200
    connection = raw.http_connection(lab.client)
    for number in range(20):
        connection.request("GET", f"/u/1k/k{number}?q")
        connection.getresponse().read()
    connection.close()
    assert ask(lab, "/no/x").status == 403
    expected = {f"GET /u/1k/{number} HTTP/1.1": 1 for number in range(20)}
    expected |= {f"GET /u/1k/k{number}?q HTTP/1.1": 1 for number in range(20)}
    wait_for(lambda: len(read(path).splitlines()) == 41, "41 lines", 10, lambda: read(path))
    found = requests(path)
    assert found.pop(("GET /no/x HTTP/1.1", "403", "9")) == 1
    assert {request: count for (request, status, length), count in found.items() if (status, length) == ("-", "-")} == expected
    assert lines(lab, "written") == 41 and lines(lab, "dropped") == lines(lab, "failed") == 0
    assert os.stat(path).st_mode & 0o777 == 0o640


def test_json_of_one_service(lab, tmp_path):
    path = tmp_path / "requests.json"
    log_to(lab, f'log {{ format = json  to = file  file = "{path}"  service = web }}\n')
    assert ask(lab, "/u/1k/1").status == 200
    assert ask(lab, "/no/x").status == 403
    wait_for(lambda: len(read(path).splitlines()) == 2, "2 lines", 10, lambda: read(path))
    served, refused = sorted((json.loads(line) for line in read(path).splitlines()), key=lambda each: each["time_us"])
    assert served["request"] == "GET /u/1k/1" and served["status"] is None and served["decision"] == "first"
    assert served["target"] in ("n1", "n2", "n3") and served["node"] in ("n1", "n2", "n3") and served["service"] == "web"
    assert refused["status"] == 403 and refused["bytes"] == 9 and refused["why"] == "no"


def test_rotated_under_load(lab, tmp_path):
    """By name, as logrotate does; and by a reload."""
    path = tmp_path / "requests.log"
    log_to(lab, f'log {{ to = file  file = "{path}" }}\n')
    asked, is_over = [], threading.Event()

    def load():
        while not is_over.is_set():
            target = f"/u/1k/r{len(asked)}"
            asked.append(target)
            assert ask(lab, target).status == 200
    thread = threading.Thread(target=load)
    thread.start()
    for number in range(3):
        wait_for(path.exists, "the file is there", 10)
        old = tmp_path / f"requests.log.{number}"
        path.rename(old)
        if number == 2:
            for node in lab.nodes:
                node.exec(["earshot", "reload"])
        wait_for(lambda: path.exists() and read(path), "the file is written anew", 10)
        time.sleep(1.5)  # all nodes have looked
    is_over.set()
    thread.join()

    def found():
        return sum((requests(tmp_path / name) for name in os.listdir(tmp_path)), collections.Counter())
    wait_for(lambda: sum(found().values()) >= len(asked), "all requests are there", 10, lambda: (len(asked), sum(found().values())))
    assert {request: count for (request, _, _), count in found().items()} == {f"GET {target} HTTP/1.1": 1 for target in asked}


def test_hangs_or_fails(lab, tmp_path):
    """Nobody reads the pipe, so it cannot be opened: requests go on, what has no room is counted, and a reload mends it."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    dropped = lines(lab, "dropped")
    log_to(lab, f'log {{ to = file  file = "{pipe}" }}\n')
    connection = http.client.HTTPConnection("unused")
    connection.sock = raw.connect(lab.client)
    slowest = 0.0
    for number in range(3 * 1024):
        begun = time.monotonic()
        connection.request("GET", "/u/1k/1")
        assert connection.getresponse().read()
        slowest = max(slowest, time.monotonic() - begun)
    connection.close()
    assert slowest < 2 and lines(lab, "dropped") > dropped
    failed = lines(lab, "failed")
    log_to(lab, 'log { to = file  file = "/dev/full" }\n')
    assert ask(lab, "/u/1k/1").status == 200
    wait_for(lambda: lines(lab, "failed") == failed + 1, "the failure is counted", 10, lambda: lines(lab, "failed"))
    path = tmp_path / "requests.log"
    log_to(lab, f'log {{ to = file  file = "{path}" }}\n')
    assert ask(lab, "/u/1k/1").status == 200
    wait_for(lambda: path.exists() and sum(requests(path).values()) == 1, "it is written", 10)
