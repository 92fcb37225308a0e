// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Checks the values in lists of the configuration, each alone: is it a path, a network, a host name, ...? A
 * value that no request can match is refused, and the error says what to write. It is rules.c that checks
 * whether there is a node of that name.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspector/base/hex.h"
#include "inspector/base/url_path.h"
#include "inspector/config/internal.h"

#define ALPHA	   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGIT	   "0123456789"
#define METHOD_MAX 32 /* http/head.h takes no longer word for a method */

/* A token of RFC 9110 section 5.6.2. */
int es_conf_token_is_valid(const char *text, size_t len)
{
	return len && strspn(text, ALPHA DIGIT "!#$%&'*+-.^_`|~") >= len;
}

int es_conf_name_is_valid(const char *name)
{
	size_t len = strlen(name);

	if (!len || len >= ES_CONF_NAME_SIZE || !isalnum((unsigned char)name[0]))
		return 0;
	return strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == len;
}

#define PATH_EXPECTED                                                                                        \
	"/directory/ with all below it, or /file; %XX or UTF-8; without \"//\", \".\", \"..\", ? and #"

/* @text with each %XX decoded, as a request's path is before it is compared. */
static int es_item_decode(const char *text, char *ret_value, const char **ret_expected)
{
	size_t len = 0;

	for (const char *at = text; *at; at++) {
		int high, low, c = (unsigned char)*at;

		if (c == '*') {
			*ret_expected =
				"no *: /directory/ is all below it, a suffix any name that ends so; the "
				"character itself is %2A";
			return 0;
		}
		if (c == '%') {
			high = es_hex_digit(at[1]);
			low = high < 0 ? -1 : es_hex_digit(at[2]);
			if (low < 0) {
				*ret_expected = "two hexadecimal digits after %; the character itself is %25";
				return 0;
			}
			c = high << 4 | low;
			at += 2;
			if (c == '/') {
				*ret_expected = "no %2F, which servers read differently: it meets no rule";
				return 0;
			}
		}
		if (c < ' ' || c == 0x7f) {
			*ret_expected = "no control characters";
			return 0;
		}
		if (len == ES_CONF_PATH_SIZE - 1) {
			*ret_expected = "at most 255 characters";
			return 0;
		}
		ret_value[len++] = (char)c;
	}
	ret_value[len] = 0;
	return 1;
}

/* Takes only a path in its normal form: another spelling would look as if it could match something else. */
static int es_path_read(const char *text, char *ret_value, const char **ret_expected)
{
	struct es_url_path normal;

	if (strpbrk(text, "?#") || text[0] != '/') {
		*ret_expected = PATH_EXPECTED;
		return 0;
	}
	if (!es_item_decode(text, ret_value, ret_expected))
		return 0;
	*ret_expected = PATH_EXPECTED;
	return !es_url_path_normalize(text, strlen(text), &normal) && normal.len == strlen(ret_value) &&
	       !memcmp(normal.text, ret_value, normal.len);
}

static int es_suffix_read(const char *text, char *ret_value, const char **ret_expected)
{
	if (*text && !strpbrk(text, "/?#"))
		return es_item_decode(text, ret_value, ret_expected);
	*ret_expected = "the end of a path like .mp4, without /";
	return 0;
}

/* Returns what to write instead of @text, if it is a usual mistake, which no request's host is; else NULL. */
static const char *es_host_mistake(const char *text)
{
	for (const char *at = text; *at; at++)
		if ((unsigned char)*at >= 0x80)
			return "the name as clients send it, in ASCII: xn--...";
	if (strstr(text, "://"))
		return "a host name alone, without http://";
	if (*text == '[' || strchr(text, ':'))
		return "a host name without port, or *.DOMAIN: any port matches";
	if (*text == '.')
		return "*.DOMAIN for all names below it, DOMAIN for itself";
	if (*text && text[strlen(text) - 1] == '.')
		return "no final dot: it is taken off the request's host, too";
	return NULL;
}

static int es_host_is_valid(const char *text, const char **ret_expected)
{
	const char *mistake = es_host_mistake(text);

	*ret_expected = mistake ? mistake : "a host name without port, or *.DOMAIN";
	if (mistake)
		return 0;
	if (!strncmp(text, "*.", 2))
		text += 2;
	return *text && *text != '.' && strspn(text, ALPHA DIGIT "-._") == strlen(text);
}

static int es_called_is_valid(const char *text, const char **ret_expected)
{
	struct es_addr address;

	return !es_conf_addr_parse(text, &address) || es_host_is_valid(text, ret_expected);
}

static int es_method_is_valid(const char *text, const char **ret_expected)
{
	*ret_expected = "a method like GET";
	if (strlen(text) >= METHOD_MAX || !es_conf_token_is_valid(text, strlen(text)))
		return 0;
	*ret_expected = "capital letters, as in GET: methods are compared as they are sent";
	return !text[strcspn(text, "abcdefghijklmnopqrstuvwxyz")];
}

static int es_parameter_is_valid(const char *text)
{
	const char *value = strchr(text, '=');

	return value && value > text && value[1];
}

/* How many bits of an address of that family count. Returns -EINVAL if @text says no number of them. */
static int es_network_bits(const char *text, unsigned int most)
{
	unsigned long bits;

	if (!text[0] || strspn(text, DIGIT) != strlen(text) || strlen(text) > 3)
		return -EINVAL;
	bits = strtoul(text, NULL, 10);
	return bits > most ? -EINVAL : (int)bits;
}

static int es_network_ends(const struct es_prefix *network)
{
	for (unsigned int i = network->bits; i < 128; i++)
		if (network->address.b[i / 8] >> (7 - i % 8) & 1)
			return 0;
	return 1;
}

int es_conf_network_parse(const char *text, struct es_prefix *ret_network)
{
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	struct es_prefix network = {.bits = 128};
	char copy[64];
	int is_v4, bits;

	if (len >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, text, len);
	copy[len] = 0;
	if (es_conf_addr_parse(copy, &network.address))
		return -EINVAL;
	is_v4 = es_addr_is_v4(&network.address);
	if (is_v4 && strchr(copy, ':'))
		return -EINVAL; /* ::ffff:192.0.2.1 is no way to write an address of IPv4 here */
	if (slash) {
		bits = es_network_bits(slash + 1, is_v4 ? 32 : 128);
		if (bits < 0)
			return bits;
		network.bits = (unsigned int)bits + (is_v4 ? ES_PREFIX_V4 : 0);
	}
	if (!es_network_ends(&network))
		return -EINVAL;
	*ret_network = network;
	return 0;
}

int es_conf_item_is_escaped(enum es_conf_item item, const char *text)
{
	if (item != ES_CONF_ITEM_PATH && item != ES_CONF_ITEM_SUFFIX)
		return 0;
	for (const char *at = strchr(text, '%'); at; at = strchr(at + 1, '%')) {
		int high = es_hex_digit(at[1]), low = high < 0 ? -1 : es_hex_digit(at[2]);

		if (low >= 0 && high < 8 && !strchr("%*?#\"'\\", 16 * high + low))
			return 1;
	}
	return 0;
}

#define NETWORK_EXPECTED                                                                                     \
	"an IP address, or a network like 192.0.2.0/24 or 2001:db8::/32 without bits after its prefix"

static int es_peers_are_valid(const char *text, const char **ret_expected)
{
	struct es_prefix network;

	*ret_expected = NETWORK_EXPECTED;
	return !es_conf_network_parse(text, &network);
}

/* Has the network addresses other than those of groups and of the machine itself? */
static int es_network_has_clients(const struct es_prefix *network)
{
	const struct es_addr *address = &network->address;

	if (es_prefix_is_v4(network))
		return network->bits < ES_PREFIX_V4 + 8 ||
		       (address->b[12] && address->b[12] != 127 && address->b[12] < 224);
	if (network->bits >= ES_PREFIX_V4 && !address->w[0] && !address->w[1] && !address->w[2])
		return 0;
	return network->bits < 8 || address->b[0] != 0xff;
}

/* Is this a network that clients can be in? */
static int es_network_is_valid(const char *text, const char **ret_expected)
{
	struct es_prefix network;

	*ret_expected = NETWORK_EXPECTED;
	if (es_conf_network_parse(text, &network))
		return 0;
	*ret_expected =
		"a network that clients have addresses of: a machine's requests to itself are not seen";
	return es_network_has_clients(&network);
}

/* RFC 9110, 15.2: other answers 1xx than 101 are followed by one that counts. */
static int es_status_parse(const char *text, size_t len, unsigned int *ret_status)
{
	if (len != 3 || strspn(text, DIGIT) < 3)
		return -EINVAL;
	*ret_status = (unsigned int)strtoul(text, NULL, 10);
	return *ret_status == 101 || (*ret_status >= 200 && *ret_status <= ES_CONF_STATUS_MAX) ? 0 : -EINVAL;
}

int es_conf_statuses_parse(const char *text, unsigned int *ret_first, unsigned int *ret_last)
{
	const char *dots = strstr(text, "..");
	unsigned int first, last;

	if (es_status_parse(text, dots ? (size_t)(dots - text) : strlen(text), &first))
		return -EINVAL;
	last = first;
	if (dots && (es_status_parse(dots + 2, strlen(dots + 2), &last) || first < 200 || last < first))
		return -EINVAL;
	*ret_first = first;
	*ret_last = last;
	return 0;
}

static int es_statuses_are_valid(const char *text, const char **ret_expected)
{
	unsigned int first, last;

	*ret_expected = "101, or one of 200..599, or some of them like 200..299";
	return !es_conf_statuses_parse(text, &first, &last);
}

int es_conf_item_read(enum es_conf_item item, const char *text, char *ret_value, const char **ret_expected)
{
	int is_valid = 0;

	switch (item) {
	case ES_CONF_ITEM_PATH:
		return es_path_read(text, ret_value, ret_expected);
	case ES_CONF_ITEM_SUFFIX:
		return es_suffix_read(text, ret_value, ret_expected);
	case ES_CONF_ITEM_NODE:
		*ret_expected = "the name of a node";
		is_valid = es_conf_name_is_valid(text);
		break;
	case ES_CONF_ITEM_METHOD:
		is_valid = es_method_is_valid(text, ret_expected);
		break;
	case ES_CONF_ITEM_HOST:
		is_valid = es_host_is_valid(text, ret_expected);
		break;
	case ES_CONF_ITEM_NETWORK:
		is_valid = es_network_is_valid(text, ret_expected);
		break;
	case ES_CONF_ITEM_PEERS:
		is_valid = es_peers_are_valid(text, ret_expected);
		break;
	case ES_CONF_ITEM_CALLED:
		is_valid = es_called_is_valid(text, ret_expected);
		break;
	case ES_CONF_ITEM_PARAMETER:
		*ret_expected = "NAME=VALUE";
		is_valid = es_parameter_is_valid(text);
		break;
	case ES_CONF_ITEM_STATUS:
		is_valid = es_statuses_are_valid(text, ret_expected);
		break;
	case ES_CONF_ITEM_ROUTE:
		*ret_expected = ES_CONF_TOKEN_EXPECTED;
		is_valid = strlen(text) < ES_CONF_NAME_SIZE && es_conf_token_is_valid(text, strlen(text));
		break;
	}
	if (is_valid && strlen(text) >= ES_CONF_PATH_SIZE) {
		*ret_expected = "at most 255 characters";
		return 0;
	}
	if (is_valid)
		memcpy(ret_value, text, strlen(text) + 1);
	return is_valid;
}
