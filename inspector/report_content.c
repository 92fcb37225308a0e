// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What `status` says of content: the URL table of each service and the document root behind it.
 */
#include "inspector/report_content.h"

static void add_number(struct json_object *object, const char *key, unsigned long long value)
{
	json_object_object_add(object, key, json_object_new_uint64(value));
}

static void add_string(struct json_object *object, const char *key, const char *value)
{
	json_object_object_add(object, key, json_object_new_string(value));
}

static struct json_object *root_of(const struct es_report_content *content)
{
	const struct es_docroot_stats *stats = &content->root;
	struct json_object *root;

	if (!content->has_root)
		return NULL;
	root = json_object_new_object();
	add_string(root, "path", content->path);
	add_string(root, "state", es_docroot_watch_name[stats->watch]);
	add_string(root, "message", stats->message);
	add_number(root, "files", stats->files);
	add_number(root, "directories", stats->directories);
	add_number(root, "watches", stats->watches);
	add_number(root, "hidden", stats->hidden);
	add_number(root, "unreadable", stats->unreadable);
	add_number(root, "links", stats->links);
	add_number(root, "beyond", stats->beyond);
	add_number(root, "scans", stats->scans);
	add_number(root, "events", stats->events);
	add_number(root, "overflows", stats->overflows);
	return root;
}

void es_report_content_add(struct json_object *status, const struct es_report_content *content)
{
	struct json_object *all, *object = json_object_new_object();

	if (!json_object_object_get_ex(status, "content", &all)) {
		all = json_object_new_array();
		json_object_object_add(status, "content", all);
	}
	add_string(object, "service", content->service);
	add_number(object, "max_entries", content->table.max_entries);
	add_number(object, "entries", content->table.scanned + content->table.observed);
	add_number(object, "scanned", content->table.scanned);
	add_number(object, "observed", content->table.observed);
	add_number(object, "evicted", content->table.evicted);
	json_object_object_add(object, "document_root", root_of(content));
	json_object_array_add(all, object);
}
