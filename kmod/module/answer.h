/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_MODULE_ANSWER_H
#define ES_MODULE_ANSWER_H

/*
 * Answers without a socket: SYN-ACK, ACK and RST leave by the interface that the packet came from. A RST for
 * a socket of this node is written over the packet and goes up the stack.
 */
#include "kmod/core/answer.h"
#include "packet.h"

/**
 * es_answer_send() - send @a to whoever sent the frame @skb, which stays as it is
 * The cluster MAC is never a source: switches would learn it. Returns 0 or -errno.
 */
int es_answer_send(const struct sk_buff *skb, const struct es_config *cfg, const struct es_answer *a);

/* es_answer_frame() - send a packet of @protocol from @source to @dest by @dev. Returns 0 or -errno. */
int es_answer_frame(struct net_device *dev, u16 protocol, const u8 *packet, u32 len, const u8 *dest,
		    const u8 *source);

/* es_answer_route() - send @a the way that the outgoing packet @skb goes. Returns 0 or -errno. */
int es_answer_route(struct net *net, const struct sk_buff *skb, const struct es_answer *a);

/* es_answer_prepare() - make sure that es_answer_end_old() of @skb will not fail. Returns 0 or -errno. */
int es_answer_prepare(struct sk_buff *skb);

/**
 * es_answer_end_old() - make @skb a RST for the socket that it met: exactly the byte it expects
 * @skb's data must begin with its IP header. Returns 0, and the packet is to be delivered; or -errno.
 */
int es_answer_end_old(struct sk_buff *skb, const struct es_packet *pkt, u32 rcv_nxt);

/*
 * es_answer_put_next() - make @skb es_answer_next() of the connection of @sk; as es_answer_end_old(). Returns
 * 0 or -errno.
 */
int es_answer_put_next(struct sk_buff *skb, const struct es_packet *pkt, const struct sock *sk);

/**
 * es_answer_end() - make @skb the FIN alone of the client's segment @seg that it is
 * es_answer_prepare() has been asked. Returns 0 or -errno.
 */
int es_answer_end(struct sk_buff *skb, const struct es_packet *pkt, const struct es_segment *seg);

#endif
