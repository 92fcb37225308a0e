/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_SERVING_H
#define ES_DAEMON_SERVING_H

/*
 * Looks each second whether this node can serve (self/serving.h), and sees to it that nobody is lost if it
 * cannot: the datapath refuses what is given to this node, and the others are told that it is down. It comes
 * back by itself.
 */
#include <ev.h>
#include "inspector/self/serving.h"
#include "kmod/core/types.h"
#include "membership/wire.h"

struct es_daemon;

/**
 * struct es_daemon_serving
 * @now: what was found last; @told: what people were told last
 * @trouble, @failing, @yields, @lacks: what each node says of itself; @text: the trouble of others, in a line
 * @began_ns: of this life; @served: the services that the daemon before this one did not refuse, if there was
 * one
 */
struct es_daemon_serving {
	struct es_serving now;
	struct es_serving told;
	unsigned long long began_ns;
	__u64 served;
	unsigned char trouble[ES_NODES_MAX];
	__u64 failing[ES_NODES_MAX];	    /* services whose check fails there, or for which it is out */
	unsigned char yields[ES_NODES_MAX]; /* as in struct es_serving */
	__u64 lacks[ES_NODES_MAX];	    /* likewise; 0 of a version that does not tell */
	char text[ES_NODES_MAX][192];
	unsigned char
		told_of[ES_NODES_MAX]; /* the trouble of each that people were told, and of which services */
	__u64 told_lacks[ES_NODES_MAX];
	struct ev_timer timer;
};

/* es_daemon_serving_start() - look, and from then on each second */
void es_daemon_serving_start(struct es_daemon *daemon);
void es_daemon_serving_stop(struct es_daemon *daemon);

/* es_daemon_serving_look() - now: something may have changed */
void es_daemon_serving_look(struct es_daemon *daemon);

/* es_daemon_serving_changed() - the same, as struct es_daemon_checks wants it */
void es_daemon_serving_changed(void *daemon);

/*
 * es_daemon_serving_word() - put into @word what this node says of itself: trouble, failing and
 * ES_WIRE_FAILING_YIELDS
 */
void es_daemon_serving_word(const struct es_daemon *daemon, struct es_wire_load *word);

/*
 * es_daemon_serving_tell() - tell the others, in a message of its own, how long a packet this node takes,
 * what it makes connections of, and for which services it has no server: each second, and when something of
 * that has changed or a node has come
 */
void es_daemon_serving_tell(struct es_daemon *daemon);

/*
 * es_daemon_serving_given() - what nobody reads is for the inspector to give away: all while this node
 * drains, and what is not on it
 */
void es_daemon_serving_given(struct es_daemon *daemon);

/* es_daemon_serving_look_in() - in so many seconds, less than one, and each second from then on */
void es_daemon_serving_look_in(struct es_daemon *daemon, double seconds);

/* es_daemon_serving_is_down() - does this node say that nobody shall give it anything new? */
int es_daemon_serving_is_down(const struct es_daemon *daemon);

/**
 * es_daemon_serving_heard() - @node says what is wrong with it, and without membership whether it is down
 * @word: only its trouble, failing and ES_WIRE_FAILING_YIELDS count
 */
void es_daemon_serving_heard(struct es_daemon *daemon, unsigned int node, const struct es_wire_load *word,
			     int is_down);

/*
 * es_daemon_serving_lacks() - @node says for which services it has no server, before it says what is wrong
 * with it
 */
void es_daemon_serving_lacks(struct es_daemon *daemon, unsigned int node, __u64 lacks);

/* The trouble of @node in a line, "" for none. */
const char *es_daemon_serving_trouble(const struct es_daemon *daemon, unsigned int node);

/* The trouble of @node, or a service that it is drained of, in a line; "" for neither. */
const char *es_daemon_serving_text(const struct es_daemon *daemon, unsigned int node);

#endif
