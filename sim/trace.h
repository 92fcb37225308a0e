/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SIM_TRACE_H
#define ES_SIM_TRACE_H

/*
 * Reading recorded traffic: access logs in common or combined log format and their kin, and the WorldCup98
 * logs of the Internet Traffic Archive in their binary format. A line that cannot be used is counted by
 * reason and left out; what is neither of the two is refused by its name.
 */
#include "inspector/policy/name.h"
#include "sim/workload.h"

enum es_trace_format { ES_TRACE_AUTO, ES_TRACE_LOG, ES_TRACE_WC98, ES_TRACE_FORMAT_COUNT };

/* Why a line or record was left out. Those from ES_SKIP_METHOD on were understood, and are not replayed. */
enum es_trace_skip {
	ES_TRACE_USED,
	ES_SKIP_EMPTY,
	ES_SKIP_HOLE,
	ES_SKIP_TOO_LONG,
	ES_SKIP_NO_CLIENT,
	ES_SKIP_NO_TIME,
	ES_SKIP_NO_REQUEST,
	ES_SKIP_BAD_REQUEST,
	ES_SKIP_BAD_STATUS,
	ES_SKIP_BAD_SIZE,
	ES_SKIP_BAD_CODE,
	ES_SKIP_CUT_OFF,
	ES_SKIP_METHOD,
	ES_SKIP_STATUS,
	ES_TRACE_SKIP_COUNT,
};

/* es_trace_skip_text() - for people; es_trace_skip_name() - for JSON */
const char *es_trace_skip_text(enum es_trace_skip skip);
const char *es_trace_skip_name(enum es_trace_skip skip);

#define ES_TRACE_LINE_MAX    65536
#define ES_TRACE_SIZE_MAX    (1LL << 36) /* 64 GiB; a larger response is a mistake of whoever wrote the log */
#define ES_WC98_RECORD_BYTES 20

/**
 * struct es_trace_record - one request
 * @client: a hash of who asked; @time_s: since 1970
 * @uri: in the line, or in the caller's buffer; without scheme and host
 * @host: the site, in the line; NULL if the log does not say it
 * @has_size: the log says how large the response was
 */
struct es_trace_record {
	__u64 client;
	__s64 time_s;
	const char *uri;
	size_t uri_len;
	const char *host;
	size_t host_len;
	__u64 size;
	int has_size;
	int is_get;
	int status;
	int is_dynamic;
};

/* es_trace_log_line() - one line without its end; sets *@ret_record if it returns ES_TRACE_USED */
enum es_trace_skip es_trace_log_line(const char *line, size_t len, struct es_trace_record *ret_record);

/* es_trace_wc98_record() - ES_WC98_RECORD_BYTES bytes; the URI is made in @uri_buffer, 16 bytes */
enum es_trace_skip es_trace_wc98_record(const __u8 *bytes, char *uri_buffer,
					struct es_trace_record *ret_record);

/* struct es_trace_request - one that will be replayed */
struct es_trace_request {
	__u32 file;
	__u32 client;
	__s64 time_s;
};

/* struct es_trace_map - numbers for 64-bit keys that are not 0, in the order in which they were first seen */
struct es_trace_map {
	__u64 *key;
	__u32 *number;
	size_t room;
	__u32 count;
};

/* struct es_trace_foreign - something that is not read: what it is, the command that makes it readable (the
 * file's name is put behind it; may be NULL), and what else to do (may be NULL) */
struct es_trace_foreign {
	const char *what;
	const char *command;
	const char *cure;
};

/* How a file's size is known. */
enum es_trace_sized { ES_SIZE_UNKNOWN, ES_SIZE_OF_PIECES, ES_SIZE_WHOLE };

/* struct es_trace_bad - the first line that could not be used; @line counts from 1, 0: there is none. @text
 * is printable. */
struct es_trace_bad {
	__u64 line;
	enum es_trace_skip skip;
	char text[100];
};

/**
 * struct es_trace - what was read
 * @skipped: lines by what became of them; @line_count: all of them
 * @file, @size: as in struct es_workload; @sized: enum es_trace_sized, by file
 * @limit: requests at most
 * @kept: the beginning of a line or record whose rest has not come yet
 * @is_in_hole: the last byte was one of a hole's zeros
 * @foreign: set if es_trace_feed(), es_trace_finish() or es_trace_read() returned -ENOTSUP
 */
struct es_trace {
	enum es_trace_format format;
	__u64 skipped[ES_TRACE_SKIP_COUNT];
	__u64 line_count;
	struct es_trace_bad bad;
	struct es_trace_request *request;
	size_t request_count;
	size_t request_room;
	size_t limit;
	struct es_sim_file *file;
	__u64 *size;
	__u8 *sized;
	size_t file_room;
	struct es_trace_map files;
	struct es_trace_map clients;
	char *kept;
	size_t kept_len;
	int is_too_long;
	int is_in_hole;
	struct es_name name; /* of the record that is added */
	int is_truncated;
	const struct es_trace_foreign *foreign;
};

/* es_trace_init() - @limit: requests, 0 for all. Returns 0 or -ENOMEM. */
int es_trace_init(struct es_trace *trace, enum es_trace_format format, size_t limit);
void es_trace_fini(struct es_trace *trace);

/* es_trace_feed() - the next bytes, in pieces of any size; returns 0, -ENOMEM, or -ENOTSUP if the format was
 * to be found out and is foreign */
int es_trace_feed(struct es_trace *trace, const void *data, size_t len);

/* es_trace_finish() - there is no more; returns as es_trace_feed() does */
int es_trace_finish(struct es_trace *trace);

/* es_trace_is_full() - the limit is reached, nothing more will be taken */
int es_trace_is_full(const struct es_trace *trace);

/* es_trace_unusable() - how many lines or records could not be understood; empty ones are no loss */
__u64 es_trace_unusable(const __u64 *skipped);

/**
 * struct es_trace_loss - how much of a trace is not in the results, and why
 * @skipped, @line_count, @bad, @is_truncated: as in struct es_trace
 * @unsized_files, @unsized_requests: as in struct es_trace_stat
 */
struct es_trace_loss {
	__u64 skipped[ES_TRACE_SKIP_COUNT];
	__u64 line_count;
	struct es_trace_bad bad;
	__u64 files, unsized_files;
	__u64 unsized_requests;
	int is_truncated;
};

/* es_trace_loss() - of all that was read */
void es_trace_loss(const struct es_trace *trace, struct es_trace_loss *ret_loss);

/* --- trace_detect.c */

#define ES_DETECT_BYTES 512

/* es_trace_detect() - the format of what begins with @data: ES_DETECT_BYTES, or less if that is all. Returns
 * ES_TRACE_AUTO and sets *@ret_foreign if it is none that can be read. */
enum es_trace_format es_trace_detect(const char *data, size_t len,
				     const struct es_trace_foreign **ret_foreign);

/* es_trace_foreign() - what begins with the signature of an archive or a compressed file other than gzip's;
 * NULL if it does not */
const struct es_trace_foreign *es_trace_foreign(const char *data, size_t len);

/* --- trace_file.c */

/**
 * es_trace_read() - a file; "-" for standard input
 * Members that gzip made and plain text may follow each other in any order. Lines before damaged data are
 * there. Returns 0 or -errno; -EIO if the compressed data are damaged, -ENOTSUP if it is something foreign.
 */
int es_trace_read(struct es_trace *trace, const char *path);

/* --- connections, trace_connect.c */

/**
 * es_trace_workload() - the requests in connections: those of one client, in order, up to @per_connection on
 * one, and a new one after @keepalive_s of silence. Connections are in the order of their first requests.
 * Takes the files out of @trace. Returns 0, -ENOMEM, or -ENODATA if there are no requests.
 */
int es_trace_workload(struct es_trace *trace, __u32 per_connection, double keepalive_s,
		      struct es_workload *ret_workload);

/* --- trace_stat.c */

#define ES_TRACE_CURVE_MAX 16

/**
 * struct es_trace_stat - what is in a trace
 * @files_sized: whose size a 200 or a 206 tells; @files_of_pieces: of these, the ones that only 206s tell, so
 * that they have so many bytes or more; @unsized_requests: for the other files, which count as empty
 * @curve: what one cache of that size would hit, all requests seen once before (so without the first look at
 * each file) and with them
 */
struct es_trace_stat {
	__u64 requests;
	__u64 clients;
	__u64 files;
	__u64 files_sized;
	__u64 files_of_pieces;
	__u64 unsized_requests;
	__u64 dynamic_requests;
	__u64 bytes;
	__u64 working_set_bytes;
	__u64 largest_bytes;
	__s64 first_s, last_s;
	double zipf_exponent;
	double zipf_r2;
	double top_tenth_share;
	struct {
		__u64 cache_bytes;
		double hit_rate;
	} curve[ES_TRACE_CURVE_MAX];
	unsigned int curve_count;
};

/* es_trace_measure() - returns 0 or -ENOMEM */
int es_trace_measure(const struct es_trace *trace, struct es_trace_stat *ret_stat);

#endif
