/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_KERNEL_MARKS_H
#define ES_NETFILTER_KERNEL_MARKS_H

/*
 * Marks of packets that are this datapath's. Marks are the operator's, for his routes and rules. So only these bits of one are
 * used, of packets that the daemon itself has made or put into its device; what comes from the wire keeps its mark, but for what is
 * dropped right behind (drop_by_flow.h).
 */
#include <linux/types.h>

#define ES_NF_MARK_MASK	  0xff000000U
#define ES_NF_MARK_SOURCE 0x45000000U /* source.h */
#define ES_NF_MARK_ANSWER 0x46000000U /* rules.h */

#endif
