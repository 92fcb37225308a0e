// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads what earshot-tls counts. Whatever is in the file, it is numbers and names, and bounded. */
#include "inspector/ask/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

const char *const es_ledger_counter_name[] = {
#define X(name, text) #name,
	ES_LEDGER_COUNTERS(X)
#undef X
};

const char *const es_ledger_counter_text[] = {
#define X(name, text) text,
	ES_LEDGER_COUNTERS(X)
#undef X
};

static int read_at(int fd, void *to, size_t size, size_t offset)
{
	ssize_t got = pread(fd, to, size, (off_t)offset);

	if (got < 0)
		return -errno;
	return got == (ssize_t)size ? 0 : -EPROTO;
}

static int read_head(int fd, struct es_ledger_head *head)
{
	int rc = read_at(fd, head, sizeof(*head), 0);

	if (rc)
		return rc;
	if (head->magic != ES_LEDGER_MAGIC || head->version != ES_LEDGER_VERSION ||
	    head->places > ES_LEDGER_PLACES)
		return -EPROTO;
	for (unsigned int s = 0; s < ES_LEDGER_SERVICES; s++) {
		head->service[s].name[ES_LEDGER_NAME_SIZE - 1] = 0;
		head->service[s].why[ES_LEDGER_WHY_SIZE - 1] = 0;
	}
	return 0;
}

static int add_up(int fd, struct es_ledger *ledger)
{
	uint64_t count[ES_LEDGER_COUNTER_COUNT];
	int rc;

	for (unsigned int p = 0; p < ledger->head.places; p++)
		for (unsigned int s = 0; s < ES_LEDGER_SERVICES; s++) {
			if (!ledger->head.service[s].name[0])
				continue;
			rc = read_at(fd, count, sizeof(count), offsetof(struct es_ledger_file, block[p][s]));
			if (rc)
				return rc;
			for (unsigned int i = 0; i < ES_LEDGER_COUNTER_COUNT; i++)
				ledger->count[s][i] += count[i];
		}
	return 0;
}

int es_ledger_read(const char *path, struct es_ledger *ret_ledger)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), rc;

	if (fd < 0)
		return -errno;
	memset(ret_ledger, 0, sizeof(*ret_ledger));
	rc = read_head(fd, &ret_ledger->head);
	if (!rc)
		rc = add_up(fd, ret_ledger);
	if (!rc && fcntl(fd, F_GETLK, &lock))
		rc = -errno;
	ret_ledger->runs = !rc && lock.l_type != F_UNLCK;
	close(fd);
	return rc;
}

int es_ledger_find(const struct es_ledger_head *head, const char *service)
{
	for (int s = 0; s < ES_LEDGER_SERVICES; s++)
		if (!strcmp(head->service[s].name, service))
			return s;
	return -1;
}
