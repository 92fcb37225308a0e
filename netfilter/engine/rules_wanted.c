// SPDX-License-Identifier: GPL-2.0-or-later
/* Derives the rules from a configuration. */
#include <string.h>
#include "kmod/core/neighbour.h"
#include "netfilter/engine/rules_wanted.h"
#include "netfilter/node/program_name.h"

/* Services may share an address, and may lack one of either family. */
static void add_address(struct es_nf_rules *rules, const struct es_addr *address)
{
	unsigned int at = 0;

	while (at < rules->count && !es_addr_equal(&rules->address[at], address))
		at++;
	if (at == rules->count && !es_addr_is_unspecified(address))
		rules->address[rules->count++] = *address;
}

static void add_endpoint(struct es_nf_rules_endpoint *list, __u32 *count, const struct es_addr *address,
			 __be16 port)
{
	if (es_addr_is_unspecified(address))
		return;
	list[*count].address = *address;
	list[(*count)++].port = port;
}

static void add_endpoints(struct es_nf_rules *rules, const struct es_service_entry *service)
{
	add_endpoint(rules->endpoint, &rules->endpoint_count, &service->address, service->port);
	add_endpoint(rules->endpoint, &rules->endpoint_count, &service->address6, service->port);
	if (service->inspect != ES_INSPECT_EVERY)
		return;
	add_endpoint(rules->every, &rules->every_count, &service->address, service->port);
	add_endpoint(rules->every, &rules->every_count, &service->address6, service->port);
}

/* The address where servers listen for connections that programs hand over from that service. */
static void add_server(struct es_nf_rules *rules, const struct es_config *config, unsigned int service,
		       const struct es_addr *address)
{
	const struct es_flow flow = {.client = *address, .service = *address};
	struct es_flow socket;
	unsigned int at = 0;

	if (es_addr_is_unspecified(address) || !es_nf_program_socket(config, service, &flow, &socket))
		return;
	while (at < rules->server_count && !es_addr_equal(&rules->server[at], &socket.service))
		at++;
	if (at == rules->server_count)
		rules->server[rules->server_count++] = socket.service;
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
		add_server(ret, config, i, &config->service[i].address);
		add_server(ret, config, i, &config->service[i].address6);
		add_endpoints(ret, &config->service[i]);
	}
	memcpy(ret->cluster_mac, config->cluster_mac, sizeof(ret->cluster_mac));
	ret->is_unicast = ret->count && !(config->cluster_mac[0] & 1);
}
