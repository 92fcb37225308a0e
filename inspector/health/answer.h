/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_HEALTH_ANSWER_H
#define ES_HEALTH_ANSWER_H

/*
 * A server's answer to a check by HTTP: its status, and whether its body has a text. Without such a text to
 * look for, the status is all that is read.
 */
#include "inspector/config/config.h"
#include "inspector/http/chunked.h"

enum es_answer_result {
	ES_ANSWER_MORE,
	ES_ANSWER_RIGHT,
	ES_ANSWER_WRONG,
};

#define ES_ANSWER_INTERIM_BYTES 16384 /* of answers 1xx, so much is passed over */
#define ES_ANSWER_HEAD_BYTES	16384
#define ES_ANSWER_BODY_BYTES	65536 /* in which the text must be */

/**
 * struct es_answer - how far it is read
 * @status: 0: not there yet; @start, @started: its first bytes, up to the status
 * @passed: bytes of answers 1xx, then of the head, that were passed over; @is_interim: in one of the former;
 * @is_line: and in one of its lines
 * @line, @line_len: of the head, the line so far, as much of it as counts; @is_chunked: as it says
 * @is_body: the head is over; @body_bytes: that were looked at; @window: the last ones of them, @window_len
 */
struct es_answer {
	unsigned int status;
	unsigned int started;
	unsigned int passed;
	unsigned int line_len;
	unsigned int body_bytes;
	unsigned int window_len;
	int is_interim;
	int is_line;
	int is_chunked;
	int is_body;
	struct es_http_chunked chunked;
	char start[16];
	char line[64];
	char window[2 * ES_CONF_PATH_SIZE];
};

#define ES_ANSWER_WHY_SIZE 160

/**
 * es_answer_read() - the next @len bytes of it
 * @answer: all zeros before the first; @why: of ES_ANSWER_WHY_SIZE bytes, says what is wrong with
 * ES_ANSWER_WRONG
 */
enum es_answer_result es_answer_read(struct es_answer *answer, const struct es_conf_check *conf,
				     const char *bytes, size_t len, char *why);

/*
 * es_answer_ended() - says why it is wrong when no more of it comes, or not in time (@within_ms; 0: its
 * connection has ended)
 */
void es_answer_ended(const struct es_answer *answer, const struct es_conf_check *conf, unsigned int within_ms,
		     char *why);

#endif
