/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_DIRECTORY_H
#define ES_DAEMON_DIRECTORY_H

/*
 * Tells other nodes of this one's idle connections, and keeps theirs (cluster/directory.h), for services with
 * the key survive. A connection's keeper is the node that inspects its flow, or, if that is this node, the
 * next one on the ring: it inspects the flow when this one is gone. Connections of a node that is lost are
 * told on to those that inspect them when the ring changes again.
 */
#include <ev.h>
#include "inspector/peers/idle_flows.h"

struct es_daemon;

/* Connections are looked through so often, if that costs no more than one part in so many of a CPU. */
#define ES_DIRECTORY_LOOK_MS	50
#define ES_DIRECTORY_LOOK_SHARE 100

/* How long a connection must have been idle before it is told. */
#define ES_DIRECTORY_IDLE_NS 100000000ULL

/* When a lost node's lease is over, what it was sent may be under way for so long. */
#define ES_DIRECTORY_UNDER_WAY_NS 50000000ULL

/* So many connections are told with one look at the most: for fifty datagrams a socket has room. */
#define ES_DIRECTORY_TELL_MOST 1024

/* struct es_directory_outbox - what one node is to be told */
struct es_directory_outbox {
	unsigned int count;
	struct es_kept_word word[ES_KEPT_WORDS_MAX];
};

/**
 * struct es_daemon_directory
 * @table: of other nodes' connections, the workers' as long as they live
 * @flows: of this node's; NULL: no service survives here
 * @looked_ns, @look_ns: when they were looked through last, and how long that took
 * @over_ns: when each node was lost last whose lease is over, 0: never; @leased_ns: when another may have
 * been in force still
 * @passed_epoch: of the ring whose nodes know of all orphans here that they are to keep
 * @heard: the last sequence of each node; @sent, @received, @refused: datagrams
 */
struct es_daemon_directory {
	struct es_directory *table;
	struct es_idle_flows *flows;
	struct ev_timer timer;
	unsigned long long looked_ns;
	unsigned long long look_ns;
	unsigned long long expired_ns;
	unsigned long long now_ns;
	unsigned long long over_ns[ES_NODES_MAX];
	unsigned long long leased_ns[ES_NODES_MAX];
	unsigned int passed_epoch;
	__u64 sequence;
	__u64 heard[ES_NODES_MAX];
	unsigned long long sent;
	unsigned long long received;
	struct es_directory_outbox outbox[ES_NODES_MAX];
};

/* es_daemon_directory_prepare() - before the workers. Returns 0 or -errno. */
int es_daemon_directory_prepare(struct es_daemon *daemon);

/* es_daemon_directory_rebind() - at the start, and after a reload: does any service survive? */
void es_daemon_directory_rebind(struct es_daemon *daemon);

/* es_daemon_directory_message() - what another node says. Returns 0 if it is such a message. */
int es_daemon_directory_message(struct es_daemon *daemon, const void *data, size_t len);

void es_daemon_directory_stop(struct es_daemon *daemon);

#endif
