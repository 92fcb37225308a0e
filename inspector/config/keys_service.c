// SPDX-License-Identifier: GPL-2.0-or-later
/* The keys of a service and of the sections that stand in it; how to read a line is in keys.h. */
#include "inspector/config/keys.h"

static const struct es_conf_choice inspects[] = {
	{"first", ES_INSPECT_FIRST},
	{"every", ES_INSPECT_EVERY},
	{"never", ES_INSPECT_NEVER},
	{NULL, 0},
};

static const struct es_conf_choice unsafes[] = {
	{"once", ES_UNSAFE_ONCE},
	{"again", ES_UNSAFE_AGAIN},
	{"all", ES_UNSAFE_ALL},
	{NULL, 0},
};

static const struct es_conf_choice survives[] = {
	{"off", 0},
	{"1", 1},
	{"2", 2},
	{NULL, 0},
};

static const struct es_conf_choice resumes[] = {
	{"off", 0},
	{"on", 1},
	{NULL, 0},
};

static const struct es_conf_choice all_downs[] = {
	{"serve", ES_CONF_ALL_DOWN_SERVE},
	{"reject", ES_CONF_ALL_DOWN_REJECT},
	{NULL, 0},
};

/* *service* _NAME_ { }, one for each address and port that the cluster answers, up to 64. */
const struct es_conf_key es_conf_service_keys[] = {
	/*
	 * The address that all nodes share, on lo; or one of each family, with a comma between them
	 * (_192.0.2.10, 2001:db8::10_).
	 *
	 * Before a second address is added to a service that runs, put it on lo of all nodes: a node that
	 * lacks one of them serves that service by neither.
	 */
	VALUE(service, address, MUST, REQUIRED, ADDRESSES),

	/* TCP port. */
	NUMBER(service, port, MUST, REQUIRED, 1, 65535, NULL, NULL),

	/*
	 * Which node serves a request: ring, wrr, wlc, uri-hash, lard, lard-r, cawll, xlard-r, cahrd, hylard,
	 * cap, ward or ext-lard (/usr/share/doc/earshot/policies.md.gz). Default uri-hash, and with
	 * _inspect = never_: ring.
	 * @example uri-hash
	 */
	VALUE(service, policy, MUST, OPTIONAL, POLICY),

	/*
	 * _first_: each connection's first request decides. _every_: each request decides, and an open
	 * connection moves to another node for it. _never_: layer 4, the ring decides as soon as the
	 * connection is established, or a rule with *affinity* = source.
	 *
	 * With _never_, where the ring's node drains or does not serve, the next one of the ring has the
	 * connection. Use it for protocols in which the server speaks first (SMTP, SSH, MySQL), which
	 * otherwise wait for ever. Clients with a link-local address (fe80::) are treated so whatever is set
	 * here; the netfilter datapath refuses those.
	 */
	CHOICE(service, inspect, MUST, "first", inspects),

	/*
	 * How to treat a request that its client repeats, and that a lost node may have executed
	 * (/usr/share/doc/earshot/failures.md.gz). _once_: it is given to another node only if its method is
	 * safe: GET, HEAD, OPTIONS or TRACE; otherwise the client gets a RST. _again_: it is always given to
	 * another node. _all_: as _once_, but traffic that is not read (layer 4, TLS, HTTP/2) counts as
	 * unsafe.
	 */
	CHOICE(service, unsafe, MUST, "once", unsafes),

	/*
	 * How many other nodes know each idle connection, so that one of them goes on with it when its node
	 * is lost (/usr/share/doc/earshot/failures.md.gz): _off_, _1_ or _2_. They know each request that
	 * has been in hand for a second, too, and tell its client at once that there will be no answer.
	 *
	 * With *inspect* = every and *membership* = corosync. A node that is not sure of its membership takes
	 * no request on such a connection. Not with the netfilter datapath.
	 */
	CHOICE(service, survive, MUST, "off", survives),

	/*
	 * With *survive*: whether the other nodes know each long response, too, so that one of them goes on
	 * with it, or tells its client that the rest does not come, when its node is lost
	 * (/usr/share/doc/earshot/failures.md.gz): _off_ or _on_.
	 *
	 * Needs content of which all nodes have the same bytes and strong validators. Nothing is told of
	 * responses of less than 256 KB, but that they last for long.
	 */
	CHOICE(service, resume, MUST, "off", resumes),

	/*
	 * With *server_port*: the local address on which the server listens for connections that programs
	 * hand over, or one of each family with a comma between them.
	 *
	 * A connection of IPv6 is made on a listener of IPv6. Those of a family without one cannot be handed
	 * over. With the netfilter datapath, a loopback address stands for one of *earshotd*'s own
	 * (docs/programs.md).
	 */
	VALUE(service, server_address, SHOULD_AS(".server", ""), "127.0.0.1, ::1", LOCALS),

	/*
	 * The port of the server to which programs hand over the connections that they have accepted on the
	 * service's address and port (docs/programs.md).
	 */
	NUMBER(service, server_port, SHOULD_AS(".server", ":"), "0", 1, 65535, NULL,
	       "no program hands connections over"),

	/*
	 * uri-hash passes over a node with more than this share of the mean load. Without a bound, each URI
	 * has one node, whatever that costs.
	 */
	NUMBER(service, load_bound, SHOULD_IN(".serving"), "125", 100, 1000, "percent", "none"),

	/*
	 * With _inspect = every_: how much moving an open connection must gain.
	 *
	 * With 0, moving costs nothing, and connections go to their content even where the disk is idle (see
	 * _content\_on\_disk_).
	 */
	NUMBER(service, handover_cost, SHOULD_IN(".serving"), "1", 0, 1000, "requests", NULL),

	/*
	 * _yes_: the policy treats the same path on two hosts as two contents. _no_: it treats them as one,
	 * for sites that serve the same files under all names.
	 *
	 * Either way, upper and lower case of the host and its port make no difference, nor does
	 * percent-encoding of a character that does not need it.
	 */
	CHOICE(service, content_host, MUST, "yes", yes_no),

	/*
	 * _yes_: a node that lacks content in memory reads it from its disk, so content on another node is no
	 * reason to move a connection while that disk is idle. _no_: there is nothing to be read (caches,
	 * models, sessions in memory), and connections go to their content whatever the disk does.
	 *
	 * The cost of a move for other reasons (_handover_cost_) stays as it is.
	 */
	CHOICE(service, content_on_disk, SHOULD, "yes", yes_no),

	/*
	 * The policy's own parameters, by their names in the papers, as a list of "NAME=VALUE". Default: the
	 * papers' values, but T_low, T_high and M are _auto_: they follow from the nodes' measured capacity.
	 * For these, _paper_ is the paper's value.
	 *
	 * The error for a wrong name lists the right ones.
	 * @example { "T_low=25", "T_high=65" }
	 */
	LIST(service, "parameters", parameters, MUST, PARAMETER),

	/*
	 * Absolute path of the files that the servers of all nodes serve, for their sizes. Default: none.
	 * @example /var/www/html
	 */
	VALUE(service, document_root, SHOULD, OPTIONAL, PATH),

	/*
	 * From this number of requests in hand on average (per node of weight 100), requests of low priority
	 * are refused with 503. An idle connection is no request in hand.
	 */
	NUMBER(service, admit_low, MUST, "0", 1, 1000000, "requests per node", "always admitted"),

	/* The same for requests of normal priority. */
	NUMBER(service, admit_normal, MUST, "0", 1, 1000000, "requests per node", "always admitted"),

	/* Retry-After of these answers. */
	NUMBER(service, retry_after_s, SHOULD_IN(".serving"), "5", 1, 3600, "seconds", NULL),

	/*
	 * Requests while no node's server passes its check. _serve_: they go to the servers all the same.
	 * _reject_: the inspecting node answers 503 with *retry_after_s*, or as *otherwise* { } says; what is
	 * not HTTP/1.x gets a RST.
	 */
	CHOICE(service, when_all_down, SHOULD_IN(".serving"), "serve", all_downs),

	/*
	 * The nodes that the service is on, a list of their names. The others inspect the requests for it and
	 * hand them over. Default: all.
	 *
	 * The others need no server, address or check for it, and serve none of it, whatever listens there.
	 * Rules for this service name only these nodes.
	 * @example {n1, n2}
	 */
	LIST(service, "nodes", node_names, MUST, NODE),

	/*
	 * These nodes serve only while none of the others can: a list of names. Default: none.
	 *
	 * They inspect their share like the others, and give it away, also with *inspect* = never.
	 * @example {n3}
	 */
	LIST(service, "backup", backup_names, MUST, NODE),
	{.name = NULL},
};

static const struct es_conf_choice check_types[] = {
	{"tcp", ES_CONF_CHECK_TCP},
	{"http", ES_CONF_CHECK_HTTP},
	{"https", ES_CONF_CHECK_HTTPS},
	{"none", ES_CONF_CHECK_NONE},
	{NULL, 0},
};

/*
 * *check* { } stands in a *service* section. Each node's daemon checks its own server so, at the service's
 * address. A node whose server fails gets no requests while others pass.
 *
 * At most *max_out* nodes (below) are out at a time. A server that does not listen is down without any check.
 */
const struct es_conf_key es_conf_check_keys[] = {
	/*
	 * _tcp_: a connection is made, and the server accepts it in time. _http_: it answers GET in time with
	 * the status that is expected. _https_: likewise by TLS. _none_: nothing is checked.
	 */
	CHOICE(check, type, SHOULD_AS("", ""), "tcp", check_types),

	/*
	 * TCP port that is asked, at the service's address.
	 *
	 * A server that does not listen there fails its check, and needs a place among *max_out* to be out,
	 * as it listens for clients. The service's own port is looked at besides: without a server there, the
	 * node is down.
	 */
	NUMBER(check, port, SHOULD_IN("_asks"), "0", 1, 65535, NULL, "the service's"),

	/*
	 * The path that _http_ and _https_ ask for.
	 *
	 * With another type, this key and the next ones up to *status* are refused.
	 * @example /health
	 */
	VALUE(check, path, SHOULD_IN(""), "/", PATH),

	/*
	 * The Host of that request, with port if it is to have one. Default: the service's address.
	 *
	 * With _https_, its name is told to the server (SNI), too.
	 * @example www.example.com
	 */
	VALUE(check, host, SHOULD_IN(""), OPTIONAL, TEXT),

	/*
	 * With _https_ alone: a file of certificates in PEM, one of which must have issued the server's.
	 * Default: none, and no certificate is looked at.
	 *
	 * The server's certificate must also be valid, and have the name, or address, that *host* says. The
	 * file is read at the start and at each reload; while it cannot be, the check fails.
	 * @example /etc/ssl/certs/ca-certificates.crt
	 */
	VALUE(check, ca_file, SHOULD_IN("_asks"), OPTIONAL, PATH),

	/*
	 * Text that must be in the answer's body, within its first 64 KiB, 1..255 bytes. Default: any body.
	 *
	 * Capitals count; content that the server compresses without being asked is not read.
	 * @example "all is well"
	 */
	VALUE(check, body, SHOULD_IN("_asks"), OPTIONAL, BODY),

	/*
	 * The status that is right.
	 *
	 * The only status 1xx that is an answer is 101: the others are passed over, and refused here.
	 * @example 204
	 */
	NUMBER(check, expect, SHOULD_IN(""), "0", 100, 599, NULL, "any of 200..399"),

	/*
	 * Instead of *expect*, a list of the statuses that are right, each of them one status or
	 * _FIRST..LAST_. Default: none.
	 * @example { "200..299", "401" }
	 */
	LIST(check, "status", statuses, SHOULD_IN("_asks"), STATUS),

	/* The time from the end of a check to the next one. */
	NUMBER(check, interval_ms, SHOULD_IN(""), "1000", 100, 600000, "milliseconds", NULL),

	/*
	 * A server that takes longer to accept the connection of a check fails, unless it goes on accepting
	 * others before; and so does one that takes longer for its answer from then on.
	 */
	NUMBER(check, timeout_ms, SHOULD_IN(""), "2000", 10, 60000, "milliseconds", NULL),

	/*
	 * After so many checks in a row that pass, the server is up.
	 *
	 * The first check after the start of a daemon, of a server, or of another *type*, *port*, *path*,
	 * *host*, *ca_file*, *expect*, *status* or *body*, decides alone.
	 */
	NUMBER(check, rise, SHOULD_IN(""), "2", 1, 100, "checks", NULL),

	/* After so many checks in a row that fail, the server is down. */
	NUMBER(check, fall, SHOULD_IN(""), "3", 1, 100, "checks", NULL),

	/*
	 * A node that gets requests again, after it had none, has a twentieth of its share at first, and
	 * grows to the whole within this time.
	 *
	 * Its share of the ring, which says what it inspects, is whole.
	 */
	NUMBER(check, slow_start_s, SHOULD, "0", 1, 86400, "seconds", "the whole share at once"),
	{.name = NULL},
};

/*
 * *outlier* { } stands in a *service* section. With *inspect* = _every_, each node's daemon judges its own
 * server by the responses of an interval. A server that is beyond a limit gets no requests for a while.
 *
 * Without a limit, responses put nobody out, and *max_out* may stand alone.
 */
const struct es_conf_key es_conf_outlier_keys[] = {
	/* So many of the responses may have a status of 5xx. */
	NUMBER(outlier, max_errors, SHOULD_IN(""), "0", 1, 99, "percent of responses",
	       "errors put nobody out"),

	/* So many of the responses may take longer than *slow_ms*. One of these two is set, or *max_out*. */
	NUMBER(outlier, max_slow, SHOULD_IN(""), "0", 1, 99, "percent of responses",
	       "slow ones put nobody out"),

	/*
	 * The time from when the server was given the request until the last byte of its response has left.
	 */
	NUMBER(outlier, slow_ms, SHOULD_IN(""), "1000", 1, 600000, "milliseconds", NULL),

	/* How long responses are counted before they are judged. */
	NUMBER(outlier, interval_ms, SHOULD_IN(""), "10000", 1000, 600000, "milliseconds", NULL),

	/* An interval with fewer responses decides nothing. */
	NUMBER(outlier, min_responses, SHOULD_IN(""), "20", 1, 1000000, "responses", NULL),

	/* A server gets nothing for so long the first time; each further time it is twice as long. */
	NUMBER(outlier, out_s, SHOULD_IN(""), "30", 1, 86400, "seconds", NULL),

	/* A server gets nothing for so long at most. */
	NUMBER(outlier, out_max_s, SHOULD_IN(""), "300", 1, 86400, "seconds", NULL),

	/*
	 * A server is put out only while fewer nodes than this serve nothing of the service, for whatever
	 * reason. It must be less than the number of nodes.
	 *
	 * It also limits, even in a service without the limits above, how many nodes are out because
	 * connections vanish there, or because their servers fail their check although they listen. For a
	 * check, only nodes count that are out for one of these reasons.
	 */
	NUMBER(outlier, max_out, SHOULD_IN(""), "1", 1, 126, "nodes", NULL),
	{.name = NULL},
};

/*
 * *otherwise* { } stands in a *service* section. It says what clients are answered while no node can serve
 * the service, backup nodes included.
 *
 * That is so while no server listens on any of them, while all checks fail with *when_all_down* = _reject_,
 * or where a rule with *otherwise* = _reject_ leaves none. *retry_after_s* goes with it. Without this
 * section, clients get a RST in the first of these cases, and 503 in the others; what is not HTTP/1.x gets a
 * RST in each. Not with *inspect* = never.
 */
const struct es_conf_key es_conf_otherwise_keys[] = {
	/* The answer's status. */
	NUMBER(page, status, SHOULD_IN(""), "503", 400, 599, NULL, NULL),

	/*
	 * A file with the answer's text, 1..1000 bytes in UTF-8: .html or .htm is HTML, anything else is
	 * plain text. Default: none.
	 *
	 * An absolute path, on each node; read at the start and at each reload. A daemon that cannot read it
	 * does not start, or keeps the configuration that it has. The page goes in one packet: clients with
	 * IPv4 that take less than 1300 bytes in one get the status in words.
	 * @example /etc/earshot/sorry.html
	 */
	VALUE(page, file, SHOULD_IN(""), OPTIONAL, PATH),

	/*
	 * Instead of *file*, the text, 1..255 bytes in UTF-8 on one line; a line feed follows. Default: the
	 * status in words.
	 * @example "We are back soon."
	 */
	VALUE(page, body, SHOULD_IN(""), OPTIONAL, BODY),
	{.name = NULL},
};

static const struct es_conf_choice fails[] = {
	{"open", ES_CONF_FAIL_OPEN},
	{"closed", ES_CONF_FAIL_CLOSED},
	{NULL, 0},
};

/*
 * *plugin* _NAME_ { } stands in a *service* section and is asked before its policy, in the order of the file;
 * up to 64 in all. See *earshot-plugin*(7).
 */
const struct es_conf_key es_conf_plugin_keys[] = {
	/*
	 * A file in the plugins' directory, or an absolute path. Default: the section's name and ".so".
	 *
	 * The name and version that the plugin gives itself are compared, and not the path.
	 * @example "header-hash.so"
	 */
	VALUE(plugin, file, MUST, OPTIONAL, FILE),

	/*
	 * The effect of a wrong answer, or of a call that crashes or does not return. _open_: the plugin is
	 * passed over. _closed_: the request is refused with 503.
	 */
	CHOICE(plugin, fail, MUST, "open", fails),

	/* The answer of a call that took more CPU time than this counts as wrong. */
	NUMBER(plugin, budget_us, SHOULD, "10000", 1, 1000000, "microseconds", "calls are not measured"),

	/*
	 * The plugin's own configuration, on one line. Default: none.
	 * @example "header X-Tenant"
	 */
	VALUE(plugin, config, MUST, OPTIONAL, CONFIG),

	/*
	 * The same from a file with as many lines as needed: absolute path. Default: none.
	 * @example /etc/earshot/header-hash.conf
	 */
	VALUE(plugin, config_file, MUST, OPTIONAL, PATH),
	{.name = NULL},
};
