// SPDX-License-Identifier: GPL-2.0-or-later
/* A rollout's messages as datagrams: they come out as they were put in, and others do not come out. */
#include "cmocka_all.h"
#include <errno.h>
#include "inspector/rollout/message.h"

#define LEN 952

static const struct es_keys keys = {.count = 1, .key = {{.handover = {.k0 = 1, .k1 = 2}}}};
static const struct es_keys others_keys = {.count = 1, .key = {{.handover = {.k0 = 1, .k1 = 3}}}};

static void test_datagrams(void **state)
{
	char text[LEN];
	const struct es_rollout_message sent = {.source = 1,
						.target = 0,
						.kind = ES_ROLLOUT_PART,
						.rollout = 7,
						.member = 8,
						.total = 3000,
						.part = 2,
						.len = LEN,
						.text = text};
	struct es_rollout_datagram datagram, copy;
	struct es_rollout_message got;
	size_t len;

	(void)state;
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)('a' + i * i % 23);
	len = es_rollout_put(&datagram, &sent, &keys.key[0].handover);
	assert_int_equal(es_rollout_get(&datagram, len, 0, 2, &keys, &copy, &got), 0);
	assert_int_equal(got.rollout, 7);
	assert_int_equal(got.member, 8);
	assert_int_equal(got.total, 3000);
	assert_int_equal(got.part, 2);
	assert_memory_equal(got.text, text, LEN);
	assert_int_equal(es_rollout_get(&datagram, len, 0, 2, &others_keys, &copy, &got), -EBADMSG);
	assert_int_equal(es_rollout_get(&datagram, len, 2, 3, &keys, &copy, &got), -EBADMSG);
	assert_int_equal(es_rollout_get(&datagram, len - 1, 0, 2, &keys, &copy, &got), -EBADMSG);
	assert_int_equal(es_rollout_get(&datagram, sizeof(datagram.header) - 1, 0, 2, &keys, &copy, &got),
			 -EBADMSG);
	for (size_t at = 0; at < len; at++) {
		((char *)&datagram)[at] ^= 1;
		assert_int_equal(es_rollout_get(&datagram, len, 0, 2, &keys, &copy, &got), -EBADMSG);
		((char *)&datagram)[at] ^= 1;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_datagrams)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
