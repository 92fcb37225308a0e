/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SIM_EVENTS_H
#define ES_SIM_EVENTS_H

/*
 * The events to come, by time. Two of the same time happen in the order in which they were put in, so a run
 * is the same every time.
 */
#include <stddef.h>
#include <linux/types.h>

/* struct es_sim_event - @what and @whom are the owner's */
struct es_sim_event {
	__u64 at_ns;
	__u64 order;
	__u32 what;
	__u32 whom;
};

struct es_events {
	struct es_sim_event *heap;
	size_t count;
	size_t room;
	__u64 order;
};

void es_events_fini(struct es_events *events);

/* es_events_put() - returns 0 or -ENOMEM */
int es_events_put(struct es_events *events, __u64 at_ns, __u32 what, __u32 whom);

/* es_events_take() - the earliest one; returns 0 if there is none */
int es_events_take(struct es_events *events, struct es_sim_event *ret_event);

#endif
