// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a node does with a handover message about a request: rebuild, deliver, refuse, and for its own later
 * requests stay and end. The counterpart of es_cluster and kmod/bpf/target.h.
 */
#include <linux/if_vlan.h>
#include <linux/udp.h>

#include "answer.h"
#include "connection.h"
#include "message.h"
#include "other.h"
#include "rebuild.h"
#include "target.h"
#include "view.h"

/* struct es_received - a handover message that is authentic and fresh */
struct es_received {
	struct es_node *node;
	const struct es_version *version;
	struct sk_buff *skb;
	struct es_handover h;
	struct es_handover_view view;
	struct es_packet pkt;
	struct es_socket_found found;
	u64 flow_hash;
	u32 old_rcv_nxt;
};

/* What the target knows about the packet in a message. */
static void es_handover_view_socket(struct es_received *in)
{
	struct es_handover_view *v = &in->view;

	es_socket_lookup(in->node->net, in->skb, &in->pkt, &in->found);
	v->socket = in->found.kind;
	in->old_rcv_nxt = in->found.old_rcv_nxt;
	if (!in->found.sk) {
		es_socket_lookup_listener(in->node->net, in->skb, &in->pkt, &in->found);
		v->listening = in->found.listener != NULL;
		if (v->listening)
			v->accept_full = sk_acceptq_is_full(in->found.listener);
	} else if (v->socket == ES_SOCKET_ESTABLISHED && es_socket_is_tcp(in->found.sk)) {
		v->rcv_nxt = READ_ONCE(tcp_sk(in->found.sk)->rcv_nxt);
		/* Whether a FIN counts as a received byte differs between kernels. */
		v->first_seq = es_socket_first_seq(in->found.sk) - 1;
		in->old_rcv_nxt = v->rcv_nxt;
	}
}

/* Note what the socket is to be made from; the envelope is off. */
static int es_handover_rebuild(struct es_received *in)
{
	const struct es_handover *h = &in->h;
	struct es_track t = {};

	if (!es_listener_is_usable(in->found.listener))
		return -EPROTONOSUPPORT;
	es_handover_options_get(h, &t.options);
	t.requests = ntohl(h->requests);
	es_track_serve(&t, in->view.seg.ack, h);
	t.moves = ntohs(h->moves);
	/* A service that inspects first requests only does not say where they end, and may be changed later.
	 */
	t.pin = !h->pin && !h->next_request_seq ? ES_PIN_unknown : h->pin;
	t.service = h->service;
	return es_rebuild_note(in->node, &in->pkt, in->view.seg.seq, in->flow_hash, h->source, &t);
}

/* The inspector left a later request on this connection where it is. */
static void es_stay(struct es_received *in)
{
	struct es_note_bucket *bucket = es_tracks_lock(in->node->tracks, in->flow_hash);
	struct es_note *note = es_tracks_find(bucket, in->flow_hash, in->found.sk);
	struct es_track *t = note ? &note->track : NULL;

	/* Otherwise it comes again: the socket has it already. */
	if (t && !t->pin && t->state == ES_TRACK_QUEUED && t->next_request_seq == in->view.seg.seq) {
		es_track_serve(t, in->view.seg.ack, &in->h);
		es_track_pin(in->node, t, in->h.pin);
	}
	es_tracks_unlock(bucket);
}

static int es_may_leave(struct es_received *in)
{
	struct es_note_bucket *bucket;
	struct es_track_socket socket;
	struct es_note *note;
	int rc;

	if (!es_socket_is_tcp(in->found.sk))
		return 0;
	es_socket_read(in->found.sk, &socket);
	bucket = es_tracks_lock(in->node->tracks, in->flow_hash);
	note = es_tracks_find(bucket, in->flow_hash, in->found.sk);
	rc = note && es_track_may_leave(&note->track, &in->view.seg, &socket);
	es_tracks_unlock(bucket);
	return rc;
}

/* Tell the inspector what came of its ES_HANDOVER_END; the packet goes along. */
static int es_handover_answer_end(struct es_received *in, u8 kind)
{
	struct es_record record = {
		.flow_hash = in->flow_hash,
		.len = ntohs(in->h.packet_len),
		.kind = kind,
		.service = in->h.service,
		.flow = ES_FLOW_HERE,
	};

	return es_queue_push(in->node, in->version->config.workers, in->skb, &record);
}

/* Is this a first request whose sender the ring here does not name, and which another node may have? */
static int es_handover_is_stale(const struct es_received *in)
{
	const struct es_config *cfg = &in->version->config;
	const struct es_handover *h = &in->h;

	if (!cfg->leased || h->kind != ES_HANDOVER_REQUEST || (h->flags & ES_HANDOVER_F_MOVED) ||
	    h->epoch == htonl(cfg->epoch))
		return 0;
	return (es_ring_table_lookup(&in->version->ring.table, in->flow_hash) & ES_RING_NODE) != h->source;
}

/* Carry the verdict out. Returns the hook's. */
static unsigned int es_handover_carry_out(struct es_received *in, const struct es_verdict *verdict)
{
	const struct es_config *cfg = &in->version->config;
	u32 counter = verdict->counter;
	unsigned int rc = NF_DROP;

	switch (verdict->action) {
	case ES_DELIVER:
		if (in->view.kind == ES_HANDOVER_STAY)
			es_stay(in);
		if (!es_message_open(in->skb))
			rc = es_socket_deliver(in->skb, &in->found);
		break;
	case ES_LEAVE:
	case ES_KEEP:
		if (es_message_open(in->skb))
			break;
		in->pkt.off = 0;
		if (es_handover_answer_end(in,
					   verdict->action == ES_LEAVE ? ES_RECORD_ENDED : ES_RECORD_KEPT)) {
			counter = ES_COUNT_drop_queue_full;
		} else if (verdict->action == ES_LEAVE &&
			   !es_answer_end_old(in->skb, &in->pkt, in->old_rcv_nxt)) {
			rc = NF_ACCEPT;
		}
		break;
	case ES_NACK:
		rc = es_message_answer(in->node, cfg, in->skb, &in->h, ES_HANDOVER_NACK,
				       es_handover_nack_reason(&in->view));
		break;
	case ES_END_OLD:
		/* A NACK asks the sender to try here again; the packet itself ends the old socket. */
		if (es_message_send(in->node, cfg, in->skb, &in->h, ES_HANDOVER_NACK, ES_NACK_RETRY)) {
			es_count(in->node, ES_COUNT_answer_failed);
			break;
		}
		if (!es_message_open(in->skb) && !es_answer_end_old(in->skb, &in->pkt, in->old_rcv_nxt))
			rc = NF_ACCEPT;
		break;
	case ES_REBUILD:
		if (!es_message_open(in->skb) && !es_handover_rebuild(in))
			rc = NF_ACCEPT;
		else
			counter = ES_COUNT_rebuild_refused;
		break;
	default:
		break;
	}
	es_count(in->node, counter);
	return rc;
}

/* The packet in the message: read it, look for its socket, decide. */
static unsigned int es_handover_received(struct es_received *in)
{
	struct es_handover_view *v = &in->view;
	struct es_verdict verdict = {};
	struct es_flow flow;
	unsigned int rc;

	/* Only a segment of an open connection makes, or meets, a socket. */
	if (es_message_packet(in->skb, &in->h, &in->pkt, &v->seg) ||
	    (v->seg.flags & (ES_TCP_SYN | ES_TCP_RST | ES_TCP_ACK)) != ES_TCP_ACK ||
	    (!v->seg.len && !(es_handover_may_be_fin(in->h.kind) && (v->seg.flags & ES_TCP_FIN)))) {
		es_count(in->node, ES_COUNT_handover_malformed);
		return NF_DROP;
	}
	if (es_service_find(in->version, in->pkt.daddr, in->pkt.dport) < 0) {
		es_count(in->node, ES_COUNT_handover_wrong_target);
		return NF_DROP;
	}
	es_packet_flow(&in->pkt, &flow);
	in->flow_hash = es_flow_hash(&in->version->config.ring_key, &flow);
	v->kind = in->h.kind;
	v->silent = (u8)es_handover_is_silent(in->node);
	v->stale = (u8)es_handover_is_stale(in);
	v->rebuilt =
		(u8)es_rebuilt_lately(in->node->tracks, in->flow_hash, v->seg.seq, ktime_get_coarse_ns());
	if (v->kind == ES_HANDOVER_STRAY)
		v->on_its_way = (u8)es_stray_is_on_its_way(
			es_decision_lookup(es_decision_set_of(in->node, in->flow_hash),
					   es_decision_key(in->flow_hash, v->seg.ack - 1)),
			v->seg.seq, (u32)div_u64(ktime_get_coarse_ns(), NSEC_PER_MSEC));
	es_handover_view_socket(in);
	if (v->kind == ES_HANDOVER_END)
		/* The inspector is told that it has ended before it has: that must not fail any more. */
		v->may_leave = (u8)(es_may_leave(in) && !es_answer_prepare(in->skb));
	es_decide_handover(v, &verdict);
	rc = es_handover_carry_out(in, &verdict);
	es_socket_put(&in->found);
	return rc;
}

/* Is @h, to or from the handover port, a message, and one that this node wants? */
static unsigned int es_cluster_message(struct es_received *in, const struct iphdr *ip,
				       const struct udphdr *udp)
{
	const struct es_config *cfg = &in->version->config;
	const struct es_handover *h = &in->h;
	u32 counter;
	int is_short = skb_copy_bits(in->skb, ES_MESSAGE_HEADER_OFF, &in->h, sizeof(in->h));

	/* The daemons tell each other their loads on the same port. */
	if (!is_short && h->magic == htonl(ES_LOADS_MAGIC))
		return NF_ACCEPT;
	if (is_short || h->magic != htonl(ES_HANDOVER_MAGIC) || h->version != ES_HANDOVER_VERSION ||
	    ntohs(udp->len) != sizeof(*udp) + sizeof(*h) + ntohs(h->packet_len) ||
	    ntohs(ip->tot_len) != sizeof(*ip) + ntohs(udp->len) || skb_is_gso(in->skb) ||
	    (ip->frag_off & htons(IP_MF | IP_OFFSET)))
		goto malformed;
	if (h->target != cfg->self) {
		es_count(in->node, ES_COUNT_handover_wrong_target);
		return NF_DROP;
	}
	counter = es_message_check(in->node, cfg, in->skb, h);
	es_count(in->node, counter);
	if (counter != ES_COUNT_handover_received)
		return NF_DROP;
	if (h->kind == ES_HANDOVER_NACK) {
		es_count(in->node, es_nack_is_stray(h->nack) ? ES_COUNT_stray_answered
							     : ES_COUNT_handover_nack_received);
		return NF_ACCEPT;
	}
	if (h->kind == ES_HANDOVER_ANSWER)
		return NF_ACCEPT;
	if (udp->dest == cfg->handover_port && (h->kind == ES_HANDOVER_CONNECTION ||
						h->kind == ES_HANDOVER_ASK || h->kind == ES_HANDOVER_CANCEL))
		return es_connection_message(in->node, in->version, in->skb, h);
	if (udp->dest != cfg->handover_port || !es_handover_is_for_target(h->kind, h->source == cfg->self))
		goto malformed;
	return es_handover_received(in);

malformed:
	es_count(in->node, ES_COUNT_handover_malformed);
	return NF_DROP;
}

unsigned int es_cluster_hook(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct es_received in = {.node = priv, .skb = skb};
	struct iphdr ip_buf, ip;
	struct udphdr udp_buf, udp;
	const void *p;

	in.version = es_version_get(in.node);
	if (!in.version || skb->protocol != htons(ETH_P_IP) || skb_vlan_tag_present(skb))
		return NF_ACCEPT;
	p = skb_header_pointer(skb, 0, sizeof(ip_buf), &ip_buf);
	if (!p)
		return NF_ACCEPT;
	ip = *(const struct iphdr *)p;
	if (ip.protocol != IPPROTO_UDP || ip.ihl != 5 || ip.daddr != in.version->config.self_address.w[3])
		return NF_ACCEPT;
	p = skb_header_pointer(skb, sizeof(ip), sizeof(udp_buf), &udp_buf);
	if (!p)
		return NF_ACCEPT;
	udp = *(const struct udphdr *)p;
	/* NACKs come from the handover port to the worker's own; they are checked here and go up. */
	if (udp.dest != in.version->config.handover_port && udp.source != in.version->config.handover_port)
		return NF_ACCEPT;
	return es_cluster_message(&in, &ip, &udp);
}
