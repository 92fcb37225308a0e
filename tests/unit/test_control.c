// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The control socket: its protocol, its bounds, and the socket file. The server's loop runs in a thread of
 * its own, the tests are blocking clients.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "inspector/control/control.h"

#define BAD_REQUEST                                                                                          \
	"{\"ok\":false,\"error\":\"bad request, expected one JSON object with a \\\"command\\\" on each "    \
	"line\"}\n"

struct server {
	struct ev_loop *loop;
	struct es_control *control;
	ev_async stop;
	pthread_t thread;
};

static char directory[] = "/tmp/earshot-control-XXXXXX";
static char path[64];

static int echo(void *ctx, struct json_object *request, struct json_object **ret_result,
		struct es_conf_error *err)
{
	(void)ctx;
	(void)err;
	*ret_result = json_object_get(request);
	return 0;
}

static int nothing(void *ctx, struct json_object *request, struct json_object **ret_result,
		   struct es_conf_error *err)
{
	(void)ctx;
	(void)request;
	(void)ret_result;
	(void)err;
	return 0;
}

/* Fails with the text in @ctx. */
static int refuse(void *ctx, struct json_object *request, struct json_object **ret_result,
		  struct es_conf_error *err)
{
	(void)request;
	(void)ret_result;
	if (ctx)
		es_conf_error_set(err, "%s", (const char *)ctx);
	return -ENOENT;
}

/* A result of "bytes" bytes. */
static int large(void *ctx, struct json_object *request, struct json_object **ret_result,
		 struct es_conf_error *err)
{
	struct json_object *bytes;
	char *text;
	int n;

	(void)ctx;
	(void)err;
	assert_true(json_object_object_get_ex(request, "bytes", &bytes));
	n = json_object_get_int(bytes);
	text = malloc((size_t)n);
	assert_non_null(text);
	memset(text, 'x', (size_t)n);
	*ret_result = json_object_new_string_len(text, n);
	free(text);
	return 0;
}

static void on_stop(struct ev_loop *loop, ev_async *watcher, int events)
{
	(void)watcher;
	(void)events;
	ev_break(loop, EVBREAK_ALL);
}

static void *serve(void *arg)
{
	struct server *server = arg;

	ev_run(server->loop, 0);
	return NULL;
}

static void server_start(struct server *server, double idle_timeout_s)
{
	static char sorry[] = "sorry: \"no\"\n";
	struct es_conf_error err;

	server->loop = ev_loop_new(0);
	assert_non_null(server->loop);
	if (es_control_new(server->loop, path, &server->control, &err))
		fail_msg("%s", err.text);
	es_control_set_idle_timeout(server->control, idle_timeout_s);
	assert_int_equal(es_control_register(server->control, "echo", echo, NULL), 0);
	assert_int_equal(es_control_register(server->control, "nothing", nothing, NULL), 0);
	assert_int_equal(es_control_register(server->control, "refuse", refuse, sorry), 0);
	assert_int_equal(es_control_register(server->control, "refuse-silently", refuse, NULL), 0);
	assert_int_equal(es_control_register(server->control, "large", large, NULL), 0);
	assert_int_equal(es_control_register(server->control, "large", large, NULL), -EEXIST);
	ev_async_init(&server->stop, on_stop);
	ev_async_start(server->loop, &server->stop);
	assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

static void server_stop(struct server *server)
{
	ev_async_send(server->loop, &server->stop);
	pthread_join(server->thread, NULL);
	es_control_free(&server->control);
	assert_null(server->control);
	ev_async_stop(server->loop, &server->stop);
	ev_loop_destroy(server->loop);
	assert_int_equal(access(path, F_OK), -1); /* the socket file is gone */
}

static int client_new(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const struct timeval timeout = {.tv_sec = 60};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	assert_int_equal(connect(fd, (void *)&address, sizeof(address)), 0);
	return fd;
}

static void put_bytes(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

		assert_true(n > 0);
		text += n;
		len -= (size_t)n;
	}
}

static void put(int fd, const char *text)
{
	put_bytes(fd, text, strlen(text));
}

static void expect(int fd, const char *line)
{
	size_t len = strlen(line), got = 0;
	char *text = calloc(1, len + 1);

	assert_non_null(text);
	while (got < len) {
		ssize_t n = recv(fd, text + got, len - got, 0);

		if (n <= 0)
			fail_msg("expected %s got %s and %zd", line, text, n);
		got += (size_t)n;
	}
	assert_string_equal(text, line);
	free(text);
}

static void expect_end(int fd)
{
	char c;

	assert_int_equal(recv(fd, &c, 1, 0), 0);
}

static void test_protocol(void **state)
{
	struct server server;
	const char *c;
	int fd;

	(void)state;
	server_start(&server, 60);
	fd = client_new();
	put(fd, "{\"command\":\"echo\",\"n\":1}\n");
	expect(fd, "{\"ok\":true,\"result\":{\"command\":\"echo\",\"n\":1}}\n");
	put(fd, "  { \"command\" : \"nothing\" } \r\n");
	expect(fd, "{\"ok\":true,\"result\":{}}\n");
	put(fd, "{\"command\":\"refuse\"}\n");
	expect(fd, "{\"ok\":false,\"error\":\"sorry: \\\"no\\\"\\n\"}\n");
	put(fd, "{\"command\":\"refuse-silently\"}\n");
	expect(fd, "{\"ok\":false,\"error\":\"No such file or directory\"}\n");
	put(fd, "{\"command\":\"sing\"}\n");
	expect(fd,
	       "{\"ok\":false,\"error\":\"unknown command \\\"sing\\\", expected echo | nothing | refuse | "
	       "refuse-silently | large\"}\n");
	/* two at once, then one in the smallest pieces */
	put(fd, "{\"command\":\"nothing\"}\n{\"command\":\"echo\"}\n");
	expect(fd, "{\"ok\":true,\"result\":{}}\n{\"ok\":true,\"result\":{\"command\":\"echo\"}}\n");
	for (c = "{\"command\":\"nothing\"}\n"; *c; c++)
		put_bytes(fd, c, 1);
	expect(fd, "{\"ok\":true,\"result\":{}}\n");
	/* a client that has said all still gets its reply */
	put(fd, "{\"command\":\"nothing\"}\nrest");
	shutdown(fd, SHUT_WR);
	expect(fd, "{\"ok\":true,\"result\":{}}\n");
	expect_end(fd);
	close(fd);
	server_stop(&server);
}

static void test_bad_requests(void **state)
{
	static const char *const bad[] = {
		"\n",
		"x\n",
		"[]\n",
		"null\n",
		"\"echo\"\n",
		"{}\n",
		"{\"command\":1}\n",
		"{\"command\":null}\n",
		"{\"command\":\"echo\"\n",
		"{\"command\":\"echo\"}}\n",
		"{\"command\":\"echo\"} {}\n",
		"{'command':'echo'}\n",
		"{\"command\":\"\xff\"}\n",
		"{\"a\":[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]}\n",
	};
	static const char nul[] = "{\"command\":\"echo\"}\0\n";
	struct server server;
	size_t i;
	int fd;

	(void)state;
	server_start(&server, 60);
	fd = client_new();
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put(fd, bad[i]);
		expect(fd, BAD_REQUEST);
	}
	put_bytes(fd, nul, sizeof(nul) - 1);
	expect(fd, BAD_REQUEST);
	put(fd, "{\"command\":\"echo\\u0000\"}\n");
	expect(fd,
	       "{\"ok\":false,\"error\":\"unknown command \\\"echo\\\", expected echo | nothing | refuse | "
	       "refuse-silently | large\"}\n");
	close(fd);
	server_stop(&server);
}

static void test_request_bound(void **state)
{
	static const char request[] = "{\"command\":\"nothing\"}";
	size_t len = sizeof(request) - 1;
	struct server server;
	char *text;
	int fd;

	(void)state;
	text = malloc(ES_CONTROL_REQUEST_MAX + 2);
	assert_non_null(text);
	memset(text, ' ', ES_CONTROL_REQUEST_MAX + 2);
	memcpy(text, request, len);
	server_start(&server, 60);
	fd = client_new();
	text[ES_CONTROL_REQUEST_MAX] = '\n';
	put_bytes(fd, text, ES_CONTROL_REQUEST_MAX + 1);
	expect(fd, "{\"ok\":true,\"result\":{}}\n");
	text[ES_CONTROL_REQUEST_MAX] = ' ';
	put_bytes(fd, text, ES_CONTROL_REQUEST_MAX + 1);
	expect(fd, "{\"ok\":false,\"error\":\"request too long, expected at most 1048576 bytes\"}\n");
	expect_end(fd);
	close(fd);
	free(text);
	server_stop(&server);
}

/* A client that does not take its reply delays nobody, and gets all of it in the end. */
static void test_slow_reader(void **state)
{
	static const char head[] = "{\"ok\":true,\"result\":\"";
	size_t size = 4000000;
	struct server server;
	int slow, fast;
	char *text;

	(void)state;
	server_start(&server, 60);
	slow = client_new();
	put(slow, "{\"command\":\"large\",\"bytes\":4000000}\n{\"command\":\"nothing\"}\n");
	fast = client_new();
	put(fast, "{\"command\":\"nothing\"}\n");
	expect(fast, "{\"ok\":true,\"result\":{}}\n");
	close(fast);
	text = malloc(size + 1);
	assert_non_null(text);
	memset(text, 'x', size);
	text[size] = 0;
	expect(slow, head);
	expect(slow, text);
	expect(slow, "\"}\n{\"ok\":true,\"result\":{}}\n");
	close(slow);
	free(text);
	server_stop(&server);
}

static void test_reply_bound(void **state)
{
	struct server server;
	int fd;

	(void)state;
	server_start(&server, 60);
	fd = client_new();
	put(fd, "{\"command\":\"large\",\"bytes\":16777216}\n");
	expect(fd, "{\"ok\":false,\"error\":\"reply too long\"}\n");
	put(fd, "{\"command\":\"nothing\"}\n");
	expect(fd, "{\"ok\":true,\"result\":{}}\n");
	close(fd);
	server_stop(&server);
}

static void test_client_bound(void **state)
{
	int fds[ES_CONTROL_CLIENTS_MAX], fd, i;
	struct server server;
	char line[128];
	ssize_t n;

	(void)state;
	server_start(&server, 60);
	for (i = 0; i < ES_CONTROL_CLIENTS_MAX; i++) {
		fds[i] = client_new();
		put(fds[i], "{\"command\":\"nothing\"}\n");
		expect(fds[i], "{\"ok\":true,\"result\":{}}\n");
	}
	fd = client_new();
	expect(fd, "{\"ok\":false,\"error\":\"too many clients, try again later\"}\n");
	expect_end(fd);
	close(fd);
	close(fds[0]);
	do { /* until the server has seen that one is gone */
		fd = client_new();
		(void)!send(fd, "{\"command\":\"nothing\"}\n", 22, MSG_NOSIGNAL);
		n = recv(fd, line, sizeof(line) - 1, 0);
		assert_true(n > 0);
		line[n] = 0;
		close(fd);
	} while (strstr(line, "too many"));
	assert_string_equal(line, "{\"ok\":true,\"result\":{}}\n");
	for (i = 1; i < ES_CONTROL_CLIENTS_MAX; i++)
		close(fds[i]);
	server_stop(&server);
}

static void test_idle(void **state)
{
	struct server server;
	int silent, partial, deaf;

	(void)state;
	server_start(&server, 0.1);
	silent = client_new();
	expect_end(silent);
	/* on a busy machine the server may have given up before these are sent, which is as well */
	partial = client_new();
	(void)!send(partial, "{\"command\":", 11, MSG_NOSIGNAL);
	expect_end(partial);
	deaf = client_new();
	(void)!send(deaf, "{\"command\":\"large\",\"bytes\":8000000}\n", 36, MSG_NOSIGNAL);
	/* it takes nothing, so the server must be the one to end it */
	while (send(deaf, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 || errno == EAGAIN)
		sched_yield();
	assert_int_equal(errno, EPIPE);
	close(deaf);
	close(silent);
	close(partial);
	server_stop(&server);
}

/* Clients that are there when the daemon stops, one with an unfinished reply. */
static void test_stop_with_clients(void **state)
{
	struct server server;
	int fds[3], i;

	(void)state;
	server_start(&server, 60);
	for (i = 0; i < 3; i++)
		fds[i] = client_new();
	put(fds[0], "{\"command\":\"large\",\"bytes\":8000000}\n");
	expect(fds[0], "{\"ok\":true");
	put(fds[1], "{\"command\":\"nothing\"}\n");
	expect(fds[1], "{\"ok\":true");
	server_stop(&server);
	for (i = 0; i < 3; i++)
		close(fds[i]);
}

static void expect_new_failure(int code, const char *format)
{
	struct ev_loop *loop = ev_loop_new(0);
	struct es_control *control = NULL;
	struct es_conf_error err;
	char expected[512];

	assert_int_equal(es_control_new(loop, path, &control, &err), code);
	assert_null(control);
	snprintf(expected, sizeof(expected), "control socket %s: %s", path, format);
	assert_string_equal(err.text, expected);
	ev_loop_destroy(loop);
}

static void test_socket_file(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct es_control *control = NULL;
	struct es_conf_error err;
	struct server server;
	struct stat st;
	int fd;

	(void)state;
	server_start(&server, 60);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	expect_new_failure(-EADDRINUSE, "another earshotd answers there: stop it first");
	fd = client_new();
	put(fd, "{\"command\":\"nothing\"}\n"); /* the first one is none the worse */
	expect(fd, "{\"ok\":true,\"result\":{}}\n");
	close(fd);
	server_stop(&server);

	/* what a killed daemon leaves */
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (void *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 1), 0);
	close(fd);
	assert_int_equal(access(path, F_OK), 0);
	server_start(&server, 60);
	server_stop(&server);

	/* somebody's file is not ours to remove */
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	expect_new_failure(-EEXIST, "there is a file that is not a socket: expected none");
	assert_int_equal(unlink(path), 0);

	/* neither is another daemon's socket that took the place of ours */
	{
		struct ev_loop *loop = ev_loop_new(0);

		assert_int_equal(es_control_new(loop, path, &control, &err), 0);
		assert_int_equal(unlink(path), 0);
		close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
		es_control_free(&control);
		es_control_free(&control);
		assert_int_equal(unlink(path), 0);
		ev_loop_destroy(loop);
	}
}

static void test_paths(void **state)
{
	static const char here[] =
		"/tmp/0123456789012345678901234567890123456789012345678901234567890123456789012345678901"
		"2345678901234567890123456789";
	struct ev_loop *loop = ev_loop_new(0);
	struct es_control *control = NULL;
	struct es_conf_error err;
	char sub[80], text[32];

	(void)state;
	assert_int_equal(es_control_path("n1", text, sizeof(text)), 0);
	assert_string_equal(text, "/run/earshot/n1.sock");
	assert_int_equal(es_control_path("n1", text, 20), -ENAMETOOLONG);
	assert_int_equal(es_control_new(loop, here, &control, &err), -ENAMETOOLONG);
	assert_non_null(strstr(err.text, "path too long: expected at most 107 characters"));
	snprintf(sub, sizeof(sub), "%s/run/n1.sock", directory);
	assert_int_equal(es_control_new(loop, sub, &control, &err), 0);
	assert_int_equal(es_control_register(control, "a", nothing, NULL), 0);
	es_control_free(&control);
	snprintf(sub, sizeof(sub), "%s/run", directory);
	assert_int_equal(rmdir(sub), 0);
	snprintf(sub, sizeof(sub), "%s/x/y/n1.sock", directory);
	assert_int_equal(es_control_new(loop, sub, &control, &err), -ENOENT);
	assert_non_null(strstr(err.text, "cannot be made: No such file or directory"));
	ev_loop_destroy(loop);
}

static int make_directory(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/s", directory);
	return 0;
}

static int remove_directory(void **state)
{
	(void)state;
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_protocol),      cmocka_unit_test(test_bad_requests),
		cmocka_unit_test(test_request_bound), cmocka_unit_test(test_slow_reader),
		cmocka_unit_test(test_reply_bound),   cmocka_unit_test(test_client_bound),
		cmocka_unit_test(test_idle),	      cmocka_unit_test(test_stop_with_clients),
		cmocka_unit_test(test_socket_file),   cmocka_unit_test(test_paths),
	};

	return cmocka_run_group_tests_name("control", tests, make_directory, remove_directory);
}
