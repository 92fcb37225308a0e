/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DATAPATH_H
#define ES_DATAPATH_H

/*
 * The daemon's needs of the datapath, whichever it is: tc programs (bpf.c), earshot.ko (module.c), or, in the
 * daemon itself, what netfilter gives it (netfilter.c). Its tables outlive the daemon; a daemon that starts
 * takes them over.
 */
#include <stddef.h>
#include "kmod/core/abi.h"
#include "kmod/core/counters.h"
#include "kmod/core/decisions.h"
#include "kmod/core/download.h"
#include "kmod/core/load.h"
#include "kmod/core/node_ring.h"
#include "kmod/core/track.h"

struct es_conf;

struct es_datapath;
struct es_kept_slot;
struct es_reset;

enum es_datapath_kind { ES_DATAPATH_BPF, ES_DATAPATH_MODULE, ES_DATAPATH_NETFILTER, ES_DATAPATH_COUNT };

/* "bpf", "module", "netfilter" */
const char *es_datapath_name(enum es_datapath_kind kind);

/* es_datapath_takes_mptcp() - does it make connections for servers whose sockets are of MPTCP? */
int es_datapath_takes_mptcp(enum es_datapath_kind kind);

/**
 * struct es_datapath_params - what is fixed for the life of a datapath
 * @public_ifindex: where the switch's broadcast arrives; @cluster_ifindex: where handover messages arrive
 * @workers: 1..ES_WORKERS_MAX; @queue_bytes: ring buffer of each worker, a power of two of pages
 * @decision_sets: a power of two
 * @conntrack_zone: of services' packets, for netfilter; 0: none
 */
struct es_datapath_params {
	unsigned int public_ifindex;
	unsigned int cluster_ifindex;
	unsigned int workers;
	size_t queue_bytes;
	unsigned int decision_sets;
	unsigned int conntrack_zone;
};

/**
 * es_datapath_new() - load the datapath, or take over the tables of the one that is attached
 * Nothing is attached yet. @err gets one line that says what failed and what to do.
 * Returns 0 or -errno.
 */
int es_datapath_new(enum es_datapath_kind kind, const struct es_datapath_params *params, char *err,
		    size_t err_len, struct es_datapath **ret_datapath);

/**
 * es_datapath_probe() - would the kernel take the datapath?
 * bpf: loads all of it, small, and lets go of it again. module: asks earshot.ko, which the kernel may load
 * for that. netfilter: makes a connection in a scratch network namespace, and tries there what @conf needs
 * beyond that. Touches nothing that is attached. Returns 0, with @err as of es_datapath_note(); -EPERM for
 * who may not load programs, or a kernel that refuses one; or -errno, with @err as of es_datapath_new().
 */
int es_datapath_probe(enum es_datapath_kind kind, const struct es_conf *conf, char *err, size_t err_len);

/**
 * es_datapath_note() - what this kernel refuses, and how the datapath does without
 * One line, or "". Valid until es_datapath_free().
 */
const char *es_datapath_note(const struct es_datapath *datapath);

/* Is it attached where @params says? Returns 1, 0 or -errno. */
int es_datapath_is_attached(enum es_datapath_kind kind, const struct es_datapath_params *params);

/* es_datapath_free() - let go of the datapath; what is attached stays attached and serves content-blind. */
void es_datapath_free(struct es_datapath **datapath);

/**
 * es_datapath_configure() - put @config and @ring in force, both at once
 * Writes the version that is not in use and then switches, so no packet sees half of each.
 */
int es_datapath_configure(struct es_datapath *datapath, const struct es_config *config,
			  const struct es_node_ring *ring);

/**
 * es_datapath_check_alone() - no datapath of the other kind may be attached in this network namespace
 * Each would handle every packet: two answers to a SYN, two sockets for a request.
 * Returns 0; -EBUSY, with @err that says what to do; or -errno, with @err.
 */
int es_datapath_check_alone(enum es_datapath_kind kind, const struct es_datapath_params *params, char *err,
			    size_t err_len);

/**
 * es_datapath_attach() - attach, replacing older programs of ours without a gap
 * Of two of different kinds that start at the same moment, at least one is off again when it returns.
 * Returns 0, -EBUSY as of es_datapath_check_alone(), or -errno.
 */
int es_datapath_attach(struct es_datapath *datapath, char *err, size_t err_len);

/**
 * es_datapath_move() - to other interfaces, or to such as were made anew: what to attach to from now on
 * Takes effect with es_datapath_attach(). Programs that were attached elsewhere are taken off, if they are
 * there still.
 */
void es_datapath_move(struct es_datapath *datapath, unsigned int public_ifindex,
		      unsigned int cluster_ifindex);

/**
 * es_datapath_hears_anew() - what was said on the public network before this moment may not have been heard
 * So it proves nothing that this node has no note of it (kmod/core/overheard.h). es_datapath_attach() says so
 * where nothing was attached.
 */
void es_datapath_hears_anew(struct es_datapath *datapath);

/* es_datapath_detach() - take it off the interfaces. Connections that are open stop working. */
int es_datapath_detach(enum es_datapath_kind kind, const struct es_datapath_params *params);

/**
 * es_datapath_detach_all() - the same for what an ended daemon left, wherever in this network namespace
 * Whichever kind it is; it is found by the programs' names, and by asking the module, so no configuration is
 * needed. @fn: called with the interface of each program that was taken off. Returns 0 or the first -errno;
 * goes on after an error.
 */
typedef void (*es_datapath_detached_fn)(void *ctx, const char *interface, const char *program);
int es_datapath_detach_all(es_datapath_detached_fn fn, void *ctx);

/* Live state and decision table, shared with the kernel, valid until es_datapath_free(). */
struct es_state *es_datapath_state(struct es_datapath *datapath);
struct es_decision_set *es_datapath_decisions(struct es_datapath *datapath);

/* File descriptor of a worker's ring buffer (inspector/datapath/ring_reader.h), and its size;
 * owned by the datapath. */
int es_datapath_queue_fd(struct es_datapath *datapath, unsigned int worker);

/*
 * es_datapath_wake_fd() - what is readable, by read(), when a worker that slept is woken; owned by the
 * datapath -1: the datapath wakes it by es_wake_open()'s socket, or by the queue's own descriptor. Else that
 * cannot be polled.
 */
int es_datapath_wake_fd(struct es_datapath *datapath, unsigned int worker);

/*
 * es_datapath_mark() - the mark that packets must have which the daemon makes itself and sends to clients by
 * the stack; 0: none
 */
unsigned int es_datapath_mark(const struct es_datapath *datapath);

/*
 * es_datapath_resets() - where a worker is to note what it ends by a RST (kmod/core/resets.h): ES_RESETS of
 * them NULL: the datapath sees for itself what leaves by raw sockets.
 */
struct es_reset *es_datapath_resets(struct es_datapath *datapath);

/*
 * es_datapath_kepts() - where other nodes' idle connections are to be noted (kmod/core/kept.h): ES_KEPT_SLOTS
 * of them. NULL: the datapath knows nothing of them, and this node's own go on without a lease, so that no
 * other node may be told of them.
 */
struct es_kept_slot *es_datapath_kepts(struct es_datapath *datapath);

size_t es_datapath_queue_bytes(const struct es_datapath *datapath);

/* es_datapath_counters() - sums over all CPUs, ES_COUNTER_COUNT values. Returns 0 or -errno. */
int es_datapath_counters(struct es_datapath *datapath, unsigned long long *ret_values);

/**
 * es_datapath_flows() - call @fn for each connection of a service that inspects every request
 * Connections that come or go meanwhile may be missed, or shown twice. Returns 0 or -errno.
 */
typedef void (*es_datapath_flow_fn)(void *ctx, const void *entry /* struct es_track_entry */);
int es_datapath_flows(struct es_datapath *datapath, es_datapath_flow_fn fn, void *ctx);

/**
 * es_datapath_loads() - what this node's connections are busy with at this moment
 * One walk over the machine's sockets. @wants_idle: somebody asks for @ret_sums->idle, which costs more with
 * some datapaths. Returns 0 or -errno.
 */
int es_datapath_loads(struct es_datapath *datapath, int wants_idle, struct es_load_sums *ret_sums);

/*
 * es_datapath_accepted() - requests that were given to servers here, since the datapath was loaded
 * Of a connection whose requests are not told apart, only the first.
 */
int es_datapath_accepted(struct es_datapath *datapath, unsigned long long *ret_count);

/*
 * es_datapath_heard() - packets of clients that arrived for a service address, since the datapath was loaded
 * Whichever node's they are; all of them are sent to the cluster MAC. Not all are counted here: that there
 * are more than before is what this is for.
 */
int es_datapath_heard(struct es_datapath *datapath, unsigned long long *ret_count);

/**
 * es_datapath_responses() - call @fn for each response that was measured since the last time
 * Returns how many, or -errno.
 */
typedef void (*es_datapath_response_fn)(void *ctx, const struct es_response_entry *entry);
int es_datapath_responses(struct es_datapath *datapath, es_datapath_response_fn fn, void *ctx);

/* es_datapath_response_read() - one as the datapath wrote it, or one of another version, whose entries may be
 * shorter or longer: what it lacks is 0. Returns 0 or -EBADMSG. */
int es_datapath_response_read(const void *data, size_t size, struct es_response_entry *ret_entry);

/* es_datapath_tells_downloads() - is there anything for es_datapath_downloads() to tell? */
int es_datapath_tells_downloads(const struct es_datapath *datapath);

/**
 * es_datapath_downloads() - call @fn for each long response whose head was sent since the last time
 * Returns how many; 0 with a datapath that tells of none.
 */
typedef void (*es_datapath_download_fn)(void *ctx, const struct es_download_entry *entry);
int es_datapath_downloads(struct es_datapath *datapath, es_datapath_download_fn fn, void *ctx);

/* es_datapath_connections() - the same for each connection of any service */
typedef void (*es_datapath_connection_fn)(void *ctx, const void *entry /* struct es_connection_entry */);
int es_datapath_connections(struct es_datapath *datapath, es_datapath_connection_fn fn, void *ctx);

/**
 * es_datapath_end_unproven() - end the connections whose first request another node may have by now
 * Neither client nor network hears of it. Does nothing unless the lease is over. @ret_count: how many.
 */
int es_datapath_end_unproven(struct es_datapath *datapath, unsigned int *ret_count);

/**
 * es_datapath_connection() - what a connection's socket on this node knows
 * @ret_ahead: the socket's clock is so many ticks ahead of that which its client is shown
 * Of the network namespace of the calling thread. This is for one thread, which may be another than that of
 * the rest. Returns 0, -ENOTCONN if there is no established socket, or -errno.
 */
int es_datapath_connection(struct es_datapath *datapath, const struct es_flow *flow,
			   struct es_connection_state *ret_state, __u32 *ret_ahead);

/**
 * es_datapath_vanish() - a connection's socket is about to end without a word, since another one has its
 * connection
 * From now on no packet of its client comes to the stack of this node. By the same thread. Returns 0 or
 * -errno.
 */
int es_datapath_vanish(struct es_datapath *datapath, const struct es_flow *flow);

/**
 * es_datapath_settle() - wait until no packet is being decided by a version that was replaced before
 * A grace period of the kernel: milliseconds.
 */
int es_datapath_settle(void);

/* Was there a running datapath whose tables have another layout, so that new and empty ones replace them? */
int es_datapath_replaced(const struct es_datapath *datapath);

/* Was a running datapath taken over? */
int es_datapath_adopted(const struct es_datapath *datapath);

#endif
