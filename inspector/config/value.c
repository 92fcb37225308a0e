// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Values of configuration keys: from the text in the file to the field of the section's structure, each kind
 * with its own range check and with a message that says what would be accepted. A value is judged alone here;
 * what must hold between values is check.c's.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspector/config/internal.h"

/* Everything about one value that a message needs. */
struct es_value {
	struct es_conf_parse *p;
	int line;
	const char *label;
	const struct es_conf_key *key;
	const char *text;
};

static int es_value_fail(const struct es_value *v, const char *why)
{
	return es_conf_fail(v->p, v->line, "%s: %s = %.80s: %s", v->label, v->key->name, v->text, why);
}

/* Digits to a number; -EINVAL for anything else, -ERANGE beyond 32 bits. */
static int es_value_digits(const char *text, unsigned int *ret_number)
{
	unsigned long long number = 0;
	const char *c;

	if (!*text)
		return -EINVAL;
	for (c = text; *c; c++) {
		if (!isdigit((unsigned char)*c))
			return -EINVAL;
		if (number <= 0xffffffffULL)
			number = number * 10 + (unsigned int)(*c - '0');
	}
	if (number > 0xffffffffULL)
		return -ERANGE;
	*ret_number = (unsigned int)number;
	return 0;
}

static int es_value_number(const struct es_value *v, unsigned int *field)
{
	const struct es_conf_key *key = v->key;
	unsigned int number = 0;
	char why[128];
	size_t used;
	int r;

	r = es_value_digits(v->text, &number);
	if (!r && ((number >= key->min && number <= key->max) || (number == 0 && key->zero))) {
		*field = number;
		return 0;
	}
	used = (size_t)snprintf(why, sizeof(why), "expected %s", r == -EINVAL ? "a plain number " : "");
	if (key->zero && key->min > 0)
		used += (size_t)snprintf(why + used, sizeof(why) - used, "0 (%s) or ", key->zero);
	used += (size_t)snprintf(why + used, sizeof(why) - used, "%u..%u", key->min, key->max);
	if (key->unit)
		snprintf(why + used, sizeof(why) - used, " (%s)", key->unit);
	return es_value_fail(v, why);
}

void es_conf_alternative(char *why, size_t size, int *alternatives, const char *word)
{
	size_t used = strlen(why);

	snprintf(why + used, size - used, "%s%s", (*alternatives)++ ? " | " : "", word);
}

static int es_value_choice(const struct es_value *v, int *field)
{
	const struct es_conf_choice *c;
	int alternatives = 0;
	char why[160] = "expected ";

	for (c = v->key->choices; c->name; c++) {
		if (!strcmp(c->name, v->text)) {
			*field = c->value;
			return 0;
		}
	}
	for (c = v->key->choices; c->name; c++)
		es_conf_alternative(why, sizeof(why), &alternatives, c->name);
	return es_value_fail(v, why);
}

static int es_value_store(const struct es_value *v, char *field, const char *expected)
{
	size_t len = strlen(v->text);

	if (len >= v->key->size)
		return es_value_fail(v, expected);
	memcpy(field, v->text, len + 1);
	return 0;
}

static int es_value_text(const struct es_value *v, char *field)
{
	if (!*v->text)
		return es_value_fail(v, "expected 1..63 characters");
	return es_value_store(v, field, "expected 1..63 characters");
}

static int es_value_path(const struct es_value *v, char *field)
{
	if (v->text[0] != '/')
		return es_value_fail(v, "expected an absolute path");
	return es_value_store(v, field, "expected a path of at most 255 characters");
}

/* A plugin's file: a name in the plugins' directory, or an absolute path. */
static int es_value_file(const struct es_value *v, char *field)
{
	if (v->text[0] != '/' && (!*v->text || strchr(v->text, '/')))
		return es_value_fail(v, "expected the name of a file, or an absolute path");
	return es_value_store(v, field, "expected at most 255 characters");
}

static int es_value_ifname(const struct es_value *v, char *field)
{
	static const char expected[] = "expected the name of a network interface, 1..127 characters";

	if (!*v->text || !strcmp(v->text, ".") || !strcmp(v->text, "..") || strpbrk(v->text, "/ :%"))
		return es_value_fail(v, expected);
	return es_value_store(v, field, expected);
}

/*
 * Is it the address of a single machine? A group is none, nor a link-local address, which would need an
 * interface, nor an IPv4 address in disguise.
 */
static int es_value_address6_is_valid(const struct es_addr *a)
{
	if (!a->w[0] && !a->w[1] && (!a->w[2] || a->w[2] == es_htonl(0xffff)))
		return 0;
	return a->b[0] != 0xff && !(a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80);
}

static int es_value_is_local(const struct es_value *v)
{
	return v->key->kind == ES_CONF_KIND_LOCAL || v->key->kind == ES_CONF_KIND_LOCALS;
}

static int es_value_address_v6(const struct es_value *v, const struct es_addr *address)
{
	static const struct es_addr loopback = {.b = {[15] = 1}};

	if (es_value_is_local(v) && es_addr_equal(address, &loopback))
		return 0;
	if (!es_value_address6_is_valid(address))
		return es_value_fail(v, "expected a unicast IPv6 address of a network, and not of a link");
	return 0;
}

static int es_value_address(const struct es_value *v, struct es_addr *field)
{
	struct es_addr address;
	__u32 v4;

	if (es_conf_addr_parse(v->text, &address))
		return es_value_fail(v, "expected an IP address");
	if (strchr(v->text, ':')) {
		if (es_value_address_v6(v, &address))
			return -EINVAL;
		*field = address;
		return 0;
	}
	v4 = es_ntohl(address.w[3]);
	if (v4 >> 24 == 0 || (v4 >> 24 == 127 && !es_value_is_local(v)) || v4 >> 28 >= 0xe)
		return es_value_fail(v, "expected a unicast IPv4 address of a network");
	*field = address;
	return 0;
}

/*
 * Reads one address, or two of different families, into @address and @address6, of which one is all zeros if
 * its family is not given.
 */
static int es_value_addresses(const struct es_value *v, struct es_addr *address, struct es_addr *address6)
{
	struct es_addr found[2] = {};
	char copy[2 * INET6_ADDRSTRLEN], *save = NULL;
	struct es_value one = *v;
	const char *text = v->text;

	if (strlen(text) >= sizeof(copy))
		return es_value_fail(v, "expected an IP address, or one of each family");
	memcpy(copy, text, strlen(text) + 1);
	one.text = strtok_r(copy, ", ", &save);
	if (!one.text)
		return es_value_fail(v, "expected an IP address");
	for (; one.text; one.text = strtok_r(NULL, ", ", &save)) {
		struct es_addr read = {}, *place;

		if (es_value_address(&one, &read))
			return -EINVAL;
		place = &found[!es_addr_is_v4(&read)];
		if (es_addr_is_set(place))
			return es_value_fail(v, es_value_is_local(v)
							? "two of one family: expected one of each"
							: "two of one family: expected one of each, "
							  "or another service");
		*place = read;
	}
	*address = found[0];
	*address6 = found[1];
	return 0;
}

/* Six pairs of hexadecimal digits with colons between them. */
static int es_value_mac(const struct es_value *v, unsigned char *field)
{
	static const char expected[] = "expected a MAC address like 03:bf:0a:4d:00:64";
	unsigned char mac[6];
	const char *pos = v->text;
	char *end;
	size_t i;

	for (i = 0; i < sizeof(mac); i++) {
		if (!isxdigit((unsigned char)pos[0]) || !isxdigit((unsigned char)pos[1]))
			return es_value_fail(v, expected);
		mac[i] = (unsigned char)strtoul(pos, &end, 16);
		if (end != pos + 2 || *end != (i < 5 ? ':' : 0))
			return es_value_fail(v, expected);
		pos = end + 1;
	}
	memcpy(field, mac, sizeof(mac));
	return 0;
}

static int es_value_policy(const struct es_value *v, char *field)
{
	int alternatives = 0;
	char why[384];

	if (es_policy_find(v->text))
		return es_value_store(v, field, "expected a shorter name");
	snprintf(why, sizeof(why), "expected ");
	for (const struct es_policy *const *known = es_policy_list(); *known; known++)
		es_conf_alternative(why, sizeof(why), &alternatives, (*known)->name);
	return es_value_fail(v, why);
}

static int es_value_token(const struct es_value *v, char *field)
{
	static const char expected[] = "expected " ES_CONF_TOKEN_EXPECTED;

	if (!es_conf_token_is_valid(v->text, strlen(v->text)))
		return es_value_fail(v, expected);
	return es_value_store(v, field, expected);
}

/*
 * Does @value look as if an asterisk in it stood for anything? A media range does not: there a slash precedes
 * it.
 */
static int es_header_has_wildcard(const char *value)
{
	for (const char *star = strchr(value, '*'); star; star = strchr(star + 1, '*'))
		if (isalnum((unsigned char)star[1]) || (star > value && isalnum((unsigned char)star[-1])))
			return 1;
	return 0;
}

/* "Name", or "Name: value" */
static int es_value_header(const struct es_value *v, char *field)
{
	static const char expected[] = "expected \"Name\" or \"Name: value\", at most 255 characters";
	size_t len = strcspn(v->text, ":");
	const char *value = v->text + len;

	if (!es_conf_token_is_valid(v->text, len))
		return es_value_fail(v, expected);
	if (*value && (value[1] != ' ' || !value[2] || value[2] == ' ' || value[strlen(value) - 1] == ' '))
		return es_value_fail(v, expected);
	if (es_header_has_wildcard(value))
		es_conf_warn(v->p, v->line,
			     "%s: %s = %.80s: a value is compared as a whole, and * stands for itself",
			     v->label, v->key->name, v->text);
	return es_value_store(v, field, expected);
}

/* Text of one line, in UTF-8 perhaps: it is the file's own business what it says. */
static int es_value_body(const struct es_value *v, char *field)
{
	static const char expected[] = "expected 1..255 bytes of text on one line";

	if (!*v->text)
		return es_value_fail(v, expected);
	for (const char *c = v->text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return es_value_fail(v, expected);
	return es_value_store(v, field, expected);
}

static int es_value_list(const struct es_value *v, struct es_conf_list *field)
{
	char value[ES_CONF_PATH_SIZE], why[192], *text;
	const char *expected;
	size_t len;

	if (!es_conf_item_read(v->key->item, v->text, value, &expected)) {
		snprintf(why, sizeof(why), "expected %s", expected);
		return es_value_fail(v, why);
	}
	if (es_conf_item_is_escaped(v->key->item, v->text))
		es_conf_warn(v->p, v->line, "%s: %s = %.80s " ES_CONF_ESCAPED, v->label, v->key->name,
			     v->text, value);
	if (field->count == ES_CONF_LIST_MAX) {
		snprintf(why, sizeof(why), "too many: expected at most %d values in a list",
			 ES_CONF_LIST_MAX);
		return es_value_fail(v, why);
	}
	len = strlen(value) + 1;
	text = realloc(field->text, field->used + len);
	if (!text)
		return es_value_fail(v, "out of memory");
	field->text = text;
	memcpy(text + field->used, value, len);
	field->used += (unsigned int)len;
	field->count++;
	return 0;
}

int es_conf_rate_parse(const char *text, unsigned int *ret_count, unsigned int *ret_per_s)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long count = digits && digits <= 6 ? strtoul(text, NULL, 10) : 0;
	char unit = (char)(text[digits] == '/' ? text[digits + 1] : 0);

	if (!count || count > 100000 || !unit || text[digits + 2] || !strchr("smh", unit))
		return -EINVAL;
	*ret_count = (unsigned int)count;
	*ret_per_s = unit == 's' ? 1 : unit == 'm' ? 60 : 3600;
	return 0;
}

static int es_value_rate(const struct es_value *v, char *field)
{
	static const char expected[] =
		"expected 1..100000 requests in a second, minute or hour, such as 20/s, 100/m or "
		"1000/h";
	unsigned int count, per_s;

	if (es_conf_rate_parse(v->text, &count, &per_s))
		return es_value_fail(v, expected);
	snprintf(field, ES_CONF_RATE_SIZE, "%s", v->text);
	return 0;
}

/* The next file of a list; the array is full of zeros behind the last one. */
static int es_value_files(const struct es_value *v, char *files)
{
	struct es_conf_key one = *v->key;
	struct es_value path = *v;
	char why[64];

	for (size_t at = 0; at < v->key->size; at += ES_CONF_PATH_SIZE) {
		if (files[at])
			continue;
		one.size = ES_CONF_PATH_SIZE;
		path.key = &one;
		return es_value_path(&path, files + at);
	}
	snprintf(why, sizeof(why), "too many: expected at most %zu", v->key->size / ES_CONF_PATH_SIZE);
	return es_value_fail(v, why);
}

/* The protocols of TLS's ALPN, in the order in which they are preferred; each at most once. */
static int es_value_alpn(const struct es_value *v, char *field)
{
	static const char *const names[] = {"h2", "http/1.1"};
	static const char expected[] = "expected h2 and http/1.1, or one of them, with \", \" between them";
	unsigned int seen = 0;
	const char *at = v->text;
	size_t used = 0;

	do {
		size_t skip = strspn(at, " \t"), len = strcspn(at + skip, ", \t");
		unsigned int i = 0;

		at += skip;
		while (i < 2 && (strlen(names[i]) != len || strncmp(names[i], at, len) != 0))
			i++;
		if (i == 2 || (seen & 1U << i))
			return es_value_fail(v, expected);
		seen |= 1U << i;
		used += (size_t)snprintf(field + used, v->key->size - used, "%s%s", used ? ", " : "",
					 names[i]);
		at += len + strspn(at + len, " \t");
	} while (*at++ == ',');
	return at[-1] ? es_value_fail(v, expected) : 0;
}

static int es_value_ciphers(const struct es_value *v, char *field)
{
	static const char expected[] =
		"expected names of OpenSSL with \":\" between them, at most 2047 characters";

	if (!*v->text || v->text[strspn(v->text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
						 "0123456789-_+!@=:")])
		return es_value_fail(v, expected);
	return es_value_store(v, field, expected);
}

static int es_value_endpoint(const struct es_value *v, char *field)
{
	static const char expected[] =
		"expected ADDRESS:PORT, [IPv6 ADDRESS]:PORT or unix:/PATH of at most 107 "
		"characters";
	struct es_conf_endpoint endpoint;

	if (es_conf_endpoint_parse(v->text, &endpoint))
		return es_value_fail(v, expected);
	return es_value_store(v, field, expected);
}

int es_conf_value_set(struct es_conf_parse *p, int line, const char *label, const struct es_conf_key *key,
		      const char *value, void *section_data)
{
	const struct es_value v = {.p = p, .line = line, .label = label, .key = key, .text = value};
	void *field = (char *)section_data + key->offset;
	struct es_conf_service *service = section_data; /* for the kinds that only a service has */

	switch (key->kind) {
	case ES_CONF_KIND_NUMBER:
		return es_value_number(&v, field);
	case ES_CONF_KIND_CHOICE:
		return es_value_choice(&v, field);
	case ES_CONF_KIND_TEXT:
		return es_value_text(&v, field);
	case ES_CONF_KIND_PATH:
		return es_value_path(&v, field);
	case ES_CONF_KIND_FILE:
		return es_value_file(&v, field);
	case ES_CONF_KIND_CONFIG:
		return es_value_store(&v, field, "expected at most 2047 characters, or a config_file");
	case ES_CONF_KIND_IFNAME:
		return es_value_ifname(&v, field);
	case ES_CONF_KIND_ADDRESS:
	case ES_CONF_KIND_LOCAL:
		return es_value_address(&v, field);
	case ES_CONF_KIND_ADDRESSES:
		return es_value_addresses(&v, &service->address, &service->address6);
	case ES_CONF_KIND_LOCALS:
		return es_value_addresses(&v, &service->server_address, &service->server_address6);
	case ES_CONF_KIND_MAC:
		return es_value_mac(&v, field);
	case ES_CONF_KIND_POLICY:
		return es_value_policy(&v, field);
	case ES_CONF_KIND_HEADER:
		return es_value_header(&v, field);
	case ES_CONF_KIND_TOKEN:
		return es_value_token(&v, field);
	case ES_CONF_KIND_BODY:
		return es_value_body(&v, field);
	case ES_CONF_KIND_RATE:
		return es_value_rate(&v, field);
	case ES_CONF_KIND_ALPN:
		return es_value_alpn(&v, field);
	case ES_CONF_KIND_CIPHERS:
		return es_value_ciphers(&v, field);
	case ES_CONF_KIND_ENDPOINT:
		return es_value_endpoint(&v, field);
	case ES_CONF_KIND_FILES:
		return es_value_files(&v, field);
	case ES_CONF_KIND_LIST:
		return es_value_list(&v, field);
	}
	return -EINVAL;
}
