// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Packets that a node of the netfilter datapath lets pass on connections whose clients may still repeat their
 * requests: as long as its lease says, and none afterwards.
 */
#include "cmocka_all.h"
#include <errno.h>
#include "kmod/core/reply.h"
#include "kmod/core/settled.h"
#include "netfilter/node/public.h"
#include "netfilter/node/settled.h"
#include "netfilter/node/unproven.h"
#include "netfilter_world.h"

#define COOKIE	  5000u
#define MARK	  7u
#define SECOND_NS 1000000000ULL
#define LEASE_NS  (NOW_NS + SECOND_NS)
#define FIRM_NS	  (NOW_NS + SECOND_NS / 2)

static void at(struct world *w, __u64 now_ns)
{
	w->node->now_ns = now_ns;
}

static int lease_setup(void **state)
{
	struct world *w;

	world_setup(state);
	w = *state;
	w->config.leased = 1;
	ring_give(w, SELF);
	w->node->memory.state->lease_ns = LEASE_NS;
	w->node->memory.state->firm_ns = FIRM_NS;
	return 0;
}

/* The connection of the_flow(), of a request that another node has sent here. */
static int note_as(struct world *w, const struct es_flow *flow, __u32 first_seq)
{
	const struct es_segment request = {
		.seq = first_seq, .ack = COOKIE + 1, .len = 20, .flags = ES_TCP_ACK};

	return es_nf_unproven_note(w->node, flow, &request, OTHER, 0);
}

static void note(struct world *w)
{
	const struct es_flow flow = the_flow();

	assert_int_equal(note_as(w, &flow, ISN + 1), 0);
	w->found = (struct es_nf_found){.socket = ES_SOCKET_ESTABLISHED, .received = 20};
}

static enum es_nf_fate client_says(struct world *w, __u32 ack, const char *payload)
{
	uint8_t bytes[256];
	const struct es_nf_frame frame = {
		.bytes = bytes, .len = segment(bytes, ISN + 21, ack, ES_TCP_ACK, 1, payload), .ifindex = 2};
	enum es_nf_fate fate = es_nf_unproven_in(w->node, &frame);

	if (fate == ES_NF_ACCEPT)
		es_nf_unproven_look(w->node, &frame);
	return fate;
}

/* A segment of the server's; the queue gives no more of it than its headers. */
static enum es_nf_fate server_says(struct world *w, __u32 ack, __u8 flags, size_t len)
{
	const struct es_flow flow = the_flow();
	const struct es_flow back = {
		.client = flow.service,
		.service = flow.client,
		.client_port = flow.service_port,
		.service_port = flow.client_port,
	};
	const struct es_segment seg = {.seq = 123456, .ack = ack, .flags = flags, .len = (__u32)len};
	const uint8_t payload[128] = {};
	uint8_t bytes[256];
	const struct es_nf_frame frame = {
		.bytes = bytes, .len = es_ip_packet_make(&back, &seg, payload, bytes) - len, .mark = MARK};

	return es_nf_unproven_out(w->node, &frame);
}

static size_t listed;
static struct es_connection_entry listed_last;

static void on_listed(void *ctx, const struct es_connection_entry *entry)
{
	(void)ctx;
	listed++;
	listed_last = *entry;
}

static size_t list(struct world *w)
{
	size_t at = 0;

	listed = 0;
	do {
		unsigned int looks = w->looks;

		at = es_nf_unproven_walk(w->node, at, on_listed, NULL);
		assert_in_range(w->looks - looks, 0, ES_NF_UNPROVEN_SLICE);
	} while (at);
	return listed;
}

static unsigned int end(struct world *w)
{
	unsigned int count = 0;
	size_t at = 0;

	do {
		unsigned int looks = w->looks;

		at = es_nf_unproven_end(w->node, at, &count);
		assert_in_range(w->looks - looks, 0, ES_NF_UNPROVEN_SLICE);
	} while (at);
	return count;
}

static void test_lease_holds(void **state)
{
	struct world *w = *state;

	note(w);
	assert_int_equal(client_says(w, COOKIE + 1, "body"), ES_NF_ACCEPT);
	assert_int_equal(server_says(w, ISN + 25, ES_TCP_ACK | ES_TCP_PSH, 100), ES_NF_ACCEPT);
	assert_int_equal(server_says(w, ISN + 25, ES_TCP_ACK | ES_TCP_FIN, 0), ES_NF_ACCEPT);
	assert_int_equal(w->proven, 0);
	assert_int_equal(list(w), 1);
	assert_int_equal(listed_last.flow_hash, the_flow_hash(w));
	assert_int_equal(listed_last.cookie, COOKIE);
	assert_int_equal(listed_last.first_seq, ISN + 1);
	assert_int_equal(listed_last.source, OTHER);
	assert_int_equal(listed_last.made_ns, NOW_NS);
	assert_true(listed_last.unproven && !listed_last.is_moved);
}

static void test_lease_is_over(void **state)
{
	struct world *w = *state;

	note(w);
	at(w, LEASE_NS);
	/* It may acknowledge what another node has answered. */
	assert_int_equal(client_says(w, COOKIE + 101, ""), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_drop_silent), 1);
	assert_int_equal(server_says(w, ISN + 21, ES_TCP_ACK | ES_TCP_PSH, 100), ES_NF_DROP);
	assert_int_equal(server_says(w, ISN + 21, ES_TCP_ACK, 0), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_reply_silent), 2);
	assert_int_equal(w->resets, 0);
}

/* The client acknowledges a part of the answer: from now on the kernel asks no more. */
static void test_proven(void **state)
{
	struct world *w = *state;

	note(w);
	w->found.acked = 100;
	assert_int_equal(client_says(w, COOKIE + 101, ""), ES_NF_ACCEPT);
	assert_int_equal(w->proven, 1);
	assert_int_equal(list(w), 0);
	/* A packet that is still on its way may go on, whatever the lease says. */
	at(w, LEASE_NS);
	assert_int_equal(client_says(w, COOKIE + 101, "GET"), ES_NF_ACCEPT);
	assert_int_equal(server_says(w, ISN + 24, ES_TCP_ACK, 0), ES_NF_ACCEPT);
}

/*
 * In the second half of its lease, a node keeps no client from repeating a request that it may not answer any
 * more.
 */
static void test_second_half(void **state)
{
	struct world *w = *state;

	note(w);
	at(w, FIRM_NS);
	assert_int_equal(server_says(w, ISN + 21, ES_TCP_ACK, 0), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_reply_unsure), 1);
	assert_int_equal(server_says(w, ISN + 21, ES_TCP_ACK, 100), ES_NF_ACCEPT);
}

/* A client that was kept from its answer is told, when there was time enough for another answer. */
static void test_acknowledged(void **state)
{
	struct world *w = *state;

	note(w);
	assert_int_equal(server_says(w, ISN + 21, ES_TCP_ACK, 0), ES_NF_ACCEPT);
	w->found.sent = 100;
	at(w, LEASE_NS);
	assert_int_equal(server_says(w, ISN + 21, ES_TCP_ACK, 100), ES_NF_DROP);
	assert_int_equal(w->resets, 0);
	at(w, LEASE_NS + ES_REPLY_TELL_NS);
	assert_int_equal(server_says(w, ISN + 21, ES_TCP_ACK, 100), ES_NF_DROP);
	assert_int_equal(w->resets, 2);
	assert_int_equal(w->reset_seq[0], COOKIE + 1);
	assert_int_equal(w->reset_seq[1], COOKIE + 101);
	assert_int_equal(counted(w, ES_COUNT_reply_told), 2);
}

/*
 * The hook's word about its window, before the request is there, is no acknowledgement. Its client would echo
 * its timestamp in place of the cookie's; instead, its MAC is asked for.
 */
static void test_window(void **state)
{
	struct world *w = *state;

	note(w);
	assert_int_equal(server_says(w, ISN + 1, ES_TCP_ACK, 0), ES_NF_DROP);
	assert_int_equal(w->asked_for, 1);
	assert_int_equal(w->asked_mark, MARK);
	assert_int_equal(counted(w, ES_COUNT_reply_unsure), 0);
	at(w, LEASE_NS + ES_REPLY_TELL_NS);
	assert_int_equal(server_says(w, ISN + 1, ES_TCP_ACK, 0), ES_NF_DROP);
	assert_int_equal(server_says(w, ISN + 21, ES_TCP_ACK, 100), ES_NF_DROP);
	assert_int_equal(w->resets, 0);
}

/*
 * A packet that would wait in the kernel, for a MAC, would leave when nobody knows what the lease says then.
 */
static void test_out_of_reach(void **state)
{
	struct world *w = *state;

	note(w);
	w->is_out_of_reach = 1;
	assert_int_equal(server_says(w, ISN + 21, ES_TCP_ACK | ES_TCP_PSH, 100), ES_NF_DROP);
	assert_int_equal(server_says(w, ISN + 21, ES_TCP_ACK, 0), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_reply_unsure), 2);
	/* So it has acknowledged nothing: the client repeats its request. */
	at(w, LEASE_NS + ES_REPLY_TELL_NS);
	assert_int_equal(server_says(w, ISN + 21, ES_TCP_ACK, 100), ES_NF_DROP);
	assert_int_equal(w->resets, 0);
	at(w, NOW_NS);
	w->found.acked = 1;
	assert_int_equal(server_says(w, ISN + 21, ES_TCP_ACK, 0), ES_NF_ACCEPT);
	assert_int_equal(w->resets, 0);
}

static void test_reset(void **state)
{
	const struct es_flow flow = the_flow();
	struct world *w = *state;

	note(w);
	assert_int_equal(es_nf_unproven_reset(w->node, &flow, 0), ES_NF_ACCEPT);
	note(w);
	at(w, LEASE_NS);
	assert_int_equal(es_nf_unproven_reset(w->node, &flow, 0), ES_NF_DROP);
	assert_int_equal(w->resets, 0);
	assert_int_equal(es_nf_unproven_reset(w->node, &flow, 1), ES_NF_ACCEPT);
	at(w, NOW_NS);
	note(w);
	assert_int_equal(server_says(w, ISN + 21, ES_TCP_ACK, 0), ES_NF_ACCEPT);
	at(w, LEASE_NS);
	assert_int_equal(es_nf_unproven_reset(w->node, &flow, 0), ES_NF_DROP);
	assert_int_equal(w->resets, 1);
}

static void test_end(void **state)
{
	struct world *w = *state;

	note(w);
	es_nf_settle(w->node, the_flow_hash(w), ISN + 1, ES_SETTLED_MAKE, 0);
	assert_int_equal(end(w), 0); /* the lease holds */
	at(w, LEASE_NS);
	assert_int_equal(end(w), 1);
	assert_int_equal(w->ended, 1);
	assert_int_equal(w->ended_rcv_nxt, ISN + 21);
	assert_int_equal(w->resets, 0);
	assert_int_equal(list(w), 0);
	/* Its request may be served here once more, if it may be executed twice. */
	assert_int_equal(es_nf_settle(w->node, the_flow_hash(w), ISN + 1, ES_SETTLED_LOOK, 0).as,
			 ES_SETTLED_ENDED);
	assert_int_equal(end(w), 0);
}

static void test_end_others(void **state)
{
	const struct es_flow flow = the_flow();
	struct world *w = *state;

	/*
	 * One that is proven goes on; of one that is gone, nothing is left that would let its client's
	 * packets in.
	 */
	note(w);
	at(w, LEASE_NS);
	w->found.acked = 1;
	assert_int_equal(end(w), 0);
	assert_int_equal(w->proven, 1);
	note(w);
	w->found.socket = ES_SOCKET_NONE;
	assert_int_equal(end(w), 0);
	assert_int_equal(w->forgotten, 1);
	assert_int_equal(w->ended, 0);
	/* One that cannot be ended like that is left to whoever ends it otherwise. */
	note(w);
	w->end_rc = -EBUSY;
	assert_int_equal(end(w), 0);
	assert_int_equal(list(w), 1);
	assert_true(es_nf_unproven_is(w->node, &flow));
	es_nf_unproven_ended(w->node, &flow);
	assert_int_equal(list(w), 0);
}

/* None makes room for another as long as its client may repeat its request. */
static void test_no_room(void **state)
{
	struct es_flow flow = the_flow();
	struct world *w = *state;
	unsigned long long made = 0;
	int rc;

	w->found = (struct es_nf_found){.socket = ES_SOCKET_ESTABLISHED};
	do {
		flow.client.w[1] = (__be32)made;
		flow.client.w[2] = 1;
		rc = note_as(w, &flow, ISN);
		made += !rc;
	} while (!rc);
	assert_int_equal(rc, -ENOSPC);
	assert_true(made > ES_NF_UNPROVEN_SETS / 2);
	assert_int_equal(list(w), made);
	w->found.acked = 1;
	assert_int_equal(note_as(w, &flow, ISN), 0);
}

/* Nobody takes over from a node without a lease, so nothing is noted. */
static void test_static(void **state)
{
	struct world *w = *state;

	w->config.leased = 0;
	ring_give(w, SELF);
	note(w);
	assert_int_equal(list(w), 0);
}

/* A packet that was decided late: its connection was made a moment ago, and may not get it any more. */
static void test_late_packet(void **state)
{
	struct world *w = *state;
	uint8_t bytes[256];
	const struct es_nf_frame frame = {.bytes = bytes,
					  .len = segment(bytes, ISN + 21, COOKIE + 1, ES_TCP_ACK, 1, "more"),
					  .ifindex = 2};

	note(w);
	es_nf_fresh_note(w->node->memory.fresh, the_flow_hash(w), ISN + 1, (__u32)(LEASE_NS / 1000000));
	at(w, LEASE_NS);
	assert_int_equal(es_nf_public(w->node, &frame), ES_NF_DROP);
	assert_int_equal(w->injected.count, 0);
	assert_int_equal(counted(w, ES_COUNT_drop_silent), 1);
	w->found.acked = 1;
	assert_int_equal(es_nf_public(w->node, &frame), ES_NF_DROP);
	assert_int_equal(w->injected.count, 1);
}

/* ES_TEST_OF(), with a lease */
#define LEASE_TEST(name, families)                                                                           \
	{                                                                                                    \
#name "." #families, name, lease_setup, world_teardown, (void *)&(families)                  \
	}

/* The kernel merges more than a header can say the length of (BIG TCP), and says none then. */
static void test_merged_to_more(void **state)
{
	struct world *w = *state;
	uint8_t bytes[256];
	struct es_nf_frame frame = {
		.bytes = bytes,
		.len = segment(bytes, ISN + 21, COOKIE + 1, ES_TCP_ACK, 1, "more"),
		.ifindex = 2,
	};

	note(w);
	memset(bytes + (are.clients_v6 ? 4 : 2), 0, 2);
	for (frame.full_len = 0; frame.full_len <= 200000; frame.full_len += 100000)
		assert_int_equal(es_nf_unproven_in(w->node, &frame),
				 frame.full_len ? ES_NF_ACCEPT : ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_drop_malformed), 1);
	es_nf_unproven_look(w->node, &frame);
	assert_int_equal(w->proven, 0);
}

static void count_one(void *ctx, const struct es_connection_entry *entry)
{
	(void)entry;
	++*(unsigned int *)ctx;
}

/*
 * Nobody has the connection's socket yet: the others are told of the connection, as the socket may still be
 * made, and no segment of its client gets in between.
 */
static void test_being_made(void **state)
{
	struct world *w = *state;
	unsigned int told = 0;

	note(w);
	w->found = (struct es_nf_found){.listening = 1};
	w->is_making = 1;
	assert_int_equal(client_says(w, COOKIE + 1, "more"), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_drop_no_flow), 1);
	(void)es_nf_unproven_walk(w->node, 0, count_one, &told);
	assert_int_equal(told, 1);
	/* With the lease, the attempt is over. */
	at(w, LEASE_NS);
	(void)es_nf_unproven_end(w->node, 0, &told);
	assert_int_equal(w->given_up, 1);
	/* It has come to nothing. */
	w->is_making = 0;
	told = 0;
	(void)es_nf_unproven_walk(w->node, 0, count_one, &told);
	assert_int_equal(told, 0);
}

int main(void)
{
#define EACH(name) LEASE_TEST(name, v4), LEASE_TEST(name, v6)
	const struct CMUnitTest tests[] = {
		EACH(test_lease_holds),	 EACH(test_lease_is_over), EACH(test_proven),
		EACH(test_second_half),	 EACH(test_acknowledged),  EACH(test_window),
		EACH(test_out_of_reach), EACH(test_reset),	   EACH(test_end),
		EACH(test_end_others),	 EACH(test_no_room),	   EACH(test_static),
		EACH(test_late_packet),	 EACH(test_being_made),	   EACH(test_merged_to_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
