/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_KERNEL_MARKS_H
#define ES_NETFILTER_KERNEL_MARKS_H

/*
 * The bits of a packet's mark that this datapath uses. Marks belong to the operator's routes and rules. So
 * the daemon sets these bits only on packets that it has made, or has put into its tun device. Packets from
 * the wire keep their marks, but for those that a chain drops next (drop_by_flow.h).
 */
#include <linux/types.h>

#define ES_NF_MARK_MASK	  0xff000000U
#define ES_NF_MARK_SOURCE 0x45000000U /* source.h */
#define ES_NF_MARK_ANSWER 0x46000000U /* rules.h */

#endif
