// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A request on its way through earshot-tls, however the client's socket has room: its response arrives, and
 * so does the end. send() is this test's own.
 */
#include "cmocka_all.h"
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "inspector/base/wall.h"
#include "tls/serve/ask.h"
#include "tls/serve/exchange.h"
#include "tls/serve/upstream.h"
#include "tls_peers.h"

#define BODY	  1000000u
#define ROUNDS	  200000u /* of the loop, in which all is done, or it waits for what does not come */
#define SERVER	  "test_tls_serve_exchange.sock"
#define HEAD_SIZE 200

/* On the client's socket so many sends in a row find no room, then one does. */
static int narrow_fd = -1;
static unsigned int narrow, refused;

ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
	if (fd == narrow_fd && refused++ < narrow) {
		errno = EAGAIN;
		return -1;
	}
	if (fd == narrow_fd)
		refused = 0;
	return sendto(fd, bytes, len, flags, NULL, 0);
}

/*
 * @far: the client's end; @listens, @server: the server behind; @sent: of its response; @got: by the client
 */
struct world {
	struct es_serve serve;
	struct es_serve_service service;
	struct es_ledger_block counters;
	struct es_tls_seal_keys seal;
	struct es_exchanges exchanges;
	struct peers peers;
	int far;
	int listens;
	int server;
	char head[HEAD_SIZE];
	size_t sent;
	size_t got;
	int is_ended;
};

static void set_up(struct world *w)
{
	struct sockaddr_un *server = (struct sockaddr_un *)&w->service.server.any;

	memset(w, 0, sizeof(*w));
	w->seal = (struct es_tls_seal_keys){.count = 1, .id = {1}};
	w->service.inspect = ES_INSPECT_NEVER;
	server->sun_family = AF_UNIX;
	strcpy(server->sun_path, SERVER);
	w->service.server_len = sizeof(*server);
	unlink(SERVER);
	w->listens = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(w->listens, (struct sockaddr *)server, sizeof(*server)), 0);
	assert_int_equal(listen(w->listens, 1), 0);
	w->server = -1;
	w->serve.loop = ev_loop_new(EVFLAG_AUTO);
	w->serve.self = "n1";
	w->serve.seal = &w->seal;
	w->serve.taken = es_tls_taken_new(0);
	w->service.counters = &w->counters;
	assert_int_equal(es_asker_new(w->serve.loop, "/nowhere", NULL, NULL, &w->serve.asker), 0);
}

static void tear_down(struct world *w)
{
	narrow_fd = -1;
	es_exchanges_end(&w->exchanges);
	es_upstream_free_idle(&w->service);
	es_asker_free(&w->serve.asker);
	es_tls_taken_free(&w->serve.taken);
	ev_loop_destroy(w->serve.loop);
	peers_free(&w->peers);
	close(w->far);
	close(w->server);
	close(w->listens);
	unlink(SERVER);
}

/* A connection that another node has moved here, with a request. */
static void ask(struct world *w)
{
	static const struct es_flow flow = {.client_port = 1, .service_port = 2};
	static const char request[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
	uint8_t pack[ES_TLS_SEALED_BYTES + 2] = {}, *bytes;
	size_t len;
	int fds[2];

	peers_shake(&w->peers, &peers_kinds[0], NULL);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	w->far = fds[0];
	assert_int_equal(es_tls_seal(&w->seal, &flow, "n1", es_wall_ns(), &w->peers.state, pack), 0);
	assert_int_equal(write(w->far, pack, sizeof(pack)), sizeof(pack));
	assert_int_equal(SSL_write(w->peers.client, request, sizeof(request) - 1), sizeof(request) - 1);
	bytes = peers_sent(&w->peers, &len);
	assert_int_equal(write(w->far, bytes, len), (ssize_t)len);
	free(bytes);
	narrow_fd = fds[1];
	refused = 0;
	assert_int_equal(es_exchange_new(&w->exchanges, &w->serve, &w->service, fds[1], &flow), 0);
}

static void serve(struct world *w)
{
	static const char body[65536];
	size_t head = strlen(w->head);
	ssize_t n;

	if (w->server < 0)
		w->server = accept4(w->listens, NULL, NULL, SOCK_NONBLOCK);
	while (w->server >= 0 && w->sent < head + BODY) {
		size_t left = head + BODY - w->sent;

		n = w->sent < head ? write(w->server, w->head + w->sent, head - w->sent)
				   : write(w->server, body, left < sizeof(body) ? left : sizeof(body));
		if (n <= 0)
			break;
		w->sent += (size_t)n;
	}
}

static void hear(struct world *w)
{
	uint8_t bytes[16384];
	ssize_t n;
	int got;

	while ((n = recv(w->far, bytes, sizeof(bytes), 0)) > 0) {
		peers_tell(&w->peers, bytes, (size_t)n);
		while ((got = SSL_read(w->peers.client, bytes, sizeof(bytes))) > 0)
			w->got += (size_t)got;
	}
	if (!n && !w->is_ended) {
		w->is_ended = 1;
		assert_int_equal(peers_reason(&w->peers), 0);
	}
}

/* Does all arrive, and the end if it is one? */
static int arrives(unsigned int refuses, int keeps)
{
	struct world w;
	int is_there;

	set_up(&w);
	narrow = refuses;
	snprintf(w.head, sizeof(w.head), "HTTP/1.1 200 OK\r\nContent-Length: %u\r\nConnection: %s\r\n\r\n",
		 BODY, keeps ? "keep-alive" : "close");
	ask(&w);
	for (unsigned int i = 0; i < ROUNDS && (w.got < BODY + 1 || !(keeps || w.is_ended)); i++) {
		ev_run(w.serve.loop, EVRUN_NOWAIT);
		serve(&w);
		hear(&w);
	}
	is_there = w.got > BODY && (keeps || w.is_ended);
	if (!is_there)
		print_error("%u in a row without room: %zu bytes arrived, %s\n", refuses, w.got,
			    w.is_ended ? "and the end" : "and no end");
	tear_down(&w);
	return is_there;
}

static void test_room_comes_and_goes(void **state)
{
	int good = 1;

	(void)state;
	for (unsigned int refuses = 0; refuses < 8; refuses++)
		good &= arrives(refuses, 1);
	assert_true(good);
}

static void test_room_for_the_end(void **state)
{
	int good = 1;

	(void)state;
	for (unsigned int refuses = 0; refuses < 8; refuses++)
		good &= arrives(refuses, 0);
	assert_true(good);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_room_comes_and_goes),
		cmocka_unit_test(test_room_for_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
