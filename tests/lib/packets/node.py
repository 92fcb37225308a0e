# SPDX-License-Identifier: GPL-2.0-or-later
"""The node under test, and the model nodes that it believes in.

    namespace esdpPID-K-far                               namespace esdpPID-K-node: n1

    the test, as clients and switch:  pub ---------------- eth0 10.77.0.1/24   lo: the service address 10.77.0.100
    the test, as nodes n2 and n3:     clu ---------------- eth1 10.78.0.1/24   earshotd, and the test's listening sockets

The far namespace has no addresses, so its kernel never says a word. All clients are behind the router GATEWAY.
"""
import contextlib
import itertools
import json
import os
import random
import signal
import socket
import subprocess
import time

import namespaces
import node_logs
from cluster import conntrack
from earshotlab import netns, wait_for
from packets import model, packet, queues, tables
from packets.wire import TIMEOUT_S, Wire
from tree import EARSHOT, EARSHOTD, EARSHOTD_TABLES

PREFIX = "esdp"  # of namespaces and directories
VIP = "10.77.0.100"
VIP6, PUBLIC6, GATEWAY6 = "2001:db8:77::100", "2001:db8:77::1", "2001:db8:77::fe"
VIPS = {4: VIP, 6: VIP6}
LOOPBACKS, EVERYWHERE = {4: "127.0.0.1", 6: "::1"}, {4: "0.0.0.0", 6: "::"}
# Where servers have what programs hand over, with netfilter: a service's number behind it (netfilter/rules/translation.h).
TRANSLATED = {4: "169.254.69.", 6: "fd45:6172:7368:6f74::"}
PUBLIC, CLUSTER = "10.77.0.1", ("10.78.0.1", "10.78.0.2", "10.78.0.3")
CLUSTERS = {4: CLUSTER, 6: ("2001:db8:78::1", "2001:db8:78::2", "2001:db8:78::3")}
GATEWAY, GATEWAY_MAC = "10.77.0.254", "02:00:00:00:77:fe"
PEER_MAC = (None, "02:00:00:00:78:02", "02:00:00:00:78:03")
CLUSTER_MAC = {"multicast": "03:bf:0a:4d:00:64", "unicast": "02:bf:0a:4d:00:64"}
HANDOVER_PORT = 7350
COOKIE_LIFETIME_S = 384
SLOT_S = COOKIE_LIFETIME_S // model.SLOTS_VALID
RCV_WSCALE = 10
MSS = 1500 - (20 + 8 + 64) - 40  # a full segment fits into a message on an ordinary network
WINDOW = 10 * MSS

# Port, policy. DEAD and DEAD_BLIND have no server, CRAMPED one with hardly any accept queue.
# EACH inspects every request. On PROGRAM a program listens, which hands connections over to servers on SERVER.
WEB, BLIND, DEAD, CRAMPED, DEAD_BLIND, TURNS, CRAMPED_BLIND, EACH, PROGRAM = range(80, 89)
SERVER = 90
SERVICES = {WEB: "uri-hash", BLIND: "ring", DEAD: "uri-hash", CRAMPED: "uri-hash", DEAD_BLIND: "ring", TURNS: "wrr",
            CRAMPED_BLIND: "ring", EACH: "uri-hash", PROGRAM: "ring"}
SERVICE_INDEX = {port: i for i, port in enumerate(SERVICES)}

# Whether the worker slept, and whether the stack sent something again on an earlier test's connection, while the node was
# silent: it counts only for who asks.
CHANCE = ("inspect_woken", "reply_silent")

# What is not counted, whatever a test expects: packets of connections that are here pass in the kernel, and few of them come to
# the netfilter datapath.
UNCOUNTED = {"netfilter": ("deliver_established",)}

# What the datapath answers to its own daemon, over lo, with what else it counts. It comes through the netfilter datapath's queue, which
# counts it like the other nodes'; elsewhere it is not counted.
OWN_ANSWERS = {"own_stray_answered": ("stray_answered",), "own_nack_received": ("handover_nack_received",), "own_answer_received": ()}

ESTABLISHED, FIN_WAIT2, TIME_WAIT = 1, 5, 6


class Node(namespaces.Site):
    """One earshotd in its network."""

    def __init__(self, datapath="bpf", mac_mode="multicast", fallback_after_ms=4000, race_window_ms=50,
                 workers=1, before=(), ring_hash="siphash", program=f"{VIP}, {VIP6}",
                 backup=False):
        """`before` stands in front of earshotd's command line; `program`: the addresses of the service of that name; `backup`: the
        node serves BLIND only while no other one does."""
        self.settings = {"datapath": datapath, "mac_mode": mac_mode, "fallback_after_ms": fallback_after_ms,
                         "race_window_ms": race_window_ms, "workers": workers, "interface": "eth0", "cluster_interface": "eth1",
                         "ring_hash": ring_hash, "program": program, "backup": backup}
        self.cluster_mac = CLUSTER_MAC[mac_mode]
        self.mss = MSS  # of its SYN-ACKs to IPv4
        super().__init__(PREFIX, "node", "far")
        self.namespace, self.far = self.namespaces
        self.control = os.path.join(self.directory, "control")
        self.log_path = os.path.join(self.directory, "log")
        self.config_path = os.path.join(self.directory, "earshot.conf")
        self.key_file = os.path.join(self.directory, "key")
        self.daemon = None
        self.binary = EARSHOTD_TABLES if self.netfilter else EARSHOTD
        self.before = before
        self.listeners = {}
        self.ring = model.Ring(CLUSTER)
        self.at = CLUSTER  # the nodes' cluster addresses
        self.sequence = int(time.time()) << 24
        self._ports = itertools.count(20000)
        self._paths = itertools.count()
        with self.setting_up():
            self._make_network()
            if self.netfilter:
                self.queues = queues.Queues(self)
                self.public.settled = self.cluster.settled = self.queues.drain
            self._write_config()
            self.earshot("keygen", self.key_file)
            self.load_keys()

    def close(self):
        if self.daemon and self.daemon.poll() is None:
            self.daemon.send_signal(signal.SIGCONT)
            self.daemon.kill()
            self.daemon.wait()
        for listener in self.listeners.values():
            listener.close()
        for ours in ("public", "cluster", "queues"):
            if hasattr(self, ours):
                getattr(self, ours).close()
        super().close()

    def _make_network(self):
        for namespace in (self.namespace, self.far):
            netns.add(namespace)
            netns.set_sysctls(namespace, {"net.ipv6.conf.all.disable_ipv6": 1, "net.ipv6.conf.default.disable_ipv6": 1})
        netns.ip_batch(self.namespace, [
            f"link add eth0 type veth peer name pub netns {self.far}",
            f"link add eth1 type veth peer name clu netns {self.far}"])
        netns.ip_batch(self.far, ["link set pub up", "link set clu up"])
        for interface in ("eth0", "eth1"):
            namespaces.offloads_off(self.namespace, interface)
        netns.set_sysctls(self.namespace, {
            "net.ipv4.conf.all.rp_filter": 0, "net.ipv4.conf.default.rp_filter": 0,
            "net.ipv4.conf.all.arp_ignore": 1, "net.ipv4.conf.all.arp_announce": 2,
            "net.ipv4.icmp_ratelimit": 0, "net.ipv4.tcp_invalid_ratelimit": 0})
        netns.ip_batch(self.namespace, [
            "link set lo up", "link set eth0 up", "link set eth1 up",
            f"addr add {PUBLIC}/24 dev eth0", f"addr add {CLUSTER[0]}/24 dev eth1", f"addr add {VIP}/32 dev lo",
            f"neigh add {GATEWAY} lladdr {GATEWAY_MAC} dev eth0 nud permanent",
            *(f"neigh add {CLUSTER[n]} lladdr {PEER_MAC[n]} dev eth1 nud permanent" for n in (1, 2)),
            f"route add default via {GATEWAY}"])
        self._make_network6()
        self.mac = namespaces.hardware_address(self.namespace, "eth0")
        cluster_mac = namespaces.hardware_address(self.namespace, "eth1")
        self.public = netns.in_namespace(self.far, Wire, "pub", PUBLIC, self.mac, "10.251.0.1")
        self.cluster = netns.in_namespace(self.far, Wire, "clu", CLUSTER[0], cluster_mac, "10.252.0.1")

    def _make_network6(self):
        """IPv6 for clients: addresses that are there at once, and a kernel that says nothing by itself."""
        quiet = {"addr_gen_mode": 1, "accept_ra": 0, "router_solicitations": 0, "dad_transmits": 0,
                 "accept_dad": 0, "disable_ipv6": 0}
        netns.set_sysctls(self.namespace, {"net.ipv6.icmp.ratelimit": 0,
                                           "net.ipv6.conf.lo.disable_ipv6": 0, **{
                                               f"net.ipv6.conf.{interface}.{name}": value for interface in ("eth0", "eth1")
                                               for name, value in quiet.items()}})
        netns.ip_batch(self.namespace, [
            f"addr add {PUBLIC6}/64 dev eth0 nodad", f"addr add {CLUSTERS[6][0]}/64 dev eth1 nodad",
            *(f"neigh add {CLUSTERS[6][n]} lladdr {PEER_MAC[n]} dev eth1 nud permanent" for n in (1, 2)),
            f"addr add {VIP6}/128 dev lo nodad",
            f"neigh add {GATEWAY6} lladdr {GATEWAY_MAC} dev eth0 nud permanent",
            f"route add default via {GATEWAY6} dev eth0"])

    def _write_config(self):
        s = self.settings
        lines = [
            f'cluster {{ name = "datapath" key_file = "{self.key_file}" handover_port = {HANDOVER_PORT} ring_hash = {s["ring_hash"]} }}',
            f'datapath {{ type = {s["datapath"]} interface = {s["interface"]} cluster_interface = {s["cluster_interface"]} '
            f'mac_mode = {s["mac_mode"]} receive_window_scale = {RCV_WSCALE} '
            f'cookie_lifetime_s = {COOKIE_LIFETIME_S} fallback_after_ms = {s["fallback_after_ms"]} }}',
            f'inspector {{ workers = {s["workers"]} race_window_ms = {s["race_window_ms"]} }}',
            *(f'node n{n} {{ address = "{a}" }}' for n, a in enumerate(CLUSTER, 1)),
            # The daemon itself looks where a program's connections go.
            *(f'service s{port} {{ address = "{s["program"] if port == PROGRAM else VIP}" port = {port} '
              f'{"inspect = never" if policy == "ring" else f"policy = {policy} load_bound = 0"}'
              f'{" inspect = every" if port == EACH else ""}'
              f'{" backup = n1" if port == BLIND and s["backup"] else ""}'
              # Each connection that the server gets is a test's.
              f'{f" server_port = {SERVER}" if port == PROGRAM else ""} check {{ type = none }} }}'
              for port, policy in SERVICES.items())]
        with open(self.config_path, "w", encoding="ascii") as handle:
            handle.write("\n".join(lines) + "\n")

    @property
    def netfilter(self):
        """Is that the datapath under test? What it does in another way, by design, a test says where it differs."""
        return self.settings["datapath"] == "netfilter"

    def configure(self, **settings):
        """Other settings, for the next start()."""
        self.settings.update(settings)
        self._write_config()

    def one_interface(self):
        """Clients and nodes are on one network, for the next start()."""
        self.configure(interface="eth0", cluster_interface="eth0")
        netns.ip_batch(self.namespace, [
            f"addr del {CLUSTER[0]}/24 dev eth1", f"addr add {CLUSTER[0]}/24 dev eth0",
            *(f"neigh add {CLUSTER[n]} lladdr {PEER_MAC[n]} dev eth0 nud permanent" for n in (1, 2))])
        self.cluster.close()
        self.cluster = self.public

    # The daemon

    def spawn(self):
        """earshotd in the node's namespace; it dies with the test, and the test does not wait for it to serve."""
        log = open(self.log_path, "wb")
        with log:
            return subprocess.Popen(
                ["nsenter", f"--net={netns.path(self.namespace)}", *self.before, self.binary, "--config", self.config_path,
                 "--control", self.control], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                preexec_fn=namespaces.die_with_test)

    def start(self, tells=True):
        """With `tells`, the other nodes have told their time: until then, nothing is taken of them."""
        self.daemon = self.spawn()
        wait_for(lambda: "is serving" in self.log() or self.daemon.poll() is not None, "earshotd serving", 4 * TIMEOUT_S,
                 lambda: f"its log: {self.log() or 'nothing'}")
        assert self.daemon.poll() is None, f"earshotd: {self.log()}"
        for source in (2, 3) if tells else ():
            self.hear(source, time.time_ns())
        return self

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as handle:
            return handle.read()

    def log_ends(self):
        return node_logs.of_files(f"earshotd of {self.namespace}", self.log_path)

    def signal(self, number):
        self.daemon.send_signal(number)

    def _states(self):
        """Of the daemon's threads."""
        for task in os.listdir(f"/proc/{self.daemon.pid}/task"):
            with open(f"/proc/{self.daemon.pid}/task/{task}/stat", encoding="ascii") as handle:
                yield handle.read().rsplit(")", 1)[1].split()[0]

    def freeze(self):
        """SIGSTOP, and every thread has really stopped."""
        self.signal(signal.SIGSTOP)
        wait_for(self.is_frozen, "the daemon stopped", seen=lambda: f"threads in the states {list(self._states())}")

    def is_frozen(self):
        return set(self._states()) == {"T"}

    def is_gone(self):
        return not self.daemon or self.daemon.poll() is not None

    def kill(self):
        self.daemon.kill()
        self.daemon.wait()

    def ask(self, command, **arguments):
        """One command over the control socket, as `earshot` would ask it."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(TIMEOUT_S)
            s.connect(self.control)
            s.sendall(json.dumps({"command": command, **arguments}).encode() + b"\n")
            with s.makefile("rb") as reader:
                reply = json.loads(reader.readline())
        assert reply["ok"], reply
        return reply.get("result")

    def earshot(self, *arguments, check=True):
        return subprocess.run([EARSHOT, "--control", self.control, *arguments], check=check, text=True,
                              capture_output=True, timeout=30)

    def reload(self, **sysctls):
        if sysctls:
            netns.set_sysctls(self.namespace, sysctls)
        self.ask("reload")

    def load_keys(self):
        self.keys = model.Keys.load(self.key_file, self.settings["ring_hash"])

    # The datapath's tables

    @contextlib.contextmanager
    def leased(self, left_s=3600, attached=1, epoch=1, driver=None):
        """As if membership could change, with a lease that holds so long. Everything is put back. `driver`: of the tables, if
        it is not the datapath's usual one."""
        with tables.Tables(driver or self.settings["datapath"], self) as found:
            found.configure(leased=1, epoch=epoch)
            found.lease(left_s, attached)
            yield found

    def tables(self):
        """The live words and tables as they are; put back at the end."""
        return tables.Tables(self.settings["datapath"], self)

    # Counters

    def counters(self):
        return {c["name"]: c["value"] for c in self.ask("counters")["counters"]}

    def _own_answers(self, expected):
        """The same in names of counters."""
        counted = {name: value for name, value in expected.items() if name not in OWN_ANSWERS}
        for name in set(expected) - set(counted) if self.netfilter else ():
            for counter in ("handover_received", *OWN_ANSWERS[name]):
                counted[counter] = counted.get(counter, 0) + expected[name]
        return counted

    @contextlib.contextmanager
    def counts(self, **expected):
        """What happens inside counts exactly so, and nothing else. A value may be a set of numbers that are all right; a name
        may be one of OWN_ANSWERS."""
        if self.netfilter:
            self.queues.drain()  # what was sent before
        before = self.counters()
        uncounted = UNCOUNTED.get(self.settings["datapath"], ())
        expected = {name: value for name, value in self._own_answers(expected).items() if name not in uncounted}
        assert not set(expected) - set(before), set(expected) - set(before)

        def delta():
            after = self.counters()
            found = {name: after[name] - before[name] for name in after if after[name] != before[name] and
                     (name in expected or name not in (*CHANCE, *uncounted))}
            if self.netfilter and "drop_handshake_ack" in expected and "drop_no_flow" not in expected:
                # Soon behind its SYN it is the kernel that drops it (hears_again()).
                found["drop_handshake_ack"] = found.get("drop_handshake_ack", 0) + found.pop("drop_no_flow", 0)
            return found

        try:
            yield
        except Exception as e:
            e.add_note(f"counted {delta()} until then, expected {expected}")
            raise
        self.settle()
        fits = {name: value if isinstance(value, (set, range)) else {value} for name, value in expected.items()}
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            counted = delta()
            if all(counted.get(name, 0) in fits.get(name, {0}) for name in {*counted, *fits}):
                return
            assert time.monotonic() < deadline, f"counted {counted}, expected {expected}"
            time.sleep(0.005)

    def settle(self):
        self.public.fence()
        self.cluster.fence()

    # Servers, clients and peers

    def server_address(self, family):
        """Where a server behind a program listens."""
        return (EVERYWHERE if self.netfilter else LOOPBACKS)[family]

    def listen(self, port, backlog=128, address=None, v6only=None, family=4, protocol=0):
        """The server's socket for clients of a family."""
        address = address or (self.server_address(family) if port == SERVER else VIPS[family])
        listener = namespaces.listen(self.namespace, address, port, backlog, protocol, 1 if family == 6 else v6only)
        listener.settimeout(TIMEOUT_S)
        self.listeners[(port, 6) if family == 6 else port] = listener
        return listener

    def unlisten(self, port, family=4):
        """It is closed."""
        self.listeners.pop((port, 6) if family == 6 else port).close()

    @contextlib.contextmanager
    def gateway_unknown(self):
        """The gateway does not say its address: of all packets to clients, the last one is kept until it does."""
        gateway = f"{GATEWAY} dev eth0"
        netns.set_sysctls(self.namespace, {"net.ipv4.neigh.eth0.unres_qlen_bytes": 0})
        netns.ip("-n", self.namespace, "neigh", "del", *gateway.split())
        try:
            yield
        finally:
            netns.ip("-n", self.namespace, "neigh", "replace", *gateway.split(), "lladdr", GATEWAY_MAC, "nud", "permanent")

    def pending(self, port):
        """How many connections wait to be accepted, of both families."""
        count = 0
        for listener in filter(None, (self.listeners.get(port), self.listeners.get((port, 6)))):
            listener.settimeout(0)
            with contextlib.suppress(BlockingIOError):
                while True:
                    listener.accept()[0].close()
                    count += 1
            listener.settimeout(TIMEOUT_S)
        return count

    def listener(self, port, family):
        """The server's socket for clients of a family; that of IPv6 is made when it is first asked for."""
        if family == 4:
            return self.listeners[port]
        return self.listeners.get((port, 6)) or self.listen(port, family=6)

    def server_name(self, service, family, port=SERVER):
        """What getsockname() says to the server on that port which a program of that service has given a connection."""
        if not self.netfilter:  # as if it had listened there
            return VIPS[family], service
        number = SERVICE_INDEX.get(service, len(SERVICES)) + 1  # that of a test is the last one
        return f"{TRANSLATED[family]}{number:{'x' if family == 6 else ''}}", port

    def sockets(self, client):
        """States of this client's sockets on the node."""
        names = [(client.vip, client.service), self.server_name(client.service, client.family)]
        return [state for address, port, peer, peer_port, state in namespaces.tcp_sockets(self.namespace, client.family)
                if (address, port) in names and (peer, peer_port) == (client.ip, client.port)]

    def forgets(self):
        """Its connection tracking, all connections."""
        conntrack.flush(self)

    def exec(self, command):
        return subprocess.run(["nsenter", f"--net={netns.path(self.namespace)}", *command], check=True, capture_output=True, text=True)

    def place(self, service, owner, network=None, family=4):
        """An unused client address and port for which the ring names `owner` (n1 is 1) the inspecting node."""
        while True:
            number = next(self._ports)
            ip = f"{network or f'198.51.{100 + number // 40000}'}.{random.randint(1, 254)}"
            if family == 6:
                ip = f"2001:db8:5133::{random.randint(1, 0xffff):x}"
            port = 1024 + number % 60000
            hash_ = model.flow_hash(self.keys, ip, port, VIPS[family], service)
            if self.ring.sampled(hash_) == owner - 1:
                return ip, port, hash_

    def uri(self, target):
        """An unused path that the policy uri-hash gives to `target`."""
        while True:
            path = f"/{next(self._paths)}"
            if self.ring.content(path, "test") == target - 1:
                return path

    def slot(self):
        return model.slot_of(SLOT_S)

    def hears_again(self):
        """Of a flow whose SYN it has just answered, or which it has given away, the netfilter datapath hears no bare acknowledgement for
        a quarter of a second: the kernel drops them, and they are counted as some of no flow."""
        if self.netfilter:
            time.sleep(0.3)

    def all_up(self):
        """Waits until no node is suspended for having refused something."""
        wait_for(lambda: all(n["state"] == "up" for n in self.ask("status")["nodes"]), "all nodes up",
                 seen=lambda: self.ask("status")["nodes"])

    # The cluster network

    def message(self, handover, source=2, key=None, sport=40000, dport=HANDOVER_PORT, length=None, cut=0, data=None):
        """Send a message as a model node would. `cut` drops bytes from its end."""
        handover.source = source - 1 if handover.source == 1 else handover.source
        if not handover.sequence:
            self.sequence += 1
            handover.sequence = self.sequence
        data = data if data is not None else handover.pack(key or self.keys.handover[0])
        data = data[:len(data) - cut]
        self.cluster.send(packet.datagram(self.cluster.node_mac, PEER_MAC[source - 1], self.at[source - 1], self.at[0],
                                          sport, dport, data, length=length))
        return handover

    def loads(self, data, source=2, port=HANDOVER_PORT):
        """Send a datagram of a model node that tells how busy it is."""
        src, dst = CLUSTER[source - 1], CLUSTER[0]
        self.cluster.send(packet.eth(self.cluster.node_mac, PEER_MAC[source - 1], packet.ETH_IP, packet.ip(
            src, dst, packet.UDP, packet.udp(src, dst, port, port, data))))

    def hear(self, source, clock_ns, **fields):
        """A model node tells its loads, and with them its time (0: it does not); n1 has taken that."""
        before = self.ask("status")["loads"]["received"]
        said = model.Loads(sequence=time.time_ns(), source=source - 1, clock_ns=clock_ns, **fields)
        self.loads(said.bytes(self.keys.handover[0]), source)
        wait_for(lambda: self.ask("status")["loads"]["received"] > before, "a datagram that is taken")

    def taken(self, node, kind=None, timeout=TIMEOUT_S):
        """The next handover message that n1 sent to this model node; must be authentic."""
        def match(f):
            return f.udp and f.ip.dst == self.at[node - 1] and (kind is None or f.udp.payload[5] == kind)

        return self.parsed(self.cluster.take(match, f"a handover message to n{node}", timeout), node)

    def parsed(self, f, node):
        """A frame with a handover message to this model node."""
        assert (f.ip.src, f.dst) == (self.at[0], PEER_MAC[node - 1])
        message = model.Handover.parse(f.udp.payload)
        assert message.authentic(self.keys)
        assert (message.source, message.target) == (0, node - 1)
        message.ports = (f.udp.sport, f.udp.dport)
        return message

    def no_message(self):
        self.cluster.nothing(lambda f: f.udp, "no handover message")
