// SPDX-License-Identifier: GPL-2.0-or-later
/* What follows from whether this node can serve, and from what other nodes say of that. */
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/base/event.h"
#include "inspector/daemon/daemon.h"
#include "kmod/core/serving.h"

#define LOOK_S 1.0

static void log_change(const struct es_serving *before, const struct es_serving *now)
{
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

static void log_other(const char *name, unsigned int trouble)
{
	if (trouble)
		es_event(ES_EVENT_server_down, ES_LOG_INFO, name, "%s cannot serve: %s", name,
			 es_trouble_text(trouble));
	else
		es_event(ES_EVENT_server_up, ES_LOG_INFO, name, "%s can serve again", name);
}

/* Without membership nobody else notices that a node says nothing any more. */
static void forget_silent(struct es_daemon *d)
{
	unsigned long long now_ns = es_clock_now_ns();

	for (unsigned int i = 0; i < d->conf->node_count; i++)
		if (i != d->cluster->self && d->serving.trouble[i] &&
		    now_ns - d->load.heard_ns[i] >= 2 * ES_LOAD_SILENCE_MS * 1000000ULL) {
			d->serving.trouble[i] = ES_TROUBLE_NONE; /* which is no news: it may be dead */
			es_daemon_serving_heard(d, i, &(const struct es_wire_load){}, 0);
		}
}

/* Settings of the machine with which some connections cannot be made, or are lost: better than none at all. */
static void spare_the_last(struct es_daemon *d, struct es_serving *now)
{
	for (unsigned int i = 0; i < d->conf->service_count; i++)
		if ((now->refused >> i & 1) && !es_daemon_another_serves(d, i))
			es_serving_spares(now, i);
}

/* While no node passes, those that may have requests all the same (when_all_down) say that they are up. */
static void add_checks(struct es_daemon *d, struct es_serving *now)
{
	const char *why;

	for (unsigned int i = 0; i < d->conf->service_count; i++)
		if (es_daemon_checks_fails(&d->checks, i, &why))
			es_serving_fails(now, d->conf, i, why,
					 d->conf->services[i].when_all_down == ES_CONF_ALL_DOWN_REJECT ||
						 es_daemon_another_serves(d, i));
}

void es_daemon_serving_look(struct es_daemon *d)
{
	struct es_worker_state *first = &es_datapath_state(d->datapath)->worker[0];
	const struct es_serving before = d->serving.now;
	struct es_serving *now = &d->serving.now;
	struct es_wire_load word = {};

	es_serving_look(d->conf, d->datapath_kind, d->network.packet_max, now);
	spare_the_last(d, now);
	add_checks(d, now);
	es_daemon_outliers_add(d, now);
	es_daemon_vanishing_add(d, now);
	__atomic_store_n(&first->refused_until_ns, es_clock_now_ns() + ES_SERVING_REFUSED_NS,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&first->refused_services, now->refused, __ATOMIC_RELAXED);
	for (unsigned int family = 0; family < ES_CONF_FAMILIES; family++)
		__atomic_store_n(&first->refused_of[family], now->absent[family], __ATOMIC_RELAXED);
	log_change(&before, now);
	es_daemon_load_word(d, &word);
	es_daemon_serving_heard(d, d->cluster->self, &word, es_daemon_serving_is_down(d));
	if (before.is_down != now->is_down || before.trouble != now->trouble ||
	    before.failing != now->failing || before.yields != now->yields) {
		d->load.told_ns = 0; /* the others hear of it at once */
		if (d->membership)
			es_membership_serving(d->membership);
	}
	if (!d->membership)
		forget_silent(d);
}

/*
 * Without membership, a server that does not listen is told by each request that it refuses, and by the first
 * one that it does not: it need not wait until this node has noticed.
 */
int es_daemon_serving_is_down(const struct es_daemon *d)
{
	const struct es_serving *now = &d->serving.now;

	return now->is_down && (now->trouble != ES_TROUBLE_NO_SERVER ||
				d->conf->cluster.membership != ES_CONF_MEMBERSHIP_STATIC);
}

void es_daemon_serving_heard(struct es_daemon *d, unsigned int node, const struct es_wire_load *word,
			     int is_down)
{
	unsigned long long now_ns = es_clock_now_ns();
	unsigned int before = d->serving.trouble[node];

	if (d->serving.trouble[node] != word->trouble && node != d->cluster->self)
		log_other(d->conf->nodes[node].name, word->trouble);
	/* Without membership, a node whose server is only missing is not down. */
	if (before == ES_TROUBLE_NO_SERVER && word->trouble != ES_TROUBLE_NO_SERVER)
		es_health_is_back(&d->health, node, ~0ULL, now_ns);
	else
		es_health_is_back(&d->health, node,
				  es_serving_away(d->serving.failing[node], before, d->serving.yields[node]) &
					  ~word->failing,
				  now_ns);
	d->serving.trouble[node] = word->trouble;
	d->serving.failing[node] = word->failing;
	d->serving.yields[node] = (word->understands & ES_WIRE_FAILING_YIELDS) != 0;
	if (d->conf->cluster.membership == ES_CONF_MEMBERSHIP_STATIC)
		es_health_change_state(&d->health, node, is_down ? ES_NODE_DOWN : ES_NODE_UP, now_ns);
}

const char *es_daemon_serving_text(const struct es_daemon *d, unsigned int node)
{
	return node == d->cluster->self ? d->serving.now.text : es_trouble_text(d->serving.trouble[node]);
}

static void on_timer(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	(void)loop;
	(void)events;
	es_daemon_serving_look(timer->data);
}

void es_daemon_serving_start(struct es_daemon *d)
{
	es_daemon_serving_look(d);
	ev_timer_init(&d->serving.timer, on_timer, LOOK_S, LOOK_S);
	d->serving.timer.data = d;
	ev_timer_start(d->loop, &d->serving.timer);
}

void es_daemon_serving_stop(struct es_daemon *d)
{
	if (d->loop)
		ev_timer_stop(d->loop, &d->serving.timer);
}
