// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The values that stand in lists of the configuration: what is a path, a network, a host name, ... Each is
 * judged alone; whether a node of that name is there is rules.c's to say.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspector/config/internal.h"
#include "inspector/content/url_path.h"

#define ALPHA "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGIT "0123456789"

/* A token of RFC 9110 section 5.6.2. */
int es_conf_token_is_valid(const char *text, size_t len)
{
	return len && strspn(text, ALPHA DIGIT "!#$%&'*+-.^_`|~") >= len;
}

/* Only the normal form: another spelling would look as if it could match something else. */
static int es_path_is_valid(const char *text)
{
	struct es_url_path normal;
	char copy[ES_CONF_PATH_SIZE];
	size_t len = strlen(text);

	if (!len || len >= sizeof(copy) || strpbrk(text, "?#"))
		return 0;
	memcpy(copy, text, len + 1);
	for (size_t i = 0; i < len; i++)
		if (copy[i] == '%')
			copy[i] = '_'; /* it means itself here */
	return !es_url_path_normalize(copy, len, &normal) && normal.len == len &&
	       !memcmp(normal.text, copy, len);
}

static int es_host_is_valid(const char *text)
{
	if (!strncmp(text, "*.", 2))
		text += 2;
	return *text && *text != '.' && strspn(text, ALPHA DIGIT "-._") == strlen(text);
}

static int es_parameter_is_valid(const char *text)
{
	const char *value = strchr(text, '=');

	return value && value > text && value[1];
}

int es_conf_network_parse(const char *text, struct es_addr *ret_address, unsigned int *ret_prefix)
{
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	unsigned long prefix = 32;
	struct es_addr address;
	char copy[64], *end;
	__u32 v4;

	if (len >= sizeof(copy) || memchr(text, ':', len))
		return -EINVAL; /* IPv6 is not available in this version */
	memcpy(copy, text, len);
	copy[len] = 0;
	if (es_conf_addr_parse(copy, &address) || !es_addr_is_v4(&address))
		return -EINVAL;
	if (slash) {
		if (!slash[1] || strspn(slash + 1, DIGIT) != strlen(slash + 1) || strlen(slash + 1) > 2)
			return -EINVAL;
		prefix = strtoul(slash + 1, &end, 10);
		if (*end || prefix > 32)
			return -EINVAL;
	}
	v4 = es_ntohl(address.w[3]);
	if (prefix < 32 && v4 << prefix)
		return -EINVAL;
	*ret_address = address;
	*ret_prefix = (unsigned int)prefix;
	return 0;
}

int es_conf_item_is_valid(enum es_conf_item item, const char *text, const char **ret_expected)
{
	struct es_addr address;
	unsigned int prefix;

	switch (item) {
	case ES_CONF_ITEM_NODE:
		*ret_expected = "the name of a node";
		return es_conf_name_is_valid(text);
	case ES_CONF_ITEM_METHOD:
		*ret_expected = "a method like GET";
		return strlen(text) < 32 && es_conf_token_is_valid(text, strlen(text));
	case ES_CONF_ITEM_HOST:
		*ret_expected = "a host name without port, or *.DOMAIN";
		return es_host_is_valid(text);
	case ES_CONF_ITEM_PATH:
		*ret_expected = "/directory/ with all below it, or /file; decoded, without \"//\", \".\", "
				"\"..\", ? and #";
		return es_path_is_valid(text);
	case ES_CONF_ITEM_SUFFIX:
		*ret_expected = "the end of a path like .mp4, without /";
		return *text && !strpbrk(text, "/?#");
	case ES_CONF_ITEM_NETWORK:
		*ret_expected =
			"an IPv4 address, or a network like 192.0.2.0/24 without bits behind its prefix";
		return !es_conf_network_parse(text, &address, &prefix);
	case ES_CONF_ITEM_PARAMETER:
		*ret_expected = "NAME=VALUE";
		return es_parameter_is_valid(text);
	}
	return 0;
}
