// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Effects of a ring's change on what a node has: it is ended or kept, or there are doubts about it. The
 * datapath and the bus are played.
 */
#include "cmocka_all.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/daemon/internal.h"
#include "inspector/daemon/membership_internal.h"
#include "inspector/daemon/serving.h"
#include "inspector/base/log.h"

#define NODES	 3
#define SELF	 1
#define LEASE_MS 1000

static struct es_state state;
static struct es_daemon owner;
static struct es_daemon_serving serving;
static struct es_membership m;
static struct es_conf *conf;
static unsigned int ended;
static int install_rc;

struct es_state *es_datapath_state(struct es_datapath *dp)
{
	(void)dp;
	return &state;
}

int es_datapath_settle(void)
{
	return 0;
}

int es_datapath_connections(struct es_datapath *dp, es_datapath_connection_fn fn, void *ctx)
{
	(void)dp;
	(void)fn;
	(void)ctx;
	return 0;
}

int es_datapath_end_unproven(struct es_datapath *dp, unsigned int *ret_count)
{
	(void)dp;
	ended++;
	*ret_count = 0;
	return 0;
}

int es_daemon_install(struct es_daemon *d, struct es_cluster *next)
{
	if (install_rc)
		return install_rc;
	es_cluster_free(&d->cluster);
	d->cluster = next;
	return 0;
}

void es_bus_send(struct es_bus *bus, enum es_wire_type type, const void *payload, size_t len)
{
	(void)bus;
	(void)type;
	(void)payload;
	(void)len;
}

void es_worker_learn(struct es_worker *w, const struct es_proof *proofs, size_t count)
{
	(void)w;
	(void)proofs;
	(void)count;
}

void es_membership_silence(struct es_membership *of, const char *why)
{
	(void)why;
	memset(&of->share, 0, sizeof(of->share));
	of->must_end = 1;
}

void es_daemon_serving_look_in(struct es_daemon *d, double seconds)
{
	(void)d;
	(void)seconds;
}

void es_daemon_serving_given(struct es_daemon *d)
{
	(void)d;
}

void es_membership_load_send(struct es_membership *of)
{
	(void)of;
}

void es_event(enum es_event_kind kind, enum es_log_level level, const char *node, const char *format, ...)
{
	(void)kind;
	(void)level;
	(void)node;
	(void)format;
}

void es_story_serve(struct es_membership *of, uint32_t epoch)
{
	(void)of;
	(void)epoch;
}

void es_log(enum es_log_level level, const char *format, ...)
{
	(void)level;
	(void)format;
}

static const unsigned int all[ES_NODES_MAX] = {100, 100, 100}, without_2[ES_NODES_MAX] = {100, 100, 0};

static void ring(uint32_t epoch, const unsigned int *weights)
{
	es_ring_on_stop(&m, epoch, weights);
	es_ring_on_serve(&m, epoch);
}

/* A member for long, when nothing was lost. */
static int setup(void **test_state)
{
	(void)test_state;
	conf = calloc(1, sizeof(*conf));
	assert_non_null(conf);
	conf->cluster.virtual_nodes = 63;
	conf->node_count = NODES;
	for (unsigned int i = 0; i < NODES; i++) {
		conf->nodes[i].address = es_addr_from_v4(htonl(10u << 24 | 78u << 16 | (i + 1)));
		conf->nodes[i].weight = 100;
	}
	memset(&state, 0, sizeof(state));
	memset(&owner, 0, sizeof(owner));
	memset(&serving, 0, sizeof(serving));
	owner.serving = &serving;
	memset(&m, 0, sizeof(m));
	owner.conf = conf;
	assert_int_equal(es_cluster_new(conf, SELF, 0, NULL, &m.share, &owner.cluster), 0);
	m.daemon = &owner;
	m.lease_ms = LEASE_MS;
	m.group.self = SELF;
	m.group.node_count = NODES;
	m.group.member_count = NODES;
	install_rc = 0;
	ring(1, all);
	for (unsigned int slot = 0; slot < ES_RING_SLOTS; slot++)
		if (m.tenure.since_ms[slot])
			m.tenure.since_ms[slot] -= 1000;
	ended = 0;
	return 0;
}

static int teardown(void **test_state)
{
	(void)test_state;
	es_cluster_free(&owner.cluster);
	es_conf_free(&conf);
	return 0;
}

static unsigned int slots(const struct es_share *share)
{
	unsigned int count = 0;

	for (unsigned int slot = 0; slot < ES_RING_SLOTS; slot++)
		count += share->bits[slot / 64] >> (slot % 64) & 1;
	return count;
}

/* The slots where there are doubts, of those of @share. */
static unsigned int doubted(const struct es_share *share)
{
	unsigned int count = 0;

	for (unsigned int slot = 0; slot < ES_RING_SLOTS; slot++)
		if (share->bits[slot / 64] >> (slot % 64) & 1)
			count += (unsigned int)es_cluster_has_doubts(owner.cluster, (__u64)slot << 48);
	return count;
}

static void lose_a_node(void)
{
	m.group.doubt_until_ms = es_membership_now_ms() + ES_GROUP_DOUBT_MS;
}

/* The leases of all ran out until it was known that one has died. */
static void lapse(void)
{
	m.must_end = 1;
	m.lapse = 2;
	m.group.others_ahead = 1;
}

/* Nobody has served a ring without this node: what it has is nobody else's. */
static void test_all_were_late(void **test_state)
{
	struct es_share before = m.share;

	(void)test_state;
	lose_a_node();
	lapse();
	es_ring_on_stop(&m, 2, without_2);
	assert_int_equal(ended, 0);
	assert_false(m.must_end);
	assert_memory_equal(&m.share, &before, sizeof(before));
	es_ring_on_serve(&m, 2);
	assert_int_equal(ended, 0);
	assert_int_equal(doubted(&before), 0);
	assert_int_equal(doubted(&m.share), slots(&m.share) - slots(&before));
}

/* The others have: they may have what this node has, and have this node's slots. */
static void test_others_served(void **test_state)
{
	(void)test_state;
	lose_a_node();
	lapse();
	m.group.others_served = 1;
	es_ring_on_stop(&m, 2, without_2);
	assert_int_equal(ended, 1);
	assert_false(m.must_end);
	assert_int_equal(slots(&m.share), 0);
	es_ring_on_serve(&m, 2);
	assert_int_equal(ended, 1);
	assert_true(slots(&m.share) > 0);
	assert_int_equal(doubted(&m.share), slots(&m.share));
}

/* They have stopped for a ring without this node, whose lease grants have kept until now. */
static void test_others_began(void **test_state)
{
	(void)test_state;
	m.has_lease = 1;
	m.group.others_ahead = m.group.others_began = 1;
	es_ring_on_stop(&m, 2, without_2);
	assert_int_equal(ended, 1);
	assert_int_equal(slots(&m.share), 0);
	assert_false(m.has_lease);
}

/* The node was silent for a reason of its own: whatever the others have served, it does not know. */
static void test_silent_before(void **test_state)
{
	(void)test_state;
	lapse();
	m.lapse = 0;
	es_ring_on_stop(&m, 2, without_2);
	assert_int_equal(ended, 1);
	assert_int_equal(slots(&m.share), 0);
}

/*
 * The node gains slots, and a second node is lost while there are doubts: what it has since then stays
 * doubtful.
 */
static void test_doubts_go_on(void **test_state)
{
	struct es_share before = m.share, gained;

	(void)test_state;
	lose_a_node();
	ring(2, without_2);
	gained = m.share;
	assert_int_equal(doubted(&gained), slots(&gained) - slots(&before));
	lose_a_node();
	ring(3, all);
	ring(4, without_2);
	assert_int_equal(doubted(&before), 0);
	assert_int_equal(doubted(&gained), slots(&gained) - slots(&before));
	/* They are over. */
	state.doubt_ns = m.group.doubt_until_ms = 0;
	for (unsigned int slot = 0; slot < ES_RING_SLOTS; slot++)
		if (m.tenure.since_ms[slot])
			m.tenure.since_ms[slot] -= 1000;
	lose_a_node();
	ring(5, without_2);
	assert_int_equal(doubted(&gained), 0);
}

/* The others say that one was lost which this node has not missed. */
static void test_doubts_that_others_have(void **test_state)
{
	(void)test_state;
	es_ring_on_stop(&m, 2, all);
	lose_a_node();
	es_ring_on_serve(&m, 2);
	assert_true(state.doubt_ns > 0);
	assert_int_equal(doubted(&m.share), slots(&m.share));
}

/* The node ends what it may have executed in slots that it keeps: there are doubts there, too. */
static void test_ended_in_slots_that_are_kept(void **test_state)
{
	struct es_share before = m.share;

	(void)test_state;
	lose_a_node();
	m.must_end = 1;
	m.group.member_count = NODES - 1;
	ring(2, without_2);
	assert_int_equal(ended, 1);
	assert_true(slots(&before) > 0);
	assert_int_equal(doubted(&m.share), slots(&m.share));
}

static void test_no_ring(void **test_state)
{
	struct es_share before = m.share;

	(void)test_state;
	lose_a_node();
	install_rc = -ENOMEM;
	es_ring_on_stop(&m, 2, without_2);
	assert_true(m.must_end && m.must_rejoin);
	assert_int_equal(slots(&m.share), 0);
	install_rc = 0;
	ring(3, all);
	assert_memory_equal(&m.share, &before, sizeof(before));
	assert_int_equal(doubted(&before), slots(&before)); /* it has them anew */
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_all_were_late),
		TEST(test_others_served),
		TEST(test_others_began),
		TEST(test_silent_before),
		TEST(test_doubts_go_on),
		TEST(test_doubts_that_others_have),
		TEST(test_ended_in_slots_that_are_kept),
		TEST(test_no_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
