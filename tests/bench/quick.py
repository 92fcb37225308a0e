#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""./dev bench quick: Earshot beside one nginx and beside two proxies, in namespaces of this machine (README.md)."""
import argparse
import itertools
import os
import sys
import tempfile

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
import paths  # noqa: E402, F401
import load  # noqa: E402
import perf  # noqa: E402
import runs  # noqa: E402
import targets  # noqa: E402
from earshotlab import LabError, process  # noqa: E402

CONNECTIONS = ("close", "keep-alive")
VM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vm", "vm.py")
# Of --kernel, in front of what is asked for: an emulated machine is ten times as slow.
IN_VM = ["--modes", "direct,earshot,lvs-dr,haproxy", "--sizes", "1k,13k", "--clients", "16", "--seconds", "4"]


def parser():
    root = argparse.ArgumentParser(prog="./dev bench quick", description=__doc__)
    root.add_argument("--modes", type=runs.choice_list(targets.MODES), metavar="M,...",
                      help=f"of {', '.join(targets.MODES)} (default: {','.join(targets.DEFAULT_MODES)})")
    root.add_argument("--datapath", choices=("netfilter",),
                      help="beside the default modes, Earshot with that datapath: earshot-netfilter, and earshot-netfilter-jhash, "
                           "whose nodes drop in the kernel what is others'")
    root.add_argument("--sizes", type=runs.choice_list(targets.SIZES), default=list(targets.SIZES), metavar="S,...",
                      help=f"bodies, of {', '.join(targets.SIZES)} (default: all)")
    which = root.add_mutually_exclusive_group()
    which.add_argument("--close-only", dest="connections", action="store_const", const=["close"])
    which.add_argument("--keep-alive-only", dest="connections", action="store_const", const=["keep-alive"])
    root.add_argument("--rounds", type=int, metavar="N", help="default 3")
    root.add_argument("--seconds", type=int, metavar="N", help="each run; default 3, with --profile 5")
    root.add_argument("--warmup", type=int, default=1, metavar="N", help="seconds before each run; default 1")
    root.add_argument("--clients", type=int, default=load.CONNECTIONS, metavar="N",
                      help=f"connections of wrk; default {load.CONNECTIONS}")
    root.add_argument("--fast", action="store_true", help="one round of 2 s each: for a look, not for figures")
    root.add_argument("--json", metavar="FILE", help="write everything measured to FILE")
    root.add_argument("--profile", type=runs.choice_list(targets.MODES), metavar="M,...",
                      help="instead: record these modes with perf (first of --sizes; close unless --keep-alive-only) "
                           "and compare the first with the others")
    root.add_argument("--top", type=int, default=40, metavar="N", help="symbols shown by --profile; default 40")
    root.add_argument("--perf-data", metavar="FILE", help="keep the recordings of --profile as FILE.MODE")
    root.add_argument("--quiet", action="store_true", help="no line per run")
    root.add_argument("--kernel", metavar="K",
                      help=f"all of it inside a machine with that kernel (./dev vm --list) and earshot.ko; default there: "
                           f"{' '.join(IN_VM)}")
    return root


def in_vm(kernel, words):
    """Become ./dev vm, which runs this program again."""
    argv = [sys.executable, VM, "--kernel", kernel, "--datapath", "module", "run", "--", sys.executable,
            os.path.abspath(__file__), *IN_VM, *words]
    os.execv(argv[0], argv)


def without_kernel(words):
    """The arguments but --kernel, for the machine."""
    only = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    only.add_argument("--kernel")
    return only.parse_known_args(words)[1]


def default_modes(datapath):
    """Earshot's modes side by side, so that no proxy runs between them."""
    other = [f"earshot-{datapath}", f"earshot-{datapath}-jhash"] if datapath else []
    at = targets.DEFAULT_MODES.index("earshot") + 1
    return [*targets.DEFAULT_MODES[:at], *other, *targets.DEFAULT_MODES[at:]]


def options():
    arguments = parser().parse_args()
    if arguments.kernel:
        if arguments.json or arguments.profile:
            raise LabError("--kernel: the machine's files are gone when it ends, and it has no perf: "
                           "not together with --json or --profile")
        in_vm(arguments.kernel, without_kernel(sys.argv[1:]))
    arguments.modes = arguments.modes or default_modes(arguments.datapath)
    workloads = [load.Workload(name, [name]) for name in arguments.connections or CONNECTIONS]
    arguments.cells = list(itertools.product(arguments.sizes, workloads))
    arguments.rounds = arguments.rounds or (1 if arguments.fast else 3)
    arguments.seconds = arguments.seconds or (5 if arguments.profile else 2 if arguments.fast else 3)
    return arguments


def record(world, mode, arguments):
    """perf's recording of one mode: (perf.Profile, whether the clients saw no error)."""
    size, workload = arguments.cells[0]
    with tempfile.TemporaryDirectory(prefix="earshot-perf-") as directory:
        data = f"{arguments.perf_data}.{mode}" if arguments.perf_data else os.path.join(directory, "perf.data")
        load.run(world.lab(mode), world.url(mode), size, workload, arguments.warmup or 1, arguments.clients)
        recorder = perf.start(data)
        try:
            run = runs.measure(world, mode, size, workload, argparse.Namespace(
                warmup=0, seconds=arguments.seconds, clients=arguments.clients))
        finally:
            perf.stop(recorder)
        print(f"{runs.one_line(run)} (while recording)")
        frequent = {name: value / run["wrk"]["requests"] for name, value in run["counters"].items()}
        if frequent:
            print("counters per request: " + ", ".join(
                f"{name} {value:.2f}" for name, value in frequent.items() if value > 0.005))
        namespaces = [name for lab in world.labs.values() for name in lab.net.namespaces]
        ours = {run["wrk"]["pid"], *process.pids_in(namespaces), *perf.kernel_threads()}
        return perf.Profile(data, run["cpu_us"], ours), not run["failed"]


def profile(world, arguments):
    """--profile; returns whether the clients saw no error."""
    profiles, good = {}, True
    for mode in arguments.profile:
        profiles[mode], clean = record(world, mode, arguments)
        good = good and clean
        perf.report(profiles[mode], arguments.top)
        print()
    first, *others = arguments.profile
    for other in others:
        perf.compare(first, profiles[first], other, profiles[other], arguments.top)
    return good


def main():
    arguments = options()
    with runs.world() as world:
        if arguments.profile:
            return 0 if profile(world, arguments) else 1
        return runs.report(world, arguments, charts=lambda rows: runs.cost_chart("quick", rows))


if __name__ == "__main__":
    runs.run("quick", main)
