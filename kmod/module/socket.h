/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_MODULE_SOCKET_H
#define ES_MODULE_SOCKET_H

/*
 * The kernel's socket table, which is the connection table.
 */
#include <linux/netdevice.h>

#include "compat.h"
#include "kmod/core/decide.h"
#include "kmod/core/program.h"
#include "kmod/core/track.h"
#include "packet.h"

/**
 * struct es_socket_found - what the look-up found
 * @sk: an established-like or TIME_WAIT socket, with a reference; NULL if there is none
 * @listener: without one (rcu_read_lock() keeps it); NULL if there is none, or was not looked for
 * @kind: an enum es_socket; @old_rcv_nxt: of a TIME_WAIT socket
 */
struct es_socket_found {
	struct sock *sk;
	struct sock *listener;
	u32 old_rcv_nxt;
	u8 kind;
};

/* An address as the kernel has it. */
static inline const struct in6_addr *es_addr_in6(const struct es_addr *a)
{
	return (const struct in6_addr *)a;
}

/*
 * es_socket_find() - the socket, with a reference, that a client's packet on interface @dif (0: any) belongs
 * to; or NULL
 */
static inline struct sock *es_socket_find(struct net *net, const struct es_packet *pkt, int dif)
{
	if (pkt->is_v6)
		return es_lookup_established6(net, es_addr_in6(&pkt->source), pkt->sport,
					      es_addr_in6(&pkt->dest), pkt->dport, dif);
	return es_lookup_established(net, pkt->saddr, pkt->sport, pkt->daddr, pkt->dport, dif);
}

/* es_socket_lookup() - under rcu_read_lock(); es_socket_put() gives back what it found. */
static inline void es_socket_lookup(struct net *net, struct sk_buff *skb, const struct es_packet *pkt,
				    struct es_socket_found *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->sk = es_socket_find(net, pkt, skb->dev->ifindex);
	if (!ret->sk)
		return;
	if (ret->sk->sk_state != TCP_TIME_WAIT) {
		ret->kind = ES_SOCKET_ESTABLISHED;
		return;
	}
	ret->old_rcv_nxt = es_timewait_rcv_nxt(ret->sk);
	ret->kind =
		es_timewait_substate(ret->sk) == TCP_FIN_WAIT2 ? ES_SOCKET_FIN_WAIT2 : ES_SOCKET_TIME_WAIT;
}

/* A listening socket is wanted only where a connection is to be made. */
static inline void es_socket_lookup_listener(struct net *net, struct sk_buff *skb,
					     const struct es_packet *pkt, struct es_socket_found *found)
{
	int doff = (int)(sizeof(struct tcphdr) + pkt->options_len);
	int dif = skb->dev->ifindex;

	if (pkt->is_v6)
		found->listener = es_lookup_listener6(net, skb, doff, es_addr_in6(&pkt->source), pkt->sport,
						      es_addr_in6(&pkt->dest), pkt->dport, dif);
	else
		found->listener = es_lookup_listener(net, skb, doff, pkt->saddr, pkt->sport, pkt->daddr,
						     pkt->dport, dif);
}

/*
 * The same for the server that gets a service's connections from programs; NULL if no program does that here.
 */
static inline void es_socket_lookup_server(struct net *net, struct sk_buff *skb, const struct es_packet *pkt,
					   const struct es_service_entry *service,
					   struct es_socket_found *found)
{
	const struct es_addr *server = es_program_server_of(service, pkt->is_v6);
	struct es_packet to = *pkt;

	found->listener = NULL;
	if (!server)
		return;
	to.dport = service->server_port;
	if (pkt->is_v6)
		to.dest = *server;
	else
		to.daddr = server->w[3];
	es_socket_lookup_listener(net, skb, &to, found);
}

static inline void es_socket_put(struct es_socket_found *found)
{
	if (found->sk)
		sock_gen_put(found->sk);
	found->sk = NULL;
}

/*
 * Let the packet go up, to the very socket that the decision was about, and whose reference it takes along:
 * see es_socket_deliver() in kmod/bpf/socket.h. Returns the hook's verdict.
 */
static inline unsigned int es_socket_deliver(struct sk_buff *skb, struct es_socket_found *found)
{
	if (!found->sk)
		return NF_DROP;
	skb->pkt_type = PACKET_HOST;
	skb_orphan(skb);
	skb->sk = found->sk;
	skb->destructor = sock_pfree;
	found->sk = NULL;
	return NF_ACCEPT;
}

/*
 * Is @sk a whole TCP socket, whose struct tcp_sock may be read? Not a request's, not TIME_WAIT; nor the raw
 * one with TCP's protocol number by which the stack sends what belongs to no connection.
 */
static inline int es_socket_is_tcp(const struct sock *sk)
{
	return sk && sk_fullsock(sk) && sk->sk_type == SOCK_STREAM && sk->sk_protocol == IPPROTO_TCP;
}

/**
 * es_socket_is_unproven() - may the request that made this socket come again, to another node?
 * The client has acknowledged nothing of what was sent here, see kmod/bpf/tracks.h.
 */
static inline int es_socket_is_unproven(const struct sock *sk)
{
	return !READ_ONCE(tcp_sk(sk)->bytes_acked);
}

/* Sequence number of the first byte that the client sent to this socket; off by one after a FIN. */
static inline u32 es_socket_first_seq(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return READ_ONCE(tp->rcv_nxt) - (u32)READ_ONCE(tp->bytes_received);
}

/* The flow of a connection's socket; of IPv4 on a socket of IPv6, too, whose mapped addresses are as ours. */
static inline void es_socket_flow(const struct sock *sk, struct es_flow *ret)
{
	ret->client_port = sk->sk_dport;
	ret->service_port = htons(sk->sk_num);
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6) {
		memcpy(&ret->client, &sk->sk_v6_daddr, sizeof(ret->client));
		memcpy(&ret->service, &sk->sk_v6_rcv_saddr, sizeof(ret->service));
		return;
	}
#endif
	ret->client = es_addr_from_v4(sk->sk_daddr);
	ret->service = es_addr_from_v4(sk->sk_rcv_saddr);
}

/* End a connection; the kernel sends the client a RST. The caller holds a reference. May sleep. */
static inline int es_socket_abort(struct sock *sk)
{
	return sk->sk_prot->diag_destroy ? sk->sk_prot->diag_destroy(sk, ECONNABORTED) : -EOPNOTSUPP;
}

static inline void es_socket_read(const struct sock *sk, struct es_track_socket *ret)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	ret->rcv_nxt = READ_ONCE(tp->rcv_nxt);
	ret->copied_seq = READ_ONCE(tp->copied_seq);
	ret->snd_una = READ_ONCE(tp->snd_una);
	ret->write_seq = READ_ONCE(tp->write_seq);
	ret->rcv_wnd = READ_ONCE(tp->rcv_wnd);
	ret->max_wnd = READ_ONCE(tp->max_window);
	ret->is_established = READ_ONCE(sk->sk_state) == TCP_ESTABLISHED;
}

#endif
