/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CONTENT_SYNC_H
#define ES_CONTENT_SYNC_H

/*
 * One service's content table on the ordered bus: proposals out, agreed changes in, a snapshot for who joins,
 * and a comparison now and then. Knows no corosync, no clock and no thread, as membership/group.h.
 *
 * A member that joins others says WANT. Those whose tables are whole answer BEGIN; the first one that the bus
 * delivers counts: at that place in the order its sender copies its table, and sends it piece by piece, while
 * the joiner keeps what else comes and makes up for it afterwards. Until then it decides by what it sees
 * itself. If nobody answers, since all came at once, the member with the lowest id begins with what it has.
 *
 * Every ES_SYNC_CHECK_MS that member says CHECK, and then its digest as it was at CHECK's place in the order.
 * A member that had another one wants a snapshot.
 *
 * All payloads begin with the service's tag, 4 bytes.
 */
#include "inspector/policy/contents.h"
#include "membership/group.h"

#define ES_SYNC_CHECK_MS 10000
#define ES_SYNC_WANT_MS	 500
#define ES_SYNC_WANTS	 4	 /* in vain; then the lowest one begins */
#define ES_SYNC_KEPT_MAX 1000000 /* changes that come during a snapshot; with more, it is begun again */

enum es_sync_phase {
	ES_SYNC_ALONE = 0, /* no bus: what is proposed is agreed */
	ES_SYNC_WANT,
	ES_SYNC_RECEIVE,
	ES_SYNC_WHOLE,
};

struct es_content_sync;

/* @send: put a message on the bus; @given: another member has given a request to a node, by
 * es_content_op_gives(); @tell: without a bus: tell the others this of the table with that tag, if they can
 * be told; may be NULL */
struct es_content_sync_ops {
	void (*send)(void *ctx, enum es_wire_type type, const void *payload, size_t len);
	void (*given)(void *ctx, unsigned int node);
	void (*tell)(void *ctx, __u32 tag, const struct es_content_word *word);
};

/**
 * es_content_sync_new() -
 * @contents: stays the caller's
 * @tag: names the service; the same on all nodes, es_content_sync_tag()
 * Returns 0 or -ENOMEM. Without a bus, until es_content_sync_view().
 */
int es_content_sync_new(struct es_contents *contents, __u32 tag, const struct es_content_sync_ops *ops,
			void *ctx, struct es_content_sync **ret_sync);
void es_content_sync_free(struct es_content_sync **sync);

__u32 es_content_sync_tag(const char *service);

/* es_content_sync_view() - the bus has these members from now on; @self is one of them */
void es_content_sync_view(struct es_content_sync *sync, struct es_group_id self,
			  const struct es_group_id *members, unsigned int count, __u64 now_ms);

/* es_content_sync_lost() - the bus is gone */
void es_content_sync_lost(struct es_content_sync *sync);

/*
 * es_content_sync_message() - in the bus's order, own ones too; other types and other services' are ignored
 */
void es_content_sync_message(struct es_content_sync *sync, struct es_group_id from, __u8 type,
			     const void *payload, size_t len, __u64 now_ns);

/* es_content_sync_flush() - say what was proposed; @self: this node's number, @wall_ns: the time of day,
 * which a word is stamped with */
void es_content_sync_flush(struct es_content_sync *sync, __u64 now_ns);
void es_content_sync_clock(struct es_content_sync *sync, unsigned int self, __u64 wall_ns);

/* es_content_sync_heard() - without a bus: another node's word of a set. With one, it is ignored. */
void es_content_sync_heard(struct es_content_sync *sync, __u32 tag, const struct es_content_word *word,
			   __u64 now_ns);

/* es_content_sync_tick() - all else that time brings; tens of milliseconds */
void es_content_sync_tick(struct es_content_sync *sync, __u64 now_ms);

/* es_content_sync_drop() - tell all that @node is gone for good */
void es_content_sync_drop(struct es_content_sync *sync, unsigned int node, __u64 now_ns);

/* struct es_content_sync_state - @snapshots: received; @differences: found by a comparison */
struct es_content_sync_state {
	enum es_sync_phase phase;
	__u64 snapshots;
	__u64 differences;
};
void es_content_sync_state(const struct es_content_sync *sync, struct es_content_sync_state *ret_state);

const char *es_sync_phase_text(enum es_sync_phase phase);

#endif
