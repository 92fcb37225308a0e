/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_SETTINGS_H
#define ES_DAEMON_SETTINGS_H

/*
 * With static membership nobody joins, so nodes ask each other for their settings from time to time, and show
 * where they differ. (Members of a cluster with a bus tell their settings there.) A question says what the
 * asker knows already, so that only news are told.
 */
#include <ev.h>
#include "inspector/peers/snapshots.h"
#include "inspector/report/report.h"

struct es_daemon;

#define ES_SETTINGS_ASK_S 2.0

/*
 * struct es_daemon_told - of another node; @text: "" until it has told; @answered_ns: when this node last
 * answered it
 */
struct es_daemon_told {
	struct es_snapshot_inbox inbox;
	unsigned long long answered_ns;
	char text[ES_SNAPSHOT_TEXT_MAX + 1];
};

/* struct es_daemon_settings - @own: as others are told; @of: by node; both NULL with a bus */
struct es_daemon_settings {
	struct ev_timer timer;
	char *own;
	struct es_daemon_told *of;
};

/* es_daemon_settings_start() - ask and answer from now on, with static membership. Returns 0 or -ENOMEM. */
int es_daemon_settings_start(struct es_daemon *daemon, struct es_conf_error *err);

/* es_daemon_settings_rebind() - after a reload: there are others */
void es_daemon_settings_rebind(struct es_daemon *daemon);

/* es_daemon_settings_stop() - may be called without start */
void es_daemon_settings_stop(struct es_daemon *daemon);

/* es_daemon_settings_message() - a question for this node's settings, or a part of another one's */
void es_daemon_settings_message(struct es_daemon *daemon, const struct es_snapshot_message *message);

/* es_daemon_settings_told() - this node's settings, and those of nodes that are heard now; none with a bus */
void es_daemon_settings_told(const struct es_daemon *daemon, struct es_report_told *ret_told);

/*
 * es_daemon_is_heard() - has @node sent its load within the last seconds? One that is gone differs from
 * nobody.
 */
int es_daemon_is_heard(const struct es_daemon *daemon, unsigned int node);

#endif
