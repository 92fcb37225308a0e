/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_REBUILD_REQUEST_H
#define ES_NETFILTER_REBUILD_REQUEST_H

/*
 * The client's packet from which a connection is made, and the packets that are made from it.
 */
#include <stddef.h>
#include "kmod/core/flow.h"
#include "kmod/core/tcp.h"
#include "netfilter/kernel/compose.h"

/**
 * struct es_nf_request - a request packet, and what its connection agreed on
 * @packet: from its IP header on, @len bytes, IPv4 or IPv6, with valid checksums, as the client sent it
 * @options: of the cookie, or of the handover. tstamp_ok also needs timestamps in the packet.
 * @socket: as of struct es_nf_entry; of a connection that a program has handed over (program_name.h), to be set behind es_nf_request_read()
 * The rest is es_nf_request_read()'s.
 */
struct es_nf_request {
	const __u8 *packet;
	size_t len;
	struct es_tcp_options options;
	struct es_flow flow;
	struct es_flow socket;
	struct es_segment seg;
	__u16 window; /* raw */
	__u16 ip_len; /* up to TCP's header */
};

/* es_nf_request_read() - fill the rest from @packet. Returns 0, or -EBADMSG if it is no whole TCP packet. */
int es_nf_request_read(struct es_nf_request *request);

/*
 * es_nf_request_is_all() - does the client wait for the answer now?
 * The packet is one GET or HEAD of HTTP, without a body, from its first byte to its last. Anything else may have more right
 * behind it.
 */
int es_nf_request_is_all(const struct es_nf_request *request);

/* Bytes of the longest packet that the functions below make, in memory that is aligned to 4 bytes. */
#define ES_NF_MADE_MAX (40 + 20 + ES_TCP_OPTIONS_MAX)

/*
 * es_nf_request_syn() - the SYN that makes the listening socket answer, and the SYNPROXY hook finish the handshake
 * Acknowledges nothing, yet its acknowledgement field has the ISN that the client knows the server by, and its echoed
 * timestamp the clock that the client is shown from now on. Returns its length.
 */
size_t es_nf_request_syn(const struct es_nf_request *request, __u8 ret_packet[ES_NF_MADE_MAX]);

/**
 * es_nf_request_begin() - the headers of the request as they follow the SYN, without timestamps
 * It is the handshake's last packet. What it could echo is the clock of a moment ago, which the kernel would take for a
 * round trip; and kernels since 6.15 take no other echo there. Nor are there headers between those of IPv6 and TCP. The payload
 * is as it was. Returns the headers' length.
 */
size_t es_nf_request_begin(const struct es_nf_request *request, __u8 ret_headers[ES_NF_MADE_MAX]);

/* es_nf_reset() - a RST from the flow's client with that sequence number. Returns its length. */
size_t es_nf_reset(const struct es_flow *flow, __u32 seq, __u8 ret_packet[ES_NF_MADE_MAX]);

#endif
