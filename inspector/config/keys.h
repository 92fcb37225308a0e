/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CONFIG_KEYS_H
#define ES_CONFIG_KEYS_H

/*
 * How a line of the table of keys is written (keys_*.c). key_reference.py makes the sections of
 * earshot.conf(5) and conf/earshot.conf.example from these files, so the comment before a key is for
 * operators: its meaning, in the markup of scdoc(5). The example has the first paragraph alone. Range,
 * default and whether nodes must be alike follow from the line itself. "@example VALUE" is what the example
 * shows for a key without a default, or with one that would be refused there; "--- TEXT" is a line of the
 * manual page between two keys. A location's key without a comment is as in a rule. The comment before a
 * table is the section's.
 */
#include <stddef.h>

#include "inspector/config/internal.h"

#define FIELD(section, field)                                                                                \
	.offset = offsetof(struct es_conf_##section, field),                                                 \
	.size = sizeof(((struct es_conf_##section *)0)->field)
#define NUMBER(section, field, alike_, default_, min_, max_, unit_, zero_)                                   \
	{                                                                                                    \
		.name = #field, .kind = ES_CONF_KIND_NUMBER, FIELD(section, field), alike_,                  \
		.def = (default_), .min = (min_), .max = (max_), .unit = (unit_), .zero = (zero_)            \
	}
#define CHOICE(section, field, alike_, default_, choices_)                                                   \
	{                                                                                                    \
		.name = #field, .kind = ES_CONF_KIND_CHOICE, FIELD(section, field), alike_,                  \
		.def = (default_), .choices = (choices_)                                                     \
	}
#define VALUE(section, field, alike_, default_, kind_)                                                       \
	{                                                                                                    \
		.name = #field, .kind = ES_CONF_KIND_##kind_, FIELD(section, field), alike_,                 \
		.def = (default_)                                                                            \
	}
#define LIST(section, key, field, alike_, item_)                                                             \
	{                                                                                                    \
		.name = (key), .kind = ES_CONF_KIND_LIST, FIELD(section, field), alike_, .def = OPTIONAL,    \
		.item = ES_CONF_ITEM_##item_                                                                 \
	}
#define NAMED(section, key, field, alike_, kind_)                                                            \
	{                                                                                                    \
		.name = (key), .kind = ES_CONF_KIND_##kind_, FIELD(section, field), alike_, .def = OPTIONAL  \
	}
#define REQUIRED NULL
#define OPTIONAL ""

/*
 * Must nodes be alike? MUST: a node that differs is refused; its line with '=' is written by hand, as the
 * wire format has it (self/settings.c). SHOULD: told in a line of its own, named as the key. SHOULD_IN: as
 * "KEY:VALUE" in a line that keys of the section share; @line follows the section's own name there.
 * SHOULD_AS: the same, with @lead instead of the name. SHOULD_NUMBERED: the same as SHOULD_IN, with a
 * choice's number, which the version before tells. LISTED: in the line of the nodes, also written by hand, of
 * which lists may fit that differ (membership/lists.c). OWN: not compared. A line's name and form are for
 * ever (alike.h), so a new key that should be alike is a SHOULD.
 */
#define MUST			.alike = ES_CONF_MUST
#define SHOULD			.alike = ES_CONF_SHOULD
#define SHOULD_IN(line_)	.alike = ES_CONF_SHOULD, .line = (line_)
#define SHOULD_AS(line_, lead_) .alike = ES_CONF_SHOULD, .line = (line_), .lead = (lead_)
#define SHOULD_NUMBERED(line_)	.alike = ES_CONF_SHOULD, .line = (line_), .is_numbered = 1
#define LISTED			.alike = ES_CONF_LISTED
#define OWN			.alike = ES_CONF_OWN

static const struct es_conf_choice yes_no[] = {
	{"yes", 1},
	{"no", 0},
	{NULL, 0},
};

extern const struct es_conf_key es_conf_cluster_keys[], es_conf_datapath_keys[], es_conf_inspector_keys[],
	es_conf_status_keys[], es_conf_log_keys[], es_conf_node_keys[], es_conf_service_keys[],
	es_conf_check_keys[], es_conf_outlier_keys[], es_conf_otherwise_keys[], es_conf_tls_keys[],
	es_conf_plugin_keys[], es_conf_rule_keys[], es_conf_location_keys[];

#endif
