/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_KERNEL_SOURCE_H
#define ES_NETFILTER_KERNEL_SOURCE_H

/*
 * What clients send seems to come in by our tun device, and the way back to them is another interface. Where the kernel
 * checks sources strictly (rp_filter 1) it would refuse that. So what comes in there is marked (hook.h), the check
 * heeds the mark, and for packets with this mark the way to everywhere is the tun device. Nothing is sent that way: what
 * the server answers has no mark. Rules of a firewall that ask the same (firewalld's IPv6_rpfilter) are content, too.
 *
 * Packets have the mark only while they are checked, so that nobody takes it over: a rule that saves marks with the connection,
 * or a socket that has the mark of its SYN (tcp_fwmark_accept), would have answers go by the tun device.
 */
#include "netfilter/kernel/marks.h"
#include "netfilter/kernel/tun.h"

/* ES_NF_SOURCE_TABLE - the number of the routing table; no value that people choose */
#define ES_NF_SOURCE_TABLE 0x45534e46U

/* es_nf_source_is_strict() - does this network namespace check strictly? 1, 0 or -errno. */
int es_nf_source_is_strict(void);

/**
 * es_nf_source_set() - let everything come in by @tun that has the mark
 * The routes go with the device; a rule without them, as a crash leaves it, says nothing, and the next call takes it over.
 * Returns 0 or -errno, with @why.
 */
int es_nf_source_set(const struct es_nf_tun *tun, struct es_nf_why *why);

/* es_nf_source_clear() - remove the rules, if there are any */
void es_nf_source_clear(void);

#endif
