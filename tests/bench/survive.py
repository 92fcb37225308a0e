#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""./dev bench survive: what clients lose, and how long they wait, when a machine loses power; beside keepalived with HAProxy (README.md)."""
import argparse
import contextlib
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from itertools import chain

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
import paths  # noqa: E402, F401
import runs  # noqa: E402
import survive_clusters  # noqa: E402
from cluster import crash  # noqa: E402
from earshotlab import LabError, server, wait_for  # noqa: E402
from web import raw, timed  # noqa: E402

TOKENS = ("300", "500", "1000")
FILE, FILE_BYTES = "20m", 20 << 20
RATE = "4M"  # bytes a second, of each download
REST_BYTES = 2 << 20  # more than a client may have in its kernel and in curl
SLOW_S = 0.25  # a handshake that takes longer has waited; also the aim for the other nodes' shares
SERVED_TOKENS = 2.5  # the aim: so many tokens after the cut, the dead node's share is served again
PATIENCE_S = 10  # so long an answer may take, and a handshake's repeated SYNs
DEED_S = 10  # so long the cut itself may take, on a busy machine
SILENCE_S = 15  # after so long without a byte, a download is given up: it hangs
CURL_GAVE_UP = 28


def parser():
    root = argparse.ArgumentParser(prog="./dev bench survive", description=__doc__)
    root.add_argument("--tokens", type=runs.choice_list(TOKENS), metavar="MS,...", help=f"corosync's; default {','.join(TOKENS)}")
    root.add_argument("--clusters", type=runs.choice_list(survive_clusters.NAMES), default=survive_clusters.NAMES, metavar="C,...",
                      help=f"of {', '.join(survive_clusters.NAMES)} (default: all)")
    root.add_argument("--rounds", type=int, metavar="N", help="power cuts of each row; default 3")
    root.add_argument("--idle", type=int, metavar="N", help="idle connections, on all nodes; default 400")
    root.add_argument("--downloads", type=int, metavar="N", help="on all nodes; default 12")
    root.add_argument("--fast", action="store_true", help="token 500, one round, 60 connections, 8 downloads: for a look")
    root.add_argument("--json", metavar="FILE", help="write everything measured to FILE")
    return root


def parse():
    arguments = parser().parse_args()
    defaults = {"tokens": ["500"], "rounds": 1, "idle": 60, "downloads": 8} if arguments.fast else \
        {"tokens": TOKENS, "rounds": 3, "idle": 400, "downloads": 12}
    for name, value in defaults.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    return arguments


# One power cut


class Downloads:
    """curl, as often as that; each at the same pace."""

    def __init__(self, cluster, directory, count):
        self.directory, self.children = directory, []
        for number in range(count):
            self.children.append(cluster.lab.client.popen(
                ["curl", "--silent", "--limit-rate", RATE, "--speed-limit", "1", "--speed-time", str(SILENCE_S),
                 "--dump-header", self._path(number, "head"), "--output", self._path(number, "body"), cluster.url(f"/{FILE}")]))
        wait_for(lambda: None not in self.nodes(), "the beginning of each download")

    def _path(self, number, what):
        return os.path.join(self.directory, f"{number}.{what}")

    def nodes(self):
        """The node of each; None: there is no answer yet."""
        found = []
        for number in range(len(self.children)):
            with open(self._path(number, "head"), "rb") as handle:
                text = handle.read()
            found.append(raw.Response(text).node if text.endswith(b"\r\n\r\n") else None)
        return found

    def under_way(self):
        """Whether each lacks so much yet that it needs its node."""
        paths_of = [self._path(number, "body") for number in range(len(self.children))]
        return [not os.path.exists(path) or os.path.getsize(path) < FILE_BYTES - REST_BYTES for path in paths_of]

    def end(self, were_under_way):
        """(its node, curl's status) of each that was, when all have ended. LabError: one has other bytes than the file, and no error."""
        wanted, nodes = hashlib.sha256(server.file_content(FILE, FILE_BYTES)).digest(), self.nodes()
        statuses = [child.wait(120) for child in self.children]
        for number, status in enumerate(statuses):
            with open(self._path(number, "body"), "rb") as handle:
                if not status and hashlib.sha256(handle.read()).digest() != wanted:
                    raise LabError("a download ended without an error, with other bytes than the file's")
        return [(node, status) for node, status, was in zip(nodes, statuses, were_under_way) if was]


def cut(cluster, arguments):
    """A machine loses its power, and comes back: what its clients and the others' have seen."""
    shares = cluster.shares(int((crash.BEFORE + cluster.detected_s + DEED_S) / crash.STEP))  # takes a while
    connections = crash.idle(cluster.lab, arguments.idle, cluster.servers, cluster.address)
    cluster.wait_kept(connections)
    under_way, first, asker = [], {}, threading.Thread(target=lambda: first.update(
        timed.ask_all(connections, raw.head("/1k"), cluster.detected_s + PATIENCE_S, cluster.detected_s)))

    def deed():
        under_way.extend(downloads.under_way())
        cluster.lab.kill(cluster.victim)
        asker.start()

    with tempfile.TemporaryDirectory(prefix="earshot-bench-") as directory:
        downloads = Downloads(cluster, directory, arguments.downloads)
        knocks = crash.knock(cluster.lab, deed, cluster.detected_s + 1, shares, PATIENCE_S, cluster.address)
        asker.join()
        # It is a connection like any other again.
        alive = [sock for sock, asked in first.items() if not asked.error]
        again = timed.ask_all(alive, raw.head("/1k"), PATIENCE_S)
        ended = downloads.end(under_way)
    found = rounded({**judge(cluster, connections, first, again, knocks), **judge_downloads(cluster, ended)})
    for sock in connections:
        sock.close()
    cluster.heal()
    print(f"{cluster.name}, {cluster.token}: {json.dumps(found)}", file=sys.stderr, flush=True)
    return found


def rounded(found):
    """To what clocks and a busy machine are worth."""
    if isinstance(found, float):
        return round(found, 4)
    if isinstance(found, list):
        return [rounded(each) for each in found]
    return {key: rounded(value) for key, value in found.items()} if isinstance(found, dict) else found


def judge(cluster, connections, first, again, knocks):
    """Of idle connections and new ones: [how many went on, of how many], seconds."""
    def is_saved(sock):
        return sock in again and not again[sock].error

    dead = [sock for sock, node in connections.items() if cluster.has_died(node)]
    others = [sock for sock in connections if sock not in dead]
    waited = [(began, took) for share in knocks for began, took in crash.slow(knocks[share], SLOW_S) if cluster.has_died(share)]
    return {
        "idle": [[sum(map(is_saved, socks)), len(socks)] for socks in (dead, others)],
        "answers_s": [first[sock].took for sock in dead if is_saved(sock)],
        "undisturbed_s": [first[sock].took for sock in others if is_saved(sock)],
        "told_s": [first[sock].took for sock in dead if first[sock].error is ConnectionResetError],
        "silent": sum(first[sock].error is TimeoutError for sock in connections),
        "served_again_s": max((began for began, _ in waited), default=0),
        "its_slowest_s": longest(knocks, cluster.has_died),
        "others_slowest_s": longest(knocks, lambda share: not cluster.has_died(share)),
        "unanswered": sum(took is None for took in (took for of_share in knocks.values() for _, took in of_share)),
    }


def judge_downloads(cluster, ended):
    pairs = []
    for is_dead in (True, False):
        statuses = [status for node, status in ended if cluster.has_died(node) == is_dead]
        pairs.append([statuses.count(0), len(statuses)])
    return {"downloads": pairs, "hung": sum(status == CURL_GAVE_UP for _, status in ended)}


def longest(knocks, of_which):
    """The slowest handshake of these shares; None: there are none of them."""
    took = [took for share, of_share in knocks.items() if of_which(share) for _, took in of_share if took is not None]
    return max(took, default=None)


# Rows


def quantile(values, part):
    """The smallest value that so many of all are not above; None: there are no values."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * part // 100) - 1)] if ordered else None


def total(cuts, key, which):
    """[how many went on, of how many], of all cuts; @which: 0 of the dead node, 1 of the others."""
    return [sum(each[key][which][i] for each in cuts) for i in (0, 1)]


def pooled(cuts, key):
    return list(chain.from_iterable(each[key] for each in cuts))


def most(cuts, key):
    return max((each[key] for each in cuts if each[key] is not None), default=None)


def share(pair, hung=0):
    return (f"{pair[0]} of {pair[1]}" + (f" ({hung} hung)" if hung else "")) if pair[1] else "-"


def seconds(*values):
    return " / ".join("-" if value is None else f"{value:.2f}" for value in values) if any(v is not None for v in values) else "-"


HEADINGS = ("", "token, ms", "idle connections saved", "downloads saved", "their answers, s: p50 / p99 / max", "undisturbed ones",
            "else a RST, s: p50 / max", "its share served again after, s", "slowest new connection, s: its share / others'")


def row(cluster, token, cuts):
    """A line of the table."""
    answers, calm, told = (pooled(cuts, key) for key in ("answers_s", "undisturbed_s", "told_s"))
    return (cluster, token, share(total(cuts, "idle", 0)), share(total(cuts, "downloads", 0), sum(each["hung"] for each in cuts)),
            seconds(*(quantile(answers, part) for part in (50, 99, 100))), seconds(*(quantile(calm, part) for part in (50, 99, 100))),
            seconds(*(quantile(told, part) for part in (50, 100))), seconds(most(cuts, "served_again_s")),
            seconds(most(cuts, "its_slowest_s"), most(cuts, "others_slowest_s")))


def markdown(rows):
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in (HEADINGS, ["---"] * len(HEADINGS), *rows))


def wrong(cluster, cuts):
    """What may not be, whatever is lost, in words."""
    lost = [f"{of - saved} of the others' {what}" for what in ("idle", "downloads") for saved, of in [total(cuts, what, 1)] if of > saved]
    lost += [f"{number} new connections never answered" for number in [sum(each["unanswered"] for each in cuts)] if number]
    lost += [f"{number} requests without answer or RST" for number in [sum(each["silent"] for each in cuts)] if number]
    return [f"FAILED: {cluster}: {words}" for words in lost]


def missed(cluster, token, cuts):
    """Aims that Earshot has and that were not reached, in words."""
    served, others = most(cuts, "served_again_s"), most(cuts, "others_slowest_s")
    return [f"NOT REACHED: {cluster}, token {token}: {words}" for words, is_missed in (
        (f"the dead node's share was served again after {served:.2f} s, above {SERVED_TOKENS} tokens",
         served > SERVED_TOKENS * token / 1000),
        (f"the others' slowest new connection took {others:.2f} s, above {SLOW_S} s", others > SLOW_S)) if is_missed]


def main():
    arguments = parse()
    rows, measured, remarks, failures = [], [], [], []
    with tempfile.TemporaryDirectory(prefix="earshot-bench-") as docroot:
        for name, size in (("1k", 1 << 10), (FILE, FILE_BYTES)):
            with open(os.path.join(docroot, name), "wb") as handle:
                handle.write(server.file_content(name, size))
        for make in survive_clusters.which(arguments.clusters, arguments.tokens):
            with contextlib.ExitStack() as stack:
                cluster = make(stack, docroot)
                cuts = [cut(cluster, arguments) for _ in range(arguments.rounds)]
            rows.append(row(cluster.name, cluster.token, cuts))
            measured.append({"cluster": cluster.name, "token": cluster.token, "cuts": cuts})
            failures += wrong(cluster.name, cuts) if cluster.is_earshot else []
            remarks += missed(cluster.name, cluster.token, cuts) if cluster.is_earshot else []
    print(markdown(rows), *remarks, *failures, sep="\n")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as handle:
            json.dump({"rows": measured, "idle": arguments.idle, "downloads": arguments.downloads, "kernel": os.uname().release,
                       "cpus": os.cpu_count()}, handle, indent=1)
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        runs.run("survive", main)
    except subprocess.CalledProcessError as error:
        sys.exit(f"bench survive: {error}: {error.stderr}")
