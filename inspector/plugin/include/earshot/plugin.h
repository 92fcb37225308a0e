/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef EARSHOT_PLUGIN_H
#define EARSHOT_PLUGIN_H

/*
 * Routing rules of your own: a shared object that exports one descriptor, `earshot_plugin`, and is asked for
 * each request of the services whose configuration names it, before the service's policy. This header is all
 * that a plugin needs; nothing is linked. C99 and C++11 or later.
 *
 *	service web { … plugin NAME { file = "…so" fail = open config = "…" } … }
 *
 * Life. configure() makes a state from the plugin's part of the configuration. Each inspector thread then
 * makes its own thread state with thread_new() and calls route() with it. A reload calls configure() again
 * and makes a new state beside the old one, also if nothing has changed; threads change over one by one,
 * without a request being lost, and the old state is released when no thread has it any more. If the file was
 * replaced meanwhile (by rename, as install(1) does), the new one is loaded beside the old one.
 *
 * Threads. configure(), release() and timer() run on the control thread, one at a time. thread_new(),
 * thread_free() and route() run on the inspector thread that the thread state belongs to, never two at a time
 * with the same thread state, but at the same time as all others: what is in the state is read-only for
 * route(), or atomic, or locked for an instant. route() must not wait: no file, no socket, no name server.
 * All packets of the thread's connections wait with it. An answer that took more CPU time than `budget_us` is
 * not used.
 *
 * Harm. What a plugin answers is checked. An answer that cannot be right is counted by reason, and the
 * request goes on as if the plugin had passed (`fail = open`), or is refused with 503 (`fail = closed`). The
 * same happens when a call crashes, or has not returned after 400 ms: it is left where it is, with all that it
 * holds, and thread_new() makes another thread state. After three of these the plugin is off until the next
 * reload. configure(), release(), thread_new() and thread_free() have 2 s; a configure() that crashes or is left
 * is a configuration that is refused. Constructors are not watched. But a plugin is code of the daemon: what it
 * has broken may end the daemon later.
 *
 * Versions. Within a major version structures and the host's table only grow at their ends, by minor
 * versions; each says how large it is, and what is behind the end of an older one is taken as NULL or 0.
 *
 *	1.0	all but what is named here
 *	1.1	es_plugin.timer, es_plugin.timer_ms, es_plugin.metrics, es_plugin_host.count,
 *		es_plugin_host.gauge
 *	1.2	es_plugin_host.config_node_name, es_plugin_host.fail
 *	1.3	es_plugin_host.normal_path
 *
 * Strings that come from the host are not terminated unless they are said to be. They and all pointers that a
 * host function returns are valid until the call of the plugin that asked for them returns.
 */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ES_PLUGIN_MAGIC	    0x4553504cu /* "ESPL" */
#define ES_PLUGIN_ABI_MAJOR 1
#define ES_PLUGIN_ABI_MINOR 3
#define ES_PLUGIN_SYMBOL    "earshot_plugin"

/* No node. */
#define ES_PLUGIN_NONE (-1)
/* Node ids are below this; they are places in the configuration's list of nodes. */
#define ES_PLUGIN_NODES_MAX 128

struct es_plugin_config;  /* what configure() is given */
struct es_plugin_request; /* a request, while route() runs */
struct es_plugin_cluster; /* the cluster as the calling thread sees it */
struct es_plugin_host;

/* struct es_plugin_text - @len bytes at @data, not terminated; @data is NULL if there is no such thing */
struct es_plugin_text {
	const char *data;
	size_t len;
};

/* struct es_plugin_set - a set of nodes; bit i % 64 of word i / 64 is node i */
struct es_plugin_set {
	uint64_t bits[ES_PLUGIN_NODES_MAX / 64];
};

static inline void es_plugin_set_add(struct es_plugin_set *set, unsigned int node)
{
	if (node < ES_PLUGIN_NODES_MAX)
		set->bits[node / 64] |= (uint64_t)1 << (node % 64);
}

static inline int es_plugin_set_has(const struct es_plugin_set *set, unsigned int node)
{
	return node < ES_PLUGIN_NODES_MAX && (int)(set->bits[node / 64] >> (node % 64) & 1);
}

/* struct es_plugin_address - IPv6, or IPv4 as ::ffff:a.b.c.d, in network byte order; @port in host byte order */
struct es_plugin_address {
	uint8_t bytes[16];
	uint16_t port;
};

/* enum es_plugin_protocol - what the connection's bytes look like */
enum es_plugin_protocol {
	ES_PLUGIN_HTTP = 0, /* an HTTP/1.x request whose request line is there in full */
	ES_PLUGIN_TLS = 1,  /* a TLS connection; only its first flight, the ClientHello, is ever seen */
	ES_PLUGIN_HTTP2 = 2,
	ES_PLUGIN_OTHER = 3, /* nothing that could be read, or a request line that did not come */
};

/* enum es_plugin_hello - how much of the ClientHello is there */
enum es_plugin_hello {
	ES_PLUGIN_HELLO_NONE = 0,     /* no TLS, or what is there is no ClientHello */
	ES_PLUGIN_HELLO_PARTIAL = 1,  /* sni() and alpn() may have something already, but need not */
	ES_PLUGIN_HELLO_COMPLETE = 2, /* what sni() and alpn() say is all */
};

/* enum es_plugin_class - what serving a request needs most */
enum es_plugin_class {
	ES_PLUGIN_CLASS_NORMAL = 0,
	ES_PLUGIN_CLASS_CPU = 1,
	ES_PLUGIN_CLASS_DISK = 2,
	ES_PLUGIN_CLASS_DISK_CPU = 3,
};

/**
 * struct es_plugin_content - what is known of the content that is asked for
 * @target: a hash of path and query, the same on all nodes and always; 0 if there is no URI
 * @size_bytes: of the response, 0 if it is not known
 * @cost: what serving it takes, in response packets, at least 1
 * @content_class: an enum es_plugin_class
 */
struct es_plugin_content {
	uint64_t target;
	uint64_t size_bytes;
	uint32_t cost;
	uint32_t content_class;
};

/**
 * struct es_plugin_node - one node, as the thread that asks sees it
 * @name: terminated; valid until the call of the plugin returns
 * @address: on the private network; its port is 0
 * @weight: percent of an ordinary node's; 0 if it is not in the ring
 * @is_target: may be given requests now. An answer that names another node is a wrong one.
 * @is_draining: wants no more requests
 * @active: requests that it serves at this moment, an estimate; 0 in timer()
 * @load: the sum of their costs; 0 in timer()
 * @cpu, @disk: shares of the last moment in which they were busy, 0..1; 0 in timer()
 */
struct es_plugin_node {
	const char *name;
	struct es_plugin_address address;
	uint8_t is_target;
	uint8_t is_draining;
	double weight;
	double active;
	double load;
	double cpu;
	double disk;
};

/* enum es_plugin_answer_kind - what route() returns */
enum es_plugin_answer_kind {
	/* This rule says nothing: the next one is asked, and after the last the policy. */
	ES_PLUGIN_PASS = 0,
	/* @node serves it; no other rule is asked. It must be a target, and in the sets of the rules before. */
	ES_PLUGIN_NODE = 1,
	/* One of @nodes serves it: the rules that follow and the policy choose among them. At least one must
	 * be a target. */
	ES_PLUGIN_NODES = 2,
	/* Ask again, the whole chain, when @more_bytes bytes are there, counted from the request's first on.
	 * The bytes are gathered as far as the inspector's limits go (gather_bytes, gather_timeout_ms, the
	 * initial window of a client without SACK); then route() is called with es_plugin_host.is_truncated()
	 * true, and must not ask for more. */
	ES_PLUGIN_MORE = 3,
	/* Nobody serves it: the client gets @status (400..599) and Retry-After: @retry_after_s (0: without).
	 * A TLS client gets the alert access_denied, others that are no HTTP/1.x a closed connection. */
	ES_PLUGIN_REJECT = 4,
};

/* struct es_plugin_answer - what belongs to an answer; all 0 when route() is called */
struct es_plugin_answer {
	uint32_t node;
	uint32_t more_bytes;
	uint32_t status;
	uint32_t retry_after_s;
	struct es_plugin_set nodes;
};

/**
 * struct es_plugin_metric - a number of the plugin's own, for `earshot counters` and `earshot status --json`
 * @name: [a-z0-9_]+; the list ends with a name that is NULL
 * @description: one line
 * @is_gauge: 0: only grows, threads' values are added up; 1: has the value that was set last
 */
struct es_plugin_metric {
	const char *name;
	const char *description;
	int is_gauge;
};

/**
 * struct es_plugin - the descriptor, exported as `earshot_plugin`
 * @magic: ES_PLUGIN_MAGIC
 * @abi_major, @abi_minor: those that it was built with. A host refuses another major, and takes every minor.
 * @size, @answer_size, @node_size: of this structure, of struct es_plugin_answer and of struct
 * es_plugin_node, as it was built: the host neither reads nor writes beyond. Use ES_PLUGIN_HEADER for all
 * these.
 * @name: what the rule is, for people; @version: of the plugin: nodes of a cluster must have the same;
 * @description: one line
 * @configure: reads its configuration. Returns 0 and @ret_state, which may be NULL; or -errno. Errors in the
 * text are told with es_plugin_host.config_fail(), with their line; a -errno without becomes a text of the
 * host's. The daemon then does not start, or keeps what it has. @host is valid until the object is unloaded.
 * May be NULL: then any configuration is an error.
 * @release: frees what configure() made; every thread state is gone before. May be NULL.
 * @thread_new: makes a thread's state; returns 0 or -errno, and then the plugin fails for all requests of
 * that thread. May be NULL: then the thread state is the state.
 * @thread_free: may be NULL.
 * @route: required. Returns an enum es_plugin_answer_kind and fills in what belongs to it, or -errno, which
 * is counted as a failure. It may be called for one request several times (ES_PLUGIN_MORE, `earshot
 * explain`), so it must not count on being called once.
 * @timer: called every @timer_ms milliseconds, at least 10 (0: never), on the control thread; may be NULL.
 * @cluster is only valid during the call.
 * @metrics: NULL for none; indices of this list go to es_plugin_host.count() and gauge(). At most 64.
 */
struct es_plugin {
	uint32_t magic;
	uint16_t abi_major;
	uint16_t abi_minor;
	uint32_t size;
	uint32_t answer_size;
	uint32_t node_size;
	const char *name;
	const char *version;
	const char *description;
	int (*configure)(const struct es_plugin_host *host, struct es_plugin_config *config,
			 void **ret_state);
	void (*release)(void *state);
	int (*thread_new)(void *state, void **ret_thread);
	void (*thread_free)(void *thread);
	int (*route)(void *thread, const struct es_plugin_request *request,
		     const struct es_plugin_cluster *cluster, struct es_plugin_answer *ret_answer);
	/* 1.1 */
	void (*timer)(void *state, const struct es_plugin_cluster *cluster);
	uint32_t timer_ms;
	const struct es_plugin_metric *metrics;
};

#define ES_PLUGIN_HEADER                                                                                     \
	ES_PLUGIN_MAGIC, ES_PLUGIN_ABI_MAJOR, ES_PLUGIN_ABI_MINOR, sizeof(struct es_plugin),                 \
		sizeof(struct es_plugin_answer), sizeof(struct es_plugin_node)

#if defined(__GNUC__)
#define ES_PLUGIN_EXPORT __attribute__((visibility("default")))
#else
#define ES_PLUGIN_EXPORT
#endif

extern ES_PLUGIN_EXPORT const struct es_plugin earshot_plugin;

#if defined(__GNUC__)
#define ES_PLUGIN_PRINTF(text, first) __attribute__((__format__(__printf__, text, first)))
#else
#define ES_PLUGIN_PRINTF(text, first)
#endif

/**
 * struct es_plugin_host - what the host does for a plugin
 * Nothing here fails but by saying that there is no such thing, waits, or allocates. A function that is not
 * in the table of an older host must not be called: compare @abi_minor.
 */
struct es_plugin_host {
	uint32_t size;
	uint16_t abi_major;
	uint16_t abi_minor;

	/* --- Configuration: in configure() only. */

	/* The plugin's part of the configuration; terminated. "" if there is none. */
	struct es_plugin_text (*config_text)(const struct es_plugin_config *config);
	/* The file that the text stands in, for messages; terminated. */
	const char *(*config_file)(const struct es_plugin_config *config);
	/* The number of the text's first line in that file, from 1 on. A `config = "…"` is one line. */
	unsigned int (*config_line)(const struct es_plugin_config *config);
	/* Tell what is wrong on line @line of that file (0: no line), and what would be right: "file:line:
	 * plugin NAME: …" is what people see. The first error counts. Returns -EINVAL, for configure() to
	 * return. */
	int (*config_fail)(struct es_plugin_config *config, unsigned int line, const char *format, ...)
		ES_PLUGIN_PRINTF(3, 4);
	/* The id of the configured node of that name, or ES_PLUGIN_NONE. */
	int (*config_node)(const struct es_plugin_config *config, const char *name, size_t len);

	/* --- The request: in route() only. */

	/* An enum es_plugin_protocol. All functions down to cookie() find nothing if it is not
	 * ES_PLUGIN_HTTP. */
	int (*protocol)(const struct es_plugin_request *request);
	/* "GET", as sent: methods are case-sensitive. */
	struct es_plugin_text (*method)(const struct es_plugin_request *request);
	/* The request target as sent: "/path?query", "http://host/path", "*", "host:port". */
	struct es_plugin_text (*target)(const struct es_plugin_request *request);
	/* Its path, not decoded; "*" and "host:port" have none. One file has many of them: compare
	 * normal_path() with what must not be missed. */
	struct es_plugin_text (*path)(const struct es_plugin_request *request);
	/* What is behind the first '?'; empty, but not NULL, in "/path?". */
	struct es_plugin_text (*query)(const struct es_plugin_request *request);
	/* The target's authority, else the Host header; with its port. */
	struct es_plugin_text (*host)(const struct es_plugin_request *request);
	/* The value of header @name (terminated, in any case), the @n-th of that name from 0 on. The first 256
	 * headers are known. */
	struct es_plugin_text (*header)(const struct es_plugin_request *request, const char *name,
					unsigned int n);
	/* The value of the first cookie @name (terminated, case-sensitive), quotes included. */
	struct es_plugin_text (*cookie)(const struct es_plugin_request *request, const char *name);

	/* An enum es_plugin_hello. @ret_more_bytes, if not NULL, gets what to ask for with ES_PLUGIN_MORE
	 * when it is PARTIAL, else 0. */
	int (*hello)(const struct es_plugin_request *request, uint32_t *ret_more_bytes);
	/* The ClientHello's server name (RFC 6066 section 3), as sent: compare it without regard to case. */
	struct es_plugin_text (*sni)(const struct es_plugin_request *request);
	/* The @n-th protocol of its ALPN list (RFC 7301), from 0 on: "h2", "http/1.1". */
	struct es_plugin_text (*alpn)(const struct es_plugin_request *request, unsigned int n);

	/* The bytes that are there, from the request's first one on. At least 1 but for `earshot explain`. */
	struct es_plugin_text (*bytes)(const struct es_plugin_request *request);
	/* Is the request's head (the ClientHello) not there in full, and will not be, or was more asked for
	 * and did not come? Do not answer ES_PLUGIN_MORE then. */
	int (*is_truncated)(const struct es_plugin_request *request);
	/* The client's address and port. All 0 if it is not known. */
	void (*client)(const struct es_plugin_request *request, struct es_plugin_address *ret_address);
	/* The service's name; terminated. */
	const char *(*service)(const struct es_plugin_request *request);
	/* The node that has the connection, for a later request on it; ES_PLUGIN_NONE for the first one.
	 * Another answer than this node moves the connection. */
	int (*current)(const struct es_plugin_request *request);
	/* What is known of the content. */
	void (*content)(const struct es_plugin_request *request, struct es_plugin_content *ret_content);
	/* The nodes that the rules before have left; all, if they left it open. */
	void (*allowed)(const struct es_plugin_request *request, struct es_plugin_set *ret_nodes);

	/* --- The cluster: in route() and timer(). */

	/* Node ids are 0 .. this - 1. */
	unsigned int (*node_count)(const struct es_plugin_cluster *cluster);
	/* The node that asks. */
	unsigned int (*self)(const struct es_plugin_cluster *cluster);
	/* Returns 0, or -ENOENT for an id that is none and @ret_node as it was. */
	int (*node)(const struct es_plugin_cluster *cluster, unsigned int id,
		    struct es_plugin_node *ret_node);
	/* The @n-th different node from @key's place on the content ring on, n from 0; the same on all nodes.
	 * ES_PLUGIN_NONE behind the last one. It need not be a target. */
	int (*ring)(const struct es_plugin_cluster *cluster, const void *key, size_t len, unsigned int n);
	/* The first of these that is a target now; ES_PLUGIN_NONE if none is. */
	int (*ring_target)(const struct es_plugin_cluster *cluster, const void *key, size_t len);
	/* A hash of @key, evenly spread, the same on all nodes and always. */
	uint64_t (*hash)(const struct es_plugin_cluster *cluster, const void *key, size_t len);
	/* A clock that only goes forward, in nanoseconds; the same during one call. */
	uint64_t (*now_ns)(const struct es_plugin_cluster *cluster);
	/* Add a step to the reasons that `earshot explain` shows; "#3" becomes the name of node 3. Costs a
	 * comparison if nobody asks. */
	void (*explain)(const struct es_plugin_cluster *cluster, const char *format, ...)
		ES_PLUGIN_PRINTF(2, 3);
	/* Does `earshot explain` ask? Nothing may change then that a later request could notice. */
	int (*is_explain)(const struct es_plugin_cluster *cluster);

	/* 1.1: Add to a metric, by its index in es_plugin.metrics. Unknown indices, and counts for `earshot
	 * explain`, are ignored. */
	void (*count)(const struct es_plugin_cluster *cluster, unsigned int metric, uint64_t add);
	/* 1.1: Set a metric that is a gauge; else the same. */
	void (*gauge)(const struct es_plugin_cluster *cluster, unsigned int metric, int64_t value);

	/* 1.2: In configure() only: the name of node @id, terminated, valid until release() has returned;
	 * NULL for an id that is none. */
	const char *(*config_node_name)(const struct es_plugin_config *config, unsigned int id);
	/* 1.2: In route() only: tell why there is no answer. `earshot explain` shows it, `earshot status`
	 * the last one. Returns -EIO, for route() to return. */
	int (*fail)(const struct es_plugin_cluster *cluster, const char *format, ...) ES_PLUGIN_PRINTF(2, 3);

	/* 1.3: In route() only: the path as rules see it: percent-decoded, without dot-segments and double
	 * slashes, so that "/a", "//a", "/b/../a" and "/%61" are one. NULL where servers do not agree: no
	 * path, a path without its first slash, "%2F", NUL, a '%' without two digits, or more than 2,048
	 * bytes. */
	struct es_plugin_text (*normal_path)(const struct es_plugin_request *request);
};

#ifdef __cplusplus
}
#endif

#endif
