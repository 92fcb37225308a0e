# SPDX-License-Identifier: GPL-2.0-or-later
"""The status page as people see it: on a desk and on a phone, light and dark, by keyboard; and what it says while something is dead."""
import os
import re
import subprocess

import pytest

from cluster.membership import settled
from earshotlab import Lab, topology, wait_for
from tree import module
from web.browser import Browser

pytestmark = [pytest.mark.earshot, pytest.mark.corosync]

ALL = ["n1", "n2", "n3"]
MAIL = 2525
WIDTHS = [1280, 390]
SCHEMES = ["light", "dark"]
WELL = "All 3 nodes are up, and all services on them."
CONTRAST = 4.5  # WCAG 2.1, AA


@pytest.fixture(scope="module", name="lab")
def _lab():
    """Two services, one of which nobody reads."""
    with Lab(nodes=3, policy="wrr", membership="corosync", settings={"service.inspect": "every"}) as lab:
        settled(lab, ALL)
        for node in ALL:
            mail(lab, node)
        with open(lab.config_file, "a", encoding="utf-8") as handle:
            handle.write(f'service mail {{ address = "{lab.net.vip}" port = {MAIL} inspect = never }}\n')
        for node in lab.nodes:
            node.exec(["earshot", "reload"])
        yield lab


def mail(lab, node):
    return lab.node(node).popen([*module("web.greeter"), node, lab.net.vip, str(MAIL)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def url(lab, node):
    return f"http://{lab.node(node).cluster_address}:{topology.STATUS_PORT}/"


def health(lab, node):
    """Its class, and what it says."""
    page = lab.node(node).exec(["curl", "-sSf", "--max-time", "5", url(lab, node)]).stdout
    return re.search(r'<p id="health"[^>]*class="(\w+)">([^<]*)</p>', page).groups()


def becomes(lab, node, expected):
    wait_for(lambda: health(lab, node) == expected, f"{node} says {expected}", 25, lambda: health(lab, node))


@pytest.fixture(scope="module", name="browser")
def _browser(lab, tmp_path_factory):
    with Browser(lab.node("n1").popen, tmp_path_factory.mktemp("profile")) as browser:
        yield browser


def pictures(tmp_path):
    """Where pictures go: EARSHOT_PICTURES, for whoever wants to look at them."""
    folder = os.environ.get("EARSHOT_PICTURES", str(tmp_path))
    os.makedirs(folder, exist_ok=True)
    return folder


# Each text that is shown, whose colour and background are too alike.
PALE = """(limit => {
  const light = c => [0.2126, 0.7152, 0.0722].reduce((sum, w, i) =>
    sum + w * (c[i] / 255 <= 0.04045 ? c[i] / 255 / 12.92 : ((c[i] / 255 + 0.055) / 1.055) ** 2.4), 0);
  const colour = s => s.match(/[\\d.]+/g).map(Number);
  const behind = e => { for (; e; e = e.parentElement) { const c = colour(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  return [...document.body.querySelectorAll('p,td,th,dt,dd,small,span,a,h1,h2,h3,b,li,caption,figcaption')].filter(e =>
    [...e.childNodes].some(n => n.nodeType == 3 && n.data.trim()) && e.getClientRects().length).filter(e => {
      const a = light(colour(getComputedStyle(e).color)), b = light(behind(e));
      return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < limit; }).map(e => e.textContent);
})"""

# What cannot be seen without scrolling sideways.
OUT_OF_SIGHT = """(() => {
  const out = [...document.querySelectorAll('main *, header *')].filter(e => !e.closest('.skip, thead, svg') &&
    e.getClientRects().length && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.textContent.slice(0, 60));
  const cut = [...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth).map(e => e.ariaLabel);
  return [document.documentElement.scrollWidth, out, cut];
})()"""


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_out_of_sight(lab, browser, tmp_path, width, scheme):
    """Nothing sideways, each text to be read, and the first that is seen is how each service is on each node."""
    for number in range(30):
        lab.client.get(f"/u/1k/{number}")
    becomes(lab, "n1", ("ok", WELL))
    browser.show(width, scheme=scheme)
    browser.go(url(lab, "n1"))
    browser.picture(f"{pictures(tmp_path)}/page-{width}-{scheme}.png")
    assert browser.evaluate(OUT_OF_SIGHT) == [width, [], []]
    assert browser.evaluate(f"{PALE}({CONTRAST})") == []
    assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 24, 28)")
    assert browser.evaluate("document.querySelector('main').firstElementChild.id") == "services"
    cells = browser.evaluate("[...document.querySelectorAll('.cell')].map(e => e.querySelector('p').innerText.split(/\\s+/).join(' '))")
    assert cells == [f"{node} ✓ up" for _ in range(2) for node in ALL], cells
    tops = browser.evaluate("[...document.querySelectorAll('.matrix tr:nth-child(1) .cell')].map(e => e.getBoundingClientRect().top)")
    assert len(set(tops)) == (1 if width > 1000 else 2)  # side by side where there is room


def test_charts(lab, browser):
    """A page that is opened now has the minutes before, by node; and draws them without anything from elsewhere."""
    for number in range(60):
        lab.client.get(f"/u/1k/{number}")
    browser.show(1280)

    def drawn():
        browser.go(url(lab, "n3"))
        return browser.evaluate("[...document.querySelectorAll('#history figure')].map(f => "
                                "[...f.querySelectorAll('path.line')].map(p => p.getTotalLength()))")

    def all_drawn():
        charts = drawn()
        # web alone and all services: requests and times of each node; of mail nobody knows
        return len(charts) == 6 and all(length > 0 for chart in (charts[0], charts[3]) for length in chart)
    wait_for(all_drawn, "each node has a line", 30, drawn)
    assert browser.evaluate("performance.getEntriesByType('resource').map(e => e.name).filter(name => name != location.href)") == []
    assert browser.evaluate("document.querySelectorAll('#history h3').length") == 2


def test_by_keyboard(lab, browser):
    """Where one is stays seen, also when the page renews itself beneath."""
    where = "document.activeElement.textContent.trim() || document.activeElement.tagName"
    browser.show(390)
    browser.go(url(lab, "n1"))
    browser.press("Tab", 9)
    assert browser.evaluate(where) == "To the services"
    assert browser.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    browser.press("Enter", 13)
    assert browser.evaluate("location.hash") == "#services"
    browser.go("about:blank")
    browser.go(url(lab, "n1"))
    names = []
    for _ in range(9):
        browser.press("Tab", 9)
        names.append(browser.evaluate(where))
    assert names[1:] == ["Services", "Nodes", "Ten minutes", "Problems", "Events", "Ring", "Moves", "Content"]
    browser.press("Tab", 9)  # into a table, which may have to be scrolled
    inside = "document.activeElement.ariaLabel"
    assert browser.evaluate(inside).startswith("Shares of the ring")
    outline = browser.evaluate("getComputedStyle(document.activeElement).outlineStyle + getComputedStyle(document.activeElement).outlineWidth")
    assert outline == "solid3px"
    before = browser.evaluate("document.getElementById('at').textContent")
    browser.evaluate("window.first = document.querySelector('#nodes table')")
    wait_for(lambda: browser.evaluate("document.getElementById('at').textContent") != before, "it renews itself", 20)

    def is_another():
        lab.client.get("/u/1k/1")  # so that there is something new
        return browser.evaluate("window.first != document.querySelector('#nodes table')")
    wait_for(is_another, "its table, too", 30)
    assert browser.evaluate(inside).startswith("Shares of the ring")


def test_it_is_never_green_while_something_is_dead(lab, browser, tmp_path):
    """A server of either service on one node, on all, and a whole node; the page says which, in words and in its title, by itself."""
    becomes(lab, "n1", ("ok", WELL))
    browser.show(1280)
    browser.go(url(lab, "n1"))
    assert not browser.evaluate("document.title").startswith("!")
    lab.stop("n2", "nginx")
    dead = f"nothing listens on {lab.net.vip} port"
    for node in ALL:
        becomes(lab, node, ("warn", f" Service web is down on n2: {dead} 80."))
    wait_for(lambda: browser.evaluate("document.title").startswith("! "), "the open page says it, too", 10)
    why = "[...document.querySelectorAll('.cell.bad')].map(e => e.querySelector('.why')?.textContent)"
    # Its title may have spoken of something else before, on a busy machine.
    wait_for(lambda: browser.evaluate(why) == [f"{dead} 80"], "its cell says it", 10, seen=lambda: browser.evaluate(why))
    browser.picture(f"{pictures(tmp_path)}/dead-server.png")
    lab.stop("n1", "nginx")
    lab.stop("n3", "nginx")
    everywhere = "".join(f" Service web is down on {node}: {dead} 80." for node in ALL)

    def all_down():
        colour, text = health(lab, "n1")
        return colour == "bad" and "Service web is served by no node." in text and everywhere in text
    wait_for(all_down, "no node serves it", 25, lambda: health(lab, "n1"))
    for node in ALL:
        lab.start(node, "nginx")
    becomes(lab, "n1", ("ok", WELL))
    lab.node("n1").exec(["earshot", "drain", "n2"])
    becomes(lab, "n3", ("warn", "2 of 3 nodes are up and answer. n2 is draining."))
    lab.node("n1").exec(["earshot", "undrain", "n2"])
    becomes(lab, "n3", ("ok", WELL))
    lab.kill("n3")
    wait_for(lambda: health(lab, "n1")[0] == "warn" and "n3" in health(lab, "n1")[1], "a dead node", 25, lambda: health(lab, "n1"))
    lab.node("n1").stop()  # it knows nothing of n3 any more
    lab.node("n1").start()
    for _ in range(20):
        assert health(lab, "n1")[0] != "ok"
