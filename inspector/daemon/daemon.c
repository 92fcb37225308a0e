// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Builds the daemon from its parts and takes it apart again. Commands are answered in commands.c, packets are
 * handled in inspect/worker.c and inspect/inspect.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "inspector/ask/askers.h"
#include "inspector/base/clock.h"
#include "inspector/control/control.h"
#include "inspector/daemon/contents.h"
#include "inspector/daemon/membership.h"
#include "inspector/machine/solicited.h"
#include "inspector/self/by_hand.h"
#include "inspector/self/certificates.h"
#include "inspector/daemon/internal.h"
#include "inspector/daemon/checks.h"
#include "inspector/daemon/clock.h"
#include "inspector/daemon/exchange.h"
#include "inspector/daemon/heard.h"
#include "inspector/daemon/homes.h"
#include "inspector/daemon/interfaces.h"
#include "inspector/daemon/load.h"
#include "inspector/daemon/metrics.h"
#include "inspector/daemon/observed.h"
#include "inspector/daemon/outliers.h"
#include "inspector/daemon/packet_max.h"
#include "inspector/daemon/paths.h"
#include "inspector/daemon/poison.h"
#include "inspector/daemon/directory.h"
#include "inspector/daemon/downloads.h"
#include "inspector/daemon/rates.h"
#include "inspector/daemon/request_log.h"
#include "inspector/daemon/rollout.h"
#include "inspector/daemon/route.h"
#include "inspector/daemon/service_drains.h"
#include "inspector/daemon/serving.h"
#include "inspector/daemon/settings.h"
#include "inspector/daemon/trace.h"
#include "inspector/daemon/url_tables.h"
#include "inspector/daemon/vanishing.h"
#include "inspector/daemon/view.h"
#include "inspector/daemon/waiting.h"
#include "inspector/datapath/choose.h"
#include "inspector/daemon/datagrams.h"
#include "inspector/daemon/plugins.h"
#include "inspector/base/event.h"
#include "inspector/base/wall.h"
#include "inspector/plugin/guard.h"
#include "inspector/program/programs.h"

#define ES_QUEUE_BYTES (4u << 20)

/*
 * To inspect a request costs a fraction of serving it. With a worker on each CPU each one sleeps between two
 * requests, and every request pays for a wake-up; with fewer, a worker that wakes finds several.
 */
static unsigned int es_worker_number(const struct es_conf *conf)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned int n = conf->inspector.workers;

	if (!n)
		n = cpus <= 2 ? 1 : (unsigned int)cpus / 2;
	return n > ES_WORKERS_MAX ? ES_WORKERS_MAX : n;
}

static unsigned int es_decision_sets(const struct es_conf *conf)
{
	unsigned int sets = 256; /* at least as many as es_worker_of() tells apart */

	while (sets * ES_DECISION_WAYS < es_conf_decision_entries(conf))
		sets *= 2;
	return sets;
}

static void es_daemon_on_stop(struct ev_loop *loop, struct ev_signal *signal, int events)
{
	struct es_daemon *d = signal->data;

	(void)loop;
	(void)events;
	es_event(ES_EVENT_stop, ES_LOG_INFO, NULL, "signal %d: stopping; the datapath stays%s",
		 signal->signum,
		 d->membership				     ? ""
		 : d->datapath_kind == ES_DATAPATH_NETFILTER ? ", and drops what is this node's"
							     : " and serves without inspection");
	es_daemon_stop(d);
}

static void es_daemon_on_reload(struct ev_loop *loop, struct ev_signal *signal, int events)
{
	struct es_conf_error err = {};

	(void)loop;
	(void)events;
	es_daemon_reload(signal->data, 0, &err); /* says so itself */
}

/* The version that membership starts with is a ring of no nodes. */
static int es_daemon_first_conf(struct es_daemon *d, struct es_conf_error *err)
{
	static const unsigned int nobody[ES_NODES_MAX];
	unsigned int self = 0;
	int is_static, rc;

	rc = es_daemon_read(&d->options, NULL, &d->keys, &d->conf, &self, err);
	if (rc)
		return rc;
	/* earshot-tls does not serve with it, and says so; other services are none the worse. */
	if (es_certificates_note(d->conf, self, err))
		es_log(ES_LOG_ERR, "%s", err->text);
	es_daemon_route_settle(d->route, d->conf->inspector.settle_ms);
	is_static = d->conf->cluster.membership == ES_CONF_MEMBERSHIP_STATIC;
	rc = es_cluster_new(d->conf, self, is_static ? 1 : 0, is_static ? NULL : nobody, NULL, &d->cluster);
	if (rc)
		es_conf_error_set(err, "ring: cannot be computed: %s", strerror(-rc));
	return rc;
}

static int es_daemon_first_contents(struct es_daemon *d, struct es_conf_error *err)
{
	struct es_table_set set;
	int rc = es_daemon_contents_new(d->loop, &es_daemon_content_ops, d, &d->contents);

	(void)err;
	if (!rc) {
		es_daemon_contents_self(d->contents, d->cluster->self);
		rc = es_daemon_contents_prepare(d->contents, d->conf, &set);
	}
	if (rc)
		return rc;
	es_daemon_contents_commit(d->contents, &set);
	es_table_set_fill(d->contents, NULL, d->cluster);
	return 0;
}

static int es_daemon_first_url_tables(struct es_daemon *d, struct es_conf_error *err)
{
	int rc = es_url_tables_init(d->url_tables, NULL, d->conf, &d->keys.ring, err);

	if (!rc)
		es_url_tables_fill(d->url_tables, d->cluster);
	return rc;
}

static int es_daemon_start_workers(struct es_daemon *d, struct es_conf_error *err)
{
	if (es_daemon_rates_prepare(d) || es_daemon_directory_prepare(d) || es_daemon_downloads_prepare(d))
		return -ENOMEM;
	d->orders = calloc((size_t)d->datapath_params.decision_sets * ES_DECISION_WAYS, sizeof(*d->orders));
	if (!d->orders)
		return -ENOMEM;
	for (unsigned int i = 0; i < d->datapath_params.workers; i++) {
		struct es_worker_params params = {
			.id = i,
			.count = d->datapath_params.workers,
			.datapath = d->datapath,
			.decisions =
				{
					.sets = es_datapath_decisions(d->datapath),
					.count = d->datapath_params.decision_sets,
					.orders = d->orders,
				},
			.health = &d->health,
			.route = &d->route->shared,
			.lease_ns = &es_datapath_state(d->datapath)->lease_ns,
			.mark = &es_datapath_state(d->datapath)->mark[i],
			.poisons = &es_datapath_state(d->datapath)->poisons,
			.resets = es_datapath_resets(d->datapath),
			.reset_ns = &es_datapath_state(d->datapath)->reset_ns,
			.hears_ns = &es_datapath_state(d->datapath)->hears_ns,
			.asked_until_s = &es_datapath_state(d->datapath)->asked_until_s,
			.keys = d->keys,
			.packet_max = &d->packet_max->in_force,
			.directory = d->directory->table,
		};
		int rc = es_worker_new(&params, d->cluster, &d->worker[i]);

		if (rc) {
			es_conf_error_set(err, "worker %u: cannot be started: %s", i, strerror(-rc));
			return rc;
		}
	}
	return 0;
}

/* A node that cannot remember what happened serves all the same. */
static void es_daemon_open_events(struct es_daemon *d)
{
	int rc;

	if (!d->options.control_path)
		mkdir(ES_STATE_DIRECTORY, 0755);
	rc = es_event_open(d->events_path, d->conf->nodes[d->cluster->self].name);
	if (rc)
		es_log(ES_LOG_WARNING, "%s: events cannot be written: %s; they are only in the log",
		       d->events_path, strerror(-rc));
}

static int es_daemon_open_control(struct es_daemon *d, struct es_conf_error *err)
{
	int rc = es_daemon_paths_set(d);

	if (!rc)
		rc = es_control_new(d->loop, d->control_path, &d->control, err);
	if (!rc)
		rc = es_daemon_register(d);
	if (!rc)
		es_daemon_open_events(d);
	return rc;
}

static void es_daemon_watch(struct es_daemon *d)
{
	es_daemon_clock_watch(d, es_daemon_load_tell);
	ev_signal_init(&d->sigterm, es_daemon_on_stop, SIGTERM);
	ev_signal_init(&d->sigint, es_daemon_on_stop, SIGINT);
	ev_signal_init(&d->sighup, es_daemon_on_reload, SIGHUP);
	d->sigterm.data = d->sigint.data = d->sighup.data = d;
	ev_signal_start(d->loop, &d->sigterm);
	ev_signal_start(d->loop, &d->sigint);
	ev_signal_start(d->loop, &d->sighup);
}

static int es_daemon_choose_datapath(struct es_daemon *d, struct es_conf_error *err)
{
	return es_datapath_choose(d->conf, &d->datapath_kind, err);
}

/* A worker is the only writer of its part of the decision table. */
static void es_daemon_note(void *ctx, __u64 flow_hash, __u32 cookie, __u32 first_seq, unsigned int node)
{
	const struct es_proof proof = {
		.flow_hash = flow_hash,
		.cookie = cookie,
		.first_seq = first_seq,
		.node = node,
	};
	struct es_daemon *d = ctx;

	es_worker_learn(d->worker[es_worker_of(flow_hash, d->datapath_params.workers)], &proof, 1);
}

static int es_daemon_start_programs(struct es_daemon *d, struct es_conf_error *err)
{
	const struct es_programs_params params = {
		.path = d->program_path,
		.datapath = d->datapath,
		.packet_max = &d->packet_max->in_force,
		.note = es_daemon_note,
		.note_ctx = d,
	};

	return es_programs_new(&params, d->cluster, &d->keys, &d->programs, err);
}

static int es_daemon_start_askers(struct es_daemon *d, struct es_conf_error *err)
{
	int rc = es_askers_new(d->loop, d->ask_path, d->conf, d->worker, d->datapath_params.workers,
			       &d->askers, err);

	if (rc && !err->text[0])
		es_conf_error_set(err, "questions of earshot-tls: %s: cannot be answered: %s", d->ask_path,
				  strerror(-rc));
	return rc;
}

static int es_daemon_start_datapath(struct es_daemon *d, struct es_conf_error *err)
{
	struct es_state *state;
	int rc;

	rc = es_datapath_new(d->datapath_kind, &d->datapath_params, err->text, sizeof(err->text),
			     &d->datapath);
	if (rc)
		return rc;
	if (*es_datapath_note(d->datapath))
		es_log(ES_LOG_WARNING, "%s datapath: %s", es_datapath_name(d->datapath_kind),
		       es_datapath_note(d->datapath));
	state = es_datapath_state(d->datapath);
	es_daemon_clock_start(d);
	/* Not taken over: its windows are as empty as its state. */
	if (!state->began_ns) {
		state->began[d->cluster->self] = es_node_clock_began(0, es_wall_ns(), 0);
		state->began_ns = es_clock_now_ns();
	}
	rc = es_daemon_configure(d, d->cluster, &d->keys);
	if (rc)
		es_conf_error_set(err, "datapath: its configuration cannot be written: %s", strerror(-rc));
	return rc;
}

static int es_daemon_start_route(struct es_daemon *d, struct es_conf_error *err)
{
	(void)err;
	d->loop = ev_default_loop(EVFLAG_AUTO);
	d->started_ns = es_clock_now_ns();
	return d->loop ? es_daemon_route_init(d->route) : -ENOMEM;
}

static int es_daemon_start_plugins(struct es_daemon *d, struct es_conf_error *err)
{
	int rc = es_plugins_new(d->conf, ES_PLUGINS_MISSING_FAILS, &d->plugins, err);

	if (!rc)
		d->cluster->plugins = d->plugins;
	return rc;
}

/* Checks that kernel and sysctls allow this datapath, reads the network, and sizes the datapath's tables. */
static int es_daemon_read_network(struct es_daemon *d, struct es_conf_error *err)
{
	int rc = es_network_probe(d->datapath_kind, err);

	if (!rc)
		rc = es_network_read(d->conf, &d->network, err);
	if (rc)
		return rc;
	es_daemon_packet_max_begin(d);
	d->datapath_params = (struct es_datapath_params){
		.public_ifindex = d->network.public_ifindex,
		.cluster_ifindex = d->network.cluster_ifindex,
		.workers = es_worker_number(d->conf),
		.queue_bytes = ES_QUEUE_BYTES,
		.decision_sets = es_decision_sets(d->conf),
		.conntrack_zone = d->conf->datapath.conntrack_zone,
	};
	return 0;
}

static int es_daemon_be_alone(struct es_daemon *d, struct es_conf_error *err)
{
	return es_datapath_check_alone(d->datapath_kind, &d->datapath_params, err->text, sizeof(err->text));
}

static int es_daemon_prepare_network(struct es_daemon *d, struct es_conf_error *err)
{
	int rc = es_network_prepare(d->conf, d->sysctl_path, err);

	return rc ? rc : es_solicited_open(d->conf, d->network.public_ifindex, &d->solicited_fd, err);
}

static void on_response_took(void *ctx, unsigned int service, unsigned long long took_ns)
{
	struct es_daemon *d = ctx;

	es_daemon_outliers_took(d->outliers, service, took_ns);
}

static void on_sizes(void *ctx, const void *payload, size_t len)
{
	struct es_daemon *d = ctx;

	if (d->membership)
		es_membership_send(d->membership, ES_WIRE_SIZES, payload, len);
	else
		es_observed_message(d->observed, d->cluster->urls, payload, len);
}

static const struct es_observed_ops observed_ops = {.took = on_response_took, .tell = on_sizes};

/* Before anything is given to this node. */
static int es_daemon_start_serving(struct es_daemon *d, struct es_conf_error *err)
{
	int rc;

	(void)err;
	es_observed_init(d->observed, &observed_ops, d);
	es_observed_rebind(d->observed, d->conf);
	es_daemon_outliers_rebind(d);
	es_daemon_vanishing_rebind(d);
	es_health_is_back(&d->health, d->cluster->self, ~0ULL, es_clock_now_ns());
	es_daemon_checks_init(d->checks, d->loop, d->serving->now.listens, es_daemon_serving_changed, d);
	rc = es_daemon_checks_start(d->checks, d->conf, d->cluster->self);
	if (!rc)
		es_daemon_serving_start(d);
	return rc;
}

static int es_daemon_start_keeper(struct es_daemon *d, struct es_conf_error *err)
{
	int rc = es_daemon_poison_start(d);

	if (rc)
		es_conf_error_set(err, "keeper: cannot be started: %s", strerror(-rc));
	return rc;
}

static int es_daemon_start_membership(struct es_daemon *d, struct es_conf_error *err)
{
	struct es_state *state = es_datapath_state(d->datapath);

	(void)err;
	if (d->conf->cluster.membership == ES_CONF_MEMBERSHIP_COROSYNC)
		return es_membership_new(d, &d->membership);
	state->lease_ns = 0;
	__atomic_store_n(&state->attached, 1, __ATOMIC_RELEASE);
	return 0;
}

static int es_daemon_start_exchange(struct es_daemon *d, struct es_conf_error *err)
{
	d->exchange->other = es_daemon_datagram;
	return es_daemon_exchange_start(d, err);
}

static int es_daemon_attach(struct es_daemon *d, struct es_conf_error *err)
{
	return es_datapath_attach(d->datapath, err->text, sizeof(err->text));
}

/* All that struct es_daemon points to, of the one daemon that there is. */
static struct {
	struct es_url_tables url_tables;
	struct es_daemon_route route;
	struct es_daemon_load load;
	struct es_daemon_exchange exchange;
	struct es_heard heard;
	struct es_daemon_serving serving;
	struct es_daemon_checks checks;
	struct es_daemon_observed observed;
	struct es_daemon_outliers outliers;
	struct es_daemon_vanishing vanishing;
	struct es_daemon_metrics metrics;
	struct es_daemon_view view;
	struct es_daemon_trace trace;
	struct es_daemon_request_log request_log;
	struct es_daemon_rates rates;
	struct es_daemon_directory directory;
	struct es_daemon_downloads downloads;
	struct es_daemon_waiting waiting_clients;
	struct es_daemon_service_drains service_drains;
	struct es_daemon_rollout rollout;
	struct es_daemon_settings settings;
	struct es_daemon_poison poison;
	struct es_homes homes;
	struct es_daemon_packet_max packet_max;
	struct es_daemon_interfaces interfaces;
	struct es_daemon_clock clock;
} parts;

static void parts_clear(struct es_daemon *d)
{
	memset(&parts, 0, sizeof(parts));
	*d = (struct es_daemon){
		.url_tables = &parts.url_tables,
		.route = &parts.route,
		.load = &parts.load,
		.exchange = &parts.exchange,
		.heard = &parts.heard,
		.serving = &parts.serving,
		.checks = &parts.checks,
		.observed = &parts.observed,
		.outliers = &parts.outliers,
		.vanishing = &parts.vanishing,
		.metrics = &parts.metrics,
		.view = &parts.view,
		.trace = &parts.trace,
		.request_log = &parts.request_log,
		.rates = &parts.rates,
		.directory = &parts.directory,
		.downloads = &parts.downloads,
		.waiting_clients = &parts.waiting_clients,
		.service_drains = &parts.service_drains,
		.rollout = &parts.rollout,
		.settings = &parts.settings,
		.poison = &parts.poison,
		.homes = &parts.homes,
		.packet_max = &parts.packet_max,
		.interfaces = &parts.interfaces,
		.clock = &parts.clock,
	};
}

int es_daemon_init(struct es_daemon *d, const struct es_daemon_options *options, struct es_conf_error *err)
{
	/* The control socket refuses to start beside another daemon of this node, so it comes before all that
	 * would harm that. */
	static int (*const step[])(struct es_daemon *, struct es_conf_error *) = {
		es_daemon_start_route,
		es_daemon_first_conf,
		es_daemon_start_plugins,
		es_daemon_first_contents,
		es_daemon_first_url_tables,
		es_daemon_choose_datapath,
		es_daemon_read_network,
		es_daemon_open_control,
		es_daemon_be_alone,
		es_daemon_prepare_network,
		es_daemon_start_datapath,
		es_daemon_start_serving,
		es_daemon_start_keeper,
		es_daemon_start_workers,
		es_daemon_start_programs,
		es_daemon_start_askers,
		es_daemon_start_membership,
		es_daemon_start_exchange,
		es_daemon_attach,
		es_daemon_interfaces_start,
		es_daemon_view_start,
		es_daemon_metrics_start,
		es_daemon_rollout_start,
		es_daemon_settings_start,
		es_daemon_request_log_start,
	};
	int rc = 0;

	parts_clear(d);
	es_guard_install();
	es_guard_thread();
	d->solicited_fd = -1;
	d->options = *options;
	for (size_t i = 0; i < sizeof(step) / sizeof(step[0]) && !rc; i++)
		rc = step[i](d, err);
	if (rc) {
		es_daemon_fini(d);
		return rc;
	}
	es_daemon_watch(d);
	es_daemon_plugins_watch(d);
	es_daemon_rates_rebind(d);
	es_daemon_directory_rebind(d);
	es_daemon_downloads_rebind(d);
	return 0;
}

void es_daemon_fini(struct es_daemon *d)
{
	es_control_free(&d->control);
	es_daemon_rollout_stop(d);
	es_daemon_settings_stop(d);
	es_event_close();
	es_daemon_interfaces_stop(d);
	es_daemon_metrics_stop(d);
	es_daemon_checks_stop(d->checks);
	es_daemon_serving_stop(d);
	es_daemon_exchange_stop(d);
	es_membership_free(&d->membership);
	es_programs_free(&d->programs);
	for (unsigned int i = 0; i < ES_WORKERS_MAX; i++)
		es_worker_free(&d->worker[i]);
	es_askers_free(&d->askers);
	es_daemon_view_stop(d);
	es_daemon_trace_stop(d);
	es_daemon_request_log_stop(d);
	es_daemon_rates_stop(d);
	es_daemon_downloads_stop(d);
	es_daemon_directory_stop(d);
	es_daemon_service_drains_free(d);
	es_daemon_poison_stop(d);
	if (d->datapath && d->detach_on_exit)
		es_datapath_detach(d->datapath_kind, &d->datapath_params);
	es_datapath_free(&d->datapath);
	es_daemon_contents_free(&d->contents);
	es_url_tables_fini(d->url_tables);
	free(d->orders);
	d->orders = NULL;
	es_solicited_replace(&d->solicited_fd, -1);
	es_plugins_free(&d->plugins);
	es_daemon_route_fini(d->route);
	es_cluster_free(&d->cluster);
	es_conf_free(&d->conf);
	es_keys_wipe(&d->keys);
}
