/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_RULE_TEXT_H
#define ES_RULE_TEXT_H

/* Rules, locations and the URL table in words, for es_explain() (policy/policy.h). */
#include "inspector/config/rule.h"
#include "inspector/policy/policy.h"
#include "inspector/policy/url_info.h"

/* "#0 #2", as many as fit into @text. Returns @text. */
const char *es_nodes_text(struct es_node_set nodes, char *text, size_t size);

/* An enum es_priority in words. */
const char *es_priority_name(unsigned int priority);

/* es_affinity_name() - "cookie SID" or "header X-User" or what else decides about @conf's affinity; in
 * @text, or not */
const char *es_affinity_name(const struct es_conf_rule *conf, char *text, size_t size);

/*
 * es_explain_info() - one step of the explanation: those fields @which that @info has
 * @who, @name: whose they are: "rule " and "video", or "URL table" and ""
 */
void es_explain_info(const struct es_cluster_view *view, const char *who, const char *name,
		     const struct es_url_info *info, __u32 which);

#endif
