// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A node with nothing but netfilter/: answers SYNs by itself, and makes connections of the first requests. What comes
 * from the wire, it hears by a packet socket; the test's rules keep from the stack what has no connection.
 *
 *     earshot-rebuilder probe                              can this kernel do it? prints one line
 *     earshot-rebuilder labels                             what an entry is called that was held and proven, then released
 *     earshot-rebuilder rules                              does the kernel take the rules of as many services as there may be?
 *     earshot-rebuilder serve INTERFACE PORT [twice] [zone=N] [keep] [compat] [plain]
 *
 * twice: each request is rebuilt as if the client had repeated it at once; keep: lost entries are made again
 * compat: the hook by xtables' target, as for kernels before 5.3; plain: entries without labels
 * Reads commands, a line each, and answers each with a line (see commands[]).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/ip.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "netfilter/kernel/compose.h"
#include "netfilter/rules/hook.h"
#include "netfilter/rebuild/kept.h"
#include "netfilter/rebuild/losses.h"
#include "netfilter/rebuild/probe.h"
#include "netfilter/rebuild/rebuild.h"
#include "netfilter/rules/rules.h"
#include "netfilter/rebuild/withdraw.h"

#define MTU   9000
#define PAD   2 /* aligns what is behind an Ethernet header */
#define ALL   65536
#define SHIFT 7 /* our window scale: the kernel's own for place.py's tcp_rmem */

/* What it must know of a client's connection: ISNs and options. Clients of a test have ports of their own. */
struct client {
	struct es_flow flow;
	struct es_tcp_options options;
	__u32 next; /* of the request that it is made of */
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
	int is_patient; /* who has tried in vain does not try again */
	__u16 zone;
	unsigned int made, copies, moved, failed, lost, restored, hooked;
	int last_error;
	struct client clients[ALL];
	struct es_flow withdrawn; /* of the last attempt: its request, and its SYN */
	__u32 withdrawn_seq;
	__u8 ES_NF_ALIGNED syn[ES_NF_MADE_MAX];
	size_t syn_len;
};

static struct node node;

static __u64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (__u64)now.tv_sec * 1000000000ULL + (__u64)now.tv_nsec;
}

static __attribute__((noreturn)) void die(const char *what, const struct es_nf_why *why)
{
	printf("error %s: %s\n", what, why ? why->text : strerror(errno));
	exit(1);
}

static __u32 cookie_of(const struct es_flow *flow)
{
	return 0xfffff000U + ntohs(flow->client_port) % 4096; /* so that numbers wrap soon */
}

static __u32 clock_of(const struct es_flow *flow)
{
	return 0x80000000U + ntohs(flow->client_port);
}

/* The SYN-ACK, back to where the SYN came from. @frame: the SYN's */
static void answer(struct client *client, const __u8 *frame, const struct es_nf_request *syn)
{
	__u8 ES_NF_ALIGNED room[PAD + ETH_HLEN + ES_NF_MADE_MAX], *out = room + PAD;
	size_t len = sizeof(struct tcphdr) + ES_SYNACK_OPTIONS_LEN;
	const struct es_flow *f = &syn->flow;
	struct es_flow back = {f->service, f->client, f->service_port, f->client_port};
	struct tcphdr *tcp = es_nf_compose(&back, NULL, len, len, out + ETH_HLEN);
	const struct es_segment *seg = &syn->seg;

	*client = (struct client){.flow = syn->flow, .is_answered = 1};
	client->options = (struct es_tcp_options){
		.mss = seg->mss,
		.snd_wscale = seg->wscale,
		.rcv_wscale = SHIFT,
		.wscale_ok = seg->has_wscale,
		.sack_ok = seg->sack_permitted,
		.tstamp_ok = seg->has_ts,
	};
	client->next = seg->seq + 1;
	memcpy(out, frame + ETH_ALEN, ETH_ALEN);
	memcpy(out + ETH_ALEN, frame, ETH_ALEN);
	memcpy(out + 2UL * ETH_ALEN, frame + 2UL * ETH_ALEN, 2);
	tcp->seq = htonl(cookie_of(f));
	tcp->ack_seq = htonl(seg->seq + 1);
	tcp->syn = tcp->ack = 1;
	tcp->window = htons(65535);
	es_synack_options_write((__u8 *)(tcp + 1), &client->options, seg->is_v6 ? 1440 : 1460, clock_of(f),
				seg->tsval);
	len = ETH_HLEN + es_nf_compose_end(&back, tcp, len);
	if (send(node.wire, out, len, 0) != (ssize_t)len)
		die("SYN-ACK", NULL);
}

static void note(int rc)
{
	if (rc == ES_NF_REBUILT)
		node.made++;
	else if (rc == ES_NF_COPY)
		node.copies++;
	else
		node.failed++, node.last_error = rc;
}

/* @rc: what has come of its request */
static void keep(const struct es_flow *flow, int rc)
{
	if (!node.kept)
		return;
	rc = rc == ES_NF_REBUILT ? es_nf_kept_keep(node.kept, &node.rebuild.ct, &node.rebuild.made)
				 : es_nf_kept_look(node.kept, &node.rebuild.ct, flow);
	if (rc)
		node.failed++;
}

static void make(struct client *client, struct es_nf_request *request)
{
	int made;

	request->options = client->options;
	if (node.is_twice) {
		note(es_nf_rebuild(&node.rebuild, request, now_ns()));
		note(es_nf_rebuild(&node.rebuild, request, now_ns()));
	}
	if (node.is_patient && node.syn_len)
		return;
	made = es_nf_rebuild(&node.rebuild, request, now_ns());
	note(made);
	if (made == -ETIMEDOUT) {
		node.withdrawn = request->flow;
		node.withdrawn_seq = request->seg.seq;
		node.syn_len = es_nf_request_syn(request, node.syn);
	}
	client->is_made = 1;
	keep(&client->flow, made);
}

/* On a busy machine, the RST may come in later than what tells that it was sent. */
static int leave(const struct es_flow *flow, __u32 rcv_nxt)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	int rc = es_nf_leave(&node.rebuild, flow, rcv_nxt);

	for (int i = 0; i < 1000 && rc == -EBUSY; i++) {
		nanosleep(&pause, NULL);
		rc = es_nf_leave(&node.rebuild, flow, rcv_nxt);
	}
	return rc;
}

/* The test's rules hold back what the client sends; the connection leaves, and comes again from the next request. */
static void move(struct client *client, struct es_nf_request *request)
{
	struct es_nf_socket socket;
	int rc = es_nf_acknowledge(&node.rebuild, request);

	if (!rc)
		rc = es_nf_socket_look(&node.rebuild.diag, &client->flow, &socket);
	if (!rc && !es_nf_socket_is_idle(&socket))
		return; /* the client repeats its request */
	if (!rc)
		rc = leave(&client->flow, request->seg.seq);
	request->options = client->options;
	if (!rc)
		rc = es_nf_rebuild(&node.rebuild, request, now_ns());
	if (rc)
		node.failed++, node.last_error = rc;
	else
		node.moved++;
	keep(&client->flow, rc);
	node.is_moving = 0;
}

static void hear(void)
{
	__u8 ES_NF_ALIGNED room[PAD + ETH_HLEN + MTU], *frame = room + PAD;
	struct sockaddr_ll from;
	socklen_t from_len = sizeof(from);
	ssize_t got = recvfrom(node.wire, frame, ETH_HLEN + MTU, 0, (struct sockaddr *)&from, &from_len);
	struct es_nf_request request = {.packet = frame + ETH_HLEN, .len = (size_t)(got - ETH_HLEN)};
	struct client *client;

	if (got < ETH_HLEN || from.sll_pkttype == PACKET_OUTGOING)
		return;
	if (request.packet[0] == 0x45 && request.len > ntohs(((const struct iphdr *)request.packet)->tot_len))
		request.len = ntohs(((const struct iphdr *)request.packet)->tot_len); /* padding */
	if (es_nf_request_read(&request) || request.flow.service_port != node.port)
		return;
	client = &node.clients[ntohs(request.flow.client_port)];
	if (es_tcp_is_syn(&request.seg))
		answer(client, frame, &request);
	else if (!request.seg.len || !client->is_answered)
		return;
	else if (node.is_moving && client->is_made)
		move(client, &request);
	else if (request.seg.seq == client->next && request.seg.ack == cookie_of(&request.flow) + 1)
		make(client, &request);
}

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

/* What `conntrack -F` does. */
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
	{"entries", say_entries},	  /* how many entries of the connection tracking are ours: "0 N" */
	{"flush", flush_entries},	  /* empty the connection tracking */
	{"restore", restore_all},	  /* make all entries again that are missing */
	{"look", look_at_all},		  /* keep what all entries are now, as a new daemon does */
	{"move", start_move},		  /* with its next request, a connection leaves and comes again */
	{"leave-wrongly", leave_wrongly}, /* with a wrong number */
	{"scales", say_scales},		  /* the client's window scale, and ours, of the first connection */
	{"first", say_first},	      /* of how many entries there are, and how many know their first byte */
	{"withdrawn", say_withdrawn}, /* is the last attempt that was withdrawn so still? */
	{"shift", say_shift},	/* what the hook knows of the server's numbers, by its entry; 0: nothing */
	{"late", put_late_syn}, /* its SYN comes in, which nobody has dropped after all */
	{"again", try_again},
	{"remove-hook", remove_hook},
};

static void obey(void)
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

static void set_hook(void)
{
	const struct es_nf_hook_device device = {node.tun.name, node.tun.is_marked, node.zone};
	struct es_nf_why why;

	if (es_nf_hook_set(&node.rules, &device, &node.hook, &why))
		die("hook", &why);
	if (node.is_compat)
		node.hook.way = ES_NF_HOOK_COMPAT;
	if (node.is_plain)
		node.hook.has_label = 0;
	errno = -es_nf_hook_set_as(&node.rules, &device, &node.hook);
	if (errno)
		die("hook", NULL);
	node.hooked++;
}

static void on_rules_changed(void)
{
	if (es_nf_hook_watched(&node.watch))
		die("watch", NULL);
	if (!es_nf_hook_is_set(&node.rules, &node.hook))
		set_hook();
}

static void on_lost(void *ctx, const struct es_flow *flow, __u8 state)
{
	int rc = node.kept ? es_nf_kept_restore(node.kept, &node.rebuild.ct, &node.rebuild.diag, flow) : 0;

	(void)ctx;
	(void)state;
	if (flow->service_port == node.port)
		node.lost++;
	if (rc < 0)
		note(rc);
	node.restored += rc == 1;
}

static void open_wire(const char *interface)
{
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex(interface),
	};
	int room = 16 << 20;

	node.wire = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
	if (node.wire < 0 || !at.sll_ifindex || bind(node.wire, (struct sockaddr *)&at, sizeof(at)))
		die(interface, NULL);
	(void)setsockopt(node.wire, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
}

static int serve(char **words)
{
	struct es_nf_rebuild_settings settings = {.copies = ES_NF_COPIES_DEFAULT};
	struct es_nf_why why = {""};
	struct pollfd fds[4];

	node.port = htons((__u16)strtoul(words[1], NULL, 10));
	for (char **word = words + 2; *word; word++) {
		node.is_twice |= !strcmp(*word, "twice");
		node.is_compat |= !strcmp(*word, "compat");
		node.is_plain |= !strcmp(*word, "plain");
		node.is_patient |= !strcmp(*word, "patient");
		if (!strcmp(*word, "keep") && es_nf_kept_new(ALL, &node.kept))
			die("kept", NULL);
		if (!strncmp(*word, "zone=", 5))
			node.zone = (__u16)strtoul(*word + 5, NULL, 10);
	}
	open_wire(words[0]);
	if (es_nf_tun_open(&node.tun, ES_NF_TUN_NAME, &why))
		die("tun", &why);
	if (es_nf_netlink_open(&node.rules, NETLINK_NETFILTER) || es_nf_hook_watch(&node.watch) ||
	    es_nf_losses_open(&node.losses))
		die("netlink", NULL);
	set_hook();
	settings.has_label = node.hook.has_label;
	settings.zone = node.zone;
	if (es_nf_rebuild_open(&node.rebuild, &node.tun, &settings, &why))
		die("rebuild", &why);
	if (node.kept && es_nf_kept_look_all(node.kept, &node.rebuild.ct))
		die("look", NULL);
	printf("ready\n");
	fds[0] = (struct pollfd){.fd = 0, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = node.wire, .events = POLLIN};
	fds[2] = (struct pollfd){.fd = mnl_socket_get_fd(node.watch.socket), .events = POLLIN};
	fds[3] = (struct pollfd){.fd = es_nf_losses_fd(&node.losses), .events = POLLIN};
	while (poll(fds, 4, -1) >= 0 || errno == EINTR) {
		if (fds[0].revents)
			obey();
		if (fds[1].revents)
			hear();
		if (fds[2].revents)
			on_rules_changed();
		if (fds[3].revents && es_nf_losses_read(&node.losses, ALL, on_lost, NULL))
			die("losses", NULL);
	}
	return 1;
}

static int say_labels(struct es_nf_conntrack *ct, const struct es_flow *flow)
{
	struct es_nf_entry entry;
	int rc = es_nf_conntrack_get(ct, flow, &entry);

	if (!rc)
		printf("%s%s%s\n", entry.has_label ? "ours" : "", entry.is_proven ? " proven" : "",
		       entry.is_held ? " held" : "");
	return rc;
}

/* In a network namespace of its own. */
static int labels(void)
{
	const struct es_flow flow = {.client = es_addr_from_v4(htonl(0x0a090001)),
				     .service = es_addr_from_v4(htonl(0x0a090002)),
				     .client_port = htons(40000),
				     .service_port = htons(80)};
	const struct es_nf_expected expected = {.flow = flow, .socket = flow};
	struct es_nf_conntrack ct;
	struct es_nf_netlink rules;
	struct es_nf_hook hook;
	int rc = unshare(CLONE_NEWNET) ? -errno : es_nf_netlink_open(&rules, NETLINK_NETFILTER);

	if (!rc)
		rc = es_nf_hook_set(&rules, NULL, &hook, NULL);
	if (!rc)
		rc = es_nf_conntrack_open(&ct, 0, 1);
	if (!rc)
		es_nf_conntrack_expect(&ct, &expected, 1, &rc);
	if (!rc)
		rc = es_nf_conntrack_hold(&ct, &expected.flow, 1);
	if (!rc)
		rc = es_nf_conntrack_prove(&ct, &expected.flow);
	if (!rc)
		rc = say_labels(&ct, &expected.flow);
	if (!rc)
		rc = es_nf_conntrack_hold(&ct, &expected.flow, 0);
	if (!rc)
		rc = say_labels(&ct, &expected.flow);
	if (rc)
		printf("%s\n", strerror(-rc));
	return !!rc;
}

/* Each service has an address of each family, and asks for all that there is. */
static int rules(void)
{
	struct es_nf_rules rules = {
		.public_ifindex = 1,
		.cluster_ifindex = 1,
		.handover_port = htons(7),
		.gate = ES_NF_GATE_CLOSED,
		.holds = 1,
	};
	struct es_nf_rules_whole whole;
	struct es_nf_why why = {""};
	struct es_nf_netlink nl;
	int rc = es_nf_netlink_open(&nl, NETLINK_NETFILTER);

	if (rc)
		return 1;
	rules.self = es_addr_from_v4(htonl(0xc0000201));
	for (__u32 i = 0; i < ES_NF_ADDRESSES_MAX; i++) {
		struct es_addr *address = &rules.address[i];

		if (i % 2)
			*address = (struct es_addr){.b = {0x20, 1, 0xd, 0xb8, [15] = (__u8)i}};
		else
			*address = es_addr_from_v4(htonl(0xc0000202 + i));
		rules.every[i].address = *address;
		rules.every[i].port = htons(80);
		rules.endpoint[i] = rules.every[i];
	}
	rules.count = ES_NF_ADDRESSES_MAX;
	rules.every_count = rules.endpoint_count = ES_NF_ADDRESSES_MAX;
	rc = es_nf_rules_set(&nl, &rules, 0, &whole, &why);
	printf("%d %d %s\n", rc, rc ? 0 : es_nf_rules_are_whole(&nl, &rules, &whole), why.text);
	es_nf_netlink_close(&nl);
	return !!rc;
}

int main(int argc, char **argv)
{
	struct es_nf_why why = {""};
	int has_v6 = 0, rc;

	setvbuf(stdin, NULL, _IONBF, 0); /* poll() must see all of it */
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc >= 4 && !strcmp(argv[1], "serve"))
		return serve(argv + 2);
	if (argc == 2 && !strcmp(argv[1], "labels"))
		return labels();
	if (argc == 2 && !strcmp(argv[1], "rules"))
		return rules();
	if (argc == 2 && !strcmp(argv[1], "translation")) {
		rc = es_nf_probe_translation(&why);
		printf("%d %s\n", rc, why.text);
		return !!rc;
	}
	rc = es_nf_probe(&has_v6, &why);
	printf("%d %d %s\n", rc, has_v6, why.text);
	return !!rc;
}
