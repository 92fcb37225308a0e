/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_ENGINE_TAP_H
#define ES_NETFILTER_ENGINE_TAP_H

/*
 * Copies of packets that servers send by the public interface, of services that inspect every request. They
 * are taken after everything that changes a packet, so they have the numbers that the client knows. A
 * packet's copy is here before the packet is on the wire. So whoever reads the tap after a client's
 * acknowledgement finds all that it acknowledges, unless there was no room.
 */
#include "netfilter/rules/rules.h"

struct es_nf_tap;

/* es_nf_tap_new() - Returns 0 or -errno, with @why. */
int es_nf_tap_new(struct es_nf_tap **ret_tap, struct es_nf_why *why);

/* es_nf_tap_free() - takes NULL */
void es_nf_tap_free(struct es_nf_tap **tap);

/* es_nf_tap_listen() - from now on, copy what leaves for clients of @rules' services. Returns 0 or -errno. */
int es_nf_tap_listen(struct es_nf_tap *tap, const struct es_nf_rules *rules);

/* es_nf_tap_fd() - readable while there are copies */
int es_nf_tap_fd(const struct es_nf_tap *tap);

/**
 * es_nf_tap_read() - read all copies, without waiting
 * @fn: called for each, from its IP header on
 */
typedef void (*es_nf_tap_fn)(void *ctx, const uint8_t *packet, size_t len);
void es_nf_tap_read(struct es_nf_tap *tap, es_nf_tap_fn fn, void *ctx);

#endif
