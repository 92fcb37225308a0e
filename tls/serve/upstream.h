/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_UPSTREAM_H
#define ES_SERVE_UPSTREAM_H

/*
 * Connections to the server behind: plain, of one request at a time; those that keep alive wait for the next
 * request of any client.
 */
#include "tls/serve/buffer.h"
#include "tls/serve/serve.h"

/**
 * struct es_upstream
 * @out: to be sent; @is_reused: it has served before
 * @is_drained: the kernel has had no more bytes of it: until it tells of some, it is not asked
 * @has_told: the server knows of the client already (PROXY protocol)
 * @changed: called when it may have something new
 */
struct es_upstream {
	struct es_serve *serve;
	struct es_serve_service *service;
	int fd;
	int is_connecting;
	int is_drained;
	int is_reused;
	int has_told;
	ev_io io;
	ev_timer timer; /* of one that waits */
	struct es_buffer out;
	void (*changed)(void *ctx);
	void *ctx;
	struct es_upstream *next, *previous; /* of those that wait */
};

/**
 * es_upstream_new() - connect
 * Returns 0 or -errno, as of connect(). That it cannot be reached may also be told by es_upstream_flush().
 */
int es_upstream_new(struct es_serve *serve, struct es_serve_service *service, void (*changed)(void *ctx),
		    void *ctx, struct es_upstream **ret_upstream);

/* es_upstream_take() - one that waits; NULL: there is none */
struct es_upstream *es_upstream_take(struct es_serve_service *service, void (*changed)(void *ctx), void *ctx);

/* es_upstream_keep() - it waits for another request, of any client; es_upstream_hold(): of its own one */
void es_upstream_keep(struct es_upstream **upstream);
void es_upstream_hold(struct es_upstream *upstream);

/* es_upstream_is_alive() - has a held one said nothing, and not ended? */
int es_upstream_is_alive(const struct es_upstream *upstream);

void es_upstream_free(struct es_upstream **upstream);
/* es_upstream_free_idle() - all that wait */
void es_upstream_free_idle(struct es_serve_service *service);

/* es_upstream_flush() - send what is in @out, as far as it goes. Returns 0; -errno: it has ended. */
int es_upstream_flush(struct es_upstream *upstream);

/* es_upstream_receive() - returns bytes; 0: it has ended; -EAGAIN: nothing now; or -errno: it has failed */
ssize_t es_upstream_receive(struct es_upstream *upstream, uint8_t *bytes, size_t len);

/* es_upstream_watch() - for room to send if there is something in @out, and for its bytes if @wants_more */
void es_upstream_watch(struct es_upstream *upstream, int wants_more);

#endif
