// SPDX-License-Identifier: GPL-2.0-or-later
/* Which responses another node may go on with, what its server is asked, and which answer is the rest. */
#include <stdio.h>
#include <string.h>
#include "cmocka_all.h"
#include "inspector/resume/heads.h"

#define GET  "GET /a?b HTTP/1.1\r\nHost: www.example.org\r\n"
#define OK   "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\nETag: \"5f-a\"\r\n"
#define PART "HTTP/1.1 206 Partial Content\r\nContent-Length: 1000000\r\nETag: \"5f-a\"\r\n"
#define END  "\r\n"

/* As the datapath tells it when @sent bytes of the body have left. */
static struct es_download_entry entry_of(const char *request, const char *response, unsigned int sent)
{
	struct es_download_entry entry = {.response_seq = 0xffffff00};

	entry.request.len = (__u16)strlen(request);
	memcpy(entry.request.head, request, strlen(request));
	entry.len = (__u16)strlen(response);
	memcpy(entry.response, response, strlen(response));
	entry.track.response.head = entry.len;
	entry.track.response.left = 1000000 - sent;
	entry.track.response_seq = entry.response_seq + entry.len + sent;
	entry.track.next_request_seq = 77;
	return entry;
}

static struct es_download describe(const char *request, const char *response)
{
	const struct es_download_entry entry = entry_of(request, response, 1448);
	struct es_download download;

	es_resume_describe(&entry, 3, &download);
	return download;
}

static void test_describe(void **state)
{
	struct es_download d = describe(GET "Accept-Encoding: br\r\n" END, OK END);

	(void)state;
	assert_int_equal(d.flags, ES_DOWNLOAD_F_RESUMES);
	assert_string_equal(d.etag, "\"5f-a\"");
	assert_int_equal(d.length, 1000000);
	assert_int_equal(d.first, 0);
	assert_int_equal(d.total, 1000000);
	assert_int_equal(d.head_len, strlen(OK END));
	assert_int_equal(d.owner, 3);
	assert_int_equal(d.next_request_seq, 77);
	assert_int_equal(es_download_end_seq(&d), (__u32)(0xffffff00 + strlen(OK END) + 1000000));
	d = describe(GET "Range: bytes=7-1000006\r\n" END,
		     PART "Content-Range: bytes 7-1000006/3000000\r\n" END);
	assert_int_equal(d.flags, ES_DOWNLOAD_F_RESUMES);
	assert_int_equal(d.first, 7);
	assert_int_equal(d.total, 3000000);
	d = describe(GET END,
		     OK "Vary: Accept-Encoding\r\nConnection: close\r\nCache-Control: max-age=3\r\n" END);
	assert_int_equal(d.flags, ES_DOWNLOAD_F_RESUMES | ES_DOWNLOAD_F_CLOSES);
}

/*
 * The rest of these only the lost server could send, or only to this client. They are told all the same.
 */
static void test_not_resumed(void **state)
{
	static const char *const requests[] = {
		GET "Cookie: a=b\r\n" END,
		GET "authorization: Basic x\r\n" END,
		"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n" END,
		"HEAD /a HTTP/1.1\r\nHost: a\r\n" END,
		"GET /a HTTP/1.0\r\n" END,
		GET, /* its end is in another segment */
		"",
	};
	static const char *const responses[] = {
		"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n" END,
		"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\nETag: W/\"5f-a\"\r\n" END,
		"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\nETag: 5f\r\n" END,
		"HTTP/1.1 404 No\r\nContent-Length: 1000000\r\nETag: \"5f-a\"\r\n" END,
		"HTTP/1.1 200 OK\r\nContent-Length: 1000001\r\nETag: \"5f-a\"\r\n" END,
		OK "ETag: \"5f-b\"\r\n" END,
		OK "Vary: Accept-Encoding, Accept-Language\r\n" END,
		OK "Vary: *\r\n" END,
		OK "Set-Cookie: a=b\r\n" END,
		OK "Cache-Control: max-age=3, private\r\n" END,
		OK "Cache-Control: no-store\r\n" END,
		OK "Transfer-Encoding: gzip\r\n" END,
		OK "Content-Range: bytes 0-999999/1000000\r\n" END,
		OK "nonsense\r\n" END,
		OK, /* its end is in another segment */
		PART END,
		PART "Content-Range: bytes 0-999998/1000000\r\n" END,
		PART "Content-Range: bytes 1-1000000/*\r\n" END,
		PART "Content-Range: bytes 1-1000000/1000000\r\n" END,
		PART
		"Content-Range: bytes 7-1000006/3000000\r\nContent-Range: bytes 7-1000006/3000000\r\n" END,
		"HTTP/1.1 206 Partial\r\nContent-Type: multipart/byteranges; boundary=a\r\n"
		"Content-Length: 1000000\r\nETag: \"5f-a\"\r\n" END,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		assert_false(describe(requests[i], OK END).flags & ES_DOWNLOAD_F_RESUMES);
	for (size_t i = 0; i < sizeof(responses) / sizeof(responses[0]); i++) {
		struct es_download d = describe(GET END, responses[i]);

		assert_false(d.flags & ES_DOWNLOAD_F_RESUMES);
		/* Where it ends is known all the same. */
		assert_int_equal(d.length, 1000000);
	}
}

/* The server is asked what the client has asked, but for what is about the client's own connection. */
static void test_request(void **state)
{
	struct es_download d =
		describe(GET "Range: bytes=7-1000006\r\nUser-Agent: x y\r\nConnection: keep-alive, te\r\n"
			     "If-None-Match: \"a\"\r\nAccept-Encoding: br\r\n" END,
			 PART "Content-Range: bytes 7-1000006/3000000\r\n" END);
	char text[ES_RESUME_REQUEST_MAX];
	size_t len = es_resume_request(&d, 500, text);

	(void)state;
	assert_int_equal(len, strlen(text));
	assert_string_equal(text, "GET /a?b HTTP/1.1\r\nHost: www.example.org\r\nUser-Agent: x y\r\n"
				  "Accept-Encoding: br\r\nRange: bytes=507-1000006\r\n"
				  "If-Range: \"5f-a\"\r\nConnection: close\r\n\r\n");
	/* The longest request that there can be, with the longest tag. */
	memset(d.etag, 'x', sizeof(d.etag) - 1);
	d.request_len = (__u16)snprintf(d.request, sizeof(d.request), "%s", GET "A: ");
	memset(d.request + d.request_len, 'a', sizeof(d.request) - d.request_len - 4);
	memcpy(d.request + sizeof(d.request) - 4, "\r\n\r\n", 4);
	d.request_len = sizeof(d.request);
	d.first = d.length = d.total = 999999999999999999ULL;
	assert_true(es_resume_request(&d, 1, text) > sizeof(d.request));
	/* Lines that are so short that ours, with a space behind the colon, have no room. */
	d.request_len = (__u16)(sizeof(GET) - 1);
	while (d.request_len + sizeof("a:" END) <= sizeof(d.request))
		d.request_len += (__u16)snprintf(d.request + d.request_len, sizeof("a:\r\n"), "a:\r\n");
	memcpy(d.request + d.request_len, END, sizeof(END) - 1);
	d.request_len += (__u16)(sizeof(END) - 1);
	assert_int_equal(es_resume_request(&d, 1, text), 0);
}

static enum es_resume_why judge(const char *status, const char *fields)
{
	struct es_download d = describe(GET END, OK END);
	char text[1024];

	snprintf(text, sizeof(text), "HTTP/1.1 %s\r\n%s\r\n", status, fields);
	return es_resume_judge(&d, 400000, text, strlen(text));
}

static void test_judge(void **state)
{
	static const char rest[] = "Content-Length: 600000\r\nContent-Range: bytes 400000-999999/1000000\r\n";
	char fields[512];

	(void)state;
	snprintf(fields, sizeof(fields), "%sETag: \"5f-a\"\r\n", rest);
	assert_int_equal(judge("206 Partial Content", fields), ES_RESUME_WHY_none);
	assert_int_equal(judge("200 OK", fields), ES_RESUME_WHY_status);
	assert_int_equal(judge("416 No", fields), ES_RESUME_WHY_status);
	assert_int_equal(judge("206 Partial Content", rest), ES_RESUME_WHY_validator);
	snprintf(fields, sizeof(fields), "%sETag: \"5f-b\"\r\n", rest);
	assert_int_equal(judge("206 Partial Content", fields), ES_RESUME_WHY_validator);
	snprintf(fields, sizeof(fields), "%sETag: W/\"5f-a\"\r\n", rest);
	assert_int_equal(judge("206 Partial Content", fields), ES_RESUME_WHY_validator);
	snprintf(fields, sizeof(fields), "%sETag: \"5f-a\"\r\nTransfer-Encoding: chunked\r\n", rest);
	assert_int_equal(judge("206 Partial Content", fields), ES_RESUME_WHY_range);
	assert_int_equal(judge("2x6 Partial", fields), ES_RESUME_WHY_unreadable);
	assert_int_equal(judge("206 Partial Content", "ETag: \"5f-a\"\r\nContent-Length: 600000\r\n"
						      "Content-Range: bytes 400001-1000000/1000001\r\n"),
			 ES_RESUME_WHY_range);
	assert_int_equal(judge("206 Partial Content", "ETag: \"5f-a\"\r\nContent-Length: 599999\r\n"
						      "Content-Range: bytes 400000-999998/1000000\r\n"),
			 ES_RESUME_WHY_range);
	assert_int_equal(judge("206 Partial Content",
			       "ETag: \"5f-a\"\r\nContent-Range: bytes 400000-999999/1000000\r\n"),
			 ES_RESUME_WHY_range);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_describe),
		cmocka_unit_test(test_not_resumed),
		cmocka_unit_test(test_request),
		cmocka_unit_test(test_judge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
