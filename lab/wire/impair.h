/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_WIRE_IMPAIR_H
#define ES_WIRE_IMPAIR_H

/*
 * The harm that a bad link does to a frame: lose it, double it, let later ones pass it, delay it. One object
 * per direction. No clock and no randomness of its own: time is an argument, and the same seed and calls give
 * the same verdicts.
 */
#include <stddef.h>
#include <stdint.h>

#define ES_WIRE_COPIES_MAX 2

/* Probabilities are in 0..1. All zero but @reorder_ms and @limit: the link is perfect. */
struct es_wire_settings {
	double loss;
	double dup;
	double reorder;
	double reorder_ms; /* how long a frame is held back for later ones to pass it */
	double delay_ms;
	double jitter_ms;   /* delay_ms plus or minus this, evenly; jitter alone never changes the order */
	double rate_mbit;   /* 0: as fast as it goes */
	uint32_t limit;	    /* frames that may wait at one time; what comes on top is lost ("overflow") */
	uint32_t drop_next; /* lose so many frames whatever the probabilities say; counts down */
};

struct es_wire_counters {
	uint64_t received;
	uint64_t received_bytes;
	uint64_t sent;
	uint64_t lost; /* by loss and by drop_next */
	uint64_t duplicated;
	uint64_t reordered;
	uint64_t delayed; /* waited in the queue, for whatever reason */
	uint64_t overflow;
	uint64_t truncated;
	uint64_t send_failed;
	uint64_t socket_drops; /* lost by the kernel before the shim saw them: unwanted, the test cannot trust
				  its figures */
};

struct es_wire_direction {
	struct es_wire_settings settings;
	struct es_wire_counters counters;
	uint64_t random;       /* the generator's state */
	uint64_t last_due_ns;  /* frames that are not reordered leave in order: not before this */
	uint64_t rate_free_ns; /* when the modelled transmitter is idle again */
};

/* How often and when a frame leaves; 0 copies: it is lost. */
struct es_wire_verdict {
	unsigned int copies;
	uint64_t due_ns[ES_WIRE_COPIES_MAX];
};

/* The settings of a perfect link, into @settings. */
void es_wire_settings_init(struct es_wire_settings *settings);

void es_wire_direction_init(struct es_wire_direction *direction, uint64_t seed);

/* Decides about one frame and counts everything but what happens to it in the queue and at the socket. */
struct es_wire_verdict es_wire_impair(struct es_wire_direction *direction, size_t frame_bytes,
				      uint64_t now_ns);

#endif
