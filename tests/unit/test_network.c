// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The daemon's demands on a node's interfaces. The tests run in a network namespace of their own, which has a
 * loopback interface only, and are skipped where nobody may make one.
 */
#include "tests/unit/cmocka_all.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inspector/datapath/network.h"
#include "inspector/machine/solicited.h"

static int is_apart;

static int group_setup(void **state)
{
	(void)state;
	is_apart = !unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNET : CLONE_NEWNET);
	return 0;
}

static void disable_ipv6(int value)
{
	FILE *file = fopen("/proc/sys/net/ipv6/conf/lo/disable_ipv6", "we");

	assert_non_null(file);
	assert_true(fprintf(file, "%d\n", value) > 0);
	assert_int_equal(fclose(file), 0);
}

/* If IPv6 is off, the node does not start for a service that has an IPv6 address, and says why. */
static void test_ipv6_is_off(void **state)
{
	struct es_conf *conf;
	struct es_conf_error err = {};
	struct es_network network;

	(void)state;
	if (!is_apart || access("/proc/sys/net/ipv6", F_OK))
		skip();
	conf = calloc(1, sizeof(*conf));
	assert_non_null(conf);
	strcpy(conf->datapath.interface, "lo");
	strcpy(conf->datapath.cluster_interface, "lo");
	conf->service_count = 2;
	conf->node_count = 1;
	conf->nodes[0].address = es_addr_from_v4(inet_addr("10.78.0.1"));
	disable_ipv6(1);
	assert_int_equal(es_network_read(conf, &network, &err), 0);
	conf->services[1].address6.b[0] = 0x20;
	assert_int_equal(es_network_read(conf, &network, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "a service has an IPv6 address, and IPv6 is off on lo: sysctl -w "
					 "net/ipv6/conf/lo/disable_ipv6=0"));
	memset(&conf->services[1].address6, 0, sizeof(conf->services[1].address6));
	assert_int_equal(inet_pton(AF_INET6, "fd00:78::1", conf->nodes[0].address.b), 1);
	assert_int_equal(es_network_read(conf, &network, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "the nodes' addresses are of IPv6, and IPv6 is off on lo"));
	disable_ipv6(0);
	assert_int_equal(es_network_read(conf, &network, &err), 0);
	free(conf);
}

/* A handover message has to fit into the private network's packets, and IPv6's headers are longer. */
static void test_packet_max(void **state)
{
	struct es_conf *conf = calloc(1, sizeof(*conf));

	(void)state;
	assert_non_null(conf);
	conf->node_count = 1;
	conf->nodes[0].address = es_addr_from_v4(inet_addr("10.78.0.1"));
	assert_int_equal(es_network_packet_max(conf, 1500, 1500), 1500 - 20 - 8 - 64);
	assert_int_equal(es_network_packet_max(conf, 1592, 1500), 1500);
	assert_int_equal(inet_pton(AF_INET6, "fd00:78::1", conf->nodes[0].address.b), 1);
	assert_int_equal(es_network_packet_max(conf, 1500, 1500), 1500 - 40 - 8 - 64);
	assert_int_equal(es_network_packet_max(conf, 1592, 1500), 1480);
	assert_int_equal(es_network_packet_max(conf, 1612, 1500), 1500);
	assert_int_equal(es_network_packet_max(conf, 100, 1500), 0);
	free(conf);
}

/* How many of this namespace's interfaces are in the group, as the kernel writes it. */
static unsigned int members(const char *group)
{
	FILE *file = fopen("/proc/net/igmp6", "re");
	unsigned int count = 0;
	char line[256];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		count += !!strstr(line, group);
	fclose(file);
	return count;
}

/*
 * The node is in the group of each service's address, once, as long as one has it. A reload that fails does
 * not change that.
 */
static void test_solicited(void **state)
{
	static const struct es_addr address = {.b = {0x20, 0x01, 0x0d, 0xb8, [13] = 0x12, 0x34, 0x56}};
	static const char group[] = "ff0200000000000000000001ff123456",
			  other[] = "ff0200000000000000000001ff123457";
	struct es_conf_error err = {};
	struct es_conf *conf;
	int fd = -1, next = -1;

	(void)state;
	if (!is_apart || access("/proc/net/igmp6", F_OK))
		skip();
	conf = calloc(1, sizeof(*conf));
	assert_non_null(conf);
	conf->service_count = 3;
	assert_int_equal(es_solicited_open(conf, 1, &fd, &err), 0);
	assert_int_equal(fd, -1);
	conf->services[0].address6 = conf->services[2].address6 = address;
	assert_int_equal(es_solicited_open(conf, 1, &fd, &err), 0);
	assert_true(fd >= 0);
	assert_int_equal(members(group), 1);
	conf->services[0].address6 = (struct es_addr){};
	conf->services[2].address6.b[15]++;
	assert_int_equal(es_solicited_open(conf, 1, &next, &err), 0);
	assert_true(members(group) == 1 && members(other) == 1); /* until it is known which one counts */
	es_solicited_replace(&next, -1);
	assert_true(next == -1 && members(group) == 1 && !members(other));
	assert_int_equal(es_solicited_open(conf, 1, &next, &err), 0);
	es_solicited_replace(&fd, next);
	assert_true(fd == next && !members(group) && members(other) == 1);
	/* A failed call leaves nothing behind. */
	next = -1;
	conf->services[0].address6 = address;
	assert_int_equal(es_solicited_open(conf, 4711, &next, &err), -ENODEV);
	assert_non_null(
		strstr(err.text, "group ff02::1:ff12:3456 of neighbours' questions cannot be joined"));
	assert_true(next == -1 && !members(group) && members(other) == 1);
	es_solicited_replace(&fd, -1);
	assert_true(fd == -1 && !members(other));
	free(conf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_packet_max),
					   cmocka_unit_test(test_ipv6_is_off),
					   cmocka_unit_test(test_solicited)};

	return cmocka_run_group_tests(tests, group_setup, NULL);
}
