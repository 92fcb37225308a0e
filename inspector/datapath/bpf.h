/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_BPF_H
#define ES_BPF_H

/*
 * Shared by the files of the BPF datapath's driver: bpf.c has its life, bpf_load.c which programs the kernel
 * takes, bpf_walk.c what is read off the node's connections.
 */
#include <bpf/libbpf.h>
#include "inspector/datapath/internal.h"
#include "earshot.skel.h"

/**
 * struct es_bpf_loaded - the programs, as far as the kernel takes them
 * @note: empty if it takes all; else one line that names those it refuses, why, and what is done instead
 */
struct es_bpf_loaded {
	struct earshot_bpf *skel;
	char note[512];
};

struct es_bpf {
	struct es_datapath base;
	struct es_bpf_loaded loaded;
	struct earshot_bpf *skel; /* that of @loaded */
};

static inline struct es_bpf *es_bpf_of(struct es_datapath *dp)
{
	return (struct es_bpf *)dp;
}

/**
 * es_bpf_load() - load the object, without the iterators that the kernel refuses
 * Iterators only look at connections, and bpf_walk.c does without them; any other program is needed to serve.
 * @prepare: is called for an object that is open, before it is loaded, perhaps twice; 0 or -errno
 * Returns 0 or -errno with one line in @err, which names the program that is refused.
 */
int es_bpf_load(struct es_bpf_loaded *loaded, int (*prepare)(void *ctx, struct earshot_bpf *skel), void *ctx,
		char *err, size_t err_len);
void es_bpf_unload(struct es_bpf_loaded *loaded);

/* Was it refused? */
static inline int es_bpf_is_refused(const struct bpf_program *prog)
{
	return !bpf_program__autoload(prog);
}

/* The driver's functions of the same names (internal.h). */
int es_bpf_flows(struct es_datapath *dp, es_datapath_flow_fn fn, void *ctx);
int es_bpf_connections(struct es_datapath *dp, es_datapath_connection_fn fn, void *ctx);
int es_bpf_loads(struct es_datapath *dp, int wants_idle, struct es_load_sums *ret_sums);
int es_bpf_end_unproven(struct es_datapath *dp, unsigned int *ret_count);

/* Can connections be ended here? 0, or -errno with one line in @err. */
int es_bpf_can_end(const struct es_bpf *bpf, char *err, size_t err_len);

#endif
