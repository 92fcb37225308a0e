// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * More clients come than a worker may have, or more workers than the first process: whatever happens, the
 * bound holds, and nobody goes too early.
 */
#include "cmocka_all.h"
#include <string.h>
#include "tls/serve/places.h"
#include "tls/serve/processes.h"
#include "tls/serve/settings.h"

#define MOST  8u
#define YOUNG ES_PLACES_YOUNG_NS
#define GB    (1ULL << 30)

static struct es_places places;
static struct es_place *gone;
static unsigned int ousted;

static void oust(struct es_place *place)
{
	gone = place;
	ousted++;
	es_places_leave(&places, place);
}

static void set_up(void)
{
	memset(&places, 0, sizeof(places));
	places.most = MOST;
	gone = NULL;
	ousted = 0;
}

static void come(struct es_place *place, enum es_place_kind kind, unsigned long long now_ns)
{
	*place = (struct es_place){.since_ns = now_ns, .oust = oust};
	es_places_put(&places, place, kind);
}

/* Whatever the machine has, the first process has room for each. */
static void test_workers(void **state)
{
	(void)state;
	assert_int_equal(es_settings_workers(0, 2), 2);
	assert_int_equal(es_settings_workers(3, 2), 3);
	assert_int_equal(es_settings_workers(256, 1), 256);
	assert_int_equal(es_settings_workers(0, 256), 256);
	assert_int_equal(es_settings_workers(0, 1024), ES_SETTINGS_WORKERS_MAX);
	assert_int_equal(es_settings_workers(0, -1), 1);
}

/* Each reload leaves a generation behind: when there is no room for two more, the oldest ones end. */
static void test_generations(void **state)
{
	struct es_process process[8] = {};
	struct es_process *excess;
	unsigned int wanted = 4;

	(void)state;
	assert_null(es_processes_excess(process, 8, 8));
	for (int i = 0; i < 6; i++)
		process[i] = (struct es_process){
			.pid = 10 + i, .is_old = i < 4, .since_ns = 100 - 10ULL * (i / 2)};
	/* Two places are free; two of the oldest are to go, and they are the later ones here. */
	for (int i = 0; i < 2; i++) {
		excess = es_processes_excess(process, 8, wanted);
		assert_non_null(excess);
		assert_true(excess == &process[2] || excess == &process[3]);
		excess->is_ending = 1;
	}
	assert_null(es_processes_excess(process, 8, wanted));
	/* The newest generation stays, whatever is wanted. */
	for (int i = 0; (excess = es_processes_excess(process, 8, 8)); i++) {
		assert_true(excess->is_old && i < 2);
		excess->pid = 0;
	}
	assert_true(process[4].pid && process[5].pid);
}

static void test_share(void **state)
{
	(void)state;
	assert_int_equal(es_places_share(0, 2, 1, 8 * GB, 1 << 20), 16384);
	assert_int_equal(es_places_share(0, 2, 2, 8 * GB, 1 << 20), 8192);
	assert_int_equal(es_places_share(0, 2, 1, 8 * GB, 1024), 480); /* not more than it can open */
	assert_int_equal(es_places_share(100, 2, 3, 8 * GB, 1 << 20), 50);
	assert_int_equal(es_places_share(3, 2, 1, 8 * GB, 1 << 20), 2);
	assert_int_equal(es_places_share(1, 256, 1, 8 * GB, 1 << 20), 1);
	assert_int_equal(es_places_share(0, 4, 64, 1, 70), 1);
}

/* Many that ask nothing: the first of them goes, but not before its time, and no other. */
static void test_flood(void **state)
{
	struct es_place place[MOST + 1], idle;

	(void)state;
	set_up();
	come(&idle, ES_PLACE_IDLE, 0);
	for (unsigned int i = 0; i < MOST - 1; i++)
		come(&place[i], ES_PLACE_NEW, i);
	assert_true(es_places_may_come(&places, YOUNG));
	come(&place[MOST], ES_PLACE_NEW, YOUNG);
	es_places_settle(&places, YOUNG);
	assert_ptr_equal(gone, &place[0]);
	es_places_settle(&places, 9 * YOUNG); /* there are not too many */
	assert_int_equal(ousted, 1);
}

static void test_flood_in_a_moment(void **state)
{
	struct es_place place[MOST];

	(void)state;
	set_up();
	for (unsigned int i = 0; i < MOST; i++)
		come(&place[i], ES_PLACE_NEW, 0);
	assert_false(es_places_may_come(&places, YOUNG - 1));
	assert_true(es_places_may_come(&places, YOUNG));
	assert_int_equal(ousted, 0);
}

/* Few have asked nothing: the one goes that has been idle longest. */
static void test_idle(void **state)
{
	struct es_place place[MOST + 1];

	(void)state;
	set_up();
	come(&place[0], ES_PLACE_NEW, 0);
	for (unsigned int i = 1; i <= MOST; i++)
		come(&place[i], ES_PLACE_IDLE, 0);
	es_places_put(&places, &place[1], ES_PLACE_BUSY);
	es_places_put(&places, &place[1], ES_PLACE_IDLE); /* the last one now */
	es_places_settle(&places, 2 * YOUNG);
	assert_ptr_equal(gone, &place[2]);
	assert_int_equal(ousted, 1);
}

/* All are being served: nobody goes, and nobody may come. A stream is one more. */
static void test_busy(void **state)
{
	struct es_place place[MOST];

	(void)state;
	set_up();
	for (unsigned int i = 0; i < MOST; i++)
		come(&place[i], ES_PLACE_BUSY, 0);
	assert_false(es_places_may_come(&places, 9 * YOUNG));
	assert_false(es_places_are_in_use(&places));
	places.streams = 1;
	assert_true(es_places_are_in_use(&places));
	es_places_settle(&places, 9 * YOUNG);
	assert_int_equal(ousted, 0);
	places.streams = 0;
	es_places_leave(&places, &place[3]);
	assert_true(es_places_may_come(&places, 0));
}

/* Streams take the places of those that are idle. */
static void test_streams(void **state)
{
	struct es_place place[MOST];

	(void)state;
	set_up();
	come(&place[0], ES_PLACE_BUSY, 0);
	for (unsigned int i = 1; i < MOST; i++)
		come(&place[i], ES_PLACE_IDLE, 0);
	places.streams = 3;
	assert_false(es_places_are_in_use(&places));
	es_places_settle(&places, 0);
	assert_int_equal(ousted, 3);
	assert_int_equal(places.count[ES_PLACE_IDLE], MOST - 4);
}

/* Whatever happens, in whatever order: the counts are right, and the bound holds where it can. */
static void test_anything(void **state)
{
	static struct es_place place[64];
	uint64_t seed = 1;

	(void)state;
	set_up();
	memset(place, 0, sizeof(place));
	for (unsigned long long now_ns = 0; now_ns < 20000 * (YOUNG / 50); now_ns += YOUNG / 50) {
		struct es_place *p = &place[es_test_random(&seed) % 64];
		unsigned int there[ES_PLACE_KINDS] = {}, found[ES_PLACE_KINDS] = {};

		if (p->kind != ES_PLACE_NONE)
			es_places_put(&places, p,
				      (enum es_place_kind)(es_test_random(&seed) % ES_PLACE_KINDS));
		else if (es_places_may_come(&places, now_ns))
			come(p, ES_PLACE_NEW, now_ns);
		es_places_settle(&places, now_ns);
		for (int i = 0; i < 64; i++)
			there[place[i].kind]++;
		for (int kind = ES_PLACE_NEW; kind < ES_PLACE_KINDS; kind++) {
			for (const struct es_place *q = places.first[kind]; q; q = q->next)
				found[kind] += q->kind == (enum es_place_kind)kind;
			assert_int_equal(found[kind], there[kind]);
			assert_int_equal(found[kind], places.count[kind]);
		}
		assert_true(there[ES_PLACE_NEW] + there[ES_PLACE_IDLE] + there[ES_PLACE_BUSY] <= MOST);
	}
	assert_true(ousted > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_workers),
		cmocka_unit_test(test_generations),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_flood_in_a_moment),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_streams),
		cmocka_unit_test(test_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
