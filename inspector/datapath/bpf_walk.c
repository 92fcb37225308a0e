// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The BPF datapath's account of this node's connections, each read off its socket. Iterators walk the sockets
 * in the kernel. Where it refuses them, sock_diag lists the sockets and the program es_look, which is run for
 * each, tells the same: some microseconds a connection instead of one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <linux/if_ether.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "inspector/base/clock.h"
#include "inspector/datapath/bpf.h"
#include "inspector/machine/sock_diag.h"
#include "kmod/core/lease.h"
#include "kmod/core/load.h"
#include "kmod/core/look.h"

/* Reads an iterator's entries of @size bytes, at most 256, one after the other. */
static int es_iterate(const struct bpf_program *prog, size_t size, void (*fn)(void *ctx, const void *entry),
		      void *ctx)
{
	struct bpf_link *link = bpf_program__attach_iter(prog, NULL);
	char entries[64 * 256];
	size_t left = 0;
	ssize_t got;
	int fd, rc;

	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	bpf_link__destroy(link);
	if (fd < 0)
		return -errno;
	/* A read may end inside an entry. EAGAIN is the kernel's pause, in a long walk. */
	while ((got = read(fd, entries + left, sizeof(entries) - left)) > 0 || (got < 0 && errno == EAGAIN)) {
		size_t have = left + (got > 0 ? (size_t)got : 0), count = have / size;

		for (size_t i = 0; i < count; i++)
			fn(ctx, entries + i * size);
		left = have % size;
		memmove(entries, entries + count * size, left);
	}
	rc = got < 0 ? -errno : 0;
	close(fd);
	return rc;
}

/* Run es_look: @look goes in and comes out. */
static int es_look(const struct es_bpf *bpf, struct es_look *look)
{
	unsigned char frame[ETH_HLEN + sizeof(*look)] = {[12] = 0x08}, out[sizeof(frame)];
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = frame, .data_size_in = sizeof(frame), .data_out = out,
		    .data_size_out = sizeof(out));
	int rc;

	memcpy(frame + ETH_HLEN, look, sizeof(*look));
	rc = bpf_prog_test_run_opts(bpf_program__fd(bpf->skel->progs.es_look), &run);
	if (rc || run.retval)
		return rc ? rc : -EPROTO;
	memcpy(look, out, sizeof(*look));
	return 0;
}

/**
 * struct es_walk - one pass over the sockets, without iterators
 * @see: is told of each connection of a service
 */
struct es_walk {
	const struct es_bpf *bpf;
	void (*see)(struct es_walk *walk, const struct es_sock_diag_id *id, struct es_look *look);
	void (*fn)(void *ctx, const void *entry);
	void *ctx;
	int rc;
};

static void es_walk_on_socket(void *ctx, const struct es_sock_diag_id *id)
{
	struct es_walk *walk = ctx;
	struct es_look look = {.flow = id->flow, .step = ES_LOOK_READ};
	int rc = es_look(walk->bpf, &look);

	if (rc)
		walk->rc = rc;
	else if (look.is_found)
		walk->see(walk, id, &look);
}

static int es_walk(struct es_walk *walk)
{
	int rc = es_sock_diag_walk(es_walk_on_socket, walk);

	return rc ? rc : walk->rc;
}

static void es_see_flow(struct es_walk *walk, const struct es_sock_diag_id *id, struct es_look *look)
{
	struct es_track_entry entry = {.flow = id->flow, .track = look->track};

	entry.tcp_state = look->connection.tcp_state;
	entry.is_unacknowledged = look->is_unacknowledged;
	entry.tsval = look->tsval;
	if (look->has_track)
		walk->fn(walk->ctx, &entry);
}

int es_bpf_flows(struct es_datapath *dp, es_datapath_flow_fn fn, void *ctx)
{
	const struct es_bpf *bpf = es_bpf_of(dp);
	struct es_walk walk = {.bpf = bpf, .see = es_see_flow, .fn = fn, .ctx = ctx};

	if (es_bpf_is_refused(bpf->skel->progs.es_list))
		return es_walk(&walk);
	return es_iterate(bpf->skel->progs.es_list, sizeof(struct es_track_entry), fn, ctx);
}

static void es_see_connection(struct es_walk *walk, const struct es_sock_diag_id *id, struct es_look *look)
{
	(void)id;
	walk->fn(walk->ctx, &look->connection);
}

int es_bpf_connections(struct es_datapath *dp, es_datapath_connection_fn fn, void *ctx)
{
	const struct es_bpf *bpf = es_bpf_of(dp);
	struct es_walk walk = {.bpf = bpf, .see = es_see_connection, .fn = fn, .ctx = ctx};

	if (es_bpf_is_refused(bpf->skel->progs.es_connections))
		return es_walk(&walk);
	return es_iterate(bpf->skel->progs.es_connections, sizeof(struct es_connection_entry), fn, ctx);
}

static void es_see_load(struct es_walk *walk, const struct es_sock_diag_id *id, struct es_look *look)
{
	struct es_load_sums *sums = walk->ctx;

	/* One that should have ended: the client hears nothing of it (es_reply_is_held()). */
	if (look->load.is_ending && !es_sock_diag_end(id)) {
		look->step = ES_LOOK_LATE;
		es_look(walk->bpf, look);
	}
	if (!look->load.is_ending) {
		es_load_add(&sums->service[look->load.service % ES_SERVICES_MAX], look->load.cost);
		sums->idle[look->load.service % ES_SERVICES_MAX] += look->load.is_idle;
	}
}

static int es_bpf_loads_walk(const struct es_bpf *bpf, struct es_load_sums *ret_sums)
{
	struct es_load_sums sums = {};
	struct es_walk walk = {.bpf = bpf, .see = es_see_load, .ctx = &sums};
	int rc = es_walk(&walk);

	if (!rc)
		*ret_sums = sums;
	return rc;
}

static void es_ignore(void *ctx, const void *entry)
{
	(void)ctx;
	(void)entry;
}

int es_bpf_loads(struct es_datapath *dp, int wants_idle, struct es_load_sums *ret_sums)
{
	static const struct es_load_sums nothing;
	const struct es_bpf *bpf = es_bpf_of(dp);
	int table = bpf_map__fd(bpf->skel->maps.es_load_table), rc;
	__u32 zero = 0;

	(void)wants_idle;
	if (es_bpf_is_refused(bpf->skel->progs.es_loads))
		return es_bpf_loads_walk(bpf, ret_sums);
	if (bpf_map_update_elem(table, &zero, &nothing, BPF_ANY))
		return -errno;
	/* It writes no entries: its end is the end of the walk. */
	rc = es_iterate(bpf->skel->progs.es_loads, 1, es_ignore, NULL);
	if (!rc && bpf_map_lookup_elem(table, &zero, ret_sums))
		rc = -errno;
	return rc;
}

static void es_unproven_count(void *ctx, const void *entry)
{
	(void)entry;
	++*(unsigned int *)ctx;
}

/*
 * While the lease is over, nothing of an unproven or ceded connection moves, in either direction, so between
 * look and end it cannot become proven.
 */
static void es_see_unproven(struct es_walk *walk, const struct es_sock_diag_id *id, struct es_look *look)
{
	int rc;

	if (!look->connection.unproven && !look->connection.is_ceded)
		return;
	rc = es_sock_diag_end(id);
	if (rc == -ENOENT)
		return;
	if (!rc) {
		/* Nobody has heard of it: its client's request may be served here like any other. */
		look->step = ES_LOOK_ENDED;
		rc = es_look(walk->bpf, look);
		++*(unsigned int *)walk->ctx;
	}
	if (rc)
		walk->rc = rc;
}

int es_bpf_end_unproven(struct es_datapath *dp, unsigned int *ret_count)
{
	const struct es_bpf *bpf = es_bpf_of(dp);
	struct es_walk walk = {.bpf = bpf, .see = es_see_unproven, .ctx = ret_count};

	if (!es_bpf_is_refused(bpf->skel->progs.es_unproven_end))
		return es_iterate(bpf->skel->progs.es_unproven_end, sizeof(struct es_connection_entry),
				  es_unproven_count, ret_count);
	return es_lease_is_over(dp->state->lease_ns, es_clock_now_ns()) ? es_walk(&walk) : 0;
}

static void es_see_nothing(void *ctx, const struct es_sock_diag_id *id)
{
	(void)ctx;
	(void)id;
}

int es_bpf_can_end(const struct es_bpf *bpf, char *err, size_t err_len)
{
	const struct es_addr nowhere = es_addr_from_v4(0); /* of the family that each kernel has */
	const struct es_sock_diag_id nobody = {.flow = {.client = nowhere, .service = nowhere},
					       .cookie = {~0U, ~0U}};
	int rc;

	if (!es_bpf_is_refused(bpf->skel->progs.es_unproven_end))
		return 0;
	rc = es_sock_diag_walk(es_see_nothing, NULL);
	if (!rc) {
		rc = es_sock_diag_end(&nobody);
		if (!rc || rc == -ENOENT) /* it would: there is no such socket */
			return 0;
	}
	snprintf(err, err_len,
		 "bpf datapath: a connection whose request another node may have cannot be ended: "
		 "this kernel refuses the BPF iterator es_unproven_end, "
		 "and SOCK_DESTROY of sock_diag (CONFIG_INET_DIAG_DESTROY): %s",
		 strerror(-rc));
	return rc;
}
