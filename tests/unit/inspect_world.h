/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_INSPECT_WORLD_H
#define ES_TESTS_INSPECT_WORLD_H

/*
 * An inspector to be tested: three nodes on 127.0.0.1 to 3, whose datapaths are sockets of ours. Without a
 * raw socket, so that no privileges are needed: a RST that it wants to send counts as send_failed. Include
 * after cmocka.h. TEST() runs a test with clients of each family, TEST_V4() with clients of IPv4 only.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "inspector/inspect/inspect.h"

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

static int clients_are_v6;
static int receiver[NODES];
static struct es_conf *conf;
static struct es_cluster *cluster;
static struct es_health health;
static _Atomic unsigned int packet_max = 1400;
static __u64 lease_ns;
static struct es_worker_params params;
static struct es_inspector in;
static struct es_plugins *plugins;

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
	params = (struct es_worker_params){
		.health = &health, .lease_ns = &lease_ns, .packet_max = &packet_max};
	params.keys.count = 1;
	in.params = &params;
	in.cluster = cluster;
	in.keys = params.keys;
	in.decisions.sets = calloc(SETS, sizeof(*in.decisions.sets));
	in.decisions.orders = calloc(SETS * ES_DECISION_WAYS, sizeof(*in.decisions.orders));
	in.decisions.count = SETS;
	in.raw = ES_RAW_CLOSED;
	in.now_ns = NOW_NS;
	assert_int_equal(es_gather_table_new(16, 4096, &in.gathers), 0);
	assert_int_equal(es_handover_sender_new(cluster, 0, &in.keys.key[0].handover, &in.sender), 0);
	strcpy(conf->services[0].policy, "wrr");
	assert_int_equal(es_router_init(&in.router, cluster, &health, NULL), 0);
	assert_int_equal(es_tally_new(conf, NULL, NULL, &in.tally), 0);
	return 0;
}

static inline int setup_v6(void **state)
{
	clients_are_v6 = 1;
	return setup(state);
}

static int teardown(void **state)
{
	(void)state;
	clients_are_v6 = 0;
	free(in.decisions.sets);
	free(in.decisions.orders);
	es_inspector_fini(&in);
	es_plugins_free(&plugins);
	es_cluster_free(&cluster);
	es_conf_free(&conf);
	for (int i = 0; i < NODES; i++)
		close(receiver[i]);
	return 0;
}

/* A flow from 198.51.100.0 + @number or 2001:db8:1:: + @number, to 10.77.0.100 or 2001:db8::64. */
static struct es_flow flow_of(unsigned int number)
{
	struct es_flow flow = {.client_port = htons(40000), .service_port = htons(80)};

	if (clients_are_v6) {
		flow.client.w[0] = flow.service.w[0] = htonl(0x20010db8);
		flow.client.w[1] = htonl(0x00010000);
		flow.client.w[3] = htonl(number);
		flow.service.w[3] = htonl(0x64);
		return flow;
	}
	flow.client = es_addr_from_v4(htonl(0xc6336400 + number));
	flow.service = es_addr_from_v4(htonl(0x0a4d0064));
	return flow;
}

/* Where the TCP header is in a packet, and where what follows it. */
static inline size_t tcp_at(void)
{
	return clients_are_v6 ? 40 : 20;
}

static inline size_t text_at(void)
{
	return tcp_at() + 20;
}

static __u64 hash_of(unsigned int number)
{
	struct es_flow flow = flow_of(number);

	return es_flow_hash(&in.keys.ring, in.keys.ring_seed, &flow);
}

/* The first flow from @from on that the ring gives to this node, or not. */
static inline unsigned int flow_find(unsigned int from, int is_ours)
{
	while (es_cluster_inspects(cluster, hash_of(from)) != is_ours)
		from++;
	return from;
}

static void ip_header(const struct es_flow *flow, size_t len, uint8_t *bytes)
{
	const __u32 v4[] = {htonl(0x45000000 | (__u32)len), htonl(0x4000),
			    htonl(64 << 24 | IPPROTO_TCP << 16), flow->client.w[3], flow->service.w[3]};
	const __u32 v6[] = {htonl(0x60000000), htonl((__u32)(len - 40) << 16 | IPPROTO_TCP << 8 | 64)};

	if (!clients_are_v6) {
		memcpy(bytes, v4, sizeof(v4));
		return;
	}
	memcpy(bytes, v6, sizeof(v6));
	memcpy(bytes + 8, &flow->client, 16);
	memcpy(bytes + 24, &flow->service, 16);
}

static struct es_record segment_of(unsigned int number, uint32_t at, const void *text, size_t len,
				   uint8_t *bytes)
{
	struct es_flow flow = flow_of(number);
	struct es_record record = {
		.flow_hash = hash_of(number),
		.len = (__u32)(text_at() + len),
		.kind = at ? ES_RECORD_LATER : ES_RECORD_FIRST,
		.csum_partial = 1,
	};
	__u32 words[] = {htonl(40000U << 16 | 80), htonl(ISN + 1 + at), htonl(COOKIE + 1),
			 htonl(0x50180000 | 65535), 0};

	ip_header(&flow, record.len, bytes);
	memcpy(bytes + tcp_at(), words, sizeof(words));
	memcpy(bytes + text_at(), text, len);
	return record;
}

static inline struct es_record segment(unsigned int number, uint32_t at, const char *text, uint8_t *bytes)
{
	return segment_of(number, at, text, strlen(text), bytes);
}

static void inspect_bytes(unsigned int number, enum es_record_flow flow, uint32_t at, const void *text,
			  size_t len)
{
	uint8_t bytes[1500];
	struct es_record record = segment_of(number, at, text, len, bytes);

	record.flow = (__u8)flow;
	es_inspect_record(&in, &record, bytes);
	es_handover_flush(in.sender);
}

static inline void inspect(unsigned int number, enum es_record_flow flow, uint32_t at, const char *text)
{
	inspect_bytes(number, flow, at, text, strlen(text));
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

static inline int request(unsigned int number)
{
	struct message m;

	inspect(number, ES_FLOW_NEW, 0, REQUEST);
	return sent_to(&m);
}

/* Send the message back. */
static inline void nack(struct message *m, enum es_nack_reason reason)
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

/* All nodes but @node are down for now, so that it gets each request. */
static inline void only(unsigned int node)
{
	memset(&health, 0, sizeof(health));
	for (unsigned int i = 0; i < NODES; i++)
		es_health_set_state(&health, i, i == node ? ES_NODE_UP : ES_NODE_DOWN);
}

/* The node's datapath is gone; its kernel says of each message that nobody takes it. */
static inline void vanish(unsigned int node)
{
	close(receiver[node]);
	receiver[node] = -1;
}

/* The service is earshot-tls's from now on. */
static inline void is_tls(enum es_inspect inspect)
{
	struct es_conf_service *service = &conf->services[0];
	struct es_flow flow = flow_of(1);

	service->inspect = ES_INSPECT_NEVER;
	service->tls.line = 1;
	service->tls.inspect = inspect;
	service->port = 80;
	if (clients_are_v6)
		service->address6 = flow.service;
	else
		service->address = flow.service;
}

/* The metrics' counters of the only service. */
#define REQUESTS(node, decision)                                                                             \
	((int)es_tally_request(in.tally, 0, (unsigned int)(node), ES_TALLY_##decision))
#define HANDOVERS(node, result) ((int)es_tally_handover(in.tally, 0, (unsigned int)(node), ES_TALLY_##result))

#define COUNT(name) ((int)in.count[ES_WORKER_##name])

#define TEST_V4(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define TEST(f)                                                                                              \
	TEST_V4(f),                                                                                          \
	{                                                                                                    \
#f " (IPv6)", f, setup_v6, teardown, NULL                                                    \
	}

#endif
