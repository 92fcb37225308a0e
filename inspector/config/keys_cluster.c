// SPDX-License-Identifier: GPL-2.0-or-later
/* The keys of the sections that the cluster has once, and of a node; how to read a line is in keys.h. */
#include "inspector/config/keys.h"
#include "inspector/policy/url_info.h"

static const struct es_conf_choice memberships[] = {
	{"static", ES_CONF_MEMBERSHIP_STATIC},
	{"corosync", ES_CONF_MEMBERSHIP_COROSYNC},
	{NULL, 0},
};

static const struct es_conf_choice ring_hashes[] = {
	{"siphash", ES_CONF_RING_SIPHASH},
	{"jhash", ES_CONF_RING_JHASH},
	{NULL, 0},
};

#define VIRTUAL_NODES_MAX 1024

const struct es_conf_key es_conf_cluster_keys[] = {
	/*
	 * The cluster's name, up to 63 characters. The status shows it, and *earshot corosync-conf* has it;
	 * nothing else depends on it.
	 */
	VALUE(cluster, name, SHOULD, "earshot", TEXT),

	/*
	 * Absolute path of the cluster's secrets, made by *earshot keygen*, the same file on every node, mode
	 * 0600.
	 */
	VALUE(cluster, key_file, OWN, "/etc/earshot/cluster.key", PATH),

	/*
	 * Which nodes are members. _static_: all nodes of this file, always. _corosync_: those that corosync
	 * on this machine sees, while they have the quorum.
	 */
	CHOICE(cluster, membership, SHOULD, "static", memberships),

	/*
	 * UDP port on the private network for handover messages, and for those in which the nodes tell their
	 * load.
	 */
	NUMBER(cluster, handover_port, MUST, "7350", 1, 65535, NULL, NULL),

	/*
	 * Points on the ring; more of them spread connections more evenly. All
	 * nodes together (this times weight / 100) may have 16384.
	 */
	NUMBER(cluster, virtual_nodes, MUST, "63", 1, VIRTUAL_NODES_MAX, "for a node with weight 100", NULL),

	/*
	 * Which hash of a client's address and port says which node inspects its connection. _siphash_:
	 * nobody without the key file can compute it. _jhash_: one that nf_tables can compute, so that a node
	 * with the netfilter datapath drops other nodes' packets in the kernel, where _siphash_ brings every
	 * packet of the service to *earshotd*.
	 *
	 * The secret of _jhash_ is short: a client who sees which node serves it can find out how to have all
	 * its connections inspected by one node. The key cannot change while the nodes run.
	 */
	CHOICE(cluster, ring_hash, MUST, "siphash", ring_hashes),

	/*
	 * _yes_: a node that was away while a file was rolled out to the others takes that file when it is
	 * back, if it validates here and if its own is one that the others have had, and nobody has changed
	 * it since its last rollout. _no_: it keeps what it has.
	 *
	 * The node's own file stays beside the new one as _CONFIGURATION_.previous. A file that was changed
	 * by hand, or rolled out on a side of the cluster that was apart, is never replaced; the node says
	 * why. With static membership nobody is asked.
	 */
	CHOICE(cluster, catch_up, OWN, "yes", yes_no),
	{.name = NULL},
};

static const struct es_conf_choice datapath_types[] = {
	{"auto", ES_CONF_DATAPATH_AUTO},
	{"bpf", ES_CONF_DATAPATH_BPF},
	{"module", ES_CONF_DATAPATH_MODULE},
	{"netfilter", ES_CONF_DATAPATH_NETFILTER},
	{NULL, 0},
};

static const struct es_conf_choice mac_modes[] = {
	{"multicast", ES_CONF_MAC_MULTICAST},
	{"unicast", ES_CONF_MAC_UNICAST},
	{NULL, 0},
};

const struct es_conf_key es_conf_datapath_keys[] = {
	/*
	 * _bpf_: programs at tc, Linux 6.9 or newer. _module_: earshot.ko, for older kernels. _netfilter_: in
	 * the daemon, Linux 4.18 or newer. _auto_: the first of these that this machine can do.
	 */
	CHOICE(datapath, type, OWN, "auto", datapath_types),

	/*
	 * The interface at which the clients' packets arrive from the switch, by any of its names,
	 * alternative ones too (*ip link property*). A node's section may name another one.
	 */
	VALUE(datapath, interface, OWN, REQUIRED, IFNAME),

	/*
	 * The interface at which handover messages arrive: the private network. A node's section may name
	 * another one.
	 */
	VALUE(datapath, cluster_interface, OWN, REQUIRED, IFNAME),

	/*
	 * How all nodes come to hear each packet. _multicast_: the cluster MAC is a group address, which
	 * switches flood. _unicast_: a station address that no switch port may learn, because no node ever
	 * sends from it.
	 */
	CHOICE(datapath, mac_mode, SHOULD_AS(".mac", ""), "multicast", mac_modes),

	/*
	 * The MAC that the service addresses resolve to. Default: 03:bf (unicast: 02:bf), followed by the
	 * last four bytes of the first service's address, of IPv4 if it has one.
	 * @example "03:bf:0a:4d:00:64"
	 */
	VALUE(datapath, cluster_mac, SHOULD_AS(".mac", ":"), OPTIONAL, MAC),

	/* Window scale that the handshake promises. */
	NUMBER(datapath, receive_window_scale, MUST, "10", 0, 14, NULL, NULL),

	/*
	 * MTU of the private network. A request segment and its envelope must fit.
	 *
	 * The interface is asked also when its MTU changes while the daemon runs. The MSS that the handshake
	 * tells follows from it.
	 */
	NUMBER(datapath, mtu, MUST, "0", 576, 65535, "bytes", "ask the interface"),

	/* How long after the handshake a client may send its first request. */
	NUMBER(datapath, cookie_lifetime_s, MUST, "384", 120, 3600, "seconds", NULL),

	/*
	 * When the daemon has shown no sign of life for this long, the datapath serves without it, blind to
	 * content. (With _membership = corosync_ it serves nothing new.)
	 */
	NUMBER(datapath, fallback_after_ms, SHOULD, "1000", 100, 60000, "milliseconds", NULL),

	/*
	 * For _netfilter_: the conntrack zone into which rules of this machine put the services' packets, in
	 * both directions (*ct zone set*, or *-j CT --zone*). Connections are made in that zone.
	 */
	NUMBER(datapath, conntrack_zone, OWN, "0", 1, 65535, NULL, "none"),
	{.name = NULL},
};

static const struct es_conf_choice poisons[] = {
	{"serve", ES_CONF_POISON_SERVE},
	{"refuse", ES_CONF_POISON_REFUSE},
	{NULL, 0},
};

const struct es_conf_key es_conf_inspector_keys[] = {
	/*
	 * Threads that inspect requests.
	 *
	 * More threads than the requests need cost CPU time, because each then wakes up for fewer requests.
	 * Rules and plugins that compute for long need more.
	 */
	NUMBER(inspector, workers, OWN, "0", 1, ES_WORKERS_MAX, NULL, "one for each two CPUs, at most 8"),

	/*
	 * How long to wait for the rest of an incomplete first request; then the part that is there decides.
	 *
	 * Where the rest may decide whether a rule refuses the request, it is waited for longer, up to ten
	 * seconds, and then the request is refused (docs/limits.md, _inspect_gather_waited_,
	 * _inspect_gather_refused_).
	 */
	NUMBER(inspector, gather_timeout_ms, SHOULD_IN(""), "200", 1, 10000, "milliseconds", NULL),

	/*
	 * How much of a first request is kept at most.
	 *
	 * The default is also how much of a head is read at most. Rules, plugins and policies see the part
	 * that has arrived by then, and the first 256 headers. A client sends ten segments (about 14 KB)
	 * before it hears an answer. A client with SACK, as all usual ones have, is asked for the rest, which
	 * must arrive within _gather_timeout_ms_. More than 64,512 bytes arrive of no request (with the
	 * default _receive_window_scale_), since the rebuilt connection would have no room for them: a plugin
	 * that asks for more is given what there is, as soon as no more arrives. Counters tell how often a
	 * request could not be gathered or seen whole (_inspect_gather_full_, _inspect_gather_timeout_,
	 * _inspect_head_long_), and *earshot explain* says so of a request that is too long.
	 */
	NUMBER(inspector, gather_bytes, SHOULD, "65536", 1460, 1048576, "bytes per flow", NULL),

	/* How many flows may wait for the rest of their request at once. */
	NUMBER(inspector, gather_flows, OWN, "4096", 1, 1048576, "flows", NULL),

	/*
	 * How many new connections a second this node is to inspect.
	 *
	 * When more arrive, decisions are forgotten too early: *earshot check* says so, and
	 * _inspect_decisions_early_ counts them.
	 */
	NUMBER(inspector, connection_rate, OWN, "500", 1, 1000000, "new connections a second", NULL),

	/*
	 * How many flows' decisions are remembered, so that a repeated request goes to the same node.
	 *
	 * About as many requests that this node has served or refused are remembered, too, so that no late
	 * copy is served again. Without a number there is room for as many connections as begin
	 * (*connection_rate*) while a cookie lives (*cookie_lifetime_s*), rounded up to a power of two.
	 */
	NUMBER(inspector, decision_entries, OWN, "0", 1024, ES_DECISION_ENTRIES_MAX, "flows",
	       "connection_rate times cookie_lifetime_s"),

	/* How many URIs' server sets are kept for each service whose policy keeps them. */
	NUMBER(inspector, target_entries, SHOULD, "100000", 1024, 16777216, "URIs", NULL),

	/* How many files and programs are known at most of each service: size, kind, cost. */
	NUMBER(inspector, url_entries, SHOULD, "65536", ES_URL_ENTRIES_MIN, ES_URL_ENTRIES_MAX,
	       "files and programs", NULL),

	/*
	 * How long segments that follow a decided request are forwarded to the same node.
	 *
	 * These are the segments that the client has sent before it heard of that node; the node hears itself
	 * what the client sends later.
	 */
	NUMBER(inspector, race_window_ms, SHOULD_IN(""), "50", 0, 10000, "milliseconds", NULL),

	/*
	 * The time over which loads are averaged where they decide about content that already has a node; ten
	 * times as long where they decide about open connections (/usr/share/doc/earshot/policies.md.gz).
	 */
	NUMBER(inspector, settle_ms, SHOULD_IN(""), "100", 10, 10000, "milliseconds",
	       "loads count as they are at each moment"),

	/*
	 * How to treat a request like one that has ended a daemon, on any node, in the last hour. _serve_: a
	 * node that the ring picks serves it without inspection; rules, plugins and policy do not see it.
	 * _refuse_: its client gets a RST.
	 *
	 * Such a daemon crashed, was killed or hung while it inspected that request. No node inspects it
	 * again, nor another one that begins with the same 900 bytes. The default is _serve_ because a daemon
	 * that is killed from outside may have been inspecting a request that has nothing to do with it. When
	 * three different requests have ended daemons within a minute, no first request is inspected for a
	 * minute, whatever this key says.
	 */
	CHOICE(inspector, poison, SHOULD_IN(""), "serve", poisons),

	/*
	 * Group whose members may hand connections over (docs/programs.md), besides root. Default: none.
	 * @example www-data
	 */
	VALUE(inspector, program_group, OWN, OPTIONAL, TEXT),
	{.name = NULL},
};

/*
 * Where each node serves the status page of the whole cluster, http://ADDRESS:7351/, the same as JSON,
 * /page.json, and its metrics, in Prometheus' text format and OpenMetrics: /metrics.
 *
 * The metrics are described in docs/metrics.md. An address or port that cannot be had is logged, named by
 * *earshot check*, and tried again; the node works without it.
 */
const struct es_conf_key es_conf_status_keys[] = {
	/*
	 * The address to listen on. As the file is the same on all nodes, that is either _127.0.0.1_, for a
	 * collector on each node, or left out: the node's own address on the private network. Default: the
	 * node's own.
	 *
	 * A service's address is refused.
	 * @example 127.0.0.1
	 */
	VALUE(status, address, SHOULD, OPTIONAL, LOCAL),

	/* TCP port. */
	NUMBER(status, port, SHOULD, "7351", 1, 65535, NULL, "nowhere"),

	/*
	 * Addresses and networks that may ask; all others' connections are closed. Default: whoever reaches
	 * the address.
	 * @example { "10.78.0.0/24", "192.0.2.7", "2001:db8::/32" }
	 */
	LIST(status, "allow", allow, SHOULD, PEERS),

	/*
	 * More names by which nodes are asked, of all nodes together: host names, _\*.DOMAIN_ for all names
	 * below a domain, and addresses. Default: no more names.
	 *
	 * A request whose Host is something else than one of these, the address that the node listens on, its
	 * own name or _localhost_ (or a loopback address) gets 421, whatever its port: a page of another site
	 * could have a name of its own lead here.
	 * @example { "n1.example.org", "*.status.example.org", "192.0.2.9" }
	 */
	LIST(status, "names", names, SHOULD, CALLED),
	{.name = NULL},
};

static const struct es_conf_choice log_formats[] = {
	{"common", ES_CONF_LOG_COMMON},
	{"json", ES_CONF_LOG_JSON},
	{NULL, 0},
};

static const struct es_conf_choice log_tos[] = {
	{"syslog", ES_CONF_LOG_SYSLOG},
	{"file", ES_CONF_LOG_FILE},
	{NULL, 0},
};

/* Their numbers are RFC 5424's (table 1). */
static const struct es_conf_choice facilities[] = {
	{"daemon", 3},	{"local0", 16}, {"local1", 17}, {"local2", 18}, {"local3", 19},
	{"local4", 20}, {"local5", 21}, {"local6", 22}, {"local7", 23}, {NULL, 0},
};

/*
 * The request log: a line for each request, written by the node that decided on it, so that each is in one
 * node's log. There is none without this section.
 *
 * Requests of services with _inspect = never_ are not in it, nor those that the datapath serves while no
 * daemon runs. The parts of a line, and what it cannot have, are in docs/operating.md. Nobody waits for it:
 * lines that come faster than they can be written are missing, counted (_earshot_log_lines_total_) and told
 * in the daemon's log. All of it may change by a reload.
 */
const struct es_conf_key es_conf_log_keys[] = {
	/* _syslog_, by /dev/log, with the tag _earshot_ and the priority _info_; or _file_. */
	CHOICE(log, to, SHOULD_IN(""), "syslog", log_tos),

	/*
	 * With _to = file_: the file's path. Default: none.
	 *
	 * It is made with mode 0640; its directory must be there. The file is opened anew a second after it
	 * was renamed or removed, and by a reload. The package has a configuration of *logrotate*(8) for
	 * _/var/log/earshot/\*.log_.
	 * @example /var/log/earshot/requests.log
	 */
	VALUE(log, file, SHOULD_IN(""), OPTIONAL, PATH),

	/*
	 * With _to = syslog_: _daemon_, _local0_, _local1_, _local2_, _local3_, _local4_, _local5_, _local6_
	 * or _local7_.
	 */
	CHOICE(log, facility, SHOULD_NUMBERED(""), "local5", facilities),

	/*
	 * _common_: the Common Log Format, which usual analysers read. _json_: an object on each line, as
	 * *earshot trace --json* has it, and which node has decided.
	 */
	CHOICE(log, format, SHOULD_IN(""), "common", log_formats),

	/*
	 * The name of a service: only its requests are logged. Default: those of all services.
	 * @example web
	 */
	NAMED(log, "service", service_name, SHOULD_IN(""), TEXT),
	{.name = NULL},
};

/*
 * *node* _NAME_ { }, one for each node, up to 127. The name has letters, digits, and . \_ - and is
 * corosync's, too.
 */
const struct es_conf_key es_conf_node_keys[] = {
	/*
	 * Its address on the private network, of IPv4 or IPv6, the same family for all nodes; a machine finds
	 * out by this which node it is (or by *earshotd --node*).
	 */
	VALUE(node, address, MUST, REQUIRED, ADDRESS),

	/* Its share of flows and requests relative to the other nodes'; 0: it is given no requests. */
	NUMBER(node, weight, SHOULD, "100", 0, ES_CONF_WEIGHT_MAX, NULL, NULL),

	/*
	 * Its own interface for the clients' packets, where that has another name than in *datapath* { }.
	 * @example enp1s0
	 */
	VALUE(node, interface, OWN, OPTIONAL, IFNAME),

	/*
	 * Its own interface for the private network, where that has another name than in *datapath* { }.
	 * @example enp2s0
	 */
	VALUE(node, cluster_interface, OWN, OPTIONAL, IFNAME),

	/*
	 * Its nodeid in corosync. Write it once and keep it, for all nodes or for none.
	 *
	 * With the default, *earshot corosync-conf* prints a node's place in this file; deleting a node would
	 * then renumber those after it, which a running corosync must not see. The daemon does not use the
	 * id.
	 */
	NUMBER(node, id, OWN, "0", 0, 2147483647, "as earshot corosync-conf prints it", NULL),

	/*
	 * _yes_: there is no such node any more, and its place in the list is kept (docs/nodes.md).
	 *
	 * Nodes name each other by their places in the list. A removed node counts nowhere, has no weight,
	 * and another node may have its address. The section of the last node can be deleted instead.
	 */
	CHOICE(node, removed, LISTED, "no", yes_no),

	/*
	 * Names that values of cookies and headers have for it, for rules with *affinity* = route, up to 16.
	 * Default: the node's name.
	 *
	 * Characters as in *cookie* of a rule. No other node may be called so. The previous version does not
	 * know the key.
	 * @example { "jvm1", "old1" }
	 */
	LIST(node, "route", routes, MUST, ROUTE),
	{.name = NULL},
};
