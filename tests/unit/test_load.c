// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What an inspector takes a node's load to be, against the truth: a simulated node whose requests come from
 * three inspectors and which says ten times a second what it has in hand, and how long requests take there.
 */
#include "cmocka_all.h"
#include <math.h>
#include <string.h>
#include "inspector/policy/load.h"
#include "inspector/policy/load_meter.h"

#define INSPECTORS 3
#define STEP_NS	   20000ULL
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
	double tolerance; /* of the mean estimate in each phase */
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
	struct es_load_published published = {};
	struct es_load_own own[INSPECTORS] = {};
	struct es_load_report on_its_way = {};
	unsigned long long arrives_ns = 0, spoken_ns = BEGIN_NS;
	struct es_load_meter meter = {};

	active = load = 0;
	accepted = 0;
	random_state.state = 1;
	for (unsigned long long now = BEGIN_NS; now < BEGIN_NS + 4 * WARM_NS; now += STEP_NS) {
		requests_finish(now);
		if (now - spoken_ns >= PUBLISH_NS) {
			spoken_ns = now;
			es_load_meter_add(&meter, active, accepted, now);
			on_its_way = (struct es_load_report){
				.active = active, .load = load, .mean_us = es_load_meter_mean_us(&meter)};
			arrives_ns = now + BUS_NS;
		}
		if (arrives_ns && now >= arrives_ns) {
			es_load_publish(&published, &on_its_way);
			arrives_ns = 0;
		}
		for (unsigned int i = 0; i < INSPECTORS; i++) {
			struct es_node_view node = {};

			if (es_random_double(&random_state) >= per_step)
				continue;
			es_load_estimate(&own[i], &published, now, &node);
			if (now >= BEGIN_NS + WARM_NS)
				error_add(&phase[(now - spoken_ns) * PHASES / PUBLISH_NS % PHASES], &node);
			es_load_sent(&own[i], request_begin(w, now), now, &node);
		}
	}
}

static void test_estimate(void **state)
{
	static const struct world worlds[] = {
		{10000, 0.001, 0, 0.05, 0.60}, /* ten in hand, of thousands that come between two reports */
		{10000, 0.001, 1, 0.05, 0.60},	{3000, 0.010, 0, 0.05, 0.35}, {3000, 0.010, 1, 0.05, 0.35},
		{1000, 0.100, 0, 0.05, 0.20},	{1000, 0.100, 1, 0.05, 0.20}, {300, 1.0, 0, 0.05, 0.10},
		{60, 0.100, 0, 0.20, 0.80},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
		struct error phase[PHASES] = {}, all = {};
		double worst = 0, worst_load = 0;

		play(&worlds[i], phase);
		for (unsigned int k = 0; k < PHASES; k++) {
			assert_true(phase[k].count > 0);
			worst = fmax(worst, fabs(phase[k].sum / phase[k].truth));
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
		assert_true(fabs(all.sum / all.truth) < worlds[i].tolerance / 2);
		assert_true(worst < worlds[i].tolerance * 1.5);
		assert_true(worst_load < worlds[i].tolerance * 2);
		assert_true(sqrt(all.square / all.count) / (all.truth / all.count) < worlds[i].noise);
	}
}
