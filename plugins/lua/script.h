/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ES_LUA_SCRIPT_H
#define ES_LUA_SCRIPT_H

/* Shared by lua.c (the plugin's life), view.c (what scripts see) and answer.c (what they say). */
#include <earshot/plugin.h>
#include "sandbox.h"

/* Numbers of the script's own, each kind: count(1) .. count(8), gauge(1) .. gauge(8). */
#define ES_LUA_METRICS 8

enum es_lua_metric {
	ES_LUA_METRIC_ERRORS,
	ES_LUA_METRIC_INSTRUCTIONS,
	ES_LUA_METRIC_MEMORY,
	ES_LUA_METRIC_TIME,
	ES_LUA_METRIC_COUNT_1,
	ES_LUA_METRIC_GAUGE_1 = ES_LUA_METRIC_COUNT_1 + ES_LUA_METRICS,
	ES_LUA_METRIC_RESTARTS = ES_LUA_METRIC_GAUGE_1 + ES_LUA_METRICS,
};

/* struct es_lua_script - the plugin's state: the text,
 * and what may be asked of the configuration only then */
struct es_lua_script {
	const struct es_plugin_host *host;
	char *file;
	char *text;
	size_t len;
	unsigned int first_line;
	unsigned int node_count;
	const char *node_name[ES_PLUGIN_NODES_MAX]; /* the configuration's, which lives longer */
};

/**
 * struct es_lua_thread - one thread's Lua state, in which the script has run
 * @limits: of one request; @sandbox.limits are larger while the script is loaded
 * @is_ready: globals are read-only from now on
 * @request, @cluster: while route() runs; else NULL
 * @content, @content_cost, @content_name: what it has named in this call
 * @kind, @answer: what it said
 */
struct es_lua_thread {
	struct es_lua_sandbox sandbox;
	const struct es_lua_script *script;
	struct es_lua_limits limits;
	int is_ready;
	const struct es_plugin_request *request;
	const struct es_plugin_cluster *cluster;
	uint64_t content;
	uint32_t content_cost;
	char content_name[ES_PLUGIN_CONTENT_NAME_SIZE];
	int kind;
	struct es_plugin_answer answer;
};

static inline struct es_lua_thread *es_lua_thread_of(lua_State *lua)
{
	return es_lua_sandbox_of(lua)->owner;
}

/* Keys in the registry: the function route, and the objects that it is called with. */
extern const char es_lua_key_route, es_lua_key_request, es_lua_key_cluster;

/* All that follow may raise errors. */

/* es_lua_view_open() - makes the objects that scripts see */
void es_lua_view_open(lua_State *lua);

/* es_lua_thread_now() - the thread, if there is a request; a script may have kept the objects for later */
struct es_lua_thread *es_lua_thread_now(lua_State *lua);

/* es_lua_node_id() - of the node, or its name, at @index; ES_PLUGIN_NONE for all else */
int es_lua_node_id(lua_State *lua, int index);

/*
 * es_lua_node_place() - that of a node object among the nodes, -1 for what is none; for struct es_lua_sandbox
 */
int es_lua_node_place(lua_State *lua, int index);

/* es_lua_answer_open() - puts the functions of answer.c into the table on the top */
void es_lua_answer_open(lua_State *lua);

/* es_lua_answer_read() - what route() has returned, on the top of the stack,
 * into thread->kind and ->answer */
void es_lua_answer_read(lua_State *lua);

#endif
