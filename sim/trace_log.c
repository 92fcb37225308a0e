// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Common log format: client ident user [time] "request" status size. The rest, as in the combined format, is
 * not looked at. Names of users may have spaces, as some servers write them; a virtual host may stand first,
 * and the prefix of syslog or docker before that; the time may be another one (trace_time.c), and may stand
 * before the client. Within quotes a backslash protects the next character. HAProxy's own HTTP log is read,
 * too: it has status and size before the request.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <sys/types.h>
#include "sim/trace.h"
#include "sim/trace_span.h"

/* The length of what is between the quotes; -1 if they do not end. */
static ssize_t es_quoted_len(struct es_span text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (text.at[i] == '\\')
			i++;
		else if (text.at[i] == '"')
			return (ssize_t)i;
	}
	return -1;
}

/* Takes "http://host" off a path; a URI without a path is that of "/". */
static struct es_span es_strip_host(struct es_span uri, struct es_span *ret_host)
{
	const char *colon = memmem(uri.at, uri.len, "://", 3);
	const char *slash, *query;
	size_t skip;

	if (!uri.len || *uri.at == '/' || !colon)
		return uri;
	for (const char *c = uri.at; c < colon; c++)
		if (!isalnum((unsigned char)*c) && *c != '+' && *c != '-' && *c != '.')
			return uri;
	skip = (size_t)(colon - uri.at) + 3;
	uri = es_span_rest(uri, skip);
	slash = memchr(uri.at, '/', uri.len);
	query = memchr(uri.at, '?', uri.len);
	if (!slash || (query && query < slash)) {
		*ret_host = (struct es_span){uri.at, query ? (size_t)(query - uri.at) : uri.len};
		return (struct es_span){"/", 1};
	}
	*ret_host = (struct es_span){uri.at, (size_t)(slash - uri.at)};
	return es_span_rest(uri, (size_t)(slash - uri.at));
}

static int es_has_suffix(struct es_span path, const char *suffix)
{
	size_t len = strlen(suffix);

	return path.len >= len && !strncasecmp(path.at + path.len - len, suffix, len);
}

static int es_has_one_of(struct es_span path, const char *const *suffixes)
{
	for (; *suffixes; suffixes++)
		if (es_has_suffix(path, *suffixes))
			return 1;
	return 0;
}

/*
 * By its name: a program's suffix (also with a path behind it), below cgi-bin, or a query. A query behind the
 * name of a file, as "/theme/style.css?ver=6.1", is only there so that browsers fetch the next version: the
 * server reads the file.
 */
static int es_uri_is_dynamic(struct es_span uri)
{
	static const char *const programs[] = {".php", ".cgi", ".pl", ".asp", ".aspx", ".jsp", ".do", NULL};
	static const char *const files[] = {
		".css", ".js",	 ".mjs",  ".map", ".wasm", ".html", ".htm", ".png",  ".jpg",  ".jpeg",
		".gif", ".webp", ".avif", ".svg", ".ico",  ".bmp",  ".tif", ".tiff", ".woff", ".woff2",
		".ttf", ".otf",	 ".eot",  ".mp3", ".ogg",  ".opus", ".m4a", ".wav",  ".flac", ".mp4",
		".m4v", ".webm", ".mov",  ".avi", ".mkv",  ".ts",   ".mpd", ".m3u8", ".m4s",  ".vtt",
		".pdf", ".epub", ".zip",  ".gz",  ".tgz",  ".bz2",  ".xz",  ".zst",  ".7z",   ".rar",
		".iso", ".dmg",	 ".exe",  ".msi", ".deb",  ".rpm",  ".apk", ".jar",  ".swf",  NULL,
	};
	const char *query = memchr(uri.at, '?', uri.len);
	struct es_span path = {uri.at, query ? (size_t)(query - uri.at) : uri.len};

	if (es_has_one_of(path, programs) || memmem(path.at, path.len, "/cgi-bin/", 9) ||
	    memmem(path.at, path.len, ".php/", 5))
		return 1;
	return query && !es_has_one_of(path, files);
}

/* "GET /path HTTP/1.1"; older clients leave the protocol out, careless ones have spaces in the path. */
static int es_parse_request(struct es_span text, struct es_trace_record *record)
{
	size_t method_len = es_token_len(text);
	struct es_span uri = es_skip_space(es_span_rest(text, method_len));
	struct es_span host = {};
	const char *protocol = NULL, *fragment;

	if (!method_len)
		return 0;
	for (size_t i = 0; i < method_len; i++)
		if (!isalpha((unsigned char)text.at[i]))
			return 0;
	for (size_t i = 0; i + 6 <= uri.len; i++)
		if (!memcmp(uri.at + i, " HTTP/", 6))
			protocol = uri.at + i;
	if (protocol)
		uri.len = (size_t)(protocol - uri.at);
	while (uri.len && uri.at[uri.len - 1] == ' ')
		uri.len--;
	uri = es_strip_host(uri, &host);
	fragment = memchr(uri.at, '#', uri.len);
	if (fragment)
		uri.len = (size_t)(fragment - uri.at);
	if (!uri.len || *uri.at != '/')
		return 0;
	record->uri = uri.at;
	record->uri_len = uri.len;
	if (host.len) {
		record->host = host.at;
		record->host_len = host.len;
	}
	record->is_get = method_len == 3 && !memcmp(text.at, "GET", 3);
	record->is_dynamic = es_uri_is_dynamic(uri);
	return 1;
}

/* LiteSpeed puts the whole line in quotes. Others that begin with one have no client. */
static struct es_span es_strip_outer_quote(struct es_span text)
{
	struct es_span rest = text;
	const char *quote, *bracket;

	if (!es_take_char(&rest, '"'))
		return text;
	quote = memchr(rest.at, '"', rest.len);
	bracket = memchr(rest.at, '[', rest.len);
	return bracket && quote && bracket < quote ? rest : text;
}

/* Everything up to status and size; sets @ret_before to what stands before the request, @ret_after to what
 * stands behind it. */
static enum es_trace_skip es_parse_front(struct es_span text, struct es_trace_record *record,
					 struct es_span *ret_before, struct es_span *ret_after)
{
	struct es_span before, after, client, host;
	const char *quote;
	ssize_t quoted;

	text = es_strip_outer_quote(es_trace_skip_prefix(text));
	quote = memchr(text.at, '"', text.len);
	if (!es_trace_find_time(text, &before, &after, &record->time_s)) {
		before = (struct es_span){text.at, quote ? (size_t)(quote - text.at) : text.len};
		return es_trace_find_client(before, &host).len ? ES_SKIP_NO_TIME : ES_SKIP_NO_CLIENT;
	}
	quote = memchr(after.at, '"', after.len);
	*ret_before = (struct es_span){after.at, quote ? (size_t)(quote - after.at) : after.len};
	client = es_trace_find_client(es_skip_space(before).len ? before : *ret_before, &host);
	if (!client.len)
		return ES_SKIP_NO_CLIENT;
	if (!quote)
		return ES_SKIP_NO_REQUEST;
	record->client = es_content_hash(client.at, client.len);
	record->host = host.at;
	record->host_len = host.len;
	text = es_span_rest(after, (size_t)(quote - after.at) + 1);
	quoted = es_quoted_len(text);
	if (quoted < 0)
		return ES_SKIP_NO_REQUEST;
	*ret_after = es_skip_space(es_span_rest(text, (size_t)quoted + 1));
	return es_parse_request((struct es_span){text.at, (size_t)quoted}, record) ? ES_TRACE_USED
										   : ES_SKIP_BAD_REQUEST;
}

/* "frontend backend/server 10/0/30/69/109 200 2750 ...": HAProxy's HTTP log has it before the request, and
 * then nothing stands behind. Leaves @text where the status is. */
static int es_skip_haproxy(struct es_span *text)
{
	struct es_span rest = *text, times;
	unsigned int slashes = 0;

	if (!es_take_token(&rest).len)
		return 0;
	times = es_take_token(&rest);
	if (!times.len || !memchr(times.at, '/', times.len))
		return 0;
	times = es_take_token(&rest);
	for (size_t i = 0; i < times.len; i++)
		slashes += times.at[i] == '/';
	if (slashes < 3)
		return 0;
	*text = es_skip_space(rest);
	return 1;
}

/* A number, or "-" where the server sent nothing. */
static int es_take_size(struct es_span *text, struct es_trace_record *record)
{
	__s64 number;

	if (!es_take_char(text, '-')) {
		number = es_take_number(text);
		if (number < 0 || number > ES_TRACE_SIZE_MAX)
			return 0;
		record->size = (__u64)number;
		record->has_size = 1;
	}
	return !text->len || *text->at == ' ' || *text->at == '\t';
}

enum es_trace_skip es_trace_log_line(const char *line, size_t len, struct es_trace_record *ret_record)
{
	struct es_span text = {line, len}, before;
	struct es_trace_record record = {};
	enum es_trace_skip skip;
	__s64 number;

	while (text.len && isspace((unsigned char)text.at[text.len - 1]))
		text.len--;
	if (text.len >= 3 && !memcmp(text.at, "\xef\xbb\xbf", 3)) /* some editors' mark of UTF-8 */
		text = es_span_rest(text, 3);
	text = es_skip_space(text);
	if (!text.len)
		return ES_SKIP_EMPTY;
	skip = es_parse_front(text, &record, &before, &text);
	if (skip != ES_TRACE_USED)
		return skip;
	if (!text.len && es_skip_haproxy(&before))
		text = before;
	number = es_take_number(&text);
	if (number < 100 || number > 999 || (text.len && *text.at != ' ' && *text.at != '\t'))
		return ES_SKIP_BAD_STATUS;
	record.status = (int)number;
	text = es_skip_space(text);
	if (!es_take_size(&text, &record))
		return ES_SKIP_BAD_SIZE;
	*ret_record = record;
	return ES_TRACE_USED;
}
