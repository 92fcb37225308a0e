/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_REBUILD_REQUEST_H
#define ES_NETFILTER_REBUILD_REQUEST_H

/* The client's packet from which a connection is made, and the packets that are derived from it. */
#include <stddef.h>
#include "kmod/core/flow.h"
#include "kmod/core/tcp.h"
#include "netfilter/kernel/compose.h"

/**
 * struct es_nf_request - a request packet, and the options of its connection
 * @packet: as the client sent it, from its IP header on, @len bytes, IPv4 or IPv6, with valid checksums
 * @options: from the cookie or the handover. tstamp_ok also needs timestamps in the packet.
 * @socket: as in struct es_nf_entry; if a program has handed over the connection (program_name.h), set it
 * after es_nf_request_read() es_nf_request_read() sets the rest.
 * @begins: called with @ctx right before a packet is written of which a connection may come, or which the
 * server may read; until then, nothing comes of the request, also if the process ends. Returns 0, or -errno:
 * it must not be written. NULL: nobody wants to know
 */
struct es_nf_request {
	const __u8 *packet;
	size_t len;
	struct es_tcp_options options;
	int (*begins)(void *ctx, const struct es_nf_request *request);
	void *ctx;
	struct es_flow flow;
	struct es_flow socket;
	struct es_segment seg;
	__u16 window; /* not scaled */
	__u16 ip_len; /* bytes before TCP's header */
};

/*
 * es_nf_request_read() - set the rest from @packet. Returns 0, or -EBADMSG if it is not a whole TCP packet.
 */
int es_nf_request_read(struct es_nf_request *request);

/*
 * es_nf_request_is_all() - does the client wait for the response now?
 * True if the packet is exactly one HTTP GET or HEAD without a body. After anything else, more may follow at
 * once.
 */
int es_nf_request_is_all(const struct es_nf_request *request);

/* Bytes of the longest packet that the functions below write, into memory that is aligned to 4 bytes. */
#define ES_NF_MADE_MAX (40 + 20 + ES_TCP_OPTIONS_MAX)

/*
 * es_nf_request_syn() - the SYN that the listening socket answers, so that the SYNPROXY hook finishes the
 * handshake The ACK flag is off. The acknowledgement field holds the server's ISN as the client knows it, and
 * the echoed timestamp the clock that the client sees from now on. Returns the packet's length.
 */
size_t es_nf_request_syn(const struct es_nf_request *request, __u8 ret_packet[ES_NF_MADE_MAX]);

/**
 * es_nf_request_begin() - the request's headers, to follow the SYN, without timestamps
 * This is the handshake's last packet. The timestamp that it could echo is a moment old, which the kernel
 * would take for a round trip; and since 6.15, kernels accept no other echo there. IPv6 extension headers are
 * left out, too. The payload follows unchanged. Returns the headers' length.
 */
size_t es_nf_request_begin(const struct es_nf_request *request, __u8 ret_headers[ES_NF_MADE_MAX]);

/* es_nf_reset() - a RST from the flow's client, with that sequence number. Returns its length. */
size_t es_nf_reset(const struct es_flow *flow, __u32 seq, __u8 ret_packet[ES_NF_MADE_MAX]);

#endif
