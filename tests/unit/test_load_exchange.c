// SPDX-License-Identifier: GPL-2.0-or-later
/* What nodes tell each other of their loads, from the socket: a flood of it is taken bit by bit. */
#include "cmocka_all.h"
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "inspector/load/exchange.h"

#define FLOOD 200 /* as many as a socket's buffer takes everywhere */

static unsigned int heard;

static void on_load(void *ctx, unsigned int node, const struct es_wire_load *load)
{
	(void)ctx;
	(void)load;
	assert_int_equal(node, 1);
	heard++;
}

static void cluster_init(struct es_cluster *cluster, struct es_conf *conf, unsigned int self)
{
	memset(cluster, 0, sizeof(*cluster));
	conf->node_count = 2;
	cluster->conf = conf;
	cluster->self = self;
	for (unsigned int i = 0; i < 2; i++) {
		cluster->handover_address[i].sin_family = AF_INET;
		cluster->handover_address[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK + i);
	}
}

static void test_flood(void **state)
{
	static struct es_cluster here, there;
	static struct es_load_exchange mine, others;
	static struct es_keys keys = {.count = 1};
	static struct es_conf conf;
	struct es_wire_load load = {.has_requests = 1};
	struct sockaddr_in to;
	socklen_t len = sizeof(to);

	(void)state;
	cluster_init(&here, &conf, 0);
	cluster_init(&there, &conf, 1);
	assert_int_equal(es_load_exchange_open(&mine, &here), 0);
	assert_int_equal(getsockname(mine.fd, (struct sockaddr *)&to, &len), 0);
	there.handover_address[0] = to;
	assert_int_equal(es_load_exchange_open(&others, &there), 0);
	for (int i = 0; i < FLOOD; i++)
		assert_int_equal(sendto(others.fd, "no load", 7, 0, (struct sockaddr *)&to, len), 7);
	es_load_exchange_send(&others, &there, &keys, &load);
	assert_int_equal(es_load_exchange_drain(&mine, &here, &keys, on_load, NULL), 1);
	assert_int_equal(mine.refused, ES_LOADS_AT_A_TIME);
	assert_int_equal(heard, 0);
	assert_int_equal(es_load_exchange_drain(&mine, &here, &keys, on_load, NULL), 0);
	assert_int_equal(mine.refused, FLOOD);
	assert_int_equal(heard, 1);
	es_load_exchange_close(&mine);
	es_load_exchange_close(&others);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
