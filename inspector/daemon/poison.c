// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The control thread's part of requests that end daemons: it takes over the marks of the daemon before,
 * hears and logs what other nodes tell, repeats its own, and starts the keeper. Workers handle such a request
 * in inspect/poisoned.c.
 */
#include <arpa/inet.h>
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/daemon/daemon.h"
#include "inspector/base/log.h"
#include "inspector/base/wall.h"
#include "inspector/daemon/exchange.h"
#include "inspector/daemon/keeper.h"
#include "inspector/daemon/poison.h"
#include "inspector/inspect/poison.h"
#include "inspector/report/poison.h"

/* This node's own poisons are told again and again: a node may have been away. */
#define TELL_AGAIN_NS 5000000000ULL
#define TIMER_S	      1

static struct es_poisons *poisons_of(const struct es_daemon *d)
{
	return &es_datapath_state(d->datapath)->poisons;
}

static void say(const struct es_daemon *d, const struct es_poison *poison)
{
	char client[INET6_ADDRSTRLEN];
	const char *node = poison->node < d->conf->node_count ? d->conf->nodes[poison->node].name : "?";

	es_log(ES_LOG_ERR, "a request of %s port %u %s the daemon of %s: %s%s",
	       es_conf_addr_text(&poison->client, client), es_ntohs(poison->client_port),
	       poison->kind == ES_POISON_HUNG ? "holds up" : "has ended", node,
	       d->conf->inspector.poison == ES_CONF_POISON_REFUSE
		       ? "it, and what begins with the same bytes, is refused from now on"
		       : "it, and what begins with the same bytes, is served without inspection from now on",
	       es_clock_now_ns() < poisons_of(d)->storm_until_ns
		       ? "; there were several, so no first request is inspected for a minute"
		       : "");
}

static void tell(const struct es_daemon *d, const struct es_poison *poison)
{
	struct es_poison_message message;

	es_poison_message_make(poison, d->cluster->self, &d->keys.key[0].handover, es_wall_ns(), &message);
	for (unsigned int i = 0; i < d->conf->node_count; i++)
		if (i != d->cluster->self)
			es_daemon_send(d, i, &message, sizeof(message));
}

static void tell_all(struct es_daemon *d, unsigned long long now_ns)
{
	const struct es_poisons *poisons = poisons_of(d);

	if (now_ns >= poisons->until_ns || now_ns - d->poison->told_ns < TELL_AGAIN_NS)
		return;
	d->poison->told_ns = now_ns;
	for (unsigned int i = 0; i < ES_POISONS; i++)
		if (poisons->poison[i].node == d->cluster->self &&
		    es_poison_find(poisons, poisons->poison[i].flow_hash, 0, now_ns) == &poisons->poison[i])
			tell(d, &poisons->poison[i]);
}

/* Packets can make a plugin crash, but cannot fill the log: the plugin is off after a few crashes. */
static void plugins_watch(struct es_daemon *d)
{
	static struct es_plugin_report report; /* large; this is the control thread's */
	unsigned int crashes = 0;

	for (unsigned int i = 0; i < es_plugins_count(d->plugins); i++) {
		es_plugins_describe(d->plugins, i, &report);
		crashes += report.crashes;
	}
	if (crashes > d->poison->crashes)
		for (unsigned int i = 0; i < es_plugins_count(d->plugins); i++) {
			es_plugins_describe(d->plugins, i, &report);
			if (report.crashes)
				es_log(ES_LOG_ERR,
				       "plugin %s of service %s has crashed or hung %u times, last: %s%s",
				       report.name, d->conf->services[report.service].name, report.crashes,
				       report.last_error,
				       report.is_off ? "; it is off until the next reload" : "");
		}
	d->poison->crashes = crashes;
}

static void on_timer(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct es_daemon *d = timer->data;

	(void)loop;
	(void)events;
	tell_all(d, es_clock_now_ns());
	plugins_watch(d);
}

static void on_child(struct ev_loop *loop, struct ev_child *child, int events)
{
	(void)events;
	ev_child_stop(loop, child);
	es_log(ES_LOG_WARNING,
	       "keeper: it has ended; if a request ends this daemon as well, the other nodes learn of it "
	       "only when the next daemon starts");
}

int es_daemon_poison_message(void *daemon, const void *data, size_t len)
{
	struct es_daemon *d = daemon;
	struct es_poison poison;
	int rc = es_poison_message_read(data, len, d->cluster->self, d->conf->node_count, &d->keys,
					es_wall_ns(), &poison);

	if (!rc && poison.kind == ES_POISON_OVER)
		es_poison_forget(poisons_of(d), &poison, es_clock_now_ns());
	else if (!rc && es_poison_note(poisons_of(d), &poison, es_clock_now_ns()))
		say(d, &poison);
	return rc;
}

/* A mark that is still there was left by a daemon that has ended in the middle of it. */
static void marks_take(struct es_daemon *d)
{
	struct es_state *state = es_datapath_state(d->datapath);
	unsigned long long now_ns = es_clock_now_ns();
	struct es_poison poison;

	for (unsigned int i = 0; i < ES_WORKERS_MAX; i++) {
		if (!es_poison_of_mark(&state->mark[i], &d->keys.ring, &poison)) {
			poison.node = (__u8)d->cluster->self;
			if (es_poison_note(&state->poisons, &poison, now_ns))
				say(d, &poison);
		}
		es_mark_clear(&state->mark[i]);
	}
}

int es_daemon_poison_start(struct es_daemon *d)
{
	int rc;

	marks_take(d);
	rc = es_keeper_start(es_datapath_state(d->datapath), d->datapath_params.workers, d->cluster, &d->keys,
			     &d->poison->keeper);
	if (rc)
		return rc;
	ev_child_init(&d->poison->child, on_child, es_keeper_pid(d->poison->keeper), 0);
	ev_child_start(d->loop, &d->poison->child);
	ev_timer_init(&d->poison->timer, on_timer, TIMER_S, TIMER_S);
	d->poison->timer.data = d;
	ev_timer_start(d->loop, &d->poison->timer);
	return 0;
}

void es_daemon_poison_stop(struct es_daemon *d)
{
	if (!d->poison->keeper)
		return;
	ev_timer_stop(d->loop, &d->poison->timer);
	ev_child_stop(d->loop, &d->poison->child);
	es_keeper_stop(&d->poison->keeper);
}

struct json_object *es_daemon_poison_report(const struct es_daemon *d)
{
	return es_report_poison(d->conf, poisons_of(d), es_clock_now_ns());
}
