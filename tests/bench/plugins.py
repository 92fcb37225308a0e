#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""./dev bench plugins: what each shipped plugin and the template cost a request, beside an empty chain (README.md)."""
import argparse
import json
import os
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
import paths  # noqa: E402, F401

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("EARSHOT_BUILD", os.path.join(HERE, "..", "..", "build"))

# In the lab all of them leave the request to the policy, so that the same nodes serve the same requests.
LUA = "function route(req, cluster) local t = req:header('X-Tenant') return t and cluster:ring_target(t) end"
LAB_CHAINS = {
    "(empty)": "",
    "header-hash": 'plugin header-hash { config = "header X-Tenant" }',
    "path-map": 'plugin path-map { config = "prefix /none/ n1" }',
    "canary": 'plugin canary { config = "percent 0; nodes n3; others pass" }',
    "lua": f'plugin lua {{ config = "{LUA}" }}',
}


def parser():
    root = argparse.ArgumentParser(prog="./dev bench plugins", description=__doc__)
    root.add_argument("--rounds", type=int, metavar="N", help="default 60, in the lab 5")
    root.add_argument("--requests", type=int, metavar="N", help="of each case and round; default 20000")
    root.add_argument("--fast", action="store_true", help="few rounds: for a look, not for figures")
    root.add_argument("--lab", action="store_true", help="besides, requests/s of three nodes with each of some plugins")
    root.add_argument("--seconds", type=int, default=3, metavar="N", help="each run in the lab; default 3")
    root.add_argument("--json", metavar="FILE", help="write everything measured to FILE")
    return root


def measure(rounds, requests):
    """What plugin_bench has printed, as dictionaries."""
    environment = {**os.environ, "EARSHOT_PLUGIN_DIR": os.path.join(BUILD, "plugins")}
    done = subprocess.run([os.path.join(BUILD, "bin", "plugin_bench"), str(rounds), str(requests)], env=environment,
                          stdout=subprocess.PIPE, text=True, check=True)
    runs = []
    for line in done.stdout.splitlines():
        number, case, plugin, empty_ns, ns = line.split("\t")
        runs.append({"round": int(number), "case": case, "plugin": plugin, "empty_ns": float(empty_ns), "ns": float(ns)})
    return runs


def summarise(runs):
    """A row for each case: medians; differences and ratios are to the empty chain right before it."""
    cases = {}
    for run in runs:
        cases.setdefault(run["case"], []).append(run)
    rows = []
    for case in sorted(cases):
        group = cases[case]
        more = [run["ns"] - run["empty_ns"] for run in group]
        rows.append({
            "case": case, "plugin": group[0]["plugin"], "rounds": len(group),
            "empty_ns": round(statistics.median(run["empty_ns"] for run in group), 1),
            "ns": round(statistics.median(run["ns"] for run in group), 1),
            "more_ns": round(statistics.median(more), 1), "more_ns_range": [round(min(more), 1), round(max(more), 1)],
            "ratio": round(statistics.median(run["ns"] / run["empty_ns"] for run in group), 2),
        })
    return rows


def table(rows):
    lines = [f"{'plugin':26} {'empty ns':>9} {'with ns':>9} {'more ns':>9} {'range':>13} {'ratio':>6}"]
    for row in rows:
        least, most = row["more_ns_range"]
        lines.append(f"{row['case']:26} {row['empty_ns']:9.0f} {row['ns']:9.0f} {row['more_ns']:9.0f} "
                     f"{f'{least:.0f}..{most:.0f}':>13} {row['ratio']:6.2f}")
    return "\n".join(lines)


def measure_lab(rounds, seconds):
    """Requests/s with each chain in turn, 1 KB over connections that are closed: all are inspected."""
    # pylint: disable=import-outside-toplevel
    import load
    from earshotlab import Lab

    os.environ["EARSHOT_PLUGIN_DIR"] = os.path.join(BUILD, "plugins")
    workload, runs = load.Workload("close", ["close"]), []
    names = list(LAB_CHAINS)
    with Lab(name="bench-plugins", nodes=3, policy="wrr") as lab:
        with open(lab.config_file, encoding="utf-8") as handle:
            plain = handle.read()
        for number in range(rounds):
            for name in names[number % len(names):] + names[:number % len(names)]:
                with open(lab.config_file, "w", encoding="utf-8") as handle:
                    handle.write(plain.replace("service web {", "service web {\n    " + LAB_CHAINS[name], 1))
                for node in ("n1", "n2", "n3"):
                    lab.node(node).exec(["earshot", "reload"])
                load.run(lab, lab.url(""), "u/1k", workload, 1)
                result = load.run(lab, lab.url(""), "u/1k", workload, seconds)
                runs.append({"round": number + 1, "chain": name, "errors": result["errors"],
                             "requests_per_s": round(result["requests"] / (result["duration_us"] / 1e6), 1)})
    return runs


def summarise_lab(runs):
    base = {run["round"]: run["requests_per_s"] for run in runs if run["chain"] == "(empty)"}
    rows = []
    for chain in dict.fromkeys(run["chain"] for run in runs):
        group = [run for run in runs if run["chain"] == chain]
        ratios = [run["requests_per_s"] / base[run["round"]] for run in group]
        rows.append({"chain": chain, "rounds": len(group), "errors": sum(run["errors"] for run in group),
                     "requests_per_s": statistics.median(run["requests_per_s"] for run in group),
                     "ratio": round(statistics.median(ratios), 3), "range": [round(min(ratios), 3), round(max(ratios), 3)]})
    return sorted(rows, key=lambda row: row["chain"])


def table_lab(rows):
    lines = [f"{'in the lab, 1 KB, close':26} {'requests/s':>11} {'ratio':>6}  range"]
    for row in rows:
        lines.append(f"{row['chain']:26} {row['requests_per_s']:11,.0f} {row['ratio']:6.2f}  "
                     f"{row['range'][0]:.2f}..{row['range'][1]:.2f}" + (f"  ERRORS: {row['errors']}" if row["errors"] else ""))
    return "\n".join(lines)


def main():
    arguments = parser().parse_args()
    requests = arguments.requests or (2000 if arguments.fast else 20000)
    runs = measure(arguments.rounds or (3 if arguments.fast else 60), requests)
    result = {"requests": requests, "rows": summarise(runs), "runs": runs}
    print(table(result["rows"]))
    if arguments.lab:
        runs = measure_lab(arguments.rounds or (1 if arguments.fast else 5), arguments.seconds)
        result["lab"] = {"rows": summarise_lab(runs), "runs": runs}
        print("\n" + table_lab(result["lab"]["rows"]))
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as handle:
            json.dump(result, handle, indent=1)
    return int(any(row["errors"] for row in result.get("lab", {}).get("rows", [])))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (subprocess.CalledProcessError, OSError) as error:
        sys.exit(f"bench plugins: {error}")
