// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot check` without a machine (test_check.c): links, addresses, and who else has them.
 */
#include "cmocka_all.h"
#include "check_world.h"

static const char group6[] = "2    eth0            ff0200000000000000000001ff000010     1 00000004 0\n";

/* The first service gets an IPv6 address, and the node all that it needs. Returns where it is on lo. */
static struct es_facts_address *address6_add(void)
{
	assert_int_equal(es_conf_addr_parse("2001:db8::10", &conf->services[0].address6), 0);
	put("proc/net/igmp6", group6);
	facts.daemon.runs = 1;
	facts.listeners[0].is_v6 = 1;
	address_add("eth0", "fe80::1", 64, IFF_UP);
	address_add("lo", "2001:db8::10", 128, IFF_UP | IFF_LOOPBACK);
	return &facts.addresses[facts.address_count - 1];
}

/* Where no service has an IPv6 address, nobody needs it. */
static void test_ipv6(void **state)
{
	static const char *const interface[] = {"eth0", "eth1", "lo"};
	char path[128];

	(void)state;
	put("proc/sys/net/ipv6/conf/eth0/disable_ipv6", "1\n");
	run_again();
	assert_int_equal(finding("network.ipv6")->severity, ES_CHECK_OK);
	put("proc/sys/net/ipv6/conf/eth0/disable_ipv6", "0\n");
	address6_add();
	run_again();
	assert_int_equal(finding("network.ipv6")->severity, ES_CHECK_OK);
	for (unsigned int i = 0; i < sizeof(interface) / sizeof(interface[0]); i++) {
		snprintf(path, sizeof(path), "proc/sys/net/ipv6/conf/%s/disable_ipv6", interface[i]);
		put(path, "1\n");
		expect_one("network.ipv6", ES_CHECK_ERROR, interface[i]);
		put(path, "0\n");
	}
	take("proc/sys/net/ipv6/conf/eth1/disable_ipv6");
	expect_one("network.ipv6", ES_CHECK_UNCHECKED, "eth1/disable_ipv6 cannot be read: No such file");
	put("proc/sys/net/ipv6/conf/eth1/disable_ipv6", "0\n");
	take("proc/net/igmp6");
}

/*
 * A service's IPv6 address needs more: its place, a server that listens, and the addresses by which
 * neighbours are heard and asked.
 */
static void test_address6(void **state)
{
	struct es_facts_address *on_lo = address6_add();

	(void)state;
	run_again();
	assert_int_equal(finding("network.service_address")->severity, ES_CHECK_OK);
	assert_int_equal(finding("network.link_local")->severity, ES_CHECK_OK);
	assert_int_equal(finding("network.solicited")->severity, ES_CHECK_OK);
	assert_int_equal(finding("server.listen")->severity, ES_CHECK_OK);

	on_lo->prefix = 64;
	expect_one("network.service_address", ES_CHECK_ERROR,
		   "2001:db8::10/64 on lo makes that network's way");
	on_lo->prefix = 128;
	facts.listeners[0].is_v6 = 0;
	expect_one("server.listen", ES_CHECK_ERROR, "nothing listens on 2001:db8::10 port 80");
	facts.listeners[0].is_v6 = 1;
	put("proc/net/igmp6", "2    eth1            ff0200000000000000000001ff000010     1 00000004 0\n");
	expect_one("network.solicited", ES_CHECK_ERROR, "eth0 is not in the multicast group ff02::1:ff00:10");
	facts.daemon.runs = 0;
	run_again();
	assert_int_equal(finding("network.solicited")->severity, ES_CHECK_OK);
	facts.daemon.runs = 1;
	take("proc/net/igmp6");
	expect_one("network.solicited", ES_CHECK_UNCHECKED, "/proc/net/igmp6 cannot be read");
	put("proc/net/igmp6", group6);
	snprintf(facts.addresses[4].interface, sizeof(facts.addresses[4].interface), "eth1");
	expect_one("network.link_local", ES_CHECK_ERROR, "eth0 has no link-local address");
	facts.address_count -= 2;
	run_again();
	assert_int_equal(finding("network.service_address")->severity, ES_CHECK_ERROR);
	/* One that has no address of IPv4 needs none. */
	memset(&conf->services[0].address, 0, sizeof(conf->services[0].address));
	conf->service_count = 1;
	address_add("eth0", "fe80::1", 64, IFF_UP);
	address_add("lo", "2001:db8::10", 128, IFF_UP | IFF_LOOPBACK);
	run_again();
	assert_int_equal(finding("network.service_address")->severity, ES_CHECK_OK);
	assert_int_equal(finding("server.listen")->severity, ES_CHECK_OK);
	take("proc/net/igmp6");
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
	expect_one("network.service_address", ES_CHECK_ERROR, "not an address of this node");
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
	/* Neighbours' answers for an IPv6 address are judged alike. */
	conf->services[0].address6 = (struct es_addr){.b = {0x20, 0x01, 0x0d, 0xb8, [15] = 7}};
	memcpy(facts.service_ndp[0].mac[0], conf->datapath.cluster_mac, 6);
	facts.service_ndp[0].answers = 1;
	run_again();
	assert_int_equal(finding("neighbours.service_arp")->severity, ES_CHECK_OK);
	memcpy(facts.service_ndp[0].mac[0], other, 6);
	run_again();
	assert_int_equal(finding("neighbours.service_arp")->severity, ES_CHECK_ERROR);
	assert_non_null(strstr(finding("neighbours.service_arp")->found,
			       "02:00:00:00:00:09 answers neighbours' solicitations for 2001:db8::7"));
	facts.service_ndp[0] = (struct es_facts_answer){.rc = -EADDRNOTAVAIL};
	run_again();
	assert_int_equal(finding("neighbours.service_arp")->severity, ES_CHECK_UNCHECKED);
	/* The finding from ARP is told although IPv6 could not be asked. */
	facts.service_arp[1].answers = 2;
	run_again();
	assert_int_equal(finding("neighbours.service_arp")->severity, ES_CHECK_ERROR);
	assert_int_equal(check.totals[ES_CHECK_UNCHECKED], 2); /* that, and the daemon */
	facts.service_arp[1].answers = 0;
	facts.service_ndp[0].rc = 0;
	conf->services[0].address6 = (struct es_addr){};
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
	facts.node_echo[1] = facts.node_echo[2];
	facts.node_route[1] = (struct es_facts_route){.mtu = 552, .expires_s = 599};
	expect_one("neighbours.route_mtu", ES_CHECK_WARNING,
		   "node n2: an ICMP error has said that no packet of more than 552 bytes reaches 10.78.0.2, "
		   "which the kernel believes for 599 s more");
	assert_non_null(strstr(finding("neighbours.route_mtu")->action, "ip route flush cache"));
}

/* The same for nodes whose addresses are IPv6 ones. */
static void test_nodes_of_ipv6(void **state)
{
	struct es_facts_address *own = &facts.addresses[3];

	(void)state;
	for (unsigned int i = 0; i < conf->node_count; i++) {
		memset(&conf->nodes[i].address, 0, sizeof(conf->nodes[i].address));
		conf->nodes[i].address.b[0] = 0xfd;
		conf->nodes[i].address.b[15] = (__u8)(i + 1);
	}
	own->address = conf->nodes[0].address;
	own->prefix = 64;
	run_again();
	assert_int_equal(finding("network.node_address")->severity, ES_CHECK_OK);
	assert_int_equal(finding("network.nodes_near")->severity, ES_CHECK_OK);
	assert_int_equal(finding("network.ipv6")->severity, ES_CHECK_OK);
	assert_int_equal(finding("neighbours.nodes")->severity, ES_CHECK_OK);
	own->prefix = 127;
	run_again();
	assert_int_equal(finding("network.nodes_near")->severity, ES_CHECK_WARNING);
	own->prefix = 64;
	put("proc/sys/net/ipv6/conf/eth0/disable_ipv6", "1\n");
	run_again();
	assert_int_equal(finding("network.ipv6")->severity, ES_CHECK_OK);
	put("proc/sys/net/ipv6/conf/eth0/disable_ipv6", "0\n");
	put("proc/sys/net/ipv6/conf/eth1/disable_ipv6", "1\n");
	run_again();
	assert_int_equal(finding("network.ipv6")->severity, ES_CHECK_ERROR);
	assert_non_null(strstr(finding("network.ipv6")->found, "the nodes' addresses are of IPv6"));
	put("proc/sys/net/ipv6/conf/eth1/disable_ipv6", "0\n");
	facts.node_echo[2].small = facts.node_echo[2].full = 0;
	run_again();
	assert_int_equal(finding("neighbours.nodes")->severity, ES_CHECK_WARNING);
	assert_non_null(strstr(finding("neighbours.nodes")->found, "node n3: nobody on eth1 answers ping"));
	facts.cluster.mtu = 1500;
	run_again();
	assert_non_null(strstr(finding("network.mtu")->found, "at most 1348 bytes, 1460 if it were 1612"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_ipv6),	  TEST(test_address6), TEST(test_links),     TEST(test_mtu),
		TEST(test_nodes_of_ipv6), TEST(test_unicast),  TEST(test_addresses), TEST(test_neighbours),
	};

	return cmocka_run_group_tests_name("check_addresses", tests, group_setup, group_teardown);
}
