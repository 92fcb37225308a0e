// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kmod/core/message.h: what becomes of a datagram to or from the handover port, step by step, and what an
 * answer's header says.
 */
#include <string.h>

#include "cmocka_all.h"
#include "kmod/core/message.h"

#define SELF   2
#define OTHER  1
#define LEN    140
#define WALL_S 1800000000ULL

static struct es_handover message(__u8 kind)
{
	struct es_handover h = {
		.magic = es_htonl(ES_HANDOVER_MAGIC),
		.version = ES_HANDOVER_VERSION,
		.kind = kind,
		.source = OTHER,
		.target = SELF,
		.packet_len = es_htons(LEN),
	};

	return h;
}

static struct es_message_envelope envelope(void)
{
	struct es_message_envelope v = {
		.ip_len = 8 + sizeof(struct es_handover) + LEN,
		.udp_len = 8 + sizeof(struct es_handover) + LEN,
	};

	return v;
}

#define UNSET                                                                                                \
	{                                                                                                    \
		.action = 99, .counter = 9999                                                                \
	}

#define EXPECT_ENVELOPE(v, h, a, c)                                                                          \
	do {                                                                                                 \
		struct es_message_verdict got = UNSET;                                                       \
		es_decide_envelope(v, h, SELF, &got);                                                        \
		assert_int_equal(got.action, a);                                                             \
		assert_int_equal(got.counter, c);                                                            \
	} while (0)

#define EXPECT_MALFORMED(v, h) EXPECT_ENVELOPE(v, h, ES_MESSAGE_REFUSE, ES_COUNT_handover_malformed)

static void test_envelope(void **state)
{
	struct es_handover h = message(ES_HANDOVER_REQUEST);
	struct es_message_envelope v = envelope();

	(void)state;
	EXPECT_ENVELOPE(&v, &h, ES_MESSAGE_GO_ON, ES_COUNTER_COUNT);
	h.target = OTHER;
	EXPECT_ENVELOPE(&v, &h, ES_MESSAGE_REFUSE, ES_COUNT_handover_wrong_target);
	h.target = SELF;
	h.source = ES_NODES_MAX - 1;
	EXPECT_ENVELOPE(&v, &h, ES_MESSAGE_GO_ON, ES_COUNTER_COUNT);
	h.source = ES_NODES_MAX;
	EXPECT_MALFORMED(&v, &h);
	h.target = OTHER;
	/* If a datagram is no message, not even the target means anything. */
	h.version++;
	EXPECT_MALFORMED(&v, &h);
	h = message(ES_HANDOVER_REQUEST);
	h.magic ^= 1;
	EXPECT_MALFORMED(&v, &h);
	/*
	 * Messages between the daemons on this port are theirs, but a datagram too short for a header is not
	 * read as one.
	 */
	h.magic = es_htonl(ES_LOADS_MAGIC);
	EXPECT_ENVELOPE(&v, &h, ES_MESSAGE_PASS, ES_COUNTER_COUNT);
	v.is_partial = 1;
	EXPECT_ENVELOPE(&v, &h, ES_MESSAGE_PASS, ES_COUNTER_COUNT);
	v.is_short = 1;
	EXPECT_ENVELOPE(&v, &h, ES_MESSAGE_REFUSE, ES_COUNT_handover_partial);
}

/* Three lengths say how long it is: each must agree with the others. */
static void test_envelope_lengths(void **state)
{
	struct es_handover h = message(ES_HANDOVER_REQUEST);
	struct es_message_envelope v = envelope();

	(void)state;
	for (int by = -1; by <= 1; by += 2) {
		v = envelope();
		v.ip_len = v.ip_len + (__u32)by;
		EXPECT_MALFORMED(&v, &h);
		v.udp_len = (__u16)(v.udp_len + by);
		EXPECT_MALFORMED(&v, &h);
		h.packet_len = es_htons(LEN + by);
		EXPECT_ENVELOPE(&v, &h, ES_MESSAGE_GO_ON, ES_COUNTER_COUNT);
		v = envelope();
		EXPECT_MALFORMED(&v, &h);
		h.packet_len = es_htons(LEN);
	}
	/* No sum of them wraps. */
	h.packet_len = es_htons(0xffff);
	v.udp_len = (__u16)(8 + sizeof(h) + 0xffff);
	v.ip_len = v.udp_len;
	EXPECT_MALFORMED(&v, &h);
	h = message(ES_HANDOVER_REQUEST);
	v = envelope();
	v.is_short = 1;
	EXPECT_MALFORMED(&v, &h);
	v.is_short = 0;
	v.is_partial = 1;
	EXPECT_ENVELOPE(&v, &h, ES_MESSAGE_REFUSE, ES_COUNT_handover_partial);
}

static void expect_authentic(const struct es_config *cfg, const struct es_handover *h,
			     const struct es_message_moment *at, __u32 counter)
{
	struct es_message_verdict got = UNSET;

	es_decide_authentic(cfg, h, at, &got);
	assert_int_equal(got.counter, counter);
	assert_int_equal(got.action,
			 counter == ES_COUNT_handover_received ? ES_MESSAGE_GO_ON : ES_MESSAGE_REFUSE);
}

/* A stamp of so many seconds after WALL_S. */
static __u32 stamp_at(int seconds)
{
	return (__u32)((WALL_S + (__u64)(__s64)seconds) * 256);
}

static void test_authentic(void **state)
{
	struct es_handover h = message(ES_HANDOVER_REQUEST);
	struct es_config cfg = {.self = SELF};
	struct es_message_moment at = {
		.wall_ns = WALL_S * 1000000000,
		.before_ns = WALL_S * 1000000000,
		.since_ns = ES_HANDOVER_EARLY_NS,
		.own_began = stamp_at(-1),
	};

	(void)state;
	expect_authentic(&cfg, &h, &at, ES_COUNT_handover_received);
	cfg.requires_time = 1;
	expect_authentic(&cfg, &h, &at, ES_COUNT_handover_untimed);
	es_handover_stamp_put(&h, stamp_at(0));
	expect_authentic(&cfg, &h, &at, ES_COUNT_handover_received);
	es_handover_stamp_put(&h, stamp_at(-ES_HANDOVER_LATE_S - 1));
	expect_authentic(&cfg, &h, &at, ES_COUNT_handover_late);
	/* By the clock before it was set, it is timely. */
	at.before_ns -= 30ULL * 1000000000;
	expect_authentic(&cfg, &h, &at, ES_COUNT_handover_received);
	/* It says nothing of the time that it has options which no kernel takes. */
	h.snd_wscale = ES_TCP_WSCALE_MAX + 1;
	es_handover_stamp_put(&h, stamp_at(-1000));
	expect_authentic(&cfg, &h, &at, ES_COUNT_handover_malformed);
}

/*
 * A message that may have been sent before this node's start may have been recorded, unless it is the node's
 * own.
 */
static void test_authentic_early(void **state)
{
	struct es_handover h = message(ES_HANDOVER_REQUEST);
	struct es_config cfg = {.self = SELF};
	struct es_message_moment at = {
		.wall_ns = WALL_S * 1000000000,
		.before_ns = WALL_S * 1000000000,
		.since_ns = 5ULL * 1000000000,
		.own_began = stamp_at(-5),
	};

	(void)state;
	es_handover_stamp_put(&h, stamp_at(-6));
	expect_authentic(&cfg, &h, &at, ES_COUNT_handover_early);
	h.source = SELF;
	expect_authentic(&cfg, &h, &at, ES_COUNT_handover_received);
	h.source = OTHER;
	at.began = stamp_at(-7); /* the sender's clock is slow */
	expect_authentic(&cfg, &h, &at, ES_COUNT_handover_received);
	at.began = 0;
	at.since_ns = ES_HANDOVER_EARLY_NS;
	expect_authentic(&cfg, &h, &at, ES_COUNT_handover_received);
}

static void test_fresh(void **state)
{
	static const struct {
		__u8 kind;
		__u8 nack;
		__u8 is_own;
		__u32 action; /* at the handover port */
		__u32 counter;
	} rows[] = {
		{ES_HANDOVER_REQUEST, 0, 0, ES_MESSAGE_SEGMENT, ES_COUNTER_COUNT},
		{ES_HANDOVER_FOLLOW, 0, 0, ES_MESSAGE_SEGMENT, ES_COUNTER_COUNT},
		{ES_HANDOVER_STRAY, 0, 0, ES_MESSAGE_SEGMENT, ES_COUNTER_COUNT},
		{ES_HANDOVER_STAY, 0, 1, ES_MESSAGE_SEGMENT, ES_COUNTER_COUNT},
		{ES_HANDOVER_END, 0, 1, ES_MESSAGE_SEGMENT, ES_COUNTER_COUNT},
		{ES_HANDOVER_GONE, 0, 1, ES_MESSAGE_SEGMENT, ES_COUNTER_COUNT},
		/* Nobody else ends a node's sockets. */
		{ES_HANDOVER_STAY, 0, 0, ES_MESSAGE_REFUSE, ES_COUNT_handover_malformed},
		{ES_HANDOVER_END, 0, 0, ES_MESSAGE_REFUSE, ES_COUNT_handover_malformed},
		{ES_HANDOVER_GONE, 0, 0, ES_MESSAGE_REFUSE, ES_COUNT_handover_malformed},
		{ES_HANDOVER_PROGRAM, 0, 0, ES_MESSAGE_PROGRAM, ES_COUNTER_COUNT},
		{ES_HANDOVER_ASK, 0, 0, ES_MESSAGE_PROGRAM, ES_COUNTER_COUNT},
		{ES_HANDOVER_CANCEL, 0, 0, ES_MESSAGE_PROGRAM, ES_COUNTER_COUNT},
		{ES_HANDOVER_STRAYS, 0, 0, ES_MESSAGE_STRAYS, ES_COUNTER_COUNT},
		{ES_HANDOVER_STRAYS6, 0, 0, ES_MESSAGE_STRAYS, ES_COUNTER_COUNT},
		{0, 0, 0, ES_MESSAGE_REFUSE, ES_COUNT_handover_malformed},
		{ES_HANDOVER_FATE, 0, 0, ES_MESSAGE_SEGMENT, ES_COUNTER_COUNT},
		{ES_HANDOVER_FATE, 0, 1, ES_MESSAGE_SEGMENT, ES_COUNTER_COUNT},
		{ES_HANDOVER_FATE + 1, 0, 1, ES_MESSAGE_REFUSE, ES_COUNT_handover_malformed},
	};
	struct es_message_verdict got;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct es_handover h = message(rows[i].kind);

		if (rows[i].is_own)
			h.source = SELF;
		es_decide_fresh(&h, 1, SELF, &got);
		assert_int_equal(got.action, rows[i].action);
		assert_int_equal(got.counter, rows[i].counter);
		/* A worker's port takes answers only. */
		es_decide_fresh(&h, 0, SELF, &got);
		assert_int_equal(got.action, ES_MESSAGE_REFUSE);
		assert_int_equal(got.counter, ES_COUNT_handover_malformed);
	}
}

static void test_fresh_answers(void **state)
{
	struct es_handover h = message(ES_HANDOVER_NACK);
	struct es_message_verdict got;

	(void)state;
	for (int is_to_port = 0; is_to_port < 2; is_to_port++) {
		for (int reason = ES_NACK_NO_LISTENER; reason <= ES_NACK_UNKNOWN; reason++) {
			h.kind = ES_HANDOVER_NACK;
			h.nack = (__u8)reason;
			es_decide_fresh(&h, is_to_port, SELF, &got);
			assert_int_equal(got.action, ES_MESSAGE_PASS);
			assert_int_equal(got.counter, reason >= ES_NACK_NOT_HERE && reason <= ES_NACK_STRAYS
							      ? ES_COUNT_stray_answered
						      : reason >= ES_NACK_HEARD
							      ? ES_COUNT_fate_told
							      : ES_COUNT_handover_nack_received);
		}
		h.kind = ES_HANDOVER_ANSWER;
		es_decide_fresh(&h, is_to_port, SELF, &got);
		assert_int_equal(got.action, ES_MESSAGE_PASS);
		assert_int_equal(got.counter, ES_COUNTER_COUNT);
	}
}

/* Whatever changes one of the bytes that matter: it is no client's segment. The others do not matter. */
static void test_packet(void **state)
{
	static const __u8 good[20] = {0x45, 0, 0, LEN, 1, 2, 0x40, 0, 64, 6};
	/* The bits of each byte that must be as they are: not the don't-fragment flag, nor the one unused. */
	static const __u8 matter[20] = {0xff, 0, 0xff, 0xff, 0, 0, 0x3f, 0xff, 0, 0xff};
	__u8 ip[20];

	(void)state;
	assert_true(es_message_packet_ok(good, LEN));
	assert_false(es_message_packet_ok(good, LEN + 0x10000));
	for (unsigned int bit = 0; bit < sizeof(ip) * 8; bit++) {
		memcpy(ip, good, sizeof(ip));
		ip[bit / 8] ^= (__u8)(1 << bit % 8);
		assert_int_equal(es_message_packet_ok(ip, LEN), !(matter[bit / 8] >> bit % 8 & 1));
	}
}

static void test_connections_segment(void **state)
{
	struct es_segment seg = {};

	(void)state;
	for (unsigned int flags = 0; flags < 256; flags++) {
		seg.flags = (__u8)flags;
		assert_int_equal(es_message_is_connections(&seg),
				 (flags & ES_TCP_ACK) && !(flags & (ES_TCP_SYN | ES_TCP_RST | ES_TCP_FIN)));
	}
}

/* An answer says what it was asked, but for what every answer says itself. */
static void test_answer(void **state)
{
	struct es_handover h = message(ES_HANDOVER_REQUEST), before;

	(void)state;
	h.attempt = 3;
	h.epoch = es_htonl(7);
	h.url_key = (__be64)es_cpu_be64(0x1234);
	h.stream = 4;
	h.service = 1;
	es_handover_stamp_put(&h, stamp_at(-10));
	before = h;
	es_message_answer_put(&h, SELF, ES_HANDOVER_NACK, ES_NACK_RETRY, WALL_S * 1000000000 + 999999999, 99);
	assert_int_equal(h.kind, ES_HANDOVER_NACK);
	assert_int_equal(h.nack, ES_NACK_RETRY);
	assert_int_equal(h.source, SELF);
	assert_int_equal(h.target, OTHER);
	assert_int_equal(h.stream, ES_STREAM_DATAPATH);
	assert_int_equal(es_handover_sent(&h), WALL_S & 0xffffff);
	assert_int_equal(es_cpu_be64((__u64)h.sequence), 99);
	before.kind = h.kind;
	before.nack = h.nack;
	before.source = h.source;
	before.target = h.target;
	before.stream = h.stream;
	before.sent_high = h.sent_high;
	before.sent = h.sent;
	before.sequence = h.sequence;
	assert_memory_equal(&h, &before, sizeof(h));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_envelope),  cmocka_unit_test(test_envelope_lengths),
		cmocka_unit_test(test_authentic), cmocka_unit_test(test_authentic_early),
		cmocka_unit_test(test_fresh),	  cmocka_unit_test(test_fresh_answers),
		cmocka_unit_test(test_packet),	  cmocka_unit_test(test_connections_segment),
		cmocka_unit_test(test_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
