// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The settings that members tell each other, and tell again after a reload. The ring is judged by HELLOs
 * alone, since an earlier version hears nothing else: settings that are told later are for people, and tell a
 * node that was refused when it is time to join again.
 */
#include <stdio.h>
#include <string.h>
#include "membership/group_internal.h"

/* Is the first word of @a among the words of @b? */
static int first_word_in(const char *a, size_t a_len, const char *b, size_t b_len)
{
	const char *space = memchr(a, ' ', a_len);
	size_t len = space ? (size_t)(space - a) : a_len;

	for (size_t at = 0; at <= b_len;) {
		const char *end = memchr(b + at, ' ', b_len - at);
		size_t word = end ? (size_t)(end - b) - at : b_len - at;

		if (word == len && !memcmp(b + at, a, len))
			return 1;
		at += word + 1;
	}
	return 0;
}

static int is_alike(const char *va, size_t va_len, const char *vb, size_t vb_len)
{
	return first_word_in(va, va_len, vb, vb_len) && first_word_in(vb, vb_len, va, va_len);
}

static int settings_differ_from(const char *a, const char *b, int swapped, int but_lists, char *ret_text,
				size_t size)
{
	const char *line = a, *next, *va, *vb;
	size_t name_len, va_len, vb_len;

	for (; line && *line; line = next) {
		next = es_group_setting_line(line, &name_len, &va, &va_len);
		if (!next || line[0] != '=' || (but_lists && es_group_is_list(line, name_len)))
			continue;
		if (es_group_setting_find(b, line, name_len, &vb, &vb_len) &&
		    is_alike(va, va_len, vb, vb_len))
			continue;
		snprintf(ret_text, size, "%.*s is %.*s there, %.*s in the cluster", (int)name_len - 1,
			 line + 1, (int)(swapped ? vb_len : va_len), swapped ? vb : va,
			 (int)(swapped ? va_len : vb_len), swapped ? va : vb);
		return 1;
	}
	return 0;
}

int es_group_settings_differ(const char *there, const char *cluster, char *ret_text, size_t size)
{
	/* Both ways: one may have a setting that the other lacks. */
	return settings_differ_from(there, cluster, 0, 0, ret_text, size) ||
	       settings_differ_from(cluster, there, 1, 0, ret_text, size);
}

int es_group_settings_differ_but_lists(const char *there, const char *cluster, char *ret_text, size_t size)
{
	return settings_differ_from(there, cluster, 0, 1, ret_text, size) ||
	       settings_differ_from(cluster, there, 1, 1, ret_text, size);
}

void es_group_settings_each(const char *a, const char *b,
			    void (*fn)(void *ctx, const struct es_group_setting *setting), void *ctx)
{
	const char *line, *next;
	size_t name_len;

	for (unsigned int other = 0; other < 2; other++)
		for (line = other ? b : a; line && *line; line = next) {
			struct es_group_setting s = {};
			const char **mine = other ? &s.b : &s.a, **its = other ? &s.a : &s.b;
			size_t *mine_len = other ? &s.b_len : &s.a_len,
			       *its_len = other ? &s.a_len : &s.b_len;
			int found;

			next = es_group_setting_line(line, &name_len, mine, mine_len);
			s.must = line[0] == '=';
			if (!next || (!s.must && line[0] != '~'))
				continue;
			found = es_group_setting_find(other ? a : b, line, name_len, its, its_len);
			if (found ? other || is_alike(s.a, s.a_len, s.b, s.b_len) : !s.must)
				continue;
			/* Lists that fit are those of one cluster. */
			if (es_group_is_list(line, name_len) && es_group_lists_fit(a, b))
				s.must = 0;
			s.name = line + 1;
			s.name_len = name_len - 1;
			fn(ctx, &s);
		}
}

void es_group_settings_tell(struct es_group *group)
{
	const struct es_group_node *self = &group->node[group->self];

	/*
	 * Until all HELLOs are there, settings that are told now could be older than a HELLO that is not
	 * judged yet.
	 */
	if (!group->settings_are_new || group->phase <= ES_GROUP_VIEW)
		return;
	group->settings_are_new = 0;
	group->ops->send(group->ctx, ES_WIRE_SETTINGS, self->settings, strlen(self->settings));
}

void es_group_on_settings(struct es_group *group, const struct es_group_member *member, const void *payload,
			  size_t len)
{
	struct es_group_node *node;

	if (member->node < 0 || member->node == (int)group->self || len >= sizeof(node->settings))
		return;
	node = &group->node[member->node];
	memcpy(node->settings, payload, len);
	node->settings[len] = 0;
	es_group_grants_read(node);
	group->settings_changed = 1;
}

/*
 * The member by whose settings the next view will judge: all on the ring have the same epoch, so it is the
 * one with the lowest id.
 */
static const struct es_group_member *next_reference(const struct es_group *group)
{
	const struct es_group_member *first = NULL;

	for (unsigned int i = 0; i < group->member_count; i++) {
		const struct es_group_member *m = &group->member[i];

		if (!es_group_counts(m) || m->node < 0 || m->is_leaving || !group->node[m->node].is_accepted)
			continue;
		if (!first || m->id.nodeid < first->id.nodeid ||
		    (m->id.nodeid == first->id.nodeid && m->id.pid < first->id.pid))
			first = m;
	}
	return first;
}

static int is_judged(const struct es_group *group, unsigned int node)
{
	return node == group->self || group->node[node].is_accepted;
}

int es_group_is_alike_again(struct es_group *group)
{
	const struct es_group_node *self = &group->node[group->self];
	const struct es_group_member *reference;
	char unwanted[ES_GROUP_TEXT_SIZE];

	if (!group->settings_changed || group->phase != ES_GROUP_STABLE)
		return 0;
	group->settings_changed = 0;
	if (!self->is_member || self->is_accepted || !self->refused[0])
		return 0;
	reference = next_reference(group);
	for (unsigned int i = 0; reference && i < group->node_count; i++)
		if (is_judged(group, i) &&
		    es_group_settings_differ(group->node[i].settings, group->node[reference->node].settings,
					     unwanted, sizeof(unwanted)))
			reference = NULL;
	return reference != NULL;
}
