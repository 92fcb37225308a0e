#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""./dev bench plots: draws docs/plots/NAME.svg from docs/data/NAME.json, for each that is there (chart.py). --take brings the
charts there that a benchmark has written with --json: its member "charts" has them, by name."""
import argparse
import glob
import json
import os
import sys

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
import chart  # noqa: E402

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs")


def drawn(docs):
    """{name of an SVG: its text}, of all data; an SVG without data has None."""
    found = {os.path.basename(path): None for path in glob.glob(os.path.join(docs, "plots/*.svg"))}
    for path in sorted(glob.glob(os.path.join(docs, "data/*.json"))):
        with open(path, encoding="utf-8") as handle:
            try:
                found[os.path.basename(path)[:-5] + ".svg"] = chart.draw(json.load(handle))
            except (ValueError, chart.WrongData) as error:
                sys.exit(f"plots: {path}: {error}")
    return found


def take(path, docs):
    """Writes the charts of a benchmark's JSON file into docs/data."""
    with open(path, encoding="utf-8") as handle:
        charts = json.load(handle).get("charts")
    if not charts:
        sys.exit(f"plots: {path} has no charts")
    for name, data in charts.items():
        try:
            chart.check(data)
        except chart.WrongData as error:
            sys.exit(f"plots: {path}: {name}: {error}")
        with open(os.path.join(docs, "data", f"{name}.json"), "w", encoding="utf-8") as handle:
            handle.write(json.dumps(data, indent=1) + "\n")


def text_of(path):
    try:
        with open(path, encoding="utf-8") as handle:
            return handle.read()
    except FileNotFoundError:
        return None


def main(words=None):
    parser = argparse.ArgumentParser(prog="./dev bench plots", description=__doc__)
    parser.add_argument("--check", action="store_true", help="draw nothing; 1 if a plot is not what its data give")
    parser.add_argument("--take", nargs="+", default=(), metavar="FILE", help="before that, charts of what benchmarks wrote")
    parser.add_argument("--docs", default=DOCS, metavar="DIR", help="where data/ and plots/ are")
    arguments = parser.parse_args(words)
    for name in ("data", "plots"):
        os.makedirs(os.path.join(arguments.docs, name), exist_ok=True)
    for path in arguments.take:
        take(path, arguments.docs)
    status = 0
    for name, text in sorted(drawn(arguments.docs).items()):
        path = os.path.join(arguments.docs, "plots", name)
        if text is None:
            status = 1
            print(f"plots: docs/plots/{name} has no docs/data/{name[:-4]}.json")
        elif text_of(path) == text:
            continue
        elif arguments.check:
            status = 1
            print(f"plots: docs/plots/{name} is not what its data give: ./dev bench plots")
        else:
            with open(path, "w", encoding="utf-8") as handle:
                handle.write(text)
            print(f"drew docs/plots/{name}")
    return status


if __name__ == "__main__":
    sys.exit(main())
