// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A client of a lost node that waits for an answer: all nodes are asked about it at once, and it is told if
 * none has its connection.
 */
#include "cmocka_all.h"
#include "tests/unit/stray_world.h"

static void waiting(unsigned int number)
{
	const struct es_waiting_client client = {
		.flow = flow_of(number), .flow_hash = hash_of(number), .owner = 1, .seq = 700, .ack = 900};

	es_inspect_waiting(&in, &client);
}

/*
 * A client of a lost node that waits: the nodes are asked at once, beside others, and whatever that costs.
 * The lost one may have it still, and says so; else the client is told, by a node with a lease.
 */
static void test_waiting(void **state)
{
	unsigned int number = flow_find(1, 1), other = flow_find(number + 1, 1);
	struct es_stray_question question;
	struct message m;

	(void)state;
	versions(ES_WIRE_UNDERSTANDS_STRAYS);
	es_health_set_state(&health, 1, ES_NODE_ABSENT);
	waiting(number);
	waiting(other);
	assert_int_equal(due_after(0, &m), 1);
	assert_int_equal(count_of(&m), 2);
	question = question_of(&m, 0);
	assert_true(question.client == htonl(0xc6336400 + number) && question.port == htons(40000) &&
		    question.flags == ES_TCP_ACK && question.seq == htonl(700) && question.ack == htonl(901));
	answer(&m, 1 << 1);
	assert_int_equal(due_after(49, &m), -1);
	assert_int_equal(due_after(1, &m), SELF);
	assert_int_equal(count_of(&m), 1);
	assert_int_equal(question_of(&m, 0).client, htonl(0xc6336400 + number));
	all_say_no_but(&m, SELF, 1);
	assert_int_equal(RSTS, 1);
	assert_int_equal(COUNT(waiting_resets), 1);
	assert_int_equal(COUNT(stray_resets), 0);
	assert_int_equal(COUNT(strays), 2);
}

/* The request was given to another node since: it may be on its way there, and the question says so. */
static void test_waiting_given(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct message m;

	(void)state;
	versions(ES_WIRE_UNDERSTANDS_STRAYS);
	for (unsigned int node = 1; node < NODES; node++) {
		es_decision_table_put(&in.decisions, hash_of(number), 899, 600, (__u8)node, NULL,
				      (__u32)(in.now_ns / 1000000));
		waiting(number);
		assert_int_equal(due_after(0, &m), SELF);
		assert_int_equal(question_of(&m, 0).ack, htonl(node == 1 ? 901 : 900));
		answer(&m, 1);
	}
	assert_int_equal(RSTS, 0);
}

static void test_waiting_v6(void **state)
{
	struct es_stray_question6 question;
	unsigned int number;
	struct message m;

	(void)state;
	versions(ES_WIRE_UNDERSTANDS_STRAYS | ES_WIRE_UNDERSTANDS_STRAYS6);
	clients_are_v6 = 1;
	number = flow_find(1, 1);
	waiting(number);
	assert_int_equal(due_after(0, &m), SELF);
	question = question6_of(&m, 0);
	assert_true(question.client.b[15] == number && question.port == htons(40000) &&
		    question.seq == htonl(700) && question.ack == htonl(901));
	all_say_no_but(&m, SELF, -1);
	assert_int_equal(RSTS, 1);
	assert_int_equal(COUNT(waiting_resets), 1);
}

/* Its own lease is over by then: this node has nothing to tell. */
static void test_waiting_without_lease(void **state)
{
	struct message m;

	(void)state;
	versions(ES_WIRE_UNDERSTANDS_STRAYS);
	conf->services[0].survive = 1;
	waiting(flow_find(1, 1));
	assert_int_equal(due_after(0, &m), SELF);
	lease_ns = in.now_ns - 1;
	all_say_no_but(&m, SELF, -1);
	assert_int_equal(RSTS + COUNT(waiting_resets), 0);
	/* As many as there is room for. */
	lease_ns = 0;
	for (unsigned int i = 0; i < ES_STRAY_GROUPS * ES_STRAYS_MANY; i++)
		waiting(flow_find(1, 1));
	assert_int_equal(COUNT(stray_limited), 0);
	waiting(flow_find(1, 1));
	assert_int_equal(COUNT(stray_limited), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_waiting, setup, teardown),
		cmocka_unit_test_setup_teardown(test_waiting_given, setup, teardown),
		cmocka_unit_test_setup_teardown(test_waiting_v6, setup, teardown),
		cmocka_unit_test_setup_teardown(test_waiting_without_lease, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
