// SPDX-License-Identifier: GPL-2.0-or-later
/* Which of two files is the older one, by what was rolled out where, and by nothing else. */
#include "cmocka_all.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "inspector/rollout/history.h"
#include "inspector/rollout/message.h"

/* Files are digests here. */
enum { F0 = 100, F1, F2, F3, MINE };

static struct es_rollout_history a, b;

static void roll(struct es_rollout_history *history, unsigned long long number, unsigned long long before,
		 unsigned long long digest)
{
	const struct es_rollout_past past = {.number = number,
					     .digest = digest,
					     .time_ms = 1764000000000 + number,
					     .name = "new.conf",
					     .by = "root@n1"};

	es_rollout_history_add(history, before, &past);
}

static int setup(void **state)
{
	(void)state;
	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	return 0;
}

/* Both members had F1; then one was away. */
static void one_is_away(void)
{
	roll(&a, 1, F0, F1);
	b = a;
	roll(&a, 2, F1, F2);
}

static void test_older(void **state)
{
	(void)state;
	one_is_away();
	assert_int_equal(es_rollout_history_age(&b, F1, &a), ES_ROLLOUT_OLDER);
	assert_int_equal(es_rollout_history_age(&b, F2, &a), ES_ROLLOUT_SAME);
	/* The other way round it is none: the one with the later file is never given the earlier one. */
	assert_int_equal(es_rollout_history_age(&a, F2, &b), ES_ROLLOUT_APART);
	roll(&a, 3, F2, F3);
	assert_int_equal(es_rollout_history_age(&b, F1, &a), ES_ROLLOUT_OLDER);
	/* Somebody brought it F2 meanwhile. */
	assert_int_equal(es_rollout_history_age(&b, F2, &a), ES_ROLLOUT_OLDER);
}

/* A node that was never there, or has lost its history, has a file that the others have had, or not. */
static void test_without_history(void **state)
{
	(void)state;
	assert_int_equal(es_rollout_history_age(&b, F0, &a), ES_ROLLOUT_CHANGED);
	one_is_away();
	memset(&b, 0, sizeof(b));
	assert_int_equal(es_rollout_history_age(&b, F0, &a), ES_ROLLOUT_OLDER);
	assert_int_equal(es_rollout_history_age(&b, F1, &a), ES_ROLLOUT_OLDER);
	assert_int_equal(es_rollout_history_age(&b, F2, &a), ES_ROLLOUT_SAME);
	assert_int_equal(es_rollout_history_age(&b, MINE, &a), ES_ROLLOUT_CHANGED);
}

static void test_by_hand(void **state)
{
	(void)state;
	one_is_away();
	assert_int_equal(es_rollout_history_age(&b, MINE, &a), ES_ROLLOUT_CHANGED);
	/* Back to what was before the rollout that it took part in. */
	assert_int_equal(es_rollout_history_age(&b, F0, &a), ES_ROLLOUT_CHANGED);
	assert_int_equal(es_rollout_history_age(&a, F1, &a), ES_ROLLOUT_CHANGED);
	/* The members were given F3 by hand, and then had another rollout: it is in their history. */
	roll(&a, 4, F3, MINE);
	assert_int_equal(a.count, 5);
	assert_int_equal(a.past[3].digest, F3);
	assert_int_equal(a.past[3].number, 0);
	assert_int_equal(es_rollout_history_age(&b, F3, &a), ES_ROLLOUT_OLDER);
}

/* Neither side of a cluster in two overwrites the other's. */
static void test_apart(void **state)
{
	(void)state;
	one_is_away();
	roll(&b, 3, F1, F3);
	assert_int_equal(es_rollout_history_age(&b, F3, &a), ES_ROLLOUT_APART);
	assert_int_equal(es_rollout_history_age(&a, F2, &b), ES_ROLLOUT_APART);
	/* Not even one that has gone back, by a rollout of its own, to a file that the other has had. */
	roll(&b, 4, F3, F1);
	assert_int_equal(es_rollout_history_age(&b, F1, &a), ES_ROLLOUT_APART);
}

/*
 * The members have gone back to F1 by a rollout: of two members that have both files, the one with fewer
 * rollouts is behind.
 */
static void test_back_by_rollout(void **state)
{
	(void)state;
	roll(&a, 1, F0, F1);
	roll(&a, 2, F1, F2);
	b = a;
	roll(&a, 3, F2, F1);
	assert_int_equal(es_rollout_history_age(&b, F2, &a), ES_ROLLOUT_OLDER);
	assert_int_equal(es_rollout_history_age(&a, F1, &b), ES_ROLLOUT_APART);
}

static void test_oldest_goes(void **state)
{
	(void)state;
	roll(&a, 1, F0, 1);
	b = a;
	for (unsigned int i = 2; i < 2 * ES_ROLLOUT_HISTORY_MAX; i++)
		roll(&a, i, i - 1, i);
	assert_int_equal(a.count, ES_ROLLOUT_HISTORY_MAX);
	assert_int_equal(es_rollout_history_last(&a)->digest, 2 * ES_ROLLOUT_HISTORY_MAX - 1);
	assert_int_equal(es_rollout_history_age(&b, 1, &a), ES_ROLLOUT_APART);
}

static void test_file(void **state)
{
	char path[] = "/tmp/earshot-history-XXXXXX";
	struct es_rollout_history got;
	FILE *file;

	(void)state;
	assert_non_null(mkdtemp(path));
	assert_int_equal(chdir(path), 0);
	one_is_away();
	a.past[1].digest = ~0ULL;
	assert_int_equal(es_rollout_history_read("./n1.rollout", &got), -ENOENT);
	assert_int_equal(got.count, 0);
	assert_int_equal(es_rollout_history_write("./n1.rollout", &a), 0);
	assert_int_equal(es_rollout_history_read("./n1.rollout", &got), 0);
	assert_memory_equal(&got, &a, sizeof(a));
	file = fopen("n1.rollout", "w");
	assert_non_null(file);
	fputs("[ { \"number\": 1, \"digest\": \"xyz\" } ]", file);
	fclose(file);
	assert_int_equal(es_rollout_history_read("./n1.rollout", &got), -EBADMSG);
	assert_int_equal(got.count, 0);
	assert_int_equal(unlink("n1.rollout"), 0);
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(rmdir(path), 0);
}

/* The question's digest is where a version before has nothing; no other byte of the header has moved. */
static void test_question(void **state)
{
	static const struct es_keys keys = {.count = 1, .key = {{.handover = {.k0 = 1, .k1 = 2}}}};
	const struct es_rollout_message question = {
		.source = 2, .kind = ES_ROLLOUT_ASK, .member = 7, .digest = 0x0123456789abcdefULL};
	struct es_rollout_datagram datagram, copy;
	struct es_rollout_message got;
	size_t len = es_rollout_put(&datagram, &question, &keys.key[0].handover);

	(void)state;
	assert_int_equal(len, sizeof(datagram.header));
	assert_memory_equal((const char *)&datagram + 40, "\x01\x23\x45\x67\x89\xab\xcd\xef", 8);
	assert_int_equal(es_rollout_get(&datagram, len, 0, 3, &keys, &copy, &got), 0);
	assert_int_equal(got.kind, ES_ROLLOUT_ASK);
	assert_int_equal(got.member, 7);
	assert_true(got.digest == question.digest);
	((char *)&datagram)[40] ^= 1;
	assert_int_equal(es_rollout_get(&datagram, len, 0, 3, &keys, &copy, &got), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_older, setup),
		cmocka_unit_test_setup(test_without_history, setup),
		cmocka_unit_test_setup(test_by_hand, setup),
		cmocka_unit_test_setup(test_apart, setup),
		cmocka_unit_test_setup(test_back_by_rollout, setup),
		cmocka_unit_test_setup(test_oldest_goes, setup),
		cmocka_unit_test_setup(test_file, setup),
		cmocka_unit_test_setup(test_question, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
