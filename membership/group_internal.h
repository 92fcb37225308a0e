/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_MEMBERSHIP_GROUP_INTERNAL_H
#define ES_MEMBERSHIP_GROUP_INTERNAL_H

#include "membership/group.h"

/*
 * es_group_round() - decides who is on the ring, now that all HELLOs are there. Returns 1 if an epoch is to
 * begin.
 */
int es_group_round(struct es_group *group, uint64_t now_ms);

/* Is this member one that must be waited for? */
static inline int es_group_counts(const struct es_group_member *member)
{
	return !member->is_excluded;
}

/*
 * How long a node may take itself for a member after the others have heard it last: its lease, from a message
 * that it sent up to a third of one later, and a margin for timers and clocks.
 */
static inline uint64_t es_group_lease_max_ms(const struct es_group *group)
{
	return group->lease_ms + group->lease_ms / 3 + 20;
}

/* group_doubt.c: es_group_doubt() - for so long, at most, from now on */
void es_group_doubt(struct es_group *group, uint64_t ms, uint64_t now_ms);

/*
 * group_grants.c: es_group_grants_round() - all HELLOs of a view are there. es_group_grants_begin() - this
 * node is to stop for the ring that has the members in @is_in; says until when the others hold it.
 * es_group_grants_in_force() - all have stopped, and nobody else may act.
 */
void es_group_grants_round(struct es_group *group);
/* es_group_grants_read() - a node's settings are new */
void es_group_grants_read(struct es_group_node *node);
void es_group_grants_begin(struct es_group *group, const uint8_t *is_in);
void es_group_grants_in_force(struct es_group *group);

/* es_group_settings_tell() - say what this node's settings are since a reload, once, when all can take it */
void es_group_settings_tell(struct es_group *group);
void es_group_on_settings(struct es_group *group, const struct es_group_member *member, const void *payload,
			  size_t len);

/*
 * settings_text.c: es_group_setting_line() - a line's name and value
 * Returns the next line, NULL after the last one.
 */
const char *es_group_setting_line(const char *line, size_t *ret_name_len, const char **ret_value,
				  size_t *ret_value_len);

/*
 * A setting of a node's; returns whether there is one of that name. @name begins with '=' or '~' as its line
 * does.
 */
int es_group_setting_find(const char *settings, const char *name, size_t name_len, const char **ret_value,
			  size_t *ret_value_len);

/* es_group_settings_differ(), but for the lists of nodes */
int es_group_settings_differ_but_lists(const char *there, const char *cluster, char *ret_text, size_t size);

/* Is @name that of the setting that has the list of nodes? */
int es_group_is_list(const char *name, size_t len);

/* es_group_lists_may_differ() - does the version of the node with @settings take lists that are not alike? */
int es_group_lists_may_differ(const char *settings);

/* es_group_lists_fit() - do both versions take lists that are not alike, and does no place have two nodes? */
int es_group_lists_fit(const char *settings, const char *other);

/*
 * es_group_lists_admit() - es_group_lists_fit(), and does each of these two members have the other in its
 * list?
 */
int es_group_lists_admit(const struct es_wire_hello *a, const struct es_wire_hello *b);

void es_group_set_phase(struct es_group *group, enum es_group_phase phase, uint64_t now_ms);

#endif
