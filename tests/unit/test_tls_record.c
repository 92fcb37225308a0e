// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tls/record/record.h against a client of OpenSSL that has shaken hands with OpenSSL, for each suite. Records
 * that no client sends are in test_tls_record_odd.c.
 */
#include "cmocka_all.h"
#include <errno.h>
#include "tests/unit/tls_peers.h"
#include "tls/record/protect.h"

#define SECOND 1000000000ULL

static uint64_t now_ns = SECOND;

static void fill(uint8_t *bytes, size_t len, uint64_t seed)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)es_test_random(&seed);
}

/* Read one record that has come alone; its text is @ret_text, of ES_TLS_TEXT_MAX bytes. */
static enum es_tls_event read_one(struct peers *p, const uint8_t *bytes, size_t len, uint8_t *ret_text,
				  struct es_tls_got *ret_got)
{
	es_tls_records_read(p->records, bytes, len, now_ns, ret_text, ret_got);
	return ret_got->event;
}

/* The client has sent one record; the reply goes to it. */
static enum es_tls_event read_sent(struct peers *p, struct es_tls_got *ret_got)
{
	uint8_t text[ES_TLS_TEXT_MAX];
	size_t len;
	uint8_t *bytes = peers_sent(p, &len);
	enum es_tls_event event = read_one(p, bytes, len, text, ret_got);

	if (event != ES_TLS_EVENT_ERROR && event != ES_TLS_EVENT_END)
		assert_int_equal(ret_got->used, len);
	free(bytes);
	peers_tell(p, ret_got->reply, ret_got->reply_len);
	return event;
}

/* @len bytes of the client arrive, in whatever records it makes of them. */
static void client_says(struct peers *p, size_t len, uint64_t seed)
{
	uint8_t *said = malloc(len), *heard = malloc(len + ES_TLS_TEXT_MAX), *bytes;
	size_t heard_len = 0, sent, at = 0;
	struct es_tls_got got;

	assert_true(said && heard);
	fill(said, len, seed);
	assert_int_equal(SSL_write(p->client, said, (int)len), (int)len);
	bytes = peers_sent(p, &sent);
	while (at < sent) {
		assert_int_equal(read_one(p, bytes + at, sent - at, heard + heard_len, &got),
				 ES_TLS_EVENT_TEXT);
		assert_int_equal(got.reply_len, 0);
		at += got.used;
		heard_len += got.text_len;
		assert_true(heard_len <= len);
	}
	assert_int_equal(heard_len, len);
	assert_memory_equal(said, heard, len);
	free(bytes);
	free(said);
	free(heard);
}

/* @len bytes, at most ES_TLS_TEXT_MAX, arrive at the client. */
static void server_says(struct peers *p, size_t len, uint64_t seed)
{
	uint8_t *said = malloc(len ? len : 1), *out = malloc(es_tls_records_write_room(len));
	uint8_t heard[ES_TLS_TEXT_MAX];
	long rc;

	assert_true(said && out);
	fill(said, len, seed);
	rc = es_tls_records_write(p->records, said, len, out);
	assert_true(rc > (long)len && rc <= (long)es_tls_records_write_room(len));
	peers_tell(p, out, (size_t)rc);
	if (len) {
		for (size_t at = 0; at < len;) {
			int got = SSL_read(p->client, heard + at, (int)(len - at));

			assert_true(got > 0);
			at += (size_t)got;
		}
		assert_memory_equal(said, heard, len);
	} else {
		assert_int_equal(peers_reason(p), 0);
	}
	free(said);
	free(out);
}

static void talk(struct peers *p, uint64_t seed)
{
	static const size_t sizes[] = {1, 0, 2, 15, 16, 17, 1024, 16383, 16384};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		if (sizes[i])
			client_says(p, sizes[i], seed + i);
		server_says(p, sizes[i], seed + i + 100);
	}
	client_says(p, 100000, seed);
	server_says(p, 1 + es_test_random(&seed) % ES_TLS_TEXT_MAX, seed);
}

static void each_suite_goes_on(void **unused)
{
	struct peers p;

	for (size_t i = 0; i < PEERS_KINDS; i++) {
		peers_shake(&p, &peers_kinds[i], NULL);
		talk(&p, i);
		peers_free(&p);
	}
	(void)unused;
}

/* Another process goes on, from bytes. */
static void it_is_moved_again_and_again(void **unused)
{
	uint8_t bytes[ES_TLS_STATE_BYTES];
	struct es_tls_state state;
	struct peers p;

	for (size_t i = 0; i < PEERS_KINDS; i++) {
		peers_shake(&p, &peers_kinds[i], NULL);
		for (size_t n = 0; n < 5; n++) {
			client_says(&p, 1 + 777 * n, n);
			server_says(&p, 1 + 333 * n, n);
			es_tls_records_state(p.records, &state);
			es_tls_state_put(&state, bytes);
			es_tls_records_free(&p.records);
			assert_int_equal(es_tls_state_get(bytes, &state), 0);
			assert_int_equal(es_tls_records_new(&state, &p.records), 0);
		}
		peers_free(&p);
	}
	(void)unused;
}

/*
 * The records of a request go to another process, where they are read again: the client's half is that of
 * then, the server's that of now. A KeyUpdate among them has been answered already.
 */
static void records_may_be_read_again_elsewhere(void **unused)
{
	uint8_t text[ES_TLS_TEXT_MAX];
	struct es_tls_state then, now;
	struct es_tls_got got;
	struct peers p;
	size_t sent;

	for (size_t i = 0; i < PEERS_KINDS; i++) {
		int is_1_3 = peers_kinds[i].version == ES_TLS_1_3;
		uint8_t *bytes;

		peers_shake(&p, &peers_kinds[i], NULL);
		client_says(&p, 100, i);
		es_tls_records_state(p.records, &then);
		assert_int_equal(SSL_write(p.client, "req", 3), 3);
		if (is_1_3)
			assert_int_equal(SSL_key_update(p.client, SSL_KEY_UPDATE_REQUESTED), 1);
		assert_int_equal(SSL_write(p.client, "uest", 4), 4);
		bytes = peers_sent(&p, &sent);
		for (int process = 0; process < 2; process++) {
			size_t at = 0, len = 0, replies = 0;

			while (at < sent) {
				es_tls_records_read(p.records, bytes + at, sent - at, now_ns, text + len,
						    &got);
				assert_int_not_equal(got.event, ES_TLS_EVENT_ERROR);
				peers_tell(&p, got.reply, got.reply_len);
				replies += got.reply_len > 0;
				at += got.used;
				len += got.text_len;
			}
			assert_int_equal(len, 7);
			assert_memory_equal(text, "request", 7);
			assert_int_equal(replies, is_1_3);
			server_says(&p, 50, i);
			es_tls_records_state(p.records, &now);
			then.server = now.server;
			if (process)
				break;
			es_tls_records_free(&p.records);
			assert_int_equal(es_tls_records_new(&then, &p.records), 0);
		}
		free(bytes);
		talk(&p, i);
		peers_free(&p);
	}
	(void)unused;
}

/* Its memory ends with what has come, so that AddressSanitizer sees a byte too many. */
static void records_may_be_cut_at_each_byte(void **unused)
{
	uint8_t text[ES_TLS_TEXT_MAX];
	struct es_tls_got got;
	struct peers p;
	size_t sent;

	for (size_t i = 0; i < PEERS_KINDS; i++) {
		uint8_t *bytes;

		peers_shake(&p, &peers_kinds[i], NULL);
		assert_int_equal(SSL_write(p.client, "request", 7), 7);
		bytes = peers_sent(&p, &sent);
		for (size_t len = 0; len < sent; len++) {
			uint8_t *part = malloc(len ? len : 1);

			assert_non_null(part);
			memcpy(part, bytes, len);
			assert_int_equal(read_one(&p, part, len, text, &got), ES_TLS_EVENT_MORE);
			assert_int_equal(got.used, 0);
			free(part);
		}
		assert_int_equal(read_one(&p, bytes, sent, text, &got), ES_TLS_EVENT_TEXT);
		assert_int_equal(got.text_len, 7);
		assert_memory_equal(text, "request", 7);
		free(bytes);
		peers_free(&p);
	}
	(void)unused;
}

static void text_may_take_the_place_of_its_record(void **unused)
{
	static uint8_t bytes[PEERS_BYTES], said[ES_TLS_TEXT_MAX];
	struct es_tls_got got;
	struct peers p;
	int len;

	fill(said, sizeof(said), 1);
	for (size_t i = 0; i < PEERS_KINDS; i++) {
		peers_shake(&p, &peers_kinds[i], NULL);
		for (size_t size = 1; size <= sizeof(said); size *= 4) {
			assert_int_equal(SSL_write(p.client, said, (int)size), (int)size);
			len = BIO_read(p.from, bytes, sizeof(bytes));
			assert_int_equal(read_one(&p, bytes, (size_t)len, bytes, &got), ES_TLS_EVENT_TEXT);
			assert_int_equal(got.text_len, size);
			assert_memory_equal(bytes, said, size);
		}
		peers_free(&p);
	}
	(void)unused;
}

static void the_client_updates_its_keys(void **unused)
{
	static const int kinds[] = {SSL_KEY_UPDATE_NOT_REQUESTED, SSL_KEY_UPDATE_REQUESTED};
	struct es_tls_got got;
	struct peers p;

	for (size_t i = 0; peers_kinds[i].version == ES_TLS_1_3; i++) {
		peers_shake(&p, &peers_kinds[i], NULL);
		for (size_t n = 0; n < 20; n++) {
			now_ns += SECOND / 4;
			assert_int_equal(SSL_key_update(p.client, kinds[n % 2]), 1);
			assert_int_equal(SSL_do_handshake(p.client), 1);
			assert_int_equal(read_sent(&p, &got), ES_TLS_EVENT_NONE);
			assert_int_equal(got.reply_len, n % 2 ? 5 + 5 + 1 + 16 : 0);
			server_says(&p, 100, n);
			client_says(&p, 100, n);
		}
		peers_free(&p);
	}
	(void)unused;
}

/* As many at once as a client may say that has not read the answer to the first one, then four a second. */
static void key_updates_are_bounded(void **unused)
{
	struct es_tls_got got;
	struct peers p;
	int n = 0;

	peers_shake(&p, &peers_kinds[0], NULL);
	do {
		assert_int_equal(SSL_key_update(p.client, SSL_KEY_UPDATE_REQUESTED), 1);
		assert_int_equal(SSL_do_handshake(p.client), 1);
		n++;
		if (n == 1024)
			now_ns += SECOND / 4;
	} while (read_sent(&p, &got) == ES_TLS_EVENT_NONE && n < 2000);
	assert_int_equal(n, 1026);
	assert_int_equal(got.event, ES_TLS_EVENT_ERROR);
	assert_string_equal(got.why, "too many records that say nothing");
	assert_int_equal(peers_reason(&p), SSL_R_SSLV3_ALERT_UNEXPECTED_MESSAGE);
	peers_free(&p);
	(void)unused;
}

/* Whatever byte of a record is another one, the text is not read; the client is told why. */
static void tampered_records_end_it(void **unused)
{
	uint8_t text[ES_TLS_TEXT_MAX];
	struct es_tls_records *records;
	struct es_tls_got got;
	struct peers p;
	size_t sent;

	for (size_t i = 0; i < PEERS_KINDS; i++) {
		uint8_t *bytes;

		peers_shake(&p, &peers_kinds[i], NULL);
		assert_int_equal(SSL_write(p.client, "request", 7), 7);
		bytes = peers_sent(&p, &sent);
		for (size_t bit = 0; bit < 8 * sent; bit++) {
			assert_int_equal(es_tls_records_new(&p.state, &records), 0);
			bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			memset(text, 0x55, sizeof(text));
			es_tls_records_read(records, bytes, sent, now_ns, text, &got);
			bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			/* A longer one is waited for. */
			if (got.event == ES_TLS_EVENT_MORE)
				assert_true(bit / 8 == 3 || bit / 8 == 4);
			else
				assert_int_equal(got.event, ES_TLS_EVENT_ERROR);
			assert_int_equal(got.text_len, 0);
			assert_int_not_equal(memcmp(text, "request", 7), 0);
			if (got.event == ES_TLS_EVENT_ERROR) {
				es_tls_records_read(records, bytes, sent, now_ns, text, &got);
				assert_int_equal(got.event, ES_TLS_EVENT_END);
				assert_int_equal(got.reply_len, 0);
				assert_int_equal(es_tls_records_write(records, text, 1, text), -EPIPE);
				assert_int_equal(es_tls_records_close(records, text), 0);
			}
			es_tls_records_free(&records);
		}
		bytes[sent - 1] ^= 1;
		assert_int_equal(read_one(&p, bytes, sent, text, &got), ES_TLS_EVENT_ERROR);
		peers_tell(&p, got.reply, got.reply_len);
		assert_int_equal(peers_reason(&p), SSL_R_SSLV3_ALERT_BAD_RECORD_MAC);
		free(bytes);
		peers_free(&p);
	}
	(void)unused;
}

/* One record twice, one left out, two exchanged. */
static void records_have_their_order(void **unused)
{
	uint8_t text[ES_TLS_TEXT_MAX], *first, *second;
	struct es_tls_got got;
	struct peers p;
	size_t len, second_len;

	for (size_t i = 0; i < PEERS_KINDS; i++) {
		for (int twice = 0; twice < 2; twice++) {
			peers_shake(&p, &peers_kinds[i], NULL);
			SSL_write(p.client, "first", 5);
			first = peers_sent(&p, &len);
			SSL_write(p.client, "second", 6);
			second = peers_sent(&p, &second_len);
			if (twice) {
				assert_int_equal(read_one(&p, first, len, text, &got), ES_TLS_EVENT_TEXT);
				assert_int_equal(read_one(&p, first, len, text, &got), ES_TLS_EVENT_ERROR);
			} else {
				assert_int_equal(read_one(&p, second, second_len, text, &got),
						 ES_TLS_EVENT_ERROR);
			}
			free(first);
			free(second);
			peers_free(&p);
		}
	}
	(void)unused;
}

static void both_sides_close(void **unused)
{
	uint8_t out[64], text[ES_TLS_TEXT_MAX];
	struct es_tls_got got;
	struct peers p;
	size_t len;

	for (size_t i = 0; i < PEERS_KINDS; i++) {
		peers_shake(&p, &peers_kinds[i], NULL);
		server_says(&p, 10, i);
		assert_int_equal(SSL_shutdown(p.client), 0);
		assert_int_equal(read_sent(&p, &got), ES_TLS_EVENT_CLOSE);
		assert_int_equal(got.reply_len, 0);
		/* Later bytes are passed over. */
		assert_int_equal(read_one(&p, (const uint8_t *)"whatever", 8, text, &got),
				 ES_TLS_EVENT_CLOSE);
		assert_int_equal(got.used, 8);
		/* The answer may still go. */
		assert_true(es_tls_records_write(p.records, out, 1, text) > 0);
		peers_tell(&p, text,
			   5 + 1 + es_tls_protect_adds(es_tls_suite_find(p.state.version, p.state.suite)));
		len = es_tls_records_close(p.records, out);
		assert_true(len && len <= sizeof(out));
		assert_int_equal(es_tls_records_close(p.records, out), 0);
		assert_int_equal(es_tls_records_write(p.records, text, 1, out), -EPIPE);
		peers_tell(&p, out, len);
		assert_int_equal(SSL_read(p.client, text, 1), 1);
		assert_true(SSL_read(p.client, text, 1) <= 0);
		assert_int_equal(SSL_get_error(p.client, 0), SSL_ERROR_ZERO_RETURN);
		assert_int_equal(SSL_shutdown(p.client), 1);
		peers_free(&p);
	}
	(void)unused;
}

static void a_fatal_alert_ends_it(void **unused)
{
	static const uint8_t wrong[] = {23, 3, 3, 0, 32, [36] = 1};
	struct es_tls_got got;
	struct peers p;

	for (size_t i = 0; i < PEERS_KINDS; i++) {
		peers_shake(&p, &peers_kinds[i], NULL);
		peers_tell(&p, wrong, sizeof(wrong));
		assert_int_not_equal(peers_reason(&p), 0);
		assert_int_equal(read_sent(&p, &got), ES_TLS_EVENT_END);
		assert_int_equal(got.reply_len, 0);
		assert_string_equal(got.why, "the client's alert: bad record MAC");
		peers_free(&p);
	}
	(void)unused;
}

static void renegotiation_is_refused(void **unused)
{
	struct es_tls_got got;
	struct peers p;

	for (size_t i = 0; i < PEERS_KINDS; i++) {
		if (peers_kinds[i].version != ES_TLS_1_2)
			continue;
		peers_shake(&p, &peers_kinds[i], NULL);
		assert_int_equal(SSL_renegotiate(p.client), 1);
		SSL_do_handshake(p.client);
		assert_int_equal(read_sent(&p, &got), ES_TLS_EVENT_NONE);
		assert_true(got.reply_len);
		assert_int_equal(peers_reason(&p), SSL_R_NO_RENEGOTIATION);
		peers_free(&p);
	}
	(void)unused;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_suite_goes_on),
		cmocka_unit_test(it_is_moved_again_and_again),
		cmocka_unit_test(records_may_be_read_again_elsewhere),
		cmocka_unit_test(records_may_be_cut_at_each_byte),
		cmocka_unit_test(text_may_take_the_place_of_its_record),
		cmocka_unit_test(the_client_updates_its_keys),
		cmocka_unit_test(key_updates_are_bounded),
		cmocka_unit_test(tampered_records_end_it),
		cmocka_unit_test(records_have_their_order),
		cmocka_unit_test(both_sides_close),
		cmocka_unit_test(a_fatal_alert_ends_it),
		cmocka_unit_test(renegotiation_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
