/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_CATCH_UP_H
#define ES_DAEMON_CATCH_UP_H

/*
 * A node that was away while the others were given another file asks them when it is back. A member offers it
 * the file of its last rollout, as a rollout to this one node. The node takes it if its own is older, and not
 * if somebody has changed that, or it was rolled out where the others were not (rollout/history.h).
 */
#include <ev.h>
#include "inspector/base/error.h"
#include "inspector/rollout/leader.h"

struct es_daemon;

/**
 * struct es_daemon_catch_up
 * @giver: leads what this node gives; @to: whom; @has_told: that is an event
 * @is_due: this node asks; @was_out: and when it is in the group again; @node: whom it asks now, @tries times
 * up to now, @number: its last question; @asked_ns: when; @ended_ns: when all had been asked
 * @refused_count: how many it refused when it looked last, while it was the only member
 * @refused: why it did not take what it was offered last, "" if nothing was
 */
struct es_daemon_catch_up {
	struct es_rollout_leader giver;
	unsigned int to;
	int has_told;
	struct ev_timer timer;
	int is_due;
	int was_out;
	unsigned int node;
	unsigned int tries;
	unsigned long long number;
	unsigned long long asked_ns;
	unsigned long long ended_ns;
	unsigned int refused_count;
	char refused[sizeof(struct es_conf_error)];
};

void es_daemon_catch_up_start(struct es_daemon *daemon);
void es_daemon_catch_up_stop(struct es_daemon *daemon);

/* es_daemon_catch_up_message() - a question, or the answer to one */
void es_daemon_catch_up_message(struct es_daemon *daemon, const struct es_rollout_message *message);

/*
 * es_daemon_catch_up_judge() - may this node take what @from offers, with the history in rollout.next?
 * Returns 0, or -errno and @err.
 */
int es_daemon_catch_up_judge(const struct es_daemon *daemon, unsigned int from, struct es_conf_error *err);

/*
 * The outcome of a catch-up, as an event: es_daemon_catch_up_refused() and _taken() on the node that was
 * offered the file, _tell() on the node that gave it.
 */
void es_daemon_catch_up_refused(struct es_daemon *daemon, const struct es_conf_error *err);
void es_daemon_catch_up_taken(struct es_daemon *daemon, unsigned int from);
void es_daemon_catch_up_tell(struct es_daemon *daemon);

#endif
