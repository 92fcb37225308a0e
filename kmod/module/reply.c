// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads this node's servers' responses on the way out. The counterpart of es_reply and kmod/bpf/reply.h.
 */
#include <net/dst.h>
#include <net/ip.h>
#include <net/neighbour.h>

#include "answer.h"
#include "download.h"
#include "kept.h"
#include "kmod/core/reply.h"
#include "kmod/core/response.h"
#include "other.h"
#include "packet6.h"
#include "reply.h"
#include "settled.h"
#include "view.h"

#define ES_REPLY_CHUNK 256

/* Tell the daemon how long a response was, and how long it took. It looks by itself; nobody is woken. */
static void es_reply_measured(struct es_node *node, const struct es_track *t)
{
	struct es_ringbuf *ring = rcu_dereference(node->queue[ES_RINGBUF_LENGTHS]);
	struct es_response_entry *entry = ring ? es_ringbuf_reserve(ring, sizeof(*entry)) : NULL;

	if (!entry) {
		es_count(node, ES_COUNT_response_unmeasured);
		return;
	}
	es_reply_entry(t, ktime_get_ns(), entry);
	es_ringbuf_commit(entry, 0);
}

/* Read @bytes up to the end of the response; returns how many bytes that was. */
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
 * Read the payload of a segment, whose first byte is at @off in the packet, from byte @from on. Returns 1 if
 * it completes a response that is to be measured.
 */
static int es_reply_scan_segment(const struct sk_buff *skb, struct es_track *t, const struct es_segment *seg,
				 u32 off, u32 from)
{
	u32 end = off + seg->len, at;
	u8 chunk[ES_REPLY_CHUNK];

	for (at = off + from; at < end;) {
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
	return es_reply_read(t, seg, from);
}

/*
 * Read the server's bytes for the connection's track, even those that are kept back, since they come again;
 * but for a ceded one's without a lease, whose track stays as it was told. Returns 1 if they must not leave
 * at all, because the connection is just leaving the server.
 */
static int es_reply_track(struct es_node *node, const struct es_config *cfg, u32 service,
			  const struct sk_buff *skb, const struct sock *sk, const struct es_packet *client,
			  u64 flow_hash, const struct es_segment *seg, u32 off)
{
	struct es_note_bucket *bucket;
	struct es_note *note;
	int complete = 0, is_held, begins;
	u8 pin = ES_PIN_none;
	struct es_track *t;
	u32 from;

	smp_mb(); /* behind what the server did to its socket, see es_track_may_leave() */
	bucket = es_tracks_lock(node->tracks, flow_hash);
	if (seg->len)
		note = es_track_create(node, bucket, sk, flow_hash, client);
	else
		note = es_tracks_find(bucket, flow_hash, sk);
	is_held = note && es_track_holds(&note->track, seg);
	t = note && !note->track.pin ? &note->track : NULL;
	if (t && es_is_silent(node) && es_note_is_ceded(node, cfg, service, note, sk))
		t = NULL;
	if (t && seg->len && !is_held) {
		complete = es_track_skip(t, seg->seq);
		from = es_reply_unread(t, seg, READ_ONCE(tcp_sk(sk)->snd_una), &pin);
		es_track_pin(node, t, pin);
		if (from < seg->len) {
			begins = es_download_begins(t);
			complete |= es_reply_scan_segment(skb, t, seg, off, from);
			if (begins && es_download_is_long(t))
				es_download_answered(node, skb, t, client, flow_hash,
						     es_ns_to_ms(ktime_get_ns()) + tcp_sk(sk)->tsoffset,
						     off + from);
		}
		complete |= es_track_skip(t, READ_ONCE(tcp_sk(sk)->snd_nxt));
	}
	if (complete)
		es_reply_measured(node, t);
	es_tracks_unlock(bucket);
	return is_held;
}

/*
 * Would it wait for the MAC of its next hop? The kernel keeps it behind this hook then, for seconds, and it
 * would leave whatever the lease says by that time. Has the kernel ask for the MAC.
 */
static int es_reply_waits(struct sk_buff *skb)
{
	struct neighbour *neigh = skb_dst(skb) ? dst_neigh_lookup_skb(skb_dst(skb), skb) : NULL;
	int waits;

	if (IS_ERR_OR_NULL(neigh))
		return 0;
	waits = !(READ_ONCE(neigh->nud_state) & NUD_VALID);
	if (waits)
		waits = neigh_event_send(neigh, NULL) && !(READ_ONCE(neigh->nud_state) & NUD_VALID);
	neigh_release(neigh);
	return waits;
}

/* Makes the view for es_decide_reply(). Returns an enum es_reply_action. */
static u32 es_reply_fate(struct es_node *node, const struct es_config *cfg, u32 service, struct sk_buff *skb,
			 const struct sock *sk, u64 flow_hash, const struct es_segment *seg)
{
	struct es_reply_view view = {
		.now_ns = ktime_get_coarse_ns(),
		.lease_ns = READ_ONCE(node->state->lease_ns),
		.firm_ns = READ_ONCE(node->state->firm_ns),
		.len = seg->len,
		.flags = seg->flags,
	};
	struct es_reply_verdict verdict;
	struct es_note_bucket *bucket;
	struct es_note *note;

	if (!view.lease_ns || !es_socket_is_tcp(sk) ||
	    (!es_socket_is_unproven(sk) && !es_socket_is_ceded(node, cfg, service, flow_hash, sk)))
		return ES_REPLY_LEAVES;
	/* To the stack it is lost, and comes again. */
	if (!es_lease_is_over(view.lease_ns, view.now_ns) && es_reply_waits(skb)) {
		es_count(node, ES_COUNT_reply_unsure);
		return ES_REPLY_STAYS;
	}
	if (!es_reply_needs_proof(&view))
		return ES_REPLY_LEAVES;
	view.unproven = 1;
	bucket = es_tracks_lock(node->tracks, flow_hash);
	note = es_tracks_find(bucket, flow_hash, sk);
	view.acknowledged = note && note->is_acknowledged &&
			    !es_track_goes_on(&note->track, READ_ONCE(tcp_sk(sk)->snd_una));
	es_decide_reply(&view, &verdict);
	if (note && verdict.acknowledges)
		note->is_acknowledged = 1;
	es_tracks_unlock(bucket);
	es_count(node, verdict.counter);
	return verdict.action;
}

/* Send the client es_reply_resets() in place of this packet; to the stack, the packet is lost. */
static void es_reply_tell(struct es_node *node, const struct sk_buff *skb, const struct es_packet *pkt,
			  u32 snd_una, u32 snd_nxt)
{
	u32 seq[2], count = es_reply_resets(snd_una, snd_nxt, seq);
	struct es_answer rst;

	es_answer_reset(pkt, 0, &rst);
	for (u32 i = 0; i < count; i++) {
		rst.seq = seq[i];
		es_count(node, es_answer_route(node->net, skb, &rst) ? ES_COUNT_answer_failed
								     : ES_COUNT_reply_told);
	}
}

/*
 * Does the stack refuse a packet that was to become a socket? Then address translation has sent it to another
 * port, where nobody waits. The client is told nothing: another node serves it, as if the packet had been
 * dropped. A packet that a packet filter rejects has no socket at all, and is refused as the filter's rule
 * wants.
 */
static int es_reply_is_astray(struct es_node *node, const struct sock *sk, u64 flow_hash)
{
	return sk && !es_socket_is_tcp(sk) && es_settle_reset(node, flow_hash);
}

/* The stack ends a connection: from now on this node repeats the RST when the client sends more. */
static void es_reply_ended(struct es_node *node, const struct sock *sk, u64 flow_hash, u32 seq)
{
	int is_its_own = es_socket_is_tcp(sk);
	u32 first = is_its_own ? READ_ONCE(tcp_sk(sk)->snd_una) : seq;
	u32 protocol = sk_fullsock(sk) ? sk->sk_protocol : 0;
	u64 now_ns = ktime_get_coarse_ns();

	es_reset_note(es_reset_slot(node, flow_hash), flow_hash, first,
		      is_its_own ? READ_ONCE(tcp_sk(sk)->snd_nxt) - first : es_reset_under_way(protocol),
		      es_ns_to_ms(now_ns));
	WRITE_ONCE(node->state->reset_ns, now_ns);
}

/* @sk: the socket that sends the segment, NULL if there is none */
static unsigned int es_reply_segment(struct es_node *node, const struct es_version *version,
				     struct sk_buff *skb, int is_v6, const struct sock *sk)
{
	const struct es_config *cfg = &version->config;
	struct es_packet pkt = {}, client;
	struct es_segment seg;
	struct es_flow flow;
	int service, inspect;
	u64 flow_hash;

	/* Not the header's length: it says nothing of a packet that the network card will cut. */
	if (es_packet_headers(skb, is_v6, &pkt) || es_packet_tcp(skb, &pkt, skb->len, &seg))
		return NF_ACCEPT;
	/* The client's view of the flow. */
	es_packet_turn(&pkt, &client);
	service = es_service_of(version, &client);
	if (service < 0)
		return NF_ACCEPT;
	inspect = cfg->service[service].inspect;
	if (!cfg->leased && inspect != ES_INSPECT_EVERY && !(seg.flags & ES_TCP_RST))
		return NF_ACCEPT;
	es_packet_flow(&client, &flow);
	flow_hash = es_flow_hash(&cfg->ring_key, cfg->ring_seed, &flow);
	if (inspect == ES_INSPECT_EVERY && !es_reply_is_bare(seg.len, seg.flags) && es_socket_is_tcp(sk) &&
	    es_reply_track(node, cfg, (u32)service, skb, sk, &client, flow_hash, &seg,
			   es_packet_ip_len(&pkt) + (u32)sizeof(struct tcphdr) + pkt.options_len)) {
		es_count(node, ES_COUNT_reply_leaving);
		return NF_DROP;
	}
	switch (es_reply_fate(node, cfg, (u32)service, skb, sk, flow_hash, &seg)) {
	case ES_REPLY_STAYS:
		return NF_DROP;
	case ES_REPLY_TELLS:
		es_reply_tell(node, skb, &pkt, READ_ONCE(tcp_sk(sk)->snd_una),
			      READ_ONCE(tcp_sk(sk)->snd_nxt));
		return NF_DROP;
	default:
		/* Not this module's own segments: those have no socket. */
		if (!sk || !(seg.flags & ES_TCP_RST))
			return NF_ACCEPT;
		if (inspect != ES_INSPECT_NEVER && es_reply_is_astray(node, sk, flow_hash)) {
			es_count(node, ES_COUNT_reply_astray);
			return NF_DROP;
		}
		es_reply_ended(node, sk, flow_hash, seg.seq);
		return NF_ACCEPT;
	}
}

unsigned int es_reply_hook(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct es_node *node = priv;
	const struct es_version *version = es_version_get(node);

	if (!version || state->out->ifindex != (int)version->config.public_ifindex)
		return NF_ACCEPT;
	/*
	 * A RST that the stack sends by IPv6 in the name of no connection has no owner: its skb->sk is NULL.
	 */
	return es_reply_segment(node, version, skb, state->pf == NFPROTO_IPV6, skb->sk ? skb->sk : state->sk);
}
