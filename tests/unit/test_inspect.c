// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The inspector while membership changes, and when a node is not there.
 */
#include "cmocka_all.h"
#include "tests/unit/inspect_world.h"

/* A repeated request goes where it went, whatever has become of that node,
 * unless it is no member any more. */
static void test_repeated(void **state)
{
	int other = -1;

	(void)state;
	for (enum es_node_state s = ES_NODE_UP; s <= ES_NODE_ABSENT; s++) {
		for (unsigned int target = 1; target < NODES; target++) {
			unsigned int number = flow_find(16 * (NODES * s + target), 1);

			/* Whoever is the policy's next, until it is this one. */
			memset(&health, 0, sizeof(health));
			for (unsigned int i = 0; i < NODES; i++)
				es_health_set_state(&health, i, i == target ? ES_NODE_UP : ES_NODE_DOWN);
			assert_int_equal(request(number), target);
			memset(&health, 0, sizeof(health));
			es_health_set_state(&health, target, s);
			memset(in.count, 0, sizeof(in.count));
			if (s != ES_NODE_ABSENT) {
				assert_int_equal(request(number), target);
				assert_int_equal(COUNT(repeated), 1);
				assert_int_equal(COUNT(requests), 0);
				continue;
			}
			other = request(number);
			assert_true(other >= 0 && other != (int)target);
			assert_int_equal(COUNT(repeated), 0);
			assert_int_equal(COUNT(requests), 1);
			/* And that is where it goes from now on, also when the first one is back. */
			es_health_set_state(&health, target, ES_NODE_UP);
			assert_int_equal(request(number), other);
			assert_int_equal(COUNT(repeated), 1);
		}
	}
}

/* The same for a request that moved its connection away from this node. */
static void test_moved(void **state)
{
	struct es_handover_order order = {.kind = ES_HANDOVER_REQUEST, .moved = 1, .moves = 1, .requests = 3};
	struct message m;
	int other;

	(void)state;
	for (unsigned int number = 0; number < 2; number++) {
		/* Whoever the ring names. */
		unsigned int flow = flow_find(100, (int)number);

		memset(&health, 0, sizeof(health));
		es_decision_table_put(&in.decisions, hash_of(flow), COOKIE, ISN, 2, &order,
				      (__u32)(NOW_NS / 1000000));
		for (enum es_node_state s = ES_NODE_UP; s < ES_NODE_ABSENT; s++) {
			es_health_set_state(&health, 2, s);
			inspect(flow, ES_FLOW_MOVED, 0, REQUEST);
			assert_int_equal(sent_to(&m), 2);
		}
		es_health_set_state(&health, 2, ES_NODE_ABSENT);
		inspect(flow, ES_FLOW_MOVED, 5, "later"); /* waits for its first segment */
		assert_int_equal(sent_to(&m), -1);
		memset(in.count, 0, sizeof(in.count));
		inspect(flow, ES_FLOW_MOVED, 0, REQUEST);
		other = sent_to(&m);
		assert_true(other == 0 || other == 1);
		assert_true(m.h.flags & ES_HANDOVER_F_MOVED);
		assert_int_equal(es_ntohl(m.h.requests), 3);
		/* That node gets it for the first time. */
		assert_int_equal(COUNT(repeated), 0);
		inspect(flow, ES_FLOW_MOVED, 0, REQUEST);
		assert_int_equal(sent_to(&m), other);
		assert_int_equal(COUNT(repeated), 1);
		es_health_set_state(&health, 2, ES_NODE_UP);
		inspect(flow, ES_FLOW_MOVED, 5, "later");
		assert_int_equal(sent_to(&m), other);
	}
}

/* And where its entry is one of a full set: it keeps its place, in which the others are not harmed. */
static void test_moved_in_a_full_set(void **state)
{
	struct es_handover_order order = {.kind = ES_HANDOVER_REQUEST, .moved = 1, .moves = 1, .requests = 3};
	unsigned int flow = flow_find(100, 1);
	__u32 now_ms = (__u32)(NOW_NS / 1000000);
	struct es_decided decided;
	struct message m;
	int other;

	(void)state;
	for (__u64 i = 0; i < ES_DECISION_WAYS; i++)
		es_decision_table_put(&in.decisions, hash_of(flow) ^ i, COOKIE, ISN, 2, &order,
				      now_ms - (__u32)i);
	es_health_set_state(&health, 2, ES_NODE_ABSENT);
	for (int i = 0; i < 2; i++) {
		inspect(flow, ES_FLOW_MOVED, 0, REQUEST);
		other = sent_to(&m);
		assert_true(other == 0 || other == 1);
		assert_int_equal(m.h.attempt, 1);
		assert_int_equal(!!(m.h.flags & ES_HANDOVER_F_REPEAT), i);
	}
	for (__u64 i = 0; i < ES_DECISION_WAYS; i++) {
		es_decision_table_look(&in.decisions, hash_of(flow) ^ i, COOKIE, ISN, now_ms, &decided);
		assert_true(decided.is_first && es_decided_is_moved(&decided));
		assert_int_equal(decided.node, i ? 2 : other);
		assert_int_equal(decided.order->attempt, !i);
	}
}

/* A message has eight bits for the attempt. When all are used up, the client is told, and nothing is numbered
 * anew: its target would take that for an attempt that it has refused before, and this node the answer for a
 * late one, for ever. */
static void test_moved_too_often(void **state)
{
	struct es_handover_order order = {
		.kind = ES_HANDOVER_REQUEST, .moved = 1, .moves = 1, .requests = 3, .attempt = 255};
	unsigned int flow = flow_find(100, 1);
	struct message m;

	(void)state;
	es_decision_table_put(&in.decisions, hash_of(flow), COOKIE, ISN, 2, &order,
			      (__u32)(NOW_NS / 1000000));
	es_health_set_state(&health, 2, ES_NODE_ABSENT);
	inspect(flow, ES_FLOW_MOVED, 0, REQUEST);
	assert_int_equal(sent_to(&m), -1);
	assert_int_equal(COUNT(no_target), 1);
}

/* Take what the kernel says, and return the node that gets a request for it. */
static int told(struct message *m)
{
	es_inspect_messages(&in);
	es_handover_flush(in.sender);
	return sent_to(m);
}

/* A request that did not arrive is given to another node, and stays there. */
static void test_unreachable(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct message m;
	int other;

	(void)state;
	only(2);
	vanish(2);
	assert_int_equal(request(number), -1);
	memset(&health, 0, sizeof(health));
	other = told(&m);
	assert_true(other == 0 || other == 1);
	assert_int_equal(m.h.attempt, 1);
	assert_int_equal(m.h.flags & ES_HANDOVER_F_REPEAT, 0);
	assert_int_equal(m.len, text_at() + strlen(REQUEST));
	assert_memory_equal(m.packet + text_at(), REQUEST, strlen(REQUEST));
	assert_int_equal(COUNT(unreachable), 1);
	assert_int_equal(request(number), other);
	assert_int_equal(COUNT(repeated), 1);
	assert_int_equal(HANDOVERS(2, sent), 1);
	assert_int_equal(HANDOVERS(2, unreachable), 1);
	assert_int_equal(REQUESTS(2, first), 1);
	assert_int_equal(REQUESTS(other, again), 1);
	/* The node is left alone for a while. */
	assert_false(es_cluster_is_target(cluster, &health, 2, in.now_ns));
	assert_true(es_cluster_is_target(cluster, &health, 2, in.now_ns + 2000000000ULL));
}

/* So is one that had moved its connection to a node that has crashed since: the next one got it but once. */
static void test_unreachable_after_a_crash(void **state)
{
	struct es_handover_order order = {.kind = ES_HANDOVER_REQUEST, .moved = 1, .moves = 1, .requests = 3};
	unsigned int flow = flow_find(1, 1);
	struct message m;

	(void)state;
	es_decision_table_put(&in.decisions, hash_of(flow), COOKIE, ISN, 2, &order,
			      (__u32)(NOW_NS / 1000000));
	only(1);
	es_health_set_state(&health, 2, ES_NODE_ABSENT);
	vanish(1);
	inspect(flow, ES_FLOW_MOVED, 0, REQUEST);
	assert_int_equal(sent_to(&m), -1);
	es_health_set_state(&health, 0, ES_NODE_UP);
	assert_int_equal(told(&m), 0);
	assert_int_equal(m.h.attempt, 2);
}

/* A long one is not quoted whole: it goes there when the client sends it again. */
static void test_unreachable_long(void **state)
{
	char text[1200] = "GET / HTTP/1.1\r\nHost: x\r\nCookie: ";
	unsigned int number = flow_find(1, 1);
	struct message m;
	int other;

	(void)state;
	memset(text + strlen(text), 'c', sizeof(text) - strlen(text) - 20);
	memcpy(text + sizeof(text) - 20, "\r\n\r\n", 5);
	only(2);
	vanish(2);
	inspect(number, ES_FLOW_NEW, 0, text);
	assert_int_equal(sent_to(&m), -1);
	memset(&health, 0, sizeof(health));
	assert_int_equal(told(&m), -1);
	assert_int_equal(COUNT(unreachable), 1);
	inspect(number, ES_FLOW_NEW, 0, text);
	other = sent_to(&m);
	assert_true(other == 0 || other == 1);
	assert_int_equal(m.len, text_at() + strlen(text));
	assert_true(m.h.flags & ES_HANDOVER_F_REPEAT);
}

/*
 * The error from the target's kernel is about the first message; meanwhile the client has repeated the
 * request, and the second message may be there.
 */
static void test_unreachable_and_repeated(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct message m;

	(void)state;
	only(2);
	vanish(2);
	assert_int_equal(request(number), -1);
	memset(&health, 0, sizeof(health));
	assert_int_equal(request(number), -1);
	assert_int_equal(COUNT(repeated), 1);
	assert_int_equal(told(&m), -1);
	assert_true(COUNT(unreachable) > 0);
}

/* A message that was repeated says nothing: the node may have had the first one, and have served it. */
static void test_unreachable_later(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct message m;

	(void)state;
	only(2);
	assert_int_equal(request(number), 2);
	vanish(2);
	memset(&health, 0, sizeof(health));
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(request(number), -1);
		assert_int_equal(told(&m), -1);
		assert_int_equal(COUNT(unreachable), i);
		assert_int_equal(COUNT(repeated), i);
	}
	/* Nor does what follows the first segment. */
	inspect(number, ES_FLOW_NEW, 5, "later");
	assert_int_equal(told(&m), -1);
	assert_int_equal(COUNT(followed), 1);
	assert_int_equal(COUNT(unreachable), 4);
	assert_int_equal(request(number), -1);
}

/* An error that quotes no message sent lately may be somebody else's, not the target's kernel's. */
static void test_unreachable_unquoted(void **state)
{
	struct es_handover_order order = {.kind = ES_HANDOVER_REQUEST};
	uint8_t packet[40] = {};
	struct message m;

	(void)state;
	only(2);
	vanish(2);
	assert_int_equal(request(flow_find(1, 1)), -1);
	for (int i = 0; i < 1024; i++)
		assert_int_equal(request_handover(in.sender, cluster, &order, packet, sizeof(packet), SELF),
				 0);
	es_handover_flush(in.sender);
	es_inspect_messages(&in);
	assert_int_equal(COUNT(errors_ignored), 1);
	assert_int_equal(COUNT(unreachable) + COUNT(no_target) + COUNT(send_failed), 0);
	assert_true(es_cluster_is_target(cluster, &health, 2, in.now_ns));
	while (recv(receiver[SELF], &m, sizeof(m), 0) > 0)
		;
}

/*
 * The unreachable node is left alone for that message's clients, and not before the others are: with nobody
 * left, it is tried.
 */
static void test_unreachable_and_tried(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct message m;

	(void)state;
	only(2);
	vanish(2);
	assert_int_equal(request(number), -1);
	assert_int_equal(told(&m), -1);
	assert_int_equal(COUNT(no_target), 1); /* no other one */
	assert_false(es_cluster_is_target_of(cluster, &health, 2, 0, !!clients_are_v6, in.now_ns));
	assert_true(es_cluster_is_target_of(cluster, &health, 2, 0, !clients_are_v6, in.now_ns));
	es_health_set_state(&health, 1, ES_NODE_UP);
	es_health_suspend(&health, 1, in.now_ns + 1);
	assert_int_equal(request(flow_find(number + 1, 1)), 1);
	es_health_suspend(&health, 1, in.now_ns + 2000000000ULL);
	inspect(flow_find(number + 30, 1), ES_FLOW_NEW, 0, REQUEST);
	assert_int_equal(told(&m), 1); /* it is not there yet, so the other one */
	assert_int_equal(COUNT(unreachable), 2);
	assert_int_equal(COUNT(no_target), 1);
}

/* Nobody is left: the client is told, as it is when all refuse. */
static void test_unreachable_all(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct message m;

	(void)state;
	only(2);
	vanish(2);
	assert_int_equal(request(number), -1);
	assert_int_equal(told(&m), -1);
	assert_int_equal(COUNT(no_target), 1);
}

/* A flow that the ring does not give this node, or not yet, or not any more, is not inspected. */
static void test_not_mine(void **state)
{
	unsigned int ours = flow_find(1, 1), foreign = flow_find(1, 0);
	struct es_cluster *next = NULL;
	struct es_share none = {};
	struct message m;

	(void)state;
	assert_int_equal(request(foreign), -1);
	assert_int_equal(COUNT(not_mine), 1);
	inspect(foreign, ES_FLOW_NEW, 5, "later");
	assert_int_equal(sent_to(&m), -1);
	assert_int_equal(COUNT(not_mine), 2);
	assert_true(request(ours) >= 0);
	/* The slot waits, also for what is decided already. */
	assert_int_equal(es_cluster_new(conf, SELF, 2, NULL, &none, &next), 0);
	in.cluster = next;
	assert_int_equal(request(ours), -1);
	assert_int_equal(COUNT(not_mine), 3);
	in.cluster = cluster;
	assert_true(request(ours) >= 0);
	/* And the gathered beginning of a request, when the ring changes before the rest arrives. */
	ours = flow_find(ours + 1, 1);
	inspect(ours, ES_FLOW_NEW, 0, "GET / HT");
	in.cluster = next;
	in.now_ns += 300000000;
	es_inspect_deadlines(&in);
	es_handover_flush(in.sender);
	assert_int_equal(sent_to(&m), -1);
	assert_int_equal(COUNT(not_mine), 4);
	assert_int_equal(COUNT(send_failed), 0);
	in.cluster = cluster;
	es_cluster_free(&next);
}

/* The lease is over: what lies in the queue may be another node's. */
static void test_silent(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct es_handover_order order = {.kind = ES_HANDOVER_REQUEST, .moved = 1};
	struct message m;

	(void)state;
	lease_ns = NOW_NS + 1;
	assert_true(request(number) >= 0);
	lease_ns = NOW_NS;
	assert_int_equal(request(number), -1);
	lease_ns = 1;
	assert_int_equal(request(number), -1);
	assert_int_equal(request(flow_find(number + 1, 1)), -1);
	inspect(number, ES_FLOW_NEW, 5, "later");
	assert_int_equal(sent_to(&m), -1);
	assert_int_equal(COUNT(not_mine), 4);
	assert_int_equal(COUNT(requests), 1);
	/* A connection that moved away from here is still this node's. */
	es_decision_table_put(&in.decisions, hash_of(number), COOKIE, ISN, 2, &order,
			      (__u32)(NOW_NS / 1000000));
	inspect(number, ES_FLOW_MOVED, 0, REQUEST);
	assert_int_equal(sent_to(&m), 2);
	lease_ns = 0;
	assert_true(request(flow_find(number + 20, 1)) >= 0);
	assert_int_equal(COUNT(send_failed), 0);
}

/* A silent node says nothing to a client either: no request of a new flow goes out, and no RST. */
static void test_silent_gathered(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct message m;

	(void)state;
	inspect(number, ES_FLOW_NEW, 0, "GET / HT");
	lease_ns = NOW_NS + 100000000;
	in.now_ns += 300000000;
	es_inspect_deadlines(&in);
	es_handover_flush(in.sender);
	assert_int_equal(sent_to(&m), -1);
	for (unsigned int i = 0; i < NODES; i++)
		es_health_set_state(&health, i, ES_NODE_ABSENT);
	number = flow_find(number + 1, 1);
	lease_ns = 0;
	inspect(number, ES_FLOW_NEW, 0, "GET / HT");
	lease_ns = 1;
	in.now_ns += 300000000;
	es_inspect_deadlines(&in);
	assert_int_equal(COUNT(send_failed), 0);
	assert_int_equal(COUNT(not_mine), 2);
	assert_int_equal(es_gather_count(in.gathers), 0);
}

/* The node learns where a request went that another node inspected before this node got its slot. */
static void test_learn(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct es_proof proof = {
		.flow_hash = hash_of(number), .cookie = COOKIE, .first_seq = ISN + 1, .node = 2};

	(void)state;
	for (unsigned int node = 0; node < NODES; node++) {
		proof.node = node;
		es_inspector_learn(&in, &proof, 1);
		assert_int_equal(request(number), node);
	}
	assert_int_equal(COUNT(repeated), NODES);
	assert_int_equal(COUNT(requests), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_repeated),
		TEST(test_moved),
		TEST(test_moved_in_a_full_set),
		TEST(test_moved_too_often),
		TEST(test_not_mine),
		TEST(test_silent),
		TEST(test_silent_gathered),
		TEST(test_learn),
		TEST(test_unreachable),
		TEST(test_unreachable_after_a_crash),
		TEST(test_unreachable_long),
		TEST(test_unreachable_and_repeated),
		TEST(test_unreachable_later),
		TEST(test_unreachable_unquoted),
		TEST(test_unreachable_and_tried),
		TEST(test_unreachable_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
