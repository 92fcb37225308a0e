# SPDX-License-Identifier: GPL-2.0-or-later
"""What a cluster with machines in it must do, whatever its nodes are."""
import http.client

from earshotvm.cluster import topology


def on_one_connection(lab, requests=40):
    """The nodes that answer requests for different files on a single connection, in order; every body is whole."""
    answered = []
    with lab.client.socket() as client:
        client.settimeout(20)
        client.connect((topology.VIP, topology.PORT))
        connection = http.client.HTTPConnection(topology.VIP)
        connection.sock = client
        for number in range(requests):
            connection.request("GET", f"/u/13k/{number}")
            response = connection.getresponse()
            assert response.status == 200 and len(response.read()) == 13 << 10
            answered.append(response.headers["X-Node"])
    return answered
