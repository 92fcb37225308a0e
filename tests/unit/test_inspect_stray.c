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

/* Asked in turn, twice. */
static void all_say_no(struct message *m)
{
	for (int round = 0; round < 2; round++) {
		for (int node = 0; node < NODES; node++) {
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
	all_say_no(&m);
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
	all_say_no(&m);
	assert_int_equal(m.len, 40);
	assert_int_equal(m.packet[33], ES_TCP_ACK | ES_TCP_FIN);
	assert_int_equal(RSTS, 1);
}

/* Whoever has it, in whichever round, says so; who is not there says nothing. */
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
		if (answers & 1)
			nack(&m, ES_NACK_HERE);
		assert_int_equal(sent_to(&m), -1);
	}
	assert_int_equal(COUNT(strays), 2 * NODES);
	assert_int_equal(RSTS, 0);
}

static int due_after(unsigned int ms, struct message *m)
{
	in.now_ns += ms * 1000000ULL;
	es_inspect_deadlines(&in);
	es_handover_flush(in.sender);
	return sent_to(m);
}

static void members_say_no(struct message *m)
{
	static const int order[] = {0, 2, 0, 2};

	for (int i = 0; i < 4; i++) {
		if (i)
			assert_int_equal(sent_to(m), order[i]);
		assert_true(m->h.target != 1 && m->h.attempt < 2);
		nack(m, ES_NACK_NOT_HERE);
	}
	assert_int_equal(sent_to(m), -1);
}

/* A member must answer, whatever it takes. One that is none is waited for, no longer than a moment. */
static void test_members(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct message m;

	(void)state;
	for (enum es_node_state s = ES_NODE_UP; s <= ES_NODE_ABSENT; s++) {
		memset(in.count, 0, sizeof(in.count));
		es_health_set_state(&health, 1, s);
		stray(number, REQUEST, ES_TCP_ACK);
		if (s < ES_NODE_LEFT) {
			all_say_no(&m);
			assert_int_equal(RSTS, 1);
			continue;
		}
		for (int answers = 0; answers < 2; answers++) {
			if (answers)
				stray(number, REQUEST, ES_TCP_ACK);
			assert_int_equal(sent_to(&m), 1);
			assert_int_equal(m.h.kind, ES_HANDOVER_STRAY);
			if (answers)
				nack(&m, ES_NACK_NOT_HERE); /* it begins nothing */
			assert_int_equal(sent_to(&m), -1);
			assert_int_equal(due_after(199, &m), -1);
			assert_int_equal(due_after(1, &m), SELF);
			members_say_no(&m);
			assert_int_equal(RSTS, 1 + answers);
		}
	}
}

/* Its daemon has crashed, but its kernel goes on with what it has. */
static void test_away_but_alive(void **state)
{
	unsigned int number = flow_find(1, 1), other = flow_find(100, 1);
	struct message m, later;

	(void)state;
	es_health_set_state(&health, 1, ES_NODE_ABSENT);
	stray(other, REQUEST, ES_TCP_ACK);
	assert_int_equal(sent_to(&later), 1);
	in.now_ns += 100000000;
	stray(number, REQUEST, ES_TCP_ACK);
	assert_int_equal(sent_to(&m), 1);
	nack(&m, ES_NACK_HERE);
	assert_int_equal(due_after(100, &m), SELF); /* the other one's */
	assert_int_equal(m.packet[15], other);	    /* the last byte of its client's address */
	members_say_no(&m);
	assert_int_equal(RSTS, 1);
	assert_int_equal(due_after(100, &m), -1);
	nack(&later, ES_NACK_HERE); /* too late */
	assert_int_equal(due_after(1000, &m), -1);
	assert_int_equal(RSTS, 1);
	assert_int_equal(COUNT(strays), 2);
	/* A daemon that slept forgets what it has asked. */
	stray(number, REQUEST, ES_TCP_ACK);
	assert_int_equal(sent_to(&m), 1);
	es_inspect_forget(&in);
	assert_int_equal(due_after(1000, &m), -1);
}

/* All others are away. */
static void test_alone(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct message m;
	ssize_t got;

	(void)state;
	for (unsigned int i = 0; i < NODES; i++)
		es_health_set_state(&health, i, ES_NODE_ABSENT);
	stray(number, REQUEST, ES_TCP_ACK);
	for (int i = 1; i < NODES; i++) {
		got = recv(receiver[i], &m, sizeof(m.h) + sizeof(m.packet), 0);
		assert_int_equal(got, (ssize_t)sizeof(m.h) + 41);
	}
	for (int round = 0; round < 2; round++) {
		assert_int_equal(round ? sent_to(&m) : due_after(200, &m), SELF);
		nack(&m, ES_NACK_NOT_HERE);
	}
	assert_int_equal(RSTS, 1);
}

/* More than there is room for must send again. */
static void test_many_waiting(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct message m;
	int asked = 0;

	(void)state;
	es_health_set_state(&health, 1, ES_NODE_ABSENT);
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 300; i++) {
			stray(number, REQUEST, ES_TCP_ACK);
			asked += sent_to(&m) == 1;
		}
		assert_int_equal(asked, ES_STRAYS_WAITING * (round + 1));
		assert_int_equal(COUNT(strays), asked);
		in.now_ns += 1000000000ULL;
		es_inspect_deadlines(&in);
		es_handover_flush(in.sender);
		for (int i = 0; i < ES_STRAYS_WAITING; i++)
			assert_int_equal(sent_to(&m), SELF);
		assert_int_equal(sent_to(&m), -1);
	}
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
		cmocka_unit_test_setup_teardown(test_away_but_alive, setup, teardown),
		cmocka_unit_test_setup_teardown(test_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_waiting, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_mine, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limit, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
