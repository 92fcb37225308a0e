// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Makes connections from request packets, and lets them go.
 */
#include <errno.h>
#include <linux/netfilter/nf_conntrack_tcp.h>
#include <string.h>
#include <time.h>
#include "netfilter/clock.h"
#include "netfilter/rebuild.h"
#include "netfilter/withdraw.h"

/*
 * How often the kernel is asked whether something has come that is on its way, and how long at most: where the CPU is busy, a pause
 * takes milliseconds, and all else that comes waits for this thread meanwhile.
 */
#define ES_PAUSE_NS    50000
#define ES_PAUSES      200
#define ES_PATIENCE_NS 100000000
#define ES_HALVES      1024
/* How long the hook may be about to note what it has just learnt. */
#define ES_PAUSES_NOTING 4

int es_nf_rebuild_open(struct es_nf_rebuild *rebuild, const struct es_nf_tun *tun,
		       const struct es_nf_rebuild_settings *settings, struct es_nf_why *why)
{
	int rc;

	*rebuild = (struct es_nf_rebuild){.tun = tun};
	rc = es_nf_copies_new(settings->copies, &rebuild->copies);
	if (!rc)
		rc = es_nf_copies_new(ES_HALVES, &rebuild->halves);
	if (rc)
		es_nf_why(why, rc, "no memory for %zu requests", settings->copies);
	else if ((rc = es_nf_conntrack_open(&rebuild->ct, settings->zone, settings->has_label)))
		es_nf_why(why, rc, "ctnetlink: %s", strerror(-rc));
	else if ((rc = es_nf_netlink_open(&rebuild->diag, NETLINK_SOCK_DIAG)))
		es_nf_why(why, rc, "sock_diag: %s", strerror(-rc));
	if (rc)
		es_nf_rebuild_close(rebuild);
	return rc;
}

void es_nf_rebuild_close(struct es_nf_rebuild *rebuild)
{
	es_nf_netlink_close(&rebuild->diag);
	es_nf_conntrack_close(&rebuild->ct);
	es_nf_copies_free(&rebuild->copies);
	es_nf_copies_free(&rebuild->halves);
}

struct patience {
	int pauses;
	__u64 since_ns;
};

/* Waits a little; or returns 0, if that has been long enough. */
static int is_patient(struct patience *patience)
{
	const struct timespec pause = {.tv_nsec = ES_PAUSE_NS};
	__u64 now_ns = es_nf_now_ns();

	if (!patience->pauses)
		patience->since_ns = now_ns;
	if (patience->pauses++ == ES_PAUSES || now_ns - patience->since_ns >= ES_PATIENCE_NS)
		return 0;
	nanosleep(&pause, NULL);
	return 1;
}

/* A half-made connection, whose request begins with this number: none is to be left. */
static void end_half(const struct es_nf_rebuild *rebuild, const struct es_flow *flow, __u32 seq)
{
	__u8 ES_NF_ALIGNED reset[ES_NF_MADE_MAX];

	(void)es_nf_tun_write(rebuild->tun, reset, es_nf_reset(flow, seq, reset));
}

/* Is a connection here by that name? */
static int is_here(struct es_nf_rebuild *rebuild, const struct es_flow *flow)
{
	struct es_nf_socket socket;

	return !es_nf_socket_look(&rebuild->diag, flow, &socket) && es_nf_socket_is_connection(&socket);
}

/*
 * End it, if there is any. A RST that comes in late would end the next one, or its entry, and what its SYN is answered with would go
 * to the client: so there is one RST at a time, and when nothing is left, it has come in. Returns -ENOBUFS if it has not yet.
 */
static int end_any_half(struct es_nf_rebuild *rebuild, const struct es_nf_expected *expected)
{
	const struct es_flow *flow = &expected->flow;
	const __u64 now_ns = es_nf_now_ns();
	struct patience patience = {};
	struct es_nf_socket socket;

	do {
		int rc = es_nf_socket_look(&rebuild->diag, &expected->socket, &socket);

		if (rc || !es_nf_socket_is_half(&socket))
			return 0;
		if (es_nf_copies_has(rebuild->halves, flow, expected->first_seq, 0, now_ns))
			continue;
		es_nf_copies_add(rebuild->halves, flow, expected->first_seq, 0, now_ns);
		end_half(rebuild, flow, expected->first_seq);
	} while (is_patient(&patience));
	return -ENOBUFS;
}

/*
 * What an old connection of these ports has left would answer the SYN as its own, if its numbers seem to come before, and the client would
 * wait in vain. Where the kernel does not end it, it may still take the SYN.
 */
static void end_any_old(struct es_nf_rebuild *rebuild, const struct es_flow *flow)
{
	struct es_nf_socket socket;

	if (!es_nf_socket_look(&rebuild->diag, flow, &socket) && es_nf_socket_is_over(&socket))
		(void)es_nf_socket_end(&rebuild->diag, flow, &socket);
}

/*
 * The flow may have an entry: of a connection that goes on, or of one that is over or never began. Half a connection would answer
 * two SYNs within half a second once only (tcp_invalid_ratelimit), where the entry expects both answers.
 */
static int expect_again(struct es_nf_rebuild *rebuild, const struct es_nf_expected *expected)
{
	struct es_nf_socket socket;
	int rc;

	end_any_old(rebuild, &expected->socket);
	rc = es_nf_socket_look(&rebuild->diag, &expected->socket, &socket);
	if (!rc && es_nf_socket_is_connection(&socket))
		return -EADDRINUSE;
	/* The program's own, that is to end before. */
	if (!es_flow_equal(&expected->flow, &expected->socket) && is_here(rebuild, &expected->flow))
		return -EADDRINUSE;
	if (rc && rc != -ENOENT)
		return rc;
	rc = rc ? 0 : end_any_half(rebuild, expected);
	if (!rc)
		rc = es_nf_conntrack_delete(&rebuild->ct, &expected->flow);
	if (!rc || rc == -ENOENT)
		es_nf_conntrack_expect(&rebuild->ct, expected, 1, &rc);
	return rc;
}

/*
 * Has the SYN come as far as the hook, which takes the ISN out of it? Just behind, the listening socket gets it. Without an
 * entry, nothing more is to come.
 */
static int has_come_in(struct es_nf_rebuild *rebuild, const struct es_nf_request *request)
{
	struct es_nf_entry entry;
	int rc = es_nf_conntrack_get(&rebuild->ct, &request->flow, &entry);

	if (rc)
		return rc == -ENOENT ? 1 : rc;
	return entry.offsets.isn == request->seg.ack - 1;
}

/* The connection that its listening socket has begun, or is about to, is not to be: the next attempt makes another one. */
static void give_up(struct es_nf_rebuild *rebuild, const struct es_nf_request *request)
{
	end_half(rebuild, &request->flow, request->seg.seq);
	(void)es_nf_conntrack_delete(&rebuild->ct, &request->flow);
}

/*
 * What its SYN, which may come in later, or its half connection would still become is not to be: the client repeats its request, which
 * may be another node's by then. Without labels, it is made all the same if it @has_come too late. Returns whether it is certain that
 * nothing has come of it.
 */
static int withdraw(struct es_nf_rebuild *rebuild, const struct es_nf_request *request, int has_come)
{
	int rc = es_nf_withdraw(&rebuild->ct, &request->flow, request->seg.seq);

	if (rc < 0 && (has_come || rebuild->ct.has_label))
		give_up(rebuild, request);
	return rc > 0;
}

/* May there be a socket in a moment? Not if the accept queue is full. */
static int has_room(const struct es_nf_socket *socket)
{
	return socket->state == ES_NF_TCP_LISTEN && socket->rqueue <= socket->wqueue;
}

/*
 * What has become of the SYN? Without a socket, the request would come to the listening one, which answers with a RST: so
 * it must not follow. Returns 0: the handshake waits for its last packet; ES_WHOLE: it had that; or -errno.
 *
 * Mostly, the kernel is through with the SYN when its write() returns. But another CPU may have it (RPS), or the one
 * here may be so busy that packets wait (ksoftirqd, before 6.4). Until it comes in, its entry must stay: without it, the
 * listening socket's answer would go to the client.
 */
#define ES_WHOLE 1
static int judge_syn(struct es_nf_rebuild *rebuild, const struct es_nf_request *request)
{
	struct patience patience = {};
	int come = 0, was_in, was_full = 0, is_withdrawn = 0, rc = 0;

	do {
		struct es_nf_socket socket;

		was_in = come > 0;
		rc = es_nf_socket_look(&rebuild->diag, &request->socket, &socket);
		if (!rc && es_nf_socket_is_connection(&socket))
			return ES_WHOLE;
		if (!rc && socket.state != ES_NF_TCP_LISTEN && socket.state != ES_NF_TCP_TIME_WAIT)
			return 0;
		was_full = !rc && !has_room(&socket);
		if ((rc && rc != -ENOENT) || (was_in && (rc || was_full)))
			break;
		come = has_come_in(rebuild, request);
		if (come < 0) {
			rc = come;
			break;
		}
	} while (is_patient(&patience));
	if (come > 0 && (rc == -ENOENT || was_full))
		give_up(rebuild, request);
	else
		is_withdrawn = withdraw(rebuild, request, come);
	if (rc)
		return rc == -ENOENT ? -ECONNREFUSED : rc;
	return was_full || !is_withdrawn ? -ENOBUFS : -ETIMEDOUT;
}

/*
 * The entry is there. The kernel would take the time from its SYN-ACK to the handshake's last packet for the round trip to
 * the client, and that is nothing here: BBR would send what fits into it for ten seconds, CUBIC would leave slow start at
 * once. By Karn's rule it measures nothing where a SYN-ACK was repeated, so the SYN comes twice; and the hook's own last
 * packet is dropped (hook.c), so that the request is the first after that. Where there is no such rule, all works but
 * for the measurement. So it is where the client may send more at once, behind a bare ACK or the head of a body.
 */
static int makes_copy(const struct es_nf_rebuild *rebuild, const struct es_nf_request *request)
{
	return es_nf_request_is_all(request) && rebuild->ct.has_label && !rebuild->ct.zone;
}

/*
 * What comes from the wire while a connection is made must come no further than to the queue (rules.c), as long as the entry has
 * ES_NF_LABEL_MAKING. It could make the connection whole, and the entry, which is set back for the copy, would refuse all that
 * follows. And where the shift is not known yet, the listening socket would answer it with a RST.
 */
static int waits(const struct es_nf_rebuild *rebuild)
{
	return rebuild->ct.has_label;
}

static struct es_nf_expected expected_of(const struct es_nf_rebuild *rebuild,
					 const struct es_nf_request *request)
{
	return (struct es_nf_expected){request->flow, request->socket, request->options, request->seg.seq,
				       waits(rebuild)};
}

/*
 * Does the entry know by how much the server's numbers are shifted? Without that, the request would not be shifted, and be answered
 * with a RST. Another CPU may have the SYN-ACK still, on its way from the socket that judge_syn() has seen to the hook. And a packet
 * from the wire that comes while it is between the connection tracking and the hook makes its state one in which the hook lets it
 * pass: then the shift is never known. And where that was the answer to an earlier attempt's SYN, which has come in late, the shift is to a
 * number that this one's has not told yet. Returns 0; -ENOBUFS: it does not; or -errno.
 */
static int look_at_shift(struct es_nf_rebuild *rebuild, const struct es_nf_request *request)
{
	struct es_nf_entry *entry = &rebuild->made;
	struct patience patience = {};
	int late = 0, is_first = 1;

	for (; !entry->offsets.server.after; is_first = 0) {
		int rc;

		if (late == ES_PAUSES_NOTING || (!is_first && !is_patient(&patience)))
			return -ENOBUFS;
		rc = es_nf_conntrack_get(&rebuild->ct, &request->flow, entry);
		if (rc)
			return rc;
		late += entry->state != TCP_CONNTRACK_SYN_SENT && entry->state != TCP_CONNTRACK_SYN_RECV;
	}
	return entry->offsets.isn == request->seg.ack - 1 ? 0 : -ENOBUFS;
}

/* All up to the request. Returns 0 or -errno. */
static int begin(struct es_nf_rebuild *rebuild, const struct es_nf_request *request)
{
	__u8 ES_NF_ALIGNED syn[ES_NF_MADE_MAX];
	const struct es_nf_expected expected = expected_of(rebuild, request);
	size_t syn_len = es_nf_request_syn(request, syn);
	int is_whole, rc = es_nf_tun_write(rebuild->tun, syn, syn_len);

	rebuild->made = (struct es_nf_entry){};
	if (!rc)
		rc = judge_syn(rebuild, request);
	if (rc < 0)
		return rc;
	is_whole = rc == ES_WHOLE;
	rc = look_at_shift(rebuild, request);
	rebuild->made.client_ts = request->seg.has_ts ? request->seg.tsval : 0;
	/* The first SYN's answer is through: it would change the entry once more, and that would not expect the copy any longer. */
	if (!rc && !is_whole && makes_copy(rebuild, request)) {
		rc = es_nf_conntrack_expect_copy(&rebuild->ct, &expected);
		if (!rc)
			rc = es_nf_tun_write(rebuild->tun, syn, syn_len);
	}
	if (rc && is_whole)
		give_up(rebuild, request);
	else if (rc)
		(void)withdraw(rebuild, request, 1);
	return rc;
}

/*
 * Is the entry one by which the server's socket has the name that it is to have? Where a connection has that already, the kernel
 * translates the client's port to another one. Returns 0; -EADDRINUSE; or -errno.
 */
static int check_translation(struct es_nf_rebuild *rebuild, const struct es_nf_request *request)
{
	struct es_nf_entry entry;
	int rc;

	if (es_flow_equal(&request->flow, &request->socket))
		return 0;
	rc = es_nf_conntrack_get(&rebuild->ct, &request->flow, &entry);
	if (rc || es_flow_equal(&entry.socket, &request->socket))
		return rc;
	(void)es_nf_conntrack_delete(&rebuild->ct, &request->flow);
	return -EADDRINUSE;
}

static int shake_hands(struct es_nf_rebuild *rebuild, const struct es_nf_request *request)
{
	__u8 ES_NF_ALIGNED headers[ES_NF_MADE_MAX];
	struct iovec parts[2] = {
		{headers, es_nf_request_begin(request, headers)},
		{(void *)(request->packet + request->len - request->seg.len), request->seg.len},
	};
	int rc = check_translation(rebuild, request);

	if (rc)
		return rc;
	rc = begin(rebuild, request);
	/* Before the request: its answer may be acknowledged, or the daemon be gone, before anything else is done here. */
	if (!rc && waits(rebuild))
		/* or it is gone already */
		(void)es_nf_conntrack_made(&rebuild->ct, &request->flow);
	/* -ENOMEM says that nothing has begun. */
	return rc == -ENOMEM ? -ENOBUFS : rc ? rc : es_nf_tun_write_parts(rebuild->tun, parts, 2);
}

/* The connection that was made of it within the last second, if any was. */
static int is_over(struct es_nf_rebuild *rebuild, const struct es_flow *flow)
{
	struct es_nf_socket socket;

	return !es_nf_socket_look(&rebuild->diag, flow, &socket) && es_nf_socket_is_over(&socket);
}

/* The client repeats itself: because the answer is on its way, or because there was no room in the accept queue at the last moment. */
static int put_copy(struct es_nf_rebuild *rebuild, const struct es_nf_request *request)
{
	struct es_nf_expected expected = expected_of(rebuild, request);
	int rc = is_over(rebuild, &request->socket) ? -EADDRINUSE : expect_again(rebuild, &expected);

	if (rc == -EADDRINUSE) {
		/* Of a SYN that came in too late for shake_hands(). */
		if (expected.is_making)
			(void)es_nf_conntrack_made(&rebuild->ct, &request->flow);
		return es_nf_tun_write(rebuild->tun, request->packet, request->len) ?: ES_NF_COPY;
	}
	return rc ? rc : shake_hands(rebuild, request);
}

void es_nf_rebuild_many(struct es_nf_rebuild *rebuild, const struct es_nf_request *requests, size_t n,
			__u64 now_ns, int *ret_rc)
{
	struct es_nf_expected expected[ES_NF_BATCH];
	size_t which[ES_NF_BATCH], wanted = 0;
	int rc[ES_NF_BATCH];

	for (size_t i = 0; i < n; i++) {
		const struct es_nf_request *r = &requests[i];

		ret_rc[i] = ES_NF_COPY;
		if (es_nf_copies_has(rebuild->copies, &r->flow, r->seg.seq, r->seg.ack, now_ns))
			continue;
		/* Now, so that a copy in the same batch is one. */
		es_nf_copies_add(rebuild->copies, &r->flow, r->seg.seq, r->seg.ack, now_ns);
		expected[wanted] = expected_of(rebuild, r);
		which[wanted++] = i;
	}
	if (wanted)
		es_nf_conntrack_expect(&rebuild->ct, expected, wanted, rc);
	for (size_t i = 0; i < wanted; i++)
		ret_rc[which[i]] = rc[i] == -EEXIST ? expect_again(rebuild, &expected[i]) : rc[i];
	for (size_t i = 0; i < n; i++) {
		if (!ret_rc[i])
			ret_rc[i] = shake_hands(rebuild, &requests[i]);
		else if (ret_rc[i] == ES_NF_COPY)
			ret_rc[i] = put_copy(rebuild, &requests[i]);
		if (ret_rc[i] < 0)
			es_nf_copies_forget(rebuild->copies, &requests[i].flow);
	}
}

int es_nf_rebuild(struct es_nf_rebuild *rebuild, const struct es_nf_request *request, __u64 now_ns)
{
	int rc;

	es_nf_rebuild_many(rebuild, request, 1, now_ns, &rc);
	return rc;
}

int es_nf_acknowledge(struct es_nf_rebuild *rebuild, const struct es_nf_request *request)
{
	__u8 ES_NF_ALIGNED ack[ES_NF_MADE_MAX];

	return es_nf_tun_write(rebuild->tun, ack, es_nf_request_ack(request, ack));
}

int es_nf_leave(struct es_nf_rebuild *rebuild, const struct es_flow *flow, __u32 rcv_nxt)
{
	__u8 ES_NF_ALIGNED reset[ES_NF_MADE_MAX];
	struct es_nf_entry entry = {.socket = *flow};
	struct es_nf_socket socket;
	int rc;

	/* With that entry, the RST comes to this socket. */
	rc = es_nf_conntrack_get(&rebuild->ct, flow, &entry);
	if (rc && rc != -ENOENT)
		return rc;
	rc = es_nf_tun_write(rebuild->tun, reset, es_nf_reset(flow, rcv_nxt, reset));
	if (rc)
		return rc;
	rc = es_nf_socket_look(&rebuild->diag, &entry.socket, &socket);
	if (!rc && es_nf_socket_is_connection(&socket))
		return -EBUSY;
	if (rc && rc != -ENOENT)
		return rc;
	es_nf_copies_forget(rebuild->copies, flow);
	rc = es_nf_conntrack_delete(&rebuild->ct, flow);
	return rc == -ENOENT ? 0 : rc;
}
