// SPDX-License-Identifier: GPL-2.0-or-later
/* Ends the connections that take too long. */
#include <sys/socket.h>
#include "inspector/status/connections.h"

void es_connections_add(struct es_connections *c, int fd, unsigned long long now_ns)
{
	for (unsigned int i = 0; i < ES_CONNECTIONS_MAX; i++) {
		if (c->place[i].began_ns)
			continue;
		c->place[i] = (struct es_connection){.began_ns = now_ns ? now_ns : 1, .fd = fd};
		c->count++;
		return;
	}
}

void es_connections_remove(struct es_connections *c, int fd)
{
	for (unsigned int i = 0; i < ES_CONNECTIONS_MAX; i++) {
		if (!c->place[i].began_ns || c->place[i].fd != fd)
			continue;
		c->place[i].began_ns = 0;
		c->count--;
		return;
	}
}

void es_connections_end(struct es_connections *c, unsigned long long now_ns, unsigned long long limit_ns)
{
	for (unsigned int i = 0; c->count && i < ES_CONNECTIONS_MAX; i++)
		if (c->place[i].began_ns && now_ns - c->place[i].began_ns >= limit_ns)
			shutdown(c->place[i].fd, SHUT_RDWR);
}
