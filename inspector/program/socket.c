// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The socket of a program that hands its connection over, by socket options and the datapath's look at it
 * alone. move.c decides where the connection goes, and when.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "inspector/program/socket.h"
#include "inspector/packet/packet.h"

#define SOL_TLS_LEVEL	      282 /* libc's headers have it later than the kernel */
#define TCP_STATE_ESTABLISHED 1
#define TCP_STATE_CLOSE_WAIT  8

static int es_option_get(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int value = 0;

	return getsockopt(fd, level, name, &value, &len) ? -errno : value;
}

static int es_option_set(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) ? -errno : 0;
}

/* Reads an address of the kernel's; an IPv6 socket that speaks IPv4 has mapped ones. */
static int es_address_of(const struct sockaddr_storage *from, struct es_addr *ret_address, __be16 *ret_port)
{
	if (from->ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)from;

		*ret_address = es_addr_from_v4(in->sin_addr.s_addr);
		*ret_port = in->sin_port;
		return 0;
	}
	if (from->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;

		memcpy(ret_address, &in6->sin6_addr, sizeof(*ret_address));
		*ret_port = in6->sin6_port;
		return 0;
	}
	return -EOPNOTSUPP;
}

static int es_flow_of(int fd, struct es_flow *ret)
{
	struct sockaddr_storage local = {}, remote = {};
	socklen_t local_len = sizeof(local), remote_len = sizeof(remote);
	int rc;

	if (getsockname(fd, (struct sockaddr *)&local, &local_len) ||
	    getpeername(fd, (struct sockaddr *)&remote, &remote_len))
		return -errno;
	rc = es_address_of(&local, &ret->service, &ret->service_port);
	return rc ? rc : es_address_of(&remote, &ret->client, &ret->client_port);
}

/* For kernels before 5.14. */
static int es_netns_is_ours_by_file(int fd)
{
	struct stat theirs = {}, ours = {};
	int namespace = ioctl(fd, SIOCGSKNS), rc;

	if (namespace < 0)
		return 0;
	rc = fstat(namespace, &theirs) || stat("/proc/thread-self/ns/net", &ours);
	close(namespace);
	return !rc && theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

static uint64_t es_netns_cookie(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	return getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &len) ? 0 : cookie;
}

/* Is it a socket of the namespace that the datapath looks into? */
static int es_netns_is_ours(int fd)
{
	static uint64_t ours; /* of the daemon's life */
	uint64_t theirs = es_netns_cookie(fd);
	int own;

	if (theirs && !ours) {
		own = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		ours = es_netns_cookie(own);
		close(own);
	}
	return theirs && ours ? theirs == ours : es_netns_is_ours_by_file(fd);
}

/*
 * Does the kernel protect what is sent, and nothing else? When all of that is acknowledged there is nothing
 * left of it that would have to move along, but what the program knows.
 */
static int es_socket_sends_tls(int fd)
{
	struct tls_crypto_info info;
	socklen_t len = sizeof(info);

	return getsockopt(fd, SOL_TLS_LEVEL, TLS_RX, &info, &len) && errno == EBUSY;
}

/*
 * Anything between the program and the stream, or in front of the socket, would not move along. Only a
 * program that @knows_tls has the records that it has sent.
 */
static int es_socket_is_plain(int fd, int knows_tls, int *ret_sends_tls)
{
	struct sock_filter filter[1];
	socklen_t filter_len = 0;
	char ulp[16] = "";
	socklen_t ulp_len = sizeof(ulp);

	if (es_option_get(fd, SOL_SOCKET, SO_PROTOCOL) != IPPROTO_TCP ||
	    getsockopt(fd, IPPROTO_TCP, TCP_ULP, ulp, &ulp_len))
		return 0;
	*ret_sends_tls = ulp_len && knows_tls && !strcmp(ulp, "tls") && es_socket_sends_tls(fd);
	if (ulp_len && !*ret_sends_tls)
		return 0;
	/* In: room for how many instructions; out: how many there are. */
	return !getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, filter, &filter_len) && !filter_len;
}

static int es_info_get(int fd, struct tcp_info *ret)
{
	socklen_t len = sizeof(*ret);

	memset(ret, 0, sizeof(*ret));
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, ret, &len) ? -EOPNOTSUPP : 0;
}

int es_program_socket_init(struct es_program_socket *c, int fd, uint8_t *bytes, size_t len)
{
	struct tcp_info info;
	int rc;

	*c = (struct es_program_socket){.front = c->front};
	/* A program that goes on elsewhere with something of its own knows the records that it has sent. */
	if (!es_socket_is_plain(fd, c->front != 0, &c->sends_tls) || !es_netns_is_ours(fd))
		return -EOPNOTSUPP;
	rc = es_info_get(fd, &info);
	if (rc)
		return rc;
	if (info.tcpi_state != TCP_STATE_ESTABLISHED)
		return info.tcpi_state == TCP_STATE_CLOSE_WAIT ? -EPIPE : -ENOTCONN;
	rc = es_flow_of(fd, &c->flow);
	if (rc)
		return rc;
	c->fd = fd;
	c->bytes = bytes;
	c->len = c->given = len;
	return 0;
}

void es_program_socket_fini(struct es_program_socket *c)
{
	free(c->bytes);
	c->bytes = NULL;
}

int es_program_socket_look(struct es_program_socket *c, struct es_datapath *datapath)
{
	int rc = es_datapath_connection(datapath, &c->flow, &c->state, &c->clock_ahead);
	uint32_t unread;

	if (rc)
		return rc;
	if (c->state.write_seq != c->state.snd_una)
		return -EBUSY;
	unread = c->state.rcv_nxt - c->state.copied_seq;
	if (unread > ES_PROGRAM_UNREAD_MAX)
		return -EMSGSIZE;
	if (c->given > c->state.bytes_received - unread + c->front)
		return -EINVAL;
	c->first_seq = c->state.copied_seq - (uint32_t)c->given;
	return 0;
}

/*
 * A program that drops all. One for all sockets: a classic filter is compiled anew for each, which takes
 * longer than all else of freezing. Returns -1 if the kernel does not load it.
 */
static int es_dropper(void)
{
	static const struct bpf_insn drop[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	static int fd = -2;
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
		.insns = (uintptr_t)drop,
		.insn_cnt = sizeof(drop) / sizeof(drop[0]),
		.license = (uintptr_t) "GPL",
	};

	if (fd == -2)
		fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	return fd;
}

static int es_drop_all(int fd)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog program = {.len = 1, .filter = &drop};
	int dropper = es_dropper();

	if (dropper >= 0 && !es_option_set(fd, SOL_SOCKET, SO_ATTACH_BPF, dropper))
		return 0;
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) ? -errno : 0;
}

int es_program_socket_freeze(struct es_program_socket *c)
{
	int rc;

	c->reuse = es_option_get(c->fd, SOL_SOCKET, SO_REUSEADDR);
	rc = es_drop_all(c->fd);
	if (rc)
		return rc;
	rc = es_option_set(c->fd, IPPROTO_TCP, TCP_REPAIR, TCP_REPAIR_ON);
	if (rc)
		es_program_socket_thaw(c);
	return rc;
}

void es_program_socket_thaw(struct es_program_socket *c)
{
	int none = 0;

	es_option_set(c->fd, IPPROTO_TCP, TCP_REPAIR, TCP_REPAIR_OFF_NO_WP);
	/* The kernel has taken it away, and the program could not bind its port again while this lives. */
	es_option_set(c->fd, SOL_SOCKET, SO_REUSEADDR, c->reuse > 0);
	setsockopt(c->fd, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none));
}

static int es_options_read(struct es_program_socket *c, const struct tcp_info *info)
{
	int mss = es_option_get(c->fd, IPPROTO_TCP, TCP_MAXSEG); /* in repair: what the client announced */
	int clock = es_option_get(c->fd, IPPROTO_TCP, TCP_TIMESTAMP);

	if (mss < 0)
		return mss;
	if (info->tcpi_state != TCP_STATE_ESTABLISHED)
		return info->tcpi_state == TCP_STATE_CLOSE_WAIT ? -EPIPE : -ENOTCONN;
	c->clock = (uint32_t)clock - c->clock_ahead;
	c->options = (struct es_tcp_options){
		.mss = (__u16)mss,
		.snd_wscale = info->tcpi_snd_wscale,
		.rcv_wscale = info->tcpi_rcv_wscale,
		.wscale_ok = !!(info->tcpi_options & TCPI_OPT_WSCALE),
		.sack_ok = !!(info->tcpi_options & TCPI_OPT_SACK),
		.tstamp_ok = !!(info->tcpi_options & TCPI_OPT_TIMESTAMPS),
		.ecn_ok = !!(info->tcpi_options & TCPI_OPT_ECN),
	};
	return 0;
}

/* Reads so much of the receive queue, after the bytes that were given. */
static int es_unread_read(struct es_program_socket *c, size_t unread)
{
	uint8_t *bytes = realloc(c->bytes, c->given + unread + 1);
	size_t at;
	ssize_t got = 0;

	if (!bytes)
		return -ENOMEM;
	c->bytes = bytes;
	if (unread)
		got = recv(c->fd, bytes + c->given, unread, MSG_PEEK | MSG_DONTWAIT);
	at = got > 0 ? (size_t)got : 0;
	/* Urgent data is not in the queue's order, and cannot be sent on. */
	if (at != unread)
		return -EBUSY;
	c->len = c->given + unread;
	return 0;
}

/* Looks at its state, and notes how many bytes it had received then. */
static int es_state_read(struct es_program_socket *c, struct es_datapath *datapath, struct tcp_info *ret_info)
{
	uint64_t before;
	int rc;

	do {
		rc = es_info_get(c->fd, ret_info);
		before = ret_info->tcpi_bytes_received;
		if (!rc)
			rc = es_program_socket_look(c, datapath);
		if (!rc)
			rc = es_info_get(c->fd, ret_info);
	} while (!rc && ret_info->tcpi_bytes_received != before);
	c->received = before;
	return rc;
}

int es_program_socket_read(struct es_program_socket *c, struct es_datapath *datapath)
{
	struct tcp_info info;
	/*
	 * This waits for any system call on the socket, and for the packets that such a call has held back
	 * from the socket: after it, the program changes nothing any more.
	 */
	int rc = es_option_set(c->fd, IPPROTO_TCP, TCP_REPAIR_QUEUE, TCP_RECV_QUEUE);

	if (rc)
		return rc;
	rc = es_state_read(c, datapath, &info);
	if (!rc)
		rc = es_options_read(c, &info);
	if (!rc)
		rc = es_unread_read(c, c->state.rcv_nxt - c->state.copied_seq);
	es_option_set(c->fd, IPPROTO_TCP, TCP_REPAIR_QUEUE, TCP_NO_QUEUE);
	return rc;
}

int es_program_socket_late(struct es_program_socket *c)
{
	struct tcp_info info;
	uint64_t late;
	/* It waits for system calls on the socket, and for the packets that these hold back. */
	int rc = es_info_get(c->fd, &info);

	if (rc)
		return rc;
	/* The client has reset it. Its successor will hear so when it says something. */
	c->is_over = info.tcpi_state != TCP_STATE_ESTABLISHED && info.tcpi_state != TCP_STATE_CLOSE_WAIT;
	if (c->is_over)
		return 0;
	c->has_fin = info.tcpi_state == TCP_STATE_CLOSE_WAIT;
	c->looked_nxt = c->state.rcv_nxt + (uint32_t)(info.tcpi_bytes_received - c->received);
	late = info.tcpi_bytes_received - c->received - (c->has_fin != 0);
	if (!late)
		return 0;
	rc = es_option_set(c->fd, IPPROTO_TCP, TCP_REPAIR_QUEUE, TCP_RECV_QUEUE);
	if (!rc)
		rc = es_unread_read(c, c->len - c->given + late);
	es_option_set(c->fd, IPPROTO_TCP, TCP_REPAIR_QUEUE, TCP_NO_QUEUE);
	return rc;
}

int es_program_socket_vanish(struct es_program_socket *c, struct es_datapath *datapath)
{
	const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
	int rc;

	if (c->is_gone)
		return 0;
	rc = es_datapath_vanish(datapath, &c->flow);
	/*
	 * The kernel does not disconnect what has its record layer. Frozen as it is, it ends without a packet
	 * when the last descriptor is closed, as the program does when it hears the result.
	 */
	if (!rc && !c->sends_tls && connect(c->fd, &nobody, sizeof(nobody)))
		rc = -errno;
	c->is_gone = !rc;
	return rc;
}

int es_program_socket_missed(const struct es_program_socket *c)
{
	int nxt;

	if (c->is_over || c->sends_tls)
		return 0;
	/* A disconnected socket has lost its bytes, but not its numbers. */
	if (es_option_set(c->fd, IPPROTO_TCP, TCP_REPAIR_QUEUE, TCP_RECV_QUEUE))
		return 1;
	nxt = es_option_get(c->fd, IPPROTO_TCP, TCP_QUEUE_SEQ);
	return (uint32_t)nxt != c->looked_nxt;
}

size_t es_program_socket_packet(const struct es_program_socket *c, size_t offset, size_t len, int fin,
				uint8_t *ret_packet)
{
	const struct es_segment seg = {
		.seq = c->first_seq + (uint32_t)offset,
		.ack = c->state.write_seq,
		.len = (uint32_t)len,
		.flags = ES_TCP_ACK | (len ? ES_TCP_PSH : 0) | (fin ? ES_TCP_FIN : 0),
		.has_ts = c->options.tstamp_ok,
		.tsval = c->state.ts_recent,
		.tsecr = c->clock,
	};

	return es_ip_packet_make(&c->flow, &seg, c->bytes + offset, ret_packet);
}
