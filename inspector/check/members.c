// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Checks what the running daemon says about itself, and about the settings that the members have told each
 * other.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "earshot_version.h"
#include "inspector/check/check.h"
#include "inspector/base/json.h"
#include "inspector/peers/node_clocks.h"

#define CHANGE_LONG_S 10

/* NTP does better by far. */
#define CLOCK_SUSPECT_MS 2000

static const struct es_check_item daemon_item = {
	.name = "daemon",
	.why = "A daemon that does not answer serves nothing new, and only it knows what the other members "
	       "have told it.",
};

static int enter(struct es_check *check)
{
	const struct es_facts_daemon *d = &check->facts->daemon;

	check->item = &daemon_item;
	if (d->runs && d->status)
		return 0;
	if (d->runs || d->rc == -EAGAIN)
		es_check_error(check, "systemctl restart earshotd",
			       "earshotd hangs: it has control socket %s and does not answer", d->socket);
	else if (d->rc == -ECONNREFUSED)
		es_check_error(check, "journalctl -u earshotd; systemctl start earshotd",
			       "earshotd died: nobody has its control socket %s any more", d->socket);
	else if (d->rc == -EACCES)
		es_check_unchecked(check, "control socket %s is not this user's to ask: run it as root",
				   d->socket);
	else if (d->rc && d->rc != -ENOENT)
		es_check_error(check, "systemctl status earshotd", "earshotd cannot be reached by %s: %s",
			       d->socket, strerror(-d->rc));
	else
		es_check_unchecked(check, "no earshotd of this node runs, so nobody knows the other members");
	return 1;
}

static void check_state(struct es_check *check)
{
	const char *state = es_json_string(es_json_object(check->facts->daemon.status, "datapath"), "state");

	if (!strcmp(state, "fallback"))
		es_check_error(check, "restart earshotd", "earshotd runs, but inspects nothing (fallback)");
	else if (!strcmp(state, "silent"))
		es_check_info(check, "earshotd is silent, for the reason that the membership has");
	else if (!strcmp(state, "detached"))
		es_check_error(check, "restart earshotd", "the datapath is detached");
	else
		es_check_ok(check, "earshotd is %s", state);
}

static int is_true(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	return json_object_object_get_ex(object, key, &value) && json_object_get_boolean(value);
}

static void check_version(struct es_check *check)
{
	const char *version = es_json_string(check->facts->daemon.status, "version");

	if (strcmp(version, EARSHOT_VERSION) != 0)
		es_check_warning(check, "restart earshotd", "earshotd is version %s, this program %s",
				 version, EARSHOT_VERSION);
	else
		es_check_ok(check, "earshotd is version %s", version);
}

static struct json_object *membership(const struct es_check *check)
{
	return es_json_object(check->facts->daemon.status, "membership");
}

static int is_static(const struct es_check *check)
{
	return strcmp(es_json_string(membership(check), "provider"), "corosync") != 0;
}

static void check_membership(struct es_check *check)
{
	struct json_object *m = membership(check);
	const char *phase = es_json_string(m, "phase");
	double phase_s = es_json_fraction(m, "phase_s");

	if (is_static(check))
		es_check_ok(check, "membership is static");
	else if (is_true(m, "silent"))
		es_check_error(check, "corosync-quorumtool -s; earshot nodes", "this node is silent: %s",
			       es_json_string(m, "why"));
	else if (strcmp(phase, "stable") != 0 && phase_s > CHANGE_LONG_S)
		es_check_warning(check, "earshot nodes; the other nodes' logs",
				 "the ring's change has been in phase %s for %.0f s", phase, phase_s);
	else
		es_check_ok(check, "this node is a member, phase %s", phase);
}

static struct json_object *status_nodes(const struct es_check *check)
{
	return es_json_array(check->facts->daemon.status, "nodes");
}

/* Reports that this node is down, whatever the reason, and whether or not another check finds it. */
static void check_down(struct es_check *check)
{
	struct json_object *nodes = status_nodes(check);

	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);
		const char *trouble = es_json_string(node, "trouble");

		if (!is_true(node, "self") || strcmp(es_json_string(node, "state"), "down") != 0)
			continue;
		es_check_error(check, "earshot nodes; earshot events", "this node is down%s%s",
			       *trouble ? ": " : "", trouble);
		return;
	}
	es_check_ok(check, "this node is not down");
}

static void check_away(struct es_check *check)
{
	struct json_object *nodes = status_nodes(check);
	size_t i, n = json_object_array_length(nodes);
	unsigned int away = 0;

	for (i = 0; i < n && !is_static(check); i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);

		if (is_true(node, "member") || !strcmp(es_json_string(node, "state"), "removed"))
			continue;
		away++;
		es_check_warning(
			check,
			es_check_action("start corosync and earshotd on %s", es_json_string(node, "name")),
			"node %s is not a member: %s", es_json_string(node, "name"),
			es_json_string(node, "reason"));
	}
	if (!away)
		es_check_ok(check, is_static(check) ? "membership is static" : "all nodes are members");
}

static void check_refused(struct es_check *check)
{
	struct json_object *nodes = status_nodes(check);
	size_t i, n = json_object_array_length(nodes);
	struct json_object *not_taken;
	unsigned int refused = 0;

	if (json_object_object_get_ex(es_json_object(check->facts->daemon.status, "rollout"), "not_taken",
				      &not_taken) &&
	    *json_object_get_string(not_taken)) {
		refused++;
		es_check_warning(check,
				 "earshot rollout of the file that is right; the one here stays beside it",
				 "the file of the members' last rollout was not taken: %s",
				 json_object_get_string(not_taken));
	}
	for (i = 0; i < n && !is_static(check); i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);

		if (!is_true(node, "member") || !*es_json_string(node, "refused"))
			continue;
		refused++;
		es_check_error(
			check,
			"earshot rollout of the configuration that is right, or the same file, key and "
			"plugins there and earshot reload on it: it joins then by itself",
			"node %s is refused: %s", es_json_string(node, "name"),
			es_json_string(node, "refused"));
	}
	if (!refused)
		es_check_ok(check, "no node is refused");
}

/* A member that this node has heard on the public network, and does not hear any more. */
static unsigned int check_lost(struct es_check *check, struct json_object *node)
{
	struct json_object *heard = NULL;

	if (!is_true(node, "member") || !json_object_object_get_ex(node, "heard", &heard) ||
	    json_object_get_boolean(heard))
		return 0;
	es_check_warning(
		check,
		es_check_action("earshot check on %s; its cable and switch port of the public network",
				es_json_string(node, "name")),
		"node %s is a member, and not heard on the public network any more",
		es_json_string(node, "name"));
	return 1;
}

static void check_heard(struct es_check *check)
{
	struct json_object *nodes = status_nodes(check);
	size_t i, n = json_object_array_length(nodes);
	unsigned int heard = 0, hears = 0, lost = 0;

	if (is_static(check)) {
		es_check_ok(check, "membership is static");
		return;
	}
	for (i = 0; i < n; i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);

		heard += is_true(node, "heard");
		hears += is_true(node, "hears");
		lost += check_lost(check, node);
	}
	if (heard && !hears)
		es_check_warning(check, "the cable and switch port of this node's public network",
				 "this node hears others on the public network, and none of them hears it");
	else if (!heard && n > 1 && !lost)
		es_check_info(
			check,
			"no other node's frames arrive on the public network (older versions, isolated "
			"switch ports, or a switch that does not send the cluster MAC to this one): a node "
			"that is mute or deaf there would not be found");
	else if (!lost)
		es_check_ok(check, "the nodes hear each other on the public network");
}

static void check_poison(struct es_check *check)
{
	struct json_object *poison = es_json_array(check->facts->daemon.status, "poison");
	size_t i, n = json_object_array_length(poison);

	for (i = 0; i < n; i++) {
		struct json_object *p = json_object_array_get_idx(poison, i);

		es_check_error(
			check,
			es_check_action("look at the log, and for a core, on %s", es_json_string(p, "node")),
			"a request of %s port %llu ended the daemon of %s %.0f s ago (it %s)",
			es_json_string(p, "client"), es_json_number(p, "port"), es_json_string(p, "node"),
			es_json_fraction(p, "age_s"), es_json_string(p, "daemon"));
	}
	if (!n)
		es_check_ok(check, "no request has ended a daemon");
}

static void check_plugins(struct es_check *check)
{
	struct json_object *plugins = es_json_array(check->facts->daemon.status, "plugins");
	size_t i, n = json_object_array_length(plugins);
	unsigned int wrong = 0;

	for (i = 0; i < n; i++) {
		struct json_object *p = json_object_array_get_idx(plugins, i);
		unsigned long long crashes = es_json_number(p, "crashes");

		if (!crashes)
			continue;
		wrong++;
		if (is_true(p, "is_off"))
			es_check_error(check, "replace the plugin, then earshot reload",
				       "plugin %s of service %s is off: it has crashed or hung %llu times",
				       es_json_string(p, "name"), es_json_string(p, "service"), crashes);
		else
			es_check_warning(check, "replace the plugin, then earshot reload",
					 "plugin %s of service %s has crashed or hung %llu times",
					 es_json_string(p, "name"), es_json_string(p, "service"), crashes);
	}
	if (!wrong)
		es_check_ok(check, "no plugin has crashed");
}

/* A node's clock, as far as it is ahead of this node's; 0 if it has not told. */
static long long clock_ahead_ms(struct json_object *node)
{
	struct json_object *value = NULL;

	return json_object_object_get_ex(node, "clock_ahead_ms", &value) ? json_object_get_int64(value) : 0;
}

static int clock_is_told(struct json_object *node)
{
	struct json_object *value = NULL;

	return json_object_object_get_ex(node, "clock_ahead_ms", &value) && value;
}

/*
 * By how much this node's clock is wrong, if all others that tell theirs, two at least, are ahead of it, or
 * all are behind; else 0.
 */
static long long own_clock_ahead_ms(struct json_object *nodes)
{
	size_t i, n = json_object_array_length(nodes), others = 0;
	long long least = 0;

	for (i = 0; i < n; i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);
		long long ahead_ms = clock_ahead_ms(node);

		if (is_true(node, "self") || !clock_is_told(node))
			continue;
		if (llabs(ahead_ms) < CLOCK_SUSPECT_MS || (others && (ahead_ms > 0) != (least > 0)))
			return 0;
		if (!others++ || llabs(ahead_ms) < llabs(least))
			least = ahead_ms;
	}
	return others > 1 ? -least : 0;
}

static void report_clock(struct es_check *check, const char *name, long long ahead_ms)
{
	const char *action =
		es_check_action("NTP on %s: timedatectl set-ntp true, or chronyc makestep", name);

	if (llabs(ahead_ms) >= ES_CLOCK_WRONG_MS)
		es_check_error(check, action, "node %s: its clock is %.1f s %s", name,
			       (double)llabs(ahead_ms) / 1000, ahead_ms > 0 ? "ahead" : "behind");
	else
		es_check_warning(check, action, "node %s: its clock is %.1f s %s", name,
				 (double)llabs(ahead_ms) / 1000, ahead_ms > 0 ? "ahead" : "behind");
}

static void check_clocks(struct es_check *check)
{
	struct json_object *nodes = status_nodes(check);
	long long own_ms = own_clock_ahead_ms(nodes);
	size_t i, n = json_object_array_length(nodes);
	unsigned int told = 0, wrong = 0;

	for (i = 0; i < n; i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);

		told += clock_is_told(node) && !is_true(node, "self");
		if (is_true(node, "self") && own_ms)
			report_clock(check, es_json_string(node, "name"), own_ms);
		else if (!own_ms && llabs(clock_ahead_ms(node)) >= CLOCK_SUSPECT_MS)
			report_clock(check, es_json_string(node, "name"), clock_ahead_ms(node));
		else
			continue;
		wrong++;
	}
	if (!told && n > 1)
		es_check_unchecked(check, "no other node has told its time");
	else if (!wrong)
		es_check_ok(check, "the clocks of all nodes that tell theirs agree");
}

/* One of the daemon's counters, 0 if it has none of that name. */
static unsigned long long counter_of(const struct es_check *check, const char *name)
{
	struct json_object *counters = es_json_array(check->facts->daemon.counters, "counters");

	for (size_t i = 0; i < json_object_array_length(counters); i++) {
		struct json_object *counter = json_object_array_get_idx(counters, i);

		if (!strcmp(es_json_string(counter, "name"), name))
			return es_json_number(counter, "value");
	}
	return 0;
}

static void check_decisions(struct es_check *check)
{
	const struct es_conf *conf = check->conf;
	unsigned long long early = counter_of(check, "inspect_decisions_early");

	if (!check->facts->daemon.counters)
		es_check_unchecked(check, "earshotd has not told its counters");
	else if (early && conf->inspector.decision_entries)
		es_check_warning(
			check,
			es_check_action("decision_entries = %u in inspector { } of %s, or leave it out and "
					"say the connection_rate; earshot rollout --restart",
					conf->inspector.decision_entries * 2, conf->path),
			"%llu decisions were forgotten early, with decision_entries = %u", early,
			conf->inspector.decision_entries);
	else if (early)
		es_check_warning(
			check,
			es_check_action(
				"connection_rate = %u in inspector { } of %s; earshot rollout --restart",
				conf->inspector.connection_rate * 2, conf->path),
			"%llu decisions were forgotten early, with connection_rate = %u", early,
			conf->inspector.connection_rate);
	else
		es_check_ok(check, "decisions are remembered as long as requests may come again");
}

static void check_partial(struct es_check *check)
{
	unsigned long long partial = counter_of(check, "handover_partial");

	if (!check->facts->daemon.counters)
		es_check_unchecked(check, "earshotd has not told its counters");
	else if (partial)
		es_check_warning(
			check,
			"earshot check on all nodes: neighbours.route_mtu, neighbours.path_mtu, "
			"members.version; one MTU for the whole cluster network",
			"%llu handover messages came in parts, and were refused (since the datapath began)",
			partial);
	else
		es_check_ok(check, "handover messages come whole");
}

static void check_metrics(struct es_check *check)
{
	struct json_object *metrics = es_json_object(check->facts->daemon.status, "metrics");
	const char *error = es_json_string(metrics, "error"), *address = es_json_string(metrics, "address");
	unsigned long long port = es_json_number(metrics, "port");

	if (!json_object_object_get_ex(check->facts->daemon.status, "metrics", NULL))
		es_check_info(check,
			      "earshotd does not say where its metrics are: it is of an earlier version");
	else if (*error)
		es_check_warning(
			check,
			es_check_action(
				"ss -ltnp | grep %llu; or another address or port in status { } of %s, "
				"then earshot reload",
				port, check->conf->path),
			"the metrics cannot be read: %s", error);
	else if (!port)
		es_check_ok(check, "metrics are not served: port = 0");
	else
		es_check_ok(check, "metrics are served at %s port %llu", address, port);
}

static void check_waiting(struct es_check *check)
{
	const char *waiting = es_json_string(check->facts->daemon.status, "waiting_for_restart");

	/* A daemon of an earlier version says "-" if none waits. */
	if (*waiting && strcmp(waiting, "-") != 0)
		es_check_warning(check, "earshot rollout --restart of the same file, on any node",
				 "settings of %s that are not in force: %s", check->conf->path, waiting);
	else
		es_check_ok(check, "no setting waits for a restart of the daemon");
}

static const struct es_check_item items[] = {
	{"state", "Requests are served without inspection, or not at all.", check_state},
	{"down", "The other nodes serve what it should.", check_down},
	{"version", "The daemon was not restarted when the program was upgraded.", check_version},
	{"membership", "A node that is not in the ring, or in one that changes, answers nothing new.",
	 check_membership},
	{"away", "Its work is done by the others.", check_away},
	{"refused", "A node that differs in these may not join, since it would break connections.",
	 check_refused},
	{"heard", "A node that is mute there is asked, and its answers reach no client.", check_heard},
	{"decisions",
	 "A request that comes again, or its rest, may be given to another node than it was at first.",
	 check_decisions},
	{"partial",
	 "Larger requests hang: another node, or a router on the way, has been told that long packets do not "
	 "get "
	 "through.",
	 check_partial},
	{"drift",
	 "A node whose configuration differs decides otherwise than the others, and may be refused when it "
	 "joins "
	 "anew.",
	 es_check_drift},
	{"waiting", "It goes on with those that it had when it started.", check_waiting},
	{"settings",
	 "A request is decided otherwise there, or a connection that moves finds a socket that cannot keep "
	 "what it was promised.",
	 es_check_settings},
	{"metrics", "Monitoring does not see this node.", check_metrics},
	{"poison", "It is served without inspection, or refused, and so is what begins with the same bytes.",
	 check_poison},
	{"plugins", "Requests that it should decide go past it, or are refused, as its fail = says.",
	 check_plugins},
	{"clocks",
	 "Messages between nodes are refused when they seem to be two minutes old, and so are clients' "
	 "cookies.",
	 check_clocks},
	{NULL, NULL, NULL},
};

const struct es_check_group es_check_members_group = {.name = "members", .items = items, .enter = enter};
