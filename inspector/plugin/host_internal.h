/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_PLUGIN_HOST_INTERNAL_H
#define ES_PLUGIN_HOST_INTERNAL_H

/*
 * Shared by the parts of the host: host.c (lives and the chain), open.c (files and descriptors), view.c (the
 * functions that plugins call), report.c (the counts).
 */
#include <earshot/plugin.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include "inspector/base/url_path.h"
#include "inspector/plugin/host.h"
#include "inspector/http/tls_hello.h"

/* A plugin of a newer minor version may write answers that are longer than ours; there is this much room. */
#define ES_PLUGIN_ANSWER_ROOM 512
/* The structures as version 1.0 had them. A plugin's are as large at least, whatever ours have got since. */
#define ES_PLUGIN_SIZE_1_0 offsetof(struct es_plugin, timer)
#define ES_PLUGIN_ANSWER_SIZE_1_0                                                                            \
	(offsetof(struct es_plugin_answer, nodes) + sizeof(((struct es_plugin_answer *)0)->nodes))
#define ES_PLUGIN_NODE_SIZE_1_0                                                                              \
	(offsetof(struct es_plugin_node, disk) + sizeof(((struct es_plugin_node *)0)->disk))

struct es_plugin_instance;

/**
 * struct es_plugin_thread - one plugin in one thread, which is the only one that writes here
 * @failed: thread_new() did
 */
struct es_plugin_thread {
	struct es_plugin_instance *instance;
	struct es_plugin_thread *next;
	void *state;
	int failed;
	_Atomic unsigned long long calls;
	_Atomic unsigned long long time_ns;
	_Atomic unsigned long long max_ns;
	_Atomic unsigned long long answers[ES_PLUGIN_KINDS];
	_Atomic unsigned long long failures[ES_PLUGIN_FAILURE_COUNT];
	_Atomic unsigned long long metric[ES_PLUGIN_METRICS_MAX];
};

/* After this many calls that crashed or did not return, a plugin is off, for the configuration's life. */
#define ES_PLUGIN_CRASHES_MAX 3

/**
 * struct es_plugin_instance - a line of the configuration, loaded
 * @what: why it is not loaded; "" if it is
 * @plugin: the descriptor, with zeros behind its end
 * @fd: the file, open as long as it is loaded
 * @lock: of the list of threads, and of @last_error
 * @control: what the timer counts
 * @crashes: of all threads
 */
struct es_plugin_instance {
	const struct es_conf_plugin *conf;
	char file[ES_CONF_PATH_SIZE * 2];
	char what[256];
	struct es_plugin plugin;
	void *object;
	int fd;
	void *state;
	int is_configured;
	__u64 digest;
	unsigned int metric_count;
	pthread_mutex_t lock;
	struct es_plugin_thread *threads;
	struct es_plugin_thread control;
	_Atomic long long gauge[ES_PLUGIN_METRICS_MAX];
	unsigned long long timer_due_ns;
	_Atomic unsigned int crashes;
	char last_error[ES_PLUGIN_ERROR_SIZE];
};

struct es_plugins {
	const struct es_conf *conf;
	struct es_content_hasher *hasher; /* the control thread's */
	unsigned int count;
	struct es_plugin_instance instance[];
};

/* struct es_plugin_normal - a request's path, normalised when a plugin asks for it; @state: of enum
 * es_plugin_normal_state */
enum es_plugin_normal_state { ES_PLUGIN_NORMAL_UNASKED, ES_PLUGIN_NORMAL_NONE, ES_PLUGIN_NORMAL_THERE };

struct es_plugin_normal {
	enum es_plugin_normal_state state;
	struct es_url_path path;
};

/* @cpu_ns: the thread's CPU time when it was last read, at @cpu_at_ns of the clock */
struct es_plugins_thread {
	struct es_plugins *plugins;
	struct es_content_hasher *hasher;
	unsigned long long cpu_ns;
	unsigned long long cpu_at_ns;
	struct es_tls_hello hello; /* of the request at hand */
	struct es_plugin_normal normal;
	char content_name[ES_PLUGIN_CONTENT_NAME_SIZE]; /* likewise, what a plugin has named */
	struct es_plugin_thread thread[];
};

/* --- What plugins hold as opaque pointers. */

struct es_plugin_config {
	const struct es_conf *conf;
	const struct es_conf_plugin *plugin;
	const char *file;
	unsigned int line;
	const char *text;
	size_t len;
	int failed;
	struct es_conf_error *err;
};

struct es_plugin_request {
	const struct es_request_view *view;
	const char *service;
	struct es_tls_hello *hello; /* is filled in when the first plugin asks */
	int *has_hello;
	struct es_plugin_normal *normal;
};

struct es_plugin_cluster {
	const struct es_cluster_view *view;
	const struct es_conf *conf;
	struct es_content_hasher *hasher;
	struct es_plugin_thread *thread;
};

extern const struct es_plugin_host es_plugin_host;

/* A number that only this thread changes. */
static inline void es_plugin_bump(_Atomic unsigned long long *number, unsigned long long add)
{
	atomic_store_explicit(number, atomic_load_explicit(number, memory_order_relaxed) + add,
			      memory_order_relaxed);
}

static inline int es_plugin_is_off(const struct es_plugin_instance *instance)
{
	return atomic_load_explicit(&instance->crashes, memory_order_relaxed) >= ES_PLUGIN_CRASHES_MAX;
}

/* open.c: returns 0, or -errno and @err; es_plugin_close() is due in both cases */
int es_plugin_open(const struct es_conf *conf, const struct es_conf_plugin *plugin,
		   enum es_plugins_missing missing, struct es_plugin_instance *instance,
		   struct es_conf_error *err);
void es_plugin_close(struct es_plugin_instance *instance);

#endif
