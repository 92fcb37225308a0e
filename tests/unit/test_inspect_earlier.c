// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A segment may be the first request of a connection from before this node listened, or a later segment of a
 * connection that another node has: what becomes of it when all nodes have been asked.
 */
#include "cmocka_all.h"
#include "tests/unit/stray_world.h"

static const char post[] = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";

static void comes(unsigned int number, const char *text, enum es_record_flow flow)
{
	stray_of(number, text, ES_TCP_ACK | ES_TCP_PSH, flow);
}

/* All are asked, and say no, or node @here says in its second round that it has it. */
static void all_say(struct message *m, int here)
{
	assert_int_equal(due_after(100, m), 0);
	for (int i = 0; i < 2 * NODES; i++) {
		if (i)
			assert_int_equal(sent_to(m), i % NODES);
		if (i == NODES + here) {
			answer(m, 1);
			break;
		}
		answer(m, 0);
	}
	assert_int_equal(sent_to(m), -1);
}

static void set_ring(void)
{
	struct es_keys keys = in.keys;

	assert_int_equal(es_inspector_set_cluster(&in, in.cluster, &keys), 0);
}

static void test_nobodys(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct message m;

	(void)state;
	versions(ES_WIRE_UNDERSTANDS_STRAYS);
	comes(number, REQUEST, ES_FLOW_EARLIER);
	all_say(&m, NODES);
	assert_int_equal(COUNT(requests) + COUNT(earlier) + COUNT(stray_resets), 0);
	comes(number, REQUEST, ES_FLOW_EARLIER);
	assert_true(sent_to(&m) >= 0);
	assert_int_equal(m.h.kind, ES_HANDOVER_REQUEST);
	assert_int_equal(COUNT(requests), 1);
	assert_int_equal(COUNT(earlier), 1);
	assert_int_equal(COUNT(strays), 1);
	/* Decided once. */
	comes(number, REQUEST, ES_FLOW_EARLIER);
	assert_true(sent_to(&m) >= 0);
	assert_int_equal(COUNT(requests), 1);
	assert_int_equal(COUNT(repeated), 1);
}

static void test_somebodys(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct message m;

	(void)state;
	versions(ES_WIRE_UNDERSTANDS_STRAYS);
	for (int here = 0; here < NODES; here++) {
		comes(number, REQUEST, ES_FLOW_EARLIER);
		all_say(&m, here);
	}
	assert_int_equal(COUNT(strays), NODES);
	assert_int_equal(COUNT(requests) + COUNT(earlier) + COUNT(stray_resets), 0);
}

/* Another segment of the flow that looks like a first one is another question. */
static void test_other_segment(void **state)
{
	unsigned int number = flow_find(1, 1);
	uint8_t bytes[1500];
	struct es_record record;
	struct message m;

	(void)state;
	versions(ES_WIRE_UNDERSTANDS_STRAYS);
	comes(number, REQUEST, ES_FLOW_EARLIER);
	all_say(&m, NODES);
	record = segment(number, 100001, REQUEST, bytes);
	record.kind = ES_RECORD_STRAY;
	record.flow = ES_FLOW_EARLIER;
	es_inspect_record(&in, &record, bytes);
	assert_int_equal(COUNT(strays), 2);
	assert_int_equal(COUNT(earlier), 0);
}

/*
 * Under another ring, another node may have taken it meanwhile: what was asked before, or while it changed,
 * is void.
 */
static void test_ring_changes(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct message m;

	(void)state;
	versions(ES_WIRE_UNDERSTANDS_STRAYS);
	comes(number, REQUEST, ES_FLOW_EARLIER);
	all_say(&m, NODES);
	set_ring();
	comes(number, REQUEST, ES_FLOW_EARLIER);
	set_ring();
	all_say(&m, NODES);
	comes(number, REQUEST, ES_FLOW_EARLIER);
	assert_int_equal(COUNT(strays), 3);
	assert_int_equal(COUNT(earlier), 0);
	all_say(&m, NODES);
	comes(number, REQUEST, ES_FLOW_EARLIER);
	assert_int_equal(COUNT(earlier), 1);
}

/* A node was lost, which may have executed it. */
static void test_doubtful(void **state)
{
	unsigned int number = flow_find(1, 1), other = flow_find(number + 1, 1);
	struct message m;

	(void)state;
	versions(ES_WIRE_UNDERSTANDS_STRAYS);
	comes(number, post, ES_FLOW_EARLIER_DOUBTFUL);
	all_say(&m, NODES);
	assert_int_equal(COUNT(doubtful), 0);
	comes(number, post, ES_FLOW_EARLIER_DOUBTFUL);
	assert_int_equal(sent_to(&m), -1);
	assert_int_equal(COUNT(doubtful), 1);
	comes(other, REQUEST, ES_FLOW_EARLIER_DOUBTFUL);
	all_say(&m, NODES);
	comes(other, REQUEST, ES_FLOW_EARLIER_DOUBTFUL);
	assert_true(sent_to(&m) >= 0);
	assert_int_equal(COUNT(doubtful), 1);
	assert_int_equal(COUNT(requests), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nobodys, setup, teardown),
		cmocka_unit_test_setup_teardown(test_somebodys, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_segment, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ring_changes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_doubtful, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
