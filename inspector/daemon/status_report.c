// SPDX-License-Identifier: GPL-2.0-or-later
/* The answer to `status`: this node, and the others as this one knows them. */
#include <stdlib.h>
#include "inspector/base/clock.h"
#include "inspector/base/wall.h"
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/exchange.h"
#include "inspector/daemon/load.h"
#include "inspector/daemon/membership.h"
#include "inspector/daemon/metrics.h"
#include "inspector/daemon/observed.h"
#include "inspector/daemon/poison.h"
#include "inspector/daemon/rollout.h"
#include "inspector/daemon/service_drains.h"
#include "inspector/daemon/serving.h"
#include "inspector/daemon/settings.h"
#include "inspector/daemon/status_report.h"
#include "inspector/daemon/tls.h"
#include "inspector/daemon/url_tables.h"
#include "inspector/report/plugins.h"
#include "inspector/report/report.h"
#include "inspector/report/tls.h"
#include "inspector/report/url_tables.h"
#include "inspector/self/service_drains.h"

static struct json_object *workers_of(const struct es_daemon *d)
{
	const char *names[ES_WORKER_COUNTER_COUNT + 2] = {};
	unsigned long long values[ES_WORKER_COUNTER_COUNT + 1];
	struct json_object *workers = json_object_new_array();

	for (unsigned int i = 0; i < d->datapath_params.workers; i++) {
		for (unsigned int c = 0; c < ES_WORKER_COUNTER_COUNT; c++) {
			names[c] = es_worker_counter_name[c];
			values[c] = es_worker_count(d->worker[i], (enum es_worker_counter)c);
		}
		names[ES_WORKER_COUNTER_COUNT] = "gathering";
		values[ES_WORKER_COUNTER_COUNT] = es_worker_gathering(d->worker[i]);
		json_object_array_add(workers, es_report_worker(i, names, values));
	}
	return workers;
}

static void services_of(const struct es_daemon *d, struct es_report_service *ret_services)
{
	for (unsigned int i = 0; i < d->cluster->conf->service_count; i++)
		ret_services[i] = (struct es_report_service){
			.connections = d->load->sums.service[i].flows,
			.active = d->load->sums.service[i].active,
			.idle = d->load->sums.idle[i],
			.load = d->load->sums.service[i].load,
			.measured = d->observed->mean[i].count,
			.measured_bytes = d->observed->mean[i].bytes,
		};
}

static void add_url_tables(const struct es_daemon *d, struct json_object *status)
{
	const struct es_conf *conf = d->cluster->conf;

	for (unsigned int i = 0; i < conf->service_count; i++) {
		struct es_report_url_table urls = {.service = conf->services[i].name};

		if (!es_url_tables_stats(d->url_tables, i, &urls.table, &urls.has_root, &urls.root))
			continue;
		urls.path = conf->services[i].document_root;
		es_report_url_table_add(status, &urls);
	}
}

/* A node that takes part in nothing is called refused or silent for people, whatever state it has told. */
static void name_outside(const struct es_report_membership *m, const char **states)
{
	for (unsigned int i = 0; i < m->group->node_count; i++)
		if (m->group->node[i].is_member && m->group->node[i].refused[0])
			states[i] = "refused";
		else if (i == m->self && m->is_silent)
			states[i] = "silent";
}

static struct json_object *names_of(const struct es_conf *conf, __u64 services)
{
	struct json_object *names = json_object_new_array();

	for (unsigned int s = 0; s < conf->service_count && s < 64; s++)
		if (services >> s & 1)
			json_object_array_add(names, json_object_new_string(conf->services[s].name));
	return names;
}

/* The services whose server fails its check on each node, those that it lacks a server for, by what it says,
 * and those of which it is drained. */
static void add_failing(const struct es_daemon *d, struct json_object *report)
{
	const struct es_conf *conf = d->cluster->conf;
	struct json_object *nodes = NULL;

	json_object_object_get_ex(report, "nodes", &nodes);
	for (unsigned int i = 0; i < conf->node_count; i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);
		int is_self = i == d->cluster->self;

		json_object_object_add(
			node, "failing",
			names_of(conf, is_self ? d->serving->now.failing : d->serving->failing[i]));
		json_object_object_add(
			node, "lacks",
			names_of(conf, is_self ? d->serving->now.lacks : d->serving->lacks[i]));
		json_object_object_add(node, "drained_services",
				       es_service_drains_json(d->service_drains->of[i]));
	}
}

static struct json_object *tls_of(const struct es_daemon *d)
{
	struct json_object *tls;
	struct es_ledger *ledger;

	if (es_daemon_tls_read(d, &ledger))
		return NULL;
	tls = es_report_tls(ledger, es_wall_ns());
	free(ledger);
	return tls;
}

struct json_object *es_daemon_status_report(struct es_daemon *d)
{
	struct es_report_service services[ES_CONF_SERVICES_MAX];
	struct es_report_membership membership = {.self = d->cluster->self};
	unsigned int weights[ES_NODES_MAX];
	const char *states[ES_NODES_MAX], *troubles[ES_NODES_MAX];
	double shares[ES_NODES_MAX] = {};
	struct es_report_status status = {
		.conf = d->cluster->conf,
		.self = d->cluster->self,
		.config_path = d->options.config_path,
		.datapath_type = es_datapath_name(d->datapath_kind),
		.datapath_state = "inspecting",
		.datapath_note = es_datapath_note(d->datapath),
		.uptime_s = (double)(es_clock_now_ns() - d->started_ns) / 1e9,
		.waiting = d->waiting,
		.epoch = d->cluster->epoch,
		.node_states = states,
		.troubles = troubles,
		.weights = weights,
		.ring_shares = shares,
		.clocks = &d->exchange->clocks,
		.services = services,
		.loads = {d->exchange->way.sent, d->exchange->way.received, d->exchange->way.refused},
	};
	unsigned long long now_ns = es_clock_now_ns();
	struct json_object *report;

	es_daemon_load_ask(d);
	es_ring_shares(d->cluster->ring, shares, ES_NODES_MAX);
	for (unsigned int i = 0; i < d->cluster->conf->node_count; i++) {
		enum es_node_state state = es_health_state(&d->health, i);

		/* One that is suspended for having refused something is down for the moment. */
		if (state == ES_NODE_UP && !es_cluster_is_target(d->cluster, &d->health, i, now_ns))
			state = ES_NODE_DOWN;
		/* To people, only one that said so has left. */
		if (state == ES_NODE_LEFT &&
		    es_membership_group(d->membership)->node[i].reason != ES_GROUP_LEFT)
			state = ES_NODE_ABSENT;
		states[i] = es_report_node_state(state);
		if (d->conf->nodes[i].removed)
			states[i] = "removed";
		troubles[i] = es_daemon_serving_text(d, i);
		weights[i] = d->membership ? es_membership_group(d->membership)->node[i].weight
					   : d->conf->nodes[i].weight;
		status.members += d->cluster->weight[i] > 0;
	}
	status.workers = workers_of(d);
	services_of(d, services);
	es_daemon_load_word(d, &membership.own);
	for (unsigned int i = 0; i < d->datapath_params.workers; i++)
		membership.own.queue += (uint16_t)es_worker_gathering(d->worker[i]);
	if (d->membership) {
		es_membership_report(d->membership, &membership);
		if (membership.is_silent)
			status.datapath_state = "silent";
		name_outside(&membership, states);
	}
	es_daemon_settings_told(d, &membership.told);
	report = es_report_status(&status);
	es_report_membership(report, &membership);
	add_failing(d, report);
	json_object_object_add(report, "plugins", es_report_plugins(d->conf, d->plugins));
	json_object_object_add(report, "rollout", es_daemon_rollout_told(d));
	json_object_object_add(report, "poison", es_daemon_poison_report(d));
	json_object_object_add(report, "tls", tls_of(d));
	json_object_object_add(report, "metrics", es_daemon_metrics_report(d));
	add_url_tables(d, report);
	return report;
}
