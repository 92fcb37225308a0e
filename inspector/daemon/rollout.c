// SPDX-License-Identifier: GPL-2.0-or-later
/* Carries out a rollout on this node, in either role. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/base/event.h"
#include "inspector/base/json.h"
#include "inspector/base/wall.h"
#include "inspector/daemon/internal.h"
#include "inspector/daemon/restart.h"
#include "inspector/daemon/rollout.h"
#include "membership/group.h"

#define ES_ROLLOUT_TICK_S (ES_ROLLOUT_TICK_MS / 1000.0)

/* --- what a rollout wants done here */

static unsigned long long now_ns(void *ctx)
{
	(void)ctx;
	return es_clock_now_ns();
}

/*
 * A node that takes the rollout back puts its file in force again: so the file must be what is in force now.
 */
static int file_is_in_force(const struct es_daemon *d, struct es_conf_error *err)
{
	struct es_conf *there = NULL;
	int rc = es_conf_read(d->options.config_path, &there, err);

	if (!rc && there->digest != d->conf->digest) {
		es_conf_error_set(
			err,
			"%s was changed and is not in force: expected the file as it was read last; "
			"put that back, or do: earshot reload",
			d->options.config_path);
		rc = -EBUSY;
	}
	es_conf_free(&there);
	return rc;
}

int es_daemon_rollout_stage(struct es_daemon *d, const struct es_daemon_text *text,
			    const char *leaders_settings, char *ret_settings, struct es_conf_error *err)
{
	char difference[ES_GROUP_TEXT_SIZE];
	int rc = es_daemon_try(d, text, d->rollout->restarts, ret_settings, ES_WIRE_SETTINGS_SIZE, err);
	const struct es_conf_error note = *err;

	if (!rc)
		rc = file_is_in_force(d, err);
	if (rc)
		return rc;
	if (*leaders_settings &&
	    es_group_settings_differ(ret_settings, leaders_settings, difference, sizeof(difference))) {
		es_conf_error_set(err, "%s: this node would differ from the one that leads: %s", text->name,
				  difference);
		return -EINVAL;
	}
	rc = es_rollout_file_stage(&d->rollout->file, d->options.config_path, text->text, text->len, err);
	if (!rc)
		*err = note;
	return rc;
}

/* The leader's history is everybody's from now on; a version before has none. */
static int history_take(struct es_daemon *d, struct json_object *document, unsigned long long digest,
			struct es_conf_error *err)
{
	struct es_daemon_rollout *r = d->rollout;
	struct json_object *history;
	const struct es_rollout_past *last;

	r->is_catch_up = es_json_is_true(document, "catch_up");
	if (json_object_object_get_ex(document, "history", &history)) {
		last = es_rollout_history_parse(history, &r->next) ? NULL : es_rollout_history_last(&r->next);
		if (last && last->digest == digest)
			return 0;
		es_conf_error_set(err, "the leader's message has another file than its history");
		return -EBADMSG;
	}
	r->next = r->history;
	es_daemon_rollout_past_add(d, &r->next, r->member.rollout, digest);
	return 0;
}

static int check_document(struct es_daemon *d, struct json_object *document, struct es_conf_error *err)
{
	struct es_daemon_text text = {.name = es_daemon_rollout_text(document, "name"),
				      .text = es_daemon_rollout_text(document, "text")};
	struct es_daemon_rollout *r = d->rollout;
	char settings[ES_WIRE_SETTINGS_SIZE];
	int rc;

	text.len = strlen(text.text);
	if (!*text.name || !text.len) {
		es_conf_error_set(err, "the leader's message says nothing of a file");
		return -EBADMSG;
	}
	snprintf(r->name, sizeof(r->name), "%s", text.name);
	snprintf(r->by, sizeof(r->by), "%s", es_daemon_rollout_text(document, "by"));
	r->restarts = es_json_is_true(document, "restart");
	rc = history_take(d, document, es_conf_digest(text.text, text.len), err);
	if (!rc && r->is_catch_up)
		rc = es_daemon_catch_up_judge(d, (unsigned int)r->member.leader, err);
	if (rc)
		return rc;
	return es_daemon_rollout_stage(d, &text, es_daemon_rollout_text(document, "settings"), settings, err);
}

static int check(void *ctx, const char *text, size_t len, struct es_conf_error *err)
{
	struct json_tokener *tokener = json_tokener_new();
	struct json_object *document = tokener ? json_tokener_parse_ex(tokener, text, (int)len) : NULL;
	struct es_daemon *d = ctx;
	int rc;

	json_tokener_free(tokener);
	rc = check_document(d, document, err);
	json_object_put(document);
	if (rc && d->rollout->is_catch_up)
		es_daemon_catch_up_refused(d, err);
	else if (rc)
		es_event(ES_EVENT_rollout_refused, ES_LOG_WARNING, NULL,
			 "a rollout of %s by %s is refused here: %s", d->rollout->name, d->rollout->by,
			 err->text);
	return rc;
}

/* The node that leads tells of all nodes, at the end. */
static void tell_here(struct es_daemon *d, const char *what)
{
	if (!es_rollout_is_leading(&d->rollout->leader))
		es_event(ES_EVENT_rollout, ES_LOG_INFO, NULL, "%s, rolled out by %s, %s", d->rollout->name,
			 d->rollout->by, what);
}

/* Without it, the next start would take this node's file for one that was changed by hand. */
static void history_set(struct es_daemon *d, const struct es_rollout_history *history)
{
	int rc;

	d->rollout->history = *history;
	rc = es_rollout_history_write(d->rollout_path, history);
	if (rc)
		es_log(ES_LOG_ERR,
		       "%s: cannot be written: %s; after a restart this node does not know that its "
		       "configuration is that of the last rollout",
		       d->rollout_path, strerror(-rc));
}

static int commit(void *ctx, struct es_conf_error *err)
{
	struct es_daemon *d = ctx;
	struct es_conf_error unwanted = {};
	int rc = es_rollout_file_place(&d->rollout->file, err);

	if (rc)
		return rc;
	rc = es_daemon_reload(d, d->rollout->restarts, err);
	if (rc && es_rollout_file_back(&d->rollout->file, &unwanted))
		es_log(ES_LOG_ERR, "rollout: %s; the next start would read a file that is refused",
		       unwanted.text);
	if (rc)
		return rc;
	d->rollout->before = d->rollout->history;
	history_set(d, &d->rollout->next);
	if (d->rollout->is_catch_up)
		es_daemon_catch_up_taken(d, (unsigned int)d->rollout->member.leader);
	else
		tell_here(d, "is in force here");
	d->rollout->catch_up.refused[0] = 0;
	es_start_settings_tell(d->waiting, err);
	return 0;
}

static int revert(void *ctx, struct es_conf_error *err)
{
	struct es_daemon *d = ctx;
	int rc = es_rollout_file_back(&d->rollout->file, err);

	if (!rc)
		rc = es_daemon_reload(d, 1, err);
	if (rc)
		return rc;
	history_set(d, &d->rollout->before);
	tell_here(d, "was taken back here");
	return 0;
}

static void discard(void *ctx)
{
	struct es_daemon *d = ctx;

	es_rollout_file_forget(&d->rollout->file);
}

/* Nodes that are left out need not serve. */
static int may_restart(void *ctx, unsigned int node, struct es_conf_error *err)
{
	struct es_daemon *d = ctx;

	for (unsigned int i = 0; i < d->conf->node_count; i++)
		if (i != node && !d->conf->nodes[i].removed &&
		    (i >= d->rollout->leader.node_count ||
		     d->rollout->leader.node[i].state != ES_ROLLOUT_LEFT_OUT) &&
		    !es_daemon_serves(d, i)) {
			es_conf_error_set(
				err,
				"node %s does not serve: expected all others to, before one is restarted",
				d->conf->nodes[i].name);
			return -EAGAIN;
		}
	return 0;
}

static void restart(void *ctx)
{
	struct es_daemon *d = ctx;

	if (d->begins_anew)
		return;
	es_event(ES_EVENT_rollout, ES_LOG_INFO, NULL, "%s, rolled out by %s, wants another start: %s",
		 d->rollout->name, d->rollout->by, d->waiting);
	es_daemon_begin_anew(d);
}

static int has_begun(void *ctx)
{
	struct es_daemon *d = ctx;

	return es_daemon_serves(d, d->cluster->self);
}

const struct es_rollout_ops es_daemon_rollout_ops = {
	.now_ns = now_ns,
	.send = es_daemon_rollout_send,
	.check = check,
	.commit = commit,
	.revert = revert,
	.discard = discard,
	.may_restart = may_restart,
	.restart = restart,
	.has_begun = has_begun,
};

/* --- the end of one, for people */

static void tell_end(struct es_daemon *d)
{
	static const char *const words[] = {
		"",
		"would be taken by all nodes",
		"is in force on all nodes",
		"is refused, and changes nothing",
		"was taken back on all nodes",
		"may not be in force on all nodes",
		"is in force on all nodes, but for what a restart of some daemons alone changes",
	};
	const struct es_rollout_leader *l = &d->rollout->leader;
	int is_good = l->result == ES_ROLLOUT_ALL_SWITCHED || l->result == ES_ROLLOUT_CHECKED;
	char nodes[ES_EVENT_TEXT_SIZE] = "";
	size_t used = 0;

	if (l->phase != ES_ROLLOUT_DONE || d->rollout->has_told)
		return;
	d->rollout->has_told = 1;
	for (unsigned int i = 0; i < l->node_count && used < sizeof(nodes); i++)
		if (l->node[i].state == ES_ROLLOUT_LEFT_OUT || l->node[i].why[0])
			used += (size_t)snprintf(nodes + used, sizeof(nodes) - used, "; %s: %s",
						 d->conf->nodes[i].name,
						 l->node[i].why[0] ? l->node[i].why : "left out");
	es_event(is_good ? ES_EVENT_rollout : ES_EVENT_rollout_refused,
		 is_good ? ES_LOG_INFO : ES_LOG_WARNING, NULL, "%s, rolled out by %s, %s%s", d->rollout->name,
		 d->rollout->by, words[l->result], nodes);
}

void es_daemon_rollout_go_on(struct es_daemon *d)
{
	struct es_daemon_rollout *r = d->rollout;
	int is_busy = es_daemon_rollout_is_busy(d) || es_rollout_is_leading(&r->catch_up.giver);

	tell_end(d);
	es_daemon_catch_up_tell(d);
	if (is_busy && !ev_is_active(&r->timer))
		ev_timer_again(d->loop, &r->timer);
	else if (!is_busy && ev_is_active(&r->timer))
		ev_timer_stop(d->loop, &r->timer);
}

static void on_timer(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct es_daemon *d = timer->data;

	(void)loop;
	(void)events;
	es_rollout_leader_tick(&d->rollout->leader);
	es_rollout_leader_tick(&d->rollout->catch_up.giver);
	es_rollout_member_tick(&d->rollout->member);
	es_daemon_rollout_go_on(d);
}

int es_daemon_rollout_message(void *daemon, const void *data, size_t len)
{
	struct es_daemon *d = daemon;
	struct es_rollout_datagram datagram;
	struct es_rollout_message message;
	int rc = es_rollout_get(data, len, d->cluster->self, d->conf->node_count, &d->keys, &datagram,
				&message);

	if (rc)
		return rc;
	switch (message.kind) {
	case ES_ROLLOUT_WANT:
	case ES_ROLLOUT_STATE:
		es_rollout_leader_message(&d->rollout->leader, &message);
		es_rollout_leader_message(&d->rollout->catch_up.giver, &message);
		break;
	case ES_ROLLOUT_ASK:
	case ES_ROLLOUT_ALIKE:
	case ES_ROLLOUT_NO_FILE:
		es_daemon_catch_up_message(d, &message);
		break;
	default:
		es_rollout_member_message(&d->rollout->member, &message,
					  es_rollout_is_leading(&d->rollout->leader));
		break;
	}
	es_daemon_rollout_go_on(d);
	return 0;
}

/* --- life */

int es_daemon_rollout_start(struct es_daemon *d, struct es_conf_error *err)
{
	int rc = es_rollout_history_read(d->rollout_path, &d->rollout->history);

	(void)err;
	if (rc && rc != -ENOENT)
		es_log(ES_LOG_WARNING, "%s: cannot be read: %s; the last rollout is not known",
		       d->rollout_path, strerror(-rc));
	es_rollout_member_init(&d->rollout->member, &es_daemon_rollout_ops, d, d->cluster->self,
			       es_number_ns());
	ev_init(&d->rollout->timer, on_timer);
	d->rollout->timer.repeat = ES_ROLLOUT_TICK_S;
	d->rollout->timer.data = d;
	es_daemon_catch_up_start(d);
	return 0;
}

void es_daemon_rollout_stop(struct es_daemon *d)
{
	struct es_daemon_rollout *r = d->rollout;

	if (!r->member.ops)
		return;
	es_daemon_catch_up_stop(d);
	es_rollout_leader_stop(&r->leader);
	es_rollout_member_stop(&r->member);
	if (ev_is_active(&r->timer))
		ev_timer_stop(d->loop, &r->timer);
}
