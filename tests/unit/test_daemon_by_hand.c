// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Settings by hand on the bus and in this node's files: they hold over a restart of its daemon, end when
 * their time is over, and are said again to others that join.
 */
#include "cmocka_all.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "inspector/daemon/by_hand.h"

#define SELF   1
#define OTHER  0
#define WEIGHT 100

static char directory[64];
static char drained_path[96], weight_path[96];
static struct es_group group;
static struct es_conf *conf;
static struct es_daemon_by_hand by_hand;
static struct es_wire_by_hand said[8];
static unsigned int say_count, unkept_count, change_count;
static struct es_wire_change change;

static void on_say(void *ctx, const struct es_wire_by_hand *word)
{
	(void)ctx;
	assert_true(say_count < 8);
	said[say_count++] = *word;
}

static void on_unkept(void *ctx)
{
	(void)ctx;
	unkept_count++;
}

static void on_send(void *ctx, enum es_wire_type type, const void *payload, size_t len)
{
	(void)ctx;
	assert_int_equal(type, ES_WIRE_CHANGE);
	assert_int_equal(es_wire_get_change(payload, len, &change), 0);
	change_count++;
}

static const struct es_daemon_by_hand_ops ops = {.say = on_say, .unkept = on_unkept};
static const struct es_group_ops group_ops = {.send = on_send};

/* A daemon begins, reads its files and is a member. */
static void begin(void)
{
	static const char *const names[] = {"n1", "n2"};

	say_count = unkept_count = change_count = 0;
	es_group_init(&group, &group_ops, NULL, names, 2, SELF, 0, 100, 1000);
	for (unsigned int i = 0; i < 2; i++) {
		conf->nodes[i].weight = WEIGHT;
		group.node[i].weight = WEIGHT;
		group.node[i].state = ES_NODE_UP;
	}
	es_by_hand_init(&by_hand, &ops, NULL, &group, &conf, drained_path, weight_path);
	es_by_hand_begin(&by_hand);
	for (unsigned int i = 0; i < 2; i++)
		group.node[i].is_member = group.node[i].is_accepted = 1;
	group.phase = ES_GROUP_STABLE;
}

/* This node's own words arrive at it, too, and then the change. */
static void arrives(const struct es_wire_by_hand *word)
{
	uint8_t buf[ES_WIRE_BY_HAND_SIZE];

	es_by_hand_message(&by_hand, buf, es_wire_put_by_hand(buf, sizeof(buf), word));
	if (word->what == ES_WIRE_CHANGE_STATE) {
		group.node[word->node].state = (uint8_t)word->value;
		if (word->node == SELF)
			by_hand.is_drained = word->value == ES_NODE_DRAINING; /* membership.c */
	} else {
		group.node[word->node].weight = word->value;
	}
	es_by_hand_changed(&by_hand);
}

static struct es_wire_by_hand word_of(unsigned int node, enum es_wire_change_what what, unsigned int value)
{
	return (struct es_wire_by_hand){.node = (uint16_t)node,
					.what = (uint8_t)what,
					.value = (uint16_t)value,
					.set_ms = 1764060000000ULL,
					.who = "alice@n1",
					.why = "new disk"};
}

static int setup(void **state)
{
	(void)state;
	conf = calloc(1, sizeof(*conf));
	snprintf(directory, sizeof(directory), "/tmp/earshot-daemon-by-hand-XXXXXX");
	if (!conf || !mkdtemp(directory))
		return -1;
	snprintf(drained_path, sizeof(drained_path), "%s/n2.drained", directory);
	snprintf(weight_path, sizeof(weight_path), "%s/n2.weight", directory);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(drained_path);
	unlink(weight_path);
	free(conf);
	return rmdir(directory);
}

static void test_set(void **state)
{
	struct es_wire_by_hand word = word_of(OTHER, ES_WIRE_CHANGE_WEIGHT, 30);

	(void)state;
	begin();
	assert_int_equal(es_by_hand_set(&by_hand, &word), 0);
	/* The reason is on the bus before the change. */
	assert_int_equal(say_count, 1);
	assert_string_equal(said[0].why, "new disk");
	assert_int_equal(change_count, 1);
	assert_int_equal(change.node, OTHER);
	assert_int_equal(change.value, 30);
	group.node[OTHER].is_member = 0;
	assert_int_equal(es_by_hand_set(&by_hand, &word), -ENOTCONN);
	assert_int_equal(say_count, 1);
}

static void test_drain_is_kept(void **state)
{
	struct es_wire_by_hand word = word_of(SELF, ES_WIRE_CHANGE_STATE, ES_NODE_DRAINING);

	(void)state;
	begin();
	arrives(&word);
	assert_non_null(es_by_hand_shown(&by_hand, SELF, ES_WIRE_CHANGE_STATE));
	begin();
	assert_int_equal(group.node[SELF].state, ES_NODE_DRAINING);
	assert_string_equal(es_by_hand_shown(&by_hand, SELF, ES_WIRE_CHANGE_STATE)->who, "alice@n1");
	/* Others that join hear why. */
	es_by_hand_view(&by_hand);
	assert_int_equal(say_count, 1);
	assert_string_equal(said[0].why, "new disk");
	word.value = ES_NODE_UP;
	arrives(&word);
	assert_int_equal(access(drained_path, F_OK), -1);
	begin();
	assert_int_equal(group.node[SELF].state, ES_NODE_UP);
}

static void test_drain_ends(void **state)
{
	struct es_wire_by_hand word = word_of(SELF, ES_WIRE_CHANGE_STATE, ES_NODE_DRAINING);

	(void)state;
	begin();
	word.for_s = 1000;
	arrives(&word);
	es_by_hand_tick(&by_hand);
	assert_int_equal(change_count, 0);
	by_hand.end_ms = 1; /* long ago */
	es_by_hand_tick(&by_hand);
	assert_int_equal(change_count, 1);
	assert_int_equal(change.value, ES_NODE_UP);
	assert_string_equal(said[0].why, "its time is over");
	arrives(&said[0]);
	assert_int_equal(by_hand.end_ms, 0);
	assert_null(es_by_hand_shown(&by_hand, SELF, ES_WIRE_CHANGE_STATE));
}

static void test_weight_is_kept(void **state)
{
	struct es_wire_by_hand word = word_of(SELF, ES_WIRE_CHANGE_WEIGHT, 30);

	(void)state;
	begin();
	arrives(&word);
	begin();
	assert_int_equal(es_by_hand_own_weight(&by_hand), 30);
	assert_int_equal(group.node[SELF].weight, 30);
	/* The file says the same now. */
	conf->nodes[SELF].weight = 30;
	es_by_hand_changed(&by_hand);
	assert_int_equal(access(weight_path, F_OK), -1);
	conf->nodes[SELF].weight = 60;
	assert_int_equal(es_by_hand_own_weight(&by_hand), 60);
}

static void test_unkept(void **state)
{
	struct es_wire_by_hand word = word_of(SELF, ES_WIRE_CHANGE_WEIGHT, 30);

	(void)state;
	begin();
	by_hand.weight_path = "/proc/earshot/n2.weight";
	arrives(&word);
	assert_true(es_by_hand_is_unkept(&by_hand));
	assert_int_equal(unkept_count, 1);
	by_hand.weight_path = weight_path;
	by_hand.again_ms = 1;
	es_by_hand_tick(&by_hand);
	assert_false(es_by_hand_is_unkept(&by_hand));
	assert_int_equal(unkept_count, 2);
	assert_int_equal(access(weight_path, F_OK), 0);
}

/* A node of a version that does not say who did it. */
static void test_nobody_said(void **state)
{
	(void)state;
	begin();
	group.node[SELF].state = ES_NODE_DRAINING;
	by_hand.is_drained = 1;
	es_by_hand_changed(&by_hand);
	assert_int_equal(access(drained_path, F_OK), 0);
	assert_string_equal(es_by_hand_shown(&by_hand, SELF, ES_WIRE_CHANGE_STATE)->who, "");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_set, setup, teardown),
		cmocka_unit_test_setup_teardown(test_drain_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(test_drain_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_weight_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unkept, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nobody_said, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
