// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Makes URL tables and document roots from the configuration, and keeps those that a new configuration has,
 * too. Rules are not here: workers read them from the configuration itself.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/daemon/url_tables.h"
#include "inspector/base/log.h"

/* struct es_service_urls - @users: sets that have it */
struct es_service_urls {
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

static void urls_put(struct es_service_urls *urls)
{
	if (!urls || --urls->users)
		return;
	es_docroot_thread_free(&urls->thread);
	es_url_table_free(&urls->table);
	free(urls);
}

static int urls_new(const struct es_conf_service *service, unsigned int max_entries,
		    const struct es_sipkey *key, struct es_service_urls **ret_urls, struct es_conf_error *err)
{
	struct es_service_urls *urls = calloc(1, sizeof(*urls));
	struct es_docroot_options options = {
		.root = service->document_root,
		.max_entries = max_entries,
		.say = on_say,
	};
	int rc;

	if (!urls)
		return -ENOMEM;
	urls->users = 1;
	urls->max_entries = max_entries;
	memcpy(urls->service, service->name, sizeof(urls->service));
	memcpy(urls->root, service->document_root, sizeof(urls->root));
	rc = es_url_table_new(max_entries, &urls->table);
	if (!rc)
		es_url_table_set_key(urls->table, key);
	if (!rc && urls->root[0])
		rc = es_docroot_thread_new(&options, urls->table, &urls->thread);
	if (!rc) {
		*ret_urls = urls;
		return 0;
	}
	es_conf_error_set(err, "service %s: its URL table cannot be made: %s%s", service->name, strerror(-rc),
			  rc == -EMFILE ? "; raise fs.inotify.max_user_instances" : "");
	urls_put(urls);
	return rc;
}

static struct es_service_urls *urls_find(const struct es_url_tables *set,
					 const struct es_conf_service *service, unsigned int max_entries)
{
	for (unsigned int i = 0; set && i < set->count; i++) {
		struct es_service_urls *urls = set->urls[i];

		if (urls && !strcmp(urls->service, service->name) &&
		    !strcmp(urls->root, service->document_root) && urls->max_entries == max_entries)
			return urls;
	}
	return NULL;
}

int es_url_tables_init(struct es_url_tables *ret_set, const struct es_url_tables *old,
		       const struct es_conf *conf, const struct es_sipkey *key, struct es_conf_error *err)
{
	*ret_set = (struct es_url_tables){.count = conf->service_count};
	for (unsigned int i = 0; i < conf->service_count; i++) {
		const struct es_conf_service *service = &conf->services[i];
		struct es_service_urls *urls;
		int rc = 0;

		if (es_conf_service_reads(service) == ES_INSPECT_NEVER)
			continue;
		urls = urls_find(old, service, conf->inspector.url_entries);
		if (urls)
			urls->users++;
		else
			rc = urls_new(service, conf->inspector.url_entries, key, &urls, err);
		if (rc) {
			es_url_tables_fini(ret_set);
			return rc;
		}
		ret_set->urls[i] = urls;
	}
	return 0;
}

void es_url_tables_fini(struct es_url_tables *set)
{
	for (unsigned int i = 0; i < set->count; i++)
		urls_put(set->urls[i]);
	*set = (struct es_url_tables){};
}

void es_url_tables_fill(const struct es_url_tables *set, struct es_cluster *cluster)
{
	for (unsigned int i = 0; i < set->count; i++)
		cluster->urls[i] = set->urls[i] ? set->urls[i]->table : NULL;
}

int es_url_tables_stats(const struct es_url_tables *set, unsigned int service, struct es_url_stats *ret_table,
			int *ret_has_root, struct es_docroot_stats *ret_root)
{
	const struct es_service_urls *urls = service < set->count ? set->urls[service] : NULL;

	if (!urls)
		return 0;
	es_url_table_stats(urls->table, ret_table);
	*ret_has_root = !!urls->thread;
	if (urls->thread)
		es_docroot_thread_stats(urls->thread, ret_root);
	return 1;
}
