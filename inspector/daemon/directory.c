// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The flow directory on the control thread: looks through this node's connections, tells their keepers, and
 * takes in what other nodes tell.
 */
#include <errno.h>
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/base/wall.h"
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/directory.h"
#include "inspector/daemon/downloads.h"
#include "inspector/daemon/exchange.h"
#include "inspector/daemon/heard.h"
#include "inspector/daemon/keepers.h"
#include "inspector/daemon/waiting.h"
#include "kmod/core/track.h"

#define TCP_STATE_IS_ESTABLISHED 1 /* the kernel's number */

#define EXPIRE_NS 1000000000ULL

static int is_wanted(const struct es_daemon *d)
{
	for (unsigned int i = 0; i < d->conf->service_count; i++)
		if (d->conf->services[i].survive)
			return d->conf->cluster.membership == ES_CONF_MEMBERSHIP_COROSYNC;
	return 0;
}

static void flush(struct es_daemon *d, unsigned int node)
{
	struct es_directory_outbox *box = &d->directory->outbox[node];
	__u64 number = es_number_ns();
	struct es_kept_message message;
	size_t len;

	if (!box->count)
		return;
	d->directory->sequence = number > d->directory->sequence ? number : d->directory->sequence + 1;
	len = es_kept_message_make(&message, d->cluster->self, node, d->directory->sequence, es_wall_ns(),
				   box->word, box->count, &d->keys.key[0].handover);
	box->count = 0;
	es_daemon_send(d, node, &message, len);
	d->directory->sent++;
}

static void tell(void *ctx, unsigned int node, const struct es_kept_word *word)
{
	struct es_daemon *d = ctx;
	struct es_directory_outbox *box = &d->directory->outbox[node];

	if (node >= d->conf->node_count || node == d->cluster->self)
		return;
	box->word[box->count++] = *word;
	if (box->count == ES_KEPT_WORDS_MAX)
		flush(d, node);
}

/*
 * Between two requests: the one before is complete and answered, and nobody has the next one. A pin is for
 * good. A client that has not got all of its answer for long waits, be it that the server has written it all:
 * unless others know the response, and so more than that.
 */
static enum es_idle_state state_of(const struct es_daemon *d, const struct es_track_entry *entry,
				   __u64 flow_hash)
{
	const struct es_track *t = &entry->track;

	if (t->pin != ES_PIN_none || entry->tcp_state != TCP_STATE_IS_ESTABLISHED)
		return ES_IDLE_NEVER;
	if (t->state != ES_TRACK_SERVED)
		return ES_IDLE_BUSY;
	if (t->response.phase == ES_RESPONSE_DONE && !entry->is_unacknowledged)
		return ES_IDLE_YES;
	return es_track_took_ns(t, d->directory->looked_ns) >= ES_WAITING_NS &&
			       t->response_bytes != UINT32_MAX &&
			       !es_daemon_downloads_knows(d, entry, flow_hash)
		       ? ES_IDLE_WAITS
		       : ES_IDLE_BUSY;
}

static void see(void *ctx, const void *data)
{
	const struct es_track_entry *entry = data;
	const struct es_track *t = &entry->track;
	struct es_daemon *d = ctx;
	int service = es_daemon_service_of(d->conf, &entry->flow);
	struct es_idle_flow flow = {};

	if (service < 0 || !d->conf->services[service].survive)
		return;
	flow.flow_hash = es_flow_hash(&d->keys.ring, d->keys.ring_seed, &entry->flow);
	es_daemon_downloads_see(d, entry, flow.flow_hash);
	flow.state = state_of(d, entry, flow.flow_hash);
	flow.kept = (struct es_kept){
		.flow = entry->flow,
		.options = t->options,
		.seq = t->next_request_seq,
		.ack = t->response_seq,
		.requests = t->requests,
		.moves = t->moves,
		.service = (__u8)service,
		.owner = (__u8)d->cluster->self,
	};
	if (flow.state == ES_IDLE_WAITS) {
		flow.kept.ack -= t->response_bytes;
		flow.kept.requests = entry->tsval;
	}
	/* The node that inspects it, or will when this one is gone; and with two copies the next one. */
	es_daemon_keepers_of(d, flow.flow_hash, d->conf->services[service].survive, (__u16)d->cluster->self,
			     flow.keeper);
	es_idle_flows_see(d->directory->flows, &flow);
}

static void look(struct es_daemon *d)
{
	struct es_daemon_directory *directory = d->directory;
	unsigned long long start_ns = es_clock_ns(CLOCK_THREAD_CPUTIME_ID);

	directory->looked_ns = es_clock_now_ns();
	es_idle_flows_begin(directory->flows, directory->looked_ns, ES_DIRECTORY_IDLE_NS,
			    ES_DIRECTORY_TELL_MOST);
	es_daemon_downloads_look(d);
	/* One that is missing in a list that broke off is told again when it is found. */
	if (!es_datapath_flows(d->datapath, see, d)) {
		es_idle_flows_end(directory->flows);
		es_daemon_downloads_seen(d);
	}
	for (unsigned int i = 0; i < d->conf->node_count; i++)
		flush(d, i);
	directory->look_ns = es_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
}

static void expire(struct es_daemon *d, unsigned long long now_ns)
{
	unsigned long long lost_ns[ES_NODES_MAX];

	for (unsigned int i = 0; i < ES_NODES_MAX; i++)
		lost_ns[i] = es_health_lost_ns(&d->health, i);
	es_directory_expire(d->directory->table, lost_ns, now_ns);
	es_daemon_waiting_expire(d, lost_ns, now_ns);
	d->directory->expired_ns = now_ns;
}

/* Leases of lost nodes that are over by now: their connections are nobody's. */
static void look_for_orphans(struct es_daemon *d, unsigned long long now_ns)
{
	struct es_daemon_directory *directory = d->directory;
	unsigned long long *over_ns = directory->over_ns;
	int are_new = 0;

	for (unsigned int i = 0; i < d->conf->node_count; i++) {
		unsigned long long lost_ns = es_health_lost_ns(&d->health, i);

		if (lost_ns == over_ns[i] || es_health_state(&d->health, i) == ES_NODE_LEFT)
			directory->leased_ns[i] = now_ns;
		else if (now_ns - directory->leased_ns[i] >= ES_DIRECTORY_UNDER_WAY_NS) {
			over_ns[i] = lost_ns;
			are_new = 1;
		}
	}
	if (!are_new)
		return;
	es_directory_orphan(directory->table, over_ns, d->heard->at_ns, now_ns);
	es_daemon_waiting_orphan(d, over_ns, now_ns);
	directory->passed_epoch = 0;
}

static void pass_on(void *ctx, __u64 flow_hash, const struct es_kept *kept)
{
	const struct es_kept_word word = {.what = ES_KEPT_ORPHAN, .kept = *kept};
	struct es_daemon *d = ctx;
	int service = es_daemon_service_of(d->conf, &kept->flow);
	__u16 keeper[ES_KEEPERS_MAX];

	if (service < 0)
		return;
	es_daemon_keepers_of(d, flow_hash, d->conf->services[service].survive, ES_NODE_NONE, keeper);
	for (unsigned int i = 0; i < ES_KEEPERS_MAX; i++)
		if (keeper[i] != ES_NODE_NONE)
			tell(d, keeper[i], &word);
}

/* The ring is another one: orphans' new keepers are told of them, once. */
static void pass_orphans_on(struct es_daemon *d)
{
	struct es_daemon_directory *directory = d->directory;

	if (directory->passed_epoch == d->cluster->epoch)
		return;
	if (es_directory_pass_on(directory->table, d->cluster->epoch, ES_DIRECTORY_TELL_MOST, pass_on, d) <
	    ES_DIRECTORY_TELL_MOST)
		directory->passed_epoch = d->cluster->epoch;
	for (unsigned int i = 0; i < d->conf->node_count; i++)
		flush(d, i);
}

static void on_timer(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct es_daemon *d = timer->data;
	unsigned long long now_ns = es_clock_now_ns();

	(void)loop;
	(void)events;
	look_for_orphans(d, now_ns);
	es_daemon_waiting_look(d, es_daemon_downloads_has);
	pass_orphans_on(d);
	if (now_ns - d->directory->expired_ns >= EXPIRE_NS)
		expire(d, now_ns);
	if (es_datapath_kepts(d->datapath) &&
	    now_ns - d->directory->looked_ns >= d->directory->look_ns * ES_DIRECTORY_LOOK_SHARE)
		look(d);
}

int es_daemon_directory_message(struct es_daemon *d, const void *data, size_t len)
{
	struct es_kept_word words[ES_KEPT_WORDS_MAX];
	int count = es_kept_message_read(data, len, d->cluster->self, d->conf->node_count, &d->keys,
					 es_wall_ns(), d->directory->heard, words);

	if (count < 0)
		return count;
	d->directory->received++;
	if (!d->directory->flows)
		return 0;
	for (int i = 0; i < count; i++) {
		const struct es_kept *kept = &words[i].kept;
		__u64 flow_hash = es_flow_hash(&d->keys.ring, d->keys.ring_seed, &kept->flow);

		if (words[i].what != ES_KEPT_ORPHAN)
			es_daemon_waiting_hear(d, flow_hash, &words[i]);
		if (words[i].what == ES_KEPT_WAITS || words[i].what == ES_KEPT_ANSWERED)
			continue;
		if (words[i].what == ES_KEPT_FORGET)
			es_directory_forget(d->directory->table, flow_hash, kept->owner);
		else if (es_daemon_service_of(d->conf, &kept->flow) < 0)
			continue;
		else if (words[i].what == ES_KEPT_ORPHAN)
			es_directory_adopt(d->directory->table, flow_hash, kept, es_clock_now_ns());
		else
			es_directory_keep(d->directory->table, flow_hash, kept, es_clock_now_ns());
	}
	return 0;
}

int es_daemon_directory_prepare(struct es_daemon *d)
{
	ev_timer_init(&d->directory->timer, on_timer, ES_DIRECTORY_LOOK_MS / 1000.0,
		      ES_DIRECTORY_LOOK_MS / 1000.0);
	d->directory->timer.data = d;
	if (es_directory_new(ES_DIRECTORY_ENTRIES, &d->directory->table))
		return -ENOMEM;
	es_directory_watch(d->directory->table, es_datapath_kepts(d->datapath));
	es_daemon_waiting_prepare(d);
	return 0;
}

void es_daemon_directory_rebind(struct es_daemon *d)
{
	struct es_daemon_directory *directory = d->directory;

	/* Nodes may have other numbers now, and services other settings: all is told anew. */
	ev_timer_stop(d->loop, &directory->timer);
	es_idle_flows_free(&directory->flows);
	es_directory_clear(directory->table);
	memset(directory->outbox, 0, sizeof(directory->outbox));
	memset(directory->over_ns, 0, sizeof(directory->over_ns));
	es_daemon_waiting_rebind(d, is_wanted(d));
	if (!is_wanted(d) || es_idle_flows_new(ES_DIRECTORY_ENTRIES, tell, d, &directory->flows))
		return;
	ev_timer_start(d->loop, &directory->timer);
}

void es_daemon_directory_stop(struct es_daemon *d)
{
	if (d->directory->table)
		ev_timer_stop(d->loop, &d->directory->timer);
	es_idle_flows_free(&d->directory->flows);
	es_directory_free(&d->directory->table);
	es_daemon_waiting_stop(d);
}
