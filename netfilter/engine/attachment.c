// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sets, mends and removes all tables that bring packets to an engine.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include "netfilter/engine/attachment.h"
#include "netfilter/kernel/source.h"
#include "netfilter/rules/drop_by_flow.h"
#include "netfilter/rules/ingress.h"

/*
 * Held while tables are set or removed, for the whole process, since tables belong to the namespace.
 * @are_wanted: from follow to remove; meanwhile, removed tables are set again.
 */
static struct {
	pthread_mutex_t lock;
	int are_wanted;
} tables = {.lock = PTHREAD_MUTEX_INITIALIZER};

int es_nf_attachment_open(struct es_nf_attachment *attachment, struct es_nf_hand_state *kernel,
			  struct es_nf_tap *tap)
{
	*attachment = (struct es_nf_attachment){.kernel = kernel, .tap = tap};
	return es_nf_netlink_open(&attachment->nl, NETLINK_NETFILTER);
}

void es_nf_attachment_close(struct es_nf_attachment *attachment)
{
	es_nf_netlink_close(&attachment->nl);
}

/*
 * If the kernel cannot drop other nodes' packets, the engine gets and drops them. Returns 0 or -errno, with
 * @why.
 */
static int set_overheard(struct es_nf_attachment *a, const struct es_nf_drop_by_ring *overheard, int anew,
			 struct es_nf_why *why)
{
	int rc;

	a->dropped.others += es_nf_drop_by_ring_count(&a->nl); /* the counters go with the table */
	rc = es_nf_drop_by_ring_set(&a->nl, overheard, anew, &a->overheard_whole, why);
	if (overheard != &a->overheard)
		a->overheard = *overheard;
	if (rc)
		a->overheard.seed = 0; /* there is no table, and trying again would not help */
	return rc == -ENOENT ? 0 : rc;
}

/* First the tap listens, then rules let packets in. Returns 0 or -errno, with @why. */
static int set_rules(struct es_nf_attachment *a, const struct es_nf_rules *rules, int anew,
		     struct es_nf_why *why)
{
	int rc = es_nf_tap_listen(a->tap, rules);

	if (rc)
		return es_nf_why(why, rc, "packet socket: %s", strerror(-rc));
	if (rules->server_count) {
		rc = es_nf_translation_set(&a->nl, rules, &a->translation, why);
		if (rc)
			return rc;
	}
	es_nf_drop_by_flow_count(&a->nl, ES_NF_RULES_TABLE,
				 &a->dropped); /* the counters may go with the tables */
	rc = es_nf_rules_set(&a->nl, rules, anew, &a->rules_whole, why);
	if (rc)
		return rc;
	anew |= rules->public_ifindex != a->rules.public_ifindex || rules->is_unicast != a->rules.is_unicast;
	return es_nf_ingress_follow(&a->nl, rules, anew, &a->ingress_whole, why);
}

int es_nf_attachment_follow(struct es_nf_attachment *attachment, const struct es_nf_rules *rules,
			    const struct es_nf_drop_by_ring *overheard, int anyway, struct es_nf_why *why)
{
	struct es_nf_attachment *a = attachment;
	int rc = 0, anew;

	pthread_mutex_lock(&tables.lock);
	anew = anyway || !tables.are_wanted;
	if (anyway || !tables.are_wanted || memcmp(rules, &a->rules, sizeof(*rules)) != 0)
		rc = set_rules(a, rules, anew, why);
	if (!rc && (anyway || memcmp(overheard, &a->overheard, sizeof(*overheard)) != 0))
		rc = set_overheard(a, overheard, anew, why);
	if (!rc) {
		a->rules = *rules;
		tables.are_wanted = 1;
	}
	pthread_mutex_unlock(&tables.lock);
	return rc;
}

int es_nf_attachment_remembers(struct es_nf_attachment *attachment)
{
	int remembers;

	pthread_mutex_lock(&tables.lock);
	remembers = attachment->rules_whole.remembers;
	pthread_mutex_unlock(&tables.lock);
	return remembers;
}

void es_nf_attachment_forget(struct es_nf_attachment *attachment)
{
	pthread_mutex_lock(&tables.lock);
	(void)es_nf_drop_by_flow_forget(&attachment->nl, ES_NF_RULES_TABLE);
	pthread_mutex_unlock(&tables.lock);
}

void es_nf_attachment_open_gate(struct es_nf_attachment *attachment)
{
	pthread_mutex_lock(&tables.lock);
	if (attachment->rules.gate == ES_NF_GATE_CLOSED) {
		attachment->rules.gate = ES_NF_GATE_OPEN;
		if (tables.are_wanted)
			(void)es_nf_rules_set(&attachment->nl, &attachment->rules, 0,
					      &attachment->rules_whole, NULL);
	}
	pthread_mutex_unlock(&tables.lock);
}

/*
 * An operator's `nft flush ruleset` removes our tables, and `nft flush table` empties one. A table that is
 * whole is not set again: that would be a change of rules, too, and while the public interface is gone, the
 * ingress chain cannot be whole, and this would never end.
 */
void es_nf_attachment_mend(struct es_nf_attachment *attachment)
{
	struct es_nf_attachment *a = attachment;

	pthread_mutex_lock(&tables.lock);
	if (tables.are_wanted) {
		(void)es_nf_hand_state_mend(a->kernel, &a->nl);
		if (!es_nf_rules_are_whole(&a->nl, &a->rules, &a->rules_whole))
			(void)es_nf_rules_set(&a->nl, &a->rules, 1, &a->rules_whole, NULL);
		if (a->rules.is_unicast && !es_nf_ingress_is_whole(&a->nl, &a->ingress_whole))
			(void)es_nf_ingress_follow(&a->nl, &a->rules, 1, &a->ingress_whole, NULL);
		if (a->rules.server_count && !es_nf_translation_is_whole(&a->nl, &a->rules, &a->translation))
			(void)es_nf_translation_set(&a->nl, &a->rules, &a->translation, NULL);
		if (!es_nf_drop_by_ring_are_whole(&a->nl, &a->overheard, &a->overheard_whole))
			(void)set_overheard(a, &a->overheard, 1, NULL);
	}
	pthread_mutex_unlock(&tables.lock);
}

struct es_nf_dropped_by_flow es_nf_attachment_dropped(struct es_nf_attachment *attachment)
{
	struct es_nf_dropped_by_flow dropped;

	pthread_mutex_lock(&tables.lock);
	dropped = attachment->dropped;
	attachment->dropped = (struct es_nf_dropped_by_flow){};
	dropped.others += es_nf_drop_by_ring_count(&attachment->nl);
	es_nf_drop_by_flow_count(&attachment->nl, ES_NF_RULES_TABLE, &dropped);
	pthread_mutex_unlock(&tables.lock);
	return dropped;
}

/* The errors of a kernel without netfilter's netlink, or without nf_tables (nfnetlink_rcv_msg()). */
static int is_missing(int rc)
{
	return rc == -EPROTONOSUPPORT || rc == -EINVAL || rc == -EOPNOTSUPP;
}

/* @wholly: are all set? 0: is any? */
static int are_left(int wholly)
{
	struct es_nf_netlink nl;
	int rc = es_nf_netlink_open(&nl, NETLINK_NETFILTER);

	if (rc)
		return is_missing(rc) ? 0 : rc;
	rc = es_nf_rules_are_set(&nl);
	if (rc > 0 && wholly)
		rc = es_nf_ingress_is_set(&nl);
	es_nf_netlink_close(&nl);
	/* A kernel without nf_tables has no rules: that must not keep another datapath from starting. */
	return is_missing(rc) ? 0 : rc;
}

int es_nf_attachment_is_whole(void)
{
	return are_left(1);
}

int es_nf_attachment_is_around(void)
{
	return are_left(0);
}

int es_nf_attachment_remove(void)
{
	struct es_nf_netlink nl;
	int rc = es_nf_netlink_open(&nl, NETLINK_NETFILTER), was_set;

	if (rc)
		return rc;
	pthread_mutex_lock(&tables.lock);
	tables.are_wanted = 0;
	was_set = es_nf_rules_are_set(&nl);
	/* In this order: without the rules, the stack would answer what the ingress chain lets in. */
	rc = es_nf_ingress_remove(&nl);
	if (!rc)
		rc = es_nf_drop_by_ring_remove(&nl);
	if (!rc)
		rc = es_nf_rules_remove(&nl);
	if (!rc)
		rc = es_nf_translation_remove(&nl);
	if (!rc)
		rc = es_nf_hook_remove(&nl);
	pthread_mutex_unlock(&tables.lock);
	es_nf_source_clear();
	es_nf_netlink_close(&nl);
	return rc ? rc : was_set;
}
