// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * With static membership, tells the other nodes of the server sets that change here, and hears theirs. What is lost
 * is told again when a connection moves on account of it.
 */
#include "inspector/base/clock.h"
#include "inspector/daemon/daemon.h"

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

void es_daemon_home_tell(void *daemon, __u32 tag, const struct es_content_word *word)
{
	struct es_daemon *d = daemon;
	struct es_home_wire wire = {
		.content = (__be64)es_cpu_be64(word->content),
		.stamp = (__be64)es_cpu_be64(word->stamp),
		.nodes = {(__be64)es_cpu_be64(word->nodes.bits[0]), (__be64)es_cpu_be64(word->nodes.bits[1])},
		.tag = es_htonl(tag),
		.by = es_htonl(word->by),
	};

	if (d->membership || !es_homes_may_tell(&d->homes, d->conf->node_count, es_clock_now_ns()))
		return;
	es_load_exchange_tell(&d->exchange.way, d->cluster, &d->keys, d->health.understands, &wire);
}

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
