# SPDX-License-Identifier: GPL-2.0-or-later
"""earshot-load in tests: a run from the lab's client, and what the cluster counted meanwhile."""
import json
import os
import random

MANIFEST = "manifest.tsv"
DIRECTIONS = ("in", "out")


def seed():
    """A new one each time, unless EARSHOT_SEED says which; pytest shows the printed line when the test fails."""
    chosen = int(os.environ.get("EARSHOT_SEED") or random.randrange(1 << 30))
    print(f"EARSHOT_SEED={chosen}")
    return chosen


def counters(lab):
    """The sum over all nodes of each counter."""
    total = {}
    for node in lab.nodes:
        for name, value in lab.counters(node.name).items():
            total[name] = total.get(name, 0) + value
    return total


def load(lab, **options):
    """Run earshot-load with these options, by each address of the service in turn: its report, with the counters' growth as
    "counted"."""
    options = {"host": ",".join(lab.net.vips), "manifest": os.path.join(lab.docroot, MANIFEST), "seed": seed(), "max_seconds": 280,
               **options}
    arguments = [f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}") for name, value in options.items()]
    before = counters(lab)
    done = lab.client.exec(["earshot-load", "--json", *arguments], check=False, timeout=options["max_seconds"] + 20)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    report["counted"] = {name: value - before[name] for name, value in counters(lab).items()}
    print(json.dumps(report))
    return report


def check(report, connections, nodes=3):
    """Every connection as it should be, each inspected, each with one socket on one node, none served blindly."""
    assert report["ok"] == report["connections"] == connections, report
    assert len(report["nodes"]) == nodes and sum(report["nodes"].values()) == connections, report["nodes"]
    counted = report["counted"]
    assert counted["handover_rebuilt"] == connections, counted
    # A refused request is decided again, but once: its double, from the cable, is refused too.
    again = counted["handover_nack_received"] - counted["inspect_nack_late"]
    assert counted["inspect_requests"] == connections + again, counted
    for never in ("request_fallback", "request_blind", "handshake_blind", "rebuild_refused", "rebuild_no_listener", "drop_queue_full",
                  "drop_malformed", "cookie_expired", "fin_before_request", "handover_bad_mac", "handover_malformed",
                  "handover_accept_full", "inspect_no_target", "inspect_send_failed", "answer_failed"):
        assert counted[never] == 0, (never, counted)


def check_impaired(lab, link, *what, rate=0.01):
    """The shim did to both directions of the link what it was told, as often as it was told."""
    stats = lab.wire(link).stats()
    for direction in DIRECTIONS:
        frames = stats[direction]["received"]
        # A node gets two of nine of 4,000 requests from the others, and however many loads they had time to tell.
        assert frames > 800, stats
        expected = rate * frames
        # Half as many more or less; of few frames, where chance counts for more, five standard deviations.
        tolerance = max(0.5 * expected, 5 * expected ** 0.5)
        for name in what:
            assert 0 < stats[direction][name], (name, stats)
            assert abs(stats[direction][name] - expected) < tolerance, (name, expected, stats)
