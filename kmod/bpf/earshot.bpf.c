// SPDX-License-Identifier: GPL-2.0-only
/*
 * The BPF datapath: tc programs. es_public (ingress) sees what the switch broadcasts, es_cluster (ingress, on
 * the private network and on lo) sees handover messages. Both only make the view, call the decision function
 * of kmod/core and carry its verdict out. es_reply (egress) reads where our servers' responses end, keeps
 * back what must not leave, and notes whom the stack has sent a RST.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <linux/in.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "kernel.h"
#include "maps.h"
#include "packet.h"
#include "checksum.h"
#include "answer.h"
#include "rebuild.h"
#include "queue.h"
#include "other.h"
#include "message.h"
#include "socket.h"
#include "tracks.h"
#include "target.h"
#include "connection.h"
#include "reply.h"
#include "list.h"
#include "loads.h"
#include "unproven.h"
#include "kmod/core/decide.h"

char LICENSE[] SEC("license") = "GPL";

/* Has this node ended the packet's connection? It is seldom asked: only for a while after it ended any. */
static __always_inline int es_view_is_ended(const struct es_view *v, __u64 now_ns)
{
	struct es_reset *slot = es_reset_slot(v->flow_hash);

	if (slot && (v->seg.flags & ES_TCP_SYN))
		es_reset_forget(slot, v->flow_hash);
	return slot && es_reset_is_of(slot, v->flow_hash, v->seg.ack, (__u32)(now_ns / 1000000));
}

static __always_inline __u32 es_view_again_ms(const struct es_view *v)
{
	struct es_stray *slot = es_stray_slot(v->flow_hash);

	return slot ? es_stray_note(slot, v->flow_hash, v->seg.seq, v->now_ms) : 0;
}

/* Everything about a flow that es_decide() wants to know, and the packet and its socket do not tell. */
static __noinline int es_view_complete(const struct es_packet *pkt, struct es_view *v, __u64 now_ns)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct es_flow flow;
	__u32 worker, set;

	if (!cfg || !pkt || !v)
		return -1;
	es_packet_flow(pkt, &flow);
	v->flow_hash = es_flow_hash(&cfg->ring_key, &flow);
	if (v->socket == ES_SOCKET_NONE && es_resets_are_fresh(state->reset_ns, now_ns))
		v->ended = (__u8)es_view_is_ended(v, now_ns);
	if (v->socket != ES_SOCKET_ESTABLISHED) {
		struct es_node_ring *ring = es_ring_get(state);

		if (!ring)
			return -1;
		if (es_node_ring_answers(ring, v->flow_hash)) {
			v->mine = state->attached != 0;
			v->waits = es_node_ring_waits(ring, v->flow_hash);
		}
		/* A request that moved its connection away from here concerns this node all the same, and so
		 * does the end of a connection that its inspector has answered. */
		if (!v->mine &&
		    (v->inspect != ES_INSPECT_EVERY || !(v->seg.len || (v->seg.flags & ES_TCP_FIN))))
			return 0;
	}
	v->now_ms = (__u32)(now_ns / 1000000);
	if (cfg->slot_s)
		v->slot = (__u32)((now_ns + state->wall_offset_ns) / 1000000000ULL / cfg->slot_s);
	worker = es_worker_of(v->flow_hash, cfg->workers) & (ES_WORKERS_MAX - 1);
	/* Signed: the coarse clock may lie a tick behind the worker's. */
	v->inspector_alive = cfg->workers && (__s64)(now_ns - state->worker[worker].heartbeat_ns) <
						     (__s64)cfg->fallback_after_ms * 1000000LL;
	if (v->socket != ES_SOCKET_ESTABLISHED && (v->seg.len || (v->seg.flags & ES_TCP_FIN)) &&
	    cfg->decision_sets) {
		struct es_decision_set *decisions;

		set = es_decision_index(v->flow_hash, cfg->decision_sets);
		decisions = bpf_map_lookup_elem(&es_decisions, &set);
		if (decisions)
			v->decision =
				es_decision_lookup(decisions, es_decision_key(v->flow_hash, v->seg.ack - 1));
		if (v->mine)
			v->again_ms = es_view_again_ms(v);
	}
	return 0;
}

static __always_inline int es_view_is_unproven(struct bpf_sock *sk)
{
	/* Asked for the verifier, which may not see that what is established is there. */
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : (void *)0;

	return tp && es_socket_is_unproven(tp);
}

/* A client's payload for a socket here, where each request is inspected: does it begin one? */
static __noinline int es_view_track(struct bpf_sock *sk, const struct es_packet *pkt, struct es_view *v,
				    __u64 now_ns)
{
	struct es_track_socket socket = {};
	struct es_track *t;
	__u8 pin = ES_PIN_none;

	if (!sk || !pkt || !v)
		return -1;
	t = es_track_of(sk);
	if (t && (t->pin || es_seq_before(v->seg.seq + v->seg.len, t->next_request_seq)))
		return 0; /* the inside of a body: nothing to work out */
	es_track_socket_read(sk, &socket);
	if (!socket.is_established)
		return 0;
	if (es_view_complete(pkt, v, now_ns))
		return -1;
	if (!t)
		t = es_track_create(sk, v->flow_hash);
	if (!t)
		return 0;
	v->track = (__u8)es_track_inbound(t, &v->seg, socket.rcv_nxt, v->inspector_alive, &pin);
	if (v->track == ES_TRACK_PIN)
		es_track_pin(t, pin);
	return 0;
}

/* es_decide() in a stack frame of its own, and verified once: a global function, see es_service_find(). */
__noinline int es_view_decide(const struct es_view *v, struct es_verdict *ret)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;

	if (!cfg || !v || !ret)
		return -1;
	es_decide(cfg, v, ret);
	return 0;
}

/*
 * Did another connection of these ports get this very cookie a moment ago? For a client without timestamps
 * the chance is 1 in 2,048 within a slot; its request would be taken for a part of the other one's.
 */
static __noinline int es_cookie_is_taken(const struct es_view *v, __u32 cookie)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct es_decision_set *decisions;
	__u64 value;
	__u32 set;

	if (!cfg || !v || !cfg->decision_sets)
		return 0;
	set = es_decision_index(v->flow_hash, cfg->decision_sets);
	decisions = bpf_map_lookup_elem(&es_decisions, &set);
	if (!decisions)
		return 0;
	value = es_decision_lookup(decisions, es_decision_key(v->flow_hash, cookie));
	return value && es_decision_isn(value) != v->seg.seq;
}

/* The verdicts that send something to the client. A function of its own: stacks of BPF programs are small. */
static __noinline int es_carry_out_answer(struct __sk_buff *skb, const struct es_packet *pkt,
					  const struct es_view *v, const struct es_verdict *verdict)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct es_tcp_options options;
	struct es_answer answer;

	if (!cfg || !pkt || !v || !verdict)
		return TC_ACT_SHOT;
	switch (verdict->action) {
	case ES_SYNACK:
	case ES_END_OLD_AND_SYNACK:
		es_answer_synack(cfg, pkt, &v->seg, verdict, &answer);
		break;
	case ES_ANSWER_ACK:
		es_answer_to(pkt, &answer);
		answer.seq = v->seg.ack;
		answer.ack = v->seg.seq + 1;
		es_cookie_options_unpack(v->seg.ack - 1, &options);
		answer.window = (__u16)(cfg->synack_window >> (options.wscale_ok ? cfg->rcv_wscale : 0));
		answer.flags = ES_TCP_ACK;
		if (v->seg.has_ts) {
			answer.options_len = ES_TIMESTAMP_OPTION_LEN;
			es_timestamp_option_write(answer.options, v->seg.tsecr, v->seg.tsval);
		}
		break;
	default:
		es_answer_to(pkt, &answer);
		answer.seq = v->seg.ack;
		answer.flags = ES_TCP_RST;
		break;
	}
	return es_answer_send(skb, cfg, &answer);
}

/* What the inspector wants to know of a connection whose socket is here. */
static __always_inline void es_record_here(struct bpf_sock *sk, struct es_record *record)
{
	struct es_track *t = sk ? es_track_of(sk) : (void *)0;

	if (!t)
		return;
	record->flow = ES_FLOW_HERE;
	record->options = t->options;
	record->requests = t->requests;
	record->moves = t->moves;
}

/* Give the packet to the inspector. Returns the program's verdict. A function of its own, for its stack. */
static __noinline int es_carry_out_queue(struct __sk_buff *skb, struct bpf_sock *sk,
					 const struct es_packet *pkt, const struct es_view *v,
					 const struct es_verdict *verdict)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct es_record record = {};
	struct es_stray *stray;
	int service, rc;
	__u32 worker;

	if (!cfg || !pkt || !v || !verdict)
		return TC_ACT_SHOT;
	record.kind = verdict->action == ES_QUEUE_FIRST ? ES_RECORD_FIRST : ES_RECORD_LATER;
	if (verdict->action == ES_QUEUE_STRAY) {
		record.kind = ES_RECORD_STRAY;
		stray = es_stray_slot(v->flow_hash);
		if (stray)
			es_stray_asked(stray, v->now_ms);
	}
	service = es_service_find(pkt->daddr, pkt->dport);
	record.flow_hash = v->flow_hash;
	record.len = v->seg.len + sizeof(struct iphdr) + sizeof(struct tcphdr) + pkt->options_len;
	record.service = (__u8)service;
	if (v->track)
		es_record_here(sk, &record);
	else if (verdict->counter == ES_COUNT_moved_queued)
		record.flow = ES_FLOW_MOVED;
	worker = es_worker_of(v->flow_hash, cfg->workers) & (ES_WORKERS_MAX - 1);
	rc = es_queue_push(skb, &record, worker);
	es_count(rc < 0 ? ES_COUNT_drop_queue_full : verdict->counter);
	return rc > 0 ? es_queue_wake(skb, worker) : TC_ACT_SHOT;
}

/* Make the socket here, without an inspector; 0 or -1. */
static __noinline int es_carry_out_rebuild(struct __sk_buff *skb, struct bpf_sock *sk,
					   const struct es_view *v, const struct es_verdict *verdict,
					   __u64 now_ns)
{
	struct es_rebuilt rebuilt = {.at_ns = now_ns, .track.pin = ES_PIN_uninspected};
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;

	if (!sk || !v || !verdict || !cfg)
		return -1;
	rebuilt.source = cfg->self;
	rebuilt.track.options = verdict->options;
	return es_rebuild(skb, sk, &v->seg, v->flow_hash, &rebuilt);
}

static __always_inline int es_carry_out(struct __sk_buff *skb, struct bpf_sock *sk,
					const struct es_packet *pkt, const struct es_view *v,
					const struct es_verdict *verdict, __u8 listening, __u64 now_ns)
{
	__u32 counter = verdict->counter;
	int rc = TC_ACT_SHOT;

	switch (verdict->action) {
	case ES_DELIVER:
		rc = es_socket_deliver(skb, sk);
		break;
	case ES_QUEUE_FIRST:
	case ES_QUEUE_LATER:
	case ES_QUEUE_STRAY:
		return es_carry_out_queue(skb, sk, pkt, v, verdict);
	case ES_SYNACK:
	case ES_END_OLD_AND_SYNACK:
	case ES_ANSWER_ACK:
	case ES_ANSWER_RST:
		rc = es_carry_out_answer(skb, pkt, v, verdict);
		if (verdict->action != ES_END_OLD_AND_SYNACK || rc == TC_ACT_SHOT)
			break;
		/* The answer leaves as a copy; the packet itself becomes the old socket's RST. */
		bpf_clone_redirect(skb, skb->ifindex, 0);
		rc = es_answer_end_old(skb, pkt, v->old_rcv_nxt);
		break;
	case ES_END_OLD:
		rc = es_answer_end_old(skb, pkt, v->old_rcv_nxt);
		break;
	case ES_REBUILD:
		/* The stack drops and counts it; no socket must come of it. */
		if (es_packet_is_damaged(skb, pkt, v->seg.len)) {
			bpf_skb_change_type(skb, PACKET_TYPE_HOST);
			rc = TC_ACT_OK;
			break;
		}
		if (!listening) {
			/* As a stack without that port would: the client is told at once. */
			counter = ES_COUNT_rebuild_no_listener;
			rc = es_carry_out_answer(skb, pkt, v, verdict);
			break;
		}
		if (es_rebuilt_lately(v->flow_hash, v->seg.seq, now_ns)) {
			counter = ES_COUNT_handover_old;
			break;
		}
		/* Or the kernel drops the packet, and our note of it the client's retransmissions. */
		if (es_listener_is_full(sk)) {
			counter = ES_COUNT_handover_accept_full;
			break;
		}
		if (es_carry_out_rebuild(skb, sk, v, verdict, now_ns)) {
			counter = ES_COUNT_rebuild_refused;
			break;
		}
		bpf_skb_change_type(skb, PACKET_TYPE_HOST);
		rc = TC_ACT_OK;
		break;
	default:
		break;
	}
	es_count(counter);
	return rc;
}

SEC("tc")
int es_public(struct __sk_buff *skb)
{
	struct es_verdict verdict;
	struct es_packet pkt = {};
	struct es_view view = {};
	struct es_config *cfg;
	struct es_state *state;
	struct bpf_sock *sk;
	struct iphdr ip;
	__u8 listening;
	__u64 now_ns;
	int service, rc;
	__u32 len;

	if (skb->protocol == es_htons(ETH_P_ARP))
		return es_other_arp(skb);
	if (skb->protocol != es_htons(ETH_P_IP))
		return TC_ACT_OK;
	if (es_packet_load(skb, ETH_HLEN, &ip, sizeof(ip)))
		return TC_ACT_OK;
	state = es_state_get();
	cfg = state ? es_config_get(state) : (void *)0;
	if (!cfg)
		return TC_ACT_OK;
	pkt.off = ETH_HLEN;
	pkt.saddr = ip.saddr;
	pkt.daddr = ip.daddr;
	len = es_ntohs(ip.tot_len);
	if (!es_is_service_address(ip.daddr))
		return TC_ACT_OK;
	if (ip.protocol != IPPROTO_TCP)
		return es_other_ip(skb, &ip);
	if (ip.frag_off & es_htons(0x3fff)) {
		es_count(ES_COUNT_drop_fragment);
		return TC_ACT_SHOT;
	}
	/* A merged packet may be longer than tot_len can say (BIG TCP is IPv6 only; 0 means such a one). */
	if (ip.ihl != 5 || len > skb->len - ETH_HLEN || es_packet_tcp(skb, &pkt, len, &view.seg)) {
		es_count(ES_COUNT_drop_malformed);
		return TC_ACT_SHOT;
	}
	service = es_service_find(pkt.daddr, pkt.dport);
	if (service < 0)
		return es_other_ip(skb, &ip);

	sk = es_socket_lookup(skb, &pkt);
	view.socket = es_socket_classify(sk, &view.old_rcv_nxt, &listening);
	view.inspect = cfg->service[service & (ES_SERVICES_MAX - 1)].inspect;
	now_ns = bpf_ktime_get_coarse_ns();
	view.silent = (__u8)es_lease_is_over(state, now_ns);
	if (view.socket == ES_SOCKET_ESTABLISHED) {
		if (view.silent)
			view.unproven = (__u8)es_view_is_unproven(sk);
		/* A packet that is dropped says nothing about the connection. */
		if (view.inspect == ES_INSPECT_EVERY && view.seg.len && !view.unproven &&
		    es_view_track(sk, &pkt, &view, now_ns))
			goto drop;
	} else {
		if (es_view_complete(&pkt, &view, now_ns))
			goto drop;
		if (es_is_anothers(&view)) {
			es_count(ES_COUNT_drop_not_mine);
			goto drop;
		}
		if (view.mine && es_packet_options(skb, &pkt, &view.seg)) {
			es_count(ES_COUNT_drop_malformed);
			goto drop;
		}
	}
	verdict = (struct es_verdict){};
	if (es_view_decide(&view, &verdict))
		goto drop;
	if ((verdict.action == ES_SYNACK || verdict.action == ES_END_OLD_AND_SYNACK) &&
	    !verdict.options.tstamp_ok && es_cookie_is_taken(&view, verdict.cookie)) {
		view.slot++; /* the next slot's cookie is valid already */
		if (es_view_decide(&view, &verdict))
			goto drop;
	}
	rc = es_carry_out(skb, sk, &pkt, &view, &verdict, listening, now_ns);
	if (sk)
		bpf_sk_release(sk);
	return rc;
drop:
	if (sk)
		bpf_sk_release(sk);
	return TC_ACT_SHOT;
}

SEC("tc")
int es_cluster(struct __sk_buff *skb)
{
	struct es_handover h;
	struct es_config *cfg;
	struct es_state *state;
	struct udphdr udp;
	struct iphdr ip;
	int counter;

	if (skb->protocol != es_htons(ETH_P_IP) || es_packet_load(skb, ETH_HLEN, &ip, sizeof(ip)))
		return TC_ACT_OK;
	if (ip.protocol != IPPROTO_UDP || ip.ihl != 5)
		return TC_ACT_OK;
	state = es_state_get();
	cfg = state ? es_config_get(state) : (void *)0;
	if (!cfg || ip.daddr != cfg->self_address.w[3])
		return TC_ACT_OK;
	if (bpf_skb_load_bytes(skb, ETH_HLEN + sizeof(ip), &udp, sizeof(udp)))
		return TC_ACT_OK;
	if (udp.dest != cfg->handover_port) {
		/* NACKs come from the handover port to the worker's own; they are checked here and go up. */
		if (udp.source != cfg->handover_port)
			return TC_ACT_OK;
	}
	if (!bpf_skb_load_bytes(skb, ES_MESSAGE_HEADER_OFF, &h, sizeof(h)) &&
	    h.magic == es_htonl(ES_LOADS_MAGIC))
		return TC_ACT_OK;
	if (bpf_skb_load_bytes(skb, ES_MESSAGE_HEADER_OFF, &h, sizeof(h)) ||
	    h.magic != es_htonl(ES_HANDOVER_MAGIC) || h.version != ES_HANDOVER_VERSION ||
	    es_ntohs(udp.len) != sizeof(udp) + sizeof(h) + es_ntohs(h.packet_len) ||
	    es_ntohs(ip.tot_len) != sizeof(ip) + es_ntohs(udp.len) || (ip.frag_off & es_htons(0x3fff))) {
		es_count(ES_COUNT_handover_malformed);
		return TC_ACT_SHOT;
	}
	if (h.target != cfg->self) {
		es_count(ES_COUNT_handover_wrong_target);
		return TC_ACT_SHOT;
	}
	counter = es_message_check(skb, cfg, &h);
	es_count((__u32)counter);
	if (counter != ES_COUNT_handover_received)
		return TC_ACT_SHOT;
	if (h.kind == ES_HANDOVER_NACK) {
		es_count(es_nack_is_stray(h.nack) ? ES_COUNT_stray_answered
						  : ES_COUNT_handover_nack_received);
		return TC_ACT_OK;
	}
	if (h.kind == ES_HANDOVER_ANSWER)
		return TC_ACT_OK;
	if (udp.dest == cfg->handover_port &&
	    (h.kind == ES_HANDOVER_CONNECTION || h.kind == ES_HANDOVER_ASK || h.kind == ES_HANDOVER_CANCEL))
		return es_connection_message(skb, cfg, &h);
	if (udp.dest != cfg->handover_port || !es_handover_is_for_target(h.kind, h.source == cfg->self)) {
		es_count(ES_COUNT_handover_malformed);
		return TC_ACT_SHOT;
	}
	return es_handover_request(skb, cfg, &h);
}

SEC("tc")
int es_reply(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct es_packet pkt = {};
	struct es_config *cfg;
	struct es_state *state;
	struct es_segment seg;
	struct tcp_sock *tp;
	struct iphdr ip;
	int inspect;

	/* What came in goes out again: our own answer. Over a virtual link it may even bring its sender's
	 * socket.
	 */
	if (skb->ingress_ifindex)
		return TC_ACT_OK;
	if (!sk || skb->protocol != es_htons(ETH_P_IP) || es_packet_load(skb, ETH_HLEN, &ip, sizeof(ip)))
		return TC_ACT_OK;
	if (ip.protocol != IPPROTO_TCP || ip.ihl != 5)
		return TC_ACT_OK;
	pkt.off = ETH_HLEN;
	/* Not tot_len: it says nothing of a packet that the network card will cut. */
	if (es_packet_tcp(skb, &pkt, skb->len - ETH_HLEN, &seg))
		return TC_ACT_OK;
	state = es_state_get();
	cfg = state ? es_config_get(state) : (void *)0;
	if (!cfg || (!cfg->reads_replies && !state->lease_ns && !(seg.flags & ES_TCP_RST)))
		return TC_ACT_OK;
	inspect = es_reply_inspect(&ip, &pkt);
	if (inspect < 0)
		return TC_ACT_OK;
	if (seg.len && inspect == ES_INSPECT_EVERY)
		es_reply_track(skb, sk, &ip, &pkt, &seg);
	switch (es_reply_fate(sk, &ip, &pkt, &seg)) {
	case ES_REPLY_STAYS:
		return TC_ACT_SHOT;
	case ES_REPLY_TELLS:
		tp = bpf_skc_to_tcp_sock(sk);
		return tp ? es_reply_tell(skb, &ip, &pkt, tp->snd_una, tp->snd_nxt) : TC_ACT_SHOT;
	default:
		if (seg.flags & ES_TCP_RST)
			es_reply_ended(sk, &ip, &pkt, seg.seq);
		return TC_ACT_OK;
	}
}
