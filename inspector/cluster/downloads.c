// SPDX-License-Identifier: GPL-2.0-or-later
/* The table of long responses: few, so that looking at all their hashes is short. The oldest is the first. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/cluster/downloads.h"

struct es_downloads {
	unsigned int room;
	unsigned int count;
	__u64 *flow_hash;
	struct es_download_kept **kept;
};

int es_downloads_new(unsigned int entries, struct es_downloads **ret_downloads)
{
	struct es_downloads *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->room = entries;
	d->flow_hash = calloc(entries, sizeof(*d->flow_hash));
	d->kept = calloc(entries, sizeof(struct es_download_kept *));
	if (!d->flow_hash || !d->kept) {
		es_downloads_free(&d);
		return -ENOMEM;
	}
	*ret_downloads = d;
	return 0;
}

void es_downloads_free(struct es_downloads **downloads)
{
	if (!*downloads)
		return;
	es_downloads_clear(*downloads);
	free((*downloads)->flow_hash);
	free((*downloads)->kept);
	free(*downloads);
	*downloads = NULL;
}

static void drop_at(struct es_downloads *d, unsigned int at)
{
	size_t behind = --d->count - at;

	free(d->kept[at]);
	memmove(&d->kept[at], &d->kept[at + 1], behind * sizeof(struct es_download_kept *));
	memmove(&d->flow_hash[at], &d->flow_hash[at + 1], behind * sizeof(*d->flow_hash));
}

/* @d->count if it is not there. */
static unsigned int place_of(const struct es_downloads *d, __u64 flow_hash)
{
	unsigned int at = 0;

	while (at < d->count && d->flow_hash[at] != flow_hash)
		at++;
	return at;
}

struct es_download_kept *es_downloads_keep(struct es_downloads *d, __u64 flow_hash,
					   const struct es_download *download, unsigned long long now_ns)
{
	struct es_download_kept *kept = calloc(1, sizeof(*kept));
	unsigned int at = place_of(d, flow_hash);

	if (!kept)
		return NULL;
	if (at < d->count)
		drop_at(d, at);
	else if (d->count == d->room)
		drop_at(d, 0);
	kept->download = *download;
	kept->flow_hash = flow_hash;
	kept->told_ns = now_ns;
	kept->keeper[0] = kept->keeper[1] = ES_NODE_NONE;
	d->flow_hash[d->count] = flow_hash;
	d->kept[d->count++] = kept;
	return kept;
}

struct es_download_kept *es_downloads_find(struct es_downloads *d, __u64 flow_hash)
{
	unsigned int at = place_of(d, flow_hash);

	return at < d->count ? d->kept[at] : NULL;
}

void es_downloads_drop(struct es_downloads *d, struct es_download_kept *kept)
{
	drop_at(d, place_of(d, kept->flow_hash));
}

void es_downloads_clear(struct es_downloads *d)
{
	while (d->count)
		drop_at(d, d->count - 1);
}

struct es_download_kept *es_downloads_each(struct es_downloads *d, const struct es_download_kept *kept)
{
	unsigned int at = kept ? place_of(d, kept->flow_hash) + 1 : 0;

	return at < d->count ? d->kept[at] : NULL;
}

unsigned int es_downloads_count(const struct es_downloads *d, size_t *ret_bytes)
{
	*ret_bytes = d ? d->count * sizeof(struct es_download_kept) : 0;
	return d ? d->count : 0;
}
