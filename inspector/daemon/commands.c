// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The control commands: what `earshot status`, `ring`, `counters`, `reload` and `stop` ask for.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/daemon/commands.h"
#include "inspector/daemon/restart.h"
#include "inspector/policy/policy.h"
#include "inspector/report/report.h"
#include "inspector/report/plugins.h"
#include "inspector/report/url_tables.h"

static struct json_object *es_daemon_report_workers(const struct es_daemon *d)
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

static unsigned int es_daemon_virtual_nodes(const struct es_daemon *d, unsigned int node)
{
	const struct es_conf *conf = d->cluster->conf;

	return es_ring_virtual_nodes(conf->cluster.virtual_nodes, d->cluster->weight[node]);
}

static void es_daemon_report_services(const struct es_daemon *d, struct es_report_service *ret_services)
{
	for (unsigned int i = 0; i < d->cluster->conf->service_count; i++)
		ret_services[i] = (struct es_report_service){
			.connections = d->load.sums.service[i].flows,
			.active = d->load.sums.service[i].active,
			.idle = d->load.sums.idle[i],
			.load = d->load.sums.service[i].load,
			.measured = d->observed.mean[i].count,
			.measured_bytes = d->observed.mean[i].bytes,
		};
}

static void es_daemon_report_url_tables(const struct es_daemon *d, struct json_object *status)
{
	const struct es_conf *conf = d->cluster->conf;

	for (unsigned int i = 0; i < conf->service_count; i++) {
		struct es_report_url_table urls = {.service = conf->services[i].name};

		if (!es_url_tables_stats(&d->url_tables, i, &urls.table, &urls.has_root, &urls.root))
			continue;
		urls.path = conf->services[i].document_root;
		es_report_url_table_add(status, &urls);
	}
}

/* What a node is to people, when it takes part in nothing, whatever state it has told. */
static void es_daemon_report_outside(const struct es_report_membership *m, const char **states)
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

/* The services whose server fails its check on each node, those that it lacks a server for, by what it says, and those of which it
 * is drained. */
static void es_daemon_report_failing(const struct es_daemon *d, struct json_object *report)
{
	const struct es_conf *conf = d->cluster->conf;
	struct json_object *nodes = NULL;

	json_object_object_get_ex(report, "nodes", &nodes);
	for (unsigned int i = 0; i < conf->node_count; i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);
		int is_self = i == d->cluster->self;

		json_object_object_add(
			node, "failing",
			names_of(conf, is_self ? d->serving.now.failing : d->serving.failing[i]));
		json_object_object_add(node, "lacks",
				       names_of(conf, is_self ? d->serving.now.lacks : d->serving.lacks[i]));
		json_object_object_add(node, "drained_services",
				       es_service_drains_json(d->service_drains.of[i]));
	}
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
		.uptime_s = (double)(es_clock_now_ns() - d->started_ns) / 1e9,
		.waiting = d->waiting,
		.epoch = d->cluster->epoch,
		.node_states = states,
		.troubles = troubles,
		.weights = weights,
		.ring_shares = shares,
		.clocks = &d->load.clocks,
		.services = services,
		.loads = {d->load.exchange.sent, d->load.exchange.received, d->load.exchange.refused},
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
		status.members += es_daemon_virtual_nodes(d, i) > 0;
	}
	status.workers = es_daemon_report_workers(d);
	es_daemon_report_services(d, services);
	es_daemon_load_word(d, &membership.own);
	for (unsigned int i = 0; i < d->datapath_params.workers; i++)
		membership.own.queue += (uint16_t)es_worker_gathering(d->worker[i]);
	if (d->membership) {
		es_membership_report(d->membership, &membership);
		if (membership.is_silent)
			status.datapath_state = "silent";
		es_daemon_report_outside(&membership, states);
	}
	es_daemon_settings_told(d, &membership.told);
	report = es_report_status(&status);
	es_report_membership(report, &membership);
	es_daemon_report_failing(d, report);
	json_object_object_add(report, "plugins", es_report_plugins(d->conf, d->plugins));
	json_object_object_add(report, "rollout", es_daemon_rollout_told(d));
	json_object_object_add(report, "poison", es_daemon_poison_report(d));
	json_object_object_add(report, "metrics", es_daemon_metrics_report(d));
	es_daemon_report_url_tables(d, report);
	return report;
}

static int es_daemon_status(void *ctx, struct json_object *request, struct json_object **ret_result,
			    struct es_conf_error *err)
{
	(void)request;
	(void)err;
	*ret_result = es_daemon_status_report(ctx);
	return 0;
}

static int es_daemon_ring_lookup(const struct es_daemon *d, struct json_object *request,
				 struct json_object **ret_result, struct es_conf_error *err)
{
	struct es_flow flow = {};
	unsigned int service = 0;
	__u64 hash;
	int rc = es_report_lookup_flow(d->cluster->conf, request, &flow, &service, err);

	if (rc)
		return rc;
	hash = es_flow_hash(&d->keys.ring, d->keys.ring_seed, &flow);
	/* As the datapath looks it up: in the table, where a position counts by its upper 16 bits. */
	*ret_result = es_report_lookup(d->cluster->conf, d->cluster->epoch, &flow, service, hash,
				       es_ring_lookup(d->cluster->ring, es_ring_flow_position(hash)));
	return 0;
}

static int es_daemon_ring(void *ctx, struct json_object *request, struct json_object **ret_result,
			  struct es_conf_error *err)
{
	const struct es_daemon *d = ctx;
	unsigned int virtual_nodes[ES_NODES_MAX];
	double shares[ES_NODES_MAX] = {};
	struct es_report_ring report = {
		.conf = d->cluster->conf,
		.epoch = d->cluster->epoch,
		.virtual_nodes = virtual_nodes,
		.shares = shares,
	};
	const struct es_ring_point *points;
	struct es_report_point *copy = NULL;
	int rc = es_daemon_ring_lookup(d, request, ret_result, err);

	if (rc != -ENOENT)
		return rc;
	es_ring_shares(d->cluster->ring, shares, ES_NODES_MAX);
	for (unsigned int i = 0; i < d->cluster->conf->node_count; i++)
		virtual_nodes[i] = es_daemon_virtual_nodes(d, i);
	if (es_report_wants_points(request)) {
		points = es_ring_points(d->cluster->ring, &report.point_count);
		copy = calloc(report.point_count ? report.point_count : 1, sizeof(*copy));
		if (!copy)
			return -ENOMEM;
		for (size_t i = 0; i < report.point_count; i++) {
			copy[i].position = points[i].position;
			copy[i].node = points[i].id;
		}
		report.points = copy;
	}
	*ret_result = es_report_ring(&report);
	free(copy);
	return 0;
}

static int es_daemon_counters(void *ctx, struct json_object *request, struct json_object **ret_result,
			      struct es_conf_error *err)
{
	const struct es_daemon *d = ctx;
	unsigned long long values[ES_COUNTER_COUNT];
	int rc = es_datapath_counters(d->datapath, values);

	(void)request;
	if (rc) {
		es_conf_error_set(err, "datapath: its counters cannot be read: %s", strerror(-rc));
		return rc;
	}
	*ret_result = es_report_counters(values);
	for (unsigned int c = 0; c < ES_WORKER_COUNTER_COUNT; c++) {
		unsigned long long sum = 0;
		char name[64];

		for (unsigned int i = 0; i < d->datapath_params.workers; i++)
			sum += es_worker_count(d->worker[i], (enum es_worker_counter)c);
		snprintf(name, sizeof(name), "inspect_%s", es_worker_counter_name[c]);
		es_report_counter_add(*ret_result, name, sum, es_worker_counter_description[c]);
	}
	es_report_plugins_counters(*ret_result, d->conf, d->plugins);
	return 0;
}

static int es_daemon_metrics(void *ctx, struct json_object *request, struct json_object **ret_result,
			     struct es_conf_error *err)
{
	struct json_object *wanted;
	int is_open =
		json_object_object_get_ex(request, "openmetrics", &wanted) && json_object_get_boolean(wanted);
	char *text;
	size_t len;
	int rc = es_daemon_metrics_text(ctx, is_open ? ES_EXPOSITION_OPENMETRICS : ES_EXPOSITION_PROMETHEUS,
					&text, &len);

	if (rc) {
		es_conf_error_set(err, "metrics: cannot be written: %s", strerror(-rc));
		return rc;
	}
	*ret_result = json_object_new_object();
	json_object_object_add(*ret_result, "text", json_object_new_string_len(text, (int)len));
	free(text);
	return 0;
}

static int es_daemon_flows(void *ctx, struct json_object *request, struct json_object **ret_result,
			   struct es_conf_error *err)
{
	const struct es_daemon *d = ctx;
	struct es_report_flows report;
	int rc;

	es_report_flows_init(&report, d->cluster->conf, request);
	rc = es_datapath_flows(d->datapath, es_report_flows_add, &report);
	*ret_result = es_report_flows_finish(&report);
	if (rc) {
		es_conf_error_set(err, "datapath: its connections cannot be listed: %s", strerror(-rc));
		json_object_put(*ret_result);
		*ret_result = NULL;
	}
	return rc;
}

static int es_daemon_command_reload(void *ctx, struct json_object *request, struct json_object **ret_result,
				    struct es_conf_error *err)
{
	const struct es_daemon *d = ctx;
	int rc = es_daemon_reload(ctx, 0, err);

	(void)request;
	if (!rc)
		*ret_result = es_report_reload(d->cluster->epoch);
	return rc;
}

static int es_daemon_command_stop(void *ctx, struct json_object *request, struct json_object **ret_result,
				  struct es_conf_error *err)
{
	struct es_daemon *d = ctx;

	(void)request;
	(void)ret_result;
	(void)err;
	d->detach_on_exit = 1;
	es_daemon_stop(d);
	return 0;
}

int es_daemon_register(struct es_daemon *d)
{
	static const struct {
		const char *name;
		es_control_fn fn;
	} command[] = {
		{"status", es_daemon_status},
		{"ring", es_daemon_ring},
		{"counters", es_daemon_counters},
		{"reload", es_daemon_command_reload},
		{"stop", es_daemon_command_stop},
		{"flows", es_daemon_flows},
		{"drain", es_daemon_drain},
		{"undrain", es_daemon_undrain},
		{"weight", es_daemon_weight},
		{"table", es_daemon_table},
		{"explain", es_daemon_explain},
		{"metrics", es_daemon_metrics},
		{"cluster", es_daemon_view_command},
		{"events", es_daemon_events},
		{"trace", es_daemon_trace_command},
		{"rollout", es_daemon_rollout_command},
		{"restart", es_daemon_command_restart},
		{"drain_service", es_daemon_drain_service},
		{"undrain_service", es_daemon_undrain_service},
	};

	for (size_t i = 0; i < sizeof(command) / sizeof(command[0]); i++) {
		int rc = es_control_register(d->control, command[i].name, command[i].fn, d);

		if (rc)
			return rc;
	}
	return 0;
}
