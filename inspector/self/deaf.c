// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whether this node is deaf, from what arrived and what should have.
 */
#include "inspector/self/deaf.h"

void es_deaf_begin(struct es_deaf *d, uint64_t clients, uint64_t now_ms)
{
	*d = (struct es_deaf){
		.clients = clients,
		.heard_ms = now_ms,
		.mac_ms = now_ms - ES_DEAF_AFTER_MS,
		.others_ms = now_ms,
		.looked_ms = now_ms,
		.is_met = 1,
		.kind = ES_DEAF_MAC,
	};
}

static int is_deaf_to_all(struct es_deaf *d, const struct es_deaf_signs *signs, uint64_t now_ms)
{
	if (signs->any != d->any || (!signs->has_others && d->kind == ES_DEAF_NOT))
		d->heard_ms = now_ms;
	d->any = signs->any;
	return now_ms - d->heard_ms >= ES_DEAF_AFTER_MS;
}

static int is_deaf_to_mac(struct es_deaf *d, const struct es_deaf_signs *signs, uint64_t now_ms)
{
	if (signs->others_are_there)
		d->others_ms = now_ms;
	if (signs->probe_ms != d->probe_ms) {
		d->is_met = 1;
		d->mac_ms = now_ms;
	} else if (signs->clients != d->clients) {
		d->mac_ms = now_ms;
		/*
		 * Clients are heard and those nodes are not: it is not for this node's port that they are
		 * missed.
		 */
		if (now_ms - signs->probe_ms >= ES_DEAF_AFTER_MS)
			d->is_met = 0;
	} else if (!signs->others_are_there && d->kind != ES_DEAF_MAC) {
		d->mac_ms = now_ms;
	}
	d->probe_ms = signs->probe_ms;
	d->clients = signs->clients;
	if (d->kind == ES_DEAF_MAC && now_ms - d->others_ms >= ES_DEAF_ALONE_MS)
		d->is_met = 0;
	return d->is_met && now_ms - d->mac_ms >= ES_DEAF_AFTER_MS;
}

enum es_deaf_kind es_deaf_look(struct es_deaf *d, const struct es_deaf_signs *signs, uint64_t now_ms)
{
	int all, mac;

	/* After a sleep, what was sent meanwhile is still to be counted. */
	if (now_ms - d->looked_ms >= ES_DEAF_AFTER_MS)
		d->heard_ms = d->mac_ms = d->others_ms = now_ms;
	d->looked_ms = now_ms;
	all = is_deaf_to_all(d, signs, now_ms);
	mac = is_deaf_to_mac(d, signs, now_ms);
	d->kind = all ? ES_DEAF_ALL : mac ? ES_DEAF_MAC : ES_DEAF_NOT;
	return d->kind;
}
