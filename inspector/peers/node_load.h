/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NODE_LOAD_H
#define ES_NODE_LOAD_H

/*
 * How busy this machine is, and whether its server listens, as the kernel tells it.
 */
#include "inspector/config/config.h"

#define ES_NODE_DISKS 32

/* struct es_node_disk - @name: as /proc/diskstats has it; @busy_ms: of its life */
struct es_node_disk {
	char name[32];
	unsigned long long busy_ms;
};

/**
 * struct es_node_load
 * @cpu: busy share, 1/1000; @disk: share of time in which some process waited for a disk; where the kernel
 * does not tell that (PSI), in which the busiest disk had something to do
 * @last_*, @disks: for the next reading
 */
struct es_node_load {
	unsigned int cpu;
	unsigned int disk;
	unsigned long long last_busy;
	unsigned long long last_total;
	unsigned long long last_ns;
	unsigned long long last_stall_us;
	unsigned int disk_count;
	struct es_node_disk disks[ES_NODE_DISKS];
};

/**
 * es_node_load_read() - shares since the last reading
 * Reads nothing new within a quarter of a second: the kernel counts in ticks of up to 10 ms. A value that
 * cannot be read stays as it was.
 */
void es_node_load_read(struct es_node_load *load, unsigned long long now_ns);

/* es_node_load_stall() - the text of /proc/pressure/io; returns 0, -1 if it is none */
int es_node_load_stall(struct es_node_load *load, const char *text, unsigned long long elapsed_ns);

/* es_node_load_disks() - the text of /proc/diskstats, which is taken apart */
void es_node_load_disks(struct es_node_load *load, char *text, unsigned long long elapsed_ns);

/* es_node_listens() - does anybody listen on one of the services? 1 also if the kernel does not tell. */
int es_node_listens(const struct es_conf *conf);

#endif
