#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""./dev vm: our suites, or any command, on kernels other than this machine's."""
import argparse
import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import termios

TOP = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))
sys.path[1:1] = [os.path.join(TOP, "lab"), os.path.join(TOP, "tests/lib")]  # as pytest.ini does
# pylint: disable=wrong-import-position
from earshotvm import VmError, cluster, kernels  # noqa: E402
from earshotvm.machine import CPUS, ENVIRONMENT, MEMORY_MB, SLUB_DEBUG, Machine  # noqa: E402

SUITES = ("unit", "lab.requests")  # what is checked if nothing is named
WORDS = ("shell", "run", "fetch", "cluster")
CHECKS = ("PROVE_LOCKING", "KASAN", "DEBUG_KMEMLEAK", "KFENCE")  # of the kernel on itself: --list tells who has them
NODES = ("n1", "n2", "n3")


def parser():
    root = argparse.ArgumentParser(
        prog="./dev vm", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="./dev vm [OPTION…] [SUITE…] | run -- CMD… | shell | cluster | fetch",
        epilog=f"SUITE is a suite of ./dev check, or one test of `ctest -N` (default: {' '.join(SUITES)}).\n"
               "`run` runs a command in this directory, `shell` gives a root shell, `cluster` makes three machines\n"
               "one server and takes commands for them, `fetch` gets the newest kernel of that name.\n"
               "The machine's files are the host's; what it writes is gone afterwards.")
    root.add_argument("--list", action="store_true", help="the kernels there are")
    root.add_argument("--kernel", default="6.12", metavar="K",
                      help=f"{', '.join(kernels.SUITES)}, or a directory (tests/vm/README.md); default: %(default)s")
    root.add_argument("--datapath", choices=("bpf", "module", "netfilter"), help="which one the suites test")
    root.add_argument("--insmod", action="append", default=[], metavar="FILE",
                      help="load this module before, unload it after (default with --datapath module: "
                           "BUILD/module/RELEASE/earshot.ko)")
    root.add_argument("--build", default=os.environ.get("EARSHOT_BUILD") or os.path.join(TOP, "build"), metavar="DIR")
    root.add_argument("--cpus", type=int, default=CPUS, metavar="N")
    root.add_argument("--memory", type=int, default=MEMORY_MB, metavar="MB")
    root.add_argument("--timeout", type=float, metavar="SECONDS", help="then the power is cut (default: never)")
    root.add_argument("--append", action="append", default=[], metavar="ARGUMENT",
                      help=f"of the kernel, e.g. {SLUB_DEBUG}")
    root.add_argument("--dmesg", action="store_true", help="print the kernel's log afterwards")
    root.add_argument("words", nargs="*", metavar="SUITE")
    return root


def list_kernels():
    for name, kernel in kernels.cached().items():
        checks = [check for check in CHECKS if kernel and kernel.config(check)]
        print(f"{name:17} {kernels.SUITES[name]:19} {kernel.release if kernel else '(not downloaded)'} "
              f"{' '.join(checks)}".rstrip())


def tests_of(build, suites):
    """Names of ctest's tests that the suites are."""
    done = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True,
                          check=False)
    if done.returncode:
        raise VmError(f"ctest in {build}: {done.stderr.strip() or done.returncode}; is it a build tree?")
    labels = {test["name"]: next((p["value"] for p in test["properties"] if p["name"] == "LABELS"), [])
              for test in json.loads(done.stdout)["tests"]}
    for suite in suites:
        if not any(suite == name or suite in of for name, of in labels.items()):
            raise VmError(f"no suite or test {suite} in {build}: {', '.join(sorted(set(sum(labels.values(), []))))}")
    # Of programs that are built twice, those of the tree itself: sanitizers are slow, and test nothing of a kernel.
    return [name for name, of in labels.items() if (name in suites or set(of) & set(suites)) and f"{name}.plain" not in labels]


def command(arguments, rest):
    """What the machine is to do: argv and its directory."""
    words = arguments.words
    if words[:1] == ["shell"]:
        return ["/bin/bash", "-l"], os.getcwd()
    if words[:1] == ["run"]:
        if not rest:
            raise VmError("run: no command; ./dev vm run -- CMD…")
        return rest, os.getcwd()
    names = tests_of(os.path.abspath(arguments.build), words or SUITES)
    return ["ctest", "--test-dir", os.path.abspath(arguments.build), "--output-on-failure", "--no-tests=error",
            "--fixture-exclude-setup", "^plain$",  # built already, and not in an emulated machine
            "-R", f"^({'|'.join(map(re.escape, names))})$"], TOP


def run_cluster(kernel, datapath, modules):
    """Machines that serve together, for a person: lines of standard input are commands for one of them."""
    with cluster.Lab("vm", nodes=len(NODES), settings={"service.inspect": "every"}, autostart=[],
                     datapath=datapath or "bpf") as lab:
        with cluster.nodes(lab, {node: kernel for node in NODES},
                           insmod=dict.fromkeys(NODES, [os.path.abspath(file) for file in modules])) as machines:
            lab.wait_serving()
            everybody = {**machines, "client": lab.client}
            print(f"{', '.join(everybody)}: a name and a command, e.g.\n"
                  f"client curl -si {lab.url('/1k')}\nn1 earshot status", file=sys.stderr)
            for line in sys.stdin:
                name, *argv = shlex.split(line) or [""]
                if name not in everybody or not argv:
                    print(f"vm: NAME COMMAND…, NAME being {', '.join(everybody)}", file=sys.stderr)
                    continue
                done = everybody[name].exec(argv, check=False)
                print(done.stdout + done.stderr, end="", flush=True)
    return 0


@contextlib.contextmanager
def terminal_kept():
    """QEMU changes the terminal's settings, and cannot put them back when it is killed."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


def modules_of(arguments, kernel):
    """The files that are to be loaded."""
    modules = arguments.insmod
    if arguments.datapath == "module" and not modules:
        modules = [os.path.join(os.path.abspath(arguments.build), "module", kernel.release, "earshot.ko")]
    for file in modules:
        if not os.path.exists(file):
            raise VmError(f"{file} is not there: the module must have been built for {kernel.release}")
    return modules


def run(arguments, rest):
    if arguments.words[:1] == ["fetch"]:
        print(f"vm: {arguments.kernel} is {kernels.find(arguments.kernel, update=True).release}")
        return 0
    if arguments.words[:1] == ["cluster"]:
        kernel = kernels.find(arguments.kernel)
        return run_cluster(kernel, arguments.datapath, modules_of(arguments, kernel))
    shell = arguments.words[:1] == ["shell"]
    argv, cwd = command(arguments, rest)
    if shell and not sys.stdin.isatty():
        raise VmError("shell: standard input is no terminal; ./dev vm run -- CMD…")
    env = {**ENVIRONMENT, "EARSHOT_BUILD": os.path.abspath(arguments.build)}
    if arguments.datapath:
        env["EARSHOT_DATAPATH"] = arguments.datapath
    if shell:
        env["TERM"] = os.environ.get("TERM", "linux")
    kernel = kernels.find(arguments.kernel)
    modules = modules_of(arguments, kernel)
    print(f"vm: {arguments.kernel} is {kernel.release}", file=sys.stderr)
    with terminal_kept(), Machine(kernel, argv, cwd=cwd, env=env, shell=shell, insmod=modules,
                                  append=arguments.append, cpus=arguments.cpus, memory_mb=arguments.memory) as machine:
        result = machine.wait(arguments.timeout)
        if arguments.dmesg:
            print(machine.read("dmesg") or machine.read("console"), end="")
    for line in result.troubles:
        print(f"vm: {line}", file=sys.stderr)
    # A shell's exit status is its last command's and says nothing; a kernel that complains is always a failure.
    return result.status if result.status and not shell else int(bool(result.troubles))


def main():
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    words = sys.argv[1:]
    rest = []
    if "--" in words:
        words, rest = words[:words.index("--")], words[words.index("--") + 1:]
    arguments = parser().parse_args(words)
    if rest and arguments.words != ["run"]:
        raise VmError("a command comes after `run --`")
    if arguments.words[:1] and arguments.words[0] in WORDS and len(arguments.words) > 1:
        raise VmError(f"{arguments.words[0]} takes no further word: {arguments.words[1]}")
    if arguments.list:
        list_kernels()
        return 0
    if os.geteuid():
        raise VmError("needs root: the machine's root directory is the host's")
    return run(arguments, rest)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (VmError, cluster.LabError) as error:
        print(f"vm: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
