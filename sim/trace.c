// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From bytes to requests. Replayed is what a server reads a file for: GET with 200, 206 or 304. The replay's
 * clients have no caches of their own, so a 304 is asked for in full, as httperf does it. A file's size is
 * the largest response that a 200 or, as a piece of it, a 206 had. A site's file is another one than that of
 * the same name on another site, where the log says which site was asked.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "sim/trace.h"

static const struct {
	const char *name;
	const char *text;
} es_skips[ES_TRACE_SKIP_COUNT] = {
	[ES_TRACE_USED] = {"used", "replayed"},
	[ES_SKIP_EMPTY] = {"empty", "an empty line"},
	[ES_SKIP_HOLE] = {"hole", "a hole of zeros"},
	[ES_SKIP_TOO_LONG] = {"too_long", "a line of more than 64 KiB"},
	[ES_SKIP_NO_CLIENT] = {"no_client", "no client at the line's start"},
	[ES_SKIP_NO_TIME] = {"no_time",
			     "no [day/month/year:hour:minute:second zone], and no time in ISO 8601"},
	[ES_SKIP_NO_REQUEST] = {"no_request", "no request in quotes"},
	[ES_SKIP_BAD_REQUEST] = {"bad_request", "the request is no METHOD /path"},
	[ES_SKIP_BAD_STATUS] = {"bad_status", "no status of three digits"},
	[ES_SKIP_BAD_SIZE] = {"bad_size", "the size is neither a number up to 64 GiB nor -"},
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
	free(trace->sized);
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
		__u8 *sized;

		if (!file)
			return -ENOMEM;
		trace->file = file;
		size = reallocarray(trace->size, room, sizeof(*size));
		if (!size)
			return -ENOMEM;
		trace->size = size;
		sized = reallocarray(trace->sized, room, sizeof(*sized));
		if (!sized)
			return -ENOMEM;
		trace->sized = sized;
		trace->file_room = room;
	}
	return 0;
}

/* The length of "//host" before the path. A path may begin with two slashes, too. */
static __u32 es_trace_host_len(const struct es_name *name, const struct es_trace_record *record)
{
	const char *path;

	if (!record->host_len || !es_name_host_len(record->host, record->host_len))
		return 0;
	path = name->len > 2 ? memchr(name->text + 2, '/', name->len - 2) : NULL;
	return path ? (__u32)(path - name->text) : 0;
}

static int es_trace_file(struct es_trace *trace, const struct es_trace_record *record, __u32 *ret_file)
{
	struct es_name *name = &trace->name;
	int rc;

	es_name_make(name, record->host, record->host_len, record->uri, record->uri_len);
	rc = es_map_get(&trace->files, es_content_hash(name->text, name->len), ret_file);
	if (rc <= 0)
		return rc;
	trace->file[*ret_file] = (struct es_sim_file){
		.uri = strndup(name->text, name->len),
		.host_len = es_trace_host_len(name, record),
		.is_dynamic = (__u8)record->is_dynamic,
	};
	trace->size[*ret_file] = 0;
	trace->sized[*ret_file] = ES_SIZE_UNKNOWN;
	return trace->file[*ret_file].uri ? 0 : -ENOMEM;
}

static void es_trace_learn_size(struct es_trace *trace, __u32 file, const struct es_trace_record *record)
{
	__u8 sized = record->status == 200 ? ES_SIZE_WHOLE : ES_SIZE_OF_PIECES;

	if (!record->has_size || record->status == 304)
		return;
	if (sized > trace->sized[file])
		trace->sized[file] = sized;
	if (record->size > trace->size[file])
		trace->size[file] = record->size;
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
	es_trace_learn_size(trace, request.file, record);
	trace->request[trace->request_count++] = request;
	trace->skipped[ES_TRACE_USED]++;
	return 0;
}

/* --- what is lost */

__u64 es_trace_unusable(const __u64 *skipped)
{
	__u64 sum = 0;

	for (int i = ES_SKIP_TOO_LONG; i < ES_SKIP_METHOD; i++)
		sum += skipped[i];
	return sum;
}

static void es_trace_lose(struct es_trace *trace, enum es_trace_skip skip, const char *data, size_t len)
{
	struct es_trace_bad *bad = &trace->bad;

	trace->skipped[skip]++;
	if (bad->line || skip < ES_SKIP_TOO_LONG || skip >= ES_SKIP_METHOD)
		return;
	bad->line = trace->line_count;
	bad->skip = skip;
	if (trace->format == ES_TRACE_WC98)
		return;
	if (len > sizeof(bad->text) - 1)
		len = sizeof(bad->text) - 1;
	for (size_t i = 0; i < len; i++)
		bad->text[i] = data[i];
	while (len && isspace((unsigned char)bad->text[len - 1]))
		len--;
	bad->text[len] = 0;
	for (size_t i = 0; i < len; i++)
		if (!isprint((unsigned char)bad->text[i]))
			bad->text[i] = bad->text[i] == '\t' ? ' ' : '?';
}

void es_trace_loss(const struct es_trace *trace, struct es_trace_loss *ret_loss)
{
	*ret_loss = (struct es_trace_loss){
		.line_count = trace->line_count,
		.bad = trace->bad,
		.files = trace->files.count,
		.is_truncated = trace->is_truncated,
	};
	memcpy(ret_loss->skipped, trace->skipped, sizeof(ret_loss->skipped));
	for (__u32 i = 0; i < trace->files.count; i++)
		ret_loss->unsized_files += trace->sized[i] == ES_SIZE_UNKNOWN;
	for (size_t i = 0; i < trace->request_count; i++)
		ret_loss->unsized_requests += trace->sized[trace->request[i].file] == ES_SIZE_UNKNOWN;
}

/* --- pieces */

static int es_trace_one(struct es_trace *trace, const char *data, size_t len)
{
	struct es_trace_record record;
	enum es_trace_skip skip;
	char uri[16];

	if (es_trace_is_full(trace))
		return 0;
	trace->line_count++;
	if (trace->format == ES_TRACE_WC98)
		skip = es_trace_wc98_record((const __u8 *)data, uri, &record);
	else
		skip = es_trace_log_line(data, len, &record);
	if (skip == ES_TRACE_USED)
		return es_trace_add(trace, &record);
	es_trace_lose(trace, skip, data, len);
	return 0;
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
	if (!is_too_long)
		return es_trace_one(trace, trace->kept, len);
	if (!es_trace_is_full(trace)) {
		trace->line_count++;
		es_trace_lose(trace, ES_SKIP_TOO_LONG, "", 0);
	}
	return 0;
}

/* A machine that crashed, or a program that writes on behind the place where logrotate has cut its file,
 * leaves zeros. They end a line, and the next one begins behind them. Sets how many bytes they are. */
static int es_trace_feed_hole(struct es_trace *trace, const char *data, size_t len, size_t *ret_part)
{
	size_t part = 0;
	int rc = 0;

	while (part < len && !data[part])
		part++;
	*ret_part = part;
	if (trace->is_in_hole)
		return 0;
	if (trace->kept_len || trace->is_too_long)
		rc = es_trace_line_end(trace);
	if (!es_trace_is_full(trace))
		trace->skipped[ES_SKIP_HOLE]++;
	trace->is_in_hole = 1;
	return rc;
}

static int es_trace_feed_log(struct es_trace *trace, const char *data, size_t len)
{
	int rc = 0;

	while (!rc && len) {
		const char *end = memchr(data, '\n', len), *hole;
		size_t part = end ? (size_t)(end - data) : len;

		if (!*data) {
			rc = es_trace_feed_hole(trace, data, len, &part);
			data += part;
			len -= part;
			continue;
		}
		trace->is_in_hole = 0;
		hole = memchr(data, 0, part);
		if (hole) {
			/* Not the end of a line yet: the hole is. */
			part = (size_t)(hole - data);
			end = NULL;
		}
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

/* Finds out the format; what was kept for that comes first. */
static int es_trace_feed_kept(struct es_trace *trace)
{
	char kept[ES_DETECT_BYTES];
	size_t len = trace->kept_len;

	trace->format = es_trace_detect(trace->kept, len, &trace->foreign);
	if (trace->format == ES_TRACE_AUTO)
		return -ENOTSUP;
	memcpy(kept, trace->kept, len);
	trace->kept_len = 0;
	return es_trace_feed_known(trace, kept, len);
}

int es_trace_feed(struct es_trace *trace, const void *data, size_t len)
{
	const char *at = data;
	int rc = 0;

	if (trace->format == ES_TRACE_AUTO) {
		size_t part = 0;

		if (!trace->kept_len) {
			/* No format begins with zeros. */
			if (len && !*at)
				(void)es_trace_feed_hole(trace, at, len, &part);
			at += part;
			len -= part;
		}
		part = ES_DETECT_BYTES - trace->kept_len;
		if (part > len)
			part = len;
		es_trace_keep(trace, at, part);
		at += part;
		len -= part;
		if (trace->kept_len < ES_DETECT_BYTES)
			return 0;
		rc = es_trace_feed_kept(trace);
	}
	return rc ? rc : es_trace_feed_known(trace, at, len);
}

int es_trace_finish(struct es_trace *trace)
{
	int rc = 0;

	if (trace->format == ES_TRACE_AUTO)
		rc = es_trace_feed_kept(trace);
	if (rc || (!trace->kept_len && !trace->is_too_long))
		return rc;
	if (trace->format == ES_TRACE_LOG)
		return es_trace_line_end(trace);
	if (!es_trace_is_full(trace)) {
		trace->line_count++;
		es_trace_lose(trace, ES_SKIP_CUT_OFF, "", 0);
	}
	trace->kept_len = 0;
	return 0;
}
