// SPDX-License-Identifier: GPL-2.0-or-later
/* Until when the datapath may serve, as membership tells it: begun anew, ended, and kept by a node that has
 * left. */
#include "cmocka_all.h"
#include <string.h>
#include "inspector/daemon/membership_internal.h"
#include "inspector/base/log.h"

#define LEASE_MS 1000

static struct es_state state;
static struct es_daemon owner;
static struct es_membership m;

struct es_state *es_datapath_state(struct es_datapath *dp)
{
	(void)dp;
	return &state;
}

void es_event(enum es_event_kind kind, enum es_log_level level, const char *node, const char *format, ...)
{
	(void)kind;
	(void)level;
	(void)node;
	(void)format;
}

void es_log(enum es_log_level level, const char *format, ...)
{
	(void)level;
	(void)format;
}

static int setup(void **test_state)
{
	(void)test_state;
	memset(&state, 0, sizeof(state));
	memset(&m, 0, sizeof(m));
	m.daemon = &owner;
	m.lease_ms = LEASE_MS;
	m.group.phase = ES_GROUP_STABLE;
	m.group.node[0].is_accepted = 1;
	m.group.lease_ms = LEASE_MS;
	m.group.node[0].grants = 3;
	es_grants_init(&m.group.grants, 0);
	es_grants_start(&m.group.grants, 1, 0);
	es_grants_begin(&m.group.grants, 1, &(struct es_grants_set){.word = {7}});
	es_grants_in_force(&m.group.grants);
	return 0;
}

/* One more of the three nodes has granted a lease that was asked for at that time. */
static void grant(unsigned long long asked_ns)
{
	struct es_grants_ask ask;

	assert_int_equal(es_grants_ask(&m.group.grants, LEASE_MS, asked_ns / 1000000, &ask), 0);
	es_grants_take(&m.group.grants, 1, ask.number);
	es_lease_granted(&m);
}

/* A report of this node's own has returned that was sent at that time. */
static void back(unsigned long long sent_ns)
{
	const struct es_wire_load load = {.sent_ns = sent_ns};
	uint8_t buf[64];
	size_t len = es_wire_put_load(buf, sizeof(buf), &load);

	assert_true(len > 0);
	es_lease_renew(&m, buf, len);
}

static void test_renewed(void **test_state)
{
	unsigned long long now_ns = es_clock_now_ns();

	(void)test_state;
	back(now_ns);
	assert_int_equal(state.attached, 1);
	assert_true(state.lease_ns == now_ns + LEASE_MS * 1000000ULL);
	assert_true(state.firm_ns == now_ns + LEASE_MS * 500000ULL);
	es_lease_end(&m);
	assert_true(state.lease_ns < es_clock_now_ns());
	m.must_rejoin = 1;
	back(now_ns);
	assert_true(state.lease_ns < es_clock_now_ns());
}

/* The others leave this node its connections for good: it must not stand still. */
static void test_left(void **test_state)
{
	(void)test_state;
	back(es_clock_now_ns());
	es_lease_keep(&m);
	assert_true(state.lease_ns == ES_LEASE_NEVER);
	back(es_clock_now_ns()); /* sent as the ring without it came into force */
	assert_true(state.lease_ns == ES_LEASE_NEVER);
	assert_int_equal(state.attached, 0);
	es_lease_end(&m); /* as when corosync ends before the daemon does */
	assert_true(state.lease_ns == ES_LEASE_NEVER);
}

/* As long ago as it takes: the lease that was given by a message of that time is over. */
#define LONG_AGO_NS (LEASE_MS * 1000000ULL + 1000000)

/* The lease runs out while nobody says anything, and this node's messages return later. */
static void lapse(void)
{
	back(es_clock_now_ns() - LONG_AGO_NS);
	assert_true(state.lease_ns <= es_clock_now_ns());
	es_lease_watch(&m);
	assert_true(m.must_end);
}

static int holds(void)
{
	return state.lease_ns > es_clock_now_ns();
}

/* A corosync that stood still hands out, with a token that is long over, all that it had to send. */
static void test_lapsed(void **test_state)
{
	unsigned long long sent_ns;

	(void)test_state;
	lapse();
	sent_ns = es_clock_now_ns();
	back(sent_ns - LONG_AGO_NS);
	for (unsigned int i = 0; i < 3; i++)
		back(sent_ns + i);
	assert_false(holds());
	back(es_clock_now_ns()); /* sent when those had returned: the token goes round */
	assert_true(holds());
	assert_false(m.must_end);
}

/* Nobody has looked meanwhile. */
static void test_lapsed_unnoticed(void **test_state)
{
	(void)test_state;
	back(es_clock_now_ns() - LONG_AGO_NS);
	back(es_clock_now_ns());
	assert_false(holds());
	assert_true(m.must_end);
	back(es_clock_now_ns());
	assert_true(holds());
}

/* The others have made a ring, or are about to: what is unproven ends first. */
static void test_lapsed_and_the_ring_changes(void **test_state)
{
	(void)test_state;
	for (unsigned int i = 0; i < 3; i++) {
		setup(NULL);
		lapse();
		m.group.phase = i ? ES_GROUP_STABLE : ES_GROUP_VIEW;
		m.group.epoch += i == 1;
		if (i == 2)
			m.lapse = 0; /* as es_membership_silence() does, which has its reasons */
		for (unsigned int n = 0; n < 4; n++)
			back(es_clock_now_ns());
		assert_false(holds());
		/* However long the change takes, es_ring_on_stop() is to know that it was only late. */
		assert_true(!m.lapse == (i == 2));
		m.must_end = 0;
		back(es_clock_now_ns());
		assert_true(holds());
		assert_int_equal(m.lapse, 0);
	}
}

/* The bus stands still, as when another node is lost: grants keep what it gave. */
static void test_granted(void **test_state)
{
	unsigned long long asked_ns = es_clock_now_ns() / 1000000 * 1000000;

	(void)test_state;
	grant(asked_ns);
	assert_false(holds()); /* only the bus begins it */
	back(asked_ns - LEASE_MS * 990000ULL);
	grant(asked_ns);
	assert_true(state.lease_ns == asked_ns + LEASE_MS * 1000000ULL);
	assert_int_equal(m.lapse, 0);
	back(asked_ns - LEASE_MS * 900000ULL); /* an earlier end does not shorten it */
	assert_true(state.lease_ns == asked_ns + LEASE_MS * 1000000ULL);
	assert_false(m.must_end);
}

/* But not for ever. */
static void test_granted_without_the_bus(void **test_state)
{
	unsigned long long sent_ns = es_clock_now_ns() - 3 * LONG_AGO_NS;

	(void)test_state;
	back(sent_ns);
	m.has_lease = 1;
	m.must_end = 0;
	state.lease_ns = es_clock_now_ns() + 1000000000; /* by grants before */
	m.bus_ns = sent_ns - LEASE_MS * 1800000ULL;
	grant(es_clock_now_ns());
	assert_true(state.lease_ns < es_clock_now_ns() + 1000000001);
	m.bus_ns = sent_ns;
	grant(es_clock_now_ns() + 500000000);
	assert_true(state.lease_ns > es_clock_now_ns() + 1000000001);
}

/* A token that is long over renews nothing, though grants have kept the lease until now. */
static void test_granted_and_late(void **test_state)
{
	unsigned long long sent_ns, until_ns;

	(void)test_state;
	back(es_clock_now_ns() - LONG_AGO_NS);
	state.lease_ns = until_ns = es_clock_now_ns() + LEASE_MS * 400000ULL; /* by grants before */
	sent_ns = es_clock_now_ns();
	for (unsigned int i = 0; i < 3; i++)
		back(sent_ns + i);
	assert_true(state.lease_ns == until_ns);
	assert_false(m.must_end);
	back(es_clock_now_ns());
	assert_true(state.lease_ns > until_ns);
}

/* A lease that was over for a moment may be another node's. */
static void test_granted_too_late(void **test_state)
{
	(void)test_state;
	lapse();
	grant(es_clock_now_ns());
	assert_false(holds());
	m.must_end = 0;
	m.lapse = 0;
	back(es_clock_now_ns());
	es_lease_take_back(&m);
	es_lease_end(&m);
	grant(es_clock_now_ns());
	assert_false(holds());
	assert_true(m.must_end);
}

/* The clock by which leases end has stood still, and nobody else's: they are over, as if they had run out. */
static void test_suspended(void **test_state)
{
	struct es_grants_ask ask;

	(void)test_state;
	back(es_clock_now_ns());
	assert_int_equal(es_grants_ask(&m.group.grants, LEASE_MS, es_clock_now_ns() / 1000000, &ask), 0);
	es_lease_watch(&m);
	assert_true(holds());
	m.suspended_ns -= 1000000000; /* it was, for so long */
	es_lease_watch(&m);
	assert_false(holds());
	assert_true(m.must_end);
	es_grants_take(&m.group.grants, 1, ask.number); /* granted before that */
	es_lease_granted(&m);
	assert_int_equal(es_grants_until_ms(&m.group.grants, 2), 0);
	assert_false(holds());
	back(m.lapse_ns); /* sent before that */
	assert_int_equal(m.lapse, 2);
	for (unsigned int i = 0; i < 2; i++)
		back(es_clock_now_ns());
	assert_true(holds());
	assert_false(m.must_end);
	grant(es_clock_now_ns());
	assert_true(es_grants_until_ms(&m.group.grants, 2) > 0);
}

/* The first thing that is heard after it may be the grant, or the bus. */
static void test_suspended_unnoticed(void **test_state)
{
	(void)test_state;
	back(es_clock_now_ns());
	m.suspended_ns -= 1000000000;
	back(es_clock_now_ns());
	assert_false(holds());
	setup(NULL);
	back(es_clock_now_ns());
	m.suspended_ns -= 1000000000;
	grant(es_clock_now_ns());
	assert_false(holds());
	/* One that is over already for another reason stays as it is. */
	setup(NULL);
	back(es_clock_now_ns());
	es_lease_take_back(&m);
	m.suspended_ns -= 1000000000;
	es_lease_watch(&m);
	assert_int_equal(m.lapse, 0);
	assert_true(m.must_end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_renewed, setup),
		cmocka_unit_test_setup(test_left, setup),
		cmocka_unit_test_setup(test_lapsed, setup),
		cmocka_unit_test_setup(test_lapsed_unnoticed, setup),
		cmocka_unit_test_setup(test_lapsed_and_the_ring_changes, setup),
		cmocka_unit_test_setup(test_granted, setup),
		cmocka_unit_test_setup(test_granted_without_the_bus, setup),
		cmocka_unit_test_setup(test_granted_and_late, setup),
		cmocka_unit_test_setup(test_granted_too_late, setup),
		cmocka_unit_test_setup(test_suspended, setup),
		cmocka_unit_test_setup(test_suspended_unnoticed, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
