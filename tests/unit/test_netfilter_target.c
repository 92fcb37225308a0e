// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The messages of other nodes, on a node of the netfilter datapath. test_decide_handover.c and test_message.c
 * test what is decided.
 */
#include "cmocka_all.h"
#include <errno.h>
#include "netfilter_letter.h"
#include "kmod/core/strays.h"
#include "netfilter/node/unproven.h"

static void test_request(void **state)
{
	struct world *w = *state;
	struct letter l;

	ring_give(w, OTHER);
	letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET / HTTP/1.1\r\n\r\n");
	assert_int_equal(letter_put(w, &l, 1), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_handover_received), 1);
	assert_int_equal(counted(w, ES_COUNT_handover_rebuilt), 1);
	assert_int_equal(w->rebuilt.count, 1);
	assert_int_equal(w->rebuilt.len[0], l.packet_len);
	assert_memory_equal(w->rebuilt.bytes[0], l.packet, l.packet_len);
	assert_int_equal(w->rebuilt_options.mss, 1400);
	assert_int_equal(w->rebuilt_options.snd_wscale, 9);
	assert_true(w->rebuilt_options.wscale_ok && w->rebuilt_options.sack_ok &&
		    w->rebuilt_options.tstamp_ok);

	/* The inspecting node passes on again a segment that the client repeats: the socket gets it. */
	letter_put(w, &l, 1);
	assert_int_equal(w->rebuilt.count, 1);
	assert_int_equal(w->injected.count, 1);
	assert_int_equal(counted(w, ES_COUNT_handover_duplicate), 1);

	/* And the segment after it. */
	letter_begin(w, &l, ES_HANDOVER_FOLLOW, "more");
	letter_put(w, &l, 1);
	assert_int_equal(w->injected.count, 2);
	assert_memory_equal(w->injected.bytes[1], l.packet, l.packet_len);
	assert_int_equal(counted(w, ES_COUNT_handover_follow), 1);

	/* The request's connection is over: nothing more is made of the same request. */
	w->found = (struct es_nf_found){.listening = 1};
	letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET / HTTP/1.1\r\n\r\n");
	letter_put(w, &l, 1);
	assert_int_equal(w->rebuilt.count, 1);
	assert_int_equal(counted(w, ES_COUNT_handover_old), 1);
}

static void test_only_what_is_authentic(void **state)
{
	struct world *w = *state;
	struct letter l;

	letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET");
	letter_put(w, &l, 1);
	assert_int_equal(letter_put(w, &l, 0), ES_NF_DROP); /* recorded */
	assert_int_equal(counted(w, ES_COUNT_handover_replayed), 1);
	letter_put(w, &l, 1);
	l.packet[l.packet_len - 1] ^= 1;
	l.h.sequence = 0;
	assert_int_equal(letter_put(w, &l, 0), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_handover_bad_mac), 1);
	letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET");
	l.h.target = 3;
	letter_put(w, &l, 1);
	assert_int_equal(counted(w, ES_COUNT_handover_wrong_target), 1);
	l.packet_len = 10; /* no packet at all */
	l.h.target = SELF;
	letter_put(w, &l, 1);
	assert_int_equal(counted(w, ES_COUNT_handover_malformed), 1);
	assert_int_equal(w->rebuilt.count, 1);
}

/*
 * Loads go to the daemon's socket, as whatever else is none of this datapath's; answers go there when they
 * are checked.
 */
static void test_what_passes(void **state)
{
	struct world *w = *state;
	struct letter l;

	letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET");
	l.h.magic = es_htonl(ES_LOADS_MAGIC);
	assert_int_equal(letter_put(w, &l, 1), ES_NF_ACCEPT);
	letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET");
	l.dport = 53;
	assert_int_equal(letter_put(w, &l, 1), ES_NF_ACCEPT);
	letter_begin(w, &l, ES_HANDOVER_NACK, "GET");
	l.h.nack = ES_NACK_RETRY;
	l.sport = HANDOVER_PORT;
	l.dport = WORKER_PORT;
	assert_int_equal(letter_put(w, &l, 1), ES_NF_ACCEPT);
	assert_int_equal(counted(w, ES_COUNT_handover_nack_received), 1);
	assert_int_equal(letter_put(w, &l, 0), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_handover_replayed), 1);
}

static void test_refused(void **state)
{
	struct world *w = *state;
	struct es_handover h;
	struct letter l;

	letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET");
	w->found.listening = 0;
	letter_put(w, &l, 1);
	h = answer(w);
	assert_int_equal(h.kind, ES_HANDOVER_NACK);
	assert_int_equal(h.nack, ES_NACK_NO_LISTENER);
	assert_memory_equal(w->sent.bytes[0] + packet_off(), l.packet, l.packet_len);

	/* A refusal is a promise, also when something listens again. */
	w->found.listening = 1;
	letter_put(w, &l, 1);
	assert_int_equal(answer(w).nack, ES_NACK_RETRY);
	assert_int_equal(counted(w, ES_COUNT_handover_refused), 1);
	assert_int_equal(w->rebuilt.count, 0);
	l.h.attempt = 1;
	letter_put(w, &l, 1);
	assert_int_equal(counted(w, ES_COUNT_handover_rebuilt), 1);
}

static void test_the_kernel_makes_none(void **state)
{
	struct world *w = *state;
	struct letter l;

	letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET");
	w->found.accept_full = 1;
	letter_put(w, &l, 1);
	assert_int_equal(counted(w, ES_COUNT_handover_accept_full), 1);
	w->found.accept_full = 0;
	w->rebuild_rc = -ECONNREFUSED;
	letter_put(w, &l, 1);
	assert_int_equal(counted(w, ES_COUNT_rebuild_refused), 1);
	w->rebuild_rc = 0;
	letter_put(w, &l, 1);
	assert_int_equal(counted(w, ES_COUNT_handover_rebuilt), 1);
}

/* A node of an older version inspects what a client with a link-local address asks for, and hands it over. */
static void test_link_local_client(void **state)
{
	struct world *w = *state;
	struct letter l;

	letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET");
	l.packet[8] = 0xfe;
	l.packet[9] = 0x80;
	letter_put(w, &l, 1);
	assert_int_equal(counted(w, ES_COUNT_rebuild_refused), 1);
	assert_int_equal(w->rebuilt.count, 0);
}

static void on_listed(void *ctx, const struct es_connection_entry *entry)
{
	struct es_connection_entry *last = ctx;

	*last = *entry;
}

/*
 * The kernel has made it all the same, when it was no longer waited for: the others must hear of it, and it
 * is the only one.
 */
static void test_the_kernel_makes_it_later(void **state)
{
	struct world *w = *state;
	struct es_connection_entry listed = {};
	struct letter l;

	w->config.leased = 1;
	ring_give(w, OTHER);
	letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET");
	w->rebuild_rc = -ENOBUFS;
	letter_put(w, &l, 1);
	assert_int_equal(counted(w, ES_COUNT_rebuild_refused), 1);
	assert_int_equal(es_nf_unproven_walk(w->node, 0, on_listed, &listed), 0);
	assert_int_equal(listed.flow_hash, 0);
	w->found = (struct es_nf_found){.socket = ES_SOCKET_ESTABLISHED};
	letter_put(w, &l, 1);
	assert_int_equal(w->injected.count, 1);
	assert_int_equal(es_nf_unproven_walk(w->node, 0, on_listed, &listed), 0);
	assert_int_equal(listed.flow_hash, the_flow_hash(w));
	assert_int_equal(listed.first_seq, ISN + 1);
	assert_int_equal(listed.source, OTHER);
	w->found = (struct es_nf_found){.listening = 1};
	w->rebuild_rc = 0;
	letter_put(w, &l, 1);
	assert_int_equal(w->rebuilt.count, 1);
	assert_int_equal(counted(w, ES_COUNT_handover_old), 1);
}

static void test_an_older_connection_is_ended(void **state)
{
	struct world *w = *state;
	struct letter l;

	es_nf_fresh_note(w->node->memory.fresh, the_flow_hash(w), ISN + 1 - 5000, 0);
	w->found = (struct es_nf_found){.socket = ES_SOCKET_ESTABLISHED, .received = 300};
	letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET");
	letter_put(w, &l, 1);
	assert_int_equal(w->ended, 1);
	assert_int_equal(w->ended_rcv_nxt, ISN + 1 - 5000 + 300);
	assert_int_equal(answer(w).nack, ES_NACK_RETRY);
	assert_int_equal(w->rebuilt.count, 0);
}

/*
 * The packet that the inspector was given with the newest record, which asks for the older connection; its
 * numbers.
 */
static void asked(struct world *w, __u32 *ret_seq, __u32 *ret_ack)
{
	struct es_record record;
	const uint8_t *packet;

	assert_int_equal(es_ring_reader_consume(w->reader), 1);
	memcpy(&record, w->queued.bytes[w->queued.count - 1], sizeof(record));
	assert_int_equal(record.kind, ES_RECORD_OPEN);
	packet = w->queued.bytes[w->queued.count - 1] + sizeof(record);
	packet += record.len - 20;
	*ret_seq = es_get_be32(packet + 4);
	*ret_ack = es_get_be32(packet + 8);
}

/* If the kernel knows the older connection, and so its numbers, its client is asked for it first, twice. */
static void test_an_older_connection_is_asked_for(void **state)
{
	struct world *w = *state;
	__u32 now_ms = es_ns_to_ms(w->node->now_ns), seq, ack;
	struct letter l;

	es_nf_fresh_note(w->node->memory.fresh, the_flow_hash(w), ISN + 1 - 5000, 0);
	for (__u32 answered = 0; answered < 2; answered++) {
		w->found = (struct es_nf_found){
			.socket = ES_SOCKET_ESTABLISHED, .received = 300, .heard_ms = now_ms - 500};
		w->open =
			(struct es_connection_state){.rcv_nxt = ISN + 1 - 4700, .snd_una = 77, .is_found = 1};
		letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET");
		letter_put(w, &l, 1);
		asked(w, &seq, &ack);
		assert_int_equal(seq, ISN + 1 - 4700);
		assert_int_equal(ack, 77);
		letter_put(w, &l, 1);
		assert_int_equal(counted(w, ES_COUNT_handover_waits), 1 + answered);
		w->found.heard_ms = now_ms;
		letter_put(w, &l, 1);
		assert_int_equal(counted(w, ES_COUNT_handover_alive), 1 + answered);
		now_ms += ES_CHALLENGE_WAIT_MS;
		w->node->now_ns += ES_CHALLENGE_WAIT_MS * 1000000ULL;
	}
	assert_int_equal(w->ended, 0);
	letter_put(w, &l, 1);
	asked(w, &seq, &ack);
	w->node->now_ns += ES_CHALLENGE_WAIT_MS * 1000000ULL;
	letter_put(w, &l, 1);
	asked(w, &seq, &ack);
	assert_int_equal(counted(w, ES_COUNT_handover_asked), 4);
	w->node->now_ns += ES_CHALLENGE_WAIT_MS * 1000000ULL;
	letter_put(w, &l, 1);
	assert_int_equal(w->ended, 1);
	assert_int_equal(answer(w).nack, ES_NACK_RETRY);
	assert_int_equal(w->rebuilt.count, 0);
}

/* If the inspector takes nothing, the client is not held to have been asked. */
static void test_nobody_can_ask_for_an_older_connection(void **state)
{
	struct world *w = *state;
	struct es_nf_ring *ring = w->node->queue[0];
	struct letter l;

	es_nf_fresh_note(w->node->memory.fresh, the_flow_hash(w), ISN + 1 - 5000, 0);
	w->found = (struct es_nf_found){.socket = ES_SOCKET_ESTABLISHED, .received = 300};
	w->open = (struct es_connection_state){.rcv_nxt = ISN + 1 - 4700, .snd_una = 77, .is_found = 1};
	letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET");
	w->node->queue[0] = NULL;
	letter_put(w, &l, 1);
	w->node->queue[0] = ring;
	assert_int_equal(counted(w, ES_COUNT_drop_queue_full), 1);
	w->node->now_ns += ES_CHALLENGE_WAIT_MS * 1000000ULL;
	letter_put(w, &l, 1);
	assert_int_equal(counted(w, ES_COUNT_handover_asked), 1);
	assert_int_equal(w->ended, 0);
}

/*
 * Another flow has taken the place in which the older one's first byte was noted: the kernel knows it still.
 */
static void test_an_older_connection_whose_track_is_lost(void **state)
{
	struct world *w = *state;
	struct letter l;

	es_nf_fresh_note(w->node->memory.fresh, the_flow_hash(w) ^ 1, 7, 0);
	w->found = (struct es_nf_found){.socket = ES_SOCKET_ESTABLISHED, .received = 300};
	w->first = ISN + 1 - 5000;
	letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET");
	letter_put(w, &l, 1);
	assert_int_equal(w->ended, 1);
	assert_int_equal(w->ended_rcv_nxt, ISN + 1 - 5000 + 300);
	assert_int_equal(answer(w).nack, ES_NACK_RETRY);
	/* It is the request's own. */
	w->first = ISN + 1;
	letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET");
	l.h.attempt = 1;
	letter_put(w, &l, 1);
	assert_int_equal(w->ended, 1);
	assert_int_equal(w->injected.count, 1);
	/* Nobody knows: it may be. */
	w->first = 0;
	letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET");
	l.h.attempt = 1;
	letter_put(w, &l, 1);
	assert_int_equal(w->ended, 1);
	assert_int_equal(w->injected.count, 2);
}

static void test_stray(void **state)
{
	struct world *w = *state;
	struct letter l;

	letter_begin(w, &l, ES_HANDOVER_STRAY, "more");
	w->found = (struct es_nf_found){};
	letter_put(w, &l, 1);
	assert_int_equal(answer(w).nack, ES_NACK_NOT_HERE);
	w->found.socket = ES_SOCKET_ESTABLISHED;
	letter_put(w, &l, 1);
	assert_int_equal(answer(w).nack, ES_NACK_HERE);
	/* If it cannot be found out whether it is here, it may be. */
	w->found = (struct es_nf_found){};
	w->look_rc = -ENOMEM;
	letter_put(w, &l, 1);
	assert_int_equal(answer(w).nack, ES_NACK_HERE);
}

/* Nor is a request given back then, as if nothing listened. */
static void test_nobody_can_tell(void **state)
{
	struct world *w = *state;
	struct letter l;

	w->look_rc = -ENOMEM;
	letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET");
	letter_put(w, &l, 1);
	assert_int_equal(w->sent.count, 0);
	assert_int_equal(w->rebuilt.count, 0);
	assert_int_equal(counted(w, ES_COUNT_rebuild_refused), 1);
	w->look_rc = 0;
	letter_put(w, &l, 1);
	assert_int_equal(w->rebuilt.count, 1);
}

/* Two questions of the clients' family. Returns the length. */
static __u32 strays_put(uint8_t *at)
{
	const union es_stray_service_any s4 = {
		.v4 = {.address = address(100), .port = es_htons(SERVICE_PORT), .count = es_htons(2)}};
	const union es_stray_service_any s6 = {
		.v6 = {.address = host(1, 100), .port = es_htons(SERVICE_PORT), .count = es_htons(2)}};
	const union es_stray_question_any q4 = {.v4 = {.client = address(7),
						       .port = es_htons(40001),
						       .flags = ES_TCP_ACK,
						       .seq = es_htonl(9),
						       .ack = es_htonl(9)}};
	const union es_stray_question_any q6 = {.v6 = {.client = host(1, 7),
						       .port = es_htons(40001),
						       .flags = ES_TCP_ACK,
						       .seq = es_htonl(9),
						       .ack = es_htonl(9)}};
	size_t head = es_stray_service_len(are.clients_v6), question = es_stray_question_len(are.clients_v6);

	memcpy(at, are.clients_v6 ? &s6 : &s4, head);
	for (int i = 0; i < 2; i++)
		memcpy(at + head + (size_t)i * question, are.clients_v6 ? &q6 : &q4, question);
	return es_strays_len(are.clients_v6, 2);
}

static void test_strays(void **state)
{
	struct world *w = *state;
	struct es_handover h;
	struct letter l;

	w->found = (struct es_nf_found){.socket = ES_SOCKET_ESTABLISHED};
	letter_begin(w, &l, are.clients_v6 ? ES_HANDOVER_STRAYS6 : ES_HANDOVER_STRAYS, "");
	l.packet_len = strays_put(l.packet);
	letter_put(w, &l, 1);
	h = answer(w);
	assert_int_equal(h.nack, ES_NACK_STRAYS);
	assert_int_equal(es_cpu_be64((__u64)h.here), 3);
	assert_int_equal(es_ntohs(h.packet_len), ES_STRAYS_KEPT);
	l.packet_len--;
	letter_put(w, &l, 1);
	assert_int_equal(counted(w, ES_COUNT_handover_malformed), 1);
}

/* The packet says another length than its message, or has headers that hide what it is. */
static void test_packet_of_v6(void **state)
{
	struct world *w = *state;
	struct letter l;

	letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET");
	l.packet[5]++;
	letter_put(w, &l, 1);
	l.packet[5] = (uint8_t)(l.packet[5] - 2);
	letter_put(w, &l, 1);
	l.packet[5]++;
	l.packet[6] = 44; /* a fragment */
	letter_put(w, &l, 1);
	assert_int_equal(counted(w, ES_COUNT_handover_malformed), 3);
	l.packet[6] = IPPROTO_TCP;
	letter_put(w, &l, 1);
	assert_int_equal(counted(w, ES_COUNT_handover_rebuilt), 1);
}

/* Nobody here asks for these; who does all the same gets nothing. */
static void test_no_connection_leaves(void **state)
{
	struct world *w = *state;
	struct letter l;

	w->found.socket = ES_SOCKET_ESTABLISHED;
	letter_begin(w, &l, ES_HANDOVER_END, "GET");
	l.h.source = SELF;
	letter_put(w, &l, 1);
	assert_int_equal(counted(w, ES_COUNT_end_refused), 1);
	letter_begin(w, &l, ES_HANDOVER_END, "GET");
	letter_put(w, &l, 1);
	assert_int_equal(counted(w, ES_COUNT_handover_malformed), 1);
	assert_int_equal(w->ended, 0);
	assert_int_equal(w->sent.count, 0);
	assert_int_equal(w->injected.count, 0);
}

int main(void)
{
#define EACH(name)                                                                                           \
	ES_TEST_OF(name, v4), ES_TEST_OF(name, v6), ES_TEST_OF(name, v6_by_v4), ES_TEST_OF(name, v4_by_v6)
	const struct CMUnitTest tests[] = {
		EACH(test_request),
		EACH(test_only_what_is_authentic),
		EACH(test_what_passes),
		EACH(test_refused),
		EACH(test_the_kernel_makes_none),
		ES_TEST_OF(test_link_local_client, v6),
		EACH(test_the_kernel_makes_it_later),
		EACH(test_an_older_connection_is_ended),
		EACH(test_an_older_connection_is_asked_for),
		EACH(test_nobody_can_ask_for_an_older_connection),
		EACH(test_an_older_connection_whose_track_is_lost),
		EACH(test_nobody_can_tell),
		EACH(test_stray),
		EACH(test_no_connection_leaves),
		EACH(test_strays),
		ES_TEST_OF(test_packet_of_v6, v6),
		ES_TEST_OF(test_packet_of_v6, v6_by_v4),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
