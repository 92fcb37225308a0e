/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_STATUS_HOST_H
#define ES_STATUS_HOST_H

/*
 * Is a request meant for this node, by its Host? A page of another site can have its own name lead to this
 * node's address (DNS rebinding), and would read here whatever its reader may; but its requests carry that
 * name.
 */
#include "inspector/config/list.h"
#include "kmod/core/types.h"

/* struct es_host - what a node is called: its address, its name, and more names (the key `names`) */
struct es_host {
	struct es_addr address;
	const char *node;
	const struct es_conf_list *names;
};

/**
 * es_host_is_called() - does @host, HOST or HOST:PORT with any port, name this node?
 * Upper case and a final dot make no difference. localhost and loopback addresses are any node's: they are
 * what the near end of a tunnel is called.
 */
int es_host_is_called(const struct es_host *of, const char *host);

#endif
