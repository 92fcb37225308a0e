/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_PLAN_H
#define ES_CORE_PLAN_H

/*
 * The steps that follow a verdict, their order, and what becomes of them if one fails. As in decide.h,
 * nothing here calls a kernel. A datapath has a function for each step of a list, and expands the list where
 * it carries a verdict out: so the order is written once, here, for all of them. Such a function returns 0;
 * or anything else if its step has failed, and then no later one is taken.
 */
#include "again.h"
#include "target.h"
#include "view.h"

/* How a datapath makes sockets, ends them, and gives them packets: all that the order depends on. */
enum es_plan_way {
	ES_WAY_PACKET, /* by the packet itself, which goes up the stack from there: the module */
	ES_WAY_AGAIN,  /* the same, but one from an envelope comes in again for that (again.h): BPF */
	ES_WAY_HANDS,  /* by system calls, while the packet waits: netfilter */
};

/* A list of steps says which ways have each: HANDS alone, PACKET (both that go by it), or ALL. */
#define ES_WAY_IS_OF_ALL(way)	 1
#define ES_WAY_IS_OF_HANDS(way)	 ((way) == ES_WAY_HANDS)
#define ES_WAY_IS_OF_PACKET(way) ((way) != ES_WAY_HANDS)

/*
 * es_plan_undo() - how the note that a socket is to be made (ES_SETTLED_MAKE) is taken back when there is
 * none
 * Hands may have made one, whatever they say, once they have begun: that is noted before (ES_SETTLED_SEEN),
 * so that only the one who knows that nothing came of it takes it back.
 */
static __always_inline enum es_settled_step es_plan_undo(enum es_plan_way way)
{
	return way == ES_WAY_HANDS ? ES_SETTLED_FORGET : ES_SETTLED_UNDO;
}

/*
 * The steps that follow the verdict about a handover message:
 *
 * settle - note what is about to become of the request; that fails if another CPU was first
 *          (es_handover_is_settled())
 * forget - conntrack's entry of the flow is that of a connection which is gone
 * adopt - note a socket that the kernel made after it was given up
 * stay - the request stays on its connection, whose socket may be leaving: then that fails
 * clear - end the old socket, before its client's new request can come for it
 * retry - send the message back as a packet of its own, with ES_NACK_RETRY; the packet in it is still needed
 * sweep - end what an old connection has left
 * first - note the request among those that were heard (firsts.h). It may have come here before its first
 *         packet on the public network; and its sender may give it to another node, so it was somebody's,
 *         whatever becomes of it here
 * open - take the envelope off
 * probe - make of the packet a question to the client (es_answer_next())
 * ask - note that it is asked, before it is
 * note - note what is to be known of the socket that is to be made
 * tell - tell the inspector, with the packet
 * leave - the connection was ES_TRACK_LEAVING while the inspector was told; now it is ES_TRACK_ENDING
 * make - make the socket; they count, and take the notes back, when it is known what came of that
 * deliver - give the packet to the stack
 * end - end the old socket. The packet itself becomes its RST, so that is the last use of it
 * answer - the message itself goes back, with the plan's reason
 */
#define ES_HANDOVER_STEPS(X)                                                                                 \
	X(settle, ALL)                                                                                       \
	X(forget, HANDS)                                                                                     \
	X(adopt, HANDS)                                                                                      \
	X(stay, ALL)                                                                                         \
	X(clear, HANDS)                                                                                      \
	X(retry, ALL)                                                                                        \
	X(sweep, HANDS)                                                                                      \
	X(first, ALL)                                                                                        \
	X(open, PACKET)                                                                                      \
	X(probe, PACKET)                                                                                     \
	X(ask, ALL)                                                                                          \
	X(note, ALL)                                                                                         \
	X(tell, ALL)                                                                                         \
	X(leave, ALL)                                                                                        \
	X(make, HANDS)                                                                                       \
	X(deliver, ALL)                                                                                      \
	X(end, ALL)                                                                                          \
	X(answer, ALL)

#define ES_HANDOVER_STEP_AT(name, ways) ES_HANDOVER_AT_##name,
enum es_handover_step_at { ES_HANDOVER_STEPS(ES_HANDOVER_STEP_AT) ES_HANDOVER_STEPS_COUNT };
#undef ES_HANDOVER_STEP_AT

#define ES_HANDOVER_STEP(name) (1u << ES_HANDOVER_AT_##name)

/* The effects of a plan that a datapath takes back when a step has failed, see es_handover_failed(). */
enum es_handover_undo {
	ES_HANDOVER_UNDO_MADE =
		1, /* the note of a socket (@undo), and those of the steps first and note that matter */
	ES_HANDOVER_UNDO_ASKED = 2, /* the note of the step ask */
	ES_HANDOVER_UNDO_LEFT = 4,  /* ES_TRACK_LEAVING: the track is ES_TRACK_QUEUED again */
};

/**
 * struct es_handover_plan
 * @steps: of ES_HANDOVER_STEP(), to be taken in the order of the list
 * @counter: counts the message when all steps are taken; ES_COUNTER_COUNT if it is counted elsewhere
 * @failed: counts the message if a step fails, unless es_handover_failed() knows a better counter
 * @settle: for the step settle: an enum es_settled_step; @undo: another one, by which that note is taken back
 * @reason: for the step answer: an enum es_nack_reason; @record: for the step tell: an enum es_record_kind
 * @mark: for the step deliver, with ES_WAY_AGAIN: the mark with which the packet comes in again
 */
struct es_handover_plan {
	__u32 steps;
	__u32 counter;
	__u32 failed;
	__u32 mark;
	__u8 settle;
	__u8 undo;
	__u8 reason;
	__u8 record;
};

/* es_handover_steps_of() - the steps that a datapath of this way has */
static __always_inline __u32 es_handover_steps_of(enum es_plan_way way)
{
#define ES_HANDOVER_STEP_OF(name, ways) | (ES_WAY_IS_OF_##ways(way) ? ES_HANDOVER_STEP(name) : 0)
	return 0 ES_HANDOVER_STEPS(ES_HANDOVER_STEP_OF);
#undef ES_HANDOVER_STEP_OF
}

static __always_inline void es_handover_plan_deliver(const struct es_handover_view *v, enum es_plan_way way,
						     struct es_handover_plan *ret)
{
	if (v->kind == ES_HANDOVER_STAY)
		ret->steps |= ES_HANDOVER_STEP(stay);
	if (v->kind == ES_HANDOVER_REQUEST)
		ret->steps |= ES_HANDOVER_STEP(adopt);
	ret->steps |= ES_HANDOVER_STEP(open) | ES_HANDOVER_STEP(deliver);
	ret->failed = ES_COUNT_answer_failed;
	if (way != ES_WAY_AGAIN)
		return;
	ret->mark = ES_OPENED_DELIVER_MARK;
	if (v->kind == ES_HANDOVER_FOLLOW) {
		ret->mark = ES_OPENED_FOLLOW_MARK;
		ret->counter = ES_COUNTER_COUNT; /* where it has come in again */
	}
}

static __always_inline void es_handover_plan_rebuild(enum es_plan_way way, struct es_handover_plan *ret)
{
	ret->steps |= ES_HANDOVER_STEP(sweep) | ES_HANDOVER_STEP(first) | ES_HANDOVER_STEP(open) |
		      ES_HANDOVER_STEP(note) | ES_HANDOVER_STEP(make);
	if (way != ES_WAY_HANDS)
		ret->steps |= ES_HANDOVER_STEP(deliver);
	ret->failed = ES_COUNT_rebuild_refused;
	if (way == ES_WAY_AGAIN)
		ret->mark = ES_OPENED_MAKE_MARK;
	if (way != ES_WAY_PACKET)
		ret->counter = ES_COUNTER_COUNT; /* where the socket is made */
}

/* ES_DROP. A later segment may come in again behind the packet that makes its socket. */
static __always_inline void es_handover_plan_drop(enum es_plan_way way, struct es_handover_plan *ret)
{
	if (way != ES_WAY_AGAIN || ret->counter != ES_COUNT_handover_follow_lost)
		return;
	ret->steps |= ES_HANDOVER_STEP(open) | ES_HANDOVER_STEP(deliver);
	ret->mark = ES_OPENED_FOLLOW_MARK;
	ret->counter = ES_COUNTER_COUNT;
}

/* es_plan_handover() - of es_decide_handover()'s verdict about @v */
static __always_inline void es_plan_handover(const struct es_handover_view *v,
					     const struct es_verdict *verdict, enum es_plan_way way,
					     struct es_handover_plan *ret)
{
	ret->settle = (__u8)es_handover_step(v->kind, verdict->action);
	ret->undo = (__u8)es_plan_undo(way);
	ret->counter = verdict->counter;
	ret->failed = ES_COUNT_answer_failed;
	ret->reason = (__u8)es_handover_nack_reason(v);
	ret->record = (__u8)es_leave_record(verdict->action);
	ret->mark = 0;
	ret->steps = ret->settle == ES_SETTLED_LOOK ? 0 : ES_HANDOVER_STEP(settle);
	switch (verdict->action) {
	case ES_DROP:
		es_handover_plan_drop(way, ret);
		break;
	case ES_DELIVER:
		es_handover_plan_deliver(v, way, ret);
		break;
	case ES_REBUILD:
		es_handover_plan_rebuild(way, ret);
		break;
	case ES_NACK:
	case ES_DOUBT:
		ret->steps |= ES_HANDOVER_STEP(answer);
		break;
	case ES_MADE:
		if (v->socket == ES_SOCKET_ESTABLISHED)
			ret->steps |= ES_HANDOVER_STEP(adopt);
		ret->steps |= ES_HANDOVER_STEP(answer);
		ret->reason = ES_NACK_MADE;
		break;
	case ES_END_OLD:
		ret->steps |= ES_HANDOVER_STEP(clear) | ES_HANDOVER_STEP(retry);
		if (way != ES_WAY_HANDS)
			ret->steps |= ES_HANDOVER_STEP(open) | ES_HANDOVER_STEP(end);
		break;
	case ES_LEAVE_AGAIN:
		ret->steps |= ES_HANDOVER_STEP(open) | ES_HANDOVER_STEP(end);
		break;
	case ES_LEAVE:
		ret->steps |= ES_HANDOVER_STEP(open) | ES_HANDOVER_STEP(tell) | ES_HANDOVER_STEP(leave) |
			      ES_HANDOVER_STEP(end);
		ret->failed = ES_COUNT_drop_queue_full;
		break;
	case ES_GONE:
		ret->steps |= ES_HANDOVER_STEP(forget) | ES_HANDOVER_STEP(open) | ES_HANDOVER_STEP(tell);
		ret->failed = ES_COUNT_drop_queue_full;
		break;
	case ES_KEEP:
		ret->steps |= ES_HANDOVER_STEP(open) | ES_HANDOVER_STEP(tell);
		ret->failed = ES_COUNT_drop_queue_full;
		break;
	case ES_ASK:
		ret->steps |= ES_HANDOVER_STEP(open) | ES_HANDOVER_STEP(probe) | ES_HANDOVER_STEP(ask) |
			      ES_HANDOVER_STEP(tell);
		ret->record = ES_RECORD_OPEN;
		ret->failed = ES_COUNT_drop_queue_full;
		break;
	default:
		break;
	}
	ret->steps &= es_handover_steps_of(way);
}

/**
 * es_handover_failed() - the step @step of the plan has failed: its @counter is that of the failure
 * @step: an ES_HANDOVER_STEP(). Returns what is to be taken back, of enum es_handover_undo.
 */
static __always_inline __u32 es_handover_failed(struct es_handover_plan *plan, __u32 step)
{
	__u32 done = plan->steps & (step - 1), undo = 0;

	if (step == ES_HANDOVER_STEP(settle))
		plan->counter = ES_COUNT_handover_old; /* its copy, if it is one, comes again */
	else if (step == ES_HANDOVER_STEP(adopt))
		plan->counter = ES_COUNT_rebuild_refused;
	else if (step == ES_HANDOVER_STEP(stay))
		plan->counter = ES_COUNT_stay_lost;
	else if (step == ES_HANDOVER_STEP(retry))
		plan->counter = ES_COUNTER_COUNT; /* an answer that fails is counted where it is made */
	else if (step == ES_HANDOVER_STEP(deliver) && plan->mark)
		plan->counter = ES_COUNT_opened_lost;
	else
		plan->counter = plan->failed;
	if ((done & ES_HANDOVER_STEP(settle)) && plan->settle == ES_SETTLED_MAKE)
		undo |= ES_HANDOVER_UNDO_MADE;
	if (done & ES_HANDOVER_STEP(ask))
		undo |= ES_HANDOVER_UNDO_ASKED;
	if (plan->steps & ES_HANDOVER_STEP(leave))
		undo |= ES_HANDOVER_UNDO_LEFT;
	return undo;
}

/*
 * The steps that follow the verdict about a packet of the public interface:
 *
 * making - note that a socket is to be made, and look for its server: es_plan_making() says what follows.
 *          Nothing does of a damaged packet, from which no socket must come: the stack drops and counts it
 * undo - take that note back, before anybody hears of it
 * promise - note that nothing is made here, before another node can be given the connection; that fails if it
 *           was made here, or has gone elsewhere (es_view_may_be_given())
 * asked - all nodes are asked about the segment now (strays.h)
 * queue - give the packet to the inspector
 * clear - end the old socket, before the answer, after which its client's request can come at once, and
 *         before a new socket is made
 * answer - send the client the verdict's answer
 * end - end the old socket. The packet itself becomes its RST, so that is the last use of it
 * make - make the socket, or note what is to be known of it; hands count, and take the note back, when it is
 *        known what came of that
 * first - note the request among those that were heard (firsts.h). This node, too, may be lost, and be asked
 *         again when its sockets are gone. A request whose socket could not be made was not executed, so it
 *         is not noted; with hands, that is known later
 * pass - the packet goes up the stack, where its socket is made
 * deliver - give it to the very socket that was found
 */
#define ES_PUBLIC_STEPS(X)                                                                                   \
	X(making, ALL)                                                                                       \
	X(undo, ALL)                                                                                         \
	X(promise, ALL)                                                                                      \
	X(asked, ALL)                                                                                        \
	X(queue, ALL)                                                                                        \
	X(clear, HANDS)                                                                                      \
	X(answer, ALL)                                                                                       \
	X(end, PACKET)                                                                                       \
	X(make, ALL)                                                                                         \
	X(first, PACKET)                                                                                     \
	X(pass, PACKET)                                                                                      \
	X(deliver, ALL)

#define ES_PUBLIC_STEP_AT(name, ways) ES_PUBLIC_AT_##name,
enum es_public_step_at { ES_PUBLIC_STEPS(ES_PUBLIC_STEP_AT) ES_PUBLIC_STEPS_COUNT };
#undef ES_PUBLIC_STEP_AT

#define ES_PUBLIC_STEP(name) (1u << ES_PUBLIC_AT_##name)

/* struct es_public_plan - @steps, of ES_PUBLIC_STEP(), and @counter: as struct es_handover_plan has them */
struct es_public_plan {
	__u32 steps;
	__u32 counter;
};

/* es_public_steps_of() - the steps that a datapath of this way has */
static __always_inline __u32 es_public_steps_of(enum es_plan_way way)
{
#define ES_PUBLIC_STEP_OF(name, ways) | (ES_WAY_IS_OF_##ways(way) ? ES_PUBLIC_STEP(name) : 0)
	return 0 ES_PUBLIC_STEPS(ES_PUBLIC_STEP_OF);
#undef ES_PUBLIC_STEP_OF
}

/* es_plan_public() - of es_decide()'s verdict about @v */
static __always_inline void es_plan_public(const struct es_view *v, const struct es_verdict *verdict,
					   enum es_plan_way way, struct es_public_plan *ret)
{
	__u32 steps = 0;

	ret->counter = verdict->counter;
	switch (verdict->action) {
	case ES_DROP:
		if (es_view_tells(v)) {
			steps = ES_PUBLIC_STEP(queue);
			ret->counter = ES_COUNT_kept_queued;
		}
		break;
	case ES_DELIVER:
		steps = ES_PUBLIC_STEP(deliver);
		break;
	case ES_QUEUE_FIRST:
		steps = ES_PUBLIC_STEP(queue);
		if (es_verdict_gives(v, verdict)) {
			steps |= ES_PUBLIC_STEP(promise);
			ret->counter = ES_COUNT_layer4_queued;
		}
		break;
	case ES_QUEUE_LATER:
		steps = ES_PUBLIC_STEP(queue);
		break;
	case ES_QUEUE_STRAY:
		steps = ES_PUBLIC_STEP(asked) | ES_PUBLIC_STEP(queue);
		break;
	case ES_SYNACK:
	case ES_ANSWER_ACK:
	case ES_ANSWER_RST:
		steps = ES_PUBLIC_STEP(answer);
		break;
	case ES_END_OLD:
		steps = ES_PUBLIC_STEP(clear) | ES_PUBLIC_STEP(end);
		break;
	case ES_END_OLD_AND_SYNACK:
		steps = ES_PUBLIC_STEP(clear) | ES_PUBLIC_STEP(answer) | ES_PUBLIC_STEP(end);
		break;
	case ES_REBUILD:
		steps = ES_PUBLIC_STEP(making);
		break;
	default:
		break;
	}
	ret->steps = steps & es_public_steps_of(way);
}

/*
 * es_plan_makes() - may a socket be made, now that ES_SETTLED_MAKE has said @s?
 * With the module, a socket that was to be made may be tried again: a firewall may have dropped its packet,
 * and the stack makes no second one. With hands, the process may have stood still in the middle, and go on
 * with making it.
 */
static __always_inline int es_plan_makes(enum es_plan_way way, const struct es_settled_answer *s)
{
	if (way == ES_WAY_PACKET)
		return s->as == ES_SETTLED_NOT || s->as == ES_SETTLED_MADE;
	return s->as == ES_SETTLED_NOT && !(way == ES_WAY_HANDS && s->has_vanished);
}

/**
 * struct es_plan_server - what is known of the server for which a socket is to be made
 * @settled: what ES_SETTLED_MAKE has said; the rest is needed where es_plan_makes()
 * @listening: it is there; @is_full: its accept queue is; @is_unknown: nobody could tell
 */
struct es_plan_server {
	struct es_settled_answer settled;
	__u8 listening;
	__u8 is_full;
	__u8 is_unknown;
};

/* es_plan_making() - what follows the step making; @leased: struct es_config's */
static __always_inline void es_plan_making(const struct es_view *v, const struct es_plan_server *server,
					   enum es_plan_way way, int leased, struct es_public_plan *ret)
{
	const __u32 give = ES_PUBLIC_STEP(promise) | ES_PUBLIC_STEP(queue);
	const int may_give = v->may_give && v->inspector_alive;
	const __u8 as = server->settled.as;

	/* The inspector may know which node has the connection. */
	if (as == ES_SETTLED_REFUSED && may_give) {
		ret->steps = give;
		ret->counter = ES_COUNT_layer4_queued;
		return;
	}
	/*
	 * The request was rebuilt before; or it was refused while there was an inspector, and another node
	 * may have it.
	 */
	if (!es_plan_makes(way, &server->settled)) {
		ret->steps = 0;
		ret->counter = ES_COUNT_handover_old;
		return;
	}
	ret->steps = ES_PUBLIC_STEP(undo);
	if (!server->listening && may_give && !server->is_unknown && as == ES_SETTLED_NOT) {
		ret->steps |= give;
		ret->counter = ES_COUNT_layer4_queued;
		return;
	}
	/* The client is told at once, as a stack without that port would. */
	if (!server->listening) {
		ret->steps |= ES_PUBLIC_STEP(answer);
		ret->counter = ES_COUNT_rebuild_no_listener;
		return;
	}
	/* Otherwise the kernel drops the packet, and our note of it the client's retransmissions. */
	if (server->is_full) {
		ret->counter = ES_COUNT_handover_accept_full;
		return;
	}
	ret->steps = ES_PUBLIC_STEP(clear) | ES_PUBLIC_STEP(make) | ES_PUBLIC_STEP(pass);
	if (leased)
		ret->steps |= ES_PUBLIC_STEP(first);
	ret->steps &= es_public_steps_of(way);
	if (way == ES_WAY_HANDS)
		ret->counter = ES_COUNTER_COUNT; /* when it is known what came of it */
}

/* es_public_failed() - the step @step of the plan has failed: the plan is what follows from that now */
static __always_inline void es_public_failed(const struct es_view *v, __u32 step, struct es_public_plan *plan)
{
	plan->steps = 0;
	switch (step) {
	case ES_PUBLIC_STEP(promise):
		plan->counter = es_view_kept(v);
		break;
	case ES_PUBLIC_STEP(queue):
		plan->counter = ES_COUNT_drop_queue_full;
		break;
	case ES_PUBLIC_STEP(make):
		plan->steps = ES_PUBLIC_STEP(undo);
		plan->counter = ES_COUNT_rebuild_refused;
		break;
	default:
		plan->counter = ES_COUNT_answer_failed;
		break;
	}
}

#endif
