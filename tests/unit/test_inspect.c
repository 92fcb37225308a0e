// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The inspector while membership changes: three nodes on 127.0.0.1 to 3, whose datapaths are sockets of ours.
 * Without a raw socket, so that no privileges are needed: a RST that it wants to send counts as send_failed.
 */
#include "cmocka_all.h"
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "inspector/inspect.h"

#define NODES	3
#define SELF	0
#define ISN	1000u
#define COOKIE	5000u
#define SETS	256
#define NOW_NS	1000000000000ULL
#define REQUEST "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

struct message {
	struct es_handover h;
	uint8_t packet[1500];
	size_t len;
	struct sockaddr_in from;
};

static int receiver[NODES];
static struct es_conf *conf;
static struct es_cluster *cluster;
static struct es_health health;
static __u64 lease_ns;
static struct es_worker_params params;
static struct es_inspector in;

/* One port for all, as the configuration has it. */
static uint16_t receivers_open(void)
{
	for (int attempt = 0; attempt < 100; attempt++) {
		struct sockaddr_in sin = {.sin_family = AF_INET};
		socklen_t len = sizeof(sin);
		int i;

		for (i = 0; i < NODES; i++) {
			sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (unsigned int)i);
			receiver[i] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
			assert_true(receiver[i] >= 0);
			if (bind(receiver[i], (struct sockaddr *)&sin, sizeof(sin)))
				break;
			getsockname(receiver[i], (struct sockaddr *)&sin, &len);
		}
		if (i == NODES)
			return ntohs(sin.sin_port);
		while (i >= 0)
			close(receiver[i--]);
	}
	fail_msg("no port that is free on all three addresses");
	return 0;
}

static int setup(void **state)
{
	(void)state;
	conf = calloc(1, sizeof(*conf));
	assert_non_null(conf);
	conf->cluster.virtual_nodes = 63;
	conf->cluster.handover_port = receivers_open();
	conf->node_count = NODES;
	for (unsigned int i = 0; i < NODES; i++) {
		conf->nodes[i].address = es_addr_from_v4(htonl(INADDR_LOOPBACK + i));
		conf->nodes[i].weight = 100;
	}
	conf->service_count = 1;
	conf->services[0].inspect = ES_INSPECT_FIRST;
	conf->inspector.gather_flows = 16;
	conf->inspector.gather_bytes = 4096;
	conf->inspector.gather_timeout_ms = 200;
	assert_int_equal(es_cluster_new(conf, SELF, 1, NULL, NULL, &cluster), 0);
	memset(&health, 0, sizeof(health));
	lease_ns = 0;
	memset(&in, 0, sizeof(in));
	params = (struct es_worker_params){.health = &health, .lease_ns = &lease_ns, .packet_max = 1400};
	params.keys.count = 1;
	in.params = &params;
	in.cluster = cluster;
	in.keys = params.keys;
	in.decisions.sets = calloc(SETS, sizeof(*in.decisions.sets));
	in.decisions.orders = calloc(SETS * ES_DECISION_WAYS, sizeof(*in.decisions.orders));
	in.decisions.count = SETS;
	in.reply_fd = -1;
	in.now_ns = NOW_NS;
	assert_int_equal(es_gather_table_new(16, 4096, &in.gathers), 0);
	assert_int_equal(es_handover_sender_new(cluster, 0, &in.keys.key[0].handover, &in.sender), 0);
	strcpy(conf->services[0].policy, "wrr");
	assert_int_equal(es_router_init(&in.router, cluster, &health, NULL), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(in.decisions.sets);
	free(in.decisions.orders);
	es_inspector_fini(&in);
	es_cluster_free(&cluster);
	es_conf_free(&conf);
	for (int i = 0; i < NODES; i++)
		close(receiver[i]);
	return 0;
}

static struct es_flow flow_of(unsigned int number)
{
	return (struct es_flow){
		.client = es_addr_from_v4(htonl(0xc6336400 + number)),
		.service = es_addr_from_v4(htonl(0x0a4d0064)),
		.client_port = htons(40000),
		.service_port = htons(80),
	};
}

static __u64 hash_of(unsigned int number)
{
	struct es_flow flow = flow_of(number);

	return es_flow_hash(&in.keys.ring, &flow);
}

/* The first flow from @from on that the ring gives to this node, or not. */
static unsigned int flow_find(unsigned int from, int is_ours)
{
	while (es_cluster_inspects(cluster, hash_of(from)) != is_ours)
		from++;
	return from;
}

static struct es_record segment(unsigned int number, uint32_t at, const char *text, uint8_t *bytes)
{
	struct es_flow flow = flow_of(number);
	struct es_record record = {
		.flow_hash = hash_of(number),
		.len = (__u32)(40 + strlen(text)),
		.kind = at ? ES_RECORD_LATER : ES_RECORD_FIRST,
		.csum_partial = 1,
	};
	__u32 words[] = {htonl(0x45000000 | record.len),
			 htonl(0x4000),
			 htonl(64 << 24 | IPPROTO_TCP << 16),
			 flow.client.w[3],
			 flow.service.w[3],
			 htonl(40000U << 16 | 80),
			 htonl(ISN + 1 + at),
			 htonl(COOKIE + 1),
			 htonl(0x50180000 | 65535),
			 0};

	memcpy(bytes, words, sizeof(words));
	memcpy(bytes + 40, text, record.len - 40);
	return record;
}

static void inspect(unsigned int number, enum es_record_flow flow, uint32_t at, const char *text)
{
	uint8_t bytes[1500];
	struct es_record record = segment(number, at, text, bytes);

	record.flow = (__u8)flow;
	es_inspect_record(&in, &record, bytes);
	es_handover_flush(in.sender);
}

/* The node that got a message, which is taken; -1 if none did. */
static int sent_to(struct message *m)
{
	int node = -1;

	for (int i = 0; i < NODES; i++) {
		socklen_t len = sizeof(m->from);
		ssize_t got = recvfrom(receiver[i], m, sizeof(m->h) + sizeof(m->packet), 0,
				       (struct sockaddr *)&m->from, &len);

		if (got < 0)
			continue;
		assert_int_equal(node, -1);
		assert_true(got > (ssize_t)sizeof(m->h));
		m->len = (size_t)got - sizeof(m->h);
		assert_int_equal(m->h.target, i);
		node = i;
	}
	return node;
}

static int request(unsigned int number)
{
	struct message m;

	inspect(number, ES_FLOW_NEW, 0, REQUEST);
	return sent_to(&m);
}

#define COUNT(name) ((int)in.count[ES_WORKER_##name])

/* A repeated request goes where it went, whatever has become of that node, unless it is no member any more.
 */
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
		inspect(flow, ES_FLOW_MOVED, 0, REQUEST);
		other = sent_to(&m);
		assert_true(other == 0 || other == 1);
		assert_true(m.h.flags & ES_HANDOVER_F_MOVED);
		assert_int_equal(es_ntohl(m.h.requests), 3);
		es_health_set_state(&health, 2, ES_NODE_UP);
		inspect(flow, ES_FLOW_MOVED, 5, "later");
		assert_int_equal(sent_to(&m), other);
	}
}

/* What the ring does not give this node, or not yet, or not any more, is not inspected. */
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
	/* And the gathered beginning of one, when the ring changes before its end comes. */
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
	/* What moved away from here is this node's still. */
	es_decision_table_put(&in.decisions, hash_of(number), COOKIE, ISN, 2, &order,
			      (__u32)(NOW_NS / 1000000));
	inspect(number, ES_FLOW_MOVED, 0, REQUEST);
	assert_int_equal(sent_to(&m), 2);
	lease_ns = 0;
	assert_true(request(flow_find(number + 20, 1)) >= 0);
	assert_int_equal(COUNT(send_failed), 0);
}

/* It says nothing to a client either: no request of a new flow goes out, and no RST. */
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

/* Send the message back. */
static void nack(struct message *m, enum es_nack_reason reason)
{
	__u8 node = m->h.target;

	m->h.kind = ES_HANDOVER_NACK;
	m->h.nack = (__u8)reason;
	m->h.target = m->h.source;
	m->h.source = node;
	m->h.mac = es_handover_mac(&in.keys.key[0].handover, &m->h, m->packet, m->len);
	assert_true(sendto(receiver[node], m, sizeof(m->h) + m->len, 0, (struct sockaddr *)&m->from,
			   sizeof(m->from)) > 0);
	es_inspect_messages(&in);
	es_handover_flush(in.sender);
}

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
}

/* All are unsure for the moment, this one among them: the client's retransmission will find one that is not.
 */
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

/* Where a request went that another node inspected, before this node got its slot. */
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

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_repeated),
		TEST(test_moved),
		TEST(test_not_mine),
		TEST(test_silent),
		TEST(test_silent_gathered),
		TEST(test_nack_silent),
		TEST(test_nack_silent_everywhere),
		TEST(test_nack_while_silent),
		TEST(test_learn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
