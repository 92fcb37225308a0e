// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The bus's thread against a corosync that is played: the owner never waits for a corosync that hangs, hears
 * all in the order in which corosync said it, and what it says in one session is never heard in another.
 */
#include "corosync_played.h"
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include "membership/bus.h"

#define WAIT_MS 20000
#define BIG	60000

/* The reports of the bus: how many of each kind, and all in their order, one word each. */
static struct {
	unsigned int views, lost, datagrams;
	char order[4096];
	uint32_t next; /* the number that our own next message has */
	char why[256];
} got;

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void note(const char *word)
{
	strncat(got.order, word, sizeof(got.order) - strlen(got.order) - 1);
}

static void on_view(void *ctx, struct es_group_id self, const struct es_group_id *members, unsigned int count,
		    const struct es_group_leaver *leavers, unsigned int leaver_count)
{
	(void)ctx;
	(void)leavers;
	assert_int_equal(self.nodeid, SELF);
	assert_int_equal(members[0].nodeid, SELF);
	got.views++;
	note(count == 2 ? "view2 " : leaver_count ? "gone " : "view ");
}

static void on_datagram(void *ctx, struct es_group_id from, const void *data, size_t len)
{
	size_t at = 0, payload_len;
	const void *payload;
	uint32_t number;
	uint8_t type;

	(void)ctx;
	got.datagrams++;
	if (from.nodeid != SELF) {
		note("other ");
		return;
	}
	while (es_wire_next(data, len, &at, &type, &payload, &payload_len) > 0) {
		memcpy(&number, payload, sizeof(number));
		assert_int_equal(number, got.next++);
	}
}

static void on_lost(void *ctx, const char *why)
{
	(void)ctx;
	got.lost++;
	note("lost ");
	strncpy(got.why, why, sizeof(got.why) - 1);
}

static const struct es_corosync_ops ops = {on_view, on_datagram, on_lost};

static void played_wake(void)
{
	const uint64_t one = 1;

	assert_int_equal(write(corosync.fd[1], &one, sizeof(one)), sizeof(one));
}

/* Something happens in corosync. */
#define PLAY(what)                                                                                           \
	do {                                                                                                 \
		pthread_mutex_lock(&played_lock);                                                            \
		what;                                                                                        \
		pthread_mutex_unlock(&played_lock);                                                          \
		played_wake();                                                                               \
	} while (0)

static void hang(int hangs)
{
	pthread_mutex_lock(&played_lock);
	corosync.hangs = hangs;
	pthread_cond_broadcast(&played_runs);
	pthread_mutex_unlock(&played_lock);
}

/* Runs the owner's loop until @condition holds; @condition may look at @corosync. */
#define UNTIL(b, condition)                                                                                  \
	do {                                                                                                 \
		uint64_t until = now_ms() + WAIT_MS;                                                         \
		int is_true = 0;                                                                             \
                                                                                                             \
		while (!is_true) {                                                                           \
			struct pollfd p = {.fd = es_bus_fd(b), .events = POLLIN};                            \
                                                                                                             \
			assert_true(now_ms() < until);                                                       \
			poll(&p, 1, 5);                                                                      \
			es_bus_dispatch(b);                                                                  \
			pthread_mutex_lock(&played_lock);                                                    \
			is_true = condition;                                                                 \
			pthread_mutex_unlock(&played_lock);                                                  \
		}                                                                                            \
	} while (0)

static int hangs_for(struct es_bus *b)
{
	struct es_bus_state is;

	es_bus_state(b, &is);
	return (int)is.hangs_ms;
}

static int says(struct es_bus *b, const char *why)
{
	struct es_bus_state is;

	es_bus_state(b, &is);
	return strstr(is.why, why) != NULL;
}

static struct es_bus *bus(void)
{
	struct es_bus *b = NULL;

	memset(&corosync, 0, sizeof(corosync));
	memset(&got, 0, sizeof(got));
	returned = 0;
	corosync.token_ms = 1000;
	corosync.has_device = 1;
	for (int i = 0; i < 2; i++)
		corosync.fd[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	assert_int_equal(es_bus_new(&ops, NULL, &b), 0);
	return b;
}

static void end(struct es_bus **b)
{
	es_bus_free(b);
	assert_null(*b);
	for (int i = 0; i < 2; i++)
		close(corosync.fd[i]);
}

/* A bus of one member on ring 5. */
static struct es_bus *joined(void)
{
	struct es_bus *b = bus();
	struct es_bus_state is;

	PLAY(quorum_says(1, 5); event(view_of_one); event(ring_5));
	es_bus_want(b, 1);
	UNTIL(b, got.views == 1);
	es_bus_state(b, &is);
	assert_true(is.is_connected && is.is_quorate && is.is_joined);
	assert_int_equal(is.token_ms, 1000);
	assert_int_equal(is.vote_late_ms, 8000);
	assert_string_equal(is.why, "");
	return b;
}

static void number_send(struct es_bus *b, uint32_t number, size_t len)
{
	static char payload[BIG];

	memcpy(payload, &number, sizeof(number));
	es_bus_send(b, ES_WIRE_PROOFS, payload, len);
}

/* The thread waits for corosync, and has taken nothing of what the owner says from now on. */
static void hang_now(struct es_bus *b)
{
	uint64_t begun = now_ms();

	hang(1);
	played_wake();
	while (!hangs_for(b))
		assert_true(now_ms() - begun < WAIT_MS);
}

static void test_says_why_not(void **state)
{
	struct es_bus *b = bus();

	(void)state;
	PLAY(corosync.is_down = 1);
	es_bus_want(b, 1);
	UNTIL(b, says(b, "is it running"));
	PLAY(corosync.is_down = 0; quorum_says(0, 4));
	UNTIL(b, says(b, "no quorum"));
	es_bus_want(b, 0);
	PLAY(quorum_says(1, 5); event(view_of_one); event(ring_5));
	assert_int_equal(got.views, 0);
	es_bus_want(b, 1);
	UNTIL(b, got.views == 1);
	end(&b);
	assert_false(corosync.is_joined);
}

static void test_order(void **state)
{
	struct es_bus *b = joined();

	(void)state;
	for (uint32_t i = 0; i < 200; i++) {
		number_send(b, i, i % 3 ? 5000 : sizeof(i));
		if (i % 7 == 0)
			es_bus_flush(b);
	}
	es_bus_flush(b);
	while (got.next < 200) {
		PLAY(event(own_return));
		UNTIL(b, !corosync.event_count);
	}
	PLAY(event(other_speaks); quorum_says(1, 6); event(view_of_two); event(ring_6); event(other_speaks);
	     event(node_gone); event(ring_6); event(other_speaks));
	UNTIL(b, strstr(got.order, "gone other") != NULL);
	assert_string_equal(got.order, "view other view2 other gone other ");
	end(&b);
}

/* The owner goes on, says what is wrong, and ends, while a call to corosync does not return. */
static void test_hangs_from_the_start(void **state)
{
	struct es_bus *b = bus();
	uint64_t begun;

	(void)state;
	hang(1);
	es_bus_want(b, 1);
	begun = now_ms();
	es_bus_send(b, ES_WIRE_LEAVE, NULL, 0);
	es_bus_rejoin(b);
	es_bus_dispatch(b);
	assert_true(now_ms() - begun < 500);
	while (!says(b, "does not answer")) {
		assert_true(now_ms() - begun < WAIT_MS);
		es_bus_dispatch(b);
		usleep(1000);
	}
	begun = now_ms();
	es_bus_free(&b);
	assert_true(now_ms() - begun < 3000); /* its second, and a busy machine's */
	/* The connection that the bus left behind ends when corosync goes on. */
	hang(0);
	for (begun = now_ms();; usleep(1000)) {
		int finalized;

		pthread_mutex_lock(&played_lock);
		finalized = corosync.finalized;
		pthread_mutex_unlock(&played_lock);
		if (finalized)
			break;
		assert_true(now_ms() - begun < WAIT_MS);
	}
	assert_int_equal(got.views + got.lost, 0);
	usleep(100000); /* for the thread's last lines, which a leak checker would miss */
	for (int i = 0; i < 2; i++)
		close(corosync.fd[i]);
}

static void test_hangs_and_goes_on(void **state)
{
	struct es_bus *b = joined();
	uint64_t begun;

	(void)state;
	hang_now(b);
	begun = now_ms();
	for (uint32_t i = 0; i < 5; i++) {
		number_send(b, i, 100);
		es_bus_flush(b);
		es_bus_dispatch(b);
	}
	assert_true(now_ms() - begun < 500);
	hang(0);
	for (begun = now_ms(); got.next < 5;) {
		assert_true(now_ms() - begun < WAIT_MS);
		PLAY(event(own_return));
		UNTIL(b, !corosync.event_count);
	}
	assert_int_equal(got.lost, 0);
	UNTIL(b, !hangs_for(b));
	end(&b);
}

/* The owner sends, and has not heard yet that the bus is lost:
 * the members of the next one must not hear it. */
static void test_says_nothing_of_before(void **state)
{
	struct es_bus *b = joined();

	(void)state;
	hang_now(b);
	number_send(b, 77, 100);
	es_bus_flush(b);
	PLAY(quorum_says(0, 6));
	hang(0);
	UNTIL(b, got.lost == 1);
	number_send(b, 78, 100); /* to nobody */
	PLAY(quorum_says(1, 6); event(view_of_one); event(ring_6));
	UNTIL(b, got.views == 2);
	number_send(b, 0, 100);
	es_bus_flush(b);
	UNTIL(b, corosync.sent > 0);
	PLAY(event(own_return));
	UNTIL(b, got.next == 1);
	end(&b);
}

static void test_deaf_to_what_it_left(void **state)
{
	struct es_bus *b = joined();
	int joins;

	(void)state;
	PLAY(event(other_speaks));
	pthread_mutex_lock(&played_lock);
	joins = corosync.joins;
	pthread_mutex_unlock(&played_lock);
	es_bus_rejoin(b); /* whether it has been taken from corosync already or not */
	UNTIL(b, corosync.joins > joins);
	PLAY(event(view_of_one); event(ring_5));
	UNTIL(b, got.views == 2);
	assert_string_equal(got.order, "view view ");
	end(&b);
}

static void test_too_much(void **state)
{
	struct es_bus *b = joined();

	(void)state;
	hang_now(b);
	for (uint32_t i = 0; i < 2 * (8u << 20) / BIG; i++)
		number_send(b, i, BIG);
	PLAY(corosync.is_down = 1);
	hang(0);
	UNTIL(b, got.lost == 1);
	assert_non_null(strstr(got.why, "more waited"));
	end(&b);
	assert_int_equal(corosync.sent, 0);
}

static void other_speaks_much(void)
{
	static char text[BIG];

	corosync.cpg.cpg_deliver_fn(2, NULL, 2, 77, text, sizeof(text));
}

/* If the owner takes nothing, arriving messages are left with corosync. */
static void test_owner_sleeps(void **state)
{
	struct es_bus *b = joined();
	uint64_t begun = now_ms();
	unsigned int said = 0, left = 0;

	(void)state;
	while (said * BIG <= 8u << 20) {
		for (int i = 0; i < 10; i++, said++)
			PLAY(event(other_speaks_much));
		do {
			assert_true(now_ms() - begun < WAIT_MS);
			usleep(1000);
			pthread_mutex_lock(&played_lock);
			left = corosync.event_count;
			pthread_mutex_unlock(&played_lock);
		} while (left);
	}
	for (int i = 0; i < 10; i++, said++)
		PLAY(event(other_speaks_much));
	usleep(300000);
	PLAY(left = corosync.event_count);
	assert_int_equal(left, 10);
	UNTIL(b, got.datagrams == said);
	end(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_says_why_not),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_hangs_from_the_start),
		cmocka_unit_test(test_hangs_and_goes_on),
		cmocka_unit_test(test_says_nothing_of_before),
		cmocka_unit_test(test_deaf_to_what_it_left),
		cmocka_unit_test(test_too_much),
		cmocka_unit_test(test_owner_sleeps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
