// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tells the datapath a version of the cluster, with its configuration, the keys and this machine's network,
 * as the one structure that tc programs and module read (kmod/core/abi.h).
 */
#include <string.h>
#include "inspector/daemon/exchange.h"
#include "inspector/daemon/internal.h"
#include "inspector/daemon/packet_max.h"
#include "inspector/inspect/route.h"
#include "kmod/core/cookie.h"

/* Ten full segments: what a client sends before it hears an ACK (RFC 6928), and no more than the inspector
 * keeps. */
static unsigned int es_synack_window(unsigned int mss)
{
	unsigned int window = 10 * mss;

	return window > 65535 ? 65535 : window;
}

static void es_config_fill(const struct es_daemon *d, const struct es_cluster *cluster,
			   const struct es_keys *keys, struct es_config *ret)
{
	const struct es_conf *conf = cluster->conf;
	unsigned int mss = es_network_mss(d->packet_max->in_force);

	memset(ret, 0, sizeof(*ret));
	ret->abi = ES_ABI_VERSION;
	ret->epoch = cluster->epoch;
	ret->self = cluster->self;
	ret->ring_key = keys->ring;
	for (unsigned int i = 0; i < keys->count; i++) {
		ret->cookie_key[i] = keys->key[i].cookie;
		ret->handover_key[i] = keys->key[i].handover;
	}
	ret->key_count = (__u16)keys->count;
	ret->ring_seed = keys->ring_seed;
	ret->slot_s = conf->datapath.cookie_lifetime_s / ES_COOKIE_SLOTS_VALID;
	ret->synack_window = es_synack_window(mss);
	ret->decision_sets = d->datapath_params.decision_sets;
	ret->workers = d->datapath_params.workers;
	ret->race_window_ms = conf->inspector.race_window_ms;
	ret->fallback_after_ms = conf->datapath.fallback_after_ms;
	ret->public_ifindex = d->network.public_ifindex;
	ret->cluster_ifindex = d->network.cluster_ifindex;
	ret->mss = (__u16)mss;
	ret->handover_port = es_htons(conf->cluster.handover_port);
	ret->rcv_wscale = (__u8)conf->datapath.receive_window_scale;
	ret->offer_wscale = (__u8)d->network.wscale;
	ret->offer_sack = (__u8)d->network.sack;
	ret->offer_ts = (__u8)d->network.timestamps;
	ret->offer_ecn = (__u8)d->network.ecn;
	ret->requires_time = (__u8)d->exchange->requires_time;
	ret->leased = conf->cluster.membership == ES_CONF_MEMBERSHIP_COROSYNC;
	memcpy(ret->cluster_mac, conf->datapath.cluster_mac, sizeof(ret->cluster_mac));
	memcpy(ret->public_mac, d->network.public_mac, sizeof(ret->public_mac));
	ret->self_address = conf->nodes[cluster->self].address;
	ret->service_count = conf->service_count;
	for (unsigned int i = 0; i < conf->service_count; i++) {
		int is_layer4 = es_route_is_layer4(cluster, i);

		ret->service[i].address = conf->services[i].address;
		ret->service[i].address6 = conf->services[i].address6;
		ret->service[i].port = es_htons(conf->services[i].port);
		ret->service[i].inspect = (__u8)(is_layer4 ? ES_INSPECT_NEVER : conf->services[i].inspect);
		/* A backup node has none of its own. */
		ret->service[i].gives =
			(__u8)(is_layer4 && (es_conf_has_source_rule(conf, i) ||
					     es_conf_has_backup(&conf->services[i], cluster->self)));
		ret->service[i].unsafe = (__u8)conf->services[i].unsafe;
		ret->service[i].survives = conf->services[i].survive && ret->leased;
		ret->reads_replies |= ret->service[i].inspect == ES_INSPECT_EVERY;
		ret->service[i].server = conf->services[i].server_address;
		ret->service[i].server6 = conf->services[i].server_address6;
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
