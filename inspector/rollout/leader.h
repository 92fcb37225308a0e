/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_ROLLOUT_LEADER_H
#define ES_ROLLOUT_LEADER_H

/*
 * The node that rolls a configuration out: it offers the text to the others, and when all of them have it and
 * would take it, it tells all to switch, itself included. When one cannot, it tells all to go back. So all
 * have the new one, or all the old one; except for a node that dies, or is cut off, within the moment between
 * the word to switch and its answer: that one has either, and the others keep the new one.
 *
 * Settings that wait for another start of the daemons are put in force then, if the operator wants it so: one
 * after the other begins anew, while all others serve. Whoever leads is the last, and does not do it himself:
 * he could not tell of it.
 */
#include "inspector/rollout/ops.h"
#include "kmod/core/abi.h"

/* A node that has said nothing at all for so long is not there; one that is at it may take longer. */
#define ES_ROLLOUT_ANSWER_MS 3000
#define ES_ROLLOUT_CHECK_MS  15000

/* One that would take it says so again and again: the others are told to switch only while its last word is
 * this fresh; silent for longer, it is lost. */
#define ES_ROLLOUT_FRESH_MS 500
#define ES_ROLLOUT_LOST_MS  1500

/* For the answers to the word to switch, and to go back. */
#define ES_ROLLOUT_SWITCH_MS 5000

/* For a node to begin anew, and for all others to serve before that. */
#define ES_ROLLOUT_RESTART_MS 120000

/* The leader's knowledge of nodes beyond enum es_rollout_state. */
enum es_rollout_outside {
	ES_ROLLOUT_LEFT_OUT = 64, /* the operator wants it so */
	ES_ROLLOUT_OLD,		  /* its version knows no rollouts */
	ES_ROLLOUT_LOST,	  /* it does not answer */
	ES_ROLLOUT_RESTARTS,	  /* it has switched, and was told to begin anew */
	ES_ROLLOUT_BEGUN,	  /* it has done that, and serves */
};

enum es_rollout_phase {
	ES_ROLLOUT_IDLE,
	ES_ROLLOUT_CHECKING,
	ES_ROLLOUT_SWITCHING,
	ES_ROLLOUT_TAKING_BACK,
	ES_ROLLOUT_RESTARTING,
	ES_ROLLOUT_DONE,
};

enum es_rollout_result {
	ES_ROLLOUT_PENDING,
	ES_ROLLOUT_CHECKED,	 /* all would take it, and that was all that was asked for */
	ES_ROLLOUT_ALL_SWITCHED, /* all that were not left out */
	ES_ROLLOUT_NOT_TAKEN,	 /* nothing has changed anywhere */
	ES_ROLLOUT_ALL_BACK,	 /* some had switched; all are as before */
	ES_ROLLOUT_INCOMPLETE,	 /* nodes differ, or may differ */
	ES_ROLLOUT_HALTED,	 /* all have switched, and not all have begun anew */
};

/* struct es_rollout_standing - @state: an enum es_rollout_state or es_rollout_outside; @heard_ns: 0: never */
struct es_rollout_standing {
	unsigned int state;
	unsigned long long member;
	unsigned long long heard_ns;
	char why[sizeof(struct es_conf_error)];
};

/* struct es_rollout_leader - @since_ns: of the phase, and of each restart; @text: its own copy; @restarts:
 * one is wanted of those that need it; @restarting: of which it is being waited for, -1: none yet */
struct es_rollout_leader {
	const struct es_rollout_ops *ops;
	void *ctx;
	unsigned int self;
	unsigned int node_count;
	unsigned long long number;
	enum es_rollout_phase phase;
	enum es_rollout_result result;
	int is_dry;
	int restarts;
	int restarting;
	char *text;
	size_t total;
	unsigned long long since_ns;
	struct es_rollout_standing node[ES_NODES_MAX];
};

/**
 * es_rollout_lead() - begin; all zero, or done, before
 * @number: higher than of any before; @is_dry: check only; @restarts: nodes begin anew where settings wait
 * for that
 * @leader->node: the caller has filled in the states of nodes that are left out, of an old version or lost,
 * and of this node whether it READY or REFUSED it and why; all others are ES_ROLLOUT_NONE. Returns 0 or
 * -ENOMEM.
 */
int es_rollout_lead(struct es_rollout_leader *leader, const struct es_rollout_ops *ops, void *ctx,
		    unsigned int self, unsigned int node_count, unsigned long long number, const char *text,
		    size_t len, int is_dry, int restarts);

/* es_rollout_leader_message() - a node's word */
void es_rollout_leader_message(struct es_rollout_leader *leader, const struct es_rollout_message *message);

void es_rollout_leader_tick(struct es_rollout_leader *leader);

static inline int es_rollout_is_leading(const struct es_rollout_leader *leader)
{
	return leader->phase != ES_ROLLOUT_IDLE && leader->phase != ES_ROLLOUT_DONE;
}

/* es_rollout_leader_stop() - the daemon ends; may be called at any time */
void es_rollout_leader_stop(struct es_rollout_leader *leader);

/* Words of docs/json.md. */
const char *es_rollout_state_name(unsigned int state);
const char *es_rollout_phase_name(enum es_rollout_phase phase);
const char *es_rollout_result_name(enum es_rollout_result result);

#endif
