/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_RULES_MATCH_H
#define ES_RULES_MATCH_H

/* Does a request meet a rule's conditions? For rules.c only. */
#include "inspector/base/url_path.h"
#include "inspector/config/config.h"
#include "inspector/policy/policy.h"

struct es_rule_match {
	unsigned int network_count;
	struct es_prefix *network; /* of the rule's clients */
};

/* es_rule_match_init() - returns 0 or -ENOMEM */
int es_rule_match_init(struct es_rule_match *match, const struct es_conf_rule *conf);
void es_rule_match_fini(struct es_rule_match *match);

/* @path: normalised; NULL if it cannot be */
int es_rule_matches(const struct es_rule_match *match, const struct es_conf_rule *conf,
		    const struct es_request_view *request, const struct es_url_path *path);

enum es_rule_chance {
	ES_RULE_MISSED, /* whatever comes, it does not match */
	ES_RULE_OPEN,	/* what is not here yet decides */
	ES_RULE_MET,
};

/* es_rule_chance() - of a request whose head is as long as it is until now */
enum es_rule_chance es_rule_chance(const struct es_rule_match *match, const struct es_conf_rule *conf,
				   const struct es_request_view *request, const struct es_url_path *path);

/* The value of the rule's cookie or header. Returns 0 if there is none. */
int es_rule_affinity_value(const struct es_conf_rule *conf, const struct es_request_view *request,
			   const char **ret_value, size_t *ret_len);

/**
 * es_rule_route() - the node that the rule's cookie or header names, or -1
 * It does if its value is a route of the node, or ends in a full stop and that (Tomcat's jvmRoute); of
 * several routes the longest counts, of the first eight cookies of that name the first that names a node.
 */
int es_rule_route(const struct es_conf *conf, const struct es_conf_rule *rule,
		  const struct es_request_view *request);

#endif
