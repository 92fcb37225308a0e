// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One line per message, written with one call, so that lines of several threads do not mix. The journal has
 * times of its own; where standard error is anything else, each line begins with one. Nobody waits for who
 * reads: what cannot be written at once is dropped and counted, and the next line that can be is preceded by
 * one that says so.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "inspector/base/log.h"
#include "inspector/base/wall.h"

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

const char *es_log_program = "earshotd";

/*
 * The beginning of a line: the priority for whoever sorts by it, or the local time with its distance to UTC.
 */
static size_t line_begin(char *line, size_t size, enum es_log_level level)
{
	unsigned long long now_ns = es_wall_ns();
	time_t now_s = (time_t)(now_ns / 1000000000);
	char date[32], zone[8];
	struct tm tm;

	if (getenv("JOURNAL_STREAM"))
		return (size_t)snprintf(line, size, "<%d>", level);
	if (!localtime_r(&now_s, &tm))
		return 0;
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	strftime(zone, sizeof(zone), "%z", &tm);
	return (size_t)snprintf(line, size, "%s.%03u%s ", date, (unsigned int)(now_ns / 1000000 % 1000),
				zone);
}

/*
 * Standard error may be shared with other programs, so its flags stay as they are: a pipe or terminal is
 * opened once more. A file does not wait for anybody but its disk.
 */
static ssize_t write_now(const char *line, size_t len)
{
	struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
	struct stat st;
	ssize_t n;
	int fd;

	if (fstat(STDERR_FILENO, &st))
		return -1;
	if (S_ISSOCK(st.st_mode))
		return send(STDERR_FILENO, line, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (!S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode))
		return write(STDERR_FILENO, line, len);
	fd = open("/proc/self/fd/2", O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0) {
		n = write(fd, line, len);
		close(fd);
		return n;
	}
	/* Another one's, or no /proc: where there is room now, a line fits in. */
	return poll(&out, 1, 0) == 1 && out.revents == POLLOUT ? write(STDERR_FILENO, line, len) : -1;
}

/* Returns whether all of it is written. */
static int line_write(enum es_log_level level, const char *text)
{
	char line[1100];
	size_t len = line_begin(line, sizeof(line), level);

	len += (size_t)snprintf(line + len, sizeof(line) - len, "%s: %s%s", es_log_program,
				level == ES_LOG_ERR	  ? "error: "
				: level == ES_LOG_WARNING ? "warning: "
							  : "",
				text);
	if (len > sizeof(line) - 2)
		len = sizeof(line) - 2;
	line[len++] = '\n';
	return write_now(line, len) == (ssize_t)len;
}

/* Says first what is missing before this line. */
static void line_log(enum es_log_level level, const char *text)
{
	static _Atomic unsigned int dropped;
	unsigned int missing = atomic_exchange_explicit(&dropped, 0, memory_order_relaxed);
	char notice[128];

	if (missing) {
		snprintf(notice, sizeof(notice),
			 "the log is not complete: %u line%s could not be written here, since nobody read "
			 "them",
			 missing, missing == 1 ? "" : "s");
		if (line_write(ES_LOG_WARNING, notice))
			missing = 0;
	}
	if (missing || !line_write(level, text))
		atomic_fetch_add_explicit(&dropped, missing + 1, memory_order_relaxed);
}

void es_log(enum es_log_level level, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	if (vsnprintf(text, sizeof(text), format, args) < 0)
		text[0] = 0;
	va_end(args);
	if (text[0])
		line_log(level, text);
}

/* Is standard error the journal's stream, as systemd.exec(5) says how to find out? */
static int is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char own[64];
	struct stat st;

	if (!stream || fstat(STDERR_FILENO, &st))
		return 0;
	snprintf(own, sizeof(own), "%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	return !strcmp(own, stream);
}

/* One datagram of the journal's protocol; returns whether the journal has it. */
static int journal_send(const char *text, size_t len)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = JOURNAL_SOCKET};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), is_sent;

	if (fd < 0)
		return 0;
	is_sent = sendto(fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL, (const void *)&address,
			 sizeof(address)) == (ssize_t)len;
	close(fd);
	return is_sent;
}

void es_log_fields(enum es_log_level level, const char *kind, const char *node, const char *text)
{
	char fields[1500];
	int len;

	if (is_journal()) {
		len = snprintf(fields, sizeof(fields),
			       "MESSAGE=%s: %s\nPRIORITY=%d\nSYSLOG_IDENTIFIER=%s\n"
			       "EARSHOT_EVENT=%s\nEARSHOT_NODE=%s\n",
			       es_log_program, text, level, es_log_program, kind, node);
		if (len > 0 && (size_t)len < sizeof(fields) && journal_send(fields, (size_t)len))
			return;
	}
	line_log(level, text);
}
