// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Allocator, count hook and protected call of a sandbox (sandbox.h).
 */
#include "sandbox.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HOOK_INSTRUCTIONS     100
#define BYTES_PER_INSTRUCTION 16
/* The instruction that exceeds the memory limit gets up to this much more, so that the next one can report on
 * which line that was. */
#define OVERDRAFT_BYTES (2 * ES_LUA_STRING_MAX + 4096)
/* Collecting all garbage takes a while: a call that needs it more often than this is out of memory. */
#define COLLECTIONS_MAX 4
#define STOP_TEXT_SIZE	96

/* The CPU time is first read when the clock has reached this part of the limit. */
#define FIRST_LOOK 8

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void time_begin(struct es_lua_sandbox *s)
{
	s->look_ns = now_ns(CLOCK_MONOTONIC) + s->limits.time_ns / FIRST_LOOK;
	s->cpu_end_ns = 0;
}

/*
 * Reading a thread's CPU time is a system call, many times dearer than the clock, and the CPU time is never
 * more than what the clock says. So a short call never reads it, and a longer one reads it only when it can
 * have used up the rest of its limit.
 */
static int time_is_over(struct es_lua_sandbox *s)
{
	uint64_t clock_ns = now_ns(CLOCK_MONOTONIC), cpu_ns;

	if (clock_ns < s->look_ns)
		return 0;
	cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
	if (!s->cpu_end_ns)
		s->cpu_end_ns = cpu_ns + s->limits.time_ns;
	if (cpu_ns >= s->cpu_end_ns)
		return 1;
	s->look_ns = clock_ns + s->cpu_end_ns - cpu_ns;
	return 0;
}

static void hook(lua_State *lua, lua_Debug *at);

static void stop(struct es_lua_sandbox *s, enum es_lua_stop why)
{
	if (s->stop != ES_LUA_RUNS)
		return;
	s->stop = why;
	/* At the next instruction, and at all after it. */
	if (s->lua)
		lua_sethook(s->lua, hook, LUA_MASKCOUNT, 1);
}

static void stop_text(const struct es_lua_sandbox *s, char *text, size_t size)
{
	switch (s->stop) {
	case ES_LUA_OUT_OF_MEMORY:
		snprintf(text, size, "more than %zu KB of memory, or a string of more than %d KB",
			 s->limits.memory_bytes / 1024, ES_LUA_STRING_MAX / 1024);
		break;
	case ES_LUA_OUT_OF_TIME:
		snprintf(text, size, "more than %u ms of CPU time",
			 (unsigned int)(s->limits.time_ns / 1000000));
		break;
	default:
		snprintf(text, size, "more than %lld instructions", s->limits.instructions);
		break;
	}
}

/* Raise the error of a sandbox that is stopped; @where: "file:line: " or "" */
static int stop_raise(lua_State *lua, struct es_lua_sandbox *s, const char *where)
{
	char text[STOP_TEXT_SIZE];

	stop_text(s, text, sizeof(text));
	if (!s->why[0])
		snprintf(s->why, sizeof(s->why), "%s%s", where, text);
	lua_pushstring(lua, text);
	return lua_error(lua);
}

static void hook(lua_State *lua, lua_Debug *at)
{
	struct es_lua_sandbox *s = es_lua_sandbox_of(lua);
	char where[LUA_IDSIZE + 16];

	if (s->stop == ES_LUA_RUNS) {
		s->left -= HOOK_INSTRUCTIONS;
		if (s->left < 0)
			stop(s, ES_LUA_OUT_OF_INSTRUCTIONS);
		else if (time_is_over(s))
			stop(s, ES_LUA_OUT_OF_TIME);
		else
			return;
	}
	lua_getinfo(lua, "Sl", at);
	snprintf(where, sizeof(where), "%s:%d: ", at->short_src, at->currentline);
	stop_raise(lua, s, where);
}

void es_lua_charge(lua_State *lua, size_t steps)
{
	struct es_lua_sandbox *s = es_lua_sandbox_of(lua);

	if (steps > (size_t)s->limits.instructions)
		s->left = -1;
	else
		s->left -= (long long)steps;
	if (s->left < 0)
		stop(s, ES_LUA_OUT_OF_INSTRUCTIONS);
	else if (time_is_over(s))
		stop(s, ES_LUA_OUT_OF_TIME);
	else
		return;
	luaL_where(lua, 1);
	stop_raise(lua, s, lua_tostring(lua, -1));
}

/* May the block grow by @more bytes? Charges them. */
static int may_grow(struct es_lua_sandbox *s, size_t more, int is_string)
{
	int is_over = s->used_bytes + more > s->limits.memory_bytes;

	s->left -= (long long)(more / BYTES_PER_INSTRUCTION);
	if (s->left < 0)
		stop(s, ES_LUA_OUT_OF_INSTRUCTIONS);
	if (is_over && !s->refused && s->collections < COLLECTIONS_MAX) {
		s->refused = 1; /* Lua now collects its garbage and asks again */
		s->collections++;
		return 0;
	}
	s->refused = 0;
	if (is_over || (is_string && more > ES_LUA_STRING_MAX + 64))
		stop(s, ES_LUA_OUT_OF_MEMORY);
	if (s->stop != ES_LUA_OUT_OF_MEMORY)
		return !is_over; /* the next instruction reports it, with the line */
	return more <= OVERDRAFT_BYTES && s->used_bytes + more <= s->limits.memory_bytes + OVERDRAFT_BYTES;
}

/* lua_Alloc. A block may always shrink: Lua relies on that. */
static void *allocate(void *context, void *block, size_t old_bytes, size_t bytes)
{
	struct es_lua_sandbox *s = context;
	size_t had = block ? old_bytes : 0; /* for a new block, it is the type */
	void *fresh;

	if (!bytes) {
		free(block);
		s->used_bytes -= had;
		return NULL;
	}
	if (bytes > had && !may_grow(s, bytes - had, !block && old_bytes == LUA_TSTRING))
		return NULL;
	fresh = realloc(block, bytes);
	if (fresh)
		s->used_bytes = s->used_bytes - had + bytes;
	return fresh;
}

/* The handler of errors, where they are raised: a text that begins with file and line. */
static int message(lua_State *lua)
{
	const char *text = lua_type(lua, 1) == LUA_TSTRING ? lua_tostring(lua, 1) : NULL;
	const char *name = es_lua_sandbox_of(lua)->name;
	lua_Debug at;

	if (!text)
		text = lua_pushfstring(lua, "an error that is a %s, and no text", luaL_typename(lua, 1));
	for (int level = 1; lua_getstack(lua, level, &at); level++) {
		lua_getinfo(lua, "Sl", &at);
		if (at.currentline <= 0)
			continue;
		if (strncmp(text, at.short_src, strlen(at.short_src)) != 0)
			lua_pushfstring(lua, "%s:%d: %s", at.short_src, at.currentline, text);
		else
			lua_pushstring(lua, text);
		return 1;
	}
	if (strncmp(text, name, strlen(name)) != 0 && *text != '.') /* Lua begins a long name with dots */
		lua_pushfstring(lua, "%s: %s", name, text);
	else
		lua_pushstring(lua, text);
	return 1;
}

int es_lua_sandbox_call(struct es_lua_sandbox *s, int arguments, int results)
{
	lua_State *lua = s->lua;
	int handler = lua_gettop(lua) - arguments, rc;
	char text[STOP_TEXT_SIZE];

	s->left = s->limits.instructions;
	time_begin(s);
	s->stop = ES_LUA_RUNS;
	s->refused = 0;
	s->collections = 0;
	s->why[0] = 0;
	lua_pushcfunction(lua, message);
	lua_insert(lua, handler);
	lua_sethook(lua, hook, LUA_MASKCOUNT, HOOK_INSTRUCTIONS);
	rc = lua_pcall(lua, arguments, results, handler);
	if (rc == LUA_ERRMEM)
		stop(s, ES_LUA_OUT_OF_MEMORY);
	lua_sethook(lua, NULL, 0, 0);
	if (!rc && s->stop == ES_LUA_RUNS) {
		lua_remove(lua, handler);
		return 0;
	}
	if (!s->why[0] && s->stop != ES_LUA_RUNS) {
		stop_text(s, text, sizeof(text));
		snprintf(s->why, sizeof(s->why), "%s: %s", s->name, text);
	} else if (!s->why[0])
		snprintf(s->why, sizeof(s->why), "%s",
			 lua_type(lua, -1) == LUA_TSTRING ? lua_tostring(lua, -1) : "an error in an error");
	lua_settop(lua, handler - 1);
	if (s->stop == ES_LUA_OUT_OF_MEMORY)
		lua_gc(lua, LUA_GCCOLLECT);
	return -EIO;
}

int es_lua_sandbox_init(struct es_lua_sandbox *s, const char *name, const struct es_lua_limits *limits,
			lua_CFunction open)
{
	memset(s, 0, sizeof(*s));
	s->name = name;
	s->limits = *limits;
	s->left = limits->instructions;
	s->lua = lua_newstate(allocate, s);
	if (!s->lua)
		return -ENOMEM;
	*(struct es_lua_sandbox **)lua_getextraspace(s->lua) = s;
	lua_pushcfunction(s->lua, open);
	if (es_lua_sandbox_call(s, 0, 0)) {
		es_lua_sandbox_fini(s);
		return -ENOMEM;
	}
	return 0;
}

void es_lua_sandbox_move(struct es_lua_sandbox *to, struct es_lua_sandbox *from)
{
	*to = *from;
	*(struct es_lua_sandbox **)lua_getextraspace(to->lua) = to;
	lua_setallocf(to->lua, allocate, to);
	from->lua = NULL;
}

void es_lua_sandbox_fini(struct es_lua_sandbox *s)
{
	if (s->lua)
		lua_close(s->lua);
	s->lua = NULL;
}
