// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A service's settings: which certificate is shown to whom, with which OCSP response, which protocol and
 * cipher is agreed on, and in which words settings and files are refused.
 */
#include "tls_world.h"
#include <errno.h>
#include "inspector/base/clock.h"
#include "inspector/base/wall.h"

static struct pair root, a_ec, a_rsa, b_wild, b_www, old;

static void put(struct pair *pair, const char *file, const char *key, const char *names)
{
	*pair = made_pair(&(struct made){.key = key, .names = names}, &root);
	put_pair(file, pair, NULL);
}

static int make_files(void **state)
{
	if (make_directory(state))
		return -1;
	root = made_pair(&(struct made){.key = "p256", .is_ca = 1}, NULL);
	put_pair("root", &root, NULL);
	put(&a_ec, "a_ec", "p256", "DNS:a.example");
	put(&a_rsa, "a_rsa", "rsa", "DNS:a.example");
	put(&b_wild, "b_wild", "p256", "DNS:*.b.example");
	put(&b_www, "b_www", "p256", "DNS:www.b.example");
	old = made_pair(&(struct made){.key = "p256", .from_s = -7200, .until_s = -3600}, &root);
	put_pair("old", &old, NULL);
	put_staple("b_wild.ocsp", &b_wild, &root, V_OCSP_CERTSTATUS_GOOD, 1000);
	put_staple("late.ocsp", &a_ec, &root, V_OCSP_CERTSTATUS_GOOD, -10);
	put_staple("revoked.ocsp", &a_ec, &root, V_OCSP_CERTSTATUS_REVOKED, 1000);
	put_text("text", "no PEM\n");
	return 0;
}

static int remove_files(void **state)
{
	pair_free(&root);
	pair_free(&a_ec);
	pair_free(&a_rsa);
	pair_free(&b_wild);
	pair_free(&b_www);
	pair_free(&old);
	return remove_directory(state);
}

static struct es_tls_certificate files_of(const char *name, const char *ocsp)
{
	static char paths[16][128];
	static unsigned int next;
	char *certificate = paths[next++ % 16], *key = paths[next++ % 16];

	snprintf(certificate, sizeof(paths[0]), "%s/%s.pem", made_directory, name);
	snprintf(key, sizeof(paths[0]), "%s/%s.key", made_directory, name);
	return (struct es_tls_certificate){certificate, key, ocsp ? made_path(ocsp) : NULL};
}

static int is_wildcard_last;

/* Contexts of the tests have these certificates, and the settings that they want else. */
static struct es_tls_context *context_new(const struct es_tls_settings *wanted)
{
	struct es_tls_certificate certificates[] = {files_of("a_ec", "late.ocsp"),
						    files_of("b_wild", "b_wild.ocsp"),
						    files_of("b_www", NULL), files_of("a_rsa", NULL)};
	struct es_tls_settings settings = *wanted;
	struct es_tls_context *context;
	struct es_conf_error err = {};

	if (is_wildcard_last) {
		certificates[1] = files_of("b_www", NULL);
		certificates[2] = files_of("b_wild", "b_wild.ocsp");
	}
	settings.certificates = certificates;
	settings.certificate_count = 4;
	if (es_tls_context_new(&settings, &context, &err))
		fail_msg("%s", err.text);
	return context;
}

static void shown(struct world *w, const struct wish *wish, const struct pair *pair)
{
	shake(w, wish);
	if (w->progress == ES_TLS_SHAKE_BAD)
		fail_msg("%s", es_tls_handshake_why(w->handshake));
	assert_int_equal(X509_cmp(SSL_get0_peer_certificate(w->client), pair->x), 0);
	assert_int_equal(es_tls_handshake_state(w->handshake, &w->state), 0);
}

static void test_names(void **state)
{
	static const struct {
		const char *name, *sigalgs;
		const struct pair *pair;
	} cases[] = {
		{NULL, NULL, &a_ec},
		{"a.example", NULL, &a_ec},
		{"A.EXAMPLE", NULL, &a_ec},
		{"other.example", NULL, &a_ec},
		{"a.example", "rsa_pss_rsae_sha256", &a_rsa},
		{NULL, "rsa_pss_rsae_sha256", &a_rsa},
		{"x.b.example", NULL, &b_wild},
		{"www.b.example", NULL, &b_www},
		{"WWW.b.example", NULL, &b_www},
		{"x.www.b.example", NULL, &a_ec},
		{"b.example", NULL, &a_ec},
	};
	static struct world w;

	(void)state;
	for (int i = 0; i < 4; i++) {
		is_wildcard_last = i / 2;
		w.context = context_new(&(struct es_tls_settings){});
		for (size_t j = 0; j < sizeof(cases) / sizeof(cases[0]); j++) {
			struct wish wish = {.version = i % 2 ? TLS1_3_VERSION : TLS1_2_VERSION,
					    .name = cases[j].name,
					    .sigalgs = cases[j].sigalgs};

			shown(&w, &wish, cases[j].pair);
			part(&w);
		}
		es_tls_context_free(&w.context);
	}
	is_wildcard_last = 0;
}

/* Nobody's server is called so. */
static void test_strange_names(void **state)
{
	static const char *const names[] = {"a b", "a\r\nX: y", "\"a\"", "a\x80", "a\tb"};
	struct world w = {.context = context_new(&(struct es_tls_settings){})};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct wish wish = {.name = names[i]};

		shake(&w, &wish);
		assert_int_equal(w.progress, ES_TLS_SHAKE_BAD);
		assert_string_equal(es_tls_handshake_why(w.handshake), "callback failed");
		assert_int_equal(ERR_GET_REASON(ERR_peek_error()), SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER);
		part(&w);
	}
	es_tls_context_free(&w.context);
}

static void test_staples(void **state)
{
	struct world w = {.context = context_new(&(struct es_tls_settings){})};
	const unsigned char *der;

	(void)state;
	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
		struct wish wish = {.version = version, .name = "x.b.example", .asks_staple = 1};

		shown(&w, &wish, &b_wild);
		assert_true(SSL_get_tlsext_status_ocsp_resp(w.client, &der) > 100);
		part(&w);
		es_wall_set(es_wall_ns() + 1100000000000ULL - es_clock_now_ns(), 1);
		shown(&w, &wish, &b_wild); /* its time is over now */
		assert_int_equal(SSL_get_tlsext_status_ocsp_resp(w.client, &der), -1);
		part(&w);
		es_wall_set(0, 0);
		wish.name = "a.example"; /* and here it was from the beginning */
		shown(&w, &wish, &a_ec);
		assert_int_equal(SSL_get_tlsext_status_ocsp_resp(w.client, &der), -1);
		part(&w);
		wish.name = "x.b.example";
		wish.asks_staple = 0;
		shown(&w, &wish, &b_wild);
		assert_int_equal(SSL_get_tlsext_status_ocsp_resp(w.client, &der), -1);
		part(&w);
	}
	es_tls_context_free(&w.context);
}

/* The server's order decides; no protocol in common is an alert (RFC 7301 section 3.2). */
static void test_alpn(void **state)
{
	static const struct {
		const char *offered;
		enum es_tls_alpn own[ES_TLS_ALPN_COUNT];
		int agreed; /* -1: none */
	} cases[] = {
		{"\x02h2\x08http/1.1", {ES_TLS_ALPN_HTTP1}, ES_TLS_ALPN_HTTP1},
		{NULL, {ES_TLS_ALPN_HTTP1}, ES_TLS_ALPN_NONE},
		{"\x02h2", {ES_TLS_ALPN_HTTP1}, -1},
		{"\x08http/1.0\x03h2c", {ES_TLS_ALPN_HTTP1}, -1},
		{"\x08http/1.1\x02h2", {ES_TLS_ALPN_HTTP2, ES_TLS_ALPN_HTTP1}, ES_TLS_ALPN_HTTP2},
		{"\x02h2\x08http/1.1", {ES_TLS_ALPN_HTTP1, ES_TLS_ALPN_HTTP2}, ES_TLS_ALPN_HTTP1},
		{"\x02h2", {ES_TLS_ALPN_HTTP1, ES_TLS_ALPN_HTTP2}, ES_TLS_ALPN_HTTP2},
		{"\x02h2", {ES_TLS_ALPN_NONE}, ES_TLS_ALPN_NONE},
	};

	(void)state;
	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			struct es_tls_settings settings = {};
			struct wish wish = {.version = version, .alpn = cases[i].offered};
			static struct world w;

			memcpy(settings.alpn, cases[i].own, sizeof(settings.alpn));
			w.context = context_new(&settings);
			shake(&w, &wish);
			if (cases[i].agreed < 0) {
				assert_int_equal(w.progress, ES_TLS_SHAKE_BAD);
				assert_int_equal(ERR_GET_REASON(ERR_peek_error()),
						 SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL);
			} else {
				assert_int_equal(es_tls_handshake_state(w.handshake, &w.state), 0);
				assert_int_equal(w.state.alpn, cases[i].agreed);
			}
			part(&w);
			es_tls_context_free(&w.context);
		}
}

/* The client's order of ciphers decides, as Mozilla recommends: it knows whether it has AES in hardware. */
static void test_order(void **state)
{
	static const struct {
		const char *ciphers;
		int version;
		uint16_t suite;
	} cases[] = {
		{"ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES128-GCM-SHA256", TLS1_2_VERSION, 0xcca9},
		{"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305", TLS1_2_VERSION, 0xc02b},
		{"ECDHE-ECDSA-AES256-SHA384:ECDHE-ECDSA-AES256-GCM-SHA384", TLS1_2_VERSION, 0xc02c},
		{"TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256", TLS1_3_VERSION, 0x1303},
		{"TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256", TLS1_3_VERSION, 0x1301},
		{"TLS_AES_128_CCM_SHA256:TLS_AES_256_GCM_SHA384", TLS1_3_VERSION, 0x1302},
	};
	struct world w = {.context = context_new(&(struct es_tls_settings){})};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int is_12 = cases[i].version == TLS1_2_VERSION;
		struct wish wish = {.version = cases[i].version,
				    .cipher = is_12 ? cases[i].ciphers : NULL,
				    .suite = is_12 ? NULL : cases[i].ciphers};

		shown(&w, &wish, &a_ec);
		assert_int_equal(w.state.suite, cases[i].suite);
		part(&w);
	}
	es_tls_context_free(&w.context);
}

/* Nothing below the settings is spoken, nor below the intermediate ones without settings. */
static void test_too_old(void **state)
{
	static const struct {
		struct es_tls_settings settings;
		struct wish wish;
		const char *why;
	} cases[] = {
		{{.minimum = ES_TLS_1_3}, {.version = TLS1_2_VERSION}, "unsupported protocol"},
		{{}, {.version = TLS1_2_VERSION, .cipher = "ECDHE-ECDSA-AES128-SHA256"}, "no shared cipher"},
		{{}, {.version = TLS1_2_VERSION, .cipher = "ECDHE-ECDSA-AES128-CCM"}, "no shared cipher"},
		{{.ciphers = "ECDHE+AESGCM:!AES128"},
		 {.version = TLS1_2_VERSION, .cipher = "ECDHE-ECDSA-AES128-GCM-SHA256"},
		 "no shared cipher"},
		{{.suites = "TLS_AES_256_GCM_SHA384"},
		 {.version = TLS1_3_VERSION, .suite = "TLS_AES_128_GCM_SHA256"},
		 "no shared cipher"},
		{{}, {.version = TLS1_3_VERSION, .groups = "P-521"}, "no suitable key share"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		static struct world w;

		w.context = context_new(&cases[i].settings);
		shake(&w, &cases[i].wish);
		assert_int_equal(w.progress, ES_TLS_SHAKE_BAD);
		assert_string_equal(es_tls_handshake_why(w.handshake), cases[i].why);
		part(&w);
		es_tls_context_free(&w.context);
	}
}

/* A client certificate that is asked for, but need not be. */
static void test_client_may(void **state)
{
	struct world w = {
		.context = context_new(&(struct es_tls_settings){.client_ca_file = made_path("root.pem")})};
	struct wish wish = {};

	(void)state;
	shown(&w, &wish, &a_ec);
	assert_int_equal(w.state.has_client, 0);
	assert_int_equal(sk_X509_NAME_num(SSL_get_client_CA_list(w.client)), 1);
	part(&w);
	wish.own = &a_rsa;
	shown(&w, &wish, &a_ec);
	assert_int_equal(w.state.has_client, 1);
	part(&w);
	es_tls_context_free(&w.context);
}

static void refuse(struct es_tls_settings settings, const struct es_tls_certificate *certificate,
		   const char *words)
{
	struct es_tls_context *context = (void *)&context, *before = context;
	struct es_conf_error err = {};

	settings.certificates = certificate;
	settings.certificate_count = certificate != NULL;
	assert_true(es_tls_context_new(&settings, &context, &err) < 0);
	assert_ptr_equal(context, before);
	if (!strstr(err.text, words))
		fail_msg("%s: expected %s", err.text, words);
}

#define LIST                                                                                                 \
	"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:"           \
	"ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"
#define SUITES "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"

/* A node that starts is better off with what it has than with nothing, but not with another's key. */
static void test_lenient(void **state)
{
	static const struct {
		const char *certificate, *ocsp, *problem;
	} cases[] = {
		{"old", NULL, "old.pem: the certificate has expired on 20"},
		{"a_ec", "revoked.ocsp", "revoked.ocsp: does not call the certificate good; it is not shown"},
		{"a_ec", "b_wild.ocsp", "b_wild.ocsp: is about another certificate; it is not shown"},
		{"a_ec", "none.ocsp",
		 "none.ocsp: cannot be read: No such file or directory; it is not shown"},
		{"a_ec", NULL, NULL},
	};
	long long now_s = (long long)(es_wall_ns() / 1000000000ULL);
	struct es_tls_certificate wrong = files_of("a_ec", NULL);
	struct es_conf_error err = {};
	struct es_tls_context *context;

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct es_tls_certificate one = files_of(cases[i].certificate, cases[i].ocsp);
		struct es_tls_settings settings = {
			.certificates = &one, .certificate_count = 1, .is_lenient = 1};

		assert_int_equal(es_tls_context_new(&settings, &context, &err), 0);
		es_tls_context_problem(context, now_s, &err);
		if (cases[i].problem && !strstr(err.text, cases[i].problem))
			fail_msg("expected %s, got %s", cases[i].problem, err.text);
		if (!cases[i].problem)
			assert_string_equal(err.text, "");
		/* Each is over one day, which is said then. */
		es_tls_context_problem(context, now_s + 100LL * 365 * 86400, &err);
		assert_non_null(strstr(err.text, "the certificate has expired on"));
		es_tls_context_free(&context);
	}
	wrong.key_file = files_of("a_rsa", NULL).key_file;
	refuse((struct es_tls_settings){.is_lenient = 1}, &wrong, "a_rsa.key: the key does not fit");
}

static void test_refused(void **state)
{
	struct es_tls_certificate a = files_of("a_ec", NULL), wrong = a,
				  revoked = files_of("a_ec", "revoked.ocsp");
	struct es_tls_certificate expired = files_of("old", NULL), foreign = files_of("a_ec", "b_wild.ocsp");

	(void)state;
	wrong.key_file = files_of("a_rsa", NULL).key_file;
	refuse((struct es_tls_settings){}, NULL, "0 certificates: expected 1..32");
	refuse((struct es_tls_settings){}, &wrong,
	       "a_rsa.key: the key does not fit: expected that of the first certificate in");
	refuse((struct es_tls_settings){}, &expired, "old.pem: the certificate has expired on 20");
	refuse((struct es_tls_settings){}, &revoked, "revoked.ocsp: does not call the certificate good");
	refuse((struct es_tls_settings){}, &foreign, "b_wild.ocsp: is about another certificate");
	refuse((struct es_tls_settings){.minimum = 0x0302}, &a, "TLS version 0x302: expected 1.2 or 1.3");
	refuse((struct es_tls_settings){.client_ca_file = made_path("text")}, &a,
	       "text: has no certificate: expected PEM");
	refuse((struct es_tls_settings){.client_ca_file = made_path("none")}, &a,
	       "none: cannot be read: No such file or directory");
	refuse((struct es_tls_settings){.ciphers = "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-SHA"}, &a,
	       "ciphers: ECDHE-RSA-AES128-SHA cannot be used: expected ECDHE with AES-GCM or "
	       "CHACHA20-POLY1305, as in " LIST);
	refuse((struct es_tls_settings){.ciphers = "DHE-RSA-AES128-GCM-SHA256"}, &a,
	       "ciphers: DHE-RSA-AES128-GCM-SHA256 cannot be used");
	refuse((struct es_tls_settings){.ciphers = "AES128-GCM-SHA256"}, &a,
	       "ciphers: AES128-GCM-SHA256 cannot be used");
	refuse((struct es_tls_settings){.ciphers = "ECDHE-ECDSA-AES128-CCM"}, &a,
	       "ciphers: ECDHE-ECDSA-AES128-CCM cannot be used");
	refuse((struct es_tls_settings){.ciphers = "AECDH-NULL-SHA:@SECLEVEL=0"}, &a,
	       "ciphers: AECDH-NULL-SHA cannot be used");
	refuse((struct es_tls_settings){.ciphers = "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-AES"}, &a,
	       "ciphers: OpenSSL knows no ECDHE-AES: expected names of openssl-ciphers(1)");
	refuse((struct es_tls_settings){.ciphers = "ECDHE+AESGCM:!ECDHE"}, &a, "ciphers: none");
	refuse((struct es_tls_settings){.suites = "TLS_AES_128_GCM_SHA256:TLS_AES_128_CCM_SHA256"}, &a,
	       "suites: TLS_AES_128_CCM_SHA256 cannot be used: expected of " SUITES);
	refuse((struct es_tls_settings){.suites = "TLS_AES_128_GCM"}, &a,
	       "suites: TLS_AES_128_GCM cannot be used");
	refuse((struct es_tls_settings){.suites = " : "}, &a, "suites: none: expected of " SUITES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),	   cmocka_unit_test(test_strange_names),
		cmocka_unit_test(test_staples),	   cmocka_unit_test(test_alpn),
		cmocka_unit_test(test_order),	   cmocka_unit_test(test_too_old),
		cmocka_unit_test(test_client_may), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_lenient),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
