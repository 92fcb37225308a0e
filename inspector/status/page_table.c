// SPDX-License-Identifier: GPL-2.0-or-later
/* A part of the status page: how a section begins, and a table. */
#include "inspector/status/page.h"

void es_page_section(FILE *file, const char *id, const char *heading)
{
	fprintf(file, "<section id=\"%s\" aria-labelledby=\"h-%s\"><h2 id=\"h-%s\">%s</h2>\n", id, id, id,
		heading);
}

void es_page_table(FILE *file, const char *class, const char *caption, const char *const *headings)
{
	fprintf(file,
		"<div class=\"scroll\" tabindex=\"0\" role=\"group\" "
		"aria-label=\"%s\"><table class=\"%s\"><caption>%s</caption>"
		"<thead><tr>",
		caption, class, caption);
	for (; *headings; headings++)
		fprintf(file, "<th scope=\"col\">%s</th>", *headings);
	fputs("</tr></thead><tbody>\n", file);
}

void es_page_table_end(FILE *file)
{
	fputs("</tbody></table></div>\n", file);
}
