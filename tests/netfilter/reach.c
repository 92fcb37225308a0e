// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Does what a service sends to a client leave at once?
 *
 *     earshot-nf-reach SERVICE CLIENT [MARK]
 *
 * Prints 1 or 0, as it is when it is asked for the first time, and then as it is when the kernel has had time
 * to ask for the MAC.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "netfilter/kernel/clock.h"
#include "netfilter/rebuild/reach.h"

#define PATIENCE_MS 500
#define PAUSE_MS    20

static struct es_addr read_address(const char *text)
{
	struct es_addr address = {};
	__be32 v4;

	if (inet_pton(AF_INET, text, &v4) == 1)
		return es_addr_from_v4(v4);
	inet_pton(AF_INET6, text, &address);
	return address;
}

int main(int argc, char **argv)
{
	const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
	struct es_flow flow = {.client_port = htons(40000), .service_port = htons(80)};
	struct es_nf_reach reach;
	const __u32 mark = argc == 4 ? (__u32)strtoul(argv[3], NULL, 0) : 0;
	int first, last, rc = argc >= 3 ? es_nf_reach_open(&reach) : -1;

	if (rc) {
		printf("%s\n", strerror(-rc));
		return 1;
	}
	flow.service = read_address(argv[1]);
	flow.client = read_address(argv[2]);
	first = last = es_nf_reach_is(&reach, &flow, mark, es_nf_now_ns());
	for (int i = 0; i < PATIENCE_MS / PAUSE_MS && !last; i++) {
		nanosleep(&pause, NULL);
		last = es_nf_reach_is(&reach, &flow, mark, es_nf_now_ns());
	}
	printf("%d %d\n", first, last);
	es_nf_reach_close(&reach);
	return 0;
}
