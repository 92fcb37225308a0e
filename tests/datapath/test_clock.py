# SPDX-License-Identifier: GPL-2.0-or-later
"""Somebody sets the machine's wall clock, or it is earlier than in the node's former life: nothing is lost by that."""
import time

import pytest

from earshotlab import wait_for
from packets import model
from packets.clocks import Clock
from packets.loads import answers, said, tell
from packets.node import SLOT_S, WEB

HOUR_S = 3600
S = 10 ** 9


@pytest.fixture(name="clock")
def _clock():
    made = Clock()
    yield made
    made.close()


@pytest.fixture(name="own")
def _own(own_node, clock):
    """A node whose clock is `clock`."""
    return own_node(before=clock.before)


def served(client, node, target=1):
    c = client(WEB, at=node)
    c.forge()  # by the right time, which the node goes by, or has gone by
    text = c.get(target)
    c.request(text=text)
    assert c.read(len(text)) == text


def given(client, node):
    """The message of a request that n1 gives to n2."""
    c = client(WEB, at=node)
    c.forge()
    c.request(target=2)
    return node.taken(2, model.REQUEST)


class TestSet:
    @pytest.mark.parametrize("by_s", [-HOUR_S, -60, 60, HOUR_S])
    def test_handshake_of_before(self, own, client, clock, by_s):
        """Its cookie is good for as long as it would have been."""
        before, late = client(WEB, at=own), client(WEB, at=own)
        for c in (before, late):
            c.shake()
        clock.set_and_seen(own, by_s)
        assert f"clock was set {abs(by_s)}.0 s {'back' if by_s < 0 else 'forward'}" in own.log(), own.log()
        text = before.get()
        before.request(text=text)
        assert before.read(len(text)) == text
        # And no longer: as if all that had been two hours ago.
        late.forge(slot=own.slot() - 2 * HOUR_S // SLOT_S)
        late.request()
        late.silence()
        assert not own.sockets(late)

    @pytest.mark.parametrize("by_s", [-20, 20])
    def test_what_the_others_have(self, own, client, clock, by_s):
        """They go by their own clocks, and take what this node sends; it takes what they send."""
        given(client, own)
        clock.set_and_seen(own, by_s)
        message = given(client, own)
        assert abs(message.sent - (time.time() + by_s) % (1 << 24)) < 0.5
        served(client, own)

    def test_told_before_it_is_gone_by(self, own, client, clock):
        """Set back: what this node sends must not seem to have been sent before the others' start."""
        clock.set(-60)
        now, waited_until = time.time(), time.monotonic() + 10
        while time.monotonic() < waited_until:
            sent = given(client, own).sent
            told = [m.clock_ns for m in said(own, 0)]
            if sent < now % (1 << 24) - 30:
                assert min(told) < (now - 30) * S, "messages are an hour old, and nobody was told"
                return
        pytest.fail("it never went by the new time")


class TestBegin:
    @pytest.mark.parametrize("by_s", [-HOUR_S, -20])
    def test_earlier(self, own, client, clock, by_s):
        """Its datapath has taken messages of this node that were numbered later: it goes on behind them."""
        served(client, own)
        own.kill()
        clock.set(by_s)
        own.start()
        with own.counts(request_queued=1, handover_received=1, handover_rebuilt=1, inspect_requests=1, inspect_kept=1):
            served(client, own)

    def test_earlier_for_the_others(self, own, client, clock):
        message, load = given(client, own), said(own, 0)[-1]
        own.kill()
        clock.set(-20)
        own.cluster.clear()
        own.start()
        assert given(client, own).sequence > message.sequence
        wait_for(lambda: said(own, 0), "its loads")
        assert said(own, 0)[0].sequence > load.sequence

    def test_the_others_know_better(self, own, client, clock):
        """The machine was started anew, and its clock is earlier than in its former life."""
        message = given(client, own)
        ahead = time.time_ns() + 30 * S
        for wrong in (model.NumberAnswer(1, 2, ahead), model.NumberAnswer(1, 0, time.time_ns() - 30 * S),
                      model.NumberAnswer(5, 0, ahead)):
            tell(own, wrong.bytes(own.keys.handover[0]))
        tell(own, model.NumberAnswer(1, 0, ahead).bytes(own.keys.cookie[0]))
        given(client, own)
        assert "clock is" not in own.log() and said(own, 0)[-1].sequence < ahead
        tell(own, model.NumberAnswer(1, 0, ahead).bytes(own.keys.handover[0]))
        wait_for(lambda: said(own, 0)[-1].sequence > ahead, "loads with higher numbers")
        assert "clock is 30." in own.log() and "node n2 has told" in own.log(), own.log()
        after = given(client, own)
        assert after.sequence > message.sequence + (29 << 24) and abs(after.sent - time.time() % (1 << 24)) < 0.5
        # So do the datapath's own messages, and those of the next life.
        c = client(WEB, owner=2, at=own)
        c.forge()
        own.kill()
        own.cluster.clear()
        own.start()
        wait_for(lambda: said(own, 0), "its loads")
        assert said(own, 0)[0].sequence > ahead and given(client, own).sequence > after.sequence


def test_tells_who_is_behind(own, clock):
    """Once in a while: of who sends what is recorded, no more is made."""
    last = time.time_ns() + 5 * S
    tell(own, model.Loads(sequence=last))
    for ago in (2 * S, S):
        tell(own, model.Loads(sequence=last - ago))
    wait_for(lambda: answers(own), "an answer")
    time.sleep(0.05)
    assert answers(own) == [last]
    assert own.log().count("message is numbered 2.0 s before") == 1 and "node n2" in own.log(), own.log()
    wait_for(lambda: tell(own, model.Loads(sequence=last - 1)) or len(answers(own)) > 1, "another one")
    tell(own, model.Loads(sequence=last + 1))
    tell(own, model.Loads(sequence=last + 1))
    assert "is numbered 0" not in own.log()
