// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Remembers requests in a table of fixed size. The hash has a secret key, so nobody can choose whose place to
 * take.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include "netfilter/rebuild/copies.h"

#define ES_WAYS 4

/* @until_ns: 0: empty */
struct copy {
	__u64 flow_hash;
	__u64 until_ns;
	__u32 seq;
	__u32 ack;
};

struct es_nf_copies {
	struct es_sipkey key;
	size_t mask; /* for the number of a set */
	struct copy copies[];
};

int es_nf_copies_new(size_t room, struct es_nf_copies **ret_copies)
{
	struct es_nf_copies *c;
	size_t sets = 1;

	while (sets * ES_WAYS < room)
		sets *= 2;
	c = calloc(1, sizeof(*c) + sets * ES_WAYS * sizeof(c->copies[0]));
	if (!c)
		return -ENOMEM;
	c->mask = sets - 1;
	if (getrandom(&c->key, sizeof(c->key), 0) != sizeof(c->key)) {
		free(c);
		return -EIO;
	}
	*ret_copies = c;
	return 0;
}

void es_nf_copies_free(struct es_nf_copies **copies)
{
	free(*copies);
	*copies = NULL;
}

static struct copy *set_of(struct es_nf_copies *c, __u64 hash)
{
	return &c->copies[(hash & c->mask) * ES_WAYS];
}

static struct copy *find(struct es_nf_copies *c, __u64 hash)
{
	struct copy *set = set_of(c, hash);

	for (int i = 0; i < ES_WAYS; i++)
		if (set[i].until_ns && set[i].flow_hash == hash)
			return &set[i];
	return NULL;
}

int es_nf_copies_has(struct es_nf_copies *copies, const struct es_flow *flow, __u32 seq, __u32 ack,
		     __u64 now_ns)
{
	const struct copy *copy = find(copies, es_flow_hash(&copies->key, 0, flow));

	return copy && copy->seq == seq && copy->ack == ack && now_ns < copy->until_ns;
}

void es_nf_copies_add(struct es_nf_copies *copies, const struct es_flow *flow, __u32 seq, __u32 ack,
		      __u64 now_ns)
{
	__u64 hash = es_flow_hash(&copies->key, 0, flow);
	struct copy *set = set_of(copies, hash), *place = find(copies, hash);

	if (!place) {
		place = set;
		for (int i = 1; i < ES_WAYS; i++)
			if (set[i].until_ns < place->until_ns)
				place = &set[i];
	}
	*place = (struct copy){hash, now_ns + ES_NF_COPIES_NS, seq, ack};
}

void es_nf_copies_forget(struct es_nf_copies *copies, const struct es_flow *flow)
{
	struct copy *copy = find(copies, es_flow_hash(&copies->key, 0, flow));

	if (copy)
		copy->until_ns = 0;
}
