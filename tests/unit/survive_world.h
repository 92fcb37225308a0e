/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_SURVIVE_WORLD_H
#define ES_TESTS_SURVIVE_WORLD_H

/*
 * An idle connection of a node that is lost, and an inspector that may go on with it. Include after cmocka.h.
 */
#include "inspector/cluster/directory.h"
#include "tests/unit/stray_world.h"

#define S    1000000000ULL
#define LOST 2 /* the node */

static const char post[] = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";

static struct es_directory *directory;
static struct es_kept_slot *slots;
static unsigned int number;
static __u64 hears_ns;
static __u32 asked_until_s;

/* An idle connection of a node, which was told when it had been heard for long. */
static int world(void **state)
{
	struct es_kept kept = {
		.options = {.mss = 1400, .snd_wscale = 5, .rcv_wscale = 6, .wscale_ok = 1, .sack_ok = 1},
		.seq = ISN + 1,
		.ack = COOKIE + 1,
		.requests = 3,
		.moves = 1,
		.owner = LOST,
	};

	setup(state);
	slots = calloc(ES_KEPT_SLOTS, sizeof(*slots));
	assert_non_null(slots);
	assert_int_equal(es_directory_new(16, &directory), 0);
	es_directory_watch(directory, slots);
	params.directory = directory;
	params.hears_ns = &hears_ns;
	params.asked_until_s = &asked_until_s;
	asked_until_s = 0;
	hears_ns = NOW_NS - 100 * S;
	conf->services[0].inspect = ES_INSPECT_EVERY;
	conf->services[0].survive = 1;
	versions(ES_WIRE_UNDERSTANDS_STRAYS);
	number = flow_find(1, 1);
	kept.flow = flow_of(number);
	es_directory_keep(directory, hash_of(number), &kept, NOW_NS - 20 * S);
	return 0;
}

static inline int world_v6(void **state)
{
	clients_are_v6 = 1;
	return world(state);
}

static int unmade(void **state)
{
	es_directory_free(&directory);
	free(slots);
	return teardown(state);
}

static struct es_kept_slot *slot(void)
{
	return &slots[es_kept_index(hash_of(number))];
}

static void node_is_lost(void)
{
	const unsigned long long over_ns[ES_NODES_MAX] = {[LOST] = NOW_NS - S};
	const unsigned long long alive_ns[ES_NODES_MAX] = {[LOST] = NOW_NS - 3 * S};

	es_health_set_lost(&health, LOST, NOW_NS - S);
	es_health_set_state(&health, LOST, ES_NODE_ABSENT);
	es_directory_orphan(directory, over_ns, alive_ns, NOW_NS);
}

static inline void comes(uint32_t at, const char *text)
{
	uint8_t bytes[1500];
	struct es_record record = segment(number, at, text, bytes);

	record.kind = ES_RECORD_STRAY;
	es_inspect_record(&in, &record, bytes);
	es_handover_flush(in.sender);
}

static void later(unsigned int ms)
{
	in.now_ns += ms * 1000000ULL;
	es_inspect_deadlines(&in);
	es_handover_flush(in.sender);
}

/* The lost node is asked, and hardly waited for; the members, twice, each deny having it. */
static void nobody_has_it(struct message *m)
{
	later(0);
	assert_int_equal(sent_to(m), LOST);
	later(20);
	for (int i = 0; i < 2 * (NODES - 1); i++) {
		assert_int_equal(sent_to(m), i % (NODES - 1));
		answer(m, 0);
	}
}

static void expect_goes_on(struct message *m)
{
	assert_true(sent_to(m) >= 0);
	assert_int_equal(m->h.kind, ES_HANDOVER_REQUEST);
	assert_true(m->h.flags & ES_HANDOVER_F_SACK);
	assert_int_equal(es_ntohs(m->h.mss), 1400);
	assert_int_equal(es_ntohs(m->h.moves), 2);
	assert_int_equal(COUNT(survived), 1);
	assert_int_equal(slot()->flow_hash, 0);
}

#endif
