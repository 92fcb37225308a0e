// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * earshot-load: a client that believes nothing. Many connections at once, every byte of every response
 * compared with what it must be. options.c says how to use it; connection.c is what it does.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/lab/load/connection.h"

static void __attribute__((noreturn)) die(const char *what, int rc)
{
	fprintf(stderr, "earshot-load: %s: %s\n", what, strerrordesc_np(-rc));
	exit(2);
}

static void on_end(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	(void)timer;
	(void)events;
	ev_break(loop, EVBREAK_ALL);
}

static void run(struct es_load *load)
{
	unsigned int count = load->options.parallel;
	struct es_connection *connections = calloc(count, sizeof(*connections));
	uint64_t begun_us = es_load_now_us();
	struct ev_timer end;

	if (!connections)
		die("memory", -ENOMEM);
	ev_timer_init(&end, on_end, load->options.max_seconds, 0);
	ev_timer_start(load->loop, &end);
	for (unsigned int i = 0; i < count; i++)
		if (es_connection_init(&connections[i], load))
			die("memory", -ENOMEM);
	for (unsigned int i = 0; i < count; i++)
		es_connection_next(&connections[i]);
	if (load->active)
		ev_run(load->loop, 0);
	for (unsigned int i = 0; i < count; i++) {
		es_connection_give_up(&connections[i]);
		es_connection_fini(&connections[i]);
	}
	load->report.seconds = (double)(es_load_now_us() - begun_us) / 1e6;
	free(connections);
}

int main(int argc, char **argv)
{
	static struct es_load load;
	int rc, ok;

	es_load_options_parse(&load.options, argc, argv);
	rc = es_load_manifest_read(load.options.manifest, load.options.max_bytes, &load.manifest);
	if (rc)
		die(load.options.manifest, rc);
	load.small = es_load_manifest_up_to(&load.manifest, load.options.half_bytes);
	if (!load.small)
		load.options.endings &= ~(1u << ES_LOAD_HALF);
	if (!load.options.endings)
		die("--half-bytes leaves no object", -ENOENT);
	rc = es_load_report_init(&load.report, load.options.connections);
	if (rc)
		die("memory", rc);
	load.loop = ev_default_loop(EVFLAG_AUTO);
	if (!load.loop)
		die("event loop", -ENOMEM);
	run(&load);
	ok = load.report.results[ES_LOAD_OK] == load.options.connections;
	es_load_report_print(&load.report, load.options.json, stdout);
	es_load_report_fini(&load.report);
	es_load_manifest_free(&load.manifest);
	ev_loop_destroy(load.loop);
	return !ok;
}
