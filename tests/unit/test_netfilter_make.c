// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A request whose connection was made here, or may have been, is executed once: by no other node, and not
 * here again, however long ago it was, and whoever was not there to see it.
 */
#include "cmocka_all.h"
#include <errno.h>
#include "netfilter_letter.h"
#include "netfilter/node/make.h"
#include "netfilter/node/settled.h"
#include "netfilter/node/unproven.h"

static void later(struct world *w, __u32 ms)
{
	w->node->now_ns += ms * 1000000ULL;
}

/*
 * Time goes by, and the request is repeated again and again: nobody else may have it, nor is it made once
 * more.
 */
static void assert_kept(struct world *w, struct letter *l)
{
	const size_t rebuilt = w->rebuilt.count;

	for (int i = 0; i < 3; i++) {
		letter_put(w, l, 1);
		later(w, ES_SETTLED_MADE_MS);
	}
	assert_int_equal(w->rebuilt.count, rebuilt);
	assert_int_equal(w->sent.count, 0);
	assert_int_equal(counted(w, ES_COUNT_handover_old), 3);
	assert_int_equal(counted(w, ES_COUNT_handover_vanished), 0);
}

/* The connection is over before anybody looks. */
static void test_over(void **state)
{
	struct world *w = *state;
	struct letter l;

	w->found_after = w->found;
	letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET");
	letter_put(w, &l, 1);
	assert_int_equal(counted(w, ES_COUNT_handover_rebuilt), 1);
	assert_kept(w, &l);
}

/*
 * The kernel has made it when nobody waited for it any more, and its server has answered and closed it, of
 * which the client has heard nothing.
 */
static void test_made_late_and_over(void **state)
{
	struct world *w = *state;
	struct letter l;

	ring_give(w, OTHER);
	w->rebuild_rc = -ENOBUFS;
	letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET");
	letter_put(w, &l, 1);
	w->found = (struct es_nf_found){.socket = ES_SOCKET_ESTABLISHED};
	letter_put(w, &l, 1);
	assert_int_equal(w->injected.count, 1);
	assert_int_equal(counted(w, ES_COUNT_handover_duplicate), 1);
	w->found = (struct es_nf_found){.listening = 1};
	assert_kept(w, &l);
}

/* There is a socket of a request that was given back: another node may have it by now, so it gets nothing. */
static void test_given_back_and_made(void **state)
{
	struct world *w = *state;
	struct letter l;

	w->config.leased = 1;
	ring_give(w, OTHER);
	w->found.listening = 0;
	letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET");
	letter_put(w, &l, 1);
	assert_int_equal(answer(w).nack, ES_NACK_NO_LISTENER);
	w->found = (struct es_nf_found){.socket = ES_SOCKET_ESTABLISHED};
	w->first = ISN + 1;
	letter_put(w, &l, 1);
	assert_int_equal(w->injected.count, 0);
	assert_int_equal(es_nf_unproven_walk(w->node, 0, NULL, NULL), 0); /* nor is there any to call with */
	/* Under the next number, it is this node's again. */
	l.h.attempt = 1;
	letter_put(w, &l, 1);
	assert_int_equal(w->injected.count, 1);
}

/* struct dying - what was noted when a daemon died in the middle of an attempt */
static struct dying {
	struct world *w;
	struct es_settled_set settled[64];
	unsigned int sets;
} dying;

static int rebuild_and_die(void *ctx, const __u8 *packet, size_t len, const struct es_flow *socket,
			   const struct es_nf_making *making, __u64 now_ns)
{
	const struct es_nf_memory *memory = &dying.w->node->memory;

	memcpy(dying.settled, memory->settled, dying.sets * sizeof(dying.settled[0]));
	return hand_rebuild(ctx, packet, len, socket, making, now_ns);
}

/*
 * The next daemon has the tables, and does not know what became of the attempt: there may have been a
 * connection, which is over.
 */
static void test_daemon_dies_meanwhile(void **state)
{
	struct world *w = *state;
	struct letter l;

	dying.w = w;
	dying.sets = es_settled_sets(w->node->memory.decision_sets);
	assert_in_range(dying.sets, 1, 64);
	w->node->hands.rebuild = rebuild_and_die;
	w->rebuild_rc = -ENOBUFS;
	letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET");
	letter_put(w, &l, 1);
	w->node->hands.rebuild = hand_rebuild;
	memcpy(w->node->memory.settled, dying.settled, dying.sets * sizeof(dying.settled[0]));
	later(w, ES_SETTLED_MADE_MS);
	assert_kept(w, &l);
}

/*
 * A daemon that died, or one of an earlier version, has noted that it was about to make it: elsewhere, that
 * counts as vanished by now.
 */
static void test_noted_before(void **state)
{
	struct world *w = *state;
	struct letter l;

	es_nf_settle(w->node, the_flow_hash(w), ISN + 1, ES_SETTLED_MAKE, 0);
	later(w, ES_SETTLED_MADE_MS);
	letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET");
	assert_kept(w, &l);
}

/* The connection's SYN is on its way still: nothing is counted, and the request's copies are copies. */
static void test_being_made(void **state)
{
	struct world *w = *state;
	struct letter l;

	w->rebuild_rc = -EINPROGRESS;
	letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET");
	letter_put(w, &l, 1);
	assert_int_equal(counted(w, ES_COUNT_handover_rebuilt) + counted(w, ES_COUNT_rebuild_refused), 0);
	letter_put(w, &l, 1);
	assert_int_equal(w->rebuilt.count, 1);
	assert_int_equal(counted(w, ES_COUNT_handover_old), 1);
	/* Then it is made; its service may have gone with a new configuration. */
	w->config.service_count = 0;
	ring_give(w, SELF);
	es_nf_made(&w->making, 0);
	w->config.service_count = 1;
	ring_give(w, SELF);
	assert_int_equal(counted(w, ES_COUNT_handover_rebuilt), 1);
	w->node->memory.counters[ES_COUNT_handover_old] = 0;
	assert_kept(w, &l);
}

/*
 * The attempt has come to nothing after all: the next copy is another attempt; if attempts keep coming to
 * nothing, the request goes back.
 */
static void test_comes_to_nothing(void **state)
{
	struct world *w = *state;
	struct letter l;

	ring_give(w, OTHER);
	w->rebuild_rc = -EINPROGRESS;
	letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET");
	letter_put(w, &l, 1);
	es_nf_made(&w->making, -ETIMEDOUT);
	assert_int_equal(counted(w, ES_COUNT_rebuild_refused), 1);
	letter_put(w, &l, 1);
	assert_int_equal(w->rebuilt.count, 2);
	es_nf_made(&w->making, -ETIMEDOUT);
	later(w, ES_SETTLED_VANISHED_MS);
	w->withdrawn = ISN + 1;
	letter_put(w, &l, 1);
	assert_int_equal(w->rebuilt.count, 2);
	assert_int_equal(answer(w).nack, ES_NACK_VANISHED);
}

/*
 * A new connection of the same ports: what was to become of the old one is given up before the new one is
 * noted.
 */
static void test_another_meanwhile(void **state)
{
	struct world *w = *state;
	struct letter l;

	w->rebuild_rc = -EINPROGRESS;
	letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET");
	letter_put(w, &l, 1);
	assert_int_equal(w->given_up, 1); /* also of the first one, of which there is nothing */
	l.packet_len = segment(l.packet, ISN + 100001, 6001, ES_TCP_ACK | ES_TCP_PSH, 9, "GET");
	letter_put(w, &l, 1);
	assert_int_equal(w->given_up, 2);
	assert_int_equal(w->rebuilt.count, 2);
}

int main(void)
{
#define EACH(name) ES_TEST_OF(name, v4), ES_TEST_OF(name, v6)
	const struct CMUnitTest tests[] = {
		EACH(test_over),
		EACH(test_made_late_and_over),
		EACH(test_given_back_and_made),
		EACH(test_daemon_dies_meanwhile),
		EACH(test_noted_before),
		EACH(test_being_made),
		EACH(test_comes_to_nothing),
		EACH(test_another_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
