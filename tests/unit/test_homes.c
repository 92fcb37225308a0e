// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Without a bus: two nodes that give the same content to different nodes agree after one exchange, and the
 * last word counts, in whatever order words arrive.
 */
#include "cmocka_all.h"
#include <string.h>
#include "inspector/cluster/content_sync.h"

#define NODES	 3
#define SECOND	 1000000000ULL
#define WORDS	 1024
#define CONTENTS 20

struct said {
	__u32 tag;
	struct es_content_word word;
};

static struct said said[WORDS];
static unsigned int said_count;

static struct es_contents *contents[NODES];
static struct es_content_sync *sync_of[NODES];
static __u64 now_ns;

static void on_tell(void *ctx, __u32 tag, const struct es_content_word *word)
{
	(void)ctx;
	assert_true(said_count < WORDS);
	said[said_count++] = (struct said){tag, *word};
}

static const struct es_content_sync_ops ops = {.tell = on_tell};

static void begin(void)
{
	now_ns = 1000 * SECOND;
	said_count = 0;
	for (unsigned int i = 0; i < NODES; i++) {
		assert_int_equal(es_contents_new(1024, &contents[i]), 0);
		assert_int_equal(es_content_sync_new(contents[i], 7, &ops, NULL, &sync_of[i]), 0);
	}
}

static void end(void)
{
	for (unsigned int i = 0; i < NODES; i++) {
		es_content_sync_free(&sync_of[i]);
		es_contents_free(&contents[i]);
	}
}

static void propose(unsigned int at, __u64 content, enum es_content_op op, unsigned int node,
		    unsigned int from)
{
	es_contents_propose(contents[at], content, op, node, from, now_ns);
	es_content_sync_clock(sync_of[at], at, now_ns);
	es_content_sync_flush(sync_of[at], now_ns);
}

static void hear(unsigned int at, const struct said *what)
{
	if (what->word.by != at)
		es_content_sync_heard(sync_of[at], what->tag, &what->word, now_ns);
}

static unsigned long long set_of(unsigned int at, __u64 content)
{
	struct es_content_set set = {};

	es_contents_peek(contents[at], content, &set);
	return set.nodes.bits[0];
}

static void test_one_exchange(void **state)
{
	(void)state;
	begin();
	propose(0, 42, ES_CONTENT_ASSIGN, 1, 0);
	now_ns += 1000;
	propose(1, 42, ES_CONTENT_ASSIGN, 0, 0);
	assert_int_equal(said_count, 2);
	assert_int_equal(set_of(0, 42), 2);
	assert_int_equal(set_of(1, 42), 1);
	for (unsigned int i = 0; i < NODES; i++) /* one node hears them the other way round */
		for (unsigned int k = 0; k < 2; k++)
			hear(i, &said[i == 2 ? 1 - k : k]);
	for (unsigned int i = 0; i < NODES; i++)
		assert_int_equal(set_of(i, 42), 1);
	assert_true(es_contents_digest(contents[0]) == es_contents_digest(contents[1]));
	/* A word that is said again changes nothing; nor does another service's. */
	said[0].tag = 8;
	said[0].word.stamp += SECOND;
	hear(2, &said[0]);
	hear(2, &said[1]);
	assert_int_equal(set_of(2, 42), 1);
	end();
}

/* At the same time: the node with the higher number. */
static void test_tie(void **state)
{
	(void)state;
	begin();
	propose(0, 42, ES_CONTENT_ASSIGN, 0, 0);
	propose(2, 42, ES_CONTENT_ASSIGN, 2, 0);
	propose(1, 42, ES_CONTENT_ASSIGN, 1, 0);
	for (unsigned int i = 0; i < NODES; i++)
		for (unsigned int k = 0; k < said_count; k++)
			hear(i, &said[k]);
	for (unsigned int i = 0; i < NODES; i++)
		assert_int_equal(set_of(i, 42), 4);
	end();
}

/* A node whose clock is behind can change what one ahead has said. */
static void test_clock_behind(void **state)
{
	(void)state;
	begin();
	now_ns += 100 * SECOND;
	propose(0, 42, ES_CONTENT_ASSIGN, 0, 0);
	hear(1, &said[0]);
	now_ns -= 50 * SECOND;
	propose(1, 42, ES_CONTENT_MOVE, 2, 0);
	assert_int_equal(said_count, 2);
	hear(0, &said[1]);
	hear(2, &said[1]);
	for (unsigned int i = 0; i < NODES; i++)
		assert_int_equal(set_of(i, 42), 4);
	end();
}

/*
 * A word that was lost is told again when somebody asks for that, once a second; and no bus is asked for it.
 */
static void test_lost(void **state)
{
	struct es_content_change change;

	(void)state;
	begin();
	propose(0, 42, ES_CONTENT_ASSIGN, 0, 0);
	said_count = 0;
	es_contents_tell(contents[1], 42, now_ns); /* it knows nothing of it */
	for (int i = 0; i < 5; i++)
		es_contents_tell(contents[0], 42, now_ns);
	es_content_sync_flush(sync_of[1], now_ns);
	es_content_sync_flush(sync_of[0], now_ns);
	assert_int_equal(said_count, 1);
	hear(1, &said[0]);
	assert_int_equal(set_of(1, 42), 1);
	now_ns += SECOND;
	es_contents_tell(contents[0], 42, now_ns);
	assert_int_equal(es_contents_take(contents[0], &change, 1), 1);
	assert_int_equal(change.op, ES_CONTENT_TELL);
	es_contents_deliver(contents[1], &change, 1, 0, now_ns); /* another version's, on a bus */
	assert_int_equal(set_of(1, 42), 1);
	end();
}

/* Many changes by all nodes, each word lost with some probability and heard in any order: when the last words
 * have been told again, all tables are alike. */
static void test_worlds(void **state)
{
	__u64 seed = 1;

	(void)state;
	for (unsigned int world = 0; world < 50; world++) {
		begin();
		for (unsigned int step = 0; step < 300; step++) {
			unsigned int at, node;
			__u64 content;

			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			at = (unsigned int)(seed >> 40) % NODES;
			node = (unsigned int)(seed >> 44) % NODES;
			content = 1 + (seed >> 50) % CONTENTS;
			now_ns += (seed >> 33) % 3 * 1000;
			propose(at, content, set_of(at, content) ? ES_CONTENT_MOVE : ES_CONTENT_ASSIGN, node,
				(unsigned int)__builtin_ctzll(set_of(at, content) | 1ULL << 63));
			for (unsigned int i = 0; i < NODES && said_count; i++)
				if (seed >> (20 + i) & 1)
					hear(i, &said[(seed >> 48) % said_count]);
		}
		for (unsigned int round = 0; round < 2; round++) {
			now_ns += 2 * SECOND;
			said_count = 0;
			for (unsigned int i = 0; i < NODES; i++) {
				for (__u64 content = 1; content <= CONTENTS; content++)
					es_contents_tell(contents[i], content, now_ns);
				es_content_sync_flush(sync_of[i], now_ns);
			}
			for (unsigned int i = 0; i < NODES; i++)
				for (unsigned int k = 0; k < said_count; k++)
					hear(i, &said[k]);
		}
		assert_true(es_contents_digest(contents[0]) == es_contents_digest(contents[1]));
		assert_true(es_contents_digest(contents[0]) == es_contents_digest(contents[2]));
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_exchange), cmocka_unit_test(test_tie),
		cmocka_unit_test(test_clock_behind), cmocka_unit_test(test_lost),
		cmocka_unit_test(test_worlds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
