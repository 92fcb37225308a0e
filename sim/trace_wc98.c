// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The WorldCup98 logs as the Internet Traffic Archive has them: records of 20 bytes, big endian: time,
 * client, object and size with 32 bits; method, status, type and server with 8. The status has the protocol
 * in its upper 2 bits and a number of the table below in the others; method 0 is GET, type 6 is dynamic
 * content; a size of all ones is none.
 */
#include <stdio.h>
#include "sim/trace.h"

#define ES_WC98_METHODS	     9
#define ES_WC98_TYPES	     13
#define ES_WC98_TYPE_DYNAMIC 6
#define ES_WC98_NO_SIZE	     0xffffffffu

static const short es_wc98_status[] = {
	100, 101, 200, 201, 202, 203, 204, 205, 206, 300, 301, 302, 303, 304, 305, 400, 401, 402, 403,
	404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 500, 501, 502, 503, 504, 505, 999,
};

static __u32 es_get_be32(const __u8 *bytes)
{
	return (__u32)bytes[0] << 24 | (__u32)bytes[1] << 16 | (__u32)bytes[2] << 8 | bytes[3];
}

enum es_trace_skip es_trace_wc98_record(const __u8 *bytes, char *uri_buffer,
					struct es_trace_record *ret_record)
{
	__u32 size = es_get_be32(bytes + 12);
	__u8 method = bytes[16], status = bytes[17] & 0x3f, type = bytes[18];

	if (method >= ES_WC98_METHODS || type >= ES_WC98_TYPES ||
	    status >= sizeof(es_wc98_status) / sizeof(es_wc98_status[0]))
		return ES_SKIP_BAD_CODE;
	*ret_record = (struct es_trace_record){
		.client = (__u64)es_get_be32(bytes + 4) + 1,
		.time_s = es_get_be32(bytes),
		.uri = uri_buffer,
		.uri_len = (size_t)snprintf(uri_buffer, 16, "/%u", es_get_be32(bytes + 8)),
		.size = size == ES_WC98_NO_SIZE ? 0 : size,
		.has_size = size != ES_WC98_NO_SIZE,
		.is_get = method == 0,
		.status = es_wc98_status[status],
		.is_dynamic = type == ES_WC98_TYPE_DYNAMIC,
	};
	return ES_TRACE_USED;
}
