// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What `status` says of content: the URL table of each service and the document root behind it.
 */
#include "inspector/report/content.h"
#include "inspector/report/json.h"

static struct json_object *root_of(const struct es_report_content *content)
{
	const struct es_docroot_stats *stats = &content->root;
	struct json_object *root;

	if (!content->has_root)
		return NULL;
	root = json_object_new_object();
	es_json_string(root, "path", content->path);
	es_json_string(root, "state", es_docroot_watch_name[stats->watch]);
	es_json_string(root, "message", stats->message);
	es_json_number(root, "files", stats->files);
	es_json_number(root, "directories", stats->directories);
	es_json_number(root, "watches", stats->watches);
	es_json_number(root, "hidden", stats->hidden);
	es_json_number(root, "unreadable", stats->unreadable);
	es_json_number(root, "links", stats->links);
	es_json_number(root, "beyond", stats->beyond);
	es_json_number(root, "scans", stats->scans);
	es_json_number(root, "events", stats->events);
	es_json_number(root, "overflows", stats->overflows);
	return root;
}

void es_report_content_add(struct json_object *status, const struct es_report_content *content)
{
	struct json_object *all, *object = json_object_new_object();

	if (!json_object_object_get_ex(status, "content", &all)) {
		all = json_object_new_array();
		json_object_object_add(status, "content", all);
	}
	es_json_string(object, "service", content->service);
	es_json_number(object, "max_entries", content->table.max_entries);
	es_json_number(object, "entries", content->table.scanned + content->table.observed);
	es_json_number(object, "scanned", content->table.scanned);
	es_json_number(object, "observed", content->table.observed);
	es_json_number(object, "evicted", content->table.evicted);
	json_object_object_add(object, "document_root", root_of(content));
	json_object_array_add(all, object);
}
