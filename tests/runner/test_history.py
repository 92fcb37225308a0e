# SPDX-License-Identifier: GPL-2.0-or-later
"""cmake/history.py on repositories of a few commits; what single messages lack it proves itself."""
import os
import subprocess
import sys

import pytest

from tree import SOURCE

WHY = "Clients waited for ever. They do no more."
NOBODY = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b",
          "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


class Repository:
    def __init__(self, path):
        self.path = path
        path.mkdir(exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *words):
        done = subprocess.run(["git", "-C", self.path, *words], env={**os.environ, **NOBODY}, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self, subject, body="", file="a.c"):
        with open(self.path / file, "a", encoding="utf-8") as handle:
            handle.write(f"{subject}\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", subject, *(["-m", body] if body else []))
        return self.git("rev-parse", "HEAD")


def look(path, first):
    done = subprocess.run([sys.executable, os.path.join(SOURCE, "cmake/history.py"), "--tree", str(path), "--first", first],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout


@pytest.fixture(name="made")
def _made(tmp_path):
    """A repository whose old commits are as they were, the first one that counts, and four good ones after it, one a merge."""
    repository = Repository(tmp_path / "made")
    repository.commit("everything; and more of it.")
    first = repository.commit("what was before")
    repository.commit("bpf: Count each packet once", WHY)
    repository.git("checkout", "-q", "-b", "side")
    repository.commit("docs: Tell it", file="page.md")
    repository.git("checkout", "-q", "main")
    repository.commit("bpf: Keep it", WHY, file="b.c")
    repository.git("merge", "-q", "--no-ff", "-m", "Merged side.", "side")
    return repository, first


def test_good_ones(made):
    repository, first = made
    assert look(repository.path, first) == (0, f"3 commits since {first[:7]}\n")


@pytest.mark.parametrize("subject, body, words", (
    ("bpf: counted", WHY, "capital letter"), ("bpf: Keep it", "", "a.c"), ("fixup! bpf: Keep it", "", "autosquash")))
def test_bad_one(made, subject, body, words):
    repository, first = made
    commit = repository.commit(subject, body)
    status, told = look(repository.path, first)
    assert status == 1 and words in told and f"{commit[:12]} {subject}" in told and "4 commits" in told, told


def test_shallow(made, tmp_path):
    """It has what is there: a subject is wrong wherever it is; of the oldest one nobody knows what it changes."""
    repository, first = made
    repository.commit("docs: Say why", file="page.md")
    repository.commit("bpf: Count again", WHY)
    for depth, status, words in ((1, 0, "1 commits"), (2, 0, "2 commits"), (50, 0, "5 commits since")):
        clone = tmp_path / f"depth{depth}"
        subprocess.run(["git", "clone", "-q", "--depth", str(depth), f"file://{repository.path}", clone], check=True, env={**os.environ, **NOBODY})
        found, told = look(clone, first)
        assert found == status and words in told and ("shallow" in told) == (depth < 50), told
    bad = Repository(clone)
    bad.commit("bpf: Keep what is kept", "")
    assert look(clone, first)[0] == 1
    repository.commit("bpf: counted", WHY)
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{repository.path}", tmp_path / "worse"], check=True, env={**os.environ, **NOBODY})
    status, told = look(tmp_path / "worse", first)
    assert status == 1 and "capital letter" in told and "shallow" in told, told


def test_no_history(made, tmp_path):
    """A tarball, also one that is unpacked in somebody's repository; a history that has nothing of this one."""
    repository, first = made
    (tmp_path / "tarball").mkdir()
    (repository.path / "inside").mkdir()
    other = Repository(tmp_path / "other")
    other.commit("all of it, imported.")
    for path in (tmp_path / "tarball", repository.path / "inside", other.path):
        status, told = look(path, first)
        assert status == 0 and told.startswith("no history to look at: "), told


def test_hook(made):
    repository, _ = made
    repository.git("config", "core.hooksPath", os.path.join(SOURCE, "cmake/hooks"))
    os.symlink(os.path.join(SOURCE, "cmake"), repository.path / "cmake")
    repository.git("config", "core.excludesFile", "/dev/null")
    (repository.path / ".git/info/exclude").write_text("cmake\n")
    repository.commit("bpf: Keep more", WHY)
    repository.git("commit", "-q", "--allow-empty", "--fixup", "HEAD")
    with pytest.raises(subprocess.CalledProcessError) as refused:
        repository.commit("bpf: keeping it")
    assert "commit-msg: the subject does not begin with a capital letter" in refused.value.stderr
