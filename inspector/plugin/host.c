// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The lives of plugins and of their threads, and the chain: each rule in the order of the configuration is
 * asked, measured and checked. A wrong answer is counted, and the plugin's `fail` says what replaces it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/plugin/guard.h"
#include "inspector/plugin/host_internal.h"

#define FAIL_STATUS	   503
#define FAIL_RETRY_AFTER_S 1
#define TIMER_MS_MIN	   10

/* Calls that the keeper does not watch are abandoned after these times. */
#define TIMER_MS 400
#define SETUP_MS 2000 /* which reads a configuration, or prepares what it says */
#define ROUTE_MS 2000 /* in a tool; the keeper watches each of the daemon's */

/*
 * The last reading of the thread's CPU time may be this old when the CPU time of a call is computed from it.
 */
#define CPU_LOOK_NS 1000000ULL

const char *const es_plugin_failure_name[ES_PLUGIN_FAILURE_COUNT] = {
#define X(name, description) #name,
	ES_PLUGIN_FAILURES(X)
#undef X
};

/* --- lives */

int es_plugins_new(const struct es_conf *conf, enum es_plugins_missing missing,
		   struct es_plugins **ret_plugins, struct es_conf_error *err)
{
	struct es_plugins *plugins;
	int rc;

	if (!conf->plugin_count) {
		*ret_plugins = NULL;
		return 0;
	}
	es_conf_error_set(err, "plugins: out of memory");
	plugins = calloc(1, sizeof(*plugins) + conf->plugin_count * sizeof(plugins->instance[0]));
	if (!plugins)
		return -ENOMEM;
	plugins->conf = conf;
	rc = es_content_hasher_new(&plugins->hasher);
	for (unsigned int i = 0; i < conf->plugin_count && !rc; i++) {
		plugins->count++; /* es_plugin_close() is due also if it fails */
		rc = es_plugin_open(conf, &conf->plugins[i], missing, &plugins->instance[i], err);
	}
	if (rc) {
		es_plugins_free(&plugins);
		return rc;
	}
	if (err)
		err->text[0] = 0;
	*ret_plugins = plugins;
	return 0;
}

void es_plugins_free(struct es_plugins **plugins)
{
	struct es_plugins *p = *plugins;

	if (!p)
		return;
	for (unsigned int i = p->count; i-- > 0;)
		es_plugin_close(&p->instance[i]);
	es_content_hasher_free(&p->hasher);
	free(p);
	*plugins = NULL;
}

int es_plugins_has(const struct es_plugins *plugins, unsigned int service)
{
	for (unsigned int i = 0; plugins && i < plugins->count; i++)
		if (plugins->instance[i].conf->service == service)
			return 1;
	return 0;
}

/* A signal has ended a call into the plugin: count it, since only few are allowed. */
static void es_plugin_crashed(struct es_plugin_instance *instance, int signal)
{
	atomic_fetch_add_explicit(&instance->crashes, 1, memory_order_relaxed);
	pthread_mutex_lock(&instance->lock);
	snprintf(instance->last_error, sizeof(instance->last_error),
		 signal == ES_GUARD_SIGNAL ? "%s, and was left" : "it crashed: %s",
		 es_guard_signal_name(signal));
	pthread_mutex_unlock(&instance->lock);
}

struct es_thread_call {
	struct es_plugin_thread *thread;
	int rc;
};

static void es_thread_new_call(void *ctx)
{
	struct es_thread_call *call = ctx;
	struct es_plugin_instance *instance = call->thread->instance;

	call->rc = instance->plugin.thread_new(instance->state, &call->thread->state);
}

/* Also after a crash, which may have left the state half changed, so that nothing frees it. */
static void es_plugin_thread_make(struct es_plugin_thread *thread)
{
	struct es_plugin_instance *instance = thread->instance;
	struct es_thread_call call = {.thread = thread};
	int signal;

	thread->state = instance->state;
	thread->failed = 0;
	if (!instance->object || !instance->plugin.thread_new || es_plugin_is_off(instance))
		return;
	signal = es_guard_call(SETUP_MS, es_thread_new_call, &call);
	if (signal)
		es_plugin_crashed(instance, signal);
	thread->failed = signal || call.rc;
}

static void es_thread_free_call(void *ctx)
{
	struct es_plugin_thread *thread = ctx;

	thread->instance->plugin.thread_free(thread->state);
}

static void es_plugin_thread_begin(struct es_plugin_instance *instance, struct es_plugin_thread *thread)
{
	thread->instance = instance;
	es_plugin_thread_make(thread);
	pthread_mutex_lock(&instance->lock);
	thread->next = instance->threads;
	instance->threads = thread;
	pthread_mutex_unlock(&instance->lock);
}

static void es_plugin_thread_end(struct es_plugin_thread *thread)
{
	struct es_plugin_instance *instance = thread->instance;
	struct es_plugin_thread **link = &instance->threads;

	pthread_mutex_lock(&instance->lock);
	while (*link != thread)
		link = &(*link)->next;
	*link = thread->next;
	pthread_mutex_unlock(&instance->lock);
	if (!thread->failed && instance->object && instance->plugin.thread_new &&
	    instance->plugin.thread_free && !es_plugin_is_off(instance))
		(void)es_guard_call(SETUP_MS, es_thread_free_call, thread);
}

int es_plugins_thread_new(struct es_plugins *plugins, struct es_plugins_thread **ret_thread)
{
	struct es_plugins_thread *t;
	int rc;

	*ret_thread = NULL;
	if (!plugins)
		return 0;
	t = calloc(1, sizeof(*t) + plugins->count * sizeof(t->thread[0]));
	if (!t)
		return -ENOMEM;
	t->plugins = plugins;
	es_guard_thread();
	rc = es_content_hasher_new(&t->hasher);
	if (rc) {
		free(t);
		return rc;
	}
	for (unsigned int i = 0; i < plugins->count; i++)
		es_plugin_thread_begin(&plugins->instance[i], &t->thread[i]);
	*ret_thread = t;
	return 0;
}

void es_plugins_thread_free(struct es_plugins_thread **thread)
{
	struct es_plugins_thread *t = *thread;

	if (!t)
		return;
	for (unsigned int i = 0; i < t->plugins->count; i++)
		es_plugin_thread_end(&t->thread[i]);
	es_content_hasher_free(&t->hasher);
	free(t);
	*thread = NULL;
}

/* --- one answer */

#define ES_PLUGIN_FAILURE_NONE ES_PLUGIN_FAILURE_COUNT

static enum es_plugin_failure es_answer_check_node(const struct es_plugin_answer *answer,
						   const struct es_request_view *request,
						   const struct es_cluster_view *view)
{
	if (answer->node >= view->count)
		return ES_PLUGIN_FAILURE_no_such_node;
	if (request->has_allowed && !es_node_set_has(request->allowed, answer->node))
		return ES_PLUGIN_FAILURE_not_allowed;
	if (!es_view_is_target(request, view, answer->node))
		return ES_PLUGIN_FAILURE_no_target;
	return ES_PLUGIN_FAILURE_NONE;
}

/* Narrows what the request is allowed, if that leaves a target. */
static enum es_plugin_failure es_answer_check_nodes(const struct es_plugin_answer *answer,
						    struct es_request_view *request,
						    const struct es_cluster_view *view)
{
	struct es_request_view narrowed = *request;
	int is_inside = 0;

	memcpy(&narrowed.allowed, &answer->nodes, sizeof(narrowed.allowed));
	narrowed.has_allowed = 1;
	for (unsigned int i = view->count; i < ES_NODES_MAX; i++)
		if (es_node_set_has(narrowed.allowed, i))
			return ES_PLUGIN_FAILURE_no_such_node;
	for (unsigned int i = 0; i < ES_NODES_MAX / 64 && request->has_allowed; i++)
		narrowed.allowed.bits[i] &= request->allowed.bits[i];
	for (unsigned int i = 0; i < view->count; i++) {
		if (es_view_is_target(&narrowed, view, i)) {
			request->allowed = narrowed.allowed;
			request->has_allowed = 1;
			return ES_PLUGIN_FAILURE_NONE;
		}
		is_inside |= es_node_set_has(narrowed.allowed, i);
	}
	return is_inside || !request->has_allowed ? ES_PLUGIN_FAILURE_no_target
						  : ES_PLUGIN_FAILURE_not_allowed;
}

static enum es_plugin_failure es_answer_check(int kind, const struct es_plugin_answer *answer,
					      struct es_request_view *request,
					      const struct es_cluster_view *view)
{
	switch (kind) {
	case ES_PLUGIN_PASS:
		return ES_PLUGIN_FAILURE_NONE;
	case ES_PLUGIN_NODE:
		return es_answer_check_node(answer, request, view);
	case ES_PLUGIN_NODES:
		return es_answer_check_nodes(answer, request, view);
	case ES_PLUGIN_MORE:
		return request->truncated || answer->more_bytes <= request->len ? ES_PLUGIN_FAILURE_bad_more
										: ES_PLUGIN_FAILURE_NONE;
	case ES_PLUGIN_REJECT:
		return answer->status < 400 || answer->status > 599 ? ES_PLUGIN_FAILURE_bad_status
								    : ES_PLUGIN_FAILURE_NONE;
	default:
		return kind < 0 ? ES_PLUGIN_FAILURE_error : ES_PLUGIN_FAILURE_unknown_answer;
	}
}

/*
 * The content that a plugin names takes the place of the one that the URI names. Names go to terminals and
 * into JSON. A number is as good as the plugin's hash, and the tables that it falls into deserve a better
 * one.
 */
static void es_answer_name_content(struct es_plugins_thread *t, const struct es_plugin_answer *answer,
				   struct es_request_view *request)
{
	size_t len = strnlen(answer->content_name, sizeof(answer->content_name) - 1);
	__be64 number = (__be64)es_cpu_be64(answer->content);

	if (answer->content_cost)
		request->cost = answer->content_cost < ES_REQUEST_COST_MAX ? answer->content_cost
									   : ES_REQUEST_COST_MAX;
	if (!answer->content && !len)
		return;
	request->content = answer->content ? es_content_hash((const char *)&number, sizeof(number))
					   : es_content_hash(answer->content_name, len);
	if (len)
		memcpy(t->content_name, answer->content_name, len);
	else
		len = (size_t)snprintf(t->content_name, sizeof(t->content_name), "%016llx",
				       (unsigned long long)answer->content);
	for (size_t i = 0; i < len; i++)
		if (t->content_name[i] < ' ' || t->content_name[i] > '~')
			t->content_name[i] = '?';
	request->name = t->content_name;
	request->name_len = len;
	request->is_named = 1;
}

/* --- the chain */

static void es_call_count(struct es_plugin_thread *thread, unsigned long long took_ns, int kind,
			  enum es_plugin_failure failure)
{
	es_plugin_bump(&thread->calls, 1);
	es_plugin_bump(&thread->time_ns, took_ns);
	if (took_ns > atomic_load_explicit(&thread->max_ns, memory_order_relaxed))
		atomic_store_explicit(&thread->max_ns, took_ns, memory_order_relaxed);
	if (failure != ES_PLUGIN_FAILURE_NONE)
		es_plugin_bump(&thread->failures[failure], 1);
	else
		es_plugin_bump(&thread->answers[kind], 1);
}

/* A node set as "#0 #3". */
static const char *es_set_text(struct es_node_set set, char *text, size_t size)
{
	size_t used = 0;

	text[0] = 0;
	for (unsigned int i = 0; i < ES_NODES_MAX && used + 6 < size; i++)
		if (es_node_set_has(set, i))
			used += (size_t)snprintf(text + used, size - used, "%s#%u", used ? " " : "", i);
	return text;
}

static void es_call_explain(const struct es_plugin_instance *instance, int kind,
			    const struct es_plugin_answer *answer, enum es_plugin_failure failure,
			    const struct es_request_view *request, const struct es_cluster_view *view)
{
	const char *name = instance->conf->name;
	char set[ES_EXPLAIN_STEP_SIZE / 2];

	if (failure == ES_PLUGIN_FAILURE_hung && view->explain)
		snprintf(view->explain->hung, sizeof(view->explain->hung), "%s", name);
	if (failure != ES_PLUGIN_FAILURE_NONE)
		es_explain(view, "plugin %s: wrong answer, %s: %s", name, es_plugin_failure_name[failure],
			   instance->conf->fail == ES_CONF_FAIL_CLOSED ? "refused with 503"
								       : "it is passed over");
	else if (kind == ES_PLUGIN_PASS && request->is_named)
		es_explain(view, "plugin %s: passes; the content is %.*s, at cost %u", name,
			   (int)request->name_len, request->name, request->cost);
	else if (kind == ES_PLUGIN_NODES && request->is_named)
		es_explain(view, "plugin %s: leaves %s; the content is %.*s, at cost %u", name,
			   es_set_text(request->allowed, set, sizeof(set)), (int)request->name_len,
			   request->name, request->cost);
	else if (kind == ES_PLUGIN_PASS)
		es_explain(view, "plugin %s: passes", name);
	else if (kind == ES_PLUGIN_NODE)
		es_explain(view, "plugin %s: node #%u", name, answer->node);
	else if (kind == ES_PLUGIN_NODES)
		es_explain(view, "plugin %s: leaves %s", name,
			   es_set_text(request->allowed, set, sizeof(set)));
	else if (kind == ES_PLUGIN_MORE)
		es_explain(view, "plugin %s: wants %u bytes", name, answer->more_bytes);
	else
		es_explain(view, "plugin %s: refuses with %u", name, answer->status);
}

/*
 * Did the plugin itself take longer than its budget, or did the machine not let it run? Reading a thread's
 * CPU time is a system call, many times dearer than the clock, so it is read once in a while only.
 */
static void es_cpu_look(struct es_plugins_thread *t, unsigned long long now_ns)
{
	if (now_ns - t->cpu_at_ns < CPU_LOOK_NS)
		return;
	t->cpu_ns = es_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	t->cpu_at_ns = now_ns;
}

static int es_is_too_slow(const struct es_plugins_thread *t, const struct es_conf_plugin *conf,
			  unsigned long long start_ns, unsigned long long took_ns)
{
	unsigned long long budget_ns = conf->budget_us * 1000ULL;

	return budget_ns && took_ns > budget_ns &&
	       es_clock_ns(CLOCK_THREAD_CPUTIME_ID) - t->cpu_ns > budget_ns + (start_ns - t->cpu_at_ns);
}

struct es_route_call {
	struct es_plugin_thread *thread;
	const struct es_plugin_request *asked;
	const struct es_plugin_cluster *cluster;
	struct es_plugin_answer *answer;
	int kind;
};

static void es_route_call(void *ctx)
{
	struct es_route_call *call = ctx;
	const struct es_plugin_thread *thread = call->thread;

	call->kind = thread->instance->plugin.route(thread->state, call->asked, call->cluster, call->answer);
}

/*
 * Take what a plugin has written, as far as the answer that it knows goes: bytes after that are none of it.
 */
static void es_answer_take(const struct es_plugin_instance *instance, const unsigned char *room,
			   struct es_plugin_answer *ret_answer)
{
	size_t size = instance->plugin.answer_size;

	memset(ret_answer, 0, sizeof(*ret_answer));
	memcpy(ret_answer, room, size < sizeof(*ret_answer) ? size : sizeof(*ret_answer));
}

/* Ask one plugin. Returns its answer, or the one that replaces a failure. */
static int es_plugin_ask(struct es_plugins_thread *t, struct es_plugin_thread *thread,
			 const struct es_plugin_request *asked, const struct es_plugin_cluster *cluster,
			 struct es_request_view *request, struct es_plugin_answer *ret_answer)
{
	_Alignas(16) unsigned char room[ES_PLUGIN_ANSWER_ROOM] = {};
	struct es_plugin_instance *instance = thread->instance;
	enum es_plugin_failure failure = ES_PLUGIN_FAILURE_no_thread;
	unsigned long long start_ns = es_clock_now_ns(), took_ns = 0;
	struct es_request_view before = *request;
	struct es_route_call call = {thread, asked, cluster, (struct es_plugin_answer *)room, -EIO};
	int kind = -EIO, signal;

	memset(ret_answer, 0, sizeof(*ret_answer));
	if (es_plugin_is_off(instance)) {
		failure = ES_PLUGIN_FAILURE_off;
	} else if (!thread->failed) {
		es_cpu_look(t, start_ns);
		signal = es_guard_call(ROUTE_MS, es_route_call, &call);
		took_ns = es_clock_now_ns() - start_ns;
		kind = call.kind;
		es_answer_take(instance, room, ret_answer);
		if (signal) {
			failure = signal == ES_GUARD_SIGNAL ? ES_PLUGIN_FAILURE_hung
							    : ES_PLUGIN_FAILURE_crashed;
			es_plugin_crashed(instance, signal);
			es_plugin_thread_make(thread);
		} else {
			failure = es_answer_check(kind, ret_answer, request, cluster->view);
		}
		if (failure == ES_PLUGIN_FAILURE_NONE &&
		    es_is_too_slow(t, instance->conf, start_ns, took_ns)) {
			failure = ES_PLUGIN_FAILURE_too_slow;
			*request = before;
		}
		if (failure == ES_PLUGIN_FAILURE_NONE && (kind == ES_PLUGIN_PASS || kind == ES_PLUGIN_NODES))
			es_answer_name_content(t, ret_answer, request);
	}
	es_call_explain(instance, kind, ret_answer, failure, request, cluster->view);
	if (!cluster->view->explain)
		es_call_count(thread, took_ns, kind, failure);
	if (failure == ES_PLUGIN_FAILURE_NONE)
		return kind;
	ret_answer->status = FAIL_STATUS;
	ret_answer->retry_after_s = FAIL_RETRY_AFTER_S;
	return instance->conf->fail == ES_CONF_FAIL_CLOSED ? ES_PLUGIN_REJECT : ES_PLUGIN_PASS;
}

enum es_plugins_verdict es_plugins_route(struct es_plugins_thread *thread, unsigned int service,
					 struct es_request_view *request, const struct es_cluster_view *view,
					 struct es_plugins_answer *ret_answer)
{
	struct es_plugin_answer answer;
	int has_hello = 0;

	if (thread)
		thread->normal.state = ES_PLUGIN_NORMAL_UNASKED;

	for (unsigned int i = 0; thread && i < thread->plugins->count; i++) {
		struct es_plugin_thread *t = &thread->thread[i];
		struct es_plugin_request asked = {request, thread->plugins->conf->services[service].name,
						  &thread->hello, &has_hello, &thread->normal};
		struct es_plugin_cluster cluster = {view, thread->plugins->conf, thread->hasher, t};

		if (t->instance->conf->service != service || !t->instance->object)
			continue;
		switch (es_plugin_ask(thread, t, &asked, &cluster, request, &answer)) {
		case ES_PLUGIN_NODE:
			ret_answer->node = answer.node;
			return ES_PLUGINS_NODE;
		case ES_PLUGIN_MORE:
			ret_answer->more_bytes = answer.more_bytes;
			return ES_PLUGINS_MORE;
		case ES_PLUGIN_REJECT:
			ret_answer->status = answer.status;
			ret_answer->retry_after_s = answer.retry_after_s;
			return ES_PLUGINS_REJECT;
		default:
			break;
		}
	}
	return ES_PLUGINS_PASS;
}

/* --- timers */

static unsigned int es_plugin_timer_ms(const struct es_plugin_instance *instance)
{
	if (!instance->object || !instance->plugin.timer || !instance->plugin.timer_ms)
		return 0;
	return instance->plugin.timer_ms < TIMER_MS_MIN ? TIMER_MS_MIN : instance->plugin.timer_ms;
}

unsigned int es_plugins_timer_ms(const struct es_plugins *plugins)
{
	unsigned int least = 0;

	for (unsigned int i = 0; plugins && i < plugins->count; i++) {
		unsigned int ms = es_plugin_timer_ms(&plugins->instance[i]);

		if (ms && (!least || ms < least))
			least = ms;
	}
	return least;
}

struct es_timer_call {
	const struct es_plugin_instance *instance;
	const struct es_plugin_cluster *cluster;
};

static void es_timer_call(void *ctx)
{
	const struct es_timer_call *call = ctx;

	call->instance->plugin.timer(call->instance->state, call->cluster);
}

void es_plugins_tick(struct es_plugins *plugins, const struct es_cluster_view *view)
{
	for (unsigned int i = 0; plugins && i < plugins->count; i++) {
		struct es_plugin_instance *instance = &plugins->instance[i];
		struct es_plugin_cluster cluster = {view, plugins->conf, plugins->hasher, &instance->control};
		struct es_timer_call call = {instance, &cluster};
		unsigned int ms = es_plugin_timer_ms(instance);
		int signal;

		if (!ms || view->now_ns < instance->timer_due_ns || es_plugin_is_off(instance))
			continue;
		instance->timer_due_ns = view->now_ns + ms * 1000000ULL;
		signal = es_guard_call(TIMER_MS, es_timer_call, &call);
		if (signal)
			es_plugin_crashed(instance, signal);
	}
}
