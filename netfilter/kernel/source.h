/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_KERNEL_SOURCE_H
#define ES_NETFILTER_KERNEL_SOURCE_H

/*
 * The kernel's check of sources. Clients' packets seem to arrive by our tun device, while the route back to
 * the clients uses another interface. With a strict check (rp_filter 1), the kernel would drop them. So
 * packets from the tun device are marked (hook.h), the check heeds the mark, and the route for this mark, to
 * everywhere, is the tun device. Nothing is sent that way: the server's answers have no mark. Firewall rules
 * that check likewise (firewalld's IPv6_rpfilter) are content, too. Packets have the mark only while they are
 * checked. A rule that saves marks with the connection, or a socket that takes over its SYN's mark
 * (tcp_fwmark_accept), would otherwise send answers to the tun device.
 */
#include "netfilter/kernel/marks.h"
#include "netfilter/kernel/tun.h"

/* ES_NF_SOURCE_TABLE - the routing table's number, which nobody chooses by chance */
#define ES_NF_SOURCE_TABLE 0x45534e46U

/* es_nf_source_is_strict() - does this network namespace check strictly? Returns 1, 0 or -errno. */
int es_nf_source_is_strict(void);

/**
 * es_nf_source_set() - let packets with the mark come in by @tun
 * The routes vanish with the device. A crash leaves rules without routes: these do nothing, and the next call
 * takes them over. Returns 0 or -errno, with @why.
 */
int es_nf_source_set(const struct es_nf_tun *tun, struct es_nf_why *why);

/* es_nf_source_clear() - remove the rules, if there are any */
void es_nf_source_clear(void);

#endif
