# SPDX-License-Identifier: GPL-2.0-or-later
"""./dev bench poison: it measures all cases and the keeper, and makes medians of the rounds."""
import json
import os
import subprocess
import sys

import poison

HERE = os.path.dirname(os.path.abspath(__file__))


def test_all_is_measured(tmp_path):
    done = subprocess.run([sys.executable, os.path.join(HERE, "poison.py"), "--fast", "--requests", "300", "--json",
                           str(tmp_path / "out.json")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    found = json.loads((tmp_path / "out.json").read_text())
    assert len(found["rows"]) == 4 and len(found["runs"]) == 12
    assert all(row["rounds"] == 3 and row["without_ns"] > 0 and row["with_ns"] > 0 for row in found["rows"])
    assert found["keeper_cpu_ns_per_s"] > 0
    lines = done.stdout.splitlines()
    assert all(lines[i + 1].startswith(row["case"]) for i, row in enumerate(found["rows"]))
    assert lines[-1].startswith("the keeper")


def test_medians():
    runs, keeper_ns = poison.parse("1\tmark\t100\t150\n2\tmark\t200\t500\n3\tmark\t100\t130\nkeeper\t1000\t2000000\n")
    row = poison.summarise(runs)[0]
    assert (row["without_ns"], row["with_ns"], row["more_ns"], row["more_ns_range"], row["ratio"]) == (100, 150, 50, [30, 300], 1.5)
    assert "30..300" in poison.table([row], keeper_ns) and "0.20% of a CPU" in poison.table([row], keeper_ns)
