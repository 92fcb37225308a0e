// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A segment that nobody takes: all nodes are asked, twice, and the client is told only if none of them has
 * its connection.
 */
#include "cmocka_all.h"
#include "tests/unit/inspect_world.h"

#define RSTS COUNT(send_failed) /* there is no raw socket */

static void stray(unsigned int number, const char *text, uint8_t flags)
{
	uint8_t bytes[1500];
	struct es_record record = segment(number, 1, text, bytes);

	record.kind = ES_RECORD_STRAY;
	bytes[33] = flags;
	es_inspect_record(&in, &record, bytes);
	es_handover_flush(in.sender);
}

/* Asked in turn, twice; @absent (or -1) is not. */
static void all_say_no(struct message *m, int absent)
{
	for (int round = 0; round < 2; round++) {
		for (int node = 0; node < NODES; node++) {
			if (node == absent)
				continue;
			assert_int_equal(sent_to(m), node);
			assert_int_equal(m->h.kind, ES_HANDOVER_STRAY);
			assert_int_equal(RSTS, 0);
			nack(m, ES_NACK_NOT_HERE);
		}
	}
	assert_int_equal(sent_to(m), -1);
}

static void test_nobodys(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct message m;

	(void)state;
	stray(number, REQUEST, ES_TCP_ACK | ES_TCP_PSH);
	all_say_no(&m, -1);
	assert_int_equal(RSTS, 1);
	assert_int_equal(COUNT(strays), 1);
	assert_int_equal(COUNT(stray_resets), 1);
	/* No more of it than is needed, with what the RST must know. */
	assert_int_equal(m.len, 41);
	assert_int_equal(m.packet[40], 'G');
	assert_int_equal(COUNT(nacks) + COUNT(no_target) + COUNT(requests), 0);
	for (unsigned int i = 0; i < NODES; i++)
		assert_true(es_cluster_is_target(cluster, &health, i, in.now_ns));
}

static void test_fin(void **state)
{
	struct message m;

	(void)state;
	stray(flow_find(1, 1), "", ES_TCP_ACK | ES_TCP_FIN);
	all_say_no(&m, -1);
	assert_int_equal(m.len, 40);
	assert_int_equal(m.packet[33], ES_TCP_ACK | ES_TCP_FIN);
	assert_int_equal(RSTS, 1);
}

/* Whoever has it, in whichever round, says nothing; nor does who is not there. */
static void test_silence(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct message m;

	(void)state;
	for (int answers = 0; answers < 2 * NODES; answers++) {
		stray(number, REQUEST, ES_TCP_ACK | ES_TCP_PSH);
		for (int i = 0; i < answers; i++) {
			assert_int_equal(sent_to(&m), i % NODES);
			nack(&m, ES_NACK_NOT_HERE);
		}
		assert_int_equal(sent_to(&m), answers % NODES);
		assert_int_equal(sent_to(&m), -1);
	}
	assert_int_equal(COUNT(strays), 2 * NODES);
	assert_int_equal(RSTS, 0);
}

/* What has crashed has nothing any more. What has left in order keeps what it has. */
static void test_members(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct message m;

	(void)state;
	for (enum es_node_state s = ES_NODE_UP; s <= ES_NODE_ABSENT; s++) {
		memset(in.count, 0, sizeof(in.count));
		es_health_set_state(&health, 1, s);
		stray(number, REQUEST, ES_TCP_ACK);
		all_say_no(&m, s == ES_NODE_ABSENT ? 1 : -1);
		assert_int_equal(RSTS, 1);
	}
	/* Alone. */
	memset(in.count, 0, sizeof(in.count));
	for (unsigned int i = 0; i < NODES; i++)
		es_health_set_state(&health, i, ES_NODE_ABSENT);
	stray(number, REQUEST, ES_TCP_ACK);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(sent_to(&m), SELF);
		nack(&m, ES_NACK_NOT_HERE);
	}
	assert_int_equal(RSTS, 1);
}

/* Only the flow's inspecting node speaks, and only with a lease. */
static void test_not_mine(void **state)
{
	struct message m;

	(void)state;
	stray(flow_find(1, 0), REQUEST, ES_TCP_ACK);
	assert_int_equal(sent_to(&m), -1);
	assert_int_equal(COUNT(not_mine), 1);
	stray(flow_find(1, 1), REQUEST, ES_TCP_ACK);
	for (int i = 0; i < 2 * NODES; i++) {
		assert_int_equal(sent_to(&m), i % NODES);
		lease_ns = i == 2 * NODES - 1 ? NOW_NS : 0;
		nack(&m, ES_NACK_NOT_HERE);
	}
	assert_int_equal(RSTS, 0);
	assert_int_equal(COUNT(not_mine), 2);
	assert_int_equal(COUNT(strays), 1);
}

/* A flood of them costs so many questions in a second. */
static void test_limit(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct message m;
	int asked = 0;

	(void)state;
	for (int second = 1; second <= 2; second++) {
		for (int i = 0; i < 3000; i++) {
			stray(number, REQUEST, ES_TCP_ACK);
			asked += sent_to(&m) == 0;
		}
		assert_int_equal(asked, 1000 * second);
		assert_int_equal(COUNT(stray_limited), 2000 * second);
		in.now_ns += 1000000000ULL;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nobodys, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fin, setup, teardown),
		cmocka_unit_test_setup_teardown(test_silence, setup, teardown),
		cmocka_unit_test_setup_teardown(test_members, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_mine, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limit, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
