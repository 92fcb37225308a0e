// SPDX-License-Identifier: GPL-2.0-or-later
/* Opens and closes the state of a node's hands, and serves the engine's thread from it. */
#include <errno.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "netfilter/engine/hand_state.h"
#include "netfilter/kernel/clock.h"
#include "netfilter/rules/rules.h"

#define ES_KEPT_MAX 262144 /* connections; beyond that, lost entries are not made again */

/* struct es_nf_held - some connections with ES_NF_LABEL_HELD */
struct es_nf_held {
	size_t count;
	struct es_flow flow[ES_NF_BATCH];
};

static void es_nf_hand_state_on_entry(void *ctx, const struct es_nf_entry *entry)
{
	struct es_nf_held *held = ctx;

	if (entry->is_held && !es_nf_entry_is_withdrawn(entry) && held->count < ES_NF_BATCH)
		held->flow[held->count++] = entry->flow;
}

/*
 * The previous daemon died while these connections were about to leave. Nobody knows where to any more, so
 * they stay.
 */
static void es_nf_hand_state_release(struct es_nf_hand_state *kernel)
{
	struct es_nf_held held;
	int rc = 0;

	do {
		held.count = 0;
		(void)es_nf_conntrack_walk(&kernel->rebuild.ct, es_nf_hand_state_on_entry, &held);
		for (size_t i = 0; !rc && i < held.count; i++)
			rc = es_nf_conntrack_hold(&kernel->rebuild.ct, &held.flow[i], 0);
	} while (held.count && !rc);
}

static struct es_nf_hook_device device_of(const struct es_nf_hand_state *kernel)
{
	return (struct es_nf_hook_device){kernel->tun.name, kernel->tun.is_marked, kernel->zone};
}

/* The tun device, and the hook that finishes handshakes. */
static int es_nf_hand_state_open(struct es_nf_hand_state *kernel, struct es_nf_why *why)
{
	struct es_nf_rebuild_settings settings = {.copies = ES_NF_COPIES_DEFAULT, .zone = kernel->zone};
	struct es_nf_hook_device device;
	struct es_nf_netlink nl;
	int rc;

	rc = es_nf_tun_open(&kernel->tun, ES_NF_TUN_NAME, why);
	if (rc)
		return rc;
	rc = es_nf_netlink_open(&nl, NETLINK_NETFILTER);
	if (rc)
		return es_nf_why(why, rc, "nf_tables: %s", strerror(-rc));
	device = device_of(kernel);
	rc = es_nf_hook_set(&nl, &device, &kernel->hook, why);
	es_nf_netlink_close(&nl);
	if (rc)
		return rc;
	settings.has_label = kernel->hook.has_label;
	rc = es_nf_rebuild_open(&kernel->rebuild, &kernel->tun, &settings, why);
	if (rc)
		return rc;
	rc = es_nf_attempts_new(&kernel->rebuild, es_nf_hand_on_attempt, es_nf_hand_on_kept, kernel,
				&kernel->attempts);
	if (rc)
		return es_nf_why(why, rc, "no memory for attempts to make connections");
	es_nf_hand_state_release(kernel);
	rc = es_nf_recovery_open(&kernel->recovery, ES_KEPT_MAX, &kernel->rebuild.ct, &kernel->rebuild.diag);
	if (!rc)
		rc = es_nf_reach_open(&kernel->reach);
	return rc ? es_nf_why(why, rc, "ctnetlink: %s", strerror(-rc)) : 0;
}

int es_nf_hand_state_new(__u16 zone, struct es_nf_hand_state **ret_kernel, struct es_nf_why *why)
{
	struct es_nf_hand_state *kernel = calloc(1, sizeof(*kernel));
	int rc;

	if (!kernel)
		return es_nf_why(why, -ENOMEM, "no memory");
	kernel->zone = zone;
	kernel->frames.fd = kernel->tun.fd = -1;
	kernel->datagrams = kernel->marked = (struct es_nf_raw){-1, -1};
	rc = es_nf_raw_open(&kernel->datagrams, 0);
	if (!rc)
		rc = es_nf_raw_distrust_errors(&kernel->datagrams);
	if (!rc)
		rc = es_nf_raw_open(&kernel->marked, ES_NF_RULES_MARK);
	rc = rc ? es_nf_why(why, rc, "raw socket: %s", strerror(-rc)) : es_nf_hand_state_open(kernel, why);
	if (rc) {
		es_nf_hand_state_free(&kernel);
		return rc;
	}
	*ret_kernel = kernel;
	return 0;
}

void es_nf_hand_state_free(struct es_nf_hand_state **kernel)
{
	struct es_nf_hand_state *k = *kernel;

	if (!k)
		return;
	es_nf_reach_close(&k->reach);
	es_nf_recovery_close(&k->recovery);
	es_nf_attempts_free(&k->attempts);
	es_nf_rebuild_close(&k->rebuild);
	es_nf_tun_close(&k->tun);
	es_nf_raw_close(&k->datagrams);
	es_nf_raw_close(&k->marked);
	if (k->frames.fd >= 0)
		close(k->frames.fd);
	free(k);
	*kernel = NULL;
}

int es_nf_hand_state_listen(struct es_nf_hand_state *kernel, unsigned int public_ifindex,
			    struct es_nf_why *why)
{
	int rc = es_nf_frames_listen(&kernel->frames, public_ifindex);

	return rc ? es_nf_why(why, rc, "packet socket: %s", strerror(-rc)) : 0;
}

int es_nf_hand_state_has_label(const struct es_nf_hand_state *kernel)
{
	return kernel->hook.has_label;
}

int es_nf_hand_state_arp_fd(const struct es_nf_hand_state *kernel)
{
	return kernel->frames.fd;
}

int es_nf_hand_state_arp(struct es_nf_hand_state *kernel, void *ret_arp, size_t room)
{
	struct sockaddr_ll from;
	socklen_t len;
	ssize_t got;

	do {
		len = sizeof(from);
		got = recvfrom(kernel->frames.fd, ret_arp, room, MSG_DONTWAIT, (struct sockaddr *)&from,
			       &len);
	} while (got >= 0 && from.sll_pkttype == PACKET_OUTGOING);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	return (int)got;
}

int es_nf_hand_state_has_frames(const struct es_nf_hand_state *kernel)
{
	return kernel->frames.count != 0;
}

unsigned int es_nf_hand_state_send(struct es_nf_hand_state *kernel, int may_leave)
{
	return es_nf_frames_send(&kernel->frames, may_leave);
}

int es_nf_hand_state_mend(struct es_nf_hand_state *kernel, struct es_nf_netlink *nl)
{
	const struct es_nf_hook_device device = device_of(kernel);
	struct es_nf_hook hook;
	int rc = es_nf_hook_is_set(nl, &kernel->hook);

	if (rc)
		return rc < 0 ? rc : 0;
	rc = es_nf_hook_set(nl, &device, &hook, NULL);
	/* Other threads read the other fields, which have not changed: it is the same kernel. */
	if (!rc)
		memcpy(kernel->hook.whole, hook.whole, sizeof(hook.whole));
	return rc;
}

int es_nf_hand_state_can_gate(const struct es_nf_hand_state *kernel)
{
	return kernel->hook.has_label;
}

int es_nf_hand_state_losses_fd(const struct es_nf_hand_state *kernel)
{
	return es_nf_losses_fd(&kernel->recovery.losses);
}

void es_nf_hand_state_recover(struct es_nf_hand_state *kernel)
{
	(void)es_nf_recovery_turn(&kernel->recovery);
}

int es_nf_hand_state_is_recovering(const struct es_nf_hand_state *kernel)
{
	return es_nf_recovery_is_due(&kernel->recovery);
}

void es_nf_hand_state_hurry(struct es_nf_hand_state *kernel, const struct es_nf_frame *frame)
{
	struct es_packet pkt;
	struct es_segment seg;
	struct es_flow flow;

	if (!es_nf_recovery_is_due(&kernel->recovery) ||
	    es_nf_packet_tcp(frame->bytes, frame->len, &pkt, &seg))
		return;
	es_packet_flow(&pkt, &flow);
	(void)es_nf_recovery_hurry(&kernel->recovery, &flow);
}

void es_nf_hand_state_go_on(struct es_nf_hand_state *kernel, __u64 now_ns, es_nf_hand_state_kept_fn kept_fn,
			    void *ctx)
{
	kernel->kept_fn = kept_fn;
	kernel->kept_ctx = ctx;
	es_nf_attempts_go_on(kernel->attempts, now_ns);
}

void es_nf_hand_state_give_up(struct es_nf_hand_state *kernel)
{
	es_nf_attempts_give_up(kernel->attempts, NULL);
}

int es_nf_hand_state_wait_ms(const struct es_nf_hand_state *kernel)
{
	return es_nf_attempts_wait_ms(kernel->attempts, es_nf_now_ns());
}
