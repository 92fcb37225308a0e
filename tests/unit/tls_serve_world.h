/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TLS_SERVE_WORLD_H
#define ES_TLS_SERVE_WORLD_H

/* A client's connection in earshot-tls, which arrives with a state, and may move on to another process. */
#include <sys/socket.h>
#include <unistd.h>
#include "inspector/base/wall.h"
#include "tls/serve/client.h"
#include "tls_peers.h"

struct world {
	struct es_serve serve;
	struct es_serve_service service;
	struct es_ledger_block counters;
	struct es_tls_seal_keys seal;
	struct es_client client;
	int far; /* the other end of its socket */
	unsigned int seed;
};

static inline unsigned int any(struct world *w, unsigned int below)
{
	w->seed = w->seed * 1103515245 + 12345;
	return (w->seed >> 16) % below;
}

static const struct es_flow flow = {.client_port = 1, .service_port = 2};

static inline void nothing(void *ctx)
{
	(void)ctx;
}

/* The loop tells the client's connection of what has come. */
static inline void hear(struct world *w)
{
	es_client_watch(&w->client, 1);
	ev_run(w->serve.loop, EVRUN_NOWAIT);
}

static inline void say(struct world *w, const uint8_t *bytes, size_t len)
{
	assert_int_equal(write(w->far, bytes, len), (ssize_t)len);
	hear(w);
}

/* A connection arrives with these bytes in front. */
static inline void arrive(struct world *w, const uint8_t *bytes, size_t len)
{
	int fds[2], room = 1 << 20;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	w->far = fds[0];
	es_client_init(&w->client, &w->serve, &w->service, fds[1], &flow);
	w->client.changed = w->client.expired = nothing;
	say(w, bytes, len);
}

static inline void begin(struct world *w, struct peers *p)
{
	uint8_t pack[ES_TLS_SEALED_BYTES + 2] = {};

	assert_int_equal(es_tls_seal(w->serve.seal, &flow, "n1", es_wall_ns(), &p->state, pack), 0);
	arrive(w, pack, sizeof(pack));
	es_client_shake(&w->client);
	assert_int_equal(w->client.phase, ES_CLIENT_OPEN);
}

static inline void leave(struct world *w)
{
	close(w->far);
	es_client_fini(&w->client, 0);
}

static inline void set_up(struct world *w, unsigned int seed)
{
	*w = (struct world){.seed = seed, .seal = {.count = 1, .id = {1}}};
	w->serve.loop = ev_loop_new(EVFLAG_AUTO);
	w->serve.self = "n1";
	w->serve.seal = &w->seal;
	w->serve.taken = es_tls_taken_new(0);
	w->service.counters = &w->counters;
}

static inline void tear_down(struct world *w)
{
	es_tls_taken_free(&w->serve.taken);
	ev_loop_destroy(w->serve.loop);
}

/* The connection moves to another process of the same name, with all that has not been read yet. */
static inline void move(struct world *w)
{
	uint8_t bytes[1 << 18];
	const uint8_t *kept;
	size_t kept_len = es_client_kept(&w->client, &kept);
	long len = es_client_pack(&w->client, "n1", bytes);
	ssize_t unread;

	assert_true(len > 0);
	memcpy(bytes + len, kept, kept_len);
	len += (long)kept_len;
	unread = recv(w->client.fd, bytes + len, sizeof(bytes) - (size_t)len, MSG_DONTWAIT);
	if (unread > 0)
		len += unread;
	leave(w);
	arrive(w, bytes, (size_t)len);
	es_client_shake(&w->client);
	assert_int_equal(w->client.phase, ES_CLIENT_OPEN);
	assert_true(w->client.is_arrived);
}

#endif
