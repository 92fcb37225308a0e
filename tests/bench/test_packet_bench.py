# SPDX-License-Identifier: GPL-2.0-or-later
"""./dev bench packet: it measures every kind of packet in all ways, and compares with what an earlier run has written."""
import json
import os
import subprocess
import sys

import packet
import pytest
from packet_cases import CASES
from tree import EARSHOT, EARSHOTD, skip, unbuilt

HERE = os.path.dirname(os.path.abspath(__file__))


def bench(*arguments):
    return subprocess.run([sys.executable, os.path.join(HERE, "packet.py"), *arguments], capture_output=True, text=True, check=False)


def test_all_is_measured(tmp_path):
    skip("needs root" if os.geteuid() else unbuilt(EARSHOT, EARSHOTD))
    done = bench("--rounds", "2", "--repeats", "500", "--packets", "20", "--json", str(tmp_path / "out.json"))
    assert done.returncode == 0, done
    found = json.loads((tmp_path / "out.json").read_text())
    assert [row["case"] for row in found["rows"]] == list(CASES) and len(found["runs"]) == 2 * len(CASES)
    for row in found["rows"]:
        ways = ("warm", "cold", "load") if CASES[row["case"]].make else ("load",)
        assert all(row[f"{way}_ns"] is not None for way in ways), row
    assert found["kernel"] == os.uname().release and found["format"] == packet.FORMAT
    again = bench("--rounds", "1", "--repeats", "500", "--packets", "20", "--cases", "overheard", "--compare",
                  str(tmp_path / "out.json"))
    assert again.returncode == 0 and "to before: warm " in again.stdout, again


def test_unknown_case():
    done = bench("--cases", "overhead")
    assert done.returncode == 1 and "no case overhead; there are overheard" in done.stderr, done


def test_another_format(tmp_path):
    (tmp_path / "old.json").write_text('{"format": 0, "rows": []}')
    done = bench("--compare", str(tmp_path / "old.json"))
    assert done.returncode == 1 and "old.json: this is not what --json" in done.stderr, done


@pytest.mark.parametrize("load, text", [(None, "-"), (70.0, "70")])
def test_medians(load, text):
    runs = [{"round": number, "case": "overheard", "warm": warm, "cold": 900.0, "load": load}
            for number, warm in enumerate((90.0, 100.0, 140.0))]
    row = packet.summarise(runs)[0]
    assert (row["warm_ns"], row["warm_range"], row["load_ns"]) == (100, [90, 140], load)
    lines = packet.table([row], [row | {"warm_ns": 50.0}]).splitlines()
    assert "90..140" in lines[1] and lines[1].split()[6] == text and "warm 2.00" in lines[2]


def test_ratios_to_ipv4():
    runs = [{"round": 1, "case": case, "warm": warm, "cold": 900.0, "load": None}
            for case, warm in (("overheard", 100.0), ("overheard-v6", 112.0), ("own-syn-v6", 300.0))]
    lines = packet.table(packet.summarise(runs)).splitlines()
    assert [line for line in lines if "to IPv4" in line] == ["    to IPv4: warm 1.12, cold 1.00"]
