// SPDX-License-Identifier: GPL-2.0-or-later
/* Counts results, and prints them. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "tests/lab/load/report.h"

static const char *const result_names[ES_LOAD_RESULTS] = {
	[ES_LOAD_OK] = "ok",   [ES_LOAD_RESETS] = "resets", [ES_LOAD_TIMEOUTS] = "timeouts",
	[ES_LOAD_BAD] = "bad", [ES_LOAD_SHORT] = "short",   [ES_LOAD_ERRORS] = "errors",
};

int es_load_report_init(struct es_load_report *report, unsigned int connections)
{
	memset(report, 0, sizeof(*report));
	report->room = connections;
	report->connect_us = calloc(connections, sizeof(*report->connect_us));
	report->total_us = calloc(connections, sizeof(*report->total_us));
	if (report->connect_us && report->total_us)
		return 0;
	es_load_report_fini(report);
	return -ENOMEM;
}

void es_load_report_fini(struct es_load_report *report)
{
	free(report->connect_us);
	free(report->total_us);
	report->connect_us = report->total_us = NULL;
}

void es_load_report_node(struct es_load_report *report, const char *node)
{
	unsigned int i = 0;

	while (i < report->node_count && strcmp(report->nodes[i].name, node) != 0)
		i++;
	if (i == ES_LOAD_NODES)
		return;
	if (i == report->node_count) {
		snprintf(report->nodes[i].name, sizeof(report->nodes[i].name), "%s", node);
		report->node_count++;
	}
	report->nodes[i].connections++;
}

void es_load_report_connected(struct es_load_report *report, uint64_t us)
{
	if (report->connected < report->room)
		report->connect_us[report->connected++] = (uint32_t)us;
}

void es_load_report_result(struct es_load_report *report, enum es_load_result result, uint64_t us,
			   const char *message)
{
	if (result == ES_LOAD_OK && report->results[ES_LOAD_OK] < report->room)
		report->total_us[report->results[ES_LOAD_OK]] = (uint32_t)us;
	report->results[result]++;
	if (message && report->message_count < ES_LOAD_MESSAGES)
		snprintf(report->messages[report->message_count++], sizeof(report->messages[0]), "%s: %s",
			 result_names[result], message);
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void print_times(FILE *stream, const char *name, uint32_t *times, unsigned int count, double unit)
{
	static const struct {
		const char *name;
		double part;
	} at[] = {{"p50", 0.5}, {"p99", 0.99}, {"max", 1}};

	qsort(times, count, sizeof(*times), compare);
	fprintf(stream, "\"%s\": {", name);
	for (unsigned int i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		unsigned int index = count ? (unsigned int)(at[i].part * (count - 1)) : 0;

		fprintf(stream, "%s\"%s\": %.3f", i ? ", " : "", at[i].name,
			count ? times[index] / unit : 0.0);
	}
	fputs("}, ", stream);
}

static void print_string(FILE *stream, const char *text)
{
	fputc('"', stream);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fprintf(stream, "\\%c", *text);
		else if (*text < ' ' || *text > '~')
			fprintf(stream, "\\u%04x", (unsigned char)*text);
		else
			fputc(*text, stream);
	}
	fputc('"', stream);
}

static void print_json(struct es_load_report *report, FILE *stream)
{
	fprintf(stream, "{\"connections\": %u, ", report->connections);
	for (unsigned int i = 0; i < ES_LOAD_RESULTS; i++)
		fprintf(stream, "\"%s\": %u, ", result_names[i], report->results[i]);
	print_times(stream, "connect_us", report->connect_us, report->connected, 1);
	print_times(stream, "total_ms", report->total_us, report->results[ES_LOAD_OK], 1000);
	fprintf(stream,
		"\"syn_retransmissions\": %" PRIu64 ", \"retransmissions\": %" PRIu64
		", \"requests\": %" PRIu64 ", \"bytes\": %" PRIu64
		", \"moved\": %u, \"node_changes\": %u, \"ports_skipped\": %u, \"seconds\": %.3f, \"nodes\": "
		"{",
		report->syn_retransmissions, report->retransmissions, report->requests, report->bytes,
		report->moved, report->node_changes, report->ports_skipped, report->seconds);
	for (unsigned int i = 0; i < report->node_count; i++) {
		fputs(i ? ", " : "", stream);
		print_string(stream, report->nodes[i].name);
		fprintf(stream, ": %u", report->nodes[i].connections);
	}
	fputs("}, \"messages\": [", stream);
	for (unsigned int i = 0; i < report->message_count; i++) {
		fputs(i ? ", " : "", stream);
		print_string(stream, report->messages[i]);
	}
	fputs("]}\n", stream);
}

void es_load_report_print(struct es_load_report *report, int json, FILE *stream)
{
	if (json) {
		print_json(report, stream);
		return;
	}
	fprintf(stream, "%u connections in %.1f s:", report->connections, report->seconds);
	for (unsigned int i = 0; i < ES_LOAD_RESULTS; i++)
		fprintf(stream, " %u %s", report->results[i], result_names[i]);
	fprintf(stream, ", %" PRIu64 " SYNs sent again\n", report->syn_retransmissions);
	for (unsigned int i = 0; i < report->message_count; i++)
		fprintf(stream, "%s\n", report->messages[i]);
}
