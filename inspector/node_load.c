// SPDX-License-Identifier: GPL-2.0-or-later
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include "inspector/node_load.h"

#define TCP_LISTEN 0x0a

void es_node_load_read(struct es_node_load *load)
{
	unsigned long long user, nice, system, idle, iowait, irq, softirq, steal, busy, total;
	FILE *file = fopen("/proc/stat", "re");
	int fields;

	if (!file)
		return;
	fields = fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle,
			&iowait, &irq, &softirq, &steal);
	fclose(file);
	if (fields != 8)
		return;
	busy = user + nice + system + irq + softirq + steal;
	total = busy + idle + iowait;
	if (total > load->last_total)
		load->cpu = (unsigned int)((busy - load->last_busy) * 1000 / (total - load->last_total));
	load->last_busy = busy;
	load->last_total = total;
}

static int is_service(const struct es_conf *conf, unsigned int v4, unsigned int port)
{
	for (unsigned int i = 0; i < conf->service_count; i++)
		if (conf->services[i].port == port && (!v4 || conf->services[i].address.w[3] == v4))
			return 1;
	return 0;
}

/* Listening sockets come first, so the connections need not be read. Returns -1 if there is no such file. */
static int listens(const struct es_conf *conf, const char *path, int is_v6)
{
	FILE *file = fopen(path, "re");
	char text[512], address[33];
	unsigned int port, state, v4;
	int found = 0;

	if (!file)
		return -1;
	while (!found && fgets(text, sizeof(text), file)) {
		if (sscanf(text, " %*d: %32[0-9A-F]:%X %*[0-9A-F]:%*X %X", address, &port, &state) != 3)
			continue;
		if (state != TCP_LISTEN)
			break;
		/* The kernel prints words of the machine's own order. A v6 listener on :: takes IPv4 too. */
		if (is_v6)
			found = !strcmp(address, "00000000000000000000000000000000") &&
				is_service(conf, 0, port);
		else
			found = sscanf(address, "%X", &v4) == 1 && is_service(conf, v4, port);
	}
	fclose(file);
	return found;
}

int es_node_listens(const struct es_conf *conf)
{
	int v4 = listens(conf, "/proc/net/tcp", 0);

	if (v4)
		return 1;
	return listens(conf, "/proc/net/tcp6", 1) == 1;
}
