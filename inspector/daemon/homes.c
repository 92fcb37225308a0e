// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Connects the content tables with the other nodes. With membership, the bus does that. Without it, each set
 * of servers that changes here goes to each node in a datagram; a set that is lost is told again when a
 * connection moves on account of it.
 */
#include "inspector/base/clock.h"
#include "inspector/daemon/contents.h"
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/exchange.h"
#include "inspector/daemon/homes.h"
#include "inspector/daemon/membership.h"
#include "inspector/daemon/route.h"
#include "inspector/peers/exchange.h"

int es_homes_may_tell(struct es_homes *homes, unsigned int node_count, unsigned long long now_ns)
{
	double rate = ES_HOMES_PER_S / (node_count > 2 ? node_count - 1 : 1);
	double most = rate / 10; /* at a time */

	homes->spare =
		homes->as_of_ns ? homes->spare + (double)(now_ns - homes->as_of_ns) / 1e9 * rate : most;
	homes->as_of_ns = now_ns;
	if (homes->spare > most)
		homes->spare = most;
	if (homes->spare < 1) {
		homes->untold++;
		return 0;
	}
	homes->spare--;
	return 1;
}

static void on_tell(void *daemon, __u32 tag, const struct es_content_word *word)
{
	struct es_daemon *d = daemon;
	struct es_home_wire wire = {
		.content = (__be64)es_cpu_be64(word->content),
		.stamp = (__be64)es_cpu_be64(word->stamp),
		.nodes = {(__be64)es_cpu_be64(word->nodes.bits[0]), (__be64)es_cpu_be64(word->nodes.bits[1])},
		.tag = es_htonl(tag),
		.by = es_htonl(word->by),
	};

	if (d->membership || !es_homes_may_tell(d->homes, d->conf->node_count, es_clock_now_ns()))
		return;
	es_load_exchange_tell(&d->exchange->way, d->cluster, &d->keys, d->health.understands, &wire);
}

static void on_content_send(void *ctx, enum es_wire_type type, const void *payload, size_t len)
{
	const struct es_daemon *d = ctx;

	es_membership_send(d->membership, type, payload, len);
}

static void on_content_given(void *ctx, unsigned int node)
{
	struct es_daemon *d = ctx;

	es_daemon_route_heard(d->route, node);
}

const struct es_content_sync_ops es_daemon_content_ops = {
	.send = on_content_send, .given = on_content_given, .tell = on_tell};

void es_daemon_home_heard(void *daemon, unsigned int node, const struct es_home_wire *wire)
{
	struct es_daemon *d = daemon;
	struct es_content_word word = {
		.content = es_cpu_be64((__u64)wire->content),
		.stamp = es_cpu_be64((__u64)wire->stamp),
		.nodes = {.bits = {es_cpu_be64((__u64)wire->nodes[0]), es_cpu_be64((__u64)wire->nodes[1])}},
		.by = es_ntohl(wire->by),
	};

	(void)node;
	if (d->membership || word.by >= d->conf->node_count)
		return;
	for (unsigned int i = d->conf->node_count; i < ES_NODES_MAX; i++)
		es_node_set_remove(&word.nodes, i);
	es_daemon_contents_heard(d->contents, es_ntohl(wire->tag), &word, es_clock_now_ns());
}
