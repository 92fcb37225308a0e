// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The functions that scripts may call for a request, count(), gauge(), explain(), content(), reject() and
 * need(), and how their answers are read.
 */
#include <stdio.h>
#include <string.h>
#include "script.h"

#define ANSWER "earshot.answer"

/* Defined where answers are read: an error in one names the line on which route() begins. */
const char es_lua_key_route;

static unsigned int metric_of(lua_State *lua, enum es_lua_metric first)
{
	lua_Integer n = luaL_checkinteger(lua, 1);

	luaL_argcheck(lua, n >= 1 && n <= ES_LUA_METRICS, 1, "expected a number from 1 to 8");
	return (unsigned int)first + (unsigned int)n - 1;
}

static int count(lua_State *lua)
{
	const struct es_lua_thread *t = es_lua_thread_now(lua);
	unsigned int metric = metric_of(lua, ES_LUA_METRIC_COUNT_1);
	lua_Integer add = luaL_optinteger(lua, 2, 1);

	luaL_argcheck(lua, add >= 0, 2, "expected a number that is not negative");
	t->script->host->count(t->cluster, metric, (uint64_t)add);
	return 0;
}

static int gauge(lua_State *lua)
{
	const struct es_lua_thread *t = es_lua_thread_now(lua);
	unsigned int metric = metric_of(lua, ES_LUA_METRIC_GAUGE_1);

	t->script->host->gauge(t->cluster, metric, luaL_checkinteger(lua, 2));
	return 0;
}

/* explain(…): values, with blanks between them; does nothing unless `earshot explain` asks */
static int explain(lua_State *lua)
{
	const struct es_lua_thread *t = es_lua_thread_now(lua);
	int n = lua_gettop(lua);
	luaL_Buffer text;

	if (!t->script->host->is_explain(t->cluster))
		return 0;
	luaL_buffinit(lua, &text);
	for (int i = 1; i <= n; i++) {
		if (i > 1)
			luaL_addchar(&text, ' ');
		es_lua_text(lua, i, NULL);
		luaL_addvalue(&text);
	}
	luaL_pushresult(&text);
	t->script->host->explain(t->cluster, "%s", lua_tostring(lua, -1));
	return 0;
}

/*
 * content(name [, cost]): what the request is for. Long names count in full, and are cut where people see
 * them.
 */
static int content(lua_State *lua)
{
	struct es_lua_thread *t = es_lua_thread_now(lua);
	lua_Integer cost = luaL_optinteger(lua, 2, 0);
	size_t len;
	const char *name = luaL_checklstring(lua, 1, &len);

	luaL_argcheck(lua, len > 0, 1, "expected a name");
	luaL_argcheck(lua, cost >= 0 && cost <= UINT32_MAX, 2, "expected response packets");
	es_lua_charge(lua, len / 16);
	t->content = t->script->host->hash(t->cluster, name, len);
	t->content_cost = (uint32_t)cost;
	snprintf(t->content_name, sizeof(t->content_name), "%.*s", (int)strcspn(name, "\n"), name);
	return 0;
}

struct answer {
	int kind;
	uint32_t number;
	uint32_t retry_after_s;
};

static int answer_push(lua_State *lua, int kind, lua_Integer number, lua_Integer retry_after_s)
{
	struct answer *answer = lua_newuserdatauv(lua, sizeof(*answer), 0);

	*answer = (struct answer){kind, (uint32_t)number, (uint32_t)retry_after_s};
	luaL_setmetatable(lua, ANSWER);
	return 1;
}

/* return reject(status [, retry_after]) */
static int reject(lua_State *lua)
{
	lua_Integer status = luaL_checkinteger(lua, 1), retry = luaL_optinteger(lua, 2, 0);

	luaL_argcheck(lua, status >= 400 && status <= 599, 1, "expected a status from 400 to 599");
	luaL_argcheck(lua, retry >= 0 && retry <= UINT32_MAX, 2, "expected seconds");
	return answer_push(lua, ES_PLUGIN_REJECT, status, retry);
}

/* return need(bytes) */
static int need(lua_State *lua)
{
	lua_Integer bytes = luaL_checkinteger(lua, 1);

	luaL_argcheck(lua, bytes >= 1 && bytes <= UINT32_MAX, 1, "expected a number of bytes");
	return answer_push(lua, ES_PLUGIN_MORE, bytes, 0);
}

static int node_checked(lua_State *lua, int index)
{
	int id = es_lua_node_id(lua, index);
	lua_Debug at;

	if (id >= 0)
		return id;
	lua_rawgetp(lua, LUA_REGISTRYINDEX, &es_lua_key_route);
	lua_getinfo(lua, ">S", &at);
	if (lua_type(lua, index) == LUA_TSTRING)
		return luaL_error(lua, "%s:%d: route() has answered \"%s\": expected a node's name",
				  at.short_src, at.linedefined, lua_tostring(lua, index));
	return luaL_error(
		lua,
		"%s:%d: route() has answered a %s: expected a node, a table of nodes, nil, reject() "
		"or need()",
		at.short_src, at.linedefined, luaL_typename(lua, index));
}

void es_lua_answer_read(lua_State *lua)
{
	struct es_lua_thread *t = es_lua_thread_of(lua);
	const struct answer *answer = luaL_testudata(lua, -1, ANSWER);
	int index = lua_gettop(lua);

	memset(&t->answer, 0, sizeof(t->answer));
	t->answer.content = t->content;
	t->answer.content_cost = t->content_cost;
	memcpy(t->answer.content_name, t->content_name, sizeof(t->answer.content_name));
	if (lua_isnil(lua, index)) {
		t->kind = ES_PLUGIN_PASS;
	} else if (answer) {
		t->kind = answer->kind;
		t->answer.status = t->answer.more_bytes = answer->number;
		t->answer.retry_after_s = answer->retry_after_s;
	} else if (lua_istable(lua, index)) {
		t->kind = ES_PLUGIN_NODES;
		for (lua_Integer i = 1; lua_rawgeti(lua, index, i) != LUA_TNIL; i++) {
			es_lua_charge(lua, 8);
			es_plugin_set_add(&t->answer.nodes, (unsigned int)node_checked(lua, index + 1));
			lua_settop(lua, index);
		}
	} else {
		t->kind = ES_PLUGIN_NODE;
		t->answer.node = (uint32_t)node_checked(lua, index);
	}
}

void es_lua_answer_open(lua_State *lua)
{
	static const luaL_Reg functions[] = {{"count", count},	 {"gauge", gauge}, {"explain", explain},
					     {"reject", reject}, {"need", need},   {"content", content},
					     {NULL, NULL}};

	luaL_setfuncs(lua, functions, 0);
	luaL_newmetatable(lua, ANSWER);
	lua_pop(lua, 1);
}
