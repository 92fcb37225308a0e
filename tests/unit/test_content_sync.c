// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Content tables on a bus that delivers views and messages to all in one order, to each in its own time:
 * whichever member joins, leaves, dies in the middle of a snapshot or has a wrong table, in the end all have
 * the same.
 */
#include "cmocka_all.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/cluster/content_sync.h"

#define NODES	   5
#define EVENTS_MAX 400000
#define TAG	   7

struct event {
	int is_view;
	unsigned int members; /* bits, of a view */
	struct es_group_id from;
	__u8 type;
	size_t len;
	__u8 *payload;
};

/* @at: the next event that it hears; only those from its view on */
struct member {
	struct es_contents *contents;
	struct es_content_sync *sync;
	struct es_group_id id;
	int is_in;
	unsigned int given;
	size_t at;
};

static struct event *event;
static size_t event_count;
static struct member member[NODES];
static unsigned int members; /* of the last view */
static __u64 now_ms;
static uint64_t seed;

static unsigned int below(unsigned int n)
{
	return (unsigned int)(es_test_random(&seed) % n);
}

static void on_send(void *ctx, enum es_wire_type type, const void *payload, size_t len)
{
	struct member *m = ctx;
	struct event *e = &event[event_count++];

	assert_true(event_count < EVENTS_MAX);
	*e = (struct event){.from = m->id, .type = (__u8)type, .len = len, .payload = malloc(len)};
	memcpy(e->payload, payload, len);
}

static void on_given(void *ctx, unsigned int node)
{
	struct member *m = ctx;

	assert_true(node < ES_NODES_MAX);
	m->given++;
}

static const struct es_content_sync_ops ops = {.send = on_send, .given = on_given};

static void begin(size_t entries)
{
	event = calloc(EVENTS_MAX, sizeof(*event));
	event_count = 0;
	members = 0;
	now_ms = 1000;
	for (unsigned int i = 0; i < NODES; i++) {
		member[i] = (struct member){.id = {.nodeid = i + 1, .pid = 100}};
		assert_int_equal(es_contents_new(entries, &member[i].contents), 0);
		assert_int_equal(
			es_content_sync_new(member[i].contents, TAG, &ops, &member[i], &member[i].sync), 0);
	}
}

static void end(void)
{
	for (unsigned int i = 0; i < NODES; i++) {
		es_content_sync_free(&member[i].sync);
		es_contents_free(&member[i].contents);
	}
	for (size_t i = 0; i < event_count; i++)
		free(event[i].payload);
	free(event);
}

static void view(void)
{
	event[event_count++] = (struct event){.is_view = 1, .members = members};
}

static void join(unsigned int i)
{
	member[i].is_in = 1;
	member[i].id.pid++;
	members |= 1u << i;
	member[i].at = event_count;
	view();
}

static void leave(unsigned int i)
{
	member[i].is_in = 0;
	members &= ~(1u << i);
	es_content_sync_lost(member[i].sync);
	view();
}

static void hear(unsigned int i, size_t count)
{
	struct member *m = &member[i];

	for (; m->is_in && count && m->at < event_count; count--) {
		const struct event *e = &event[m->at++];
		struct es_group_id ids[NODES];
		unsigned int n = 0;

		if (!e->is_view) {
			es_content_sync_message(m->sync, e->from, e->type, e->payload, e->len,
						now_ms * 1000000);
			continue;
		}
		for (unsigned int k = 0; k < NODES; k++)
			if (e->members >> k & 1)
				ids[n++] = member[k].id;
		es_content_sync_view(m->sync, m->id, ids, n, now_ms);
	}
}

static void tick(unsigned int i)
{
	if (!member[i].is_in)
		return;
	es_content_sync_flush(member[i].sync, now_ms * 1000000);
	es_content_sync_tick(member[i].sync, now_ms);
}

static void run(unsigned int ms)
{
	for (__u64 until = now_ms + ms; now_ms < until; now_ms += 20) {
		for (unsigned int i = 0; i < NODES; i++)
			tick(i);
		for (unsigned int i = 0; i < NODES; i++)
			hear(i, EVENTS_MAX);
	}
}

static void propose(unsigned int i, __u64 content, enum es_content_op op, unsigned int node)
{
	es_contents_propose(member[i].contents, content, op, node, below(4), now_ms * 1000000);
}

static struct es_content_sync_state state_of(unsigned int i)
{
	struct es_content_sync_state s;

	es_content_sync_state(member[i].sync, &s);
	return s;
}

static int has(unsigned int i, __u64 content, unsigned int node)
{
	struct es_content_set set;

	return es_contents_peek(member[i].contents, content, &set) && es_node_set_has(set.nodes, node);
}

static void assert_alike(void)
{
	int first = -1;

	for (unsigned int i = 0; i < NODES; i++) {
		struct es_content_entry *a, *b;
		size_t na, nb;
		__u64 ca, cb;

		if (!member[i].is_in)
			continue;
		assert_int_equal(state_of(i).phase, ES_SYNC_WHOLE);
		if (first < 0)
			first = (int)i;
		assert_int_equal(es_contents_list(member[first].contents, &a, &na, &ca), 0);
		assert_int_equal(es_contents_list(member[i].contents, &b, &nb, &cb), 0);
		assert_int_equal(na, nb);
		for (size_t k = 0; k < na; k++) {
			assert_int_equal(a[k].content, b[k].content);
			assert_true(es_node_set_equal(a[k].nodes, b[k].nodes));
			assert_int_equal(ca - a[k].order, cb - b[k].order);
		}
		free(a);
		free(b);
	}
}

/* Without a bus a proposal is agreed as soon as it is looked at. */
static void test_alone(void **state)
{
	struct es_contents_counts counts;

	(void)state;
	begin(100);
	propose(0, 1, ES_CONTENT_ASSIGN, 2);
	es_content_sync_flush(member[0].sync, 1);
	assert_true(has(0, 1, 2));
	es_contents_count(member[0].contents, &counts);
	assert_int_equal(counts.entries, 1);
	es_content_sync_drop(member[0].sync, 2, 1);
	assert_false(has(0, 1, 2));
	assert_int_equal(event_count, 0);
	end();
}

static void test_join(void **state)
{
	(void)state;
	begin(100);
	join(0);
	run(100);
	assert_int_equal(state_of(0).phase, ES_SYNC_WHOLE);
	for (__u64 t = 1; t <= 50; t++)
		propose(0, t, ES_CONTENT_ASSIGN, (unsigned int)t % 4);
	run(100);
	join(1);
	run(200);
	assert_alike();
	assert_int_equal(state_of(1).snapshots, 1);
	assert_true(has(1, 7, 3));
	/* The others hear who was given a request; a snapshot, or a node that leaves a set, is none. */
	member[0].given = member[1].given = 0;
	propose(1, 7, ES_CONTENT_ADD, 0);
	propose(1, 8, ES_CONTENT_REMOVE, 0);
	run(100);
	assert_true(has(0, 7, 0));
	assert_int_equal(member[0].given, 1);
	assert_int_equal(member[1].given, 0);
	/* The one who gives is not asked by those who have. */
	join(2);
	run(200);
	assert_alike();
	assert_int_equal(state_of(1).snapshots, 1);
	/* A member that returns has the whole table again, and nothing of its own. */
	leave(1);
	run(100);
	propose(1, 99, ES_CONTENT_ASSIGN, 3);
	propose(0, 7, ES_CONTENT_REMOVE, 3);
	join(1);
	run(200);
	assert_alike();
	assert_false(has(1, 7, 3));
	es_content_sync_drop(member[2].sync, 0, 1);
	run(100);
	assert_alike();
	assert_false(has(1, 7, 0));
	end();
}

/* After a split into equal halves all members join at once, and nobody has the table. */
static void test_all_at_once(void **state)
{
	(void)state;
	begin(100);
	for (unsigned int i = 0; i < NODES; i++) {
		member[i].is_in = 1;
		members |= 1u << i;
	}
	view();
	propose(3, 5, ES_CONTENT_ASSIGN, 1);
	run(1000);
	assert_int_equal(state_of(0).phase, ES_SYNC_WANT);
	assert_true(has(3, 5, 1)); /* and decides all the while */
	run(3000);
	assert_alike();
	end();
}

/* A member dies in the middle of the snapshot that it gives. */
static void test_giver_dies(void **state)
{
	(void)state;
	begin(100000);
	join(0);
	run(100);
	for (__u64 t = 1; t <= 10000; t++)
		propose(0, t, ES_CONTENT_ASSIGN, (unsigned int)t % 4);
	run(100);
	join(1);
	run(1000);
	assert_alike();
	join(2);
	run(60);
	assert_int_equal(state_of(2).phase, ES_SYNC_RECEIVE);
	leave(0);
	run(40);
	leave(1);
	run(2000);
	assert_int_equal(state_of(2).phase, ES_SYNC_WHOLE);
	join(0);
	join(1);
	run(2000);
	assert_alike();
	end();
}

static void test_difference(void **state)
{
	(void)state;
	begin(100);
	for (unsigned int i = 0; i < 3; i++) {
		join(i);
		run(300);
	}
	for (__u64 t = 1; t <= 50; t++)
		propose(0, t, ES_CONTENT_ASSIGN, (unsigned int)t % 4);
	run(100);
	es_contents_drop_node(member[1].contents, 3, 1); /* as if it had missed something */
	run(3 * ES_SYNC_CHECK_MS);
	assert_alike();
	assert_int_equal(state_of(1).differences, 1);
	assert_int_equal(state_of(0).differences + state_of(2).differences, 0);
	assert_true(has(1, 3, 3));
	end();
}

/* Messages without sense, as of a member of another version or service. */
static void test_nonsense(void **state)
{
	__u8 buf[200];

	(void)state;
	begin(100);
	join(0);
	join(1);
	run(200);
	for (unsigned int i = 0; i < 200000; i++) {
		size_t len = below(sizeof(buf));

		for (size_t k = 0; k < len; k++)
			buf[k] = (__u8)below(256);
		if (len > 12) {
			memcpy(buf, (__u8[]){0, 0, 0, TAG}, 4);
			if (below(2))
				memcpy(buf + 4, (__u8[]){0, 0, 0, 1, 0, 0, 0, 101}, 8);
		}
		es_content_sync_message(member[0].sync, member[1].id,
					(__u8)below(ES_WIRE_CONTENTS_DIGEST + 2), buf, len, now_ms * 1000000);
	}
	/* It may have lost its table by that, but not its head. */
	run(3 * ES_SYNC_CHECK_MS);
	assert_alike();
	end();
}

static void test_random_worlds(void **state)
{
	const char *text = getenv("EARSHOT_SEED");

	(void)state;
	for (unsigned int world = 0; world < 60; world++) {
		seed = (text ? strtoull(text, NULL, 0) : 1) + world;
		begin(world % 2 ? 60 : 4000);
		for (unsigned int step = 0; step < 4000; step++) {
			unsigned int i = below(NODES);

			now_ms += below(10);
			switch (below(400)) {
			case 0:
				if (member[i].is_in)
					leave(i);
				break;
			case 1:
			case 2:
				if (!member[i].is_in)
					join(i);
				break;
			default:
				if (below(2))
					propose(i, 1 + below(world % 2 ? 100 : 3000),
						(enum es_content_op)(1 + below(4)), below(4));
				else if (below(2))
					tick(i);
				else
					hear(i, below(20));
			}
		}
		run(3 * ES_SYNC_CHECK_MS);
		assert_alike();
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone),	      cmocka_unit_test(test_join),
		cmocka_unit_test(test_all_at_once),   cmocka_unit_test(test_giver_dies),
		cmocka_unit_test(test_difference),    cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_random_worlds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
