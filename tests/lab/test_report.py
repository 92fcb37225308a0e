# SPDX-License-Identifier: GPL-2.0-or-later
"""`earshot report`: what it has, what it must not have, and that it needs no daemon that lives."""
import json
import os
import re
import signal
import tarfile
import time

import pytest

from earshotlab import Lab, wait_for

pytestmark = pytest.mark.earshot

SECRETS = ("hunter2hunter2", "tokentoken7", "commentsecret")
CONFIG = """
# commentsecret
rule dear { header = "X-Key: hunter2hunter2"  deny = yes }
rule typo { path = "/x"  deny = yes  body = "shown" }
"""


@pytest.fixture(scope="module", name="lab")
def _lab():
    with Lab(nodes=2, policy="wrr") as lab:
        with open(lab.config_file, "a", encoding="utf-8") as handle:
            handle.write(CONFIG)
        for node in lab.nodes:
            node.exec(["earshot", "reload"])
        yield lab


def report(lab, directory, *arguments):
    """Its files, the reply, and its seconds; nothing in it may be secret."""
    path = os.path.join(directory, "r.tar.gz")
    begun = time.monotonic()
    done = lab.node("n1").exec(["earshot", "--json", "report", f"--output={path}", *arguments])
    took = time.monotonic() - begun
    assert os.stat(path).st_mode & 0o777 == 0o600
    with tarfile.open(path) as archive:
        files = {member.name.partition("/")[2]: archive.extractfile(member).read().decode(errors="replace")
                 for member in archive}
    os.unlink(path)
    with open(re.search(r'key_file = "?([^"\s]+)', read(lab.config_file))[1], encoding="ascii") as handle:
        keys = re.findall(r"[0-9a-f]{64}", handle.read())
    assert keys
    for name, text in files.items():
        for secret in (*SECRETS, *keys):
            assert secret not in text, (name, secret)
        assert "tcp_fastopen_key" not in text and "stable_secret" not in text, name
    return files, json.loads(done.stdout), took


def read(path):
    with open(path, encoding="utf-8") as handle:
        return handle.read()


def test_all_of_it(lab, tmp_path):
    files, reply, _ = report(lab, tmp_path)
    assert reply["daemon"] is True
    assert {entry["name"] for entry in reply["contents"]} | {"README.txt"} == set(files)
    status = json.loads(files["earshot/status.json"])
    assert status["node"] == "n1" and json.loads(files["earshot/nodes.json"])
    assert "X-Key:(left out)" in files["earshot/earshot.conf"] and 'body = "shown"' in files["earshot/earshot.conf"]
    assert files["earshot/counters.txt"] and "earshot_requests_total" in files["earshot/metrics.txt"]
    assert "net.ipv4.tcp_syncookies" in files["network/sysctl.txt"]
    for entry in reply["contents"]:
        assert entry["name"] in files["README.txt"] and entry["bytes"] == len(files[entry["name"]].encode())


def test_is_not_overwritten(lab, tmp_path):
    path = tmp_path / "there"
    path.write_text("mine", encoding="utf-8")
    done = lab.node("n1").exec(["earshot", "report", f"--output={path}"], check=False)
    assert done.returncode == 1 and "File exists" in done.stderr
    assert path.read_text(encoding="utf-8") == "mine" and os.listdir(tmp_path) == ["there"]


def test_configuration_that_no_daemon_takes(lab, tmp_path):
    """Errors quote what is wrong."""
    path = tmp_path / "wrong.conf"
    path.write_text(read(lab.config_file) + 'rule bad { stats = "tokentoken7"  status = tokentoken7 }\n', encoding="utf-8")
    files, _, _ = report(lab, tmp_path, f"--config={path}")
    assert 'rule bad { "(left out)" = "(left out)"' in files["earshot/earshot.conf"]
    assert "wrong.conf" in files["earshot/check.txt"]


def test_daemon_that_hangs_or_is_dead(lab, tmp_path):
    lab.signal("n1", "earshotd", signal.SIGSTOP)
    try:
        files, reply, took = report(lab, tmp_path, f"--config={lab.config_file}")
    finally:
        lab.signal("n1", "earshotd", signal.SIGCONT)
    assert reply["daemon"] is False and took < 120
    assert "does not answer" in files["earshot/status.json"] and "left out: no daemon answers" in files["README.txt"]
    wait_for(lambda: lab.node("n1").exec(["earshot", "status"], check=False).returncode == 0, "n1 answers again")
    lab.crash("n1", "earshotd")
    files, reply, took = report(lab, tmp_path, f"--config={lab.config_file}")
    assert reply["daemon"] is False and took < 60
    assert "no earshotd answers" in files["earshot/status.json"]
    assert "node" in files["earshot/earshot.conf"] and files["network/addresses.txt"] and files["earshot/check.txt"]
