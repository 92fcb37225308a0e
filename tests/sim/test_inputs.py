# SPDX-License-Identifier: GPL-2.0-or-later
"""Logs as people have them: each is taken for what it is, or refused with what to do, and what is lost is said."""
import bz2
import gzip
import json
import lzma
import random
import re
import shutil
import subprocess
import tarfile
import zipfile

import pytest

from sim import SIM, call, complaints, output, refused

TIME = "10/Oct/2024:13:55:36 +0200"
REST = f'[{TIME}] "GET /a HTTP/1.1" 200 10 "-" "-"'


def log_text(count):
    return "".join(f'192.0.2.{i % 200} - - [{TIME}] "GET /f{i * 7919 % 500} HTTP/1.1" 200 {1000 + i % 99}\n' for i in range(count))


@pytest.fixture(name="write")
def fixture_write(tmp_path):
    def write(text, name="access.log"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path
    return write


def commands(path):
    """Every way to have it read."""
    return (("trace", path), ("trace", path, "--json"), ("run", "--trace", path, "--policy", "lard"),
            ("sweep", "--trace", path, "--policy", "lard", "--param", "T_low=10,20", "--seeds", "2"))


@pytest.mark.parametrize("kind", ["xz", "bz2", "zst", "zip", "tar", "tgz"])
def test_archives_are_refused_with_the_command_that_reads_them(write, tmp_path, kind):
    plain, path = write(log_text(3000)), tmp_path / f"packed.{kind}"
    if kind == "xz":
        path.write_bytes(lzma.compress(plain.read_bytes()))
    elif kind == "bz2":
        path.write_bytes(bz2.compress(plain.read_bytes()))
    elif kind == "zst":
        assert shutil.which("zstd"), "zstd is missing: apt install zstd"
        subprocess.run(["zstd", "-q", plain, "-o", path], check=True)
    elif kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(plain, "access.log")
    else:
        with tarfile.open(path, "w:gz" if kind == "tgz" else "w") as archive:
            archive.add(plain, "access.log")
    for args in commands(path):
        said = refused(*args)
        assert "cannot be read" in said
        command = re.search(r"'(.*) \| earshot-sim", said)[1]
        assert str(path) in command
    if shutil.which(command.split()[0]):
        unpacked = subprocess.run(command, shell=True, check=True, stdout=subprocess.PIPE).stdout
        assert unpacked == plain.read_bytes()


@pytest.mark.parametrize("text, says", [
    (log_text(10).encode("utf-16"), "iconv -f UTF-16"),
    ("#Software: Microsoft Internet Information Services 10.0\n#Fields: date time cs-uri-stem\n", "W3C"),
    ('{"time":"2024-10-10T13:55:36+02:00","remote_addr":"192.0.2.1","request":"GET /a HTTP/1.1"}\n', "jq"),
    ("<!DOCTYPE html><html></html>\n", "HTML"),
    (bytes(i * 37 % 251 for i in range(5000)), "binary"),
], ids=["utf-16", "w3c", "json", "html", "binary"])
def test_other_formats_are_refused_by_name(write, text, says):
    for args in commands(write(text)):
        assert says in refused(*args)


@pytest.mark.parametrize("text", ["", "\n\n", "nothing\n", f'192.0.2.1 - - [{TIME}] "POST / HTTP/1.1" 200 5\n',
                                  f'192.0.2.1 - - [{TIME}] "GET / HTTP/1.1" 404 5\n', "\0" * 100000],
                         ids=["empty", "empty-lines", "no-line", "no-get", "no-200", "zeros"])
def test_nothing_usable_is_an_error(write, text):
    path = write(text)
    for args in commands(path)[2:]:
        assert "no request that could be replayed" in refused(*args)
    done = call("trace", path, "--json")
    assert done.returncode == 1
    assert "no request that could be replayed" in done.stderr
    assert json.loads(done.stdout)["requests"] == 0


def test_what_is_lost_is_said(write):
    """nginx changed its log_format in the middle: one line of ten is left."""
    lost = "2024/10/10 13:55:36 GET /x"
    path = write(log_text(500) + f"{lost}\n" * 4500)
    for args in (*commands(path)[2:], (*commands(path)[2], "--format", "csv")):
        said = complaints(*args)
        assert said.count("4500 of 5000 lines (90%) could not be used") == 1
        assert f"{path}:501: the first of them: {lost}" in said
    for args in commands(path):
        data = json.loads(call(*args, *(() if "--json" in args else ("--json",))).stdout)
        assert data["lines"]["used"] == 500
        assert data["lines_unusable"] == 4500
        assert sum(data["lines"].values()) == 5000
        assert data["is_truncated"] is False


def test_what_is_left_out_on_purpose_is_said_if_it_is_most(write):
    few = "".join(f'192.0.2.1 - - [{TIME}] "POST / HTTP/1.1" 200 5\n' for _ in range(10))
    assert complaints("run", "--trace", write(log_text(100) + few), "--policy", "wrr") == ""
    said = complaints("run", "--trace", write(log_text(5) + few), "--policy", "wrr")
    assert "10 of 15 requests are left out" in said and "not GET" in said


def test_generated_traffic_loses_nothing():
    data = json.loads(output("run", "--synthetic", "zipf", "--requests", "1000", "--policy", "wrr", "--json"))
    assert "lines" not in data


def test_truncated_is_told(write):
    rest = random.Random(1)
    data = gzip.compress("".join(f'192.0.2.1 - - [{TIME}] "GET /{rest.random()} HTTP/1.1" 200 10\n' for _ in range(3000)).encode())
    done = call("run", "--trace", write(data[:len(data) // 2]), "--policy", "wrr", "--json")
    assert "end too early" in done.stderr
    data = json.loads(done.stdout)
    assert data["is_truncated"] is True
    assert 500 < data["requests"] < 2500


def test_plain_text_behind_gzip(write):
    packed, plain = gzip.compress(log_text(1000).encode()), log_text(300).encode()
    for data in (packed + plain, plain + packed, plain + packed + plain + packed):
        done = json.loads(output("trace", write(data), "--json"))
        assert done["requests"] == done["lines"]["used"] == 1000 * data.count(b"\x1f\x8b\x08") + 300 * (
            1 if len(data) == len(packed) + len(plain) else 2)


def test_holes_of_zeros(write):
    """What logrotate's copytruncate leaves at the beginning, and a crash anywhere."""
    data = json.loads(output("trace", write(b"\0" * 300000 + log_text(10).encode() + b"\0" * 70000 + log_text(7).encode()), "--json"))
    assert data["format"] == "log"
    assert data["requests"] == 17
    assert data["lines"]["hole"] == 2
    assert data["lines_unusable"] == 0


@pytest.mark.parametrize("front", [
    "192.0.2.@ - -", "2001:db8::@ - -", "[2001:db8::@] - -", "www.example.org 192.0.2.@ - -",
    "www.example.org:80 192.0.2.@ - -", "www.example.org:80 [2001:db8::@] - -", "www.example.org:443 192.0.2.@ - John Smith",
    "192.0.2.@ - [admin]", "Nov 24 23:00:00 web1 nginx: 192.0.2.@ - -", "2024-11-24T23:00:00.5+01:00 web1 nginx: 192.0.2.@ - -",
    "web_1  | 192.0.2.@ - -", "2024-11-24T23:00:00.123456789Z 192.0.2.@ - -",
])
def test_clients_are_found(write, front):
    path = write("".join(f"{front.replace('@', str(i))} {REST}\n" for i in range(1, 4)))
    assert json.loads(output("trace", path, "--json"))["clients"] == 3


@pytest.mark.parametrize("time", [
    "[2024-10-10T13:55:@+02:00]", "2024-10-10T13:55:@+02:00", "[10/Oct/2024:13:55:@.123 +0200]", "[2024-10-10 13:55:@]",
    "[17285613@.250]"])
def test_times_are_read(write, time):
    path = write("".join(f'192.0.2.1 - - {time.replace("@", str(s))} "GET /a HTTP/1.1" 200 10 "-" "-"\n' for s in (10, 20, 40)))
    data = json.loads(output("trace", path, "--json"))
    assert (data["requests"], data["seconds"]) == (3, 30)


def test_haproxy(write):
    path = write("".join(f"Feb  6 12:14:{s} lb haproxy[14389]: 10.0.1.{s}:33317 [06/Feb/2009:12:14:{s}.655] http-in static/srv1 "
                         f'10/0/30/69/109 200 {s}00 - - ---- 1/1/1/1/0 0/0 "GET /{s} HTTP/1.1"\n' for s in (10, 20, 40)))
    data = json.loads(output("trace", path, "--json"))
    assert (data["requests"], data["clients"], data["files"], data["seconds"], data["bytes"]) == (3, 3, 3, 30, 7000)


def test_sites_have_files_of_their_own(write):
    lines = "".join(f"{site} 192.0.2.1 - - {REST}\n" for site in ("a.example", "b.example:80", "B.example", "a.example."))
    assert json.loads(output("trace", write(lines), "--json"))["files"] == 2


def test_names_are_the_daemons(write):
    """One content under several spellings, as es_name_make() has it."""
    lines = "".join(f'192.0.2.1 - - [{TIME}] "GET {uri} HTTP/1.1" 200 10\n' for uri in (
        "/~a", "/%7Ea", "/%7ea", "/b%2fc", "/b%2Fc", "/b/c", "/d?x=%41", "/d?x=A"))
    assert json.loads(output("trace", write(lines), "--json"))["files"] == 4


def test_the_site_is_part_of_the_name_or_not(write):
    """60 sites' front pages on 3 nodes, by uri-hash: with the host they are spread, without it one node has them all."""
    path = write("".join(f"site{i % 60}.example 192.0.2.{i % 200} - - {REST.replace('/a', '/')}\n" for i in range(6000)))
    args = ("run", "--trace", path, "--policy", "uri-hash", "--nodes", "3", "--warmup", "0", "--json")
    by_host, alike = (json.loads(output(*args, "--content-host", choice)) for choice in ("yes", "no"))
    assert by_host["workload"]["files"] == alike["workload"]["files"] == 60
    assert all(node["served"] > 500 for node in by_host["nodes"])
    assert sorted(node["served"] for node in alike["nodes"])[:2] == [0, 0]
    assert json.loads(output(*args))["nodes"] == by_host["nodes"]
    assert "expected yes | no" in refused(*args, "--content-host", "maybe")


def test_sizes_from_pieces(write):
    """Videos are asked for in pieces only: the largest piece is the least that a file has."""
    rest = random.Random(1)
    lines = "".join(f'192.0.2.{i % 50} - - [{TIME}] "GET /v/{rest.randrange(20)}.mp4 HTTP/1.1" 206 {50000000 - i % 3}\n'
                    for i in range(300))
    path = write(lines)
    data = json.loads(output("trace", path, "--json"))
    assert data["files_of_known_size"] == data["files_sized_by_pieces"] == 20
    assert 20 * 49999998 <= data["working_set_bytes"] <= 20 * 50000000
    assert "pieces" in output("trace", path)
    assert json.loads(output("run", "--trace", path, "--policy", "lard", "--json"))["workload"]["bytes"] == data["working_set_bytes"]


def test_unknown_sizes_are_said(write):
    path = write(log_text(100) + "".join(f'192.0.2.1 - - [{TIME}] "GET /u{i} HTTP/1.1" 304 -\n' for i in range(25)))
    assert "the size of 25 of 125 files is unknown" in complaints("run", "--trace", path, "--policy", "wrr")
    assert json.loads(output("trace", path, "--json"))["requests_for_unknown_sizes"] == 25


@pytest.mark.parametrize("size", [2 ** 64 - 1, 2 ** 63 - 1, 999999999999999999, 2 ** 36 + 1])
def test_absurd_sizes_are_left_out(write, size):
    path = write(log_text(100) + f'192.0.2.1 - - [{TIME}] "GET /huge HTTP/1.1" 200 {size}\n')
    assert "64 GiB" in complaints("run", "--trace", path, "--policy", "wrr")
    data = json.loads(output("trace", path, "--json"))
    assert data["lines"]["bad_size"] == 1
    assert data["largest_bytes"] < 2000


def test_versioned_assets_are_files(write):
    lines = "".join(f'192.0.2.1 - - [{TIME}] "GET {uri} HTTP/1.1" 200 10\n' for uri in (
        "/theme/a.css?ver=6.1", "/theme/a.js?6.1", "/a.woff2?x", "/p.html?utm_source=x", "/search.php?q=1", "/search?q=a.css", "/?p=3"))
    assert json.loads(output("trace", write(lines), "--json"))["dynamic_requests"] == 3


def test_sweep_reads_standard_input_once(write):
    with open(write(log_text(2000)), "rb") as file:
        done = call("sweep", "--trace", "-", "--policy", "lard", "--param", "T_low=10,20", "--seeds", "3", "--json", stdin=file)
    assert done.returncode == 0, done.stderr
    assert all(len(row["throughput_rps_by_seed"]) == 3 for row in json.loads(done.stdout)["values"])


def test_names_that_are_not_utf8(tmp_path):
    path = bytes(tmp_path) + b"/caf\xe9.log"
    with open(path, "wb") as file:
        file.write(log_text(10).encode())
    done = subprocess.run([SIM, b"trace", b"--json", path], stdout=subprocess.PIPE, check=True)
    assert json.loads(done.stdout.decode("utf-8"))["file"].endswith("caf\ufffd.log")
