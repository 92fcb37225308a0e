# SPDX-License-Identifier: GPL-2.0-or-later
"""A client of HTTP/2 whose frames are in a test's hands, and that does as it is told when it is to leave."""
import collections

import h2.config
import h2.connection
import h2.events

from web import raw, secure
from web.secure import Secure


def context(lab, version=None):
    made = secure.context(lab, version)
    made.set_alpn_protocols(["h2", "http/1.1"])
    return made


class Response:
    """Of a stream, as far as it has come."""

    def __init__(self, target):
        self.target = target
        self.fields, self.trailers, self.text = {}, {}, b""
        self.is_over, self.error = False, None

    @property
    def status(self):
        return int(self.fields[":status"])

    @property
    def node(self):
        return self.fields.get("x-node")


class Http2:
    """A connection."""

    def __init__(self, lab, how=None, **keywords):
        self.sock = Secure(lab, how or context(lab), **keywords)
        assert self.sock.tls.selected_alpn_protocol() == "h2"
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.streams = collections.OrderedDict()
        self.last = None  # of GOAWAY
        self.is_over = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def flush(self):
        data = self.h2.data_to_send()
        if data:
            self.sock.sendall(data)

    def begin(self, target, method="GET", end=True, **fields):
        """Begin a request -> its stream's number; nothing is sent yet."""
        number = self.h2.get_next_available_stream_id()
        named = [(name.lower().replace("_", "-"), str(value)) for name, value in fields.items()]
        self.h2.send_headers(number, [(":method", method), (":scheme", "https"), (":authority", raw.HOST), (":path", target), *named],
                             end_stream=end)
        self.streams[number] = Response(target)
        return number

    def _event(self, event):
        stream = self.streams.get(getattr(event, "stream_id", None))
        if isinstance(event, (h2.events.ResponseReceived, h2.events.TrailersReceived)):
            (stream.fields if isinstance(event, h2.events.ResponseReceived) else stream.trailers).update(event.headers)
        elif isinstance(event, h2.events.DataReceived):
            stream.text += event.data
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            stream.is_over = True
        elif isinstance(event, h2.events.StreamReset):
            stream.is_over, stream.error = True, event.error_code
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.last, self.error = event.last_stream_id, event.error_code

    error = None

    def read(self):
        """What comes next. Returns whether there was anything."""
        data = self.sock.recv(1 << 16)
        if not data:
            self.is_over = True
            return False
        while self.h2.state_machine.state == h2.connection.ConnectionState.CLOSED and data:
            # h2 reads no more after a GOAWAY; the streams that are open go on all the same.
            self.h2.state_machine.state = h2.connection.ConnectionState.CLIENT_OPEN
        for event in self.h2.receive_data(data):
            self._event(event)
            if isinstance(event, h2.events.ConnectionTerminated):
                self.h2.state_machine.state = h2.connection.ConnectionState.CLIENT_OPEN
        self.flush()
        return True

    def finish(self, number):
        """The whole response of a stream."""
        self.flush()
        while not self.streams[number].is_over:
            assert self.read(), f"the connection ended within {self.streams[number].target}"
        return self.streams[number]

    def get(self, target, **fields):
        return self.finish(self.begin(target, **fields))

    def upload(self, target, body, **fields):
        number = self.begin(target, "POST", end=False, **fields)
        at = 0
        while at < len(body):
            room = min(self.h2.local_flow_control_window(number), self.h2.max_outbound_frame_size, len(body) - at)
            if not room:
                self.flush()
                assert self.read()
                continue
            self.h2.send_data(number, body[at:at + room])
            at += room
        self.h2.end_stream(number)
        return self.finish(number)
