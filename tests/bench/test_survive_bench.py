# SPDX-License-Identifier: GPL-2.0-or-later
"""./dev bench survive without a cluster: what it counts, and what its rows say."""
import survive
import survive_clusters
from web import timed


class Cluster:
    """Of which n2 has died."""

    @staticmethod
    def has_died(node):
        return node == "n2"


def a_cut(**more):
    return {"idle": [[9, 10], [30, 30]], "downloads": [[2, 4], [8, 8]], "hung": 1, "answers_s": [0.5, 1.5], "undisturbed_s": [0.001],
            "told_s": [1.2], "silent": 0, "served_again_s": 1.0, "its_slowest_s": 2.0, "others_slowest_s": 0.01, "unanswered": 0, **more}


def asked(node, took, error=None):
    return timed.Asked(at=0.0, sent=0.0, ended=took, node=node, error=error)


def test_quantile():
    hundred = list(range(100, 0, -1))
    assert [survive.quantile(hundred, part) for part in (50, 99, 100)] == [50, 99, 100]
    assert [survive.quantile([3], part) for part in (50, 99, 100)] == [3, 3, 3]
    assert survive.quantile([1, 2, 3], 50) == 2 and survive.quantile([], 50) is None


def test_judge():
    """A connection is saved if it has two answers; a share is served again when the last slow handshake of it began."""
    connections = {"a": "n1", "b": "n2", "c": "n2", "d": "n2", "e": "n2"}
    first = {"a": asked("n1", 0.001), "b": asked("n3", 1.0), "c": asked("n3", 1.1), "d": asked(None, 1.2, ConnectionResetError),
             "e": asked(None, 10.0, TimeoutError)}
    again = {"a": asked("n1", 0.001), "b": asked("n3", 0.001), "c": asked(None, 0.001, EOFError)}
    knocks = {"n1": [(-0.5, 0.001), (1.0, 0.02)], "n2": [(-0.5, 0.001), (0.2, 1.9), (0.9, 1.2), (1.4, 0.001), (1.5, None)]}
    found = survive.judge(Cluster, connections, first, again, knocks)
    assert found["idle"] == [[1, 4], [1, 1]]
    assert (found["answers_s"], found["told_s"], found["silent"]) == ([1.0], [1.2], 1)
    assert (found["served_again_s"], found["its_slowest_s"], found["others_slowest_s"]) == (1.5, 1.9, 0.02)
    assert found["unanswered"] == 1
    ended = [("n2", 0), ("n2", survive.CURL_GAVE_UP), ("n2", 56), ("n1", 0)]
    assert survive.judge_downloads(Cluster, ended) == {"downloads": [[1, 3], [1, 1]], "hung": 1}


def test_row():
    cuts = [a_cut(), a_cut(idle=[[10, 10], [30, 30]], answers_s=[2.5], told_s=[], others_slowest_s=0.3)]
    row = survive.row("earshot", 500, cuts)
    assert row == ("earshot", 500, "19 of 20", "4 of 8 (2 hung)", "1.50 / 2.50 / 2.50", "0.00 / 0.00 / 0.00", "1.20 / 1.20", "1.00",
                   "2.00 / 0.30")
    lines = survive.markdown([row]).splitlines()
    assert len(lines) == 3 and len({line.count("|") for line in lines}) == 1
    proxy = survive.row("keepalived", "advert_int 1", [a_cut(downloads=[[0, 4], [0, 0]], answers_s=[], others_slowest_s=None)])
    assert proxy[4] == "-" and proxy[8] == "2.00 / -"


def test_aims():
    assert not survive.wrong("earshot", [a_cut()]) and not survive.missed("earshot", 500, [a_cut()])
    assert "2 of the others' idle" in survive.wrong("earshot", [a_cut(), a_cut(idle=[[10, 10], [28, 30]])])[0]
    assert "never answered" in survive.wrong("earshot", [a_cut(unanswered=1)])[0]
    assert "2.5 tokens" in survive.missed("earshot", 500, [a_cut(), a_cut(served_again_s=1.3)])[0]
    assert "slowest new connection" in survive.missed("earshot", 500, [a_cut(others_slowest_s=0.3)])[0]


def test_clusters():
    """One token is a look: one row of keepalived."""
    def names(tokens):
        return [made.keywords.get("name", made.keywords.get("advert")) for made in survive_clusters.which(survive_clusters.NAMES, tokens)]

    assert names(["500"]) == ["earshot", "earshot-survive", "1"]
    assert names(["300", "1000"]) == ["earshot", "earshot-survive", "earshot", "earshot-survive", "1", "0.3"]
