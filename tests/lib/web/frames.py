# SPDX-License-Identifier: GPL-2.0-or-later
"""Bodies as they are on the wire: chunks, and frames of WebSocket (RFC 6455)."""
import os
import struct


def chunked(pieces, extension="", trailers=""):
    return b"".join(b"%x%s\r\n%s\r\n" % (len(piece), extension.encode(), piece) for piece in pieces) + \
        b"0\r\n" + trailers.encode() + b"\r\n"


def frame(data):
    mask = os.urandom(4)
    size = bytes((0x82, 128 | len(data))) if len(data) < 126 else struct.pack(">BBH", 0x82, 254, len(data))
    return size + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
