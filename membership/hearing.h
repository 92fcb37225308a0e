/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_MEMBERSHIP_HEARING_H
#define ES_MEMBERSHIP_HEARING_H

/*
 * Finds out whether a node is mute on the clients' network. Each node sends a small frame there several times
 * a second, which names the nodes that it hears; so a node that hears the others and is not heard learns from
 * them that it is mute. Its answers reach no client, so it must leave its share to the others.
 *
 * Only what is beyond doubt makes a node mute: two others hear each other, both have heard this node before
 * (switch ports may be isolated from each other, and nodes of older versions say nothing), and no node that
 * can be heard hears it any more. Nobody's word is evidence before it has sent and listened without a pause
 * for a while: a process that slept, or has just started, has not heard what was there.
 *
 * Pure: frames and clocks are the caller's (public_link.h).
 */
#include <stdint.h>
#include "membership/group.h"

#define ES_HEARING_EVERY_MS  125  /* between two frames of a node */
#define ES_HEARING_LOST_MS   625  /* without a frame for so long, a node is not heard any more */
#define ES_HEARING_RETURN_MS 2000 /* a node that was mute comes back when nothing has said so for so long */

/* A sender that made a longer pause may have counted as lost for that alone. */
#define ES_HEARING_PAUSE_MS (2 * ES_HEARING_EVERY_MS)
/* So long after a pause, the others have had the time to hear it, and to say so. */
#define ES_HEARING_STEADY_MS (ES_HEARING_LOST_MS + 2 * ES_HEARING_EVERY_MS)

#define ES_HEARING_WORDS (ES_GROUP_NODES_MAX / 64)

/**
 * struct es_hearing_word - what a node says in a frame
 * @hears: bit i % 64 of word i / 64 for each node i that it hears
 * @is_steady: it has sent and listened without a pause for ES_HEARING_STEADY_MS
 */
struct es_hearing_word {
	uint64_t hears[ES_HEARING_WORDS];
	int is_steady;
};

/* struct es_hearing_peer - @heard_ms: its last frame, 0: none yet; @has_heard_us: it has said so once */
struct es_hearing_peer {
	uint64_t heard_ms;
	struct es_hearing_word word;
	int has_heard_us;
};

/**
 * struct es_hearing
 * @sent_ms: this node's last frame; @steady_ms: since when they leave without a pause
 * @mute_ms: when the others last said that this node is mute, 0: never
 */
struct es_hearing {
	unsigned int self;
	unsigned int count;
	uint64_t sent_ms;
	uint64_t steady_ms;
	uint64_t mute_ms;
	int is_mute;
	struct es_hearing_peer peer[ES_GROUP_NODES_MAX];
};

/* es_hearing_init() - @count nodes, of which this is @self */
void es_hearing_init(struct es_hearing *hearing, unsigned int self, unsigned int count);

/* es_hearing_set_count() - of nodes, from now on */
void es_hearing_set_count(struct es_hearing *hearing, unsigned int count);

/* es_hearing_heard() - a frame of node @from */
void es_hearing_heard(struct es_hearing *hearing, unsigned int from, const struct es_hearing_word *word,
		      uint64_t now_ms);

/* es_hearing_say() - what this node's next frame says, after all that has arrived was heard */
void es_hearing_say(const struct es_hearing *hearing, uint64_t now_ms, struct es_hearing_word *ret_word);

/* es_hearing_sent() - that frame has left */
void es_hearing_sent(struct es_hearing *hearing, uint64_t now_ms);

/* es_hearing_is_mute() - is this node mute? Call it often, after all that has arrived was heard. */
int es_hearing_is_mute(struct es_hearing *hearing, uint64_t now_ms);

/* es_hearing_witnesses() - two nodes that hear each other and have heard this one. Returns 0, or -ENOENT. */
int es_hearing_witnesses(const struct es_hearing *hearing, uint64_t now_ms, unsigned int *ret_one,
			 unsigned int *ret_other);

/* Is @node heard now? Does it say that it hears this node? */
int es_hearing_hears(const struct es_hearing *hearing, unsigned int node, uint64_t now_ms);
int es_hearing_is_heard_by(const struct es_hearing *hearing, unsigned int node, uint64_t now_ms);

#endif
