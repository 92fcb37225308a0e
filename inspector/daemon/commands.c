// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The control commands: what `earshot status`, `ring`, `counters`, `reload` and `stop` ask for.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/control/control.h"
#include "inspector/daemon/directory.h"
#include "inspector/daemon/downloads.h"
#include "inspector/daemon/commands.h"
#include "inspector/daemon/metrics.h"
#include "inspector/daemon/restart.h"
#include "inspector/daemon/rollout.h"
#include "inspector/daemon/status_report.h"
#include "inspector/daemon/tls.h"
#include "inspector/daemon/trace.h"
#include "inspector/daemon/view.h"
#include "inspector/daemon/waiting.h"
#include "inspector/report/report.h"
#include "inspector/report/plugins.h"
#include "inspector/report/survival.h"
#include "inspector/report/tls.h"
#include "inspector/status/exposition.h"

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

static unsigned int es_daemon_virtual_nodes(const struct es_daemon *d, unsigned int node)
{
	const struct es_conf *conf = d->cluster->conf;

	return es_ring_virtual_nodes(conf->cluster.virtual_nodes, d->cluster->weight[node]);
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
	struct es_directory_figures kept, waiting;
	struct es_ledger *ledger;
	int rc = es_datapath_counters(d->datapath, values);

	(void)request;
	if (rc) {
		es_conf_error_set(err, "datapath: its counters cannot be read: %s", strerror(-rc));
		return rc;
	}
	*ret_result = es_report_counters(values);
	for (unsigned int c = 0; c < ES_WORKER_COUNTER_COUNT; c++) {
		char name[64];

		snprintf(name, sizeof(name), "inspect_%s", es_worker_counter_name[c]);
		es_report_counter_add(*ret_result, name, es_daemon_counted(d, (enum es_worker_counter)c),
				      es_worker_counter_description[c]);
	}
	es_directory_figures(d->directory->table, &kept);
	es_daemon_waiting_figures(d, &waiting);
	es_report_survival_counters(*ret_result, &kept, &waiting, &d->downloads->figures);
	es_report_plugins_counters(*ret_result, d->conf, d->plugins);
	if (!es_daemon_tls_read(d, &ledger)) {
		es_report_tls_counters(*ret_result, ledger);
		free(ledger);
	}
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
	struct es_directory_figures waiting;
	struct es_report_flows report;
	int rc;

	es_report_flows_init(&report, d->cluster->conf, request);
	rc = es_datapath_flows(d->datapath, es_report_flows_add, &report);
	es_report_flows_kept(&report, d->directory->table, es_idle_flows_told(d->directory->flows));
	es_daemon_waiting_figures(d, &waiting);
	report.waiting = es_report_waiting(es_idle_flows_waiting(d->directory->flows), &waiting);
	report.downloads =
		es_report_downloads(&d->downloads->figures, d->downloads->own, d->downloads->others);
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
		{"crash", es_daemon_crash},
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
