/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_COROSYNC_PLAYED_H
#define ES_TESTS_COROSYNC_PLAYED_H

/*
 * Corosync's libraries, played for the tests of what uses them: a thread may call them, and with @hangs set
 * no call returns, as with a corosync that is stopped.
 */
#include "cmocka_all.h"
#include <corosync/cmap.h>
#include <corosync/cpg.h>
#include <corosync/quorum.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "membership/corosync.h"

#define SELF 1

/* The played corosync: what it has been told, and what it will say at the next dispatch. */
static struct {
	cpg_model_v1_data_t cpg;
	quorum_model_v1_data_t quorum;
	void *cpg_context, *quorum_context;
	int is_down, is_joined, busy, breaks;
	unsigned int token_ms, device_timeout_ms, sent;
	int has_device;
	char datagram[64][65536];
	size_t len[64];
	uint32_t quorate;
	uint64_t quorum_seq;
	int quorum_speaks;
	void (*events[16])(void);
	unsigned int event_count;
	int hangs, finalized, joins;
	int fd[2];
} corosync;

/* For @corosync. */
static pthread_mutex_t played_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t played_runs = PTHREAD_COND_INITIALIZER;

static int played_enter(void)
{
	pthread_mutex_lock(&played_lock);
	while (corosync.hangs)
		pthread_cond_wait(&played_runs, &played_lock);
	return 0;
}

static void played_leave(const int *entered)
{
	(void)entered;
	pthread_mutex_unlock(&played_lock);
}

#define PLAYED int entered __attribute__((cleanup(played_leave), unused)) = played_enter()

cs_error_t quorum_model_initialize(quorum_handle_t *handle, quorum_model_t model, quorum_model_data_t *data,
				   uint32_t *type, void *context)
{
	PLAYED;
	assert_int_equal(model, QUORUM_MODEL_V1);
	if (corosync.is_down)
		return CS_ERR_LIBRARY;
	corosync.quorum = *(quorum_model_v1_data_t *)data;
	corosync.quorum_context = context;
	*handle = 1;
	*type = QUORUM_SET;
	return CS_OK;
}

cs_error_t quorum_trackstart(quorum_handle_t handle, unsigned int flags)
{
	PLAYED;
	(void)handle;
	assert_int_equal(flags, CS_TRACK_CURRENT | CS_TRACK_CHANGES);
	return CS_OK;
}

cs_error_t quorum_context_get(quorum_handle_t handle, const void **context)
{
	PLAYED;
	(void)handle;
	*context = corosync.quorum_context;
	return CS_OK;
}

cs_error_t quorum_dispatch(quorum_handle_t handle, cs_dispatch_flags_t flags)
{
	PLAYED;
	const struct quorum_ring_id ring = {1, corosync.quorum_seq};

	(void)flags;
	if (corosync.breaks)
		return CS_ERR_LIBRARY;
	if (corosync.quorum_speaks)
		corosync.quorum.quorum_notify_fn(handle, corosync.quorate, ring, 0, NULL);
	corosync.quorum_speaks = 0;
	return CS_OK;
}

cs_error_t quorum_fd_get(quorum_handle_t handle, int *fd)
{
	PLAYED;
	(void)handle;
	*fd = corosync.fd[0];
	return CS_OK;
}

cs_error_t quorum_finalize(quorum_handle_t handle)
{
	PLAYED;
	(void)handle;
	corosync.finalized++;
	return CS_OK;
}

cs_error_t cpg_model_initialize(cpg_handle_t *handle, cpg_model_t model, cpg_model_data_t *data,
				void *context)
{
	PLAYED;
	assert_int_equal(model, CPG_MODEL_V1);
	corosync.cpg = *(cpg_model_v1_data_t *)data;
	corosync.cpg_context = context;
	*handle = 2;
	return CS_OK;
}

cs_error_t cpg_context_get(cpg_handle_t handle, void **context)
{
	PLAYED;
	(void)handle;
	*context = corosync.cpg_context;
	return CS_OK;
}

cs_error_t cpg_local_get(cpg_handle_t handle, unsigned int *nodeid)
{
	PLAYED;
	(void)handle;
	*nodeid = SELF;
	return CS_OK;
}

cs_error_t cpg_join(cpg_handle_t handle, const struct cpg_name *name)
{
	PLAYED;
	(void)handle;
	assert_memory_equal(name->value, "earshot", name->length);
	corosync.is_joined = 1;
	corosync.joins++;
	return CS_OK;
}

cs_error_t cpg_leave(cpg_handle_t handle, const struct cpg_name *name)
{
	PLAYED;
	(void)handle;
	(void)name;
	corosync.is_joined = 0;
	return CS_OK;
}

cs_error_t cpg_finalize(cpg_handle_t handle)
{
	PLAYED;
	(void)handle;
	corosync.is_joined = 0;
	return CS_OK;
}

cs_error_t cpg_fd_get(cpg_handle_t handle, int *fd)
{
	PLAYED;
	(void)handle;
	*fd = corosync.fd[1];
	return CS_OK;
}

cs_error_t cpg_mcast_joined(cpg_handle_t handle, cpg_guarantee_t guarantee, const struct iovec *iov,
			    unsigned int count)
{
	PLAYED;
	(void)handle;
	assert_int_equal(guarantee, CPG_TYPE_AGREED);
	assert_int_equal(count, 1);
	if (corosync.busy && --corosync.busy)
		return CS_ERR_TRY_AGAIN;
	assert_true(corosync.sent < 64 && iov->iov_len <= sizeof(corosync.datagram[0]));
	memcpy(corosync.datagram[corosync.sent], iov->iov_base, iov->iov_len);
	corosync.len[corosync.sent++] = iov->iov_len;
	return CS_OK;
}

cs_error_t cpg_dispatch(cpg_handle_t handle, cs_dispatch_flags_t flags)
{
	PLAYED;
	unsigned int count = corosync.event_count;

	(void)handle;
	assert_int_equal(flags, CS_DISPATCH_ALL);
	corosync.event_count = 0;
	for (unsigned int i = 0; i < count; i++)
		corosync.events[i]();
	return CS_OK;
}

cs_error_t cmap_initialize(cmap_handle_t *handle)
{
	PLAYED;
	*handle = 3;
	return CS_OK;
}

cs_error_t cmap_get_uint32(cmap_handle_t handle, const char *key, uint32_t *value)
{
	PLAYED;
	(void)handle;
	if (!strcmp(key, "quorum.device.timeout") && corosync.device_timeout_ms)
		*value = corosync.device_timeout_ms;
	if (!strcmp(key, "quorum.device.timeout"))
		return corosync.device_timeout_ms ? CS_OK : CS_ERR_NOT_EXIST;
	assert_string_equal(key, "runtime.config.totem.token");
	*value = corosync.token_ms;
	return corosync.token_ms ? CS_OK : CS_ERR_NOT_EXIST;
}

cs_error_t cmap_get_string(cmap_handle_t handle, const char *key, char **value)
{
	PLAYED;
	(void)handle;
	assert_string_equal(key, "quorum.device.model");
	if (!corosync.has_device)
		return CS_ERR_NOT_EXIST;
	*value = strdup("net");
	return CS_OK;
}

cs_error_t cmap_finalize(cmap_handle_t handle)
{
	PLAYED;
	(void)handle;
	return CS_OK;
}

static void quorum_says(uint32_t quorate, uint64_t seq)
{
	corosync.quorate = quorate;
	corosync.quorum_seq = seq;
	corosync.quorum_speaks = 1;
}

static void event(void (*fn)(void))
{
	corosync.events[corosync.event_count++] = fn;
}

static void view_of_one(void)
{
	const struct cpg_address me = {SELF, (uint32_t)getpid(), CPG_REASON_JOIN};

	corosync.cpg.cpg_confchg_fn(2, NULL, &me, 1, NULL, 0, &me, 1);
}

static void view_of_two(void)
{
	const struct cpg_address members[] = {{SELF, (uint32_t)getpid(), 0}, {2, 77, 0}};
	const struct cpg_address joined = {2, 77, CPG_REASON_NODEUP};

	corosync.cpg.cpg_confchg_fn(2, NULL, members, 2, NULL, 0, &joined, 1);
}

static void node_gone(void)
{
	const struct cpg_address me = {SELF, (uint32_t)getpid(), 0};
	const struct cpg_address left = {2, 77, CPG_REASON_NODEDOWN};

	corosync.cpg.cpg_confchg_fn(2, NULL, &me, 1, &left, 1, NULL, 0);
}

static void ring_5(void)
{
	corosync.cpg.cpg_totem_confchg_fn(2, (struct cpg_ring_id){1, 5}, 0, NULL);
}

static void ring_6(void)
{
	corosync.cpg.cpg_totem_confchg_fn(2, (struct cpg_ring_id){1, 6}, 0, NULL);
}

static void other_speaks(void)
{
	char text[] = "from 2";

	corosync.cpg.cpg_deliver_fn(2, NULL, 2, 77, text, sizeof(text) - 1);
}

static unsigned int returned;

/* Our own datagrams, as far as they were not delivered yet. */
static void own_return(void)
{
	while (returned < corosync.sent) {
		corosync.cpg.cpg_deliver_fn(2, NULL, SELF, (uint32_t)getpid(), corosync.datagram[returned],
					    corosync.len[returned]);
		returned++;
	}
}

#endif
