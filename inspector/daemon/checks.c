// SPDX-License-Identifier: GPL-2.0-or-later
/* When checks begin and end, and what follows from them. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/base/log.h"
#include "inspector/daemon/checks.h"

/* At a check that is under way, whether somebody has accepted its connection: soon at first, so that it is
 * there for no longer than needed, then twice as late each time. */
#define LOOK_FIRST_S 0.001
#define LOOK_S	     0.05

static void again_in(struct es_daemon_check *c, double seconds)
{
	struct ev_loop *loop = c->checks->loop;

	ev_timer_stop(loop, &c->timer);
	ev_timer_set(&c->timer, seconds, 0);
	ev_timer_start(loop, &c->timer);
}

static void rest_stop(struct es_daemon_check *c)
{
	ev_io_stop(c->checks->loop, &c->rest);
	ev_timer_stop(c->checks->loop, &c->rest_limit);
}

static void on_rest(struct ev_loop *loop, struct ev_io *io, int events)
{
	struct es_daemon_check *c = io->data;

	(void)loop;
	(void)events;
	ev_io_stop(loop, io); /* before the descriptor is closed */
	if (es_server_check_rest(&c->check))
		ev_io_start(loop, io);
	else
		rest_stop(c);
}

static void on_rest_limit(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct es_daemon_check *c = timer->data;

	(void)loop;
	(void)events;
	rest_stop(c);
	es_server_check_rest_end(&c->check);
}

static void rest_start(struct es_daemon_check *c)
{
	if (c->check.rest_fd < 0)
		return;
	ev_io_set(&c->rest, c->check.rest_fd, EV_READ);
	ev_io_start(c->checks->loop, &c->rest);
	ev_timer_set(&c->rest_limit, ES_SERVER_CHECK_REST_S, 0);
	ev_timer_start(c->checks->loop, &c->rest_limit);
}

static void finish(struct es_daemon_check *c, enum es_server_check_result result)
{
	const struct es_conf_check *conf = &c->check.conf;
	int passed = result == ES_SERVER_CHECK_PASSED, was_refused = c->is_refused;

	c->is_running = 0;
	rest_start(c);
	if (passed)
		c->duration_s = c->check.duration_s;
	again_in(c, conf->interval_ms / 1e3);
	if (result == ES_SERVER_CHECK_QUEUED)
		return;
	c->is_refused = !passed && c->check.is_refused;
	/* The verdict may be the same, but another check fails for another reason. */
	if (!es_streak_add(&c->verdict, passed, conf->rise, conf->fall) &&
	    (!c->verdict.is_down || passed || (was_refused == c->is_refused && !c->is_other)))
		return;
	c->is_other = 0;
	memcpy(c->why, c->check.why, sizeof(c->why));
	c->fell_ns = es_clock_now_ns();
	c->checks->changed(c->checks->ctx);
}

static void go_on(struct es_daemon_check *c)
{
	struct ev_loop *loop = c->checks->loop;
	enum es_server_check_result result;

	ev_io_stop(loop, &c->io); /* before the descriptor is closed */
	result = es_server_check_step(&c->check, es_clock_now_ns());
	if (result != ES_SERVER_CHECK_PENDING) {
		finish(c, result);
		return;
	}
	/* By TCP no event tells of what is accepted. */
	if (es_server_check_wants_write(&c->check) || es_conf_check_is_http(&c->check.conf)) {
		ev_io_set(&c->io, c->check.fd, es_server_check_wants_write(&c->check) ? EV_WRITE : EV_READ);
		ev_io_start(loop, &c->io);
	}
	again_in(c, c->look_s);
	c->look_s = 2 * c->look_s < LOOK_S ? 2 * c->look_s : LOOK_S;
}

static void on_io(struct ev_loop *loop, struct ev_io *io, int events)
{
	(void)loop;
	(void)events;
	go_on(io->data);
}

/* Does something, as far as the last look at the servers found? */
static int listens(const struct es_daemon_check *c)
{
	return (int)(c->checks->listens[c->family] >> c->service & 1);
}

static void on_timer(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct es_daemon_check *c = timer->data;

	(void)events;
	if (!c->is_running && !listens(c)) {
		/* Whatever listens next is another server. */
		rest_stop(c);
		es_server_check_end(&c->check);
		es_streak_presume(&c->verdict, 0);
		again_in(c, c->check.conf.interval_ms / 1e3);
		return;
	}
	if (!c->is_running) {
		ev_io_stop(loop, &c->io);
		rest_stop(c);
		es_server_check_begin(&c->check, es_clock_now_ns());
		c->is_running = 1;
		c->look_s = LOOK_FIRST_S;
	}
	go_on(c);
}

static void prepare(struct es_daemon_checks *checks, const struct es_conf_service *conf, unsigned int service,
		    unsigned int family, struct es_daemon_check *c)
{
	*c = (struct es_daemon_check){
		.checks = checks, .service = service, .family = family, .duration_s = NAN};
	memcpy(c->name, conf->name, sizeof(c->name));
	es_server_check_init(&c->check, conf, es_conf_service_of(conf, family));
	ev_init(&c->timer, on_timer);
	ev_init(&c->io, on_io);
	ev_init(&c->rest, on_rest);
	ev_init(&c->rest_limit, on_rest_limit);
	c->timer.data = c->io.data = c->rest.data = c->rest_limit.data = c;
}

/* Is the same asked of the same server, however often, and whatever follows? */
static int asks_the_same(const struct es_daemon_check *c, const struct es_daemon_check *before)
{
	const struct es_conf_check *now = &c->check.conf, *then = &before->check.conf;

	return c->check.port == before->check.port &&
	       es_addr_equal(&c->check.address, &before->check.address) && now->type == then->type &&
	       !strcmp(now->path, then->path) && !strcmp(now->host, then->host) &&
	       !strcmp(now->ca_file, then->ca_file) && !strcmp(now->body, then->body) &&
	       !memcmp(now->right, then->right, sizeof(now->right));
}

/*
 * @before: the check of the same service, by the same family. If another check is configured now, the verdict
 * of @before holds until the first new check has decided: if all nodes forgot at once what they knew, none
 * would serve until then.
 */
static void inherit(struct es_daemon_check *c, const struct es_daemon_check *before)
{
	if (strcmp(c->name, before->name) != 0 || c->family != before->family ||
	    c->check.conf.type == ES_CONF_CHECK_NONE)
		return;
	if (asks_the_same(c, before))
		c->verdict = before->verdict;
	else if (before->check.conf.type == ES_CONF_CHECK_NONE || before->verdict.is_known)
		es_streak_presume(&c->verdict, before->verdict.is_down);
	c->is_other = !asks_the_same(c, before);
	c->is_refused = before->is_refused;
	c->fell_ns = before->fell_ns;
	c->duration_s = before->duration_s;
	memcpy(c->why, before->why, sizeof(c->why));
}

/* The places of services that are still there, by their names. */
static void inherit_places(struct es_daemon_checks *checks, const struct es_conf *conf,
			   const struct es_daemon_checks *before)
{
	for (unsigned int i = 0; i < conf->service_count; i++) {
		memcpy(checks->service[i].name, conf->services[i].name, sizeof(checks->service[i].name));
		for (unsigned int k = 0; k < ES_CONF_SERVICES_MAX; k++)
			if (!strcmp(checks->service[i].name, before->service[k].name))
				checks->service[i].place = before->service[k].place;
	}
}

static void stop(struct es_daemon_checks *checks)
{
	for (unsigned int i = 0; i < checks->count; i++) {
		struct es_daemon_check *c = &checks->of[i];

		ev_io_stop(checks->loop, &c->io);
		ev_timer_stop(checks->loop, &c->timer);
		rest_stop(c);
		es_server_check_end(&c->check);
	}
	free(checks->of);
	checks->of = NULL;
	checks->count = 0;
}

void es_daemon_checks_init(struct es_daemon_checks *checks, struct ev_loop *loop, const __u64 *listens,
			   void (*changed)(void *ctx), void *ctx)
{
	*checks = (struct es_daemon_checks){.loop = loop, .listens = listens, .changed = changed, .ctx = ctx};
}

int es_daemon_checks_start(struct es_daemon_checks *checks, const struct es_conf *conf, unsigned int self)
{
	const struct es_daemon_checks before = *checks;
	unsigned int services = conf->service_count, count = 0;
	struct es_daemon_check *of = calloc((size_t)services * ES_CONF_FAMILIES, sizeof(*of));

	if (!of)
		return -ENOMEM;
	for (unsigned int i = 0; i < services * ES_CONF_FAMILIES; i++) {
		unsigned int service = i / ES_CONF_FAMILIES, family = i % ES_CONF_FAMILIES;

		if (!es_conf_service_of(&conf->services[service], family) ||
		    !es_conf_service_is_on(&conf->services[service], self))
			continue;
		prepare(checks, &conf->services[service], service, family, &of[count]);
		for (unsigned int k = 0; k < before.count; k++)
			inherit(&of[count], &before.of[k]);
		count++;
	}
	stop(checks);
	checks->count = count;
	checks->of = of;
	memset(checks->service, 0, sizeof(checks->service));
	inherit_places(checks, conf, &before);
	/* The first ones at once, but one after the other. */
	for (unsigned int i = 0; i < count; i++)
		if (of[i].check.conf.type != ES_CONF_CHECK_NONE)
			again_in(&of[i], 0.01 * i);
	return 0;
}

void es_daemon_checks_rebind(struct es_daemon_checks *checks, const struct es_conf *conf, unsigned int self)
{
	if (!es_daemon_checks_start(checks, conf, self))
		return;
	es_log(ES_LOG_WARNING, "no memory for checks: the servers are not checked until the next reload");
	es_daemon_checks_stop(checks);
}

void es_daemon_checks_stop(struct es_daemon_checks *checks)
{
	stop(checks);
	memset(checks->service, 0, sizeof(checks->service));
}

int es_daemon_checks_fails(const struct es_daemon_checks *checks, unsigned int service, const char **ret_why)
{
	for (unsigned int i = 0; i < checks->count; i++) {
		const struct es_daemon_check *c = &checks->of[i];

		if (c->service != service || !c->verdict.is_down)
			continue;
		*ret_why = c->why;
		return 1;
	}
	return 0;
}

int es_daemon_checks_refuse(const struct es_daemon_checks *checks, unsigned int service)
{
	for (unsigned int i = 0; i < checks->count; i++)
		if (checks->of[i].service == service && checks->of[i].verdict.is_down &&
		    checks->of[i].is_refused)
			return 1;
	return 0;
}

int es_daemon_checks_is_told(const struct es_daemon_checks *checks, unsigned int service)
{
	unsigned long long now_ns = es_clock_now_ns();

	for (unsigned int i = 0; i < checks->count; i++)
		if (checks->of[i].service == service && checks->of[i].verdict.is_down &&
		    now_ns - checks->of[i].fell_ns >= ES_CHECKS_TOLD_NS)
			return 1;
	return 0;
}

int es_daemon_checks_is_unknown(const struct es_daemon_checks *checks, unsigned int service)
{
	for (unsigned int i = 0; i < checks->count; i++) {
		const struct es_daemon_check *c = &checks->of[i];

		if (c->service == service && c->check.conf.type != ES_CONF_CHECK_NONE &&
		    !c->verdict.is_known && listens(c))
			return 1;
	}
	return 0;
}

double es_daemon_checks_duration_s(const struct es_daemon_checks *checks, unsigned int service)
{
	double duration_s = NAN;

	for (unsigned int i = 0; i < checks->count; i++)
		if (checks->of[i].service == service)
			duration_s = fmax(duration_s, checks->of[i].duration_s);
	return duration_s;
}
