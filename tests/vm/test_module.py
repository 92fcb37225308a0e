# SPDX-License-Identifier: GPL-2.0-or-later
"""earshot.ko on Debian 12's own kernel: its life, packets by the packet suite, and a cluster of both datapaths."""
import contextlib
import os

from earshotvm import cluster
from earshotvm.cluster import Lab, daemon, wait_for
from earshotvm.machine import ENVIRONMENT, PYTHON, SLUB_DEBUG, Machine
from serving import on_one_connection
import programs  # of tests/lab

OLD = "6.1"

# Of tests/datapath, what fits into two minutes and meets every file of kmod/module; all of it: README.md.
PACKETS = """test_connection.py test_program.py test_handshake.py test_time_wait.py test_other.py test_nack.py
    test_later_requests.py test_lease.py::TestGoesOn test_lease_unproven.py::TestEnd test_load.py::TestActive test_strays.py"""


def module_of(kernel):
    """The build tree's for that kernel; ctest's module.build makes it."""
    file = os.path.join(daemon.BUILD, "module", kernel.release, "earshot.ko")
    assert os.path.exists(file), f"no {file}: built by ./dev check module, with the kernel's headers installed"
    return file


def test_packets(kernel, tmp_path):
    """Loaded, asked, lied to, short of memory, unloaded with connections open and under traffic; then PACKETS. All that
    under a kernel that watches its memory."""
    module_of(kernel(OLD))
    command = f"""set -e
    pytest='{PYTHON} -m pytest -q -rs -p no:cacheprovider'
    EARSHOT_UNLOADS=2 EARSHOT_FUZZ=300 $pytest --durations=10 tests/module
    cd tests/datapath
    $pytest --datapath=module --durations=5 {" ".join(PACKETS.split())}
    rmmod earshot
    """
    with open(tmp_path / "output", "w+b") as output:
        # Little memory: a test takes it all, and zeroing it is slow where the machine is emulated.
        with Machine(kernel(OLD), ["sh", "-c", command], cwd=daemon.REPOSITORY, output=output.fileno(), memory_mb=1200,
                     append=[SLUB_DEBUG], env={**ENVIRONMENT, "EARSHOT_BUILD": daemon.BUILD, "EARSHOT_REQUIRED": "1"}) as machine:
            result = machine.wait(700)
        output.seek(0)
        text = output.read().decode(errors="replace")
    print(text)
    assert result.good, "\n".join([text, *result.troubles])


def start_programs(lab, vms, stack):
    """tests/lab/program.py on each node."""
    for node in ("n1", "n2"):
        programs.start_program(stack, lab.node(node))
    vms["n3"].spawn([PYTHON, "-I", os.path.join(cluster.LAB, "program.py"), programs.LIBRARY,
                     *map(str, programs.PROGRAM)], "/run/program.log")
    wait_for(lambda: f":{programs.PROGRAM[1]} " in vms["n3"].exec(["ss", "-ltn"]).stdout, "program of n3")


def hand_over(lab, vms):
    """Programs of nodes of both kinds, to servers of both kinds: each file is whole, from the node that was named."""
    def counted(name):
        return [counters[name] for counters in (lab.counters("n1"), lab.counters("n2"), vms["n3"].counters())]

    for number in range(90):
        target = programs.ALL[number % 3]
        response = programs.ask(lab, "/100k", X_To=target)
        assert programs.right(response) and response.node == target
        # As many programs as nodes have had connections, most of which went elsewhere.
        if number >= 20 and min(counted("request_blind")) > 4:
            break
    assert min(counted("request_blind")) > 4 and min(counted("connection_rebuilt")) > 4
    assert sum(counted("connection_rebuilt")) == number + 1


def test_mixed_cluster(kernel):
    """A machine with 6.1 and the module, and two namespaces with BPF: one connection is served by all three."""
    old = kernel(OLD)
    with Lab(nodes=3, policy="uri-hash", datapath="auto", settings={"service.inspect": "every", "service.load_bound": 0},
             autostart=[]) as lab, contextlib.ExitStack() as stack:
        with open(lab.config_file, "a", encoding="utf-8") as handle:
            handle.write(programs.SERVICES)
        with cluster.nodes(lab, {"n3": old}, before_earshotd=[["insmod", module_of(old)]]) as vms:
            for node in ("n1", "n2"):
                lab.start(node, "nginx")
                lab.start(node, "earshotd")
            lab.wait_serving()
            assert vms["n3"].ask("status")["datapath"]["type"] == "module" and lab.status("n1")["datapath"]["type"] == "bpf"
            for number in range(60):
                status, _, body = lab.client.get(f"/u/1k/{number}")
                assert status == 200 and len(body) == 1024
            answered = on_one_connection(lab)
            assert set(answered) == {"n1", "n2", "n3"}
            for counters in (vms["n3"].counters(), lab.counters("n1"), lab.counters("n2")):
                assert counters["handover_rebuilt"] and counters["inspect_handovers"] and counters["end_done"], counters
            start_programs(lab, vms, stack)
            hand_over(lab, vms)
