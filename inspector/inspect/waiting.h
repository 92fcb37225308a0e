/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECT_WAITING_H
#define ES_INSPECT_WAITING_H

/* Clients of lost nodes that wait for an answer, about which all nodes are asked (stray.h). */
#include <stddef.h>
#include <stdint.h>
#include "kmod/core/flow.h"

struct es_inspector;

/**
 * struct es_waiting_client - a client of a lost node that waits for its answer, and has said where it stands
 * @owner: that node; @seq: the number of its next byte; @ack: of the byte that it expects
 */
struct es_waiting_client {
	struct es_flow flow;
	__u64 flow_hash;
	unsigned int service;
	unsigned int owner;
	uint32_t seq;
	uint32_t ack;
};

/* es_waiting_question() - the segment that the nodes are asked about; returns its length.
 * @ret_bytes: room for ES_ANSWER_HEADER_MAX */
size_t es_waiting_question(const struct es_inspector *in, const struct es_waiting_client *client,
			   uint8_t *ret_bytes);

/*
 * es_waiting_reset() - no node has the connection of this question: tell its client, which expects byte
 * @ack
 */
void es_waiting_reset(struct es_inspector *in, unsigned int service, const uint8_t *question, size_t len,
		      uint32_t ack);

#endif
