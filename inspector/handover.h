/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_HANDOVER_SEND_H
#define ES_HANDOVER_SEND_H

/*
 * request_handover(): gives a client's connection to a node by sending it the original request packet.
 */
#include "inspector/cluster.h"
#include "inspector/packet.h"
#include "kmod/core/handover.h"

/* The largest packet a message carries: one frame of a jumbo network. */
#define ES_HANDOVER_PACKET_MAX 9000
#define ES_HANDOVER_BATCH      64

struct es_handover_sender;

/**
 * es_handover_sender_new() - one worker's sender
 * @stream: its number, below ES_STREAM_DATAPATH, unique on this node
 * @key: current handover key
 * Opens a UDP socket on the node's cluster address, whose port the NACKs come back to. Returns 0 or -errno.
 */
int es_handover_sender_new(const struct es_cluster *cluster, unsigned int stream, const struct es_sipkey *key,
			   struct es_handover_sender **ret_sender);
/* es_handover_sender_set_key() - sign with another key from now on; what is queued is sent first */
void es_handover_sender_set_key(struct es_handover_sender *sender, const struct es_sipkey *key);

void es_handover_sender_free(struct es_handover_sender **sender);

/* struct es_handover_order - what goes into a message besides the packet */
struct es_handover_order {
	enum es_handover_kind kind;
	unsigned int service;
	unsigned int attempt;
	struct es_tcp_options options;
};

/**
 * request_handover() - hand the connection of @packet over to node @target (DTS section 2.1, Fig. 3)
 * @packet: the client's packet, bytes unchanged, at most ES_HANDOVER_PACKET_MAX of them; copied
 * The message is queued; es_handover_flush() sends. Messages to one node keep their order.
 * Returns 0, or -EMSGSIZE.
 */
int request_handover(struct es_handover_sender *sender, const struct es_cluster *cluster,
		     const struct es_handover_order *order, const uint8_t *packet, size_t len,
		     unsigned int target);

/**
 * es_handover_flush() - send what is queued, in one system call if the kernel takes it
 * Returns how many messages could not be sent; their clients retransmit.
 */
unsigned int es_handover_flush(struct es_handover_sender *sender);

/* Socket of the sender: becomes readable when a NACK is there. */
int es_handover_sender_fd(const struct es_handover_sender *sender);

/**
 * es_handover_receive_nack() - take one NACK from the socket
 * @ret_header: host-readable through the accessors of kmod/core/handover.h
 * @ret_packet: room for ES_HANDOVER_PACKET_MAX bytes
 * Returns the packet's length, 0 if there is none now, -EBADMSG for a message that is not authentic.
 */
int es_handover_receive_nack(struct es_handover_sender *sender, const struct es_sipkey *keys,
			     unsigned int key_count, struct es_handover *ret_header, uint8_t *ret_packet);

/**
 * es_handover_receive_error() - take one ICMP error ("port unreachable": no earshotd ever ran there)
 * Returns 1 and the address of the node that did not take a message, or 0 if there is no error.
 */
int es_handover_receive_error(struct es_handover_sender *sender, struct sockaddr_in *ret_address);

/* es_handover_mac() - MAC of a message: header fields before mac, and the packet */
__be64 es_handover_mac(const struct es_sipkey *key, const struct es_handover *header, const uint8_t *packet,
		       size_t len);

#endif
