/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_PROGRAM_H
#define ES_CORE_PROGRAM_H

/*
 * Connections that programs hand over (docs/programs.md), at the target. Other than a client's request, which
 * the client repeats, the bytes of such a connection are acknowledged: what is lost is lost for good. So the
 * sender keeps its own socket, silent, until this node says that it has one; and this node remembers of each
 * handover (its @id) whether it has made the socket, or has promised not to.
 */
#include "abi.h"
#include "decide.h"

/**
 * es_program_server_of() - where the server listens that gets a service's connections from programs
 * Each family has its own, since a kernel makes no connection of IPv6 for a listener of IPv4. Returns NULL if
 * nobody gets those of that family. The port is the service's server_port.
 */
static __always_inline const struct es_addr *es_program_server_of(const struct es_service_entry *service,
								  int is_v6)
{
	const struct es_addr *server = is_v6 ? &service->server6 : &service->server;

	return service->server_port && (server->w[0] | server->w[1] | server->w[2] | server->w[3])
		       ? server
		       : (const struct es_addr *)0;
}

/**
 * struct es_program_view - what the target knows about a message of kind CONNECTION, ASK or CANCEL
 * @id: names the handover; grows from one of a source to its next
 * @noted_id, @noted_source, @noted_cancelled: what is remembered of this connection; id 0: nothing
 * @socket: an enum es_socket; @listening, @accept_full: the server's listening socket
 * @served: a socket was made of the noted handover, beyond doubt: it has spoken, or was seen
 * @is_self: the source is this node, so the socket that ASK finds is the one that is to be handed over
 * @stale: another version of the ring is in force here; @silent: this node takes no new connection
 */
struct es_program_view {
	__u64 id;
	__u64 noted_id;
	__u8 noted_source;
	__u8 noted_cancelled;
	__u8 noted_pending;
	__u8 source;
	__u8 kind;
	__u8 socket;
	__u8 listening;
	__u8 accept_full;
	__u8 served;
	__u8 is_self;
	__u8 stale;
	__u8 silent;
};

#define ES_PROGRAM_VERDICT(a, c, n)                                                                          \
	do {                                                                                                 \
		ret->action = (a);                                                                           \
		ret->counter = ES_COUNT_##c;                                                                 \
		return (n);                                                                                  \
	} while (0)

/**
 * es_decide_program() - what to do with it
 * @ret: action ES_REBUILD; ES_NACK, send the answer that is returned; ES_DROP; or, with ES_NACK and
 * CANCELLED, first note that. One socket is made from one handover, however often its messages come; none
 * after CANCELLED.
 */
static __always_inline __u8 es_decide_program(const struct es_program_view *v, struct es_verdict *ret)
{
	if (v->noted_id == v->id) {
		if (v->noted_cancelled)
			ES_PROGRAM_VERDICT(ES_NACK, connection_cancelled, ES_PROGRAM_ANSWER_CANCELLED);
		if (v->noted_pending) /* its sender asks again */
			ES_PROGRAM_VERDICT(ES_DROP, connection_asked, 0);
		if (v->socket == ES_SOCKET_ESTABLISHED)
			ES_PROGRAM_VERDICT(ES_NACK, connection_asked, ES_PROGRAM_ANSWER_HERE);
		ES_PROGRAM_VERDICT(ES_NACK, connection_asked,
				   v->served ? ES_PROGRAM_ANSWER_SERVED : ES_PROGRAM_ANSWER_OVER);
	}
	/*
	 * It is about a handover before the one that is noted: it came late, and its sender has settled it.
	 */
	if (v->noted_id && v->noted_source == v->source && v->id < v->noted_id)
		ES_PROGRAM_VERDICT(ES_DROP, connection_old, 0);
	if (v->kind == ES_HANDOVER_CANCEL)
		ES_PROGRAM_VERDICT(ES_NACK, connection_cancelled, ES_PROGRAM_ANSWER_CANCELLED);
	if (v->silent || v->stale)
		ES_PROGRAM_VERDICT(ES_NACK, connection_refused, ES_PROGRAM_ANSWER_SILENT);
	if (v->socket != ES_SOCKET_NONE && !(v->is_self && v->kind == ES_HANDOVER_ASK))
		ES_PROGRAM_VERDICT(ES_NACK, connection_refused, ES_PROGRAM_ANSWER_OCCUPIED);
	if (!v->listening)
		ES_PROGRAM_VERDICT(ES_NACK, connection_refused, ES_PROGRAM_ANSWER_NO_LISTENER);
	if (v->accept_full)
		ES_PROGRAM_VERDICT(ES_NACK, connection_refused, ES_PROGRAM_ANSWER_FULL);
	if (v->kind == ES_HANDOVER_ASK)
		ES_PROGRAM_VERDICT(ES_NACK, connection_asked, ES_PROGRAM_ANSWER_READY);
	ES_PROGRAM_VERDICT(ES_REBUILD, connection_rebuilt, 0);
}

/* Is CANCELLED, said of this handover, a promise that is not noted yet? One of the handover before is
 * another. */
static __always_inline int es_program_is_new_promise(const struct es_program_view *v, __u8 answer)
{
	return answer == ES_PROGRAM_ANSWER_CANCELLED && !(v->noted_cancelled && v->noted_id == v->id);
}

#endif
