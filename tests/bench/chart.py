# SPDX-License-Identifier: GPL-2.0-or-later
"""A chart's data, as docs/data has it, and the SVG that it gives: the same bytes for the same data, on any machine.

    {"title": "…", "x": {"label": "nodes", "values": [1, 2, 4]}, "y": {"label": "requests/s"},
     "series": [{"name": "ours", "values": [10, 20, null]}, {"name": "the paper's", "values": [11, 19, 40], "paper": true}],
     "command": "./dev bench …", "measured": {"commit": "…", "date": "…", "machine": "…"}}

Numbers as x values make lines, words make groups of bars; "scale": "log" in x spaces numbers by their ratio, as sizes are. A
null is no value. A paper's own figures are dashed lines, or pale bars. A title has a second line behind a line feed, or when it is long.
"""
import functools
import math
import os
import subprocess
import textwrap
import time
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 84, 16, 46, 94  # margins; below: the axis, the legend and where the figures are from
ROW, CHARACTER = 15, 6.2  # pixels of a line of the legend, and of a character in it
TITLE = 84  # characters of a line of it, of which there are two at most
TICKS = 5
# Okabe and Ito: to be told apart by everybody, and in print.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
MEASURED = ("commit", "date", "machine")


class WrongData(Exception):
    """A chart cannot be drawn from this."""


def check(data):
    """Raises WrongData with the member that is wrong, and what it should be."""
    def must(holds, told):
        if not holds:
            raise WrongData(told)

    must(isinstance(data, dict), "an object")
    for name, kind in (("title", str), ("x", dict), ("y", dict), ("series", list), ("command", str), ("measured", dict)):
        must(isinstance(data.get(name), kind) and data[name], f"{name}: a {kind.__name__} that is not empty")
    for axis in "xy":
        must(isinstance(data[axis].get("label"), str), f"{axis}.label: a str")
    for name in MEASURED:
        must(isinstance(data["measured"].get(name), str), f"measured.{name}: a str")
    values = data["x"].get("values")
    must(isinstance(values, list) and values, "x.values: a list that is not empty")
    are_words = all(isinstance(value, str) for value in values)
    must(are_words or all(isinstance(value, (int, float)) for value in values), "x.values: numbers or words, and not both")
    must(are_words or sorted(set(values)) == values, "x.values: numbers that rise")
    must(data["x"].get("scale") in (None, "log"), "x.scale: log, or not there")
    must(data["x"].get("scale") is None or not are_words and values[0] > 0, "x.values: numbers above 0 on a scale that is log")
    for number, series in enumerate(data["series"]):
        must(isinstance(series.get("name"), str), f"series {number}: a name")
        must(len(series.get("values", ())) == len(values), f"series {series['name']}: as many values as x has")
        must(all(value is None or isinstance(value, (int, float)) for value in series["values"]),
             f"series {series['name']}: numbers or null")
    must(any(value is not None for series in data["series"] for value in series["values"]), "series: a value at least")


def make(title, x, y, series, command):
    """A chart's data. @x: (label, values) or (label, values, "log"); @y: label; @series: {name: values}; a name that begins with
    "paper" is a paper's."""
    label, values, *scale = x
    return {"title": title, "x": {"label": label, "values": list(values), **({"scale": scale[0]} if scale else {})},
            "y": {"label": y},
            "series": [{"name": name, "values": list(found), **({"paper": True} if name.startswith("paper") else {})}
                       for name, found in series.items()],
            "command": command, "measured": measured()}


@functools.cache
def measured():
    """Where and when this is."""
    done = subprocess.run(["git", "-C", os.path.dirname(__file__), "describe", "--always", "--dirty", "--exclude=*"],
                          capture_output=True, text=True, check=False)
    release = ".".join(os.uname().release.split(".")[:2])
    return {"commit": done.stdout.strip() or "no commit", "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "machine": f"{os.cpu_count()} processors, Linux {release}"}


def number(value):
    """As people write it: no digits that say nothing."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == round(value) else f"{value:.3g}"


def ticks(low, high):
    """Round numbers from @low or below to @high or above."""
    raw = (high - low or 1) / TICKS
    unit = 10 ** math.floor(math.log10(raw))
    step = next(factor * unit for factor in (1, 2, 5, 10) if factor * unit >= raw * (1 - 1e-9))
    return [round(step * place, 10) for place in range(math.floor(low / step), math.ceil(high / step - 1e-9) + 1)]


class Chart:
    """One drawing, line by line. Coordinates have one digit behind the point: enough for the eye, and small files."""

    def __init__(self, data):
        check(data)
        self.data = data
        self.lines = []
        self.rows = self._legend_rows()
        self.bottom = HEIGHT - BOTTOM - ROW * (len(self.rows) - 1)
        found = [value for series in data["series"] for value in series["values"] if value is not None]
        self.ticks = ticks(min(0, *found), max(0, *found))

    def _legend_rows(self):
        rows, left = [[]], WIDTH
        for place, series in enumerate(self.data["series"]):
            wide = 40 + CHARACTER * len(series["name"])
            if rows[-1] and wide > left:
                rows.append([])
                left = WIDTH
            rows[-1].append((place, WIDTH - left, series))
            left -= wide
        return rows

    def add(self, tag, text=None, **attributes):
        told = "".join(f' {name.replace("_", "-")}="{value:.1f}"' if isinstance(value, float) else
                       f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
        self.lines.append(f"<{tag}{told}/>" if text is None else f"<{tag}{told}>{escape(text)}</{tag}>")

    def y(self, value):
        low, high = self.ticks[0], self.ticks[-1]
        return self.bottom - (self.bottom - TOP) * (value - low) / (high - low)

    def frame(self):
        lines = [part for line in self.data["title"].split("\n") for part in textwrap.wrap(line, TITLE)]
        for place, line in enumerate(lines[:2]):
            self.add("text", line, x=WIDTH / 2, y=20.0 + 16 * place, text_anchor="middle", font_size=14 - 2 * place)
        for tick in self.ticks:
            self.add("line", x1=LEFT, x2=WIDTH - RIGHT, y1=self.y(tick), y2=self.y(tick),
                     stroke="#000000" if tick == 0 else "#dddddd")
            self.add("text", number(tick), x=LEFT - 6, y=self.y(tick) + 4, text_anchor="end")
        middle = (TOP + self.bottom) / 2
        self.add("text", self.data["y"]["label"], x=14, y=middle, text_anchor="middle", transform=f"rotate(-90 14 {middle:.1f})")
        self.add("text", self.data["x"]["label"], x=(LEFT + WIDTH - RIGHT) / 2, y=self.bottom + 42.0, text_anchor="middle")
        measured = self.data["measured"]
        self.add("text", f"{self.data['command']}, {measured['commit']}, {measured['date']}", x=WIDTH - RIGHT, y=HEIGHT - 6,
                 text_anchor="end", font_size=9, fill="#666666")

    def legend(self):
        for place, row in enumerate(self.rows):
            for index, x, series in row:
                y = self.bottom + 60.0 + ROW * place
                if self.are_words:
                    self.add("rect", x=x + 12, y=y - 9, width=14, height=9, **self.bar_look(index, series))
                else:
                    self.line_of(index, series, [(x + 8, y - 4), (x + 30, y - 4)], marked=[(x + 19.0, y - 4)])
                self.add("text", series["name"], x=x + 34, y=y)

    @property
    def are_words(self):
        return isinstance(self.data["x"]["values"][0], str)

    @staticmethod
    def bar_look(index, series):
        colour = COLOURS[index % len(COLOURS)]
        return {"fill": colour, "fill_opacity": 0.3, "stroke": colour} if series.get("paper") else {"fill": colour}

    def line_of(self, index, series, points, marked=None):
        colour = COLOURS[index % len(COLOURS)]
        is_paper = series.get("paper")
        self.add("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points), fill="none", stroke=colour, stroke_width=2,
                 **({"stroke_dasharray": "6 4"} if is_paper else {}))
        for x, y in points if marked is None else marked:
            self.add("circle", cx=x, cy=y, r=3, fill="#ffffff" if is_paper else colour, stroke=colour)

    def draw_lines(self):
        values = self.data["x"]["values"]
        place = math.log if self.data["x"].get("scale") else float
        low, high = place(values[0]), place(values[-1])
        inner = WIDTH - RIGHT - LEFT - 40

        def x(value):
            return LEFT + 20 + inner * ((place(value) - low) / (high - low) if high > low else 0.5)

        for value in values:
            self.add("text", number(value), x=x(value), y=self.bottom + 16.0, text_anchor="middle")
        for index, series in enumerate(self.data["series"]):
            parts = [[]]  # a null interrupts the line
            for value, at in zip(series["values"], values):
                if value is None:
                    parts.append([])
                else:
                    parts[-1].append((x(at), self.y(value)))
            for part in parts:
                if part:
                    self.line_of(index, series, part)

    def draw_bars(self):
        words, series = self.data["x"]["values"], self.data["series"]
        group = (WIDTH - RIGHT - LEFT) / len(words)
        width = group / (len(series) + 1)
        for place, word in enumerate(words):
            for line, part in enumerate(word.split(" ", 1) if CHARACTER * len(word) > group else [word]):
                self.add("text", part, x=LEFT + group * (place + 0.5), y=self.bottom + 14.0 + 12 * line, text_anchor="middle")
            for index, each in enumerate(series):
                value = each["values"][place]
                if value is not None:
                    top, foot = sorted((self.y(value), self.y(0)))
                    self.add("rect", x=LEFT + group * place + width * (index + 0.5), y=top, width=width, height=foot - top,
                             **self.bar_look(index, each))

    def svg(self):
        self.frame()
        if self.are_words:
            self.draw_bars()
        else:
            self.draw_lines()
        self.legend()
        title = escape(self.data["title"].replace("\n", ": "))
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
                f'font-family="sans-serif" font-size="11" role="img">')
        return "\n".join([head, f"<title>{title}</title>", f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
                          *self.lines, "</svg>", ""])


def draw(data):
    """The SVG's text."""
    return Chart(data).svg()
