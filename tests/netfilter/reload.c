// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sends packets through the rules, in a network namespace that nobody else uses.
 *
 *     earshot-nf-reload rules       a packet waits in the queue, and there is one service less
 *     earshot-nf-reload overheard   the same, and the ring changes
 *     earshot-nf-reload ingress     the same, the cluster MAC is a station's, and there is one service less
 *     earshot-nf-reload held        a packet is of a connection that is leaving, and no service inspects
 *                                   every request any more
 *     earshot-nf-reload known       a packet is a SYN of a connection that is here, and is let pass
 *     earshot-nf-reload making      a server speaks while its connection is being made: SYN-ACK, ACK, RST;
 *                                   then the connection is made: ACK
 *     earshot-nf-reload gone        packets of a flow arrive: its client has spoken to another node; and
 *                                   has begun a new connection
 *     earshot-nf-reload gone COMMAND   the same, and the command has run when the rules are set
 *     earshot-nf-reload withdrawn   an attempt to make a connection is withdrawn (withdraw.h), without
 *                                   leases and with them
 *
 * Prints how many packets waited before and after the change, and what came to the socket when they were let
 * pass; or, with held and making, how it ended to send the packets; or, with known and gone, how many packets
 * came; or, with withdrawn, how it ended to send the listening socket's answer, and how many of its client's
 * packets came, for each enum es_nf_gate.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "netfilter/engine/capture.h"
#include "netfilter/kernel/compose.h"
#include "netfilter/kernel/conntrack.h"
#include "netfilter/kernel/tun.h"
#include "netfilter/rebuild/request.h"
#include "netfilter/rebuild/withdraw.h"
#include "netfilter/rules/drop_by_ring.h"
#include "netfilter/rules/hook.h"
#include "netfilter/rules/ingress.h"
#include "netfilter/rules/rules.h"

#define PORT	     3702
#define NO_INTERFACE 99

static struct es_nf_netlink nl;
static enum es_nf_gate gate = ES_NF_GATE_NONE;

static __attribute__((noreturn)) void die(const char *what, int rc, const struct es_nf_why *why)
{
	printf("%s: %s\n", what, why ? why->text : strerror(-rc));
	exit(1);
}

static void switch_on_loopback(void)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request))
		die("lo", -errno, NULL);
	close(fd);
}

static void set_rules(__u16 count, __u32 every_count, unsigned int public_ifindex)
{
	struct es_nf_rules rules = {
		.public_ifindex = public_ifindex,
		.cluster_ifindex = ES_LOOPBACK_IFINDEX,
		.self = es_addr_from_v4(htonl(INADDR_LOOPBACK)),
		.handover_port = htons(PORT),
		.count = count,
		.every_count = every_count,
		.gate = gate,
		.holds = 1,
	};
	struct es_nf_rules_whole whole;
	struct es_nf_why why = {""};
	int rc;

	for (__u32 i = 0; i < every_count; i++) {
		rules.every[i].address = es_addr_from_v4(htonl(0xc0000202));
		rules.every[i].port = htons((__u16)(80 + i));
	}
	for (__u16 i = 0; i < count; i++) {
		rules.address[i] = es_addr_from_v4(htonl(0xc0000202 + i));
		rules.endpoint[i].address = rules.address[i];
		rules.endpoint[i].port = htons(80);
	}
	rules.endpoint_count = count;
	rc = es_nf_rules_set(&nl, &rules, 0, &whole, &why);
	if (rc)
		die("rules", rc, &why);
	if (es_nf_rules_are_whole(&nl, &rules, &whole) != 1)
		die("rules", 0, &(struct es_nf_why){"are not whole"});
}

static void set_overheard(__u64 slots)
{
	struct es_nf_drop_by_ring *overheard = calloc(1, sizeof(*overheard));
	struct es_nf_rules_whole whole;
	struct es_nf_why why = {""};
	int rc;

	overheard->seed = 1;
	overheard->public_ifindex = NO_INTERFACE;
	overheard->count = 1;
	overheard->endpoint[0] =
		(struct es_nf_endpoint){.address = es_addr_from_v4(htonl(0xc0000202)), .port = htons(80)};
	overheard->answered[0] = slots;
	rc = es_nf_drop_by_ring_set(&nl, overheard, 0, &whole, &why);
	if (rc)
		die("overheard", rc, &why);
	if (es_nf_drop_by_ring_are_whole(&nl, overheard, &whole) != 1)
		die("overheard", 0, &(struct es_nf_why){"are not whole"});
	free(overheard);
}

static void set_ingress(__u16 count, int anew)
{
	struct es_nf_rules rules = {
		.public_ifindex = ES_LOOPBACK_IFINDEX, .is_unicast = 1, .cluster_mac = {2}, .count = count};
	struct es_nf_whole whole;
	struct es_nf_why why = {""};
	int rc;

	for (__u16 i = 0; i < count; i++)
		rules.address[i] = es_addr_from_v4(htonl(0xc0000202 + i));
	rc = es_nf_ingress_follow(&nl, &rules, anew, &whole, &why);
	if (rc)
		die("ingress", rc, &why);
	if (es_nf_ingress_is_whole(&nl, &whole) != 1)
		die("ingress", 0, &(struct es_nf_why){"is not whole"});
}

/* How many packets the kernel has given to the reader of the queue, whose verdicts it waits for. */
static unsigned int waiting(void)
{
	FILE *file = fopen("/proc/thread-self/net/netfilter/nfnetlink_queue", "re");
	unsigned int sum = 0;
	char line[256], *next;

	while (file && fgets(line, sizeof(line), file))
		if (strtoul(line, &next, 10) == ES_NF_RULES_QUEUE) {
			(void)strtoul(next, &next, 10); /* its reader */
			sum = (unsigned int)strtoul(next, NULL, 10);
		}
	if (file)
		fclose(file);
	return sum;
}

static enum es_nf_fate let_pass(void *ctx, const struct es_nf_frame *frame)
{
	(void)ctx;
	(void)frame;
	return ES_NF_ACCEPT;
}

static int waits(const char *what)
{
	const int is_overheard = !strcmp(what, "overheard"), is_ingress = !strcmp(what, "ingress");

	const struct es_nf_capture_params params = {.queue = ES_NF_RULES_QUEUE};
	struct sockaddr_in here = {
		.sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct es_nf_capture *capture;
	struct es_nf_why why = {""};
	unsigned int before, behind;
	char text[8] = "nothing";
	int fd;

	if (es_nf_capture_new(&params, &capture, &why))
		die("queue", 0, &why);
	set_rules(2, 0, NO_INTERFACE);
	if (is_overheard)
		set_overheard(1);
	if (is_ingress)
		set_ingress(2, 1);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&here, sizeof(here)) ||
	    sendto(fd, "message", 8, 0, (struct sockaddr *)&here, sizeof(here)) != 8)
		die("message", -errno, NULL);
	before = waiting();
	if (is_overheard)
		set_overheard(6);
	else if (is_ingress)
		set_ingress(1, 0);
	else
		set_rules(1, 0, NO_INTERFACE);
	behind = waiting();
	es_nf_capture_read(capture, let_pass, NULL);
	(void)!recv(fd, text, sizeof(text), MSG_DONTWAIT);
	printf("%u %u %s\n", before, behind, text);
	es_nf_capture_free(&capture);
	return 0;
}

/* Sends a segment as a connection's server to its client behind the device @tun. Returns how that ended. */
static const char *say(const struct es_flow *flow, const struct es_nf_tun *tun, __u8 flags)
{
	const struct es_flow back = {flow->service, flow->client, flow->service_port, flow->client_port};
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = flow->client.w[3]};
	__u8 ES_NF_ALIGNED packet[64];
	struct tcphdr *tcp = es_nf_compose(&back, NULL, sizeof(*tcp), sizeof(*tcp), packet);
	int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
	size_t len;

	((__u8 *)tcp)[13] = flags;
	len = es_nf_compose_end(&back, tcp, sizeof(*tcp));
	if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, tun->name, sizeof(tun->name)))
		die("device", -errno, NULL);
	/* The kernel answers EPERM if a rule drops the packet on its way out. */
	if (sendto(fd, packet, len, 0, (struct sockaddr *)&to, sizeof(to)) >= 0)
		errno = 0;
	close(fd);
	return errno == EPERM ? "dropped" : errno ? strerror(errno) : "sent";
}

/* Makes a connection of the first service, whose client is behind a device named "client". */
static struct es_flow connect_client(struct es_nf_conntrack *ct, struct es_nf_tun *tun)
{
	const struct es_nf_entry entry = {.flow = {.client = es_addr_from_v4(htonl(0xc6336401)),
						   .service = es_addr_from_v4(htonl(0xc0000202)),
						   .client_port = htons(40000),
						   .service_port = htons(80)},
					  .timeout_s = 60};
	struct es_nf_hook hook;
	int rc = es_nf_tun_open(tun, "client", NULL);

	if (!rc)
		rc = es_nf_hook_set(&nl, NULL, &hook, NULL);
	if (!rc)
		rc = es_nf_conntrack_open(ct, 0, 1);
	if (!rc)
		rc = es_nf_conntrack_restore(ct, &entry);
	if (rc)
		die("connection", rc, NULL);
	return entry.flow;
}

static int is_held(void)
{
	struct es_nf_conntrack ct;
	struct es_nf_tun tun;
	const struct es_flow flow = connect_client(&ct, &tun);
	const char *before;
	int rc = es_nf_conntrack_hold(&ct, &flow, 1);

	if (rc)
		die("hold", rc, NULL);
	set_rules(2, 1, NO_INTERFACE);
	before = say(&flow, &tun, ES_TCP_ACK);
	set_rules(2, 0, NO_INTERFACE);
	printf("%s %s\n", before, say(&flow, &tun, ES_TCP_ACK));
	return 0;
}

static int is_making(void)
{
	struct es_nf_expected expected = {.first_seq = 1, .is_making = 1};
	const char *syn_ack, *ack, *rst;
	struct es_nf_conntrack ct;
	struct es_nf_tun tun;
	int rc[2];

	expected.flow = expected.socket = connect_client(&ct, &tun);
	set_rules(1, 0, NO_INTERFACE);
	rc[0] = es_nf_conntrack_delete(&ct, &expected.flow);
	es_nf_conntrack_expect(&ct, &expected, 1, &rc[1]);
	if (rc[0] || rc[1])
		die("entry", rc[0] ? rc[0] : rc[1], NULL);
	syn_ack = say(&expected.flow, &tun, ES_TCP_SYN | ES_TCP_ACK);
	ack = say(&expected.flow, &tun, ES_TCP_ACK);
	rst = say(&expected.flow, &tun, ES_TCP_RST | ES_TCP_ACK);
	rc[0] = es_nf_conntrack_made(&ct, &expected.flow);
	if (rc[0])
		die("made", rc[0], NULL);
	printf("%s %s %s %s\n", syn_ack, ack, rst, say(&expected.flow, &tun, ES_TCP_ACK));
	return 0;
}

static int is_known(void)
{
	const struct es_nf_capture_params params = {.queue = ES_NF_RULES_KNOWN};
	__u8 ES_NF_ALIGNED packet[64];
	struct es_nf_capture *capture;
	struct es_nf_conntrack ct;
	struct es_nf_tun tun;
	const struct es_flow flow = connect_client(&ct, &tun);
	struct tcphdr *tcp = es_nf_compose(&flow, NULL, sizeof(*tcp), sizeof(*tcp), packet);
	int rc;

	tcp->syn = 1;
	if (es_nf_capture_new(&params, &capture, NULL))
		die("queue", 0, NULL);
	set_rules(1, 0, tun.index);
	rc = es_nf_tun_write(&tun, packet, es_nf_compose_end(&flow, tcp, sizeof(*tcp)));
	if (rc)
		die("SYN", rc, NULL);
	printf("%d\n", es_nf_capture_read(capture, let_pass, NULL));
	es_nf_capture_free(&capture);
	return 0;
}

static enum es_nf_fate decide(void *ctx, const struct es_nf_frame *frame)
{
	(void)frame;
	return *(enum es_nf_fate *)ctx;
}

/* Sends a packet with these flags and @len bytes. Returns how many packets come to the queue. */
static int comes(struct es_nf_capture *capture, const struct es_flow *flow, const struct es_nf_tun *tun,
		 __u8 flags, size_t len, enum es_nf_fate fate)
{
	__u8 ES_NF_ALIGNED packet[64] = {};
	struct tcphdr *tcp = es_nf_compose(flow, NULL, sizeof(*tcp), sizeof(*tcp) + len, packet);
	int rc;

	((__u8 *)tcp)[13] = flags;
	rc = es_nf_tun_write(tun, packet, es_nf_compose_end(flow, tcp, sizeof(*tcp) + len));
	if (rc)
		die("packet", rc, NULL);
	return es_nf_capture_read(capture, decide, &fate);
}

static int is_gone(const char *command)
{
	static const struct {
		size_t len;
		enum es_nf_fate fate;
		__u8 flags;
	} packets[] = {
		{5, ES_NF_DROP_GONE, ES_TCP_ACK},  {5, ES_NF_DROP, ES_TCP_ACK},
		{0, ES_NF_DROP, ES_TCP_ACK},	   {0, ES_NF_DROP, ES_TCP_ACK | ES_TCP_FIN},
		{0, ES_NF_DROP_GIVEN, ES_TCP_SYN}, {0, ES_NF_DROP, ES_TCP_ACK},
		{5, ES_NF_DROP, ES_TCP_ACK},
	};
	const struct es_nf_capture_params params = {.queue = ES_NF_RULES_QUEUE};
	struct es_nf_capture *capture;
	struct es_nf_conntrack ct;
	struct es_nf_tun tun;
	const struct es_flow flow = connect_client(&ct, &tun);
	int rc = es_nf_conntrack_delete(&ct, &flow);

	if (rc)
		die("entry", rc, NULL);
	if (es_nf_capture_new(&params, &capture, NULL))
		die("queue", 0, NULL);
	set_rules(1, 0, tun.index);
	if (command && system(command)) /* NOLINT(cert-env33-c): the test's own */
		die("command", 0, &(struct es_nf_why){"has failed"});
	for (size_t i = 0; i < sizeof(packets) / sizeof(packets[0]); i++)
		printf("%d ", comes(capture, &flow, &tun, packets[i].flags, packets[i].len, packets[i].fate));
	printf("\n");
	es_nf_capture_free(&capture);
	return 0;
}

/* A SYN that nobody sent has come in late. */
static int is_withdrawn(void)
{
	const struct es_nf_capture_params params = {.queue = ES_NF_RULES_QUEUE};
	__u8 ES_NF_ALIGNED packet[64];
	struct es_nf_capture *capture;
	struct es_nf_conntrack ct;
	struct es_nf_tun tun;
	const struct es_flow flow = connect_client(&ct, &tun);
	const struct es_nf_expected expected = {.flow = flow, .socket = flow, .first_seq = 1, .is_making = 1};
	struct tcphdr *tcp = es_nf_compose(&flow, NULL, sizeof(*tcp), sizeof(*tcp), packet);
	size_t len;
	int rc;

	tcp->ack = tcp->psh = 1;
	len = es_nf_compose_end(&flow, tcp, sizeof(*tcp));
	if (es_nf_capture_new(&params, &capture, NULL))
		die("queue", 0, NULL);
	for (gate = ES_NF_GATE_NONE; gate <= ES_NF_GATE_OPEN; gate++) {
		const char *answer;

		set_rules(1, 1, tun.index);
		rc = es_nf_conntrack_delete(&ct, &flow);
		if (!rc)
			es_nf_conntrack_expect(&ct, &expected, 1, &rc);
		if (rc)
			die("entry", rc, NULL);
		if (es_nf_withdraw(&ct, &flow, 1) != 1)
			die("withdrawn", 0, &(struct es_nf_why){"is not certain"});
		answer = say(&flow, &tun, ES_TCP_SYN | ES_TCP_ACK);
		if (es_nf_is_withdrawn(&ct, &flow, 1))
			die("withdrawn", 0, &(struct es_nf_why){"is certain still, though it was answered"});
		rc = es_nf_tun_write(&tun, packet, len);
		if (rc)
			die("packet", rc, NULL);
		printf("%s %d\n", answer, es_nf_capture_read(capture, let_pass, NULL));
	}
	es_nf_capture_free(&capture);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc >= 2 ? argv[1] : "";
	int rc = es_nf_netlink_open(&nl, NETLINK_NETFILTER);

	if (rc)
		die("netlink", rc, NULL);
	switch_on_loopback();
	if (!strcmp(what, "held"))
		return is_held();
	if (!strcmp(what, "making"))
		return is_making();
	if (!strcmp(what, "gone"))
		return is_gone(argc == 3 ? argv[2] : NULL);
	if (!strcmp(what, "withdrawn"))
		return is_withdrawn();
	return !strcmp(what, "known") ? is_known() : waits(what);
}
