// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The inspector's life, and what it learns from outside: another version of the cluster, and where requests
 * have gone.
 */
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/inspect/internal.h"

int es_inspector_init(struct es_inspector *in, const struct es_worker_params *params,
		      const struct es_cluster *cluster)
{
	const struct es_conf_inspector *conf = &cluster->conf->inspector;
	int rc;

	memset(in, 0, sizeof(*in));
	in->params = params;
	in->cluster = cluster;
	in->keys = params->keys;
	in->decisions = params->decisions;
	in->decisions.since_ms = (uint32_t)(es_clock_now_ns() / 1000000);
	rc = es_raw_open(&in->raw);
	if (rc)
		return rc;
	rc = es_gather_table_new(conf->gather_flows, conf->gather_bytes, &in->gathers);
	if (!rc)
		rc = es_handover_sender_new(cluster, params->id, &params->keys.key[0].handover, &in->sender);
	if (!rc)
		rc = es_router_init(&in->router, cluster, params->health, params->route);
	if (!rc)
		rc = es_tally_new(cluster->conf, NULL, NULL, &in->tally);
	if (rc)
		es_inspector_fini(in);
	return rc;
}

void es_inspector_fini(struct es_inspector *in)
{
	es_inspect_strays_forget(in);
	es_inspect_beyond_forget(in);
	es_inspect_held_forget(in);
	es_router_fini(&in->router);
	es_handover_sender_free(&in->sender);
	es_gather_table_free(&in->gathers);
	es_tally_free(&in->tally);
	es_raw_close(&in->raw);
}

/* Without memory, the old table stays; it counts nothing for services and nodes that it does not have. */
static void es_inspector_renew_tally(struct es_inspector *in, const struct es_conf *conf)
{
	struct es_tally *next;

	es_tally_sent(in->tally);
	if (es_tally_new(conf, in->tally, in->cluster->conf, &next))
		return;
	es_tally_free(&in->tally);
	in->tally = next;
}

int es_inspector_set_cluster(struct es_inspector *in, const struct es_cluster *cluster,
			     const struct es_keys *keys)
{
	int rc;

	/* Nodes and services may have other numbers now. */
	if (cluster->conf != in->cluster->conf) {
		es_inspect_strays_forget(in);
		es_inspect_fates_forget(in);
		es_inspect_beyond_forget(in);
		es_inspect_held_forget(in);
		es_inspect_layer4_forget(in);
		es_inspector_renew_tally(in, cluster->conf);
		in->conf_version++;
	}
	in->cluster = cluster;
	in->version++;
	in->keys = *keys;
	rc = es_router_set_cluster(&in->router, cluster);
	return rc ? rc : es_handover_sender_set(in->sender, cluster, &keys->key[0].handover);
}

void es_inspector_learn(struct es_inspector *in, const struct es_proof *proofs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		es_decision_table_put(&in->decisions, proofs[i].flow_hash, proofs[i].cookie,
				      proofs[i].first_seq - 1, (__u8)proofs[i].node, NULL,
				      es_inspect_now_ms(in));
}
