# SPDX-License-Identifier: GPL-2.0-or-later
"""HAProxy and nginx as proxies: their configurations, and the command line of HAProxy. Both keep connections to the servers, and have a
worker or thread for each of two CPUs.

A pool is the servers of some paths: (name, {node: address}, how one is chosen), CHOICES' "in turn" or "by uri". The first pool has
all paths that no other one has; the others have /NAME/.
"""
import os
import shutil

from earshotlab import LabError

WORKERS = 2
CHOICES = {"in turn": ("", "roundrobin"), "by uri": ("        hash $request_uri consistent;\n", "uri")}

_UPSTREAM = """\
    upstream {name} {{
{choice}{servers}
        keepalive 128;
        keepalive_requests 100000000;
    }}
"""
_NGINX = """\
{upstreams}    server {{
{listens}
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_max_temp_file_size 0;
{locations}
    }}"""
_HAPROXY = """\
global
    nbthread {workers}
    maxconn 4000
{settings}defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    http-reuse always
frontend web
{binds}
{uses}    default_backend {default}
{backends}
"""


def nginx(listens, pools):
    """What http { } of its configuration has: `listens` are the lines of its server that say where it listens."""
    upstreams = "".join(_UPSTREAM.format(name=name, choice=CHOICES[choice][0], servers="\n".join(
        f"        server {address}:80;" for address in servers.values())) for name, servers, choice in pools)
    locations = "\n".join(f"        location {f'/{name}/' if number else '/'} {{ proxy_pass http://{name}; }}"
                          for number, (name, _, _) in enumerate(pools))
    return _NGINX.format(upstreams=upstreams, listens=listens, locations=locations)


def haproxy(directory, binds, pools, settings=""):
    """Write its configuration there; returns the command line that runs it. `binds`: where it listens; `settings`: global ones."""
    command = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
    if not command:
        raise LabError("haproxy is not installed: apt-get install haproxy")
    uses = "".join(f"    use_backend {name} if {{ path_beg /{name}/ }}\n" for name, _, _ in pools[1:])
    backends = "\n".join("\n".join([f"backend {name}", f"    balance {CHOICES[choice][1]}",
                                    *(f"    server {node} {address}:80" for node, address in servers.items())])
                         for name, servers, choice in pools)
    config = os.path.join(directory, "haproxy.cfg")
    with open(config, "w", encoding="utf-8") as handle:
        handle.write(_HAPROXY.format(workers=WORKERS, settings="".join(f"    {line}\n" for line in settings.splitlines()),
                                     binds="\n".join(f"    bind {bind}" for bind in binds), uses=uses, default=pools[0][0],
                                     backends=backends))
    return [command, "-db", "-f", config]
