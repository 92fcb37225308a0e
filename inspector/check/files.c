// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Files that the checks read, below the root of the facts: sysctls and the tables of /proc/net, which always
 * are those of the network namespace that asks (sysfs is not). It judges nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspector/check/facts.h"

#define FILE_MAX_BYTES (16U * 1024 * 1024)

int es_facts_file(const struct es_facts *facts, const char *path, char **ret_text)
{
	char full[512], *text, *bigger;
	size_t size = 4096, used = 0;
	int rc = 0;
	FILE *file;

	snprintf(full, sizeof(full), "%s%s", facts->root, path);
	file = fopen(full, "re");
	if (!file)
		return -errno;
	text = malloc(size);
	while (text) {
		used += fread(text + used, 1, size - used - 1, file);
		if (used < size - 1)
			break;
		size *= 2;
		bigger = size <= FILE_MAX_BYTES ? realloc(text, size) : NULL;
		if (!bigger)
			free(text);
		text = bigger;
	}
	if (!text)
		rc = -ENOMEM;
	else if (ferror(file))
		rc = -EIO;
	fclose(file);
	if (rc) {
		free(text);
		return rc;
	}
	text[used] = 0;
	*ret_text = text;
	return 0;
}

int es_facts_sysctl(const struct es_facts *facts, const char *name, long *ret_values, int max)
{
	char path[256], *text = NULL, *at, *end;
	int rc, n = 0;

	snprintf(path, sizeof(path), "/proc/sys/%s", name);
	rc = es_facts_file(facts, path, &text);
	if (rc)
		return rc;
	for (at = text; n < max; at = end) {
		long value = strtol(at, &end, 10);

		if (end == at)
			break;
		ret_values[n++] = value;
	}
	free(text);
	return n ? n : -EINVAL;
}

/* "TCP: inuse 3 orphan 0 tw 8 alloc 5 mem 0" */
int es_facts_time_wait(const struct es_facts *facts, long *ret_count)
{
	char *text = NULL, *at, *end;
	int rc = es_facts_file(facts, "/proc/net/sockstat", &text);

	if (rc)
		return rc;
	at = strstr(text, "TCP: ");
	at = at ? strstr(at, " tw ") : NULL;
	if (at)
		*ret_count = strtol(at + 4, &end, 10);
	if (!at || end == at + 4)
		rc = -EINVAL;
	free(text);
	return rc;
}

/* "2    eth0            1     0     03bf0a4d0064" */
int es_facts_has_multicast(const struct es_facts *facts, const char *interface, const unsigned char *mac)
{
	char *text = NULL, *line, *rest, name[32], address[80], wanted[16];
	int rc, found = 0;

	rc = es_facts_file(facts, "/proc/net/dev_mcast", &text);
	if (rc)
		return rc;
	snprintf(wanted, sizeof(wanted), "%02x%02x%02x%02x%02x%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
		 mac[5]);
	for (rest = text; (line = strsep(&rest, "\n"));)
		if (sscanf(line, "%*s %31s %*s %*s %79s", name, address) == 2 && !strcmp(name, interface) &&
		    !strcmp(address, wanted))
			found = 1;
	free(text);
	return found;
}

/* "2    eth0            ff0200000000000000000001ff000100     1 00000004 0" */
int es_facts_has_group(const struct es_facts *facts, const char *interface, const struct es_addr *group)
{
	char *text = NULL, *line, *rest, name[32], address[80], wanted[33];
	int rc, found = 0;

	rc = es_facts_file(facts, "/proc/net/igmp6", &text);
	if (rc)
		return rc;
	for (size_t i = 0; i < sizeof(group->b); i++)
		snprintf(wanted + 2 * i, 3, "%02x", group->b[i]);
	for (rest = text; (line = strsep(&rest, "\n"));)
		if (sscanf(line, "%*s %31s %79s", name, address) == 2 && !strcmp(name, interface) &&
		    !strcmp(address, wanted))
			found = 1;
	free(text);
	return found;
}

/* "eth0  00000000  0100A8C0  0003  0 0 0  00000000  ...": interface, destination, ..., mask as the eighth */
int es_facts_default_interface(const struct es_facts *facts, char *ret_name, size_t size)
{
	char *text = NULL, *line, *rest, name[32], destination[16], mask[16];
	int rc;

	rc = es_facts_file(facts, "/proc/net/route", &text);
	if (rc)
		return rc;
	*ret_name = 0;
	for (rest = text; (line = strsep(&rest, "\n"));)
		if (!*ret_name &&
		    sscanf(line, "%31s %15s %*s %*s %*s %*s %*s %15s", name, destination, mask) == 3 &&
		    !strcmp(destination, "00000000") && !strcmp(mask, "00000000"))
			snprintf(ret_name, size, "%s", name);
	free(text);
	return 0;
}
