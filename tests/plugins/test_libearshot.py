# SPDX-License-Identifier: GPL-2.0-or-later
"""libearshot as its users have it: the installed components lib and libdev and nothing else, from C and C++."""
import os
import shutil
import subprocess

import pytest

BUILD, SOURCE = os.environ["EARSHOT_BUILD"], os.environ["EARSHOT_SOURCE"]

USER = """\
#include <earshot/handover.h>
#include <stdio.h>
int main(void) { printf("%d\\n", request_handover(0, "n1", "GET", 3)); return 0; }
"""

CMAKE = """\
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(earshot 0.1 REQUIRED)
add_executable(user user.c)
target_link_libraries(user earshot::earshot)
"""


def run(*arguments, **keywords):
    done = subprocess.run([str(each) for each in arguments], capture_output=True, text=True, check=False, **keywords)
    if done.returncode:
        pytest.fail(f"{' '.join(map(str, arguments))}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


@pytest.fixture(scope="module", name="prefix")
def _prefix(tmp_path_factory):
    prefix = tmp_path_factory.mktemp("prefix")
    for component in ("lib", "ring", "libdev"):
        run("cmake", "--install", BUILD, "--component", component, "--prefix", prefix)
    return prefix


@pytest.fixture(name="flags")
def _flags(prefix):
    place = next(prefix.rglob("earshot.pc")).parent
    return run("pkg-config", "--cflags", "--libs", "earshot", env={**os.environ, "PKG_CONFIG_PATH": str(place)}).split()


def works(program, library, tmp_path):
    """Nobody answers on that socket: that is what it says."""
    environment = {"EARSHOT_HANDOVER_SOCKET": str(tmp_path / "none"), "LD_LIBRARY_PATH": str(library)}
    assert run(program, env=environment).strip() == "-67"  # ENOLINK


@pytest.mark.parametrize("compiler,name", [("cc", "user.c"), ("c++", "user.cc")])
def test_pkg_config(prefix, flags, tmp_path, compiler, name):
    (tmp_path / name).write_text(USER)
    run(compiler, "-Wall", "-Wextra", "-Werror", tmp_path / name, "-o", tmp_path / "user", *flags)
    works(tmp_path / "user", next(prefix.rglob("libearshot.so.1")).parent, tmp_path)


def test_cmake(prefix, tmp_path):
    (tmp_path / "user.c").write_text(USER)
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "build")
    works(tmp_path / "build" / "user", next(prefix.rglob("libearshot.so.1")).parent, tmp_path)


def test_example(prefix, flags, tmp_path):
    """The example is installed, and short."""
    source = next(prefix.rglob("upload_inspector.c"))
    assert len(source.read_text().splitlines()) <= 61
    shutil.copy(source, tmp_path)
    run("cc", "-Wall", "-Wextra", "-Werror", "-pthread", tmp_path / "upload_inspector.c", "-o",
        tmp_path / "example", *flags)


def test_one_symbol(prefix):
    """What others could come to rely on is what the header says."""
    library = next(prefix.rglob("libearshot.so.1"))
    symbols = [line.split()[-1] for line in run("nm", "-D", "--defined-only", library).splitlines()]
    assert sorted(symbols) == ["EARSHOT_1", "request_handover@@EARSHOT_1"]
    assert "libearshot.so.1" in run("readelf", "-d", library)
