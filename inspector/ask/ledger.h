/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_ASK_LEDGER_H
#define ES_ASK_LEDGER_H

/*
 * A file beside the daemon's sockets, NODE.tls, in which earshot-tls counts: the daemon reads it for whoever
 * asks, and neither waits for the other. It stays there, so counters go on when one of them starts anew.
 *
 * The first process of earshot-tls makes it, has a lock on it (F_SETLK) for as long as it runs, and alone
 * writes its head. A worker has a place, where it writes a block for each service; a place has one process at
 * a time, and the next one goes on counting. All is in this machine's byte order.
 */
#include <stdint.h>

#define ES_LEDGER_SUFFIX    ".tls"
#define ES_LEDGER_MAGIC	    0x45534c54u /* "ESLT" */
#define ES_LEDGER_VERSION   1
#define ES_LEDGER_SERVICES  64
#define ES_LEDGER_NAME_SIZE 64
#define ES_LEDGER_WHY_SIZE  440
#define ES_LEDGER_PLACES    1024

/* X(name, meaning); new ones are appended. */
#define ES_LEDGER_COUNTERS(X)                                                                                \
	X(accepted, "connections of clients")                                                                \
	X(ended, "connections that have ended here")                                                         \
	X(handshakes, "handshakes that were completed")                                                      \
	X(handshakes_resumed, "handshakes that were completed with a ticket")                                \
	X(handshakes_failed, "handshakes that failed")                                                       \
	X(handshakes_late, "handshakes that took too long")                                                  \
	X(arrived, "connections that another node has moved here")                                           \
	X(arrived_bad, "sealed states that no node of this cluster has made for this connection and node")   \
	X(arrived_late, "sealed states that came too late")                                                  \
	X(arrived_repeated, "sealed states that came again")                                                 \
	X(arrived_unknown, "sealed states of a layout that this version does not know")                      \
	X(arrived_full, "sealed states that could not be remembered: too many at a time")                    \
	X(requests, "requests that were read")                                                               \
	X(requests_bad, "requests that were refused: malformed, ambiguous, too long, CONNECT")               \
	X(asked, "questions to the daemon")                                                                  \
	X(asked_in_vain, "questions without an answer in time: served here")                                 \
	X(refused, "requests that the daemon has refused")                                                   \
	X(moved, "connections that were moved to another node")                                              \
	X(stayed_unsealable,                                                                                 \
	  "connections that could not be moved: a head that is too long, or a key update")                   \
	X(stayed_unacknowledged, "connections that could not be moved: the client has not acknowledged all") \
	X(stayed_ended, "connections that could not be moved: the client has closed its side")               \
	X(stayed_refused, "connections that could not be moved: the handover was refused")                   \
	X(moves_lost, "connections that were lost in a handover")                                            \
	X(upstream_connected, "connections to the server behind")                                            \
	X(upstream_reused, "requests on a connection to the server behind that was there")                   \
	X(upstream_repeated, "requests that were sent again, since that connection had ended")               \
	X(upstream_failed, "requests that the server behind has not answered: 502 or 504")                   \
	X(upstream_bad, "responses that are none, or that ended too early")                                  \
	X(tunnels, "connections that were upgraded (101)")                                                   \
	X(records_bad, "connections that ended with an alert for what the client has sent")                  \
	X(full_12, "full handshakes of TLS 1.2")                                                             \
	X(resumed_12, "handshakes of TLS 1.2 with a ticket")                                                 \
	X(full_13, "full handshakes of TLS 1.3")                                                             \
	X(resumed_13, "handshakes of TLS 1.3 with a ticket")                                                 \
	X(failed_no_tls, "handshakes that failed: what came is no TLS")                                      \
	X(failed_nothing_common, "handshakes that failed: no version, cipher or protocol in common")         \
	X(failed_alert, "handshakes that failed: the client has said no, as to a certificate")               \
	X(failed_certificate, "handshakes that failed: the client's certificate is missing or wrong")        \
	X(failed_left, "handshakes that failed: the client has gone")                                        \
	X(failed_other, "handshakes that failed: something else")                                            \
	X(bytes_in, "bytes of clients, encrypted")                                                           \
	X(bytes_out, "bytes to clients, encrypted")                                                          \
	X(ktls, "connections whose records the kernel writes, since a long response")                        \
	X(ktls_refused, "connections for which the kernel did not do that, though it had seemed to")         \
	X(ktls_ended, "such connections that ended since a new key was needed")                              \
	X(http2, "connections that speak HTTP/2")                                                            \
	X(http2_bad, "connections that ended since what the client has sent is not HTTP/2")                  \
	X(http2_calm, "connections that ended since the client has reset too many streams, or flooded")      \
	X(http2_left, "connections whose clients were told to leave (GOAWAY): a drain, a stop")              \
	X(stayed_waited,                                                                                     \
	  "first requests of HTTP/2 that came too late to move: the server had to speak first")              \
	X(stayed_pinned, "later requests of HTTP/2 that are another node's, and served here")                \
	X(ousted_new, "connections that had asked nothing, and made room for a new one")                     \
	X(ousted_idle, "connections that waited for their next request, and made room for a new one")        \
	X(full, "times that nobody was accepted, since all connections that there may be were in use")       \
	X(streams_refused, "streams of HTTP/2 that were refused for that")                                   \
	X(cut_off, "connections that were cut off, since their process has ended")

enum es_ledger_counter {
#define X(name, text) ES_LEDGER_##name,
	ES_LEDGER_COUNTERS(X)
#undef X
		ES_LEDGER_COUNTER_COUNT
};

#define ES_LEDGER_BLOCK 128 /* counters that a block has room for */
_Static_assert(ES_LEDGER_COUNTER_COUNT <= ES_LEDGER_BLOCK, "a later version may append");

extern const char *const es_ledger_counter_name[ES_LEDGER_COUNTER_COUNT];
extern const char *const es_ledger_counter_text[ES_LEDGER_COUNTER_COUNT];

enum es_ledger_state {
	ES_LEDGER_GONE,	   /* the configuration has no such service any more */
	ES_LEDGER_SERVED,  /* although something may be wrong */
	ES_LEDGER_REFUSED, /* it is not served */
};

/* struct es_ledger_service - @name: "": there is none; @why: what is wrong with it, or "" */
struct es_ledger_service {
	char name[ES_LEDGER_NAME_SIZE];
	uint32_t state;
	uint32_t reserved;
	char why[ES_LEDGER_WHY_SIZE];
};

/**
 * struct es_ledger_head
 * @places: so many of the places may have been used
 * @pid: of the first process; @workers: of the newest generation; @leaving: of those before
 * @started_wall_ns: when the first process was started
 * @died: workers that ended without having been told to, since the machine was started; a first process that
 * does not count them leaves 0
 */
struct es_ledger_head {
	uint32_t magic;
	uint32_t version;
	uint32_t places;
	uint32_t pid;
	uint32_t workers;
	uint32_t leaving;
	uint64_t started_wall_ns;
	struct es_ledger_service service[ES_LEDGER_SERVICES];
	uint64_t died;
};
_Static_assert(sizeof(struct es_ledger_head) == 32 + 64 * 512 + 8, "no padding");

struct es_ledger_block {
	uint64_t count[ES_LEDGER_BLOCK];
};

/* The whole file: large, and nearly all of it is a hole. */
struct es_ledger_file {
	struct es_ledger_head head;
	uint8_t room[65536 - sizeof(struct es_ledger_head)];
	struct es_ledger_block block[ES_LEDGER_PLACES][ES_LEDGER_SERVICES];
};

/**
 * struct es_ledger - what is to be read there
 * @runs: earshot-tls does; else what it has counted before
 * @count: of each of @head.service, all its workers' together
 */
struct es_ledger {
	int runs;
	struct es_ledger_head head;
	uint64_t count[ES_LEDGER_SERVICES][ES_LEDGER_COUNTER_COUNT];
};

/* es_ledger_read() - 0; -ENOENT: there is none; -EPROTO: another version's; or -errno. */
int es_ledger_read(const char *path, struct es_ledger *ret_ledger);

/* es_ledger_find() - the service's place in @head.service, or -1 */
int es_ledger_find(const struct es_ledger_head *head, const char *service);

/* es_ledger_open_connections() - of a service's counters */
static inline uint64_t es_ledger_open_connections(const uint64_t count[ES_LEDGER_COUNTER_COUNT])
{
	return count[ES_LEDGER_accepted] > count[ES_LEDGER_ended]
		       ? count[ES_LEDGER_accepted] - count[ES_LEDGER_ended]
		       : 0;
}

#endif
