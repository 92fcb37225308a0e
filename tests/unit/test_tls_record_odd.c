// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tls/record/record.h with records that no client of today sends, which the test protects by
 * tls/record/protect.h: wrong headers, lengths and types, padding, too much of what says nothing, keys that
 * are used up. Some of TLS 1.3 are RFC 8448's.
 */
#include "cmocka_all.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tls/record/bytes.h"
#include "tls/record/protect.h"
#include "tls/record/record.h"

#define SECOND	 1000000000ULL
#define SENT_MAX 65536

static uint64_t now_ns = SECOND;

static void fill(uint8_t *bytes, size_t len, uint64_t seed)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)es_test_random(&seed);
}

static const struct {
	uint16_t version;
	uint16_t suite;
} kinds[] = {{ES_TLS_1_3, 0x1301}, {ES_TLS_1_3, 0x1302}, {ES_TLS_1_3, 0x1303},
	     {ES_TLS_1_2, 0xc02f}, {ES_TLS_1_2, 0xc030}, {ES_TLS_1_2, 0xcca8}};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* A connection whose client is the test, which can send what no client does. */
struct played {
	struct es_tls_protect client; /* writes */
	struct es_tls_protect server; /* reads what the server writes */
	struct es_tls_records *records;
	struct es_tls_state state;
	struct es_tls_got got;
	uint8_t text[ES_TLS_TEXT_MAX];
};

static void play_from(struct played *p, uint16_t version, uint16_t suite, uint64_t client_number,
		      uint64_t server_number)
{
	memset(p, 0, sizeof(*p));
	p->state.version = version;
	p->state.suite = suite;
	fill(p->state.client.secret, ES_TLS_SECRET_MAX, 1);
	fill(p->state.server.secret, ES_TLS_SECRET_MAX, 2);
	p->state.client.number = client_number;
	p->state.server.number = server_number;
	assert_int_equal(
		es_tls_protect_init(&p->client, es_tls_suite_find(version, suite), &p->state.client, 1), 0);
	assert_int_equal(
		es_tls_protect_init(&p->server, es_tls_suite_find(version, suite), &p->state.server, 0), 0);
	assert_int_equal(es_tls_records_new(&p->state, &p->records), 0);
}

static void play(struct played *p, uint16_t version)
{
	play_from(p, version, version == ES_TLS_1_3 ? 0x1301 : 0xc02f, 5, 6);
}

static void play_end(struct played *p)
{
	es_tls_protect_fini(&p->client);
	es_tls_protect_fini(&p->server);
	es_tls_records_free(&p->records);
}

static enum es_tls_event raw(struct played *p, const void *bytes, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	es_tls_records_read(p->records, copy, len, now_ns, p->text, &p->got);
	free(copy);
	return p->got.event;
}

static enum es_tls_event send_record(struct played *p, uint8_t type, const void *text, size_t len)
{
	static uint8_t out[SENT_MAX];
	long rc = es_tls_protect_seal(&p->client, type, text, len, out);

	assert_true(rc > 0);
	return raw(p, out, (size_t)rc);
}

/* The alert of the last reply, which is fatal; -1: there is none. */
static int alert_of(struct played *p)
{
	uint8_t text[ES_TLS_TEXT_MAX], type;
	size_t at = 0, body;
	int alert = -1;

	for (; at < p->got.reply_len; at += ES_TLS_RECORD_HEADER + body) {
		body = es_tls_get(p->got.reply + at + 3, 2);
		assert_true(at + ES_TLS_RECORD_HEADER + body <= p->got.reply_len);
		assert_true(es_tls_protect_open(&p->server, p->got.reply + at, body, text, &type) >= 0);
		if (type == ES_TLS_HANDSHAKE && p->state.version == ES_TLS_1_3)
			assert_int_equal(es_tls_protect_next(&p->server), 0);
		if (type == ES_TLS_ALERT) {
			assert_int_equal(text[0], 2);
			alert = text[1];
		}
	}
	return alert;
}

#define assert_ends(p, sent, alert)                                                                          \
	do {                                                                                                 \
		assert_int_equal(sent, ES_TLS_EVENT_ERROR);                                                  \
		assert_non_null((p)->got.why);                                                               \
		assert_int_equal(alert_of(p), alert);                                                        \
		play_end(p);                                                                                 \
	} while (0)

static void headers_must_be_right(void **unused)
{
	static const uint16_t versions[] = {ES_TLS_1_2, ES_TLS_1_3};
	struct played p;

	/* A change_cipher_spec that a handshake would pass over; an alert and text without protection. */
	play(&p, ES_TLS_1_3);
	assert_ends(&p, raw(&p, "\x14\3\3\0\1\1", 6), 10);
	play(&p, ES_TLS_1_3);
	assert_ends(&p, raw(&p, "\x15\3\3\0\2\2\x28", 7), 10);
	play(&p, ES_TLS_1_3);
	assert_ends(&p, raw(&p, "\x17\3\3\0\4GET ", 9), 20);
	play(&p, ES_TLS_1_2);
	assert_ends(&p, raw(&p, "\x14\3\3\0\1\1", 6), 20);
	play(&p, ES_TLS_1_2);
	assert_ends(&p, raw(&p, "\x15\3\3\0\2\2\x28", 7), 20);
	for (int i = 0; i < 2; i++) {
		play(&p, versions[i]);
		assert_ends(&p, raw(&p, "\x17\3\1\0\x40", 5), 70);
		play(&p, versions[i]);
		assert_ends(&p, raw(&p, "GET / HTTP/1.1\r\n\r\n", 18), 70);
		play(&p, versions[i]);
		assert_ends(&p, raw(&p, "\x17\3\3\0\0", 5), 20);
		play(&p, versions[i]);
		assert_ends(&p, raw(&p, "\x17\3\3\0\x10", 5), 20);
		play(&p, versions[i]);
		assert_ends(&p, raw(&p, "\x17\3\3\xff\xff", 5), 22);
	}
	play(&p, ES_TLS_1_3);
	assert_int_equal(raw(&p, "\x17\3\3\x41\0", 5), ES_TLS_EVENT_MORE);
	assert_ends(&p, raw(&p, "\x17\3\3\x41\1", 5), 22);
	play(&p, ES_TLS_1_2);
	assert_int_equal(raw(&p, "\x17\3\3\x48\0", 5), ES_TLS_EVENT_MORE);
	assert_ends(&p, raw(&p, "\x17\3\3\x48\1", 5), 22);
	(void)unused;
}

/* In all suites, since the longest text is limited where it is decrypted. */
static void texts_have_their_length(void **unused)
{
	static uint8_t said[ES_TLS_TEXT_MAX + 1];
	struct played p;

	fill(said, sizeof(said), 3);
	for (size_t i = 0; i < KINDS; i++) {
		play_from(&p, kinds[i].version, kinds[i].suite, 0, 0);
		assert_int_equal(send_record(&p, 23, said, ES_TLS_TEXT_MAX), ES_TLS_EVENT_TEXT);
		assert_int_equal(p.got.text_len, ES_TLS_TEXT_MAX);
		assert_memory_equal(p.text, said, ES_TLS_TEXT_MAX);
		assert_ends(&p, send_record(&p, 23, said, sizeof(said)), 22);
	}
	(void)unused;
}

/*
 * TLS 1.3's padding: the test writes text, type and zeros as a text, and 0 as its type, which is one more
 * zero.
 */
static void padding_is_taken_off(void **unused)
{
	static uint8_t inner[ES_TLS_TEXT_MAX + 256];
	static const size_t lens[] = {1, 2, 100, ES_TLS_TEXT_MAX - 1, ES_TLS_TEXT_MAX};
	struct played p;

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		size_t most = ES_TLS_RECORD_MAX - ES_TLS_RECORD_HEADER - ES_TLS_TAG_SIZE - 1;

		memset(inner, 0, sizeof(inner));
		fill(inner, lens[i], 7);
		inner[lens[i]] = ES_TLS_APPLICATION_DATA;
		play(&p, ES_TLS_1_3);
		assert_int_equal(send_record(&p, 0, inner, most), ES_TLS_EVENT_TEXT);
		assert_int_equal(p.got.text_len, lens[i]);
		assert_memory_equal(p.text, inner, lens[i]);
		assert_int_equal(send_record(&p, 0, inner, lens[i] + 1), ES_TLS_EVENT_TEXT);
		assert_int_equal(p.got.text_len, lens[i]);
		/* The longest that may be, of padding alone. */
		memset(inner, 0, sizeof(inner));
		assert_ends(&p, send_record(&p, 0, inner, most), 10);
	}
	play(&p, ES_TLS_1_3);
	assert_ends(&p, send_record(&p, 0, inner, 0), 10);
	/* A byte of text too many, before the type. */
	play(&p, ES_TLS_1_3);
	inner[ES_TLS_TEXT_MAX + 1] = ES_TLS_APPLICATION_DATA;
	assert_ends(&p, send_record(&p, 0, inner, ES_TLS_TEXT_MAX + 2), 22);
	(void)unused;
}

static void what_must_not_come_ends_it(void **unused)
{
	static const struct {
		const char *text;
		size_t len;
		int alert;
		uint16_t version;
		uint8_t type;
	} cases[] = {
		{"\1", 1, 10, ES_TLS_1_3, 20},
		{"\1", 1, 10, ES_TLS_1_2, 20},
		{"x", 1, 10, ES_TLS_1_3, 24}, /* heartbeat */
		{"x", 1, 10, ES_TLS_1_2, 24},
		{"", 0, 10, ES_TLS_1_3, 22},
		{"", 0, 10, ES_TLS_1_2, 22},
		{"\x18\0\0\1\2", 5, 47, ES_TLS_1_3, 22},	      /* KeyUpdate of an unknown kind */
		{"\x18\0\0\1", 4, 10, ES_TLS_1_3, 22},		      /* a part of it */
		{"\x18\0\0\1\0\x18\0\0\1\0", 10, 10, ES_TLS_1_3, 22}, /* two under one key */
		{"\1\0\0\0", 4, 10, ES_TLS_1_3, 22},		      /* ClientHello */
		{"\xb\0\0\0", 4, 10, ES_TLS_1_3, 22},	 /* Certificate that nobody has asked for */
		{"\x14\0\0\0", 4, 10, ES_TLS_1_2, 22},	 /* Finished */
		{"\x18\0\0\1\1", 5, 10, ES_TLS_1_2, 22}, /* KeyUpdate, not of this version */
		{"", 0, 10, ES_TLS_1_3, 21},
		{"\1", 1, 10, ES_TLS_1_3, 21},
		{"\1\0\1\0", 4, 10, ES_TLS_1_3, 21},
		{"\3\x50", 2, 47, ES_TLS_1_2, 21},
	};
	struct played p;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		play(&p, cases[i].version);
		assert_ends(&p, send_record(&p, cases[i].type, cases[i].text, cases[i].len), cases[i].alert);
	}
	(void)unused;
}

static void alerts_have_their_level(void **unused)
{
	struct played p;

	play(&p, ES_TLS_1_2);
	assert_int_equal(send_record(&p, 21, "\1\x5a", 2), ES_TLS_EVENT_NONE);
	assert_int_equal(send_record(&p, 21, "\1\x64", 2), ES_TLS_EVENT_NONE);
	assert_int_equal(send_record(&p, 21, "\2\x50", 2), ES_TLS_EVENT_END);
	assert_string_equal(p.got.why, "the client's alert: internal error");
	play_end(&p);
	play(&p, ES_TLS_1_3);
	assert_int_equal(send_record(&p, 21, "\1\x5a", 2), ES_TLS_EVENT_NONE);
	assert_int_equal(send_record(&p, 21, "\1\x50", 2), ES_TLS_EVENT_END);
	play_end(&p);
	play(&p, ES_TLS_1_3);
	assert_int_equal(send_record(&p, 21, "\2\0", 2), ES_TLS_EVENT_CLOSE);
	play_end(&p);
	(void)unused;
}

/* Eight at once, then four a second, of whatever says nothing; text in between does not matter. */
static void empty_records_are_bounded(void **unused)
{
	static const uint16_t versions[] = {ES_TLS_1_2, ES_TLS_1_3};
	struct played p;

	for (int i = 0; i < 2; i++) {
		now_ns += 10 * SECOND;
		play(&p, versions[i]);
		for (int n = 0; n < 8; n++) {
			assert_int_equal(send_record(&p, 23, "", 0), ES_TLS_EVENT_TEXT);
			assert_int_equal(p.got.text_len, 0);
		}
		for (int n = 0; n < 100; n++)
			assert_int_equal(send_record(&p, 23, "x", 1), ES_TLS_EVENT_TEXT);
		for (int n = 0; n < 20; n++) {
			now_ns += SECOND / 4;
			assert_int_equal(send_record(&p, 23, "", 0), ES_TLS_EVENT_TEXT);
		}
		/* The end of a connection costs nothing. */
		if (versions[i] == ES_TLS_1_3)
			assert_int_equal(send_record(&p, 21, "\1\0", 2), ES_TLS_EVENT_CLOSE);
		else
			assert_int_equal(send_record(&p, 23, "", 0), ES_TLS_EVENT_ERROR);
		play_end(&p);
	}
	now_ns += 10 * SECOND;
	play(&p, ES_TLS_1_2);
	for (int n = 0; n < 8; n++)
		assert_int_equal(send_record(&p, 22, "\1\0\0\0", 4), ES_TLS_EVENT_NONE);
	assert_int_equal(send_record(&p, 22, "\1\0\0\0", 4), ES_TLS_EVENT_ERROR);
	play_end(&p);
	(void)unused;
}

/* Take the next record off those that the server has written. Returns its type. */
static int heard(struct played *p, const uint8_t **bytes, long *len)
{
	size_t body = es_tls_get(*bytes + 3, 2);
	uint8_t type;

	assert_true(*len >= (long)(ES_TLS_RECORD_HEADER + body));
	assert_true(es_tls_protect_open(&p->server, *bytes, body, p->text, &type) >= 0);
	*bytes += ES_TLS_RECORD_HEADER + body;
	*len -= (long)(ES_TLS_RECORD_HEADER + body);
	return type;
}

static void gcm_changes_its_key_in_time(void **unused)
{
	static const uint16_t suites[] = {0x1301, 0x1302};
	uint8_t out[256];
	struct played p;

	for (int i = 0; i < 2; i++) {
		const uint8_t *at = out;
		long len;

		play_from(&p, ES_TLS_1_3, suites[i], 0, ES_TLS_GCM_RECORDS - 1);
		len = es_tls_records_write(p.records, (const uint8_t *)"a", 1, out);
		assert_int_equal(heard(&p, &at, &len), 23);
		assert_int_equal(len, 0);
		at = out;
		len = es_tls_records_write(p.records, (const uint8_t *)"b", 1, out);
		assert_true(len <= (long)es_tls_records_write_room(1));
		assert_int_equal(heard(&p, &at, &len), ES_TLS_HANDSHAKE);
		assert_memory_equal(p.text, "\x18\0\0\1\0", 5);
		assert_int_equal(es_tls_protect_next(&p.server), 0);
		assert_int_equal(heard(&p, &at, &len), 23);
		assert_memory_equal(p.text, "b", 1);
		assert_int_equal(len, 0);
		play_end(&p);
	}
	(void)unused;
}

static void gcm_of_1_2_ends_in_time(void **unused)
{
	uint8_t out[256];
	struct played p;

	play_from(&p, ES_TLS_1_2, 0xc030, ES_TLS_GCM_RECORDS - 1, ES_TLS_GCM_RECORDS - 1);
	assert_true(es_tls_records_write(p.records, out, 1, out + 64) > 0);
	assert_int_equal(es_tls_records_write(p.records, out, 1, out + 64), -EKEYEXPIRED);
	/* It can still say so. */
	p.got.reply_len = es_tls_records_close(p.records, p.got.reply);
	assert_true(p.got.reply_len);
	play_end(&p);
	play_from(&p, ES_TLS_1_2, 0xc030, ES_TLS_GCM_RECORDS - 1, 0);
	assert_int_equal(send_record(&p, 23, "x", 1), ES_TLS_EVENT_TEXT);
	assert_ends(&p, send_record(&p, 23, "x", 1), 80);
	/* ChaCha20 has no limit. */
	play_from(&p, ES_TLS_1_2, 0xcca8, ES_TLS_GCM_RECORDS, ES_TLS_GCM_RECORDS);
	assert_int_equal(send_record(&p, 23, "x", 1), ES_TLS_EVENT_TEXT);
	assert_true(es_tls_records_write(p.records, out, 1, out + 64) > 0);
	play_end(&p);
	(void)unused;
}

static void a_client_is_asked_for_another_key(void **unused)
{
	const uint8_t *at;
	struct played p;
	long len;

	play_from(&p, ES_TLS_1_3, 0x1301, ES_TLS_GCM_RECORDS - 1, 3);
	assert_int_equal(send_record(&p, 23, "x", 1), ES_TLS_EVENT_TEXT);
	assert_int_equal(p.got.text_len, 1);
	at = p.got.reply;
	len = (long)p.got.reply_len;
	assert_int_equal(heard(&p, &at, &len), ES_TLS_HANDSHAKE);
	assert_memory_equal(p.text, "\x18\0\0\1\1", 5);
	assert_int_equal(len, 0);
	assert_int_equal(es_tls_protect_next(&p.server), 0);
	/* Once. */
	assert_int_equal(send_record(&p, 23, "x", 1), ES_TLS_EVENT_TEXT);
	assert_int_equal(p.got.reply_len, 0);
	assert_int_equal(send_record(&p, 22, "\x18\0\0\1\0", 5), ES_TLS_EVENT_NONE);
	assert_int_equal(p.got.reply_len, 0);
	assert_int_equal(es_tls_protect_next(&p.client), 0);
	assert_int_equal(send_record(&p, 23, "x", 1), ES_TLS_EVENT_TEXT);
	play_end(&p);
	/* One that does not care is left. */
	play_from(&p, ES_TLS_1_3, 0x1301, 2 * ES_TLS_GCM_RECORDS - 1, 3);
	assert_int_equal(send_record(&p, 23, "x", 1), ES_TLS_EVENT_TEXT);
	assert_true(p.got.reply_len);
	assert_int_equal(alert_of(&p), -1);
	assert_ends(&p, send_record(&p, 23, "x", 1), 80);
	(void)unused;
}

static void unknown_suites_are_refused(void **unused)
{
	static const struct {
		uint16_t version;
		uint16_t suite;
	} cases[] = {
		{ES_TLS_1_3, 0xc02f}, {ES_TLS_1_2, 0x1301}, {ES_TLS_1_3, 0x1304}, {0x0302, 0xc02f}, {0, 0}};
	struct es_tls_records *records = NULL;
	struct es_tls_state state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memset(&state, 0, sizeof(state));
		state.version = cases[i].version;
		state.suite = cases[i].suite;
		assert_int_equal(es_tls_records_new(&state, &records), -EPROTO);
		assert_null(records);
	}
	es_tls_records_free(&records);
	(void)unused;
}

static size_t hex(const char *text, uint8_t *ret_bytes)
{
	size_t len = 0;
	char *end;

	for (; *text; text = end) {
		ret_bytes[len++] = (uint8_t)strtoul(text, &end, 16);
		while (*end == ' ')
			end++;
	}
	return len;
}

/* RFC 8448 section 3, "Simple 1-RTT Handshake": application data and alerts of both sides. */
static void rfc_8448(void **unused)
{
	static const char client_data[] = "17 03 03 00 43 a2 3f 70 54 b6 2c 94 d0 af fa fe 82 28 ba 55 cb ef "
					  "ac ea 42 f9 14 aa 66 bc ab 3f "
					  "2b 98 19 a8 a5 b4 6b 39 5b d5 4a 9a 20 44 1e 2b 62 97 4e 1f 5a 62 "
					  "92 a2 97 70 14 bd 1e 3d ea e6 "
					  "3a ee bb 21 69 49 15 e4";
	static const char server_data[] = "17 03 03 00 43 2e 93 7e 11 ef 4a c7 40 e5 38 ad 36 00 5f c4 a4 69 "
					  "32 fc 32 25 d0 5f 82 aa 1b 36 "
					  "e3 0e fa f9 7d 90 e6 df fc 60 2d cb 50 1a 59 a8 fc c4 9c 4b f2 e5 "
					  "f0 a2 1c 00 47 c2 ab f3 32 54 "
					  "0d d0 32 e1 67 c2 95 5d";
	struct es_tls_state state = {.version = ES_TLS_1_3, .suite = 0x1301, .server.number = 1};
	uint8_t said[50], bytes[128], out[256], text[ES_TLS_TEXT_MAX];
	struct es_tls_records *records;
	struct es_tls_got got;
	size_t len;

	hex("9e 40 64 6c e7 9a 7f 9d c0 5a f8 88 9b ce 65 52 87 5a fa 0b 06 df 00 87 f7 92 eb b7 c1 75 04 a5",
	    state.client.secret);
	hex("a1 1a f9 f0 55 31 f8 56 ad 47 11 6b 45 a9 50 32 82 04 b4 f4 4b fb 6b 3a 4b 4f 1f 3f cb 63 16 43",
	    state.server.secret);
	for (size_t i = 0; i < sizeof(said); i++)
		said[i] = (uint8_t)i;
	assert_int_equal(es_tls_records_new(&state, &records), 0);
	len = hex(client_data, bytes);
	es_tls_records_read(records, bytes, len, now_ns, text, &got);
	assert_int_equal(got.event, ES_TLS_EVENT_TEXT);
	assert_int_equal(got.text_len, sizeof(said));
	assert_memory_equal(text, said, sizeof(said));
	len = hex(server_data, bytes);
	assert_int_equal(es_tls_records_write(records, said, sizeof(said), out), len);
	assert_memory_equal(out, bytes, len);
	len = hex("17 03 03 00 13 c9 87 27 60 65 56 66 b7 4d 7f f1 15 3e fd 6d b6 d0 b0 e3", bytes);
	es_tls_records_read(records, bytes, len, now_ns, text, &got);
	assert_int_equal(got.event, ES_TLS_EVENT_CLOSE);
	len = hex("17 03 03 00 13 b5 8f d6 71 66 eb f5 99 d2 47 20 cf be 7e fa 7a 88 64 a9", bytes);
	assert_int_equal(es_tls_records_close(records, out), len);
	assert_memory_equal(out, bytes, len);
	es_tls_records_free(&records);
	(void)unused;
}

static void texts_that_are_too_long_are_refused(void **unused)
{
	static uint8_t text[ES_TLS_TEXT_MAX + 1], out[ES_TLS_TEXT_MAX + 1 + ES_TLS_RECORD_EXTRA];
	struct played p;

	play(&p, ES_TLS_1_3);
	assert_int_equal(es_tls_records_write(p.records, text, sizeof(text), out), -EMSGSIZE);
	assert_true(es_tls_records_write(p.records, text, ES_TLS_TEXT_MAX, out) > 0);
	play_end(&p);
	(void)unused;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_must_be_right),
		cmocka_unit_test(texts_have_their_length),
		cmocka_unit_test(padding_is_taken_off),
		cmocka_unit_test(what_must_not_come_ends_it),
		cmocka_unit_test(alerts_have_their_level),
		cmocka_unit_test(empty_records_are_bounded),
		cmocka_unit_test(gcm_changes_its_key_in_time),
		cmocka_unit_test(gcm_of_1_2_ends_in_time),
		cmocka_unit_test(a_client_is_asked_for_another_key),
		cmocka_unit_test(unknown_suites_are_refused),
		cmocka_unit_test(rfc_8448),
		cmocka_unit_test(texts_that_are_too_long_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
