// SPDX-License-Identifier: GPL-2.0-or-later
/* Where a server listens, as the configuration has it: an address with a port, or a UNIX socket. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inspector/config/address.h"
#include "kmod/core/headers.h"

#define UNIX_PREFIX "unix:"

static int unix_parse(const char *path, struct es_conf_endpoint *ret)
{
	struct es_conf_endpoint endpoint = {};

	if (path[0] != '/' || !path[1] || strlen(path) >= sizeof(endpoint.path))
		return -EINVAL;
	memcpy(endpoint.path, path, strlen(path) + 1);
	*ret = endpoint;
	return 0;
}

static int port_parse(const char *text, unsigned int *ret_port)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long port = digits && digits <= 5 && !text[digits] ? strtoul(text, NULL, 10) : 0;

	if (!port || port > 65535)
		return -EINVAL;
	*ret_port = (unsigned int)port;
	return 0;
}

/* A single machine's, this one perhaps: neither a group's, nor that of a link, which needs an interface. */
static int is_of_server(const struct es_addr *address)
{
	const unsigned char first = address->b[es_addr_is_v4(address) ? 12 : 0];

	if (es_addr_is_v4(address))
		return first && first < 224;
	return es_addr_is_set(address) && first != 0xff && !es_addr_is_link_local(address);
}

int es_conf_endpoint_parse(const char *text, struct es_conf_endpoint *ret_endpoint)
{
	struct es_conf_endpoint endpoint = {};
	const char *colon = strrchr(text, ':'), *begin = text, *end = colon;
	char address[64] = "";

	if (!strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX)))
		return unix_parse(text + strlen(UNIX_PREFIX), ret_endpoint);
	if (!colon || port_parse(colon + 1, &endpoint.port))
		return -EINVAL;
	if (text[0] == '[') {
		begin++;
		end--;
		if (*end != ']')
			return -EINVAL;
	}
	if (end <= begin || (size_t)(end - begin) >= sizeof(address))
		return -EINVAL;
	memcpy(address, begin, (size_t)(end - begin));
	if (es_conf_addr_parse(address, &endpoint.address) || !is_of_server(&endpoint.address) ||
	    (text[0] == '[') != !!strchr(address, ':') ||
	    (text[0] == '[' && es_addr_is_v4(&endpoint.address)))
		return -EINVAL;
	*ret_endpoint = endpoint;
	return 0;
}
