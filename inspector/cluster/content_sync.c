// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The protocol that keeps one service's content tables alike: proposals, snapshots, comparisons. The table
 * itself is policy/contents.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/policy/policy.h"
#include "inspector/cluster/content_sync.h"
#include "membership/number.h"

#define ES_CHANGE_SIZE	 12
#define ES_ENTRY_SIZE	 32
#define ES_CHANGES_BATCH 1024
#define ES_ENTRIES_BATCH 1024 /* a tick's; 32 KiB, so that the bus has room for what is urgent */
#define ES_GIVE_UP_MS	 5000 /* without a piece of a snapshot */
#define ES_HEADER_SIZE	 12   /* tag, and the id of whom it is for */

/* A change that came during a snapshot. */
struct es_kept {
	struct es_content_change change;
	__u8 is_own;
};

/* A snapshot that this node sends; one at a time. */
struct es_sending {
	struct es_group_id to;
	struct es_content_entry *entries; /* NULL: none */
	size_t count;
	size_t at;
	__u64 clock;
};

/**
 * struct es_content_sync
 * @node, @wall_ns: es_content_sync_clock()
 * @wants: how often this node has said WANT; @want_at_ms: when to say it next, or to give a snapshot up
 * @wanted, @wanted_by: a member waits for an answer
 * @giver: whose snapshot is received; @entries, @entry_count, @kept, @kept_count: of it
 * @checked, @check_digest: at the last CHECK, while whole
 */
struct es_content_sync {
	struct es_contents *contents;
	__u32 tag;
	const struct es_content_sync_ops *ops;
	void *ctx;
	struct es_content_sync_state state;
	struct es_group_id self;
	unsigned int node;
	__u64 wall_ns;
	int is_lowest;
	unsigned int wants;
	__u64 want_at_ms, check_at_ms;
	unsigned int wanted_count;
	struct es_group_id wanted_by[ES_GROUP_MEMBERS_MAX];
	struct es_sending sending;
	struct es_group_id giver;
	struct es_content_entry *entries;
	size_t entry_count;
	struct es_kept *kept;
	size_t kept_count;
	int checked;
	__u64 check_digest;
};

static int id_equal(struct es_group_id a, struct es_group_id b)
{
	return a.nodeid == b.nodeid && a.pid == b.pid;
}

static int id_less(struct es_group_id a, struct es_group_id b)
{
	return a.nodeid < b.nodeid || (a.nodeid == b.nodeid && a.pid < b.pid);
}

static void say(struct es_content_sync *s, enum es_wire_type type, __u8 *payload, size_t len)
{
	es_put32(payload, s->tag);
	s->ops->send(s->ctx, type, payload, len);
}

/* A message for one member, with room for what follows. */
static void say_to(struct es_content_sync *s, enum es_wire_type type, struct es_group_id to, __u8 *payload,
		   size_t len)
{
	es_put32(payload + 4, to.nodeid);
	es_put32(payload + 8, to.pid);
	say(s, type, payload, len);
}

static void sending_end(struct es_content_sync *s)
{
	free(s->sending.entries);
	s->sending.entries = NULL;
}

static void receiving_end(struct es_content_sync *s)
{
	free(s->entries);
	free(s->kept);
	s->entries = NULL;
	s->kept = NULL;
	s->entry_count = s->kept_count = 0;
}

static void want(struct es_content_sync *s)
{
	receiving_end(s);
	s->state.phase = ES_SYNC_WANT;
	s->want_at_ms = 0;
	s->checked = 0;
}

int es_content_sync_new(struct es_contents *contents, __u32 tag, const struct es_content_sync_ops *ops,
			void *ctx, struct es_content_sync **ret_sync)
{
	struct es_content_sync *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->contents = contents;
	s->tag = tag;
	s->ops = ops;
	s->ctx = ctx;
	*ret_sync = s;
	return 0;
}

void es_content_sync_free(struct es_content_sync **sync)
{
	if (!*sync)
		return;
	sending_end(*sync);
	receiving_end(*sync);
	free(*sync);
	*sync = NULL;
}

__u32 es_content_sync_tag(const char *service)
{
	return (__u32)es_content_hash(service, strlen(service));
}

/* --- the bus's events */

void es_content_sync_view(struct es_content_sync *s, struct es_group_id self,
			  const struct es_group_id *members, unsigned int count, __u64 now_ms)
{
	int was_member = s->state.phase != ES_SYNC_ALONE && id_equal(s->self, self);
	int giver_is_there = 0, receiver_is_there = 0;
	unsigned int still = 0;

	s->self = self;
	s->is_lowest = 1;
	for (unsigned int i = 0; i < count; i++) {
		s->is_lowest &= !id_less(members[i], self);
		giver_is_there |= id_equal(members[i], s->giver);
		receiver_is_there |= id_equal(members[i], s->sending.to);
		for (unsigned int k = still; k < s->wanted_count; k++) {
			if (id_equal(members[i], s->wanted_by[k])) {
				struct es_group_id found = s->wanted_by[k];

				s->wanted_by[k] = s->wanted_by[still];
				s->wanted_by[still++] = found;
				break;
			}
		}
	}
	s->wanted_count = still;
	if (!receiver_is_there)
		sending_end(s);
	if (!was_member) {
		s->wants = 0;
		s->check_at_ms = now_ms + ES_SYNC_CHECK_MS;
		want(s);
	}
	if (s->state.phase == ES_SYNC_RECEIVE && !giver_is_there)
		want(s);
	if (count == 1) {
		receiving_end(s);
		s->state.phase = ES_SYNC_WHOLE;
	}
}

void es_content_sync_lost(struct es_content_sync *s)
{
	sending_end(s);
	receiving_end(s);
	s->wanted_count = 0;
	s->state.phase = ES_SYNC_ALONE;
	s->checked = 0;
}

static void on_changes(struct es_content_sync *s, int is_own, const __u8 *at, size_t len, __u64 now_ns)
{
	for (; len >= ES_CHANGE_SIZE; at += ES_CHANGE_SIZE, len -= ES_CHANGE_SIZE) {
		struct es_content_change change = {
			.content = es_get64(at), .op = at[8], .node = at[9], .from = at[10]};

		if (s->state.phase != ES_SYNC_RECEIVE) {
			es_contents_deliver(s->contents, &change, 1, is_own, now_ns);
			if (!is_own && es_content_op_gives(change.op) && change.node < ES_NODES_MAX)
				s->ops->given(s->ctx, change.node);
		} else if (s->kept_count < ES_SYNC_KEPT_MAX) {
			s->kept[s->kept_count++] = (struct es_kept){change, (__u8)is_own};
		} else {
			want(s);
		}
	}
}

/* Offers the table to one who waits for it; the others follow when that one has it. */
static void offer(struct es_content_sync *s)
{
	__u8 buf[ES_HEADER_SIZE];

	if (s->wanted_count && s->state.phase == ES_SYNC_WHOLE && !s->sending.entries)
		say_to(s, ES_WIRE_CONTENTS_BEGIN, s->wanted_by[0], buf, sizeof(buf));
}

static void on_want(struct es_content_sync *s, struct es_group_id from)
{
	for (unsigned int i = 0; i < s->wanted_count; i++)
		if (id_equal(s->wanted_by[i], from))
			s->wanted_by[i--] = s->wanted_by[--s->wanted_count];
	if (id_equal(from, s->self) || s->wanted_count == ES_GROUP_MEMBERS_MAX)
		return;
	s->wanted_by[s->wanted_count++] = from;
	offer(s);
}

static int is_wanted(struct es_content_sync *s, struct es_group_id by)
{
	for (unsigned int i = 0; i < s->wanted_count; i++) {
		if (id_equal(s->wanted_by[i], by)) {
			s->wanted_by[i] = s->wanted_by[--s->wanted_count];
			return 1;
		}
	}
	return 0;
}

static void on_begin(struct es_content_sync *s, struct es_group_id from, struct es_group_id to, __u64 now_ms)
{
	if (id_equal(to, s->self)) {
		if (s->state.phase != ES_SYNC_WANT)
			return; /* a second answer */
		s->kept = calloc(ES_SYNC_KEPT_MAX, sizeof(*s->kept));
		if (!s->kept)
			return;
		s->giver = from;
		s->want_at_ms = now_ms + ES_GIVE_UP_MS;
		s->state.phase = ES_SYNC_RECEIVE;
		return;
	}
	/* The first answer to a WANT counts, for all who hear it. */
	if (!is_wanted(s, to) || !id_equal(from, s->self) || s->state.phase != ES_SYNC_WHOLE ||
	    s->sending.entries)
		return;
	s->sending.to = to;
	s->sending.at = 0;
	if (es_contents_list(s->contents, &s->sending.entries, &s->sending.count, &s->sending.clock))
		s->sending.entries = NULL;
}

static void on_entries(struct es_content_sync *s, const __u8 *at, size_t len, __u64 now_ms)
{
	size_t count = len / ES_ENTRY_SIZE;
	struct es_content_entry *entries =
		realloc(s->entries, (s->entry_count + count + 1) * sizeof(*entries));

	if (!entries) {
		want(s);
		return;
	}
	s->entries = entries;
	s->want_at_ms = now_ms + ES_GIVE_UP_MS;
	for (; count; count--, at += ES_ENTRY_SIZE) {
		struct es_content_entry *e = &s->entries[s->entry_count++];

		*e = (struct es_content_entry){.content = es_get64(at), .order = es_get64(at + 8)};
		e->nodes.bits[0] = es_get64(at + 16);
		e->nodes.bits[1] = es_get64(at + 24);
	}
}

static void on_end(struct es_content_sync *s, __u64 clock, __u64 now_ns)
{
	es_contents_clear(s->contents);
	es_contents_restore(s->contents, s->entries, s->entry_count, clock, now_ns);
	for (size_t i = 0; i < s->kept_count; i++)
		es_contents_deliver(s->contents, &s->kept[i].change, 1, s->kept[i].is_own, now_ns);
	receiving_end(s);
	s->state.phase = ES_SYNC_WHOLE;
	s->state.snapshots++;
}

static void on_check(struct es_content_sync *s, struct es_group_id from)
{
	__u8 buf[12];

	s->checked = s->state.phase == ES_SYNC_WHOLE;
	s->check_digest = es_contents_digest(s->contents);
	if (!s->checked || !id_equal(from, s->self))
		return;
	es_put64(buf + 4, s->check_digest);
	say(s, ES_WIRE_CONTENTS_DIGEST, buf, sizeof(buf));
}

static void on_digest(struct es_content_sync *s, __u64 digest)
{
	if (!s->checked || digest == s->check_digest)
		return;
	s->state.differences++;
	want(s);
}

void es_content_sync_message(struct es_content_sync *s, struct es_group_id from, __u8 type,
			     const void *payload, size_t len, __u64 now_ns)
{
	const __u8 *at = payload;
	int is_own = id_equal(from, s->self);
	struct es_group_id to = {};

	if (type < ES_WIRE_CONTENTS || type > ES_WIRE_CONTENTS_DIGEST || len < 4 || es_get32(at) != s->tag ||
	    s->state.phase == ES_SYNC_ALONE)
		return;
	if (len >= ES_HEADER_SIZE)
		to = (struct es_group_id){es_get32(at + 4), es_get32(at + 8)};
	switch (type) {
	case ES_WIRE_CONTENTS:
		on_changes(s, is_own, at + 4, len - 4, now_ns);
		break;
	case ES_WIRE_CONTENTS_WANT:
		on_want(s, from);
		break;
	case ES_WIRE_CONTENTS_BEGIN:
		on_begin(s, from, to, now_ns / 1000000);
		break;
	case ES_WIRE_CONTENTS_ENTRIES:
	case ES_WIRE_CONTENTS_END:
		if (s->state.phase != ES_SYNC_RECEIVE || !id_equal(to, s->self) || !id_equal(from, s->giver))
			break;
		if (type == ES_WIRE_CONTENTS_ENTRIES)
			on_entries(s, at + ES_HEADER_SIZE, len - ES_HEADER_SIZE, now_ns / 1000000);
		else if (len >= ES_HEADER_SIZE + 8)
			on_end(s, es_get64(at + ES_HEADER_SIZE), now_ns);
		break;
	case ES_WIRE_CONTENTS_CHECK:
		on_check(s, from);
		break;
	case ES_WIRE_CONTENTS_DIGEST:
		if (len >= 12)
			on_digest(s, es_get64(at + 4));
		break;
	}
}

/* --- what this node says */

void es_content_sync_clock(struct es_content_sync *s, unsigned int self, __u64 wall_ns)
{
	s->node = self;
	s->wall_ns = wall_ns;
}

/* Tell what has changed here, with the last word about it, and what others seem not to know. */
static void tell(struct es_content_sync *s, const struct es_content_change *changes, size_t count)
{
	struct es_content_word word;

	for (size_t i = 0; i < count && s->ops->tell; i++) {
		const struct es_content_change *c = &changes[i];
		int found = 0;

		if (c->op == ES_CONTENT_TELL)
			found = es_contents_word(s->contents, c->content, &word);
		else if (c->op != ES_CONTENT_KEEP && c->op != ES_CONTENT_DROP)
			found = es_contents_stamp(s->contents, c->content, s->node, s->wall_ns, &word);
		if (found)
			s->ops->tell(s->ctx, s->tag, &word);
	}
}

void es_content_sync_heard(struct es_content_sync *s, __u32 tag, const struct es_content_word *word,
			   __u64 now_ns)
{
	if (s->state.phase == ES_SYNC_ALONE && tag == s->tag)
		es_contents_hear(s->contents, word, now_ns);
}

void es_content_sync_flush(struct es_content_sync *s, __u64 now_ns)
{
	static struct es_content_change changes[ES_CHANGES_BATCH];
	static __u8 buf[4 + ES_CHANGES_BATCH * ES_CHANGE_SIZE];
	size_t count;

	while ((count = es_contents_take(s->contents, changes, ES_CHANGES_BATCH))) {
		__u8 *at = buf + 4;

		if (s->state.phase == ES_SYNC_ALONE) {
			es_contents_deliver(s->contents, changes, count, 1, now_ns);
			tell(s, changes, count);
			continue;
		}
		for (size_t i = 0; i < count; i++) {
			if (changes[i].op == ES_CONTENT_TELL)
				continue; /* the bus tells all */
			es_put64(at, changes[i].content);
			at[8] = changes[i].op;
			at[9] = changes[i].node;
			at[10] = changes[i].from;
			at[11] = 0;
			at += ES_CHANGE_SIZE;
		}
		if (at > buf + 4)
			say(s, ES_WIRE_CONTENTS, buf, (size_t)(at - buf));
	}
}

static void send_entries(struct es_content_sync *s)
{
	static __u8 buf[ES_HEADER_SIZE + ES_ENTRIES_BATCH * ES_ENTRY_SIZE];
	__u8 *at = buf + ES_HEADER_SIZE;

	for (unsigned int n = 0; n < ES_ENTRIES_BATCH && s->sending.at < s->sending.count; n++) {
		const struct es_content_entry *e = &s->sending.entries[s->sending.at++];

		es_put64(at, e->content);
		es_put64(at + 8, e->order);
		es_put64(at + 16, e->nodes.bits[0]);
		es_put64(at + 24, e->nodes.bits[1]);
		at += ES_ENTRY_SIZE;
	}
	say_to(s, ES_WIRE_CONTENTS_ENTRIES, s->sending.to, buf, (size_t)(at - buf));
	if (s->sending.at < s->sending.count)
		return;
	es_put64(buf + ES_HEADER_SIZE, s->sending.clock);
	say_to(s, ES_WIRE_CONTENTS_END, s->sending.to, buf, ES_HEADER_SIZE + 8);
	sending_end(s);
	offer(s);
}

static void want_again(struct es_content_sync *s, __u64 now_ms)
{
	__u8 buf[4];

	if (now_ms < s->want_at_ms)
		return;
	if (s->wants >= ES_SYNC_WANTS && s->is_lowest) {
		s->state.phase = ES_SYNC_WHOLE;
		offer(s);
		return;
	}
	s->wants++;
	s->want_at_ms = now_ms + ES_SYNC_WANT_MS;
	say(s, ES_WIRE_CONTENTS_WANT, buf, sizeof(buf));
}

void es_content_sync_tick(struct es_content_sync *s, __u64 now_ms)
{
	__u8 buf[4];

	if (s->state.phase == ES_SYNC_WANT)
		want_again(s, now_ms);
	if (s->state.phase == ES_SYNC_RECEIVE && now_ms >= s->want_at_ms)
		want(s);
	if (s->sending.entries)
		send_entries(s);
	if (s->state.phase == ES_SYNC_WHOLE && s->is_lowest && now_ms >= s->check_at_ms) {
		s->check_at_ms = now_ms + ES_SYNC_CHECK_MS;
		say(s, ES_WIRE_CONTENTS_CHECK, buf, sizeof(buf));
	}
}

void es_content_sync_drop(struct es_content_sync *s, unsigned int node, __u64 now_ns)
{
	struct es_content_change change = {.op = ES_CONTENT_DROP, .node = (__u8)node};
	__u8 buf[4 + ES_CHANGE_SIZE] = {};

	if (s->state.phase == ES_SYNC_ALONE) {
		es_contents_deliver(s->contents, &change, 1, 1, now_ns);
		return;
	}
	buf[4 + 8] = ES_CONTENT_DROP;
	buf[4 + 9] = (__u8)node;
	say(s, ES_WIRE_CONTENTS, buf, sizeof(buf));
}

void es_content_sync_state(const struct es_content_sync *s, struct es_content_sync_state *ret_state)
{
	*ret_state = s->state;
}

const char *es_sync_phase_text(enum es_sync_phase phase)
{
	static const char *const text[] = {
		[ES_SYNC_ALONE] = "alone",
		[ES_SYNC_WANT] = "wanting",
		[ES_SYNC_RECEIVE] = "receiving",
		[ES_SYNC_WHOLE] = "whole",
	};

	return phase <= ES_SYNC_WHOLE ? text[phase] : "?";
}
