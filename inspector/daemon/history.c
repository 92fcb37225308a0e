// SPDX-License-Identifier: GPL-2.0-or-later
/* The figures that a node remembers of the last ten minutes, and the form in which it tells them. */
#include <stdlib.h>
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/history.h"
#include "inspector/daemon/observed.h"
#include "inspector/daemon/view.h"
#include "inspector/health/durations.h"
#include "inspector/health/responses.h"
#include "inspector/inspect/inspect.h"
#include "inspector/peers/snapshots.h"
#include "inspector/report/json.h"

/*
 * Steps are joined to longer ones, twice as long each time; with the longest, a sample is two minutes and a
 * half.
 */
#define JOINED_MAX 32

static unsigned long long given_to(const struct es_daemon *d, unsigned int service, unsigned int node)
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

static unsigned long long rejected_of(const struct es_daemon *d, unsigned int service)
{
	unsigned long long sum = 0;

	for (unsigned int i = 0; i < d->datapath_params.workers; i++) {
		const struct es_tally *tally = es_worker_tally(d->worker[i]);

		for (unsigned int rule = 0; tally && rule < tally->rules; rule++)
			sum += es_tally_rejection(tally, service, rule);
	}
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

	for (unsigned int i = 0; i < d->datapath_params.workers; i++)
		for (size_t k = 0; k < sizeof(errors) / sizeof(errors[0]); k++)
			sum += es_worker_count(d->worker[i], errors[k]);
	return sum;
}

/* Identifies the list of nodes and of services: with another one the history begins anew. */
static unsigned long long identity_of(const struct es_daemon *d)
{
	unsigned long long hash = d->view->identity;

	for (unsigned int i = 0; i < d->conf->service_count; i++)
		for (const char *at = d->conf->services[i].name;; at++) {
			hash = (hash ^ (unsigned char)*at) * 1099511628211ULL;
			if (!*at)
				break;
		}
	return hash;
}

void es_daemon_figures(const struct es_daemon *d, struct es_figures *ret)
{
	unsigned long long now_ns = es_clock_now_ns();
	struct es_figures f = {.services = d->conf->service_count, .nodes = d->conf->node_count};
	unsigned int series = es_figure_p99(&f, f.services) + 1;

	f.value = calloc(series, sizeof(*f.value));
	*ret = f;
	if (!f.value)
		return;
	for (unsigned int s = 0; s < f.services; s++) {
		const struct es_observed_service *own = &d->observed->of[s];

		for (unsigned int node = 0; node < f.nodes; node++)
			f.value[es_figure_given(&f, s, node)] = given_to(d, s, node);
		f.value[es_figure_of(&f, s, ES_FIGURE_rejected)] = rejected_of(d, s);
		f.value[es_figure_of(&f, s, ES_FIGURE_4xx)] = own->responses.count[ES_RESPONSE_4XX];
		f.value[es_figure_of(&f, s, ES_FIGURE_5xx)] = own->responses.count[ES_RESPONSE_5XX];
		f.value[es_figure_p99(&f, s)] = es_durations_lately_us(&own->lately, 0.99, now_ns);
	}
	f.value[es_figure_errors(&f)] = errors_of(d);
	f.value[es_figure_p99(&f, f.services)] = es_durations_lately_us(&d->observed->lately, 0.99, now_ns);
	f.of = (struct es_history_figures){
		.identity = identity_of(d),
		.series = series,
		.counters = es_figure_errors(&f) + 1,
		.value = f.value,
	};
	*ret = f;
}

void es_figures_free(struct es_figures *f)
{
	free(f->value);
	*f = (struct es_figures){};
}

/* --- as text */

/* struct telling - @joined: samples to one */
struct telling {
	const struct es_history *history;
	unsigned int counters;
	unsigned int joined;
};

/* Counters add up; of a gauge, the highest counts. An array without anything is left out. */
static void add_series(const struct telling *t, struct json_object *object, const char *key,
		       unsigned int series)
{
	unsigned int count = t->history->count / t->joined, from = t->history->count - count * t->joined;
	struct json_object *array = json_object_new_array_ext((int)count);
	int is_empty = 1;

	for (unsigned int i = 0; i < count; i++) {
		unsigned long long joined = 0;

		for (unsigned int k = 0; k < t->joined; k++) {
			unsigned int value = es_history_get(t->history, series, from + i * t->joined + k);

			joined = series < t->counters ? joined + value : value > joined ? value : joined;
		}
		is_empty &= !joined;
		json_object_array_add(array, json_object_new_uint64(joined));
	}
	if (is_empty)
		json_object_put(array);
	else
		json_object_object_add(object, key, array);
}

static struct json_object *told(const struct es_daemon *d, const struct es_figures *f,
				const struct telling *t)
{
	struct json_object *history = json_object_new_object(), *services = json_object_new_object();

	es_json_number(history, "step_s", ES_HISTORY_STEP_S * t->joined);
	es_json_number(history, "samples", t->history->count / t->joined);
	json_object_object_add(history, "services", services);
	for (unsigned int s = 0; s < f->services; s++) {
		struct json_object *service = json_object_new_object(), *requests = json_object_new_object();

		json_object_object_add(services, d->conf->services[s].name, service);
		json_object_object_add(service, "requests", requests);
		for (unsigned int node = 0; node < f->nodes; node++)
			add_series(t, requests, d->conf->nodes[node].name, es_figure_given(f, s, node));
		add_series(t, service, "rejected", es_figure_of(f, s, ES_FIGURE_rejected));
		add_series(t, service, "4xx", es_figure_of(f, s, ES_FIGURE_4xx));
		add_series(t, service, "5xx", es_figure_of(f, s, ES_FIGURE_5xx));
		add_series(t, service, "p99_us", es_figure_p99(f, s));
	}
	add_series(t, history, "errors", es_figure_errors(f));
	add_series(t, history, "p99_us", es_figure_p99(f, f->services));
	return history;
}

struct json_object *es_daemon_history(const struct es_daemon *d)
{
	struct telling telling = {.history = &d->view->history};
	struct json_object *history = NULL;
	struct es_figures figures;
	size_t len = 0;

	es_daemon_figures(d, &figures);
	telling.counters = figures.of.counters;
	/* After a reload they are others until the next sample. */
	if (figures.value && telling.history->series == figures.of.series &&
	    telling.history->identity == figures.of.identity)
		for (telling.joined = 1; telling.joined <= JOINED_MAX; telling.joined *= 2) {
			json_object_put(history);
			history = told(d, &figures, &telling);
			json_object_to_json_string_length(history, JSON_C_TO_STRING_PLAIN, &len);
			if (len <= ES_SNAPSHOT_HISTORY_MAX)
				break;
		}
	es_figures_free(&figures);
	if (history && len <= ES_SNAPSHOT_HISTORY_MAX)
		return history;
	json_object_put(history);
	return json_object_new_object();
}
