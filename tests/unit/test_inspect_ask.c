// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Heads that are longer than what a client sends before it hears something: it is asked for more, as long as
 * it understands that. Without a raw socket here, a question counts as send_failed.
 */
#include "cmocka_all.h"
#include <stdio.h>
#include "tests/unit/inspect_world.h"

#define UNHEARD 10 /* segments that a client sends then (RFC 6928) */
#define LEN	200u
#define SACK_OK (1u << 16) /* in the cookie, see kmod/core/cookie.h */

static char head[4000];
static uint32_t head_len;
static uint32_t cookie;

/* A head of @segments segments and a bit. */
static void head_make(unsigned int segments)
{
	int len = snprintf(head, sizeof(head), "GET / HTTP/1.1\r\nHost: x\r\nA: ");

	while ((unsigned int)len < segments * LEN)
		head[len++] = 'a';
	head_len = (uint32_t)(len + snprintf(head + len, sizeof(head) - (size_t)len, "\r\n\r\n"));
}

/* The segment number @n of the head, on a connection that agreed on @cookie. */
static void send_segment(unsigned int number, unsigned int n)
{
	uint32_t at = n * LEN, len = head_len - at < LEN ? head_len - at : LEN, ack = htonl(cookie + 1);
	uint8_t bytes[1500];
	char text[LEN + 1] = "";
	struct es_record record;

	memcpy(text, head + at, len);
	record = segment(number, at, text, bytes);
	memcpy(bytes + tcp_at() + 8, &ack, sizeof(ack));
	record.flow = ES_FLOW_NEW;
	es_inspect_record(&in, &record, bytes);
	es_handover_flush(in.sender);
}

static unsigned int segments_sent(void)
{
	struct message m;
	unsigned int count = 0;

	while (sent_to(&m) >= 0)
		count++;
	return count;
}

static void test_asked(void **state)
{
	unsigned int number = flow_find(1, 1), n;

	(void)state;
	cookie = COOKIE | SACK_OK;
	head_make(15);
	for (n = 0; n < UNHEARD - 1; n++)
		send_segment(number, n);
	assert_int_equal(COUNT(send_failed), 0); /* it has not sent all yet */
	send_segment(number, n++);
	assert_int_equal(COUNT(send_failed), 1);
	/* It repeats the first one, which it takes for lost: no reason to decide without the rest. */
	send_segment(number, 0);
	assert_int_equal(COUNT(send_failed), 2);
	assert_int_equal(es_gather_count(in.gathers), 1);
	for (; n < 15; n++)
		send_segment(number, n);
	assert_int_equal(segments_sent(), 0);
	assert_int_equal(COUNT(send_failed), 2 + 5); /* each lets it send as much again */
	send_segment(number, n);
	assert_int_equal(segments_sent(), 16);
	assert_int_equal(COUNT(requests), 1);
	assert_int_equal(COUNT(ambiguous), 0);
	assert_int_equal(COUNT(gather_asked), 1);
	assert_int_equal(COUNT(gather_full) + COUNT(gather_timeout), 0);
}

/*
 * A client that writes slowly repeats its last segment, but may send more: told of a gap, it would send less.
 */
static void test_not_asked_when_it_repeats_its_last(void **state)
{
	unsigned int number = flow_find(1, 1);

	(void)state;
	cookie = COOKIE | SACK_OK;
	head_make(5);
	for (unsigned int n = 0; n < 4; n++)
		send_segment(number, n);
	send_segment(number, 3);
	assert_int_equal(segments_sent(), 0);
	send_segment(number, 4);
	send_segment(number, 5);
	assert_int_equal(segments_sent(), 6);
	assert_int_equal(COUNT(gather_asked) + COUNT(gather_timeout), 0);
}

/* Nothing else can be asked for: what is there decides, and it is counted. */
static void test_no_sack(void **state)
{
	unsigned int number = flow_find(1, 1);

	(void)state;
	cookie = COOKIE;
	head_make(15);
	for (unsigned int n = 0; n < UNHEARD; n++) {
		assert_int_equal(segments_sent(), 0);
		send_segment(number, n);
	}
	assert_int_equal(segments_sent(), UNHEARD);
	assert_int_equal(COUNT(gather_asked) + COUNT(send_failed), 0);
	assert_int_equal(COUNT(gather_full), 1);
	assert_int_equal(COUNT(gather_timeout), 1);
	assert_int_equal(COUNT(ambiguous), 1);
}

/* The client does not send more although it was asked. */
static void test_asked_in_vain(void **state)
{
	unsigned int number = flow_find(1, 1);

	(void)state;
	cookie = COOKIE | SACK_OK;
	head_make(15);
	for (unsigned int n = 0; n < UNHEARD; n++)
		send_segment(number, n);
	in.now_ns += 201000000;
	es_inspect_deadlines(&in);
	es_handover_flush(in.sender);
	assert_int_equal(segments_sent(), UNHEARD);
	assert_int_equal(COUNT(gather_timeout), 1);
	assert_int_equal(COUNT(gather_full), 0);
}

/* More than gather_bytes, which are 4,096 here, is asked of nobody. */
static void test_gather_bytes(void **state)
{
	unsigned int number = flow_find(1, 1);

	(void)state;
	cookie = COOKIE | SACK_OK;
	head_make(19);
	es_gather_table_free(&in.gathers);
	assert_int_equal(es_gather_table_new(16, 15 * LEN, &in.gathers), 0);
	for (unsigned int n = 0; n < 15; n++)
		send_segment(number, n);
	assert_int_equal(segments_sent(), 0);
	send_segment(number, 15);
	assert_int_equal(segments_sent(), 15);
	assert_int_equal(COUNT(gather_full), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_asked),	 TEST(test_not_asked_when_it_repeats_its_last),
		TEST(test_no_sack),	 TEST(test_asked_in_vain),
		TEST(test_gather_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
