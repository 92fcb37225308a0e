// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Nodes ask what became of requests where there is a reason, and act on the answers: a node is told that it
 * does not hear clients whom another one hears; a client whom nobody hears costs no more handovers.
 */
#include "cmocka_all.h"
#include "kmod/core/settled.h"
#include "tests/unit/inspect_world.h"
#include "membership/wire.h"

static unsigned int next_client = 1;

/* All nodes from @first on; all answer questions. */
static void up_from(unsigned int first)
{
	memset(&health, 0, sizeof(health));
	for (unsigned int i = 0; i < NODES; i++) {
		es_health_set_state(&health, i, i >= first ? ES_NODE_UP : ES_NODE_DOWN);
		health.understands[i] = ES_WIRE_UNDERSTANDS_FATE;
	}
}

static void only_up(unsigned int node)
{
	up_from(0);
	for (unsigned int i = 0; i < NODES; i++)
		if (i != node)
			es_health_set_state(&health, i, ES_NODE_DOWN);
}

static struct es_record connection(unsigned int client, uint16_t *port, uint8_t *bytes)
{
	struct es_flow flow = flow_of(client);
	struct es_record record;

	/* The first port from @port on with which the connection is this node's to inspect. */
	do {
		flow.client_port = htons(++*port);
		record = segment(client, 0, REQUEST, bytes);
		record.flow_hash = es_flow_hash(&in.keys.ring, in.keys.ring_seed, &flow);
	} while (!es_cluster_inspects(cluster, record.flow_hash));
	memcpy(bytes + tcp_at(), &flow.client_port, 2);
	return record;
}

/* The client's request on a new connection, by @port or a later one. */
static void asks(unsigned int client, uint16_t *port)
{
	uint8_t bytes[1500];
	struct es_record record = connection(client, port, bytes);

	es_inspect_record(&in, &record, bytes);
	es_handover_flush(in.sender);
}

/* The client sends the same again. */
static void repeats(unsigned int client, uint16_t port)
{
	port--;
	asks(client, &port);
}

static void later(unsigned int ms)
{
	in.now_ns += ms * 1000000ULL;
	es_inspect_deadlines(&in);
	es_handover_flush(in.sender);
}

static int given(unsigned int client, uint16_t *port, struct message *m)
{
	int node;

	asks(client, port);
	node = sent_to(m);
	assert_int_equal(m->h.kind, ES_HANDOVER_REQUEST);
	return node;
}

/* The next message is a question; returns to whom. */
static int question(struct message *m)
{
	int node = sent_to(m);

	assert_true(node >= 0);
	assert_int_equal(m->h.kind, ES_HANDOVER_FATE);
	return node;
}

static int evidence(struct es_evidence *ret)
{
	return !es_evidence_take(&in.unheard.evidence, ret);
}

/* A request on @node, repeated until it is asked about; that node says so of it. */
static void says(unsigned int client, uint16_t *port, unsigned int node, enum es_nack_reason reason)
{
	struct message m;

	only_up(node);
	assert_int_equal(given(client, port, &m), node);
	/* Requests of a client about whom something is noted are asked about anyway. */
	later(ES_UNHEARD_ASK_MS);
	repeats(client, *port);
	later(0);
	do
		assert_int_equal(sent_to(&m), node);
	while (m.h.kind != ES_HANDOVER_FATE);
	nack(&m, reason);
	while (sent_to(&m) >= 0)
		assert_int_equal(m.h.kind, ES_HANDOVER_REQUEST);
	up_from(0);
}

/* A client that has waited for less than a second is none to ask about. */
static void test_asked(void **state)
{
	unsigned int client = next_client++;
	uint16_t port = 1000;
	struct message m;

	(void)state;
	only_up(2);
	assert_int_equal(given(client, &port, &m), 2);
	later(ES_SETTLED_VANISHED_MS - 1);
	assert_int_equal(sent_to(&m), -1);
	repeats(client, port);
	assert_int_equal(sent_to(&m), 2);
	later(0);
	assert_int_equal(sent_to(&m), -1);
	later(1);
	repeats(client, port);
	assert_int_equal(sent_to(&m), 2);
	assert_int_equal(m.h.kind, ES_HANDOVER_REQUEST);
	later(0);
	assert_int_equal(question(&m), 2);
	assert_int_equal(m.len, text_at() + 1);
	assert_int_equal(COUNT(fates_asked), 1);
	later(0);
	assert_int_equal(sent_to(&m), -1);
}

/* A version before does not know the question. */
static void test_not_understood(void **state)
{
	unsigned int client = next_client++;
	uint16_t port = 1000;
	struct message m;

	(void)state;
	only_up(2);
	health.understands[2] = 0xff & ~ES_WIRE_UNDERSTANDS_FATE;
	given(client, &port, &m);
	later(2000);
	repeats(client, port);
	assert_int_equal(sent_to(&m), 2);
	later(0);
	assert_int_equal(sent_to(&m), -1);
}

/* The client is heard elsewhere, so the node is told, once for each request. */
static void test_node(void **state)
{
	unsigned int client = next_client++;
	uint16_t port = 1000;
	struct es_evidence e;
	struct message m;
	__u64 request;

	(void)state;
	says(client, &port, 2, ES_NACK_UNHEARD);
	assert_false(evidence(&e)); /* by now, it may be the client */
	only_up(1);
	assert_int_equal(given(client, &port, &m), 1);
	later(ES_UNHEARD_ASK_MS - 1);
	assert_int_equal(sent_to(&m), -1);
	later(1);
	assert_int_equal(question(&m), 1);
	nack(&m, ES_NACK_HEARD);
	assert_true(evidence(&e));
	assert_true(e.node == 2 && !e.is_heard && e.request && e.address && e.prefix);
	request = e.request;
	assert_false(evidence(&e));
	says(client, &port, 2, ES_NACK_UNHEARD);
	assert_true(evidence(&e));
	assert_true(e.node == 2 && e.request != request);
	assert_false(evidence(&e));
}

/* Where a client is heard at times, nothing is held against the node. */
static void test_heard_there_too(void **state)
{
	unsigned int client = next_client++;
	uint16_t port = 1000;
	struct es_evidence e;

	(void)state;
	says(client, &port, 2, ES_NACK_HEARD);
	says(client, &port, 1, ES_NACK_HEARD);
	says(client, &port, 2, ES_NACK_UNHEARD);
	assert_false(evidence(&e));
}

/* Two nodes give its request back: it gets a RST, and what else it asks goes to nobody else. */
static void test_own_affair(void **state)
{
	unsigned int client = next_client++;
	uint16_t port = 1000;
	struct es_evidence e;
	struct message m;
	int second;

	(void)state;
	only_up(2);
	assert_int_equal(given(client, &port, &m), 2);
	up_from(0);
	later(5000);
	nack(&m, ES_NACK_VANISHED);
	second = sent_to(&m);
	assert_in_range(second, 0, 1);
	later(5000);
	while (m.h.kind != ES_HANDOVER_REQUEST || m.h.target != second)
		sent_to(&m);
	nack(&m, ES_NACK_VANISHED);
	assert_int_equal(COUNT(no_target), 1);
	while (sent_to(&m) >= 0)
		assert_int_equal(m.h.kind, ES_HANDOVER_FATE);
	assert_false(evidence(&e));
	for (int i = 0; i < 5; i++) {
		assert_int_equal(given(client, &port, &m), SELF);
		assert_int_equal(COUNT(own_affair), i + 1);
		later(ES_UNHEARD_OWN_MS / 5);
		while (sent_to(&m) >= 0)
			assert_int_equal(m.h.kind, ES_HANDOVER_FATE);
	}
	only_up(2);
	assert_int_equal(given(client, &port, &m), 2);
	assert_int_equal(COUNT(own_affair), 5);
}

static void drain(void)
{
	struct message m;

	for (int i = 0; i < NODES; i++)
		while (recvfrom(receiver[i], &m, sizeof(m), 0, NULL, NULL) > 0)
			;
}

/*
 * A client whose requests all go to one node, and who gives them up before that gives one back, is given to
 * another one, too.
 */
static void test_elsewhere(void **state)
{
	unsigned int client = next_client++;
	int before;
	uint16_t port = 1000;

	(void)state;
	for (int i = 0; i < 2; i++)
		says(client, &port, 2, ES_NACK_UNHEARD);
	before = REQUESTS(2, first);
	for (int i = 0; i < 6; i++)
		asks(client, &port);
	assert_int_equal(REQUESTS(2, first), before);
	drain();
	only_up(2);
	asks(client, &port);
	assert_int_equal(REQUESTS(2, first), before + 1);
	assert_int_equal(COUNT(own_affair), 0);
}

/*
 * The node has not answered the question yet when it gives the request back: the next one is asked in its
 * place.
 */
static void test_asked_anew(void **state)
{
	unsigned int client = next_client++;
	uint16_t port = 1000;
	struct message m, request;
	int second;

	(void)state;
	only_up(2);
	assert_int_equal(given(client, &port, &request), 2);
	up_from(0);
	later(ES_SETTLED_VANISHED_MS);
	repeats(client, port);
	later(0);
	while (sent_to(&m) >= 0)
		;
	assert_int_equal(COUNT(fates_asked), 1);
	nack(&request, ES_NACK_VANISHED);
	second = sent_to(&m);
	assert_int_equal(m.h.kind, ES_HANDOVER_REQUEST);
	assert_in_range(second, 0, 1);
	later(ES_UNHEARD_ASK_MS);
	assert_int_equal(question(&m), second);
}

/* This node hears the client after all: being unheard is not the client's own affair any more. */
static void test_own_affair_ends(void **state)
{
	unsigned int client = next_client++;
	uint16_t port = 1000;
	struct message m;

	(void)state;
	says(client, &port, 2, ES_NACK_UNHEARD);
	says(client, &port, 1, ES_NACK_UNHEARD);
	assert_int_equal(given(client, &port, &m), SELF);
	assert_int_equal(COUNT(own_affair), 1);
	later(ES_UNHEARD_ASK_MS);
	assert_int_equal(question(&m), SELF);
	nack(&m, ES_NACK_HEARD);
	only_up(2);
	assert_int_equal(given(client, &port, &m), 2);
	assert_int_equal(COUNT(own_affair), 1);
}

/* If a node does not hear somebody, it is asked about others' requests, too, and told what was heard. */
static void test_samples(void **state)
{
	unsigned int client = next_client++, other = next_client++;
	uint16_t port = 1000;
	struct es_evidence e;
	struct message m;

	(void)state;
	only_up(2);
	given(other, &port, &m);
	later(2000);
	assert_int_equal(sent_to(&m), -1); /* without a reason, nobody is */
	says(client, &port, 2, ES_NACK_UNHEARD);
	only_up(2);
	given(other, &port, &m);
	later(ES_UNHEARD_ASK_MS);
	assert_int_equal(question(&m), 2);
	nack(&m, ES_NACK_HEARD);
	assert_true(evidence(&e));
	assert_true(e.node == 2 && e.is_heard);
}

/* Clients of one /64 are one. */
static void test_same_network(void **state)
{
	unsigned int client = next_client++, other = next_client++;
	uint16_t port = 1000;
	struct message m;

	(void)state;
	says(client, &port, 2, ES_NACK_UNHEARD);
	says(other, &port, 1, ES_NACK_UNHEARD);
	only_up(0);
	assert_int_equal(given(next_client++, &port, &m), SELF);
	assert_int_equal(COUNT(own_affair), 1);
}

/* So many clients at once are no more than there is room for. */
static void test_bounded(void **state)
{
	struct es_unheard *u = &in.unheard;
	unsigned int kept = 0;
	struct es_evidence e;

	(void)state;
	for (unsigned int i = 1; i <= 10 * ES_UNHEARD_CLIENTS; i++) {
		const struct es_addr address = es_addr_from_v4(htonl(0x0a000000 + i));
		struct es_unheard_client *c = es_unheard_get(u, &in.keys.ring, 0, &address, 1000 + i);

		es_unheard_vanished(u, c, 1, i, 1000 + i);
		es_unheard_heard(u, c, 2, 1000 + i);
	}
	while (evidence(&e))
		kept++;
	assert_int_equal(kept, ES_EVIDENCE_ENTRIES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_asked),
		TEST(test_not_understood),
		TEST(test_node),
		TEST(test_heard_there_too),
		TEST(test_own_affair),
		TEST(test_elsewhere),
		TEST(test_own_affair_ends),
		TEST(test_asked_anew),
		TEST_V4(test_samples),
		{"test_same_network (IPv6)", test_same_network, setup_v6, teardown, NULL},
		TEST_V4(test_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
