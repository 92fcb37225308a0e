/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CONNECTIONS_H
#define ES_CONNECTIONS_H

/*
 * How long the HTTP server's connections have been open. libmicrohttpd ends those on which nothing happens;
 * one that brings or takes a byte now and then would stay for ever.
 */
#define ES_CONNECTIONS_MAX 64

/* struct es_connection - @began_ns: 0: the place is free */
struct es_connection {
	unsigned long long began_ns;
	int fd;
};

struct es_connections {
	unsigned int count;
	struct es_connection place[ES_CONNECTIONS_MAX];
};

void es_connections_add(struct es_connections *connections, int fd, unsigned long long now_ns);
void es_connections_remove(struct es_connections *connections, int fd);

/*
 * es_connections_end() - shut down those that are older than @limit_ns; their owner finds them at their end
 */
void es_connections_end(struct es_connections *connections, unsigned long long now_ns,
			unsigned long long limit_ns);

#endif
