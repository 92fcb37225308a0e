// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * earshot-walk PUBLIC CLUSTER SETS connections|end: what the BPF datapath that is attached in this namespace
 * tells of its connections, as struct es_connection_entry on standard output; or end the unproven ones, and
 * tell which. As the daemon would (inspector/datapath/datapath.h), beside it. SETS: decision_sets of its
 * configuration.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <net/if.h>
#include "inspector/datapath/datapath.h"

#define ENTRIES_MAX 4096

struct found {
	struct es_connection_entry entry[ENTRIES_MAX];
	unsigned int count;
	int unproven_only;
};

static void on_entry(void *ctx, const void *entry)
{
	const struct es_connection_entry *e = entry;
	struct found *found = ctx;

	if (found->count < ENTRIES_MAX && (e->unproven || e->is_ceded || !found->unproven_only))
		found->entry[found->count++] = *e;
}

static int walk(struct es_datapath *dp, int end)
{
	static struct found found;
	unsigned int ended = 0;
	int rc;

	found.unproven_only = end;
	rc = es_datapath_connections(dp, on_entry, &found);
	if (!rc && end) {
		rc = es_datapath_end_unproven(dp, &ended);
		if (!rc && ended && ended != found.count)
			return -EPROTO;
		if (!ended)
			found.count = 0;
	}
	if (!rc)
		fwrite(found.entry, sizeof(found.entry[0]), found.count, stdout);
	return rc;
}

int main(int argc, char **argv)
{
	struct es_datapath_params params = {.workers = 1, .queue_bytes = (size_t)sysconf(_SC_PAGESIZE)};
	struct es_datapath *dp = NULL;
	char err[512] = "";
	int rc;

	if (argc != 5)
		return 2;
	params.public_ifindex = if_nametoindex(argv[1]);
	params.cluster_ifindex = if_nametoindex(argv[2]);
	params.decision_sets = (unsigned int)strtoul(argv[3], NULL, 10);
	rc = es_datapath_new(ES_DATAPATH_BPF, &params, err, sizeof(err), &dp);
	if (!rc && !es_datapath_adopted(dp))
		rc = -ENOENT;
	if (!rc) {
		fprintf(stderr, "%s\n", es_datapath_note(dp));
		rc = walk(dp, !strcmp(argv[4], "end"));
	}
	if (rc)
		fprintf(stderr, "earshot-walk: %s: %s\n", err, strerror(-rc));
	es_datapath_free(&dp);
	return rc ? 1 : 0;
}
