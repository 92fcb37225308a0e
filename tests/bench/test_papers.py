# SPDX-License-Identifier: GPL-2.0-or-later
"""What papers_lab.py is made of, without a cluster: content, control groups, the clients' judgement, the tables."""
import json
import os
import re
import subprocess
from types import SimpleNamespace

import pytest

import cgroups
import papers_cached
import papers_cgi
import papers_client
import papers_data
import papers_lab
import papers_why
from earshotlab import LabError
from papers_content import LARGE_BYTES, Content, Site

MB = 1 << 20
# The last figure and table of each paper, in its own numbers.
PAPERS = {"Yang, Luo": (4, ["1"]), "LVS-CAD": (19, ["I", "II"]), "HyLARD": (7, ["1", "2"]), "DTS": (9, ["1", "2", "3", "4"])}


@pytest.fixture(name="group")
def _group(tmp_path_factory):
    try:
        cgroups.check()
        device = cgroups.disk_of("/var/tmp")
    except LabError as error:
        pytest.skip(str(error))
    if os.geteuid():
        pytest.skip("needs root")
    return cgroups.Group(f"earshot-test-{os.getpid()}-{tmp_path_factory.getbasetemp().name}", device, 32 * MB)


def test_content_is_as_the_paper_says():
    content = Content()
    large = [size for size in content.sizes if size >= LARGE_BYTES]
    assert len(large) == content.large == round(0.16 * len(content.sizes))
    assert sum(large) / content.total_bytes == pytest.approx(0.83, abs=0.01)
    assert all(size >= LARGE_BYTES for size in content.sizes[:content.large])
    assert Content().sizes == content.sizes


def test_requests_come_from_the_seed():
    content = Content(200)
    assert content.draws(1, 500) == Content(200).draws(1, 500) != content.draws(2, 500)
    drawn = content.draws(1, 20000)
    assert drawn.count(content.ranked[0]) > 2 * drawn.count(content.ranked[5]) > 0
    assert set(content.draws(1, 500, lambda number: number < content.large)) <= set(range(content.large))


def test_files_are_what_they_say(tmp_path):
    content = Content(50)
    content.write(str(tmp_path))
    for number in (0, 13, 49):
        body = (tmp_path / content.path(number)[1:]).read_bytes()
        assert len(body) == content.sizes[number] and body.startswith(content.mark(number)[:len(body)])


def test_a_site_is_as_the_paper_says():
    site = Site(dynamic=0.2)
    large = [size for size in site.static_sizes if size >= 65536]
    assert len(large) / len(site.static_sizes) == 0.003 and sum(large) / site.total_bytes == pytest.approx(0.539, abs=0.01)
    drawn = site.draws(1, 100000)
    assert sum(map(site.is_dynamic, drawn)) / len(drawn) == pytest.approx(0.2, abs=0.01)
    assert sum(number < site.large for number in drawn) / len(drawn) == pytest.approx(0.0008, abs=0.0004)
    assert not any(map(site.is_dynamic, Site().draws(1, 1000)))
    assert len({site.path(number) for number in range(len(site.sizes))}) == len(site.sizes)


def test_a_program_makes_the_page_that_is_asked_for(tmp_path):
    site = Site(dynamic=1)
    script = tmp_path / "page"
    papers_cgi.write_script(script)
    number = site.draws(1, 1)[0]
    query = site.path(number).partition("?")[2]
    done = subprocess.run([script], env={"QUERY_STRING": query}, capture_output=True, check=True)
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    assert len(body) == site.sizes[number] and body.startswith(site.mark(number))
    assert f"Content-Length: {len(body)}" in head.decode()


def read_in(group, path):
    # pylint: disable-next=subprocess-popen-preexec-fn
    subprocess.run(["cat", path], preexec_fn=group.join, stdout=subprocess.DEVNULL, check=True)


def test_a_group_counts_reads_and_holds_the_cache(group):
    path = f"/var/tmp/{os.path.basename(group.paths['memory'])}"
    try:
        with open(path, "wb") as handle:
            handle.write(os.urandom(MB))
            handle.flush()
            os.fsync(handle.fileno())
            os.posix_fadvise(handle.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        with group:
            group.set_disk(1000, 100 * MB)
            read_in(group, path)
            assert group.reads()[0] > 0 and MB <= group.reads()[1] < 3 * MB  # cat and what it loads, too
            once = group.reads()
            read_in(group, path)
            assert group.reads() == once, "the second time it is in the cache"
            assert MB <= group.cached_bytes() < 4 * MB
            group.forget()
            assert group.cached_bytes() < MB and group.kills() == 0 and group.waiting() == 0
            group.set_disk(0, 0)
    finally:
        os.unlink(path)
    assert not any(os.path.exists(each) for each in group.paths.values())


def test_a_group_goes_when_its_block_fails(group):
    with pytest.raises(ZeroDivisionError), group:
        # pylint: disable-next=subprocess-popen-preexec-fn,consider-using-with
        child = subprocess.Popen(["sleep", "60"], preexec_fn=group.join)
        child.kill()  # as a lab does; it may take its time to go
        1 / 0  # pylint: disable=pointless-statement
    child.wait()
    assert not any(os.path.exists(each) for each in group.paths.values())


def test_no_disk_is_said():
    with pytest.raises(LabError, match="on no disk"):
        cgroups.disk_of("/proc")


def test_quality_of_service():
    judge = papers_client.Client({"content": ("worldcup", {"files": 20}), "mode": "loop", "seed": 1, "rate": 1e6}).quality
    download = SimpleNamespace(kind=papers_client.DOWNLOAD, size=1000000)
    assert [judge(download, seconds) for seconds in (1.005, 1.04, 1.06)] == ["good", "tolerable", "fail"]
    page = SimpleNamespace(kind=papers_client.PAGE, size=1)
    assert [judge(page, seconds) for seconds in (2.9, 4.9, 5.1)] == ["good", "tolerable", "fail"]


def fabricated(experiment, policy, number, rate, errors=0, connections=221):
    return {"experiment": experiment, "policy": policy, "connections": connections, "round": number,
            "requests_per_s": rate, "mb_per_s": 1.0,
            "hit_share": 0.5, "cpu_us": 100.0, "cpu_us_without_client": 80.0, "imbalance": 1.0, "machine_busy": 0.5,
            "machine_foreign": 0.0, "moved_share": 0.0, "disk_kb_per_s": [1, 2, 3, 4], "disk_reads_per_s": [1.0] * 4,
            "disk_waiting": [0.0] * 4,
            "failed": bool(errors), "cpu_us_by_process": {"corosync": 30.0},
            "client": {"errors": {"short": errors} if errors else {}, "seconds": 10,
                       "p50_ms_of": {"page": 2.0, "download": 0.0, "dynamic": 8.0},
                       "kinds": {"dynamic": {"good": rate}, "page": {"good": 9, "fail": 1},
                                 "download": {"good": 3, "tolerable": 1}}}}


def test_tables_have_the_medians_beside_the_papers():
    arguments = papers_lab.options(["--policies", "wrr,hylard", "--experiments", "dts,fig4", "--rounds", "3"])
    done = [fabricated("fig4", policy, number, rate) for policy, rates in
            (("wrr", (100, 200, 100)), ("hylard", (200, 600, 150))) for number, rate in enumerate(rates, 1)]
    done += [fabricated("dts", policy, 1, 10) for policy in ("ring", "uri-hash")]
    text = papers_lab.report(arguments, done)
    assert ["hylard", "221", "2.54", "2.00", "1.50..3.00", "200"] in [line.split()[:6] for line in text.splitlines()]
    assert "FAILED" not in text and "75.00%" in text and "44,815" in text
    rows = papers_lab.summarise(done)
    assert [(row["policy"], row["to_base"]) for row in rows[:2]] == [("wrr", 1.0), ("hylard", 2.0)]


def test_policies_with_parameters():
    arguments = papers_lab.options(["--policies", "wrr,hylard:M=20+P=2"])
    fig4, fig5 = papers_lab.EXPERIMENTS["fig4"], papers_lab.EXPERIMENTS["fig5"]
    assert [fig5.settings(policy) for policy in arguments.policies] == [
        {}, {"service.inspect": "every", "service.parameters": ["M=20", "P=2"]}]
    # Those that are measured are the papers' here, unless they are given.
    assert fig4.settings("lard:T_low=auto") == {"service.parameters": ["T_low=auto", "T_high=paper"]}
    assert fig4.settings("hylard") == {"service.parameters": ["M=paper"]}
    with pytest.raises(SystemExit):
        papers_lab.options(["--policies", "lrad:T_low=1"])


def test_an_error_of_a_client_is_a_failure(capsys):
    arguments = papers_lab.options(["--policies", "wrr", "--experiments", "fig4"])
    assert papers_lab.finish(arguments, [fabricated("fig4", "wrr", 1, 100)], 0) == 0
    assert papers_lab.finish(arguments, [fabricated("fig4", "wrr", 1, 100, errors=2)], 0) == 1
    assert "2 short" in capsys.readouterr().out


class Rates:
    """In place of simulations: a move that is dear is worth twice as much to whoever avoids it."""

    def __init__(self):
        self.asked = []

    def gain(self, policy, other, settings):
        self.asked.append((policy, other))
        return 20.0 if settings.get("cpu-handover-us", 0) >= 300 else -1.5

    def get(self, _policy, settings, _what=None):
        return 100.0 + settings["requests-per-connection"]


def test_what_is_tried_where_a_statement_differs():
    """The script's own settings first, then one change after another; a gain that is the other way round does not hold."""
    statement = next(each for each in papers_why.STATEMENTS if each.figure == "HyLARD T.2")
    rows = list(papers_why.rows_of(Rates(), statement))
    assert len(rows) == 1 + len(statement.changed) and rows[0]["changed"] == "as in papers_sim.py"
    held = {row["changed"]: row["holds"] for row in rows}
    assert not held["as in papers_sim.py"] and held["cpu-handover-us 400"] and not held["cache-mb 160"]


def test_a_parameter_of_the_policy_is_no_option():
    """xLARD/R's capacity goes to the policy, not to the simulator."""
    bench = Rates()
    papers_why.of_fig18(bench, {"clients": 80, "capacity": 100})
    assert bench.asked == [(("xlard-r", {"capacity": 100}), "lard-r")] * 2


def numbers(text):
    """{"1", "2", "4"} of "1, 2 and 4"; "1 to 5" are all between."""
    text = re.sub(r"(\d+) to (\d+)", lambda m: " ".join(map(str, range(int(m[1]), int(m[2]) + 1))), text)
    return set(re.findall(r"\d+|I+", text))


def test_the_page_has_each_figure_of_the_papers():
    with open(os.path.join(os.path.dirname(__file__), "../../docs/papers.md"), encoding="utf-8") as handle:
        page = handle.read().partition("## Every figure and table")[2].partition("\n## ")[0]
    for paper, (figures, tables) in PAPERS.items():
        named = {"Fig": set(), "Table": set()}
        for cell in re.findall(rf"^\| {paper} \| ([^|]*) \|", page, re.M):
            for kind, text in re.findall(r"(Fig|Table)s?\.? ([^;]*)", cell):
                named[kind] |= numbers(text)
        assert named["Fig"] == {str(number) for number in range(1, figures + 1)}, paper
        assert named["Table"] == set(tables), paper


def test_segregation_beside_the_paper(tmp_path):
    arguments = papers_lab.options(["--experiments", "fig4,yl3,yl4", "--policies", "wrr,lard", "--data", str(tmp_path)])
    done = [fabricated("yl4", policy, 1, rate, connections=192) for policy, rate in (("wrr", 100), ("cahrd", 130))]
    done += [fabricated("yl3", policy, 1, rate, connections=load) for load in (16, 64, 192)
             for policy, rate in (("wrr", load), ("uri-hash", 2 * load))]
    done += [fabricated("fig4", policy, 1, rate) for policy, rate in (("wrr", 100), ("lard", 150))]
    assert papers_lab.finish(arguments, done, 0) == 0
    made = json.loads((tmp_path / "hylard-4.json").read_text())
    assert [series["values"] for series in made["series"]] == [[1.0, 1.5], [1.0, 1.57]]
    text = papers_lab.report(arguments, done)
    assert ["cahrd", "dynamic", "1.27", "1.30"] in [line.split()[:4] for line in text.splitlines()]
    made = json.loads((tmp_path / "yang-luo-4.json").read_text())
    assert [(series["paper"], series["values"]) for series in made["series"]] == [(False, [30.0, 0.0]), (True, [27, 36])]
    made = json.loads((tmp_path / "yang-luo-3.json").read_text())
    assert [series["values"] for series in made["series"]] == [[16, 64, 192], [32, 128, 384]]
    assert set(papers_data.FILES) == {*papers_lab.NAMES} - {"dts"}


def cached(mode, number, rate, errors=0):
    return {"experiment": "fig16", "nodes": 4, "round": number, "mode": mode, "size": "1k", "connection": "close",
            "requests_per_s": rate, "cpu_us": 1e6 / rate, "cpu_us_own": 2e6 / rate,
            "machine_busy": 1.0, "machine_foreign": 0.0, "warmup_errors": 0, "short": False, "failed": bool(errors),
            "wrk": {"requests": 1, "errors": errors, "kinds": {"timeout": errors}}}


def test_cached_pages_beside_each_plain_cluster(tmp_path, capsys):
    arguments = papers_lab.options(["--experiments", "fig16", "--data", str(tmp_path)])
    done = [cached(mode, number, rate * number) for number in (1, 2, 3)
            for mode, rate in (("nat", 100), ("route", 200), ("ring", 400), ("wlc", 150), ("xlard-r", 160))]
    assert papers_lab.finish(arguments, [], 0, done) == 0
    assert "0.38 (0.38..0.38)  0.67 (0.67..0.67)  1.33 (1.33..1.33)" in capsys.readouterr().out
    made = json.loads((tmp_path / "lvs-cad-16.json").read_text())
    assert made["x"]["values"] == [4]
    assert [series["values"] for series in made["series"]] == [[50.0], [-25.0], [-62.5], [0.8], [32.4]]
    assert papers_lab.finish(arguments, [], 0, [*done, cached("nat", 4, 100, errors=2)]) == 1
    assert "2 timeout" in capsys.readouterr().out
