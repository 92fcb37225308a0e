// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Aligned tables on a terminal or in a pipe: collects the cells, then prints each column as wide as its
 * widest cell. The commands decide what is in the cells.
 */
#include "inspector/cli/table.h"

#include <err.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 20

struct es_table {
	size_t columns;
	const char *const *headings;
	size_t count;
	size_t capacity;
	char **cells;
};

struct es_table *es_table_new(const char *const *headings)
{
	struct es_table *table = calloc(1, sizeof(*table));

	if (!table)
		err(1, "table");
	table->headings = headings;
	while (headings[table->columns] && table->columns < COLUMNS_MAX)
		table->columns++;
	return table;
}

void es_table_free(struct es_table **table)
{
	size_t i;

	if (!table || !*table)
		return;
	for (i = 0; i < (*table)->count; i++)
		free((*table)->cells[i]);
	free((*table)->cells);
	free(*table);
	*table = NULL;
}

void es_table_cell(struct es_table *table, const char *format, ...)
{
	char *text, *c;
	va_list ap;

	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0)
		err(1, "table");
	va_end(ap);
	for (c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	if (table->count == table->capacity) {
		table->capacity = table->capacity ? 2 * table->capacity : 64;
		table->cells = reallocarray(table->cells, table->capacity, sizeof(*table->cells));
		if (!table->cells)
			err(1, "table");
	}
	table->cells[table->count++] = text;
}

static const char *heading(const struct es_table *table, size_t column)
{
	const char *text = table->headings[column];

	return *text == '>' ? text + 1 : text;
}

static int width(const struct es_table *table, size_t column)
{
	size_t i, widest = strlen(heading(table, column));

	for (i = column; i < table->count; i += table->columns)
		if (strlen(table->cells[i]) > widest)
			widest = strlen(table->cells[i]);
	return (int)widest;
}

void es_table_print(const struct es_table *table, FILE *file)
{
	int widths[COLUMNS_MAX];
	size_t i;

	if (!table->columns || !table->count)
		return;
	for (i = 0; i < table->columns; i++)
		widths[i] = width(table, i);
	for (i = 0; i < table->columns + table->count; i++) {
		size_t column = i % table->columns;
		const char *text =
			i < table->columns ? heading(table, column) : table->cells[i - table->columns];
		int last = column == table->columns - 1;
		int w = widths[column];

		/* no blanks at the end of a line */
		if (*table->headings[column] == '>')
			fprintf(file, "%*s%s", w, text, last ? "\n" : "  ");
		else if (last)
			fprintf(file, "%s\n", text);
		else
			fprintf(file, "%-*s  ", w, text);
	}
}
