/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECTOR_CONFIG_H
#define ES_INSPECTOR_CONFIG_H

/*
 * The configuration file, the same on all nodes (conf/earshot.conf.example explains each key). Loading it
 * gives a plain structure in which every value is within its range and every default is filled in, or an
 * error text and nothing at all. Numbers are in host byte order, addresses in network byte order.
 */
#include <stddef.h>

#include "inspector/config_error.h"
#include "kmod/core/abi.h"

#define ES_CONF_NODES_MAX    127 /* the decision table has one number for another use */
#define ES_CONF_SERVICES_MAX 64
#define ES_CONF_NAME_SIZE    64 /* with the final NUL, as all sizes here */
#define ES_CONF_PATH_SIZE    256
#define ES_CONF_IFNAME_SIZE  16
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
	unsigned int virtual_nodes; /* of a node with weight 100 */
};

struct es_conf_datapath {
	enum es_conf_datapath_type type;
	char interface[ES_CONF_IFNAME_SIZE];
	char cluster_interface[ES_CONF_IFNAME_SIZE];
	enum es_conf_mac_mode mac_mode;
	unsigned char
		cluster_mac[6]; /* the default is filled in: 03:bf (unicast: 02:bf) + first service's IPv4 */
	unsigned int receive_window_scale;
	unsigned int mtu; /* of the private network; 0: ask the interface */
	unsigned int cookie_lifetime_s;
	unsigned int fallback_after_ms;
};

struct es_conf_inspector {
	unsigned int workers; /* 0: min(CPUs, 4) */
	unsigned int gather_timeout_ms;
	unsigned int gather_bytes;
	unsigned int gather_flows;
	unsigned int decision_entries;
	unsigned int race_window_ms;
	unsigned int target_entries; /* of each service's target table */
};

/* @address: on the private network */
struct es_conf_node {
	char name[ES_CONF_NAME_SIZE];
	struct es_addr address;
	unsigned int weight;
};

/*
 * @policy: "ring" if @inspect is ES_INSPECT_NEVER; @load_bound: percent of the mean load, 0: none
 * @handover_cost: what moving an open connection must gain at least, in requests; of ES_INSPECT_EVERY
 */
struct es_conf_service {
	char name[ES_CONF_NAME_SIZE];
	struct es_addr address;
	unsigned int port;
	char policy[ES_CONF_NAME_SIZE];
	enum es_inspect inspect;
	unsigned int load_bound;
	unsigned int handover_cost;
};

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

/* Nodes, services and plugins stand in the order of the file. */
struct es_conf {
	char path[ES_CONF_PATH_SIZE]; /* what it was loaded from, for messages */
	struct es_conf_cluster cluster;
	struct es_conf_datapath datapath;
	struct es_conf_inspector inspector;
	unsigned int node_count;
	unsigned int service_count;
	struct es_conf_node nodes[ES_CONF_NODES_MAX];
	struct es_conf_service services[ES_CONF_SERVICES_MAX];
	unsigned int plugin_count;
	struct es_conf_plugin *plugins;
};

/**
 * es_conf_load() - read and check a configuration file
 * @known_policies: NULL-terminated names that `policy` accepts, or NULL to accept any well-formed name
 * @err: gets the first error, with file, line, key and what would be accepted; may be NULL
 * The caller owns *@ret_conf. Not reentrant (libconfuse's lexer is global): one thread at a time.
 * Return: 0, -EINVAL for what the file says, -ENOMEM, or the error of reading the file.
 */
int es_conf_load(const char *path, const char *const *known_policies, struct es_conf **ret_conf,
		 struct es_conf_error *err);

/* The same from memory; @path only names it in messages. @text need not end in NUL. */
int es_conf_parse(const char *text, size_t size, const char *path, const char *const *known_policies,
		  struct es_conf **ret_conf, struct es_conf_error *err);

void es_conf_free(struct es_conf **conf);

/**
 * es_conf_find_self() - which node of @conf this machine is
 * @name: the operator's word for it (--node), or NULL to compare the nodes' addresses with the local
 * interfaces Return: 0 and the index into @conf->nodes; -ENOENT when no node fits, -EEXIST when several do,
 * or getifaddrs()' error.
 */
int es_conf_find_self(const struct es_conf *conf, const char *name, unsigned int *ret_index,
		      struct es_conf_error *err);

/* Policies that this version has, for `earshot check-config`; NULL-terminated. */
extern const char *const es_conf_policies[];

/* Text of an address ("10.0.0.1"; IPv6 as RFC 5952); @text has room for INET6_ADDRSTRLEN bytes. Returns
 * @text. */
const char *es_conf_addr_text(const struct es_addr *address, char *text);

/* Parses an IPv4 address, or an IPv6 one. Return: 0 or -EINVAL. */
int es_conf_addr_parse(const char *text, struct es_addr *ret_address);

#endif
