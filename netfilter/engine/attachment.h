/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_ENGINE_ATTACHMENT_H
#define ES_NETFILTER_ENGINE_ATTACHMENT_H

/*
 * All tables of nf_tables that bring packets to an engine, set and removed in the one order that leaves no gap: what takes
 * frames in (ingress.h), what drops other nodes' packets (drop_by_ring.h), what finds programs' servers (translation.h), and the rules
 * (rules.h). They belong to a network
 * namespace, and outlive the daemon. From es_nf_attachment_follow() to es_nf_attachment_remove(), what an operator has taken
 * away is set again by es_nf_attachment_mend(). All functions may be called by any thread.
 */
#include "netfilter/engine/hands.h"
#include "netfilter/rules/drop_by_flow.h"
#include "netfilter/rules/drop_by_ring.h"
#include "netfilter/rules/rules.h"
#include "netfilter/engine/tap.h"
#include "netfilter/rules/translation.h"

/**
 * struct es_nf_attachment - what is set; one of a process at most
 * @kernel, @tap: listen to what the rules bring; not owned
 * @rules_whole, @overheard_whole, @ingress_whole, @translation: what the tables looked like when they were set
 * @dropped: packets that the kernel has dropped, and that nobody has asked for yet
 */
struct es_nf_attachment {
	struct es_nf_kernel *kernel;
	struct es_nf_tap *tap;
	struct es_nf_netlink nl;
	struct es_nf_rules rules;
	struct es_nf_drop_by_ring overheard;
	struct es_nf_rules_whole rules_whole, overheard_whole;
	struct es_nf_whole ingress_whole;
	struct es_nf_translation translation;
	struct es_nf_dropped_by_flow dropped;
};

/* es_nf_attachment_open() - nothing is set yet. Returns 0 or -errno. */
int es_nf_attachment_open(struct es_nf_attachment *attachment, struct es_nf_kernel *kernel,
			  struct es_nf_tap *tap);

/* es_nf_attachment_close() - what is set stays */
void es_nf_attachment_close(struct es_nf_attachment *attachment);

/**
 * es_nf_attachment_follow() - set what differs from what is set; or all of it, @anyway
 * Returns 0 or -errno, with @why.
 */
int es_nf_attachment_follow(struct es_nf_attachment *attachment, const struct es_nf_rules *rules,
			    const struct es_nf_drop_by_ring *overheard, int anyway, struct es_nf_why *why);

/* es_nf_attachment_remembers() - does the kernel remember whose flows are others' (drop_by_flow.h)? */
int es_nf_attachment_remembers(struct es_nf_attachment *attachment);

/* es_nf_attachment_forget() - it must not any more: some may have become this node's */
void es_nf_attachment_forget(struct es_nf_attachment *attachment);

/* es_nf_attachment_open_gate() - who goes has left in order: unproven connections pass from now on, if their gate is closed */
void es_nf_attachment_open_gate(struct es_nf_attachment *attachment);

/* es_nf_attachment_mend() - somebody has changed rules: set again what is not as it was set */
void es_nf_attachment_mend(struct es_nf_attachment *attachment);

/* es_nf_attachment_dropped() - how many packets the kernel has dropped since it was asked last */
struct es_nf_dropped_by_flow es_nf_attachment_dropped(struct es_nf_attachment *attachment);

/* es_nf_attachment_is_whole() - are all rules in this network namespace, with a daemon or without? 1, 0 or -errno */
int es_nf_attachment_is_whole(void);

/* es_nf_attachment_is_around() - are any, though what they need in front of them may be gone with its interface? */
int es_nf_attachment_is_around(void);

/* es_nf_attachment_remove() - take away what is set in this network namespace. Returns 1; 0 if nothing was; -errno. */
int es_nf_attachment_remove(void);

#endif
