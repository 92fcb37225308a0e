// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The sending side of handovers: builds messages into a batch and sends the batch with sendmmsg(). The
 * receiving side is the datapath (kmod/bpf); only NACKs come back to userspace, and the kernels' word that a
 * message was not received.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <netinet/in.h>
#include <linux/udp.h>
#include <linux/errqueue.h> /* wants <time.h> */
#include "inspector/base/wall.h"
#include "inspector/handover/handover.h"

struct es_message {
	struct es_handover header;
	uint8_t packet[ES_HANDOVER_PACKET_MAX];
};

/*
 * Messages whose ICMP error is still believed. It comes within a round trip, or when ARP gives up after some
 * seconds.
 */
#define ES_SENT_KEPT 1024

#define ES_ERRORS_MAX 16 /* that come while messages are sent, beside one for each */

/* A message that was sent. Its MAC is known to who sees it only: an ICMP error that quotes it is no
 * invention. */
struct es_sent {
	__be64 sequence;
	__be64 mac;
};

/*
 * One connected socket a node: the kernel keeps the route, and what comes back on a socket (a NACK, an ICMP
 * error) is from that node. An epoll descriptor stands for all of them.
 */
struct es_handover_sender {
	int epoll_fd;
	unsigned int node_count;
	int fd[ES_NODES_MAX];
	unsigned int stream;
	struct es_sipkey key;
	__u64 sequence;
	unsigned long long number_offset_ns; /* by which it began */
	unsigned int count;
	unsigned int target[ES_HANDOVER_BATCH];
	struct iovec iov[ES_HANDOVER_BATCH];
	struct es_message message[ES_HANDOVER_BATCH];
	struct es_sent sent[ES_SENT_KEPT];
};

__be64 es_handover_mac(const struct es_sipkey *key, const struct es_handover *header, const uint8_t *packet,
		       size_t len)
{
	struct es_sipstate sip;
	__u64 word = 0;
	size_t at = 0;

	es_handover_mac_begin(&sip, key, header);
	for (; at + 8 <= len; at += 8) {
		memcpy(&word, packet + at, 8);
		es_siphash_word(&sip, es_cpu_le64(word));
	}
	word = 0;
	memcpy(&word, packet + at, len - at);
	return es_handover_mac_end(&sip, es_cpu_le64(word), (__u32)len);
}

/*
 * The MAC covers all that a UDP checksum would, and the packet inside has its own. IPv6 wants one all the
 * same (RFC 6936): we send it, and do not ask for it.
 */
static void es_sender_options(int fd, int family)
{
	int on = 1, bytes = 1 << 20;

	if (family == AF_INET6) {
		setsockopt(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, &on, sizeof(on));
		setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof(on));
	} else {
		setsockopt(fd, SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on));
		setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on));
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes));
}

static int es_sender_socket(const struct es_cluster *cluster, unsigned int node)
{
	union es_sockaddr self = cluster->handover_address[cluster->self];
	const union es_sockaddr *to = &cluster->handover_address[node];
	int fd = socket(self.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	es_sockaddr_port_set(&self, 0);
	es_sender_options(fd, self.sa.sa_family);
	if (es_sockaddr_distrust_errors(fd, self.sa.sa_family) ||
	    bind(fd, &self.sa, es_sockaddr_len(&self)) || connect(fd, &to->sa, es_sockaddr_len(to))) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	return fd;
}

static int es_sender_open(struct es_handover_sender *sender, const struct es_cluster *cluster)
{
	sender->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (sender->epoll_fd < 0)
		return -errno;
	for (unsigned int i = 0; i < cluster->conf->node_count; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
		int fd = es_sender_socket(cluster, i);

		if (fd < 0)
			return fd;
		sender->fd[i] = fd;
		sender->node_count = i + 1;
		if (epoll_ctl(sender->epoll_fd, EPOLL_CTL_ADD, fd, &event))
			return -errno;
	}
	return 0;
}

static void es_sender_close(struct es_handover_sender *sender)
{
	for (unsigned int i = 0; i < sender->node_count; i++)
		close(sender->fd[i]);
	sender->node_count = 0;
	if (sender->epoll_fd >= 0)
		close(sender->epoll_fd);
	sender->epoll_fd = -1;
}

/*
 * Go on above everything that an earlier life of this node sent, be it in this very second: it never reached
 * 10^7 messages a second. One by one from there: a window (replay.h) tells apart what is near.
 */
static void es_sender_renumber(struct es_handover_sender *sender)
{
	__u64 least = es_handover_number(es_number_ns());

	sender->number_offset_ns = es_number_offset_ns();
	if (sender->sequence < least)
		sender->sequence = least;
}

int es_handover_sender_new(const struct es_cluster *cluster, unsigned int stream, const struct es_sipkey *key,
			   struct es_handover_sender **ret_sender)
{
	struct es_handover_sender *sender = calloc(1, sizeof(*sender));
	int rc;

	if (!sender)
		return -ENOMEM;
	rc = es_sender_open(sender, cluster);
	if (rc) {
		es_handover_sender_free(&sender);
		return rc;
	}
	sender->stream = stream;
	sender->key = *key;
	es_sender_renumber(sender);
	*ret_sender = sender;
	return 0;
}

int es_handover_sender_set(struct es_handover_sender *sender, const struct es_cluster *cluster,
			   const struct es_sipkey *key)
{
	struct es_handover_sender *fresh;
	int rc;

	es_handover_flush(sender);
	rc = es_handover_sender_new(cluster, sender->stream, key, &fresh);
	if (rc)
		return rc;
	/* The descriptor that stands for the sockets stays the one that an event loop may watch. */
	for (unsigned int i = 0; i < sender->node_count; i++)
		close(sender->fd[i]);
	sender->node_count = fresh->node_count;
	for (unsigned int i = 0; i < fresh->node_count; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};

		sender->fd[i] = fresh->fd[i];
		if (epoll_ctl(sender->epoll_fd, EPOLL_CTL_ADD, sender->fd[i], &event))
			rc = -errno;
	}
	fresh->node_count = 0;
	es_handover_sender_free(&fresh);
	sender->key = *key;
	return rc;
}

void es_handover_sender_free(struct es_handover_sender **sender)
{
	if (!*sender)
		return;
	es_sender_close(*sender);
	free(*sender);
	*sender = NULL;
}

void es_handover_order_of(const struct es_handover *h, struct es_handover_order *ret_order)
{
	memset(ret_order, 0, sizeof(*ret_order));
	ret_order->kind = ES_HANDOVER_REQUEST;
	ret_order->service = h->service;
	ret_order->attempt = h->attempt;
	es_handover_options_get(h, &ret_order->options);
	ret_order->requests = es_ntohl(h->requests);
	ret_order->next_request_seq = es_ntohl(h->next_request_seq);
	ret_order->moves = es_ntohs(h->moves);
	ret_order->cost = es_ntohs(h->cost);
	ret_order->url_key = es_cpu_be64((__u64)h->url_key);
	ret_order->request_flags = h->request_flags;
	ret_order->pin = h->pin;
	ret_order->moved = !!(h->flags & ES_HANDOVER_F_MOVED);
	ret_order->unsafe = !!(h->flags & ES_HANDOVER_F_UNSAFE);
}

int request_handover(struct es_handover_sender *sender, const struct es_cluster *cluster,
		     const struct es_handover_order *order, const uint8_t *packet, size_t len,
		     unsigned int target)
{
	struct es_message *m;
	struct es_handover *h;

	if (len > ES_HANDOVER_PACKET_MAX)
		return -EMSGSIZE;
	if (target >= sender->node_count)
		return -ENOENT;
	if (sender->count == ES_HANDOVER_BATCH)
		es_handover_flush(sender);
	if (sender->number_offset_ns != es_number_offset_ns())
		es_sender_renumber(sender);
	m = &sender->message[sender->count];
	h = &m->header;
	memset(h, 0, sizeof(*h));
	h->magic = es_htonl(ES_HANDOVER_MAGIC);
	h->version = ES_HANDOVER_VERSION;
	h->kind = (__u8)order->kind;
	h->source = (__u8)cluster->self;
	h->target = (__u8)target;
	h->epoch = es_htonl(cluster->epoch);
	h->service = (__u8)order->service;
	h->stream = (__u8)sender->stream;
	h->attempt = (__u8)order->attempt;
	h->sequence = (__be64)es_cpu_be64(++sender->sequence);
	h->packet_len = es_htons(len);
	es_handover_stamp_put(h, (__u32)(es_wall_ns() / ES_HANDOVER_STAMP_NS));
	es_handover_options_put(h, &order->options);
	if (order->moved)
		h->flags |= ES_HANDOVER_F_MOVED;
	if (order->repeat)
		h->flags |= ES_HANDOVER_F_REPEAT;
	if (order->unsafe)
		h->flags |= ES_HANDOVER_F_UNSAFE;
	h->requests = es_htonl(order->requests);
	h->next_request_seq = es_htonl(order->next_request_seq);
	h->moves = es_htons(order->moves);
	h->cost = es_htons(es_handover_cost(order->cost));
	h->url_key = (__be64)es_cpu_be64(order->url_key);
	h->request_flags = order->request_flags;
	h->pin = order->pin;
	memcpy(m->packet, packet, len);
	h->mac = es_handover_mac(&sender->key, h, m->packet, len);
	sender->sent[sender->sequence % ES_SENT_KEPT] =
		(struct es_sent){.sequence = h->sequence, .mac = h->mac};
	sender->iov[sender->count].iov_base = m;
	sender->iov[sender->count].iov_len = sizeof(*h) + len;
	sender->target[sender->count] = target;
	sender->count++;
	return 0;
}

static int is_icmp_error(int error)
{
	return error == ECONNREFUSED || error == EHOSTUNREACH;
}

/*
 * Of sending: may it go well if it is tried again at once? ICMP errors have many numbers, icmp_err_convert[]
 * of the kernel.
 */
static int is_repeated(int error)
{
	return error != EAGAIN && error != ENOBUFS && error != ENOMEM && error != EPERM;
}

/* Send @count messages to one node; returns how many were lost. */
static unsigned int es_sender_send(int fd, struct mmsghdr *messages, unsigned int count)
{
	unsigned int at = 0, lost = 0, errors = 0;

	while (at < count) {
		int sent = sendmmsg(fd, &messages[at], count - at, 0);

		if (sent > 0) {
			at += (unsigned int)sent;
		} else if (sent < 0 && is_repeated(errno) && errors < count + ES_ERRORS_MAX) {
			/* An ICMP error of an earlier message, or a forged one, is reported once, in place of
			 * sending; in a batch to a node that is not there, perhaps one for each. */
			errors++;
		} else {
			lost++;
			at++;
		}
	}
	return lost;
}

unsigned int es_handover_flush(struct es_handover_sender *sender)
{
	struct mmsghdr messages[ES_HANDOVER_BATCH];
	unsigned int lost = 0;

	for (unsigned int i = 0; i < sender->count; i++) {
		unsigned int target = sender->target[i], n = 0;

		if (target == ES_NODE_NONE)
			continue; /* went with an earlier one to the same node */
		for (unsigned int k = i; k < sender->count; k++) {
			if (sender->target[k] != target)
				continue;
			memset(&messages[n], 0, sizeof(messages[n]));
			messages[n].msg_hdr.msg_iov = &sender->iov[k];
			messages[n].msg_hdr.msg_iovlen = 1;
			sender->target[k] = ES_NODE_NONE;
			n++;
		}
		lost += es_sender_send(sender->fd[target], messages, n);
	}
	sender->count = 0;
	return lost;
}

int es_handover_sender_fd(const struct es_handover_sender *sender)
{
	return sender->epoll_fd;
}

static int es_nack_check(const struct es_handover *h, const uint8_t *packet, ssize_t got,
			 const struct es_sipkey *keys, unsigned int key_count)
{
	size_t len;

	if (got <= (ssize_t)sizeof(*h) || h->magic != es_htonl(ES_HANDOVER_MAGIC) ||
	    h->version != ES_HANDOVER_VERSION ||
	    (h->kind != ES_HANDOVER_NACK && h->kind != ES_HANDOVER_ANSWER))
		return -EBADMSG;
	len = (size_t)got - sizeof(*h);
	if (len != es_ntohs(h->packet_len))
		return -EBADMSG;
	for (unsigned int i = 0; i < key_count; i++)
		if (es_handover_mac(&keys[i], h, packet, len) == h->mac)
			return (int)len;
	return -EBADMSG;
}

/* Is it a message of this sender's to that node? */
static int es_was_sent(const struct es_handover_sender *sender, const struct es_handover *h,
		       unsigned int node)
{
	const struct es_sent *sent = &sender->sent[es_cpu_be64((__u64)h->sequence) % ES_SENT_KEPT];

	return h->magic == es_htonl(ES_HANDOVER_MAGIC) && h->sequence && h->target == node &&
	       h->sequence == sent->sequence && h->mac == sent->mac;
}

static int is_error_report(const struct cmsghdr *c)
{
	return (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
	       (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR);
}

/* Take an error from @fd's queue. Returns as es_handover_receive(). */
static int es_error_receive(const struct es_handover_sender *sender, int fd, struct es_handover_back *ret)
{
	struct iovec iov[2] = {
		{.iov_base = &ret->header, .iov_len = sizeof(ret->header)},
		{.iov_base = ret->packet, .iov_len = sizeof(ret->packet)},
	};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct sock_extended_err) + sizeof(union es_sockaddr))];
	} control;
	struct msghdr msg = {
		.msg_iov = iov, .msg_iovlen = 2, .msg_control = &control, .msg_controllen = sizeof(control)};
	ssize_t got = recvmsg(fd, &msg, MSG_ERRQUEUE);
	struct sock_extended_err error;

	if (got < 0)
		return 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (!is_error_report(c))
			continue;
		memcpy(&error, CMSG_DATA(c), sizeof(error));
		if (error.ee_origin != SO_EE_ORIGIN_ICMP && error.ee_origin != SO_EE_ORIGIN_ICMP6)
			return 0;
		if (!is_icmp_error((int)error.ee_errno) || got <= (ssize_t)sizeof(ret->header) ||
		    !es_was_sent(sender, &ret->header, ret->node))
			return -ENOMSG;
		ret->quoted = (size_t)got - sizeof(ret->header);
		return -ECONNREFUSED;
	}
	return 0;
}

int es_handover_receive(struct es_handover_sender *sender, const struct es_sipkey *keys,
			unsigned int key_count, struct es_handover_back *ret)
{
	struct iovec iov[2] = {
		{.iov_base = &ret->header, .iov_len = sizeof(ret->header)},
		{.iov_base = ret->packet, .iov_len = sizeof(ret->packet)},
	};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
	struct epoll_event event;
	ssize_t got;
	int fd, rc;

	if (epoll_wait(sender->epoll_fd, &event, 1, 0) != 1 || event.data.u32 >= sender->node_count)
		return 0;
	ret->node = event.data.u32;
	ret->quoted = 0;
	fd = sender->fd[ret->node];
	rc = event.events & EPOLLERR ? es_error_receive(sender, fd, ret) : 0;
	if (rc)
		return rc;
	got = recvmsg(fd, &msg, 0);
	if (got < 0) /* or an error that had no room in the queue */
		return errno == EAGAIN ? 0 : -ENOMSG;
	return es_nack_check(&ret->header, ret->packet, got, keys, key_count);
}
