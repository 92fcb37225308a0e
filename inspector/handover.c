// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The sending side of handovers: builds messages into a batch and sends the batch with sendmmsg(). The
 * receiving side is the datapath (kmod/bpf); only NACKs come back to userspace.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "inspector/handover.h"

struct es_message {
	struct es_handover header;
	uint8_t packet[ES_HANDOVER_PACKET_MAX];
};

struct es_handover_sender {
	int fd;
	unsigned int stream;
	struct es_sipkey key;
	__u64 sequence;
	unsigned int count;
	struct mmsghdr mmsg[ES_HANDOVER_BATCH];
	struct iovec iov[ES_HANDOVER_BATCH];
	struct sockaddr_in to[ES_HANDOVER_BATCH];
	struct es_message message[ES_HANDOVER_BATCH];
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

static int es_sender_socket(const struct es_cluster *cluster)
{
	struct sockaddr_in self = cluster->handover_address[cluster->self];
	int on = 1, bytes = 4 << 20;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	self.sin_port = 0;
	/* The MAC covers all that a UDP checksum would; and the packet inside has its own. */
	setsockopt(fd, SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes));
	setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&self, sizeof(self))) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	return fd;
}

int es_handover_sender_new(const struct es_cluster *cluster, unsigned int stream, const struct es_sipkey *key,
			   struct es_handover_sender **ret_sender)
{
	struct es_handover_sender *sender;
	int fd = es_sender_socket(cluster);

	if (fd < 0)
		return fd;
	sender = calloc(1, sizeof(*sender));
	if (!sender) {
		close(fd);
		return -ENOMEM;
	}
	sender->fd = fd;
	sender->stream = stream;
	sender->key = *key;
	/* Above everything that an earlier life of this node sent: 2^24 messages a second it never reached.
	 */
	sender->sequence = (__u64)time(NULL) << 24;
	for (unsigned int i = 0; i < ES_HANDOVER_BATCH; i++) {
		sender->iov[i].iov_base = &sender->message[i];
		sender->mmsg[i].msg_hdr.msg_iov = &sender->iov[i];
		sender->mmsg[i].msg_hdr.msg_iovlen = 1;
		sender->mmsg[i].msg_hdr.msg_name = &sender->to[i];
		sender->mmsg[i].msg_hdr.msg_namelen = sizeof(sender->to[i]);
	}
	*ret_sender = sender;
	return 0;
}

void es_handover_sender_set_key(struct es_handover_sender *sender, const struct es_sipkey *key)
{
	es_handover_flush(sender);
	sender->key = *key;
}

void es_handover_sender_free(struct es_handover_sender **sender)
{
	if (!*sender)
		return;
	close((*sender)->fd);
	free(*sender);
	*sender = NULL;
}

int request_handover(struct es_handover_sender *sender, const struct es_cluster *cluster,
		     const struct es_handover_order *order, const uint8_t *packet, size_t len,
		     unsigned int target)
{
	struct es_message *m;
	struct es_handover *h;

	if (len > ES_HANDOVER_PACKET_MAX)
		return -EMSGSIZE;
	if (sender->count == ES_HANDOVER_BATCH)
		es_handover_flush(sender);
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
	es_handover_options_put(h, &order->options);
	memcpy(m->packet, packet, len);
	h->mac = es_handover_mac(&sender->key, h, m->packet, len);
	sender->iov[sender->count].iov_len = sizeof(*h) + len;
	sender->to[sender->count] = cluster->handover_address[target];
	sender->count++;
	return 0;
}

unsigned int es_handover_flush(struct es_handover_sender *sender)
{
	unsigned int at = 0, lost = 0;

	while (at < sender->count) {
		int sent = sendmmsg(sender->fd, &sender->mmsg[at], sender->count - at, 0);

		if (sent > 0) {
			at += (unsigned int)sent;
			continue;
		}
		/* A pending ICMP error is reported once, before anything is sent; then the way is free again.
		 */
		if (sent < 0 && (errno == ECONNREFUSED || errno == EHOSTUNREACH || errno == EINTR)) {
			struct sockaddr_in address;

			if (es_handover_receive_error(sender, &address) || errno == EINTR)
				continue;
		}
		lost++;
		at++;
	}
	sender->count = 0;
	return lost;
}

int es_handover_sender_fd(const struct es_handover_sender *sender)
{
	return sender->fd;
}

int es_handover_receive_nack(struct es_handover_sender *sender, const struct es_sipkey *keys,
			     unsigned int key_count, struct es_handover *ret_header, uint8_t *ret_packet)
{
	struct iovec iov[2] = {
		{.iov_base = ret_header, .iov_len = sizeof(*ret_header)},
		{.iov_base = ret_packet, .iov_len = ES_HANDOVER_PACKET_MAX},
	};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
	ssize_t got = recvmsg(sender->fd, &msg, 0);
	size_t len;

	if (got < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -EBADMSG;
	if ((size_t)got < sizeof(*ret_header) || ret_header->magic != es_htonl(ES_HANDOVER_MAGIC) ||
	    ret_header->version != ES_HANDOVER_VERSION || ret_header->kind != ES_HANDOVER_NACK)
		return -EBADMSG;
	len = (size_t)got - sizeof(*ret_header);
	if (!len || len != es_ntohs(ret_header->packet_len))
		return -EBADMSG;
	for (unsigned int i = 0; i < key_count; i++)
		if (es_handover_mac(&keys[i], ret_header, ret_packet, len) == ret_header->mac)
			return (int)len;
	return -EBADMSG;
}

int es_handover_receive_error(struct es_handover_sender *sender, struct sockaddr_in *ret_address)
{
	char control[512];
	struct sockaddr_in to = {};
	struct msghdr msg = {
		.msg_name = &to,
		.msg_namelen = sizeof(to),
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};

	if (recvmsg(sender->fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
		return 0;
	*ret_address = to;
	return 1;
}
