# SPDX-License-Identifier: GPL-2.0-or-later
"""inspect = every with the clients that people use: they notice nothing of connections that move."""
import hashlib
import json
import os
import re

import pytest

from earshotlab import Lab
from web import pictures, raw

pytestmark = pytest.mark.earshot

NODES = 4
EVERY = {"service.inspect": "every", "service.load_bound": 0}
HOST = raw.HOST
BASE = f"http://{HOST}"
IMAGES = 100
FILES = 60


@pytest.fixture(scope="module", name="docroot")
def _docroot(tmp_path_factory):
    directory = tmp_path_factory.mktemp("site")
    for number in range(IMAGES):
        (directory / f"image{number}.png").write_bytes(pictures.png(number))
    (directory / "page.html").write_text(pictures.page(f"image{number}.png" for number in range(IMAGES)))
    for number in range(FILES):
        (directory / f"file{number}").write_bytes(os.urandom(200 + 400 * number))
    return directory


@pytest.fixture(scope="module", name="lab")
def _lab(docroot):
    with Lab(nodes=NODES, policy="uri-hash", docroot=str(docroot), settings=EVERY) as lab:
        yield lab


@pytest.fixture(autouse=True)
def moving(lab):
    """Whatever the client did: connections moved, and none had to stay."""
    def total():
        counters = [lab.counters(node.name) for node in lab.nodes]
        return {name: sum(each[name] for each in counters) for name in counters[0]}

    before = total()
    yield
    after = total()
    grown = {name: after[name] - before[name] for name in after if after[name] != before[name]}
    assert grown.get("inspect_moved", 0) > 20, grown
    assert not any(name.startswith("pin_") for name in grown), grown
    for never in ("inspect_no_target", "inspect_move_forgotten", "rebuild_refused", "request_fallback"):
        assert never not in grown, grown


def expected(docroot):
    return {f"file{number}": hashlib.sha256((docroot / f"file{number}").read_bytes()).hexdigest()
            for number in range(FILES)}


def test_curl(lab, docroot, tmp_path):
    """Many URLs, one connection."""
    done = lab.client.exec(["curl", "--silent", "--show-error", "--fail", "--output", str(tmp_path / "file#1"),
                            "--write-out", "%{num_connects} %{http_code} %header{x-node}\n",
                            f"{BASE}/file[0-{FILES - 1}]"])
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) == FILES and {line[1] for line in lines} == {"200"}
    assert sum(int(line[0]) for line in lines) == 1, "connections"
    assert len({line[2] for line in lines}) == NODES
    for name, digest in expected(docroot).items():
        assert hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() == digest, name


PYTHON = {
    "http.client": """
import http.client
connection = http.client.HTTPConnection(HOST, timeout=10)
def get(name):
    connection.request("GET", "/" + name)
    response = connection.getresponse()
    return response.status, response.getheader("X-Node"), response.read()
""",
    "requests": """
import requests
session = requests.Session()
def get(name):
    response = session.get(f"http://{HOST}/{name}", timeout=10)
    return response.status_code, response.headers["X-Node"], response.content
""",
    "urllib3": """
import urllib3
pool = urllib3.connection_from_url(f"http://{HOST}", maxsize=1, block=True, timeout=10)
def get(name):
    response = pool.request("GET", "/" + name, retries=False)
    return response.status, response.headers["X-Node"], response.data
""",
}


@pytest.mark.parametrize("library", PYTHON)
def test_python(lab, docroot, library):
    program = f"HOST = {HOST!r}\n{PYTHON[library]}" + f"""
import hashlib, json
print(json.dumps([(f"file{{n * 7 % {FILES}}}", status, node, hashlib.sha256(body).hexdigest())
                  for n in range(300) for status, node, body in [get(f"file{{n * 7 % {FILES}}}")]]))
"""
    done = lab.client.exec(["/usr/bin/python3", "-c", program], check=False)
    assert done.returncode == 0, done.stderr
    right, nodes = expected(docroot), {}
    for name, status, node, digest in json.loads(done.stdout):
        assert (status, digest) == (200, right[name]), name
        assert nodes.setdefault(name, node) == node, "an object has one node"
    assert len(set(nodes.values())) == NODES


WRK = """
local n = 0
function request()
  n = n + 1
  return wrk.format("GET", "/file" .. n % %d)
end
function done(summary)
  local e = summary.errors
  print("requests=" .. summary.requests, "errors=" .. e.connect + e.read + e.write + e.status + e.timeout)
end
"""


def test_wrk(lab, tmp_path):
    script = tmp_path / "rotate.lua"
    script.write_text(WRK.replace("%d", str(FILES)))
    done = lab.client.exec(["wrk", "-t2", "-c32", "-d4s", "-s", str(script), f"{BASE}/"])
    requests, errors = (int(value) for value in re.search(r"requests=(\d+)\s+errors=(\d+)", done.stdout).groups())
    assert requests > 2000 and errors == 0, done.stdout


def test_ab(lab):
    """Keep-alive as HTTP/1.0 does it: ab knows only that, and only one URL, so several of it run at a time."""
    running = [lab.client.popen(["ab", "-k", "-q", "-n", "2000", "-c", "8", f"{BASE}/{target}"], stdout=-1)
               for target in ("file3", "file4", "file5", "image6.png")]
    texts = [child.communicate(timeout=60)[0] for child in running]
    for text in texts:
        found = dict(re.findall(r"^([A-Z][\w -]+):\s+(\d+)", text, re.M))
        assert found["Complete requests"] == "2000" and found["Failed requests"] == "0", text
        assert int(found["Keep-Alive requests"]) > 1900, text
    # One URL has one node: what ab shows is that staying works. That connections move, curl makes sure of.
    lab.client.exec(["curl", "--silent", "--fail", "--output", "/dev/null", f"{BASE}/file[0-{FILES - 1}]"])


def test_httperf(lab, tmp_path):
    """Sessions of requests, as httperf calls them."""
    log = tmp_path / "sessions"
    log.write_text("\n".join(f"/file{number}" for number in range(FILES)) + "\n\n")
    done = lab.client.exec(["httperf", "--hog", "--server", HOST, "--port", "80",
                            f"--wsesslog=40,0,{log}", "--rate", "40", "--timeout", "10"])
    replies = re.search(r"Total: connections (\d+) requests (\d+) replies (\d+)", done.stdout)
    assert [int(value) for value in replies.groups()] == [40, 40 * FILES, 40 * FILES], done.stdout
    assert re.search(r"Errors: total 0 ", done.stdout), done.stdout


def test_chromium(lab, tmp_path):
    """A page with 100 pictures, over the browser's handful of connections."""
    assert pictures.seen(lab.client, f"{BASE}/page.html", tmp_path / "profile") == (IMAGES, IMAGES)
