// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The packets of clients, on a node of the netfilter datapath: bytes in, and what its hands are told.
 * test_decide.c tests what is decided.
 */
#include "cmocka_all.h"
#include <errno.h>
#include "netfilter_world.h"
#include "netfilter/node/settled.h"

/* Opens the flow. Returns what the client then acknowledges, and echoes. */
static void open_flow(struct world *w, __u32 *ret_ack, __u32 *ret_tsecr)
{
	struct es_ip_packet answer;
	uint8_t bytes[256];

	put(w, bytes, segment(bytes, ISN, 0, ES_TCP_SYN, 0, ""));
	assert_int_equal(w->framed.count, 1);
	assert_int_equal(es_ip_packet_parse(w->framed.bytes[0], w->framed.len[0], &answer), 0);
	assert_true(es_ip_packet_checksum_ok(&answer));
	assert_int_equal(answer.seg.flags, ES_TCP_SYN | ES_TCP_ACK);
	assert_int_equal(answer.seg.ack, ISN + 1);
	assert_true(answer.seg.has_ts);
	*ret_ack = answer.seg.seq + 1;
	*ret_tsecr = answer.seg.tsval;
	w->framed.count = 0;
}

static void test_syn(void **state)
{
	struct world *w = *state;
	static const uint8_t client[6] = {2, 0, 0, 0, 0, 7};
	uint8_t bytes[256];

	assert_int_equal(put(w, bytes, segment(bytes, ISN, 0, ES_TCP_SYN, 0, "")), ES_NF_DROP);
	assert_int_equal(w->frame_protocol, are.clients_v6 ? ETH_P_IPV6 : ETH_P_IP);
	assert_memory_equal(w->frame_target, client, 6);
	assert_int_equal(counted(w, ES_COUNT_syn_answered), 1);
	assert_int_equal(w->looks, 0); /* a flood costs no question */
}

/* Segments that the kernel has made of a larger packet: it tells no MAC of them. */
static void test_without_a_mac_the_stack_answers(void **state)
{
	struct world *w = *state;
	struct es_ip_packet answer;
	uint8_t bytes[256];
	const struct es_nf_frame frame = {
		.bytes = bytes, .len = segment(bytes, ISN, 0, ES_TCP_SYN, 0, ""), .ifindex = 2};

	assert_int_equal(es_nf_public(w->node, &frame), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_syn_answered), 1);
	assert_int_equal(w->framed.count, 0);
	assert_int_equal(w->answered.count, 1);
	assert_int_equal(es_ip_packet_parse(w->answered.bytes[0], w->answered.len[0], &answer), 0);
	assert_true(es_ip_packet_checksum_ok(&answer));
	assert_int_equal(answer.seg.ack, ISN + 1);
	/* With leases, at once or not at all. */
	w->config.leased = 1;
	w->is_out_of_reach = 1;
	w->node->memory.state->lease_ns = ES_LEASE_NEVER;
	es_nf_node_configure(w->node, &w->config, &w->ring);
	assert_int_equal(es_nf_public(w->node, &frame), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_answer_failed), 1);
	w->is_out_of_reach = 0;
	assert_int_equal(es_nf_public(w->node, &frame), ES_NF_DROP);
	assert_int_equal(w->answered.count, 2);
}

static void test_request_goes_to_the_inspector(void **state)
{
	struct world *w = *state;
	struct es_record record;
	__u32 ack, tsecr;
	uint8_t bytes[256];
	size_t len;

	open_flow(w, &ack, &tsecr);
	assert_int_equal(put(w, bytes, segment(bytes, ISN + 1, ack, ES_TCP_ACK, tsecr, "")), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_drop_handshake_ack), 1);
	len = segment(bytes, ISN + 1, ack, ES_TCP_ACK | ES_TCP_PSH, tsecr, "GET / HTTP/1.1\r\n\r\n");
	assert_int_equal(put(w, bytes, len), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_request_queued), 1);
	assert_int_equal(es_ring_reader_consume(w->reader), 1);
	memcpy(&record, w->queued.bytes[0], sizeof(record));
	assert_int_equal(record.kind, ES_RECORD_FIRST);
	assert_int_equal(record.flow_hash, the_flow_hash(w));
	assert_int_equal(record.len, len);
	assert_int_equal(record.gso_size, 0);
	assert_int_equal(record.flow, ES_FLOW_NEW);
	assert_memory_equal(w->queued.bytes[0] + sizeof(record), bytes, len);
	assert_int_equal(w->rebuilt.count, 0);
	assert_int_equal(w->framed.count, 0);
}

/* Ethernet pads short frames: bytes after the IP packet are no part of it. */
static void test_padding_goes_nowhere(void **state)
{
	struct world *w = *state;
	struct es_record record;
	uint8_t bytes[256] = {};
	__u32 ack, tsecr;
	size_t len;

	open_flow(w, &ack, &tsecr);
	len = segment(bytes, ISN + 1, ack, ES_TCP_ACK | ES_TCP_PSH, tsecr, "G");
	put(w, bytes, len + 6);
	assert_int_equal(es_ring_reader_consume(w->reader), 1);
	memcpy(&record, w->queued.bytes[0], sizeof(record));
	assert_int_equal(record.len, len);
}

static void test_anothers(void **state)
{
	struct world *w = *state;
	__u32 ack, tsecr;
	uint8_t bytes[256];

	open_flow(w, &ack, &tsecr);
	ring_give(w, OTHER);
	put(w, bytes, segment(bytes, ISN, 0, ES_TCP_SYN, 0, ""));
	put(w, bytes, segment(bytes, ISN + 1, ack, ES_TCP_ACK, tsecr, "GET"));
	assert_int_equal(counted(w, ES_COUNT_drop_not_mine), 2);
	assert_int_equal(es_ring_reader_consume(w->reader), 0);
	assert_int_equal(w->framed.count, 0);
	assert_int_equal(w->looks, 0); /* nor does what others have */
}

/*
 * The kernel need not ask about another's flow again: but for its first request with leases, and where
 * connections move.
 */
static void test_anothers_is_remembered(void **state)
{
	struct world *w = *state;
	__u32 ack, tsecr;
	uint8_t bytes[256], syn[256];
	size_t len, syn_len = segment(syn, ISN, 0, ES_TCP_SYN, 0, "");

	open_flow(w, &ack, &tsecr);
	len = segment(bytes, ISN + 1, ack, ES_TCP_ACK, tsecr, "");
	w->node->remembers = 1;
	assert_int_equal(put(w, bytes, len), ES_NF_DROP); /* it is this node's */
	ring_give(w, OTHER);
	assert_int_equal(put(w, syn, syn_len), ES_NF_DROP_OTHERS);
	assert_int_equal(put(w, bytes, len), ES_NF_DROP_OTHERS);
	w->node->remembers = 0;
	assert_int_equal(put(w, bytes, len), ES_NF_DROP);
	w->node->remembers = 1;
	w->node->memory.state->attached = 0;
	assert_int_equal(put(w, bytes, len), ES_NF_DROP);
	w->node->memory.state->attached = 1;

	w->config.service[0].inspect = ES_INSPECT_EVERY;
	es_nf_node_configure(w->node, &w->config, &w->ring);
	assert_int_equal(put(w, bytes, len), ES_NF_DROP);
	w->config.service[0].inspect = ES_INSPECT_FIRST;
	w->config.leased = 1;
	w->node->memory.state->lease_ns = NOW_NS + 1000000000;
	es_nf_node_configure(w->node, &w->config, &w->ring);
	assert_int_equal(put(w, syn, syn_len), ES_NF_DROP);
	assert_int_equal(put(w, bytes, len), ES_NF_DROP);
	len = segment(bytes, ISN + 1, ack, ES_TCP_ACK, tsecr, "GET");
	assert_int_equal(put(w, bytes, len), ES_NF_DROP_OTHERS);
	w->node->memory.state->lease_ns = NOW_NS - 1;
	assert_int_equal(put(w, bytes, len), ES_NF_DROP);
}

static void decide(struct world *w, __u32 cookie, __u8 node)
{
	struct es_decision_set *set = es_nf_decision_set(w->node, the_flow_hash(w));

	set->way[0].key = es_decision_key(the_flow_hash(w), cookie);
	set->way[0].value = es_decision_value(ISN, node, 0);
}

/* Acknowledgements that a client sends to the node that has its connection. */
static void test_given_is_remembered(void **state)
{
	static const __u8 more[] = {ES_TCP_FIN, ES_TCP_URG};
	struct world *w = *state;
	__u32 ack, tsecr;
	uint8_t bytes[256], other[256];
	size_t len;

	open_flow(w, &ack, &tsecr);
	w->node->remembers = 1;
	/* Nobody need hear that the client has got the SYN-ACK. */
	assert_int_equal(put(w, bytes, segment(bytes, ISN, 0, ES_TCP_SYN, 0, "")), ES_NF_DROP_GIVEN);
	assert_int_equal(put(w, bytes, segment(bytes, ISN + 1, ack, ES_TCP_ACK, tsecr, "")), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_drop_handshake_ack), 1);
	assert_int_equal(put(w, bytes, segment(bytes, ISN + 1, ack, ES_TCP_ACK, tsecr, "GET")), ES_NF_DROP);
	/*
	 * Anybody can make a segment that acknowledges what no cookie does; and what is this node's is heard.
	 */
	len = segment(bytes, ISN + 4, ack + 5000, ES_TCP_ACK, tsecr + 9, "GET");
	assert_int_equal(put(w, bytes, len), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_cookie_invalid), 1);
	for (size_t i = 0; i < 2; i++) {
		decide(w, ack - 1, i ? ES_NODE_REJECT : SELF);
		assert_int_equal(put(w, bytes, len), ES_NF_DROP);
	}
	/*
	 * If its connection was given away, the client acknowledges bytes that another node has sent, with
	 * its next request or before. A segment that ends its connection says more.
	 */
	decide(w, ack - 1, OTHER);
	assert_int_equal(put(w, bytes, segment(bytes, ISN + 4, ack + 5000, ES_TCP_ACK, tsecr + 9, "")),
			 ES_NF_DROP_GONE);
	assert_int_equal(counted(w, ES_COUNT_drop_no_flow), 1);
	len = segment(bytes, ISN + 4, ack + 5000, ES_TCP_ACK, tsecr + 9, "GET");
	assert_int_equal(put(w, bytes, len), ES_NF_DROP_GONE);
	assert_int_equal(counted(w, ES_COUNT_cookie_invalid), 4);
	for (size_t i = 0; i < sizeof(more); i++)
		assert_int_equal(
			put(w, other,
			    segment(other, ISN + 4, ack + 5000, ES_TCP_ACK | more[i], tsecr + 9, "GET")),
			ES_NF_DROP);
	/* Repeated, its connection may be nobody's. */
	w->node->now_ns += ES_STRAY_AGAIN_MS * 1000000;
	assert_int_equal(put(w, bytes, len), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_stray_queued), 1);
	/* The decision is forgotten. */
	decide(w, ack - 1, SELF);
	w->node->now_ns += 3ULL * ES_HEARD_FLOW_LIFE_S * 1000000000;
	assert_int_equal(put(w, bytes, len), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_cookie_invalid), 7);
	assert_int_equal(put(w, bytes, segment(bytes, ISN + 4, ack + 5000, ES_TCP_ACK, tsecr + 9, "")),
			 ES_NF_DROP_GIVEN);
	/* Where it makes the connection, or may come back to this node, it is heard. */
	for (int inspect = ES_INSPECT_NEVER; inspect <= ES_INSPECT_EVERY; inspect++) {
		if (inspect == ES_INSPECT_FIRST)
			continue;
		w->config.service[0].inspect = (__u8)inspect;
		es_nf_node_configure(w->node, &w->config, &w->ring);
		assert_int_equal(
			put(w, bytes, segment(bytes, ISN + 4, ack + 5000, ES_TCP_ACK, tsecr + 9, "")),
			ES_NF_DROP);
		assert_int_equal(put(w, bytes, segment(bytes, ISN, 0, ES_TCP_SYN, 0, "")), ES_NF_DROP);
	}
}

/*
 * A connection whose SYN was heard has no socket here but one that was made here, and what was made is known;
 * about others, the kernel is asked.
 */
static void test_what_was_made_is_known(void **state)
{
	struct world *w = *state;
	__u32 ack, tsecr;
	uint8_t bytes[256];

	open_flow(w, &ack, &tsecr);
	put(w, bytes, segment(bytes, ISN + 1, ack, ES_TCP_ACK, tsecr, "GET"));
	put(w, bytes, segment(bytes, ISN + 4, ack, ES_TCP_ACK | ES_TCP_FIN, tsecr, ""));
	assert_int_equal(w->looks, 0);
	w->found.socket = ES_SOCKET_ESTABLISHED;
	put(w, bytes, segment(bytes, ISN + 4, ack, ES_TCP_ACK, tsecr, "GET"));
	assert_int_equal(w->looks, 1);
	assert_int_equal(counted(w, ES_COUNT_deliver_established), 1);
	w->found.socket = ES_SOCKET_NONE;
	w->node->now_ns += 3ULL * ES_HEARD_FLOW_LIFE_S * 1000000000;
	put(w, bytes, segment(bytes, ISN + 4, ack, ES_TCP_ACK, tsecr, "GET"));
	assert_int_equal(w->looks, 2);
}

static void test_without_a_daemon_it_serves(void **state)
{
	struct world *w = *state;
	__u32 ack, tsecr;
	uint8_t bytes[256];
	size_t len;

	open_flow(w, &ack, &tsecr);
	w->node->memory.state->worker[0].heartbeat_ns = NOW_NS - 2000000000;
	len = segment(bytes, ISN + 1, ack, ES_TCP_ACK | ES_TCP_PSH, tsecr, "GET");
	assert_int_equal(put(w, bytes, len), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_request_fallback), 1);
	assert_int_equal(w->rebuilt.count, 1);
	assert_memory_equal(w->rebuilt.bytes[0], bytes, len);
	assert_true(w->rebuilt_options.tstamp_ok);

	/* Again: its socket is there, and gets the copy. */
	put(w, bytes, len);
	assert_int_equal(w->rebuilt.count, 1);
	assert_int_equal(w->injected.count, 1);
	assert_int_equal(counted(w, ES_COUNT_deliver_established), 1);

	/* And when that is over, nothing is made of it. */
	w->found = (struct es_nf_found){.listening = 1};
	put(w, bytes, len);
	assert_int_equal(w->rebuilt.count, 1);
	assert_int_equal(counted(w, ES_COUNT_handover_old), 1);
}

static void test_closed_without_a_request(void **state)
{
	struct world *w = *state;
	__u32 ack, tsecr;
	uint8_t bytes[256];

	w->config.service[0].inspect = ES_INSPECT_EVERY;
	es_nf_node_configure(w->node, &w->config, &w->ring);
	open_flow(w, &ack, &tsecr);
	put(w, bytes, segment(bytes, ISN + 1, ack, ES_TCP_ACK | ES_TCP_FIN, tsecr, ""));
	assert_int_equal(counted(w, ES_COUNT_fin_before_request), 1);
	assert_int_equal(w->rebuilt.count, 1);
	/* Nothing was asked, so nothing has escaped the inspector. */
	assert_int_equal(es_nf_connection_find(w->node->memory.connections, the_flow_hash(w))->track.pin,
			 ES_PIN_uninspected);
	assert_int_equal(counted(w, ES_COUNT_pin_uninspected), 0);
}

/*
 * A segment that was on its way when the connection was made here finds it, though the ring gives its flow to
 * another node.
 */
static void test_overtaken(void **state)
{
	struct world *w = *state;
	__u32 ack, tsecr;
	uint8_t bytes[256];
	size_t len;

	open_flow(w, &ack, &tsecr);
	es_nf_fresh_note(w->node->memory.fresh, the_flow_hash(w), ISN + 1, es_ns_to_ms(NOW_NS));
	ring_give(w, OTHER);
	w->found = w->found_after;
	len = segment(bytes, ISN + 4, ack, ES_TCP_ACK | ES_TCP_FIN, tsecr, "");
	assert_int_equal(put(w, bytes, len), ES_NF_DROP);
	assert_int_equal(w->injected.count, 1);
	assert_memory_equal(w->injected.bytes[0], bytes, len);
	w->node->now_ns += (ES_NF_FRESH_MS + 1) * 1000000ULL;
	put(w, bytes, len);
	assert_int_equal(w->injected.count, 1);
	assert_int_equal(counted(w, ES_COUNT_drop_not_mine), 1);
}

/* A client that has forgotten its connection opens another one of its ports. */
static void test_known_syn(void **state)
{
	struct world *w = *state;
	uint8_t bytes[256];
	const struct es_nf_frame frame = {.bytes = bytes,
					  .len = segment(bytes, ISN, 0, ES_TCP_SYN, 0, ""),
					  .ifindex = 2,
					  .is_known = 1};

	/* Its socket is here: it tells the client so (RFC 5961, 4). */
	w->found = w->found_after;
	assert_int_equal(es_nf_public(w->node, &frame), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_deliver_syn_established), 1);
	assert_int_equal(w->injected.count, 1);
	assert_int_equal(w->framed.count, 0);
	assert_int_equal(w->forgotten, 0);

	/*
	 * It is gone, and its entry must not take the next packets for its own; whoever inspects the new
	 * connection.
	 */
	w->found = (struct es_nf_found){.listening = 1};
	assert_false(es_nf_left_has(w->node->left, the_flow_hash(w), es_ns_to_ms(w->node->now_ns)));
	es_nf_public(w->node, &frame);
	assert_int_equal(w->forgotten, 1);
	/* If the entry has let a packet pass already, the stack may answer with a RST. */
	assert_true(es_nf_left_has(w->node->left, the_flow_hash(w), es_ns_to_ms(w->node->now_ns)));
	assert_int_equal(counted(w, ES_COUNT_syn_answered), 1);
	ring_give(w, OTHER);
	es_nf_public(w->node, &frame);
	assert_int_equal(w->forgotten, 2);
	assert_int_equal(counted(w, ES_COUNT_drop_not_mine), 1);
}

static void test_nothing_listens(void **state)
{
	struct world *w = *state;
	struct es_ip_packet answer;
	__u32 ack, tsecr;
	uint8_t bytes[256];
	size_t len;

	open_flow(w, &ack, &tsecr);
	w->node->memory.state->worker[0].heartbeat_ns = 0;
	len = segment(bytes, ISN + 1, ack, ES_TCP_ACK | ES_TCP_PSH, tsecr, "GET");
	w->found.listening = 0;
	put(w, bytes, len);
	assert_int_equal(counted(w, ES_COUNT_rebuild_no_listener), 1);
	assert_int_equal(w->framed.count, 1);
	assert_int_equal(es_ip_packet_parse(w->framed.bytes[0], w->framed.len[0], &answer), 0);
	assert_int_equal(answer.seg.flags, ES_TCP_RST);
	assert_int_equal(answer.seg.seq, ack);

	w->found.listening = 1;
	w->found.accept_full = 1;
	put(w, bytes, len);
	assert_int_equal(counted(w, ES_COUNT_handover_accept_full), 1);
	assert_int_equal(w->rebuilt.count, 0);

	/* The kernel makes none all the same: the client's repetition tries again. */
	w->found.accept_full = 0;
	w->rebuild_rc = -ECONNREFUSED;
	put(w, bytes, len);
	assert_int_equal(counted(w, ES_COUNT_rebuild_refused), 1);
	w->rebuild_rc = 0;
	put(w, bytes, len);
	assert_int_equal(counted(w, ES_COUNT_request_fallback), 1);
}

/*
 * The daemon has stood still when it was about to make it, and its inspector is away: there may be a
 * connection still.
 */
static void test_it_may_have_been_made(void **state)
{
	struct world *w = *state;
	__u32 ack, tsecr;
	uint8_t bytes[256];
	size_t len;

	open_flow(w, &ack, &tsecr);
	w->node->memory.state->worker[0].heartbeat_ns = 0;
	es_nf_settle(w->node, the_flow_hash(w), ISN + 1, ES_SETTLED_MAKE, 0);
	len = segment(bytes, ISN + 1, ack, ES_TCP_ACK | ES_TCP_PSH, tsecr, "GET");
	for (int i = 0; i < 2; i++) {
		w->node->now_ns += ES_SETTLED_MADE_MS * 1000000ULL;
		put(w, bytes, len);
	}
	assert_int_equal(counted(w, ES_COUNT_handover_old), 2);
	assert_int_equal(w->rebuilt.count, 0);
}

static void test_a_full_queue(void **state)
{
	struct world *w = *state;
	__u32 ack, tsecr;
	uint8_t bytes[1500];
	char payload[1200];
	size_t len;

	open_flow(w, &ack, &tsecr);
	memset(payload, 'x', sizeof(payload));
	payload[sizeof(payload) - 1] = 0;
	len = segment(bytes, ISN + 1, ack, ES_TCP_ACK | ES_TCP_PSH, tsecr, payload);
	for (int i = 0; i < 100; i++)
		put(w, bytes, len);
	assert_true(counted(w, ES_COUNT_drop_queue_full) > 0);
	assert_int_equal(counted(w, ES_COUNT_drop_queue_full) + counted(w, ES_COUNT_request_queued), 100);
}

/* A segment of a client that has a link-local address only. Returns its length. */
static size_t link_local_segment(uint8_t *bytes, __u32 seq, __u32 ack, __u8 flags, __u32 tsecr,
				 const char *payload)
{
	size_t len = segment(bytes, seq, ack, flags, tsecr, payload);

	bytes[8] = 0xfe;
	bytes[9] = 0x80;
	return len;
}

/*
 * The client's socket would belong to the tun device. The client hears so at once, and no connection of its
 * own is made in any other way either.
 */
static void test_link_local_client(void **state)
{
	struct world *w = *state;
	const __u8 request = ES_TCP_ACK | ES_TCP_PSH;
	struct es_ip_packet answer;
	uint8_t bytes[256];
	__u32 tsval, cookie, ack;
	struct es_flow flow = the_flow();
	struct es_tcp_options options = {.mss = 1400, .tstamp_ok = 1};

	put(w, bytes, link_local_segment(bytes, ISN, 0, ES_TCP_SYN, 0, ""));
	assert_int_equal(counted(w, ES_COUNT_rebuild_refused), 1);
	assert_int_equal(counted(w, ES_COUNT_syn_answered), 0);
	assert_int_equal(w->framed.count, 1);
	assert_int_equal(es_ip_packet_parse(w->framed.bytes[0], w->framed.len[0], &answer), 0);
	assert_true(es_ip_packet_checksum_ok(&answer));
	assert_int_equal(answer.seg.flags, ES_TCP_RST | ES_TCP_ACK);
	assert_int_equal(answer.seg.seq, 0);
	assert_int_equal(answer.seg.ack, ISN + 1);

	/* A node of another datapath has answered its SYN, and has given its share away since. */
	flow.client.b[0] = 0xfe;
	flow.client.b[1] = 0x80;
	cookie = es_cookie_make_packed(&w->config.cookie_key[0],
				       es_flow_hash(&w->config.ring_key, w->config.ring_seed, &flow),
				       (__u32)(NOW_NS / 1000000000 / w->config.slot_s), ISN,
				       es_cookie_options_pack6(&options), &tsval);
	ack = cookie + 1;
	put(w, bytes, link_local_segment(bytes, ISN + 1, ack, request, tsval, "GET / HTTP/1.1\r\n\r\n"));
	assert_int_equal(counted(w, ES_COUNT_rebuild_refused), 2);
	assert_int_equal(counted(w, ES_COUNT_request_queued), 0);
	assert_int_equal(w->framed.count, 2);
	assert_int_equal(es_ip_packet_parse(w->framed.bytes[1], w->framed.len[1], &answer), 0);
	assert_int_equal(answer.seg.flags, ES_TCP_RST);
	assert_int_equal(answer.seg.seq, ack);
	assert_int_equal(w->rebuilt.count, 0);

	/* Another node's client is that node's. */
	ring_give(w, OTHER);
	put(w, bytes, link_local_segment(bytes, ISN, 0, ES_TCP_SYN, 0, ""));
	assert_int_equal(counted(w, ES_COUNT_drop_not_mine), 1);
	assert_int_equal(w->framed.count, 2);
}

int main(void)
{
#define EACH(name) ES_TEST_OF(name, v4), ES_TEST_OF(name, v6)
	const struct CMUnitTest tests[] = {
		EACH(test_syn),
		EACH(test_without_a_mac_the_stack_answers),
		EACH(test_request_goes_to_the_inspector),
		EACH(test_padding_goes_nowhere),
		EACH(test_anothers),
		EACH(test_anothers_is_remembered),
		EACH(test_given_is_remembered),
		EACH(test_what_was_made_is_known),
		EACH(test_without_a_daemon_it_serves),
		EACH(test_closed_without_a_request),
		EACH(test_overtaken),
		EACH(test_known_syn),
		EACH(test_nothing_listens),
		EACH(test_it_may_have_been_made),
		EACH(test_a_full_queue),
		ES_TEST_OF(test_link_local_client, v6),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
