# SPDX-License-Identifier: GPL-2.0-or-later
"""./dev bench plugins: it measures every shipped plugin and the template, and makes medians of the rounds."""
import json
import os
import subprocess
import sys

import plugins

HERE = os.path.dirname(os.path.abspath(__file__))
SHIPPED = {name for name in os.listdir(os.path.join(HERE, "..", "..", "plugins"))
           if os.path.isdir(os.path.join(HERE, "..", "..", "plugins", name))}


def test_every_plugin_is_measured(tmp_path):
    done = subprocess.run([sys.executable, os.path.join(HERE, "plugins.py"), "--rounds", "3", "--requests", "300", "--json",
                           str(tmp_path / "out.json")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    found = json.loads((tmp_path / "out.json").read_text())
    assert {row["plugin"] for row in found["rows"]} == SHIPPED | {"my-rule"}
    assert all(row["rounds"] == 3 and row["empty_ns"] > 0 and row["ns"] > 0 for row in found["rows"])
    assert len(found["runs"]) == 3 * len(found["rows"])
    lines = done.stdout.splitlines()
    assert len(lines) == 1 + len(found["rows"])
    assert all(lines[i + 1].startswith(row["case"]) for i, row in enumerate(found["rows"]))


def test_medians():
    runs = [{"round": number, "case": "a", "plugin": "p", "empty_ns": empty, "ns": ns}
            for number, (empty, ns) in enumerate(((100, 150), (200, 500), (100, 130)), 1)]
    row = plugins.summarise(runs)[0]
    assert (row["empty_ns"], row["ns"], row["more_ns"], row["more_ns_range"], row["ratio"]) == (100, 150, 50, [30, 300], 1.5)
    assert "30..300" in plugins.table([row])


def test_lab_ratios():
    runs = [{"round": number, "chain": chain, "errors": errors, "requests_per_s": rate}
            for number, chain, errors, rate in ((1, "(empty)", 0, 100), (1, "lua", 0, 90), (2, "(empty)", 0, 200),
                                                (2, "lua", 3, 190))]
    rows = plugins.summarise_lab(runs)
    assert [(row["chain"], row["ratio"], row["errors"]) for row in rows] == [("(empty)", 1.0, 0), ("lua", 0.925, 3)]
    assert "ERRORS: 3" in plugins.table_lab(rows)
