// SPDX-License-Identifier: GPL-2.0-or-later
/* This node's word about itself, for people who look at the cluster. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "earshot_version.h"
#include "inspector/base/clock.h"
#include "inspector/daemon/checks.h"
#include "inspector/daemon/contents.h"
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/history.h"
#include "inspector/daemon/load.h"
#include "inspector/daemon/membership.h"
#include "inspector/daemon/observed.h"
#include "inspector/daemon/serving.h"
#include "inspector/daemon/view.h"
#include "inspector/datapath/pins.h"
#include "inspector/inspect/inspect.h"
#include "inspector/self/serving.h"
#include "inspector/policy/load_meter.h"
#include "inspector/report/json.h"
#include "inspector/report/report.h"
#include "inspector/report/contents.h"
#include "kmod/core/counters.h"

#define HOT_MAX	  (ES_WORKERS_MAX * ES_HOT_SETS * ES_HOT_WAYS)
#define HOT_SHOWN 8

unsigned long long es_daemon_counted(const struct es_daemon *d, enum es_worker_counter counter)
{
	unsigned long long sum = 0;

	for (unsigned int i = 0; i < d->datapath_params.workers; i++)
		sum += es_worker_count(d->worker[i], counter);
	return sum;
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
	es_json_number(snapshot, "mean_now_us", es_load_recent_mean_us(&d->load->recent));
	es_json_number(snapshot, "p99_us",
		       es_durations_lately_us(&d->observed->lately, 0.99, es_clock_now_ns()));
	es_json_fraction(snapshot, "cpu", load.cpu / 1000.0, 3);
	es_json_fraction(snapshot, "disk", load.disk / 1000.0, 3);
}

/* The rate of a counter, over the last five to ten seconds. */
static double rate_of(const struct es_daemon *d, const struct es_figures *f, unsigned int figure)
{
	return es_history_rate(&d->view->history, &f->of, es_clock_now_ns(), figure);
}

static void add_rates(const struct es_daemon *d, const struct es_figures *f, struct json_object *snapshot)
{
	unsigned long long requests = 0;
	double rate = 0;

	for (unsigned int i = 0; i < f->services * f->nodes; i++) {
		requests += f->value[i];
		rate += rate_of(d, f, i);
	}
	es_json_number(snapshot, "requests", requests);
	es_json_number(snapshot, "errors", f->value[es_figure_errors(f)]);
	es_json_fraction(snapshot, "requests_s", rate, 1);
	es_json_fraction(snapshot, "errors_s", rate_of(d, f, es_figure_errors(f)), 1);
}

static void add_membership(const struct es_daemon *d, struct json_object *snapshot)
{
	struct es_report_membership membership = {.is_quorate = 1, .why = ""};

	if (d->membership)
		es_membership_report(d->membership, &membership);
	json_object_object_add(snapshot, "quorate", json_object_new_boolean(membership.is_quorate));
	json_object_object_add(snapshot, "silent", json_object_new_boolean(membership.is_silent));
	es_json_string(snapshot, "why", membership.why);
	/* Without its drains: all nodes know them, and sooner than by a snapshot. */
	es_json_string(snapshot, "trouble", es_daemon_serving_trouble(d, d->cluster->self));
}

/* How the node's server does, by what is looked at each second and by its own check. */
static void add_state(const struct es_daemon *d, unsigned int s, struct json_object *service)
{
	static const char *const types[] = {
		[ES_CONF_CHECK_TCP] = "tcp", [ES_CONF_CHECK_HTTP] = "http", [ES_CONF_CHECK_NONE] = "none"};
	struct json_object *check = json_object_new_object();
	double duration_s = es_daemon_checks_duration_s(d->checks, s);
	const char *why, *failed;

	es_json_string(service, "state", es_serving_state_name(es_serving_state(&d->serving->now, s, &why)));
	es_json_string(service, "why", why);
	es_json_string(check, "type", types[d->conf->services[s].check.type]);
	es_json_string(check, "result",
		       d->conf->services[s].check.type == ES_CONF_CHECK_NONE ? "none"
		       : es_daemon_checks_fails(d->checks, s, &failed)	     ? "failed"
		       : isnan(duration_s) || es_daemon_checks_is_unknown(d->checks, s) ||
				       !(d->serving->now.listening >> s & 1)
			       ? "unknown"
			       : "passed");
	if (!isnan(duration_s))
		es_json_number(check, "us", (unsigned long long)(duration_s * 1e6));
	json_object_object_add(service, "check", check);
}

/* Requests a second that this node gives to each, those that get none left out. */
static struct json_object *given_by(const struct es_daemon *d, const struct es_figures *f, unsigned int s)
{
	struct json_object *given = json_object_new_object();

	for (unsigned int node = 0; node < f->nodes; node++) {
		double rate = rate_of(d, f, es_figure_given(f, s, node));

		if (rate > 0)
			es_json_fraction(given, d->conf->nodes[node].name, rate, 1);
	}
	return given;
}

static struct json_object *services_of(const struct es_daemon *d, const struct es_figures *f)
{
	struct json_object *services = json_object_new_array();

	for (unsigned int s = 0; s < f->services; s++) {
		struct json_object *service = json_object_new_object();
		unsigned long long requests = 0, hits = 0;

		for (unsigned int node = 0; node < f->nodes; node++)
			requests += f->value[es_figure_given(f, s, node)];
		for (unsigned int i = 0; i < d->datapath_params.workers; i++)
			hits += es_tally_hit(es_worker_tally(d->worker[i]), s);
		es_json_string(service, "name", d->conf->services[s].name);
		add_state(d, s, service);
		es_json_number(service, "requests", requests);
		es_json_number(service, "rejected", f->value[es_figure_of(f, s, ES_FIGURE_rejected)]);
		es_json_number(service, "locality_hits", hits);
		es_json_number(service, "connections", d->load->sums.service[s].flows);
		es_json_number(service, "active", d->load->sums.service[s].active);
		json_object_object_add(service, "given_s", given_by(d, f, s));
		if (es_conf_service_reads(&d->conf->services[s]) == ES_INSPECT_EVERY) {
			es_json_fraction(service, "4xx_s", rate_of(d, f, es_figure_of(f, s, ES_FIGURE_4xx)),
					 1);
			es_json_fraction(service, "5xx_s", rate_of(d, f, es_figure_of(f, s, ES_FIGURE_5xx)),
					 1);
			es_json_number(service, "p99_us", f->value[es_figure_p99(f, s)]);
		}
		json_object_array_add(services, service);
	}
	return services;
}

/* By target, for versions that ask for no history of services; those that got nothing are left out. */
static struct json_object *history_of(const struct es_daemon *d, const struct es_figures *f)
{
	struct json_object *history = json_object_new_object(), *targets = json_object_new_object();
	const struct es_history *h = &d->view->history;
	unsigned int count = h->series == f->of.series && h->identity == f->of.identity ? h->count : 0;

	es_json_number(history, "step_s", ES_HISTORY_STEP_S);
	json_object_object_add(history, "targets", targets);
	for (unsigned int node = 0; node < f->nodes; node++) {
		struct json_object *counts = json_object_new_array_ext((int)count);
		unsigned long long sum = 0;

		for (unsigned int i = 0; i < count; i++) {
			unsigned long long got = 0;

			for (unsigned int s = 0; s < f->services; s++)
				got += es_history_get(h, es_figure_given(f, s, node), i);
			sum += got;
			json_object_array_add(counts, json_object_new_uint64(got));
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
		ret_moves[i] =
			(struct es_metrics_move){moves[i].reason, es_daemon_counted(d, moves[i].counter)};
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

/* The contents of each service that are asked for most, from the workers that have given a copy. */
static struct json_object *hot_of(const struct es_daemon *d)
{
	struct json_object *all = json_object_new_array();
	struct es_hot_content *entries = calloc(HOT_MAX, sizeof(*entries));

	for (unsigned int s = 0; entries && d->view->hot && s < d->conf->service_count; s++) {
		struct es_report_table table = {
			.conf = d->cluster->conf, .service = s, .hot = entries, .now_ns = es_clock_now_ns()};

		for (unsigned int i = 0; i < d->datapath_params.workers; i++)
			if (atomic_load_explicit(&d->view->hot[i].is_there, memory_order_acquire))
				es_hot_collect(&d->view->hot[i].hot, s, entries, HOT_MAX, &table.hot_count);
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

static size_t length_of(struct json_object *object)
{
	size_t len = 0;

	json_object_to_json_string_length(object, JSON_C_TO_STRING_PLAIN, &len);
	return len;
}

static const char *longest_but(struct json_object *object, struct json_object *but)
{
	const char *longest = NULL;
	size_t len = 0;

	json_object_object_foreach(object, key, value)
	{
		if (value == but || length_of(value) <= len)
			continue;
		len = length_of(value);
		longest = key;
	}
	return longest;
}

/*
 * Leaves out the parts that are needed least, then the longest ones, until the rest can be sent, and names
 * them.
 */
static void shorten(struct json_object *snapshot)
{
	static const char *const first[] = {"history", "hot"};
	struct json_object *left_out = json_object_new_array();
	const char *goes = "";

	json_object_object_add(snapshot, "left_out", left_out);
	for (size_t i = 0; goes && length_of(snapshot) > ES_SNAPSHOT_MAX; i++) {
		goes = i < sizeof(first) / sizeof(first[0]) ? first[i] : longest_but(snapshot, left_out);
		if (!goes || !json_object_object_get_ex(snapshot, goes, NULL))
			continue;
		json_object_array_add(left_out, json_object_new_string(goes));
		json_object_object_del(snapshot, goes);
	}
}

struct json_object *es_daemon_snapshot(struct es_daemon *d)
{
	struct json_object *snapshot = json_object_new_object();
	struct es_figures figures;

	es_json_string(snapshot, "version", EARSHOT_VERSION);
	es_json_string(snapshot, "datapath", es_datapath_name(d->datapath_kind));
	es_json_fraction(snapshot, "uptime_s", (double)(es_clock_now_ns() - d->started_ns) / 1e9, 3);
	es_json_number(snapshot, "epoch", d->cluster->epoch);
	add_membership(d, snapshot);
	add_load(d, snapshot);
	es_daemon_figures(d, &figures);
	if (figures.value) {
		add_rates(d, &figures, snapshot);
		json_object_object_add(snapshot, "services", services_of(d, &figures));
	}
	json_object_object_add(snapshot, "moves", moves_of(d));
	json_object_object_add(snapshot, "pins", pins_of(d));
	json_object_object_add(snapshot, "hot", hot_of(d));
	if (figures.value)
		json_object_object_add(snapshot, "history", history_of(d, &figures));
	es_figures_free(&figures);
	shorten(snapshot);
	return snapshot;
}
