// SPDX-License-Identifier: GPL-2.0-or-later
/* Long responses: this node's, those of others, and what is done about those whose node is lost. */
#include <stdlib.h>
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/base/wall.h"
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/directory.h"
#include "inspector/daemon/downloads.h"
#include "inspector/daemon/exchange.h"
#include "inspector/daemon/keepers.h"
#include "inspector/peers/download_words.h"

static int is_wanted(const struct es_daemon *d)
{
	/* Connections of others do not stand still without a lease. */
	if (!es_datapath_tells_downloads(d->datapath) ||
	    d->conf->cluster.membership != ES_CONF_MEMBERSHIP_COROSYNC)
		return 0;
	for (unsigned int i = 0; i < d->conf->service_count; i++)
		if (d->conf->services[i].resume)
			return 1;
	return 0;
}

static const struct es_conf_service *service_of(const struct es_daemon *d, const struct es_flow *flow)
{
	int service = es_daemon_service_of(d->conf, flow);

	return service >= 0 && d->conf->services[service].resume ? &d->conf->services[service] : NULL;
}

static void tell(struct es_daemon *d, unsigned int node, const struct es_download_word *word)
{
	struct es_daemon_downloads *downloads = d->downloads;
	struct es_download_message message;
	__u64 number = es_number_ns();
	size_t len;

	if (node >= d->conf->node_count || node == d->cluster->self)
		return;
	downloads->sequence = number > downloads->sequence ? number : downloads->sequence + 1;
	len = es_download_message_make(&message, d->cluster->self, node, downloads->sequence, es_wall_ns(),
				       word, &d->keys.key[0].handover);
	es_daemon_send(d, node, &message, len);
}

/* Tells those who keep it, and are none of @now, that it is over. */
static void take_back(struct es_daemon *d, const struct es_download_kept *kept,
		      const __u16 now[ES_KEEPERS_MAX])
{
	struct es_download_word word = {.is_over = 1, .download.flow = kept->download.flow};

	for (unsigned int i = 0; i < ES_KEEPERS_MAX; i++)
		if (kept->keeper[i] != ES_NODE_NONE && kept->keeper[i] != now[0] && kept->keeper[i] != now[1])
			tell(d, kept->keeper[i], &word);
}

static void drop_own(struct es_daemon *d, struct es_download_kept *kept)
{
	static const __u16 nobody[ES_KEEPERS_MAX] = {ES_NODE_NONE, ES_NODE_NONE};

	take_back(d, kept, nobody);
	es_downloads_drop(d->downloads->own, kept);
}

static void tsval_advance(struct es_download *download, unsigned long long ns)
{
	download->tsval += (__u32)(ns / 1000000);
}

/* It is under way still: have its keepers been told, lately? */
static void keep_told(struct es_daemon *d, struct es_download_kept *kept, unsigned long long now_ns)
{
	const struct es_conf_service *service = service_of(d, &kept->download.flow);
	struct es_download_word word;
	__u16 keeper[ES_KEEPERS_MAX];

	if (!service)
		return;
	es_daemon_keepers_of(d, kept->flow_hash, service->survive, (__u16)d->cluster->self, keeper);
	if (!memcmp(keeper, kept->keeper, sizeof(keeper)) && now_ns - kept->told_ns < ES_DOWNLOAD_AGAIN_NS)
		return;
	take_back(d, kept, keeper);
	memcpy(kept->keeper, keeper, sizeof(keeper));
	tsval_advance(&kept->download, now_ns - kept->told_ns);
	kept->told_ns = now_ns;
	word = (struct es_download_word){.download = kept->download};
	for (unsigned int i = 0; i < ES_KEEPERS_MAX; i++)
		tell(d, keeper[i], &word);
}

static void own_add(struct es_daemon *d, __u64 flow_hash, const struct es_download *download, int is_resumed)
{
	struct es_download_kept *kept =
		es_downloads_keep(d->downloads->own, flow_hash, download, es_clock_now_ns());

	if (!kept)
		return;
	kept->is_seen = 1;
	kept->is_resumed = (__u8)is_resumed;
	kept->download.owner = (__u8)d->cluster->self;
	keep_told(d, kept, kept->told_ns);
}

static void on_entry(void *ctx, const struct es_download_entry *entry)
{
	struct es_daemon *d = ctx;
	struct es_download download;

	if (!d->downloads->own || !service_of(d, &entry->flow))
		return;
	es_resume_describe(entry, d->cluster->self, &download);
	own_add(d, es_flow_hash(&d->keys.ring, d->keys.ring_seed, &entry->flow), &download, 0);
}

void es_daemon_downloads_look(struct es_daemon *d)
{
	struct es_download_kept *kept = NULL;

	if (!d->downloads->own)
		return;
	/* Those whose heads have just been sent are seen, or over. */
	es_datapath_downloads(d->datapath, on_entry, d);
	while ((kept = es_downloads_each(d->downloads->own, kept)))
		kept->is_seen = kept->is_resumed;
}

void es_daemon_downloads_see(struct es_daemon *d, const struct es_track_entry *entry, __u64 flow_hash)
{
	struct es_download_kept *kept;

	if (!d->downloads->own || !(entry->track.request_flags & ES_REQUEST_F_LONG))
		return;
	kept = es_downloads_find(d->downloads->own, flow_hash);
	if (kept && kept->download.next_request_seq == entry->track.next_request_seq)
		kept->is_seen = 1;
}

void es_daemon_downloads_seen(struct es_daemon *d)
{
	unsigned long long now_ns = es_clock_now_ns();
	struct es_download_kept *kept, *next;

	if (!d->downloads->own)
		return;
	for (kept = es_downloads_each(d->downloads->own, NULL); kept; kept = next) {
		next = es_downloads_each(d->downloads->own, kept);
		if (kept->is_seen)
			keep_told(d, kept, now_ns);
		else
			drop_own(d, kept);
	}
}

int es_daemon_downloads_message(struct es_daemon *d, const void *data, size_t len)
{
	struct es_daemon_downloads *downloads = d->downloads;
	const struct es_download *download;
	struct es_download_kept *kept;
	struct es_download_word word;
	__u64 flow_hash;
	int rc = es_download_message_read(data, len, d->cluster->self, d->conf->node_count, &d->keys,
					  es_wall_ns(), downloads->heard, &word);

	if (rc || !downloads->others)
		return rc;
	download = &word.download;
	flow_hash = es_flow_hash(&d->keys.ring, d->keys.ring_seed, &download->flow);
	if (!word.is_over && service_of(d, &download->flow)) {
		es_downloads_keep(downloads->others, flow_hash, download, es_clock_now_ns());
		downloads->figures.told++;
		return 0;
	}
	kept = es_downloads_find(downloads->others, flow_hash);
	if (kept && kept->download.owner == download->owner)
		es_downloads_drop(downloads->others, kept);
	return 0;
}

/* Has its node been lost since it told it, is that one's lease over, and is the flow this node's now? */
static int is_orphan(const struct es_daemon *d, const struct es_download_kept *kept,
		     unsigned long long now_ns)
{
	const __u64 *lease_ns = &es_datapath_state(d->datapath)->lease_ns;
	unsigned int owner = kept->download.owner;

	return es_health_lost_ns(&d->health, owner) > kept->told_ns &&
	       es_health_state(&d->health, owner) != ES_NODE_LEFT &&
	       es_cluster_inspects(d->cluster, kept->flow_hash) &&
	       now_ns < __atomic_load_n(lease_ns, __ATOMIC_ACQUIRE);
}

static struct es_resume **free_job(struct es_daemon_downloads *downloads)
{
	for (unsigned int i = 0; i < ES_DOWNLOADS_JOBS; i++)
		if (!downloads->job[i])
			return &downloads->job[i];
	return NULL;
}

/* Returns 0, or -1: it waits for its turn. */
static int job_start(struct es_daemon *d, const struct es_download_kept *kept)
{
	struct es_resume **job = free_job(d->downloads), *resume = job ? calloc(1, sizeof(*resume)) : NULL;

	if (!resume)
		return -1;
	resume->params = &d->downloads->resume;
	resume->download = kept->download;
	resume->started_ns = es_clock_now_ns();
	tsval_advance(&resume->download, resume->started_ns - kept->told_ns);
	resume->flow_hash = kept->flow_hash;
	if (es_resume_start(resume)) {
		free(resume);
		return -1;
	}
	*job = resume;
	return 0;
}

static void others_look(struct es_daemon *d, unsigned long long now_ns)
{
	struct es_downloads *others = d->downloads->others;
	struct es_download_kept *kept, *next;

	for (kept = es_downloads_each(others, NULL); kept; kept = next) {
		next = es_downloads_each(others, kept);
		if (now_ns - kept->told_ns >= ES_DOWNLOAD_LIFE_NS ||
		    (is_orphan(d, kept, now_ns) && !job_start(d, kept)))
			es_downloads_drop(others, kept);
	}
}

/* Its thread has a result. */
static void job_end(struct es_daemon *d, struct es_resume **job)
{
	struct es_resume_figures *figures = &d->downloads->figures;
	const struct es_resume *resume = *job;
	struct es_download_kept *kept =
		d->downloads->own ? es_downloads_find(d->downloads->own, resume->flow_hash) : NULL;

	switch (atomic_load(&resume->result)) {
	case ES_RESUME_WHOLE:
		figures->whole++;
		break;
	case ES_RESUME_BROKEN:
		figures->broken++;
		break;
	case ES_RESUME_RESET:
		figures->reset[resume->why]++;
		break;
	default:
		break;
	}
	if (kept && kept->is_resumed)
		drop_own(d, kept);
	es_resume_end(job);
}

/* It is this node's response from now on. */
static void job_own(struct es_daemon *d, const struct es_resume *resume)
{
	struct es_download download = resume->download;

	tsval_advance(&download, es_clock_now_ns() - resume->started_ns);
	own_add(d, resume->flow_hash, &download, 1);
}

static void jobs_look(struct es_daemon *d)
{
	for (unsigned int i = 0; i < ES_DOWNLOADS_JOBS; i++) {
		struct es_resume **job = &d->downloads->job[i];

		if (!*job)
			continue;
		if (atomic_load(&(*job)->result) != ES_RESUME_UNDER_WAY)
			job_end(d, job);
		else if (d->downloads->own && atomic_exchange(&(*job)->is_sending, 0))
			job_own(d, *job);
	}
}

static void on_timer(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct es_daemon *d = timer->data;

	(void)loop;
	(void)events;
	es_datapath_downloads(d->datapath, on_entry, d);
	others_look(d, es_clock_now_ns());
	jobs_look(d);
}

int es_daemon_downloads_prepare(struct es_daemon *d)
{
	struct es_resume_params *params = &d->downloads->resume;

	ev_timer_init(&d->downloads->timer, on_timer, ES_DOWNLOADS_LOOK_MS / 1000.0,
		      ES_DOWNLOADS_LOOK_MS / 1000.0);
	d->downloads->timer.data = d;
	params->raw = ES_RAW_CLOSED;
	params->directory = d->directory->table;
	params->lease_ns = &es_datapath_state(d->datapath)->lease_ns;
	return is_wanted(d) ? es_raw_open(&params->raw) : 0;
}

void es_daemon_downloads_rebind(struct es_daemon *d)
{
	struct es_daemon_downloads *downloads = d->downloads;

	/* Nodes may have other numbers now: all is told anew. Threads go on. */
	ev_timer_stop(d->loop, &downloads->timer);
	es_downloads_free(&downloads->own);
	es_downloads_free(&downloads->others);
	if (!is_wanted(d) || (downloads->resume.raw.v4_fd < 0 && es_raw_open(&downloads->resume.raw)) ||
	    es_downloads_new(ES_DOWNLOADS_MAX, &downloads->own))
		return;
	if (es_downloads_new(ES_DOWNLOADS_MAX, &downloads->others)) {
		es_downloads_free(&downloads->own);
		return;
	}
	ev_timer_start(d->loop, &downloads->timer);
}

int es_daemon_downloads_go_on(const struct es_daemon *d, __u64 flow_hash)
{
	const struct es_download_kept *kept =
		d->downloads->own ? es_downloads_find(d->downloads->own, flow_hash) : NULL;

	return kept && (kept->download.flags & ES_DOWNLOAD_F_RESUMES);
}

int es_daemon_downloads_knows(const struct es_daemon *d, const struct es_track_entry *entry, __u64 flow_hash)
{
	const struct es_download_kept *kept =
		d->downloads->own ? es_downloads_find(d->downloads->own, flow_hash) : NULL;

	return kept && kept->download.next_request_seq == entry->track.next_request_seq;
}

int es_daemon_downloads_has(const struct es_daemon *d, __u64 flow_hash)
{
	for (unsigned int i = 0; i < ES_DOWNLOADS_JOBS; i++)
		if (d->downloads->job[i] && d->downloads->job[i]->flow_hash == flow_hash)
			return 1;
	return d->downloads->others && es_downloads_find(d->downloads->others, flow_hash);
}

void es_daemon_downloads_stop(struct es_daemon *d)
{
	struct es_daemon_downloads *downloads = d->downloads;

	if (!downloads->timer.data)
		return;
	ev_timer_stop(d->loop, &downloads->timer);
	atomic_store(&downloads->resume.stop, 1);
	for (unsigned int i = 0; i < ES_DOWNLOADS_JOBS; i++)
		es_resume_end(&downloads->job[i]);
	es_raw_close(&downloads->resume.raw);
	es_downloads_free(&downloads->own);
	es_downloads_free(&downloads->others);
}
