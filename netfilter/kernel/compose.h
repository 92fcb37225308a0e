/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_KERNEL_COMPOSE_H
#define ES_NETFILTER_KERNEL_COMPOSE_H

/*
 * Packets as the client of a flow would send them.
 */
#include <stddef.h>
#include <linux/tcp.h>
#include "kmod/core/flow.h"

#define ES_NF_ALIGNED __attribute__((aligned(4)))
#define ES_NF_IP_MAX  40 /* bytes of the longest IP header that is made */

/**
 * es_nf_compose() - the headers of a packet, without flags and numbers
 * @like: a packet of the client's own, whose way through the network it seems to have taken (TTL, DSCP, flow label); or NULL
 * @tcp_len: bytes of the TCP header with its options, and of the payload
 * @header_len: of these, the header's, a multiple of 4
 * @ret_packet: aligned to 4 bytes; room for ES_NF_IP_MAX + @tcp_len bytes; all of them but options and payload are written
 * Returns the TCP header, which the caller completes.
 */
struct tcphdr *es_nf_compose(const struct es_flow *flow, const __u8 *like, size_t tcp_len, size_t header_len,
			     __u8 *ret_packet);

/* es_nf_compose_end() - the checksum. Returns the packet's length, IP header and all. */
size_t es_nf_compose_end(const struct es_flow *flow, struct tcphdr *tcp, size_t tcp_len);

#endif
