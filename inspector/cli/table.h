/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECTOR_CLI_TABLE_H
#define ES_INSPECTOR_CLI_TABLE_H

#include <stdio.h>

/* A table for people: columns as wide as their widest cell, two blanks between them. */
struct es_table;

/* @headings: NULL-terminated, at most 20; one that starts with '>' aligns its column right. Never returns
 * NULL: exits then. */
struct es_table *es_table_new(const char *const *headings);
void es_table_free(struct es_table **table);

/* The next cell, row by row; the text is copied, with control characters made visible. */
void es_table_cell(struct es_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints headings and rows; without rows nothing. */
void es_table_print(const struct es_table *table, FILE *file);

#endif
