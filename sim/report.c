// SPDX-License-Identifier: GPL-2.0-or-later
/* Prints results in the three formats. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sim/report.h"

unsigned int es_metrics(const struct es_sim_params *params, const struct es_sim_result *result,
			struct es_metric *ret_metrics)
{
	const struct es_sim_tally *m = &result->measured;
	unsigned int nodes = (unsigned int)params->nodes, count = 0;
	double served = m->served ? (double)m->served : 1;
	double seconds = (double)result->measured_ns / 1e9;
	const struct es_metric metrics[] = {
		{"throughput_rps", es_result_throughput_rps(result), 2,
		 "measured requests per simulated second"},
		{"hit_rate", es_result_hit_rate(result), 6, "hits / (hits + misses)"},
		{"moves", (double)m->moves, 0, "open connections that changed their node"},
		{"imbalance", es_result_imbalance(result, nodes), 4,
		 "requests in hand, mean over time: busiest node / mean of nodes"},
		{"imbalance_served", es_result_imbalance_served(result, nodes), 4,
		 "requests served: busiest node / mean of nodes"},
		{"moves_per_request", (double)m->moves / served, 6, "moves / measured_requests"},
		{"moves_locality", (double)m->moves_why[ES_MOVE_LOCALITY], 0, "of the moves: to the content"},
		{"moves_load", (double)m->moves_why[ES_MOVE_LOAD], 0,
		 "of the moves: to where there is less to do"},
		{"moves_home", (double)m->moves_why[ES_MOVE_HOME], 0,
		 "of the moves: to where the content has gone"},
		{"homes_changed",
		 (double)(result->front.contents.moved + result->front.contents.added +
			  result->front.contents.removed),
		 0, "changes of the nodes that serve some content, in the whole run"},
		{"throughput_mbit", seconds > 0 ? (double)m->bytes * 8 / 1e6 / seconds : 0, 2,
		 "response bytes, 10^6 bits per second"},
		{"latency_p50_ms", es_result_latency_ms(result, 0.5), 3, "half of the requests took less"},
		{"latency_p99_ms", es_result_latency_ms(result, 0.99), 3, "99% took less"},
		{"cpu_busy", es_result_busy(result, nodes, ES_CPU), 4, "share of time, mean of nodes"},
		{"disk_busy", es_result_busy(result, nodes, ES_DISK), 4, "share of time, mean of nodes"},
		{"net_busy", es_result_busy(result, nodes, ES_NIC), 4, "share of time, mean of nodes"},
		{"measured_requests", (double)m->served, 0,
		 "between warm-up and the last connection's opening"},
		{"hits", (double)m->hits, 0, "found in the page cache"},
		{"misses", (double)m->misses, 0, "waited for the disk"},
		{"dynamic", (double)m->dynamic, 0, "computed; neither hit nor miss"},
		{"disk_reads", (double)m->disk_reads, 0,
		 "files read; two that wait for one file read it once"},
		{"measured_s", seconds, 3, "simulated time of the measured part"},
		{"requests", (double)result->asked, 0, "asked in the whole run"},
		{"completed", (double)result->total.served, 0, "answered in the whole run"},
		{"connections", (double)result->connections, 0, "opened in the whole run"},
		{"duration_s", (double)result->duration_ns / 1e9, 3, "simulated time of the whole run"},
	};

	for (; count < sizeof(metrics) / sizeof(metrics[0]); count++)
		ret_metrics[count] = metrics[count];
	return count;
}

struct json_object *es_json_number(double value, int decimals)
{
	char text[64];

	if (!decimals)
		return json_object_new_int64((int64_t)value);
	snprintf(text, sizeof(text), "%.*f", decimals, value);
	return json_object_new_double_s(value, text);
}

/* The length of the well-formed character at @at (RFC 3629); 0 if there is none. */
static size_t es_utf8_len(const unsigned char *at)
{
	size_t len = *at < 0x80 ? 1 : *at < 0xc2 ? 0 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : *at < 0xf5 ? 4 : 0;

	for (size_t i = 1; i < len; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	if ((*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] > 0x9f) || (*at == 0xf0 && at[1] < 0x90) ||
	    (*at == 0xf4 && at[1] > 0x8f))
		return 0;
	return len;
}

struct json_object *es_json_text(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	struct json_object *json;
	char *clean = malloc(strlen(text) * 3 + 1), *to = clean;

	if (!clean)
		return NULL;
	while (*at) {
		size_t len = es_utf8_len(at);

		memcpy(to, len ? (const char *)at : "\xef\xbf\xbd", len ? len : 3);
		to += len ? len : 3;
		at += len ? len : 1;
	}
	*to = 0;
	json = json_object_new_string(clean);
	free(clean);
	return json;
}

void es_json_add_loss(struct json_object *json, const struct es_trace_loss *loss)
{
	struct json_object *lines = json_object_new_object();

	for (int i = ES_TRACE_USED; i < ES_TRACE_SKIP_COUNT; i++)
		json_object_object_add(lines, es_trace_skip_name((enum es_trace_skip)i),
				       es_json_number((double)loss->skipped[i], 0));
	json_object_object_add(json, "lines", lines);
	json_object_object_add(json, "lines_unusable",
			       es_json_number((double)es_trace_unusable(loss->skipped), 0));
	json_object_object_add(json, "is_truncated", json_object_new_boolean(loss->is_truncated));
}

/* A setting, as people would write it. */
static struct json_object *es_json_setting(double value)
{
	char text[64];

	if (isnan(value)) /* a policy's parameter */
		return json_object_new_string("auto");
	if (value == (double)(int64_t)value)
		return json_object_new_int64((int64_t)value);
	snprintf(text, sizeof(text), "%.10g", value);
	return json_object_new_double_s(value, text);
}

static struct json_object *es_json_settings(const struct es_sim_params *params)
{
	struct json_object *json = json_object_new_object();

	for (const struct es_sim_param *p = es_sim_param_list; p->name; p++)
		json_object_object_add(json, p->name,
				       es_json_setting(*(const double *)((const char *)params + p->offset)));
	return json;
}

static struct json_object *es_json_policy_params(const struct es_sim_params *params)
{
	struct json_object *json = json_object_new_object();
	const struct es_policy_param *p = params->policy->params;

	for (unsigned int i = 0; p && p[i].name; i++)
		json_object_object_add(json, p[i].name, es_json_setting(params->settings.param[i]));
	return json;
}

static struct json_object *es_json_workload(const struct es_args *args, const struct es_workload *workload)
{
	struct json_object *json = json_object_new_object();
	double bytes = 0;

	for (__u32 i = 0; i < workload->file_count; i++)
		bytes += workload->file[i].is_dynamic ? 0 : (double)workload->size[i];
	json_object_object_add(json, "source", es_json_text(args->trace ? args->trace : args->synthetic));
	json_object_object_add(json, "files", json_object_new_int64(workload->file_count));
	json_object_object_add(json, "bytes", json_object_new_int64((int64_t)bytes));
	json_object_object_add(json, "requests", json_object_new_int64(workload->request_count));
	json_object_object_add(json, "connections", json_object_new_int64(workload->connection_count));
	return json;
}

static struct json_object *es_json_nodes(const struct es_sim_params *params,
					 const struct es_sim_result *result)
{
	struct json_object *json = json_object_new_array();
	double ns = result->measured_ns ? (double)result->measured_ns : 1;

	for (unsigned int i = 0; i < (unsigned int)params->nodes; i++) {
		const struct es_sim_tally *t = &result->node[i];
		struct json_object *node = json_object_new_object();

		json_object_object_add(node, "served", es_json_number((double)t->served, 0));
		json_object_object_add(node, "hits", es_json_number((double)t->hits, 0));
		json_object_object_add(node, "misses", es_json_number((double)t->misses, 0));
		json_object_object_add(node, "moves_in", es_json_number((double)t->moves, 0));
		json_object_object_add(node, "active", es_json_number(t->active_ns / ns, 3));
		json_object_object_add(node, "cpu_busy", es_json_number((double)t->busy_ns[ES_CPU] / ns, 4));
		json_object_object_add(node, "disk_busy",
				       es_json_number((double)t->busy_ns[ES_DISK] / ns, 4));
		json_object_object_add(node, "net_busy", es_json_number((double)t->busy_ns[ES_NIC] / ns, 4));
		json_object_array_add(json, node);
	}
	return json;
}

static struct json_object *es_json_contents(const struct es_frontend_counts *front)
{
	struct json_object *json = json_object_new_object();
	const struct es_contents_counts *t = &front->contents;

	json_object_object_add(json, "entries", es_json_number((double)t->entries, 0));
	json_object_object_add(json, "assigned", es_json_number((double)t->assigned, 0));
	json_object_object_add(json, "added", es_json_number((double)t->added, 0));
	json_object_object_add(json, "removed", es_json_number((double)t->removed, 0));
	json_object_object_add(json, "moved", es_json_number((double)t->moved, 0));
	json_object_object_add(json, "evicted", es_json_number((double)t->evicted, 0));
	json_object_object_add(json, "messages", es_json_number((double)front->messages, 0));
	json_object_object_add(json, "tables_differ", json_object_new_boolean(front->tables_differ));
	return json;
}

struct json_object *es_json_run(const struct es_args *args, const struct es_workload *workload,
				const struct es_sim_result *result)
{
	const struct es_sim_params *params = &args->params;
	struct json_object *json = json_object_new_object();
	struct es_metric metrics[ES_METRICS_MAX];
	unsigned int count = es_metrics(params, result, metrics);

	json_object_object_add(json, "command", json_object_new_string("run"));
	json_object_object_add(json, "policy", json_object_new_string(params->policy->name));
	json_object_object_add(json, "params", es_json_policy_params(params));
	json_object_object_add(json, "inspect",
			       json_object_new_string(params->inspect_every ? "every" : "first"));
	for (unsigned int i = 0; i < count; i++)
		json_object_object_add(json, metrics[i].name,
				       es_json_number(metrics[i].value, metrics[i].decimals));
	json_object_object_add(json, "is_whole", json_object_new_boolean(result->is_whole));
	json_object_object_add(json, "fallbacks", es_json_number((double)result->front.fallbacks, 0));
	json_object_object_add(json, "settings", es_json_settings(params));
	json_object_object_add(json, "workload", es_json_workload(args, workload));
	if (args->trace)
		es_json_add_loss(json, &args->loss);
	json_object_object_add(json, "nodes", es_json_nodes(params, result));
	json_object_object_add(json, "targets", es_json_contents(&result->front));
	return json;
}

int es_json_print(struct json_object *json)
{
	int ok = printf("%s\n", json_object_to_json_string_ext(
					json, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
						      JSON_C_TO_STRING_NOSLASHESCAPE)) > 0;

	json_object_put(json);
	return ok && !fflush(stdout) ? 0 : -EIO;
}
