// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From requests to connections.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "sim/trace.h"

/* struct es_trace_client - its connection, and how many requests more this one takes */
struct es_trace_client {
	__u32 connection;
	__u32 left;
	__s64 last_s;
};

static __u32 es_trace_assign(const struct es_trace *trace, __u32 per_connection, double keepalive_s,
			     struct es_trace_client *client, __u32 *ret_connection)
{
	__u32 count = 0;

	for (size_t i = 0; i < trace->request_count; i++) {
		const struct es_trace_request *r = &trace->request[i];
		struct es_trace_client *c = &client[r->client];

		if (!c->left || (double)(r->time_s - c->last_s) > keepalive_s) {
			c->connection = count++;
			c->left = per_connection;
		}
		c->left--;
		c->last_s = r->time_s;
		ret_connection[i] = c->connection;
	}
	return count;
}

int es_trace_workload(struct es_trace *trace, __u32 per_connection, double keepalive_s,
		      struct es_workload *ret_workload)
{
	struct es_trace_client *client = calloc((size_t)trace->clients.count + 1, sizeof(*client));
	__u32 *connection = calloc(trace->request_count + 1, sizeof(*connection));
	struct es_workload w = {
		.request_count = (__u32)trace->request_count,
		.file_count = trace->files.count,
	};
	__u32 *next = NULL;
	int rc = trace->request_count ? -ENOMEM : -ENODATA;

	if (!client || !connection || !trace->request_count)
		goto out;
	w.connection_count = es_trace_assign(trace, per_connection, keepalive_s, client, connection);
	w.first = calloc((size_t)w.connection_count + 1, sizeof(*w.first));
	w.request = calloc(w.request_count, sizeof(*w.request));
	next = calloc((size_t)w.connection_count + 1, sizeof(*next));
	if (!w.first || !w.request || !next) {
		free(w.first);
		free(w.request);
		goto out;
	}
	for (__u32 i = 0; i < w.request_count; i++)
		w.first[connection[i] + 1]++;
	for (__u32 i = 0; i < w.connection_count; i++)
		w.first[i + 1] += w.first[i];
	memcpy(next, w.first, ((size_t)w.connection_count + 1) * sizeof(*next));
	for (__u32 i = 0; i < w.request_count; i++)
		w.request[next[connection[i]]++] = trace->request[i].file;
	w.file = trace->file;
	w.size = trace->size;
	trace->file = NULL;
	trace->size = NULL;
	*ret_workload = w;
	rc = 0;
out:
	free(next);
	free(connection);
	free(client);
	return rc;
}
