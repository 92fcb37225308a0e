/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_PUBLIC_LINK_H
#define ES_PUBLIC_LINK_H

/*
 * Does this node hear the clients' network? A cable that was pulled has no carrier; a switch that loses
 * everything has one. So each node sends a small frame to the cluster MAC now and then, which all others
 * receive; one that receives nothing at all for a while, though there are others, is deaf.
 */
#include <stdint.h>
#include "inspector/config.h"

struct es_public_link {
	int fd;
	unsigned int ifindex;
	unsigned char frame[60];
	uint64_t received;
	uint64_t heard_ms;
	uint64_t probed_ms;
	int is_deaf;
};

/* es_public_link_open() - @public_mac: this node's own there. Returns 0 or -errno. */
int es_public_link_open(struct es_public_link *link, const struct es_conf *conf, unsigned int ifindex,
			const unsigned char *public_mac);
void es_public_link_close(struct es_public_link *link);

/**
 * es_public_link_check() - say that we are here, and look what we heard; call it often
 * @has_others: there are members that do the same
 * Returns what is wrong, for the operator, or NULL.
 */
const char *es_public_link_check(struct es_public_link *link, const char *interface, int has_others,
				 uint64_t now_ms);

#endif
