/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_REBUILD_RESETS_H
#define ES_NETFILTER_REBUILD_RESETS_H

/*
 * The RST by which a server ends an open connection. The kernel's SYNPROXY hook takes each for the answer to a SYN, and gives
 * it the number of the first byte; a client that has heard more would not believe it, and wait. So this datapath
 * sends its own.
 */
#include <stddef.h>
#include "netfilter/kernel/compose.h"
#include "netfilter/kernel/entry.h"

/* Bytes of what es_nf_resets_translate() makes */
#define ES_NF_RESET_MAX 60

/* es_nf_resets_flow() - of a RST of IPv4 or IPv6 that leaves, as its socket has it. Returns 0, or -EBADMSG if it is none. */
int es_nf_resets_flow(const __u8 *packet, size_t len, struct es_flow *ret_flow);

/*
 * es_nf_resets_is_idle() - does a RST that es_nf_resets_flow() has read tell its client nothing? @entry: of its flow
 * Both sides have closed, and know it of each other; or the client has ended it by a RST. Then a copy of what the client sent
 * came late, as the inspecting node may have heard a FIN, too; the stack answers it, since it knows no connection any more. Or it is
 * of the next connection of these ports, which may be another node's.
 */
int es_nf_resets_is_idle(const __u8 *packet, size_t len, const struct es_nf_entry *entry);

/**
 * es_nf_resets_translate() - the RST as the client must hear it, without options
 * @packet: one that es_nf_resets_flow() has read; @entry: of its flow
 * Returns its length, or 0: its handshake is not over, and the kernel does it right.
 */
size_t es_nf_resets_translate(const __u8 *packet, size_t len, const struct es_nf_entry *entry,
			      __u8 ret_reset[ES_NF_RESET_MAX]);

/**
 * es_nf_resets_span() - which numbers may its client acknowledge still, that has not heard it? (kmod/core/resets.h)
 * @reset: as es_nf_resets_translate() has made it, of @flow's server
 */
void es_nf_resets_span(const struct es_flow *flow, const __u8 *reset, __u32 *ret_first, __u32 *ret_under_way);

/* es_nf_resets_make() - one with the number @seq, for the flow's client. Returns its length. */
size_t es_nf_resets_make(const struct es_flow *flow, __u32 seq, __u8 ret_reset[ES_NF_RESET_MAX]);

#endif
