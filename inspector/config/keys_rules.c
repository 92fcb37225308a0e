// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The keys of rules and locations; how to read a line is in keys.h. Their order is that of
 * es_conf_rule_digest(), which nodes compare: a new one comes last, after those that the version before
 * knows.
 */
#include "inspector/config/keys.h"
#include "inspector/policy/url_info.h"

static const struct es_conf_choice otherwises[] = {
	{"any", ES_CONF_OTHERWISE_ANY},
	{"reject", ES_CONF_OTHERWISE_REJECT},
	{NULL, 0},
};

static const struct es_conf_choice types[] = {
	{"static", ES_CONF_TYPE_STATIC},
	{"dynamic", ES_CONF_TYPE_DYNAMIC},
	{NULL, 0},
};

static const struct es_conf_choice classes[] = {
	{"normal", 1 + ES_CLASS_NORMAL},
	{"cpu", 1 + ES_CLASS_CPU},
	{"disk", 1 + ES_CLASS_DISK},
	{"disk-cpu", 1 + ES_CLASS_DISK_CPU},
	{NULL, 0},
};

static const struct es_conf_choice priorities[] = {
	{"high", 1 + ES_PRIORITY_HIGH},
	{"normal", 1 + ES_PRIORITY_NORMAL},
	{"low", 1 + ES_PRIORITY_LOW},
	{NULL, 0},
};

static const struct es_conf_choice affinities[] = {
	{"yes", ES_CONF_AFFINITY_VALUE},
	{"source", ES_CONF_AFFINITY_SOURCE},
	{"route", ES_CONF_AFFINITY_ROUTE},
	{"no", ES_CONF_AFFINITY_NONE},
	{NULL, 0},
};

static const struct es_conf_choice draineds[] = {
	{"leave", ES_CONF_DRAINED_LEAVE},
	{"stay", ES_CONF_DRAINED_STAY},
	{NULL, 0},
};

static const struct es_conf_choice denials[] = {
	{"yes", ES_CONF_DENY_YES},
	{"no", ES_CONF_DENY_NO},
	{NULL, 0},
};

/*
 * *rule* _NAME_ { } is about requests. The first rule that matches wins, in the order of the file, key by
 * key, and over every location.
 *
 * There may be 4096 rules and locations together. All conditions of a rule must hold; a list holds if any of
 * its values does. A rule without conditions matches all requests. Conditions:
 */
const struct es_conf_key es_conf_rule_keys[] = {
	/*
	 * The request is for this service. Default: every one that is inspected.
	 * @example web
	 */
	NAMED(rule, "service", service_name, MUST, TEXT),

	/*
	 * The method is one of these, as sent: in capital letters.
	 * @example {GET, HEAD}
	 */
	LIST(rule, "method", methods, MUST, METHOD),

	/*
	 * The host is one of these, any port, in any case, without a final dot; \*.example.org is every name
	 * below example.org.
	 * @example "*.example.org"
	 */
	LIST(rule, "host", hosts, MUST, HOST),

	/*
	 * The path is one of these, or below one that ends in /.
	 *
	 * Up to 255 characters; %XX and UTF-8 are the same, there are no wildcards, and an asterisk itself is
	 * %2A.
	 * @example { "/video/", "/index.html" }
	 */
	LIST(rule, "path", paths, MUST, PATH),

	/*
	 * The path ends in one of these, spelt as in *path*.
	 * @example { ".mp4", ".webm" }
	 */
	LIST(rule, "suffix", suffixes, MUST, SUFFIX),

	/*
	 * The client's address is in one of these networks.
	 *
	 * _0.0.0.0/0_ is every client with IPv4, _::/0_ every one with IPv6.
	 * @example { 192.0.2.0/24, "2001:db8::/32" }
	 */
	LIST(rule, "client", clients, MUST, NETWORK),

	/*
	 * The request has such a header; with "Name: value", one with exactly this value.
	 * @example "X-User"
	 */
	NAMED(rule, "header", header, MUST, HEADER),

	/*
	 * The request has such a cookie.
	 * @example JSESSIONID
	 */
	NAMED(rule, "cookie", cookie, MUST, TOKEN),

	/* --- Effects of a rule: */

	/*
	 * Only these nodes serve it. Default: all.
	 * @example {n1, n2}
	 */
	LIST(rule, "nodes", node_names, MUST, NODE),

	/*
	 * These nodes serve it if none of *nodes* can. Default: none.
	 * @example {n3}
	 */
	LIST(rule, "backup", backup_names, MUST, NODE),

	/*
	 * Where none of *nodes* and *backup* can serve it. _any_: the policy picks among all nodes. _reject_:
	 * the service's *otherwise* { }, or 503, with Retry-After. Default _any_.
	 * @example reject
	 */
	CHOICE(rule, otherwise, MUST, OPTIONAL, otherwises),

	/*
	 * _static_ or _dynamic_.
	 * @example dynamic
	 */
	CHOICE(rule, type, MUST, OPTIONAL, types),

	/*
	 * The resource that the request needs most: _normal_, _cpu_, _disk_ or _disk-cpu_.
	 * @example cpu
	 */
	CHOICE(rule, class, MUST, OPTIONAL, classes),

	/*
	 * The cost of serving it. Default: from its size, else 1.
	 * @example 40
	 */
	NUMBER(rule, cost, MUST, OPTIONAL, 1, 1000000, "response packets", NULL),

	/*
	 * _high_, _normal_ or _low_; see *admit_low*. Default _normal_.
	 * @example low
	 */
	CHOICE(rule, priority, MUST, OPTIONAL, priorities),

	/*
	 * _yes_: the node is the one at the place of the value of *cookie* or *header* on the content ring.
	 * _route_: the one that this value names by its *route*. _source_: the node at the place of the
	 * client's address, of IPv6 of its /64, on the content ring. _no_ has no effect.
	 *
	 * With _route_, the name stands alone or at the value's end after a full stop ("4711.n2"). If that
	 * node can take no request, as when it drains, a rule of another kind decides, else the policy. A
	 * rule for a service with *inspect* = never can say only _source_, must name the service, and can
	 * have no other condition than *client*.
	 * @example route
	 */
	CHOICE(rule, affinity, MUST, OPTIONAL, affinities),

	/*
	 * With *affinity* = route, for requests that name a node that drains. _leave_: they go elsewhere.
	 * _stay_: they go there until it is gone, or has weight 0 besides. Default _leave_.
	 * @example stay
	 */
	CHOICE(rule, when_drained, MUST, OPTIONAL, draineds),

	/*
	 * _yes_: the request is answered here, and no server sees it. _no_: it is not denied, whatever rules
	 * after this one say.
	 * @example yes
	 */
	CHOICE(rule, deny, MUST, OPTIONAL, denials),

	/*
	 * With *deny* = yes: the answer's status. Default 403.
	 * @example 410
	 */
	NUMBER(rule, status, MUST, OPTIONAL, 400, 599, NULL, NULL),

	/*
	 * With *deny* = yes: its text, 1..255 bytes in UTF-8 on one line; a line feed follows. Default: the
	 * status in words.
	 * @example "Version 1 has ended."
	 */
	NAMED(rule, "body", body, MUST, BODY),

	/*
	 * So many requests each client may send in the long run, over all nodes together: _20/s_, _100/m_ or
	 * _1000/h_, 1..100000 of them. Default: any number.
	 *
	 * A client is an address, of IPv6 a /64. One that has none left gets 429 with Retry-After. Not
	 * together with *deny* = yes. How exact it is, and what is not counted, is in docs/rules.md.
	 * @example "10/m"
	 */
	NAMED(rule, "rate", rate, MUST, RATE),

	/*
	 * With *rate*: so many at once, when the client has been quiet before. Default: as many as *rate* has
	 * in its second, minute or hour.
	 * @example 5
	 */
	NUMBER(rule, burst, MUST, OPTIONAL, 1, 1000000, "requests", NULL),
	{.name = NULL},
};

/*
 * *location* _"/path/"_ { } is about content. The longest location that contains a path wins, key by key. A
 * path that ends in / is that directory and all below it; any other path is that file.
 *
 * It is spelt as in a rule's *path*.
 */
const struct es_conf_key es_conf_location_keys[] = {
	/*
	 * Only content of this service. Default: of all services.
	 * @example web
	 */
	NAMED(rule, "service", service_name, MUST, TEXT),

	LIST(rule, "nodes", node_names, MUST, NODE),
	LIST(rule, "backup", backup_names, MUST, NODE),
	CHOICE(rule, otherwise, MUST, OPTIONAL, otherwises),
	CHOICE(rule, type, MUST, OPTIONAL, types),
	CHOICE(rule, class, MUST, OPTIONAL, classes),
	NUMBER(rule, cost, MUST, OPTIONAL, 1, 1000000, "response packets", NULL),
	CHOICE(rule, priority, MUST, OPTIONAL, priorities),

	/*
	 * The size of a response; overrides what is scanned and measured.
	 * @example 5000
	 */
	NUMBER(rule, size_bytes, MUST, OPTIONAL, 1, 4294967295, "bytes", NULL),
	{.name = NULL},
};

_Static_assert(sizeof(es_conf_rule_keys) / sizeof(es_conf_rule_keys[0]) <= ES_CONF_KEYS_MAX + 1,
	       "ES_CONF_KEYS_MAX is that of the largest section");
