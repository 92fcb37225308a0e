// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Writes a configuration file, perhaps one that no daemon takes, as strangers may read it. Only what is known
 * to be no secret is shown: the names of sections and keys, the titles of sections, and the values of keys
 * that hold none. So a word in a place where none belongs, and the value of a key with a typing error in its
 * name, are left out.
 */
#include <ctype.h>
#include <string.h>

#include "inspector/config/internal.h"

#define LEFT_OUT     "\"(left out)\""
#define LEFT_OUT_LEN (sizeof(LEFT_OUT) - 1)

/* How much of a value may be shown: all, a path alone, the part before the ":", or nothing. */
enum shown {
	SHOWN_NOTHING,
	SHOWN_NAME,
	SHOWN_PATH,
	SHOWN,
};

/*
 * struct redact - @key_shown: how much of the values of the key that is read; @in_list: between the braces of
 * a list;
 * @titled: a section's title may come
 */
struct redact {
	const char *pos;
	const char *end;
	FILE *out;
	void (*hidden)(void *ctx, const char *text, size_t len);
	void *ctx;
	enum shown key_shown;
	int in_value;
	int in_list;
	int titled;
};

static enum shown kind_shown(enum es_conf_kind kind)
{
	/*
	 * A plugin's configuration may hold a secret, and so may the value of a header, by which clients
	 * prove who they are.
	 */
	if (kind == ES_CONF_KIND_CONFIG)
		return SHOWN_NOTHING;
	/* The cluster's key itself, perhaps, by somebody who has written "key" for "key_file". */
	if (kind == ES_CONF_KIND_FILES)
		return SHOWN_PATH;
	return kind == ES_CONF_KIND_HEADER ? SHOWN_NAME : SHOWN;
}

/*
 * How much of the value of such a key may be shown: the least that any section admits. Returns 0 if none has
 * it.
 */
static int key_find(const char *name, size_t len, enum shown *ret_shown)
{
	int is_known = 0;

	*ret_shown = SHOWN;
	for (int s = 0; s < ES_CONF_SECTIONS; s++)
		for (const struct es_conf_key *key = es_conf_sections[s].keys; key->name; key++)
			if (strlen(key->name) == len && !memcmp(key->name, name, len)) {
				if (kind_shown(key->kind) < *ret_shown)
					*ret_shown = kind_shown(key->kind);
				is_known = 1;
			}
	return is_known;
}

static const struct es_conf_section *section_find(const char *name, size_t len)
{
	for (int s = 0; s < ES_CONF_SECTIONS; s++)
		if (strlen(es_conf_sections[s].name) == len && !memcmp(es_conf_sections[s].name, name, len))
			return &es_conf_sections[s];
	return NULL;
}

static void put(const struct redact *r, const char *text, size_t len)
{
	fwrite(text, 1, len, r->out);
}

/* The next character that is no blank, on any line. */
static char next_char(const struct redact *r, const char *pos)
{
	while (pos < r->end && isspace((unsigned char)*pos))
		pos++;
	return (char)(pos < r->end ? *pos : 0);
}

static void leave_out(const struct redact *r, const char *text, size_t len)
{
	if (r->hidden && len)
		r->hidden(r->ctx, text, len);
	put(r, LEFT_OUT, LEFT_OUT_LEN);
}

/* @text has its quotes, if there are any. A query is left out, since it may have any secret. */
static void put_value(const struct redact *r, const char *text, size_t len)
{
	char quote = *text == '"' || *text == '\'' ? *text : 0;
	size_t inner = len - (quote && len > 1 && text[len - 1] == quote);
	const char *cut = r->key_shown == SHOWN_NAME ? memchr(text, ':', len) : memchr(text, '?', len);

	if (r->key_shown == SHOWN_NOTHING || (r->key_shown == SHOWN_PATH && text[!!quote] != '/') ||
	    (quote && inner == len)) {
		leave_out(r, text + !!quote, inner - !!quote);
		return;
	}
	if (!cut) {
		put(r, text, len);
		return;
	}
	put(r, text, (size_t)(cut - text) + 1);
	while (++cut < text + inner && *cut == ' ')
		;
	if (r->hidden && cut < text + inner)
		r->hidden(r->ctx, cut, (size_t)(text + inner - cut));
	fprintf(r->out, "(left out)%.1s", quote ? &quote : "");
}

/* A word or string that is no value. */
static void put_name(struct redact *r, const char *text, size_t len)
{
	const struct es_conf_section *section = section_find(text, len);
	char next = next_char(r, text + len);
	enum shown shown;

	if (next == '=') {
		int is_known = key_find(text, len, &shown);

		r->key_shown = is_known ? shown : SHOWN_NOTHING;
		r->titled = 0;
		if (is_known)
			put(r, text, len);
		else
			leave_out(r, text, len);
	} else if (section) {
		r->titled = section->titled;
		put(r, text, len);
	} else if (r->titled && next == '{') {
		r->titled = 0;
		put(r, text, len);
	} else {
		leave_out(r, text, len);
	}
}

static void token(struct redact *r, size_t len)
{
	if (!r->in_value) {
		put_name(r, r->pos, len);
	} else {
		put_value(r, r->pos, len);
		/* A value may consist of two words with a comma between them. */
		if (!r->in_list && next_char(r, r->pos + len) != ',')
			r->in_value = 0;
	}
	r->pos += len;
}

static void punctuation(struct redact *r)
{
	switch (*r->pos) {
	case '=':
		r->in_value = 1;
		break;
	case '{':
		r->in_list = r->in_value;
		break;
	case '}':
		if (r->in_list)
			r->in_value = r->in_list = 0;
		break;
	default:
		break;
	}
	put(r, r->pos++, 1);
}

/* The line ends of a comment stay, so that all other lines keep their numbers. */
static void skip_comment(struct redact *r)
{
	int is_block = r->pos[0] == '/' && r->pos[1] == '*';
	const char *begin = r->pos;

	for (; r->pos < r->end; r->pos++) {
		if (*r->pos == '\n' && !is_block)
			return;
		if (*r->pos == '\n')
			put(r, "\n", 1);
		if (is_block && r->pos >= begin + 3 && r->pos[-1] == '*' && *r->pos == '/') {
			r->pos++;
			return;
		}
	}
}

static size_t string_len(const struct redact *r)
{
	const char *pos = r->pos + 1;

	while (pos < r->end && *pos != *r->pos && *pos != '\n')
		pos++;
	return (size_t)(pos - r->pos) + (pos < r->end && *pos == *r->pos);
}

static size_t word_len(const struct redact *r)
{
	const char *pos = r->pos;

	while (pos < r->end && *pos && !isspace((unsigned char)*pos) && !strchr("={},\"'#", *pos))
		pos++;
	return (size_t)(pos - r->pos);
}

void es_conf_redact(const char *text, size_t size, FILE *out,
		    void (*hidden)(void *ctx, const char *text, size_t len), void *ctx)
{
	struct redact r = {
		.pos = text,
		.end = text + size,
		.out = out,
		.hidden = hidden,
		.ctx = ctx,
	};

	while (r.pos < r.end) {
		char c = *r.pos, next = (char)(r.pos + 1 < r.end ? r.pos[1] : 0);

		if (c == '\n' || c == ' ' || c == '\t') {
			put(&r, r.pos++, 1);
		} else if (!c || isspace((unsigned char)c)) {
			r.pos++;
		} else if (c == '#' || (c == '/' && (next == '/' || next == '*'))) {
			skip_comment(&r);
		} else if (strchr("={},", c)) {
			punctuation(&r);
		} else {
			token(&r, c == '"' || c == '\'' ? string_len(&r) : word_len(&r));
		}
	}
}
