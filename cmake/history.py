#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The history can be skimmed: each commit since FIRST has a subject that says what it does, and a body if it changes code.

    history.py                      prints what breaks that, and how many commits it has looked at
    history.py --message FILE       of a commit that is being made; cmake/hooks/commit-msg

Subject: "area: Imperative", the area left out or not, at most 72 characters, no full stop. Body: at least a sentence, unless
only pages change. Merges are not looked at. A shallow clone has a part of the commits, and a tarball none; both are told.
Before it reads the history, the check proves that it can fail.
"""
import argparse
import os
import re
import subprocess
import sys

SOURCE = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
FIRST = "c91638769d892bbca8aa3caaebe473a3abd6813a"  # the last one that is not looked at
MOST = 72
AREA = re.compile(r"[\w./-]+(?:, [\w./-]+)*: ")
AUTOSQUASH = re.compile(r"(?:fixup|squash|amend)! ")
# What no imperative is, as far as a word tells: what begins a clause, and endings of verbs that have a subject.
NO_VERB = set("""a an the this that these those it its they their he she we our you your i there here who whom whose what which when
where why how if of in on at by for from with without after before behind beside between during as than and or but not no nothing
nobody some any all both one two three new more most many each every also now""".split())
INFLECTED = re.compile(r"(?:[^s]s|ed|ing)$")
INFLECTED_NO = set("bias focus canvas bring ring string swing ping embed feed need speed seed shed exceed proceed succeed".split())
PAGES = re.compile(r"(?:^|/)docs/|\.(?:md|scd)$|^LICENSES/|^debian/(?:NEWS|changelog)$")
TRAILER = re.compile(r"[A-Z][\w-]+: .*")
SENTENCE = re.compile(r"\S+(?:\s+\S+){2,}?[.!?:]\W*(?:\s|$)")


def imperative(word):
    word = word.lower()
    return word not in NO_VERB and (word in INFLECTED_NO or not INFLECTED.search(word))


def wrong_subject(subject):
    if AUTOSQUASH.match(subject):
        yield f"{subject.split()[0]} belongs into the commit that it mends: git rebase --autosquash"
        return
    if len(subject) > MOST:
        yield f"the subject has {len(subject)} characters, and may have {MOST}"
    if subject.endswith("."):
        yield "the subject ends with a full stop"
    area = AREA.match(subject)
    first = subject[area.end() if area else 0:].split(" ")[0]
    if not first[:1].isupper():
        yield f"the subject does not begin with a capital letter after its area: {first}"
    elif not imperative(first):
        yield f'"{first}" is no imperative; say what the commit does, as in "{area[0] if area else ""}Keep …"'


def wrong(message, paths):
    """What is wrong with a commit of this message, which changes these files; None if nobody knows which."""
    subject, *rest = message.strip("\n").split("\n")
    yield from wrong_subject(subject)
    if rest and rest[0]:
        yield "the second line is not empty: the subject is one line"
    body = "\n".join(line for line in rest if not TRAILER.fullmatch(line))
    code = next((path for path in paths or () if not PAGES.search(path)), None)
    if code and not SENTENCE.search(body):
        yield f"it changes {code}, and no sentence below the subject says why: symptom, cause, cure"


def prove():
    """It fails for each thing that it is there for, and for nothing else."""
    why = "\n\nClients waited for ever. They do no more.\n"
    for message, paths in ((f"drain: Begin the request in one place{why}", ["a.c"]), (f"Need no root{why}", ["a.c"]), ("docs: Tell it", ["docs/a.md"]),
                           (f"nodes, tests/lab: Pass what is missing{why}Signed-off-by: A <a@b>\n", ["a.py"]), (f"x: {'K' * 69}{why}", ["a.c"]),
                           ("bpf: Count once\n\nNoticed with an x.c:\n\n    a = 1\n", ["a.c"]), ("cli: Keep this", None)):
        assert not list(wrong(message, paths)), (message, list(wrong(message, paths)))
    for message, words in (
            (f"x: {'K' * 70}{why}", "73 characters"), (f"drain: Begin it.{why}", "full stop"), (f"drain: begin it{why}", "capital letter"),
            (f"Drains a node{why}", "no imperative"), (f"cli: Added a word{why}", "no imperative"), (f"cli: Adding words{why}", "no imperative"),
            (f"tests: A packet may arrive{why}", "no imperative"), (f"netfilter: Of a socket{why}", "no imperative"),
            (f"fixup! drain: Begin it{why}", "autosquash"), (f"drain: Begin\nthe request{why}", "second line"), ("drain: Begin it\n", "symptom"),
            ("drain: Begin it\n\nnothing to tell\n\nSigned-off-by: A. B. <a@b>\n", "symptom"), ("drain: Begin it\n\nDone.\n", "symptom")):
        found = list(wrong(message, ["docs/a.md", "a.c"]))
        assert len(found) == 1 and words in found[0], (message, found)


class NoHistory(Exception):
    """Why there is none."""


def git(tree, *words):
    try:
        done = subprocess.run(["git", "-C", tree, *words], capture_output=True, text=True, errors="replace", check=False)
    except FileNotFoundError as error:
        raise NoHistory("git is not installed") from error
    if done.returncode:
        raise NoHistory(done.stderr.strip())
    return done.stdout


def commits(tree, first):
    """([(commit, message, files or None)], what is to be told of them)."""
    if os.path.realpath(git(tree, "rev-parse", "--show-toplevel").strip()) != os.path.realpath(tree):
        raise NoHistory(f"{tree} is no repository of its own")
    shallow = git(tree, "rev-parse", "--is-shallow-repository").strip() == "true"
    try:
        git(tree, "merge-base", "--is-ancestor", first, "HEAD")
        which, told = f"{first}..HEAD", f"since {first[:7]}"
    except NoHistory:
        if not shallow:
            raise NoHistory(f"{first[:7]} is not in it") from None
        which, told = "HEAD", f"of a shallow clone, which does not reach {first[:7]}"
    cut = set()  # commits whose parents are not here, so that nobody sees what they change
    if shallow:
        with open(os.path.join(tree, git(tree, "rev-parse", "--git-path", "shallow").strip()), encoding="ascii") as handle:
            cut = set(handle.read().split())
    found = []
    for record in git(tree, "log", "-z", "--no-merges", "--root", "--name-only", "--format=%x01%H%x02%B%x03", which).split("\1")[1:]:
        name, _, rest = record.partition("\2")
        message, _, files = rest.partition("\3")
        found.append((name, message, None if name in cut else [path for path in re.split(r"[\0\n]", files) if path]))
    return found, told


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--message", metavar="FILE")
    parser.add_argument("--tree", default=SOURCE, help=argparse.SUPPRESS)
    parser.add_argument("--first", default=FIRST, help=argparse.SUPPRESS)
    options = parser.parse_args()
    prove()
    if options.message:
        with open(options.message, encoding="utf-8") as handle:
            message = handle.read().split("\n# ------------------------ >8 ")[0]  # git commit --verbose shows what changes below
        message = "".join(line for line in message.splitlines(True) if not line.startswith("#"))
        files = git(options.tree, "diff", "--cached", "--name-only", "-z").split("\0")[:-1]
        found = [] if AUTOSQUASH.match(message) or message.startswith("Merge ") else list(wrong(message, files))
        print("\n".join(f"commit-msg: {problem}" for problem in found), end="\n" if found else "", file=sys.stderr)
        return int(bool(found))
    try:
        there, told = commits(options.tree, options.first)
    except NoHistory as why:
        print(f"no history to look at: {why}")
        return 0
    found = [f"{name[:12]} {message.splitlines()[0] if message.strip() else ''}\n    {problem}"
             for name, message, files in there for problem in wrong(message, files)]
    print("\n".join([*found, f"{len(there)} commits {told}"]))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
