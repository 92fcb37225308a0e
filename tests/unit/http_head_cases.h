/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_HTTP_HEAD_CASES_H
#define ES_TESTS_HTTP_HEAD_CASES_H
/* The table of test_http_head.c: request heads and what must be read from them. */

#include "inspector/http/head.h"

/* Expected flags; all of them are compared when the result is ES_HTTP_DONE. */
#define F_KEEP	     (1u << 0)
#define F_PIN	     (1u << 1)
#define F_UPGRADE    (1u << 2)
#define F_EXPECT     (1u << 3)
#define F_CHUNKED    (1u << 4)
#define F_LENGTH     (1u << 5)
#define F_NO_HOST    (1u << 6)
#define F_CLOSE	     (1u << 7)
#define F_QUERY	     (1u << 8)
#define F_KEEP_TOKEN (1u << 9)
#define F_HTTP10     (1u << 10)

struct http_head_case {
	const char *name;
	const char *in;
	size_t len;
	enum es_http_result result;
	enum es_http_ambiguity ambiguity;
	enum es_http_method method;
	enum es_http_target_form form;
	enum es_http_body body;
	unsigned int flags;
	uint64_t length;
	size_t rest; /* bytes after the head */
	/* Compared if not NULL. */
	const char *target, *path, *query, *authority, *host;
};

#define IN(s)  .in = (s), .len = sizeof(s) - 1
#define H      "Host: a\r\n"
#define GET    "GET / HTTP/1.1\r\n"
#define POST   "POST /f HTTP/1.1\r\n" H
#define ORIGIN .form = ES_HTTP_TARGET_ORIGIN

/* A complete head without doubt: method, form of the target, what follows. */
#define DONE(m, f, b)                                                                                        \
	.result = ES_HTTP_DONE, .method = ES_HTTP_METHOD_##m, .form = ES_HTTP_TARGET_##f,                    \
	.body = ES_HTTP_BODY_##b
#define AMBIGUOUS(why) .result = ES_HTTP_AMBIGUOUS, .ambiguity = ES_HTTP_AMBIGUITY_##why
#define NOT_HTTP       .result = ES_HTTP_NOT_HTTP
#define MORE	       .result = ES_HTTP_MORE

static const struct http_head_case http_head_cases[] = {
	/* Requests that are in order. */
	{"get", IN(GET H "\r\n"), DONE(GET, ORIGIN, NONE), .flags = F_KEEP, .target = "/", .path = "/",
	 .host = "a"},
	{"get, a second request behind it", IN(GET H "\r\nGET /2 HTTP/1.1\r\n\r\n"), DONE(GET, ORIGIN, NONE),
	 .rest = 19, .flags = F_KEEP, .target = "/"},
	{"query", IN("GET /a/b?x=1&y=?2 HTTP/1.1\r\n" H "\r\n"), DONE(GET, ORIGIN, NONE),
	 .flags = F_KEEP | F_QUERY, .target = "/a/b?x=1&y=?2", .path = "/a/b", .query = "x=1&y=?2"},
	{"empty query", IN("GET /? HTTP/1.1\r\n" H "\r\n"), DONE(GET, ORIGIN, NONE),
	 .flags = F_KEEP | F_QUERY, .path = "/", .query = ""},
	{"head", IN("HEAD /x HTTP/1.1\r\n" H "\r\n"), DONE(HEAD, ORIGIN, NONE), .flags = F_KEEP,
	 .path = "/x"},
	{"put", IN("PUT /x HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc"), DONE(PUT, ORIGIN, LENGTH),
	 .rest = 3, .length = 3, .flags = F_KEEP | F_LENGTH},
	{"delete", IN("DELETE /x HTTP/1.1\r\n" H "\r\n"), DONE(DELETE, ORIGIN, NONE), .flags = F_KEEP},
	{"patch", IN("PATCH /x HTTP/1.1\r\n" H "\r\n"), DONE(PATCH, ORIGIN, NONE), .flags = F_KEEP},
	{"trace", IN("TRACE /x HTTP/1.1\r\n" H "\r\n"), DONE(TRACE, ORIGIN, NONE), .flags = F_KEEP},
	{"extension method", IN("M-SEARCH /x HTTP/1.1\r\n" H "\r\n"), DONE(OTHER, ORIGIN, NONE),
	 .flags = F_KEEP},
	{"lower case method is another one", IN("get / HTTP/1.1\r\n" H "\r\n"), DONE(OTHER, ORIGIN, NONE),
	 .flags = F_KEEP},
	{"method of 32", IN("ABCDEFGHABCDEFGHABCDEFGHABCDEFGH / HTTP/1.1\r\n\r\n"), DONE(OTHER, ORIGIN, NONE),
	 .flags = F_KEEP | F_NO_HOST},
	{"PRI with another version", IN("PRI /x HTTP/1.1\r\n" H "\r\n"), DONE(OTHER, ORIGIN, NONE),
	 .flags = F_KEEP},
	{"options *", IN("OPTIONS * HTTP/1.1\r\n" H "\r\n"), DONE(OPTIONS, ASTERISK, NONE), .flags = F_KEEP,
	 .target = "*", .path = ""},
	{"options /", IN("OPTIONS / HTTP/1.1\r\n" H "\r\n"), DONE(OPTIONS, ORIGIN, NONE), .flags = F_KEEP,
	 .path = "/"},
	{"connect", IN("CONNECT a.b:443 HTTP/1.1\r\nHost: a.b:443\r\n\r\n\x16\x03"),
	 DONE(CONNECT, AUTHORITY, UNKNOWN), .rest = 2, .flags = F_KEEP | F_PIN, .target = "a.b:443",
	 .authority = "a.b:443", .path = ""},
	{"absolute", IN("GET http://h:8/p?q HTTP/1.1\r\nHost: other\r\n\r\n"), DONE(GET, ABSOLUTE, NONE),
	 .flags = F_KEEP | F_QUERY, .authority = "h:8", .path = "/p", .query = "q", .host = "h:8"},
	{"absolute, no path", IN("GET http://h HTTP/1.1\r\n" H "\r\n"), DONE(GET, ABSOLUTE, NONE),
	 .flags = F_KEEP, .authority = "h", .path = "", .host = "h"},
	{"absolute, query only", IN("GET HTTPS://h?q=http://x/ HTTP/1.1\r\n" H "\r\n"),
	 DONE(GET, ABSOLUTE, NONE), .flags = F_KEEP | F_QUERY, .authority = "h", .path = "",
	 .query = "q=http://x/"},
	{"absolute, IPv6", IN("GET http://[::1]:80/ HTTP/1.1\r\n" H "\r\n"), DONE(GET, ABSOLUTE, NONE),
	 .flags = F_KEEP, .authority = "[::1]:80", .path = "/"},
	{"URL in the path", IN("GET /http://x/ HTTP/1.1\r\n" H "\r\n"), DONE(GET, ORIGIN, NONE),
	 .flags = F_KEEP, .path = "/http://x/"},
	{"what browsers leave unescaped", IN("GET /a|b\"{}^`\\<>?[] HTTP/1.1\r\n" H "\r\n"),
	 DONE(GET, ORIGIN, NONE), .flags = F_KEEP | F_QUERY, .path = "/a|b\"{}^`\\<>"},
	{"no Host", IN(GET "\r\n"), DONE(GET, ORIGIN, NONE), .flags = F_KEEP | F_NO_HOST},
	{"empty Host", IN(GET "Host:\r\n\r\n"), DONE(GET, ORIGIN, NONE), .flags = F_KEEP, .host = ""},
	{"white space around values", IN(GET "hOsT: \t a b\t \r\nX:\t\r\n\r\n"), DONE(GET, ORIGIN, NONE),
	 .flags = F_KEEP, .host = "a b"},
	{"high bytes in a value", IN(GET "Host: \xc3\xa4\xff\r\n\r\n"), DONE(GET, ORIGIN, NONE),
	 .flags = F_KEEP, .host = "\xc3\xa4\xff"},
	{"empty lines first", IN("\r\n\r\n\r\n\r\n" GET H "\r\n"), DONE(GET, ORIGIN, NONE), .flags = F_KEEP,
	 .path = "/"},
	{"1.0", IN("GET / HTTP/1.0\r\n\r\n"), DONE(GET, ORIGIN, NONE), .flags = F_HTTP10},
	{"1.0 keep-alive", IN("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), DONE(GET, ORIGIN, NONE),
	 .flags = F_HTTP10 | F_KEEP | F_KEEP_TOKEN},
	{"1.0 keep-alive and close", IN("GET / HTTP/1.0\r\nConnection: keep-alive,close\r\n\r\n"),
	 DONE(GET, ORIGIN, NONE), .flags = F_HTTP10 | F_KEEP_TOKEN | F_CLOSE},
	{"1.0 ignores Expect", IN("POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n"),
	 DONE(POST, ORIGIN, NONE), .flags = F_HTTP10},
	{"close", IN(GET H "Connection: close\r\n\r\n"), DONE(GET, ORIGIN, NONE), .flags = F_CLOSE},
	{"close in a list", IN(GET H "connection: foo,, \tCLOSE ,bar\r\n\r\n"), DONE(GET, ORIGIN, NONE),
	 .flags = F_CLOSE},
	{"close in the second header", IN(GET H "Connection: x\r\nConnection: close\r\n\r\n"),
	 DONE(GET, ORIGIN, NONE), .flags = F_CLOSE},
	{"close is a whole word", IN(GET H "Connection: closed, clos\r\n\r\n"), DONE(GET, ORIGIN, NONE),
	 .flags = F_KEEP},
	{"upgrade", IN(GET H "Upgrade: websocket\r\nConnection: upgrade\r\n\r\n"), DONE(GET, ORIGIN, NONE),
	 .flags = F_KEEP | F_UPGRADE | F_PIN},
	{"another header starting with Upgrade", IN(GET H "Upgrade-Insecure-Requests: 1\r\n\r\n"),
	 DONE(GET, ORIGIN, NONE), .flags = F_KEEP},
	{"length", IN(POST "Content-Length: 12\r\n\r\n012345678901"), DONE(POST, ORIGIN, LENGTH), .rest = 12,
	 .length = 12, .flags = F_KEEP | F_LENGTH},
	{"length 0", IN(POST "Content-Length: 0\r\n\r\n"), DONE(POST, ORIGIN, NONE),
	 .flags = F_KEEP | F_LENGTH},
	{"length with zeros", IN(POST "content-length:  007 \r\n\r\n"), DONE(POST, ORIGIN, LENGTH),
	 .length = 7, .flags = F_KEEP | F_LENGTH},
	{"largest length", IN(POST "Content-Length: 9223372036854775807\r\n\r\n"), DONE(POST, ORIGIN, LENGTH),
	 .length = INT64_MAX, .flags = F_KEEP | F_LENGTH},
	{"expect", IN(POST "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\n"), DONE(POST, ORIGIN, LENGTH),
	 .length = 1, .flags = F_KEEP | F_LENGTH | F_EXPECT},
	{"another expectation", IN(POST "Expect: 200-ok\r\n\r\n"), DONE(POST, ORIGIN, NONE), .flags = F_KEEP},
	{"chunked", IN(POST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), DONE(POST, ORIGIN, CHUNKED),
	 .rest = 5, .flags = F_KEEP | F_CHUNKED},
	{"chunked, other case", IN(POST "TRANSFER-ENCODING:\tChunked \r\n\r\n"), DONE(POST, ORIGIN, CHUNKED),
	 .flags = F_KEEP | F_CHUNKED},
	{"TE is another header", IN(POST "TE: trailers, deflate\r\n\r\n"), DONE(POST, ORIGIN, NONE),
	 .flags = F_KEEP},
	{"get with a body", IN(GET H "Content-Length: 5\r\n\r\nGET /"), DONE(GET, ORIGIN, LENGTH), .rest = 5,
	 .length = 5, .flags = F_KEEP | F_LENGTH},
	{"names that differ by one character",
	 IN(POST
	    "Content_Length: 1\r\nContent-Length1: 2\r\nXContent-Length: 3\r\nTransfer_Encoding: y\r\n\r\n"),
	 DONE(POST, ORIGIN, NONE), .flags = F_KEEP},

	/* Not yet decided. */
	{"nothing", IN(""), MORE},
	{"one letter", IN("G"), MORE},
	{"method", IN("GET "), MORE},
	{"target cut", IN("GET /inde"), MORE},
	{"request line without LF", IN("GET / HTTP/1.1\r"), MORE},
	{"request line", IN(GET), MORE, .method = ES_HTTP_METHOD_GET, ORIGIN, .target = "/", .path = "/"},
	{"no empty line", IN(GET H), MORE, .method = ES_HTTP_METHOD_GET, ORIGIN, .host = "a"},
	{"half an empty line", IN(GET H "\r"), MORE, .method = ES_HTTP_METHOD_GET, ORIGIN},
	{"empty line only", IN("\r\n"), MORE},
	{"a CR", IN("\r"), MORE},
	{"TLS, one byte", IN("\x16"), MORE},
	{"HTTP/2 preface but one byte", IN("PRI * HTTP/2.0\r"), MORE},
	{"ambiguous, but the end is not here", IN(GET H "X : y\r\n"), MORE,
	 .ambiguity = ES_HTTP_AMBIGUITY_SPACE_BEFORE_COLON, .method = ES_HTTP_METHOD_GET, ORIGIN},

	/* Other protocols. */
	{"TLS", IN("\x16\x03"), .result = ES_HTTP_TLS},
	{"ClientHello", IN("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), .result = ES_HTTP_TLS},
	{"0x16 without TLS", IN("\x16\x02"), NOT_HTTP},
	{"TLS alert", IN("\x15\x03\x01"), NOT_HTTP},
	{"HTTP/2", IN("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), .result = ES_HTTP_H2},
	{"HTTP/2, first line", IN("PRI * HTTP/2.0\r\n"), .result = ES_HTTP_H2},
	{"HTTP/0.9", IN("GET /\r\n"), NOT_HTTP},
	{"HTTP/0.9, bare LF", IN("GET /\n"), NOT_HTTP},
	{"method only", IN("GET\r"), NOT_HTTP},
	{"method, SP", IN("GET \r"), NOT_HTTP},
	{"method, TAB", IN("GET\t"), NOT_HTTP},
	{"no target", IN("GET HTTP/1.1\r\n"), NOT_HTTP},
	{"no target, two SP", IN("GET  HTTP/1.1\r\n"), NOT_HTTP},
	{"no version", IN("GET / \r\n"), NOT_HTTP},
	{"other protocol's version", IN("OPTIONS sip:x SIP/2.0\r\n"), NOT_HTTP},
	{"RTSP", IN("DESCRIBE rtsp://x/y RTSP/1.0\r\n"), NOT_HTTP},
	{"version of three letters", IN("GET / HTT\r\n"), NOT_HTTP},
	{"a response", IN("HTTP/1.1 200 OK\r\n"), NOT_HTTP},
	{"SSH", IN("SSH-2.0-OpenSSH_9.2\r\n"), NOT_HTTP},
	{"SMTP", IN("EHLO x\r\n"), NOT_HTTP},
	{"NUL", IN("\0"), NOT_HTTP},
	{"SP first", IN(" "), NOT_HTTP},
	{"TAB first", IN("\tGET"), NOT_HTTP},
	{"colon first", IN(":"), NOT_HTTP},
	{"JSON", IN("{\"a\":1}"), NOT_HTTP},
	{"high byte", IN("\x80"), NOT_HTTP},
	{"UTF-8 BOM", IN("\xef\xbb\xbfGET / HTTP/1.1\r\n\r\n"), NOT_HTTP},
	{"NUL in the method", IN("GE\0T / HTTP/1.1\r\n"), NOT_HTTP},
	{"high byte in the method", IN("GE\xc0"), NOT_HTTP},
	{"method of 33", IN("ABCDEFGHABCDEFGHABCDEFGHABCDEFGHI"), NOT_HTTP},
	{"binary target", IN("GET \x01"), NOT_HTTP},
	{"high first byte of the target", IN("GET \xff"), NOT_HTTP},
	{"CR and no LF first", IN("\rG"), NOT_HTTP},
	{"five empty lines", IN("\r\n\r\n\r\n\r\n\r\n"), NOT_HTTP},
	{"TLS after an empty line", IN("\r\n\x16\x03"), NOT_HTTP},
	{"an ambiguity before it is forgotten", IN("\nGET /\r\n"), NOT_HTTP},

	/* Lines and bytes. */
	{"bare LF everywhere", IN("GET /x HTTP/1.1\nHost: a\n\n"), AMBIGUOUS(BARE_LF),
	 .method = ES_HTTP_METHOD_GET, ORIGIN, .path = "/x", .host = "a"},
	{"bare LF after the request line", IN("GET / HTTP/1.1\n" H "\r\n"), AMBIGUOUS(BARE_LF),
	 .method = ES_HTTP_METHOD_GET, ORIGIN},
	{"bare LF in a value", IN(GET "Host: a\nContent-Length: 3\r\n\r\n"), AMBIGUOUS(BARE_LF),
	 .method = ES_HTTP_METHOD_GET, ORIGIN, .host = "a"},
	{"bare LF at the end", IN(GET H "\n"), AMBIGUOUS(BARE_LF), .method = ES_HTTP_METHOD_GET, ORIGIN},
	{"bare LF first", IN("\n" GET H "\r\n"), AMBIGUOUS(BARE_LF), .method = ES_HTTP_METHOD_GET, ORIGIN},
	{"LF CR", IN("GET / HTTP/1.1\n\rHost: a\n\r\n\r\n"), AMBIGUOUS(BARE_LF), .method = ES_HTTP_METHOD_GET,
	 ORIGIN},
	{"bare CR in a value", IN(GET "X: a\rContent-Length: 3\r\n\r\n"), AMBIGUOUS(BARE_CR),
	 .method = ES_HTTP_METHOD_GET, ORIGIN},
	{"CR CR LF", IN(GET "X: a\r\r\n\r\n"), AMBIGUOUS(BARE_CR), .method = ES_HTTP_METHOD_GET, ORIGIN},
	{"empty line with two CR", IN(GET "X: a\r\n\r\r\n\r\n"), AMBIGUOUS(BARE_CR),
	 .method = ES_HTTP_METHOD_GET, ORIGIN},
	{"bare CR ends the request line", IN("GET / HTTP/1.1\rHost: b\r\n\r\n"), AMBIGUOUS(BARE_CR),
	 .method = ES_HTTP_METHOD_GET, ORIGIN, .target = "/"},
	{"bare CR in the target", IN("GET /a\rb HTTP/1.1\r\n"), NOT_HTTP},
	{"NUL in a value", IN(GET "X: a\0b\r\n\r\n"), AMBIGUOUS(NUL), .method = ES_HTTP_METHOD_GET, ORIGIN},
	{"NUL in a name", IN(GET "X\0: a\r\n\r\n"), AMBIGUOUS(NUL), .method = ES_HTTP_METHOD_GET, ORIGIN},
	{"NUL in the target", IN("GET /\0a HTTP/1.1\r\n\r\n"), AMBIGUOUS(NUL), .method = ES_HTTP_METHOD_GET,
	 ORIGIN},
	{"NUL after many bytes", IN(GET "X: 0123456789012345678901234567890\0\r\n\r\n"), AMBIGUOUS(NUL),
	 .method = ES_HTTP_METHOD_GET, ORIGIN},
	{"vertical tab in a value", IN(POST "Transfer-Encoding: \vchunked\r\n\r\n"), AMBIGUOUS(CONTROL),
	 .method = ES_HTTP_METHOD_POST, ORIGIN},
	{"form feed in a name", IN(POST "Content-Length\f: 3\r\n\r\n"), AMBIGUOUS(CONTROL),
	 .method = ES_HTTP_METHOD_POST, ORIGIN},
	{"DEL in a value", IN(GET "X: a\x7f\r\n\r\n"), AMBIGUOUS(CONTROL), .method = ES_HTTP_METHOD_GET,
	 ORIGIN},
	{"DEL in a long value",
	 IN(GET "X: 01234567\x7f"
		"9abcdef0123456\r\n\r\n"),
	 AMBIGUOUS(CONTROL), .method = ES_HTTP_METHOD_GET, ORIGIN},
	{"fold with SP", IN(POST "Transfer-Encoding:\r\n chunked\r\n\r\n"), AMBIGUOUS(TE_CODING),
	 .method = ES_HTTP_METHOD_POST, ORIGIN},
	{"fold with TAB", IN(GET "X: a\r\n\tb\r\n\r\n"), AMBIGUOUS(OBS_FOLD), .method = ES_HTTP_METHOD_GET,
	 ORIGIN},
	{"fold of white space", IN(GET "X: a\r\n \r\n\r\n"), AMBIGUOUS(OBS_FOLD),
	 .method = ES_HTTP_METHOD_GET, ORIGIN},
	{"first header line folded", IN(GET " Host: a\r\n\r\n"), AMBIGUOUS(OBS_FOLD),
	 .method = ES_HTTP_METHOD_GET, ORIGIN},
	{"folded header with colon", IN(POST "X: a\r\n Content-Length: 5\r\n\r\n"), AMBIGUOUS(OBS_FOLD),
	 .method = ES_HTTP_METHOD_POST, ORIGIN},
	{"SP before colon", IN(POST "Content-Length : 3\r\n\r\n"), AMBIGUOUS(SPACE_BEFORE_COLON),
	 .method = ES_HTTP_METHOD_POST, ORIGIN},
	{"TAB before colon", IN(POST "Transfer-Encoding\t: chunked\r\n\r\n"), AMBIGUOUS(SPACE_BEFORE_COLON),
	 .method = ES_HTTP_METHOD_POST, ORIGIN},
	{"empty name", IN(GET ": a\r\n\r\n"), AMBIGUOUS(EMPTY_NAME), .method = ES_HTTP_METHOD_GET, ORIGIN},
	{"no colon", IN(GET "Host\r\n\r\n"), AMBIGUOUS(NO_COLON), .method = ES_HTTP_METHOD_GET, ORIGIN},
	{"a second request line", IN("GET / HTTP/1.1\r\nGET /2 HTTP/1.1\r\n\r\n"), AMBIGUOUS(NO_COLON),
	 .method = ES_HTTP_METHOD_GET, ORIGIN, .path = "/"},
	{"SP inside a name", IN(POST "Content Length: 3\r\n\r\n"), AMBIGUOUS(BAD_NAME),
	 .method = ES_HTTP_METHOD_POST, ORIGIN},
	{"parenthesis in a name", IN(GET "X(: 3\r\n\r\n"), AMBIGUOUS(BAD_NAME), .method = ES_HTTP_METHOD_GET,
	 ORIGIN},
	{"high byte in a name", IN(GET "X\xa0: 3\r\n\r\n"), AMBIGUOUS(BAD_NAME), .method = ES_HTTP_METHOD_GET,
	 ORIGIN},

	/* Request lines. */
	{"delimiter in the method", IN("GE(T / HTTP/1.1\r\n\r\n"), AMBIGUOUS(METHOD), ORIGIN, .path = "/"},
	{"colon in the method", IN("GET: / HTTP/1.1\r\n\r\n"), AMBIGUOUS(METHOD), ORIGIN},
	{"two SP before the target", IN("GET  / HTTP/1.1\r\n\r\n"), AMBIGUOUS(REQUEST_LINE),
	 .method = ES_HTTP_METHOD_GET, ORIGIN, .target = "/"},
	{"two SP before the version", IN("GET /  HTTP/1.1\r\n\r\n"), AMBIGUOUS(REQUEST_LINE),
	 .method = ES_HTTP_METHOD_GET, ORIGIN, .target = "/"},
	{"TAB before the version", IN("GET /\tHTTP/1.1\r\n\r\n"), AMBIGUOUS(REQUEST_LINE),
	 .method = ES_HTTP_METHOD_GET, ORIGIN, .target = "/"},
	{"SP after the version", IN("GET / HTTP/1.1 \r\n\r\n"), AMBIGUOUS(REQUEST_LINE),
	 .method = ES_HTTP_METHOD_GET, ORIGIN, .target = "/"},
	{"SP in the target", IN("GET /a b HTTP/1.1\r\n\r\n"), AMBIGUOUS(REQUEST_LINE),
	 .method = ES_HTTP_METHOD_GET, ORIGIN, .target = "/a b"},
	{"two versions", IN("GET / HTTP/1.1 HTTP/1.1\r\n\r\n"), AMBIGUOUS(REQUEST_LINE),
	 .method = ES_HTTP_METHOD_GET, ORIGIN},
	{"fragment", IN("GET /a#b HTTP/1.1\r\n\r\n"), AMBIGUOUS(TARGET), .method = ES_HTTP_METHOD_GET,
	 ORIGIN},
	{"high byte in the target", IN("GET /\xe4 HTTP/1.1\r\n\r\n"), AMBIGUOUS(TARGET),
	 .method = ES_HTTP_METHOD_GET, ORIGIN, .path = "/\xe4"},
	{"target without slash", IN("GET a?b HTTP/1.1\r\n\r\n"), AMBIGUOUS(TARGET),
	 .method = ES_HTTP_METHOD_GET, .path = "a", .query = "b"},
	{"get *", IN("GET * HTTP/1.1\r\n\r\n"), AMBIGUOUS(TARGET), .method = ES_HTTP_METHOD_GET,
	 .form = ES_HTTP_TARGET_ASTERISK},
	{"options **", IN("OPTIONS ** HTTP/1.1\r\n\r\n"), AMBIGUOUS(TARGET),
	 .method = ES_HTTP_METHOD_OPTIONS},
	{"connect with a path", IN("CONNECT /x HTTP/1.1\r\n\r\n"), AMBIGUOUS(TARGET),
	 .method = ES_HTTP_METHOD_CONNECT, .form = ES_HTTP_TARGET_AUTHORITY},
	{"get with an authority", IN("GET a:80 HTTP/1.1\r\n\r\n"), AMBIGUOUS(TARGET),
	 .method = ES_HTTP_METHOD_GET},
	{"no authority", IN("GET http:///x HTTP/1.1\r\n\r\n"), AMBIGUOUS(TARGET),
	 .method = ES_HTTP_METHOD_GET, .form = ES_HTTP_TARGET_ABSOLUTE, .authority = "", .path = "/x"},
	{"userinfo", IN("GET http://a@b/x HTTP/1.1\r\n\r\n"), AMBIGUOUS(TARGET), .method = ES_HTTP_METHOD_GET,
	 .form = ES_HTTP_TARGET_ABSOLUTE, .path = "/x"},
	{"scheme starting with a digit", IN("GET 1http://a/ HTTP/1.1\r\n\r\n"), AMBIGUOUS(TARGET),
	 .method = ES_HTTP_METHOD_GET},
	{"1.2", IN("GET / HTTP/1.2\r\n\r\n"), AMBIGUOUS(VERSION), .method = ES_HTTP_METHOD_GET, ORIGIN},
	{"1.10", IN("GET / HTTP/1.10\r\n\r\n"), AMBIGUOUS(VERSION), .method = ES_HTTP_METHOD_GET, ORIGIN},
	{"2.0", IN("GET / HTTP/2.0\r\n\r\n"), AMBIGUOUS(VERSION), .method = ES_HTTP_METHOD_GET, ORIGIN},
	{"0.9 spelt out", IN("GET / HTTP/0.9\r\n\r\n"), AMBIGUOUS(VERSION), .method = ES_HTTP_METHOD_GET,
	 ORIGIN},
	{"lower case version", IN("GET / http/1.1\r\n\r\n"), AMBIGUOUS(VERSION), .method = ES_HTTP_METHOD_GET,
	 ORIGIN},
	{"1,1", IN("GET / HTTP/1,1\r\n\r\n"), AMBIGUOUS(VERSION), .method = ES_HTTP_METHOD_GET, ORIGIN},
	{"no number", IN("GET / HTTP/\r\n\r\n"), AMBIGUOUS(VERSION), .method = ES_HTTP_METHOD_GET, ORIGIN},
	{"preface after an empty line", IN("\r\nPRI * HTTP/2.0\r\n\r\n"), AMBIGUOUS(VERSION),
	 .form = ES_HTTP_TARGET_ASTERISK},

/* Framing: the shapes of request smuggling. */
#define SMUGGLE(text, headers, why)                                                                          \
	{                                                                                                    \
		text, IN(POST headers "\r\nGET /2 HTTP/1.1\r\n\r\n"), AMBIGUOUS(why),                        \
			.method = ES_HTTP_METHOD_POST, ORIGIN, .path = "/f", .host = "a"                     \
	}
	SMUGGLE("CL.TE", "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", LENGTH_AND_TE),
	SMUGGLE("TE.CL", "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n", LENGTH_AND_TE),
	SMUGGLE("CL 0 and TE", "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", LENGTH_AND_TE),
	SMUGGLE("CL and TE identity", "Content-Length: 6\r\nTransfer-Encoding: identity\r\n", LENGTH_AND_TE),
	SMUGGLE("TE twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", TE_DUPLICATE),
	SMUGGLE("TE.TE", "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n", TE_DUPLICATE),
	SMUGGLE("TE xchunked", "Transfer-Encoding: xchunked\r\n", TE_CODING),
	SMUGGLE("TE identity", "Transfer-Encoding: identity\r\n", TE_CODING),
	SMUGGLE("TE gzip, chunked", "Transfer-Encoding: gzip, chunked\r\n", TE_CODING),
	SMUGGLE("TE chunked, identity", "Transfer-Encoding: chunked, identity\r\n", TE_CODING),
	SMUGGLE("TE chunked, chunked", "Transfer-Encoding: chunked, chunked\r\n", TE_CODING),
	SMUGGLE("TE with a comma", "Transfer-Encoding: ,chunked\r\n", TE_CODING),
	SMUGGLE("TE with a parameter", "Transfer-Encoding: chunked;q=1\r\n", TE_CODING),
	SMUGGLE("TE in quotes", "Transfer-Encoding: \"chunked\"\r\n", TE_CODING),
	SMUGGLE("TE with a no-break space",
		"Transfer-Encoding: \xa0"
		"chunked\r\n",
		TE_CODING),
	SMUGGLE("TE empty", "Transfer-Encoding:\r\n", TE_CODING),
	SMUGGLE("CL twice", "Content-Length: 6\r\nContent-Length: 6\r\n", LENGTH_DUPLICATE),
	SMUGGLE("CL twice, equal but for zeros", "Content-Length: 6\r\nContent-Length: 06\r\n",
		LENGTH_DUPLICATE),
	SMUGGLE("CL.CL", "Content-Length: 6\r\nContent-Length: 5\r\n", LENGTH_DIFFERS),
	SMUGGLE("CL list", "Content-Length: 6, 6\r\n", LENGTH_LIST),
	SMUGGLE("CL list that differs", "Content-Length: 6,5\r\n", LENGTH_LIST),
	SMUGGLE("CL comma", "Content-Length: 6,\r\n", LENGTH_LIST),
	SMUGGLE("CL +", "Content-Length: +6\r\n", LENGTH_MALFORMED),
	SMUGGLE("CL -", "Content-Length: -6\r\n", LENGTH_MALFORMED),
	SMUGGLE("CL hex", "Content-Length: 0x6\r\n", LENGTH_MALFORMED),
	SMUGGLE("CL exponent", "Content-Length: 1e2\r\n", LENGTH_MALFORMED),
	SMUGGLE("CL point", "Content-Length: 6.0\r\n", LENGTH_MALFORMED),
	SMUGGLE("CL space inside", "Content-Length: 6 0\r\n", LENGTH_MALFORMED),
	SMUGGLE("CL tab inside", "Content-Length: 6\t0\r\n", LENGTH_MALFORMED),
	SMUGGLE("CL quotes", "Content-Length: \"6\"\r\n", LENGTH_MALFORMED),
	SMUGGLE("CL superscript", "Content-Length: \xb2\r\n", LENGTH_MALFORMED),
	SMUGGLE("CL empty", "Content-Length:\r\n", LENGTH_MALFORMED),
	SMUGGLE("CL 2^63", "Content-Length: 9223372036854775808\r\n", LENGTH_OVERFLOW),
	SMUGGLE("CL 2^64", "Content-Length: 18446744073709551616\r\n", LENGTH_OVERFLOW),
	SMUGGLE("CL 2^64 + 6", "Content-Length: 18446744073709551622\r\n", LENGTH_OVERFLOW),
	SMUGGLE("CL 10^30", "Content-Length: 1000000000000000000000000000000\r\n", LENGTH_OVERFLOW),
	SMUGGLE("two hosts", "Host: b\r\n", HOST_DUPLICATE),
	SMUGGLE("the same host twice", "hOST: a\r\n", HOST_DUPLICATE),
	SMUGGLE("the first reason counts", "Content-Length: x\r\nTransfer-Encoding: y\r\n", LENGTH_MALFORMED),
	{"TE in 1.0", IN("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), AMBIGUOUS(TE_HTTP10),
	 .method = ES_HTTP_METHOD_POST, ORIGIN},
};

#define HTTP_HEAD_CASES (sizeof(http_head_cases) / sizeof(http_head_cases[0]))

#endif
