// SPDX-License-Identifier: GPL-2.0-or-later
/* The flow directory: its table, its datagrams, and what a node tells of its connections. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cmocka_all.h"
#include "inspector/peers/idle_flows.h"
#include "inspector/peers/kept_words.h"

#define S  1000000000ULL
#define MS 1000000ULL

static const struct es_keys keys = {
	.count = 1,
	.key[0].handover = {.k0 = 0x0706050403020100ULL, .k1 = 0x0f0e0d0c0b0a0908ULL},
};

static struct es_kept kept_of(unsigned int number, unsigned int owner)
{
	return (struct es_kept){
		.flow = {.client = es_addr_from_v4(es_htonl(0x0a000000 + number)),
			 .service = es_addr_from_v4(es_htonl(0xc000020a)),
			 .client_port = es_htons(40000),
			 .service_port = es_htons(80)},
		.options = {.mss = 1460, .snd_wscale = 7, .rcv_wscale = 8, .wscale_ok = 1, .tstamp_ok = 1},
		.seq = 1000 + number,
		.ack = 2000 + number,
		.requests = 3,
		.moves = 1,
		.service = 2,
		.owner = (__u8)owner,
	};
}

/* A record fits a segment whose two numbers are its own, and none that differs in one. */
static void test_exact(void **state)
{
	struct es_kept kept = kept_of(1, 2), got;
	struct es_directory *d;
	unsigned long long told_ns;

	(void)state;
	assert_int_equal(es_directory_new(8, &d), 0);
	es_directory_keep(d, 77, &kept, 5);
	assert_int_equal(es_directory_find(d, 77, kept.seq, kept.ack, &got, &told_ns), 1);
	assert_memory_equal(&got, &kept, sizeof(kept));
	assert_int_equal(told_ns, 5);
	for (int by = -1; by <= 1; by += 2) {
		assert_int_equal(es_directory_find(d, 77, kept.seq + (__u32)by, kept.ack, &got, &told_ns), 0);
		assert_int_equal(es_directory_find(d, 77, kept.seq, kept.ack + (__u32)by, &got, &told_ns), 0);
		assert_int_equal(es_directory_take(d, 77, kept.seq, kept.ack + (__u32)by, &got), 0);
	}
	assert_int_equal(es_directory_find(d, 78, kept.seq, kept.ack, &got, &told_ns), 0);
	/* One of two gets it. */
	assert_int_equal(es_directory_take(d, 77, kept.seq, kept.ack, &got), 1);
	assert_int_equal(es_directory_take(d, 77, kept.seq, kept.ack, &got), 0);
	es_directory_free(&d);
	assert_null(d);
}

static void test_forget(void **state)
{
	struct es_directory_figures figures;
	struct es_kept kept = kept_of(1, 2), got;
	struct es_directory *d;
	unsigned long long told_ns;

	(void)state;
	assert_int_equal(es_directory_new(8, &d), 0);
	es_directory_keep(d, 77, &kept, 5);
	/* The connection went to another node, which has told it since: the first one's word is late. */
	kept.owner = 3;
	kept.seq++;
	es_directory_keep(d, 77, &kept, 6);
	es_directory_forget(d, 77, 2);
	assert_int_equal(es_directory_find(d, 77, kept.seq, kept.ack, &got, &told_ns), 1);
	es_directory_forget(d, 77, 3);
	assert_int_equal(es_directory_find(d, 77, kept.seq, kept.ack, &got, &told_ns), 0);
	es_directory_figures(d, &figures);
	assert_int_equal(figures.entries, 0);
	assert_int_equal(figures.told, 2);
	assert_int_equal(figures.forgotten, 1);
	assert_int_equal(figures.of[2] + figures.of[3], 0);
	es_directory_free(&d);
}

/* When it is full, the oldest goes; a record that is told again is not old. */
static void test_full(void **state)
{
	struct es_directory_figures figures;
	struct es_directory *d;
	unsigned long long told_ns;
	struct es_kept got;

	(void)state;
	assert_int_equal(es_directory_new(100, &d), 0);
	for (unsigned int i = 0; i < 1000; i++) {
		struct es_kept kept = kept_of(i, i % 3), first = kept_of(0, 0);

		es_directory_keep(d, i * 0x9e3779b97f4a7c15ULL, &kept, i);
		es_directory_keep(d, 0, &first, i);
	}
	es_directory_figures(d, &figures);
	assert_int_equal(figures.entries, 100);
	assert_int_equal(figures.dropped, 900);
	assert_int_equal(figures.of[0] + figures.of[1] + figures.of[2], 100);
	for (unsigned int i = 0; i < 1000; i++) {
		struct es_kept kept = kept_of(i, i % 3);
		int found =
			es_directory_find(d, i * 0x9e3779b97f4a7c15ULL, kept.seq, kept.ack, &got, &told_ns);

		assert_int_equal(found, !i || i > 900);
	}
	es_directory_free(&d);
}

/* While its node lives, a record must be told again; when it is lost, nobody can. */
static void test_expire(void **state)
{
	unsigned long long lost_ns[ES_NODES_MAX] = {[2] = 50 * S};
	struct es_directory_figures figures;
	struct es_directory *d;

	(void)state;
	assert_int_equal(es_directory_new(8, &d), 0);
	for (unsigned int i = 0; i < 4; i++) {
		struct es_kept kept = kept_of(i, i);

		es_directory_keep(d, i, &kept, 40 * S);
	}
	es_directory_expire(d, lost_ns, 99 * S);
	es_directory_figures(d, &figures);
	assert_int_equal(figures.entries, 4);
	es_directory_expire(d, lost_ns, 101 * S);
	es_directory_figures(d, &figures);
	assert_int_equal(figures.entries, 1);
	assert_int_equal(figures.of[2], 1);
	assert_int_equal(figures.expired, 3);
	es_directory_expire(d, lost_ns, 641 * S);
	es_directory_figures(d, &figures);
	assert_int_equal(figures.entries, 0);
	es_directory_free(&d);
}

static void count_listed(void *ctx, const struct es_kept *kept, unsigned long long told_ns)
{
	unsigned int *count = ctx;

	assert_int_equal(told_ns, kept->seq);
	++*count;
}

static void test_list(void **state)
{
	unsigned int count = 0;
	struct es_directory *d;

	(void)state;
	assert_int_equal(es_directory_new(8, &d), 0);
	for (unsigned int i = 0; i < 6; i++) {
		struct es_kept kept = kept_of(i, i);

		es_directory_keep(d, i, &kept, kept.seq);
	}
	es_directory_list(d, 4, count_listed, &count);
	assert_int_equal(count, 4);
	es_directory_clear(d);
	es_directory_list(d, 4, count_listed, &count);
	assert_int_equal(count, 4);
	es_directory_free(&d);
}

static void test_words(void **state)
{
	struct es_kept_word words[ES_KEPT_WORDS_MAX], read[ES_KEPT_WORDS_MAX];
	struct es_kept_message message;
	__u64 heard[ES_NODES_MAX] = {};
	size_t len;

	(void)state;
	for (unsigned int i = 0; i < ES_KEPT_WORDS_MAX; i++)
		words[i] = (struct es_kept_word){.what = (enum es_kept_what)(ES_KEPT_KEEP + i % 5),
						 .kept = kept_of(i, i % 5 == 2 ? 2 : 1)};
	len = es_kept_message_make(&message, 1, 0, 9, 500 * S, words, ES_KEPT_WORDS_MAX,
				   &keys.key[0].handover);
	assert_int_equal(len, sizeof(message));
	assert_int_equal(es_kept_message_read(&message, len, 0, 3, &keys, 501 * S, heard, read),
			 ES_KEPT_WORDS_MAX);
	for (unsigned int i = 0; i < ES_KEPT_WORDS_MAX; i++) {
		assert_int_equal(read[i].what, words[i].what);
		assert_memory_equal(&read[i].kept, &words[i].kept, sizeof(read[i].kept));
	}
	/* Once, and to nobody else. */
	assert_int_equal(es_kept_message_read(&message, len, 0, 3, &keys, 501 * S, heard, read), -EBADMSG);
	heard[1] = 0;
	assert_int_equal(es_kept_message_read(&message, len, 2, 3, &keys, 501 * S, heard, read), -EBADMSG);
	assert_int_equal(es_kept_message_read(&message, len, 0, 1, &keys, 501 * S, heard, read), -EBADMSG);
	/* Not by a node that has just started, if it was recorded. */
	assert_int_equal(es_kept_message_read(&message, len, 0, 3, &keys, 621 * S, heard, read), -EBADMSG);
	assert_int_equal(es_kept_message_read(&message, len, 0, 3, &keys, 379 * S, heard, read), -EBADMSG);
	assert_int_equal(heard[1], 0);
	for (size_t cut = 0; cut < len; cut++)
		assert_int_equal(es_kept_message_read(&message, cut, 0, 3, &keys, 501 * S, heard, read),
				 -EBADMSG);
	for (size_t at = 0; at < len; at++) {
		((unsigned char *)&message)[at] ^= 1;
		assert_int_equal(es_kept_message_read(&message, len, 0, 3, &keys, 501 * S, heard, read),
				 -EBADMSG);
		((unsigned char *)&message)[at] ^= 1;
	}
	assert_int_equal(es_kept_message_read(&message, len, 0, 3, &keys, 619 * S, heard, read),
			 ES_KEPT_WORDS_MAX);
}

/* Words without sense, or of a later version, are left out, and a node speaks for itself alone. */
static void test_nonsense(void **state)
{
	struct es_kept_word words[4], read[ES_KEPT_WORDS_MAX];
	struct es_kept_message message;
	__u64 heard[ES_NODES_MAX] = {};
	size_t len;

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		words[i] = (struct es_kept_word){.what = ES_KEPT_KEEP, .kept = kept_of(i, 7)};
	words[0].what = (enum es_kept_what)6;
	words[1].kept.options.rcv_wscale = 15;
	words[3].what = ES_KEPT_ORPHAN; /* of a node that is not there */
	len = es_kept_message_make(&message, 1, 0, 9, S, words, 4, &keys.key[0].handover);
	assert_int_equal(es_kept_message_read(&message, len, 0, 3, &keys, S, heard, read), 1);
	assert_int_equal(read[0].kept.seq, 1002);
	assert_int_equal(read[0].kept.owner, 1);
}

/* The last word, and how many each node has heard. */
struct told {
	unsigned int keep[4], forget[4], waits[4], answered[4];
	struct es_kept last;
};

static void tell(void *ctx, unsigned int node, const struct es_kept_word *word)
{
	struct told *told = ctx;

	assert_in_range(node, 0, 3);
	++*(word->what == ES_KEPT_KEEP	     ? &told->keep[node]
	    : word->what == ES_KEPT_WAITS    ? &told->waits[node]
	    : word->what == ES_KEPT_ANSWERED ? &told->answered[node]
					     : &told->forget[node]);
	told->last = word->kept;
}

static void look(struct es_idle_flows *f, unsigned long long now_ns, const struct es_idle_flow *flow)
{
	es_idle_flows_begin(f, now_ns, 100 * MS, 1000);
	if (flow)
		es_idle_flows_see(f, flow);
	es_idle_flows_end(f);
}

/* One connection's life: told when it has been idle, again from time to time, anew when it has changed. */
static void test_one_flow(void **state)
{
	struct es_idle_flow flow = {
		.flow_hash = 5, .kept = kept_of(1, 0), .state = ES_IDLE_YES, .keeper = {1, ES_NODE_NONE}};
	struct told told = {};
	struct es_idle_flows *f;

	(void)state;
	assert_int_equal(es_idle_flows_new(16, tell, &told, &f), 0);
	look(f, 1 * S, &flow);
	look(f, 1 * S + 99 * MS, &flow);
	assert_int_equal(told.keep[1], 0);
	assert_false(es_idle_flows_has_told(f, 5, flow.kept.seq, flow.kept.ack));
	look(f, 1 * S + 100 * MS, &flow);
	assert_int_equal(told.keep[1], 1);
	assert_true(es_idle_flows_has_told(f, 5, flow.kept.seq, flow.kept.ack));
	assert_false(es_idle_flows_has_told(f, 5, flow.kept.seq + 1, flow.kept.ack));
	assert_false(es_idle_flows_has_told(f, 5 + 16, flow.kept.seq, flow.kept.ack));
	assert_false(es_idle_flows_has_told(NULL, 5, flow.kept.seq, flow.kept.ack));
	assert_memory_equal(&told.last, &flow.kept, sizeof(flow.kept));
	assert_int_equal(es_idle_flows_told(f), 1);
	look(f, 2 * S, &flow);
	assert_int_equal(told.keep[1], 1);
	look(f, 2 * S + ES_IDLE_AGAIN_NS, &flow);
	assert_int_equal(told.keep[1], 2);
	/* Busy: nothing is said. */
	flow.state = ES_IDLE_BUSY;
	look(f, 20 * S, &flow);
	flow.state = ES_IDLE_YES;
	flow.kept.seq += 100;
	flow.kept.ack += 1000;
	look(f, 21 * S, &flow);
	assert_int_equal(told.keep[1] + told.forget[1], 2);
	look(f, 22 * S, &flow);
	assert_int_equal(told.keep[1], 3);
	assert_int_equal(told.last.seq, flow.kept.seq);
	/* Another ring. */
	flow.keeper[0] = 2;
	look(f, 23 * S, &flow);
	assert_int_equal(told.keep[2], 1);
	assert_int_equal(told.forget[1], 1);
	flow.keeper[1] = 3;
	look(f, 24 * S, &flow);
	assert_int_equal(told.keep[3], 1);
	assert_int_equal(told.forget[2], 0);
	/* And its end. */
	look(f, 25 * S, NULL);
	assert_int_equal(told.forget[2], 1);
	assert_int_equal(told.forget[3], 1);
	look(f, 26 * S, NULL);
	assert_int_equal(told.forget[2], 1);
	assert_int_equal(es_idle_flows_told(f), 0);
	es_idle_flows_free(&f);
}

/*
 * Its client waits: told once for each request, again from time to time and to another ring's nodes, and
 * taken back when it has its answer. Then it is idle like any other.
 */
static void test_waits(void **state)
{
	struct es_idle_flow flow = {
		.flow_hash = 5, .kept = kept_of(1, 0), .state = ES_IDLE_WAITS, .keeper = {1, ES_NODE_NONE}};
	struct told told = {};
	struct es_idle_flows *f;

	(void)state;
	assert_int_equal(es_idle_flows_new(16, tell, &told, &f), 0);
	assert_int_equal(es_idle_flows_waiting(NULL), 0);
	look(f, 1 * S, &flow);
	assert_int_equal(told.waits[1], 1);
	assert_memory_equal(&told.last, &flow.kept, sizeof(flow.kept));
	assert_int_equal(es_idle_flows_waiting(f), 1);
	assert_int_equal(es_idle_flows_told(f), 0);
	assert_false(es_idle_flows_has_told(f, 5, flow.kept.seq, flow.kept.ack));
	look(f, 2 * S, &flow);
	assert_int_equal(told.waits[1], 1);
	look(f, 1 * S + ES_IDLE_AGAIN_NS, &flow);
	assert_int_equal(told.waits[1], 2);
	flow.kept.seq += 100;
	look(f, 17 * S, &flow);
	assert_int_equal(told.waits[1], 3);
	flow.keeper[0] = 2;
	look(f, 18 * S, &flow);
	assert_int_equal(told.waits[2], 1);
	assert_int_equal(told.forget[1], 1);
	flow.state = ES_IDLE_YES;
	look(f, 19 * S, &flow);
	assert_int_equal(told.answered[2], 1);
	assert_int_equal(es_idle_flows_waiting(f), 0);
	look(f, 20 * S, &flow);
	assert_int_equal(told.keep[2], 1);
	assert_int_equal(told.answered[2], 1);
	/* It ends as it waits. */
	flow.state = ES_IDLE_WAITS;
	flow.kept.seq += 100;
	look(f, 21 * S, &flow);
	look(f, 22 * S, NULL);
	assert_int_equal(told.forget[2], 1);
	assert_int_equal(es_idle_flows_waiting(f) + es_idle_flows_told(f), 0);
	assert_int_equal(told.answered[1] + told.keep[1] + told.answered[2] + told.waits[1], 5 - 1);
	es_idle_flows_free(&f);
}

/* A connection with which no other node can go on is taken back, also if it has changed since it was told. */
static void test_never(void **state)
{
	struct es_idle_flow flow = {
		.flow_hash = 5, .kept = kept_of(1, 0), .state = ES_IDLE_YES, .keeper = {1, ES_NODE_NONE}};
	struct told told = {};
	struct es_idle_flows *f;

	(void)state;
	assert_int_equal(es_idle_flows_new(16, tell, &told, &f), 0);
	look(f, 1 * S, &flow);
	look(f, 2 * S, &flow);
	flow.kept.seq++;
	look(f, 3 * S, &flow);
	flow.state = ES_IDLE_NEVER;
	look(f, 3 * S, &flow);
	assert_int_equal(told.keep[1], 1);
	assert_int_equal(told.forget[1], 1);
	es_idle_flows_free(&f);
}

/* Many at once: no more than agreed with each look, none twice, and no more than there is room for. */
static void test_bounds(void **state)
{
	struct told told = {};
	struct es_idle_flows *f;

	(void)state;
	assert_int_equal(es_idle_flows_new(64, tell, &told, &f), 0);
	for (unsigned int turn = 0; turn < 10; turn++) {
		es_idle_flows_begin(f, (turn + 1) * S, 100 * MS, 10);
		for (unsigned int i = 0; i < 100; i++) {
			const struct es_idle_flow flow = {.flow_hash = i * 0x9e3779b97f4a7c15ULL,
							  .kept = kept_of(i, 0),
							  .state = ES_IDLE_YES,
							  .keeper = {1, ES_NODE_NONE}};

			es_idle_flows_see(f, &flow);
		}
		es_idle_flows_end(f);
		assert_int_equal(told.keep[1], turn * 10 < 64 ? turn * 10 : 64);
	}
	look(f, 12 * S, NULL);
	assert_int_equal(told.forget[1], 64);
	es_idle_flows_free(&f);
}

/* The datapath knows of a record as long as that is there, and forgets nothing that was heard. */
static void test_watched(void **state)
{
	const unsigned long long over_ns[ES_NODES_MAX] = {[2] = 10 * S},
				 alive_ns[ES_NODES_MAX] = {[2] = 9 * S};
	struct es_kept_slot *slots = calloc(ES_KEPT_SLOTS, sizeof(*slots)), *slot = slots + es_kept_index(77);
	struct es_kept kept = kept_of(1, 2), got;
	struct es_kept_look look;
	struct es_directory *d;

	(void)state;
	assert_non_null(slots);
	assert_int_equal(es_directory_new(8, &d), 0);
	es_directory_watch(d, slots);
	es_directory_keep(d, 77, &kept, 5 * S);
	assert_int_equal(slot->seq, kept.seq);
	assert_int_equal(es_kept_hear(slot, 77, kept.seq + 1, 1), 0);
	es_directory_orphan(d, over_ns, alive_ns, 11 * S);
	assert_int_equal(es_directory_look(d, 77, &look), 1);
	assert_true(look.orphan_ns && look.is_unheard && look.is_settled);
	/* From now on it is this node's, with what follows in the request; nobody else's flow is. */
	assert_int_equal(es_kept_hear(slot, 77, kept.seq, 1), 1);
	assert_int_equal(es_kept_hear(slot, 77, kept.seq + ES_KEPT_REQUEST_MAX - 1, 1), 1);
	assert_int_equal(es_kept_hear(slot, 77, kept.seq + ES_KEPT_REQUEST_MAX, 1), 0);
	assert_int_equal(es_kept_hear(slot, 77, kept.seq - 1, 1), 0);
	assert_int_equal(es_kept_hear(slot, 78, kept.seq, 1), 0);
	es_directory_look(d, 77, &look);
	assert_true(look.is_unheard);
	/* Heard when it was another's to take. */
	assert_int_equal(es_kept_hear(slot, 77, kept.seq, 0), 0);
	es_directory_look(d, 77, &look);
	assert_false(look.is_unheard);
	/* Its node is back, and says the same: what was heard was heard. */
	es_directory_keep(d, 77, &kept, 12 * S);
	es_directory_look(d, 77, &look);
	assert_false(look.orphan_ns || look.is_unheard);
	assert_int_equal(look.since_ns, 5 * S);
	assert_int_equal(slot->is_orphan, 0);
	assert_int_equal(slot->is_heard, 1);
	/* Its next request is another one. */
	kept.seq++;
	es_directory_keep(d, 77, &kept, 13 * S);
	assert_int_equal(slot->is_heard, 0);
	assert_int_equal(es_directory_take(d, 77, kept.seq, kept.ack, &got), 1);
	assert_int_equal(slot->flow_hash, 0);
	/* A slot that was another flow's meanwhile tells nothing of what was heard. */
	es_directory_keep(d, 77, &kept, 13 * S);
	slot->flow_hash = 78;
	es_directory_keep(d, 77, &kept, 14 * S);
	assert_int_equal(slot->flow_hash, 77);
	assert_int_equal(slot->is_heard, 1);
	es_directory_clear(d);
	assert_int_equal(slot->flow_hash, 0);
	es_directory_free(&d);
	free(slots);
}

/* One whose node was lost a moment after it was told. */
static void test_unsettled(void **state)
{
	const unsigned long long over_ns[ES_NODES_MAX] = {[2] = 10 * S};
	unsigned long long alive_ns[ES_NODES_MAX] = {[2] = 5 * S + ES_DIRECTORY_SETTLES_NS - 1};
	struct es_kept kept = kept_of(1, 2);
	struct es_kept_look look;
	struct es_directory *d;

	(void)state;
	assert_int_equal(es_directory_new(8, &d), 0);
	es_directory_keep(d, 77, &kept, 5 * S);
	es_directory_orphan(d, over_ns, alive_ns, 11 * S);
	es_directory_look(d, 77, &look);
	assert_true(look.orphan_ns);
	assert_false(look.is_settled || look.is_unheard);
	es_directory_free(&d);
}

/* Each has a slot of its own. */
static __u64 flow_of(unsigned int number)
{
	return (__u64)number << 20;
}

static void passed(void *ctx, __u64 flow_hash, const struct es_kept *kept)
{
	unsigned int *count = ctx;

	assert_int_equal(flow_of(kept->seq - 1000), flow_hash);
	++*count;
}

/* Orphans are told on to others, once for each ring, and only what nobody can have taken. */
static void test_pass_on(void **state)
{
	const unsigned long long over_ns[ES_NODES_MAX] = {[2] = 10 * S}, alive_ns[ES_NODES_MAX] = {};
	struct es_kept_slot *slots = calloc(ES_KEPT_SLOTS, sizeof(*slots));
	unsigned int count = 0;
	struct es_kept_look look;
	struct es_directory *d;
	struct es_kept kept;

	(void)state;
	assert_non_null(slots);
	assert_int_equal(es_directory_new(64, &d), 0);
	es_directory_watch(d, slots);
	for (unsigned int i = 0; i < 20; i++) {
		kept = kept_of(i, i < 10 ? 2 : 1);
		es_directory_keep(d, flow_of(i), &kept, 5 * S);
	}
	assert_int_equal(es_directory_pass_on(d, 7, 100, passed, &count), 0);
	es_directory_orphan(d, over_ns, alive_ns, 11 * S);
	assert_int_equal(es_directory_pass_on(d, 7, 4, passed, &count), 4);
	assert_int_equal(es_directory_pass_on(d, 7, 100, passed, &count), 6);
	assert_int_equal(es_directory_pass_on(d, 7, 100, passed, &count), 0);
	assert_int_equal(es_kept_hear(&slots[3], flow_of(3), 1003, 0), 0);
	assert_int_equal(es_directory_pass_on(d, 8, 100, passed, &count), 10);
	assert_int_equal(count, 19); /* of the second ring's, one was heard by then */
	/*
	 * A node that is told keeps it as an orphan, perhaps heard by others; what its own node has told is
	 * newer.
	 */
	kept = kept_of(30, 2);
	es_directory_adopt(d, flow_of(30), &kept, 12 * S);
	assert_int_equal(es_directory_look(d, flow_of(30), &look), 1);
	assert_true(look.orphan_ns);
	assert_false(look.is_unheard || look.is_settled);
	kept = kept_of(11, 2);
	es_directory_adopt(d, flow_of(11), &kept, 12 * S);
	es_directory_look(d, flow_of(11), &look);
	assert_int_equal(look.kept.owner, 1);
	es_directory_free(&d);
	free(slots);
}

/* Takes those with an odd number. */
static int take_odd(void *ctx, __u64 flow_hash, const struct es_kept *kept, unsigned long long told_ns)
{
	unsigned int *count = ctx;

	assert_int_equal(flow_of(kept->seq - 1000), flow_hash);
	assert_int_equal(told_ns, 5 * S);
	++*count;
	return kept->seq & 1;
}

/* Orphans are there until somebody takes them; those of nodes that live are nobody's to take. */
static void test_take_orphans(void **state)
{
	const unsigned long long over_ns[ES_NODES_MAX] = {[2] = 10 * S}, alive_ns[ES_NODES_MAX] = {};
	struct es_directory_figures figures;
	unsigned int count = 0;
	struct es_directory *d;
	struct es_kept kept;

	(void)state;
	assert_int_equal(es_directory_new(64, &d), 0);
	for (unsigned int i = 0; i < 20; i++) {
		kept = kept_of(i, i < 10 ? 2 : 1);
		es_directory_keep(d, flow_of(i), &kept, 5 * S);
	}
	es_directory_take_orphans(d, take_odd, &count);
	assert_int_equal(count, 0);
	es_directory_orphan(d, over_ns, alive_ns, 11 * S);
	es_directory_take_orphans(d, take_odd, &count);
	assert_int_equal(count, 10);
	es_directory_take_orphans(d, take_odd, &count);
	assert_int_equal(count, 15);
	es_directory_figures(d, &figures);
	assert_int_equal(figures.entries, 15);
	assert_int_equal(figures.of[2], 5);
	es_directory_free(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact),	     cmocka_unit_test(test_forget),
		cmocka_unit_test(test_full),	     cmocka_unit_test(test_expire),
		cmocka_unit_test(test_list),	     cmocka_unit_test(test_words),
		cmocka_unit_test(test_nonsense),     cmocka_unit_test(test_one_flow),
		cmocka_unit_test(test_never),	     cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_watched),	     cmocka_unit_test(test_unsettled),
		cmocka_unit_test(test_pass_on),	     cmocka_unit_test(test_waits),
		cmocka_unit_test(test_take_orphans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
