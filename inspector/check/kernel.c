// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Checks of the kernel and its settings for TCP: can it rebuild connections, and will a rebuilt socket keep
 * what the SYN-ACK has promised?
 */
#include <errno.h>
#include <string.h>

#include "inspector/check/check.h"
#include "inspector/datapath/network.h"
#include "netfilter/kernel/tun.h"

#define SYNACK_SEGMENTS 10 /* the segments that a client may send before a socket exists (daemon/daemon.c) */
#define MSS_USUAL	1460

/*
 * Servers keep idle connections for so long: nginx for 75 s, others for some minutes. A timeout of an hour is
 * good.
 */
#define KEEP_ALIVE_USUAL_S 300
#define ESTABLISHED_GOOD_S 3600

/* Which datapath runs; and why none that costs less. */
static void check_reqsk(struct es_check *check)
{
	const struct es_facts *f = check->facts;
	const char *bpf = f->kernel_rc ? f->kernel_text : "this kernel could have it";
	const char *module = *f->module_text ? f->module_text : "it is here";

	if (f->datapath == ES_DATAPATH_MODULE)
		es_check_ok(check, "the module earshot makes the sockets (not bpf: %s)", bpf);
	else if (f->datapath == ES_DATAPATH_NETFILTER)
		es_check_ok(check,
			    "the kernel's SYNPROXY and conntrack make the connections (netfilter datapath; "
			    "not bpf: %s; not module: %s)",
			    bpf, module);
	else if (check->facts->kernel_rc)
		es_check_error(check,
			       "install a kernel with it, from Debian's backports for example, or the module "
			       "earshot",
			       "%s", check->facts->kernel_text);
	else
		es_check_ok(check, "the kernel has bpf_sk_assign_tcp_reqsk()");
}

/* The meaning of what es_datapath_probe() returns, by datapath. */
static const struct {
	const char *may_not;
	const char *action;
	const char *good;
} programs[ES_DATAPATH_COUNT] = {
	[ES_DATAPATH_BPF] = {"BPF programs may not be loaded by this user",
			     "EARSHOT_BPF_DEBUG=1 earshot check", "the kernel takes the datapath's programs"},
	[ES_DATAPATH_MODULE] = {"the module may not be used by this user", "modprobe earshot",
				"the module earshot is there, and of this version"},
	[ES_DATAPATH_NETFILTER] =
		{"no network namespace may be made by this user",
		 "modprobe -a nfnetlink_queue nft_queue nft_synproxy tun (before Linux 5.3: nft_compat "
		 "xt_NFQUEUE ipt_SYNPROXY ip6t_SYNPROXY in place of the two nft_)",
		 "the kernel has rebuilt a connection, in a network namespace of its own"},
};

static void check_programs(struct es_check *check)
{
	const struct es_facts *f = check->facts;

	if (!f->is_root && (f->programs_rc == -EPERM || f->programs_rc == -EACCES))
		es_check_unchecked(check, "%s: run it as root", programs[f->datapath].may_not);
	else if (f->programs_rc)
		es_check_error(check, programs[f->datapath].action, "%s", f->programs_text);
	else if (*f->programs_text && f->datapath == ES_DATAPATH_BPF)
		es_check_info(check, "%s", f->programs_text);
	else
		es_check_ok(check, "%s", programs[f->datapath].good);
}

static void check_clock(struct es_check *check)
{
	if (check->facts->clock_synced < 0)
		es_check_unchecked(check, "the clock's state cannot be read: %s",
				   strerror(-check->facts->clock_synced));
	else if (!check->facts->clock_synced)
		es_check_warning(check, "apt-get install chrony", "nothing keeps this machine's clock right");
	else
		es_check_ok(check, "the clock is kept right");
}

/* Reads one number of a sysctl. Return: 0, or -1 and it is reported. */
static int read_number(struct es_check *check, const char *name, long *ret_value)
{
	int n = es_facts_sysctl(check->facts, name, ret_value, 1);

	if (n == 1)
		return 0;
	es_check_unchecked(check, "sysctl %s cannot be read: %s", name, strerror(-n));
	return -1;
}

/* The check's name is the sysctl's. */
static int read_own(struct es_check *check, long *ret_value)
{
	char name[64];

	snprintf(name, sizeof(name), "net/ipv4/%s", check->item->name);
	return read_number(check, name, ret_value);
}

static void judge_own(struct es_check *check, int bad, enum es_check_severity severity, long value, long good)
{
	const char *name = check->item->name;
	const char *action = es_check_action("sysctl -w net.ipv4.%s=%ld", name, good);

	if (!bad)
		es_check_ok(check, "net.ipv4.%s = %ld", name, value);
	else if (severity == ES_CHECK_ERROR)
		es_check_error(check, action, "net.ipv4.%s = %ld", name, value);
	else
		es_check_warning(check, action, "net.ipv4.%s = %ld", name, value);
}

static void check_syncookies(struct es_check *check)
{
	long value;

	if (check->facts->datapath == ES_DATAPATH_MODULE)
		es_check_ok(check, "the module datapath needs no net.ipv4.tcp_syncookies");
	else if (!read_own(check, &value))
		/* As es_network_cookies_are_wrong(). */
		judge_own(check, check->facts->datapath == ES_DATAPATH_BPF ? !value : value == 2,
			  ES_CHECK_ERROR, value, 1);
}

static void check_rfc1337(struct es_check *check)
{
	long value;

	if (!read_own(check, &value))
		judge_own(check, value != 0, ES_CHECK_ERROR, value, 0);
}

static void check_tw_buckets(struct es_check *check)
{
	long max, count = 0;

	if (read_own(check, &max))
		return;
	if (max > 0 && !es_facts_time_wait(check->facts, &count) && count > max / 10 * 9)
		es_check_warning(check, es_check_action("sysctl -w net.ipv4.tcp_max_tw_buckets=%ld", 4 * max),
				 "%ld of at most %ld connections are in TIME_WAIT", count, max);
	else
		judge_own(check, max <= 0, ES_CHECK_ERROR, max, 131072);
}

/* Window scaling, SACK, timestamps: on by default. */
static void check_option(struct es_check *check)
{
	long value;

	if (!read_own(check, &value))
		judge_own(check, !value, ES_CHECK_WARNING, value, 1);
}

static void check_ecn(struct es_check *check)
{
	long value;

	if (!read_own(check, &value))
		judge_own(check, !value, ES_CHECK_WARNING, value, 2);
}

static void check_rmem(struct es_check *check)
{
	const struct es_facts *f = check->facts;
	const long promised = (long)SYNACK_SEGMENTS * MSS_USUAL;
	long rmem[3];

	if (es_facts_sysctl(f, "net/ipv4/tcp_rmem", rmem, 3) != 3)
		es_check_unchecked(check, "sysctl net.ipv4.tcp_rmem cannot be read");
	else if (rmem[1] / 2 < promised) /* half of a buffer is the kernel's own (tcp_adv_win_scale) */
		es_check_error(
			check, "sysctl -w net.ipv4.tcp_rmem='4096 131072 6291456'",
			"net.ipv4.tcp_rmem = %ld %ld %ld: its default has no room for the %ld bytes that "
			"the handshake lets a client send",
			rmem[0], rmem[1], rmem[2], promised);
	else
		es_check_ok(check, "net.ipv4.tcp_rmem = %ld %ld %ld", rmem[0], rmem[1], rmem[2]);
}

static void check_window(struct es_check *check)
{
	const unsigned int scale = check->conf->datapath.receive_window_scale;
	long rmem[3], window = 65535L << scale;
	unsigned int better = scale;

	if (es_facts_sysctl(check->facts, "net/ipv4/tcp_rmem", rmem, 3) != 3) {
		es_check_unchecked(check, "sysctl net.ipv4.tcp_rmem cannot be read");
		return;
	}
	while (better < 14 && 65535L << better < rmem[2])
		better++;
	if (window < rmem[2] && scale < 14)
		es_check_warning(
			check,
			es_check_action("receive_window_scale = %u in datapath { } of %s, on all nodes",
					better, check->conf->path),
			"receive_window_scale = %u allows a window of %ld bytes, tcp_rmem %ld bytes", scale,
			window, rmem[2]);
	else if ((1L << scale) > rmem[1] / 8)
		es_check_warning(
			check, "sysctl -w net.ipv4.tcp_rmem='4096 131072 6291456'",
			"receive_window_scale = %u counts windows in steps of %ld bytes, and tcp_rmem's "
			"default is %ld",
			scale, 1L << scale, rmem[1]);
	else
		es_check_ok(check, "receive_window_scale = %u fits tcp_rmem", scale);
}

static void check_jit(struct es_check *check)
{
	long value;
	int n = es_facts_sysctl(check->facts, "net/core/bpf_jit_enable", &value, 1);

	if (check->facts->datapath != ES_DATAPATH_BPF)
		es_check_ok(check, "the %s datapath is not a BPF program",
			    es_datapath_name(check->facts->datapath));
	else if (n ==
		 -ENOENT) /* compiled in as always on, or this is a network namespace that does not show it */
		es_check_ok(check, "net.core.bpf_jit_enable is not for this network namespace to set");
	else if (n != 1)
		es_check_unchecked(check, "sysctl net.core.bpf_jit_enable cannot be read: %s", strerror(-n));
	else if (!value)
		es_check_warning(check, "sysctl -w net.core.bpf_jit_enable=1", "net.core.bpf_jit_enable = 0");
	else
		es_check_ok(check, "net.core.bpf_jit_enable = %ld", value);
}

static void check_conntrack_loose(struct es_check *check)
{
	long loose;
	int n = es_facts_sysctl(check->facts, "net/netfilter/nf_conntrack_tcp_loose", &loose, 1);

	if (n == -ENOENT)
		es_check_ok(check, "no connection tracking");
	else if (check->facts->datapath == ES_DATAPATH_NETFILTER)
		es_check_ok(check, "the netfilter datapath makes the entries of its connections itself");
	else if (n != 1)
		es_check_unchecked(check, "sysctl net.netfilter.nf_conntrack_tcp_loose cannot be read: %s",
				   strerror(-n));
	else if (!loose)
		es_check_warning(
			check,
			"sysctl -w net.netfilter.nf_conntrack_tcp_loose=1 (or notrack for the services)",
			"net.netfilter.nf_conntrack_tcp_loose = 0");
	else
		es_check_ok(check, "net.netfilter.nf_conntrack_tcp_loose = %ld", loose);
}

static void check_conntrack_table(struct es_check *check)
{
	long count, max;
	int n = es_facts_sysctl(check->facts, "net/netfilter/nf_conntrack_count", &count, 1);

	if (n == -ENOENT) {
		es_check_ok(check, "no connection tracking");
		return;
	}
	if (n != 1 || es_facts_sysctl(check->facts, "net/netfilter/nf_conntrack_max", &max, 1) != 1)
		es_check_unchecked(check, "sysctl net.netfilter.nf_conntrack_count or _max cannot be read");
	else if (max && count > max / 10 * 9)
		es_check_warning(check,
				 es_check_action("sysctl -w net.netfilter.nf_conntrack_max=%ld", 4 * max),
				 "%ld of at most %ld connections are tracked", count, max);
	else
		es_check_ok(check, "%ld of at most %ld connections are tracked", count, max);
}

/*
 * Without entries, the connections of the netfilter datapath stand still; the daemon makes them again when it
 * hears of it.
 */
static void check_conntrack_memory(struct es_check *check)
{
	long events = 1, established = 0;

	if (check->facts->datapath != ES_DATAPATH_NETFILTER) {
		es_check_ok(check, "the %s datapath needs no connection tracking",
			    es_datapath_name(check->facts->datapath));
		return;
	}
	/* A kernel that cannot tell of events has no such sysctl. */
	if (es_facts_sysctl(check->facts, "net/netfilter/nf_conntrack_events", &events, 1) != 1)
		events = 0;
	if (es_facts_sysctl(check->facts, "net/netfilter/nf_conntrack_tcp_timeout_established", &established,
			    1) != 1)
		es_check_unchecked(check, "sysctl net.netfilter.nf_conntrack_tcp_timeout_established cannot "
					  "be read");
	else if (!events)
		es_check_warning(check, "sysctl -w net.netfilter.nf_conntrack_events=2",
				 "net.netfilter.nf_conntrack_events = 0, so the kernel does not say which "
				 "connections it has forgotten");
	else if (established < KEEP_ALIVE_USUAL_S)
		es_check_warning(check,
				 es_check_action("sysctl -w "
						 "net.netfilter.nf_conntrack_tcp_timeout_established=%d",
						 ESTABLISHED_GOOD_S),
				 "net.netfilter.nf_conntrack_tcp_timeout_established = %ld seconds, and "
				 "servers keep idle connections for up to %d",
				 established, KEEP_ALIVE_USUAL_S);
	else
		es_check_ok(check, "idle connections are tracked for %ld seconds, and losses are told",
			    established);
}

static void check_conntrack_zone(struct es_check *check)
{
	const struct es_facts_zones *z = &check->facts->zones;

	if (check->facts->datapath != ES_DATAPATH_NETFILTER)
		es_check_ok(check, "the %s datapath needs no connection tracking",
			    es_datapath_name(check->facts->datapath));
	else if (z->rc)
		es_check_unchecked(check, "rules of nf_tables cannot be read: %s", strerror(-z->rc));
	else if (z->rules && !z->is_right)
		es_check_warning(check,
				 es_check_action("conntrack_zone = %u in datapath { } of %s, if the "
						 "services' packets are among them",
						 z->first, check->conf->path),
				 "%s puts packets into the conntrack zone %u, and conntrack_zone = %u",
				 z->name, z->first, z->wanted);
	else if (z->wanted && !z->is_right)
		es_check_warning(check, "a rule that puts the services' packets there, in both directions",
				 "conntrack_zone = %u, and no rule of nf_tables puts packets into that zone",
				 z->wanted);
	else
		es_check_ok(check, z->wanted ? "rules and configuration name the same conntrack zone"
					     : "no rule puts packets into a conntrack zone");
}

/*
 * Names the packets that filters must accept. A filter sees a connection begin where its first packet
 * arrives.
 */
static const char *firewall_action(const struct es_check *check)
{
	const struct es_conf_datapath *dp = &check->conf->datapath;

	if (check->facts->datapath == ES_DATAPATH_NETFILTER)
		return es_check_action(
			"accept TCP to the service ports from those who may use them on %s, as on "
			"%s, what is established on both and on lo, and UDP port %u on %s and lo",
			ES_NF_TUN_NAME, dp->interface, check->conf->cluster.handover_port,
			dp->cluster_interface);
	return es_check_action("accept TCP to the service ports from those who may use them on %s, by rules "
			       "that do not ask for "
			       "a SYN; what is established on it, %s and lo; and UDP port %u on %s and lo",
			       dp->interface, dp->cluster_interface, check->conf->cluster.handover_port,
			       dp->cluster_interface);
}

static void check_translation(struct es_check *check)
{
	const struct es_facts_translation *t = &check->facts->translation;
	unsigned int taken = 0;

	if (t->rc) {
		es_check_unchecked(check, "rules that translate addresses cannot be read: %s",
				   strerror(-t->rc));
		return;
	}
	for (unsigned int i = 0; i < check->conf->service_count; i++) {
		const struct es_conf_service *service = &check->conf->services[i];

		if (!t->taken[i][0] || !es_check_is_here(check, i))
			continue;
		taken++;
		if (check->facts->datapath == ES_DATAPATH_NETFILTER)
			es_check_info(
				check,
				"service %s: %s translates what is for port %u; connections that are made "
				"here are tracked before",
				service->name, t->taken[i], service->port);
		else
			es_check_error(
				check,
				"a rule before it that accepts what is for the service's address, or another "
				"port for it (a container: not published by NAT on the service's port)",
				"service %s: %s translates what is for port %u, and leads it away from the "
				"service's server",
				service->name, t->taken[i], service->port);
	}
	if (!taken)
		es_check_ok(check, "no rule is known to translate what is for a service");
}

static void check_firewall(struct es_check *check)
{
	const struct es_facts_firewall *f = &check->facts->firewall;

	if (f->rc)
		es_check_unchecked(check, "packet filter rules cannot be read: %s", strerror(-f->rc));
	else if (f->chains)
		es_check_warning(check, firewall_action(check),
				 "%u packet filter chain%s for what comes in, %s first, %u with policy drop: "
				 "asked about each connection that is made here, with what comes in by %s",
				 f->chains, f->chains == 1 ? "" : "s", f->name, f->dropping,
				 check->facts->datapath == ES_DATAPATH_NETFILTER
					 ? ES_NF_TUN_NAME
					 : check->conf->datapath.interface);
	else if (!f->nat)
		es_check_ok(check, "no packet filter rules for what comes in");
	if (!f->rc && f->nat)
		es_check_warning(check,
				 "let the server listen on the service's own address and port, and no rule "
				 "translate what is for these (a container: its port on the host, not "
				 "published by NAT)",
				 "%u nat chain%s for what comes in, %s first: a request that is redirected "
				 "reaches no connection that is made here",
				 f->nat, f->nat == 1 ? "" : "s", f->nat_name);
}

static const struct es_check_item items[] = {
	{"reqsk", "The kernel makes the sockets of connections that are handed over.", check_reqsk},
	{"programs", "earshotd does not start when the kernel refuses them.", check_programs},
	{"bpf_jit", "Interpreted programs cost many times the CPU time, for every packet.", check_jit},
	{"tcp_syncookies",
	 "The kernel rebuilds no connection with 0 (BPF) or 2 (netfilter), and earshotd does not start.",
	 check_syncookies},
	{"tcp_rfc1337",
	 "Clients that use a port again would have to wait for TIME_WAIT to end, and earshotd does not "
	 "start.",
	 check_rfc1337},
	{"tcp_max_tw_buckets",
	 "Without TIME_WAIT, clients hang at the end of a connection: no other node can tell that it is "
	 "over.",
	 check_tw_buckets},
	{"tcp_window_scaling",
	 "Connections from nodes that have it on are refused here, and uploads are slow.", check_option},
	{"tcp_sack", "Connections from nodes that have it on are refused here.", check_option},
	{"tcp_timestamps", "Connections from nodes that have it on are refused here.", check_option},
	{"tcp_ecn", "Connections from nodes that have it on are refused here.", check_ecn},
	{"tcp_rmem", "Packets that do not fit are dropped and must be sent again.", check_rmem},
	{"window_scale", "A rebuilt socket keeps the scale that the handshake has promised.", check_window},
	{"clock",
	 "Clocks of the nodes must be within two minutes of each other, or they refuse each other's cookies.",
	 check_clock},
	{"conntrack_loose",
	 "A connection that is handed over has no handshake here, so it is INVALID for rules about its "
	 "state.",
	 check_conntrack_loose},
	{"conntrack_table", "When the table is full, the kernel drops new connections.",
	 check_conntrack_table},
	{"conntrack_memory",
	 "A connection that the netfilter datapath has made stands still when the kernel forgets it, until "
	 "the daemon has made its entry again.",
	 check_conntrack_memory},
	{"conntrack_zone",
	 "The netfilter datapath makes connections in the zone that its configuration names; packets that "
	 "are "
	 "tracked in another one do not find them.",
	 check_conntrack_zone},
	{"translation",
	 "Connections are made from packets that such rules translate first, and the kernel refuses what it "
	 "then finds no "
	 "socket for.",
	 check_translation},
	{"firewall",
	 "The node's packet filter decides who may use a service. It sees no client's SYN, and a rule may "
	 "drop "
	 "what nodes tell each other.",
	 check_firewall},
	{NULL, NULL, NULL},
};

const struct es_check_group es_check_kernel_group = {.name = "kernel", .items = items};
