// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Another configuration, or other keys, for a daemon that runs: all of it is made beside what is in force,
 * and takes its place at once, or not at all.
 */
#include <errno.h>
#include <string.h>
#include "inspector/ask/askers.h"
#include "inspector/daemon/checks.h"
#include "inspector/daemon/contents.h"
#include "inspector/daemon/exchange.h"
#include "inspector/daemon/interfaces.h"
#include "inspector/daemon/internal.h"
#include "inspector/daemon/membership.h"
#include "inspector/daemon/metrics.h"
#include "inspector/daemon/observed.h"
#include "inspector/daemon/outliers.h"
#include "inspector/daemon/packet_max.h"
#include "inspector/daemon/plugins.h"
#include "inspector/daemon/directory.h"
#include "inspector/daemon/downloads.h"
#include "inspector/daemon/rates.h"
#include "inspector/daemon/request_log.h"
#include "inspector/daemon/route.h"
#include "inspector/daemon/service_drains.h"
#include "inspector/daemon/serving.h"
#include "inspector/daemon/settings.h"
#include "inspector/daemon/start_settings.h"
#include "inspector/base/event.h"
#include "inspector/daemon/url_tables.h"
#include "inspector/daemon/vanishing.h"
#include "inspector/daemon/view.h"
#include "inspector/machine/local_socket.h"
#include "inspector/machine/solicited.h"
#include "inspector/self/certificates.h"
#include "inspector/self/settings.h"
#include "membership/group.h"

/* The node's ring, as it is, of another configuration. */
static int es_daemon_next_cluster(const struct es_daemon *d, const struct es_conf *conf, unsigned int self,
				  struct es_cluster **ret_cluster, struct es_conf_error *err)
{
	int rc;

	if (d->membership)
		rc = es_cluster_new(conf, self, d->cluster->epoch, es_membership_weights(d->membership),
				    es_membership_share(d->membership), ret_cluster);
	else
		rc = es_cluster_new(conf, self, d->cluster->epoch + 1, NULL, NULL, ret_cluster);
	if (!rc && d->membership)
		rc = es_cluster_set_tenure(*ret_cluster, es_membership_tenure(d->membership));
	if (rc)
		es_conf_error_set(err, "ring: cannot be computed: %s", strerror(-rc));
	return rc;
}

/* Does a node of the list in force have this place still? */
static int has_node(const struct es_conf *conf, unsigned int place)
{
	return place < conf->node_count && !conf->nodes[place].removed;
}

/*
 * With membership nodes know each other by their places, which members keep. A node that is none may be added
 * behind all others, or go: from the end of the list, or with its place kept.
 */
static int es_daemon_members_stay(const struct es_daemon *d, const struct es_conf *conf,
				  struct es_conf_error *err)
{
	const struct es_conf *now = d->conf;

	for (unsigned int i = 0; i < now->node_count || i < conf->node_count; i++) {
		if (i < now->node_count && i < conf->node_count &&
		    strcmp(conf->nodes[i].name, now->nodes[i].name) != 0)
			es_conf_error_set(err,
					  "%s: node %s: in the place of %s: expected that one there, with "
					  "removed = yes if it is removed, and new nodes after the last one",
					  conf->path, conf->nodes[i].name, now->nodes[i].name);
		else if (has_node(now, i) && !has_node(conf, i) && i != d->cluster->self &&
			 !es_group_node_is_gone(es_membership_group(d->membership), i))
			es_conf_error_set(err,
					  "%s: node %s is a member of the cluster: expected its daemon ended "
					  "(earshot drain %s --wait, then systemctl stop earshotd there) "
					  "before it is removed",
					  conf->path, now->nodes[i].name, now->nodes[i].name);
		else
			continue;
		return -EINVAL;
	}
	return 0;
}

/*
 * May @conf and @keys replace those in force while the daemon runs? @may_wait: for its next start, what that
 * alone needs
 */
static int es_daemon_reload_check(const struct es_daemon *d, const struct es_conf *conf, unsigned int self,
				  const struct es_keys *keys, int may_wait, struct es_conf_error *err)
{
	const char *fixed = es_start_settings_fixed(d, conf);
	char lack[ES_CONF_NETFILTER_TEXT], waiting[ES_START_SETTINGS_SIZE];

	if (fixed)
		es_conf_error_set(err, "%s: %s cannot change while the daemon runs; restart it", conf->path,
				  fixed);
	else if (es_start_settings_differ(d->conf, conf, waiting, sizeof(waiting)) && !may_wait)
		es_conf_error_set(err,
				  "%s: %s cannot change while the daemon runs; restart it, or all of them, "
				  "one after the other: earshot rollout --restart",
				  conf->path, waiting);
	else if (d->membership && es_daemon_members_stay(d, conf, err))
		return -EINVAL;
	else if (self != d->cluster->self)
		es_conf_error_set(err,
				  "%s: this node's place in the list of nodes cannot change while the daemon "
				  "runs; restart it",
				  conf->path);
	else if (keys->ring.k0 != d->keys.ring.k0 || keys->ring.k1 != d->keys.ring.k1)
		es_conf_error_set(err,
				  "%s: another ring secret would move every connection: stop all nodes "
				  "before they get it",
				  conf->cluster.key_file);
	else if (d->datapath_kind == ES_DATAPATH_NETFILTER && !es_conf_netfilter_serves(conf, lack))
		es_conf_error_set(err, "%s: %s", conf->path, lack);
	else
		return 0;
	return -EINVAL;
}

/* All that a reload makes before it changes anything. */
struct es_daemon_next {
	struct es_keys keys;
	struct es_conf *conf;
	unsigned int self;
	struct es_cluster *cluster;
	struct es_plugins *plugins;
	struct es_network network;
	struct es_table_set tables;
	struct es_url_tables url_tables;
	int solicited_fd; /* -1: none, or it is the daemon's */
	char waiting[ES_START_SETTINGS_SIZE];
};

/* Nothing of it is seen outside of @next. */
static int es_daemon_next_make(struct es_daemon *d, const struct es_daemon_text *text, int may_wait,
			       struct es_daemon_next *next, struct es_conf_error *err)
{
	int rc = es_daemon_read(&d->options, text, &next->keys, &next->conf, &next->self, err);

	if (!rc)
		rc = es_certificates_note(next->conf, next->self, err);
	if (!rc)
		rc = es_daemon_reload_check(d, next->conf, next->self, &next->keys, may_wait, err);
	if (!rc) {
		es_start_settings_differ(d->conf, next->conf, next->waiting, sizeof(next->waiting));
		es_start_settings_keep(d->conf, next->conf);
	}
	if (!rc)
		rc = es_daemon_next_cluster(d, next->conf, next->self, &next->cluster, err);
	if (!rc)
		rc = es_plugins_new(next->conf, ES_PLUGINS_MISSING_FAILS, &next->plugins, err);
	if (!rc)
		rc = es_network_read(next->conf, &next->network, err);
	if (!rc)
		rc = es_daemon_contents_prepare(d->contents, next->conf, &next->tables);
	if (!rc)
		rc = es_url_tables_init(&next->url_tables, d->url_tables, next->conf, &next->keys.ring, err);
	return rc;
}

static int es_daemon_next_prepare(struct es_daemon *d, int may_wait, struct es_daemon_next *next,
				  struct es_conf_error *err)
{
	int rc = es_daemon_next_make(d, NULL, may_wait, next, err);

	if (!rc)
		rc = es_network_prepare(next->conf, d->sysctl_path, err);
	if (!rc)
		rc = es_solicited_open(next->conf, next->network.public_ifindex, &next->solicited_fd, err);
	if (rc)
		return rc;
	es_table_set_fill(d->contents, &next->tables, next->cluster);
	next->cluster->plugins = next->plugins;
	es_url_tables_fill(&next->url_tables, next->cluster);
	return 0;
}

/* Workers first: they must know a service before its requests come. */
static int es_daemon_next_use(struct es_daemon *d, struct es_daemon_next *next, struct es_conf_error *err)
{
	const struct es_network old = d->network;
	int rc;

	d->network = next->network;
	es_daemon_packet_max_begin(d);
	es_daemon_set_workers(d, next->cluster, &next->keys);
	rc = es_daemon_configure(d, next->cluster, &next->keys);
	if (rc) {
		d->network = old;
		es_daemon_packet_max_begin(d);
		es_daemon_set_workers(d, d->cluster, &d->keys);
		es_conf_error_set(err, "datapath: its configuration cannot be written: %s", strerror(-rc));
	}
	return rc;
}

/* @next is in force: all that was in force before goes, since no worker has it any more. */
static void es_daemon_next_commit(struct es_daemon *d, struct es_daemon_next *next)
{
	es_daemon_contents_commit(d->contents, &next->tables);
	es_solicited_replace(&d->solicited_fd, next->solicited_fd);
	es_url_tables_fini(d->url_tables);
	*d->url_tables = next->url_tables;
	es_cluster_free(&d->cluster);
	d->cluster = next->cluster;
	d->keys = next->keys;
	es_plugins_free(&d->plugins);
	d->plugins = next->plugins;
	es_conf_free(&d->conf);
	d->conf = next->conf;
	memcpy(d->waiting, next->waiting, sizeof(d->waiting));
	es_daemon_contents_self(d->contents, d->cluster->self);
	es_daemon_route_settle(d->route, d->conf->inspector.settle_ms);
}

static void es_daemon_next_discard(struct es_daemon *d, struct es_daemon_next *next)
{
	es_daemon_contents_discard(d->contents, &next->tables);
	es_solicited_replace(&next->solicited_fd, -1);
	es_plugins_free(&next->plugins);
	es_url_tables_fini(&next->url_tables);
	es_cluster_free(&next->cluster);
	es_conf_free(&next->conf);
}

/* Since then, a service may have tls { }, and earshot-tls a group. */
static void es_daemon_share_sockets(const struct es_daemon *d)
{
	const char *const paths[] = {d->program_path, d->ask_path};
	struct es_conf_error err = {};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (es_local_socket_share(paths[i], d->conf, &err))
			es_log(ES_LOG_WARNING, "%s", err.text);
}

static int es_daemon_use_next(struct es_daemon *d, int may_wait, struct es_conf_error *err)
{
	struct es_daemon_next next = {.solicited_fd = -1};
	int rc = es_daemon_interfaces_reload(d, err); /* before all that a failure would have to take back */

	if (!rc)
		rc = es_daemon_next_prepare(d, may_wait, &next, err);
	if (!rc && d->membership)
		es_membership_expect(d->membership, next.conf);
	if (!rc)
		rc = es_daemon_next_use(d, &next, err);
	if (rc) {
		es_daemon_next_discard(d, &next);
		es_keys_wipe(&next.keys);
		return rc;
	}
	/* Responses have the numbers that their services had before. */
	es_datapath_responses(d->datapath, es_observed_response, d->observed);
	es_askers_responses(d->askers, es_observed_response, d->observed);
	es_daemon_next_commit(d, &next);
	es_health_renumber(&d->health);
	es_keys_wipe(&next.keys);
	es_daemon_share_sockets(d);
	es_daemon_plugins_watch(d);
	es_observed_rebind(d->observed, d->conf);
	es_daemon_exchange_rebind(d);
	es_daemon_view_rebind(d);
	es_daemon_settings_rebind(d);
	es_daemon_metrics_rebind(d);
	es_daemon_request_log_rebind(d);
	es_daemon_rates_rebind(d);
	es_daemon_directory_rebind(d);
	es_daemon_downloads_rebind(d);
	es_daemon_service_drains_rebind(d);
	if (d->membership)
		es_membership_reloaded(d->membership);
	es_daemon_checks_rebind(d->checks, d->conf, d->cluster->self);
	es_daemon_outliers_rebind(d);
	es_daemon_vanishing_rebind(d);
	es_daemon_serving_look(d);
	es_event(ES_EVENT_reload, ES_LOG_INFO, NULL, "reloaded %s: %u nodes, %u services, epoch %u",
		 d->conf->path, d->conf->node_count, d->conf->service_count, d->cluster->epoch);
	return 0;
}

static int es_daemon_accepts(const struct es_keys *keys, const struct es_sipkey *signer)
{
	for (unsigned int i = 0; i < keys->count; i++)
		if (keys->key[i].handover.k0 == signer->k0 && keys->key[i].handover.k1 == signer->k1)
			return 1;
	return 0;
}

/*
 * The nodes tell each other on the way that they have switched, so it must lead to the same nodes before and
 * after, and who has switched and who has not must accept each other's words.
 */
static int es_daemon_nodes_stay(const struct es_daemon *d, const struct es_conf *conf,
				const struct es_keys *keys, struct es_conf_error *err)
{
	const char *wrong = NULL;

	if (!es_daemon_accepts(&d->keys, &keys->key[0].handover) ||
	    !es_daemon_accepts(keys, &d->keys.key[0].handover)) {
		es_conf_error_set(
			err,
			"%s: its key is not in force yet, or the one in force is not in it: expected a "
			"key that was staged (earshot keygen --stage) and reloaded on all nodes before",
			conf->cluster.key_file);
		return -EINVAL;
	}

	if (conf->cluster.handover_port != d->conf->cluster.handover_port)
		wrong = "cluster: handover_port";
	for (unsigned int i = 0; !wrong && i < d->conf->node_count; i++) {
		/* With membership, es_daemon_members_stay() has already refused to remove a member. */
		if (!has_node(d->conf, i) ||
		    (!has_node(conf, i) && (d->membership || !es_daemon_is_heard(d, i))))
			continue;
		if (!has_node(conf, i) || strcmp(conf->nodes[i].name, d->conf->nodes[i].name) != 0 ||
		    !es_addr_equal(&conf->nodes[i].address, &d->conf->nodes[i].address))
			wrong = "the list of nodes that run, but for new ones at its end,";
	}
	if (!wrong)
		return 0;
	es_conf_error_set(err, "%s: %s cannot change by a rollout; reload each node", conf->path, wrong);
	return -EINVAL;
}

int es_daemon_try(struct es_daemon *d, const struct es_daemon_text *text, int may_wait, char *ret_settings,
		  size_t size, struct es_conf_error *err)
{
	struct es_daemon_next next = {.solicited_fd = -1};
	int rc = es_daemon_next_make(d, text, may_wait, &next, err);

	if (!rc)
		rc = es_daemon_nodes_stay(d, next.conf, &next.keys, err);
	if (!rc)
		es_settings_text(next.conf, &next.keys, &next.network, next.plugins, ret_settings, size);
	if (!rc)
		es_start_settings_tell(next.waiting, err);
	es_daemon_next_discard(d, &next);
	es_keys_wipe(&next.keys);
	if (rc && !err->text[0])
		es_conf_error_set(err, "%s: %s", text->name, strerror(-rc));
	return rc;
}

int es_daemon_reload(struct es_daemon *d, int may_wait, struct es_conf_error *err)
{
	int rc = es_daemon_use_next(d, may_wait, err);

	if (rc)
		es_event(ES_EVENT_reload_refused, ES_LOG_ERR, NULL,
			 "reload failed: %s; the old configuration stays in force",
			 err->text[0] ? err->text : strerror(-rc));
	return rc;
}
