/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_HEALTH_TLS_H
#define ES_HEALTH_TLS_H

/*
 * TLS on the connection of a check, by OpenSSL. Nothing here waits: the socket must not block. A process that
 * uses it ignores SIGPIPE.
 */
#include <stddef.h>
#include <sys/types.h>

struct ssl_st;
struct ssl_ctx_st;

/**
 * struct es_tls - all zeros: none
 * @is_spoken: the server has said something that is TLS
 * @wants_write: what is wanted next waits until the socket can be written; else until it can be read
 */
struct es_tls {
	struct ssl_ctx_st *ctx;
	struct ssl_st *ssl;
	int is_spoken;
	int wants_write;
};

#define ES_TLS_WHY_SIZE 160

/**
 * es_tls_open() - a new one on the connection @fd, which stays the caller's
 * @ca_file: who must have issued the server's certificate, for @host; "": it is not looked at
 * @host: "NAME" or "NAME:PORT", or an address likewise; a name is told to the server. "": nothing is.
 * @why: of all functions here, of ES_TLS_WHY_SIZE bytes: says what is wrong, unless that is -EAGAIN
 * The file is read at the first one, and kept until es_tls_fini(). Returns 0, -ENOMEM or -EINVAL.
 */
int es_tls_open(struct es_tls *tls, int fd, const char *ca_file, const char *host, char *why);

/* es_tls_shake() - go on with the handshake. Returns 0 when it is over, -EAGAIN or -EPROTO. */
int es_tls_shake(struct es_tls *tls, char *why);

/* es_tls_send(), es_tls_recv() - as send() and recv() (0: the end), but -EAGAIN or -EPROTO */
ssize_t es_tls_send(struct es_tls *tls, const void *bytes, size_t len, char *why);
ssize_t es_tls_recv(struct es_tls *tls, void *bytes, size_t size, char *why);

/* es_tls_close() - nothing more is said; the connection stays as it is */
void es_tls_close(struct es_tls *tls);
void es_tls_fini(struct es_tls *tls);

#endif
