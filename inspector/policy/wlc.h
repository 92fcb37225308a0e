/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_WLC_H
#define ES_WLC_H

#include "inspector/policy/policy.h"

/* es_wlc_pick() - the target with the fewest requests by weight. With a @handover_cost the connection stays
 * unless moving it gains that many requests at least. */
int es_wlc_pick(const struct es_request_view *request, const struct es_cluster_view *view,
		unsigned int handover_cost);

#endif
