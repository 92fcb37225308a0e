/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_STATUS_REPORT_H
#define ES_DAEMON_STATUS_REPORT_H

struct es_daemon;
struct json_object;

/* es_daemon_status_report() - what `status` answers; the caller's */
struct json_object *es_daemon_status_report(struct es_daemon *daemon);

#endif
