# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients whose SYN offers less: without timestamps, a cookie is all that tells a first request from later segments."""
import hashlib
import json
import os

import pytest

from earshotlab import Lab, netns
from loading import check, counters, load
from make_docroot import make_docroot

pytestmark = pytest.mark.earshot

WITHOUT = (["tcp_timestamps"], ["tcp_timestamps", "tcp_sack", "tcp_window_scaling"])


@pytest.fixture(scope="module")
def docroot(tmp_path_factory):
    directory = tmp_path_factory.mktemp("objects")
    make_docroot(directory)
    return str(directory)


def switch_off(lab, options):
    netns.set_sysctls(lab.net.client, {f"net.ipv4.{option}": 0 for option in options})


@pytest.mark.parametrize("options", WITHOUT, ids="-".join)
def test_all_endings(docroot, options):
    with Lab(policy="wrr", docroot=docroot) as lab:
        switch_off(lab, options)
        report = load(lab, connections=10000, max_bytes=1000000)
        check(report, 10000)
        # Nobody waited long enough for a keep-alive probe, so what was answered as one was none.
        assert report["counted"]["keepalive_answered"] == 0


@pytest.mark.parametrize("options", WITHOUT, ids="-".join)
def test_half_close(docroot, options):
    """The FIN comes right behind the request and acknowledges the same byte, the cookie's."""
    with Lab(policy="wrr", docroot=docroot) as lab:
        switch_off(lab, options)
        report = load(lab, connections=20000, close="half", max_bytes=2000)
        check(report, 20000)


@pytest.mark.wire
def test_upload(tmp_path):
    """Thousands of segments behind the first one, all of which acknowledge the cookie's byte."""
    body = os.urandom(20000000)
    (tmp_path / "body").write_bytes(body)
    # The shim is there for its segmentation: one look at each segment, as on a real cable.
    with Lab(policy="wrr", wires=["client"], segment=True) as lab:
        switch_off(lab, ["tcp_timestamps"])
        before = counters(lab)
        for _ in range(6):
            done = lab.client_run(["curl", "-sS", "-m", "60", "-H", "Expect:", "--data-binary", f"@{tmp_path}/body",
                                   lab.url("/upload")], check=False, timeout=90)
            assert done.stdout.startswith("{"), (done.stdout, done.stderr)
            assert json.loads(done.stdout)["sha256"] == hashlib.sha256(body).hexdigest()
        counted = {name: value - before[name] for name, value in counters(lab).items()}
        assert counted["handover_rebuilt"] == counted["inspect_requests"] == 6 and not counted["inspect_not_http"]
