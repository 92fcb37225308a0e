# SPDX-License-Identifier: GPL-2.0-or-later
"""A head that pauses where a rule may refuse its request: the rest of it is waited for, as long as the client can send it."""
import time

import pytest

from packets.client import LINUX, PLAIN
from packets.packet import ACK, FIN, PSH

CUT, REST = b"GET /sec", b"ret/x HTTP/1.1\r\nHost: x\r\n\r\n"
PAUSE_S = 0.6  # three times gather_timeout_ms
OFFERS = pytest.mark.parametrize("offer", [LINUX, PLAIN], ids=lambda offer: offer.name)


@pytest.fixture(name="strict")
def _strict(own_node):
    """A node with a rule that denies /secret/."""
    node = own_node()
    with open(node.config_path, "a", encoding="ascii") as handle:
        handle.write('\nrule secret { path = "/secret/"  deny = yes  status = 410 }\n')
    node.reload()
    return node


@OFFERS
def test_a_pause_gets_past_no_rule(strict, client, offer):
    """The client probes once meanwhile, and then goes on."""
    c = client(at=strict, offer=offer)
    c.shake()
    with strict.counts(request_queued=2, request_later_queued=1, inspect_gather_waited=1, inspect_gathered=1, inspect_rejected=1):
        c.request(text=CUT)
        time.sleep(PAUSE_S)
        c.send(ACK | PSH, CUT, seq=c.next - len(CUT))
        c.silence()
        c.request(text=REST)
        answer = c.take("the refusal")
    assert answer.payload.startswith(b"HTTP/1.1 410 ") and answer.flags == ACK | PSH | FIN
    assert (answer.seq, answer.ack) == (c.ack, c.next)
    assert not strict.sockets(c)


@OFFERS
def test_a_client_that_waits_is_served(strict, client, offer):
    """It repeats its first segment again, so it has taken it for lost, and nothing else will come: what is there decides."""
    c = client(at=strict, offer=offer)
    c.shake()
    with strict.counts(request_queued=3, inspect_gather_waited=1, inspect_gathered=1, inspect_gather_timeout=1, inspect_requests=1,
                       inspect_not_http=1, inspect_kept=1, handover_received=1, handover_rebuilt=1):
        c.request(text=CUT)
        for _ in range(2):
            c.silence()
            c.send(ACK | PSH, CUT, seq=c.next - len(CUT))
        assert c.read(len(CUT)) == CUT
