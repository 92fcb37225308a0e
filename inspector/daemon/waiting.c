// SPDX-License-Identifier: GPL-2.0-or-later
/* Clients of lost nodes that wait for an answer: a thread asks each, and a worker the nodes. */
#include <stdlib.h>
#include "inspector/base/clock.h"
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/heard.h"
#include "inspector/daemon/keepers.h"
#include "inspector/daemon/membership.h"
#include "inspector/daemon/waiting.h"
#include "kmod/core/decisions.h"

void es_daemon_waiting_prepare(struct es_daemon *d)
{
	struct es_resume_params *ask = &d->waiting_clients->ask;

	ask->raw = ES_RAW_CLOSED;
	ask->lease_ns = &es_datapath_state(d->datapath)->lease_ns;
}

void es_daemon_waiting_rebind(struct es_daemon *d, int is_wanted)
{
	struct es_daemon_waiting *waiting = d->waiting_clients;

	es_directory_free(&waiting->table);
	if (!is_wanted || (waiting->ask.raw.v4_fd < 0 && es_raw_open(&waiting->ask.raw)))
		return;
	es_directory_new(ES_WAITING_ENTRIES, &waiting->table);
}

void es_daemon_waiting_hear(struct es_daemon *d, __u64 flow_hash, const struct es_kept_word *word)
{
	if (!d->waiting_clients->table)
		return;
	if (word->what == ES_KEPT_WAITS)
		es_directory_keep(d->waiting_clients->table, flow_hash, &word->kept, es_clock_now_ns());
	else
		es_directory_forget(d->waiting_clients->table, flow_hash, word->kept.owner);
}

void es_daemon_waiting_orphan(struct es_daemon *d, const unsigned long long over_ns[ES_NODES_MAX],
			      unsigned long long now_ns)
{
	if (d->waiting_clients->table)
		es_directory_orphan(d->waiting_clients->table, over_ns, d->heard->at_ns, now_ns);
}

void es_daemon_waiting_expire(struct es_daemon *d, const unsigned long long lost_ns[ES_NODES_MAX],
			      unsigned long long now_ns)
{
	if (d->waiting_clients->table)
		es_directory_expire(d->waiting_clients->table, lost_ns, now_ns);
}

void es_daemon_waiting_figures(const struct es_daemon *d, struct es_directory_figures *ret_figures)
{
	*ret_figures = (struct es_directory_figures){};
	if (d->waiting_clients->table)
		es_directory_figures(d->waiting_clients->table, ret_figures);
}

static struct es_resume **free_job(struct es_daemon_waiting *waiting)
{
	for (unsigned int i = 0; i < ES_WAITING_JOBS; i++)
		if (!waiting->job[i])
			return &waiting->job[i];
	return NULL;
}

/* Returns 0, or -1: it waits for its turn. */
static int job_start(struct es_daemon *d, __u64 flow_hash, const struct es_kept *kept,
		     unsigned long long told_ns, unsigned long long now_ns)
{
	struct es_resume **job = free_job(d->waiting_clients), *ask = job ? calloc(1, sizeof(*ask)) : NULL;

	if (!ask)
		return -1;
	ask->params = &d->waiting_clients->ask;
	ask->only_asks = 1;
	ask->flow_hash = flow_hash;
	ask->started_ns = now_ns;
	ask->download = (struct es_download){
		.flow = kept->flow,
		.options = kept->options,
		.next_request_seq = kept->seq,
		.response_seq = kept->ack,
		.tsval = kept->requests + (__u32)((now_ns - told_ns) / 1000000),
		.owner = kept->owner,
	};
	if (es_resume_start(ask)) {
		free(ask);
		return -1;
	}
	*job = ask;
	return 0;
}

/* es_directory_take_orphans() gives this to take(). */
struct look {
	struct es_daemon *d;
	int (*is_known)(const struct es_daemon *d, __u64 flow_hash);
	unsigned long long now_ns;
};

/* Returns 1 if nothing is left to be done about it. */
static int take(void *ctx, __u64 flow_hash, const struct es_kept *kept, unsigned long long told_ns)
{
	struct look *look = ctx;
	struct es_daemon *d = look->d;
	const __u64 *lease_ns = &es_datapath_state(d->datapath)->lease_ns;

	/* Its node is back, and tells anew what it still has. */
	if (es_health_state(&d->health, kept->owner) <= ES_NODE_LEFT || look->is_known(d, flow_hash))
		return 1;
	if (!d->membership || es_membership_hears(d->membership, kept->owner) ||
	    !es_cluster_inspects(d->cluster, flow_hash) ||
	    look->now_ns >= __atomic_load_n(lease_ns, __ATOMIC_ACQUIRE))
		return 0;
	return !job_start(d, flow_hash, kept, told_ns, look->now_ns);
}

/* Runs in the worker's thread. */
static void ask_nodes(struct es_inspector *in, void *ctx)
{
	struct es_waiting_post *post = ctx;

	for (unsigned int i = 0; i < post->count; i++)
		es_inspect_waiting(in, &post->client[i]);
	post->count = 0;
	atomic_store_explicit(&post->is_posted, 0, memory_order_release);
}

/* Its thread has a result; with it, it waits for its turn if the worker has no room. */
static void job_end(struct es_daemon *d, struct es_resume **job)
{
	unsigned int worker = es_worker_of((*job)->flow_hash, d->datapath_params.workers);
	int service = es_daemon_service_of(d->conf, &(*job)->download.flow);
	struct es_waiting_post *post = &d->waiting_clients->post[worker];

	if (atomic_load(&(*job)->result) == ES_RESUME_WAITS && service >= 0) {
		if (atomic_load_explicit(&post->is_posted, memory_order_acquire) ||
		    post->count == sizeof(post->client) / sizeof(post->client[0]))
			return;
		post->client[post->count++] = (struct es_waiting_client){
			.flow = (*job)->download.flow,
			.flow_hash = (*job)->flow_hash,
			.service = (unsigned int)service,
			.owner = (*job)->download.owner,
			.seq = (*job)->client.seq,
			.ack = (*job)->client.ack,
		};
	}
	es_resume_end(job);
}

static void posts_send(struct es_daemon *d)
{
	for (unsigned int i = 0; i < d->datapath_params.workers; i++) {
		struct es_waiting_post *post = &d->waiting_clients->post[i];

		if (atomic_load_explicit(&post->is_posted, memory_order_acquire) || !post->count)
			continue;
		atomic_store_explicit(&post->is_posted, 1, memory_order_relaxed);
		if (es_worker_post(d->worker[i], ask_nodes, post)) /* it is busy: next time */
			atomic_store_explicit(&post->is_posted, 0, memory_order_relaxed);
	}
}

void es_daemon_waiting_look(struct es_daemon *d,
			    int (*is_known)(const struct es_daemon *daemon, __u64 flow_hash))
{
	struct look look = {.d = d, .is_known = is_known, .now_ns = es_clock_now_ns()};
	struct es_daemon_waiting *waiting = d->waiting_clients;

	if (waiting->table)
		es_directory_take_orphans(waiting->table, take, &look);
	for (unsigned int i = 0; i < ES_WAITING_JOBS; i++)
		if (waiting->job[i] && atomic_load(&waiting->job[i]->result) != ES_RESUME_UNDER_WAY)
			job_end(d, &waiting->job[i]);
	posts_send(d);
}

void es_daemon_waiting_stop(struct es_daemon *d)
{
	struct es_daemon_waiting *waiting = d->waiting_clients;

	if (!waiting->ask.lease_ns)
		return;
	atomic_store(&waiting->ask.stop, 1);
	for (unsigned int i = 0; i < ES_WAITING_JOBS; i++)
		es_resume_end(&waiting->job[i]);
	es_raw_close(&waiting->ask.raw);
	es_directory_free(&waiting->table);
}
