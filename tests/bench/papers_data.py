# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures as data for plots, a JSON file each (docs/data): ours beside the paper's, and how they were measured."""
import json
import os
import subprocess
import time

FILES = {"fig4": "hylard-4", "fig5": "hylard-5", "fig16": "lvs-cad-16",
         "yl1": "yang-luo-t1", "yl3": "yang-luo-3", "yl4": "yang-luo-4"}


def figures(experiment, rows):
    """{experiment's name: figure} of its rows of papers_lab.summarise(); none for what the papers have as tables."""
    make = {"fig4": _by_policy, "fig5": _by_policy, "yl3": _by_load, "yl4": _by_kind}.get(experiment.name)
    return {experiment.name: make(experiment, rows)} if make else {}


def _by_policy(experiment, rows):
    """HyLARD's figures: throughput in relation to weighted round robin."""
    return {"title": experiment.title, "x": {"label": "policy", "values": [row["policy"] for row in rows]},
            "y": {"label": f"requests/s, x {experiment.base}"},
            "series": [{"name": "ours", "paper": False, "values": [row["to_base"] for row in rows]},
                       {"name": "paper", "paper": True, "values": [_rounded(experiment.paper.get(row["policy"])) for row in rows]}]}


def _rounded(value):
    return None if value is None else round(value, 2)


def _by_load(experiment, rows):
    """Yang and Luo's Fig. 3. Its points are in a picture; the text says that content-aware is always ahead."""
    loads = sorted({row["connections"] for row in rows})
    names = {"wrr": "weighted round robin", "uri-hash": "by content (uri-hash)"}
    return {"title": experiment.title,
            "x": {"label": "connections at a time", "values": loads}, "y": {"label": "requests/s"},
            "series": [{"name": name, "paper": False,
                        "values": [row["requests_per_s"] for load in loads for row in rows
                                   if (row["policy"], row["connections"]) == (policy, load)]}
                       for policy, name in names.items()]}


def _by_kind(experiment, rows):
    """Yang and Luo's Fig. 4, as gains: its text has these."""
    row = next(row for row in rows if row["policy"] != experiment.base)
    return {"title": experiment.title, "x": {"label": "pages", "values": ["dynamic", "static"]},
            "y": {"label": "requests/s gained, %"},
            "series": [{"name": "ours", "paper": False,
                        "values": [round((row[f"{kind}_to_base"][0] - 1) * 100, 1) for kind in ("dynamic", "page")]},
                       {"name": "paper", "paper": True,
                        "values": [round((experiment.paper[kind] - 1) * 100) for kind in ("dynamic", "page")]}]}


def write(directory, made, started):
    """A file for each figure."""
    here = os.path.dirname(os.path.abspath(__file__))
    commit = subprocess.run(["git", "-C", here, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    measured = {"commit": commit.stdout.strip(), "date": time.strftime("%Y-%m-%d", time.gmtime(started)),
                "machine": f"{os.cpu_count()} CPUs, Linux {os.uname().release}"}
    for name, figure in made.items():
        with open(os.path.join(directory, f"{FILES[name]}.json"), "w", encoding="utf-8") as handle:
            json.dump({**figure, "command": f"./dev bench papers-lab --experiments {name}", "measured": measured}, handle,
                      indent=1, ensure_ascii=False)
            handle.write("\n")
