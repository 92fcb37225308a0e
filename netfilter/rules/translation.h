/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_RULES_TRANSLATION_H
#define ES_NETFILTER_RULES_TRANSLATION_H

/*
 * Lets the kernel find the servers of connections that programs hand over (program_name.h). Their
 * conntrack entries say that packets from the client go to another address than the service's. The kernel
 * translates as entries say while a chain of type nat exists, so this keeps an empty one for each family, in
 * a table of its own. It also keeps an address for each service on `lo`. A loopback address would not do: the
 * kernel drops packets from the wire for one. An address that anything else uses would not do either: the
 * client may already have a connection to it from the same port. Both outlive the daemon, as the connections
 * do, until es_nf_translation_remove().
 */
#include "netfilter/rules/rules.h"

#define ES_NF_TRANSLATION_TABLE "earshot-translate"

/*
 * es_nf_translation_address() - the server address of the configuration's service number @service
 * IPv4: link-local, which no router forwards (RFC 3927). IPv6: unique local (RFC 4193); its digits spell
 * "Earshot".
 */
#define ES_NF_TRANSLATION_PREFIX  "169.254.69.0"
#define ES_NF_TRANSLATION_PREFIX6 "fd45:6172:7368:6f74::"
struct es_addr es_nf_translation_address(int is_v6, unsigned int service);

/* struct es_nf_translation - what the tables looked like when they were set */
struct es_nf_translation {
	struct es_nf_whole whole[ES_NF_RULES_TABLES];
};

/**
 * es_nf_translation_set() - set what is missing, for the families that @rules serve
 * Returns 0; or with @why: -EOPNOTSUPP if the kernel's nf_tables cannot translate; or -errno.
 */
int es_nf_translation_set(struct es_nf_netlink *nl, const struct es_nf_rules *rules,
			  struct es_nf_translation *ret, struct es_nf_why *why);

/* es_nf_translation_is_whole() - are the tables as they were set? Returns 1, 0 or -errno. */
int es_nf_translation_is_whole(struct es_nf_netlink *nl, const struct es_nf_rules *rules,
			       const struct es_nf_translation *translation);

/* es_nf_translation_remove() - Returns 0, also if there is none, or -errno. */
int es_nf_translation_remove(struct es_nf_netlink *nl);

#endif
