// SPDX-License-Identifier: GPL-2.0-or-later
/* The control command `rollout`: whether one may begin, with whom, and its beginning. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "inspector/base/json.h"
#include "inspector/base/wall.h"
#include "inspector/daemon/internal.h"
#include "inspector/daemon/rollout.h"
#include "inspector/daemon/settings.h"
#include "membership/wire.h"

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

/*
 * Leaves out nodes that were removed, and those that @text removes. A @text that is wrong, all nodes refuse
 * in a moment.
 */
static void removed_find(struct es_daemon *d, const char *text)
{
	struct es_conf_error unwanted = {};
	struct es_conf *conf = NULL;
	int rc = es_conf_parse(text, strlen(text), "", &conf, &unwanted);

	for (unsigned int i = 0; i < d->conf->node_count; i++)
		if (d->conf->nodes[i].removed || (!rc && (i >= conf->node_count || conf->nodes[i].removed)))
			leave_out(&d->rollout->leader, i, "removed");
	es_conf_free(&conf);
}

/* Notes what this node knows of the others before it asks them. */
static int standings_set(struct es_daemon *d, struct json_object *request, struct es_conf_error *err)
{
	struct es_rollout_leader *l = &d->rollout->leader;
	struct json_object *without = NULL;

	memset(l->node, 0, sizeof(l->node));
	removed_find(d, es_daemon_rollout_text(request, "text"));
	for (unsigned int i = 0; i < d->conf->node_count; i++) {
		if (i == d->cluster->self || !es_daemon_is_heard(d, i) ||
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
	const struct es_daemon_rollout *r = d->rollout;

	if (es_rollout_is_leading(&r->leader))
		es_conf_error_set(err, "%s is being rolled out by %s: wait for its end", r->name, r->by);
	else if (es_rollout_member_is_busy(&r->member))
		es_conf_error_set(err, "node %s leads a rollout: wait for its end",
				  d->conf->nodes[r->member.leader].name);
	else if (!*es_daemon_rollout_text(request, "name") || !*es_daemon_rollout_text(request, "text"))
		es_conf_error_set(err, "rollout: expected \"name\" and \"text\", or the \"number\" of one");
	else if (is_in_force(d, es_daemon_rollout_text(request, "path")))
		es_conf_error_set(
			err,
			"%s is the file in force here: expected a copy of it that was changed, so that "
			"there is one to go back to",
			es_daemon_rollout_text(request, "name"));
	else
		return 0;
	return -EBUSY;
}

static void by_take(struct es_daemon *d, struct json_object *request)
{
	struct es_daemon_rollout *r = d->rollout;
	const char *by = es_daemon_rollout_text(request, "by");

	snprintf(r->name, sizeof(r->name), "%s", es_daemon_rollout_text(request, "name"));
	snprintf(r->by, sizeof(r->by), "%.63s%s%.31s", by, *by ? "@" : "",
		 d->conf->nodes[d->cluster->self].name);
	/* They become part of lines of the log. */
	for (char *c = r->name; *c; c++)
		*c = (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c;
	for (char *c = r->by; *c; c++)
		*c = (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c;
}

static int begin(struct es_daemon *d, struct json_object *request, struct es_conf_error *err)
{
	struct es_daemon_rollout *r = d->rollout;
	const struct es_daemon_text text = {.name = r->name,
					    .text = es_daemon_rollout_text(request, "text"),
					    .len = strlen(es_daemon_rollout_text(request, "text"))};
	unsigned long long number = es_daemon_rollout_number(d);
	unsigned int self = d->cluster->self;
	struct json_object *document;
	char settings[ES_WIRE_SETTINGS_SIZE];
	struct es_conf_error why = {};
	const char *whole;
	size_t len;
	int rc = standings_set(d, request, err);

	r->leader.node_count = d->conf->node_count;
	r->restarts = es_json_is_true(request, "restart");
	if (!rc && r->restarts && !es_json_is_true(request, "dry_run"))
		rc = es_daemon_rollout_ops.may_restart(d, self, err);
	if (rc)
		return rc;
	by_take(d, request);
	rc = es_daemon_rollout_stage(d, &text, "", settings, &why);
	r->leader.node[self].state = rc ? ES_ROLLOUT_REFUSED : ES_ROLLOUT_READY;
	snprintf(r->leader.node[self].why, sizeof(r->leader.node[self].why), "%s", why.text);
	r->next = r->history;
	es_daemon_rollout_past_add(d, &r->next, number, es_conf_digest(text.text, text.len));
	r->is_catch_up = 0;
	document = es_daemon_rollout_document(&r->next, rc ? "" : settings, text.text);
	if (r->restarts)
		json_object_object_add(document, "restart", json_object_new_boolean(1));
	whole = json_object_to_json_string_length(
		document, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &len);
	r->has_told = 0;
	rc = len > ES_ROLLOUT_MAX
		     ? -EFBIG
		     : es_rollout_lead(&r->leader, &es_daemon_rollout_ops, d, self, d->conf->node_count,
				       number, whole, len, es_json_is_true(request, "dry_run"), r->restarts);
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
		if (json_object_get_uint64(number) != d->rollout->leader.number ||
		    !d->rollout->leader.number) {
			es_conf_error_set(err, "there is no rollout of this number");
			return -ENOENT;
		}
	} else {
		rc = may_begin(d, request, err);
		if (!rc)
			rc = begin(d, request, err);
	}
	if (!rc)
		*ret_result = es_daemon_rollout_report(d);
	return rc;
}
