// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Decides which nodes' lists of nodes go together. A node is known by its place in the list, so two lists go
 * together if no place has two nodes. The place of a node that is no member may be vacant in one of them,
 * since the members add or remove such a node one after the other.
 */
#include <string.h>
#include "membership/group_internal.h"

#define LIST		 "=nodes"
#define MAY_DIFFER	 "nodes_may_differ"
#define REMOVED		 "@removed"
#define LEN_OF(s)	 (sizeof(s) - 1)
#define FIND(s, n, v, l) es_group_setting_find(s, n, LEN_OF(n), v, l)

struct list {
	const char *text;
	size_t len;
};

static int list_of(const char *settings, struct list *ret)
{
	return FIND(settings, LIST, &ret->text, &ret->len);
}

int es_group_is_list(const char *name, size_t len)
{
	return len == LEN_OF(LIST) && !memcmp(name, LIST, len);
}

/* Takes the first entry, "NAME@ADDRESS", off the list; returns 0 after the last one. */
static int entry_next(struct list *list, struct list *ret_entry)
{
	const char *comma = memchr(list->text, ',', list->len);
	size_t len = comma ? (size_t)(comma - list->text) : list->len;

	if (!list->len)
		return 0;
	*ret_entry = (struct list){list->text, len};
	len += comma != NULL;
	list->text += len;
	list->len -= len;
	return 1;
}

static size_t name_len(const struct list *entry)
{
	const char *at = memchr(entry->text, '@', entry->len);

	return at ? (size_t)(at - entry->text) : entry->len;
}

static int is_removed(const struct list *entry)
{
	return entry->len - name_len(entry) == LEN_OF(REMOVED) &&
	       !memcmp(entry->text + name_len(entry), REMOVED, LEN_OF(REMOVED));
}

static int has_node(struct list list, const char *name)
{
	struct list entry;

	while (entry_next(&list, &entry))
		if (!is_removed(&entry) && name_len(&entry) == strlen(name) &&
		    !memcmp(entry.text, name, name_len(&entry)))
			return 1;
	return 0;
}

static int is_same_place(const struct list *a, const struct list *b)
{
	if (is_removed(a) || is_removed(b))
		return name_len(a) == name_len(b) && !memcmp(a->text, b->text, name_len(a));
	return a->len == b->len && !memcmp(a->text, b->text, a->len);
}

static int fit(struct list a, struct list b)
{
	struct list in_a, in_b;

	if (a.len == b.len && !memcmp(a.text, b.text, a.len))
		return 1;
	while (entry_next(&a, &in_a) && entry_next(&b, &in_b))
		if (!is_same_place(&in_a, &in_b))
			return 0;
	return 1;
}

int es_group_lists_fit(const char *settings, const char *other)
{
	const char *value;
	struct list a, b;
	size_t len;

	return FIND(settings, MAY_DIFFER, &value, &len) && FIND(other, MAY_DIFFER, &value, &len) &&
	       list_of(settings, &a) && list_of(other, &b) && fit(a, b);
}

int es_group_lists_admit(const struct es_wire_hello *a, const struct es_wire_hello *b)
{
	struct list of_a, of_b;

	return es_group_lists_fit(a->settings, b->settings) && list_of(a->settings, &of_a) &&
	       list_of(b->settings, &of_b) && has_node(of_a, b->name) && has_node(of_b, a->name);
}

int es_group_lists_may_differ(const char *settings)
{
	const char *value;
	size_t len;

	return FIND(settings, MAY_DIFFER, &value, &len) && FIND(settings, LIST, &value, &len);
}
