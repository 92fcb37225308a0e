// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A wish goes over the bus to the node that it is about, which keeps it and tells all what holds. So each
 * node tells of itself only, and a node that joins is told by everybody.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/base/event.h"
#include "inspector/base/wall.h"
#include "inspector/daemon/membership_internal.h"
#include "inspector/daemon/service_drains.h"
#include "inspector/daemon/serving.h"
#include "inspector/self/service_drains.h"

static const char *name_of(const struct es_daemon *d, unsigned int node)
{
	return d->conf->nodes[node].name;
}

static struct es_service_drains *drains_of(struct es_daemon *d, unsigned int node)
{
	struct es_daemon_service_drains *s = d->service_drains;

	if (!s->of[node])
		s->of[node] = calloc(1, sizeof(*s->of[node]));
	return s->of[node];
}

/* Puts a node's drains where workers, the datapath and people find them. */
static void publish(struct es_daemon *d, unsigned int node)
{
	const struct es_service_drains *drains = d->service_drains->of[node];
	char *text = d->service_drains->text[node], by[ES_BY_HAND_TEXT_SIZE];
	size_t size = sizeof(d->service_drains->text[0]);
	__u64 services = 0;

	text[0] = 0;
	for (unsigned int i = 0; i < d->conf->service_count; i++) {
		const struct es_service_drain *drain =
			es_service_drains_find(drains, d->conf->services[i].name);

		if (!drain)
			continue;
		services |= 1ULL << i;
		if (!text[0])
			snprintf(text, size, "service %s is drained%.90s", drain->service,
				 es_by_hand_text(&drain->by, by, sizeof(by)));
	}
	atomic_store_explicit(&d->health.drained[node], services, memory_order_relaxed);
	if (node == d->cluster->self)
		es_daemon_serving_given(d);
}

static void set_end(struct es_daemon *d, const struct es_service_drains *own)
{
	unsigned long long now_ms = es_membership_now_ms(), wall_ms = es_wall_ns() / 1000000;

	for (unsigned int i = 0; i < ES_CONF_SERVICES_MAX; i++)
		d->service_drains->end_ms[i] =
			i < own->count && own->drain[i].by.until_ms
				? now_ms + es_by_hand_left_ms(&own->drain[i].by, wall_ms) + 1
				: 0;
}

void es_daemon_service_drains_begin(struct es_daemon *d)
{
	struct es_service_drains *own = drains_of(d, d->cluster->self);
	int rc = own ? es_service_drains_read(d->service_drains->path, own) : -ENOMEM;

	if (rc)
		es_log(ES_LOG_WARNING,
		       "%s: cannot be read: %s; of which services this node was drained is not known",
		       d->service_drains->path, strerror(-rc));
	if (!own)
		return;
	d->service_drains->told = *own;
	set_end(d, own);
	publish(d, d->cluster->self);
	if (own->count)
		es_log(ES_LOG_WARNING,
		       "%s, as before this node started; earshot undrain --service gives it requests again",
		       d->service_drains->text[d->cluster->self]);
}

void es_daemon_service_drains_free(struct es_daemon *d)
{
	for (unsigned int i = 0; i < ES_NODES_MAX; i++) {
		free(d->service_drains->of[i]);
		d->service_drains->of[i] = NULL;
	}
}

void es_daemon_service_drains_rebind(struct es_daemon *d)
{
	for (unsigned int i = 0; i < d->conf->node_count; i++)
		publish(d, i);
}

void es_daemon_service_drains_view(struct es_daemon *d)
{
	static uint8_t buf[1 + ES_SERVICE_DRAINS_SIZE]; /* the control thread's */
	const struct es_service_drains *own = d->service_drains->of[d->cluster->self];

	/* The message names its node: those who hear it may not know yet whose process the sender is. */
	buf[0] = (uint8_t)d->cluster->self;
	if (own)
		es_bus_send(d->membership->bus, ES_WIRE_SERVICE_DRAINS, buf,
			    1 + es_service_drains_put(buf + 1, sizeof(buf) - 1, own));
}

void es_daemon_service_drains_wish(struct es_daemon *d, const void *payload, size_t len)
{
	struct es_service_drains *own = drains_of(d, d->cluster->self);
	struct es_service_drain drain;
	int rc;

	if (!own || es_service_drain_get(payload, len, &drain) || drain.by.node != d->cluster->self)
		return;
	if (es_service_drains_set(own, &drain) <= 0)
		return;
	set_end(d, own);
	rc = es_service_drains_write(d->service_drains->path, own);
	if (rc)
		es_log(ES_LOG_ERR,
		       "%s: cannot be written: %s; after a restart this node goes by what it was told before",
		       d->service_drains->path, strerror(-rc));
	es_daemon_service_drains_view(d);
}

/* Events for the drains that are new, and for those that are over. */
static void tell(struct es_daemon *d, unsigned int node, const struct es_service_drains *before,
		 const struct es_service_drains *now)
{
	char by[ES_BY_HAND_TEXT_SIZE];

	for (unsigned int i = 0; i < now->count; i++)
		if (!es_service_drains_find(before, now->drain[i].service))
			es_event(ES_EVENT_drain, ES_LOG_INFO, name_of(d, node),
				 "%s is drained of service %s%s", name_of(d, node), now->drain[i].service,
				 es_by_hand_text(&now->drain[i].by, by, sizeof(by)));
	for (unsigned int i = 0; i < before->count; i++)
		if (!es_service_drains_find(now, before->drain[i].service))
			es_event(ES_EVENT_undrain, ES_LOG_INFO, name_of(d, node),
				 "%s is not drained of service %s any more", name_of(d, node),
				 before->drain[i].service);
}

void es_daemon_service_drains_said(struct es_daemon *d, const void *payload, size_t len)
{
	static struct es_service_drains before; /* large; the control thread's */
	unsigned int node = len ? *(const uint8_t *)payload : ES_NODES_MAX;
	int is_self = node == d->cluster->self;
	struct es_service_drains *drains;

	if (node >= d->conf->node_count)
		return;
	drains = drains_of(d, node);
	if (!drains)
		return;
	before = is_self ? d->service_drains->told : *drains;
	if (es_service_drains_get((const uint8_t *)payload + 1, len - 1, drains)) {
		*drains = before;
		return;
	}
	tell(d, node, &before, drains);
	if (is_self)
		d->service_drains->told = *drains;
	publish(d, node);
}

void es_daemon_service_drains_tick(struct es_daemon *d)
{
	const struct es_service_drains *own = d->service_drains->of[d->cluster->self];
	uint8_t buf[ES_SERVICE_DRAIN_SIZE];

	/* A node that comes back tells its drains anew; one of the version before tells none. */
	for (unsigned int i = 0; i < d->conf->node_count; i++) {
		int is_member = d->membership->group.node[i].is_member;

		if (i != d->cluster->self && d->service_drains->was_member[i] && !is_member &&
		    d->service_drains->of[i]) {
			d->service_drains->of[i]->count = 0;
			publish(d, i);
		}
		d->service_drains->was_member[i] = (uint8_t)is_member;
	}
	for (unsigned int i = 0; own && i < own->count; i++) {
		struct es_service_drain over = own->drain[i];

		if (!d->service_drains->end_ms[i] || es_membership_now_ms() < d->service_drains->end_ms[i] ||
		    !es_group_is_in(&d->membership->group))
			continue;
		over.by.node = (uint16_t)d->cluster->self;
		over.by.value = ES_NODE_UP;
		es_daemon_service_drains_wish(d, buf, es_service_drain_put(buf, sizeof(buf), &over));
		return; /* the list is another one now */
	}
}

int es_daemon_service_drains_ask(struct es_daemon *d, const struct es_service_drain *drain)
{
	uint8_t buf[ES_SERVICE_DRAIN_SIZE];

	if (!es_group_is_in(&d->membership->group) || !d->membership->group.node[drain->by.node].is_member)
		return -ENOTCONN;
	es_bus_send(d->membership->bus, ES_WIRE_SERVICE_DRAIN, buf,
		    es_service_drain_put(buf, sizeof(buf), drain));
	return 0;
}
