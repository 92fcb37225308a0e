# SPDX-License-Identifier: GPL-2.0-or-later
"""A client's TCP, as far as the tests need it, and every packet of it under their control."""
import contextlib
import dataclasses
import random
import socket
import struct
from dataclasses import dataclass
from typing import Callable

from earshotlab import wait_for
from packets import model, node as network, packet
from packets.packet import ACK, ECE, FIN, NOP, OPT_SACK, PSH, RST, SYN, opt_mss, opt_ts, opt_wscale

MASK = 0xFFFFFFFF


@dataclass(frozen=True)
class Offer:
    """What a SYN offers: its option block for a TSval, what that means, and its ECN flags."""
    name: str
    block: Callable = lambda ts: b""
    means: model.Options = model.Options()
    flags: int = 0


LINUX = Offer("linux", lambda ts: opt_mss(1460) + OPT_SACK + opt_ts(ts, 0) + NOP + opt_wscale(7),
              model.Options(mss=1460, wscale=7, sack=True, ts=True))
WINDOWS = Offer("windows", lambda ts: opt_mss(1460) + NOP + opt_wscale(8) + NOP * 2 + OPT_SACK,
                model.Options(mss=1460, wscale=8, sack=True))
PLAIN = Offer("no-options")


class Client:
    """One flow. `owner` is the number of the node that the ring gives it to; n1 is the one under test."""

    def __init__(self, node, service=network.WEB, owner=1, offer=LINUX, place=None, family=4):
        self.node, self.service, self.owner, self.family = node, service, owner, family
        self.offer = dataclasses.replace(offer, means=dataclasses.replace(offer.means, family=family))
        self.vip = network.VIPS[family]
        self.ip, self.port, self.hash = place or node.place(service, owner, family=family)
        self.tsval = random.getrandbits(32)
        self.window = 65535 if offer.means.wscale is None else 65535 >> 3
        self.server = None
        self.renew()

    def renew(self):
        """Another connection from the same port."""
        self.isn = random.getrandbits(32)
        self.next = (self.isn + 1) & MASK  # what we send next
        self.ack = 0  # what we expect next
        self.ts_recent = 0
        self.cookie = None
        self.implied = set()  # pure acknowledgments that a later segment has made superfluous, as (seq, ack)

    # Packets

    def options(self):
        if not self.offer.means.ts:
            return b""
        self.tsval = (self.tsval + 1) & MASK
        return NOP * 2 + opt_ts(self.tsval, self.ts_recent)

    def ip_packet(self, flags, payload=b"", *, seq=None, ack=None, options=None, window=None, check=None, doff=None,
                  urgent=0, **ip):
        segment = packet.tcp(self.ip, self.vip, self.port, self.service, seq=self.next if seq is None else seq,
                             ack=(self.ack if ack is None else ack) if flags & ACK else 0, flags=flags, payload=payload,
                             options=self.options() if options is None else options, check=check, doff=doff, urgent=urgent,
                             window=self.window if window is None else window)
        return (packet.ip6 if self.family == 6 else packet.ip)(self.ip, self.vip, packet.TCP, segment, **ip)

    def frame(self, *arguments, dst=None, **keywords):
        return packet.eth(dst or self.node.cluster_mac, network.GATEWAY_MAC, self.ethertype(),
                          self.ip_packet(*arguments, **keywords))

    def ethertype(self):
        return packet.ETH_IP6 if self.family == 6 else packet.ETH_IP

    def send(self, *arguments, **keywords):
        """Send a segment. Returns the IP packet; `next` does not move."""
        frame = self.frame(*arguments, **keywords)
        self.node.public.send(frame)
        return frame[14:]

    def mine(self, f):
        return (f.tcp and (f.ip.src, f.tcp.sport, f.ip.dst, f.tcp.dport) == (self.vip, self.service, self.ip, self.port)
                and not (f.tcp.flags == ACK and not f.tcp.payload and (f.tcp.seq, f.tcp.ack) in self.implied))

    def implies(self, segment):
        """The stack acknowledges a request before the server answers it. Where two processors send, as in a slow virtual
        machine, the acknowledgment arrives after the answer, which says the same; it is no answer to what comes then."""
        self.implied.add((segment.seq, segment.ack))

    def take(self, what="an answer"):
        f = self.node.public.take(self.mine, what)
        assert f.dst == network.GATEWAY_MAC
        if f.tcp.tsval is not None:
            self.ts_recent = f.tcp.tsval
        return f.tcp

    def silence(self, what="silence"):
        self.node.public.nothing(self.mine, what)

    # Handshake

    def syn_frame(self, **keywords):
        return self.frame(SYN | self.offer.flags, seq=self.isn, ack=0, options=self.offer.block(self.tsval), **keywords)

    def forge(self, slot=None, key=None):
        """The handshake as if it had taken place; returns its cookie and TSval."""
        slot = self.node.slot() if slot is None else slot
        self.cookie, tsval = model.cookie(key or self.node.keys.cookie[0], self.hash, slot, self.isn, self.offer.means)
        self.ack = (self.cookie + 1) & MASK
        self.ts_recent = tsval if self.offer.means.ts else 0
        return self.cookie, tsval

    def no_cookie(self, ack):
        """The first acknowledgment from `ack` on that is not taken for one of a handshake of this flow: what is not is,
        by a chance of 1 in 2,048, as the flow's tag in a cookie is 10 bits, and half of all slots are in time."""
        while any(model.is_of_flow(key, self.hash, self.node.slot(), (ack - 1) & MASK) for key in self.node.keys.cookie):
            ack += 1
        return ack & MASK

    def synack_bytes(self):
        """The frame that must answer our SYN."""
        cookie, tsval = self.forge()
        means = self.offer.means
        block = (opt_mss(self.node.mss - (20 if self.family == 6 else 0)) + (OPT_SACK if means.sack else NOP * 2) +
                 (opt_ts(tsval, self.tsval) if means.ts else NOP * 10) + NOP +
                 (NOP * 3 if means.wscale is None else opt_wscale(network.RCV_WSCALE)))
        segment = packet.tcp(self.vip, self.ip, self.service, self.port, seq=cookie, ack=self.isn + 1,
                             flags=SYN | ACK | (ECE if means.ecn else 0), window=10 * self.node.mss, options=block)
        return packet.eth(network.GATEWAY_MAC, self.node.mac, self.ethertype(),
                          (packet.ip6 if self.family == 6 else packet.ip)(self.vip, self.ip, packet.TCP, segment))

    def take_synack(self):
        """Byte by byte what the model says."""
        f = self.node.public.take(self.mine, "the SYN-ACK")
        assert f.bytes == self.synack_bytes()
        return f.tcp

    def shake(self, ack=None):
        """SYN, SYN-ACK, ACK. Where nobody inspects, the ACK makes the socket: it is lost there, so that the first bytes make
        it, unless `ack`."""
        self.node.slot()  # not at the edge of one
        self.node.public.send(self.syn_frame())
        self.take_synack()
        if ack or (ack is None and network.SERVICES.get(self.service) != "ring"):
            self.send(ACK)
        return self

    # Requests

    def get(self, target=1, path=None, extra=""):
        """The text of a request that is for node `target`."""
        return f"GET {path or self.node.uri(target)} HTTP/1.1\r\nHost: test\r\n{extra}\r\n".encode()

    def request(self, target=1, text=None, flags=0):
        """Send a request and count it as sent; returns the IP packet."""
        text = text or self.get(target)
        sent = self.send(ACK | PSH | flags, text)
        self.sent(text, flags)
        return sent

    def sent(self, text, flags=0):
        self.next = (self.next + len(text) + bool(flags & FIN)) & MASK

    def accept(self):
        """The server's end of the connection, as soon as there is one."""
        connection, (ip, port, *_) = self.node.listener(self.service, self.family).accept()
        assert (ip, port) == (self.ip, self.port), "another client's connection"
        connection.settimeout(network.TIMEOUT_S)
        self.server = connection
        return connection

    def serve(self, target=1):
        """The whole way: handshake, request, and the server has read it."""
        self.shake()
        text = self.get(target)
        self.request(text=text)
        assert self.read(len(text)) == text
        return self

    def read(self, size):
        """What the server reads."""
        connection = self.server or self.accept()
        data = b""
        while len(data) < size:
            more = connection.recv(size - len(data))
            assert more, f"the server's connection ended after {data!r}"
            data += more
        return data

    def answer(self, text=b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", acknowledge=True):
        """The server writes, the client takes it all and acknowledges; returns the segments."""
        self.server.sendall(text)
        return self.take_data(text, acknowledge)

    def take_data(self, text, acknowledge=True):
        segments = []
        got = b""
        while len(got) < len(text):
            segment = self.take("the reply")
            assert not segment.flags & (SYN | RST)
            if not segment.payload:
                continue
            if segment.seq != self.ack:  # a retransmission, the machine is slow
                continue
            self.implies(segment)
            segments.append(segment)
            got += segment.payload
            self.ack = (self.ack + len(segment.payload)) & MASK
            if acknowledge:
                self.send(ACK)
        assert got == text
        return segments

    def take_fin(self):
        """The server's FIN, which may carry data; not acknowledged yet."""
        while True:
            segment = self.take("the server's FIN")
            if segment.flags & FIN:
                self.implies(segment)
                self.ack = (segment.seq + len(segment.payload) + 1) & MASK
                return segment

    def abort(self):
        """The server forgets the connection; nothing of it is left on the node."""
        if self.server:
            with contextlib.suppress(OSError):
                self.server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.server.close()
            self.server = None

    def time_wait(self):
        """The server closes first, and its socket ends in TIME_WAIT."""
        self.server.close()
        self.server = None
        self.take_fin()
        self.fin_seq = self.next
        self.send(ACK | FIN)
        self.next = (self.next + 1) & MASK
        last = self.take("the last ACK")
        assert (last.flags, last.ack) == (ACK, self.next)
        assert self.node.sockets(self) == [network.TIME_WAIT]

    def closes(self):
        """The client closes first, and nothing is left on the node."""
        self.send(ACK | FIN)
        self.next = (self.next + 1) & MASK
        assert self.server.recv(1) == b""
        self.server.close()
        self.server = None
        self.take_fin()
        self.send(ACK)
        wait_for(lambda: not self.node.sockets(self), "the end of the connection", seen=lambda: self.node.sockets(self))

    # Handover messages about this flow

    def handover(self, packet_bytes, kind=model.REQUEST, **fields):
        message = model.Handover(kind=kind, packet=packet_bytes, service=network.SERVICE_INDEX.get(self.service, 0))
        message.set_options(self.offer.means, network.RCV_WSCALE)
        for name, value in fields.items():
            setattr(message, name, value)
        return message
