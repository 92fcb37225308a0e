// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Time of one decision of each policy: 8 or 64 nodes, 100,000 URIs of Zipf-like popularity that the table
 * knows already, loads from reports. Prints the best of some rounds: the others measure the machine's other
 * work.
 */
#include <arpa/inet.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "inspector/policy/load.h"
#include "inspector/policy/policy.h"

#define CONTENTS   100000
#define REQUESTS   200000
#define ROUNDS	   5
#define BATCH	   16 /* packets that a worker takes at once */
#define REQUEST_NS 100000

static char uri[CONTENTS][24];
static unsigned int sequence[REQUESTS];

static void make_requests(void)
{
	struct es_random random = {1};

	for (unsigned int i = 0; i < CONTENTS; i++)
		snprintf(uri[i], sizeof(uri[i]), "/objects/%u.html", i);
	/* By the inverse of the distribution function of a Zipf law with exponent 1. */
	for (unsigned int i = 0; i < REQUESTS; i++)
		sequence[i] = (unsigned int)pow(CONTENTS, es_random_double(&random)) - 1;
}

static struct es_ring *make_ring(unsigned int count)
{
	struct es_ring_node nodes[ES_NODES_MAX];
	struct es_ring *ring = NULL;

	for (unsigned int i = 0; i < count; i++)
		nodes[i] = (struct es_ring_node){.address = es_addr_from_v4(htonl(0x0a4e0001 + i)),
						 .virtual_nodes = ES_RING_VIRTUAL_NODES_DEFAULT,
						 .id = (__u16)i};
	if (es_ring_new(nodes, count, &ring))
		exit(2);
	return ring;
}

static void loopback(struct es_contents *contents, unsigned long long now_ns)
{
	static struct es_content_change changes[1024];
	size_t n;

	while ((n = es_contents_take(contents, changes, 1024)))
		es_contents_deliver(contents, changes, n, 1, now_ns);
}

/* Best of the rounds, in ns for each request; -1 if the policy cannot be set up. */
static double best_ns(const struct es_policy *policy, unsigned int count)
{
	struct es_cluster_view view = {.count = count, .ring = make_ring(count), .now_ns = 1000000000};
	static struct es_load load[ES_NODES_MAX];
	static struct es_node_view node[ES_NODES_MAX];
	struct es_policy_settings settings;
	struct es_random random = {2};
	double best = 1e12;
	void *state = NULL;

	es_policy_defaults(policy, &settings);
	if (es_contents_new(2 * CONTENTS, &view.contents) || (policy->new && policy->new (&settings, &state)))
		return -1;
	view.node = node;
	view.random = &random;
	for (unsigned int i = 0; i < count; i++) {
		struct es_load_report report = {.active = 10 + i % 7, .load = 100 + i % 70, .mean_us = 900};

		if (es_load_init(&load[i]))
			return -1;
		es_load_report(&load[i], &report);
		node[i] = (struct es_node_view){.weight = 100, .is_target = 1};
	}
	for (int round = 0; round < ROUNDS; round++) {
		struct timespec start, end;
		double ns;

		clock_gettime(CLOCK_MONOTONIC, &start);
		for (unsigned int i = 0; i < REQUESTS; i++) {
			struct es_request_view request = {
				.uri = uri[sequence[i]], .current = -1, .cost = 9, .size_bytes = 13000};
			int content;

			for (request.uri_len = 0; request.uri[request.uri_len];)
				request.uri_len++;
			request.name = request.uri;
			request.name_len = request.uri_len;
			request.content = es_content_hash(request.uri, request.uri_len);
			if (i % BATCH == 0) {
				view.now_ns += BATCH * REQUEST_NS;
				for (unsigned int n = 0; n < count; n++)
					es_load_estimate(&load[n], view.now_ns, &node[n]);
			}
			content = policy->route(state, &request, &view);
			if (content < 0)
				return -1;
			es_load_sent(&load[content], request.cost, view.now_ns, &node[content]);
			if (i % 1024 == 0)
				loopback(view.contents, view.now_ns);
		}
		clock_gettime(CLOCK_MONOTONIC, &end);
		ns = (double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec);
		if (round && ns / REQUESTS < best) /* the first one fills the table */
			best = ns / REQUESTS;
	}
	if (policy->free)
		policy->free(state);
	es_contents_free(&view.contents);
	es_ring_free((struct es_ring **)&view.ring);
	return best;
}

int main(void)
{
	make_requests();
	printf("%-10s %12s %12s\n", "policy", "8 nodes, ns", "64 nodes, ns");
	for (const struct es_policy *const *p = es_policy_list(); *p; p++)
		if ((*p)->inspects)
			printf("%-10s %12.0f %12.0f\n", (*p)->name, best_ns(*p, 8), best_ns(*p, 64));
	return 0;
}
