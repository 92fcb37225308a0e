// SPDX-License-Identifier: GPL-2.0-or-later
/* Frames that wait to leave together, with a kernel that is played. */
#include "cmocka_all.h"
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <string.h>
#include "netfilter/engine/frames.h"

#define MOST	    (2 * ES_NF_FRAMES)
#define THE_FD	    9
#define THE_IFINDEX 4

static const __u8 client[6] = {2, 0, 0, 0, 0, 7};

/*
 * The frames that have left; @calls: sendmmsg(), each of which takes @takes; @error: of the frame with the
 * number @failing
 */
static struct {
	unsigned int calls, count, takes, failing;
	int error;
	__u8 last[MOST];
	__be16 protocol[MOST];
} played;

int sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
	assert_int_equal(fd, THE_FD);
	assert_true(flags & MSG_DONTWAIT);
	played.calls++;
	for (unsigned int i = 0; i < count; i++) {
		const struct msghdr *msg = &messages[i].msg_hdr;
		const struct sockaddr_ll *to = msg->msg_name;

		if (i == played.takes)
			return (int)i;
		if (played.error && played.count + 1 == played.failing) {
			played.failing = i ? played.failing : 0;
			errno = played.error;
			return i ? (int)i : -1;
		}
		assert_int_equal(to->sll_ifindex, THE_IFINDEX);
		assert_memory_equal(to->sll_addr, client, sizeof(client));
		played.protocol[played.count] = to->sll_protocol;
		played.last[played.count++] =
			((const __u8 *)msg->msg_iov->iov_base)[msg->msg_iov->iov_len - 1];
	}
	return (int)count;
}

static struct es_nf_frames frames;

static int set_up(void **state)
{
	(void)state;
	memset(&played, 0, sizeof(played));
	played.takes = MOST;
	frames = (struct es_nf_frames){.fd = THE_FD, .ifindex = THE_IFINDEX};
	return 0;
}

static void put(__u8 last)
{
	__u8 bytes[60] = {};

	bytes[last % 59 + 1] = last;
	assert_int_equal(es_nf_frames_put(&frames, client, ETH_P_IP, bytes, last % 59U + 2), 0);
}

static void assert_left_in_order(unsigned int from, unsigned int count)
{
	assert_int_equal(played.count, count);
	for (unsigned int i = 0; i < count; i++)
		assert_int_equal(played.last[i], from + i);
}

static void test_they_leave_together_and_in_order(void **state)
{
	__u8 arp[28] = {[27] = 3};

	(void)state;
	put(1);
	put(2);
	assert_int_equal(es_nf_frames_put(&frames, client, ETH_P_ARP, arp, sizeof(arp)), 0);
	assert_int_equal(played.calls, 0);
	assert_int_equal(es_nf_frames_send(&frames, 1), 0);
	assert_int_equal(played.calls, 1);
	assert_left_in_order(1, 3);
	assert_int_equal(played.protocol[0], htons(ETH_P_IP));
	assert_int_equal(played.protocol[2], htons(ETH_P_ARP));
	assert_int_equal(es_nf_frames_send(&frames, 1), 0);
	assert_int_equal(played.count, 3);
}

static void test_the_kernel_takes_some_at_a_time(void **state)
{
	(void)state;
	played.takes = 2;
	for (__u8 i = 1; i <= 5; i++)
		put(i);
	assert_int_equal(es_nf_frames_send(&frames, 1), 0);
	assert_int_equal(played.calls, 3);
	assert_left_in_order(1, 5);
}

/* A frame that cannot leave keeps no other back. */
static void test_one_fails(void **state)
{
	(void)state;
	played.error = ENOBUFS;
	played.failing = 3;
	for (__u8 i = 1; i <= 5; i++)
		put(i);
	assert_int_equal(es_nf_frames_send(&frames, 1), 1);
	assert_int_equal(played.count, 4);
	assert_int_equal(played.last[2], 4);
}

static void test_none_may_leave(void **state)
{
	(void)state;
	put(1);
	put(2);
	assert_int_equal(es_nf_frames_send(&frames, 0), 2);
	assert_int_equal(es_nf_frames_send(&frames, 1), 0);
	assert_int_equal(played.calls, 0);
}

static void test_too_many_leave_earlier(void **state)
{
	__u8 large[ES_NF_FRAME_MAX + 1] = {};

	(void)state;
	for (__u8 i = 1; i <= ES_NF_FRAMES + 1; i++)
		put(i);
	assert_left_in_order(1, ES_NF_FRAMES);
	assert_int_equal(es_nf_frames_send(&frames, 1), 0);
	assert_left_in_order(1, ES_NF_FRAMES + 1);
	assert_int_equal(es_nf_frames_put(&frames, client, ETH_P_IP, large, sizeof(large)), -EMSGSIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_they_leave_together_and_in_order, set_up),
		cmocka_unit_test_setup(test_the_kernel_takes_some_at_a_time, set_up),
		cmocka_unit_test_setup(test_one_fails, set_up),
		cmocka_unit_test_setup(test_none_may_leave, set_up),
		cmocka_unit_test_setup(test_too_many_leave_earlier, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
