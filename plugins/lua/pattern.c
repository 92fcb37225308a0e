// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Compiles patterns into items, and matches them (pattern.h).
 */
#include <ctype.h>
#include <string.h>
#include "pattern.h"

#define NOT_CLOSED (-1) /* the length of a capture whose ')' has not come yet */

/* --- making items */

static int class_has(unsigned char class, unsigned char c)
{
	int has;

	switch (tolower(class)) {
	case 'a':
		has = isalpha(c);
		break;
	case 'c':
		has = iscntrl(c);
		break;
	case 'd':
		has = isdigit(c);
		break;
	case 'g':
		has = isgraph(c);
		break;
	case 'l':
		has = islower(c);
		break;
	case 'p':
		has = ispunct(c);
		break;
	case 's':
		has = isspace(c);
		break;
	case 'u':
		has = isupper(c);
		break;
	case 'w':
		has = isalnum(c);
		break;
	case 'x':
		has = isxdigit(c);
		break;
	default:
		return class == c; /* an escaped character that is no class */
	}
	return isupper(class) ? !has : !!has;
}

static void set_add(struct es_lua_item *item, unsigned char c)
{
	item->set[c / 64] |= (uint64_t)1 << (c % 64);
}

static int set_has(const struct es_lua_item *item, unsigned char c)
{
	return (int)(item->set[c / 64] >> (c % 64) & 1);
}

/* The ']' of the set whose members begin at @at: not the first character, and not after a '%'. */
static const char *set_end(lua_State *lua, const char *at, const char *end)
{
	do {
		if (at >= end)
			luaL_error(lua, "malformed pattern (missing ']')");
		if (*at++ == '%' && at < end)
			at++;
	} while (at >= end || *at != ']');
	return at;
}

/* Reads a set, after its '['. Returns the place after its ']'. */
static const char *set_make(lua_State *lua, const char *at, const char *end, struct es_lua_item *item)
{
	int is_not = at < end && *at == '^';

	at += is_not;
	memset(item->set, 0, sizeof(item->set));
	es_lua_charge(lua, (size_t)(end - at) / 16 + 16);
	end = set_end(lua, at, end);
	for (; at < end; at++) {
		unsigned char from = (unsigned char)*at;

		if (from == '%') {
			at++;
			for (int c = 0; c < 256; c++)
				if (class_has((unsigned char)*at, (unsigned char)c))
					set_add(item, (unsigned char)c);
		} else if (end - at > 2 && at[1] == '-') {
			for (int c = from; c <= (unsigned char)at[2]; c++)
				set_add(item, (unsigned char)c);
			at += 2;
		} else {
			set_add(item, from);
		}
	}
	for (int i = 0; is_not && i < 4; i++)
		item->set[i] = ~item->set[i];
	return end + 1;
}

/* Reads the item after a '%'. Returns the place after it. */
static const char *escape_make(struct es_lua_match *m, const char *at, const char *end,
			       struct es_lua_item *item)
{
	if (at >= end)
		luaL_error(m->lua, "malformed pattern (ends with '%%')");
	if (*at == 'b') {
		if (end - at < 3)
			luaL_error(m->lua, "malformed pattern (missing arguments to '%%b')");
		item->kind = ES_LUA_BALANCE;
		item->first = (unsigned char)at[1];
		item->second = (unsigned char)at[2];
		return at + 3;
	}
	if (*at == 'f') {
		if (end - at < 2 || at[1] != '[')
			luaL_error(m->lua, "missing '[' after '%%f' in pattern");
		item->kind = ES_LUA_FRONTIER;
		return set_make(m->lua, at + 2, end, item);
	}
	if (isdigit((unsigned char)*at)) {
		item->kind = ES_LUA_BACK;
		item->capture = *at - '1';
		if (item->capture < 0 || item->capture >= m->captures || m->len[item->capture] == NOT_CLOSED)
			luaL_error(m->lua, "invalid capture index %%%d in pattern", item->capture + 1);
		return at + 1;
	}
	item->kind = isalpha((unsigned char)*at) ? ES_LUA_CLASS : ES_LUA_LITERAL;
	item->first = (unsigned char)*at;
	return at + 1;
}

static const char *capture_make(struct es_lua_match *m, const char *at, const char *end,
				struct es_lua_item *item)
{
	if (m->captures == ES_LUA_CAPTURES_MAX)
		luaL_error(m->lua, "too many captures");
	item->capture = m->captures++;
	if (at < end && *at == ')') {
		item->kind = ES_LUA_PLACE;
		m->len[item->capture] = ES_LUA_POSITION;
		return at + 1;
	}
	item->kind = ES_LUA_OPEN;
	m->len[item->capture] = NOT_CLOSED;
	return at;
}

static void capture_end(struct es_lua_match *m, struct es_lua_item *item)
{
	item->kind = ES_LUA_CLOSE;
	item->capture = m->captures - 1;
	while (item->capture >= 0 && m->len[item->capture] != NOT_CLOSED)
		item->capture--;
	if (item->capture < 0)
		luaL_error(m->lua, "invalid pattern capture");
	m->len[item->capture] = 0;
}

static const char *item_make(struct es_lua_match *m, const char *at, const char *end,
			     struct es_lua_item *item)
{
	unsigned char c = (unsigned char)*at++;

	item->repeat = ES_LUA_ONE;
	if (c == '(')
		return capture_make(m, at, end, item);
	if (c == ')') {
		capture_end(m, item);
		return at;
	}
	if (c == '$' && at == end) {
		item->kind = ES_LUA_TAIL;
		return at;
	}
	item->kind = c == '.' ? ES_LUA_ANY : ES_LUA_LITERAL;
	item->first = c;
	if (c == '[') {
		item->kind = ES_LUA_SET;
		at = set_make(m->lua, at, end, item);
	} else if (c == '%') {
		at = escape_make(m, at, end, item);
	}
	if (item->kind > ES_LUA_SET || at == end)
		return at;
	switch (*at) {
	case '*':
		item->repeat = ES_LUA_GREEDY;
		return at + 1;
	case '+':
		item->repeat = ES_LUA_GREEDY_1;
		return at + 1;
	case '-':
		item->repeat = ES_LUA_LAZY;
		return at + 1;
	case '?':
		item->repeat = ES_LUA_OPTIONAL;
		return at + 1;
	default:
		return at;
	}
}

void es_lua_match_init(struct es_lua_match *m, lua_State *lua, const char *at, size_t len)
{
	const char *end = at + len;

	m->lua = lua;
	m->sandbox = es_lua_sandbox_of(lua);
	m->captures = 0;
	for (m->count = 0; at < end; m->count++) {
		if (m->count == ES_LUA_ITEMS_MAX - 1)
			luaL_error(lua, "pattern too long: expected at most %d items", ES_LUA_ITEMS_MAX - 1);
		es_lua_match_step(m);
		at = item_make(m, at, end, &m->item[m->count]);
	}
	for (int i = 0; i < m->captures; i++)
		if (m->len[i] == NOT_CLOSED)
			luaL_error(lua, "unfinished capture");
	m->item[m->count].kind = ES_LUA_END;
}

/* --- matching */

static int one_matches(const struct es_lua_match *m, const struct es_lua_item *item, const char *at)
{
	if (!at || at >= m->end) /* never NULL, which analysers cannot know */
		return 0;
	switch (item->kind) {
	case ES_LUA_ANY:
		return 1;
	case ES_LUA_LITERAL:
		return (unsigned char)*at == item->first;
	case ES_LUA_CLASS:
		return class_has(item->first, (unsigned char)*at);
	default:
		return set_has(item, (unsigned char)*at);
	}
}

static const char *balance_end(struct es_lua_match *m, const struct es_lua_item *item, const char *at)
{
	int depth = 1;

	if (at >= m->end || (unsigned char)*at != item->first)
		return NULL;
	while (++at < m->end) {
		es_lua_match_step(m);
		if ((unsigned char)*at == item->second) {
			if (!--depth)
				return at + 1;
		} else if ((unsigned char)*at == item->first) {
			depth++;
		}
	}
	return NULL;
}

static int frontier_is(const struct es_lua_match *m, const struct es_lua_item *item, const char *at)
{
	unsigned char before = at == m->text ? 0 : (unsigned char)at[-1];
	unsigned char after = at == m->end ? 0 : (unsigned char)*at;

	return !set_has(item, before) && set_has(item, after);
}

static const char *back_end(struct es_lua_match *m, const struct es_lua_item *item, const char *at)
{
	ptrdiff_t len = m->len[item->capture];

	if (len == ES_LUA_POSITION) /* as Lua has it */
		return NULL;
	es_lua_charge(m->lua, (size_t)len / 16);
	return m->end - at >= len && !memcmp(at, m->start[item->capture], (size_t)len) ? at + len : NULL;
}

static const char *run(struct es_lua_match *m, unsigned int i, const char *at);

/*
 * Tries as many repetitions as there are, then fewer; or as few as possible, then more, until the rest
 * matches.
 */
static const char *run_repeated(struct es_lua_match *m, unsigned int i, const char *at)
{
	const struct es_lua_item *item = &m->item[i];
	const char *least = at + (item->repeat == ES_LUA_GREEDY_1), *found;

	if (item->repeat == ES_LUA_LAZY) {
		for (;; at++) {
			found = run(m, i + 1, at);
			if (found || !one_matches(m, item, at))
				return found;
		}
	}
	while (one_matches(m, item, at)) {
		es_lua_match_step(m);
		at++;
	}
	for (; at >= least; at--) {
		found = run(m, i + 1, at);
		if (found)
			return found;
	}
	return NULL;
}

/* The end of a match of item @i and all that follow, from @at on; NULL for none. */
// NOLINTNEXTLINE(misc-no-recursion): at most once for each item
static const char *run(struct es_lua_match *m, unsigned int i, const char *at)
{
	for (;; i++) {
		const struct es_lua_item *item = &m->item[i];
		const char *found;

		es_lua_match_step(m);
		switch (item->kind) {
		case ES_LUA_END:
			return at;
		case ES_LUA_TAIL:
			return at == m->end ? at : NULL;
		case ES_LUA_OPEN:
			m->start[item->capture] = at;
			continue;
		case ES_LUA_PLACE:
			m->start[item->capture] = at;
			m->len[item->capture] = ES_LUA_POSITION;
			continue;
		case ES_LUA_CLOSE:
			m->len[item->capture] = at - m->start[item->capture];
			continue;
		case ES_LUA_FRONTIER:
			if (!frontier_is(m, item, at))
				return NULL;
			continue;
		case ES_LUA_BALANCE:
			at = balance_end(m, item, at);
			break;
		case ES_LUA_BACK:
			at = back_end(m, item, at);
			break;
		default:
			if (item->repeat == ES_LUA_OPTIONAL) {
				found = one_matches(m, item, at) ? run(m, i + 1, at + 1) : NULL;
				if (found)
					return found;
				continue;
			}
			if (item->repeat != ES_LUA_ONE)
				return run_repeated(m, i, at);
			at = one_matches(m, item, at) ? at + 1 : NULL;
			break;
		}
		if (!at)
			return NULL;
	}
}

const char *es_lua_match_run(struct es_lua_match *m, const char *at)
{
	return run(m, 0, at);
}
