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

/* The daemon has died, and the next one has its tables. */
static void next_daemon(struct world *w)
{
	const struct es_nf_hands hands = w->node->hands;
	const struct es_nf_node_params params = {.path = w->path,
						 .hands = &hands,
						 .workers = 1,
						 .queue_bytes = QUEUE_BYTES,
						 .decision_sets = 64};
	const __u64 now_ns = w->node->now_ns;

	es_nf_node_free(&w->node);
	assert_int_equal(es_nf_node_new(&params, &w->node), 0);
	w->node->now_ns = now_ns;
	ring_give(w, SELF);
}

/*
 * The next daemon does not know what became of an attempt that was begun: there may have been a connection,
 * which is over.
 */
static void test_daemon_dies_meanwhile(void **state)
{
	struct world *w = *state;
	struct letter l;

	w->rebuild_rc = -EINPROGRESS; /* nobody hears of it any more */
	letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET");
	letter_put(w, &l, 1);
	next_daemon(w);
	later(w, ES_SETTLED_MADE_MS);
	assert_kept(w, &l);
}

/* Nothing can have come of one that was not begun, so its client does not wait in vain. */
static void test_daemon_dies_before(void **state)
{
	struct world *w = *state;
	struct letter l;

	w->rebuild_rc = -EINPROGRESS;
	w->is_unbegun = 1;
	letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET");
	letter_put(w, &l, 1);
	next_daemon(w);
	w->rebuild_rc = 0;
	w->is_unbegun = 0;
	letter_put(w, &l, 1);
	assert_int_equal(w->rebuilt.count, 2);
	assert_int_equal(counted(w, ES_COUNT_handover_rebuilt), 1);
	assert_int_equal(w->sent.count, 0);
	w->found = (struct es_nf_found){.listening = 1};
	assert_kept(w, &l);
}

/* Nothing is noted of it, or no more: it must not begin, since it might be executed twice. */
static void test_no_note(void **state)
{
	struct world *w = *state;
	const struct es_flow flow = the_flow();

	assert_int_equal(es_nf_make_begins(w->node, &flow, ISN + 1), -ENOBUFS);
	es_nf_settle(w->node, the_flow_hash(w), ISN + 1, ES_SETTLED_MAKE, 0);
	assert_int_equal(es_nf_make_begins(w->node, &flow, ISN + 2), -ENOBUFS);
	assert_int_equal(es_nf_make_begins(w->node, &flow, ISN + 1), 0);
	assert_int_equal(es_nf_make_begins(w->node, &flow, ISN + 1), 0); /* the SYN comes again */
}

/*
 * The daemon has stood still when it was about to make it, and may go on with that: elsewhere, it counts as
 * vanished by now.
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
		EACH(test_daemon_dies_before),
		EACH(test_no_note),
		EACH(test_noted_before),
		EACH(test_being_made),
		EACH(test_comes_to_nothing),
		EACH(test_another_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
