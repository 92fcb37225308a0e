// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Normalises request paths, one component at a time. It knows nothing of files: whether there is one of that
 * name is the tree's to say.
 */
#include <errno.h>
#include "inspector/base/hex.h"
#include "inspector/base/url_path.h"

/* Decodes up to the next '/' or the end, behind what @ret has. */
static int es_component_decode(const char *path, size_t len, size_t *at, struct es_url_path *ret)
{
	size_t start = ret->len;

	for (; *at < len && path[*at] != '/'; (*at)++) {
		int c = (unsigned char)path[*at];

		if (c == '%') {
			int high = len - *at > 2 ? es_hex_digit(path[*at + 1]) : -1;
			int low = len - *at > 2 ? es_hex_digit(path[*at + 2]) : -1;

			if (high < 0 || low < 0)
				return -EINVAL;
			c = high << 4 | low;
			*at += 2;
			if (c == '/')
				return -EINVAL;
		}
		if (!c)
			return -EINVAL;
		/* One byte stays free for the slash. */
		if (ret->len - start == ES_URL_COMPONENT_MAX || ret->len + 1 >= ES_URL_PATH_MAX)
			return -ENAMETOOLONG;
		ret->text[ret->len++] = (char)c;
	}
	return 0;
}

/* Back behind the slash before the last component. */
static void es_component_drop(struct es_url_path *path)
{
	if (path->len > 1)
		path->len--;
	while (path->len > 1 && path->text[path->len - 1] != '/')
		path->len--;
}

static size_t es_query_cut(const char *path, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (path[i] == '?' || path[i] == '#')
			return i;
	return len;
}

int es_url_path_normalize(const char *path, size_t len, struct es_url_path *ret)
{
	size_t at = 0;

	len = es_query_cut(path, len);
	ret->len = 0;
	if (!len || path[0] != '/')
		return -EINVAL;
	ret->text[ret->len++] = '/';
	while (at < len) {
		size_t start = ret->len, size;
		int rc;

		at++; /* the slash that ended the component before; @ret ends with one */
		rc = es_component_decode(path, len, &at, ret);
		if (rc)
			return rc;
		size = ret->len - start;
		if (size == 1 && ret->text[start] == '.') {
			ret->len = start;
		} else if (size == 2 && ret->text[start] == '.' && ret->text[start + 1] == '.') {
			ret->len = start;
			es_component_drop(ret);
		} else if (size && at < len) {
			ret->text[ret->len++] = '/';
		}
	}
	return 0;
}
