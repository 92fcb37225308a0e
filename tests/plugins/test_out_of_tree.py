# SPDX-License-Identifier: GPL-2.0-or-later
"""Every shipped plugin and the template, built out of the tree against installed files only, and tried by
earshot-plugin-test; plugins of other ABI versions; the header by itself; the reference in docs/plugins.md."""
import hashlib
import os
import re
import shutil
import ssl
import subprocess

import pytest

BUILD, SOURCE = os.environ["EARSHOT_BUILD"], os.environ["EARSHOT_SOURCE"]
SHIPPED = sorted(name for name in os.listdir(os.path.join(SOURCE, "plugins"))
                 if os.path.isdir(os.path.join(SOURCE, "plugins", name)))


def run(*arguments, check=True, **keywords):
    done = subprocess.run([str(each) for each in arguments], capture_output=True, text=True, check=False, **keywords)
    if check and done.returncode:
        pytest.fail(f"{' '.join(map(str, arguments))}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


@pytest.fixture(scope="session", name="prefix")
def _prefix(tmp_path_factory):
    prefix = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", BUILD, "--component", "dev", "--prefix", prefix)
    return prefix


def test_installed_alone(prefix):
    """The component dev is whole: no link leads out of it, and what it has is for plugins."""
    dangling = [path for path in prefix.rglob("*") if path.is_symlink() and not path.exists()]
    assert not dangling
    assert {path.name for path in (prefix / "include/earshot").iterdir()} == {"plugin.h", "plugin_config.h"}


def build(source, prefix, where):
    """A copy of the plugin's directory, built there."""
    shutil.copytree(source, where / "source")
    run("cmake", "-S", where / "source", "-B", where / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
        "-DCMAKE_C_FLAGS=-Werror")
    run("cmake", "--build", where / "build", "-j2")
    return next(path for path in (where / "build").iterdir() if path.suffix == ".so")


@pytest.fixture(scope="session", name="plugins")
def _plugins(prefix, tmp_path_factory):
    return {name: build(os.path.join(SOURCE, "plugins", name), prefix, tmp_path_factory.mktemp(name))
            for name in SHIPPED}


@pytest.fixture(scope="session", name="requests")
def _requests(tmp_path_factory):
    """Files with what clients send."""
    directory = tmp_path_factory.mktemp("requests")

    def http(name, target, *fields):
        text = "\r\n".join([f"GET {target} HTTP/1.1", "Host: www.example.org", *fields, "", ""])
        (directory / name).write_bytes(text.encode())

    def tls(name, sni, *protocols):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if protocols:
            context.set_alpn_protocols(protocols)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            context.wrap_bio(incoming, outgoing, server_hostname=sni).do_handshake()
        except ssl.SSLWantReadError:
            pass
        (directory / name).write_bytes(outgoing.read())

    def post(name, target, body, *fields):
        head = "\r\n".join([f"POST {target} HTTP/1.1", "Host: www.example.org", *fields, "", ""])
        (directory / name).write_bytes(head.encode() + body)

    http("plain", "/index.html?a=b")
    post("prompt", "/v1/chat", b"x" * 50 + b"y" * 3000, "Content-Length: 3050")
    post("prompt2", "/v1/%63hat?again", b"z" * 50 + b"y" * 1000 + b"w" * 2000, "Content-Length: 3050")
    post("prompt-short", "/v1/chat", b"x" * 1000, "Content-Length: 1000")
    post("prompt-cut", "/v1/chat", b"x" * 1000, "Content-Length: 3000")
    post("prompt-chunks", "/v1/chat", b"800\r\n" + b"x" * 2048 + b"\r\n0\r\n\r\n", "Transfer-Encoding: chunked")
    post("prompt-bare", "/v1/chat", b"", "Content-Length: 5000")
    http("alice", "/", "X-User: alice", "Cookie: a=b; sid=alice")
    http("bob", "/", "X-User: bob")
    http("image", "/images/a.png")
    http("film", "/films/a.MP4")
    http("icon", "/favicon.ico")
    tls("shop", "Shop.Example.org", "http/1.1")
    tls("deep", "a.b.example.org")
    tls("bare", "example.org")
    tls("nameless", None)
    tls("h2", "x.example.net", "h2", "http/1.1")
    return directory


CASES = [
    ("body-prefix", "path /v1/; skip 50; bytes 1000", "prompt", (), "content=body:PROMPT"),
    ("body-prefix", "path /v1/; skip 50; bytes 1000", "prompt", ("--cut", "1"), "content=body:PROMPT"),
    ("body-prefix", "path /v1/; skip 50; bytes 1000", "prompt2", ("--cut", "1400"), "content=body:PROMPT"),
    ("body-prefix", "path /v2/; skip 50; bytes 1000", "prompt", (), "pass"),
    ("body-prefix", "", "plain", (), "pass"),
    ("body-prefix", "", "prompt-short", (), "pass"),
    ("body-prefix", "", "prompt-cut", ("--cut", "100"), "pass"),
    ("body-prefix", "", "prompt-chunks", (), "pass"),
    ("body-prefix", "", "prompt-bare", ("--cut", "1000"), "pass"),
    ("body-prefix", "", "prompt-bare", (), "more"),
    ("header-hash", "header X-User", "plain", (), "pass"),
    ("header-hash", "header x-user", "alice", (), "node=n1"),
    ("header-hash", "cookie sid", "alice", (), "node=n1"),
    ("header-hash", "cookie sid", "alice", ("--down", "n1"), "node=n2"),
    ("header-hash", "header X-User", "bob", (), "node=n2"),
    ("header-hash", "cookie sid", "shop", (), "pass"),
    ("path-map", "prefix /images/ n1 n2; exact /favicon.ico n3", "image", (), "nodes=n1,n2"),
    ("path-map", "prefix /images/ n1 n2; exact /favicon.ico n3", "icon", (), "nodes=n3"),
    ("path-map", "exact /favicon n3; prefix /image n2; prefix /images/ n1", "icon", (), "pass"),
    ("path-map", "exact /favicon n3; prefix /image n2; prefix /images/ n1", "image", (), "nodes=n2"),
    ("path-map", r"regex '(?i)\.(mp4|webm)$' n3", "film", (), "nodes=n3"),
    ("path-map", r"regex '\.(mp4|webm)$' n3", "film", (), "pass"),
    ("path-map", "prefix /images/ n1", "image", ("--down", "n1"), "failed=no_target"),
    ("path-map", "prefix / n1", "shop", (), "pass"),
    ("path-map", "exact /no n1; " * 20 + "prefix /image n2; prefix /images/ n1", "image", (), "nodes=n2"),
    ("sni-map", "sni shop.example.org n1; sni *.example.org n2", "shop", (), "nodes=n1"),
    ("sni-map", "sni shop.example.org n1; sni *.example.org n2", "shop", ("--cut", "1"), "nodes=n1"),
    ("sni-map", "sni shop.example.org n1; sni *.example.org n2", "deep", ("--cut", "100"), "nodes=n2"),
    ("sni-map", "sni shop.example.org n1; sni *.example.org n2", "bare", (), "pass"),
    ("sni-map", "sni no.net n1; " * 20 + "sni *.example.org n2", "shop", (), "nodes=n2"),
    ("sni-map", "sni - n3", "nameless", (), "nodes=n3"),
    ("sni-map", "sni - n3", "bare", (), "pass"),
    ("sni-map", "alpn h2 n3", "h2", (), "nodes=n3"),
    ("sni-map", "alpn h2 n3", "shop", (), "pass"),
    ("sni-map", "sni *.example.org n1", "plain", (), "pass"),
    ("canary", "percent 100; nodes n2", "plain", (), "nodes=n2"),
    ("canary", "percent 0; nodes n2", "plain", (), "nodes=n1,n3"),
    ("canary", "percent 0; nodes n2; others pass", "plain", (), "pass"),
    ("canary", "percent 50; nodes n2", "plain", ("--client", "192.0.2.9:1"), "nodes=n2"),
    ("canary", "percent 50; nodes n2; by cookie sid", "alice", ("--client", "192.0.2.9:1"), "nodes=n1,n3"),
    ("canary", "percent 50; nodes n2; by cookie sid", "alice", ("--client", "192.0.2.1:1"), "nodes=n1,n3"),
    ("geo-cidr", "192.0.2.0/24 n1; 192.0.2.128/25 n2", "plain", ("--client", "192.0.2.127:1"), "nodes=n1"),
    ("geo-cidr", "192.0.2.128/25 n2; 192.0.2.0/24 n1", "plain", ("--client", "192.0.2.128:1"), "nodes=n2"),
    ("geo-cidr", "192.0.2.0/24 n1; 192.0.2.7 n3", "plain", ("--client", "192.0.2.7:1"), "nodes=n3"),
    ("geo-cidr", "192.0.2.0/24 n1", "plain", ("--client", "192.0.3.0:1"), "pass"),
    ("geo-cidr", "0.0.0.0/0 n1", "plain", ("--client", "203.0.113.1:1"), "nodes=n1"),
    ("geo-cidr", "2001:db8::/32 n3; 0.0.0.0/0 n1", "plain", ("--client", "[2001:db8::1]:1"), "nodes=n3"),
    ("geo-cidr", "2001:db8::/32 n3; 2001:db8:1::/48 n2", "plain", ("--client", "[2001:db8:1:ffff::1]:1"), "nodes=n2"),
    ("geo-cidr", "2001:db8::/32 n3; 2001:db8:1::/48 n2", "plain", ("--client", "[2001:db8:2::1]"), "nodes=n3"),
    ("geo-cidr", "2001:db8::/32 n3; 0.0.0.0/0 n1", "plain", ("--client", "2001:db9::1"), "pass"),
    ("geo-cidr", "2001:db8::7 n1; 2001:db8::/64 n2; 2001:db8:0:0:8000::/65 n3", "plain", ("--client", "2001:db8::7"), "nodes=n1"),
    ("geo-cidr", "2001:db8::7 n1; 2001:db8::/64 n2; 2001:db8:0:0:8000::/65 n3", "plain", ("--client", "2001:db8::8"), "nodes=n2"),
    ("geo-cidr", "2001:db8::/64 n2; 2001:db8:0:0:8000::/65 n3", "plain", ("--client", "[2001:db8:0:0:8000::]:1"), "nodes=n3"),
    ("geo-cidr", "192.0.2.0/24 n1", "plain", ("--client", "::c000:201"), "pass"),
    ("geo-cidr", "::/0 n2", "shop", ("--client", "203.0.113.1:1"), "nodes=n2"),
    ("geo-cidr", "0.0.0.0/0 n1; ::/0 n2", "shop", ("--client", "2001:db8::1"), "nodes=n2"),
    ("lua", "function route(req, cluster) return cluster:ring_target(req:cookie('sid') or '') end", "alice", (), "node=n1"),
    ("lua", "function route(req) if req.sni then return {'n1', 'n3'} end end", "shop", (), "nodes=n1,n3"),
    ("lua", "function route(req) while true do pcall(route, req) end end", "plain", (), "failed=error"),
    ("debug", "answer reject 403", "plain", (), "reject=403"),
    ("debug", "answer more 9999", "plain", ("--cut", "10"), "pass"),
    ("debug", "answer once-more", "plain", (), "failed=bad_more"),
    ("debug", "answer spin 5000", "plain", ("--budget-us", "1000"), "failed=too_slow"),
    ("debug", "answer kind 7", "plain", (), "failed=unknown_answer"),
    ("debug", "answer view", "deep", ("--cut", "50"), "pass"),
]


@pytest.mark.parametrize("name,config,request_name,options,expected", CASES)
def test_answers(prefix, plugins, requests, name, config, request_name, options, expected):
    expected = expected.replace("PROMPT", hashlib.md5(b"y" * 1000).hexdigest()[:16])  # its place on the content ring
    done = run(prefix / "bin/earshot-plugin-test", "--config", config, *options, "--expect", expected, plugins[name],
               requests / request_name, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{name} 1.0: 1 calls" in done.stdout or "--cut" in options, done.stdout


@pytest.mark.parametrize("name", ["header-hash", "header-hash.so"])
def test_installed_plugin_by_its_name(prefix, plugins, requests, tmp_path, name):
    """Found where the daemon finds it; and nodes have their names in what it says."""
    shutil.copy(plugins["header-hash"], tmp_path / "header-hash.so")
    done = run(prefix / "bin/earshot-plugin-test", "--config", "header X-User", "--nodes", "red,green", name, requests / "alice",
               cwd=tmp_path.parent, env={**os.environ, "EARSHOT_PLUGIN_DIR": str(tmp_path)})
    assert re.search(r"alice: node=(red|green)\n(.*\n)*  \d\. plugin header-hash: node \1\n", done.stdout), done.stdout
    done = run(prefix / "bin/earshot-plugin-test", "no-such-rule", requests / "alice", check=False)
    assert done.returncode == 2 and "no-such-rule: No such file or directory" in done.stderr, done


def test_every_plugin_has_cases():
    assert {case[0] for case in CASES} == set(SHIPPED)


@pytest.mark.parametrize("config,error", [
    ("answer hang", "plain: it did not return, and was left"),
    ("answer crash", "plain: it crashed: SIGSEGV"),
    ("harm configure hang", ":1: service web: plugin debug: configure() did not return within 2000 ms, and was left"),
    ("harm configure crash", ":1: service web: plugin debug: configure() crashed: SIGSEGV"),
])
def test_harm(prefix, plugins, requests, config, error):
    """It ends, and says why."""
    done = run(prefix / "bin/earshot-plugin-test", "--config", config, plugins["debug"], requests / "plain", check=False)
    assert done.returncode == 2 and error in done.stderr, done


def test_expectations_can_fail(prefix, plugins, requests):
    done = run(prefix / "bin/earshot-plugin-test", "--expect", "node=n2", "--config", "header X-User",
               plugins["header-hash"], requests / "alice", check=False)
    assert done.returncode == 1 and "node=n1, expected node=n2" in done.stderr, done
    assert "plugin header-hash: header X-User: its place on the content ring" in done.stdout
    assert re.search(r"hashed 1\b", done.stdout)


@pytest.mark.parametrize("name,config,error", [
    ("header-hash", "", ":1: plugin header-hash: expected header NAME"),
    ("header-hash", "header A\ncookie b", ":2: plugin header-hash: expected one header or cookie"),
    ("path-map", "\nprefix images n1", ":2: plugin path-map: expected a path"),
    ("path-map", "regex '(' n1", ":1: plugin path-map: regex (: at character"),
    ("path-map", "prefix / n9", ':1: plugin path-map: no node named "n9"'),
    ("path-map", "prefix /", ":1: plugin path-map: no node: expected names"),
    ("sni-map", "sni a.*.org n1", ":1: plugin sni-map: a.*.org: expected an asterisk only"),
    ("sni-map", "name a n1", ':1: plugin sni-map: "name": expected sni or alpn'),
    ("canary", "percent 101\nnodes n1", ":1: plugin canary: expected percent 0..100"),
    ("canary", "percent 5", "plugin canary: expected percent NUMBER and nodes"),
    ("canary", "percent 5\nnodes n1\nby colour", ":3: plugin canary: expected by address"),
    ("body-prefix", "path v1", ":1: plugin body-prefix: expected path /PREFIX, bytes 1..60000 or skip 0..60000"),
    ("body-prefix", "bytes 100\nbytes 0", ":2: plugin body-prefix: expected path"),
    ("body-prefix", "skip 60001", ":1: plugin body-prefix: expected path"),
    ("body-prefix", "bytes 1x", ":1: plugin body-prefix: expected path"),
    ("body-prefix", "skip 30000\nbytes 30001", "plugin body-prefix: bytes and skip: expected at most 60000 together"),
    ("geo-cidr", "192.0.2.1/24 n1", ':1: plugin geo-cidr: "192.0.2.1/24": expected a network'),
    ("geo-cidr", "192.0.2.0/33 n1", ':1: plugin geo-cidr: "192.0.2.0/33": expected a network'),
    ("lua", "\nfunction route(req)\n\treturn = 1\nend", ":3: plugin lua: unexpected symbol near '='"),
    ("lua", "", "plugin lua: no script: expected config_file = FILE.lua"),
    ("geo-cidr", "10.0.0.0/8 n1\n10.0.0.0/8 n2", ":2: plugin geo-cidr: 10.0.0.0/8: also on line 1"),
])
def test_wrong_configurations(prefix, plugins, requests, tmp_path, name, config, error):
    path = tmp_path / "rules"
    path.write_text(config)
    done = run(prefix / "bin/earshot-plugin-test", "--config-file", path, plugins[name], requests / "plain",
               check=False)
    assert done.returncode == 2 and error in done.stderr, done


def test_template(prefix, tmp_path):
    build(prefix / "share/earshot/plugin-template", prefix, tmp_path)
    done = run("ctest", "--test-dir", tmp_path / "build", "--no-tests=error")
    assert "100% tests passed" in done.stdout


FIRST = """
/* As <earshot/plugin.h> was in version 1.0, as far as it is needed here; never to be changed. */
#include <stddef.h>
#include <stdint.h>
struct set { uint64_t bits[2]; };
struct node { const char *name; uint8_t address[16]; uint16_t port; uint8_t is_target, is_draining;
              double weight, active, load, cpu, disk; };
struct answer { uint32_t node, more_bytes, status, retry_after_s; struct set nodes; };
struct host { uint32_t size; uint16_t abi_major, abi_minor; void *before_node_count[23]; unsigned (*node_count)(const void *);
              unsigned (*self)(const void *); int (*node)(const void *, unsigned, struct node *); };
struct plugin { uint32_t magic; uint16_t abi_major, abi_minor; uint32_t size, answer_size, node_size;
                const char *name, *version, *description;
                int (*configure)(const struct host *, void *, void **); void (*release)(void *);
                int (*thread_new)(void *, void **); void (*thread_free)(void *);
                int (*route)(void *, const void *, const void *, struct answer *); };
_Static_assert(sizeof(struct node) == 72 && sizeof(struct answer) == 32 && sizeof(struct plugin) == 88, "those of 1.0");
static int configure(const struct host *host, void *config, void **ret_state)
{ (void)config; *ret_state = (void *)host; return 0; }
static int route(void *state, const void *request, const void *cluster, struct answer *ret_answer)
{
    const struct host *host = state;
    struct { struct node node; unsigned char behind[64]; } n;
    unsigned char *bytes = (unsigned char *)ret_answer;
    unsigned count = host->node_count(cluster);
    (void)request;
    for (size_t i = 0; i < sizeof(n.behind); i++)
        n.behind[i] = 0xa5;
    if (host->node(cluster, count - 1, &n.node) || n.node.weight != 100 || !n.node.is_target || n.node.name[0] != 'n')
        return -1;
    for (size_t i = 0; i < sizeof(n.behind); i++)
        if (n.behind[i] != 0xa5)
            return -1;
    for (size_t i = 0; i < sizeof(*ret_answer); i++)
        if (bytes[i])
            return -1;
    for (size_t i = 32; i < 400; i++)
        bytes[i] = 0xff; /* the host has room there, and does not look at it */
    ret_answer->nodes.bits[0] = 6;
    return 2;
}
__attribute__((visibility("default"))) const struct plugin earshot_plugin = {
    0x4553504cu, 1, 0, 88, 32, 72, "first", "1", "d", configure, 0, 0, 0, route };
"""


def test_plugin_of_the_first_version(prefix, requests, tmp_path):
    """Built when there was nothing but 1.0: it is loaded, its structures are not overrun, and its answers hold."""
    source, plugin = tmp_path / "first.c", tmp_path / "first.so"
    source.write_text(FIRST)
    run("cc", "-Wall", "-Werror", "-shared", "-fPIC", source, "-o", plugin)
    done = run(prefix / "bin/earshot-plugin-test", "--expect", "nodes=n2,n3", plugin, requests / "plain", check=False)
    assert done.returncode == 0 and "nodes=n2,n3" in done.stdout, done
    # Smaller than those of 1.0 are nobody's.
    for sizes in ("80, 32, 72", "88, 24, 72", "88, 32, 64"):
        source.write_text(FIRST.replace('88, 32, 72, "first"', f'{sizes}, "first"'))
        run("cc", "-shared", "-fPIC", source, "-o", plugin)
        done = run(prefix / "bin/earshot-plugin-test", plugin, requests / "plain", check=False)
        assert done.returncode == 2 and f"its descriptor's sizes ({sizes})" in done.stderr, done


ODD = """
#include <earshot/plugin.h>
static int route(void *thread, const struct es_plugin_request *request, const struct es_plugin_cluster *cluster,
                 struct es_plugin_answer *ret_answer)
{ (void)thread; (void)request; (void)cluster; ret_answer->status = 403; return ES_PLUGIN_REJECT; }
static void timer(void *state, const struct es_plugin_cluster *cluster) { (void)state; (void)cluster; }
struct longer { struct es_plugin plugin; void *unknown[8]; };
#define COMMON .name = "odd", .version = "1", .description = "d", .route = route
"""
PLAIN = "ES_PLUGIN_EXPORT const struct es_plugin earshot_plugin = {"


@pytest.mark.parametrize("text,expected", [
    (PLAIN + "ES_PLUGIN_HEADER, COMMON };", None),
    # An older minor's descriptor ends earlier: what lies behind it is not looked at.
    (PLAIN + "ES_PLUGIN_MAGIC, 1, 0, 88, 32, 72, COMMON, .timer = timer, .timer_ms = 20, "
     ".metrics = (const struct es_plugin_metric *)1 };", None),
    # A newer one's is longer.
    ("ES_PLUGIN_EXPORT const struct longer earshot_plugin_long __asm__(\"earshot_plugin\") = { .plugin = {"
     "ES_PLUGIN_MAGIC, 1, 9, sizeof(struct longer), sizeof(struct es_plugin_answer) + 64, "
     "sizeof(struct es_plugin_node) + 64, COMMON } };", None),
    (PLAIN + "ES_PLUGIN_MAGIC, 2, 0, sizeof(struct es_plugin), sizeof(struct es_plugin_answer), "
     "sizeof(struct es_plugin_node), COMMON };", "was built for plugin ABI 2.0, and this is 1.4: expected a plugin of ABI 1.x"),
    (PLAIN + "ES_PLUGIN_MAGIC, 0, 7, sizeof(struct es_plugin), sizeof(struct es_plugin_answer), "
     "sizeof(struct es_plugin_node), COMMON };", "was built for plugin ABI 0.7, and this is 1.4"),
    (PLAIN + "ES_PLUGIN_MAGIC, 1, 0, 8, 8, 8, COMMON };", "its descriptor's sizes (8, 8, 8)"),
    (PLAIN + "ES_PLUGIN_MAGIC, 1, 1, sizeof(struct es_plugin), 100000, sizeof(struct es_plugin_node), COMMON };",
     "its descriptor's sizes"),
    (PLAIN + "1, 1, 1, sizeof(struct es_plugin), COMMON };", "is not an Earshot plugin"),
    (PLAIN + 'ES_PLUGIN_HEADER, .name = "x", .version = "1", .description = "d" };', "is incomplete: expected name, version"),
    ("int nothing;", "is not an Earshot plugin: expected the symbol earshot_plugin"),
    ("extern int nowhere(void); int here(void) { return nowhere(); }", "undefined symbol: nowhere"),
])
def test_versions(prefix, requests, tmp_path, text, expected):
    source, plugin = tmp_path / "odd.c", tmp_path / "odd.so"
    source.write_text(ODD + text)
    flags = run("pkg-config", "--cflags", "earshot-plugin",
                env={**os.environ, "PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig"}).stdout.split()
    run("cc", "-shared", "-fPIC", *flags, source, "-o", plugin)
    done = run(prefix / "bin/earshot-plugin-test", "--expect", "reject=403", plugin, requests / "plain", check=False)
    if expected is None:
        assert done.returncode == 0, done
    else:
        assert done.returncode == 2 and expected in done.stderr, done


@pytest.mark.parametrize("compiler,options", [
    ("cc", ["-std=c99", "-Wpedantic"]), ("cc", ["-std=c17"]), ("c++", ["-std=c++11"]), ("c++", ["-std=c++17"])])
@pytest.mark.parametrize("header", ["plugin.h", "plugin_config.h"])
def test_header_alone(prefix, tmp_path, compiler, options, header):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    source = tmp_path / ("alone.cc" if compiler == "c++" else "alone.c")
    source.write_text(f"#include <earshot/{header}>\n#include <earshot/{header}>\n")
    run(compiler, *options, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{prefix}/include", source)


def test_abi_reference_is_current(tmp_path):
    """docs/plugin-abi.md is what its generator makes of the header; and that makes no page of half a header."""
    tool = os.path.join(SOURCE, "inspector", "plugin", "abi_reference.py")
    run(tool, "--check")
    copy = tmp_path / "inspector" / "plugin"
    (copy / "include" / "earshot").mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    shutil.copy(tool, copy)
    with open(os.path.join(SOURCE, "inspector/plugin/include/earshot/plugin.h"), encoding="utf-8") as handle:
        header = handle.read()
    assert "/* \"GET\", as sent" in header
    (copy / "include" / "earshot" / "plugin.h").write_text(re.sub(r"/\* \"GET\", as sent.*?\*/", "", header))
    done = run(copy / "abi_reference.py", check=False)
    assert done.returncode == 1 and "method has no comment" in done.stderr, done
    (copy / "include" / "earshot" / "plugin.h").write_text(header.replace("as sent: methods", "as sent; methods"))
    shutil.copy(os.path.join(SOURCE, "docs", "plugin-abi.md"), tmp_path / "docs")
    done = run(copy / "abi_reference.py", "--check", check=False)
    assert done.returncode == 1 and "is not what the header says" in done.stderr, done
    run(copy / "abi_reference.py")
    assert "as sent; methods are case-sensitive" in (tmp_path / "docs" / "plugin-abi.md").read_text()
    run(copy / "abi_reference.py", "--check")


def test_reference_is_complete(prefix):
    """docs/plugins.md names every function, field, constant and structure of the header."""
    with open(os.path.join(SOURCE, "docs", "plugins.md"), encoding="utf-8") as handle:
        page = handle.read()
    header = (prefix / "include/earshot/plugin.h").read_text()
    header = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    names = set(re.findall(r"\(\*(\w+)\)", header))
    names |= set(re.findall(r"^struct (es_plugin\w*) \{", header, flags=re.M))
    names |= set(re.findall(r"\b(ES_PLUGIN_[A-Z0-9_]+) =", header))
    assert len(names) > 60
    missing = sorted(name for name in names if not re.search(rf"`{name}(\(\))?`", page))
    assert not missing, missing
