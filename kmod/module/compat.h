/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_MODULE_COMPAT_H
#define ES_MODULE_COMPAT_H

/*
 * Where kernels differ. Each ES_HAVE_* is the answer of a probe: configure/<NAME>.c compiles against the
 * kernel's headers, or it does not. Versions are never compared, since distributions backport.
 */
#include <linux/mm.h>
#include <linux/tcp.h>
#include <net/inet_connection_sock.h>
#include <net/inet6_hashtables.h>
#include <net/inet_hashtables.h>
#include <net/ipv6.h>
#include <net/tcp.h>

static inline void es_vma_forbid_write(struct vm_area_struct *vma)
{
#ifdef ES_HAVE_VM_FLAGS_CLEAR
	vm_flags_clear(vma, VM_MAYWRITE);
#else
	vma->vm_flags &= ~VM_MAYWRITE;
#endif
}

static inline struct inet_hashinfo *es_hashinfo(struct net *net)
{
#ifdef ES_HAVE_HASHINFO_OF_NET
	return net->ipv4.tcp_death_row.hashinfo;
#else
	return &tcp_hashinfo;
#endif
}

static inline struct sock *es_lookup_established(struct net *net, __be32 saddr, __be16 sport, __be32 daddr,
						 __be16 dport, int dif)
{
#ifdef ES_HAVE_LOOKUP_WITHOUT_HASHINFO
	return __inet_lookup_established(net, saddr, sport, daddr, ntohs(dport), dif, 0);
#else
	return __inet_lookup_established(net, es_hashinfo(net), saddr, sport, daddr, ntohs(dport), dif, 0);
#endif
}

static inline struct sock *es_lookup_listener(struct net *net, struct sk_buff *skb, int doff, __be32 saddr,
					      __be16 sport, __be32 daddr, __be16 dport, int dif)
{
#ifdef ES_HAVE_LOOKUP_WITHOUT_HASHINFO
	return __inet_lookup_listener(net, skb, doff, saddr, sport, daddr, ntohs(dport), dif, 0);
#else
	return __inet_lookup_listener(net, es_hashinfo(net), skb, doff, saddr, sport, daddr, ntohs(dport),
				      dif, 0);
#endif
}

/* The same for IPv6. A kernel without it has no such socket. */
static inline struct sock *es_lookup_established6(struct net *net, const struct in6_addr *saddr, __be16 sport,
						  const struct in6_addr *daddr, __be16 dport, int dif)
{
#if !IS_ENABLED(CONFIG_IPV6)
	return NULL;
#elif defined(ES_HAVE_LOOKUP_WITHOUT_HASHINFO)
	return __inet6_lookup_established(net, saddr, sport, daddr, ntohs(dport), dif, 0);
#else
	return __inet6_lookup_established(net, es_hashinfo(net), saddr, sport, daddr, ntohs(dport), dif, 0);
#endif
}

static inline struct sock *es_lookup_listener6(struct net *net, struct sk_buff *skb, int doff,
					       const struct in6_addr *saddr, __be16 sport,
					       const struct in6_addr *daddr, __be16 dport, int dif)
{
#if !IS_ENABLED(CONFIG_IPV6)
	return NULL;
#elif defined(ES_HAVE_LOOKUP_WITHOUT_HASHINFO)
	return inet6_lookup_listener(net, skb, doff, saddr, sport, daddr, ntohs(dport), dif, 0);
#else
	return inet6_lookup_listener(net, es_hashinfo(net), skb, doff, saddr, sport, daddr, ntohs(dport), dif,
				     0);
#endif
}

/* Takes @skb, which has its route. Returns as ip_local_out() does. */
static inline int es_ip6_local_out(struct net *net, struct sk_buff *skb)
{
#if IS_ENABLED(CONFIG_IPV6)
	return ip6_local_out(net, NULL, skb);
#else
	kfree_skb(skb);
	return NET_XMIT_DROP;
#endif
}

static inline struct sock *es_syn_recv_sock(struct sock *listener, struct sk_buff *skb,
					    struct request_sock *req, bool *own_req)
{
#ifdef ES_HAVE_SYN_RECV_SOCK_CHILD_INIT
	return inet_csk(listener)->icsk_af_ops->syn_recv_sock(listener, skb, req, NULL, NULL, own_req, NULL);
#else
	return inet_csk(listener)->icsk_af_ops->syn_recv_sock(listener, skb, req, NULL, NULL, own_req);
#endif
}

static inline u32 es_timewait_rcv_nxt(const struct sock *sk)
{
	return tcp_twsk(sk)->tw_rcv_nxt;
}

static inline u8 es_timewait_substate(const struct sock *sk)
{
	return READ_ONCE(inet_twsk(sk)->tw_substate);
}

#endif
