/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_LIBEARSHOT_WIRE_H
#define ES_LIBEARSHOT_WIRE_H

/*
 * Between libearshot and earshotd of the same machine: a Unix socket of type SOCK_SEQPACKET, one message each
 * way. The request carries the connection's descriptor (SCM_RIGHTS), and the bytes after the struct.
 */
#include <stdint.h>

#define ES_PROGRAM_MAGIC   0x45534850u /* "ESHP" */
#define ES_PROGRAM_VERSION 1
/*
 * The bytes may be up to ES_PROGRAM_FRONT_MAX more than the program has ever read: something that it says to
 * the program there, in front of what the client has sent.
 */
#define ES_PROGRAM_VERSION_FRONT 2
#define ES_PROGRAM_FRONT_MAX	 8192
#define ES_PROGRAM_NODE_SIZE	 64
#define ES_PROGRAM_BYTES_MAX	 65536 /* behind the request */
#define ES_PROGRAM_DIRECTORY	 "/run/earshot"
#define ES_PROGRAM_SUFFIX	 ".handover"

/* @node: its name, with a NUL; "" for the node that is asked */
struct es_program_request {
	uint32_t magic;
	uint32_t version;
	char node[ES_PROGRAM_NODE_SIZE];
};

/* @result: 0 or -errno, as request_handover() returns it */
struct es_program_reply {
	uint32_t magic;
	int32_t result;
};

#endif
