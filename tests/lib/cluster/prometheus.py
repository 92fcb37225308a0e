# SPDX-License-Identifier: GPL-2.0-or-later
"""A Prometheus on a node of a lab, which reads all nodes each second and knows the alerts that are shipped."""
import json
import os
import re
import subprocess

from earshotlab import topology
from tree import SOURCE

MONITORING = os.path.join(SOURCE, "conf/monitoring")
_CONFIG = """\
global: {{ scrape_interval: 1s, evaluation_interval: 1s }}
rule_files: [alerts.yml]
scrape_configs: [{{ job_name: earshot, static_configs: [{{ targets: [{targets}] }}] }}]
"""


class Prometheus:
    """Runs until the lab is down. `soon`: alerts fire after a second, however long they wait by their rules."""

    def __init__(self, lab, directory, node="n1", port=9099, soon=False):
        with open(os.path.join(MONITORING, "earshot.alerts.yml"), encoding="utf-8") as handle:
            alerts = handle.read()
        if soon:
            alerts = re.sub(r"\bfor: \w+", "for: 1s", alerts)
        (directory / "alerts.yml").write_text(alerts, encoding="utf-8")
        targets = ", ".join(f'"{each.cluster_address}:{topology.STATUS_PORT}"' for each in lab.nodes)
        (directory / "prometheus.yml").write_text(_CONFIG.format(targets=targets), encoding="utf-8")
        self.machine, self.address = lab.node(node), f"127.0.0.1:{port}"
        self.machine.popen(["prometheus", f"--config.file={directory}/prometheus.yml", f"--storage.tsdb.path={directory}/data",
                            f"--web.listen-address={self.address}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ask(self, path, **fields):
        """What its API says at `path`; None while it cannot be asked. A query that is wrong is an AssertionError."""
        command = ["curl", "-s", "--max-time", "5", "-G", f"http://{self.address}/api/v1/{path}"]
        for name, value in fields.items():
            command += ["--data-urlencode", f"{name}={value}"]
        answer = self.machine.exec(command, check=False).stdout
        if not answer.startswith("{"):
            return None
        answer = json.loads(answer)
        assert answer["status"] == "success", (fields, answer)
        return answer["data"]

    def values(self, query):
        """The numbers that it returns now."""
        found = self.ask("query", query=query)
        return [float(sample["value"][1]) for sample in found["result"]] if found else []

    def rules(self):
        """All alerts, as it has read them."""
        return [rule for group in self.ask("rules")["groups"] for rule in group["rules"]]

    def firing(self):
        """Names of the alerts that fire."""
        return {rule["name"] for rule in self.rules() if rule["state"] == "firing"}
