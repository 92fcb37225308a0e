// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kmod/core/reply.h: what may leave a node, who is told, and which part of an answer is yet to be read.
 */
#include "cmocka_all.h"
#include "kmod/core/reply.h"

#define LEASE 10000000000ULL /* when it ends */
#define FIRM  9000000000ULL
#define NONE  ES_COUNTER_COUNT

#define ACK ES_TCP_ACK
#define FIN (ES_TCP_ACK | ES_TCP_FIN)
#define RST (ES_TCP_ACK | ES_TCP_RST)

struct row {
	const char *what;
	struct es_reply_view view;
	__u32 action;
	__u32 counter;
	__u8 acknowledges;
};

static const struct row rows[] = {
	{"without membership", {.now_ns = LEASE, .unproven = 1, .flags = ACK}, ES_REPLY_LEAVES, NONE, 0},
	{"an answer, while the lease holds",
	 {FIRM + 1, LEASE, FIRM, .len = 100, .flags = ACK, .unproven = 1},
	 ES_REPLY_LEAVES,
	 NONE,
	 0},
	{"the end, while the lease holds",
	 {FIRM + 1, LEASE, FIRM, .flags = FIN, .unproven = 1},
	 ES_REPLY_LEAVES,
	 NONE,
	 0},
	{"a RST, while the lease holds",
	 {FIRM + 1, LEASE, FIRM, .flags = RST, .unproven = 1},
	 ES_REPLY_LEAVES,
	 NONE,
	 0},
	{"an acknowledgement, long before its end",
	 {FIRM - 1, LEASE, FIRM, .flags = ACK, .unproven = 1},
	 ES_REPLY_LEAVES,
	 NONE,
	 1},
	{"an acknowledgement, shortly before its end",
	 {FIRM, LEASE, FIRM, .flags = ACK, .unproven = 1},
	 ES_REPLY_STAYS,
	 ES_COUNT_reply_unsure,
	 0},
	{"one that its client has had before",
	 {FIRM, LEASE, FIRM, .flags = ACK, .unproven = 1, .acknowledged = 1},
	 ES_REPLY_STAYS,
	 ES_COUNT_reply_unsure,
	 0},
	{"of a proven connection", {FIRM, LEASE, FIRM, .flags = ACK}, ES_REPLY_LEAVES, NONE, 0},
	{"an answer, behind its end",
	 {LEASE, LEASE, FIRM, .len = 100, .flags = ACK, .unproven = 1},
	 ES_REPLY_STAYS,
	 ES_COUNT_reply_silent,
	 0},
	{"an acknowledgement, behind its end",
	 {LEASE, LEASE, FIRM, .flags = ACK, .unproven = 1},
	 ES_REPLY_STAYS,
	 ES_COUNT_reply_silent,
	 0},
	{"a RST that its client does not wait for",
	 {LEASE, LEASE, FIRM, .flags = RST, .unproven = 1},
	 ES_REPLY_STAYS,
	 ES_COUNT_reply_silent,
	 0},
	{"an answer for a client that waits",
	 {LEASE, LEASE, FIRM, .len = 100, .flags = ACK, .unproven = 1, .acknowledged = 1},
	 ES_REPLY_STAYS,
	 ES_COUNT_reply_silent,
	 0},
	{"and still a moment before it is told",
	 {LEASE + ES_REPLY_TELL_NS - 1, LEASE, FIRM, .len = 100, .flags = ACK, .unproven = 1,
	  .acknowledged = 1},
	 ES_REPLY_STAYS,
	 ES_COUNT_reply_silent,
	 0},
	{"then it is told",
	 {LEASE + ES_REPLY_TELL_NS, LEASE, FIRM, .len = 100, .flags = ACK, .unproven = 1, .acknowledged = 1},
	 ES_REPLY_TELLS,
	 NONE,
	 0},
	{"a RST for a client that waits",
	 {LEASE, LEASE, FIRM, .flags = RST, .unproven = 1, .acknowledged = 1},
	 ES_REPLY_TELLS,
	 NONE,
	 0},
	{"of a proven connection, behind its end",
	 {LEASE + ES_REPLY_TELL_NS, LEASE, FIRM, .len = 100, .flags = ACK, .acknowledged = 1},
	 ES_REPLY_LEAVES,
	 NONE,
	 0},
};

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct es_reply_verdict got = {.action = 99, .counter = 99, .acknowledges = 99};

		es_decide_reply(&rows[i].view, &got);
		if (got.action != rows[i].action || got.counter != rows[i].counter ||
		    got.acknowledges != rows[i].acknowledges)
			fail_msg("%s: expected action %u, counter %u, acknowledges %u; got %u, %u, %u",
				 rows[i].what, rows[i].action, rows[i].counter, rows[i].acknowledges,
				 got.action, got.counter, got.acknowledges);
	}
}

/* A datapath that does not ask whether a connection is proven, where it need not, misses nothing. */
static void test_needs_proof(void **state)
{
	static const __u64 nows[] = {FIRM - 1, FIRM, LEASE - 1, LEASE, LEASE + ES_REPLY_TELL_NS};

	(void)state;
	for (unsigned int i = 0; i < 5 * 2 * 2 * 256; i++) {
		struct es_reply_view view = {
			.now_ns = nows[i / 1024],
			.lease_ns = i / 512 % 2 ? LEASE : 0,
			.firm_ns = FIRM,
			.len = i / 256 % 2,
			.flags = (__u8)i,
			.unproven = 1,
			.acknowledged = 1,
		};
		struct es_reply_verdict got;

		es_decide_reply(&view, &got);
		if (es_reply_needs_proof(&view))
			assert_true(got.action != ES_REPLY_LEAVES || got.acknowledges);
		else
			assert_true(got.action == ES_REPLY_LEAVES && got.counter == NONE &&
				    !got.acknowledges);
	}
}

static void test_bare(void **state)
{
	(void)state;
	assert_true(es_reply_is_bare(0, ACK));
	assert_true(es_reply_is_bare(0, ACK | ES_TCP_PSH | ES_TCP_ECE));
	assert_false(es_reply_is_bare(1, ACK));
	assert_false(es_reply_is_bare(0, FIN));
	assert_false(es_reply_is_bare(0, RST));
	assert_false(es_reply_is_bare(0, ACK | ES_TCP_SYN));
}

static void test_lease(void **state)
{
	(void)state;
	assert_false(es_lease_is_over(0, LEASE));
	assert_false(es_lease_is_over(LEASE, LEASE - 1));
	assert_true(es_lease_is_over(LEASE, LEASE));
	assert_false(es_lease_refuses(0, 0, LEASE));
	assert_true(es_lease_refuses(LEASE, 0, LEASE - 1));
	assert_false(es_lease_refuses(LEASE, 1, LEASE - 1));
	assert_true(es_lease_refuses(LEASE, 1, LEASE));
}

static void test_resets(void **state)
{
	__u32 seq[2];

	(void)state;
	assert_int_equal(es_reply_resets(7, 7, seq), 1);
	assert_int_equal(seq[0], 7);
	assert_int_equal(es_reply_resets(0xffffff00u, 100, seq), 2);
	assert_int_equal(seq[0], 0xffffff00u);
	assert_int_equal(seq[1], 100);
}

/* Where reading goes on: @response_seq is where it stopped. */
static void test_unread(void **state)
{
	static const struct {
		const char *what;
		__u32 response_seq, snd_una, from;
		enum es_pin pin;
	} table[] = {
		{"the next bytes", 1000, 1000, 0, ES_PIN_none},
		{"some of it again", 1040, 1000, 40, ES_PIN_none},
		{"all of it again", 1100, 1000, 100, ES_PIN_none},
		{"something older again", 5000, 5000, 100, ES_PIN_none},
		{"bytes before it are yet to come", 900, 900, 100, ES_PIN_none},
		{"the client has bytes before it that were not seen", 900, 901, 100, ES_PIN_response_unclear},
	};
	const struct es_segment seg = {.seq = 1000, .len = 100};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct es_track t = {.response_seq = table[i].response_seq};
		__u8 pin = ES_PIN_none;
		__u32 from = es_reply_unread(&t, &seg, table[i].snd_una, &pin);

		if (from != table[i].from || pin != table[i].pin)
			fail_msg("%s: expected byte %u and pin %d, got %u and %u", table[i].what,
				 table[i].from, table[i].pin, from, pin);
	}
}

static void test_read(void **state)
{
	struct es_track t = {
		.response = {.phase = ES_RESPONSE_DONE, .status = 206, .began = es_track_tick(1000000000)},
		.response_seq = 1040,
		.response_bytes = 40,
		.request_flags = ES_REQUEST_F_MEASURE | ES_REQUEST_F_HEAD,
		.url_key = 77,
		.service = 3,
	};
	const struct es_segment seg = {.seq = 1000, .len = 100};
	struct es_response_entry entry;

	(void)state;
	assert_int_equal(es_reply_read(&t, &seg, 40), 1);
	assert_int_equal(t.response_seq, 1100);
	es_reply_entry(&t, 1000000000 + 2500000, &entry);
	assert_in_range(entry.took_ns, 2500000 - 16384, 2500000 + 16384);
	assert_int_equal(entry.url_key, 77);
	assert_int_equal(entry.bytes, 100);
	assert_int_equal(entry.status, 206);
	assert_int_equal(entry.service, 3);
	assert_int_equal(entry.request_flags, ES_REQUEST_F_HEAD);
	assert_int_equal(es_reply_read(&t, &seg, 100), 0); /* measured once */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),   cmocka_unit_test(test_needs_proof),
		cmocka_unit_test(test_bare),   cmocka_unit_test(test_lease),
		cmocka_unit_test(test_resets), cmocka_unit_test(test_unread),
		cmocka_unit_test(test_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
