// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The decision that a node is mute, from what the nodes' frames on the public network say; and what this
 * node's own frames say. Sending and receiving is public_link.c.
 */
#include <errno.h>
#include <string.h>
#include "membership/hearing.h"

static int word_has(const struct es_hearing_word *word, unsigned int node)
{
	return (int)(word->hears[node / 64] >> node % 64 & 1);
}

void es_hearing_init(struct es_hearing *h, unsigned int self, unsigned int count)
{
	memset(h, 0, sizeof(*h));
	h->self = self;
	h->count = count;
}

void es_hearing_set_count(struct es_hearing *h, unsigned int count)
{
	if (count < h->count)
		memset(&h->peer[count], 0, (h->count - count) * sizeof(h->peer[0]));
	h->count = count;
}

void es_hearing_heard(struct es_hearing *h, unsigned int from, const struct es_hearing_word *word,
		      uint64_t now_ms)
{
	struct es_hearing_peer *peer = &h->peer[from];

	peer->heard_ms = now_ms;
	peer->word = *word;
	if (word_has(word, h->self))
		peer->has_heard_us = 1;
}

int es_hearing_hears(const struct es_hearing *h, unsigned int node, uint64_t now_ms)
{
	uint64_t heard_ms = h->peer[node].heard_ms;

	return node != h->self && heard_ms && now_ms - heard_ms < ES_HEARING_LOST_MS;
}

int es_hearing_is_heard_by(const struct es_hearing *h, unsigned int node, uint64_t now_ms)
{
	return es_hearing_hears(h, node, now_ms) && word_has(&h->peer[node].word, h->self);
}

static int is_steady(const struct es_hearing *h, uint64_t now_ms)
{
	return h->sent_ms && now_ms - h->sent_ms <= ES_HEARING_PAUSE_MS &&
	       now_ms - h->steady_ms >= ES_HEARING_STEADY_MS;
}

void es_hearing_say(const struct es_hearing *h, uint64_t now_ms, struct es_hearing_word *ret_word)
{
	memset(ret_word, 0, sizeof(*ret_word));
	for (unsigned int i = 0; i < h->count; i++)
		if (es_hearing_hears(h, i, now_ms))
			ret_word->hears[i / 64] |= 1ULL << i % 64;
	ret_word->is_steady = is_steady(h, now_ms);
}

void es_hearing_sent(struct es_hearing *h, uint64_t now_ms)
{
	if (!h->sent_ms || now_ms - h->sent_ms > ES_HEARING_PAUSE_MS)
		h->steady_ms = now_ms;
	h->sent_ms = now_ms;
}

/* May @node's word be held against us? */
static int is_witness(const struct es_hearing *h, unsigned int node, uint64_t now_ms)
{
	return es_hearing_hears(h, node, now_ms) && h->peer[node].has_heard_us;
}

int es_hearing_witnesses(const struct es_hearing *h, uint64_t now_ms, unsigned int *ret_one,
			 unsigned int *ret_other)
{
	for (unsigned int i = 0; i < h->count; i++) {
		if (!is_witness(h, i, now_ms))
			continue;
		for (unsigned int k = i + 1; k < h->count; k++) {
			if (!is_witness(h, k, now_ms) || !word_has(&h->peer[i].word, k) ||
			    !word_has(&h->peer[k].word, i))
				continue;
			*ret_one = i;
			*ret_other = k;
			return 0;
		}
	}
	return -ENOENT;
}

int es_hearing_is_mute(struct es_hearing *h, uint64_t now_ms)
{
	unsigned int one, other;
	int may_be_heard = 0;

	for (unsigned int i = 0; i < h->count && !may_be_heard; i++)
		may_be_heard = es_hearing_hears(h, i, now_ms) &&
			       (word_has(&h->peer[i].word, h->self) || !h->peer[i].word.is_steady);
	if (!may_be_heard && is_steady(h, now_ms) && !es_hearing_witnesses(h, now_ms, &one, &other)) {
		h->mute_ms = now_ms;
		h->is_mute = 1;
	}
	/* A process that sleeps does not hear that it is mute still. */
	if (h->is_mute && !is_steady(h, now_ms))
		h->mute_ms = now_ms;
	if (h->is_mute && now_ms - h->mute_ms >= ES_HEARING_RETURN_MS)
		h->is_mute = 0;
	return h->is_mute;
}
