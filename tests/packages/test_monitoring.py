# SPDX-License-Identifier: GPL-2.0-or-later
"""The alerts and the dashboard that are shipped: Prometheus accepts the alerts, each fires when it should, and none when all is well;
the dashboard is one that Grafana can show."""
import json
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
    'earshot_cluster_quorate{job="earshot",instance="n2"}': "1x40",
    f'earshot_cluster_nodes{{{INSTANCE}}}': "3x40",
    f'earshot_node_settings_differing{{{INSTANCE},node="n2"}}': "0x40",
    f'earshot_check_findings{{{INSTANCE},severity="error"}}': "0x40",
    f'earshot_check_findings{{{INSTANCE},severity="warning"}}': "2x40",
    f'earshot_silent{{{INSTANCE}}}': "0x40",
    # promtool begins in 1970.
    f'earshot_certificate_expiry_time_seconds{{{INSTANCE},service="web",certificate="/etc/a.pem"}}': "1300000x40",
    f'earshot_ocsp_expiry_time_seconds{{{INSTANCE},service="web",certificate="/etc/a.pem"}}': "300000x40",
    f'earshot_cluster_members{{{INSTANCE}}}': "3x40",
    'earshot_cluster_members{job="earshot",instance="n2"}': "3x40",
    f'earshot_node_up{{{INSTANCE},node="n1"}}': "1x40",
    f'earshot_node_up{{{INSTANCE},node="n2"}}': "1x40",
    f'earshot_node_draining{{{INSTANCE},node="n1"}}': "0x40",
    f'earshot_node_draining{{{INSTANCE},node="n2"}}': "0x40",
    f'earshot_server_up{{{INSTANCE},service="web"}}': "1x40",
    'earshot_server_up{job="earshot",instance="n2",service="web"}': "1x40",
    f'earshot_responses_total{{{INSTANCE},service="web",class="2xx"}}': "0+1000x40",
    f'earshot_responses_total{{{INSTANCE},service="web",class="5xx"}}': "0+1x40",
    f'earshot_start_time_seconds{{{INSTANCE}}}': "1000x40",
    f'earshot_handovers_total{{{INSTANCE},service="web",target="n2",result="sent"}}': "0+1000x40",
    f'earshot_handovers_total{{{INSTANCE},service="web",target="n2",result="refused"}}': "0+1x40",
    f'earshot_handovers_total{{{INSTANCE},service="web",target="n2",result="unreachable"}}': "0x40",
    f'earshot_decision_duration_seconds_bucket{{{INSTANCE},le="0.0025"}}': "0+100x40",
    f'earshot_decision_duration_seconds_bucket{{{INSTANCE},le="0.01"}}': "0+100x40",
    f'earshot_decision_duration_seconds_bucket{{{INSTANCE},le="+Inf"}}': "0+100x40",
    f'earshot_datapath_packets_total{{{INSTANCE},verdict="drop_queue_full"}}': "5x40",
    f'earshot_datapath_packets_total{{{INSTANCE},verdict="syn_answered"}}': "0+100x40",
    f'earshot_tls_up{{{INSTANCE}}}': "1x40",
    f'earshot_tls_service_up{{{INSTANCE},service="web"}}': "1x40",
    f'earshot_tls_handshakes_total{{{INSTANCE},service="web",version="1.3",kind="full"}}': "0+1000x40",
    f'earshot_tls_handshakes_failed_total{{{INSTANCE},service="web",reason="alert"}}': "0+10x40",
    f'earshot_tls_handshakes_failed_total{{{INSTANCE},service="web",reason="no_tls"}}': "0+5000x40",
    f'earshot_table_entries{{{INSTANCE},table="gathered_requests"}}': "5x40",
    f'earshot_table_limit{{{INSTANCE},table="gathered_requests"}}': "100x40",
    f'earshot_table_entries{{{INSTANCE},table="kept_idle"}}': "5x40",
    f'earshot_table_limit{{{INSTANCE},table="kept_idle"}}': "100x40",
    f'earshot_connections_reset_total{{{INSTANCE},kind="idle",reason="unsafe"}}': "0+1x40",
    f'earshot_connections_reset_total{{{INSTANCE},kind="download",reason="content"}}': "0+1x40",
    f'earshot_connections_reset_total{{{INSTANCE},kind="download",reason="validator"}}': "7x40",
    f'earshot_table_entries{{{INSTANCE},table="targets"}}': "100x40",
    f'earshot_table_limit{{{INSTANCE},table="targets"}}': "100x40",
}

# Each alert by what makes it fire, and what of that does not.
CASES = {
    "EarshotNodeNotRead": {"up{": "0x40"},
    "EarshotNotQuorate": {"earshot_cluster_quorate{": "0x40"},
    "EarshotNodesMissing": {"earshot_cluster_members{": "2x40"},
    "EarshotSilent": {"earshot_silent{": "1x40"},
    "EarshotRingsDiffer": {f"earshot_cluster_members{{{INSTANCE}": "2x40"},
    # Where all were only down, there would be a node's alert as well.
    "EarshotNoNodeUp": {"earshot_node_up{": "0x40", "earshot_node_draining{": "1x40"},
    "EarshotNodeDown": {f'earshot_node_up{{{INSTANCE},node="n2"': "0x40"},
    "EarshotSettingsDiffer": {"earshot_node_settings_differing{": "1x40"},
    "EarshotCertificateEnds": {"earshot_certificate_expiry_time_seconds{": "1200000x40"},
    "EarshotCheckFails": {f'earshot_check_findings{{{INSTANCE},severity="error"': "1x40"},
    "EarshotNoServerUp": {"earshot_server_up{": "0x40"},
    "EarshotServerDown": {f"earshot_server_up{{{INSTANCE}": "0x40"},
    "EarshotOcspEnds": {"earshot_ocsp_expiry_time_seconds{": "20000x40"},
    "EarshotTlsDown": {"earshot_tls_up{": "0x40", "earshot_tls_service_up{": "0x40"},
    "EarshotTlsServiceDown": {"earshot_tls_service_up{": "0x40"},
    "EarshotTlsHandshakesFail": {f'earshot_tls_handshakes_failed_total{{{INSTANCE},service="web",reason="alert"': "0+500x40"},
    "EarshotResponsesFail": {f'earshot_responses_total{{{INSTANCE},service="web",class="5xx"': "0+100x40"},
    "EarshotDaemonRestarts": {"earshot_start_time_seconds{": "1000x30 1100 1200 1300x8"},
    "EarshotHandoversRefused": {f'earshot_handovers_total{{{INSTANCE},service="web",target="n2",result="unreachable"': "0+100x40"},
    "EarshotDecisionsSlow": {f'earshot_decision_duration_seconds_bucket{{{INSTANCE},le="0.0025"': "0+50x40"},
    "EarshotQueueFull": {f'earshot_datapath_packets_total{{{INSTANCE},verdict="drop_queue_full"': "0+1x40"},
    "EarshotGatherFull": {f'earshot_table_entries{{{INSTANCE},table="gathered_requests"': "95x40"},
    "EarshotKeptFull": {f'earshot_table_entries{{{INSTANCE},table="kept_idle"': "95x40"},
    "EarshotContentDiffers": {f'earshot_connections_reset_total{{{INSTANCE},kind="download",reason="validator"': "0x20 3x20"},
}
DRAINED = {f'earshot_node_up{{{INSTANCE},node="n2"': "0x40", f'earshot_node_draining{{{INSTANCE},node="n2"': "1x40"}


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


def dashboard():
    with open(os.path.join(FOLDER, "earshot-dashboard.json"), encoding="utf-8") as handle:
        return json.load(handle)


def test_dashboard_is_whole():
    """What Grafana shows without an error, and none of it on top of another; any source of data, node and service can be chosen."""
    found = dashboard()
    variables = {variable["name"] for variable in found["templating"]["list"]}
    assert variables == {"datasource", "job", "instance", "service"} and found["schemaVersion"] >= 37 and found["uid"]
    panels = found["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = set()
    for panel in panels:
        at = panel["gridPos"]
        squares = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24 and not squares & taken, panel["title"]
        taken |= squares
        for target in panel.get("targets", []):
            assert target["datasource"] == panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert set(re.findall(r"\$(\w+)", target["expr"])) <= variables | {"__rate_interval"}, target["expr"]
            assert 'job="$job"' in target["expr"], target["expr"]


def test_documented_metrics_are_shown():
    """All that docs/metrics.md lists is on the dashboard; who is drained is not, since that is no number that goes up and down."""
    with open(os.path.join(SOURCE, "docs/metrics.md"), encoding="utf-8") as handle:
        rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", handle.read().partition("## What there is")[2].partition("`decision` | the")[0], re.M)
    names = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    shown = json.dumps(dashboard())
    assert len(names) > 20 and {name for name in names if f"earshot_{name}" not in shown} == {"node_draining"}
