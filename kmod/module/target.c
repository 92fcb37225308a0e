// SPDX-License-Identifier: GPL-2.0-only
/*
 * Acts on handover messages about requests: rebuild, deliver, refuse, and for this node's own later requests
 * stay and end. The counterpart of es_cluster and kmod/bpf/target.h.
 */
#include <linux/udp.h>
#include <net/ipv6.h>

#include "answer.h"
#include "download.h"
#include "kept.h"
#include "program.h"
#include "message.h"
#include "other.h"
#include "rebuild.h"
#include "settled.h"
#include "target.h"
#include "view.h"
#include "kmod/core/headers.h"
#include "kmod/core/plan.h"
#include "kmod/core/serving.h"

/*
 * struct es_received - a handover message that is authentic and fresh, with its plan, and @rc, the hook's
 * verdict
 */
struct es_received {
	struct es_node *node;
	const struct es_version *version;
	struct sk_buff *skb;
	struct es_handover h;
	struct es_handover_view view;
	struct es_handover_plan plan;
	struct es_packet pkt;
	struct es_socket_found found;
	u64 flow_hash;
	u32 old_rcv_nxt;
	u32 service;
	unsigned int rc;
};

/* Fill in the view's facts about the socket of the packet in a message. */
static void es_handover_view_socket(struct es_received *in)
{
	struct es_handover_view *v = &in->view;

	es_socket_lookup(in->node->net, in->skb, &in->pkt, &in->found);
	v->socket = in->found.kind;
	in->old_rcv_nxt = in->found.old_rcv_nxt;
	if (!in->found.sk) {
		es_socket_lookup_listener(in->node->net, in->skb, &in->pkt, &in->found);
		v->listening = in->found.listener && es_listener_is_usable(in->found.listener) &&
			       !es_serving_refuses(in->node->state, in->service, in->pkt.is_v6,
						   ktime_get_coarse_ns());
		if (v->listening)
			v->accept_full = sk_acceptq_is_full(in->found.listener);
	} else if (v->socket == ES_SOCKET_ESTABLISHED && es_socket_is_tcp(in->found.sk)) {
		es_handover_view_received(v, READ_ONCE(tcp_sk(in->found.sk)->rcv_nxt));
		es_handover_view_window(v, &in->h,
					READ_ONCE(tcp_sk(in->found.sk)->rcv_wup) +
						READ_ONCE(tcp_sk(in->found.sk)->rcv_wnd));
		/* Whether a FIN counts as a received byte differs between kernels. */
		v->first_seq = es_socket_first_seq(in->found.sk) - 1;
		in->old_rcv_nxt = v->rcv_nxt;
		v->challenged = (u8)es_challenge_look(
			es_challenge_slot(in->node, in->flow_hash), in->flow_hash,
			READ_ONCE(tcp_sk(in->found.sk)->rcv_tstamp), es_ns_to_ms(ktime_get_ns()));
	}
}

/* Fill in the view for ES_HANDOVER_END and _GONE: may the connection leave, or is it leaving already? */
static void es_leave_begin(struct es_received *in)
{
	struct es_note_bucket *bucket;
	struct es_track_socket socket;
	struct es_note *note;

	/* A packet that is prepared becomes a RST without fail. */
	if (in->view.kind == ES_HANDOVER_END &&
	    (!es_socket_is_tcp(in->found.sk) || es_answer_prepare(in->skb)))
		return;
	bucket = es_tracks_lock(in->node->tracks, in->flow_hash);
	note = es_tracks_find(bucket, in->flow_hash, in->found.sk);
	if (note && es_leave_begins(&in->view, &note->track)) {
		es_socket_read(in->found.sk, &socket);
		es_leave_looked(&in->view, &note->track, &socket);
	}
	es_tracks_unlock(bucket);
}

/* The CPU that has made the track ES_TRACK_LEAVING settles it. */
static void es_leave_settle(struct es_received *in, enum es_track_state state)
{
	struct es_note_bucket *bucket = es_tracks_lock(in->node->tracks, in->flow_hash);
	struct es_note *note = es_tracks_find(bucket, in->flow_hash, in->found.sk);

	if (note)
		WRITE_ONCE(note->track.state, (u8)state);
	es_tracks_unlock(bucket);
}

/* The steps of a plan (kmod/core/plan.h). Each returns 0, or -errno if it has failed. */
static int es_handover_settle(struct es_received *in)
{
	struct es_settled_answer settled = es_settle(in->node, &in->version->config, in->flow_hash,
						     in->view.seg.seq, in->plan.settle, in->h.attempt);

	/* As es_plan_makes() has it. */
	return es_handover_is_settled(in->plan.settle, &settled, 1, &in->h) ? 0 : -EEXIST;
}

static int es_handover_stay(struct es_received *in)
{
	struct es_note_bucket *bucket = es_tracks_lock(in->node->tracks, in->flow_hash);
	struct es_note *note = es_tracks_find(bucket, in->flow_hash, in->found.sk);
	struct es_track *t = note ? &note->track : NULL;
	int rc = t && es_track_is_leaving(t) ? -EBUSY : 0;

	/* Otherwise the request is a repetition: the socket has it already. */
	if (t && es_track_has_queued(t, in->view.seg.seq))
		es_track_pin(in->node, t, es_track_stay(t, &in->view.seg, &in->h, ktime_get_ns()));
	es_tracks_unlock(bucket);
	return rc;
}

static int es_handover_retry(struct es_received *in)
{
	int rc = es_message_send(in->node, &in->version->config, in->skb, &in->h, ES_HANDOVER_NACK,
				 ES_NACK_RETRY);

	if (rc)
		es_count(in->node, ES_COUNT_answer_failed);
	return rc;
}

static int es_handover_first(struct es_received *in)
{
	es_first_note(in->node, in->flow_hash, in->view.seg.seq, ktime_get_coarse_ns());
	return 0;
}

static int es_handover_open(struct es_received *in)
{
	in->pkt.off = 0;
	return es_message_open(in->node, in->skb, &in->pkt);
}

static int es_handover_probe(struct es_received *in)
{
	int rc = es_answer_put_next(in->skb, &in->pkt, in->found.sk);

	if (!rc)
		in->h.packet_len = htons((u16)in->skb->len);
	return rc;
}

static int es_handover_ask(struct es_received *in)
{
	es_challenge_note(es_challenge_slot(in->node, in->flow_hash), in->flow_hash, in->view.challenged,
			  (u32)jiffies, es_ns_to_ms(ktime_get_ns()));
	return 0;
}

static int es_handover_note(struct es_received *in)
{
	struct es_track t = {};

	es_track_begin(&t, in->view.seg.ack, &in->h, ktime_get_ns());
	return es_rebuild_note(in->node, &in->pkt, &in->view.seg, in->flow_hash, in->h.source, &t);
}

/* Tell the inspector; the packet goes along. */
static int es_handover_tell(struct es_received *in)
{
	struct es_record record = {
		.flow_hash = in->flow_hash,
		.len = ntohs(in->h.packet_len),
		.kind = in->plan.record,
		.service = in->h.service,
		.flow = ES_FLOW_HERE,
	};

	return es_queue_push(in->node, in->version->config.workers, in->skb, &record);
}

static int es_handover_leave(struct es_received *in)
{
	es_leave_settle(in, ES_TRACK_ENDING);
	return 0;
}

static int es_handover_deliver(struct es_received *in)
{
	if (in->plan.settle != ES_SETTLED_MAKE) {
		in->rc = es_socket_deliver(in->skb, &in->found);
		return 0;
	}
	es_rebuild_split(in->skb, &in->pkt, &in->view.seg);
	in->rc = NF_ACCEPT;
	return 0;
}

static int es_handover_end(struct es_received *in)
{
	if (!es_answer_end_old(in->skb, &in->pkt, in->old_rcv_nxt))
		in->rc = NF_ACCEPT;
	return 0;
}

static int es_handover_answer(struct es_received *in)
{
	in->rc = es_message_answer(in->node, &in->version->config, in->skb, &in->h, ES_HANDOVER_NACK,
				   in->plan.reason);
	return 0;
}

static void es_handover_undo(struct es_received *in, u32 step)
{
	u32 undo = es_handover_failed(&in->plan, step);

	if (undo & ES_HANDOVER_UNDO_MADE)
		es_settle(in->node, &in->version->config, in->flow_hash, in->view.seg.seq, in->plan.undo, 0);
	if (undo & ES_HANDOVER_UNDO_ASKED)
		es_challenge_forget(es_challenge_slot(in->node, in->flow_hash));
	if (undo & ES_HANDOVER_UNDO_LEFT)
		es_leave_settle(in, ES_TRACK_QUEUED);
}

#define ES_HANDOVER_TAKE_ALL(name)                                                                           \
	if ((in->plan.steps & ES_HANDOVER_STEP(name)) && es_handover_##name(in))                             \
		return ES_HANDOVER_STEP(name);
#define ES_HANDOVER_TAKE_PACKET ES_HANDOVER_TAKE_ALL
#define ES_HANDOVER_TAKE_HANDS(name)
#define ES_HANDOVER_TAKE(name, ways) ES_HANDOVER_TAKE_##ways(name)

/* Take the steps of the plan. Returns the one that has failed, or 0. */
static u32 es_handover_carry_out(struct es_received *in)
{
	ES_HANDOVER_STEPS(ES_HANDOVER_TAKE)
	return 0;
}

/* Does this node have the connection of a segment that no node takes (kmod/core/strays.h)? Counts. */
static enum es_nack_reason es_stray_look(struct es_received *in)
{
	const struct es_config *cfg = &in->version->config;
	struct es_handover_view *v = &in->view;
	struct es_settled_answer settled;
	enum es_nack_reason reason;
	struct es_flow flow;
	u32 counter;

	es_packet_flow(&in->pkt, &flow);
	in->flow_hash = es_flow_hash(&cfg->ring_key, cfg->ring_seed, &flow);
	settled = es_settle(in->node, cfg, in->flow_hash, v->seg.seq, ES_SETTLED_LOOK, 0);
	es_socket_lookup(in->node->net, in->skb, &in->pkt, &in->found);
	v->socket = in->found.kind;
	v->ceded = v->socket == ES_SOCKET_ESTABLISHED && es_socket_is_tcp(in->found.sk) &&
		   es_socket_cede(in->node, cfg, in->service, in->flow_hash, in->found.sk);
	es_socket_put(&in->found);
	v->on_its_way =
		(u8)es_stray_is_on_its_way(es_decision_set_of(in->node, in->flow_hash), in->flow_hash,
					   es_node_ring_answers(&in->version->ring, in->flow_hash),
					   v->seg.seq, v->seg.ack, es_ns_to_ms(ktime_get_coarse_ns()));
	reason = es_decide_stray(v, &settled, &counter);
	es_count(in->node, counter);
	return reason;
}

/* A message that asks about many strays; it is linear. Returns the hook's verdict. */
static unsigned int es_strays_answer(struct es_received *in)
{
	const u8 *packet = in->skb->data + es_message_packet_off(in->skb);
	u32 count =
		es_strays_begin(packet, ntohs(in->h.packet_len), in->h.kind == ES_HANDOVER_STRAYS6, &in->pkt);
	u64 here = 0;
	int service;

	if (!count)
		goto malformed;
	service = es_service_of(in->version, &in->pkt);
	if (service < 0) {
		es_count(in->node, ES_COUNT_handover_wrong_target);
		return NF_DROP;
	}
	in->service = (u32)service;
	for (u32 i = 0; i < count; i++) {
		if (es_strays_question(packet, i, &in->pkt, &in->view.seg))
			goto malformed;
		if (es_stray_look(in) != ES_NACK_NOT_HERE)
			here |= 1ULL << i;
	}
	es_message_strays_put(&in->h, here);
	return es_message_answer(in->node, &in->version->config, in->skb, &in->h, ES_HANDOVER_NACK,
				 ES_NACK_STRAYS);

malformed:
	es_count(in->node, ES_COUNT_handover_malformed);
	return NF_DROP;
}

/*
 * May another node be given a request that is to stay? A node that has left in order takes nothing from
 * others, but goes on with what it has.
 */
static u8 es_handover_is_ceded(const struct es_received *in)
{
	return in->view.socket == ES_SOCKET_ESTABLISHED && es_socket_is_tcp(in->found.sk) &&
	       es_lease_is_over(READ_ONCE(in->node->state->lease_ns), ktime_get_ns()) &&
	       es_socket_is_ceded(in->node, &in->version->config, in->service, in->flow_hash, in->found.sk);
}

/* The packet in the message: read it, look for its socket, decide. */
static unsigned int es_handover_received(struct es_received *in)
{
	struct es_handover_view *v = &in->view;
	struct es_settled_answer settled;
	struct es_verdict verdict = {};
	struct es_flow flow;
	int service;
	u32 failed;

	if (es_message_packet(in->skb, &in->h, &in->pkt, &v->seg) ||
	    !es_handover_is_about(in->h.kind, &v->seg)) {
		es_count(in->node, ES_COUNT_handover_malformed);
		return NF_DROP;
	}
	service = es_service_of(in->version, &in->pkt);
	if (service < 0) {
		es_count(in->node, ES_COUNT_handover_wrong_target);
		return NF_DROP;
	}
	in->service = (u32)service;
	if (in->h.kind == ES_HANDOVER_STRAY)
		return es_message_answer(in->node, &in->version->config, in->skb, &in->h, ES_HANDOVER_NACK,
					 es_stray_look(in));
	es_packet_flow(&in->pkt, &flow);
	in->flow_hash = es_flow_hash(&in->version->config.ring_key, in->version->config.ring_seed, &flow);
	settled = es_settle(in->node, &in->version->config, in->flow_hash, v->seg.seq, ES_SETTLED_LOOK, 0);
	if (in->h.kind == ES_HANDOVER_FATE) {
		es_count(in->node, ES_COUNT_fate_asked);
		return es_message_answer(in->node, &in->version->config, in->skb, &in->h, ES_HANDOVER_NACK,
					 es_fate_reason(&settled, &in->pkt, 0));
	}
	v->kind = in->h.kind;
	v->silent = (u8)es_handover_is_silent(in->node);
	v->stale = (u8)es_handover_is_stale(&in->version->config, &in->version->ring.table, &in->h,
					    in->flow_hash);
	es_handover_view_settled(v, &in->h, &in->pkt, &settled);
	es_handover_view_socket(in);
	if (v->kind == ES_HANDOVER_END || v->kind == ES_HANDOVER_GONE)
		es_leave_begin(in);
	v->ceded = v->kind == ES_HANDOVER_STAY && es_handover_is_ceded(in);
	if ((in->h.request_flags & ES_REQUEST_F_TELL) &&
	    (v->kind == ES_HANDOVER_REQUEST || v->kind == ES_HANDOVER_STAY))
		es_download_asked(in->node, in->skb, &in->h, &in->pkt, in->flow_hash, v->seg.len);
	es_decide_handover(v, &verdict);
	es_plan_handover(v, &verdict, ES_WAY_PACKET, &in->plan);
	failed = es_handover_carry_out(in);
	if (failed)
		es_handover_undo(in, failed);
	es_count(in->node, in->plan.counter);
	es_socket_put(&in->found);
	return in->rc;
}

/* Carry out what es_decide_fresh() says of a message. Returns the hook's verdict. */
static unsigned int es_cluster_carry_out(struct es_received *in, int is_to_port)
{
	struct es_message_verdict verdict;

	es_decide_fresh(&in->h, is_to_port, in->version->config.self, &verdict);
	es_count(in->node, verdict.counter);
	switch (verdict.action) {
	case ES_MESSAGE_PASS:
		return NF_ACCEPT;
	case ES_MESSAGE_PROGRAM:
		return es_program_message(in->node, in->version, in->skb, &in->h);
	case ES_MESSAGE_STRAYS:
		return es_strays_answer(in);
	case ES_MESSAGE_SEGMENT:
		return es_handover_received(in);
	default:
		return NF_DROP;
	}
}

/*
 * Reads the IP header of a datagram to this node's cluster address. Returns the offset of its UDP header, or
 * 0 if it is no such datagram, or a later part of one.
 */
static u32 es_cluster_read4(const struct es_received *in, struct es_message_envelope *ret)
{
	const struct iphdr *ip;
	struct iphdr buf;

	ip = skb_header_pointer(in->skb, 0, sizeof(buf), &buf);
	if (!ip || ip->protocol != IPPROTO_UDP || ip->ihl != 5 ||
	    !es_addr_is_this_v4(&in->version->config.self_address, ip->daddr))
		return 0;
	ret->ip_len = (u32)ntohs(ip->tot_len) - (u32)sizeof(*ip);
	ret->is_partial = (ip->frag_off & htons(IP_MF | IP_OFFSET)) != 0;
	return sizeof(*ip);
}

static u32 es_cluster_read6(const struct es_received *in, struct es_message_envelope *ret)
{
	const struct ipv6hdr *ip;
	const struct frag_hdr *part;
	struct frag_hdr part_buf;
	struct ipv6hdr buf;
	u32 off = sizeof(*ip);
	u8 next;

	ip = skb_header_pointer(in->skb, 0, sizeof(buf), &buf);
	if (!ip || !es_addr_equal((const struct es_addr *)&ip->daddr, &in->version->config.self_address))
		return 0;
	next = ip->nexthdr;
	ret->ip_len = ntohs(ip->payload_len);
	ret->is_partial = next == ES_HEADER_FRAGMENT;
	if (ret->is_partial) {
		part = skb_header_pointer(in->skb, (int)off, sizeof(part_buf), &part_buf);
		if (!part || (part->frag_off & htons(IP6_OFFSET)))
			return 0;
		next = part->nexthdr;
		off += sizeof(*part);
	}
	return next == ES_HEADER_UDP ? off : 0;
}

/*
 * Is a datagram to or from the handover port a message, and one that this node wants? @envelope: as the IP
 * header has filled it in
 */
static unsigned int es_cluster_message(struct es_received *in, struct es_message_envelope *envelope,
				       const struct udphdr *udp)
{
	const struct es_config *cfg = &in->version->config;
	struct es_message_verdict verdict;
	u32 counter;

	envelope->udp_len = ntohs(udp->len);
	envelope->is_short =
		skb_copy_bits(in->skb, (int)es_message_header_off(in->skb), &in->h, sizeof(in->h)) != 0;
	envelope->is_partial |= skb_is_gso(in->skb);
	es_decide_envelope(envelope, &in->h, cfg->self, &verdict);
	if (verdict.action == ES_MESSAGE_PASS)
		return NF_ACCEPT;
	if (verdict.action == ES_MESSAGE_REFUSE) {
		es_count(in->node, verdict.counter);
		return NF_DROP;
	}
	counter = es_message_check(in->node, cfg, in->skb, &in->h);
	es_count(in->node, counter);
	if (counter != ES_COUNT_handover_received)
		return NF_DROP;
	return es_cluster_carry_out(in, udp->dest == cfg->handover_port);
}

unsigned int es_cluster_hook(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct es_received in = {.node = priv, .skb = skb, .rc = NF_DROP};
	struct es_message_envelope envelope = {};
	struct udphdr udp_buf, udp;
	const void *p;
	u32 off = 0;

	in.version = es_version_get(in.node);
	if (!in.version || es_packet_is_of_vlan(skb))
		return NF_ACCEPT;
	if (skb->protocol == htons(ETH_P_IP))
		off = es_cluster_read4(&in, &envelope);
	else if (IS_ENABLED(CONFIG_IPV6) && es_message_is_v6(skb))
		off = es_cluster_read6(&in, &envelope);
	p = off ? skb_header_pointer(skb, (int)off, sizeof(udp_buf), &udp_buf) : NULL;
	if (!p)
		return NF_ACCEPT;
	udp = *(const struct udphdr *)p;
	/* NACKs come from the handover port to the worker's own; they are checked here and go up. */
	if (udp.dest != in.version->config.handover_port && udp.source != in.version->config.handover_port)
		return NF_ACCEPT;
	return es_cluster_message(&in, &envelope, &udp);
}
