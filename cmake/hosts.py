#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""No file of the tree names a host that packages come from: programs ask the machine's own apt for its mirror
(`apt-get indextargets`), and pages leave the address to the reader's sources. Prints file, line and host.

    hosts.py [FILE...]       default: all that git knows or would add

A machine behind a mirror, or with none, must not be led past it. Pages about software may be named: nothing is fetched
from them. Before it reads a file, the check proves that it can fail.
"""
import os
import re
import subprocess
import sys

SOURCE = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# Words, so that this file has no name of a host in it: all hosts below these domains serve packages, but for those in PAGES.
DOMAINS = ("debian org", "debian net", "ubuntu com", "launchpad net", "fedoraproject org", "centos org", "archlinux org",
           "alpinelinux org", "opensuse org", "pypi org", "pypi python org", "pythonhosted org", "npmjs org", "npmjs com",
           "yarnpkg com", "crates io", "rubygems org", "golang org", "cpan org", "maven org", "githubusercontent com",
           "ghcr io", "docker io", "docker com", "quay io", "conda io", "anaconda org", "sourceforge net")
HOSTS = ("codeload github com", "cdn kernel org", "mirrors kernel org", "mirrors edge kernel org")
PAGES = ("www", "wiki", "manpages", "bugs", "lists", "docs", "help", "pkg", "go")  # reading matter, also of those
DOWNLOAD = r"git(?:hub|lab)\.com/[\w.-]+/[\w.-]+/(?:-/)?(?:releases/download|archive|raw|tarball|zipball)/"
SOURCES = r"\bdeb(?:-src)?\s+(?:\[[^\]]*\]\s+)?(?:https?|ftp)://[\w.-]*\w"  # a line of apt's, with any host's name


def _name(words):
    return re.escape(words.replace(" ", "."))


PATTERN = re.compile(
    rf"(?<![\w.-])(?:(?P<below>(?:[\w-]+\.)*)(?:{'|'.join(map(_name, DOMAINS))})|{'|'.join(map(_name, HOSTS))})(?![\w-]|\.\w)"
    rf"|{DOWNLOAD}|{SOURCES}", re.I)


def named(text):
    """[(line number, what it names)]"""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        for match in PATTERN.finditer(line):
            page = (match["below"] or "").split(".")[0].lower() in PAGES
            if not page or match[0].lower().startswith("deb "):
                found.append((number, match[0]))
    return found


def prove():
    """What it must find, and what not."""
    domains, hosts = ([words.replace(" ", ".") for words in kind] for kind in (DOMAINS, HOSTS))
    debian, code = domains[0], "github" + ".com/a/b"
    wrong = [*domains, *hosts, *(f"see http://x.{name}/y now" for name in domains), f"DEB.{debian.upper()}.",
             f"(https://{code}/releases/download/1/x.deb)", f"{code}/archive/1.tar.gz", "deb " + "http://192.0.2.1/debian x main",
             "deb [trusted=yes] " + "http://mirror.example/debian x main"]
    right = [f"https://www.{debian}/doc", f"https://manpages.{debian}/x", f"https://{code}/issues/1", f"not{debian}",
             f"{debian}.example", "https://docs.kernel.org/bpf", "deb [signed-by=KEY] {mirror} {suite} main", "http://192.0.2.1/"]
    for text in wrong:
        assert len(named(f"first\n{text}\n")) == 1 and named(f"\n{text}")[0][0] == 2, f"the check does not find: {text}"
    for text in right:
        assert not named(text), f"the check takes this for a package host: {text}"


def tracked():
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=SOURCE,
                            capture_output=True, text=True, check=True).stdout
    return [os.path.join(SOURCE, path) for path in listed.split("\0") if path]


def main():
    prove()
    failed = False
    for path in sys.argv[1:] or tracked():
        try:
            with open(path, "rb") as handle:
                text = handle.read().decode("utf-8", "replace")
        except (FileNotFoundError, IsADirectoryError):  # deleted, and not yet in a commit; a link to a folder
            continue
        for number, name in named(text):
            failed = True
            print(f"{os.path.relpath(path, SOURCE)}:{number}: names a package host: {name}\n"
                  "\tA program asks the machine's apt: apt-get indextargets --format '$(REPO_URI)'. A page names the suite.")
    return failed


if __name__ == "__main__":
    sys.exit(main())
