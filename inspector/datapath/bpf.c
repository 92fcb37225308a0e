// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The BPF datapath's driver: loads the programs, attaches them to tc ingress (tcx, without a link, so that
 * they stay when the daemon goes), writes configuration and ring, maps live state and decision table. It
 * knows nothing of policies or packets.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/if_ether.h>
#include <time.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <net/if.h>
#include "inspector/datapath/bpf.h"
#include "inspector/datapath/tcx.h"
#include "inspector/packet/packet.h"
#include "kmod/core/settled.h"

/* The running program's configuration says whether its tables mean the same to us. */
static int es_adopt_compatible(int map_fd, const struct bpf_map_info *info)
{
	struct es_config *config;
	__u32 zero = 0;
	int ok;

	if (info->value_size != sizeof(*config))
		return 0;
	config = calloc(1, sizeof(*config));
	if (!config)
		return 0;
	ok = !bpf_map_lookup_elem(map_fd, &zero, config) && config->abi == ES_ABI_VERSION;
	if (!ok) {
		zero = 1;
		ok = !bpf_map_lookup_elem(map_fd, &zero, config) && config->abi == ES_ABI_VERSION;
	}
	free(config);
	return ok;
}

/* Use @map_fd for our map of the same name if kind and sizes are the same. Ring buffers are always new. */
static int es_adopt_map(struct earshot_bpf *skel, int map_fd, const struct bpf_map_info *info)
{
	struct bpf_map *map = bpf_object__find_map_by_name(skel->obj, info->name);

	if (!map || !strcmp(info->name, "es_queues"))
		return 0;
	if (info->type != bpf_map__type(map) || info->key_size != bpf_map__key_size(map) ||
	    info->value_size != bpf_map__value_size(map) || info->max_entries != bpf_map__max_entries(map))
		return 0;
	return bpf_map__reuse_fd(map, map_fd);
}

/* Take over the tables of an attached program. Anything unexpected means: start with fresh ones. */
static void es_adopt(struct es_bpf *bpf, struct earshot_bpf *skel, unsigned int ifindex, const char *name)
{
	struct bpf_prog_info prog = {};
	struct bpf_map_info info;
	__u32 ids[32], len = sizeof(prog);
	int fd, map_fd, compatible = 0;

	fd = es_tcx_find(ifindex, ES_TCX_INGRESS, name);
	if (fd < 0)
		return;
	prog.nr_map_ids = sizeof(ids) / sizeof(ids[0]);
	prog.map_ids = (__u64)(unsigned long)ids;
	if (bpf_obj_get_info_by_fd(fd, &prog, &len) || prog.nr_map_ids > sizeof(ids) / sizeof(ids[0]))
		prog.nr_map_ids = 0;
	close(fd);
	for (int pass = 0; pass < 2; pass++) {
		if (pass == 1 && !compatible)
			break;
		for (__u32 i = 0; i < prog.nr_map_ids; i++) {
			map_fd = bpf_map_get_fd_by_id(ids[i]);
			if (map_fd < 0)
				continue;
			memset(&info, 0, sizeof(info));
			len = sizeof(info);
			if (!bpf_obj_get_info_by_fd(map_fd, &info, &len)) {
				if (pass == 0 && !strcmp(info.name, "es_configs"))
					compatible = es_adopt_compatible(map_fd, &info);
				else if (pass == 1 && !es_adopt_map(skel, map_fd, &info))
					bpf->base.adopted = 1;
			}
			close(map_fd);
		}
	}
	if (!compatible)
		bpf->base.replaced = 1;
}

static int es_queues_create(struct es_bpf *bpf)
{
	int outer = bpf_map__fd(bpf->skel->maps.es_queues);

	for (__u32 i = 0; i < bpf->base.params.workers; i++) {
		int fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "es_queue", 0, 0,
					(__u32)bpf->base.params.queue_bytes, NULL);

		if (fd < 0)
			return -errno;
		bpf->base.queue_fd[i] = fd;
		if (bpf_map_update_elem(outer, &i, &fd, BPF_ANY))
			return -errno;
	}
	return 0;
}

/* Open the object, sized and with the tables of what is attached already, ready to be loaded. */
static int es_bpf_prepare(void *ctx, struct earshot_bpf *skel)
{
	struct es_bpf *bpf = ctx;
	const struct es_datapath_params *params = &bpf->base.params;
	int rc = bpf_map__set_max_entries(skel->maps.es_decisions, params->decision_sets);

	if (!rc)
		rc = bpf_map__set_max_entries(skel->maps.es_settleds, es_settled_sets(params->decision_sets));
	if (rc)
		return rc;
	bpf->base.adopted = bpf->base.replaced = 0;
	/* Neither program uses all of them. */
	es_adopt(bpf, skel, params->public_ifindex, "es_public");
	es_adopt(bpf, skel, params->cluster_ifindex, "es_cluster");
	return 0;
}

static int es_bpf_create(struct es_datapath *dp, char *err, size_t err_len)
{
	struct es_bpf *bpf = es_bpf_of(dp);
	const char *step;
	int rc = es_bpf_load(&bpf->loaded, es_bpf_prepare, bpf, err, err_len);

	if (rc)
		return rc;
	bpf->skel = bpf->loaded.skel;
	dp->note = bpf->loaded.note;
	rc = es_bpf_can_end(bpf, err, err_len);
	if (rc)
		return rc;
	step = "creating the workers' ring buffers";
	rc = es_queues_create(bpf);
	if (rc)
		goto err_step;
	step = "mapping the tables";
	rc = es_datapath_map(dp, bpf_map__fd(bpf->skel->maps.es_states),
			     bpf_map__fd(bpf->skel->maps.es_decisions));
	if (!rc)
		rc = es_datapath_map_kepts(dp, bpf_map__fd(bpf->skel->maps.es_kepts));
	if (rc)
		goto err_step;
	dp->responses_fd = bpf_map__fd(bpf->skel->maps.es_responses);
	dp->downloads_fd = bpf_map__fd(bpf->skel->maps.es_downloads);
	return 0;

err_step:
	snprintf(err, err_len, "bpf datapath: %s failed: %s", step, strerror(-rc));
	return rc;
}

static int es_bpf_probe(const struct es_conf *conf, char *err, size_t err_len)
{
	/* On no interface, so that there is nothing to take over. */
	const struct es_datapath_params params = {
		.workers = 1,
		.queue_bytes = (size_t)sysconf(_SC_PAGESIZE),
		.decision_sets = 256,
	};
	struct es_datapath *dp = NULL;
	int rc = es_datapath_make(&es_datapath_bpf, &params, err, err_len, &dp);

	(void)conf; /* the programs are the same for all */
	if (!rc)
		snprintf(err, err_len, "%s", es_datapath_note(dp));
	es_datapath_free(&dp);
	if (rc)
		return rc;
	rc = es_tcx_find(if_nametoindex("lo"), ES_TCX_INGRESS, "es_cluster");
	if (rc >= 0) {
		close(rc);
		rc = 0;
	}
	if (!rc || rc == -ENOENT)
		return 0;
	snprintf(err, err_len, "bpf datapath: no tcx hooks (CONFIG_NET_XGRESS): %s", strerror(-rc));
	return rc;
}

static int es_bpf_is_attached(const struct es_datapath_params *params)
{
	const struct {
		unsigned int ifindex;
		const char *program;
	} at[] = {
		{params->public_ifindex, "es_public"},
		{params->cluster_ifindex, "es_cluster"},
		{if_nametoindex("lo"), "es_cluster"},
	};

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		int fd = es_tcx_find(at[i].ifindex, ES_TCX_INGRESS, at[i].program);

		if (fd < 0)
			return fd == -ENOENT ? 0 : fd;
		close(fd);
	}
	return 1;
}

static int es_bpf_is_around(const struct es_datapath_params *params)
{
	const struct {
		unsigned int ifindex;
		const char *program;
	} at[] = {
		/* Wherever else it is attached, it is on lo. */
		{if_nametoindex("lo"), "es_cluster"},
		{params->public_ifindex, "es_public"},
		{params->cluster_ifindex, "es_cluster"},
	};

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		int fd = es_tcx_find(at[i].ifindex, ES_TCX_INGRESS, at[i].program);

		if (fd >= 0) {
			close(fd);
			return 1;
		}
		/* EINVAL: a kernel without tcx, on which nothing of it can be attached. */
		if (fd != -ENOENT && fd != -EINVAL)
			return fd;
	}
	return 0;
}

static void es_bpf_free(struct es_datapath *dp)
{
	es_bpf_unload(&es_bpf_of(dp)->loaded);
}

static int es_bpf_configure(struct es_datapath *dp, const struct es_config *config,
			    const struct es_node_ring *ring)
{
	const struct es_bpf *bpf = es_bpf_of(dp);
	__u32 next = !(dp->state->active & 1);

	if (bpf_map_update_elem(bpf_map__fd(bpf->skel->maps.es_rings), &next, ring, BPF_ANY))
		return -errno;
	if (bpf_map_update_elem(bpf_map__fd(bpf->skel->maps.es_configs), &next, config, BPF_ANY))
		return -errno;
	__atomic_store_n(&dp->state->active, next, __ATOMIC_RELEASE);
	return 0;
}

static int es_bpf_attach(struct es_datapath *dp, char *err, size_t err_len)
{
	const struct es_bpf *bpf = es_bpf_of(dp);
	const struct {
		unsigned int ifindex;
		enum bpf_attach_type hook;
		struct bpf_program *prog;
	} at[] = {
		/* The program that takes what an es_cluster sends on is there before it. */
		{bpf->base.params.public_ifindex, ES_TCX_EGRESS, bpf->skel->progs.es_reply},
		{bpf->base.params.public_ifindex, ES_TCX_INGRESS, bpf->skel->progs.es_public},
		{bpf->base.params.cluster_ifindex, ES_TCX_INGRESS, bpf->skel->progs.es_cluster},
		{if_nametoindex("lo"), ES_TCX_INGRESS, bpf->skel->progs.es_cluster},
	};
	char name[IF_NAMESIZE] = "?";
	int rc;

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		rc = es_tcx_attach(at[i].ifindex, at[i].hook, at[i].prog);
		if (rc) {
			if_indextoname(at[i].ifindex, name);
			snprintf(err, err_len, "bpf datapath: attaching to tc %s of %s failed: %s%s",
				 at[i].hook == ES_TCX_INGRESS ? "ingress" : "egress", name, strerror(-rc),
				 rc == -EPERM ? "; to see what is there already needs CAP_SYS_ADMIN" : "");
			return rc;
		}
	}
	return 0;
}

static int es_bpf_detach(const struct es_datapath_params *params)
{
	/* es_public last: it keeps from the stack what is on its way to it (kmod/bpf/opened.h). */
	int rc = es_tcx_detach(params->cluster_ifindex, ES_TCX_INGRESS, "es_cluster");
	int rc2 = es_tcx_detach(if_nametoindex("lo"), ES_TCX_INGRESS, "es_cluster");
	int rc3 = es_tcx_detach(params->public_ifindex, ES_TCX_INGRESS, "es_public");
	int rc4 = es_tcx_detach(params->public_ifindex, ES_TCX_EGRESS, "es_reply");

	return rc ? rc : rc2 ? rc2 : rc3 ? rc3 : rc4;
}

/* An interface that is gone has taken its programs along: what fails here, fails for that. */
static void es_bpf_leave(const struct es_datapath_params *params, const struct es_datapath_params *next)
{
	if (params->public_ifindex != next->public_ifindex) {
		es_tcx_detach(params->public_ifindex, ES_TCX_INGRESS, "es_public");
		es_tcx_detach(params->public_ifindex, ES_TCX_EGRESS, "es_reply");
	}
	if (params->cluster_ifindex != next->cluster_ifindex)
		es_tcx_detach(params->cluster_ifindex, ES_TCX_INGRESS, "es_cluster");
}

static int es_bpf_counters(struct es_datapath *dp, unsigned long long *ret_values)
{
	int cpus = libbpf_num_possible_cpus(), rc;
	__u32 next, keys[ES_COUNTER_COUNT], count = ES_COUNTER_COUNT;
	__u64 *values;

	if (cpus < 1)
		return -EIO;
	values = calloc((size_t)cpus * count, sizeof(*values));
	if (!values)
		return -ENOMEM;
	/* One call for all: this is done ten times a second. -ENOENT: these were the last ones. */
	rc = bpf_map_lookup_batch(bpf_map__fd(es_bpf_of(dp)->skel->maps.es_counters), NULL, &next, keys,
				  values, &count, NULL);
	if (rc == -ENOENT)
		rc = 0;
	memset(ret_values, 0, ES_COUNTER_COUNT * sizeof(*ret_values));
	for (__u32 i = 0; !rc && i < count; i++)
		for (int cpu = 0; cpu < cpus; cpu++)
			ret_values[keys[i]] += values[i * (__u32)cpus + (__u32)cpu];
	free(values);
	return rc;
}

/* The program that looks for the socket wants a packet of its client's. */
static int es_bpf_connection(struct es_datapath *dp, const struct es_flow *flow,
			     struct es_connection_state *ret_state, __u32 *ret_ahead)
{
	const struct es_segment seg = {.flags = ES_TCP_ACK};
	const __be16 protocol = es_htons(es_addr_is_v4(&flow->client) ? ETH_P_IP : ETH_P_IPV6);
	unsigned char frame[ETH_HLEN + ES_ANSWER_HEADER_MAX] = {}, out[sizeof(frame)];
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = frame, .data_out = out, .data_size_out = sizeof(out));
	int rc;

	(void)ret_ahead; /* it is what its client knows */
	memcpy(frame + offsetof(struct ethhdr, h_proto), &protocol, sizeof(protocol));
	run.data_size_in = (__u32)(ETH_HLEN + es_ip_packet_make(flow, &seg, NULL, frame + ETH_HLEN));
	rc = bpf_prog_test_run_opts(bpf_program__fd(es_bpf_of(dp)->skel->progs.es_connection), &run);
	if (rc || run.retval || run.data_size_out < sizeof(*ret_state))
		return rc ? rc : -EPROTO;
	memcpy(ret_state, out, sizeof(*ret_state));
	return ret_state->is_found ? 0 : -ENOTCONN;
}

const struct es_datapath_ops es_datapath_bpf = {
	.name = "bpf",
	.size = sizeof(struct es_bpf),
	.probe = es_bpf_probe,
	.create = es_bpf_create,
	.free = es_bpf_free,
	.is_attached = es_bpf_is_attached,
	.is_around = es_bpf_is_around,
	.detach = es_bpf_detach,
	.detach_all = es_tcx_detach_all,
	.configure = es_bpf_configure,
	.attach = es_bpf_attach,
	.leave = es_bpf_leave,
	.counters = es_bpf_counters,
	.flows = es_bpf_flows,
	.connections = es_bpf_connections,
	.loads = es_bpf_loads,
	.end_unproven = es_bpf_end_unproven,
	.connection = es_bpf_connection,
};
