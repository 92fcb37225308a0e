/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_PUBLIC_H
#define ES_NETFILTER_NODE_PUBLIC_H

#include "netfilter/node/node.h"

/**
 * es_nf_public() - a packet that has arrived on the public interface
 * @frame: at least an IP header, without holes: the kernel has put fragments together, and cut what it had
 * merged
 * The counterpart of es_public in kmod/bpf/earshot.bpf.c. Counts. Returns what is to become of the packet
 * itself.
 */
enum es_nf_fate es_nf_public(struct es_nf_node *node, const struct es_nf_frame *frame);

#endif
