/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ES_LUA_SANDBOX_H
#define ES_LUA_SANDBOX_H

/*
 * A Lua state whose code can neither run for ever, nor take all memory, nor reach anything outside.
 *
 * A budget counts what the code does: instructions of the virtual machine (by a count hook), bytes that it
 * allocates, and steps of library functions, each of which charges what it is about to do. Once the budget is
 * spent, every further instruction raises an error, so that no pcall() holds it up. For this to be true
 * nothing may run without the hook or switch it off, which is why scripts get no metatables (finalizers run
 * without hooks, and metamethods make the table library loop), no coroutines (each has a counter of its own)
 * and no xpcall() (a handler of an error that the hook raises runs without hooks).
 */
#include <lauxlib.h>
#include <lua.h>
#include <stddef.h>
#include <stdint.h>

/* Longer strings cannot be made: what one instruction may do to a string is no longer than this takes. */
#define ES_LUA_STRING_MAX (128 * 1024)

/* Why the code was stopped. */
enum es_lua_stop {
	ES_LUA_RUNS,
	ES_LUA_OUT_OF_INSTRUCTIONS,
	ES_LUA_OUT_OF_MEMORY,
	ES_LUA_OUT_OF_TIME,
};

/**
 * struct es_lua_limits - what one call may take
 * @instructions: a 16th of one for each byte that is allocated
 * @memory_bytes: of the whole state
 * @time_ns: of the thread's CPU, and at most an eighth more; looked at every 100 instructions, and whenever
 * something is charged. Time in which the thread does not run is not the code's.
 */
struct es_lua_limits {
	long long instructions;
	size_t memory_bytes;
	uint64_t time_ns;
};

/**
 * struct es_lua_sandbox - one state; one thread's
 * @owner: the caller's; @name: of the script, for errors that have no line
 * @object_place: may be NULL; the place, from 0 on, of an object of the caller's at that index among those
 * that are keys of tables, the same everywhere; -1 for what is none
 * @left: of the budget; @used_bytes: of memory
 * @look_ns: by the clock, when the thread's CPU time is to be looked at next; @cpu_end_ns: what that may be,
 * 0 until it was looked at
 * @refused: the last allocation was, and Lua collects its garbage before it tries again;
 * @collections: how often in this call
 * @stop: an enum es_lua_stop
 * @why: what was wrong with the last call; "file:line: what"
 */
struct es_lua_sandbox {
	lua_State *lua;
	void *owner;
	const char *name;
	int (*object_place)(lua_State *lua, int index);
	struct es_lua_limits limits;
	long long left;
	size_t used_bytes;
	uint64_t look_ns;
	uint64_t cpu_end_ns;
	int refused;
	unsigned int collections;
	enum es_lua_stop stop;
	char why[256];
};

/* es_lua_sandbox_init() - a new state, in which @open has run (es_lua_libraries_open()); 0 or -ENOMEM */
int es_lua_sandbox_init(struct es_lua_sandbox *s, const char *name, const struct es_lua_limits *limits,
			lua_CFunction open);
void es_lua_sandbox_fini(struct es_lua_sandbox *s);

/* es_lua_sandbox_move() - @from's state is @to's, which had none; @from has none */
void es_lua_sandbox_move(struct es_lua_sandbox *to, struct es_lua_sandbox *from);

/**
 * es_lua_sandbox_call() - call the function below @arguments on the stack, with a new budget
 * Like lua_pcall(), but for an error: returns 0; -EIO and @s->why, and function and arguments are gone.
 */
int es_lua_sandbox_call(struct es_lua_sandbox *s, int arguments, int results);

/* es_lua_sandbox_of() - the one that runs; for C functions */
static inline struct es_lua_sandbox *es_lua_sandbox_of(lua_State *lua)
{
	return *(struct es_lua_sandbox **)lua_getextraspace(lua);
}

/* es_lua_charge() - a library function is about to take @steps; does not return if they, or the time, are
 * spent */
void es_lua_charge(lua_State *lua, size_t steps);

/* libraries.c: puts the globals that scripts see in the place of the state's own. May raise errors. */
int es_lua_libraries_open(lua_State *lua);

/* order.c: pairs, next and tostring, put into the table on the stack; string's format, that of the table on
 * the stack, guarded; table.sort, which charges nothing itself */
void es_lua_order_open(lua_State *lua);
void es_lua_format_open(lua_State *lua);
int es_lua_sort(lua_State *lua);

/* es_lua_text() - luaL_tolstring() without addresses: "table" for a table. Pushes and returns it. */
const char *es_lua_text(lua_State *lua, int index, size_t *ret_len);

/* search.c: find, match, gmatch and gsub, put into the table on the stack */
void es_lua_search_open(lua_State *lua);

#endif
