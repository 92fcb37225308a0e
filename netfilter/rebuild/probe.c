// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Makes a connection in a thread's own network namespace, which vanishes with the thread. The server's
 * answers leave by the tun device by which the client's packets came in, since it has the default route.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ip.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "netfilter/kernel/compose.h"
#include "netfilter/rebuild/probe.h"
#include "netfilter/rebuild/rebuild.h"
#include "netfilter/rules/hook.h"
#include "netfilter/rules/ingress.h"
#include "netfilter/rules/translation.h"

#define ES_LO	       1 /* its index in a new namespace */
#define ES_PATIENCE_MS 1000
#define ES_REQUEST     "request"
#define ES_ANSWER      "answer"
#define ES_CLIENT_ISN  0x10203040U
#define ES_COOKIE      0xfffffff0U /* so that numbers wrap soon */
#define ES_CLIENT_TS   1000U
#define ES_COOKIE_TS   2000U

struct world {
	struct es_nf_why *why;
	struct es_nf_tun tun;
	struct es_nf_hook hook;
	struct es_nf_rebuild rebuild;
	int translates;
	int has_v6;
	int rc;
};

static __u64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (__u64)now.tv_sec * 1000000000ULL + (__u64)now.tv_nsec;
}

/* Addresses for documentation (RFC 5737, RFC 3849). */
static struct es_flow flow_of(int family)
{
	struct es_flow flow = {
		.client = es_addr_from_v4(inet_addr("198.51.100.1")),
		.service = es_addr_from_v4(inet_addr("192.0.2.1")),
		.client_port = htons(40000),
		.service_port = htons(80),
	};

	if (family == AF_INET6) {
		inet_pton(AF_INET6, "2001:db8:1::1", &flow.client);
		inet_pton(AF_INET6, "2001:db8::1", &flow.service);
	}
	return flow;
}

static int switch_lo_on(struct es_nf_netlink *nl)
{
	char buf[128];
	struct nlmsghdr *nlh = es_nf_netlink_put(nl, buf, RTM_NEWLINK, NLM_F_ACK);
	struct ifinfomsg *link = mnl_nlmsg_put_extra_header(nlh, sizeof(*link));

	link->ifi_index = ES_LO;
	link->ifi_flags = link->ifi_change = IFF_UP;
	return es_nf_netlink_talk(nl, nlh, NULL, NULL);
}

static int add_route(struct es_nf_netlink *nl, int family, unsigned char type, const void *dest, size_t len,
		     unsigned int index)
{
	char buf[256];
	struct nlmsghdr *nlh = es_nf_netlink_put(nl, buf, RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE);
	struct rtmsg *route = mnl_nlmsg_put_extra_header(nlh, sizeof(*route));

	route->rtm_family = (__u8)family;
	route->rtm_dst_len = (__u8)(len * 8);
	route->rtm_table = type == RTN_LOCAL ? RT_TABLE_LOCAL : RT_TABLE_MAIN;
	route->rtm_protocol = RTPROT_STATIC;
	route->rtm_scope = type == RTN_LOCAL ? RT_SCOPE_HOST : RT_SCOPE_LINK;
	route->rtm_type = type;
	if (len)
		mnl_attr_put(nlh, RTA_DST, len, dest);
	mnl_attr_put_u32(nlh, RTA_OIF, index);
	return es_nf_netlink_talk(nl, nlh, NULL, NULL);
}

/* A route makes an address local at once. An IPv6 address would make its route only later. */
static int set_network_up(struct world *world, int family)
{
	struct es_flow flow = flow_of(family);
	struct es_nf_netlink nl;
	int rc = es_nf_netlink_open(&nl, NETLINK_ROUTE);

	if (rc)
		return rc;
	rc = switch_lo_on(&nl);
	if (!rc)
		rc = family == AF_INET ? add_route(&nl, family, RTN_LOCAL, &flow.service.w[3], 4, ES_LO)
				       : add_route(&nl, family, RTN_LOCAL, &flow.service, 16, ES_LO);
	if (!rc)
		rc = add_route(&nl, family, RTN_UNICAST, NULL, 0, world->tun.index);
	es_nf_netlink_close(&nl);
	return rc;
}

/* The flow of the server's socket. */
static struct es_flow socket_of(const struct world *world, int family)
{
	struct es_flow flow = flow_of(family);

	if (world->translates) {
		flow.service = es_nf_translation_address(family == AF_INET6, 0);
		flow.service_port = htons(8080);
	}
	return flow;
}

static int listen_at(int family, __be16 port)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = port};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = port};
	int is_v4 = family == AF_INET, fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc, yes = 1;

	if (fd < 0)
		return -errno;
	if (!is_v4)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
	if (!bind(fd, is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6,
		  is_v4 ? sizeof(v4) : sizeof(v6)) &&
	    !listen(fd, 1))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* The first packet after a handshake. Returns its length. */
static size_t make_request(const struct es_flow *flow, __u8 *ret_packet)
{
	size_t header = sizeof(struct tcphdr) + ES_TIMESTAMP_OPTION_LEN, len = header + strlen(ES_REQUEST);
	struct tcphdr *tcp = es_nf_compose(flow, NULL, len, header, ret_packet);

	tcp->seq = htonl(ES_CLIENT_ISN + 1);
	tcp->ack_seq = htonl(ES_COOKIE + 1);
	tcp->ack = tcp->psh = 1;
	tcp->window = htons(500);
	es_timestamp_option_write((__u8 *)(tcp + 1), ES_CLIENT_TS, ES_COOKIE_TS);
	memcpy((__u8 *)tcp + header, ES_REQUEST, strlen(ES_REQUEST));
	return es_nf_compose_end(flow, tcp, len);
}

static int wait_for(int fd, __u64 until_ns)
{
	struct pollfd wanted = {.fd = fd, .events = POLLIN};
	__u64 now = now_ns();

	return now < until_ns && poll(&wanted, 1, (int)((until_ns - now) / 1000000 + 1)) > 0;
}

/*
 * The client must get the server's packets with the numbers and the clock of the handshake that the client
 * knows.
 */
static int judge_answer(const struct world *world, const struct es_segment *seg)
{
	__u32 clock = seg->tsval - (ES_COOKIE_TS + ES_REBUILD_CLOCK_AHEAD_MS);

	if (seg->seq != ES_COOKIE + 1)
		return es_nf_why(world->why, -EOPNOTSUPP,
				 "the kernel does not shift sequence numbers of connections "
				 "made by ctnetlink (got %u, not %u)",
				 seg->seq, ES_COOKIE + 1);
	if (seg->ack != ES_CLIENT_ISN + 1 + strlen(ES_REQUEST))
		return es_nf_why(world->why, -EOPNOTSUPP, "the answer acknowledges %u", seg->ack);
	if (!seg->has_ts || seg->tsecr != ES_CLIENT_TS || clock > 2 * ES_PATIENCE_MS)
		return es_nf_why(world->why, -EOPNOTSUPP,
				 "the SYNPROXY hook does not shift timestamps (TSval %u, TSecr %u)",
				 seg->tsval, seg->tsecr);
	return 0;
}

static int hear_answer(const struct world *world)
{
	__u64 until_ns = now_ns() + ES_PATIENCE_MS * 1000000ULL;
	__u8 packet[2048];

	while (wait_for(world->tun.fd, until_ns)) {
		/* It goes the other way, but is read alike. */
		struct es_nf_request heard = {.packet = packet};
		ssize_t got = read(world->tun.fd, packet, sizeof(packet));

		if (got <= 0)
			continue;
		heard.len = (size_t)got;
		if (es_nf_request_read(&heard))
			continue;
		if (heard.seg.flags & ES_TCP_RST)
			return es_nf_why(world->why, -EOPNOTSUPP, "the kernel resets what was made");
		if (heard.seg.len && heard.flow.client_port != flow_of(AF_INET).service_port)
			return es_nf_why(world->why, -EOPNOTSUPP, "the server's answer comes from elsewhere");
		if (heard.seg.len)
			return judge_answer(world, &heard.seg);
	}
	return es_nf_why(world->why, -EOPNOTSUPP, "the server's answer does not leave");
}

static int serve(const struct world *world, int listener)
{
	__u64 until_ns = now_ns() + ES_PATIENCE_MS * 1000000ULL;
	char text[64];
	int rc, fd = wait_for(listener, until_ns)
			     ? accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)
			     : -1;

	if (fd < 0)
		return es_nf_why(world->why, -EOPNOTSUPP,
				 "the SYNPROXY hook does not finish handshakes of entries made by ctnetlink");
	if (!wait_for(fd, until_ns) || recv(fd, text, sizeof(text), 0) != (ssize_t)strlen(ES_REQUEST))
		rc = es_nf_why(world->why, -EOPNOTSUPP, "the server does not get the request");
	else if (send(fd, ES_ANSWER, strlen(ES_ANSWER), MSG_NOSIGNAL) < 0)
		rc = es_nf_why(world->why, -errno, "the server cannot answer: %m");
	else
		rc = hear_answer(world);
	close(fd);
	return rc;
}

static int try_family(struct world *world, int family)
{
	__u8 ES_NF_ALIGNED packet[ES_NF_MADE_MAX + sizeof(ES_REQUEST)];
	struct es_flow flow = flow_of(family);
	struct es_nf_request request = {
		.packet = packet,
		.len = make_request(&flow, packet),
		.options = {.mss = 1400,
			    .snd_wscale = 7,
			    .rcv_wscale = 7,
			    .wscale_ok = 1,
			    .sack_ok = 1,
			    .tstamp_ok = 1},
	};
	int rc = set_network_up(world, family), listener;

	if (rc)
		return es_nf_why(world->why, rc, "a scratch network cannot be set up: %s", strerror(-rc));
	listener = listen_at(family, socket_of(world, family).service_port);
	if (listener < 0)
		return es_nf_why(world->why, listener, "a server cannot listen: %s", strerror(-listener));
	rc = es_nf_request_read(&request);
	request.socket = socket_of(world, family);
	if (!rc)
		rc = es_nf_rebuild(&world->rebuild, &request, now_ns());
	if (rc)
		es_nf_why(world->why, rc, "ctnetlink refuses an entry (CONFIG_NF_CT_NETLINK): %s",
			  strerror(-rc));
	else
		rc = serve(world, listener);
	close(listener);
	return rc;
}

/* For IPv4 at least, as everything else. */
static int set_translation(struct world *world, struct es_nf_netlink *nl)
{
	struct es_nf_rules rules = {
		.address = {flow_of(AF_INET).service, flow_of(AF_INET6).service},
		.server = {es_nf_translation_address(0, 0), es_nf_translation_address(1, 0)}};
	struct es_nf_translation translation;

	rules.count = rules.server_count = world->hook.has_v6 ? 2 : 1;
	return es_nf_translation_set(nl, &rules, &translation, world->why);
}

static int try_both(struct world *world)
{
	const struct es_nf_hook_device device = {world->tun.name, world->tun.is_marked, 0};
	struct es_nf_rebuild_settings settings = {.copies = 4};
	struct es_nf_netlink nl;
	struct es_nf_why none;
	int rc = es_nf_netlink_open(&nl, NETLINK_NETFILTER);

	if (rc)
		return es_nf_why(world->why, rc, "nfnetlink (CONFIG_NETFILTER_NETLINK): %s", strerror(-rc));
	rc = es_nf_hook_set(&nl, &device, &world->hook, world->why);
	if (!rc && world->translates)
		rc = set_translation(world, &nl);
	es_nf_netlink_close(&nl);
	if (rc)
		return rc;
	settings.has_label = world->hook.has_label;
	rc = es_nf_rebuild_open(&world->rebuild, &world->tun, &settings, world->why);
	if (rc)
		return rc;
	rc = try_family(world, AF_INET);
	if (!rc && world->hook.has_v6) {
		struct es_nf_why *why = world->why;

		world->why = &none;
		world->has_v6 = !try_family(world, AF_INET6);
		world->why = why;
	}
	es_nf_rebuild_close(&world->rebuild);
	return rc;
}

/* Returns 0 or -errno, with @why. */
static int enter_scratch(const struct world *world)
{
	return unshare(CLONE_NEWNET) ? es_nf_why(world->why, -errno, "no network namespace to try it in: %m")
				     : 0;
}

static void *run(void *data)
{
	struct world *world = data;

	world->rc = enter_scratch(world);
	if (!world->rc)
		world->rc = es_nf_tun_open(&world->tun, ES_NF_TUN_NAME, world->why);
	if (world->rc)
		return NULL;
	world->rc = try_both(world);
	es_nf_tun_close(&world->tun);
	return NULL;
}

static void *run_ingress(void *data)
{
	const struct es_nf_rules rules = {
		.public_ifindex = ES_LO, .is_unicast = 1, .count = 1, .address = {flow_of(AF_INET).service}};
	struct world *world = data;
	struct es_nf_whole whole;
	struct es_nf_netlink nl;

	world->rc = enter_scratch(world);
	if (world->rc)
		return NULL;
	world->rc = es_nf_netlink_open(&nl, NETLINK_NETFILTER);
	if (world->rc) {
		es_nf_why(world->why, world->rc, "nfnetlink (CONFIG_NETFILTER_NETLINK): %s",
			  strerror(-world->rc));
		return NULL;
	}
	world->rc = es_nf_ingress_follow(&nl, &rules, 1, &whole, world->why);
	es_nf_netlink_close(&nl);
	return NULL;
}

/* In a thread whose namespace vanishes with it. */
static int run_apart(void *(*what)(void *), struct world *world)
{
	sigset_t all, before;
	pthread_t thread;
	int rc;

	sigfillset(&all); /* signals are for other threads */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = -pthread_create(&thread, NULL, what, world);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc)
		return es_nf_why(world->why, rc, "no thread: %s", strerror(-rc));
	pthread_join(thread, NULL);
	return world->rc;
}

int es_nf_probe(int *ret_has_v6, struct es_nf_why *why)
{
	struct world world = {.why = why};
	int rc = run_apart(run, &world);

	if (ret_has_v6)
		*ret_has_v6 = world.has_v6;
	return rc;
}

int es_nf_probe_ingress(struct es_nf_why *why)
{
	struct world world = {.why = why};

	return run_apart(run_ingress, &world);
}

int es_nf_probe_translation(struct es_nf_why *why)
{
	struct world world = {.why = why, .translates = 1};

	return run_apart(run, &world);
}
