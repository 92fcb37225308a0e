// SPDX-License-Identifier: GPL-2.0-or-later
/* The file of the last rollout for a node that was away: asking for it, and giving it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/base/event.h"
#include "inspector/base/wall.h"
#include "inspector/daemon/catch_up.h"
#include "inspector/daemon/internal.h"
#include "inspector/daemon/membership.h"
#include "inspector/daemon/rollout.h"
#include "inspector/self/settings.h"
#include "membership/group.h"
#include "membership/wire.h"

#define LOOK_S	       0.25
#define ASK_AGAIN_MS   500
#define TRIES	       4     /* a node of a version before does not answer */
#define BEGIN_AGAIN_MS 30000 /* for one that is refused */

static unsigned long long ms_since(unsigned long long at_ns)
{
	return (es_clock_now_ns() - at_ns) / ES_ROLLOUT_NS_PER_MS;
}

/* --- giving */

static unsigned long long now_ns(void *ctx)
{
	(void)ctx;
	return es_clock_now_ns();
}

static int nothing_to_check(void *ctx, const char *text, size_t len, struct es_conf_error *err)
{
	(void)ctx;
	(void)text;
	(void)len;
	(void)err;
	return 0;
}

static int nothing_to_do(void *ctx, struct es_conf_error *err)
{
	(void)ctx;
	(void)err;
	return 0;
}

static void nothing_to_forget(void *ctx)
{
	(void)ctx;
}

/* The node that gives has the file already. */
static const struct es_rollout_ops giving = {
	.now_ns = now_ns,
	.send = es_daemon_rollout_send,
	.check = nothing_to_check,
	.commit = nothing_to_do,
	.revert = nothing_to_do,
	.discard = nothing_to_forget,
};

/*
 * The file in force, if it is that of the last rollout, and nobody has written another one in its place; for
 * free().
 */
static char *text_read(const struct es_daemon *d)
{
	const struct es_rollout_past *last = es_rollout_history_last(&d->rollout->history);
	FILE *file = last && last->digest == d->conf->digest ? fopen(d->options.config_path, "re") : NULL;
	char *text = file ? malloc(ES_ROLLOUT_MAX) : NULL;
	size_t len = 0;

	if (text)
		len = fread(text, 1, ES_ROLLOUT_MAX - 1, file);
	if (file)
		fclose(file);
	if (text && es_conf_digest(text, len) == last->digest && !memchr(text, 0, len)) {
		text[len] = 0;
		return text;
	}
	free(text);
	return NULL;
}

static void give(struct es_daemon *d, unsigned int to, const char *text)
{
	struct es_daemon_catch_up *c = &d->rollout->catch_up;
	char settings[ES_WIRE_SETTINGS_SIZE];
	struct json_object *document;
	const char *whole;
	size_t len;

	es_settings_text(d->conf, &d->keys, &d->network, d->plugins, settings, sizeof(settings));
	document = es_daemon_rollout_document(&d->rollout->history, settings, text);
	json_object_object_add(document, "catch_up", json_object_new_boolean(1));
	whole = json_object_to_json_string_length(
		document, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &len);
	memset(c->giver.node, 0, sizeof(c->giver.node));
	for (unsigned int i = 0; i < d->conf->node_count; i++)
		c->giver.node[i].state = ES_ROLLOUT_LEFT_OUT;
	c->giver.node[to].state = ES_ROLLOUT_NONE;
	c->giver.node[d->cluster->self].state = ES_ROLLOUT_READY;
	c->to = to;
	c->has_told = 0;
	if (len <= ES_ROLLOUT_MAX)
		(void)!es_rollout_lead(&c->giver, &giving, d, d->cluster->self, d->conf->node_count,
				       es_daemon_rollout_number(d), whole, len, 0, 0);
	json_object_put(document);
}

static void answer(struct es_daemon *d, const struct es_rollout_message *question, enum es_rollout_kind kind)
{
	const struct es_rollout_message message = {
		.source = d->cluster->self,
		.target = question->source,
		.kind = kind,
		.member = question->member,
	};

	es_daemon_rollout_send(d, &message);
}

/* While one is given, another one that asks is not answered, and asks again. */
static void on_ask(struct es_daemon *d, const struct es_rollout_message *message)
{
	char *text;

	if (es_daemon_rollout_is_busy(d) || es_rollout_is_leading(&d->rollout->catch_up.giver))
		return;
	if (message->digest == d->conf->digest) {
		answer(d, message, ES_ROLLOUT_ALIKE);
		return;
	}
	text = text_read(d);
	if (text)
		give(d, message->source, text);
	else
		answer(d, message, ES_ROLLOUT_NO_FILE);
	free(text);
}

void es_daemon_catch_up_tell(struct es_daemon *d)
{
	struct es_daemon_catch_up *c = &d->rollout->catch_up;
	const struct es_rollout_past *last = es_rollout_history_last(&d->rollout->history);

	if (c->giver.phase != ES_ROLLOUT_DONE || c->has_told)
		return;
	c->has_told = 1;
	if (c->giver.result == ES_ROLLOUT_ALL_SWITCHED && last)
		es_event(ES_EVENT_rollout, ES_LOG_INFO, d->conf->nodes[c->to].name,
			 "%s had an older file, and was given %s, rolled out by %s",
			 d->conf->nodes[c->to].name, last->name, last->by);
}

/* --- asking */

static void begin(struct es_daemon_catch_up *c)
{
	c->is_due = 1;
	c->node = 0;
	c->tries = 0;
}

static void next(struct es_daemon_catch_up *c)
{
	c->node++;
	c->tries = 0;
}

static void end(struct es_daemon_catch_up *c)
{
	c->is_due = 0;
	c->ended_ns = es_clock_now_ns();
}

static int has_members(const struct es_daemon *d)
{
	const struct es_group *group = es_membership_group(d->membership);

	for (unsigned int i = 0; i < group->node_count; i++)
		if (i != d->cluster->self && group->node[i].is_accepted)
			return 1;
	return 0;
}

/*
 * Members; where nobody else is one, those that are refused: when all start, and the one whose word counts
 * has the older file, it refuses all that have the later one.
 */
static int is_to_be_asked(const struct es_daemon *d, unsigned int i)
{
	const struct es_group_node *node = &es_membership_group(d->membership)->node[i];

	return i != d->cluster->self && node->is_member && (node->is_accepted || !has_members(d));
}

/* How many this node refuses while it is the only member. */
static unsigned int count_refused(const struct es_daemon *d)
{
	const struct es_group *group = es_membership_group(d->membership);
	unsigned int refused = 0;

	for (unsigned int i = 0; i < group->node_count && !has_members(d); i++)
		refused += i != d->cluster->self && group->node[i].is_member;
	return refused;
}

static void ask(struct es_daemon *d)
{
	struct es_daemon_catch_up *c = &d->rollout->catch_up;
	struct es_rollout_message message = {
		.source = d->cluster->self,
		.kind = ES_ROLLOUT_ASK,
		.digest = d->conf->digest,
	};

	if (c->tries && ms_since(c->asked_ns) < ASK_AGAIN_MS)
		return;
	if (c->tries == TRIES)
		next(c);
	while (c->node < d->conf->node_count && !is_to_be_asked(d, c->node))
		next(c);
	if (c->node >= d->conf->node_count) {
		end(c);
		return;
	}
	c->tries++;
	c->asked_ns = es_clock_now_ns();
	c->number++;
	message.target = c->node;
	message.member = c->number;
	es_daemon_rollout_send(d, &message);
}

static void on_timer(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct es_daemon *d = timer->data;
	struct es_daemon_catch_up *c = &d->rollout->catch_up;
	const struct es_group *group = es_membership_group(d->membership);
	const struct es_group_node *self = &group->node[d->cluster->self];
	unsigned int refused;

	(void)loop;
	(void)events;
	if (group->phase != ES_GROUP_STABLE) {
		c->was_out |= group->phase == ES_GROUP_OUT;
		return;
	}
	refused = count_refused(d);
	if (c->was_out || refused > c->refused_count ||
	    (!c->is_due && (refused || !self->is_accepted) && ms_since(c->ended_ns) >= BEGIN_AGAIN_MS))
		begin(c);
	c->was_out = 0;
	c->refused_count = refused;
	if (c->is_due && d->conf->cluster.catch_up && !es_daemon_rollout_is_busy(d))
		ask(d);
}

int es_daemon_catch_up_judge(const struct es_daemon *d, unsigned int from, struct es_conf_error *err)
{
	const struct es_daemon_rollout *r = d->rollout;
	const struct es_rollout_past *own = es_rollout_history_last(&r->history);

	if (!d->membership || !d->conf->cluster.catch_up || !r->catch_up.is_due || r->catch_up.node != from) {
		es_conf_error_set(err, "this node has not asked for it");
		return -EINVAL;
	}
	switch (es_rollout_history_age(&r->history, d->conf->digest, &r->next)) {
	case ES_ROLLOUT_OLDER:
		return 0;
	case ES_ROLLOUT_SAME:
		es_conf_error_set(err, "the file here is the same");
		break;
	case ES_ROLLOUT_CHANGED:
		if (own)
			es_conf_error_set(err,
					  "the file here was changed by hand since %s was rolled out by %s",
					  own->name, own->by);
		else
			es_conf_error_set(err, "the file here is none that the others have had");
		break;
	case ES_ROLLOUT_APART:
		es_conf_error_set(
			err,
			"the file here was rolled out by %s, and that is none of the last %u rollouts of "
			"the others",
			own->by, ES_ROLLOUT_HISTORY_MAX);
		break;
	}
	return -EEXIST;
}

/* Once for each reason: it asks again while it is refused. */
void es_daemon_catch_up_refused(struct es_daemon *d, const struct es_conf_error *err)
{
	struct es_daemon_catch_up *c = &d->rollout->catch_up;

	if (!c->is_due)
		return;
	next(c);
	if (!strcmp(c->refused, err->text))
		return;
	snprintf(c->refused, sizeof(c->refused), "%s", err->text);
	es_event(ES_EVENT_rollout_refused, ES_LOG_WARNING, NULL,
		 "%s, rolled out by %s while this node was away, is not taken: %s; earshot rollout of the "
		 "right "
		 "file makes all alike",
		 d->rollout->name, d->rollout->by, err->text);
}

void es_daemon_catch_up_taken(struct es_daemon *d, unsigned int from)
{
	struct es_daemon_catch_up *c = &d->rollout->catch_up;

	end(c);
	es_event(ES_EVENT_rollout, ES_LOG_INFO, NULL,
		 "%s, rolled out by %s while this node was away, was taken from %s and is in force here; the "
		 "older "
		 "file is %s",
		 d->rollout->name, d->rollout->by, d->conf->nodes[from].name, d->rollout->file.previous);
}

void es_daemon_catch_up_message(struct es_daemon *d, const struct es_rollout_message *message)
{
	struct es_daemon_catch_up *c = &d->rollout->catch_up;

	if (!d->membership)
		return;
	if (message->kind == ES_ROLLOUT_ASK) {
		on_ask(d, message);
		return;
	}
	if (!c->is_due || message->source != c->node || message->member != c->number)
		return;
	if (message->kind == ES_ROLLOUT_NO_FILE) {
		next(c);
		return;
	}
	c->refused[0] = 0;
	end(c);
}

/* --- life */

void es_daemon_catch_up_start(struct es_daemon *d)
{
	struct es_daemon_catch_up *c = &d->rollout->catch_up;

	c->was_out = 1;
	c->number = es_number_ns();
	if (!d->membership)
		return;
	ev_timer_init(&c->timer, on_timer, LOOK_S, LOOK_S);
	c->timer.data = d;
	ev_timer_start(d->loop, &c->timer);
}

void es_daemon_catch_up_stop(struct es_daemon *d)
{
	struct es_daemon_catch_up *c = &d->rollout->catch_up;

	es_rollout_leader_stop(&c->giver);
	if (ev_is_active(&c->timer))
		ev_timer_stop(d->loop, &c->timer);
}
