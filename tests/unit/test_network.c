// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the daemon wants of a node's interfaces. In a network namespace of its own, which has a loopback interface
 * only; skipped where nobody may make one.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inspector/datapath/network.h"

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

/* Where it is off, the node does not start for a service that has an address of it, and says why. */
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
	disable_ipv6(1);
	assert_int_equal(es_network_read(conf, &network, &err), 0);
	conf->services[1].address6.b[0] = 0x20;
	assert_int_equal(es_network_read(conf, &network, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "IPv6 is off on lo: sysctl -w net/ipv6/conf/lo/disable_ipv6=0"));
	disable_ipv6(0);
	assert_int_equal(es_network_read(conf, &network, &err), 0);
	free(conf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_ipv6_is_off)};

	return cmocka_run_group_tests(tests, group_setup, NULL);
}
