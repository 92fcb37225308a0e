// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot explain`: which node a request would go to now, and why; and what a crash would do to
 * connections now. Nothing is sent and nothing changes.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspector/base/endpoint.h"
#include "inspector/base/utf8.h"
#include "inspector/cli/cli.h"
#include "inspector/cli/table.h"

/* A node that another one has to ask is waited for so many times, so long each. */
#define CRASH_TRIES   20
#define CRASH_WAIT_MS 100

#define TEXT_SIZE 32768
#define REQUEST_SIZE                                                                                         \
	400000 /* as digits it fits into a line of the control protocol; more is hardly ever gathered */

static const struct argp_option options[] = {
	{"header", ES_CLI_OPT_HEADER, "NAME: VALUE", 0, "a header of the request; may be given several times",
	 0},
	{"request", ES_CLI_OPT_REQUEST, "FILE", 0,
	 "the request as a client sends it, body included, in place of PATH; - is standard input", 0},
	{"service", ES_CLI_OPT_SERVICE, "NAME", 0, "to this service (default: the only one)", 0},
	{"client", ES_CLI_OPT_CLIENT, "ADDRESS[:PORT]", 0,
	 "from this client (default 127.0.0.1:0), as [2001:db8::1]:4711 if it has IPv6", 0},
	{"on", ES_CLI_OPT_ON, "NODE", 0, "a later request of a connection that this node has", 0},
	{"crash", ES_CLI_OPT_CRASH, "NODE", 0,
	 "in place of PATH: what would become of that node's connections if it were lost now", 0},
	{0},
};

/* "GET /path", "/path", or a whole request line. */
static int request_text(const struct es_cli *cli, char *text, size_t size)
{
	const char *line = cli->args[0];
	int is_path = *line == '/' || !strncmp(line, "http://", 7);
	size_t used;

	if (!is_path && !strchr(line, ' '))
		return es_cli_usage("\"%.80s\": expected a path, which begins with /, or 'METHOD PATH'",
				    line);
	used = (size_t)snprintf(text, size, "%s%s%s\r\n", is_path ? "GET " : "", line,
				strstr(line, " HTTP/") ? "" : " HTTP/1.1");

	for (unsigned int i = 0; i < cli->header_count && used < size; i++) {
		if (!strchr(cli->headers[i], ':'))
			return es_cli_usage("bad header \"%.80s\": expected NAME: VALUE", cli->headers[i]);
		used += (size_t)snprintf(text + used, size - used, "%s\r\n", cli->headers[i]);
	}
	if (used < size)
		used += (size_t)snprintf(text + used, size - used, "\r\n");
	return used < size ? ES_CLI_OK : es_cli_usage("the request is longer than %zu bytes", size);
}

static void add_digits(struct json_object *request, const char *text, size_t len)
{
	char *hex = malloc(2 * len + 1);

	if (!hex)
		return;
	hex[0] = 0;
	for (size_t i = 0; i < len; i++)
		snprintf(hex + 2 * i, 3, "%02x", (unsigned char)text[i]);
	json_object_object_add(request, "request_hex", json_object_new_string(hex));
	free(hex);
}

/* Any bytes that a client may send. */
static int add_file(struct json_object *request, const char *path)
{
	static char bytes[REQUEST_SIZE];
	FILE *file = strcmp(path, "-") ? fopen(path, "re") : stdin;
	size_t len = file ? fread(bytes, 1, sizeof(bytes), file) : 0;
	int has_failed = !file || ferror(file), error = errno;

	if (file && file != stdin)
		fclose(file);
	if (has_failed)
		return es_cli_fail("%s: %s", path, strerror(error));
	if (!len)
		return es_cli_fail("%s is empty: expected a request as a client sends it", path);
	json_object_object_add(request, "request", json_object_new_string(""));
	add_digits(request, bytes, len);
	return ES_CLI_OK;
}

/* JSON is UTF-8, but clients' bytes need not be: others are written as hexadecimal digits. */
static void add_text(struct json_object *request, const char *text)
{
	static char copy[3 * TEXT_SIZE];
	size_t len = strlen(text), valid = es_utf8_copy(text, len, copy);
	int is_utf8 = valid == len && !memcmp(copy, text, len);

	json_object_object_add(request, "request", json_object_new_string(is_utf8 ? text : ""));
	if (!is_utf8)
		add_digits(request, text, len);
}

static int add_client(struct json_object *request, const char *client)
{
	char address[INET6_ADDRSTRLEN];
	int port;

	if (es_endpoint_split(client, address, &port))
		return es_cli_usage(
			"bad client \"%.80s\": expected ADDRESS[:PORT], an IPv6 address in brackets", client);
	json_object_object_add(request, "client", json_object_new_string(address));
	if (port >= 0)
		json_object_object_add(request, "port", json_object_new_int(port));
	return ES_CLI_OK;
}

static void print_nodes(struct json_object *result)
{
	static const char *const headings[] = {"NODE",	"TARGET", ">WEIGHT", ">ACTIVE",
					       ">LOAD", ">CPU",	  ">DISK",   NULL};
	struct json_object *nodes = es_json_array(result, "nodes");
	struct es_table *table = es_table_new(headings);

	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);

		es_table_cell(table, "%s", es_json_string(node, "name"));
		es_table_cell(table, "%s", es_json_is_true(node, "target") ? "yes" : "no");
		es_table_cell(table, "%llu", es_json_number(node, "weight"));
		es_table_cell(table, "%.1f", es_json_fraction(node, "active"));
		es_table_cell(table, "%.1f", es_json_fraction(node, "load"));
		es_table_cell(table, "%.0f%%", 100 * es_json_fraction(node, "cpu"));
		es_table_cell(table, "%.0f%%", 100 * es_json_fraction(node, "disk"));
	}
	es_table_print(table, stdout);
	es_table_free(&table);
}

static void print_explanation(struct json_object *result)
{
	struct json_object *steps = es_json_array(result, "steps");

	if (es_json_number(result, "status"))
		printf("%s, policy %s: refused with status %llu; %s inspects this client's first request\n",
		       es_json_string(result, "service"), es_json_string(result, "policy"),
		       es_json_number(result, "status"), es_json_string(result, "inspecting"));
	else
		printf("%s, policy %s: %s would serve it; %s inspects this client's first request\n",
		       es_json_string(result, "service"), es_json_string(result, "policy"),
		       es_json_string(result, "node"), es_json_string(result, "inspecting"));
	if (*es_json_string(result, "content"))
		printf("content %s\n", es_json_string(result, "content"));
	for (size_t i = 0; i < json_object_array_length(steps); i++)
		printf("  %zu. %s\n", i + 1, json_object_get_string(json_object_array_get_idx(steps, i)));
	printf("\n");
	print_nodes(result);
}

static void print_crash(struct json_object *result)
{
	static const char *const headings[] = {"SERVICE",     ">SURVIVE",  ">RESUME", ">RESET",
					       ">ANSWERING",  ">DECIDING", ">PINNED", ">NOT TOLD",
					       ">NO SURVIVE", ">NOT READ", NULL};
	static const char *const reasons[] = {"answering", "deciding", "pinned", "not_told", "off", "unread"};
	struct json_object *services = es_json_array(result, "services");
	struct es_table *table = es_table_new(headings);

	printf("if %s were lost now: %llu idle connections and %llu downloads would go on, %llu connections "
	       "would get a RST\n\n",
	       es_json_string(result, "node"), es_json_number(result, "survive"),
	       es_json_number(result, "resume"), es_json_number(result, "reset"));
	for (size_t i = 0; i < json_object_array_length(services); i++) {
		struct json_object *service = json_object_array_get_idx(services, i);

		es_table_cell(table, "%s", es_json_string(service, "service"));
		es_table_cell(table, "%llu", es_json_number(service, "survive"));
		es_table_cell(table, "%llu", es_json_number(service, "resume"));
		es_table_cell(table, "%llu", es_json_number(service, "reset"));
		for (size_t r = 0; r < sizeof(reasons) / sizeof(reasons[0]); r++)
			es_table_cell(table, "%llu",
				      es_json_number(es_json_object(service, "reasons"), reasons[r]));
	}
	es_table_print(table, stdout);
	es_table_free(&table);
}

/* One node keeps this for another one, which does not say itself. */
static void print_crash_part(struct json_object *result)
{
	static const char *const headings[] = {"SERVICE", ">SURVIVE", ">RESUME", ">RESET", NULL};
	struct json_object *services = es_json_array(result, "services");
	struct es_table *table = es_table_new(headings);

	printf("%s %s. A part, as %s alone knows it: %llu idle connections and %llu downloads %s, %llu "
	       "clients %s a RST at once\n\n",
	       es_json_string(result, "node"),
	       es_json_is_true(result, "lost") ? "is lost" : "does not answer",
	       es_json_string(result, "from"), es_json_number(result, "survive"),
	       es_json_number(result, "resume"), es_json_is_true(result, "lost") ? "go on" : "would go on",
	       es_json_number(result, "reset"), es_json_is_true(result, "lost") ? "get" : "would get");
	for (size_t i = 0; i < json_object_array_length(services); i++) {
		struct json_object *service = json_object_array_get_idx(services, i);

		es_table_cell(table, "%s", es_json_string(service, "service"));
		es_table_cell(table, "%llu", es_json_number(service, "survive"));
		es_table_cell(table, "%llu", es_json_number(service, "resume"));
		es_table_cell(table, "%llu", es_json_number(service, "reset"));
	}
	es_table_print(table, stdout);
	es_table_free(&table);
}

static int crash_request(const struct es_cli *cli, struct json_object **ret_result)
{
	struct json_object *request = es_cli_command_request("crash");

	json_object_object_add(request, "node", json_object_new_string(cli->crash));
	return es_cli_request(cli, request, ret_result);
}

/* Takes @result over. */
static int show(const struct es_cli *cli, struct json_object *result, void (*print)(struct json_object *))
{
	if (cli->json)
		es_cli_print_json(result);
	else
		print(result);
	json_object_put(result);
	return ES_CLI_OK;
}

static int run_crash(const struct es_cli *cli)
{
	struct json_object *result;
	int r;

	if (cli->request_file || cli->arg_count || cli->header_count || cli->service || cli->client ||
	    cli->on)
		return es_cli_usage("--crash: expected no request, and nothing that is about one");
	r = crash_request(cli, &result);
	for (int i = 0; !r && i < CRASH_TRIES && es_json_is_true(result, "awaited"); i++) {
		json_object_put(result);
		poll(NULL, 0, CRASH_WAIT_MS);
		r = crash_request(cli, &result);
	}
	if (r)
		return r;
	return show(cli, result, es_json_is_true(result, "partial") ? print_crash_part : print_crash);
}

static int run(const struct es_cli *cli)
{
	static char text[TEXT_SIZE];
	struct json_object *request, *result;
	int r = ES_CLI_OK;

	if (cli->crash)
		return run_crash(cli);
	if (!cli->request_file == !cli->arg_count)
		return es_cli_usage("expected either '[METHOD] PATH' or --request FILE");
	if (cli->request_file && cli->header_count)
		return es_cli_usage("--header: expected with '[METHOD] PATH' only; FILE has the headers");
	if (!cli->request_file)
		r = request_text(cli, text, sizeof(text));
	if (r)
		return r;
	request = es_cli_command_request("explain");
	if (cli->request_file)
		r = add_file(request, cli->request_file);
	else
		add_text(request, text);
	if (cli->service)
		json_object_object_add(request, "service", json_object_new_string(cli->service));
	if (cli->on)
		json_object_object_add(request, "on", json_object_new_string(cli->on));
	if (!r && cli->client)
		r = add_client(request, cli->client);
	if (r) {
		json_object_put(request);
		return r;
	}
	r = es_cli_request(cli, request, &result);
	return r ? r : show(cli, result, print_explanation);
}

const struct es_cli_command es_cli_explain = {
	.name = "explain",
	.args_doc = "['[METHOD] PATH']",
	.doc = "Tell which node a request would go to at this moment, and why; or with --crash, what would "
	       "become of connections. Nothing is sent, nothing changes.",
	.options = options,
	.args_max = 1,
	.run = run,
};
