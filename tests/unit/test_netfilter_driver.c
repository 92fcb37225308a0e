// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The netfilter driver's reports about the engine to the rest of the daemon, with an engine that is played.
 */
#include "cmocka_all.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "inspector/base/clock.h"
#include "inspector/datapath/internal.h"
#include "netfilter/engine/engine.h"

#define QUEUE_BYTES 65536

struct es_nf_engine {
	struct es_nf_memory memory;
	struct es_nf_ring *queue;
	unsigned long long reads_ns; /* since when it has read the queue */
};

static struct es_nf_engine played;

int es_nf_engine_new(const struct es_nf_engine_params *params, struct es_nf_engine **ret_engine,
		     struct es_nf_why *why)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t state_bytes = (sizeof(struct es_state) + page - 1) / page * page;

	(void)why;
	played = (struct es_nf_engine){.memory = {.fd = memfd_create("tables", MFD_CLOEXEC),
						  .adopted = 1,
						  .decisions_off = state_bytes}};
	assert_return_code(played.memory.fd, 0);
	assert_return_code(
		ftruncate(played.memory.fd, (off_t)(state_bytes + (size_t)params->decision_sets *
									  sizeof(struct es_decision_set))),
		0);
	assert_int_equal(es_nf_ring_new(QUEUE_BYTES, &played.queue), 0);
	*ret_engine = &played;
	return 0;
}

void es_nf_engine_free(struct es_nf_engine **engine)
{
	if (!*engine)
		return;
	es_nf_ring_free(&played.queue);
	close(played.memory.fd);
	*engine = NULL;
}

const struct es_nf_memory *es_nf_engine_memory(const struct es_nf_engine *engine)
{
	return &engine->memory;
}

int es_nf_engine_queue_fd(const struct es_nf_engine *engine, unsigned int worker)
{
	(void)worker;
	return es_nf_ring_fd(engine->queue);
}

int es_nf_engine_wake_fd(const struct es_nf_engine *engine, unsigned int worker)
{
	(void)worker;
	return es_nf_ring_wake_fd(engine->queue);
}

int es_nf_engine_configure(struct es_nf_engine *engine, const struct es_config *config,
			   const struct es_node_ring *ring)
{
	(void)engine;
	(void)config;
	(void)ring;
	return 0;
}

int es_nf_engine_attach(struct es_nf_engine *engine, unsigned int public_ifindex,
			unsigned int cluster_ifindex, struct es_nf_why *why)
{
	(void)public_ifindex;
	(void)cluster_ifindex;
	(void)why;
	usleep(2000);
	engine->reads_ns = es_clock_now_ns();
	return 0;
}

void es_nf_engine_connections(struct es_nf_engine *engine,
			      void (*fn)(void *ctx, const struct es_connection_entry *entry), void *ctx)
{
	(void)engine;
	(void)fn;
	(void)ctx;
}

unsigned int es_nf_engine_end_unproven(struct es_nf_engine *engine)
{
	(void)engine;
	return 0;
}

int es_nf_engine_end_stranger(struct es_nf_engine *engine, const struct es_flow *flow,
			      int (*end)(const void *ctx), const void *ctx)
{
	(void)engine;
	(void)flow;
	(void)end;
	(void)ctx;
	return 0;
}

int es_nf_engine_track(const struct es_nf_engine *engine, const struct es_flow *flow,
		       struct es_track *ret_track)
{
	(void)engine;
	(void)flow;
	(void)ret_track;
	return -1;
}

int es_nf_engine_end_late(struct es_nf_engine *engine, const struct es_flow *flow,
			  int (*end)(const void *ctx), const void *ctx)
{
	(void)engine;
	(void)flow;
	(void)end;
	(void)ctx;
	return 0;
}

int es_nf_engine_connection(struct es_nf_engine *engine, const struct es_flow *flow,
			    struct es_connection_state *ret_state, __u32 *ret_ahead)
{
	(void)engine;
	(void)flow;
	(void)ret_state;
	(void)ret_ahead;
	return -ENOTCONN;
}

int es_nf_engine_leave(struct es_nf_engine *engine, const struct es_flow *flow)
{
	(void)engine;
	(void)flow;
	return 0;
}

void es_nf_engine_counters(struct es_nf_engine *engine, unsigned long long *ret_values)
{
	(void)engine;
	(void)ret_values;
}

/*
 * A daemon that starts anew, whose rules are set still. Packets that arrived before it read the queue were
 * dropped, though it had told the engine its ring before; and so were those that arrived while it was told of
 * other interfaces.
 */
static void test_hears_from_when_it_reads(void **state)
{
	const struct es_datapath_params params = {.public_ifindex = 2,
						  .cluster_ifindex = 3,
						  .workers = 1,
						  .queue_bytes = QUEUE_BYTES,
						  .decision_sets = 64};
	struct es_node_ring *ring = calloc(1, sizeof(*ring));
	struct es_config *config = calloc(1, sizeof(*config));
	struct es_datapath *dp;
	char err[256] = "";

	(void)state;
	config->ring_seed = 5;
	memset(ring->answered, 0xff, sizeof(ring->answered));
	assert_int_equal(es_datapath_new(ES_DATAPATH_NETFILTER, &params, err, sizeof(err), &dp), 0);
	assert_int_equal(es_datapath_configure(dp, config, ring), 0);
	assert_true(dp->state->hears_ns);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(dp->ops->attach(dp, err, sizeof(err)), 0);
		assert_true(dp->state->hears_ns >= played.reads_ns);
	}
	es_datapath_free(&dp);
	free(config);
	free(ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_hears_from_when_it_reads)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
