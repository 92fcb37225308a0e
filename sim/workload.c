// SPDX-License-Identifier: GPL-2.0-or-later
/* Files and connections, as a trace or a generator adds them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "sim/workload.h"

void es_workload_fini(struct es_workload *workload)
{
	for (__u32 i = 0; workload->file && i < workload->file_count; i++)
		free(workload->file[i].uri);
	free(workload->file);
	free(workload->size);
	free(workload->request);
	free(workload->first);
	*workload = (struct es_workload){};
}

void es_workload_price(struct es_workload *workload, int has_host, double dynamic_cost)
{
	for (__u32 i = 0; i < workload->file_count; i++) {
		struct es_sim_file *f = &workload->file[i];
		__u64 packets = es_sim_packets(workload->size[i]);

		f->name = has_host ? f->uri : f->uri + f->host_len;
		f->content = es_content_hash(f->name, strlen(f->name));
		f->cost = packets < 1u << 30 ? (__u32)packets : 1u << 30;
		if (f->is_dynamic && dynamic_cost > 0)
			f->cost = dynamic_cost < 1 ? 1 : (__u32)dynamic_cost;
	}
}

int es_workload_cut(struct es_workload *workload, __u32 per_connection)
{
	__u32 count = (__u32)(((__u64)workload->request_count + per_connection - 1) / per_connection);
	__u32 *first = calloc((size_t)count + 1, sizeof(*first));

	if (!first)
		return -ENOMEM;
	for (__u32 i = 0; i < count; i++)
		first[i] = i * per_connection;
	first[count] = workload->request_count;
	free(workload->first);
	workload->first = first;
	workload->connection_count = count;
	return 0;
}
