/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_RULES_TRANSLATION_H
#define ES_NETFILTER_RULES_TRANSLATION_H

/*
 * Where the kernel finds the servers of connections that programs hand over (program_name.h). Their conntrack entries say that what
 * clients send is for another address than the service's. The kernel translates so while there is a chain of type nat, so
 * this keeps an empty one for each family, in a table of its own. And it keeps an address of each service on `lo`, which is nobody
 * else's: what arrives for a loopback address the kernel drops; and to one that others have, too, a client may have a connection
 * already, by the same port of its own.
 *
 * Both outlive the daemon, as the connections do, and go with es_nf_translation_remove().
 */
#include "netfilter/rules/rules.h"

#define ES_NF_TRANSLATION_TABLE "earshot-translate"

/*
 * es_nf_translation_address() - that of a configuration's service
 * Of a link, so that no router forwards what is for it (RFC 3927); and a unique local one (RFC 4193), whose digits say "Earshot".
 */
#define ES_NF_TRANSLATION_PREFIX  "169.254.69.0"
#define ES_NF_TRANSLATION_PREFIX6 "fd45:6172:7368:6f74::"
struct es_addr es_nf_translation_address(int is_v6, unsigned int service);

/* struct es_nf_translation - what the tables looked like when they were set */
struct es_nf_translation {
	struct es_nf_whole whole[ES_NF_RULES_TABLES];
};

/**
 * es_nf_translation_set() - set what is missing, of the families that @rules serve
 * Returns 0; -EOPNOTSUPP, with @why, if nf_tables of this kernel translate nothing; or -errno, with @why.
 */
int es_nf_translation_set(struct es_nf_netlink *nl, const struct es_nf_rules *rules,
			  struct es_nf_translation *ret, struct es_nf_why *why);

/* es_nf_translation_is_whole() - are the tables as they were set? 1, 0 or -errno. */
int es_nf_translation_is_whole(struct es_nf_netlink *nl, const struct es_nf_rules *rules,
			       const struct es_nf_translation *translation);

/* es_nf_translation_remove() - Returns 0, also if there is none, or -errno. */
int es_nf_translation_remove(struct es_nf_netlink *nl);

#endif
