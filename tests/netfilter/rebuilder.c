// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A node with nothing but netfilter/: answers SYNs by itself, and makes connections of the first requests. A
 * packet socket hears all that arrives on the wire; the test's rules keep packets without a connection from
 * the stack.
 *
 *     earshot-rebuilder probe     can this kernel do it? prints one line
 *     earshot-rebuilder labels    what an entry is called that was held and proven, then released
 *     earshot-rebuilder rules     does the kernel take the rules of as many services as there may be?
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
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "netfilter/kernel/clock.h"
#include "netfilter/kernel/compose.h"
#include "tests/netfilter/rebuilder.h"

#define MTU   9000
#define PAD   2 /* aligns what is behind an Ethernet header */
#define SHIFT 7 /* our window scale: the kernel's own for place.py's tcp_rmem */

struct node node;

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
		note(es_nf_rebuild(&node.rebuild, request, es_nf_now_ns()));
		note(es_nf_rebuild(&node.rebuild, request, es_nf_now_ns()));
	}
	if (node.is_patient && node.syn_len)
		return;
	made = es_nf_rebuild(&node.rebuild, request, es_nf_now_ns());
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

/* The request without its payload. Returns its length. */
static size_t ack_of(const struct es_nf_request *request, __u8 ret_packet[ES_NF_MADE_MAX])
{
	size_t len = request->len - request->ip_len - request->seg.len;
	struct tcphdr *tcp = es_nf_compose(&request->flow, request->packet, len, len, ret_packet);

	memcpy(tcp, request->packet + request->ip_len, len);
	tcp->fin = tcp->psh = tcp->urg = 0;
	return es_nf_compose_end(&request->flow, tcp, len);
}

/*
 * The test's rules hold back what the client sends; the connection leaves, and comes again from the next
 * request.
 */
static void move(struct client *client, struct es_nf_request *request)
{
	struct es_nf_socket socket;
	__u8 ES_NF_ALIGNED ack[ES_NF_MADE_MAX];
	/* The socket hears what the request acknowledges, which is held back. */
	int rc = es_nf_tun_write(&node.tun, ack, ack_of(request, ack));

	if (!rc)
		rc = es_nf_socket_look(&node.rebuild.diag, &client->flow, &socket);
	if (!rc && (socket.rqueue || socket.wqueue))
		return; /* the client repeats its request */
	if (!rc)
		rc = leave(&client->flow, request->seg.seq);
	request->options = client->options;
	if (!rc)
		rc = es_nf_rebuild(&node.rebuild, request, es_nf_now_ns());
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

int main(int argc, char **argv)
{
	setvbuf(stdin, NULL, _IONBF, 0); /* poll() must see all of it */
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc >= 4 && !strcmp(argv[1], "serve"))
		return serve(argv + 2);
	return ask(argc == 2 ? argv[1] : "");
}
