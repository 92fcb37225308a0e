// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A client's connection whose records the kernel writes, with a played kernel: what it is given arrives as it
 * was, whatever it takes at once; its number goes on elsewhere; and where it cannot be right, nothing moves.
 */
#include "cmocka_all.h"
#include <fcntl.h>
#include "tls_serve_world.h"

#define BODY (3 * ES_SERVE_KTLS_MIN)

/**
 * struct played - a kernel's record layer
 * @out: of this record so much is not in TCP yet; @room: bytes that TCP takes, without end if @is_open
 * @refuses: what begin() says; @loses: it forgets a byte that it has been given, once
 */
static struct played {
	struct es_tls_write_key key;
	uint8_t out[ES_TLS12_RECORD_MAX];
	size_t at, len;
	uint64_t bytes;
	size_t room;
	unsigned int begun;
	unsigned int seed;
	int fd;
	int is_open;
	int refuses;
	int loses;
} played;

/* RFC 8446 section 5.2, RFC 5288 section 3, RFC 7905 section 2: in its own words. */
static size_t seal(uint8_t type, const uint8_t *text, size_t len, uint8_t *record)
{
	const struct es_tls_write_key *k = &played.key;
	int is_1_3 = k->suite->version == ES_TLS_1_3, done;
	uint8_t number[8], nonce[12], aad[13], body[ES_TLS_TEXT_MAX + 1], *at = record + 5;
	const EVP_CIPHER *cipher = k->suite->aead == ES_TLS_AES_128_GCM	  ? EVP_aes_128_gcm()
				   : k->suite->aead == ES_TLS_AES_256_GCM ? EVP_aes_256_gcm()
									  : EVP_chacha20_poly1305();
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();

	es_tls_put(number, 8, k->number);
	memcpy(body, text, len);
	body[len] = type;
	record[0] = is_1_3 ? 23 : type;
	es_tls_put(record + 1, 2, 0x0303);
	es_tls_put(record + 3, 2, k->suite->explicit_size + len + (size_t)is_1_3 + 16);
	memcpy(nonce, k->iv, 12);
	if (k->suite->explicit_size) {
		memcpy(nonce + 4, number, 8);
		memcpy(at, number, 8);
		at += 8;
	} else {
		for (int i = 0; i < 8; i++)
			nonce[4 + i] ^= number[i];
	}
	memcpy(aad, number, 8);
	memcpy(aad + 8, record, 3);
	es_tls_put(aad + 11, 2, len);
	assert_int_equal(EVP_EncryptInit_ex(ctx, cipher, NULL, k->key, nonce), 1);
	EVP_EncryptUpdate(ctx, NULL, &done, is_1_3 ? record : aad, is_1_3 ? 5 : 13);
	EVP_EncryptUpdate(ctx, at, &done, body, (int)len + is_1_3);
	at += done;
	assert_int_equal(EVP_EncryptFinal_ex(ctx, at, &done), 1);
	EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, 16, at);
	EVP_CIPHER_CTX_free(ctx);
	played.key.number++;
	return (size_t)(at + 16 - record);
}

/* The rest of a record goes on to TCP, as far as there is room. */
static void drain(void)
{
	while (played.at < played.len && (played.is_open || played.room)) {
		size_t part = played.len - played.at;

		if (!played.is_open && part > played.room)
			part = played.room;
		assert_int_equal(write(played.fd, played.out + played.at, part), (ssize_t)part);
		played.at += part;
		played.bytes += part;
		played.room -= played.is_open ? 0 : part;
	}
}

static int play_begin(int fd, const struct es_tls_write_key *key)
{
	if (played.refuses)
		return played.refuses;
	played.key = *key;
	played.fd = fd;
	played.at = played.len = 0;
	played.begun++;
	return 0;
}

static int play_number(int fd, const struct es_tls_suite *suite, uint64_t *ret_number)
{
	assert_int_equal(fd, played.fd);
	assert_ptr_equal(suite, played.key.suite);
	*ret_number = played.key.number;
	return 0;
}

/* One record of some of it, which may be more than TCP takes, as the kernel does it. */
static ssize_t put(uint8_t type, const uint8_t *text, size_t len)
{
	drain();
	if (played.at < played.len)
		return -EAGAIN;
	played.seed = played.seed * 1103515245 + 12345;
	if (len > 100 && !(played.seed >> 16) % 3)
		len /= 2;
	if (len > ES_TLS_TEXT_MAX)
		len = ES_TLS_TEXT_MAX;
	played.at = 0;
	played.len = seal(type, text, len - (len > 1 && played.loses), played.out);
	played.loses = 0;
	drain();
	return (ssize_t)len;
}

static ssize_t play_send(int fd, const uint8_t *text, size_t len)
{
	assert_int_equal(fd, played.fd);
	return put(ES_TLS_APPLICATION_DATA, text, len);
}

static ssize_t play_alert(int fd, const uint8_t *text, size_t len)
{
	assert_int_equal(fd, played.fd);
	assert_int_equal(len, 2);
	return put(ES_TLS_ALERT, text, len);
}

static ssize_t play_splice(int pipe, int fd, size_t len)
{
	uint8_t text[ES_TLS_TEXT_MAX];
	ssize_t got;

	assert_int_equal(fd, played.fd);
	drain();
	if (played.at < played.len)
		return -EAGAIN;
	got = read(pipe, text, len < 5000 ? len : 5000);
	assert_true(got > 0);
	played.at = 0;
	played.len = seal(ES_TLS_APPLICATION_DATA, text, (size_t)got - (played.loses != 0), played.out);
	played.loses = 0;
	drain();
	return got;
}

static int play_sent(int fd, uint64_t *ret_bytes, unsigned int *ret_unacknowledged)
{
	(void)fd;
	*ret_bytes = played.bytes;
	*ret_unacknowledged = 0;
	return 0;
}

static const struct es_ktls playing = {.begin = play_begin,
				       .number = play_number,
				       .send = play_send,
				       .alert = play_alert,
				       .splice = play_splice,
				       .sent = play_sent};

static void set_up_ktls(struct world *w, struct peers *p, const struct peers_kind *kind)
{
	played = (struct played){.seed = 7, .is_open = 1};
	set_up(w, 3);
	w->serve.ktls = &playing;
	w->serve.ktls_has = ES_KTLS_ALL;
	w->service.has_ktls = 1;
	peers_shake(p, kind, NULL);
	begin(w, p);
}

static void tear_down_ktls(struct world *w, struct peers *p)
{
	leave(w);
	peers_free(p);
	tear_down(w);
}

/* The client reads what has come; it must be the next bytes of the body. */
static size_t client_reads(struct world *w, struct peers *p, size_t at)
{
	static uint8_t bytes[1 << 16];
	ssize_t len;
	int got;

	while ((len = recv(w->far, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		peers_tell(p, bytes, (size_t)len);
	while ((got = SSL_read(p->client, bytes, sizeof(bytes))) > 0)
		for (int i = 0; i < got; i++)
			assert_int_equal(bytes[i], (uint8_t)(at++ * 31 >> 3));
	assert_int_equal(SSL_get_error(p->client, got), SSL_ERROR_WANT_READ);
	return at;
}

/* A response whose first @head bytes are read here, and the others of BODY may be passed. */
static void long_response(struct world *w, struct peers *p, size_t head)
{
	static uint8_t body[BODY];
	size_t sent = head, given = head, there = 0;
	int server[2];
	ssize_t got;

	for (size_t i = 0; i < BODY; i++)
		body[i] = (uint8_t)(i * 31 >> 3);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, server), 0);
	assert_int_equal(es_client_send(&w->client, body, head), 0);
	while (there < BODY) {
		if (given < BODY) {
			size_t part = 1 + any(w, 40000);

			got = write(server[1], body + given, part < BODY - given ? part : BODY - given);
			given += got > 0 ? (size_t)got : 0;
		}
		if (!played.is_open)
			played.room += any(w, 30000);
		while (sent < BODY && es_client_has_room(&w->client)) {
			got = es_client_pass(&w->client, server[0], BODY - sent);
			if (got == -EOPNOTSUPP) {
				uint8_t text[5000];

				got = recv(server[0], text, sizeof(text), 0);
				if (got > 0)
					assert_int_equal(es_client_send(&w->client, text, (size_t)got), 0);
			}
			if (got <= 0)
				break;
			sent += (size_t)got;
		}
		assert_int_equal(es_client_flush(&w->client), 0);
		there = client_reads(w, p, there);
	}
	assert_int_equal(there, BODY);
	played.room = 1 << 20;
	drain();
	close(server[0]);
	close(server[1]);
}

/* A request arrives, and what it is is read. */
static void request(struct world *w, struct peers *p)
{
	uint8_t *bytes;
	size_t len;

	assert_int_equal(SSL_write(p->client, "GET\n", 4), 4);
	bytes = peers_sent(p, &len);
	say(w, bytes, len);
	free(bytes);
	while (!es_buffer_len(&w->client.text))
		assert_int_equal(es_client_read(&w->client), 1);
	assert_memory_equal(es_buffer_front(&w->client.text), "GET\n", 4);
}

static void answered(struct world *w)
{
	es_client_take(&w->client, 4);
}

/* Long responses by the kernel, requests that move from there, and go on here or there. */
static void test_moves(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * PEERS_KINDS; i++) {
		struct world w;
		struct peers p;

		set_up_ktls(&w, &p, &peers_kinds[i % PEERS_KINDS]);
		played.is_open = i < PEERS_KINDS;
		for (unsigned int turn = 0; turn < 4; turn++) {
			request(&w, &p);
			answered(&w);
			long_response(&w, &p, 1 + any(&w, 3000));
			assert_non_null(w.client.offload);
			assert_true(es_client_is_settled(&w.client));
			request(&w, &p);
			if (turn % 2) {
				assert_true(es_client_is_settled(&w.client));
				move(&w);
				assert_null(w.client.offload);
				assert_int_equal(es_client_read(&w.client), 1);
			}
			answered(&w);
			long_response(&w, &p, 20000);
		}
		assert_int_equal(played.begun, w.counters.count[ES_SERVE_ktls]);
		assert_int_equal(played.begun, 3);
		tear_down_ktls(&w, &p);
	}
}

/* The client's half of a connection that has a new key goes on here. */
static void test_their_key(void **state)
{
	struct world w;
	struct peers p;

	(void)state;
	set_up_ktls(&w, &p, &peers_kinds[0]);
	long_response(&w, &p, 100);
	SSL_key_update(p.client, SSL_KEY_UPDATE_NOT_REQUESTED);
	request(&w, &p);
	assert_false(es_client_is_used_up(&w.client));
	assert_true(es_client_is_settled(&w.client));
	move(&w);
	assert_int_equal(es_client_read(&w.client), 1);
	answered(&w);
	long_response(&w, &p, 100);
	tear_down_ktls(&w, &p);
}

/* A client that wants a new key of ours gets the end, after its response and in the orderly way. */
static void test_our_key(void **state)
{
	uint8_t pack[ES_CLIENT_PACK_MAX];
	struct world w;
	struct peers p;
	ssize_t len;

	(void)state;
	set_up_ktls(&w, &p, &peers_kinds[1]);
	long_response(&w, &p, 100);
	SSL_key_update(p.client, SSL_KEY_UPDATE_REQUESTED);
	request(&w, &p);
	assert_true(es_client_is_used_up(&w.client));
	assert_true(es_client_is_settled(&w.client));
	assert_int_equal(es_client_pack(&w.client, "n1", pack), -EMSGSIZE);
	answered(&w);
	long_response(&w, &p, 100);
	es_client_leave(&w.client);
	es_client_is_left(&w.client);
	len = recv(w.far, pack, sizeof(pack), MSG_DONTWAIT);
	assert_true(len > 0);
	peers_tell(&p, pack, (size_t)len);
	assert_int_equal(SSL_get_error(p.client, SSL_read(p.client, pack, 1)), SSL_ERROR_ZERO_RETURN);
	assert_int_equal(recv(w.far, pack, 1, MSG_DONTWAIT), 0);
	tear_down_ktls(&w, &p);
}

/* close_notify, then FIN, but not before the kernel has given TCP the last byte. */
static void test_close(void **state)
{
	uint8_t bytes[100];
	struct world w;
	struct peers p;
	ssize_t len;

	(void)state;
	set_up_ktls(&w, &p, &peers_kinds[0]);
	long_response(&w, &p, 100);
	played.is_open = 0;
	played.room = 7;
	es_client_leave(&w.client);
	assert_false(es_client_is_left(&w.client));
	assert_int_equal(es_client_queued(&w.client), 0);
	len = recv(w.far, bytes, sizeof(bytes), MSG_DONTWAIT);
	assert_int_equal(len, 7);
	peers_tell(&p, bytes, 7);
	assert_true(recv(w.far, bytes, sizeof(bytes), MSG_DONTWAIT) < 0 && errno == EAGAIN);
	assert_true(ev_is_active(&w.client.soon));
	played.is_open = 1;
	drain();
	es_client_is_left(&w.client);
	len = recv(w.far, bytes, sizeof(bytes), MSG_DONTWAIT);
	assert_true(len > 0);
	peers_tell(&p, bytes, (size_t)len);
	assert_int_equal(recv(w.far, bytes, sizeof(bytes), MSG_DONTWAIT), 0);
	assert_int_equal(SSL_read(p.client, bytes, sizeof(bytes)), 0);
	assert_int_equal(SSL_get_error(p.client, 0), SSL_ERROR_ZERO_RETURN);
	tear_down_ktls(&w, &p);
}

/* A record that is not authentic: the alert is the kernel's to write. */
static void test_alert(void **state)
{
	static const uint8_t bad[5 + 32] = {23, 3, 3, 0, 32};
	uint8_t bytes[100];
	struct world w;
	struct peers p;
	ssize_t len;

	(void)state;
	set_up_ktls(&w, &p, &peers_kinds[0]);
	long_response(&w, &p, 100);
	say(&w, bad, sizeof(bad));
	assert_int_equal(es_client_read(&w.client), -1);
	es_client_leave(&w.client);
	es_client_is_left(&w.client);
	len = recv(w.far, bytes, sizeof(bytes), MSG_DONTWAIT);
	assert_true(len > 0);
	peers_tell(&p, bytes, (size_t)len);
	assert_int_equal(peers_reason(&p), SSL_R_SSLV3_ALERT_BAD_RECORD_MAC);
	tear_down_ktls(&w, &p);
}

/* Where the kernel refuses, or is not asked, records are written here. */
static void test_refused(void **state)
{
	(void)state;
	for (int how = 0; how < 5; how++) {
		struct world w;
		struct peers p;

		set_up_ktls(&w, &p, &peers_kinds[0]);
		played.refuses = how == 0 ? -ENOENT : 0;
		w.service.has_ktls = how != 1;
		w.serve.ktls_has = how == 2
					   ? ES_KTLS_ALL & ~es_ktls_bit(es_tls_suite_find(ES_TLS_1_3, 0x1301))
					   : ES_KTLS_ALL;
		w.serve.ktls = how == 3 ? NULL : &playing;
		w.client.text_max = how == 4 ? 512 : ES_TLS_TEXT_MAX;
		for (int turn = 0; turn < 2; turn++)
			long_response(&w, &p, 100);
		assert_null(w.client.offload);
		assert_int_equal(w.counters.count[ES_SERVE_ktls_refused], how == 0);
		assert_int_equal(played.begun, 0);
		tear_down_ktls(&w, &p);
	}
}

/* No connection moves from a kernel that loses a byte. */
static void test_lost_byte(void **state)
{
	static const uint8_t text[1000];
	struct world w;
	struct peers p;

	(void)state;
	set_up_ktls(&w, &p, &peers_kinds[0]);
	long_response(&w, &p, 100);
	assert_true(es_client_is_settled(&w.client));
	played.loses = 1;
	assert_int_equal(es_client_send(&w.client, text, sizeof(text)), 0);
	assert_int_equal(es_client_flush(&w.client), 0);
	assert_false(es_client_is_settled(&w.client));
	tear_down_ktls(&w, &p);
}

/* No key protects more records than it may. */
static void test_limit(void **state)
{
	uint8_t text[100] = {};
	struct world w;
	struct peers p;
	int rc = 0;

	(void)state;
	set_up_ktls(&w, &p, &peers_kinds[0]);
	long_response(&w, &p, 100);
	assert_false(es_client_is_used_up(&w.client));
	played.key.number = ES_TLS_GCM_RECORDS / 2;
	assert_false(es_client_is_settled(&w.client)); /* it looks, and what it sees was not written here */
	assert_true(es_client_is_used_up(&w.client));
	played.key.number = ES_TLS_GCM_RECORDS - ES_OFFLOAD_ROOM;
	for (int i = 0; !rc && i < 100000; i++) {
		assert_int_equal(es_client_send(&w.client, text, sizeof(text)), 0);
		rc = es_client_flush(&w.client);
		while (recv(w.far, text, sizeof(text), MSG_DONTWAIT) > 0)
			;
	}
	assert_int_equal(rc, -EPIPE);
	assert_true(played.key.number < ES_TLS_GCM_RECORDS);
	tear_down_ktls(&w, &p);
}

/* A connection that has sent many records already does not get a layer that cannot have another key. */
static void test_late(void **state)
{
	struct world w;
	struct peers p;

	(void)state;
	set_up_ktls(&w, &p, &peers_kinds[0]);
	assert_true(es_client_pass(&w.client, -1, (ES_TLS_GCM_RECORDS / 2) << 12) == -EOPNOTSUPP);
	assert_null(w.client.offload);
	tear_down_ktls(&w, &p);
}

/* The real one, if this kernel has it: Debian's have, in tests/vm. */
static void test_probe(void **state)
{
	char line[256] = "";
	FILE *file = fopen("/proc/sys/net/ipv4/tcp_available_ulp", "r");
	unsigned int expected = 0;

	(void)state;
	if (file && fgets(line, sizeof(line), file) && strstr(line, "tls"))
		expected = ES_KTLS_ALL;
	if (file)
		fclose(file);
	assert_int_equal(es_ktls_probe(&es_ktls_kernel), expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moves),	  cmocka_unit_test(test_their_key),
		cmocka_unit_test(test_our_key),	  cmocka_unit_test(test_close),
		cmocka_unit_test(test_alert),	  cmocka_unit_test(test_refused),
		cmocka_unit_test(test_lost_byte), cmocka_unit_test(test_limit),
		cmocka_unit_test(test_late),	  cmocka_unit_test(test_probe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
