// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The plugin lua's own find, match, gmatch and gsub against Lua's, over patterns and texts at random: what
 * the library answers, and that it answers with an error, must be the same; words of errors may differ.
 */
#include "cmocka_all.h"
#include <lualib.h>
#include <stdio.h>
#include <string.h>
#include "plugins/lua/sandbox.h"

#define ROUNDS 30000

static const char script[] = "local own, name, text, pattern, repl = ...\n"
			     "local f, r = own[name], {}\n"
			     "if name == 'gmatch' then\n"
			     "	for a, b, c in f(text, pattern) do r[#r + 1] = "
			     "tostring(a)..'|'..tostring(b)..'|'..tostring(c) end\n"
			     "	return table.concat(r, ';')\n"
			     "end\n"
			     "local t = name == 'gsub' and {f(text, pattern, repl)} or {f(text, pattern)}\n"
			     "for i = 1, #t do r[i] = tostring(t[i]) end\n"
			     "return table.concat(r, ';')\n";

/* Calls that one function with these; the result is on the stack. Returns 0, or it is an error. */
static int ask(lua_State *lua, const char *name, const char *text, const char *pattern, const char *repl)
{
	lua_settop(lua, 0);
	assert_int_equal(luaL_loadstring(lua, script), LUA_OK);
	lua_getglobal(lua, "string");
	lua_pushstring(lua, name);
	lua_pushstring(lua, text);
	lua_pushstring(lua, pattern);
	lua_pushstring(lua, repl);
	return !!lua_pcall(lua, 5, 1, 0);
}

static unsigned int next_random(void)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned int)(state >> 32);
}

/* So many of the words, at random. */
static void compose(char *ret_text, size_t size, const char *const *words, unsigned int count,
		    unsigned int most)
{
	size_t used = 0;

	ret_text[0] = 0;
	for (unsigned int n = next_random() % (most + 1); n && used + 8 < size; n--)
		used += (size_t)snprintf(ret_text + used, size - used, "%s", words[next_random() % count]);
}

#define COMPOSE(text, words, most)                                                                           \
	compose(text, sizeof(text), words, sizeof(words) / sizeof((words)[0]), most)

/* Lua tells of a malformed pattern when it comes to that part of it in a match, and we always. */
static int is_eager(const char *error)
{
	static const char *const errors[] = {"malformed pattern", "missing '['", "invalid capture index %",
					     "invalid pattern capture", "unfinished capture"};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (strstr(error, errors[i]))
			return 1;
	return 0;
}

static void test_same_as_lua(void **state)
{
	static const char *const names[] = {"find", "match", "gmatch", "gsub"};
	static const char *const pieces[] = {
		"a",	"b", "c",  ".",	 "%a", "%d", "%s", "%W",  "[ab]", "[^a]", "[a-c]", "[%d_]",
		"[]a]", "*", "+",  "-",	 "?",  "(",  ")",  "()",  "%1",	  "%2",	  "%b()",  "%f[%a]",
		"^",	"$", "%.", "%%", "[",  "]",  "%",  "[a-", "%bx",  "%f"};
	static const char *const letters[] = {"a", "b", "c", "1", " ", "(", ")", ".",
					      "%", "A", "_", "]", "-", "^", "$"};
	static const char *const repls[] = {"x", "%0", "%1", "%2", "%%", "", "%", "<%0>"};
	static const struct es_lua_limits limits = {100000000, 64 << 20, 10000000000};
	lua_State *lua = luaL_newstate();
	struct es_lua_sandbox s;
	unsigned int errors = 0, compared = 0;

	(void)state;
	assert_non_null(lua);
	luaL_openlibs(lua);
	assert_int_equal(es_lua_sandbox_init(&s, "test", &limits, es_lua_libraries_open), 0);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		const char *name = names[next_random() % 4];
		char text[40], pattern[64], repl[16];
		int failed, own_failed;

		COMPOSE(text, letters, 12);
		COMPOSE(pattern, pieces, 7);
		COMPOSE(repl, repls, 2);
		s.left = limits.instructions;
		s.look_ns = UINT64_MAX;
		failed = ask(lua, name, text, pattern, repl);
		own_failed = ask(s.lua, name, text, pattern, repl);
		errors += (unsigned int)failed;
		if (!failed && own_failed && is_eager(lua_tostring(s.lua, 1)))
			continue;
		compared++;
		if (own_failed != failed ||
		    (!failed && strcmp(lua_tostring(lua, 1), lua_tostring(s.lua, 1)) != 0))
			fail_msg("%s(\"%s\", \"%s\", \"%s\"): \"%s\", expected \"%s\"", name, text, pattern,
				 repl, lua_tostring(s.lua, 1), lua_tostring(lua, 1));
	}
	assert_in_range(errors, ROUNDS / 50, ROUNDS / 2);
	assert_in_range(compared, ROUNDS / 2, ROUNDS);
	es_lua_sandbox_fini(&s);
	lua_close(lua);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_as_lua)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
