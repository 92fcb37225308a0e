// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * earshot-sim trace: what is in an access log.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "sim/report.h"

static const char *const es_format_names[] = {"auto", "log", "wc98"};

static struct json_object *es_json_trace(const struct es_args *args, const struct es_trace *trace,
					 const struct es_trace_stat *stat)
{
	struct json_object *json = json_object_new_object();
	struct json_object *curve = json_object_new_array();
	struct es_trace_loss loss;

	json_object_object_add(json, "command", json_object_new_string("trace"));
	json_object_object_add(json, "file", es_json_text(args->trace));
	json_object_object_add(json, "format", json_object_new_string(es_format_names[trace->format]));
	json_object_object_add(json, "requests", es_json_number((double)stat->requests, 0));
	json_object_object_add(json, "clients", es_json_number((double)stat->clients, 0));
	json_object_object_add(json, "files", es_json_number((double)stat->files, 0));
	json_object_object_add(json, "files_of_known_size", es_json_number((double)stat->files_sized, 0));
	json_object_object_add(json, "files_sized_by_pieces",
			       es_json_number((double)stat->files_of_pieces, 0));
	json_object_object_add(json, "requests_for_unknown_sizes",
			       es_json_number((double)stat->unsized_requests, 0));
	json_object_object_add(json, "dynamic_requests", es_json_number((double)stat->dynamic_requests, 0));
	json_object_object_add(json, "bytes", es_json_number((double)stat->bytes, 0));
	json_object_object_add(json, "working_set_bytes", es_json_number((double)stat->working_set_bytes, 0));
	json_object_object_add(json, "largest_bytes", es_json_number((double)stat->largest_bytes, 0));
	json_object_object_add(json, "seconds", es_json_number((double)(stat->last_s - stat->first_s), 0));
	json_object_object_add(json, "zipf_exponent", es_json_number(stat->zipf_exponent, 4));
	json_object_object_add(json, "zipf_r2", es_json_number(stat->zipf_r2, 4));
	json_object_object_add(json, "top_tenth_share", es_json_number(stat->top_tenth_share, 4));
	for (unsigned int i = 0; i < stat->curve_count; i++) {
		struct json_object *point = json_object_new_object();

		json_object_object_add(point, "cache_bytes",
				       es_json_number((double)stat->curve[i].cache_bytes, 0));
		json_object_object_add(point, "hit_rate", es_json_number(stat->curve[i].hit_rate, 6));
		json_object_array_add(curve, point);
	}
	json_object_object_add(json, "cache_curve", curve);
	es_trace_loss(trace, &loss);
	es_json_add_loss(json, &loss);
	return json;
}

static void es_trace_print(const struct es_trace *trace, const struct es_trace_stat *stat)
{
	printf("format             %s\n",
	       trace->format == ES_TRACE_WC98 ? "WorldCup98 binary" : "access log");
	printf("requests           %llu by %llu clients in %lld s, %llu of them dynamic\n", stat->requests,
	       stat->clients, stat->last_s - stat->first_s, stat->dynamic_requests);
	printf("files              %llu, the size of %llu is known\n", stat->files, stat->files_sized);
	if (stat->files_of_pieces)
		printf("                   of %llu only pieces (206): they have so many bytes or more\n",
		       stat->files_of_pieces);
	if (stat->unsized_requests)
		printf("                   %llu requests are for files of unknown size, which count as "
		       "empty\n",
		       stat->unsized_requests);
	printf("bytes              %.1f MB in responses, %.1f MB in files, the largest has %.3f MB\n",
	       (double)stat->bytes / 1e6, (double)stat->working_set_bytes / 1e6,
	       (double)stat->largest_bytes / 1e6);
	if (stat->zipf_r2 > 0)
		printf("popularity         Zipf's law with exponent %.2f (r^2 %.2f)\n", stat->zipf_exponent,
		       stat->zipf_r2);
	printf("                   a tenth of the files gets %.1f%% of the requests\n",
	       100 * stat->top_tenth_share);
	for (unsigned int i = 0; i < stat->curve_count; i++)
		printf("%s %8.0f MiB of cache would hit %5.1f%%\n",
		       i ? "                  " : "one node with     ",
		       (double)stat->curve[i].cache_bytes / 1048576, 100 * stat->curve[i].hit_rate);
	for (int i = ES_TRACE_USED + 1; i < ES_TRACE_SKIP_COUNT; i++)
		if (trace->skipped[i])
			printf("left out           %llu: %s\n", trace->skipped[i],
			       es_trace_skip_text((enum es_trace_skip)i));
}

/* One line for each cache size. */
static void es_trace_print_csv(const struct es_trace_stat *stat)
{
	printf("cache_bytes,hit_rate\n");
	for (unsigned int i = 0; i < stat->curve_count; i++)
		printf("%llu,%.6f\n", stat->curve[i].cache_bytes, stat->curve[i].hit_rate);
}

int es_cmd_trace(int argc, char **argv)
{
	struct es_trace trace = {};
	struct es_trace_stat stat;
	struct es_args args;
	int rc;

	es_args_init(&args);
	args.wants_file = 1;
	es_args_parse(
		&args, argc, argv, "FILE",
		"Say what is in an access log: requests, files, sizes, popularity, and what a page cache of "
		"which size would hit. FILE may be gzipped, or - for standard input. The status is 1 if "
		"nothing could be used.");
	rc = es_args_read_trace(&args, &trace);
	if (!rc) {
		rc = es_trace_measure(&trace, &stat);
		if (rc)
			es_error("%s: %s", args.trace, strerror(-rc));
	}
	if (!rc && args.format == ES_FORMAT_JSON)
		rc = es_json_print(es_json_trace(&args, &trace, &stat));
	else if (!rc && args.format == ES_FORMAT_CSV)
		es_trace_print_csv(&stat);
	else if (!rc)
		es_trace_print(&trace, &stat);
	if (!rc && fflush(stdout))
		rc = -EIO;
	if (!rc && !stat.requests) {
		struct es_trace_loss loss;

		es_trace_loss(&trace, &loss);
		es_args_say_empty(&args, &loss);
		rc = -ENODATA;
	}
	es_trace_fini(&trace);
	return rc != 0;
}
