/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SELF_DEAF_H
#define ES_SELF_DEAF_H

/*
 * The decision that a node does not hear the clients' network. One whose interface receives nothing at all is
 * deaf; so is one that receives broadcasts only, because the switch has forgotten the cluster MAC for its
 * port (IGMP snooping): then clients find the address, and this node does not hear what they send there.
 *
 * Frames to the cluster MAC are the other nodes', eight times a second, and the clients' packets. The first
 * are proof enough while they come. That they stop is evidence against this node's port only if the nodes
 * that sent them are there still, and no client is heard either.
 *
 * Pure: counters and clocks are the caller's (public_link.c).
 */
#include <stdint.h>

#define ES_DEAF_AFTER_MS 1500
/*
 * A node that left, and then hears of no other node for so long, is the last one: it may hear as little as it
 * likes.
 */
#define ES_DEAF_ALONE_MS 5000

enum es_deaf_kind {
	ES_DEAF_NOT = 0,
	ES_DEAF_ALL, /* nothing arrives */
	ES_DEAF_MAC, /* nothing that is sent to the cluster MAC */
};

/**
 * struct es_deaf
 * @any, @clients: the counters when they were last looked at
 * @heard_ms: when anything had come; @mac_ms: when something to the cluster MAC had
 * @others_ms: when another node was there whose frames should come
 * @is_met: frames of others did come, and nothing has shown since that their absence is their own doing
 */
struct es_deaf {
	uint64_t any;
	uint64_t clients;
	uint64_t heard_ms;
	uint64_t mac_ms;
	uint64_t others_ms;
	uint64_t looked_ms;
	uint64_t probe_ms;
	int is_met;
	enum es_deaf_kind kind;
};

/**
 * struct es_deaf_signs - what is known at this moment
 * @any: frames that the interface has received; @clients: of those, clients' packets to a service address
 * @probe_ms: when the last frame of another node came, 0: never
 * @has_others: there are other members; @others_are_there: one whose frames have been heard tells its load,
 * by another network
 */
struct es_deaf_signs {
	uint64_t any;
	uint64_t clients;
	uint64_t probe_ms;
	int has_others;
	int others_are_there;
};

/*
 * es_deaf_begin() - the daemon before this one ended while the node did not hear what is sent to the cluster
 * MAC: it is so still, until something else is known
 */
void es_deaf_begin(struct es_deaf *deaf, uint64_t clients, uint64_t now_ms);

/* es_deaf_look() - is the node deaf? Call it some times a second; begins with zeros. */
enum es_deaf_kind es_deaf_look(struct es_deaf *deaf, const struct es_deaf_signs *signs, uint64_t now_ms);

#endif
