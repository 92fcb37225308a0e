/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_RESPONSE_H
#define ES_CORE_RESPONSE_H

/*
 * Where a response ends (RFC 9112 section 6.3), read from its bytes on the way out: the head, then a counted,
 * chunked or unbounded body. A state machine over single bytes with a constant state, so that it does not
 * matter how the stream is cut into packets; the bytes of a body are skipped, not read.
 *
 * It judges our own server, not an attacker: what it does not understand makes the connection stay where it
 * is (ES_RESPONSE_UNCLEAR), never move too early.
 */
#include "types.h"

enum es_response_phase {
	ES_RESPONSE_STATUS = 0, /* in the status line: also before the first byte */
	ES_RESPONSE_LINE,	/* at the start of a header line */
	ES_RESPONSE_NAME,	/* in a name that may be one of the two that matter */
	ES_RESPONSE_SKIP,	/* in the rest of a line that does not matter */
	ES_RESPONSE_LENGTH,	/* in the value of Content-Length */
	ES_RESPONSE_CODING,	/* in the value of Transfer-Encoding */
	ES_RESPONSE_CHUNK_SIZE,
	ES_RESPONSE_CHUNK_EXT,
	ES_RESPONSE_CHUNK_END,	  /* at the line end behind a chunk's data */
	ES_RESPONSE_TRAILER_LINE, /* at the start of a trailer line */
	ES_RESPONSE_TRAILER,
	/* From here on no byte is read. */
	ES_RESPONSE_BODY,	 /* @left bytes of a counted body are to come */
	ES_RESPONSE_CHUNK,	 /* @left bytes of a chunk are to come */
	ES_RESPONSE_DONE,	 /* complete: a further byte is none of this response */
	ES_RESPONSE_UNTIL_CLOSE, /* it ends when the server closes */
	ES_RESPONSE_UPGRADED,	 /* 101: what follows is not HTTP/1 */
	ES_RESPONSE_UNCLEAR,
};

#define ES_RESPONSE_F_HEAD	0x01 /* it answers a HEAD request: no body, whatever the head says */
#define ES_RESPONSE_F_LENGTH	0x02 /* Content-Length seen */
#define ES_RESPONSE_F_CHUNKED	0x04
#define ES_RESPONSE_F_VALUE	0x08 /* the value has begun */
#define ES_RESPONSE_F_VALUE_END 0x10 /* white space behind the value */

#define ES_RESPONSE_HEAD_MAX	 65536 /* bytes of head; what is longer is unclear */
#define ES_RESPONSE_LENGTH_MAX	 (1ULL << 60)
#define ES_RESPONSE_CHUNK_DIGITS 15

/**
 * struct es_response - how far a response has been read; zero it (but @flags) before the first byte
 * @left: bytes of body or chunk still to come, or the number being read
 * @head: bytes of head seen; @at: position in the current word or number
 * @began: the caller's, which keeps it with what it tells about: when the request came
 * @name: which names the current line's name may still be (1: Content-Length, 2: Transfer-Encoding)
 */
struct es_response {
	__u64 left;
	__u32 head;
	__u16 status;
	__u16 at;
	__u8 phase;
	__u8 flags;
	__u8 name;
	__u8 pad;
	__u32 began;
};

/* Begin the next response to the same request. */
static __always_inline void es_response_next(struct es_response *r, int is_head)
{
	r->left = 0;
	r->head = 0;
	r->status = 0;
	r->at = 0;
	r->phase = ES_RESPONSE_STATUS;
	r->flags = is_head ? ES_RESPONSE_F_HEAD : 0;
	r->name = 0;
	r->pad = 0;
}

/* Begin a response; @is_head: to a HEAD request. */
static __always_inline void es_response_init(struct es_response *r, int is_head)
{
	es_response_next(r, is_head);
	r->began = 0;
}

static __always_inline __u8 es_response_lower(__u8 c)
{
	return c >= 'A' && c <= 'Z' ? (__u8)(c | 0x20) : c;
}

/* The head's empty line has been read. */
static __always_inline void es_response_head_end(struct es_response *r)
{
	r->at = 0;
	if (r->status == 101) {
		r->phase = ES_RESPONSE_UPGRADED;
	} else if (r->status < 200) {
		es_response_next(r, r->flags & ES_RESPONSE_F_HEAD);
	} else if ((r->flags & ES_RESPONSE_F_LENGTH) && (r->flags & ES_RESPONSE_F_CHUNKED)) {
		r->phase = ES_RESPONSE_UNCLEAR;
	} else if ((r->flags & ES_RESPONSE_F_HEAD) || r->status == 204 || r->status == 304) {
		r->phase = ES_RESPONSE_DONE;
	} else if (r->flags & ES_RESPONSE_F_CHUNKED) {
		r->phase = ES_RESPONSE_CHUNK_SIZE;
		r->left = 0;
	} else if (!(r->flags & ES_RESPONSE_F_LENGTH)) {
		r->phase = ES_RESPONSE_UNTIL_CLOSE;
	} else {
		r->phase = r->left ? ES_RESPONSE_BODY : ES_RESPONSE_DONE;
	}
}

/*
 * Character @at of a word that is given as three little-endian numbers: BPF would keep a string in a map, and
 * look it up there.
 */
static __always_inline __u8 es_response_char(__u16 at, __u64 first, __u64 second, __u64 third)
{
	__u64 word = at < 8 ? first : at < 16 ? second : third;

	return (__u8)(word >> (at % 8 * 8));
}

#define ES_CHAR_STATUS(at) es_response_char(at, 0x2e312f50545448ULL, 0, 0) /* HTTP/1. */
#define ES_CHAR_LENGTH(at)                                                                                   \
	es_response_char(at, 0x2d746e65746e6f63ULL, 0x6874676e656cULL, 0) /* content-length */
#define ES_CHAR_CODING(at)                                                                                   \
	es_response_char(at, 0x726566736e617274ULL, 0x6e69646f636e652dULL, 0x67) /* transfer-encoding */
#define ES_CHAR_CHUNKED(at) es_response_char(at, 0x64656b6e756863ULL, 0, 0)	 /* chunked */

/* "HTTP/1.x nnn": what stands between and behind does not matter. */
static __always_inline void es_response_status_byte(struct es_response *r, __u8 c)
{
	__u16 at = r->at;

	if (c == '\n') {
		r->phase = at < 12 ? ES_RESPONSE_UNCLEAR : ES_RESPONSE_LINE;
		return;
	}
	if (at < 7) {
		if (c != ES_CHAR_STATUS(at))
			r->phase = ES_RESPONSE_UNCLEAR;
	} else if (at == 8) {
		if (c != ' ')
			r->phase = ES_RESPONSE_UNCLEAR;
	} else if (at >= 9 && at < 12) {
		if (c < '0' || c > '9')
			r->phase = ES_RESPONSE_UNCLEAR;
		r->status = (__u16)(r->status * 10 + (c & 15));
	}
	if (at < 12)
		r->at = at + 1;
	if (at == 11 && r->status < 100)
		r->phase = ES_RESPONSE_UNCLEAR;
}

static __always_inline void es_response_name_byte(struct es_response *r, __u8 c)
{
	__u16 at = r->at;

	if (c == '\n') {
		r->phase = ES_RESPONSE_LINE;
		return;
	}
	if (c == ':') {
		r->phase = ES_RESPONSE_SKIP;
		if ((r->name & 1) && at == 14)
			r->phase = ES_RESPONSE_LENGTH;
		if ((r->name & 2) && at == 17)
			r->phase = ES_RESPONSE_CODING;
		/* Twice is one too many, even with the same value. */
		if ((r->phase == ES_RESPONSE_LENGTH && (r->flags & ES_RESPONSE_F_LENGTH)) ||
		    (r->phase == ES_RESPONSE_CODING && (r->flags & ES_RESPONSE_F_CHUNKED)))
			r->phase = ES_RESPONSE_UNCLEAR;
		if (r->phase == ES_RESPONSE_LENGTH)
			r->left = 0;
		r->flags &= (__u8) ~(ES_RESPONSE_F_VALUE | ES_RESPONSE_F_VALUE_END);
		r->at = 0;
		return;
	}
	c = es_response_lower(c);
	if (at >= 14 || c != ES_CHAR_LENGTH(at))
		r->name &= 2;
	if (at >= 17 || c != ES_CHAR_CODING(at))
		r->name &= 1;
	/* White space before the colon is a name too, to some. */
	if (!r->name)
		r->phase = c == ' ' || c == '\t' ? ES_RESPONSE_UNCLEAR : ES_RESPONSE_SKIP;
	r->at = at + 1;
}

/* A byte of the value of Content-Length or Transfer-Encoding. */
static __always_inline void es_response_value_byte(struct es_response *r, __u8 c)
{
	int is_length = r->phase == ES_RESPONSE_LENGTH;

	if (c == '\r')
		return;
	if (c == '\n') {
		if (!(r->flags & ES_RESPONSE_F_VALUE) || (!is_length && r->at != 7)) {
			r->phase = ES_RESPONSE_UNCLEAR;
			return;
		}
		r->flags |= is_length ? ES_RESPONSE_F_LENGTH : ES_RESPONSE_F_CHUNKED;
		r->phase = ES_RESPONSE_LINE;
		return;
	}
	if (c == ' ' || c == '\t') {
		if (r->flags & ES_RESPONSE_F_VALUE)
			r->flags |= ES_RESPONSE_F_VALUE_END;
		return;
	}
	if (r->flags & ES_RESPONSE_F_VALUE_END) {
		r->phase = ES_RESPONSE_UNCLEAR;
		return;
	}
	r->flags |= ES_RESPONSE_F_VALUE;
	if (is_length) {
		if (c < '0' || c > '9' || r->left >= ES_RESPONSE_LENGTH_MAX / 16)
			r->phase = ES_RESPONSE_UNCLEAR;
		else
			r->left = r->left * 10 + (c & 15);
		return;
	}
	if (r->at >= 7 || es_response_lower(c) != ES_CHAR_CHUNKED(r->at))
		r->phase = ES_RESPONSE_UNCLEAR;
	r->at++;
}

static __always_inline void es_response_chunk_size_end(struct es_response *r)
{
	if (!r->at)
		r->phase = ES_RESPONSE_UNCLEAR;
	else
		r->phase = r->left ? ES_RESPONSE_CHUNK : ES_RESPONSE_TRAILER_LINE;
	r->at = 0;
}

static __always_inline void es_response_chunk_size_byte(struct es_response *r, __u8 c)
{
	__u8 digit;

	if (c >= '0' && c <= '9')
		digit = c & 15;
	else if (es_response_lower(c) >= 'a' && es_response_lower(c) <= 'f')
		digit = (__u8)((c & 15) + 9);
	else if (c == '\n') {
		es_response_chunk_size_end(r);
		return;
	} else if (r->at && (c == '\r' || c == ';' || c == ' ' || c == '\t')) {
		r->phase = ES_RESPONSE_CHUNK_EXT;
		return;
	} else {
		r->phase = ES_RESPONSE_UNCLEAR;
		return;
	}
	if (r->at >= ES_RESPONSE_CHUNK_DIGITS)
		r->phase = ES_RESPONSE_UNCLEAR;
	r->left = r->left << 4 | digit;
	r->at++;
}

/* es_response_reads() - does the next byte matter? Otherwise es_response_skip() */
static __always_inline int es_response_reads(const struct es_response *r)
{
	return r->phase < ES_RESPONSE_BODY;
}

/* es_response_byte() - read one byte; only while es_response_reads() */
static __always_inline void es_response_byte(struct es_response *r, __u8 c)
{
	if (r->phase <= ES_RESPONSE_CODING && ++r->head > ES_RESPONSE_HEAD_MAX) {
		r->phase = ES_RESPONSE_UNCLEAR;
		return;
	}
	switch (r->phase) {
	case ES_RESPONSE_SKIP:
		if (c == '\n')
			r->phase = ES_RESPONSE_LINE;
		break;
	case ES_RESPONSE_STATUS:
		es_response_status_byte(r, c);
		break;
	case ES_RESPONSE_LINE:
		if (c == '\n') {
			es_response_head_end(r);
			break;
		}
		if (c == '\r')
			break;
		if (c == ' ' || c == '\t') { /* a folded line: it may belong to a value that matters */
			r->phase = ES_RESPONSE_UNCLEAR;
			break;
		}
		r->name = 3;
		r->at = 0;
		r->phase = ES_RESPONSE_NAME;
		es_response_name_byte(r, c);
		break;
	case ES_RESPONSE_NAME:
		es_response_name_byte(r, c);
		break;
	case ES_RESPONSE_LENGTH:
	case ES_RESPONSE_CODING:
		es_response_value_byte(r, c);
		break;
	case ES_RESPONSE_CHUNK_SIZE:
		es_response_chunk_size_byte(r, c);
		break;
	case ES_RESPONSE_CHUNK_EXT:
		if (c == '\n')
			es_response_chunk_size_end(r);
		break;
	case ES_RESPONSE_CHUNK_END:
		if (c == '\n') {
			r->phase = ES_RESPONSE_CHUNK_SIZE;
			r->left = 0;
			r->at = 0;
		} else if (c != '\r') {
			r->phase = ES_RESPONSE_UNCLEAR;
		}
		break;
	case ES_RESPONSE_TRAILER_LINE:
		if (c == '\n')
			r->phase = ES_RESPONSE_DONE;
		else if (c != '\r')
			r->phase = ES_RESPONSE_TRAILER;
		break;
	case ES_RESPONSE_TRAILER:
		if (c == '\n')
			r->phase = ES_RESPONSE_TRAILER_LINE;
		break;
	default:
		break;
	}
}

/**
 * es_response_word() - read eight bytes at once, if none of them matters; only while es_response_reads()
 * @word: the bytes, as they lie in memory
 * Returns 0 if they must be read one by one. Most of a head is in lines that do not matter.
 */
static __always_inline int es_response_word(struct es_response *r, __u64 word)
{
	__u64 x = word ^ 0x0a0a0a0a0a0a0a0aULL; /* a zero byte where a line ends */

	if (r->phase != ES_RESPONSE_SKIP || ((x - 0x0101010101010101ULL) & ~x & 0x8080808080808080ULL) ||
	    r->head + 8 > ES_RESPONSE_HEAD_MAX)
		return 0;
	r->head += 8;
	return 1;
}

/**
 * es_response_skip() - pass over up to @len bytes of body; only while not es_response_reads()
 * Returns how many; what is left is to be read. Bytes behind the end make the response unclear.
 */
static __always_inline __u32 es_response_skip(struct es_response *r, __u32 len)
{
	if (r->phase == ES_RESPONSE_DONE && len)
		r->phase = ES_RESPONSE_UNCLEAR;
	if (r->phase != ES_RESPONSE_BODY && r->phase != ES_RESPONSE_CHUNK)
		return len;
	if (len < r->left) {
		r->left -= len;
		return len;
	}
	len = (__u32)r->left;
	r->left = 0;
	r->phase = r->phase == ES_RESPONSE_BODY ? ES_RESPONSE_DONE : ES_RESPONSE_CHUNK_END;
	return len;
}

#endif
