// SPDX-License-Identifier: GPL-2.0-only
/*
 * What our servers answer, read on the way out. The counterpart of es_reply and kmod/bpf/reply.h.
 */
#include <net/ip.h>

#include "kmod/core/response.h"
#include "other.h"
#include "reply.h"
#include "view.h"

#define ES_REPLY_CHUNK 256

/* Tell the daemon how long a response was. It looks by itself; nobody is woken. */
static void es_reply_measured(struct es_node *node, const struct es_track *t)
{
	struct es_ringbuf *ring = rcu_dereference(node->queue[ES_RINGBUF_LENGTHS]);
	struct es_response_entry *entry = ring ? es_ringbuf_reserve(ring, sizeof(*entry)) : NULL;

	if (!entry) {
		es_count(node, ES_COUNT_response_unmeasured);
		return;
	}
	entry->content = t->content;
	entry->bytes = t->response_bytes;
	entry->status = t->response.status;
	entry->service = t->service;
	entry->request_flags = t->request_flags;
	es_ringbuf_commit(entry, 0);
}

/* Read @bytes until the response wants no more of them; returns how many that were. */
static u32 es_reply_scan(struct es_response *response, const u8 *bytes, u32 len)
{
	u32 used = 0;
	u64 word;

	while (used < len && es_response_reads(response)) {
		if (used + 8 <= len) {
			memcpy(&word, bytes + used, 8);
			if (es_response_word(response, word)) {
				used += 8;
				continue;
			}
		}
		es_response_byte(response, bytes[used++]);
	}
	return used;
}

/*
 * Payload bytes [@off, @end) of the packet, the first of which is @seq. Returns 1 if they complete a response
 * that is to be measured.
 */
static int es_reply_read(struct es_node *node, const struct sk_buff *skb, struct es_track *t, u32 seq,
			 u32 off, u32 end)
{
	u32 known = t->response_seq - seq, at;
	u8 chunk[ES_REPLY_CHUNK];

	if (es_seq_before(t->response_seq, seq)) {
		es_track_pin(node, t, ES_PIN_response_unclear); /* bytes that we never saw */
		return 0;
	}
	if (known >= end - off)
		return 0; /* a retransmission */
	for (at = off + known; at < end;) {
		u32 len = min_t(u32, end - at, ES_REPLY_CHUNK);

		if (!es_response_reads(&t->response)) {
			at += es_response_skip(&t->response, end - at);
		} else if (skb_copy_bits(skb, (int)at, chunk, (int)len)) {
			t->response.phase = ES_RESPONSE_UNCLEAR;
			break;
		} else {
			at += es_reply_scan(&t->response, chunk, len);
		}
	}
	t->response_seq = seq + (end - off);
	return es_track_answered(t, end - off - known);
}

/* Read what the server says, for the connection's track; also what is kept back, since it comes again. */
static void es_reply_track(struct es_node *node, const struct sk_buff *skb, const struct sock *sk,
			   const struct es_packet *client, u64 flow_hash, const struct es_segment *seg,
			   u32 off)
{
	struct es_note_bucket *bucket = es_tracks_lock(node->tracks, flow_hash);
	struct es_note *note = es_track_create(node, bucket, sk, flow_hash, client);

	if (note && !note->track.pin && es_reply_read(node, skb, &note->track, seg->seq, off, off + seg->len))
		es_reply_measured(node, &note->track);
	es_tracks_unlock(bucket);
}

static unsigned int es_reply_segment(struct es_node *node, const struct es_version *version,
				     struct sk_buff *skb)
{
	struct es_packet pkt = {.saddr = ip_hdr(skb)->saddr, .daddr = ip_hdr(skb)->daddr}, client;
	const struct es_config *cfg = &version->config;
	const struct sock *sk = skb->sk;
	struct es_segment seg;
	struct es_flow flow;
	int service, inspect;
	u64 flow_hash;

	/* Not tot_len: it says nothing of a packet that the network card will cut. */
	if (es_packet_tcp(skb, &pkt, skb->len, &seg))
		return NF_ACCEPT;
	service = es_service_find(version, pkt.saddr, pkt.sport);
	if (service < 0)
		return NF_ACCEPT;
	inspect = cfg->service[service].inspect;
	if (!cfg->leased && inspect != ES_INSPECT_EVERY)
		return NF_ACCEPT;
	/* The client's view of the flow. */
	client = (struct es_packet){
		.saddr = pkt.daddr,
		.daddr = pkt.saddr,
		.sport = pkt.dport,
		.dport = pkt.sport,
	};
	es_packet_flow(&client, &flow);
	flow_hash = es_flow_hash(&cfg->ring_key, &flow);
	if (seg.len && inspect == ES_INSPECT_EVERY && es_socket_is_tcp(sk))
		es_reply_track(node, skb, sk, &client, flow_hash, &seg,
			       (u32)(sizeof(struct iphdr) + sizeof(struct tcphdr)) + pkt.options_len);
	if (es_is_silent(node) && es_socket_is_tcp(sk) && es_socket_is_unproven(sk)) {
		es_count(node, ES_COUNT_reply_silent);
		return NF_DROP;
	}
	if ((seg.flags & ES_TCP_RST) && inspect == ES_INSPECT_EVERY &&
	    es_left_lately(node->tracks, flow_hash, ktime_get_coarse_ns())) {
		es_count(node, ES_COUNT_reply_stray_rst);
		return NF_DROP;
	}
	return NF_ACCEPT;
}

unsigned int es_reply_hook(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct es_node *node = priv;
	const struct es_version *version = es_version_get(node);

	if (!version || ip_hdr(skb)->protocol != IPPROTO_TCP || ip_hdr(skb)->ihl != 5 ||
	    state->out->ifindex != (int)version->config.public_ifindex)
		return NF_ACCEPT;
	return es_reply_segment(node, version, skb);
}
