// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Collects the measured lengths of responses from the datapath, sends them to the other nodes, and puts what
 * they send into the URL tables.
 */
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/daemon/daemon.h"
#include "membership/number.h"

#define HTTP_OK	   200
#define TAG_SIZE   4
#define ENTRY_SIZE 16

void es_observed_response(void *ctx, const struct es_response_entry *entry)
{
	struct es_daemon *d = ctx;
	struct es_daemon_observed *o = &d->observed;
	__u8 *at;

	if (entry->service >= d->conf->service_count)
		return;
	es_responses_add(&o->of[entry->service].responses, entry->status, entry->bytes, entry->took_ns);
	es_daemon_outliers_took(&d->outliers, entry->service, entry->took_ns);
	if (entry->took_ns) {
		es_durations_lately_add(&o->lately, entry->took_ns, es_clock_now_ns());
		es_durations_lately_add(&o->of[entry->service].lately, entry->took_ns, es_clock_now_ns());
	}
	/* 304, 206, 404 and their like say nothing of the content's length. */
	if (entry->status != HTTP_OK || !entry->content || (entry->request_flags & ES_REQUEST_F_STATUS))
		return;
	o->mean[entry->service].count++;
	o->mean[entry->service].bytes += entry->bytes;
	if (o->count == ES_OBSERVED_MAX || (o->count && o->service != entry->service))
		es_observed_flush(d);
	o->service = entry->service;
	at = o->payload + TAG_SIZE + o->count++ * ENTRY_SIZE;
	es_put64(at, entry->content);
	es_put64(at + 8, entry->bytes);
}

void es_observed_read(struct es_daemon *d)
{
	es_datapath_responses(d->datapath, es_observed_response, d);
}

void es_observed_flush(struct es_daemon *d)
{
	struct es_daemon_observed *o = &d->observed;
	size_t len = TAG_SIZE + o->count * ENTRY_SIZE;

	if (!o->count)
		return;
	es_put32(o->payload, es_content_sync_tag(d->conf->services[o->service].name));
	if (d->membership)
		es_membership_send(d->membership, ES_WIRE_SIZES, o->payload, len);
	else
		es_observed_message(d, o->payload, len);
	o->count = 0;
}

void es_observed_reset(struct es_daemon *d)
{
	const struct es_daemon_observed before = d->observed;
	struct es_daemon_observed *o = &d->observed;

	memset(o, 0, sizeof(*o));
	o->lately = before.lately;
	for (unsigned int i = 0; i < d->conf->service_count; i++) {
		memcpy(o->of[i].name, d->conf->services[i].name, sizeof(o->of[i].name));
		for (unsigned int k = 0; k < ES_CONF_SERVICES_MAX; k++)
			if (!strcmp(o->of[i].name, before.of[k].name))
				o->of[i] = before.of[k];
	}
}

void es_observed_message(struct es_daemon *d, const void *payload, size_t len)
{
	const __u8 *at = payload;
	struct es_url_table *table = NULL;

	if (len < TAG_SIZE)
		return;
	for (unsigned int i = 0; i < d->conf->service_count; i++)
		if (es_content_sync_tag(d->conf->services[i].name) == es_get32(payload))
			table = d->cluster->urls[i];
	for (at += TAG_SIZE, len -= TAG_SIZE; table && len >= ENTRY_SIZE; at += ENTRY_SIZE, len -= ENTRY_SIZE)
		(void)es_url_observe_key(table, es_get64(at), es_get64(at + 8));
}
