# SPDX-License-Identifier: GPL-2.0-or-later
"""An application that keeps its sessions to itself: python3 -m web.sessions NODE ADDRESS,... PORT ROUTE

    /jvm                its cookie names the node: JSESSIONID=ID.ROUTE, as Tomcat's with jvmRoute
    /beside             its cookie does not, SID=ID; the web server in front of it sets another that does, SRV=ROUTE

The body says what became of the session: "began", "goes on", or "lost": it came with a cookie that is known here no more than
anywhere else, and begins anew. All else is backend.py's.
"""
import secrets
import sys

from web import backend

COOKIES = {"jvm": "JSESSIONID", "beside": "SID"}
sessions = set()


class Handler(backend.Handler):
    """The same, and sessions."""

    def respond(self):
        kind = self.target.split("?")[0].split("/")[1]
        if kind not in COOKIES:
            return super().respond()
        name, route, fresh = COOKIES[kind], sys.argv[4], []
        cookies = dict(pair.strip().split("=", 1) for pair in self.fields.get("cookie", "").split(";") if "=" in pair)
        goes_on = cookies.get(name, "").split(".")[0] in sessions
        if not goes_on:
            number = secrets.token_hex(16)
            sessions.add(number)
            fresh.append(f"{name}={number}" + (f".{route}" if kind == "jvm" else ""))
        if kind == "beside" and cookies.get("SRV") != route:
            fresh.append(f"SRV={route}")
        text = b"goes on" if goes_on else b"lost" if name in cookies else b"began"
        lines = "\r\nSet-Cookie: ".join(f"{each}; Path=/; HttpOnly" for each in fresh)
        self.reply(200, text, **({"Set_Cookie": lines} if fresh else {}))
        return self.fields.get("connection", "").lower() != "close"


if __name__ == "__main__":
    backend.serve(Handler)
