# SPDX-License-Identifier: GPL-2.0-or-later
"""TLS on sockets that tests may treat badly: the encrypted bytes are in their hands."""
import ssl
import struct

from earshotlab import tls
from web import raw

VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
CIPHERS = {"aes128": "ECDHE-ECDSA-AES128-GCM-SHA256", "aes256": "ECDHE-ECDSA-AES256-GCM-SHA384",
           "chacha": "ECDHE-ECDSA-CHACHA20-POLY1305"}  # of TLS 1.2; Python cannot choose those of 1.3
ALERT, DATA = 21, 23  # content types; in TLS 1.3 everything is data
RECORD_HEADER = 5


def context(lab, version=None, certificate=None, cipher=None):
    """What a client of the lab trusts."""
    made = ssl.create_default_context(cafile=f"{tls.directory(lab.directory)}/ca.pem")
    if version:
        made.minimum_version = made.maximum_version = VERSIONS[version]
    if certificate:
        made.load_cert_chain(certificate + ".pem", certificate + ".key")
    if cipher:
        made.set_ciphers(CIPHERS[cipher])
    return made


class Secure:
    """A connection, used like a socket."""

    def __init__(self, lab, how=None, name=tls.NAMES[0], session=None, address=None, timeout=10.0, sock=None):
        self.sock = sock or raw.connect(lab.client, address or (lab.net.vip, tls.PORT), timeout=timeout)
        self.came, self.goes = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            self.tls = (how or context(lab)).wrap_bio(self.came, self.goes, server_hostname=name, session=session)
            self._until(self.tls.do_handshake)
            self.flush()
        except BaseException:
            self.sock.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _until(self, what):
        """Do it, sending and receiving as much as that takes."""
        while True:
            try:
                return what()
            except ssl.SSLWantReadError:
                self.flush()
                data = self.sock.recv(1 << 16)
                if data:
                    self.came.write(data)
                else:
                    self.came.write_eof()

    def flush(self):
        data = self.goes.read()
        if data:
            self.sock.sendall(data)

    def settimeout(self, seconds):
        self.sock.settimeout(seconds)

    def getsockname(self):
        return self.sock.getsockname()

    def protect(self, data):
        """The records with these bytes, which are for the caller to send; 16 KB in each."""
        self.tls.write(data)
        return self.goes.read()

    def records(self, data, size=1 << 14):
        """A list of records with `size` bytes of text in each."""
        return [self.protect(data[at:at + size]) for at in range(0, len(data), size)]

    def sendall(self, data):
        for at in range(0, len(data), 1 << 18):
            self.sock.sendall(self.protect(data[at:at + (1 << 18)]))

    def recv(self, size):
        """Bytes; none after close_notify. An end without it is an error (ssl.SSLEOFError), as with each client that cares."""
        try:
            return self._until(lambda: self.tls.read(size))
        except ssl.SSLZeroReturnError:
            return b""

    def close_notify(self):
        """Say that nothing more is to come, and listen on."""
        try:
            self.tls.unwrap()
        except ssl.SSLWantReadError:
            pass
        self.flush()

    def close(self):
        self.sock.close()


def types(data):
    """The content types of the records in a stream of bytes."""
    found = []
    while data:
        kind, _, length = struct.unpack(">BHH", data[:RECORD_HEADER])
        found.append(kind)
        data = data[RECORD_HEADER + length:]
    return found
