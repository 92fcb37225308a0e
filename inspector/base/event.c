// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The journal of events: a ring in memory, and two files of lines of JSON. event_json.c says what an event
 * looks like.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "inspector/base/event.h"
#include "inspector/base/utf8.h"
#include "inspector/base/wall.h"

static struct {
	int is_open; /* @fd is a file */
	int fd;
	int is_failed; /* and that was said */
	size_t size;   /* of the file */
	char path[256];
	char self[ES_EVENT_NODE_SIZE];
	unsigned long long count; /* of all that are or were in @kept */
	unsigned long long last_id;
	struct es_event kept[ES_EVENT_KEPT];
} journal;

static void keep(void *ctx, const struct es_event *event)
{
	(void)ctx;
	journal.kept[journal.count++ % ES_EVENT_KEPT] = *event;
	if (event->id > journal.last_id)
		journal.last_id = event->id;
}

/* One that a daemon died in the middle of writing a line to gets an end for that. */
static int file_open(void)
{
	struct stat st;
	char last;

	journal.fd = open(journal.path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (journal.fd < 0)
		return -errno;
	journal.is_open = 1;
	if (fstat(journal.fd, &st))
		return -errno;
	journal.size = (size_t)st.st_size;
	if (journal.size && pread(journal.fd, &last, 1, st.st_size - 1) == 1 && last != '\n' &&
	    write(journal.fd, "\n", 1) == 1)
		journal.size++;
	return 0;
}

static void file_close(void)
{
	if (journal.is_open)
		close(journal.fd);
	journal.is_open = 0;
}

int es_event_open(const char *path, const char *self)
{
	es_event_close();
	memset(&journal, 0, sizeof(journal));
	if ((size_t)snprintf(journal.path, sizeof(journal.path), "%s", path) >= sizeof(journal.path) - 2)
		return -ENAMETOOLONG;
	snprintf(journal.self, sizeof(journal.self), "%s", self);
	es_event_read(path, keep, NULL); /* there may be none */
	return file_open();
}

void es_event_close(void)
{
	file_close();
	journal.path[0] = 0;
}

static int file_turn(void)
{
	char before[sizeof(journal.path) + 2];

	file_close();
	snprintf(before, sizeof(before), "%s.1", journal.path);
	if (rename(journal.path, before))
		return -errno;
	return file_open();
}

static int file_write(const struct es_event *event)
{
	struct json_object *object = es_event_json(event);
	const char *text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN);
	char line[4096];
	size_t len = (size_t)snprintf(line, sizeof(line), "%s\n", text);
	ssize_t n;
	int rc = 0;

	json_object_put(object);
	if (len >= sizeof(line))
		return -EMSGSIZE;
	if (journal.size + len > ES_EVENT_FILE_MAX)
		rc = file_turn();
	if (rc)
		return rc;
	n = write(journal.fd, line, len);
	if (n < 0)
		return -errno;
	if ((size_t)n != len) {
		/* Or the next one would stand in the same line. */
		return ftruncate(journal.fd, (off_t)journal.size) ? -errno : -ENOSPC;
	}
	journal.size += len;
	return 0;
}

/* U+0000 to U+001F, U+007F to U+009F */
static int is_control(const char *text)
{
	const unsigned char *byte = (const unsigned char *)text;

	return byte[0] < 0x20 || byte[0] == 0x7f || (byte[0] == 0xc2 && byte[1] < 0xa0);
}

/* One line for a terminal, and UTF-8, which the names of files need not be. */
static void make_line(char *text)
{
	while (*text) {
		size_t len = es_utf8_len(text, strlen(text));

		if (!len || (is_control(text) && *text != '\n'))
			memset(text, '?', len ? len : 1);
		else if (*text == '\n')
			*text = ' ';
		text += len ? len : 1;
	}
}

void es_event(enum es_event_kind kind, enum es_log_level level, const char *node, const char *format, ...)
{
	struct es_event event = {.kind = kind, .level = level};
	va_list args;
	int rc;

	va_start(args, format);
	vsnprintf(event.text, sizeof(event.text), format, args);
	va_end(args);
	make_line(event.text);
	snprintf(event.node, sizeof(event.node), "%s", node ? node : journal.self);
	event.time_ms = es_wall_ns() / 1000000;
	event.id = journal.last_id + 1;
	keep(NULL, &event);
	es_log_fields(level, es_event_kind_name(kind), event.node, event.text);
	if (!journal.path[0])
		return;
	/* It may be writable again. */
	rc = journal.is_open ? 0 : file_open();
	if (!rc)
		rc = file_write(&event);
	if (rc && !journal.is_failed)
		es_log(ES_LOG_WARNING, "%s: events cannot be written: %s; they are only in the log",
		       journal.path, strerror(-rc));
	journal.is_failed = rc != 0;
}

size_t es_event_newest(struct es_event *ret_events, size_t max)
{
	size_t count = journal.count < ES_EVENT_KEPT ? (size_t)journal.count : ES_EVENT_KEPT;

	if (count > max)
		count = max;
	for (size_t i = 0; i < count; i++)
		ret_events[i] = journal.kept[(journal.count - count + i) % ES_EVENT_KEPT];
	return count;
}

static int file_read(const char *path, void (*fn)(void *ctx, const struct es_event *event), void *ctx)
{
	FILE *file = fopen(path, "re");
	struct es_event event;
	char line[4096];

	if (!file)
		return -errno;
	while (fgets(line, sizeof(line), file)) {
		struct json_object *object = json_tokener_parse(line);

		if (!es_event_parse(object, &event))
			fn(ctx, &event);
		json_object_put(object);
	}
	fclose(file);
	return 0;
}

int es_event_read(const char *path, void (*fn)(void *ctx, const struct es_event *event), void *ctx)
{
	char before[512];
	int older = -ENAMETOOLONG, rc;

	if ((size_t)snprintf(before, sizeof(before), "%s.1", path) < sizeof(before))
		older = file_read(before, fn, ctx);
	rc = file_read(path, fn, ctx);
	return older ? rc : 0;
}
