#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""./dev bench scale: what each role costs, measured, and what 1 to 64 nodes would serve, beside proxies (README.md)."""
import argparse
import json
import os
import sys
import tempfile
import time

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
import paths  # noqa: E402, F401
import packet  # noqa: E402
import runs  # noqa: E402
import scale_lab  # noqa: E402
import scale_model  # noqa: E402
import targets  # noqa: E402
from earshotlab import LabError  # noqa: E402

FORMAT = 1  # of the inputs
WITHIN = 0.1  # of the measured cost should a prediction be
DTS_NODES, DTS_GBIT = range(1, 9), 1
DTS_BYTES = {"Fig. 6": 4, "Fig. 7": 1024}


def _numbers(text):
    found = [int(word) for word in text.split(",")]
    if not all(1 < number <= 8 for number in found):
        raise argparse.ArgumentTypeError("from 2 to 8: one node is among the inputs")
    return found


def parser():
    root = argparse.ArgumentParser(prog="./dev bench scale", description=__doc__)
    measuring = root.add_argument_group("measuring")
    measuring.add_argument("--inputs", metavar="FILE", help="measure nothing: compute from what --measure wrote")
    measuring.add_argument("--measure", metavar="FILE", help="write the measured inputs to FILE")
    measuring.add_argument("--datapaths", type=runs.choice_list(scale_lab.DATAPATHS), default=["bpf"], metavar="D,...",
                           help=f"of {', '.join(scale_lab.DATAPATHS)} (default: bpf)")
    measuring.add_argument("--nodes", type=_numbers, metavar="N,...", help="clusters of the check (default: 2,3,4,6,8; with --fast: 8)")
    measuring.add_argument("--rounds", type=int, metavar="N", help="default 2; with --fast 1")
    measuring.add_argument("--seconds", type=int, metavar="N", help="each run; default 2; with --fast 1")
    measuring.add_argument("--fast", action="store_true", help="for a look, not for figures")
    load, machine = scale_model.Workload(), scale_model.Machine()
    asked = root.add_argument_group("what is asked for, of which machines")
    asked.add_argument("--body-kb", type=float, default=load.body_kb, metavar="KB", help="of a response; default %(default)s")
    asked.add_argument("--request-bytes", type=int, default=load.request_bytes, metavar="B", help="default %(default)s")
    asked.add_argument("--per-connection", type=float, default=10, metavar="N", help="requests on a connection; default %(default)s")
    asked.add_argument("--app-us", type=float, default=load.app_us, metavar="US",
                       help="CPU microseconds of the application for a request; default %(default)s: a static file")
    asked.add_argument("--no-pauses", dest="pauses", action="store_false",
                       help="clients send their next request at once, so that it acknowledges the response")
    asked.add_argument("--cores", type=float, default=machine.cores, metavar="N", help="of a node or proxy; default %(default)s")
    asked.add_argument("--link-gbit", type=float, default=machine.link_gbit, metavar="G", help="of a cable; default %(default)s")
    root.add_argument("--json", metavar="FILE", help="write the rows of the table to FILE, and charts for ./dev bench plots")
    return root


def inputs_of(path):
    with open(path, encoding="utf-8") as handle:
        found = json.load(handle)
    if found.get("format") != FORMAT:
        raise LabError(f"{path}: this is not what --measure of this version writes (format {found.get('format')}, not {FORMAT})")
    return found


def measured(arguments):
    rounds, seconds = (1, 1) if arguments.fast else (2, 2)
    nodes = arguments.nodes or ([8] if arguments.fast else [2, 3, 4, 6, 8])
    with tempfile.TemporaryDirectory(prefix="earshot-bench-") as docroot:
        os.chmod(docroot, 0o755)
        targets.make_docroot(docroot)
        found = scale_lab.measure(docroot, arguments.datapaths, nodes, arguments.rounds or rounds, arguments.seconds or seconds)
    return {"format": FORMAT, "date": time.strftime("%Y-%m-%d", time.gmtime()), **packet.machine(), **found}


def aligned(lines):
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join("  ".join(map(str.rjust, line, widths)) for line in lines)


def inputs_table(inputs):
    lines = [("CPU us a request", *scale_model.CELLS)]
    roles = {"one server alone": inputs["serve"]}
    for name, by_role in inputs["proxies"].items():
        roles |= {name: by_role["proxy"], f"a server behind {name}": by_role["server"]}
    for name, by_role in inputs["datapaths"].items():
        roles |= {f"{name}: inspect and serve": by_role["own"], f"{name}: inspect here, serve there": by_role["moved"],
                  f"{name}: overhear": by_role["overhear"]}
    lines += [(role, *(f"{by_cell[cell]:.2f}" for cell in scale_model.CELLS)) for role, by_cell in roles.items()]
    lines.append(("packets heard", *(f"{inputs['packets'][cell]:.2f}" for cell in scale_model.CELLS)))
    idle = ", ".join(f"{name} {of['background']:.2%}" for name, of in inputs["datapaths"].items())
    return (f"Inputs: {inputs['date']}, {inputs['commit']}, Linux {inputs['kernel']}, {inputs['processors']} x {inputs['processor']}\n"
            f"{aligned(lines)}\nof a CPU, always: {idle}")


def checks_table(checks):
    lines = [("check: datapath", "nodes", "cell", "slower", "predicted us", "measured us", "ratio", "range", "")]
    for each in checks:
        low, high = each["ratio_range"]
        good = abs(each["ratio"] - 1) <= WITHIN
        lines.append((each["datapath"], str(each["nodes"]), each["cell"], f"{each['slower']:.2f}", f"{scale_model.checked(each)[0]:.1f}",
                      f"{each['measured']:.1f}", f"{each['ratio']:.2f}", f"{low:.2f}..{high:.2f}", "" if good else "OUTSIDE"))
    good = sum(abs(each["ratio"] - 1) <= WITHIN for each in checks)
    return f"{aligned(lines)}\n{good} of {len(checks)} within {WITHIN:.0%}"


def _rate(found):
    return f"{found['requests_per_s']:,.0f}" if found else "-"


def table(rows):
    beside = list(rows[-1]["proxies"])
    lines = [("datapath", "nodes", "req/s", "x one", "last node", "limit", "overhearing", "inbound Mbit/s", *beside)]
    for row in rows:
        lines.append((row["datapath"], str(row["nodes"]), _rate(row), f"{row['speedup']:.2f}", f"{row['last_node']:.2f}", row["limit"],
                      f"{row['overhearing']:.0%}", f"{row['inbound_mbit']:,.0f}", *(_rate(row["proxies"].get(key)) for key in beside)))
    return aligned(lines)


def _ranges(numbers):
    """"3 to 9, 12" of 3, 4, ..., 9, 12."""
    groups = []
    for number in numbers:
        if groups and groups[-1][1] == number - 1:
            groups[-1][1] = number
        else:
            groups.append([number, number])
    return ", ".join(f"{first} to {last}" if last > first else str(first) for first, last in groups)


def where(inputs, load, machine):
    """In words, where it stops paying and where proxies are ahead."""
    lines = []
    for datapath in inputs["datapaths"]:
        last = scale_model.stops_paying(inputs, load, machine, datapath)
        words = [f"{datapath}: up to {last} nodes each adds at least {scale_model.PAYS:.0%} of a node"]
        for proxies in (1, 2):
            ahead = _ranges(scale_model.proxies_ahead(inputs, load, machine, datapath, proxies))
            words.append(f"as many machines with {proxies} of the better proxy serve more with {ahead or 'none of 1 to 64'}")
        lines.append("; ".join(words))
    return "\n".join(lines)


def dts_table(inputs):
    """Of each datapath; the paper has no numbers in its text but 3.4 for eight nodes, and 85,000 connections a second in Fig. 7."""
    lines = [("DTS Figs. 6, 7: nodes", *map(str, DTS_NODES))]
    for datapath in inputs["datapaths"]:
        both = [scale_model.dts(inputs, datapath, number) for number in DTS_NODES]
        lines += [(f"{datapath}: N inspectors, x one node", *(f"{many:.2f}" for many, _ in both)),
                  (f"{datapath}: one inspector", *(f"{one:.2f}" for _, one in both)),
                  (f"{datapath}: N to one (paper: 3.4 at 8)", *(f"{many / one:.2f}" for many, one in both))]
        free = [scale_model.dts(inputs, datapath, number, free=True) for number in DTS_NODES]
        lines.append((f"{datapath}: N to one, a server that costs nothing", *(f"{many / one:.2f}" for many, one in free)))
    limits = []
    for figure, size in DTS_BYTES.items():
        load = scale_model.Workload(body_kb=size / 1024, request_bytes=size, pauses=False)
        limits.append(f"{figure} {DTS_GBIT * 1e9 / 8 / load.bytes_in:,.0f}")
    return f"{aligned(lines)}\nconnections/s that fill a cable of {DTS_GBIT} Gbit/s: {', '.join(limits)} (paper: 85,000 in Fig. 7)"


def charts(inputs, rows):
    """Of both tables, as docs/data has charts."""
    where_from = {"commit": inputs["commit"], "date": inputs["date"], "machine": f"{inputs['processors']} x {inputs['processor']}"}

    def chart(title, numbers, label, series):
        return {"title": title, "x": {"label": "nodes", "values": numbers}, "y": {"label": label}, "command": "./dev bench scale",
                "series": [{"name": name, "values": values} for name, values in series.items()], "measured": where_from}

    def column(found, key):
        return [row["proxies"].get(key, {}).get("requests_per_s") for row in found]

    scale, inspectors = {}, {}
    for datapath in inputs["datapaths"]:
        own = [row for row in rows if row["datapath"] == datapath]
        scale[datapath] = [row["requests_per_s"] for row in own]
        both = [scale_model.dts(inputs, datapath, number) for number in DTS_NODES]
        inspectors |= {f"{datapath}, N inspectors": [many for many, _ in both], f"{datapath}, one inspector": [one for _, one in both]}
    scale |= {f"{key[:-3]}, {key[-1]} in front": column(own, key) for key in own[-1]["proxies"]}
    return {"scale": chart("Computed from measured costs: as many machines, by what is in front", [row["nodes"] for row in own],
                           "requests/s", scale),
            "scale-dts": chart("DTS Figs. 6 and 7, computed from measured costs", list(DTS_NODES), "connections/s, x one node", inspectors)}


def written(path, found):
    with open(path, "w", encoding="utf-8") as handle:
        json.dump(found, handle, indent=1)
        handle.write("\n")


def main():
    arguments = parser().parse_args()
    inputs = inputs_of(arguments.inputs) if arguments.inputs else measured(arguments)
    if arguments.measure:
        written(arguments.measure, inputs)
    load = scale_model.Workload(arguments.body_kb, arguments.request_bytes, arguments.per_connection, arguments.app_us, arguments.pauses)
    machine = scale_model.Machine(arguments.cores, arguments.link_gbit)
    rows = scale_model.rows(inputs, load, machine)
    if arguments.json:
        written(arguments.json, {"load": vars(load), "machine": vars(machine), "rows": rows, "charts": charts(inputs, rows)})
    asked = (f"{load.body_kb:g} KB, requests of {load.request_bytes} bytes, {load.per_connection:g} on a connection, {load.app_us:g} us of an "
             f"application; machines with {machine.cores:g} CPUs and {machine.link_gbit:g} Gbit/s")
    print(inputs_table(inputs), checks_table(inputs["checks"]), f"{asked}\n{table(rows)}", where(inputs, load, machine), dts_table(inputs),
          sep="\n\n")
    return 0


if __name__ == "__main__":
    runs.run("scale", main)
