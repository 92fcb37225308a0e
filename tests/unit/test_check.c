// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot check` without a machine: a node on which all is well, as facts and as a tree of files, and then
 * one thing wrong after the other. Each must be named by the one check that it is meant for, and by no other.
 */
#include "cmocka_all.h"
#include "check_world.h"

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

/* Things without which the daemon does not start. */
static void test_startup(void **state)
{
	(void)state;
	snprintf(conf->inspector.program_group, sizeof(conf->inspector.program_group), "apps");
	run_again();
	assert_int_equal(finding("cluster.program_group")->severity, ES_CHECK_OK);
	facts.startup.no_group = 1;
	expect_one("cluster.program_group", ES_CHECK_ERROR, "program_group = apps: there is no such group");
	conf->inspector.program_group[0] = 0;
	facts.startup.no_group = 0;
	snprintf(conf->services[0].document_root, sizeof(conf->services[0].document_root), "/no/such");
	facts.startup.root_rc[0] = -ENOENT;
	expect_one("cluster.document_root", ES_CHECK_WARNING, "document_root = /no/such: No such file");
	facts.startup.root_rc[0] = 0;
	snprintf(facts.startup.plugins_text, sizeof(facts.startup.plugins_text), "c:3: plugin x: what");
	expect_one("cluster.plugins", ES_CHECK_ERROR, "c:3: plugin x: what");
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

static void packet_socket(unsigned int ifindex)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "sk       RefCnt Type Proto  Iface R Rmem   User   Inode\n"
		 "00000000c0ffee01 3      3    0003   %u     1 0      0      41\n"
		 "00000000c0ffee02 3      3    0800   %u     1 0      0      42\n",
		 ifindex, ifindex);
	put("proc/net/packet", text);
}

static void test_packet_sockets(void **state)
{
	char path[256];

	(void)state;
	facts.public.index = 1000;
	facts.cluster.index = 1001;
	put("proc/77/comm", "dhcp client\n");
	put("proc/77/fd/0", "");
	snprintf(path, sizeof(path), "%s/proc/77/fd/5", root);
	assert_int_equal(symlink("socket:[42]", path), 0);
	packet_socket(0);
	expect_one("network.packet_sockets", ES_CHECK_ERROR,
		   "dhcp client (process 77) has a packet socket for IP on all interfaces, inode 42");
	packet_socket(facts.public.index);
	expect_one("network.packet_sockets", ES_CHECK_ERROR, "on eth0");
	packet_socket(facts.cluster.index);
	expect_one("network.packet_sockets", ES_CHECK_ERROR, "on eth1");
	assert_non_null(strstr(finding("network.packet_sockets")->action, "process 77"));
	assert_int_equal(unlink(path), 0);
	expect_one("network.packet_sockets", ES_CHECK_ERROR, "a process that cannot be seen");
	facts.datapath = ES_DATAPATH_MODULE;
	run_again();
	assert_int_equal(finding("network.packet_sockets")->severity, ES_CHECK_OK);
	facts.datapath = ES_DATAPATH_BPF;
	packet_socket(1002);
	run_again();
	assert_int_equal(finding("network.packet_sockets")->severity, ES_CHECK_OK);
}

/* A setting that breaks one datapath may be right for another. */
static void test_netfilter(void **state)
{
	static const struct {
		const char *path, *text, *id;
		enum es_check_severity severity;
		const char *words;
	} cases[] = {
		{"net/ipv4/tcp_syncookies", "2\n", "kernel.tcp_syncookies", ES_CHECK_ERROR, "= 2"},
		{"net/ipv4/tcp_syncookies", "0\n", "kernel.tcp_syncookies", ES_CHECK_OK, "= 0"},
		{"net/netfilter/nf_conntrack_tcp_loose", "0\n", "kernel.conntrack_loose", ES_CHECK_OK,
		 "itself"},
		{"net/netfilter/nf_conntrack_count", "260000\n", "kernel.conntrack_table", ES_CHECK_WARNING,
		 "260000 of at most 262144"},
		{"net/netfilter/nf_conntrack_events", "0\n", "kernel.conntrack_memory", ES_CHECK_WARNING,
		 "events = 0"},
		{"net/netfilter/nf_conntrack_tcp_timeout_established", "60\n", "kernel.conntrack_memory",
		 ES_CHECK_WARNING, "60 seconds"},
		{"net/netfilter/nf_conntrack_tcp_timeout_established", "3600\n", "kernel.conntrack_memory",
		 ES_CHECK_OK, "3600 seconds"},
	};
	char path[128];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		facts.datapath = ES_DATAPATH_NETFILTER;
		snprintf(path, sizeof(path), "proc/sys/%s", cases[i].path);
		put(path, cases[i].text);
		run_again();
		assert_int_equal(finding(cases[i].id)->severity, cases[i].severity);
		assert_non_null(strstr(finding(cases[i].id)->found, cases[i].words));
		for (size_t k = 0; k < sizeof(tree) / sizeof(tree[0]); k++)
			put(tree[k].path, tree[k].text);
	}
	/* Why none that costs less. */
	facts.kernel_rc = -ENOTSUP;
	strcpy(facts.kernel_text, "it is too old");
	strcpy(facts.module_text, "it is not installed");
	run_again();
	assert_non_null(strstr(finding("kernel.reqsk")->found, "not bpf: it is too old"));
	assert_non_null(strstr(finding("kernel.reqsk")->found, "not module: it is not installed"));
	/* The finding names what the kernel lacks, and the module that has it. */
	facts.programs_rc = -EOPNOTSUPP;
	strcpy(facts.programs_text, "netfilter datapath: the kernel has no SYNPROXY (CONFIG_NFT_SYNPROXY)");
	run_again();
	assert_int_equal(finding("kernel.programs")->severity, ES_CHECK_ERROR);
	assert_string_equal(finding("kernel.programs")->found, facts.programs_text);
	assert_non_null(strstr(finding("kernel.programs")->action, "nft_synproxy"));
}

/* A setting that the daemon will make is no fault while it does not run. */
static void test_before_the_daemon(void **state)
{
	(void)state;
	facts.daemon.runs = 0;
	facts.attached = 0;
	put("proc/net/dev_mcast", "");
	put("proc/sys/net/ipv4/conf/eth1/rp_filter", "1\n");
	put("proc/sys/net/ipv4/conf/lo/accept_local", "0\n");
	expect_one("members.daemon", ES_CHECK_UNCHECKED, "no earshotd");
	facts.daemon.rc = -EACCES;
	expect_one("members.daemon", ES_CHECK_UNCHECKED, "run it as root");
	facts.daemon.rc = -ECONNREFUSED;
	expect_one("members.daemon", ES_CHECK_ERROR, "earshotd died");
	facts.daemon.rc = -EAGAIN;
	expect_one("members.daemon", ES_CHECK_ERROR, "earshotd hangs");
	facts.daemon.rc = -ENOENT;
	run_again();
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

static void test_server(void **state)
{
	struct es_sock_diag_listener *l = &facts.listeners[1];
	struct es_conf_service *service = &conf->services[1];

	(void)state;
	l->port = 81;
	expect_one("server.listen", ES_CHECK_ERROR, "service api: nothing listens on 10.77.0.100 port 8080");
	l->port = 8080;
	/* Connections that a program hands over need a server, too. */
	service->server_port = 8081;
	assert_int_equal(es_conf_addr_parse("127.0.0.1", &service->server_address), 0);
	expect_one("server.listen", ES_CHECK_ERROR, "service api: nothing listens on 127.0.0.1 port 8081");
	/* And IPv6 connections need another server, if the service has an IPv6 address. */
	l[1] = (struct es_sock_diag_listener){.port = 8081, .backlog = 511};
	l[2] = (struct es_sock_diag_listener){.port = 8080, .backlog = 511, .is_v6 = 1, .is_v6only = 1};
	facts.listener_count = 4;
	assert_int_equal(es_conf_addr_parse("::1", &service->server_address6), 0);
	run_again();
	assert_int_equal(finding("server.listen")->severity, ES_CHECK_OK);
	assert_int_equal(es_conf_addr_parse("2001:db8::20", &service->address6), 0);
	run_again();
	assert_int_equal(finding("server.listen")->severity, ES_CHECK_ERROR);
	assert_non_null(
		strstr(finding("server.listen")->found, "service api: nothing listens on ::1 port 8081"));
	service->address6 = (struct es_addr){};
	facts.listener_count = 2;
	service->server_port = 0;
	l->is_v6 = 1;
	run_again();
	assert_int_equal(finding("server.listen")->severity, ES_CHECK_OK);
	l->is_v6only = 1;
	expect_one("server.listen", ES_CHECK_ERROR, "service api");
	l->is_v6 = l->is_v6only = 0;
	assert_int_equal(es_conf_addr_parse("10.77.0.1", &l->address), 0);
	expect_one("server.listen", ES_CHECK_ERROR, "service api");
	assert_int_equal(es_conf_addr_parse("10.77.0.100", &l->address), 0);
	l->is_mptcp = 1;
	expect_one("server.mptcp", ES_CHECK_ERROR, "port 8080 is one of MPTCP");
	facts.datapath = ES_DATAPATH_MODULE;
	run_again();
	assert_int_equal(finding("server.mptcp")->severity, ES_CHECK_ERROR);
	facts.datapath = ES_DATAPATH_NETFILTER;
	run_again();
	assert_int_equal(finding("server.mptcp")->severity, ES_CHECK_OK);
	facts.datapath = ES_DATAPATH_BPF;
	l->is_mptcp = 0;
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
	/* To root, that says nothing: the kernel has refused it. */
	facts.is_root = 1;
	snprintf(facts.programs_text, sizeof(facts.programs_text),
		 "the kernel refuses the program es_public");
	expect_one("kernel.programs", ES_CHECK_ERROR, "es_public");
	facts.programs_rc = 0;
	run_again();
	assert_int_equal(finding("kernel.programs")->severity, ES_CHECK_INFO);
	assert_non_null(strstr(finding("kernel.programs")->found, "es_public"));
	facts.programs_text[0] = '\0';
	facts.is_root = 0;
	facts.clock_synced = 0;
	expect_one("kernel.clock", ES_CHECK_WARNING, "clock");
	facts.clock_synced = 1;
	facts.firewall = (struct es_facts_firewall){.chains = 2, .dropping = 1, .name = "nft filter input"};
	expect_one("kernel.firewall", ES_CHECK_WARNING,
		   "2 packet filter chains for what comes in, nft filter input");
	facts.firewall = (struct es_facts_firewall){.nat = 1, .nat_name = "nft t p"};
	expect_one("kernel.firewall", ES_CHECK_WARNING, "1 nat chain for what comes in, nft t p first");
	facts.firewall.rc = -EPERM;
	expect_one("kernel.firewall", ES_CHECK_UNCHECKED, "cannot be read");
	facts.firewall = (struct es_facts_firewall){0};
	facts.zones = (struct es_facts_zones){.rules = 1, .first = 7, .name = "nft t p"};
	assert_int_equal(finding("kernel.conntrack_zone")->severity, ES_CHECK_OK);
	conf->datapath.receive_window_scale = 0;
	expect_one("kernel.window_scale", ES_CHECK_WARNING, "window of 65535 bytes, tcp_rmem 6291456");
	conf->datapath.receive_window_scale = 14;
	run_again();
	assert_int_equal(finding("kernel.window_scale")->severity, ES_CHECK_OK);
	put("proc/sys/net/ipv4/tcp_rmem", "4096 65536 6291456\n");
	expect_one("kernel.window_scale", ES_CHECK_WARNING, "steps of 16384 bytes");
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
	const struct CMUnitTest tests[] = {
		TEST(test_all_well),	     TEST(test_files),
		TEST(test_startup),	     TEST(test_no_conntrack),
		TEST(test_rp_filter_public), TEST(test_packet_sockets),
		TEST(test_netfilter),	     TEST(test_before_the_daemon),
		TEST(test_server),	     TEST(test_key),
		TEST(test_kernel),	     TEST(test_print),
	};

	return cmocka_run_group_tests_name("check", tests, group_setup, group_teardown);
}
