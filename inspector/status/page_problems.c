// SPDX-License-Identifier: GPL-2.0-or-later
/* A part of the status page: what `earshot check` finds on the node that is asked, and what to do. */
#include <string.h>
#include "inspector/base/json.h"
#include "inspector/status/html.h"
#include "inspector/status/page.h"

#define OLD_S 150.0 /* one of each minute is younger, while somebody looks */

static void put_when(FILE *file, struct json_object *check)
{
	int is_old = es_json_fraction(check, "age_s") > OLD_S;

	fprintf(file, "<span class=\"%s\">", is_old ? "old" : "");
	es_html_date(file, es_json_number(check, "at_s"));
	fputs(is_old ? " (old)</span>" : "</span>", file);
}

static void put_count(FILE *file, unsigned long long count, const char *what)
{
	es_html_count(file, count);
	fprintf(file, " %s%s", what, count == 1 ? "" : "s");
}

static void put_result(FILE *file, struct json_object *check)
{
	struct json_object *summary = es_json_object(check, "summary");
	unsigned long long errors = es_json_number(summary, "error"),
			   warnings = es_json_number(summary, "warning"),
			   unchecked = es_json_number(summary, "unchecked");

	fprintf(file, "<p class=\"%s\">", errors ? "bad" : warnings ? "warn" : "ok");
	put_count(file, errors, "error");
	fputs(" and ", file);
	put_count(file, warnings, "warning");
	fputs(" at ", file);
	put_when(file, check);
	if (unchecked) {
		fputs("; ", file);
		es_html_count(file, unchecked);
		fputs(" could not be looked at (earshot check, as root, says why)", file);
	}
	fputs("</p>\n", file);
}

/* Returns whether findings are what there is. */
static int put_state(FILE *file, struct json_object *check)
{
	const char *error = es_json_string(check, "error");

	if (!es_json_number(check, "at_s")) {
		fputs("<p>Being looked for: earshot check has not ended yet.</p>\n", file);
		return 0;
	}
	if (!*error) {
		put_result(file, check);
		return 1;
	}
	fputs("<p class=\"bad\">Not known, since earshot check could not be run at ", file);
	put_when(file, check);
	fputs(": ", file);
	es_html_text(file, error);
	fputs("</p>\n", file);
	return 0;
}

static void put_finding(FILE *file, struct json_object *finding)
{
	const char *severity = es_json_string(finding, "severity");
	struct json_object *action = NULL;

	fprintf(file, "<tr><td class=\"%s\">", !strcmp(severity, "error") ? "bad" : "warn");
	es_html_text(file, severity);
	fputs("</td><td class=\"path\">", file);
	es_html_text(file, es_json_string(finding, "found"));
	fputs(".</td><td class=\"path\">", file);
	es_html_text(file, es_json_string(finding, "why"));
	fputs("</td><td class=\"path\">", file);
	json_object_object_get_ex(finding, "action", &action);
	if (action) {
		fputs("<code>", file);
		es_html_text(file, json_object_get_string(action));
		fputs("</code>", file);
	}
	fputs("</td></tr>\n", file);
}

void es_page_problems(FILE *file, struct json_object *view)
{
	static const char *const headings[] = {"Severity", "What is the case", "Why that is bad",
					       "What to do", NULL};
	struct json_object *check = es_json_object(view, "check"),
			   *findings = es_json_array(check, "findings");
	size_t count = json_object_array_length(findings);
	int is_known;

	es_page_section(file, "problems", "Problems");
	is_known = put_state(file, check);
	es_page_table(file, "stack",
		      "What earshot check finds on this node, once a minute while somebody looks", headings);
	for (size_t i = 0; is_known && i < count; i++)
		put_finding(file, json_object_array_get_idx(findings, i));
	if (!is_known || !count)
		fprintf(file, "<tr><td colspan=\"4\">%s</td></tr>\n", is_known ? "none" : "not known");
	es_page_table_end(file);
	fputs("</section>\n", file);
}
