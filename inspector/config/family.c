// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What cannot be served yet: IPv6 is parsed and kept everywhere, and refused here, in this one place. When the last
 * can, this file and its calls go.
 */
#include <arpa/inet.h>
#include <errno.h>

#include "inspector/config/internal.h"

static int es_family_refuse(const struct es_conf *conf, int line, const char *kind, const char *name,
			    const struct es_addr *address, const char *why, struct es_conf_error *err)
{
	char text[INET6_ADDRSTRLEN];

	es_conf_error_set(err, "%s:%d: %s %s: address = %s: %s", conf->path, line, kind, name,
			  es_conf_addr_text(address, text), why);
	return -EINVAL;
}

int es_conf_family_check(const struct es_conf *conf, enum es_conf_datapath_type datapath,
			 struct es_conf_error *err)
{
	for (unsigned int i = 0; datapath == ES_CONF_DATAPATH_MODULE && i < conf->service_count; i++)
		if (es_addr_is_set(&conf->services[i].address6))
			return es_family_refuse(conf, conf->services[i].address_line, "service",
						conf->services[i].name, &conf->services[i].address6,
						"the module of this version has no IPv6: expected an IPv4 "
						"address, or type = bpf in datapath { }",
						err);
	for (unsigned int i = 0; i < conf->node_count; i++)
		if (!es_addr_is_v4(&conf->nodes[i].address))
			return es_family_refuse(conf, conf->nodes[i].address_line, "node",
						conf->nodes[i].name, &conf->nodes[i].address,
						"nodes of this version talk to each other by IPv4 only: "
						"expected an IPv4 address",
						err);
	return 0;
}
