/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_ENGINE_ATTACHMENT_H
#define ES_NETFILTER_ENGINE_ATTACHMENT_H

/*
 * All tables of nf_tables that bring packets to an engine: ingress.h, drop_by_ring.h, translation.h and
 * rules.h, set and removed in the only order that leaves no gap. They belong to a network namespace and
 * outlive the daemon. Between es_nf_attachment_follow() and es_nf_attachment_remove(),
 * es_nf_attachment_mend() sets again what an operator has removed. Any thread may call these functions.
 */
#include "netfilter/engine/hands.h"
#include "netfilter/engine/tap.h"
#include "netfilter/rules/drop_by_flow.h"
#include "netfilter/rules/drop_by_ring.h"
#include "netfilter/rules/rules.h"
#include "netfilter/rules/translation.h"

/**
 * struct es_nf_attachment - the tables that are set; at most one for each process
 * @kernel, @tap: get what the rules bring; not owned
 * @rules_whole, @overheard_whole, @ingress_whole, @translation: the tables when they were set
 * @dropped: packets that the kernel has dropped, not yet returned by es_nf_attachment_dropped()
 */
struct es_nf_attachment {
	struct es_nf_hand_state *kernel;
	struct es_nf_tap *tap;
	struct es_nf_netlink nl;
	struct es_nf_rules rules;
	struct es_nf_drop_by_ring overheard;
	struct es_nf_rules_whole rules_whole, overheard_whole;
	struct es_nf_whole ingress_whole;
	struct es_nf_translation translation;
	struct es_nf_dropped_by_flow dropped;
};

/* es_nf_attachment_open() - without setting anything. Returns 0 or -errno. */
int es_nf_attachment_open(struct es_nf_attachment *attachment, struct es_nf_hand_state *kernel,
			  struct es_nf_tap *tap);

/* es_nf_attachment_close() - tables stay */
void es_nf_attachment_close(struct es_nf_attachment *attachment);

/**
 * es_nf_attachment_follow() - set the tables that differ from those set; or all, @anyway
 * Returns 0 or -errno, with @why.
 */
int es_nf_attachment_follow(struct es_nf_attachment *attachment, const struct es_nf_rules *rules,
			    const struct es_nf_drop_by_ring *overheard, int anyway, struct es_nf_why *why);

/* es_nf_attachment_remembers() - can the kernel remember flows (drop_by_flow.h)? */
int es_nf_attachment_remembers(struct es_nf_attachment *attachment);

/* es_nf_attachment_forget() - forget these flows: some may have become this node's */
void es_nf_attachment_forget(struct es_nf_attachment *attachment);

/*
 * es_nf_attachment_open_gate() - let unproven connections pass if the gate is closed: the node has left in
 * order
 */
void es_nf_attachment_open_gate(struct es_nf_attachment *attachment);

/* es_nf_attachment_mend() - somebody has changed rules: set again the tables that are not as they were set */
void es_nf_attachment_mend(struct es_nf_attachment *attachment);

/* es_nf_attachment_dropped() - packets that the kernel has dropped since the last call */
struct es_nf_dropped_by_flow es_nf_attachment_dropped(struct es_nf_attachment *attachment);

/*
 * es_nf_attachment_is_whole() - are all rules set in this network namespace, with or without a daemon?
 * Returns 1, 0 or -errno.
 */
int es_nf_attachment_is_whole(void);

/* es_nf_attachment_is_around() - likewise, though the ingress chain may have gone with its interface */
int es_nf_attachment_is_around(void);

/*
 * es_nf_attachment_remove() - remove the tables of this network namespace. Returns 1; 0 if there were none;
 * -errno.
 */
int es_nf_attachment_remove(void);

#endif
