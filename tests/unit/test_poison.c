// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Marks, what is made of them, what is remembered, and the message that tells it.
 */
#include "tests/unit/cmocka_all.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "inspector/inspect/poison.h"

#define S      1000000000ULL
#define NOW_NS (5000 * S)
#define WALL   (1700000000ULL * S)

static const struct es_sipkey ring = {.k0 = 1, .k1 = 2};
static struct es_keys keys = {.count = 2, .key = {{.handover = {.k0 = 3}}, {.handover = {.k0 = 4}}}};
static struct es_poisons poisons;
static const uint8_t client_v6[16] = {0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7};
static int is_v6;

static int setup(void **state)
{
	(void)state;
	is_v6 = 0;
	memset(&poisons, 0, sizeof(poisons));
	return 0;
}

static int setup_v6(void **state)
{
	setup(state);
	is_v6 = 1;
	return 0;
}

/* A packet of 198.51.100.7:40000, or of 2001:db8::7, with @options bytes of TCP options. */
static size_t packet_make(const char *payload, unsigned int options, uint8_t *packet)
{
	size_t len = strlen(payload), ip_len = is_v6 ? 40 : 20;

	memset(packet, 0, 60 + options);
	if (is_v6) {
		packet[0] = 0x60;
		packet[6] = 6;
		memcpy(packet + 8, client_v6, 16);
	} else {
		packet[0] = 0x45;
		packet[9] = 6;
		memcpy(packet + 12, (const uint8_t[]){198, 51, 100, 7}, 4);
	}
	packet[ip_len] = 40000 >> 8;
	packet[ip_len + 1] = 40000 & 0xff;
	packet[ip_len + 12] = (uint8_t)((20 + options) / 4 << 4);
	for (size_t i = 0; i < len; i++)
		packet[ip_len + 20 + options + i] = (uint8_t)payload[i];
	return ip_len + 20 + options + len;
}

static __u64 request_of(const char *payload, unsigned int options)
{
	uint8_t packet[4096];

	return es_poison_request(&ring, packet, packet_make(payload, options, packet));
}

static void test_request(void **state)
{
	char text[1500];

	(void)state;
	assert_int_equal(request_of("GET / HTTP/1.1\r\n\r\n", 0), request_of("GET / HTTP/1.1\r\n\r\n", 12));
	assert_int_not_equal(request_of("GET / HTTP/1.1\r\n\r\n", 0),
			     request_of("GET /a HTTP/1.1\r\n\r\n", 0));
	assert_int_equal(request_of("", 0), 0);
	/* However it is cut: only the first bytes count. */
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	assert_int_equal(request_of(text, 0), request_of(text + 100, 12));
	assert_int_not_equal(request_of(text, 0),
			     request_of(text + sizeof(text) - 1 - ES_POISON_REQUEST_BYTES + 1, 0));
	/* Bytes that are no TCP packet at all do no harm. */
	assert_int_equal(es_poison_request(&ring, (const uint8_t *)text, 0), 0);
	assert_int_equal(es_poison_request(&ring, (const uint8_t *)text, 39), 0);
}

static void test_mark(void **state)
{
	static struct es_mark mark;
	struct es_poison poison;
	uint8_t packet[4096];
	char text[2000];
	size_t len;

	(void)state;
	memset(&mark, 0, sizeof(mark));
	memset(text, 'y', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	len = packet_make(text, 40, packet);
	assert_int_equal(es_poison_of_mark(&mark, &ring, &poison), -ENOENT);
	es_mark_set(&mark, 77, 3, packet, len);
	assert_int_equal(es_poison_of_mark(&mark, &ring, &poison), 0);
	assert_int_equal(poison.flow_hash, 77);
	assert_int_equal(poison.service, 3);
	assert_int_equal(poison.request, es_poison_request(&ring, packet, len));
	if (is_v6)
		assert_memory_equal(&poison.client, client_v6, 16);
	else
		assert_int_equal(poison.client.w[3], inet_addr("198.51.100.7"));
	assert_int_equal(poison.client_port, htons(40000));
	es_mark_clear(&mark);
	assert_int_equal(es_poison_of_mark(&mark, &ring, &poison), -ENOENT);
	/* Its number is another each time, and never that of an idle worker. */
	mark.count = UINT32_MAX - 1;
	es_mark_set(&mark, 77, 3, packet, len);
	assert_int_equal(mark.busy, UINT32_MAX);
	es_mark_set(&mark, 77, 3, packet, len);
	assert_int_equal(mark.busy, 1);
	/* The TCP header is not among the bytes that are kept: its connection is known all the same. */
	packet[0] = 0x60;
	packet[6] = 60;
	packet[41] = 255;
	es_mark_set(&mark, 77, 3, packet, len);
	assert_int_equal(es_poison_of_mark(&mark, &ring, &poison), 0);
	assert_true(poison.flow_hash == 77 && poison.service == 3 && !poison.request && !poison.client_port);
	/* A question of the operator has no packet, and is nobody's request. */
	es_mark_set(&mark, 77, 3, packet, 0);
	assert_int_equal(es_poison_of_mark(&mark, &ring, &poison), -ENOENT);
	/* A worker without one. */
	es_mark_set(NULL, 77, 3, packet, len);
	es_mark_clear(NULL);
}

static struct es_poison poison_of(__u64 flow, __u64 request)
{
	return (struct es_poison){.flow_hash = flow, .request = request};
}

static int note(__u64 flow, __u64 request, unsigned long long now_ns)
{
	struct es_poison poison = poison_of(flow, request);

	return es_poison_note(&poisons, &poison, now_ns);
}

static void test_note(void **state)
{
	(void)state;
	assert_null(es_poison_find(&poisons, 1, 10, NOW_NS));
	assert_int_equal(note(1, 10, NOW_NS), 1);
	assert_int_equal(note(1, 10, NOW_NS + S), 0);
	assert_non_null(es_poison_find(&poisons, 1, 99, NOW_NS)); /* the connection */
	assert_non_null(es_poison_find(&poisons, 2, 10, NOW_NS)); /* another one, the same bytes */
	assert_null(es_poison_find(&poisons, 2, 11, NOW_NS));
	assert_null(es_poison_find(&poisons, 2, 0, NOW_NS)); /* no bytes are no reason */
	assert_null(es_poison_find(&poisons, 1, 10, NOW_NS + ES_POISON_HOLD_NS));
	assert_int_equal(poisons.until_ns, NOW_NS + ES_POISON_HOLD_NS);
}

/* The list of poisons never grows: the oldest goes. */
static void test_bound(void **state)
{
	(void)state;
	for (unsigned int i = 0; i <= ES_POISONS; i++)
		assert_int_equal(note(i + 1, i + 1, NOW_NS + i), 1);
	assert_null(es_poison_find(&poisons, 1, 1, NOW_NS + S));
	for (unsigned int i = 1; i <= ES_POISONS; i++)
		assert_non_null(es_poison_find(&poisons, i + 1, 0, NOW_NS + S));
}

static void test_storm(void **state)
{
	(void)state;
	for (unsigned int i = 1; i < ES_POISON_STORM; i++)
		note(i, i, NOW_NS);
	for (unsigned int i = 0; i < 10; i++)
		note(1, 1, NOW_NS); /* told again and again */
	assert_int_equal(poisons.storm_until_ns, 0);
	note(100, 100, NOW_NS + ES_POISON_STORM_NS);
	assert_int_equal(poisons.storm_until_ns, 0); /* the others are long ago */
	for (unsigned int i = 1; i < ES_POISON_STORM; i++)
		note(100 + i, 100 + i, NOW_NS + ES_POISON_STORM_NS + S);
	assert_int_equal(poisons.storm_until_ns, NOW_NS + 2 * ES_POISON_STORM_NS + S);
}

/*
 * The daemon hung, and goes on: that is no reason to be without inspection for an hour. A poison whose daemon
 * died stays.
 */
static void test_forget(void **state)
{
	struct es_poison hung = poison_of(1, 10), died = poison_of(2, 20);

	(void)state;
	hung.kind = ES_POISON_HUNG;
	hung.node = died.node = 1;
	es_poison_note(&poisons, &hung, NOW_NS);
	es_poison_note(&poisons, &died, NOW_NS);
	note(3, 30, NOW_NS);
	assert_int_not_equal(poisons.storm_until_ns, 0);
	hung.kind = died.kind = ES_POISON_OVER;
	hung.node = 2; /* another's word */
	es_poison_forget(&poisons, &hung, NOW_NS);
	assert_non_null(es_poison_find(&poisons, 1, 10, NOW_NS));
	hung.node = 1;
	es_poison_forget(&poisons, &hung, NOW_NS);
	es_poison_forget(&poisons, &died, NOW_NS);
	assert_null(es_poison_find(&poisons, 1, 10, NOW_NS));
	assert_non_null(es_poison_find(&poisons, 2, 20, NOW_NS));
	assert_int_equal(poisons.storm_until_ns, 0);
}

static int read_as(unsigned int self, const struct es_poison_message *message, unsigned long long wall_ns)
{
	struct es_poison poison;

	return es_poison_message_read(message, sizeof(*message), self, 3, &keys, wall_ns, &poison);
}

static void test_message(void **state)
{
	struct es_poison sent = poison_of(0x1122334455667788ULL, 0x99), got;
	struct es_poison_message message = {};

	(void)state;
	sent.client = es_addr_from_v4(inet_addr("198.51.100.7"));
	sent.client_port = htons(40000);
	sent.service = 5;
	sent.kind = ES_POISON_HUNG;
	for (unsigned int i = 0; i < keys.count; i++) {
		es_poison_message_make(&sent, 1, &keys.key[i].handover, WALL, &message);
		assert_int_equal(
			es_poison_message_read(&message, sizeof(message), 2, 3, &keys, WALL + S, &got), 0);
		assert_int_equal(got.node, 1);
		got.node = 0;
		assert_memory_equal(&got, &sent, sizeof(got));
	}
	assert_int_equal(read_as(1, &message, WALL), -EBADMSG); /* one's own */
	assert_int_equal(read_as(2, &message, WALL + 119 * S), 0);
	assert_int_equal(read_as(2, &message, WALL - 119 * S), 0);
	assert_int_equal(read_as(2, &message, WALL + 121 * S), -EBADMSG);
	assert_int_equal(read_as(2, &message, WALL - 121 * S), -EBADMSG);
	assert_int_equal(es_poison_message_read(&message, sizeof(message) - 1, 2, 3, &keys, WALL, &got),
			 -EBADMSG);
	for (size_t bit = 0; bit < sizeof(message) * 8; bit++) {
		((uint8_t *)&message)[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(read_as(2, &message, WALL), -EBADMSG);
		((uint8_t *)&message)[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	es_poison_message_make(&sent, 3, &keys.key[0].handover, WALL, &message);
	assert_int_equal(read_as(2, &message, WALL), -EBADMSG); /* there are nodes 0 to 2 */
}

#define TEST(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		{"test_request (IPv6)", test_request, setup_v6, NULL, NULL},
		{"test_mark (IPv6)", test_mark, setup_v6, NULL, NULL},
		TEST(test_request),
		TEST(test_mark),
		TEST(test_note),
		TEST(test_bound),
		TEST(test_storm),
		TEST(test_forget),
		TEST(test_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
