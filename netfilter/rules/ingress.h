/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_RULES_INGRESS_H
#define ES_NETFILTER_RULES_INGRESS_H

/*
 * A shared MAC of one station (mac_mode = unicast) is none of any interface's own, so the kernel drops frames for it before
 * its protocols see them. A chain at the public interface's ingress, in a table of its own, says that those for a service
 * address are for this host. The rules of rules.h decide about them then: they must be there before, and go after.
 *
 * With its interface, the kernel removes the chain and leaves the table; since 6.16 it keeps the chain for one of the same name.
 */
#include "netfilter/rules/rules.h"

#define ES_NF_INGRESS_TABLE "earshot-ingress"

/**
 * es_nf_ingress_follow() - set the table, in one transaction; or take it away, if the rules are for a group MAC
 * @anew: as of es_nf_nft_begin_table(); needed if there may be one of another interface. Otherwise it is, too, where it needs be.
 * @ret_whole: for es_nf_ingress_is_whole(), if there is one
 * Returns 0; -EOPNOTSUPP, with @why, if nf_tables of this kernel see no ingress; -ENODEV, with @why: there is no such
 * interface; or -errno, with @why.
 */
int es_nf_ingress_follow(struct es_nf_netlink *nl, const struct es_nf_rules *rules, int anew,
			 struct es_nf_whole *ret_whole, struct es_nf_why *why);

/* es_nf_ingress_is_whole() - are table and chain there, with each rule that was set? 1, 0 or -errno. */
int es_nf_ingress_is_whole(struct es_nf_netlink *nl, const struct es_nf_whole *whole);

/* es_nf_ingress_is_set() - is there no such table, or one with its chain? 1, 0 or -errno. */
int es_nf_ingress_is_set(struct es_nf_netlink *nl);

/* es_nf_ingress_remove() - Returns 0, also if there is none, or -errno. */
int es_nf_ingress_remove(struct es_nf_netlink *nl);

#endif
