/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_REBUILD_ERRORS_H
#define ES_NETFILTER_REBUILD_ERRORS_H

/*
 * ICMP errors (RFC 792, RFC 4443) about packets that a connection made here has sent: mostly that one was too
 * big for some network. They quote the packet as it was on the wire, and conntrack does not shift the quoted
 * number back. So the socket, which knows other numbers, would take the error for a forged one.
 */
#include <stddef.h>
#include "netfilter/kernel/entry.h"

/* Longer errors are not read. RFC 4443, 2.4 demands shorter ones; those of IPv4 are shorter, too. */
#define ES_NF_ERROR_MAX 1500

/**
 * struct es_nf_error - where an error has what it quotes
 * @flow: the connection's; @check_at: the ICMP checksum; @seq_at: the quoted sequence number
 */
struct es_nf_error {
	struct es_flow flow;
	size_t check_at;
	size_t seq_at;
};

/**
 * es_nf_errors_read() - @packet: an ICMP error of IPv4 or IPv6, @len bytes
 * Returns 0; -EBADMSG if it quotes no TCP segment, or too little of it.
 */
int es_nf_errors_read(const __u8 *packet, size_t len, struct es_nf_error *ret_error);

/**
 * es_nf_errors_translate() - change @packet to what the server's socket must receive
 * @entry: of @error's flow. It also changes a byte that does not matter, so that conntrack changes no other.
 */
void es_nf_errors_translate(const struct es_nf_error *error, const struct es_nf_entry *entry, __u8 *packet);

#endif
