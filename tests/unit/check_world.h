/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_CHECK_WORLD_H
#define ES_TESTS_CHECK_WORLD_H

/*
 * A node on which all is well, as facts and as a tree of files, for the tests of `earshot check`. Include
 * after cmocka.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "earshot_version.h"
#include "inspector/check/check.h"
#include "inspector/check/cmap.h"
#include "inspector/config/keyfile.h"

static const char config[] = "cluster { name = t }\n"
			     "datapath { interface = eth0 cluster_interface = eth1 }\n"
			     "node n1 { address = 10.78.0.1 }\n"
			     "node n2 { address = 10.78.0.2 }\n"
			     "node n3 { address = 10.78.0.3 }\n"
			     "service web { address = 10.77.0.100 port = 80 }\n"
			     "service api { address = 10.77.0.100 port = 8080 }\n";

static const char corosync[] = "totem.transport = knet\n"
			       "totem.crypto_cipher = aes256\n"
			       "totem.crypto_hash = sha256\n"
			       "totem.token = 1000\n"
			       "quorum.provider = corosync_votequorum\n"
			       "nodelist.local_node_pos = 0\n"
			       "nodelist.node.0.name = n1\n"
			       "nodelist.node.0.nodeid = 1\n"
			       "nodelist.node.0.ring0_addr = 10.78.0.1\n"
			       "nodelist.node.0.ring1_addr = 10.79.0.1\n"
			       "nodelist.node.1.name = n2\n"
			       "nodelist.node.1.nodeid = 2\n"
			       "nodelist.node.1.ring0_addr = 10.78.0.2\n"
			       "nodelist.node.1.ring1_addr = 10.79.0.2\n"
			       "nodelist.node.3.name = n3\n"
			       "nodelist.node.3.nodeid = 3\n"
			       "nodelist.node.3.ring0_addr = 10.78.0.3\n"
			       "nodelist.node.3.ring1_addr = 10.79.0.3\n"
			       "runtime.config.totem.token = 1000\n"
			       "runtime.config.totem.consensus = 1200\n"
			       "runtime.config.totem.interface.0.knet_ping_timeout = 1500\n"
			       "runtime.config.totem.interface.1.knet_ping_timeout = 1500\n"
			       "runtime.votequorum.two_node = 0\n"
			       "stats.knet.node2.link0.connected = 1\n"
			       "stats.knet.node2.link1.connected = 1\n"
			       "stats.srp.continuous_gather = 0\n"
			       "stats.srp.firewall_enabled_or_nic_failure = 0\n"
			       "quorate = 1\n";

#define MEMBER(name)                                                                                         \
	"{\"name\": \"" name "\", \"member\": true, \"reason\": \"\", \"refused\": \"\", "                   \
	"\"clock_ahead_ms\": 0, \"heard\": true, \"hears\": true, \"settings\": "                            \
	"{\"wscale\": \"10\", \"key\": \"aa\", \"kernel\": \"6.9\", \"tcp_rmem\": \"4096 131072 6291456\"}}"

static const char reply[] =
	"{\"version\": \"" EARSHOT_VERSION "\", \"datapath\": {\"state\": \"inspecting\"},"
	" \"membership\": {\"provider\": \"corosync\", \"connected\": true, \"quorate\": true, \"silent\": "
	"false,"
	" \"why\": \"\", \"phase\": \"stable\", \"phase_s\": 100.5},"
	" \"metrics\": {\"address\": \"10.78.0.1\", \"port\": 7351, \"error\": \"\"},"
	" \"nodes\": [" MEMBER("n1") "," MEMBER("n2") "," MEMBER("n3") "]}";

static const struct {
	const char *path;
	const char *text;
} tree[] = {
	{"proc/sys/net/ipv4/tcp_syncookies", "1\n"},
	{"proc/sys/net/ipv4/tcp_rfc1337", "0\n"},
	{"proc/sys/net/ipv4/tcp_max_tw_buckets", "131072\n"},
	{"proc/sys/net/ipv4/tcp_window_scaling", "1\n"},
	{"proc/sys/net/ipv4/tcp_sack", "1\n"},
	{"proc/sys/net/ipv4/tcp_timestamps", "1\n"},
	{"proc/sys/net/ipv4/tcp_ecn", "2\n"},
	{"proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"},
	{"proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n"},
	{"proc/sys/net/core/bpf_jit_enable", "1\n"},
	{"proc/sys/net/netfilter/nf_conntrack_tcp_loose", "1\n"},
	{"proc/sys/net/netfilter/nf_conntrack_count", "10\n"},
	{"proc/sys/net/netfilter/nf_conntrack_max", "262144\n"},
	{"proc/sys/net/netfilter/nf_conntrack_events", "2\n"},
	{"proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established", "432000\n"},
	{"proc/sys/net/ipv4/conf/all/rp_filter", "0\n"},
	{"proc/sys/net/ipv4/conf/eth0/rp_filter", "0\n"},
	{"proc/sys/net/ipv4/conf/eth1/rp_filter", "2\n"},
	{"proc/sys/net/ipv4/conf/lo/rp_filter", "0\n"},
	{"proc/sys/net/ipv4/conf/all/arp_ignore", "0\n"},
	{"proc/sys/net/ipv4/conf/eth0/arp_ignore", "1\n"},
	{"proc/sys/net/ipv4/conf/all/arp_announce", "0\n"},
	{"proc/sys/net/ipv4/conf/eth0/arp_announce", "2\n"},
	{"proc/sys/net/ipv4/conf/all/accept_local", "0\n"},
	{"proc/sys/net/ipv4/conf/lo/accept_local", "1\n"},
	{"proc/sys/net/ipv6/conf/eth0/disable_ipv6", "0\n"},
	{"proc/sys/net/ipv6/conf/eth1/disable_ipv6", "0\n"},
	{"proc/sys/net/ipv6/conf/lo/disable_ipv6", "0\n"},
	{"proc/net/dev_mcast",
	 "2    eth0            1     0     01005e000001\n2    eth0            1     0     03bf0a4d0064\n"},
	{"proc/net/packet", "sk       RefCnt Type Proto  Iface R Rmem   User   Inode\n"
			    "00000000c0ffee01 3      3    0003   1     1 0      0      41\n"
			    "00000000c0ffee02 3      3    88b5   1     1 0      0      42\n"},
	{"proc/net/sockstat",
	 "sockets: used 99\nTCP: inuse 3 orphan 0 tw 100 alloc 5 mem 0\nUDP: inuse 0 mem 0\n"},
	{"proc/net/route",
	 "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
	 "eth0\t00000000\tFE004D0A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"},
	{"var/lib/pacemaker/cib/cib.xml", "<cib/>\n"},
};

static char root[] = "/tmp/earshot-check-XXXXXX";
static struct es_conf *conf;
static struct es_facts facts;
static struct es_check check;

static inline void put(const char *path, const char *text)
{
	char full[256], *slash;
	FILE *file;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (slash = strchr(full + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(full, 0700);
		*slash = '/';
	}
	file = fopen(full, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static inline void take(const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s/%s", root, path);
	assert_int_equal(unlink(full), 0);
}

static inline void address_add(const char *interface, const char *text, unsigned int prefix,
			       unsigned int flags)
{
	struct es_facts_address *a = &facts.addresses[facts.address_count++];

	snprintf(a->interface, sizeof(a->interface), "%s", interface);
	a->prefix = prefix;
	a->flags = flags;
	assert_int_equal(es_conf_addr_parse(text, &a->address), 0);
}

static inline void listener_add(unsigned int port)
{
	struct es_sock_diag_listener *l = &facts.listeners[facts.listener_count++];

	l->port = port;
	l->backlog = 511;
}

static const struct es_facts_link good_link = {
	.index = 2,
	.flags = IFF_UP | IFF_RUNNING,
	.mtu = 1500,
	.carrier = 1,
	.mac = {2, 0, 0, 0, 0, 1},
};

/* A node on which all is well. */
static inline int setup(void **state)
{
	unsigned int i;

	(void)state;
	assert_int_equal(es_conf_parse(config, strlen(config), "t.conf", &conf, NULL), 0);
	conf->cluster.membership = ES_CONF_MEMBERSHIP_COROSYNC;
	snprintf(conf->cluster.key_file, sizeof(conf->cluster.key_file), "%s/key", root);
	assert_int_equal(es_keyfile_create(conf->cluster.key_file, NULL), 0);
	memset(&facts, 0, sizeof(facts));
	memset(&check, 0, sizeof(check));
	check.conf = conf;
	check.facts = &facts;
	facts.root = root;
	facts.attached = 1;
	facts.clock_synced = 1;
	facts.public = good_link;
	facts.cluster = good_link;
	facts.cluster.mtu = 9000;
	facts.addresses = calloc(8, sizeof(*facts.addresses));
	facts.listeners = calloc(8, sizeof(*facts.listeners));
	address_add("lo", "127.0.0.1", 8, IFF_UP | IFF_LOOPBACK);
	address_add("lo", "10.77.0.100", 32, IFF_UP | IFF_LOOPBACK);
	address_add("eth0", "10.77.0.1", 24, IFF_UP);
	address_add("eth1", "10.78.0.1", 24, IFF_UP);
	listener_add(80);
	listener_add(8080);
	for (i = 1; i < conf->node_count; i++) {
		facts.node_arp[i].answers = 1;
		facts.node_echo[i].small = facts.node_echo[i].full = 1;
	}
	facts.daemon.runs = 1;
	facts.daemon.status = json_tokener_parse(reply);
	facts.daemon.counters = json_tokener_parse("{\"counters\": []}");
	facts.corosync.text = strdup(corosync);
	for (i = 0; i < sizeof(tree) / sizeof(tree[0]); i++)
		put(tree[i].path, tree[i].text);
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	take("key");
	es_check_fini(&check);
	es_facts_fini(&facts);
	es_conf_free(&conf);
	return 0;
}

static inline int group_setup(void **state)
{
	(void)state;
	return mkdtemp(root) ? 0 : -1;
}

static inline int group_teardown(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command); /* NOLINT(cert-env33-c): a name of our own */
}

static inline void run_again(void)
{
	es_check_fini(&check);
	memset(check.totals, 0, sizeof(check.totals));
	es_check_run(&check);
}

/* Just this finding is not ok, and it says @words. */
static inline void expect_one(const char *id, enum es_check_severity severity, const char *words)
{
	size_t i, n = 0;

	run_again();
	for (i = 0; i < check.count; i++) {
		const struct es_check_finding *f = &check.findings[i];

		if (f->severity < ES_CHECK_UNCHECKED)
			continue;
		n++;
		if (strcmp(f->id, id) != 0 || f->severity != severity || !strstr(f->found, words))
			fail_msg("expected %s %s (%s), got %s %s: %s", es_check_severity_name(severity), id,
				 words, es_check_severity_name(f->severity), f->id, f->found);
		assert_true(f->why[strlen(f->why) - 1] == '.');
		if (severity > ES_CHECK_UNCHECKED)
			assert_non_null(f->action);
	}
	if (n != 1)
		fail_msg("%s: %zu findings that are not ok", id, n);
}

static inline const struct es_check_finding *finding(const char *id)
{
	size_t i;

	for (i = 0; i < check.count; i++)
		if (!strcmp(check.findings[i].id, id))
			return &check.findings[i];
	fail_msg("no finding %s", id);
	return NULL;
}

/* Each test has a node of its own, on which all is well at first. */
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
