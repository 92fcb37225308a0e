// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Another configuration, or other keys, for a daemon that runs: all of it is made beside what is in force,
 * and takes its place at once, or not at all.
 */
#include <errno.h>
#include <string.h>
#include "inspector/daemon_internal.h"
#include "inspector/daemon_plugins.h"
#include "inspector/log.h"

/* What is fixed while the datapath runs; the name of the first key that differs, or NULL. */
static const char *es_daemon_fixed_difference(const struct es_conf *a, const struct es_conf *b)
{
	if (strcmp(a->datapath.interface, b->datapath.interface) != 0)
		return "datapath: interface";
	if (strcmp(a->datapath.cluster_interface, b->datapath.cluster_interface) != 0)
		return "datapath: cluster_interface";
	if (a->cluster.membership != b->cluster.membership)
		return "cluster: membership";
	if (a->inspector.workers != b->inspector.workers)
		return "inspector: workers";
	if (a->inspector.decision_entries != b->inspector.decision_entries)
		return "inspector: decision_entries";
	if (a->inspector.target_entries != b->inspector.target_entries)
		return "inspector: target_entries";
	if (a->inspector.gather_flows != b->inspector.gather_flows ||
	    a->inspector.gather_bytes != b->inspector.gather_bytes)
		return "inspector: gather_flows and gather_bytes";
	if (strcmp(a->inspector.program_group, b->inspector.program_group) != 0)
		return "inspector: program_group";
	return NULL;
}

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
	if (rc)
		es_conf_error_set(err, "ring: %s", strerror(-rc));
	return rc;
}

/* May @conf and @keys replace those in force while the daemon runs? */
static int es_daemon_reload_check(const struct es_daemon *d, const struct es_conf *conf, unsigned int self,
				  const struct es_keys *keys, struct es_conf_error *err)
{
	const char *fixed = es_daemon_fixed_difference(d->conf, conf);

	if (!fixed && d->membership && conf->node_count != d->conf->node_count)
		fixed = "the number of nodes";
	if (fixed)
		es_conf_error_set(err, "%s: %s cannot change while the daemon runs; restart it", conf->path,
				  fixed);
	else if (self != d->cluster->self)
		es_conf_error_set(
			err, "%s: this node's place in the list of nodes cannot change while the daemon runs",
			conf->path);
	else if (keys->ring.k0 != d->keys.ring.k0 || keys->ring.k1 != d->keys.ring.k1)
		es_conf_error_set(
			err, "%s: another ring secret would move every connection; stop the cluster for it",
			conf->cluster.key_file);
	else
		return 0;
	return -EINVAL;
}

int es_daemon_reload(struct es_daemon *d, struct es_conf_error *err)
{
	struct es_cluster *next = NULL, *old = d->cluster;
	struct es_plugins *plugins = NULL;
	struct es_conf *conf = NULL;
	struct es_content_set content = {};
	struct es_table_set tables = {};
	struct es_network network;
	unsigned int self = 0;
	struct es_keys keys;
	int rc;

	rc = es_daemon_load(&d->options, &keys, &conf, &self, err);
	if (rc)
		return rc;
	rc = es_daemon_reload_check(d, conf, self, &keys, err);
	if (!rc)
		rc = es_daemon_next_cluster(d, conf, self, &next, err);
	if (!rc)
		rc = es_plugins_new(conf, ES_PLUGINS_MISSING_FAILS, &plugins, err);
	if (!rc)
		rc = es_network_read(conf, &network, err);
	if (!rc)
		rc = es_network_prepare(conf, err);
	if (!rc)
		rc = es_daemon_targets_prepare(d->targets, conf, &tables);
	if (!rc)
		rc = es_content_set_init(&content, &d->content, conf, &keys.ring, err);
	if (rc)
		goto err_free;
	es_table_set_fill(d->targets, &tables, next);
	next->plugins = plugins;
	es_content_set_fill(&content, next);
	d->network = network;
	/* Workers first: they must know a service before its requests come. */
	es_daemon_set_workers(d, next, &keys);
	rc = es_daemon_configure(d, next, &keys);
	if (rc) {
		es_daemon_set_workers(d, old, &d->keys);
		es_conf_error_set(err, "datapath: writing its configuration: %s", strerror(-rc));
		goto err_free;
	}
	es_daemon_targets_commit(d->targets, &tables);
	es_content_set_fini(&d->content);
	d->content = content;
	d->cluster = next;
	d->keys = keys;
	es_cluster_free(&old);
	/* No worker has them any more. */
	es_plugins_free(&d->plugins);
	es_conf_free(&d->conf);
	d->conf = conf;
	d->plugins = plugins;
	es_daemon_plugins_watch(d);
	es_observed_reset(d);
	es_daemon_load_rebind(d);
	if (d->membership)
		es_membership_reloaded(d->membership);
	es_daemon_warn_addresses(conf);
	es_log(ES_LOG_INFO, "reloaded %s: %u nodes, %u services, epoch %u", conf->path, conf->node_count,
	       conf->service_count, next->epoch);
	return 0;

err_free:
	es_daemon_targets_discard(d->targets, &tables);
	es_plugins_free(&plugins);
	es_content_set_fini(&content);
	es_cluster_free(&next);
	es_conf_free(&conf);
	es_keys_wipe(&keys);
	return rc;
}
