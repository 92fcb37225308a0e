// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Makes URL tables and document roots from the configuration, and keeps those that a new configuration has,
 * too. What rules say is not here: workers read that from the configuration itself.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/daemon/content.h"
#include "inspector/base/log.h"

/* struct es_service_content - @users: sets that have it */
struct es_service_content {
	unsigned int users;
	char service[ES_CONF_NAME_SIZE];
	char root[ES_CONF_PATH_SIZE];
	unsigned int max_entries;
	struct es_url_table *table;
	struct es_docroot_thread *thread;
};

static void on_say(const char *text)
{
	es_log(ES_LOG_WARNING, "%s", text);
}

static void content_put(struct es_service_content *content)
{
	if (!content || --content->users)
		return;
	es_docroot_thread_free(&content->thread);
	es_url_table_free(&content->table);
	free(content);
}

static int content_new(const struct es_conf_service *service, unsigned int max_entries,
		       const struct es_sipkey *key, struct es_service_content **ret_content,
		       struct es_conf_error *err)
{
	struct es_service_content *content = calloc(1, sizeof(*content));
	struct es_docroot_options options = {
		.root = service->document_root,
		.max_entries = max_entries,
		.say = on_say,
	};
	int rc;

	if (!content)
		return -ENOMEM;
	content->users = 1;
	content->max_entries = max_entries;
	memcpy(content->service, service->name, sizeof(content->service));
	memcpy(content->root, service->document_root, sizeof(content->root));
	rc = es_url_table_new(max_entries, &content->table);
	if (!rc)
		es_url_table_set_key(content->table, key);
	if (!rc && content->root[0])
		rc = es_docroot_thread_new(&options, content->table, &content->thread);
	if (!rc) {
		*ret_content = content;
		return 0;
	}
	es_conf_error_set(err, "service %s: its URL table cannot be made: %s%s", service->name, strerror(-rc),
			  rc == -EMFILE ? "; raise fs.inotify.max_user_instances" : "");
	content_put(content);
	return rc;
}

static struct es_service_content *content_find(const struct es_content_set *set,
					       const struct es_conf_service *service,
					       unsigned int max_entries)
{
	for (unsigned int i = 0; set && i < set->count; i++) {
		struct es_service_content *content = set->content[i];

		if (content && !strcmp(content->service, service->name) &&
		    !strcmp(content->root, service->document_root) && content->max_entries == max_entries)
			return content;
	}
	return NULL;
}

int es_content_set_init(struct es_content_set *ret_set, const struct es_content_set *old,
			const struct es_conf *conf, const struct es_sipkey *key, struct es_conf_error *err)
{
	*ret_set = (struct es_content_set){.count = conf->service_count};
	for (unsigned int i = 0; i < conf->service_count; i++) {
		const struct es_conf_service *service = &conf->services[i];
		struct es_service_content *content;
		int rc = 0;

		if (service->inspect == ES_INSPECT_NEVER)
			continue;
		content = content_find(old, service, conf->inspector.url_entries);
		if (content)
			content->users++;
		else
			rc = content_new(service, conf->inspector.url_entries, key, &content, err);
		if (rc) {
			es_content_set_fini(ret_set);
			return rc;
		}
		ret_set->content[i] = content;
	}
	return 0;
}

void es_content_set_fini(struct es_content_set *set)
{
	for (unsigned int i = 0; i < set->count; i++)
		content_put(set->content[i]);
	*set = (struct es_content_set){};
}

void es_content_set_fill(const struct es_content_set *set, struct es_cluster *cluster)
{
	for (unsigned int i = 0; i < set->count; i++)
		cluster->urls[i] = set->content[i] ? set->content[i]->table : NULL;
}

int es_content_set_stats(const struct es_content_set *set, unsigned int service,
			 struct es_url_stats *ret_table, int *ret_has_root, struct es_docroot_stats *ret_root)
{
	const struct es_service_content *content = service < set->count ? set->content[service] : NULL;

	if (!content)
		return 0;
	es_url_table_stats(content->table, ret_table);
	*ret_has_root = !!content->thread;
	if (content->thread)
		es_docroot_thread_stats(content->thread, ret_root);
	return 1;
}
