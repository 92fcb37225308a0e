// SPDX-License-Identifier: GPL-2.0-or-later
/* The cost that questions about strays may have on the cluster network. */
#include "cmocka_all.h"
#include "tests/unit/stray_world.h"

#define UDP	  (14 + 20 + 8)
#define SHARE(of) ((of) / (double)NODES)
#define SMALL	  40000
#define LARGE	  160000
#define PART	  0.75

static double cluster_bytes;

/* All nodes answer all that they are asked; what the others' messages and answers are is added up. */
static void all_answer(void)
{
	struct message m;
	int any;

	do {
		any = 0;
		for (int node = 0; node < NODES; node++) {
			while (taken_by(node, &m)) {
				any = 1;
				cluster_bytes += node == SELF ? 0 : UDP + sizeof(m.h) + m.len;
				answer(&m, 0);
				cluster_bytes += node == SELF ? 0 : UDP + sizeof(m.h) + m.len;
			}
		}
	} while (any);
}

/* So many strays, @rate in a second, each of another client; returns what they are on the public network. */
static double flood(unsigned int count, unsigned int rate, const char *text, enum es_record_flow flow)
{
	static unsigned int next = 1;
	double frame = 14 + 40 + (double)strlen(text);

	for (unsigned int i = 0; i < count; i++) {
		next = flow_find(next + 1, 1);
		stray_of(next, text, ES_TCP_ACK, flow);
		in.now_ns += 1000000000ULL / rate;
		if (i % 16)
			continue;
		es_inspect_deadlines(&in);
		es_handover_flush(in.sender);
		all_answer();
	}
	return count * (frame < 60 ? 60 : frame);
}

/*
 * The cost of a flood on the cluster network, whatever the versions and whether or not SYNs go before it, is
 * three quarters of what the flood brings, beside what is free. Three nodes that understand questions about
 * many can ask about nearly all for that.
 */
static void test_flood(void **state)
{
	static const enum es_record_flow flows[] = {ES_FLOW_NEW, ES_FLOW_HEARD};
	unsigned int seconds = 5, rate = 4000;

	(void)state;
	for (int version = 0; version < 2; version++) {
		for (int heard = 0; heard < 2; heard++) {
			double brought = 0,
			       free = SHARE(heard ? LARGE : SMALL) * ((heard ? 4 : 16) + seconds);
			unsigned long long asked = COUNT(strays), limited = COUNT(stray_limited);

			memset(&in.strays, 0, sizeof(in.strays));
			versions(version ? ES_WIRE_UNDERSTANDS_STRAYS : 0);
			cluster_bytes = 0;
			for (unsigned int i = 0; i < seconds; i++)
				brought += flood(rate, rate, "x", flows[heard]);
			asked = COUNT(strays) - asked;
			limited = COUNT(stray_limited) - limited;
			assert_int_equal(asked + limited, seconds * rate);
			assert_true(cluster_bytes <= PART * brought + free);
			/* Some are asked about all the time. */
			assert_true(cluster_bytes > 0.9 * PART * brought);
			assert_true(asked > (version ? seconds * rate / 2 : 500));
			/* The others' budget is whole. */
			in.now_ns += 1000000000ULL;
			asked = COUNT(strays);
			flood(20, 20, REQUEST, flows[!heard]);
			assert_int_equal(COUNT(strays) - asked, 20);
		}
	}
}

/* A flood of the very same kind, of small segments: whose segments are as large as requests are is asked
 * about nearly always. */
static void test_request_beside_flood(void **state)
{
	char request[300] = {};
	unsigned long long asked = 0, before;

	(void)state;
	memset(request, 'x', sizeof(request) - 1);
	versions(ES_WIRE_UNDERSTANDS_STRAYS);
	flood(60000, 20000, "x", ES_FLOW_HEARD);
	assert_true(COUNT(stray_limited) > 5000);
	for (unsigned int i = 0; i < 200; i++) {
		flood(20, 20000, "x", ES_FLOW_HEARD);
		before = COUNT(strays);
		flood(1, 20000, request, ES_FLOW_HEARD);
		asked += COUNT(strays) - before;
	}
	assert_true(asked > 120);
}

/* The bound is the cluster's: the more workers, the less each. */
static void test_workers(void **state)
{
	unsigned long long alone, one_of_four;

	(void)state;
	flood(3000, 3000, "x", ES_FLOW_NEW);
	alone = COUNT(strays);
	memset(&in.strays, 0, sizeof(in.strays));
	params.count = 4;
	flood(3000, 3000, "x", ES_FLOW_NEW);
	one_of_four = COUNT(strays) - alone;
	assert_true((double)(alone - one_of_four) * 4 * 2 * (UDP + 64 + 41) >
		    SHARE((double)SMALL) * 16 * 3 / 4 - 2000);
}

/* One client's address has a part of what is free; a client that is quiet loses nothing by that. */
static void test_source(void **state)
{
	unsigned int number = flow_find(1, 1), other = flow_find(number + 1, 1);
	const double question = 4 * 2 * (UDP + 64 + 41), brought = PART * (14 + 40 + sizeof(REQUEST) - 1);
	double most = SHARE((double)LARGE) * 4 / 8;
	unsigned long long asked;

	(void)state;
	for (int i = 0; i < 200; i++)
		stray_of(number, REQUEST, ES_TCP_ACK, ES_FLOW_HEARD);
	asked = COUNT(strays);
	assert_true((double)asked * (question - brought) <= most &&
		    (double)(asked + 2) * (question - brought) > most);
	stray_of(other, REQUEST, ES_TCP_ACK, ES_FLOW_HEARD);
	assert_int_equal(COUNT(strays), asked + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_flood, setup, teardown),
		cmocka_unit_test_setup_teardown(test_request_beside_flood, setup, teardown),
		cmocka_unit_test_setup_teardown(test_workers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_source, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
