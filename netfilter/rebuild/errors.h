/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_REBUILD_ERRORS_H
#define ES_NETFILTER_REBUILD_ERRORS_H

/*
 * ICMP errors (RFC 792, RFC 4443) about what a connection made here has sent: most of all that a packet was too big for
 * some network on its way. They quote it as it was on the wire, and the kernel's connection tracking does not shift its number
 * back: so its socket, which knows it by another one, would take the error for a forged one.
 */
#include <stddef.h>
#include "netfilter/kernel/entry.h"

/* The longest error that is read. RFC 4443, 2.4 wants them to be shorter; those of IPv4 are, too. */
#define ES_NF_ERROR_MAX 1500

/**
 * struct es_nf_error - where an error has what it quotes
 * @flow: of the connection; @check_at: the ICMP checksum; @seq_at: the quoted sequence number
 */
struct es_nf_error {
	struct es_flow flow;
	size_t check_at;
	size_t seq_at;
};

/**
 * es_nf_errors_read() - @packet: an ICMP error of IPv4 or IPv6, @len bytes
 * Returns 0; -EBADMSG if it quotes no segment, or not enough of it.
 */
int es_nf_errors_read(const __u8 *packet, size_t len, struct es_nf_error *ret_error);

/**
 * es_nf_errors_translate() - change @packet as its server's socket must hear it
 * @entry: of @error's flow. A byte that does not matter changes, too, lest the connection tracking change others.
 */
void es_nf_errors_translate(const struct es_nf_error *error, const struct es_nf_entry *entry, __u8 *packet);

#endif
