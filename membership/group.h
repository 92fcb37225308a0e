/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_MEMBERSHIP_GROUP_H
#define ES_MEMBERSHIP_GROUP_H

/*
 * How the members agree on one ring after another, over a bus that delivers the same views and messages to
 * all of them in one order (virtual synchrony: Birman and Joseph 1987; corosync's CPG). Nothing here knows
 * corosync, a clock or a thread.
 *
 *   view      members came or went: each says HELLO, with all that the others must know of it
 *   round     all HELLOs of the view are there: each member computes the same ring, the next epoch
 *   stopping  each inspects only what it had and keeps, and says STOPPED
 *   holding   all have stopped; a member that vanished without a word may believe for the rest of its lease
 *             that it is one
 *   stable    each inspects all that the ring gives it
 *
 * A node's state or weight, or a member that leaves in order, begin a new epoch at "stopping": all know
 * enough. A view in between begins anew at "view", and nothing that was stopped is started by it.
 */
#include "kmod/core/firsts.h"
#include "membership/grants.h"
#include "membership/wire.h"

#define ES_GROUP_NODES_MAX   128
#define ES_GROUP_MEMBERS_MAX 128 /* CPG's own limit */
#define ES_GROUP_TEXT_SIZE   256

/* For so long, a client may repeat a request that a lost node has executed: kmod/core/firsts.h. */
#define ES_GROUP_DOUBT_MS (ES_DOUBT_S * 1000U)

/* struct es_group_id - a process on the bus */
struct es_group_id {
	uint32_t nodeid;
	uint32_t pid;
};

enum es_group_phase {
	ES_GROUP_OUT = 0,
	ES_GROUP_VIEW,
	ES_GROUP_STOPPING,
	ES_GROUP_HOLDING,
	ES_GROUP_STABLE,
};

/* Why a node is no member. */
enum es_group_reason {
	ES_GROUP_NEVER = 0, /* not seen yet */
	ES_GROUP_LEFT,	    /* in order */
	ES_GROUP_PROCESS,   /* its daemon died, or let go of the bus */
	ES_GROUP_NODE,	    /* the machine or its network died */
	ES_GROUP_SUSPECTED, /* it did not answer */
	ES_GROUP_SELF_LOST, /* this node lost the others */
};

/**
 * struct es_group_node - a configured node, as the group sees it
 * @is_member: in the view; @is_accepted: and on the ring
 * @state, @weight: what it says of itself; @refused: why it is not accepted, or ""
 * @grants: it grants leases, and counts so many nodes, as @settings say; 0: it does not
 * @since_ms: of the last change of is_member; @heard_ms: of its last message; @hold_until_ms: until when it
 * may believe that it is a member, 0 if it knows that it is none
 * @lost_ms: when it last went otherwise than in order, or this node lost it with all others; 0: never
 */
struct es_group_node {
	char name[ES_WIRE_NAME_SIZE];
	uint8_t is_member;
	uint8_t is_accepted;
	uint8_t state;
	uint16_t weight;
	uint16_t grants;
	enum es_group_reason reason;
	uint64_t since_ms;
	uint64_t heard_ms;
	uint64_t hold_until_ms;
	uint64_t lost_ms;
	struct es_wire_load load;
	char settings[ES_WIRE_SETTINGS_SIZE];
	char refused[ES_GROUP_TEXT_SIZE];
};

/**
 * struct es_group_ops - what the group wants done
 * @send: put a message on the bus
 * @stop: inspect only what both this node had and the new ring gives it; say with ES_WIRE_PROOFS which
 * requests are not proven. When this returns, it has stopped.
 * @serve: inspect all that the ring of @stop's epoch gives this node
 * @proofs: proofs of @node, for those to whom the ring gives the flows
 * @changed: some field of a node has changed
 * @rejoin: leave the bus, end what is unproven, and join again
 * @left: this node has left in order, and the others know
 * @log: one line for the operator
 */
struct es_group_ops {
	void (*send)(void *ctx, enum es_wire_type type, const void *payload, size_t len);
	void (*stop)(void *ctx, uint32_t epoch, const unsigned int *weights);
	void (*serve)(void *ctx, uint32_t epoch);
	void (*proofs)(void *ctx, unsigned int node, const struct es_wire_proof *proofs, size_t count);
	void (*changed)(void *ctx);
	void (*rejoin)(void *ctx, const char *reason);
	void (*left)(void *ctx);
	void (*log)(void *ctx, const char *text);
};

struct es_group_member {
	struct es_group_id id;
	int node; /* -1: not known yet, or none of ours */
	uint8_t has_hello;
	uint8_t has_stopped;
	uint8_t is_leaving;
	uint8_t has_left; /* is_leaving, and has stopped for a ring without it */
	uint8_t is_excluded;
	uint64_t heard_ms;
	struct es_wire_hello hello;
};

/**
 * struct es_group - one member's side
 * @self: of the nodes; @lease_ms: how long a member may believe that it is one after it heard itself
 * @epoch: the highest known; @served: the highest that was in force where this node was; @is_serving: it
 * still is
 * @others_ahead: a ring was, or is, in force without this node: others may have what it had
 * @others_began: others have stopped for a ring that this node, which was serving, does not know: it may come
 * into force elsewhere
 * @known: the members that know what they have granted (group_grants.c)
 * @doubt_until_ms: until then, a request that a lost node may have executed can be repeated, to another node
 * @settings_are_new: no message has told this node's settings since a reload changed them; @settings_changed:
 * the settings of this node or of a member have changed, and es_group_is_alike_again() has not looked at them
 * yet
 * @vote_late_ms: for so long another node may count a quorum device's vote that has moved here; 0: there is
 * no device; @vote_until_ms: until then, one may
 * @patience_ms: after so long without a word, or the word that is waited for, a member is suspected
 */
struct es_group {
	const struct es_group_ops *ops;
	void *ctx;
	struct es_group_id self_id;
	unsigned int self;
	unsigned int node_count;
	uint64_t lease_ms;
	uint64_t patience_ms;
	uint64_t vote_late_ms;
	uint64_t vote_until_ms;
	enum es_group_phase phase;
	uint32_t epoch;
	uint32_t served;
	uint8_t is_serving;
	uint8_t others_ahead;
	uint8_t others_served; /* a ring that this node was not in, since the one that it was in */
	uint8_t others_began;
	uint64_t phase_since_ms;
	uint64_t suspected_ms;
	uint64_t hold_until_ms; /* as others say */
	uint64_t doubt_until_ms;
	uint64_t started_ms;
	uint64_t tick_ms;
	uint8_t hello_is_out;
	uint8_t settings_are_new;
	uint8_t settings_changed;
	uint8_t is_leaving;
	unsigned int member_count;
	struct es_group_node node[ES_GROUP_NODES_MAX];
	struct es_group_member member[ES_GROUP_MEMBERS_MAX];
	struct es_grants grants;
	struct es_grants_set known;
};

/**
 * es_group_init() -
 * @names: of all nodes, in the order that all nodes' configurations have; "" in the place of one that was
 * removed
 * @served: the last epoch that was in force here, if this is remembered
 */
void es_group_init(struct es_group *group, const struct es_group_ops *ops, void *ctx,
		   const char *const *names, unsigned int count, unsigned int self, uint32_t served,
		   uint64_t lease_ms, uint64_t patience_ms);

/* es_group_start() - this process begins now; @doubt_until_ms: as the one before it knew */
void es_group_start(struct es_group *group, uint64_t doubt_until_ms, uint64_t now_ms);

/*
 * es_group_describe() - what this node says of itself in its HELLO, and, if it has other settings now, to
 * members
 */
void es_group_describe(struct es_group *group, unsigned int weight, const char *settings);

/**
 * es_group_set_nodes() - the list of nodes has changed; es_group_describe() follows
 * No node that is a member, or may take itself for one, may change its place, or go: es_group_node_is_gone().
 * @names: as of es_group_init(); "" in the place of a node that was removed
 */
void es_group_set_nodes(struct es_group *group, const char *const *names, unsigned int count);

/* es_group_node_is_gone() - is @node no member, and can it not take itself for one? */
int es_group_node_is_gone(const struct es_group *group, unsigned int node);

struct es_group_leaver {
	struct es_group_id id;
	enum es_group_reason reason;
};

/**
 * es_group_view() - the bus has other members from now on
 * @self: this process; must be one of @members
 */
void es_group_view(struct es_group *group, struct es_group_id self, const struct es_group_id *members,
		   unsigned int count, const struct es_group_leaver *leavers, unsigned int leaver_count,
		   uint64_t now_ms);

/* es_group_message() - a message of @from, in the bus's order; this node's own messages come back too */
void es_group_message(struct es_group *group, struct es_group_id from, uint8_t type, const void *payload,
		      size_t len, uint64_t now_ms);

/* es_group_lost() - the bus is gone, or the quorum: this node is alone, and must be silent already */
void es_group_lost(struct es_group *group, uint64_t now_ms);

/* es_group_was_away() - this node did not see who came and went until now */
void es_group_was_away(struct es_group *group, uint64_t now_ms);

/* es_group_tick() - call it often, tens of milliseconds */
void es_group_tick(struct es_group *group, uint64_t now_ms);

/* es_group_change() - tell all members a node's new state or weight */
void es_group_change(struct es_group *group, unsigned int node, enum es_wire_change_what what,
		     uint16_t value);

/* es_group_leave() - begin to leave in order; ops->left follows, or nothing if there is no group */
void es_group_leave(struct es_group *group);

/* es_group_node_of() - which node a member is; -1: not known yet, or none of ours */
int es_group_node_of(const struct es_group *group, struct es_group_id id);

/* Is this node on the ring, as far as the bus says? Its lease then follows from its own messages. */
static inline int es_group_is_in(const struct es_group *group)
{
	return group->phase != ES_GROUP_OUT && group->node[group->self].is_accepted;
}

/*
 * es_group_grants_line() - how a node's settings say that it grants leases, among @count nodes; "" for 0: it
 * does not
 */
void es_group_grants_line(unsigned int count, char *text, size_t size);

/*
 * es_group_grants_are_for_all() - does each member grant leases, and count the same nodes? Then this node may
 * ask for them.
 */
int es_group_grants_are_for_all(const struct es_group *group);

/* es_group_node_grants() - is @node a member whose version grants leases? */
int es_group_node_grants(const struct es_group *group, unsigned int node);

/**
 * es_group_granted_ms() - until when the others have granted this node a lease; 0: they have not
 * @bus_ms: when the last message was sent by which the bus renewed it: a lease outlives the bus only for a
 * while
 */
uint64_t es_group_granted_ms(const struct es_group *group, uint64_t bus_ms);

/**
 * es_group_settings_differ() - the first setting in which two nodes may not differ, and do
 * Those are the lines that begin with '='. A value is a list of words; two agree if the first word of each is
 * among the other's: a node signs with its first key and checks with all.
 * @ret_text: "NAME is VALUE there, VALUE in the cluster". Returns 1 if they differ.
 */
int es_group_settings_differ(const char *there, const char *cluster, char *ret_text, size_t size);

/**
 * es_group_is_alike_again() - this node was refused, and does not differ from the members any more
 * Only a new view judges it anew, so it is to leave the bus and join again: members of each version
 * understand that. Says so once for each change of settings, and not while members differ from each other,
 * since the view would judge these, too.
 */
int es_group_is_alike_again(struct es_group *group);

/*
 * struct es_group_setting - one in which two nodes differ: its name, and the value of each; no NULs after
 * them.
 * @must: they may not, es_group_settings_differ(); else they should not
 */
struct es_group_setting {
	const char *name, *a, *b;
	size_t name_len, a_len, b_len;
	int must;
};

/*
 * es_group_settings_each() - call @fn for each setting in which two nodes differ: one that begins with '=',
 * or one that begins with '~', which costs no node its place, if both nodes tell it: an earlier version may
 * not know it.
 */
void es_group_settings_each(const char *a, const char *b,
			    void (*fn)(void *ctx, const struct es_group_setting *setting), void *ctx);

const char *es_group_reason_text(enum es_group_reason reason);
const char *es_group_phase_text(enum es_group_phase phase);

#endif
