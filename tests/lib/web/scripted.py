# SPDX-License-Identifier: GPL-2.0-or-later
"""backend.py, and responses given byte by byte: python3 -m web.scripted NODE ADDRESS PORT

    /script/NAME        SCRIPTS[NAME], piece by piece, each in a segment of its own
    /script/NAME/MS     the same with MS milliseconds between the pieces
"""
import time

from web import backend

# What a body may look like on the wire without being it.
DECOY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n0\r\n\r\n"
NODE = b"X-Node: @@\r\n"  # the place of the node's name, which has two letters
OK = b"HTTP/1.1 200 OK\r\n" + NODE


def each_byte(text):
    return [text[at:at + 1] for at in range(len(text))]


class Script:
    """A response: its pieces, what a client makes of them, and whether its end is beyond doubt, so that the connection
    may move behind it."""

    def __init__(self, pieces, body=b"", method="GET", status=200, clear=True):
        self.pieces, self.body, self.method, self.status, self.clear = pieces, body, method, status, clear


SCRIPTS = {
    "head-length": Script([OK + b"Content-Length: 5000\r\n\r\n"], method="HEAD"),
    "head-chunked": Script([OK + b"Transfer-Encoding: chunked\r\n\r\n"], method="HEAD"),
    "204": Script([b"HTTP/1.1 204 No Content\r\n" + NODE + b"\r\n"], status=204),
    "304-length": Script([b"HTTP/1.1 304 Not Modified\r\n" + NODE + b"Content-Length: 1234\r\n\r\n"], status=304),
    "no-reason": Script([b"HTTP/1.1 200 \r\n" + NODE + b"content-LENGTH:7\r\n\r\n", b"seven b"], b"seven b"),
    "empty": Script([OK + b"Content-Length: 0\r\n\r\n"]),
    "head-and-body": Script([OK + b"Content-Length: 86\r\n\r\n", DECOY, DECOY], DECOY * 2),
    "bytes": Script(each_byte(OK + b"X-Content-Length: 9\r\nContent-Length: 43\r\n\r\n" + DECOY), DECOY),
    "interim": Script([b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 1",
                       b"03 Early Hints\r\nContent-Length: 3\r\n\r\n", OK + b"Content-Length: 4\r\n\r\nbody"], b"body"),
    "chunks": Script([OK + b"Transfer-Encoding: chunked\r\n\r\n", b"2B\r\n" + DECOY, b"\r\n0002b;a=\"b\"\r\n", DECOY,
                      b"\r", b"\n0", b"\r\nX-Trailer: 5\r\n", b"\r\n"], DECOY * 2),
    "chunk-bytes": Script(each_byte(OK + b"transfer-encoding:\tChunked \r\n\r\n1\r\n0\r\n2b\r\n" + DECOY +
                                    b"\r\n0;last\r\nA: b\r\n\r\n"), b"0" + DECOY),
    "folded": Script([OK + b"X-Long: a\r\n b\r\nContent-Length: 3\r\n\r\nabc"], b"abc", clear=False),
    "same-length-twice": Script([OK + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"], b"abc", clear=False),
}
assert len(DECOY) == 43


class Handler(backend.Handler):
    """The same, and scripts."""

    def respond(self):
        _, what, *rest = self.target.split("?")[0].split("/")
        if what != "script":
            try:
                return super().respond()
            except ValueError as error:  # a number that is none
                raise backend.BadRequest from error
        for piece in SCRIPTS[rest[0]].pieces:
            self.wfile.write(piece.replace(b"@@", backend.NODE.encode()))
            time.sleep(int(rest[1]) / 1000 if len(rest) > 1 else 0)
        return True


if __name__ == "__main__":
    backend.serve(Handler)
