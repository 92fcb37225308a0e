# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels to boot: found in Debian's archive, downloaded, unpacked into a cache; never installed.

A kernel is a directory as packages leave it, lib/modules/RELEASE and boot/vmlinuz-RELEASE (or vmlinuz in the former),
so that one of your own will do as well (INSTALL_PATH=DIR/boot, INSTALL_MOD_PATH=DIR). apt does the downloading and the
checking of signatures, with sources, lists and cache of its own: the machine's are not touched.
"""
import contextlib
import fcntl
import glob
import os
import re
import shutil
import subprocess
from dataclasses import dataclass

from .errors import VmError

CACHE = os.environ.get("EARSHOT_KERNELS") or "/var/cache/earshot/kernels"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
META = "linux-image-amd64"
PACKAGE = re.compile(r"linux-(base|image|binary|modules)-\d")  # those behind META that have files in them

# What `--kernel` takes: the name, and the suite whose newest linux-image-amd64 it is.
SUITES = {
    "5.10": "bullseye-security",
    "6.1": "bookworm-security",
    "6.12": "bookworm-backports",
    "trixie": "trixie",
    "trixie-backports": "trixie-backports",
}

_APT_CONFIG = """\
Dir::Etc::sourcelist "{cache}/apt/sources.list";
Dir::Etc::sourceparts "-";
Dir::Etc::preferencesparts "-";
Dir::State::lists "{cache}/apt/lists";
Dir::Cache "{cache}/apt";
APT::Sandbox::User "root";
Acquire::Languages "none";
#clear Acquire::IndexTargets::deb::DEP-11;
#clear Acquire::IndexTargets::deb::DEP-11-icons;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
"""


@dataclass(frozen=True)
class Kernel:
    """A kernel that is here: `release` is what `uname -r` will say, `directory` has boot/ and lib/modules/."""

    name: str
    release: str
    directory: str

    @property
    def image(self):
        return self._file("vmlinuz")

    @property
    def modules(self):
        return os.path.join(self.directory, "lib/modules", self.release)

    def _file(self, name):
        """boot/NAME-RELEASE, or where later packages have it."""
        file = os.path.join(self.directory, "boot", f"{name}-{self.release}")
        return file if os.path.exists(file) else os.path.join(self.modules, name)

    def config(self, key):
        """CONFIG_`key` of the kernel: "y", "m", a value; None if it is not set, or the kernel brings no config."""
        with contextlib.suppress(FileNotFoundError):
            with open(self._file("config"), encoding="ascii") as handle:
                for line in handle:
                    if line.startswith(f"CONFIG_{key}="):
                        return line.partition("=")[2].strip()
        return None


def _run(*command, cwd=None):
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    if done.returncode:
        reason = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").splitlines()
        raise VmError(f"{os.path.basename(command[0])} {command[-1]}: {' / '.join(reason[-3:])}")
    return done.stdout


def _apt(program, *arguments, cwd=None):
    return _run(program, "-q", "-c", os.path.join(CACHE, "apt/apt.conf"), *arguments, cwd=cwd)


@contextlib.contextmanager
def _locked():
    os.makedirs(CACHE, exist_ok=True)
    with open(os.path.join(CACHE, "lock"), "w", encoding="ascii") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _mirrors():
    """The mirrors that this machine's own apt uses, of the archive and of security (None: it uses none)."""
    archive = security = None
    for line in _run("apt-get", "indextargets", "--format", "$(REPO_URI) $(SUITE) $(ORIGIN)",
                     "Created-By: Packages").splitlines():
        uri, suite, origin = (line.split() + ["", ""])[:3]
        if origin == "Debian" and "security" in suite:
            security = uri.rstrip("/")
        elif origin == "Debian":
            archive = uri.rstrip("/")
    if not archive:
        raise VmError("apt of this machine has read no mirror of Debian's archive, which kernels come from: "
                      "put one into its sources, then apt-get update")
    return archive, security


def _update(suite):
    """Fetch the package lists of one suite: that a mirror has dropped an old one is no matter of the others."""
    os.makedirs(os.path.join(CACHE, "apt/lists/partial"), exist_ok=True)
    os.makedirs(os.path.join(CACHE, "apt/archives/partial"), exist_ok=True)
    archive, security = _mirrors()
    with open(os.path.join(CACHE, "apt/sources.list"), "w", encoding="ascii") as handle:
        mirror = security if suite.endswith("-security") else archive
        if mirror:
            handle.write(f"deb [arch=amd64 signed-by={KEYRING}] {mirror} {suite} main\n")
    with open(os.path.join(CACHE, "apt/apt.conf"), "w", encoding="ascii") as handle:
        handle.write(_APT_CONFIG.format(cache=CACHE))
    _apt("apt-get", "-o", "APT::Update::Error-Mode=any", "update")


def _candidates(suite):
    """{package: version} that make up the suite's newest kernel."""
    versions, todo, found = {}, [META], {}
    policy = _apt("apt-cache", "madison", META)
    for line in policy.splitlines():
        package, version, source = (field.strip() for field in line.split("|"))
        if f" {suite}/main " in f"{source} ":
            versions.setdefault(package, version)
    if META not in versions:
        raise VmError(f"no {META} of {suite} at the mirrors of this machine's apt (apt-get indextargets lists them)")
    version = versions[META]
    while todo:
        package = todo.pop()
        text = _apt("apt-cache", "show", f"{package}={version}")
        found[package] = version
        for name, exact in re.findall(r"(linux-[a-z0-9.+-]+) \(= ([^)]+)\)", "".join(
                line for line in text.splitlines(True) if line.startswith(("Depends:", "Pre-Depends:")))):
            if name not in found and exact == version and (PACKAGE.match(name) or name == "linux-modules-amd64"):
                todo.append(name)
    return {package: version for package, version in found.items() if PACKAGE.match(package)}


def _release_in(directory):
    releases = glob.glob("*", root_dir=os.path.join(directory, "lib/modules"))
    if len(releases) != 1:
        raise VmError(f"{directory}: one lib/modules/RELEASE expected, there are {len(releases)}")
    kernel = Kernel(directory, releases[0], directory)
    if not os.path.exists(kernel.image):
        raise VmError(f"{directory}: no boot/vmlinuz-{kernel.release}")
    return kernel.release


def _download(name):
    """Put the suite's newest kernel into the cache, if it is not there; returns where it is."""
    packages = _candidates(SUITES[name])
    version = next(iter(packages.values()))
    target = os.path.join(CACHE, f"linux-{version}")
    if not os.path.isdir(target):
        work = f"{target}.new"
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(os.path.join(work, "deb"))
        debs = [f"{package}={version}" for package in packages]
        _apt("apt-get", "download", *debs, cwd=os.path.join(work, "deb"))
        for file in glob.glob(os.path.join(work, "deb/*.deb")):
            _run("dpkg-deb", "-x", file, work)
        shutil.rmtree(os.path.join(work, "deb"))
        if os.path.isdir(os.path.join(work, "usr/lib/modules")):  # packages of a system with merged /usr
            os.makedirs(os.path.join(work, "lib"), exist_ok=True)
            shutil.move(os.path.join(work, "usr/lib/modules"), os.path.join(work, "lib/modules"))
        _run("/sbin/depmod", "-b", work, _release_in(work))
        os.rename(work, target)
    return target


def find(name, update=False):
    """The kernel of that name or directory, downloaded if it is not here; update: also if there is a newer one."""
    if os.path.isdir(name) and name not in SUITES:
        directory = os.path.abspath(name)
        return Kernel(name, _release_in(directory), directory)
    if name not in SUITES:
        raise VmError(f"kernel {name}: {', '.join(SUITES)}, or a directory with boot/ and lib/modules/")
    link = os.path.join(CACHE, name)
    with _locked():
        if update or not os.path.isdir(link):
            _update(SUITES[name])
            target = _download(name)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(link)
            os.symlink(os.path.basename(target), link)
        directory = os.path.realpath(link)
    return Kernel(name, _release_in(directory), directory)


def cached():
    """{name: Kernel or None}: what `--kernel` takes, and which of them are here."""
    return {name: find(name) if os.path.isdir(os.path.join(CACHE, name)) else None for name in SUITES}
