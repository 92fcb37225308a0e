/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_REBUILD_RESETS_H
#define ES_NETFILTER_REBUILD_RESETS_H

/*
 * The RST by which a server ends an open connection. The kernel's SYNPROXY hook takes every RST for the
 * answer to a SYN, and gives it the number of the first byte. A client that has received more does not
 * believe that, and waits. So this datapath sends its own.
 */
#include <stddef.h>
#include "netfilter/kernel/compose.h"
#include "netfilter/kernel/entry.h"

/* Bytes of the longest RST below. */
#define ES_NF_RESET_MAX 60

/*
 * es_nf_resets_flow() - the flow of a RST that leaves by IPv4 or IPv6, as its socket has it. Returns 0, or
 * -EBADMSG if it is not a RST.
 */
int es_nf_resets_flow(const __u8 *packet, size_t len, struct es_flow *ret_flow);

/*
 * es_nf_resets_is_idle() - does the RST tell its client nothing? @packet: read by es_nf_resets_flow();
 * @entry: its flow's Either both sides have closed, and know it of each other, or the client has ended the
 * connection by a RST. Then the stack has answered a late copy of a client's packet, such as a FIN that the
 * inspecting node has heard as well, since it knows no connection any more. Or the packet belongs to the next
 * connection of these ports, which may be another node's.
 */
int es_nf_resets_is_idle(const __u8 *packet, size_t len, const struct es_nf_entry *entry);

/**
 * es_nf_resets_translate() - write the RST as the client must receive it, without options
 * @packet: read by es_nf_resets_flow(); @entry: its flow's
 * Returns its length; or 0: the handshake is not over, and the kernel does it right.
 */
size_t es_nf_resets_translate(const __u8 *packet, size_t len, const struct es_nf_entry *entry,
			      __u8 ret_reset[ES_NF_RESET_MAX]);

/**
 * es_nf_resets_span() - which numbers may a client still acknowledge that has not received the RST?
 * (kmod/core/resets.h)
 * @reset: of es_nf_resets_translate(), from the server of @flow
 */
void es_nf_resets_span(const struct es_flow *flow, const __u8 *reset, __u32 *ret_first, __u32 *ret_under_way);

/* es_nf_resets_make() - a RST with the number @seq, to the flow's client. Returns its length. */
size_t es_nf_resets_make(const struct es_flow *flow, __u32 seq, __u8 ret_reset[ES_NF_RESET_MAX]);

#endif
