// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Asks the nodes how they are while somebody looks, answers those that ask, and puts what they say together.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/base/event.h"
#include "inspector/base/wall.h"
#include "inspector/daemon/crash.h"
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/exchange.h"
#include "inspector/daemon/history.h"
#include "inspector/daemon/settings.h"
#include "inspector/daemon/status_report.h"
#include "inspector/daemon/view.h"
#include "inspector/inspect/inspect.h"
#include "inspector/report/json.h"
#include "membership/wire.h"

#define NS_PER_MS   1000000ULL
#define NS_PER_S    1e9
#define RING_PLACES 240
#define EVENTS	    10

/*
 * Without anybody looking, `earshot check` is run so often; so long after the start, when the node has
 * joined; and so long after a reload.
 */
#define CHECK_EVERY_S  300.0
#define CHECK_START_S  15.0
#define CHECK_RELOAD_S 5.0

static int is_lately(unsigned long long at_ns, unsigned long long now_ns)
{
	return at_ns && now_ns - at_ns < ES_VIEW_LOOKS_MS * NS_PER_MS;
}

static int understands(const struct es_daemon *d, unsigned int node)
{
	return atomic_load_explicit(&d->health.understands[node], memory_order_relaxed) &
	       ES_WIRE_UNDERSTANDS_SNAPSHOTS;
}

/* A node that does not know the question ignores it. */
static void ask_histories(struct es_daemon *d)
{
	unsigned long long number = es_number_ns();

	d->view->history_asked_ns = es_clock_now_ns();
	for (unsigned int i = 0; i < d->conf->node_count; i++) {
		struct es_snapshot_message message;

		if (i == d->cluster->self || !understands(d, i))
			continue;
		es_snapshot_expect(&d->view->node[i].history.inbox, number);
		es_daemon_send(d, i, &message,
			       es_snapshot_history_ask(&message, d->cluster->self, i, number,
						       &d->keys.key[0].handover));
	}
}

static void ask_nodes(struct es_daemon *d)
{
	unsigned long long number = es_number_ns();

	for (unsigned int i = 0; i < d->conf->node_count; i++) {
		struct es_snapshot_message message;

		if (i == d->cluster->self || !understands(d, i))
			continue;
		es_snapshot_expect(&d->view->node[i].snapshot.inbox, number);
		es_daemon_send(
			d, i, &message,
			es_snapshot_ask(&message, d->cluster->self, i, number, &d->keys.key[0].handover));
	}
}

/* Runs in the worker's thread. */
static void copy_hot(struct es_inspector *inspector, void *ctx)
{
	struct es_view_hot *hot = ctx;

	hot->hot = inspector->hot;
	atomic_store_explicit(&hot->is_there, 1, memory_order_release);
}

/* Each worker gives a copy of the contents that are asked for most when it gets round to it. */
static void ask_workers(struct es_daemon *d)
{
	for (unsigned int i = 0; i < d->datapath_params.workers; i++) {
		struct es_view_hot *hot = &d->view->hot[i];
		int was_there = atomic_load_explicit(&hot->is_there, memory_order_acquire);

		if (hot->is_asked && !was_there)
			continue;
		atomic_store_explicit(&hot->is_there, 0, memory_order_relaxed);
		hot->is_asked = !es_worker_post(d->worker[i], copy_hot, hot);
		if (!hot->is_asked)
			atomic_store_explicit(&hot->is_there, was_there, memory_order_relaxed);
	}
}

static int make_room(struct es_daemon_view *view)
{
	if (!view->node)
		view->node = calloc(ES_NODES_MAX, sizeof(*view->node));
	if (!view->hot)
		view->hot = calloc(ES_WORKERS_MAX, sizeof(*view->hot));
	return view->node && view->hot ? 0 : -ENOMEM;
}

/* The answer to a question; NULL: this node cannot say. */
static struct json_object *word_about(struct es_daemon *d, unsigned int kind)
{
	struct json_object *crash = NULL;
	struct es_conf_error err;

	if (kind == ES_SNAPSHOT_ASK)
		return es_daemon_snapshot(d);
	if (kind == ES_SNAPSHOT_ASK_HISTORY)
		return es_daemon_history(d);
	es_daemon_crash_of_self(d, &crash, &err);
	return crash;
}

static size_t part_of(struct es_daemon *d, unsigned int node, const struct es_snapshot_header *question,
		      const char *text, size_t len, unsigned int part, struct es_snapshot_message *ret)
{
	unsigned long long number = es_cpu_be64((__u64)question->number);

	return (question->kind == ES_SNAPSHOT_ASK	    ? es_snapshot_part
		: question->kind == ES_SNAPSHOT_ASK_HISTORY ? es_snapshot_history_part
							    : es_snapshot_crash_part)(
		ret, d->cluster->self, node, number, text, len, part, &d->keys.key[0].handover);
}

static void answer(struct es_daemon *d, struct es_view_word *asker, const struct es_snapshot_header *question)
{
	unsigned long long now_ns = es_clock_now_ns(), number = es_cpu_be64((__u64)question->number);
	unsigned int node = question->source;
	struct es_snapshot_message message;
	struct json_object *word;
	const char *text;
	size_t len, size;

	/* Somebody has recorded it, or asks too often. */
	if (number <= asker->asked_number ||
	    (asker->answered_ns && now_ns - asker->answered_ns < ES_SNAPSHOT_ANSWER_NS))
		return;
	asker->asked_number = number;
	asker->answered_ns = now_ns;
	word = word_about(d, question->kind);
	text = json_object_to_json_string_length(word, JSON_C_TO_STRING_PLAIN, &len);
	for (unsigned int part = 0; (size = part_of(d, node, question, text, len, part, &message)); part++)
		es_daemon_send(d, node, &message, size);
	json_object_put(word);
	if (question->kind == ES_SNAPSHOT_ASK)
		ask_workers(d);
}

/* Which of a node's words a question or an answer is about. */
static struct es_view_word *word_of(struct es_view_node *node, unsigned int kind)
{
	switch (kind) {
	case ES_SNAPSHOT_ASK_HISTORY:
	case ES_SNAPSHOT_HISTORY:
		return &node->history;
	case ES_SNAPSHOT_ASK_CRASH:
	case ES_SNAPSHOT_CRASH:
		return &node->crash;
	default:
		return &node->snapshot;
	}
}

static void on_snapshot(struct es_daemon *d, const struct es_snapshot_message *message)
{
	const struct es_snapshot_header *header = &message->header;
	struct es_view_word *from = word_of(&d->view->node[header->source], header->kind);

	if (header->kind == ES_SNAPSHOT_ASK || header->kind == ES_SNAPSHOT_ASK_HISTORY ||
	    header->kind == ES_SNAPSHOT_ASK_CRASH) {
		answer(d, from, header);
		return;
	}
	if (es_snapshot_take(&from->inbox, message) <= 0)
		return; /* one that was late is no attack */
	memcpy(from->text, from->inbox.text, from->inbox.total);
	from->text[from->inbox.total] = 0;
	from->at_ns = es_clock_now_ns();
}

int es_daemon_view_message(void *daemon, const void *data, size_t len)
{
	struct es_snapshot_message message;
	struct es_daemon *d = daemon;
	int rc = es_snapshot_read(data, len, d->cluster->self, d->conf->node_count, &d->keys, &message);

	if (rc)
		return rc;
	if (message.header.kind == ES_SNAPSHOT_ASK_SETTINGS || message.header.kind == ES_SNAPSHOT_SETTINGS)
		es_daemon_settings_message(d, &message);
	else if (!make_room(d->view))
		on_snapshot(d, &message);
	return 0;
}

/* Has one that tells of itself not told this yet? */
static int lacks_history(const struct es_daemon *d)
{
	for (unsigned int i = 0; i < d->conf->node_count; i++)
		if (d->view->node[i].snapshot.at_ns > d->view->history_asked_ns &&
		    !d->view->node[i].history.at_ns)
			return 1;
	return 0;
}

static void on_timer(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct es_daemon *d = timer->data;
	unsigned long long now_ns = es_clock_now_ns();

	(void)events;
	if (!is_lately(d->view->looked_ns, now_ns)) {
		ev_timer_stop(loop, timer);
		return;
	}
	ask_nodes(d);
	ask_workers(d);
	if (is_lately(d->view->history_wanted_ns, now_ns) &&
	    (now_ns - d->view->history_asked_ns >= ES_VIEW_HISTORY_MS * NS_PER_MS || lacks_history(d)))
		ask_histories(d);
}

/* For es_problems_look() and es_problems_run(). */
static struct es_problems_of this_daemon(const struct es_daemon *d)
{
	return (struct es_problems_of){
		.control = d->control_path,
		.node = d->conf->nodes[d->cluster->self].name,
		.config = d->options.config_path,
	};
}

static void look_for_problems(struct es_daemon *d)
{
	const struct es_problems_of of = this_daemon(d);

	es_problems_look(&d->view->problems, d->loop, &of);
}

/* Nobody need look for what is wrong to be an event. */
static void on_check(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct es_daemon *d = timer->data;
	const struct es_problems_of of = this_daemon(d);

	(void)events;
	es_problems_run(&d->view->problems, loop, &of);
}

static void check_after(struct es_daemon *d, double delay_s)
{
	struct ev_timer *check = &d->view->check;

	ev_timer_stop(d->loop, check);
	ev_timer_set(check, delay_s, CHECK_EVERY_S);
	ev_timer_start(d->loop, check);
}

int es_daemon_view_look(struct es_daemon *d, int with_history)
{
	unsigned long long now_ns = es_clock_now_ns();
	struct es_daemon_view *view = d->view;

	if (make_room(view))
		return 1;
	if (!is_lately(view->looked_ns, now_ns)) {
		view->began_ns = now_ns;
		ask_nodes(d);
		ask_workers(d);
		ev_timer_again(d->loop, &view->timer);
	}
	if (with_history && !is_lately(view->history_wanted_ns, now_ns))
		ask_histories(d);
	view->looked_ns = now_ns;
	if (with_history)
		view->history_wanted_ns = now_ns;
	look_for_problems(d);
	if (now_ns - view->began_ns >= ES_VIEW_FIRST_MS * NS_PER_MS)
		return 1;
	for (unsigned int i = 0; i < d->conf->node_count; i++)
		if (i != d->cluster->self && understands(d, i) &&
		    (view->node[i].snapshot.at_ns < view->began_ns ||
		     (with_history && view->node[i].history.at_ns < view->began_ns)))
			return 0;
	return 1;
}

struct json_object *es_daemon_view_crash(struct es_daemon *d, unsigned int node, int *ret_is_awaited)
{
	unsigned long long now_ns = es_clock_now_ns(), number = es_number_ns();
	struct es_snapshot_message message;
	struct es_view_word *from;

	*ret_is_awaited = 0;
	if (make_room(d->view) || es_health_state(&d->health, node) >= ES_NODE_LEFT || !understands(d, node))
		return NULL;
	from = &d->view->node[node].crash;
	if (from->at_ns && now_ns - from->at_ns < ES_VIEW_CRASH_MS * NS_PER_MS)
		return json_tokener_parse(from->text);
	*ret_is_awaited = 1;
	if (from->question_ns && now_ns - from->question_ns < ES_VIEW_FIRST_MS * NS_PER_MS)
		return NULL;
	from->question_ns = now_ns;
	es_snapshot_expect(&from->inbox, number);
	es_daemon_send(
		d, node, &message,
		es_snapshot_crash_ask(&message, d->cluster->self, node, number, &d->keys.key[0].handover));
	return NULL;
}

/* --- the document */

static struct json_object *ring_of(const struct es_daemon *d)
{
	struct json_object *places = json_object_new_array_ext(RING_PLACES);
	int has_members = 0;

	for (unsigned int i = 0; i < d->conf->node_count; i++)
		has_members |= d->cluster->weight[i] > 0;
	for (unsigned int i = 0; has_members && i < RING_PLACES; i++) {
		__u64 position = (UINT64_MAX / RING_PLACES) * i;

		json_object_array_add(places,
				      json_object_new_int(es_ring_lookup(d->cluster->ring, position)));
	}
	return places;
}

/* The newest of this node's journal. */
static struct json_object *events_of_this_node(void)
{
	struct json_object *list = json_object_new_array_ext(EVENTS);
	struct es_event events[EVENTS];
	size_t count = es_event_newest(events, EVENTS);

	for (size_t i = 0; i < count; i++)
		json_object_array_add(list, es_event_json(&events[i]));
	return list;
}

/* The node's own word about itself, and whether that is recent enough to hold now. */
static void add_word(const struct es_daemon *d, unsigned int node, struct json_object *object)
{
	const struct es_view_word *from = d->view->node ? &d->view->node[node].snapshot : NULL;
	unsigned long long now_ns = es_clock_now_ns(), age_ns;
	struct json_object *snapshot = from && from->at_ns ? json_tokener_parse(from->text) : NULL;
	struct json_object *trouble;
	int answers;

	json_object_object_add(object, "tells", json_object_new_boolean(understands(d, node) > 0));
	if (!snapshot) {
		json_object_object_add(object, "answers", json_object_new_boolean(0));
		json_object_object_add(object, "age_s", NULL);
		json_object_object_add(object, "snapshot", NULL);
		return;
	}
	age_ns = now_ns - from->at_ns;
	answers = age_ns < ES_VIEW_FRESH_MS * NS_PER_MS;
	json_object_object_add(object, "answers", json_object_new_boolean(answers));
	/* The node knows more of its trouble than others do. */
	if (answers && json_object_object_get_ex(snapshot, "trouble", &trouble) &&
	    json_object_get_string_len(trouble) > 0)
		json_object_object_add(object, "trouble", json_object_get(trouble));
	es_json_fraction(object, "age_s", (double)age_ns / NS_PER_S, 1);
	json_object_object_add(object, "snapshot", snapshot);
}

/* The history is told with its age: its last sample was so long ago. */
static void add_history(const struct es_daemon *d, unsigned int node, struct json_object *object)
{
	const struct es_view_word *from = d->view->node ? &d->view->node[node].history : NULL;
	int is_self = node == d->cluster->self;
	struct json_object *history = is_self		    ? es_daemon_history(d)
				      : from && from->at_ns ? json_tokener_parse(from->text)
							    : NULL;

	if (history)
		es_json_fraction(history, "age_s",
				 is_self ? 0 : (double)(es_clock_now_ns() - from->at_ns) / NS_PER_S, 1);
	json_object_object_add(object, "history", history);
}

struct json_object *es_daemon_view(struct es_daemon *d, int with_history)
{
	struct json_object *view = es_daemon_status_report(d), *nodes = NULL;
	unsigned int asked;

	es_daemon_view_look(d, with_history);
	json_object_object_get_ex(view, "nodes", &nodes);
	asked = (unsigned int)json_object_array_length(nodes);
	for (unsigned int i = 0; i < asked; i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);

		if (with_history)
			add_history(d, i, node);
		if (i != d->cluster->self) {
			add_word(d, i, node);
			continue;
		}
		json_object_object_add(node, "tells", json_object_new_boolean(1));
		json_object_object_add(node, "answers", json_object_new_boolean(1));
		es_json_fraction(node, "age_s", 0, 1);
		json_object_object_add(node, "snapshot", es_daemon_snapshot(d));
	}
	json_object_object_add(view, "ring_places", ring_of(d));
	json_object_object_add(view, "events", events_of_this_node());
	json_object_object_add(view, "check", es_problems_report(&d->view->problems));
	es_json_number(view, "at_s", es_wall_ns() / 1000000000);
	return view;
}

int es_daemon_view_command(void *ctx, struct json_object *request, struct json_object **ret_result,
			   struct es_conf_error *err)
{
	struct json_object *history;

	(void)err;
	*ret_result = es_daemon_view(ctx, json_object_object_get_ex(request, "history", &history) &&
						  json_object_get_boolean(history));
	return 0;
}

/* --- life */

static void on_step(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct es_daemon *d = timer->data;
	struct es_figures figures;

	(void)loop;
	(void)events;
	es_daemon_figures(d, &figures);
	es_history_add(&d->view->history, &figures.of, es_clock_now_ns());
	es_figures_free(&figures);
}

static unsigned long long identity_of(const struct es_conf *conf)
{
	unsigned long long hash = 14695981039346656037ULL; /* FNV-1a */

	for (unsigned int i = 0; i < conf->node_count; i++)
		for (const char *at = conf->nodes[i].name;; at++) {
			hash = (hash ^ (unsigned char)*at) * 1099511628211ULL;
			if (!*at)
				break;
		}
	return hash;
}

int es_daemon_view_start(struct es_daemon *d, struct es_conf_error *err)
{
	struct es_daemon_view *view = d->view;

	(void)err;
	view->identity = identity_of(d->conf);
	ev_timer_init(&view->step, on_step, 0, ES_HISTORY_STEP_S);
	ev_timer_init(&view->timer, on_timer, 0, ES_VIEW_ASK_MS / 1000.0);
	ev_init(&view->check, on_check);
	view->step.data = view->timer.data = view->check.data = d;
	ev_timer_start(d->loop, &view->step);
	check_after(d, CHECK_START_S);
	return 0;
}

void es_daemon_view_rebind(struct es_daemon *d)
{
	unsigned long long identity = identity_of(d->conf);

	check_after(d, CHECK_RELOAD_S);
	if (identity == d->view->identity)
		return;
	d->view->identity = identity;
	free(d->view->node);
	d->view->node = NULL;
	d->view->looked_ns = 0;
}

void es_daemon_view_stop(struct es_daemon *d)
{
	struct es_daemon_view *view = d->view;

	if (ev_is_active(&view->step)) {
		ev_timer_stop(d->loop, &view->step);
		ev_timer_stop(d->loop, &view->timer);
		ev_timer_stop(d->loop, &view->check);
	}
	es_problems_stop(&view->problems);
	es_history_fini(&view->history);
	free(view->node);
	free(view->hot);
	view->node = NULL;
	view->hot = NULL;
}
