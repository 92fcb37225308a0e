/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_WORKER_H
#define ES_WORKER_H

/*
 * A worker thread: takes packets from its ring buffer, decides, hands over. Workers share nothing that is
 * written per packet.
 */
#include "inspector/cluster/cluster.h"
#include "inspector/datapath/datapath.h"
#include "inspector/inspect/decision_table.h"
#include "inspector/config/keyfile.h"
#include "inspector/inspect/route.h"
#include "kmod/core/poison.h"

struct es_worker;
struct es_directory;

/* A worker's counters; the control thread reads them at any time. */
#define ES_WORKER_COUNTERS(X)                                                                                \
	X(requests, "first requests decided")                                                                \
	X(handovers, "first requests handed over to another node")                                           \
	X(kept, "first requests handed over to this node itself")                                            \
	X(repeated, "retransmitted requests sent to the same node again")                                    \
	X(followed, "later segments of a request sent after it")                                             \
	X(gathered, "requests that spanned segments")                                                        \
	X(gather_timeout, "requests decided before their head was complete")                                 \
	X(gather_forgotten, "incomplete requests given up (bound reached, or no first segment came)")        \
	X(not_http, "requests that are not HTTP/1.x, routed by the ring")                                    \
	X(tls, "TLS connections, routed by the ring")                                                        \
	X(http2, "HTTP/2 connections, routed by the ring")                                                   \
	X(ambiguous, "requests whose framing is ambiguous")                                                  \
	X(nacks, "handovers refused by their target and sent elsewhere")                                     \
	X(nack_late,                                                                                         \
	  "refusals of a request that has been given to another node, or for another time, since")           \
	X(nack_bad, "messages on the worker's socket that are no authentic NACK")                            \
	X(unreachable, "handovers that did not arrive: no datapath runs there, or nobody is there")          \
	X(rejected, "requests refused by a rule, answered by the inspector")                                 \
	X(doubtful, "requests that a lost node may have executed and that are not safe, answered with RST")  \
	X(no_target, "requests that no node can serve, answered with RST")                                   \
	X(strays, "connections that are not known here, about which all nodes were asked")                   \
	X(stray_resets, "connections that no node has, answered with RST")                                   \
	X(stray_limited, "segments of connections that are not known here, too many to ask about")           \
	X(bad_packet, "packets that could not be parsed")                                                    \
	X(bad_checksum, "packets with a wrong TCP checksum")                                                 \
	X(fin_before_request, "FINs of connections without a request, given to the server here")             \
	X(send_failed, "messages that could not be sent")                                                    \
	X(owned, "later requests decided, of connections that this node has")                                \
	X(stayed, "later requests left on this node")                                                        \
	X(moved, "later requests that moved their connection to another node")                               \
	X(move_refused, "later requests left on this node because server or client had gone on")             \
	X(move_forgotten, "retransmitted requests of moved connections that are not known any more")         \
	X(woken, "times the datapath woke the worker")                                                       \
	X(not_mine, "requests left to the client's retransmission: the ring changes")                        \
	X(late, "packets left to the client's retransmission: the datapath had served without the daemon")   \
	X(poisoned, "packets of requests that are not inspected, as one like them has ended a daemon")       \
	X(decisions_early,                                                                                   \
	  "decisions forgotten while their requests may come again: connection_rate is higher")              \
	X(client_reset, "incomplete first requests whose client has given the connection up")                \
	X(gather_asked, "requests longer than what a client sends unheard, of which more was asked for")     \
	X(gather_full, "requests decided in part: longer than gather_bytes, or than what the client sends")  \
	X(head_long, "requests with more headers than the 256 that rules and plugins see")                   \
	X(moved_locality, "later requests that moved their connection to their content")                     \
	X(moved_load, "later requests that moved their connection to a node with less to do")                \
	X(moved_drain, "later requests that moved their connection as the node takes none any more")         \
	X(moved_rule, "later requests that moved their connection as a rule or plugin said")                 \
	X(moved_home, "later requests that moved their connection to where their content has gone")          \
	X(came_back, "later requests left on this node as they had come straight back to it")                \
	X(traced, "decisions that were noted for somebody who watches them (earshot trace)")                 \
	X(fates_asked, "questions to nodes whether they have heard of a request that they were given")       \
	X(own_affair, "first requests kept here, of clients of whom two nodes have heard nothing")           \
	X(errors_ignored,                                                                                    \
	  "ICMP errors about handovers that do not quote one of the last ones: forged, or cut")              \
	X(earlier, "first requests on connections from before this node listened, which no node has")        \
	X(follow_again, "segments sent again to a node whose socket had no room for them before")            \
	X(gather_waited, "requests whose head paused where a rule may refuse them, waited for longer")       \
	X(gather_acked, "of these, parts of heads that were acknowledged, so that their clients go on")      \
	X(gather_refused, "of these, and longer ones, refused since their head did not come to an end")      \
	X(layer4_given, "connections that are not read, given to a node: here they are not served")          \
	X(layer4_repeated, "handshakes of such, sent again to a node that had not answered")                 \
	X(layer4_left,                                                                                       \
	  "handshakes of such, left to their clients' first bytes: the node is of an older version")         \
	X(logged, "decisions that were noted for the request log")                                           \
	X(log_dropped, "decisions that are missing in the request log, as it was not written fast enough")   \
	X(asked, "requests about which a program that reads them itself (earshot-tls) has asked")            \
	X(ask_stayed, "of these, requests that are served here")                                             \
	X(ask_moved, "of these, requests whose connections have moved to another node")                      \
	X(ask_refused, "of these, requests whose connections should have moved, and could not")              \
	X(ask_unread, "of these, requests without a whole head, which are served here")                      \
	X(ask_taken, "requests that such a program serves here as another node has decided")                 \
	X(ask_bad, "messages of such programs that are malformed: their sockets are closed")                 \
	X(ask_slow, "sockets of such programs that were closed, as they do not take their answers")          \
	X(home_taken, "TLS connections given to the node that their ticket names")                           \
	X(home_left, "TLS connections whose ticket names a node that takes none now: routed by the ring")    \
	X(survived, "requests on idle connections of a lost node, with which another one goes on")           \
	X(survive_unsafe, "such requests that are not safe and may have been executed, answered with RST")   \
	X(survive_long, "requests on idle connections of a lost node that were longer than a segment")       \
	X(survive_held,                                                                                      \
	  "requests kept that clients repeat on other nodes' idle connections, as their nodes may be lost")  \
	X(survive_asked, "of these, requests of a lost node whose clients were asked whether they wait")     \
	X(survive_answered, "of these, requests taken up at once, as their clients have said that they do")  \
	X(waiting_resets,                                                                                    \
	  "clients of a lost node that waited for an answer nobody can give, told with RST at once")

enum es_worker_counter {
#define X(name, description) ES_WORKER_##name,
	ES_WORKER_COUNTERS(X)
#undef X
		ES_WORKER_COUNTER_COUNT
};

extern const char *const es_worker_counter_name[ES_WORKER_COUNTER_COUNT];
extern const char *const es_worker_counter_description[ES_WORKER_COUNTER_COUNT];

/**
 * struct es_worker_params - all of it outlives the worker
 * @id: its number, of @count; also of its stream of handover messages
 * @route: for the policies; may be NULL
 * @lease_ns: in struct es_state; so are @mark and @poisons (kmod/core/poison.h), or NULL: none
 * @resets: es_datapath_resets(), with @reset_ns in struct es_state; so is @hears_ns, or NULL: not known, and
 * @asked_until_s, or NULL: no client is asked (held.c)
 * @packet_max: bytes of the longest client packet that fits into a handover message; may change at any time
 * @directory: other nodes' idle connections (cluster/directory.h); NULL: none
 */
struct es_worker_params {
	unsigned int id;
	unsigned int count;
	struct es_datapath *datapath;
	struct es_decision_table decisions;
	struct es_health *health;
	const struct es_route_shared *route;
	const __u64 *lease_ns;
	struct es_mark *mark;
	const struct es_poisons *poisons;
	struct es_reset *resets;
	__u64 *reset_ns;
	const __u64 *hears_ns;
	__u32 *asked_until_s;
	struct es_keys keys;
	const _Atomic unsigned int *packet_max;
	struct es_directory *directory;
};

/* es_worker_new() - start the thread. @cluster stays the caller's. Returns 0 or -errno. */
int es_worker_new(const struct es_worker_params *params, const struct es_cluster *cluster,
		  struct es_worker **ret_worker);

/**
 * es_worker_call() - run @fn in the worker's thread, between two packets, and wait for it; any other thread
 */
struct es_inspector;
typedef void (*es_worker_fn)(struct es_inspector *inspector, void *ctx);
void es_worker_call(struct es_worker *worker, es_worker_fn fn, void *ctx);

/**
 * es_worker_post() - run it there, too, but do not wait, not even for a worker that hangs. @ctx stays until
 * @fn has run or the worker is freed. Returns 0, or -EBUSY: it has something else to do first; try again
 * later.
 */
int es_worker_post(struct es_worker *worker, es_worker_fn fn, void *ctx);

/**
 * es_worker_watch() - from now on, run @fn in the worker's thread whenever @fd, of an epoll instance, has
 * something, for as long as the worker lives. Once for each worker.
 */
void es_worker_watch(struct es_worker *worker, int fd, es_worker_fn fn, void *ctx);

/**
 * es_worker_set_cluster() - use another version, and these keys, from now on
 * Returns when the worker has let go of the old one, which may then be freed. Control thread only.
 */
int es_worker_set_cluster(struct es_worker *worker, const struct es_cluster *cluster,
			  const struct es_keys *keys);

/**
 * struct es_proof - the node that has the socket of a connection, whose client may not have heard from it yet
 * Found when the ring changes: the connection's new inspecting node must give a repeated request to that
 * node.
 */
struct es_proof {
	__u64 flow_hash;
	__u32 cookie;
	__u32 first_seq;
	unsigned int node;
};

/* es_worker_learn() - returns when the worker has taken in those of @proofs whose flows are its own */
void es_worker_learn(struct es_worker *worker, const struct es_proof *proofs, size_t count);

/* es_worker_free() - stop and join the thread */
void es_worker_free(struct es_worker **worker);

unsigned long long es_worker_count(const struct es_worker *worker, enum es_worker_counter counter);

/**
 * es_worker_tally() - its table for the metrics, until es_worker_set_cluster() is called; control thread only
 */
struct es_tally;
const struct es_tally *es_worker_tally(const struct es_worker *worker);

/* es_worker_evidence() - what its clients' requests tell about nodes; the control thread takes it */
struct es_evidence_ring;
struct es_evidence_ring *es_worker_evidence(struct es_worker *worker);

unsigned int es_worker_gathering(const struct es_worker *worker);

#endif
