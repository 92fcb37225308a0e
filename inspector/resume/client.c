// SPDX-License-Identifier: GPL-2.0-or-later
/* Asks a client how much it has, and listens for what it says. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include "inspector/base/clock.h"
#include "inspector/packet/packet.h"
#include "inspector/resume/client.h"

#define PACKET_MAX 65535 /* the network card may have merged what a client has sent */

/* Packets of TCP from one client's address and port to one port: offsets are those of the IP header. */
static int filter_v4(int fd, const struct es_flow *flow)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x45, 0, 9),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 9),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 0, 7),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 12),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, es_ntohl(flow->client.w[3]), 0, 5),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 20),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, es_ntohs(flow->client_port), 0, 3),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 22),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, es_ntohs(flow->service_port), 0, 1),
		BPF_STMT(BPF_RET | BPF_K, PACKET_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) ? -errno : 0;
}

/* Extension headers may stand before TCP: the address is enough, and the packet is read anyway. */
static int filter_v6(int fd, const struct es_flow *flow)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 6, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 16),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, es_ntohl(flow->client.w[2]), 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 20),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, es_ntohl(flow->client.w[3]), 0, 1),
		BPF_STMT(BPF_RET | BPF_K, PACKET_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) ? -errno : 0;
}

/* Returns a packet socket that hears the client, or -errno. */
static int listen_to(const struct es_flow *flow)
{
	const struct sockaddr_ll all = {.sll_family = AF_PACKET, .sll_protocol = es_htons(ETH_P_ALL)};
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return -errno;
	/* The filter first, or others' packets would be there already. */
	rc = es_addr_is_v4(&flow->client) ? filter_v4(fd, flow) : filter_v6(fd, flow);
	if (!rc && bind(fd, (const struct sockaddr *)&all, sizeof(all)))
		rc = -errno;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

static int flows_are_equal(const struct es_flow *a, const struct es_flow *b)
{
	return es_addr_equal(&a->client, &b->client) && es_addr_equal(&a->service, &b->service) &&
	       a->client_port == b->client_port && a->service_port == b->service_port;
}

/* The network pads short frames. */
static size_t packet_len(const uint8_t *bytes, size_t len)
{
	size_t at = bytes[0] >> 4 == 6 ? 4 : 2, total;

	if (len < 40)
		return 0;
	total = (size_t)(bytes[at] << 8 | bytes[at + 1]) + (at == 4 ? 40 : 0);
	return total < len ? total : len;
}

/*
 * Is it a segment that tells how much the client has? Returns 1, -ECONNRESET for a RST, 0 if it is not: one
 * that begins before the end of the request asks whether we are there, or comes late.
 */
static int segment_read(const struct es_download *d, const uint8_t *bytes, size_t len,
			struct es_resume_client *ret)
{
	struct es_ip_packet packet;

	if (es_ip_packet_parse(bytes, packet_len(bytes, len), &packet) ||
	    !flows_are_equal(&packet.flow, &d->flow) || (packet.seg.flags & ES_TCP_SYN))
		return 0;
	if (packet.seg.flags & ES_TCP_RST)
		return -ECONNRESET;
	if (!(packet.seg.flags & ES_TCP_ACK) || es_seq_before(packet.seg.seq, d->next_request_seq))
		return 0;
	*ret = (struct es_resume_client){
		.seq = packet.seg.seq,
		.ack = packet.seg.ack,
		.tsval = packet.seg.tsval,
		.tsecr = packet.seg.tsecr,
		.window = (__u16)(packet.bytes[packet.ip_len + 14] << 8 | packet.bytes[packet.ip_len + 15]),
		.has_ts = packet.seg.has_ts,
		.has_more = packet.seg.len || (packet.seg.flags & ES_TCP_FIN),
	};
	return 1;
}

/* Waits for @ms at the most. Returns as segment_read(), 0: nothing was heard. */
static int hear(int fd, const struct es_download *d, unsigned int ms, struct es_resume_client *ret)
{
	unsigned long long now_ns = es_clock_now_ns(), until_ns = now_ns + ms * 1000000ULL;
	uint8_t bytes[PACKET_MAX];

	for (; now_ns < until_ns; now_ns = es_clock_now_ns()) {
		struct pollfd one = {.fd = fd, .events = POLLIN};
		ssize_t len;
		int rc;

		if (poll(&one, 1, (int)((until_ns - now_ns) / 1000000) + 1) <= 0)
			continue;
		len = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		rc = len > 0 ? segment_read(d, bytes, (size_t)len, ret) : 0;
		if (rc)
			return rc;
	}
	return 0;
}

/*
 * A segment without payload from before the response: whatever of it the client has, it has had that. Its
 * timestamp is no earlier than any that the lost node has sent: Linux answers nothing to an acknowledgment
 * from the past since 6.14 (tcp_validate_incoming()), and what is before the window sets no clock.
 */
static int probe_send(const struct es_raw *raw, const struct es_download *d)
{
	const struct es_ip_packet from = {
		.flow = d->flow,
		/* An answer's timestamp is what its packet has echoed. */
		.seg = {.ack = d->response_seq - 1,
			.has_ts = d->options.tstamp_ok,
			.tsecr = d->tsval + ES_RESUME_CLOCK_AHEAD},
	};
	uint8_t probe[ES_ANSWER_HEADER_MAX];
	size_t len = es_ip_packet_answer(&from, d->next_request_seq, ES_TCP_ACK, probe, 0, probe);

	return es_raw_send(raw, &d->flow, probe, len);
}

int es_resume_ask(const struct es_raw *raw, const struct es_download *d, struct es_resume_client *ret)
{
	int fd = listen_to(&d->flow), rc = 0;

	if (fd < 0)
		return fd;
	for (unsigned int i = 0; i < ES_RESUME_ASKS && !rc; i++) {
		probe_send(raw, d); /* the next one makes up for one that is lost */
		rc = hear(fd, d, ES_RESUME_ASK_MS, ret);
	}
	close(fd);
	return rc > 0 ? 0 : rc ? rc : -ETIMEDOUT;
}

int es_resume_reset(const struct es_raw *raw, const struct es_download *d, __u32 seq)
{
	const struct es_ip_packet from = {.flow = d->flow, .seg = {.ack = seq}};
	uint8_t rst[ES_RESET_MAX];

	return es_raw_send(raw, &d->flow, rst, es_ip_packet_reset(&from, rst));
}
