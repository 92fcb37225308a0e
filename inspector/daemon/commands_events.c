// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The control command `events`: the newest ones that this daemon has in memory, all after one that is named.
 */
#include <errno.h>
#include <stdlib.h>
#include "inspector/base/event.h"
#include "inspector/base/json.h"
#include "inspector/daemon/commands.h"

int es_daemon_events(void *ctx, struct json_object *request, struct json_object **ret_result,
		     struct es_conf_error *err)
{
	unsigned long long after = es_json_number(request, "after");
	struct es_event *events = calloc(ES_EVENT_KEPT, sizeof(*events));
	struct json_object *list = json_object_new_array();
	const struct es_daemon *d = ctx;
	size_t count;

	(void)err;
	if (!events || !list) {
		free(events);
		json_object_put(list);
		return -ENOMEM;
	}
	count = es_event_newest(events, ES_EVENT_KEPT);
	for (size_t i = 0; i < count; i++)
		if (events[i].id > after)
			json_object_array_add(list, es_event_json(&events[i]));
	free(events);
	*ret_result = json_object_new_object();
	json_object_object_add(*ret_result, "file", json_object_new_string(d->events_path));
	json_object_object_add(*ret_result, "events", list);
	return 0;
}
