# SPDX-License-Identifier: GPL-2.0-or-later
"""The alerts that are shipped: Prometheus accepts them, each fires when it should, and none when all is well."""
import os
import re
import shutil
import subprocess

import pytest

from tree import SOURCE, skip

FOLDER = os.path.join(SOURCE, "conf/monitoring")
INSTANCE = 'job="earshot",instance="n1"'

# What is seen when all is well: a series, and its values as promtool notes them (start+step x times).
WELL = {
    f'up{{{INSTANCE}}}': "1x40",
    f'earshot_cluster_quorate{{{INSTANCE}}}': "1x40",
    f'earshot_silent{{{INSTANCE}}}': "0x40",
    f'earshot_cluster_members{{{INSTANCE}}}': "3x40",
    'earshot_cluster_members{job="earshot",instance="n2"}': "3x40",
    f'earshot_node_up{{{INSTANCE},node="n2"}}': "1x40",
    f'earshot_node_draining{{{INSTANCE},node="n2"}}': "0x40",
    f'earshot_server_up{{{INSTANCE},service="web"}}': "1x40",
    f'earshot_handovers_total{{{INSTANCE},service="web",target="n2",result="sent"}}': "0+1000x40",
    f'earshot_handovers_total{{{INSTANCE},service="web",target="n2",result="refused"}}': "0+1x40",
    f'earshot_handovers_total{{{INSTANCE},service="web",target="n2",result="unreachable"}}': "0x40",
    f'earshot_decision_duration_seconds_bucket{{{INSTANCE},le="0.0025"}}': "0+100x40",
    f'earshot_decision_duration_seconds_bucket{{{INSTANCE},le="0.01"}}': "0+100x40",
    f'earshot_decision_duration_seconds_bucket{{{INSTANCE},le="+Inf"}}': "0+100x40",
    f'earshot_datapath_packets_total{{{INSTANCE},verdict="drop_queue_full"}}': "5x40",
    f'earshot_datapath_packets_total{{{INSTANCE},verdict="syn_answered"}}': "0+100x40",
    f'earshot_table_entries{{{INSTANCE},table="gathered_requests"}}': "5x40",
    f'earshot_table_limit{{{INSTANCE},table="gathered_requests"}}': "100x40",
    f'earshot_table_entries{{{INSTANCE},table="targets"}}': "100x40",
    f'earshot_table_limit{{{INSTANCE},table="targets"}}': "100x40",
}

# Each alert by what makes it fire, and what of that does not.
CASES = {
    "EarshotNodeNotRead": {"up{": "0x40"},
    "EarshotNotQuorate": {"earshot_cluster_quorate{": "0x40"},
    "EarshotSilent": {"earshot_silent{": "1x40"},
    "EarshotRingsDiffer": {f"earshot_cluster_members{{{INSTANCE}": "2x40"},
    "EarshotNodeDown": {"earshot_node_up{": "0x40"},
    "EarshotServerDown": {"earshot_server_up{": "0x40"},
    "EarshotHandoversRefused": {f'earshot_handovers_total{{{INSTANCE},service="web",target="n2",result="unreachable"': "0+100x40"},
    "EarshotDecisionsSlow": {f'earshot_decision_duration_seconds_bucket{{{INSTANCE},le="0.0025"': "0+50x40"},
    "EarshotQueueFull": {f'earshot_datapath_packets_total{{{INSTANCE},verdict="drop_queue_full"': "0+1x40"},
    "EarshotGatherFull": {f'earshot_table_entries{{{INSTANCE},table="gathered_requests"': "95x40"},
}
DRAINED = {"earshot_node_up{": "0x40", "earshot_node_draining{": "1x40"}


@pytest.fixture(autouse=True)
def _promtool():
    skip(None if shutil.which("promtool") else "needs promtool (Debian: prometheus)")


def series(changes):
    values = {name: value for name, value in WELL.items()}
    for prefix, value in changes.items():
        changed = [name for name in values if name.startswith(prefix)]
        assert changed, prefix
        values.update(dict.fromkeys(changed, value))
    return values


def firing(tmp_path, changes):
    """Names of the alerts that fire after 20 minutes of this."""
    names = alerts()
    lines = ["rule_files:", f"  - {FOLDER}/earshot.alerts.yml", "evaluation_interval: 30s", "tests:",
             "  - interval: 30s", "    input_series:"]
    for name, value in series(changes).items():
        lines += [f"      - series: '{name}'", f"        values: '{value}'"]
    lines += ["    promql_expr_test:"]
    for name in names:
        lines += [f"      - expr: count by (alertname) (ALERTS{{alertname=\"{name}\",alertstate=\"firing\"}})",
                  "        eval_time: 20m", "        exp_samples: []"]
    path = tmp_path / "test.yml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = subprocess.run(["promtool", "test", "rules", path], capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    found = set(re.findall(r'got:.*?alertname="(\w+)"', said, re.S)) | set(re.findall(r'\{alertname="(\w+)"\} [1-9]', said))
    assert bool(found) == bool(done.returncode), said
    return found


def alerts():
    with open(os.path.join(FOLDER, "earshot.alerts.yml"), encoding="utf-8") as handle:
        return re.findall(r"^ +- alert: (\w+)$", handle.read(), re.M)


def test_accepted(tmp_path):
    for name in ("earshot.alerts.yml", "prometheus.yml.example"):
        shutil.copy(os.path.join(FOLDER, name), tmp_path)
    for command in (["check", "rules", "earshot.alerts.yml"], ["check", "config", "prometheus.yml.example"]):
        done = subprocess.run(["promtool", *command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done


def test_every_alert_has_a_case():
    assert sorted(CASES) == sorted(alerts())


def test_all_is_well(tmp_path):
    assert firing(tmp_path, {}) == set()


@pytest.mark.parametrize("name", sorted(CASES))
def test_fires(tmp_path, name):
    assert firing(tmp_path, CASES[name]) == {name}


def test_a_drained_node_is_no_fault(tmp_path):
    assert firing(tmp_path, DRAINED) == set()
