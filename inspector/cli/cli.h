/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECTOR_CLI_H
#define ES_INSPECTOR_CLI_H

/* Shared by the commands of earshot(8): the parsed command line, the way to the daemon, printing. */
#include <argp.h>
#include <json-c/json.h>
#include <stddef.h>

#include "inspector/base/json.h"

/* Exit status; argp itself exits with ES_CLI_USAGE (EX_USAGE), too. */
enum es_cli_exit {
	ES_CLI_OK = 0,
	ES_CLI_FAILED = 1,    /* refused, by the daemon or by us; the reason is on stderr */
	ES_CLI_NO_DAEMON = 2, /* no daemon was reached */
	ES_CLI_USAGE = 64,    /* the command line is wrong */
};

enum es_cli_option {
	ES_CLI_OPT_ROTATE = 'f',
	ES_CLI_OPT_ALL = 'a',
	ES_CLI_OPT_POINTS = 'p',
	ES_CLI_OPT_NODE = 'n',
	ES_CLI_OPT_CONTROL = 'c',
	ES_CLI_OPT_JSON = 'j',
	ES_CLI_OPT_SERVICE = 's',
	ES_CLI_OPT_LIMIT = 'l',
	ES_CLI_OPT_HEADER = 'H',
	ES_CLI_OPT_STAGE = 0x100,
	ES_CLI_OPT_PINNED,
	ES_CLI_OPT_WAIT,
	ES_CLI_OPT_UNTIL_RESTART,
	ES_CLI_OPT_CONFIG,
	ES_CLI_OPT_STRICT,
	ES_CLI_OPT_VERBOSE,
	ES_CLI_OPT_CLIENT,
	ES_CLI_OPT_ON,
	ES_CLI_OPT_OUTPUT,
	ES_CLI_OPT_OPENMETRICS,
	ES_CLI_OPT_FOLLOW,
	ES_CLI_OPT_SINCE,
	ES_CLI_OPT_KIND,
	ES_CLI_OPT_ONCE,
	ES_CLI_OPT_SORT,
	ES_CLI_OPT_FIX,
	ES_CLI_OPT_YES,
	ES_CLI_OPT_FILTER,
	ES_CLI_OPT_FOR,
	ES_CLI_OPT_REASON,
	ES_CLI_OPT_FORCE,
	ES_CLI_OPT_DRY_RUN,
	ES_CLI_OPT_WITHOUT,
	ES_CLI_OPT_RESTART,
	ES_CLI_OPT_REQUEST,
	ES_CLI_OPT_CRASH,
};

#define ES_CLI_ARGS_MAX	   3
#define ES_CLI_HEADERS_MAX 512
#define ES_CLI_FILTERS_MAX 16
#define ES_CLI_WITHOUT_MAX 126 /* nodes */

/* struct es_cli - the command line; options that a command does not have stay 0 */
struct es_cli {
	const char *node;
	const char *control;
	const char *service;
	const char *config;
	int json;
	const char *limit;
	int all;
	int pinned;
	int points;
	int rotate;
	int stage;
	int until_restart;
	const char *wait; /* "" without a limit, NULL: do not wait */
	int strict;
	int verbose;
	const char *client;
	const char *on;
	const char *request_file;
	const char *crash;
	const char *output;
	int openmetrics;
	int follow;
	const char *since;
	const char *kind;
	int once;
	const char *sort;
	int fix;
	int yes;
	unsigned int filter_count;
	const char *filters[ES_CLI_FILTERS_MAX];
	const char *for_time; /* of --for */
	const char *reason;
	int force;
	int dry_run;
	int restart;
	unsigned int without_count;
	const char *without[ES_CLI_WITHOUT_MAX];
	unsigned int header_count;
	const char *headers[ES_CLI_HEADERS_MAX];
	unsigned int arg_count;
	const char *args[ES_CLI_ARGS_MAX];
};

/* struct es_cli_command - one command; @args_doc and @doc are argp's, @run returns an enum es_cli_exit */
struct es_cli_command {
	const char *name;
	const char *args_doc;
	const char *doc;
	const struct argp_option *options;
	unsigned int args_min;
	unsigned int args_max;
	int (*run)(const struct es_cli *cli);
};

extern const struct es_cli_command es_cli_status, es_cli_nodes, es_cli_ring, es_cli_counters, es_cli_flows,
	es_cli_table, es_cli_explain, es_cli_drain, es_cli_undrain, es_cli_weight, es_cli_reload, es_cli_stop,
	es_cli_keygen, es_cli_check, es_cli_check_config, es_cli_version, es_cli_detach, es_cli_corosync_conf,
	es_cli_metrics, es_cli_events, es_cli_top, es_cli_trace, es_cli_rollout, es_cli_report;

/* Prints "earshot: ..." to stderr. Return: ES_CLI_FAILED. */
int es_cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for a wrong command line. Return: ES_CLI_USAGE. */
int es_cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Until the next call, what es_cli_fail() and es_cli_usage() say is not printed but put into @text, without
 * "earshot: "; the last one stays. NULL: it is printed. */
void es_cli_hold(char *text, size_t size);

/**
 * es_cli_number() - a whole number of the command line
 * Return: ES_CLI_OK and @ret_number, or ES_CLI_USAGE, reported: "bad WHAT ...: expected LEAST..MOST".
 */
int es_cli_number(const char *what, const char *text, long least, long most, long *ret_number);

/* socket.c: the daemon's socket path for @cli. Return: an enum es_cli_exit, reported. */
int es_cli_socket_path(const struct es_cli *cli, char *path, size_t size);

/*
 * Is there exactly one daemon's socket in the directory, dead or alive? It is then in @path. Reports nothing.
 */
int es_cli_only_daemon(char *path, size_t size);

/* Does a daemon answer on any socket of the directory? Its socket is then in @path. */
int es_cli_daemon_runs(char *path, size_t size);

/**
 * es_cli_request() - send @request and wait for the result (client.c)
 * Takes over @request. The caller owns *@ret_result. Return: an enum es_cli_exit, reported.
 */
int es_cli_request(const struct es_cli *cli, struct json_object *request, struct json_object **ret_result);

/* es_cli_operator() - who is at the terminal, also behind sudo; "" if nobody knows (client.c) */
const char *es_cli_operator(void);

/* es_cli_try() - the same, but ES_CLI_OK and NULL if the daemon refuses: it may be of a version before */
int es_cli_try(const struct es_cli *cli, struct json_object *request, struct json_object **ret_result);

/* {"command":@command} */
struct json_object *es_cli_command_request(const char *command);

/* Prints @object for a program to read. */
void es_cli_print_json(struct json_object *object);

/* nodes.c, used by status too: the table of a status reply's nodes */
void es_cli_print_nodes(struct json_object *status);

#endif
