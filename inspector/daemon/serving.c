// SPDX-License-Identifier: GPL-2.0-or-later
/* Acts on whether this node can serve, and on what the other nodes say of themselves. */
#include <stdio.h>
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/base/event.h"
#include "inspector/daemon/checks.h"
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/exchange.h"
#include "inspector/daemon/heard.h"
#include "inspector/daemon/load.h"
#include "inspector/daemon/membership.h"
#include "inspector/daemon/others.h"
#include "inspector/daemon/outliers.h"
#include "inspector/daemon/packet_max.h"
#include "inspector/daemon/service_drains.h"
#include "inspector/daemon/serving.h"
#include "inspector/daemon/vanishing.h"
#include "inspector/health/place.h"
#include "inspector/peers/exchange.h"
#include "inspector/self/serving.h"
#include "kmod/core/serving.h"
#include "membership/group.h"
#include "membership/wire.h"

#define LOOK_S 1.0

static void log_change(struct es_serving *told, const struct es_serving *now)
{
	const struct es_serving copy = *told, *before = &copy;

	if (now->is_open && (!now->trouble || now->trouble == ES_TROUBLE_CHECK))
		return;
	*told = *now;
	if (!strcmp(before->text, now->text) && before->is_down == now->is_down)
		return;
	if (now->trouble)
		/* A server that is stopped is somebody's wish. */
		es_event(ES_EVENT_server_down,
			 now->trouble == ES_TROUBLE_NO_SERVER ? ES_LOG_INFO : ES_LOG_WARNING, NULL, "%s%s",
			 now->text, now->is_down ? "; until then the other nodes serve" : "");
	else
		es_event(ES_EVENT_server_up, ES_LOG_INFO, NULL, "this node can serve again");
}

/*
 * The services that a trouble of @node is about, as far as it has told; 0: it is the machine's, or not known.
 */
static __u64 concerned(const struct es_daemon *d, unsigned int node)
{
	switch (d->serving->trouble[node]) {
	case ES_TROUBLE_NO_SERVER:
	case ES_TROUBLE_MPTCP:
	case ES_TROUBLE_ADDRESS:
		return d->serving->lacks[node];
	case ES_TROUBLE_CHECK:
	case ES_TROUBLE_OUTLIER:
	case ES_TROUBLE_VANISHING:
	case ES_TROUBLE_KEPT:
		return d->serving->failing[node];
	default:
		return 0;
	}
}

/* "web, app"; "" for none */
static void name_services(const struct es_daemon *d, __u64 services, char *ret, size_t size)
{
	size_t used = 0;

	*ret = 0;
	for (unsigned int i = 0; i < d->conf->service_count && used < size; i++)
		if (services >> i & 1)
			used += (size_t)snprintf(ret + used, size - used, "%s%s", used ? ", " : "",
						 d->conf->services[i].name);
}

static void describe(struct es_daemon *d, unsigned int node)
{
	const char *text = es_trouble_text(d->serving->trouble[node]);
	char names[96];

	name_services(d, concerned(d, node), names, sizeof(names));
	if (es_serving_waits(d->serving->failing[node], d->serving->trouble[node], d->serving->yields[node]))
		text = "the server has not been checked yet";
	snprintf(d->serving->text[node], sizeof(d->serving->text[node]), "%s%s%s%s", *names ? "service " : "",
		 names, *names ? ": " : "", text);
}

static void log_other(const struct es_daemon *d, unsigned int node)
{
	const char *name = d->conf->nodes[node].name;
	unsigned int trouble = d->serving->trouble[node];
	char services[96];

	name_services(d, concerned(d, node), services, sizeof(services));
	if (trouble == ES_TROUBLE_KEPT)
		es_event(ES_EVENT_server_down, ES_LOG_INFO, name, "%s: %s", name, d->serving->text[node]);
	else if (trouble)
		es_event(ES_EVENT_server_down, ES_LOG_INFO, name, "%s cannot serve%s%s: %s", name,
			 *services ? " " : "", services, es_trouble_text(trouble));
	else
		es_event(ES_EVENT_server_up, ES_LOG_INFO, name, "%s can serve again", name);
}

/* Without membership nobody else notices that a node says nothing any more. */
static void forget_silent(struct es_daemon *d)
{
	for (unsigned int i = 0; i < d->conf->node_count; i++)
		if (i != d->cluster->self && d->serving->trouble[i] &&
		    !es_heard_within(d->heard, i, 2 * ES_SILENCE_NS)) {
			/* Which is no news: it may be dead. */
			d->serving->trouble[i] = d->serving->told_of[i] = ES_TROUBLE_NONE;
			d->serving->lacks[i] = 0;
			es_daemon_serving_heard(d, i, &(const struct es_wire_load){}, 0);
		}
}

/*
 * Settings of the machine with which some connections cannot be made, or are lost: better than none at all.
 */
static void spare_the_last(struct es_daemon *d, struct es_serving *now)
{
	for (unsigned int i = 0; i < d->conf->service_count; i++)
		if ((now->refused >> i & 1) && !es_daemon_another_serves(d, i))
			es_serving_spares(now, i);
}

/* Has this node heard from the others since it started? One that is dead is not waited for. */
static int others_are_heard(const struct es_daemon *d)
{
	if (d->conf->cluster.membership == ES_CONF_MEMBERSHIP_COROSYNC)
		return d->membership && es_group_is_in(es_membership_group(d->membership));
	if (es_clock_now_ns() - d->serving->began_ns >= ES_SILENCE_NS)
		return 1;
	for (unsigned int i = 0; i < d->conf->node_count; i++)
		if (i != d->cluster->self && !d->heard->at_ns[i])
			return 0;
	return 1;
}

/*
 * Before the first check is over, another node is better. Before others are heard, it is as with the daemon
 * before.
 */
static int waits_for_check(const struct es_daemon *d, unsigned int service)
{
	return others_are_heard(d) ? es_daemon_another_serves(d, service)
				   : !(d->serving->served >> service & 1);
}

/* Nobody listens, so this node answers no request, whichever nodes are out. */
static void add_refusing(struct es_daemon *d, struct es_serving *now, unsigned int i, const char *why,
			 int was_refused)
{
	int is_told = was_refused || es_daemon_checks_is_told(d->checks, i);

	es_serving_fails(now, d->conf, i, why,
			 d->conf->services[i].when_all_down == ES_CONF_ALL_DOWN_REJECT ||
				 (is_told && es_daemon_another_serves(d, i)));
	if (is_told)
		return;
	now->is_open = 1;
	es_daemon_serving_look_in(d, ES_CHECKS_TOLD_NS / 1e9);
}

/*
 * The same cause may soon make other nodes' servers fail. So this node goes only if it gets a place, and
 * another passes.
 */
static void add_doubtful(struct es_daemon *d, struct es_serving *now, unsigned int i, const char *why,
			 int was_refused)
{
	const struct es_place_limits limits = {.max_out = d->conf->services[i].outlier.max_out};
	struct es_place *place = &d->checks->service[i].place;
	struct es_place_others others = es_daemon_others(d, i);
	unsigned long long now_ms = es_clock_now_ns() / 1000000;
	char reason[64];

	/* A node that is away for a reason of its own has no place, nor has the one that passes. */
	others.away = 0;
	others.count = others.before + others.after + 1;
	if (place->state == ES_PLACE_IN)
		es_place_claim(place, &limits, &others, now_ms);
	else
		es_place_look(place, &limits, &others, now_ms);
	snprintf(reason, sizeof(reason), "max_out = %u, and others are out", limits.max_out);
	if (place->state == ES_PLACE_IN)
		es_serving_is_kept(now, d->conf, i, why, reason);
	else if (place->state == ES_PLACE_CLAIMS)
		es_serving_claims(now, i, was_refused);
	else
		es_serving_is_out(now, d->conf, i, ES_TROUBLE_CHECK, why);
	now->is_open |= place->state == ES_PLACE_CLAIMS;
}

/*
 * A check that fails on all nodes takes none of them away, unless the configuration wants it (when_all_down).
 */
static void add_common(struct es_daemon *d, struct es_serving *now, unsigned int i, const char *why)
{
	if (d->conf->services[i].when_all_down == ES_CONF_ALL_DOWN_REJECT)
		es_serving_fails(now, d->conf, i, why, 1);
	else
		es_serving_is_kept(now, d->conf, i, why, "no other node is known to pass");
}

static void add_checks(struct es_daemon *d, struct es_serving *now, __u64 refused)
{
	const char *why;

	for (unsigned int i = 0; i < d->conf->service_count; i++) {
		int fails = es_daemon_checks_fails(d->checks, i, &why), was_refused = refused >> i & 1;
		int is_doubtful = fails && !es_daemon_checks_refuse(d->checks, i);

		/* Nodes can tell each other of so many services. */
		if (is_doubtful && i < ES_WIRE_FAILING_MAX && es_daemon_another_serves(d, i)) {
			add_doubtful(d, now, i, why, was_refused);
			continue;
		}
		es_place_is_well(&d->checks->service[i].place, 0);
		if (is_doubtful)
			add_common(d, now, i, why);
		else if (fails)
			add_refusing(d, now, i, why, was_refused);
		else if (es_daemon_checks_is_unknown(d->checks, i))
			es_serving_is_unchecked(now, d->conf, i, waits_for_check(d, i));
	}
}

void es_daemon_serving_given(struct es_daemon *d)
{
	unsigned int self = d->cluster->self;
	__u64 given = es_health_state(&d->health, self) == ES_NODE_DRAINING
			      ? ~0ULL
			      : d->serving->now.elsewhere |
					atomic_load_explicit(&d->health.drained[self], memory_order_relaxed);

	if (d->datapath)
		__atomic_store_n(&es_datapath_state(d->datapath)->worker[0].given_services, given,
				 __ATOMIC_RELAXED);
}

void es_daemon_serving_tell(struct es_daemon *d)
{
	if (ev_is_active(&d->load->timer))
		es_load_exchange_tell_takes(&d->exchange->way, d->cluster, &d->keys, d->health.understands,
					    d->network.packet_max, ES_MAKES_OF_HANDSHAKES,
					    d->serving->now.lacks);
}

void es_daemon_serving_word(const struct es_daemon *d, struct es_wire_load *word)
{
	const struct es_serving *now = &d->serving->now;

	word->trouble = d->membership && es_membership_is_cut_off(d->membership) ? ES_TROUBLE_CUT_OFF
										 : (uint8_t)now->trouble;
	word->understands = now->yields ? ES_WIRE_FAILING_YIELDS : 0;
	word->failing = now->failing & ((1ULL << ES_WIRE_FAILING_MAX) - 1);
}

void es_daemon_serving_look(struct es_daemon *d)
{
	struct es_worker_state *first = &es_datapath_state(d->datapath)->worker[0];
	const struct es_serving before = d->serving->now;
	struct es_serving *now = &d->serving->now;
	struct es_wire_load word = {};

	es_serving_look(d->conf, d->cluster->self, d->datapath_kind, es_daemon_packet_max_expected(d), now);
	spare_the_last(d, now);
	add_checks(d, now, before.refused);
	es_daemon_outliers_add(d, now);
	es_daemon_vanishing_add(d, now);
	__atomic_store_n(&first->refused_until_ns, es_clock_now_ns() + ES_SERVING_REFUSED_NS,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&first->refused_services, now->refused, __ATOMIC_RELAXED);
	for (unsigned int family = 0; family < ES_CONF_FAMILIES; family++)
		__atomic_store_n(&first->refused_of[family], now->absent[family], __ATOMIC_RELAXED);
	es_daemon_serving_given(d);
	log_change(&d->serving->told, now);
	es_daemon_serving_word(d, &word);
	es_daemon_serving_heard(d, d->cluster->self, &word, es_daemon_serving_is_down(d));
	if (before.is_down != now->is_down || before.trouble != now->trouble ||
	    before.failing != now->failing || before.yields != now->yields || before.lacks != now->lacks) {
		es_daemon_serving_tell(d); /* has what the next word is about */
		d->load->told_ns = 0;	   /* the others hear of it at once */
		if (d->membership)
			es_membership_serving(d->membership);
	}
	if (!d->membership)
		forget_silent(d);
}

void es_daemon_serving_changed(void *daemon)
{
	es_daemon_serving_look(daemon);
}

/*
 * Without membership, a server that does not listen is told by each request that it refuses, and by the first
 * one that it does not: it need not wait until this node has noticed.
 */
int es_daemon_serving_is_down(const struct es_daemon *d)
{
	const struct es_serving *now = &d->serving->now;

	return now->is_down && (now->trouble != ES_TROUBLE_NO_SERVER ||
				d->conf->cluster.membership != ES_CONF_MEMBERSHIP_STATIC);
}

void es_daemon_serving_heard(struct es_daemon *d, unsigned int node, const struct es_wire_load *word,
			     int is_down)
{
	unsigned long long now_ns = es_clock_now_ns();
	unsigned int before = d->serving->trouble[node];

	/* Whether others serve decides what a node does whose server fails, or is not checked yet. */
	if (d->serving->now.failing && node != d->cluster->self &&
	    (before != word->trouble || d->serving->failing[node] != word->failing))
		es_daemon_serving_look_in(d, 0);
	/* Without membership, a node whose server is only missing is not down. */
	if (before == ES_TROUBLE_NO_SERVER && word->trouble != ES_TROUBLE_NO_SERVER)
		es_health_is_back(&d->health, node, ~0ULL, now_ns);
	else
		es_health_is_back(
			&d->health, node,
			es_serving_away(d->serving->failing[node], before, d->serving->yields[node]) &
				~word->failing,
			now_ns);
	/* It would be silent about what it is given as the last resort. */
	if (word->trouble == ES_TROUBLE_CUT_OFF && node != d->cluster->self)
		es_health_suspend(&d->health, node, now_ns + 2 * ES_SILENCE_NS);
	d->serving->trouble[node] = word->trouble;
	d->serving->failing[node] = word->failing;
	d->serving->yields[node] = (word->understands & ES_WIRE_FAILING_YIELDS) != 0;
	describe(d, node);
	/* While it waits for its first check, or claims a place, there is nothing to tell yet. */
	if (d->serving->told_of[node] != word->trouble && node != d->cluster->self &&
	    (word->trouble || !word->failing)) {
		d->serving->told_of[node] = word->trouble;
		d->serving->told_lacks[node] = d->serving->lacks[node];
		log_other(d, node);
	}
	if (d->conf->cluster.membership == ES_CONF_MEMBERSHIP_STATIC)
		es_health_change_state(&d->health, node, is_down ? ES_NODE_DOWN : ES_NODE_UP, now_ns);
}

const char *es_daemon_serving_trouble(const struct es_daemon *d, unsigned int node)
{
	return node == d->cluster->self ? d->serving->now.text : d->serving->text[node];
}

const char *es_daemon_serving_text(const struct es_daemon *d, unsigned int node)
{
	const char *text = es_daemon_serving_trouble(d, node);

	/* A node that could serve all services may be drained of some. */
	return *text ? text : d->service_drains->text[node];
}

void es_daemon_serving_lacks(struct es_daemon *d, unsigned int node, __u64 lacks)
{
	d->serving->lacks[node] = lacks;
	describe(d, node);
	/* The same is wrong with another service; or which one it is, was not known yet. */
	if (d->serving->told_of[node] != d->serving->trouble[node] || !concerned(d, node) ||
	    concerned(d, node) != lacks || d->serving->told_lacks[node] == lacks)
		return;
	d->serving->told_lacks[node] = lacks;
	log_other(d, node);
}

void es_daemon_serving_look_in(struct es_daemon *d, double seconds)
{
	ev_timer_stop(d->loop, &d->serving->timer);
	ev_timer_set(&d->serving->timer, seconds, LOOK_S);
	ev_timer_start(d->loop, &d->serving->timer);
}

static void on_timer(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	(void)loop;
	(void)events;
	es_daemon_packet_max_look(timer->data);
	es_daemon_serving_tell(timer->data);
	es_daemon_serving_look(timer->data);
}

void es_daemon_serving_start(struct es_daemon *d)
{
	const struct es_worker_state *first = &es_datapath_state(d->datapath)->worker[0];

	d->serving->began_ns = es_clock_now_ns();
	if (es_datapath_adopted(d->datapath))
		d->serving->served = ~__atomic_load_n(&first->refused_services, __ATOMIC_RELAXED);
	ev_init(&d->serving->timer, on_timer);
	d->serving->timer.data = d;
	es_daemon_serving_look_in(d, LOOK_S);
	es_daemon_serving_look(d);
}

void es_daemon_serving_stop(struct es_daemon *d)
{
	if (d->loop)
		ev_timer_stop(d->loop, &d->serving->timer);
}
