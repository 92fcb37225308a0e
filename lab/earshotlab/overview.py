# SPDX-License-Identifier: GPL-2.0-or-later
"""What `lab status` prints."""
from . import families, services, topology
from .errors import LabError


def text(lab):
    """A few lines for a person: each machine's processes and links."""
    lines = [f"lab {lab.name}: service {families.in_url(lab.net.vip)}:{topology.PORT}, client {lab.net.client}, "
             f"files in {lab.directory}"]
    lines += [_node(lab, node) for node in lab.net.nodes]
    for link in lab.net.links.values():
        lost = lab.faults["losing"].get(link.name)
        notes = [note for note, true in (("cut", not lab.net.link_is_up(link.name)),
                                         ("loses all" if lost == "both" else f"loses all {lost}", lost),
                                         ("shim", link.wired)) if true]
        if notes:
            lines += [f"link {link.name}: {', '.join(notes)}"]
    for network, sides in lab.faults["partition"].items():
        lines += [f"{network} network divided: {' | '.join(','.join(side) for side in sides)}"]
    return "\n".join(lines)


def _node(lab, node):
    parts = [f"{node:4} {lab.net.namespace(node)}"]
    if node in lab.dead:
        return "  ".join(parts + ["no power"])
    for what in services.FOR_PEOPLE:
        if services.has(lab, what):
            parts += [f"{what} {lab.pid(node, what) or 'not running'}"]
            summary = {"corosync": _corosync, "earshotd": _daemon}.get(what)
            if summary and lab.pid(node, what):
                parts[-1] += f" ({_asked(summary, lab, node)})"
    return "  ".join(parts)


def _asked(summary, lab, node):
    try:
        return summary(lab, node)
    except (OSError, LabError) as error:
        return f"does not answer: {error}"


def _corosync(lab, node):
    status = lab.node(node).corosync.status()
    return f"{'quorate' if status['quorate'] else 'not quorate'} with {','.join(status['members'])}"


def _daemon(lab, node):
    status = lab.status(node)
    ring = status.get("ring", {})
    return (f"{status.get('datapath', {}).get('state', '?')}, ring epoch {ring.get('epoch', '?')} "
            f"with {ring.get('members', '?')} members")
