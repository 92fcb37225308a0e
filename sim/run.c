// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * earshot-sim run: one simulation.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include "sim/report.h"

static const char es_run_doc[] =
	"Simulate one policy on a cluster.\v"
	"Results, of the requests between warm-up and the opening of the last connection:\n"
	"  throughput_rps  requests per simulated second\n"
	"  hit_rate        hits / (hits + misses); "
	"a hit was in its node's page cache; a miss waited for the disk\n"
	"  moves           times that an open connection changed its node\n"
	"  imbalance       mean number of requests in hand: "
	"the busiest node's / the mean of all nodes; 1 is even\n"
	"docs/simulator.md has the others, and what is modelled.";

static void es_print_text(const struct es_metric *metrics, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		printf("%-18s %14.*f  %s\n", metrics[i].name, metrics[i].decimals, metrics[i].value,
		       metrics[i].doc);
}

static void es_print_csv(const struct es_args *args, const struct es_metric *metrics, unsigned int count)
{
	printf("policy");
	for (unsigned int i = 0; i < count; i++)
		printf(",%s", metrics[i].name);
	printf("\n%s", args->policy);
	for (unsigned int i = 0; i < count; i++)
		printf(",%.*f", metrics[i].decimals, metrics[i].value);
	printf("\n");
}

static int es_run_print(const struct es_args *args, const struct es_workload *workload,
			const struct es_sim_result *result)
{
	struct es_metric metrics[ES_METRICS_MAX];
	unsigned int count = es_metrics(&args->params, result, metrics);
	int rc = 0;

	if (args->plot) {
		struct json_object *json = es_json_run(args, workload, result);

		rc = es_plot(json, args->plot);
		json_object_put(json);
	}
	if (args->format == ES_FORMAT_JSON)
		return es_json_print(es_json_run(args, workload, result)) ? -EIO : rc;
	if (args->format == ES_FORMAT_CSV)
		es_print_csv(args, metrics, count);
	else
		es_print_text(metrics, count);
	return fflush(stdout) ? -EIO : rc;
}

int es_cmd_run(int argc, char **argv)
{
	static struct es_sim_result result;
	struct es_workload workload = {};
	struct es_progress progress;
	struct es_args args;
	int rc;

	es_args_init(&args);
	args.wants_requests = 1;
	es_args_parse(&args, argc, argv, "(--trace FILE | --synthetic KIND) --policy P", es_run_doc);
	rc = es_args_policy(&args, NULL);
	if (rc)
		return EX_USAGE;
	rc = es_args_workload(&args, &workload);
	if (rc)
		return 1;
	es_progress_begin(&progress, args.policy);
	rc = es_sim_run(&args.params, &workload, es_progress_show, &progress, &result);
	es_progress_end(&progress);
	if (rc)
		es_error("%s", strerror(-rc));
	else
		rc = es_run_print(&args, &workload, &result);
	es_workload_fini(&workload);
	return rc != 0;
}
