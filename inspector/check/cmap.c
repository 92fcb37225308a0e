// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Look-ups in the text of corosync's map. It asks no corosync; names in the nodelist are resolved as corosync
 * does it, by the system's resolver.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "inspector/check/cmap.h"

/* The next line, or NULL. */
static const char *line_next(const char *line)
{
	const char *end = strchr(line, '\n');

	return end && end[1] ? end + 1 : NULL;
}

int es_cmap_string(const char *text, const char *key, char *ret_value, size_t size)
{
	size_t len = strlen(key);
	const char *line;

	*ret_value = 0;
	for (line = text; line; line = line_next(line)) {
		if (strncmp(line, key, len) != 0 || strncmp(line + len, " = ", 3) != 0)
			continue;
		snprintf(ret_value, size, "%.*s", (int)strcspn(line + len + 3, "\n"), line + len + 3);
		return 1;
	}
	return 0;
}

long es_cmap_number(const char *text, const char *key, long missing)
{
	char value[64], *end;
	long number;

	if (!es_cmap_string(text, key, value, sizeof(value)))
		return missing;
	number = strtol(value, &end, 10);
	return end == value ? missing : number;
}

int es_cmap_switch(const char *text, const char *key, int missing)
{
	char value[64];

	if (!es_cmap_string(text, key, value, sizeof(value)))
		return missing;
	return !strcasecmp(value, "yes") || !strcasecmp(value, "on") || !strcmp(value, "1");
}

/* Returns whether the name has an address of that family. */
static int resolve_family(const char *name, int family, struct es_addr *ret)
{
	const struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_DGRAM};
	struct addrinfo *list;

	if (getaddrinfo(name, NULL, &hints, &list))
		return 0;
	if (family == AF_INET)
		*ret = es_addr_from_v4(
			((const struct sockaddr_in *)(const void *)list->ai_addr)->sin_addr.s_addr);
	else
		memcpy(ret, &((const struct sockaddr_in6 *)(const void *)list->ai_addr)->sin6_addr,
		       sizeof(*ret));
	freeaddrinfo(list);
	return 1;
}

/* The families in corosync's order: ip_version is ipv4, ipv6, ipv4-6 or ipv6-4, the default. */
static struct es_addr resolve(const char *text, const char *name)
{
	struct es_addr address = {};
	char version[16];
	int is_v4_first;

	if (!es_cmap_string(text, "totem.ip_version", version, sizeof(version)))
		snprintf(version, sizeof(version), "ipv6-4");
	is_v4_first = !strncmp(version, "ipv4", 4);
	if (!resolve_family(name, is_v4_first ? AF_INET : AF_INET6, &address) && strchr(version, '-'))
		resolve_family(name, is_v4_first ? AF_INET6 : AF_INET, &address);
	return address;
}

static void node_read(const char *text, long position, struct es_cmap_node *node)
{
	char key[64];
	int i;

	snprintf(key, sizeof(key), "nodelist.node.%ld.nodeid", position);
	node->nodeid = es_cmap_number(text, key, 0);
	snprintf(key, sizeof(key), "nodelist.node.%ld.quorum_votes", position);
	node->votes = es_cmap_number(text, key, 1);
	snprintf(key, sizeof(key), "nodelist.node.%ld.name", position);
	es_cmap_string(text, key, node->name, sizeof(node->name));
	for (i = 0; i < ES_CMAP_LINKS_MAX; i++) {
		snprintf(key, sizeof(key), "nodelist.node.%ld.ring%d_addr", position, i);
		if (!es_cmap_string(text, key, node->names[node->links], sizeof(node->names[0])))
			continue;
		node->address[node->links] = resolve(text, node->names[node->links]);
		node->links++;
	}
}

int es_cmap_nodes(const char *text, struct es_cmap_node **ret_nodes)
{
	struct es_cmap_node *nodes = calloc(ES_CMAP_NODES_MAX, sizeof(*nodes));
	const char *line;
	int n = 0;

	if (!nodes)
		return -ENOMEM;
	/* Positions may have gaps, when nodes were removed at run time. Each node has an address. */
	for (line = text; line && n < ES_CMAP_NODES_MAX; line = line_next(line)) {
		char field[64];
		long position;

		/* NOLINTNEXTLINE(cert-err34-c): a position out of range is no node's */
		if (sscanf(line, "nodelist.node.%ld.%63s", &position, field) != 2 ||
		    strcmp(field, "ring0_addr") != 0)
			continue;
		node_read(text, position, &nodes[n++]);
	}
	*ret_nodes = nodes;
	return n;
}
