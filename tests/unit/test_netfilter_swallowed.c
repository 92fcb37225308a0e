// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests of which the kernel makes no socket, on a node of the netfilter datapath: the node gives them back
 * when it is certain that nothing has come of them here, nor will, and never otherwise.
 * tests/netfilter/test_withdraw.py tests whether the kernel keeps its word.
 */
#include "cmocka_all.h"
#include <errno.h>
#include "netfilter_letter.h"

static void later(struct world *w, __u32 ms)
{
	w->node->now_ns += ms * 1000000ULL;
}

/* An attempt has come to nothing, and will make nothing for as long as @withdrawn is so. */
static void swallow(struct world *w)
{
	w->rebuild_rc = -ETIMEDOUT;
	w->withdrawn = ISN + 1;
}

/* A request that comes to nothing @tries times within a second, and is repeated when the second is over. */
static void begin(struct world *w, struct letter *l, size_t tries)
{
	ring_give(w, OTHER);
	swallow(w);
	letter_begin(w, l, ES_HANDOVER_REQUEST, "GET");
	for (size_t i = 0; i < tries; i++) {
		letter_put(w, l, 1);
		later(w, i + 1 < tries ? 100 : ES_SETTLED_VANISHED_MS);
	}
	assert_int_equal(w->rebuilt.count, tries);
	assert_int_equal(counted(w, ES_COUNT_rebuild_refused), tries);
	assert_int_equal(w->sent.count, 0);
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
	assert_int_equal(counted(w, ES_COUNT_handover_vanished), 0);
}

static void test_given_back(void **state)
{
	struct world *w = *state;
	struct letter l;

	begin(w, &l, 3);
	letter_put(w, &l, 1);
	assert_int_equal(w->rebuilt.count, 3);
	assert_int_equal(answer(w).kind, ES_HANDOVER_NACK);
	assert_int_equal(answer(w).nack, ES_NACK_VANISHED);
	assert_int_equal(counted(w, ES_COUNT_handover_vanished), 1);

	/* A promise: also when the kernel makes them again. */
	w->rebuild_rc = 0;
	w->withdrawn = 0;
	letter_put(w, &l, 1);
	assert_int_equal(answer(w).kind, ES_HANDOVER_NACK);
	assert_int_equal(counted(w, ES_COUNT_handover_refused), 1);
	assert_int_equal(w->rebuilt.count, 3);
	l.h.attempt = 1;
	letter_put(w, &l, 1);
	assert_int_equal(w->rebuilt.count, 4);
	assert_int_equal(counted(w, ES_COUNT_handover_rebuilt), 1);
}

/*
 * If there is no other node, the request arrives here again under its next number, and is tried for a second
 * once more.
 */
static void test_comes_here_again(void **state)
{
	struct world *w = *state;
	struct letter l;

	begin(w, &l, 1);
	letter_put(w, &l, 1);
	assert_int_equal(answer(w).nack, ES_NACK_VANISHED);
	l.h.attempt = 1;
	letter_put(w, &l, 1);
	assert_int_equal(w->rebuilt.count, 2);
	later(w, ES_SETTLED_VANISHED_MS - 1);
	letter_put(w, &l, 1);
	assert_int_equal(w->rebuilt.count, 3);
	later(w, 1);
	letter_put(w, &l, 1);
	assert_int_equal(w->rebuilt.count, 3);
	assert_int_equal(answer(w).attempt, 1);
	assert_int_equal(counted(w, ES_COUNT_handover_vanished), 2);
}

/*
 * The SYN has arrived late, or `conntrack -F` has taken the entry: nobody knows, and the request is tried
 * again.
 */
static void test_not_certain(void **state)
{
	struct world *w = *state;
	struct letter l;

	begin(w, &l, 2);
	w->withdrawn = 0;
	letter_put(w, &l, 1);
	assert_int_equal(w->rebuilt.count, 3);
	assert_int_equal(w->sent.count, 0);
	/* That of another request of the flow says nothing. */
	w->withdrawn = ISN + 2;
	letter_put(w, &l, 1);
	assert_int_equal(w->rebuilt.count, 4);
	w->rebuild_rc = 0;
	letter_put(w, &l, 1);
	assert_int_equal(w->rebuilt.count, 5);
	w->withdrawn = ISN + 1;
	w->found = (struct es_nf_found){.listening = 1};
	assert_kept(w, &l);
}

/* An attempt that may have made something: the second begins anew. */
static void test_something_came(void **state)
{
	static const int others[] = {-ENOBUFS, -ECONNREFUSED, -EADDRINUSE, -ENOMEM};
	struct world *w = *state;
	struct letter l;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		swallow(w);
		letter_begin(w, &l, ES_HANDOVER_REQUEST, "GET");
		letter_put(w, &l, 1);
		w->rebuild_rc = others[i];
		letter_put(w, &l, 1);
		swallow(w);
		later(w, ES_SETTLED_VANISHED_MS);
		letter_put(w, &l, 1);
		assert_int_equal(w->rebuilt.count, 3 * (i + 1));
		assert_int_equal(w->sent.count, 0);
		es_nf_swallowed_forget(w->node->swallowed, es_settled_request(the_flow_hash(w), ISN + 1));
	}
}

/*
 * The kernel has made it all the same, and its server has answered and closed it, of which the client has
 * heard nothing.
 */
static void test_made_late_and_over(void **state)
{
	struct world *w = *state;
	struct letter l;

	begin(w, &l, 2);
	w->found = (struct es_nf_found){.socket = ES_SOCKET_ESTABLISHED};
	letter_put(w, &l, 1);
	assert_int_equal(w->injected.count, 1);
	assert_int_equal(counted(w, ES_COUNT_handover_duplicate), 1);
	w->found = (struct es_nf_found){.listening = 1};
	assert_kept(w, &l);
}

/*
 * A new daemon has forgotten for how long attempts have come to nothing: the request is tried for a second
 * more.
 */
static void test_new_daemon(void **state)
{
	struct world *w = *state;
	struct letter l;

	begin(w, &l, 2);
	memset(w->node->swallowed, 0, sizeof(w->node->swallowed));
	letter_put(w, &l, 1);
	assert_int_equal(w->rebuilt.count, 3);
	assert_int_equal(w->sent.count, 0);
	later(w, ES_SETTLED_VANISHED_MS);
	letter_put(w, &l, 1);
	assert_int_equal(w->rebuilt.count, 3);
	assert_int_equal(answer(w).nack, ES_NACK_VANISHED);
}

/* A node that is silent, or whose server is gone, says that first: nothing was made, so it may. */
static void test_refused_for_another_reason(void **state)
{
	struct world *w = *state;
	struct letter l;

	begin(w, &l, 1);
	w->withdrawn = 0;
	w->found.listening = 0;
	letter_put(w, &l, 1);
	assert_int_equal(answer(w).nack, ES_NACK_NO_LISTENER);
	assert_int_equal(counted(w, ES_COUNT_handover_vanished), 0);
}

/*
 * If two requests have one place, the later one gets it when the other's second is long over, or when the
 * other was given back.
 */
static void test_places(void **state)
{
	struct es_nf_swallowed table[ES_NF_SWALLOWED] = {};
	const __u64 first = 1ULL << 24 | 1, second = first | 2;

	(void)state;
	assert_false(es_nf_swallowed_is(table, first, 10000));
	es_nf_swallowed_note(table, first, 10000);
	es_nf_swallowed_note(table, first, 10900);
	assert_false(es_nf_swallowed_is(table, first, 10999));
	assert_true(es_nf_swallowed_is(table, first, 11000));
	es_nf_swallowed_note(table, second, 11000);
	assert_false(es_nf_swallowed_is(table, second, 13000));
	es_nf_swallowed_forget(table, second);
	assert_true(es_nf_swallowed_is(table, first, 13999));
	es_nf_swallowed_note(table, second, 14000);
	assert_false(es_nf_swallowed_is(table, first, 15000));
	assert_true(es_nf_swallowed_is(table, second, 15000));
	es_nf_swallowed_forget(table, second);
	assert_false(es_nf_swallowed_is(table, second, 15000));
}

int main(void)
{
#define EACH(name) ES_TEST_OF(name, v4), ES_TEST_OF(name, v6)
	const struct CMUnitTest tests[] = {
		EACH(test_given_back),
		EACH(test_comes_here_again),
		EACH(test_not_certain),
		EACH(test_something_came),
		EACH(test_made_late_and_over),
		EACH(test_new_daemon),
		EACH(test_refused_for_another_reason),
		cmocka_unit_test(test_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
