// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads responses for the tracks of their connections.
 */
#include "kmod/core/reply.h"
#include "kmod/core/view.h"
#include "netfilter/node/reply.h"

/*
 * The connection of a packet that leaves; NULL if nothing is known of it, or its service does not inspect
 * every request.
 */
static struct es_nf_connection *es_nf_reply_connection(const struct es_nf_node *node, const uint8_t *packet,
						       size_t len, struct es_packet *ret_pkt,
						       struct es_segment *ret_seg)
{
	struct es_packet client;
	struct es_flow flow;
	int service;

	if (es_nf_packet_tcp(packet, len, ret_pkt, ret_seg))
		return NULL;
	es_packet_turn(ret_pkt, &client);
	es_packet_flow(&client, &flow);
	service = es_nf_service_find(node, &flow.service, flow.service_port);
	if (service < 0 || node->config.service[service].inspect != ES_INSPECT_EVERY)
		return NULL;
	return es_nf_connection_find(node->memory.connections,
				     es_flow_hash(&node->config.ring_key, node->config.ring_seed, &flow));
}

static void es_nf_reply_scan(struct es_response *response, const uint8_t *at, const uint8_t *end)
{
	__u64 word;

	while (at < end) {
		if (!es_response_reads(response)) {
			at += es_response_skip(response, (__u32)(end - at));
			continue;
		}
		if (end - at >= (ptrdiff_t)sizeof(word)) {
			memcpy(&word, at, sizeof(word));
			if (es_response_word(response, word)) {
				at += sizeof(word);
				continue;
			}
		}
		es_response_byte(response, *at++);
	}
}

/* Tells the daemon a response's length and duration. The daemon polls for it; nobody is woken. */
static void es_nf_reply_measured(const struct es_nf_node *node, const struct es_track *t)
{
	struct es_response_entry *entry =
		node->responses ? es_nf_ring_reserve(node->responses, sizeof(*entry)) : NULL;

	if (!entry) {
		es_nf_count(node, ES_COUNT_response_unmeasured);
		return;
	}
	es_reply_entry(t, node->now_ns, entry);
	es_nf_ring_commit(entry);
}

void es_nf_reply(struct es_nf_node *node, const uint8_t *packet, size_t len)
{
	struct es_nf_connection *c;
	struct es_packet pkt;
	struct es_segment seg;
	struct es_track *t;
	__u8 pin = ES_PIN_none;
	int complete;
	__u32 from;

	c = es_nf_reply_connection(node, packet, len, &pkt, &seg);
	if (!c || !seg.len || c->track.pin || es_track_is_leaving(&c->track))
		return;
	t = &c->track;
	c->used_ms = es_ns_to_ms(node->now_ns);
	complete = es_track_skip(t, seg.seq);
	/*
	 * Missing bytes may still follow. If they were acknowledged, they will not, but nobody checks that
	 * here: the next request then finds no complete response.
	 */
	from = es_reply_unread(t, &seg, t->response_seq, &pin);
	if (from < seg.len) {
		const uint8_t *payload = packet + es_packet_ip_len(&pkt) + ES_NF_TCP_LEN + pkt.options_len;

		es_nf_reply_scan(&t->response, payload + from, payload + seg.len);
		complete |= es_reply_read(t, &seg, from);
	}
	if (es_seq_before(c->sent_seq, seg.seq + seg.len))
		c->sent_seq = seg.seq + seg.len;
	complete |= es_track_skip(t, c->sent_seq);
	if (complete)
		es_nf_reply_measured(node, t);
}

int es_nf_reply_is_held(const struct es_nf_node *node, const uint8_t *packet, size_t len)
{
	const struct es_nf_connection *c;
	struct es_packet pkt;
	struct es_segment seg;

	c = es_nf_reply_connection(node, packet, len, &pkt, &seg);
	return c && es_track_holds(&c->track, &seg);
}
