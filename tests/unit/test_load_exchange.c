// SPDX-License-Identifier: GPL-2.0-or-later
/* Messages about loads between nodes, read from the socket: a flood of them is taken bit by bit. */
#include "cmocka_all.h"
#include <errno.h>
#include <netinet/in.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "inspector/base/clock.h"
#include "inspector/base/wall.h"
#include "inspector/peers/exchange.h"

#define FLOOD 200 /* as many as a socket's buffer takes everywhere */

static unsigned int heard;
static int is_v6;

static int setup(void **state)
{
	(void)state;
	heard = 0;
	is_v6 = 0;
	return 0;
}

/* Both nodes have the loopback address, and ports of their own. */
static int setup_v6(void **state)
{
	setup(state);
	is_v6 = 1;
	return 0;
}

static const struct es_load_exchange *receiving;

static void on_load(void *ctx, unsigned int node, const struct es_wire_load *load)
{
	(void)ctx;
	(void)load;
	assert_int_equal(node, 1);
	assert_int_equal(receiving->ifindex, if_nametoindex("lo"));
	heard++;
}

static void cluster_init(struct es_cluster *cluster, struct es_conf *conf, unsigned int self)
{
	memset(cluster, 0, sizeof(*cluster));
	conf->node_count = 2;
	cluster->conf = conf;
	cluster->self = self;
	for (unsigned int i = 0; i < 2; i++) {
		struct es_addr address = es_addr_from_v4(htonl(INADDR_LOOPBACK + i));

		if (is_v6)
			memcpy(&address, &in6addr_loopback, sizeof(address));
		cluster->handover_address[i] = es_sockaddr_of(&address, 0);
	}
}

static void test_flood(void **state)
{
	static struct es_cluster here, there;
	struct es_cluster *cluster = &here;
	static struct es_load_exchange mine, others;
	static struct es_keys keys = {.count = 1};
	static struct es_conf conf;
	struct es_wire_load load = {.has_requests = 1};
	union es_sockaddr to = {};
	int discovers = 0;
	socklen_t len = sizeof(to), discovers_len = sizeof(discovers);

	(void)state;
	cluster_init(&here, &conf, 0);
	cluster_init(&there, &conf, 1);
	assert_int_equal(es_load_exchange_open(&mine, &here), 0);
	assert_int_equal(getsockopt(mine.fd, is_v6 ? IPPROTO_IPV6 : IPPROTO_IP,
				    is_v6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &discovers, &discovers_len),
			 0);
	assert_int_equal(discovers, IP_PMTUDISC_INTERFACE); /* the same number in both families */
	receiving = &mine;
	assert_int_equal(getsockname(mine.fd, &to.sa, &len), 0);
	there.handover_address[0] = to;
	assert_int_equal(es_load_exchange_open(&others, &there), 0);
	for (int i = 0; i < FLOOD; i++)
		assert_int_equal(sendto(others.fd, "no load", 7, 0, &to.sa, len), 7);
	es_load_exchange_send(&others, &there, &keys, &load);
	assert_int_equal(es_load_exchange_drain(&mine, &cluster, &keys, on_load, NULL), 1);
	assert_int_equal(mine.refused, ES_LOADS_AT_A_TIME);
	assert_int_equal(heard, 0);
	assert_int_equal(es_load_exchange_drain(&mine, &cluster, &keys, on_load, NULL), 0);
	assert_int_equal(mine.refused, FLOOD);
	assert_int_equal(heard, 1);
	es_load_exchange_close(&mine);
	es_load_exchange_close(&others);
}

static struct es_evidence_wire testimony;

static void on_evidence(void *ctx, unsigned int node, const struct es_evidence_wire *evidence)
{
	(void)ctx;
	assert_int_equal(node, 1);
	testimony = *evidence;
	heard++;
}

/* Evidence that a node sends about another one is taken once, and by its key only. */
static void test_evidence(void **state)
{
	static struct es_cluster here, there;
	struct es_cluster *cluster = &here;
	static struct es_load_exchange mine, others;
	static struct es_keys keys = {.count = 1}, wrong = {.count = 1, .key[0].handover.k0 = 1};
	static struct es_conf conf;
	const struct es_evidence_wire said = {.address = 1, .prefix = 2, .request = 3, .tag = 4};
	union es_sockaddr to = {};
	socklen_t len = sizeof(to);

	(void)state;
	cluster_init(&here, &conf, 0);
	cluster_init(&there, &conf, 1);
	assert_int_equal(es_load_exchange_open(&mine, &here), 0);
	assert_int_equal(getsockname(mine.fd, &to.sa, &len), 0);
	there.handover_address[0] = to;
	assert_int_equal(es_load_exchange_open(&others, &there), 0);
	mine.evidence = on_evidence;
	es_load_exchange_testify(&others, &there, &wrong, 0, &said);
	es_load_exchange_testify(&others, &there, &keys, 0, &said);
	assert_int_equal(es_load_exchange_drain(&mine, &cluster, &keys, on_load, NULL), 0);
	assert_int_equal(mine.refused, 1);
	assert_int_equal(heard, 1);
	assert_memory_equal(&testimony, &said, sizeof(said));
	es_load_exchange_close(&mine);
	es_load_exchange_close(&others);
}

static struct es_grant_wire grant;

static void on_grant(void *ctx, unsigned int node, const struct es_grant_wire *word)
{
	(void)ctx;
	assert_int_equal(node, 1);
	grant = *word;
	heard++;
}

/* A lease that is asked for or granted: by its key, and a recording means nothing. */
static void test_grant(void **state)
{
	static struct es_cluster here, there;
	struct es_cluster *cluster = &here;
	static struct es_load_exchange mine, others;
	static struct es_keys keys = {.count = 1}, wrong = {.count = 1, .key[0].handover.k0 = 1};
	static struct es_conf conf;
	const struct es_grant_wire said = {.ring = 1, .number = 2, .granted = 3, .lease_ms = 4, .to = 5};
	struct es_loads_message recording;
	union es_sockaddr to = {};
	socklen_t len = sizeof(to);

	(void)state;
	cluster_init(&here, &conf, 0);
	cluster_init(&there, &conf, 1);
	assert_int_equal(es_load_exchange_open(&mine, &here), 0);
	assert_int_equal(getsockname(mine.fd, &to.sa, &len), 0);
	there.handover_address[0] = to;
	assert_int_equal(es_load_exchange_open(&others, &there), 0);
	mine.grant = on_grant;
	es_load_exchange_grant(&others, &there, &wrong, 0, &said);
	assert_int_equal(es_load_exchange_drain(&mine, &cluster, &keys, on_load, NULL), 0);
	assert_int_equal(heard, 0);
	es_load_exchange_grant(&others, &there, &keys, 0, &said);
	assert_int_equal(recv(mine.fd, &recording, sizeof(recording), MSG_PEEK), sizeof(recording));
	assert_int_equal(es_load_exchange_drain(&mine, &cluster, &keys, on_load, NULL), 0);
	assert_int_equal(heard, 1);
	assert_memory_equal(&grant, &said, sizeof(said));
	assert_int_equal(sendto(others.fd, &recording, sizeof(recording), 0, &to.sa, len), sizeof(recording));
	assert_int_equal(es_load_exchange_drain(&mine, &cluster, &keys, on_load, NULL), 0);
	assert_int_equal(heard, 1);
	assert_int_equal(mine.refused, 2);
	es_load_exchange_close(&mine);
	es_load_exchange_close(&others);
}

static unsigned int told_node, behind_node;
static __u64 told, behind;

static void on_outrun(void *ctx, unsigned int node, __u64 number)
{
	(void)ctx;
	told_node = node;
	told = number;
}

static void on_answered(void *ctx, unsigned int node, __u64 by)
{
	(void)ctx;
	behind_node = node;
	behind = by;
}

/* A node that is behind its former life is told where to go on, and nobody is told what is no news. */
static void test_behind(void **state)
{
	static struct es_cluster here, there;
	static struct es_load_exchange mine, former, now;
	static struct es_keys keys = {.count = 1};
	static struct es_conf conf;
	struct es_wire_load load = {.has_requests = 1}, got;
	struct es_load_exchange *lives[] = {&former, &now};
	union es_sockaddr to = {};
	socklen_t len = sizeof(to);
	unsigned int node;

	(void)state;
	cluster_init(&here, &conf, 0);
	cluster_init(&there, &conf, 1);
	assert_int_equal(es_load_exchange_open(&mine, &here), 0);
	receiving = &mine;
	assert_int_equal(getsockname(mine.fd, &to.sa, &len), 0);
	there.handover_address[0] = to;
	mine.answered = on_answered;
	es_wall_set(0, 3600ULL * 1000000000 * 24 * 365 * 70);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(es_load_exchange_open(lives[i], &there), 0);
		assert_int_equal(getsockname(lives[i]->fd, &here.handover_address[1].sa, &len), 0);
		lives[i]->outrun = on_outrun;
		es_load_exchange_send(lives[i], &there, &keys, &load);
		assert_int_equal(es_load_exchange_receive(&mine, &here, &keys, &node, &got),
				 i ? -EBADMSG : 1);
		es_wall_set(0, 0); /* the next life's numbers are the right time's */
	}
	assert_true(behind == former.sequence - now.sequence && behind_node == 1);
	assert_int_equal(es_load_exchange_receive(&now, &there, &keys, &node, &got), -EBADMSG);
	assert_true(told == former.sequence && told_node == 0 && !now.refused);
	/* The former life is not behind. */
	told = 0;
	es_sockaddr_port_set(&here.handover_address[1], 0);
	assert_int_equal(getsockname(former.fd, &here.handover_address[1].sa, &len), 0);
	mine.answered_ns[1] = 0;
	es_load_exchange_send(&now, &there, &keys, &load);
	assert_int_equal(es_load_exchange_receive(&mine, &here, &keys, &node, &got), -EBADMSG);
	assert_int_equal(es_load_exchange_receive(&former, &there, &keys, &node, &got), -EBADMSG);
	assert_true(!told && !former.refused);
	/* And not more often than that. */
	es_load_exchange_send(&now, &there, &keys, &load);
	assert_int_equal(es_load_exchange_receive(&mine, &here, &keys, &node, &got), -EBADMSG);
	assert_int_equal(es_load_exchange_receive(&former, &there, &keys, &node, &got), 0);
	es_load_exchange_close(&mine);
	es_load_exchange_close(&former);
	es_load_exchange_close(&now);
}

static unsigned int idle_told = ~0u;

static void on_idle(void *ctx, unsigned int node, unsigned int idle)
{
	(void)ctx;
	assert_int_equal(node, 1);
	idle_told = idle;
}

/* The message goes to those nodes that understand it. */
static void test_idle(void **state)
{
	static struct es_cluster here, there;
	static struct es_load_exchange mine, other;
	static struct es_keys keys = {.count = 1};
	static struct es_conf conf;
	_Atomic unsigned char understands[ES_NODES_MAX] = {};
	struct es_wire_load load = {.has_requests = 1}, got;
	union es_sockaddr to = {};
	socklen_t len = sizeof(to);
	unsigned int node;

	(void)state;
	cluster_init(&here, &conf, 0);
	cluster_init(&there, &conf, 1);
	assert_int_equal(es_load_exchange_open(&mine, &here), 0);
	assert_int_equal(es_load_exchange_open(&other, &there), 0);
	assert_int_equal(getsockname(mine.fd, &to.sa, &len), 0);
	there.handover_address[0] = to;
	mine.idle = on_idle;
	es_load_exchange_tell_idle(&other, &there, &keys, understands, 70000);
	assert_int_equal(es_load_exchange_receive(&mine, &here, &keys, &node, &got), 0);
	understands[0] = ES_WIRE_UNDERSTANDS_FATE;
	es_load_exchange_tell_idle(&other, &there, &keys, understands, 70000);
	es_load_exchange_send(&other, &there, &keys, &load);
	assert_int_equal(es_load_exchange_receive(&mine, &here, &keys, &node, &got), -EBADMSG); /* no load */
	assert_int_equal(idle_told, 70000);
	assert_int_equal(es_load_exchange_receive(&mine, &here, &keys, &node, &got), 1);
	/* One that is numbered before what was heard was recorded. */
	idle_told = ~0u;
	mine.heard[1] = ~0ULL;
	mine.answered_ns[1] = es_clock_now_ns(); /* it need not be told */
	es_load_exchange_tell_idle(&other, &there, &keys, understands, 3);
	assert_int_equal(es_load_exchange_receive(&mine, &here, &keys, &node, &got), -EBADMSG);
	assert_true(mine.refused == 1 && idle_told == ~0u);
	es_load_exchange_close(&mine);
	es_load_exchange_close(&other);
}

static unsigned int taken;

static void on_takes(void *ctx, unsigned int node, unsigned int packet_max, unsigned int makes, __u64 lacks)
{
	(void)ctx;
	assert_true(node == 1 && packet_max == 1400 && makes == 1 && lacks == 0x8000000000000001ULL);
	taken++;
}

/* The length is that of the first version's message; what follows it is read all the same. */
static void test_takes(void **state)
{
	static struct es_cluster here, there;
	static struct es_load_exchange mine, other;
	static struct es_keys keys = {.count = 1};
	static struct es_conf conf;
	_Atomic unsigned char understands[ES_NODES_MAX] = {ES_WIRE_UNDERSTANDS_FATE};
	struct es_wire_load got;
	union es_sockaddr to = {};
	socklen_t len = sizeof(to);
	unsigned int node;

	(void)state;
	cluster_init(&here, &conf, 0);
	cluster_init(&there, &conf, 1);
	assert_int_equal(es_load_exchange_open(&mine, &here), 0);
	assert_int_equal(es_load_exchange_open(&other, &there), 0);
	assert_int_equal(getsockname(mine.fd, &to.sa, &len), 0);
	there.handover_address[0] = to;
	mine.takes = on_takes;
	es_load_exchange_tell_takes(&other, &there, &keys, understands, 1400, 1, 0x8000000000000001ULL);
	assert_int_equal(es_load_exchange_receive(&mine, &here, &keys, &node, &got), -EBADMSG); /* no load */
	assert_true(taken == 1 && !mine.refused);
	es_load_exchange_close(&mine);
	es_load_exchange_close(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_flood, setup),
		cmocka_unit_test_setup(test_behind, setup),
		cmocka_unit_test_setup(test_evidence, setup),
		cmocka_unit_test_setup(test_grant, setup),
		cmocka_unit_test_setup(test_idle, setup),
		cmocka_unit_test_setup(test_takes, setup),
		{"test_flood (IPv6)", test_flood, setup_v6, NULL, NULL},
		{"test_behind (IPv6)", test_behind, setup_v6, NULL, NULL},
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
