/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NAME_H
#define ES_NAME_H

/*
 * The name of what a request is for. Requests with the same name are for the same content: policies keep them
 * together, on the content ring and in the content table. Daemon and simulator make it with one function.
 */
#include <stddef.h>

/* No request head is longer, and a name is shorter than its head. */
#define ES_NAME_MAX 65536u

/* struct es_name - "//host/path?query", or "/path?query" without a host; not terminated */
struct es_name {
	size_t len;
	char text[ES_NAME_MAX];
};

/**
 * es_name_make() - from what a request says
 * @host: as sent, perhaps with a port; NULL if there is none, or if it says nothing about the content
 * @uri: path and query; an empty path is "/" (RFC 9110 section 4.2.3)
 * The host counts in any case, without port and final dot; a percent-encoded character that need not be is
 * decoded, the others' digits count in any case (RFC 3986 sections 6.2.2.1, 6.2.2.2 and 6.2.3). A name that
 * does not fit is cut.
 */
void es_name_make(struct es_name *name, const char *host, size_t host_len, const char *uri, size_t uri_len);

/* es_name_host_len() - how much of a Host header's value is the host: without port and final dot */
size_t es_name_host_len(const char *host, size_t len);

#endif
