/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_GROUP_LETTERS_H
#define ES_TESTS_GROUP_LETTERS_H

/*
 * The datagrams of group_world.h, by which nodes ask each other for grants: beside the bus, lost, late,
 * twice, and in any order.
 */
#include "tests/unit/group_nodes.h"

#define LETTERS_MAX 4096

/* A datagram in which a node asks for grants, and grants; at its receiver's from @at on. */
struct letter {
	unsigned int from, to;
	uint64_t at;
	struct es_grants_ask ask;
	uint64_t granted;
};

static struct letter letters[LETTERS_MAX];
static unsigned int letter_count;
static unsigned int lose_percent, late_percent, late_ms, pass_percent; /* what becomes of datagrams */

static void letter_add(const struct letter *letter)
{
	struct letter *l = &letters[letter_count];

	if (letter_count == LETTERS_MAX || random_below(100) < lose_percent ||
	    (part[letter->from] != part[letter->to] && random_below(100) >= pass_percent))
		return;
	*l = *letter;
	l->at = now + (random_below(100) < late_percent ? random_below(late_ms) : random_below(5));
	letter_count++;
}

static void letters_send(struct process *p)
{
	struct letter letter = {.from = p->node};

	p->grants_at = local(p->node) + LEASE_MS / 5;
	if (!es_group_grants_are_for_all(&p->group) ||
	    es_grants_ask(&p->group.grants, LEASE_MS, local(p->node), &letter.ask))
		letter.ask = (struct es_grants_ask){};
	for (letter.to = 0; letter.to < NODES; letter.to++) {
		letter.granted = es_grants_tell(&p->group.grants, letter.to);
		if (letter.to != p->node)
			letter_add(&letter);
		if (letter.to != p->node && random_below(100) < late_percent)
			letter_add(&letter); /* twice */
	}
}

/* As lease.c in inspector/daemon/ does: grants renew a lease that is not over. */
static void letter_take(struct process *p, const struct letter *letter)
{
	uint64_t until;

	if (letter->ask.number)
		es_grants_hear(&p->group.grants, letter->from, &letter->ask, local(p->node));
	es_grants_take(&p->group.grants, letter->from, letter->granted);
	until = es_group_granted_ms(&p->group, p->bus_ms);
	if (es_group_is_in(&p->group) && !p->wants_rejoin && !p->has_left && !p->must_end &&
	    local(p->node) < datapath[p->node].lease_until && until > datapath[p->node].lease_until)
		datapath[p->node].lease_until = until;
}

/* Takes a datagram, in any order. Returns 0 if there is none. */
static int letters_step(struct process *p)
{
	for (unsigned int i = 0; i < letter_count; i++) {
		struct letter letter = letters[i];

		if (letter.to != p->node || now < letter.at)
			continue;
		letters[i] = letters[--letter_count];
		letter_take(p, &letter);
		check();
		return 1;
	}
	return 0;
}

#endif
