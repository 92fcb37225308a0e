// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The driver of earshot.ko: what is done once goes over generic netlink, tables and queues are mapped from
 * /dev/earshot. The module keeps a node of its own for each network namespace, and it stays when the daemon
 * goes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <net/if.h>
#include "inspector/datapath/internal.h"
#include "inspector/datapath/module_control.h"
#include "inspector/packet/packet.h"

/* struct es_module - @programs: for the thread that hands programs' connections over */
struct es_module {
	struct es_datapath base;
	struct es_module_control *control;
	struct es_module_control *programs;
};

static struct es_module *es_module_of(struct es_datapath *dp)
{
	return (struct es_module *)dp;
}

/*
 * struct es_module_value - an attribute of a fixed size that an answer must have; @least: of a module of the
 * version before
 */
struct es_module_value {
	int type;
	void *data;
	size_t size;
	size_t least;
	int found;
};

static void on_value(void *ctx, int type, const void *data, size_t size)
{
	struct es_module_value *v = ctx;

	if (type == v->type && (size == v->size || (v->least && size >= v->least && size < v->size))) {
		memcpy(v->data, data, size);
		v->found = 1;
	}
}

/* A command that answers with one attribute of @size bytes. */
static int es_module_ask(struct es_module_control *control, enum es_command command,
			 const struct es_module_attribute *attributes, int type, void *ret_data, size_t size)
{
	struct es_module_value v = {.type = type, .data = ret_data, .size = size};
	int rc = es_module_command(control, command, attributes, 0, on_value, &v);

	return rc ? rc : v.found ? 0 : -EPROTO;
}

static int es_module_open(struct es_module_control **ret_control, char *err, size_t err_len)
{
	__u32 abi = 0;
	int rc = es_module_control_new(ret_control);

	if (!rc) {
		rc = es_module_ask(*ret_control, ES_CMD_GET, NULL, ES_ATTR_ABI, &abi, sizeof(abi));
		if (!rc && abi != ES_ABI_VERSION)
			rc = -EPROTO;
		if (rc)
			es_module_control_free(ret_control);
	}
	if (rc == -ENOENT)
		snprintf(err, err_len,
			 "module datapath: the kernel has no module earshot; install earshot-dkms, or build "
			 "kmod/module and load it");
	else if (rc == -EPROTO)
		snprintf(err, err_len,
			 "module datapath: the module that is loaded is of another version than earshotd; "
			 "rmmod earshot && modprobe earshot");
	else if (rc)
		snprintf(err, err_len, "module datapath: asking the module failed: %s", strerror(-rc));
	return rc;
}

static int es_module_probe(const struct es_conf *conf, char *err, size_t err_len)
{
	struct es_module_control *control;
	int rc = es_module_open(&control, err, err_len);

	(void)conf; /* the module is the same for all */
	if (rc)
		return rc;
	es_module_control_free(&control);
	if (!access(ES_CONTROL_DEVICE, R_OK | W_OK))
		return 0;
	rc = -errno;
	snprintf(err, err_len, "module datapath: %s: %s", ES_CONTROL_DEVICE, strerror(-rc));
	return rc == -EACCES ? -EPERM : rc;
}

/* A file of the device that is one of the module's tables. Returns it or -errno. */
static int es_module_table(int table)
{
	int fd = open(ES_CONTROL_DEVICE, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	int rc;

	if (fd < 0)
		return -errno;
	if (!ioctl(fd, ES_IOC_TABLE, table))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* The ring of long responses; there is none in a module of a version before. */
static int es_module_open_downloads(struct es_datapath *dp)
{
	int fd = es_module_table(ES_TABLE_DOWNLOADS);

	if (fd < 0)
		return fd == -EINVAL ? 0 : fd;
	dp->downloads_fd = fd;
	return 0;
}

/* Other nodes' idle connections. A module of a version before has no such table, and none is mapped. */
static int es_module_map_kepts(struct es_datapath *dp)
{
	int fd = es_module_table(ES_TABLE_KEPTS), rc;

	if (fd < 0)
		return fd == -EINVAL ? 0 : fd;
	rc = es_datapath_map_kepts(dp, fd);
	close(fd);
	return rc;
}

static int es_module_map(struct es_datapath *dp)
{
	int state_fd = es_module_table(ES_TABLE_STATE), decisions_fd = es_module_table(ES_TABLE_DECISIONS);
	int rc = state_fd < 0 ? state_fd : decisions_fd < 0 ? decisions_fd : 0;

	if (!rc)
		rc = es_datapath_map(dp, state_fd, decisions_fd);
	/* A mapping holds the file, and that the module. */
	if (state_fd >= 0)
		close(state_fd);
	if (decisions_fd >= 0)
		close(decisions_fd);
	for (unsigned int i = 0; !rc && i < dp->params.workers; i++) {
		dp->queue_fd[i] = es_module_table(ES_TABLE_QUEUE0 + (int)i);
		rc = dp->queue_fd[i] < 0 ? dp->queue_fd[i] : 0;
	}
	if (rc)
		return rc;
	dp->responses_fd = es_module_table(ES_TABLE_RESPONSES);
	if (dp->responses_fd < 0)
		return dp->responses_fd;
	rc = es_module_map_kepts(dp);
	return rc ? rc : es_module_open_downloads(dp);
}

static struct es_module_params es_module_params_of(const struct es_datapath *dp)
{
	return (struct es_module_params){
		.abi = ES_ABI_VERSION,
		.public_ifindex = dp->params.public_ifindex,
		.cluster_ifindex = dp->params.cluster_ifindex,
		.workers = dp->params.workers,
		.queue_bytes = (__u32)dp->params.queue_bytes,
		.decision_sets = dp->params.decision_sets,
	};
}

static int es_module_create(struct es_datapath *dp, char *err, size_t err_len)
{
	struct es_module *m = es_module_of(dp);
	const struct es_module_params params = es_module_params_of(dp);
	const struct es_module_attribute attributes[] = {{ES_ATTR_PARAMS, &params, sizeof(params)}, {0}};
	const char *step = "making the tables";
	__u32 adopted = 0;
	int rc = es_module_open(&m->control, err, err_len);

	if (rc)
		return rc;
	rc = es_module_control_new(&m->programs);
	if (!rc)
		rc = es_module_ask(m->control, ES_CMD_NEW, attributes, ES_ATTR_ADOPTED, &adopted,
				   sizeof(adopted));
	if (!rc) {
		dp->adopted = (int)adopted;
		step = "mapping the tables of " ES_CONTROL_DEVICE;
		rc = es_module_map(dp);
	}
	if (rc)
		snprintf(err, err_len, "module datapath: %s failed: %s", step, strerror(-rc));
	return rc;
}

static void es_module_free(struct es_datapath *dp)
{
	if (dp->responses_fd >= 0)
		close(dp->responses_fd);
	if (dp->downloads_fd >= 0)
		close(dp->downloads_fd);
	es_module_control_free(&es_module_of(dp)->programs);
	es_module_control_free(&es_module_of(dp)->control);
}

/* The status of this network namespace's node; all zero when the module is not loaded. Loads nothing. */
static int es_module_status(struct es_module_status *ret_status)
{
	struct es_module_control *control;
	int rc;

	memset(ret_status, 0, sizeof(*ret_status));
	if (access("/sys/module/earshot", F_OK))
		return 0;
	rc = es_module_control_new(&control);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	rc = es_module_ask(control, ES_CMD_GET, NULL, ES_ATTR_STATUS, ret_status, sizeof(*ret_status));
	es_module_control_free(&control);
	return rc;
}

static int es_module_is_attached(const struct es_datapath_params *params)
{
	struct es_module_status status;
	int rc = es_module_status(&status);

	if (rc)
		return rc;
	return status.exists && status.public_ifindex == params->public_ifindex &&
	       status.cluster_ifindex == params->cluster_ifindex;
}

static int es_module_is_around(const struct es_datapath_params *params)
{
	struct es_module_status status;
	int rc = es_module_status(&status);

	(void)params; /* a namespace has one */
	return rc ? rc : status.public_ifindex || status.cluster_ifindex;
}

static int es_module_detach(const struct es_datapath_params *params)
{
	struct es_module_control *control;
	int rc = es_module_control_new(&control);

	(void)params; /* a namespace has one */
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	rc = es_module_command(control, ES_CMD_REMOVE, NULL, 0, NULL, NULL);
	es_module_control_free(&control);
	return rc == -ENOENT ? 0 : rc;
}

static int es_module_detach_all(es_datapath_detached_fn fn, void *ctx)
{
	char name[IF_NAMESIZE];
	struct es_module_status status;
	int rc = es_module_status(&status);

	if (rc || !status.exists)
		return rc;
	rc = es_module_detach(NULL);
	if (rc)
		return rc;
	if (if_indextoname(status.public_ifindex, name))
		fn(ctx, name, "earshot.ko");
	if (if_indextoname(status.cluster_ifindex, name))
		fn(ctx, name, "earshot.ko");
	return 0;
}

static int es_module_configure(struct es_datapath *dp, const struct es_config *config,
			       const struct es_node_ring *ring)
{
	const size_t part = sizeof(*ring) / ES_CONTROL_RING_PARTS;
	const char *bytes = (const char *)ring;
	const struct es_module_attribute attributes[] = {
		{ES_ATTR_CONFIG, config, sizeof(*config)}, {ES_ATTR_RING0, bytes, part},
		{ES_ATTR_RING1, bytes + part, part},	   {ES_ATTR_RING2, bytes + 2 * part, part},
		{ES_ATTR_RING3, bytes + 3 * part, part},   {0},
	};

	return es_module_command(es_module_of(dp)->control, ES_CMD_CONFIGURE, attributes, 0, NULL, NULL);
}

static int es_module_attach(struct es_datapath *dp, char *err, size_t err_len)
{
	/* They may be other ones than when the node was made. */
	const struct es_module_params params = es_module_params_of(dp);
	const struct es_module_attribute attributes[] = {{ES_ATTR_PARAMS, &params, sizeof(params)}, {0}};
	int rc = es_module_command(es_module_of(dp)->control, ES_CMD_ATTACH, attributes, 0, NULL, NULL);

	if (rc)
		snprintf(err, err_len, "module datapath: attaching to the interfaces failed: %s",
			 rc == -EINVAL ? "one is no Ethernet" : strerror(-rc));
	return rc;
}

static int es_module_counters(struct es_datapath *dp, unsigned long long *ret_values)
{
	__u64 values[ES_COUNTER_COUNT];
	int rc = es_module_ask(es_module_of(dp)->control, ES_CMD_COUNTERS, NULL, ES_ATTR_COUNTERS, values,
			       sizeof(values));

	for (int i = 0; !rc && i < ES_COUNTER_COUNT; i++)
		ret_values[i] = values[i];
	return rc;
}

/* Splits a list into its entries. */
struct es_module_list {
	size_t size;
	void (*fn)(void *ctx, const void *entry);
	void *ctx;
};

static void on_entries(void *ctx, int type, const void *data, size_t size)
{
	const struct es_module_list *list = ctx;
	union {
		struct es_track_entry flow;
		struct es_connection_entry connection;
	} entry;

	/* An attribute's data is aligned for 32 bits only. */
	for (size_t at = 0; type == ES_ATTR_ENTRIES && at + list->size <= size; at += list->size) {
		memcpy(&entry, (const char *)data + at, list->size);
		list->fn(list->ctx, &entry);
	}
}

static int es_module_flows(struct es_datapath *dp, es_datapath_flow_fn fn, void *ctx)
{
	struct es_module_list list = {.size = sizeof(struct es_track_entry), .fn = fn, .ctx = ctx};

	return es_module_command(es_module_of(dp)->control, ES_CMD_FLOWS, NULL, 1, on_entries, &list);
}

static int es_module_connections(struct es_datapath *dp, es_datapath_connection_fn fn, void *ctx)
{
	struct es_module_list list = {.size = sizeof(struct es_connection_entry), .fn = fn, .ctx = ctx};

	return es_module_command(es_module_of(dp)->control, ES_CMD_CONNECTIONS, NULL, 1, on_entries, &list);
}

static int es_module_loads(struct es_datapath *dp, int wants_idle, struct es_load_sums *ret_sums)
{
	struct es_module_value v = {.type = ES_ATTR_LOADS,
				    .data = ret_sums,
				    .size = sizeof(*ret_sums),
				    .least = offsetof(struct es_load_sums, idle)};
	int rc;

	(void)wants_idle;
	memset(ret_sums, 0, sizeof(*ret_sums));
	rc = es_module_command(es_module_of(dp)->control, ES_CMD_LOADS, NULL, 0, on_value, &v);
	return rc ? rc : v.found ? 0 : -EPROTO;
}

static int es_module_end_unproven(struct es_datapath *dp, unsigned int *ret_count)
{
	return es_module_ask(es_module_of(dp)->control, ES_CMD_END_UNPROVEN, NULL, ES_ATTR_COUNT, ret_count,
			     sizeof(*ret_count));
}

static int es_module_connection(struct es_datapath *dp, const struct es_flow *flow,
				struct es_connection_state *ret_state, __u32 *ret_ahead)
{
	const struct es_module_attribute attributes[] = {{ES_ATTR_FLOW, flow, sizeof(*flow)}, {0}};

	(void)ret_ahead; /* it is what its client knows */
	return es_module_ask(es_module_of(dp)->programs, ES_CMD_CONNECTION, attributes, ES_ATTR_SOCKET,
			     ret_state, sizeof(*ret_state));
}

const struct es_datapath_ops es_datapath_module = {
	.name = "module",
	.size = sizeof(struct es_module),
	.probe = es_module_probe,
	.create = es_module_create,
	.free = es_module_free,
	.is_attached = es_module_is_attached,
	.is_around = es_module_is_around,
	.detach = es_module_detach,
	.detach_all = es_module_detach_all,
	.configure = es_module_configure,
	.attach = es_module_attach,
	.counters = es_module_counters,
	.flows = es_module_flows,
	.connections = es_module_connections,
	.loads = es_module_loads,
	.end_unproven = es_module_end_unproven,
	.connection = es_module_connection,
};
