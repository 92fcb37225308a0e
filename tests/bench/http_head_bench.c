// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Time to scan a request head with inspector/http/head.h, in one piece and in segments. Prints the best of
 * some rounds: the others measure the machine's other work.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "inspector/http/head.h"

#define ROUNDS	   20
#define ITERATIONS 20000

static const char curl[] = "GET /index.html HTTP/1.1\r\nHost: www.example.org\r\nUser-Agent: curl/7.88.1\r\n"
			   "Accept: */*\r\n\r\n";

static const char browser[] =
	"GET /static/img/logo.png?v=20240611 HTTP/1.1\r\n"
	"Host: www.example.org\r\n"
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n"
	"Accept: image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5\r\n"
	"Accept-Language: en-US,en;q=0.5\r\n"
	"Accept-Encoding: gzip, deflate, br\r\n"
	"Connection: keep-alive\r\n"
	"Referer: http://www.example.org/index.html\r\n"
	"Cookie: session=4f1c2a9be0d34c7f; theme=dark\r\n"
	"If-None-Match: \"5e1f-60c3a\"\r\n"
	"Cache-Control: max-age=0\r\n\r\n";

static char cookies[4096];

static void make_cookies(void)
{
	size_t len = (size_t)snprintf(cookies, sizeof(cookies),
				      "POST /api/v1/cart HTTP/1.1\r\nHost: shop.example.org\r\n"
				      "Content-Type: application/json\r\nContent-Length: 348\r\nCookie: ");

	for (int i = 0; len < 2800; i++)
		len += (size_t)snprintf(cookies + len, sizeof(cookies) - len, "c%d=%032d; ", i, i * 7919);
	snprintf(cookies + len, sizeof(cookies) - len, "z=1\r\nAccept: */*\r\n\r\n");
}

static double best_ns(const char *head, size_t segment)
{
	size_t len = strlen(head);
	double best = 1e12;

	for (int round = 0; round < ROUNDS; round++) {
		struct timespec start, end;
		double ns;

		clock_gettime(CLOCK_MONOTONIC, &start);
		for (int i = 0; i < ITERATIONS; i++) {
			struct es_http_head h;

			es_http_head_init(&h);
			for (size_t at = segment; at < len; at += segment)
				es_http_head_scan(&h, head, at);
			if (es_http_head_scan(&h, head, len) != ES_HTTP_DONE)
				return -1;
		}
		clock_gettime(CLOCK_MONOTONIC, &end);
		ns = (double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec);
		if (ns / ITERATIONS < best)
			best = ns / ITERATIONS;
	}
	return best;
}

int main(void)
{
	const struct {
		const char *name;
		const char *head;
	} heads[] = {{"curl", curl}, {"browser", browser}, {"cookies", cookies}};

	make_cookies();
	printf("%-8s %6s %10s %14s\n", "head", "bytes", "ns/head", "ns, 100 B cuts");
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		printf("%-8s %6zu %10.0f %14.0f\n", heads[i].name, strlen(heads[i].head),
		       best_ns(heads[i].head, SIZE_MAX / 2), best_ns(heads[i].head, 100));
	return 0;
}
