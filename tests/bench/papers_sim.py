#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The papers' experiments in the simulator: LVS-CAD Figs. 17 to 19, HyLARD Figs. 3 to 7 and Table 2; what the paper says
beside what we get. docs/papers.md explains the differences."""
import argparse
import concurrent.futures
import json
import os
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
import chart  # noqa: E402

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
SIM = os.path.join(os.environ.get("EARSHOT_BUILD", os.path.join(TOP, "build")), "bin/earshot-sim")

# LVS-CAD section 6.1: 340 MB of pages of 13 kB, 256 MB per node, HTTP/1.1; 2.4 GHz, where the simulator's defaults are
# for HyLARD's 3.4 GHz; 100 Mbit/s cards (RTL8139) for which the CPU copies each packet and is interrupted for it. 340 MB
# lie close together on a disk: short seeks. The paper does not say how many requests WebBench puts on a connection, how
# popular its pages are, nor what its PHP pages compute.
LVS_CAD = {"synthetic": "zipf", "files": 26154, "mean-kb": 13, "zipf-exponent": 0.7, "net-rate-mbit": 100,
           "requests-per-connection": 5, "cache-mb": 160, "disk-seek-ms": 5, "cpu-request-us": 300,
           "cpu-connect-us": 180, "cpu-handover-us": 180, "cpu-packet-us": 30, "dynamic-cpu-ms": 1}
# HyLARD sections 4.1 to 4.3.
HYLARD = {"synthetic": "worldcup98", "nodes": 8, "cache-mb": 128}
# HyLARD section 4.3: with a threshold of 0 it is LARD, with one above all files LARD/R. The paper's LARD and LARD/R know
# no check of moves, which a P below all differences switches off.
PAPER_LARD = ("hylard", {"threshold": 0})
PAPER_LARD_R = ("hylard", {"threshold": 1000000, "P": -1000000})
HYLARD_ORIGINAL = ("hylard", {"P": -1000000})
# Parameters that are measured unless somebody gives them are the papers' here.
GIVEN = {"lard": ("T_low", "T_high"), "lard-r": ("T_low", "T_high"), "hylard": ("M",)}


class Bench:
    """Runs simulations, each once."""

    def __init__(self, args):
        self.seeds = range(1, 2 if args.fast else 4)
        self.requests = {"zipf": 300000, "worldcup98": 400000 if args.fast else 1974360}
        self.pool = concurrent.futures.ThreadPoolExecutor(args.jobs)
        self.results = {}
        self.done = 0

    def _run(self, policy, params, settings, seed):
        command = [SIM, "run", "--json", "--policy", policy, "--seed", str(seed)]
        if "requests" not in settings:
            command += ["--requests", str(self.requests[settings["synthetic"]])]
        for name, value in settings.items():
            command += [f"--{name}", str(value)]
        for name, value in {**{name: "paper" for name in GIVEN.get(policy, ())}, **params}.items():
            command += ["--param", f"{name}={value}"]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        self.done += 1
        if sys.stderr.isatty():
            print(f"\r{self.done} of {len(self.results) * len(self.seeds)} simulations", end="", file=sys.stderr)
        return json.loads(done.stdout)

    def start(self, policy, settings):
        """@policy: a name, or (name, parameters)"""
        name, params = policy if isinstance(policy, tuple) else (policy, {})
        key = json.dumps([name, params, settings], sort_keys=True)
        if key not in self.results:
            self.results[key] = [self.pool.submit(self._run, name, params, settings, seed) for seed in self.seeds]
        return key

    def get(self, policy, settings, what="throughput_rps"):
        return statistics.median(f.result()[what] for f in self.results[self.start(policy, settings)])

    def gain(self, policy, other, settings):
        """By how many percent @policy is better; seed by seed, then the median."""
        ours, theirs = (self.results[self.start(p, settings)] for p in (policy, other))
        return statistics.median(100 * (a.result()["throughput_rps"] / b.result()["throughput_rps"] - 1)
                                 for a, b in zip(ours, theirs))


def percent(*values):
    low, high = min(values), max(values)
    return f"{low:+.1f}%" if low == high else f"{low:+.1f} .. {high:+.1f}%"


# Percent: what is nearer to each other is the same.
NOISE = 1


def no_worse(gains):
    return min(gains) > -NOISE and max(gains) > NOISE


def no_better(gains):
    return max(gains) < NOISE


def row(figure, statement, theirs, ours, agrees):
    return {"figure": figure, "statement": statement, "paper": theirs, "ours": ours, "agrees": bool(agrees)}


def drawing(title, x, y, series):
    return chart.make(f"{title}, simulated", x, y, {name: [round(value, 1) for value in values] for name, values in series.items()},
                      "tests/bench/papers_sim.py")


def curve(bench, title, label, policies, points):
    """A chart of throughput over points [(x, settings)]."""
    return drawing(title, (label, [x for x, _ in points]), "requests/s",
                   {name: [bench.get(policy, settings) for _, settings in points] for name, policy in policies.items()})


LVS_POLICIES = {"WLC": "wlc", "CAWLL": "cawll", "LARD/R": "lard-r", "xLARD/R": "xlard-r"}


def fig17(bench):
    points = [(n, {**LVS_CAD, "nodes": n}) for n in range(1, 9)]
    many = [settings for n, settings in points if n > 1]
    best = [bench.gain("xlard-r", "wlc", s) for s in many]
    cawll = [bench.gain("cawll", "wlc", s) for s in many]
    return [
        row("LVS-CAD 17", "xLARD/R over WLC, 2..8 nodes", "+58.7 .. +156.5%", percent(*best), min(best) > 0),
        row("LVS-CAD 17", "CAWLL over WLC, 2..8 nodes", "below", percent(*cawll), no_better(cawll)),
    ], {"lvs-cad-17": curve(bench, "LVS-CAD Fig. 17", "back-ends", LVS_POLICIES, points)}


def fig18(bench):
    rows, over = [], {}
    gains = {"xlard-r": [], "lard-r": [], "cawll": []}
    wins = []
    rates = (0.2, 0.4, 0.6, 0.8)
    for part, share in zip("abcd", (0.1, 0.2, 0.3, 0.4)):
        points = [{**LVS_CAD, "nodes": 8, "hot-share": share, "hot-rate": rate} for rate in rates]
        for policy, gain in gains.items():
            gain += [bench.gain(policy, "wlc", settings) for settings in points]
        wins += [bench.gain("xlard-r", "lard-r", settings) for settings in points]
        over[f"({part}) {share:.0%} of the pages are hot"] = gains["xlard-r"][-len(points):]
    rows.append(row("LVS-CAD 18", "xLARD/R over WLC", "+14.4 .. +64.3%", percent(*gains["xlard-r"]),
                    no_worse(gains["xlard-r"])))
    rows.append(row("LVS-CAD 18", "LARD/R over WLC", "+8.0 .. +59.0%", percent(*gains["lard-r"]),
                    no_worse(gains["lard-r"])))
    rows.append(row("LVS-CAD 18", "CAWLL over WLC", "below", percent(*gains["cawll"]), no_better(gains["cawll"])))
    rows.append(row("LVS-CAD 18", "xLARD/R over LARD/R", "best under all rates", percent(*wins), no_worse(wins)))
    return rows, {"lvs-cad-18": drawing("LVS-CAD Fig. 18, xLARD/R over WLC", ("click-through rate of the hot pages, %",
                                                                          [round(100 * rate) for rate in rates]), "gain, %", over)}


def fig19(bench):
    points = [(share, {**LVS_CAD, "nodes": 8, "dynamic-share": share}) for share in (0.1, 0.2, 0.3, 0.4)]
    gain = {p: [bench.gain(p, "wlc", s) for _, s in points] for p in ("cahrd", "xlard-r", "lard-r", "cawll")}
    best = [bench.gain("cahrd", p, s) for p in ("xlard-r", "lard-r", "cawll") for _, s in points]
    cross = [bench.gain("xlard-r", "cawll", s) for _, s in points]
    return [
        row("LVS-CAD 19", "CAHRD over WLC", "+13.3 .. +36.7%", percent(*gain["cahrd"]), no_worse(gain["cahrd"])),
        row("LVS-CAD 19", "xLARD/R over WLC", "+2.8 .. +24.2%", percent(*gain["xlard-r"]), no_worse(gain["xlard-r"])),
        row("LVS-CAD 19", "LARD/R over WLC", "+0.9 .. +17.2%", percent(*gain["lard-r"]), no_worse(gain["lard-r"])),
        row("LVS-CAD 19", "CAHRD over the best other", "best", percent(*best), no_worse(best)),
        row("LVS-CAD 19", "xLARD/R over CAWLL, 10..40% dynamic", "above up to 30%, then below",
            " ".join(f"{g:+.1f}%" for g in cross), cross[0] > 0 > cross[-1]),
    ], {"lvs-cad-19": curve(bench, "LVS-CAD Fig. 19", "dynamic requests, %", {**LVS_POLICIES, "CAHRD": "cahrd"},
                            [(round(100 * share), settings) for share, settings in points])}


def hylard_fig3(bench):
    values = [*range(0, 1001, 100), 5000]
    rps = {v: bench.get(("hylard", {"threshold": v}), HYLARD) for v in values}
    best = max(values, key=rps.get)
    return [
        row("HyLARD 3", "best threshold, KB", "500", f"{best}", 200 <= best <= 800),
        row("HyLARD 3", "500 KB over 0 (LARD) and over all files (LARD/R)", "better than both",
            percent(100 * (rps[500] / rps[0] - 1), 100 * (rps[500] / rps[5000] - 1)),
            rps[500] > max(rps[0], rps[5000])),
    ], {"hylard-3": drawing("HyLARD Fig. 3", ("threshold, KB", values[:-1]), "requests/s", {"HyLARD": [rps[v] for v in values[:-1]]})}


def hylard_fig4to6(bench):
    theirs = {
        1: ("HyLARD 4", {"WRR": 153.7, "LARD": 61.5, "LARD/R": 10.1}),
        10: ("HyLARD 5", {"WRR": 84.5, "LARD/R": 16.9}),
        20: ("HyLARD 6", {"LARD/R": 16.7}),
    }
    others = {"WRR": "wrr", "LARD": PAPER_LARD, "LARD/R": PAPER_LARD_R}
    rows, words, bars = [], [], {"ours": [], "paper": []}
    for per_connection, (figure, statements) in theirs.items():
        settings = {**HYLARD, "requests-per-connection": per_connection}
        for other, paper in statements.items():
            gain = bench.gain("hylard", others[other], settings)
            rows.append(row(figure, f"HyLARD over {other}, {per_connection} requests per connection", percent(paper),
                            percent(gain), gain > 0))
            words.append(f"{figure[-1]}: {other}")
            bars["ours"].append(gain)
            bars["paper"].append(paper)
        gain = bench.gain("lard-r", "wrr", settings)
        rows.append(row(figure, f"(LARD/R as Pai et al. have it over WRR, {per_connection} per connection)", "-",
                        percent(gain), gain > 0))
    gain = bench.gain("wrr", PAPER_LARD, {**HYLARD, "requests-per-connection": 20})
    rows.append(row("HyLARD 6", "WRR over LARD, 20 requests per connection", "similar", percent(gain), abs(gain) < 15))
    return rows, {"hylard-4-6": drawing("HyLARD Figs. 4 to 6: HyLARD over the others\n1, 10 and 20 requests per connection",
                                        ("figure: over", words), "gain, %", bars)}


def hylard_fig7(bench):
    points = [(k, {**HYLARD, "requests-per-connection": k}) for k in (1, 10, 20, 30, 40)]
    hylard = [bench.get("hylard", s) for _, s in points]
    wlc = [bench.get("wlc", s) for _, s in points]

    def change(values, i, j):
        return 100 * (values[j] / values[i] - 1)

    return [
        row("HyLARD 7", "HyLARD, 10 requests per connection over 1", "much better", percent(change(hylard, 0, 1)),
            change(hylard, 0, 1) > 1),
        row("HyLARD 7", "HyLARD, 20 and 30 over 10", "almost the same",
            percent(change(hylard, 1, 2), change(hylard, 1, 3)),
            max(abs(change(hylard, 1, 2)), abs(change(hylard, 1, 3))) < 5),
        row("HyLARD 7", "HyLARD, 40 over 30", "certainly less", percent(change(hylard, 3, 4)), change(hylard, 3, 4) < -1),
        row("HyLARD 7", "WLC, 20 over 1, less that of HyLARD", "WLC grows more",
            percent(change(wlc, 0, 2) - change(hylard, 0, 2)), change(wlc, 0, 2) > change(hylard, 0, 2)),
        row("HyLARD 7", "HyLARD over WLC, all", "better",
            percent(*[100 * (a / b - 1) for a, b in zip(hylard, wlc)]), all(a > b for a, b in zip(hylard, wlc))),
    ], {"hylard-7": curve(bench, "HyLARD Fig. 7", "requests per connection", {"WLC": "wlc", "HyLARD": "hylard"}, points)}


def hylard_table2(bench):
    settings = {**HYLARD, "requests-per-connection": 10}
    gain = bench.gain("hylard", HYLARD_ORIGINAL, settings)
    moves = [bench.get(p, settings, "moves_per_request") for p in (HYLARD_ORIGINAL, "hylard")]
    return [
        row("HyLARD T.2", "with the check of moves over without", "+3.8%", percent(gain), gain > 0),
        row("HyLARD T.2", "moves per request, without and with", "-", f"{moves[0]:.2f} {moves[1]:.2f}",
            moves[1] < moves[0]),
    ], {}


EXPERIMENTS = (fig17, fig18, fig19, hylard_fig3, hylard_fig4to6, hylard_fig7, hylard_table2)


class Dry:
    """A first pass that only starts everything, so that all CPUs are busy: each number is 1."""

    def __init__(self, bench):
        self.bench = bench

    def get(self, policy, settings, _what=None):
        self.bench.start(policy, settings)
        return 1.0

    def gain(self, policy, other, settings):
        self.bench.start(policy, settings)
        self.bench.start(other, settings)
        return 1.0


def run(args):
    bench = Bench(args)
    rows, charts = [], {}
    for experiment in EXPERIMENTS:
        experiment(Dry(bench))
    for experiment in EXPERIMENTS:
        more, drawn = experiment(bench)
        rows += more
        charts.update(drawn)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return {"command": "papers", "seeds": len(bench.seeds), "rows": rows, "charts": charts}


def print_table(rows):
    columns = ("figure", "statement", "paper", "ours")
    width = {c: max(len(c), *(len(r[c]) for r in rows)) for c in columns}
    print("  ".join(c.ljust(width[c]) for c in columns))
    for r in rows:
        print("  ".join(r[c].ljust(width[c]) for c in columns) + ("" if r["agrees"] else "  differs"))
    print(f"\n{sum(r['agrees'] for r in rows)} of {len(rows)} agree in direction; docs/papers.md says why others do not")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", metavar="FILE", help="write all to FILE, for ./dev bench plots --take FILE too")
    parser.add_argument("--fast", action="store_true", help="one seed and shorter runs: half a minute instead of minutes")
    parser.add_argument("--jobs", type=int, default=2, help="simulations at a time (default 2)")
    args = parser.parse_args()
    if not os.access(SIM, os.X_OK):
        sys.exit(f"papers_sim: {SIM} is not built: ./dev build")
    data = run(args)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as handle:
            handle.write(json.dumps(data, indent=1) + "\n")
    print_table(data["rows"])


if __name__ == "__main__":
    main()
