// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A service whose nodes cannot serve it: its backup nodes do, and where these cannot either, its page is the
 * answer. Both are checked here, and the page's file is read.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "inspector/config/internal.h"

static void check_page(struct es_conf_parse *p, unsigned int i)
{
	struct es_conf_service *service = &p->conf->services[i];
	const struct es_conf_lines *lines = &p->pages[i];

	service->page.line = lines->open;
	if (!lines->open || lines->wrong)
		return;
	if (service->page.body[0] && service->page.file[0])
		es_conf_fail(p, es_conf_line_of(lines, ES_CONF_PAGE, "file"),
			     "otherwise: file: body was set on line %d: expected one of them",
			     es_conf_line_of(lines, ES_CONF_PAGE, "body"));
	if (es_conf_service_reads(service) == ES_INSPECT_NEVER)
		es_conf_fail(
			p, lines->open,
			"service %s: otherwise: with inspect = never nobody is answered: expected inspect = "
			"first or every",
			service->name);
}

void es_conf_check_backup(struct es_conf_parse *p, unsigned int i)
{
	struct es_conf_service *service = &p->conf->services[i];
	int line = es_conf_line_of(&p->services[i], ES_CONF_SERVICE, "backup");
	unsigned int first = 0;
	const char *unknown;
	char names[256];

	check_page(p, i);
	unknown = es_conf_nodes_of(p->conf, &service->backup_names, &service->backup, names, sizeof(names));
	if (unknown) {
		es_conf_fail(p, line, "service %s: backup = %s: no node of that name: expected %s",
			     service->name, unknown, names);
		return;
	}
	for (unsigned int k = 0; k < p->conf->node_count; k++) {
		if (es_conf_has_backup(service, k) && !es_conf_service_is_on(service, k)) {
			es_conf_fail(p, line,
				     "service %s: backup = %s: it is not one of nodes: expected one of them",
				     service->name, p->conf->nodes[k].name);
			return;
		}
		first += es_conf_service_is_on(service, k) && !es_conf_has_backup(service, k);
	}
	if (service->backup_names.count && !first)
		es_conf_fail(p, line, "service %s: backup: all nodes: expected one that comes first",
			     service->name);
}

static const char *type_of(const char *file)
{
	const char *dot = strrchr(file, '.');

	return dot && (!strcmp(dot, ".html") || !strcmp(dot, ".htm")) ? "text/html; charset=utf-8"
								      : "text/plain; charset=utf-8";
}

int es_conf_page_read(const struct es_conf_service *service, char ret_text[ES_CONF_PAGE_MAX + 1],
		      const char **ret_type, struct es_conf_error *why)
{
	const struct es_conf_page *page = &service->page;
	size_t got;
	FILE *file;
	int rc;

	*ret_type = NULL;
	snprintf(ret_text, ES_CONF_PAGE_MAX + 1, "%s", page->body);
	if (!page->file[0])
		return 0;
	file = fopen(page->file, "re");
	got = file ? fread(ret_text, 1, ES_CONF_PAGE_MAX + 1, file) : 0;
	rc = !file || ferror(file) ? -errno : 0;
	if (file)
		fclose(file);
	if (rc) {
		es_conf_error_set(why, "service %s: otherwise: file = %s: %s", service->name, page->file,
				  strerror(-rc));
		return rc;
	}
	if (!got || got > ES_CONF_PAGE_MAX || memchr(ret_text, 0, got)) {
		es_conf_error_set(why, "service %s: otherwise: file = %s: expected text of 1..%d bytes",
				  service->name, page->file, ES_CONF_PAGE_MAX);
		return -EINVAL;
	}
	ret_text[got] = 0;
	*ret_type = type_of(page->file);
	return 0;
}

int es_conf_pages_try(const struct es_conf *conf, struct es_conf_error *err)
{
	char text[ES_CONF_PAGE_MAX + 1];
	struct es_conf_error why;
	const char *type;

	for (unsigned int i = 0; i < conf->service_count; i++) {
		int rc = es_conf_page_read(&conf->services[i], text, &type, &why);

		if (!rc)
			continue;
		es_conf_error_set(err, "%s:%d: %s", conf->path, conf->services[i].page.line, why.text);
		return rc;
	}
	return 0;
}
