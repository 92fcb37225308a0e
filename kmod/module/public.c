// SPDX-License-Identifier: GPL-2.0-only
/*
 * What arrives on the public interface: makes the view of a packet, has es_decide() decide, and carries the
 * verdict out. The counterpart of es_public in kmod/bpf/earshot.bpf.c, at the same place: ingress of the
 * device, before any protocol, where frames for a MAC that is not the interface's have not been dropped yet.
 */
#include <linux/if_vlan.h>

#include "answer.h"
#include "other.h"
#include "public.h"
#include "rebuild.h"
#include "view.h"

/* struct es_inbound - a packet under decision, for the functions below */
struct es_inbound {
	struct es_node *node;
	const struct es_version *version;
	struct sk_buff *skb;
	struct es_packet pkt;
	struct es_view view;
	struct es_verdict verdict;
	struct es_record record;
	struct es_socket_found found;
	u64 now_ns;
	int service;
};

/*
 * Did another connection of these ports get this very cookie a moment ago? See es_cookie_is_taken() in
 * kmod/bpf/earshot.bpf.c.
 */
static int es_cookie_is_taken(const struct es_inbound *in)
{
	u64 value = es_decision_lookup(es_decision_set_of(in->node, in->view.flow_hash),
				       es_decision_key(in->view.flow_hash, in->verdict.cookie));

	return value && es_decision_isn(value) != in->view.seg.seq;
}

/* The verdicts that send something to the client. Returns 0 or -errno. */
static int es_carry_out_answer(const struct es_inbound *in)
{
	const struct es_config *cfg = &in->version->config;
	const struct es_segment *seg = &in->view.seg;
	struct es_tcp_options options;
	struct es_answer answer;

	switch (in->verdict.action) {
	case ES_SYNACK:
	case ES_END_OLD_AND_SYNACK:
		es_answer_synack(cfg, &in->pkt, seg, &in->verdict, &answer);
		break;
	case ES_ANSWER_ACK:
		es_answer_to(&in->pkt, &answer);
		answer.seq = seg->ack;
		answer.ack = seg->seq + 1;
		es_cookie_options_unpack(seg->ack - 1, &options);
		answer.window = (u16)(cfg->synack_window >> (options.wscale_ok ? cfg->rcv_wscale : 0));
		answer.flags = ES_TCP_ACK;
		if (seg->has_ts) {
			answer.options_len = ES_TIMESTAMP_OPTION_LEN;
			es_timestamp_option_write(answer.options, seg->tsecr, seg->tsval);
		}
		break;
	default:
		es_answer_to(&in->pkt, &answer);
		answer.seq = seg->ack;
		answer.flags = ES_TCP_RST;
		break;
	}
	return es_answer_send(in->skb, cfg, &answer);
}

/* Give the packet to the inspector; it ends here. Returns the counter to count by. */
static u32 es_carry_out_queue(struct es_inbound *in)
{
	struct es_record *record = &in->record;
	u32 counter = in->verdict.counter;

	record->kind = in->verdict.action == ES_QUEUE_FIRST ? ES_RECORD_FIRST : ES_RECORD_LATER;
	if (in->verdict.action == ES_QUEUE_STRAY) {
		record->kind = ES_RECORD_STRAY;
		es_stray_asked(es_stray_slot(in->node, in->view.flow_hash), in->view.now_ms);
	}
	record->flow_hash = in->view.flow_hash;
	record->len =
		in->view.seg.len + (u32)(sizeof(struct iphdr) + sizeof(struct tcphdr)) + in->pkt.options_len;
	record->service = (u8)in->service;
	if (!in->view.track && counter == ES_COUNT_moved_queued)
		record->flow = ES_FLOW_MOVED;
	return es_queue_push(in->node, in->version->config.workers, in->skb, record)
		       ? ES_COUNT_drop_queue_full
		       : counter;
}

/* Make the socket here, without an inspector. Returns the hook's verdict. */
static unsigned int es_carry_out_rebuild(struct es_inbound *in, u32 *ret_counter)
{
	const struct es_track track = {.pin = ES_PIN_uninspected, .options = in->verdict.options};

	es_socket_lookup_listener(in->node->net, in->skb, &in->pkt, &in->found);
	if (!in->found.listener) {
		/* As a stack without that port would: the client is told at once. */
		*ret_counter =
			es_carry_out_answer(in) ? ES_COUNT_answer_failed : ES_COUNT_rebuild_no_listener;
		return NF_DROP;
	}
	if (es_rebuilt_lately(in->node->tracks, in->view.flow_hash, in->view.seg.seq, in->now_ns)) {
		*ret_counter = ES_COUNT_handover_old;
		return NF_DROP;
	}
	if (sk_acceptq_is_full(in->found.listener)) {
		*ret_counter = ES_COUNT_handover_accept_full;
		return NF_DROP;
	}
	if (!es_listener_is_usable(in->found.listener) ||
	    es_rebuild_note(in->node, &in->pkt, in->view.seg.seq, in->view.flow_hash,
			    (u16)in->version->config.self, &track)) {
		*ret_counter = ES_COUNT_rebuild_refused;
		return NF_DROP;
	}
	in->skb->pkt_type = PACKET_HOST;
	return NF_ACCEPT;
}

static unsigned int es_carry_out(struct es_inbound *in)
{
	u32 counter = in->verdict.counter;
	unsigned int rc = NF_DROP;

	switch (in->verdict.action) {
	case ES_DELIVER:
		rc = es_socket_deliver(in->skb, &in->found);
		break;
	case ES_QUEUE_FIRST:
	case ES_QUEUE_LATER:
	case ES_QUEUE_STRAY:
		counter = es_carry_out_queue(in);
		break;
	case ES_SYNACK:
	case ES_ANSWER_ACK:
	case ES_ANSWER_RST:
		if (es_carry_out_answer(in))
			counter = ES_COUNT_answer_failed;
		break;
	case ES_END_OLD_AND_SYNACK:
		if (es_carry_out_answer(in)) {
			counter = ES_COUNT_answer_failed;
			break;
		}
		fallthrough;
	case ES_END_OLD:
		/* The packet itself becomes the old socket's RST. */
		if (es_answer_end_old(in->skb, &in->pkt, in->view.old_rcv_nxt))
			counter = ES_COUNT_answer_failed;
		else
			rc = NF_ACCEPT;
		break;
	case ES_REBUILD:
		rc = es_carry_out_rebuild(in, &counter);
		break;
	default:
		break;
	}
	es_count(in->node, counter);
	return rc;
}

/* A TCP segment to a service, whose headers are read. */
static unsigned int es_public_segment(struct es_inbound *in)
{
	const struct es_config *cfg = &in->version->config;
	struct es_view *v = &in->view;

	in->now_ns = ktime_get_coarse_ns();
	es_socket_lookup(in->node->net, in->skb, &in->pkt, &in->found);
	v->socket = in->found.kind;
	v->old_rcv_nxt = in->found.old_rcv_nxt;
	v->inspect = cfg->service[in->service].inspect;
	v->silent = (u8)es_is_silent(in->node);
	if (v->socket == ES_SOCKET_ESTABLISHED) {
		if (v->silent && es_socket_is_tcp(in->found.sk))
			v->unproven = (u8)es_socket_is_unproven(in->found.sk);
		/* A packet that is dropped says nothing about the connection. */
		if (v->inspect == ES_INSPECT_EVERY && v->seg.len && !v->unproven)
			es_view_track(in->node, in->version, in->found.sk, &in->pkt, v, in->now_ns,
				      &in->record);
	} else {
		es_view_complete(in->node, in->version, &in->pkt, v, in->now_ns);
		if (v->mine && es_packet_options(in->skb, &in->pkt, &v->seg)) {
			es_count(in->node, ES_COUNT_drop_malformed);
			return NF_DROP;
		}
	}
	es_decide(cfg, v, &in->verdict);
	if ((in->verdict.action == ES_SYNACK || in->verdict.action == ES_END_OLD_AND_SYNACK) &&
	    !in->verdict.options.tstamp_ok && es_cookie_is_taken(in)) {
		v->slot++; /* the next slot's cookie is valid already */
		es_decide(cfg, v, &in->verdict);
	}
	return es_carry_out(in);
}

static unsigned int es_public_ip(struct es_inbound *in)
{
	const struct iphdr *ip;
	struct iphdr buf;
	unsigned int rc;
	u32 len;

	ip = skb_header_pointer(in->skb, 0, sizeof(buf), &buf);
	if (!ip || !es_is_service_address(in->version, ip->daddr))
		return NF_ACCEPT;
	if (ip->protocol != IPPROTO_TCP)
		return es_other_ip(in->node, in->version, in->skb, ip);
	if (ip->frag_off & htons(IP_MF | IP_OFFSET)) {
		es_count(in->node, ES_COUNT_drop_fragment);
		return NF_DROP;
	}
	in->pkt.saddr = ip->saddr;
	in->pkt.daddr = ip->daddr;
	len = ntohs(ip->tot_len);
	if (ip->ihl != 5 || len > in->skb->len || es_packet_tcp(in->skb, &in->pkt, len, &in->view.seg)) {
		es_count(in->node, ES_COUNT_drop_malformed);
		return NF_DROP;
	}
	in->service = es_service_find(in->version, in->pkt.daddr, in->pkt.dport);
	if (in->service < 0)
		return es_other_ip(in->node, in->version, in->skb, ip);
	rc = es_public_segment(in);
	es_socket_put(&in->found);
	return rc;
}

unsigned int es_public_hook(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct es_inbound in = {.node = priv, .skb = skb};

	in.version = es_version_get(in.node);
	/* A frame of a VLAN is not this interface's, but one's above it. */
	if (!in.version || skb_vlan_tag_present(skb))
		return NF_ACCEPT;
	if (skb->protocol == htons(ETH_P_ARP))
		return es_other_arp(in.node, in.version, skb);
	if (skb->protocol != htons(ETH_P_IP))
		return NF_ACCEPT;
	return es_public_ip(&in);
}
