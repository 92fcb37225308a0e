// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The bus against a corosync that is played: what comes before quorum has spoken is kept back, a busy bus
 * loses and reorders nothing, few datagrams are under way at once, and a connection that breaks is reported
 * once.
 */
#include "cmocka_all.h"
#include <corosync/cmap.h>
#include <corosync/cpg.h>
#include <corosync/quorum.h>
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
	unsigned int token_ms, sent;
	char datagram[64][65536];
	size_t len[64];
	uint32_t quorate;
	uint64_t quorum_seq;
	int quorum_speaks;
	void (*events[16])(void);
	unsigned int event_count;
} corosync;

/* What the bus reported. */
static struct {
	unsigned int views, lost, leavers, members;
	enum es_group_reason reason;
	size_t len;
	char text[1 << 20];
	char why[256];
} got;

cs_error_t quorum_model_initialize(quorum_handle_t *handle, quorum_model_t model, quorum_model_data_t *data,
				   uint32_t *type, void *context)
{
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
	(void)handle;
	assert_int_equal(flags, CS_TRACK_CURRENT | CS_TRACK_CHANGES);
	return CS_OK;
}

cs_error_t quorum_context_get(quorum_handle_t handle, const void **context)
{
	(void)handle;
	*context = corosync.quorum_context;
	return CS_OK;
}

cs_error_t quorum_dispatch(quorum_handle_t handle, cs_dispatch_flags_t flags)
{
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
	(void)handle;
	*fd = 10;
	return CS_OK;
}

cs_error_t quorum_finalize(quorum_handle_t handle)
{
	(void)handle;
	return CS_OK;
}

cs_error_t cpg_model_initialize(cpg_handle_t *handle, cpg_model_t model, cpg_model_data_t *data,
				void *context)
{
	assert_int_equal(model, CPG_MODEL_V1);
	corosync.cpg = *(cpg_model_v1_data_t *)data;
	corosync.cpg_context = context;
	*handle = 2;
	return CS_OK;
}

cs_error_t cpg_context_get(cpg_handle_t handle, void **context)
{
	(void)handle;
	*context = corosync.cpg_context;
	return CS_OK;
}

cs_error_t cpg_local_get(cpg_handle_t handle, unsigned int *nodeid)
{
	(void)handle;
	*nodeid = SELF;
	return CS_OK;
}

cs_error_t cpg_join(cpg_handle_t handle, const struct cpg_name *name)
{
	(void)handle;
	assert_memory_equal(name->value, "earshot", name->length);
	corosync.is_joined = 1;
	return CS_OK;
}

cs_error_t cpg_leave(cpg_handle_t handle, const struct cpg_name *name)
{
	(void)handle;
	(void)name;
	corosync.is_joined = 0;
	return CS_OK;
}

cs_error_t cpg_finalize(cpg_handle_t handle)
{
	(void)handle;
	corosync.is_joined = 0;
	return CS_OK;
}

cs_error_t cpg_fd_get(cpg_handle_t handle, int *fd)
{
	(void)handle;
	*fd = 11;
	return CS_OK;
}

cs_error_t cpg_mcast_joined(cpg_handle_t handle, cpg_guarantee_t guarantee, const struct iovec *iov,
			    unsigned int count)
{
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
	*handle = 3;
	return CS_OK;
}

cs_error_t cmap_get_uint32(cmap_handle_t handle, const char *key, uint32_t *value)
{
	(void)handle;
	assert_string_equal(key, "runtime.config.totem.token");
	*value = corosync.token_ms;
	return corosync.token_ms ? CS_OK : CS_ERR_NOT_EXIST;
}

cs_error_t cmap_finalize(cmap_handle_t handle)
{
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

static void on_view(void *ctx, struct es_group_id self, const struct es_group_id *members, unsigned int count,
		    const struct es_group_leaver *leavers, unsigned int leaver_count)
{
	(void)ctx;
	assert_int_equal(self.nodeid, SELF);
	assert_true(members != NULL);
	got.views++;
	got.members = count;
	got.leavers += leaver_count;
	if (leaver_count)
		got.reason = leavers[0].reason;
}

static void on_datagram(void *ctx, struct es_group_id from, const void *data, size_t len)
{
	(void)ctx;
	assert_true(from.nodeid == SELF || from.nodeid == 2);
	assert_true(got.len + len <= sizeof(got.text));
	memcpy(got.text + got.len, data, len);
	got.len += len;
}

static void on_lost(void *ctx, const char *why)
{
	(void)ctx;
	got.lost++;
	strncpy(got.why, why, sizeof(got.why) - 1);
}

static const struct es_corosync_ops ops = {on_view, on_datagram, on_lost};

static struct es_corosync *bus(void)
{
	struct es_corosync *c = NULL;

	memset(&corosync, 0, sizeof(corosync));
	memset(&got, 0, sizeof(got));
	returned = 0;
	corosync.token_ms = 1000;
	assert_int_equal(es_corosync_new(&ops, NULL, &c), 0);
	return c;
}

/* A bus of one member on ring 5. */
static struct es_corosync *joined(void)
{
	struct es_corosync *c = bus();
	char why[256];

	quorum_says(1, 5);
	assert_int_equal(es_corosync_connect(c, why, sizeof(why)), 0);
	event(view_of_one);
	event(ring_5);
	es_corosync_dispatch(c);
	assert_int_equal(got.views, 1);
	return c;
}

static void test_joins_with_quorum_only(void **state)
{
	struct es_corosync *c = bus();
	struct es_corosync_state is;
	char why[256];

	(void)state;
	corosync.is_down = 1;
	assert_int_not_equal(es_corosync_connect(c, why, sizeof(why)), 0);
	assert_non_null(strstr(why, "is it running"));
	corosync.is_down = 0;
	quorum_says(0, 4);
	assert_int_not_equal(es_corosync_connect(c, why, sizeof(why)), 0);
	assert_non_null(strstr(why, "no quorum"));
	assert_false(corosync.is_joined);
	quorum_says(1, 5);
	assert_int_equal(es_corosync_connect(c, why, sizeof(why)), 0);
	assert_true(corosync.is_joined);
	assert_int_equal(es_corosync_token_ms(c), 1000);
	es_corosync_state(c, &is);
	assert_true(is.is_connected && is.is_quorate && !is.is_joined);
	es_corosync_free(&c);
	assert_false(corosync.is_joined);
}

static void test_no_token_no_lease(void **state)
{
	struct es_corosync *c = bus();
	char why[256];

	(void)state;
	corosync.token_ms = 0;
	quorum_says(1, 5);
	assert_int_not_equal(es_corosync_connect(c, why, sizeof(why)), 0);
	assert_non_null(strstr(why, "token"));
	assert_false(corosync.is_joined);
	es_corosync_free(&c);
}

/* CPG tells of the smaller cluster first; quorum, that it does not count, a moment later. */
static void test_minority_hears_nothing(void **state)
{
	struct es_corosync *c = joined();

	(void)state;
	event(node_gone);
	event(other_speaks);
	es_corosync_dispatch(c);
	event(ring_6);
	es_corosync_dispatch(c);
	assert_int_equal(got.views, 1);
	assert_int_equal(got.len, 0);
	quorum_says(0, 6);
	es_corosync_dispatch(c);
	assert_int_equal(got.views, 1);
	assert_int_equal(got.lost, 1);
	assert_non_null(strstr(got.why, "lost the quorum"));
	assert_false(corosync.is_joined);
	es_corosync_free(&c);
}

static void test_majority_goes_on(void **state)
{
	struct es_corosync *c = joined();

	(void)state;
	/* Quorum first, this time, and the view without the ring's name. */
	quorum_says(1, 6);
	event(view_of_two);
	es_corosync_dispatch(c);
	assert_int_equal(got.views, 1);
	event(ring_6);
	event(other_speaks);
	es_corosync_dispatch(c);
	assert_int_equal(got.views, 2);
	assert_int_equal(got.members, 2);
	assert_int_equal(got.len, 6);
	event(node_gone);
	event(ring_5); /* any other name will do */
	es_corosync_dispatch(c);
	assert_int_equal(got.views, 2);
	quorum_says(1, 5);
	es_corosync_dispatch(c);
	assert_int_equal(got.views, 3);
	assert_int_equal(got.leavers, 1);
	assert_int_equal(got.reason, ES_GROUP_NODE);
	es_corosync_free(&c);
}

/* The numbers in the messages that came back, one after the other without a gap. */
static void expect_numbers(uint32_t count)
{
	size_t at = 0, len;
	const void *payload;
	uint32_t number, next = 0;
	uint8_t type;

	while (es_wire_next(got.text, got.len, &at, &type, &payload, &len) > 0) {
		memcpy(&number, payload, sizeof(number));
		assert_int_equal(number, next++);
	}
	assert_int_equal(next, count);
}

static void test_busy_bus(void **state)
{
	struct es_corosync *c = joined();
	static char payload[5000];

	(void)state;
	corosync.busy = 4; /* three refusals */
	for (uint32_t i = 0; i < 200; i++) {
		memcpy(payload, &i, sizeof(i));
		es_corosync_send(c, ES_WIRE_PROOFS, payload, i % 3 ? sizeof(payload) : sizeof(i));
		if (i % 7 == 0)
			es_corosync_flush(c);
		assert_true(corosync.sent - returned <= 8);
	}
	assert_true(es_corosync_flush(c)); /* the window is full */
	assert_int_equal(corosync.sent, 8);
	for (int turn = 0; turn < 20; turn++) {
		event(own_return);
		es_corosync_dispatch(c);
		assert_true(corosync.sent - returned <= 8);
	}
	assert_false(es_corosync_flush(c));
	expect_numbers(200);
	es_corosync_free(&c);
}

/* A bus that takes nothing for too long: nothing is left out, the bus is. */
static void test_too_much(void **state)
{
	struct es_corosync *c = joined();
	static char payload[60000];

	(void)state;
	for (unsigned int i = 0; i < 8 + (8u << 20) / sizeof(payload); i++)
		es_corosync_send(c, ES_WIRE_PROOFS, payload, sizeof(payload));
	es_corosync_send(c, ES_WIRE_STOPPED, payload, 8);
	es_corosync_flush(c);
	assert_int_equal(corosync.sent, 0);
	es_corosync_dispatch(c);
	assert_int_equal(got.lost, 1);
	assert_false(corosync.is_joined);
	es_corosync_free(&c);
}

static void test_broken_connection(void **state)
{
	struct es_corosync *c = joined();
	char why[256];
	int fds[2];

	(void)state;
	es_corosync_fds(c, fds);
	assert_true(fds[0] == 10 && fds[1] == 11);
	es_corosync_send(c, ES_WIRE_LEAVE, NULL, 0);
	corosync.breaks = corosync.is_down = 1;
	es_corosync_dispatch(c);
	es_corosync_dispatch(c);
	assert_int_equal(got.lost, 1);
	es_corosync_fds(c, fds);
	assert_true(fds[0] < 0 && fds[1] < 0);
	es_corosync_send(c, ES_WIRE_LEAVE, NULL, 0); /* to nobody */
	corosync.breaks = corosync.is_down = 0;
	corosync.sent = returned = 0;
	quorum_says(1, 6);
	assert_int_equal(es_corosync_connect(c, why, sizeof(why)), 0);
	event(view_of_one);
	event(ring_6);
	es_corosync_dispatch(c);
	assert_int_equal(got.views, 2);
	assert_int_equal(corosync.sent, 0);
	es_corosync_free(&c);
}

static void test_rejoin(void **state)
{
	struct es_corosync *c = joined();
	char why[256];

	(void)state;
	event(other_speaks);
	es_corosync_rejoin(c);
	assert_false(corosync.is_joined);
	assert_int_equal(got.lost, 0); /* it was our own wish */
	assert_int_equal(es_corosync_connect(c, why, sizeof(why)), 0);
	corosync.event_count = 0;
	event(view_of_one);
	event(ring_5);
	es_corosync_dispatch(c);
	assert_int_equal(got.views, 2);
	assert_int_equal(got.len, 0);
	es_corosync_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_joins_with_quorum_only),
		cmocka_unit_test(test_no_token_no_lease),
		cmocka_unit_test(test_minority_hears_nothing),
		cmocka_unit_test(test_majority_goes_on),
		cmocka_unit_test(test_busy_bus),
		cmocka_unit_test(test_too_much),
		cmocka_unit_test(test_broken_connection),
		cmocka_unit_test(test_rejoin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
