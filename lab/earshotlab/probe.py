# SPDX-License-Identifier: GPL-2.0-or-later
"""Asking a server from inside a namespace."""
import http.client
import socket

from . import netns


def sockets_in(namespace, family=socket.AF_INET, kind=socket.SOCK_STREAM):
    """A new socket of that namespace, for use anywhere."""
    return netns.in_namespace(namespace, socket.socket, family, kind)


def get(namespace, host, port, target, timeout=1.0):
    """GET on a connection of its own: (status, headers, body). OSError if there is no complete answer."""
    connection = http.client.HTTPConnection(host, port, timeout=timeout)
    connection.sock = sockets_in(namespace, socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        connection.sock.settimeout(timeout)
        connection.sock.connect((host, port))
        connection.request("GET", target, headers={"Connection": "close"})
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    except http.client.HTTPException as error:
        raise ConnectionError(f"{type(error).__name__}: {error}") from error
    finally:
        connection.close()


def receives(namespace, host, port, target="/node", timeout=1.0):
    """Whether a request gets a 200; an OSError otherwise says why not."""
    status = get(namespace, host, port, target, timeout)[0]
    if status != 200:
        raise ConnectionError(f"GET http://{host}:{port}{target}: status {status}")
    return True


def connects(path):
    """Whether someone listens on the Unix socket; an OSError otherwise says why not."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(path)
    return True
