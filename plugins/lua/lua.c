// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * lua: a script of the operator's decides. The plugin's configuration is the script:
 *
 *	function route(req, cluster)
 *		if req.path and req.path:find("^/api/") then return "n1" end
 *	end
 *
 * Each thread has a Lua state of its own, in which the script has run from its first line to its last, and
 * then init(config), if there is one. From then on globals are read-only. docs/plugins.md has all that
 * scripts may use.
 */
#include <earshot/plugin.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "script.h"

/* Limits while the script is loaded, which happens once for each thread and delays its packets. */
#define LOAD_INSTRUCTIONS 2000000
#define LOAD_TIME_NS	  1000000000u
#define MEMORY_KB_MAX	  (64 * 1024)

static const struct es_plugin_metric metrics[] = {
	[ES_LUA_METRIC_ERRORS] = {"script_errors", "requests whose rule ended with an error", 0},
	[ES_LUA_METRIC_INSTRUCTIONS] = {"over_instructions", "requests whose rule took too many instructions",
					0},
	[ES_LUA_METRIC_MEMORY] = {"over_memory", "requests whose rule took too much memory", 0},
	[ES_LUA_METRIC_TIME] = {"over_time", "requests whose rule took too long", 0},
	{"count_1", "the script's count(1)", 0},
	{"count_2", "the script's count(2)", 0},
	{"count_3", "the script's count(3)", 0},
	{"count_4", "the script's count(4)", 0},
	{"count_5", "the script's count(5)", 0},
	{"count_6", "the script's count(6)", 0},
	{"count_7", "the script's count(7)", 0},
	{"count_8", "the script's count(8)", 0},
	{"gauge_1", "the script's gauge(1)", 1},
	{"gauge_2", "the script's gauge(2)", 1},
	{"gauge_3", "the script's gauge(3)", 1},
	{"gauge_4", "the script's gauge(4)", 1},
	{"gauge_5", "the script's gauge(5)", 1},
	{"gauge_6", "the script's gauge(6)", 1},
	{"gauge_7", "the script's gauge(7)", 1},
	{"gauge_8", "the script's gauge(8)", 1},
	[ES_LUA_METRIC_RESTARTS] = {"restarts", "states that had used their memory up and began afresh", 0},
	{NULL, NULL, 0},
};

/* --- loading */

/* The script may set globals while it is loaded; the upvalue is the table with the real ones. */
static int global_set(lua_State *lua)
{
	if (es_lua_thread_of(lua)->is_ready)
		return luaL_error(
			lua, "global \"%s\": globals are read-only in route(): expected a local variable",
			lua_type(lua, 2) == LUA_TSTRING ? lua_tostring(lua, 2) : luaL_typename(lua, 2));
	lua_rawset(lua, lua_upvalueindex(1));
	return 0;
}

/* The globals get the views' functions, and stand behind an empty table that guards them. */
static int prepare(lua_State *lua)
{
	lua_newtable(lua);
	lua_newtable(lua);
	lua_rawgeti(lua, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
	es_lua_view_open(lua);
	es_lua_answer_open(lua);
	lua_pushvalue(lua, -1);
	lua_setfield(lua, -3, "__index");
	lua_pushcclosure(lua, global_set, 1);
	lua_setfield(lua, -2, "__newindex");
	lua_setmetatable(lua, -2);
	lua_rawseti(lua, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
	return 0;
}

/* @text, @len: what is left of the script */
struct reader {
	const char *text;
	size_t len;
	unsigned int lines;
};

/* A first line that begins with # is for a shell, as with lua(1), and is read as an empty one. */
static struct reader reader_of(const struct es_lua_script *script)
{
	struct reader r = {script->text, script->len, script->first_line - 1};

	for (int is_shells = r.len && *r.text == '#'; is_shells && r.len && *r.text != '\n'; r.text++)
		r.len--;
	return r;
}

/* Empty lines come before a script that does not begin on the first line of its file. */
static const char *script_read(lua_State *lua, void *context, size_t *ret_len)
{
	static const char lines[] = "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n";
	struct reader *r = context;

	(void)lua;
	if (r->lines) {
		*ret_len = r->lines < sizeof(lines) - 1 ? r->lines : sizeof(lines) - 1;
		r->lines -= (unsigned int)*ret_len;
		return lines;
	}
	*ret_len = r->len;
	r->len = 0;
	return r->text;
}

static int compile_and_run(lua_State *lua)
{
	const struct es_lua_script *script = es_lua_thread_of(lua)->script;
	struct reader reader = reader_of(script);

	lua_pushfstring(lua, "@%s", script->file);
	if (lua_load(lua, script_read, &reader, lua_tostring(lua, -1), "t"))
		return lua_error(lua);
	lua_call(lua, 0, 0);
	return 0;
}

/* One of limits = { … }, between @least and @most */
static lua_Integer limit_read(lua_State *lua, const char *name, lua_Integer least, lua_Integer most)
{
	lua_Integer value;
	int is_number;

	value = lua_tointegerx(lua, -1, &is_number);
	if (!is_number || value < least || value > most)
		luaL_error(lua, "limits.%s: expected a number from %I to %I", name, (LUAI_UACINT)least,
			   (LUAI_UACINT)most);
	return value;
}

static void limits_read(lua_State *lua, struct es_lua_limits *limits)
{
	if (lua_getglobal(lua, "limits") == LUA_TNIL)
		return;
	if (!lua_istable(lua, -1))
		luaL_error(lua, "limits: expected a table, as in limits = { instructions = 100000 }");
	for (lua_pushnil(lua); lua_next(lua, -2); lua_pop(lua, 1)) {
		const char *name = lua_type(lua, -2) == LUA_TSTRING ? lua_tostring(lua, -2) : "?";

		if (!strcmp(name, "instructions"))
			limits->instructions = limit_read(lua, name, 1000, 100000000);
		else if (!strcmp(name, "memory_kb"))
			limits->memory_bytes = (size_t)limit_read(lua, name, 256, MEMORY_KB_MAX) * 1024;
		else if (!strcmp(name, "time_ms"))
			limits->time_ns = (uint64_t)limit_read(lua, name, 1, 10000) * 1000000;
		else
			luaL_error(lua, "limits.%s: expected instructions, memory_kb or time_ms", name);
	}
}

/* The argument of init(): { file = "…", nodes = { "n1", … } } */
static void config_push(lua_State *lua, const struct es_lua_script *script)
{
	lua_createtable(lua, 0, 2);
	lua_pushstring(lua, script->file);
	lua_setfield(lua, -2, "file");
	lua_createtable(lua, (int)script->node_count, 0);
	for (unsigned int i = 0; i < script->node_count; i++) {
		lua_pushstring(lua, script->node_name[i]);
		lua_rawseti(lua, -2, (lua_Integer)i + 1);
	}
	lua_setfield(lua, -2, "nodes");
}

static int finish(lua_State *lua)
{
	struct es_lua_thread *t = es_lua_thread_of(lua);
	int type;

	limits_read(lua, &t->limits);
	type = lua_getglobal(lua, "init");
	if (type == LUA_TFUNCTION) {
		config_push(lua, t->script);
		lua_call(lua, 1, 0);
	} else if (type != LUA_TNIL) {
		return luaL_error(lua, "init: expected function init(config) … end");
	}
	if (lua_getglobal(lua, "route") != LUA_TFUNCTION)
		return luaL_error(lua, "no function route: expected function route(req, cluster) … end");
	lua_rawsetp(lua, LUA_REGISTRYINDEX, &es_lua_key_route);
	return 0;
}

static void thread_free(void *thread)
{
	struct es_lua_thread *t = thread;

	es_lua_sandbox_fini(&t->sandbox);
	free(t);
}

/* A state in which the script has run. Returns 0; -EINVAL and @ret_why, or -ENOMEM. */
static int script_start(const struct es_lua_script *script, struct es_lua_thread **ret_thread, char *ret_why,
			size_t why_size)
{
	static const lua_CFunction steps[] = {prepare, compile_and_run, finish};
	static const struct es_lua_limits load = {LOAD_INSTRUCTIONS, MEMORY_KB_MAX * (size_t)1024,
						  LOAD_TIME_NS};
	struct es_lua_thread *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->script = script;
	t->limits = (struct es_lua_limits){100000, (size_t)4096 * 1024, 10000000};
	if (es_lua_sandbox_init(&t->sandbox, script->file, &load, es_lua_libraries_open)) {
		free(t);
		return -ENOMEM;
	}
	t->sandbox.owner = t;
	t->sandbox.object_place = es_lua_node_place;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		lua_pushcfunction(t->sandbox.lua, steps[i]);
		if (es_lua_sandbox_call(&t->sandbox, 0, 0)) {
			snprintf(ret_why, why_size, "%s", t->sandbox.why);
			thread_free(t);
			return -EINVAL;
		}
	}
	lua_gc(t->sandbox.lua, LUA_GCCOLLECT);
	if (t->sandbox.used_bytes > t->limits.memory_bytes / 2) {
		snprintf(ret_why, why_size,
			 "the script itself takes %zu KB: expected limits = { memory_kb = … } of twice that",
			 t->sandbox.used_bytes / 1024 + 1);
		thread_free(t);
		return -EINVAL;
	}
	t->is_ready = 1;
	t->sandbox.limits = t->limits;
	*ret_thread = t;
	return 0;
}

/* --- the plugin's life */

static void release(void *state)
{
	struct es_lua_script *script = state;

	if (!script)
		return;
	free(script->file);
	free(script->text);
	free(script);
}

static int script_new(const struct es_plugin_host *host, struct es_plugin_config *config,
		      struct es_lua_script **ret_script)
{
	struct es_lua_script *script = calloc(1, sizeof(*script));
	struct es_plugin_text text = host->config_text(config);

	if (!script)
		return -ENOMEM;
	script->host = host;
	script->first_line = host->config_line(config);
	script->file = strdup(host->config_file(config));
	script->text = malloc(text.len + 1);
	if (!script->file || !script->text) {
		release(script);
		return -ENOMEM;
	}
	memcpy(script->text, text.data, text.len);
	script->len = text.len;
	while (script->node_count < ES_PLUGIN_NODES_MAX) {
		const char *name = host->config_node_name(config, script->node_count);

		if (!name)
			break;
		script->node_name[script->node_count++] = name;
	}
	*ret_script = script;
	return 0;
}

/* "file:12: what" is an error of line 12; an error without a line belongs to none. */
static int why_tell(const struct es_plugin_host *host, struct es_plugin_config *config, const char *why)
{
	size_t name_len = strlen(host->config_file(config));

	for (const char *colon = strchr(why, ':'); colon; colon = strchr(colon + 1, ':')) {
		char *end;
		unsigned long line = strtoul(colon + 1, &end, 10);

		if (end > colon + 1 && end[0] == ':' && end[1] == ' ')
			return host->config_fail(config, (unsigned int)line, "%s", end + 2);
	}
	if (!strncmp(why, host->config_file(config), name_len) && why[name_len] == ':')
		why += name_len + 2;
	return host->config_fail(config, 0, "%s", why);
}

static int configure(const struct es_plugin_host *host, struct es_plugin_config *config, void **ret_state)
{
	struct es_lua_script *script;
	struct es_lua_thread *t = NULL;
	char why[256] = "out of memory";
	int rc;

	if (host->abi_major == 1 && host->abi_minor < 3)
		return host->config_fail(config, 0, "it needs plugin ABI 1.3: expected a newer earshotd");
	if (!host->config_text(config).len)
		return host->config_fail(config, host->config_line(config),
					 "no script: expected config_file = FILE.lua, with a function route");
	rc = script_new(host, config, &script);
	if (rc)
		return rc;
	/* Try the script here, to report what is wrong with it; each thread then makes its own state. */
	rc = script_start(script, &t, why, sizeof(why));
	if (rc) {
		release(script);
		return rc == -EINVAL ? why_tell(host, config, why) : rc;
	}
	thread_free(t);
	*ret_state = script;
	return 0;
}

static int thread_new(void *state, void **ret_thread)
{
	struct es_lua_thread *t = NULL;
	char why[256];
	int rc = script_start(state, &t, why, sizeof(why));

	if (!rc)
		*ret_thread = t;
	return rc;
}

/* --- a request */

static int route_call(lua_State *lua)
{
	lua_rawgetp(lua, LUA_REGISTRYINDEX, &es_lua_key_route);
	lua_rawgetp(lua, LUA_REGISTRYINDEX, &es_lua_key_request);
	lua_rawgetp(lua, LUA_REGISTRYINDEX, &es_lua_key_cluster);
	lua_call(lua, 2, 1);
	es_lua_answer_read(lua);
	return 0;
}

/*
 * The script keeps so much between requests that no room is left for a request. Every request would fail
 * until somebody reloads, so the script runs anew, without what it kept.
 */
static void restart(struct es_lua_thread *t, const struct es_plugin_cluster *cluster)
{
	struct es_lua_thread *fresh;
	char why[256];

	if (script_start(t->script, &fresh, why, sizeof(why)))
		return; /* there is no memory for it: the next request tries again */
	es_lua_sandbox_fini(&t->sandbox);
	es_lua_sandbox_move(&t->sandbox, &fresh->sandbox);
	t->sandbox.owner = t;
	free(fresh);
	t->script->host->count(cluster, ES_LUA_METRIC_RESTARTS, 1);
}

static int route(void *thread, const struct es_plugin_request *request,
		 const struct es_plugin_cluster *cluster, struct es_plugin_answer *ret_answer)
{
	static const enum es_lua_metric reasons[] = {
		[ES_LUA_RUNS] = ES_LUA_METRIC_ERRORS,
		[ES_LUA_OUT_OF_INSTRUCTIONS] = ES_LUA_METRIC_INSTRUCTIONS,
		[ES_LUA_OUT_OF_MEMORY] = ES_LUA_METRIC_MEMORY,
		[ES_LUA_OUT_OF_TIME] = ES_LUA_METRIC_TIME,
	};
	struct es_lua_thread *t = thread;
	const struct es_plugin_host *host = t->script->host;
	int rc;

	t->request = request;
	t->cluster = cluster;
	t->content = 0;
	t->content_cost = 0;
	t->content_name[0] = 0;
	lua_pushcfunction(t->sandbox.lua, route_call);
	rc = es_lua_sandbox_call(&t->sandbox, 0, 0);
	t->request = NULL;
	t->cluster = NULL;
	if (rc) {
		host->count(cluster, (unsigned int)reasons[t->sandbox.stop], 1);
		rc = host->fail(cluster, "%s", t->sandbox.why);
		if (t->sandbox.stop == ES_LUA_OUT_OF_MEMORY &&
		    t->sandbox.used_bytes > t->limits.memory_bytes / 2)
			restart(t, cluster);
		return rc;
	}
	/* An older host has room for less. */
	memcpy(ret_answer, &t->answer,
	       host->abi_minor < 4 ? offsetof(struct es_plugin_answer, content) : sizeof(t->answer));
	return t->kind;
}

const struct es_plugin earshot_plugin = {
	ES_PLUGIN_HEADER,	  .name = "lua",
	.version = "1.0",	  .description = "a script decides",
	.configure = configure,	  .release = release,
	.thread_new = thread_new, .thread_free = thread_free,
	.route = route,		  .metrics = metrics,
};
