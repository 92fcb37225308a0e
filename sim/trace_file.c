// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A file's bytes: plain, or compressed by gzip, or one after the other, as `cat access.log*` and programs
 * that go on writing behind what gzip made leave them. (gzread() ends at the first plain byte behind a
 * member.)
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include "sim/trace.h"

#define ES_SOURCE_BYTES (1 << 16)

static const char es_gzip_magic[] = {'\x1f', '\x8b', '\x08'};
/* In the middle of text it must begin a line. */
static const char es_gzip_line[] = {'\n', '\x1f', '\x8b', '\x08'};

/* struct es_source - @data[@at..@end) was read and is not used yet; @is_end: there is no more behind it */
struct es_source {
	int fd;
	size_t at, end;
	int is_end;
	char data[ES_SOURCE_BYTES];
};

/* Reads until there are @want bytes or no more. Returns 0 or -errno. */
static int es_source_fill(struct es_source *source, size_t want)
{
	if (source->end - source->at >= want || source->is_end)
		return 0;
	memmove(source->data, source->data + source->at, source->end - source->at);
	source->end -= source->at;
	source->at = 0;
	while (source->end < want) {
		ssize_t len =
			read(source->fd, source->data + source->end, sizeof(source->data) - source->end);

		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0)
			return -errno;
		source->is_end = !len;
		if (!len)
			break;
		source->end += (size_t)len;
	}
	return 0;
}

static int es_source_is_gzip(const struct es_source *source)
{
	return source->end - source->at >= sizeof(es_gzip_magic) &&
	       !memcmp(source->data + source->at, es_gzip_magic, sizeof(es_gzip_magic));
}

/* How many of the last bytes may be the beginning of a line that is a gzip member. */
static size_t es_begun_magic(const char *data, size_t len)
{
	for (size_t part = sizeof(es_gzip_line) - 1; part; part--)
		if (len >= part && !memcmp(data + len - part, es_gzip_line, part))
			return part;
	return 0;
}

/* Feeds plain bytes up to the next gzip member, or to the end. */
static int es_read_plain(struct es_source *source, struct es_trace *trace)
{
	int rc = 0;

	while (!rc && !es_trace_is_full(trace)) {
		const char *data, *gzip = NULL;
		size_t len;

		rc = es_source_fill(source, sizeof(es_gzip_line));
		data = source->data + source->at;
		len = source->end - source->at;
		if (rc || !len)
			break;
		if (trace->format == ES_TRACE_AUTO && len > ES_DETECT_BYTES)
			len = ES_DETECT_BYTES; /* any bytes may stand in a binary log */
		if (trace->format != ES_TRACE_WC98) {
			gzip = memmem(data, len, es_gzip_line, sizeof(es_gzip_line));
			if (gzip)
				len = (size_t)(gzip - data) + 1;
			else if (!source->is_end || len < source->end - source->at)
				len -= es_begun_magic(data, len);
		}
		rc = es_trace_feed(trace, data, len);
		source->at += len;
		if (gzip)
			break;
	}
	return rc;
}

/* Feeds one member. */
static int es_read_gzip(struct es_source *source, struct es_trace *trace)
{
	static unsigned char plain[ES_SOURCE_BYTES];
	z_stream stream = {};
	int rc = 0, state = Z_OK;

	if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK)
		return -ENOMEM;
	while (!rc && state == Z_OK && !es_trace_is_full(trace)) {
		rc = es_source_fill(source, 1);
		if (rc)
			break;
		stream.next_in = (unsigned char *)source->data + source->at;
		stream.avail_in = (unsigned int)(source->end - source->at);
		stream.next_out = plain;
		stream.avail_out = sizeof(plain);
		state = inflate(&stream, Z_NO_FLUSH);
		source->at = source->end - stream.avail_in;
		rc = es_trace_feed(trace, plain, sizeof(plain) - stream.avail_out);
		if (state == Z_BUF_ERROR && source->is_end) {
			/* A log that is still being written, or was cut: what is there counts. */
			trace->is_truncated = 1;
			break;
		}
		if (state == Z_BUF_ERROR)
			state = Z_OK;
	}
	inflateEnd(&stream);
	if (!rc && state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR)
		rc = state == Z_MEM_ERROR ? -ENOMEM : -EIO;
	return rc;
}

static void es_skip_zeros(struct es_source *source)
{
	while (source->at < source->end && !source->data[source->at])
		source->at++;
}

/* Members of a gzip file may be padded with zeros. */
static int es_read_parts(struct es_source *source, struct es_trace *trace)
{
	int rc = 0;

	while (!rc && !es_trace_is_full(trace)) {
		rc = es_source_fill(source, ES_DETECT_BYTES);
		if (rc || source->at == source->end)
			break;
		if (trace->format != ES_TRACE_WC98) {
			trace->foreign =
				es_trace_foreign(source->data + source->at, source->end - source->at);
			if (trace->foreign)
				return -ENOTSUP;
		}
		if (!es_source_is_gzip(source)) {
			rc = es_read_plain(source, trace);
			continue;
		}
		rc = es_read_gzip(source, trace);
		do {
			es_skip_zeros(source);
			rc = rc ? rc : es_source_fill(source, 1);
		} while (!rc && source->at < source->end && !source->data[source->at]);
	}
	return rc;
}

int es_trace_read(struct es_trace *trace, const char *path)
{
	static struct es_source source;
	int is_stdin = !strcmp(path, "-");
	int rc;

	source.fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	source.at = source.end = 0;
	source.is_end = 0;
	if (source.fd < 0)
		return -errno;
	rc = es_read_parts(&source, trace);
	if (!rc)
		rc = es_trace_finish(trace);
	if (!is_stdin)
		close(source.fd);
	return rc;
}
