// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The story of the cluster's nodes, as an operator would tell it: who joined and left, and why, and which
 * ring followed. A node that was silent itself has not seen who came and went: it tells only which nodes it
 * serves with.
 */
#include <stdio.h>
#include <string.h>
#include "inspector/daemon/membership_internal.h"

#define PATIENCE_MS 1500 /* a ring comes sooner, or something is wrong */

static const struct es_group_node *node_of(const struct es_membership *m, unsigned int i)
{
	return &m->group.node[i];
}

static enum es_log_level level_of(enum es_event_kind kind)
{
	return kind == ES_EVENT_crash ? ES_LOG_WARNING : ES_LOG_INFO;
}

/* Tells all that is not told yet; the last line with @ring, which may be "". */
static void flush(struct es_membership *m, const char *ring)
{
	struct es_story *s = &m->story;

	for (unsigned int i = 0; i < s->count; i++)
		es_event(s->told[i].kind, level_of(s->told[i].kind), node_of(m, s->told[i].node)->name,
			 "%s%s%s", s->told[i].text, i + 1 == s->count && *ring ? "; " : "",
			 i + 1 == s->count ? ring : "");
	s->count = 0;
}

static void tell(struct es_membership *m, enum es_event_kind kind, unsigned int node, const char *text)
{
	struct es_story *s = &m->story;

	if (s->count == ES_STORY_MAX)
		flush(m, "");
	if (!s->count)
		s->since_ms = es_membership_now_ms();
	s->told[s->count].kind = kind;
	s->told[s->count].node = node;
	snprintf(s->told[s->count++].text, sizeof(s->told[0].text), "%s %s", node_of(m, node)->name, text);
}

static void tell_gone(struct es_membership *m, unsigned int i)
{
	const struct es_group_node *node = node_of(m, i);
	char text[128];

	if (node->is_member) {
		snprintf(text, sizeof(text), "is refused: %.100s", node->refused);
		tell(m, ES_EVENT_leave, i, text);
	} else if (node->reason == ES_GROUP_LEFT) {
		tell(m, ES_EVENT_leave, i, "left in order");
	} else {
		snprintf(text, sizeof(text), "left: %s", es_group_reason_text(node->reason));
		tell(m, ES_EVENT_crash, i, text);
	}
}

static void node_look(struct es_membership *m, unsigned int i)
{
	const struct es_group_node *node = node_of(m, i);
	struct es_story *s = &m->story;
	int is_in = node->is_member && node->is_accepted, was_in = s->is_in[i];
	int is_draining = node->state == ES_NODE_DRAINING;
	const struct es_by_hand *by_hand = &m->by_hand.node[i];
	char text[240], word[ES_BY_HAND_TEXT_SIZE] = "";

	if (by_hand->state.what && by_hand->state.value == node->state)
		es_by_hand_text(&by_hand->state, word, sizeof(word));
	if (s->has_ring && is_in && !was_in)
		tell(m, ES_EVENT_join, i, is_draining ? "joined, drained" : "joined");
	/* A view only says who is there; each says then what it is. */
	if (s->has_ring && !is_in && was_in && (!node->is_member || node->refused[0]))
		tell_gone(m, i);
	else if (!is_in && was_in && node->is_member)
		return;
	/* The ring stays as it is. */
	if (s->has_ring && is_in && was_in && is_draining != s->is_draining[i])
		es_event(is_draining ? ES_EVENT_drain : ES_EVENT_undrain, ES_LOG_INFO, node->name, "%s %s%s",
			 node->name, is_draining ? "is drained" : "is not drained any more", word);
	if (s->has_ring && is_in && was_in && node->weight != s->weight[i]) {
		word[0] = 0;
		if (by_hand->weight.what && by_hand->weight.value == node->weight)
			es_by_hand_text(&by_hand->weight, word, sizeof(word));
		snprintf(text, sizeof(text), "has weight %u, before %u%.200s", node->weight, s->weight[i],
			 word);
		tell(m, ES_EVENT_weight, i, text);
	}
	s->is_in[i] = (uint8_t)is_in;
	s->is_draining[i] = (uint8_t)is_draining;
	s->weight[i] = node->weight;
}

void es_story_changed(struct es_membership *m)
{
	for (unsigned int i = 0; i < m->group.node_count; i++)
		node_look(m, i);
}

void es_story_serve(struct es_membership *m, uint32_t epoch)
{
	char ring[320] = "ring of ";
	size_t len = strlen(ring);
	const char *between = "";

	es_story_changed(m);
	if (!m->story.has_ring)
		tell(m, ES_EVENT_join, m->group.self, "joined");
	m->story.has_ring = 1;
	for (unsigned int i = 0; i < m->group.node_count && len < sizeof(ring) - 24; i++)
		if (m->weights[i] && node_of(m, i)->is_member) {
			len += (size_t)snprintf(ring + len, sizeof(ring) - len, "%s%.60s", between,
						node_of(m, i)->name);
			between = ", ";
		}
	if (len > sizeof(ring) - 24)
		len = sizeof(ring) - 24;
	snprintf(ring + len, sizeof(ring) - len, "%s, epoch %u", *between ? "" : "no node", epoch);
	if (m->story.count)
		flush(m, ring);
	else
		es_event(ES_EVENT_ring, ES_LOG_INFO, NULL, "%s", ring);
}

void es_story_silence(struct es_membership *m)
{
	flush(m, "");
	m->story.has_ring = 0;
}

void es_story_quorum(struct es_membership *m, int is_quorate)
{
	if (m->story.is_quorate == is_quorate)
		return;
	m->story.is_quorate = is_quorate;
	es_event(ES_EVENT_quorum, is_quorate ? ES_LOG_INFO : ES_LOG_WARNING, NULL, "%s",
		 is_quorate ? "this side of the cluster has quorum"
			    : "this side of the cluster has no quorum");
}

void es_story_tick(struct es_membership *m)
{
	if (m->story.count && es_membership_now_ms() - m->story.since_ms >= PATIENCE_MS)
		flush(m, "");
}
