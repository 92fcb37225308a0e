// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Checks by HTTPS, and servers that speak TLS where a check does not: against a server of OpenSSL in a thread
 * of this process.
 */
#include "cmocka_all.h"
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "inspector/base/sockaddr.h"
#include "inspector/health/server_check.h"

/* The server's manner with clients that do not begin with TLS, or with all clients. */
enum manner {
	CLOSES,	   /* as most do */
	ANSWERS,   /* 400, as nginx does, and then an answer by TLS for who speaks it */
	MUTE,	   /* accepts, and says nothing */
	ENDS_LATE, /* by TLS, half of an answer, then nothing for a while */
	NOT_TLS,   /* speaks HTTP, whatever it is asked */
};

struct server {
	int listener;
	SSL_CTX *ctx;
	enum manner manner;
	const char *answer;
	char name[256]; /* that the last client has told */
	char request[1024];
	unsigned int accepted;
	pthread_t thread;
};

struct world {
	struct server server;
	struct es_server_check check;
	unsigned long long now_ns;
	char ca_file[64];
};

static X509 *certificate(EVP_PKEY *key, const char *name, X509 *issuer, EVP_PKEY *issuer_key, int is_ca)
{
	X509 *x = X509_new();
	X509_NAME *subject = X509_get_subject_name(x);
	char names[128];
	X509V3_CTX ctx;
	X509_EXTENSION *extension;

	X509_set_version(x, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(x), is_ca ? 1 : 2);
	X509_gmtime_adj(X509_getm_notBefore(x), -3600);
	X509_gmtime_adj(X509_getm_notAfter(x), 3600);
	X509_set_pubkey(x, key);
	X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
	X509_set_issuer_name(x, issuer ? X509_get_subject_name(issuer) : subject);
	X509V3_set_ctx(&ctx, issuer ? issuer : x, x, NULL, NULL, 0);
	snprintf(names, sizeof(names), is_ca ? "critical,CA:TRUE" : "DNS:%s", name);
	extension =
		X509V3_EXT_conf_nid(NULL, &ctx, is_ca ? NID_basic_constraints : NID_subject_alt_name, names);
	assert_non_null(extension);
	X509_add_ext(x, extension, -1);
	X509_EXTENSION_free(extension);
	assert_true(X509_sign(x, issuer_key, EVP_sha256()) > 0);
	return x;
}

static void serve(struct server *s, int fd)
{
	char bytes[1024] = "";
	struct pollfd there = {.fd = fd, .events = POLLIN};
	SSL *ssl = NULL;
	int got;

	if (s->manner == MUTE) {
		while (recv(fd, bytes, sizeof(bytes), 0) > 0)
			;
		return;
	}
	if (poll(&there, 1, 5000) != 1)
		return;
	if (s->manner == NOT_TLS ||
	    (s->manner == ANSWERS && recv(fd, bytes, 1, MSG_PEEK) == 1 && bytes[0] == 'G')) {
		static const char plain[] = "HTTP/1.1 400 Bad Request\r\n\r\n";

		recv(fd, bytes, sizeof(bytes), 0);
		send(fd, plain, sizeof(plain) - 1, MSG_NOSIGNAL);
		return;
	}
	ssl = SSL_new(s->ctx);
	SSL_set_fd(ssl, fd);
	if (SSL_accept(ssl) == 1 && (got = SSL_read(ssl, s->request, sizeof(s->request) - 1)) > 0) {
		const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

		s->request[got] = 0;
		snprintf(s->name, sizeof(s->name), "%s", name ? name : "");
		SSL_write(ssl, s->answer, (int)strlen(s->answer));
		if (s->manner == ENDS_LATE)
			while (SSL_read(ssl, bytes, sizeof(bytes)) > 0)
				;
		SSL_shutdown(ssl);
	}
	SSL_free(ssl);
}

static void *run_server(void *arg)
{
	struct server *s = arg;
	int fd;

	while ((fd = accept(s->listener, NULL, NULL)) >= 0) {
		s->accepted++;
		serve(s, fd);
		close(fd);
	}
	return NULL;
}

static void make_certificates(struct world *w)
{
	EVP_PKEY *ca_key = EVP_EC_gen("P-256"), *key = EVP_EC_gen("P-256");
	X509 *ca = certificate(ca_key, "ca.example", NULL, ca_key, 1);
	X509 *own = certificate(key, "www.example", ca, ca_key, 0);
	FILE *file;
	int fd;

	w->server.ctx = SSL_CTX_new(TLS_server_method());
	SSL_CTX_use_certificate(w->server.ctx, own);
	SSL_CTX_use_PrivateKey(w->server.ctx, key);
	snprintf(w->ca_file, sizeof(w->ca_file), "/tmp/test_health_tls.XXXXXX");
	fd = mkstemp(w->ca_file);
	assert_return_code(fd, 0);
	file = fdopen(fd, "w");
	assert_non_null(file);
	PEM_write_X509(file, ca);
	fclose(file);
	X509_free(ca);
	X509_free(own);
	EVP_PKEY_free(ca_key);
	EVP_PKEY_free(key);
}

static int set_up(void **state)
{
	static struct world w;
	const struct es_addr local = {.b = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};
	union es_sockaddr own = es_sockaddr_of(&local, 0);
	struct es_conf_service service = {.port = 1};
	socklen_t len = sizeof(own);

	signal(SIGPIPE, SIG_IGN); /* as the daemon does */
	w = (struct world){.now_ns = 1000000000, .server.answer = "HTTP/1.1 200 OK\r\n\r\nall is well\n"};
	make_certificates(&w);
	w.server.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_return_code(bind(w.server.listener, &own.sa, es_sockaddr_len(&own)), 0);
	assert_return_code(listen(w.server.listener, 8), 0);
	getsockname(w.server.listener, &own.sa, &len);
	service.check = (struct es_conf_check){.type = ES_CONF_CHECK_HTTPS,
					       .path = "/alive",
					       .port = es_sockaddr_port(&own),
					       .interval_ms = 1000,
					       .timeout_ms = 1000};
	es_conf_status_add(&service.check, 200, 399);
	es_server_check_init(&w.check, &service, &local);
	assert_int_equal(pthread_create(&w.server.thread, NULL, run_server, &w.server), 0);
	*state = &w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	es_server_check_end(&w->check);
	shutdown(w->server.listener, SHUT_RDWR);
	pthread_join(w->server.thread, NULL);
	close(w->server.listener);
	SSL_CTX_free(w->server.ctx);
	unlink(w->ca_file);
	return 0;
}

/*
 * As the daemon does: a step when there is something to do. Its clock runs so many times @faster than real
 * time; or, with 1, so slowly that a server which answers is in time on a busy machine, too.
 */
static enum es_server_check_result ask(struct world *w, unsigned int faster)
{
	enum es_server_check_result result = ES_SERVER_CHECK_PENDING;

	es_server_check_begin(&w->check, w->now_ns);
	for (int i = 0; i < 30000 && result == ES_SERVER_CHECK_PENDING; i++) {
		struct pollfd there = {.fd = w->check.fd,
				       .events = es_server_check_wants_write(&w->check) ? POLLOUT : POLLIN};

		poll(&there, 1, 1);
		w->now_ns += faster > 1 ? 1000000ULL * faster : 50000;
		result = es_server_check_step(&w->check, w->now_ns);
	}
	return result;
}

static void host_set(struct world *w, const char *host)
{
	snprintf(w->check.conf.host, sizeof(w->check.conf.host), "%s", host);
}

static void test_passes(void **state)
{
	struct world *w = *state;

	/* Whoever has issued its certificate, and for whom. */
	host_set(w, "other.example:8443");
	for (int i = 0; i < 3; i++)
		if (ask(w, 1) != ES_SERVER_CHECK_PASSED)
			fail_msg("%s", w->check.why);
	assert_string_equal(w->server.name, "other.example");
	assert_non_null(strstr(w->server.request, "GET /alive HTTP/1.1\r\nHost: other.example:8443\r\n"));
	assert_true(w->check.duration_s > 0);
	snprintf(w->check.conf.body, sizeof(w->check.conf.body), "well");
	assert_int_equal(ask(w, 1), ES_SERVER_CHECK_PASSED);
	w->server.answer = "HTTP/1.1 200 OK\r\n\r\nmaintenance\n";
	assert_int_equal(ask(w, 1), ES_SERVER_CHECK_FAILED);
	assert_string_equal(w->check.why, "the answer to GET /alive does not have \"well\" in its body");
	w->server.answer = "HTTP/1.1 503 No\r\n\r\n";
	assert_int_equal(ask(w, 1), ES_SERVER_CHECK_FAILED);
	assert_string_equal(w->check.why, "the answer to GET /alive is 503");
	/* An address is no name of a server. */
	host_set(w, "127.0.0.1");
	assert_int_equal(ask(w, 1), ES_SERVER_CHECK_FAILED);
	assert_string_equal(w->server.name, "");
}

static void test_certificate(void **state)
{
	struct world *w = *state;

	memcpy(w->check.conf.ca_file, w->ca_file, sizeof(w->ca_file));
	host_set(w, "www.example");
	if (ask(w, 1) != ES_SERVER_CHECK_PASSED)
		fail_msg("%s", w->check.why);
	host_set(w, "www.example:443");
	assert_int_equal(ask(w, 1), ES_SERVER_CHECK_PASSED);
	host_set(w, "other.example");
	assert_int_equal(ask(w, 1), ES_SERVER_CHECK_FAILED);
	assert_string_equal(w->check.why, "the server's certificate: hostname mismatch");
	host_set(w, "127.0.0.1");
	assert_int_equal(ask(w, 1), ES_SERVER_CHECK_FAILED);
	assert_string_equal(w->check.why, "the server's certificate: IP address mismatch");
	/* One that somebody else has issued. */
	host_set(w, "www.example");
	es_server_check_end(&w->check);
	snprintf(w->check.conf.ca_file, sizeof(w->check.conf.ca_file), "/etc/ssl/certs/ca-certificates.crt");
	if (!access(w->check.conf.ca_file, R_OK)) {
		assert_int_equal(ask(w, 1), ES_SERVER_CHECK_FAILED);
		assert_non_null(strstr(w->check.why, "the server's certificate: unable to get local issuer"));
		es_server_check_end(&w->check);
	}
	/* No such file; it is there later. */
	snprintf(w->check.conf.ca_file, sizeof(w->check.conf.ca_file), "/nowhere/ca.pem");
	assert_int_equal(ask(w, 1), ES_SERVER_CHECK_FAILED);
	assert_string_equal(w->check.why,
			    "ca_file /nowhere/ca.pem has no certificates: No such file or directory");
	memcpy(w->check.conf.ca_file, w->ca_file, sizeof(w->ca_file));
	assert_int_equal(ask(w, 1), ES_SERVER_CHECK_PASSED);
}

/* A server that accepts and says nothing, or not all: it fails in time. */
static void test_hangs(void **state)
{
	struct world *w = *state;

	w->server.manner = MUTE;
	assert_int_equal(ask(w, 100), ES_SERVER_CHECK_FAILED);
	assert_string_equal(w->check.why, "no answer within 1000 ms");
	w->server.manner = ENDS_LATE;
	w->server.answer = "HTTP/1.1 200 OK\r\n\r\nal";
	snprintf(w->check.conf.body, sizeof(w->check.conf.body), "all");
	assert_int_equal(ask(w, 20), ES_SERVER_CHECK_FAILED);
	assert_string_equal(w->check.why, "the answer to GET /alive does not have \"all\" within 1000 ms");
	w->server.manner = NOT_TLS;
	assert_int_equal(ask(w, 1), ES_SERVER_CHECK_FAILED);
	assert_string_equal(w->check.why, "the server does not speak TLS: expected another type or port");
}

/* Another port than the service's: that nobody listens there says nothing of who listens for clients. */
static void test_refused(void **state)
{
	struct world *w = *state;

	w->check.port = 1;
	assert_int_equal(ask(w, 1), ES_SERVER_CHECK_FAILED);
	assert_non_null(strstr(w->check.why, "refused"));
	assert_false(w->check.is_refused);
	w->check.is_own_port = 1;
	assert_int_equal(ask(w, 1), ES_SERVER_CHECK_FAILED);
	assert_true(w->check.is_refused);
}

/* Asked in the clear, it says so; and it is asked for that once, until a check has passed. */
static void test_looks_like_tls(void **state)
{
	struct world *w = *state;

	w->check.conf.type = ES_CONF_CHECK_HTTP;
	assert_int_equal(ask(w, 1), ES_SERVER_CHECK_FAILED);
	/* A server that has not read all of it ends it with a RST. */
	assert_string_equal(w->check.why,
			    "Connection reset by peer: it looks like TLS; expected type = https");
	assert_int_equal(w->server.accepted, 2);
	assert_int_equal(ask(w, 1), ES_SERVER_CHECK_FAILED);
	assert_non_null(strstr(w->check.why, "looks like TLS"));
	assert_int_equal(w->server.accepted, 3);
	w->server.manner = ANSWERS;
	w->check.speaks = ES_SERVER_CHECK_SPEAKS_UNKNOWN;
	assert_int_equal(ask(w, 1), ES_SERVER_CHECK_FAILED);
	assert_string_equal(w->check.why,
			    "the answer to GET /alive is 400: it looks like TLS; expected type = https");
	/* One that understands neither, and one that says nothing to TLS. */
	w->server.manner = NOT_TLS;
	w->check.speaks = ES_SERVER_CHECK_SPEAKS_UNKNOWN;
	assert_int_equal(ask(w, 1), ES_SERVER_CHECK_FAILED);
	assert_string_equal(w->check.why, "the answer to GET /alive is 400");
	w->server.manner = MUTE;
	w->check.speaks = ES_SERVER_CHECK_SPEAKS_UNKNOWN;
	assert_int_equal(ask(w, 100), ES_SERVER_CHECK_FAILED);
	assert_string_equal(w->check.why, "no answer within 1000 ms");
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_passes),  TEST(test_certificate),    TEST(test_hangs),
		TEST(test_refused), TEST(test_looks_like_tls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
