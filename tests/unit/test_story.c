// SPDX-License-Identifier: GPL-2.0-or-later
/* The log's lines about nodes that come and go: names, reasons, and the ring that follows. */
#include "tests/unit/cmocka_all.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/daemon/membership_internal.h"

static struct es_membership *m;

/* The log. */
void es_log(enum es_log_level level, const char *format, ...)
{
	(void)level;
	(void)format;
}

void es_log_fields(enum es_log_level level, const char *kind, const char *node, const char *text)
{
	(void)level;
	(void)kind;
	(void)node;
	(void)text;
}

static int set_up(void **state)
{
	static const char *const names[] = {"n1", "n2", "n3", "n4"};

	(void)state;
	es_event_open("/nonexistent/x", "n1"); /* forgets those of the test before */
	m = calloc(1, sizeof(*m));
	m->group.node_count = 4;
	for (unsigned int i = 0; i < 4; i++) {
		snprintf(m->group.node[i].name, sizeof(m->group.node[i].name), "%s", names[i]);
		m->group.node[i].is_member = m->group.node[i].is_accepted = 1;
		m->group.node[i].weight = 10;
		m->weights[i] = 10;
	}
	es_story_changed(m);
	es_story_serve(m, 7);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(m);
	return 0;
}

static void assert_newest(enum es_event_kind kind, const char *node, const char *text)
{
	struct es_event event;

	assert_int_equal(es_event_newest(&event, 1), 1);
	assert_string_equal(event.text, text);
	assert_string_equal(event.node, node);
	assert_int_equal(event.kind, kind);
}

static void gone(unsigned int i, enum es_group_reason reason)
{
	m->group.node[i].is_member = m->group.node[i].is_accepted = 0;
	m->group.node[i].reason = reason;
	m->weights[i] = 0;
	es_story_changed(m);
}

static void test_own_join(void **state)
{
	struct es_event event[4];

	(void)state;
	assert_newest(ES_EVENT_join, "n1", "n1 joined; ring of n1, n2, n3, n4, epoch 7");
	assert_int_equal(es_event_newest(event, 4), 1);
}

static void test_crash_and_return(void **state)
{
	(void)state;
	gone(2, ES_GROUP_NODE);
	/* A view: all say anew what they are. */
	m->group.node[1].is_accepted = 0;
	es_story_changed(m);
	m->group.node[1].is_accepted = 1;
	es_story_serve(m, 8);
	assert_newest(ES_EVENT_crash, "n3",
		      "n3 left: its machine or network died; ring of n1, n2, n4, epoch 8");
	m->group.node[2].is_member = m->group.node[2].is_accepted = 1;
	m->weights[2] = 10;
	es_story_serve(m, 9);
	assert_newest(ES_EVENT_join, "n3", "n3 joined; ring of n1, n2, n3, n4, epoch 9");
	es_story_serve(m, 10);
	assert_newest(ES_EVENT_ring, "n1", "ring of n1, n2, n3, n4, epoch 10");
}

static void test_several_at_once(void **state)
{
	struct es_event event[2];

	(void)state;
	gone(2, ES_GROUP_PROCESS);
	gone(3, ES_GROUP_LEFT);
	es_story_serve(m, 8);
	assert_int_equal(es_event_newest(event, 2), 2);
	assert_string_equal(event[0].text, "n3 left: its daemon died");
	assert_string_equal(event[1].text, "n4 left in order; ring of n1, n2, epoch 8");
	assert_int_equal(event[1].kind, ES_EVENT_leave);
}

static void test_drain_and_weight(void **state)
{
	(void)state;
	m->group.node[1].state = ES_NODE_DRAINING;
	es_story_changed(m);
	assert_newest(ES_EVENT_drain, "n2", "n2 is drained");
	m->group.node[1].state = ES_NODE_UP;
	es_story_changed(m);
	assert_newest(ES_EVENT_undrain, "n2", "n2 is not drained any more");
	m->group.node[1].weight = 20;
	es_story_serve(m, 10);
	assert_newest(ES_EVENT_weight, "n2", "n2 has weight 20, before 10; ring of n1, n2, n3, n4, epoch 10");
}

/* A node that lost the others did not see them die. */
static void test_silence(void **state)
{
	struct es_event event[4];
	size_t before = es_event_newest(event, 4);

	(void)state;
	es_story_silence(m);
	gone(1, ES_GROUP_SELF_LOST);
	gone(2, ES_GROUP_SELF_LOST);
	assert_int_equal(es_event_newest(event, 4), before);
	es_story_quorum(m, 1);
	es_story_quorum(m, 0);
	assert_newest(ES_EVENT_quorum, "n1", "this side of the cluster has no quorum");
}

/* No ring follows from it: it is said all the same. */
static void test_without_a_ring(void **state)
{
	(void)state;
	gone(2, ES_GROUP_SUSPECTED);
	m->story.since_ms = es_membership_now_ms() - 5000;
	es_story_tick(m);
	assert_newest(ES_EVENT_crash, "n3", "n3 left: it does not answer");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_own_join, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_crash_and_return, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_several_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_drain_and_weight, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_silence, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_without_a_ring, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
