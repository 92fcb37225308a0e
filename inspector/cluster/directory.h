/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DIRECTORY_H
#define ES_DIRECTORY_H

/*
 * The flow directory: idle connections of other nodes, each as its node has told it. When that node is lost,
 * the next request on such a connection says by itself that it is one: it begins where the record says that
 * the last one ended, and acknowledges the last byte of its response. The connection can then be made once
 * more, at any node (inspect/survive.c).
 *
 * The control thread writes, workers look things up when a segment is nobody's; a lock is taken for each.
 * Bounded: when it is full, the record that was told first goes.
 *
 * A second table of the kind has connections whose clients wait for an answer for long (ES_KEPT_WAITS):
 * nobody can go on with those, but their clients are told when their node is lost (daemon/waiting.h).
 */
#include <stddef.h>
#include <stdint.h>
#include "kmod/core/flow.h"
#include "kmod/core/kept.h"
#include "kmod/core/node_ring.h"
#include "kmod/core/tcp.h"

#define ES_DIRECTORY_ENTRIES 65536 /* a power of two */

/* A record that is not told again for so long is forgotten, while its node lives. */
#define ES_DIRECTORY_LIFE_NS 60000000000ULL

/* That of a node which is lost lives for so long: its client may be idle for a while. */
#define ES_DIRECTORY_ORPHAN_NS 600000000000ULL

/*
 * A request that was sent before a record arrived may have been missed. A node that lives for so much
 * longer has answered it, and the record fits its client's next segment no more; or its client has repeated
 * it.
 */
#define ES_DIRECTORY_SETTLES_NS 1000000000ULL

/*
 * A copy of a request may reach its node, and not this one. Its client repeats it within this time (Linux
 * after 200 ms); so long after its node's lease is over, nobody knows whether a request is new.
 */
#define ES_DIRECTORY_MISSED_NS 400000000ULL

/**
 * struct es_kept - an idle connection
 * @seq: where the client's next request begins; @ack: behind the last byte of our last response
 * @requests, @moves: of the connection so far (struct es_track)
 * @service: its index; @owner: the node that has the socket
 */
struct es_kept {
	struct es_flow flow;
	struct es_tcp_options options;
	__u32 seq;
	__u32 ack;
	__u32 requests;
	__u16 moves;
	__u8 service;
	__u8 owner;
};

/**
 * struct es_directory_figures
 * @entries: records now; @of: those of each node; @bytes: the memory that they may take at the most
 * @told: records that came, each time; @forgotten: those that their nodes have taken back; @expired: that
 * were not told again; @dropped: that had no room
 */
struct es_directory_figures {
	unsigned int entries;
	unsigned int of[ES_NODES_MAX];
	size_t bytes;
	unsigned long long told;
	unsigned long long forgotten;
	unsigned long long expired;
	unsigned long long dropped;
};

struct es_directory;

/* es_directory_new() - @entries: room for so many. Returns 0 or -ENOMEM. */
int es_directory_new(unsigned int entries, struct es_directory **ret_directory);
void es_directory_free(struct es_directory **directory);

/* es_directory_keep() - a node says that this connection of its own is idle; replaces what was known of it */
void es_directory_keep(struct es_directory *directory, __u64 flow_hash, const struct es_kept *kept,
		       unsigned long long now_ns);

/* es_directory_forget() - @owner says that it is over, or that no other node can go on with it */
void es_directory_forget(struct es_directory *directory, __u64 flow_hash, unsigned int owner);

/**
 * es_directory_find() - is there a record of a segment that begins at @seq and acknowledges @ack?
 * Both must be equal. @ret_told_ns: when its node said so last. Returns 1, 0 if there is none.
 */
int es_directory_find(struct es_directory *directory, __u64 flow_hash, __u32 seq, __u32 ack,
		      struct es_kept *ret_kept, unsigned long long *ret_told_ns);

/*
 * es_directory_take() - the same, and it is not there any more: of two workers that ask, one gets it
 */
int es_directory_take(struct es_directory *directory, __u64 flow_hash, __u32 seq, __u32 ack,
		      struct es_kept *ret_kept);

/**
 * struct es_kept_look - what is known of a connection
 * @since_ns: when it was told first with these numbers; @told_ns: last
 * @orphan_ns: since when its node is lost, and its lease over; 0: it is not
 * @is_unheard: from when it was told to when it became an orphan, and ever since while this node was not to
 * take it, nothing was heard that begins where the next request does; if this node hears all
 * @is_settled: its node has lived for long enough since it was told (ES_DIRECTORY_SETTLES_NS)
 */
struct es_kept_look {
	struct es_kept kept;
	unsigned long long since_ns;
	unsigned long long told_ns;
	unsigned long long orphan_ns;
	uint8_t is_unheard;
	uint8_t is_settled;
};

/* es_directory_look() - what is known of a flow. Returns 1, 0 if nothing is. */
int es_directory_look(struct es_directory *directory, __u64 flow_hash, struct es_kept_look *ret_look);

/*
 * es_directory_watch() - @slots: the datapath's (kmod/core/kept.h), which this writes from now on, and which
 * outlive the directory; NULL: it has none. Before anything is kept.
 */
void es_directory_watch(struct es_directory *directory, struct es_kept_slot *slots);

/*
 * es_directory_ask() - its client is asked whether it waits: the datapath is to tell of its answer. Returns
 * 1, or 0 if it would not, as the flow has no slot there.
 */
int es_directory_ask(struct es_directory *directory, __u64 flow_hash);

/* es_directory_unwatch() - some node has the flow's connection: its requests are not to be watched for */
void es_directory_unwatch(struct es_directory *directory, __u64 flow_hash);

/**
 * es_directory_orphan() - nodes are lost, and their leases over: their records are orphans
 * @over_ns: when each was lost last whose lease is over, 0: never; @alive_ns: when each was heard last
 */
void es_directory_orphan(struct es_directory *directory, const unsigned long long over_ns[ES_NODES_MAX],
			 const unsigned long long alive_ns[ES_NODES_MAX], unsigned long long now_ns);

/*
 * es_directory_adopt() - another keeper says that this one is an orphan; what is known of it otherwise is
 * newer Nobody knows whether its next request was heard.
 */
void es_directory_adopt(struct es_directory *directory, __u64 flow_hash, const struct es_kept *kept,
			unsigned long long now_ns);

/**
 * es_directory_pass_on() - call @fn for the orphans of which the nodes on the ring of @epoch do not know yet
 * For @most of them at the most; it must not call the directory. Returns how many it looked at: fewer than
 * @most, and there are no more.
 */
typedef void (*es_directory_pass_fn)(void *ctx, __u64 flow_hash, const struct es_kept *kept);
unsigned int es_directory_pass_on(struct es_directory *directory, unsigned int epoch, unsigned int most,
				  es_directory_pass_fn fn, void *ctx);

/**
 * es_directory_take_orphans() - call @fn for each orphan; if it returns 1, it has taken it, and it is not
 * there any more. It must not call the directory.
 */
typedef int (*es_directory_orphan_fn)(void *ctx, __u64 flow_hash, const struct es_kept *kept,
				      unsigned long long told_ns);
void es_directory_take_orphans(struct es_directory *directory, es_directory_orphan_fn fn, void *ctx);

/*
 * es_directory_expire() - forget what is too old; @lost_ns: when each node was lost last, 0: never
 */
void es_directory_expire(struct es_directory *directory, const unsigned long long lost_ns[ES_NODES_MAX],
			 unsigned long long now_ns);

/* es_directory_clear() - forget all */
void es_directory_clear(struct es_directory *directory);

void es_directory_figures(struct es_directory *directory, struct es_directory_figures *ret_figures);

/* es_directory_list() - call @fn for the @limit newest at most; it must not call the directory */
typedef void (*es_directory_fn)(void *ctx, const struct es_kept *kept, unsigned long long told_ns);
void es_directory_list(struct es_directory *directory, size_t limit, es_directory_fn fn, void *ctx);

#endif
