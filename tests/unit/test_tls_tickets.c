// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tickets: which of them another node takes, on the same day or the next, and which lead to a full handshake,
 * as if there had been none.
 */
#include "tls_world.h"
#include "inspector/base/clock.h"
#include "inspector/base/wall.h"
#include "inspector/http/tls_home.h"
#include "tls/handshake/internal.h"
#include "tls/handshake/ticket_keys.h"

#define DAY 20785

static const struct es_tls_keys cluster = {
	.count = 2,
	.key = {{.id = 2, .tickets = {2}, .home = {2, 2}}, {.id = 1, .tickets = {1}, .home = {1, 1}}},
};
static const struct es_tls_keys before = {
	.count = 2,
	.key = {{.id = 2, .tickets = {2}, .home = {9, 9}}, {.id = 1, .tickets = {1}, .home = {8, 8}}},
};
static struct pair root, p256, client, other_root;

static int make_files(void **state)
{
	struct made made = {.key = "p256", .names = "DNS:a.example,DNS:b.example"};

	if (make_directory(state))
		return -1;
	root = made_pair(&(struct made){.key = "p256", .is_ca = 1}, NULL);
	other_root = made_pair(&(struct made){.key = "p256", .is_ca = 1}, NULL);
	p256 = made_pair(&made, &root);
	made.until_s = 3000;
	client = made_pair(&made, &root);
	put_pair("root", &root, NULL);
	put_pair("other", &root, &other_root);
	put_pair("p256", &p256, NULL);
	return 0;
}

static int remove_files(void **state)
{
	pair_free(&root);
	pair_free(&other_root);
	pair_free(&p256);
	pair_free(&client);
	return remove_directory(state);
}

/**
 * struct node - a node's context
 * @keys: of the cluster; @day: by its clock
 * @note: NULL, or puts something else into its tickets
 */
struct node {
	const struct es_tls_keys *keys;
	const char *service;
	unsigned long long day;
	uint8_t home;
	const char *ca;
	int must;
	SSL_CTX_generate_session_ticket_fn note;
};

static const uint8_t *named; /* the home for tickets of TLS 1.3; NULL: the node itself */

static void keys_of(const struct node *node, struct es_tls_ticket_keys *keys)
{
	assert_int_equal(es_tls_ticket_keys_of(node->keys, node->service, node->day, keys), 0);
}

static struct es_tls_context *context_of(const struct node *node)
{
	struct es_tls_certificate certificate = {made_path("p256.pem"), made_path("p256.key"), NULL};
	struct es_tls_settings settings = {
		.service = node->service,
		.certificates = &certificate,
		.certificate_count = 1,
		.client_ca_file = node->ca ? made_path(node->ca) : NULL,
		.client_must = node->must,
	};
	struct es_tls_context *context;
	struct es_tls_ticket_keys keys;
	struct es_conf_error err = {};

	if (es_tls_context_new(&settings, &context, &err))
		fail_msg("%s", err.text);
	keys_of(node, &keys);
	es_tls_context_tickets(context, &keys, node->home);
	if (node->note)
		SSL_CTX_set_session_ticket_cb(context->ssl, node->note, NULL, NULL);
	return context;
}

/* The name of the key that has made the client's ticket. */
static const unsigned char *key_name(const struct world *w)
{
	const unsigned char *ticket;
	size_t len;

	SSL_SESSION_get0_ticket(w->session, &ticket, &len);
	assert_true(len > 16);
	return ticket;
}

/* One handshake at that node; @ret_home as es_tls_handshake_resumed(), whose answer is returned. */
static int visit(struct world *w, const struct node *node, struct wish *wish, uint8_t *ret_home)
{
	int is_resumed;

	w->context = context_of(node);
	w->home = named ? *named : node->home;
	wish->request = "GET /";
	wish->session = w->session;
	if (w->session)
		SSL_SESSION_up_ref(w->session);
	shake(w, wish);
	go_on(w, "GET /");
	SSL_SESSION_free(wish->session);
	is_resumed = es_tls_handshake_resumed(w->handshake, ret_home);
	assert_int_equal(SSL_session_reused(w->client), is_resumed);
	assert_string_equal(w->state.name, wish->name ? wish->name : "");
	assert_int_equal(w->state.has_client, wish->own != NULL);
	if (is_resumed &&
	    wish->version == TLS1_2_VERSION) { /* OpenSSL does not tell of a renewed ticket there */
		forget_session(w);
		w->session = SSL_get1_session(w->client);
	}
	part(w);
	es_tls_context_free(&w->context);
	return is_resumed;
}

/* Is a ticket of @from taken by @to? For both versions of TLS, which must agree. */
static int is_taken(const struct node *from, const struct node *to, const struct wish *first,
		    const struct wish *second)
{
	static struct world w;
	uint8_t home = 0;
	int taken[2];

	for (int i = 0; i < 2; i++) {
		struct wish wish = *first;

		wish.version = i ? TLS1_3_VERSION : TLS1_2_VERSION;
		assert_int_equal(visit(&w, from, &wish, &home), 0);
		assert_non_null(w.session);
		wish = *second;
		wish.version = i ? TLS1_3_VERSION : TLS1_2_VERSION;
		taken[i] = visit(&w, to, &wish, &home);
		if (taken[i])
			assert_int_equal(home, from->home);
		forget_session(&w);
	}
	assert_int_equal(taken[0], taken[1]);
	return taken[0];
}

static const struct wish nothing;

/* The home in the client's ticket, as the daemon reads it with the key of a line; -1: none. */
static int home_of(const struct world *w, const struct es_sipkey *key)
{
	return es_tls_home_get(key, key_name(w));
}

/* The ticket of TLS 1.3 names whom it is told, that of TLS 1.2 the node of the handshake. */
static void test_home(void **state)
{
	static struct world w;

	(void)state;
	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
		for (uint8_t home = 0; home < 40; home += 13) {
			struct node node = {.keys = &cluster, .service = "web", .day = DAY, .home = 5};
			struct wish wish = {.version = version};
			uint8_t got = 0;

			for (int i = 0; i < 3; i++) {
				int is_1_3 = version == TLS1_3_VERSION;

				named = &home;
				assert_int_equal(visit(&w, &node, &wish, &got), i > 0);
				named = NULL;
				if (i)
					assert_int_equal(got, is_1_3 ? home : 5);
				assert_int_equal(home_of(&w, &cluster.key[0].home), is_1_3 ? home : 5);
				assert_int_equal(home_of(&w, &cluster.key[1].home), -1);
			}
			forget_session(&w);
		}
}

/* A node of before has random bytes there, as one with another key would: both take each other's tickets. */
static void test_no_home(void **state)
{
	static struct world w;

	(void)state;
	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
		struct node node = {.keys = &cluster, .service = "web", .day = DAY, .home = 5}, old = node;
		struct wish wish = {.version = version};
		uint8_t home = 0;

		old.keys = &before;
		assert_int_equal(visit(&w, &old, &wish, &home), 0);
		assert_int_equal(home_of(&w, &cluster.key[0].home), -1);
		assert_int_equal(visit(&w, &node, &wish, &home), 1);
		forget_session(&w);
		assert_int_equal(visit(&w, &node, &wish, &home), 0);
		assert_int_equal(visit(&w, &old, &wish, &home), 1);
		forget_session(&w);
	}
}

static void test_other_node(void **state)
{
	struct node a = {.keys = &cluster, .service = "web", .day = DAY, .home = 1}, b = a;

	(void)state;
	b.home = 2;
	assert_true(is_taken(&a, &b, &nothing, &nothing));
	b.service = "mail";
	assert_false(is_taken(&a, &b, &nothing, &nothing));
}

static void test_days(void **state)
{
	struct node a = {.keys = &cluster, .service = "web", .day = DAY, .home = 1}, b = a;

	(void)state;
	for (int day = -3; day <= 3; day++) {
		b.day = DAY + (unsigned long long)day;
		assert_int_equal(is_taken(&a, &b, &nothing, &nothing), day >= -1 && day <= 1);
	}
}

/* Yesterday's ticket is replaced by one of today's key; today's is kept in TLS 1.2. */
static void test_renewal(void **state)
{
	struct node node = {.keys = &cluster, .service = "web", .day = DAY, .home = 1};
	struct es_tls_ticket_keys keys;
	static struct world w;
	uint8_t home, iv[16];

	(void)state;
	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
		struct wish wish = {.version = version};

		node.day = DAY;
		keys_of(&node, &keys);
		assert_false(visit(&w, &node, &wish, &home));
		assert_memory_equal(key_name(&w), keys.name[0], 16);
		memcpy(iv, key_name(&w) + 16, sizeof(iv));
		assert_true(visit(&w, &node, &wish, &home));
		assert_memory_equal(key_name(&w), keys.name[0], 16);
		assert_int_equal(!memcmp(iv, key_name(&w) + 16, sizeof(iv)), version == TLS1_2_VERSION);
		for (int later = 1; later < 4; later++) {
			node.day++;
			keys_of(&node, &keys);
			assert_true(visit(&w, &node, &wish, &home));
			assert_memory_equal(key_name(&w), keys.name[0], 16);
		}
		forget_session(&w);
	}
}

/* The key file is replaced node by node: staged, rotated, the old key gone. */
static void test_rotation(void **state)
{
	struct es_tls_keys old = {.count = 1, .key = {cluster.key[1]}};
	struct es_tls_keys staged = {.count = 2, .key = {cluster.key[1], cluster.key[0]}};
	struct es_tls_keys after = {.count = 1, .key = {cluster.key[0]}};
	struct node a = {.keys = &old, .service = "web", .day = DAY, .home = 1}, b = a;

	(void)state;
	b.keys = &staged;
	assert_true(is_taken(&a, &b, &nothing, &nothing));
	assert_true(is_taken(&b, &a, &nothing, &nothing));
	a.keys = &cluster;
	assert_true(is_taken(&a, &b, &nothing, &nothing));
	assert_true(is_taken(&b, &a, &nothing, &nothing));
	b.keys = &after;
	assert_true(is_taken(&a, &b, &nothing, &nothing));
	a.keys = &old;
	assert_false(is_taken(&a, &b, &nothing, &nothing));
}

/* RFC 6066 section 3: not for another server's name. */
static void test_names(void **state)
{
	struct node node = {.keys = &cluster, .service = "web", .day = DAY, .home = 1};
	const struct wish a = {.name = "a.example"}, b = {.name = "b.example"};

	(void)state;
	assert_true(is_taken(&node, &node, &a, &a));
	assert_false(is_taken(&node, &node, &a, &b));
	assert_false(is_taken(&node, &node, &a, &nothing));
	assert_false(is_taken(&node, &node, &nothing, &a));
}

/* A client whose certificate was verified is known again, as long as the same certificates are believed. */
static void test_clients(void **state)
{
	struct node a = {
		.keys = &cluster, .service = "web", .day = DAY, .home = 1, .ca = "root.pem", .must = 1};
	const struct wish wish = {.own = &client};
	struct node b = a;
	static struct world w;
	uint8_t home;

	(void)state;
	assert_true(is_taken(&a, &b, &wish, &wish));
	b.must = 0;
	assert_false(is_taken(&a, &b, &wish, &wish));
	b.must = 1;
	b.ca = "other.pem";
	assert_false(is_taken(&a, &b, &wish, &wish));
	/* it has expired since: OpenSSL, which has another clock here, verifies it anew */
	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
		struct wish again = {.version = version, .own = &client};

		assert_false(visit(&w, &a, &again, &home));
		assert_true(visit(&w, &a, &again, &home));
		es_wall_set(es_wall_ns() + 3600000000000ULL - es_clock_now_ns(), 1);
		assert_false(visit(&w, &a, &again, &home));
		es_wall_set(0, 0);
		forget_session(&w);
	}
}

static int write_other_layout(SSL *ssl, void *argument)
{
	uint8_t note[2 + 32] = {2, 1};

	(void)argument;
	assert_true(EVP_Digest("", 0, note + 2, NULL, EVP_sha256(), NULL)); /* no name, which is right */
	return SSL_SESSION_set1_ticket_appdata(SSL_get_session(ssl), note, 18);
}

static int write_nothing(SSL *ssl, void *argument)
{
	(void)ssl;
	(void)argument;
	return 1;
}

/* Tickets of another version of this project, under the same keys; and at a node of this version again. */
static void test_other_layouts(void **state)
{
	struct node a = {.keys = &cluster, .service = "web", .day = DAY, .home = 1}, b = a;

	(void)state;
	a.note = write_other_layout;
	assert_false(is_taken(&a, &b, &nothing, &nothing));
	a.note = write_nothing;
	assert_false(is_taken(&a, &b, &nothing, &nothing));
	assert_true(is_taken(&b, &b, &nothing, &nothing));
}

/* The session with a bit of its ticket changed. */
static SSL_SESSION *damaged(SSL_SESSION *session, size_t at)
{
	unsigned char *der = NULL, *in_der;
	const unsigned char *ticket, *begin;
	int der_len = i2d_SSL_SESSION(session, &der);
	SSL_SESSION *other;
	size_t len;

	SSL_SESSION_get0_ticket(session, &ticket, &len);
	in_der = memmem(der, (size_t)der_len, ticket, len);
	assert_non_null(in_der);
	in_der[at % len] ^= 1;
	begin = der;
	other = d2i_SSL_SESSION(NULL, &begin, der_len);
	assert_non_null(other);
	OPENSSL_free(der);
	return other;
}

/* In its key's name, its IV, its text and its MAC. */
static void test_damaged(void **state)
{
	static const size_t places[] = {0, 15, 16, 31, 32, 90, 120, SIZE_MAX};
	struct node node = {.keys = &cluster, .service = "web", .day = DAY, .home = 1};
	static struct world w;
	uint8_t home;

	(void)state;
	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
		for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
			struct wish wish = {.version = version};
			SSL_SESSION *session;

			assert_false(visit(&w, &node, &wish, &home));
			session = damaged(w.session, places[i]);
			forget_session(&w);
			w.session = session;
			assert_false(visit(&w, &node, &wish, &home));
			forget_session(&w);
		}
}

/* Nobody gets a ticket that nobody could read. */
static void test_no_keys(void **state)
{
	static const struct es_tls_keys none;
	struct node a = {.keys = &cluster, .service = "web", .day = DAY, .home = 1}, b = a;
	static struct world w;
	uint8_t home;

	(void)state;
	b.keys = &none;
	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
		struct wish wish = {.version = version};
		const unsigned char *ticket;
		size_t len = 0;

		assert_false(visit(&w, &b, &wish, &home));
		if (w.session) /* of TLS 1.2, with a number instead */
			SSL_SESSION_get0_ticket(w.session, &ticket, &len);
		assert_int_equal(len, 0);
		forget_session(&w);
	}
	assert_false(is_taken(&a, &b, &nothing, &nothing));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_home),	      cmocka_unit_test(test_no_home),
		cmocka_unit_test(test_other_node),    cmocka_unit_test(test_days),
		cmocka_unit_test(test_renewal),	      cmocka_unit_test(test_rotation),
		cmocka_unit_test(test_names),	      cmocka_unit_test(test_clients),
		cmocka_unit_test(test_other_layouts), cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_no_keys),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
