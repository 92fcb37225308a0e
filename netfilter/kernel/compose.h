/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_KERNEL_COMPOSE_H
#define ES_NETFILTER_KERNEL_COMPOSE_H

/* Composes packets as the client of a flow would send them. */
#include <stddef.h>
#include <linux/tcp.h>
#include "kmod/core/flow.h"

#define ES_NF_ALIGNED __attribute__((aligned(4)))
#define ES_NF_IP_MAX  40 /* bytes of the longest IP header that it writes */

/**
 * es_nf_compose() - write a packet's headers, without flags and numbers
 * @like: a packet of the same client, whose TTL, DSCP and flow label are copied; or NULL
 * @tcp_len: bytes of the TCP header with its options, and of the payload
 * @header_len: the header's part of @tcp_len, a multiple of 4
 * @ret_packet: aligned to 4 bytes; room for ES_NF_IP_MAX + @tcp_len bytes, of which only options and payload
 * are not written Returns the TCP header, which the caller completes.
 */
struct tcphdr *es_nf_compose(const struct es_flow *flow, const __u8 *like, size_t tcp_len, size_t header_len,
			     __u8 *ret_packet);

/* es_nf_compose_end() - set the checksum. Returns the packet's length including the IP header. */
size_t es_nf_compose_end(const struct es_flow *flow, struct tcphdr *tcp, size_t tcp_len);

#endif
