// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>
#include "inspector/daemon.h"

#define HTTP_OK 200

void es_observed_response(void *ctx, const struct es_response_entry *entry)
{
	struct es_daemon *d = ctx;

	/* 304, 206, 404 and their like say nothing of the content's length. */
	if (entry->status != HTTP_OK || !entry->content || entry->service >= d->conf->service_count)
		return;
	es_content_observed(d, entry->service, entry->content, entry->bytes);
}

void es_content_observed(struct es_daemon *d, unsigned int service, __u64 target, unsigned long long bytes)
{
	struct es_observed_mean *mean = &d->observed.mean[service];

	(void)target;
	mean->count++;
	mean->bytes += bytes;
}

void es_observed_reset(struct es_daemon *d)
{
	memset(&d->observed, 0, sizeof(d->observed));
}
