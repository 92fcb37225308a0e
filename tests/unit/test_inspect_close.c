// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Clients that close their side before their request is decided: all that there is of the request goes to a
 * server at once, and the FIN with it, wherever that server is. If a client has given up its connection, none
 * of it goes anywhere.
 */
#include "cmocka_all.h"
#include "tests/unit/inspect_world.h"

#define HALF 8u

/* A segment with a FIN. */
static void inspect_fin(unsigned int number, enum es_record_flow flow, uint32_t at, const char *text)
{
	uint8_t bytes[1500];
	struct es_record record = segment(number, at, text, bytes);

	bytes[tcp_at() + 13] |= ES_TCP_FIN;
	record.flow = (__u8)flow;
	es_inspect_record(&in, &record, bytes);
	es_handover_flush(in.sender);
}

static int is_fin(const struct message *m)
{
	return m->packet[tcp_at() + 13] & ES_TCP_FIN;
}

/* Expects the messages to one node: the first segment and @follows others, the last of which has the FIN. */
static void expect_closed(unsigned int follows)
{
	struct message m;
	int node = sent_to(&m);

	assert_true(node >= 0);
	assert_int_equal(m.h.kind, ES_HANDOVER_REQUEST);
	while (follows--) {
		assert_false(is_fin(&m));
		assert_int_equal(sent_to(&m), node);
		assert_int_equal(m.h.kind, ES_HANDOVER_FOLLOW);
	}
	assert_true(is_fin(&m));
	assert_int_equal(sent_to(&m), -1);
	assert_int_equal(es_gather_count(in.gathers), 0);
}

/* No more of a head arrives after a FIN, so nobody waits for it. */
static void test_within_the_head(void **state)
{
	unsigned int number = flow_find(1, 1);
	char text[HALF + 1] = "";

	(void)state;
	memcpy(text, REQUEST, HALF);
	inspect_fin(number, ES_FLOW_NEW, 0, text);
	expect_closed(0);
	number = flow_find(number + 1, 1);
	inspect(number, ES_FLOW_NEW, 0, text);
	inspect_fin(number, ES_FLOW_NEW, HALF, "");
	expect_closed(1);
	number = flow_find(number + 1, 1);
	inspect_fin(number, ES_FLOW_NEW, HALF, ""); /* overtakes it */
	assert_int_equal(es_gather_count(in.gathers), 1);
	inspect(number, ES_FLOW_NEW, 0, text);
	expect_closed(1);
}

/* A hole before the FIN may be filled. */
static void test_behind_a_hole(void **state)
{
	unsigned int number = flow_find(1, 1);
	char text[HALF + 1] = "";

	(void)state;
	memcpy(text, REQUEST, HALF);
	inspect(number, ES_FLOW_NEW, 0, text);
	inspect_fin(number, ES_FLOW_NEW, sizeof(REQUEST) - 1, "");
	assert_int_equal(es_gather_count(in.gathers), 1);
	inspect(number, ES_FLOW_NEW, HALF, &REQUEST[HALF]);
	expect_closed(2);
	assert_int_equal(COUNT(gather_timeout), 0); /* it was whole */
}

/* A FIN and nothing else: the server here says what becomes of it, and nobody else if none is here. */
static void test_before_any_request(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct message m;

	(void)state;
	inspect_fin(number, ES_FLOW_NEW, 0, "");
	assert_int_equal(sent_to(&m), SELF);
	assert_int_equal(m.h.kind, ES_HANDOVER_REQUEST);
	assert_true(is_fin(&m));
	assert_int_equal(m.len, text_at());
	assert_int_equal(COUNT(fin_before_request), 1);
	nack(&m, ES_NACK_RETRY);
	assert_int_equal(sent_to(&m), SELF);
	nack(&m, ES_NACK_NO_LISTENER);
	assert_int_equal(sent_to(&m), -1);
	assert_int_equal(COUNT(no_target), 1);
}

/* Behind a request that has moved its connection: to where that is. */
static void test_behind_a_moved_request(void **state)
{
	unsigned int number = flow_find(1, 1), other = (SELF + 1) % NODES;
	uint8_t bytes[1500];
	struct message m;
	struct es_record record;

	(void)state;
	conf->services[0].inspect = ES_INSPECT_EVERY;
	only(other);
	inspect(number, ES_FLOW_HERE, 0, REQUEST);
	assert_int_equal(sent_to(&m), SELF);
	assert_int_equal(m.h.kind, ES_HANDOVER_END);
	inspect_fin(number, ES_FLOW_HERE, sizeof(REQUEST) - 1, ""); /* before it has left */
	assert_int_equal(sent_to(&m), -1);
	record = segment(number, 0, REQUEST, bytes);
	record.kind = ES_RECORD_ENDING;
	es_inspect_record(&in, &record, bytes);
	es_handover_flush(in.sender);
	assert_int_equal(sent_to(&m), SELF);
	assert_int_equal(m.h.kind, ES_HANDOVER_GONE);
	record.kind = ES_RECORD_ENDED;
	es_inspect_record(&in, &record, bytes);
	es_handover_flush(in.sender);
	expect_closed(1);
	inspect_fin(number, ES_FLOW_MOVED, sizeof(REQUEST) - 1, ""); /* and again, after that */
	assert_int_equal(sent_to(&m), (int)other);
	assert_int_equal(m.h.kind, ES_HANDOVER_FOLLOW);
	assert_true(is_fin(&m));
}

static void inspect_reset(unsigned int number, enum es_record_flow flow, uint32_t at)
{
	uint8_t bytes[1500];
	struct es_record record = segment(number, at, "", bytes);

	bytes[tcp_at() + 13] |= ES_TCP_RST;
	record.kind = ES_RECORD_LATER;
	record.flow = (__u8)flow;
	es_inspect_record(&in, &record, bytes);
	es_handover_flush(in.sender);
}

static void test_given_up(void **state)
{
	unsigned int number = flow_find(1, 1);
	char text[HALF + 1] = "";
	struct message m;

	(void)state;
	memcpy(text, REQUEST, HALF);
	inspect(number, ES_FLOW_NEW, 0, text);
	inspect_reset(number, ES_FLOW_NEW, HALF - 1);
	inspect_reset(number, ES_FLOW_NEW, HALF + 1);
	inspect_reset(flow_find(number + 1, 1), ES_FLOW_NEW, HALF);
	assert_int_equal(es_gather_count(in.gathers), 1);
	assert_int_equal(COUNT(client_reset), 0);
	inspect_reset(number, ES_FLOW_NEW, HALF);
	assert_int_equal(es_gather_count(in.gathers), 0);
	assert_int_equal(COUNT(client_reset), 1);
	inspect_reset(number, ES_FLOW_NEW, HALF);
	assert_int_equal(COUNT(client_reset), 1);
	assert_int_equal(sent_to(&m), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_within_the_head),	   TEST(test_behind_a_hole), TEST(test_before_any_request),
		TEST(test_behind_a_moved_request), TEST(test_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
