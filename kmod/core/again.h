/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_AGAIN_H
#define ES_CORE_AGAIN_H

/*
 * The marks of packets that come in again: from one run of a program, or of a hook, to the next. Nothing from
 * the wire has a mark that early, and the stack does not see these.
 */
#define ES_AGAIN_MASK	    0xffffff00U
#define ES_AGAIN	    0x45464900U
#define ES_FIN_MARK	    (ES_AGAIN | 'N') /* its socket was just made from it, and now comes its FIN */
#define ES_OPENED_MAKE_MARK (ES_AGAIN | 'M') /* it was in an envelope: a socket is to be made from it */
#define ES_OPENED_FOLLOW_MARK                                                                                \
	(ES_AGAIN | 'F') /* a later segment of a first request, whose socket may just be made */
#define ES_OPENED_DELIVER_MARK (ES_AGAIN | 'D') /* its socket was there */
#define ES_ASKED_MARK	       (ES_AGAIN | 'A') /* asks about a program's connection */

#endif
