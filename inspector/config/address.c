// SPDX-License-Identifier: GPL-2.0-or-later
/* Addresses as the configuration has them, of either family: from text and to text. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "inspector/config/config.h"

const char *es_conf_addr_text(const struct es_addr *address, char *text)
{
	if (es_addr_is_v4(address))
		inet_ntop(AF_INET, &address->w[3], text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, address, text, INET6_ADDRSTRLEN);
	return text;
}

const char *es_conf_service_text(const struct es_conf_service *service, char *text)
{
	char one[INET6_ADDRSTRLEN];
	size_t used = 0;

	_Static_assert(ES_CONF_ADDRESSES_SIZE >= ES_CONF_FAMILIES * (INET6_ADDRSTRLEN + 2), "they fit");
	text[0] = 0;
	for (unsigned int family = 0; family < ES_CONF_FAMILIES; family++) {
		const struct es_addr *address = es_conf_service_of(service, family);

		if (address)
			used += (size_t)snprintf(text + used, ES_CONF_ADDRESSES_SIZE - used, "%s%s",
						 used ? ", " : "", es_conf_addr_text(address, one));
	}
	return text;
}

int es_conf_addr_parse(const char *text, struct es_addr *ret_address)
{
	struct in6_addr v6;
	struct in_addr v4;

	if (inet_pton(AF_INET, text, &v4) == 1) {
		*ret_address = es_addr_from_v4(v4.s_addr);
		return 0;
	}
	if (inet_pton(AF_INET6, text, &v6) == 1) {
		memcpy(ret_address->b, v6.s6_addr, sizeof(ret_address->b));
		return 0;
	}
	return -EINVAL;
}
