/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_REBUILD_PROBE_H
#define ES_NETFILTER_REBUILD_PROBE_H

/*
 * Can this kernel rebuild connections (rebuild.h)? Versions tell little; a connection tells all.
 */
#include "netfilter/kernel/why.h"

/**
 * es_nf_probe() - make a connection of IPv4 and one of IPv6, in a network namespace that is gone afterwards
 * Takes some milliseconds; nothing of the machine's own network changes. Needs CAP_SYS_ADMIN and CAP_NET_ADMIN.
 * @ret_has_v6: whether it works for IPv6, too; may be NULL
 * Returns 0; or -errno, with the missing piece in @why: -EPERM also where no namespace may be made, which says nothing of
 * the kernel.
 */
int es_nf_probe(int *ret_has_v6, struct es_nf_why *why);

/* es_nf_probe_ingress() - do nf_tables of this kernel see what comes in (ingress.h)? Tried and told in the same way. */
int es_nf_probe_ingress(struct es_nf_why *why);

/* es_nf_probe_translation() - does the kernel lead connections to where programs' servers listen (translation.h)? Likewise. */
int es_nf_probe_translation(struct es_nf_why *why);

#endif
