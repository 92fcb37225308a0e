// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Handshakes with a client of OpenSSL, from whose state another record layer goes on: it fails when an
 * OpenSSL arrives that sends something else under the keys of application data. A client's bytes come in any
 * pieces, and none of them is read that follows the handshake.
 */
#include "tls_world.h"
#include <malloc.h>
#include "tls/handshake/internal.h"

#define REQUEST "GET / HTTP/1.1\r\nHost: www.a.example\r\n\r\n"
#define HOME	7

static struct pair root, rsa, p256, ed25519, client;

static int make_files(void **state)
{
	static const struct made leaf = {.key = "rsa", .names = "DNS:www.a.example"};
	struct made made = leaf;

	if (make_directory(state))
		return -1;
	root = made_pair(&(struct made){.key = "p256", .is_ca = 1}, NULL);
	rsa = made_pair(&made, &root);
	made.key = "p256";
	p256 = made_pair(&made, &root);
	client = made_pair(&made, &root);
	made.key = "ed25519";
	ed25519 = made_pair(&made, &root);
	put_pair("root", &root, NULL);
	put_pair("rsa", &rsa, &root);
	put_pair("p256", &p256, &root);
	put_pair("ed25519", &ed25519, &root);
	put_staple("p256.ocsp", &p256, &root, V_OCSP_CERTSTATUS_GOOD, 1000);
	return 0;
}

static int remove_files(void **state)
{
	pair_free(&root);
	pair_free(&rsa);
	pair_free(&p256);
	pair_free(&ed25519);
	pair_free(&client);
	return remove_directory(state);
}

/* A context with a certificate of each kind; keys of tickets. */
static struct es_tls_context *context_new(int has_client, unsigned int tickets, const char *ocsp)
{
	struct es_tls_certificate certificates[] = {
		{made_path("p256.pem"), made_path("p256.key"), ocsp ? made_path(ocsp) : NULL},
		{made_path("rsa.pem"), made_path("rsa.key"), NULL},
		{made_path("ed25519.pem"), made_path("ed25519.key"), NULL},
	};
	struct es_tls_settings settings = {
		.service = "web",
		.certificates = certificates,
		.certificate_count = 3,
		.alpn = {ES_TLS_ALPN_HTTP1},
		.client_ca_file = has_client ? made_path("root.pem") : NULL,
		.client_must = has_client,
	};
	struct es_tls_ticket_keys keys = {.count = 1, .name = {"name"}, .aes = {"aes"}, .mac = {"mac"}};
	struct es_tls_context *context;
	struct es_conf_error err = {};

	if (es_tls_context_new(&settings, &context, &err))
		fail_msg("%s", err.text);
	es_tls_context_tickets(context, &keys, HOME);
	es_tls_context_ticket_count(context, tickets);
	return context;
}

static void check_state(const struct world *w, const struct wish *wish, int is_resumed)
{
	uint8_t digest[ES_TLS_DIGEST_SIZE], home = 0;

	assert_int_equal(w->state.version, wish->version);
	assert_int_equal(w->state.suite, SSL_CIPHER_get_protocol_id(SSL_get_current_cipher(w->client)));
	assert_int_equal(w->state.consumed, 0);
	assert_int_equal(w->state.alpn, wish->alpn ? ES_TLS_ALPN_HTTP1 : ES_TLS_ALPN_NONE);
	assert_string_equal(w->state.name, wish->name ? "www.a.example" : "");
	assert_int_equal(w->state.has_client, wish->own != NULL);
	if (wish->own) {
		assert_true(X509_digest(wish->own->x, EVP_sha256(), digest, NULL));
		assert_memory_equal(w->state.client_digest, digest, sizeof(digest));
	}
	assert_int_equal(es_tls_handshake_resumed(w->handshake, &home), is_resumed);
	assert_int_equal(SSL_session_reused(w->client), is_resumed);
	if (is_resumed)
		assert_int_equal(home, HOME);
	assert_int_equal(es_tls_handshake_text_max(w->handshake), 16384);
}

static unsigned int tickets_of(const struct wish *wish, unsigned int count, int is_resumed)
{
	if (wish->version == TLS1_2_VERSION)
		return !is_resumed;
	return is_resumed && count ? 1 : count;
}

/* A full handshake, then one that resumes it. */
static void shake_twice(struct world *w, struct wish *wish, unsigned int tickets)
{
	for (int is_resumed = 0; is_resumed < 2; is_resumed++) {
		if (is_resumed && !w->session)
			break;
		wish->session = is_resumed ? w->session : NULL;
		w->home = HOME;
		shake(w, wish);
		go_on(w, REQUEST);
		check_state(w, wish, is_resumed);
		assert_int_equal(w->tickets, tickets_of(wish, tickets, is_resumed));
		if (wish->asks_staple && !is_resumed) {
			const unsigned char *der;

			assert_true(SSL_get_tlsext_status_ocsp_resp(w->client, &der) > 100);
		}
		part(w);
	}
	forget_session(w);
}

/* Each suite with each kind of key that goes with it, tickets, client certificates and OCSP. */
static void shake_all(const struct wish *wishes, size_t count)
{
	for (unsigned int tickets = 0; tickets < 3; tickets++)
		for (int has_client = 0; has_client < 2; has_client++) {
			struct world w = {.context = context_new(has_client, tickets, "p256.ocsp")};

			for (size_t i = 0; i < count; i++) {
				struct wish wish = wishes[i];

				wish.request = REQUEST;
				wish.own = has_client ? &client : NULL;
				wish.name = i % 2 ? "WWW.a.example" : NULL;
				wish.alpn = i % 3 ? "\x02h2\x08http/1.1" : NULL;
				wish.asks_staple = wish.sigalgs && strstr(wish.sigalgs, "ECDSA") != NULL;
				w.chunk = i % 2 ? 0 : 1;
				shake_twice(&w, &wish, tickets);
			}
			es_tls_context_free(&w.context);
		}
}

static void test_tls12(void **state)
{
	static const struct wish wishes[] = {
		{.version = TLS1_2_VERSION,
		 .cipher = "ECDHE-ECDSA-AES128-GCM-SHA256",
		 .sigalgs = "ECDSA+SHA256"},
		{.version = TLS1_2_VERSION,
		 .cipher = "ECDHE-ECDSA-AES256-GCM-SHA384",
		 .sigalgs = "ECDSA+SHA256"},
		{.version = TLS1_2_VERSION,
		 .cipher = "ECDHE-ECDSA-CHACHA20-POLY1305",
		 .sigalgs = "ECDSA+SHA256"},
		{.version = TLS1_2_VERSION, .cipher = "ECDHE-RSA-AES128-GCM-SHA256"},
		{.version = TLS1_2_VERSION, .cipher = "ECDHE-RSA-AES256-GCM-SHA384"},
		{.version = TLS1_2_VERSION, .cipher = "ECDHE-RSA-CHACHA20-POLY1305"},
		{.version = TLS1_2_VERSION,
		 .cipher = "ECDHE-ECDSA-AES128-GCM-SHA256",
		 .groups = "P-384:P-256"},
	};

	(void)state;
	shake_all(wishes, sizeof(wishes) / sizeof(wishes[0]));
}

static void test_tls13(void **state)
{
	static const struct wish wishes[] = {
		{.version = TLS1_3_VERSION, .suite = "TLS_AES_128_GCM_SHA256", .sigalgs = "ECDSA+SHA256"},
		{.version = TLS1_3_VERSION, .suite = "TLS_AES_256_GCM_SHA384", .sigalgs = "ECDSA+SHA256"},
		{.version = TLS1_3_VERSION,
		 .suite = "TLS_CHACHA20_POLY1305_SHA256",
		 .sigalgs = "ECDSA+SHA256"},
		{.version = TLS1_3_VERSION,
		 .suite = "TLS_AES_256_GCM_SHA384",
		 .groups = "X448:P-256"}, /* retry */
		{.version = TLS1_3_VERSION, .suite = "TLS_AES_128_GCM_SHA256", .groups = "P-521:P-384:P-256"},
	};

	(void)state;
	shake_all(wishes, sizeof(wishes) / sizeof(wishes[0]));
}

/* The kind of key that the client can verify. */
static void test_kinds_of_keys(void **state)
{
	static const struct {
		const char *sigalgs;
		const struct pair *pair;
		int version;
	} kinds[] = {
		{"RSA+SHA256:rsa_pss_rsae_sha256", &rsa, TLS1_2_VERSION},
		{"RSA+SHA256:rsa_pss_rsae_sha256", &rsa, TLS1_3_VERSION},
		{"ECDSA+SHA256", &p256, TLS1_2_VERSION},
		{"ECDSA+SHA256", &p256, TLS1_3_VERSION},
		{"ed25519", &ed25519, TLS1_2_VERSION},
		{"ed25519", &ed25519, TLS1_3_VERSION},
	};
	struct world w = {.context = context_new(0, 2, NULL)};

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct wish wish = {
			.version = kinds[i].version, .sigalgs = kinds[i].sigalgs, .request = REQUEST};

		shake(&w, &wish);
		go_on(&w, REQUEST);
		assert_int_equal(X509_cmp(SSL_get0_peer_certificate(w.client), kinds[i].pair->x), 0);
		part(&w);
		forget_session(&w);
	}
	es_tls_context_free(&w.context);
}

/* The client's bytes in pieces of each size. */
static void test_pieces(void **state)
{
	struct world w = {.context = context_new(1, 2, NULL)};

	(void)state;
	for (w.chunk = 1; w.chunk < 1200; w.chunk += w.chunk < 20 ? 1 : 37)
		for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
			struct wish wish = {.version = version, .own = &client, .request = REQUEST};

			shake_twice(&w, &wish, 2);
		}
	es_tls_context_free(&w.context);
}

/* Bytes that are no handshake; @words must be why. */
static void refuse(struct es_tls_context *context, const void *bytes, size_t len, const char *words)
{
	struct es_tls_handshake *handshake;
	enum es_tls_progress progress = ES_TLS_SHAKING;
	size_t used;

	assert_int_equal(es_tls_handshake_new(context, &handshake), 0);
	for (size_t i = 0; i < len && progress == ES_TLS_SHAKING; i++)
		progress = es_tls_handshake_step(handshake, (const uint8_t *)bytes + i, 1, &used);
	assert_int_equal(progress, ES_TLS_SHAKE_BAD);
	assert_string_equal(es_tls_handshake_why(handshake), words);
	assert_int_equal(es_tls_handshake_step(handshake, bytes, len, &used), ES_TLS_SHAKE_BAD);
	assert_int_equal(used, 0);
	es_tls_handshake_free(&handshake);
	assert_int_equal(es_tls_handshake_new(context, &handshake), 0);
	assert_int_equal(es_tls_handshake_step(handshake, bytes, len, &used), ES_TLS_SHAKE_BAD);
	assert_string_equal(es_tls_handshake_why(handshake), words);
	es_tls_handshake_free(&handshake);
}

/* A record's header and the first bytes of its body, the rest being 0. */
static size_t put_record(uint8_t *at, uint8_t type, uint8_t major, size_t len, const char *body,
			 size_t body_len)
{
	const uint8_t header[] = {type, major, 1, (uint8_t)(len >> 8), (uint8_t)len};

	memcpy(at, header, sizeof(header));
	memset(at + sizeof(header), 0, len);
	memcpy(at + sizeof(header), body, body_len);
	return sizeof(header) + len;
}

/* In the words of OpenSSL 3.0, and of 3.5. */
static const char *too_long(void)
{
	return OpenSSL_version_num() < 0x30200000L ? "packet length too long" : "data length too long";
}

static void test_no_tls(void **state)
{
	struct es_tls_context *context = context_new(0, 2, NULL);
	static uint8_t bytes[ES_TLS_HANDSHAKE_BYTES_MAX + 65536];
	size_t len;

	(void)state;
	refuse(context, REQUEST, sizeof(REQUEST) - 1, "http request");
	refuse(context, "SSH-2.0-OpenSSH_9.2p1\r\n", 23, "wrong version number");
	refuse(context, bytes, put_record(bytes, 22, 3, 0x6001, "\x01", 1), too_long());
	refuse(context, bytes, put_record(bytes, 23, 3, 16, "", 0), "unexpected message");
	refuse(context, bytes, put_record(bytes, 22, 2, 16, "\x01", 1), "wrong version number");
	/* a ClientHello that never ends: in few large records, or in many small ones */
	refuse(context, bytes, put_record(bytes, 22, 3, 16384, "\x01\xff\xff\xff", 4),
	       "excessive message size");
	len = put_record(bytes, 22, 3, 1, "\x01", 1);
	len += put_record(bytes + len, 22, 3, 1, "", 0);
	len += put_record(bytes + len, 22, 3, 1, "\x40", 1);
	for (int i = 0; i <= ES_TLS_HANDSHAKE_RECORDS_MAX; i++)
		len += put_record(bytes + len, 22, 3, 1, "", 0);
	refuse(context, bytes, len, "a handshake without an end");
	es_tls_context_free(&context);
}

static struct es_tls_state client_keys;

static void log_client(const SSL *ssl, const char *line)
{
	static const char label[] = "CLIENT_HANDSHAKE_TRAFFIC_SECRET ";
	const char *secret = strrchr(line, ' ') + 1;

	(void)ssl;
	if (strncmp(line, label, sizeof(label) - 1) != 0)
		return;
	assert_true(OPENSSL_hexstr2buf_ex(client_keys.client.secret, ES_TLS_SECRET_MAX, NULL, secret, 0));
	client_keys.server = client_keys.client;
}

/* A client that goes on in the record in which the handshake ends: under which key would that be? */
static void test_more_in_the_last_record(void **state)
{
	static const uint8_t key_update[] = {24, 0, 0, 1, 0};
	struct world w = {.context = context_new(0, 2, NULL)};
	struct wish wish = {.version = TLS1_3_VERSION, .suite = "TLS_AES_128_GCM_SHA256"};
	uint8_t bytes[1000], text[1000];
	size_t used, len, text_len;

	(void)state;
	client_keys = (struct es_tls_state){.version = ES_TLS_1_3, .suite = 0x1301};
	assert_int_equal(es_tls_handshake_new(w.context, &w.handshake), 0);
	client_new(&w, &wish);
	SSL_CTX_set_keylog_callback(w.client_context, log_client);
	SSL_do_handshake(w.client);
	to_server(&w);
	to_client(&w);
	assert_int_equal(SSL_do_handshake(w.client), 1);
	len = (size_t)BIO_read(SSL_get_wbio(w.client), bytes, sizeof(bytes));
	assert_memory_equal(bytes, "\x14\x03\x03\0\x01\x01", 6); /* ChangeCipherSpec, for middleboxes */
	assert_int_equal(open_record(&client_keys, bytes + 6, len - 6, text, &text_len), 22);
	memcpy(text + text_len, key_update, sizeof(key_update));
	len = seal_record(&client_keys, 22, text, text_len + sizeof(key_update), bytes);
	assert_int_equal(es_tls_handshake_step(w.handshake, bytes, len, &used), ES_TLS_SHAKE_BAD);
	assert_string_equal(es_tls_handshake_why(w.handshake), "not on record boundary");
	part(&w);
	es_tls_context_free(&w.context);
}

/*
 * In TLS 1.2 a client may send its Finished in several records, which are numbered as those after them are.
 * Nothing that it adds to it is part of the handshake.
 */
static void test_finished_in_pieces(void **state)
{
	for (int has_more = 0; has_more < 2; has_more++) {
		struct world w = {.context = context_new(0, 2, NULL)};
		struct wish wish = {.version = TLS1_2_VERSION};
		struct es_tls_handshake keys = {.context = w.context, .progress = ES_TLS_SHAKEN};
		uint8_t bytes[2000], text[64] = {};
		size_t used, len, text_len, at = 0, next = 0;

		assert_int_equal(es_tls_handshake_new(w.context, &w.handshake), 0);
		client_new(&w, &wish);
		SSL_do_handshake(w.client);
		to_server(&w);
		to_client(&w);
		SSL_do_handshake(w.client);
		len = (size_t)BIO_read(SSL_get_wbio(w.client), bytes, sizeof(bytes));
		for (; next < len; next += 5 + (size_t)(bytes[next + 3] << 8 | bytes[next + 4]))
			at = next;
		keys.ssl = w.client;
		SSL_set_verify_result(w.client, X509_V_OK);
		assert_int_equal(es_tls_handshake_state(&keys, &w.state), 0);
		assert_int_equal(open_record(&w.state, bytes + at, len - at, text, &text_len), 22);
		assert_int_equal(text_len, 16);
		w.state.server = w.state.client;
		w.state.server.number = 0;
		at += seal_record(&w.state, 22, text, 1, bytes + at);
		at += seal_record(&w.state, 22, text + 1, 15 + 4 * (size_t)has_more, bytes + at);
		assert_int_equal(es_tls_handshake_step(w.handshake, bytes, at, &used),
				 has_more ? ES_TLS_SHAKE_BAD : ES_TLS_SHAKEN);
		assert_int_equal(es_tls_handshake_state(w.handshake, &w.state), has_more ? -EPROTO : 0);
		if (!has_more)
			assert_int_equal(w.state.client.number, 2);
		part(&w);
		es_tls_context_free(&w.context);
	}
	(void)state;
}

static void test_short_records(void **state)
{
	struct world w = {.context = context_new(0, 2, NULL)};

	(void)state;
	for (uint8_t mode = TLSEXT_max_fragment_length_512; mode <= TLSEXT_max_fragment_length_4096; mode++) {
		struct wish wish = {.version = TLS1_2_VERSION, .fragment = mode, .request = REQUEST};

		shake(&w, &wish);
		go_on(&w, REQUEST);
		assert_int_equal(es_tls_handshake_text_max(w.handshake), 256 << mode);
		part(&w);
		forget_session(&w);
	}
	es_tls_context_free(&w.context);
}

static void test_clients(void **state)
{
	struct world w = {.context = context_new(1, 2, NULL)};
	struct pair other = made_pair(&(struct made){.key = "p256"}, NULL);

	(void)state;
	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
		struct wish wish = {.version = version};

		shake(&w, &wish);
		assert_int_equal(w.progress, ES_TLS_SHAKE_BAD);
		assert_string_equal(es_tls_handshake_why(w.handshake), "peer did not return a certificate");
		assert_int_equal(es_tls_handshake_state(w.handshake, &w.state), -EPROTO);
		part(&w);
		wish.own = &other;
		shake(&w, &wish);
		assert_int_equal(w.progress, ES_TLS_SHAKE_BAD);
		assert_string_equal(es_tls_handshake_why(w.handshake), "certificate verify failed");
		part(&w);
	}
	pair_free(&other);
	es_tls_context_free(&w.context);
}

/* The context goes, its handshake goes on. */
static void test_context_is_kept(void **state)
{
	struct world w = {.context = context_new(0, 2, NULL)};
	struct es_tls_handshake *handshake;
	struct es_tls_context *context = w.context;
	struct wish wish = {.request = REQUEST};

	(void)state;
	assert_int_equal(es_tls_handshake_new(context, &handshake), 0);
	w.progress = ES_TLS_SHAKING;
	w.handshake = handshake;
	client_new(&w, &wish);
	es_tls_context_free(&context);
	assert_null(context);
	for (size_t moved = 1; moved;) {
		SSL_do_handshake(w.client);
		moved = to_server(&w);
		moved += to_client(&w);
	}
	assert_int_equal(w.progress, ES_TLS_SHAKEN);
	assert_int_equal(es_tls_handshake_state(w.handshake, &w.state), 0);
	part(&w);
	forget_session(&w);
}

#ifdef __SANITIZE_ADDRESS__
#define MANY 500 /* its allocator does not count, and tells at the end what has leaked */
#else
#define MANY 10000
#endif

/*
 * glibc counts what it keeps for itself, 7 pieces of each of 64 sizes; 32 bytes left by each would be more.
 */
#define LEFT_MAX 262144

/* Many handshakes leave nothing. */
static void test_memory(void **state)
{
	struct world w = {.context = context_new(0, 1, "p256.ocsp")};
	size_t before = 0, after;

	(void)state;
	for (int i = 0; i < MANY + 500; i++) {
		int is_resumed = i % 8 != 0;
		struct wish wish = {.version = i / 8 % 4 ? TLS1_2_VERSION : TLS1_3_VERSION,
				    .sigalgs = "ECDSA+SHA256"};

		if (!is_resumed)
			forget_session(&w);
		wish.session = w.session;
		if (i == 500)
			before = mallinfo2().uordblks;
		shake(&w, &wish);
		assert_int_equal(w.progress, ES_TLS_SHAKEN);
		assert_int_equal(es_tls_handshake_state(w.handshake, &w.state), 0);
		SSL_read(w.client, w.rest, sizeof(w.rest)); /* tickets */
		assert_int_equal(SSL_session_reused(w.client), is_resumed);
		part(&w);
	}
	forget_session(&w);
	after = mallinfo2().uordblks;
	if (after > before + LEFT_MAX)
		fail_msg("%zu bytes before, %zu after", before, after);
	es_tls_context_free(&w.context);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tls12),
		cmocka_unit_test(test_tls13),
		cmocka_unit_test(test_kinds_of_keys),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_no_tls),
		cmocka_unit_test(test_more_in_the_last_record),
		cmocka_unit_test(test_finished_in_pieces),
		cmocka_unit_test(test_short_records),
		cmocka_unit_test(test_clients),
		cmocka_unit_test(test_context_is_kept),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
