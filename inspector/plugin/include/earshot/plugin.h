/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef EARSHOT_PLUGIN_H
#define EARSHOT_PLUGIN_H

/*
 * A plugin is a routing rule of your own: a shared object that exports one descriptor, `earshot_plugin`. The
 * daemon asks it about each request of the services whose configuration names it, before the service's policy.
 * A plugin needs this header only and links nothing. C99 and C++11 or later.
 *
 *	service web { … plugin NAME { file = "…so" fail = open config = "…" } … }
 *
 * Life. configure() makes a state from the plugin's part of the configuration. Each inspector thread then
 * makes its own thread state with thread_new() and calls route() with it. A reload calls configure() again
 * and makes a new state beside the old one, even if nothing has changed. Threads change over one by one,
 * without losing a request, and the old state is released when no thread uses it any more. If the file was
 * replaced meanwhile (by rename, as install(1) does), the new one is loaded beside the old one.
 *
 * Threads. configure(), release() and timer() run on the control thread, one at a time. thread_new(),
 * thread_free() and route() run on the inspector thread that the thread state belongs to. No two of them run
 * at a time with the same thread state, but they run at the same time as all others. So route() may only read
 * the state, or use atomics, or lock it for an instant. route() must not wait: no file, no socket, no name
 * server. All packets of the thread's connections wait with it. An answer that took more CPU time than
 * `budget_us` is not used.
 *
 * Harm. The host checks a plugin's answers. A wrong answer is counted by reason, and the request goes on as if
 * the plugin had passed (`fail = open`), or is refused with 503 (`fail = closed`). The same happens when a call
 * crashes, or has not returned after 400 ms: the call is abandoned with everything that it holds, and
 * thread_new() makes another thread state. After three such calls the plugin is off until the next reload.
 * configure(), release(), thread_new() and thread_free() have 2 s. If configure() crashes or is abandoned, the
 * configuration is refused. Constructors are not watched. But a plugin is code of the daemon: damage that it
 * does may end the daemon later.
 *
 * Versions. Within a major version structures and the host's table only grow at their ends, by minor
 * versions. Each says how large it is; members beyond the end of an older one count as NULL or 0.
 *
 *	1.0	everything that is not named below
 *	1.1	es_plugin.timer, es_plugin.timer_ms, es_plugin.metrics, es_plugin_host.count,
 *		es_plugin_host.gauge
 *	1.2	es_plugin_host.config_node_name, es_plugin_host.fail
 *	1.3	es_plugin_host.normal_path
 *	1.4	es_plugin_answer.content, content_cost and content_name
 *
 * Strings that come from the host are not terminated unless their comment says so. They and all pointers that
 * a host function returns are valid until the plugin's function that asked for them returns.
 */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ES_PLUGIN_MAGIC	    0x4553504cu /* "ESPL" */
#define ES_PLUGIN_ABI_MAJOR 1
#define ES_PLUGIN_ABI_MINOR 4
#define ES_PLUGIN_SYMBOL    "earshot_plugin"

/* No node. */
#define ES_PLUGIN_NONE (-1)
/* Node ids are below this; an id is the node's place in the configuration's list of nodes. */
#define ES_PLUGIN_NODES_MAX 128

struct es_plugin_config;  /* the configuration that configure() reads */
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
	ES_PLUGIN_TLS = 1,  /* a TLS connection; plugins only ever see its first flight, the ClientHello */
	ES_PLUGIN_HTTP2 = 2,
	ES_PLUGIN_OTHER = 3, /* another protocol, or a request line that did not come in full */
};

/* enum es_plugin_hello - how much of the ClientHello is there */
enum es_plugin_hello {
	ES_PLUGIN_HELLO_NONE = 0,     /* no TLS, or the bytes are no ClientHello */
	ES_PLUGIN_HELLO_PARTIAL = 1,  /* sni() and alpn() may already find something, but need not */
	ES_PLUGIN_HELLO_COMPLETE = 2, /* sni() and alpn() find everything */
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
 * @target: a hash of path and query, the same on all nodes and always, or what an earlier rule has named; 0 if there
 * is neither
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
 * @is_target: may be given requests now. An answer that names a node without this is wrong.
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
	/* This rule does not decide: the next one is asked, and after the last one the policy. */
	ES_PLUGIN_PASS = 0,
	/* @node serves it; no other rule is asked. It must be a target, and in the sets of the earlier rules. */
	ES_PLUGIN_NODE = 1,
	/* One of @nodes serves it: the rules that follow and the policy choose among them. At least one must
	 * be a target. */
	ES_PLUGIN_NODES = 2,
	/* Ask the whole chain again when @more_bytes bytes are there, counted from the request's first byte.
	 * The inspector gathers bytes up to its limits (gather_bytes, 64,512 bytes, gather_timeout_ms, the
	 * initial window of a client without SACK), and to the end of the request or, where the client waits
	 * for 100 Continue, of its head. Then it calls route() with es_plugin_host.is_truncated() true, and
	 * route() must not ask for more. */
	ES_PLUGIN_MORE = 3,
	/* Nobody serves it: the client gets @status (400..599) and Retry-After: @retry_after_s (0: without).
	 * A TLS client gets the alert access_denied; for any other protocol but HTTP/1.x the connection is
	 * closed. */
	ES_PLUGIN_REJECT = 4,
};

/* Bytes of a content's name, with its terminating NUL. */
#define ES_PLUGIN_CONTENT_NAME_SIZE 100

/**
 * struct es_plugin_answer - what belongs to an answer; all 0 when route() is called
 * @node: ES_PLUGIN_NODE's; @more_bytes: ES_PLUGIN_MORE's; @status, @retry_after_s: ES_PLUGIN_REJECT's; @nodes:
 * ES_PLUGIN_NODES'
 * @content: with ES_PLUGIN_PASS and ES_PLUGIN_NODES: what the request is for, where that is not what its URI says.
 * Requests for the same content have the same number on all nodes (es_plugin_host.hash() makes one), and policies that
 * keep content together place them by it; the rules that follow find it in es_plugin_host.content(). 0: what
 * @content_name says, and where that is empty, too, the URI's content.
 * @content_cost: what serving it takes, in response packets; 0: as it is known
 * @content_name: for people, who see it in place of the URI's content; terminated. Without it, they see the number.
 */
struct es_plugin_answer {
	uint32_t node;
	uint32_t more_bytes;
	uint32_t status;
	uint32_t retry_after_s;
	struct es_plugin_set nodes;
	/* 1.4 */
	uint64_t content;
	uint32_t content_cost;
	char content_name[ES_PLUGIN_CONTENT_NAME_SIZE];
};

/**
 * struct es_plugin_metric - a metric of the plugin's own, for `earshot counters` and `earshot status --json`
 * @name: [a-z0-9_]+; the list ends with a name that is NULL
 * @description: one line
 * @is_gauge: 0: it only grows, and the threads' values are added up; 1: it has the value that was set last
 */
struct es_plugin_metric {
	const char *name;
	const char *description;
	int is_gauge;
};

/**
 * struct es_plugin - the descriptor, exported as `earshot_plugin`
 * @magic: ES_PLUGIN_MAGIC
 * @abi_major, @abi_minor: the ABI it was built with. A host refuses another major, and takes every minor.
 * @size, @answer_size, @node_size: sizes of this structure, of struct es_plugin_answer and of struct
 * es_plugin_node when the plugin was built: the host neither reads nor writes beyond. Use ES_PLUGIN_HEADER for
 * all of these members.
 * @name: the rule's name, for people; @version: of the plugin: nodes of a cluster must have the same;
 * @description: one line
 * @configure: reads the configuration. Returns 0 and @ret_state, which may be NULL; or -errno. Report errors
 * in the text with es_plugin_host.config_fail(), with their line; for a -errno without such a report, the host
 * makes a text of its own. The daemon then does not start, or keeps its configuration. @host is valid until
 * the object is unloaded. May be NULL: then any configuration is an error.
 * @release: frees what configure() made; all thread states are freed before. May be NULL.
 * @thread_new: makes a thread's state. Returns 0, or -errno: then the plugin fails for all requests of
 * that thread. May be NULL: then the thread state is the state.
 * @thread_free: may be NULL.
 * @route: required. Returns an enum es_plugin_answer_kind and fills in the members for that kind, or returns
 * -errno, which is counted as a failure. It may be called several times for one request (ES_PLUGIN_MORE,
 * `earshot explain`), so it must not count on being called once.
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
 * No function waits or allocates, and none fails except by reporting that something does not exist. Do not
 * call a function that is not in the table of an older host: compare @abi_minor.
 */
struct es_plugin_host {
	uint32_t size;
	uint16_t abi_major;
	uint16_t abi_minor;

	/* --- Configuration: in configure() only. */

	/* The plugin's part of the configuration; terminated. "" if there is none. */
	struct es_plugin_text (*config_text)(const struct es_plugin_config *config);
	/* The file that contains the text, for messages; terminated. */
	const char *(*config_file)(const struct es_plugin_config *config);
	/* The number of the text's first line in that file, from 1 on. A `config = "…"` is one line. */
	unsigned int (*config_line)(const struct es_plugin_config *config);
	/* Report what is wrong on line @line of that file (0: no line), and what would be right. People see
	 * "file:line: plugin NAME: …". The first error counts. Returns -EINVAL, for configure() to return. */
	int (*config_fail)(struct es_plugin_config *config, unsigned int line, const char *format, ...)
		ES_PLUGIN_PRINTF(3, 4);
	/* The id of the configured node of that name, or ES_PLUGIN_NONE. */
	int (*config_node)(const struct es_plugin_config *config, const char *name, size_t len);

	/* --- The request: in route() only. */

	/* An enum es_plugin_protocol. Unless it is ES_PLUGIN_HTTP, the functions from here to cookie() find
	 * nothing. */
	int (*protocol)(const struct es_plugin_request *request);
	/* "GET", as sent: methods are case-sensitive. */
	struct es_plugin_text (*method)(const struct es_plugin_request *request);
	/* The request target as sent: "/path?query", "http://host/path", "*", "host:port". */
	struct es_plugin_text (*target)(const struct es_plugin_request *request);
	/* Its path, not decoded; "*" and "host:port" have none. One file may have many paths: use
	 * normal_path() for comparisons that must not miss any. */
	struct es_plugin_text (*path)(const struct es_plugin_request *request);
	/* The part after the first '?'; empty, but not NULL, in "/path?". */
	struct es_plugin_text (*query)(const struct es_plugin_request *request);
	/* The target's authority, else the Host header; with its port. */
	struct es_plugin_text (*host)(const struct es_plugin_request *request);
	/* The value of header @name (terminated, in any case), the @n-th of that name, counted from 0. Only
	 * the first 256 headers are known. */
	struct es_plugin_text (*header)(const struct es_plugin_request *request, const char *name,
					unsigned int n);
	/* The value of the first cookie @name (terminated, case-sensitive), quotes included. */
	struct es_plugin_text (*cookie)(const struct es_plugin_request *request, const char *name);

	/* An enum es_plugin_hello. @ret_more_bytes, if not NULL, gets the number of bytes to ask for with
	 * ES_PLUGIN_MORE if the result is PARTIAL, else 0. */
	int (*hello)(const struct es_plugin_request *request, uint32_t *ret_more_bytes);
	/* The ClientHello's server name (RFC 6066 section 3), as sent: compare it without regard to case. */
	struct es_plugin_text (*sni)(const struct es_plugin_request *request);
	/* The @n-th protocol of its ALPN list (RFC 7301), from 0 on: "h2", "http/1.1". */
	struct es_plugin_text (*alpn)(const struct es_plugin_request *request, unsigned int n);

	/* The bytes that are there, from the request's first one. At least 1, except for `earshot explain`. */
	struct es_plugin_text (*bytes)(const struct es_plugin_request *request);
	/* True if the request's head (the ClientHello) is incomplete and will stay so, or if more bytes were
	 * asked for and did not come. Do not answer ES_PLUGIN_MORE then. */
	int (*is_truncated)(const struct es_plugin_request *request);
	/* The client's address and port. All 0 if it is not known. */
	void (*client)(const struct es_plugin_request *request, struct es_plugin_address *ret_address);
	/* The service's name; terminated. */
	const char *(*service)(const struct es_plugin_request *request);
	/* The node that has the connection, for a later request on it; ES_PLUGIN_NONE for the first one.
	 * An answer other than this node moves the connection. */
	int (*current)(const struct es_plugin_request *request);
	/* What is known of the content. */
	void (*content)(const struct es_plugin_request *request, struct es_plugin_content *ret_content);
	/* The nodes that the earlier rules allow; all nodes, if these rules set no limit. */
	void (*allowed)(const struct es_plugin_request *request, struct es_plugin_set *ret_nodes);

	/* --- The cluster: in route() and timer(). */

	/* Node ids run from 0 to this number - 1. */
	unsigned int (*node_count)(const struct es_plugin_cluster *cluster);
	/* The node that asks. */
	unsigned int (*self)(const struct es_plugin_cluster *cluster);
	/* Returns 0, or -ENOENT if there is no node @id; @ret_node then stays as it was. */
	int (*node)(const struct es_plugin_cluster *cluster, unsigned int id,
		    struct es_plugin_node *ret_node);
	/* The @n-th different node on the content ring, counted from 0 at @key's place; the same on all nodes.
	 * ES_PLUGIN_NONE after the last one. It need not be a target. */
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
	/* True if `earshot explain` asks. Then change nothing that a later request could notice. */
	int (*is_explain)(const struct es_plugin_cluster *cluster);

	/* 1.1: Add to a metric, by its index in es_plugin.metrics. Unknown indices, and counts for `earshot
	 * explain`, are ignored. */
	void (*count)(const struct es_plugin_cluster *cluster, unsigned int metric, uint64_t add);
	/* 1.1: Set a metric that is a gauge; otherwise like count(). */
	void (*gauge)(const struct es_plugin_cluster *cluster, unsigned int metric, int64_t value);

	/* 1.2: In configure() only: the name of node @id, terminated, valid until release() has returned;
	 * NULL if there is no node @id. */
	const char *(*config_node_name)(const struct es_plugin_config *config, unsigned int id);
	/* 1.2: In route() only: report why there is no answer. `earshot explain` shows this reason, `earshot
	 * status` the last one. Returns -EIO, for route() to return. */
	int (*fail)(const struct es_plugin_cluster *cluster, const char *format, ...) ES_PLUGIN_PRINTF(2, 3);

	/* 1.3: In route() only: the path as rules see it: percent-decoded, without dot-segments and double
	 * slashes, so that "/a", "//a", "/b/../a" and "/%61" are one. NULL where servers do not agree: no
	 * path, a path that does not begin with a slash, "%2F", NUL, a '%' without two digits, or more than
	 * 2,048 bytes. */
	struct es_plugin_text (*normal_path)(const struct es_plugin_request *request);
};

#ifdef __cplusplus
}
#endif

#endif
