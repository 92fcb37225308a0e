// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs' connections: carries out what kmod/core/program.h decides. The note (tracks.h) holds all that is
 * known of a handover, so looking, deciding and noting are one step, under the lock of the flow's bucket;
 * rebuild.c makes the socket itself, behind the firewall.
 */
#include "program.h"
#include "message.h"
#include "other.h"
#include "rebuild.h"
#include "settled.h"
#include "socket.h"
#include "kmod/core/serving.h"

/* struct es_given - a message under decision. @rcv_nxt: what the socket that is here expects next */
struct es_given {
	struct es_node *node;
	const struct es_service_entry *service;
	struct sk_buff *skb;
	const struct es_handover *h;
	struct es_packet pkt;
	struct es_segment seg;
	u64 flow_hash;
	u32 rcv_nxt;
	u32 service_index;
};

/* Look up the connection's own socket, and the server's listening socket. */
static void es_given_look(struct es_given *in, struct es_program_view *v)
{
	struct es_socket_found found;

	es_socket_lookup(in->node->net, in->skb, &in->pkt, &found);
	v->socket = found.kind;
	if (v->socket == ES_SOCKET_ESTABLISHED && es_socket_is_tcp(found.sk))
		in->rcv_nxt = READ_ONCE(tcp_sk(found.sk)->rcv_nxt);
	es_socket_put(&found);
	es_socket_lookup_server(in->node->net, in->skb, &in->pkt, in->service, &found);
	if (!found.listener || !es_listener_is_usable(found.listener) ||
	    es_serving_refuses(in->node->state, in->service_index, in->pkt.is_v6, ktime_get_coarse_ns()))
		return;
	v->listening = 1;
	v->accept_full = sk_acceptq_is_full(found.listener);
}

static void es_given_view(struct es_given *in, const struct es_config *cfg, const struct es_note *note,
			  struct es_program_view *ret)
{
	const struct es_handover *h = in->h;

	*ret = (struct es_program_view){
		.id = es_cpu_be64((__force u64)h->program),
		.kind = h->kind,
		.source = h->source,
		.is_self = h->source == cfg->self,
		.silent = (u8)es_handover_is_silent(in->node),
		.stale = cfg->leased && h->epoch != htonl(cfg->epoch),
	};
	if (note) {
		ret->noted_id = note->handover;
		ret->noted_source = note->handover_source;
		ret->noted_cancelled = note->is_cancelled;
		ret->served = es_settle(in->node, cfg, in->flow_hash, in->seg.seq, ES_SETTLED_LOOK, 0).as ==
			      ES_SETTLED_BUILT;
	}
	es_given_look(in, ret);
}

static void es_given_name(const struct es_given *in, struct es_note *note, u64 id)
{
	note->handover = id;
	note->handover_source = in->h->source;
	note->handover_ns = ktime_get_coarse_ns();
}

/* Note the values from which the socket is to be made; the envelope is off. */
static int es_given_rebuild(struct es_given *in, const struct es_config *cfg, struct es_note_bucket *bucket,
			    u64 id)
{
	struct es_note *note = es_tracks_add(bucket, in->flow_hash, in->seg.seq, &in->pkt);

	if (!note)
		return -ENOMEM;
	note->source = in->h->source;
	es_given_name(in, note, id);
	note->is_acknowledged = 1; /* by the node that had it, so the client does not repeat it */
	/* Its id has decided; but a client's request may be the same, and come again. */
	es_settle(in->node, cfg, in->flow_hash, in->seg.seq, ES_SETTLED_MAKE, 0xff);
	es_track_begin_program(&note->track, in->h);
	return 0;
}

/* Note the promise; a note about a socket that is here for another reason stays. */
static int es_given_cancel(struct es_given *in, struct es_note_bucket *bucket, struct es_note *note, u64 id)
{
	if (!note)
		note = es_tracks_add(bucket, in->flow_hash, in->seg.seq, &in->pkt);
	if (!note)
		return -ENOMEM;
	es_given_name(in, note, id);
	note->is_cancelled = 1;
	return 0;
}

/*
 * Decides, and notes what follows from it. Returns the answer that is to be sent; 0 for a packet that is
 * dropped, ES_GIVEN_DELIVER for one that makes the socket.
 */
#define ES_GIVEN_DELIVER 255
static u8 es_given_take(struct es_given *in, const struct es_config *cfg)
{
	struct es_note_bucket *bucket = es_tracks_lock(in->node->tracks, in->flow_hash);
	struct es_note *note = es_tracks_request(bucket, in->flow_hash, in->seg.seq);
	struct es_verdict verdict = {};
	struct es_program_view v;
	u8 answer;

	es_given_view(in, cfg, note, &v);
	answer = es_decide_program(&v, &verdict);
	if (verdict.action == ES_REBUILD) {
		answer = ES_GIVEN_DELIVER;
		if (es_message_open(in->node, in->skb, &in->pkt) || es_given_rebuild(in, cfg, bucket, v.id)) {
			/* Perhaps its envelope is off, so it cannot be answered; the sender asks again. */
			verdict.counter = ES_COUNT_rebuild_refused;
			answer = 0;
		}
	} else if (verdict.action != ES_NACK ||
		   (es_program_is_new_promise(&v, answer) && es_given_cancel(in, bucket, note, v.id))) {
		answer = 0; /* do not promise what cannot be kept */
	}
	es_tracks_unlock(bucket);
	es_count(in->node, verdict.counter);
	return answer;
}

unsigned int es_program_message(struct es_node *node, const struct es_version *version, struct sk_buff *skb,
				const struct es_handover *h)
{
	struct es_given in = {.node = node, .skb = skb, .h = h};
	const struct es_config *cfg = &version->config;
	struct es_handover reply;
	struct es_flow flow;
	int service;
	u8 answer;

	if (es_message_packet(skb, h, &in.pkt, &in.seg) || !es_message_is_connections(&in.seg)) {
		es_count(node, ES_COUNT_handover_malformed);
		return NF_DROP;
	}
	service = es_service_of(version, &in.pkt);
	if (service < 0) {
		es_count(node, ES_COUNT_handover_wrong_target);
		return NF_DROP;
	}
	in.service = &cfg->service[service];
	in.service_index = (u32)service;
	es_packet_flow(&in.pkt, &flow);
	in.flow_hash = es_flow_hash(&cfg->ring_key, cfg->ring_seed, &flow);
	answer = es_given_take(&in, cfg);
	if (answer == ES_GIVEN_DELIVER)
		return NF_ACCEPT;
	if (!answer)
		return NF_DROP;
	reply = *h;
	reply.next_request_seq = htonl(in.rcv_nxt);
	return es_message_answer(node, cfg, skb, &reply, ES_HANDOVER_ANSWER, answer);
}

static void es_socket_state_read(struct sock *sk, struct es_connection_state *ret)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	/* Any program or packet that was working on the socket has finished. */
	lock_sock(sk);
	if (sk->sk_state == TCP_ESTABLISHED) {
		ret->bytes_received = tp->bytes_received;
		ret->bytes_acked = tp->bytes_acked;
		ret->rcv_nxt = tp->rcv_nxt;
		ret->copied_seq = tp->copied_seq;
		ret->snd_una = tp->snd_una;
		ret->write_seq = tp->write_seq;
		ret->ts_recent = (u32)tp->rx_opt.ts_recent;
		ret->is_found = 1;
	}
	release_sock(sk);
}

int es_connection_state_read(struct es_node *node, const struct es_flow *flow,
			     struct es_connection_state *ret)
{
	const struct es_version *version;
	struct sock *sk = NULL;
	struct es_packet pkt;

	rcu_read_lock();
	version = es_version_get(node);
	if (version) {
		ret->flow_hash = es_flow_hash(&version->config.ring_key, version->config.ring_seed, flow);
		es_packet_of_flow(flow, &pkt);
		sk = es_socket_find(node->net, &pkt, (int)version->config.public_ifindex);
	}
	rcu_read_unlock();
	if (!version)
		return -ENOENT;
	if (!sk)
		return -ENOTCONN;
	if (es_socket_is_tcp(sk))
		es_socket_state_read(sk, ret);
	sock_gen_put(sk);
	return ret->is_found ? 0 : -ENOTCONN;
}
