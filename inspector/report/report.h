/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECTOR_REPORT_H
#define ES_INSPECTOR_REPORT_H

/*
 * The control socket's replies in the shape of docs/json.md, made of the configuration and plain values. Each
 * returns a new object for the caller; without memory json-c ends the program. Arrays are indexed as
 * @conf->nodes.
 */
#include <json-c/json.h>
#include <stddef.h>

#include "inspector/cluster/directory.h"
#include "inspector/config/config.h"
#include "inspector/peers/node_clocks.h"
#include "kmod/core/flow.h"
#include "kmod/core/track.h"
#include "membership/group.h"
#include "membership/hearing.h"

/**
 * struct es_report_service - what this node has in hand for a service
 * @idle: of the active ones, connections on which nothing goes on
 * @measured: responses whose length is known; @measured_bytes: all of theirs
 */
struct es_report_service {
	unsigned int connections;
	unsigned int active;
	unsigned int idle;
	unsigned long long load;
	unsigned long long measured;
	unsigned long long measured_bytes;
};

/**
 * struct es_report_status - what `status` shows besides the configuration
 * @config_path: the file that the daemon was started with; NULL leaves it out
 * @datapath_type: "bpf", "module" or "netfilter"; @datapath_state: "inspecting", "fallback" or "detached"
 * @datapath_note: es_datapath_note(); NULL: ""
 * @node_states: es_report_node_state() of each node; NULL: all "up"
 * @troubles: why each cannot serve, or not all services; "" for nothing; NULL: nothing is known
 * @weights: those in force; NULL: as configured
 * @ring_shares: of each node, 0..1; NULL: all 0
 * @clocks: of each node; NULL: none is known
 * @services: of each service; NULL leaves it out
 * @loads: datagrams about loads, see struct es_load_exchange
 * @workers: array of objects, taken over; see es_report_worker(); NULL: none
 */
struct es_report_status {
	const struct es_conf *conf;
	struct {
		unsigned long long sent;
		unsigned long long received;
		unsigned long long refused;
	} loads;
	unsigned int self;
	const char *config_path;
	const char *datapath_type;
	const char *datapath_state;
	const char *datapath_note;
	double uptime_s;
	const char *waiting; /* settings, for another start of the daemon; NULL: none */
	unsigned int epoch;
	unsigned int members;
	const char *const *node_states;
	const char *const *troubles;
	const unsigned int *weights;
	const double *ring_shares;
	const struct es_node_clocks *clocks;
	const struct es_report_service *services;
	struct json_object *workers;
};

struct json_object *es_report_status(const struct es_report_status *status);

/* "up", "draining", "down", "left" or "absent" */
const char *es_report_node_state(enum es_node_state state);

/*
 * struct es_report_told - what nodes say of their settings (self/settings.h); @settings: NULL of one that
 * does not count
 */
struct es_report_told {
	unsigned int count;
	const char *name[ES_NODES_MAX];
	const char *settings[ES_NODES_MAX];
};

/* es_report_drift() - add "drift" to each of @nodes that differs in settings that must or should be alike */
void es_report_drift(struct json_object *nodes, const struct es_report_told *told);

/* es_report_drift_counts() - in how many settings each node does; ES_NODES_MAX of them */
void es_report_drift_counts(const struct es_report_told *told, unsigned int *ret_counts);

/**
 * struct es_report_membership
 * @group: NULL if it is static; then only @self and @own, what this node knows of itself, and @told are of
 * meaning
 * @hearing: who is heard on the public network
 * @granted_ms: until when the others have granted this node a lease, 0: they have not
 * @drain, @weight: what was set of each node by hand; NULL: nothing; @is_unkept: and will not outlast its
 * daemon
 */
struct es_report_membership {
	const struct es_group *group;
	const struct es_hearing *hearing;
	const struct es_wire_by_hand *drain[ES_NODES_MAX];
	const struct es_wire_by_hand *weight[ES_NODES_MAX];
	unsigned char is_unkept[ES_NODES_MAX];
	unsigned int self;
	struct es_wire_load own;
	struct es_report_told told;
	int is_connected;
	int is_quorate;
	int is_silent;
	const char *why;
	unsigned int lease_ms;
	uint64_t granted_ms;
	uint64_t now_ms;
};

/* es_report_told_by() - what nodes of either membership say of their settings */
void es_report_told_by(const struct es_report_membership *membership, struct es_report_told *ret);

/* es_report_membership() - add to a reply of es_report_status() */
void es_report_membership(struct json_object *status, const struct es_report_membership *membership);

/* One element of workers: id and the named values; @names ends with NULL. */
struct json_object *es_report_worker(unsigned int id, const char *const *names,
				     const unsigned long long *values);

/* struct es_report_point - a virtual node: its position and the index of its node */
struct es_report_point {
	unsigned long long position;
	unsigned int node;
};

/**
 * struct es_report_ring - a ring of @conf's nodes; nodes with 0 virtual nodes are no members
 * @points: in ring order; NULL leaves them out of the reply (`ring` without "points":true)
 */
struct es_report_ring {
	const struct es_conf *conf;
	unsigned int epoch;
	const unsigned int *virtual_nodes;
	const double *shares;
	const struct es_report_point *points;
	size_t point_count;
};

struct json_object *es_report_ring(const struct es_report_ring *ring);

/* Where the metrics are served: the member "metrics" of `status`. @error: why not; "": they are. */
struct json_object *es_report_metrics(const struct es_addr *address, unsigned int port, const char *error);

/* Does a `ring` request ask for the points? */
int es_report_wants_points(struct json_object *request);

/*
 * es_report_flow_of() - from @client and its @port to the service's address of that family
 * Returns 0, or -EINVAL and @err if the service has none.
 */
int es_report_flow_of(const struct es_conf_service *service, const struct es_addr *client, unsigned int port,
		      struct es_flow *ret_flow, struct es_conf_error *err);

/**
 * es_report_lookup_flow() - the flow that a `ring` request's "lookup" object asks about
 * Return: 0; -ENOENT when the request asks for no look-up; -EINVAL with @err.
 */
int es_report_lookup_flow(const struct es_conf *conf, struct json_object *request, struct es_flow *ret_flow,
			  unsigned int *ret_service, struct es_conf_error *err);

/* The reply to a look-up: @flow of @service, at @position, inspected by @node. */
struct json_object *es_report_lookup(const struct es_conf *conf, unsigned int epoch,
				     const struct es_flow *flow, unsigned int service,
				     unsigned long long position, unsigned int node);

#define ES_REPORT_FLOWS_DEFAULT	  1000
#define ES_REPORT_FLOWS_MAX	  50000 /* more would not fit into a reply */
#define ES_REPORT_TCP_ESTABLISHED 1

enum es_report_flow_state {
	ES_REPORT_FLOW_IDLE,	 /* between two requests */
	ES_REPORT_FLOW_SERVING,	 /* the server has a request */
	ES_REPORT_FLOW_DECIDING, /* the inspector has one */
	ES_REPORT_FLOW_PINNED,
	ES_REPORT_FLOW_CLOSING, /* one side or both have closed */
	ES_REPORT_FLOW_STATES,
};

/* es_report_flow_state() - @entry: of a connection whose every request is read */
enum es_report_flow_state es_report_flow_state(const struct es_track_entry *entry);

/*
 * es_report_flow_service() - the service of a flow, by its address: the index in the datapath may be an
 * older configuration's. NULL: it is of none.
 */
const struct es_conf_service *es_report_flow_service(const struct es_conf *conf, const struct es_flow *flow);

/* struct es_report_flows - a `flows` reply that is being built */
struct es_report_flows {
	const struct es_conf *conf;
	struct json_object *flows;
	struct json_object *kept;
	struct json_object *waiting;   /* this and the next are the caller's to fill in, */
	struct json_object *downloads; /* before es_report_flows_finish() */
	unsigned long long limit;
	int only_pinned;
	unsigned long long total;
	unsigned long long states[ES_REPORT_FLOW_STATES];
};

/* es_report_flows_init() - begin; @request may have "limit" and "pinned" */
void es_report_flows_init(struct es_report_flows *report, const struct es_conf *conf,
			  struct json_object *request);
/* An es_datapath_flow_fn: counts the connection, and shows it up to the limit. @ctx: the report. */
void es_report_flows_add(void *ctx, const void *entry /* struct es_track_entry */);
/*
 * es_report_flows_kept() - what is known of other nodes' idle connections; @told: how many of its own this
 * node has told them of
 */
void es_report_flows_kept(struct es_report_flows *report, struct es_directory *directory, unsigned int told);
/* es_report_flows_finish() - the reply, the caller's then */
struct json_object *es_report_flows_finish(struct es_report_flows *report);

/* The reply to a `reload` that brought this epoch. */
struct json_object *es_report_reload(unsigned int epoch);

/* @values: the datapath's ES_COUNTER_COUNT counters (kmod/core/counters.h) */
struct json_object *es_report_counters(const unsigned long long *values);

/* Adds a counter of the daemon's own to a report of es_report_counters(). */
void es_report_counter_add(struct json_object *report, const char *name, unsigned long long value,
			   const char *description);

#endif
