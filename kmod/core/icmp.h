/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_ICMP_H
#define ES_CORE_ICMP_H

/*
 * Errors of ICMP and ICMPv6: what is one, and where it quotes a datagram of UDP. A datapath loads the bytes.
 * A protocol after which no header is looked for (headers.h) may be anything.
 */
#include "headers.h"
#include "types.h"

#define ES_ICMPV6_INFORMS  0x80 /* the bit of types that are no errors */
#define ES_ICMP_ERROR_LAST 12

#define ES_ICMP_HEADER 8  /* bytes before what an error quotes */
#define ES_ICMP_QUOTED 20 /* of what it quotes, that are read for es_icmp_udp_at() */

/*
 * es_icmp_is_error() - is @type what quotes a packet (RFC 792, and RFC 4443, 2.1), be it one that nobody
 * sends any more?
 */
static __always_inline int es_icmp_is_error(__u8 type, int is_v6)
{
	/* destination unreachable, source quench, redirect, time exceeded, parameter problem */
	return is_v6 ? !(type & ES_ICMPV6_INFORMS)
		     : type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
}

/*
 * es_icmp_udp_at() - where UDP's header is in the packet that begins with @quoted; 0: it has none; -1: that
 * is unknown
 */
static __always_inline int es_icmp_udp_at(const __u8 *quoted, int is_v6)
{
	if (!is_v6)
		return quoted[9] == ES_HEADER_UDP ? (quoted[0] & 15) * 4 : 0;
	return quoted[6] == ES_HEADER_UDP ? 40 : es_headers_hide(quoted[6]) ? -1 : 0;
}

#endif
