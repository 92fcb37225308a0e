/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_STREAMS_WORLD_H
#define ES_STREAMS_WORLD_H

/*
 * A connection of HTTP/2 in earshot-tls without a process around it: on one side a client, whose records are
 * made here, on the other a server and a daemon that listen in a folder of their own. Whoever includes this
 * says what MUST() does.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "inspector/base/clock.h"
#include "tls/serve/ask.h"
#include "tls/serve/client.h"
#include "tls/serve/streams.h"
#include "tls/serve/upstream.h"

/**
 * struct streams_world
 * @far: the client's end of the connection; @records: with the client's keys
 * @server, @daemon: sockets that listen
 * @unsent: records of the client for which its socket had no room
 * @result: what es_streams_run() has said last
 */
struct streams_world {
	char place[64];
	struct es_serve serve;
	struct es_serve_service service;
	struct es_ledger_block counters;
	struct es_tls_seal_keys seal;
	struct es_client client;
	struct es_streams *streams;
	struct es_tls_records *records;
	int far;
	int server;
	int daemon;
	struct es_buffer unsent;
	enum es_streams_result result;
	int has_ended;
};

static const struct es_flow streams_flow = {.client_port = 1, .service_port = 2};

static int streams_listen(struct streams_world *w, const char *name, int type, struct sockaddr_un *ret)
{
	int fd = socket(AF_UNIX, type | SOCK_NONBLOCK, 0);

	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(ret->sun_path, sizeof(ret->sun_path), "%s/%s", w->place, name);
	unlink(ret->sun_path);
	MUST(fd >= 0 && !bind(fd, (struct sockaddr *)ret, sizeof(*ret)) && !listen(fd, 1024));
	return fd;
}

static void streams_changed(void *ctx)
{
	struct streams_world *w = ctx;

	if (w->has_ended || w->result == ES_STREAMS_MOVE)
		return;
	w->result = es_streams_run(w->streams);
	w->has_ended = w->result == ES_STREAMS_OVER || w->result == ES_STREAMS_LOST;
}

static void streams_expired(void *ctx)
{
	struct streams_world *w = ctx;

	if (w->has_ended)
		return;
	w->result = es_streams_expired(w->streams);
	w->has_ended = w->result == ES_STREAMS_OVER || w->result == ES_STREAMS_LOST;
}

static void streams_news(void *ctx, const char *service, int is_drained)
{
	struct streams_world *w = ctx;

	(void)service;
	w->service.is_drained = is_drained;
}

/* streams_connect() - a client has come, and agreed on h2 */
static void streams_connect(struct streams_world *w, int is_arrived)
{
	struct es_tls_state state = {.version = ES_TLS_1_3, .suite = 0x1301, .alpn = ES_TLS_ALPN_HTTP2};
	struct es_tls_half half;
	int fds[2], room = 1 << 20;

	memset(state.client.secret, 1, sizeof(state.client.secret));
	memset(state.server.secret, 2, sizeof(state.server.secret));
	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds));
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	w->far = fds[0];
	es_client_init(&w->client, &w->serve, &w->service, fds[1], &streams_flow);
	w->client.changed = streams_changed;
	w->client.expired = streams_expired;
	w->client.ctx = w;
	w->client.phase = ES_CLIENT_OPEN;
	w->client.is_arrived = is_arrived;
	MUST(!es_tls_records_new(&state, &w->client.records));
	half = state.client;
	state.client = state.server;
	state.server = half;
	MUST(!es_tls_records_new(&state, &w->records));
	w->has_ended = 0;
	w->result = ES_STREAMS_GO_ON;
	MUST(!es_streams_new(&w->client, streams_changed, w, &w->streams));
	streams_changed(w);
}

static void streams_disconnect(struct streams_world *w)
{
	es_streams_free(&w->streams);
	es_client_fini(&w->client, 0);
	es_tls_records_free(&w->records);
	es_buffer_fini(&w->unsent);
	close(w->far);
}

static void streams_set_up(struct streams_world *w, enum es_inspect inspect)
{
	struct sockaddr_un address;

	*w = (struct streams_world){.place = "/tmp/earshot-streams-XXXXXX"};
	MUST(mkdtemp(w->place));
	w->serve.loop = ev_loop_new(EVFLAG_AUTO);
	w->serve.self = "n1";
	w->serve.seal = &w->seal;
	w->service.counters = &w->counters;
	w->seal = (struct es_tls_seal_keys){.count = 1, .id = {1}};
	w->server = streams_listen(w, "server", SOCK_STREAM, &address);
	memcpy(&w->service.server.any, &address, sizeof(address));
	w->service.server_len = sizeof(address);
	w->daemon = streams_listen(w, "daemon", SOCK_SEQPACKET, &address);
	MUST(!es_asker_new(w->serve.loop, address.sun_path, streams_news, w, &w->serve.asker));
	w->service.inspect = inspect;
}

__attribute__((unused)) static void streams_tear_down(struct streams_world *w)
{
	char path[96];

	es_upstream_free_idle(&w->service);
	es_asker_free(&w->serve.asker);
	ev_loop_destroy(w->serve.loop);
	close(w->server);
	close(w->daemon);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", w->place, i ? "daemon" : "server");
		unlink(path);
	}
	rmdir(w->place);
}

/* streams_flush() - send what there was no room for. Returns whether all of it is sent. */
static int streams_flush(struct streams_world *w)
{
	while (es_buffer_len(&w->unsent)) {
		ssize_t sent =
			send(w->far, es_buffer_front(&w->unsent), es_buffer_len(&w->unsent), MSG_NOSIGNAL);

		if (sent < 0)
			return 0;
		es_buffer_take(&w->unsent, (size_t)sent);
	}
	return 1;
}

/* streams_write() - the client sends text */
static void streams_write(struct streams_world *w, const uint8_t *bytes, size_t len)
{
	while (len) {
		size_t part = len < ES_TLS_TEXT_MAX ? len : ES_TLS_TEXT_MAX;
		uint8_t *room = es_buffer_room(&w->unsent, es_tls_records_write_room(part));
		long there = room ? es_tls_records_write(w->records, bytes, part, room) : -1;

		MUST(there > 0);
		es_buffer_added(&w->unsent, (size_t)there);
		bytes += part;
		len -= part;
	}
	streams_flush(w);
}

/*
 * streams_read() - the client reads the text of all records that have come into @in, of which it keeps a rest
 */
__attribute__((unused)) static void streams_read(struct streams_world *w, struct es_buffer *in,
						 struct es_buffer *text)
{
	static uint8_t plain[ES_TLS_TEXT_MAX];
	struct es_tls_got got;
	ssize_t len;

	do {
		uint8_t *room = es_buffer_room(in, 65536);

		MUST(room != NULL);
		len = recv(w->far, room, 65536, 0);
		if (len > 0)
			es_buffer_added(in, (size_t)len);
	} while (len > 0);
	for (;;) {
		es_tls_records_read(w->records, es_buffer_front(in), es_buffer_len(in), es_clock_now_ns(),
				    plain, &got);
		if (got.event != ES_TLS_EVENT_TEXT)
			break;
		MUST(!es_buffer_add(text, plain, got.text_len));
		es_buffer_take(in, got.used);
	}
	MUST(got.event == ES_TLS_EVENT_MORE);
}

#endif
