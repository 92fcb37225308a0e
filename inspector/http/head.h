/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_HTTP_HEAD_H
#define ES_HTTP_HEAD_H
/*
 * The head (request line and header section) of one HTTP/1.x request, read from a buffer that grows.
 *
 * The caller gathers the bytes of a request in order in one contiguous buffer and calls es_http_head_scan()
 * whenever it has more of them. The buffer always starts at the first byte of the request; it may move in
 * memory between calls, because only offsets are kept. The state after n bytes is a function of those n bytes
 * alone, however they were cut. Nothing is allocated and nothing is copied; no function here can fail.
 *
 * Two questions are kept apart. *Where should this request go?* is answered with whatever can be read. *Where
 * does the next request start?* is answered only if every conforming or lenient server must agree. A head
 * that servers read differently (request smuggling, RFC 9112 section 11.2) is ambiguous: it is routed, and
 * its connection is pinned.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A head that does not end within so many bytes is truncated; bytes past it are never looked at. */
#define ES_HTTP_HEAD_MAX 65536u
/* Headers kept for look-up; further ones are counted, and read for framing. */
#define ES_HTTP_HEADERS_MAX 256u
/* A longer first word is no method (the longest registered one has 17 characters). */
#define ES_HTTP_METHOD_MAX 32u
/* Empty lines skipped before the request line; RFC 9112 section 2.2 asks for at least one. */
#define ES_HTTP_EMPTY_LINES_MAX 4u

enum es_http_result {
	ES_HTTP_MORE,	   /* undecided: call again with more bytes */
	ES_HTTP_DONE,	   /* the head is complete and its framing is beyond doubt */
	ES_HTTP_NOT_HTTP,  /* not HTTP/1.x (HTTP/0.9 included): nothing below is usable; pin */
	ES_HTTP_TLS,	   /* a TLS record (RFC 8446 section 5.1: handshake, 0x16 0x03): pin */
	ES_HTTP_H2,	   /* the HTTP/2 preface (RFC 9113 section 3.4): pin */
	ES_HTTP_AMBIGUOUS, /* HTTP/1.x, target usable, request boundary not: route, then pin */
};

/* Why a head is ambiguous. The first reason found is kept; es_http_ambiguity_str() says it in words. */
enum es_http_ambiguity {
	ES_HTTP_AMBIGUITY_NONE,
	/* Bytes and lines: RFC 9112 sections 2.2 and 5, RFC 9110 section 5.5. */
	ES_HTTP_AMBIGUITY_BARE_LF,  /* a line ends without CR */
	ES_HTTP_AMBIGUITY_BARE_CR,  /* a CR that is not followed by LF */
	ES_HTTP_AMBIGUITY_NUL,	    /* a NUL byte */
	ES_HTTP_AMBIGUITY_CONTROL,  /* another control byte; HTAB is allowed in header values */
	ES_HTTP_AMBIGUITY_OBS_FOLD, /* a header line starts with white space (RFC 9112 section 5.2) */
	ES_HTTP_AMBIGUITY_SPACE_BEFORE_COLON, /* white space between name and colon (RFC 9112 section 5.1) */
	ES_HTTP_AMBIGUITY_EMPTY_NAME,	      /* a header line starts with its colon */
	ES_HTTP_AMBIGUITY_BAD_NAME,	      /* a header name that is no token (RFC 9110 section 5.6.2) */
	ES_HTTP_AMBIGUITY_NO_COLON,	      /* a header line without a colon */
	/* Request line: RFC 9112 section 3. */
	ES_HTTP_AMBIGUITY_METHOD,	/* a character that no token has */
	ES_HTTP_AMBIGUITY_REQUEST_LINE, /* white space other than the two single SP */
	ES_HTTP_AMBIGUITY_TARGET,	/* a form or character that a target must not have (section 3.2) */
	ES_HTTP_AMBIGUITY_VERSION,	/* neither HTTP/1.0 nor HTTP/1.1 (section 2.3) */
	/* Framing: RFC 9112 section 6, RFC 9110 section 8.6. */
	ES_HTTP_AMBIGUITY_LENGTH_MALFORMED, /* Content-Length is not 1*DIGIT */
	ES_HTTP_AMBIGUITY_LENGTH_OVERFLOW,  /* Content-Length above INT64_MAX, where servers' off_t ends */
	ES_HTTP_AMBIGUITY_LENGTH_LIST,	    /* Content-Length is a list, even of equal values */
	ES_HTTP_AMBIGUITY_LENGTH_DUPLICATE, /* Content-Length twice, same value */
	ES_HTTP_AMBIGUITY_LENGTH_DIFFERS,   /* Content-Length twice, different values */
	ES_HTTP_AMBIGUITY_LENGTH_AND_TE,    /* both Content-Length and Transfer-Encoding */
	ES_HTTP_AMBIGUITY_TE_CODING,	    /* Transfer-Encoding other than just "chunked" */
	ES_HTTP_AMBIGUITY_TE_DUPLICATE,	    /* Transfer-Encoding twice */
	ES_HTTP_AMBIGUITY_TE_HTTP10,	    /* Transfer-Encoding in an HTTP/1.0 request (section 6.1) */
	ES_HTTP_AMBIGUITY_HOST_DUPLICATE,   /* Host twice (RFC 9112 section 3.2) */
	ES_HTTP_AMBIGUITY_TRUNCATED,	    /* the head did not end within the limit */
	ES_HTTP_AMBIGUITY_URGENT,	    /* some byte is urgent data of TCP: see es_http_head_distrust() */
	ES_HTTP_AMBIGUITY_COUNT,
};

/* Methods are case-sensitive (RFC 9110 section 9.1): "get" is ES_HTTP_METHOD_OTHER. */
enum es_http_method {
	ES_HTTP_METHOD_OTHER,
	ES_HTTP_METHOD_GET,
	ES_HTTP_METHOD_HEAD,
	ES_HTTP_METHOD_POST,
	ES_HTTP_METHOD_PUT,
	ES_HTTP_METHOD_DELETE,
	ES_HTTP_METHOD_CONNECT,
	ES_HTTP_METHOD_OPTIONS,
	ES_HTTP_METHOD_TRACE,
	ES_HTTP_METHOD_PATCH,
};

/* The four forms of a request target, RFC 9112 section 3.2. */
enum es_http_target_form {
	ES_HTTP_TARGET_UNKNOWN,	  /* none of them: the head is ambiguous, path is what stands before a '?' */
	ES_HTTP_TARGET_ORIGIN,	  /* /path?query */
	ES_HTTP_TARGET_ABSOLUTE,  /* scheme://authority/path?query */
	ES_HTTP_TARGET_AUTHORITY, /* host:port, only with CONNECT: no path */
	ES_HTTP_TARGET_ASTERISK,  /* *, only with OPTIONS: no path */
};

/* The body after the head, RFC 9112 section 6.3. */
enum es_http_body {
	ES_HTTP_BODY_UNKNOWN, /* undecided, ambiguous, or a tunnel (CONNECT) */
	ES_HTTP_BODY_NONE,    /* no byte: the next request starts at head_len_bytes */
	ES_HTTP_BODY_LENGTH,  /* content_length_bytes (at least 1) */
	ES_HTTP_BODY_CHUNKED, /* see chunked.h */
};

/* Bytes [off, off + len) of the caller's buffer. */
struct es_http_span {
	uint32_t off;
	uint32_t len;
};

/* One header line; value without the white space around it, and without lines folded onto it. */
struct es_http_header {
	struct es_http_span name;
	struct es_http_span value;
};

/*
 * Read-only for callers. While the result is ES_HTTP_MORE the fields show what has been read so far: each
 * span is either empty or final, and headers[] has the complete lines. Fields of the request line are set
 * together with target_complete.
 */
struct es_http_head {
	uint64_t content_length_bytes; /* valid if has_content_length */
	enum es_http_result result;    /* what the last es_http_head_scan() returned */
	enum es_http_ambiguity ambiguity;
	enum es_http_method method;
	enum es_http_target_form target_form;
	enum es_http_body body;	 /* other than UNKNOWN only with ES_HTTP_DONE */
	uint32_t head_len_bytes; /* offset of the first body byte with ES_HTTP_DONE, else 0: never guessed */
	uint32_t header_count;	 /* header lines seen; may exceed ES_HTTP_HEADERS_MAX */
	struct es_http_span method_name;
	struct es_http_span target;    /* as sent */
	struct es_http_span path;      /* without query; empty in "http://host", which means "/" */
	struct es_http_span query;     /* after the '?', which has_query tells from none at all */
	struct es_http_span authority; /* of absolute-form and authority-form */
	struct es_http_span host;      /* value of the (first) Host header; see es_http_head_host() */
	uint8_t version_minor;	       /* 0 or 1 */
	bool target_complete;	       /* the request line has been read: method, target, version are final */
	bool truncated;		       /* the head did not end within the limit; what was read is usable */
	bool has_query;
	bool has_host;
	bool host_missing; /* HTTP/1.1 without Host: servers answer 400 (RFC 9112 section 3.2), no ambiguity
			    */
	bool has_content_length;
	bool has_transfer_encoding;
	bool chunked;
	bool expect_continue; /* Expect: 100-continue in HTTP/1.1, RFC 9110 section 10.1.1 */
	bool upgrade;	      /* an Upgrade header, RFC 9110 section 7.8 */
	bool connection_close;
	bool connection_keep_alive;
	bool keep_alive; /* the client will reuse the connection (RFC 9112 section 9.3); final with the head
			  */
	bool pin;	 /* do not look for another request on this connection */
	/* The scanner's own state. */
	uint8_t stage;
	uint32_t empty_lines;
	uint32_t line_off; /* start of the unfinished line */
	uint32_t seen;	   /* bytes of the buffer that need not be looked at again */
	/* Only the first es_http_head_headers() entries are initialised. */
	struct es_http_header headers[ES_HTTP_HEADERS_MAX];
};

/*
 * Prepares @h for a new request. Must be called before the first scan and whenever the buffer starts anew.
 */
void es_http_head_init(struct es_http_head *h);

/*
 * Reads on in @buf, which holds the first @len bytes of the request; bytes after the head are not looked at.
 * @len must not be smaller than in the call before, and the bytes seen then must be unchanged.
 *
 * Returns ES_HTTP_MORE, or the outcome as early as it is certain; an outcome is final and repeated by further
 * calls. An ambiguous head is an exception for the policy's sake: it is read to its end, so that headers and
 * cookies can be used. A caller that does not want to wait looks at h->ambiguity and h->target_complete.
 * After ES_HTTP_HEAD_MAX bytes without the end of the head the outcome is that of es_http_head_truncate().
 */
enum es_http_result es_http_head_scan(struct es_http_head *h, const char *buf, size_t len);

/*
 * Says that no more bytes will be gathered (the caller's own limit or timer). Undecided heads become
 * ES_HTTP_AMBIGUOUS if the request line is complete and ES_HTTP_NOT_HTTP if it is not, with h->truncated set;
 * others stay as they are. An unfinished line is never used. Returns the outcome, never ES_HTTP_MORE.
 */
enum es_http_result es_http_head_truncate(struct es_http_head *h);

/*
 * Says that the server may read other bytes than those in the buffer: nothing that was read of them is
 * usable, and nothing more will be read. The outcome is ES_HTTP_AMBIGUOUS, without a target.
 */
enum es_http_result es_http_head_distrust(struct es_http_head *h);

/* Number of entries in h->headers. */
static inline uint32_t es_http_head_headers(const struct es_http_head *h)
{
	return h->header_count < ES_HTTP_HEADERS_MAX ? h->header_count : ES_HTTP_HEADERS_MAX;
}

/*
 * Looks up the first recorded header @name, without regard to case (RFC 9110 section 5.1), in @buf, the
 * buffer that was scanned. Returns false, and leaves the outputs alone, if there is none. The value points
 * into @buf and is not terminated.
 */
bool es_http_head_find(const struct es_http_head *h, const char *buf, const char *name,
		       const char **ret_value, size_t *ret_len);

/* The same for the @n-th header of that name, from 0 on (RFC 9110 section 5.3: they may be repeated). */
bool es_http_head_find_nth(const struct es_http_head *h, const char *buf, const char *name, uint32_t n,
			   const char **ret_value, size_t *ret_len);

/*
 * Looks up the first cookie @name, with regard to case, in all recorded Cookie headers (RFC 6265
 * section 5.4). The value is as the client sent it, quotes included. Returns as es_http_head_find().
 */
bool es_http_head_cookie(const struct es_http_head *h, const char *buf, const char *name,
			 const char **ret_value, size_t *ret_len);

/* The same for the @n-th cookie of that name, from 0 on: of several paths, the longest one's comes first. */
bool es_http_head_cookie_nth(const struct es_http_head *h, const char *buf, const char *name, uint32_t n,
			     const char **ret_value, size_t *ret_len);

/*
 * The host (and port) the request is for: the target's authority if it has one, else the Host header (RFC
 * 9112 section 3.3). Returns as es_http_head_find().
 */
bool es_http_head_host(const struct es_http_head *h, const char *buf, const char **ret_value,
		       size_t *ret_len);

/* Constant strings for logs and counters; an unknown value gives "?". */
const char *es_http_result_str(enum es_http_result result);
const char *es_http_ambiguity_str(enum es_http_ambiguity ambiguity);

#endif
