/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ES_LUA_PATTERN_H
#define ES_LUA_PATTERN_H

/*
 * The patterns of the Lua 5.4 manual, section 6.4.1. The library's own may take exponential time in one call
 * (".-.-.-.-x"), during which no hook runs; here each step of a match counts as an instruction. A pattern is
 * made into items first, and items are then tried one after the other; recursion is no deeper than there are
 * items.
 */
#include <stddef.h>
#include "sandbox.h"

#define ES_LUA_ITEMS_MAX    128
#define ES_LUA_CAPTURES_MAX 32
#define ES_LUA_POSITION	    (-2) /* the length of a capture that is a place, () */

enum es_lua_item_kind {
	ES_LUA_LITERAL,
	ES_LUA_ANY,
	ES_LUA_CLASS,
	ES_LUA_SET,
	ES_LUA_OPEN,
	ES_LUA_CLOSE,
	ES_LUA_PLACE,
	ES_LUA_BACK,
	ES_LUA_BALANCE,
	ES_LUA_FRONTIER,
	ES_LUA_TAIL,
	ES_LUA_END
};
enum es_lua_repeat { ES_LUA_ONE, ES_LUA_GREEDY, ES_LUA_GREEDY_1, ES_LUA_LAZY, ES_LUA_OPTIONAL };

/* @first, @second: character or class; delimiters of a balance. @capture: of OPEN, CLOSE, PLACE, BACK */
struct es_lua_item {
	enum es_lua_item_kind kind;
	enum es_lua_repeat repeat;
	unsigned char first, second;
	int capture;
	uint64_t set[4];
};

struct es_lua_match {
	lua_State *lua;
	struct es_lua_sandbox *sandbox;
	const char *text, *end;
	unsigned int count;
	int captures;
	const char *start[ES_LUA_CAPTURES_MAX];
	ptrdiff_t len[ES_LUA_CAPTURES_MAX];
	struct es_lua_item item[ES_LUA_ITEMS_MAX];
};

static inline void es_lua_match_step(struct es_lua_match *m)
{
	if (--m->sandbox->left < 0 || !(m->sandbox->left % 4096)) /* the clock is looked at, too */
		es_lua_charge(m->lua, 0);
}

/* es_lua_match_init() - the items of a pattern, without the '^' of an anchored one; raises errors. The caller
 * sets @text and @end. */
void es_lua_match_init(struct es_lua_match *m, lua_State *lua, const char *pattern, size_t len);

/* es_lua_match_run() - the end of the match that begins at @at, and @start and @len of the captures; NULL */
const char *es_lua_match_run(struct es_lua_match *m, const char *at);

#endif
