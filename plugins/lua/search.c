// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * string.find, match, gmatch and gsub, as the Lua 5.4 manual defines them, with the patterns of pattern.h.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem() */
#endif
#include <ctype.h>
#include <string.h>
#include "pattern.h"

#define SPECIALS "^$*+?.([%-"

/* A string argument; it never is NULL, which analysers cannot know. */
static const char *text_of(lua_State *lua, int index, size_t *ret_len)
{
	const char *text = luaL_checklstring(lua, index, ret_len);

	return text ? text : "";
}

/* Capture @i, or the whole match for number 0 of a pattern without any. */
static void capture_push(struct es_lua_match *m, int i, const char *from, const char *to)
{
	if (i >= m->captures && i > 0)
		luaL_error(m->lua, "invalid capture index %%%d", i + 1);
	if (i >= m->captures)
		lua_pushlstring(m->lua, from, (size_t)(to - from));
	else if (m->len[i] == ES_LUA_POSITION)
		lua_pushinteger(m->lua, m->start[i] - m->text + 1);
	else
		lua_pushlstring(m->lua, m->start[i], (size_t)m->len[i]);
}

static int captures_push(struct es_lua_match *m, const char *from, const char *to, int whole_if_none)
{
	int count = m->captures || !whole_if_none ? m->captures : 1;

	luaL_checkstack(m->lua, count, "too many captures");
	for (int i = 0; i < count; i++)
		capture_push(m, i, from, to);
	return count;
}

/*
 * The place to begin at, counted from 0, by the optional argument @index; a negative one counts from the end.
 */
static size_t begin_of(lua_State *lua, int index, size_t len)
{
	lua_Integer begin = luaL_optinteger(lua, index, 1);

	if (begin > 0)
		return (lua_Unsigned)begin - 1 > len ? len + 1 : (size_t)begin - 1;
	if (!begin || (lua_Unsigned)0 - (lua_Unsigned)begin > len)
		return 0;
	return len - (size_t)-begin;
}

static int is_plain(const char *pattern, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (pattern[i] && strchr(SPECIALS, pattern[i]))
			return 0;
	return 1;
}

static int search(lua_State *lua, int is_find)
{
	size_t len, pattern_len, begin;
	const char *text = text_of(lua, 1, &len), *from, *to;
	const char *pattern = text_of(lua, 2, &pattern_len);
	struct es_lua_match m;
	int is_anchored;

	begin = begin_of(lua, 3, len);
	if (begin > len) {
		lua_pushnil(lua);
		return 1;
	}
	es_lua_charge(lua, pattern_len / 16);
	if (is_find && (lua_toboolean(lua, 4) || is_plain(pattern, pattern_len))) {
		es_lua_charge(lua, (len - begin) / 16);
		from = pattern_len ? memmem(text + begin, len - begin, pattern, pattern_len) : text + begin;
		if (!from) {
			lua_pushnil(lua);
			return 1;
		}
		lua_pushinteger(lua, from - text + 1);
		lua_pushinteger(lua, from - text + (lua_Integer)pattern_len);
		return 2;
	}
	is_anchored = pattern_len && *pattern == '^';
	es_lua_match_init(&m, lua, pattern + is_anchored, pattern_len - (size_t)is_anchored);
	m.text = text;
	m.end = text + len;
	from = text + begin;
	do {
		to = es_lua_match_run(&m, from);
		if (!to)
			continue;
		if (!is_find)
			return captures_push(&m, from, to, 1);
		lua_pushinteger(lua, from - text + 1);
		lua_pushinteger(lua, to - text);
		return 2 + captures_push(&m, from, to, 0);
	} while (!is_anchored && ++from <= m.end);
	lua_pushnil(lua);
	return 1;
}

static int find(lua_State *lua)
{
	return search(lua, 1);
}

static int match(lua_State *lua)
{
	return search(lua, 0);
}

/* Upvalues: text, pattern, where to go on, and where the last match ended (-1: none), from 0 on. */
static int gmatch_next(lua_State *lua)
{
	size_t len, pattern_len;
	const char *text = text_of(lua, lua_upvalueindex(1), &len), *to;
	const char *pattern = text_of(lua, lua_upvalueindex(2), &pattern_len);
	lua_Integer at = lua_tointeger(lua, lua_upvalueindex(3));
	lua_Integer last = lua_tointeger(lua, lua_upvalueindex(4));
	struct es_lua_match m;

	es_lua_match_init(&m, lua, pattern, pattern_len);
	m.text = text;
	m.end = text + len;
	for (; at <= (lua_Integer)len; at++) {
		to = es_lua_match_run(&m, text + at);
		if (!to || to - text == last)
			continue;
		lua_pushinteger(lua, to - text);
		lua_copy(lua, -1, lua_upvalueindex(3));
		lua_replace(lua, lua_upvalueindex(4));
		return captures_push(&m, text + at, to, 1);
	}
	lua_pushinteger(lua, (lua_Integer)len + 1);
	lua_replace(lua, lua_upvalueindex(3));
	return 0;
}

static int gmatch(lua_State *lua)
{
	size_t len, begin;

	luaL_checklstring(lua, 1, &len);
	luaL_checkstring(lua, 2);
	begin = begin_of(lua, 3, len);
	lua_settop(lua, 2);
	lua_pushinteger(lua, (lua_Integer)begin);
	lua_pushinteger(lua, -1);
	lua_pushcclosure(lua, gmatch_next, 4);
	return 1;
}

/* Appends the replacement string, with %0 to %9 replaced by the captures. */
static void expand(struct es_lua_match *m, luaL_Buffer *buffer, const char *from, const char *to)
{
	size_t len;
	const char *text = text_of(m->lua, 3, &len);

	for (size_t i = 0; i < len; i++) {
		es_lua_match_step(m);
		if (text[i] != '%') {
			luaL_addchar(buffer, text[i]);
			continue;
		}
		i++;
		if (i < len && text[i] == '%') {
			luaL_addchar(buffer, '%');
		} else if (i < len && text[i] == '0') {
			luaL_addlstring(buffer, from, (size_t)(to - from));
		} else if (i < len && isdigit((unsigned char)text[i])) {
			capture_push(m, text[i] - '1', from, to);
			luaL_tolstring(m->lua, -1, NULL);
			lua_remove(m->lua, -2);
			luaL_addvalue(buffer);
		} else {
			luaL_error(m->lua, "invalid use of '%%' in replacement string");
		}
	}
}

static void replace(struct es_lua_match *m, luaL_Buffer *buffer, const char *from, const char *to, int type)
{
	switch (type) {
	case LUA_TFUNCTION:
		lua_pushvalue(m->lua, 3);
		lua_call(m->lua, captures_push(m, from, to, 1), 1);
		break;
	case LUA_TTABLE:
		capture_push(m, 0, from, to);
		lua_gettable(m->lua, 3);
		break;
	default:
		expand(m, buffer, from, to);
		return;
	}
	if (!lua_toboolean(m->lua, -1)) {
		lua_pop(m->lua, 1);
		luaL_addlstring(buffer, from, (size_t)(to - from));
	} else if (!lua_isstring(m->lua, -1)) {
		luaL_error(m->lua, "invalid replacement value (a %s)", luaL_typename(m->lua, -1));
	} else {
		luaL_addvalue(buffer);
	}
}

static int gsub(lua_State *lua)
{
	size_t len, pattern_len;
	const char *text = text_of(lua, 1, &len), *at = text, *last = NULL;
	const char *pattern = text_of(lua, 2, &pattern_len);
	lua_Integer most = luaL_optinteger(lua, 4, (lua_Integer)len + 1), count = 0;
	int type = lua_type(lua, 3), is_anchored = pattern_len && *pattern == '^';
	luaL_Buffer buffer;
	struct es_lua_match m;

	luaL_argexpected(lua,
			 type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TFUNCTION ||
				 type == LUA_TTABLE,
			 3, "string/function/table");
	es_lua_match_init(&m, lua, pattern + is_anchored, pattern_len - (size_t)is_anchored);
	m.text = text;
	m.end = text + len;
	luaL_buffinit(lua, &buffer);
	while (count < most) {
		const char *to = es_lua_match_run(&m, at);

		if (to && to != last) {
			count++;
			replace(&m, &buffer, at, to, type);
			at = last = to;
		} else if (at < m.end) {
			luaL_addchar(&buffer, *at++);
		} else {
			break;
		}
		if (is_anchored)
			break;
	}
	luaL_addlstring(&buffer, at, (size_t)(m.end - at));
	luaL_pushresult(&buffer);
	lua_pushinteger(lua, count);
	return 2;
}

void es_lua_search_open(lua_State *lua)
{
	static const luaL_Reg functions[] = {
		{"find", find}, {"match", match}, {"gmatch", gmatch}, {"gsub", gsub}, {NULL, NULL}};

	luaL_setfuncs(lua, functions, 0);
}
