/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SOLICITED_H
#define ES_SOLICITED_H

/*
 * The multicast groups to which clients' networks send when they ask where a service's IPv6 address is (its
 * solicited-node group, RFC 4291 section 2.7.1). The address itself is on lo, for which no kernel joins one,
 * and a switch that snoops MLD keeps a group's frames from who has not joined it.
 */
#include "inspector/base/error.h"
#include "inspector/config/config.h"

/* es_solicited_group() - of an IPv6 address */
struct es_addr es_solicited_group(const struct es_addr *address);

/**
 * es_solicited_open() - be in the groups of all services on the interface @ifindex, until the socket is
 * closed
 * @ret_fd: the socket; -1 if no service has such an address. Returns 0; or -errno and @err.
 */
int es_solicited_open(const struct es_conf *conf, unsigned int ifindex, int *ret_fd,
		      struct es_conf_error *err);

/**
 * es_solicited_replace() - *@fd becomes @next, and what was there is closed; -1: none
 * In this order, so that the network is not told that anybody has left a group that is still wanted.
 */
void es_solicited_replace(int *fd, int next);

#endif
