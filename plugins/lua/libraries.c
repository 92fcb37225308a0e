// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The parts of Lua's libraries that scripts get. A list names each function that is allowed, so that a newer
 * Lua's additions stay outside. A function whose work is not bounded by its arguments charges the budget
 * first. Left out, besides everything that reaches the system (io, os, package, debug, load, dofile, require,
 * print): metatables, coroutines and xpcall, see sandbox.h; collectgarbage; table.move and utf8, whose loops
 * no budget sees; math.random, which would decide differently on each node and each time. order.c deals with
 * the other functions that would differ.
 */
#include <lualib.h>
#include <math.h>
#include "sandbox.h"

static const char *const base_names[] = {"assert", "error",    "ipairs", "pcall", "select",
					 "rawlen", "tonumber", "type",	 NULL};
static const char *const string_names[] = {"byte",    "char", "format", "len", "lower",
					   "reverse", "sub",  "upper",	NULL};
static const char *const table_names[] = {"pack", NULL};
static const char *const math_names[] = {"abs", "ceil", "exp",	     "floor",	   "fmod",	 "huge",
					 "log", "max",	"min",	     "maxinteger", "mininteger", "modf",
					 "pi",	"sqrt", "tointeger", "type",	   "ult",	 NULL};

/* Call the library's own function, which is the first upvalue, with the same arguments. */
static int pass_on(lua_State *lua)
{
	lua_pushvalue(lua, lua_upvalueindex(1));
	lua_insert(lua, 1);
	lua_call(lua, lua_gettop(lua) - 1, LUA_MULTRET);
	return lua_gettop(lua);
}

/* insert, remove and concat take a step for each element at most. */
static int table_walk(lua_State *lua)
{
	luaL_checktype(lua, 1, LUA_TTABLE);
	es_lua_charge(lua, lua_rawlen(lua, 1));
	return pass_on(lua);
}

/* n log n comparisons, each as long as the strings are; a comparison function of the script is counted as it
 * runs. */
static int table_sort(lua_State *lua)
{
	size_t n, bytes = 0, steps = 1;

	luaL_checktype(lua, 1, LUA_TTABLE);
	n = lua_rawlen(lua, 1);
	es_lua_charge(lua, n);
	for (size_t i = 1; i <= n && lua_isnoneornil(lua, 2); i++) {
		if (lua_rawgeti(lua, 1, (lua_Integer)i) == LUA_TSTRING)
			bytes += lua_rawlen(lua, -1);
		lua_pop(lua, 1);
	}
	for (size_t rest = n; rest > 1; rest /= 2)
		steps++;
	es_lua_charge(lua, 2 * steps * (n + bytes / 16));
	return es_lua_sort(lua);
}

static int table_unpack(lua_State *lua)
{
	lua_Integer from = luaL_optinteger(lua, 2, 1), to;

	luaL_checktype(lua, 1, LUA_TTABLE);
	to = luaL_optinteger(lua, 3, (lua_Integer)lua_rawlen(lua, 1));
	if (from <= to) {
		lua_Unsigned count = (lua_Unsigned)to - (lua_Unsigned)from;

		es_lua_charge(lua, count < SIZE_MAX ? (size_t)count + 1 : SIZE_MAX);
	}
	return pass_on(lua);
}

/* ("").rep(1 << 60) takes no memory, but never ends. */
static int string_rep(lua_State *lua)
{
	lua_Integer times = luaL_checkinteger(lua, 2);
	size_t len, separator;

	luaL_checklstring(lua, 1, &len);
	luaL_optlstring(lua, 3, "", &separator);
	if (times <= 0 || !(len + separator)) {
		lua_pushliteral(lua, "");
		return 1;
	}
	if ((lua_Unsigned)times > ES_LUA_STRING_MAX / (len + separator))
		return luaL_error(lua, "string.rep: a string of more than %d KB", ES_LUA_STRING_MAX / 1024);
	return pass_on(lua);
}

static const luaL_Reg string_guards[] = {{"rep", string_rep}, {NULL, NULL}};
static const luaL_Reg table_guards[] = {{"concat", table_walk},	  {"insert", table_walk},
					{"remove", table_walk},	  {"sort", table_sort},
					{"unpack", table_unpack}, {NULL, NULL}};

/* Copy the named functions from the library below the top to the table on the top. */
static void copy(lua_State *lua, const char *const *names)
{
	for (; *names; names++) {
		lua_getfield(lua, -2, *names);
		lua_setfield(lua, -2, *names);
	}
}

static void copy_guarded(lua_State *lua, const luaL_Reg *guards)
{
	for (; guards->name; guards++) {
		lua_getfield(lua, -2, guards->name);
		lua_pushcclosure(lua, guards->func, 1);
		lua_setfield(lua, -2, guards->name);
	}
}

/* A library with these of its members as global @name of the table on the stack; leaves it on the top. */
static void library(lua_State *lua, const char *name, lua_CFunction open, const char *const *names,
		    const luaL_Reg *guards)
{
	luaL_requiref(lua, name, open, 0);
	lua_newtable(lua);
	copy(lua, names);
	if (guards)
		copy_guarded(lua, guards);
	lua_remove(lua, -2);
	lua_pushvalue(lua, -1);
	lua_setfield(lua, -3, name);
}

int es_lua_libraries_open(lua_State *lua)
{
	luaL_requiref(lua, LUA_GNAME, luaopen_base, 0);
	lua_newtable(lua);
	copy(lua, base_names);
	lua_remove(lua, -2);
	es_lua_order_open(lua);
	library(lua, LUA_STRLIBNAME, luaopen_string, string_names, string_guards);
	es_lua_search_open(lua);
	es_lua_format_open(lua);
	/* s:find() calls our string.find, not the library's. */
	lua_pushliteral(lua, "");
	lua_getmetatable(lua, -1);
	lua_pushvalue(lua, -3);
	lua_setfield(lua, -2, "__index");
	lua_pop(lua, 3);
	library(lua, LUA_TABLIBNAME, luaopen_table, table_names, table_guards);
	lua_pop(lua, 1);
	library(lua, LUA_MATHLIBNAME, luaopen_math, math_names, NULL);
	lua_pop(lua, 1);
	/* The loaded libraries are out of reach anyway; this frees them, too. */
	lua_pushnil(lua);
	lua_setfield(lua, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
	lua_rawseti(lua, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
	return 0;
}
