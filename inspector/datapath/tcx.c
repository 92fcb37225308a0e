// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Programs at tc ingress and egress by tcx, without a link, so that they stay when whoever attached them is
 * gone. Others may be attached beside ours, which are found by their names.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <net/if.h>
#include "inspector/datapath/tcx.h"

#define ES_TCX_PROGS_MAX 64

int es_tcx_find(unsigned int ifindex, enum bpf_attach_type hook, const char *name)
{
	__u32 ids[ES_TCX_PROGS_MAX] = {};
	LIBBPF_OPTS(bpf_prog_query_opts, query, .prog_ids = ids, .prog_cnt = ES_TCX_PROGS_MAX);
	int rc = bpf_prog_query_opts((int)ifindex, hook, &query), denied = 0;

	if (rc)
		return rc;
	for (__u32 i = 0; i < query.prog_cnt && i < ES_TCX_PROGS_MAX; i++) {
		struct bpf_prog_info info = {};
		__u32 len = sizeof(info);
		int fd = bpf_prog_get_fd_by_id(ids[i]);

		if (fd < 0) {
			denied |= errno == EPERM;
			continue;
		}
		if (!bpf_obj_get_info_by_fd(fd, &info, &len) && !strcmp(info.name, name))
			return fd;
		close(fd);
	}
	return denied ? -EPERM : -ENOENT;
}

static __u32 es_program_id(int fd)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &len) ? 0 : info.id;
}

int es_tcx_attach(unsigned int ifindex, enum bpf_attach_type hook, const struct bpf_program *prog)
{
	LIBBPF_OPTS(bpf_prog_attach_opts, opts);
	int old = es_tcx_find(ifindex, hook, bpf_program__name(prog));
	int rc;

	if (old == -EPERM) /* one of ours may be there, and two would each answer every packet */
		return old;
	/* The very same one stays: the kernel does not replace a program by itself. */
	if (old >= 0 && es_program_id(old) == es_program_id(bpf_program__fd(prog))) {
		close(old);
		return 0;
	}
	if (old >= 0) {
		opts.flags = BPF_F_REPLACE;
		opts.replace_prog_fd = old;
	}
	rc = bpf_prog_attach_opts(bpf_program__fd(prog), (int)ifindex, hook, &opts);
	if (old >= 0)
		close(old);
	return rc;
}

int es_tcx_detach(unsigned int ifindex, enum bpf_attach_type hook, const char *name)
{
	int fd = es_tcx_find(ifindex, hook, name);
	int rc;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	rc = bpf_prog_detach2(fd, (int)ifindex, hook);
	close(fd);
	return rc;
}

int es_tcx_detach_all(es_datapath_detached_fn fn, void *ctx)
{
	static const struct {
		enum bpf_attach_type hook;
		const char *program;
	} ours[] = {
		{ES_TCX_INGRESS, "es_cluster"}, /* which send packets on to it: first, on all */
		{ES_TCX_INGRESS, "es_public"},
		{ES_TCX_EGRESS, "es_reply"},
	};
	struct if_nameindex *interfaces = if_nameindex();
	int rc = 0;

	if (!interfaces)
		return -errno;
	for (size_t n = 0; n < sizeof(ours) / sizeof(ours[0]); n++) {
		for (const struct if_nameindex *i = interfaces; i->if_index; i++) {
			int fd = es_tcx_find(i->if_index, ours[n].hook, ours[n].program);
			int rc2 = fd;

			if (fd >= 0) {
				rc2 = bpf_prog_detach2(fd, (int)i->if_index, ours[n].hook);
				close(fd);
				if (!rc2)
					fn(ctx, i->if_name, ours[n].program);
			}
			/* EINVAL: a kernel without tcx, on which nothing of ours can be attached. */
			if (rc2 && rc2 != -ENOENT && rc2 != -EINVAL && !rc)
				rc = rc2;
		}
	}
	if_freenameindex(interfaces);
	return rc;
}
