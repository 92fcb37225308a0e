// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Content in `status`: the URL table of each service and the document root behind it.
 */
#include "inspector/report/url_tables.h"
#include "inspector/report/json.h"

static struct json_object *root_of(const struct es_report_url_table *urls)
{
	const struct es_docroot_stats *stats = &urls->root;
	struct json_object *root;

	if (!urls->has_root)
		return NULL;
	root = json_object_new_object();
	es_json_string(root, "path", urls->path);
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

void es_report_url_table_add(struct json_object *status, const struct es_report_url_table *urls)
{
	struct json_object *all, *object = json_object_new_object();

	if (!json_object_object_get_ex(status, "content", &all)) {
		all = json_object_new_array();
		json_object_object_add(status, "content", all);
	}
	es_json_string(object, "service", urls->service);
	es_json_number(object, "max_entries", urls->table.max_entries);
	es_json_number(object, "entries", urls->table.scanned + urls->table.observed);
	es_json_number(object, "scanned", urls->table.scanned);
	es_json_number(object, "observed", urls->table.observed);
	es_json_number(object, "evicted", urls->table.evicted);
	json_object_object_add(object, "document_root", root_of(urls));
	json_object_array_add(all, object);
}
