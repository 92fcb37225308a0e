// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The datagrams by which nodes tell each other their loads: the socket, the signature, the sequence numbers.
 * daemon/load.c fills them.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "inspector/base/clock.h"
#include "inspector/base/datagram_mac.h"
#include "inspector/base/wall.h"
#include "inspector/peers/exchange.h"

#define MAC_AT offsetof(struct es_loads_message, mac) /* right after the signed bytes */

static __be64 es_loads_mac(const struct es_sipkey *key, const struct es_loads_message *message)
{
	return es_datagram_mac(key, message, MAC_AT, MAC_AT);
}

int es_load_exchange_open(struct es_load_exchange *exchange, const struct es_cluster *cluster)
{
	const union es_sockaddr *self = &cluster->handover_address[cluster->self];
	const int on = 1;
	int rc;

	memset(exchange, 0, sizeof(*exchange));
	exchange->bound = *self;
	exchange->fd = socket(self->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (exchange->fd < 0)
		return -errno;
	if (setsockopt(exchange->fd, self->sa.sa_family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP,
		       self->sa.sa_family == AF_INET6 ? IPV6_RECVPKTINFO : IP_PKTINFO, &on, sizeof(on)) ||
	    es_sockaddr_distrust_errors(exchange->fd, self->sa.sa_family) ||
	    bind(exchange->fd, &self->sa, es_sockaddr_len(self))) {
		rc = -errno;
		es_load_exchange_close(exchange);
		return rc;
	}
	return 0;
}

void es_load_exchange_close(struct es_load_exchange *exchange)
{
	if (exchange->fd >= 0)
		close(exchange->fd);
	exchange->fd = -1;
}

static struct es_loads_message es_loads_message(struct es_load_exchange *exchange,
						const struct es_cluster *cluster, __u8 version)
{
	__u64 number = es_number_ns();

	exchange->sequence = number > exchange->sequence ? number : exchange->sequence + 1;
	return (struct es_loads_message){
		.magic = es_htonl(ES_LOADS_MAGIC),
		.version = version,
		.source = (__u8)cluster->self,
		.sequence = (__be64)es_cpu_be64(exchange->sequence),
	};
}

/* To all other nodes, or to those only whose @understands has @what. */
static void es_loads_send(struct es_load_exchange *exchange, const struct es_cluster *cluster,
			  struct es_loads_message *message, const _Atomic unsigned char *understands,
			  unsigned char what)
{
	struct iovec iov = {.iov_base = message, .iov_len = sizeof(*message)};
	struct mmsghdr to[ES_NODES_MAX];
	unsigned int count = 0, at = 0;

	for (unsigned int i = 0; i < cluster->conf->node_count; i++) {
		if (i == cluster->self || cluster->conf->nodes[i].removed ||
		    (what && !(understands[i] & what)))
			continue;
		memset(&to[count], 0, sizeof(to[count]));
		to[count].msg_hdr.msg_name = (void *)&cluster->handover_address[i];
		to[count].msg_hdr.msg_namelen = es_sockaddr_len(&cluster->handover_address[i]);
		to[count].msg_hdr.msg_iov = &iov;
		to[count].msg_hdr.msg_iovlen = 1;
		count++;
	}
	/* Each step ends with a message that was sent, or that cannot be. */
	while (at < count) {
		int sent = sendmmsg(exchange->fd, &to[at], count - at, 0);

		exchange->sent += sent > 0 ? (unsigned int)sent : 0;
		at += sent > 0 ? (unsigned int)sent : 1;
	}
}

void es_load_exchange_send(struct es_load_exchange *exchange, const struct es_cluster *cluster,
			   const struct es_keys *keys, const struct es_wire_load *load)
{
	struct es_loads_message message = es_loads_message(exchange, cluster, ES_DATAGRAM_LOADS);

	message.len = es_htons((__u16)es_wire_put_load(message.payload, sizeof(message.payload), load));
	message.mac = es_loads_mac(&keys->key[0].handover, &message);
	es_loads_send(exchange, cluster, &message, NULL, 0);
}

void es_load_exchange_tell(struct es_load_exchange *exchange, const struct es_cluster *cluster,
			   const struct es_keys *keys, const _Atomic unsigned char *understands,
			   const struct es_home_wire *word)
{
	struct es_loads_message message = es_loads_message(exchange, cluster, ES_DATAGRAM_HOMES);

	message.len = es_htons(sizeof(*word));
	memcpy(message.payload, word, sizeof(*word));
	message.mac = es_loads_mac(&keys->key[0].handover, &message);
	es_loads_send(exchange, cluster, &message, understands, ES_WIRE_UNDERSTANDS_HOMES);
}

/* To one node, a payload that is full. */
static void es_loads_send_to(struct es_load_exchange *exchange, const struct es_cluster *cluster,
			     const struct es_keys *keys, unsigned int node, __u8 version, const void *payload)
{
	struct es_loads_message message = es_loads_message(exchange, cluster, version);

	message.len = es_htons(sizeof(message.payload));
	memcpy(message.payload, payload, sizeof(message.payload));
	message.mac = es_loads_mac(&keys->key[0].handover, &message);
	(void)!sendto(exchange->fd, &message, sizeof(message), 0, &cluster->handover_address[node].sa,
		      es_sockaddr_len(&cluster->handover_address[node]));
}

void es_load_exchange_testify(struct es_load_exchange *exchange, const struct es_cluster *cluster,
			      const struct es_keys *keys, unsigned int node,
			      const struct es_evidence_wire *evidence)
{
	es_loads_send_to(exchange, cluster, keys, node, ES_DATAGRAM_EVIDENCE, evidence);
}

void es_load_exchange_grant(struct es_load_exchange *exchange, const struct es_cluster *cluster,
			    const struct es_keys *keys, unsigned int node, const struct es_grant_wire *grant)
{
	es_loads_send_to(exchange, cluster, keys, node, ES_DATAGRAM_GRANTS, grant);
}

void es_load_exchange_tell_idle(struct es_load_exchange *exchange, const struct es_cluster *cluster,
				const struct es_keys *keys, const _Atomic unsigned char *understands,
				unsigned int idle)
{
	struct es_loads_message message = es_loads_message(exchange, cluster, ES_DATAGRAM_IDLE);
	const struct es_idle_wire word = {.idle = es_htonl(idle)};

	message.len = es_htons(sizeof(word));
	memcpy(message.payload, &word, sizeof(word));
	message.mac = es_loads_mac(&keys->key[0].handover, &message);
	es_loads_send(exchange, cluster, &message, understands, ES_WIRE_UNDERSTANDS_FATE);
}

void es_load_exchange_tell_takes(struct es_load_exchange *exchange, const struct es_cluster *cluster,
				 const struct es_keys *keys, const _Atomic unsigned char *understands,
				 unsigned int packet_max, unsigned int makes, __u64 lacks)
{
	struct es_loads_message message = es_loads_message(exchange, cluster, ES_DATAGRAM_TAKES);
	const struct es_takes_wire word = {.packet_max = es_htonl(packet_max),
					   .makes = es_htonl(makes),
					   .lacks = (__be64)es_cpu_be64(lacks)};

	message.len = es_htons(sizeof(word.packet_max));
	memcpy(message.payload, &word, sizeof(word));
	message.mac = es_loads_mac(&keys->key[0].handover, &message);
	es_loads_send(exchange, cluster, &message, understands, ES_WIRE_UNDERSTANDS_FATE);
}

/*
 * An authentic datagram with a number below the last one was recorded, or its sender began anew with a clock
 * that is earlier than in its former life. Such a sender needs to know. A recorder learns nothing from the
 * answer, and the node itself ignores what is not new to it.
 */
static void es_loads_answer(struct es_load_exchange *exchange, const struct es_cluster *cluster,
			    const struct es_keys *keys, const struct es_loads_message *message)
{
	unsigned int node = message->source;
	unsigned long long now_ns = es_clock_now_ns();
	struct es_loads_message answer = {
		.magic = es_htonl(ES_LOADS_MAGIC),
		.version = ES_DATAGRAM_LOADS_ANSWER,
		.source = (__u8)cluster->self,
		.sequence = (__be64)es_cpu_be64(exchange->heard[node]),
		.payload = {(__u8)node},
	};

	if (exchange->answered_ns[node] && now_ns - exchange->answered_ns[node] < ES_LOADS_ANSWER_NS)
		return;
	if (exchange->answered)
		exchange->answered(exchange->ctx, node,
				   exchange->heard[node] - es_cpu_be64((__u64)message->sequence));
	exchange->answered_ns[node] = now_ns;
	answer.mac = es_loads_mac(&keys->key[0].handover, &answer);
	(void)!sendto(exchange->fd, &answer, sizeof(answer), 0, &cluster->handover_address[node].sa,
		      es_sockaddr_len(&cluster->handover_address[node]));
}

/* A message of a kind that somebody else reads; returns whether that one took it. */
static int es_loads_is_other(struct es_load_exchange *exchange, const void *data, size_t len)
{
	const struct es_loads_message *message = data;

	if (!exchange->other || len < sizeof(*message) ||
	    (message->version != ES_DATAGRAM_SNAPSHOT && message->version != ES_DATAGRAM_ROLLOUT &&
	     message->version != ES_DATAGRAM_RATES && message->version != ES_DATAGRAM_KEPT &&
	     message->version != ES_DATAGRAM_DOWNLOAD && message->version != ES_DATAGRAM_POISON))
		return 0;
	return !exchange->other(exchange->ctx, data, len);
}

/* The interface by which a datagram came, as the kernel says it beside the datagram; 0: it does not. */
static unsigned int es_loads_ifindex(struct msghdr *header)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		struct in6_pktinfo info6;
		struct in_pktinfo info;

		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			memcpy(&info, CMSG_DATA(c), sizeof(info));
			return (unsigned int)info.ipi_ifindex;
		}
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			memcpy(&info6, CMSG_DATA(c), sizeof(info6));
			return info6.ipi6_ifindex;
		}
	}
	return 0;
}

/* As recv(); and by which interface it came. */
static ssize_t es_loads_take(struct es_load_exchange *exchange, void *ret_data, size_t size)
{
	union {
		char room[CMSG_SPACE(sizeof(struct in6_pktinfo))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = ret_data, .iov_len = size};
	struct msghdr header = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room),
	};
	ssize_t got = recvmsg(exchange->fd, &header, MSG_TRUNC);

	exchange->ifindex = got < 0 ? 0 : es_loads_ifindex(&header);
	return got;
}

/* Has it come by another interface than what nodes send? Where that is not known, it has not. */
static int es_loads_is_elsewhere(const struct es_load_exchange *exchange)
{
	return exchange->ifindex && exchange->cluster_ifindex &&
	       exchange->ifindex != exchange->cluster_ifindex && exchange->ifindex != ES_LOOPBACK_IFINDEX;
}

/* An authentic, fresh message that has no load. */
static void es_loads_word(struct es_load_exchange *exchange, const struct es_loads_message *message)
{
	union {
		struct es_home_wire home;
		struct es_idle_wire idle;
		struct es_evidence_wire evidence;
		struct es_takes_wire takes;
		struct es_grant_wire grant;
	} word;
	unsigned int node = message->source, len = es_ntohs(message->len);

	memcpy(&word, message->payload, sizeof(message->payload));
	if (message->version == ES_DATAGRAM_HOMES && exchange->home && len == sizeof(word.home))
		exchange->home(exchange->ctx, node, &word.home);
	else if (message->version == ES_DATAGRAM_IDLE && exchange->idle && len >= sizeof(word.idle))
		exchange->idle(exchange->ctx, node, es_ntohl(word.idle.idle));
	else if (message->version == ES_DATAGRAM_EVIDENCE && exchange->evidence &&
		 len == sizeof(word.evidence))
		exchange->evidence(exchange->ctx, node, &word.evidence);
	else if (message->version == ES_DATAGRAM_TAKES && exchange->takes &&
		 len == sizeof(word.takes.packet_max))
		exchange->takes(exchange->ctx, node, es_ntohl(word.takes.packet_max),
				es_ntohl(word.takes.makes), es_cpu_be64((__u64)word.takes.lacks));
	else if (message->version == ES_DATAGRAM_GRANTS && exchange->grant && len == sizeof(word.grant))
		exchange->grant(exchange->ctx, node, &word.grant);
}

int es_load_exchange_receive(struct es_load_exchange *exchange, const struct es_cluster *cluster,
			     const struct es_keys *keys, unsigned int *ret_node,
			     struct es_wire_load *ret_load)
{
	union {
		struct es_loads_message load;
		__u8 bytes[ES_DATAGRAM_MAX];
	} datagram;
	ssize_t got = es_loads_take(exchange, &datagram, sizeof(datagram));
	struct es_loads_message message;
	int is_elsewhere;
	__u64 sequence;

	/* An ICMP error of what was sent before is no message. */
	if (got < 0)
		return errno == ECONNREFUSED || errno == EHOSTUNREACH ? -EBADMSG : 0;
	is_elsewhere = es_loads_is_elsewhere(exchange);
	if (!is_elsewhere && (size_t)got <= sizeof(datagram) &&
	    es_loads_is_other(exchange, &datagram, (size_t)got))
		return -EBADMSG; /* no load, and no reason to count it as refused */
	message = datagram.load;
	if (got != sizeof(message) || message.magic != es_htonl(ES_LOADS_MAGIC) ||
	    (message.version != ES_DATAGRAM_LOADS && message.version != ES_DATAGRAM_LOADS_ANSWER &&
	     message.version != ES_DATAGRAM_HOMES && message.version != ES_DATAGRAM_IDLE &&
	     message.version != ES_DATAGRAM_EVIDENCE && message.version != ES_DATAGRAM_TAKES &&
	     message.version != ES_DATAGRAM_GRANTS) ||
	    message.source == cluster->self || message.source >= cluster->conf->node_count ||
	    !es_keys_have_signed(keys, &message, MAC_AT, MAC_AT))
		goto refused;
	if (is_elsewhere) { /* a cable or a setting is wrong, or it is a recording */
		exchange->elsewhere_ifindex = exchange->ifindex;
		goto refused;
	}
	sequence = es_cpu_be64((__u64)message.sequence);
	if (message.version == ES_DATAGRAM_LOADS_ANSWER) {
		if (message.payload[0] != cluster->self)
			goto refused;
		if (sequence > exchange->sequence && exchange->outrun)
			exchange->outrun(exchange->ctx, message.source, sequence);
		return -EBADMSG; /* no load, and no reason to count it as refused */
	}
	if (sequence < exchange->heard[message.source])
		es_loads_answer(exchange, cluster, keys, &message);
	if (sequence <= exchange->heard[message.source])
		goto refused;
	exchange->heard[message.source] = sequence;
	if (message.version != ES_DATAGRAM_LOADS) {
		es_loads_word(exchange, &message);
		return -EBADMSG; /* no load */
	}
	if (es_ntohs(message.len) > sizeof(message.payload) ||
	    es_wire_get_load(message.payload, es_ntohs(message.len), ret_load) || !ret_load->has_requests)
		goto refused;
	exchange->received++;
	*ret_node = message.source;
	return 1;
refused:
	exchange->refused++;
	return -EBADMSG;
}

int es_load_exchange_drain(struct es_load_exchange *exchange, struct es_cluster *const *cluster,
			   const struct es_keys *keys,
			   void (*fn)(void *ctx, unsigned int node, const struct es_wire_load *load),
			   void *ctx)
{
	struct es_wire_load load;
	unsigned int node;

	for (int i = 0; i < ES_LOADS_AT_A_TIME; i++) {
		int rc = es_load_exchange_receive(exchange, *cluster, keys, &node, &load);

		if (!rc)
			return 0;
		if (rc > 0)
			fn(ctx, node, &load);
	}
	return 1;
}
