// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Replaces the functions of Lua's libraries whose results depend on addresses, on the seed of a state's
 * strings or on the clock, and so would differ between threads, processes or nodes: the order in which tables
 * are walked, the text for tables and functions, and the pivots of table.sort. Here the results follow from
 * the values alone.
 */
#include <stdlib.h>
#include <string.h>
#include "sandbox.h"

/* Kinds of keys, in the order in which they come. Keys of the last kind have no order among themselves. */
enum rank { RANK_NUMBER, RANK_STRING, RANK_BOOLEAN, RANK_OBJECT, RANK_OTHER };

/* struct key - what is compared of a key: long doubles have all integers and floats */
struct key {
	enum rank rank;
	lua_Integer place; /* in the table of keys */
	long double number;
	const char *text;
	size_t len;
};

static void key_read(lua_State *lua, int index, struct key *ret)
{
	const struct es_lua_sandbox *s = es_lua_sandbox_of(lua);

	memset(ret, 0, sizeof(*ret));
	switch (lua_type(lua, index)) {
	case LUA_TNUMBER:
		ret->rank = RANK_NUMBER;
		ret->number = lua_isinteger(lua, index) ? (long double)lua_tointeger(lua, index)
							: (long double)lua_tonumber(lua, index);
		break;
	case LUA_TSTRING:
		ret->rank = RANK_STRING;
		ret->text = lua_tolstring(lua, index, &ret->len);
		break;
	case LUA_TBOOLEAN:
		ret->rank = RANK_BOOLEAN;
		ret->number = lua_toboolean(lua, index);
		break;
	default:
		ret->number = s->object_place ? s->object_place(lua, index) : -1;
		ret->rank = ret->number < 0 ? RANK_OTHER : RANK_OBJECT;
		break;
	}
}

static int key_compare(const void *one, const void *other)
{
	const struct key *a = one, *b = other;
	int order;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->rank != RANK_STRING)
		return a->number < b->number ? -1 : a->number > b->number;
	order = memcmp(a->text, b->text, a->len < b->len ? a->len : b->len);
	return order ? order : a->len < b->len ? -1 : a->len > b->len;
}

static int no_order(lua_State *lua)
{
	return luaL_error(
		lua,
		"more than one key that is a table or a function: expected numbers, strings, booleans or "
		"nodes, which come in the same order everywhere");
}

/* log2(n), rounded up, and at least 1 */
static size_t steps_of(size_t n)
{
	size_t steps = 1;

	for (size_t rest = n; rest > 2; rest = (rest + 1) / 2)
		steps++;
	return steps;
}

/* The next element of an array; the first upvalue is its length. Skips elements that have become nil. */
static int array_next(lua_State *lua)
{
	lua_Integer n = lua_tointeger(lua, lua_upvalueindex(1));

	for (lua_Integer i = lua_tointeger(lua, 2) + 1; i <= n; i++) {
		lua_pushinteger(lua, i);
		if (lua_rawgeti(lua, 1, i) != LUA_TNIL)
			return 2;
		lua_pop(lua, 2);
	}
	return 0;
}

/*
 * The same in the order of the keys. Upvalues: the keys, their order, their number, and the last one visited.
 */
static int sorted_next(lua_State *lua)
{
	const struct key *key = lua_touserdata(lua, lua_upvalueindex(2));
	lua_Integer n = lua_tointeger(lua, lua_upvalueindex(3)), at = lua_tointeger(lua, lua_upvalueindex(4));

	luaL_checktype(lua, 1, LUA_TTABLE);
	while (at < n) {
		lua_rawgeti(lua, lua_upvalueindex(1), key[at++].place);
		lua_pushvalue(lua, -1);
		if (lua_rawget(lua, 1) == LUA_TNIL) {
			lua_pop(lua, 2);
			continue;
		}
		lua_pushinteger(lua, at);
		lua_replace(lua, lua_upvalueindex(4));
		return 2;
	}
	lua_pushinteger(lua, n);
	lua_replace(lua, lua_upvalueindex(4));
	return 0;
}

/* Counts the keys of the table at 1, and says whether they are 1, 2, …. */
static size_t keys_count(lua_State *lua, int *ret_is_array)
{
	lua_Unsigned len = lua_rawlen(lua, 1);
	size_t n = 0;

	*ret_is_array = 1;
	for (lua_pushnil(lua); lua_next(lua, 1); lua_pop(lua, 1)) {
		lua_Integer i = lua_isinteger(lua, -2) ? lua_tointeger(lua, -2) : 0;

		if (i < 1 || (lua_Unsigned)i > len)
			*ret_is_array = 0;
		if (!(++n % 1024))
			es_lua_charge(lua, 1024);
	}
	es_lua_charge(lua, n % 1024);
	if (n != len)
		*ret_is_array = 0;
	return n;
}

/* pairs(t): the keys as they are now, in order; skips keys that are removed meanwhile. */
static int pairs(lua_State *lua)
{
	size_t n, bytes = 0, others = 0;
	struct key *key;
	int is_array;

	luaL_checktype(lua, 1, LUA_TTABLE);
	lua_settop(lua, 1);
	n = keys_count(lua, &is_array);
	if (is_array) {
		lua_pushinteger(lua, (lua_Integer)n);
		lua_pushcclosure(lua, array_next, 1);
		lua_pushvalue(lua, 1);
		lua_pushinteger(lua, 0);
		return 3;
	}
	lua_createtable(lua, (int)n, 0);
	key = lua_newuserdatauv(lua, n * sizeof(*key), 0);
	n = 0;
	for (lua_pushnil(lua); lua_next(lua, 1); lua_pop(lua, 1)) {
		key_read(lua, -2, &key[n]);
		key[n].place = (lua_Integer)n + 1;
		others += key[n].rank == RANK_OTHER;
		bytes += key[n].len;
		lua_pushvalue(lua, -2);
		lua_rawseti(lua, 2, (lua_Integer)++n);
	}
	if (others > 1)
		return no_order(lua);
	es_lua_charge(lua, steps_of(n) * (n + bytes / 16));
	qsort(key, n, sizeof(*key), key_compare);
	lua_pushinteger(lua, (lua_Integer)n);
	lua_pushinteger(lua, 0);
	lua_pushcclosure(lua, sorted_next, 4);
	lua_pushvalue(lua, 1);
	lua_pushnil(lua);
	return 3;
}

/* next(t [, key]): the least greater key. It looks at all keys each time. */
static int next(lua_State *lua)
{
	struct key after, key, best = {};
	size_t cost = 0, others = 0;
	int has_after;

	luaL_checktype(lua, 1, LUA_TTABLE);
	lua_settop(lua, 2);
	has_after = !lua_isnil(lua, 2);
	if (has_after)
		key_read(lua, 2, &after);
	lua_pushnil(lua); /* 3: the best key so far */
	for (lua_pushnil(lua); lua_next(lua, 1); lua_pop(lua, 1)) {
		key_read(lua, -2, &key);
		others += key.rank == RANK_OTHER;
		cost += 1 + key.len / 16;
		if (cost >= 256) {
			es_lua_charge(lua, cost);
			cost = 0;
		}
		if (has_after && key_compare(&key, &after) <= 0)
			continue;
		if (!lua_isnil(lua, 3) && key_compare(&key, &best) >= 0)
			continue;
		best = key;
		lua_pushvalue(lua, -2);
		lua_replace(lua, 3);
	}
	es_lua_charge(lua, cost);
	if (lua_isnil(lua, 3)) {
		if (has_after && after.rank == RANK_OTHER && others > 1)
			return no_order(lua);
		return 1;
	}
	if (best.rank == RANK_OTHER && others > 1)
		return no_order(lua);
	lua_pushvalue(lua, 3);
	lua_rawget(lua, 1);
	return 2;
}

/* --- texts */

const char *es_lua_text(lua_State *lua, int index, size_t *ret_len)
{
	int type = lua_type(lua, index);

	if (type == LUA_TTABLE || type == LUA_TFUNCTION || type == LUA_TUSERDATA ||
	    type == LUA_TLIGHTUSERDATA) {
		if (luaL_getmetafield(lua, index, "__tostring") == LUA_TNIL) {
			lua_pushstring(lua, lua_typename(lua, type));
			return lua_tolstring(lua, -1, ret_len);
		}
		lua_pop(lua, 1);
	}
	return luaL_tolstring(lua, index, ret_len);
}

static int text(lua_State *lua)
{
	luaL_checkany(lua, 1);
	es_lua_text(lua, 1, NULL);
	return 1;
}

/*
 * string.format: without %p, and with a word in place of an address. The first upvalue is the library's own.
 */
static int format(lua_State *lua)
{
	int n = lua_gettop(lua);

	for (const char *at = luaL_checkstring(lua, 1); (at = strchr(at, '%')); at++) {
		at += 1 + strspn(at + 1, "-+ #0123456789.");
		if (*at == 'p')
			return luaL_error(lua, "string.format: %%p is an address: not the same everywhere");
		if (!*at)
			break;
	}
	for (int i = 2; i <= n; i++) {
		int type = lua_type(lua, i);

		if (type != LUA_TTABLE && type != LUA_TFUNCTION && type != LUA_TUSERDATA &&
		    type != LUA_TLIGHTUSERDATA)
			continue;
		es_lua_text(lua, i, NULL);
		lua_replace(lua, i);
	}
	lua_pushvalue(lua, lua_upvalueindex(1));
	lua_insert(lua, 1);
	lua_call(lua, n, 1);
	return 1;
}

/* --- table.sort */

enum { TABLE = 1, LESS, FROM, TO };

/* Is the element at the top less than the one below it? Both stay. */
static int is_less(lua_State *lua)
{
	int result;

	if (lua_isnil(lua, LESS))
		return lua_compare(lua, -1, -2, LUA_OPLT);
	lua_pushvalue(lua, LESS);
	lua_pushvalue(lua, -2);
	lua_pushvalue(lua, -4);
	lua_call(lua, 2, 1);
	result = lua_toboolean(lua, -1);
	lua_pop(lua, 1);
	return result;
}

/* Two sorted runs of @from, [left, right) and [right, end), to one of @to. */
static void merge(lua_State *lua, int from, int to, lua_Integer left, lua_Integer right, lua_Integer end)
{
	lua_Integer middle = right;

	for (lua_Integer out = left; out < end; out++) {
		int takes_right = left == middle;

		if (left < middle && right < end) {
			lua_rawgeti(lua, from, left);
			lua_rawgeti(lua, from, right);
			takes_right = is_less(lua);
			lua_pop(lua, 2);
		}
		lua_rawgeti(lua, from, takes_right ? right++ : left++);
		lua_rawseti(lua, to, out);
	}
}

/* A merge sort: equal elements keep their order, and an error leaves the table as it was. */
int es_lua_sort(lua_State *lua)
{
	lua_Integer n = (lua_Integer)lua_rawlen(lua, TABLE);
	int from = FROM, to = TO;

	lua_settop(lua, 2);
	if (!lua_isnil(lua, LESS))
		luaL_checktype(lua, LESS, LUA_TFUNCTION);
	lua_createtable(lua, (int)n, 0);
	lua_createtable(lua, (int)n, 0);
	for (lua_Integer i = 1; i <= n; i++) {
		lua_rawgeti(lua, TABLE, i);
		lua_rawseti(lua, FROM, i);
	}
	for (lua_Integer width = 1; width < n; width *= 2) {
		for (lua_Integer left = 1; left <= n; left += 2 * width) {
			lua_Integer right = left + width <= n ? left + width : n + 1;

			merge(lua, from, to, left, right, right + width <= n + 1 ? right + width : n + 1);
		}
		from = from == FROM ? TO : FROM;
		to = to == FROM ? TO : FROM;
	}
	for (lua_Integer i = 1; i <= n; i++) {
		lua_rawgeti(lua, from, i);
		lua_rawseti(lua, TABLE, i);
	}
	return 0;
}

void es_lua_order_open(lua_State *lua)
{
	static const luaL_Reg functions[] = {
		{"pairs", pairs}, {"next", next}, {"tostring", text}, {NULL, NULL}};

	luaL_setfuncs(lua, functions, 0);
}

void es_lua_format_open(lua_State *lua)
{
	lua_getfield(lua, -1, "format");
	lua_pushcclosure(lua, format, 1);
	lua_setfield(lua, -2, "format");
}
