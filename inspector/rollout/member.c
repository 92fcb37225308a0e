// SPDX-License-Identifier: GPL-2.0-or-later
/* A node that takes part in another one's rollout. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/rollout/member.h"

void es_rollout_member_init(struct es_rollout_member *m, const struct es_rollout_ops *ops, void *ctx,
			    unsigned int self, unsigned long long number)
{
	*m = (struct es_rollout_member){.ops = ops, .ctx = ctx, .self = self, .number = number, .leader = -1};
}

void es_rollout_member_stop(struct es_rollout_member *m)
{
	if (m->leader < 0)
		return;
	free(m->text);
	m->text = NULL;
	m->leader = -1;
	if (m->state != ES_ROLLOUT_NONE && m->state != ES_ROLLOUT_REFUSED)
		m->ops->discard(m->ctx);
}

static void say(const struct es_rollout_member *m, unsigned int leader, unsigned long long rollout,
		unsigned long long member, enum es_rollout_state state, const char *why)
{
	const struct es_rollout_message message = {
		.source = m->self,
		.target = leader,
		.kind = ES_ROLLOUT_STATE,
		.state = state,
		.rollout = rollout,
		.member = member,
		.text = why,
		.len = strlen(why),
	};

	m->ops->send(m->ctx, &message);
}

static void say_state(const struct es_rollout_member *m)
{
	say(m, (unsigned int)m->leader, m->rollout, m->member, m->state, m->why);
}

static unsigned int parts_of(const struct es_rollout_member *m)
{
	return (unsigned int)((m->total + ES_ROLLOUT_PART_BYTES - 1) / ES_ROLLOUT_PART_BYTES);
}

static void want(struct es_rollout_member *m)
{
	unsigned int left = parts_of(m) - m->has;
	struct es_rollout_message message = {
		.source = m->self,
		.target = (unsigned int)m->leader,
		.kind = ES_ROLLOUT_WANT,
		.rollout = m->rollout,
		.member = m->member,
		.part = m->has,
		.len = left < ES_ROLLOUT_WINDOW ? left : ES_ROLLOUT_WINDOW,
	};

	m->asked = m->has + (unsigned int)message.len;
	m->asked_ns = m->ops->now_ns(m->ctx);
	m->ops->send(m->ctx, &message);
}

static void begin(struct es_rollout_member *m, const struct es_rollout_message *offer)
{
	char *text = malloc(offer->total);

	if (!text)
		return; /* it is offered again */
	m->leader = (int)offer->source;
	m->rollout = m->last[offer->source] = offer->rollout;
	m->member = m->number++;
	m->state = ES_ROLLOUT_NONE;
	m->why[0] = 0;
	m->text = text;
	m->total = offer->total;
	m->has = 0;
	m->heard_ns = m->ops->now_ns(m->ctx);
	memset(m->got, 0, sizeof(m->got));
	want(m);
}

static int is_this(const struct es_rollout_member *m, const struct es_rollout_message *message)
{
	return m->leader == (int)message->source && m->rollout == message->rollout;
}

static void on_offer(struct es_rollout_member *m, const struct es_rollout_message *offer, int is_leading)
{
	if (!offer->total || offer->total > ES_ROLLOUT_MAX || offer->rollout < m->last[offer->source])
		return;
	if (is_this(m, offer)) {
		if (m->state == ES_ROLLOUT_NONE)
			want(m);
		else
			say_state(m);
	} else if (offer->rollout == m->last[offer->source]) {
		say(m, offer->source, offer->rollout, 0, ES_ROLLOUT_GONE, "");
	} else if (m->leader == (int)offer->source) {
		es_rollout_member_stop(m); /* the leader's word that it was over was lost */
		begin(m, offer);
	} else if (m->leader >= 0 || is_leading) {
		say(m, offer->source, offer->rollout, 0, ES_ROLLOUT_BUSY, "");
	} else {
		begin(m, offer);
	}
}

static void done(struct es_rollout_member *m, int rc, enum es_rollout_state good, enum es_rollout_state bad,
		 const struct es_conf_error *err)
{
	m->state = rc ? bad : good;
	snprintf(m->why, sizeof(m->why), "%s", err->text);
	m->heard_ns = m->ops->now_ns(m->ctx); /* it may have taken long */
	say_state(m);
}

static void check(struct es_rollout_member *m)
{
	struct es_conf_error err = {};
	int rc = m->ops->check(m->ctx, m->text, m->total, &err);

	free(m->text);
	m->text = NULL;
	done(m, rc, ES_ROLLOUT_READY, ES_ROLLOUT_REFUSED, &err);
}

static void on_part(struct es_rollout_member *m, const struct es_rollout_message *part)
{
	size_t at = (size_t)part->part * ES_ROLLOUT_PART_BYTES;

	if (m->state != ES_ROLLOUT_NONE || part->total != m->total || at >= m->total ||
	    part->len != (m->total - at < ES_ROLLOUT_PART_BYTES ? m->total - at : ES_ROLLOUT_PART_BYTES))
		return;
	memcpy(m->text + at, part->text, part->len);
	m->got[part->part / 64] |= 1ULL << part->part % 64;
	while (m->has < parts_of(m) && m->got[m->has / 64] & 1ULL << m->has % 64)
		m->has++;
	if (m->has == parts_of(m))
		check(m);
	else if (m->has >= m->asked)
		want(m);
}

static void on_commit(struct es_rollout_member *m)
{
	struct es_conf_error err = {};

	if (m->state == ES_ROLLOUT_READY)
		done(m, m->ops->commit(m->ctx, &err), ES_ROLLOUT_SWITCHED, ES_ROLLOUT_FAILED, &err);
	else
		say_state(m);
}

static void on_revert(struct es_rollout_member *m)
{
	struct es_conf_error err = {};

	if (m->state == ES_ROLLOUT_SWITCHED)
		done(m, m->ops->revert(m->ctx, &err), ES_ROLLOUT_TAKEN_BACK, ES_ROLLOUT_STUCK, &err);
	else if (m->state == ES_ROLLOUT_READY)
		done(m, 0, ES_ROLLOUT_TAKEN_BACK, ES_ROLLOUT_STUCK, &err);
	else
		say_state(m);
}

/* A rollout that this daemon has never heard of was the former daemon's. */
static void on_restart(struct es_rollout_member *m, const struct es_rollout_message *message, int is_ours)
{
	if (is_ours && m->state == ES_ROLLOUT_SWITCHED)
		m->ops->restart(m->ctx);
	else if (message->rollout <= m->last[message->source])
		say(m, message->source, message->rollout, 0, ES_ROLLOUT_FAILED, "it has given up waiting");
	else if (m->ops->has_begun(m->ctx))
		say(m, message->source, message->rollout, 0, ES_ROLLOUT_GONE, "");
}

void es_rollout_member_message(struct es_rollout_member *m, const struct es_rollout_message *message,
			       int is_leading)
{
	int is_ours = is_this(m, message) && m->member == message->member;

	if (is_this(m, message) && (is_ours || message->kind == ES_ROLLOUT_OFFER))
		m->heard_ns = m->ops->now_ns(m->ctx);
	switch (message->kind) {
	case ES_ROLLOUT_OFFER:
		on_offer(m, message, is_leading);
		break;
	case ES_ROLLOUT_PART:
		if (is_ours)
			on_part(m, message);
		break;
	case ES_ROLLOUT_COMMIT:
	case ES_ROLLOUT_REVERT:
		if (!is_ours)
			say(m, message->source, message->rollout, 0, ES_ROLLOUT_GONE, "");
		else if (message->kind == ES_ROLLOUT_COMMIT)
			on_commit(m);
		else
			on_revert(m);
		break;
	case ES_ROLLOUT_RESTART:
		on_restart(m, message, is_ours);
		break;
	case ES_ROLLOUT_END:
		if (is_ours)
			es_rollout_member_stop(m);
		break;
	default:
		break; /* a node's word to a leader, or one of a version to come */
	}
}

void es_rollout_member_tick(struct es_rollout_member *m)
{
	unsigned long long now_ns = m->ops->now_ns(m->ctx);

	if (m->leader < 0)
		return;
	if (now_ns - m->heard_ns >= ES_ROLLOUT_PATIENCE_MS * ES_ROLLOUT_NS_PER_MS)
		es_rollout_member_stop(m);
	else if (m->state == ES_ROLLOUT_NONE &&
		 now_ns - m->asked_ns >= ES_ROLLOUT_TICK_MS * ES_ROLLOUT_NS_PER_MS)
		want(m);
}
