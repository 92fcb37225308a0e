/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_PROGRAM_NAME_H
#define ES_NETFILTER_NODE_PROGRAM_NAME_H

/*
 * The two names of a connection that a program has handed over. The kernel looks for a listening socket by
 * the address that a SYN is for, and there the program itself listens. So packets from the client are
 * translated to the address where the server listens (translation.h). The server's socket has that address,
 * and is not found by the client's flow.
 */
#include "kmod/core/abi.h"

/**
 * es_nf_program_socket() - the flow that the server's socket has, from the client's
 * Returns 1; 0 if programs hand over no connections of that service and family to servers.
 */
int es_nf_program_socket(const struct es_config *config, unsigned int service, const struct es_flow *flow,
			 struct es_flow *ret_socket);

/**
 * es_nf_program_flow() - the client's flow, from that of the server's socket
 * Returns the service's index, or -1: @socket is not the socket of such a connection.
 */
int es_nf_program_flow(const struct es_config *config, const struct es_flow *socket,
		       struct es_flow *ret_flow);

#endif
