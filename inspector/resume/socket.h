/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_RESUME_SOCKET_H
#define ES_RESUME_SOCKET_H

/*
 * The socket that goes on with a lost node's connection: made by TCP_REPAIR (tcp(7)) of what the record and
 * the client say, and let go of without a packet when the response is there. Needs CAP_NET_ADMIN.
 *
 * It takes nothing of its client's but acknowledgments: a socket filter cuts off each payload. So whatever
 * the client sends meanwhile stays unacknowledged, and comes again when another socket has the connection.
 */
#include "inspector/resume/client.h"

/* es_resume_socket() - returns the descriptor, not blocking, or -errno; the client has heard nothing then */
int es_resume_socket(const struct es_download *download, const struct es_resume_client *client);

/* es_resume_socket_let_go() - close it; the client hears nothing of it */
void es_resume_socket_let_go(int fd);

/* es_resume_socket_unsent() - bytes that the client has not acknowledged, or -errno if it has left */
int es_resume_socket_unsent(int fd);

/* es_resume_socket_is_closed() - has the client closed its side? */
int es_resume_socket_is_closed(int fd);

#endif
