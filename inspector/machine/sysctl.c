// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads and sets the kernel's settings, and keeps note of what they were. Nothing here puts them back: the
 * datapath outlives the daemon, and needs them as long as it is attached.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "inspector/machine/sysctl.h"

static const char es_sysctl_root[] = "/proc/sys/";

int es_sysctl_read(const char *path, int *ret_value)
{
	FILE *f = fopen(path, "re");
	int rc;

	if (!f)
		return -errno;
	rc = fscanf(f, "%d", ret_value) == 1 ? 0 : -EIO; /* NOLINT(cert-err34-c): the kernel's own number */
	fclose(f);
	return rc;
}

static int es_sysctl_write(const char *path, int value)
{
	FILE *f = fopen(path, "we");
	int rc = 0;

	if (!f)
		return -errno;
	if (fprintf(f, "%d\n", value) < 0)
		rc = -EIO;
	if (fclose(f))
		rc = -errno;
	return rc;
}

static int es_sysctl_is_noted(FILE *f, const char *key)
{
	size_t len = strlen(key);
	char line[256];

	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, key, len) && line[len] == '\t')
			return 1;
	return 0;
}

static int es_sysctl_note(const char *found, const char *key, int before, int after)
{
	FILE *f = fopen(found, "a+e");
	int rc = 0;

	if (!f)
		return -errno;
	if (!es_sysctl_is_noted(f, key) && fprintf(f, "%s\t%d\t%d\n", key, before, after) < 0)
		rc = -EIO;
	if (fclose(f))
		rc = -errno;
	return rc;
}

int es_sysctl_set(const char *found, const char *path, int value)
{
	int before = 0, rc = es_sysctl_read(path, &before);

	if (rc || before == value)
		return rc;
	rc = es_sysctl_note(found, path + sizeof(es_sysctl_root) - 1, before, value);
	return rc ? rc : es_sysctl_write(path, value);
}
