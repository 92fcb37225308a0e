// SPDX-License-Identifier: GPL-2.0-or-later
/* A part of the status page: the latest events, as the node that is asked has it in its journal. */
#include <string.h>
#include "inspector/base/json.h"
#include "inspector/status/html.h"
#include "inspector/status/page.h"

static const char *class_of(const char *level)
{
	return !strcmp(level, "error") ? "bad" : !strcmp(level, "warning") ? "warn" : "";
}

static void put_event(FILE *file, struct json_object *event)
{
	fputs("<tr><td>", file);
	es_html_date(file, es_json_number(event, "time_ms") / 1000);
	fprintf(file, "</td><td class=\"%s\">", class_of(es_json_string(event, "level")));
	es_html_text(file, es_json_string(event, "kind"));
	fputs("</td><td>", file);
	es_html_text(file, es_json_string(event, "node"));
	fputs("</td><td class=\"path\">", file);
	es_html_text(file, es_json_string(event, "text"));
	fputs("</td></tr>\n", file);
}

void es_page_events(FILE *file, struct json_object *view)
{
	static const char *const headings[] = {"Time", "Kind", "Node", "What happened", NULL};
	struct json_object *events = es_json_array(view, "events");
	size_t count = json_object_array_length(events);

	es_page_section(file, "events", "Recent events");
	es_page_table(file, "stack", "What this node saw lately, the newest first; earshot events shows all",
		      headings);
	for (size_t i = count; i > 0; i--)
		put_event(file, json_object_array_get_idx(events, i - 1));
	if (!count)
		fputs("<tr><td colspan=\"4\">none</td></tr>\n", file);
	es_page_table_end(file);
	fputs("</section>\n", file);
}
