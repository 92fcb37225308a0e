// SPDX-License-Identifier: GPL-2.0-or-later
/* The frames by which nodes hear each other: their bytes, and what is taken for one. */
#include "cmocka_all.h"
#include <errno.h>
#include <string.h>
#include "inspector/datapath/network.h"
#include "inspector/self/public_link.h"

static const struct es_sipkey ring = {0x0706050403020100, 0x0f0e0d0c0b0a0908};

int es_network_has_carrier(const char *interface)
{
	(void)interface;
	return 1;
}

static void test_message(void **state)
{
	static const uint8_t head[] = {0x45, 0x73, 0x68, 0x50, 1, 3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 7,
				       0,    0,	   0,	 0,    0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 1};
	const struct es_hearing_word said = {.hears = {5, 1}, .is_steady = 1};
	const struct es_sipkey other = {1, 2};
	struct es_public_link_message message;
	struct es_hearing_word heard;

	(void)state;
	es_public_link_put(&message, &ring, 3, 7, &said);
	assert_memory_equal(&message, head, sizeof(head));
	assert_int_equal(es_public_link_get(&message, &ring, &heard), 0);
	assert_memory_equal(heard.hears, said.hears, sizeof(heard.hears));
	assert_int_equal(heard.is_steady, 1);
	assert_int_equal(es_public_link_get(&message, &other, &heard), -EBADMSG);
	for (size_t i = 0; i < sizeof(message); i++) {
		((uint8_t *)&message)[i] ^= 0x10;
		assert_int_equal(es_public_link_get(&message, &ring, &heard), -EBADMSG);
		((uint8_t *)&message)[i] ^= 0x10;
	}
	assert_int_equal(es_public_link_get(&message, &ring, &heard), 0);
}

/* Datagrams that nodes of the version before send there are no messages. */
static void test_older_version(void **state)
{
	static const char text[sizeof(struct es_public_link_message)] = "earshot: can you hear me?";
	struct es_public_link_message message;
	struct es_hearing_word heard;

	(void)state;
	memcpy(&message, text, sizeof(message));
	assert_int_equal(es_public_link_get(&message, &ring, &heard), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_message),
		cmocka_unit_test(test_older_version),
	};

	return cmocka_run_group_tests_name("public_link", tests, NULL, NULL);
}
