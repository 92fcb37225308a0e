/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_RESUME_HEADS_H
#define ES_RESUME_HEADS_H

/*
 * What requests and responses say about going on with a response elsewhere: may it be, what is this node's
 * server asked, and is its answer the rest of the very same content? A pure part, on bytes of servers and
 * clients.
 */
#include <stddef.h>
#include <stdint.h>
#include "inspector/cluster/downloads.h"

/* Why a response is not gone on with; each is counted. */
#define ES_RESUME_WHYS(X)                                                                                    \
	X(none, "it is")                                                                                     \
	X(request, "its client has sent something more, or has closed its side")                             \
	X(content, "no other server can be asked for the rest")                                              \
	X(head, "the client has not got its whole head")                                                     \
	X(limit, "too many are gone on with already")                                                        \
	X(server, "the server here does not answer in time")                                                 \
	X(unreadable, "its answer cannot be read")                                                           \
	X(status, "it answers with another status than 206")                                                 \
	X(validator, "it has other content")                                                                 \
	X(range, "it sends another part")                                                                    \
	X(system, "this node lacks something: memory, a socket")

#define ES_RESUME_WHY(name, text) ES_RESUME_WHY_##name,
enum es_resume_why { ES_RESUME_WHYS(ES_RESUME_WHY) ES_RESUME_WHY_COUNT };
#undef ES_RESUME_WHY

/* A response that is longer could not be told from a shorter one by sequence numbers. */
#define ES_RESUME_LENGTH_MAX 0x7fffffffULL

/* The head of the server's answer may be so long. */
#define ES_RESUME_ANSWER_MAX 8192

#define ES_RESUME_REQUEST_MAX (ES_DOWNLOAD_HEAD_MAX + 256)

/**
 * es_resume_describe() - make a record of what the datapath has seen
 * With ES_DOWNLOAD_F_RESUMES if another node's server can be asked for the rest: a GET without credentials,
 * answered with 200 or 206, a length and a strong validator, and by nothing that says that the answer is for
 * this client alone (RFC 9110, 12.5.5, RFC 9111, 5.2.2).
 */
void es_resume_describe(const struct es_download_entry *entry, unsigned int self, struct es_download *ret);

/**
 * es_resume_request() - ask for the body from its byte @from on
 * With If-Range (RFC 9110, 13.1.5), so that other content is not sent at all. Lines of the client's that are
 * about its own connection or its cache are left out. @text: room for ES_RESUME_REQUEST_MAX bytes. Returns
 * how many.
 */
size_t es_resume_request(const struct es_download *download, uint64_t from, char *text);

/**
 * es_resume_judge() - is this answer the rest of the response, from byte @from on?
 * @text, @len: its head, with the empty line. Returns ES_RESUME_WHY_none if so.
 */
enum es_resume_why es_resume_judge(const struct es_download *download, uint64_t from, const char *text,
				   size_t len);

/* es_resume_head_len() - bytes of the head in @text, its empty line included; 0: it is not whole */
size_t es_resume_head_len(const char *text, size_t len);

#endif
