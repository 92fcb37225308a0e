/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_REBUILD_PROBE_H
#define ES_NETFILTER_REBUILD_PROBE_H

/* Can this kernel rebuild connections (rebuild.h)? Version numbers tell little; a connection tells all. */
#include "netfilter/kernel/why.h"

/**
 * es_nf_probe() - make a connection of each family, in a network namespace that vanishes afterwards
 * Takes some milliseconds, and does not touch the machine's network. Needs CAP_SYS_ADMIN and CAP_NET_ADMIN.
 * @ret_has_v6: whether it works for IPv6, too; may be NULL
 * Returns 0; or -errno, with the missing piece in @why: -EPERM also if no namespace may be made, which says
 * nothing about the kernel.
 */
int es_nf_probe(int *ret_has_v6, struct es_nf_why *why);

/* es_nf_probe_ingress() - do this kernel's nf_tables have an ingress hook (ingress.h)? Likewise. */
int es_nf_probe_ingress(struct es_nf_why *why);

/*
 * es_nf_probe_translation() - does the kernel translate to where programs' servers listen (translation.h)?
 * Likewise.
 */
int es_nf_probe_translation(struct es_nf_why *why);

#endif
