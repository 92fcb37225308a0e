/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_PLUGIN_HOST_H
#define ES_PLUGIN_HOST_H

/*
 * Plugins in the daemon: loads them, asks each service's chain about a request before the policy, checks and
 * counts their answers. <earshot/plugin.h> says what a plugin may rely on.
 *
 * A struct es_plugins belongs to one configuration and is made and freed by the control thread. Each worker
 * has a struct es_plugins_thread of it; es_plugins_free() needs all of them gone.
 */
#include "inspector/config/config.h"
#include "inspector/policy/policy.h"
#include "kmod/core/flow.h"

#define ES_PLUGIN_DIR_ENV "EARSHOT_PLUGIN_DIR"

struct es_plugins;
struct es_plugins_thread;

/* Why an answer was not used; <earshot/plugin.h> says what is right. */
#define ES_PLUGIN_FAILURES(X)                                                                                \
	X(error, "route() returned an error")                                                                \
	X(unknown_answer, "an answer that this version does not know")                                       \
	X(no_such_node, "a node that is none")                                                               \
	X(no_target, "a node, or a set of nodes, that is no target")                                         \
	X(not_allowed, "a node, or a set of nodes, that an earlier rule has excluded")                       \
	X(bad_more, "more bytes asked for than are missing, or after no more came")                          \
	X(bad_status, "a rejection without a status of 400..599")                                            \
	X(too_slow, "a call that took longer than its budget")                                               \
	X(no_thread, "no thread state: thread_new() had failed")                                             \
	X(crashed, "a call that crashed: SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT")                        \
	X(hung, "a call that did not return, and was left")                                                  \
	X(off, "no call: the plugin is off, as it has crashed or hung three times")

enum es_plugin_failure {
#define X(name, description) ES_PLUGIN_FAILURE_##name,
	ES_PLUGIN_FAILURES(X)
#undef X
		ES_PLUGIN_FAILURE_COUNT
};

extern const char *const es_plugin_failure_name[ES_PLUGIN_FAILURE_COUNT];

/* es_plugins_dir() - the directory of files with relative names: that of the installation, unless the
 * environment names another */
const char *es_plugins_dir(void);

/* How es_plugins_new() treats a file that is not there. */
enum es_plugins_missing {
	ES_PLUGINS_MISSING_FAILS,
	/* es_plugins_describe() says so; for checks on machines that are no nodes */
	ES_PLUGINS_MISSING_SKIPPED,
};

/**
 * es_plugins_new() - load the plugins of @conf, and have them read their configurations
 * @conf must outlive them. Returns 0; or -errno and @err, which names file and line, with nothing left
 * loaded. *@ret_plugins is NULL if the configuration has none.
 */
int es_plugins_new(const struct es_conf *conf, enum es_plugins_missing missing,
		   struct es_plugins **ret_plugins, struct es_conf_error *err);
void es_plugins_free(struct es_plugins **plugins);

/* es_plugins_has() - does the service have a chain? Not if @plugins is NULL. */
int es_plugins_has(const struct es_plugins *plugins, unsigned int service);

/**
 * es_plugins_thread_new() - a worker begins to use them; in that worker
 * If @plugins is NULL, so is *@ret_thread. A plugin whose thread_new() fails does not affect the others.
 * Returns 0, -ENOMEM or -EIO.
 */
int es_plugins_thread_new(struct es_plugins *plugins, struct es_plugins_thread **ret_thread);
void es_plugins_thread_free(struct es_plugins_thread **thread);

/* The answers of es_plugins_route(). */
enum es_plugins_verdict {
	ES_PLUGINS_PASS, /* the policy decides, within request->allowed */
	ES_PLUGINS_NODE,
	ES_PLUGINS_MORE,
	ES_PLUGINS_REJECT,
};

/* struct es_plugins_answer - what belongs to it */
struct es_plugins_answer {
	unsigned int node;
	size_t more_bytes;
	unsigned int status;
	unsigned int retry_after_s;
};

/**
 * es_plugins_route() - ask the chain of @service
 * @thread: of the calling worker; NULL passes
 * @request: gets the nodes that are left (allowed, has_allowed)
 */
enum es_plugins_verdict es_plugins_route(struct es_plugins_thread *thread, unsigned int service,
					 struct es_request_view *request, const struct es_cluster_view *view,
					 struct es_plugins_answer *ret_answer);

/* es_plugins_tick() - run the timers that are due; control thread. @view: without loads. */
void es_plugins_tick(struct es_plugins *plugins, const struct es_cluster_view *view);

/* es_plugins_timer_ms() - how often es_plugins_tick() must be called; 0: never */
unsigned int es_plugins_timer_ms(const struct es_plugins *plugins);

enum es_plugin_count { ES_PLUGIN_KINDS = 5, ES_PLUGIN_METRICS_MAX = 64, ES_PLUGIN_ERROR_SIZE = 256 };

/**
 * struct es_plugin_report - one plugin of one service
 * @service: its index; @is_loaded: 0 if its file is not there, and all that follows is empty then
 * @file: as it was found; @digest: of its configuration text
 * @answers: by enum es_plugin_answer_kind; @mean_us, @max_us: of a call
 * @last_error: the plugin's reason for its last failure; ""
 * @crashes: calls that crashed or hung; @is_off: there were too many, so it is not called any more
 */
struct es_plugin_report {
	unsigned int service;
	const char *name;
	const char *file;
	int is_loaded;
	const char *what;
	const char *version;
	const char *description;
	int is_closed;
	unsigned int budget_us;
	__u64 digest;
	unsigned long long calls;
	unsigned long long answers[ES_PLUGIN_KINDS];
	unsigned long long failures[ES_PLUGIN_FAILURE_COUNT];
	double mean_us;
	double max_us;
	char last_error[ES_PLUGIN_ERROR_SIZE];
	unsigned int crashes;
	int is_off;
	unsigned int metric_count;
	struct {
		const char *name;
		const char *description;
		int is_gauge;
		long long value;
	} metric[ES_PLUGIN_METRICS_MAX];
};

unsigned int es_plugins_count(const struct es_plugins *plugins);
/* es_plugins_describe() - the @index-th in the file's order; strings live as long as @plugins. Control
 * thread. */
void es_plugins_describe(struct es_plugins *plugins, unsigned int index, struct es_plugin_report *ret_report);

#endif
