// SPDX-License-Identifier: GPL-2.0-or-later
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/node_load.h"

#define TCP_LISTEN 0x0a

/* Fields of /proc/stat's first line, see proc(5): "cpu user nice system idle iowait irq softirq steal ..." */
enum { CPU_IDLE = 3, CPU_IOWAIT = 4, CPU_FIELDS = 8 };

void es_node_load_read(struct es_node_load *load)
{
	unsigned long long busy = 0, total = 0, value;
	FILE *file = fopen("/proc/stat", "re");
	char text[512], *at = text + 3, *end;
	int ok;

	if (!file)
		return;
	ok = fgets(text, sizeof(text), file) != NULL;
	fclose(file);
	if (!ok || strncmp(text, "cpu", 3) != 0)
		return;
	for (int i = 0; i < CPU_FIELDS; i++, at = end) {
		value = strtoull(at, &end, 10);
		total += value;
		if (i != CPU_IDLE && i != CPU_IOWAIT)
			busy += value;
	}
	if (total > load->last_total && busy >= load->last_busy)
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

/* One line of /proc/net/tcp or tcp6: a listener on a service? -1 for a socket that does not listen. */
static int line_listens(const struct es_conf *conf, char *line, int is_v6)
{
	char *save, *address, *port, *state;

	if (!strtok_r(line, " ", &save)) /* its number */
		return 0;
	address = strtok_r(NULL, " ", &save);
	if (!strtok_r(NULL, " ", &save)) /* its peer */
		return 0;
	state = strtok_r(NULL, " ", &save);
	port = address ? strchr(address, ':') : NULL;
	if (!port || !state)
		return 0; /* the headings */
	*port++ = 0;
	if (strtoul(state, NULL, 16) != TCP_LISTEN)
		return -1;
	/* The kernel prints words of the machine's own order. A v6 listener on :: takes IPv4 too. */
	if (is_v6)
		return strspn(address, "0") == strlen(address) &&
		       is_service(conf, 0, (unsigned int)strtoul(port, NULL, 16));
	return is_service(conf, (unsigned int)strtoul(address, NULL, 16),
			  (unsigned int)strtoul(port, NULL, 16));
}

/* Listening sockets come first, so the connections need not be read. Returns -1 if there is no such file. */
static int listens(const struct es_conf *conf, const char *path, int is_v6)
{
	FILE *file = fopen(path, "re");
	char text[512];
	int found = 0;

	if (!file)
		return -1;
	if (fgets(text, sizeof(text), file)) /* the headings */
		while (!found && fgets(text, sizeof(text), file))
			found = line_listens(conf, text, is_v6);
	fclose(file);
	return found > 0;
}

int es_node_listens(const struct es_conf *conf)
{
	int v4 = listens(conf, "/proc/net/tcp", 0);

	if (v4)
		return 1;
	return listens(conf, "/proc/net/tcp6", 1) == 1;
}
