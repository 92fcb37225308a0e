/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_WAITING_H
#define ES_DAEMON_WAITING_H

/*
 * Clients of other nodes that have waited for long for an answer, or for the rest of one, with which nobody
 * else can go on: it is chunked or short, or its request was not safe, or has credentials. When their node is
 * lost they have nothing to send, by which they would learn of it. So their keeper (keepers.h) asks each
 * where it stands, as one whose long response is lost (resume/client.h), and has a worker ask all nodes
 * whose connection it is, as of a stray (inspect/stray.h). If it is nobody's, the client gets a RST.
 *
 * The lost node may be cut off from the others alone. It goes on with what its client has got a part of, so
 * nothing is done while it is heard on the clients' network, or answers the worker's question.
 */
#include "inspector/cluster/directory.h"
#include "inspector/inspect/stray.h"
#include "inspector/peers/kept_words.h"
#include "inspector/resume/transfer.h"

struct es_daemon;

/* A request that is in hand for so long is told. */
#define ES_WAITING_NS 1000000000ULL

#define ES_WAITING_ENTRIES 16384 /* a power of two */

/* Clients that are asked at a time; further ones wait for their turn. */
#define ES_WAITING_JOBS 256

/* struct es_waiting_post - what a worker is to ask the nodes about; the worker's while @is_posted */
struct es_waiting_post {
	atomic_int is_posted;
	unsigned int count;
	struct es_waiting_client client[ES_STRAYS_MANY];
};

/* struct es_daemon_waiting - @table: of others; NULL: no service survives here */
struct es_daemon_waiting {
	struct es_directory *table;
	struct es_resume_params ask;
	struct es_resume *job[ES_WAITING_JOBS];
	struct es_waiting_post post[ES_WORKERS_MAX];
};

/* es_daemon_waiting_prepare() - when there is a datapath */
void es_daemon_waiting_prepare(struct es_daemon *daemon);

/* es_daemon_waiting_rebind() - at the start, and after a reload; @is_wanted: some service survives */
void es_daemon_waiting_rebind(struct es_daemon *daemon, int is_wanted);

/* es_daemon_waiting_hear() - another node's word about a connection of its own; any that it has */
void es_daemon_waiting_hear(struct es_daemon *daemon, __u64 flow_hash, const struct es_kept_word *word);

/* es_daemon_waiting_orphan() - as es_directory_orphan() */
void es_daemon_waiting_orphan(struct es_daemon *daemon, const unsigned long long over_ns[ES_NODES_MAX],
			      unsigned long long now_ns);

/**
 * es_daemon_waiting_look() - asks clients, and gives workers those that have answered; to be called often
 * @is_known: is there more that can be done about a flow? Then that is, and not this.
 */
void es_daemon_waiting_look(struct es_daemon *daemon,
			    int (*is_known)(const struct es_daemon *daemon, __u64 flow_hash));

/* es_daemon_waiting_expire() - as es_directory_expire() */
void es_daemon_waiting_expire(struct es_daemon *daemon, const unsigned long long lost_ns[ES_NODES_MAX],
			      unsigned long long now_ns);

/* es_daemon_waiting_figures() - of the table; zeros without one */
void es_daemon_waiting_figures(const struct es_daemon *daemon, struct es_directory_figures *ret_figures);

/* es_daemon_waiting_stop() - after the workers have ended */
void es_daemon_waiting_stop(struct es_daemon *daemon);

#endif
