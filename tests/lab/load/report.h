/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_LOAD_REPORT_H
#define ES_LOAD_REPORT_H

/*
 * The results of the connections.
 */
#include <stdint.h>
#include <stdio.h>

enum es_load_result {
	ES_LOAD_OK,
	ES_LOAD_RESETS,	  /* RST, also in answer to the SYN */
	ES_LOAD_TIMEOUTS, /* not over in its time, or in that of the run */
	ES_LOAD_BAD,	/* wrong bytes, status or headers, bytes behind the response, moved within a series */
	ES_LOAD_SHORT,	/* the server closed before the response was complete */
	ES_LOAD_ERRORS, /* anything else that a system call reports */
	ES_LOAD_RESULTS,
};

#define ES_LOAD_NODES	 100
#define ES_LOAD_MESSAGES 10

struct es_load_report {
	unsigned int results[ES_LOAD_RESULTS];
	unsigned int connections; /* begun; of those that were not ok too */
	unsigned int room;
	uint32_t *connect_us; /* of every connection that came so far */
	unsigned int connected;
	uint32_t *total_us;			       /* of every connection that was ok */
	uint64_t syn_retransmissions, retransmissions; /* the client's */
	uint64_t bytes, requests;
	unsigned int ports_skipped; /* of --local-ports: still in use at the client */
	unsigned int moved;	    /* requests for an object that another node had served before */
	unsigned int node_changes;  /* from one request of a connection to the next */
	struct {
		char name[16];
		unsigned int connections;
	} nodes[ES_LOAD_NODES];
	unsigned int node_count;
	char messages[ES_LOAD_MESSAGES][256];
	unsigned int message_count;
	double seconds;
};

/* Returns 0 or -ENOMEM. */
int es_load_report_init(struct es_load_report *report, unsigned int connections);
void es_load_report_fini(struct es_load_report *report);

void es_load_report_node(struct es_load_report *report, const char *node);
void es_load_report_connected(struct es_load_report *report, uint64_t us);
/* @message may be NULL; @us counts only for ES_LOAD_OK. */
void es_load_report_result(struct es_load_report *report, enum es_load_result result, uint64_t us,
			   const char *message);

/* Sorts the times. */
void es_load_report_print(struct es_load_report *report, int json, FILE *stream);

#endif
