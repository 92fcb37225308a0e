// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * First look at the text of a configuration file. libconfuse 3.3 accepts a missing last "}", an unterminated
 * comment or string, drops characters that it cannot use and replaces ${VARIABLES}; all of that would make
 * nodes run with something else than what the file says. This pass refuses it, with the line. It also blanks
 * the comments, whose lines libconfuse counts twice and more, and a byte order mark, and hides backslashes,
 * which are no escapes here. It knows only characters, quotes, comments and braces: keys and values are
 * libconfuse's and config.c's business.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "inspector/base/utf8.h"
#include "inspector/config/internal.h"

enum es_scan_state {
	ES_SCAN_PLAIN,
	ES_SCAN_WORD,
	ES_SCAN_STRING,
	ES_SCAN_LINE_COMMENT,
	ES_SCAN_BLOCK_COMMENT,
};

struct es_scan {
	struct es_conf_parse *p;
	char *pos;
	const char *end;
	int line;
	enum es_scan_state state;
	char quote;
	int begun; /* line on which the string or comment began */
	int brace; /* line of the open brace, 0: none */
	int inner; /* line of the brace inside it, 0: none */
	const char *text;
	int list;  /* line of the open list, 0: none */
	char last; /* character before this one, without space and comments */
};

static int es_scan_next_is(const struct es_scan *s, char c)
{
	return s->pos + 1 < s->end && s->pos[1] == c;
}

static int es_scan_control(struct es_scan *s, unsigned char c)
{
	if (c == '\t' || c == '\n' || (c == '\r' && es_scan_next_is(s, '\n')))
		return 0;
	if (c < 0x20 || c == 0x7f)
		return es_conf_fail(s->p, s->line, "control character 0x%02x: expected text", c);
	return 0;
}

/* Goes back over blanks and then over a word, quoted or not; NULL if there is none. */
static const char *es_scan_word_before(const struct es_scan *s, const char *pos)
{
	const char *end;

	while (pos > s->text && isspace((unsigned char)pos[-1]))
		pos--;
	end = pos;
	while (pos > s->text && !isspace((unsigned char)pos[-1]) && !strchr("={}", pos[-1]))
		pos--;
	return pos < end ? pos : NULL;
}

static int es_scan_begins_with(const struct es_scan *s, const char *at, const char *word)
{
	size_t len = strlen(word);

	return at && !strncmp(at, word, len) && (isspace((unsigned char)at[len]) || at + len == s->pos);
}

/*
 * Does this brace open a section that may be inside another, such as plugin NAME { or check {? Any other
 * brace inside a section is a sign of a "}" that was forgotten.
 */
static int es_scan_is_inner(const struct es_scan *s)
{
	const char *name = es_scan_word_before(s, s->pos);

	const char *title = name ? es_scan_word_before(s, name) : NULL;

	for (int i = ES_CONF_PLUGIN; i < ES_CONF_SECTIONS; i++)
		if (es_scan_begins_with(s, es_conf_sections[i].titled ? title : name,
					es_conf_sections[i].name))
			return 1;
	return 0;
}

static int es_scan_list(struct es_scan *s, char c)
{
	if (c == '{' && s->list)
		return es_conf_fail(s->p, s->line,
				    "\"{\" inside the list opened at line %d: expected \"}\" first", s->list);
	if (c == '{') {
		s->list = s->line;
	} else {
		if (s->last == '{' || s->last == ',')
			return es_conf_fail(s->p, s->line, "\"%c\" after \"%c\" in a list: expected a value",
					    c, s->last);
		if (c == '}')
			s->list = 0;
	}
	return 0;
}

static int es_scan_brace(struct es_scan *s, char c)
{
	if (s->list || (c == '{' && s->last == '='))
		return es_scan_list(s, c);
	if (c == '{' && s->brace && !s->inner && es_scan_is_inner(s)) {
		s->inner = s->line;
	} else if (c == '}' && s->inner) {
		s->inner = 0;
	} else if (c == '{') {
		if (s->brace)
			return es_conf_fail(
				s->p, s->line,
				"\"{\" inside the section opened at line %d: expected \"}\" first", s->brace);
		s->brace = s->line;
	} else {
		if (!s->brace)
			return es_conf_fail(s->p, s->line,
					    "\"}\" without \"{\": expected a section or the end");
		s->brace = 0;
	}
	return 0;
}

static int es_scan_is_word(char c)
{
	return isascii((unsigned char)c) && (isalnum((unsigned char)c) || strchr("._:/-%", c)) && c;
}

static int es_scan_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/*
 * A comma between two words of one line joins them to one value. Return: 1 if it does, and has been hidden.
 */
static int es_scan_joins(struct es_scan *s)
{
	char *before = s->pos, *behind = s->pos + 1;

	if (!es_scan_is_word(s->last))
		return 0;
	while (behind < s->end && es_scan_is_blank(*behind))
		behind++;
	while (before > s->text && es_scan_is_blank(before[-1]))
		before--;
	if (behind == s->end || !es_scan_is_word(*behind) || before == s->text ||
	    !es_scan_is_word(before[-1]))
		return 0;
	memset(before, ES_CONF_BLANK, (size_t)(behind - before));
	*s->pos = ES_CONF_COMMA;
	s->pos = behind - 1;
	s->state = ES_SCAN_WORD;
	return 1;
}

/* Looks at a character outside of strings and comments. */
static int es_scan_plain(struct es_scan *s, char c)
{
	/* libconfuse takes slashes inside a word as part of it,
	 * so a comment starts only where a word could */
	if (c == '#' || (s->state == ES_SCAN_PLAIN && c == '/' && es_scan_next_is(s, '/'))) {
		s->state = ES_SCAN_LINE_COMMENT;
		*s->pos = ' ';
		return 0;
	}
	if (s->state == ES_SCAN_PLAIN && c == '/' && es_scan_next_is(s, '*')) {
		s->state = ES_SCAN_BLOCK_COMMENT;
		s->begun = s->line;
		*s->pos++ = ' ';
		*s->pos = ' ';
		return 0;
	}
	if (c == '"' || c == '\'') {
		s->state = ES_SCAN_STRING;
		s->quote = c;
		s->begun = s->line;
		return 0;
	}
	if (c == '{' || c == '}') {
		s->state = ES_SCAN_PLAIN;
		return es_scan_brace(s, c);
	}
	if (c == ',' && s->list) {
		s->state = ES_SCAN_PLAIN;
		return es_scan_list(s, c);
	}
	if (c == ',' && es_scan_joins(s))
		return 0;
	if (c == '=' || isspace((unsigned char)c)) {
		s->state = ES_SCAN_PLAIN;
		return 0;
	}
	if (es_scan_is_word(c)) {
		s->state = ES_SCAN_WORD;
		return 0;
	}
	if (isascii((unsigned char)c))
		return es_conf_fail(s->p, s->line,
				    "unexpected \"%c\": expected a word, \"=\", \"{\", \"}\" or quotes", c);
	return es_conf_fail(s->p, s->line,
			    "unexpected byte 0x%02x: expected ASCII outside quotes and comments",
			    (unsigned char)c);
}

/* A character outside of ASCII in a string must be UTF-8, or nobody knows which one it is. */
static int es_scan_wide(struct es_scan *s)
{
	size_t len = es_utf8_len(s->pos, (size_t)(s->end - s->pos));

	if (!len)
		return es_conf_fail(
			s->p, s->line,
			"byte 0x%02x in a string is not UTF-8: expected UTF-8, or %%%02X in a path",
			(unsigned char)*s->pos, (unsigned char)*s->pos);
	s->pos += len - 1;
	return 0;
}

static int es_scan_string(struct es_scan *s, char c)
{
	if (c == s->quote) {
		s->state = ES_SCAN_PLAIN;
		return 0;
	}
	if (c == '\n')
		return es_conf_fail(s->p, s->begun,
				    "string without its closing %c: expected it on the same line", s->quote);
	if (c == '\t' || c == '\r')
		return es_conf_fail(s->p, s->line, "control character 0x%02x: expected text",
				    (unsigned char)c);
	if (c == '\\') {
		if (es_scan_next_is(s, s->quote))
			return es_conf_fail(
				s->p, s->line,
				"\"\\%c\" in a string: expected no escapes: a backslash is itself, and "
				"a text with %s stands in %s quotes",
				s->quote, s->quote == '"' ? "\"" : "'",
				s->quote == '"' ? "single" : "double");
		*s->pos = ES_CONF_BACKSLASH;
	}
	if (c == '$' && es_scan_next_is(s, '{'))
		return es_conf_fail(
			s->p, s->line,
			"\"${\" in a string: expected no variables, the file is the same on all nodes");
	return isascii((unsigned char)c) ? 0 : es_scan_wide(s);
}

static int es_scan_char(struct es_scan *s)
{
	char c = *s->pos;

	if (es_scan_control(s, (unsigned char)c))
		return -EINVAL;
	switch (s->state) {
	case ES_SCAN_PLAIN:
	case ES_SCAN_WORD:
		return es_scan_plain(s, c);
	case ES_SCAN_STRING:
		return es_scan_string(s, c);
	case ES_SCAN_LINE_COMMENT:
		if (c == '\n')
			s->state = ES_SCAN_PLAIN;
		else
			*s->pos = ' ';
		return 0;
	case ES_SCAN_BLOCK_COMMENT:
		if (c == '*' && es_scan_next_is(s, '/')) {
			s->state = ES_SCAN_PLAIN;
			*s->pos++ = ' ';
		}
		if (c != '\n')
			*s->pos = ' ';
		return 0;
	}
	return 0;
}

int es_conf_scan(struct es_conf_parse *p, char *text, size_t size)
{
	struct es_scan s = {.p = p, .text = text, .pos = text, .end = text + size, .line = 1};

	if (es_utf16_is(text, size))
		return es_conf_fail(p, 0, "UTF-16: expected UTF-8, as iconv -f UTF-16 -t UTF-8 makes it");
	memset(text, ' ', es_utf8_mark_len(text, size));
	for (; s.pos < s.end; s.pos++) {
		char c = *s.pos;

		if (es_scan_char(&s))
			return -EINVAL;
		/* Comments are blanks by now. */
		if (!isspace((unsigned char)*s.pos))
			s.last = *s.pos;
		if (c == '\n')
			s.line++;
	}
	if (s.state == ES_SCAN_STRING)
		return es_conf_fail(p, s.begun, "string without its closing %c: expected it on the same line",
				    s.quote);
	if (s.state == ES_SCAN_BLOCK_COMMENT)
		return es_conf_fail(p, s.begun, "comment without its end: expected */");
	if (s.list)
		return es_conf_fail(p, s.list, "\"{\" without \"}\": expected it before the end of the file");
	if (s.brace)
		return es_conf_fail(p, s.inner ? s.inner : s.brace,
				    "\"{\" without \"}\": expected it before the end of the file");
	return 0;
}
