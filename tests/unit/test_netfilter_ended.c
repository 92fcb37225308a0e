// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Segments that clients send on connections that are over, and on their next ones with the same ports
 * (netfilter/node/ended.h).
 */
#include "cmocka_all.h"
#include "netfilter/node/ended.h"
#include "tests/unit/netfilter_world.h"

#define OLD 900000000u /* where the request began that was served before */

/* struct dialogue - the next connection, whose SYN was answered */
struct dialogue {
	struct world *w;
	__u32 ack, tsecr;
};

/* Begins a dialogue: the client's SYN gets a SYN-ACK, as any node makes it. */
static struct dialogue begin(struct world *w)
{
	struct es_ip_packet answer;
	uint8_t bytes[256];

	w->found = (struct es_nf_found){.listening = 1, .time_wait = 1};
	w->first = OLD;
	put(w, bytes, segment(bytes, ISN, 0, ES_TCP_SYN, 0, ""));
	assert_int_equal(es_ip_packet_parse(w->framed.bytes[0], w->framed.len[0], &answer), 0);
	w->framed.count = 0;
	return (struct dialogue){w, answer.seg.seq + 1, answer.seg.tsval};
}

static int is_gone(const struct dialogue *d, __u32 seq, __u8 flags, const char *text)
{
	uint8_t bytes[256];
	const struct es_nf_frame frame = {.bytes = bytes,
					  .len = segment(bytes, seq, d->ack, flags, d->tsecr, text)};

	return es_nf_ended_is_gone(d->w->node, &frame);
}

static void test_request(void **state)
{
	const struct dialogue d = begin(*state);

	assert_true(is_gone(&d, ISN + 1, ES_TCP_ACK | ES_TCP_PSH, "GET"));
	assert_true(is_gone(&d, ISN + 1, ES_TCP_ACK | ES_TCP_FIN, "GET"));
	/* Another node's, which may have it: this one's old socket has not. */
	ring_give(d.w, OTHER);
	assert_true(is_gone(&d, ISN + 1, ES_TCP_ACK | ES_TCP_PSH, "GET"));
	assert_int_equal(d.w->forgotten, 0); /* it only tells */
}

/* The stack gets what is not certain to be new. */
static void test_anything_else(void **state)
{
	struct dialogue d = begin(*state);
	const __u32 ack = d.ack;

	assert_false(is_gone(&d, ISN + 1, ES_TCP_ACK, ""));
	assert_false(is_gone(&d, ISN + 4, ES_TCP_ACK | ES_TCP_FIN, "later"));
	d.ack = ack + 77777;
	assert_false(is_gone(&d, ISN + 1, ES_TCP_ACK | ES_TCP_FIN, "old"));
	d.ack = ack;
	d.w->found.socket = ES_SOCKET_ESTABLISHED;
	assert_false(is_gone(&d, ISN + 1, ES_TCP_ACK | ES_TCP_PSH, "GET"));
}

/*
 * In TIME_WAIT, a socket has got all bytes; and the conntrack entry may stay for longer than the socket:
 * segments that arrive are of another connection.
 */
static void test_nobodys(void **state)
{
	struct dialogue d = begin(*state);

	d.ack += 77777;
	assert_true(is_gone(&d, ISN + 4, ES_TCP_ACK | ES_TCP_PSH, "later"));
	d.w->found.time_wait = 0;
	assert_true(is_gone(&d, ISN + 4, ES_TCP_ACK | ES_TCP_PSH, "later"));
	assert_false(is_gone(&d, ISN + 4, ES_TCP_ACK, ""));
	assert_true(is_gone(&d, ISN + 4, ES_TCP_ACK | ES_TCP_FIN, "later"));
	assert_false(is_gone(&d, OLD, ES_TCP_ACK | ES_TCP_PSH, "repeated"));
}

/* The segment that the connection was made of has a cookie, too. */
static void test_repeated(void **state)
{
	const struct dialogue d = begin(*state);

	d.w->first = ISN + 1;
	assert_false(is_gone(&d, ISN + 1, ES_TCP_ACK | ES_TCP_PSH, "GET"));
	d.w->first = 0; /* the packet before has had it forgotten */
	assert_true(is_gone(&d, ISN + 1, ES_TCP_ACK | ES_TCP_PSH, "GET"));
}

static void test_cookie_of_before(void **state)
{
	const struct dialogue d = begin(*state);

	d.w->node->now_ns += 3ULL * d.w->config.slot_s * 1000000000;
	assert_false(is_gone(&d, ISN + 1, ES_TCP_ACK | ES_TCP_FIN, "GET"));
}

static void test_other_packets(void **state)
{
	const struct dialogue d = begin(*state);
	uint8_t bytes[256];
	struct es_nf_frame frame = {.bytes = bytes};

	frame.len = segment(bytes, ISN + 1, d.ack, ES_TCP_ACK, d.tsecr, "GET") - 4;
	assert_false(es_nf_ended_is_gone(d.w->node, &frame));

	d.w->config.service[0].port = es_htons(SERVICE_PORT + 1);
	es_nf_node_configure(d.w->node, &d.w->config, &d.w->ring);
	assert_false(is_gone(&d, ISN + 1, ES_TCP_ACK, "GET"));
}

#define EACH(name) ES_TEST_OF(name, v4), ES_TEST_OF(name, v6)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(test_request),  EACH(test_anything_else),	  EACH(test_nobodys),
		EACH(test_repeated), EACH(test_cookie_of_before), EACH(test_other_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
