# SPDX-License-Identifier: GPL-2.0-or-later
"""The cluster as any node shows it: what each says of itself, and who does not answer."""
import contextlib
import html
import http.server
import json
import os
import pty
import re
import signal
import subprocess
import termios
import threading

import pytest

from earshotlab import Lab, netns, topology, wait_for

pytestmark = pytest.mark.earshot

WELL = "All 3 nodes are up, and all services on them."
PAGES = [f"/u/1k/{number}" for number in range(12)]
CONTENTS = {f"//{topology.VIP}{page}" for page in PAGES}
REQUESTS = 60


@pytest.fixture(scope="module", name="lab")
def _lab():
    with Lab(nodes=3, policy="lard", settings={"service.inspect": "every"}) as lab:
        yield lab


def url(lab, node, path):
    return f"http://{lab.node(node).cluster_address}:{topology.STATUS_PORT}{path}"


def fetch(lab, node, path, *options):
    return lab.node(node).exec(["curl", "-sSf", "--max-time", "5", *options, url(lab, node, path)]).stdout


def cluster(lab, node):
    return json.loads(fetch(lab, node, "/page.json"))


def nodes(view):
    return {node["name"]: node for node in view["nodes"]}


def all_answer(lab, node):
    return all(each["answers"] for each in cluster(lab, node)["nodes"])


def requests(view):
    return sum(node["snapshot"]["requests"] for node in view["nodes"])


def settled_requests(lab):
    """How many requests there were, once all nodes say the same: what they show of each other is up to seconds old."""
    def shown():
        return {requests(cluster(lab, node.name)) for node in lab.nodes}
    wait_for(lambda: len(shown()) == 1, "all nodes show the same number of requests", seen=shown)
    return requests(cluster(lab, "n1"))


def test_any_node_shows_the_whole_cluster(lab):
    wait_for(lambda: all(all_answer(lab, node.name) for node in lab.nodes), "each node hears from all")
    before = settled_requests(lab)
    for number in range(REQUESTS):
        lab.client.get(PAGES[number % len(PAGES)])
    for node in lab.nodes:
        wait_for(lambda name=node.name: requests(cluster(lab, name)) == before + REQUESTS, f"{node.name} shows all requests")
        view = cluster(lab, node.name)
        assert [each["name"] for each in view["nodes"] if each["self"]] == [node.name]
        assert {each["snapshot"]["services"][0]["name"] for each in view["nodes"]} == {"web"}
        assert sum(each["ring_share"] for each in view["nodes"]) == pytest.approx(1, abs=1e-5)
        assert set(view["ring_places"]) == {0, 1, 2}
        wait_for(lambda name=node.name: CONTENTS & hot(cluster(lab, name)), f"{node.name} shows the hottest content")


def chromium(exec_, address, profile, *options):
    """The page's DOM as the browser has it after some seconds of the page's own time."""
    return exec_(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
                  f"--user-data-dir={profile}", *options, "--dump-dom", address])


def text_of(dom, part):
    """What people read in the element of that id."""
    found = re.search(rf'<(\w+) id="{part}"[^>]*>(.*?)</\1>', dom, re.S)
    assert found, f"no {part} in: {dom}"
    inner = found[2]
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", inner)).split())


def hot(view):
    return {target["uri"] for node in view["nodes"] for service in node["snapshot"]["hot"] for target in service["targets"]}


def history(lab, asked):
    return {node["name"]: node["history"] for node in cluster(lab, asked)["nodes"]}


def test_history(lab):
    """Ten minutes of five seconds each, by service and by the node that serves; as all nodes remember them, also of before anybody looked."""
    for page in PAGES:
        lab.client.get(page)

    def served():
        counts = [node["snapshot"]["history"]["targets"] for node in cluster(lab, "n2")["nodes"]]
        return sum(sum(samples) for targets in counts for samples in targets.values())
    wait_for(lambda: served() >= len(PAGES), "the requests are in the history", 20)
    assert cluster(lab, "n2")["nodes"][0]["snapshot"]["history"]["step_s"] == 5

    def given():
        return sum(sum(sum(counts) for counts in each["services"]["web"]["requests"].values()) for each in history(lab, "n2").values() if each)
    wait_for(lambda: given() == requests(cluster(lab, "n2")), "and with their services", 20, given)
    # n3, which nobody has asked before; a node that began a moment later than the others has a sample a moment later.
    wait_for(lambda: min(each["samples"] for each in history(lab, "n3").values()) > 0, "all nodes have samples", 10)
    shown = history(lab, "n3")
    assert {each["step_s"] for each in shown.values()} == {5}
    assert any(each.get("p99_us") for each in shown.values()) and all(0 <= each["age_s"] < 10 for each in shown.values())
    assert "history" not in lab.node("n1").ask({"command": "cluster"})["nodes"][0]  # only for who wants it
    assert lab.node("n1").ask({"command": "cluster", "history": True})["nodes"][0]["history"]["step_s"] == 5


def test_a_command_has_the_same(lab):
    wait_for(lambda: all_answer(lab, "n1"), "all answer")
    view = lab.node("n1").ask({"command": "cluster"})
    assert set(nodes(view)) == {"n1", "n2", "n3"} and all(node["answers"] for node in view["nodes"])


def test_top(lab):
    wait_for(lambda: all_answer(lab, "n1"), "all answer")
    for page in PAGES:
        lab.client.get(page)
    view = json.loads(lab.node("n1").exec(["earshot", "--json", "top", "--once"]).stdout)
    assert set(nodes(view)) == {"n1", "n2", "n3"} and all(node["answers"] for node in view["nodes"])
    assert all("requests" in node["snapshot"] for node in view["nodes"])
    lines = lab.node("n1").exec(["earshot", "top", "--once", "--sort", "requests"]).stdout.splitlines()
    rates = [float(line.split("%")[1].split()[0]) for line in lines if re.match(r"n\d ", line)]
    assert len(rates) == 3 and rates == sorted(rates, reverse=True)
    assert "MEAN" in lines[2] and "P99" in lines[2] and any(re.search(r"\d ms +\d+\.?\d* ms ", line) for line in lines), lines
    assert sum(line.startswith("web ") for line in lines) == 3
    screen = lab.node("n1").exec(["script", "-qec", "earshot top", "/dev/null"], input="rq").stdout  # a terminal, and two keys
    assert screen.count("cluster ") >= 2 and "q ends" in screen and "\033[?1049l" in screen
    done = lab.node("n1").exec(["earshot", "top", "--sort", "x"], check=False)
    assert done.returncode == 64 and "expected node, requests, errors" in done.stderr


class Terminal:
    """`earshot top` on a terminal of its own."""

    def __init__(self, lab, node):
        self.master, self.slave = pty.openpty()
        self.before = termios.tcgetattr(self.slave)
        self.shown = ""
        self.process = lab.node(node).popen(["earshot", "top"], stdin=self.slave, stdout=self.slave, stderr=self.slave)
        os.set_blocking(self.master, False)
        wait_for(lambda: "q ends" in self.read(), "it shows the cluster", seen=self.read)

    def read(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                self.shown += os.read(self.master, 65536).decode()
        return self.shown

    def end(self):
        """The status; the terminal must be as before. What stands on its own screen then."""
        status = self.process.wait(15)
        assert termios.tcgetattr(self.slave) == self.before
        return status, self.read().rpartition("\033[?1049l")[2]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        os.close(self.master)
        os.close(self.slave)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_top_is_ended(lab, number):
    with Terminal(lab, "n1") as top:
        assert termios.tcgetattr(top.slave) != top.before
        top.process.send_signal(number)
        assert top.end() == (0, "")


def test_top_says_why_it_ends(lab):
    """On the screen that stays."""
    with Terminal(lab, "n3") as top:
        lab.stop("n3", "earshotd")
        try:
            status, said = top.end()
            assert status == 2 and said.startswith("earshot: no earshotd "), (status, said)
        finally:
            lab.start("n3", "earshotd")


def browse(lab, profile):
    return chromium(lambda command: lab.node("n2").exec(command).stdout, url(lab, "n2", "/"), profile, "--virtual-time-budget=3000")


def without_script(lab, _):
    """What a browser gets that runs no script: all of it is there, and it renews itself."""
    page = fetch(lab, "n2", "/")
    assert '<noscript><meta http-equiv="refresh" content="5"></noscript>' in page
    return re.sub(r"<script.*?</script>", "", page, flags=re.S)


@pytest.mark.parametrize("seen", [browse, without_script])
def test_the_page(lab, tmp_path, seen):
    for page in PAGES:
        lab.client.get(page)
    wait_for(lambda: CONTENTS & hot(cluster(lab, "n2")) and all_answer(lab, "n2"), "there is something to show")
    dom = seen(lab, tmp_path)
    assert text_of(dom, "health") == WELL
    assert re.findall(r"<h2[^>]*>([^<]*)</h2>", dom) == ["Services on nodes", "Nodes", "The last ten minutes", "Problems", "Recent events", "Ring",
                                                     "Moves and pins", "Hottest content"]
    assert dom.count("<caption>") == 7 and dom.count('<th scope="row">n') == 3 and dom.count('<td class="cell ok">') == 3
    assert "up on 3 of 3" in text_of(dom, "services") and "Check ok," in text_of(dom, "services")
    assert all(name in text_of(dom, "nodes") for name in ("n1", "n2 (this one)", "n3"))
    assert any(content in text_of(dom, "hot") for content in CONTENTS)
    assert dom.count("<figure>") == 3 and len(re.findall(r'<path class="line ', dom)) == 3 + 3 * 3 and len(re.findall(r"<li>", dom)) == 3 + 3
    events = cluster(lab, "n2")["events"]
    assert 0 < len(events) <= 10 and all(event["text"] in text_of(dom, "events") for event in events)
    shares = [float(share) for share in re.findall(r"<li>.*?: ([0-9.]+) %</li>", dom)]
    assert sum(shares) == pytest.approx(100, abs=0.2)


@pytest.fixture(name="insecure")
def _insecure(lab):
    """A node whose daemon has begun anew, so that it has not been checked, and whose kernel rebuilds no connection."""
    node = lab.node("n3")
    node.stop()
    node.start()
    wait_for(lambda: all_answer(lab, "n1"), "it is back")
    netns.set_sysctls(node.namespace, {"net.ipv4.tcp_syncookies": 0})
    wait_for(lambda: lab.status(node.name)["nodes"][2]["state"] == "down", "it has noticed")  # else only the later of two checks finds it down
    yield node
    netns.set_sysctls(node.namespace, {"net.ipv4.tcp_syncookies": 1})


def test_problems_and_what_to_do(lab, insecure):
    """The same as `earshot check` tells, and when. But the daemon may be checked before it has noticed why it goes down."""
    assert cluster(lab, insecure.name)["check"]["at_s"] is None
    wait_for(lambda: cluster(lab, insecure.name)["check"]["at_s"], "it is checked", 30)
    check = cluster(lab, insecure.name)["check"]
    told = json.loads(insecure.exec(["earshot", "--json", "check", "--config", lab.config_file], check=False).stdout)
    wrong = {finding["id"]: finding for finding in told["findings"] if finding["severity"] in ("error", "warning")}
    seen = {finding["id"]: finding for finding in check["findings"]}
    later = wrong.keys() - seen.keys()
    assert later <= {"members.down"} and seen.items() <= wrong.items() and "kernel.tcp_syncookies" in seen, (seen, wrong)
    assert not check["error"] and check["summary"]["error"] == told["summary"]["error"] - len(later) and check["age_s"] < 60
    text = text_of(fetch(lab, insecure.name, "/"), "problems")
    assert "net.ipv4.tcp_syncookies = 0." in text and "sysctl -w net.ipv4.tcp_syncookies=1" in text
    assert re.search(r"\d errors? and \d warnings? at [0-9-]+ [0-9:]+ UTC;? ", text)
    assert cluster(lab, insecure.name)["check"]["at_s"] == check["at_s"]  # not again at once


def test_markup_in_a_path_stays_text(lab):
    """What a client asks for is shown as it is, and runs nowhere."""
    evil = "/<script>alert(1)</script>&'x'"
    for _ in range(40):
        lab.client.exec(["curl", "-s", "--path-as-is", "--globoff", "-o", "/dev/null", f"http://{topology.VIP}{evil}"], check=False)
    wait_for(lambda: any("alert(1)" in uri for uri in hot(cluster(lab, "n1"))), "it is among the hottest")
    page = fetch(lab, "n1", "/")
    assert "alert(1)" in page and page.count("<script") == 1
    wait_for(lambda: "&lt;script&gt;alert(1)" in fetch(lab, "n1", "/"), "it is on the page")
    head = fetch(lab, "n1", "/", "-I")
    nonce = re.search(r"script-src 'nonce-(\w+)'", head)[1]
    assert "default-src 'none'" in head and nonce not in page  # each answer has its own


def test_no_queries(lab):
    """They may have secrets, and the page asks for no password; root may see them."""
    for number in range(30):
        lab.client.get(f"/u/1k/query?session=secret{number % 3}")
    path = f"//{topology.VIP}/u/1k/query"
    for node in lab.nodes:
        wait_for(lambda name=node.name: path in hot(cluster(lab, name)), f"{node.name} shows the path", seen=lambda name=node.name: hot(cluster(lab, name)))
        assert "=secret" not in fetch(lab, node.name, "/page.json") and "=secret" not in fetch(lab, node.name, "/")
    assert any("=secret" in uri for uri in hot(lab.node("n1").ask({"command": "cluster"})))


class Changing(http.server.BaseHTTPRequestHandler):
    """The page, as a node that tells another health each time it is asked, and then fails."""
    asked = 0
    page = policy = ""

    def do_GET(self):  # pylint: disable=invalid-name
        if self.path != "/below/a/proxy/":
            return self.send_error(404)
        Changing.asked += 1
        if Changing.asked > 2:
            return self.send_error(503)
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Security-Policy", Changing.policy)
        self.end_headers()
        return self.wfile.write(Changing.page.replace(WELL, f"Answer {Changing.asked}.").encode())

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


def test_it_updates_itself_and_says_when_it_cannot(lab, tmp_path):
    wait_for(lambda: WELL in fetch(lab, "n1", "/"), "all answer")
    head, _, Changing.page = fetch(lab, "n1", "/", "-i").partition("\n\n")  # text: newlines are one character
    Changing.policy = re.search(r"(?i)content-security-policy: (.*)", head)[1]
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Changing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        dom = chromium(lambda command: subprocess.run(command, check=True, text=True, capture_output=True, timeout=60).stdout,
                       f"http://127.0.0.1:{server.server_port}/below/a/proxy/", tmp_path, "--virtual-time-budget=9000")
        server.shutdown()
    assert Changing.asked > 2
    assert text_of(dom, "health") == "Answer 2." and '<body class="stale">' in dom


def test_a_dead_node_is_not_shown_as_fresh(lab):
    wait_for(lambda: all_answer(lab, "n1"), "all answer")
    lab.kill("n3")
    wait_for(lambda: not nodes(cluster(lab, "n1"))["n3"]["answers"], "n3 is shown as not answering", 15)
    dead = nodes(cluster(lab, "n1"))["n3"]
    assert dead["age_s"] >= 3 and dead["snapshot"]["requests"] >= 0  # what it said last is still known
    assert nodes(cluster(lab, "n1"))["n2"]["answers"]
    wait_for(lambda: nodes(cluster(lab, "n1"))["n3"]["age_s"] > dead["age_s"], "its words grow old")
    page = fetch(lab, "n1", "/")
    assert "of 3 nodes are up" in text_of(page, "health") and "does not answer" in text_of(page, "health")
    assert re.search(r'<th scope="row">n3</th><td class="warn" data-l="State">up</td><td class="path warn" data-l="Trouble">not answering; '
                     r'last answer \d\d:\d\d:\d\d UTC</td>', page)
    assert '<td class="cell bad"><p><b>n3</b> <span class="state"><span aria-hidden="true">✗</span> not answering</span></p></td>' in page
    assert 6 <= page.count("(old)</td>") <= 8  # times only if requests came lately
