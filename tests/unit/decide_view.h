/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_DECIDE_VIEW_H
#define ES_TESTS_DECIDE_VIEW_H

/*
 * A node, and what it sees of a first request, for the tests of the decision function. Include after
 * cmocka.h.
 */
#include "kmod/core/decide.h"

#define FLOW   0x123456789abcdef0ULL
#define ISN    1000u
#define SLOT   500u
#define SELF   2
#define NOW_MS 100000u

static inline struct es_config config(void)
{
	struct es_config cfg = {
		.abi = ES_ABI_VERSION,
		.self = SELF,
		.cookie_key = {{1, 2}, {3, 4}},
		.key_count = 1,
		.race_window_ms = 50,
		.rcv_wscale = 10,
		.offer_wscale = 1,
		.offer_sack = 1,
		.offer_ts = 1,
		.offer_ecn = 1,
	};

	return cfg;
}

/* A view of a first request, which the rows then change. */
static inline struct es_view request(const struct es_config *cfg, unsigned int key, __u32 slot)
{
	struct es_tcp_options o = {.mss = 1460, .wscale_ok = 1, .snd_wscale = 7, .sack_ok = 1};
	struct es_view v = {
		.flow_hash = FLOW,
		.slot = SLOT,
		.now_ms = NOW_MS,
		.mine = 1,
		.inspect = ES_INSPECT_FIRST,
		.inspector_alive = 1,
		.heard = 1,
		.heard_all = 1,
		.seg = {.seq = ISN + 1, .len = 100, .flags = ES_TCP_ACK | ES_TCP_PSH},
	};
	__u32 tsval;

	v.seg.ack = es_cookie_make_packed(&cfg->cookie_key[key], FLOW, slot, ISN, es_cookie_options_pack(&o),
					  &tsval) +
		    1;
	return v;
}

static inline struct es_verdict decide(const struct es_config *cfg, const struct es_view *v)
{
	struct es_verdict verdict = {.action = 99, .counter = ES_COUNTER_COUNT};

	es_decide(cfg, v, &verdict);
	return verdict;
}

#define EXPECT(cfg, v, a, c)                                                                                 \
	do {                                                                                                 \
		struct es_verdict got = decide(cfg, v);                                                      \
		assert_int_equal(got.action, a);                                                             \
		assert_int_equal(got.counter, ES_COUNT_##c);                                                 \
	} while (0)

#endif
