// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The client, and the site that it asked for: the words before a line's time, behind what collectors of logs
 * put there.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>
#include "sim/trace_span.h"

/* --- what a collector puts before each line */

static int es_is_clock(struct es_span text)
{
	return text.len == 8 && isdigit((unsigned char)text.at[0]) && text.at[2] == ':' && text.at[5] == ':';
}

static int es_ends_with(struct es_span token, char c)
{
	return token.len && token.at[token.len - 1] == c;
}

static int es_is_word(struct es_span token, const char *word)
{
	return token.len == strlen(word) && !memcmp(token.at, word, token.len);
}

/* "web_1  | ", as docker compose does */
static int es_skip_compose(struct es_span *line)
{
	struct es_span rest = *line;

	if (!es_take_token(&rest).len || !es_is_word(es_take_token(&rest), "|"))
		return 0;
	*line = es_skip_space(rest);
	return 1;
}

/* "host program[123]: " */
static int es_skip_program(struct es_span *line)
{
	struct es_span rest = *line;

	if (!es_take_token(&rest).len || !es_ends_with(es_take_token(&rest), ':'))
		return 0;
	*line = es_skip_space(rest);
	return 1;
}

/* "Nov 24 23:00:00 host program: ", RFC 3164 */
static int es_skip_bsd_syslog(struct es_span *line)
{
	struct es_span rest = *line, month = es_take_token(&rest), day = es_take_token(&rest);

	if (month.len != 3 || !day.len || day.len > 2 || !isdigit((unsigned char)*day.at) ||
	    !es_is_clock(es_take_token(&rest)) || !es_skip_program(&rest))
		return 0;
	*line = rest;
	return 1;
}

/* Behind "<190>1 TIME": host, program, process and message, and structured data, RFC 5424 */
static int es_skip_rfc5424(struct es_span *line)
{
	struct es_span rest = *line;

	if (!es_is_word(es_take_token(&rest), "1") || !es_trace_is_iso_time(es_take_token(&rest)))
		return 0;
	for (int i = 0; i < 4; i++)
		if (!es_take_token(&rest).len)
			return 0;
	rest = es_skip_space(rest);
	if (rest.len && *rest.at == '[') {
		const char *end = memmem(rest.at, rest.len, "] ", 2);

		if (!end)
			return 0;
		rest = es_span_rest(rest, (size_t)(end - rest.at) + 1);
	} else {
		(void)es_take_token(&rest);
	}
	*line = es_skip_space(rest);
	return 1;
}

/*
 * "TIME host program: " of rsyslog, "TIME stdout F " of Kubernetes, "TIME " of docker logs --timestamps. A
 * line that begins with its own time looks like the last, so a time must be left behind it.
 */
static int es_skip_iso_syslog(struct es_span *line)
{
	struct es_span rest = *line, stream, before, after;
	__s64 time_s;

	if (!es_trace_is_iso_time(es_take_token(&rest)))
		return 0;
	rest = es_skip_space(rest);
	if (!es_trace_find_time(rest, &before, &after, &time_s))
		return 0;
	*line = rest;
	stream = es_take_token(&rest);
	if (es_is_word(stream, "stdout") || es_is_word(stream, "stderr")) {
		if (es_take_token(&rest).len == 1)
			*line = es_skip_space(rest);
	} else {
		(void)es_skip_program(line);
	}
	return 1;
}

struct es_span es_trace_skip_prefix(struct es_span line)
{
	struct es_span rest;

	line = es_skip_space(line);
	(void)es_skip_compose(&line);
	rest = line;
	if (es_take_char(&rest, '<') && es_take_number(&rest) >= 0 && es_take_char(&rest, '>'))
		line = rest;
	if (!es_skip_bsd_syslog(&line) && !es_skip_rfc5424(&line))
		(void)es_skip_iso_syslog(&line);
	return line;
}

/* --- the client */

/* ":8080" at the end; without brackets, more than one colon is an IPv6 address. */
static size_t es_port_len(struct es_span token)
{
	size_t len = token.len;

	while (len && isdigit((unsigned char)token.at[len - 1]))
		len--;
	if (len < 2 || len == token.len || token.at[len - 1] != ':' ||
	    (token.at[len - 2] != ']' && memchr(token.at, ':', len - 1)))
		return 0;
	return token.len - len + 1;
}

/* Returns 1 if @token is an address, as "192.0.2.1", "192.0.2.1:5000", "2001:db8::1", "[2001:db8::1]:5000" or
 * with a comma behind it, as in a list; sets the address alone. */
static int es_take_address(struct es_span token, struct es_span *ret_address)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr address;
	const char *zone;
	size_t len;

	if (es_ends_with(token, ','))
		token.len--;
	token.len -= es_port_len(token);
	if (token.len > 2 && *token.at == '[' && es_ends_with(token, ']'))
		token = (struct es_span){token.at + 1, token.len - 2};
	zone = memchr(token.at, '%', token.len);
	if (!token.len || (!isxdigit((unsigned char)*token.at) && *token.at != ':'))
		return 0;
	len = zone ? (size_t)(zone - token.at) : token.len;
	if (len >= sizeof(text))
		return 0;
	memcpy(text, token.at, len);
	text[len] = 0;
	if (inet_pton(AF_INET, text, &address) != 1 && inet_pton(AF_INET6, text, &address) != 1)
		return 0;
	*ret_address = token;
	return 1;
}

static struct es_span es_site(struct es_span token)
{
	token.len -= es_port_len(token);
	return es_is_word(token, "-") ? (struct es_span){} : token;
}

/* Nobody is an address: a name may be the site's or, where a server looks them up, the client's. Behind the
 * client stand identity and user, and both are "-" nearly always. */
static struct es_span es_named_client(const struct es_span *word, unsigned int words,
				      struct es_span *ret_host)
{
	int is_site = words > 1 && !es_is_word(word[1], "-") &&
		      (es_port_len(word[0]) || (words > 3 && es_is_word(word[2], "-")));

	if (!is_site)
		return word[0];
	*ret_host = es_site(word[0]);
	return word[1];
}

struct es_span es_trace_find_client(struct es_span before, struct es_span *ret_host)
{
	struct es_span word[6], client;
	unsigned int words = 0;

	*ret_host = (struct es_span){};
	while (words < sizeof(word) / sizeof(word[0]) && (word[words] = es_take_token(&before)).len)
		words++;
	if (!words || *word[0].at == '"')
		return (struct es_span){};
	/* An address with a port before another one is the site's. */
	if (es_take_address(word[0], &client) &&
	    !(words > 1 && es_port_len(word[0]) && es_take_address(word[1], &client)))
		return client;
	for (unsigned int i = 1; i < words; i++) {
		if (!es_take_address(word[i], &client))
			continue;
		*ret_host = es_site(word[0]);
		return client;
	}
	return es_named_client(word, words, ret_host);
}
