/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_NETFILTER_WORLD_H
#define ES_TESTS_NETFILTER_WORLD_H

/*
 * A node of the netfilter datapath whose hands are the test's: they note what the node did, and tell what the
 * test wants the kernel to have. Include after cmocka_all.h.
 */
#include <errno.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "inspector/datapath/ring_reader.h"
#include "inspector/packet/packet.h"
#include "netfilter/node/make.h"
#include "netfilter/node/node.h"
#include "netfilter/node/public.h"

#define SELF	      1
#define OTHER	      2
#define QUEUE_BYTES   65536
#define ISN	      1000u
#define SERVICE_PORT  80
#define HANDOVER_PORT 3702
#define NOW_NS	      100000000000ULL
#define MADE_MAX      16
#define MADE_BYTES    2048

/* struct made - a packet that left the node's hands: each of them has a row */
struct made {
	size_t count;
	size_t len[MADE_MAX];
	uint8_t bytes[MADE_MAX][MADE_BYTES];
};

/*
 * struct families - of which the clients, and the nodes among themselves, have addresses: a test's initial
 * state
 */
struct families {
	int clients_v6;
	int nodes_v6;
};
static const struct families v4 = {0, 0}, v6 = {1, 1}, v6_by_v4 = {1, 0}, v4_by_v6 = {0, 1};
static struct families are; /* of the test that runs */

struct world {
	char path[64];
	struct es_nf_node *node;
	struct es_ring_reader *reader;
	struct es_config config;
	struct es_node_ring ring;
	struct es_nf_found found;
	struct es_nf_found found_after; /* a rebuild */
	struct es_nf_found server; /* what there is for another service's port: a server behind a program */
	struct es_flow rebuilt_socket; /* of a program's connection */
	int rebuild_rc;		       /* if it is not an error, found_after comes true */
	int is_unbegun;		       /* hand_rebuild() fails before a connection may come of it */
	unsigned int looks;
	int error_rc;
	unsigned int ended;
	unsigned int held, released;
	int known_before; /* something was, of the flow, when its connection was made */
	int hold_rc;
	struct es_nf_found found_held; /* comes true with hold(), if it is another than nothing */
	__u32 first;		       /* as the kernel knows it; 0: it does not */
	struct es_connection_state open;
	__u32 withdrawn; /* the request whose attempt can no longer make anything; 0: none */
	unsigned int forgotten;
	unsigned int proven;
	int end_rc;
	unsigned int ended_old;
	unsigned int given_up;
	int is_making;
	int look_rc;
	struct es_nf_making making; /* of the last one */
	int is_out_of_reach;
	__u32 asked_mark;
	unsigned int asked_for; /* how often it was asked whether a client is within reach */
	__u32 reset_seq[MADE_MAX];
	size_t resets;
	__u32 ended_rcv_nxt;
	__u16 frame_protocol;
	__u8 frame_target[6];
	struct es_tcp_options rebuilt_options;
	struct made framed, sent, answered, rebuilt, injected, errors, queued;
};

static inline __u64 the_flow_hash(const struct world *w);

static inline int made_add(struct made *made, const void *bytes, size_t len)
{
	assert_true(made->count < MADE_MAX && len <= MADE_BYTES);
	memcpy(made->bytes[made->count], bytes, len);
	made->len[made->count++] = len;
	return 0;
}

static inline int hand_look(void *ctx, const struct es_flow *flow, struct es_nf_found *ret_found)
{
	struct world *w = ctx;

	w->looks++;
	if (w->look_rc)
		return w->look_rc;
	*ret_found = flow->service_port == es_htons(SERVICE_PORT) ? w->found : w->server;
	if (!ret_found->rcv_wnd)
		ret_found->rcv_wnd = ret_found->max_wnd = 65535;
	return 0;
}

/* A socket that is here was made here. */
static inline int hand_may_have_made(void *ctx, const struct es_flow *flow)
{
	const struct world *w = ctx;

	(void)flow;
	return w->found.socket != ES_SOCKET_NONE;
}

static inline int hand_frame(void *ctx, const __u8 target[6], __u16 protocol, const void *bytes, size_t len)
{
	struct world *w = ctx;

	memcpy(w->frame_target, target, 6);
	w->frame_protocol = protocol;
	return made_add(&w->framed, bytes, len);
}

static inline int hand_send(void *ctx, const void *packet, size_t len)
{
	struct world *w = ctx;

	return made_add(&w->sent, packet, len);
}

static inline int hand_answer(void *ctx, const void *packet, size_t len)
{
	struct world *w = ctx;

	return made_add(&w->answered, packet, len);
}

static inline int hand_rebuild(void *ctx, const __u8 *packet, size_t len, const struct es_flow *socket,
			       const struct es_nf_making *making, __u64 now_ns)
{
	struct world *w = ctx;

	(void)now_ns;
	w->making = *making;
	if (!w->is_unbegun)
		assert_int_equal(es_nf_make_begins(making->node, &making->flow, making->seg.seq), 0);
	w->rebuilt_options = making->options;
	w->known_before = !!es_nf_connection_find(w->node->memory.connections, the_flow_hash(w));
	if (socket)
		w->rebuilt_socket = *socket;
	if (w->rebuild_rc >= 0)
		*(socket ? &w->server : &w->found) = w->found_after;
	made_add(&w->rebuilt, packet, len);
	return w->rebuild_rc;
}

static inline int hand_keep(void *ctx, const struct es_flow *flow, const struct es_segment *seg,
			    const struct es_nf_frame *frame)
{
	const struct world *w = ctx;

	(void)flow;
	(void)seg;
	(void)frame;
	return w->is_making;
}

static inline int hand_is_making(void *ctx, const struct es_flow *flow)
{
	const struct world *w = ctx;

	(void)flow;
	return w->is_making;
}

static inline void hand_give_up(void *ctx, const struct es_flow *flow)
{
	struct world *w = ctx;

	(void)flow;
	w->given_up++;
}

static inline int hand_inject(void *ctx, const __u8 *packet, size_t len)
{
	struct world *w = ctx;

	return made_add(&w->injected, packet, len);
}

static inline int hand_error(void *ctx, const __u8 *packet, size_t len)
{
	struct world *w = ctx;

	made_add(&w->errors, packet, len);
	return w->error_rc;
}

static inline int hand_hold(void *ctx, const struct es_flow *flow, int is_held)
{
	struct world *w = ctx;

	(void)flow;
	if (w->hold_rc)
		return w->hold_rc;
	w->held += is_held != 0;
	w->released += !is_held;
	if (is_held && w->found_held.socket)
		w->found = w->found_held;
	return 0;
}

static inline int hand_end(void *ctx, const struct es_flow *flow, __u32 rcv_nxt)
{
	struct world *w = ctx;

	(void)flow;
	w->ended++;
	w->ended_rcv_nxt = rcv_nxt;
	return w->end_rc;
}

static inline int hand_end_old(void *ctx, const struct es_flow *flow)
{
	struct world *w = ctx;

	(void)flow;
	w->ended_old++;
	return 0;
}

static inline int hand_first(void *ctx, const struct es_flow *flow, __u32 *ret_first_seq)
{
	const struct world *w = ctx;

	(void)flow;
	if (!w->first)
		return -ENOENT;
	*ret_first_seq = w->first;
	return 0;
}

static inline int hand_open(void *ctx, const struct es_flow *flow, struct es_connection_state *ret_state)
{
	const struct world *w = ctx;

	(void)flow;
	*ret_state = w->open;
	return w->open.is_found ? 0 : -EOPNOTSUPP;
}

static inline int hand_is_withdrawn(void *ctx, const struct es_flow *flow, __u32 seq)
{
	const struct world *w = ctx;

	(void)flow;
	return w->withdrawn && w->withdrawn == seq;
}

static inline int hand_forget(void *ctx, const struct es_flow *flow)
{
	struct world *w = ctx;

	(void)flow;
	w->forgotten++;
	return 0;
}

static inline int hand_prove(void *ctx, const struct es_flow *flow)
{
	struct world *w = ctx;

	(void)flow;
	w->proven++;
	return 0;
}

static inline int hand_reset(void *ctx, const struct es_flow *flow, __u32 seq)
{
	struct world *w = ctx;

	(void)flow;
	assert_true(w->resets < MADE_MAX);
	w->reset_seq[w->resets++] = seq;
	return 0;
}

static inline int hand_reaches(void *ctx, const struct es_flow *flow, __u32 mark, __u64 now_ns)
{
	struct world *w = ctx;

	(void)flow;
	(void)now_ns;
	w->asked_for++;
	w->asked_mark = mark;
	return !w->is_out_of_reach;
}

static inline void on_queued(void *ctx, const void *data, size_t size)
{
	struct world *w = ctx;

	made_add(&w->queued, data, size);
}

/* All slots of the ring are @node's. */
static inline void ring_give(struct world *w, unsigned int node)
{
	memset(&w->ring, 0, sizeof(w->ring));
	for (size_t i = 0; i < ES_RING_SLOTS; i++)
		w->ring.table.node[i] = (__u16)node;
	if (node == SELF)
		memset(w->ring.answered, 0xff, sizeof(w->ring.answered));
	es_nf_node_configure(w->node, &w->config, &w->ring);
}

static inline __be32 address(unsigned int last)
{
	return es_htonl(0x0a000000u | last);
}

/* 10.0.0.@last or fd00::@last */
static inline struct es_addr host(int is_v6, unsigned int last)
{
	struct es_addr a = {.b = {0xfd, [15] = (__u8)last}};

	return is_v6 ? a : es_addr_from_v4(address(last));
}

static inline int world_setup(void **state)
{
	static struct world world;
	struct world *w = &world;
	const struct es_nf_hands hands = {
		.ctx = w,
		.look = hand_look,
		.may_have_made = hand_may_have_made,
		.frame = hand_frame,
		.send = hand_send,
		.answer = hand_answer,
		.rebuild = hand_rebuild,
		.is_making = hand_is_making,
		.keep = hand_keep,
		.give_up = hand_give_up,
		.inject = hand_inject,
		.error = hand_error,
		.hold = hand_hold,
		.end = hand_end,
		.end_old = hand_end_old,
		.first = hand_first,
		.open = hand_open,
		.is_withdrawn = hand_is_withdrawn,
		.forget = hand_forget,
		.prove = hand_prove,
		.reset = hand_reset,
		.reaches = hand_reaches,
	};
	struct es_nf_node_params params = {
		.hands = &hands,
		.workers = 1,
		.queue_bytes = QUEUE_BYTES,
		.decision_sets = 64,
	};
	int fd;

	are = *(const struct families *)*state;
	memset(w, 0, sizeof(*w));
	strcpy(w->path, "/tmp/earshot-netfilter-XXXXXX");
	fd = mkstemp(w->path);
	assert_true(fd >= 0);
	close(fd);
	params.path = w->path;
	assert_int_equal(es_nf_node_new(&params, &w->node), 0);
	assert_int_equal(
		es_ring_reader_new(es_nf_ring_fd(w->node->queue[0]), QUEUE_BYTES, on_queued, w, &w->reader),
		0);
	w->config = (struct es_config){
		.abi = ES_ABI_VERSION,
		.self = SELF,
		.service_count = 1,
		.ring_key = {5, 6},
		.cookie_key = {{1, 2}, {3, 4}},
		.handover_key = {{7, 8}, {9, 10}},
		.key_count = 1,
		.slot_s = 64,
		.synack_window = 65535,
		.decision_sets = 64,
		.workers = 1,
		.race_window_ms = 50,
		.fallback_after_ms = 1000,
		.public_ifindex = 2,
		.cluster_ifindex = 3,
		.mss = 1460,
		.handover_port = es_htons(HANDOVER_PORT),
		.rcv_wscale = 7,
		.offer_wscale = 1,
		.offer_sack = 1,
		.offer_ts = 1,
		.cluster_mac = {3, 0xbf, 10, 0, 0, 100},
		.public_mac = {2, 0, 0, 0, 0, 1},
		.self_address = host(are.nodes_v6, 201),
		.service = {{.address = host(0, 100),
			     .address6 = host(1, 100),
			     .port = es_htons(SERVICE_PORT),
			     .inspect = ES_INSPECT_FIRST}},
	};
	w->found.listening = 1;
	w->found_after.socket = ES_SOCKET_ESTABLISHED;
	w->node->now_ns = NOW_NS;
	w->node->memory.state->attached = 1;
	w->node->memory.state->worker[0].heartbeat_ns = NOW_NS;
	ring_give(w, SELF);
	*state = w;
	return 0;
}

static inline int world_teardown(void **state)
{
	struct world *w = *state;

	es_ring_reader_free(&w->reader);
	es_nf_node_free(&w->node);
	unlink(w->path);
	return 0;
}

static inline struct es_flow the_flow(void)
{
	return (struct es_flow){
		.client = host(are.clients_v6, 7),
		.service = host(are.clients_v6, 100),
		.client_port = es_htons(40001),
		.service_port = es_htons(SERVICE_PORT),
	};
}

static inline __u64 the_flow_hash(const struct world *w)
{
	const struct es_flow flow = the_flow();

	return es_flow_hash(&w->config.ring_key, w->config.ring_seed, &flow);
}

/* A segment of the flow's client, with timestamps. Returns its length. */
static inline size_t segment(uint8_t *bytes, __u32 seq, __u32 ack, __u8 flags, __u32 tsecr,
			     const char *payload)
{
	const struct es_flow flow = the_flow();
	const struct es_segment seg = {
		.seq = seq,
		.ack = ack,
		.flags = flags,
		.len = (__u32)strlen(payload),
		.has_ts = 1,
		.tsval = 77,
		.tsecr = tsecr,
	};

	return es_ip_packet_make(&flow, &seg, (const uint8_t *)payload, bytes);
}

/* IP and UDP headers, of one length behind the other. Returns their length. */
static inline size_t datagram(uint8_t *bytes, const struct es_addr *source, const struct es_addr *dest,
			      __u16 sport, __u16 dport, size_t len)
{
	const int is_v6 = !es_addr_is_v4(dest);
	const size_t ip_len = is_v6 ? 40 : 20, total = ip_len + 8 + len;
	const __be16 udp[4] = {es_htons(sport), es_htons(dport), es_htons((__u16)(8 + len)), 0};

	memset(bytes, 0, ip_len);
	bytes[0] = is_v6 ? 0x60 : 0x45;
	bytes[is_v6 ? 4 : 2] = (uint8_t)((is_v6 ? 8 + len : total) >> 8);
	bytes[is_v6 ? 5 : 3] = (uint8_t)(is_v6 ? 8 + len : total);
	bytes[is_v6 ? 6 : 9] = IPPROTO_UDP;
	bytes[is_v6 ? 7 : 8] = 64;
	if (is_v6) {
		memcpy(bytes + 8, source, 16);
		memcpy(bytes + 24, dest, 16);
	} else {
		memcpy(bytes + 12, &source->w[3], 4);
		memcpy(bytes + 16, &dest->w[3], 4);
	}
	memcpy(bytes + ip_len, udp, 8);
	return ip_len + 8;
}

/* A test with families as its world has them. */
#define ES_TEST_OF(name, families)                                                                           \
	{                                                                                                    \
#name "." #families, name, world_setup, world_teardown, (void *)&(families)                  \
	}

static inline unsigned long long counted(const struct world *w, enum es_counter counter)
{
	return w->node->memory.counters[counter];
}

/* A packet from the client, on the public interface. */
static inline enum es_nf_fate put(struct world *w, const uint8_t *bytes, size_t len)
{
	const struct es_nf_frame frame = {
		.bytes = bytes, .len = len, .ifindex = 2, .source = {2, 0, 0, 0, 0, 7}};

	return es_nf_public(w->node, &frame);
}

#endif
