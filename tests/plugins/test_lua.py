# SPDX-License-Identifier: GPL-2.0-or-later
"""The plugin lua by earshot-plugin-test: what scripts see and answer, and all that they might try to get away with."""
import os
import re
import signal
import ssl
import subprocess
import time

import pytest

BUILD, SOURCE = os.environ["EARSHOT_BUILD"], os.environ["EARSHOT_SOURCE"]
TOOL, PLUGIN = os.path.join(BUILD, "bin", "earshot-plugin-test"), os.path.join(BUILD, "plugins", "lua.so")
# An attack that works runs for ever, or for minutes; one that is stopped takes milliseconds.
PATIENCE_S = 20

REQUEST = (b"GET /images/a.png?size=3&q=x HTTP/1.1\r\nHost: www.example.org:81\r\nX-User: alice\r\nX-User: bob\r\n"
           b"Cookie: a=b; sid=42\r\n\r\n")


@pytest.fixture(name="ask")
def _ask(tmp_path):
    def ask(script, *options, request=REQUEST):
        (tmp_path / "route.lua").write_bytes(script if isinstance(script, bytes) else script.encode())
        (tmp_path / "request").write_bytes(request)
        done = subprocess.run([TOOL, "--config-file", "route.lua", *options, PLUGIN, "request"], cwd=tmp_path,
                              capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        assert done.returncode in (0, 2), done
        return done

    return ask


def answer(done):
    return re.match(r"request: (.*)", done.stdout)[1]


def metrics(done):
    return {name: int(value) for name, value in re.findall(r"^  (\w+) (-?\d+)$", done.stdout, flags=re.M)}


def check_all(ask, cases, *options, before=""):
    """Many expressions in one process; which of them are not what they should be."""
    lines = "\n".join(f"    check({quoted(expression)}, {quoted(value)}, function() return {expression} end)"
                      for expression, value in cases)
    done = ask(f"""limits = {{ instructions = 10000000, time_ms = 5000 }}
local wrong, right
{before}
local words
words = function(first, ...)
    return tostring(first) .. (select("#", ...) > 0 and " " .. words(...) or "")
end
local function check(what, expected, f)
    local found = words(f())
    if found == expected then right = right + 1 else wrong[#wrong + 1] = what .. " is " .. found end
end
function route(req, cluster)
    wrong, right = {{}}, 0
{lines}
    explain("right", right)
    for _, each in ipairs(wrong) do explain(each) end
end""", *options)
    assert f"1. plugin lua: right {len(cases)}\n" in done.stdout, done


def quoted(text):
    """As a Lua string."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


@pytest.mark.parametrize("body,expected", [
    ("", "pass"),
    ("return nil", "pass"),
    ("return 'n2'", "node=n2"),
    ("return cluster:node('n3')", "node=n3"),
    ("return {'n1', cluster:node('n3'), 'n1'}", "nodes=n1,n3"),
    ("return cluster:nodes()", "nodes=n1,n2,n3"),
    ("return reject(403)", "reject=403"),
    ("return reject(503, 7)", "reject=503"),
    ("return need(req.length + 1)", "more=" + str(len(REQUEST) + 1)),
    ("return {}", "failed=no_target"),
    ("return need(1)", "failed=bad_more"),
])
def test_answers(ask, body, expected):
    assert answer(ask(f"function route(req, cluster) {body} end")) == expected


def test_needed_bytes(ask):
    """Asked again with more; told when no more comes."""
    script = """function route(req)
        if req.length < 60 and not req.is_truncated then return need(60) end
        explain(req.length)
        return req.is_truncated and "n2" or "n1"
    end"""
    assert answer(ask(script, "--cut", "10")) == "node=n1"
    assert answer(ask(script, "--cut", "10", request=b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")) == "node=n2"


VIEWS = [
    ("req.protocol", "http"), ("req.method", "GET"), ("req.target", "/images/a.png?size=3&q=x"),
    ("req.path", "/images/a.png"), ("req.normal_path", "/images/a.png"), ("req.query", "size=3&q=x"), ("req.host", "www.example.org:81"),
    ("req:header('x-user')", "alice"), ("req:header('X-USER', 2)", "bob"), ("req:header('X-User', 3)", "nil"),
    ("req:cookie('sid')", "42"), ("req:cookie('SID')", "nil"), ("req.client", "192.0.2.9"), ("req.client_port", "77"),
    ("req.service", "web"), ("req.current", "n3"), ("req.sni", "nil"), ("#req.alpn", "0"), ("req.hello", "none"),
    ("req.hello_bytes", "0"), ("req.length", str(len(REQUEST))), ("req:bytes(1, 3)", "GET"), ("#req:bytes()", str(len(REQUEST))),
    ("req:bytes(9999)", ""), ("req.is_truncated", "false"), ("req.size", "0"), ("req.cost", "1"), ("req.class", "normal"),
    ("req:allows('n1')", "true"), ("req:allows('n9')", "false"), ("cluster.self", "n1"), ("cluster.now", "1.0"),
    ("#cluster:nodes()", "3"), ("cluster:node('n9')", "nil"), ("cluster:node('n2').state", "down"),
    ("cluster:node('n1').state", "up"), ("cluster:node('n1').weight", "100.0"), ("cluster:node('n1').load", "0.0"),
    ("cluster:node('n1').address", "10.78.0.1"), ("cluster:node('n1').name", "n1"), ("cluster:ring('k', 4)", "nil"),
    ("cluster:ring('k', 1) ~= cluster:ring('k', 2)", "true"), ("cluster:ring_target('k') ~= cluster:node('n2')", "true"),
    ("cluster:hash('k') == cluster:hash('k') and cluster:hash('k') ~= cluster:hash('l')", "true"),
    ("math.type(cluster:hash('k')) .. tostring(cluster:hash('k') >= 0)", "integertrue"),
    ("type(math.random) .. type(math.sin)", "nilnil"), ("math.floor(2.5)", "2"), ("table.concat({1, 2}, '-')", "1-2"),
    ("select('#', table.unpack({1, 2, 3}))", "3"), ("('x'):rep(3, '-')", "x-x-x"), ("#('x'):rep(0)", "0"),
]


def test_views(ask):
    check_all(ask, VIEWS, "--client", "192.0.2.9:77", "--current", "n3", "--down", "n2")
    check_all(ask, [("req.client", "2001:db8::9"), ("req.client_port", "77")], "--client", "[2001:db8::9]:77")
    check_all(ask, [("req.client", "2001:db8::9:77"), ("req.client_port", "0")], "--client", "2001:db8:0:0::9:77")


@pytest.mark.parametrize("target,normal", [
    ("/admin", "/admin"), ("//admin", "/admin"), ("/%61dmin", "/admin"), ("/x/../admin", "/admin"), ("/./admin", "/admin"),
    ("/x/%2e%2E/admin", "/admin"), ("http://www.example.org//admin?a=/b", "/admin"), ("/admin/", "/admin/"), ("/", "/"),
    ("/%2561dmin", "/%61dmin"), ("/x%2fadmin", "nil"), ("/x%00", "nil"), ("/100%", "nil"), ("/" + "x" * 3000, "nil"),
    ("*", "nil"),
])
def test_normal_path(ask, target, normal):
    """One path, however it is spelt; none where servers do not agree."""
    method = "OPTIONS" if target == "*" else "GET"
    done = ask("function route(req) explain(req.path, 'is', req.normal_path) end",
               request=f"{method} {target} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    assert re.search(rf"1\. plugin lua: .* is {re.escape(normal)}$", done.stdout, flags=re.M) or len(target) > 2048, done


def test_tls(ask):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2", "http/1.1"])
    outgoing = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="a.example.org").do_handshake()
    done = ask("""function route(req)
        if req.hello == "partial" and not req.is_truncated then return need(req.hello_bytes) end
        explain(req.protocol, req.sni, req.alpn[1], req.alpn[2], req.path, req.hello)
        return "n2"
    end""", "--cut", "50", request=outgoing.read())
    assert answer(done) == "node=n2" and "tls a.example.org h2 http/1.1 nil complete" in done.stdout, done


PATTERNS = [
    # From the manual's sections 6.4 and 6.4.1, and corners of them.
    ("('hello world'):find('o w')", "5 7"), ("('hello'):find('l')", "3 3"), ("('hello'):find('xyz')", "nil"),
    ("('a.b'):find('.', 1, true)", "2 2"), ("('hello'):find('', 10)", "nil"), ("('hello'):find('', 6)", "6 5"),
    ("('hello'):find('l', -2)", "4 4"), ("('hello'):match('^(h)(.-)(o)$')", "h ell o"), ("('key = v'):match('^(%w+)%s*=%s*(%w+)$')", "key v"),
    ("('x'):match('()')", "1"), ("('  trim '):match('^%s*(.-)%s*$') .. '|'", "trim|"), ("('f(a(b)c)d'):match('%b()')", "(a(b)c)"),
    ("('THE (quick) fox'):find('%((%a+)%)')", "5 11 quick"), ("('hello hello'):match('(h%a+) %1')", "hello"),
    ("('THE (quick) fox'):gsub('%f[%a]%a+', 'x')", "x (x) x 3"), ("('abc'):gsub('%w', '%0%0')", "aabbcc 3"),
    ("('abc'):gsub('', '-')", "-a-b-c- 4"), ("('hello world'):gsub('o', {o = '0'})", "hell0 w0rld 2"),
    ("('abc'):gsub('(a)(b)', '%2%1')", "bac 1"), ("('abc'):gsub('%w', function(c) if c == 'b' then return 'B' end end)", "aBc 3"),
    ("('abcabc'):gsub('b', 'x', 1)", "axcabc 1"), ("('aaa'):match('a-')", ""), ("('aaa'):match('a-$')", "aaa"), ("('aab'):match('a?ab')", "aab"),
    ("('a-b'):match('[a-]+')", "a-"), ("('a]b'):match('[]]')", "]"), ("('a^b'):match('[%^]')", "^"), ("('xyz'):match('[^x-y]')", "z"),
    ("('100%'):match('%d+%%')", "100%"), ("('a\\0b'):find('%z') or 'none'", "none"), ("('ab12'):match('%a+()%d+()')", "3 5"), ("('$x'):match('%$x')", "$x"),
    ("('a$'):match('a$$')", "a$"), ("('abc'):gsub('^a', 'x')", "xbc 1"), ("('aXb'):match('%u')", "X"), ("('a\\nb'):match('%c') == '\\n'", "true"),
    ("(function() local r = {} for k, v in ('a=1, b=2'):gmatch('(%w+)=(%w+)') do r[#r+1] = k .. v end return table.concat(r, ' ') end)()", "a1 b2"),
    ("(function() local r = 0 for _ in ('abc'):gmatch('') do r = r + 1 end return r end)()", "4"),
    ("(function() local r = {} for w in ('one two'):gmatch('%a+', 3) do r[#r+1] = w end return table.concat(r, ' ') end)()", "e two"),
    ("('x'):rep(200):match('(x*)x')  == ('x'):rep(199)", "true"),
    ("select(2, pcall(string.find, 'a', '[a'))", "malformed pattern (missing ']')"),
    ("select(2, pcall(string.find, 'a', 'a%'))", "malformed pattern (ends with '%')"),
    ("select(2, pcall(string.find, 'a', '(a'))", "unfinished capture"),
    ("select(2, pcall(string.match, 'a', 'a)'))", "invalid pattern capture"),
    ("select(2, pcall(string.find, 'a', '%1'))", "invalid capture index %1 in pattern"),
    ("select(2, pcall(string.gsub, 'a', 'a', '%2'))", "invalid capture index %2"),
    ("select(2, pcall(string.gsub, 'a', 'a', '%x'))", "invalid use of '%' in replacement string"),
    ("select(2, pcall(string.find, 'a', ('.'):rep(500)))", "pattern too long: expected at most 127 items"),
]


def test_patterns(ask):
    check_all(ask, PATTERNS)


ORDER = [
    # pairs(): numbers, texts, booleans, nodes; what is removed meanwhile is passed over, what is new is not seen.
    ("walk({z = 1, a = 1, [2] = 1, [true] = 1, [-1] = 1, [0.5] = 1, b = 1, [false] = 1, aa = 1, ['1'] = 1, [1 << 62] = 1})",
     "-1 0.5 2 4611686018427387904 1 a aa b z false true"),
    ("walk({10, 20, nil, 40, x = 1})", "1 2 4 x"), ("walk({'a', 'b', 'c'})", "1 2 3"), ("walk({})", ""),
    ("walk({[cluster:node('n3')] = 1, [cluster:node('n1')] = 1, n2 = 1})", "n2 n1 n3"),
    ("walk({[{}] = 1, a = 1})", "a table"), ("walk({[print or route] = 1, a = 1})", "a function"),
    ("select(2, pcall(pairs, {[{}] = 1, [route] = 1})):match('.- that is a table')", "more than one key that is a table"),
    ("(function() local t, r = {c = 1, a = 1, b = 1}, '' for k in pairs(t) do t.b = nil r = r .. k end return r end)()", "ac"),
    ("(function() local t, r = {1, 2, 3}, '' for k in pairs(t) do t[2] = nil t[k + 10] = 1 r = r .. k end return r end)()", "13"),
    ("(function() local t, r = {1, 2, x = 3}, '' for k, v in pairs(t) do t[k] = v + 1 r = r .. k .. v end return r end)()", "1122x3"),
    ("(function() local t = {1, 2, x = 3} for k in pairs(t) do t[k] = nil end return next(t) end)()", "nil"),
    ("(function() local r = '' for k, v in pairs({1, 2, 3}) do if v == 2 then break end r = r .. k end return r end)()", "1"),
    ("select(2, pcall(pairs, nil)):match('table expected, got nil')", "table expected, got nil"),
    # next(): the same order, from any key, also one that is gone.
    ("next({b = 2, a = 1})", "a 1"), ("next({b = 2, a = 1}, 'a')", "b 2"), ("next({b = 2, a = 1}, 'b')", "nil"), ("next({})", "nil"),
    ("next({b = 2, d = 4}, 'c')", "d 4"), ("next({x = 1, 7, 8}, 2)", "x 1"), ("next({7, 8, x = 1}, 1)", "2 8"), ("next({[{}] = 5})", "table 5"),
    ("(function() local r = '' for k in next, {c = 1, a = 1, 5, b = 1} do r = r .. k end return r end)()", "1abc"),
    ("pcall(next, {[{}] = 1, [{}] = 1}) == false and next({[{}] = 1, [{}] = 1, a = 1}) == 'a'", "true"),
    # Texts have no addresses.
    ("tostring({})", "table"), ("tostring(route)", "function"), ("tostring(pairs)", "function"), ("tostring(cluster)", "userdata"),
    ("tostring(reject(403))", "userdata"), ("tostring(cluster:node('n2'))", "n2"), ("tostring(nil) .. tostring(1.5)", "nil1.5"),
    ("('%s %5s %d %%'):format({}, route, 7)", "table function 7 %"), ("('%s'):format(cluster:node('n1'))", "n1"), ("('%q'):format('a')", '"a"'),
    ("select(2, pcall(string.format, '%-20p', 'x'))", "string.format: %p is an address: not the same everywhere"),
    ("('%%p'):format()", "%p"), ("select(2, pcall(string.format, '%', 1)):match('invalid conversion')", "invalid conversion"),
    # table.sort(): what is equal stays in its order, however long the table is; an error leaves it as it was.
    ("(function() local t = {3, 1, 2} table.sort(t) return table.concat(t) end)()", "123"),
    ("(function() local t = {'b', 'a', 'c'} table.sort(t, function(a, b) return a > b end) return table.concat(t) end)()", "cba"),
    ("""(function() local t = {} for i = 1, 1000 do t[i] = {i * 7919 % 10, i} end
        table.sort(t, function(a, b) return a[1] < b[1] end)
        for i = 2, 1000 do if t[i - 1][1] > t[i][1] or t[i - 1][1] == t[i][1] and t[i - 1][2] > t[i][2] then return i end end
        return 'sorted' end)()""", "sorted"),
    ("""(function() local t, n = {}, 0 for i = 1, 50 do t[i] = i end
        local ok = pcall(table.sort, t, function(a, b) n = n + 1 if n == 100 then error('x') end return a > b end)
        return tostring(ok) .. #t .. t[1] .. t[50] end)()""", "false50150"),
    ("(function() local t = {} for i = 1, 600 do t[i] = i * 7919 % 601 end table.sort(t) for i = 1, 600 do if t[i] ~= i then return i end end end)()",
     "nil"),
    ("select(2, pcall(table.sort, {1, 'x'})):match('attempt to compare')", "attempt to compare"),
    ("select(2, pcall(table.sort, {1, 2}, 5)):match('function expected')", "function expected"), ("table.sort({}) == nil and #{} == 0", "true"),
]


def test_order(ask):
    """Nothing depends on addresses, on the seed of a state's strings or on the clock, so all of it can be named here."""
    walk = "local function walk(t) local r = {} for k in pairs(t) do r[#r + 1] = tostring(k) end return table.concat(r, ' ') end\n"
    for _ in range(3):  # each process has another seed, and other addresses
        check_all(ask, ORDER, before=walk)


@pytest.mark.parametrize("kept,restarts", [("kept[#kept + 1] = ('x'):rep(10000) .. #kept", True), ("local _ = ('x'):rep(10000)", False)])
def test_memory_that_is_kept(ask, kept, restarts):
    """A script that fills its memory with what it keeps begins afresh, instead of failing for each request from then on."""
    done = ask(f"limits = {{ memory_kb = 512 }}\nlocal kept, begun = {{}}, 0\nfunction route() begun = begun + 1 gauge(1, begun) {kept}\nreturn 'n2' end",
               "--repeat", "1000")
    counted = metrics(done)
    assert counted["restarts"] == counted["over_memory"] and (20 < counted["restarts"] < 50) == restarts, done
    assert sum(counted[name] for name in ("script_errors", "over_instructions", "over_time")) == 0, done
    assert (counted["gauge_1"] < 60) == restarts, done


def test_memory_of_one_request(ask):
    """What one request alone takes is no reason to forget what the script keeps."""
    done = ask("local n = 0\nfunction route() n = n + 1 gauge(1, n) local t = {} for i = 1, math.huge do t[i] = i end end", "--repeat", "10")
    counted = metrics(done)
    assert counted["gauge_1"] == 10 and counted["restarts"] == 0 and counted["over_memory"] + counted["over_instructions"] == 10, done


@pytest.mark.parametrize("script", [b"\xef\xbb\xbf%s", b"#!/usr/bin/lua5.4\n%s", b"\xef\xbb\xbf#!/usr/bin/lua5.4\r\n%s", b"#\n%s"])
def test_marks_and_shells(ask, script):
    """What editors and shells put before a script is no part of it, and lines keep their numbers."""
    assert answer(ask(script % b"function route() return 'n2' end")) == "node=n2"
    lines = script.count(b"\n")
    assert f"plugin lua: route.lua:{lines + 2}: mine\n" in ask(script % b"function route()\nerror('mine') end").stdout
    assert ask(script % b"function route() x = = 5 end").stderr.count(f"route.lua:{lines + 1}: ") == 1


@pytest.mark.parametrize("script,error", [(b"#!/usr/bin/lua5.4", "no function route"), (b"#", "no function route"), (b"\xef\xbb\xbf", "no script"),
                                          ("function route() end".encode("utf-16"), "UTF-16: expected UTF-8")])
def test_no_script_behind_them(ask, script, error):
    done = ask(script)
    assert done.returncode == 2 and error in done.stderr, done


ENDLESS = [
    "local t = {} for i = 1, 20000 do t['k' .. i] = i end while true do pairs(t) end",
    "local t = {} for i = 1, 2000 do t['k' .. i] = i end while true do for _ in next, t do end end",
    "local t = {} for i = 1, 200 do t[('x'):rep(100000) .. i] = i end while true do pcall(next, t) end",
    "while true do pcall(string.format, '%s', {}) end",
    "while true do end",
    "repeat until false",
    "::again:: goto again",
    "for _ = 1, math.huge do end",
    "while true do pcall(function() while true do end end) end",
    "return pcall(function() while true do end end)",
    "local function f() return pcall(f) end while true do f() end",
    "local function f() return f() end return f()",
    "local function f() f() end while true do pcall(f) end",
    "while true do pcall(error) end",
    "while true do pcall(count, 1) end",
    "for k in pairs({1}) do while true do end end",
    "for _ in function() return 1 end do end",
    "table.sort({3, 2, 1}, function() while true do end end)",
    "return ('x'):gsub('x', function() while true do end end)",
    "local function f(s) return (s:gsub('.', f)) end while true do pcall(f, 'x') end",
    "local function f(a, b) table.sort({3, 2, 1}, f) end while true do pcall(f) end",
    "for _ in ('x'):rep(1000):gmatch('') do while true do end end",
    "while true do cluster:ring(('x'):rep(100000)) end",
    "while true do local t = {table.unpack({}, 1, 50000)} end",
    "local t = {} for i = 1, 20000 do t[i] = -i end while true do table.sort(t) end",
    "local t = {} for i = 1, 20000 do t[i] = i end while true do table.insert(t, 1, 0) end",
    "local t = {} for i = 1, 20000 do t[i] = i end while true do table.concat(t) end",
    "local s, t = ('x'):rep(100000), {} for i = 1, 3000 do t[i] = s .. i % 2 end while true do table.sort(t) end",
    "local s, t = ('x'):rep(100000), {} local r = s .. '1' for i = 1, 3000 do t[i] = i % 2 == 0 and s or r end table.sort(t)",
    "while true do ('x'):rep(100000):upper() end",
    "while true do tonumber(('1'):rep(100000)) end",
    # Patterns: exponential, or of a high power of the length.
    "return ('a'):rep(100000):find('.-.-.-.-.-.-b')",
    "return ('a'):rep(100000):find('a*a*a*a*a*a*b')",
    "return ('a'):rep(100000):find(('a?'):rep(60) .. ('a'):rep(60) .. 'b')",
    "return ('a'):rep(100000):match('(.-)%1%1(.-)%2b')",
    "return ('('):rep(100000):find('%b()')",
    "return ('a'):rep(100000):gsub('.-b', '')",
    "for _ in ('a'):rep(100000):gmatch('.-.-b') do end",
    "while true do ('a'):rep(50000):find('b', 1, true) end",
]
MEMORY = [
    "local s = 'x' while true do s = s .. s end",
    "local t = {} for i = 1, math.huge do t[i] = i end",
    "local t = {} while true do t = {t} end",
    "local t = {} while true do t[#t + 1] = ('x'):rep(10000) .. #t end",
    "local t = {} while true do pcall(function() t[#t + 1] = ('x'):rep(10000) .. #t end) end",
    "local t = {} while true do t[#t + 1] = function() return t end end",
    "return ('x'):rep(100000):gsub('x', ('x'):rep(1000))",
    "local t = {} for i = 1, 100 do t[i] = ('x'):rep(100000) end return table.concat(t)",
    "local function f(...) return f(1, 2, 3, 4, 5, 6, 7, 8, ...) end return f()",
]
ROOMY = "limits = { instructions = 100000000, time_ms = 5000 } "


@pytest.mark.parametrize("body", ENDLESS)
def test_endless(ask, body):
    """Costs the request its rule, and is told with its line; the next request has a working rule again."""
    done = ask(f"local n = 0\nfunction route(req, cluster) n = n + 1 if n == 2 then return 'n2' end\n{body} end")
    assert answer(done) == "failed=error", done
    assert sum(value for name, value in metrics(done).items() if name.startswith("over_")) == 1, done
    assert "1. plugin lua: node n2" in done.stdout, done  # the explanation is the second call
    slow = float(re.search(r"([0-9.]+) us at most", done.stdout)[1])
    assert slow < 1e6, f"{slow} us"
    first = ask(f"function route(req, cluster)\n{body} end")
    assert re.search(r"1\. plugin lua: route\.lua:[12]: more than 100000 instructions|: more than 10 ms", first.stdout), first


@pytest.mark.parametrize("body", MEMORY)
def test_memory(ask, body):
    """The limit holds, whatever the number of instructions; and those are charged for it."""
    for limits in ("", ROOMY):
        done = ask(f"{limits} local n = 0\nfunction route(req, cluster) n = n + 1 if n % 2 == 0 then return 'n2' end\n{body} end",
                   "--repeat", "20")
        assert answer(done) == "failed=error" and "plugin lua: " in done.stdout, done
        counted = metrics(done)
        assert counted["over_memory"] + counted["over_instructions"] + counted["over_time"] + counted["script_errors"] == 10
        if limits:
            assert counted["over_instructions"] == counted["over_time"] == 0, done


def test_time(ask):
    done = ask("limits = { instructions = 100000000, time_ms = 30 }\nfunction route()\n while true do end end")
    assert "1. plugin lua: route.lua:3: more than 30 ms" in done.stdout and metrics(done)["over_time"] == 1, done
    done = ask("limits = { instructions = 100000000, time_ms = 30 }\nfunction route()\n return ('a'):rep(100000):find('.-.-.-.-b') end")
    assert "1. plugin lua: route.lua:3: more than 30 ms" in done.stdout and metrics(done)["over_time"] == 1, done


def cpu_s(process):
    with open(f"/proc/{process.pid}/stat", encoding="utf-8") as handle:
        return int(handle.read().rpartition(")")[2].split()[11]) / os.sysconf("SC_CLK_TCK")


def test_time_in_which_the_thread_does_not_run(tmp_path):
    """It is not the script's, however long it is: a busy machine must cost no request its rule."""
    limit_s = 1
    (tmp_path / "route.lua").write_text(f"""limits = {{ instructions = 100000000, time_ms = {limit_s * 1000} }}
function route() for i = 1, 20000000 do end return "n2" end""")
    (tmp_path / "request").write_bytes(REQUEST)
    with subprocess.Popen([TOOL, "--quiet", "--config-file", "route.lua", PLUGIN, "request"], cwd=tmp_path, text=True,
                          stdout=subprocess.PIPE) as process:
        while process.poll() is None and cpu_s(process) < 0.03:  # it is in route() then, all else takes a few milliseconds
            time.sleep(0.001)
        process.send_signal(signal.SIGSTOP)
        assert cpu_s(process) < limit_s, "the script ran longer than it may before it could be stopped"
        time.sleep(1.5 * limit_s)
        process.send_signal(signal.SIGCONT)
        assert process.communicate(timeout=PATIENCE_S)[0] == "request: node=n2\n"


HARMLESS = [
    "return ('').rep('', 1 << 60) == '' and 'n1'",
    "return not pcall(string.rep, 'x', 1 << 60) and 'n1'",
    "return not pcall(string.rep, '', 1 << 60, 'x') and 'n1'",
    "return #('x'):rep(5, ('y'):rep(10)) == 45 and 'n1'",
    "return not pcall(table.concat, {}, '', 1, 1 << 60) and 'n1'",
    "return not pcall(table.insert, cluster, 1) and 'n1'",
    "return not pcall(function() req.path = 'x' end) and 'n1'",
    "return not pcall(function() _ENV.x = 1 end) and 'n1'",
    "return not pcall(function() x = 1 end) and 'n1'",
    "return not pcall(table.insert, _ENV, 1) and 'n1'",
    "return next(_ENV) == nil and 'n1'",
    "return #tostring(route) > 0 and 'n1'",
    # Nothing to make a metatable with: no finalizer, no __close, no __index.
    "local ok = pcall(function() local x <close> = {} end) return not ok and 'n1'",
    "return string.dump == nil and string.pack == nil and table.move == nil and 'n1'",
]


def test_harmless(ask):
    check_all(ask, [(f"(function() {body} end)()", "n1") for body in HARMLESS])


ABSENT = """io os package debug load loadstring loadfile dofile require print setmetatable getmetatable rawset rawget coroutine
            xpcall collectgarbage utf8 warn _G _VERSION""".split()


def test_not_there(ask):
    check_all(ask, [(name, "nil") for name in ABSENT])


def test_only_what_is_named(ask):
    """A newer Lua's additions stay outside: all members of the libraries, spelled out."""
    names = {"string": "byte char format len lower reverse sub upper rep find match gmatch gsub",
             "table": "pack concat insert remove sort unpack",
             "math": "abs ceil exp floor fmod huge log max min maxinteger mininteger modf pi sqrt tointeger type ult"}
    base = "assert error ipairs next pairs pcall select rawlen tonumber tostring type count gauge explain reject need route"
    cases = [(f"{name} ~= nil", "true") for name in base.split()]
    for library, members in names.items():
        cases += [(f"{library}.{member} ~= nil", "true") for member in members.split()]
        cases.append((f"(function() local n = 0 for _ in pairs({library}) do n = n + 1 end return n end)()",
                      str(len(members.split()))))
    check_all(ask, cases)


@pytest.mark.parametrize("body,error", [
    ("return nosuch.x", "attempt to index a nil value (global 'nosuch')"),
    ("return req.pth", 'the request has no member "pth"'),
    ("return cluster.pth", 'the cluster has no member "pth"'),
    ("return cluster:node('n1').pth", 'a node has no member "pth"'),
    ("x = 1", 'global "x": globals are read-only in route(): expected a local variable'),
    ("return reject(200)", "bad argument #1 to 'reject' (expected a status from 400 to 599)"),
    ("return need(0)", "bad argument #1 to 'need' (expected a number of bytes)"),
    ("count(9)", "bad argument #1 to 'count' (expected a number from 1 to 8)"),
    ("error('mine')", "mine"),
    ("error('mine', 0)", "mine"),
    ("assert(false, 'mine')", "mine"),
    ("error({})", "an error that is a table, and no text"),
    ("req:header()", "bad argument #1 to 'header' (string expected, got no value)"),
])
def test_script_errors(ask, body, error):
    done = ask(f"function route(req, cluster)\n\n{body}\nend")
    assert answer(done) == "failed=error" and f"1. plugin lua: route.lua:3: {error}\n" in done.stdout, done
    assert metrics(done)["script_errors"] == 1


@pytest.mark.parametrize("value,error", [
    ("'n9'", 'route() has answered "n9": expected a node\'s name'),
    ("{'n1', 'n9'}", 'route() has answered "n9": expected a node\'s name'),
    ("5", "route() has answered a number: expected a node, a table of nodes, nil, reject() or need()"),
    ("false", "route() has answered a boolean: expected a node, a table of nodes, nil, reject() or need()"),
    ("{false}", "route() has answered a boolean: expected a node, a table of nodes, nil, reject() or need()"),
])
def test_wrong_answers(ask, value, error):
    done = ask(f"\nfunction route() return {value} end")
    assert answer(done) == "failed=error" and f"1. plugin lua: route.lua:2: {error}\n" in done.stdout, done


@pytest.mark.parametrize("script,error", [
    ("function route() return 'n1'", "route.lua:1: plugin lua: 'end' expected near <eof>"),
    ("\n\nfunction route() x = = 5 end", "route.lua:3: plugin lua: unexpected symbol near '='"),
    ("function rout() end", "route.lua: plugin lua: no function route: expected function route(req, cluster) … end"),
    ("route = 5", "route.lua: plugin lua: no function route"),
    ("init = 5 function route() end", "route.lua: plugin lua: init: expected function init(config) … end"),
    ("function route() end\nerror('mine')", "route.lua:2: plugin lua: mine"),
    ("function route() end\nwhile true do end", "route.lua:2: plugin lua: more than 2000000 instructions"),
    ("function init() while true do end end function route() end", "route.lua:1: plugin lua: more than 2000000"),
    ("local s = 'x' while true do s = s .. s end", "route.lua:1: plugin lua: more than 65536 KB of memory, or a string"),
    ("function init(config) assert(config.nodes[4], 'expected four nodes') end function route() end",
     "route.lua:1: plugin lua: expected four nodes"),
    ("limits = 5 function route() end", "route.lua: plugin lua: limits: expected a table"),
    ("limits = { instrctions = 5 } function route() end",
     "route.lua: plugin lua: limits.instrctions: expected instructions, memory_kb or time_ms"),
    ("limits = { instructions = 5 } function route() end",
     "plugin lua: limits.instructions: expected a number from 1000 to 100000000"),
    ("limits = { memory_kb = 'x' } function route() end", "plugin lua: limits.memory_kb: expected a number from 256 to 65536"),
    ("limits = { time_ms = 0 } function route() end", "plugin lua: limits.time_ms: expected a number from 1 to 10000"),
    ("t = {} for i = 1, 200000 do t[i] = i end function route() end",
     "plugin lua: the script itself takes 4"),
    (b"\x1bLua\x54\x00", "route.lua: plugin lua: attempt to load a binary chunk (mode is 't')"),
    ("", "route.lua:1: plugin lua: no script: expected config_file = FILE.lua, with a function route"),
    ("count(1) function route() end", "route.lua:1: plugin lua: there is no request now: expected a call from route()"),
])
def test_wrong_scripts(ask, script, error):
    done = ask(script)
    assert done.returncode == 2 and error in done.stderr, done


def test_init_and_what_is_kept(ask):
    """Globals of init() are there and read-only; a script's own tables last, within one thread."""
    done = ask("""
        local seen = 0
        function init(config)
            homes = { file = config.file, nodes = config.nodes }
        end
        function route(req, cluster)
            seen = seen + 1
            count(1); count(2, 5); gauge(1, seen)
            explain(homes.file, #homes.nodes, homes.nodes[3], seen)
        end""", "--repeat", "10")
    assert "1. plugin lua: route.lua 3 n3 11\n" in done.stdout, done
    counted = metrics(done)
    assert (counted["count_1"], counted["count_2"], counted["gauge_1"]) == (10, 50, 10)


def test_content(ask):
    """Named in full, shown as far as there is room; only for the request at hand, and not if the rule fails."""
    for script, expected in (
            ("content('a b') return nil", "pass content=a b"),
            ("content('x', 12) return {'n1', 'n2'}", "nodes=n1,n2 content=x"),
            ("content('x') return 'n1'", "node=n1"),
            ("content('x') return reject(403)", "reject=403"),
            ("content('one') content('two')", "pass content=two"),
            ("content(string.rep('x', 200))", "pass content=" + "x" * 99),
            ("content('a\\nb')", "pass content=a"),
            ("content(string.rep('x', 98) .. '\\195\\164')", "pass content=" + "x" * 98 + "?"),
            ("content('')", "failed=error"), ("content()", "failed=error"), ("content({})", "failed=error"),
            ("content('x', -1)", "failed=error"), ("content('x') error('y')", "failed=error"),
            ("if req.method then content('x') end", "pass content=x")):
        assert answer(ask(f"function route(req) {script} end")) == expected, script
    done = ask("function route(req) if req.path == '/a' then content('x', 5) end end", "--repeat", "3",
               request=b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
    assert "plugin lua: passes; the content is x, at cost 5" in done.stdout, done


def test_views_end_with_the_request(ask):
    done = ask("""local kept
        function route(req)
            if kept then explain(pcall(function() return kept.path end)) end
            kept = req
        end""", request=b"GET /second HTTP/1.1\r\nHost: a\r\n\r\n")
    # The object is the same for each request: it shows the one at hand, never one that is gone.
    assert "1. plugin lua: true /second\n" in done.stdout, done


def documented():
    """The scripts of docs/plugins.md, and the requests that they name with their answers."""
    with open(os.path.join(SOURCE, "docs", "plugins.md"), encoding="utf-8") as handle:
        return re.findall(r"^```lua\n(.*?)^```", handle.read(), flags=re.S | re.M)


@pytest.mark.parametrize("script", documented())
def test_documented_scripts(ask, script):
    cases = re.findall(r"^-- ([A-Z]+) (\S+)((?: [\w-]+: \S+)*)( '.*')? -> (\S+(?: content=.+)?)$", script, flags=re.M)
    assert cases
    for method, target, fields, body, expected in cases:
        fields = "".join(f"{field}\r\n" for field in re.findall(r"[\w-]+: \S+", fields))
        body = body[2:-1]
        fields += f"Content-Length: {len(body)}\r\n" if body else ""
        for options in ((), ("--cut", "20")):
            done = ask(script, "--nodes", "n1,n2,n3,n4", *options,
                       request=f"{method} {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}".encode())
            assert answer(done) == expected, (target, done)


def test_documented_names():
    """docs/plugins.md names all that scripts can use, and no members that there are not."""
    with open(os.path.join(SOURCE, "docs", "plugins.md"), encoding="utf-8") as handle:
        page = handle.read().split("## Rules in Lua")[1].split("## Your own rule")[0]
    with open(os.path.join(SOURCE, "plugins", "lua", "view.c"), encoding="utf-8") as handle:
        source = handle.read()
    for name, prefix in (("request", "req"), ("cluster", "cluster"), ("node", "node")):
        listed = re.search(rf"{name}_fields\[\] = \{{(.*?)NULL", source, flags=re.S)[1]
        for member in re.findall(r'"(\w+)"', listed):
            assert re.search(rf"`({prefix})?\.{member}`", page), f"{prefix}.{member}"
    for name, prefix in (("request", "req"), ("cluster", "cluster")):
        listed = re.search(rf"{name}_methods\[\] = \{{(.*?)NULL", source, flags=re.S)[1]
        for member in re.findall(r'\{"(\w+)"', listed):
            assert re.search(rf"`{prefix}:{member}\(", page), f"{prefix}:{member}"
