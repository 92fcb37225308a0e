// SPDX-License-Identifier: GPL-2.0-or-later
/* The exchange of what the nodes have admitted, on the control thread. */
#include "inspector/base/clock.h"
#include "inspector/base/wall.h"
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/exchange.h"
#include "inspector/daemon/rates.h"
#include "inspector/daemon/route.h"
#include "inspector/peers/rate_words.h"

static int has_rate(const struct es_conf *conf)
{
	for (unsigned int i = 0; i < conf->rule_count; i++)
		if (conf->rules[i].rate[0])
			return 1;
	return 0;
}

static void tell(struct es_daemon *d, const struct es_rate_word *words, unsigned int count)
{
	struct es_daemon_rates *rates = d->rates;
	__u64 number = es_number_ns();
	struct es_rates_message message;
	size_t len;

	rates->sequence = number > rates->sequence ? number : rates->sequence + 1;
	len = es_rates_message_make(&message, d->cluster->self, rates->sequence, words, count,
				    &d->keys.key[0].handover);
	for (unsigned int i = 0; i < d->conf->node_count; i++)
		if (i != d->cluster->self)
			es_daemon_send(d, i, &message, len);
}

static void on_timer(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct es_rate_word words[ES_RATES_WORDS_MAX];
	struct es_daemon *d = timer->data;
	unsigned int count;

	(void)loop;
	(void)events;
	while ((count = es_rates_said(d->rates->table, words, ES_RATES_WORDS_MAX)) != 0)
		tell(d, words, count);
}

int es_daemon_rates_message(struct es_daemon *d, const void *data, size_t len)
{
	struct es_rate_word words[ES_RATES_WORDS_MAX];
	int count = es_rates_message_read(data, len, d->cluster->self, d->conf->node_count, &d->keys,
					  d->rates->heard, words);

	for (int i = 0; i < count; i++)
		es_rates_heard(d->rates->table, &words[i], es_clock_now_ns());
	return count < 0 ? count : 0;
}

int es_daemon_rates_prepare(struct es_daemon *d)
{
	int rc = es_rates_new(&d->keys.ring, &d->rates->table);

	d->route->shared.rates = d->rates->table;
	ev_timer_init(&d->rates->timer, on_timer, ES_RATES_INTERVAL_MS / 1000.0,
		      ES_RATES_INTERVAL_MS / 1000.0);
	d->rates->timer.data = d;
	return rc;
}

void es_daemon_rates_rebind(struct es_daemon *d)
{
	if (has_rate(d->conf))
		ev_timer_start(d->loop, &d->rates->timer);
	else
		ev_timer_stop(d->loop, &d->rates->timer);
}

void es_daemon_rates_stop(struct es_daemon *d)
{
	if (d->rates->table)
		ev_timer_stop(d->loop, &d->rates->timer);
	es_rates_free(&d->rates->table);
}
