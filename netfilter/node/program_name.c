// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Translates a program's connection from its client's name to its server's, and back.
 */
#include "kmod/core/neighbour.h"
#include "kmod/core/program.h"
#include "netfilter/node/program_name.h"
#include "netfilter/rules/translation.h"

int es_nf_program_socket(const struct es_config *config, unsigned int service, const struct es_flow *flow,
			 struct es_flow *ret_socket)
{
	const int is_v6 = !es_addr_is_v4(&flow->service);
	const struct es_addr *server = es_program_server_of(&config->service[service], is_v6);

	if (!server)
		return 0;
	*ret_socket = *flow;
	/*
	 * No packet from a wire may be for a loopback address. A server that listens on all addresses has
	 * this one.
	 */
	ret_socket->service =
		es_addr_is_loopback(server) ? es_nf_translation_address(is_v6, service) : *server;
	ret_socket->service_port = config->service[service].server_port;
	return 1;
}

/* @address: one of the service's, or none */
static int es_nf_program_is_of(const struct es_config *config, unsigned int service,
			       const struct es_addr *address, const struct es_flow *socket,
			       struct es_flow *ret_flow)
{
	struct es_flow flow = *socket, found;

	flow.service = *address;
	flow.service_port = config->service[service].port;
	if (es_addr_is_unspecified(address) || !es_nf_program_socket(config, service, &flow, &found) ||
	    !es_flow_equal(&found, socket))
		return 0;
	*ret_flow = flow;
	return 1;
}

int es_nf_program_flow(const struct es_config *config, const struct es_flow *socket, struct es_flow *ret_flow)
{
	for (__u32 i = 0; i < config->service_count; i++)
		if (es_nf_program_is_of(config, i, &config->service[i].address, socket, ret_flow) ||
		    es_nf_program_is_of(config, i, &config->service[i].address6, socket, ret_flow))
			return (int)i;
	return -1;
}
