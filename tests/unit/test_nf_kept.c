// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The connections that are kept, against a model: a kernel that is played, with entries and sockets of few
 * flows.
 */
#include "cmocka_all.h"
#include <errno.h>
#include <string.h>
#include "netfilter/kernel/socket.h"
#include "netfilter/rebuild/kept.h"

#define FLOWS 1000

/* The kernel's state of each flow, and what should be kept of it. */
static struct played {
	int has_entry; /* of ours, unless it is foreign */
	int is_foreign;
	int has_socket;
	int is_kept;
	int is_held;
	__u32 isn, kept_isn, timeout_s;
	unsigned int restored;
} flows[FLOWS];
static int failure;	     /* of the next request to the kernel */
static unsigned int looks;   /* at entries */
static unsigned int clashes; /* so often a packet makes an entry before ours is there */

static struct es_flow flow(unsigned int number)
{
	struct es_flow f = {
		.client = es_addr_from_v4(es_htonl(0x0a000000 + number)),
		.service = es_addr_from_v4(es_htonl(0x0a010001)),
		.client_port = es_htons(40000),
		.service_port = es_htons(80),
	};

	return f;
}

static struct played *played(const struct es_flow *f)
{
	return &flows[es_ntohl(f->client.w[3]) - 0x0a000000];
}

static struct es_nf_entry entry_of(const struct es_flow *f)
{
	return (struct es_nf_entry){
		.flow = *f,
		.socket = *f,
		.offsets.isn = played(f)->isn,
		.has_synproxy = !played(f)->is_foreign,
	};
}

int es_nf_conntrack_get(struct es_nf_conntrack *ct, const struct es_flow *f, struct es_nf_entry *ret_entry)
{
	(void)ct;
	looks++;
	if (failure)
		return failure;
	*ret_entry = entry_of(f);
	return played(f)->has_entry ? 0 : -ENOENT;
}

int es_nf_conntrack_restore(struct es_nf_conntrack *ct, const struct es_nf_entry *entry)
{
	struct played *p = played(&entry->flow);

	(void)ct;
	if (clashes) {
		clashes--;
		return -EEXIST;
	}
	assert_int_equal(entry->offsets.isn, p->kept_isn);
	assert_int_equal(entry->is_held, p->is_held);
	p->has_entry = 1;
	p->is_foreign = 0;
	p->isn = p->kept_isn;
	p->timeout_s = entry->timeout_s;
	p->restored++;
	return 0;
}

int es_nf_conntrack_walk(struct es_nf_conntrack *ct, es_nf_entry_fn fn, void *ctx)
{
	static int is_disturbed = 1;

	(void)ct;
	for (unsigned int i = 0; i < FLOWS; i++) {
		struct es_flow f = flow(i);
		struct es_nf_entry entry = entry_of(&f);

		if (flows[i].has_entry && !flows[i].is_foreign && (!is_disturbed || i % 2))
			fn(ctx, &entry);
	}
	is_disturbed = !is_disturbed;
	return is_disturbed ? 0 : -EINTR;
}

int es_nf_socket_look(struct es_nf_netlink *nl, const struct es_flow *f, struct es_nf_socket *ret_socket)
{
	(void)nl;
	*ret_socket = (struct es_nf_socket){.state = played(f)->has_socket ? ES_NF_TCP_ESTABLISHED
									   : ES_NF_TCP_LISTEN};
	return 0;
}

static size_t kept_by_model(void)
{
	size_t n = 0;

	for (unsigned int i = 0; i < FLOWS; i++)
		n += (size_t)flows[i].is_kept;
	return n;
}

static int set_up(void **state)
{
	struct es_nf_kept *kept;

	memset(flows, 0, sizeof(flows));
	failure = 0;
	assert_int_equal(es_nf_kept_new(FLOWS, &kept), 0);
	*state = kept;
	return 0;
}

static int tear_down(void **state)
{
	struct es_nf_kept *kept = *state;

	es_nf_kept_free(&kept);
	assert_null(kept);
	return 0;
}

/* One of all things that can happen to a flow. */
static void step(struct es_nf_kept *kept, unsigned int number, unsigned int what)
{
	struct es_nf_conntrack ct = {};
	struct es_flow f = flow(number);
	struct played *p = &flows[number];
	unsigned int restored = p->restored;
	int rc, due;

	switch (what) {
	case 0: /* it is made, perhaps again, and looked at */
		p->has_entry = p->has_socket = 1;
		p->is_foreign = 0;
		p->kept_isn = ++p->isn;
		p->is_kept = 1;
		assert_int_equal(es_nf_kept_look(kept, &ct, &f), 0);
		break;
	case 1: /* it leaves */
		p->has_entry = p->has_socket = p->is_kept = 0;
		es_nf_kept_forget(kept, &f);
		break;
	case 2: /* its socket ends */
		p->has_socket = 0;
		break;
	default: /* its entry goes, and perhaps a packet has made another one since */
		p->has_entry = p->is_foreign = what == 4;
		due = p->is_kept && p->has_socket;
		rc = es_nf_kept_restore(kept, &ct, NULL, &f);
		assert_int_equal(rc, due);
		assert_int_equal(p->restored - restored, due);
		if (!p->has_socket)
			p->is_kept = 0;
		assert_int_equal(es_nf_kept_restore(kept, &ct, NULL, &f), 0);
	}
	assert_int_equal(es_nf_kept_may_have(kept, &f), p->is_kept);
	assert_int_equal(es_nf_kept_count(kept), kept_by_model());
}

static void test_against_the_model(void **state)
{
	uint64_t seed = 5;

	for (int i = 0; i < 100000; i++)
		step(*state, (unsigned int)(es_test_random(&seed) % FLOWS), es_test_random(&seed) % 5);
}

#define TURN 7

/* By turns, each of which asks the kernel no more than it may. */
static size_t restore_all(struct es_nf_kept *kept, struct es_nf_conntrack *ct)
{
	size_t restored = 0;

	es_nf_kept_restore_begin(kept);
	while (es_nf_kept_is_restoring(kept)) {
		looks = 0;
		restored += es_nf_kept_restore_some(kept, ct, NULL, TURN);
		assert_in_range(looks, 0, TURN);
	}
	return restored;
}

static void test_all_at_once(void **state)
{
	struct es_nf_conntrack ct = {};
	size_t alive = 0;

	for (unsigned int i = 0; i < FLOWS; i++)
		step(*state, i, 0);
	for (unsigned int i = 0; i < FLOWS; i++) {
		flows[i].has_entry = i % 3 == 0;
		flows[i].has_socket = i % 2 == 0;
		alive += i % 3 && i % 2 == 0;
		flows[i].is_kept = i % 2 == 0;
	}
	assert_int_equal(restore_all(*state, &ct), alive);
	assert_int_equal(es_nf_kept_count(*state), kept_by_model());
	assert_int_equal(restore_all(*state, &ct), 0);
}

/*
 * A new look at all flows begins while one is under way: all are looked at that were missing when the new one
 * began.
 */
static void test_all_again(void **state)
{
	struct es_nf_conntrack ct = {};

	for (unsigned int i = 0; i < FLOWS; i++)
		step(*state, i, 0);
	es_nf_kept_restore_begin(*state);
	(void)es_nf_kept_restore_some(*state, &ct, NULL, FLOWS / 2);
	for (unsigned int i = 0; i < FLOWS; i++)
		flows[i].has_entry = 0;
	assert_int_equal(restore_all(*state, &ct), FLOWS);
}

/* Between turns, connections begin, go and end, and the table grows. */
static void test_turns(void **state)
{
	struct es_nf_conntrack ct = {};
	struct es_nf_kept *kept = *state;
	uint64_t seed = 7;

	for (unsigned int known = 20; known <= FLOWS; known += 7) {
		for (unsigned int i = 0; i < known; i++)
			flows[i].has_entry = 0;
		es_nf_kept_restore_begin(kept);
		while (es_nf_kept_is_restoring(kept)) {
			unsigned int number = (unsigned int)(es_test_random(&seed) % known);
			struct es_flow f = flow(number);
			struct played *p = &flows[number];

			(void)es_nf_kept_restore_some(kept, &ct, NULL, 1 + es_test_random(&seed) % 9);
			p->has_entry = p->has_socket = p->is_kept = es_test_random(&seed) % 3 != 0;
			p->kept_isn = ++p->isn;
			if (p->is_kept)
				assert_int_equal(es_nf_kept_look(kept, &ct, &f), 0);
			else
				es_nf_kept_forget(kept, &f);
		}
		assert_int_equal(es_nf_kept_count(kept), kept_by_model());
		for (unsigned int i = 0; i < known; i++)
			assert_int_equal(flows[i].has_entry, flows[i].is_kept);
	}
}

static void test_what_is_there_when_a_daemon_begins(void **state)
{
	struct es_nf_conntrack ct = {};
	struct es_flow f = flow(1);

	for (unsigned int i = 0; i < FLOWS; i++)
		flows[i].has_entry = flows[i].has_socket = i % 3 != 0, flows[i].is_foreign = i % 3 == 2;
	assert_int_equal(es_nf_kept_look_all(*state, &ct), 0);
	assert_int_equal(es_nf_kept_count(*state), FLOWS / 3);
	flows[1].has_entry = 0;
	assert_int_equal(es_nf_kept_restore(*state, &ct, NULL, &f), 1);
}

/*
 * While a connection leaves, its server's segments are held, also when the kernel has forgotten the
 * connection's entry; until the connection stays after all.
 */
static void test_one_that_is_leaving(void **state)
{
	struct es_nf_conntrack ct = {};
	struct es_flow leaving = flow(1), unknown = flow(2);

	step(*state, 1, 0);
	for (int is_held = 1; is_held >= 0; is_held--) {
		es_nf_kept_hold(*state, &leaving, is_held);
		es_nf_kept_hold(*state, &unknown, is_held);
		flows[1].is_held = is_held;
		flows[1].has_entry = 0;
		assert_int_equal(es_nf_kept_restore(*state, &ct, NULL, &leaving), 1);
	}
	assert_int_equal(es_nf_kept_count(*state), 1);
}

/*
 * The kernel does not tell a client's timestamp: it is known of the connection for which it was told, as long
 * as it is that.
 */
static void test_client_ts(void **state)
{
	struct es_nf_conntrack ct = {};
	struct es_flow f = flow(1);
	struct es_nf_entry made;

	assert_int_equal(es_nf_kept_client_ts(*state, &f), 0);
	flows[1].isn = 7;
	flows[1].has_entry = 1;
	made = entry_of(&f);
	made.client_ts = 77;
	assert_int_equal(es_nf_kept_keep(*state, &ct, &made), 0);
	assert_int_equal(es_nf_kept_look(*state, &ct, &f), 0);
	assert_int_equal(es_nf_kept_client_ts(*state, &f), 77);
	flows[1].isn = 8;
	assert_int_equal(es_nf_kept_look(*state, &ct, &f), 0);
	assert_int_equal(es_nf_kept_client_ts(*state, &f), 0);
}

/* The kernel has forgotten it before anybody has looked. */
static void test_one_that_is_gone_at_once(void **state)
{
	struct es_nf_conntrack ct = {};
	struct es_flow f = flow(1);
	struct es_nf_entry made;

	flows[1].isn = flows[1].kept_isn = 7;
	flows[1].has_socket = 1;
	made = entry_of(&f);
	assert_int_equal(es_nf_kept_keep(*state, &ct, &made), 0);
	assert_int_equal(es_nf_kept_look(*state, &ct, &f), -ENOENT);
	assert_int_equal(es_nf_kept_restore(*state, &ct, NULL, &f), 1);
}

static void test_limits_and_failures(void **state)
{
	struct es_nf_conntrack ct = {};
	struct es_flow first = flow(0), second = flow(1);
	struct es_nf_kept *small;

	(void)state;
	flows[0].has_entry = flows[1].has_entry = flows[0].has_socket = 1;
	assert_int_equal(es_nf_kept_new(1, &small), 0);
	assert_false(es_nf_kept_may_have(small, &second));
	assert_int_equal(es_nf_kept_look(small, &ct, &first), 0);
	assert_true(es_nf_kept_may_have(small, &second)); /* there was no room for it, perhaps */
	assert_int_equal(es_nf_kept_look(small, &ct, &second), -ENOSPC);
	assert_int_equal(es_nf_kept_look(small, &ct, &first), 0);
	assert_int_equal(es_nf_kept_look_all(small, &ct), 0); /* a daemon begins, however many there are */
	assert_int_equal(es_nf_kept_count(small), 1);
	failure = -ENOBUFS;
	assert_int_equal(es_nf_kept_look(small, &ct, &first), -ENOBUFS);
	assert_int_equal(es_nf_kept_restore(small, &ct, NULL, &first), -ENOBUFS);
	assert_int_equal(es_nf_kept_count(small), 1); /* nothing is forgotten because the kernel is busy */
	failure = 0;
	flows[0].is_foreign = 1;
	assert_int_equal(es_nf_kept_look(small, &ct, &first), -ENOENT);
	es_nf_kept_free(&small);
}

/* Mostly, an entry goes long after its connection: then conntrack is not asked what it has instead. */
/* Packets arrive between the deletion of what is in its place and its creation. */
static void test_packets_in_between(void **state)
{
	struct es_nf_conntrack ct = {};
	const struct es_flow f = flow(0);

	step(*state, 0, 0);
	flows[0].is_foreign = 1;
	clashes = 3;
	assert_int_equal(es_nf_kept_restore(*state, &ct, NULL, &f), 1);
	assert_int_equal(clashes, 0);
	assert_false(flows[0].is_foreign);
	/* Not for ever. */
	flows[0].is_foreign = 1;
	clashes = 1000;
	assert_int_equal(es_nf_kept_restore(*state, &ct, NULL, &f), -EEXIST);
	assert_in_range(clashes, 900, 999);
	clashes = 0;
	assert_int_equal(es_nf_kept_restore(*state, &ct, NULL, &f), 1);
}

static void test_one_that_is_over_costs_one_question(void **state)
{
	struct es_nf_conntrack ct = {};
	struct es_flow f = flow(1);

	step(*state, 1, 0);
	flows[1].has_entry = flows[1].has_socket = flows[1].is_kept = 0;
	looks = 0;
	assert_int_equal(es_nf_kept_restore(*state, &ct, NULL, &f), 0);
	assert_int_equal(looks, 0);
	assert_int_equal(es_nf_kept_count(*state), 0);
}

/* The connection's entry still has the time of a handshake when the kernel tells of it. */
static void test_what_the_kernel_told_while_it_was_made(void **state)
{
	struct es_nf_conntrack ct = {.established_s = 7200};
	struct es_flow f = flow(3), other = flow(4);
	struct es_nf_entry entry;

	flows[3].isn = flows[3].kept_isn = 5;
	flows[3].has_socket = flows[4].is_foreign = 1;
	entry = entry_of(&f);
	entry.timeout_s = 60;
	assert_int_equal(es_nf_kept_keep(*state, &ct, &entry), 0);
	assert_int_equal(es_nf_kept_restore(*state, &ct, NULL, &f), 1);
	assert_int_equal(flows[3].timeout_s, 7200);
	entry = entry_of(&other);
	assert_int_equal(es_nf_kept_keep(*state, &ct, &entry), -ENOENT);
	assert_int_equal(es_nf_kept_count(*state), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_the_kernel_told_while_it_was_made, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_against_the_model, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_all_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_all_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_turns, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_there_when_a_daemon_begins, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_one_that_is_leaving, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_client_ts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_one_that_is_gone_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_one_that_is_over_costs_one_question, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_limits_and_failures, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_packets_in_between, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
