// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The word about a change (ES_WIRE_BY_HAND) is on the bus just before the change itself, so that each node
 * has the reason when it tells what happened. A version that does not know it takes the change alone.
 */
#include <errno.h>
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/base/log.h"
#include "inspector/base/wall.h"
#include "inspector/daemon/by_hand.h"

#define AGAIN_MS 5000 /* a change that was lost with the bus is asked for again */

static uint64_t now_ms(void)
{
	return es_clock_now_ns() / 1000000;
}

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

static unsigned int configured(const struct es_daemon_by_hand *h, unsigned int node)
{
	return (*h->conf)->nodes[node].weight;
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

static void keep(struct es_daemon_by_hand *h)
{
	unsigned int self = h->group->self;
	struct es_by_hand *own = &h->node[self];
	int was_unkept = es_by_hand_is_unkept(h);

	/* Drained by a node of a version that does not say who did it. */
	if (h->is_drained && !is_drain(&own->state))
		own->state = (struct es_wire_by_hand){.node = (uint16_t)self,
						      .what = ES_WIRE_CHANGE_STATE,
						      .value = ES_NODE_DRAINING,
						      .set_ms = wall_ms()};
	keep_file(h->drained_path, h->is_drained ? &own->state : NULL, &h->kept.state, &h->has_drain,
		  &h->is_drain_unkept);
	keep_file(h->weight_path, own->weight.what ? &own->weight : NULL, &h->kept.weight, &h->has_weight,
		  &h->is_weight_unkept);
	h->again_ms = es_by_hand_is_unkept(h) ? now_ms() + AGAIN_MS : 0;
	if (es_by_hand_is_unkept(h) != was_unkept)
		h->ops->unkept(h->ctx);
}

void es_by_hand_init(struct es_daemon_by_hand *h, const struct es_daemon_by_hand_ops *ops, void *ctx,
		     struct es_group *group, struct es_conf *const *conf, const char *drained_path,
		     const char *weight_path)
{
	*h = (struct es_daemon_by_hand){.ops = ops,
					.ctx = ctx,
					.group = group,
					.conf = conf,
					.drained_path = drained_path,
					.weight_path = weight_path};
}

int es_by_hand_is_unkept(const struct es_daemon_by_hand *h)
{
	return h->is_drain_unkept || h->is_weight_unkept;
}

void es_by_hand_begin(struct es_daemon_by_hand *h)
{
	unsigned int self = h->group->self;
	struct es_by_hand *own = &h->node[self];
	char text[ES_BY_HAND_TEXT_SIZE];
	int rc = es_by_hand_read(h->drained_path, ES_WIRE_CHANGE_STATE, &own->state);

	if (rc && rc != -ENOENT) {
		es_log(ES_LOG_WARNING,
		       "%s: cannot be read: %s; this node is drained; by whom and until when is "
		       "not known",
		       h->drained_path, strerror(-rc));
		own->state =
			(struct es_wire_by_hand){.what = ES_WIRE_CHANGE_STATE, .value = ES_NODE_DRAINING};
	}
	/* The node is drained because the file exists, whatever is in it. */
	if (rc != -ENOENT) {
		own->state.node = (uint16_t)self;
		h->is_drained = h->has_drain = 1;
		h->group->node[self].state = ES_NODE_DRAINING;
		if (own->state.until_ms)
			h->end_ms = now_ms() + es_by_hand_left_ms(&own->state, wall_ms()) + 1;
		es_log(ES_LOG_WARNING,
		       "this node is drained, as before it started%s; earshot undrain gives it requests "
		       "again",
		       es_by_hand_text(&own->state, text, sizeof(text)));
	} else {
		own->state.what = 0;
	}
	h->kept.state = own->state;
	rc = es_by_hand_read(h->weight_path, ES_WIRE_CHANGE_WEIGHT, &own->weight);
	if (rc && rc != -ENOENT)
		es_log(ES_LOG_WARNING,
		       "%s: cannot be read: %s; this node takes its weight from the configuration",
		       h->weight_path, strerror(-rc));
	if (!rc && own->weight.value <= ES_CONF_WEIGHT_MAX) {
		own->weight.node = (uint16_t)self;
		h->has_weight = 1;
		h->group->node[self].weight = own->weight.value;
		es_log(ES_LOG_WARNING, "this node has weight %u, as before it started, set%s",
		       own->weight.value, es_by_hand_text(&own->weight, text, sizeof(text)));
	} else {
		own->weight.what = 0;
	}
	h->kept.weight = own->weight;
	h->state[self] = h->group->node[self].state;
}

unsigned int es_by_hand_own_weight(const struct es_daemon_by_hand *h)
{
	unsigned int self = h->group->self;
	const struct es_wire_by_hand *weight = &h->node[self].weight;

	return weight->what ? weight->value : configured(h, self);
}

void es_by_hand_changed(struct es_daemon_by_hand *h)
{
	for (unsigned int i = 0; i < h->group->node_count; i++) {
		struct es_by_hand *node = &h->node[i];
		uint8_t state = h->group->node[i].state;

		if (state == ES_NODE_UP && h->state[i] != ES_NODE_UP) {
			node->state.what = 0;
			if (i == h->group->self)
				h->end_ms = 0;
		}
		h->state[i] = state;
		if (node->weight.what && node->weight.value == configured(h, i))
			node->weight.what = 0;
	}
	keep(h);
}

void es_by_hand_view(struct es_daemon_by_hand *h)
{
	const struct es_by_hand *own = &h->node[h->group->self];

	if (is_drain(&own->state))
		h->ops->say(h->ctx, &own->state);
	if (own->weight.what)
		h->ops->say(h->ctx, &own->weight);
}

void es_by_hand_message(struct es_daemon_by_hand *h, const void *payload, size_t len)
{
	struct es_wire_by_hand by_hand;
	struct es_by_hand *node;

	if (es_wire_get_by_hand(payload, len, &by_hand) || by_hand.node >= h->group->node_count)
		return;
	node = &h->node[by_hand.node];
	if (by_hand.what == ES_WIRE_CHANGE_WEIGHT) {
		node->weight = by_hand;
		/*
		 * The word about going back to the configured weight is kept until that is in force: the
		 * story still has to tell who did it.
		 */
		if (by_hand.value == configured(h, by_hand.node) &&
		    by_hand.value == h->group->node[by_hand.node].weight)
			node->weight.what = 0;
	} else if (by_hand.what == ES_WIRE_CHANGE_STATE) {
		/* The word that this node sent itself when it joined does not begin the drain's time anew. */
		int is_known = is_same(&node->state, &by_hand);

		node->state = by_hand;
		if (by_hand.node == h->group->self && !is_known)
			h->end_ms = by_hand.for_s ? now_ms() + by_hand.for_s * 1000ULL : 0;
	}
	/* The end of a drain is kept when the drain has ended (es_by_hand_changed()). */
	if (by_hand.what == ES_WIRE_CHANGE_WEIGHT || is_drain(&by_hand))
		keep(h);
}

int es_by_hand_set(struct es_daemon_by_hand *h, const struct es_wire_by_hand *word)
{
	unsigned int node = word->node;

	if (!es_group_is_in(h->group) || node >= h->group->node_count || !h->group->node[node].is_member)
		return -ENOTCONN;
	h->ops->say(h->ctx, word);
	es_group_change(h->group, node, word->what, word->value);
	return 0;
}

void es_by_hand_tick(struct es_daemon_by_hand *h)
{
	unsigned int self = h->group->self;
	struct es_wire_by_hand word = {.node = (uint16_t)self,
				       .what = ES_WIRE_CHANGE_STATE,
				       .value = ES_NODE_UP,
				       .why = "its time is over"};

	if (h->again_ms && now_ms() >= h->again_ms)
		keep(h);
	if (!h->end_ms || now_ms() < h->end_ms || !es_group_is_in(h->group) ||
	    h->group->node[self].state != ES_NODE_DRAINING)
		return;
	h->end_ms = now_ms() + AGAIN_MS;
	word.set_ms = wall_ms();
	es_by_hand_set(h, &word);
}

const struct es_wire_by_hand *es_by_hand_shown(const struct es_daemon_by_hand *h, unsigned int node,
					       enum es_wire_change_what what)
{
	const struct es_by_hand *by_hand = &h->node[node];

	if (what == ES_WIRE_CHANGE_STATE)
		return is_drain(&by_hand->state) && h->group->node[node].state == ES_NODE_DRAINING
			       ? &by_hand->state
			       : NULL;
	return by_hand->weight.what && h->group->node[node].weight == by_hand->weight.value ? &by_hand->weight
											    : NULL;
}
