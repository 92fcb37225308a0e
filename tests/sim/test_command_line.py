# SPDX-License-Identifier: GPL-2.0-or-later
"""What is accepted, what is refused and how, and the forms of the output."""
import csv
import gzip
import io
import json
import os
import struct
import tempfile

import pytest

from sim import SMALL, call, output, refused, run

LINE = '10.0.0.{client} - - [10/Oct/2000:13:55:36 +0000] "GET /f{file} HTTP/1.1" 200 {size}\n'


def log_lines(count):
    return "".join(LINE.format(client=i % 13, file=i * 7919 % 500, size=1000 + i * 7919 % 500) for i in range(count))


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "access.log"
    path.write_text(log_lines(5000) + "garbage\n" + LINE.format(client=1, file=1, size="x"), encoding="ascii")
    return str(path)


def test_the_fixed_command_line():
    data = json.loads(output(*"run --synthetic worldcup98 --policy lard-r --nodes 4 --cache-mb 64 "
                              "--requests-per-connection 5 --seed 7 --requests 50000 --json".split()))
    for name in ("throughput_rps", "hit_rate", "moves", "imbalance"):
        assert isinstance(data[name], (int, float)), name
    assert data["throughput_rps"] > 0
    assert 0 < data["hit_rate"] < 1
    assert data["moves"] > 0
    assert 1 <= data["imbalance"] <= 4
    assert data["policy"] == "lard-r"
    assert data["settings"]["seed"] == 7
    assert data["workload"]["files"] == 10562


def test_help_names_the_results_and_all_options():
    text = output("run", "--help")
    for name in ("throughput_rps", "hit_rate", "moves", "imbalance", "--trace", "--synthetic", "--inspectors",
                 "--bus-delay-ms", "--disk-seek-ms", "--cpu-handover-us"):
        assert name in text, name


def test_every_option_is_documented():
    with open(os.path.join(os.path.dirname(__file__), "../../docs/simulator.md"), encoding="utf-8") as file:
        docs = file.read()
    for word in output("run", "--help").replace(",", " ").split():
        if word.startswith("--"):
            assert f"`{word.split('=')[0]}`" in docs, word
    with tempfile.NamedTemporaryFile("w", encoding="ascii") as log:
        log.write(log_lines(10))
        log.flush()
        for args in (("run", "--policy", "wrr"), ("sweep", "--policy", "lard", "--param", "T_low=10,20", "--seeds", "1")):
            for name in json.loads(output(*args, "--trace", log.name, "--json")):
                assert f"`{name}`" in docs, name
        for name in json.loads(output("trace", log.name, "--json")):
            assert f"`{name}`" in docs, name


@pytest.mark.parametrize("args, says", [
    (["run", "--synthetic", "zipf"], "no policy is named"),
    (["run", "--policy", "wrr"], "--trace FILE and --synthetic"),
    (["run", "--policy", "wrr", "--synthetic", "zipf", "--trace", "x"], "one of --trace FILE and --synthetic"),
    (["run", "--policy", "nosuch", "--synthetic", "zipf"], 'unknown policy "nosuch", expected'),
    (["run", "--policy", "wrr", "--synthetic", "nosuch"], "expected worldcup98 | zipf"),
    (["run", "--policy", "lard", "--synthetic", "zipf", "--param", "T_mid=3"], "accepts T_low (0..1e+06, auto or paper), T_high"),
    (["run", "--policy", "lard", "--synthetic", "zipf", "--param", "T_low=many"], "accepts T_low (0..1e+06, auto or paper)"),
    (["run", "--policy", "lard", "--synthetic", "zipf", "--param", "T_low=-1"], "accepts T_low (0..1e+06, auto or paper)"),
    (["run", "--policy", "wrr", "--synthetic", "zipf", "--param", "x=1"], "has no parameters"),
    (["run", "--policy", "wrr", "--synthetic", "zipf", "--nodes", "0"], "expected a whole number from 1 to 128"),
    (["run", "--policy", "wrr", "--synthetic", "zipf", "--nodes", "2.5"], "expected a whole number"),
    (["run", "--policy", "wrr", "--synthetic", "zipf", "--cache-mb", "nan"], "expected a number"),
    (["run", "--policy", "wrr", "--synthetic", "zipf", "--hot-share", "0.1"], "go together"),
    (["run", "--policy", "wrr", "--trace", "/nosuch"], "/nosuch: No such file"),
    (["run", "--policy", "wrr", "--synthetic", "zipf", "--format", "xml"], "expected text | csv | json"),
    (["sweep", "--policy", "lard", "--synthetic", "zipf"], "which one?"),
    (["sweep", "--policy", "lard", "--synthetic", "zipf", "--param", "T_low=5:1:1"], "FROM <= TO"),
    (["sweep", "--policy", "lard", "--synthetic", "zipf", "--param", "T_low=1:2"], "FROM:TO:STEP"),
    (["sweep", "--policy", "lard", "--synthetic", "zipf", "--param", "T_low=1,x"], "not a number"),
    (["sweep", "--policy", "lard", "--synthetic", "zipf", "--param", "T_low=-5,1"], "out of range"),
    (["trace"], "no trace is named"),
    (["trace", "a", "--trace", "b"], 'unexpected argument "a"'),
    (["trace", "a", "b"], 'unexpected argument "b"'),
    (["policies", "x"], 'unexpected argument "x"'),
    (["policies", "--trace", "x"], "unrecognized option"),
    (["run", "--policy", "lard", "--synthetic", "zipf", "--trace", "x", "--trace", "y"], "expected one"),
    (["run", "--policy", "lard", "--synthetic", "zipf", "--param", "T_low=1", "--param", "T_low=2"], "expected each once"),
    (["run", "--policy", "lard", "--synthetic", "zipf", "--param", "T_low=70", "--param", "T_high=paper"], "T_low is 70: expected at most 65, which T_high is"),
    (["run", "--policy", "ext-lard", "--synthetic", "zipf", "--param", "L_overload=9"], "L_idle is 30: expected at most 9"),
    (["sweep", "--policy", "lard", "--synthetic", "zipf", "--param", "T_low=60:70:5", "--param", "T_high=65"], "T_low is 70: expected at most 65"),
    (["sweep", "--policy", "lard", "--synthetic", "zipf", "--param", "T_low=1,2,"], 'T_low: "" is not a number'),
    (["help", "sing"], 'no command "sing"'),
    (["sing"], 'no command "sing"'),
])
def test_errors_say_what_would_be_accepted(args, says):
    assert says in refused(*args)


@pytest.mark.parametrize("args", [["-h"], ["--help"], ["-?"], ["--usage"], ["help"], ["help", "run"], ["run", "-h"], ["policies", "-h"]])
def test_help(args):
    assert "earshot-sim" in output(*args)


@pytest.mark.parametrize("args", [["sing"], ["help", "sing"], [], ["trace"], ["run"], ["policies", "x"],
                                  ["run", "--policy", "lard", "--synthetic", "zipf", "--param", "x=1"],
                                  ["sweep", "--policy", "lard", "--synthetic", "zipf", "--param", "T_low=1,"]])
def test_a_wrong_command_line_has_a_status_of_its_own(args):
    assert call(*args).returncode == 64


@pytest.mark.parametrize("args", [["-h"], ["run", "--help"], ["policies"], ["policies", "--json"], ["policies", "--format=csv"],
                                  ["run", "--policy", "wrr", *SMALL], ["run", "--policy", "wrr", *SMALL, "--json"]])
def test_output_that_fails(args):
    with open("/dev/full", "wb") as full:
        done = call(*args, stdout=full)
    assert done.returncode == 1 and "standard output: " in done.stderr


def test_policies_in_each_format():
    rows = list(csv.DictReader(io.StringIO(output("policies", "--format", "csv"))))
    listed = json.loads(output("policies", "--json"))
    assert {row["policy"] for row in rows} == {policy["name"] for policy in listed}
    defaults = {row["parameter"]: row["default"] for row in rows if row["policy"] == "lard-r"}
    assert defaults == {"T_low": "auto", "T_high": "auto", "K": "20"}
    assert {param["name"]: (param["default"], param.get("paper")) for policy in listed if policy["name"] == "lard-r"
            for param in policy["params"]} == {"T_low": ("auto", 25), "T_high": ("auto", 65), "K": (20, None)}


def test_csv_and_text_have_the_same_numbers():
    data = run("wrr", *SMALL)
    rows = list(csv.DictReader(io.StringIO(output("run", "--policy", "wrr", *SMALL, "--format", "csv"))))
    assert len(rows) == 1
    assert float(rows[0]["throughput_rps"]) == data["throughput_rps"]
    assert int(rows[0]["hits"]) == data["hits"]
    text = dict(line.split()[:2] for line in output("run", "--policy", "wrr", *SMALL).splitlines())
    assert float(text["hit_rate"]) == data["hit_rate"]


def test_policies():
    listed = {policy["name"]: policy for policy in json.loads(output("policies", "--json"))}
    assert {"wrr", "wlc", "lard-r", "hylard"} <= set(listed)
    assert {"threshold", "M", "P", "Q"} == {param["name"] for param in listed["hylard"]["params"]}


def test_replay(log):
    data = json.loads(call("run", "--trace", log, "--policy", "uri-hash", "--nodes", "3", "--warmup", "0",
                           "--clients", "5", "--json").stdout)
    assert data["requests"] == data["completed"] == 5000
    assert data["workload"]["files"] == 500
    # Each file is read once, by one node.
    assert data["disk_reads"] == 500


def test_replay_from_standard_input(log):
    with open(log, "rb") as file:
        done = call("run", "--trace", "-", "--policy", "wrr", "--json", stdin=file)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["requests"] == 5000


def test_trace(log):
    data = json.loads(output("trace", log, "--json"))
    assert data["format"] == "log"
    assert data["requests"] == 5000
    assert data["clients"] == 13
    assert data["lines"]["used"] == 5000
    assert data["lines"]["no_time"] == 1
    assert data["lines"]["bad_size"] == 1
    assert data["working_set_bytes"] == sum(range(1000, 1500))
    assert data["cache_curve"][-1]["hit_rate"] == pytest.approx(1 - 500 / 5000)
    assert "left out" in output("trace", log)
    assert output("trace", "--trace", log) == output("trace", log)
    assert output("trace", log, "--format", "csv").startswith("cache_bytes,hit_rate\n")


def test_trace_gzip(tmp_path):
    path = tmp_path / "access.log.gz"
    path.write_bytes(gzip.compress(log_lines(1000).encode()))
    assert json.loads(output("trace", path, "--json"))["requests"] == 1000
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 0xff
    path.write_bytes(damaged)
    assert "damaged" in refused("trace", path)


def test_trace_worldcup98(tmp_path):
    path = tmp_path / "wc_day66_1.gz"
    path.write_bytes(gzip.compress(b"".join(
        struct.pack(">IIIIBBBB", 900000000 + i, i % 17, i % 100, 500 + i % 100, 0, 2, 1, 0) for i in range(3000))))
    data = json.loads(output("trace", path, "--json"))
    assert data["format"] == "wc98"
    assert (data["requests"], data["files"], data["clients"], data["seconds"]) == (3000, 100, 17, 2999)


def test_zipf_fit_finds_the_exponent(tmp_path):
    """Of a log in which the file of rank i was asked for 3000 / i^0.9 times."""
    path = tmp_path / "zipf.log"
    path.write_text("".join(LINE.format(client=1, file=i, size=5) * int(3000 / i ** 0.9) for i in range(1, 1000)),
                    encoding="ascii")
    assert json.loads(output("trace", path, "--json"))["zipf_exponent"] == pytest.approx(0.9, abs=0.05)


def test_sweep():
    args = ("sweep", "--policy", "lard-r", *SMALL, "--param", "T_high=30,65,100", "--seeds", "3")
    data = json.loads(output(*args, "--json"))
    assert [row["value"] for row in data["values"]] == [30, 65, 100]
    best = max(data["values"], key=lambda row: row["throughput_rps"])
    assert data["recommended"]["value"] == best["value"]
    for row in data["values"]:
        assert row["throughput_rps"] == sorted(row["throughput_rps_by_seed"])[1]
    rows = list(csv.DictReader(io.StringIO(output(*args, "--format", "csv"))))
    assert [float(row["throughput_rps"]) for row in rows] == [row["throughput_rps"] for row in data["values"]]
    assert "recommended: T_high=" in output(*args)


def test_sweep_recommends_what_is_right():
    """A disk cost of nothing, or a node that is never overloaded: known to be different, so one must win clearly."""
    data = json.loads(output("sweep", "--policy", "hylard", "--synthetic", "zipf", "--requests", "60000", "--cache-mb",
                             "32", "--mean-kb", "60", "--param", "M=paper", "--param", "threshold=0,500", "--seeds", "3", "--json"))
    by_value = {row["value"]: row for row in data["values"]}
    assert by_value[0]["hit_rate"] > by_value[500]["hit_rate"]
    winner = 0 if by_value[0]["throughput_rps"] > by_value[500]["throughput_rps"] else 500
    assert data["recommended"]["value"] == winner


@pytest.mark.parametrize("kind, start", [("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_plot(tmp_path, kind, start):
    path = tmp_path / f"plot.{kind}"
    done = call("run", "--policy", "wrr", *SMALL, "--plot", path)
    assert done.returncode == 0, done.stderr
    assert path.read_bytes().startswith(start)


def test_plot_without_matplotlib(tmp_path):
    (tmp_path / "matplotlib.py").write_text("raise ImportError\n", encoding="ascii")
    done = call("run", "--policy", "wrr", *SMALL, "--plot", tmp_path / "x.svg",
                env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.returncode != 0
    assert "python3-matplotlib" in done.stderr
    assert "throughput_rps" in done.stdout


def test_plot_name(tmp_path):
    done = call("run", "--policy", "wrr", *SMALL, "--plot", tmp_path / "x.pdf")
    assert done.returncode != 0
    assert ".svg or .png" in done.stderr
