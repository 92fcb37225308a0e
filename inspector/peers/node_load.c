// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads from /proc how busy CPU and disks are, and whether the server listens. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/peers/node_load.h"

#define TCP_LISTEN	 0x0a
#define ES_READ_AGAIN_NS 250000000ULL

/* Fields of /proc/stat's first line, see proc(5): "cpu user nice system idle iowait irq softirq steal ..." */
enum { CPU_IDLE = 3, CPU_IOWAIT = 4, CPU_FIELDS = 8 };

static void cpu_read(struct es_node_load *load)
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

static unsigned int share(double busy_ns, unsigned long long elapsed_ns)
{
	double share = elapsed_ns ? busy_ns * 1000 / (double)elapsed_ns : 0;

	return share > 1000 ? 1000 : (unsigned int)share;
}

int es_node_load_stall(struct es_node_load *load, const char *text, unsigned long long elapsed_ns)
{
	const char *total = strncmp(text, "some ", 5) != 0 ? NULL : strstr(text, "total=");
	unsigned long long stall_us;

	if (!total)
		return -1;
	stall_us = strtoull(total + strlen("total="), NULL, 10);
	if (elapsed_ns && stall_us >= load->last_stall_us)
		load->disk = share((double)(stall_us - load->last_stall_us) * 1e3, elapsed_ns);
	load->last_stall_us = stall_us;
	return 0;
}

/* Returns by how much the disk's time has grown; 0 for one that is new, or one too many. */
static unsigned long long disk_grown(struct es_node_load *load, const char *name, unsigned long long busy_ms)
{
	unsigned long long before;
	unsigned int i = 0;

	while (i < load->disk_count && strcmp(load->disks[i].name, name) != 0)
		i++;
	if (i == ES_NODE_DISKS)
		return 0;
	if (i == load->disk_count) {
		snprintf(load->disks[i].name, sizeof(load->disks[i].name), "%s", name);
		load->disks[load->disk_count++].busy_ms = busy_ms;
	}
	before = load->disks[i].busy_ms;
	load->disks[i].busy_ms = busy_ms;
	return busy_ms > before ? busy_ms - before : 0;
}

/*
 * A line of /proc/diskstats (Documentation/admin-guide/iostats.rst): major, minor, name, and numbers, the
 * tenth of which is the time spent doing I/Os. Returns 0 for a device that never did any, or for no line.
 */
static unsigned long long disk_line(char *line, const char **ret_name)
{
	char *save, *field = strtok_r(line, " ", &save);

	for (int i = 0; field && i < 12; i++) {
		field = strtok_r(NULL, " ", &save);
		if (i == 1)
			*ret_name = field;
	}
	return field ? strtoull(field, NULL, 10) : 0;
}

void es_node_load_disks(struct es_node_load *load, char *text, unsigned long long elapsed_ns)
{
	unsigned long long busy_ms, grown, most = 0;
	const char *name;
	char *save;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		busy_ms = disk_line(line, &name);
		if (!busy_ms)
			continue;
		grown = disk_grown(load, name, busy_ms);
		most = grown > most ? grown : most;
	}
	if (elapsed_ns)
		load->disk = share((double)most * 1e6, elapsed_ns);
}

/* Reads a file of /proc as a whole, cut at @size. Returns -1 if there is none, or it cannot be read. */
static int text_read(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "re");
	size_t len;

	if (!file)
		return -1;
	len = fread(text, 1, size - 1, file);
	fclose(file);
	text[len] = 0;
	return len ? 0 : -1;
}

void es_node_load_read(struct es_node_load *load, unsigned long long now_ns)
{
	unsigned long long elapsed_ns = load->last_ns ? now_ns - load->last_ns : 0;
	char text[16384];

	if (load->last_ns && elapsed_ns < ES_READ_AGAIN_NS)
		return;
	load->last_ns = now_ns;
	cpu_read(load);
	if (!text_read("/proc/pressure/io", text, sizeof(text)) &&
	    !es_node_load_stall(load, text, elapsed_ns))
		return;
	if (!text_read("/proc/diskstats", text, sizeof(text)))
		es_node_load_disks(load, text, elapsed_ns);
}

/*
 * Does a socket on @address take connections of a service? @is_v6: one of IPv6; on :: it may take IPv4 too.
 */
static int is_service(const struct es_conf *conf, const struct es_addr *address, int is_v6, unsigned int port)
{
	int is_any = !es_addr_is_set(address);

	for (unsigned int i = 0; i < conf->service_count; i++)
		if (conf->services[i].port == port &&
		    (is_any ? is_v6 || es_conf_service_of(&conf->services[i], 0)
			    : es_conf_service_has(&conf->services[i], address)))
			return 1;
	return 0;
}

/* The kernel prints words of the machine's own order, in hexadecimal. Returns 0 or -1. */
static int address_parse(const char *text, int is_v6, struct es_addr *ret)
{
	const size_t words = is_v6 ? 4 : 1;

	memset(ret, 0, sizeof(*ret));
	if (strspn(text, "0123456789ABCDEF") != 8 * words)
		return -1;
	for (size_t i = 0; i < words; i++) {
		char digits[9] = "";

		memcpy(digits, text + 8 * i, 8);
		ret->w[i] = (__be32)strtoul(digits, NULL, 16);
	}
	if (!is_v6 && ret->w[0])
		*ret = es_addr_from_v4(ret->w[0]);
	return 0;
}

/* One line of /proc/net/tcp or tcp6: a listener on a service? -1 for a socket that does not listen. */
static int line_listens(const struct es_conf *conf, char *line, int is_v6)
{
	char *save, *address, *port, *state;
	struct es_addr at;

	if (!strtok_r(line, " ", &save)) /* its number */
		return 0;
	address = strtok_r(NULL, " ", &save);
	if (!strtok_r(NULL, " ", &save)) /* its peer */
		return 0;
	state = strtok_r(NULL, " ", &save);
	port = address ? strchr(address, ':') : NULL;
	if (!port || !state || address_parse(address, is_v6, &at))
		return 0; /* the headings */
	if (strtoul(state, NULL, 16) != TCP_LISTEN)
		return -1;
	return is_service(conf, &at, is_v6, (unsigned int)strtoul(port + 1, NULL, 16));
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
