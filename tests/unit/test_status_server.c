// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The HTTP server of the metrics: what it answers, who may ask, how many get one document, and what it says
 * when nobody makes one.
 */
#include "tests/unit/config_text.h"
#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include "inspector/base/clock.h"
#include "inspector/base/sockaddr.h"
#include "inspector/status/accept.h"
#include "inspector/status/host.h"
#include "inspector/status/server.h"

static struct es_status_server *server;
static _Atomic unsigned int asked;
static int gives = 1;

static atomic_int givers;

/*
 * As the daemon's control thread would, but at once. The lock of the server is held: another thread does it.
 */
static void *give(void *arg)
{
	static const char *const text[ES_STATUS_DOCUMENTS] = {"plain", "open", "{\"node\":\"n1\"}"};

	for (unsigned int i = 0; i < ES_STATUS_DOCUMENTS; i++)
		if (es_status_server_wants(server, i))
			es_status_server_give(server, i, strdup(text[i]), strlen(text[i]));
	(void)arg;
	return NULL;
}

static void *give_and_end(void *arg)
{
	give(arg);
	givers--;
	return NULL;
}

/* A thread that gives may be at the next document when a client has its own already. */
static void end(void)
{
	while (givers)
		sched_yield();
	es_status_server_free(&server);
}

/* Where the server listens. */
static struct es_addr loopback = {.b = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};

static void ask(void *ctx)
{
	pthread_t thread;

	(void)ctx;
	asked++;
	if (gives) {
		givers++;
		assert_int_equal(pthread_create(&thread, NULL, give_and_end, NULL), 0);
		pthread_detach(thread);
	}
}

/* A port that was free a moment ago. */
static unsigned int port_free(void)
{
	union es_sockaddr at = es_sockaddr_of(&loopback, 0);
	socklen_t len = sizeof(at);
	int fd = socket(at.sa.sa_family, SOCK_STREAM, 0);

	assert_false(bind(fd, &at.sa, es_sockaddr_len(&at)));
	getsockname(fd, &at.sa, &len);
	close(fd);
	return ntohs(at.sa.sa_family == AF_INET6 ? at.v6.sin6_port : at.v4.sin_port);
}

static const struct es_conf_list no_names;

static unsigned int begin_as(const char *allow, const struct es_conf_list *names)
{
	struct es_conf_list list = {0};
	struct es_status_params params = {
		.address = loopback,
		.allow = &list,
		.names = names,
		.node = "n1",
		.ask = ask,
	};
	char text[32];
	int rc;

	if (allow) {
		list = (struct es_conf_list){
			.count = 1, .used = (unsigned int)strlen(allow) + 1, .text = text};
		snprintf(text, sizeof(text), "%s", allow);
	}
	asked = 0;
	do {
		params.port = port_free();
		rc = es_status_server_new(&params, &server);
	} while (rc == -EADDRINUSE);
	assert_int_equal(rc, 0);
	assert_true(es_status_server_is(server, &params));
	return params.port;
}

static unsigned int begin(const char *allow)
{
	return begin_as(allow, &no_names);
}

/* All that is answered to a request; "" if nothing does. */
static char *answer(unsigned int port, const char *request, char *text, size_t size)
{
	const union es_sockaddr at = es_sockaddr_of(&loopback, port);
	int fd = socket(at.sa.sa_family, SOCK_STREAM, 0);
	size_t used = 0;
	ssize_t n;

	assert_false(connect(fd, &at.sa, es_sockaddr_len(&at)));
	if (send(fd, request, strlen(request), MSG_NOSIGNAL) > 0)
		while (used < size - 1 && (n = recv(fd, text + used, size - 1 - used, 0)) > 0)
			used += (size_t)n;
	text[used] = 0;
	close(fd);
	return text;
}

#define GET(port, path) answer(port, "GET " path " HTTP/1.1\r\nHost: n1\r\n\r\n", text, sizeof(text))

static void expect(const char *text, const char *what)
{
	if (!strstr(text, what))
		fail_msg("not there: %s\nin: %s", what, text);
}

static void test_answers(void **state)
{
	unsigned int port = begin(NULL);
	char text[32768];

	(void)state;
	expect(GET(port, "/metrics"), "HTTP/1.1 200 OK\r\n");
	expect(text, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n");
	expect(text, "\r\n\r\nplain");
	expect(answer(port,
		      "GET /metrics HTTP/1.1\r\nHost: n1\r\nAccept: application/openmetrics-text\r\n\r\n",
		      text, sizeof(text)),
	       "\r\n\r\nopen");
	expect(text, "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n");
	expect(GET(port, "/page.json"), "\r\n\r\n{\"node\":\"n1\"}");
	expect(text, "Content-Type: application/json\r\n");
	expect(GET(port, "/"), "seen from n1");
	expect(text, "Content-Type: text/html; charset=utf-8\r\n");
	expect(text, "Content-Security-Policy: default-src 'none'; style-src 'nonce-");
	expect(GET(port, "/other"), "HTTP/1.1 404");
	expect(answer(port, "POST /metrics HTTP/1.1\r\nHost: n1\r\nContent-Length: 1\r\n\r\nx", text,
		      sizeof(text)),
	       "HTTP/1.1 405");
	expect(text, "Allow: GET, HEAD\r\n");
	end();
}

static void test_one_document_for_many(void **state)
{
	unsigned long long began_ns = es_clock_now_ns();
	unsigned int port = begin(NULL);
	char text[32768];

	(void)state;
	for (int i = 0; i < 20; i++)
		expect(GET(port, "/metrics"), "plain");
	assert_true(asked >= 1);
	assert_true(asked <= 1 + (es_clock_now_ns() - began_ns) / (ES_STATUS_FRESH_MS * 1000000ULL));
	end();
}

/* Nobody makes documents: clients are told so in time, the second one at once. */
static void test_nobody_answers(void **state)
{
	unsigned int port = begin(NULL);
	unsigned long long began_ns = es_clock_now_ns(), first_ns;
	char text[32768];

	(void)state;
	gives = 0;
	expect(GET(port, "/metrics"), "HTTP/1.1 503");
	first_ns = es_clock_now_ns() - began_ns;
	assert_true(first_ns >= ES_STATUS_WAIT_MS * 1000000ULL);
	expect(GET(port, "/metrics"), "HTTP/1.1 503");
	assert_true(es_clock_now_ns() - began_ns - first_ns < ES_STATUS_WAIT_MS * 1000000ULL / 2);
	gives = 1;
	give(NULL); /* it arrives late */
	expect(GET(port, "/metrics"), "plain");
	end();
}

static void test_who_may_ask(void **state)
{
	static const struct {
		const char *address, *allow;
		int may;
	} tests[] = {
		{"127.0.0.1", NULL, 1},
		{"127.0.0.1", "127.0.0.0/8", 1},
		{"127.0.0.1", "10.0.0.0/8", 0},
		{"127.0.0.1", "::/0", 0},
		{"::1", NULL, 1},
		{"::1", "::1", 1},
		{"::1", "2001:db8::/32", 0},
		{"::1", "0.0.0.0/0", 0},
	};
	char text[32768];

	(void)state;
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		unsigned int port;

		assert_int_equal(es_conf_addr_parse(tests[i].address, &loopback), 0);
		port = begin(tests[i].allow);
		GET(port, "/metrics");
		if (tests[i].may != !!strstr(text, "200 OK") || tests[i].may != (asked > 0))
			fail_msg("%s, allow %s: %s", tests[i].address,
				 tests[i].allow ? tests[i].allow : "all", text);
		end();
	}
	loopback = es_addr_from_v4(htonl(INADDR_LOOPBACK));
}

/* Nothing is made, let alone told, for a page of another site. */
static void test_another_site(void **state)
{
	static char more[] = "status.example\0*.cluster.example\0"
			     "2001:db8::7";
	const struct es_conf_list names = {.count = 3, .used = sizeof(more), .text = more};
	static const struct {
		const char *head;
		int status;
	} tests[] = {
		{"GET /page.json HTTP/1.1\r\nHost: rebound.attacker.example:7351\r\n\r\n", 421},
		{"GET / HTTP/1.1\r\nHost: n1.attacker.example\r\n\r\n", 421},
		{"GET /metrics HTTP/1.1\r\nHost: n2\r\n\r\n", 421},
		{"POST /metrics HTTP/1.1\r\nHost: n2\r\nContent-Length: 0\r\n\r\n", 421},
		{"GET /metrics HTTP/1.0\r\nHost: n2\r\n\r\n", 421},
		{"GET /metrics HTTP/1.1\r\nHost:\r\n\r\n", 421},
		{"GET /metrics HTTP/1.0\r\n\r\n", 200},
		{"GET /metrics HTTP/1.1\r\nHost: Status.Example.:80\r\n\r\n", 200},
		{"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:7351\r\n\r\n", 200},
	};
	struct es_status_params params = {
		.address = loopback, .allow = &no_names, .names = &names, .node = "n1"};
	char text[32768];

	(void)state;
	params.port = begin_as(NULL, &names);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		char status[32];

		snprintf(status, sizeof(status), "HTTP/1.1 %d", tests[i].status);
		expect(answer(params.port, tests[i].head, text, sizeof(text)), status);
		if (tests[i].status == 421)
			assert_int_equal(asked, 0);
	}
	params.names = &no_names;
	assert_false(es_status_server_is(server, &params));
	end();
}

static void test_names(void **state)
{
	static char more[] = "status.example\0*.cluster.example\0"
			     "2001:db8::7";
	const struct es_conf_list names = {.count = 3, .used = sizeof(more), .text = more};
	static const struct {
		const char *host;
		int is_ours;
	} tests[] = {
		{"10.78.0.1", 1},
		{"10.78.0.1:7351", 1},
		{"10.78.0.1:80", 1},
		{"10.78.0.1.:7351", 1},
		{"10.78.0.2", 0},
		{"10.78.0.1.example", 0},
		{"n1", 1},
		{"N1:7351", 1},
		{"n1.:7351", 1},
		{"n1.example", 0},
		{"n11", 0},
		{"n", 0},
		{"localhost", 1},
		{"LocalHost:9999", 1},
		{"localhost.example", 0},
		{"127.0.0.1:9999", 1},
		{"[::1]:9999", 1},
		{"::1", 1},
		{"status.example", 1},
		{"STATUS.example.:1", 1},
		{"a.status.example", 0},
		{"n1.cluster.example", 1},
		{"a.b.cluster.example", 1},
		{"cluster.example", 0},
		{".cluster.example", 0},
		{"xcluster.example", 0},
		{"[2001:db8::7]:7351", 1},
		{"[2001:db8:0::7]", 1},
		{"2001:db8::7", 1},
		{"[2001:db8::8]", 0},
		{"[2001:db8::7", 0},
		{"[2001:db8::7]x", 0},
		{"", 0},
		{":7351", 0},
		{".", 0},
		{"[]", 0},
		{"*.cluster.example", 1},
		{"rebound.attacker.example", 0},
		{"127.0.0.1.attacker.example", 0},
	};
	struct es_host of = {.address = es_addr_from_v4(htonl(0x0a4e0001)), .node = "n1", .names = &names};
	char huge[1000];

	(void)state;
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (es_host_is_called(&of, tests[i].host) != tests[i].is_ours)
			fail_msg("%s", tests[i].host);
	memset(huge, 'a', sizeof(huge));
	huge[sizeof(huge) - 1] = 0;
	assert_false(es_host_is_called(&of, huge));
	of.names = &no_names;
	assert_false(es_host_is_called(&of, "status.example"));
	assert_int_equal(es_conf_addr_parse("2001:db8::1", &of.address), 0);
	assert_true(es_host_is_called(&of, "[2001:DB8::1]:7351"));
	assert_false(es_host_is_called(&of, "10.78.0.1"));
}

static void test_accept(void **state)
{
	static const struct {
		const char *accept;
		int is_open;
	} tests[] = {
		{NULL, 0},
		{"", 0},
		{"*/*", 0},
		{"text/html", 0},
		{"application/openmetrics-text", 1},
		{"application/*", 1},
		{"text/plain;q=1, application/openmetrics-text;q=0", 0},
		{"application/openmetrics-text;q=0", 0},
		{"application/openmetrics-text;q=0.000,*/*", 0},
		{"application/openmetrics-text;q=0.1, text/plain;version=0.0.4;q=0.9", 0},
		{"application/openmetrics-text; version=1.0.0; q=0.6 "
		 ",text/plain;version=0.0.4;q=0.3,*/*;q=0.1",
		 1},
		{"application/openmetrics-text;version=1.0.0,application/"
		 "openmetrics-text;version=0.0.1;q=0.75,"
		 "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		 1},
		{"application/vnd.google.protobuf;encoding=delimited;q=0.8,APPLICATION/"
		 "OpenMetrics-Text;Q=0.7,"
		 "text/plain;q=0.5",
		 1},
		{"text/plain,application/openmetrics-text", 0},
		{"application/openmetrics-text,text/plain", 1},
		{"text/*;q=0.4, */*;q=0.5", 1},
		{"text/plain;q=0.2, text/*;q=0.9, application/openmetrics-text;q=0.3", 1},
		{"text/plain;a=\"x,application/openmetrics-text;q=1\";q=0.2,application/"
		 "openmetrics-text;q=0.1",
		 0},
		{"text/plain;a=\"\\\",application/openmetrics-text", 0},
		{"application/openmetrics-text;q=x, text/plain;q=0.9", 1},
		{",;,;;,=,q=,", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if ((es_accept_format(tests[i].accept) == ES_EXPOSITION_OPENMETRICS) != tests[i].is_open)
			fail_msg("%s", tests[i].accept ? tests[i].accept : "none");
}

static void test_cannot_listen(void **state)
{
	const struct es_conf_list none = {0};
	struct es_status_params params = {.address = es_addr_from_v4(htonl(INADDR_LOOPBACK)),
					  .allow = &none,
					  .names = &none,
					  .node = "n1",
					  .ask = ask};
	struct es_status_server *other = NULL;

	(void)state;
	params.port = begin(NULL);
	assert_int_equal(es_status_server_new(&params, &other), -EADDRINUSE);
	params.address = es_addr_from_v4(htonl(0xc0000201)); /* 192.0.2.1 is nobody's */
	assert_int_equal(es_status_server_new(&params, &other), -EADDRNOTAVAIL);
	assert_null(other);
	assert_false(es_status_server_is(server, &params));
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),	       cmocka_unit_test(test_one_document_for_many),
		cmocka_unit_test(test_nobody_answers), cmocka_unit_test(test_who_may_ask),
		cmocka_unit_test(test_cannot_listen),  cmocka_unit_test(test_another_site),
		cmocka_unit_test(test_names),	       cmocka_unit_test(test_accept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
