# SPDX-License-Identifier: GPL-2.0-or-later
"""The packages as operators use them: the commands of docs/install.md, on three minimal Debian systems with a corosync and a
Pacemaker each, of which nothing is from the source tree. One story; each test goes on where the last one ended."""
import os
import re
import shutil

import pytest

import packages
import pasted
import prepared
import roots
import tcx
from earshotlab import Lab, in_namespace, wait_for
from load import Load

VIP = "10.77.0.100"
PAGE = pasted.blocks()
OLD, NEW = prepared.versions()
LAYERS = [prepared.INSTALLED, prepared.BASE]


@pytest.fixture(scope="session", name="directory")
def _directory():
    assert os.geteuid() == 0, "needs root"
    assert os.path.isdir(prepared.INSTALLED), "test_build.py comes first"
    path = os.path.join(prepared.DIRECTORY, "machines")
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    yield path
    shutil.rmtree(path)


# What the daemon sets on a node's interfaces; and what 50-earshot.conf sets.
INTERFACES = ("conf/eth0/arp_ignore", "conf/eth0/arp_announce", "conf/eth1/rp_filter", "conf/lo/rp_filter", "conf/lo/accept_local")
OF_ALL = ("tcp_syncookies", "tcp_rfc1337", "tcp_window_scaling", "tcp_sack", "tcp_timestamps", "tcp_ecn", "tcp_rmem")
# systemd as far as a package's scripts ask for it: its sysctl service, which is active; and what that runs, asked for some keys.
SYSTEMD_SYSCTL = """\
#!/bin/sh
case "$*" in
*is-active*systemd-sysctl.service) ;;
*) exit 1 ;;
esac
"""
SYSCTL_OF_SYSTEMD = """\
#!/bin/sh
keys=
for argument; do keys="$keys|$(echo "${argument#--prefix=}" | tr / .)"; done
cat /usr/lib/sysctl.d/*.conf /etc/sysctl.d/*.conf | grep -E "^(${keys#|}) *=" | sysctl -q -p -
"""


def sysctls(machine, names):
    """{name below net/ipv4: value}"""
    values = machine.run(f"cd /proc/sys/net/ipv4; for name in {' '.join(names)}; do tr '\t' ' ' <$name; done").stdout
    return dict(zip(names, values.splitlines(), strict=True))


class Cluster:
    def __init__(self, lab, machines):
        self.lab = lab
        self.machines = machines
        self.found = {machine.name: sysctls(machine, INTERFACES) for machine in machines}

    def __iter__(self):
        return iter(self.machines)

    def wait_ring(self, names, timeout=60):
        def stable():
            for machine in self.machines:
                if machine.name in names:
                    status = machine.run("earshot --json status", check=False).stdout
                    members = re.search(r'"members": (\d+)', status)
                    if '"state": "inspecting"' not in status or not members or int(members[1]) != len(names):
                        raise BlockingIOError(f"{machine.name}: {status[-600:]}")
            return True

        wait_for(stable, f"a ring of {', '.join(names)}", timeout)


@pytest.fixture(scope="session", name="cluster")
def _cluster(directory):
    with Lab(nodes=3, server="none", earshot=False) as lab:
        machines = [roots.Machine(name, lab.net.namespace(name), directory, LAYERS) for name in lab.net.nodes]
        try:
            # The page has the service address put there by hand.
            for machine in machines:
                packages.run("ip", "-n", machine.namespace, "address", "del", f"{VIP}/32", "dev", "lo")
                machine.start(machines)
            for machine in machines:
                wait_for(machine.find, machine.name, 10)
            yield Cluster(lab, machines)
        finally:
            for machine in machines:
                machine.close()


def online(machine):
    text = machine.run("crm_mon -1", check=False).stdout
    if "Online: [ n1 n2 n3 ]" not in text:
        raise BlockingIOError(text)
    return True


def get(cluster):
    """One request of the client."""
    done = cluster.lab.client_run(["curl", "-s", "--max-time", "5", f"http://{VIP}/"], check=False)
    return "nginx" in done.stdout


def versions(machine):
    """(of the running daemon, of the program on the disk)"""
    running = re.search(r'"version": "([^"]+)"', machine.run("earshot --json status").stdout)[1]
    return running, machine.run("earshotd --version").stdout.split()[1]


def test_three_nodes_serve(cluster):
    first = cluster.machines[0]
    for machine in cluster:
        machine.run(PAGE["every node"])
    first.run(PAGE["one node"])
    for machine in cluster:
        machine.run("echo '# changed' >>/etc/default/earshot")  # the only conffile
        machine.run(PAGE["start"])
    wait_for(lambda: online(first), "the nodes online in Pacemaker", 60)
    first.run(PAGE["once"])
    cluster.wait_ring(["n1", "n2", "n3"])
    assert all(get(cluster) for _ in range(20))
    with Load(cluster.lab.net.client, VIP) as load:
        wait_for(lambda: load.requests["new"] > 100, "requests", 30)
    assert not load.failures, load.failures[:10]
    # Each of the three inspects its share, and nothing runs in its place.
    for machine in cluster:
        counters = machine.run("earshot counters").stdout
        assert re.search(r"^request_queued +[1-9]", counters, re.M), counters
        assert not re.search(r"^request_(fallback|blind) ", counters, re.M), counters


def test_check_finds_nothing_wrong(cluster):
    """Also that corosync has what `earshot corosync-conf` wrote."""
    for machine in cluster:
        done = machine.run("earshot check", check=False)
        assert done.returncode == 0, done.stdout


def test_nothing_of_the_source_tree_is_used(cluster):
    """What runs is what dpkg has put there, unchanged."""
    for machine in cluster:
        changed = machine.run(f"dpkg -V {' '.join(packages.NODE)}").stdout
        assert changed == "??5?????? c /etc/default/earshot\n"  # by the test itself
        found = machine.run('readlink /proc/$(pgrep -ox earshotd)/exe; test ! -e /work; test ! -e ' + packages.SOURCE).stdout
        assert found.strip() == "/usr/sbin/earshotd"


def test_upgrade_under_load(cluster):
    """Version N + 1 on one node after the other. Meanwhile both versions are one cluster."""
    with Load(cluster.lab.net.client, VIP) as load:
        wait_for(lambda: min(load.requests.values()) > 50, "requests", 30)
        for machine in cluster:
            prepared.put(NEW, machine.root)
            assert versions(machine) == (OLD.version,) * 2
            # The oldest of that name: the resource agent, which comes and goes, is another one.
            pid = machine.run("pgrep -ox earshotd").stdout
            install, _, restart = PAGE["upgrade"].partition("crm_resource")
            machine.run(install.replace("apt install", "apt -y install"), cwd=prepared.DEBS, timeout=120)
            # Pacemaker's daemon is not the package's to restart.
            assert machine.run("pgrep -ox earshotd").stdout == pid
            assert versions(machine) == (OLD.version, NEW.version)
            machine.run("crm_resource" + restart, timeout=120)
            cluster.wait_ring(["n1", "n2", "n3"])
            assert versions(machine) == (NEW.version,) * 2
            assert machine.run("pgrep -ox earshotd").stdout != pid
    print(f"{load.requests}, the longest took {load.longest:.3f} s")
    assert not load.failures, load.failures[:10]


def test_configuration_stays(cluster):
    """What the operator wrote, and a changed conffile, survive an upgrade without a question."""
    for machine in cluster:
        assert machine.run("grep -c '^node' /etc/earshot/earshot.conf").stdout.strip() == "3"
        assert machine.run("stat -c %a /etc/earshot/cluster.key").stdout.strip() == "600"
        assert machine.run("tail -n 1 /etc/default/earshot").stdout == "# changed\n"
        assert not machine.run("find /etc/earshot /etc/default -name '*.dpkg-*'").stdout


def test_purge_leaves_nothing(cluster):
    """n3 leaves, under load; of Earshot neither a file nor a program in the kernel stays there."""
    machine = cluster.machines[2]
    with Load(cluster.lab.net.client, VIP) as load:
        wait_for(lambda: load.requests["new"] > 20, "requests", 30)
        leave, _, rest = PAGE["leave"].partition("systemctl")
        machine.run(leave, timeout=120)
        cluster.wait_ring(["n1", "n2"])
    assert not load.failures, load.failures[:10]
    disable, _, purge = rest.partition("apt")
    assert sysctls(machine, INTERFACES) != cluster.found[machine.name]
    machine.run("systemctl" + disable, timeout=120)
    said = machine.run("apt" + purge, timeout=120).stdout
    assert "eth0: es_public detached" in said and "eth1: es_cluster detached" in said, said
    assert attached(machine) == []
    left = machine.run("find / -xdev \\( -path /proc -o -path /sys -o -path /root -o -path /srv -o -path /var/log \\) -prune "
                       "-o -iname '*earshot*' -print").stdout.splitlines()
    assert not left, left
    assert not machine.run("dpkg -l | grep earshot", check=False).stdout
    assert VIP not in machine.run("ip address").stdout
    assert sysctls(machine, INTERFACES) == cluster.found[machine.name]
    assert get(cluster)


def test_remove_keeps_the_configuration(cluster):
    """n3 has the packages again, and does not start anything; removed, its configuration stays, and goes by a purge."""
    machine = cluster.machines[2]
    prepared.put(NEW, machine.root)
    names = " ".join(packages.NODE)
    machine.run("apt -y install --no-install-recommends ./*.deb", cwd=prepared.DEBS, timeout=120)
    assert machine.run("earshot version").stdout == f"earshot {NEW.version}\n"
    assert machine.run("pgrep -x earshotd", check=False).returncode == 1
    machine.run("echo mine >/etc/earshot/earshot.conf")
    said = machine.run(f"apt -y remove {names}", timeout=120).stdout
    assert "nothing was attached" in said, said
    assert machine.run("cat /etc/earshot/earshot.conf; ls /usr/sbin/earshot* || echo gone").stdout.startswith("mine\n")
    assert machine.run("test -e /etc/default/earshot; test ! -e /usr/sbin/earshotd").returncode == 0
    machine.run(f"apt -y purge {names}", timeout=120)
    assert machine.run("ls -d /etc/earshot /etc/default/earshot 2>/dev/null", check=False).stdout == ""


def test_remove_puts_sysctls_back(cluster):
    """On n3, with systemd: removing sets what the installation has set to what it was, and leaves what somebody set since."""
    machine = cluster.machines[2]
    names = " ".join(packages.NODE)
    apt = "apt -y -o DPkg::Path=$PATH"  # scripts of packages find the stand-in before the real systemctl
    install = f"{apt} install --no-install-recommends ./*.deb"
    systemctl = machine.run("cat /usr/local/sbin/systemctl").stdout
    before = {**dict.fromkeys(OF_ALL, "1"), "tcp_sack": "0", "tcp_rmem": "4096 87380 4194304"}
    machine.run("\n".join(f"echo '{value}' >/proc/sys/net/ipv4/{name}" for name, value in before.items()))
    assert sysctls(machine, OF_ALL) == before
    machine.write("/usr/local/sbin/systemctl", SYSTEMD_SYSCTL)
    if not os.path.exists(f"{machine.root}/lib/systemd/systemd-sysctl"):
        machine.write("/lib/systemd/systemd-sysctl", SYSCTL_OF_SYSTEMD)
    others = sysctls(machine, ("tcp_fin_timeout",))
    machine.write("/etc/sysctl.d/70-others.conf", "net.ipv4.tcp_fin_timeout = 33\n", 0o644)  # changed since, by hand
    machine.write("/etc/sysctl.d/60-earshot.conf", "net.ipv4.tcp_rfc1337 = 1\n", 0o644)  # the operator's own, as before
    prepared.put(NEW, machine.root)
    machine.run("mkdir -p /run/systemd/system")
    try:
        machine.run(install, cwd=prepared.DEBS, timeout=120)
        ours = sysctls(machine, OF_ALL)
        assert ours == {**before, "tcp_ecn": "2", "tcp_sack": "1", "tcp_rmem": "4096 131072 6291456"}, ours
        assert sysctls(machine, ("tcp_fin_timeout",)) == others
        machine.run("echo 0 >/proc/sys/net/ipv4/tcp_ecn; echo 0 >/proc/sys/net/ipv4/tcp_timestamps")  # somebody, later
        later = {**before, "tcp_ecn": "0", "tcp_timestamps": "0"}
        # Installing it again, while it is there, sets nothing and forgets nothing.
        machine.run(install.replace(" install", " install --reinstall"), cwd=prepared.DEBS, timeout=120)
        assert sysctls(machine, ("tcp_ecn", "tcp_timestamps")) == {"tcp_ecn": "0", "tcp_timestamps": "0"}
        machine.run(f"{apt} remove {names}", timeout=120)
        assert sysctls(machine, OF_ALL) == later
        # And once more, from what is left of it.
        machine.run(install, cwd=prepared.DEBS, timeout=120)
        assert sysctls(machine, OF_ALL) == {**ours, "tcp_timestamps": "1"}
        # Where an address is left on lo, ARP is not answered for it.
        machine.run(f"ip address add {VIP}/32 dev lo; echo 1 >/proc/sys/net/ipv4/conf/eth0/arp_ignore; mkdir -p /run/earshot; "
                    "printf 'net/ipv4/conf/eth0/arp_ignore\\t0\\t1\\n' >/run/earshot/n3.sysctl")
        said = machine.run(f"{apt} purge {names}", timeout=120).stdout
        assert "net/ipv4/conf/eth0/arp_ignore stays 1" in said, said
        assert sysctls(machine, OF_ALL) == later
        assert sysctls(machine, ("conf/eth0/arp_ignore",)) == {"conf/eth0/arp_ignore": "1"}
    finally:
        machine.run(f"rm -rf /run/systemd /etc/sysctl.d/60-earshot.conf /etc/sysctl.d/70-others.conf; ip address del {VIP}/32 dev lo || true; "
                    "echo 0 >/proc/sys/net/ipv4/conf/eth0/arp_ignore")
        machine.write("/usr/local/sbin/systemctl", systemctl)
    assert not machine.run("ls -d /var/lib/earshot 2>/dev/null", check=False).stdout


def attached(machine):
    """Programs of ours at any interface, as another program sees them than the one that took them off."""
    return in_namespace(machine.namespace, tcx.programs)


def test_attached_can_tell(cluster):
    """The same question at a node that is still one."""
    found = attached(cluster.machines[0])
    assert {("eth0", "es_public"), ("eth1", "es_cluster"), ("lo", "es_cluster")} <= set(found), found
