/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TCX_H
#define ES_TCX_H

/* Where the BPF datapath's programs hang; private to its driver. */
#include <bpf/libbpf.h>
#include "inspector/datapath/datapath.h"

/* linux/bpf.h of kernel 6.6; the build machine's may be older, the running kernel never is. */
#define ES_TCX_INGRESS ((enum bpf_attach_type)46)
#define ES_TCX_EGRESS  ((enum bpf_attach_type)47)

/**
 * es_tcx_find() - our program at @hook of an interface
 * Returns a file descriptor of the caller; -ENOENT if it is not there; -EPERM without CAP_SYS_ADMIN, where
 * something is attached that may be it; -EINVAL on a kernel without tcx; or -errno.
 */
int es_tcx_find(unsigned int ifindex, enum bpf_attach_type hook, const char *name);

/**
 * es_tcx_attach() - attach, in the place of an older program of the same name if there is one
 * No packet passes between the two. Returns 0 or -errno.
 */
int es_tcx_attach(unsigned int ifindex, enum bpf_attach_type hook, const struct bpf_program *prog);

/* es_tcx_detach() - take it off, if it is there. Returns 0 or -errno. */
int es_tcx_detach(unsigned int ifindex, enum bpf_attach_type hook, const char *name);

/* es_tcx_detach_all() - the BPF datapath's part of es_datapath_detach_all() */
int es_tcx_detach_all(es_datapath_detached_fn fn, void *ctx);

#endif
