// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests in the worlds of group_world.h: clients whose answers are lost repeat them, nodes inspect, give,
 * execute, remember, hear and doubt as daemon and datapath do. Whatever happens to the nodes, none is
 * executed twice; and where nobody is lost, none is refused.
 */
#include "cmocka_all.h"
#include "group_world.h"

#define REQUESTS     48
#define FIRST_WAIT   200
#define LONGEST_WAIT 30000

struct client_request {
	unsigned int slot;
	uint64_t begun_ms;
	uint64_t next_ms;
	uint64_t wait_ms;
	unsigned int executed;
	unsigned int number;
};

/* A machine's memory of a request. It is lost with the power, but not when a daemon dies. */
struct memory {
	int target; /* -1: it has not decided */
	uint64_t decided_ms;
	int was_overheard;
	int has_socket;
	int was_built;
	int was_ended; /* unheard: ES_SETTLED_ENDED */
};

static struct client_request requests[REQUESTS];
static struct memory memory[NODES][REQUESTS];
static uint64_t doubt_until[NODES];
static uint64_t hears_since[NODES];
static int is_off[NODES];
static uint64_t doubts_since[NODES];
static uint64_t stopped_at[NODES];
static uint64_t had_since[NODES][SLOTS]; /* as struct es_tenure */
static unsigned int executed, answered, refused;
static uint64_t lost_share; /* in a world where n1 alone is lost */

static void request_begin(unsigned int r)
{
	static unsigned int count;

	requests[r] = (struct client_request){
		.slot = random_below(SLOTS),
		.begun_ms = now,
		.next_ms = now + random_below(400),
		.wait_ms = FIRST_WAIT,
		.number = ++count,
	};
	for (unsigned int i = 0; i < NODES; i++)
		memory[i][r] = (struct memory){.target = -1};
}

static int has_lease(unsigned int node)
{
	return now < datapath[node].lease_until;
}

static int may_say(unsigned int node)
{
	return has_lease(node) || process[node].has_left;
}

static int acts(unsigned int node, unsigned int slot)
{
	return process[node].is_running && !process[node].is_stalled && datapath[node].share >> slot & 1 &&
	       has_lease(node);
}

/* As state_of() in inspector/daemon/ring.c, and es_inspect_was_lost(). */
static int was_lost(unsigned int node, unsigned int target, uint64_t decided_ms)
{
	const struct es_group_node *n = &process[node].group.node[target];
	int is_absent = !(n->is_member && n->is_accepted) && !n->hold_until_ms &&
			(n->reason == ES_GROUP_PROCESS || n->reason == ES_GROUP_NODE ||
			 n->reason == ES_GROUP_SUSPECTED);

	return is_absent || (n->lost_ms && n->lost_ms >= decided_ms);
}

static void tell(unsigned int node, const char *what, unsigned int r, int other)
{
	char text[64];

	snprintf(text, sizeof(text), "request %u, n%d", requests[r].number, other + 1);
	trace(what, node, text);
}

/* The client is told, if it hears that; returns whether it does. */
static int refuse(unsigned int r)
{
	int was_given = 0;

	refused++;
	for (unsigned int i = 0; i < NODES; i++)
		was_given |= memory[i][r].target == 0;
	if (lost_share && !(lost_share >> requests[r].slot & 1) && !was_given)
		fail_msg("request %u of slot %u is refused, which the lost node has not inspected, nor was "
			 "given",
			 requests[r].number, requests[r].slot);
	if (!random_below(3))
		return 0;
	request_begin(r);
	return 1;
}

/*
 * A message: it is lost, refused, or makes the socket; @from then knows no better. Returns whether the client
 * is told that its request may have been executed.
 */
static int give(unsigned int from, unsigned int target, unsigned int r)
{
	struct memory *there = &memory[target][r];

	if ((target != from && part[target] != part[from]) || is_off[target] || !random_below(10))
		return 0;
	if (there->was_built || owner(weights[target], requests[r].slot) != (int)from) /* which is stale */
		return 0;
	if (there->was_ended)
		return refuse(r);
	if (!has_lease(target)) {
		memory[from][r].target = -1; /* a NACK */
		return 0;
	}
	there->was_built = there->has_socket = there->was_overheard = 1;
	executed++;
	tell(target, "executes", r, (int)from);
	if (++requests[r].executed > 1)
		fail_msg("request %u of slot %u is executed twice, now by n%u at %llu ms, begun at %llu",
			 requests[r].number, requests[r].slot, target + 1, (unsigned long long)now,
			 (unsigned long long)requests[r].begun_ms);
	return 0;
}

static int inspect(unsigned int node, unsigned int r)
{
	struct memory *m = &memory[node][r];
	uint64_t since = had_since[node][requests[r].slot];
	int is_doubtful = now < doubt_until[node] && since >= doubts_since[node] &&
			  (m->was_overheard || requests[r].begun_ms <= hears_since[node]);
	unsigned int target;

	if (m->target >= 0 && (was_lost(node, (unsigned int)m->target, m->decided_ms) ||
			       (is_doubtful && m->decided_ms < since)))
		return refuse(r);
	if (m->target < 0 && is_doubtful)
		return refuse(r);
	if (m->target < 0) {
		do
			target = random_below(NODES);
		while (target != node && !process[node].group.node[target].is_accepted);
		m->target = (int)target;
		m->decided_ms = now;
	}
	tell(node, "gives", r, m->target);
	return give(node, (unsigned int)m->target, r);
}

/* All machines hear it. */
static void request_send(unsigned int r)
{
	int is_over = 0;

	requests[r].next_ms = now + requests[r].wait_ms;
	requests[r].wait_ms = requests[r].wait_ms * 2 > LONGEST_WAIT ? LONGEST_WAIT : requests[r].wait_ms * 2;
	for (unsigned int i = 0; i < NODES && !is_over; i++) {
		if (memory[i][r].has_socket) {
			if (may_say(i) && random_below(2)) {
				answered++;
				request_begin(r);
				is_over = 1;
			}
		} else if (acts(i, requests[r].slot)) {
			is_over = inspect(i, r);
		} else if (!is_off[i]) {
			memory[i][r].was_overheard |= requests[r].begun_ms > hears_since[i];
		}
	}
}

static void on_tick(void)
{
	for (unsigned int r = 0; r < REQUESTS; r++)
		if (now >= requests[r].next_ms)
			request_send(r);
}

static void end_unproven(struct process *p)
{
	es_group_was_away(&p->group, now - 1);
	datapath[p->node].share = 0;
	for (unsigned int r = 0; r < REQUESTS; r++)
		if (memory[p->node][r].has_socket) {
			memory[p->node][r].has_socket = memory[p->node][r].was_built = 0;
			memory[p->node][r].was_ended = 1;
		}
}

/* As es_tenure_set(), and doubt_set() in inspector/daemon/ring.c. */
static void tenure_set(unsigned int node)
{
	for (unsigned int slot = 0; slot < SLOTS; slot++)
		if (!(datapath[node].share >> slot & 1))
			had_since[node][slot] = 0;
		else if (!had_since[node][slot])
			had_since[node][slot] = stopped_at[node];
}

static void doubt_set(struct process *p, uint64_t since)
{
	if (now >= doubt_until[p->node])
		doubts_since[p->node] = since;
	doubt_until[p->node] = p->group.doubt_until_ms;
}

static void stop(struct process *p)
{
	struct es_wire_proof proofs[REQUESTS];
	char buf[sizeof(proofs) + 8];
	size_t count = 0;

	stopped_at[p->node] = now;
	doubt_set(p, now);
	if (p->must_end && p->group.others_ahead)
		end_unproven(p);
	tenure_set(p->node);
	for (unsigned int r = 0; r < REQUESTS; r++)
		if (memory[p->node][r].has_socket &&
		    owner(weights[p->node], requests[r].slot) != (int)p->node)
			proofs[count++] = (struct es_wire_proof){r, requests[r].number, 0};
	if (count)
		on_send(p, ES_WIRE_PROOFS, buf,
			es_wire_put_proofs(buf, sizeof(buf), p->group.epoch, proofs, count));
}

static void serve(struct process *p)
{
	uint64_t share = datapath[p->node].share;

	doubt_set(p, 0);
	if (p->must_end && p->group.member_count < NODES)
		end_unproven(p);
	datapath[p->node].share = share;
	tenure_set(p->node);
}

static void learn(struct process *p, unsigned int node, const struct es_wire_proof *proofs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		unsigned int r = (unsigned int)proofs[i].flow_hash;

		if (requests[r].number == proofs[i].cookie &&
		    owner(weights[p->node], requests[r].slot) == (int)p->node) {
			tell(p->node, "learns", r, (int)node);
			memory[p->node][r].target = (int)node;
			memory[p->node][r].decided_ms = now;
		}
	}
}

static void started(struct process *p)
{
	doubts_since[p->node] = 0;
	memset(had_since[p->node], 0, sizeof(had_since[p->node]));
	es_group_start(&p->group, doubt_until[p->node], now);
	if (p->must_end)
		es_group_was_away(&p->group, now);
}

static const struct world_hooks request_hooks = {
	.stop = stop, .serve = serve, .proofs = learn, .start = started, .tick = on_tick};

static void world_begin(uint64_t number)
{
	seed = number;
	memset(doubt_until, 0, sizeof(doubt_until));
	memset(hears_since, 0, sizeof(hears_since));
	memset(is_off, 0, sizeof(is_off));
	executed = answered = refused = 0;
	lost_share = 0;
	hooks = NULL;
	begin();
	for (unsigned int i = 0; i < NODES; i++)
		started(&process[i]);
	hooks = &request_hooks;
	for (unsigned int r = 0; r < REQUESTS; r++)
		request_begin(r);
	run(3000);
	assert_whole();
	/* Nobody knows who was there before; that is over. */
	for (unsigned int i = 0; i < NODES; i++)
		doubt_until[i] = process[i].group.doubt_until_ms = 0;
	refused = 0;
}

static void world_end(void)
{
	end();
	hooks = NULL;
}

/* The node's power is lost: it forgets all. */
static void power_off(unsigned int node)
{
	if (process[node].is_running)
		crash(node);
	process[node].has_left = 0;
	datapath[node] = (struct datapath){0, 0};
	served[node] = 0;
	doubt_until[node] = 0;
	is_off[node] = 1;
	for (unsigned int r = 0; r < REQUESTS; r++)
		memory[node][r] = (struct memory){.target = -1};
}

/* The node starts again, whether it was powered off, has crashed or left. */
static void come_back(unsigned int node)
{
	int had_left = process[node].has_left;

	if (process[node].is_running)
		crash(node);
	process[node].has_left = had_left;
	if (is_off[node])
		hears_since[node] = now;
	is_off[node] = 0;
	join(node, same);
}

/* Nodes leave and join in order, and weights change: no request is refused, however often it is repeated. */
static void test_nobody_is_lost(void **state)
{
	(void)state;
	for (uint64_t world = 1; world <= 6; world++) {
		world_begin(world);
		for (unsigned int i = 0; i < 12; i++) {
			unsigned int node = random_below(NODES);

			run(300 + random_below(1500));
			if (process[node].has_left)
				come_back(node);
			else if (random_below(2))
				es_group_leave(&process[node].group);
			else
				es_group_change(&process[node].group, random_below(NODES),
						ES_WIRE_CHANGE_WEIGHT, (uint16_t)(50 + random_below(200)));
			run(600); /* it is done before the next one begins */
		}
		print_message("world %llu: %u executed, %u answered, %u refused\n", (unsigned long long)world,
			      executed, answered, refused);
		assert_true(executed > REQUESTS && answered > REQUESTS);
		assert_int_equal(refused, 0);
		world_end();
	}
}

/* A node that was away itself when another was lost has not seen that: the others tell it. */
static void test_away_when_one_is_lost(void **state)
{
	(void)state;
	world_begin(99);
	process[3].is_stalled = 1; /* its corosync hangs, so it is left out */
	run(PATIENCE_MS + 3000);
	assert_int_equal(process[0].group.node[3].reason, ES_GROUP_SUSPECTED);
	/* Long ago, for all that concerns this. */
	for (unsigned int i = 0; i < NODES; i++)
		doubt_until[i] = process[i].group.doubt_until_ms = 0;
	power_off(0);
	run(4000);
	process[3].is_stalled = 0;
	run(5000);
	assert_int_equal(process[3].group.phase, ES_GROUP_STABLE);
	assert_true(doubt_until[3] > now && doubt_until[3] <= now + ES_GROUP_DOUBT_MS);
	world_end();
}

/*
 * A node that has left in order has no doubts of its own. It returns after the loss of another: what that one
 * may have executed, it has heard, and the others tell it that there was a loss.
 */
static void test_comes_back_behind_a_loss(void **state)
{
	uint64_t lost_ms;

	(void)state;
	world_begin(98);
	es_group_leave(&process[3].group);
	run(1000);
	assert_true(process[3].has_left);
	crash(3); /* its daemon ends */
	run(1000);
	lost_ms = now;
	power_off(0);
	run(4000);
	assert_int_equal(process[1].group.phase, ES_GROUP_STABLE);
	assert_true(now >= doubt_until[3] && now < doubt_until[1]);
	come_back(3);
	run(3000);
	assert_int_equal(process[3].group.phase, ES_GROUP_STABLE);
	assert_in_range(doubt_until[3], lost_ms + ES_GROUP_DOUBT_MS, lost_ms + ES_GROUP_DOUBT_MS + 1000);
	world_end();
}

/*
 * A node is lost, and before the others know, their leases are over. They have the same slots afterwards: of
 * the requests that are repeated there, only those that the lost node may have executed are refused.
 */
static void test_others_keep_what_they_have(void **state)
{
	(void)state;
	for (uint64_t world = 300; world < 320; world++) {
		world_begin(world);
		for (unsigned int i = 0; i < NODES; i++)
			frozen_until[i] = now + LEASE_MS + 400;
		lost_share = datapath[0].share;
		run(LEASE_MS + 300);
		assert_int_equal(inspected(), 0);
		power_off(0);
		run(6000);
		print_message("world %llu: %u executed, %u refused\n", (unsigned long long)world, executed,
			      refused);
		assert_int_equal(process[1].group.phase, ES_GROUP_STABLE);
		assert_true(executed > REQUESTS && refused);
		world_end();
	}
}

static void test_doubt_ends(void **state)
{
	(void)state;
	world_begin(7);
	crash(1);
	run(3000);
	assert_true(doubt_until[0] > now && refused > 0);
	join(1, same);
	run(ES_GROUP_DOUBT_MS);
	for (unsigned int i = 0; i < NODES; i++)
		assert_true(doubt_until[i] <= now);
	refused = 0;
	run(3000);
	assert_int_equal(refused, 0);
	world_end();
}

static void test_random_worlds(void **state)
{
	static const enum deed deeds[] = {SPLIT,     MERGE, CRASH, COME_BACK, COME_BACK,
					  POWER_OFF, LEAVE, STALL, CHANGE};
	uint64_t first = world_setting("EARSHOT_SEED", 1000), worlds = world_setting("EARSHOT_WORLDS", 40);

	(void)state;
	for (uint64_t world = first; world < first + worlds; world++) {
		print_message("world %llu\n", (unsigned long long)world);
		world_begin(world);
		for (unsigned int i = 0; i < 25; i++) {
			unsigned int node = random_below(NODES);
			enum deed deed;

			run(1 + random_below(random_below(4) ? 60 : 4000));
			deed = deeds[random_below(sizeof(deeds) / sizeof(deeds[0]))];
			if (deed == COME_BACK) {
				if (!process[node].is_running || process[node].has_left)
					come_back(node);
			} else if (deed == POWER_OFF) {
				/* The loss of one that has left in order is not seen. */
				if (process[node].is_running && es_group_is_in(&process[node].group) &&
				    !process[node].group.is_leaving)
					power_off(node);
			} else {
				world_do(deed, node);
			}
		}
		world_mend(come_back);
		world_end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nobody_is_lost),
		cmocka_unit_test(test_away_when_one_is_lost),
		cmocka_unit_test(test_comes_back_behind_a_loss),
		cmocka_unit_test(test_others_keep_what_they_have),
		cmocka_unit_test(test_doubt_ends),
		cmocka_unit_test(test_random_worlds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
