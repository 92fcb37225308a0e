// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An inspector's estimate of a node's load, against the truth: a simulated node whose requests come from
 * three inspectors and which says ten times a second what it has in hand, and how long requests take there.
 */
#include "cmocka_all.h"
#include <math.h>
#include <string.h>
#include "inspector/policy/load.h"
#include "inspector/policy/load_meter.h"

#define INSPECTORS 3
#define STEP_NS	   50000ULL
#define PUBLISH_NS 100000000ULL
#define BUS_NS	   2000000ULL
#define WARM_NS	   5000000000ULL /* until the mean time is known */
#define PHASES	   20		 /* of the time between two reports */
#define IN_HAND	   4096
#define BEGIN_NS   1000000000000ULL

struct world {
	double rate; /* of all inspectors, in a second */
	double service_s;
	int is_fixed;	  /* each request takes as long as any other; else the time is exponential */
	double tolerance; /* of the mean estimate */
	double noise;	  /* of a single one: root of the mean square */
};

struct request {
	unsigned long long done_ns;
	unsigned int cost;
};

struct error {
	double sum, square, load, truth, load_truth, count;
};

static struct request in_hand[IN_HAND];
static unsigned int active, load;
static unsigned long long accepted;
static struct es_random random_state;

static void requests_finish(unsigned long long now_ns)
{
	for (unsigned int i = 0; i < active;)
		if (in_hand[i].done_ns <= now_ns) {
			load -= in_hand[i].cost;
			in_hand[i] = in_hand[--active];
		} else {
			i++;
		}
}

static unsigned int request_begin(const struct world *w, unsigned long long now_ns)
{
	double service_s = w->service_s * (w->is_fixed ? 1 : -log(1 - es_random_double(&random_state)));
	unsigned int cost = 1 + (unsigned int)es_random_below(&random_state, 40);

	assert_true(active < IN_HAND);
	in_hand[active++] = (struct request){now_ns + (unsigned long long)(service_s * 1e9), cost};
	load += cost;
	accepted++;
	return cost;
}

static void error_add(struct error *e, const struct es_node_view *node)
{
	e->sum += node->active - active;
	e->square += (node->active - active) * (node->active - active);
	e->load += node->load - load;
	e->truth += active;
	e->load_truth += load;
	e->count++;
}

/* Each estimate at each request, and how far it is off, by the time since the node spoke last. */
static void play(const struct world *w, struct error phase[PHASES])
{
	double per_step = w->rate / INSPECTORS * (double)STEP_NS / 1e9;
	struct es_load seen[INSPECTORS];
	struct es_load_report on_its_way = {};
	unsigned long long arrives_ns = 0, spoken_ns = BEGIN_NS;
	struct es_load_meter meter = {};

	for (unsigned int i = 0; i < INSPECTORS; i++)
		assert_int_equal(es_load_init(&seen[i]), 0);
	active = load = 0;
	accepted = 0;
	random_state.state = 1;
	for (unsigned long long now = BEGIN_NS; now < BEGIN_NS + 16 * WARM_NS; now += STEP_NS) {
		requests_finish(now);
		if (now - spoken_ns >= PUBLISH_NS) {
			spoken_ns = now;
			es_load_meter_add(&meter, active, accepted, now);
			on_its_way = (struct es_load_report){
				.active = active, .load = load, .mean_us = es_load_meter_mean_us(&meter)};
			arrives_ns = now + BUS_NS;
		}
		if (arrives_ns && now >= arrives_ns) {
			on_its_way.at_ns = now;
			for (unsigned int i = 0; i < INSPECTORS; i++)
				es_load_report(&seen[i], &on_its_way);
			arrives_ns = 0;
		}
		for (unsigned int i = 0; i < INSPECTORS; i++) {
			struct es_node_view node = {};

			if (es_random_double(&random_state) >= per_step)
				continue;
			es_load_estimate(&seen[i], now, &node);
			if (now >= BEGIN_NS + WARM_NS)
				error_add(&phase[(now - spoken_ns) * PHASES / PUBLISH_NS % PHASES], &node);
			es_load_sent(&seen[i], request_begin(w, now), now, &node);
		}
	}
}

static void test_estimate(void **state)
{
	static const struct world worlds[] = {
		{10000, 0.001, 0, 0.05, 0.60}, /* ten in hand, of 1000 that arrive between two reports */
		{10000, 0.001, 1, 0.05, 0.60}, {3000, 0.010, 0, 0.02, 0.35}, {3000, 0.010, 1, 0.02, 0.35},
		{1000, 0.100, 0, 0.01, 0.12},  {1000, 0.100, 1, 0.01, 0.12}, {300, 1.0, 0, 0.01, 0.05},
		{60, 0.100, 0, 0.05, 0.50},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
		struct error phase[PHASES] = {}, all = {};
		double worst = 0, worst_load = 0, low = 1, high = -1, off;

		play(&worlds[i], phase);
		for (unsigned int k = 0; k < PHASES; k++) {
			assert_true(phase[k].count > 0);
			off = phase[k].sum / phase[k].truth;
			low = fmin(low, off);
			high = fmax(high, off);
			worst = fmax(worst, fabs(off));
			worst_load = fmax(worst_load, fabs(phase[k].load / phase[k].load_truth));
			all.sum += phase[k].sum;
			all.square += phase[k].square;
			all.truth += phase[k].truth;
			all.count += phase[k].count;
		}
		print_message("%.0f/s of %.0f ms%s: %.1f in hand; mean off by %.1f%%, at worst by %.1f%% "
			      "(load %.1f%%); single ones by %.0f%%\n",
			      worlds[i].rate, worlds[i].service_s * 1e3, worlds[i].is_fixed ? " each" : "",
			      all.truth / all.count, 100 * all.sum / all.truth, 100 * worst, 100 * worst_load,
			      100 * sqrt(all.square / all.count) / (all.truth / all.count));
		assert_true(fabs(all.sum / all.truth) < worlds[i].tolerance);
		/* As good right after a report as right before the next: no sawtooth. */
		assert_true(high - low < 2 * worlds[i].tolerance);
		assert_true(worst < 2 * worlds[i].tolerance);
		assert_true(worst_load < 3 * worlds[i].tolerance);
		assert_true(sqrt(all.square / all.count) / (all.truth / all.count) < worlds[i].noise);
	}
}

/* @rate requests a second of @service_s each arrive evenly, and are counted ten times a second. */
static unsigned int metered(struct es_load_meter *meter, unsigned long long *at_ns, unsigned long long *came,
			    double rate, double service_s, double for_s)
{
	unsigned long long begin_ns = *at_ns, base = *came;

	while (*at_ns < begin_ns + (unsigned long long)(for_s * 1e9)) {
		*at_ns += PUBLISH_NS;
		*came = base + (unsigned long long)((double)(*at_ns - begin_ns) / 1e9 * rate);
		es_load_meter_add(meter, (unsigned int)lround(rate * service_s), *came, *at_ns);
	}
	return es_load_meter_mean_us(meter);
}

static void test_mean(void **state)
{
	unsigned long long at_ns = BEGIN_NS, came = 7;
	struct es_load_meter meter = {};
	unsigned int mean_us;

	(void)state;
	es_load_meter_add(&meter, 0, came, at_ns);
	assert_int_equal(es_load_meter_mean_us(&meter), 0); /* nothing has arrived yet */
	mean_us = metered(&meter, &at_ns, &came, 1000, 0.050, 3);
	assert_in_range(mean_us, 48000, 52000);
	/* Slower: after two seconds the new time counts for most. */
	mean_us = metered(&meter, &at_ns, &came, 1000, 0.200, 2);
	assert_in_range(mean_us, 170000, 201000);
	mean_us = metered(&meter, &at_ns, &came, 1000, 0.200, 4);
	assert_in_range(mean_us, 198000, 201000);
	/* Idle: what is known stays, for as long as that means something. */
	mean_us = metered(&meter, &at_ns, &came, 0, 0, 5);
	assert_in_range(mean_us, 190000, 215000);
	assert_int_equal(metered(&meter, &at_ns, &came, 0, 0, 3600), 0);
}

/* One request at a time of 30 s: seconds without an arrival must not make it hours. */
static void test_mean_of_long_ones(void **state)
{
	unsigned long long at_ns = BEGIN_NS, came = 0;
	struct es_load_meter meter = {};

	(void)state;
	es_load_meter_add(&meter, 0, 0, at_ns);
	for (unsigned int i = 0; i < 10 * 300; i++) {
		at_ns += PUBLISH_NS;
		came += i % 300 == 0;
		es_load_meter_add(&meter, 1, came, at_ns);
		if (i > 600)
			assert_in_range(es_load_meter_mean_us(&meter), 15000000, 45000000);
	}
}

static void look(struct es_load *l, unsigned long long now_ns, double want_active, double want_load)
{
	struct es_node_view node = {};

	es_load_estimate(l, now_ns, &node);
	if (fabs(node.active - want_active) > 1e-6 || fabs(node.load - want_load) > 1e-6)
		fail_msg("%f in hand, load %f; not %f, %f", node.active, node.load, want_active, want_load);
}

/* A node that is alone: what was sent from here, decaying with the time that is known. */
static void test_alone(void **state)
{
	struct es_load_report only_time = {.mean_us = 100000, .is_mean_only = 1, .at_ns = BEGIN_NS};
	struct es_node_view node = {};
	struct es_load l;

	(void)state;
	assert_int_equal(es_load_init(&l), 0);
	es_load_report(&l, &only_time);
	look(&l, BEGIN_NS, 0, 0);
	es_load_sent(&l, 20, BEGIN_NS, &node);
	assert_true(node.active == 1 && node.load == 20);
	only_time.at_ns += 100000000ULL;
	es_load_report(&l, &only_time);
	look(&l, only_time.at_ns, exp(-1), 20 * exp(-1));
	es_load_fini(&l);
}

/*
 * One long answer makes the mean time long; requests that are sent after it do not count for longer than they
 * are in hand.
 */
static void test_after_a_long_one(void **state)
{
	struct es_load_report report = {.active = 1, .load = 1, .mean_us = 10000000, .at_ns = BEGIN_NS};
	struct es_node_view node = {};
	struct es_load l;

	(void)state;
	assert_int_equal(es_load_init(&l), 0);
	es_load_report(&l, &report);
	look(&l, BEGIN_NS, 1, 1);
	es_load_sent(&l, 1, BEGIN_NS, &node);
	report = (struct es_load_report){.mean_us = 10000000, .at_ns = BEGIN_NS + PUBLISH_NS};
	es_load_report(&l, &report);
	look(&l, report.at_ns, 0, 0);
	es_load_sent(&l, 3, report.at_ns, &node);
	look(&l, report.at_ns, 1, 3);
	look(&l, report.at_ns + PUBLISH_NS, exp(-1), 3 * exp(-1));
	report.at_ns += PUBLISH_NS;
	es_load_report(&l, &report);
	look(&l, report.at_ns, 0, 0);
	es_load_fini(&l);
}

/*
 * A request that another inspector gave to the node counts at once, at the mean cost there, until the node
 * has said so itself.
 */
static void test_heard(void **state)
{
	struct es_load_report report = {.active = 10, .load = 70, .mean_us = 1000000000, .at_ns = BEGIN_NS};
	struct es_load l;

	(void)state;
	assert_int_equal(es_load_init(&l), 0);
	es_load_heard(&l, BEGIN_NS);
	look(&l, BEGIN_NS, 1, 1);
	es_load_report(&l, &report);
	look(&l, BEGIN_NS, 10, 70);
	for (unsigned int i = 0; i < 5; i++)
		es_load_heard(&l, BEGIN_NS);
	look(&l, BEGIN_NS, 15, 105);
	report.active = 15;
	report.load = 105;
	es_load_report(&l, &report);
	look(&l, BEGIN_NS, 15, 105);
	es_load_fini(&l);
}

/* Ten seconds later it says nothing of what was; what is in hand for long is no mean while nothing comes. */
static void test_mean_now(void **state)
{
	struct es_load_recent recent = {};
	unsigned long long now_ns = BEGIN_NS, came = 0;

	(void)state;
	for (int i = 0; i < 200; i++, now_ns += PUBLISH_NS)
		es_load_recent_add(&recent, 2, came += 10, now_ns); /* 100 in a second, 2 in hand: 20 ms */
	assert_in_range(es_load_recent_mean_us(&recent), 19000, 21000);
	for (int i = 0; i < 100; i++, now_ns += PUBLISH_NS)
		es_load_recent_add(&recent, 4, came += 10, now_ns);
	assert_in_range(es_load_recent_mean_us(&recent), 35000, 41000);
	for (int i = 0; i < 600; i++, now_ns += PUBLISH_NS)
		es_load_recent_add(&recent, 100, came, now_ns);
	assert_int_equal(es_load_recent_mean_us(&recent), 0);
}

/* Reports each 25 ms for @seconds, from a node that is busy for @busy of the time. */
static unsigned long long hear(struct es_load *l, unsigned long long now_ns, double seconds,
			       unsigned int hand, double busy)
{
	for (unsigned int i = 0; i < (unsigned int)(seconds * 40); i++) {
		struct es_load_report report = {
			.active = hand, .mean_us = 5000, .cpu = 100, .at_ns = now_ns += 25000000ULL};

		report.disk = (unsigned short)(busy * 1000);
		es_load_report(l, &report);
	}
	return now_ns;
}

static double capacity(struct es_load *l, unsigned long long now_ns)
{
	struct es_node_view node = {};

	es_load_estimate(l, now_ns, &node);
	return node.capacity;
}

/*
 * A node whose requests wait 40 ms for something else and then take 10 ms of its disk: five of them keep it
 * busy, and with Poisson arrivals and a share U of busy time there are U / (1 - U) + 4 U in hand. At any load
 * about five are measured, and a flood of clients changes nothing.
 */
static void test_capacity(void **state)
{
	unsigned long long now_ns = BEGIN_NS;
	struct es_load l;

	(void)state;
	assert_int_equal(es_load_init(&l), 0);
	now_ns = hear(&l, now_ns, 100, 1, 0.1);
	assert_true(capacity(&l, now_ns) == 0); /* hardly busy: nothing is known */
	now_ns = hear(&l, now_ns, 9, 3, 0.5);
	assert_true(capacity(&l, now_ns) == 0); /* not for long enough */
	now_ns = hear(&l, now_ns, 20, 3, 0.5);
	assert_true(fabs(capacity(&l, now_ns) - 6) < 0.1);
	now_ns = hear(&l, now_ns, 3600, 7, 0.8);
	assert_true(capacity(&l, now_ns) > 6 && capacity(&l, now_ns) < 9);
	now_ns = hear(&l, now_ns, 3600, 1000, 0.95);
	assert_true(capacity(&l, now_ns) < 9);
	/* Another one that is faster takes its place in some minutes of load. */
	now_ns = hear(&l, now_ns, 3600, 20, 0.5);
	assert_true(fabs(capacity(&l, now_ns) - 40) < 1);
	es_load_fini(&l);
}

/* The time in which nothing was heard counts for nothing. */
static void test_capacity_after_silence(void **state)
{
	unsigned long long now_ns = BEGIN_NS;
	struct es_load l;

	(void)state;
	assert_int_equal(es_load_init(&l), 0);
	for (unsigned int i = 0; i < 100; i++)
		now_ns = hear(&l, now_ns + 60000000000ULL, 0.025, 50, 0.5);
	assert_true(capacity(&l, now_ns) == 0);
	es_load_fini(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_estimate),
		cmocka_unit_test(test_mean),
		cmocka_unit_test(test_mean_now),
		cmocka_unit_test(test_mean_of_long_ones),
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_after_a_long_one),
		cmocka_unit_test(test_heard),
		cmocka_unit_test(test_capacity),
		cmocka_unit_test(test_capacity_after_silence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
