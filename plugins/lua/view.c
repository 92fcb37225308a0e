// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The objects that show scripts a request, the cluster and nodes. A field is read when the script asks for
 * it.
 */
#include <arpa/inet.h>
#include <string.h>
#include "script.h"

#define NODE	 "earshot.node"
#define ALPN_MAX 64

const char es_lua_key_request, es_lua_key_cluster;
static const char key_ids, key_nodes;

static const char *const protocols[] = {"http", "tls", "http2", "other"};
static const char *const hellos[] = {"none", "partial", "complete"};
static const char *const classes[] = {"normal", "cpu", "disk", "disk-cpu"};

static void text_push(lua_State *lua, struct es_plugin_text text)
{
	if (text.data)
		lua_pushlstring(lua, text.data, text.len);
	else
		lua_pushnil(lua);
}

static void name_push(lua_State *lua, const char *const *names, int count, int which)
{
	lua_pushstring(lua, which >= 0 && which < count ? names[which] : "unknown");
}

struct es_lua_thread *es_lua_thread_now(lua_State *lua)
{
	struct es_lua_thread *t = es_lua_thread_of(lua);

	if (!t->request)
		luaL_error(lua, "there is no request now: expected a call from route()");
	return t;
}

/* --- nodes */

static void node_push(lua_State *lua, int id)
{
	lua_rawgetp(lua, LUA_REGISTRYINDEX, &key_nodes);
	lua_rawgeti(lua, -1, id + 1); /* nil for ES_PLUGIN_NONE */
	lua_remove(lua, -2);
}

int es_lua_node_place(lua_State *lua, int index)
{
	const int *node = luaL_testudata(lua, index, NODE);

	return node ? *node : -1;
}

int es_lua_node_id(lua_State *lua, int index)
{
	const int *node = luaL_testudata(lua, index, NODE);
	int id = ES_PLUGIN_NONE, is_number;

	if (node)
		return *node;
	if (lua_type(lua, index) != LUA_TSTRING)
		return ES_PLUGIN_NONE;
	lua_pushvalue(lua, index);
	lua_rawgetp(lua, LUA_REGISTRYINDEX, &key_ids);
	lua_insert(lua, -2);
	lua_rawget(lua, -2);
	id = (int)lua_tointegerx(lua, -1, &is_number);
	lua_pop(lua, 2);
	return is_number ? id : ES_PLUGIN_NONE;
}

static void address_push(lua_State *lua, const struct es_plugin_address *address)
{
	static const uint8_t none[16], mapped[12] = {[10] = 0xff, [11] = 0xff};
	int is_v4 = !memcmp(address->bytes, mapped, sizeof(mapped));
	char text[INET6_ADDRSTRLEN];

	if (!memcmp(address->bytes, none, sizeof(none)))
		lua_pushnil(lua);
	else
		lua_pushstring(lua,
			       inet_ntop(is_v4 ? AF_INET : AF_INET6,
					 address->bytes + (is_v4 ? sizeof(mapped) : 0), text, sizeof(text)));
}

enum node_field { N_NAME, N_STATE, N_ADDRESS, N_WEIGHT, N_ACTIVE, N_LOAD, N_CPU, N_DISK };

static const char *const node_fields[] = {"name", "state", "address", "weight", "active",
					  "load", "cpu",   "disk",    NULL};

static int node_field(lua_State *lua, int field)
{
	const int *id = luaL_checkudata(lua, 1, NODE);
	struct es_lua_thread *t = es_lua_thread_of(lua);
	struct es_plugin_node node;

	if (field == N_NAME) {
		lua_pushstring(lua, t->script->node_name[*id]);
		return 1;
	}
	es_lua_thread_now(lua);
	if (t->script->host->node(t->cluster, (unsigned int)*id, &node))
		return luaL_error(lua, "the node is none any more");
	switch (field) {
	case N_STATE:
		lua_pushstring(lua, node.is_target ? "up" : node.is_draining ? "draining" : "down");
		break;
	case N_ADDRESS:
		address_push(lua, &node.address);
		break;
	default:
		lua_pushnumber(lua, field == N_WEIGHT	? node.weight
				    : field == N_ACTIVE ? node.active
				    : field == N_LOAD	? node.load
				    : field == N_CPU	? node.cpu
							: node.disk);
		break;
	}
	return 1;
}

static int node_name(lua_State *lua)
{
	return node_field(lua, N_NAME);
}

/* --- the request */

enum request_field {
	R_PROTOCOL,
	R_METHOD,
	R_TARGET,
	R_PATH,
	R_NORMAL_PATH,
	R_QUERY,
	R_HOST,
	R_SERVICE,
	R_CLIENT,
	R_CLIENT_PORT,
	R_SNI,
	R_ALPN,
	R_HELLO,
	R_HELLO_BYTES,
	R_LENGTH,
	R_IS_TRUNCATED,
	R_CURRENT,
	R_SIZE,
	R_COST,
	R_CLASS,
};

static const char *const request_fields[] = {
	"protocol", "method",	    "target",	   "path", "normal_path", "query", "host",
	"service",  "client",	    "client_port", "sni",  "alpn",	  "hello", "hello_bytes",
	"length",   "is_truncated", "current",	   "size", "cost",	  "class", NULL};

static int alpn_push(lua_State *lua, const struct es_lua_thread *t)
{
	struct es_plugin_text text;

	lua_newtable(lua);
	for (unsigned int i = 0; i < ALPN_MAX && (text = t->script->host->alpn(t->request, i)).data; i++) {
		text_push(lua, text);
		lua_rawseti(lua, -2, i + 1);
	}
	return 1;
}

static void client_push(lua_State *lua, const struct es_lua_thread *t, int is_port)
{
	struct es_plugin_address client;

	t->script->host->client(t->request, &client);
	if (is_port)
		lua_pushinteger(lua, client.port);
	else
		address_push(lua, &client);
}

static void content_push(lua_State *lua, const struct es_lua_thread *t, int field)
{
	struct es_plugin_content content;

	t->script->host->content(t->request, &content);
	if (field == R_CLASS)
		name_push(lua, classes, 4, (int)content.content_class);
	else
		lua_pushinteger(lua, field == R_COST ? (lua_Integer)content.cost
						     : (lua_Integer)content.size_bytes);
}

static int request_field(lua_State *lua, int field)
{
	const struct es_lua_thread *t = es_lua_thread_now(lua);
	const struct es_plugin_host *host = t->script->host;
	uint32_t more;

	switch (field) {
	case R_PROTOCOL:
		name_push(lua, protocols, 4, host->protocol(t->request));
		break;
	case R_METHOD:
		text_push(lua, host->method(t->request));
		break;
	case R_TARGET:
		text_push(lua, host->target(t->request));
		break;
	case R_PATH:
		text_push(lua, host->path(t->request));
		break;
	case R_NORMAL_PATH:
		text_push(lua, host->normal_path(t->request));
		break;
	case R_QUERY:
		text_push(lua, host->query(t->request));
		break;
	case R_HOST:
		text_push(lua, host->host(t->request));
		break;
	case R_SERVICE:
		lua_pushstring(lua, host->service(t->request));
		break;
	case R_CLIENT:
	case R_CLIENT_PORT:
		client_push(lua, t, field == R_CLIENT_PORT);
		break;
	case R_SNI:
		text_push(lua, host->sni(t->request));
		break;
	case R_ALPN:
		return alpn_push(lua, t);
	case R_HELLO:
		name_push(lua, hellos, 3, host->hello(t->request, NULL));
		break;
	case R_HELLO_BYTES:
		host->hello(t->request, &more);
		lua_pushinteger(lua, more);
		break;
	case R_LENGTH:
		lua_pushinteger(lua, (lua_Integer)host->bytes(t->request).len);
		break;
	case R_IS_TRUNCATED:
		lua_pushboolean(lua, host->is_truncated(t->request));
		break;
	case R_CURRENT:
		node_push(lua, host->current(t->request));
		break;
	default:
		content_push(lua, t, field);
		break;
	}
	return 1;
}

/* req:header(name [, n]), n from 1 on */
static int request_header(lua_State *lua)
{
	const struct es_lua_thread *t = es_lua_thread_now(lua);
	lua_Integer n = luaL_optinteger(lua, 3, 1);

	luaL_argcheck(lua, n >= 1 && n <= 0xffff, 3, "expected a number from 1 on");
	text_push(lua, t->script->host->header(t->request, luaL_checkstring(lua, 2), (unsigned int)n - 1));
	return 1;
}

static int request_cookie(lua_State *lua)
{
	const struct es_lua_thread *t = es_lua_thread_now(lua);

	text_push(lua, t->script->host->cookie(t->request, luaL_checkstring(lua, 2)));
	return 1;
}

/* req:bytes([first [, last]]), counted from 1; by default all bytes that are there */
static int request_bytes(lua_State *lua)
{
	const struct es_lua_thread *t = es_lua_thread_now(lua);
	struct es_plugin_text bytes = t->script->host->bytes(t->request);
	lua_Integer first = luaL_optinteger(lua, 2, 1),
		    last = luaL_optinteger(lua, 3, (lua_Integer)bytes.len);

	luaL_argcheck(lua, first >= 1, 2, "expected a number from 1 on");
	if (last > (lua_Integer)bytes.len)
		last = (lua_Integer)bytes.len;
	if (first > last)
		lua_pushliteral(lua, "");
	else
		lua_pushlstring(lua, bytes.data + first - 1, (size_t)(last - first + 1));
	return 1;
}

/* req:allows(node): do the earlier rules allow it? */
static int request_allows(lua_State *lua)
{
	const struct es_lua_thread *t = es_lua_thread_now(lua);
	struct es_plugin_set allowed;
	int id = es_lua_node_id(lua, 2);

	t->script->host->allowed(t->request, &allowed);
	lua_pushboolean(lua, id >= 0 && es_plugin_set_has(&allowed, (unsigned int)id));
	return 1;
}

/* --- the cluster */

enum cluster_field { C_SELF, C_NOW };

static const char *const cluster_fields[] = {"self", "now", NULL};

static int cluster_field(lua_State *lua, int field)
{
	const struct es_lua_thread *t = es_lua_thread_now(lua);

	if (field == C_SELF)
		node_push(lua, (int)t->script->host->self(t->cluster));
	else
		lua_pushnumber(lua, (lua_Number)t->script->host->now_ns(t->cluster) / 1e9);
	return 1;
}

static int cluster_nodes(lua_State *lua)
{
	const struct es_lua_thread *t = es_lua_thread_of(lua);

	lua_createtable(lua, (int)t->script->node_count, 0);
	for (unsigned int i = 0; i < t->script->node_count; i++) {
		node_push(lua, (int)i);
		lua_rawseti(lua, -2, (lua_Integer)i + 1);
	}
	return 1;
}

static int cluster_node(lua_State *lua)
{
	node_push(lua, es_lua_node_id(lua, 2));
	return 1;
}

/* cluster:ring(key [, n]): the n-th node from the key's place, counted from 1; up or not */
static int cluster_ring(lua_State *lua)
{
	const struct es_lua_thread *t = es_lua_thread_now(lua);
	lua_Integer n = luaL_optinteger(lua, 3, 1);
	size_t len;
	const char *key = luaL_checklstring(lua, 2, &len);

	luaL_argcheck(lua, n >= 1 && n <= ES_PLUGIN_NODES_MAX, 3, "expected a number from 1 on");
	es_lua_charge(lua, 32 + len / 16); /* a hash */
	node_push(lua, t->script->host->ring(t->cluster, key, len, (unsigned int)n - 1));
	return 1;
}

static int cluster_ring_target(lua_State *lua)
{
	const struct es_lua_thread *t = es_lua_thread_now(lua);
	size_t len;
	const char *key = luaL_checklstring(lua, 2, &len);

	es_lua_charge(lua, 32 + len / 16);
	node_push(lua, t->script->host->ring_target(t->cluster, key, len));
	return 1;
}

static int cluster_hash(lua_State *lua)
{
	const struct es_lua_thread *t = es_lua_thread_now(lua);
	size_t len;
	const char *key = luaL_checklstring(lua, 2, &len);

	es_lua_charge(lua, 32 + len / 16);
	lua_pushinteger(lua, (lua_Integer)(t->script->host->hash(t->cluster, key, len) >> 1));
	return 1;
}

/* --- objects */

/* A member by its name: the first upvalue has a number for a field, and the function for a method. */
static int member(lua_State *lua, int (*field)(lua_State *lua, int field), const char *what)
{
	lua_pushvalue(lua, 2);
	switch (lua_rawget(lua, lua_upvalueindex(1))) {
	case LUA_TFUNCTION:
		return 1;
	case LUA_TNUMBER:
		return field(lua, (int)lua_tointeger(lua, -1));
	default:
		return luaL_error(lua, "%s has no member \"%s\"", what,
				  lua_type(lua, 2) == LUA_TSTRING ? lua_tostring(lua, 2)
								  : luaL_typename(lua, 2));
	}
}

static int request_member(lua_State *lua)
{
	return member(lua, request_field, "the request");
}

static int cluster_member(lua_State *lua)
{
	return member(lua, cluster_field, "the cluster");
}

static int node_member(lua_State *lua)
{
	return member(lua, node_field, "a node");
}

/* Fill the metatable on the top: its objects have these members. */
static void members_set(lua_State *lua, lua_CFunction get, const char *const *fields, const luaL_Reg *methods)
{
	lua_newtable(lua);
	for (int i = 0; fields[i]; i++) {
		lua_pushinteger(lua, i);
		lua_setfield(lua, -2, fields[i]);
	}
	luaL_setfuncs(lua, methods, 0);
	lua_pushcclosure(lua, get, 1);
	lua_setfield(lua, -2, "__index");
}

/* Makes an object that exists once, in the registry. */
static void object_new(lua_State *lua, const char *key, lua_CFunction get, const char *const *fields,
		       const luaL_Reg *methods)
{
	lua_newuserdatauv(lua, 0, 0);
	lua_newtable(lua);
	members_set(lua, get, fields, methods);
	lua_setmetatable(lua, -2);
	lua_rawsetp(lua, LUA_REGISTRYINDEX, key);
}

static void nodes_new(lua_State *lua)
{
	static const luaL_Reg no_methods[] = {{NULL, NULL}};
	const struct es_lua_script *script = es_lua_thread_of(lua)->script;

	luaL_newmetatable(lua, NODE);
	members_set(lua, node_member, node_fields, no_methods);
	lua_pushcfunction(lua, node_name);
	lua_setfield(lua, -2, "__tostring");
	lua_pop(lua, 1);
	lua_newtable(lua);
	lua_newtable(lua);
	for (unsigned int i = 0; i < script->node_count; i++) {
		int *id = lua_newuserdatauv(lua, sizeof(*id), 0);

		*id = (int)i;
		luaL_setmetatable(lua, NODE);
		lua_rawseti(lua, -3, (lua_Integer)i + 1);
		lua_pushinteger(lua, i);
		lua_setfield(lua, -2, script->node_name[i]);
	}
	lua_rawsetp(lua, LUA_REGISTRYINDEX, &key_ids);
	lua_rawsetp(lua, LUA_REGISTRYINDEX, &key_nodes);
}

void es_lua_view_open(lua_State *lua)
{
	static const luaL_Reg request_methods[] = {{"header", request_header},
						   {"cookie", request_cookie},
						   {"bytes", request_bytes},
						   {"allows", request_allows},
						   {NULL, NULL}};
	static const luaL_Reg cluster_methods[] = {
		{"nodes", cluster_nodes}, {"node", cluster_node},
		{"ring", cluster_ring},	  {"ring_target", cluster_ring_target},
		{"hash", cluster_hash},	  {NULL, NULL}};

	object_new(lua, &es_lua_key_request, request_member, request_fields, request_methods);
	object_new(lua, &es_lua_key_cluster, cluster_member, cluster_fields, cluster_methods);
	nodes_new(lua);
}
