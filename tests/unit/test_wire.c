// SPDX-License-Identifier: GPL-2.0-or-later
/* Messages of the bus: there and back, and what is none of them. */
#include "cmocka_all.h"
#include <stdlib.h>
#include <string.h>
#include "membership/node_state.h"
#include "membership/wire.h"

static void test_hello(void **state)
{
	struct es_wire_hello hello = {.epoch = 7, .served = 6, .in_ring = 1, .state = 2, .weight = 1000},
			     back;
	char buf[sizeof(hello) + 2]; /* its settings have a length, and no NUL */
	size_t len;

	(void)state;
	strcpy(hello.name, "n1");
	memset(hello.settings, 'x', sizeof(hello.settings) - 1);
	len = es_wire_put_hello(buf, sizeof(buf), &hello);
	assert_int_equal(len, 12 + ES_WIRE_NAME_SIZE + 2 + ES_WIRE_SETTINGS_SIZE - 1);
	assert_int_equal(es_wire_get_hello(buf, len, &back), 0);
	assert_memory_equal(&hello, &back, sizeof(hello));
	for (size_t i = 0; i < len; i += 97)
		assert_int_not_equal(es_wire_get_hello(buf, i, &back), 0);
	memset(buf + 12, 'n', ES_WIRE_NAME_SIZE); /* a name without an end */
	assert_int_not_equal(es_wire_get_hello(buf, len, &back), 0);
}

static void test_proofs(void **state)
{
	static struct es_wire_proof proofs[ES_WIRE_PROOFS_MAX + 1], back[ES_WIRE_PROOFS_MAX];
	static char buf[sizeof(proofs) + 8];
	uint32_t epoch;
	size_t count, len;

	(void)state;
	for (uint32_t i = 0; i <= ES_WIRE_PROOFS_MAX; i++)
		proofs[i] = (struct es_wire_proof){0x0123456789abcdefULL + i, i, ~i};
	len = es_wire_put_proofs(buf, sizeof(buf), 9, proofs, ES_WIRE_PROOFS_MAX);
	assert_int_equal(es_wire_get_proofs(buf, len, &epoch, back, &count), 0);
	assert_true(epoch == 9 && count == ES_WIRE_PROOFS_MAX && !memcmp(proofs, back, sizeof(back)));
	assert_int_not_equal(es_wire_get_proofs(buf, len - 1, &epoch, back, &count), 0);
	len = es_wire_put_proofs(buf, sizeof(buf), 9, proofs, ES_WIRE_PROOFS_MAX + 1);
	assert_int_not_equal(es_wire_get_proofs(buf, len, &epoch, back, &count), 0);
	assert_int_equal(es_wire_put_proofs(buf, 20, 9, proofs, 2), 0);
}

static void test_small_ones(void **state)
{
	struct es_wire_change change = {.node = 300, .what = ES_WIRE_CHANGE_WEIGHT, .value = 999}, change2;
	struct es_wire_load load = {.sent_ns = 1ULL << 50,
				    .connections = 70000,
				    .cpu = 1000,
				    .queue = 3,
				    .state = 1},
			    load2;
	struct es_wire_by_hand by_hand = {.node = 3,
					  .what = ES_WIRE_CHANGE_STATE,
					  .until_restart = 1,
					  .value = ES_NODE_DRAINING,
					  .for_s = 70000,
					  .set_ms = 1ULL << 41,
					  .until_ms = 5,
					  .who = "alice@n1",
					  .why = "disk"},
			       by_hand2;
	uint8_t word[ES_WIRE_BY_HAND_SIZE];
	struct es_wire_suspect suspect = {1, 0xffffffff}, suspect2;
	struct es_wire_stopped stopped = {77, 1000, 60000}, stopped2;
	char buf[64];

	(void)state;
	memset(&change2, 0, sizeof(change2));
	memset(&load2, 0, sizeof(load2));
	assert_int_equal(es_wire_get_change(buf, es_wire_put_change(buf, sizeof(buf), &change), &change2), 0);
	assert_true(change2.node == 300 && change2.what == change.what && change2.value == 999);
	assert_int_equal(es_wire_get_load(buf, es_wire_put_load(buf, sizeof(buf), &load), &load2), 0);
	assert_true(load2.sent_ns == load.sent_ns && load2.connections == 70000 && load2.cpu == 1000 &&
		    load2.queue == 3 && load2.state == 1);
	assert_int_equal(es_wire_put_by_hand(word, sizeof(word) - 1, &by_hand), 0);
	assert_int_equal(es_wire_put_by_hand(word, sizeof(word), &by_hand), sizeof(word));
	assert_int_equal(es_wire_get_by_hand(word, sizeof(word), &by_hand2), 0);
	assert_true(by_hand2.node == 3 && by_hand2.what == ES_WIRE_CHANGE_STATE && by_hand2.until_restart &&
		    by_hand2.value == ES_NODE_DRAINING && by_hand2.for_s == 70000 &&
		    by_hand2.set_ms == 1ULL << 41 && by_hand2.until_ms == 5);
	assert_string_equal(by_hand2.who, "alice@n1");
	assert_string_equal(by_hand2.why, "disk");
	assert_int_not_equal(es_wire_get_by_hand(word, sizeof(word) - 1, &by_hand2), 0);
	word[sizeof(word) - 1] = 'x';
	memset(word + 26, 'x', ES_WIRE_WHO_SIZE); /* text without an end */
	assert_int_not_equal(es_wire_get_by_hand(word, sizeof(word), &by_hand2), 0);
	assert_int_equal(es_wire_get_suspect(buf, es_wire_put_suspect(buf, sizeof(buf), &suspect), &suspect2),
			 0);
	assert_memory_equal(&suspect, &suspect2, sizeof(suspect));
	assert_int_equal(es_wire_get_stopped(buf, es_wire_put_stopped(buf, sizeof(buf), &stopped), &stopped2),
			 0);
	assert_memory_equal(&stopped, &stopped2, sizeof(stopped));
	assert_int_not_equal(es_wire_get_stopped(buf, 7, &stopped2), 0);
	/* A node of the version before has no doubts, and reads the first eight bytes only. */
	assert_int_equal(es_wire_get_stopped(buf, 8, &stopped2), 0);
	assert_true(stopped2.epoch == 77 && stopped2.hold_ms == 1000 && stopped2.doubt_ms == 0);
	assert_int_not_equal(es_wire_get_stopped(buf, 11, &stopped2), 0);
}

/*
 * A load may be of an older node, of this version, or of a later one; a message that is cut anywhere else is
 * none.
 */
static void test_load(void **state)
{
	const struct es_wire_load old = {.sent_ns = 1, .connections = 2, .cpu = 3, .queue = 4, .state = 1};
	struct es_wire_load full = old, back;
	char buf[ES_WIRE_LOAD_SIZE + 10] = {};
	size_t short_len, len;

	(void)state;
	full.has_requests = full.is_new = 1;
	full.active = 0x01020304;
	full.load = 0xfffffffe;
	full.mean_us = 1500;
	full.disk = 999;
	full.understands = ES_WIRE_UNDERSTANDS_STRAYS;
	full.trouble = ES_TROUBLE_RP_FILTER;
	full.failing = 0x800000000001ULL;
	short_len = es_wire_put_load(buf, sizeof(buf), &old);
	assert_int_equal(short_len, 17); /* as it always was */
	memset(&back, 0xff, sizeof(back));
	assert_int_equal(es_wire_get_load(buf, short_len, &back), 0);
	assert_true(back.connections == 2 && back.cpu == 3 && back.queue == 4 && back.state == 1);
	assert_true(!back.has_requests && !back.is_new && !back.active && !back.load && !back.mean_us);
	len = es_wire_put_load(buf, ES_WIRE_LOAD_SIZE, &full);
	assert_int_equal(len, ES_WIRE_LOAD_SIZE);
	for (size_t i = 0; i <= sizeof(buf); i++) {
		/* The versions before end six, seven and eight earlier. */
		int is_whole = i == short_len || (i >= len - 8 && i <= len - 6) || i >= len;

		memset(&back, 0x5a, sizeof(back));
		assert_int_equal(es_wire_get_load(buf, i, &back) == 0, is_whole);
		if (!is_whole)
			assert_int_equal(back.active, 0x5a5a5a5a); /* untouched */
		else
			assert_true(back.understands == (i >= len - 7 ? ES_WIRE_UNDERSTANDS_STRAYS : 0) &&
				    back.trouble == (i >= len - 6 ? ES_TROUBLE_RP_FILTER : 0) &&
				    back.failing == (i >= len ? full.failing : 0));
	}
	full.understands = 0;
	assert_int_equal(es_wire_put_load(buf, sizeof(buf), &full), len);
	assert_int_equal(es_wire_get_load(buf, len, &back), 0);
	assert_true(!back.understands && back.trouble == ES_TROUBLE_RP_FILTER);
	assert_true(back.sent_ns == 1 && back.connections == 2 && back.cpu == 3 && back.state == 1);
	assert_true(back.has_requests && back.is_new && back.active == full.active &&
		    back.load == full.load && back.mean_us == 1500 && back.disk == 999);
	assert_int_equal(es_wire_put_load(buf, len - 1, &full), 0);
}

static void test_datagram(void **state)
{
	char datagram[64];
	const void *payload;
	size_t len = 0, at = 0, payload_len;
	uint8_t type;

	(void)state;
	len = es_wire_append(datagram, sizeof(datagram), len, ES_WIRE_LEAVE, NULL, 0);
	len = es_wire_append(datagram, sizeof(datagram), len, ES_WIRE_LOAD, "12345", 5);
	assert_int_equal(len, 13);
	assert_int_equal(es_wire_append(datagram, sizeof(datagram), len, ES_WIRE_LOAD, datagram, 48), 0);
	assert_int_equal(es_wire_next(datagram, len, &at, &type, &payload, &payload_len), 1);
	assert_true(type == ES_WIRE_LEAVE && payload_len == 0);
	assert_int_equal(es_wire_next(datagram, len, &at, &type, &payload, &payload_len), 1);
	assert_true(type == ES_WIRE_LOAD && payload_len == 5 && !memcmp(payload, "12345", 5));
	assert_int_equal(es_wire_next(datagram, len, &at, &type, &payload, &payload_len), 0);
	at = 4;
	assert_true(es_wire_next(datagram, len - 1, &at, &type, &payload, &payload_len) < 0);
	at = 12;
	assert_true(es_wire_next(datagram, len, &at, &type, &payload, &payload_len) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hello),	   cmocka_unit_test(test_proofs),
		cmocka_unit_test(test_small_ones), cmocka_unit_test(test_load),
		cmocka_unit_test(test_datagram),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
