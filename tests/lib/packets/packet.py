# SPDX-License-Identifier: GPL-2.0-or-later
"""Frames, byte by byte: building them, right or wrong, and reading what comes back."""
import socket
import struct
from types import SimpleNamespace

FIN, SYN, RST, PSH, ACK, URG, ECE, CWR, AE = (1 << i for i in range(9))
ETH_IP, ETH_ARP, ETH_IP6 = 0x0800, 0x0806, 0x86DD
TCP, UDP, ICMP, ICMP6 = 6, 17, 1, 58
HOP_BY_HOP, ROUTING, FRAGMENT, OPTIONS = 0, 43, 44, 60  # headers of IPv6


def checksum(data):
    """RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def address(text):
    """An address of either family as it is in a header."""
    return socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)


def pseudo(src, dst, protocol, length):
    if ":" in src:
        return address(src) + address(dst) + struct.pack(">II", length, protocol)
    return socket.inet_aton(src) + socket.inet_aton(dst) + struct.pack(">BBH", 0, protocol, length)


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def eth(dst, src, kind, payload):
    return mac(dst) + mac(src) + struct.pack(">H", kind) + payload


def ip(src, dst, protocol, payload, *, ident=0, frag=0x4000, ttl=64, tos=0, options=b"", total=None, ihl=None):
    header_len = 20 + len(options)
    header = struct.pack(">BBHHHBBH4s4s", 0x40 | (header_len // 4 if ihl is None else ihl), tos,
                         header_len + len(payload) if total is None else total, ident, frag, ttl, protocol, 0,
                         socket.inet_aton(src), socket.inet_aton(dst)) + options
    return header[:10] + struct.pack(">H", checksum(header)) + header[12:] + payload


def ip6(src, dst, protocol, payload, *, hops=64, total=None, headers=()):
    """`headers`: (kind, bytes behind its first) of extension headers, in their order; `total`: a wrong payload length."""
    for kind, rest in reversed(headers):
        payload, protocol = bytes([protocol]) + rest + payload, kind
    return struct.pack(">IHBB", 0x60000000, len(payload) if total is None else total, protocol, hops) + address(src) + address(
        dst) + payload


def icmp6(src, dst, kind, code, rest, payload=b""):
    message = struct.pack(">BBH", kind, code, 0) + rest + payload
    return message[:2] + struct.pack(">H", checksum(pseudo(src, dst, ICMP6, len(message)) + message)) + message[4:]


def tcp(src, dst, sport, dport, *, seq=0, ack=0, flags=0, window=65535, options=b"", payload=b"", doff=None, check=None,
        urgent=0):
    """`check`: a wrong checksum, or "partial" for one that is left to hardware."""
    size = 20 + len(options)
    segment = struct.pack(">HHIIBBHHH", sport, dport, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF,
                          (size // 4 if doff is None else doff) << 4 | flags >> 8, flags & 0xFF, window, 0, urgent) + options + payload
    head = pseudo(src, dst, TCP, len(segment))
    if check is None:
        check = checksum(head + segment)
    elif check == "partial":
        check = ~checksum(head) & 0xFFFF
    return segment[:16] + struct.pack(">H", check) + segment[18:]


def udp(src, dst, sport, dport, payload, *, length=None):
    size = 8 + len(payload)
    head = struct.pack(">HHHH", sport, dport, size if length is None else length, 0)
    check = checksum(pseudo(src, dst, UDP, size) + head + payload) or 0xFFFF
    return head[:6] + struct.pack(">H", check) + payload


def datagram(dst_mac, src_mac, src, dst, sport, dport, payload, *, length=None, **header):
    """A frame with a UDP datagram of the addresses' family; `header`: what else ip() or ip6() take."""
    data = udp(src, dst, sport, dport, payload, length=length)
    return eth(dst_mac, src_mac, *((ETH_IP6, ip6(src, dst, UDP, data, **header)) if ":" in src else
                                   (ETH_IP, ip(src, dst, UDP, data, **header))))


def first_part(family):
    """What datagram() takes for one that says that more parts follow."""
    return dict(frag=0x2000) if family == 4 else dict(headers=[(FRAGMENT, struct.pack(">BHI", 0, 1, 7))])


def icmp(kind, code, rest, payload=b""):
    message = struct.pack(">BBH", kind, code, 0) + rest + payload
    return message[:2] + struct.pack(">H", checksum(message)) + message[4:]


def arp(operation, sender_mac, sender_ip, target_mac, target_ip):
    return struct.pack(">HHBBH6s4s6s4s", 1, ETH_IP, 6, 4, operation, mac(sender_mac), socket.inet_aton(sender_ip),
                       mac(target_mac), socket.inet_aton(target_ip))


def opt_mss(value):
    return struct.pack(">BBH", 2, 4, value)


def opt_wscale(value):
    return bytes((3, 3, value))


def opt_ts(value, echo):
    return struct.pack(">BBII", 8, 10, value, echo)


def opt_sack(left, right):
    """One block that has arrived (RFC 2018, 3)."""
    return struct.pack(">BBII", 5, 10, left, right & 0xFFFFFFFF)


OPT_SACK = b"\4\2"
NOP = b"\1"


def _options(block):
    """{kind: value bytes} of a TCP option block."""
    found = {}
    while block and block[0]:
        if block[0] == 1:
            block = block[1:]
            continue
        found[block[0]] = block[2:block[1]]
        block = block[block[1]:]
    return found


def _mac_text(data):
    return data.hex(":")


def parse(frame):
    """What is in a frame: attributes ip, tcp, udp, icmp, arp, each None if it is not there.

    Checksums must be right: every node's frame is checked here, whatever the test looks for.
    """
    f = SimpleNamespace(bytes=frame, dst=_mac_text(frame[:6]), src=_mac_text(frame[6:12]),
                        kind=struct.unpack_from(">H", frame, 12)[0], ip=None, tcp=None, udp=None, icmp=None, arp=None)
    if f.kind == ETH_ARP:
        _, _, _, _, operation, smac, sip, tmac, tip = struct.unpack_from(">HHBBH6s4s6s4s", frame, 14)
        f.arp = SimpleNamespace(operation=operation, sender_mac=_mac_text(smac), sender_ip=socket.inet_ntoa(sip),
                                target_mac=_mac_text(tmac), target_ip=socket.inet_ntoa(tip))
    elif f.kind == ETH_IP:
        _parse_ip(f, frame[14:])
    elif f.kind == ETH_IP6:
        _parse_ip6(f, frame[14:])
    return f


def _parse_ip6(f, data):
    length, protocol, hops = struct.unpack_from(">HBB", data, 4)
    src, dst = (socket.inet_ntop(socket.AF_INET6, data[at:at + 16]) for at in (8, 24))
    data = data[:40 + length]
    f.ip = SimpleNamespace(src=src, dst=dst, ttl=hops, protocol=protocol, tos=0, frag=0, bytes=data)
    if protocol == TCP:
        _parse_tcp(f, src, dst, data[40:])
    elif protocol == UDP:
        rest = data[40:]
        # 0 is no checksum, which IPv6 does not have (RFC 8200, 8.1).
        assert rest[6:8] != b"\0\0" and checksum(pseudo(src, dst, UDP, len(rest)) + rest) == 0, "UDP checksum"
        _parse_udp(f, rest)
    elif protocol == ICMP6:
        rest = data[40:]
        assert checksum(pseudo(src, dst, ICMP6, len(rest)) + rest) == 0, "ICMPv6 checksum"
        f.icmp = SimpleNamespace(kind=rest[0], code=rest[1], rest=rest[4:8], payload=rest[8:])


def _parse_tcp(f, src, dst, rest):
    assert checksum(pseudo(src, dst, TCP, len(rest)) + rest) == 0, "TCP checksum"
    sport, dport, seq, ack, doff, flags, window = struct.unpack_from(">HHIIBBH", rest)
    block = rest[20:(doff >> 4) * 4]
    options = _options(block)
    ts = struct.unpack(">II", options[8]) if 8 in options else (None, None)
    f.tcp = SimpleNamespace(sport=sport, dport=dport, seq=seq, ack=ack, flags=flags, window=window, block=block,
                            options=options, tsval=ts[0], tsecr=ts[1], payload=rest[(doff >> 4) * 4:])


def _parse_udp(f, rest):
    sport, dport, length = struct.unpack_from(">HHH", rest)
    f.udp = SimpleNamespace(sport=sport, dport=dport, payload=rest[8:length])


def _parse_ip(f, data):
    size = (data[0] & 15) * 4
    total, _, frag = struct.unpack_from(">HHH", data, 2)
    src, dst = (socket.inet_ntoa(data[at:at + 4]) for at in (12, 16))
    data = data[:total]
    assert checksum(data[:size]) == 0, "IP checksum"
    f.ip = SimpleNamespace(src=src, dst=dst, ttl=data[8], protocol=data[9], tos=data[1], frag=frag, bytes=data)
    rest = data[size:]
    if data[9] == TCP:
        _parse_tcp(f, src, dst, rest)
    elif data[9] == UDP:
        _parse_udp(f, rest)
    elif data[9] == ICMP:
        assert checksum(rest) == 0, "ICMP checksum"
        f.icmp = SimpleNamespace(kind=rest[0], code=rest[1], rest=rest[4:8], payload=rest[8:])


def describe(f):
    """One line for a failed assertion."""
    if f.tcp:
        names = "".join(n for i, n in enumerate("FSRPAUEC") if f.tcp.flags >> i & 1)
        return (f"{f.ip.src}:{f.tcp.sport} > {f.ip.dst}:{f.tcp.dport} {names} seq {f.tcp.seq} ack {f.tcp.ack} "
                f"len {len(f.tcp.payload)}")
    if f.arp:
        return f"arp {f.arp.operation} {f.arp.sender_ip} > {f.arp.target_ip}"
    if f.ip:
        return f"{f.ip.src} > {f.ip.dst} protocol {f.ip.protocol}"
    return f"ethertype {f.kind:04x} {f.src} > {f.dst}"
