// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Translates ICMP errors that come in.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include "kmod/core/checksum.h"
#include "netfilter/kernel/packet.h"
#include "netfilter/rebuild/errors.h"

#define ES_ICMP_LEN   8	 /* bytes before the quoted packet */
#define ES_CHECK_AT   2	 /* of the checksum */
#define ES_FLAGS_AT   13 /* of TCP's flags */
#define ES_QUOTED_LEN 8	 /* bytes of TCP, at least: ports, and the sequence number at byte 4 */

/* A later fragment has no TCP header. A server's packet of IPv6 has no fragment header. */
static int is_later_part(const __u8 *packet)
{
	return packet[0] >> 4 == 4 && (packet[6] & 0x1f || packet[7]);
}

int es_nf_errors_read(const __u8 *packet, size_t len, struct es_nf_error *ret_error)
{
	struct es_nf_ip ip, quoted;
	size_t at;

	if (es_nf_ip_read(packet, len, &ip) || ip.len > len)
		return -EBADMSG;
	at = ip.at + ES_ICMP_LEN;
	if (at >= ip.len || es_nf_ip_read(packet + at, ip.len - at, &quoted) || quoted.is_v6 != ip.is_v6 ||
	    quoted.next != IPPROTO_TCP || is_later_part(packet + at) ||
	    at + quoted.at + ES_QUOTED_LEN > ip.len)
		return -EBADMSG;
	at += quoted.at;
	*ret_error = (struct es_nf_error){
		.flow = {.client = quoted.dest,
			 .service = quoted.source,
			 .client_port = es_nf_be16(packet + at + 2),
			 .service_port = es_nf_be16(packet + at)},
		.check_at = ip.at + ES_CHECK_AT,
		.seq_at = at + 4,
	};
	return 0;
}

/* Replaces a word at an even offset after the ICMP header, and updates the checksum (RFC 1624). */
static void put_word(__u8 *packet, size_t check_at, size_t at, __u16 word)
{
	__u16 old, check;

	memcpy(&old, packet + at, sizeof(old));
	memcpy(packet + at, &word, sizeof(word));
	memcpy(&check, packet + check_at, sizeof(check));
	check = (__u16)~es_csum_fold((__u32)(__u16)~check + (__u16)~old + word);
	memcpy(packet + check_at, &check, sizeof(check));
}

/*
 * Conntrack gives the error to the connection's entry, and then shifts what it takes for a segment's numbers
 * (nf_confirm(), nf_ct_seq_adjust()): the acknowledgement, if the ACK flag is set. At those offsets is the
 * start of the quoted packet; in place of the flags there is the low byte of IPv4's identification, or of
 * IPv6's length, which no socket reads.
 */
static void hide_flag(const struct es_nf_error *error, __u8 *packet)
{
	size_t at = error->check_at - ES_CHECK_AT + ES_FLAGS_AT - 1;
	__u8 word[2] = {packet[at], packet[at + 1] & (__u8)~ES_TCP_ACK};
	__u16 value;

	memcpy(&value, word, sizeof(value));
	put_word(packet, error->check_at, at, value);
}

void es_nf_errors_translate(const struct es_nf_error *error, const struct es_nf_entry *entry, __u8 *packet)
{
	__u32 seq = es_ntohl(es_nf_be32(packet + error->seq_at)) - (__u32)entry->offsets.server.after;

	put_word(packet, error->check_at, error->seq_at, es_htons(seq >> 16));
	put_word(packet, error->check_at, error->seq_at + 2, es_htons(seq));
	hide_flag(error, packet);
}
