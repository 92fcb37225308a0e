// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a configuration asks of the rules.
 */
#include <string.h>
#include "kmod/core/neighbour.h"
#include "netfilter/rules.h"

/* Services may share an address, and need not have one of each family. */
static void add_address(struct es_nf_rules *rules, const struct es_addr *address)
{
	unsigned int at = 0;

	while (at < rules->count && !es_addr_equal(&rules->address[at], address))
		at++;
	if (at == rules->count && !es_addr_is_unspecified(address))
		rules->address[rules->count++] = *address;
}

static void add_every(struct es_nf_rules *rules, const struct es_addr *address, __be16 port)
{
	if (es_addr_is_unspecified(address))
		return;
	rules->every[rules->every_count].address = *address;
	rules->every[rules->every_count++].port = port;
}

void es_nf_rules_of(const struct es_config *config, struct es_nf_rules *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->public_ifindex = config->public_ifindex;
	ret->cluster_ifindex = config->cluster_ifindex;
	ret->self = config->self_address;
	ret->handover_port = config->handover_port;
	ret->gate = config->leased ? ES_NF_GATE_CLOSED : ES_NF_GATE_NONE;
	for (__u32 i = 0; i < config->service_count && i < ES_SERVICES_MAX; i++) {
		add_address(ret, &config->service[i].address);
		add_address(ret, &config->service[i].address6);
		if (config->service[i].inspect != ES_INSPECT_EVERY)
			continue;
		add_every(ret, &config->service[i].address, config->service[i].port);
		add_every(ret, &config->service[i].address6, config->service[i].port);
	}
	memcpy(ret->cluster_mac, config->cluster_mac, sizeof(ret->cluster_mac));
	ret->is_unicast = ret->count && !(config->cluster_mac[0] & 1);
}

int es_nf_rules_serve(const struct es_nf_rules *rules, int is_v6)
{
	for (unsigned int i = 0; i < rules->count; i++)
		if (es_addr_is_v4(&rules->address[i]) == !is_v6)
			return 1;
	return 0;
}
