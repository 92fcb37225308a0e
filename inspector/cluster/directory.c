// SPDX-License-Identifier: GPL-2.0-or-later
/* The table of other nodes' idle connections: chains by flow, and one list by age. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/cluster/directory.h"

#define NONE 0xffffffffU

/**
 * struct record
 * @since_ns: when it was told first with these numbers; @told_ns: last
 * @orphan_ns: since when its node is lost, with its lease; 0: it is not. @is_settled: see struct es_kept_look
 * @passed_epoch: of the last ring whose nodes were told of it
 * @next: in its chain, or of the free ones; @older, @newer: in the list by age
 */
struct record {
	__u64 flow_hash;
	unsigned long long since_ns;
	unsigned long long told_ns;
	unsigned long long orphan_ns;
	unsigned int passed_epoch;
	int is_settled;
	struct es_kept kept;
	uint32_t next;
	uint32_t older;
	uint32_t newer;
};

struct es_directory {
	pthread_mutex_t lock;
	struct es_directory_figures figures;
	uint32_t room;
	uint32_t chains;
	uint32_t free;
	uint32_t unused; /* from this one on none was ever taken */
	uint32_t oldest;
	uint32_t newest;
	uint32_t *chain;
	struct record *record;
	struct es_kept_slot *slots;
};

int es_directory_new(unsigned int entries, struct es_directory **ret_directory)
{
	struct es_directory *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	pthread_mutex_init(&d->lock, NULL);
	d->room = entries;
	for (d->chains = 1; d->chains < entries;)
		d->chains *= 2;
	d->chain = malloc(d->chains * sizeof(*d->chain));
	d->record = calloc(entries, sizeof(*d->record));
	if (!d->chain || !d->record) {
		es_directory_free(&d);
		return -ENOMEM;
	}
	es_directory_clear(d);
	*ret_directory = d;
	return 0;
}

void es_directory_free(struct es_directory **directory)
{
	if (!*directory)
		return;
	pthread_mutex_destroy(&(*directory)->lock);
	free((*directory)->chain);
	free((*directory)->record);
	free(*directory);
	*directory = NULL;
}

void es_directory_watch(struct es_directory *d, struct es_kept_slot *slots)
{
	d->slots = slots;
}

/* The datapath's slot of a flow, NULL if it has none, or another one's. */
static struct es_kept_slot *slot_of(const struct es_directory *d, __u64 flow_hash)
{
	struct es_kept_slot *slot = d->slots ? &d->slots[es_kept_index(flow_hash)] : NULL;

	return slot && slot->flow_hash == flow_hash ? slot : NULL;
}

static void slot_clear(const struct es_directory *d, __u64 flow_hash)
{
	struct es_kept_slot *slot = slot_of(d, flow_hash);

	if (slot)
		*slot = (struct es_kept_slot){};
}

static uint32_t *chain_of(struct es_directory *d, __u64 flow_hash)
{
	return &d->chain[flow_hash & (d->chains - 1)];
}

static uint32_t find(struct es_directory *d, __u64 flow_hash)
{
	uint32_t at = *chain_of(d, flow_hash);

	while (at != NONE && d->record[at].flow_hash != flow_hash)
		at = d->record[at].next;
	return at;
}

static void list_remove(struct es_directory *d, const struct record *r)
{
	*(r->older == NONE ? &d->oldest : &d->record[r->older].newer) = r->newer;
	*(r->newer == NONE ? &d->newest : &d->record[r->newer].older) = r->older;
}

static void list_add(struct es_directory *d, uint32_t at)
{
	struct record *r = &d->record[at];

	r->older = d->newest;
	r->newer = NONE;
	*(d->newest == NONE ? &d->oldest : &d->record[d->newest].newer) = at;
	d->newest = at;
}

static void record_drop(struct es_directory *d, uint32_t at)
{
	struct record *r = &d->record[at];
	uint32_t *link = chain_of(d, r->flow_hash);

	while (*link != at)
		link = &d->record[*link].next;
	*link = r->next;
	list_remove(d, r);
	d->figures.entries--;
	d->figures.of[r->kept.owner]--;
	r->next = d->free;
	d->free = at;
}

static void drop(struct es_directory *d, uint32_t at)
{
	slot_clear(d, d->record[at].flow_hash);
	record_drop(d, at);
}

static uint32_t take_free(struct es_directory *d)
{
	uint32_t at = d->free;

	if (at != NONE) {
		d->free = d->record[at].next;
		return at;
	}
	if (d->unused < d->room)
		return d->unused++;
	d->figures.dropped++;
	drop(d, d->oldest);
	return take_free(d);
}

static struct record *record_add(struct es_directory *d, __u64 flow_hash, const struct es_kept *kept,
				 unsigned long long now_ns)
{
	uint32_t at = take_free(d);
	struct record *r = &d->record[at];

	*r = (struct record){
		.flow_hash = flow_hash,
		.since_ns = now_ns,
		.told_ns = now_ns,
		.kept = *kept,
		.next = *chain_of(d, flow_hash),
	};
	*chain_of(d, flow_hash) = at;
	list_add(d, at);
	d->figures.entries++;
	d->figures.of[kept->owner]++;
	d->figures.told++;
	return r;
}

/* Told again, it is watched as before: a request that was heard was. */
static void slot_put(const struct es_directory *d, const struct record *r, int is_again)
{
	struct es_kept_slot *slot = slot_of(d, r->flow_hash);

	if (!d->slots)
		return;
	if (slot && is_again)
		slot->is_orphan = 0;
	else
		d->slots[es_kept_index(r->flow_hash)] = (struct es_kept_slot){
			.flow_hash = r->flow_hash,
			.seq = r->kept.seq,
			.is_heard = (__u8)is_again,
		};
}

void es_directory_keep(struct es_directory *d, __u64 flow_hash, const struct es_kept *kept,
		       unsigned long long now_ns)
{
	unsigned long long since_ns = now_ns;
	struct record *r;
	uint32_t at;
	int is_again;

	if (kept->owner >= ES_NODES_MAX)
		return;
	pthread_mutex_lock(&d->lock);
	at = find(d, flow_hash);
	is_again = at != NONE && d->record[at].kept.owner == kept->owner &&
		   d->record[at].kept.seq == kept->seq && d->record[at].kept.ack == kept->ack;
	if (is_again)
		since_ns = d->record[at].since_ns;
	if (at != NONE)
		record_drop(d, at);
	r = record_add(d, flow_hash, kept, now_ns);
	r->since_ns = since_ns;
	slot_put(d, r, is_again);
	pthread_mutex_unlock(&d->lock);
}

void es_directory_forget(struct es_directory *d, __u64 flow_hash, unsigned int owner)
{
	uint32_t at;

	pthread_mutex_lock(&d->lock);
	at = find(d, flow_hash);
	if (at != NONE && d->record[at].kept.owner == owner) {
		drop(d, at);
		d->figures.forgotten++;
	}
	pthread_mutex_unlock(&d->lock);
}

static uint32_t find_exact(struct es_directory *d, __u64 flow_hash, __u32 seq, __u32 ack)
{
	uint32_t at = find(d, flow_hash);

	return at != NONE && d->record[at].kept.seq == seq && d->record[at].kept.ack == ack ? at : NONE;
}

int es_directory_find(struct es_directory *d, __u64 flow_hash, __u32 seq, __u32 ack, struct es_kept *ret_kept,
		      unsigned long long *ret_told_ns)
{
	uint32_t at;

	pthread_mutex_lock(&d->lock);
	at = find_exact(d, flow_hash, seq, ack);
	if (at != NONE) {
		*ret_kept = d->record[at].kept;
		*ret_told_ns = d->record[at].told_ns;
	}
	pthread_mutex_unlock(&d->lock);
	return at != NONE;
}

int es_directory_take(struct es_directory *d, __u64 flow_hash, __u32 seq, __u32 ack, struct es_kept *ret_kept)
{
	uint32_t at;

	pthread_mutex_lock(&d->lock);
	at = find_exact(d, flow_hash, seq, ack);
	if (at != NONE) {
		*ret_kept = d->record[at].kept;
		drop(d, at);
	}
	pthread_mutex_unlock(&d->lock);
	return at != NONE;
}

int es_directory_look(struct es_directory *d, __u64 flow_hash, struct es_kept_look *ret)
{
	const struct es_kept_slot *slot;
	uint32_t at;

	pthread_mutex_lock(&d->lock);
	at = find(d, flow_hash);
	if (at != NONE) {
		const struct record *r = &d->record[at];

		slot = slot_of(d, flow_hash);
		*ret = (struct es_kept_look){
			.kept = r->kept,
			.since_ns = r->since_ns,
			.told_ns = r->told_ns,
			.orphan_ns = r->orphan_ns,
			.is_settled = (uint8_t)r->is_settled,
			.is_unheard = slot && slot->seq == r->kept.seq && slot->is_orphan && !slot->is_heard,
		};
	}
	pthread_mutex_unlock(&d->lock);
	return at != NONE;
}

int es_directory_ask(struct es_directory *d, __u64 flow_hash)
{
	struct es_kept_slot *slot;

	pthread_mutex_lock(&d->lock);
	slot = slot_of(d, flow_hash);
	if (slot)
		__atomic_store_n(&slot->is_asked, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&d->lock);
	return slot != NULL;
}

void es_directory_unwatch(struct es_directory *d, __u64 flow_hash)
{
	pthread_mutex_lock(&d->lock);
	slot_clear(d, flow_hash);
	pthread_mutex_unlock(&d->lock);
}

void es_directory_adopt(struct es_directory *d, __u64 flow_hash, const struct es_kept *kept,
			unsigned long long now_ns)
{
	struct record *r;

	if (kept->owner >= ES_NODES_MAX)
		return;
	pthread_mutex_lock(&d->lock);
	/* Else its own node has told it, which is newer, or another keeper. */
	if (find(d, flow_hash) == NONE) {
		r = record_add(d, flow_hash, kept, now_ns);
		r->orphan_ns = now_ns;
		if (d->slots)
			d->slots[es_kept_index(flow_hash)] = (struct es_kept_slot){
				.flow_hash = flow_hash,
				.seq = kept->seq,
				.is_heard = 1, /* who knows */
				.is_orphan = 1,
			};
	}
	pthread_mutex_unlock(&d->lock);
}

unsigned int es_directory_pass_on(struct es_directory *d, unsigned int epoch, unsigned int most,
				  es_directory_pass_fn fn, void *ctx)
{
	unsigned int count = 0;

	pthread_mutex_lock(&d->lock);
	for (uint32_t at = d->oldest; at != NONE && count < most; at = d->record[at].newer) {
		struct record *r = &d->record[at];
		const struct es_kept_slot *slot = slot_of(d, r->flow_hash);

		if (!r->orphan_ns || r->passed_epoch == epoch)
			continue;
		r->passed_epoch = epoch;
		count++;
		/* One that was heard was taken by then. */
		if (!slot || !slot->is_heard)
			fn(ctx, r->flow_hash, &r->kept);
	}
	pthread_mutex_unlock(&d->lock);
	return count;
}

void es_directory_orphan(struct es_directory *d, const unsigned long long over_ns[ES_NODES_MAX],
			 const unsigned long long alive_ns[ES_NODES_MAX], unsigned long long now_ns)
{
	pthread_mutex_lock(&d->lock);
	for (uint32_t at = d->oldest; at != NONE; at = d->record[at].newer) {
		struct record *r = &d->record[at];
		struct es_kept_slot *slot = slot_of(d, r->flow_hash);

		if (r->orphan_ns || over_ns[r->kept.owner] <= r->told_ns)
			continue;
		r->orphan_ns = now_ns;
		r->is_settled = alive_ns[r->kept.owner] >= r->since_ns + ES_DIRECTORY_SETTLES_NS;
		if (slot)
			__atomic_store_n(&slot->is_orphan, 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&d->lock);
}

void es_directory_take_orphans(struct es_directory *d, es_directory_orphan_fn fn, void *ctx)
{
	pthread_mutex_lock(&d->lock);
	for (uint32_t at = d->oldest, newer; at != NONE; at = newer) {
		const struct record *r = &d->record[at];

		newer = r->newer;
		if (r->orphan_ns && fn(ctx, r->flow_hash, &r->kept, r->told_ns))
			drop(d, at);
	}
	pthread_mutex_unlock(&d->lock);
}

/* A record that was told before its node was lost is an orphan. */
static unsigned long long life_of(const struct record *r, const unsigned long long *lost_ns)
{
	return r->orphan_ns || lost_ns[r->kept.owner] > r->told_ns ? ES_DIRECTORY_ORPHAN_NS
								   : ES_DIRECTORY_LIFE_NS;
}

void es_directory_expire(struct es_directory *d, const unsigned long long lost_ns[ES_NODES_MAX],
			 unsigned long long now_ns)
{
	pthread_mutex_lock(&d->lock);
	for (uint32_t at = d->oldest, newer; at != NONE; at = newer) {
		struct record *r = &d->record[at];

		newer = r->newer;
		if (now_ns - r->told_ns < ES_DIRECTORY_LIFE_NS)
			break; /* all behind it are newer */
		if (now_ns - r->told_ns < life_of(r, lost_ns))
			continue;
		drop(d, at);
		d->figures.expired++;
	}
	pthread_mutex_unlock(&d->lock);
}

void es_directory_clear(struct es_directory *d)
{
	pthread_mutex_lock(&d->lock);
	for (uint32_t i = 0; i < d->chains; i++)
		d->chain[i] = NONE;
	if (d->slots)
		memset(d->slots, 0, ES_KEPT_SLOTS * sizeof(*d->slots));
	d->free = d->oldest = d->newest = NONE;
	d->unused = 0;
	d->figures.entries = 0;
	memset(d->figures.of, 0, sizeof(d->figures.of));
	pthread_mutex_unlock(&d->lock);
}

void es_directory_figures(struct es_directory *d, struct es_directory_figures *ret)
{
	pthread_mutex_lock(&d->lock);
	*ret = d->figures;
	ret->bytes = sizeof(*d) + d->chains * sizeof(*d->chain) + d->room * sizeof(*d->record);
	pthread_mutex_unlock(&d->lock);
}

void es_directory_list(struct es_directory *d, size_t limit, es_directory_fn fn, void *ctx)
{
	pthread_mutex_lock(&d->lock);
	for (uint32_t at = d->newest; at != NONE && limit; at = d->record[at].older, limit--)
		fn(ctx, &d->record[at].kept, d->record[at].told_ns);
	pthread_mutex_unlock(&d->lock);
}
