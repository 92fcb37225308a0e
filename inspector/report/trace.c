// SPDX-License-Identifier: GPL-2.0-or-later
/* A decision, for somebody who watches. */
#include <arpa/inet.h>
#include "inspector/base/utf8.h"
#include "inspector/report/trace.h"

#define NS_PER_US 1e3
#define SHOWN	  256 /* bytes of a request: a reply has thousands of these */

struct json_object *es_report_trace(const struct es_trace_entry *entry, unsigned long long to_wall_ns)
{
	struct json_object *object = json_object_new_object();
	size_t shown = entry->text_len < SHOWN ? entry->text_len : SHOWN, len;
	char text[SHOWN * 3], address[INET6_ADDRSTRLEN];

	len = es_utf8_copy(entry->text, shown, text);

	json_object_object_add(object, "time_us",
			       json_object_new_int64((int64_t)((entry->at_ns + to_wall_ns) / 1000)));
	json_object_object_add(object, "address",
			       json_object_new_string(es_conf_addr_text(&entry->client, address)));
	json_object_object_add(object, "port", json_object_new_int(entry->client_port));
	json_object_object_add(object, "service", json_object_new_string(entry->service));
	json_object_object_add(object, "request", json_object_new_string_len(text, (int)len));
	json_object_object_add(object, "cut",
			       json_object_new_boolean(entry->is_cut || shown < entry->text_len));
	json_object_object_add(object, "decision",
			       json_object_new_string(es_trace_decision_name(entry->decision)));
	json_object_object_add(object, "why", json_object_new_string(entry->why));
	json_object_object_add(object, "target", *entry->node ? json_object_new_string(entry->node) : NULL);
	json_object_object_add(object, "content",
			       *entry->content ? json_object_new_string(entry->content) : NULL);
	json_object_object_add(object, "took_us", json_object_new_double((double)entry->took_ns / NS_PER_US));
	return object;
}
