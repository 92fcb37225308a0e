/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_URL_PATH_H
#define ES_URL_PATH_H

/*
 * The path of a request as the content tree has it: percent-decoded, without dot-segments, without double
 * slashes, without query. Two paths that a file server serves from the same file are the same then.
 */
#include <stddef.h>

#define ES_URL_PATH_MAX	     2048u
#define ES_URL_COMPONENT_MAX 255u /* NAME_MAX: a longer one is no file's */

/* struct es_url_path - @text starts with '/', ends without NUL, and with '/' if it is a directory's */
struct es_url_path {
	size_t len;
	char text[ES_URL_PATH_MAX];
};

/**
 * es_url_path_normalize() - RFC 3986 sections 2.1, 5.2.4 and 6.2.2
 * Each component is decoded once and judged after that, so %2e%2e is a dot-segment and %252e is none. ".." in
 * the root stays there, as the RFC has it; a server that answers 400 instead does so wherever the request
 * goes. Bytes above 0x7f are taken as they are: an overlong UTF-8 dot is none. What stands behind '?' or '#'
 * is ignored.
 * Not normalised is what servers take for different things: a path without its first slash, %2F (a slash to
 * one, part of a name to another), NUL, a '%' without two digits.
 * Returns 0, -EINVAL for these, -ENAMETOOLONG for a path or component above the bounds; @ret is not usable
 * then.
 */
int es_url_path_normalize(const char *path, size_t len, struct es_url_path *ret);

#endif
