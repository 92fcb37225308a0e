#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A whole Earshot cluster in network namespaces of this machine (drawing: earshotlab/topology.py)."""
import argparse
import json
import os
import shutil
import shlex
import signal
import sys

from earshotlab import LabError, corosync, daemon, families, services, state, switch
from earshotlab.lab import TIMEOUT, Lab, clean_up
from earshotlab.wire import DIRECTIONS, set_segmentation

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def setting(text):
    """"service.inspect=every" as a pair."""
    key, equals, value = text.partition("=")
    if not equals or "." not in key:
        raise argparse.ArgumentTypeError(f"{text!r}: expected SECTION.KEY=VALUE")
    return key, value


def node_datapaths(text):
    """"n1=bpf,n2=netfilter" as a dict."""
    pairs = dict(item.partition("=")[::2] for item in text.split(","))
    if not set(pairs.values()) <= set(daemon.DATAPATHS):
        raise argparse.ArgumentTypeError(f"{text!r}: expected NODE={'|'.join(daemon.DATAPATHS)},…")
    return pairs


def whole(least, most):
    """The type of an option: a whole number."""
    def of(text):
        if not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r}: expected {least}..{most}")
        return int(text)
    return of


def seconds(text):
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r}: expected seconds")
    return value


def parser():
    root = argparse.ArgumentParser(prog=daemon.COMMAND, description=__doc__)
    commands = root.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name, function, help_text, **keywords):
        sub = commands.add_parser(name, help=help_text, description=help_text, **keywords)
        sub.add_argument("--name", default=os.environ.get("ES_NAME", "lab"),
                         help="which lab (default: $ES_NAME, or lab)")
        sub.set_defaults(function=function)
        return sub

    up = command("up", lab_up, "bring a lab up; returns when it serves")
    up.add_argument("--nodes", type=int, default=3, metavar="N")
    up.add_argument("--policy", default="uri-hash", metavar="P")
    up.add_argument("--membership", choices=("static", "corosync"),
                    help="default: what --config says, or corosync where it is installed")
    up.add_argument("--pacemaker", action="store_true", help="with corosync: pacemaker on each node")
    up.add_argument("--token", type=whole(1, 3600000), default=corosync.TOKEN, metavar="MS", help="corosync's token timeout")
    up.add_argument("--transport", choices=corosync.TRANSPORTS, default=corosync.TRANSPORTS[0])
    up.add_argument("--corosync", type=setting, action="append", default=[], metavar="SECTION.KEY=VALUE",
                    help="add to corosync.conf, e.g. quorum.auto_tie_breaker=1")
    up.add_argument("--device", action="store_true", help="with corosync: a quorum device, and corosync-qdevice on each node")
    up.add_argument("--agents", metavar="DIR", help="OCF agents that the nodes see as provider earshot")
    up.add_argument("--manual", choices=services.OPTIONAL, action="append", default=[],
                    help="do not start this: it is started by hand, or by pacemaker")
    up.add_argument("--datapath", choices=daemon.DATAPATHS, default=daemon.DATAPATH,
                    help="default: $EARSHOT_DATAPATH, or bpf")
    up.add_argument("--node-datapath", type=node_datapaths, default={}, metavar="NODE=DATAPATH,…",
                    help="of nodes that have another one, e.g. n2=netfilter")
    up.add_argument("--server", choices=("nginx", "none"), default="nginx")
    up.add_argument("--tls", action="store_true", help="a service https, with earshot-tls on each node and a certificate of the lab's own")
    up.add_argument("--docroot", metavar="DIR", help="what the servers serve (default: generated files)")
    up.add_argument("--config", metavar="FILE", help="a configuration to use as it is, for all nodes")
    up.add_argument("--set", type=setting, action="append", default=[], metavar="SECTION.KEY=VALUE",
                    help="add to the generated configuration, e.g. service.inspect=every, node.n1.weight=50")
    up.add_argument("--wire", action="append", default=[], metavar="LINK,…",
                    help="put an earshot-wire into these links: client, nI-pub, nI-clu, or all")
    up.add_argument("--wires", action="store_true", help="the same as --wire all")
    up.add_argument("--wire-seed", type=whole(0, 2 ** 32 - 1), metavar="N", help="of the shims' random numbers")
    up.add_argument("--segment", action="store_true", help="no super-frames on the wired links")
    up.add_argument("--client-addresses", type=whole(1, 60000), default=1, metavar="N", help="10.77.1.1, 10.77.1.2, …")
    up.add_argument("--family", choices=families.FAMILIES,
                    help="of which clients and service have addresses: IPv4, IPv6 or both (default: $EARSHOT_FAMILY, or 46)")
    up.add_argument("--timeout", type=seconds, default=TIMEOUT, metavar="SECONDS", help="for each condition")
    up.add_argument("--no-earshot", action="store_true", help="only network and servers")

    down = command("down", lab_down, "remove a lab, also a half-made one; kills only what it started")
    down.add_argument("--stale", action="store_true", help="instead: all labs whose test was killed")
    down.add_argument("--force", action="store_true", help="also a lab with unreadable state: by the namespaces' names")
    command("list", lab_list, "all labs")
    command("env", lab_env, "shell assignments (ES_VIP, ES_CLIENT, …), for eval")
    command("status", lab_status, "machines, processes, links")

    for name, help_text in (("kill", "cut a node's power: no packet leaves any more, its processes die"),
                            ("heal", "give it power again: an empty machine starts its processes")):
        command(name, lab_node, help_text).add_argument("node", metavar="NODE")
    for name, help_text in (("cut", "pull a link's or a node's plugs out of the switch"), ("mend", "undo cut")):
        sub = command(name, lab_link, help_text)
        sub.add_argument("what", metavar="LINK|NODE")
        sub.add_argument("network", nargs="?", choices=switch.NETWORKS, help="of a node; default: both")
        if name == "cut":
            sub.add_argument("--silent", nargs="?", const=True, default=False, choices=("in", "out"),
                             help="lose the frames only, the carrier stays up; in or out: those to, or of, the machine")
    sub = command("partition", lab_partition, "divide the nodes; the client reaches all of them")
    sub.add_argument("groups", nargs="+", metavar="NODE,…", help="a side; who is not named is on one more side")
    sub.add_argument("--network", choices=switch.NETWORKS, action="append", help="only this one")
    command("heal-partition", lab_heal_partition, "make the switch whole again")
    for name, help_text in (("start", "start one of a node's programs"), ("stop", "end it in an orderly way")):
        sub = command(name, lab_process, help_text)
        sub.add_argument("node", metavar="NODE")
        sub.add_argument("what", choices=services.FOR_PEOPLE)
    sub = command("signal", lab_signal, "signal one of them: STOP freezes, CONT thaws, KILL is a crash")
    sub.add_argument("node", metavar="NODE")
    sub.add_argument("what", choices=services.FOR_PEOPLE)
    sub.add_argument("signal", metavar="SIGNAL", help="KILL, STOP, CONT, HUP, …")

    demo = commands.add_parser("demo", add_help=False, help="three nodes serve one address: the main job, shown and checked")
    demo.set_defaults(function=lab_demo)

    run = command("exec", lab_exec, "run a command on a machine", usage=f"{daemon.COMMAND} exec [--name NAME] NODE -- CMD…")
    run.add_argument("node", metavar="NODE", help="n1, n2, …, client, switch, wire or qnetd")
    run.add_argument("argv", nargs=argparse.REMAINDER, metavar="-- CMD…")
    logs = command("logs", lab_logs, "a node's logs")
    logs.add_argument("node", metavar="NODE", help="n1, …; or a wired link")
    logs.add_argument("--lines", type=whole(0, 1000000), default=50, metavar="N")
    logs.add_argument("--follow", "-f", action="store_true")
    logs.add_argument("--access", action="store_true", help="nginx' access log instead")
    wire = command("wire", lab_wire, "impair a wired link, or ask what happened on it")
    wire.add_argument("link", metavar="LINK", help="client, n1-pub, n1-clu, …, or all")
    wire.add_argument("words", nargs="*", metavar="WORD",
                      help="stats (default), zero, clear, or settings: dir=both|in|out (in: towards the machine) "
                           "loss=0.01 dup=0.01 reorder=0.01 reorder_for=5ms delay=2ms jitter=1ms "
                           "rate_mbit=100 limit=1000 drop_next=1 segment=on|off")
    return root


def usual_membership(arguments):
    """Membership of a lab whose command line names none, and the reason if it is not what one would expect."""
    if arguments.no_earshot:
        return "static", ""
    if arguments.config:
        return daemon.membership_of(arguments.config), ""
    return ("corosync", "") if shutil.which("corosync") else ("static", "corosync is not installed")


def lab_up(arguments):
    family, why = (arguments.family, "") if arguments.family else families.usual(arguments.config)
    if why:
        print(f"IPv4 only: {why}")
    wires = [name for text in arguments.wire for name in text.split(",") if name] + ["all"] * arguments.wires
    membership, why = (arguments.membership, "") if arguments.membership else usual_membership(arguments)
    if why:
        print(f"static membership: {why}")
    lab = Lab(arguments.name, arguments.nodes, policy=arguments.policy, membership=membership,
              own_files=membership == "corosync" and not arguments.config,
              datapath=arguments.datapath, node_datapath=arguments.node_datapath, server=arguments.server, docroot=arguments.docroot, config=arguments.config,
              settings=dict(arguments.set), earshot=not arguments.no_earshot, wires=wires,
              wire_seed=arguments.wire_seed, segment=arguments.segment, client_addresses=arguments.client_addresses,
              timeout=arguments.timeout, pacemaker=arguments.pacemaker, token=arguments.token,
              transport=arguments.transport, corosync=dict(arguments.corosync), agents=arguments.agents,
              family=family, tls=arguments.tls, device=arguments.device, autostart=[what for what in services.OPTIONAL if what not in arguments.manual])
    lab.up()
    print(lab.overview())


def lab_down(arguments):
    if arguments.stale:
        for name in state.labs():
            try:
                lab = Lab.attach(name)
            except LabError:
                continue  # its own test has removed it meanwhile
            if lab.owner_is_gone:
                lab.down()
                print(f"lab {name} removed")
        return
    try:
        lab = Lab.attach(arguments.name)
    except (LabError, ValueError, KeyError, TypeError) as error:
        if arguments.force:
            clean_up(arguments.name)
        elif os.path.exists(state.directory(arguments.name)):
            raise LabError(f"lab {arguments.name}: unreadable state ({error}); --force removes it by name") from error
        return
    lab.down()


def lab_list(_):
    for name in state.labs():
        try:
            lab = Lab.attach(name)
            print(f"{name}: {len(lab.net.nodes)} nodes" + (", its test is gone" if lab.owner_is_gone else ""))
        except (LabError, ValueError, KeyError, TypeError) as error:
            print(f"{name}: unreadable ({error})")


def lab_env(arguments):
    for key, value in Lab.attach(arguments.name).environment().items():
        print(f"{key}={shlex.quote(value)}")


def lab_status(arguments):
    print(Lab.attach(arguments.name).overview())


def lab_node(arguments):
    getattr(Lab.attach(arguments.name), arguments.command)(arguments.node)


def lab_link(arguments):
    keywords = {"silent": arguments.silent} if getattr(arguments, "silent", False) else {}
    getattr(Lab.attach(arguments.name), arguments.command)(arguments.what, arguments.network, **keywords)


def lab_partition(arguments):
    Lab.attach(arguments.name).partition([[node for node in text.split(",") if node] for text in arguments.groups],
                                         arguments.network or switch.NETWORKS)


def lab_heal_partition(arguments):
    Lab.attach(arguments.name).heal_partition()


def lab_process(arguments):
    getattr(Lab.attach(arguments.name), arguments.command)(arguments.node, arguments.what)


def lab_signal(arguments):
    name = arguments.signal.upper()
    try:
        number = signal.Signals(int(name)) if name.isdigit() else signal.Signals["SIG" + name.removeprefix("SIG")]
    except (KeyError, ValueError):
        raise LabError(f"no signal {arguments.signal}") from None
    Lab.attach(arguments.name).signal(arguments.node, arguments.what, number)


def lab_exec(arguments):
    argv = arguments.argv[1:] if arguments.argv[:1] == ["--"] else arguments.argv
    if not argv:
        raise LabError("exec: no command")
    lab = Lab.attach(arguments.name)
    machine = lab.machine(arguments.node)
    command = machine.argv(argv)
    os.execve(command[0], command, machine.environment())


def lab_demo(_):
    script = os.path.join(os.path.dirname(os.path.realpath(__file__)), "demo.py")
    os.execv(sys.executable, [sys.executable, script, *sys.argv[2:]])


def lab_logs(arguments):
    lab = Lab.attach(arguments.name)
    if arguments.node in lab.net.links:
        files = [lab.wire(arguments.node).log]
    else:
        directory = lab.node(arguments.node).directory
        names = ("access.log",) if arguments.access else (
            "machine.log", "corosync.log", "qdevice.log", "pacemaker.log", "root/var/log/pacemaker/pacemaker.log", "nginx.log",
            "error.log", "earshotd.log", "earshot-tls.log")
        files = [os.path.join(directory, name) for name in names]
    files = [file for file in files if os.path.exists(file)]
    if not files:
        raise LabError(f"{arguments.node} has no logs")
    os.execvp("tail", ["tail", "-n", str(arguments.lines), *(["-F"] if arguments.follow else []), *files])


def lab_wire(arguments):
    lab = Lab.attach(arguments.name)
    if arguments.link == "all":
        links = [link.name for link in lab.net.links.values() if link.wired]
    else:
        links = [lab.net.link(arguments.link).name]
    words = [word for word in arguments.words if word != "stats"]
    pairs = dict(word.split("=", 1) for word in words if "=" in word)
    bare = [word for word in words if "=" not in word]
    if set(bare) - {"clear", "zero"}:
        raise LabError(f"{bare[0]}: stats, zero, clear or KEY=VALUE")
    direction = pairs.pop("dir", "both")
    if direction not in DIRECTIONS:
        raise LabError(f"dir={direction}: in, out or both")
    segment = pairs.pop("segment", None)
    if segment not in (None, "on", "off"):
        raise LabError(f"segment={segment}: on or off")
    for name in links:
        wire = lab.wire(name)
        if segment:
            set_segmentation(wire.link, lab.net.switch, segment == "on")
        if "zero" in bare:
            wire.zero()
        if pairs or "clear" in bare:
            wire.set(direction, "clear" in bare, **pairs)
        if not words or "stats" in arguments.words:
            print(json.dumps(wire.stats()))


def interrupted(number, _):
    """Ctrl-C, SIGTERM and a closed terminal end a half-done `up` in the orderly way, which is not interrupted again."""
    for other in ENDING:
        signal.signal(other, signal.SIG_IGN)
    raise SystemExit(128 + number)


def main():
    for number in ENDING:
        signal.signal(number, interrupted)
    if sys.argv[1:2] == ["help"]:
        sys.argv[1:] = [*sys.argv[2:3], "--help"]
    arguments, more = parser().parse_known_args()
    if more and arguments.function is not lab_demo:
        parser().parse_args()  # says what is wrong
    try:
        arguments.function(arguments)
    except LabError as error:
        print(f"{error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
