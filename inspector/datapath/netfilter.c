// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The driver of the netfilter datapath, which is a thread of this very process (netfilter/engine/engine.h).
 * Its tables lie in a file below /run, and the kernel's rules stay, when the daemon goes: what they catch is
 * dropped until the next one comes. Connections that are here go on without either.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "inspector/base/clock.h"
#include "inspector/config/config.h"
#include "inspector/datapath/internal.h"
#include "inspector/machine/sock_diag.h"
#include "netfilter/engine/attachment.h"
#include "netfilter/engine/engine.h"
#include "netfilter/kernel/socket.h"
#include "netfilter/node/program_name.h"
#include "netfilter/node/queue.h"
#include "netfilter/rebuild/probe.h"
#include "netfilter/rules/drop_by_ring.h"
#include "netfilter/rules/rules.h"

#define ES_NETFILTER_DIRECTORY "/run/earshot"

/* So often it is looked for connections on which nothing goes on. */
#define ES_NETFILTER_IDLE_NS 250000000ULL

/**
 * struct es_netfilter
 * @responses: what the engine has measured
 * @diag: to ask about single sockets during walks
 * @idle: connections on which nothing goes on, as of struct es_load_sums, looked for at @idle_ns
 * @config: what is in force, for the walks of the control thread; @answered: of its ring, as of struct
 * es_node_ring
 */
struct es_netfilter {
	struct es_datapath base;
	struct es_nf_engine *engine;
	struct es_nf_ring *responses;
	struct es_nf_netlink diag;
	__u32 idle[ES_SERVICES_MAX];
	unsigned long long idle_ns;
	struct es_config config;
	__u64 answered[ES_RING_SLOTS / 64];
};

static struct es_netfilter *es_netfilter_of(struct es_datapath *dp)
{
	return (struct es_netfilter *)dp;
}

static void es_netfilter_why(int rc, const struct es_nf_why *why, char *err, size_t err_len)
{
	snprintf(err, err_len, "netfilter datapath: %s", *why->text ? why->text : strerror(-rc));
}

static int es_netfilter_probe(const struct es_conf *conf, char *err, size_t err_len)
{
	struct es_nf_why why = {};
	int rc = es_nf_probe(NULL, &why);

	for (unsigned int i = 0; !rc && i < conf->service_count; i++)
		if (conf->services[i].server_port) {
			rc = es_nf_probe_translation(&why);
			break;
		}
	if (!rc && conf->datapath.mac_mode == ES_CONF_MAC_UNICAST)
		rc = es_nf_probe_ingress(&why);
	if (rc)
		es_netfilter_why(rc, &why, err, err_len);
	return rc;
}

/* A file for each network namespace, since the directory is one for all. */
static int es_netfilter_path(char *path, size_t size)
{
	struct stat st;

	if (mkdir(ES_NETFILTER_DIRECTORY, 0755) && errno != EEXIST)
		return -errno;
	if (stat("/proc/thread-self/ns/net", &st))
		return -errno;
	snprintf(path, size, ES_NETFILTER_DIRECTORY "/netfilter-%lu.tables", (unsigned long)st.st_ino);
	return 0;
}

/* A table of the engine's, mapped once more, since es_datapath_free() lets go of it. */
static void *es_netfilter_map(int fd, size_t bytes, size_t off)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)off);

	return at == MAP_FAILED ? NULL : at;
}

static int es_netfilter_share(struct es_datapath *dp)
{
	struct es_netfilter *nf = es_netfilter_of(dp);
	const struct es_nf_memory *memory = es_nf_engine_memory(nf->engine);

	dp->mark = ES_NF_RULES_MARK;
	dp->adopted = memory->adopted;
	dp->replaced = memory->replaced;
	dp->state = es_netfilter_map(memory->fd, sizeof(*dp->state), memory->state_off);
	dp->decisions = es_netfilter_map(
		memory->fd, (size_t)dp->params.decision_sets * sizeof(*dp->decisions), memory->decisions_off);
	dp->resets = es_netfilter_map(memory->fd, ES_RESETS * sizeof(*dp->resets), memory->resets_off);
	if (!dp->state || !dp->decisions || !dp->resets)
		return -errno;
	/* Without the daemon nothing was heard. */
	dp->state->hears_ns = 0;
	for (unsigned int i = 0; i < dp->params.workers; i++) {
		dp->queue_fd[i] = fcntl(es_nf_engine_queue_fd(nf->engine, i), F_DUPFD_CLOEXEC, 0);
		dp->wake_fd[i] = es_nf_engine_wake_fd(nf->engine, i);
		if (dp->queue_fd[i] < 0)
			return -errno;
	}
	dp->responses_fd = es_nf_ring_fd(nf->responses);
	return 0;
}

static int es_netfilter_create(struct es_datapath *dp, char *err, size_t err_len)
{
	struct es_netfilter *nf = es_netfilter_of(dp);
	struct es_nf_engine_params params = {
		.workers = dp->params.workers,
		.queue_bytes = dp->params.queue_bytes,
		.decision_sets = dp->params.decision_sets,
		.zone = (__u16)dp->params.conntrack_zone,
	};
	struct es_nf_why why = {};
	char path[128];
	int rc = es_netfilter_path(path, sizeof(path));

	params.path = path;
	if (!rc)
		rc = es_nf_ring_new(ES_RESPONSES_BYTES, &nf->responses);
	params.responses = nf->responses;
	if (!rc)
		rc = es_nf_netlink_open(&nf->diag, NETLINK_SOCK_DIAG);
	if (!rc)
		rc = es_nf_engine_new(&params, &nf->engine, &why);
	if (!rc)
		rc = es_netfilter_share(dp);
	if (rc)
		es_netfilter_why(rc, &why, err, err_len);
	return rc;
}

static void es_netfilter_free(struct es_datapath *dp)
{
	struct es_netfilter *nf = es_netfilter_of(dp);

	es_nf_engine_free(&nf->engine);
	es_nf_netlink_close(&nf->diag);
	es_nf_ring_free(&nf->responses);
}

static int es_netfilter_is_attached(const struct es_datapath_params *params)
{
	(void)params; /* a namespace has one */
	return es_nf_attachment_is_whole();
}

static int es_netfilter_is_around(const struct es_datapath_params *params)
{
	(void)params;
	return es_nf_attachment_is_around();
}

static int es_netfilter_detach(const struct es_datapath_params *params)
{
	char path[128];
	int rc = es_nf_attachment_remove();

	(void)params; /* a namespace has one */
	if (rc < 0)
		return rc;
	/* Whoever has it open keeps it. */
	rc = es_netfilter_path(path, sizeof(path));
	if (!rc && unlink(path) && errno != ENOENT)
		rc = -errno;
	return rc;
}

static int es_netfilter_detach_all(es_datapath_detached_fn fn, void *ctx)
{
	int rc = es_nf_attachment_is_around();

	if (rc <= 0)
		return rc;
	rc = es_netfilter_detach(NULL);
	if (!rc)
		fn(ctx, "all", ES_NF_RULES_TABLE);
	return rc;
}

static int es_netfilter_configure(struct es_datapath *dp, const struct es_config *config,
				  const struct es_node_ring *ring)
{
	struct es_netfilter *nf = es_netfilter_of(dp);
	int gains = config->ring_seed && es_nf_drop_by_ring_gains(nf->answered, ring->answered), rc;

	nf->config = *config;
	memcpy(nf->answered, ring->answered, sizeof(nf->answered));
	/* Also before: of what is new, nothing was heard so far. */
	if (gains)
		es_datapath_hears_anew(dp);
	rc = es_nf_engine_configure(nf->engine, config, ring);
	if (gains)
		es_datapath_hears_anew(dp);
	return rc;
}

static int es_netfilter_attach(struct es_datapath *dp, char *err, size_t err_len)
{
	struct es_nf_why why = {};
	int rc = es_nf_engine_attach(es_netfilter_of(dp)->engine, dp->params.public_ifindex,
				     dp->params.cluster_ifindex, &why);

	if (rc)
		es_netfilter_why(rc, &why, err, err_len);
	else /* whatever was set: until now, nobody read the queue, or it had another interface's packets */
		es_datapath_hears_anew(dp);
	return rc;
}

static int es_netfilter_counters(struct es_datapath *dp, unsigned long long *ret_values)
{
	es_nf_engine_counters(es_netfilter_of(dp)->engine, ret_values);
	return 0;
}

/* The index of the service whose socket it is, or -1. */
static int es_netfilter_service(const struct es_config *config, const struct es_flow *flow)
{
	for (__u32 i = 0; i < config->service_count && !es_flow_is_own(flow); i++)
		if (config->service[i].port == flow->service_port &&
		    (es_addr_equal(&config->service[i].address, &flow->service) ||
		     es_addr_equal(&config->service[i].address6, &flow->service)))
			return (int)i;
	return -1;
}

/* The service whose load that socket is, also where a server has got it from a program, or -1. */
static int es_netfilter_load_of(const struct es_config *config, const struct es_flow *flow)
{
	int service = es_netfilter_service(config, flow);
	struct es_flow client;

	return service >= 0 || es_flow_is_own(flow) ? service : es_nf_program_flow(config, flow, &client);
}

/**
 * struct es_netfilter_walk - one pass over the sockets; what is used of the rest, depends on what for
 * @looks: at each connection on which nothing may go on
 */
struct es_netfilter_walk {
	struct es_netfilter *nf;
	int looks;
	struct es_load_sums *sums;
	es_datapath_flow_fn fn;
	void *ctx;
};

static void es_netfilter_on_flow(void *ctx, const struct es_sock_diag_id *id)
{
	const struct es_netfilter_walk *walk = ctx;
	struct es_track_entry entry = {.flow = id->flow, .tcp_state = id->state};

	if (es_netfilter_service(&walk->nf->config, &id->flow) >= 0 &&
	    !es_nf_engine_track(walk->nf->engine, &id->flow, &entry.track))
		walk->fn(walk->ctx, &entry);
}

static int es_netfilter_flows(struct es_datapath *dp, es_datapath_flow_fn fn, void *ctx)
{
	struct es_netfilter_walk walk = {.nf = es_netfilter_of(dp), .fn = fn, .ctx = ctx};

	return es_sock_diag_walk(es_netfilter_on_flow, &walk);
}

static int es_netfilter_end(const void *ctx)
{
	return es_sock_diag_end(ctx);
}

/*
 * Has its server written what has not left yet? A walk could tell only by locking each socket, whose server
 * may be in the middle of a write() that waits for a disk.
 */
static int es_netfilter_has_unsent(struct es_netfilter *nf, const struct es_sock_diag_id *id)
{
	struct es_nf_socket socket;

	return id->unacked && !es_nf_socket_look(&nf->diag, &id->flow, &socket) && socket.unsent;
}

/*
 * The time must be asked for as that above must, so only of those that have nothing open, and not in each
 * walk.
 */
static int es_netfilter_is_idle(const struct es_netfilter_walk *walk, const struct es_sock_diag_id *id,
				const struct es_track *t)
{
	struct es_nf_socket socket;

	/* As if all the rest were so: which connections it can be at all. */
	if (!walk->looks || !es_load_is_idle(t, id->unacked || id->unread, 1, ES_LOAD_SILENT_US) ||
	    es_nf_socket_look(&walk->nf->diag, &id->flow, &socket))
		return 0;
	return es_load_is_idle(t, socket.wqueue || socket.rqueue, socket.said_last,
			       socket.quiet_ms * 1000ULL);
}

static void es_netfilter_on_load(void *ctx, const struct es_sock_diag_id *id)
{
	const struct es_netfilter_walk *walk = ctx;
	int service = es_netfilter_load_of(&walk->nf->config, &id->flow);
	const struct es_track *t;
	struct es_track track;
	int is_known, has_unsent;
	__u32 cost;

	if (service < 0)
		return;
	is_known = walk->nf->config.service[service].inspect == ES_INSPECT_EVERY &&
		   !es_nf_engine_track(walk->nf->engine, &id->flow, &track);
	/* One that should have ended: the client hears nothing of it (es_nf_reply_is_held()). */
	if (is_known && track.state == ES_TRACK_ENDING &&
	    es_nf_engine_end_late(walk->nf->engine, &id->flow, es_netfilter_end, id))
		return;
	t = is_known ? &track : NULL;
	/* Only a connection that its server has closed in the middle of an answer need be asked. */
	has_unsent = es_load_cost(t, id->state, 0) != es_load_cost(t, id->state, 1) &&
		     es_netfilter_has_unsent(walk->nf, id);
	cost = es_load_cost(t, id->state, has_unsent);
	es_load_add(&walk->sums->service[service], cost);
	walk->sums->idle[service] += cost && es_netfilter_is_idle(walk, id, t);
}

static int es_netfilter_loads(struct es_datapath *dp, int wants_idle, struct es_load_sums *ret_sums)
{
	struct es_netfilter *nf = es_netfilter_of(dp);
	struct es_netfilter_walk walk = {.nf = nf, .sums = ret_sums};
	unsigned long long now_ns = es_clock_now_ns();
	int rc;

	walk.looks = wants_idle && now_ns - nf->idle_ns >= ES_NETFILTER_IDLE_NS;
	memset(ret_sums, 0, sizeof(*ret_sums));
	rc = es_sock_diag_walk(es_netfilter_on_load, &walk);
	if (!rc && walk.looks) {
		nf->idle_ns = now_ns;
		memcpy(nf->idle, ret_sums->idle, sizeof(nf->idle));
	} else if (wants_idle) {
		memcpy(ret_sums->idle, nf->idle, sizeof(nf->idle));
	}
	return rc;
}

struct es_netfilter_connections {
	es_datapath_connection_fn fn;
	void *ctx;
};

static void es_netfilter_on_connection(void *ctx, const struct es_connection_entry *entry)
{
	const struct es_netfilter_connections *connections = ctx;

	connections->fn(connections->ctx, entry);
}

/* Nobody needs to know of those that are proven. */
static int es_netfilter_connections(struct es_datapath *dp, es_datapath_connection_fn fn, void *ctx)
{
	struct es_netfilter_connections connections = {.fn = fn, .ctx = ctx};

	es_nf_engine_connections(es_netfilter_of(dp)->engine, es_netfilter_on_connection, &connections);
	return 0;
}

struct es_netfilter_ending {
	struct es_netfilter *nf;
	unsigned int count;
	int rc;
};

static void es_netfilter_on_stranger(void *ctx, const struct es_sock_diag_id *id)
{
	struct es_netfilter_ending *ending = ctx;
	int rc;

	if (es_netfilter_service(&ending->nf->config, &id->flow) < 0)
		return;
	rc = es_nf_engine_end_stranger(ending->nf->engine, &id->flow, es_netfilter_end, id);
	if (rc < 0)
		ending->rc = rc;
	else
		ending->count += (unsigned int)rc;
}

/* End what the engine has noted, and the sockets that it knows nothing of, or that would not go. */
static int es_netfilter_end_unproven(struct es_datapath *dp, unsigned int *ret_count)
{
	struct es_netfilter_ending ending = {.nf = es_netfilter_of(dp)};
	int rc;

	ending.count = es_nf_engine_end_unproven(ending.nf->engine);
	rc = es_sock_diag_walk(es_netfilter_on_stranger, &ending);
	*ret_count = ending.count;
	return rc ? rc : ending.rc;
}

static int es_netfilter_connection(struct es_datapath *dp, const struct es_flow *flow,
				   struct es_connection_state *ret_state, __u32 *ret_ahead)
{
	return es_nf_engine_connection(es_netfilter_of(dp)->engine, flow, ret_state, ret_ahead);
}

static int es_netfilter_vanish(struct es_datapath *dp, const struct es_flow *flow)
{
	return es_nf_engine_leave(es_netfilter_of(dp)->engine, flow);
}

const struct es_datapath_ops es_datapath_netfilter = {
	.name = "netfilter",
	.size = sizeof(struct es_netfilter),
	/*
	 * A listening socket of MPTCP shakes hands by itself here, and speaks TCP then, since the SYN has no
	 * MP_CAPABLE.
	 */
	.takes_mptcp = 1,
	.probe = es_netfilter_probe,
	.create = es_netfilter_create,
	.free = es_netfilter_free,
	.is_attached = es_netfilter_is_attached,
	.is_around = es_netfilter_is_around,
	.detach = es_netfilter_detach,
	.detach_all = es_netfilter_detach_all,
	.configure = es_netfilter_configure,
	.attach = es_netfilter_attach,
	.counters = es_netfilter_counters,
	.flows = es_netfilter_flows,
	.connections = es_netfilter_connections,
	.loads = es_netfilter_loads,
	.end_unproven = es_netfilter_end_unproven,
	.connection = es_netfilter_connection,
	.vanish = es_netfilter_vanish,
};
