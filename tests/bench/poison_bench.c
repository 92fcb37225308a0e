// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The cost of the promise that a request ends one daemon at most: a worker's mark of what it inspects, the
 * look for poison, and the guard around a plugin, beside the daemon's own reading of the head and its policy;
 * and the keeper. Prints lines of round, case, CPU nanoseconds of one request without and with it, with tabs
 * between them, interleaved; and in the end "keeper", how many milliseconds it ran, and the CPU nanoseconds
 * that took in a second. poison.py makes medians of it. usage: poison_bench ROUNDS REQUESTS KEEPER-MS
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "inspector/base/clock.h"
#include "inspector/daemon/keeper.h"
#include "inspector/plugin/guard.h"
#include "inspector/inspect/poison.h"
#include "inspector/inspect/route.h"

static struct es_name name; /* large */

#define NODES 8
/* As a browser sends it; with headers of IP and TCP before it. */
#define HEADERS 52
#define REQUEST                                                                                              \
	"GET /images/2026/a-picture.png?size=3 HTTP/1.1\r\nHost: www.example.org\r\nUser-Agent: "            \
	"bench/1.0\r\n"                                                                                      \
	"Accept: */*\r\nX-Tenant: tenant-42\r\nCookie: theme=dark; sid=0123456789abcdef\r\n\r\n"

static struct es_conf *conf;
static struct es_cluster *cluster;
static struct es_router router;
static struct es_health health;
static struct es_state state;
static const struct es_sipkey key = {1, 2};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "poison_bench: %s: %s\n", what, why);
	exit(2);
}

static void world_init(void)
{
	struct es_conf_error err = {};
	char text[4096];
	size_t used;

	used = (size_t)snprintf(text, sizeof(text),
				"datapath { interface = eth0 cluster_interface = eth1 }\n"
				"service web { address = 10.77.0.100 port = 80 policy = wrr }\n");
	for (unsigned int i = 1; i <= NODES; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "node n%u { address = 10.78.0.%u }\n", i, i);
	if (es_conf_parse(text, used, "bench.conf", &conf, &err))
		die("configuration", err.text);
	if (es_cluster_new(conf, 0, 1, NULL, NULL, &cluster) ||
	    es_router_init(&router, cluster, &health, NULL))
		die("cluster", "out of memory");
}

static double cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* The work that a case adds to each request. */
enum add { ADD_NOTHING, ADD_MARK, ADD_MARK_LONG, ADD_LOOK, ADD_GUARD };

static const struct {
	const char *name;
	enum add add;
} cases[] = {
	{"mark", ADD_MARK},
	{"mark, 1,400 bytes", ADD_MARK_LONG},
	{"mark, and poison is known", ADD_LOOK},
	{"mark, and a guarded plugin", ADD_GUARD},
};

#define CASES (sizeof(cases) / sizeof(cases[0]))

static void request_route(void *text)
{
	static struct es_http_head head;
	struct es_request_view request = {.current = -1};
	struct es_rejection rejection;
	const char *bytes = (const char *)text + HEADERS;

	es_http_head_init(&head);
	es_http_head_scan(&head, bytes, sizeof(REQUEST) - 1);
	es_request_describe(&request, &head, bytes, sizeof(REQUEST) - 1, 1, &name);
	if (es_route(&router, 0, &request, 1000, NULL, &rejection) < 0)
		die("route", "no node");
}

/* CPU time for each request, as a worker spends it: scan, describe, route; with what @add says around it. */
static double measure(enum add add, unsigned long requests)
{
	static uint8_t packet[1400 + HEADERS];
	struct es_mark *mark = add == ADD_NOTHING ? NULL : &state.mark[0];
	size_t len = add == ADD_MARK_LONG ? sizeof(packet) : HEADERS + sizeof(REQUEST) - 1;
	double start;

	memcpy(packet + HEADERS, REQUEST, sizeof(REQUEST) - 1);
	packet[32] = (HEADERS - 20) / 4 << 4;
	start = cpu_ns();
	for (unsigned long i = 0; i < requests; i++) {
		es_mark_set(mark, i, 0, packet, len);
		if (add == ADD_LOOK &&
		    es_poison_find(&state.poisons, i, es_poison_request(&key, packet, len), 2000))
			die("poison", "found");
		if (add == ADD_GUARD) {
			if (es_guard_call(1000, request_route, packet))
				die("guard", "crashed");
		} else {
			request_route(packet);
		}
		es_mark_clear(mark);
	}
	return (cpu_ns() - start) / (double)requests;
}

/* CPU time of the keeper beside a daemon whose two workers are busy each time that it looks. */
static void keeper_measure(unsigned long ms)
{
	unsigned long long end_ns, start_ns;
	struct es_keeper *keeper;
	struct es_keys keys = {};
	struct rusage usage;
	int rc = es_keeper_start(&state, 2, cluster, &keys, &keeper);

	if (rc)
		die("keeper", strerror(-rc));
	state.mark[0].tid = state.mark[1].tid = (__u32)getpid();
	start_ns = es_clock_now_ns();
	end_ns = start_ns + ms * 1000000ULL;
	while (es_clock_now_ns() < end_ns) {
		for (unsigned int i = 0; i < 2; i++)
			es_mark_set(&state.mark[i], 1, 0, (const uint8_t *)"", 0);
		usleep(10000);
	}
	for (unsigned int i = 0; i < 2; i++)
		es_mark_clear(&state.mark[i]);
	start_ns = es_clock_now_ns() - start_ns;
	es_keeper_stop(&keeper);
	if (getrusage(RUSAGE_CHILDREN, &usage))
		die("keeper", strerror(errno));
	printf("keeper\t%llu\t%.0f\n", start_ns / 1000000,
	       ((double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e9 +
		(double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e3) *
		       1e9 / (double)start_ns);
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc == 4 ? strtoul(argv[1], NULL, 10) : 0;
	unsigned long requests = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
	unsigned long keeper_ms = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
	struct es_poison other = {.flow_hash = ~0ULL, .request = ~0ULL};

	if (!rounds || !requests || !keeper_ms) {
		fprintf(stderr, "usage: poison_bench ROUNDS REQUESTS KEEPER-MS\n");
		return 2;
	}
	world_init();
	es_guard_install();
	es_guard_thread();
	es_guard_number(&state.mark[0].busy);
	es_poison_note(&state.poisons, &other, 1000);
	for (unsigned long round = 0; round <= rounds; round++) { /* the first one warms up */
		for (size_t i = 0; i < CASES; i++) {
			size_t c = (i + round) % CASES;
			double without = measure(ADD_NOTHING, requests);
			double with = measure(cases[c].add, requests);

			if (round)
				printf("%lu\t%s\t%.2f\t%.2f\n", round, cases[c].name, without, with);
		}
	}
	keeper_measure(keeper_ms);
	es_router_fini(&router);
	es_cluster_free(&cluster);
	es_conf_free(&conf);
	return 0;
}
