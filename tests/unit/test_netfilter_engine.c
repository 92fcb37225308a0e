// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The engine's thread, with a kernel that is played: floods that never end, and work that takes long.
 */
#include "cmocka_all.h"
#include <errno.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "netfilter/engine/batch.h"
#include "netfilter/engine/capture.h"
#include "netfilter/engine/engine.h"
#include "netfilter/engine/hands.h"
#include "netfilter/engine/rules_wanted.h"
#include "netfilter/engine/tap.h"
#include "netfilter/kernel/source.h"
#include "netfilter/rules/drop_by_flow.h"
#include "netfilter/rules/drop_by_ring.h"
#include "netfilter/rules/ingress.h"
#include "netfilter/rules/rules.h"

#define PATIENCE_S	  10
#define FALLBACK_AFTER_MS 800 /* longer than a busy machine keeps a thread waiting */
#define LONG_MS		  1500
#define VIP		  0x0a000001u

struct es_nf_hand_state {
	int nothing;
};

struct es_nf_capture {
	unsigned int queue;
};

/*
 * The played kernel: @flood: there are always as many packets as fit; @packets: so many more; @recover_ms:
 * once; @pause_ms: between two packets of a batch, @aged_ns: by how much the node's time has gone on then;
 * @mending: 1: a caller that sets rules again is to wait; 2: it waits, for 0; @watch: where it tells of
 * changes of rules; @forgotten: so often
 */
static struct {
	int is_flood;
	int packets;
	int taken;
	int recover_ms;
	int pause_ms;
	__u64 aged_ns;
	int mending;
	struct es_nf_netlink *watch;
	int forgotten;
} played;

static void sleep_ms(int ms)
{
	const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	nanosleep(&time, NULL);
}

int es_nf_hand_state_new(__u16 zone, struct es_nf_hand_state **ret_kernel, struct es_nf_why *why)
{
	(void)zone;
	(void)why;
	*ret_kernel = calloc(1, sizeof(**ret_kernel));
	return 0;
}

void es_nf_hand_state_free(struct es_nf_hand_state **kernel)
{
	free(*kernel);
	*kernel = NULL;
}

int es_nf_hand_state_has_v6(const struct es_nf_hand_state *kernel)
{
	(void)kernel;
	return 1;
}

struct es_nf_hands es_nf_hand_state_hands(struct es_nf_hand_state *kernel)
{
	return (struct es_nf_hands){.ctx = kernel};
}

int es_nf_hand_state_listen(struct es_nf_hand_state *kernel, unsigned int public_ifindex,
			    struct es_nf_why *why)
{
	(void)kernel;
	(void)public_ifindex;
	(void)why;
	return 0;
}

int es_nf_hand_state_has_label(const struct es_nf_hand_state *kernel)
{
	(void)kernel;
	return 1;
}

int es_nf_hand_state_arp_fd(const struct es_nf_hand_state *kernel)
{
	(void)kernel;
	return -1;
}

/* A flood, too. */
int es_nf_hand_state_arp(struct es_nf_hand_state *kernel, void *ret_arp, size_t room)
{
	(void)kernel;
	(void)ret_arp;
	(void)room;
	return __atomic_load_n(&played.is_flood, __ATOMIC_SEQ_CST);
}

int es_nf_hand_state_has_frames(const struct es_nf_hand_state *kernel)
{
	(void)kernel;
	return 0;
}

unsigned int es_nf_hand_state_send(struct es_nf_hand_state *kernel, int may_leave)
{
	(void)kernel;
	(void)may_leave;
	return 0;
}

int es_nf_hand_state_mend(struct es_nf_hand_state *kernel, struct es_nf_netlink *nl)
{
	int asked = 1;

	(void)kernel;
	(void)nl;
	if (__atomic_compare_exchange_n(&played.mending, &asked, 2, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		while (__atomic_load_n(&played.mending, __ATOMIC_SEQ_CST) == 2)
			sleep_ms(1);
	return 0;
}

int es_nf_hook_watch(struct es_nf_netlink *nl)
{
	played.watch = nl;
	return es_nf_netlink_open(nl, NETLINK_ROUTE);
}

int es_nf_hook_watched(struct es_nf_netlink *nl)
{
	char buf[ES_NF_NETLINK_ROOM];

	while (recv(mnl_socket_get_fd(nl->socket), buf, sizeof(buf), MSG_DONTWAIT) > 0)
		;
	return 0;
}

int es_nf_hook_remove(struct es_nf_netlink *nl)
{
	(void)nl;
	return 0;
}

int es_nf_hand_state_losses_fd(const struct es_nf_hand_state *kernel)
{
	(void)kernel;
	return -1;
}

void es_nf_hand_state_recover(struct es_nf_hand_state *kernel)
{
	(void)kernel;
	sleep_ms(__atomic_exchange_n(&played.recover_ms, 0, __ATOMIC_SEQ_CST));
}

void es_nf_hand_state_go_on(struct es_nf_hand_state *kernel, __u64 now_ns, es_nf_hand_state_kept_fn kept_fn,
			    void *ctx)
{
	(void)kept_fn;
	(void)ctx;
	(void)kernel;
	(void)now_ns;
}

void es_nf_hand_state_give_up(struct es_nf_hand_state *kernel)
{
	(void)kernel;
}

int es_nf_hand_state_wait_ms(const struct es_nf_hand_state *kernel)
{
	(void)kernel;
	return -1;
}

int es_nf_hand_state_is_recovering(const struct es_nf_hand_state *kernel)
{
	(void)kernel;
	return 0;
}

void es_nf_hand_state_hurry(struct es_nf_hand_state *kernel, const struct es_nf_frame *frame)
{
	(void)kernel;
	(void)frame;
}

int es_nf_hand_state_can_gate(const struct es_nf_hand_state *kernel)
{
	(void)kernel;
	return 1;
}

int es_nf_hand_state_connection(struct es_nf_hand_state *kernel, const struct es_flow *flow,
				struct es_connection_state *ret_state, __u32 *ret_ahead)
{
	(void)kernel;
	(void)flow;
	(void)ret_state;
	(void)ret_ahead;
	return -ENOTCONN;
}

enum es_nf_fate es_nf_hand_state_reset(struct es_nf_hand_state *kernel, const struct es_nf_frame *frame,
				       struct es_nf_node *node)
{
	(void)node;
	(void)kernel;
	(void)frame;
	return ES_NF_ACCEPT;
}

int es_nf_capture_new(const struct es_nf_capture_params *params, struct es_nf_capture **ret_capture,
		      struct es_nf_why *why)
{
	static struct es_nf_capture service, unproven;

	(void)why;
	*ret_capture = params->queue == ES_NF_RULES_QUEUE ? &service : &unproven;
	(*ret_capture)->queue = params->queue;
	return 0;
}

void es_nf_capture_free(struct es_nf_capture **capture)
{
	(void)capture;
}

int es_nf_tap_new(struct es_nf_tap **ret_tap, struct es_nf_why *why)
{
	(void)why;
	*ret_tap = NULL;
	return 0;
}

void es_nf_tap_free(struct es_nf_tap **tap)
{
	(void)tap;
}

int es_nf_tap_listen(struct es_nf_tap *tap, const struct es_nf_rules *rules)
{
	(void)tap;
	(void)rules;
	return 0;
}

int es_nf_tap_fd(const struct es_nf_tap *tap)
{
	(void)tap;
	return -1;
}

void es_nf_tap_read(struct es_nf_tap *tap, es_nf_tap_fn fn, void *ctx)
{
	(void)tap;
	(void)fn;
	(void)ctx;
}

int es_nf_capture_fd(const struct es_nf_capture *capture)
{
	(void)capture;
	return -1;
}

/* A packet for a service address that no service takes: of another node's client, as there is no ring. */
int es_nf_capture_read(struct es_nf_capture *capture, es_nf_capture_fn fn, void *ctx)
{
	uint8_t bytes[ES_NF_IP_LEN] = {0x45, [9] = IPPROTO_UDP};
	const __be32 to = es_htonl(VIP);
	const struct es_nf_frame frame = {.bytes = bytes, .len = sizeof(bytes), .ifindex = 2};

	if (capture->queue != ES_NF_RULES_QUEUE)
		return 0;
	memcpy(bytes + 16, &to, sizeof(to));
	if (__atomic_load_n(&played.is_flood, __ATOMIC_SEQ_CST)) {
		for (int i = 0; i < ES_NF_CAPTURE_BATCH; i++)
			fn(ctx, &frame);
		return ES_NF_CAPTURE_BATCH;
	}
	if (!__atomic_exchange_n(&played.packets, 0, __ATOMIC_SEQ_CST))
		return 0;
	fn(ctx, &frame);
	if (played.pause_ms) {
		const struct es_nf_node *node = ((const struct es_nf_batch *)ctx)->node;
		__u64 before_ns = node->now_ns;

		sleep_ms(played.pause_ms);
		fn(ctx, &frame);
		played.aged_ns = node->now_ns - before_ns;
	}
	__atomic_add_fetch(&played.taken, 1, __ATOMIC_SEQ_CST);
	return 1;
}

void es_nf_rules_of(const struct es_config *config, struct es_nf_rules *ret_rules)
{
	(void)config;
	memset(ret_rules, 0, sizeof(*ret_rules));
}

int es_nf_rules_set(struct es_nf_netlink *nl, const struct es_nf_rules *rules, int anew,
		    struct es_nf_rules_whole *ret_whole, struct es_nf_why *why)
{
	(void)anew;
	(void)nl;
	(void)rules;
	(void)ret_whole;
	(void)why;
	return 0;
}

int es_nf_rules_are_set(struct es_nf_netlink *nl)
{
	(void)nl;
	return 1;
}

int es_nf_rules_are_whole(struct es_nf_netlink *nl, const struct es_nf_rules *rules,
			  const struct es_nf_rules_whole *whole)
{
	(void)nl;
	(void)rules;
	(void)whole;
	return 1;
}

int es_nf_rules_remove(struct es_nf_netlink *nl)
{
	(void)nl;
	return 0;
}

int es_nf_ingress_follow(struct es_nf_netlink *nl, const struct es_nf_rules *rules, int anew,
			 struct es_nf_whole *ret_whole, struct es_nf_why *why)
{
	(void)anew;
	(void)nl;
	(void)rules;
	(void)ret_whole;
	(void)why;
	return 0;
}

int es_nf_ingress_is_set(struct es_nf_netlink *nl)
{
	(void)nl;
	return 1;
}

int es_nf_ingress_is_whole(struct es_nf_netlink *nl, const struct es_nf_whole *whole)
{
	(void)nl;
	(void)whole;
	return 1;
}

int es_nf_ingress_remove(struct es_nf_netlink *nl)
{
	(void)nl;
	return 0;
}

void es_nf_drop_by_ring_of(const struct es_config *config, const struct es_node_ring *ring,
			   struct es_nf_drop_by_ring *ret_overheard)
{
	(void)config;
	(void)ring;
	memset(ret_overheard, 0, sizeof(*ret_overheard));
}

int es_nf_drop_by_ring_set(struct es_nf_netlink *nl, const struct es_nf_drop_by_ring *overheard, int anew,
			   struct es_nf_rules_whole *ret_whole, struct es_nf_why *why)
{
	(void)anew;
	(void)nl;
	(void)overheard;
	(void)ret_whole;
	(void)why;
	return 0;
}

int es_nf_drop_by_ring_are_whole(struct es_nf_netlink *nl, const struct es_nf_drop_by_ring *overheard,
				 const struct es_nf_rules_whole *whole)
{
	(void)nl;
	(void)overheard;
	(void)whole;
	return 1;
}

int es_nf_drop_by_flow_forget(struct es_nf_netlink *nl, const char *table)
{
	(void)nl;
	(void)table;
	played.forgotten++;
	return 0;
}

void es_nf_drop_by_flow_count(struct es_nf_netlink *nl, const char *table, struct es_nf_dropped_by_flow *sum)
{
	(void)nl;
	(void)table;
	(void)sum;
}

unsigned long long es_nf_drop_by_ring_count(struct es_nf_netlink *nl)
{
	(void)nl;
	return 0;
}

int es_nf_drop_by_ring_remove(struct es_nf_netlink *nl)
{
	(void)nl;
	return 0;
}

struct world {
	char path[64];
	struct es_nf_engine *engine;
};

static int set_up(void **state)
{
	static const struct es_node_ring ring;
	struct world *w = calloc(1, sizeof(*w));
	struct es_config *config = calloc(1, sizeof(*config));
	struct es_nf_engine_params params = {.path = w->path, .queue_bytes = 65536, .decision_sets = 64};
	int fd;

	memset(&played, 0, sizeof(played));
	strcpy(w->path, "/tmp/earshot-engine-XXXXXX");
	fd = mkstemp(w->path);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(es_nf_engine_new(&params, &w->engine, NULL), 0);
	config->service_count = 1;
	config->service[0].address = es_addr_from_v4(es_htonl(VIP));
	config->service[0].port = es_htons(80);
	config->fallback_after_ms = FALLBACK_AFTER_MS;
	config->public_ifindex = 2;
	config->cluster_ifindex = 3;
	assert_int_equal(es_nf_engine_configure(w->engine, config, &ring), 0);
	free(config);
	*state = w;
	alarm(PATIENCE_S); /* who waits for longer waits for ever */
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	es_nf_engine_free(&w->engine);
	alarm(0);
	unlink(w->path);
	free(w);
	return 0;
}

static unsigned long long counted(const struct world *w)
{
	unsigned long long values[ES_COUNTER_COUNT];

	es_nf_engine_counters(w->engine, values);
	return values[ES_COUNT_other_not_mine];
}

/* Others get their turn, and the thread ends when it is told to. */
static void test_flood(void **state)
{
	const struct world *w = *state;

	__atomic_store_n(&played.is_flood, 1, __ATOMIC_SEQ_CST);
	assert_int_equal(es_nf_engine_attach(w->engine, 2, 3, NULL), 0);
	while (!counted(w))
		;
	for (int i = 0; i < 2000; i++)
		counted(w);
}

static void send_packet(void)
{
	int taken = __atomic_load_n(&played.taken, __ATOMIC_SEQ_CST);

	__atomic_store_n(&played.packets, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&played.taken, __ATOMIC_SEQ_CST) == taken)
		sleep_ms(1);
}

/* A packet that has waited for long was repeated by its client; a packet that arrives after it was not. */
static void test_what_waited_is_dropped(void **state)
{
	const struct world *w = *state;

	assert_int_equal(es_nf_engine_attach(w->engine, 2, 3, NULL), 0);
	send_packet();
	assert_int_equal(counted(w), 1);
	__atomic_store_n(&played.recover_ms, LONG_MS, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&played.recover_ms, __ATOMIC_SEQ_CST))
		sleep_ms(1);
	send_packet();
	assert_int_equal(counted(w), 1);
	send_packet();
	assert_int_equal(counted(w), 2);
}

/* A lease may end between two packets of one batch. */
static void test_time_goes_on_within_a_batch(void **state)
{
	const struct world *w = *state;

	assert_int_equal(es_nf_engine_attach(w->engine, 2, 3, NULL), 0);
	played.pause_ms = 20;
	send_packet();
	assert_true(played.aged_ns >= 20000000);
}

/* Something to read, whatever it says. */
static void rules_change(void)
{
	char buf[128];
	struct nlmsghdr *nlh = es_nf_netlink_put(played.watch, buf, RTM_GETLINK, NLM_F_DUMP);
	struct ifinfomsg *link = mnl_nlmsg_put_extra_header(nlh, sizeof(*link));

	link->ifi_family = AF_UNSPEC;
	assert_true(mnl_socket_sendto(played.watch->socket, nlh, nlh->nlmsg_len) > 0);
}

/* Rules are looked at, and set again, while packets go on. */
static void test_mending_holds_nobody_up(void **state)
{
	const struct world *w = *state;

	assert_int_equal(es_nf_engine_attach(w->engine, 2, 3, NULL), 0);
	__atomic_store_n(&played.mending, 1, __ATOMIC_SEQ_CST);
	rules_change();
	while (__atomic_load_n(&played.mending, __ATOMIC_SEQ_CST) != 2)
		sleep_ms(1);
	send_packet();
	assert_int_equal(__atomic_exchange_n(&played.mending, 0, __ATOMIC_SEQ_CST), 2);
}

/* Another ring may give this node what the kernel remembers as others'. */
static void test_another_ring(void **state)
{
	const struct world *w = *state;
	struct es_node_ring *ring = calloc(1, sizeof(*ring));
	struct es_config *config = calloc(1, sizeof(*config));
	int forgotten;

	assert_int_equal(es_nf_engine_attach(w->engine, 2, 3, NULL), 0);
	forgotten = played.forgotten;
	assert_int_equal(es_nf_engine_configure(w->engine, config, ring), 0);
	assert_int_equal(played.forgotten, forgotten + 1);
	free(config);
	free(ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_another_ring, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_flood, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_waited_is_dropped, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_time_goes_on_within_a_batch, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_mending_holds_nobody_up, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
