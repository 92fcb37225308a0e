// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests that are repeated after the loss of their node, which may have executed them: those that are not
 * safe are not executed twice.
 */
#include "cmocka_all.h"
#include "tests/unit/inspect_world.h"

#define MS	   1000000ULL
#define POST	   "POST /order HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nid=1"
#define TLS_HELLO  "\x16\x03\x01\x02\x04\x01"
#define PREFACE	   "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define NO_REQUEST "* OK [CAPABILITY] ready\r\n"

static unsigned int next_flow = 1;

/* A new flow of this node's, whose request has been given to node 2. */
static unsigned int given(const char *text)
{
	unsigned int number = flow_find(next_flow, 1);
	struct message m;

	next_flow = number + 1;
	only(2);
	inspect(number, ES_FLOW_NEW, 0, text);
	assert_int_equal(sent_to(&m), 2);
	memset(&health, 0, sizeof(health));
	memset(in.count, 0, sizeof(in.count));
	return number;
}

static void lose(unsigned int node, enum es_node_state state)
{
	in.now_ns += 10 * MS;
	es_health_set_lost(&health, node, in.now_ns);
	es_health_set_state(&health, node, state);
	in.now_ns += 10 * MS;
}

/* The client repeats its request; returns the node that gets it; -1: none, and its client was told. */
static int again(unsigned int number, enum es_record_flow flow, const char *text)
{
	int before = COUNT(doubtful), node;
	struct message m;

	inspect(number, flow, 0, text);
	node = sent_to(&m);
	assert_int_equal(COUNT(doubtful) - before, node < 0);
	return node;
}

/* Since when the flow's slot is this node's, and there are doubts. */
static void tenure(unsigned int number, __u64 since_ms, __u64 doubts_ms)
{
	static struct es_tenure of;

	memset(&of, 0, sizeof(of));
	of.doubts_ms = doubts_ms;
	of.since_ms[hash_of(number) >> 48] = since_ms;
	assert_int_equal(es_cluster_set_tenure(cluster, &of), 0);
}

static void test_methods(void **state)
{
	static const struct {
		const char *text;
		int is_unsafe[3]; /* by enum es_unsafe */
	} cases[] = {
		{REQUEST, {0, 0, 0}},
		{"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n", {0, 0, 0}},
		{"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", {0, 0, 0}},
		{"TRACE / HTTP/1.1\r\nHost: x\r\n\r\n", {0, 0, 0}},
		{"\r\n\r\nGET / HTTP/1.0\r\n\r\n", {0, 0, 0}},
		{"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody", {0, 0, 0}},
		{POST, {1, 0, 1}},
		{"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", {1, 0, 1}},
		{"DELETE /a HTTP/1.1\r\nHost: x\r\n\r\n", {1, 0, 1}},
		{"PATCH / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", {1, 0, 1}},
		{"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", {1, 0, 1}},
		{"get / HTTP/1.1\r\nHost: x\r\n\r\n", {1, 0, 1}},
		{"GETS / HTTP/1.1\r\nHost: x\r\n\r\n", {1, 0, 1}},
		/* what is ambiguous in other ways, and what follows unseen */
		{"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", {1, 0, 1}},
		{"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", {0, 0, 0}},
		{REQUEST POST, {1, 0, 1}},
		/* not read */
		{TLS_HELLO, {0, 0, 1}},
		{PREFACE, {0, 0, 1}},
		{NO_REQUEST, {0, 0, 1}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int setting = 0; setting < 3; setting++) {
			unsigned int number;
			int node;

			conf->services[0].unsafe = (enum es_unsafe)setting;
			number = given(cases[i].text);
			lose(2, ES_NODE_ABSENT);
			node = again(number, ES_FLOW_NEW, cases[i].text);
			if ((node < 0) != cases[i].is_unsafe[setting] || node == 2)
				fail_msg("%s, setting %d: node %d", cases[i].text, setting, node);
			/* And so it stays: the RST may be lost. */
			in.now_ns += 3000 * MS;
			assert_int_equal(again(number, ES_FLOW_NEW, cases[i].text), node);
		}
}

/* The lost node is back, and has lost all that it had; a safe request goes where it went. */
static void test_back_again(void **state)
{
	unsigned int unsafe = given(POST), safe = given(REQUEST), later;

	(void)state;
	lose(2, ES_NODE_UP);
	assert_int_equal(again(unsafe, ES_FLOW_NEW, POST), -1);
	assert_int_equal(again(safe, ES_FLOW_NEW, REQUEST), 2);
	/* The node has the requests that it got since then. */
	later = flow_find(next_flow, 1);
	es_health_set_state(&health, 0, ES_NODE_DOWN);
	es_health_set_state(&health, 1, ES_NODE_DOWN);
	assert_int_equal(again(later, ES_FLOW_NEW, POST), 2);
	assert_int_equal(again(later, ES_FLOW_NEW, POST), 2);
	assert_int_equal(COUNT(repeated), 2);
}

/* A node that is a member, drains, has no server or left in order has what it got. */
static void test_not_lost(void **state)
{
	(void)state;
	for (enum es_node_state s = ES_NODE_UP; s < ES_NODE_ABSENT; s++) {
		unsigned int number = given(POST);

		in.now_ns += 10 * MS;
		es_health_set_state(&health, 2, s);
		es_health_set_lost(&health, 1, in.now_ns);
		assert_int_equal(again(number, ES_FLOW_NEW, POST), 2);
	}
}

/* A head in several segments: the first one tells. */
static void test_not_complete(void **state)
{
	static const char *const first[] = {"POST / HTTP/1.1\r\nHost", "GET / HTTP/1.1\r\nHost"};
	struct message m;

	(void)state;
	for (int i = 0; i < 2; i++) {
		unsigned int number = flow_find(next_flow, 1);

		next_flow = number + 1;
		only(2);
		inspect(number, ES_FLOW_NEW, 0, first[i]);
		inspect(number, ES_FLOW_NEW, (uint32_t)strlen(first[i]), ": x\r\n\r\n");
		assert_int_equal(sent_to(&m), 2);
		assert_int_equal(sent_to(&m), 2);
		memset(&health, 0, sizeof(health));
		lose(2, ES_NODE_ABSENT);
		inspect(number, ES_FLOW_NEW, 0, first[i]);
		assert_int_equal(COUNT(doubtful), 1);
		if (i)
			inspect(number, ES_FLOW_NEW, (uint32_t)strlen(first[i]), ": x\r\n\r\n");
		assert_true((sent_to(&m) >= 0) == i);
	}
}

/* A later request, which moved its connection away from here. */
static void test_moved(void **state)
{
	struct es_handover_order order = {.kind = ES_HANDOVER_REQUEST, .moved = 1, .moves = 1, .requests = 3};

	(void)state;
	for (int unsafe = 0; unsafe < 2; unsafe++) {
		const char *text = unsafe ? POST : REQUEST;
		unsigned int number = flow_find(next_flow, 0);

		next_flow = number + 1;
		memset(&health, 0, sizeof(health));
		order.unsafe = (uint8_t)unsafe;
		es_decision_table_put(&in.decisions, hash_of(number), COOKIE, ISN, 2, &order,
				      (__u32)(in.now_ns / MS));
		assert_int_equal(again(number, ES_FLOW_MOVED, text), 2);
		lose(2, ES_NODE_UP);
		assert_int_equal(again(number, ES_FLOW_MOVED, text), unsafe ? -1 : 2);
		es_health_set_state(&health, 2, ES_NODE_ABSENT);
		assert_true((again(number, ES_FLOW_MOVED, text) < 0) == unsafe);
	}
}

/*
 * A request that this node takes over with its share of the ring, and that was heard when it was another
 * node's.
 */
static void test_overheard(void **state)
{
	unsigned int number = flow_find(next_flow, 1);
	struct es_proof proof = {
		.flow_hash = hash_of(number), .cookie = COOKIE, .first_seq = ISN + 1, .node = 2};

	(void)state;
	assert_int_equal(again(number, ES_FLOW_DOUBTFUL, POST), -1);
	assert_int_equal(again(number, ES_FLOW_DOUBTFUL, POST), -1);
	assert_true(again(number, ES_FLOW_DOUBTFUL, REQUEST) >= 0);
	/* Its node is a member, and says so. */
	tenure(number, in.now_ns / MS, in.now_ns / MS);
	es_inspector_learn(&in, &proof, 1);
	assert_int_equal(again(number, ES_FLOW_DOUBTFUL, POST), 2);
	/* Gathered. */
	number = flow_find(number + 1, 1);
	inspect(number, ES_FLOW_DOUBTFUL, 0, "POST / HTTP/1.1\r\nHost");
	inspect(number, ES_FLOW_NEW, 21, ": x\r\n\r\n");
	assert_int_equal(COUNT(doubtful), 3);
	assert_int_equal(es_gather_count(in.gathers), 0);
}

/*
 * The node to which this node gave a request once is no news, when the request has been another node's since.
 */
static void test_overheard_after_it_was_given(void **state)
{
	unsigned int number = given(POST);
	__u64 given_ms = in.now_ns / MS;
	struct es_proof proof = {
		.flow_hash = hash_of(number), .cookie = COOKIE, .first_seq = ISN + 1, .node = 1};

	(void)state;
	tenure(number, given_ms - 1000, given_ms - 2000);
	in.now_ns += 10 * MS;
	assert_int_equal(again(number, ES_FLOW_DOUBTFUL, POST), 2);
	tenure(number, given_ms + 10, given_ms - 2000);
	assert_int_equal(again(number, ES_FLOW_NEW, POST), 2);
	assert_int_equal(again(number, ES_FLOW_DOUBTFUL, POST), -1);
	/*
	 * A proof that the ring's change has brought to light holds, though the slot is this node's only now.
	 */
	es_inspector_learn(&in, &proof, 1);
	in.now_ns += 10 * MS;
	assert_int_equal(again(number, ES_FLOW_DOUBTFUL, POST), 1);
}

/* Slots that were this node's all the time that there are doubts: what it heard there, perhaps while its
 * lease was over, nobody else has given to anyone. */
static void test_overheard_of_a_slot_that_was_kept(void **state)
{
	unsigned int number = flow_find(next_flow, 1);
	__u64 now_ms = in.now_ns / MS;

	(void)state;
	tenure(number, now_ms - 500, now_ms - 500);
	assert_int_equal(again(number, ES_FLOW_DOUBTFUL, POST), -1);
	tenure(number, now_ms - 501, now_ms - 500);
	assert_true(again(number, ES_FLOW_DOUBTFUL, POST) >= 0);
	tenure(number, 0, now_ms - 500);
	number = flow_find(number + 1, 1);
	assert_int_equal(again(number, ES_FLOW_DOUBTFUL, POST), -1);
}

/*
 * The request's socket was to be made, and nothing is heard of it: a request that may be executed twice goes
 * to another node.
 */
static void test_vanished(void **state)
{
	static const struct {
		const char *text;
		int goes_elsewhere;
	} cases[] = {{REQUEST, 1}, {POST, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned int number = flow_find(next_flow, 1);
		struct message m;
		int node;

		next_flow = number + 1;
		only(2);
		inspect(number, ES_FLOW_NEW, 0, cases[i].text);
		assert_int_equal(sent_to(&m), 2);
		memset(&health, 0, sizeof(health));
		memset(in.count, 0, sizeof(in.count));
		nack(&m, ES_NACK_VANISHED);
		node = sent_to(&m);
		assert_int_equal(COUNT(nacks), 1);
		assert_true(cases[i].goes_elsewhere ? node == 0 || node == 1 : node < 0);
		/* Others may be heard there. */
		assert_true(es_cluster_is_target(cluster, &health, 2, in.now_ns));
	}
}

/*
 * The request's node has ended it unheard, and this one knows nothing of that: the messages say what must not
 * be executed twice.
 */
static void test_ended_unheard(void **state)
{
	static const char *const texts[] = {REQUEST, POST};
	struct message m;

	(void)state;
	for (int is_unsafe = 0; is_unsafe < 2; is_unsafe++) {
		unsigned int number = flow_find(next_flow, 1);

		next_flow = number + 1;
		only(2);
		for (int again = 0; again < 2; again++) {
			inspect(number, ES_FLOW_NEW, 0, texts[is_unsafe]);
			assert_int_equal(sent_to(&m), 2);
			assert_true(!(m.h.flags & ES_HANDOVER_F_REPEAT) == !again);
			assert_true(!(m.h.flags & ES_HANDOVER_F_UNSAFE) == !is_unsafe);
		}
		memset(&health, 0, sizeof(health));
		memset(in.count, 0, sizeof(in.count));
	}
	nack(&m, ES_NACK_DOUBTFUL);
	assert_int_equal(COUNT(doubtful), 1);
	assert_int_equal(COUNT(nacks), 0);
	assert_int_equal(sent_to(&m), -1);
	assert_true(es_cluster_is_target(cluster, &health, 2, in.now_ns));
}

/* If there is no other node, the same node is asked once more. */
static void test_vanished_alone(void **state)
{
	unsigned int number = flow_find(next_flow, 1);
	struct message m;

	(void)state;
	next_flow = number + 1;
	only(2);
	inspect(number, ES_FLOW_NEW, 0, REQUEST);
	assert_int_equal(sent_to(&m), 2);
	nack(&m, ES_NACK_VANISHED);
	assert_int_equal(sent_to(&m), 2);
	assert_int_equal(m.h.attempt, 1);
	memset(&health, 0, sizeof(health));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_methods),
		TEST(test_back_again),
		TEST(test_not_lost),
		TEST(test_not_complete),
		TEST(test_moved),
		TEST(test_overheard),
		TEST(test_overheard_after_it_was_given),
		TEST(test_overheard_of_a_slot_that_was_kept),
		TEST(test_vanished),
		TEST(test_ended_unheard),
		TEST(test_vanished_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
