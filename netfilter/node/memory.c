// SPDX-License-Identifier: GPL-2.0-or-later
/* Lays the node's tables out in their file. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "netfilter/node/memory.h"

#define ES_NF_MEMORY_MAGIC 0x45534e46u /* "ESNF" */
/* New tables go after all others, so a file of an earlier layout is one that ends too early. */
#define ES_NF_MEMORY_LAYOUT	  4
#define ES_NF_MEMORY_LAYOUT_FIRST 2
#define ES_NF_BOOT_ID		  36

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

/* struct es_nf_memory_header - the file's first page: whose it is */
struct es_nf_memory_header {
	__u32 magic;
	__u32 layout;
	__u32 abi;
	__u32 counters;
	__u32 decision_sets;
	__u32 pad;
	__u64 bytes;
	__u64 namespace;
	char boot[ES_NF_BOOT_ID + 4];
};

/* The machine's boot; what was noted before it means nothing any more. */
static void es_nf_boot_read(char *ret_boot)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (read(fd, ret_boot, ES_NF_BOOT_ID) != ES_NF_BOOT_ID)
		memset(ret_boot, 0, ES_NF_BOOT_ID);
	close(fd);
}

/* A network namespace's number until the next boot; 0 before Linux 5.14, which does not tell. */
static __u64 es_nf_namespace(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(__u64);
	__u64 cookie = 0;

	if (fd < 0)
		return 0;
	if (getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &len))
		cookie = 0;
	close(fd);
	return cookie;
}

static size_t es_nf_pages(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

/* Sets where each table of @layout is, from @at on, unless @at is NULL. Returns the size of all. */
static size_t es_nf_memory_lay(struct es_nf_memory *t, char *at, unsigned int layout)
{
	size_t off = es_nf_pages(sizeof(struct es_nf_memory_header));

#define ES_NF_LAY(member, count)                                                                             \
	do {                                                                                                 \
		t->member = at ? (void *)(at + off) : (void *)0;                                             \
		off += es_nf_pages(sizeof(*t->member) * (count));                                            \
	} while (0)
	t->state_off = off;
	ES_NF_LAY(state, 1);
	t->decisions_off = off;
	ES_NF_LAY(decisions, t->decision_sets);
	ES_NF_LAY(settled, es_settled_sets(t->decision_sets));
	ES_NF_LAY(replays, (size_t)ES_NODES_MAX * ES_STREAMS_MAX);
	t->resets_off = off;
	ES_NF_LAY(resets, ES_RESETS);
	ES_NF_LAY(strays, ES_STRAYS);
	ES_NF_LAY(syns, ES_SYNS);
	ES_NF_LAY(firsts, ES_FIRSTS);
	ES_NF_LAY(heard_flows, ES_HEARD_FLOWS);
	ES_NF_LAY(fresh, ES_NF_FRESH);
	ES_NF_LAY(unproven, ES_NF_UNPROVEN_SETS);
	ES_NF_LAY(counters, ES_COUNTER_COUNT);
	if (layout >= 3)
		ES_NF_LAY(connections, ES_NF_CONNECTION_SETS);
	if (layout >= 4)
		ES_NF_LAY(programs, ES_NF_PROGRAM_NOTE_SETS);
#undef ES_NF_LAY
	return off;
}

/*
 * Was it written in this network namespace? The file's name has a number that a new namespace may get when
 * another is gone.
 */
static int es_nf_memory_was_here(int fd, const struct es_nf_memory_header *wanted)
{
	struct es_nf_memory_header found;

	return pread(fd, &found, sizeof(found), 0) == (ssize_t)sizeof(found) &&
	       found.magic == wanted->magic && found.namespace == wanted->namespace &&
	       !memcmp(found.boot, wanted->boot, sizeof(found.boot));
}

/* Does the file have the wanted header and size? */
static int es_nf_memory_is(int fd, const struct es_nf_memory_header *wanted)
{
	struct es_nf_memory_header found;
	struct stat st;

	return !fstat(fd, &st) && (__u64)st.st_size == wanted->bytes &&
	       pread(fd, &found, sizeof(found), 0) == (ssize_t)sizeof(found) &&
	       !memcmp(&found, wanted, sizeof(found));
}

/*
 * Extends a file of an earlier layout by the tables that it lacks, which are empty. Returns 1, 0 if it is
 * none, or -errno.
 */
static int es_nf_memory_extend(int fd, struct es_nf_memory *t, const struct es_nf_memory_header *wanted)
{
	struct es_nf_memory_header before = *wanted;

	for (before.layout = ES_NF_MEMORY_LAYOUT_FIRST; before.layout < wanted->layout; before.layout++) {
		before.bytes = es_nf_memory_lay(t, NULL, before.layout);
		if (!es_nf_memory_is(fd, &before))
			continue;
		if (ftruncate(fd, (off_t)wanted->bytes))
			return -errno;
		return pwrite(fd, wanted, sizeof(*wanted), 0) == (ssize_t)sizeof(*wanted) ? 1 : -EIO;
	}
	return 0;
}

/* The header comes last, so a half-made file is not taken for one. */
static int es_nf_memory_make(int fd, const struct es_nf_memory_header *header)
{
	if (ftruncate(fd, 0) || ftruncate(fd, (off_t)header->bytes))
		return -errno;
	return pwrite(fd, header, sizeof(*header), 0) == (ssize_t)sizeof(*header) ? 0 : -EIO;
}

int es_nf_memory_open(const char *path, unsigned int decision_sets, struct es_nf_memory *ret_memory)
{
	struct es_nf_memory t = {.decision_sets = decision_sets};
	struct es_nf_memory_header header = {
		.magic = ES_NF_MEMORY_MAGIC,
		.layout = ES_NF_MEMORY_LAYOUT,
		.abi = ES_ABI_VERSION,
		.counters = ES_COUNTER_COUNT,
		.decision_sets = decision_sets,
		.namespace = es_nf_namespace(),
	};
	int rc;

	es_nf_boot_read(header.boot);
	t.bytes = es_nf_memory_lay(&t, NULL, ES_NF_MEMORY_LAYOUT);
	header.bytes = t.bytes;
	t.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (t.fd < 0)
		return -errno;
	if (flock(t.fd, LOCK_EX | LOCK_NB)) {
		rc = errno == EWOULDBLOCK ? -EBUSY : -errno;
		goto err_close;
	}
	t.adopted = es_nf_memory_is(t.fd, &header);
	if (!t.adopted) {
		rc = es_nf_memory_extend(t.fd, &t, &header);
		if (rc < 0)
			goto err_close;
		t.adopted = rc;
	}
	t.replaced = !t.adopted && es_nf_memory_was_here(t.fd, &header);
	rc = t.adopted ? 0 : es_nf_memory_make(t.fd, &header);
	if (rc)
		goto err_close;
	t.at = mmap(NULL, t.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, t.fd, 0);
	if (t.at == MAP_FAILED) {
		rc = -errno;
		goto err_close;
	}
	es_nf_memory_lay(&t, t.at, ES_NF_MEMORY_LAYOUT);
	*ret_memory = t;
	return 0;

err_close:
	close(t.fd);
	return rc;
}

void es_nf_memory_close(struct es_nf_memory *memory)
{
	if (!memory->at)
		return;
	munmap(memory->at, memory->bytes);
	close(memory->fd);
	memset(memory, 0, sizeof(*memory));
}
