// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The memory in which workers count. A page of it is made sure of before a worker may write there, since a
 * full file system would end the worker. To look at one that is not there would have it made, too: whatever
 * may be a hole is read from the file.
 */
#include "tls/serve/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int allocate(int fd, size_t offset, size_t len)
{
	return posix_fallocate(fd, (off_t)offset, (off_t)len);
}

/* Returns the file's descriptor, which is locked, or -errno. */
static int open_file(const char *path)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600), rc = 0;
	struct stat is = {};

	if (fd < 0)
		return -errno;
	if (fcntl(fd, F_SETLK, &lock))
		rc = errno == EACCES || errno == EAGAIN ? -EBUSY : -errno;
	if (!rc && fstat(fd, &is))
		rc = -errno;
	/* Another version's begins anew. */
	if (!rc && is.st_size != (off_t)sizeof(struct es_ledger_file) &&
	    (ftruncate(fd, 0) || ftruncate(fd, sizeof(struct es_ledger_file))))
		rc = -errno;
	if (!rc)
		rc = -allocate(fd, 0, offsetof(struct es_ledger_file, block));
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

/* A counter of a place that nobody may have used, or not since that service is there. */
static uint64_t count_of(const struct es_serve_ledger *ledger, unsigned int place, unsigned int s,
			 enum es_ledger_counter which)
{
	const uint64_t *at = &ledger->file->block[place][s].count[which];
	uint64_t count;

	if (ledger->fd < 0)
		return __atomic_load_n(at, __ATOMIC_RELAXED);
	return pread(ledger->fd, &count, sizeof(count),
		     (const uint8_t *)at - (const uint8_t *)ledger->file) == sizeof(count)
		       ? count
		       : 0;
}

/* A process before this one may have left it: its connections have ended with it. */
static void take_over(struct es_serve_ledger *ledger, uint64_t wall_ns)
{
	struct es_ledger_head *head = &ledger->file->head;

	if (head->magic != ES_LEDGER_MAGIC || head->version != ES_LEDGER_VERSION ||
	    head->places > ES_LEDGER_PLACES)
		memset(head, 0, sizeof(*head));
	for (unsigned int p = 0; p < head->places; p++)
		es_serve_ledger_leave(ledger, p);
	head->version = ES_LEDGER_VERSION;
	head->pid = (uint32_t)getpid();
	head->started_wall_ns = wall_ns;
	head->workers = head->leaving = 0;
	__atomic_store_n(&head->magic, ES_LEDGER_MAGIC, __ATOMIC_RELEASE);
}

int es_serve_ledger_open(const char *path, uint64_t wall_ns, struct es_serve_ledger *ret_ledger,
			 struct es_conf_error *err)
{
	int fd = open_file(path);

	if (fd == -EBUSY)
		es_conf_error_set(err,
				  "%s: another earshot-tls of this node runs: the counters of this one are "
				  "seen by SIGUSR1 only",
				  path);
	else if (fd < 0)
		es_conf_error_set(err, "%s: cannot be made: %s: counters are seen by SIGUSR1 only", path,
				  strerror(-fd));
	ret_ledger->fd = fd < 0 ? -1 : fd;
	ret_ledger->file =
		mmap(NULL, sizeof(*ret_ledger->file), PROT_READ | PROT_WRITE,
		     fd < 0 ? MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED, ret_ledger->fd, 0);
	if (ret_ledger->file == MAP_FAILED)
		return -ENOMEM;
	take_over(ret_ledger, wall_ns);
	return 0;
}

/* Its number as before, or a free one, or that of a service that is gone, whose counters it then goes on. */
static unsigned int number_of(struct es_ledger_head *head, const char *name)
{
	int number = es_ledger_find(head, name);

	for (int s = 0; number < 0 && s < ES_LEDGER_SERVICES; s++)
		if (!head->service[s].name[0])
			number = s;
	for (int s = 0; number < 0 && s < ES_LEDGER_SERVICES; s++)
		if (head->service[s].state == ES_LEDGER_GONE)
			number = s;
	return number < 0 ? 0 : (unsigned int)number;
}

static unsigned int put(struct es_ledger_head *head, const char *name, enum es_ledger_state state,
			const char *why)
{
	unsigned int number = number_of(head, name);
	struct es_ledger_service *service = &head->service[number];

	snprintf(service->name, sizeof(service->name), "%s", name);
	snprintf(service->why, sizeof(service->why), "%s", why);
	service->state = state;
	return number;
}

_Static_assert(ES_CONF_NAME_SIZE <= ES_LEDGER_NAME_SIZE && ES_CONF_SERVICES_MAX <= ES_LEDGER_SERVICES,
	       "each service has a block");

static int is_of(const struct es_settings *settings, const char *name)
{
	for (unsigned int i = 0; i < settings->count; i++)
		if (!strcmp(settings->service[i].name, name))
			return 1;
	for (unsigned int i = 0; i < settings->refused_count; i++)
		if (!strcmp(settings->refused[i].from->name, name))
			return 1;
	return 0;
}

void es_serve_ledger_publish(struct es_serve_ledger *ledger, struct es_settings *settings)
{
	struct es_ledger_head *head = &ledger->file->head;

	for (unsigned int s = 0; s < ES_LEDGER_SERVICES; s++)
		if (!is_of(settings, head->service[s].name))
			head->service[s].state = ES_LEDGER_GONE;
	for (unsigned int i = 0; i < settings->count; i++)
		settings->service[i].number =
			put(head, settings->service[i].name, ES_LEDGER_SERVED, settings->problem[i].text);
	for (unsigned int i = 0; i < settings->refused_count; i++)
		put(head, settings->refused[i].from->name, ES_LEDGER_REFUSED, settings->refused[i].why.text);
}

void es_serve_ledger_workers(struct es_serve_ledger *ledger, unsigned int workers, unsigned int leaving)
{
	ledger->file->head.workers = workers;
	ledger->file->head.leaving = leaving;
}

void es_serve_ledger_died(struct es_serve_ledger *ledger)
{
	ledger->file->head.died++;
}

struct es_ledger_block *es_serve_ledger_place(struct es_serve_ledger *ledger, unsigned int place)
{
	struct es_ledger_head *head = &ledger->file->head;
	size_t at = offsetof(struct es_ledger_file, block[0][0]) + place * sizeof(ledger->file->block[0]);

	if (place >= ES_LEDGER_PLACES)
		return NULL;
	for (unsigned int s = 0; ledger->fd >= 0 && s < ES_LEDGER_SERVICES; s++)
		if (head->service[s].state != ES_LEDGER_GONE &&
		    allocate(ledger->fd, at + s * sizeof(struct es_ledger_block),
			     sizeof(struct es_ledger_block)))
			return NULL;
	if (place >= head->places)
		head->places = place + 1;
	return ledger->file->block[place];
}

void es_serve_ledger_leave(struct es_serve_ledger *ledger, unsigned int place)
{
	const struct es_ledger_head *head = &ledger->file->head;

	for (unsigned int s = 0; place < head->places && s < ES_LEDGER_SERVICES; s++) {
		uint64_t *count = ledger->file->block[place][s].count;

		if (!head->service[s].name[0] || count_of(ledger, place, s, ES_LEDGER_ended) ==
							 count_of(ledger, place, s, ES_LEDGER_accepted))
			continue;
		count[ES_LEDGER_cut_off] += es_ledger_open_connections(count);
		count[ES_LEDGER_ended] = count[ES_LEDGER_accepted];
	}
}

uint64_t es_serve_ledger_sum(const struct es_serve_ledger *ledger, enum es_ledger_counter which)
{
	const struct es_ledger_head *head = &ledger->file->head;
	uint64_t sum = 0;

	for (unsigned int p = 0; p < head->places; p++)
		for (unsigned int s = 0; s < ES_LEDGER_SERVICES; s++)
			if (head->service[s].name[0])
				sum += count_of(ledger, p, s, which);
	return sum;
}
