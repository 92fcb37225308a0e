/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DATAGRAM_H
#define ES_DATAGRAM_H

/*
 * Kinds of datagram that nodes' daemons send each other, to the handover port, from where the datapath lets
 * them pass: each begins with ES_LOADS_MAGIC (kmod/core/handover.h), and its version says which of these it
 * is. A daemon ignores a kind that it does not know. So a new kind gets a new number, and none is used a
 * second time.
 */
enum es_datagram {
	ES_DATAGRAM_LOADS = 1,	/* struct es_loads_message (peers/exchange.h), as those with a payload */
	ES_DATAGRAM_POISON = 2, /* struct es_poison_message (inspect/poison.h) */
	ES_DATAGRAM_LOADS_ANSWER = 3, /* its payload: a node */
	ES_DATAGRAM_HOMES = 4,	      /* its payload: struct es_home_wire */
	ES_DATAGRAM_SNAPSHOT = 5,     /* struct es_snapshot_message (peers/snapshots.h) */
	ES_DATAGRAM_ROLLOUT = 6,      /* struct es_rollout_datagram (rollout/message.h) */
	ES_DATAGRAM_IDLE = 7,	      /* its payload: struct es_idle_wire */
	ES_DATAGRAM_EVIDENCE = 8,     /* its payload: struct es_evidence_wire */
	ES_DATAGRAM_TAKES = 9,	      /* its payload: struct es_takes_wire */
	ES_DATAGRAM_RATES = 12,	      /* struct es_rates_message (peers/rate_words.h) */
	ES_DATAGRAM_GRANTS = 13,      /* its payload: struct es_grant_wire (peers/exchange.h) */
	ES_DATAGRAM_KEPT = 14,	      /* struct es_kept_message (peers/kept_words.h) */
	ES_DATAGRAM_DOWNLOAD = 15,    /* struct es_download_message (peers/download_words.h) */
};

/* Bytes of the longest. */
#define ES_DATAGRAM_MAX 1536

#endif
