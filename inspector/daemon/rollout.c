// SPDX-License-Identifier: GPL-2.0-or-later
/* What a rollout does to this node, its way to the others, and the command that begins one. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "inspector/base/clock.h"
#include "inspector/base/event.h"
#include "inspector/base/wall.h"
#include "inspector/daemon/internal.h"
#include "inspector/daemon/restart.h"
#include "inspector/daemon/rollout.h"
#include "inspector/report/json.h"
#include "membership/group.h"

#define NS_PER_US	  1000ULL
#define HEARD_LATELY_MS	  3000
#define ES_ROLLOUT_TICK_S (ES_ROLLOUT_TICK_MS / 1000.0)

/* --- what a rollout wants done here */

static unsigned long long now_ns(void *ctx)
{
	(void)ctx;
	return es_clock_now_ns();
}

void es_daemon_rollout_send(void *daemon, const struct es_rollout_message *message)
{
	const struct es_daemon *d = daemon;
	struct es_rollout_datagram datagram;
	size_t len = es_rollout_put(&datagram, message, &d->keys.key[0].handover);

	es_daemon_send(d, message->target, &datagram, len);
}

static const char *text_of(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(object, key, &value);
	return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

static int is_set(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(object, key, &value);
	return json_object_get_boolean(value);
}

static void past_add(const struct es_daemon *d, struct es_rollout_history *history, unsigned long long number,
		     unsigned long long digest)
{
	struct es_rollout_past past = {
		.number = number, .digest = digest, .time_ms = es_wall_ns() / ES_ROLLOUT_NS_PER_MS};

	snprintf(past.name, sizeof(past.name), "%s", d->rollout.name);
	snprintf(past.by, sizeof(past.by), "%s", d->rollout.by);
	es_rollout_history_add(history, d->conf->digest, &past);
}

/* What this node would go back to is its file: that must be what is in force, and not one that nobody has put in force. */
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

/* May this node take it, and may nodes with these two settings be in one cluster? Then it is beside the file in force, and
 * @err says what waits for a restart. */
static int try_and_stage(struct es_daemon *d, const struct es_daemon_text *text, const char *leaders_settings,
			 char *ret_settings, struct es_conf_error *err)
{
	char difference[ES_GROUP_TEXT_SIZE];
	int rc = es_daemon_try(d, text, d->rollout.restarts, ret_settings, ES_WIRE_SETTINGS_SIZE, err);
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
	rc = es_rollout_file_stage(&d->rollout.file, d->options.config_path, text->text, text->len, err);
	if (!rc)
		*err = note;
	return rc;
}

/* The leader's history is everybody's from now on; a version before has none. */
static int history_take(struct es_daemon *d, struct json_object *document, unsigned long long digest,
			struct es_conf_error *err)
{
	struct es_daemon_rollout *r = &d->rollout;
	struct json_object *history;
	const struct es_rollout_past *last;

	r->is_catch_up = is_set(document, "catch_up");
	if (json_object_object_get_ex(document, "history", &history)) {
		last = es_rollout_history_parse(history, &r->next) ? NULL : es_rollout_history_last(&r->next);
		if (last && last->digest == digest)
			return 0;
		es_conf_error_set(err, "the leader's message has another file than its history");
		return -EBADMSG;
	}
	r->next = r->history;
	past_add(d, &r->next, r->member.rollout, digest);
	return 0;
}

static int check_document(struct es_daemon *d, struct json_object *document, struct es_conf_error *err)
{
	struct es_daemon_text text = {.name = text_of(document, "name"), .text = text_of(document, "text")};
	struct es_daemon_rollout *r = &d->rollout;
	char settings[ES_WIRE_SETTINGS_SIZE];
	int rc;

	text.len = strlen(text.text);
	if (!*text.name || !text.len) {
		es_conf_error_set(err, "the leader's message says nothing of a file");
		return -EBADMSG;
	}
	snprintf(r->name, sizeof(r->name), "%s", text.name);
	snprintf(r->by, sizeof(r->by), "%s", text_of(document, "by"));
	r->restarts = is_set(document, "restart");
	rc = history_take(d, document, es_conf_digest(text.text, text.len), err);
	if (!rc && r->is_catch_up)
		rc = es_daemon_catch_up_judge(d, (unsigned int)r->member.leader, err);
	if (rc)
		return rc;
	return try_and_stage(d, &text, text_of(document, "settings"), settings, err);
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
	if (rc && d->rollout.is_catch_up)
		es_daemon_catch_up_refused(d, err);
	else if (rc)
		es_event(ES_EVENT_rollout_refused, ES_LOG_WARNING, NULL,
			 "a rollout of %s by %s is refused here: %s", d->rollout.name, d->rollout.by,
			 err->text);
	return rc;
}

/* The node that leads tells of all nodes, at the end. */
static void tell_here(struct es_daemon *d, const char *what)
{
	if (!es_rollout_is_leading(&d->rollout.leader))
		es_event(ES_EVENT_rollout, ES_LOG_INFO, NULL, "%s, rolled out by %s, %s", d->rollout.name,
			 d->rollout.by, what);
}

/* Without it, the next start would take this node's file for one that was changed by hand. */
static void history_set(struct es_daemon *d, const struct es_rollout_history *history)
{
	int rc;

	d->rollout.history = *history;
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
	int rc = es_rollout_file_place(&d->rollout.file, err);

	if (rc)
		return rc;
	rc = es_daemon_reload(d, d->rollout.restarts, err);
	if (rc && es_rollout_file_back(&d->rollout.file, &unwanted))
		es_log(ES_LOG_ERR, "rollout: %s; the next start would read a file that is refused",
		       unwanted.text);
	if (rc)
		return rc;
	d->rollout.before = d->rollout.history;
	history_set(d, &d->rollout.next);
	if (d->rollout.is_catch_up)
		es_daemon_catch_up_taken(d, (unsigned int)d->rollout.member.leader);
	else
		tell_here(d, "is in force here");
	d->rollout.catch_up.refused[0] = 0;
	es_start_settings_tell(d->waiting, err);
	return 0;
}

static int revert(void *ctx, struct es_conf_error *err)
{
	struct es_daemon *d = ctx;
	int rc = es_rollout_file_back(&d->rollout.file, err);

	if (!rc)
		rc = es_daemon_reload(d, 1, err);
	if (rc)
		return rc;
	history_set(d, &d->rollout.before);
	tell_here(d, "was taken back here");
	return 0;
}

static void discard(void *ctx)
{
	struct es_daemon *d = ctx;

	es_rollout_file_forget(&d->rollout.file);
}

/* Those that are left out serve nothing, or as they will. */
static int may_restart(void *ctx, unsigned int node, struct es_conf_error *err)
{
	struct es_daemon *d = ctx;

	for (unsigned int i = 0; i < d->conf->node_count; i++)
		if (i != node && !d->conf->nodes[i].removed &&
		    (i >= d->rollout.leader.node_count ||
		     d->rollout.leader.node[i].state != ES_ROLLOUT_LEFT_OUT) &&
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
		 d->rollout.name, d->rollout.by, d->waiting);
	es_daemon_begin_anew(d);
}

static int has_begun(void *ctx)
{
	struct es_daemon *d = ctx;

	return es_daemon_serves(d, d->cluster->self);
}

static const struct es_rollout_ops ops = {
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
	const struct es_rollout_leader *l = &d->rollout.leader;
	int is_good = l->result == ES_ROLLOUT_ALL_SWITCHED || l->result == ES_ROLLOUT_CHECKED;
	char nodes[ES_EVENT_TEXT_SIZE] = "";
	size_t used = 0;

	if (l->phase != ES_ROLLOUT_DONE || d->rollout.has_told)
		return;
	d->rollout.has_told = 1;
	for (unsigned int i = 0; i < l->node_count && used < sizeof(nodes); i++)
		if (l->node[i].state == ES_ROLLOUT_LEFT_OUT || l->node[i].why[0])
			used += (size_t)snprintf(nodes + used, sizeof(nodes) - used, "; %s: %s",
						 d->conf->nodes[i].name,
						 l->node[i].why[0] ? l->node[i].why : "left out");
	es_event(is_good ? ES_EVENT_rollout : ES_EVENT_rollout_refused,
		 is_good ? ES_LOG_INFO : ES_LOG_WARNING, NULL, "%s, rolled out by %s, %s%s", d->rollout.name,
		 d->rollout.by, words[l->result], nodes);
}

int es_daemon_rollout_is_busy(const struct es_daemon *d)
{
	return es_rollout_is_leading(&d->rollout.leader) || es_rollout_member_is_busy(&d->rollout.member);
}

void es_daemon_rollout_go_on(struct es_daemon *d)
{
	struct es_daemon_rollout *r = &d->rollout;
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
	es_rollout_leader_tick(&d->rollout.leader);
	es_rollout_leader_tick(&d->rollout.catch_up.giver);
	es_rollout_member_tick(&d->rollout.member);
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
		es_rollout_leader_message(&d->rollout.leader, &message);
		es_rollout_leader_message(&d->rollout.catch_up.giver, &message);
		break;
	case ES_ROLLOUT_ASK:
	case ES_ROLLOUT_ALIKE:
	case ES_ROLLOUT_NO_FILE:
		es_daemon_catch_up_message(d, &message);
		break;
	default:
		es_rollout_member_message(&d->rollout.member, &message,
					  es_rollout_is_leading(&d->rollout.leader));
		break;
	}
	es_daemon_rollout_go_on(d);
	return 0;
}

struct json_object *es_daemon_rollout_told(const struct es_daemon *d)
{
	const struct es_rollout_past *last = es_rollout_history_last(&d->rollout.history);
	struct json_object *object = json_object_new_object();

	es_json_string(object, "name", last ? last->name : "");
	es_json_string(object, "by", last ? last->by : "");
	es_json_number(object, "time_ms", last ? last->time_ms : 0);
	json_object_object_add(object, "in_force",
			       json_object_new_boolean(last && last->digest == d->conf->digest));
	es_json_string(object, "not_taken", d->rollout.catch_up.refused);
	return object;
}

/* --- the command */

/* One that was refused joins a moment after it has the file. */
static void report_membership(const struct es_daemon *d, unsigned int i, struct json_object *node)
{
	char text[ES_GROUP_TEXT_SIZE + 32];
	const char *lacks = d->membership ? es_membership_lacks(d->membership, i, text, sizeof(text)) : NULL;

	json_object_object_add(node, "member", json_object_new_boolean(!lacks));
	if (lacks)
		es_json_string(node, "reason", lacks);
}

static struct json_object *report(const struct es_daemon *d)
{
	const struct es_rollout_leader *l = &d->rollout.leader;
	struct json_object *object = json_object_new_object(), *nodes = json_object_new_array();

	es_json_number(object, "number", l->number);
	es_json_string(object, "name", d->rollout.name);
	es_json_string(object, "by", d->rollout.by);
	es_json_string(object, "node", d->conf->nodes[d->cluster->self].name);
	json_object_object_add(object, "dry_run", json_object_new_boolean(l->is_dry));
	es_json_string(object, "phase", es_rollout_phase_name(l->phase));
	es_json_string(object, "result", es_rollout_result_name(l->result));
	/* The last one, which nobody could tell of. */
	json_object_object_add(
		object, "restart_self",
		json_object_new_boolean(l->restarts && l->result == ES_ROLLOUT_ALL_SWITCHED && *d->waiting));
	for (unsigned int i = 0; i < l->node_count; i++) {
		struct json_object *node = json_object_new_object();

		es_json_string(node, "name", d->conf->nodes[i].name);
		es_json_string(node, "state", es_rollout_state_name(l->node[i].state));
		es_json_string(node, "reason", l->node[i].why);
		json_object_array_add(nodes, node);
		if (l->result == ES_ROLLOUT_ALL_SWITCHED && l->node[i].state == ES_ROLLOUT_SWITCHED)
			report_membership(d, i, node);
	}
	json_object_object_add(object, "nodes", nodes);
	return object;
}

static int node_find(const struct es_daemon *d, const char *name)
{
	for (unsigned int i = 0; i < d->conf->node_count; i++)
		if (!strcmp(d->conf->nodes[i].name, name))
			return (int)i;
	return -1;
}

static void leave_out(struct es_rollout_leader *l, unsigned int node, const char *why)
{
	l->node[node].state = ES_ROLLOUT_LEFT_OUT;
	snprintf(l->node[node].why, sizeof(l->node[node].why), "%s", why);
}

/* Nodes that are none any more, or by @text. One that is wrong is refused by all in a moment. */
static void removed_find(struct es_daemon *d, const char *text)
{
	struct es_conf_error unwanted = {};
	struct es_conf *conf = NULL;
	int rc = es_conf_parse(text, strlen(text), "", &conf, &unwanted);

	for (unsigned int i = 0; i < d->conf->node_count; i++)
		if (d->conf->nodes[i].removed || (!rc && (i >= conf->node_count || conf->nodes[i].removed)))
			leave_out(&d->rollout.leader, i, "removed");
	es_conf_free(&conf);
}

/* What is known of the others before they are asked. */
static int standings_set(struct es_daemon *d, struct json_object *request, struct es_conf_error *err)
{
	struct es_rollout_leader *l = &d->rollout.leader;
	struct json_object *without = NULL;

	memset(l->node, 0, sizeof(l->node));
	removed_find(d, text_of(request, "text"));
	for (unsigned int i = 0; i < d->conf->node_count; i++) {
		if (i == d->cluster->self ||
		    !es_heard_within(&d->heard, i, HEARD_LATELY_MS * ES_ROLLOUT_NS_PER_MS) ||
		    atomic_load_explicit(&d->health.understands[i], memory_order_relaxed) &
			    ES_WIRE_UNDERSTANDS_ROLLOUTS)
			continue;
		l->node[i].state = ES_ROLLOUT_OLD;
		snprintf(l->node[i].why, sizeof(l->node[i].why), "it runs a version without rollout");
	}
	if (!json_object_object_get_ex(request, "without", &without))
		return 0;
	for (size_t i = 0;
	     json_object_is_type(without, json_type_array) && i < json_object_array_length(without); i++) {
		const char *name = json_object_get_string(json_object_array_get_idx(without, i));
		int node = name ? node_find(d, name) : -1;

		if (node < 0 || (unsigned int)node == d->cluster->self) {
			es_conf_error_set(err,
					  node < 0 ? "no node \"%.64s\" is configured"
						   : "%.64s leads this rollout, and cannot be left out",
					  name ? name : "");
			return -EINVAL;
		}
		leave_out(l, (unsigned int)node, "");
	}
	return 0;
}

/* The file in force must stay what it is until all have agreed. */
static int is_in_force(const struct es_daemon *d, const char *path)
{
	struct stat a, b;

	return *path == '/' && !stat(path, &a) && !stat(d->options.config_path, &b) && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static int may_begin(const struct es_daemon *d, struct json_object *request, struct es_conf_error *err)
{
	const struct es_daemon_rollout *r = &d->rollout;

	if (es_rollout_is_leading(&r->leader))
		es_conf_error_set(err, "%s is being rolled out by %s: wait for its end", r->name, r->by);
	else if (es_rollout_member_is_busy(&r->member))
		es_conf_error_set(err, "node %s leads a rollout: wait for its end",
				  d->conf->nodes[r->member.leader].name);
	else if (!*text_of(request, "name") || !*text_of(request, "text"))
		es_conf_error_set(err, "rollout: expected \"name\" and \"text\", or the \"number\" of one");
	else if (is_in_force(d, text_of(request, "path")))
		es_conf_error_set(
			err,
			"%s is the file in force here: expected a copy of it that was changed, so that "
			"there is one to go back to",
			text_of(request, "name"));
	else
		return 0;
	return -EBUSY;
}

static void by_take(struct es_daemon *d, struct json_object *request)
{
	struct es_daemon_rollout *r = &d->rollout;
	const char *by = text_of(request, "by");

	snprintf(r->name, sizeof(r->name), "%s", text_of(request, "name"));
	snprintf(r->by, sizeof(r->by), "%.63s%s%.31s", by, *by ? "@" : "",
		 d->conf->nodes[d->cluster->self].name);
	/* They become part of lines of the log. */
	for (char *c = r->name; *c; c++)
		*c = (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c;
	for (char *c = r->by; *c; c++)
		*c = (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c;
}

unsigned long long es_daemon_rollout_number(const struct es_daemon *d)
{
	const struct es_daemon_rollout *r = &d->rollout;
	unsigned long long number = es_number_ns() / NS_PER_US;

	if (number <= r->leader.number)
		number = r->leader.number + 1;
	return number > r->catch_up.giver.number ? number : r->catch_up.giver.number + 1;
}

struct json_object *es_daemon_rollout_document(const struct es_rollout_history *history, const char *settings,
					       const char *text)
{
	const struct es_rollout_past *last = es_rollout_history_last(history);
	struct json_object *document = json_object_new_object();

	es_json_string(document, "name", last->name);
	es_json_string(document, "by", last->by);
	es_json_string(document, "settings", settings);
	es_json_string(document, "text", text);
	json_object_object_add(document, "history", es_rollout_history_json(history));
	return document;
}

static int begin(struct es_daemon *d, struct json_object *request, struct es_conf_error *err)
{
	struct es_daemon_rollout *r = &d->rollout;
	const struct es_daemon_text text = {
		.name = r->name, .text = text_of(request, "text"), .len = strlen(text_of(request, "text"))};
	unsigned long long number = es_daemon_rollout_number(d);
	unsigned int self = d->cluster->self;
	struct json_object *document;
	char settings[ES_WIRE_SETTINGS_SIZE];
	struct es_conf_error why = {};
	const char *whole;
	size_t len;
	int rc = standings_set(d, request, err);

	r->leader.node_count = d->conf->node_count;
	r->restarts = is_set(request, "restart");
	if (!rc && r->restarts && !is_set(request, "dry_run"))
		rc = may_restart(d, self, err);
	if (rc)
		return rc;
	by_take(d, request);
	rc = try_and_stage(d, &text, "", settings, &why);
	r->leader.node[self].state = rc ? ES_ROLLOUT_REFUSED : ES_ROLLOUT_READY;
	snprintf(r->leader.node[self].why, sizeof(r->leader.node[self].why), "%s", why.text);
	r->next = r->history;
	past_add(d, &r->next, number, es_conf_digest(text.text, text.len));
	r->is_catch_up = 0;
	document = es_daemon_rollout_document(&r->next, rc ? "" : settings, text.text);
	if (r->restarts)
		json_object_object_add(document, "restart", json_object_new_boolean(1));
	whole = json_object_to_json_string_length(
		document, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &len);
	r->has_told = 0;
	rc = len > ES_ROLLOUT_MAX ? -EFBIG
				  : es_rollout_lead(&r->leader, &ops, d, self, d->conf->node_count, number,
						    whole, len, is_set(request, "dry_run"), r->restarts);
	json_object_put(document);
	if (rc) {
		es_rollout_file_forget(&r->file);
		es_conf_error_set(err, "%s cannot be rolled out: %s", r->name, strerror(-rc));
		return rc;
	}
	es_daemon_rollout_go_on(d);
	return 0;
}

int es_daemon_rollout_command(void *ctx, struct json_object *request, struct json_object **ret_result,
			      struct es_conf_error *err)
{
	struct json_object *number = NULL;
	struct es_daemon *d = ctx;
	int rc = 0;

	if (json_object_object_get_ex(request, "number", &number)) {
		if (json_object_get_uint64(number) != d->rollout.leader.number || !d->rollout.leader.number) {
			es_conf_error_set(err, "there is no rollout of this number");
			return -ENOENT;
		}
	} else {
		rc = may_begin(d, request, err);
		if (!rc)
			rc = begin(d, request, err);
	}
	if (!rc)
		*ret_result = report(d);
	return rc;
}

/* --- life */

int es_daemon_rollout_start(struct es_daemon *d, struct es_conf_error *err)
{
	int rc = es_rollout_history_read(d->rollout_path, &d->rollout.history);

	(void)err;
	if (rc && rc != -ENOENT)
		es_log(ES_LOG_WARNING, "%s: cannot be read: %s; the last rollout is not known",
		       d->rollout_path, strerror(-rc));
	es_rollout_member_init(&d->rollout.member, &ops, d, d->cluster->self, es_number_ns());
	ev_init(&d->rollout.timer, on_timer);
	d->rollout.timer.repeat = ES_ROLLOUT_TICK_S;
	d->rollout.timer.data = d;
	es_daemon_catch_up_start(d);
	return 0;
}

void es_daemon_rollout_stop(struct es_daemon *d)
{
	struct es_daemon_rollout *r = &d->rollout;

	if (!r->member.ops)
		return;
	es_daemon_catch_up_stop(d);
	es_rollout_leader_stop(&r->leader);
	es_rollout_member_stop(&r->member);
	if (ev_is_active(&r->timer))
		ev_timer_stop(d->loop, &r->timer);
}
