/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_WLC_H
#define ES_WLC_H

#include "inspector/policy/policy.h"

/* es_wlc_pick() - the target with the fewest requests by weight; an open connection by stay.h's rule */
int es_wlc_pick(const struct es_request_view *request, const struct es_cluster_view *view);

#endif
