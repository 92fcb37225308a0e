// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads corosync's map and whether it is quorate, into text (cmap.h).
 *
 * The libraries are loaded when asked, not linked: a static cluster's nodes need no corosync package. And
 * they are used in a child process, because their calls may block for ever on a corosync that is stopped; so
 * the command always ends.
 */
#include <corosync/cmap.h>
#include <corosync/quorum.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inspector/check/facts.h"

#define TIMEOUT_MS     2500 /* a call to a corosync that was killed takes 2 s */
#define TEXT_MAX_BYTES (4U * 1024 * 1024)
#define VALUE_BYTES    512

struct cmap_library {
	typeof(&cmap_initialize_map) initialize;
	typeof(&cmap_finalize) finalize;
	typeof(&cmap_iter_init) iter_init;
	typeof(&cmap_iter_next) iter_next;
	typeof(&cmap_iter_finalize) iter_finalize;
	typeof(&cmap_get) get;
};

/* The keys that the checks ask for. Nothing else leaves the child, since totem.key may hold a secret. */
static const struct {
	cmap_map_t map;
	const char *prefix;
} wanted[] = {
	{CMAP_MAP_ICMAP, "totem.token"},	 {CMAP_MAP_ICMAP, "totem.transport"},
	{CMAP_MAP_ICMAP, "totem.crypto_"},	 {CMAP_MAP_ICMAP, "totem.secauth"},
	{CMAP_MAP_ICMAP, "totem.interface."},	 {CMAP_MAP_ICMAP, "quorum."},
	{CMAP_MAP_ICMAP, "nodelist."},		 {CMAP_MAP_ICMAP, "runtime.config.totem."},
	{CMAP_MAP_ICMAP, "runtime.votequorum."}, {CMAP_MAP_STATS, "stats.knet.node"},
	{CMAP_MAP_STATS, "stats.srp."},
};

static int cmap_load(struct cmap_library *library)
{
	void *handle = dlopen("libcmap.so.4", RTLD_NOW | RTLD_LOCAL);
	const struct {
		const char *name;
		void *to;
	} symbols[] = {
		{"cmap_initialize_map", &library->initialize},	 {"cmap_finalize", &library->finalize},
		{"cmap_iter_init", &library->iter_init},	 {"cmap_iter_next", &library->iter_next},
		{"cmap_iter_finalize", &library->iter_finalize}, {"cmap_get", &library->get},
	};
	size_t i;

	for (i = 0; handle && i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *symbol = dlsym(handle, symbols[i].name);

		if (!symbol)
			return -ELIBACC;
		memcpy(symbols[i].to, &symbol, sizeof(symbol));
	}
	return handle ? 0 : -ELIBACC;
}

static int error_of(cs_error_t error)
{
	switch (error) {
	case CS_OK:
		return 0;
	case CS_ERR_ACCESS:
	case CS_ERR_SECURITY:
		return -EACCES;
	case CS_ERR_TIMEOUT:
		return -ETIMEDOUT;
	default: /* CS_ERR_LIBRARY, CS_ERR_TRY_AGAIN: nobody listens there */
		return -ECONNREFUSED;
	}
}

static void write_value(FILE *out, const char *key, cmap_value_types_t type, const void *value)
{
	switch (type) {
	case CMAP_VALUETYPE_INT8:
		fprintf(out, "%s = %d\n", key, *(const signed char *)value);
		return;
	case CMAP_VALUETYPE_UINT8:
		fprintf(out, "%s = %u\n", key, *(const unsigned char *)value);
		return;
	case CMAP_VALUETYPE_INT16:
		fprintf(out, "%s = %d\n", key, *(const short *)value);
		return;
	case CMAP_VALUETYPE_UINT16:
		fprintf(out, "%s = %u\n", key, *(const unsigned short *)value);
		return;
	case CMAP_VALUETYPE_INT32:
		fprintf(out, "%s = %d\n", key, *(const int *)value);
		return;
	case CMAP_VALUETYPE_UINT32:
		fprintf(out, "%s = %u\n", key, *(const unsigned int *)value);
		return;
	case CMAP_VALUETYPE_INT64:
		fprintf(out, "%s = %lld\n", key, *(const long long *)value);
		return;
	case CMAP_VALUETYPE_UINT64:
		fprintf(out, "%s = %llu\n", key, *(const unsigned long long *)value);
		return;
	case CMAP_VALUETYPE_STRING:
		fprintf(out, "%s = %.*s\n", key, (int)strcspn(value, "\r\n"), (const char *)value);
		return;
	default: /* no check asks for a float or for bytes */
		return;
	}
}

static void write_keys(FILE *out, const struct cmap_library *library, cmap_handle_t handle,
		       const char *prefix)
{
	char key[CMAP_KEYNAME_MAXLEN + 1];
	cmap_iter_handle_t iter;
	cmap_value_types_t type;
	size_t len;

	if (library->iter_init(handle, prefix, &iter) != CS_OK)
		return;
	while (library->iter_next(handle, iter, key, &len, &type) == CS_OK) {
		char value[VALUE_BYTES] __attribute__((aligned(8))) = "";

		len = sizeof(value) - 1;
		if (library->get(handle, key, value, &len, &type) == CS_OK)
			write_value(out, key, type, value);
	}
	library->iter_finalize(handle, iter);
}

static int write_map(FILE *out, const struct cmap_library *library, cmap_map_t map)
{
	cmap_handle_t handle;
	int rc = error_of(library->initialize(&handle, map));
	size_t i;

	if (rc)
		return rc;
	for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (wanted[i].map == map)
			write_keys(out, library, handle, wanted[i].prefix);
	library->finalize(handle);
	return 0;
}

static void write_quorate(FILE *out)
{
	void *library = dlopen("libquorum.so.5", RTLD_NOW | RTLD_LOCAL);
	typeof(&quorum_initialize) initialize = NULL;
	typeof(&quorum_getquorate) getquorate = NULL;
	quorum_callbacks_t callbacks = {};
	quorum_handle_t handle;
	unsigned int type;
	void *symbol;
	int quorate;

	symbol = library ? dlsym(library, "quorum_initialize") : NULL;
	memcpy(&initialize, &symbol, sizeof(symbol));
	symbol = library ? dlsym(library, "quorum_getquorate") : NULL;
	memcpy(&getquorate, &symbol, sizeof(symbol));
	if (initialize && getquorate && initialize(&handle, &callbacks, &type) == CS_OK &&
	    getquorate(handle, &quorate) == CS_OK)
		fprintf(out, "quorate = %d\n", !!quorate);
}

/* The child: text to @fd, and an errno as exit status. Without clean-up that could block. */
static __attribute__((noreturn)) void child(int fd)
{
	struct cmap_library library;
	FILE *out = fdopen(fd, "w");
	int rc = out ? cmap_load(&library) : -ENOMEM;

	if (!rc)
		rc = write_map(out, &library, CMAP_MAP_ICMAP);
	if (!rc) {
		write_map(out, &library, CMAP_MAP_STATS);
		write_quorate(out);
		if (fflush(out))
			rc = -EIO;
	}
	_exit(-rc);
}

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int read_all(int fd, char **ret_text)
{
	const long deadline = now_ms() + TIMEOUT_MS;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char *text = malloc(TEXT_MAX_BYTES);
	size_t used = 0;
	ssize_t n = -1;
	int rc = text ? 0 : -ENOMEM;

	while (!rc && n && used < TEXT_MAX_BYTES - 1) {
		long left = deadline - now_ms();

		if (left <= 0 || poll(&p, 1, (int)left) <= 0) {
			rc = -ETIMEDOUT;
			break;
		}
		n = read(fd, text + used, TEXT_MAX_BYTES - 1 - used);
		if (n < 0)
			rc = -errno;
		else
			used += (size_t)n;
	}
	if (rc) {
		free(text);
		return rc;
	}
	text[used] = 0;
	*ret_text = text;
	return 0;
}

void es_facts_read_corosync(struct es_facts *facts)
{
	struct es_facts_corosync *c = &facts->corosync;
	int fds[2], status = 0;
	pid_t pid;

	c->rc = -EIO;
	if (pipe2(fds, O_CLOEXEC))
		return;
	pid = fork();
	if (!pid) {
		close(fds[0]);
		child(fds[1]);
	}
	close(fds[1]);
	if (pid > 0) {
		c->rc = read_all(fds[0], &c->text);
		if (c->rc)
			kill(pid, SIGKILL);
		if (waitpid(pid, &status, 0) == pid && !c->rc)
			c->rc = WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
		if (c->rc) {
			free(c->text);
			c->text = NULL;
		}
	}
	close(fds[0]);
}
