// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The life of a request: it is given to a node; the node's CPU works on it; what is not in the page cache is
 * read from the disk, extent by extent, once for all that wait for it; it is sent, piece by piece; the client
 * asks for the next one. Nothing here knows a policy.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "sim/events.h"
#include "sim/model.h"

#define ES_SEND_BYTES	   (64 * 1024) /* sent at a time; other responses come between */
#define ES_PROGRESS_EVENTS 65536

enum es_what { ES_ASK, ES_CPU_DONE, ES_DISK_DONE, ES_SENT, ES_HEAR, ES_PUBLISH };

enum es_outcome { ES_COMPUTED, ES_HIT, ES_MISS };

/**
 * struct es_client - one of the closed loop, with the connection that it has now
 * @at, @end: of its requests
 * @left: bytes still to be read or sent
 * @outcome: of this request's look-up; counted when it is done, as the request is
 * @next: who else waits for the same file at the same node, +1
 */
struct es_client {
	__u32 at;
	__u32 end;
	int node;
	__u32 next;
	__u64 flow_hash;
	__u64 asked_ns;
	__u64 left;
	enum es_outcome outcome;
	int is_streamed;
};

struct es_sim {
	const struct es_sim_params *params;
	const struct es_workload *workload;
	unsigned int node_count;
	struct es_sim_node *node;
	struct es_frontend *front;
	struct es_events events;
	struct es_client *client;
	__u32 client_count;
	__u32 next_connection;
	__u32 clients_left;
	__u64 now_ns;
	__u64 publish_ns;
	__u64 bus_ns;
	struct es_sim_tally total[ES_NODES_MAX];
	struct es_sim_tally at_start[ES_NODES_MAX];
	__u64 completed;
	__u64 warm_at;
	__u64 start_ns;
	int is_measuring;
	int is_measured;
	struct es_sim_result *result;
	int error;
};

static void es_sim_at(struct es_sim *sim, __u64 at_ns, enum es_what what, __u32 whom)
{
	int rc = es_events_put(&sim->events, at_ns, what, whom);

	if (rc)
		sim->error = rc;
}

static __u64 es_us(double us)
{
	return (__u64)llround(us * 1e3);
}

static __u32 es_client_file(const struct es_sim *sim, const struct es_client *client)
{
	return sim->workload->request[client->at];
}

/* --- what is measured */

static void es_sim_tally(struct es_sim *sim, unsigned int i)
{
	es_sim_node_count(&sim->node[i], sim->now_ns);
	sim->total[i].active_ns = sim->node[i].active_ns;
	for (int k = 0; k < ES_STATION_COUNT; k++) {
		const struct es_station *station = &sim->node[i].station[k];

		sim->total[i].busy_ns[k] =
			station->busy_ns -
			(station->free_ns > sim->now_ns ? station->free_ns - sim->now_ns : 0);
	}
}

static void es_sim_measure_begin(struct es_sim *sim)
{
	for (unsigned int i = 0; i < sim->node_count; i++)
		es_sim_tally(sim, i);
	memcpy(sim->at_start, sim->total, sizeof(sim->total));
	memset(sim->result->latency, 0, sizeof(sim->result->latency));
	sim->start_ns = sim->now_ns;
	sim->is_measuring = 1;
}

static void es_tally_add(struct es_sim_tally *sum, const struct es_sim_tally *tally)
{
	sum->served += tally->served;
	sum->hits += tally->hits;
	sum->misses += tally->misses;
	sum->dynamic += tally->dynamic;
	sum->disk_reads += tally->disk_reads;
	sum->bytes += tally->bytes;
	sum->moves += tally->moves;
	for (int k = 0; k < ES_MOVE_WHY_COUNT; k++)
		sum->moves_why[k] += tally->moves_why[k];
	sum->active_ns += tally->active_ns;
	for (int k = 0; k < ES_STATION_COUNT; k++)
		sum->busy_ns[k] += tally->busy_ns[k];
}

static struct es_sim_tally es_tally_since(const struct es_sim_tally *now, const struct es_sim_tally *before)
{
	struct es_sim_tally d = *now;

	d.served -= before->served;
	d.hits -= before->hits;
	d.misses -= before->misses;
	d.dynamic -= before->dynamic;
	d.disk_reads -= before->disk_reads;
	d.bytes -= before->bytes;
	d.moves -= before->moves;
	for (int k = 0; k < ES_MOVE_WHY_COUNT; k++)
		d.moves_why[k] -= before->moves_why[k];
	d.active_ns -= before->active_ns;
	for (int k = 0; k < ES_STATION_COUNT; k++)
		d.busy_ns[k] -= before->busy_ns[k];
	return d;
}

static void es_sim_measure_end(struct es_sim *sim)
{
	for (unsigned int i = 0; i < sim->node_count; i++) {
		es_sim_tally(sim, i);
		sim->result->node[i] = es_tally_since(&sim->total[i], &sim->at_start[i]);
		es_tally_add(&sim->result->measured, &sim->result->node[i]);
	}
	sim->result->measured_ns = sim->now_ns - sim->start_ns;
	sim->is_measuring = 0;
	sim->is_measured = 1;
}

/* --- clients */

static void es_client_ask(struct es_sim *sim, __u32 i)
{
	es_sim_at(sim, sim->now_ns + es_us(sim->params->rtt_ms * 1e3), ES_ASK, i);
}

static __u64 es_mix(__u64 value)
{
	struct es_random random = {.state = value};

	return es_random_next(&random);
}

/* Opens the next connection, or the client is done. */
static void es_client_open(struct es_sim *sim, __u32 i)
{
	struct es_client *client = &sim->client[i];
	__u32 connection = sim->next_connection;

	if (connection == sim->workload->connection_count) {
		sim->clients_left--;
		return;
	}
	sim->next_connection++;
	client->at = sim->workload->first[connection];
	client->end = sim->workload->first[connection + 1];
	client->node = -1;
	client->flow_hash = es_mix(es_mix((__u64)sim->params->seed) + connection);
	/* From the last one's opening on, less and less is going on. */
	if (sim->next_connection == sim->workload->connection_count && sim->is_measuring)
		es_sim_measure_end(sim);
	es_client_ask(sim, i);
}

/* --- nodes */

/* The connection is at @node from now on; returns the CPU time that this costs there. */
static __u64 es_client_connect(struct es_sim *sim, struct es_client *client, int node, enum es_move_why why)
{
	const struct es_sim_params *params = sim->params;
	int old = client->node;

	if (old == node)
		return 0;
	sim->node[node].connections++;
	client->node = node;
	if (old < 0)
		return es_us(params->cpu_connect_us);
	sim->node[old].connections--;
	sim->total[node].moves++;
	sim->total[node].moves_why[why]++;
	es_station_work(&sim->node[old].station[ES_CPU], sim->now_ns, es_us(params->cpu_handover_us));
	return es_us(params->cpu_handover_us);
}

static void es_sim_ask(struct es_sim *sim, __u32 i)
{
	const struct es_sim_params *params = sim->params;
	struct es_client *client = &sim->client[i];
	__u32 number = es_client_file(sim, client);
	const struct es_sim_file *file = &sim->workload->file[number];
	__u64 size = sim->workload->size[number];
	enum es_move_why why = ES_MOVE_LOCALITY;
	int node = client->node;
	__u64 work_ns;

	if (node < 0 || params->inspect_every) {
		unsigned int inspector = es_frontend_inspector(sim->front, client->flow_hash, client->node);
		int said;

		node = es_frontend_route(sim->front, inspector, file, size, client->flow_hash, client->node,
					 sim->now_ns, &why);
		said = es_frontend_say(sim->front, inspector);
		if (said < 0 || node < 0) {
			sim->error = said < 0 ? said : -ENETUNREACH;
			return;
		}
		/* A single inspector agrees with itself at once. */
		if (said && params->inspectors < 2)
			es_frontend_hear(sim->front, sim->now_ns);
		else if (said)
			es_sim_at(sim, sim->now_ns + sim->bus_ns, ES_HEAR, 0);
	}
	work_ns = es_client_connect(sim, client, node, why) + es_us(params->cpu_request_us) +
		  es_us(params->cpu_packet_us * (double)es_sim_packets(size));
	if (file->is_dynamic)
		work_ns += es_us(params->dynamic_cpu_ms * 1e3);
	es_sim_node_count(&sim->node[node], sim->now_ns);
	sim->node[node].active++;
	sim->node[node].load += file->cost;
	client->asked_ns = sim->now_ns;
	client->left = size;
	sim->result->asked++;
	es_sim_at(sim, es_station_work(&sim->node[node].station[ES_CPU], sim->now_ns, work_ns), ES_CPU_DONE,
		  i);
}

static void es_sim_send(struct es_sim *sim, __u32 i)
{
	struct es_client *client = &sim->client[i];
	__u64 bytes = client->left < ES_SEND_BYTES ? client->left : ES_SEND_BYTES;
	__u64 wire_bytes = bytes + es_sim_packets(bytes) * ES_SIM_OVERHEAD_BYTES;
	struct es_station *nic = &sim->node[client->node].station[ES_NIC];

	client->left -= bytes;
	es_sim_at(
		sim,
		es_station_work(nic, sim->now_ns, es_us((double)wire_bytes * 8 / sim->params->net_rate_mbit)),
		ES_SENT, i);
}

static void es_sim_read(struct es_sim *sim, __u32 i)
{
	const struct es_sim_params *params = sim->params;
	struct es_client *client = &sim->client[i];
	__u64 extent = (__u64)(params->disk_extent_kb * 1024);
	__u64 bytes = client->left < extent ? client->left : extent;
	struct es_station *disk = &sim->node[client->node].station[ES_DISK];
	__u64 work_ns = es_us(params->disk_seek_ms * 1e3 + (double)bytes / params->disk_rate_mb);

	client->left -= bytes;
	es_sim_at(sim, es_station_work(disk, sim->now_ns, work_ns), ES_DISK_DONE, i);
}

static void es_sim_cpu_done(struct es_sim *sim, __u32 i)
{
	struct es_client *client = &sim->client[i];
	__u32 file = es_client_file(sim, client);
	struct es_sim_node *node = &sim->node[client->node];

	client->is_streamed = 0;
	client->outcome = ES_MISS;
	if (sim->workload->file[file].is_dynamic)
		client->outcome = ES_COMPUTED;
	else if (es_lru_use(&node->cache, file))
		client->outcome = ES_HIT;
	if (client->outcome != ES_MISS) {
		es_sim_send(sim, i);
		return;
	}
	if (node->reading[file]) {
		client->next = node->reading[file] == ES_READING_ALONE ? 0 : node->reading[file];
		node->reading[file] = i + 1;
		return;
	}
	sim->total[client->node].disk_reads++;
	client->is_streamed = sim->workload->size[file] > node->cache.max_bytes;
	if (!client->is_streamed)
		node->reading[file] = ES_READING_ALONE;
	es_sim_read(sim, i);
}

static void es_sim_disk_done(struct es_sim *sim, __u32 i)
{
	struct es_client *client = &sim->client[i];
	__u32 file = es_client_file(sim, client);
	struct es_sim_node *node = &sim->node[client->node];

	if (client->left) {
		es_sim_read(sim, i);
		return;
	}
	client->left = sim->workload->size[file];
	if (!client->is_streamed) {
		__u32 waits = node->reading[file];

		node->reading[file] = 0;
		es_lru_put(&node->cache, file, sim->workload->size);
		for (; waits && waits != ES_READING_ALONE; waits = sim->client[waits - 1].next)
			es_sim_send(sim, waits - 1);
	}
	es_sim_send(sim, i);
}

static void es_sim_sent(struct es_sim *sim, __u32 i)
{
	struct es_client *client = &sim->client[i];
	__u32 file = es_client_file(sim, client);
	struct es_sim_node *node = &sim->node[client->node];
	struct es_sim_tally *tally = &sim->total[client->node];
	__u64 took_ns = sim->now_ns - client->asked_ns;

	if (client->left) {
		es_sim_send(sim, i);
		return;
	}
	es_sim_node_count(node, sim->now_ns);
	node->active--;
	node->load -= sim->workload->file[file].cost;
	node->mean_ns += ((double)took_ns - node->mean_ns) / (node->mean_ns > 0 ? 100 : 1);
	tally->served++;
	tally->hits += client->outcome == ES_HIT;
	tally->misses += client->outcome == ES_MISS;
	tally->dynamic += client->outcome == ES_COMPUTED;
	tally->bytes += sim->workload->size[file];
	sim->completed++;
	if (!sim->is_measured)
		sim->result->latency[es_latency_class(took_ns)]++;
	if (sim->completed == sim->warm_at && !sim->is_measured)
		es_sim_measure_begin(sim);
	if (++client->at < client->end) {
		es_client_ask(sim, i);
		return;
	}
	node->connections--;
	es_client_open(sim, i);
}

static void es_sim_publish(struct es_sim *sim)
{
	int said;

	for (unsigned int i = 0; i < sim->node_count; i++)
		es_sim_node_shares(&sim->node[i], sim->now_ns, sim->publish_ns);
	said = es_frontend_publish(sim->front);
	if (said < 0)
		sim->error = said;
	else if (said)
		es_sim_at(sim, sim->now_ns + sim->bus_ns, ES_HEAR, 0);
	if (sim->clients_left)
		es_sim_at(sim, sim->now_ns + sim->publish_ns, ES_PUBLISH, 0);
}

/* --- the run */

static void es_sim_happen(struct es_sim *sim, const struct es_sim_event *event)
{
	switch ((enum es_what)event->what) {
	case ES_ASK:
		es_sim_ask(sim, event->whom);
		break;
	case ES_CPU_DONE:
		es_sim_cpu_done(sim, event->whom);
		break;
	case ES_DISK_DONE:
		es_sim_disk_done(sim, event->whom);
		break;
	case ES_SENT:
		es_sim_sent(sim, event->whom);
		break;
	case ES_HEAR:
		es_frontend_hear(sim->front, sim->now_ns);
		break;
	case ES_PUBLISH:
		es_sim_publish(sim);
		break;
	}
}

static int es_sim_init(struct es_sim *sim)
{
	const struct es_sim_params *params = sim->params;
	__u32 clients = es_sim_params_clients(params);
	int rc = 0;

	if (clients > sim->workload->connection_count)
		clients = sim->workload->connection_count;
	sim->node_count = (unsigned int)params->nodes;
	sim->bus_ns = es_us(params->bus_delay_ms * 1e3);
	sim->publish_ns = es_us(params->publish_ms * 1e3);
	sim->warm_at = (__u64)(params->warmup * sim->workload->request_count);
	sim->node = calloc(sim->node_count, sizeof(*sim->node));
	sim->client = calloc(clients + 1, sizeof(*sim->client));
	if (!sim->node || !sim->client)
		return -ENOMEM;
	for (unsigned int i = 0; !rc && i < sim->node_count; i++)
		rc = es_sim_node_init(&sim->node[i], sim->workload->file_count,
				      (__u64)(params->cache_mb * 1048576));
	if (!rc)
		rc = es_frontend_new(params, sim->node, &sim->front);
	if (rc)
		return rc;
	if (!sim->warm_at)
		es_sim_measure_begin(sim);
	sim->client_count = clients;
	sim->clients_left = clients;
	es_sim_at(sim, sim->publish_ns, ES_PUBLISH, 0);
	for (__u32 i = 0; i < clients; i++)
		es_client_open(sim, i);
	return sim->error;
}

static void es_sim_fini(struct es_sim *sim)
{
	es_frontend_free(&sim->front);
	for (unsigned int i = 0; sim->node && i < sim->node_count; i++)
		es_sim_node_fini(&sim->node[i]);
	free(sim->node);
	free(sim->client);
	es_events_fini(&sim->events);
}

static void es_sim_finish(struct es_sim *sim, __u64 last_ns)
{
	struct es_sim_result *result = sim->result;

	sim->now_ns = last_ns;
	if (!sim->is_measured || !result->measured.served) {
		/* Too short to have a middle: all of it counts. */
		memset(sim->at_start, 0, sizeof(sim->at_start));
		result->measured = (struct es_sim_tally){};
		sim->start_ns = 0;
		result->is_whole = 1;
		es_sim_measure_end(sim);
	}
	for (unsigned int i = 0; i < sim->node_count; i++) {
		es_sim_tally(sim, i);
		es_tally_add(&result->total, &sim->total[i]);
		result->cached_bytes += sim->node[i].cache.bytes;
	}
	result->duration_ns = last_ns;
	result->connections = sim->workload->connection_count;
	es_frontend_count(sim->front, &result->front);
}

int es_sim_run(const struct es_sim_params *params, const struct es_workload *workload,
	       void (*progress)(void *ctx, double done), void *ctx, struct es_sim_result *ret_result)
{
	struct es_sim sim = {.params = params, .workload = workload, .result = ret_result};
	struct es_sim_event event;
	__u64 last_ns = 0;
	int rc;

	*ret_result = (struct es_sim_result){};
	rc = es_sim_init(&sim);
	while (!rc && es_events_take(&sim.events, &event)) {
		sim.now_ns = event.at_ns;
		if (event.what < ES_HEAR)
			last_ns = event.at_ns;
		es_sim_happen(&sim, &event);
		rc = sim.error;
		ret_result->events++;
		if (progress && !(ret_result->events % ES_PROGRESS_EVENTS))
			progress(ctx, (double)sim.completed / workload->request_count);
	}
	if (!rc)
		es_sim_finish(&sim, last_ns);
	es_sim_fini(&sim);
	return rc;
}
