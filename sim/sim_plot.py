# SPDX-License-Identifier: GPL-2.0-or-later
"""Draws what `earshot-sim run --json` or `earshot-sim sweep --json` printed: JSON on stdin, the picture's path
(.svg or .png) as the only argument."""
import json
import sys


def load_pyplot():
    try:
        import matplotlib
    except ImportError:
        sys.exit("sim_plot: drawing needs matplotlib: apt install python3-matplotlib")
    matplotlib.use("Agg")
    # Without these every SVG would differ in its ids and date.
    matplotlib.rcParams["svg.hashsalt"] = "earshot"
    from matplotlib import pyplot
    return pyplot


def save(figure, path):
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)


def draw_sweep(pyplot, data, path):
    """As HyLARD Fig. 3: throughput over the parameter."""
    rows = sorted(data["values"], key=lambda row: row["value"])
    x = [row["value"] for row in rows]
    y = [row["throughput_rps"] for row in rows]
    below = [row["throughput_rps"] - row["throughput_rps_min"] for row in rows]
    above = [row["throughput_rps_max"] - row["throughput_rps"] for row in rows]
    figure, axes = pyplot.subplots(figsize=(6, 4))
    axes.errorbar(x, y, yerr=[below, above], marker="o", capsize=3)
    axes.axvline(data["recommended"]["value"], linestyle=":", color="gray")
    axes.set_xlabel(data["parameter"])
    axes.set_ylabel("requests/s")
    axes.set_ylim(bottom=0)
    axes.set_title(f"{data['policy']}, {data['seeds']} seeds: median, least, most")
    save(figure, path)


def draw_run(pyplot, data, path):
    """What each node did."""
    nodes = data["nodes"]
    x = list(range(len(nodes)))
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 4))
    hits = [node["hits"] for node in nodes]
    misses = [node["misses"] for node in nodes]
    others = [node["served"] - node["hits"] - node["misses"] for node in nodes]
    left.bar(x, hits, label="hit")
    left.bar(x, misses, bottom=hits, label="miss")
    if any(others):
        left.bar(x, others, bottom=[h + m for h, m in zip(hits, misses)], label="dynamic")
    left.set_ylabel("requests")
    for i, kind in enumerate(("cpu", "disk", "net")):
        right.bar([v + 0.27 * (i - 1) for v in x], [node[f"{kind}_busy"] for node in nodes], 0.27, label=kind)
    right.set_ylabel("share of time busy")
    right.set_ylim(0, 1.02)
    for axes in (left, right):
        axes.set_xlabel("node")
        axes.set_xticks(x)
        axes.legend()
    figure.suptitle(f"{data['policy']}: {data['throughput_rps']:.0f} requests/s, hit rate {data['hit_rate']:.3f}")
    save(figure, path)


def main():
    if len(sys.argv) != 2 or not sys.argv[1].endswith((".svg", ".png")):
        sys.exit("sim_plot: the picture's name must end in .svg or .png")
    data = json.load(sys.stdin)
    pyplot = load_pyplot()
    draw = {"sweep": draw_sweep, "run": draw_run}[data["command"]]
    try:
        draw(pyplot, data, sys.argv[1])
    except OSError as error:
        sys.exit(f"sim_plot: {error}")


if __name__ == "__main__":
    main()
