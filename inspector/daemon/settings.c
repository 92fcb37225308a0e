// SPDX-License-Identifier: GPL-2.0-or-later
/* Settings of static nodes: asked for, told, and kept for whoever looks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/base/wall.h"
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/exchange.h"
#include "inspector/daemon/heard.h"
#include "inspector/daemon/settings.h"
#include "inspector/self/settings.h"

#define HEARD_LATELY_NS 3000000000ULL

int es_daemon_is_heard(const struct es_daemon *d, unsigned int node)
{
	return es_heard_within(d->heard, node, HEARD_LATELY_NS);
}

static int understands(const struct es_daemon *d, unsigned int node)
{
	return atomic_load_explicit(&d->health.understands[node], memory_order_relaxed) &
	       ES_WIRE_UNDERSTANDS_ROLLOUTS;
}

static void on_timer(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct es_daemon *d = timer->data;
	unsigned long long number = es_number_ns();

	(void)loop;
	(void)events;
	for (unsigned int i = 0; i < d->conf->node_count; i++) {
		struct es_daemon_told *of = &d->settings->of[i];
		struct es_snapshot_message message;

		if (i == d->cluster->self || !understands(d, i) || !es_daemon_is_heard(d, i))
			continue;
		es_snapshot_expect(&of->inbox, number);
		es_daemon_send(d, i, &message,
			       es_snapshot_settings_ask(&message, d->cluster->self, i, number,
							es_snapshot_digest(of->text),
							&d->keys.key[0].handover));
	}
}

static void answer(struct es_daemon *d, const struct es_snapshot_header *question)
{
	struct es_daemon_told *asker = &d->settings->of[question->source];
	unsigned long long now_ns = es_clock_now_ns();
	const char *own = d->settings->own;
	size_t len = strlen(own);

	if (es_cpu_be64((__u64)question->known) == es_snapshot_digest(own) ||
	    (asker->answered_ns && now_ns - asker->answered_ns < ES_SNAPSHOT_ANSWER_NS))
		return;
	asker->answered_ns = now_ns;
	for (unsigned int part = 0;; part++) {
		struct es_snapshot_message message;
		size_t size = es_snapshot_settings_part(&message, d->cluster->self, question->source,
							es_cpu_be64((__u64)question->number), own, len, part,
							&d->keys.key[0].handover);

		if (!size)
			return;
		es_daemon_send(d, question->source, &message, size);
	}
}

void es_daemon_settings_message(struct es_daemon *d, const struct es_snapshot_message *message)
{
	struct es_daemon_told *from;

	if (!d->settings->of)
		return;
	from = &d->settings->of[message->header.source];
	if (message->header.kind == ES_SNAPSHOT_ASK_SETTINGS) {
		answer(d, &message->header);
		return;
	}
	if (es_snapshot_take(&from->inbox, message) <= 0)
		return;
	memcpy(from->text, from->inbox.text, from->inbox.total);
	from->text[from->inbox.total] = 0;
}

void es_daemon_settings_told(const struct es_daemon *d, struct es_report_told *ret_told)
{
	*ret_told = (struct es_report_told){};
	if (!d->settings->of)
		return;
	ret_told->count = d->conf->node_count;
	for (unsigned int i = 0; i < ret_told->count; i++) {
		const char *text = d->settings->of[i].text;

		ret_told->name[i] = d->conf->nodes[i].name;
		if (i == d->cluster->self)
			ret_told->settings[i] = d->settings->own;
		else if (*text && es_daemon_is_heard(d, i))
			ret_told->settings[i] = text;
	}
}

void es_daemon_settings_rebind(struct es_daemon *d)
{
	if (!d->settings->of)
		return;
	es_settings_text(d->conf, &d->keys, &d->network, d->plugins, d->settings->own,
			 ES_SNAPSHOT_TEXT_MAX + 1);
	/* Nodes may have other numbers; all is soon told again. */
	for (unsigned int i = 0; i < ES_NODES_MAX; i++) {
		d->settings->of[i].text[0] = 0;
		d->settings->of[i].answered_ns = 0;
	}
	ev_timer_again(d->loop, &d->settings->timer);
	on_timer(d->loop, &d->settings->timer, 0);
}

int es_daemon_settings_start(struct es_daemon *d, struct es_conf_error *err)
{
	(void)err;
	if (d->membership)
		return 0;
	d->settings->own = malloc(ES_SNAPSHOT_TEXT_MAX + 1);
	d->settings->of = calloc(ES_NODES_MAX, sizeof(*d->settings->of));
	if (!d->settings->own || !d->settings->of)
		return -ENOMEM;
	ev_init(&d->settings->timer, on_timer);
	d->settings->timer.repeat = ES_SETTINGS_ASK_S;
	d->settings->timer.data = d;
	es_daemon_settings_rebind(d);
	return 0;
}

void es_daemon_settings_stop(struct es_daemon *d)
{
	struct es_daemon_settings *settings = d->settings;

	if (ev_is_active(&settings->timer))
		ev_timer_stop(d->loop, &settings->timer);
	free(settings->own);
	free(settings->of);
	settings->own = NULL;
	settings->of = NULL;
}
