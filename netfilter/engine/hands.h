/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_ENGINE_HANDS_H
#define ES_NETFILTER_ENGINE_HANDS_H

/*
 * The hands of a node (struct es_nf_hands) that touch the kernel: frames by a packet socket, datagrams by a
 * raw one, connections by rebuild.h, sockets by sock_diag.
 */
#include "netfilter/kernel/why.h"
#include "netfilter/node/node.h"
#include "netfilter/rebuild/connection.h"
#include "netfilter/rebuild/rebuild.h"
#include "netfilter/rules/hook.h"

struct es_nf_hand_state;

/*
 * es_nf_hand_state_new() - opens all but the frames' socket; @zone: as in struct es_nf_hook_device. Returns 0
 * or -errno, with @why.
 */
int es_nf_hand_state_new(__u16 zone, struct es_nf_hand_state **ret_kernel, struct es_nf_why *why);
void es_nf_hand_state_free(struct es_nf_hand_state **kernel);

/* es_nf_hand_state_has_v6() - can it make connections of IPv6? */
int es_nf_hand_state_has_v6(const struct es_nf_hand_state *kernel);

/* es_nf_hand_state_hands() - the hands for a node that uses @kernel */
struct es_nf_hands es_nf_hand_state_hands(struct es_nf_hand_state *kernel);

/**
 * es_nf_hand_state_listen() - from now on, send frames and receive ARP by this interface
 * Returns 0 or -errno, with @why.
 */
int es_nf_hand_state_listen(struct es_nf_hand_state *kernel, unsigned int public_ifindex,
			    struct es_nf_why *why);

/* es_nf_hand_state_has_label() - as in struct es_nf_hook */
int es_nf_hand_state_has_label(const struct es_nf_hand_state *kernel);

/* es_nf_hand_state_arp_fd() - readable while there are ARP packets; -1 before es_nf_hand_state_listen() */
int es_nf_hand_state_arp_fd(const struct es_nf_hand_state *kernel);

/*
 * es_nf_hand_state_arp() - read an ARP packet of at most @room bytes. Returns its length, 0 if there is none,
 * or -errno.
 */
int es_nf_hand_state_arp(struct es_nf_hand_state *kernel, void *ret_arp, size_t room);

/*
 * es_nf_hand_state_has_frames() - do frames wait? es_nf_hand_state_send() - send or discard them, as
 * es_nf_frames_send() does
 */
int es_nf_hand_state_has_frames(const struct es_nf_hand_state *kernel);
unsigned int es_nf_hand_state_send(struct es_nf_hand_state *kernel, int may_leave);

/*
 * es_nf_hand_state_mend() - set the tables of hook.h again, if somebody has removed them; one thread at a
 * time, any. Returns 0 or -errno.
 */
int es_nf_hand_state_mend(struct es_nf_hand_state *kernel, struct es_nf_netlink *nl);

/*
 * es_nf_hand_state_can_gate() - can the kernel tell proven connections from others (unproven.h)? It needs
 * connection labels.
 */
int es_nf_hand_state_can_gate(const struct es_nf_hand_state *kernel);

/* es_nf_hand_state_losses_fd() - readable when conntrack has lost entries */
int es_nf_hand_state_losses_fd(const struct es_nf_hand_state *kernel);

/**
 * es_nf_hand_state_recover() - make some of the lost entries again, of connections here (recovery.h)
 * es_nf_hand_state_is_recovering() - is there more to do?
 * es_nf_hand_state_hurry() - likewise for the flow of this packet, before it is decided: without its entry,
 * it looks like another node's
 */
void es_nf_hand_state_recover(struct es_nf_hand_state *kernel);
int es_nf_hand_state_is_recovering(const struct es_nf_hand_state *kernel);
void es_nf_hand_state_hurry(struct es_nf_hand_state *kernel, const struct es_nf_frame *frame);

/**
 * es_nf_hand_state_go_on(), es_nf_hand_state_give_up(), es_nf_hand_state_wait_ms() - es_nf_attempts_go_on(),
 * … of all attempts es_nf_made() is called for those that are over, in the node's thread. After that,
 * @kept_fn is called for each packet that was kept (struct es_nf_hands); the stack gets those for which it
 * returns ES_NF_ACCEPT.
 */
typedef enum es_nf_fate (*es_nf_hand_state_kept_fn)(void *ctx, const struct es_nf_frame *frame);
void es_nf_hand_state_go_on(struct es_nf_hand_state *kernel, __u64 now_ns, es_nf_hand_state_kept_fn kept_fn,
			    void *ctx);
void es_nf_hand_state_give_up(struct es_nf_hand_state *kernel);
int es_nf_hand_state_wait_ms(const struct es_nf_hand_state *kernel);

/* es_nf_hand_state_connection() - es_nf_connection_read() */
int es_nf_hand_state_connection(struct es_nf_hand_state *kernel, const struct es_flow *flow,
				struct es_connection_state *ret_state, __u32 *ret_ahead);

/**
 * es_nf_hand_state_reset() - decide about a RST of a server of @node, which a rule has queued on its way out
 * Returns ES_NF_DROP if a translated one was sent in its place, and its connection is forgotten; or if no
 * client may hear it.
 */
enum es_nf_fate es_nf_hand_state_reset(struct es_nf_hand_state *kernel, const struct es_nf_frame *frame,
				       struct es_nf_node *node);

#endif
