// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads Host as RFC 9110 section 7.2 writes it, and compares it with what the node is called. */
#include <string.h>
#include <strings.h>
#include "inspector/config/address.h"
#include "inspector/status/host.h"

#define HOST_SIZE ES_CONF_PATH_SIZE

/* Without port, brackets and final dot. Returns 0: nothing that could be a name. */
static int read_host(const char *host, char ret_name[HOST_SIZE])
{
	const char *end = strrchr(host, ':'), *close = strchr(host, ']');
	size_t len;

	if (*host == '[') {
		if (!close || (close[1] && close[1] != ':'))
			return 0;
		end = close;
		host++;
	} else if (!end || strchr(host, ':') != end) {
		end = host + strlen(host); /* no port, or an IPv6 address without brackets */
	}
	len = (size_t)(end - host);
	if (len && host[len - 1] == '.')
		len--;
	if (!len || len >= HOST_SIZE)
		return 0;
	memcpy(ret_name, host, len);
	ret_name[len] = 0;
	return 1;
}

static int is_loopback(const struct es_addr *address)
{
	static const struct es_addr one = {.b = {[15] = 1}};

	return es_addr_is_v4(address) ? address->b[12] == 127 : es_addr_equal(address, &one);
}

/* @listed: an address, a name, or *.DOMAIN */
static int is_listed(const char *listed, const char *name, const struct es_addr *address)
{
	size_t len = strlen(name), domain_len;
	struct es_addr other;

	if (!es_conf_addr_parse(listed, &other))
		return address && es_addr_equal(&other, address);
	if (strncmp(listed, "*.", 2) != 0)
		return !strcasecmp(listed, name);
	domain_len = strlen(listed + 1);
	return len > domain_len && !strcasecmp(listed + 1, name + len - domain_len);
}

int es_host_is_called(const struct es_host *of, const char *host)
{
	struct es_addr read, *address = NULL;
	char name[HOST_SIZE];

	if (!read_host(host, name))
		return 0;
	if (!es_conf_addr_parse(name, &read))
		address = &read;
	if (address ? es_addr_equal(address, &of->address) || is_loopback(address)
		    : !strcasecmp(name, "localhost") || !strcasecmp(name, of->node))
		return 1;
	for (const char *listed = NULL; (listed = es_conf_list_next(of->names, listed));)
		if (is_listed(listed, name, address))
			return 1;
	return 0;
}
