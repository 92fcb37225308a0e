# SPDX-License-Identifier: GPL-2.0-or-later
"""What a cluster with machines in it must do, whatever its nodes are."""
import contextlib

from web import raw

TIMEOUT_S = 60  # of an answer: the machines are emulated, and may lose a packet to a full queue


def get(connection, number):
    """The node that answers; its answer is whole."""
    connection.request("GET", f"/u/13k/{number}")
    response = connection.getresponse()
    assert response.status == 200 and len(response.read()) == 13 << 10
    return response.headers["X-Node"]


def on_one_connection(lab, requests=40, address=None):
    """The nodes that answer requests for different files on a single connection, in order; every body is whole."""
    with contextlib.closing(raw.http_connection(lab.client, TIMEOUT_S, address)) as connection:
        return [get(connection, number) for number in range(requests)]
