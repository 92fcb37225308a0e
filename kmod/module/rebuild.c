// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes sockets, by what the kernel exports for every protocol: the same calls as cookie_v4_check(),
 * cookie_v6_check() and tcp_get_cookie_sock() (net/ipv4/syncookies.c, net/ipv6/syncookies.c), with values
 * that the handover message or the cookie brings instead of the kernel's own cookie.
 */
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/random.h>
#include <linux/security.h>
#include <net/ip.h>
#include <net/mptcp.h>
#include <net/request_sock.h>
#include <net/transp_v6.h>

#include "answer.h"
#include "other.h"
#include "packet6.h"
#include "rebuild.h"
#include "settled.h"
#include "socket.h"
#include "kmod/core/answer.h"
#include "kmod/core/view.h"

/*
 * tcp_create_openreq_child() asks it, and nothing else of a request that was never in the kernel's queue of
 * half-open connections. Nobody looks at it once the child exists, so it need not outlive the module: a
 * request sock in the accept queue is freed through rsk_ops, and those are the kernel's.
 */
#ifdef CONFIG_TCP_MD5SIG
static struct tcp_md5sig_key *es_request_md5_lookup(const struct sock *sk, const struct sock *addr_sk)
{
	return NULL;
}
#endif

static const struct tcp_request_sock_ops es_request_ops = {
#ifdef CONFIG_TCP_MD5SIG
	.req_md5_lookup = es_request_md5_lookup,
#endif
};

int es_rebuild_note(struct es_node *node, const struct es_packet *pkt, const struct es_segment *seg,
		    u64 flow_hash, u16 source, const struct es_track *track)
{
	struct es_note_bucket *bucket = es_tracks_lock(node->tracks, flow_hash);
	struct es_note *note = es_tracks_add(bucket, flow_hash, seg->seq, pkt);

	if (note) {
		note->source = source;
		note->is_end = (seg->flags & ES_TCP_FIN) && !seg->len;
		note->track = *track;
	}
	es_tracks_unlock(bucket);
	return note ? 0 : -ENOMEM;
}

void es_rebuild_split(struct sk_buff *skb, const struct es_packet *pkt, const struct es_segment *seg)
{
	struct sk_buff *fin;
	struct tcphdr *th;
	__be16 *word, making;

	if (!(seg->flags & ES_TCP_FIN) || es_answer_prepare(skb))
		return;
	fin = skb_copy(skb, GFP_ATOMIC);
	th = (struct tcphdr *)(skb->data + es_packet_ip_len(pkt));
	word = (__be16 *)((u8 *)th + ES_TCP_FLAGS_AT);
	making = es_tcp_making_flags(*word);
	inet_proto_csum_replace2(&th->check, skb, *word, making, false);
	*word = making;
	if (!fin)
		return;
	if (es_answer_end(fin, pkt, seg)) {
		kfree_skb(fin);
		return;
	}
	fin->mark = ES_FIN_MARK;
	/* Behind this packet, which this CPU is busy with. */
	netif_rx(fin);
}

unsigned int es_rebuild_fin(struct es_node *node, struct sk_buff *skb)
{
	struct es_socket_found found = {};
	struct es_packet pkt = {};
	struct es_segment seg;
	unsigned int rc = NF_DROP;

	skb->mark = 0;
	if (es_packet_headers(skb, skb->protocol == htons(ETH_P_IPV6), &pkt) ||
	    es_packet_tcp(skb, &pkt, skb->len, &seg))
		return NF_DROP;
	es_socket_lookup(node->net, skb, &pkt, &found);
	if (found.kind == ES_SOCKET_ESTABLISHED)
		rc = es_socket_deliver(skb, &found);
	es_socket_put(&found);
	return rc;
}

int es_listener_is_usable(const struct sock *listener)
{
	return !sk_is_mptcp(listener);
}

/* Fill in the fields that only a request by IPv6 has. */
static void es_request_fill6(struct request_sock *req, const struct sock *listener, const struct sk_buff *skb,
			     const struct es_packet *pkt)
{
#if IS_ENABLED(CONFIG_IPV6)
	struct inet_request_sock *ireq = inet_rsk(req);

	ireq->ir_v6_rmt_addr = *es_addr_in6(&pkt->source);
	ireq->ir_v6_loc_addr = *es_addr_in6(&pkt->dest);
	ireq->ir_rmt_addr = LOOPBACK4_IPV6;
	ireq->ir_loc_addr = LOOPBACK4_IPV6;
	ireq->ipv6_opt = NULL;
	ireq->pktopts = NULL;
	/* An address of a link means nothing without the link, see cookie_v6_check(). */
	if (!ireq->ir_iif && (ipv6_addr_type(&ireq->ir_v6_rmt_addr) & IPV6_ADDR_LINKLOCAL))
		ireq->ir_iif = skb->dev->ifindex;
#endif
}

/* Sets every field: the slab's object is as its last owner left it. */
static void es_request_fill(struct request_sock *req, const struct sock *listener, struct sk_buff *skb,
			    const struct es_packet *pkt, const struct es_segment *seg,
			    const struct es_tcp_options *o)
{
	struct inet_request_sock *ireq = inet_rsk(req);
	struct tcp_request_sock *treq = tcp_rsk(req);

	memset((u8 *)treq + sizeof(treq->req), 0, sizeof(*treq) - sizeof(treq->req));
	treq->af_specific = &es_request_ops;
	treq->rcv_isn = seg->seq - 1;
	treq->snt_isn = seg->ack - 1;
	treq->rcv_nxt = seg->seq;
	treq->txhash = get_random_u32() | 1;
	if (o->tstamp_ok)
		treq->ts_off = seg->tsecr + ES_REBUILD_CLOCK_AHEAD_MS - es_ns_to_ms(ktime_get_ns());
	req->mss = max_t(u16, o->mss, seg->is_v6 ? ES_TCP_MSS_MIN_V6 : ES_TCP_MSS_MIN);
	req->ts_recent = o->tstamp_ok ? seg->tsval : 0;
	req->num_retrans = 0;
	req->num_timeout = 0;
	req->syncookie = 1;
	req->secid = 0;
	req->peer_secid = 0;
	ireq->ir_num = ntohs(pkt->dport);
	ireq->ir_rmt_port = pkt->sport;
	ireq->ir_mark = inet_request_mark(listener, skb);
	ireq->ir_iif = inet_request_bound_dev_if(listener, skb);
	ireq->snd_wscale = o->wscale_ok ? o->snd_wscale : 0;
	ireq->wscale_ok = o->wscale_ok;
	ireq->sack_ok = o->sack_ok;
	ireq->tstamp_ok = o->tstamp_ok;
	ireq->ecn_ok = o->ecn_ok;
	ireq->acked = 0;
	ireq->no_srccheck = 0;
	ireq->smc_ok = 0;
	RCU_INIT_POINTER(ireq->ireq_opt, NULL);
	if (pkt->is_v6) {
		es_request_fill6(req, listener, skb, pkt);
	} else {
		sk_rcv_saddr_set(req_to_sk(req), pkt->daddr);
		sk_daddr_set(req_to_sk(req), pkt->saddr);
	}
}

/*
 * The receive window, as tcp_openreq_init_rwin() and tcp_select_initial_window() choose it for a handshake,
 * but with the window scale that the SYN-ACK has promised, whatever the buffer's size suggests now.
 */
static void es_request_window(struct request_sock *req, const struct sock *listener,
			      const struct es_tcp_options *o)
{
	u32 space = (u32)max(tcp_full_space(listener), 0);
	u32 clamp = READ_ONCE(tcp_sk(listener)->window_clamp);
	u8 wscale = o->wscale_ok ? o->rcv_wscale : 0;

	if (!clamp)
		clamp = U16_MAX << ES_TCP_WSCALE_MAX;
	if ((listener->sk_userlocks & SOCK_RCVBUF_LOCK) && clamp > space)
		clamp = space;
	space = min3(space, clamp, (u32)U16_MAX);
	req->rsk_rcv_wnd = space > req->mss ? rounddown(space, req->mss) : space;
	req->rsk_window_clamp = min_t(u32, clamp, U16_MAX << wscale);
	inet_rsk(req)->rcv_wscale = wscale;
}

/* By these the kernel frees the request. A listener of IPv6 has clients of both families. */
static struct request_sock_ops *es_request_family(const struct sock *listener, const struct es_packet *pkt)
{
	return pkt->is_v6 ? READ_ONCE(listener->sk_prot)->rsk_prot : tcp_prot.rsk_prot;
}

/*
 * The child; NULL when the accept queue is full, the flow has a socket, or there is no route to the client.
 * For IPv6 the kernel reads what IP has noted of the packet where TCP keeps that (tcp_v6_fill_cb()), and TCP
 * has not had the packet yet.
 */
static struct sock *es_request_child(struct sock *listener, struct sk_buff *skb, struct request_sock *req,
				     int is_v6, bool *own_req)
{
	u8 cb[sizeof(skb->cb)];
	struct sock *child;

	memcpy(cb, skb->cb, sizeof(cb));
#if IS_ENABLED(CONFIG_IPV6)
	if (is_v6)
		memmove(&TCP_SKB_CB(skb)->header.h6, IP6CB(skb), sizeof(struct inet6_skb_parm));
#endif
	child = es_syn_recv_sock(listener, skb, req, own_req);
	memcpy(skb->cb, cb, sizeof(cb));
	return child;
}

/*
 * Make the socket and put it into @listener's accept queue. Returns it with a reference, unlocked; NULL if
 * the kernel would not.
 */
static struct sock *es_rebuild_make(struct sock *listener, struct sk_buff *skb, const struct es_packet *pkt,
				    const struct es_segment *seg, const struct es_tcp_options *o)
{
	struct request_sock *req;
	struct sock *child;
	bool own_req;

	/* Not attached to the listener, so without a timer and in no table. */
	req = inet_reqsk_alloc(es_request_family(listener, pkt), listener, false);
	if (!req)
		return NULL;
	refcount_set(&req->rsk_refcnt, 1);
	es_request_fill(req, listener, skb, pkt, seg, o);
	if (security_inet_conn_request(listener, skb, req))
		goto err_request;
	es_request_window(req, listener, o);
	child = es_request_child(listener, skb, req, pkt->is_v6, &own_req);
	if (!child)
		goto err_request;
	tcp_sk(child)->tsoffset = tcp_rsk(req)->ts_off;
	/* The queue takes over the request and its reference, or drops the child if the listener is gone. */
	if (!inet_csk_reqsk_queue_add(listener, req, child)) {
		bh_unlock_sock(child);
		sock_put(child);
		goto err_request;
	}
	bh_unlock_sock(child);
	return child;

err_request:
	reqsk_put(req);
	return NULL;
}

/*
 * Reads the pending note for this packet, if there is one. @ret_handover: a program's, or 0; @ret_is_end: the
 * socket is to be made though nothing is in the packet.
 */
static int es_rebuild_pending(struct es_node *node, u64 flow_hash, u32 seq, struct es_tcp_options *ret,
			      u64 *ret_handover, int *ret_is_end)
{
	struct es_note_bucket *bucket = es_tracks_lock(node->tracks, flow_hash);
	const struct es_note *note = es_tracks_pending(bucket, flow_hash, seq);

	if (note) {
		*ret = note->track.options;
		*ret_handover = note->handover;
		*ret_is_end = note->is_end;
	}
	es_tracks_unlock(bucket);
	return note != NULL;
}

/*
 * The kernel refused to make the socket. A client repeats its request, which is then tried again. A program's
 * handover is forgotten, so that a sender that asks about it hears that it may send it again.
 */
static void es_rebuild_refused(struct es_node *node, const struct es_config *cfg, u64 flow_hash, u32 seq,
			       u64 handover)
{
	struct es_note_bucket *bucket;
	struct es_note *note;

	es_count(node, ES_COUNT_rebuild_refused);
	es_settle(node, cfg, flow_hash, seq, ES_SETTLED_UNDO, 0);
	if (!handover)
		return;
	bucket = es_tracks_lock(node->tracks, flow_hash);
	note = es_tracks_pending(bucket, flow_hash, seq);
	if (note && note->handover == handover)
		es_note_remove(note);
	es_tracks_unlock(bucket);
}

static void es_rebuild_done(struct es_node *node, u64 flow_hash, u32 seq, const struct sock *child)
{
	struct es_note_bucket *bucket = es_tracks_lock(node->tracks, flow_hash);
	struct es_note *note = es_tracks_pending(bucket, flow_hash, seq);

	/* No pending note: another CPU has met the socket meanwhile, and es_track_create() has done this. */
	if (note)
		es_tracks_built(bucket, note, child);
	es_tracks_unlock(bucket);
}

static unsigned int es_rebuild_packet(struct es_node *node, const struct es_version *version,
				      struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct es_socket_found found = {};
	struct es_tcp_options options;
	struct es_segment seg;
	struct es_flow flow;
	struct sock *child;
	u64 flow_hash, handover;
	struct es_packet pkt = {};
	int service, is_refused, is_end;

	if (es_packet_headers(skb, state->pf == NFPROTO_IPV6, &pkt) ||
	    es_packet_tcp(skb, &pkt, skb->len, &seg))
		return NF_ACCEPT;
	service = es_service_of(version, &pkt);
	if (service < 0)
		return NF_ACCEPT;
	es_packet_flow(&pkt, &flow);
	flow_hash = es_flow_hash(&version->config.ring_key, version->config.ring_seed, &flow);
	/* A program may hand over a connection of which it has read nothing; and where nobody reads, the
	 * handshake's ACK is enough. */
	if (!es_rebuild_pending(node, flow_hash, seg.seq, &options, &handover, &is_end) ||
	    (!seg.len && !handover && !is_end &&
	     es_view_inspect(&pkt, version->config.service[service].inspect) != ES_INSPECT_NEVER))
		return NF_ACCEPT;
	/* The stack drops and counts a packet with a wrong checksum; no socket must come of it. */
	if (pkt.is_v6 ? nf_ip6_checksum(skb, state->hook, pkt.headers_len, IPPROTO_TCP)
		      : nf_ip_checksum(skb, state->hook, ip_hdrlen(skb), IPPROTO_TCP))
		return NF_ACCEPT;
	if (!pskb_may_pull(skb, es_packet_ip_len(&pkt) + (u32)sizeof(struct tcphdr) + pkt.options_len) ||
	    es_packet_options(skb, &pkt, &seg))
		return NF_DROP;
	if (handover)
		es_socket_lookup_server(state->net, skb, &pkt, &version->config.service[service], &found);
	else
		es_socket_lookup_listener(state->net, skb, &pkt, &found);
	/* A rule has held the packet for so long that it was refused meanwhile: another node may have it. */
	is_refused = es_settle(node, &version->config, flow_hash, seg.seq, ES_SETTLED_LOOK, 0).as ==
		     ES_SETTLED_REFUSED;
	child = found.listener && es_listener_is_usable(found.listener) && !is_refused
			? es_rebuild_make(found.listener, skb, &pkt, &seg, &options)
			: NULL;
	if (!child) {
		/* The stack would answer with a RST. */
		es_rebuild_refused(node, &version->config, flow_hash, seg.seq, handover);
		return NF_DROP;
	}
	es_rebuild_done(node, flow_hash, seg.seq, child);
	/* Note it again: another CPU that was about to make the same socket may have taken the note back. */
	es_settle(node, &version->config, flow_hash, seg.seq, ES_SETTLED_MAKE, 0xff);
	es_settle(node, &version->config, flow_hash, seg.seq, ES_SETTLED_SEEN, 0);
	/*
	 * Before the packet has arrived at it: an accept() that is so quick finds a connection on which
	 * nothing can be read yet. Later is not possible: nothing of ours runs behind the stack.
	 */
	found.listener->sk_data_ready(found.listener);
	sock_put(child);
	return NF_ACCEPT;
}

unsigned int es_rebuild_hook(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct es_node *node = priv;
	const struct es_version *version = es_version_get(node);

	/* Early demultiplexing has found a socket: that is nearly every packet. */
	if (!version || skb->sk)
		return NF_ACCEPT;
	return es_rebuild_packet(node, version, skb, state);
}
