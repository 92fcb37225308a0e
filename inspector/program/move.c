// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One handover of a program's connection, step by step; kmod/core/program.h has the rules. The order of the
 * steps guarantees two things. One socket at a time: our socket takes nothing new from its client, and sends
 * nothing, from before the first message that could make another one until the target has promised not to
 * make it. No byte lost: our socket does not end before the target has its own; only where both are on this
 * node, the old one has to go first.
 *
 * A packet that some CPU had taken up when the socket was frozen may be received, and acknowledged, until a
 * grace period has passed, and that is longer than all else together. So nobody waits for it: our socket is
 * looked at once more when it ends (es_program_socket_late()). Only one that is this node's again, or sends
 * TLS, which cannot be closed for the program, ends after a grace period. Whichever came late:
 * - bytes: they follow, as those do that did not fit into the message. The client may know that they have
 *   arrived, and goes on after them: its next bytes wait at the target, which acknowledges less than the
 *   client knows of, and so nothing new to it, until these have come.
 * - a FIN: it follows after the last byte.
 * - a RST: our socket is over, and the target's hears of it with the first that it says, as if the RST had
 *   been lost on the way there.
 * - an acknowledgment, a window, a keep-alive: the program had nothing unacknowledged; our socket may say
 *   again what it has said, with old numbers, to which a client only answers.
 * - urgent data: it cannot follow in its order, so the client gets a RST.
 * - any of these, and the target promises not to make it, or is this node: our socket has it when it is given
 *   back; here, all is read after the grace period.
 * - any of these between that look and the end, which follows at once: its bytes are lost, so the client gets
 *   a RST (es_program_socket_missed()). A CPU would have to work on one packet since before the freeze.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "inspector/base/clock.h"
#include "inspector/base/wall.h"
#include "inspector/machine/close_apart.h"
#include "inspector/packet/packet.h"
#include "inspector/program/internal.h"
#include "kmod/core/headers.h"
#include "libearshot/wire.h"

#define MS		   1000000ULL
#define RESEND_FIRST_NS	   (10 * MS)
#define RESEND_LAST_NS	   (160 * MS)
#define CONNECTED_LIMIT_NS (5000 * MS)
#define ASKING_LIMIT_NS	   (300 * MS)
#define BUILDING_LIMIT_NS  (1000 * MS)
#define CANCEL_LIMIT_NS	   (3000 * MS)
#define FOLLOWING_LIMIT_NS (10000 * MS) /* without a byte more */
/* After asking this long for a socket that is not there, it counts as never made. */
#define OVER_LIMIT_NS (200 * MS)
#define FOLLOW_WINDOW 32 /* messages */

static void es_move_phase(struct es_programs *p, struct es_program_move *m, enum es_program_phase phase)
{
	m->phase = phase;
	m->since_ns = p->now_ns;
	m->next_ns = p->now_ns + m->interval_ns;
	m->tries = 0;
}

void es_program_move_finish(struct es_program_move *m, int result)
{
	const struct es_program_reply reply = {.magic = ES_PROGRAM_MAGIC, .result = result};

	/* If the program is gone, this fails without harm. */
	if (send(m->client_fd, &reply, sizeof(reply), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		errno = 0;
	close(m->client_fd);
	if (m->connection.fd >= 0)
		es_close_apart(m->connection.fd);
	es_program_socket_fini(&m->connection);
	m->phase = ES_PROGRAM_FREE;
}

static int es_is_self(const struct es_programs *p, const struct es_program_move *m)
{
	return m->target == p->cluster->self;
}

/*
 * A new socket here has the same addresses; and one that sends TLS goes on to receive until its program
 * closes it.
 */
static int es_move_needs_grace(const struct es_programs *p, const struct es_program_move *m)
{
	return es_is_self(p, m) || m->connection.sends_tls;
}

/* --- what is sent */

static void es_move_send(struct es_programs *p, struct es_program_move *m, enum es_handover_kind kind,
			 size_t offset, size_t len)
{
	const struct es_handover_order order = {
		.kind = kind,
		.service = m->service,
		.options = m->connection.options,
		.url_key = m->id,
	};
	uint8_t packet[ES_HANDOVER_PACKET_MAX];
	int has_fin =
		kind == ES_HANDOVER_FOLLOW && m->connection.has_fin && offset + len == m->connection.len;
	size_t packet_len = es_program_socket_packet(&m->connection, offset, len, has_fin, packet);

	/* A target that has left the configuration does not answer either. */
	request_handover(p->sender, p->cluster, &order, packet, packet_len, m->target);
}

static size_t es_move_piece(const struct es_programs *p, const struct es_program_move *m, size_t offset)
{
	size_t room = *p->params.packet_max - es_ip_packet_make_max(&m->connection.flow);
	size_t left = m->connection.len - offset;

	return left < room ? left : room;
}

/* The message that makes the socket, and behind it the question whether it did. */
static void es_move_send_connection(struct es_programs *p, struct es_program_move *m)
{
	es_move_send(p, m, ES_HANDOVER_PROGRAM, 0, es_move_piece(p, m, 0));
	es_move_send(p, m, ES_HANDOVER_ASK, 0, 0);
}

/* Sends as much of the rest as may be on its way, and asks how far it came. */
static void es_move_send_rest(struct es_programs *p, struct es_program_move *m)
{
	size_t at = m->arrived;

	if (at == m->connection.len) /* but for a FIN */
		es_move_send(p, m, ES_HANDOVER_FOLLOW, at, 0);
	for (unsigned int i = 0; i < FOLLOW_WINDOW && at < m->connection.len; i++) {
		size_t len = es_move_piece(p, m, at);

		es_move_send(p, m, ES_HANDOVER_FOLLOW, at, len);
		at += len;
	}
	es_move_send(p, m, ES_HANDOVER_ASK, 0, 0);
}

/* Tell the client that its connection is over, where no socket is left to say so. */
static void es_move_reset(struct es_programs *p, const struct es_program_move *m)
{
	uint8_t bytes[ES_ANSWER_HEADER_MAX], rst[ES_RESET_MAX];
	struct es_ip_packet packet;

	if (es_ip_packet_parse(bytes, es_program_socket_packet(&m->connection, 0, 0, 0, bytes), &packet))
		return;
	/* One that cannot be sent is like one that the network has lost. */
	(void)es_raw_send(&p->raw, &packet.flow, rst, es_ip_packet_reset(&packet, rst));
}

/* --- the beginning */

static int es_move_find(struct es_programs *p, struct es_program_move *m, const char *node)
{
	const struct es_conf *conf = p->cluster->conf;
	const struct es_flow *flow = &m->connection.flow;
	unsigned int i = 0;

	m->target = p->cluster->self;
	/* Its socket would belong to the interface by which handovers come in. */
	if (es_addr_is_link_local(&flow->client))
		return -EOPNOTSUPP;
	if (*node) {
		while (i < conf->node_count && strcmp(conf->nodes[i].name, node) != 0)
			i++;
		if (i == conf->node_count)
			return -ENOENT;
		m->target = i;
	}
	for (i = 0; i < conf->service_count; i++)
		if (es_conf_service_has(&conf->services[i], &flow->service) &&
		    es_htons(conf->services[i].port) == flow->service_port &&
		    es_conf_server_of(&conf->services[i], !es_addr_is_v4(&flow->service)))
			break;
	m->service = i;
	return i < conf->service_count ? 0 : -EOPNOTSUPP;
}

/*
 * A client that may not have heard yet that its request arrived repeats it to the node that the ring names.
 * Where that may be another node, that node was told to ask this one (struct es_proof).
 */
static int es_move_is_provable(const struct es_programs *p, const struct es_program_move *m)
{
	const struct es_connection_state *s = &m->connection.state;

	return p->cluster->conf->cluster.membership == ES_CONF_MEMBERSHIP_STATIC || s->bytes_acked ||
	       es_is_self(p, m) || es_cluster_inspects(p->cluster, s->flow_hash);
}

/* Of one flow: are they one connection, and not one after the other? */
static int es_move_is_same(const struct es_connection_state *one, const struct es_connection_state *other)
{
	return one->rcv_nxt - (__u32)one->bytes_received == other->rcv_nxt - (__u32)other->bytes_received;
}

/*
 * Two threads with one socket: it cannot go to two nodes. But where a client comes again by the ports of a
 * connection that this node is still handing over, that one is over, since a node has one socket of these
 * ports: it is not waited for any longer.
 */
static int es_move_is_twin(struct es_programs *p, const struct es_program_move *m)
{
	for (unsigned int i = 0; i < p->moves_end; i++) {
		struct es_program_move *other = &p->moves[i];

		if (other == m || other->phase <= ES_PROGRAM_CONNECTED ||
		    other->connection.state.flow_hash != m->connection.state.flow_hash)
			continue;
		if (es_move_is_same(&other->connection.state, &m->connection.state))
			return 1;
		es_program_move_finish(other, other->phase == ES_PROGRAM_FOLLOWING ? 0 : -ECONNRESET);
	}
	return 0;
}

/* Above every id of an earlier life, which cannot have made a million handovers a second. */
static void es_move_renumber(struct es_programs *p)
{
	__u64 least = es_number_ns() / 1000000000 << 20;

	if (p->count < least)
		p->count = least;
}

void es_program_move_begin(struct es_programs *p, struct es_program_move *m, const char *node, int fd,
			   uint8_t *bytes, size_t len)
{
	int rc = es_program_socket_init(&m->connection, fd, bytes, len);

	if (rc) {
		free(bytes);
		m->connection.bytes = NULL;
		m->connection.fd = fd;
	}
	if (!rc)
		rc = es_move_find(p, m, node);
	/* Its successor would have the same addresses while it is still there. */
	if (!rc && es_is_self(p, m) && m->connection.sends_tls)
		rc = -EOPNOTSUPP;
	if (!rc)
		rc = es_program_socket_look(&m->connection, p->params.datapath);
	if (!rc && (es_move_is_twin(p, m) || !es_move_is_provable(p, m)))
		rc = -EAGAIN;
	if (rc) {
		es_program_move_finish(m, rc);
		return;
	}
	es_move_renumber(p);
	m->id = ++p->count * ES_PROGRAM_MOVES_MAX + (__u64)(m - p->moves);
	m->interval_ns = RESEND_FIRST_NS;
	es_move_phase(p, m, ES_PROGRAM_ASKING);
	es_move_send(p, m, ES_HANDOVER_ASK, 0, 0);
}

/* --- the departure */

static void es_move_note(struct es_programs *p, const struct es_program_move *m)
{
	const struct es_connection_state *s = &m->connection.state;

	p->params.note(p->params.note_ctx, s->flow_hash, s->snd_una - (__u32)s->bytes_acked - 1,
		       s->rcv_nxt - (__u32)s->bytes_received, m->target);
}

static int es_move_depart(struct es_programs *p, struct es_program_move *m)
{
	int rc = es_program_socket_read(&m->connection, p->params.datapath);

	if (rc)
		return rc;
	if (es_is_self(p, m)) {
		/* The new socket has the same addresses: this one must be gone first. */
		es_move_note(p, m);
		rc = es_program_socket_vanish(&m->connection, p->params.datapath);
		if (rc)
			return rc;
	}
	es_move_phase(p, m, ES_PROGRAM_BUILDING);
	es_move_send_connection(p, m);
	return 0;
}

static void es_move_depart_or_stay(struct es_programs *p, struct es_program_move *m)
{
	int rc = es_move_depart(p, m);

	if (!rc)
		return;
	es_program_socket_thaw(&m->connection);
	es_program_move_finish(m, rc);
}

void es_program_moves_depart(struct es_programs *p)
{
	for (unsigned int i = 0; i < p->moves_end; i++) {
		struct es_program_move *m = &p->moves[i];
		int rc;

		if (m->phase != ES_PROGRAM_READY)
			continue;
		rc = es_program_socket_freeze(&m->connection);
		if (rc) {
			es_program_move_finish(m, rc);
			continue;
		}
		if (es_move_needs_grace(p, m))
			m->grace = es_grace_ask(&p->grace);
		if (es_is_self(p, m))
			es_move_phase(p, m, ES_PROGRAM_SETTLING);
		else
			es_move_depart_or_stay(p, m);
	}
}

/* --- answers */

/* The target has made no socket, and will make none. */
static void es_move_back(struct es_programs *p, struct es_program_move *m)
{
	if (es_is_self(p, m)) {
		es_move_reset(p, m);
		es_program_move_finish(m, -ECONNRESET);
		return;
	}
	es_program_socket_thaw(&m->connection);
	es_program_move_finish(m, m->error);
}

/* Our socket ends, and what came late follows. If it does not end now, it is tried again. */
static void es_move_end(struct es_programs *p, struct es_program_move *m)
{
	int rc;

	if (m->connection.is_gone || !es_grace_is_over(&p->grace, m->grace))
		return;
	rc = es_program_socket_late(&m->connection);
	es_program_socket_vanish(&m->connection, p->params.datapath);
	if (!rc && m->connection.is_gone && es_program_socket_missed(&m->connection))
		rc = -EBUSY;
	if (!rc)
		return;
	es_move_reset(p, m);
	es_program_move_finish(m, -ECONNRESET);
}

/* The target has as much as it can have until our socket is gone, or all. */
static int es_move_is_through(const struct es_program_move *m)
{
	return m->arrived >= es_program_socket_end(&m->connection);
}

static void es_move_go_on(struct es_programs *p, struct es_program_move *m)
{
	m->since_ns = p->now_ns;
	m->next_ns = p->now_ns + m->interval_ns;
	m->tries = 0;
	if (!es_move_is_through(m))
		es_move_send_rest(p, m);
	else if (m->connection.is_gone)
		es_program_move_finish(m, 0);
}

/* The target has the connection, and @rcv_nxt is what it expects next. */
static void es_move_here(struct es_programs *p, struct es_program_move *m, uint32_t rcv_nxt)
{
	/* The client goes on after our bytes, so the target may have more than we have sent. */
	size_t arrived = rcv_nxt - m->connection.first_seq;

	if (m->phase != ES_PROGRAM_FOLLOWING) {
		if (!es_is_self(p, m))
			es_move_note(p, m);
		es_move_phase(p, m, ES_PROGRAM_FOLLOWING);
		m->arrived = 0;
		m->next_ns = p->now_ns;
		es_move_end(p, m);
		if (m->phase == ES_PROGRAM_FREE)
			return;
	}
	if (arrived <= m->arrived && !es_move_is_through(m))
		return; /* deadlines() sends it again */
	m->arrived = arrived > m->arrived ? arrived : m->arrived;
	es_move_go_on(p, m);
}

static void es_move_end_again(struct es_programs *p, struct es_program_move *m)
{
	if (m->connection.is_gone)
		return;
	es_move_end(p, m);
	if (m->phase == ES_PROGRAM_FOLLOWING && m->connection.is_gone)
		es_move_go_on(p, m);
}

void es_program_moves_settled(struct es_programs *p)
{
	for (unsigned int i = 0; i < p->moves_end; i++) {
		struct es_program_move *m = &p->moves[i];

		if (m->phase == ES_PROGRAM_SETTLING && es_grace_is_over(&p->grace, m->grace))
			es_move_depart_or_stay(p, m);
		if (m->phase == ES_PROGRAM_FOLLOWING)
			es_move_end_again(p, m);
	}
}

/*
 * The target's socket has come and gone, perhaps before we could ask about it: the client has heard of both.
 * The server did not want the bytes that it has not taken.
 */
static void es_move_served(struct es_programs *p, struct es_program_move *m)
{
	if (m->phase != ES_PROGRAM_FOLLOWING)
		es_move_note(p, m);
	es_program_socket_vanish(&m->connection, p->params.datapath);
	es_program_move_finish(m, 0);
}

static void es_move_over(struct es_programs *p, struct es_program_move *m)
{
	if (m->phase == ES_PROGRAM_FOLLOWING) {
		es_move_served(p, m);
		return;
	}
	/* The target's kernel has swallowed it, or its socket has ended without a word, or the target is of a
	 * version that does not say SERVED: the client knows which. */
	if (p->now_ns - m->since_ns < OVER_LIMIT_NS && m->phase == ES_PROGRAM_BUILDING)
		return;
	es_move_note(p, m);
	es_program_socket_vanish(&m->connection, p->params.datapath);
	es_move_reset(p, m);
	es_program_move_finish(m, -ECONNRESET);
}

static void es_move_cancel(struct es_programs *p, struct es_program_move *m, int error)
{
	m->error = error;
	es_move_phase(p, m, ES_PROGRAM_CANCELLING);
	es_move_send(p, m, ES_HANDOVER_CANCEL, 0, 0);
}

/* How long it took tells how busy the target is. */
static void es_move_ready(struct es_programs *p, struct es_program_move *m)
{
	unsigned long long twice_ns = 2 * (p->now_ns - m->since_ns);

	if (twice_ns > m->interval_ns)
		m->interval_ns = twice_ns < RESEND_LAST_NS ? twice_ns : RESEND_LAST_NS;
	es_move_phase(p, m, ES_PROGRAM_READY);
}

static void es_move_answered(struct es_programs *p, struct es_program_move *m, const struct es_handover *h)
{
	switch (h->nack) {
	case ES_PROGRAM_ANSWER_READY:
		if (m->phase == ES_PROGRAM_ASKING)
			es_move_ready(p, m);
		/*
		 * If BUILDING, the message was lost, or came after the question: deadlines() sends both
		 * again.
		 */
		break;
	case ES_PROGRAM_ANSWER_HERE:
		if (m->phase >= ES_PROGRAM_BUILDING)
			es_move_here(p, m, es_ntohl(h->next_request_seq));
		break;
	case ES_PROGRAM_ANSWER_OVER:
		if (m->phase >= ES_PROGRAM_BUILDING)
			es_move_over(p, m);
		break;
	case ES_PROGRAM_ANSWER_SERVED:
		if (m->phase >= ES_PROGRAM_BUILDING)
			es_move_served(p, m);
		break;
	case ES_PROGRAM_ANSWER_CANCELLED:
		if (m->phase == ES_PROGRAM_CANCELLING)
			es_move_back(p, m);
		break;
	default:
		if (m->phase == ES_PROGRAM_ASKING)
			es_program_move_finish(m, -ECONNREFUSED);
		else if (m->phase == ES_PROGRAM_BUILDING)
			es_move_cancel(p, m, -ECONNREFUSED);
		break;
	}
}

/*
 * The target's kernel says that no datapath is there: certain before we gave it anything, a guess after that.
 */
static void es_moves_unreachable(struct es_programs *p, unsigned int node)
{
	for (unsigned int i = 0; i < p->moves_end; i++)
		if (p->moves[i].phase == ES_PROGRAM_ASKING && p->moves[i].target == node)
			es_program_move_finish(&p->moves[i], -EHOSTUNREACH);
}

void es_program_moves_messages(struct es_programs *p)
{
	struct es_sipkey keys[ES_KEYS_MAX];
	struct es_handover_back back;
	struct es_program_move *m;
	__u64 id;
	int len;

	for (unsigned int i = 0; i < p->keys.count; i++)
		keys[i] = p->keys.key[i].handover;
	for (unsigned int i = 0; i < 4 * ES_HANDOVER_BATCH; i++) {
		len = es_handover_receive(p->sender, keys, p->keys.count, &back);
		if (!len)
			break;
		if (len == -ECONNREFUSED)
			es_moves_unreachable(p, back.node);
		if (len < 0 || back.header.kind != ES_HANDOVER_ANSWER)
			continue;
		id = es_cpu_be64((__u64)back.header.program);
		m = &p->moves[id & (ES_PROGRAM_MOVES_MAX - 1)];
		if (m->phase > ES_PROGRAM_CONNECTED && m->id == id && m->target == back.header.source)
			es_move_answered(p, m, &back.header);
	}
}

void es_program_move_abandon(struct es_programs *p, struct es_program_move *m)
{
	if (m->phase == ES_PROGRAM_SETTLING)
		es_program_socket_thaw(&m->connection);
	if (m->phase < ES_PROGRAM_BUILDING) {
		es_program_move_finish(m, -EAGAIN);
		return;
	}
	es_program_socket_vanish(&m->connection, p->params.datapath);
	es_program_move_finish(m, -ETIMEDOUT);
}

/* --- silence */

static void es_move_silence(struct es_programs *p, struct es_program_move *m)
{
	unsigned long long waited_ns = p->now_ns - m->since_ns;

	switch (m->phase) {
	case ES_PROGRAM_CONNECTED:
		if (waited_ns > CONNECTED_LIMIT_NS)
			es_program_move_finish(m, -EINVAL);
		break;
	case ES_PROGRAM_ASKING:
		if (waited_ns > ASKING_LIMIT_NS)
			es_program_move_finish(m, -EHOSTUNREACH);
		else
			es_move_send(p, m, ES_HANDOVER_ASK, 0, 0);
		break;
	case ES_PROGRAM_BUILDING:
		if (waited_ns > BUILDING_LIMIT_NS)
			es_move_cancel(p, m, -EHOSTUNREACH);
		else
			es_move_send_connection(p, m);
		break;
	case ES_PROGRAM_CANCELLING:
		if (waited_ns <= CANCEL_LIMIT_NS) {
			es_move_send(p, m, ES_HANDOVER_CANCEL, 0, 0);
			break;
		}
		/* It may have the connection, and may serve it: one that hangs is better than one that is
		 * mixed. */
		es_move_note(p, m);
		es_program_socket_vanish(&m->connection, p->params.datapath);
		es_program_move_finish(m, -ETIMEDOUT);
		break;
	case ES_PROGRAM_FOLLOWING:
		if (waited_ns > FOLLOWING_LIMIT_NS) {
			es_program_socket_vanish(&m->connection, p->params.datapath);
			es_program_move_finish(m, -ETIMEDOUT);
		} else if (!es_move_is_through(m)) {
			es_move_send_rest(p, m);
		} else {
			es_move_end_again(p, m);
		}
		break;
	default:
		break;
	}
}

void es_program_moves_deadlines(struct es_programs *p)
{
	while (p->moves_end && p->moves[p->moves_end - 1].phase == ES_PROGRAM_FREE)
		p->moves_end--;
	for (unsigned int i = 0; i < p->moves_end; i++) {
		struct es_program_move *m = &p->moves[i];
		unsigned long long wait_ns = m->interval_ns << m->tries;

		if (m->phase == ES_PROGRAM_FREE || m->phase == ES_PROGRAM_READY || p->now_ns < m->next_ns)
			continue;
		if (wait_ns < RESEND_LAST_NS)
			m->tries++;
		m->next_ns = p->now_ns + wait_ns;
		es_move_silence(p, m);
	}
}
