// SPDX-License-Identifier: GPL-2.0-or-later
/* The workers' tables of counters for the metrics: nothing in them needs a lock or an atomic addition. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/inspect/tally.h"
#include "inspector/rules/rules.h"

const char *const es_tally_decision_name[ES_TALLY_DECISION_COUNT] = {
#define X(name, description) #name,
	ES_TALLY_DECISIONS(X)
#undef X
};

const char *const es_tally_result_name[ES_TALLY_RESULT_COUNT] = {
#define X(name, description) #name,
	ES_TALLY_RESULTS(X)
#undef X
};

const unsigned long long es_histogram_bound_ns[ES_HISTOGRAM_BOUNDS] = {
	5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000, 2500000, 10000000, 100000000, 1000000000,
};

/* Where the counters of each kind begin in the table, one kind after the other. */
static size_t at_request(const struct es_tally *t, unsigned int service, unsigned int node,
			 enum es_tally_decision decision)
{
	return ((size_t)service * t->nodes + node) * ES_TALLY_DECISION_COUNT + (size_t)decision;
}

static size_t at_handover(const struct es_tally *t, unsigned int service, unsigned int node,
			  enum es_tally_result result)
{
	return at_request(t, t->services, 0, ES_TALLY_first) +
	       ((size_t)service * t->nodes + node) * ES_TALLY_RESULT_COUNT + (size_t)result;
}

static size_t at_rejection(const struct es_tally *t, unsigned int service, unsigned int rule)
{
	return at_handover(t, t->services, 0, ES_TALLY_sent) + (size_t)service * t->rules + rule;
}

static size_t at_hit(const struct es_tally *t, unsigned int service)
{
	return at_rejection(t, t->services, 0) + service;
}

static int has(const struct es_tally *t, unsigned int service, unsigned int node)
{
	return t && service < t->services && node < t->nodes;
}

/* The worker is the only writer: no locked addition needed. */
static void add(_Atomic unsigned long long *count, unsigned long long n)
{
	atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static unsigned long long get(const _Atomic unsigned long long *count)
{
	return atomic_load_explicit(count, memory_order_relaxed);
}

static int service_of(const struct es_conf *conf, const char *name)
{
	for (unsigned int i = 0; i < conf->service_count; i++)
		if (!strcmp(conf->services[i].name, name))
			return (int)i;
	return -1;
}

static int node_of(const struct es_conf *conf, const char *name)
{
	for (unsigned int i = 0; i < conf->node_count; i++)
		if (!strcmp(conf->nodes[i].name, name))
			return (int)i;
	return -1;
}

static int rule_of(const struct es_conf *conf, const char *name)
{
	for (unsigned int i = 0; i < conf->rule_count; i++)
		if (!conf->rules[i].is_location && !strcmp(conf->rules[i].name, name))
			return (int)i;
	return -1;
}

static void take_nodes(struct es_tally *to, unsigned int service, const struct es_conf *conf,
		       const struct es_tally *from, unsigned int old_service, const struct es_conf *old)
{
	for (unsigned int n = 0; n < to->nodes; n++) {
		int node = node_of(old, conf->nodes[n].name);

		for (int k = 0; node >= 0 && k < ES_TALLY_DECISION_COUNT; k++)
			to->count[at_request(to, service, n, (enum es_tally_decision)k)] = es_tally_request(
				from, old_service, (unsigned int)node, (enum es_tally_decision)k);
		for (int k = 0; node >= 0 && k < ES_TALLY_RESULT_COUNT; k++)
			to->count[at_handover(to, service, n, (enum es_tally_result)k)] = es_tally_handover(
				from, old_service, (unsigned int)node, (enum es_tally_result)k);
	}
}

static void take_rules(struct es_tally *to, unsigned int service, const struct es_conf *conf,
		       const struct es_tally *from, unsigned int old_service, const struct es_conf *old)
{
	for (unsigned int r = 0; r < to->rules; r++) {
		int rule = (int)r;

		if (r >= ES_RULES_BY_RULE) {
			rule = rule_of(old, conf->rules[r - ES_RULES_BY_RULE].name);
			if (rule < 0)
				continue;
			rule += ES_RULES_BY_RULE;
		}
		to->count[at_rejection(to, service, r)] =
			es_tally_rejection(from, old_service, (unsigned int)rule);
	}
}

static void take_histogram(struct es_histogram *to, const struct es_histogram *from)
{
	for (int i = 0; i <= ES_HISTOGRAM_BOUNDS; i++)
		to->bucket[i] = get(&from->bucket[i]);
	to->sum_ns = get(&from->sum_ns);
}

int es_tally_new(const struct es_conf *conf, const struct es_tally *before, const struct es_conf *before_conf,
		 struct es_tally **ret_tally)
{
	size_t rules = ES_RULES_BY_RULE + conf->rule_count;
	size_t of_service =
		conf->node_count * (ES_TALLY_DECISION_COUNT + (size_t)ES_TALLY_RESULT_COUNT) + rules + 1;
	struct es_tally *t = calloc(1, sizeof(*t) + conf->service_count * of_service * sizeof(t->count[0]));

	if (!t)
		return -ENOMEM;
	t->services = conf->service_count;
	t->nodes = conf->node_count;
	t->rules = (unsigned int)rules;
	*ret_tally = t;
	if (!before)
		return 0;
	take_histogram(&t->decision, &before->decision);
	take_histogram(&t->handover, &before->handover);
	for (unsigned int s = 0; s < t->services; s++) {
		int old = service_of(before_conf, conf->services[s].name);

		if (old < 0)
			continue;
		take_nodes(t, s, conf, before, (unsigned int)old, before_conf);
		take_rules(t, s, conf, before, (unsigned int)old, before_conf);
		t->count[at_hit(t, s)] = es_tally_hit(before, (unsigned int)old);
	}
	return 0;
}

void es_tally_free(struct es_tally **tally)
{
	free(*tally);
	*tally = NULL;
}

void es_tally_decided(struct es_tally *t, unsigned int service, unsigned int node,
		      enum es_tally_decision decision)
{
	if (has(t, service, node))
		add(&t->count[at_request(t, service, node, decision)], 1);
}

void es_tally_handed(struct es_tally *t, unsigned int service, unsigned int node, enum es_tally_result result)
{
	if (has(t, service, node))
		add(&t->count[at_handover(t, service, node, result)], 1);
}

void es_tally_rejected(struct es_tally *t, unsigned int service, unsigned int rule)
{
	if (t && service < t->services && rule < t->rules)
		add(&t->count[at_rejection(t, service, rule)], 1);
}

void es_tally_content(struct es_tally *t, unsigned int service, __u64 content, unsigned int node)
{
	__u64 *place, word = (content & ~0xffULL) | node;

	if (!has(t, service, node))
		return;
	place = &t->content[(content >> 8) & (ES_TALLY_CONTENTS - 1)];
	if (*place == word)
		add(&t->count[at_hit(t, service)], 1);
	*place = word;
}

static void took(struct es_histogram *histogram, unsigned long long ns)
{
	int i = 0;

	while (i < ES_HISTOGRAM_BOUNDS && ns > es_histogram_bound_ns[i])
		i++;
	add(&histogram->bucket[i], 1);
	add(&histogram->sum_ns, ns);
}

void es_tally_took(struct es_tally *t, unsigned long long ns)
{
	if (t)
		took(&t->decision, ns);
}

void es_tally_pending(struct es_tally *t, unsigned long long at_ns)
{
	if (!t)
		return;
	/* The sender does not keep so many: it has sent them. */
	if (t->pending_count == ES_TALLY_PENDING)
		es_tally_sent(t);
	t->pending[t->pending_count++] = at_ns;
}

void es_tally_sent(struct es_tally *t)
{
	unsigned long long now_ns;

	if (!t || !t->pending_count)
		return;
	now_ns = es_clock_now_ns();
	for (unsigned int i = 0; i < t->pending_count; i++)
		took(&t->handover, now_ns > t->pending[i] ? now_ns - t->pending[i] : 0);
	t->pending_count = 0;
}

unsigned long long es_tally_request(const struct es_tally *t, unsigned int service, unsigned int node,
				    enum es_tally_decision decision)
{
	return has(t, service, node) ? get(&t->count[at_request(t, service, node, decision)]) : 0;
}

unsigned long long es_tally_handover(const struct es_tally *t, unsigned int service, unsigned int node,
				     enum es_tally_result result)
{
	return has(t, service, node) ? get(&t->count[at_handover(t, service, node, result)]) : 0;
}

unsigned long long es_tally_rejection(const struct es_tally *t, unsigned int service, unsigned int rule)
{
	return t && service < t->services && rule < t->rules ? get(&t->count[at_rejection(t, service, rule)])
							     : 0;
}

unsigned long long es_tally_hit(const struct es_tally *t, unsigned int service)
{
	return t && service < t->services ? get(&t->count[at_hit(t, service)]) : 0;
}

void es_histogram_read(const struct es_histogram *histogram, unsigned long long *bucket,
		       unsigned long long *ret_sum_ns)
{
	for (int i = 0; i <= ES_HISTOGRAM_BOUNDS; i++)
		bucket[i] += get(&histogram->bucket[i]);
	*ret_sum_ns += get(&histogram->sum_ns);
}
