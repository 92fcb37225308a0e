/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_KERNEL_RAW_H
#define ES_NETFILTER_KERNEL_RAW_H

/*
 * Raw sockets, for whole packets of either family that leave by the stack.
 */
#include <linux/types.h>
#include <stddef.h>

/* struct es_nf_raw - for what is sent only; -1: not open, or the kernel has no IPv6 */
struct es_nf_raw {
	int v4;
	int v6;
};

/* es_nf_raw_open() - @mark: of what is sent; 0: none. Returns 0 or -errno; then, too, it is to be closed. */
int es_nf_raw_open(struct es_nf_raw *raw, __u32 mark);
void es_nf_raw_close(struct es_nf_raw *raw);

/* es_nf_raw_distrust_errors() - no ICMP error, which anybody could send, tells how long a packet may be. Returns 0 or -errno. */
int es_nf_raw_distrust_errors(const struct es_nf_raw *raw);

/* es_nf_raw_send() - a packet, to where it says, without waiting. Returns 0 or -errno. */
int es_nf_raw_send(const struct es_nf_raw *raw, const void *packet, size_t len);

#endif
