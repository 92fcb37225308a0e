# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages that a program makes: CGI behind nginx, a process for each request, as programs of 1999 are."""
import os
import shutil

from earshotlab import LabError
from papers_content import Site

PROCESSES = 4  # at a time, on each node
_ROWS = 1000
_NGINX = """\
        location /cgi-bin/ {{
            fastcgi_pass unix:{socket};
            fastcgi_param SCRIPT_FILENAME {script};
            fastcgi_param REQUEST_METHOD $request_method;
            fastcgi_param QUERY_STRING $query_string;
        }}"""
# It sorts, as a query does.
_SCRIPT = """\
#!/usr/bin/perl
my @rows = sort {{ $a <=> $b }} map {{ $_ * 7919 % 100003 }} 1 .. {rows};
my $page = sprintf("%015d\\n", $ENV{{QUERY_STRING}});
print "Content-Type: text/html\\r\\nContent-Length: {size}\\r\\n\\r\\n", $page, "x" x ({size} - length($page));
"""


def write_script(path):
    """The program; its page begins with the number that its query is, and has Site.DYNAMIC_BYTES."""
    with open(path, "w", encoding="ascii") as handle:
        handle.write(_SCRIPT.format(rows=_ROWS, size=Site.DYNAMIC_BYTES))
    os.chmod(path, 0o755)


def command(socket):
    """What runs programs for nginx."""
    found = shutil.which("fcgiwrap") or shutil.which("fcgiwrap", path="/usr/sbin")
    if not found:
        raise LabError("fcgiwrap is not installed: apt-get install fcgiwrap")
    return [found, "-c", str(PROCESSES), "-s", f"unix:{socket}"]


def location(socket, script):
    """For nginx's server."""
    return _NGINX.format(socket=socket, script=script)
