#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A client that believes nothing: many connections, every byte of every body checked.

    traffic.py DOCROOT [--connections N] [--parallel N] [--max-bytes N] [--modes LIST] [--seed N]
               [--local-ports FIRST-LAST] [--timeout S] [--url-prefix P]

Each connection fetches one random file of DOCROOT (make_docroot()) and then ends in one of the modes
    server   Connection: close, the server closes first and has the TIME_WAIT
    client   keep-alive, the client closes first
    reset    keep-alive, the client closes with data unread or with SO_LINGER 0: a RST
    half     the client shuts its sending side down right after the request (nginx gives up large bodies then, so only
             small files are asked for)
Prints one JSON object; exit status 1 if a single connection failed.
"""
import argparse
import asyncio
import hashlib
import json
import math
import os
import random
import socket
import struct
import sys
import time

HALF_CLOSE_BYTES = 50000
EDGE_SIZES = (0, 1, *range(1447, 1462), 5000000)


def make_docroot(directory, seed=1, files=300, max_bytes=5000000):
    """Files with random names and log-uniform sizes, the awkward sizes among them; the list is DIRECTORY/manifest.tsv."""
    rng = random.Random(seed)
    sizes = list(EDGE_SIZES) + [int(math.exp(rng.uniform(0, math.log(max_bytes)))) for _ in range(files)]
    with open(os.path.join(directory, "manifest.tsv"), "w", encoding="ascii") as manifest:
        for number, size in enumerate(sizes):
            folder = "/".join(f"{rng.randrange(1 << 16):x}" for _ in range(rng.randrange(1, 4)))
            os.makedirs(os.path.join(directory, folder), exist_ok=True)
            name = f"{folder}/f{number}-{rng.randrange(1 << 30):x}"
            body = rng.randbytes(size)
            with open(os.path.join(directory, name), "wb") as handle:
                handle.write(body)
            manifest.write(f"{name}\t{size}\t{hashlib.sha256(body).hexdigest()}\n")


def read_manifest(directory, max_bytes):
    """[(path, size, sha256)] of the files up to max_bytes."""
    with open(os.path.join(directory, "manifest.tsv"), encoding="ascii") as manifest:
        files = [(path, int(size), digest) for path, size, digest in (line.split() for line in manifest)]
    return [file for file in files if file[1] <= max_bytes]


class Traffic:
    """The run: what is to be done, and what came of it."""

    def __init__(self, options):
        self.options = options
        self.rng = random.Random(options.seed)
        self.files = read_manifest(options.docroot, options.max_bytes)
        self.small = [file for file in self.files if file[1] <= HALF_CLOSE_BYTES]
        self.ports = None
        if options.local_ports:
            first, last = (int(part) for part in options.local_ports.split("-"))
            self.ports = range(first, last + 1)
        self.errors = []
        self.doing = {}  # connection -> what it is, for the error message
        self.connect_s, self.total_s, self.nodes = [], [], {}
        self.retransmitted_syns = 0
        self.bytes = 0

    async def connect(self, number):
        """A connected socket; with local ports, from the next one in turn."""
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            if self.ports:
                sock.bind(("", self.ports[number % len(self.ports)]))
            await asyncio.get_running_loop().sock_connect(sock, (self.options.host, self.options.port))
        except BaseException:
            sock.close()
            raise
        # tcpi_total_retrans of linux/tcp.h: nothing but the SYN can have been sent again by now
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        self.retransmitted_syns += struct.unpack_from("I", info, 100)[0]
        return sock

    async def read_response(self, reader, size, digest):
        """Read one response and compare it; the name of the node that sent it."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        if " 200 " not in head[0]:
            raise ValueError(f"status line {head[0]!r}")
        fields = {key.lower(): value for key, _, value in (line.partition(": ") for line in head[1:])}
        if int(fields["content-length"]) != size:
            raise ValueError(f"Content-Length {fields['content-length']} instead of {size}")
        left, body = size, hashlib.sha256()
        while left:
            data = await reader.read(min(left, 1 << 18))
            if not data:
                raise EOFError(f"{left} of {size} bytes are missing")
            body.update(data)
            left -= len(data)
        if body.hexdigest() != digest:
            raise ValueError("wrong bytes")
        return fields["x-node"]

    async def one(self, number):
        """One connection from beginning to end."""
        mode = self.rng.choice(self.options.modes)
        path, size, digest = self.rng.choice(self.small if mode == "half" else self.files)
        begin = time.monotonic()
        self.doing[number] = f"{mode} {path}"
        sock = await self.connect(number)
        self.doing[number] += f" from port {sock.getsockname()[1]}"
        self.connect_s.append(time.monotonic() - begin)
        reader, writer = await asyncio.open_connection(sock=sock, limit=1 << 18)
        try:
            connection = "close" if mode == "server" else "keep-alive"
            writer.write(f"GET {self.options.url_prefix}/{path} HTTP/1.1\r\nHost: lab\r\nConnection: {connection}\r\n\r\n".encode())
            if mode == "half":
                writer.write_eof()
            node = await self.read_response(reader, size, digest)
            if mode == "server" and await reader.read(1):
                raise ValueError("bytes behind the response")
            if mode == "reset":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        finally:
            writer.close()
        self.nodes[node] = self.nodes.get(node, 0) + 1
        self.bytes += size
        self.total_s.append(time.monotonic() - begin)
        del self.doing[number]

    async def worker(self, numbers):
        for number in numbers:
            try:
                await asyncio.wait_for(self.one(number), self.options.timeout)
            except (OSError, ValueError, KeyError, EOFError, asyncio.TimeoutError) as error:
                self.errors.append(f"connection {number} ({self.doing[number]}): {type(error).__name__}: {error}")

    async def run(self):
        numbers = iter(range(self.options.connections))
        await asyncio.gather(*(self.worker(numbers) for _ in range(self.options.parallel)))

    def report(self):
        def percentiles(values):
            values = sorted(values) or [0]
            return {"p50": values[len(values) // 2], "p99": values[int(len(values) * 0.99)], "max": values[-1]}

        return {"ok": len(self.total_s), "failed": len(self.errors), "errors": self.errors[:10], "bytes": self.bytes,
                "connect_s": percentiles(self.connect_s), "total_s": percentiles(self.total_s),
                "retransmitted_syns": self.retransmitted_syns, "nodes": self.nodes}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("docroot")
    parser.add_argument("--host", default="10.77.0.100")
    parser.add_argument("--port", type=int, default=80)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--parallel", type=int, default=64)
    parser.add_argument("--max-bytes", type=int, default=5000000)
    parser.add_argument("--modes", type=lambda text: text.split(","), default=["server", "client", "reset", "half"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--local-ports")
    parser.add_argument("--url-prefix", default="")
    parser.add_argument("--timeout", type=float, default=30.0)
    traffic = Traffic(parser.parse_args())
    asyncio.run(traffic.run())
    print(json.dumps(traffic.report()))
    return 1 if traffic.errors else 0


if __name__ == "__main__":
    sys.exit(main())
