// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Connections that nobody reads and this node does not serve: who gets them, how often that is said, and when
 * it is not said any more.
 */
#include "cmocka_all.h"
#include "tests/unit/inspect_world.h"

static unsigned int client;

/*
 * Begins with another client, whose connections this node inspects, of a service that nobody reads; the
 * others take handshakes alone, or not.
 */
static void begin(int makes)
{
	conf->services[0].inspect = ES_INSPECT_NEVER;
	strcpy(conf->services[0].policy, "ring");
	for (unsigned int i = 0; i < NODES; i++)
		atomic_store(&health.makes[i], makes && i != SELF ? ES_MAKES_OF_HANDSHAKES : 0);
	client = flow_find(client + 1, 1);
}

static void ack(enum es_record_flow flow)
{
	inspect(client, flow, 0, "");
}

static void later(unsigned int ms)
{
	in.now_ns += ms * 1000000ULL;
	es_inspect_deadlines(&in);
	es_handover_flush(in.sender);
}

static int given(struct message *m, unsigned int attempt, int is_again)
{
	int node = sent_to(m);

	assert_int_equal(m->h.kind, ES_HANDOVER_REQUEST);
	assert_int_equal(m->h.attempt, attempt);
	assert_int_equal(!!(m->h.flags & ES_HANDOVER_F_REPEAT), is_again);
	return node;
}

/*
 * The ring's next node has it; it is told again until it says that it has, and no more often than three
 * times.
 */
static void test_repeated(void **state)
{
	struct message m;
	int node;

	(void)state;
	begin(1);
	ack(ES_FLOW_UNSERVED);
	node = given(&m, 1, 0);
	assert_true(node > SELF);
	later(49);
	assert_int_equal(sent_to(&m), -1);
	later(1);
	assert_int_equal(given(&m, 1, 1), node);
	later(200);
	assert_int_equal(given(&m, 1, 1), node);
	later(1000);
	assert_int_equal(given(&m, 1, 1), node);
	later(10000);
	assert_int_equal(sent_to(&m), -1);
	assert_int_equal(COUNT(layer4_given), 1);
	assert_int_equal(COUNT(layer4_repeated), 3);
}

static void test_made(void **state)
{
	struct message m;

	(void)state;
	begin(1);
	ack(ES_FLOW_UNSERVED);
	assert_true(given(&m, 1, 0) > SELF);
	nack(&m, ES_NACK_MADE);
	later(10000);
	assert_int_equal(sent_to(&m), -1);
	assert_int_equal(COUNT(nacks) + COUNT(nack_bad) + COUNT(nack_late), 0);
}

/* given(), as a bit */
static unsigned int given_bit(struct message *m, unsigned int attempt, int repeat)
{
	int node = given(m, attempt, repeat);

	return node < 0 ? 0 : 1U << (unsigned int)node;
}

/* Each of the others is tried once; when all have refused it, the client is told. */
static void test_refused(void **state)
{
	unsigned int nodes;
	struct message m;

	(void)state;
	begin(1);
	ack(ES_FLOW_UNSERVED);
	nodes = given_bit(&m, 1, 0);
	assert_int_not_equal(nodes, 1U << SELF);
	nack(&m, ES_NACK_NO_LISTENER);
	nodes |= given_bit(&m, 2, 0);
	later(50); /* the first one is not told again */
	nodes |= given_bit(&m, 2, 1);
	nack(&m, ES_NACK_NO_LISTENER);
	assert_int_equal(nodes, 6);
	assert_int_equal(sent_to(&m), -1);
	assert_int_equal(COUNT(no_target), 1);
	/* They have refused this service; their others they may serve. */
	for (unsigned int node = 1; node < NODES; node++) {
		unsigned int family = (unsigned int)clients_are_v6;

		assert_false(es_cluster_is_target_of(cluster, &health, node, 0, family, in.now_ns));
		assert_true(es_cluster_is_target_of(cluster, &health, node, 0, !family, in.now_ns));
		assert_true(es_cluster_is_target_of(cluster, &health, node, 1, family, in.now_ns));
	}
	later(10000);
	assert_int_equal(sent_to(&m), -1);
}

/*
 * Where the service is on one other node alone, nobody else is asked: not the third, which would be next, nor
 * this one.
 */
static void test_elsewhere(void **state)
{
	struct message m;

	(void)state;
	for (unsigned int node = 1; node < NODES; node++) {
		begin(1);
		conf->services[0].nodes = (struct es_node_set){{1ULL << node}};
		ack(ES_FLOW_UNSERVED);
		assert_int_equal(given(&m, 1, 0), node);
		nack(&m, ES_NACK_NO_LISTENER);
		/* Nobody is left but who has refused: no node is asked a second time. */
		assert_int_equal(sent_to(&m), -1);
		assert_int_equal(COUNT(no_target), node);
		in.now_ns += 10 * 1000000000ULL;
	}
}

/* Bytes that arrived after the ACK go to the node that got the ACK, whoever would have them now. */
static void test_bytes(void **state)
{
	struct message m;
	int node;

	(void)state;
	begin(1);
	ack(ES_FLOW_UNSERVED);
	node = given(&m, 1, 0);
	es_health_suspend(&health, (unsigned int)node, in.now_ns + 1000000000);
	inspect(client, ES_FLOW_NEW, 0, "POST / HTTP/1.1\r\n"); /* which nobody reads */
	assert_int_equal(given(&m, 1, 1), node);
	inspect(client, ES_FLOW_NEW, 17, "\r\n");
	assert_int_equal(sent_to(&m), node);
	assert_int_equal(m.h.kind, ES_HANDOVER_FOLLOW);
	client = flow_find(client + 1, 1);
	inspect(client, ES_FLOW_NEW, 17, "\r\n"); /* of a connection that was not given away */
	assert_int_equal(sent_to(&m), -1);
}

/* TLS that ends at earshot-tls is such a connection, although a policy reads its requests there. */
static void test_tls(void **state)
{
	struct message m;

	(void)state;
	begin(1);
	conf->services[0].tls.line = 1;
	strcpy(conf->services[0].policy, "uri-hash");
	ack(ES_FLOW_UNSERVED);
	assert_true(given(&m, 1, 0) > SELF);
	client = flow_find(client + 1, 1);
	inspect(client, ES_FLOW_UNSERVED, 0, "\x16\x03\x01");
	assert_true(given(&m, 1, 0) > SELF); /* by what it is, without a wait for the rest of it */
	conf->services[0].tls.line = 0;
}

/* A node of a version before makes nothing of an ACK alone. */
static void test_older(void **state)
{
	struct message m;

	(void)state;
	begin(0);
	ack(ES_FLOW_UNSERVED);
	assert_int_equal(sent_to(&m), -1);
	assert_int_equal(COUNT(layer4_left), 1);
	inspect(client, ES_FLOW_UNSERVED, 0, "hello");
	assert_true(given(&m, 1, 0) > SELF);
	begin(0);
	atomic_store(&health.makes[2], ES_MAKES_OF_HANDSHAKES);
	ack(ES_FLOW_UNSERVED);
	assert_int_equal(given(&m, 1, 0), 2);
	nack(&m, ES_NACK_NO_LISTENER);
	assert_int_equal(sent_to(&m), -1); /* its client's first bytes are tried elsewhere */
	assert_int_equal(COUNT(layer4_left), 2);
}

/* A node that drains serves what nobody else can. */
static void test_here(void **state)
{
	struct message m;

	(void)state;
	begin(1);
	es_health_set_state(&health, SELF, ES_NODE_DRAINING);
	ack(ES_FLOW_NEW);
	assert_true(given(&m, 1, 0) > SELF);
	begin(1);
	es_health_set_state(&health, 1, ES_NODE_DOWN);
	es_health_set_state(&health, 2, ES_NODE_DOWN);
	ack(ES_FLOW_NEW);
	assert_int_equal(given(&m, 1, 0), SELF);
}

/* A backup node gives all of them away while another node serves; and is given none. */
static void test_backup(void **state)
{
	struct message m;

	(void)state;
	begin(1);
	conf->services[0].backup_names.count = 1;
	memset(&conf->services[0].backup, 0, sizeof(conf->services[0].backup));
	es_node_set_add(&conf->services[0].backup, SELF);
	ack(ES_FLOW_NEW);
	assert_true(given(&m, 1, 0) > SELF);
	nack(&m, ES_NACK_NO_LISTENER);
	assert_true(given(&m, 2, 0) > SELF);
	nack(&m, ES_NACK_NO_LISTENER);
	assert_int_equal(given(&m, 3, 0), SELF);
	nack(&m, ES_NACK_MADE);
	begin(1);
	es_health_set_state(&health, 1, ES_NODE_DOWN);
	es_health_set_state(&health, 2, ES_NODE_DOWN);
	ack(ES_FLOW_NEW);
	assert_int_equal(given(&m, 1, 0), SELF);
	nack(&m, ES_NACK_MADE);
	begin(1);
	memset(&conf->services[0].backup, 0, sizeof(conf->services[0].backup));
	es_node_set_add(&conf->services[0].backup, 1);
	es_health_set_state(&health, 1, ES_NODE_UP);
	es_health_set_state(&health, 2, ES_NODE_UP);
	for (int i = 0; i < 20; i++) {
		later(2000); /* nobody is left alone any more */
		begin(1);
		ack(ES_FLOW_UNSERVED);
		assert_int_equal(given(&m, 1, 0), 2);
		nack(&m, ES_NACK_MADE);
	}
	conf->services[0].backup_names.count = 0;
}

/* A program has handed it over, or an inspecting node before this one has given it away. */
static void test_anothers(void **state)
{
	struct es_proof proof;
	struct message m;

	(void)state;
	begin(1);
	proof = (struct es_proof){
		.flow_hash = hash_of(client), .cookie = COOKIE, .first_seq = ISN + 1, .node = 1};
	es_inspector_learn(&in, &proof, 1);
	ack(ES_FLOW_UNSERVED);
	inspect(client, ES_FLOW_UNSERVED, 0, "hello");
	assert_int_equal(sent_to(&m), -1);
}

/*
 * The connection's node was lost with it: a client that has heard nothing may begin again elsewhere, unless
 * the service forbids that.
 */
static void test_lost(void **state)
{
	struct message m;
	int node;

	(void)state;
	for (int all = 0; all < 2; all++) {
		begin(1);
		conf->services[0].unsafe = all ? ES_UNSAFE_ALL : ES_UNSAFE_ONCE;
		inspect(client, ES_FLOW_UNSERVED, 0, "hello");
		node = given(&m, 1, 0);
		es_health_set_state(&health, (unsigned int)node, ES_NODE_ABSENT);
		inspect(client, ES_FLOW_UNSERVED, 0, "hello");
		if (all)
			assert_int_equal(COUNT(doubtful), 1);
		else
			assert_int_not_equal(given(&m, 2, 0), node);
		es_health_set_state(&health, (unsigned int)node, ES_NODE_UP);
	}
	assert_int_equal(sent_to(&m), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_repeated),  TEST(test_made), TEST(test_refused), TEST(test_bytes),
		TEST(test_elsewhere), TEST(test_tls),  TEST(test_older),   TEST(test_here),
		TEST(test_anothers),  TEST(test_lost), TEST(test_backup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
