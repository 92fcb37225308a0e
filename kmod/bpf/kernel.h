/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_KERNEL_H
#define ES_BPF_KERNEL_H

/*
 * The few kernel types that the programs read. CO-RE relocates every access, so only the names matter and no
 * vmlinux.h of the build machine is needed.
 */

#include <linux/in6.h>

/*
 * TCX_NEXT: what is not ours, and what we deliver or make a socket of, is for the other programs and tc
 * filters of the interface, too: an operator's filter that drops it keeps its say, as the firewall has. They
 * see the client's own packet; if they drop it, no socket is made, and the client sends it again. TC_ACT_OK
 * passes them by, so it is for packets of our own that must reach this node's stack: the RST for a socket
 * whose connection goes elsewhere, a NACK to this node itself, the frame that wakes a worker.
 */
#define ES_TC_NEXT TC_ACT_UNSPEC

/*
 * BPF_F_ADJ_ROOM_DECAP_L3_* (Linux 6.3), which Debian 12's headers do not have: of which family what comes to
 * light is.
 */
#define ES_DECAP_L3_IPV4 (1u << 7)
#define ES_DECAP_L3_IPV6 (1u << 8)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock_common {
	unsigned char skc_state;
	unsigned short skc_family;
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	__u32 skc_tw_rcv_nxt;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	__u32 sk_ack_backlog;
	__u32 sk_max_ack_backlog;
};

struct tcp_options_received {
	__u32 ts_recent;
};

struct inet_connection_sock {
	struct {
		__u32 lrcvtime; /* in jiffies */
	} icsk_ack;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	struct tcp_options_received rx_opt;
	__u32 rcv_nxt;
	__u32 copied_seq;
	__u32 rcv_wup;
	__u32 snd_una;
	__u32 snd_nxt;
	__u32 write_seq;
	__u32 rcv_wnd;
	__u32 max_window;
	__u64 bytes_received;
	__u64 bytes_acked;
	__u64 tcp_mstamp; /* the newest segment, by CLOCK_MONOTONIC, in microseconds */
	__u32 data_segs_out;
	__u32 rcv_tstamp; /* when something was acknowledged last, in jiffies */
	__u32 tsoffset;
	__u32 lsndtime;
	_Bool is_mptcp; /* not in all kernels */
};

struct inet_timewait_sock {
	struct sock_common __tw_common;
	volatile unsigned char tw_substate;
};

struct tcp_timewait_sock {
	struct inet_timewait_sock tw_sk;
};

struct sk_buff {
	__u8 ip_summed : 2;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
	__u32 uid;
};

#pragma clang attribute pop

/* struct bpf_tcp_req_attrs, include/net/tcp.h: a kfunc argument, so laid out exactly, not relocated. */
struct bpf_tcp_req_attrs {
	__u32 rcv_tsval;
	__u32 rcv_tsecr;
	__u16 mss;
	__u8 rcv_wscale;
	__u8 snd_wscale;
	__u8 ecn_ok;
	__u8 wscale_ok;
	__u8 sack_ok;
	__u8 tstamp_ok;
	__u8 usec_ts_ok;
	__u8 reserved[3];
};

enum { CHECKSUM_UNNECESSARY = 1, CHECKSUM_PARTIAL = 3 };
enum {
	TCP_STATE_ESTABLISHED = 1,
	TCP_STATE_FIN_WAIT2 = 5,
	TCP_STATE_TIME_WAIT = 6,
	TCP_STATE_CLOSE = 7,
	TCP_STATE_LISTEN = 10
};
enum { PACKET_TYPE_HOST = 0 };
enum { SOCKET_TYPE_STREAM = 1 };

extern int bpf_sk_assign_tcp_reqsk(struct __sk_buff *skb, struct sock *sk, struct bpf_tcp_req_attrs *attrs,
				   int attrs__sz) __ksym;
extern int bpf_sock_destroy(struct sock_common *sk) __ksym;
extern void *bpf_cast_to_kern_ctx(void *obj) __ksym;

#endif
