// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The word about a change (ES_WIRE_BY_HAND) is on the bus just before the change itself, so that each node
 * has the reason when it tells what happened. A version that does not know it takes the change alone.
 */
#include <errno.h>
#include <string.h>
#include "inspector/base/wall.h"
#include "inspector/daemon/by_hand.h"
#include "inspector/daemon/load.h"
#include "inspector/daemon/membership_internal.h"

#define AGAIN_MS 5000 /* a change that was lost with the bus is asked for again */

static uint64_t wall_ms(void)
{
	return es_wall_ns() / 1000000;
}

static int is_drain(const struct es_wire_by_hand *state)
{
	return state->what && state->value == ES_NODE_DRAINING;
}

static int is_same(const struct es_wire_by_hand *a, const struct es_wire_by_hand *b)
{
	return a->value == b->value && a->set_ms == b->set_ms && a->for_s == b->for_s &&
	       !strcmp(a->who, b->who) && !strcmp(a->why, b->why);
}

static void say(struct es_membership *m, const struct es_wire_by_hand *by_hand)
{
	uint8_t buf[ES_WIRE_BY_HAND_SIZE];

	es_bus_send(m->bus, ES_WIRE_BY_HAND, buf, es_wire_put_by_hand(buf, sizeof(buf), by_hand));
}

/*
 * By its files the node starts anew as it was set by hand. A file that cannot be written or removed is logged
 * once, and tried again.
 */
static void keep_file(const char *path, const struct es_wire_by_hand *now, struct es_wire_by_hand *kept,
		      int *has_file, int *is_unkept)
{
	int is_known = !now == !*has_file && (!now || is_same(now, kept)), rc;

	if (is_known && !*is_unkept)
		return;
	rc = es_by_hand_write(path, now);
	if (rc && !is_known)
		es_log(ES_LOG_ERR,
		       "%s: cannot be %s: %s; after a restart this node goes by what it was told before",
		       path, now ? "written" : "removed", strerror(-rc));
	else if (!rc && *is_unkept)
		es_log(ES_LOG_INFO, "%s: is %s now", path, now ? "written" : "removed");
	*is_unkept = rc != 0;
	*has_file = now != NULL;
	if (now)
		*kept = *now;
}

static void keep(struct es_membership *m)
{
	struct es_daemon_by_hand *h = &m->by_hand;
	unsigned int self = m->daemon->cluster->self;
	struct es_by_hand *own = &h->node[self];
	int was_unkept = es_membership_is_unkept(m);

	/* Drained by a node of a version that does not say who did it. */
	if (m->is_drained && !is_drain(&own->state))
		own->state = (struct es_wire_by_hand){.node = (uint16_t)self,
						      .what = ES_WIRE_CHANGE_STATE,
						      .value = ES_NODE_DRAINING,
						      .set_ms = wall_ms()};
	keep_file(m->daemon->drained_path, m->is_drained ? &own->state : NULL, &h->kept.state, &h->has_drain,
		  &h->is_drain_unkept);
	keep_file(m->daemon->weight_path, own->weight.what ? &own->weight : NULL, &h->kept.weight,
		  &h->has_weight, &h->is_weight_unkept);
	h->again_ms = es_membership_is_unkept(m) ? es_membership_now_ms() + AGAIN_MS : 0;
	/* Whoever has given the command waits for this word. */
	if (es_membership_is_unkept(m) != was_unkept)
		es_daemon_load_tell(m->daemon);
}

void es_by_hand_begin(struct es_membership *m)
{
	struct es_daemon_by_hand *h = &m->by_hand;
	unsigned int self = m->daemon->cluster->self;
	struct es_by_hand *own = &h->node[self];
	char text[ES_BY_HAND_TEXT_SIZE];
	int rc = es_by_hand_read(m->daemon->drained_path, ES_WIRE_CHANGE_STATE, &own->state);

	if (rc && rc != -ENOENT) {
		es_log(ES_LOG_WARNING,
		       "%s: cannot be read: %s; this node is drained; by whom and until when is "
		       "not known",
		       m->daemon->drained_path, strerror(-rc));
		own->state =
			(struct es_wire_by_hand){.what = ES_WIRE_CHANGE_STATE, .value = ES_NODE_DRAINING};
	}
	/* The node is drained because the file exists, whatever is in it. */
	if (rc != -ENOENT) {
		own->state.node = (uint16_t)self;
		m->is_drained = h->has_drain = 1;
		m->group.node[self].state = ES_NODE_DRAINING;
		if (own->state.until_ms)
			h->end_ms = es_membership_now_ms() + es_by_hand_left_ms(&own->state, wall_ms()) + 1;
		es_log(ES_LOG_WARNING,
		       "this node is drained, as before it started%s; earshot undrain gives it requests "
		       "again",
		       es_by_hand_text(&own->state, text, sizeof(text)));
	} else {
		own->state.what = 0;
	}
	h->kept.state = own->state;
	rc = es_by_hand_read(m->daemon->weight_path, ES_WIRE_CHANGE_WEIGHT, &own->weight);
	if (rc && rc != -ENOENT)
		es_log(ES_LOG_WARNING,
		       "%s: cannot be read: %s; this node takes its weight from the configuration",
		       m->daemon->weight_path, strerror(-rc));
	if (!rc && own->weight.value <= ES_CONF_WEIGHT_MAX) {
		own->weight.node = (uint16_t)self;
		h->has_weight = 1;
		m->group.node[self].weight = own->weight.value;
		es_log(ES_LOG_WARNING, "this node has weight %u, as before it started, set%s",
		       own->weight.value, es_by_hand_text(&own->weight, text, sizeof(text)));
	} else {
		own->weight.what = 0;
	}
	h->kept.weight = own->weight;
	h->state[self] = m->group.node[self].state;
}

unsigned int es_by_hand_own_weight(const struct es_membership *m)
{
	unsigned int self = m->daemon->cluster->self;
	const struct es_wire_by_hand *weight = &m->by_hand.node[self].weight;

	return weight->what ? weight->value : m->daemon->conf->nodes[self].weight;
}

void es_by_hand_changed(struct es_membership *m)
{
	struct es_daemon_by_hand *h = &m->by_hand;

	for (unsigned int i = 0; i < m->group.node_count; i++) {
		struct es_by_hand *node = &h->node[i];
		uint8_t state = m->group.node[i].state;

		if (state == ES_NODE_UP && h->state[i] != ES_NODE_UP) {
			node->state.what = 0;
			if (i == m->daemon->cluster->self)
				h->end_ms = 0;
		}
		h->state[i] = state;
		if (node->weight.what && node->weight.value == m->daemon->conf->nodes[i].weight)
			node->weight.what = 0;
	}
	keep(m);
}

void es_by_hand_view(struct es_membership *m)
{
	const struct es_by_hand *own = &m->by_hand.node[m->daemon->cluster->self];

	if (is_drain(&own->state))
		say(m, &own->state);
	if (own->weight.what)
		say(m, &own->weight);
}

void es_by_hand_message(struct es_membership *m, const void *payload, size_t len)
{
	struct es_wire_by_hand by_hand;
	struct es_by_hand *node;

	if (es_wire_get_by_hand(payload, len, &by_hand) || by_hand.node >= m->group.node_count)
		return;
	node = &m->by_hand.node[by_hand.node];
	if (by_hand.what == ES_WIRE_CHANGE_WEIGHT) {
		node->weight = by_hand;
		/*
		 * The word about going back to the configured weight is kept until that is in force: the
		 * story still has to tell who did it.
		 */
		if (by_hand.value == m->daemon->conf->nodes[by_hand.node].weight &&
		    by_hand.value == m->group.node[by_hand.node].weight)
			node->weight.what = 0;
	} else if (by_hand.what == ES_WIRE_CHANGE_STATE) {
		/* The word that this node sent itself when it joined does not begin the drain's time anew. */
		int is_known = is_same(&node->state, &by_hand);

		node->state = by_hand;
		if (by_hand.node == m->daemon->cluster->self && !is_known)
			m->by_hand.end_ms =
				by_hand.for_s ? es_membership_now_ms() + by_hand.for_s * 1000ULL : 0;
	}
	/* The end of a drain is kept when the drain has ended (es_by_hand_changed()). */
	if (by_hand.what == ES_WIRE_CHANGE_WEIGHT || is_drain(&by_hand))
		keep(m);
}

int es_by_hand_set(struct es_membership *m, const struct es_wire_by_hand *by_hand)
{
	unsigned int node = by_hand->node;

	if (!es_group_is_in(&m->group) || node >= m->group.node_count || !m->group.node[node].is_member)
		return -ENOTCONN;
	say(m, by_hand);
	es_group_change(&m->group, node, by_hand->what, by_hand->value);
	return 0;
}

void es_by_hand_tick(struct es_membership *m)
{
	struct es_daemon_by_hand *h = &m->by_hand;
	unsigned int self = m->daemon->cluster->self;
	struct es_wire_by_hand word = {.node = (uint16_t)self,
				       .what = ES_WIRE_CHANGE_STATE,
				       .value = ES_NODE_UP,
				       .why = "its time is over"};

	if (h->again_ms && es_membership_now_ms() >= h->again_ms)
		keep(m);
	if (!h->end_ms || es_membership_now_ms() < h->end_ms || !es_group_is_in(&m->group) ||
	    m->group.node[self].state != ES_NODE_DRAINING)
		return;
	h->end_ms = es_membership_now_ms() + AGAIN_MS;
	word.set_ms = wall_ms();
	es_by_hand_set(m, &word);
}

const struct es_wire_by_hand *es_by_hand_shown(const struct es_membership *m, unsigned int node,
					       enum es_wire_change_what what)
{
	const struct es_by_hand *by_hand = &m->by_hand.node[node];

	if (what == ES_WIRE_CHANGE_STATE)
		return is_drain(&by_hand->state) && m->group.node[node].state == ES_NODE_DRAINING
			       ? &by_hand->state
			       : NULL;
	return by_hand->weight.what && m->group.node[node].weight == by_hand->weight.value ? &by_hand->weight
											   : NULL;
}
