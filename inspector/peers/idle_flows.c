// SPDX-License-Identifier: GPL-2.0-or-later
/* This node's memory of what it has told of its connections, and the decision what to tell now. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/peers/idle_flows.h"

#define NONE 0xffffffffU

/**
 * struct entry
 * @since_ns: since when it looks as it does, 0: it is busy; @told_ns: when it was told so, 0: not yet
 * @waits_ns: when it was told that its client waits, with @waits_seq; 0: that is not so
 * @flow, @keeper: for taking back what was told, be it true still or not
 * @look: the number of the last that has seen it, 0: the entry is free
 */
struct entry {
	__u64 flow_hash;
	unsigned long long since_ns;
	unsigned long long told_ns;
	unsigned long long waits_ns;
	struct es_flow flow;
	__u32 seq;
	__u32 ack;
	__u32 waits_seq;
	uint32_t next;
	uint32_t look;
	__u16 keeper[ES_KEEPERS_MAX];
};

struct es_idle_flows {
	es_idle_tell_fn tell;
	void *ctx;
	unsigned long long now_ns;
	unsigned long long after_ns;
	unsigned int left;
	unsigned int told;
	unsigned int waiting;
	uint32_t look;
	uint32_t room;
	uint32_t chains;
	uint32_t free;
	uint32_t used;
	uint32_t *chain;
	struct entry *entry;
};

int es_idle_flows_new(unsigned int entries, es_idle_tell_fn tell, void *ctx, struct es_idle_flows **ret_flows)
{
	struct es_idle_flows *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->tell = tell;
	f->ctx = ctx;
	f->room = entries;
	f->free = NONE;
	for (f->chains = 1; f->chains < entries;)
		f->chains *= 2;
	f->chain = malloc(f->chains * sizeof(*f->chain));
	f->entry = calloc(entries, sizeof(*f->entry));
	if (!f->chain || !f->entry) {
		es_idle_flows_free(&f);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < f->chains; i++)
		f->chain[i] = NONE;
	*ret_flows = f;
	return 0;
}

void es_idle_flows_free(struct es_idle_flows **flows)
{
	if (!*flows)
		return;
	free((*flows)->chain);
	free((*flows)->entry);
	free(*flows);
	*flows = NULL;
}

static uint32_t *link_of(struct es_idle_flows *f, __u64 flow_hash)
{
	uint32_t *link = &f->chain[flow_hash & (f->chains - 1)];

	while (*link != NONE && f->entry[*link].flow_hash != flow_hash)
		link = &f->entry[*link].next;
	return link;
}

/* The connection's entry, a new one if need be; NULL: there is no room. */
static struct entry *entry_of(struct es_idle_flows *f, const struct es_idle_flow *flow)
{
	uint32_t *link = link_of(f, flow->flow_hash), at = *link;

	if (at != NONE)
		return &f->entry[at];
	if (f->free != NONE) {
		at = f->free;
		f->free = f->entry[at].next;
	} else if (f->used < f->room) {
		at = f->used++;
	} else {
		return NULL;
	}
	f->entry[at] = (struct entry){
		.flow_hash = flow->flow_hash,
		.flow = flow->kept.flow,
		.next = NONE,
		.keeper = {ES_NODE_NONE, ES_NODE_NONE},
	};
	*link = at;
	return &f->entry[at];
}

static int is_keeper(const __u16 keeper[ES_KEEPERS_MAX], __u16 node)
{
	return keeper[0] == node || keeper[1] == node;
}

/* Those who keep it, perhaps as it was before, and are none of @now any more need not. */
static void take_back(struct es_idle_flows *f, const struct entry *e, const __u16 now[ES_KEEPERS_MAX])
{
	struct es_kept_word word = {.what = ES_KEPT_FORGET, .kept.flow = e->flow};

	for (unsigned int i = 0; i < ES_KEEPERS_MAX; i++)
		if (e->keeper[i] != ES_NODE_NONE && !is_keeper(now, e->keeper[i]))
			f->tell(f->ctx, e->keeper[i], &word);
}

static void tell_keepers(struct es_idle_flows *f, struct entry *e, const struct es_idle_flow *flow,
			 enum es_kept_what what)
{
	struct es_kept_word word = {.what = what, .kept = flow->kept};

	take_back(f, e, flow->keeper);
	memcpy(e->keeper, flow->keeper, sizeof(e->keeper));
	for (unsigned int i = 0; i < ES_KEEPERS_MAX; i++)
		if (flow->keeper[i] != ES_NODE_NONE)
			f->tell(f->ctx, flow->keeper[i], &word);
	f->left--;
}

static void tell(struct es_idle_flows *f, struct entry *e, const struct es_idle_flow *flow)
{
	f->told += !e->told_ns;
	e->told_ns = f->now_ns;
	tell_keepers(f, e, flow, ES_KEPT_KEEP);
}

static void tell_waits(struct es_idle_flows *f, struct entry *e, const struct es_idle_flow *flow)
{
	if (!f->left ||
	    (e->waits_ns && e->waits_seq == flow->kept.seq && f->now_ns - e->waits_ns < ES_IDLE_AGAIN_NS &&
	     !memcmp(e->keeper, flow->keeper, sizeof(e->keeper))))
		return;
	f->waiting += !e->waits_ns;
	e->waits_ns = f->now_ns;
	e->waits_seq = flow->kept.seq;
	tell_keepers(f, e, flow, ES_KEPT_WAITS);
}

static void tell_answered(struct es_idle_flows *f, struct entry *e)
{
	struct es_kept_word word = {.what = ES_KEPT_ANSWERED, .kept.flow = e->flow};

	if (!e->waits_ns)
		return;
	f->waiting--;
	e->waits_ns = 0;
	for (unsigned int i = 0; i < ES_KEEPERS_MAX; i++)
		if (e->keeper[i] != ES_NODE_NONE)
			f->tell(f->ctx, e->keeper[i], &word);
}

void es_idle_flows_begin(struct es_idle_flows *f, unsigned long long now_ns, unsigned long long after_ns,
			 unsigned int most)
{
	f->now_ns = now_ns;
	f->after_ns = after_ns;
	f->left = most;
	if (!++f->look)
		f->look = 1;
}

void es_idle_flows_see(struct es_idle_flows *f, const struct es_idle_flow *flow)
{
	struct entry *e;

	if (flow->state == ES_IDLE_NEVER)
		return; /* as one that is over */
	e = entry_of(f, flow);
	if (!e)
		return;
	e->look = f->look;
	if (flow->state == ES_IDLE_WAITS)
		tell_waits(f, e, flow);
	else
		tell_answered(f, e);
	if (flow->state != ES_IDLE_YES) {
		e->since_ns = 0;
		return;
	}
	if (!e->since_ns || e->seq != flow->kept.seq || e->ack != flow->kept.ack) {
		/* As long as it was busy between two looks, it may be idle again as it was told. */
		if (e->seq != flow->kept.seq || e->ack != flow->kept.ack) {
			f->told -= e->told_ns != 0;
			e->told_ns = 0;
		}
		e->since_ns = f->now_ns;
		e->seq = flow->kept.seq;
		e->ack = flow->kept.ack;
	}
	if (!f->left || f->now_ns - e->since_ns < f->after_ns)
		return;
	if (!e->told_ns || memcmp(e->keeper, flow->keeper, sizeof(e->keeper)) != 0 ||
	    f->now_ns - e->told_ns >= ES_IDLE_AGAIN_NS)
		tell(f, e, flow);
}

void es_idle_flows_end(struct es_idle_flows *f)
{
	static const __u16 nobody[ES_KEEPERS_MAX] = {ES_NODE_NONE, ES_NODE_NONE};

	for (uint32_t at = 0; at < f->used; at++) {
		struct entry *e = &f->entry[at];
		uint32_t *link;

		if (!e->look || e->look == f->look)
			continue;
		take_back(f, e, nobody);
		f->told -= e->told_ns != 0;
		f->waiting -= e->waits_ns != 0;
		link = link_of(f, e->flow_hash);
		*link = e->next;
		e->next = f->free;
		e->look = 0;
		f->free = at;
	}
}

unsigned int es_idle_flows_told(const struct es_idle_flows *f)
{
	return f ? f->told : 0;
}

unsigned int es_idle_flows_waiting(const struct es_idle_flows *f)
{
	return f ? f->waiting : 0;
}

int es_idle_flows_has_told(const struct es_idle_flows *f, __u64 flow_hash, __u32 seq, __u32 ack)
{
	uint32_t at = f ? f->chain[flow_hash & (f->chains - 1)] : NONE;

	while (at != NONE && f->entry[at].flow_hash != flow_hash)
		at = f->entry[at].next;
	return at != NONE && f->entry[at].told_ns && f->entry[at].seq == seq && f->entry[at].ack == ack;
}
