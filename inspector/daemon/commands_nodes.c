// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The control commands that change a node: `earshot drain`, `undrain` and `weight`, with who wants it, for
 * how long, and why (self/by_hand.h).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "inspector/base/wall.h"
#include "inspector/daemon/by_hand.h"
#include "inspector/daemon/commands.h"
#include "inspector/daemon/membership.h"
#include "inspector/self/by_hand.h"

/* "n1 | n2 | n4": those that are configured. */
static void names_of(const struct es_conf *conf, char *text, size_t size)
{
	size_t used = 0;

	for (unsigned int i = 0; i < conf->node_count && used < size; i++)
		if (!conf->nodes[i].removed)
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? " | " : "",
						 conf->nodes[i].name);
}

int es_daemon_named_node(const struct es_daemon *d, struct json_object *request, struct es_conf_error *err)
{
	struct json_object *name = NULL;
	char names[400] = "";

	if (!json_object_object_get_ex(request, "node", &name))
		return (int)d->cluster->self;
	if (!json_object_is_type(name, json_type_string)) {
		es_conf_error_set(err, "node: expected the name of a node");
		return -1;
	}
	for (unsigned int i = 0; i < d->conf->node_count; i++)
		if (!strcmp(d->conf->nodes[i].name, json_object_get_string(name)))
			return (int)i;
	names_of(d->conf, names, sizeof(names));
	es_conf_error_set(err, "no node \"%.64s\" is configured, expected %s", json_object_get_string(name),
			  names);
	return -1;
}

/* It becomes part of a line of the log. */
static void text_take(struct json_object *request, const char *key, char *text, size_t size)
{
	struct json_object *value = NULL;

	if (!json_object_object_get_ex(request, key, &value) || !json_object_is_type(value, json_type_string))
		return;
	snprintf(text, size, "%s", json_object_get_string(value));
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = ' ';
}

int es_daemon_by_hand_take(const struct es_daemon *d, struct json_object *request,
			   struct es_wire_by_hand *word, struct es_conf_error *err)
{
	struct json_object *for_s = NULL;
	char by[ES_WIRE_WHO_SIZE / 2] = "";
	int64_t seconds = 0;

	word->set_ms = es_wall_ns() / 1000000;
	text_take(request, "by", by, sizeof(by));
	text_take(request, "reason", word->why, sizeof(word->why));
	if (by[0])
		snprintf(word->who, sizeof(word->who), "%s@%.31s", by, d->conf->nodes[d->cluster->self].name);
	if (!json_object_object_get_ex(request, "for_s", &for_s))
		return 0;
	seconds = json_object_is_type(for_s, json_type_int) ? json_object_get_int64(for_s) : 0;
	if (seconds < 1 || seconds > ES_BY_HAND_SECONDS_MAX) {
		es_conf_error_set(err, "for_s: expected 1..%u", ES_BY_HAND_SECONDS_MAX);
		return -EINVAL;
	}
	word->for_s = (uint32_t)seconds;
	word->until_ms = word->set_ms + word->for_s * 1000ULL;
	return 0;
}

static int answer(const struct es_daemon *d, const struct es_wire_by_hand *word,
		  struct json_object **ret_result)
{
	*ret_result = json_object_new_object();
	json_object_object_add(*ret_result, "node", json_object_new_string(d->conf->nodes[word->node].name));
	return 0;
}

static int change(struct es_daemon *d, struct json_object *request, struct es_wire_by_hand *word,
		  struct json_object **ret_result, struct es_conf_error *err)
{
	const char *name = d->conf->nodes[word->node].name;
	int rc = es_daemon_by_hand_take(d, request, word, err);

	if (rc)
		return rc;
	rc = d->membership ? es_by_hand_set(es_membership_by_hand(d->membership), word) : -EINVAL;
	if (rc == -EINVAL)
		es_conf_error_set(err, "membership is static: change the configuration, and reload it");
	else if (rc)
		es_conf_error_set(
			err,
			"%s: cannot be changed now: it, or this node, is not a member of the cluster: "
			"expected both to have joined (earshot nodes)",
			name);
	return rc ? rc : answer(d, word, ret_result);
}

int es_daemon_drain(void *ctx, struct json_object *request, struct json_object **ret_result,
		    struct es_conf_error *err)
{
	struct es_wire_by_hand word = {.what = ES_WIRE_CHANGE_STATE, .value = ES_NODE_DRAINING};
	struct json_object *until = NULL;
	struct es_daemon *d = ctx;
	int node = es_daemon_named_node(d, request, err);

	if (node < 0)
		return -ENOENT;
	word.node = (uint16_t)node;
	if (json_object_object_get_ex(request, "until_restart", &until) && json_object_get_boolean(until)) {
		if ((unsigned int)node != d->cluster->self) {
			es_conf_error_set(err, "until_restart: expected of the node that is asked, %s",
					  d->conf->nodes[d->cluster->self].name);
			return -EINVAL;
		}
		/* One that lasts goes on as it is. */
		if (d->membership && !es_membership_drain_until_restart(d->membership))
			return answer(d, &word, ret_result);
		word.until_restart = 1;
	}
	return change(d, request, &word, ret_result, err);
}

int es_daemon_undrain(void *ctx, struct json_object *request, struct json_object **ret_result,
		      struct es_conf_error *err)
{
	struct es_wire_by_hand word = {.what = ES_WIRE_CHANGE_STATE, .value = ES_NODE_UP};
	int node = es_daemon_named_node(ctx, request, err);

	if (node < 0)
		return -ENOENT;
	word.node = (uint16_t)node;
	return change(ctx, request, &word, ret_result, err);
}

int es_daemon_weight(void *ctx, struct json_object *request, struct json_object **ret_result,
		     struct es_conf_error *err)
{
	struct es_wire_by_hand word = {.what = ES_WIRE_CHANGE_WEIGHT};
	struct json_object *weight = NULL;
	int node = es_daemon_named_node(ctx, request, err);
	int64_t value;

	if (node < 0)
		return -ENOENT;
	json_object_object_get_ex(request, "weight", &weight);
	value = json_object_is_type(weight, json_type_int) ? json_object_get_int64(weight) : -1;
	if (value < 0 || value > ES_CONF_WEIGHT_MAX) {
		es_conf_error_set(err, "weight: expected 0..%u", ES_CONF_WEIGHT_MAX);
		return -EINVAL;
	}
	word.node = (uint16_t)node;
	word.value = (uint16_t)value;
	return change(ctx, request, &word, ret_result, err);
}
