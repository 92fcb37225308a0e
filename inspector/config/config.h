/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECTOR_CONFIG_H
#define ES_INSPECTOR_CONFIG_H

/*
 * The configuration file, the same on all nodes; keys_*.c say what each key means, and here stands only what
 * the fields add to that. Loading it
 * gives a plain structure in which every value is within its range and every default is filled in, or an
 * error text and nothing at all. Numbers are in host byte order, addresses in network byte order.
 */
#include <stddef.h>
#include <stdio.h>

#include "inspector/base/error.h"
#include "inspector/config/address.h"
#include "inspector/config/list.h"
#include "inspector/config/rule.h"
#include "inspector/policy/policy.h"
#include "kmod/core/abi.h"

#define ES_CONF_NODES_MAX    127 /* the decision table has one number for another use */
#define ES_CONF_SERVICES_MAX 64
#define ES_CONF_IFNAME_SIZE  128 /* an alternative name */
#define ES_CONF_WEIGHT_MAX   1000
#define ES_CONF_PLUGINS_MAX  64 /* of all services together */
#define ES_CONF_TEXT_SIZE    2048

enum es_conf_membership {
	ES_CONF_MEMBERSHIP_STATIC,
	ES_CONF_MEMBERSHIP_COROSYNC,
};

enum es_conf_datapath_type {
	ES_CONF_DATAPATH_AUTO,
	ES_CONF_DATAPATH_BPF,
	ES_CONF_DATAPATH_MODULE,
	ES_CONF_DATAPATH_NETFILTER,
};

enum es_conf_ring_hash {
	ES_CONF_RING_SIPHASH,
	ES_CONF_RING_JHASH,
};

enum es_conf_mac_mode {
	ES_CONF_MAC_MULTICAST,
	ES_CONF_MAC_UNICAST,
};

struct es_conf_cluster {
	char name[ES_CONF_NAME_SIZE];
	char key_file[ES_CONF_PATH_SIZE];
	enum es_conf_membership membership;
	unsigned int handover_port;
	unsigned int virtual_nodes;
	enum es_conf_ring_hash ring_hash;
	int catch_up;
};

struct es_conf_datapath {
	enum es_conf_datapath_type type;
	char interface[ES_CONF_IFNAME_SIZE];
	char cluster_interface[ES_CONF_IFNAME_SIZE];
	enum es_conf_mac_mode mac_mode;
	unsigned char cluster_mac[6]; /* the default is filled in */
	unsigned int receive_window_scale;
	unsigned int mtu;
	unsigned int cookie_lifetime_s;
	unsigned int fallback_after_ms;
	unsigned int conntrack_zone;
};

enum es_conf_poison { ES_CONF_POISON_SERVE, ES_CONF_POISON_REFUSE };

struct es_conf_inspector {
	unsigned int workers;
	unsigned int gather_timeout_ms;
	unsigned int gather_bytes;
	unsigned int gather_flows;
	unsigned int connection_rate;
	unsigned int decision_entries; /* 0: es_conf_decision_entries() knows */
	unsigned int race_window_ms;
	unsigned int settle_ms;
	enum es_conf_poison poison;
	unsigned int target_entries;
	unsigned int url_entries;
	char program_group[ES_CONF_NAME_SIZE]; /* "": only root */
};

#define ES_CONF_ROUTES_MAX 16 /* of a node */

/*
 * @id: 0: the file gives none, to this node or to any other; @weight: 0 if @removed; @routes:
 * es_conf_route_next() has the default
 */
struct es_conf_node {
	char name[ES_CONF_NAME_SIZE];
	struct es_addr address;
	unsigned int weight;
	char interface[ES_CONF_IFNAME_SIZE];
	char cluster_interface[ES_CONF_IFNAME_SIZE];
	unsigned int id;
	int removed;
	struct es_conf_list routes;
};

/*
 * The next of the values that name @node, after @route (NULL: the first one); NULL after the last. A node for
 * which the file gives none has one, its name.
 */
static inline const char *es_conf_route_next(const struct es_conf_node *node, const char *route)
{
	if (node->routes.count)
		return es_conf_list_next(&node->routes, route);
	return route ? (const char *)0 : node->name;
}

/* @address: all zero: the node's own */
struct es_conf_status {
	struct es_addr address;
	unsigned int port;
	struct es_conf_list allow;
	struct es_conf_list names;
};

enum es_conf_log_to { ES_CONF_LOG_SYSLOG, ES_CONF_LOG_FILE };
enum es_conf_log_format { ES_CONF_LOG_COMMON, ES_CONF_LOG_JSON };

/*
 * @is_on: the file has the section; @facility: syslog's number of it; @file: "" unless @to says so; @service:
 * -1: all
 */
struct es_conf_log {
	int is_on;
	enum es_conf_log_to to;
	enum es_conf_log_format format;
	unsigned int facility;
	char file[ES_CONF_PATH_SIZE];
	char service_name[ES_CONF_NAME_SIZE];
	int service;
};

enum es_conf_check_type { ES_CONF_CHECK_TCP, ES_CONF_CHECK_HTTP, ES_CONF_CHECK_NONE, ES_CONF_CHECK_HTTPS };

#define ES_CONF_STATUS_MAX   599
#define ES_CONF_STATUS_WORDS ((ES_CONF_STATUS_MAX + 64) / 64)

/**
 * struct es_conf_check - how the daemon finds out whether the node's own server works (health/server_check.h)
 * @host: "": the service's address; @right: a bit for each status that is right, whether @expect or @statuses
 * says so
 */
struct es_conf_check {
	enum es_conf_check_type type;
	unsigned int port;
	char path[ES_CONF_PATH_SIZE];
	char host[ES_CONF_PATH_SIZE];
	char ca_file[ES_CONF_PATH_SIZE];
	unsigned int expect;
	struct es_conf_list statuses;
	__u64 right[ES_CONF_STATUS_WORDS];
	char body[ES_CONF_PATH_SIZE];
	unsigned int interval_ms;
	unsigned int timeout_ms;
	unsigned int rise;
	unsigned int fall;
	unsigned int slow_start_s;
};

static inline int es_conf_check_is_http(const struct es_conf_check *check)
{
	return check->type == ES_CONF_CHECK_HTTP || check->type == ES_CONF_CHECK_HTTPS;
}

static inline int es_conf_status_is_right(const struct es_conf_check *check, unsigned int status)
{
	return status <= ES_CONF_STATUS_MAX && check->right[status / 64] >> status % 64 & 1;
}

static inline void es_conf_status_add(struct es_conf_check *check, unsigned int first, unsigned int last)
{
	for (unsigned int status = first; status <= last && status <= ES_CONF_STATUS_MAX; status++)
		check->right[status / 64] |= 1ULL << status % 64;
}

#define ES_CONF_OUTLIER_SERVICES 48 /* of so many services nodes can tell each other */

/*
 * When the node's own server is put out for its responses (health/outlier.h): also the defaults without that
 * section.
 */
struct es_conf_outlier {
	unsigned int max_errors;
	unsigned int max_slow;
	unsigned int slow_ms;
	unsigned int interval_ms;
	unsigned int min_responses;
	unsigned int out_s;
	unsigned int out_max_s;
	unsigned int max_out;
};

static inline int es_conf_outlier_is_set(const struct es_conf_outlier *outlier)
{
	return outlier->max_errors || outlier->max_slow;
}

#define ES_CONF_PAGE_MAX	 1000 /* bytes: with its head it fits into one packet of any network */
#define ES_CONF_OTHERWISE_STATUS 503  /* where the file gives none */

/*
 * The section otherwise { }. @body, @file: one is set, or neither: the status in words; @line: 0: there is no
 * such section
 */
struct es_conf_page {
	unsigned int status;
	char body[ES_CONF_PATH_SIZE];
	char file[ES_CONF_PATH_SIZE];
	int line;
};

#define ES_CONF_CERTIFICATES_MAX 16

/* How the server behind is told of the client. */
enum es_conf_tell {
	ES_CONF_TELL_X_FORWARDED,
	ES_CONF_TELL_FORWARDED,
	ES_CONF_TELL_PROXY,
	ES_CONF_TELL_NOTHING,
};

/* The node to which a client that resumes a session comes first: its ticket's, or the ring's. */
enum es_conf_resume {
	ES_CONF_RESUME_RING,
	ES_CONF_RESUME_HOME,
};

/**
 * struct es_conf_tls - the section tls { }: earshot-tls ends the service's TLS
 * @line: 0: there is no such section, and nothing else here counts
 * @inspect: which requests earshot-tls reads, as the file says. The service's own @inspect is what the
 * datapath does, which sees ciphertext (es_conf_service_reads()): first, where it has a ClientHello read for
 * the home in its ticket (@resume), else never
 * @certificate, @key: so many as @certificate_count; and so many @ocsp, or none
 * @minimum: as the protocol has it, 0x0303 or 0x0304
 * @ciphers, @suites: "": Mozilla's intermediate ones
 * @client_ca: "": clients are not asked for certificates
 * @server: es_conf_endpoint_parse() reads it
 * @ktls: the kernel may write records of long responses; @workers: 0: one for each CPU
 * @max_connections: of clients at a time, on a node; 0: by its memory
 * @until_s, @ocsp_until_s: when each certificate ends, and the OCSP answer for it, seconds since 1970, 0: it
 * could not be used, or there is none; @certificates_digest:
 * tells them from others, 0: the service is not on this node. Not of the file: es_certificates_note()
 */
struct es_conf_tls {
	int line;
	enum es_inspect inspect;
	enum es_conf_resume resume;
	unsigned int certificate_count;
	char certificate[ES_CONF_CERTIFICATES_MAX][ES_CONF_PATH_SIZE];
	char key[ES_CONF_CERTIFICATES_MAX][ES_CONF_PATH_SIZE];
	char ocsp[ES_CONF_CERTIFICATES_MAX][ES_CONF_PATH_SIZE];
	char alpn[ES_CONF_NAME_SIZE];
	unsigned int minimum;
	char ciphers[ES_CONF_TEXT_SIZE];
	char suites[ES_CONF_TEXT_SIZE];
	char client_ca[ES_CONF_PATH_SIZE];
	int client_required;
	char server[ES_CONF_PATH_SIZE];
	enum es_conf_tell tell;
	int ktls;
	unsigned int workers;
	unsigned int max_connections;
	long long until_s[ES_CONF_CERTIFICATES_MAX];
	long long ocsp_until_s[ES_CONF_CERTIFICATES_MAX];
	unsigned long long certificates_digest;
};

enum es_conf_all_down { ES_CONF_ALL_DOWN_SERVE, ES_CONF_ALL_DOWN_REJECT };

/*
 * @address, @address6: one of each family at most, and one at least; all zeros: none. On line @address_line.
 * @policy: the default is filled in
 * @inspect: what the datapath does; es_conf_service_reads() says what becomes of requests
 * @survive: so many other nodes know its idle connections; @resume: and its long responses
 * @server_address, @server_address6: all zeros: none of that family. With @tls these, and @server_port, are
 * the service's own: earshot-tls listens there, and takes what others hand over
 * @params: of the policy, in its order, from @parameters
 * @nodes: of @node_names; empty: on all (es_conf_service_is_on()); @backup: of @backup_names
 */
struct es_conf_service {
	char name[ES_CONF_NAME_SIZE];
	struct es_addr address;
	struct es_addr address6;
	int address_line;
	unsigned int port;
	char policy[ES_CONF_NAME_SIZE];
	enum es_inspect inspect;
	enum es_unsafe unsafe;
	unsigned int survive;
	int resume;
	struct es_addr server_address;
	struct es_addr server_address6;
	unsigned int server_port;
	unsigned int load_bound;
	unsigned int handover_cost;
	int content_host;
	int content_on_disk;
	struct es_conf_list parameters;
	double params[ES_POLICY_PARAMS_MAX];
	char document_root[ES_CONF_PATH_SIZE];
	unsigned int admit_low;
	unsigned int admit_normal;
	unsigned int retry_after_s;
	enum es_conf_all_down when_all_down;
	struct es_conf_list node_names;
	struct es_node_set nodes;
	struct es_conf_list backup_names;
	struct es_node_set backup;
	struct es_conf_page page;
	struct es_conf_check check;
	struct es_conf_outlier outlier;
	struct es_conf_tls tls;
};

/*
 * es_conf_service_reads() - which requests of the service are read and placed, by whatever reads them
 * To be asked for all that is about requests: policies, rules, plugins, responses. @inspect is about packets.
 */
static inline enum es_inspect es_conf_service_reads(const struct es_conf_service *service)
{
	return service->tls.line ? service->tls.inspect : service->inspect;
}

enum es_conf_fail { ES_CONF_FAIL_OPEN, ES_CONF_FAIL_CLOSED };

/**
 * struct es_conf_plugin - a plugin of a service (plugin/host.h)
 * @service: index; @line: where its section begins
 * @file: "": NAME.so; a relative one is in the directory of the plugins
 * @config: its configuration, on line @config_line (0: there is none); or @config_file has it
 */
struct es_conf_plugin {
	char name[ES_CONF_NAME_SIZE];
	unsigned int service;
	int line;
	char file[ES_CONF_PATH_SIZE];
	enum es_conf_fail fail;
	unsigned int budget_us;
	char config[ES_CONF_TEXT_SIZE];
	int config_line;
	char config_file[ES_CONF_PATH_SIZE];
};

#define ES_CONF_WARNINGS_MAX 64
#define ES_CONF_WARNING_SIZE 384

/*
 * Nodes, services, plugins and rules stand in the order of the file. @warning: about values that are taken,
 * but may not be meant: "path:line: what"; further ones are left out.
 */
struct es_conf {
	char path[ES_CONF_PATH_SIZE]; /* of the file that it was loaded from, for messages */
	unsigned long long digest;    /* of the text that it was parsed from: tells texts apart */
	struct es_conf_cluster cluster;
	struct es_conf_datapath datapath;
	struct es_conf_inspector inspector;
	struct es_conf_status status;
	struct es_conf_log log;
	unsigned int node_count;
	unsigned int service_count;
	struct es_conf_node nodes[ES_CONF_NODES_MAX];
	struct es_conf_service services[ES_CONF_SERVICES_MAX];
	unsigned int plugin_count;
	struct es_conf_plugin *plugins;
	unsigned int rule_count;
	struct es_conf_rule *rules; /* locations among them */
	unsigned int warning_count;
	char (*warning)[ES_CONF_WARNING_SIZE];
};

/* es_conf_nodes_present() - how many nodes there should be */
static inline unsigned int es_conf_nodes_present(const struct es_conf *conf)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < conf->node_count; i++)
		n += !conf->nodes[i].removed;
	return n;
}

#define ES_DECISION_ENTRIES_MAX 16777216

/* es_conf_decision_entries() - how many decisions are remembered at least: as long as their requests may come
 * again */
static inline unsigned int es_conf_decision_entries(const struct es_conf *conf)
{
	unsigned long long entries =
		(unsigned long long)conf->inspector.connection_rate * conf->datapath.cookie_lifetime_s;

	if (conf->inspector.decision_entries)
		return conf->inspector.decision_entries;
	return entries < ES_DECISION_ENTRIES_MAX ? (unsigned int)entries : ES_DECISION_ENTRIES_MAX;
}

/**
 * es_conf_read() - read and check a configuration file
 * @err: gets the first error, with file, line, key and what would be accepted; may be NULL
 * The caller owns *@ret_conf. Not reentrant (libconfuse's lexer is global): one thread at a time.
 * Return: 0, -EINVAL for what the file says, -ENOMEM, or the error of reading the file.
 */
int es_conf_read(const char *path, struct es_conf **ret_conf, struct es_conf_error *err);

/* es_conf_has_source_rule() - is there such a rule for this very service? */
int es_conf_has_source_rule(const struct es_conf *conf, unsigned int service);

/**
 * es_conf_page_read() - the text of the service's page
 * @ret_text: "" for none: the status in words; of a file, what this machine has
 * @ret_type: its Content-Type; NULL: it is one line, without its end
 * Returns 0; -errno, and @why says what is wrong with the file.
 */
int es_conf_page_read(const struct es_conf_service *service, char ret_text[ES_CONF_PAGE_MAX + 1],
		      const char **ret_type, struct es_conf_error *why);

/*
 * es_conf_pages_try() - can the pages of all services be read here? Returns as es_conf_page_read(), @err with
 * file and line.
 */
int es_conf_pages_try(const struct es_conf *conf, struct es_conf_error *err);

/* es_conf_has_backup() - is @node one of those that serve only while none of the others can? */
static inline int es_conf_has_backup(const struct es_conf_service *service, unsigned int node)
{
	return service->backup_names.count && es_node_set_has(service->backup, node);
}

/* es_conf_service_has() - is @address one of the service's? */
static inline int es_conf_service_has(const struct es_conf_service *service, const struct es_addr *address)
{
	return es_addr_is_set(address) &&
	       (es_addr_equal(&service->address, address) || es_addr_equal(&service->address6, address));
}

/*
 * es_conf_service_is_on() - does @node serve it at all? Other nodes inspect its requests, and hand them over.
 */
static inline int es_conf_service_is_on(const struct es_conf_service *service, unsigned int node)
{
	return es_node_set_is_empty(service->nodes) || es_node_set_has(service->nodes, node);
}

/* es_conf_services_on() - all that @node serves, as bits */
__u64 es_conf_services_on(const struct es_conf *conf, unsigned int node);

#define ES_CONF_FAMILIES 2

/* es_conf_service_of() - its address of IPv4 (@family 0) or IPv6 (1); NULL: it has none */
static inline const struct es_addr *es_conf_service_of(const struct es_conf_service *service,
						       unsigned int family)
{
	const struct es_addr *address = family ? &service->address6 : &service->address;

	return es_addr_is_set(address) ? address : NULL;
}

/* es_conf_server_of() - where its server listens for what programs hand over of that family; NULL: none does,
 * or it has no connections of it */
static inline const struct es_addr *es_conf_server_of(const struct es_conf_service *service,
						      unsigned int family)
{
	const struct es_addr *server = family ? &service->server_address6 : &service->server_address;

	return service->server_port && es_conf_service_of(service, family) && es_addr_is_set(server) ? server
												     : NULL;
}

/* es_conf_service_address() - the first that it has */
static inline const struct es_addr *es_conf_service_address(const struct es_conf_service *service)
{
	return es_addr_is_set(&service->address) ? &service->address : &service->address6;
}

/* Its addresses with ", " between them; @text has room for ES_CONF_ADDRESSES_SIZE bytes. Returns @text. */
#define ES_CONF_ADDRESSES_SIZE 100
const char *es_conf_service_text(const struct es_conf_service *service, char *text);

/* From memory, and of any family; @path only names it in messages. @text need not end in NUL. */
int es_conf_parse(const char *text, size_t size, const char *path, struct es_conf **ret_conf,
		  struct es_conf_error *err);

#define ES_CONF_ERRORS_MAX 64

/* struct es_conf_errors - what is wrong with a file, in the order in which it was found, each once */
struct es_conf_errors {
	unsigned int count;
	unsigned int left_out; /* for which there was no room */
	struct es_conf_error error[ES_CONF_ERRORS_MAX];
};

/**
 * es_conf_read_all() - es_conf_read(), with all errors of the file and not only the first
 * Nothing is read after an error of syntax, nor after the name of a section that is wrong or there already. A
 * section with a wrong value is not compared with others.
 */
int es_conf_read_all(const char *path, struct es_conf **ret_conf, struct es_conf_errors *errors);

/* The same from memory. */
int es_conf_parse_all(const char *text, size_t size, const char *path, struct es_conf **ret_conf,
		      struct es_conf_errors *errors);

void es_conf_free(struct es_conf **conf);

/**
 * es_conf_redact() - write the text of a configuration, right or wrong, as strangers may read it
 * Comments, plugins' configurations, the values of headers, queries and all that is not known are left out;
 * lines stay where they are.
 * @hidden: called with each piece that is left out, but for comments; may be NULL
 */
void es_conf_redact(const char *text, size_t size, FILE *out,
		    void (*hidden)(void *ctx, const char *text, size_t len), void *ctx);

/**
 * es_conf_find_self() - which node of @conf this machine is
 * @name: the operator's word for it (--node), or NULL to compare the nodes' addresses with the local
 * interfaces
 *
 * Return: 0 and the index into @conf->nodes; -ENOENT when no node fits, -EEXIST when several do,
 * or getifaddrs()' error.
 */
int es_conf_find_self(const struct es_conf *conf, const char *name, unsigned int *ret_index,
		      struct es_conf_error *err);

/*
 * es_conf_netfilter_serves() - does @conf ask for nothing that the netfilter datapath does not do?
 * Returns 1; 0, with the first such thing, and what would be right.
 */
#define ES_CONF_NETFILTER_TEXT 384
int es_conf_netfilter_serves(const struct es_conf *conf, char ret_text[ES_CONF_NETFILTER_TEXT]);

/* es_conf_use_node() - this machine is node @self: the interfaces that its section names are in force */
void es_conf_use_node(struct es_conf *conf, unsigned int self);

/* es_conf_digest() - tells texts apart; that of the text that was parsed is in @digest */
unsigned long long es_conf_digest(const char *text, size_t size);

/*
 * es_conf_routes_digest() - the same for two files whose nodes have the same routes; 0: none is written down
 */
__u64 es_conf_routes_digest(const struct es_conf *conf);

#endif
