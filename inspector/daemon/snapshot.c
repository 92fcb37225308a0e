// SPDX-License-Identifier: GPL-2.0-or-later
/* What this node tells of itself to people who look at the cluster. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "earshot_version.h"
#include "inspector/base/clock.h"
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/view.h"
#include "inspector/datapath/pins.h"
#include "inspector/inspect/inspect.h"
#include "inspector/report/json.h"
#include "inspector/report/report.h"
#include "inspector/report/contents.h"
#include "kmod/core/counters.h"

#define HOT_MAX	  (ES_WORKERS_MAX * ES_HOT_SETS * ES_HOT_WAYS)
#define HOT_SHOWN 8

static unsigned long long counted(const struct es_daemon *d, enum es_worker_counter counter)
{
	unsigned long long sum = 0;

	for (unsigned int i = 0; i < d->datapath_params.workers; i++)
		sum += es_worker_count(d->worker[i], counter);
	return sum;
}

static unsigned long long requests_of(const struct es_daemon *d, unsigned int service, unsigned int node)
{
	unsigned long long sum = 0;

	/* One that is decided again is no other request. */
	for (unsigned int i = 0; i < d->datapath_params.workers; i++)
		for (int k = 0; k < ES_TALLY_DECISION_COUNT; k++)
			if (k != ES_TALLY_again)
				sum += es_tally_request(es_worker_tally(d->worker[i]), service, node,
							(enum es_tally_decision)k);
	return sum;
}

/* Requests that did not get what they were sent for, as far as an inspector knows. */
static unsigned long long errors_of(const struct es_daemon *d)
{
	static const enum es_worker_counter errors[] = {
		ES_WORKER_rejected, ES_WORKER_doubtful,	   ES_WORKER_no_target,
		ES_WORKER_nacks,    ES_WORKER_unreachable, ES_WORKER_send_failed,
	};
	unsigned long long sum = 0;

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		sum += counted(d, errors[i]);
	return sum;
}

void es_daemon_snapshot_totals(const struct es_daemon *d, struct es_history_totals *ret_totals)
{
	memset(ret_totals, 0, sizeof(*ret_totals));
	ret_totals->identity = d->view.identity;
	ret_totals->node_count = d->conf->node_count;
	ret_totals->errors = errors_of(d);
	for (unsigned int node = 0; node < d->conf->node_count; node++)
		for (unsigned int service = 0; service < d->conf->service_count; service++)
			ret_totals->requests[node] += requests_of(d, service, node);
}

static void add_load(struct es_daemon *d, struct json_object *snapshot)
{
	struct es_wire_load load = {};

	es_daemon_load_ask(d);
	es_daemon_load_word(d, &load);
	es_json_number(snapshot, "connections", load.connections);
	es_json_number(snapshot, "active", load.active);
	es_json_number(snapshot, "load", load.load);
	es_json_number(snapshot, "mean_us", load.mean_us);
	es_json_number(snapshot, "mean_now_us", es_load_recent_mean_us(&d->load.recent));
	es_json_number(snapshot, "p99_us",
		       es_durations_lately_us(&d->observed.lately, 0.99, es_clock_now_ns()));
	es_json_fraction(snapshot, "cpu", load.cpu / 1000.0, 3);
	es_json_fraction(snapshot, "disk", load.disk / 1000.0, 3);
}

static void add_rates(const struct es_daemon *d, struct json_object *snapshot)
{
	struct es_history_totals totals;
	unsigned long long requests = 0;
	double rate, errors;

	es_daemon_snapshot_totals(d, &totals);
	for (unsigned int i = 0; i < totals.node_count; i++)
		requests += totals.requests[i];
	rate = es_history_rate(&d->view.history, &totals, es_clock_now_ns(), &errors);
	es_json_number(snapshot, "requests", requests);
	es_json_number(snapshot, "errors", totals.errors);
	es_json_fraction(snapshot, "requests_s", rate, 1);
	es_json_fraction(snapshot, "errors_s", errors, 1);
}

static void add_membership(const struct es_daemon *d, struct json_object *snapshot)
{
	struct es_report_membership membership = {.is_quorate = 1, .why = ""};

	if (d->membership)
		es_membership_report(d->membership, &membership);
	json_object_object_add(snapshot, "quorate", json_object_new_boolean(membership.is_quorate));
	json_object_object_add(snapshot, "silent", json_object_new_boolean(membership.is_silent));
	es_json_string(snapshot, "why", membership.why);
	es_json_string(snapshot, "trouble", es_daemon_serving_text(d, d->cluster->self));
}

/* How the node's server does, by what is looked at each second and by its own check. */
static void add_state(const struct es_daemon *d, unsigned int s, struct json_object *service)
{
	static const char *const types[] = {
		[ES_CONF_CHECK_TCP] = "tcp", [ES_CONF_CHECK_HTTP] = "http", [ES_CONF_CHECK_NONE] = "none"};
	struct json_object *check = json_object_new_object();
	double duration_s = es_daemon_checks_duration_s(&d->checks, s);
	const char *why, *failed;

	es_json_string(service, "state", es_serving_state_name(es_serving_state(&d->serving.now, s, &why)));
	es_json_string(service, "why", why);
	es_json_string(check, "type", types[d->conf->services[s].check.type]);
	es_json_string(check, "result",
		       d->conf->services[s].check.type == ES_CONF_CHECK_NONE ? "none"
		       : es_daemon_checks_fails(&d->checks, s, &failed)	     ? "failed"
		       : isnan(duration_s) || es_daemon_checks_is_unknown(d, s) ||
				       !(d->serving.now.listening >> s & 1)
			       ? "unknown"
			       : "passed");
	if (!isnan(duration_s))
		es_json_number(check, "us", (unsigned long long)(duration_s * 1e6));
	json_object_object_add(service, "check", check);
}

static struct json_object *services_of(const struct es_daemon *d)
{
	struct json_object *services = json_object_new_array();

	for (unsigned int s = 0; s < d->conf->service_count; s++) {
		struct json_object *service = json_object_new_object();
		unsigned long long requests = 0, rejected = 0, hits = 0;

		for (unsigned int node = 0; node < d->conf->node_count; node++)
			requests += requests_of(d, s, node);
		for (unsigned int i = 0; i < d->datapath_params.workers; i++) {
			const struct es_tally *tally = es_worker_tally(d->worker[i]);

			hits += es_tally_hit(tally, s);
			for (unsigned int rule = 0; tally && rule < tally->rules; rule++)
				rejected += es_tally_rejection(tally, s, rule);
		}
		es_json_string(service, "name", d->conf->services[s].name);
		add_state(d, s, service);
		es_json_number(service, "requests", requests);
		es_json_number(service, "rejected", rejected);
		es_json_number(service, "locality_hits", hits);
		es_json_number(service, "connections", d->load.sums.service[s].flows);
		es_json_number(service, "active", d->load.sums.service[s].active);
		json_object_array_add(services, service);
	}
	return services;
}

/* By target; those that got nothing are left out. */
static struct json_object *history_of(const struct es_daemon *d)
{
	struct json_object *history = json_object_new_object(), *targets = json_object_new_object();
	const struct es_history *h = &d->view.history;

	es_json_number(history, "step_s", ES_HISTORY_STEP_S);
	json_object_object_add(history, "targets", targets);
	for (unsigned int node = 0; node < d->conf->node_count; node++) {
		struct json_object *counts = json_object_new_array_ext((int)h->count);
		unsigned long long sum = 0;

		for (unsigned int i = 0; i < h->count; i++) {
			sum += es_history_get(h, node, i);
			json_object_array_add(counts, json_object_new_int64(es_history_get(h, node, i)));
		}
		if (sum)
			json_object_object_add(targets, d->conf->nodes[node].name, counts);
		else
			json_object_put(counts);
	}
	return history;
}

void es_daemon_snapshot_moves(const struct es_daemon *d, struct es_metrics_move ret_moves[ES_METRICS_MOVES])
{
	static const struct {
		const char *reason;
		enum es_worker_counter counter;
	} moves[ES_METRICS_MOVES] = {
		{"locality", ES_WORKER_moved_locality}, {"load", ES_WORKER_moved_load},
		{"drain", ES_WORKER_moved_drain},	{"rule", ES_WORKER_moved_rule},
		{"home", ES_WORKER_moved_home},
	};

	for (unsigned int i = 0; i < ES_METRICS_MOVES; i++)
		ret_moves[i] = (struct es_metrics_move){moves[i].reason, counted(d, moves[i].counter)};
}

static struct json_object *moves_of(const struct es_daemon *d)
{
	struct json_object *object = json_object_new_object();
	struct es_metrics_move moves[ES_METRICS_MOVES];

	es_daemon_snapshot_moves(d, moves);
	for (unsigned int i = 0; i < ES_METRICS_MOVES; i++)
		es_json_number(object, moves[i].reason, moves[i].count);
	return object;
}

/* Only reasons that there were. */
static struct json_object *pins_of(const struct es_daemon *d)
{
	struct json_object *object = json_object_new_object();
	unsigned long long counters[ES_COUNTER_COUNT];

	if (es_datapath_counters(d->datapath, counters))
		return object;
	for (unsigned int i = ES_PIN_none + 1; i < ES_PIN_COUNT; i++)
		if (es_pin_counted(counters, i))
			es_json_number(object, es_pin_name(i), es_pin_counted(counters, i));
	return object;
}

static int by_requests(const void *a, const void *b)
{
	__u32 x = ((const struct es_hot_content *)a)->requests,
	      y = ((const struct es_hot_content *)b)->requests;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* Of each service, what the workers that have given a copy know. */
static struct json_object *hot_of(const struct es_daemon *d)
{
	struct json_object *all = json_object_new_array();
	struct es_hot_content *entries = calloc(HOT_MAX, sizeof(*entries));

	for (unsigned int s = 0; entries && d->view.hot && s < d->conf->service_count; s++) {
		struct es_report_table table = {
			.conf = d->cluster->conf, .service = s, .hot = entries, .now_ns = es_clock_now_ns()};

		for (unsigned int i = 0; i < d->datapath_params.workers; i++)
			if (atomic_load_explicit(&d->view.hot[i].is_there, memory_order_acquire))
				es_hot_collect(&d->view.hot[i].hot, s, entries, HOT_MAX, &table.hot_count);
		qsort(entries, table.hot_count, sizeof(*entries), by_requests);
		if (table.hot_count > HOT_SHOWN)
			table.hot_count = HOT_SHOWN;
		table.contents = es_daemon_contents_of(d->contents, s, &table.sync);
		if (table.hot_count)
			json_object_array_add(all, es_report_table(&table, NULL));
	}
	free(entries);
	return all;
}

/* Whatever is longest goes, until the rest can be sent; and is named. */
static void shorten(struct json_object *snapshot)
{
	struct json_object *left_out = json_object_new_array();
	size_t len;

	json_object_object_add(snapshot, "left_out", left_out);
	json_object_to_json_string_length(snapshot, JSON_C_TO_STRING_PLAIN, &len);
	while (len > ES_SNAPSHOT_MAX) {
		const char *longest = NULL;
		size_t longest_len = 0;

		json_object_object_foreach(snapshot, key, value)
		{
			size_t value_len = 0;

			json_object_to_json_string_length(value, JSON_C_TO_STRING_PLAIN, &value_len);
			if (value != left_out && value_len > longest_len) {
				longest = key;
				longest_len = value_len;
			}
		}
		if (!longest)
			return;
		json_object_array_add(left_out, json_object_new_string(longest));
		json_object_object_del(snapshot, longest);
		json_object_to_json_string_length(snapshot, JSON_C_TO_STRING_PLAIN, &len);
	}
}

struct json_object *es_daemon_snapshot(struct es_daemon *d)
{
	struct json_object *snapshot = json_object_new_object();

	es_json_string(snapshot, "version", EARSHOT_VERSION);
	es_json_string(snapshot, "datapath", es_datapath_name(d->datapath_kind));
	es_json_fraction(snapshot, "uptime_s", (double)(es_clock_now_ns() - d->started_ns) / 1e9, 3);
	es_json_number(snapshot, "epoch", d->cluster->epoch);
	add_membership(d, snapshot);
	add_load(d, snapshot);
	add_rates(d, snapshot);
	json_object_object_add(snapshot, "services", services_of(d));
	json_object_object_add(snapshot, "moves", moves_of(d));
	json_object_object_add(snapshot, "pins", pins_of(d));
	json_object_object_add(snapshot, "hot", hot_of(d));
	json_object_object_add(snapshot, "history", history_of(d));
	shorten(snapshot);
	return snapshot;
}
