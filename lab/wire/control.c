// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Text in, settings changed, JSON out. Knows nothing of sockets and frames.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/wire/control.h"

enum kind {
	KIND_REAL,
	KIND_COUNT,
};

struct key {
	const char *name;
	size_t offset;
	enum kind kind;
	double max;
};

#define KEY(field, kind_, max_)                                                                              \
	{                                                                                                    \
		.name = #field, .offset = offsetof(struct es_wire_settings, field), .kind = (kind_),         \
		.max = (max_)                                                                                \
	}

static const struct key keys[] = {
	KEY(loss, KIND_REAL, 1),	   KEY(dup, KIND_REAL, 1),	    KEY(reorder, KIND_REAL, 1),
	KEY(reorder_ms, KIND_REAL, 60000), KEY(delay_ms, KIND_REAL, 60000), KEY(jitter_ms, KIND_REAL, 60000),
	KEY(rate_mbit, KIND_REAL, 1e6),	   KEY(limit, KIND_COUNT, 1e6),	    KEY(drop_next, KIND_COUNT, 1e6),
};
#define KEY_NAMES "loss, dup, reorder, reorder_ms, delay_ms, jitter_ms, rate_mbit, limit, drop_next"

#define COUNTER(field)                                                                                       \
	{                                                                                                    \
#field, offsetof(struct es_wire_counters, field)                                             \
	}

static const struct {
	const char *name;
	size_t offset;
} counters[] = {
	COUNTER(received),   COUNTER(received_bytes), COUNTER(sent),	     COUNTER(lost),
	COUNTER(duplicated), COUNTER(reordered),      COUNTER(delayed),	     COUNTER(overflow),
	COUNTER(truncated),  COUNTER(send_failed),    COUNTER(socket_drops),
};

static const char *const side_names[ES_WIRE_SIDES] = {[ES_WIRE_A2B] = "a2b", [ES_WIRE_B2A] = "b2a"};

/* A text under construction; what does not fit is cut off (the figures take 1.5 KB at most). */
struct text {
	char *bytes;
	size_t length;
};

static void __attribute__((format(printf, 2, 3))) add(struct text *text, const char *format, ...)
{
	size_t room = ES_WIRE_ANSWER_MAX - text->length;
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(text->bytes + text->length, room, format, arguments);
	va_end(arguments);
	if (n > 0)
		text->length += (size_t)n < room ? (size_t)n : room - 1;
}

static void add_settings(struct text *text, const struct es_wire_settings *settings)
{
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *field = (const char *)settings + keys[i].offset;

		add(text, "%s\"%s\": ", i ? ", " : "", keys[i].name);
		if (keys[i].kind == KIND_REAL)
			add(text, "%.9g", *(const double *)field);
		else
			add(text, "%" PRIu32, *(const uint32_t *)field);
	}
}

size_t es_wire_figures(const struct es_wire_link *link, char answer[ES_WIRE_ANSWER_MAX])
{
	struct text text = {.bytes = answer};
	size_t side, i;

	add(&text, "{\"a\": \"%s\", \"b\": \"%s\", \"seed\": %" PRIu64, link->a, link->b, link->seed);
	for (side = 0; side < ES_WIRE_SIDES; side++) {
		const struct es_wire_direction *direction = &link->directions[side];

		add(&text, ", \"%s\": {", side_names[side]);
		for (i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
			add(&text, "\"%s\": %" PRIu64 ", ", counters[i].name,
			    *(const uint64_t *)((const char *)&direction->counters + counters[i].offset));
		add(&text, "\"waiting\": %zu, \"settings\": {", link->waiting[side]);
		add_settings(&text, &direction->settings);
		add(&text, "}}");
	}
	add(&text, "}\n");
	return text.length;
}

/* Applies one "KEY VALUE". Returns NULL or what would have been accepted. */
static const char *change(struct es_wire_settings *settings, const char *name, const char *value,
			  char *message, size_t room)
{
	const struct key *key = NULL;
	double number;
	char *end;
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strcmp(keys[i].name, name))
			key = &keys[i];
	if (!key)
		return "a key is one of " KEY_NAMES;
	errno = 0;
	number = value ? strtod(value, &end) : -1;
	if (!value || end == value || *end || errno || !(number >= 0 && number <= key->max) ||
	    (key->kind == KIND_COUNT && number != (double)(uint32_t)number)) {
		snprintf(message, room, "%s takes %s from 0 to %.9g", key->name,
			 key->kind == KIND_COUNT ? "a whole number" : "a number", key->max);
		return message;
	}
	if (key->kind == KIND_REAL)
		*(double *)((char *)settings + key->offset) = number;
	else
		*(uint32_t *)((char *)settings + key->offset) = (uint32_t)number;
	return NULL;
}

static size_t refuse(char answer[ES_WIRE_ANSWER_MAX], const char *reason)
{
	struct text text = {.bytes = answer};

	add(&text, "{\"error\": \"%s\"}\n", reason);
	return text.length;
}

size_t es_wire_command(struct es_wire_link *link, char *line, char answer[ES_WIRE_ANSWER_MAX])
{
	static const char blanks[] = " \t\r\n";
	struct es_wire_settings changed[ES_WIRE_SIDES];
	char *rest = NULL, *word = strtok_r(line, blanks, &rest);
	const char *error;
	char message[128];
	int first, last, side;

	if (word && !strcmp(word, "stats"))
		return es_wire_figures(link, answer);
	if (word && !strcmp(word, "zero")) {
		for (side = 0; side < ES_WIRE_SIDES; side++)
			memset(&link->directions[side].counters, 0, sizeof(link->directions[side].counters));
		return es_wire_figures(link, answer);
	}
	if (word && !strcmp(word, "both"))
		first = 0, last = ES_WIRE_SIDES - 1;
	else if (word && !strcmp(word, side_names[ES_WIRE_A2B]))
		first = last = ES_WIRE_A2B;
	else if (word && !strcmp(word, side_names[ES_WIRE_B2A]))
		first = last = ES_WIRE_B2A;
	else
		return refuse(answer, "a command is stats, zero, or begins with a2b, b2a or both");

	for (side = first; side <= last; side++)
		changed[side] = link->directions[side].settings;
	while ((word = strtok_r(NULL, blanks, &rest))) {
		const int clear = !strcmp(word, "clear");
		const char *value = clear ? NULL : strtok_r(NULL, blanks, &rest);

		for (side = first; side <= last; side++) {
			if (clear) {
				es_wire_settings_init(&changed[side]);
				continue;
			}
			error = change(&changed[side], word, value, message, sizeof(message));
			if (error)
				return refuse(answer, error);
		}
	}
	for (side = first; side <= last; side++)
		link->directions[side].settings = changed[side];
	return es_wire_figures(link, answer);
}
