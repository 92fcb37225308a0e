// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What cannot be served yet: IPv6 is parsed and kept everywhere, and refused here, in this one place. When the last
 * can, this file and its calls go.
 */
#include <arpa/inet.h>
#include <errno.h>

#include "inspector/config/internal.h"

static int es_family_refuse(const struct es_conf *conf, const struct es_conf_node *node,
			    struct es_conf_error *err)
{
	char text[INET6_ADDRSTRLEN];

	es_conf_error_set(
		err,
		"%s:%d: node %s: address = %s: nodes of this version talk to each other by IPv4 only: "
		"expected an IPv4 address",
		conf->path, node->address_line, node->name, es_conf_addr_text(&node->address, text));
	return -EINVAL;
}

int es_conf_family_check(const struct es_conf *conf, struct es_conf_error *err)
{
	for (unsigned int i = 0; i < conf->node_count; i++)
		if (!es_addr_is_v4(&conf->nodes[i].address))
			return es_family_refuse(conf, &conf->nodes[i], err);
	return 0;
}
