// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Builds the daemon from its parts and takes it apart again. What a command answers is in daemon_control.c,
 * what happens to a packet in worker.c and inspect.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "inspector/daemon_internal.h"
#include "inspector/daemon_plugins.h"
#include "inspector/log.h"
#include "inspector/policy/policy.h"
#include "program/wire.h"
#include "kmod/core/cookie.h"

#define ES_QUEUE_BYTES (4u << 20)

/* Ten full segments: what a client sends before it hears an ACK (RFC 6928), and no more than the inspector
 * keeps. */
static unsigned int es_synack_window(const struct es_network *network)
{
	unsigned int window = 10 * network->mss;

	return window > 65535 ? 65535 : window;
}

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

	while (sets * ES_DECISION_WAYS < conf->inspector.decision_entries)
		sets *= 2;
	return sets;
}

static void es_config_fill(const struct es_daemon *d, const struct es_cluster *cluster,
			   const struct es_keys *keys, struct es_config *ret)
{
	const struct es_conf *conf = cluster->conf;

	memset(ret, 0, sizeof(*ret));
	ret->abi = ES_ABI_VERSION;
	ret->epoch = cluster->epoch;
	ret->self = cluster->self;
	ret->ring_key = keys->ring;
	for (unsigned int i = 0; i < keys->count; i++) {
		ret->cookie_key[i] = keys->key[i].cookie;
		ret->handover_key[i] = keys->key[i].handover;
	}
	ret->key_count = keys->count;
	ret->slot_s = conf->datapath.cookie_lifetime_s / ES_COOKIE_SLOTS_VALID;
	ret->synack_window = es_synack_window(&d->network);
	ret->decision_sets = d->datapath_params.decision_sets;
	ret->workers = d->datapath_params.workers;
	ret->race_window_ms = conf->inspector.race_window_ms;
	ret->fallback_after_ms = conf->datapath.fallback_after_ms;
	ret->public_ifindex = d->network.public_ifindex;
	ret->cluster_ifindex = d->network.cluster_ifindex;
	ret->mss = (__u16)d->network.mss;
	ret->handover_port = es_htons(conf->cluster.handover_port);
	ret->rcv_wscale = (__u8)conf->datapath.receive_window_scale;
	ret->offer_wscale = (__u8)d->network.wscale;
	ret->offer_sack = (__u8)d->network.sack;
	ret->offer_ts = (__u8)d->network.timestamps;
	ret->offer_ecn = (__u8)d->network.ecn;
	ret->leased = conf->cluster.membership == ES_CONF_MEMBERSHIP_COROSYNC;
	memcpy(ret->cluster_mac, conf->datapath.cluster_mac, sizeof(ret->cluster_mac));
	memcpy(ret->public_mac, d->network.public_mac, sizeof(ret->public_mac));
	ret->self_address = conf->nodes[cluster->self].address;
	ret->service_count = conf->service_count;
	for (unsigned int i = 0; i < conf->service_count; i++) {
		const struct es_policy *policy = es_policy_find(conf->services[i].policy);

		ret->service[i].address = conf->services[i].address;
		ret->service[i].port = es_htons(conf->services[i].port);
		int inspects = (policy && policy->inspects) || es_plugins_has(cluster->plugins, i);

		ret->service[i].inspect = (__u8)(inspects ? conf->services[i].inspect : ES_INSPECT_NEVER);
		ret->reads_replies |= ret->service[i].inspect == ES_INSPECT_EVERY;
		ret->service[i].server = conf->services[i].server_address;
		ret->service[i].server_port = es_htons(conf->services[i].server_port);
	}
}

/* Put a version of the cluster in force in the datapath. */
int es_daemon_configure(struct es_daemon *d, const struct es_cluster *cluster, const struct es_keys *keys)
{
	struct es_config config;

	es_config_fill(d, cluster, keys, &config);
	return es_datapath_configure(d->datapath, &config, cluster->slots);
}

/* A datapath without a daemon must still know the time: keep the distance of its clock to the wall's. */
static void es_daemon_set_clock(struct es_daemon *d)
{
	struct es_state *state = es_datapath_state(d->datapath);
	struct timespec wall, mono;

	clock_gettime(CLOCK_REALTIME, &wall);
	clock_gettime(CLOCK_MONOTONIC, &mono);
	__atomic_store_n(&state->wall_offset_ns,
			 (__u64)(wall.tv_sec - mono.tv_sec) * 1000000000ULL +
				 (__u64)(wall.tv_nsec - mono.tv_nsec),
			 __ATOMIC_RELAXED);
}

static void es_daemon_on_clock(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	(void)loop;
	(void)events;
	es_daemon_set_clock(timer->data);
}

static void es_daemon_end(struct es_daemon *d)
{
	ev_break(d->loop, EVBREAK_ALL);
}

void es_daemon_stop(struct es_daemon *d)
{
	if (d->membership)
		es_membership_leave(d->membership, es_daemon_end);
	else
		es_daemon_end(d);
}

static void es_daemon_on_stop(struct ev_loop *loop, struct ev_signal *signal, int events)
{
	struct es_daemon *d = signal->data;

	(void)loop;
	(void)events;
	es_log(ES_LOG_INFO, "signal %d: stopping; the datapath stays%s", signal->signum,
	       d->membership ? "" : " and serves without inspection");
	es_daemon_stop(d);
}

static void es_daemon_on_reload(struct ev_loop *loop, struct ev_signal *signal, int events)
{
	struct es_conf_error err = {};

	(void)loop;
	(void)events;
	if (es_daemon_reload(signal->data, &err))
		es_log(ES_LOG_ERR, "reload failed: %s; the old configuration stays in force", err.text);
}

int es_daemon_load(const struct es_daemon_options *options, struct es_keys *ret_keys,
		   struct es_conf **ret_conf, unsigned int *ret_self, struct es_conf_error *err)
{
	struct es_conf *conf = NULL;
	int rc;

	rc = es_conf_load(options->config_path, &conf, err);
	if (rc)
		return rc;
	rc = es_conf_find_self(conf, options->node, ret_self, err);
	if (!rc)
		rc = es_keyfile_load(conf->cluster.key_file, ret_keys, err);
	if (rc)
		es_conf_free(&conf);
	*ret_conf = conf;
	return rc;
}

/* The version that membership starts with is a ring of no nodes. */
static int es_daemon_first_cluster(struct es_daemon *d, unsigned int self, struct es_conf_error *err)
{
	static const unsigned int nobody[ES_NODES_MAX];
	int is_static = d->conf->cluster.membership == ES_CONF_MEMBERSHIP_STATIC;
	int rc = es_cluster_new(d->conf, self, is_static ? 1 : 0, is_static ? NULL : nobody, NULL,
				&d->cluster);

	if (rc)
		es_conf_error_set(err, "ring: %s", strerror(-rc));
	return rc;
}

static int es_daemon_first_targets(struct es_daemon *d)
{
	struct es_table_set set;
	int rc = es_daemon_targets_new(d->loop, &es_membership_sync_ops, d, &d->targets);

	if (!rc)
		rc = es_daemon_targets_prepare(d->targets, d->conf, &set);
	if (rc)
		return rc;
	es_daemon_targets_commit(d->targets, &set);
	es_table_set_fill(d->targets, NULL, d->cluster);
	return 0;
}

static int es_daemon_first_content(struct es_daemon *d, struct es_conf_error *err)
{
	int rc = es_content_set_init(&d->content, NULL, d->conf, &d->keys.ring, err);

	if (!rc)
		es_content_set_fill(&d->content, d->cluster);
	return rc;
}

/* Missing service addresses are no reason to stay down, but nobody would find this one by himself. */
void es_daemon_warn_addresses(const struct es_conf *conf)
{
	char text[64];

	for (unsigned int i = 0; i < conf->service_count; i++)
		if (!es_network_has_address(&conf->services[i].address))
			es_log(ES_LOG_WARNING,
			       "service %s: %s is no address of this node, so its requests are lost here; "
			       "ip address add %s/32 dev lo",
			       conf->services[i].name, es_conf_addr_text(&conf->services[i].address, text),
			       text);
}

static int es_daemon_start_workers(struct es_daemon *d, struct es_conf_error *err)
{
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
			.route = &d->route.shared,
			.lease_ns = &es_datapath_state(d->datapath)->lease_ns,
			.keys = d->keys,
			.packet_max = d->network.packet_max,
		};
		int rc = es_worker_new(&params, d->cluster, &d->worker[i]);

		if (rc) {
			es_conf_error_set(err, "worker %u: %s", i, strerror(-rc));
			return rc;
		}
	}
	return 0;
}

static int es_daemon_open_control(struct es_daemon *d, struct es_conf_error *err)
{
	int rc = 0;

	if (d->options.control_path)
		snprintf(d->control_path, sizeof(d->control_path), "%s", d->options.control_path);
	else
		rc = es_control_path(d->conf->nodes[d->cluster->self].name, d->control_path,
				     sizeof(d->control_path));
	if (!rc)
		rc = es_control_new(d->loop, d->control_path, &d->control, err);
	if (!rc)
		rc = es_daemon_register(d);
	return rc;
}

static void es_daemon_watch(struct es_daemon *d)
{
	ev_timer_init(&d->clock_timer, es_daemon_on_clock, 1, 1);
	d->clock_timer.data = d;
	ev_timer_start(d->loop, &d->clock_timer);
	ev_signal_init(&d->sigterm, es_daemon_on_stop, SIGTERM);
	ev_signal_init(&d->sigint, es_daemon_on_stop, SIGINT);
	ev_signal_init(&d->sighup, es_daemon_on_reload, SIGHUP);
	d->sigterm.data = d->sigint.data = d->sighup.data = d;
	ev_signal_start(d->loop, &d->sigterm);
	ev_signal_start(d->loop, &d->sigint);
	ev_signal_start(d->loop, &d->sighup);
}

/* auto: bpf where the kernel has what that needs, else the module if there is one. */
static int es_daemon_choose_datapath(struct es_daemon *d, struct es_conf_error *err)
{
	struct es_conf_error kernel = {};
	char module[256] = "";

	d->datapath_kind =
		d->conf->datapath.type == ES_CONF_DATAPATH_MODULE ? ES_DATAPATH_MODULE : ES_DATAPATH_BPF;
	if (d->conf->datapath.type == ES_CONF_DATAPATH_AUTO && es_network_probe_kernel(&kernel)) {
		d->datapath_kind = ES_DATAPATH_MODULE;
		if (es_datapath_probe(ES_DATAPATH_MODULE, module, sizeof(module))) {
			es_conf_error_set(err, "%s; %s", kernel.text, module);
			return -ENOTSUP;
		}
	}
	return 0;
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

/* Its socket lies beside the control socket: n1.sock, n1.handover. */
static int es_daemon_start_programs(struct es_daemon *d, struct es_conf_error *err)
{
	const struct es_programs_params params = {
		.path = d->program_path,
		.group = d->conf->inspector.program_group,
		.datapath = d->datapath,
		.packet_max = d->network.packet_max,
		.note = es_daemon_note,
		.note_ctx = d,
	};
	size_t len = strlen(d->control_path);

	if (len > 5 && !strcmp(d->control_path + len - 5, ".sock"))
		len -= 5;
	if ((size_t)snprintf(d->program_path, sizeof(d->program_path), "%.*s" ES_PROGRAM_SUFFIX, (int)len,
			     d->control_path) >= sizeof(d->program_path))
		return -ENAMETOOLONG;
	return es_programs_new(&params, d->cluster, &d->keys, &d->programs, err);
}

static int es_daemon_start_datapath(struct es_daemon *d, struct es_conf_error *err)
{
	struct es_state *state;
	int rc;

	rc = es_datapath_new(d->datapath_kind, &d->datapath_params, err->text, sizeof(err->text),
			     &d->datapath);
	if (rc)
		return rc;
	state = es_datapath_state(d->datapath);
	if (!state->sequence)
		state->sequence = (__u64)time(NULL) << 24;
	es_daemon_set_clock(d);
	rc = es_daemon_configure(d, d->cluster, &d->keys);
	if (rc)
		es_conf_error_set(err, "datapath: writing its configuration: %s", strerror(-rc));
	return rc;
}

int es_daemon_init(struct es_daemon *d, const struct es_daemon_options *options, struct es_conf_error *err)
{
	unsigned int self = 0;
	int rc;

	memset(d, 0, sizeof(*d));
	d->options = *options;
	d->loop = ev_default_loop(EVFLAG_AUTO);
	d->started = ev_time();
	rc = d->loop ? es_daemon_route_init(&d->route) : -ENOMEM;
	if (!rc)
		rc = es_daemon_load(options, &d->keys, &d->conf, &self, err);
	if (!rc)
		rc = es_daemon_first_cluster(d, self, err);
	if (!rc)
		rc = es_plugins_new(d->conf, ES_PLUGINS_MISSING_FAILS, &d->plugins, err);
	if (!rc)
		d->cluster->plugins = d->plugins;
	if (!rc)
		rc = es_daemon_first_targets(d);
	if (!rc)
		rc = es_daemon_first_content(d, err);
	if (!rc)
		rc = es_daemon_choose_datapath(d, err);
	if (!rc)
		rc = es_network_probe(d->datapath_kind, err);
	if (!rc)
		rc = es_network_read(d->conf, &d->network, err);
	if (rc)
		goto err_fini;
	d->datapath_params = (struct es_datapath_params){
		.public_ifindex = d->network.public_ifindex,
		.cluster_ifindex = d->network.cluster_ifindex,
		.workers = es_worker_number(d->conf),
		.queue_bytes = ES_QUEUE_BYTES,
		.decision_sets = es_decision_sets(d->conf),
	};
	/* The control socket early: it refuses to start beside another daemon of this node. */
	rc = es_daemon_open_control(d, err);
	if (!rc)
		rc = es_datapath_check_alone(d->datapath_kind, &d->datapath_params, err->text,
					     sizeof(err->text));
	if (!rc)
		rc = es_network_prepare(d->conf, err);
	if (!rc)
		rc = es_daemon_start_datapath(d, err);
	if (!rc)
		rc = es_daemon_start_workers(d, err);
	if (!rc)
		rc = es_daemon_start_programs(d, err);
	if (rc)
		goto err_fini;
	es_daemon_warn_addresses(d->conf);
	if (d->conf->cluster.membership == ES_CONF_MEMBERSHIP_COROSYNC) {
		rc = es_membership_new(d, &d->membership);
		if (rc)
			goto err_fini;
	} else {
		es_datapath_state(d->datapath)->lease_ns = 0;
		__atomic_store_n(&es_datapath_state(d->datapath)->attached, 1, __ATOMIC_RELEASE);
	}
	rc = es_daemon_load_start(d, err);
	if (rc)
		goto err_fini;
	rc = es_datapath_attach(d->datapath, err->text, sizeof(err->text));
	if (rc)
		goto err_fini;
	es_daemon_watch(d);
	es_daemon_plugins_watch(d);
	return 0;

err_fini:
	es_daemon_fini(d);
	return rc;
}

void es_daemon_fini(struct es_daemon *d)
{
	es_control_free(&d->control);
	es_daemon_load_stop(d);
	es_membership_free(&d->membership);
	es_programs_free(&d->programs);
	for (unsigned int i = 0; i < ES_WORKERS_MAX; i++)
		es_worker_free(&d->worker[i]);
	if (d->datapath && d->detach_on_exit)
		es_datapath_detach(d->datapath_kind, &d->datapath_params);
	es_datapath_free(&d->datapath);
	es_daemon_targets_free(&d->targets);
	es_content_set_fini(&d->content);
	free(d->orders);
	d->orders = NULL;
	es_plugins_free(&d->plugins);
	es_daemon_route_fini(&d->route);
	es_cluster_free(&d->cluster);
	es_conf_free(&d->conf);
	es_keys_wipe(&d->keys);
}

void es_daemon_set_workers(struct es_daemon *d, const struct es_cluster *cluster, const struct es_keys *keys)
{
	es_programs_set_cluster(d->programs, cluster, keys);
	for (unsigned int i = 0; i < d->datapath_params.workers; i++)
		es_worker_set_cluster(d->worker[i], cluster, keys);
}

int es_daemon_install(struct es_daemon *d, struct es_cluster *next)
{
	struct es_cluster *old = d->cluster;
	int rc;

	es_table_set_fill(d->targets, NULL, next);
	next->plugins = d->plugins;
	es_content_set_fill(&d->content, next);
	/* The datapath first: what it does not queue any more, a worker need not drop. */
	rc = es_daemon_configure(d, next, &d->keys);
	if (rc)
		return rc;
	es_daemon_set_workers(d, next, &d->keys);
	d->cluster = next;
	es_cluster_free(&old);
	return 0;
}
