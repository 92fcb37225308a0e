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
 */
#include <stddef.h>
#include <stdint.h>
#include "kmod/core/flow.h"
#include "kmod/core/node_ring.h"
#include "kmod/core/tcp.h"

#define ES_DIRECTORY_ENTRIES 65536 /* a power of two */

/* A record that is not told again for so long is forgotten, while its node lives. */
#define ES_DIRECTORY_LIFE_NS 60000000000ULL

/* That of a node which is lost lives for so long: its client may be idle for a while. */
#define ES_DIRECTORY_ORPHAN_NS 600000000000ULL

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
