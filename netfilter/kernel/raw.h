/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_KERNEL_RAW_H
#define ES_NETFILTER_KERNEL_RAW_H

/* Raw sockets that send whole packets of either family through the stack. */
#include <linux/types.h>
#include <stddef.h>

/* struct es_nf_raw - for sending only; -1: not open, or the kernel has no IPv6 */
struct es_nf_raw {
	int v4;
	int v6;
};

/* es_nf_raw_open() - @mark: of the packets; 0: none. Returns 0 or -errno; close it in either case. */
int es_nf_raw_open(struct es_nf_raw *raw, __u32 mark);
void es_nf_raw_close(struct es_nf_raw *raw);

/*
 * es_nf_raw_distrust_errors() - ignore ICMP errors about the path's MTU, which anybody could send. Returns 0
 * or -errno.
 */
int es_nf_raw_distrust_errors(const struct es_nf_raw *raw);

/* es_nf_raw_send() - send a packet to its destination address, without waiting. Returns 0 or -errno. */
int es_nf_raw_send(const struct es_nf_raw *raw, const void *packet, size_t len);

#endif
