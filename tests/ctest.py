# SPDX-License-Identifier: GPL-2.0-or-later
"""ctest, as run.py and soak.py use it: its command line, what a build tree has, and what a run has brought."""
import dataclasses
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

_EVERYTHING = str(1 << 30)  # bytes of output: ctest's report keeps the first 1,024 of a test that passes otherwise
_SUMMARY = re.compile(r"^\d+% tests passed, ")
_FAILED = re.compile(r"^\t *\d+ - (\S+) \((.*)\)$")  # in that summary
_CAUSES = (re.compile(r"^E +(\S.*)"), re.compile(r"^\[  ERROR   \] --- (.*)"), re.compile(r"^(\S*Error: .*)"),
           re.compile(r"^(==\d+==ERROR: .*)"), re.compile(r"^(\S+:\d+:\d+: (?:runtime )?error: .*)"))


def command(build, *arguments, full=False):
    """The command line that runs tests of this tree; those with the label "full" are only in full runs."""
    return ["ctest", "--test-dir", build, "--no-tests=error", *([] if full else ["-LE", "^full$"]), *arguments]


def registered(build):
    """[(name, command, {property: value})] of all that the tree has; the command is [] while its program is not built."""
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True)
    return [(test["name"], test.get("command", []), {entry["name"]: entry["value"] for entry in test["properties"]})
            for test in json.loads(listed.stdout)["tests"]]


def tests(build):
    """{test: [label, …]} of all that the tree has."""
    return {name: properties.get("LABELS", []) for name, _, properties in registered(build)}


@dataclasses.dataclass
class Result:
    """Of one test; `why` is ctest's word for a failure (Failed, Timeout, SEGFAULT, Not Run, …), empty where it passed."""
    name: str
    seconds: float
    why: str
    output: str

    def causes(self, most=3):
        """The lines that say why it failed, the first ones."""
        found = [match[1].strip()[:160] for line in self.output.splitlines() for cause in _CAUSES if (match := cause.match(line))]
        ends = [line.strip()[:160] for line in self.output.splitlines() if line.strip()][-1:]
        return ([self.why] if self.why not in ("", "Failed") else []) + (found or ends)[:most] or [self.why]

    def skipped(self):
        """["case and reason", …]"""
        found = []
        for line in self.output.splitlines():
            if line.startswith("SKIPPED ["):  # pytest -rs
                found.append(line.split("] ", 1)[1])
            elif line.startswith("[  SKIPPED ] ") and not line.rstrip().endswith("test(s)."):  # cmocka
                found.append(line.split("] ", 1)[1].strip())
        return found


def _read_report(path, summary):
    """[Result] of the run that wrote it; the words for failures are in ctest's summary alone."""
    words = {match[1]: match[2] for line in summary if (match := _FAILED.match(line))}
    found = []
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        name, passed = case.get("name"), case.get("status") == "run"
        found.append(Result(name, float(case.get("time") or 0), "" if passed else words.get(name, "Failed"),
                            case.findtext("system-out") or ""))
    return found


def run(build, *arguments, full=False, tell=None, environment=None):
    """Run tests. Returns ([Result], all that ctest has said); `tell` gets it line by line, but for the summary."""
    said, summary = [], []
    with tempfile.TemporaryDirectory() as place:
        report = os.path.join(place, "report.xml")
        words = command(build, "--output-on-failure", "--output-junit", report, "--test-output-size-passed", _EVERYTHING,
                        "--test-output-size-failed", _EVERYTHING, *arguments, full=full)
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", bufsize=1,
                              env=environment) as running:
            for line in running.stdout:
                said.append(line)
                if summary or _SUMMARY.match(line):
                    summary.append(line)
                elif tell:
                    tell(line)
        if not os.path.exists(report):
            sys.exit(f"ctest has ended with {running.returncode} and left no report:\n{''.join(said[-20:])}")
        return _read_report(report, summary), "".join(said)
