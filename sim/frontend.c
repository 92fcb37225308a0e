// SPDX-License-Identifier: GPL-2.0-or-later
/* The modelled inspectors: whom they ask, what they hear of each other and when. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/policy/stay.h"
#include "sim/frontend.h"

#define ES_LARGE_RESPONSE (64 * 1024) /* from here on, content is a matter of the disk (CAP's DB) */
#define ES_CHANGES_MAX	  16

/* struct es_message - on the bus: changes by one inspector,
 * or (@is_report) what the nodes say of themselves */
struct es_message {
	struct es_message *next;
	int is_report;
	unsigned int from;
	unsigned int count;
	union {
		struct es_content_change change[ES_CHANGES_MAX];
		struct es_load_report report[ES_NODES_MAX];
	};
};

struct es_inspector {
	void *state;
	struct es_policy_settings settings;
	struct es_contents *contents;
	struct es_random random;
	struct es_load load[ES_NODES_MAX];
	struct es_node_view node[ES_NODES_MAX];
};

struct es_frontend {
	const struct es_sim_params *params;
	const struct es_sim_node *nodes;
	unsigned int node_count;
	unsigned int inspector_count;
	struct es_ring *ring;
	struct es_inspector *inspector;
	struct es_message *oldest, *newest;
	struct es_frontend_counts count;
};

static int es_inspector_init(struct es_inspector *inspector, const struct es_sim_params *params,
			     unsigned int number)
{
	const struct es_policy *policy = params->policy;
	struct es_policy_settings *settings = &inspector->settings;
	int rc = 0;

	*settings = params->settings;
	settings->handover_cost = (unsigned int)params->handover_cost;
	settings->load_bound = (unsigned int)params->load_bound;
	/* A single one sees the nodes as they are: there is nothing to settle. */
	settings->settle_ms = params->inspectors > 1 ? (unsigned int)params->settle_ms : 0;
	inspector->random.state = (__u64)params->seed * 1000003 + number;
	for (unsigned int i = 0; i < (unsigned int)params->nodes; i++) {
		inspector->node[i].weight = 100;
		inspector->node[i].is_target = 1;
		rc = es_load_init(&inspector->load[i]);
		if (rc)
			return rc;
		es_load_settle(&inspector->load[i], settings->settle_ms);
	}
	if (policy->needs_contents)
		rc = es_contents_new((size_t)params->contents, &inspector->contents);
	if (!rc && policy->new)
		rc = policy->new (settings, &inspector->state);
	return rc;
}

static int es_frontend_ring(struct es_frontend *frontend)
{
	struct es_ring_node nodes[ES_NODES_MAX] = {};

	for (unsigned int i = 0; i < frontend->node_count; i++)
		nodes[i] = (struct es_ring_node){
			.address =
				es_addr_from_v4(es_htonl(0x0a4e0001 + i)), /* 10.78.0.1 and on, the lab's */
			.virtual_nodes = ES_RING_VIRTUAL_NODES_DEFAULT,
			.id = (__u16)i,
		};
	return es_ring_new(nodes, frontend->node_count, &frontend->ring);
}

int es_frontend_new(const struct es_sim_params *params, const struct es_sim_node *nodes,
		    struct es_frontend **ret_frontend)
{
	struct es_frontend *frontend = calloc(1, sizeof(*frontend));
	int rc;

	if (!frontend)
		return -ENOMEM;
	frontend->params = params;
	frontend->nodes = nodes;
	frontend->node_count = (unsigned int)params->nodes;
	frontend->inspector_count = (unsigned int)params->inspectors;
	frontend->inspector = calloc(frontend->inspector_count, sizeof(*frontend->inspector));
	rc = frontend->inspector ? es_frontend_ring(frontend) : -ENOMEM;
	for (unsigned int i = 0; !rc && i < frontend->inspector_count; i++)
		rc = es_inspector_init(&frontend->inspector[i], params, i);
	if (rc) {
		es_frontend_free(&frontend);
		return rc;
	}
	*ret_frontend = frontend;
	return 0;
}

void es_frontend_free(struct es_frontend **frontend)
{
	struct es_frontend *f = *frontend;

	if (!f)
		return;
	for (unsigned int i = 0; f->inspector && i < f->inspector_count; i++) {
		if (f->params->policy->free)
			f->params->policy->free(f->inspector[i].state);
		es_contents_free(&f->inspector[i].contents);
		for (unsigned int k = 0; k < f->node_count; k++)
			es_load_fini(&f->inspector[i].load[k]);
	}
	while (f->oldest) {
		struct es_message *next = f->oldest->next;

		free(f->oldest);
		f->oldest = next;
	}
	free(f->inspector);
	es_ring_free(&f->ring);
	free(f);
	*frontend = NULL;
}

unsigned int es_frontend_inspector(const struct es_frontend *frontend, __u64 flow_hash, int current)
{
	__u16 node;

	if (frontend->inspector_count == 1)
		return 0;
	node = current >= 0 ? (__u16)current
			    : es_ring_lookup(frontend->ring, es_ring_flow_position(flow_hash));
	return node % frontend->inspector_count;
}

/* --- decisions */

static double es_frontend_active(const struct es_frontend *frontend, const struct es_sim_node *node)
{
	return frontend->params->inspect_every ? node->active : node->connections;
}

static void es_frontend_look(struct es_frontend *frontend, struct es_inspector *inspector, __u64 now_ns)
{
	for (unsigned int i = 0; i < frontend->node_count; i++) {
		const struct es_sim_node *node = &frontend->nodes[i];
		struct es_node_view *view = &inspector->node[i];

		if (frontend->inspector_count > 1) {
			es_load_estimate(&inspector->load[i], now_ns, view);
			continue;
		}
		view->active = es_frontend_active(frontend, node);
		view->capacity = es_capacity_get(&inspector->load[i].capacity);
		view->load = node->load;
		view->cpu = node->share[ES_CPU];
		view->disk = node->share[ES_DISK];
	}
}

static void es_file_describe(struct es_request_view *request, const struct es_sim_file *file,
			     __u64 size_bytes)
{
	request->uri = file->uri + file->host_len;
	request->uri_len = strlen(request->uri);
	request->name = file->name;
	request->name_len = strlen(file->name);
	request->content = file->content;
	request->size_bytes = size_bytes;
	request->cost = file->cost;
	request->is_dynamic = file->is_dynamic;
	request->class = ES_CLASS_NORMAL;
	if (file->is_dynamic)
		request->class = ES_CLASS_CPU;
	else if (size_bytes >= ES_LARGE_RESPONSE)
		request->class = ES_CLASS_DISK;
}

int es_frontend_route(struct es_frontend *frontend, unsigned int inspector, const struct es_sim_file *file,
		      __u64 size_bytes, __u64 flow_hash, int current, __u64 now_ns, enum es_move_why *ret_why)
{
	struct es_inspector *self = &frontend->inspector[inspector];
	struct es_request_view request = {.flow_hash = flow_hash, .current = current};
	struct es_cluster_view view = {
		.self = inspector < frontend->node_count ? inspector : 0,
		.count = frontend->node_count,
		.node = self->node,
		.ring = frontend->ring,
		.now_ns = now_ns,
		.random = &self->random,
		.contents = self->contents,
		.settings = &self->settings,
		.why = &request.why,
	};
	int node;

	es_frontend_look(frontend, self, now_ns);
	es_file_describe(&request, file, size_bytes);
	node = frontend->params->policy->route(self->state, &request, &view);
	frontend->count.decisions++;
	if (node < 0 || !es_view_is_target(&request, &view, (unsigned int)node)) {
		frontend->count.fallbacks++;
		node = es_policy_fallback(&request, &view);
	}
	if (node < 0)
		return node;
	*ret_why = current >= 0 ? es_stay_why(&request, &view, request.why) : ES_MOVE_LOCALITY;
	if (frontend->inspector_count == 1)
		return node;
	if (current < 0) {
		es_load_sent(&self->load[node], request.cost, now_ns, &self->node[node]);
	} else if (node != current) { /* else it takes the place of the one before */
		es_load_moved(&self->load[current], -1, request.cost, &self->node[current]);
		es_load_moved(&self->load[node], 1, request.cost, &self->node[node]);
	}
	return node;
}

/* --- the bus */

/* Room for a message that has @size bytes beyond its head; it is the newest one. NULL without memory. */
static struct es_message *es_bus_put(struct es_frontend *frontend, size_t size)
{
	struct es_message *message = calloc(1, offsetof(struct es_message, change) + size);

	if (!message)
		return NULL;
	if (frontend->newest)
		frontend->newest->next = message;
	else
		frontend->oldest = message;
	frontend->newest = message;
	frontend->count.messages++;
	return message;
}

int es_frontend_say(struct es_frontend *frontend, unsigned int inspector)
{
	struct es_content_change changes[ES_CHANGES_MAX];
	struct es_contents *contents = frontend->inspector[inspector].contents;
	size_t count = contents ? es_contents_take(contents, changes, ES_CHANGES_MAX) : 0;
	struct es_message *message;

	if (!count)
		return 0;
	message = es_bus_put(frontend, sizeof(changes[0]) * count);
	if (!message)
		return -ENOMEM;
	message->from = inspector;
	message->count = (unsigned int)count;
	memcpy(message->change, changes, sizeof(changes[0]) * count);
	return 1;
}

/* A single inspector hears no reports. */
static void es_frontend_measure(const struct es_frontend *frontend, struct es_inspector *inspector)
{
	for (unsigned int i = 0; i < frontend->node_count; i++)
		es_capacity_add(&inspector->load[i].capacity, frontend->params->publish_ms / 1e3,
				es_frontend_active(frontend, &frontend->nodes[i]),
				frontend->nodes[i].share[ES_CPU], frontend->nodes[i].share[ES_DISK]);
}

int es_frontend_publish(struct es_frontend *frontend)
{
	struct es_message *message;

	if (frontend->inspector_count == 1) {
		es_frontend_measure(frontend, &frontend->inspector[0]);
		return 0;
	}
	message = es_bus_put(frontend, sizeof(message->report[0]) * frontend->node_count);
	if (!message)
		return -ENOMEM;
	message->is_report = 1;
	message->count = frontend->node_count;
	for (unsigned int i = 0; i < frontend->node_count; i++) {
		const struct es_sim_node *node = &frontend->nodes[i];

		message->report[i] = (struct es_load_report){
			.active = (unsigned int)es_frontend_active(frontend, node),
			.load = (unsigned int)fmin(node->load, 4e9),
			.mean_us = (unsigned int)fmin(node->mean_ns / 1000, 4e9),
			.cpu = (unsigned short)lround(fmin(node->share[ES_CPU], 1) * 1000),
			.disk = (unsigned short)lround(fmin(node->share[ES_DISK], 1) * 1000),
		};
	}
	return 1;
}

static void es_inspector_hear(struct es_inspector *inspector, struct es_message *message, unsigned int number,
			      __u64 now_ns)
{
	int is_own = number == message->from;

	if (message->is_report) {
		for (unsigned int i = 0; i < message->count; i++) {
			message->report[i].at_ns = now_ns;
			es_load_report(&inspector->load[i], &message->report[i]);
		}
		return;
	}
	es_contents_deliver(inspector->contents, message->change, message->count, is_own, now_ns);
	for (unsigned int i = 0; i < message->count && !is_own; i++)
		if (es_content_op_gives(message->change[i].op))
			es_load_heard(&inspector->load[message->change[i].node], now_ns);
}

void es_frontend_hear(struct es_frontend *frontend, __u64 now_ns)
{
	struct es_message *message = frontend->oldest;

	if (!message)
		return;
	frontend->oldest = message->next;
	if (!frontend->oldest)
		frontend->newest = NULL;
	for (unsigned int i = 0; i < frontend->inspector_count; i++)
		es_inspector_hear(&frontend->inspector[i], message, i, now_ns);
	free(message);
}

void es_frontend_count(const struct es_frontend *frontend, struct es_frontend_counts *ret_counts)
{
	const struct es_inspector *inspector = frontend->inspector;

	*ret_counts = frontend->count;
	if (!inspector[0].contents)
		return;
	es_contents_count(inspector[0].contents, &ret_counts->contents);
	for (unsigned int i = 1; i < frontend->inspector_count; i++)
		if (es_contents_digest(inspector[i].contents) != es_contents_digest(inspector[0].contents))
			ret_counts->tables_differ = 1;
}
