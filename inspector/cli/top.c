// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot top`: nodes and services of the whole cluster, as one node shows them, each second anew. On a
 * terminal keys choose the order; elsewhere, and with --once, it is printed once.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "inspector/cli/cli.h"
#include "inspector/cli/table.h"

#define INTERVAL_MS  1000
#define CTRL_C	     3
#define HOME	     "\033[H"
#define CLEAR_REST   "\033[J"
#define OTHER_SCREEN "\033[?1049h"
#define OWN_SCREEN   "\033[?1049l"

/* The keys to sort by: those of snapshots, greatest first, or the order of the configuration. */
static const struct {
	const char *name;
	const char *key;
	char letter;
} orders[] = {
	{"node", NULL, 'n'},   {"requests", "requests_s", 'r'},	    {"errors", "errors_s", 'e'},
	{"load", "load", 'l'}, {"connections", "connections", 'c'},
};
#define ORDERS (sizeof(orders) / sizeof(orders[0]))

static const char *sort_key;

static volatile sig_atomic_t is_over;

static const struct argp_option options[] = {
	{"once", ES_CLI_OPT_ONCE, NULL, 0, "print it once", 0},
	{"sort", ES_CLI_OPT_SORT, "COLUMN", 0, "node, requests, errors, load or connections (default node)",
	 0},
	{0},
};

static double figure(const void *node)
{
	return es_json_fraction(es_json_object(*(struct json_object *const *)node, "snapshot"), sort_key);
}

static int by_figure(const void *a, const void *b)
{
	double x = figure(a), y = figure(b);

	return x < y ? 1 : x > y ? -1 : 0;
}

/* Old figures stand in brackets. */
static void print_figure(struct es_table *table, struct json_object *node, const char *key, int digits)
{
	struct json_object *word = es_json_object(node, "snapshot"), *value = NULL;
	int answers = es_json_is_true(node, "answers");

	if (json_object_object_get_ex(word, key, &value))
		es_table_cell(table, "%s%.*f%s", answers ? "" : "(", digits, json_object_get_double(value),
			      answers ? "" : ")");
	else
		es_table_cell(table, "-");
}

/* A time that requests take; 0: none came. */
static void print_time(struct es_table *table, struct json_object *node, const char *key)
{
	unsigned long long us = es_json_number(es_json_object(node, "snapshot"), key);
	int answers = es_json_is_true(node, "answers");

	if (us)
		es_table_cell(table, "%s%.*f ms%s", answers ? "" : "(", us < 10000 ? 2 : 0, (double)us / 1000,
			      answers ? "" : ")");
	else
		es_table_cell(table, "-");
}

static void print_nodes(struct json_object *nodes)
{
	static const char *const headings[] = {"NODE",	 "STATE",   ">SHARE", ">REQ/S", ">ERR/S",
					       ">CONNS", ">ACTIVE", ">LOAD",  ">MEAN",	">P99",
					       ">CPU",	 "",	    NULL};
	struct es_table *table = es_table_new(headings);

	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i), *age = NULL;

		if (!strcmp(es_json_string(node, "state"), "removed"))
			continue;
		es_table_cell(table, "%s%s", es_json_string(node, "name"),
			      es_json_is_true(node, "self") ? " *" : "");
		es_table_cell(table, "%s", es_json_string(node, "state"));
		es_table_cell(table, "%.1f%%", 100 * es_json_fraction(node, "ring_share"));
		print_figure(table, node, "requests_s", 1);
		print_figure(table, node, "errors_s", 1);
		print_figure(table, node, "connections", 0);
		print_figure(table, node, "active", 0);
		print_figure(table, node, "load", 0);
		print_time(table, node, "mean_now_us");
		print_time(table, node, "p99_us");
		print_figure(table, node, "cpu", 2);
		json_object_object_get_ex(node, "age_s", &age);
		if (es_json_is_true(node, "answers"))
			es_table_cell(table, "%s", "");
		else if (age)
			es_table_cell(table, "not answering for %.0f s", json_object_get_double(age));
		else
			es_table_cell(table, "not answering");
	}
	es_table_print(table, stdout);
	es_table_free(&table);
}

static void print_services(struct json_object *nodes)
{
	static const char *const headings[] = {"SERVICE",   "NODE",   ">REQUESTS", ">REJECTED",
					       ">LOCALITY", ">CONNS", ">ACTIVE",   NULL};
	static const char *const keys[] = {"requests", "rejected", "locality_hits", "connections", "active"};
	struct es_table *table = es_table_new(headings);

	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);
		struct json_object *services = es_json_array(es_json_object(node, "snapshot"), "services");

		for (size_t k = 0; es_json_is_true(node, "answers") && k < json_object_array_length(services);
		     k++) {
			struct json_object *service = json_object_array_get_idx(services, k);

			es_table_cell(table, "%s", es_json_string(service, "name"));
			es_table_cell(table, "%s", es_json_string(node, "name"));
			for (size_t c = 0; c < sizeof(keys) / sizeof(keys[0]); c++)
				es_table_cell(table, "%llu", es_json_number(service, keys[c]));
		}
	}
	es_table_print(table, stdout);
	es_table_free(&table);
}

static void print_view(struct json_object *view)
{
	struct json_object *nodes = es_json_array(view, "nodes");

	if (sort_key)
		json_object_array_sort(nodes, by_figure);
	printf("cluster %s, asked of %s\n\n", es_json_string(view, "cluster"), es_json_string(view, "node"));
	print_nodes(nodes);
	putchar('\n');
	print_services(nodes);
}

static int ask(const struct es_cli *cli, struct json_object **ret_view)
{
	return es_cli_request(cli, es_cli_command_request("cluster"), ret_view);
}

/* The first question makes the node ask the others; a second later it knows what they say. */
static int print_once(const struct es_cli *cli)
{
	struct json_object *view;
	int r = ask(cli, &view);

	if (r)
		return r;
	json_object_put(view);
	poll(NULL, 0, INTERVAL_MS);
	r = ask(cli, &view);
	if (r)
		return r;
	if (cli->json)
		es_cli_print_json(view);
	else
		print_view(view);
	json_object_put(view);
	return ES_CLI_OK;
}

/* Wait for a key or the next second. Returns 0 for the key that ends it. */
static int go_on(void)
{
	struct pollfd keyboard = {.fd = STDIN_FILENO, .events = POLLIN};
	char key;

	if (poll(&keyboard, 1, INTERVAL_MS) <= 0)
		return 1;
	if (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == CTRL_C)
		return 0;
	for (size_t i = 0; i < ORDERS; i++)
		if (orders[i].letter == key)
			sort_key = orders[i].key;
	return 1;
}

static void on_signal(int number)
{
	(void)number;
	is_over = 1;
}

/* A signal, too, leaves the terminal as it was. */
static void watch_signals(void)
{
	static const int numbers[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT};
	const struct sigaction action = {.sa_handler = on_signal};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaction(numbers[i], &action, NULL);
}

static int show(const struct es_cli *cli)
{
	struct termios before, keys;
	struct json_object *view;
	char why[512] = "";
	int r;

	if (tcgetattr(STDIN_FILENO, &before))
		return print_once(cli);
	watch_signals();
	es_cli_hold(why, sizeof(why)); /* the other screen would take it along */
	keys = before;
	keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG); /* so that Ctrl-C leaves the terminal as it was */
	tcsetattr(STDIN_FILENO, TCSANOW, &keys);
	fputs(OTHER_SCREEN, stdout);
	do {
		r = ask(cli, &view);
		if (r)
			break;
		fputs(HOME CLEAR_REST, stdout);
		print_view(view);
		puts("\nsort: n node, r requests, e errors, l load, c connections; q ends");
		fflush(stdout);
		json_object_put(view);
	} while (go_on() && !is_over);
	fputs(OWN_SCREEN, stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSANOW, &before);
	es_cli_hold(NULL, 0);
	if (r)
		es_cli_fail("%s", why);
	return r;
}

static int run(const struct es_cli *cli)
{
	size_t i = 0;

	while (cli->sort && i < ORDERS && strcmp(orders[i].name, cli->sort) != 0)
		i++;
	if (i == ORDERS)
		return es_cli_usage("top: --sort %s: expected node, requests, errors, load or connections",
				    cli->sort);
	sort_key = orders[i].key;
	if (cli->once || cli->json || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return print_once(cli);
	return show(cli);
}

const struct es_cli_command es_cli_top = {
	.name = "top",
	.doc = "Show nodes and services of the whole cluster, each second anew; figures in brackets are of a "
	       "node "
	       "that does not answer any more. Keys: n, r, e, l, c sort; q ends.",
	.options = options,
	.run = run,
};
