// SPDX-License-Identifier: GPL-2.0-or-later
/* Takes what is in the rings every few milliseconds, and writes it whole lines at a time. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "inspector/base/clock.h"
#include "inspector/base/log.h"
#include "inspector/base/wall.h"
#include "inspector/daemon/log_writer.h"
#include "inspector/report/log_line.h"

#define NS_PER_MS      1000000ULL
#define PAUSE_NS       20000000L
#define LOOK_NS	       1000000000ULL  /* between looks at the file's name, and tries to open it */
#define TELL_NS	       60000000000ULL /* between words about lines that are missing */
#define SYSLOG_WAIT_MS 100
#define SYSLOG_INFO    6
#define BUFFER_SIZE    65536

/**
 * struct es_log_writer - the thread's own, but for what is atomic
 * @owners: the control thread and the thread; the last one frees it
 * @fd: -1: not open; @failing: what failed, which was said; 0: nothing
 * @lines: in @buffer; @is_torn: the file ends within a line
 * @told: lines that are missing, of which somebody was told
 */
struct es_log_writer {
	struct es_conf_log conf;
	char node[ES_CONF_NAME_SIZE];
	char syslog[108];
	unsigned int workers;
	pthread_t thread;
	_Atomic int owners;
	_Atomic int stop;
	_Atomic int has_ended;
	_Atomic int reopen;
	_Atomic unsigned long long written;
	_Atomic unsigned long long failed;
	int fd;
	int failing;
	int is_torn;
	unsigned long long looked_ns;
	unsigned long long told_ns;
	unsigned long long told;
	size_t used;
	unsigned int lines;
	char buffer[BUFFER_SIZE];
	char line[ES_LOG_LINE_SIZE];
	struct es_trace_entry entry;
	struct es_trace_ring *ring[];
};

static void writer_put(struct es_log_writer *w)
{
	if (atomic_fetch_sub(&w->owners, 1) > 1)
		return;
	for (unsigned int i = 0; i < w->workers; i++)
		free(w->ring[i]);
	if (w->fd >= 0)
		close(w->fd);
	free(w);
}

static const char *place(const struct es_log_writer *w)
{
	return w->conf.to == ES_CONF_LOG_FILE ? w->conf.file : w->syslog;
}

/* Said when it begins to fail, or fails otherwise, and when it does no more. */
static void set_failing(struct es_log_writer *w, int error)
{
	if (error && error != w->failing)
		es_log(ES_LOG_ERR,
		       "request log: %s: cannot be written: %s; requests are served, and not logged",
		       place(w), strerror(error));
	else if (!error && w->failing)
		es_log(ES_LOG_INFO, "request log: %s: is written again", place(w));
	w->failing = error;
}

static void open_syslog(struct es_log_writer *w)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", w->syslog);
	w->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (w->fd >= 0 && connect(w->fd, (const struct sockaddr *)&address, sizeof(address))) {
		int error = errno;

		close(w->fd);
		w->fd = -1;
		errno = error;
	}
}

/* Has the file its name yet? */
static int is_renamed(const struct es_log_writer *w)
{
	struct stat named, open;

	return stat(w->conf.file, &named) || fstat(w->fd, &open) || named.st_ino != open.st_ino ||
	       named.st_dev != open.st_dev;
}

static void look(struct es_log_writer *w)
{
	unsigned long long now_ns = es_clock_now_ns();
	int is_file = w->conf.to == ES_CONF_LOG_FILE, is_asked = atomic_exchange(&w->reopen, 0);

	if (!is_asked && w->looked_ns && now_ns - w->looked_ns < LOOK_NS)
		return;
	w->looked_ns = now_ns;
	if (w->fd >= 0 && !is_asked && (!is_file || !is_renamed(w)))
		return;
	if (w->fd >= 0)
		close(w->fd);
	w->is_torn = 0;
	if (is_file)
		w->fd = open(w->conf.file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0640);
	else
		open_syslog(w);
	set_failing(w, w->fd < 0 ? errno : 0);
}

/* All of it, or what failed. A line of which only a part was written gets an end before the next one. */
static int file_write(struct es_log_writer *w)
{
	size_t at = 0;
	ssize_t n;

	if (w->is_torn && write(w->fd, "\n", 1) == 1)
		w->is_torn = 0;
	while (at < w->used) {
		n = write(w->fd, w->buffer + at, w->used - at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		at += (size_t)n;
		w->is_torn = w->buffer[at - 1] != '\n';
	}
	return 0;
}

static void flush(struct es_log_writer *w)
{
	int error;

	if (!w->lines)
		return;
	error = w->fd < 0 ? w->failing : file_write(w);
	atomic_fetch_add(error ? &w->failed : &w->written, w->lines);
	if (w->fd >= 0)
		set_failing(w, error);
	w->used = w->lines = 0;
}

static void line_to_file(struct es_log_writer *w, size_t len)
{
	if (w->used + len > sizeof(w->buffer))
		flush(w);
	memcpy(w->buffer + w->used, w->line, len);
	w->used += len;
	w->lines++;
}

/* As syslog(3) writes it. Its reader is waited for, but not for long. */
static void line_to_syslog(struct es_log_writer *w, size_t len)
{
	struct pollfd writable = {.fd = w->fd, .events = POLLOUT};
	char message[ES_LOG_LINE_SIZE + 64], when[24] = "";
	time_t now_s = (time_t)(es_wall_ns() / 1000000000ULL);
	struct tm tm;
	ssize_t n;
	int size;

	if (w->fd < 0) {
		atomic_fetch_add(&w->failed, 1);
		return;
	}
	if (localtime_r(&now_s, &tm))
		strftime(when, sizeof(when), "%b %e %H:%M:%S", &tm);
	size = snprintf(message, sizeof(message), "<%u>%s earshot[%d]: %.*s",
			w->conf.facility * 8 + SYSLOG_INFO, when, (int)getpid(), (int)(len - 1), w->line);
	n = send(w->fd, message, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && errno == EAGAIN && poll(&writable, 1, SYSLOG_WAIT_MS) == 1)
		n = send(w->fd, message, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL);
	atomic_fetch_add(n < 0 ? &w->failed : &w->written, 1);
	if (n >= 0) {
		set_failing(w, 0);
		return;
	}
	set_failing(w, errno);
	if (errno == EAGAIN)
		return;
	close(w->fd); /* it was restarted, perhaps */
	w->fd = -1;
}

/* Returns whether there was much, so that more is to be expected at once. */
static int drain(struct es_log_writer *w)
{
	unsigned long long to_wall_ns = es_wall_ns() - es_clock_now_ns();
	unsigned int most = 0;

	for (unsigned int i = 0; i < w->workers; i++) {
		unsigned int count = 0;

		while (count < ES_TRACE_ENTRIES && es_trace_take(w->ring[i], &w->entry)) {
			size_t len =
				es_report_log_line(&w->entry, w->conf.format, w->node, to_wall_ns, w->line);

			count++;
			if (!len)
				continue;
			if (w->conf.to == ES_CONF_LOG_FILE)
				line_to_file(w, len);
			else
				line_to_syslog(w, len);
		}
		most = count > most ? count : most;
	}
	flush(w);
	return most > ES_TRACE_ENTRIES / 4;
}

static void tell_missing(struct es_log_writer *w, int is_end)
{
	unsigned long long missing = 0, now_ns = es_clock_now_ns();

	for (unsigned int i = 0; i < w->workers; i++)
		missing += atomic_load_explicit(&w->ring[i]->left_out, memory_order_relaxed);
	if (missing == w->told || (!is_end && w->told_ns && now_ns - w->told_ns < TELL_NS))
		return;
	es_log(ES_LOG_WARNING,
	       "request log: %llu requests are missing in it, since they came faster than %s took them",
	       missing - w->told, place(w));
	w->told = missing;
	w->told_ns = now_ns;
}

static void *writer_main(void *arg)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	struct es_log_writer *w = arg;
	int is_last = 0;

	while (!is_last) {
		is_last = atomic_load(&w->stop);
		look(w);
		if (!drain(w) && !is_last)
			nanosleep(&pause, NULL);
		tell_missing(w, is_last);
	}
	atomic_store(&w->has_ended, 1);
	writer_put(w);
	return NULL;
}

static int rings_make(struct es_log_writer *w, const char *service)
{
	for (unsigned int i = 0; i < w->workers; i++) {
		w->ring[i] = calloc(1, sizeof(*w->ring[i]));
		if (!w->ring[i])
			return -ENOMEM;
		if (service)
			snprintf(w->ring[i]->filter.service, sizeof(w->ring[i]->filter.service), "%s",
				 service);
	}
	return 0;
}

/* Signals are the control thread's. */
static int thread_start(struct es_log_writer *w)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&w->thread, NULL, writer_main, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!rc)
		pthread_detach(w->thread);
	return -rc;
}

int es_log_writer_new(const struct es_conf_log *conf, const char *service, const char *node,
		      const char *syslog, unsigned int workers, struct es_log_writer **ret_writer)
{
	struct es_log_writer *w = calloc(1, sizeof(*w) + workers * sizeof(struct es_trace_ring *));
	int rc;

	if (!w)
		return -ENOMEM;
	w->conf = *conf;
	w->fd = -1;
	w->workers = workers;
	w->owners = 2;
	snprintf(w->node, sizeof(w->node), "%s", node);
	snprintf(w->syslog, sizeof(w->syslog), "%s", syslog);
	rc = rings_make(w, service);
	if (!rc)
		rc = thread_start(w);
	if (rc) {
		w->owners = 1;
		writer_put(w);
		return rc;
	}
	*ret_writer = w;
	return 0;
}

struct es_trace_ring *es_log_writer_ring(struct es_log_writer *w, unsigned int i)
{
	return w->ring[i];
}

void es_log_writer_counts(const struct es_log_writer *w, struct es_log_counts *counts)
{
	counts->written += atomic_load(&w->written);
	counts->failed += atomic_load(&w->failed);
}

void es_log_writer_reopen(struct es_log_writer *w)
{
	atomic_store(&w->reopen, 1);
}

void es_log_writer_end(struct es_log_writer **writer, unsigned int wait_ms, struct es_log_counts *counts)
{
	const struct timespec pause = {.tv_nsec = (long)NS_PER_MS};
	unsigned long long begin_ns = es_clock_now_ns();
	struct es_log_writer *w = *writer;

	atomic_store(&w->stop, 1);
	while (!atomic_load(&w->has_ended) && es_clock_now_ns() - begin_ns < wait_ms * NS_PER_MS)
		nanosleep(&pause, NULL);
	es_log_writer_counts(w, counts);
	writer_put(w);
	*writer = NULL;
}
