/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_VIEW_H
#define ES_DAEMON_VIEW_H

/*
 * The whole cluster for people, on any node: each node tells of itself what it knows best (snapshot.c), and
 * is asked once a second while somebody looks at the status page or `earshot top`, and never else. The last
 * word of a node stays known after it falls silent, with its age.
 */
#include <ev.h>
#include <json-c/json.h>
#include <stdatomic.h>
#include "inspector/daemon/problems.h"
#include "inspector/inspect/hot.h"
#include "inspector/inspect/worker.h"
#include "inspector/peers/snapshots.h"
#include "inspector/status/history.h"
#include "inspector/status/metrics.h"
#include "kmod/core/abi.h"

struct es_daemon;

/* Whoever has asked counts as looking for so long. */
#define ES_VIEW_LOOKS_MS 10000

/* A node is asked so often. */
#define ES_VIEW_ASK_MS 1000

/* A word that is older does not say how a node is now. */
#define ES_VIEW_FRESH_MS 3500

/* A node is asked for its history so often, while somebody wants it: a history grows no faster. */
#define ES_VIEW_HISTORY_MS 5000

/*
 * struct es_view_word - @text: what a node said last, and a NUL; @at_ns: when, 0: never; @question_ns: when
 * it was asked last, if that is noted; @asked_number: of its own last question; @answered_ns: when that was
 * answered
 */
struct es_view_word {
	struct es_snapshot_inbox inbox;
	unsigned long long at_ns;
	unsigned long long question_ns;
	unsigned long long asked_number;
	unsigned long long answered_ns;
	char text[ES_SNAPSHOT_HISTORY_MAX + 1];
};

/* struct es_view_node - a node's last words: how it is, its last ten minutes, what a crash would do to it */
struct es_view_node {
	struct es_view_word snapshot;
	struct es_view_word history;
	struct es_view_word crash;
};

/* A node is asked again what a crash would do to it if its last answer is older. */
#define ES_VIEW_CRASH_MS 500

/* First answers are waited for so long; then whatever has arrived is shown. */
#define ES_VIEW_FIRST_MS 400

/*
 * struct es_view_hot - a worker's copy of the contents that are asked for most; it is the worker's, unless
 * @is_there
 */
struct es_view_hot {
	struct es_hot hot;
	_Atomic int is_there;
	int is_asked;
};

/**
 * struct es_daemon_view
 * @step: for the history; @timer: asks the nodes while somebody looks
 * @looked_ns: when somebody last looked; 0: never; @began_ns: when he began; @history_wanted_ns: when
 * somebody last wanted histories, @history_asked_ns: when they were asked for
 * @node: the words of each node, allocated with the first look; @hot: the copy of each worker, likewise
 * @identity: of the list of nodes, es_history_totals'
 * @problems: what `earshot check` says of this node; run while somebody looks, and by @check
 */
struct es_daemon_view {
	struct ev_timer step;
	struct ev_timer timer;
	struct ev_timer check;
	unsigned long long looked_ns;
	unsigned long long began_ns;
	unsigned long long history_wanted_ns;
	unsigned long long history_asked_ns;
	struct es_history history;
	struct es_view_node *node;
	struct es_view_hot *hot;
	unsigned long long identity;
	struct es_problems problems;
};

/* es_daemon_view_start() - count from now on what the page shows of the past. Returns 0. */
int es_daemon_view_start(struct es_daemon *daemon, struct es_conf_error *err);

/* es_daemon_view_rebind() - after a reload: nodes may have other numbers */
void es_daemon_view_rebind(struct es_daemon *daemon);

/* es_daemon_view_stop() - may be called without start; after the workers have ended */
void es_daemon_view_stop(struct es_daemon *daemon);

/* es_daemon_view_message() - a datagram of es_snapshot_read(); returns 0, or -EBADMSG: it is none */
int es_daemon_view_message(void *daemon, const void *data, size_t len);

/*
 * es_daemon_view_look() - somebody looks: nodes are asked. Returns 1, or 0: first answers may come in a
 * moment.
 */
int es_daemon_view_look(struct es_daemon *daemon, int with_history);

/* es_daemon_view() - somebody looks: the cluster, in the shape of docs/json.md, with the nodes' last ten
 * minutes if wanted; the caller's */
struct json_object *es_daemon_view(struct es_daemon *daemon, int with_history);

/* es_daemon_view_command() - the control command `cluster`; an es_control_fn */
int es_daemon_view_command(void *ctx, struct json_object *request, struct json_object **ret_result,
			   struct es_conf_error *err);

/**
 * es_daemon_view_crash() - what another node says of its connections, in the shape of `crash`, the caller's
 * NULL: it has not said so lately. @ret_is_awaited: then, it has been asked; ask again in a moment.
 */
struct json_object *es_daemon_view_crash(struct es_daemon *daemon, unsigned int node, int *ret_is_awaited);

/* es_daemon_snapshot() (snapshot.c) - this node, as it tells others of itself; the caller's. At most
 * ES_SNAPSHOT_MAX bytes of text, by leaving out the longest parts. */
struct json_object *es_daemon_snapshot(struct es_daemon *daemon);

/* es_daemon_counted() (snapshot.c) - what all workers have counted together */
unsigned long long es_daemon_counted(const struct es_daemon *daemon, enum es_worker_counter counter);

/*
 * es_daemon_snapshot_moves() (snapshot.c) - the requests that moved their connections, by each reason that
 * there is
 */
void es_daemon_snapshot_moves(const struct es_daemon *daemon,
			      struct es_metrics_move ret_moves[ES_METRICS_MOVES]);

#endif
