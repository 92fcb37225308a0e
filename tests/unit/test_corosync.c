// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The bus against a corosync that is played: messages that arrive before quorum has spoken are kept back, a
 * busy bus loses and reorders nothing, few datagrams are under way at once, and a connection that breaks is
 * reported once.
 */
#include "corosync_played.h"

/* The reports of the bus. */
static struct {
	unsigned int views, lost, leavers, members;
	enum es_group_reason reason;
	size_t len;
	char text[1 << 20];
	char why[256];
} got;

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
	corosync.fd[0] = 10;
	corosync.fd[1] = 11;
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

/* The heartbeat that corosync-qdevice makes of its timeout, which is 10 s where corosync.conf names none. */
static void test_quorum_device(void **state)
{
	struct es_corosync *c = bus();
	char why[256];

	(void)state;
	corosync.device_timeout_ms = 1250;
	assert_int_equal(es_corosync_vote_late_ms(c), 0); /* not connected */
	quorum_says(1, 5);
	assert_int_equal(es_corosync_connect(c, why, sizeof(why)), 0);
	assert_int_equal(es_corosync_vote_late_ms(c), 0);
	corosync.has_device = 1;
	assert_int_equal(es_corosync_vote_late_ms(c), 1000);
	corosync.device_timeout_ms = 500; /* it takes no shorter ones */
	assert_int_equal(es_corosync_vote_late_ms(c), 1000);
	corosync.device_timeout_ms = 5000;
	assert_int_equal(es_corosync_vote_late_ms(c), 4000);
	corosync.device_timeout_ms = 4294967295U;
	assert_int_equal(es_corosync_vote_late_ms(c), 120000);
	corosync.device_timeout_ms = 0;
	assert_int_equal(es_corosync_vote_late_ms(c), 8000);
	es_corosync_free(&c);
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
		cmocka_unit_test(test_quorum_device),
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
