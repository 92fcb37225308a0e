/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_REPORT_SURVIVAL_H
#define ES_REPORT_SURVIVAL_H

/* Other nodes' connections that this node keeps, and what it has done about those of lost ones. */
#include <json-c/json.h>
#include "inspector/cluster/directory.h"
#include "inspector/cluster/downloads.h"
#include "inspector/resume/figures.h"

/*
 * es_report_downloads() - the member `downloads` of `flows`, the caller's; @own, @others: NULL: no service
 * resumes
 */
struct json_object *es_report_downloads(const struct es_resume_figures *figures,
					const struct es_downloads *own, const struct es_downloads *others);

/*
 * es_report_waiting() - the member `waiting` of `flows`, the caller's; @own: of this node, others know so
 * many
 */
struct json_object *es_report_waiting(unsigned int own, const struct es_directory_figures *waiting);

/*
 * es_report_survival_counters() - add to a report of es_report_counters() what `flows` has as `kept`,
 * `waiting` and `downloads`: kept_WHAT, waiting_WHAT, downloads_WHAT and downloads_reset_WHY
 */
void es_report_survival_counters(struct json_object *report, const struct es_directory_figures *kept,
				 const struct es_directory_figures *waiting,
				 const struct es_resume_figures *downloads);

#endif
