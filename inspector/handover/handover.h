/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECTOR_HANDOVER_H
#define ES_INSPECTOR_HANDOVER_H

/*
 * request_handover(): gives a client's connection to a node by sending it the original request packet.
 */
#include "inspector/cluster/cluster.h"
#include "inspector/handover/rejection.h"
#include "inspector/packet/packet.h"
#include "kmod/core/handover.h"

#define ES_HANDOVER_BATCH 64

struct es_handover_sender;

/* es_handover_number() - from where messages are numbered at a time of the number clock (base/wall.h) */
static inline __u64 es_handover_number(__u64 number_ns)
{
	return number_ns / 1000000000 << 24 | number_ns % 1000000000 >> 6;
}

/**
 * es_handover_sender_new() - one worker's sender
 * @stream: its number, below ES_STREAM_DATAPATH, unique on this node
 * @key: current handover key
 * Opens a UDP socket for each node, from this node's cluster address; NACKs come back to it. Returns 0 or
 * -errno.
 */
int es_handover_sender_new(const struct es_cluster *cluster, unsigned int stream, const struct es_sipkey *key,
			   struct es_handover_sender **ret_sender);
/**
 * es_handover_sender_set() - go on with another version of the cluster and another key
 * What is queued is sent first; es_handover_sender_fd() stays the same. Returns 0 or -errno.
 */
int es_handover_sender_set(struct es_handover_sender *sender, const struct es_cluster *cluster,
			   const struct es_sipkey *key);

void es_handover_sender_free(struct es_handover_sender **sender);

/**
 * struct es_handover_order - what goes into a message besides the packet (struct es_handover)
 * @cost, @url_key: struct es_request_view's
 * @rejection: of a request that is answered instead of being given to a node; @next_request_seq is then where
 * what the answer acknowledges ends
 * @moved: a later request, of a connection that was on another node
 * @unsafe: it must not be executed twice
 * @content, @is_named: struct es_request_view's; for this node alone
 * @why: an enum es_move_why, of a request that moves its connection; for this node alone
 * @repeat: this node was given the request before; its client has sent it again
 * @tsecr: the timestamp that the request's client has echoed, 0 without; for this node alone
 */
struct es_handover_order {
	uint64_t url_key;
	uint64_t content;
	struct es_rejection rejection;
	enum es_handover_kind kind;
	unsigned int service;
	unsigned int attempt;
	uint32_t requests;
	uint32_t next_request_seq;
	uint32_t tsecr;
	uint32_t cost;
	uint16_t moves;
	struct es_tcp_options options;
	uint8_t request_flags;
	uint8_t pin;
	uint8_t moved;
	uint8_t unsafe;
	uint8_t why;
	uint8_t repeat;
	uint8_t is_named;
};

/* es_handover_order_of() - the order that made a message, which came back */
void es_handover_order_of(const struct es_handover *header, struct es_handover_order *ret_order);

/**
 * request_handover() - hand the connection of @packet over to node @target (DTS section 2.1, Fig. 3)
 * @packet: the client's packet, bytes unchanged, at most ES_HANDOVER_PACKET_MAX of them; copied
 * The message is queued; es_handover_flush() sends. Messages to one node keep their order.
 * Returns 0; -EMSGSIZE; -ENOENT for a target that is no node.
 */
int request_handover(struct es_handover_sender *sender, const struct es_cluster *cluster,
		     const struct es_handover_order *order, const uint8_t *packet, size_t len,
		     unsigned int target);

/**
 * es_handover_flush() - send what is queued, in one system call for each node that gets something
 * Returns how many messages could not be sent; their clients retransmit.
 */
unsigned int es_handover_flush(struct es_handover_sender *sender);

/* Descriptor of the sender: readable when a NACK or an error is there. */
int es_handover_sender_fd(const struct es_handover_sender *sender);

/**
 * struct es_handover_back - what came back to a sender
 * @node: that it is about
 * @header, @packet: of a NACK or an answer; of a message that was not received, as far as it is quoted
 * @quoted: bytes of the latter's packet, perhaps less than it has
 */
struct es_handover_back {
	unsigned int node;
	size_t quoted;
	struct es_handover header;
	uint8_t packet[ES_HANDOVER_PACKET_MAX];
};

/**
 * es_handover_receive() - take one NACK, one answer about a program's connection, or one error
 * Returns the packet's length; 0 if there is nothing now; -EBADMSG for a message that is no authentic NACK;
 * -ECONNREFUSED when a message was not received, since no datapath takes handovers there (ICMP port
 * unreachable) or nobody is there (host unreachable, which this node's own kernel says). Routers and kernels
 * tell of some such messages only, RFC 1812 section 4.3.2.8. -ENOMSG for an ICMP error that says something
 * else, or does not quote one of the last messages up to its MAC, which only those know that saw it: it means
 * nothing.
 */
int es_handover_receive(struct es_handover_sender *sender, const struct es_sipkey *keys,
			unsigned int key_count, struct es_handover_back *ret);

/* es_handover_mac() - MAC of a message: header fields before mac, and the packet */
__be64 es_handover_mac(const struct es_sipkey *key, const struct es_handover *header, const uint8_t *packet,
		       size_t len);

#endif
