// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From bytes to requests, and from requests to connections. Replayed is what a server reads a file for: GET
 * with 200, 206 or 304. The replay's clients have no caches of their own, so a 304 is asked for in full, as
 * httperf does it; a file's size is the largest that a 200 had.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include "sim/trace.h"

#define ES_DETECT_BYTES ES_WC98_RECORD_BYTES

static const struct {
	const char *name;
	const char *text;
} es_skips[ES_TRACE_SKIP_COUNT] = {
	[ES_TRACE_USED] = {"used", "replayed"},
	[ES_SKIP_EMPTY] = {"empty", "an empty line"},
	[ES_SKIP_TOO_LONG] = {"too_long", "a line of more than 64 KiB"},
	[ES_SKIP_NO_CLIENT] = {"no_client", "no client at the line's start"},
	[ES_SKIP_NO_TIME] = {"no_time", "no [day/month/year:hour:minute:second zone]"},
	[ES_SKIP_NO_REQUEST] = {"no_request", "no request in quotes"},
	[ES_SKIP_BAD_REQUEST] = {"bad_request", "the request is no METHOD /path"},
	[ES_SKIP_BAD_STATUS] = {"bad_status", "no status of three digits"},
	[ES_SKIP_BAD_SIZE] = {"bad_size", "the size is neither a number nor -"},
	[ES_SKIP_BAD_CODE] = {"bad_code", "no WorldCup98 record: method, status or type out of range"},
	[ES_SKIP_CUT_OFF] = {"cut_off", "a record of less than 20 bytes at the end"},
	[ES_SKIP_METHOD] = {"method", "not replayed: not GET"},
	[ES_SKIP_STATUS] = {"status", "not replayed: status not 200, 206 or 304"},
};

const char *es_trace_skip_text(enum es_trace_skip skip)
{
	return es_skips[skip].text;
}

const char *es_trace_skip_name(enum es_trace_skip skip)
{
	return es_skips[skip].name;
}

/* --- numbers for keys */

static void es_map_fini(struct es_trace_map *map)
{
	free(map->key);
	free(map->number);
}

static size_t es_map_slot(const struct es_trace_map *map, __u64 key)
{
	size_t at = (size_t)(key * 0x9e3779b97f4a7c15ULL >> 20) & (map->room - 1);

	while (map->key[at] && map->key[at] != key)
		at = (at + 1) & (map->room - 1);
	return at;
}

static int es_map_grow(struct es_trace_map *map)
{
	struct es_trace_map next = {.room = map->room ? map->room * 2 : 1024, .count = map->count};

	next.key = calloc(next.room, sizeof(*next.key));
	next.number = calloc(next.room, sizeof(*next.number));
	if (!next.key || !next.number) {
		es_map_fini(&next);
		return -ENOMEM;
	}
	for (size_t i = 0; i < map->room; i++) {
		size_t at;

		if (!map->key[i])
			continue;
		at = es_map_slot(&next, map->key[i]);
		next.key[at] = map->key[i];
		next.number[at] = map->number[i];
	}
	es_map_fini(map);
	*map = next;
	return 0;
}

/* Returns 1 if the key is new, 0 if not, or -ENOMEM. */
static int es_map_get(struct es_trace_map *map, __u64 key, __u32 *ret_number)
{
	size_t at;

	if ((size_t)map->count * 2 >= map->room && es_map_grow(map))
		return -ENOMEM;
	at = es_map_slot(map, key);
	if (map->key[at]) {
		*ret_number = map->number[at];
		return 0;
	}
	map->key[at] = key;
	*ret_number = map->number[at] = map->count++;
	return 1;
}

/* --- records */

int es_trace_init(struct es_trace *trace, enum es_trace_format format, size_t limit)
{
	*trace = (struct es_trace){.format = format, .limit = limit};
	trace->kept = malloc(ES_TRACE_LINE_MAX);
	return trace->kept ? 0 : -ENOMEM;
}

void es_trace_fini(struct es_trace *trace)
{
	for (__u32 i = 0; trace->file && i < trace->files.count; i++)
		free(trace->file[i].uri);
	free(trace->file);
	free(trace->size);
	free(trace->has_size);
	free(trace->request);
	free(trace->kept);
	es_map_fini(&trace->files);
	es_map_fini(&trace->clients);
	*trace = (struct es_trace){};
}

int es_trace_is_full(const struct es_trace *trace)
{
	return trace->limit && trace->request_count >= trace->limit;
}

static int es_trace_room(struct es_trace *trace)
{
	if (trace->request_count == trace->request_room) {
		size_t room = trace->request_room ? trace->request_room * 2 : 4096;
		struct es_trace_request *request = reallocarray(trace->request, room, sizeof(*request));

		if (!request)
			return -ENOMEM;
		trace->request = request;
		trace->request_room = room;
	}
	if (trace->files.count == trace->file_room) {
		size_t room = trace->file_room ? trace->file_room * 2 : 1024;
		struct es_sim_file *file = reallocarray(trace->file, room, sizeof(*file));
		__u64 *size;
		__u8 *has_size;

		if (!file)
			return -ENOMEM;
		trace->file = file;
		size = reallocarray(trace->size, room, sizeof(*size));
		if (!size)
			return -ENOMEM;
		trace->size = size;
		has_size = reallocarray(trace->has_size, room, sizeof(*has_size));
		if (!has_size)
			return -ENOMEM;
		trace->has_size = has_size;
		trace->file_room = room;
	}
	return 0;
}

static int es_trace_file(struct es_trace *trace, const struct es_trace_record *record, __u32 *ret_file)
{
	int rc = es_map_get(&trace->files, es_target_hash(record->uri, record->uri_len), ret_file);

	if (rc <= 0)
		return rc;
	trace->file[*ret_file] = (struct es_sim_file){
		.uri = strndup(record->uri, record->uri_len),
		.is_dynamic = (__u8)record->is_dynamic,
	};
	trace->size[*ret_file] = 0;
	trace->has_size[*ret_file] = 0;
	return trace->file[*ret_file].uri ? 0 : -ENOMEM;
}

static int es_trace_add(struct es_trace *trace, const struct es_trace_record *record)
{
	struct es_trace_request request = {.time_s = record->time_s};
	int rc;

	if (!record->is_get) {
		trace->skipped[ES_SKIP_METHOD]++;
		return 0;
	}
	if (record->status != 200 && record->status != 206 && record->status != 304) {
		trace->skipped[ES_SKIP_STATUS]++;
		return 0;
	}
	rc = es_trace_room(trace);
	if (!rc)
		rc = es_trace_file(trace, record, &request.file);
	if (!rc && es_map_get(&trace->clients, record->client, &request.client) < 0)
		rc = -ENOMEM;
	if (rc)
		return rc;
	if (record->status == 200 && record->has_size) {
		trace->has_size[request.file] = 1;
		if (record->size > trace->size[request.file])
			trace->size[request.file] = record->size;
	}
	trace->request[trace->request_count++] = request;
	trace->skipped[ES_TRACE_USED]++;
	return 0;
}

/* --- pieces */

static int es_trace_one(struct es_trace *trace, const char *data, size_t len)
{
	struct es_trace_record record;
	enum es_trace_skip skip;
	char uri[16];

	if (es_trace_is_full(trace))
		return 0;
	if (trace->format == ES_TRACE_WC98)
		skip = es_trace_wc98_record((const __u8 *)data, uri, &record);
	else
		skip = es_trace_log_line(data, len, &record);
	if (skip == ES_TRACE_USED)
		return es_trace_add(trace, &record);
	trace->skipped[skip]++;
	return 0;
}

/* A log has no bytes of value 0; a WorldCup98 record has one at least,
 * as numbers of clients end before 2^24. */
static void es_trace_detect(struct es_trace *trace, const char *data, size_t len)
{
	trace->format =
		memchr(data, 0, len < ES_DETECT_BYTES ? len : ES_DETECT_BYTES) ? ES_TRACE_WC98 : ES_TRACE_LOG;
}

/* Keeps what has no end yet; of a line that is too long only that it is. */
static void es_trace_keep(struct es_trace *trace, const char *data, size_t len)
{
	if (trace->kept_len + len > ES_TRACE_LINE_MAX) {
		trace->is_too_long = 1;
		trace->kept_len = 0;
	} else if (!trace->is_too_long && len) {
		memcpy(trace->kept + trace->kept_len, data, len);
		trace->kept_len += len;
	}
}

static int es_trace_line_end(struct es_trace *trace)
{
	size_t len = trace->kept_len;
	int is_too_long = trace->is_too_long;

	trace->kept_len = 0;
	trace->is_too_long = 0;
	if (is_too_long && !es_trace_is_full(trace))
		trace->skipped[ES_SKIP_TOO_LONG]++;
	return is_too_long ? 0 : es_trace_one(trace, trace->kept, len);
}

static int es_trace_feed_log(struct es_trace *trace, const char *data, size_t len)
{
	int rc = 0;

	while (!rc && len) {
		const char *end = memchr(data, '\n', len);
		size_t part = end ? (size_t)(end - data) : len;

		if (!end || trace->kept_len || trace->is_too_long || part > ES_TRACE_LINE_MAX) {
			es_trace_keep(trace, data, part);
			if (end)
				rc = es_trace_line_end(trace);
		} else {
			rc = es_trace_one(trace, data, part);
		}
		part += end != NULL;
		data += part;
		len -= part;
	}
	return rc;
}

static int es_trace_feed_wc98(struct es_trace *trace, const char *data, size_t len)
{
	int rc = 0;

	while (!rc && len) {
		size_t missing = ES_WC98_RECORD_BYTES - trace->kept_len;
		size_t part = len < missing ? len : missing;

		if (part == ES_WC98_RECORD_BYTES) {
			rc = es_trace_one(trace, data, part);
		} else {
			es_trace_keep(trace, data, part);
			if (trace->kept_len == ES_WC98_RECORD_BYTES) {
				trace->kept_len = 0;
				rc = es_trace_one(trace, trace->kept, ES_WC98_RECORD_BYTES);
			}
		}
		data += part;
		len -= part;
	}
	return rc;
}

/* Knows the format. */
static int es_trace_feed_known(struct es_trace *trace, const char *data, size_t len)
{
	return trace->format == ES_TRACE_WC98 ? es_trace_feed_wc98(trace, data, len)
					      : es_trace_feed_log(trace, data, len);
}

/* The format is known now: what was kept to find it out comes first. */
static int es_trace_feed_kept(struct es_trace *trace)
{
	char kept[ES_DETECT_BYTES];
	size_t len = trace->kept_len;

	memcpy(kept, trace->kept, len);
	trace->kept_len = 0;
	return es_trace_feed_known(trace, kept, len);
}

int es_trace_feed(struct es_trace *trace, const void *data, size_t len)
{
	const char *at = data;
	int rc = 0;

	if (trace->format == ES_TRACE_AUTO) {
		size_t part = ES_DETECT_BYTES - trace->kept_len;

		if (part > len)
			part = len;
		es_trace_keep(trace, at, part);
		at += part;
		len -= part;
		if (trace->kept_len < ES_DETECT_BYTES)
			return 0;
		es_trace_detect(trace, trace->kept, trace->kept_len);
		rc = es_trace_feed_kept(trace);
	}
	return rc ? rc : es_trace_feed_known(trace, at, len);
}

int es_trace_finish(struct es_trace *trace)
{
	int rc = 0;

	if (trace->format == ES_TRACE_AUTO) {
		es_trace_detect(trace, trace->kept, trace->kept_len);
		rc = es_trace_feed_kept(trace);
	}
	if (rc || (!trace->kept_len && !trace->is_too_long))
		return rc;
	if (trace->format == ES_TRACE_LOG)
		return es_trace_line_end(trace);
	if (!es_trace_is_full(trace))
		trace->skipped[ES_SKIP_CUT_OFF]++;
	trace->kept_len = 0;
	return 0;
}

int es_trace_read(struct es_trace *trace, const char *path)
{
	static char buffer[1 << 16];
	int is_stdin = !strcmp(path, "-");
	int copy = is_stdin ? dup(STDIN_FILENO) : -1;
	gzFile file;
	int rc = 0, len = 0, error = 0;

	errno = 0;
	file = is_stdin ? gzdopen(copy, "rb") : gzopen(path, "rbe");
	if (!file)
		return errno ? -errno : -ENOMEM;
	while (!rc && !es_trace_is_full(trace)) {
		errno = 0;
		len = gzread(file, buffer, sizeof(buffer));
		if (len <= 0)
			break;
		rc = es_trace_feed(trace, buffer, (size_t)len);
	}
	if (!rc)
		rc = es_trace_finish(trace);
	if (!rc && !es_trace_is_full(trace)) {
		(void)gzerror(file, &error);
		if (error == Z_ERRNO)
			rc = errno ? -errno : -EIO;
		else if (error == Z_BUF_ERROR)
			trace->is_truncated =
				1; /* a log that is still being written, or was cut: what is there counts */
		else if (error != Z_OK && error != Z_STREAM_END)
			rc = -EIO;
	}
	gzclose_r(file);
	return rc;
}

/* --- connections */

/* struct es_trace_client - its connection, and how many requests more this one takes */
struct es_trace_client {
	__u32 connection;
	__u32 left;
	__s64 last_s;
};

static __u32 es_trace_assign(const struct es_trace *trace, __u32 per_connection, double keepalive_s,
			     struct es_trace_client *client, __u32 *ret_connection)
{
	__u32 count = 0;

	for (size_t i = 0; i < trace->request_count; i++) {
		const struct es_trace_request *r = &trace->request[i];
		struct es_trace_client *c = &client[r->client];

		if (!c->left || (double)(r->time_s - c->last_s) > keepalive_s) {
			c->connection = count++;
			c->left = per_connection;
		}
		c->left--;
		c->last_s = r->time_s;
		ret_connection[i] = c->connection;
	}
	return count;
}

int es_trace_workload(struct es_trace *trace, __u32 per_connection, double keepalive_s,
		      struct es_workload *ret_workload)
{
	struct es_trace_client *client = calloc((size_t)trace->clients.count + 1, sizeof(*client));
	__u32 *connection = calloc(trace->request_count + 1, sizeof(*connection));
	struct es_workload w = {
		.request_count = (__u32)trace->request_count,
		.file_count = trace->files.count,
	};
	__u32 *next = NULL;
	int rc = trace->request_count ? -ENOMEM : -ENODATA;

	if (!client || !connection || !trace->request_count)
		goto out;
	w.connection_count = es_trace_assign(trace, per_connection, keepalive_s, client, connection);
	w.first = calloc((size_t)w.connection_count + 1, sizeof(*w.first));
	w.request = calloc(w.request_count, sizeof(*w.request));
	next = calloc((size_t)w.connection_count + 1, sizeof(*next));
	if (!w.first || !w.request || !next) {
		free(w.first);
		free(w.request);
		goto out;
	}
	for (__u32 i = 0; i < w.request_count; i++)
		w.first[connection[i] + 1]++;
	for (__u32 i = 0; i < w.connection_count; i++)
		w.first[i + 1] += w.first[i];
	memcpy(next, w.first, ((size_t)w.connection_count + 1) * sizeof(*next));
	for (__u32 i = 0; i < w.request_count; i++)
		w.request[next[connection[i]]++] = trace->request[i].file;
	w.file = trace->file;
	w.size = trace->size;
	trace->file = NULL;
	trace->size = NULL;
	*ret_workload = w;
	rc = 0;
out:
	free(next);
	free(connection);
	free(client);
	return rc;
}
