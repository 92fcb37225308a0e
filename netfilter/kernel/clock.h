/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_KERNEL_CLOCK_H
#define ES_NETFILTER_KERNEL_CLOCK_H

#include <linux/types.h>
#include <time.h>

/* es_nf_now_ns() - CLOCK_MONOTONIC */
static inline __u64 es_nf_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (__u64)now.tv_sec * 1000000000 + (__u64)now.tv_nsec;
}

#endif
