/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CONFIG_RULE_H
#define ES_CONFIG_RULE_H

/* A rule or a location, as the configuration has it. */
#include "inspector/config/list.h"
#include "inspector/policy/node_set.h"
#include "kmod/core/types.h"

#define ES_CONF_RULES_MAX 4096 /* rules and locations together */

enum es_conf_type { ES_CONF_TYPE_UNSET, ES_CONF_TYPE_STATIC, ES_CONF_TYPE_DYNAMIC };
enum es_conf_otherwise { ES_CONF_OTHERWISE_ANY, ES_CONF_OTHERWISE_REJECT };

enum es_conf_deny { ES_CONF_DENY_UNSAID, ES_CONF_DENY_YES, ES_CONF_DENY_NO };

enum es_conf_affinity {
	ES_CONF_AFFINITY_NONE,
	ES_CONF_AFFINITY_VALUE,
	ES_CONF_AFFINITY_SOURCE,
	ES_CONF_AFFINITY_ROUTE,
};

#define ES_CONF_RATE_SIZE 16
enum es_conf_drained { ES_CONF_DRAINED_UNSAID, ES_CONF_DRAINED_LEAVE, ES_CONF_DRAINED_STAY };

#define ES_CONF_DENY_STATUS 403 /* where the file gives none */

/**
 * struct es_conf_rule - a rule or a location; rules/rules.h says what they do
 * @name: of a rule; of a location, its path, decoded. @service: -1: all that are inspected
 * @rate: as es_conf_rate_parse() reads it, "": none; @burst: 0: as many as in @rate
 * @status, @body: of the answer to a request that is denied; 0, "": ES_CONF_DENY_STATUS, the status in words
 * @class, @priority: 1 + enum es_request_class, enum es_priority; 0, as all zeros here: nothing is said
 */
struct es_conf_rule {
	char name[ES_CONF_PATH_SIZE];
	int is_location;
	int line;
	int service;
	char service_name[ES_CONF_NAME_SIZE];
	/* which requests it matches */
	struct es_conf_list methods;
	struct es_conf_list hosts;
	struct es_conf_list paths;
	struct es_conf_list suffixes;
	struct es_conf_list clients;
	char header[ES_CONF_PATH_SIZE];
	char cookie[ES_CONF_NAME_SIZE];
	/* its effects */
	struct es_conf_list node_names;
	struct es_node_set nodes;
	enum es_conf_otherwise otherwise;
	enum es_conf_type type;
	int class;
	int priority;
	int affinity; /* an enum es_conf_affinity; 0: nothing is said */
	unsigned int cost;
	unsigned int size_bytes;
	/* what the first version did not know, from here on (es_conf_rule_digest()) */
	enum es_conf_deny deny;
	unsigned int status;
	char body[ES_CONF_PATH_SIZE];
	struct es_conf_list backup_names;
	struct es_node_set backup;
	char rate[ES_CONF_RATE_SIZE];
	unsigned int burst;
	enum es_conf_drained when_drained;
};

/*
 * es_conf_rate_parse() - "20/s", "100/m" or "1000/h": so many requests in so many seconds. Returns 0 or
 * -EINVAL.
 */
int es_conf_rate_parse(const char *text, unsigned int *ret_count, unsigned int *ret_per_s);

/*
 * es_conf_rule_is_of_source() - does the rule say affinity = source, and all else nothing that a request
 * would have to be read for?
 */
int es_conf_rule_is_of_source(const struct es_conf_rule *rule);

/* es_conf_rule_digest() - the same for two rules that say the same, on any machine */
__u64 es_conf_rule_digest(const struct es_conf_rule *rule);

#endif
