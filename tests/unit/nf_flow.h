/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_NF_FLOW_H
#define ES_TESTS_NF_FLOW_H

/*
 * The one connection of tests of netfilter/ that need no more.
 */
#include <arpa/inet.h>
#include "kmod/core/flow.h"

static inline struct es_flow flow_of(int is_v6)
{
	struct es_flow f = {
		.client = es_addr_from_v4(htonl(0xc6336401)),
		.service = es_addr_from_v4(htonl(0xc0000201)),
		.client_port = htons(40000),
		.service_port = htons(80),
	};

	if (is_v6) {
		inet_pton(AF_INET6, "2001:db8::1", &f.client);
		inet_pton(AF_INET6, "2001:db8::2", &f.service);
	}
	return f;
}

#endif
