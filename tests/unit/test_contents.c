// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The content table: what proposals do here and everywhere, which one wins, what goes when the table is full;
 * and that several tables on one bus agree, in random worlds, with joiners and nodes that leave.
 */
#include "cmocka_all.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/policy/random.h"
#include "inspector/policy/contents.h"

#define TABLES_MAX 5
#define BUS_MAX	   100000

/* A bus that has not delivered yet: who said what, in order. */
struct bus {
	struct es_contents *table[TABLES_MAX];
	size_t at[TABLES_MAX]; /* how much each table has heard */
	unsigned int count;
	struct es_content_change said[BUS_MAX];
	unsigned int by[BUS_MAX];
	size_t len;
};

static struct bus *bus_new(unsigned int count, size_t entries)
{
	struct bus *bus = calloc(1, sizeof(*bus));

	assert_non_null(bus);
	bus->count = count;
	for (unsigned int i = 0; i < count; i++)
		assert_int_equal(es_contents_new(entries, &bus->table[i]), 0);
	return bus;
}

static void bus_free(struct bus *bus)
{
	for (unsigned int i = 0; i < bus->count; i++)
		es_contents_free(&bus->table[i]);
	free(bus);
}

/* Table @i's proposals are said. */
static void say(struct bus *bus, unsigned int i)
{
	size_t n = es_contents_take(bus->table[i], bus->said + bus->len, BUS_MAX - bus->len);

	for (size_t k = 0; k < n; k++)
		bus->by[bus->len++] = i;
}

/* Table @i hears up to @n more. */
static void hear(struct bus *bus, unsigned int i, size_t n, unsigned long long now_ns)
{
	for (; n && bus->at[i] < bus->len; n--, bus->at[i]++)
		es_contents_deliver(bus->table[i], &bus->said[bus->at[i]], 1, bus->by[bus->at[i]] == i,
				    now_ns);
}

static void settle(struct bus *bus)
{
	for (unsigned int i = 0; i < bus->count; i++)
		say(bus, i);
	for (unsigned int i = 0; i < bus->count; i++)
		hear(bus, i, BUS_MAX, 1);
}

/* "013" for {0, 1, 3}; "-" for no set. */
static const char *set_of(struct es_contents *table, __u64 content)
{
	static char text[ES_NODES_MAX + 1];
	struct es_content_set set;
	size_t at = 0;

	if (!es_contents_peek(table, content, &set))
		return "-";
	for (unsigned int i = 0; i < 10; i++)
		if (es_node_set_has(set.nodes, i))
			text[at++] = (char)('0' + i);
	text[at] = 0;
	return text;
}

static unsigned long long changed(struct es_contents *table, __u64 content)
{
	struct es_content_set set;

	assert_true(es_contents_peek(table, content, &set));
	return set.changed_ns;
}

static struct es_contents_counts counts(struct es_contents *table)
{
	struct es_contents_counts c;

	es_contents_count(table, &c);
	return c;
}

static void test_one_table(void **state)
{
	struct bus *bus = bus_new(1, 100);
	struct es_contents *t = bus->table[0];

	(void)state;
	assert_string_equal(set_of(t, 7), "-");
	es_contents_propose(t, 7, ES_CONTENT_ADD, 1, 0, 5); /* to what? */
	es_contents_propose(t, 7, ES_CONTENT_REMOVE, 1, 0, 5);
	es_contents_propose(t, 7, ES_CONTENT_MOVE, 1, 0, 5);
	assert_string_equal(set_of(t, 7), "-");
	es_contents_propose(t, 7, ES_CONTENT_ASSIGN, 3, 0, 10);
	assert_string_equal(set_of(t, 7), "3"); /* at once */
	assert_int_equal(changed(t, 7), 10);
	es_contents_propose(t, 7, ES_CONTENT_ASSIGN, 4, 0, 11);
	assert_string_equal(set_of(t, 7), "3");
	es_contents_propose(t, 7, ES_CONTENT_REMOVE, 3, 0, 12); /* the last one stays */
	assert_string_equal(set_of(t, 7), "3");
	es_contents_propose(t, 7, ES_CONTENT_ADD, 3, 0, 13); /* is there */
	assert_int_equal(changed(t, 7), 10);
	es_contents_propose(t, 7, ES_CONTENT_ADD, 5, 0, 14);
	assert_string_equal(set_of(t, 7), "35");
	assert_int_equal(changed(t, 7), 14);
	es_contents_propose(t, 7, ES_CONTENT_MOVE, 1, 4, 15); /* 4 is not there */
	es_contents_propose(t, 7, ES_CONTENT_MOVE, 1, 3, 16);
	assert_string_equal(set_of(t, 7), "15");
	es_contents_propose(t, 7, ES_CONTENT_REMOVE, 5, 0, 17);
	assert_string_equal(set_of(t, 7), "1");
	assert_int_equal(counts(t).entries, 0); /* nothing is agreed yet */
	settle(bus);
	assert_string_equal(set_of(t, 7), "1");
	assert_int_equal(changed(t, 7), 17); /* not when it came back */
	assert_int_equal(bus->len, 4);
	assert_int_equal(counts(t).entries, 1);
	assert_int_equal(counts(t).overtaken, 0);
	bus_free(bus);
}

/* Two inspectors give new content to two nodes: the first one said wins, and each corrects itself. */
static void test_races(void **state)
{
	struct bus *bus = bus_new(3, 100);
	struct es_contents **t = bus->table;

	(void)state;
	es_contents_propose(t[0], 7, ES_CONTENT_ASSIGN, 1, 0, 10);
	es_contents_propose(t[1], 7, ES_CONTENT_ASSIGN, 2, 0, 11);
	say(bus, 1);
	say(bus, 0);
	assert_string_equal(set_of(t[2], 7), "-");
	hear(bus, 2, 1, 20);
	assert_string_equal(set_of(t[2], 7), "2");
	hear(bus, 0, 1, 21); /* table 0 has its own on the way, which may yet win for all it knows */
	assert_string_equal(set_of(t[0], 7), "1");
	settle(bus);
	for (int i = 0; i < 3; i++)
		assert_string_equal(set_of(t[i], 7), "2");
	assert_int_equal(counts(t[0]).overtaken, 1);
	assert_int_equal(counts(t[1]).overtaken, 0);

	/* A move loses against another move from the same node; an addition against nothing. */
	es_contents_propose(t[0], 7, ES_CONTENT_MOVE, 3, 2, 30);
	es_contents_propose(t[1], 7, ES_CONTENT_MOVE, 4, 2, 30);
	es_contents_propose(t[2], 7, ES_CONTENT_ADD, 5, 0, 30);
	say(bus, 2);
	settle(bus);
	for (int i = 0; i < 3; i++)
		assert_string_equal(set_of(t[i], 7), "35");

	/* Two that each take another one out: one node is left, whichever. */
	es_contents_propose(t[0], 7, ES_CONTENT_REMOVE, 3, 0, 40);
	es_contents_propose(t[1], 7, ES_CONTENT_REMOVE, 5, 0, 40);
	settle(bus);
	for (int i = 0; i < 3; i++)
		assert_string_equal(set_of(t[i], 7), "5");
	bus_free(bus);
}

static void test_eviction(void **state)
{
	struct bus *bus = bus_new(2, 16);
	struct es_content_set set;

	(void)state;
	for (__u64 i = 1; i <= 16; i++)
		es_contents_propose(bus->table[i % 2], i, ES_CONTENT_ASSIGN, (unsigned int)i % 4, 0, i);
	settle(bus);
	assert_int_equal(counts(bus->table[0]).entries, 16);
	/* Used while young: no word. In the older half: one, of both; the second does nothing. */
	for (int i = 0; i < 3; i++)
		assert_true(es_contents_get(bus->table[0], 15, &set));
	settle(bus);
	assert_int_equal(bus->len, 16);
	for (int i = 0; i < 3; i++) {
		assert_true(es_contents_get(bus->table[0], 2, &set));
		assert_true(es_contents_get(bus->table[1], 2, &set));
	}
	settle(bus);
	assert_int_equal(bus->len, 18);
	assert_int_equal(counts(bus->table[1]).kept, 1);
	for (__u64 i = 17; i <= 23; i++)
		es_contents_propose(bus->table[0], i, ES_CONTENT_ASSIGN, 1, 0, i);
	settle(bus);
	/* Seven came, so seven went; 2 was put in again. The order began with table 0's: 2, 4, ... */
	for (int k = 0; k < 2; k++) {
		assert_int_equal(counts(bus->table[k]).entries, 16);
		assert_int_equal(counts(bus->table[k]).evicted, 7);
		assert_string_equal(set_of(bus->table[k], 2), "2");
		for (__u64 i = 4; i <= 16; i += 2)
			assert_string_equal(set_of(bus->table[k], i), "-");
		assert_string_not_equal(set_of(bus->table[k], 1), "-");
	}
	/* A proposal about content that is gone has no effect, and leaves nothing. */
	es_contents_propose(bus->table[0], 1, ES_CONTENT_ADD, 3, 0, 30);
	es_contents_propose(bus->table[1], 50, ES_CONTENT_ASSIGN, 3, 0, 30);
	say(bus, 1);
	settle(bus);
	for (int k = 0; k < 2; k++)
		assert_string_equal(set_of(bus->table[k], 1), "-");
	bus_free(bus);
}

static void test_node_leaves(void **state)
{
	struct bus *bus = bus_new(1, 100);
	struct es_contents *t = bus->table[0];

	(void)state;
	es_contents_propose(t, 1, ES_CONTENT_ASSIGN, 1, 0, 1);
	es_contents_propose(t, 2, ES_CONTENT_ASSIGN, 2, 0, 1);
	es_contents_propose(t, 2, ES_CONTENT_ADD, 1, 0, 1);
	settle(bus);
	es_contents_drop_node(t, 1, 50);
	assert_string_equal(set_of(t, 1), "-");
	assert_string_equal(set_of(t, 2), "2");
	assert_int_equal(changed(t, 2), 50);
	assert_int_equal(counts(t).entries, 1);
	es_contents_propose(t, 1, ES_CONTENT_ASSIGN, 3, 0, 60);
	settle(bus);
	assert_string_equal(set_of(t, 1), "3");
	bus_free(bus);
}

/* The queue is bounded; what finds no room has no effect at all. */
static void test_bus_stands_still(void **state)
{
	struct bus *bus = bus_new(1, 1000000);
	struct es_contents *t = bus->table[0];
	struct es_content_set set;
	__u64 known = 0;

	(void)state;
	for (__u64 i = 1; i <= 50000; i++) {
		es_contents_propose(t, i, ES_CONTENT_ASSIGN, 1, 0, 1);
		known += strcmp(set_of(t, i), "-") != 0;
	}
	assert_int_equal(counts(t).refused, 50000 - known);
	assert_in_range(known, 1000, 49999);
	settle(bus);
	assert_int_equal(counts(t).entries, known);
	es_contents_propose(t, 50000, ES_CONTENT_ASSIGN, 1, 0, 1);
	assert_string_equal(set_of(t, 50000), "1");
	bus_free(bus);
	/* An entry in use whose renewal found no room in the queue is renewed at the next look-up. */
	bus = bus_new(1, 16);
	t = bus->table[0];
	for (__u64 i = 1; i <= 16; i++)
		es_contents_propose(t, i, ES_CONTENT_ASSIGN, 1, 0, 1);
	settle(bus);
	for (__u64 i = 100; counts(t).refused == 0; i++)
		es_contents_propose(t, i, ES_CONTENT_ASSIGN, 1, 0, 1);
	assert_true(es_contents_get(t, 1, &set));
	assert_int_equal(counts(t).refused, 2);
	while (es_contents_take(t, bus->said, BUS_MAX))
		;
	assert_true(es_contents_get(t, 1, &set));
	assert_int_equal(es_contents_take(t, bus->said, BUS_MAX), 1);
	assert_int_equal(bus->said[0].op, ES_CONTENT_KEEP);
	bus_free(bus);
}

static void same(struct es_contents *a, struct es_contents *b)
{
	struct es_content_entry *ea, *eb;
	size_t na, nb;
	__u64 ca, cb;

	assert_int_equal(es_contents_list(a, &ea, &na, &ca), 0);
	assert_int_equal(es_contents_list(b, &eb, &nb, &cb), 0);
	struct es_node_set eb_first = nb ? eb[0].nodes : (struct es_node_set){};

	assert_int_equal(na, nb);
	assert_int_equal(ca, cb);
	assert_int_equal(es_contents_digest(a), es_contents_digest(b));
	for (size_t i = 0; i < na; i++) {
		struct es_content_set set;

		assert_int_equal(ea[i].content, eb[i].content);
		assert_int_equal(ea[i].order, eb[i].order);
		assert_true(es_node_set_equal(ea[i].nodes, eb[i].nodes));
		assert_false(es_node_set_is_empty(ea[i].nodes));
		assert_true(es_contents_peek(b, ea[i].content, &set)); /* and it is what policies see */
		assert_true(es_node_set_equal(ea[i].nodes, set.nodes));
	}
	free(ea);
	free(eb);
	if (na) { /* and it tells a difference */
		es_contents_drop_node(b, (unsigned int)__builtin_ctzll(eb_first.bits[0]), 1);
		assert_int_not_equal(es_contents_digest(a), es_contents_digest(b));
	}
}

/* Whatever is proposed, however late it is heard: all tables end alike. One of them joins with a snapshot. */
static void test_agreement(void **state)
{
	const char *text = getenv("EARSHOT_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) : 1;

	(void)state;
	for (unsigned int world = 0; world < 200; world++) {
		unsigned int tables = 2 + world % (TABLES_MAX - 1);
		struct bus *bus = bus_new(tables, 16 + world % 60);
		struct es_content_entry *entries = NULL;
		size_t count = 0;
		__u64 clock;
		int joined = 0;

		for (unsigned int step = 0; step < 3000; step++) {
			__u64 r = es_test_random(&seed);
			unsigned int i = (unsigned int)(r % tables);
			struct es_content_set set;
			__u64 content = 1 + (r >> 8) % (world % 3 ? 50 : 400);

			/* The last table is not there in the first half. */
			if (i == tables - 1 && !joined)
				continue;
			switch (r >> 32 & 7) {
			case 0:
			case 1:
				say(bus, i);
				break;
			case 2:
			case 3:
				hear(bus, i, r >> 40 & 15, step);
				break;
			case 4:
				(void)es_contents_get(bus->table[i], content, &set);
				break;
			default:
				es_contents_propose(
					bus->table[i], content, (enum es_content_op)(1 + (r >> 36 & 3)),
					(unsigned int)(r >> 44) % 4, (unsigned int)(r >> 48) % 4, step);
			}
			if (step == 1500) {
				/* At one place in the order; what follows is heard by the
				 * joiner as by all. */
				assert_int_equal(es_contents_list(bus->table[0], &entries, &count, &clock),
						 0);
				es_contents_restore(bus->table[tables - 1], entries, count, clock, step);
				bus->at[tables - 1] = bus->at[0];
				free(entries);
				joined = 1;
			}
			assert_true(counts(bus->table[i]).entries <= counts(bus->table[i]).max_entries);
		}
		settle(bus);
		for (unsigned int i = 1; i < tables; i++)
			same(bus->table[0], bus->table[i]);
		bus_free(bus);
	}
}

/* Workers look up and propose while another thread delivers. */
static _Atomic int stop;

static void *worker(void *arg)
{
	struct es_contents *t = arg;
	struct es_random random = {(unsigned long)pthread_self()};
	struct es_content_set set;

	while (!stop) {
		__u64 content = 1 + es_random_below(&random, 300);

		if (!es_contents_get(t, content, &set))
			es_contents_propose(t, content, ES_CONTENT_ASSIGN, (unsigned int)content % 8, 0, 1);
		else
			es_contents_propose(t, content,
					    es_random_below(&random, 2) ? ES_CONTENT_ADD : ES_CONTENT_REMOVE,
					    (unsigned int)es_random_below(&random, 8), 0, 1);
	}
	return NULL;
}

static void test_threads(void **state)
{
	struct bus *bus = bus_new(2, 100);
	struct es_content_change changes[256];
	pthread_t thread[3];

	(void)state;
	stop = 0;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, worker, bus->table[0]), 0);
	for (int i = 0; counts(bus->table[0]).evicted < 20000; i++) {
		size_t n = es_contents_take(bus->table[0], changes, 256);

		es_contents_deliver(bus->table[0], changes, n, 1, 1);
		es_contents_deliver(bus->table[1], changes, n, 0, 1);
		if (i % 1000 == 999) {
			es_contents_drop_node(bus->table[0], 3, 1);
			es_contents_drop_node(bus->table[1], 3, 1);
		}
	}
	stop = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	for (size_t n = 1; n;) {
		n = es_contents_take(bus->table[0], changes, 256);
		es_contents_deliver(bus->table[0], changes, n, 1, 1);
		es_contents_deliver(bus->table[1], changes, n, 0, 1);
	}
	same(bus->table[0], bus->table[1]);
	bus_free(bus);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_table),	 cmocka_unit_test(test_races),
		cmocka_unit_test(test_eviction),	 cmocka_unit_test(test_node_leaves),
		cmocka_unit_test(test_bus_stands_still), cmocka_unit_test(test_agreement),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
