/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CONFIG_ADDRESS_H
#define ES_CONFIG_ADDRESS_H

/* Addresses of either family, networks, and where servers listen: from text and to text. */
#include "inspector/base/prefix.h"
#include "kmod/core/types.h"

static inline int es_addr_is_set(const struct es_addr *address)
{
	return address->w[0] || address->w[1] || address->w[2] || address->w[3];
}

/* Text of an address ("10.0.0.1"; IPv6 as RFC 5952); @text has room for INET6_ADDRSTRLEN bytes. Returns
 * @text. */
const char *es_conf_addr_text(const struct es_addr *address, char *text);

/* Parses an IPv4 address, or an IPv6 one. Return: 0 or -EINVAL. */
int es_conf_addr_parse(const char *text, struct es_addr *ret_address);

/*
 * es_conf_network_parse() - "192.0.2.0/24", "2001:db8::/32" or an address; bits after the prefix must be 0. 0
 * or -EINVAL.
 */
int es_conf_network_parse(const char *text, struct es_prefix *ret_network);

/* struct es_conf_endpoint - where a server listens: @path of a UNIX socket; "": at @address and @port */
struct es_conf_endpoint {
	char path[108];
	struct es_addr address;
	unsigned int port;
};

/*
 * es_conf_endpoint_parse() - "127.0.0.1:8080", "[::1]:8080" or "unix:/run/web.sock". Returns 0 or -EINVAL.
 */
int es_conf_endpoint_parse(const char *text, struct es_conf_endpoint *ret_endpoint);

#endif
