// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * HTTP/1.x request heads, line by line: a line is interpreted once, when its LF has come, so that the cuts
 * between segments cannot matter. Only the first bytes of a request are looked at earlier, to tell other
 * protocols at once. This file decides where a head ends, what is in it and whether that is beyond doubt; it
 * does not normalise targets, validate values or follow bodies (chunked.c).
 */
#include "inspector/http/head.h"
#include "inspector/http/text.h"

#include <string.h>

/* memset() in es_http_head_init() and comparisons in tests rely on there being no padding. */
_Static_assert(offsetof(struct es_http_head, headers) == 8 + 7 * 4 + 6 * 8 + 16 + 3 * 4,
	       "struct es_http_head has padding");

enum stage { STAGE_START, STAGE_METHOD, STAGE_TARGET, STAGE_REQUEST_LINE, STAGE_HEADERS };

static const char h2_preface[] = "PRI * HTTP/2.0\r\n";

static void note(struct es_http_head *h, enum es_http_ambiguity why)
{
	if (!h->ambiguity)
		h->ambiguity = why;
	h->pin = true;
}

static enum es_http_result decide(struct es_http_head *h, enum es_http_result result)
{
	if (result != ES_HTTP_DONE)
		h->pin = true;
	if (result != ES_HTTP_DONE && result != ES_HTTP_AMBIGUOUS)
		h->ambiguity = ES_HTTP_AMBIGUITY_NONE;
	h->result = result;
	return result;
}

static void note_control(struct es_http_head *h, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if ((c >= 0x20 && c != 0x7f) || c == '\t')
			continue;
		note(h, c == '\0'   ? ES_HTTP_AMBIGUITY_NUL
			: c == '\r' ? ES_HTTP_AMBIGUITY_BARE_CR
				    : ES_HTTP_AMBIGUITY_CONTROL);
	}
}

/*
 * Notes control bytes in a line (its own CR LF not included). Eight bytes at a time: a word without a byte
 * below 0x20 and without a 0x7f is passed over ("Bit Twiddling Hacks", hasless() and haszero(): exact as yes
 * or no for the whole word).
 */
static void check_control(struct es_http_head *h, const char *text, size_t len)
{
	const uint64_t ones = UINT64_MAX / 255;
	uint64_t word, del;

	for (; len >= sizeof(word); text += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, text, sizeof(word));
		del = word ^ ones * 0x7f;
		if (((word - ones * 0x20) & ~word & ones * 0x80) || ((del - ones) & ~del & ones * 0x80))
			note_control(h, text, sizeof(word));
	}
	note_control(h, text, len);
}

static enum es_http_method method_of(const char *s, size_t len)
{
	static const struct {
		const char *name;
		enum es_http_method method;
	} methods[] = {
		{"GET", ES_HTTP_METHOD_GET},	   {"POST", ES_HTTP_METHOD_POST},
		{"HEAD", ES_HTTP_METHOD_HEAD},	   {"PUT", ES_HTTP_METHOD_PUT},
		{"DELETE", ES_HTTP_METHOD_DELETE}, {"OPTIONS", ES_HTTP_METHOD_OPTIONS},
		{"PATCH", ES_HTTP_METHOD_PATCH},   {"CONNECT", ES_HTTP_METHOD_CONNECT},
		{"TRACE", ES_HTTP_METHOD_TRACE},
	};

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (strlen(methods[i].name) == len && !memcmp(methods[i].name, s, len))
			return methods[i].method;
	return ES_HTTP_METHOD_OTHER;
}

/* Splits [off, end) into path and query. */
static void split_query(struct es_http_head *h, const char *buf, size_t off, size_t end)
{
	const char *mark = memchr(buf + off, '?', end - off);

	if (mark) {
		h->has_query = true;
		h->query = es_http_span_make((size_t)(mark - buf) + 1, end);
		end = (size_t)(mark - buf);
	}
	h->path = es_http_span_make(off, end);
}

/* Offset of the authority in "scheme://authority…", or 0. */
static size_t absolute_form(const char *buf, size_t off, size_t end)
{
	if (!es_http_is_alpha(buf[off]))
		return 0;
	while (off < end && (es_http_is_alpha(buf[off]) || es_http_is_digit(buf[off]) || buf[off] == '+' ||
			     buf[off] == '-' || buf[off] == '.'))
		off++;
	return end - off >= 3 && !memcmp(buf + off, "://", 3) ? off + 3 : 0;
}

/* The target's form and parts (RFC 9112 section 3.2); h->method and h->target, not empty, are set. */
static void split_target(struct es_http_head *h, const char *buf)
{
	size_t off = h->target.off, end = off + h->target.len, at;

	for (at = off; at < end; at++) {
		char c = buf[at];

		if (es_http_is_ows(c))
			note(h, ES_HTTP_AMBIGUITY_REQUEST_LINE);
		else if (es_http_is_outside_vchar(c) || c == '#')
			/* Browsers do send "<>\^`{|} unescaped; no server frames a request by them. */
			note(h, ES_HTTP_AMBIGUITY_TARGET);
	}
	if (h->method == ES_HTTP_METHOD_CONNECT) {
		h->target_form = ES_HTTP_TARGET_AUTHORITY;
		h->authority = h->target;
		if (memchr(buf + off, '/', end - off) || memchr(buf + off, '@', end - off))
			note(h, ES_HTTP_AMBIGUITY_TARGET);
	} else if (buf[off] == '/') {
		h->target_form = ES_HTTP_TARGET_ORIGIN;
		split_query(h, buf, off, end);
	} else if (end - off == 1 && buf[off] == '*') {
		h->target_form = ES_HTTP_TARGET_ASTERISK;
		if (h->method != ES_HTTP_METHOD_OPTIONS)
			note(h, ES_HTTP_AMBIGUITY_TARGET);
	} else if ((at = absolute_form(buf, off, end))) {
		h->target_form = ES_HTTP_TARGET_ABSOLUTE;
		for (off = at; at < end && buf[at] != '/' && buf[at] != '?'; at++)
			if (buf[at] == '@')
				note(h, ES_HTTP_AMBIGUITY_TARGET);
		h->authority = es_http_span_make(off, at);
		if (!h->authority.len)
			note(h, ES_HTTP_AMBIGUITY_TARGET);
		split_query(h, buf, at, end);
	} else {
		note(h, ES_HTTP_AMBIGUITY_TARGET);
		split_query(h, buf, off, end);
	}
}

/* RFC 9112 section 2.3. False if [off, end) is no HTTP version at all. */
static bool scan_version(struct es_http_head *h, const char *buf, size_t off, size_t end)
{
	if (end - off < 5 || !es_http_equals_nocase(buf + off, "HTTP/", 5))
		return false;
	h->version_minor = 1;
	if (end - off != 8 || memcmp(buf + off, "HTTP/1.", 7) != 0 ||
	    (buf[end - 1] != '0' && buf[end - 1] != '1'))
		note(h, ES_HTTP_AMBIGUITY_VERSION);
	else
		h->version_minor = (uint8_t)(buf[end - 1] - '0');
	return true;
}

/* The request line from behind the method's SP to @end; false if this is not HTTP/1.x. */
static bool scan_request_line(struct es_http_head *h, const char *buf, size_t off, size_t end)
{
	const char *cr = memchr(buf + off, '\r', end - off);
	size_t version, target_end;

	check_control(h, buf + off, end - off);
	if (cr)
		end = (size_t)(cr - buf); /* for some servers the line ends here; this one is pinned anyway */
	if (end > off && es_http_is_ows(buf[end - 1]))
		note(h, ES_HTTP_AMBIGUITY_REQUEST_LINE);
	while (end > off && es_http_is_ows(buf[end - 1]))
		end--;
	for (version = end; version > off && !es_http_is_ows(buf[version - 1]);)
		version--;
	if (version == off || !scan_version(h, buf, version, end))
		return false;
	target_end = version - 1;
	h->target = es_http_span_trim(buf, off, target_end);
	if (!h->target.len)
		return false;
	if (buf[target_end] != ' ' || h->target.off != off || h->target.len != target_end - off)
		note(h, ES_HTTP_AMBIGUITY_REQUEST_LINE);
	h->method = method_of(buf + h->method_name.off, h->method_name.len);
	split_target(h, buf);
	h->target_complete = true;
	return true;
}

static void scan_content_length(struct es_http_head *h, const char *buf, struct es_http_span value)
{
	uint64_t bytes = 0;

	if (!value.len)
		note(h, ES_HTTP_AMBIGUITY_LENGTH_MALFORMED);
	for (size_t i = 0; i < value.len; i++) {
		char c = buf[value.off + i];
		unsigned int d = (unsigned int)(c - '0');

		if (!es_http_is_digit(c)) {
			note(h, memchr(buf + value.off, ',', value.len) ? ES_HTTP_AMBIGUITY_LENGTH_LIST
									: ES_HTTP_AMBIGUITY_LENGTH_MALFORMED);
			break;
		}
		if (bytes > ((uint64_t)INT64_MAX - d) / 10) {
			note(h, ES_HTTP_AMBIGUITY_LENGTH_OVERFLOW);
			break;
		}
		bytes = bytes * 10 + d;
	}
	if (h->has_content_length)
		note(h, bytes == h->content_length_bytes ? ES_HTTP_AMBIGUITY_LENGTH_DUPLICATE
							 : ES_HTTP_AMBIGUITY_LENGTH_DIFFERS);
	if (h->has_transfer_encoding)
		note(h, ES_HTTP_AMBIGUITY_LENGTH_AND_TE);
	if (!h->has_content_length)
		h->content_length_bytes = bytes;
	h->has_content_length = true;
}

static void scan_transfer_encoding(struct es_http_head *h, const char *buf, struct es_http_span value)
{
	if (h->has_transfer_encoding)
		note(h, ES_HTTP_AMBIGUITY_TE_DUPLICATE);
	if (h->has_content_length)
		note(h, ES_HTTP_AMBIGUITY_LENGTH_AND_TE);
	if (h->version_minor == 0)
		note(h, ES_HTTP_AMBIGUITY_TE_HTTP10);
	/* "gzip, chunked" is legal, but few servers take it: they do not agree where it ends. */
	if (ES_HTTP_SPAN_IS(buf, value, "chunked"))
		h->chunked = true;
	else
		note(h, ES_HTTP_AMBIGUITY_TE_CODING);
	h->has_transfer_encoding = true;
}

static void scan_connection(struct es_http_head *h, const char *buf, struct es_http_span value)
{
	struct es_http_span option;

	while (es_http_span_next(buf, ',', &value, &option)) {
		if (ES_HTTP_SPAN_IS(buf, option, "close"))
			h->connection_close = true;
		else if (ES_HTTP_SPAN_IS(buf, option, "keep-alive"))
			h->connection_keep_alive = true;
	}
}

static void scan_known_header(struct es_http_head *h, const char *buf, const struct es_http_header *header)
{
	struct es_http_span name = header->name;

	switch (name.len) {
	case 4:
		if (!ES_HTTP_SPAN_IS(buf, name, "Host"))
			break;
		if (h->has_host)
			note(h, ES_HTTP_AMBIGUITY_HOST_DUPLICATE);
		else
			h->host = header->value;
		h->has_host = true;
		break;
	case 6:
		if (h->version_minor >= 1 && ES_HTTP_SPAN_IS(buf, name, "Expect") &&
		    ES_HTTP_SPAN_IS(buf, header->value, "100-continue"))
			h->expect_continue = true;
		break;
	case 7:
		if (ES_HTTP_SPAN_IS(buf, name, "Upgrade")) {
			h->upgrade = true;
			h->pin = true;
		}
		break;
	case 10:
		if (ES_HTTP_SPAN_IS(buf, name, "Connection"))
			scan_connection(h, buf, header->value);
		break;
	case 14:
		if (ES_HTTP_SPAN_IS(buf, name, "Content-Length"))
			scan_content_length(h, buf, header->value);
		break;
	case 17:
		if (ES_HTTP_SPAN_IS(buf, name, "Transfer-Encoding"))
			scan_transfer_encoding(h, buf, header->value);
		break;
	}
}

/* RFC 9112 section 5. [off, end) is not empty. */
static void scan_header_line(struct es_http_head *h, const char *buf, size_t off, size_t end)
{
	struct es_http_header header;
	size_t at = off;

	check_control(h, buf + off, end - off);
	h->header_count++;
	if (h->header_count <= ES_HTTP_HEADERS_MAX)
		h->headers[h->header_count - 1] =
			(struct es_http_header){.name = es_http_span_make(off, off)};
	while (at < end && es_http_is_tchar(buf[at]))
		at++;
	if (at > off && at < end && buf[at] == ':') {
		header.name = es_http_span_make(off, at);
		header.value = es_http_span_trim(buf, at + 1, end);
		if (h->header_count <= ES_HTTP_HEADERS_MAX)
			h->headers[h->header_count - 1] = header;
		scan_known_header(h, buf, &header);
		return;
	}
	if (es_http_is_ows(buf[off]))
		note(h, ES_HTTP_AMBIGUITY_OBS_FOLD);
	else if (buf[off] == ':')
		note(h, ES_HTTP_AMBIGUITY_EMPTY_NAME);
	else if (!memchr(buf + at, ':', end - at))
		note(h, ES_HTTP_AMBIGUITY_NO_COLON);
	else if (at < end && es_http_is_ows(buf[at]) && es_http_span_trim(buf, at, end).off < end &&
		 buf[es_http_span_trim(buf, at, end).off] == ':')
		note(h, ES_HTTP_AMBIGUITY_SPACE_BEFORE_COLON);
	else
		note(h, ES_HTTP_AMBIGUITY_BAD_NAME);
}

/* The empty line at the end of the head has been read; the body starts at @end. */
static enum es_http_result finish(struct es_http_head *h, size_t end)
{
	h->keep_alive = !h->connection_close && (h->version_minor >= 1 || h->connection_keep_alive);
	h->host_missing = h->version_minor >= 1 && !h->has_host;
	if (h->ambiguity)
		return decide(h, ES_HTTP_AMBIGUOUS);
	h->head_len_bytes = (uint32_t)end;
	if (h->method == ES_HTTP_METHOD_CONNECT)
		h->pin = true;
	else if (h->chunked)
		h->body = ES_HTTP_BODY_CHUNKED;
	else if (h->has_content_length && h->content_length_bytes)
		h->body = ES_HTTP_BODY_LENGTH;
	else
		h->body = ES_HTTP_BODY_NONE;
	return decide(h, ES_HTTP_DONE);
}

/*
 * The first byte of a request, or one of the empty lines before it. ES_HTTP_MORE if bytes are missing, or if
 * h->stage has become STAGE_METHOD.
 */
static enum es_http_result scan_start(struct es_http_head *h, const char *buf, size_t len)
{
	const size_t preface_len = sizeof(h2_preface) - 1;

	if (len && buf[0] == 0x16)
		return len < 2 ? ES_HTTP_MORE : buf[1] == 0x03 ? ES_HTTP_TLS : ES_HTTP_NOT_HTTP;
	if (len && !memcmp(buf, h2_preface, len < preface_len ? len : preface_len))
		return len < preface_len ? ES_HTTP_MORE : ES_HTTP_H2;
	while (h->line_off < len) {
		size_t lf = h->line_off;

		if (buf[lf] == '\r') {
			if (++lf == len)
				return ES_HTTP_MORE;
			if (buf[lf] != '\n')
				return ES_HTTP_NOT_HTTP;
		} else if (buf[lf] == '\n') {
			note(h, ES_HTTP_AMBIGUITY_BARE_LF);
		} else {
			h->seen = h->line_off;
			h->stage = STAGE_METHOD;
			return es_http_is_tchar(buf[lf]) ? ES_HTTP_MORE : ES_HTTP_NOT_HTTP;
		}
		if (++h->empty_lines > ES_HTTP_EMPTY_LINES_MAX)
			return ES_HTTP_NOT_HTTP;
		h->line_off = (uint32_t)lf + 1;
	}
	return ES_HTTP_MORE;
}

/* Byte by byte up to the SP behind the method; then h->stage is STAGE_TARGET. */
static enum es_http_result scan_method(struct es_http_head *h, const char *buf, size_t len)
{
	for (; h->seen < len; h->seen++) {
		char c = buf[h->seen];

		if (c == ' ') {
			h->method_name = es_http_span_make(h->line_off, h->seen);
			h->seen++;
			h->stage = STAGE_TARGET;
			return ES_HTTP_MORE;
		}
		if (es_http_is_outside_vchar(c) || h->seen - h->line_off >= ES_HTTP_METHOD_MAX)
			return ES_HTTP_NOT_HTTP;
		if (!es_http_is_tchar(c))
			note(h, ES_HTTP_AMBIGUITY_METHOD);
	}
	return ES_HTTP_MORE;
}

/* Whole lines, from h->line_off on; there is no LF between it and h->seen. */
static enum es_http_result scan_lines(struct es_http_head *h, const char *buf, size_t len)
{
	while (h->seen < len) {
		const char *lf = memchr(buf + h->seen, '\n', len - h->seen);
		size_t end, off = h->line_off;

		if (!lf) {
			h->seen = (uint32_t)len;
			break;
		}
		end = (size_t)(lf - buf);
		h->seen = (uint32_t)end + 1;
		h->line_off = h->seen;
		if (end > off && buf[end - 1] == '\r')
			end--;
		else
			note(h, ES_HTTP_AMBIGUITY_BARE_LF);
		if (h->stage == STAGE_HEADERS) {
			if (end == off)
				return finish(h, h->seen);
			scan_header_line(h, buf, off, end);
			continue;
		}
		off = h->method_name.off + h->method_name.len + 1;
		if (!scan_request_line(h, buf, off, end))
			return decide(h, ES_HTTP_NOT_HTTP);
		h->stage = STAGE_HEADERS;
	}
	return ES_HTTP_MORE;
}

void es_http_head_init(struct es_http_head *h)
{
	memset(h, 0, offsetof(struct es_http_head, headers));
}

enum es_http_result es_http_head_scan(struct es_http_head *h, const char *buf, size_t len)
{
	enum es_http_result result = ES_HTTP_MORE;
	bool full = len >= ES_HTTP_HEAD_MAX;

	if (h->result != ES_HTTP_MORE)
		return h->result;
	if (full)
		len = ES_HTTP_HEAD_MAX;
	if (h->stage == STAGE_START)
		result = scan_start(h, buf, len);
	if (!result && h->stage == STAGE_METHOD)
		result = scan_method(h, buf, len);
	if (!result && h->stage == STAGE_TARGET && h->seen < len) {
		/* Printable bytes and white space may still become a request line, if a bad one. */
		if (es_http_is_outside_vchar(buf[h->seen]) && !es_http_is_ows(buf[h->seen]))
			result = ES_HTTP_NOT_HTTP;
		h->stage = STAGE_REQUEST_LINE;
	}
	if (result)
		return decide(h, result);
	if (h->stage >= STAGE_REQUEST_LINE)
		result = scan_lines(h, buf, len);
	return !result && full ? es_http_head_truncate(h) : result;
}

enum es_http_result es_http_head_truncate(struct es_http_head *h)
{
	if (h->result != ES_HTTP_MORE)
		return h->result;
	h->truncated = true;
	if (!h->target_complete)
		return decide(h, ES_HTTP_NOT_HTTP);
	note(h, ES_HTTP_AMBIGUITY_TRUNCATED);
	return decide(h, ES_HTTP_AMBIGUOUS);
}

enum es_http_result es_http_head_distrust(struct es_http_head *h)
{
	es_http_head_init(h);
	note(h, ES_HTTP_AMBIGUITY_URGENT);
	return decide(h, ES_HTTP_AMBIGUOUS);
}
