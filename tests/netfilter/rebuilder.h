/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_NETFILTER_REBUILDER_H
#define ES_TESTS_NETFILTER_REBUILDER_H

/*
 * The node of earshot-rebuilder (rebuilder.c), for its commands.
 */
#include "netfilter/rebuild/kept.h"
#include "netfilter/rebuild/losses.h"
#include "netfilter/rebuild/rebuild.h"
#include "netfilter/rules/hook.h"

#define ALL 65536 /* clients: one for each port */

/*
 * All that the node must know of a client's connection: ISNs and options. Each client of a test has its own
 * port.
 */
struct client {
	struct es_flow flow;
	struct es_tcp_options options;
	__u32 next; /* sequence number of the request from which the connection is made */
	int is_answered;
	int is_made;
};

struct node {
	struct es_nf_tun tun;
	struct es_nf_hook hook;
	struct es_nf_rebuild rebuild;
	struct es_nf_netlink rules;
	struct es_nf_netlink watch;
	struct es_nf_losses losses;
	struct es_nf_kept *kept; /* NULL: nothing is kept */
	int wire;
	__be16 port;
	int is_twice;
	int is_compat;
	int is_plain;
	int is_moving;
	int is_patient; /* after an attempt that was withdrawn, no other is made */
	__u16 zone;
	unsigned int made, copies, moved, failed, lost, restored, hooked;
	int last_error;
	struct client clients[ALL];
	struct es_flow withdrawn; /* the last attempt that was withdrawn: flow, request, SYN */
	__u32 withdrawn_seq;
	__u8 ES_NF_ALIGNED syn[ES_NF_MADE_MAX];
	size_t syn_len;
};

extern struct node node;

/* obey() - read a line from standard input, do what it says, and answer with a line; at its end, exit */
void obey(void);

/*
 * ask() - one question to the kernel, without a node: "labels", "rules", "translation", or else a probe.
 * Returns the exit status.
 */
int ask(const char *what);

#endif
