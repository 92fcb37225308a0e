/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_VIEW_H
#define ES_CORE_VIEW_H

/*
 * How a view of a packet is completed from a node's tables, for es_decide(). The datapath looks up what these
 * functions ask for, a step at a time, since most packets are another node's and need little of it:
 *
 *   es_view_begin() - es_view_opens(): the SYN is noted - es_view_may_be_ended(): es_view_ended() -
 *   es_view_ring() - es_view_is_overheard() (decide.h): it is noted -
 *   es_view_may_be_kept(): es_view_kept_says() -
 *   es_view_concerns(), or that is all - es_view_time() - es_view_needs_decision(): es_view_decision()
 *
 * Besides, the file fills in the record by which the inspector is told of a packet (es_view_record()), and
 * says whether a cookie is taken (es_view_cookie_is_taken()).
 */
#include "decide.h"
#include "headers.h"
#include "kept.h"
#include "wall.h"
#include "node_ring.h"
#include "packet.h"
#include "resets.h"
#include "serving.h"
#include "settled.h"

static __always_inline void es_view_begin(struct es_view *v, const struct es_config *cfg,
					  const struct es_packet *pkt)
{
	struct es_flow flow;

	es_packet_flow(pkt, &flow);
	v->flow_hash = es_flow_hash(&cfg->ring_key, cfg->ring_seed, &flow);
}

/**
 * es_view_inspect() - how the requests of a packet's client are inspected; @inspect: how the service's are
 * Requests of a client with a link-local address are not inspected: a socket belongs to the interface on
 * which its first packet arrives, and packets that are handed over, also to the node itself, arrive on
 * another interface than the client's.
 */
static __always_inline __u8 es_view_inspect(const struct es_packet *pkt, __u8 inspect)
{
	return pkt->is_v6 && es_addr_is_link_local(&pkt->source) ? ES_INSPECT_NEVER : inspect;
}

/* es_view_layer4() - whose business is a connection that nobody reads? @entry: of @service */
static __always_inline void es_view_layer4(struct es_view *v, const struct es_state *state,
					   const struct es_service_entry *entry, __u32 service,
					   const struct es_packet *pkt, __u64 now_ns)
{
	v->may_give =
		entry->inspect == ES_INSPECT_NEVER && !(pkt->is_v6 && es_addr_is_link_local(&pkt->source));
	v->gives = v->may_give ? (__u8)es_serving_gives(state, entry, service, pkt->is_v6, now_ns)
			       : ES_GIVES_NOTHING;
}

/*
 * es_view_may_be_given() - may the packet's connection still go to another node? @settled: the answer to
 * ES_SETTLED_REFUSE about its first bytes. A connection that was made here from these bytes is not given
 * away. Neither is one that another node handed over and this node refused, as it may be at a third node by
 * now; unless this node's inspector has decided where it goes (@v's decision).
 */
static __always_inline int es_view_may_be_given(const struct es_view *v,
						const struct es_settled_answer *settled)
{
	return settled->as == ES_SETTLED_REFUSED && !settled->has_vanished &&
	       (!settled->attempt || v->decision);
}

/*
 * es_view_kept() - the counter if the connection may not be given away: it was made here and is over, or has
 * gone elsewhere since
 */
static __always_inline __u32 es_view_kept(const struct es_view *v)
{
	return v->decision ? ES_COUNT_drop_decided : ES_COUNT_handover_old;
}

static __always_inline int es_address_is_own(const struct es_config *cfg, const struct es_addr *a)
{
	if (es_addr_equal(&cfg->self_address, a))
		return 1;
	for (__u32 i = 0; i < ES_SERVICES_MAX && i < cfg->service_count; i++)
		/* a service without an IPv6 address has all zeros there, from which nothing comes so far */
		if (es_addr_equal(&cfg->service[i].address, a) || es_addr_equal(&cfg->service[i].address6, a))
			return 1;
	return 0;
}

/*
 * es_packet_is_martian() - does a packet that has arrived on the public interface claim to be from an address
 * where no client can be? IPv6 packets from addresses that no host has are dropped before
 * (es_headers_counter()).
 */
static __always_inline int es_packet_is_martian(const struct es_config *cfg, const struct es_packet *pkt)
{
	struct es_addr source;

	if (!pkt->is_v6 && !es_v4_is_client(pkt->saddr))
		return 1;
	source = pkt->is_v6 ? pkt->source : es_addr_from_v4(pkt->saddr);
	return es_address_is_own(cfg, &source);
}

/* es_view_opens() - is it a SYN that every node notes (syns.h, strays.h)? */
static __always_inline int es_view_opens(const struct es_view *v)
{
	return es_tcp_is_syn(&v->seg) && v->socket != ES_SOCKET_ESTABLISHED;
}

/* es_view_may_be_ended() - is it worth a look at the table of resets? @reset_ns: struct es_state's */
static __always_inline int es_view_may_be_ended(const struct es_view *v, __u64 reset_ns, __u64 now_ns)
{
	return v->socket == ES_SOCKET_NONE && es_resets_are_fresh(reset_ns, now_ns);
}

/* Has this node ended the packet's connection? @slot: its flow's. A SYN begins a new connection. */
static __always_inline void es_view_ended(struct es_view *v, struct es_reset *slot, __u64 now_ns)
{
	if (v->seg.flags & ES_TCP_SYN)
		es_reset_forget(slot, v->flow_hash);
	v->ended = (__u8)es_reset_is_of(slot, v->flow_hash, v->seg.ack, es_ns_to_ms(now_ns));
}

/* Is the packet's flow this node's? @attached: struct es_state's. Asked if there is no established socket. */
static __always_inline void es_view_ring(struct es_view *v, const struct es_node_ring *ring, __u32 attached)
{
	if (!es_node_ring_answers(ring, v->flow_hash))
		return;
	v->mine = attached != 0;
	v->waits = (__u8)es_node_ring_waits(ring, v->flow_hash);
}

/**
 * es_view_may_be_kept() - may it be the next request of another node's idle connection, or the answer of a
 * client that was asked about one? @asked_until_s: struct es_state's
 */
static __always_inline int es_view_may_be_kept(const struct es_view *v, __u32 asked_until_s, __u64 now_ns)
{
	if (!v->survives || v->socket == ES_SOCKET_ESTABLISHED || (v->seg.flags & (ES_TCP_SYN | ES_TCP_RST)))
		return 0;
	if (v->seg.len)
		return 1;
	return v->mine && asked_until_s && (v->seg.flags & (ES_TCP_ACK | ES_TCP_FIN)) == ES_TCP_ACK &&
	       es_ns_to_s(now_ns) < asked_until_s;
}

/* @slot: its flow's */
static __always_inline void es_view_kept_says(struct es_view *v, struct es_kept_slot *slot)
{
	int is_mine = v->mine && !v->waits && !v->silent;
	enum es_kept_says says = v->seg.len ? es_kept_hear(slot, v->flow_hash, v->seg.seq, is_mine)
					    : es_kept_answers(slot, v->flow_hash, v->seg.seq, is_mine);

	v->orphaned = says == ES_KEPT_SAYS_MINE;
	v->kept_tells = says == ES_KEPT_SAYS_TELL;
}

/* Does the segment have a part of a request, or an end? */
static __always_inline int es_view_says(const struct es_view *v)
{
	return v->seg.len || (v->seg.flags & ES_TCP_FIN);
}

/*
 * es_view_concerns() - must this node know more of the packet? Otherwise the view is complete.
 * A request that moved its connection away from here concerns this node all the same, and so does the end of
 * a connection that its inspector has answered.
 */
static __always_inline int es_view_concerns(const struct es_view *v)
{
	return v->socket == ES_SOCKET_ESTABLISHED || v->mine ||
	       (v->inspect == ES_INSPECT_EVERY && es_view_says(v));
}

/* es_view_worker() - the worker that handles its flow */
static __always_inline __u32 es_view_worker(const struct es_view *v, const struct es_config *cfg)
{
	return es_worker_of(v->flow_hash, cfg->workers) & (ES_WORKERS_MAX - 1);
}

static __always_inline __u32 es_view_slot(const struct es_config *cfg, __u64 wall_ns)
{
	return cfg->slot_s ? (__u32)es_div64(es_div64(wall_ns, 1000000000), cfg->slot_s) : 0;
}

/* @heartbeat_ns: of es_view_worker() */
static __always_inline void es_view_time(struct es_view *v, const struct es_config *cfg,
					 const struct es_state *state, __u64 heartbeat_ns, __u64 now_ns)
{
	__u64 offset_ns = *(const volatile __u64 *)&state->wall_offset_ns;

	v->now_ms = es_ns_to_ms(now_ns);
	v->slot = es_view_slot(cfg, now_ns + offset_ns);
	v->slot_before = es_ns_to_s(now_ns) < state->wall_before_until_s
				 ? es_view_slot(cfg, now_ns + state->wall_before_ns)
				 : v->slot;
	/* Signed: the coarse clock may lie a tick behind the worker's. */
	v->inspector_alive =
		cfg->workers && (__s64)(now_ns - heartbeat_ns) < (__s64)cfg->fallback_after_ms * 1000000LL;
}

/* es_view_needs_decision() - may this node's inspector have decided about the segment? */
static __always_inline int es_view_needs_decision(const struct es_view *v)
{
	return v->socket != ES_SOCKET_ESTABLISHED && es_view_says(v);
}

/* @decisions: its flow's set; @stray: its flow's slot, written to where the flow is this node's */
static __always_inline void es_view_decision(struct es_view *v, const struct es_decision_set *decisions,
					     struct es_stray *stray)
{
	v->decision = es_decision_lookup(decisions, es_decision_key(v->flow_hash, v->seg.ack - 1));
	if (v->mine)
		v->again_ms = es_stray_note(stray, v->flow_hash, v->seg.seq, v->now_ms);
}

/* es_view_reads_track() - may a packet for an established socket be the inspector's? */
static __always_inline int es_view_reads_track(const struct es_view *v)
{
	/* A packet that is dropped says nothing about the connection. */
	return v->inspect == ES_INSPECT_EVERY && es_track_reads(&v->seg) && !v->unproven;
}

/**
 * es_view_cookie_is_taken() - did another connection of these ports get this very cookie a moment ago?
 * @v: of a SYN; @decisions: its flow's set. For a client without timestamps the chance is 1 in 2,048 within a
 * slot; its request would be taken for a part of the other connection's.
 */
static __always_inline int es_view_cookie_is_taken(const struct es_view *v,
						   const struct es_decision_set *decisions, __u32 cookie)
{
	__u64 value = es_decision_lookup(decisions, es_decision_key(v->flow_hash, cookie));

	return value && es_decision_isn(value) != v->seg.seq;
}

/* es_verdict_may_collide() - does the verdict send a cookie about which to ask es_view_cookie_is_taken()? */
static __always_inline int es_verdict_may_collide(const struct es_verdict *verdict)
{
	return (verdict->action == ES_SYNACK || verdict->action == ES_END_OLD_AND_SYNACK) &&
	       !verdict->options.tstamp_ok;
}

/*
 * es_verdict_gives() - may the inspector give a connection that nobody reads to a node? Asked about a verdict
 * by which the inspector gets the packet.
 */
static __always_inline int es_verdict_gives(const struct es_view *v, const struct es_verdict *verdict)
{
	return v->may_give && (verdict->action == ES_QUEUE_FIRST || verdict->action == ES_REBUILD);
}

/* es_verdict_needs_flow() - does what the inspector is told depend on whether a SYN of the flow was heard? */
static __always_inline int es_verdict_needs_flow(const struct es_verdict *verdict)
{
	return verdict->action == ES_QUEUE_STRAY && !verdict->proven;
}

/**
 * es_view_record() - what the inspector is told of a packet that goes to it
 * @service: its index; @was_heard: was a SYN of its flow heard? Needed where es_verdict_needs_flow().
 * es_view_record_track() adds the facts from the track of its socket.
 */
static __always_inline void es_view_record(const struct es_view *v, const struct es_verdict *verdict,
					   const struct es_packet *pkt, __u32 service, int was_heard,
					   struct es_record *ret)
{
	/* ES_REBUILD: the packet would have made a socket, had this node a server for it */
	ret->kind = verdict->action == ES_QUEUE_FIRST || verdict->action == ES_REBUILD ? ES_RECORD_FIRST
		    : verdict->action == ES_QUEUE_STRAY				       ? ES_RECORD_STRAY
										       : ES_RECORD_LATER;
	ret->flow_hash = v->flow_hash;
	ret->len = es_packet_ip_len(pkt) + 20 + pkt->options_len + v->seg.len;
	ret->service = (__u8)service;
	if (v->track)
		return;
	if (verdict->action == ES_DROP) {
		ret->kind = ES_RECORD_HEARD;
		ret->flow = ES_FLOW_HEARD;
		return;
	}
	if (verdict->counter == ES_COUNT_moved_queued)
		ret->flow = ES_FLOW_MOVED;
	else if (verdict->action == ES_QUEUE_STRAY && verdict->earlier)
		ret->flow = v->doubtful ? ES_FLOW_EARLIER_DOUBTFUL : ES_FLOW_EARLIER;
	else if (verdict->action == ES_QUEUE_STRAY && (verdict->proven || was_heard))
		ret->flow = ES_FLOW_HEARD;
	else if (verdict->counter == ES_COUNT_request_doubtful)
		ret->flow = ES_FLOW_DOUBTFUL;
	else if (verdict->action == ES_REBUILD ||
		 (verdict->action == ES_QUEUE_FIRST && v->gives == ES_GIVES_UNSERVED))
		ret->flow = ES_FLOW_UNSERVED;
}

/* es_view_record_track() - what the inspector is told besides if the connection's socket is here */
static __always_inline void es_view_record_track(const struct es_track *t, struct es_record *ret)
{
	ret->flow = ES_FLOW_HERE;
	ret->options = t->options;
	ret->requests = t->requests;
	ret->moves = t->moves;
}

#endif
