// SPDX-License-Identifier: GPL-2.0-or-later
/* Leads a rollout: offers, waits for all verdicts, and has all switch or none. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/rollout/leader.h"

static unsigned long long ms_since(const struct es_rollout_leader *l, unsigned long long at_ns)
{
	unsigned long long now_ns = l->ops->now_ns(l->ctx);

	return now_ns > at_ns ? (now_ns - at_ns) / ES_ROLLOUT_NS_PER_MS : 0;
}

static void tell(const struct es_rollout_leader *l, unsigned int node, enum es_rollout_kind kind)
{
	const struct es_rollout_message message = {
		.source = l->self,
		.target = node,
		.kind = kind,
		.rollout = l->number,
		.member = kind == ES_ROLLOUT_OFFER ? 0 : l->node[node].member,
		.total = l->total,
	};

	l->ops->send(l->ctx, &message);
}

/* To the other nodes that are in one of two states. */
static void tell_those(const struct es_rollout_leader *l, unsigned int state, unsigned int or_state,
		       enum es_rollout_kind kind)
{
	for (unsigned int i = 0; i < l->node_count; i++)
		if (i != l->self && (l->node[i].state == state || l->node[i].state == or_state))
			tell(l, i, kind);
}

static unsigned int count(const struct es_rollout_leader *l, unsigned int state)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < l->node_count; i++)
		n += l->node[i].state == state;
	return n;
}

static void set(struct es_rollout_leader *l, unsigned int node, unsigned int state, const char *why,
		size_t len)
{
	struct es_rollout_standing *standing = &l->node[node];

	standing->state = state;
	snprintf(standing->why, sizeof(standing->why), "%.*s", (int)len, why);
}

static void set_text(struct es_rollout_leader *l, unsigned int node, unsigned int state, const char *why)
{
	set(l, node, state, why, strlen(why));
}

static void phase_begin(struct es_rollout_leader *l, enum es_rollout_phase phase)
{
	l->phase = phase;
	l->since_ns = l->ops->now_ns(l->ctx);
}

static void finish(struct es_rollout_leader *l, enum es_rollout_result result)
{
	l->result = result;
	for (unsigned int i = 0; i < l->node_count; i++)
		if (i != l->self && l->node[i].member)
			tell(l, i, ES_ROLLOUT_END);
	l->ops->discard(l->ctx);
	free(l->text);
	l->text = NULL;
	phase_begin(l, ES_ROLLOUT_DONE);
}

/* --- back */

static void settle_taking_back(struct es_rollout_leader *l)
{
	if (count(l, ES_ROLLOUT_SWITCHED))
		return;
	/* One that is gone may have switched before it began anew. */
	finish(l, count(l, ES_ROLLOUT_STUCK) || count(l, ES_ROLLOUT_LOST) || count(l, ES_ROLLOUT_GONE)
			  ? ES_ROLLOUT_INCOMPLETE
			  : ES_ROLLOUT_ALL_BACK);
}

static void take_back(struct es_rollout_leader *l)
{
	struct es_conf_error err = {};
	int rc;

	phase_begin(l, ES_ROLLOUT_TAKING_BACK);
	tell_those(l, ES_ROLLOUT_SWITCHED, ES_ROLLOUT_LOST, ES_ROLLOUT_REVERT);
	if (l->node[l->self].state == ES_ROLLOUT_SWITCHED) {
		rc = l->ops->revert(l->ctx, &err);
		set_text(l, l->self, rc ? ES_ROLLOUT_STUCK : ES_ROLLOUT_TAKEN_BACK, err.text);
	}
	settle_taking_back(l);
}

/* --- restart */

static int needs_restart(const struct es_rollout_leader *l, unsigned int node)
{
	return l->node[node].state == ES_ROLLOUT_SWITCHED && l->node[node].why[0];
}

/* The next one; this node is the last. */
static unsigned int restart_next(const struct es_rollout_leader *l)
{
	for (unsigned int i = 0; i < l->node_count; i++)
		if (i != l->self && needs_restart(l, i))
			return i;
	return l->self;
}

static void halt(struct es_rollout_leader *l, unsigned int node, const char *why)
{
	set_text(l, node, l->node[node].state == ES_ROLLOUT_RESTARTS ? ES_ROLLOUT_LOST : ES_ROLLOUT_SWITCHED,
		 why);
	finish(l, ES_ROLLOUT_HALTED);
}

static void restarting_tick(struct es_rollout_leader *l)
{
	int is_late = ms_since(l, l->since_ns) >= ES_ROLLOUT_RESTART_MS;
	char why[sizeof(struct es_conf_error)];
	struct es_conf_error err = {};

	/* Those that wait for their turn must not lose patience. */
	tell_those(l, ES_ROLLOUT_SWITCHED, ES_ROLLOUT_SWITCHED, ES_ROLLOUT_COMMIT);
	if (l->restarting < 0) {
		unsigned int next = restart_next(l);

		if (next == l->self && !needs_restart(l, next) && !count(l, ES_ROLLOUT_BEGUN)) {
			finish(l, ES_ROLLOUT_ALL_SWITCHED);
			return;
		}
		if (l->ops->may_restart(l->ctx, next, &err)) {
			snprintf(why, sizeof(why), "%s: %.200s",
				 needs_restart(l, next) ? "it was not restarted" : "restarted", err.text);
			if (is_late)
				halt(l, next, why);
			return;
		}
		if (next == l->self) {
			finish(l, ES_ROLLOUT_ALL_SWITCHED);
			return;
		}
		l->restarting = (int)next;
		l->node[next].state = ES_ROLLOUT_RESTARTS;
		l->since_ns = l->ops->now_ns(l->ctx);
	} else if (is_late) {
		halt(l, (unsigned int)l->restarting, "it was told to restart, and does not serve again");
		return;
	}
	tell(l, (unsigned int)l->restarting, ES_ROLLOUT_RESTART);
}

static void on_restarted(struct es_rollout_leader *l, const struct es_rollout_message *message)
{
	char why[sizeof(struct es_conf_error)];

	if ((int)message->source != l->restarting)
		return;
	if (message->state == ES_ROLLOUT_FAILED) {
		snprintf(why, sizeof(why), "%.*s", (int)message->len, message->text);
		halt(l, message->source, why);
		return;
	}
	if (message->state != ES_ROLLOUT_GONE)
		return;
	set_text(l, message->source, ES_ROLLOUT_BEGUN, "");
	l->restarting = -1;
	l->since_ns = l->ops->now_ns(l->ctx);
}

static void restarting_begin(struct es_rollout_leader *l)
{
	phase_begin(l, ES_ROLLOUT_RESTARTING);
	l->restarting = -1;
	restarting_tick(l);
}

/* --- switch */

static void settle_switching(struct es_rollout_leader *l)
{
	if (count(l, ES_ROLLOUT_READY))
		return;
	if (count(l, ES_ROLLOUT_FAILED) || count(l, ES_ROLLOUT_GONE))
		take_back(l);
	else if (l->restarts && !count(l, ES_ROLLOUT_LOST))
		restarting_begin(l);
	else
		finish(l, count(l, ES_ROLLOUT_LOST) ? ES_ROLLOUT_INCOMPLETE : ES_ROLLOUT_ALL_SWITCHED);
}

static void switch_all(struct es_rollout_leader *l)
{
	struct es_conf_error err = {};
	int rc;

	phase_begin(l, ES_ROLLOUT_SWITCHING);
	tell_those(l, ES_ROLLOUT_READY, ES_ROLLOUT_READY, ES_ROLLOUT_COMMIT);
	rc = l->ops->commit(l->ctx, &err);
	set_text(l, l->self, rc ? ES_ROLLOUT_FAILED : ES_ROLLOUT_SWITCHED, err.text);
	l->since_ns = l->ops->now_ns(l->ctx); /* no answer was read meanwhile */
	settle_switching(l);
}

/* --- check */

static int all_are_fresh(const struct es_rollout_leader *l)
{
	for (unsigned int i = 0; i < l->node_count; i++)
		if (i != l->self && l->node[i].state == ES_ROLLOUT_READY &&
		    ms_since(l, l->node[i].heard_ns) >= ES_ROLLOUT_FRESH_MS)
			return 0;
	return 1;
}

static void settle_checking(struct es_rollout_leader *l)
{
	unsigned int wanted = l->node_count - count(l, ES_ROLLOUT_LEFT_OUT);

	if (count(l, ES_ROLLOUT_NONE))
		return;
	if (count(l, ES_ROLLOUT_READY) < wanted)
		finish(l, ES_ROLLOUT_NOT_TAKEN);
	else if (l->is_dry)
		finish(l, ES_ROLLOUT_CHECKED);
	else if (all_are_fresh(l))
		switch_all(l);
}

static void checking_tick(struct es_rollout_leader *l)
{
	unsigned long long ms = ms_since(l, l->since_ns);

	for (unsigned int i = 0; i < l->node_count; i++) {
		const struct es_rollout_standing *node = &l->node[i];

		if (i == l->self)
			continue;
		if (node->state == ES_ROLLOUT_NONE && !node->heard_ns && ms >= ES_ROLLOUT_ANSWER_MS)
			set_text(l, i, ES_ROLLOUT_LOST, "it does not answer");
		else if (node->state == ES_ROLLOUT_NONE && ms >= ES_ROLLOUT_CHECK_MS)
			set_text(l, i, ES_ROLLOUT_LOST, "it has not said in time whether it would take it");
		else if (node->state == ES_ROLLOUT_READY && ms_since(l, node->heard_ns) >= ES_ROLLOUT_LOST_MS)
			set_text(l, i, ES_ROLLOUT_LOST, "it would take it, but does not answer any more");
	}
	tell_those(l, ES_ROLLOUT_NONE, ES_ROLLOUT_READY, ES_ROLLOUT_OFFER);
	settle_checking(l);
}

void es_rollout_leader_tick(struct es_rollout_leader *l)
{
	int is_late = l->phase != ES_ROLLOUT_IDLE && ms_since(l, l->since_ns) >= ES_ROLLOUT_SWITCH_MS;

	switch (l->phase) {
	case ES_ROLLOUT_CHECKING:
		checking_tick(l);
		break;
	case ES_ROLLOUT_SWITCHING:
		for (unsigned int i = 0; is_late && i < l->node_count; i++)
			if (l->node[i].state == ES_ROLLOUT_READY)
				set_text(l, i, ES_ROLLOUT_LOST,
					 "it was told to switch and has not answered: it has either "
					 "configuration");
		/* Those that have switched must not lose patience meanwhile. */
		tell_those(l, ES_ROLLOUT_READY, ES_ROLLOUT_SWITCHED, ES_ROLLOUT_COMMIT);
		settle_switching(l);
		break;
	case ES_ROLLOUT_TAKING_BACK:
		for (unsigned int i = 0; is_late && i < l->node_count; i++)
			if (l->node[i].state == ES_ROLLOUT_SWITCHED)
				set_text(l, i, ES_ROLLOUT_LOST,
					 "it was told to go back and has not answered: it has either "
					 "configuration");
		tell_those(l, ES_ROLLOUT_SWITCHED, ES_ROLLOUT_LOST, ES_ROLLOUT_REVERT);
		settle_taking_back(l);
		break;
	case ES_ROLLOUT_RESTARTING:
		restarting_tick(l);
		break;
	default:
		break;
	}
}

/* --- what nodes say */

static void on_want(struct es_rollout_leader *l, const struct es_rollout_message *message)
{
	struct es_rollout_standing *node = &l->node[message->source];

	if (l->phase != ES_ROLLOUT_CHECKING || node->state != ES_ROLLOUT_NONE)
		return;
	node->member = message->member;
	node->heard_ns = l->ops->now_ns(l->ctx);
	for (size_t i = 0; i < message->len; i++) {
		size_t at = (message->part + i) * ES_ROLLOUT_PART_BYTES;
		struct es_rollout_message part = {
			.source = l->self,
			.target = message->source,
			.kind = ES_ROLLOUT_PART,
			.rollout = l->number,
			.member = message->member,
			.total = l->total,
			.part = message->part + (unsigned int)i,
		};

		if (at >= l->total)
			return;
		part.text = l->text + at;
		part.len = l->total - at < ES_ROLLOUT_PART_BYTES ? l->total - at : ES_ROLLOUT_PART_BYTES;
		l->ops->send(l->ctx, &part);
	}
}

static void on_verdict(struct es_rollout_leader *l, const struct es_rollout_message *message)
{
	struct es_rollout_standing *node = &l->node[message->source];

	switch (message->state) {
	case ES_ROLLOUT_READY:
		node->member = message->member;
		set(l, message->source, ES_ROLLOUT_READY, message->text, message->len);
		break;
	case ES_ROLLOUT_REFUSED:
		node->member = message->member;
		set(l, message->source, ES_ROLLOUT_REFUSED, message->text, message->len);
		break;
	case ES_ROLLOUT_BUSY:
		/* One that has come back is being given the file before, which takes a moment. */
		if (ms_since(l, l->since_ns) < ES_ROLLOUT_ANSWER_MS)
			return;
		set_text(l, message->source, ES_ROLLOUT_BUSY, "it takes part in another rollout");
		break;
	case ES_ROLLOUT_GONE:
		set_text(l, message->source, ES_ROLLOUT_LOST, "it has given up waiting");
		break;
	default:
		return;
	}
	settle_checking(l);
}

static void on_switched(struct es_rollout_leader *l, const struct es_rollout_message *message)
{
	if (message->state == ES_ROLLOUT_SWITCHED)
		set(l, message->source, ES_ROLLOUT_SWITCHED, message->text, message->len);
	else if (message->state == ES_ROLLOUT_FAILED)
		set(l, message->source, ES_ROLLOUT_FAILED, message->text, message->len);
	else if (message->state == ES_ROLLOUT_GONE)
		set_text(l, message->source, ES_ROLLOUT_GONE, "its daemon has begun anew meanwhile");
	else
		return;
	settle_switching(l);
}

static void on_taken_back(struct es_rollout_leader *l, const struct es_rollout_message *message)
{
	if (message->state == ES_ROLLOUT_TAKEN_BACK || message->state == ES_ROLLOUT_FAILED)
		set_text(l, message->source, ES_ROLLOUT_TAKEN_BACK, "");
	else if (message->state == ES_ROLLOUT_STUCK)
		set(l, message->source, ES_ROLLOUT_STUCK, message->text, message->len);
	else if (message->state == ES_ROLLOUT_GONE)
		set_text(l, message->source, ES_ROLLOUT_STUCK,
			 "its daemon has begun anew meanwhile, with the new configuration perhaps");
	else
		return;
	settle_taking_back(l);
}

void es_rollout_leader_message(struct es_rollout_leader *l, const struct es_rollout_message *message)
{
	struct es_rollout_standing *node;

	if (!es_rollout_is_leading(l) || message->rollout != l->number || message->source == l->self ||
	    message->source >= l->node_count)
		return;
	node = &l->node[message->source];
	if (message->kind == ES_ROLLOUT_WANT)
		on_want(l, message);
	if (message->kind != ES_ROLLOUT_STATE || node->state == ES_ROLLOUT_LEFT_OUT)
		return;
	node->heard_ns = l->ops->now_ns(l->ctx);
	if (l->phase == ES_ROLLOUT_CHECKING &&
	    (node->state == ES_ROLLOUT_NONE || node->state == ES_ROLLOUT_READY))
		on_verdict(l, message);
	else if (l->phase == ES_ROLLOUT_SWITCHING && node->state == ES_ROLLOUT_READY)
		on_switched(l, message);
	else if (l->phase == ES_ROLLOUT_TAKING_BACK &&
		 (node->state == ES_ROLLOUT_SWITCHED || node->state == ES_ROLLOUT_LOST))
		on_taken_back(l, message);
	else if (l->phase == ES_ROLLOUT_RESTARTING)
		on_restarted(l, message);
}

/* --- life */

int es_rollout_lead(struct es_rollout_leader *l, const struct es_rollout_ops *ops, void *ctx,
		    unsigned int self, unsigned int node_count, unsigned long long number, const char *text,
		    size_t len, int is_dry, int restarts)
{
	l->text = malloc(len);
	if (!l->text)
		return -ENOMEM;
	memcpy(l->text, text, len);
	l->total = len;
	l->ops = ops;
	l->ctx = ctx;
	l->self = self;
	l->node_count = node_count;
	l->number = number;
	l->is_dry = is_dry;
	l->restarts = restarts;
	l->result = ES_ROLLOUT_PENDING;
	for (unsigned int i = 0; i < node_count; i++)
		l->node[i].member = l->node[i].heard_ns = 0;
	phase_begin(l, ES_ROLLOUT_CHECKING);
	es_rollout_leader_tick(l);
	return 0;
}

void es_rollout_leader_stop(struct es_rollout_leader *l)
{
	if (es_rollout_is_leading(l))
		finish(l, l->phase == ES_ROLLOUT_CHECKING     ? ES_ROLLOUT_NOT_TAKEN
			  : l->phase == ES_ROLLOUT_RESTARTING ? ES_ROLLOUT_HALTED
							      : ES_ROLLOUT_INCOMPLETE);
}

const char *es_rollout_state_name(unsigned int state)
{
	static const char *const names[ES_ROLLOUT_STATE_COUNT] = {
		"asked", "ready", "refused", "switched", "failed", "taken_back", "stuck", "busy", "gone",
	};

	switch (state) {
	case ES_ROLLOUT_LEFT_OUT:
		return "left_out";
	case ES_ROLLOUT_OLD:
		return "old_version";
	case ES_ROLLOUT_LOST:
		return "lost";
	case ES_ROLLOUT_RESTARTS:
		return "restarts";
	case ES_ROLLOUT_BEGUN:
		return "restarted";
	default:
		return state < ES_ROLLOUT_STATE_COUNT ? names[state] : "unknown";
	}
}

const char *es_rollout_phase_name(enum es_rollout_phase phase)
{
	static const char *const names[] = {"idle",	   "checking",	 "switching",
					    "taking_back", "restarting", "done"};

	return names[phase];
}

const char *es_rollout_result_name(enum es_rollout_result result)
{
	static const char *const names[] = {"pending",	  "checked",	"switched", "refused",
					    "taken_back", "incomplete", "halted"};

	return names[result];
}
