/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_ENDPOINT_H
#define ES_ENDPOINT_H

/*
 * An address and a port as people write them on a command line.
 */
#include <netinet/in.h>

/*
 * es_endpoint_split() - ADDRESS, ADDRESS:PORT, [ADDRESS] or [ADDRESS]:PORT
 *
 * Without brackets, an IPv6 address has no port: each of its colons is its own (RFC 3986 has the brackets for
 * that).
 *
 * @ret_address: its text, which nobody has checked; @ret_port: 0 to 65535, or -1 if there is none
 *
 * Returns 0, or -EINVAL if it is none of these.
 */
int es_endpoint_split(const char *text, char ret_address[INET6_ADDRSTRLEN], int *ret_port);

#endif
