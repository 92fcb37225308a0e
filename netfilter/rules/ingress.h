/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_RULES_INGRESS_H
#define ES_NETFILTER_RULES_INGRESS_H

/*
 * With mac_mode = unicast, all nodes share a MAC that is not their interfaces' own, so the kernel drops
 * frames for it before protocols see them. A chain at the public interface's ingress, in a table of its own,
 * marks frames for the service addresses as this host's. The rules of rules.h then decide about them: they
 * must be set before, and removed after. When the interface goes, the kernel removes the chain and keeps the
 * table; since 6.16 it keeps the chain for an interface of the same name.
 */
#include "netfilter/rules/rules.h"

#define ES_NF_INGRESS_TABLE "earshot-ingress"

/**
 * es_nf_ingress_follow() - set the table in one transaction; or remove it, if the rules are for a group MAC
 * @anew: as for es_nf_nft_begin_table(); needed if there may be a table for another interface. A table that
 * cannot be changed is made anew in any case.
 * @ret_whole: for es_nf_ingress_is_whole(), if the table was set
 * Returns 0; or with @why: -EOPNOTSUPP if the kernel's nf_tables have no ingress hook; -ENODEV: there is no
 * such interface; or -errno.
 */
int es_nf_ingress_follow(struct es_nf_netlink *nl, const struct es_nf_rules *rules, int anew,
			 struct es_nf_whole *ret_whole, struct es_nf_why *why);

/* es_nf_ingress_is_whole() - are table, chain and all rules there? Returns 1, 0 or -errno. */
int es_nf_ingress_is_whole(struct es_nf_netlink *nl, const struct es_nf_whole *whole);

/* es_nf_ingress_is_set() - is there no such table, or one with its chain? Returns 1, 0 or -errno. */
int es_nf_ingress_is_set(struct es_nf_netlink *nl);

/* es_nf_ingress_remove() - Returns 0, also if there is none, or -errno. */
int es_nf_ingress_remove(struct es_nf_netlink *nl);

#endif
