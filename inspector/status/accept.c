// SPDX-License-Identifier: GPL-2.0-or-later
/* Which of the formats of the metrics a collector wants. */
#include <string.h>
#include <strings.h>
#include "inspector/status/accept.h"

#define BLANK " \t"

/* How exactly a range names a type. */
enum how { NOT_NAMED, ANY_TYPE, ANY_SUBTYPE, NAMED };

/* @place: of the range that says so, from 0 on */
struct wish {
	enum how how;
	unsigned int q; /* in 1/1000 */
	unsigned int place;
};

/* Up to @stop, or the end; what is in quotes is passed over. */
static size_t part_len(const char *text, size_t len, char stop)
{
	int quoted = 0;
	size_t i;

	for (i = 0; i < len && (quoted || text[i] != stop); i++) {
		if (text[i] == '"')
			quoted = !quoted;
		else if (quoted && text[i] == '\\' && i + 1 < len)
			i++;
	}
	return i;
}

static void trim(const char **text, size_t *len)
{
	while (*len && strchr(BLANK, **text)) {
		(*text)++;
		(*len)--;
	}
	while (*len && strchr(BLANK, (*text)[*len - 1]))
		(*len)--;
}

/* "0.25" in 1/1000; 1000 for what is no weight, as if none were there. */
static unsigned int weight_of(const char *text, size_t len)
{
	unsigned int weight, unit = 100;

	if (!len || len > 5 || (text[0] != '0' && text[0] != '1') || (len > 1 && text[1] != '.'))
		return 1000;
	weight = text[0] == '1' ? 1000 : 0;
	for (size_t i = 2; i < len; i++, unit /= 10) {
		if (text[i] < '0' || text[i] > '9')
			return 1000;
		weight += (unsigned int)(text[i] - '0') * unit;
	}
	return weight > 1000 ? 1000 : weight;
}

static unsigned int q_of(const char *text, size_t len)
{
	unsigned int q = 1000;

	while (len) {
		size_t part = part_len(text, len, ';'), size = part;
		const char *parameter = text;

		trim(&parameter, &size);
		if (size > 2 && (parameter[0] == 'q' || parameter[0] == 'Q') && parameter[1] == '=')
			q = weight_of(parameter + 2, size - 2);
		text += part + (part < len);
		len -= part + (part < len);
	}
	return q;
}

static enum how how_named(const char *range, size_t len, const char *type)
{
	size_t main_len = strcspn(type, "/") + 1;

	if (len == strlen(type) && !strncasecmp(range, type, len))
		return NAMED;
	if (len == main_len + 1 && !strncasecmp(range, type, main_len) && range[main_len] == '*')
		return ANY_SUBTYPE;
	return len == 3 && !strncmp(range, "*/*", 3) ? ANY_TYPE : NOT_NAMED;
}

static void wish_add(struct wish *wish, enum how how, unsigned int q, unsigned int place)
{
	if (how > wish->how || (how == wish->how && how != NOT_NAMED && q > wish->q))
		*wish = (struct wish){how, q, place};
}

enum es_exposition_format es_accept_format(const char *accept)
{
	static const char *const types[ES_EXPOSITION_FORMATS] = {
		[ES_EXPOSITION_PROMETHEUS] = "text/plain",
		[ES_EXPOSITION_OPENMETRICS] = "application/openmetrics-text",
	};
	struct wish wish[ES_EXPOSITION_FORMATS] = {};
	const struct wish *plain = &wish[ES_EXPOSITION_PROMETHEUS], *open = &wish[ES_EXPOSITION_OPENMETRICS];
	size_t left = accept ? strlen(accept) : 0;

	for (unsigned int place = 0; left; place++) {
		size_t part = part_len(accept, left, ','), len = part_len(accept, part, ';'), size = len;
		const char *range = accept;
		unsigned int q = len < part ? q_of(accept + len + 1, part - len - 1) : 1000;

		trim(&range, &size);
		for (unsigned int i = 0; i < ES_EXPOSITION_FORMATS; i++)
			wish_add(&wish[i], how_named(range, size, types[i]), q, place);
		accept += part + (part < left);
		left -= part + (part < left);
	}
	if (open->q != plain->q)
		return open->q > plain->q ? ES_EXPOSITION_OPENMETRICS : ES_EXPOSITION_PROMETHEUS;
	return open->q && open->how == NAMED && (plain->how != NAMED || open->place < plain->place)
		       ? ES_EXPOSITION_OPENMETRICS
		       : ES_EXPOSITION_PROMETHEUS;
}
