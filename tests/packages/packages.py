# SPDX-License-Identifier: GPL-2.0-or-later
"""The packages under test: those of the work tree, and the same again as the next version."""
import glob
import os
import re
import shutil
import subprocess

SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
CHANGELOG = """earshot ({version}) bookworm; urgency=medium

  * The next version, for the test of upgrades.

 -- Earshot <earshot@earshot.invalid>  Sat, 21 Nov 2026 13:00:00 +0000

"""
NODE = ("earshot", "libearshot-ring1", "earshot-resource-agents")
OTHERS = ("earshot-lab", "earshot-sim", "libearshot1", "libearshot-dev")


def run(*command, **keywords):
    """To the end; its output is in the error when it fails."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, stdin=subprocess.DEVNULL, **keywords)
    assert done.returncode == 0, f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout[-4000:]}"
    return done.stdout


def version_of(cmake):
    with open(cmake, encoding="utf-8") as handle:
        return re.search(r"^project\(earshot VERSION ([0-9.]+)", handle.read(), re.M)[1]


def next_of(version):
    major, minor, patch = version.split(".")
    return f"{major}.{minor}.{int(patch) + 1}"


def architecture():
    return run("dpkg", "--print-architecture").strip()


class Packages:
    """The .deb files of one version, in a directory of their own."""

    def __init__(self, directory, version):
        self.directory = directory
        self.version = version

    def path(self, name):
        found = glob.glob(f"{self.directory}/{name}_{self.version}_*.deb")
        assert len(found) == 1, (name, found)
        return found[0]


def _environment(directory, options):
    """ccache, if `./dev check` uses it, takes paths in the packages' source for relative ones: the tree that is tested has been
    compiled with the same flags, and a warning is an error there, too."""
    return {**os.environ, "DEB_BUILD_OPTIONS": options, "CCACHE_BASEDIR": os.path.join(directory, "source")}


def build(directory):
    """Version N."""
    run(os.path.join(SOURCE, "cmake/packages.sh"), directory, env=_environment(directory, "noautodbgsym werror"))
    return Packages(directory, version_of(os.path.join(SOURCE, "CMakeLists.txt")))


def build_next(packages):
    """Version N + 1: a higher number, in the same build tree, so that only those files are compiled that tell it."""
    source = os.path.join(packages.directory, "source")
    version = next_of(packages.version)
    for path, old, new in (
            ("CMakeLists.txt", f"VERSION {packages.version}", f"VERSION {version}"),
            ("debian/changelog", "", CHANGELOG.format(version=version))):
        path = os.path.join(source, path)
        with open(path, encoding="utf-8") as handle:
            text = handle.read()
        assert old in text
        with open(path, "w", encoding="utf-8") as handle:
            handle.write(text.replace(old, new, 1))
    for stamp in ("debian/.debhelper", "debian/debhelper-build-stamp"):
        path = os.path.join(source, stamp)
        shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
    run("dpkg-buildpackage", "-b", "-uc", "-us", "-nc", cwd=source,
        env=_environment(packages.directory, f"noautodbgsym werror nocheck parallel={os.cpu_count()}"))
    directory = os.path.join(packages.directory, "next")
    os.makedirs(directory, exist_ok=True)
    for path in glob.glob(f"{packages.directory}/*_{version}_*.deb"):
        os.rename(path, os.path.join(directory, os.path.basename(path)))
    return Packages(directory, version)
