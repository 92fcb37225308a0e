/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_HEALTH_PLACE_H
#define ES_HEALTH_PLACE_H

/*
 * A place among the nodes of a service that may be out at once, for a reason that clients or the network can
 * cause (outlier.h, vanishing.h, and what a check finds but that nobody listens). Such a reason may hold on
 * all nodes at the same moment, and must not put all of them out: a node first claims a place, and all see
 * that before it goes; while it claims, it serves. If two claim at once, the one with the lower number has
 * the place, by the same rule on both. The last node that serves never goes. A node that is out gets no
 * requests, so where these are what tells how it is, it returns by time, and goes again for twice as long if
 * nothing has changed.
 */

/*
 * How long a claim is seen before it holds: some messages of each node to each other, of which one or two may
 * be lost.
 */
#define ES_PLACE_CLAIM_MS 2000

/**
 * struct es_place_others - the other nodes of the service
 * @count: all that have a weight; @away: that serve nothing of it, for a reason that is no matter of choice
 * @before, @after: that have a place, or claim one, with lower and higher numbers than this node's
 */
struct es_place_others {
	unsigned int count;
	unsigned int away;
	unsigned int before;
	unsigned int after;
};

/* struct es_place_limits - @max_out: nodes that may serve nothing of the service; @out_s: so long a node is
 * out the first time,
 * @out_max_s: and so long at most; @out_s 0: until es_place_is_well() */
struct es_place_limits {
	unsigned int max_out;
	unsigned int out_s;
	unsigned int out_max_s;
};

enum es_place_state {
	ES_PLACE_IN,
	ES_PLACE_CLAIMS, /* it still serves */
	ES_PLACE_OUT,
};

enum es_place_news {
	ES_PLACE_NO_NEWS,
	ES_PLACE_WANTS,	   /* it claims a place */
	ES_PLACE_KEPT,	   /* it should go, but as many as may be out are; told once until it is well */
	ES_PLACE_GOES,	   /* it is out now */
	ES_PLACE_RECALLED, /* it was out, and more than may be are */
	ES_PLACE_RETURNS,  /* its time is over */
};

/**
 * struct es_place - of one service on this node; all zeros at first
 * @until_ms: the end of a claim, or of being out; @calm_ms: when it is forgotten that it was out, if it is
 * well then
 * @hold_s: for how long it was put out last; 0: that is forgotten, or it never was
 * @ejections, @kept: how often it went out, and how often it stayed because of max_out
 */
struct es_place {
	enum es_place_state state;
	unsigned long long until_ms;
	unsigned long long calm_ms;
	unsigned int hold_s;
	int is_kept;
	unsigned long long ejections;
	unsigned long long kept;
};

/* es_place_claim() - of a node that is in, and should go: ES_PLACE_WANTS, _KEPT or _NO_NEWS */
enum es_place_news es_place_claim(struct es_place *place, const struct es_place_limits *limits,
				  const struct es_place_others *others, unsigned long long now_ms);

/* es_place_look() - what becomes of a claim, or of a node that is out, at @now_ms, by a monotonic clock */
enum es_place_news es_place_look(struct es_place *place, const struct es_place_limits *limits,
				 const struct es_place_others *others, unsigned long long now_ms);

/* es_place_is_well() - nothing speaks against the node any more: a claim ends, and so does its being out */
void es_place_is_well(struct es_place *place, unsigned long long now_ms);

#endif
