// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table of clients that have used some of what they may, and what of that the other nodes do not know
 * yet.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "inspector/rules/rates.h"

#define NS_PER_S   1000000000ULL
#define BEING_MADE 1 /* as a key: an entry between two clients */
#define COUNT_MAX  1000000U
#define AHEAD_NS   (86400 * NS_PER_S) /* what another node says moves nothing further than that */

/*
 * struct entry - @key: 0: free; @until_ns: when all that was admitted is used up; @unsaid: admitted here,
 * which nobody was told
 */
struct entry {
	_Atomic __u64 key;
	_Atomic unsigned long long until_ns;
	_Atomic unsigned long long increment_ns;
	_Atomic unsigned int unsaid;
};

/**
 * struct es_rates
 * @queue: entries, as their number and 1, that have something to say, each once; written from @written on,
 * read from @read on
 */
struct es_rates {
	struct es_sipkey key;
	_Atomic unsigned long long forgotten;
	_Atomic unsigned int written;
	unsigned int read;
	_Atomic unsigned int queue[ES_RATES_ENTRIES];
	struct entry entry[ES_RATES_ENTRIES];
};

int es_rates_new(const struct es_sipkey *key, struct es_rates **ret_rates)
{
	struct es_rates *rates = calloc(1, sizeof(*rates));

	if (!rates)
		return -ENOMEM;
	rates->key = *key;
	*ret_rates = rates;
	return 0;
}

void es_rates_free(struct es_rates **rates)
{
	free(*rates);
	*rates = NULL;
}

static __u64 key_of(const struct es_rates *rates, const struct es_rate_limit *limit,
		    const struct es_addr *client)
{
	int is_v4 = es_addr_is_v4(client);
	struct es_sipstate sip;
	__u64 key;

	es_siphash_init(&sip, &rates->key);
	es_siphash_word(&sip, limit->rule);
	es_siphash_word(&sip, (__u64)es_ntohl(client->w[0]) << 32 | es_ntohl(client->w[1]));
	es_siphash_word(&sip, is_v4 ? (__u64)es_ntohl(client->w[2]) << 32 | es_ntohl(client->w[3]) : 0);
	key = es_siphash_final(&sip, 0, 24);
	return key > BEING_MADE ? key : key + 2;
}

static struct entry *find(struct es_rates *rates, __u64 key)
{
	struct entry *set = &rates->entry[key % ES_RATES_SETS * ES_RATES_WAYS];

	for (unsigned int i = 0; i < ES_RATES_WAYS; i++)
		if (atomic_load_explicit(&set[i].key, memory_order_acquire) == key)
			return &set[i];
	return NULL;
}

/* The client that has used least of its rate makes room, unless that is not told yet. NULL: nobody can. */
static struct entry *make(struct es_rates *rates, __u64 key, unsigned long long increment_ns,
			  unsigned long long now_ns)
{
	struct entry *set = &rates->entry[key % ES_RATES_SETS * ES_RATES_WAYS], *least = NULL;
	unsigned long long until_ns;
	__u64 before;

	for (unsigned int i = 0; i < ES_RATES_WAYS; i++)
		if (atomic_load(&set[i].key) != BEING_MADE && !atomic_load(&set[i].unsaid) &&
		    (!least || atomic_load(&set[i].until_ns) < atomic_load(&least->until_ns)))
			least = &set[i];
	if (!least)
		return NULL;
	before = atomic_load(&least->key);
	if (before == BEING_MADE || !atomic_compare_exchange_strong(&least->key, &before, BEING_MADE))
		return NULL;
	until_ns = atomic_exchange(&least->until_ns, 0);
	if (before && until_ns > now_ns)
		atomic_fetch_add_explicit(&rates->forgotten, 1, memory_order_relaxed);
	atomic_store(&least->increment_ns, increment_ns);
	atomic_store_explicit(&least->key, key, memory_order_release);
	return least;
}

/* How long after @now_ns the client has one; 0: it has. */
static unsigned long long wait_ns(const struct es_rate_limit *limit, unsigned long long until_ns,
				  unsigned long long now_ns)
{
	unsigned long long may_ns = now_ns + (limit->burst - 1) * limit->increment_ns;

	return until_ns > may_ns ? until_ns - may_ns : 0;
}

static int refuse(unsigned long long left_ns, unsigned int *ret_after_s)
{
	*ret_after_s = (unsigned int)((left_ns + NS_PER_S - 1) / NS_PER_S);
	return 1;
}

int es_rates_is_over(struct es_rates *rates, const struct es_rate_limit *limit, const struct es_addr *client,
		     unsigned long long now_ns, unsigned int *ret_after_s)
{
	struct entry *entry = find(rates, key_of(rates, limit, client));
	unsigned long long left_ns = entry ? wait_ns(limit, atomic_load(&entry->until_ns), now_ns) : 0;

	return left_ns ? refuse(left_ns, ret_after_s) : 0;
}

static void use(struct entry *entry, unsigned long long until_ns, unsigned long long now_ns,
		unsigned long long more_ns)
{
	while (!atomic_compare_exchange_weak(&entry->until_ns, &until_ns,
					     (until_ns > now_ns ? until_ns : now_ns) + more_ns))
		;
}

/* It is in the queue as long as it has something to say, so that never overflows. */
static void say(struct es_rates *rates, struct entry *entry)
{
	unsigned int at;

	if (atomic_fetch_add(&entry->unsaid, 1))
		return;
	at = atomic_fetch_add(&rates->written, 1);
	atomic_store(&rates->queue[at % ES_RATES_ENTRIES], (unsigned int)(entry - rates->entry) + 1);
}

int es_rates_take(struct es_rates *rates, const struct es_rate_limit *limit, const struct es_addr *client,
		  unsigned long long now_ns, unsigned int *ret_after_s)
{
	__u64 key = key_of(rates, limit, client);
	struct entry *entry = find(rates, key);
	unsigned long long until_ns, left_ns;

	if (!entry)
		entry = make(rates, key, limit->increment_ns, now_ns);
	if (!entry)
		return 0;
	until_ns = atomic_load(&entry->until_ns);
	do {
		left_ns = wait_ns(limit, until_ns, now_ns);
		if (left_ns)
			return refuse(left_ns, ret_after_s);
	} while (!atomic_compare_exchange_weak(
		&entry->until_ns, &until_ns, (until_ns > now_ns ? until_ns : now_ns) + limit->increment_ns));
	say(rates, entry);
	return 0;
}

void es_rates_heard(struct es_rates *rates, const struct es_rate_word *word, unsigned long long now_ns)
{
	unsigned long long count = word->count < COUNT_MAX ? word->count : COUNT_MAX, more_ns;
	struct entry *entry;

	if (word->key <= BEING_MADE || !count || !word->increment_ns || word->increment_ns > AHEAD_NS)
		return;
	entry = find(rates, word->key);
	if (!entry)
		entry = make(rates, word->key, word->increment_ns, now_ns);
	if (!entry)
		return;
	more_ns = count * word->increment_ns;
	use(entry, atomic_load(&entry->until_ns), now_ns, more_ns < AHEAD_NS ? more_ns : AHEAD_NS);
}

unsigned int es_rates_said(struct es_rates *rates, struct es_rate_word *ret_words, unsigned int max)
{
	unsigned int count = 0, number;

	while (count < max &&
	       (number = atomic_exchange(&rates->queue[rates->read % ES_RATES_ENTRIES], 0)) != 0) {
		struct entry *entry = &rates->entry[number - 1];

		rates->read++;
		/* An entry with something to tell keeps its place, so these are one client's. */
		ret_words[count].key = atomic_load(&entry->key);
		ret_words[count].increment_ns = atomic_load(&entry->increment_ns);
		ret_words[count++].count = atomic_exchange(&entry->unsaid, 0);
	}
	return count;
}

unsigned int es_rates_used(const struct es_rates *rates, unsigned long long now_ns,
			   unsigned long long *ret_forgotten)
{
	unsigned int used = 0;

	for (unsigned int i = 0; i < ES_RATES_ENTRIES; i++)
		used += atomic_load_explicit(&rates->entry[i].until_ns, memory_order_relaxed) > now_ns;
	*ret_forgotten = atomic_load_explicit(&rates->forgotten, memory_order_relaxed);
	return used;
}
