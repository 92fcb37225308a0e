/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_RULES_H
#define ES_RULES_H

/*
 * The configuration's word about a request before the policy is asked (Yang and Luo sections 2 and 4: content
 * placement, segregation, session integrity, priority).
 *
 * `rule` sections are tried in the order of the file. All conditions of a rule must hold, and of a list any
 * value. For each thing that rules can say (nodes, type, class, cost, priority, affinity) the first rule that
 * matches and says it wins. The URL table says what no rule says: `location` sections, where the longest path
 * wins, then the document root, then responses (url_table.h).
 *
 * A request that is denied gets the answer of the first rule that matches and says `deny`, unless that says
 * `no`; nothing else is asked then. Else, in this order:
 *   1. nodes: only these are left to the policy, be they backup nodes of the service or not. If none of them
 *      is a target, those of `backup` are. If none of these is, `otherwise` decides: any = all nodes again
 *      (the default: most clusters have most content everywhere, and a request at the wrong node is slow or a
 *      404, one that is refused is lost for sure), reject = the service's page, or 503; one that drains is
 *      better;
 *   2. priority: where the nodes have as many requests in hand, on average, as the service's admit_low or
 *      admit_normal says, requests of that priority get 503; high ones never do;
 *   3. affinity: the node that the value of a cookie or header names is the node (a rule whose cookie names
 *      none says nothing). If it is no target, or not allowed, or no rule says so: the value of a cookie or
 *      header, or the client's address (of IPv6, its /64), hashed on the content ring, and the policy is not
 *      asked. Without a node that is a target and allowed, it is.
 *
 * A request that none of these refuses is counted for its client by the first rule that matches and says
 * `rate`; a client that has none left gets 429 (rates.h). The caller sees to that.
 *
 * A condition on the path looks at its normal form; a path without one (url_path.h) meets none of them.
 */
#include "inspector/config/config.h"
#include "inspector/policy/policy.h"
#include "inspector/rules/rates.h"
#include "inspector/urls/url_table.h"

struct es_rules;

#define ES_RULES_PASS	(-1) /* the policy is asked */
#define ES_RULES_REJECT (-2)

/* The refuser of a request: one of these, or ES_RULES_BY_RULE and the rule's number in struct es_conf. */
enum es_rules_by {
	ES_RULES_BY_PLUGIN,
	ES_RULES_BY_ADMIT_LOW,
	ES_RULES_BY_ADMIT_NORMAL,
	ES_RULES_BY_LOCATION,
	ES_RULES_BY_ALL_DOWN,	/* when_all_down = reject */
	ES_RULES_BY_UNFINISHED, /* its head did not come to an end, and a rule might have refused it */
	ES_RULES_BY_RULE,
};

/* @by: an enum es_rules_by, or beyond; @body: of the answer, for as long as the process lives; NULL: the
 * status in words; @type: as struct es_rejection has it */
struct es_rules_refusal {
	unsigned int by;
	unsigned int status;
	unsigned int retry_after_s;
	const char *body;
	const char *type;
};

/* es_rules_new() - those of @conf, which outlives them. One thread at a time. Returns 0, -ENOMEM or -EIO. */
int es_rules_new(const struct es_conf *conf, struct es_rules **ret_rules);
void es_rules_free(struct es_rules **rules);

/**
 * es_rules_wait() - may what is not here yet of the head decide whether @request is refused?
 * By `deny`, `rate`, or `otherwise = reject`. Its head is all that is here, as es_http_head_truncate() leaves
 * it.
 */
int es_rules_wait(const struct es_rules *rules, unsigned int service, const struct es_request_view *request);

/**
 * es_rules_apply() - complete @request and say what the rules make of it
 * @table: the service's, or NULL
 * Fills in size_bytes, cost, is_dynamic, class, allowed and rate. Returns a node that is a target,
 * ES_RULES_PASS, or ES_RULES_REJECT and @ret_refusal.
 */
int es_rules_apply(struct es_rules *rules, unsigned int service, struct es_url_table *table,
		   struct es_request_view *request, const struct es_cluster_view *view,
		   struct es_rules_refusal *ret_refusal);

/* es_rules_weigh() - the same without a word on where it goes: only size_bytes, cost, is_dynamic and class */
void es_rules_weigh(struct es_rules *rules, unsigned int service, struct es_url_table *table,
		    struct es_request_view *request, const struct es_cluster_view *view);

/* es_rules_page() - what the clients of @service are told while nobody can serve it: its page, or 503 */
void es_rules_page(const struct es_rules *rules, unsigned int service, unsigned int by,
		   struct es_rules_refusal *ret_refusal);

/* es_rules_layer4() - what the rules for @service say of a connection that nobody reads: a node that is a
 * target, or ES_RULES_PASS. They can say affinity = source alone (es_conf_rule_is_of_source()). */
int es_rules_layer4(struct es_rules *rules, unsigned int service, const struct es_request_view *request,
		    const struct es_cluster_view *view);

#endif
