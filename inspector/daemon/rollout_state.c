// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The code that both of a rollout's roles, and a node that catches up, have in common: it makes the document
 * that is offered and its number, and sends messages.
 */
#include <stdio.h>
#include "inspector/base/wall.h"
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/exchange.h"
#include "inspector/daemon/rollout.h"
#include "inspector/report/json.h"

#define NS_PER_US 1000ULL

const char *es_daemon_rollout_text(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(object, key, &value);
	return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

int es_daemon_rollout_is_busy(const struct es_daemon *d)
{
	return es_rollout_is_leading(&d->rollout->leader) || es_rollout_member_is_busy(&d->rollout->member);
}

void es_daemon_rollout_send(void *daemon, const struct es_rollout_message *message)
{
	const struct es_daemon *d = daemon;
	struct es_rollout_datagram datagram;
	size_t len = es_rollout_put(&datagram, message, &d->keys.key[0].handover);

	es_daemon_send(d, message->target, &datagram, len);
}

unsigned long long es_daemon_rollout_number(const struct es_daemon *d)
{
	const struct es_daemon_rollout *r = d->rollout;
	unsigned long long number = es_number_ns() / NS_PER_US;

	if (number <= r->leader.number)
		number = r->leader.number + 1;
	return number > r->catch_up.giver.number ? number : r->catch_up.giver.number + 1;
}

void es_daemon_rollout_past_add(const struct es_daemon *d, struct es_rollout_history *history,
				unsigned long long number, unsigned long long digest)
{
	struct es_rollout_past past = {
		.number = number, .digest = digest, .time_ms = es_wall_ns() / ES_ROLLOUT_NS_PER_MS};

	snprintf(past.name, sizeof(past.name), "%s", d->rollout->name);
	snprintf(past.by, sizeof(past.by), "%s", d->rollout->by);
	es_rollout_history_add(history, d->conf->digest, &past);
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
