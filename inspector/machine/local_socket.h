/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_LOCAL_SOCKET_H
#define ES_LOCAL_SOCKET_H

/*
 * Unix sockets of type SOCK_SEQPACKET by which programs of this machine talk to the daemon: for root and one
 * group.
 */
#include "inspector/base/error.h"
#include "inspector/config/config.h"

/* So earshot-tls and its group are called. */
#define ES_TLS_GROUP "earshot-tls"

/**
 * es_local_socket_open() - listen at @path with room for @backlog, non-blocking, mode 0660, for root alone
 * What is there is replaced. @purpose: "programs", for messages. Returns the descriptor, or -errno and @err.
 */
int es_local_socket_open(const char *path, const char *purpose, int backlog, struct es_conf_error *err);

/**
 * es_local_socket_share() - root and @conf's group may use it from now on
 * That is inspector.program_group; without that, the one of earshot-tls, if there is one and a service has
 * tls { }; else root's own. Returns 0, or -errno and @err: -ENOENT if there is no such group.
 */
int es_local_socket_share(const char *path, const struct es_conf *conf, struct es_conf_error *err);

#endif
