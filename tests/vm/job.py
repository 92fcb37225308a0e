# SPDX-License-Identifier: GPL-2.0-or-later
"""What a machine is to do from beginning to end, as a test."""
from earshotvm.cluster import daemon
from earshotvm.machine import ENVIRONMENT, PYTHON, Machine

PYTEST = f"{PYTHON} -m pytest -q -p no:cacheprovider"


def run(kernel, command, timeout, directory, env=None, **options):
    """A shell command in the repository, of a machine with that kernel; it takes `timeout` seconds at most, and must end well, with a
    content kernel. Returns what it has written. `env` is added to the machine's; `options` are Machine's."""
    with open(directory / "output", "w+b") as output:
        with Machine(kernel, ["sh", "-ec", command], cwd=daemon.REPOSITORY, output=output.fileno(), env={
                **ENVIRONMENT, "EARSHOT_BUILD": daemon.BUILD, "EARSHOT_REQUIRED": "1", **(env or {})}, **options) as machine:
            result = machine.wait(timeout)
        output.seek(0)
        text = output.read().decode(errors="replace")
    assert result.good, "\n".join([text, *result.troubles])
    assert result.release == kernel.release
    return text
