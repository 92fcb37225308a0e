// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The inspector when a target sends a handover back: since it is not sure of its membership, or has not the
 * window for what follows.
 */
#include "cmocka_all.h"
#include "tests/unit/inspect_world.h"

/* A target that is not sure of its membership: another one, which is remembered. */
static void test_nack_silent(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct message m;
	int first, second;

	(void)state;
	inspect(number, ES_FLOW_NEW, 0, REQUEST);
	first = sent_to(&m);
	nack(&m, ES_NACK_SILENT);
	second = sent_to(&m);
	assert_true(second >= 0 && second != first);
	assert_int_equal(m.h.attempt, 1);
	assert_false(es_cluster_is_target(cluster, &health, (unsigned int)first, in.now_ns));
	assert_int_equal(request(number), second);
	assert_int_equal(COUNT(nacks), 1);
	/* Each is counted once: as a first request, and as one that another node gets. */
	assert_int_equal(REQUESTS(first, first), 1);
	assert_int_equal(REQUESTS(second, first), 0);
	assert_int_equal(REQUESTS(second, again), 1);
	assert_int_equal(HANDOVERS(first, sent), first != SELF);
	assert_int_equal(HANDOVERS(first, refused), 1);
	assert_int_equal(HANDOVERS(second, sent), second != SELF);
}

/* All are unsure for the moment, this one among them:
 * the client's retransmission will find one that is not. */
static void test_nack_silent_everywhere(void **state)
{
	unsigned int number = flow_find(1, 1), tries = 0;
	struct message m;

	(void)state;
	inspect(number, ES_FLOW_NEW, 0, REQUEST);
	while (sent_to(&m) >= 0) {
		assert_true(++tries <= NODES + 1);
		nack(&m, ES_NACK_SILENT);
	}
	assert_true(tries >= 1);
	assert_int_equal(COUNT(no_target), 0);
	assert_int_equal(COUNT(not_mine), 1);
}

/* A node that drains is better than none; but not one that has just refused. */
static void test_nack_silent_draining(void **state)
{
	unsigned int number = flow_find(1, 1), tries = 0;
	struct message m;

	(void)state;
	for (unsigned int i = 0; i < NODES; i++)
		es_health_set_state(&health, i, ES_NODE_DRAINING);
	inspect(number, ES_FLOW_NEW, 0, REQUEST);
	while (sent_to(&m) >= 0) {
		assert_true(++tries <= NODES);
		nack(&m, ES_NACK_SILENT);
	}
	assert_int_equal(tries, NODES);
	assert_int_equal(COUNT(no_target), 0);
	assert_int_equal(COUNT(not_mine), 1);
}

/* The nodes have refused what one worker sent; another one finds them all suspended,
 * and does not know why. */
static void test_nack_silent_to_another_worker(void **state)
{
	struct es_inspector *other = malloc(sizeof(*other));
	struct message m;

	(void)state;
	assert_non_null(other);
	memcpy(other, &in, sizeof(in)); /* it has seen nothing */
	inspect(flow_find(1, 1), ES_FLOW_NEW, 0, REQUEST);
	while (sent_to(&m) >= 0)
		nack(&m, ES_NACK_SILENT);
	memcpy(&in, other, sizeof(in));
	free(other);
	inspect(flow_find(100, 1), ES_FLOW_NEW, 0, REQUEST);
	assert_int_equal(sent_to(&m), -1);
	assert_int_equal(COUNT(no_target), 0);
	assert_int_equal(COUNT(not_mine), 1);
}

/*
 * A segment after a request comes back if its socket has no room for it: it goes to the same node again,
 * later and later, and no request is decided anew.
 */
static void test_nack_beyond(void **state)
{
	unsigned int number = flow_find(1, 1);
	unsigned long long wait_ns = 10000000;
	struct message m;
	int node;

	(void)state;
	node = request(number);
	assert_true(node >= 0);
	inspect(number, ES_FLOW_NEW, sizeof(REQUEST) - 1, "more");
	for (unsigned int attempt = 0; attempt < 4; attempt++, wait_ns *= 2) {
		assert_int_equal(sent_to(&m), node);
		assert_int_equal(m.h.kind, ES_HANDOVER_FOLLOW);
		assert_int_equal(m.h.attempt, attempt);
		assert_int_equal(m.h.request_flags, ES_FOLLOW_F_BACK);
		assert_memory_equal(&m.packet[m.len - 4], "more", 4);
		nack(&m, ES_NACK_BEYOND);
		in.now_ns += wait_ns - 1;
		es_inspect_deadlines(&in);
		es_handover_flush(in.sender);
		assert_int_equal(sent_to(&m), -1);
		in.now_ns++;
		es_inspect_deadlines(&in);
		es_handover_flush(in.sender);
	}
	/* By now its client sends it again. */
	assert_int_equal(sent_to(&m), node);
	nack(&m, ES_NACK_BEYOND);
	in.now_ns += 1000000000;
	es_inspect_deadlines(&in);
	es_handover_flush(in.sender);
	assert_int_equal(sent_to(&m), -1);
	assert_int_equal(COUNT(follow_again), 4);
	assert_int_equal(COUNT(requests), 1);
	assert_int_equal(COUNT(nacks), 0);
}

/* A NACK that finds this node without a lease: nothing, and above all no RST. */
static void test_nack_while_silent(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct message m;

	(void)state;
	for (int alone = 0; alone < 2; alone++) {
		lease_ns = 0;
		memset(&health, 0, sizeof(health));
		inspect(number, ES_FLOW_NEW, 0, REQUEST);
		assert_true(sent_to(&m) >= 0);
		for (unsigned int i = 0; alone && i < NODES; i++)
			es_health_set_state(&health, i, ES_NODE_ABSENT);
		lease_ns = NOW_NS;
		nack(&m, ES_NACK_SILENT);
		assert_int_equal(sent_to(&m), -1);
	}
	assert_int_equal(COUNT(send_failed), 0);
	assert_int_equal(COUNT(not_mine), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_nack_silent),		 TEST(test_nack_silent_everywhere),
		TEST(test_nack_silent_draining), TEST(test_nack_silent_to_another_worker),
		TEST(test_nack_beyond),		 TEST(test_nack_while_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
