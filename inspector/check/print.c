// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The findings of `earshot check` for people, one line each, and for programs (docs/json.md).
 */
#include <string.h>

#include "inspector/check/check.h"

static const char *word(enum es_check_severity severity)
{
	return severity == ES_CHECK_UNCHECKED ? "not checked" : es_check_severity_name(severity);
}

/* The part of the id after the group, which is the heading. */
static const char *short_id(const struct es_check_finding *f)
{
	return f->id + strlen(f->group->name) + 1;
}

/* Text from a file or a peer stays on its line. */
static void put(FILE *file, const char *text)
{
	for (; *text; text++)
		fputc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, file);
}

static void print_finding(const struct es_check_finding *f, int width, FILE *file)
{
	fprintf(file, "  %-11s  %-*s  ", word(f->severity), width, short_id(f));
	put(file, f->found);
	if (f->severity > ES_CHECK_UNCHECKED)
		fprintf(file, ". %s", f->why);
	if (f->action) {
		fputs(" Do: ", file);
		put(file, f->action);
	}
	fputc('\n', file);
}

static void print_total(const struct es_check *check, enum es_check_severity severity, const char *plural,
			FILE *file)
{
	size_t n = check->totals[severity];

	fprintf(file, ", %zu %s", n, n == 1 ? word(severity) : plural);
}

void es_check_print(const struct es_check *check, int verbose, FILE *file)
{
	const struct es_check_group *group = NULL;
	size_t i, len;
	int width = 0;

	for (i = 0; i < check->count; i++) {
		len = strlen(short_id(&check->findings[i]));
		if ((verbose || check->findings[i].severity >= ES_CHECK_UNCHECKED) && (int)len > width)
			width = (int)len;
	}
	for (i = 0; i < check->count; i++) {
		const struct es_check_finding *f = &check->findings[i];

		if (!verbose && f->severity < ES_CHECK_UNCHECKED)
			continue;
		if (f->group != group)
			fprintf(file, "%s\n", f->group->name);
		group = f->group;
		print_finding(f, width, file);
	}
	fprintf(file, "%snode %s of cluster %s", group ? "\n" : "", es_check_self_name(check),
		check->conf->cluster.name);
	print_total(check, ES_CHECK_ERROR, "errors", file);
	print_total(check, ES_CHECK_WARNING, "warnings", file);
	print_total(check, ES_CHECK_UNCHECKED, "not checked", file);
	fprintf(file, ", %zu ok\n", check->totals[ES_CHECK_OK] + check->totals[ES_CHECK_INFO]);
}

static struct json_object *text_or_null(const char *text)
{
	return text ? json_object_new_string(text) : NULL;
}

struct json_object *es_check_json(const struct es_check *check)
{
	struct json_object *result = json_object_new_object(), *findings = json_object_new_array(),
			   *summary = json_object_new_object();
	size_t i;
	int s;

	json_object_object_add(result, "config", json_object_new_string(check->conf->path));
	json_object_object_add(result, "cluster", json_object_new_string(check->conf->cluster.name));
	json_object_object_add(result, "node",
			       check->self < 0 ? NULL : json_object_new_string(es_check_self_name(check)));
	for (s = ES_CHECK_SEVERITIES - 1; s >= 0; s--)
		json_object_object_add(summary, es_check_severity_name((enum es_check_severity)s),
				       json_object_new_uint64(check->totals[s]));
	json_object_object_add(result, "summary", summary);
	for (i = 0; i < check->count; i++) {
		const struct es_check_finding *f = &check->findings[i];
		struct json_object *finding = json_object_new_object();

		json_object_object_add(finding, "id", json_object_new_string(f->id));
		json_object_object_add(finding, "severity",
				       json_object_new_string(es_check_severity_name(f->severity)));
		json_object_object_add(finding, "found", json_object_new_string(f->found));
		json_object_object_add(finding, "why", json_object_new_string(f->why));
		json_object_object_add(finding, "action", text_or_null(f->action));
		json_object_array_add(findings, finding);
	}
	json_object_object_add(result, "findings", findings);
	return result;
}
