/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TURNS_H
#define ES_TURNS_H

/*
 * Smooth weighted round robin, for the policies that take turns (wrr.c, cap.c).
 */
#include "inspector/policy/policy.h"

struct es_turns {
	long credit[ES_NODES_MAX];
};

/* es_turns_next() - whose turn it is; -1 if no node is a target */
int es_turns_next(struct es_turns *turns, const struct es_request_view *request,
		  const struct es_cluster_view *view);

#endif
