// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Counts responses that the datapath has measured, collects the lengths of those that others should know, and
 * puts what they tell into the URL tables.
 */
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/cluster/content_sync.h"
#include "inspector/daemon/observed.h"
#include "inspector/urls/url_table.h"
#include "kmod/core/track.h"
#include "membership/number.h"

#define HTTP_OK	   200
#define TAG_SIZE   4
#define ENTRY_SIZE 16

void es_observed_response(void *observed, const struct es_response_entry *entry)
{
	struct es_daemon_observed *o = observed;
	__u8 *at;

	if (entry->service >= o->services)
		return;
	es_responses_add(&o->of[entry->service].responses, entry->status, entry->bytes, entry->took_ns);
	o->ops->took(o->ctx, entry->service, entry->took_ns);
	if (entry->took_ns) {
		es_durations_lately_add(&o->lately, entry->took_ns, es_clock_now_ns());
		es_durations_lately_add(&o->of[entry->service].lately, entry->took_ns, es_clock_now_ns());
	}
	/* Responses like 304, 206 and 404 do not tell the length of the content. */
	if (entry->status != HTTP_OK || !entry->url_key || (entry->request_flags & ES_REQUEST_F_STATUS))
		return;
	o->mean[entry->service].count++;
	o->mean[entry->service].bytes += entry->bytes;
	if (o->count == ES_OBSERVED_MAX || (o->count && o->service != entry->service))
		es_observed_flush(o);
	o->service = entry->service;
	at = o->payload + TAG_SIZE + o->count++ * ENTRY_SIZE;
	es_put64(at, entry->url_key);
	es_put64(at + 8, entry->bytes);
}

void es_observed_flush(struct es_daemon_observed *o)
{
	if (!o->count)
		return;
	es_put32(o->payload, es_content_sync_tag(o->of[o->service].name));
	o->ops->tell(o->ctx, o->payload, TAG_SIZE + o->count * ENTRY_SIZE);
	o->count = 0;
}

void es_observed_init(struct es_daemon_observed *o, const struct es_observed_ops *ops, void *ctx)
{
	*o = (struct es_daemon_observed){.ops = ops, .ctx = ctx};
}

void es_observed_rebind(struct es_daemon_observed *o, const struct es_conf *conf)
{
	const struct es_daemon_observed before = *o;

	es_observed_init(o, before.ops, before.ctx);
	o->services = conf->service_count;
	o->lately = before.lately;
	for (unsigned int i = 0; i < conf->service_count; i++) {
		memcpy(o->of[i].name, conf->services[i].name, sizeof(o->of[i].name));
		for (unsigned int k = 0; k < ES_CONF_SERVICES_MAX; k++)
			if (!strcmp(o->of[i].name, before.of[k].name))
				o->of[i] = before.of[k];
	}
}

void es_observed_message(const struct es_daemon_observed *o, struct es_url_table *const *urls,
			 const void *payload, size_t len)
{
	const __u8 *at = payload;
	struct es_url_table *table = NULL;

	if (len < TAG_SIZE)
		return;
	for (unsigned int i = 0; i < o->services; i++)
		if (es_content_sync_tag(o->of[i].name) == es_get32(payload))
			table = urls[i];
	for (at += TAG_SIZE, len -= TAG_SIZE; table && len >= ENTRY_SIZE; at += ENTRY_SIZE, len -= ENTRY_SIZE)
		(void)es_url_observe_key(table, es_get64(at), es_get64(at + 8));
}
