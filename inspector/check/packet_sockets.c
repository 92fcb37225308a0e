// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads which processes hear IP packets by a packet socket (facts.h). It judges nothing.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inspector/check/facts.h"

#define PROTOCOL_IP 0x0800

/* "socket:[12345]": is it one of them? NULL if not. */
static struct es_facts_packet_socket *socket_of(const char *link, struct es_facts_packet_socket *sockets,
						int count)
{
	unsigned long inode;
	char *end;

	if (strncmp(link, "socket:[", 8) != 0)
		return NULL;
	inode = strtoul(link + 8, &end, 10);
	for (int i = 0; *end == ']' && i < count; i++)
		if (sockets[i].inode == inode)
			return &sockets[i];
	return NULL;
}

static void name_read(const struct es_facts *facts, long process, char *ret_name, size_t size)
{
	char path[64], *text = NULL;

	snprintf(path, sizeof(path), "/proc/%ld/comm", process);
	if (es_facts_file(facts, path, &text))
		return;
	snprintf(ret_name, size, "%.*s", (int)strcspn(text, "\n"), text);
	free(text);
}

static void process_look(const struct es_facts *facts, long process, struct es_facts_packet_socket *sockets,
			 int count)
{
	char path[512], link[64];
	struct dirent *entry;
	DIR *directory;

	snprintf(path, sizeof(path), "%s/proc/%ld/fd", facts->root, process);
	directory = opendir(path);
	while (directory && (entry = readdir(directory))) {
		ssize_t len = readlinkat(dirfd(directory), entry->d_name, link, sizeof(link) - 1);
		struct es_facts_packet_socket *found;

		link[len < 0 ? 0 : len] = 0;
		found = socket_of(link, sockets, count);
		if (!found || found->process)
			continue;
		found->process = process;
		name_read(facts, process, found->name, sizeof(found->name));
	}
	if (directory)
		closedir(directory);
}

static void owners_find(const struct es_facts *facts, struct es_facts_packet_socket *sockets, int count)
{
	char path[512], *end;
	struct dirent *entry;
	DIR *proc;

	snprintf(path, sizeof(path), "%s/proc", facts->root);
	proc = opendir(path);
	while (proc && (entry = readdir(proc))) {
		long process = strtol(entry->d_name, &end, 10);

		if (process > 0 && !*end)
			process_look(facts, process, sockets, count);
	}
	if (proc)
		closedir(proc);
}

/* "00000000a1b2c3d4 3      3    0800   2     1 0      0      12345": protocol, interface, ..., inode */
int es_facts_packet_sockets(const struct es_facts *facts, struct es_facts_packet_socket *ret_sockets, int max)
{
	char *text = NULL, *line, *rest;
	int rc = es_facts_file(facts, "/proc/net/packet", &text), count = 0;

	if (rc)
		return rc;
	for (rest = text; count < max && (line = strsep(&rest, "\n"));) {
		struct es_facts_packet_socket found = {};
		unsigned int protocol;

		/* NOLINTNEXTLINE(cert-err34-c): the kernel's own numbers */
		if (sscanf(line, "%*s %*s %*s %x %u %*s %*s %*s %lu", &protocol, &found.ifindex,
			   &found.inode) == 3 &&
		    protocol == PROTOCOL_IP)
			ret_sockets[count++] = found;
	}
	free(text);
	if (count)
		owners_find(facts, ret_sockets, count);
	return count;
}
