// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * earshot-wire: a length of bad cable. It relays frames between two interfaces (a and b, each the end of a
 * veth pair) and impairs them on the way, for kernels without netem and for figures that a test can check.
 *
 * Frames travel with their virtio_net_hdr, so that what veth leaves undone (checksums, segmentation) stays
 * undone and the far end sees what it would have seen on a plain veth. A frame may therefore be a GSO
 * super-frame: losing it loses all its segments. The lab turns GSO off on links for which that matters.
 *
 * This file is sockets and the event loop; impair.c decides, queue.c keeps waiting frames, control.c talks.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lab/wire/control.h"
#include "lab/wire/impair.h"
#include "lab/wire/queue.h"

#define BATCH		    64
#define FRAME_MAX	    (sizeof(struct virtio_net_hdr) + ETH_HLEN + 4 + 65536)
#define SOCKET_BUFFER_BYTES (64 << 20)

/* Frames on their way out in one system call. */
struct batch {
	struct mmsghdr messages[BATCH];
	struct iovec vectors[BATCH];
	struct es_wire_frame *frames[BATCH]; /* to free afterwards, or NULL */
	unsigned int count;
};

struct wire {
	struct es_wire_link link;
	int sockets[ES_WIRE_SIDES]; /* [A2B] is the socket at a, which that direction reads; the other one
				       writes */
	struct es_wire_queue queues[ES_WIRE_SIDES];
	struct batch out[ES_WIRE_SIDES];
	unsigned char (*buffers)[FRAME_MAX];
	int epoll, timer, signals, control;
	const char *control_path;
	const char *stats_path;
	int stop;
};

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A packet socket that sees every frame that comes in at @interface and none that goes out. */
static int packet_socket(const char *interface)
{
	struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	struct packet_mreq promiscuous = {.mr_type = PACKET_MR_PROMISC};
	const int on = 1, bytes = SOCKET_BUFFER_BYTES;
	int fd;

	address.sll_ifindex = promiscuous.mr_ifindex = (int)if_nametoindex(interface);
	if (!address.sll_ifindex)
		return -errno;
	/* Protocol 0: nothing arrives before the options are set. */
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof(promiscuous)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address))) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

static void flush(struct wire *wire, int side)
{
	struct es_wire_counters *counters = &wire->link.directions[side].counters;
	struct batch *out = &wire->out[side];
	unsigned int done = 0, i;

	while (done < out->count) {
		int n = sendmmsg(wire->sockets[!side], out->messages + done, out->count - done, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n > 0) {
			counters->sent += (unsigned int)n;
			done += (unsigned int)n;
		} else {
			/* The far interface is down, or the kernel has no room: that frame is lost, as on a
			 * cable. */
			counters->send_failed++;
			done++;
		}
	}
	for (i = 0; i < out->count; i++)
		free(out->frames[i]);
	out->count = 0;
}

/* @frame: what to free when the bytes have been sent, or NULL. */
static void send_later(struct wire *wire, int side, void *bytes, size_t size, struct es_wire_frame *frame)
{
	struct batch *out = &wire->out[side];
	unsigned int i = out->count++;

	out->frames[i] = frame;
	out->vectors[i] = (struct iovec){.iov_base = bytes, .iov_len = size};
	out->messages[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &out->vectors[i], .msg_iovlen = 1}};
	if (out->count == BATCH)
		flush(wire, side);
}

static void send_due(struct wire *wire, int side, uint64_t now_ns)
{
	struct es_wire_frame *frame;

	while ((frame = es_wire_queue_remove(&wire->queues[side], now_ns)))
		send_later(wire, side, frame->bytes, frame->size, frame);
	flush(wire, side);
}

static void relay(struct wire *wire, int side, void *bytes, size_t size, uint64_t now_ns)
{
	struct es_wire_direction *direction = &wire->link.directions[side];
	struct es_wire_queue *queue = &wire->queues[side];
	struct es_wire_verdict verdict;
	unsigned int i;

	verdict = es_wire_impair(direction, size - sizeof(struct virtio_net_hdr), now_ns);
	for (i = 0; i < verdict.copies; i++) {
		if (verdict.due_ns[i] <= now_ns)
			send_later(wire, side, bytes, size, NULL);
		else if (queue->count >= direction->settings.limit ||
			 es_wire_queue_insert(queue, bytes, size, verdict.due_ns[i]))
			direction->counters.overflow++;
		else
			direction->counters.delayed++;
	}
}

/* Reads one batch; what remains is reported again by epoll. */
static void receive(struct wire *wire, int side)
{
	struct mmsghdr messages[BATCH];
	struct iovec vectors[BATCH];
	uint64_t now_ns;
	int i, n;

	for (i = 0; i < BATCH; i++) {
		vectors[i] = (struct iovec){.iov_base = wire->buffers[i], .iov_len = FRAME_MAX};
		messages[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &vectors[i], .msg_iovlen = 1}};
	}
	/* Errors are none of our business: EAGAIN, or ENETDOWN once after the interface went down. */
	n = recvmmsg(wire->sockets[side], messages, BATCH, MSG_DONTWAIT, NULL);
	if (n <= 0)
		return;
	now_ns = clock_ns();
	send_due(wire, side, now_ns); /* first, or a frame that waited would be overtaken */
	for (i = 0; i < n; i++) {
		if (messages[i].msg_hdr.msg_flags & MSG_TRUNC ||
		    messages[i].msg_len <= sizeof(struct virtio_net_hdr))
			wire->link.directions[side].counters.truncated++;
		else
			relay(wire, side, wire->buffers[i], messages[i].msg_len, now_ns);
	}
	flush(wire, side); /* before the buffers are filled again */
}

static void collect(struct wire *wire)
{
	int side;

	for (side = 0; side < ES_WIRE_SIDES; side++) {
		struct tpacket_stats stats;
		socklen_t size = sizeof(stats);

		if (!getsockopt(wire->sockets[side], SOL_PACKET, PACKET_STATISTICS, &stats, &size))
			wire->link.directions[side].counters.socket_drops += stats.tp_drops;
		wire->link.waiting[side] = wire->queues[side].count;
	}
}

static void write_stats(struct wire *wire)
{
	char answer[ES_WIRE_ANSWER_MAX], path[4096];
	FILE *file;

	if (!wire->stats_path)
		return;
	collect(wire);
	snprintf(path, sizeof(path), "%s.new", wire->stats_path);
	file = fopen(path, "we");
	if (!file) {
		fprintf(stderr, "earshot-wire: %s: %s; no figures written\n", path, strerror(errno));
		return;
	}
	fwrite(answer, 1, es_wire_figures(&wire->link, answer), file);
	if (fclose(file) || rename(path, wire->stats_path))
		fprintf(stderr, "earshot-wire: %s: %s; no figures written\n", wire->stats_path,
			strerror(errno));
}

/* One command per connection; a client that does not send at once is not waited for longer than this. */
static void serve_control(struct wire *wire)
{
	const struct timeval patience = {.tv_usec = 200000};
	char line[ES_WIRE_COMMAND_MAX], answer[ES_WIRE_ANSWER_MAX];
	int fd = accept4(wire->control, NULL, NULL, SOCK_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	n = recv(fd, line, sizeof(line) - 1, 0);
	if (n > 0) {
		line[n] = 0;
		collect(wire);
		send(fd, answer, es_wire_command(&wire->link, line, answer), MSG_NOSIGNAL);
	}
	close(fd);
}

static void serve_signal(struct wire *wire)
{
	struct signalfd_siginfo info;

	if (read(wire->signals, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGUSR1)
		write_stats(wire);
	else
		wire->stop = 1;
}

static void set_timer(struct wire *wire)
{
	uint64_t due_ns = es_wire_queue_due(&wire->queues[ES_WIRE_A2B]);
	struct itimerspec at = {0};

	if (es_wire_queue_due(&wire->queues[ES_WIRE_B2A]) < due_ns)
		due_ns = es_wire_queue_due(&wire->queues[ES_WIRE_B2A]);
	if (due_ns != UINT64_MAX) {
		at.it_value.tv_sec = (time_t)(due_ns / 1000000000);
		at.it_value.tv_nsec = (long)(due_ns % 1000000000);
	}
	timerfd_settime(wire->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

static void run(struct wire *wire)
{
	uint64_t expirations;

	while (!wire->stop) {
		struct epoll_event events[8];
		int i, n = epoll_wait(wire->epoll, events, 8, -1);

		for (i = 0; i < n; i++) {
			int fd = events[i].data.fd;

			if (fd == wire->sockets[ES_WIRE_A2B])
				receive(wire, ES_WIRE_A2B);
			else if (fd == wire->sockets[ES_WIRE_B2A])
				receive(wire, ES_WIRE_B2A);
			else if (fd == wire->control)
				serve_control(wire);
			else if (fd == wire->signals)
				serve_signal(wire);
			else if (read(fd, &expirations, sizeof(expirations)) < 0)
				continue; /* the timer was set anew in the meantime */
		}
		for (i = 0; i < ES_WIRE_SIDES; i++)
			send_due(wire, i, clock_ns());
		set_timer(wire);
	}
}

static int control_socket(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	unlink(path);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 16)) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

static void watch(struct wire *wire, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	if (epoll_ctl(wire->epoll, EPOLL_CTL_ADD, fd, &event)) {
		perror("earshot-wire: epoll_ctl");
		exit(1);
	}
}

static int checked(int fd_or_err, const char *what)
{
	if (fd_or_err < 0) {
		fprintf(stderr, "earshot-wire: %s: %s\n", what, strerror(-fd_or_err));
		exit(1);
	}
	return fd_or_err;
}

static void start(struct wire *wire)
{
	sigset_t signals;
	int side;

	wire->buffers = calloc(BATCH, sizeof(*wire->buffers));
	if (!wire->buffers)
		checked(-ENOMEM, "receive buffers");
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);

	wire->epoll = epoll_create1(EPOLL_CLOEXEC);
	wire->signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	wire->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (wire->epoll < 0 || wire->signals < 0 || wire->timer < 0)
		checked(-errno, "event loop");
	wire->sockets[ES_WIRE_A2B] = checked(packet_socket(wire->link.a), wire->link.a);
	wire->sockets[ES_WIRE_B2A] = checked(packet_socket(wire->link.b), wire->link.b);
	watch(wire, wire->signals);
	watch(wire, wire->timer);
	for (side = 0; side < ES_WIRE_SIDES; side++) {
		/* Different streams from one seed: each direction's losses do not depend on the other's
		 * traffic. */
		es_wire_direction_init(&wire->link.directions[side],
				       wire->link.seed + (uint64_t)side * 0x632be59bd9b4e019ULL);
		watch(wire, wire->sockets[side]);
	}
	printf("earshot-wire: a=%s b=%s seed=%" PRIu64 "\n", wire->link.a, wire->link.b, wire->link.seed);
	fflush(stdout);
	/* Last, for whoever waits for it: the link works by now. */
	if (wire->control_path)
		watch(wire, wire->control = checked(control_socket(wire->control_path), wire->control_path));
}

static void __attribute__((noreturn)) usage(void)
{
	fputs("usage: earshot-wire --a INTERFACE --b INTERFACE [--control SOCKET] [--stats FILE] [--seed "
	      "NUMBER]\n",
	      stderr);
	exit(2);
}

static void parse(struct wire *wire, int argc, char **argv)
{
	static const struct option options[] = {
		{"a", required_argument, NULL, 'a'},	   {"b", required_argument, NULL, 'b'},
		{"control", required_argument, NULL, 'c'}, {"stats", required_argument, NULL, 's'},
		{"seed", required_argument, NULL, 'r'},	   {NULL, 0, NULL, 0},
	};
	int option;
	char *end;

	if (getrandom(&wire->link.seed, sizeof(wire->link.seed), 0) != sizeof(wire->link.seed))
		checked(-errno, "getrandom");
	wire->link.seed &= UINT32_MAX; /* short enough to type */
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'a':
			wire->link.a = optarg;
			break;
		case 'b':
			wire->link.b = optarg;
			break;
		case 'c':
			wire->control_path = optarg;
			break;
		case 's':
			wire->stats_path = optarg;
			break;
		case 'r':
			errno = 0;
			wire->link.seed = strtoull(optarg, &end, 0);
			if (errno || end == optarg || *end)
				usage();
			break;
		default:
			usage();
		}
	}
	if (!wire->link.a || !wire->link.b || optind != argc)
		usage();
}

int main(int argc, char **argv)
{
	static struct wire wire = {.control = -1};
	int side;

	parse(&wire, argc, argv);
	start(&wire);
	run(&wire);
	write_stats(&wire);
	if (wire.control_path)
		unlink(wire.control_path);
	for (side = 0; side < ES_WIRE_SIDES; side++)
		es_wire_queue_fini(&wire.queues[side]);
	free(wire.buffers);
	return 0;
}
