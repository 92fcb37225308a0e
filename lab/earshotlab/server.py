# SPDX-License-Identifier: GPL-2.0-or-later
"""The web server of each node: a stock nginx, and what it serves.

    /index.html /1k /13k /100k /1m   generated files, the same on every node (or what --docroot has)
    /u/FILE/anything                 FILE, under as many different URIs as one likes
    /node                            the node's name
    /close/FILE                      FILE; the server closes the connection (and holds the TIME_WAIT)
    /status/204, /status/304         responses without a body
    /upload                          POST or PUT: {"node", "bytes", "sha256"} of the body, see origin.py
    /upload/NAME                     PUT: the body is kept, GET reads it back (from that node)
    /slow/MS, /chunked/N, /drip/N, /upgrade   see origin.py

Every response has X-Node. The access log (run directory, NODE/access.log) has lines like
    10.77.1.1:40000 "GET /1k HTTP/1.1" 200 1024
and is written with a delay of up to 100 ms.
"""
import hashlib
import os
import resource
import shutil

from . import families
from .errors import LabError

FILES = {"1k": 1 << 10, "13k": 13 << 10, "100k": 100 << 10, "1m": 1 << 20}

# An nginx that has nothing in common with another one on the machine.
_NGINX = """\
daemon off;
user root;
pid {directory}/{name}.pid;
error_log {directory}/{error_log};
{main}
events {{ worker_connections {connections}; }}
http {{
    client_body_temp_path {directory}/{name}-body;
    proxy_temp_path {directory}/{name}-proxy;
    fastcgi_temp_path {directory}/{name}-fastcgi;
    uwsgi_temp_path {directory}/{name}-uwsgi;
    scgi_temp_path {directory}/{name}-scgi;
    default_type application/octet-stream;
    sendfile on;
    tcp_nopush on;
{http}
}}
"""

_HTTP = """\
    log_format lab '$remote_addr:$remote_port "$request" $status $body_bytes_sent';
    access_log {directory}/access.log lab buffer=64k flush=100ms;

    types {{ text/html html; text/plain txt; }}
    keepalive_requests 1000000;
    client_max_body_size 64m;
    proxy_http_version 1.1;
    proxy_buffering off;
    proxy_set_header X-Node {node};
    upstream origin {{ server unix:{origin}; }}

    server {{
{listen}
        root {docroot};
        add_header X-Node {node} always;

        location = /node {{ default_type text/plain; return 200 "{node}\\n"; }}
        location ~ ^/u/([^/]+)/ {{ try_files /$1 =404; }}
        location /close/ {{ keepalive_timeout 0; alias {docroot}/; }}
        location = /status/204 {{ return 204; }}
        location = /status/304 {{ return 304; }}
        location = /upload {{ proxy_pass http://origin; }}
        location /upload/ {{ root {directory}; dav_methods PUT DELETE; create_full_put_path on; }}
        location /slow/ {{ proxy_pass http://origin; }}
        location /chunked/ {{ proxy_pass http://origin; }}
        location /drip/ {{ proxy_pass http://origin; }}
        location = /upgrade {{
            proxy_pass http://origin;
            proxy_set_header X-Node {node};
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection upgrade;
        }}
    }}"""


def command():
    """The path of nginx, or LabError."""
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if not found:
        raise LabError("nginx is not installed: apt-get install nginx-light")
    return found


def file_content(name, size):
    """What a generated file has in it: not compressible, not repetitive, the same everywhere and always."""
    blocks = (hashlib.sha256(f"{name} {i}".encode()).digest() for i in range((size + 31) // 32))
    return b"".join(blocks)[:size]


def make_docroot(directory):
    """Write the generated files."""
    os.makedirs(directory, exist_ok=True)
    for name, size in FILES.items():
        with open(os.path.join(directory, name), "wb") as handle:
            handle.write(file_content(name, size))
    with open(os.path.join(directory, "index.html"), "w", encoding="ascii") as handle:
        handle.write("<!DOCTYPE html><title>Earshot lab</title><p>It works.</p>\n")


def nginx(directory, http, name="nginx", error_log="error.log", main="", connections=4096):
    """Write DIRECTORY/NAME.conf with this inside http { }; returns the command line that runs nginx in the foreground."""
    config = os.path.join(directory, f"{name}.conf")
    with open(config, "w", encoding="utf-8") as handle:
        handle.write(_NGINX.format(directory=directory, http=http, name=name, error_log=error_log, main=main,
                                   connections=connections))
    return [command(), "-p", directory, "-c", config, "-e", os.path.join(directory, error_log)]


def _listens(family):
    return [f"        listen {where} backlog=4096;" for where, there in (
        ("80", families.has4(family)), ("[::]:80 ipv6only=on", families.has6(family))) if there]


def configure(directory, node, docroot, origin, family=families.DEFAULT, more=()):
    """Write a node's nginx.conf; returns the command line that runs it. It listens at the addresses `more`, too."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files = 65536 if files == resource.RLIM_INFINITY else min(files, 65536)
    http = _HTTP.format(directory=directory, node=node, docroot=os.path.abspath(docroot), origin=origin,
                        listen="\n".join(_listens(family) + [f"        listen {where} backlog=4096;" for where in more]))
    return nginx(directory, http, main=f"worker_rlimit_nofile {files};", connections=files // 2)
