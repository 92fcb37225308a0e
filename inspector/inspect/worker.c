// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The worker threads: an event loop around struct es_inspector. Each turn takes what the ring buffer holds,
 * sends the resulting handovers in one batch, and shows the datapath that the worker runs (the heartbeat).
 */
#include <errno.h>
#include <ev.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include "inspector/base/clock.h"
#include "inspector/inspect/inspect.h"
#include "inspector/plugin/guard.h"
#include "inspector/datapath/ring_reader.h"
#include "inspector/datapath/wake.h"
#include "inspector/inspect/worker.h"

#define ES_TICK_S      0.02
#define ES_DRAIN_TURNS 16

#define ES_HEARTBEAT_NS 1000000ULL

const char *const es_worker_counter_name[ES_WORKER_COUNTER_COUNT] = {
#define X(name, description) #name,
	ES_WORKER_COUNTERS(X)
#undef X
};

const char *const es_worker_counter_description[ES_WORKER_COUNTER_COUNT] = {
#define X(name, description) description,
	ES_WORKER_COUNTERS(X)
#undef X
};

struct es_worker {
	struct es_worker_params params;
	struct es_inspector inspector;
	struct es_ring_reader *ring;
	struct ev_loop *loop;
	struct ev_io queue_io;
	struct ev_io message_io;
	struct ev_timer tick;
	struct ev_io wake_io;
	struct ev_async control;
	struct ev_io watched_io;
	es_worker_fn watched;
	void *watched_ctx;
	int wake_fd;   /* that is watched */
	int socket_fd; /* of es_wake_open(); -1: the datapath has its own way */
	int late;
	pthread_t thread;
	pthread_mutex_t calling; /* one caller at a time */
	/* The control thread's requests; under @lock. */
	pthread_mutex_t lock;
	pthread_cond_t done;
	es_worker_fn fn;
	void *fn_ctx;
	es_worker_fn posted;
	void *posted_ctx;
	int stop;
};

static void es_worker_clock(struct es_worker *w)
{
	__u64 *heartbeat = &es_datapath_state(w->params.datapath)->worker[w->params.id].heartbeat_ns;
	unsigned long long late_ns = w->inspector.cluster->conf->datapath.fallback_after_ms * 1000000ULL;

	w->inspector.now_ns = es_clock_now_ns();
	/*
	 * The datapath has served without this worker. A request that lies in the ring may have been repeated
	 * and served since, and must not be given to a second node. This is done before the heartbeat, since
	 * until then nothing is added.
	 */
	if (w->inspector.now_ns - *heartbeat >= late_ns) {
		w->late = 1;
		es_ring_reader_consume(w->ring);
		w->late = 0;
		es_inspect_forget(&w->inspector);
	}
	/*
	 * The datapath reads it for every packet of this worker, so the cache line must not bounce for each
	 * of them.
	 */
	if (w->inspector.now_ns - *heartbeat >= ES_HEARTBEAT_NS)
		__atomic_store_n(heartbeat, w->inspector.now_ns, __ATOMIC_RELAXED);
}

static void es_worker_flush(struct es_worker *w)
{
	unsigned int lost = es_handover_flush(w->inspector.sender);

	es_tally_sent(w->inspector.tally);
	if (lost)
		atomic_fetch_add_explicit(&w->inspector.count[ES_WORKER_send_failed], lost,
					  memory_order_relaxed);
}

static void es_worker_on_record(void *ctx, const void *data, size_t size)
{
	const struct es_record *record = data;
	struct es_worker *w = ctx;

	if (size < sizeof(*record) + record->len)
		return;
	if (w->late)
		es_inspect_late(&w->inspector, record, (const uint8_t *)(record + 1));
	else
		es_inspect_record(&w->inspector, record, (const uint8_t *)(record + 1));
}

/*
 * Takes everything that is in the ring, until it is empty; then lets the datapath wake the worker again, and
 * looks once more for what has arrived in between. Bounded, so that NACKs and timers have their turn; then
 * the flag stays set, and the event loop returns here by itself.
 */
static void es_worker_drain(struct es_worker *w)
{
	__u32 *awake = &es_datapath_state(w->params.datapath)->worker[w->params.id].awake;
	int taken;

	for (int turn = 0; turn < ES_DRAIN_TURNS; turn++) {
		__atomic_store_n(awake, 1, __ATOMIC_RELAXED);
		es_worker_clock(w);
		taken = es_ring_reader_consume(w->ring);
		es_worker_flush(w);
		if (taken > 0)
			continue;
		__atomic_store_n(awake, 0, __ATOMIC_SEQ_CST);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (es_ring_reader_consume(w->ring) <= 0)
			return;
		es_worker_flush(w);
	}
	ev_feed_event(w->loop, &w->queue_io, EV_READ | EV_CUSTOM);
}

static void es_worker_on_queue(struct ev_loop *loop, struct ev_io *io, int events)
{
	struct es_worker *w = io->data;

	(void)loop;
	/*
	 * The module wakes through the ring buffer. An event that es_worker_drain() has fed is not a wake-up.
	 */
	if (!(events & EV_CUSTOM))
		atomic_fetch_add_explicit(&w->inspector.count[ES_WORKER_woken], 1, memory_order_relaxed);
	es_worker_drain(w);
}

static void es_worker_on_wake(struct ev_loop *loop, struct ev_io *io, int events)
{
	struct es_worker *w = io->data;

	(void)loop;
	(void)events;
	atomic_fetch_add_explicit(&w->inspector.count[ES_WORKER_woken], es_wake_drain(w->wake_fd),
				  memory_order_relaxed);
	es_worker_drain(w);
}

static void es_worker_on_message(struct ev_loop *loop, struct ev_io *io, int events)
{
	struct es_worker *w = io->data;

	(void)loop;
	(void)events;
	es_worker_clock(w);
	es_inspect_messages(&w->inspector);
	es_worker_flush(w);
}

static void es_worker_on_watched(struct ev_loop *loop, struct ev_io *io, int events)
{
	struct es_worker *w = io->data;

	(void)loop;
	(void)events;
	es_worker_clock(w);
	w->watched(&w->inspector, w->watched_ctx);
	es_worker_flush(w);
}

static void es_worker_on_tick(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct es_worker *w = timer->data;

	(void)loop;
	(void)events;
	es_worker_drain(w);
	es_inspect_deadlines(&w->inspector);
	es_worker_flush(w);
}

static void es_worker_on_control(struct ev_loop *loop, struct ev_async *async, int events)
{
	struct es_worker *w = async->data;

	(void)events;
	pthread_mutex_lock(&w->lock);
	if (w->fn) {
		es_worker_clock(w);
		w->fn(&w->inspector, w->fn_ctx);
		w->fn = NULL;
		pthread_cond_signal(&w->done);
	}
	if (w->posted) {
		w->posted(&w->inspector, w->posted_ctx);
		w->posted = NULL;
	}
	if (w->stop)
		ev_break(loop, EVBREAK_ALL);
	pthread_mutex_unlock(&w->lock);
}

static void *es_worker_main(void *arg)
{
	const struct sched_param param = {.sched_priority = 0};
	struct es_worker *w = arg;

	/*
	 * A batch thread does not preempt the one that woke it: on a busy CPU it runs when that one has done
	 * its share, and then finds many packets for one wake-up. It costs nothing where a CPU is idle, and
	 * saves an eighth of the CPU time per request where none is (tests/bench). If the kernel refuses, no
	 * harm is done.
	 */
	pthread_setschedparam(pthread_self(), SCHED_BATCH, &param);
	es_guard_thread();
	if (w->params.mark) {
		es_guard_number(&w->params.mark->busy);
		w->params.mark->tid = (__u32)gettid();
	}
	ev_run(w->loop, 0);
	return NULL;
}

static int es_worker_start(struct es_worker *w)
{
	sigset_t all, before;
	int rc;

	ev_io_init(&w->queue_io, es_worker_on_queue, es_datapath_queue_fd(w->params.datapath, w->params.id),
		   EV_READ);
	ev_io_init(&w->message_io, es_worker_on_message, es_handover_sender_fd(w->inspector.sender), EV_READ);
	ev_timer_init(&w->tick, es_worker_on_tick, ES_TICK_S, ES_TICK_S);
	ev_io_init(&w->wake_io, es_worker_on_wake, w->wake_fd, EV_READ);
	ev_async_init(&w->control, es_worker_on_control);
	w->queue_io.data = w->message_io.data = w->wake_io.data = w->tick.data = w->control.data = w;
	if (w->socket_fd >= 0)
		ev_io_start(w->loop, &w->queue_io);
	ev_io_start(w->loop, &w->message_io);
	ev_timer_start(w->loop, &w->tick);
	ev_io_start(w->loop, &w->wake_io);
	ev_async_start(w->loop, &w->control);
	es_worker_clock(w);
	/* The control thread takes all signals but those of es_guard_thread(). */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = -pthread_create(&w->thread, NULL, es_worker_main, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

static void es_worker_destroy(struct es_worker *w)
{
	es_ring_reader_free(&w->ring);
	if (w->loop)
		ev_loop_destroy(w->loop);
	es_inspector_fini(&w->inspector);
	if (w->socket_fd >= 0)
		close(w->socket_fd);
	pthread_cond_destroy(&w->done);
	pthread_mutex_destroy(&w->lock);
	pthread_mutex_destroy(&w->calling);
	free(w);
}

int es_worker_new(const struct es_worker_params *params, const struct es_cluster *cluster,
		  struct es_worker **ret_worker)
{
	struct es_worker *w = calloc(1, sizeof(*w));
	int rc;

	if (!w)
		return -ENOMEM;
	w->params = *params;
	pthread_mutex_init(&w->lock, NULL);
	pthread_mutex_init(&w->calling, NULL);
	pthread_cond_init(&w->done, NULL);
	w->socket_fd = -1;
	rc = es_inspector_init(&w->inspector, &w->params, cluster);
	if (rc) {
		w->inspector.raw = ES_RAW_CLOSED;
		goto err_destroy;
	}
	if (es_datapath_mark(params->datapath))
		rc = es_raw_mark(&w->inspector.raw, es_datapath_mark(params->datapath));
	if (rc)
		goto err_destroy;
	w->wake_fd = es_datapath_wake_fd(params->datapath, params->id);
	if (w->wake_fd < 0)
		rc = w->wake_fd = w->socket_fd = es_wake_open(params->id);
	if (rc < 0)
		goto err_destroy;
	rc = es_ring_reader_new(es_datapath_queue_fd(params->datapath, params->id),
				es_datapath_queue_bytes(params->datapath), es_worker_on_record, w, &w->ring);
	if (rc)
		goto err_destroy;
	rc = -ENOMEM;
	w->loop = ev_loop_new(EVFLAG_AUTO);
	if (!w->loop)
		goto err_destroy;
	rc = es_worker_start(w);
	if (rc)
		goto err_destroy;
	*ret_worker = w;
	return 0;

err_destroy:
	es_worker_destroy(w);
	return rc;
}

void es_worker_call(struct es_worker *w, es_worker_fn fn, void *ctx)
{
	pthread_mutex_lock(&w->calling);
	pthread_mutex_lock(&w->lock);
	w->fn = fn;
	w->fn_ctx = ctx;
	ev_async_send(w->loop, &w->control);
	while (w->fn)
		pthread_cond_wait(&w->done, &w->lock);
	pthread_mutex_unlock(&w->lock);
	pthread_mutex_unlock(&w->calling);
}

int es_worker_post(struct es_worker *w, es_worker_fn fn, void *ctx)
{
	int rc = -EBUSY;

	if (pthread_mutex_trylock(&w->lock))
		return rc;
	if (!w->posted) {
		w->posted = fn;
		w->posted_ctx = ctx;
		ev_async_send(w->loop, &w->control);
		rc = 0;
	}
	pthread_mutex_unlock(&w->lock);
	return rc;
}

static void watch(struct es_inspector *inspector, void *ctx)
{
	struct es_worker *w = ctx;

	(void)inspector;
	ev_io_start(w->loop, &w->watched_io);
}

void es_worker_watch(struct es_worker *w, int fd, es_worker_fn fn, void *ctx)
{
	ev_io_init(&w->watched_io, es_worker_on_watched, fd, EV_READ);
	w->watched_io.data = w;
	w->watched = fn;
	w->watched_ctx = ctx;
	es_worker_call(w, watch, w);
}

struct cluster_change {
	const struct es_cluster *cluster;
	const struct es_keys *keys;
	int rc;
};

static void cluster_change(struct es_inspector *inspector, void *ctx)
{
	struct cluster_change *change = ctx;

	change->rc = es_inspector_set_cluster(inspector, change->cluster, change->keys);
}

int es_worker_set_cluster(struct es_worker *w, const struct es_cluster *cluster, const struct es_keys *keys)
{
	struct cluster_change change = {.cluster = cluster, .keys = keys};

	es_worker_call(w, cluster_change, &change);
	return change.rc;
}

struct lesson {
	const struct es_proof *proofs;
	size_t count;
};

static void learn(struct es_inspector *inspector, void *ctx)
{
	const struct es_worker_params *params = inspector->params;
	const struct lesson *lesson = ctx;

	for (size_t i = 0; i < lesson->count; i++)
		if (es_worker_of(lesson->proofs[i].flow_hash, params->count) == params->id)
			es_inspector_learn(inspector, &lesson->proofs[i], 1);
}

void es_worker_learn(struct es_worker *w, const struct es_proof *proofs, size_t count)
{
	struct lesson lesson = {.proofs = proofs, .count = count};

	if (count)
		es_worker_call(w, learn, &lesson);
}

void es_worker_free(struct es_worker **worker)
{
	struct es_worker *w = *worker;

	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stop = 1;
	ev_async_send(w->loop, &w->control);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	es_worker_destroy(w);
	*worker = NULL;
}

unsigned long long es_worker_count(const struct es_worker *w, enum es_worker_counter counter)
{
	return atomic_load_explicit(&w->inspector.count[counter], memory_order_relaxed);
}

struct es_evidence_ring *es_worker_evidence(struct es_worker *worker)
{
	return &worker->inspector.unheard.evidence;
}

unsigned int es_worker_gathering(const struct es_worker *w)
{
	return es_gather_count(w->inspector.gathers);
}

const struct es_tally *es_worker_tally(const struct es_worker *w)
{
	return w->inspector.tally;
}
