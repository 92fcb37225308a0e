/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_REPORT_CRASH_H
#define ES_REPORT_CRASH_H

/* The reply to `crash`: what would become of a node's connections if it were lost at this moment. */
#include <json-c/json.h>
#include "inspector/config/config.h"
#include "kmod/core/track.h"

/*
 * A connection's fate in a crash; all but the first two: a RST, at once if its client has waited for a while,
 * else at its next segment
 */
enum es_crash_fate {
	ES_CRASH_SURVIVES,  /* others know it, and go on with its next request if that is safe */
	ES_CRASH_RESUMES,   /* others know its long response, and send the rest */
	ES_CRASH_ANSWERING, /* a request is with the server, or the answer not acknowledged */
	ES_CRASH_DECIDING,  /* the inspector has a request */
	ES_CRASH_PINNED,    /* nobody knows where its next request begins */
	ES_CRASH_NOT_TOLD,  /* idle, and no other node knows that yet */
	ES_CRASH_OFF,	    /* idle; the service has no `survive` */
	ES_CRASH_UNREAD,    /* of a service whose requests are not all read */
	ES_CRASH_FATES,
};

/* struct es_report_crash - a reply that is being built; begin with zeros */
struct es_report_crash {
	unsigned long long fates[ES_CONF_SERVICES_MAX][ES_CRASH_FATES];
};

/*
 * es_report_crash_add() - one of the connections whose every request is read
 * @is_told: do others know what they need to go on with it, that it is idle, or its long response? One that
 * is closing, or of no service, is not counted.
 */
void es_report_crash_add(struct es_report_crash *report, const struct es_conf *conf,
			 const struct es_track_entry *entry, int is_told);

/*
 * es_report_crash_kept() - one that another node has told of, with its @fate; one of no service is not
 * counted
 */
void es_report_crash_kept(struct es_report_crash *report, const struct es_conf *conf,
			  const struct es_flow *flow, enum es_crash_fate fate);

/**
 * struct es_report_crash_part - the reply of a node that can only say what it keeps for another one
 * @node: whose connections they are; @from: who says that
 * @is_lost: @node is no member; @is_awaited: it was asked, and may answer in a moment
 */
struct es_report_crash_part {
	const char *node;
	const char *from;
	int is_lost;
	int is_awaited;
};

struct json_object *es_report_crash_part(const struct es_report_crash *report, const struct es_conf *conf,
					 const struct es_report_crash_part *part);

/* es_report_crash_finish() - @node: the node's name. The reply is the caller's. */
struct json_object *es_report_crash_finish(const struct es_report_crash *report, const struct es_conf *conf,
					   const char *node);

#endif
