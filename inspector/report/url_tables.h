/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_REPORT_URL_TABLES_H
#define ES_REPORT_URL_TABLES_H

/* The URL tables in `status`, in the shape of docs/json.md. */
#include <json-c/json.h>
#include "inspector/urls/docroot.h"

/* struct es_report_url_table - of one service; @path, @root: of its document root, if @has_root */
struct es_report_url_table {
	const char *service;
	struct es_url_stats table;
	int has_root;
	const char *path;
	struct es_docroot_stats root;
};

/* es_report_url_table_add() - one more element of @status's array "content" */
void es_report_url_table_add(struct json_object *status, const struct es_report_url_table *urls);

#endif
