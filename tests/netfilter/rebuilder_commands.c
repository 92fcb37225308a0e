// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The commands of earshot-rebuilder: look at its node and change it, while it serves.
 */
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "netfilter/rebuild/withdraw.h"
#include "tests/netfilter/rebuilder.h"

static void count_entry(void *ctx, const struct es_nf_entry *entry)
{
	unsigned int *n = ctx;

	if (entry->flow.service_port == node.port)
		(*n)++;
}

static void say_entries(void)
{
	unsigned int n = 0;
	int rc;

	do {
		n = 0;
		rc = es_nf_conntrack_walk(&node.rebuild.ct, count_entry, &n);
	} while (rc == -EINTR);
	printf("%d %u\n", rc, n);
}

/* Does as `conntrack -F` does. */
static void flush_entries(void)
{
	char buf[64];
	struct nlmsghdr *nlh = es_nf_netlink_put(
		&node.rules, buf, NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_DELETE, NLM_F_ACK);
	struct nfgenmsg *nfg = mnl_nlmsg_put_extra_header(nlh, sizeof(*nfg));

	nfg->nfgen_family = AF_UNSPEC;
	printf("%d\n", es_nf_netlink_talk(&node.rules, nlh, NULL, NULL));
}

static void restore_all(void)
{
	size_t restored = 0;

	es_nf_kept_restore_begin(node.kept);
	while (es_nf_kept_is_restoring(node.kept))
		restored += es_nf_kept_restore_some(node.kept, &node.rebuild.ct, &node.rebuild.diag, 64);
	printf("%zu\n", restored);
}

static void look_at_all(void)
{
	printf("%d\n", es_nf_kept_look_all(node.kept, &node.rebuild.ct));
}

static void say_counts(void)
{
	printf("{\"made\": %u, \"copies\": %u, \"moved\": %u, \"failed\": %u, \"error\": %d, \"lost\": %u, "
	       "\"restored\": %u, \"kept\": %zu, \"hooked\": %u, \"label\": %d, \"way\": %d, \"marked\": "
	       "%d}\n",
	       node.made, node.copies, node.moved, node.failed, node.last_error, node.lost, node.restored,
	       node.kept ? es_nf_kept_count(node.kept) : 0, node.hooked, node.hook.has_label, node.hook.way,
	       node.tun.is_marked);
}

static void start_move(void)
{
	node.is_moving = 1;
	printf("0\n");
}

/* The rcv_nxt is one byte off: nothing may happen to the connection. */
static void leave_wrongly(void)
{
	int rc = 0;

	for (size_t i = 0; i < ALL && !rc; i++)
		if (node.clients[i].is_made)
			rc = es_nf_leave(&node.rebuild, &node.clients[i].flow, node.clients[i].next - 70000);
	printf("%d\n", rc);
}

static void say_scales(void)
{
	struct es_nf_socket socket = {};

	for (size_t i = 0; i < ALL; i++)
		if (node.clients[i].is_made &&
		    !es_nf_socket_look(&node.rebuild.diag, &node.clients[i].flow, &socket) &&
		    es_nf_socket_is_connection(&socket))
			break;
	printf("%u %u\n", socket.snd_wscale, socket.rcv_wscale);
}

static void say_first(void)
{
	struct es_nf_entry entry = {};
	size_t known = 0, made = 0;

	for (size_t i = 0; i < ALL; i++) {
		if (!node.clients[i].is_made ||
		    es_nf_conntrack_get(&node.rebuild.ct, &node.clients[i].flow, &entry))
			continue;
		made++;
		known += es_nf_entry_first(&entry) == node.clients[i].next;
	}
	printf("%zu %zu\n", made, known);
}

static void say_withdrawn(void)
{
	printf("%d\n",
	       node.syn_len && es_nf_is_withdrawn(&node.rebuild.ct, &node.withdrawn, node.withdrawn_seq));
}

static void say_shift(void)
{
	struct es_nf_entry entry = {};

	(void)es_nf_conntrack_get(&node.rebuild.ct, &node.withdrawn, &entry);
	printf("%d\n", entry.offsets.server.after);
}

static void put_late_syn(void)
{
	printf("%d\n", es_nf_tun_write(&node.tun, node.syn, node.syn_len));
}

static void try_again(void)
{
	node.is_patient = 0;
	printf("0\n");
}

static void remove_hook(void)
{
	printf("%d\n", es_nf_hook_remove(&node.rules));
}

static const struct {
	const char *name;
	void (*run)(void);
} commands[] = {
	{"counts", say_counts},		  /* what was done, as JSON */
	{"entries", say_entries},	  /* how many of conntrack's entries are ours: "0 N" */
	{"flush", flush_entries},	  /* empty conntrack's table */
	{"restore", restore_all},	  /* make all entries again that are missing */
	{"look", look_at_all},		  /* keep what all entries are now, as a new daemon does */
	{"move", start_move},		  /* with its next request, a connection leaves and comes again */
	{"leave-wrongly", leave_wrongly}, /* a connection is to leave, with a wrong number */
	{"scales", say_scales},		  /* the client's window scale, and ours, of the first connection */
	{"first", say_first},		  /* how many entries there are, and how many know their first byte */
	{"withdrawn", say_withdrawn},	  /* does the last attempt that was withdrawn still count as that? */
	{"shift", say_shift},	/* what the hook knows of the server's numbers, by its entry; 0: nothing */
	{"late", put_late_syn}, /* the SYN of that attempt comes in, which nobody has dropped after all */
	{"again", try_again},
	{"remove-hook", remove_hook},
};

void obey(void)
{
	char line[64];

	if (!fgets(line, sizeof(line), stdin)) {
		es_nf_kept_free(&node.kept);
		es_nf_rebuild_close(&node.rebuild);
		es_nf_losses_close(&node.losses);
		es_nf_netlink_close(&node.watch);
		es_nf_netlink_close(&node.rules);
		es_nf_tun_close(&node.tun);
		exit(0);
	}
	line[strcspn(line, "\n")] = 0;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(line, commands[i].name))
			commands[i].run();
}
