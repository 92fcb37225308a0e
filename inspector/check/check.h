/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECTOR_CHECK_H
#define ES_INSPECTOR_CHECK_H

/*
 * The checks of `earshot check`. A check is a function that looks at the facts (facts.h) and reports at
 * least one finding; its group's table gives it a name and says why it matters. A new check is a function and
 * a line in the table of <group>.c, a new group a line in that of run.c.
 */
#include <json-c/json.h>
#include <stddef.h>
#include <stdio.h>

#include "inspector/check/facts.h"
#include "inspector/config/config.h"

/* In ascending order: the later, the more it matters. */
enum es_check_severity {
	ES_CHECK_OK,
	ES_CHECK_INFO,	    /* worth knowing, nothing to do */
	ES_CHECK_UNCHECKED, /* could not be looked at */
	ES_CHECK_WARNING,
	ES_CHECK_ERROR,
	ES_CHECK_SEVERITIES,
};

struct es_check;

/* @why: one sentence, what goes wrong otherwise */
struct es_check_item {
	const char *name;
	const char *why;
	void (*run)(struct es_check *check);
};

/**
 * struct es_check_group - checks that look at one thing
 * @items: ends with a nameless one
 * @enter: may be NULL; can the items look at all? Sets an item of its own. Returns 0, or 1 when it has
 * reported instead of them
 * @worst: may be NULL; no finding of the group is more severe than this
 */
struct es_check_group {
	const char *name;
	const struct es_check_item *items;
	int (*enter)(struct es_check *check);
	enum es_check_severity (*worst)(const struct es_check *check);
};

extern const struct es_check_group es_check_cluster_group, es_check_kernel_group, es_check_network_group,
	es_check_neighbours_group, es_check_server_group, es_check_tls_group, es_check_corosync_group,
	es_check_members_group;

/* @id: "group.check"; @action: the command or configuration line that mends it, NULL when there is none */
struct es_check_finding {
	const struct es_check_group *group;
	char id[64];
	enum es_check_severity severity;
	char *found;
	const char *why;
	char *action;
};

/**
 * struct es_check - a run of the checks
 * @self: this node's index in @conf, or -1 when that is not known
 */
struct es_check {
	const struct es_conf *conf;
	int self;
	const struct es_facts *facts;
	const struct es_check_group *group;
	const struct es_check_item *item;
	struct es_check_finding *findings;
	size_t count;
	size_t totals[ES_CHECK_SEVERITIES];
};

/* run.c: runs one group, or all of them. Exits when there is no memory. */
/* quorum_device.c: an item of es_check_corosync_group */
void es_check_quorum_device(struct es_check *check);
void es_check_run_group(struct es_check *check, const struct es_check_group *group);
void es_check_run(struct es_check *check);

/* finding.c */
void es_check_fini(struct es_check *check);

/* "ok", "info", "unchecked", "warning", "error" */
const char *es_check_severity_name(enum es_check_severity severity);

/*
 * Findings of the check that runs. @found says what the check has found, without a full stop. An action may
 * be made on the spot with es_check_action(), whose result lasts until the next call.
 */
void es_check_ok(struct es_check *check, const char *found, ...) __attribute__((format(printf, 2, 3)));
void es_check_info(struct es_check *check, const char *found, ...) __attribute__((format(printf, 2, 3)));
void es_check_unchecked(struct es_check *check, const char *found, ...) __attribute__((format(printf, 2, 3)));
void es_check_warning(struct es_check *check, const char *action, const char *found, ...)
	__attribute__((format(printf, 3, 4)));
void es_check_error(struct es_check *check, const char *action, const char *found, ...)
	__attribute__((format(printf, 3, 4)));
const char *es_check_action(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Is the service on this node, or is it not known which node this is? */
int es_check_is_here(const struct es_check *check, unsigned int service);

/* "n1", or "(unknown)" */
const char *es_check_self_name(const struct es_check *check);

/*
 * ipv6.c, items of the network group, about services with an IPv6 address: is IPv6 on; has the public
 * interface a link-local address; is it in the groups to which neighbours send their questions?
 */
void es_check_ipv6(struct es_check *check);
void es_check_link_local(struct es_check *check);
void es_check_solicited(struct es_check *check);

/*
 * settings.c, items of the members' group: does a node differ from most, and do settings differ that should
 * not?
 */
void es_check_drift(struct es_check *check);
void es_check_settings(struct es_check *check);

/* print.c */
void es_check_print(const struct es_check *check, int verbose, FILE *file);
struct json_object *es_check_json(const struct es_check *check);

#endif
