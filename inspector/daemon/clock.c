// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads the machine's clock, each second, and carries out what peers/own_clock.c makes of it. */
#include "inspector/base/clock.h"
#include "inspector/base/log.h"
#include "inspector/base/wall.h"
#include "inspector/daemon/clock.h"
#include "inspector/daemon/daemon.h"
#include "inspector/datapath/datapath.h"
#include "inspector/peers/own_clock.h"
#include "kmod/core/cookie.h"

#define LOOK_S 1.0

/* A cookie lives for so many slots at most. */
static __u64 hold_ns(const struct es_daemon *d)
{
	__u64 lifetime_s = d->conf->datapath.cookie_lifetime_s;

	return (lifetime_s + lifetime_s / ES_COOKIE_SLOTS_VALID) * 1000000000ULL;
}

static __u64 measure_ns(void)
{
	return es_clock_ns(CLOCK_REALTIME) - es_clock_now_ns();
}

/* The datapath's own numbers: its answers'. They count up, so they only ever leap forward. */
static void sequence_raise(struct es_state *state, __u64 number_ns)
{
	__u64 least = es_handover_number(number_ns),
	      now = __atomic_load_n(&state->sequence, __ATOMIC_RELAXED);

	while (now < least && !__atomic_compare_exchange_n(&state->sequence, &now, least, 0, __ATOMIC_RELAXED,
							   __ATOMIC_RELAXED))
		;
}

static void put(struct es_daemon *d)
{
	struct es_state *state = es_datapath_state(d->datapath);
	const struct es_own_clock *own = &d->clock->own;

	/* The clock before counts until its time is over, so it is there before that is. */
	__atomic_store_n(&state->wall_before_ns, own->before_ns, __ATOMIC_RELEASE);
	__atomic_store_n(&state->wall_before_until_s, es_ns_to_s(own->before_until_ns), __ATOMIC_RELEASE);
	__atomic_store_n(&state->wall_offset_ns, own->wall_ns, __ATOMIC_RELEASE);
	if (state->number_ns != own->number_ns) {
		state->number_ns = own->number_ns;
		sequence_raise(state, es_clock_now_ns() + own->number_ns);
	}
	es_wall_set(own->wall_ns, own->number_ns);
}

static int look(struct es_daemon *d)
{
	int is_set = es_own_clock_look(&d->clock->own, measure_ns(), es_clock_now_ns(), hold_ns(d));

	put(d);
	return is_set;
}

static void say(const struct es_daemon *d)
{
	es_log(ES_LOG_WARNING,
	       "clock: this machine's clock was set %.1f s %s; no deadline depends on it, "
	       "and what was made before that stays good",
	       (double)(d->clock->own.step_ns < 0 ? -d->clock->own.step_ns : d->clock->own.step_ns) / 1e9,
	       d->clock->own.step_ns < 0 ? "back" : "forward");
}

static void on_look(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct es_daemon *d = timer->data;

	(void)loop;
	(void)events;
	if (!look(d))
		return;
	say(d);
	d->clock->was_set(d);
}

void es_daemon_clock_start(struct es_daemon *d)
{
	const struct es_state *state = es_datapath_state(d->datapath);
	struct es_own_clock *own = &d->clock->own;

	es_own_clock_begin(own, state->wall_offset_ns, state->number_ns, measure_ns());
	own->before_ns = state->wall_before_ns;
	own->before_until_ns = state->wall_before_until_s * 1000000000ULL;
	if (look(d))
		say(d);
	sequence_raise(es_datapath_state(d->datapath), es_number_ns());
}

void es_daemon_clock_watch(struct es_daemon *d, void (*was_set)(struct es_daemon *d))
{
	d->clock->was_set = was_set;
	ev_timer_init(&d->clock->timer, on_look, LOOK_S, LOOK_S);
	d->clock->timer.data = d;
	ev_timer_start(d->loop, &d->clock->timer);
}

unsigned long long es_daemon_clock_told_ns(const struct es_daemon *d)
{
	return es_clock_now_ns() + d->clock->own.told_ns;
}

void es_daemon_clock_outrun(struct es_daemon *d, unsigned int node, unsigned long long number_ns)
{
	unsigned long long now_ns = es_number_ns();

	if (!es_own_clock_outrun(&d->clock->own, number_ns, es_clock_now_ns()))
		return;
	es_log(ES_LOG_WARNING,
	       "clock: this machine's clock is %.1f s behind where it was when this node last ran, so one "
	       "of the two times is wrong; node %s has told this node where its messages' numbers go on; "
	       "set clocks by NTP",
	       (double)(number_ns - now_ns) / 1e9, d->conf->nodes[node].name);
	put(d);
	d->clock->was_set(d);
}
