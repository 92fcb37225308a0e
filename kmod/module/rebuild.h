/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_MODULE_REBUILD_H
#define ES_MODULE_REBUILD_H

/*
 * TCP Rebuilding. In two steps: on the interface the decision falls and a pending note is made; behind
 * routing and firewall (NF_INET_LOCAL_IN, last) the socket is made, in the state in which the kernel's own
 * SYN cookies make one (TCP_SYN_RECV, hashed, in the accept queue), and the packet goes on to the stack,
 * which finds it there, makes it established and takes the payload. Were the socket made at once, a firewall
 * that drops the packet would leave it behind.
 */
#include <linux/netfilter.h>

#include "node.h"
#include "packet.h"
#include "kmod/core/again.h"

/**
 * es_rebuild_note() - note that this packet, of which @seg is known, is to become a socket
 * @track: what to know about the connection; its options are the handshake's
 * Returns 0; -ENOMEM.
 */
int es_rebuild_note(struct es_node *node, const struct es_packet *pkt, const struct es_segment *seg,
		    u64 flow_hash, u16 source, const struct es_track *track);

/**
 * es_rebuild_split() - take the FIN off the packet @skb that is to become a socket (es_tcp_making_flags())
 * @skb's data must begin with its IP header. It comes in again by the public interface, behind the packet
 * itself; if it cannot, the client repeats it.
 */
void es_rebuild_split(struct sk_buff *skb, const struct es_packet *pkt, const struct es_segment *seg);

/*
 * es_rebuild_fin() - the hook's verdict on a packet with ES_FIN_MARK: to its socket, or nowhere; it was
 * counted
 */
unsigned int es_rebuild_fin(struct es_node *node, struct sk_buff *skb);

/* May @listener be given a connection? Not an MPTCP one: its children are of another kind. */
int es_listener_is_usable(const struct sock *listener);

/* The hook at NF_INET_LOCAL_IN; @priv is the node. */
unsigned int es_rebuild_hook(void *priv, struct sk_buff *skb, const struct nf_hook_state *state);

#endif
