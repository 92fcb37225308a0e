/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_CONTROL_H
#define ES_CORE_CONTROL_H

/*
 * How the daemon and earshot.ko talk. Two ways, both into the network namespace of whoever asks:
 *
 * 1. Generic netlink, family "earshot", version ES_CONTROL_VERSION: whatever is done once. All commands but
 *    ES_CMD_GET need the machine's CAP_NET_ADMIN: not a user namespace's, whose users nobody trusts with the
 *    kernel's memory. Every attribute holds host byte order numbers or one of
 *    the structures of kmod/core/ as it lies in memory. A command is answered by the kernel's ACK, preceded
 *    by one message of the same command where it returns something. A datapath of one namespace is a "node".
 *
 *    request -> answer, "-" for nothing:
 *
 *    - GET: - -> ABI, STATUS
 *    - NEW: PARAMS -> ADOPTED. Makes the node, or takes over the tables of the one that is there; the queues
 *      are new
 *    - CONFIGURE: CONFIG, RING0 .. RING3 -> -. Both in force at once
 *    - CONFIGURATION: - -> CONFIG, RING0 .. RING3. The configuration in force, with its keys
 *    - ATTACH: PARAMS -> -. To the interfaces that these name, which may be others than those of NEW; nothing
 *      else of them counts. Without PARAMS, as older daemons say it: to those of NEW
 *    - REMOVE: - -> -. Detach, and forget everything
 *    - COUNTERS: - -> COUNTERS. Sums over all CPUs
 *    - LOADS: - -> LOADS. One walk over the sockets
 *    - FLOWS: a dump of ENTRIES, any number of struct es_track_entry
 *    - CONNECTIONS: a dump of ENTRIES, any number of struct es_connection_entry
 *    - END_UNPROVEN: - -> COUNT, 0 unless the lease is over
 *    - CONNECTION: FLOW -> SOCKET. The state of the flow's socket
 *
 *    Errors: -ENOENT there is no node, or it has no configuration; -EINVAL a value out of its bounds, an
 *    interface that is no Ethernet; -EPROTO another ES_ABI_VERSION; -ENODEV no such interface; -ENOTCONN the
 *    flow has no established socket here; -ENOMEM.
 *
 * 2. The character device /dev/earshot: shared memory. An open file gets its meaning once, by
 *    ioctl(ES_IOC_TABLE, n) with n one of ES_TABLE_*, and is then mapped, and polled if it is a ring buffer.
 *    ES_TABLE_STATE is a struct es_state, ES_TABLE_DECISIONS an array of struct es_decision_set,
 *    ES_TABLE_KEPTS one of struct es_kept_slot (kept.h); they are mapped from offset 0, readable and
 *    writable. The others are ring buffers with the layout of BPF_MAP_TYPE_RINGBUF (linux/bpf.h,
 *    inspector/datapath/ring_reader.h): one page for the consumer, writable; one for the producer and behind
 *    it the data, twice, readable. ES_TABLE_DOWNLOADS has struct es_download_entry (download.h). A mapping
 *    stays valid when the node goes, but nothing is written there any more.
 *
 *    A daemon that opens ES_TABLE_KEPTS tells other nodes of this node's idle connections, and one that opens
 *    ES_TABLE_DOWNLOADS of its long responses. From then on, those stand still without a lease, if their
 *    service survives. An older daemon opens neither. An older module refuses both with -EINVAL: its
 *    connections go on without a lease, and nobody may be told of them.
 */
#include "abi.h"

#define ES_CONTROL_FAMILY  "earshot"
#define ES_CONTROL_VERSION 2
#define ES_CONTROL_DEVICE  "/dev/earshot"

enum es_command {
	ES_CMD_GET = 1,
	ES_CMD_NEW,
	ES_CMD_CONFIGURE,
	ES_CMD_ATTACH,
	ES_CMD_REMOVE,
	ES_CMD_COUNTERS,
	ES_CMD_LOADS,
	ES_CMD_FLOWS,
	ES_CMD_CONNECTIONS,
	ES_CMD_END_UNPROVEN,
	ES_CMD_CONFIGURATION,
	ES_CMD_CONNECTION,
};

enum es_attribute {
	ES_ATTR_ABI = 1, /* __u32, ES_ABI_VERSION */
	ES_ATTR_STATUS,	 /* struct es_module_status */
	ES_ATTR_PARAMS,	 /* struct es_module_params */
	ES_ATTR_ADOPTED, /* __u32, 0 or 1 */
	ES_ATTR_CONFIG,	 /* struct es_config */
	ES_ATTR_RING0,	 /* struct es_node_ring, a quarter each: an attribute holds less than 64 KB */
	ES_ATTR_RING1,
	ES_ATTR_RING2,
	ES_ATTR_RING3,
	ES_ATTR_COUNTERS, /* __u64[], ES_COUNTER_COUNT of this version or of an older one */
	ES_ATTR_LOADS,	  /* struct es_load_sums */
	ES_ATTR_ENTRIES,  /* an array */
	ES_ATTR_COUNT,	  /* __u32 */
	ES_ATTR_FLOW,	  /* struct es_flow */
	ES_ATTR_SOCKET,	  /* struct es_connection_state */
	ES_ATTR_END
};
#define ES_ATTR_MAX (ES_ATTR_END - 1)

#define ES_CONTROL_RING_PARTS 4

/* The bounds of struct es_module_params; queue_bytes and decision_sets are powers of two. */
#define ES_MODULE_QUEUE_BYTES_MAX   (64u << 20)
#define ES_MODULE_DECISION_SETS_MAX (1u << 22)

/**
 * struct es_module_params - what is fixed for the life of a node, see struct es_datapath_params
 * @abi: ES_ABI_VERSION
 */
struct es_module_params {
	__u32 abi;
	__u32 public_ifindex;
	__u32 cluster_ifindex;
	__u32 workers;
	__u32 queue_bytes;
	__u32 decision_sets;
};
_Static_assert(sizeof(struct es_module_params) == 24, "es_module_params is ABI");

/**
 * struct es_module_status
 * @exists: this namespace has a node; @public_ifindex, @cluster_ifindex: where it is attached, else 0
 */
struct es_module_status {
	__u32 exists;
	__u32 public_ifindex;
	__u32 cluster_ifindex;
	__u32 pad;
};
_Static_assert(sizeof(struct es_module_status) == 16, "es_module_status is ABI");

enum es_table_id {
	ES_TABLE_QUEUE0 = 0, /* of worker 0; others follow, up to ES_WORKERS_MAX */
	ES_TABLE_STATE = ES_WORKERS_MAX,
	ES_TABLE_DECISIONS,
	ES_TABLE_RESPONSES,
	ES_TABLE_KEPTS,
	ES_TABLE_DOWNLOADS,
	ES_TABLE_COUNT
};

/* _IO('e', 0x53), spelled out: the number is ABI, and this header needs no ioctl header. */
#define ES_IOC_TABLE 0x6553u

#endif
