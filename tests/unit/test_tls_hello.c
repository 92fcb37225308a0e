// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * inspector/http/tls_hello.h: names and protocols are found however the message is cut, and what no server
 * would take is none.
 */
#include "tests/unit/cmocka_all.h"

#include <stdlib.h>

#include "inspector/http/tls_hello.h"
#include "tests/hello.h"

/* With a key share as of X25519MLKEM768, in front of what is looked for. */
static struct hello large(void)
{
	static const uint8_t share[1216];
	struct hello e = {.len = 0};

	hello_extension(&e, 0x0a0a, "", 0);
	hello_extension(&e, 51, share, sizeof(share));
	hello_sni(&e, "Shop.example.org");
	hello_alpn(&e, "\2h2\10http/1.1");
	hello_extension(&e, 21, share, 300);
	return e;
}

static void check_found(const struct es_tls_hello *h)
{
	const char *protocol;
	size_t len = 0;

	assert_int_equal(h->sni_len, 16);
	assert_memory_equal(h->sni, "Shop.example.org", 16);
	protocol = es_tls_hello_alpn(h, 0, &len);
	assert_int_equal(len, 2);
	assert_memory_equal(protocol, "h2", 2);
	protocol = es_tls_hello_alpn(h, 1, &len);
	assert_int_equal(len, 8);
	assert_memory_equal(protocol, "http/1.1", 8);
	assert_null(es_tls_hello_alpn(h, 2, &len));
}

/* On the heap and exactly as long as it says, for the sanitizers. */
static enum es_tls_result parse(const uint8_t *bytes, size_t len, struct es_tls_hello *ret)
{
	uint8_t *copy = malloc(len ? len : 1);
	enum es_tls_result result;

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	result = es_tls_hello_parse(copy, len, ret);
	free(copy);
	return result;
}

/* Checks the promise of more_bytes: with fewer there is nothing new, and in the end all is found. */
static void check_cuts(const struct hello *whole)
{
	struct es_tls_hello h, before = {};
	size_t asked = 0;

	for (size_t len = 0; len < whole->len; len++) {
		assert_int_equal(parse(whole->bytes, len, &h), ES_TLS_MORE);
		assert_true(h.more_bytes > len && h.more_bytes <= whole->len);
		assert_true(h.sni_len >= before.sni_len && h.alpn_len >= before.alpn_len);
		if (len < asked)
			assert_int_equal(h.more_bytes, asked);
		asked = h.more_bytes;
		before = h;
	}
	assert_int_equal(parse(whole->bytes, whole->len, &h), ES_TLS_DONE);
	assert_int_equal(h.more_bytes, 0);
	check_found(&h);
}

static void test_every_cut(void **state)
{
	struct hello e = large(), whole;

	(void)state;
	hello_finish(&e, 16384, &whole);
	assert_true(whole.len > 1650);
	/* Behind the record's header the record's end is what is waited for. */
	check_cuts(&whole);
}

static void test_records(void **state)
{
	static const size_t sizes[] = {1, 2, 3, 4, 5, 37, 100, 1000};
	struct hello e = large(), whole;
	struct es_tls_hello h;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		if (sizes[i] == 1)
			e.len -= 304; /* six bytes for each would be more than there is room for */
		hello_finish(&e, sizes[i] < 4 ? 4 : sizes[i], &whole);
		assert_int_equal(parse(whole.bytes, whole.len, &h), ES_TLS_DONE);
		check_found(&h);
		for (size_t len = 0; len < whole.len; len++) {
			assert_int_equal(parse(whole.bytes, len, &h), ES_TLS_MORE);
			assert_true(h.more_bytes > len && h.more_bytes <= whole.len);
		}
	}
}

/* Bytes after the message are somebody else's. */
static void test_more_behind(void **state)
{
	struct hello e = large(), whole;
	struct es_tls_hello h;

	(void)state;
	hello_finish(&e, 16384, &whole);
	hello_number(&whole, 0xffffffff, 4);
	assert_int_equal(parse(whole.bytes, whole.len, &h), ES_TLS_DONE);
	check_found(&h);
}

static void test_without(void **state)
{
	struct hello e = {.len = 0}, whole = {.len = 0};
	struct es_tls_hello h;
	size_t len;

	(void)state;
	hello_finish(&e, 16384, &whole);
	assert_int_equal(parse(whole.bytes, whole.len, &h), ES_TLS_DONE);
	assert_int_equal(h.sni_len, 0);
	assert_null(es_tls_hello_alpn(&h, 0, &len));
	/* TLS 1.0 without any extensions. */
	whole.bytes[4] -= 2;
	whole.bytes[8] -= 2;
	assert_int_equal(parse(whole.bytes, whole.len - 2, &h), ES_TLS_DONE);
}

static void expect_none(const struct hello *extensions)
{
	struct es_tls_hello h;
	struct hello whole;

	hello_finish(extensions, 16384, &whole);
	assert_int_equal(parse(whole.bytes, whole.len, &h), ES_TLS_NONE);
	assert_int_equal(h.sni_len + h.alpn_len + h.more_bytes, 0);
}

static void test_wrong_extensions(void **state)
{
	struct hello e;

	(void)state;
#define WRONG(...)                                                                                           \
	do {                                                                                                 \
		e.len = 0;                                                                                   \
		__VA_ARGS__;                                                                                 \
		expect_none(&e);                                                                             \
	} while (0)
	WRONG(hello_sni(&e, "a.org"), hello_sni(&e, "b.org"));
	WRONG(hello_alpn(&e, "\2h2"), hello_alpn(&e, "\2h2"));
	WRONG(hello_sni(&e, ""));
	WRONG(hello_sni(&e, "a b"));
	WRONG(hello_sni(&e, "a\nb"));
	WRONG(hello_extension(&e, 0, "\0\4\0\0\1\0", 6)); /* NUL */
	WRONG(hello_extension(&e, 0, "", 0));
	WRONG(hello_extension(&e, 0, "\0", 1));
	WRONG(hello_extension(&e, 0, "\0\0", 2));
	WRONG(hello_extension(&e, 0, "\0\5\0\0\1a", 6)); /* the list is longer than the extension */
	WRONG(hello_extension(&e, 0, "\0\3\0\0\1a", 6)); /* and shorter */
	WRONG(hello_extension(&e, 0, "\0\4\0\0\2a", 6)); /* the name is longer than the list */
	WRONG(hello_extension(&e, 16, "\0\0", 2));
	WRONG(hello_alpn(&e, "\3h2"));
	WRONG(hello_extension(&e, 16, "\0\1\0", 3)); /* an empty name */
	WRONG(hello_psk(&e, "ticket", 6), hello_psk(&e, "ticket", 6));
	WRONG(hello_extension(&e, 35, "", 0), hello_extension(&e, 35, "", 0));
	WRONG(hello_extension(&e, 41, "", 0));
	WRONG(hello_extension(&e, 41, "\0", 1));
	WRONG(hello_extension(&e, 41, "\0\0", 2));
	WRONG(hello_extension(&e, 41, "\0\7\0\1t\0\0\0",
			      8)); /* the identities are longer than the extension */
	WRONG(hello_extension(&e, 41, "\0\6\0\1t\0\0\0", 8));  /* half an age */
	WRONG(hello_extension(&e, 41, "\0\6\0\0\0\0\0\0", 8)); /* an empty identity */
	WRONG(hello_extension(&e, 41, "\0\7\0\6ticke", 9));
	WRONG(hello_number(&e, 0, 1));				/* half an extension */
	WRONG(hello_number(&e, 23, 2), hello_number(&e, 1, 2)); /* longer than the message */
#undef WRONG
}

static void test_wrong_message(void **state)
{
	static const struct {
		size_t at;
		uint8_t value;
	} wrong[] = {{0, 23},  {1, 2},	{3, 0x40}, {5, 2},  {6, 2},    {9, 2},
		     {43, 33}, {77, 3}, {77, 1},   {82, 0}, {84, 0xff}};
	struct hello e = large(), whole;
	struct es_tls_hello h;

	(void)state;
	memset(&whole, 0, sizeof(whole));
	hello_finish(&e, 16384, &whole);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		uint8_t before = whole.bytes[wrong[i].at];

		whole.bytes[wrong[i].at] = wrong[i].value;
		if (parse(whole.bytes, whole.len, &h) != ES_TLS_NONE)
			fail_msg("byte %zu = %u was taken", wrong[i].at, wrong[i].value);
		/* As soon as it is there. */
		if (wrong[i].at < 2)
			assert_int_equal(parse(whole.bytes, wrong[i].at + 1, &h), ES_TLS_NONE);
		whole.bytes[wrong[i].at] = before;
	}
	whole.bytes[3] = whole.bytes[4] = 0; /* an empty record */
	assert_int_equal(parse(whole.bytes, whole.len, &h), ES_TLS_NONE);
	assert_int_equal(parse((const uint8_t *)"GET / HTTP/1.1\r\n", 16, &h), ES_TLS_NONE);
}

static void put_ticket(uint8_t *ticket, size_t len, int seed)
{
	for (size_t i = 0; i < len; i++)
		ticket[i] = (uint8_t)(seed + (int)i);
}

/* How tickets begin, in the order of the client, wherever the message is cut; short ones are passed by. */
static void test_tickets(void **state)
{
	struct hello e = large(), list = {.len = 0}, whole;
	uint8_t ticket[210];
	struct es_tls_hello h;

	(void)state;
	put_ticket(ticket, 210, 1);
	hello_extension(&e, 35, ticket, 210);
	hello_number(&list, 3 * (2 + 4) + 31 + 32 + 205, 2);
	for (int i = 0; i < 3; i++) {
		static const size_t lens[] = {31, 32, 205};

		put_ticket(ticket, lens[i], 2 + i);
		hello_number(&list, lens[i], 2);
		hello_put(&list, ticket, lens[i]);
		hello_number(&list, 0xfffffff0, 4);
	}
	hello_put(&list, "\0\41\40binderbinderbinderbinderbinder12", 35);
	hello_extension(&e, 41, list.bytes, list.len);
	hello_finish(&e, 700, &whole);
	check_cuts(&whole);
	assert_int_equal(parse(whole.bytes, whole.len, &h), ES_TLS_DONE);
	assert_int_equal(h.ticket_count, 3);
	for (int i = 0; i < 3; i++) {
		put_ticket(ticket, ES_TLS_TICKET_FRONT, i ? i + 2 : 1);
		assert_memory_equal(h.ticket[i], ticket, ES_TLS_TICKET_FRONT);
	}
}

static void test_many_tickets(void **state)
{
	struct hello e = {.len = 0}, list = {.len = 0}, whole;
	struct es_tls_hello h;
	uint8_t ticket[40];

	(void)state;
	hello_extension(&e, 35, "", 0); /* it has none, and would like one */
	hello_number(&list, 9 * (2 + 40 + 4), 2);
	for (int i = 0; i < 9; i++) {
		put_ticket(ticket, 40, i);
		hello_number(&list, 40, 2);
		hello_put(&list, ticket, 40);
		hello_number(&list, 0, 4);
	}
	hello_extension(&e, 41, list.bytes, list.len);
	hello_finish(&e, 16384, &whole);
	assert_int_equal(parse(whole.bytes, whole.len, &h), ES_TLS_DONE);
	assert_int_equal(h.ticket_count, ES_TLS_TICKETS_MAX);
	assert_int_equal(h.ticket[3][0], 3);
}

/* A long list is cut after a whole name. */
static void test_long_alpn(void **state)
{
	struct hello e = {.len = 0}, whole;
	struct es_tls_hello h;
	char list[901];
	size_t len, n = 0;

	(void)state;
	for (size_t i = 0; i < 900; i += 9)
		memcpy(list + i, "\10protocol", 10);
	hello_alpn(&e, list);
	hello_finish(&e, 16384, &whole);
	assert_int_equal(parse(whole.bytes, whole.len, &h), ES_TLS_DONE);
	while (es_tls_hello_alpn(&h, (unsigned int)n, &len)) {
		assert_int_equal(len, 8);
		n++;
	}
	assert_int_equal(n, ES_TLS_ALPN_MAX / 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_cut),	 cmocka_unit_test(test_records),
		cmocka_unit_test(test_more_behind),	 cmocka_unit_test(test_without),
		cmocka_unit_test(test_wrong_extensions), cmocka_unit_test(test_wrong_message),
		cmocka_unit_test(test_long_alpn),	 cmocka_unit_test(test_tickets),
		cmocka_unit_test(test_many_tickets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
