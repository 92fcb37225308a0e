// SPDX-License-Identifier: GPL-2.0-or-later
/* Looks at this node's connections, or at its records of another one's, for what a crash would do to them. */
#include <string.h>
#include "inspector/daemon/crash.h"
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/directory.h"
#include "inspector/daemon/downloads.h"
#include "inspector/daemon/waiting.h"
#include "inspector/report/crash.h"

/* es_datapath_flows() gives these to add(). */
struct crash {
	const struct es_daemon *d;
	struct es_report_crash report;
};

static void add(void *ctx, const void *data)
{
	const struct es_track_entry *entry = data;
	struct crash *crash = ctx;
	const struct es_daemon *d = crash->d;
	__u64 flow_hash = es_flow_hash(&d->keys.ring, d->keys.ring_seed, &entry->flow);
	int is_told = es_idle_flows_has_told(d->directory->flows, flow_hash, entry->track.next_request_seq,
					     entry->track.response_seq) ||
		      es_daemon_downloads_go_on(d, flow_hash);

	es_report_crash_add(&crash->report, d->cluster->conf, entry, is_told);
}

int es_daemon_crash_of_self(const struct es_daemon *d, struct json_object **ret_result,
			    struct es_conf_error *err)
{
	const struct es_conf *conf = d->cluster->conf;
	struct crash crash = {.d = d};
	struct es_load_sums sums;
	int rc = es_datapath_flows(d->datapath, add, &crash);

	if (!rc)
		rc = es_datapath_loads(d->datapath, 0, &sums);
	if (rc) {
		es_conf_error_set(err, "datapath: its connections cannot be listed: %s", strerror(-rc));
		return rc;
	}
	for (unsigned int i = 0; i < conf->service_count; i++)
		if (conf->services[i].inspect != ES_INSPECT_EVERY)
			crash.report.fates[i][ES_CRASH_UNREAD] = sums.service[i].flows;
	*ret_result = es_report_crash_finish(&crash.report, conf, conf->nodes[d->cluster->self].name);
	return 0;
}

/* es_directory_list() gives these to kept_add(); @fate: of all in that table */
struct kept {
	const struct es_conf *conf;
	unsigned int owner;
	enum es_crash_fate fate;
	struct es_report_crash report;
};

static void kept_add(void *ctx, const struct es_kept *record, unsigned long long told_ns)
{
	struct kept *kept = ctx;

	(void)told_ns;
	if (record->owner == kept->owner)
		es_report_crash_kept(&kept->report, kept->conf, &record->flow, kept->fate);
}

struct json_object *es_daemon_crash_of_kept(const struct es_daemon *d, unsigned int node, int is_awaited)
{
	const struct es_conf *conf = d->cluster->conf;
	const struct es_report_crash_part part = {
		.node = conf->nodes[node].name,
		.from = conf->nodes[d->cluster->self].name,
		.is_lost = es_health_state(&d->health, node) >= ES_NODE_LEFT,
		.is_awaited = is_awaited,
	};
	struct kept kept = {.conf = conf, .owner = node};
	const struct es_download_kept *download = NULL;

	kept.fate = ES_CRASH_SURVIVES;
	es_directory_list(d->directory->table, ES_DIRECTORY_ENTRIES, kept_add, &kept);
	kept.fate = ES_CRASH_ANSWERING;
	if (d->waiting_clients->table)
		es_directory_list(d->waiting_clients->table, ES_WAITING_ENTRIES, kept_add, &kept);
	while (d->downloads->others && (download = es_downloads_each(d->downloads->others, download)))
		if (download->download.owner == node)
			es_report_crash_kept(&kept.report, conf, &download->download.flow,
					     download->download.flags & ES_DOWNLOAD_F_RESUMES
						     ? ES_CRASH_RESUMES
						     : ES_CRASH_ANSWERING);
	return es_report_crash_part(&kept.report, conf, &part);
}
