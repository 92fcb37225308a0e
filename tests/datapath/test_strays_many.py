# SPDX-License-Identifier: GPL-2.0-or-later
"""Nodes ask each other about many segments that nobody takes in one message, if they all understand that."""
import time

import pytest

from earshotlab import wait_for
from packets import model
from packets.established import OWNERS, served
from packets.families import BOTH
from packets.loads import said
from packets.nack import refuse
from packets.node import TIME_WAIT, VIPS, WEB
from packets.packet import ACK, FIN, PSH, RST, SYN
from packets.strays import OTHERS, elsewhere, lets_pass, told

STRAYS = 16384  # kmod/core/strays.h
KINDS = {4: model.STRAYS, 6: model.STRAYS6}  # by the clients' family


EITHER = sum(model.UNDERSTANDS_STRAYS.values())


def understands(node, source, what=EITHER):
    """n2 or n3 tells n1 what its version does; n1 has taken that."""
    node.hear(source, time.time_ns(), understands=what)


@pytest.fixture(name="many")
def _many(node):
    """Both others understand it, until the test is over."""
    for other in OTHERS:
        understands(node, other)
    yield node
    for other in OTHERS:
        understands(node, other, 0)


def several(node, client, count):
    """So many clients whose segments do not take each other's place where a node keeps what has come once."""
    found = {}
    while len(found) < count:
        c = elsewhere(client, at=node)
        found.setdefault(c.hash >> 20 & (STRAYS - 1), c)
    return list(found.values())


def come_again(node, clients):
    for _ in range(2):
        frames = [c.frame(ACK | PSH, b"more") for c in clients]
        lets_pass(model.STRAY_AGAIN_S)
        for frame in frames:  # quickly, to be asked about together
            node.public.send(frame)


def segment(c, flags=ACK):
    return c.ip, c.port, flags, c.next, c.ack


def asked(node, target, clients, attempt):
    """The one message about all of them; returns it and the bit of each."""
    family = clients[0].family
    question = node.taken(target, KINDS[family])
    strays = model.Strays.parse(question.packet, family)
    assert (strays.service, strays.port, question.attempt) == (VIPS[family], WEB, attempt)
    assert sorted(strays.segments) == sorted(segment(c) for c in clients)
    return question, {c: 1 << strays.segments.index(segment(c)) for c in clients}


def answer(node, question, here=0, **fields):
    refuse(node, question, model.NACK_STRAYS, packet=question.packet[:8], packet_len=8, content=here, **fields)


def test_tells_what_it_understands(node):
    wait_for(lambda: said(node, 0), "a datagram")
    assert said(node, 0)[-1].understands & EITHER == EITHER


@BOTH
def test_asks_together(many, client):
    """Who has one of them says which; nobody is asked about that again, and the others' clients are told."""
    clients = several(many, client, 3)
    with many.counts(cookie_invalid=3, stray_queued=3, inspect_strays=3, handover_received=6, stray_not_here=3 + 2,
                     stray_answered=4, own_stray_answered=2, inspect_stray_resets=2):
        come_again(many, clients)
        left = clients
        for attempt in range(2):
            for target in OTHERS:
                question, bits = asked(many, target, left, attempt)
                if (attempt, target) == (0, OTHERS[0]):
                    answer(many, question, bits[clients[1]])
                    left = [clients[0], clients[2]]
                else:
                    answer(many, question)
        for c in left:
            told(c)
    clients[1].silence()
    many.no_message()


def segments_in(questions, family):
    return sum((model.Strays.parse(q.packet, family).segments for q in questions), [])


def asked_about(node, target, count, family):
    """The messages about so many, together."""
    questions = []
    while (left := count - len(segments_in(questions, family))) > 0:
        questions.append(node.taken(target, KINDS[family]))
        assert len(segments_in(questions[-1:], family)) <= min(left, model.STRAYS_MANY[family])
    return questions


@BOTH
def test_full(many, client, family):
    """More than fit go in another message, which goes its own way."""
    clients = several(many, client, model.STRAYS_MANY[family] + 1)
    come_again(many, clients)
    for target in OTHERS * 2:
        questions = asked_about(many, target, len(clients), family)
        assert len(questions) > 1 and len({q.requests for q in questions}) == len(questions)
        assert sorted(segments_in(questions, family)) == sorted(map(segment, clients))
        for question in questions[::-1]:
            answer(many, question)
    for c in clients:
        told(c)


@BOTH
def test_one_does_not_understand(many, client, family):
    """One of a version before is asked about each, in its own way; also one that was of this version."""
    understands(many, OTHERS[1], EITHER - model.UNDERSTANDS_STRAYS[family])
    clients = several(many, client, 2)
    come_again(many, clients)
    for attempt in range(2):
        answer(many, asked(many, OTHERS[0], clients, attempt)[0])
        questions = [many.taken(OTHERS[1], model.STRAY) for _ in clients]
        assert [q.attempt for q in questions] == [attempt] * 2
        for question in questions:
            for c in clients:
                c.silence()
            refuse(many, question, model.NACK_NOT_HERE)
    for c in clients:
        told(c)


def test_silence(many, client):
    """Who says nothing may have it. What comes too late, or about something else, is no answer."""
    c = elsewhere(client, at=many)
    come_again(many, [c])
    question, _ = asked(many, OTHERS[0], [c], 0)
    answer(many, question, requests=question.requests + 1)
    many.no_message()
    lets_pass(model.STRAY_MEMBER_S)
    answer(many, question)
    many.no_message()
    c.silence()


# What n1 says of itself


def ask(node, segments, family=4, **keywords):
    """n2 asks about them; returns the bits of the answer."""
    fields = {key: keywords.pop(key) for key in ("attempt", "requests") if key in keywords}
    strays = model.Strays(keywords.pop("service", VIPS[family]), keywords.pop("port", WEB), segments, **keywords)
    return node.message(model.Handover(kind=KINDS[family], packet=strays.pack(), **fields), sport=40001)


def answered(node, segments, **keywords):
    question = ask(node, segments, attempt=1, requests=0x12345678, **keywords)
    back = node.taken(2, model.NACK)
    assert (back.nack, back.attempt, back.requests, back.ports[1]) == (model.NACK_STRAYS, 1, 0x12345678, 40001)
    assert back.packet == question.packet[:8]
    return back.content


@BOTH
@pytest.mark.parametrize("owner, cluster_family", [(1, 4), (2, 4), (2, 6)], ids=["mine", "not-mine", "not-mine-cluster6"])
def test_answers(node, client, owner, cluster_family, family):
    here = served(node, client, owner)
    assert here.take("the acknowledgement").ack == here.next
    over = served(node, client, owner)
    over.answer()
    over.time_wait()
    none = elsewhere(client, owner=owner)
    segments = [segment(none), segment(here), segment(here, ACK | FIN), segment(over), segment(over, ACK | FIN)]
    with node.counts(handover_received=1, stray_here=3, stray_not_here=2):
        assert answered(node, segments, family=family) == 0b10110
    many = [segment(none, ACK | FIN)] * model.STRAYS_MANY[family]
    with node.counts(handover_received=1, stray_here=1, stray_not_here=len(many) - 1):
        assert answered(node, many[:-1] + [segment(here)], family=family) == 1 << len(many) - 1
    with node.counts(handover_received=1, stray_not_here=1):
        assert answered(node, [segment(none)], family=family) == 0
    for c in (here, over, none):
        c.silence()
    assert node.sockets(over) == [TIME_WAIT]


@BOTH
@pytest.mark.parametrize("wrong", ["none", "too many", "fewer", "more", "SYN", "RST", "no ACK", "short"])
def test_malformed(node, client, wrong, family):
    one = segment(elsewhere(client))
    segments, count = [one], None
    if wrong == "none":
        segments = []
    elif wrong == "too many":
        segments = [one] * (model.STRAYS_MANY[family] + 1)
    elif wrong in ("fewer", "more"):
        segments, count = [one] * 3, 2 if wrong == "fewer" else 4
    elif wrong in ("SYN", "RST", "no ACK"):
        flags = {"SYN": SYN | ACK, "RST": RST | ACK, "no ACK": PSH}[wrong]
        segments = [one, (*one[:2], flags, *one[3:])]
    with node.counts(handover_received=1, handover_malformed=1, stray_not_here={0, 1}):
        if wrong == "short":
            node.message(model.Handover(kind=KINDS[family], packet=bytes(23 if family == 6 else 7)))
        else:
            ask(node, segments, family, count=count)
        node.no_message()


@BOTH
@pytest.mark.parametrize("service", [dict(last="99"), dict(port=WEB + 1000)])
def test_of_no_service(node, client, service, family):
    if "last" in service:
        service = dict(service=VIPS[family].removesuffix("100") + service["last"])
    with node.counts(handover_received=1, handover_wrong_target=1):
        ask(node, [segment(elsewhere(client))], family, **service)
        node.no_message()


@pytest.mark.parametrize("kind, family", [(model.STRAYS, 6), (model.STRAYS6, 4)])
def test_of_the_other_family(node, client, kind, family):
    """What one kind of message has is no question of the other."""
    strays = model.Strays(VIPS[family], WEB, [segment(elsewhere(client))])
    with node.counts(handover_received=1, handover_malformed=1):
        node.message(model.Handover(kind=kind, packet=strays.pack()))
        node.no_message()
