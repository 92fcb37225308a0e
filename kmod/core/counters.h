/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_COUNTERS_H
#define ES_CORE_COUNTERS_H

#include "pins.h"

/*
 * Every packet that the datapath decides on is counted once, by reason; pin_* count connections. The same
 * list makes the enum, the names in `earshot counters` and the descriptions; new ones are appended (the
 * numbers are ABI between datapath and daemon).
 */
#define ES_COUNTERS(X)                                                                                       \
	X(deliver_established, "segment of a connection whose socket is here")                               \
	X(deliver_syn_established,                                                                           \
	  "SYN on a connection whose socket is here, for the stack's challenge ACK")                         \
	X(deliver_time_wait, "retransmitted FIN for a TIME_WAIT socket here")                                \
	X(drop_not_mine, "packet of a flow that another node inspects or holds")                             \
	X(drop_handshake_ack, "ACK that completes a cookie handshake (nothing to do)")                       \
	X(drop_no_flow, "segment of a flow that is not here and is no first request")                        \
	X(drop_bad_flags, "segment with impossible flags")                                                   \
	X(drop_fragment, "TCP fragment to the service address")                                              \
	X(drop_malformed, "truncated or inconsistent headers, or options that no stack takes")               \
	X(drop_decided, "later segment of a request that was already given away")                            \
	X(drop_fallback_elsewhere, "repeated request that was given away before the daemon was gone")        \
	X(drop_queue_full, "the worker's ring buffer was full (the client retransmits)")                     \
	X(syn_answered, "SYN answered with a cookie")                                                        \
	X(syn_time_wait, "SYN that ended a TIME_WAIT socket here")                                           \
	X(cookie_invalid, "payload whose acknowledgment is no cookie of ours")                               \
	X(cookie_expired, "first request or FIN with an expired cookie, answered with RST")                  \
	X(fin_before_request, "FIN before any request: the server here gets the connection")                 \
	X(reset_after_reject, "more of a connection whose request the inspector refused, answered with RST") \
	X(reset_repeated, "more of a connection that this node has ended with a RST, answered with another") \
	X(stray_queued,                                                                                      \
	  "segment of a connection that is not here, come again: the inspector asks all nodes")              \
	X(stray_not_here, "another node's question whether a connection is here, answered: no")              \
	X(stray_here, "another node's question whether a connection is here, answered: it may be")           \
	X(stray_answered, "another node's answer to this node's question whether a connection is there")     \
	X(keepalive_answered, "keep-alive probe before any request, answered")                               \
	X(request_queued, "first segment of a request given to the inspector")                               \
	X(request_later_queued, "later segment of a first request given to the inspector")                   \
	X(request_blind, "first request served here without inspection (layer-4 policy)")                    \
	X(request_fallback, "first request served here because the inspector is not running")                \
	X(handover_received, "handover message received")                                                    \
	X(handover_rebuilt, "connection rebuilt from a handover message")                                    \
	X(handover_duplicate, "handover of a connection whose socket is already here")                       \
	X(handover_old, "handover of a request that was already rebuilt here and is over")                   \
	X(drop_silent, "packet of a flow that this node may not touch: it is not sure of its membership")    \
	X(drop_ring_change, "first request left to its retransmission: the ring is changing")                \
	X(reply_silent, "packet of this node's stack, dropped: another node may have its request by now")    \
	X(reply_unsure,                                                                                      \
	  "acknowledgement kept back, so that the request comes again: the lease is running out")            \
	X(reply_told, "RST to a client whose request was acknowledged here and cannot be answered any more") \
	X(reply_leaving,                                                                                     \
	  "packet of a server behind its answer, dropped: the connection is just moving away")               \
	X(handover_stale, "request from a node that the ring does not name any more")                        \
	X(handover_silent, "request sent back: this node is not sure of its membership")                     \
	X(handover_follow, "later segment of a first request, delivered to its rebuilt socket")              \
	X(handover_follow_lost, "later segment of a first request that found no socket")                     \
	X(handover_malformed, "message on the handover port that is no handover message")                    \
	X(handover_bad_mac, "handover message with a wrong MAC")                                             \
	X(handover_replayed, "handover message whose sequence number was seen before")                       \
	X(handover_wrong_target, "handover message for another node or an unknown service")                  \
	X(handover_nacked, "handover answered with NACK: no listening socket of use")                        \
	X(handover_refused, "request sent back that this node has refused before, and would serve now: the " \
			    "sender numbers it anew")                                                        \
	X(handover_nack_received, "NACK passed to the daemon")                                               \
	X(handover_accept_full, "handover dropped: the server's accept queue is full")                       \
	X(handover_time_wait, "handover that first had to end a TIME_WAIT or stale socket here")             \
	X(rebuild_refused, "the kernel would make no socket on that listener (sysctl, security)")            \
	X(rebuild_no_listener, "no listening socket for a request to be served here, answered with RST")     \
	X(arp_answered, "ARP request for a service address answered")                                        \
	X(arp_not_mine, "ARP request for a service address that another node answers")                       \
	X(icmp_echo_mine, "ICMP echo to a service address, delivered")                                       \
	X(icmp_error, "ICMP error to a service address, delivered on every node")                            \
	X(other_mine, "packet to a port that is no service, delivered")                                      \
	X(other_not_mine, "packet to the service address that another node takes")                           \
	X(answer_failed, "an answer could not be written or sent")                                           \
	X(owned_queued, "first segment of a later request given to the inspector")                           \
	X(owned_later_queued, "further segment of a later request given to the inspector")                   \
	X(moved_queued, "segment of a request that moved its connection away, given to the inspector")       \
	X(drop_moved, "segment of a connection that was moved away")                                         \
	X(stay_delivered, "later request delivered to the socket that has its connection")                   \
	X(stay_lost, "later request that was to stay, but its socket is gone")                               \
	X(end_done, "socket ended so that its connection could move")                                        \
	X(end_refused, "socket not ended: server or client had gone on meanwhile")                           \
	X(response_unmeasured, "response whose length was lost: the daemon did not take them in time")       \
	X(connection_rebuilt, "connection that a program handed over, rebuilt here")                         \
	X(connection_asked, "question about a program's handover, answered")                                 \
	X(connection_refused, "program's handover refused: no server, no room, no quorum, ports in use")     \
	X(connection_cancelled, "program's handover that was called off")                                    \
	X(connection_old, "message of a program's handover that is long settled")                            \
	X(request_doubtful,                                                                                  \
	  "first segment of a request that a lost node may have had, given to the inspector")                \
	X(reset_doubtful,                                                                                    \
	  "first request that a lost node may have executed, not read here, answered with RST")              \
	X(handover_late,                                                                                     \
	  "handover message sent over two minutes ago, or ahead: recorded, or one of the clocks is wrong")   \
	X(handover_untimed, "handover message that does not say when it was sent, though all nodes do")      \
	X(handover_public,                                                                                   \
	  "UDP to or from the handover port, or an ICMP error about it, that came from the clients' side")   \
	X(settled_forgot,                                                                                    \
	  "what became of an earlier request forgotten, for want of room (decision_entries)")                \
	X(request_unheard, "segment without timestamps that would be a first request, had its SYN been "     \
			   "heard: the others are asked first")                                              \
	X(end_seen, "socket that was ended so that its connection could move, looked for again: it is gone") \
	X(end_again, "socket that was to be ended before and is still there: ended again")                   \
	X(end_late, "socket whose connection was moving, and that no RST had reached: ended all the same")   \
	X(handover_early, "handover message sent before this node began to take any: recorded, perhaps")     \
	X(reject_dropped,                                                                                    \
	  "more of a connection whose request the inspector refused, acknowledged and dropped")              \
	X(handshake_blind,                                                                                   \
	  "handshake of a client served here without inspection: its server may speak first")                \
	X(handover_vanished, "handover come again that had made a socket of which nothing was heard")        \
	X(drop_v6_fragment, "IPv6 fragment to a service address")                                            \
	X(drop_v6_routing, "IPv6 packet with a routing header to a service address")                         \
	X(drop_v6_headers, "IPv6 packet to a service address with too many headers before TCP's")            \
	X(ndp_answered, "neighbour solicitation for a service address answered")                             \
	X(ndp_not_mine, "neighbour solicitation for a service address that another node answers")            \
	X(fate_asked, "question of another node what has become of a request, answered")                     \
	X(fate_told, "answer of another node to such a question")                                            \
	X(handover_partial, "handover message that came in parts, or merged with others: refused")           \
	X(drop_martian,                                                                                      \
	  "segment to a service from an address that no client has: of no host, or this node's own")         \
	X(handover_doubtful,                                                                                 \
	  "request sent back that must not be executed twice, and whose socket this node "                   \
	  "has ended unheard: its client is told")                                                           \
	X(handover_follow_heard,                                                                             \
	  "later segment of a first request that its rebuilt socket had heard itself")                       \
	X(handover_follow_beyond,                                                                            \
	  "later segment of a first request sent back: its rebuilt socket's window has no room for it yet")  \
	X(opened_lost,                                                                                       \
	  "packet of a handover message that the kernel's queue had no room for (netdev_max_backlog)")       \
	X(handover_asked,                                                                                    \
	  "request on the ports of an open connection here, whose client is first asked whether it still "   \
	  "has that")                                                                                        \
	X(handover_waits, "the same, come again before that client must have answered")                      \
	X(handover_alive, "the same, dropped: that client still has the connection")                         \
	X(layer4_queued,                                                                                     \
	  "handshake or first bytes at layer 4 that this node does not serve, given to the inspector")       \
	X(reply_astray,                                                                                      \
	  "RST, not sent, of what was to become a connection here: an address translation has led it away")  \
	X(kept_queued,                                                                                       \
	  "repeated request on another node's idle connection, or what its client answers when it is "       \
	  "asked, given to the inspector")                                                                   \
	ES_PINS(X, pin_) /* the last ones: others are appended before them */

enum es_counter {
#define X(name, description) ES_COUNT_##name,
	ES_COUNTERS(X)
#undef X
		ES_COUNTER_COUNT
};

#endif
