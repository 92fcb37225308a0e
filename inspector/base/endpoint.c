// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An address and a port as people write them: where the one ends and the other begins. Whether it is an
 * address, others say.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/base/endpoint.h"

int es_endpoint_split(const char *text, char ret_address[INET6_ADDRSTRLEN], int *ret_port)
{
	int is_bracketed = *text == '[';
	const char *begin = text + is_bracketed, *behind;
	size_t len = strcspn(begin, is_bracketed ? "]" : ":");
	long port = -1;
	char *end;

	if (is_bracketed && begin[len] != ']')
		return -EINVAL;
	behind = begin + len + is_bracketed;
	if (!is_bracketed && *behind && strchr(behind + 1, ':')) { /* an IPv6 address alone */
		len = strlen(begin);
		behind = begin + len;
	}
	if (len >= INET6_ADDRSTRLEN || (*behind && *behind != ':'))
		return -EINVAL;
	if (*behind) {
		port = strtol(behind + 1, &end, 10);
		if (!isdigit((unsigned char)behind[1]) || *end || port > 65535)
			return -EINVAL;
	}
	memcpy(ret_address, begin, len);
	ret_address[len] = '\0';
	*ret_port = (int)port;
	return 0;
}
