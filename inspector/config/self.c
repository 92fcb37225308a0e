// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which node of the configuration this machine is: by the name that the operator gives, or by comparing the
 * nodes' addresses with those of the local interfaces. It looks at the machine, never at the file.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <string.h>

#include "inspector/config/config.h"

/* "n1 (10.78.0.1), n2 (10.78.0.2), ..." as far as it fits */
static void list_nodes(const struct es_conf *conf, char *list, size_t size)
{
	char text[INET6_ADDRSTRLEN];
	size_t used = 0;
	unsigned int i;

	list[0] = 0;
	for (i = 0; i < conf->node_count; i++) {
		int n;

		if (conf->nodes[i].removed)
			continue;
		n = snprintf(list + used, size - used, "%s%s (%s)", used ? ", " : "", conf->nodes[i].name,
			     es_conf_addr_text(&conf->nodes[i].address, text));
		if (n < 0 || (size_t)n >= size - used - 6) {
			snprintf(list + used, size - used, ", ..."); /* its 6 bytes were left free */
			return;
		}
		used += (size_t)n;
	}
}

static int find_by_name(const struct es_conf *conf, const char *name, unsigned int *ret_index,
			struct es_conf_error *err)
{
	char list[256];
	unsigned int i;

	for (i = 0; i < conf->node_count; i++) {
		if (strcmp(conf->nodes[i].name, name) != 0)
			continue;
		if (conf->nodes[i].removed) {
			es_conf_error_set(err,
					  "%s: node %s: removed = yes: expected no daemon on it any more",
					  conf->path, name);
			return -ENOENT;
		}
		*ret_index = i;
		return 0;
	}
	list_nodes(conf, list, sizeof(list));
	es_conf_error_set(err, "%s: no node named \"%.80s\": expected %s", conf->path, name, list);
	return -ENOENT;
}

static int is_local(const struct ifaddrs *addresses, const struct es_addr *address)
{
	const struct ifaddrs *a;

	for (a = addresses; a; a = a->ifa_next) {
		const struct sockaddr_in6 *v6 = (const void *)a->ifa_addr;
		const struct sockaddr_in *v4 = (const void *)a->ifa_addr;

		if (!a->ifa_addr)
			continue;
		if (a->ifa_addr->sa_family == AF_INET && es_addr_is_v4(address) &&
		    v4->sin_addr.s_addr == address->w[3])
			return 1;
		if (a->ifa_addr->sa_family == AF_INET6 && !memcmp(&v6->sin6_addr, address, sizeof(*address)))
			return 1;
	}
	return 0;
}

void es_conf_use_node(struct es_conf *conf, unsigned int self)
{
	const struct es_conf_node *node = &conf->nodes[self];

	if (*node->interface)
		memcpy(conf->datapath.interface, node->interface, sizeof(node->interface));
	if (*node->cluster_interface)
		memcpy(conf->datapath.cluster_interface, node->cluster_interface,
		       sizeof(node->cluster_interface));
}

int es_conf_find_self(const struct es_conf *conf, const char *name, unsigned int *ret_index,
		      struct es_conf_error *err)
{
	unsigned int i, index = 0, matches = 0;
	struct ifaddrs *addresses;
	char list[256];
	int r;

	if (name)
		return find_by_name(conf, name, ret_index, err);
	if (getifaddrs(&addresses)) {
		r = -errno;
		es_conf_error_set(err, "%s: the addresses of this machine cannot be read: %s", conf->path,
				  strerror(-r));
		return r;
	}
	for (i = 0; i < conf->node_count; i++) {
		if (conf->nodes[i].removed || !is_local(addresses, &conf->nodes[i].address))
			continue;
		if (!matches++)
			index = i;
	}
	freeifaddrs(addresses);
	if (matches == 1) {
		*ret_index = index;
		return 0;
	}
	list_nodes(conf, list, sizeof(list));
	if (matches) {
		es_conf_error_set(
			err, "%s: this machine has the addresses of %u nodes: expected --node NAME of %s",
			conf->path, matches, list);
		return -EEXIST;
	}
	es_conf_error_set(
		err,
		"%s: this machine has no node's address: expected one of %s on an interface, or --node NAME",
		conf->path, list);
	return -ENOENT;
}
