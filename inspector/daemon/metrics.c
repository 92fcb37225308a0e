// SPDX-License-Identifier: GPL-2.0-or-later
/* Collects what the metrics tell. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/base/json.h"
#include "inspector/base/log.h"
#include "inspector/base/wall.h"
#include "inspector/daemon/checks.h"
#include "inspector/daemon/contents.h"
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/directory.h"
#include "inspector/daemon/downloads.h"
#include "inspector/daemon/load.h"
#include "inspector/daemon/membership.h"
#include "inspector/daemon/metrics.h"
#include "inspector/daemon/observed.h"
#include "inspector/daemon/outliers.h"
#include "inspector/daemon/rates.h"
#include "inspector/daemon/request_log.h"
#include "inspector/daemon/settings.h"
#include "inspector/daemon/tls.h"
#include "inspector/daemon/url_tables.h"
#include "inspector/daemon/view.h"
#include "inspector/daemon/waiting.h"
#include "inspector/machine/sock_diag.h"
#include "inspector/report/report.h"
#include "inspector/status/metrics.h"

static void collect_nodes(const struct es_daemon *d, struct es_metrics *m)
{
	unsigned long long now_ns = es_clock_now_ns();

	es_ring_shares(d->cluster->ring, m->shares, ES_NODES_MAX);
	for (unsigned int i = 0; i < d->conf->node_count; i++) {
		enum es_node_state state = es_health_state(&d->health, i);

		m->is_draining[i] = state == ES_NODE_DRAINING;
		m->is_up[i] = es_cluster_is_target(d->cluster, &d->health, i, now_ns);
		m->members += d->cluster->weight[i] > 0;
	}
}

static void collect_membership(const struct es_daemon *d, struct es_metrics *m)
{
	struct es_report_membership membership = {};
	struct es_report_told told;
	unsigned long long lease_ns, now_ns = es_clock_now_ns();

	m->is_quorate = 1;
	m->lease_remaining_s = NAN;
	es_daemon_settings_told(d, &membership.told);
	if (d->membership)
		es_membership_report(d->membership, &membership);
	es_report_told_by(&membership, &told);
	es_report_drift_counts(&told, m->differs);
	for (unsigned int i = 0; i < d->conf->node_count; i++)
		m->nodes +=
			membership.weight[i] ? membership.weight[i]->value > 0 : d->conf->nodes[i].weight > 0;
	if (!d->membership)
		return;
	lease_ns = __atomic_load_n(&es_datapath_state(d->datapath)->lease_ns, __ATOMIC_RELAXED);
	m->is_quorate = membership.is_quorate;
	m->is_silent = membership.is_silent;
	m->lease_remaining_s = lease_ns > now_ns ? (double)(lease_ns - now_ns) / 1e9 : 0;
}

/* struct servers - for which services' address of each family, as bits, something listens and accepts */
struct servers {
	const struct es_conf *conf;
	int takes_mptcp;
	__u64 up[ES_CONF_FAMILIES];
};

static void on_listener(void *ctx, const struct es_sock_diag_listener *listener)
{
	struct servers *servers = ctx;

	if ((listener->is_mptcp && !servers->takes_mptcp) || listener->waiting > listener->backlog)
		return;
	for (unsigned int i = 0; i < servers->conf->service_count; i++)
		for (unsigned int family = 0; family < ES_CONF_FAMILIES; family++) {
			const struct es_conf_service *service = &servers->conf->services[i];
			const struct es_addr *address = es_conf_service_of(service, family);

			if (address && es_sock_diag_takes(listener, address, service->port))
				servers->up[family] |= 1ULL << i;
		}
}

/* By each address that it has. */
static int is_up(const struct servers *servers, unsigned int service)
{
	for (unsigned int family = 0; family < ES_CONF_FAMILIES; family++)
		if (es_conf_service_of(&servers->conf->services[service], family) &&
		    !(servers->up[family] >> service & 1))
			return 0;
	return 1;
}

static void collect_findings(const struct es_daemon *d, struct es_metrics *m)
{
	m->has_findings = d->view->problems.summary != NULL;
	m->errors = (unsigned int)es_json_number(d->view->problems.summary, "error");
	m->warnings = (unsigned int)es_json_number(d->view->problems.summary, "warning");
}

static void collect_servers(const struct es_daemon *d, struct es_metrics *m)
{
	struct servers servers = {.conf = d->conf, .takes_mptcp = es_datapath_takes_mptcp(d->datapath_kind)};
	const char *why;

	for (unsigned int i = 0; i < d->conf->service_count; i++)
		m->check_duration_s[i] = es_daemon_checks_duration_s(d->checks, i);
	if (!es_sock_diag_listeners(on_listener, &servers)) {
		for (unsigned int i = 0; i < d->conf->service_count; i++)
			m->server_up[i] = !es_conf_service_is_on(&d->conf->services[i], d->cluster->self)
						  ? -1
						  : is_up(&servers, i) &&
							    !es_daemon_checks_fails(d->checks, i, &why) &&
							    !es_daemon_checks_is_unknown(d->checks, i) &&
							    !es_daemon_outlier_is_out(d->outliers, i);
		return;
	}
	for (unsigned int i = 0; i < d->conf->service_count; i++)
		m->server_up[i] = -1;
}

static void collect_outliers(const struct es_daemon *d, struct es_metrics *m)
{
	for (unsigned int i = 0; i < d->conf->service_count; i++) {
		const struct es_daemon_outlier *o = &d->outliers->of[i];

		m->outlier[i] = (struct es_metrics_outlier){.is_judged = es_conf_outlier_is_set(&o->conf),
							    .out = o->state.place.ejections,
							    .kept = o->state.place.kept};
	}
}

static void add_table(struct es_metrics *m, const char *name, unsigned long long entries,
		      unsigned long long limit)
{
	if (limit)
		m->tables[m->table_count++] = (struct es_metrics_table){name, entries, limit};
}

/* The numbers of `earshot counters`, and of `earshot flows`. */
static void collect_survival(const struct es_daemon *d, struct es_metrics *m)
{
	struct es_directory_figures kept, waiting;
	size_t bytes;

	for (unsigned int i = 0; i < d->conf->service_count; i++) {
		m->survival.has_idle |= d->conf->services[i].survive > 0;
		if (d->conf->services[i].resume)
			m->survival.downloads = &d->downloads->figures;
	}
	if (!m->survival.has_idle)
		return;
	m->survival.idle = es_daemon_counted(d, ES_WORKER_survived);
	m->survival.idle_unsafe = es_daemon_counted(d, ES_WORKER_survive_unsafe);
	m->survival.waiting = es_daemon_counted(d, ES_WORKER_waiting_resets);
	es_directory_figures(d->directory->table, &kept);
	es_daemon_waiting_figures(d, &waiting);
	add_table(m, "kept_idle", kept.entries, ES_DIRECTORY_ENTRIES);
	add_table(m, "kept_waiting", waiting.entries, ES_WAITING_ENTRIES);
	if (m->survival.downloads)
		add_table(m, "kept_downloads", es_downloads_count(d->downloads->others, &bytes),
			  ES_DOWNLOADS_MAX);
}

/* Tables that each service has one of are added up over all services. */
static void collect_tables(const struct es_daemon *d, struct es_metrics *m)
{
	unsigned long long gathering = 0, contents = 0, contents_max = 0, urls = 0, urls_max = 0;

	for (unsigned int i = 0; i < d->datapath_params.workers; i++)
		gathering += es_worker_gathering(d->worker[i]);
	for (unsigned int i = 0; i < d->conf->service_count; i++) {
		struct es_content_sync_state state;
		struct es_contents *table = es_daemon_contents_of(d->contents, i, &state);
		struct es_contents_counts counts;
		struct es_docroot_stats root;
		struct es_url_stats stats;
		int has_root;

		if (table) {
			es_contents_count(table, &counts);
			contents += counts.entries;
			contents_max += counts.max_entries;
		}
		if (es_url_tables_stats(d->url_tables, i, &stats, &has_root, &root)) {
			urls += stats.scanned + stats.observed;
			urls_max += stats.max_entries;
		}
	}
	add_table(m, "gathered_requests", gathering,
		  (unsigned long long)d->conf->inspector.gather_flows * d->datapath_params.workers);
	add_table(m, "targets", contents, contents_max);
	add_table(m, "urls", urls, urls_max);
	m->has_rate = ev_is_active(&d->rates->timer);
	if (m->has_rate)
		add_table(m, "rate_clients",
			  es_rates_used(d->rates->table, es_clock_now_ns(), &m->rate_forgotten),
			  ES_RATES_ENTRIES);
}

static void collect_log(const struct es_daemon *d, struct es_metrics *m)
{
	struct es_log_counts counts;

	es_daemon_request_log_counts(d, &counts);
	m->has_log = d->conf->log.is_on;
	m->log_written = counts.written;
	m->log_failed = counts.failed;
	m->log_dropped = es_daemon_counted(d, ES_WORKER_log_dropped);
}

int es_daemon_metrics_text(struct es_daemon *d, enum es_exposition_format format, char **ret_text,
			   size_t *ret_len)
{
	unsigned long long counters[ES_COUNTER_COUNT];
	struct es_ledger *ledger = NULL;
	int rc;
	struct es_metrics m = {
		.conf = d->conf,
		.self = d->cluster->self,
		.datapath = es_datapath_name(d->datapath_kind),
		.start_time_s = d->metrics->start_time_s,
		.epoch = d->cluster->epoch,
		.sums = &d->load->sums,
		.tally_count = d->datapath_params.workers,
	};

	es_daemon_load_update(d);
	if (!es_datapath_counters(d->datapath, counters))
		m.counters = counters;
	for (unsigned int i = 0; i < d->conf->service_count; i++)
		if (es_conf_service_reads(&d->conf->services[i]) == ES_INSPECT_EVERY)
			m.responses[i] = &d->observed->of[i].responses;
	for (unsigned int i = 0; i < m.tally_count; i++)
		m.tallies[i] = es_worker_tally(d->worker[i]);
	es_daemon_snapshot_moves(d, m.moves);
	collect_nodes(d, &m);
	collect_membership(d, &m);
	collect_findings(d, &m);
	collect_servers(d, &m);
	collect_outliers(d, &m);
	collect_tables(d, &m);
	collect_survival(d, &m);
	collect_log(d, &m);
	if (!es_daemon_tls_read(d, &ledger))
		m.tls = ledger;
	rc = es_metrics_text(&m, format, ret_text, ret_len);
	free(ledger);
	return rc;
}

const struct es_addr *es_daemon_metrics_address(const struct es_daemon *d)
{
	static const struct es_addr none;

	return es_addr_equal(&d->conf->status.address, &none) ? &d->conf->nodes[d->cluster->self].address
							      : &d->conf->status.address;
}

struct json_object *es_daemon_metrics_report(const struct es_daemon *d)
{
	return es_report_metrics(es_daemon_metrics_address(d), d->conf->status.port, d->metrics->error);
}
