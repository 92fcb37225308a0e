/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_RAW_H
#define ES_RAW_H

/*
 * Packets to clients that the inspector makes itself, IP header included, go out through a raw socket of
 * their family.
 */
#include <stddef.h>
#include <stdint.h>
#include "kmod/core/flow.h"

/*
 * struct es_raw - two sockets; -1: not there. A kernel without IPv6 has no @v6_fd, and no clients that need
 * it.
 */
struct es_raw {
	int v4_fd;
	int v6_fd;
};

#define ES_RAW_CLOSED ((struct es_raw){.v4_fd = -1, .v6_fd = -1})

/* es_raw_open() - returns 0 or -errno; on failure nothing is left open */
int es_raw_open(struct es_raw *raw);
void es_raw_close(struct es_raw *raw);

/* es_raw_mark() - what is sent from now on has this mark for the kernel's rules. Returns 0 or -errno. */
int es_raw_mark(const struct es_raw *raw, unsigned int mark);

/*
 * es_raw_send() - send a packet to the client of @flow. Returns 0 or -errno; the network may lose it all the
 * same.
 */
int es_raw_send(const struct es_raw *raw, const struct es_flow *flow, const uint8_t *bytes, size_t len);

#endif
