// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tls/record/sealed.h: opened once, by the node it was made for, for its connection, in time; and what
 * several processes remember of it.
 */
#include "cmocka_all.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tls/record/sealed.h"
#include "tls/record/taken.h"

#define SECOND 1000000000ULL
#define NOW    (1764300000ULL * SECOND)

struct world {
	struct es_tls_seal_keys keys;
	struct es_tls_taken *taken;
	struct es_flow flow;
	struct es_tls_state state;
	uint8_t sealed[ES_TLS_SEALED_BYTES];
};

static int setup(void **state)
{
	static struct world w;

	memset(&w, 0, sizeof(w));
	w.keys.count = 2;
	w.keys.id[0] = 0xfedcba98;
	w.keys.id[1] = 4;
	memset(w.keys.key[0], 1, 32);
	memset(w.keys.key[1], 2, 32);
	w.taken = es_tls_taken_new(NOW - 60 * SECOND);
	assert_non_null(w.taken);
	w.flow.client = es_addr_from_v4(es_htonl(0xc0000201));
	w.flow.service = es_addr_from_v4(es_htonl(0xc0000202));
	w.flow.client_port = es_htons(40000);
	w.flow.service_port = es_htons(443);
	w.state.version = ES_TLS_1_3;
	w.state.suite = 0x1301;
	w.state.client.number = 9;
	memset(w.state.client.secret, 0x77, ES_TLS_SECRET_MAX);
	assert_int_equal(es_tls_seal(&w.keys, &w.flow, "b", NOW, &w.state, w.sealed), 0);
	*state = &w;
	return 0;
}

static int teardown(void **state)
{
	es_tls_taken_free(&((struct world *)*state)->taken);
	assert_null(((struct world *)*state)->taken);
	return 0;
}

static enum es_tls_opened unseal_at(struct world *w, const char *self, uint64_t wall_ns)
{
	struct es_tls_state state, untouched;
	enum es_tls_opened opened;

	memset(&state, 0x55, sizeof(state));
	memset(&untouched, 0x55, sizeof(untouched));
	opened = es_tls_unseal(&w->keys, w->taken, &w->flow, self, wall_ns, w->sealed, &state);
	assert_memory_equal(&state, opened == ES_TLS_OPENED ? &w->state : &untouched, sizeof(state));
	return opened;
}

static enum es_tls_opened unseal(struct world *w)
{
	return unseal_at(w, "b", NOW);
}

static void it_is_opened_once(void **state)
{
	struct world *w = *state;

	assert_int_equal(unseal(w), ES_TLS_OPENED);
	for (int i = 0; i < 100; i++)
		assert_int_equal(unseal(w), ES_TLS_SEALED_REPEATED);
	assert_int_equal(unseal_at(w, "b", NOW + 9 * SECOND), ES_TLS_SEALED_REPEATED);
	assert_int_equal(unseal_at(w, "b", NOW + 11 * SECOND), ES_TLS_SEALED_LATE);
}

static void nothing_of_it_can_be_read(void **state)
{
	struct world *w = *state;
	uint8_t again[ES_TLS_SEALED_BYTES];
	size_t same = 0;

	assert_null(memmem(w->sealed, sizeof(w->sealed), w->state.client.secret, 8));
	assert_int_equal(w->sealed[0], ES_TLS_SEALED_FIRST);
	/* The same state is another text each time. */
	assert_int_equal(es_tls_seal(&w->keys, &w->flow, "b", NOW, &w->state, again), 0);
	for (size_t i = ES_TLS_SEALED_HEADER; i < sizeof(again); i++)
		same += again[i] == w->sealed[i];
	assert_true(same < 30);
	assert_int_equal(unseal(w), ES_TLS_OPENED);
	memcpy(w->sealed, again, sizeof(again));
	assert_int_equal(unseal(w), ES_TLS_OPENED);
}

static void it_is_for_one_node(void **state)
{
	struct world *w = *state;

	assert_int_equal(unseal_at(w, "c", NOW), ES_TLS_SEALED_BAD);
	assert_int_equal(unseal_at(w, "", NOW), ES_TLS_SEALED_BAD);
	assert_int_equal(unseal_at(w, "bb", NOW), ES_TLS_SEALED_BAD);
	/* Attempts of others have not used it up. */
	assert_int_equal(unseal_at(w, "b", NOW), ES_TLS_OPENED);
}

static void it_is_for_one_connection(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(w->flow); i++) {
		((uint8_t *)&w->flow)[i] ^= 1;
		assert_int_equal(unseal(w), ES_TLS_SEALED_BAD);
		((uint8_t *)&w->flow)[i] ^= 1;
	}
	assert_int_equal(unseal(w), ES_TLS_OPENED);
}

static void each_bit_matters(void **state)
{
	struct world *w = *state;

	for (size_t bit = 0; bit < 8 * sizeof(w->sealed); bit++) {
		w->sealed[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(unseal(w), bit / 8 == 1 ? ES_TLS_SEALED_UNKNOWN : ES_TLS_SEALED_BAD);
		w->sealed[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_int_equal(unseal(w), ES_TLS_OPENED);
}

static void it_has_its_time(void **state)
{
	struct world *w = *state;

	assert_int_equal(unseal_at(w, "b", NOW + ES_TLS_SEALED_LATE_NS + 1), ES_TLS_SEALED_LATE);
	assert_int_equal(unseal_at(w, "b", NOW - ES_TLS_SEALED_LATE_NS - 1), ES_TLS_SEALED_LATE);
	assert_int_equal(unseal_at(w, "b", NOW + ES_TLS_SEALED_LATE_NS), ES_TLS_OPENED);
}

/* A process that has just begun does not know what the one before it has taken. */
static void what_was_made_before_is_late(void **state)
{
	struct world *w = *state;

	es_tls_taken_free(&w->taken);
	w->taken = es_tls_taken_new(NOW);
	assert_int_equal(unseal(w), ES_TLS_SEALED_LATE);
	assert_int_equal(es_tls_seal(&w->keys, &w->flow, "b", NOW + 1, &w->state, w->sealed), 0);
	assert_int_equal(unseal(w), ES_TLS_OPENED);
}

static void both_keys_open(void **state)
{
	struct world *w = *state;
	struct es_tls_seal_keys keys = w->keys;

	/* The other node has rotated: ours is its previous one. */
	w->keys.id[0] = keys.id[1];
	w->keys.id[1] = keys.id[0];
	memcpy(w->keys.key[0], keys.key[1], 32);
	memcpy(w->keys.key[1], keys.key[0], 32);
	assert_int_equal(unseal(w), ES_TLS_OPENED);
	w->keys.count = 1;
	assert_int_equal(unseal(w), ES_TLS_SEALED_BAD);
	w->keys.count = 0;
	assert_int_equal(unseal(w), ES_TLS_SEALED_BAD);
	assert_int_equal(es_tls_seal(&w->keys, &w->flow, "b", NOW, &w->state, w->sealed), -ENOKEY);
}

static void a_state_of_a_later_version_is_told_apart(void **state)
{
	struct world *w = *state;

	w->state.suite = 0x1304;
	assert_int_equal(es_tls_seal(&w->keys, &w->flow, "b", NOW, &w->state, w->sealed), 0);
	assert_int_equal(unseal(w), ES_TLS_SEALED_UNKNOWN);
}

/* All that fall to one set: when it is full of what might be repeated, nothing more is taken. */
static void a_full_memory_refuses(void **state)
{
	struct world *w = *state;
	uint64_t n;

	for (n = 1; n <= ES_TLS_TAKEN_WAYS; n++)
		assert_int_equal(es_tls_taken_take(w->taken, n * ES_TLS_TAKEN_SETS, NOW + n, NOW),
				 ES_TLS_OPENED);
	assert_int_equal(es_tls_taken_take(w->taken, n * ES_TLS_TAKEN_SETS, NOW + n, NOW),
			 ES_TLS_SEALED_FULL);
	/* Others are not concerned. */
	assert_int_equal(es_tls_taken_take(w->taken, 1, NOW, NOW), ES_TLS_OPENED);
	/*
	 * The first one is too late by now, so its place is free; it does not come back when the clock does.
	 */
	assert_int_equal(
		es_tls_taken_take(w->taken, n * ES_TLS_TAKEN_SETS, NOW + n, NOW + ES_TLS_SEALED_LATE_NS + 2),
		ES_TLS_OPENED);
	assert_int_equal(es_tls_taken_take(w->taken, ES_TLS_TAKEN_SETS, NOW + 1, NOW), ES_TLS_SEALED_LATE);
	assert_int_equal(es_tls_taken_take(w->taken, 2 * ES_TLS_TAKEN_SETS, NOW + 2, NOW),
			 ES_TLS_SEALED_REPEATED);
}

static void it_remembers_as_many_as_it_says(void **state)
{
	struct world *w = *state;
	uint64_t seed = 1;

	for (int i = 0; i < 130000; i++)
		assert_int_equal(es_tls_taken_take(w->taken, es_test_random(&seed), NOW, NOW), ES_TLS_OPENED);
	seed = 1;
	for (int i = 0; i < 130000; i++)
		assert_int_equal(es_tls_taken_take(w->taken, es_test_random(&seed), NOW, NOW),
				 ES_TLS_SEALED_REPEATED);
}

/* Four processes have the same thousand: each is opened by one of them. */
static void processes_share_it(void **state)
{
	struct world *w = *state;
	unsigned int *opened =
		mmap(NULL, 4096 * sizeof(*opened), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pids[4];
	int status;

	assert_true(opened != MAP_FAILED);
	for (int p = 0; p < 4; p++) {
		pids[p] = fork();
		if (pids[p])
			continue;
		for (uint64_t n = 0; n < 1000; n++)
			if (es_tls_taken_take(w->taken, n * 7919 + 1, NOW, NOW) == ES_TLS_OPENED)
				__atomic_fetch_add(&opened[n], 1, __ATOMIC_SEQ_CST);
		_exit(0);
	}
	for (int p = 0; p < 4; p++) {
		assert_int_equal(waitpid(pids[p], &status, 0), pids[p]);
		assert_int_equal(status, 0);
	}
	for (int n = 0; n < 1000; n++)
		assert_int_equal(opened[n], 1);
	munmap(opened, 4096 * sizeof(*opened));
}

/* Processes that are killed wherever they are leave it usable, and what was opened stays so. */
static void a_killed_process_blocks_nobody(void **state)
{
	struct world *w = *state;
	uint64_t *reached = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t next = 1;
	int status;

	assert_true(reached != MAP_FAILED);
	alarm(60); /* a mutex that nobody gives back would wait for ever */
	for (int round = 0; round < 200; round++) {
		uint64_t from = *reached;
		pid_t pid = fork();

		if (!pid) {
			for (uint64_t n = from + 1;; n++) {
				es_tls_taken_take(w->taken, n, NOW + round * 20 * SECOND,
						  NOW + round * 20 * SECOND);
				__atomic_store_n(reached, n, __ATOMIC_SEQ_CST);
			}
		}
		while (__atomic_load_n(reached, __ATOMIC_SEQ_CST) < from + 100)
			;
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		next = from + 1;
		assert_int_equal(es_tls_taken_take(w->taken, next, NOW + round * 20 * SECOND,
						   NOW + round * 20 * SECOND),
				 ES_TLS_SEALED_REPEATED);
	}
	alarm(0);
	munmap(reached, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_is_opened_once, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_of_it_can_be_read, setup, teardown),
		cmocka_unit_test_setup_teardown(it_is_for_one_node, setup, teardown),
		cmocka_unit_test_setup_teardown(it_is_for_one_connection, setup, teardown),
		cmocka_unit_test_setup_teardown(each_bit_matters, setup, teardown),
		cmocka_unit_test_setup_teardown(it_has_its_time, setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_made_before_is_late, setup, teardown),
		cmocka_unit_test_setup_teardown(both_keys_open, setup, teardown),
		cmocka_unit_test_setup_teardown(a_state_of_a_later_version_is_told_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_memory_refuses, setup, teardown),
		cmocka_unit_test_setup_teardown(it_remembers_as_many_as_it_says, setup, teardown),
		cmocka_unit_test_setup_teardown(processes_share_it, setup, teardown),
		cmocka_unit_test_setup_teardown(a_killed_process_blocks_nobody, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
