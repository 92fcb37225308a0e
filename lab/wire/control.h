/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_WIRE_CONTROL_H
#define ES_WIRE_CONTROL_H

/*
 * The shim's text commands, one line each, and its figures as JSON:
 *
 *   stats                          the figures
 *   zero                           all counters back to 0
 *   DIRECTION KEY VALUE [KEY VALUE ...]
 *   DIRECTION clear                a perfect link again; a word of its own, settings may follow it
 *
 * DIRECTION is a2b, b2a or both; KEY is a field of struct es_wire_settings. Every answer is one line of JSON:
 * the figures, or {"error": "what is wrong and what would be accepted"}; a line with an error in it changes
 * nothing.
 */
#include <stddef.h>
#include <stdint.h>

#include "lab/wire/impair.h"

#define ES_WIRE_COMMAND_MAX 512
#define ES_WIRE_ANSWER_MAX  4096

enum es_wire_side {
	ES_WIRE_A2B,
	ES_WIRE_B2A,
	ES_WIRE_SIDES,
};

struct es_wire_link {
	const char *a; /* names of the two interfaces */
	const char *b;
	uint64_t seed;
	struct es_wire_direction directions[ES_WIRE_SIDES];
	size_t waiting[ES_WIRE_SIDES]; /* frames in the queue now */
};

/* Carries out @line (it is chopped up) and writes the answer with its newline.
 * Returns the answer's length. */
size_t es_wire_command(struct es_wire_link *link, char *line, char answer[ES_WIRE_ANSWER_MAX]);

/* Writes the figures with a newline; returns their length. */
size_t es_wire_figures(const struct es_wire_link *link, char answer[ES_WIRE_ANSWER_MAX]);

#endif
