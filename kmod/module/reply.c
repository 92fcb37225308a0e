// SPDX-License-Identifier: GPL-2.0-only
/*
 * What our servers answer, read on the way out. The counterpart of es_reply and kmod/bpf/reply.h.
 */
#include <net/ip.h>

#include "answer.h"
#include "kmod/core/response.h"
#include "other.h"
#include "reply.h"
#include "view.h"

#define ES_REPLY_CHUNK 256

/* How long a client that waits in vain is not told yet: kmod/bpf/reply.h. */
#define ES_REPLY_TELL_NS 1000000000ULL

enum es_reply_fate { ES_REPLY_LEAVES, ES_REPLY_STAYS, ES_REPLY_TELLS };

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
 * Payload bytes [@off, @end) of the packet, the first of which is @seq and not behind those that were read.
 * Returns 1 if they complete a response that is to be measured.
 */
static int es_reply_read(const struct sk_buff *skb, struct es_track *t, u32 seq, u32 off, u32 end)
{
	u32 known = t->response_seq - seq, at;
	u8 chunk[ES_REPLY_CHUNK];

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
	struct es_track *t = note && !note->track.pin ? &note->track : NULL;
	int complete = 0;

	if (t) {
		complete = es_track_skip(t, seg->seq);
		if (!es_seq_before(t->response_seq, seg->seq))
			complete |= es_reply_read(skb, t, seg->seq, off, off + seg->len);
		else if (es_seq_before(t->response_seq, READ_ONCE(tcp_sk(sk)->snd_una)))
			es_track_pin(node, t, ES_PIN_response_unclear); /* acknowledged, so gone */
		complete |= es_track_skip(t, READ_ONCE(tcp_sk(sk)->snd_nxt));
	}
	if (complete)
		es_reply_measured(node, t);
	es_tracks_unlock(bucket);
}

/* An acknowledgement and nothing else. */
static int es_reply_is_bare(const struct es_segment *seg)
{
	return !seg->len && !(seg->flags & (ES_TCP_SYN | ES_TCP_FIN | ES_TCP_RST));
}

/*
 * What of a connection that is not proven may leave: everything while the lease holds, and nothing when it is
 * over. In between, what keeps the client from repeating its request does not leave any more; and who was
 * kept from it is told.
 */
static enum es_reply_fate es_reply_fate(struct es_node *node, const struct sock *sk, u64 flow_hash,
					const struct es_segment *seg)
{
	const struct es_state *state = node->state;
	u64 lease_ns = READ_ONCE(state->lease_ns);
	u64 now_ns = ktime_get_coarse_ns();
	struct es_note_bucket *bucket;
	struct es_note *note;
	int silent, waits;

	if (!lease_ns || !es_socket_is_tcp(sk))
		return ES_REPLY_LEAVES;
	silent = es_lease_is_over(node, now_ns);
	if ((!silent && !es_reply_is_bare(seg)) || !es_socket_is_unproven(sk))
		return ES_REPLY_LEAVES;
	if (!silent && (s64)(now_ns - READ_ONCE(state->firm_ns)) >= 0) {
		es_count(node, ES_COUNT_reply_unsure);
		return ES_REPLY_STAYS;
	}
	bucket = es_tracks_lock(node->tracks, flow_hash);
	note = es_tracks_find(bucket, flow_hash, sk);
	if (note && !silent)
		note->is_acknowledged = 1;
	waits = note && note->is_acknowledged;
	es_tracks_unlock(bucket);
	if (!silent)
		return ES_REPLY_LEAVES;
	if (waits && ((seg->flags & ES_TCP_RST) || now_ns - lease_ns >= ES_REPLY_TELL_NS))
		return ES_REPLY_TELLS;
	es_count(node, ES_COUNT_reply_silent);
	return ES_REPLY_STAYS;
}

/* Send the client RSTs in place of this packet; for the stack, that was lost. See kmod/bpf/reply.h. */
static void es_reply_tell(struct es_node *node, const struct sk_buff *skb, const struct es_packet *pkt,
			  u32 snd_una, u32 snd_nxt)
{
	struct es_answer rst = {
		.saddr = pkt->saddr,
		.daddr = pkt->daddr,
		.sport = pkt->sport,
		.dport = pkt->dport,
		.seq = snd_una,
		.flags = ES_TCP_RST,
	};

	es_count(node, es_answer_route(node->net, skb, &rst) ? ES_COUNT_answer_failed : ES_COUNT_reply_told);
	if (snd_nxt == snd_una)
		return;
	rst.seq = snd_nxt;
	es_count(node, es_answer_route(node->net, skb, &rst) ? ES_COUNT_answer_failed : ES_COUNT_reply_told);
}

/* The stack ends a connection: from now on this node says so whenever it is asked. */
static void es_reply_ended(struct es_node *node, const struct sock *sk, u64 flow_hash, u32 seq)
{
	int is_its_own = es_socket_is_tcp(sk);
	u32 first = is_its_own ? READ_ONCE(tcp_sk(sk)->snd_una) : seq;
	u64 now_ns = ktime_get_coarse_ns();

	es_reset_note(es_reset_slot(node, flow_hash), flow_hash, first,
		      is_its_own ? READ_ONCE(tcp_sk(sk)->snd_nxt) - first : ES_RESET_UNDER_WAY,
		      (u32)div_u64(now_ns, NSEC_PER_MSEC));
	WRITE_ONCE(node->state->reset_ns, now_ns);
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
	if (!cfg->leased && inspect != ES_INSPECT_EVERY && !(seg.flags & ES_TCP_RST))
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
	switch (es_reply_fate(node, sk, flow_hash, &seg)) {
	case ES_REPLY_STAYS:
		return NF_DROP;
	case ES_REPLY_TELLS:
		es_reply_tell(node, skb, &pkt, READ_ONCE(tcp_sk(sk)->snd_una),
			      READ_ONCE(tcp_sk(sk)->snd_nxt));
		return NF_DROP;
	default:
		/* Not ours in the name of the stack: those have no socket. */
		if (sk && (seg.flags & ES_TCP_RST))
			es_reply_ended(node, sk, flow_hash, seg.seq);
		return NF_ACCEPT;
	}
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
