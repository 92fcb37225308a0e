// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A segment that nobody takes: all nodes are asked, twice, and the client is told only if none of them has
 * its connection.
 */
#include "cmocka_all.h"
#include "tests/unit/stray_world.h"

static void stray(unsigned int number, const char *text, uint8_t flags)
{
	stray_of(number, text, flags, ES_FLOW_HEARD);
}

/* The gathered questions are sent; returns to whom. */
static int gathered(struct message *m)
{
	assert_int_equal(sent_to(m), -1);
	assert_int_equal(due_after(99, m), -1);
	return due_after(1, m);
}

static void all_say_no(struct message *m)
{
	all_say_no_but(m, gathered(m), -1);
}

static void test_nobodys(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct es_stray_question question;
	struct message m;

	(void)state;
	versions(ES_WIRE_UNDERSTANDS_STRAYS);
	stray(number, REQUEST, ES_TCP_ACK | ES_TCP_PSH);
	assert_int_equal(gathered(&m), 0);
	question = question_of(&m, 0);
	assert_int_equal(count_of(&m), 1);
	assert_true(question.client == htonl(0xc6336400 + number) && question.port == htons(40000) &&
		    question.flags == (ES_TCP_ACK) && question.seq == htonl(ISN + 2) &&
		    question.ack == htonl(COOKIE + 1));
	all_say_no_but(&m, 0, -1);
	assert_int_equal(RSTS, 1);
	assert_int_equal(COUNT(strays), 1);
	assert_int_equal(COUNT(stray_resets), 1);
	assert_int_equal(COUNT(nacks) + COUNT(no_target) + COUNT(requests) + COUNT(nack_bad), 0);
	for (unsigned int i = 0; i < NODES; i++)
		assert_true(es_cluster_is_target(cluster, &health, i, in.now_ns));
}

/*
 * Each family has messages of its own. Node 2 is of a version that has none for IPv6: it is asked about each.
 */
static void test_families(void **state)
{
	unsigned int number = flow_find(1, 1), number_v6;
	struct message m;

	(void)state;
	versions(ES_WIRE_UNDERSTANDS_STRAYS | ES_WIRE_UNDERSTANDS_STRAYS6);
	health.understands[2] = ES_WIRE_UNDERSTANDS_STRAYS;
	stray(number, REQUEST, ES_TCP_ACK | ES_TCP_PSH);
	clients_are_v6 = 1;
	number_v6 = flow_find(1, 1);
	stray(number_v6, REQUEST, ES_TCP_ACK | ES_TCP_PSH);
	in.now_ns += 100 * 1000000ULL;
	es_inspect_deadlines(&in);
	es_handover_flush(in.sender);
	for (int round = 0; round < 2; round++) {
		for (int node = 0; node < NODES; node++) {
			struct es_stray_question6 question;
			struct message both[2];
			int many;

			assert_true(taken_by(node, &both[0]) && taken_by(node, &both[1]) &&
				    !taken_by(node, &m));
			many = both[1].h.kind == ES_HANDOVER_STRAYS;
			assert_int_equal(count_of(&both[many]), 1);
			assert_int_equal(question_of(&both[many], 0).client, htonl(0xc6336400 + number));
			if (node == 2) {
				assert_int_equal(both[!many].h.kind, ES_HANDOVER_STRAY);
				assert_int_equal(both[!many].packet[0] >> 4, 6);
				assert_int_equal(both[!many].packet[23], number_v6);
				assert_int_equal(both[!many].packet[60], 'G');
			} else {
				assert_int_equal(count_in(&both[!many], 1), 1);
				question = question6_of(&both[!many], 0);
				assert_int_equal(question.client.b[15], number_v6);
				assert_true(question.port == htons(40000) && question.flags == ES_TCP_ACK &&
					    question.seq == htonl(ISN + 2) &&
					    question.ack == htonl(COOKIE + 1));
			}
			answer(&both[0], 0);
			answer(&both[1], 0);
		}
	}
	assert_int_equal(RSTS, 2);
	assert_int_equal(COUNT(stray_resets), 2);
}

/* A message of IPv6 is full with fewer. */
static void test_many_of_v6(void **state)
{
	unsigned int number = 0;
	struct message m;

	(void)state;
	versions(ES_WIRE_UNDERSTANDS_STRAYS | ES_WIRE_UNDERSTANDS_STRAYS6);
	clients_are_v6 = 1;
	for (unsigned int i = 0; i < ES_STRAYS_MANY6; i++) {
		assert_int_equal(sent_to(&m), -1);
		number = flow_find(number + 1, 1);
		stray(number, REQUEST, ES_TCP_ACK);
	}
	assert_int_equal(sent_to(&m), SELF);
	assert_int_equal(count_in(&m, 1), ES_STRAYS_MANY6);
	answer(&m, ~0ULL << 1);
	for (int i = 1; i < 2 * NODES; i++) {
		assert_int_equal(sent_to(&m), i % NODES);
		assert_int_equal(count_in(&m, 1), 1);
		answer(&m, 0);
	}
	assert_int_equal(RSTS, 1);
}

/* A node that does not understand many gets a message for each: no more of it than is needed. */
static void test_version_before(void **state)
{
	unsigned int number[2] = {flow_find(1, 1)};
	struct message m, both[2];

	(void)state;
	number[1] = flow_find(number[0] + 1, 1);
	health.understands[1] = ES_WIRE_UNDERSTANDS_STRAYS;
	for (int i = 0; i < 2; i++)
		stray(number[i], REQUEST, ES_TCP_ACK | ES_TCP_PSH);
	assert_int_equal(gathered(&m), SELF);
	for (int round = 0; round < 2; round++) {
		if (round)
			assert_true(taken_by(SELF, &m));
		assert_int_equal(count_of(&m), 2);
		answer(&m, 0);
		assert_true(taken_by(1, &m));
		assert_int_equal(count_of(&m), 2);
		answer(&m, 0);
		for (int i = 0; i < 2; i++) {
			assert_true(taken_by(2, &both[i]));
			assert_int_equal(both[i].h.kind, ES_HANDOVER_STRAY);
			assert_int_equal(both[i].h.attempt, round);
			assert_int_equal(both[i].len, 41);
			assert_int_equal(both[i].packet[15], number[i]); /* its client's address ends so */
			assert_int_equal(both[i].packet[40], 'G');
		}
		/* Both must be answered before the next one is asked. */
		answer(&both[1], 0);
		assert_int_equal(sent_to(&m), -1);
		assert_int_equal(RSTS, 0);
		answer(&both[0], 0);
	}
	assert_int_equal(sent_to(&m), -1);
	assert_int_equal(RSTS, 2);
	/*
	 * A question without an answer counts as nobody's word, and does not keep the other one from its next
	 * round.
	 */
	for (int i = 0; i < 2; i++)
		stray(number[i], REQUEST, ES_TCP_ACK);
	assert_int_equal(gathered(&m), SELF);
	answer(&m, 0);
	assert_true(taken_by(1, &m));
	answer(&m, 0);
	assert_true(taken_by(2, &both[0]) && taken_by(2, &both[1]));
	answer(&both[1], 0);
	assert_int_equal(due_after(999, &m), -1);
	assert_int_equal(due_after(1, &m), SELF);
	assert_int_equal(count_of(&m), 1);
	assert_int_equal(question_of(&m, 0).client, htonl(0xc6336400 + number[1]));
}

static void test_fin(void **state)
{
	struct message m;

	(void)state;
	versions(ES_WIRE_UNDERSTANDS_STRAYS);
	stray(flow_find(1, 1), "", ES_TCP_ACK | ES_TCP_FIN);
	assert_int_equal(gathered(&m), 0);
	assert_int_equal(question_of(&m, 0).flags, ES_TCP_ACK | ES_TCP_FIN);
	all_say_no_but(&m, 0, -1);
	assert_int_equal(RSTS, 1);
}

/* A node that has the connection, in whichever round, says so; a node that is not there says nothing. */
static void test_silence(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct message m;

	(void)state;
	for (int version = 0; version < 2; version++) {
		versions(version ? ES_WIRE_UNDERSTANDS_STRAYS : 0);
		for (int answers = 0; answers < 2 * NODES; answers++) {
			stray(number, REQUEST, ES_TCP_ACK | ES_TCP_PSH);
			assert_int_equal(gathered(&m), SELF);
			for (int i = 0; i < answers; i++) {
				answer(&m, 0);
				assert_int_equal(sent_to(&m), (i + 1) % NODES);
			}
			if (answers & 1)
				answer(&m, 1);
			assert_int_equal(due_after(2000, &m), -1);
		}
	}
	assert_int_equal(COUNT(strays), 4 * NODES);
	assert_int_equal(RSTS, 0);
}

/*
 * One message asks about many; a node that has some of them says which, and nobody is asked about those any
 * more.
 */
static void test_many(void **state)
{
	unsigned int number = 0, numbers[ES_STRAYS_MANY + 1];
	struct message m;

	(void)state;
	versions(ES_WIRE_UNDERSTANDS_STRAYS);
	for (unsigned int i = 0; i <= ES_STRAYS_MANY; i++) {
		number = flow_find(number + 1, 1);
		numbers[i] = number;
		assert_int_equal(sent_to(&m), i == ES_STRAYS_MANY ? SELF : -1);
		if (i == ES_STRAYS_MANY)
			break; /* it is full, and goes at once */
		stray(number, REQUEST, ES_TCP_ACK);
	}
	assert_int_equal(count_of(&m), ES_STRAYS_MANY);
	answer(&m, 0x8000000000000001ULL);
	assert_int_equal(sent_to(&m), 1);
	assert_int_equal(count_of(&m), ES_STRAYS_MANY - 2);
	assert_int_equal(question_of(&m, 0).client, htonl(0xc6336400 + numbers[1]));
	answer(&m, ~0ULL << 3);
	assert_int_equal(sent_to(&m), 2);
	assert_int_equal(count_of(&m), 3);
	answer(&m, 2);
	assert_int_equal(sent_to(&m), SELF);
	assert_int_equal(question_of(&m, 1).client, htonl(0xc6336400 + numbers[3]));
	answer(&m, 0);
	for (int node = 1; node < NODES; node++) {
		assert_int_equal(sent_to(&m), node);
		assert_int_equal(count_of(&m), 2);
		answer(&m, 0);
	}
	assert_int_equal(RSTS, 2);
	assert_int_equal(COUNT(stray_resets), 2);
}

/* An answer is about its own message, and counts once. */
static void test_answers_that_are_none(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct message m, old;

	(void)state;
	versions(ES_WIRE_UNDERSTANDS_STRAYS);
	stray(number, REQUEST, ES_TCP_ACK);
	assert_int_equal(gathered(&m), SELF);
	old = m;
	assert_int_equal(due_after(1000, &m), -1); /* too late now */
	stray(number, REQUEST, ES_TCP_ACK);
	assert_int_equal(gathered(&m), SELF);
	answer(&old, 0);
	assert_int_equal(sent_to(&old), -1);
	old = m;
	old.h.attempt = 1;
	answer(&old, 0);
	assert_int_equal(sent_to(&old), -1);
	old = m;
	answer(&m, 0);
	assert_int_equal(sent_to(&m), 1);
	answer(&old, 0);
	assert_int_equal(sent_to(&old), -1);
	answer(&m, 0);
	assert_int_equal(sent_to(&m), 2);
}

/* A member must answer, whatever it takes. One that is none is waited for, no longer than a moment. */
static void test_members(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct message m;

	(void)state;
	for (int version = 0; version < 2; version++) {
		versions(version ? ES_WIRE_UNDERSTANDS_STRAYS : 0);
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
				assert_int_equal(gathered(&m), 1);
				assert_int_equal(m.h.kind, version ? ES_HANDOVER_STRAYS : ES_HANDOVER_STRAY);
				if (answers)
					answer(&m, 0); /* it begins nothing */
				assert_int_equal(sent_to(&m), -1);
				assert_int_equal(due_after(199, &m), -1);
				all_say_no_but(&m, due_after(1, &m), 1);
				assert_int_equal(RSTS, 1 + answers);
			}
		}
	}
}

/* A node that has left since those were asked that are no members must still say so. */
static void test_leaves_meanwhile(void **state)
{
	struct message m;

	(void)state;
	versions(ES_WIRE_UNDERSTANDS_STRAYS);
	stray(flow_find(1, 1), REQUEST, ES_TCP_ACK);
	assert_int_equal(gathered(&m), SELF);
	es_health_set_state(&health, 1, ES_NODE_ABSENT);
	all_say_no_but(&m, SELF, -1);
	assert_int_equal(RSTS, 1);
}

/* A node's daemon has crashed, but its kernel goes on with what it has. */
static void test_away_but_alive(void **state)
{
	unsigned int number = flow_find(1, 1), other = flow_find(100, 1);
	struct message m, later;

	(void)state;
	versions(ES_WIRE_UNDERSTANDS_STRAYS);
	es_health_set_state(&health, 1, ES_NODE_ABSENT);
	stray(other, REQUEST, ES_TCP_ACK);
	assert_int_equal(gathered(&later), 1);
	stray(number, REQUEST, ES_TCP_ACK);
	assert_int_equal(gathered(&m), 1);
	answer(&m, 1);
	assert_int_equal(due_after(100, &m), SELF); /* the other one's */
	assert_int_equal(question_of(&m, 0).client, htonl(0xc6336400 + other));
	all_say_no_but(&m, SELF, 1);
	assert_int_equal(RSTS, 1);
	assert_int_equal(due_after(100, &m), -1);
	answer(&later, 1); /* too late */
	assert_int_equal(due_after(1000, &m), -1);
	assert_int_equal(RSTS, 1);
	assert_int_equal(COUNT(strays), 2);
	/* A daemon that slept forgets what it has asked. */
	stray(number, REQUEST, ES_TCP_ACK);
	assert_int_equal(gathered(&m), 1);
	es_inspect_forget(&in);
	assert_int_equal(due_after(1000, &m), -1);
}

/* All others are away. */
static void test_alone(void **state)
{
	struct message m;

	(void)state;
	for (unsigned int i = 0; i < NODES; i++)
		es_health_set_state(&health, i, ES_NODE_ABSENT);
	stray(flow_find(1, 1), REQUEST, ES_TCP_ACK);
	in.now_ns += 100000000;
	es_inspect_deadlines(&in);
	es_handover_flush(in.sender);
	for (int i = 1; i < NODES; i++)
		assert_true(taken_by(i, &m));
	for (int round = 0; round < 2; round++) {
		assert_int_equal(round ? sent_to(&m) : due_after(200, &m), SELF);
		answer(&m, 0);
	}
	assert_int_equal(RSTS, 1);
}

/* More than there is room for must send again. */
static void test_many_waiting(void **state)
{
	unsigned int number = flow_find(1, 1), room = ES_STRAY_GROUPS * ES_STRAYS_MANY;
	struct message m;

	(void)state;
	versions(ES_WIRE_UNDERSTANDS_STRAYS);
	es_health_set_state(&health, 1, ES_NODE_ABSENT);
	for (unsigned int round = 1; round <= 3; round++) {
		for (unsigned int i = 0; i < room + 10; i++) {
			memset(in.strays.source, 0, sizeof(in.strays.source));
			stray(number, REQUEST, ES_TCP_ACK);
		}
		assert_int_equal(COUNT(strays), room * round);
		assert_int_equal(COUNT(stray_limited), 10 * round);
		while (taken_by(1, &m))
			;
		in.now_ns += 1000000000ULL;
		es_inspect_deadlines(&in);
		es_handover_flush(in.sender);
		for (int i = 0; i < ES_STRAY_GROUPS; i++)
			assert_true(taken_by(SELF, &m));
		assert_int_equal(due_after(1000, &m), -1); /* nobody answers */
	}
}

/* Questions about different services go in messages of their own. */
static void test_services(void **state)
{
	unsigned int number = flow_find(1, 1);
	uint8_t bytes[1500];
	struct es_record record = segment(number, 1, REQUEST, bytes);
	struct message m;

	(void)state;
	versions(ES_WIRE_UNDERSTANDS_STRAYS);
	conf->service_count = 2;
	record.kind = ES_RECORD_STRAY;
	for (int i = 0; i < 4; i++) {
		record.service = i & 1;
		es_inspect_record(&in, &record, bytes);
	}
	in.now_ns += 100000000;
	es_inspect_deadlines(&in);
	es_handover_flush(in.sender);
	for (int i = 0; i < 2; i++) {
		assert_true(taken_by(SELF, &m));
		assert_int_equal(count_of(&m), 2);
	}
	assert_false(taken_by(SELF, &m));
}

/* Only the flow's inspecting node speaks, and only with a lease. */
static void test_not_mine(void **state)
{
	struct message m;

	(void)state;
	versions(ES_WIRE_UNDERSTANDS_STRAYS);
	stray(flow_find(1, 0), REQUEST, ES_TCP_ACK);
	assert_int_equal(due_after(1000, &m), -1);
	assert_int_equal(COUNT(not_mine), 1);
	stray(flow_find(1, 1), REQUEST, ES_TCP_ACK);
	assert_int_equal(gathered(&m), SELF);
	for (int i = 0; i < 2 * NODES; i++) {
		if (i)
			assert_int_equal(sent_to(&m), i % NODES);
		lease_ns = i == 2 * NODES - 1 ? NOW_NS : 0;
		answer(&m, 0);
	}
	assert_int_equal(RSTS, 0);
	assert_int_equal(COUNT(not_mine), 2);
	assert_int_equal(COUNT(strays), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nobodys, setup, teardown),
		cmocka_unit_test_setup_teardown(test_version_before, setup, teardown),
		cmocka_unit_test_setup_teardown(test_families, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fin, setup, teardown),
		cmocka_unit_test_setup_teardown(test_silence, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_of_v6, setup, teardown),
		cmocka_unit_test_setup_teardown(test_answers_that_are_none, setup, teardown),
		cmocka_unit_test_setup_teardown(test_members, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leaves_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_away_but_alive, setup, teardown),
		cmocka_unit_test_setup_teardown(test_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_waiting, setup, teardown),
		cmocka_unit_test_setup_teardown(test_services, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_mine, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
