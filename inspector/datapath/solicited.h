/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SOLICITED_H
#define ES_SOLICITED_H

/*
 * The multicast groups to which clients' networks send when they ask where a service's IPv6 address is (its
 * solicited-node group, RFC 4291 section 2.7.1). The address itself is on lo, for which no kernel joins one, and a switch
 * that snoops MLD keeps a group's frames from who has not joined it.
 */
#include "inspector/base/error.h"
#include "inspector/config/config.h"

/* es_solicited_group() - of an IPv6 address */
struct es_addr es_solicited_group(const struct es_addr *address);

/**
 * es_solicited_join() - be in the groups of all services on the interface @ifindex, until the socket is closed
 * @fd: the socket of the time before, -1: none. It is closed when the new one is in its groups, so that the network is not told
 * that anybody has left one that is still wanted. *@fd gets the new one; -1 if no service has such an address.
 * Returns 0; or -errno and @err, and *@fd is as before.
 */
int es_solicited_join(const struct es_conf *conf, unsigned int ifindex, int *fd, struct es_conf_error *err);

#endif
