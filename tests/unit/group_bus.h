/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_GROUP_BUS_H
#define ES_TESTS_GROUP_BUS_H

/*
 * The bus of group_world.h: partitions, the views that their members have, and messages in one order for all.
 */
#include "tests/unit/group_nodes.h"

/* The last views: each node's partition, whether the node was in its view, and as which process. */
struct views {
	unsigned int part[NODES];
	int is_in[NODES];
	uint32_t pid[NODES];
};

static uint64_t frozen_until[NODES]; /* of a partition: no token goes round */
static unsigned int tie_quorum; /* not 0: so many nodes with the first one are enough, and none without it */
static unsigned int lost_late_ms; /* up to so much later a minority hears that it is one */

static int is_quorate(unsigned int which)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < NODES; i++)
		n += part[i] == which;
	if (tie_quorum)
		return part[0] == which && n >= tie_quorum;
	return n * 2 > NODES;
}

static void queue_add(struct process *p, const struct event *e)
{
	assert_true(p->tail - p->head < QUEUE_MAX);
	p->queue[p->tail++ % QUEUE_MAX] = *e;
}

/*
 * Give the members of a partition the view that they have now; one that vanished from the last one is a
 * leaver of the reason given.
 */
static void views_give(unsigned int which, const struct views *was, enum es_group_reason reason)
{
	struct event view = {.is_view = 1};

	for (unsigned int i = 0; i < NODES; i++)
		if (part[i] == which && process[i].in_view)
			view.members[view.count++] = (struct es_group_id){i + 1, process[i].pid};
	for (unsigned int i = 0; i < NODES; i++) {
		struct event mine = view;

		if (part[i] != which || !process[i].in_view)
			continue;
		for (unsigned int j = 0; j < NODES; j++)
			if (was->is_in[i] && was->is_in[j] && was->part[i] == was->part[j] &&
			    (part[j] != which || !process[j].in_view || was->pid[j] != process[j].pid))
				mine.leavers[mine.leaver_count++] = (struct es_group_leaver){
					{j + 1, was->pid[j]}, part[j] != which ? ES_GROUP_NODE : reason};
		queue_add(&process[i], &mine);
	}
}

/* Some event of the world changed partitions or processes: tell everyone. */
static void world_changed(const struct views *was, enum es_group_reason reason)
{
	for (unsigned int which = 0; which < NODES; which++) {
		int differs = 0;

		for (unsigned int i = 0; i < NODES; i++)
			differs |= (part[i] == which || was->part[i] == which) &&
				   (part[i] != was->part[i] || process[i].in_view != was->is_in[i] ||
				    process[i].pid != was->pid[i]);
		if (!differs)
			continue;
		if (is_quorate(which)) {
			for (unsigned int i = 0; i < NODES; i++)
				if (part[i] == which && process[i].is_running && !process[i].in_view &&
				    !process[i].has_left && !process[i].wants_rejoin && !process[i].is_lost)
					process[i].in_view = 1;
			views_give(which, was, reason);
			continue;
		}
		for (unsigned int i = 0; i < NODES; i++)
			if (part[i] == which && process[i].in_view) {
				process[i].in_view = 0;
				process[i].is_lost = 1; /* noticed when the process runs */
				process[i].lost_at = now;
				if (lost_late_ms)
					process[i].lost_at += random_below(lost_late_ms);
			}
	}
}

static void snapshot(struct views *ret_was)
{
	for (unsigned int i = 0; i < NODES; i++) {
		ret_was->part[i] = part[i];
		ret_was->is_in[i] = process[i].in_view;
		ret_was->pid[i] = process[i].pid;
	}
}

/* The bus takes one message of a random sender. */
static void bus_step(void)
{
	struct process *p = &process[random_below(NODES)];
	struct event e;

	if (!p->in_view || p->flight_head == p->flight_tail || now < frozen_until[part[p->node]])
		return;
	e = p->flight[p->flight_head++ % FLIGHT_MAX];
	for (unsigned int i = 0; i < NODES; i++) {
		struct event copy = e;

		if (part[i] != part[p->node] || !process[i].in_view)
			continue;
		copy.payload = malloc(e.len + 1);
		assert_non_null(copy.payload);
		memcpy(copy.payload, e.payload, e.len);
		queue_add(&process[i], &copy);
	}
	free(e.payload);
}

#endif
