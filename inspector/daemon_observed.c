// SPDX-License-Identifier: GPL-2.0-or-later
#include <endian.h>
#include <string.h>
#include "inspector/daemon.h"

#define HTTP_OK	   200
#define TAG_SIZE   4
#define ENTRY_SIZE 16

static void put64(__u8 *at, __u64 value)
{
	value = htobe64(value);
	memcpy(at, &value, sizeof(value));
}

static __u64 get64(const __u8 *at)
{
	__u64 value;

	memcpy(&value, at, sizeof(value));
	return be64toh(value);
}

void es_observed_response(void *ctx, const struct es_response_entry *entry)
{
	struct es_daemon *d = ctx;
	struct es_daemon_observed *o = &d->observed;
	__u8 *at;

	/* 304, 206, 404 and their like say nothing of the content's length. */
	if (entry->status != HTTP_OK || !entry->content || entry->service >= d->conf->service_count)
		return;
	o->mean[entry->service].count++;
	o->mean[entry->service].bytes += entry->bytes;
	if (o->count == ES_OBSERVED_MAX || (o->count && o->service != entry->service))
		es_observed_flush(d);
	o->service = entry->service;
	at = o->payload + TAG_SIZE + o->count++ * ENTRY_SIZE;
	put64(at, entry->content);
	put64(at + 8, entry->bytes);
}

void es_observed_flush(struct es_daemon *d)
{
	struct es_daemon_observed *o = &d->observed;
	size_t len = TAG_SIZE + o->count * ENTRY_SIZE;
	__u32 tag;

	if (!o->count)
		return;
	tag = htobe32(es_target_sync_tag(d->conf->services[o->service].name));
	memcpy(o->payload, &tag, sizeof(tag));
	if (d->membership)
		es_membership_sync_ops.send(d, ES_WIRE_SIZES, o->payload, len);
	else
		es_observed_message(d, o->payload, len);
	o->count = 0;
}

void es_observed_reset(struct es_daemon *d)
{
	memset(&d->observed, 0, sizeof(d->observed));
}

void es_observed_message(struct es_daemon *d, const void *payload, size_t len)
{
	const __u8 *at = payload;
	struct es_url_table *table = NULL;
	__u32 tag;

	if (len < TAG_SIZE)
		return;
	memcpy(&tag, at, sizeof(tag));
	for (unsigned int i = 0; i < d->conf->service_count; i++)
		if (es_target_sync_tag(d->conf->services[i].name) == be32toh(tag))
			table = d->cluster->urls[i];
	for (at += TAG_SIZE, len -= TAG_SIZE; table && len >= ENTRY_SIZE; at += ENTRY_SIZE, len -= ENTRY_SIZE)
		(void)es_url_observe_key(table, get64(at), get64(at + 8));
}
