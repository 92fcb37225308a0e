// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Makes connections from request packets, and lets them go.
 */
#include <errno.h>
#include <linux/netfilter/nf_conntrack_tcp.h>
#include <string.h>
#include <time.h>
#include "netfilter/kernel/clock.h"
#include "netfilter/rebuild/rebuild.h"
#include "netfilter/rebuild/withdraw.h"

/*
 * Waiting: how often the kernel is asked, and for how long in all. On a busy CPU, a pause takes milliseconds.
 */
#define ES_PAUSE_NS    50000
#define ES_PAUSES      200
#define ES_PATIENCE_NS 100000000
#define ES_HALVES      1024
/* How often to look again while the hook is about to record the shift. */
#define ES_LOOKS_NOTING 4

/* The stages of an attempt: it waits for */
enum stage {
	STAGE_HALF,  /* the end of a half connection */
	STAGE_SYN,   /* the SYN */
	STAGE_SHIFT, /* the SYN-ACK */
};

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

/* Pauses and returns 1; or returns 0 if the wait was long enough. */
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

/* Ends the half connection whose request begins at @seq. */
static void end_half(const struct es_nf_rebuild *rebuild, const struct es_flow *flow, __u32 seq)
{
	__u8 ES_NF_ALIGNED reset[ES_NF_MADE_MAX];

	(void)es_nf_tun_write(rebuild->tun, reset, es_nf_reset(flow, seq, reset));
}

/* Does the flow have a connection here? */
static int is_here(struct es_nf_rebuild *rebuild, const struct es_flow *flow)
{
	struct es_nf_socket socket;

	return !es_nf_socket_look(&rebuild->diag, flow, &socket) && es_nf_socket_is_connection(&socket);
}

/*
 * Ends the flow's half connection, if there is one. A late RST would end the next attempt or its entry, and
 * the SYN-ACK of that would reach the client. So there is one RST at a time, and once no half connection is
 * left, it has arrived. Returns -EINPROGRESS until then.
 */
static int end_any_half(struct es_nf_rebuild *rebuild, const struct es_nf_expected *expected)
{
	const struct es_flow *flow = &expected->flow;
	const __u64 now_ns = es_nf_now_ns();
	struct es_nf_socket socket;

	for (int i = 0; i < 2; i++) {
		int rc = es_nf_socket_look(&rebuild->diag, &expected->socket, &socket);

		if (rc || !es_nf_socket_is_half(&socket))
			return 0;
		if (es_nf_copies_has(rebuild->halves, flow, expected->first_seq, 0, now_ns))
			break;
		es_nf_copies_add(rebuild->halves, flow, expected->first_seq, 0, now_ns);
		end_half(rebuild, flow, expected->first_seq);
	}
	return -EINPROGRESS;
}

/*
 * A leftover of an old connection with the same ports (TIME_WAIT, FIN_WAIT2) would answer the SYN itself if
 * its numbers seem newer, and the client would wait in vain. If the kernel cannot end it, the SYN may still
 * succeed.
 */
static void end_any_old(struct es_nf_rebuild *rebuild, const struct es_flow *flow)
{
	struct es_nf_socket socket;

	if (!es_nf_socket_look(&rebuild->diag, flow, &socket) && es_nf_socket_is_over(&socket))
		(void)es_nf_socket_end(&rebuild->diag, flow, &socket);
}

/*
 * The flow has an entry: of a connection that goes on, is over, or never began. A half connection must be
 * ended first: it would answer only one of two SYNs within half a second (tcp_invalid_ratelimit), while the
 * new entry expects two answers.
 */
static int expect_again(struct es_nf_rebuild *rebuild, const struct es_nf_expected *expected)
{
	struct es_nf_socket socket;
	int rc;

	end_any_old(rebuild, &expected->socket);
	rc = es_nf_socket_look(&rebuild->diag, &expected->socket, &socket);
	if (!rc && es_nf_socket_is_connection(&socket))
		return -EADDRINUSE;
	/* The program's own connection, which must end first. */
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
 * Has the SYN reached the hook, which reads the ISN from it? Right after that, the listening socket gets it.
 * If the entry is gone, nothing more will happen.
 */
static int has_come_in(struct es_nf_rebuild *rebuild, const struct es_nf_request *request)
{
	struct es_nf_entry entry;
	int rc = es_nf_conntrack_get(&rebuild->ct, &request->flow, &entry);

	if (rc)
		return rc == -ENOENT ? 1 : rc;
	return entry.offsets.isn == request->seg.ack - 1;
}

/*
 * Ends the connection that the listening socket has begun, or is about to begin: the next attempt makes
 * another one.
 */
static void give_up(struct es_nf_rebuild *rebuild, const struct es_nf_request *request)
{
	end_half(rebuild, &request->flow, request->seg.seq);
	(void)es_nf_conntrack_delete(&rebuild->ct, &request->flow);
}

/*
 * Keeps a late SYN, or a half connection, from becoming a connection: the client will repeat its request,
 * which may be another node's by then. Without labels, the connection is ended if the SYN @has_come, and a
 * SYN that comes later still makes it. Returns whether it is certain that nothing came of the attempt.
 */
static int withdraw(struct es_nf_rebuild *rebuild, const struct es_nf_request *request, int has_come)
{
	int rc = es_nf_withdraw(&rebuild->ct, &request->flow, request->seg.seq);

	if (rc < 0 && (has_come || rebuild->ct.has_label))
		give_up(rebuild, request);
	return rc > 0;
}

/* Can the socket accept a connection? Not if its accept queue is full. */
static int has_room(const struct es_nf_socket *socket)
{
	return socket->state == ES_NF_TCP_LISTEN && socket->rqueue <= socket->wqueue;
}

/*
 * Ends the attempt. @has_come: the SYN has arrived; @was_full: the accept queue was; @rc: the kernel's error,
 * or -ENOENT
 */
static int end_syn(struct es_nf_rebuild *rebuild, const struct es_nf_request *request, int has_come,
		   int was_full, int rc)
{
	int is_withdrawn = 0;

	if (has_come && (rc == -ENOENT || was_full))
		give_up(rebuild, request);
	else
		is_withdrawn = withdraw(rebuild, request, has_come);
	if (rc)
		return rc == -ENOENT ? -ECONNREFUSED : rc;
	return was_full || !is_withdrawn ? -ENOBUFS : -ETIMEDOUT;
}

/*
 * What has become of the SYN? Without a socket, the request would reach the listening socket, which would
 * answer with a RST: so it must not follow yet. The entry must stay until the SYN has arrived: without it,
 * the SYN-ACK would reach the client. Returns 0: there is a socket, perhaps already established;
 * -EINPROGRESS; or -errno.
 */
static int judge_syn(struct es_nf_rebuild *rebuild, struct es_nf_attempt *attempt, int is_patient)
{
	const struct es_nf_request *request = &attempt->request;
	int was_in = attempt->has_come, was_full, come;
	struct es_nf_socket socket;
	int rc = es_nf_socket_look(&rebuild->diag, &request->socket, &socket);

	if (!rc && es_nf_socket_is_connection(&socket)) {
		attempt->is_whole = 1;
		return 0;
	}
	if (!rc && socket.state != ES_NF_TCP_LISTEN && socket.state != ES_NF_TCP_TIME_WAIT)
		return 0;
	was_full = !rc && !has_room(&socket);
	if ((rc && rc != -ENOENT) || (was_in && (rc || was_full)))
		return end_syn(rebuild, request, was_in, was_full, rc);
	come = has_come_in(rebuild, request);
	if (come < 0)
		return end_syn(rebuild, request, 0, was_full, come);
	attempt->has_come = (__u8)come;
	return is_patient ? -EINPROGRESS : end_syn(rebuild, request, come, was_full, rc);
}

/*
 * Does the SYN come twice? The kernel would take the time between its SYN-ACK and the handshake's last packet
 * for the round trip to the client, and it is almost nothing: for ten seconds, BBR would send only what fits
 * into it, and CUBIC would leave slow start at once. By Karn's rule, a repeated SYN-ACK is not measured. So
 * the SYN comes twice, and the hook's own last packet is dropped (hook.c), so that the request finishes the
 * handshake. Where that rule cannot be, all works but for the measurement. Likewise where the client may send
 * more at once, after a bare ACK or the head of a body.
 */
static int makes_copy(const struct es_nf_rebuild *rebuild, const struct es_nf_request *request)
{
	return es_nf_request_is_all(request) && rebuild->ct.has_label && !rebuild->ct.zone;
}

/*
 * While the entry has ES_NF_LABEL_MAKING, packets from the wire get no further than to the queue (rules.c).
 * One could otherwise establish the connection, and the entry, which is set back for the second SYN, would
 * refuse all that follows. And while the shift is not known, the listening socket would answer it with a RST.
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
 * Does the entry know the shift of the server's numbers? Without it, the request would not be shifted, and a
 * RST would answer it. There are three cases in which it may be missing or wrong:
 * - Another CPU still has the SYN-ACK, on its way from the socket that judge_syn() has seen to the hook:
 *   wait.
 * - A packet from the wire, while the SYN-ACK was between conntrack and the hook, has changed the state to
 *   one in which the hook ignores the SYN-ACK: the shift will never be known.
 * - It was the SYN-ACK of an earlier attempt, whose SYN came late: the shift is for another ISN.
 * Returns 0; -EINPROGRESS: wait; -ENOBUFS: it will not be known; or -errno.
 */
static int look_at_shift(struct es_nf_rebuild *rebuild, struct es_nf_attempt *attempt, int is_patient)
{
	const struct es_nf_request *request = &attempt->request;
	struct es_nf_entry *entry = &rebuild->made;
	int rc = es_nf_conntrack_get(&rebuild->ct, &request->flow, entry);

	if (rc)
		return rc;
	if (entry->offsets.server.after)
		return entry->offsets.isn == request->seg.ack - 1 ? 0 : -ENOBUFS;
	attempt->late += entry->state != TCP_CONNTRACK_SYN_SENT && entry->state != TCP_CONNTRACK_SYN_RECV;
	return is_patient && attempt->late < ES_LOOKS_NOTING ? -EINPROGRESS : -ENOBUFS;
}

/* The handshake lacks only its last packet, or nothing. Returns 0, -EINPROGRESS or -errno. */
static int finish_syn(struct es_nf_rebuild *rebuild, struct es_nf_attempt *attempt, int is_patient)
{
	const struct es_nf_request *request = &attempt->request;
	const struct es_nf_expected expected = expected_of(rebuild, request);
	__u8 ES_NF_ALIGNED syn[ES_NF_MADE_MAX];
	int rc;

	rebuild->made = (struct es_nf_entry){};
	rc = look_at_shift(rebuild, attempt, is_patient);
	if (rc == -EINPROGRESS)
		return rc;
	rebuild->made.client_ts = request->seg.has_ts ? request->seg.tsval : 0;
	/*
	 * The first SYN-ACK is through. Otherwise it would change the entry again after expect_copy(), which
	 * would undo that.
	 */
	if (!rc && !attempt->is_whole && makes_copy(rebuild, request)) {
		rc = es_nf_conntrack_expect_copy(&rebuild->ct, &expected);
		if (!rc)
			rc = es_nf_tun_write(rebuild->tun, syn, es_nf_request_syn(request, syn));
	}
	if (rc && attempt->is_whole)
		give_up(rebuild, request);
	else if (rc)
		(void)withdraw(rebuild, request, 1);
	return rc;
}

/*
 * The handshake is done. The label goes before the request is written: the response may be acknowledged at
 * once, or the daemon may die.
 */
static int put_request(struct es_nf_rebuild *rebuild, const struct es_nf_request *request)
{
	__u8 ES_NF_ALIGNED headers[ES_NF_MADE_MAX];
	struct iovec parts[2] = {
		{headers, es_nf_request_begin(request, headers)},
		{(void *)(request->packet + request->len - request->seg.len), request->seg.len},
	};

	if (waits(rebuild))
		/* the entry may be gone already */
		(void)es_nf_conntrack_made(&rebuild->ct, &request->flow);
	return es_nf_tun_write_parts(rebuild->tun, parts, 2);
}

/*
 * Does the entry give the server's socket the address that it should have? If another connection already uses
 * the client's port there, the kernel translates to another port. Returns 0; -EADDRINUSE; or -errno.
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

static int begins(const struct es_nf_request *request)
{
	return request->begins ? request->begins(request->ctx, request) : 0;
}

/* The entry is there: write the SYN. */
static int shake_hands(struct es_nf_rebuild *rebuild, struct es_nf_attempt *attempt, int is_patient)
{
	const struct es_nf_request *request = &attempt->request;
	__u8 ES_NF_ALIGNED syn[ES_NF_MADE_MAX];
	int rc = check_translation(rebuild, request);

	if (!rc)
		rc = begins(request);
	if (!rc)
		rc = es_nf_tun_write(rebuild->tun, syn, es_nf_request_syn(request, syn));
	/* -ENOMEM means that nothing has begun. */
	if (rc)
		return rc == -ENOMEM ? -ENOBUFS : rc;
	attempt->stage = STAGE_SYN;
	return es_nf_rebuild_go_on(rebuild, attempt, is_patient);
}

/* The flow had an entry, or has a half connection that must end first. */
static int shake_hands_again(struct es_nf_rebuild *rebuild, struct es_nf_attempt *attempt, int is_patient)
{
	const struct es_nf_expected expected = expected_of(rebuild, &attempt->request);
	int rc = expect_again(rebuild, &expected);

	attempt->stage = STAGE_HALF;
	if (rc == -EINPROGRESS)
		return is_patient ? rc : -ENOBUFS;
	return rc ? rc : shake_hands(rebuild, attempt, is_patient);
}

static int go_on(struct es_nf_rebuild *rebuild, struct es_nf_attempt *attempt, int is_patient)
{
	int rc = 0;

	if (attempt->stage == STAGE_HALF)
		return shake_hands_again(rebuild, attempt, is_patient);
	if (attempt->stage == STAGE_SYN) {
		rc = judge_syn(rebuild, attempt, is_patient);
		if (!rc)
			attempt->stage = STAGE_SHIFT;
	}
	if (!rc)
		rc = finish_syn(rebuild, attempt, is_patient);
	if (rc)
		return rc == -ENOMEM ? -ENOBUFS : rc;
	return put_request(rebuild, &attempt->request);
}

int es_nf_rebuild_go_on(struct es_nf_rebuild *rebuild, struct es_nf_attempt *attempt, int is_patient)
{
	int rc = go_on(rebuild, attempt, is_patient);

	if (rc < 0 && rc != -EINPROGRESS)
		es_nf_copies_forget(rebuild->copies, &attempt->request.flow);
	return rc;
}

int es_nf_rebuild_give_up(struct es_nf_rebuild *rebuild, struct es_nf_attempt *attempt)
{
	es_nf_copies_forget(rebuild->copies, &attempt->request.flow);
	if (attempt->stage == STAGE_HALF)
		return -ETIMEDOUT;
	return end_syn(rebuild, &attempt->request, attempt->stage == STAGE_SHIFT || attempt->has_come, 0, 0);
}

/* Is the connection over that was made from this request within the last second? */
static int is_over(struct es_nf_rebuild *rebuild, const struct es_flow *flow)
{
	struct es_nf_socket socket;

	return !es_nf_socket_look(&rebuild->diag, flow, &socket) && es_nf_socket_is_over(&socket);
}

/*
 * The client has repeated its request: the response is on its way, or the accept queue became full at the
 * last moment.
 */
static int put_copy(struct es_nf_rebuild *rebuild, struct es_nf_attempt *attempt, int is_patient)
{
	const struct es_nf_request *request = &attempt->request;
	int rc = is_over(rebuild, &request->socket) ? -EADDRINUSE
						    : shake_hands_again(rebuild, attempt, is_patient);

	if (rc == -EADDRINUSE)
		rc = begins(request) ?: -EADDRINUSE;
	if (rc != -EADDRINUSE)
		return rc;
	/* A SYN that came too late for shake_hands() may have made the connection. */
	if (waits(rebuild))
		(void)es_nf_conntrack_made(&rebuild->ct, &request->flow);
	return es_nf_tun_write(rebuild->tun, request->packet, request->len) ?: ES_NF_COPY;
}

int es_nf_rebuild_begin(struct es_nf_rebuild *rebuild, const struct es_nf_request *request, __u64 now_ns,
			int is_patient, struct es_nf_attempt *ret_attempt)
{
	const struct es_nf_expected expected = expected_of(rebuild, request);
	struct es_nf_attempt *attempt = ret_attempt;
	int rc;

	*attempt = (struct es_nf_attempt){.request = *request};
	if (es_nf_copies_has(rebuild->copies, &request->flow, request->seg.seq, request->seg.ack, now_ns)) {
		rc = put_copy(rebuild, attempt, is_patient);
	} else {
		es_nf_copies_add(rebuild->copies, &request->flow, request->seg.seq, request->seg.ack, now_ns);
		es_nf_conntrack_expect(&rebuild->ct, &expected, 1, &rc);
		if (!rc)
			rc = shake_hands(rebuild, attempt, is_patient);
		else if (rc == -EEXIST)
			rc = shake_hands_again(rebuild, attempt, is_patient);
	}
	if (rc < 0 && rc != -EINPROGRESS)
		es_nf_copies_forget(rebuild->copies, &request->flow);
	return rc;
}

int es_nf_rebuild(struct es_nf_rebuild *rebuild, const struct es_nf_request *request, __u64 now_ns)
{
	struct patience patience = {};
	struct es_nf_attempt attempt;
	int rc = es_nf_rebuild_begin(rebuild, request, now_ns, 1, &attempt);

	while (rc == -EINPROGRESS)
		rc = es_nf_rebuild_go_on(rebuild, &attempt, is_patient(&patience));
	return rc;
}

int es_nf_leave(struct es_nf_rebuild *rebuild, const struct es_flow *flow, __u32 rcv_nxt)
{
	__u8 ES_NF_ALIGNED reset[ES_NF_MADE_MAX];
	struct es_nf_entry entry = {.socket = *flow};
	struct es_nf_socket socket;
	int rc;

	/* The RST needs the entry to reach this socket. */
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
