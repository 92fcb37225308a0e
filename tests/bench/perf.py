# SPDX-License-Identifier: GPL-2.0-or-later
"""perf: where one mode's CPU time goes, by process and by symbol."""
import collections
import contextlib
import itertools
import os
import shutil
import subprocess

from earshotlab import LabError

FREQUENCY_HZ = 1499
KERNEL = 1 << 63
SOFTIRQ = {"handle_softirqs", "__do_softirq", "do_softirq", "__local_bh_enable_ip", "run_ksoftirqd"}
IDLE = {"pv_native_safe_halt", "native_safe_halt", "default_idle", "acpi_idle_do_entry", "mwait_idle",
        "intel_idle", "cpuidle_enter"}
PROGRAM = "bpf_prog_"


def start(data):
    """Start recording the whole machine into the file `data`; returns the process for stop()."""
    if not shutil.which("perf"):
        raise LabError("perf is not installed: apt-get install linux-perf")
    return subprocess.Popen(["perf", "record", "-q", "-a", "-g", "-F", str(FREQUENCY_HZ), "-o", data],
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def stop(recorder):
    recorder.terminate()
    errors = recorder.communicate()[1]
    if not os.path.exists(recorder.args[-1]):
        raise LabError("perf record failed", errors)


def _samples(data):
    """(process name, pid, [(address, symbol), innermost first]) of each sample."""
    # perf asks addr2line for inlined functions otherwise, which takes minutes.
    script = subprocess.Popen(["perf", "script", "--no-inline", "-i", data, "-F", "comm,pid,ip,sym"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace")
    with script:
        name, pid, stack = None, 0, []
        for line in script.stdout:
            if not line.strip():
                if name:
                    yield name, pid, stack
                name, stack = None, []
            elif name is None:
                name, _, pid = line.strip().rpartition(" ")
                name, pid = name.strip(), int(pid)
            else:
                address, _, symbol = line.strip().partition(" ")
                stack.append((int(address, 16), symbol or "[unknown]"))
        if name:
            yield name, pid, stack


def kernel_threads():
    """Pids of the machine's kernel threads, and 0."""
    found = {0}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as handle:
            if int(handle.read().rpartition(")")[2].split()[1]) == 2:
                found.add(int(pid))
    return found


def _where(stack):
    if not stack or not stack[0][0] & KERNEL:
        return "user"
    return "softirq" if any(symbol in SOFTIRQ for _, symbol in stack) else "kernel"


class Profile:
    """A recording in numbers; all of them CPU microseconds for each request, of the processes `ours` alone."""

    def __init__(self, data, cpu_us, ours):
        self.cpu_us = cpu_us
        self.own, self.inclusive = collections.Counter(), collections.Counter()
        self.groups, self.by_group = collections.Counter(), collections.defaultdict(collections.Counter)
        self.programs, self.helpers = collections.Counter(), collections.Counter()
        samples = []
        self.total = idle = foreign = 0
        for name, pid, stack in _samples(data):
            self.total += 1
            if pid == 0 and any(symbol in IDLE for _, symbol in stack[:3]):
                idle += 1
            elif pid not in ours:
                foreign += 1
            else:
                samples.append((name, stack))
        if not samples:
            raise LabError("perf recorded nothing of the benchmark")
        self.idle, self.foreign = idle / self.total, foreign / self.total
        self.share = cpu_us / len(samples)
        for name, stack in samples:
            self._add(name, stack)

    def _add(self, name, stack):
        where = _where(stack)
        leaf = stack[0][1] if stack else "[no stack]"
        if where == "user" and leaf == "[unknown]":
            leaf = f"[{name}, user]"
        self.groups[name, where] += self.share
        self.own[leaf] += self.share
        self.by_group[name, where][leaf] += self.share
        for symbol in {symbol for address, symbol in stack if address & KERNEL}:
            self.inclusive[symbol] += self.share
        for depth, (_, symbol) in enumerate(stack):
            if symbol.startswith(PROGRAM):
                self.programs[symbol] += self.share
                self.helpers["(programs themselves)" if depth == 0 else stack[depth - 1][1]] += self.share
                break


def report(profile, top):
    """Print one profile."""
    print(f"{profile.total} samples, idle {profile.idle:.1%}, others (left out) {profile.foreign:.1%}; "
          f"figures are CPU us per request, {profile.cpu_us:.1f} in all")
    print("\nby process, and where (softirq: packets' way through veth, bridge, tc and TCP, in whose time ever)")
    places = ("user", "kernel", "softirq")
    names = collections.Counter()
    for (name, _), us in profile.groups.items():
        names[name] += us
    print(f"  {'process':16} {'all':>7}" + "".join(f"{where:>9}" for where in places))
    for name, us in names.most_common(8):
        print(f"  {name:16} {us:7.1f}" + "".join(f"{profile.groups[name, where]:9.1f}" for where in places))
    sums = [sum(us for (_, here), us in profile.groups.items() if here == where) for where in places]
    print(f"  {'sum':16} {profile.cpu_us:7.1f}" + "".join(f"{us:9.1f}" for us in sums))

    if profile.programs:
        print(f"\ntc programs with all that they call: {sum(profile.programs.values()):.1f}")
        programs, helpers = profile.programs.most_common(top // 2), profile.helpers.most_common(top // 2)
        print(f"  {'':7}{'by innermost program':42} {'':7}by what it calls")
        for left, right in itertools.zip_longest(programs, helpers):
            print("  " + (f"{left[1]:6.2f} {left[0][:40]:42}" if left else " " * 49)
                  + (f" {right[1]:6.2f} {right[0][:60]}" if right else ""))

    print(f"\ntop {top} symbols, own time {'':20}   top {top} kernel symbols, with all that they call")
    for (symbol, us), (outer, outer_us) in zip(profile.own.most_common(top), profile.inclusive.most_common(top)):
        print(f"  {us:6.2f} {symbol[:40]:42}  {outer_us:6.2f} {outer[:60]}")

    for (name, where), us in profile.groups.most_common():
        if us < profile.cpu_us / 100:
            break
        print(f"\n{name}, {where}: {us:.1f}")
        for symbol, part in profile.by_group[name, where].most_common(max(top // 3, 5)):
            print(f"  {part:6.2f} {symbol[:70]}")


def compare(name, profile, base_name, base, top):
    """Print what the one spends more than the other."""
    for title, ours, theirs in (("own time", profile.own, base.own),
                                ("kernel symbols, with all that they call", profile.inclusive, base.inclusive)):
        more = {symbol: us - theirs[symbol] for symbol, us in ours.items()}
        print(f"\n{name} beside {base_name}, largest differences, {title} "
              f"(all: {profile.cpu_us:.1f} and {base.cpu_us:.1f} us per request)")
        print(f"  {'more':>7} {name[:8]:>8} {base_name[:8]:>8}")
        for symbol, us in sorted(more.items(), key=lambda item: -item[1])[:top]:
            print(f"  {us:7.2f} {ours[symbol]:8.2f} {theirs[symbol]:8.2f}  {symbol[:70]}")
