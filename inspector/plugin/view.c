// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The functions that plugins call, in a table of their own so that a plugin needs no symbol of the daemon's.
 * Each answers from the views that the policies also see, and copes with any argument that a plugin passes.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "inspector/http/head.h"
#include "inspector/http/text.h"
#include "inspector/plugin/host_internal.h"

/* --- configuration */

static struct es_plugin_text config_text(const struct es_plugin_config *config)
{
	return (struct es_plugin_text){config->text, config->len};
}

static const char *config_file(const struct es_plugin_config *config)
{
	return config->file;
}

static unsigned int config_line(const struct es_plugin_config *config)
{
	return config->line;
}

static int config_fail(struct es_plugin_config *config, unsigned int line, const char *format, ...)
{
	char what[sizeof(config->err->text)], where[16] = "";
	va_list args;

	if (config->failed)
		return -EINVAL;
	config->failed = 1;
	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	if (line)
		snprintf(where, sizeof(where), ":%u", line);
	es_conf_error_set(config->err, "%s%s: plugin %s: %s", config->file, where, config->plugin->name,
			  what);
	return -EINVAL;
}

static int config_node(const struct es_plugin_config *config, const char *name, size_t len)
{
	for (unsigned int i = 0; i < config->conf->node_count; i++)
		if (strlen(config->conf->nodes[i].name) == len &&
		    !memcmp(config->conf->nodes[i].name, name, len))
			return (int)i;
	return ES_PLUGIN_NONE;
}

static const char *config_node_name(const struct es_plugin_config *config, unsigned int id)
{
	return id < config->conf->node_count ? config->conf->nodes[id].name : NULL;
}

/* --- the request */

static const struct es_plugin_text none;

static int protocol(const struct es_plugin_request *r)
{
	const struct es_http_head *head = r->view->head;

	if (!head)
		return ES_PLUGIN_OTHER;
	switch (head->result) {
	case ES_HTTP_DONE:
	case ES_HTTP_AMBIGUOUS:
		return ES_PLUGIN_HTTP;
	case ES_HTTP_TLS:
		return ES_PLUGIN_TLS;
	case ES_HTTP_H2:
		return ES_PLUGIN_HTTP2;
	default:
		return ES_PLUGIN_OTHER;
	}
}

/* The head, if it may be looked at. */
static const struct es_http_head *head_of(const struct es_plugin_request *r)
{
	return protocol(r) == ES_PLUGIN_HTTP && r->view->head->target_complete ? r->view->head : NULL;
}

static struct es_plugin_text span(const struct es_plugin_request *r, struct es_http_span s)
{
	return (struct es_plugin_text){r->view->text + s.off, s.len};
}

static struct es_plugin_text method(const struct es_plugin_request *r)
{
	return head_of(r) ? span(r, r->view->head->method_name) : none;
}

static struct es_plugin_text target(const struct es_plugin_request *r)
{
	return head_of(r) ? span(r, r->view->head->target) : none;
}

static struct es_plugin_text path(const struct es_plugin_request *r)
{
	if (!head_of(r))
		return none;
	if (r->view->head->path.len)
		return span(r, r->view->head->path);
	/* "http://host" */
	return r->view->head->target_form == ES_HTTP_TARGET_ABSOLUTE ? (struct es_plugin_text){"/", 1} : none;
}

static struct es_plugin_text normal_path(const struct es_plugin_request *r)
{
	struct es_plugin_text as_sent = path(r);
	struct es_plugin_normal *normal = r->normal;

	if (!as_sent.data)
		return none;
	if (normal->state == ES_PLUGIN_NORMAL_UNASKED)
		normal->state = es_url_path_normalize(as_sent.data, as_sent.len, &normal->path)
					? ES_PLUGIN_NORMAL_NONE
					: ES_PLUGIN_NORMAL_THERE;
	if (normal->state == ES_PLUGIN_NORMAL_NONE)
		return none;
	return (struct es_plugin_text){normal->path.text, normal->path.len};
}

static struct es_plugin_text query(const struct es_plugin_request *r)
{
	return head_of(r) && r->view->head->has_query ? span(r, r->view->head->query) : none;
}

static struct es_plugin_text host(const struct es_plugin_request *r)
{
	struct es_plugin_text text = none;

	if (head_of(r))
		es_http_head_host(r->view->head, r->view->text, &text.data, &text.len);
	return text;
}

static struct es_plugin_text header(const struct es_plugin_request *r, const char *name, unsigned int n)
{
	struct es_plugin_text text = none;

	if (head_of(r) && name)
		es_http_head_find_nth(r->view->head, r->view->text, name, n, &text.data, &text.len);
	return text;
}

static struct es_plugin_text cookie(const struct es_plugin_request *r, const char *name)
{
	struct es_plugin_text text = none;

	if (head_of(r) && name && *name)
		es_http_head_cookie(r->view->head, r->view->text, name, &text.data, &text.len);
	return text;
}

static const struct es_tls_hello *hello_of(const struct es_plugin_request *r)
{
	if (!*r->has_hello) {
		*r->has_hello = 1;
		memset(r->hello, 0, offsetof(struct es_tls_hello, sni));
		if (protocol(r) == ES_PLUGIN_TLS)
			es_tls_hello_parse(r->view->text, r->view->len, r->hello);
	}
	return r->hello;
}

static int hello(const struct es_plugin_request *r, uint32_t *ret_more_bytes)
{
	const struct es_tls_hello *h = hello_of(r);

	if (ret_more_bytes)
		*ret_more_bytes = (uint32_t)h->more_bytes;
	return h->result == ES_TLS_DONE	  ? ES_PLUGIN_HELLO_COMPLETE
	       : h->result == ES_TLS_MORE ? ES_PLUGIN_HELLO_PARTIAL
					  : ES_PLUGIN_HELLO_NONE;
}

static struct es_plugin_text sni(const struct es_plugin_request *r)
{
	const struct es_tls_hello *h = hello_of(r);

	return h->sni_len ? (struct es_plugin_text){h->sni, h->sni_len} : none;
}

static struct es_plugin_text alpn(const struct es_plugin_request *r, unsigned int n)
{
	struct es_plugin_text text = none;

	text.data = es_tls_hello_alpn(hello_of(r), n, &text.len);
	return text;
}

static struct es_plugin_text bytes(const struct es_plugin_request *r)
{
	return (struct es_plugin_text){r->view->text, r->view->text ? r->view->len : 0};
}

static int is_truncated(const struct es_plugin_request *r)
{
	return !!r->view->truncated;
}

static void address_set(struct es_plugin_address *ret, const struct es_addr *address, unsigned int port)
{
	memcpy(ret->bytes, address, sizeof(ret->bytes));
	ret->port = (uint16_t)port;
}

static void client(const struct es_plugin_request *r, struct es_plugin_address *ret_address)
{
	memset(ret_address, 0, sizeof(*ret_address));
	if (r->view->client)
		address_set(ret_address, r->view->client, r->view->client_port);
}

static const char *service(const struct es_plugin_request *r)
{
	return r->service;
}

static int current(const struct es_plugin_request *r)
{
	return r->view->current;
}

static void content(const struct es_plugin_request *r, struct es_plugin_content *ret_content)
{
	*ret_content = (struct es_plugin_content){
		.target = r->view->content,
		.size_bytes = r->view->size_bytes,
		.cost = r->view->cost ? r->view->cost : 1,
		.content_class = (uint32_t)r->view->class,
	};
}

static void allowed(const struct es_plugin_request *r, struct es_plugin_set *ret_nodes)
{
	_Static_assert(sizeof(*ret_nodes) == sizeof(r->view->allowed), "the same bits");
	if (r->view->has_allowed)
		memcpy(ret_nodes, &r->view->allowed, sizeof(*ret_nodes));
	else
		memset(ret_nodes, 0xff, sizeof(*ret_nodes));
}

/* --- the cluster */

static unsigned int node_count(const struct es_plugin_cluster *c)
{
	return c->view->count;
}

static unsigned int self(const struct es_plugin_cluster *c)
{
	return c->view->self;
}

static int node(const struct es_plugin_cluster *c, unsigned int id, struct es_plugin_node *ret_node)
{
	uint32_t size = c->thread->instance->plugin.node_size;
	struct es_plugin_node found = {};
	const struct es_node_view *view;

	if (id >= c->view->count)
		return -ENOENT;
	view = &c->view->node[id];
	found.name = c->conf->nodes[id].name;
	address_set(&found.address, &c->conf->nodes[id].address, 0);
	found.is_target = view->is_target && view->weight > 0;
	found.is_draining = !!view->is_draining;
	found.weight = view->weight;
	found.active = view->active;
	found.load = view->load;
	found.cpu = view->cpu;
	found.disk = view->disk;
	/* A newer plugin's structure is longer. */
	memset(ret_node, 0, size);
	memcpy(ret_node, &found, size < sizeof(found) ? size : sizeof(found));
	return 0;
}

static uint64_t hash(const struct es_plugin_cluster *c, const void *key, size_t len)
{
	__u64 position = 0;

	es_content_ring_hash(c->hasher, key, len, &position);
	return position;
}

/* The first @n + 1 nodes; or the first that is a target, if @is_target. */
static int ring_walk(const struct es_plugin_cluster *c, const void *key, size_t len, unsigned int n,
		     int is_target)
{
	struct es_ring_walk walk;
	__u16 id;

	es_ring_walk_init(&walk, c->view->ring, hash(c, key, len));
	while (es_ring_walk_next(&walk, &id)) {
		if (id >= c->view->count)
			continue;
		if (is_target ? c->view->node[id].is_target && c->view->node[id].weight > 0 : !n--)
			return id;
	}
	return ES_PLUGIN_NONE;
}

static int ring(const struct es_plugin_cluster *c, const void *key, size_t len, unsigned int n)
{
	return ring_walk(c, key, len, n, 0);
}

static int ring_target(const struct es_plugin_cluster *c, const void *key, size_t len)
{
	return ring_walk(c, key, len, 0, 1);
}

static uint64_t now_ns(const struct es_plugin_cluster *c)
{
	return c->view->now_ns;
}

static void explain(const struct es_plugin_cluster *c, const char *format, ...)
{
	char text[ES_EXPLAIN_STEP_SIZE];
	va_list args;

	if (!c->view->explain)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	es_explain_add(c->view->explain, "plugin %s: %s", c->thread->instance->conf->name, text);
}

static int is_explain(const struct es_plugin_cluster *c)
{
	return c->view->explain != NULL;
}

static void count(const struct es_plugin_cluster *c, unsigned int metric, uint64_t add)
{
	const struct es_plugin_instance *instance = c->thread->instance;

	if (metric < instance->metric_count && !instance->plugin.metrics[metric].is_gauge &&
	    !c->view->explain)
		es_plugin_bump(&c->thread->metric[metric], add);
}

static void gauge(const struct es_plugin_cluster *c, unsigned int metric, int64_t value)
{
	struct es_plugin_instance *instance = c->thread->instance;

	if (metric < instance->metric_count && instance->plugin.metrics[metric].is_gauge && !c->view->explain)
		atomic_store_explicit(&instance->gauge[metric], value, memory_order_relaxed);
}

static int fail(const struct es_plugin_cluster *c, const char *format, ...)
{
	struct es_plugin_instance *instance = c->thread->instance;
	char text[ES_PLUGIN_ERROR_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* The text may quote a client's bytes, and goes to terminals and into JSON. */
	for (char *at = text; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
	if (c->view->explain) {
		es_explain_add(c->view->explain, "plugin %s: %s", instance->conf->name, text);
		return -EIO;
	}
	pthread_mutex_lock(&instance->lock);
	snprintf(instance->last_error, sizeof(instance->last_error), "%s", text);
	pthread_mutex_unlock(&instance->lock);
	return -EIO;
}

const struct es_plugin_host es_plugin_host = {
	.size = sizeof(struct es_plugin_host),
	.abi_major = ES_PLUGIN_ABI_MAJOR,
	.abi_minor = ES_PLUGIN_ABI_MINOR,
	.config_text = config_text,
	.config_file = config_file,
	.config_line = config_line,
	.config_fail = config_fail,
	.config_node = config_node,
	.protocol = protocol,
	.method = method,
	.target = target,
	.path = path,
	.query = query,
	.host = host,
	.header = header,
	.cookie = cookie,
	.hello = hello,
	.sni = sni,
	.alpn = alpn,
	.bytes = bytes,
	.is_truncated = is_truncated,
	.client = client,
	.service = service,
	.current = current,
	.content = content,
	.allowed = allowed,
	.node_count = node_count,
	.self = self,
	.node = node,
	.ring = ring,
	.ring_target = ring_target,
	.hash = hash,
	.now_ns = now_ns,
	.explain = explain,
	.is_explain = is_explain,
	.count = count,
	.gauge = gauge,
	.config_node_name = config_node_name,
	.fail = fail,
	.normal_path = normal_path,
};
