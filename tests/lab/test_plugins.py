# SPDX-License-Identifier: GPL-2.0-or-later
"""Plugins on a real cluster: rules by header, by TLS server name, by share of clients; wrong answers; reloads."""
import collections
import contextlib
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import time

import pytest

from earshotlab import Lab, daemon, server, topology, wait_for
from web import raw
from web.traffic import Traffic

pytestmark = pytest.mark.earshot

PLUGINS = os.path.join(daemon.BUILD, "plugins")
ALL = ["n1", "n2", "n3"]
TLS = (topology.VIP, 443)

NGINX_TLS = """\
    access_log off;
    server {{
        listen 443 ssl;
        ssl_certificate {cert};
        ssl_certificate_key {key};
        location / {{ default_type text/plain; return 200 "{node}\\n"; }}
    }}"""


@pytest.fixture(scope="module", name="plugins")
def _plugins(tmp_path_factory):
    """The plugins' directory of this lab, whose files tests may replace."""
    directory = tmp_path_factory.mktemp("plugins")
    for name in os.listdir(PLUGINS):
        if name.endswith(".so"):
            shutil.copy(os.path.join(PLUGINS, name), directory)
    before = os.environ.get("EARSHOT_PLUGIN_DIR")
    os.environ["EARSHOT_PLUGIN_DIR"] = str(directory)
    yield directory
    del os.environ["EARSHOT_PLUGIN_DIR"]
    if before is not None:
        os.environ["EARSHOT_PLUGIN_DIR"] = before


@pytest.fixture(scope="module", name="lab")
def _lab(plugins, tmp_path_factory):
    directory = tmp_path_factory.mktemp("tls")
    cert, key = str(directory / "cert"), str(directory / "key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=example.org", "-keyout", key, "-out", cert], check=True,
                   capture_output=True)
    with Lab(nodes=3, policy="uri-hash", client_addresses=200, settings={"service.load_bound": 0}) as lab, contextlib.ExitStack() as stack:
        lab.plain = open(lab.config_file, encoding="utf-8").read()
        for node in ALL:
            place = str(tmp_path_factory.mktemp(node))
            nginx = lab.node(node).popen(server.nginx(place, NGINX_TLS.format(cert=cert, key=key, node=node), "tls"))
            stack.callback(nginx.wait)
            stack.callback(nginx.terminate)
            wait_for(lambda node=node: ":443 " in lab.node(node).exec(["ss", "-ltn"]).stdout, "nginx with TLS")
        yield lab


def configure(lab, web="", tls="", check=True):
    """Put these rules in force on all nodes; the first reply that is none."""
    text = re.sub(r"(service web \{)", lambda found: found[1] + "\n" + web, lab.plain)
    text += f"service tls {{\n    address = {topology.VIP}\n    port = 443\n{tls}}}\n"
    with open(lab.config_file, "w", encoding="utf-8") as handle:
        handle.write(text)
    for node in ALL:
        done = lab.node(node).exec(["earshot", "reload"], check=False)
        if done.returncode and check:
            pytest.fail(done.stderr)
        if done.returncode:
            return done
    return None


PATIENT = "budget_us = 1000000"  # on a busy machine any call may take longer than the 10 ms that there are by default


def plugin(name, config="", file=None, more=PATIENT):
    return f'    plugin {name} {{ file = "{file or name}.so" config = "{config}" {more} }}\n'


def status(lab, name):
    """Of the plugin, on all nodes: numbers added up."""
    total = collections.Counter()
    for node in ALL:
        for each in json.loads(lab.node(node).exec(["earshot", "status", "--json"]).stdout)["plugins"]:
            if each["name"] != name:
                continue
            total["calls"] += each["calls"]
            total.update({f"answer.{kind}": count for kind, count in each["answers"].items()})
            total.update({f"failure.{reason}": count for reason, count in each["failures"].items()})
            total.update({f"metric.{metric}": value for metric, value in each["metrics"].items()})
            assert each["version"] == "1.0" and each["max_us"] >= each["mean_us"] >= 0
    return total


def ask(lab, uri="/1k", **fields):
    response, _ = raw.ask(lab.client, raw.head(uri, Connection="close", **fields))
    return response


def explain(lab, uri, *options):
    return json.loads(lab.node("n1").exec(["earshot", "explain", uri, "--json", "--service", "web", *options]).stdout)


def test_header_hash(lab):
    """A value has a home, whatever is asked for and whoever inspects; without it, the policy decides."""
    configure(lab, plugin("header-hash", "header X-Tenant"))
    homes = {}
    for number in range(60):
        tenant = f"tenant-{number % 12}"
        node = ask(lab, f"/u/1k/{number}", X_Tenant=tenant).node
        assert homes.setdefault(tenant, node) == node
    assert set(homes.values()) == set(ALL)
    for tenant, node in homes.items():
        told = explain(lab, "/1k", "-H", f"X-Tenant: {tenant}")
        assert told["node"] == node and any("header-hash" in step for step in told["steps"]), told
    before = {f"/u/1k/free-{number}": ask(lab, f"/u/1k/free-{number}").node for number in range(20)}
    counted = status(lab, "header-hash")
    assert counted["answer.node"] == counted["metric.hashed"] == 60 and counted["answer.pass"] == 20, counted
    counters = json.loads(lab.node("n1").exec(["earshot", "counters", "--json"]).stdout)["counters"]
    assert any(each["name"] == "plugin_web_header-hash_hashed" for each in counters)
    configure(lab)
    assert {uri: ask(lab, uri).node for uri in before} == before


PROMPTS = 12


def prompt(session):
    """Requests of one conversation begin alike; what follows is always something else."""
    return (f"system {session} ".encode() * 400)[:3000] + os.urandom(2000)


def upload(connection, session):
    """By whom it is answered, of the two requests that are on their way in more than one segment each."""
    connection.request("POST", f"/upload?{time.time_ns()}", prompt(session), {"Host": raw.HOST})
    response = connection.getresponse()
    told = json.loads(response.read())
    assert (response.status, told["bytes"]) == (200, 5000), told
    return told["node"]


def explain_bytes(lab, request, read):
    """What `earshot explain` says of these bytes, `read` of which are looked at."""
    told = json.loads(lab.node("n1").exec(["earshot", "--json", "explain", "--request", "-"], input=request, text=False).stdout)
    assert told["read_bytes"] == read, told
    return told


def test_content_of_a_body(plugins):
    """A plugin names what is in the body, and lard-r places it: each conversation has one node, on any connection; people see it."""
    with Lab(nodes=3, policy="lard-r", settings={"service.inspect": "every", "service.content_on_disk": "no"}) as lab:
        with open(lab.config_file, encoding="utf-8") as handle:
            text = handle.read()
        with open(lab.config_file, "w", encoding="utf-8") as handle:
            handle.write(re.sub(r"(service web \{)", lambda found: found[1] + "\n" + plugin("body-prefix", "bytes 3000"), text))
        for node in ALL:
            lab.node(node).exec(["earshot", "reload"])
        connections = [raw.http_connection(lab.client) for _ in range(4)]
        homes = {}
        with lab.node("n1").popen(["earshot", "--json", "trace", "--filter", "path=/upload"], stdout=subprocess.PIPE, text=True) as trace:
            for turn in range(5):
                for session in range(PROMPTS):
                    node = upload(connections[(turn + session) % len(connections)], session)
                    assert homes.setdefault(session, node) == node, (turn, session)
            trace.send_signal(signal.SIGINT)
            shown = [json.loads(line) for line in trace.stdout]
        assert len(set(homes.values())) > 1  # by loads of the moment, so it may be two of three
        # As for a request that comes; the body begins in its first segment and ends in its third.
        head = raw.head("/upload", "POST", Content_Length=5000)
        for session in range(PROMPTS):
            told = explain_bytes(lab, head + prompt(session) + b"\0\xff", 4104)
            assert told["node"] == homes[session] and told["content"].startswith("body:"), (told, homes[session])
            assert told["steps"][0] == f"a plugin wants {len(head) + 3000} bytes, which come", told
        told = explain_bytes(lab, head + prompt(0)[:2999], len(head) + 2999)
        assert told["content"] == f"//{raw.HOST}/upload", told
        assert told["steps"][0] == f"a plugin wants {len(head) + 3000} bytes, and no more than {len(head) + 2999} come", told
        assert "plugin body-prefix: 2999 bytes of the body are there: expected 3000" in told["steps"], told
        assert explain_bytes(lab, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27)["uri"] == "/"
        counted = status(lab, "body-prefix")
        assert counted["metric.named"] >= 5 * PROMPTS and not counted["metric.short"], counted
        names = {each["content"] for each in shown if each["request"].startswith("POST /upload")}
        assert names and all(re.fullmatch(r"body:[0-9a-f]{16}", name) for name in names), shown
        known = {}
        for node in ALL:
            for each in json.loads(lab.node(node).exec(["earshot", "--json", "table"]).stdout)["targets"]:
                known.setdefault(each["uri"], set()).update(each["nodes"])
        named = {uri: nodes for uri, nodes in known.items() if uri.startswith("body:")}
        assert len(named) == PROMPTS and names <= set(named) and set().union(*named.values()) >= set(homes.values()), known
        for connection in connections:
            connection.close()


def test_canary(lab):
    """As large a share as said; a client stays; who is in stays in when the share grows."""
    def sides(percent):
        configure(lab, plugin("canary", f"percent {percent}; nodes n3"))
        found = {}
        for address in lab.net.client_addresses:
            def bind(sock, address=address):
                sock.bind((address, 0))

            for _ in range(2):
                sock = raw.connect(lab.client, before=bind)
                with contextlib.closing(sock):
                    sock.sendall(raw.head("/node", Connection="close"))
                    node = raw.receive(sock).node
                assert found.setdefault(address, node == "n3") == (node == "n3")
        return {address for address, is_canary in found.items() if is_canary}

    few, many = sides(20), sides(50)
    assert 20 <= len(few) <= 62, len(few)  # 40 of 200 expected; five deviations
    assert 65 <= len(many) <= 135, len(many)
    assert few <= many
    assert not sides(0) and len(sides(100)) == 200


def client_hello(name, alpn_bytes=0):
    """A TLS client's context and its first flight."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    # Names of protocols that nobody speaks, as a post-quantum key share would fill it.
    context.set_alpn_protocols(["http/1.1"] + ["x" * 100 + str(number) for number in range(alpn_bytes // 102)])
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return tls, incoming, outgoing, outgoing.read()


def tls_node(lab, name, alpn_bytes=0, cuts=(), pause=0.0):
    """Which node answers; the ClientHello is cut there."""
    tls, incoming, outgoing, hello = client_hello(name, alpn_bytes)
    sock = raw.connect(lab.client, TLS)

    def step(function, *arguments):
        while True:
            try:
                result = function(*arguments)
                sock.sendall(outgoing.read())
                return result
            except ssl.SSLWantReadError:
                sock.sendall(outgoing.read())
                data = sock.recv(65536)
                assert data, "closed"
                incoming.write(data)

    with contextlib.closing(sock):
        at = 0
        for cut in (*cuts, len(hello)):
            sock.sendall(hello[at:cut])
            at = cut
            time.sleep(pause if at < len(hello) else 0)
        step(tls.do_handshake)
        step(tls.write, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        return step(tls.read, 4096).split(b"\r\n\r\n", 1)[1].decode().strip() or step(tls.read, 4096).decode().strip(), len(hello)


SNI = "sni a.example.org n1; sni *.example.org n2; sni - n3; sni c.example.net n3"


def test_sni(lab):
    """By name, in one segment and in several, as large as browsers' now are."""
    configure(lab, tls=plugin("sni-map", SNI))
    wanted = {"a.example.org": "n1", "b.example.org": "n2", "c.example.net": "n3"}
    for _ in range(4):
        for name, node in wanted.items():
            assert tls_node(lab, name)[0] == node
            found, size = tls_node(lab, name, alpn_bytes=1500)
            assert size > 1700 and found == node
            assert tls_node(lab, name, cuts=(3, 80, 200), pause=0.01)[0] == node
            assert tls_node(lab, name, alpn_bytes=2500, cuts=(100, 1200), pause=0.02)[0] == node
    counted = status(lab, "sni-map")
    assert counted["answer.nodes"] == 48 and counted["answer.more"] >= 24, counted
    assert not sum(count for key, count in counted.items() if key.startswith("failure")), counted
    for name, node in wanted.items():
        done = lab.client.exec(["curl", "-sk", "--resolve", f"{name}:443:{topology.VIP}", f"https://{name}/"])
        assert done.stdout.strip() == node
        done = lab.client.exec(["openssl", "s_client", "-connect", f"{topology.VIP}:443", "-servername", name, "-quiet",
                                "-alpn", ",".join(["http/1.1"] + ["y" * 120 + str(n) for n in range(14)])],
                               input="GET / HTTP/1.0\r\n\r\n", check=False)
        assert done.stdout.strip().endswith(node), done


def test_chromium(lab, tmp_path):
    """A browser's own ClientHello: with a post-quantum key share (X25519MLKEM768) it is longer than a segment."""
    configure(lab, tls=plugin("sni-map", SNI))
    for name, node in {"a.example.org": "n1", "b.example.org": "n2", "c.example.net": "n3"}.items():
        before = sum(lab.counters(each)["handover_follow"] for each in ALL)
        done = lab.client.exec(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--ignore-certificate-errors", f"--user-data-dir={tmp_path / name}",
             f"--host-resolver-rules=MAP * {topology.VIP}", "--dump-dom", f"https://{name}/"])
        assert re.search(r">\s*(n\d)\s*<", done.stdout)[1] == node, done.stdout
        assert sum(lab.counters(each)["handover_follow"] for each in ALL) > before  # its later segment


def test_half_a_hello(lab):
    """Who sends half of it is served by what is there, and does not hold anything up."""
    configure(lab, tls=plugin("sni-map", SNI))
    hello = client_hello("a.example.org", 1500)[3]
    sock = raw.connect(lab.client, TLS)
    with contextlib.closing(sock):
        sock.sendall(hello[:400])
        wait_for(lambda: status(lab, "sni-map")["metric.cut"] == 1, "the decision without the rest")
        assert tls_node(lab, "b.example.org")[0] == "n2"


def test_tls_refused(lab):
    """The client is told in its own language."""
    configure(lab, tls=plugin("debug", "answer reject 403"))
    done = lab.client.exec(["openssl", "s_client", "-connect", f"{topology.VIP}:443", "-servername", "x"],
                           input="", check=False)
    assert "access denied" in done.stdout + done.stderr, done


@pytest.mark.parametrize("fail,wrong_status", [("open", 200), ("closed", 503)])
def test_wrong_answers(lab, fail, wrong_status):
    """All are counted by reason; clients see nothing, or 503 if it was asked for."""
    configure(lab, plugin("debug", more=f"fail = {fail} budget_us = 20000"))
    reasons = {"error": "error", "kind 9": "unknown_answer", "node 77": "no_such_node", "nodes 0": "no_target",
               "once-more": "bad_more", "reject 200": "bad_status", "spin 30000": "too_slow"}
    for wish in reasons:
        response = ask(lab, X_Debug=wish)
        assert response.status == wrong_status, (wish, response.status)
    counted = status(lab, "debug")
    for wish, reason in reasons.items():
        assert counted[f"failure.{reason}"] == 1, (wish, counted)
    assert ask(lab, X_Debug="node 2").node == "n3"
    assert ask(lab, X_Debug="reject 429 3").fields["retry-after"] == "3"
    assert ask(lab, X_Debug="more 100000").status == 200
    assert ask(lab, X_Debug="view").status == 200
    assert status(lab, "debug")["metric.contradictions"] == 0
    wait_for(lambda: status(lab, "debug")["metric.ticks"] > 5, "the timer")


def test_bad_configuration(lab):
    """Is refused with its line, and the old one stays."""
    configure(lab, plugin("header-hash", "header X-Tenant"))
    node = ask(lab, X_Tenant="a").node
    done = configure(lab, plugin("header-hash", "haeder X-Tenant"), check=False)
    assert done and re.search(r":\d+: plugin header-hash: expected header NAME", done.stderr), done
    done = configure(lab, plugin("nothing"), check=False)
    assert done and "nothing.so: cannot be opened: No such file" in done.stderr, done
    assert ask(lab, X_Tenant="a").node == node
    assert status(lab, "header-hash")["answer.node"] == 2


def lua(path, more=PATIENT):
    return f'    plugin lua {{ config_file = "{path}" {more} }}\n'


def put(path, script):
    """As an editor does: a new file in the old one's place."""
    fresh = path.with_suffix(".new")
    fresh.write_text(script)
    os.rename(fresh, path)


LOOPS = ["while true do end",
         "while true do pcall(function() while true do end end) end",
         "return ('a'):rep(100000):find('.-.-.-.-b')",
         "local t = {} while true do t[#t + 1] = ('x'):rep(10000) .. #t end"]


def test_lua_loops_under_load(lab, tmp_path):
    """Scripts that never end: the cluster goes on, and each such request falls to the policy."""
    configure(lab)
    homes = {f"/u/1k/{number}": ask(lab, f"/u/1k/{number}").node for number in range(6)}
    script = tmp_path / "route.lua"
    branches = "\n".join(f"    if loop == '{number}' then {body} end" for number, body in enumerate(LOOPS))
    put(script, f"function route(req, cluster)\n    local loop = req:header('X-Loop')\n{branches}\n"
                "    if loop then return reject(404) end\n    return cluster:ring_target(req.client .. req.client_port)\nend\n")
    configure(lab, lua(script))
    with Traffic(lab, kept=8, fresh=4) as traffic:
        wrk = lab.client.popen(["wrk", "-t1", "-c16", "-d3s", "-H", "X-Loop: 0", "-H", "Connection: close", lab.url("/1k")],
                               stdout=subprocess.PIPE)
        for uri, home in homes.items():
            for number in range(len(LOOPS)):
                assert ask(lab, uri, X_Loop=str(number)).node == home, (uri, number)
        assert ask(lab, "/1k", X_Loop="none").status == 404
        output = wrk.communicate()[0]
    assert not traffic.broken, traffic.broken[:3]
    assert "Socket errors" not in output and "Non-2xx" not in output, output
    counted = status(lab, "lua")
    assert counted["failure.error"] + counted["failure.too_slow"] >= int(re.search(r"(\d+) requests in", output)[1]) + 24
    assert counted["metric.over_instructions"] > 24 and counted["answer.node"] > 20 and counted["answer.reject"] == 1, counted
    last = {each["last_error"] for node in ALL
            for each in json.loads(lab.node(node).exec(["earshot", "status", "--json"]).stdout)["plugins"]}
    assert any(re.search(r"route\.lua:[3-6]: more than ", each) for each in last), last
    told = explain(lab, "/1k", "-H", "X-Loop: 1")
    assert any("route.lua:4: more than 100000 instructions" in step for step in told["steps"]), told


def test_lua_reload_under_load(lab, tmp_path):
    """Another script, over and over, and broken ones between: no request fails, and a broken one changes nothing."""
    script = tmp_path / "route.lua"
    put(script, "function route() return 'n1' end")
    configure(lab, lua(script))
    with Traffic(lab, kept=8, fresh=4) as traffic:
        rounds, end = 0, time.monotonic() + 4
        while time.monotonic() < end or rounds < 4:
            node = ALL[rounds % 3]
            put(script, f"function init(config) home = config.nodes[{1 + rounds % 3}] end function route() return home end")
            configure(lab, lua(script))
            assert ask(lab).node == node
            put(script, "function route() return 'n1' end\nfunction route( return 'n1' end")
            done = configure(lab, lua(script), check=False)
            assert done and re.search(r"route\.lua:2: plugin lua: .* expected near 'return'", done.stderr), done
            assert ask(lab).node == node
            rounds += 1
    assert not traffic.broken, traffic.broken[:3]
    checked = lab.node("n1").exec(["earshot", "check-config", lab.config_file], check=False)
    assert checked.returncode and "route.lua:2: plugin lua: " in checked.stderr, checked
    assert status(lab, "lua")["failure.error"] == 0


def test_reload_under_load(lab, plugins):
    """Other rules and other versions of the file, over and over: no request fails, and old versions go."""
    rules = [plugin("debug", "answer node 0"), plugin("canary", "percent 30; nodes n2"), "",
             plugin("debug", "answer nodes 6") + plugin("header-hash", "cookie sid")]
    configure(lab, rules[0])
    wrk = lab.client.popen(["wrk", "-t1", "-c16", "-d120s", "-H", "Connection: close", lab.url("/1k")],
                           stdout=subprocess.PIPE)
    with Traffic(lab, kept=8, fresh=4) as traffic:
        rounds, end = 0, time.monotonic() + 7
        while time.monotonic() < end or rounds < 8:
            fresh = plugins / "debug.so.new"
            shutil.copy(plugins / "debug.so", fresh)
            os.rename(fresh, plugins / "debug.so")
            configure(lab, rules[rounds % len(rules)])
            rounds += 1
        assert wrk.poll() is None, "it took so long that there was no load any more"
        wrk.send_signal(signal.SIGINT)
        output = wrk.communicate()[0]
    assert not traffic.broken, traffic.broken[:3]
    assert "Socket errors" not in output and "Non-2xx" not in output, output
    assert int(re.search(r"(\d+) requests in", output)[1]) > 200, output
    configure(lab)
    for node in ALL:
        with open(f"/proc/{lab.pid(node, 'earshotd')}/maps", encoding="utf-8") as handle:
            assert "debug.so" not in handle.read(), "an old version is still there"
