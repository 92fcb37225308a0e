/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `earshot check` without a machine: a node on which all is well, as facts and as a tree of files, and then
 * one thing wrong after the other. Each must be named by the one check that it is meant for, and by no other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

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
#include "inspector/keyfile.h"

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
	"{\"name\": \"" name "\", \"member\": true, \"reason\": \"\", \"refused\": \"\", \"settings\": "     \
	"{\"wscale\": \"10\", \"key\": \"aa\", \"kernel\": \"6.9\", \"tcp_rmem\": \"4096 131072 6291456\"}}"

static const char reply[] =
	"{\"version\": \"" EARSHOT_VERSION "\", \"datapath\": {\"state\": \"inspecting\"},"
	" \"membership\": {\"provider\": \"corosync\", \"connected\": true, \"quorate\": true, \"silent\": "
	"false,"
	" \"why\": \"\", \"phase\": \"stable\", \"phase_s\": 100.5},"
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
	{"proc/net/dev_mcast",
	 "2    eth0            1     0     01005e000001\n2    eth0            1     0     03bf0a4d0064\n"},
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

static void put(const char *path, const char *text)
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

static void take(const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s/%s", root, path);
	assert_int_equal(unlink(full), 0);
}

static void address_add(const char *interface, const char *text, unsigned int prefix, unsigned int flags)
{
	struct es_facts_address *a = &facts.addresses[facts.address_count++];

	snprintf(a->interface, sizeof(a->interface), "%s", interface);
	a->prefix = prefix;
	a->flags = flags;
	assert_int_equal(es_conf_addr_parse(text, &a->address), 0);
}

static void listener_add(unsigned int port)
{
	struct es_facts_listener *l = &facts.listeners[facts.listener_count++];

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
static int setup(void **state)
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
	facts.corosync.text = strdup(corosync);
	for (i = 0; i < sizeof(tree) / sizeof(tree[0]); i++)
		put(tree[i].path, tree[i].text);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	take("key");
	es_check_fini(&check);
	es_facts_fini(&facts);
	es_conf_free(&conf);
	return 0;
}

static int group_setup(void **state)
{
	(void)state;
	return mkdtemp(root) ? 0 : -1;
}

static int group_teardown(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command); /* NOLINT(cert-env33-c): a name of our own */
}

static void run_again(void)
{
	es_check_fini(&check);
	memset(check.totals, 0, sizeof(check.totals));
	es_check_run(&check);
}

/* Just this finding is not ok, and it says @words. */
static void expect_one(const char *id, enum es_check_severity severity, const char *words)
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

static const struct es_check_finding *finding(const char *id)
{
	size_t i;

	for (i = 0; i < check.count; i++)
		if (!strcmp(check.findings[i].id, id))
			return &check.findings[i];
	fail_msg("no finding %s", id);
	return NULL;
}

static void test_all_well(void **state)
{
	size_t i;

	(void)state;
	run_again();
	for (i = 0; i < check.count; i++)
		if (check.findings[i].severity >= ES_CHECK_UNCHECKED)
			fail_msg("%s: %s", check.findings[i].id, check.findings[i].found);
	assert_non_null(strstr(finding("corosync.detection")->found, "2.2 s"));
	assert_int_equal(check.totals[ES_CHECK_ERROR] + check.totals[ES_CHECK_WARNING], 0);
}

static void test_files(void **state)
{
	static const struct {
		const char *path, *text, *id;
		enum es_check_severity severity;
		const char *words;
	} cases[] = {
		{"net/ipv4/tcp_syncookies", "0\n", "kernel.tcp_syncookies", ES_CHECK_ERROR, "= 0"},
		{"net/ipv4/tcp_rfc1337", "1\n", "kernel.tcp_rfc1337", ES_CHECK_ERROR, "= 1"},
		{"net/ipv4/tcp_max_tw_buckets", "0\n", "kernel.tcp_max_tw_buckets", ES_CHECK_ERROR, "= 0"},
		{"net/ipv4/tcp_max_tw_buckets", "110\n", "kernel.tcp_max_tw_buckets", ES_CHECK_WARNING,
		 "100 of at most 110"},
		{"net/ipv4/tcp_window_scaling", "0\n", "kernel.tcp_window_scaling", ES_CHECK_WARNING, "= 0"},
		{"net/ipv4/tcp_sack", "0\n", "kernel.tcp_sack", ES_CHECK_WARNING, "= 0"},
		{"net/ipv4/tcp_timestamps", "0\n", "kernel.tcp_timestamps", ES_CHECK_WARNING, "= 0"},
		{"net/ipv4/tcp_ecn", "0\n", "kernel.tcp_ecn", ES_CHECK_WARNING, "= 0"},
		{"net/ipv4/tcp_rmem", "4096 16384 6291456\n", "kernel.tcp_rmem", ES_CHECK_ERROR, "14600"},
		{"net/ipv4/tcp_rmem", "4096 131072 268435456\n", "kernel.window_scale", ES_CHECK_WARNING,
		 "67107840"},
		{"net/ipv4/ip_local_port_range", "7000 60999\n", "cluster.handover_port", ES_CHECK_WARNING,
		 "7350"},
		{"net/core/bpf_jit_enable", "0\n", "kernel.bpf_jit", ES_CHECK_WARNING, "= 0"},
		{"net/netfilter/nf_conntrack_tcp_loose", "0\n", "kernel.conntrack_loose", ES_CHECK_WARNING,
		 "= 0"},
		{"net/netfilter/nf_conntrack_count", "260000\n", "kernel.conntrack_table", ES_CHECK_WARNING,
		 "260000 of at most 262144"},
		{"net/ipv4/conf/eth0/arp_ignore", "0\n", "network.arp_ignore", ES_CHECK_ERROR,
		 "arp_ignore is 0"},
		{"net/ipv4/conf/eth0/arp_announce", "0\n", "network.arp_announce", ES_CHECK_ERROR,
		 "arp_announce is 0"},
		{"net/ipv4/conf/eth1/rp_filter", "1\n", "network.rp_filter", ES_CHECK_ERROR,
		 "strict) on eth1"},
		{"net/ipv4/conf/lo/rp_filter", "1\n", "network.rp_filter", ES_CHECK_ERROR, "strict) on lo"},
		{"net/ipv4/conf/lo/accept_local", "0\n", "network.accept_local", ES_CHECK_ERROR,
		 "accept_local is 0"},
		{"net/ipv4/tcp_sack", "none\n", "kernel.tcp_sack", ES_CHECK_UNCHECKED, "cannot be read"},
	};
	char path[128];
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(path, sizeof(path), "proc/sys/%s", cases[i].path);
		put(path, cases[i].text);
		expect_one(cases[i].id, cases[i].severity, cases[i].words);
		for (k = 0; k < sizeof(tree) / sizeof(tree[0]); k++)
			put(tree[k].path, tree[k].text);
	}
	take("proc/sys/net/ipv4/tcp_sack");
	expect_one("kernel.tcp_sack", ES_CHECK_UNCHECKED, "net/ipv4/tcp_sack cannot be read: No such file");
}

static void test_no_conntrack(void **state)
{
	(void)state;
	take("proc/sys/net/netfilter/nf_conntrack_tcp_loose");
	take("proc/sys/net/netfilter/nf_conntrack_count");
	run_again();
	assert_int_equal(finding("kernel.conntrack_loose")->severity, ES_CHECK_OK);
	assert_int_equal(finding("kernel.conntrack_table")->severity, ES_CHECK_OK);
}

static void test_rp_filter_public(void **state)
{
	(void)state;
	put("proc/sys/net/ipv4/conf/eth0/rp_filter", "1\n");
	run_again();
	assert_int_equal(finding("network.rp_filter_public")->severity, ES_CHECK_OK);
	put("proc/net/route", "eth1\t00000000\tFE004D0A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n");
	expect_one("network.rp_filter_public", ES_CHECK_WARNING, "on eth1");
	put("proc/net/route", "eth0\t00004D0A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n");
	expect_one("network.rp_filter_public", ES_CHECK_WARNING, "missing");
	/* the larger of the two counts */
	put("proc/sys/net/ipv4/conf/all/rp_filter", "2\n");
	run_again();
	assert_int_equal(finding("network.rp_filter_public")->severity, ES_CHECK_OK);
}

/* What the daemon will set is no fault while it does not run. */
static void test_before_the_daemon(void **state)
{
	(void)state;
	facts.daemon.runs = 0;
	facts.attached = 0;
	put("proc/net/dev_mcast", "");
	put("proc/sys/net/ipv4/conf/eth1/rp_filter", "1\n");
	put("proc/sys/net/ipv4/conf/lo/accept_local", "0\n");
	expect_one("members.daemon", ES_CHECK_UNCHECKED, "no earshotd");
	assert_int_equal(finding("network.cluster_mac")->severity, ES_CHECK_OK);
	assert_int_equal(finding("network.rp_filter")->severity, ES_CHECK_OK);
	assert_int_equal(finding("network.datapath")->severity, ES_CHECK_OK);
	/* But a node that has the service address answers for it already. */
	put("proc/sys/net/ipv4/conf/eth0/arp_ignore", "0\n");
	run_again();
	assert_int_equal(finding("network.arp_ignore")->severity, ES_CHECK_WARNING);
	facts.daemon.runs = 1;
	run_again();
	assert_int_equal(finding("network.cluster_mac")->severity, ES_CHECK_ERROR);
	assert_int_equal(finding("network.datapath")->severity, ES_CHECK_ERROR);
	assert_int_equal(finding("network.accept_local")->severity, ES_CHECK_ERROR);
}

static void test_links(void **state)
{
	(void)state;
	facts.public.flags = 0;
	expect_one("network.public", ES_CHECK_ERROR, "eth0 is down");
	facts.public = good_link;
	facts.cluster.carrier = 0;
	expect_one("network.private", ES_CHECK_ERROR, "eth1 has no carrier");
	facts.cluster.carrier = 1;
	facts.cluster.master = 7;
	expect_one("network.private", ES_CHECK_WARNING, "bridge or bond");
	facts.cluster.master = 0;
	facts.public.rc = -EIO;
	run_again();
	assert_int_equal(finding("network.public")->severity, ES_CHECK_UNCHECKED);
	facts.public.rc = -ENODEV;
	run_again();
	assert_int_equal(finding("network.public")->severity, ES_CHECK_ERROR);
	assert_int_equal(finding("network.mtu")->severity, ES_CHECK_UNCHECKED);
	facts.public = good_link;
	facts.public.lro = 1;
	expect_one("network.lro", ES_CHECK_ERROR, "LRO is on for eth0");
	facts.public.lro = 0;
	facts.cluster.lro = 1;
	expect_one("network.lro", ES_CHECK_ERROR, "LRO is on for eth1");
	facts.cluster.lro = -1;
	expect_one("network.lro", ES_CHECK_UNCHECKED, "does not say");
	facts.cluster.lro = 0;
	memcpy(conf->datapath.cluster_interface, conf->datapath.interface, sizeof(conf->datapath.interface));
	run_again();
	assert_int_equal(finding("network.apart")->severity, ES_CHECK_INFO);
	snprintf(conf->datapath.cluster_interface, sizeof(conf->datapath.cluster_interface), "eth1");
	facts.attached = 0;
	expect_one("network.datapath", ES_CHECK_ERROR, "not attached");
	facts.attached = -EPERM;
	expect_one("network.datapath", ES_CHECK_UNCHECKED, "root");
}

static void test_mtu(void **state)
{
	(void)state;
	facts.cluster.mtu = 1500;
	run_again();
	assert_int_equal(finding("network.mtu")->severity, ES_CHECK_INFO);
	assert_non_null(strstr(finding("network.mtu")->found, "at most 1368 bytes, 1460 if it were 1592"));
	facts.cluster.mtu = 1400;
	expect_one("network.mtu", ES_CHECK_WARNING, "at most 1268 bytes");
	facts.cluster.mtu = 600;
	expect_one("network.mtu", ES_CHECK_ERROR, "668 is the least");
	facts.cluster.mtu = 1500;
	conf->datapath.mtu = 9000;
	expect_one("network.mtu", ES_CHECK_ERROR, "eth1 has 1500");
}

static void test_unicast(void **state)
{
	static const unsigned char mac[6] = {2, 0xbf, 10, 77, 0, 100};

	(void)state;
	conf->datapath.mac_mode = ES_CONF_MAC_UNICAST;
	memcpy(conf->datapath.cluster_mac, mac, sizeof(mac));
	expect_one("network.cluster_mac", ES_CHECK_ERROR, "its own MAC only");
	facts.public.promiscuity = 1;
	run_again();
	assert_int_equal(finding("network.cluster_mac")->severity, ES_CHECK_OK);
	memcpy(facts.public.mac, mac, sizeof(mac));
	expect_one("network.cluster_mac", ES_CHECK_ERROR, "eth0's own");
}

static void test_addresses(void **state)
{
	struct es_facts_address *lo = &facts.addresses[1], *own = &facts.addresses[3];

	(void)state;
	conf->service_count = 1;
	facts.listener_count = 1;
	lo->prefix = 24;
	expect_one("network.service_address", ES_CHECK_ERROR, "10.77.0.100/24 on lo");
	lo->prefix = 32;
	address_add("eth0", "10.77.0.100", 24, IFF_UP);
	expect_one("network.service_address", ES_CHECK_ERROR, "is on eth0");
	facts.address_count--;
	lo->address.b[15]++;
	expect_one("network.service_address", ES_CHECK_ERROR, "no address of this node");
	lo->address.b[15]--;
	snprintf(own->interface, sizeof(own->interface), "eth2");
	expect_one("network.node_address", ES_CHECK_ERROR, "is on eth2, and cluster_interface is eth1");
	snprintf(own->interface, sizeof(own->interface), "eth1");
	own->prefix = 31;
	run_again();
	assert_int_equal(finding("network.nodes_near")->severity, ES_CHECK_WARNING);
	assert_int_equal(check.totals[ES_CHECK_WARNING], 2);
	own->address.b[15] = 9;
	run_again();
	assert_int_equal(finding("network.node_address")->severity, ES_CHECK_ERROR);
	facts.addresses_rc = -EIO;
	run_again();
	assert_int_equal(finding("network.service_address")->severity, ES_CHECK_UNCHECKED);
}

static void test_neighbours(void **state)
{
	static const unsigned char other[6] = {2, 0, 0, 0, 0, 9};

	(void)state;
	memcpy(facts.self_arp.mac[0], other, 6);
	facts.self_arp.answers = 1;
	expect_one("neighbours.own_address", ES_CHECK_ERROR, "02:00:00:00:00:09 has 10.78.0.1");
	facts.self_arp.answers = 0;
	/* A node answers for a service, with the cluster MAC: so it shall be. */
	memcpy(facts.service_arp[1].mac[0], conf->datapath.cluster_mac, 6);
	facts.service_arp[1].answers = 1;
	run_again();
	assert_int_equal(finding("neighbours.service_arp")->severity, ES_CHECK_OK);
	memcpy(facts.service_arp[1].mac[1], other, 6);
	facts.service_arp[1].answers = 2;
	expect_one("neighbours.service_arp", ES_CHECK_ERROR, "api: 02:00:00:00:00:09 answers");
	facts.service_arp[1].answers = 0;
	facts.node_arp[2].answers = 0;
	expect_one("neighbours.nodes", ES_CHECK_WARNING, "node n3: nobody");
	facts.node_arp[2].answers = 2;
	expect_one("neighbours.nodes", ES_CHECK_ERROR, "node n3: both");
	facts.node_arp[2].answers = 1;
	facts.node_echo[1].full = 0;
	expect_one("neighbours.path_mtu", ES_CHECK_ERROR,
		   "node n2 answers short packets at 10.78.0.2, but none of 9000");
	facts.node_echo[1].small = 0;
	expect_one("neighbours.path_mtu", ES_CHECK_UNCHECKED, "node n2 does not answer ping");
	facts.node_echo[1].rc = -EPERM;
	expect_one("neighbours.path_mtu", ES_CHECK_UNCHECKED, "root");
}

static void test_server(void **state)
{
	struct es_facts_listener *l = &facts.listeners[1];
	struct es_conf_service *service = &conf->services[1];

	(void)state;
	l->port = 81;
	expect_one("server.listen", ES_CHECK_ERROR, "service api: nothing listens on 10.77.0.100 port 8080");
	l->port = 8080;
	/* What a program hands over needs a server, too. */
	service->server_port = 8081;
	assert_int_equal(es_conf_addr_parse("127.0.0.1", &service->server_address), 0);
	expect_one("server.listen", ES_CHECK_ERROR, "service api: nothing listens on 127.0.0.1 port 8081");
	service->server_port = 0;
	l->v6 = 1;
	run_again();
	assert_int_equal(finding("server.listen")->severity, ES_CHECK_OK);
	l->v6only = 1;
	expect_one("server.listen", ES_CHECK_ERROR, "service api");
	l->v6 = l->v6only = 0;
	assert_int_equal(es_conf_addr_parse("10.77.0.1", &l->address), 0);
	expect_one("server.listen", ES_CHECK_ERROR, "service api");
	assert_int_equal(es_conf_addr_parse("10.77.0.100", &l->address), 0);
	l->mptcp = 1;
	expect_one("server.mptcp", ES_CHECK_ERROR, "port 8080 is one of MPTCP");
	l->mptcp = 0;
	l->backlog = 5;
	expect_one("server.backlog", ES_CHECK_WARNING, "of at most 5");
	l->backlog = 511;
	l->waiting = 512;
	expect_one("server.backlog", ES_CHECK_WARNING, "512 connections wait");
	facts.listeners_rc = -EPERM;
	run_again();
	assert_int_equal(check.totals[ES_CHECK_UNCHECKED], 3);
}

static void test_key(void **state)
{
	(void)state;
	assert_int_equal(chmod(conf->cluster.key_file, 0644), 0);
	expect_one("server.key", ES_CHECK_ERROR, "mode 0644");
	assert_int_equal(chmod(conf->cluster.key_file, 0600), 0);
	put("key", "nonsense\n");
	expect_one("server.key", ES_CHECK_ERROR, ":1: unknown line");
	conf->cluster.key_file[strlen(root)] = '.';
	expect_one("server.key", ES_CHECK_ERROR, "cannot be opened");
}

static void test_kernel(void **state)
{
	(void)state;
	facts.kernel_rc = -ENOTSUP;
	snprintf(facts.kernel_text, sizeof(facts.kernel_text), "no such thing");
	expect_one("kernel.reqsk", ES_CHECK_ERROR, "no such thing");
	facts.kernel_rc = 0;
	facts.programs_rc = -EINVAL;
	snprintf(facts.programs_text, sizeof(facts.programs_text), "verifier");
	expect_one("kernel.programs", ES_CHECK_ERROR, "verifier");
	facts.programs_rc = -EPERM;
	expect_one("kernel.programs", ES_CHECK_UNCHECKED, "root");
	facts.programs_rc = 0;
	facts.clock_synced = 0;
	expect_one("kernel.clock", ES_CHECK_WARNING, "clock");
	facts.clock_synced = 1;
	facts.firewall = (struct es_facts_firewall){.chains = 2, .dropping = 1, .name = "nft filter input"};
	expect_one("kernel.firewall", ES_CHECK_WARNING,
		   "2 packet filter chains for what comes in, nft filter input");
	facts.firewall.rc = -EPERM;
	expect_one("kernel.firewall", ES_CHECK_UNCHECKED, "cannot be read");
	facts.firewall = (struct es_facts_firewall){0};
	conf->datapath.receive_window_scale = 0;
	expect_one("kernel.window_scale", ES_CHECK_WARNING, "window of 65535 bytes, tcp_rmem 6291456");
	conf->datapath.receive_window_scale = 14;
	run_again();
	assert_int_equal(finding("kernel.window_scale")->severity, ES_CHECK_OK);
	put("proc/sys/net/ipv4/tcp_rmem", "4096 65536 6291456\n");
	expect_one("kernel.window_scale", ES_CHECK_WARNING, "steps of 16384 bytes");
}

static void test_cluster(void **state)
{
	(void)state;
	conf->cluster.membership = ES_CONF_MEMBERSHIP_STATIC;
	expect_one("cluster.membership", ES_CHECK_WARNING, "static");
	conf->cluster.membership = ES_CONF_MEMBERSHIP_COROSYNC;
	conf->nodes[2].weight = 0;
	run_again();
	assert_int_equal(finding("cluster.weights")->severity, ES_CHECK_INFO);
	assert_non_null(strstr(finding("cluster.weights")->found, "n3"));
	conf->nodes[1].weight = 0;
	expect_one("cluster.weights", ES_CHECK_WARNING, "n2, n3");
	conf->nodes[1].weight = conf->nodes[2].weight = 100;
	conf->cluster.virtual_nodes = 1;
	expect_one("cluster.virtual_nodes", ES_CHECK_WARNING, "with virtual_nodes = 1");
	conf->cluster.virtual_nodes = 63;
	check.self = -1;
	facts.self_arp.rc = -ENODATA;
	run_again();
	assert_int_equal(finding("cluster.self")->severity, ES_CHECK_ERROR);
	assert_int_equal(finding("network.node_address")->severity, ES_CHECK_UNCHECKED);
	assert_int_equal(finding("neighbours.nodes")->severity, ES_CHECK_UNCHECKED);
	conf->node_count = 1;
	check.self = 0;
	run_again();
	assert_int_equal(finding("cluster.size")->severity, ES_CHECK_WARNING);
}

/* Replaces the lines with @key by @line ("" takes them away), or adds it. */
static void corosync_set(const char *key, const char *value)
{
	char *text = facts.corosync.text, *at = strstr(text, key), *end, *changed;

	end = at ? strchr(at, '\n') + 1 : text;
	if (!at)
		at = text;
	assert_true(asprintf(&changed, "%.*s%s%s%s%s%s", (int)(at - text), text, value ? key : "",
			     value ? " = " : "", value ? value : "", value ? "\n" : "", end) > 0);
	free(text);
	facts.corosync.text = changed;
}

static void corosync_reset(void)
{
	free(facts.corosync.text);
	facts.corosync.text = strdup(corosync);
}

static void test_corosync(void **state)
{
	static const struct {
		const char *key, *value, *id;
		enum es_check_severity severity;
		const char *words;
	} cases[] = {
		{"quorum.provider", NULL, "corosync.provider", ES_CHECK_ERROR, "no quorum provider"},
		{"quorate", "0", "corosync.quorate", ES_CHECK_ERROR, "not quorate"},
		{"quorate", NULL, "corosync.quorate", ES_CHECK_UNCHECKED, "libquorum"},
		{"runtime.config.totem.token", "3650", "corosync.detection", ES_CHECK_WARNING, "after 4.8 s"},
		{"runtime.config.totem.token", "100", "corosync.token_fast", ES_CHECK_WARNING, "100 ms"},
		{"runtime.config.totem.interface.1.knet_ping_timeout", "500", "corosync.ping_timeout",
		 ES_CHECK_WARNING, "link 1 is 500 ms"},
		{"quorum.expected_votes", "1", "corosync.votes", ES_CHECK_ERROR, "two halves"},
		{"quorum.expected_votes", "5", "corosync.votes", ES_CHECK_WARNING, "5, and there are 3"},
		{"nodelist.node.1.quorum_votes", "2", "corosync.votes", ES_CHECK_WARNING, "4 votes"},
		{"quorum.last_man_standing", "1", "corosync.wait_for_all", ES_CHECK_WARNING,
		 "last_man_standing"},
		{"quorum.auto_tie_breaker", "1", "corosync.wait_for_all", ES_CHECK_WARNING,
		 "auto_tie_breaker"},
		{"nodelist.node.1.ring0_addr", "192.0.2.2", "corosync.network", ES_CHECK_WARNING,
		 "n2: corosync knows it by 192.0.2.2 only, not by 10.78.0.2"},
		{"nodelist.node.1.ring0_addr", "no such name", "corosync.nodes", ES_CHECK_UNCHECKED,
		 "no such name"},
		{"totem.crypto_hash", "none", "corosync.crypto", ES_CHECK_WARNING, "none"},
		{"totem.crypto_hash", NULL, "corosync.crypto", ES_CHECK_WARNING, "none"},
		{"stats.knet.node2.link1.connected", "0", "corosync.links_up", ES_CHECK_WARNING,
		 "link 1 to corosync's node 2 (10.79.0.2)"},
		{"stats.srp.continuous_gather", "50", "corosync.ring", ES_CHECK_ERROR, "50 tries"},
		{"stats.srp.firewall_enabled_or_nic_failure", "1", "corosync.ring", ES_CHECK_ERROR,
		 "firewall"},
		{"stats.srp.continuous_gather", NULL, "corosync.ring", ES_CHECK_UNCHECKED, "ring"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		corosync_set(cases[i].key, cases[i].value);
		if (!strcmp(cases[i].words, "no such name")) {
			/* known by its name, but the address stays open */
			run_again();
			assert_int_equal(finding("corosync.nodes")->severity, ES_CHECK_UNCHECKED);
		} else {
			expect_one(cases[i].id, cases[i].severity, cases[i].words);
		}
		corosync_reset();
	}
	corosync_set("totem.transport", "udpu");
	run_again();
	assert_int_equal(finding("corosync.crypto")->severity, ES_CHECK_WARNING);
	assert_non_null(strstr(finding("corosync.crypto")->found, "not knet"));
	assert_int_equal(finding("corosync.ping_timeout")->severity, ES_CHECK_OK);
}

static void test_corosync_nodes(void **state)
{
	struct es_cmap_node *nodes;

	(void)state;
	assert_int_equal(es_cmap_nodes(corosync, &nodes), 3);
	assert_int_equal(nodes[2].nodeid, 3);
	assert_int_equal(nodes[2].links, 2);
	assert_string_equal(nodes[2].names[1], "10.79.0.3");
	free(nodes);
	/* a node that only Earshot knows */
	corosync_set("nodelist.node.3.name", "other");
	corosync_set("nodelist.node.3.ring0_addr", "10.78.0.7");
	run_again();
	assert_int_equal(check.totals[ES_CHECK_ERROR], 1);
	assert_string_equal(finding("corosync.nodes")->found,
			    "node n3 (10.78.0.3) is not in corosync's nodelist");
	assert_string_equal(finding("corosync.strangers")->found,
			    "corosync's node 3 (10.78.0.7) is no node in t.conf");
	corosync_reset();
	/* one link; an even number of nodes */
	corosync_set("nodelist.node.0.ring1_addr", NULL);
	run_again();
	assert_int_equal(finding("corosync.links")->severity, ES_CHECK_INFO);
	corosync_reset();
	corosync_set("nodelist.node.4.nodeid", "4");
	corosync_set("nodelist.node.4.ring0_addr", "10.78.0.4");
	run_again();
	assert_int_equal(finding("corosync.even")->severity, ES_CHECK_INFO);
	assert_non_null(strstr(finding("corosync.even")->found, "silences all"));
	assert_int_equal(finding("corosync.votes")->severity, ES_CHECK_WARNING);
	free(facts.corosync.text);
	facts.corosync.text = strdup("totem.token = 1000\n");
	run_again();
	assert_int_equal(finding("corosync.nodes")->severity, ES_CHECK_UNCHECKED);
	assert_int_equal(finding("corosync.detection")->severity, ES_CHECK_UNCHECKED);
}

static void test_two_nodes(void **state)
{
	static const char stonith[] = "<primitive id=\"f\" class=\"stonith\"/>\n";

	(void)state;
	conf->node_count = 2;
	corosync_set("nodelist.node.3.ring0_addr", NULL);
	expect_one("corosync.two_nodes", ES_CHECK_WARNING, "either's death silences the other");
	corosync_set("runtime.votequorum.two_node", "1");
	expect_one("corosync.two_nodes", ES_CHECK_ERROR, "without fencing");
	put("var/lib/pacemaker/cib/cib.xml", stonith);
	expect_one("corosync.two_nodes", ES_CHECK_WARNING, "until Pacemaker has fenced one");
	put("var/lib/pacemaker/cib/cib.xml",
	    "<primitive class=\"stonith\"/><nvpair id=\"s\" name=\"stonith-enabled\" value=\"false\"/>");
	expect_one("corosync.two_nodes", ES_CHECK_ERROR, "without fencing");
	corosync_set("quorum.device.model", "net");
	run_again();
	assert_int_equal(check.totals[ES_CHECK_ERROR], 0);
	assert_int_equal(finding("corosync.two_nodes")->severity, ES_CHECK_OK);
	corosync_set("quorum.wait_for_all", "0");
	expect_one("corosync.wait_for_all", ES_CHECK_ERROR, "wait_for_all off");
}

static void test_corosync_out_of_reach(void **state)
{
	(void)state;
	facts.corosync.rc = -ECONNREFUSED;
	run_again();
	assert_int_equal(finding("corosync.running")->severity, ES_CHECK_ERROR);
	assert_int_equal(check.totals[ES_CHECK_UNCHECKED], 1);
	facts.corosync.rc = -ETIMEDOUT;
	run_again();
	assert_non_null(strstr(finding("corosync.running")->found, "does not answer"));
	facts.corosync.rc = -ELIBACC;
	run_again();
	assert_non_null(strstr(finding("corosync.running")->found, "libraries"));
	facts.corosync.rc = -EACCES;
	run_again();
	assert_int_equal(finding("corosync.running")->severity, ES_CHECK_UNCHECKED);
	assert_non_null(strstr(finding("corosync.running")->found, "uidgid"));
	conf->cluster.membership = ES_CONF_MEMBERSHIP_STATIC;
	facts.corosync.rc = -ECONNREFUSED;
	run_again();
	assert_int_equal(finding("corosync.running")->severity, ES_CHECK_OK);
	/* One that runs beside a static cluster is advised, not accused. */
	facts.corosync.rc = 0;
	corosync_set("quorate", "0");
	run_again();
	assert_int_equal(finding("corosync.quorate")->severity, ES_CHECK_WARNING);
	assert_int_equal(check.totals[ES_CHECK_ERROR], 0);
}

static struct json_object *member(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	assert_true(json_object_object_get_ex(object, key, &value));
	return value;
}

static struct json_object *node_of(size_t node)
{
	return json_object_array_get_idx(member(facts.daemon.status, "nodes"), node);
}

static void set(struct json_object *object, const char *key, const char *value)
{
	json_object_object_add(object, key, json_object_new_string(value));
}

static void status_reset(void)
{
	json_object_put(facts.daemon.status);
	facts.daemon.status = json_tokener_parse(reply);
}

static void test_settings(void **state)
{
	(void)state;
	set(member(node_of(1), "settings"), "wscale", "7");
	expect_one("members.settings", ES_CHECK_ERROR, "wscale: n1 and n3 10, n2 7");
	set(member(node_of(1), "settings"), "wscale", "10");
	set(member(node_of(2), "settings"), "other", "1"); /* told by one only */
	run_again();
	assert_int_equal(check.totals[ES_CHECK_ERROR], 0);
	set(member(node_of(1), "settings"), "other", "2");
	expect_one("members.settings", ES_CHECK_ERROR, "other: n2 2, n3 1");
	status_reset();
	set(member(node_of(2), "settings"), "key", "bb aa"); /* while keys rotate */
	expect_one("members.settings", ES_CHECK_WARNING, "key: n1 and n2 aa, n3 bb aa");
	status_reset();
	set(member(node_of(2), "settings"), "kernel", "6.12");
	run_again();
	assert_int_equal(finding("members.settings")->severity, ES_CHECK_INFO);
	status_reset();
	json_object_object_del(node_of(2), "settings");
	expect_one("members.settings", ES_CHECK_UNCHECKED, "node n3 has not told");
}

static void test_members(void **state)
{
	struct json_object *datapath, *membership;

	(void)state;
	datapath = member(facts.daemon.status, "datapath");
	set(datapath, "state", "fallback");
	expect_one("members.state", ES_CHECK_ERROR, "inspects nothing");
	set(datapath, "state", "detached");
	expect_one("members.state", ES_CHECK_ERROR, "detached");
	set(datapath, "state", "inspecting");
	set(facts.daemon.status, "version", "0.0.1");
	expect_one("members.version", ES_CHECK_WARNING, "version 0.0.1");
	status_reset();
	set(node_of(1), "refused", "another key");
	expect_one("members.refused", ES_CHECK_ERROR, "node n2 is refused: another key");
	status_reset();
	json_object_object_add(node_of(1), "member", json_object_new_boolean(0));
	set(node_of(1), "reason", "its daemon died");
	expect_one("members.away", ES_CHECK_WARNING, "node n2 is no member: its daemon died");
	status_reset();
	membership = member(facts.daemon.status, "membership");
	set(membership, "phase", "holding");
	expect_one("members.membership", ES_CHECK_WARNING, "in phase holding for 100 s");
	json_object_object_add(membership, "phase_s", json_object_new_double(0.5));
	run_again();
	assert_int_equal(finding("members.membership")->severity, ES_CHECK_OK);
	json_object_object_add(membership, "silent", json_object_new_boolean(1));
	set(membership, "why", "no quorum");
	set(member(facts.daemon.status, "datapath"), "state", "silent");
	expect_one("members.membership", ES_CHECK_ERROR, "this node is silent: no quorum");
	status_reset();
	set(member(facts.daemon.status, "membership"), "provider", "static");
	expect_one("members.settings", ES_CHECK_UNCHECKED, "static cluster");
	json_object_put(facts.daemon.status);
	facts.daemon.status = NULL;
	expect_one("members.daemon", ES_CHECK_UNCHECKED, "does not answer");
}

static void test_print(void **state)
{
	char *text = NULL;
	size_t size;
	FILE *file;

	(void)state;
	put("proc/sys/net/ipv4/tcp_sack", "0\n");
	facts.clock_synced = -EPERM;
	run_again();
	file = open_memstream(&text, &size);
	es_check_print(&check, 0, file);
	fclose(file);
	assert_non_null(strstr(
		text, "kernel\n"
		      "  warning      tcp_sack  net.ipv4.tcp_sack = 0. Connections from nodes that have it "
		      "on are refused here. Do: sysctl -w net.ipv4.tcp_sack=1\n"
		      "  not checked  clock     the clock's state cannot be read: Operation not permitted\n"
		      "\n"
		      "node n1 of cluster t, 0 errors, 1 warning, 1 not checked, "));
	free(text);
	text = NULL;
	file = open_memstream(&text, &size);
	es_check_print(&check, 1, file);
	fclose(file);
	assert_non_null(strstr(text, "  ok           tcp_syncookies      net.ipv4.tcp_syncookies = 1\n"));
	free(text);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_all_well),
		TEST(test_files),
		TEST(test_no_conntrack),
		TEST(test_rp_filter_public),
		TEST(test_before_the_daemon),
		TEST(test_links),
		TEST(test_mtu),
		TEST(test_unicast),
		TEST(test_addresses),
		TEST(test_neighbours),
		TEST(test_server),
		TEST(test_key),
		TEST(test_kernel),
		TEST(test_cluster),
		TEST(test_corosync),
		TEST(test_corosync_nodes),
		TEST(test_two_nodes),
		TEST(test_corosync_out_of_reach),
		TEST(test_settings),
		TEST(test_members),
		TEST(test_print),
	};

	return cmocka_run_group_tests_name("check", tests, group_setup, group_teardown);
}
