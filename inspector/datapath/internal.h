/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DATAPATH_INTERNAL_H
#define ES_DATAPATH_INTERNAL_H

/*
 * A driver: the functions of datapath.h that differ, and what all have in common. A driver's own structure
 * begins with struct es_datapath.
 */
#include "inspector/datapath/datapath.h"
#include "inspector/datapath/ring_reader.h"
#include "kmod/core/kept.h"
#include "kmod/core/resets.h"

/**
 * struct es_datapath_ops - a driver; each function as the one of the same name in datapath.h
 * @takes_mptcp: es_datapath_takes_mptcp()
 * @is_around: is any part of it attached in this network namespace? 1, 0 or -errno
 * @create: fills in all of struct es_datapath but @ops and @params, which are there already
 * @vanish: NULL if there is nothing to do
 * @leave: take off what is attached where @params says and @next does not; NULL if attach() does that
 * @free: of what the driver has made; the common part is let go of before, the memory after it
 */
struct es_datapath_ops {
	const char *name;
	size_t size; /* of its structure */
	int takes_mptcp;
	int (*probe)(const struct es_conf *conf, char *err, size_t err_len);
	int (*create)(struct es_datapath *dp, char *err, size_t err_len);
	void (*free)(struct es_datapath *dp);
	int (*is_attached)(const struct es_datapath_params *params);
	int (*is_around)(const struct es_datapath_params *params);
	int (*detach)(const struct es_datapath_params *params);
	int (*detach_all)(es_datapath_detached_fn fn, void *ctx);
	int (*configure)(struct es_datapath *dp, const struct es_config *config,
			 const struct es_node_ring *ring);
	int (*attach)(struct es_datapath *dp, char *err, size_t err_len);
	void (*leave)(const struct es_datapath_params *params, const struct es_datapath_params *next);
	int (*counters)(struct es_datapath *dp, unsigned long long *ret_values);
	int (*flows)(struct es_datapath *dp, es_datapath_flow_fn fn, void *ctx);
	int (*connections)(struct es_datapath *dp, es_datapath_connection_fn fn, void *ctx);
	int (*loads)(struct es_datapath *dp, int wants_idle, struct es_load_sums *ret_sums);
	int (*end_unproven)(struct es_datapath *dp, unsigned int *ret_count);
	int (*connection)(struct es_datapath *dp, const struct es_flow *flow,
			  struct es_connection_state *ret_state, __u32 *ret_ahead);
	int (*vanish)(struct es_datapath *dp, const struct es_flow *flow);
};

extern const struct es_datapath_ops es_datapath_bpf;
extern const struct es_datapath_ops es_datapath_module;
extern const struct es_datapath_ops es_datapath_netfilter;

/**
 * struct es_datapath - what every driver has
 * @note: as of es_datapath_note(), owned by the driver; NULL is ""
 * @queue_fd: of each worker's ring buffer, -1 if there is none; @wake_fd: es_datapath_wake_fd(), the driver's
 * own
 * @responses_fd: of the ring of response lengths; @downloads_fd: of the ring of long responses, -1: there is
 * none
 */
struct es_datapath {
	const struct es_datapath_ops *ops;
	struct es_datapath_params params;
	int adopted;
	int replaced;
	const char *note;
	struct es_state *state;
	struct es_decision_set *decisions;
	int queue_fd[ES_WORKERS_MAX];
	int wake_fd[ES_WORKERS_MAX];
	int responses_fd;
	int downloads_fd;
	unsigned int mark;	 /* es_datapath_mark() */
	struct es_reset *resets; /* ES_RESETS of them; NULL: the datapath sees RSTs leave */
	struct es_kept_slot *kepts;
	struct es_ring_reader *responses;
	es_datapath_response_fn response_fn;
	void *response_ctx;
	struct es_ring_reader *downloads;
	es_datapath_download_fn download_fn;
	void *download_ctx;
};

/* es_datapath_make() - es_datapath_new() with that driver */
int es_datapath_make(const struct es_datapath_ops *ops, const struct es_datapath_params *params, char *err,
		     size_t err_len, struct es_datapath **ret_datapath);

/* es_datapath_map() - map state and decision table, from the files that hold them. Returns 0 or -errno. */
int es_datapath_map(struct es_datapath *dp, int state_fd, int decisions_fd);

/* es_datapath_map_kepts() - the same for es_datapath_kepts() */
int es_datapath_map_kepts(struct es_datapath *dp, int fd);

#endif
