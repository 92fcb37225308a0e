// SPDX-License-Identifier: GPL-2.0-or-later
/* A rollout among played nodes: all switch or none does, whatever is lost, refused or dead. */
#include "cmocka_all.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/rollout/leader.h"
#include "inspector/rollout/member.h"

#define NODES	3U
#define QUEUE	8192U
#define TEXT	70000U /* more than a window of parts */
#define LIMIT_S 60

static const struct es_keys keys = {.count = 1, .key = {{.handover = {.k0 = 1, .k1 = 2}}}};

/* struct node - @value: of its configuration: 1 is what was before, 2 what is rolled out; @restarts: how
 * often it has begun anew, @away: steps until it serves again; the rest is what it is to do */
struct node {
	unsigned int id;
	struct es_rollout_leader leader;
	struct es_rollout_member member;
	int value, checked, staged, commits, restarts, away;
	int needs_restart, stays_away;
	int refuses, fails, cannot_go_back;
	int is_dead;
	int cannot_tell; /* that it has switched */
	int dies_of;	 /* 1 + the kind of a message that it does not live to hear */
};

struct packet {
	struct es_rollout_datagram datagram;
	size_t len;
};

static struct node nodes[NODES];
static struct packet queue[QUEUE];
static unsigned int first, used, lost_of; /* one of so many datagrams is lost; 0: none */
static unsigned long long clock_ns, numbers;
static char text[TEXT];

static unsigned long long now(void *ctx)
{
	(void)ctx;
	return clock_ns;
}

static void send_message(void *ctx, const struct es_rollout_message *message)
{
	struct packet *packet = &queue[(first + used) % QUEUE];
	const struct node *node = ctx;

	if ((node->cannot_tell && node->commits) || (lost_of && (unsigned int)rand() % lost_of == 0))
		return;
	assert_true(used < QUEUE);
	packet->len = es_rollout_put(&packet->datagram, message, &keys.key[0].handover);
	used++;
}

static int check(void *ctx, const char *got, size_t len, struct es_conf_error *err)
{
	struct node *node = ctx;

	node->checked++;
	assert_int_equal(len, sizeof(text));
	assert_memory_equal(got, text, len);
	if (node->refuses)
		es_conf_error_set(err, "new.conf:7: node %u lacks it", node->id);
	node->staged = !node->refuses;
	return node->refuses ? -EINVAL : 0;
}

static int commit(void *ctx, struct es_conf_error *err)
{
	struct node *node = ctx;

	assert_true(node->staged);
	node->commits++;
	if (node->fails) {
		es_conf_error_set(err, "its disk is full");
		return -ENOSPC;
	}
	node->value = 2;
	if (node->needs_restart)
		es_conf_error_set(err, "needs a restart");
	return 0;
}

static int revert(void *ctx, struct es_conf_error *err)
{
	struct node *node = ctx;

	if (node->cannot_go_back) {
		es_conf_error_set(err, "its disk is gone");
		return -EIO;
	}
	node->value = 1;
	return 0;
}

static void discard(void *ctx)
{
	((struct node *)ctx)->staged = 0;
}

static int may_restart(void *ctx, unsigned int which, struct es_conf_error *err)
{
	(void)ctx;
	for (unsigned int i = 0; i < NODES; i++) {
		if (i == which || (!nodes[i].away && !nodes[i].is_dead))
			continue;
		es_conf_error_set(err, "node %u does not serve", i);
		return -EAGAIN;
	}
	return 0;
}

#define AWAY_STEPS 20 /* half of them without an answer */

static void restart(void *ctx)
{
	struct node *node = ctx;

	assert_int_equal(may_restart(NULL, node->id, &(struct es_conf_error){}), 0);
	if (node->away)
		return;
	node->away = AWAY_STEPS;
	node->restarts++;
	node->needs_restart = 0;
}

static int has_begun(void *ctx)
{
	return !((struct node *)ctx)->away;
}

static const struct es_rollout_ops ops = {now,	   send_message, check,	  commit,   revert,
					  discard, may_restart,	 restart, has_begun};

static void boot(struct node *node)
{
	es_rollout_member_init(&node->member, &ops, node, node->id, ++numbers * 1000);
}

static int setup(void **state)
{
	(void)state;
	memset(nodes, 0, sizeof(nodes));
	first = used = lost_of = 0;
	clock_ns = 1000000000;
	srand(1);
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)('a' + i * i % 23);
	for (unsigned int i = 0; i < NODES; i++) {
		nodes[i].id = i;
		nodes[i].value = 1;
		boot(&nodes[i]);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < NODES; i++) {
		es_rollout_leader_stop(&nodes[i].leader);
		es_rollout_member_stop(&nodes[i].member);
	}
	return 0;
}

static void deliver(const struct packet *packet)
{
	unsigned int target = packet->datagram.header.target;
	struct es_rollout_datagram datagram;
	struct es_rollout_message message;
	struct node *node = &nodes[target];

	if (node->dies_of == 1 + packet->datagram.header.kind)
		node->is_dead = 1;
	if (node->is_dead || node->away > AWAY_STEPS / 2)
		return;
	assert_int_equal(
		es_rollout_get(&packet->datagram, packet->len, target, NODES, &keys, &datagram, &message), 0);
	if (message.kind == ES_ROLLOUT_WANT || message.kind == ES_ROLLOUT_STATE)
		es_rollout_leader_message(&node->leader, &message);
	else
		es_rollout_member_message(&node->member, &message, es_rollout_is_leading(&node->leader));
}

static void step(void)
{
	while (used) {
		struct packet packet = queue[first];

		first = (first + 1) % QUEUE;
		used--;
		deliver(&packet);
	}
	clock_ns += ES_ROLLOUT_TICK_MS * ES_ROLLOUT_NS_PER_MS;
	for (unsigned int i = 0; i < NODES; i++) {
		if (nodes[i].is_dead)
			continue;
		if (nodes[i].away == AWAY_STEPS) {
			es_rollout_member_stop(&nodes[i].member);
			boot(&nodes[i]);
		}
		if (nodes[i].away && !nodes[i].stays_away)
			nodes[i].away--;
		es_rollout_leader_tick(&nodes[i].leader);
		es_rollout_member_tick(&nodes[i].member);
	}
}

static void lead_with(struct node *node, int is_dry, int restarts)
{
	struct es_conf_error err = {};

	memset(node->leader.node, 0, sizeof(node->leader.node));
	node->leader.node[node->id].state =
		check(node, text, sizeof(text), &err) ? ES_ROLLOUT_REFUSED : ES_ROLLOUT_READY;
	assert_int_equal(es_rollout_lead(&node->leader, &ops, node, node->id, NODES, ++numbers, text,
					 sizeof(text), is_dry, restarts),
			 0);
}

static void lead(struct node *node, int is_dry)
{
	lead_with(node, is_dry, 0);
}

/* Until nobody waits for anything. */
static enum es_rollout_result run(struct node *node)
{
	for (int i = 0; i < 6 * LIMIT_S * 1000 / ES_ROLLOUT_TICK_MS && es_rollout_is_leading(&node->leader);
	     i++)
		step();
	assert_int_equal(node->leader.phase, ES_ROLLOUT_DONE);
	for (int i = 0; i <= ES_ROLLOUT_PATIENCE_MS / ES_ROLLOUT_TICK_MS; i++)
		step();
	for (unsigned int i = 0; i < NODES; i++) {
		assert_true(nodes[i].is_dead || !es_rollout_member_is_busy(&nodes[i].member));
		assert_true(nodes[i].is_dead || !nodes[i].staged);
	}
	return node->leader.result;
}

static void assert_values(int a, int b, int c)
{
	assert_int_equal(nodes[0].value, a);
	assert_int_equal(nodes[1].value, b);
	assert_int_equal(nodes[2].value, c);
}

static void test_all_switch(void **state)
{
	(void)state;
	lead(&nodes[0], 0);
	assert_int_equal(run(&nodes[0]), ES_ROLLOUT_ALL_SWITCHED);
	assert_values(2, 2, 2);
	for (unsigned int i = 0; i < NODES; i++) {
		assert_int_equal(nodes[i].checked, 1);
		assert_int_equal(nodes[i].commits, 1);
	}
	lead(&nodes[1], 0); /* again, by another one */
	assert_int_equal(run(&nodes[1]), ES_ROLLOUT_ALL_SWITCHED);
}

static void test_datagrams_are_lost(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		setup(NULL);
		srand((unsigned int)i);
		lost_of = 4;
		lead(&nodes[0], 0);
		assert_int_equal(run(&nodes[0]), ES_ROLLOUT_ALL_SWITCHED);
		assert_values(2, 2, 2);
		assert_int_equal(nodes[2].commits, 1);
		teardown(NULL);
	}
}

static void test_dry(void **state)
{
	(void)state;
	lead(&nodes[0], 1);
	assert_int_equal(run(&nodes[0]), ES_ROLLOUT_CHECKED);
	assert_values(1, 1, 1);
	assert_int_equal(nodes[2].checked, 1);
}

static void test_one_refuses(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < NODES; i++) { /* the leader, too */
		setup(NULL);
		nodes[i].refuses = 1;
		lead(&nodes[0], 0);
		assert_int_equal(run(&nodes[0]), ES_ROLLOUT_NOT_TAKEN);
		assert_values(1, 1, 1);
		assert_int_equal(nodes[0].leader.node[i].state, ES_ROLLOUT_REFUSED);
		if (i)
			assert_non_null(strstr(nodes[0].leader.node[i].why, "new.conf:7: node"));
		assert_int_equal(nodes[0].leader.node[(i + 1) % NODES].state, ES_ROLLOUT_READY);
	}
}

static void test_one_cannot_switch(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < NODES; i++) {
		setup(NULL);
		nodes[i].fails = 1;
		lead(&nodes[0], 0);
		assert_int_equal(run(&nodes[0]), ES_ROLLOUT_ALL_BACK);
		assert_values(1, 1, 1);
		assert_int_equal(nodes[0].leader.node[i].state, ES_ROLLOUT_FAILED);
		assert_string_equal(nodes[0].leader.node[i].why, "its disk is full");
		assert_int_equal(nodes[0].leader.node[(i + 1) % NODES].state, ES_ROLLOUT_TAKEN_BACK);
	}
}

static void test_one_cannot_go_back(void **state)
{
	(void)state;
	nodes[1].fails = nodes[2].cannot_go_back = 1;
	lead(&nodes[0], 0);
	assert_int_equal(run(&nodes[0]), ES_ROLLOUT_INCOMPLETE);
	assert_values(1, 1, 2);
	assert_int_equal(nodes[0].leader.node[2].state, ES_ROLLOUT_STUCK);
}

static void test_one_is_dead(void **state)
{
	(void)state;
	nodes[2].is_dead = 1;
	lead(&nodes[0], 0);
	assert_int_equal(run(&nodes[0]), ES_ROLLOUT_NOT_TAKEN);
	assert_values(1, 1, 1);
	assert_int_equal(nodes[0].leader.node[2].state, ES_ROLLOUT_LOST);
	assert_int_equal(nodes[0].leader.node[1].state, ES_ROLLOUT_READY);
}

/* While it would take it, and others are still asked: nothing changes. */
static void test_one_dies_before(void **state)
{
	(void)state;
	nodes[1].is_dead = 1;
	lead(&nodes[0], 0);
	while (nodes[0].leader.node[2].state != ES_ROLLOUT_READY)
		step();
	nodes[2].is_dead = 1;
	assert_int_equal(run(&nodes[0]), ES_ROLLOUT_NOT_TAKEN);
	assert_values(1, 1, 1);
	assert_non_null(strstr(nodes[0].leader.node[2].why, "does not answer any more"));
}

/* Told to switch, and gone: the others go on, and the operator is told which node it is. */
static void test_one_dies_at_the_word(void **state)
{
	(void)state;
	nodes[2].dies_of = 1 + ES_ROLLOUT_COMMIT;
	lead(&nodes[0], 0);
	assert_int_equal(run(&nodes[0]), ES_ROLLOUT_INCOMPLETE);
	assert_values(2, 2, 1);
	assert_int_equal(nodes[0].leader.node[2].state, ES_ROLLOUT_LOST);
	nodes[2].is_dead = nodes[2].dies_of = 0; /* and back: once more heals it */
	boot(&nodes[2]);
	lead(&nodes[0], 0);
	assert_int_equal(run(&nodes[0]), ES_ROLLOUT_ALL_SWITCHED);
	assert_values(2, 2, 2);
}

/* A daemon that has begun anew knows nothing of what it said: it must not be taken for one that switches. */
static void test_one_begins_anew(void **state)
{
	struct es_rollout_message forged = {.source = 0, .target = 2, .kind = ES_ROLLOUT_COMMIT};

	(void)state;
	nodes[2].dies_of = 1 + ES_ROLLOUT_COMMIT;
	lead(&nodes[0], 0);
	while (!nodes[2].is_dead)
		step();
	es_rollout_member_stop(&nodes[2].member);
	nodes[2].is_dead = nodes[2].dies_of = 0;
	boot(&nodes[2]);
	assert_int_equal(run(&nodes[0]),
			 ES_ROLLOUT_INCOMPLETE); /* the leader cannot know what it began with */
	assert_values(1, 1, 1);
	/* A recorded message of a rollout does nothing later. */
	forged.rollout = nodes[0].leader.number;
	es_rollout_member_message(&nodes[2].member, &forged, 0);
	assert_int_equal(nodes[2].commits, 0);
}

/* The node has switched, and the new configuration ends its daemon: nobody may say that all are as before. */
static void test_one_begins_anew_with_it(void **state)
{
	(void)state;
	lead(&nodes[0], 0);
	nodes[2].cannot_tell = 1;
	while (!nodes[2].commits)
		step();
	es_rollout_member_stop(&nodes[2].member);
	nodes[2].cannot_tell = 0;
	boot(&nodes[2]);
	assert_int_equal(run(&nodes[0]), ES_ROLLOUT_INCOMPLETE);
	assert_int_equal(nodes[0].leader.node[2].state, ES_ROLLOUT_GONE);
	assert_values(1, 1, 2);
}

static void test_leader_dies(void **state)
{
	(void)state;
	lead(&nodes[0], 0);
	nodes[0].dies_of = 1 + ES_ROLLOUT_STATE;
	for (int i = 0; i < 30; i++)
		step();
	assert_true(nodes[0].is_dead);
	lead(&nodes[1], 0); /* too early */
	assert_int_equal(run(&nodes[1]), ES_ROLLOUT_NOT_TAKEN);
	assert_values(1, 1, 1);
	assert_int_equal(nodes[1].leader.node[2].state, ES_ROLLOUT_BUSY);
	nodes[0].is_dead = nodes[0].dies_of = 0;
	es_rollout_leader_stop(&nodes[0].leader);
	lead(&nodes[1], 0);
	assert_int_equal(run(&nodes[1]), ES_ROLLOUT_ALL_SWITCHED);
	assert_values(2, 2, 2);
}

/* In the same moment neither is taken: each node is busy with one of them. */
static void test_two_at_once(void **state)
{
	(void)state;
	lead(&nodes[0], 0);
	lead(&nodes[1], 0);
	assert_int_equal(run(&nodes[0]), ES_ROLLOUT_NOT_TAKEN);
	assert_int_equal(run(&nodes[1]), ES_ROLLOUT_NOT_TAKEN);
	assert_values(1, 1, 1);
	assert_int_equal(nodes[0].leader.node[1].state, ES_ROLLOUT_BUSY);
	assert_int_equal(nodes[1].leader.node[0].state, ES_ROLLOUT_BUSY);
}

/* An offer that somebody has recorded begins nothing. */
static void test_old_offer(void **state)
{
	struct packet offer;

	(void)state;
	lead(&nodes[0], 0);
	offer = queue[first];
	assert_int_equal(offer.datagram.header.kind, ES_ROLLOUT_OFFER);
	run(&nodes[0]);
	deliver(&offer);
	assert_false(es_rollout_member_is_busy(&nodes[offer.datagram.header.target].member));
}

static void test_left_out(void **state)
{
	(void)state;
	nodes[1].is_dead = 1;
	lead(&nodes[0], 0);
	nodes[0].leader.node[1].state = ES_ROLLOUT_LEFT_OUT;
	assert_int_equal(run(&nodes[0]), ES_ROLLOUT_ALL_SWITCHED);
	assert_values(2, 1, 2);
	assert_int_equal(nodes[0].leader.node[1].state, ES_ROLLOUT_LEFT_OUT);
}

static void test_old_version(void **state)
{
	(void)state;
	lead(&nodes[0], 0);
	nodes[0].leader.node[1].state = ES_ROLLOUT_OLD;
	assert_int_equal(run(&nodes[0]), ES_ROLLOUT_NOT_TAKEN);
	assert_values(1, 1, 1);
}

/* Nodes restart one after the other, while all others serve; the leader is the last, and is not told. */
static void test_restarts(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		setup(NULL);
		srand((unsigned int)i);
		lost_of = i ? 4 : 0;
		for (unsigned int n = 0; n < NODES; n++)
			nodes[n].needs_restart = 1;
		lead_with(&nodes[1], 0, 1);
		assert_int_equal(run(&nodes[1]), ES_ROLLOUT_ALL_SWITCHED);
		assert_values(2, 2, 2);
		assert_int_equal(nodes[0].restarts, 1);
		assert_int_equal(nodes[1].restarts, 0);
		assert_int_equal(nodes[2].restarts, 1);
		assert_int_equal(nodes[1].leader.node[0].state, ES_ROLLOUT_BEGUN);
		assert_int_equal(nodes[1].leader.node[1].state, ES_ROLLOUT_SWITCHED);
		assert_string_equal(nodes[1].leader.node[1].why, "needs a restart");
		teardown(NULL);
	}
}

/* The nodes that need a restart do; and none, where nobody has asked for it. */
static void test_restarts_where_needed(void **state)
{
	(void)state;
	nodes[2].needs_restart = 1;
	lead_with(&nodes[0], 0, 0);
	assert_int_equal(run(&nodes[0]), ES_ROLLOUT_ALL_SWITCHED);
	assert_int_equal(nodes[2].restarts, 0);
	assert_string_equal(nodes[0].leader.node[2].why, "needs a restart");
	lead_with(&nodes[0], 0, 1);
	assert_int_equal(run(&nodes[0]), ES_ROLLOUT_ALL_SWITCHED);
	assert_int_equal(nodes[1].restarts, 0);
	assert_int_equal(nodes[2].restarts, 1);
}

/* The first node that does not return is the last one that was restarted. */
static void test_restart_fails(void **state)
{
	(void)state;
	for (unsigned int n = 0; n < NODES; n++)
		nodes[n].needs_restart = 1;
	nodes[1].stays_away = 1;
	lead_with(&nodes[0], 0, 1);
	assert_int_equal(run(&nodes[0]), ES_ROLLOUT_HALTED);
	assert_int_equal(nodes[1].restarts, 1);
	assert_int_equal(nodes[2].restarts, 0);
	assert_int_equal(nodes[0].leader.node[1].state, ES_ROLLOUT_LOST);
	assert_int_equal(nodes[0].leader.node[2].state, ES_ROLLOUT_SWITCHED);
}

/* A node that does not serve keeps all others from being restarted. */
static void test_one_does_not_serve(void **state)
{
	(void)state;
	nodes[0].needs_restart = nodes[1].needs_restart = 1;
	nodes[2].away = nodes[2].stays_away = 1;
	lead_with(&nodes[0], 0, 1);
	assert_int_equal(run(&nodes[0]), ES_ROLLOUT_HALTED);
	assert_int_equal(nodes[1].restarts, 0);
	assert_non_null(strstr(nodes[0].leader.node[1].why, "node 2 does not serve"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_switch, setup, teardown),
		cmocka_unit_test(test_datagrams_are_lost),
		cmocka_unit_test_setup_teardown(test_dry, setup, teardown),
		cmocka_unit_test(test_one_refuses),
		cmocka_unit_test(test_one_cannot_switch),
		cmocka_unit_test_setup_teardown(test_one_cannot_go_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_is_dead, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_dies_before, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_dies_at_the_word, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_begins_anew, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_begins_anew_with_it, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leader_dies, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_old_offer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_left_out, setup, teardown),
		cmocka_unit_test_setup_teardown(test_old_version, setup, teardown),
		cmocka_unit_test(test_restarts),
		cmocka_unit_test_setup_teardown(test_restarts_where_needed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_restart_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_does_not_serve, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
