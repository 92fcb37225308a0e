# SPDX-License-Identifier: GPL-2.0-or-later
"""tables.py's driver for the BPF datapath as a daemon has it whose kernel refuses iterators: it asks for each connection by
itself. The daemon's own code does that, in a process beside it (tests/datapath/walk.c)."""
import ctypes
import os
import subprocess

from earshotlab import netns
from packets import tables, tables_bpf
from tree import BUILD

WALK = os.path.join(BUILD, "bin/earshot-walk")
REFUSE = os.path.join(BUILD, "lib/libearshot-refuse.so")
ITERATORS = ("es_list", "es_connections", "es_loads", "es_unproven_end")


def refusing(*names):
    """The beginning of a command line for which the kernel refuses these (tests/datapath/refuse.c)."""
    return ["env", f"LD_PRELOAD={REFUSE}", f"EARSHOT_REFUSED={' '.join(names)}"]


class Driver(tables_bpf.Driver):
    def iterate(self, program):
        config = tables.Config.from_buffer_copy(self.get("es_configs", 0, ctypes.sizeof(tables.Config)))
        if not config.abi:
            config = tables.Config.from_buffer_copy(self.get("es_configs", 1, ctypes.sizeof(tables.Config)))
        what = {"es_connections": "connections", "es_unproven_end": "end"}[program]
        done = subprocess.run(["nsenter", f"--net={netns.path(self.namespace)}", *refusing(*ITERATORS), WALK, "eth0", "eth1",
                               str(config.decision_sets), what], capture_output=True, check=False)
        assert done.returncode == 0 and all(name.encode() in done.stderr for name in ITERATORS), done
        return done.stdout
