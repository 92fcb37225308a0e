// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot nodes`: the cluster's nodes, from the daemon's status and from what each says of itself. A star
 * marks the node that was asked.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "inspector/cli/cli.h"
#include "inspector/cli/table.h"
#include "inspector/self/by_hand.h"

/* A node's first word about itself is waited for so many times, so long each. */
#define WORDS_TRIES   8
#define WORDS_WAIT_MS 100

static int has(struct json_object *node, const char *key)
{
	return json_object_object_get_ex(node, key, NULL);
}

/* The node's last word about itself; an empty object if there is none. */
static struct json_object *word_of(struct json_object *node)
{
	return es_json_is_true(node, "answers") ? es_json_object(node, "snapshot") : es_json_object(node, "");
}

static void print_time(struct es_table *table, unsigned long long us)
{
	if (!us)
		es_table_cell(table, "-");
	else if (us < 1000000)
		es_table_cell(table, "%.*f ms", us < 10000, (double)us / 1e3);
	else
		es_table_cell(table, "%.1f s", (double)us / 1e6);
}

/* Only the node itself knows it, as it does requests a second. */
static void print_p99(struct es_table *table, struct json_object *node)
{
	print_time(table, has(word_of(node), "p99_us") ? es_json_number(word_of(node), "p99_us") : 0);
}

static const char *const rates[] = {"requests_s", "errors_s"};
static const char *const counts[] = {"connections", "active", "load"};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void print_rates(struct es_table *table, struct json_object *node)
{
	for (size_t i = 0; i < COUNT(rates); i++)
		if (has(word_of(node), rates[i]))
			es_table_cell(table, "%.1f", es_json_fraction(word_of(node), rates[i]));
		else
			es_table_cell(table, "-");
}

/* How busy it is; unknown if the node has reported nothing. */
static void print_load(struct es_table *table, struct json_object *node, int has_rates)
{
	static const char *const shares[] = {"cpu", "disk"};
	struct json_object *word = word_of(node);

	for (size_t i = 0; i < COUNT(counts); i++)
		if (has(word, counts[i]) || has(node, counts[i]))
			es_table_cell(table, "%llu",
				      es_json_number(has(word, counts[i]) ? word : node, counts[i]));
		else
			es_table_cell(table, "-");
	print_time(table, has(word, "mean_now_us") ? es_json_number(word, "mean_now_us")
						   : es_json_number(node, "mean_us"));
	if (has_rates)
		print_p99(table, node);
	for (size_t i = 0; i < COUNT(shares); i++)
		if (has(word, shares[i]) || has(node, shares[i]))
			es_table_cell(table, "%.0f%%",
				      100 * es_json_fraction(has(word, shares[i]) ? word : node, shares[i]));
		else
			es_table_cell(table, "-");
}

/*
 * Which program and which datapath it is there: in a cluster that is half upgraded, or mixed, not the same.
 */
static void print_kind(struct es_table *table, struct json_object *node)
{
	es_table_cell(table, "%s", es_json_string(word_of(node), "version"));
	es_table_cell(table, "%s", es_json_string(word_of(node), "datapath"));
}

/* Adds up what the nodes that answer say. */
static void print_totals(struct es_table *table, struct json_object *nodes, int changes)
{
	double sums[COUNT(rates) + COUNT(counts)] = {};

	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		struct json_object *word = word_of(json_object_array_get_idx(nodes, i));

		for (size_t k = 0; k < COUNT(rates); k++)
			sums[k] += es_json_fraction(word, rates[k]);
		for (size_t k = 0; k < COUNT(counts); k++)
			sums[COUNT(rates) + k] += es_json_fraction(word, counts[k]);
	}
	es_table_cell(table, "all");
	for (int i = 0; i < 4; i++)
		es_table_cell(table, "%s", "");
	for (size_t k = 0; k < COUNT(sums); k++)
		es_table_cell(table, "%.*f", k < COUNT(rates), sums[k]);
	for (int i = 0; i < (changes ? 8 : 6); i++)
		es_table_cell(table, "%s", "");
}

static int is_among(struct json_object *names, const char *name)
{
	for (size_t i = 0; i < json_object_array_length(names); i++)
		if (!strcmp(json_object_get_string(json_object_array_get_idx(names, i)), name))
			return 1;
	return 0;
}

/* The node's word about that service; an empty object if it has not told. */
static struct json_object *service_of(struct json_object *node, const char *name)
{
	struct json_object *service = es_json_find(es_json_array(word_of(node), "services"), "name", name);

	return service ? service : es_json_object(node, "");
}

/* How the service is on a node; of one of a version before, as far as all know. */
static const char *state_on(struct json_object *node, const char *name)
{
	const char *state = es_json_string(service_of(node, name), "state");

	if (es_json_find(es_json_array(node, "drained_services"), "service", name) &&
	    (!strcmp(state, "-") || !strcmp(state, "up")))
		return "drained";
	if (strcmp(state, "-") != 0)
		return state;
	if (is_among(es_json_array(node, "lacks"), name))
		return "down";
	return is_among(es_json_array(node, "failing"), name) ? "degraded" : es_json_string(node, "state");
}

/*
 * Is the node among those that the service is on? A daemon of the version before says none, and its services
 * are on all.
 */
static int is_on(struct json_object *service, const char *node)
{
	struct json_object *nodes = es_json_array(service, "nodes");

	return !json_object_array_length(nodes) || is_among(nodes, node);
}

/* "; not on n3, n4", "" if it is on all. */
static const char *elsewhere(struct json_object *service, struct json_object *nodes, char *text, size_t size)
{
	size_t used = 0;

	text[0] = 0;
	for (size_t i = 0; i < json_object_array_length(nodes) && used < size; i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);
		const char *name = es_json_string(node, "name");

		if (!is_on(service, name) && strcmp(es_json_string(node, "state"), "removed") != 0)
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "; not on ",
						 name);
	}
	return text;
}

/* "up", or all that is not: "down on n2, n4; degraded on n3". A node that drains serves what it has. */
static void print_state(struct es_table *table, struct json_object *nodes, struct json_object *service)
{
	static const char *const states[] = {"down", "degraded", "pending", "drained",
					     "left", "absent",	 "silent",  "refused"};
	size_t len, count = json_object_array_length(nodes);
	const char *name = es_json_string(service, "name");
	char *text = NULL, rest[256];
	FILE *file = open_memstream(&text, &len);

	for (size_t s = 0; file && s < COUNT(states); s++) {
		const char *before = ftell(file) ? "; " : "";
		int is_first = 1;

		for (size_t i = 0; i < count; i++) {
			struct json_object *node = json_object_array_get_idx(nodes, i);

			if (!is_on(service, es_json_string(node, "name")) ||
			    strcmp(state_on(node, name), states[s]) != 0)
				continue;
			if (is_first)
				fprintf(file, "%s%s on %s", before, states[s], es_json_string(node, "name"));
			else
				fprintf(file, ", %s", es_json_string(node, "name"));
			is_first = 0;
		}
	}
	if (file)
		fclose(file);
	es_table_cell(table, "%s%s", text && *text ? text : "up",
		      elsewhere(service, nodes, rest, sizeof(rest)));
	free(text);
}

static void print_service(struct es_table *table, struct json_object *nodes, struct json_object *service)
{
	static const char *const keys[] = {"requests", "rejected", "connections", "active"};
	unsigned long long sums[COUNT(keys)] = {};
	const char *name = es_json_string(service, "name");

	for (size_t i = 0; i < json_object_array_length(nodes); i++)
		for (size_t c = 0; c < COUNT(keys); c++)
			sums[c] += es_json_number(service_of(json_object_array_get_idx(nodes, i), name),
						  keys[c]);
	es_table_cell(table, "%s", name);
	for (size_t c = 0; c < COUNT(keys); c++)
		es_table_cell(table, "%llu", sums[c]);
	print_state(table, nodes, service);
}

static void print_services(struct json_object *view)
{
	static const char *const headings[] = {"SERVICE", ">REQUESTS", ">REJECTED", ">CONNS",
					       ">ACTIVE", "STATE",     NULL};
	struct json_object *services = es_json_array(view, "services");
	struct es_table *table = es_table_new(headings);

	for (size_t i = 0; i < json_object_array_length(services); i++)
		print_service(table, es_json_array(view, "nodes"), json_object_array_get_idx(services, i));
	putchar('\n');
	es_table_print(table, stdout);
	es_table_free(&table);
}

/* The further lines for a cluster whose members come and go. */
static void print_membership(struct es_table *table, struct json_object *node, struct json_object *membership)
{
	const char *refused = es_json_string(node, "refused"), *reason = es_json_string(node, "reason");
	struct json_object *since = NULL;

	if (json_object_object_get_ex(node, "since_s", &since))
		es_table_cell(table, "%.0f s", es_json_fraction(node, "since_s"));
	else
		es_table_cell(table, "-");
	if (!*refused && es_json_is_true(node, "self") && es_json_is_true(membership, "silent"))
		reason = es_json_string(membership, "why");
	if (!*refused && !*reason && has(node, "heard") && !es_json_is_true(node, "heard"))
		reason = "not heard on the public network";
	if (!*refused && !*reason && has(node, "tells") && es_json_is_true(node, "member") &&
	    es_json_is_true(node, "tells") && !es_json_is_true(node, "answers"))
		reason = "it does not answer";
	if (!*refused && !*reason && json_object_array_length(es_json_array(node, "drift")))
		reason = "its settings differ";
	es_table_cell(table, "%s%s", *refused ? "refused: " : "", *refused ? refused : reason);
}

/* Says why some nodes do not serve, or not everything. */
static void print_troubles(struct json_object *nodes)
{
	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);
		struct json_object *trouble = NULL;

		if (json_object_object_get_ex(node, "trouble", &trouble) &&
		    json_object_get_string_len(trouble) > 0)
			printf("%s: %s\n", es_json_string(node, "name"), json_object_get_string(trouble));
	}
}

/* Would it cost the node its place? A daemon of a version before tells only of such. */
static int is_must(struct json_object *element)
{
	return !has(element, "must") || es_json_is_true(element, "must");
}

/* "n1: differs from n2 and n3 in service.0.web; ..." */
static void print_drift(struct json_object *nodes, int joins)
{
	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);
		struct json_object *drift = es_json_array(node, "drift");
		int must = 0;

		for (size_t k = 0; k < json_object_array_length(drift); k++) {
			struct json_object *element = json_object_array_get_idx(drift, k);
			const char *separator = "";

			must |= joins && is_must(element);
			printf("%s: setting %s differs: %s here, ", es_json_string(node, "name"),
			       es_json_string(element, "setting"), es_json_string(element, "value"));
			json_object_object_foreach(es_json_object(element, "others"), name, value)
			{
				printf("%s%s on %s", separator, json_object_get_string(value), name);
				separator = ", ";
			}
			putchar('\n');
		}
		if (json_object_array_length(drift))
			printf("%s: %smake the configuration the same on all nodes: earshot rollout\n",
			       es_json_string(node, "name"),
			       must ? "would be refused if it joined anew: " : "");
	}
}

static void print_by_hand(struct json_object *node, const char *key, const char *what)
{
	struct json_object *object;
	struct es_wire_by_hand by_hand;
	char text[ES_BY_HAND_TEXT_SIZE], since[32] = "";
	struct tm tm;
	time_t set_s;

	if (!json_object_object_get_ex(es_json_object(node, "by_hand"), key, &object))
		return;
	es_by_hand_parse(object, &by_hand);
	set_s = (time_t)(by_hand.set_ms / 1000);
	if (localtime_r(&set_s, &tm))
		strftime(since, sizeof(since), "%Y-%m-%d %H:%M:%S", &tm);
	printf("%s: %s by hand since %s%s\n", es_json_string(node, "name"), what, since,
	       es_by_hand_text(&by_hand, text, sizeof(text)));
}

/*
 * Lists what operators have set by hand, beside the configuration, and where that will not outlast the
 * daemon.
 */
static void print_all_by_hand(struct json_object *nodes)
{
	char weight[48];

	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);

		print_by_hand(node, "drain", "drained");
		snprintf(weight, sizeof(weight), "weight %llu", es_json_number(node, "weight"));
		print_by_hand(node, "weight", weight);
		if (es_json_is_true(node, "unkept"))
			printf("%s: cannot keep over a restart what is set by hand: its log says why\n",
			       es_json_string(node, "name"));
	}
}

/* "lease: 870 ms more; granted by n1 (910 ms), n3 (870 ms)": to the node that was asked */
static void print_lease(struct json_object *nodes, struct json_object *membership)
{
	const char *separator = "; granted by";

	if (!has(membership, "granted_ms"))
		return;
	printf("lease: %llu ms more", es_json_number(membership, "granted_ms"));
	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);

		if (!has(node, "granted_ms"))
			continue;
		printf("%s %s (%llu ms)", separator, es_json_string(node, "name"),
		       es_json_number(node, "granted_ms"));
		separator = ",";
	}
	putchar('\n');
}

/* Does only the node itself tell it, in a reply of `cluster`? */
static int is_own_word(const char *heading)
{
	static const char *const own[] = {">REQ/S", ">ERR/S", ">P99", "VERSION", "DATAPATH"};

	for (size_t i = 0; i < COUNT(own); i++)
		if (!strcmp(heading, own[i]))
			return 1;
	return 0;
}

/* @has_rates: the reply is that of `cluster` */
static void print_nodes(struct json_object *status, int has_rates)
{
	static const char *const headings[] = {"NODE",	 "ADDRESS", ">WEIGHT", "STATE",	   ">SHARE", ">REQ/S",
					       ">ERR/S", ">CONNS",  ">ACTIVE", ">LOAD",	   ">MEAN",  ">P99",
					       ">CPU",	 ">DISK",   "VERSION", "DATAPATH", ">SINCE", ""};
	struct json_object *nodes = es_json_array(status, "nodes");
	int changes = !strcmp(es_json_string(es_json_object(status, "membership"), "provider"), "corosync");
	const char *shown[COUNT(headings) + 1] = {};
	struct es_table *table;
	size_t i, count = 0;

	for (i = 0; i < COUNT(headings) - (changes ? 0 : 2); i++)
		if (has_rates || !is_own_word(headings[i]))
			shown[count++] = headings[i];
	table = es_table_new(shown);
	for (i = 0; i < json_object_array_length(nodes); i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);

		if (!json_object_is_type(node, json_type_object) ||
		    !strcmp(es_json_string(node, "state"), "removed"))
			continue;
		es_table_cell(table, "%s%s", es_json_string(node, "name"),
			      es_json_is_true(node, "self") ? " *" : "");
		es_table_cell(table, "%s", es_json_string(node, "address"));
		es_table_cell(table, "%llu", es_json_number(node, "weight"));
		es_table_cell(table, "%s", es_json_string(node, "state"));
		es_table_cell(table, "%.1f%%", 100 * es_json_fraction(node, "ring_share"));
		if (has_rates)
			print_rates(table, node);
		print_load(table, node, has_rates);
		if (has_rates)
			print_kind(table, node);
		if (changes)
			print_membership(table, node, es_json_object(status, "membership"));
	}
	if (has_rates)
		print_totals(table, nodes, changes);
	es_table_print(table, stdout);
	es_table_free(&table);
	print_lease(nodes, es_json_object(status, "membership"));
	print_troubles(nodes);
	print_drift(nodes, changes);
	print_all_by_hand(nodes);
	if (has_rates)
		print_services(status);
}

void es_cli_print_nodes(struct json_object *status)
{
	print_nodes(status, 0);
}

/* Has a node that can tell of itself not yet done so? */
static int is_awaited(struct json_object *view)
{
	struct json_object *nodes = es_json_array(view, "nodes");

	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);

		if (es_json_is_true(node, "tells") && !es_json_is_true(node, "answers"))
			return 1;
	}
	return 0;
}

/* Gets what all nodes say of themselves, for which the daemon asks them. A daemon of the version before
 * cannot: its status has to do. */
static int ask(const struct es_cli *cli, struct json_object **ret_reply, int *ret_has_rates)
{
	int r = es_cli_try(cli, es_cli_command_request("cluster"), ret_reply);

	for (int i = 0; !r && *ret_reply && i < WORDS_TRIES && is_awaited(*ret_reply); i++) {
		json_object_put(*ret_reply);
		poll(NULL, 0, WORDS_WAIT_MS);
		r = es_cli_try(cli, es_cli_command_request("cluster"), ret_reply);
	}
	*ret_has_rates = !r && *ret_reply;
	return r || *ret_reply ? r : es_cli_request(cli, es_cli_command_request("status"), ret_reply);
}

static int run(const struct es_cli *cli)
{
	struct json_object *reply, *nodes;
	int has_rates, r = ask(cli, &reply, &has_rates);

	if (r)
		return r;
	if (cli->json) {
		nodes = json_object_new_object();
		json_object_object_add(nodes, "nodes", json_object_get(es_json_array(reply, "nodes")));
		es_cli_print_json(nodes);
		json_object_put(nodes);
	} else {
		print_nodes(reply, has_rates);
	}
	json_object_put(reply);
	return ES_CLI_OK;
}

const struct es_cli_command es_cli_nodes = {
	.name = "nodes",
	.doc = "Show the cluster's nodes and services; * marks the node that was asked."
	       "\vSTATE: up; draining, it gets no new requests; down, its server does not serve; left, in "
	       "order; absent, "
	       "lost or never seen; silent, it answers nothing new (and why); refused, its "
	       "settings differ.\n"
	       "SHARE: part of all connections that it inspects first.\n"
	       "REQ/S, ERR/S: requests a second that it inspected, whoever serves them, and those of them "
	       "that failed, over "
	       "the last five to ten seconds.\n"
	       "CONNS: connections of clients. ACTIVE: requests in hand. LOAD: what is left of their "
	       "responses, in "
	       "packets.\n"
	       "MEAN: how long a request is in hand there, over the same seconds; - if none "
	       "came. "
	       "Where requests are not told apart (inspect = first or never) it is that of connections.\n"
	       "P99: 99 of 100 responses were complete in less, over the same seconds, from when the request "
	       "was given to "
	       "the server; - where responses are not read (inspect = first or never), or none came.\n"
	       "CPU, DISK: share of time in which CPUs are busy, and in which something waits for a disk.\n"
	       "VERSION, DATAPATH: of its daemon: bpf, module or netfilter.\n"
	       "SINCE: for how long it is, or is not, a member.\n"
	       "STATE of a service: up, on all nodes that are; else where it is down; degraded, its server "
	       "fails its "
	       "check but serves, or one of two addresses does not; or pending, it is being checked.\n"
	       "REQUESTS, REJECTED: of a service on all nodes that answer, since their daemons started.\n"
	       "A dash: the node does not answer, or does not tell.",
	.run = run,
};
