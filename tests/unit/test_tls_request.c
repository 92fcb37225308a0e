// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tls/http/request.h and proxy_v2.h: what the server behind is told of a client, and what a client cannot
 * tell it; where a request ends.
 */
#include "cmocka_all.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/fuzz/tls_head_check.h"
#include "tls/http/proxy_v2.h"
#include "tls/http/request.h"

static struct es_flow flow_v4(void)
{
	struct es_flow flow = {
		.client = es_addr_from_v4(es_htonl(0xc0000201)),
		.service = es_addr_from_v4(es_htonl(0xc6336402)),
		.client_port = es_htons(40000),
		.service_port = es_htons(443),
	};

	return flow;
}

static struct es_flow flow_v6(void)
{
	struct es_flow flow = flow_v4();

	memset(&flow.client, 0, sizeof(flow.client));
	memset(&flow.service, 0, sizeof(flow.service));
	memcpy(&flow.client, "\x20\1\xd\xb8", 4);
	memcpy(&flow.service, "\x20\1\xd\xb8", 4);
	flow.client.b[15] = 1;
	flow.service.b[15] = 2;
	return flow;
}

static void scan(struct es_http_head *head, const char *text, size_t len)
{
	es_http_head_init(head);
	assert_int_equal(es_http_head_scan(head, text, len), ES_HTTP_DONE);
}

/* The rewritten head is just @expected. */
static void check(const char *text, enum es_tls_tell tell, const struct es_flow *flow,
		  const struct es_tls_state *state, const char *expected)
{
	struct es_tls_state none;
	struct es_http_head head;
	char out[4096];
	size_t len;

	memset(&none, 0, sizeof(none));
	scan(&head, text, strlen(text));
	len = es_tls_request_head(&head, text, tell, flow, state ? state : &none, out);
	out[len] = '\0';
	assert_string_equal(out, expected);
}

static void the_server_is_told_of_the_client(void **unused)
{
	static const char text[] = "\r\nGET /a?b HTTP/1.1\r\nHost: h\r\nAccept: */*\r\n\r\nbody";
	struct es_flow v4 = flow_v4(), v6 = flow_v6(), mixed = v4;
	struct es_tls_state state;

	mixed.client = v6.client;
	memset(&state, 0, sizeof(state));
	state.has_client = 1;
	for (size_t i = 0; i < ES_TLS_DIGEST_SIZE; i++)
		state.client_digest[i] = (uint8_t)(i * 8 + 7);
#define BEFORE "GET /a?b HTTP/1.1\r\nHost: h\r\nAccept: */*\r\n"
	check(text, ES_TLS_TELL_X_FORWARDED, &v4, NULL,
	      BEFORE
	      "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Port: 443\r\n\r\n");
	check(text, ES_TLS_TELL_X_FORWARDED, &v6, NULL,
	      BEFORE
	      "X-Forwarded-For: 2001:db8::1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Port: 443\r\n\r\n");
	check(text, ES_TLS_TELL_FORWARDED, &v4, NULL,
	      BEFORE "Forwarded: for=192.0.2.1;by=\"198.51.100.2:443\";proto=https\r\n\r\n");
	check(text, ES_TLS_TELL_FORWARDED, &v6, NULL,
	      BEFORE "Forwarded: for=\"[2001:db8::1]\";by=\"[2001:db8::2]:443\";proto=https\r\n\r\n");
	check(text, ES_TLS_TELL_FORWARDED, &mixed, NULL,
	      BEFORE "Forwarded: for=\"[2001:db8::1]\";by=\"198.51.100.2:443\";proto=https\r\n\r\n");
	check(text, ES_TLS_TELL_FORWARDED, &v4, &state,
	      BEFORE "Forwarded: for=192.0.2.1;by=\"198.51.100.2:443\";proto=https\r\nX-SSL-Client-Sha256: "
		     "070f171f272f373f474f575f676f777f878f979fa7afb7bfc7cfd7dfe7eff7ff\r\n\r\n");
	check(text, ES_TLS_TELL_PROXY, &v4, &state, BEFORE "\r\n");
	check(text, ES_TLS_TELL_NOTHING, &v4, &state, BEFORE "\r\n");
#undef BEFORE
	(void)unused;
}

/* In whatever way a server may take it for one of ours. */
static void a_client_cannot_lie(void **unused)
{
	static const char *const lies[] = {
		"X-Forwarded-For: 10.0.0.1",
		"x-forwarded-for:10.0.0.1",
		"X-FORWARDED-PROTO: http",
		"X_Forwarded_For: 10.0.0.1",
		"X-Forwarded_For: 10.0.0.1",
		"X.Forwarded.For: 10.0.0.1",
		"X!Forwarded~Port: 80",
		"X-Forwarded: for=10.0.0.1",
		"X-Forwarded-Host: other",
		"X-Forwarded-Server: other",
		"X-Forwarded-Whatever: x",
		"Forwarded: for=10.0.0.1",
		"FORWARDED:",
		"X-Real-IP: 10.0.0.1",
		"X_Real_IP: 10.0.0.1",
		"X-SSL-Client-Sha256: 00",
		"x_ssl_client_sha256: 00",
		"X-SSL-Client-Cert: x",
		"X-SSL-Cert: x",
		"SSL-Client-Verify: SUCCESS",
		"SSL_CLIENT_CERT: x",
		"Client-Cert: :AAAA:",
		"Client-Cert-Chain: :AAAA:",
		"X-Client-Cert: x",
		"X-Client-Cert-Dn: x",
	};
	struct es_flow flow = flow_v4();
	char text[512];

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nA: 1\r\n%s\r\nHost: h\r\n%s\r\n\r\n", lies[i],
			 lies[i]);
		check(text, ES_TLS_TELL_NOTHING, &flow, NULL, "GET / HTTP/1.1\r\nA: 1\r\nHost: h\r\n\r\n");
	}
	(void)unused;
}

static void others_stay(void **unused)
{
	static const char text[] = "POST http://h/x HTTP/1.1\r\n"
				   "Host: h\r\n"
				   "Forwarded-For: a\r\n"
				   "XForwardedFor: a\r\n"
				   "X-Real-IPs: a\r\n"
				   "X-Real: a\r\n"
				   "X-Forwarde: a\r\n"
				   "Y-X-Forwarded-For: a\r\n"
				   "Client-Certificate-Not: a\r\n"
				   "Cookie:  x=1 ;y \r\n"
				   "Via: X-Forwarded-For: a\r\n"
				   "Content-Length: 3\r\n"
				   "\r\n";
	char expected[sizeof(text)], *line;
	struct es_flow flow = flow_v4();

	/* It begins as Client-Cert does. */
	memcpy(expected, text, sizeof(text));
	line = strstr(expected, "Client-Cert");
	memmove(line, strchr(line, '\n') + 1, strlen(strchr(line, '\n') + 1) + 1);
	check(text, ES_TLS_TELL_NOTHING, &flow, NULL, expected);
	(void)unused;
}

/* "Connection: X-Forwarded-For" has servers take ours for one that ends there. */
static void a_client_cannot_take_ours_away(void **unused)
{
	static const struct {
		const char *sent;
		const char *kept;
	} cases[] = {
		{"Connection: keep-alive, X-Forwarded-For", "Connection: keep-alive\r\n"},
		{"connection:X-Forwarded-For,close", "Connection: close\r\n"},
		{"Connection: X-Forwarded-For", ""},
		{"Connection: a,x_ssl_client_sha256 ,, b", "Connection: a,b\r\n"},
		{"Connection: , Forwarded ,", ""},
		{"Connection: a X-Forwarded-For, \"X-Real-IP\", Forwarded x, b", "Connection: b\r\n"},
		{"Connection:  Upgrade ,keep-alive", "Connection:  Upgrade ,keep-alive\r\n"},
		{"Connection:", "Connection:\r\n"},
		{"Connection: ,", "Connection: ,\r\n"},
	};
	struct es_flow flow = flow_v4();
	char text[512], expected[512];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(text, sizeof(text), "GET / HTTP/1.1\r\n%s\r\nHost: h\r\n\r\n", cases[i].sent);
		snprintf(expected, sizeof(expected), "GET / HTTP/1.1\r\n%sHost: h\r\n\r\n", cases[i].kept);
		check(text, ES_TLS_TELL_NOTHING, &flow, NULL, expected);
	}
	(void)unused;
}

/* Also of the headers that nobody has recorded, since they are too many. */
static void no_header_is_too_far_down(void **unused)
{
	static char text[65536], expected[65536];
	struct es_flow flow = flow_v4();
	struct es_tls_state none;
	struct es_http_head head;
	static char out[65536 + ES_TLS_HEAD_EXTRA];
	size_t at, len;

	memset(&none, 0, sizeof(none));
	at = (size_t)sprintf(text, "GET / HTTP/1.1\r\nHost: h\r\n");
	for (unsigned int i = 0; i < 2 * ES_HTTP_HEADERS_MAX; i++)
		at += (size_t)sprintf(text + at, "N%u: v\r\n", i);
	memcpy(expected, text, at);
	memcpy(expected + at, "\r\n", 3);
	sprintf(text + at, "X-Forwarded-For: a\r\n\r\n");
	scan(&head, text, strlen(text));
	len = es_tls_request_head(&head, text, ES_TLS_TELL_NOTHING, &flow, &none, out);
	assert_int_equal(len, strlen(expected));
	assert_memory_equal(out, expected, len);
	(void)unused;
}

/* Thousands of options must not make it longer. */
static void connection_does_not_grow(void **unused)
{
	struct es_flow flow = flow_v6();
	struct es_tls_state state;
	struct es_http_head head;
	static char text[65536];
	size_t at;

	memset(&state, 0, sizeof(state));
	at = (size_t)sprintf(text, "GET / HTTP/1.1\r\nHost: h\r\nConnection:x-ssl");
	while (at < 60000)
		at += (size_t)sprintf(text + at, ",a");
	memcpy(text + at, "\r\n\r\n", 5);
	scan(&head, text, strlen(text));
	head_check(&head, text, ES_TLS_TELL_FORWARDED, &flow, &state);
	(void)unused;
}

static const char *pick(uint64_t *seed, const char *const *of, size_t count)
{
	return of[es_test_random(seed) % count];
}

#define PICK(seed, of) pick(seed, of, sizeof(of) / sizeof((of)[0]))

static void any_head_stays_the_same_request(void **unused)
{
	static const char *const requests[] = {"GET / HTTP/1.1",     "HEAD /x?y HTTP/1.1",
					       "POST /p HTTP/1.0",   "GET http://other/a HTTP/1.1",
					       "OPTIONS * HTTP/1.1", "CONNECT h:443 HTTP/1.1",
					       "X-Y! /%20 HTTP/1.1"};
	static const char *const names[] = {
		"X-Forwarded-For", "x_forwarded_for", "Forwarded",	"forwarde",   "X-Real-IP",
		"X-Real-I",	   "Cookie",	      "Connection",	"connection", "Upgrade",
		"X-SSL",	   "SSL-Client-Cert", "Client-Cert",	"Expect",     "x",
		"X-Forwarded",	   "Keep-Alive",      "!#$%&'*+-.^_`|~"};
	static const char *const values[] = {"",
					     "close",
					     "keep-alive",
					     "X-Forwarded-For, close",
					     "keep-alive,Forwarded",
					     "100-continue",
					     "h2c",
					     "\tx y\t",
					     "\"Forwarded: a\"",
					     ",,",
					     "x-real-ip",
					     "a,b, X_SSL_X"};
	static const char *const framings[] = {"", "Content-Length: 7\r\n", "Content-Length: 0\r\n",
					       "Transfer-Encoding: chunked\r\n"};
	static const char *const space[] = {"", " ", "  ", "\t"};
	struct es_flow flows[] = {flow_v4(), flow_v6()};
	unsigned int done = 0;
	struct es_tls_state state;
	uint64_t seed = 7;
	char text[4096];

	memset(&state, 0, sizeof(state));
	for (int n = 0; n < 20000; n++) {
		struct es_http_head head;
		size_t at = (size_t)sprintf(text, "%s%s\r\nHost: h\r\n", n % 5 ? "" : "\r\n",
					    PICK(&seed, requests));

		for (size_t i = es_test_random(&seed) % 12; i; i--)
			at += (size_t)sprintf(text + at, "%s:%s%s%s\r\n", PICK(&seed, names),
					      PICK(&seed, space), PICK(&seed, values), PICK(&seed, space));
		at += (size_t)sprintf(text + at, "%s\r\nGET", PICK(&seed, framings));
		es_http_head_init(&head);
		if (es_http_head_scan(&head, text, at) != ES_HTTP_DONE)
			continue;
		done++;
		state.has_client = n & 1;
		for (enum es_tls_tell tell = 0; tell <= ES_TLS_TELL_NOTHING; tell++)
			head_check(&head, text, tell, &flows[n % 2], &state);
	}
	assert_true(done > 10000);
	(void)unused;
}

/* Take all of @text as the body of a request with @headers, @step bytes at a time; returns those it took. */
static long body_of(const char *headers, const char *text, size_t step, int *ret_is_over)
{
	size_t len = strlen(text), at = 0;
	struct es_http_head head;
	struct es_tls_body body;
	char request[256];

	snprintf(request, sizeof(request), "%s\r\n", headers);
	scan(&head, request, strlen(request));
	es_tls_body_init(&body, &head);
	*ret_is_over = 0;
	do {
		size_t part = len - at < step ? len - at : step;
		long rc = es_tls_body_take(&body, (const uint8_t *)text + at, part, ret_is_over);

		if (rc < 0)
			return rc;
		at += (size_t)rc;
		assert_true((size_t)rc == part || *ret_is_over);
	} while (!*ret_is_over && at < len);
	return (long)at;
}

/* The server gets the body with @text, taken @step bytes at a time, as @passed. */
static void expect_passed(const char *headers, const char *text, size_t step, const char *passed)
{
	size_t len = strlen(text), at = 0, got = 0;
	char request[256], out[256];
	struct es_http_head head;
	struct es_tls_body body;
	int is_over = 0;

	snprintf(request, sizeof(request), "%s\r\n", headers);
	scan(&head, request, strlen(request));
	es_tls_body_init(&body, &head);
	while (!is_over) {
		size_t part = len - at < step ? len - at : step;
		long rc = es_tls_body_take(&body, (const uint8_t *)text + at, part, &is_over);

		assert_true(rc >= 0 && body.pass <= (size_t)rc);
		memcpy(out + got, text + at, body.pass);
		got += body.pass;
		at += (size_t)rc;
		if (is_over && body.ends_with_line)
			got += (size_t)sprintf(out + got, "\r\n");
	}
	out[got] = 0;
	assert_string_equal(out, passed);
}

/* Some servers take trailers for headers, so a client could have them say who it is. */
static void trailers_do_not_pass(void **unused)
{
	static const char head[] = "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n";

	for (size_t step = 1; step < 80; step++) {
		expect_passed(head, "3\r\nabc\r\n0\r\nX-Forwarded-For: 1.2.3.4\r\nT: 1\r\n\r\nGET", step,
			      "3\r\nabc\r\n0\r\n\r\n");
		expect_passed(head, "3;x=y\r\nabc\r\n00;z\r\n\r\nGET", step, "3;x=y\r\nabc\r\n00;z\r\n\r\n");
		expect_passed(head, "0\r\n\r\n", step, "0\r\n\r\n");
		expect_passed("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n", "12345GET", step,
			      "12345");
	}
	(void)unused;
}

static void a_body_ends_where_its_head_says(void **unused)
{
	int over;

	for (size_t step = 1; step < 40; step++) {
		assert_int_equal(body_of("GET / HTTP/1.1\r\nHost: h\r\n", "GET", step, &over), 0);
		assert_true(over);
		assert_int_equal(body_of("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n", "12345GET",
					 step, &over),
				 5);
		assert_true(over);
		assert_int_equal(
			body_of("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n", "12345", step, &over),
			5);
		assert_false(over);
#define CHUNKED "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n"
		assert_int_equal(body_of(CHUNKED, "3\r\nabc\r\n0\r\nT: 1\r\n\r\nGET", step, &over), 19);
		assert_true(over);
		assert_int_equal(body_of(CHUNKED, "3\r\nabc\r\n0\r\n", step, &over), 11);
		assert_false(over);
		assert_int_equal(body_of(CHUNKED, "3\r\nabcd\r\n", step, &over), -EBADMSG);
#undef CHUNKED
		assert_int_equal(body_of("CONNECT h:1 HTTP/1.1\r\nHost: h\r\n", "anything", step, &over), 8);
		assert_false(over);
	}
	(void)unused;
}

static void proxy_v2_of_ipv4(void **unused)
{
	static const uint8_t expected[] = "\r\n\r\n\0\r\nQUIT\n"
					  "\x21\x11\0\x51"
					  "\xc0\0\2\1\xc6\x33\x64\2\x9c\x40\1\xbb"
					  "\1\0\x8http/1.1"
					  "\2\0\x9www.x.org"
					  "\x20\0\x2b\1\0\0\0\1"
					  "\x21\0\7TLSv1.2"
					  "\x23\0\x19"
					  "DHE-RSA-AES256-GCM-SHA384";
	struct es_tls_state state = {.version = ES_TLS_1_2, .suite = 0x009f, .alpn = ES_TLS_ALPN_HTTP1};
	uint8_t bytes[ES_TLS_PROXY_V2_MAX];
	struct es_flow flow = flow_v4();
	size_t len;

	snprintf(state.name, sizeof(state.name), "www.x.org");
	len = es_tls_proxy_v2_put(&flow, &state, bytes);
	assert_int_equal(len, sizeof(expected) - 1);
	assert_memory_equal(bytes, expected, len);
	(void)unused;
}

static void proxy_v2_of_ipv6(void **unused)
{
	struct es_tls_state state = {.version = ES_TLS_1_3, .suite = 0x1301, .has_client = 1};
	uint8_t bytes[ES_TLS_PROXY_V2_MAX];
	struct es_flow flow = flow_v6();
	size_t len;

	memset(state.client_digest, 0xab, sizeof(state.client_digest));
	len = es_tls_proxy_v2_put(&flow, &state, bytes);
	assert_memory_equal(bytes + 12, "\x21\x21\0", 3);
	assert_int_equal(bytes[15] + 16, len);
	assert_memory_equal(bytes + 16, &flow.client, 16);
	assert_memory_equal(bytes + 32, &flow.service, 16);
	assert_memory_equal(bytes + 48, "\x9c\x40\1\xbb", 4);
	/* No ALPN, no name; a certificate, which was verified. */
	assert_memory_equal(bytes + 52, "\x20\0\x28\7\0\0\0\0\x21\0\7TLSv1.3\x23\0\x16TLS_AES_128_GCM_SHA256",
			    43);
	assert_memory_equal(bytes + 95, "\xe0\0\x20", 3);
	assert_memory_equal(bytes + 98, state.client_digest, 32);
	assert_int_equal(len, 130);
	(void)unused;
}

/* The longest there is. */
static void proxy_v2_has_room(void **unused)
{
	struct es_tls_state state = {
		.version = ES_TLS_1_2, .suite = 0xc02c, .has_client = 1, .alpn = ES_TLS_ALPN_HTTP1};
	uint8_t *bytes = malloc(ES_TLS_PROXY_V2_MAX);
	struct es_flow flow = flow_v6();

	assert_non_null(bytes);
	memset(state.name, 'x', sizeof(state.name) - 1);
	assert_true(es_tls_proxy_v2_put(&flow, &state, bytes) < ES_TLS_PROXY_V2_MAX);
	free(bytes);
	(void)unused;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_server_is_told_of_the_client),
		cmocka_unit_test(a_client_cannot_lie),
		cmocka_unit_test(others_stay),
		cmocka_unit_test(a_client_cannot_take_ours_away),
		cmocka_unit_test(no_header_is_too_far_down),
		cmocka_unit_test(connection_does_not_grow),
		cmocka_unit_test(any_head_stays_the_same_request),
		cmocka_unit_test(a_body_ends_where_its_head_says),
		cmocka_unit_test(trailers_do_not_pass),
		cmocka_unit_test(proxy_v2_of_ipv4),
		cmocka_unit_test(proxy_v2_of_ipv6),
		cmocka_unit_test(proxy_v2_has_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
