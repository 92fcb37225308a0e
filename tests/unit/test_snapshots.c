// SPDX-License-Identifier: GPL-2.0-or-later
/* The texts that nodes tell each other of themselves: parts become the text again, and nothing else does. */
#include "cmocka_all.h"
#include <errno.h>
#include <string.h>
#include "inspector/peers/snapshots.h"

static const struct es_keys keys = {.count = 1, .key = {{.handover = {.k0 = 1, .k1 = 2}}}};
static const struct es_keys others = {.count = 1, .key = {{.handover = {.k0 = 1, .k1 = 3}}}};
static char text[ES_SNAPSHOT_HISTORY_MAX];
static struct es_snapshot_inbox inbox;

static void setup_text(void)
{
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)('a' + i % 23);
	memset(&inbox, 0, sizeof(inbox));
}

/* Part @part of @len bytes, from node 1 to node 0, as it arrives. */
static int receive(unsigned long long number, size_t len, unsigned int part)
{
	struct es_snapshot_message sent, received;
	size_t size = es_snapshot_part(&sent, 1, 0, number, text, len, part, &keys.key[0].handover);

	assert_true(size > 0);
	assert_int_equal(es_snapshot_read(&sent, size, 0, 2, &keys, &received), 0);
	return es_snapshot_take(&inbox, &received);
}

static void test_parts(void **state)
{
	static const size_t lengths[] = {1, 7, 1023, 1024, 1025, 5000, ES_SNAPSHOT_MAX};

	(void)state;
	setup_text();
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		size_t parts = (lengths[i] + ES_SNAPSHOT_PART_BYTES - 1) / ES_SNAPSHOT_PART_BYTES;
		struct es_snapshot_message message;

		es_snapshot_expect(&inbox, i + 1);
		for (size_t part = parts; part-- > 0;) /* in any order */
			assert_int_equal(receive(i + 1, lengths[i], (unsigned int)part), part == 0);
		assert_int_equal(inbox.total, lengths[i]);
		assert_memory_equal(inbox.text, text, lengths[i]);
		assert_int_equal(receive(i + 1, lengths[i], 0), 0); /* a copy is no news */
		assert_int_equal(es_snapshot_part(&message, 1, 0, 1, text, lengths[i], (unsigned int)parts,
						  &keys.key[0].handover),
				 0);
	}
	assert_int_equal(es_snapshot_part(&(struct es_snapshot_message){}, 1, 0, 1, text, ES_SNAPSHOT_MAX + 1,
					  0, &keys.key[0].handover),
			 0);
}

/* A history may be longer; and has as many parts as there are bits for. */
static void test_history(void **state)
{
	struct es_snapshot_message message, received;
	unsigned int parts = (ES_SNAPSHOT_HISTORY_MAX + ES_SNAPSHOT_PART_BYTES - 1) / ES_SNAPSHOT_PART_BYTES;
	size_t size;

	(void)state;
	setup_text();
	assert_true(parts < 32);
	es_snapshot_expect(&inbox, 9);
	for (unsigned int part = parts; part-- > 0;) {
		size = es_snapshot_history_part(&message, 1, 0, 9, text, ES_SNAPSHOT_HISTORY_MAX, part,
						&keys.key[0].handover);
		assert_int_equal(es_snapshot_read(&message, size, 0, 2, &keys, &received), 0);
		assert_int_equal(es_snapshot_take(&inbox, &received), part == 0);
	}
	assert_memory_equal(inbox.text, text, ES_SNAPSHOT_HISTORY_MAX);
	assert_int_equal(es_snapshot_history_part(&message, 1, 0, 9, text, ES_SNAPSHOT_HISTORY_MAX + 1, 0,
						  &keys.key[0].handover),
			 0);
	size = es_snapshot_history_ask(&message, 1, 0, 9, &keys.key[0].handover);
	assert_int_equal(es_snapshot_read(&message, size, 0, 2, &keys, &received), 0);
	assert_int_equal(received.header.kind, ES_SNAPSHOT_ASK_HISTORY);
	assert_int_equal(es_snapshot_take(&inbox, &received), -EBADMSG);
	/* A message of a kind that has no text is refused, however it was made. */
	received.header.total = es_htons(10);
	received.header.len = es_htons(10);
	assert_int_equal(es_snapshot_take(&inbox, &received), -EBADMSG);
}

/* An account of a crash may be as long, and is no history. */
static void test_crash(void **state)
{
	struct es_snapshot_message message, received;
	size_t size;

	(void)state;
	setup_text();
	size = es_snapshot_crash_ask(&message, 1, 0, 9, &keys.key[0].handover);
	assert_int_equal(es_snapshot_read(&message, size, 0, 2, &keys, &received), 0);
	assert_int_equal(received.header.kind, ES_SNAPSHOT_ASK_CRASH);
	es_snapshot_expect(&inbox, 9);
	assert_int_equal(es_snapshot_take(&inbox, &received), -EBADMSG);
	for (unsigned int part = 0; part < 21; part++) {
		size = es_snapshot_crash_part(&message, 1, 0, 9, text, 21000, part, &keys.key[0].handover);
		assert_int_equal(es_snapshot_read(&message, size, 0, 2, &keys, &received), 0);
		assert_int_equal(received.header.kind, ES_SNAPSHOT_CRASH);
		assert_int_equal(es_snapshot_take(&inbox, &received), part == 20);
	}
	assert_memory_equal(inbox.text, text, 21000);
	assert_int_equal(es_snapshot_crash_part(&message, 1, 0, 9, text, 21000, 21, &keys.key[0].handover),
			 0);
}

static void test_only_what_was_asked_for(void **state)
{
	(void)state;
	setup_text();
	assert_int_equal(receive(0, 10, 0), -EBADMSG);
	es_snapshot_expect(&inbox, 7);
	assert_int_equal(receive(6, 10, 0), -EBADMSG);
	assert_int_equal(receive(7, 3000, 0), 0);
	assert_int_equal(receive(7, 3001, 1), -EBADMSG); /* another text */
	es_snapshot_expect(&inbox, 8);
	assert_int_equal(receive(7, 3000, 1), -EBADMSG);
	assert_int_equal(receive(8, 3000, 1), 0);
	assert_int_equal(receive(8, 3000, 2), 0);
	assert_int_equal(receive(8, 3000, 0), 1);
}

static void test_authentic(void **state)
{
	struct es_snapshot_message message, received;
	size_t size;

	(void)state;
	setup_text();
	size = es_snapshot_part(&message, 1, 0, 7, text, 1500, 1, &keys.key[0].handover);
	assert_int_equal(size, sizeof(message.header) + 476);
	assert_int_equal(es_snapshot_read(&message, size, 0, 2, &keys, &received), 0);
	assert_int_equal(es_snapshot_read(&message, size, 0, 2, &others, &received), -EBADMSG);
	assert_int_equal(es_snapshot_read(&message, size, 1, 2, &keys, &received), -EBADMSG); /* its own */
	assert_int_equal(es_snapshot_read(&message, size, 0, 1, &keys, &received), -EBADMSG); /* no node */
	assert_int_equal(es_snapshot_read(&message, size - 1, 0, 2, &keys, &received), -EBADMSG);
	assert_int_equal(es_snapshot_read(&message, sizeof(message.header) - 1, 0, 2, &keys, &received),
			 -EBADMSG);
	for (size_t i = 0; i < size; i++) {
		((char *)&message)[i] ^= 1;
		assert_int_equal(es_snapshot_read(&message, size, 0, 2, &keys, &received), -EBADMSG);
		((char *)&message)[i] ^= 1;
	}
	size = es_snapshot_ask(&message, 1, 0, 7, &keys.key[0].handover);
	assert_int_equal(es_snapshot_read(&message, size, 0, 2, &keys, &received), 0);
	assert_int_equal(received.header.kind, ES_SNAPSHOT_ASK);
	assert_int_equal(es_snapshot_take(&inbox, &received), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),	  cmocka_unit_test(test_history),
		cmocka_unit_test(test_crash),	  cmocka_unit_test(test_only_what_was_asked_for),
		cmocka_unit_test(test_authentic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
