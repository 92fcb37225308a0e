# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages of pictures, and a browser that tells which of them it has got."""
import html
import re
import struct
import zlib

WIDTH = 8
_PAGE = """<!doctype html><title>waiting</title><body>{images}<script>
addEventListener("load", () => {{
  const all = [...document.images];
  document.title = all.filter(i => i.complete && i.naturalWidth == {width}).length + " of " + all.length + " pictures";
}});
</script>"""


def png(number):
    """A picture of its own for each number, 8 x 8 pixels of one colour, and a few KB that nobody sees."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    row = b"\0" + bytes((number * 2 % 256, 255 - number, number % 7 * 30)) * WIDTH
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", WIDTH, WIDTH, 8, 2, 0, 0, 0)) + \
        chunk(b"tEXt", b"Comment\0" + b"earshot " * (number * 9)) + chunk(b"IDAT", zlib.compress(row * WIDTH)) + \
        chunk(b"IEND", b"")


def page(sources):
    """A page with these pictures, whose title says in the end how many are there."""
    return _PAGE.format(width=WIDTH, images="".join(f'<img src="{html.escape(source)}">' for source in sources))


def seen(machine, url, profile, *options):
    """What Chromium on that machine makes of such a page: (pictures that are there, pictures)."""
    done = machine.exec(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
         f"--user-data-dir={profile}", "--virtual-time-budget=20000", *options, "--dump-dom", url], timeout=90)
    found = re.search(r"<title>(\d+) of (\d+) pictures</title>", done.stdout)
    assert found, done.stdout[:2000] + done.stderr[-2000:]
    return int(found[1]), int(found[2])
