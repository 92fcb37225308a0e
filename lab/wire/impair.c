// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The model of a bad link. A frame first waits for the modelled transmitter (rate), then travels (delay and
 * jitter); a reordered one is held back on top of that, without holding up those behind it. Not responsible
 * for frames themselves: it never sees one.
 */
#include <string.h>

#include "lab/wire/impair.h"

#define NS_PER_MS 1e6

void es_wire_settings_init(struct es_wire_settings *settings)
{
	memset(settings, 0, sizeof(*settings));
	settings->reorder_ms = 5;
	settings->limit = 16384;
}

void es_wire_direction_init(struct es_wire_direction *direction, uint64_t seed)
{
	memset(direction, 0, sizeof(*direction));
	es_wire_settings_init(&direction->settings);
	direction->random = seed;
}

/* splitmix64 (Steele, Lea, Flood 2014): any seed is a good one. */
static uint64_t next_random(struct es_wire_direction *direction)
{
	uint64_t x = direction->random += 0x9e3779b97f4a7c15ULL;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* Evenly in [0, 1). */
static double next_fraction(struct es_wire_direction *direction)
{
	return (double)(next_random(direction) >> 11) * 0x1p-53;
}

static int happens(struct es_wire_direction *direction, double probability)
{
	return probability > 0 && next_fraction(direction) < probability;
}

/* When a frame leaves that @now_ns is given to the transmitter. */
static uint64_t due(struct es_wire_direction *direction, size_t frame_bytes, uint64_t now_ns)
{
	const struct es_wire_settings *settings = &direction->settings;
	double delay_ms = settings->delay_ms;
	uint64_t due_ns = now_ns;

	if (settings->rate_mbit > 0) {
		if (direction->rate_free_ns > due_ns)
			due_ns = direction->rate_free_ns;
		due_ns += (uint64_t)((double)frame_bytes * 8e3 / settings->rate_mbit);
		direction->rate_free_ns = due_ns;
	}
	if (settings->jitter_ms > 0)
		delay_ms += settings->jitter_ms * (2 * next_fraction(direction) - 1);
	if (delay_ms > 0)
		due_ns += (uint64_t)(delay_ms * NS_PER_MS);

	if (happens(direction, settings->reorder)) {
		direction->counters.reordered++;
		return due_ns + (uint64_t)(settings->reorder_ms * NS_PER_MS);
	}
	if (due_ns < direction->last_due_ns)
		due_ns = direction->last_due_ns;
	direction->last_due_ns = due_ns;
	return due_ns;
}

struct es_wire_verdict es_wire_impair(struct es_wire_direction *direction, size_t frame_bytes,
				      uint64_t now_ns)
{
	struct es_wire_verdict verdict = {0};

	direction->counters.received++;
	direction->counters.received_bytes += frame_bytes;
	if (direction->settings.drop_next) {
		direction->settings.drop_next--;
		direction->counters.lost++;
		return verdict;
	}
	if (happens(direction, direction->settings.loss)) {
		direction->counters.lost++;
		return verdict;
	}
	verdict.due_ns[verdict.copies++] = due(direction, frame_bytes, now_ns);
	if (happens(direction, direction->settings.dup)) {
		direction->counters.duplicated++;
		verdict.due_ns[verdict.copies++] = due(direction, frame_bytes, now_ns);
	}
	return verdict;
}
