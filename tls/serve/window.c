// SPDX-License-Identifier: GPL-2.0-or-later
/* Finds the control group, and what there is to be told of a connection; window.bpf.c is the option. */
#include "tls/serve/window.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "window.skel.h"

#define PATH_SIZE 4096

/* Where systemd has version 2: alone, or beside version 1. */
static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

/* This process's group, below the mount, as cgroups(7) has it: "0::/path". */
static int read_group(char ret_group[PATH_SIZE])
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	int rc = -ENOENT;

	if (!file)
		return -errno;
	while (rc && fgets(ret_group, PATH_SIZE, file)) {
		if (strncmp(ret_group, "0::", 3) != 0)
			continue;
		ret_group[strcspn(ret_group, "\n")] = '\0';
		memmove(ret_group, ret_group + 3, strlen(ret_group + 3) + 1);
		rc = 0;
	}
	fclose(file);
	return rc;
}

/* Returns a descriptor of it, or -errno. */
static int open_group(void)
{
	char group[PATH_SIZE], path[PATH_SIZE + 64];
	int rc = read_group(group);

	for (size_t i = 0; !rc && i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		struct statfs fs;
		int fd;

		snprintf(path, sizeof(path), "%s%s", mounts[i], group);
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (!fstatfs(fd, &fs) && fs.f_type == CGROUP2_SUPER_MAGIC)
			return fd;
		close(fd);
	}
	return rc ? rc : -ENOENT;
}

/* Returns a descriptor of the program at @group, or -errno. */
static int attach_at(int group)
{
	struct bpf_object *object;
	const void *elf;
	size_t size;
	int rc, link;

	elf = earshot_window_bpf__elf_bytes(&size);
	object = bpf_object__open_mem(elf, size, NULL);
	if (!object)
		return -errno;
	rc = bpf_object__load(object);
	if (rc) {
		bpf_object__close(object);
		return rc;
	}
	link = bpf_link_create(bpf_program__fd(bpf_object__next_program(object, NULL)), group,
			       BPF_CGROUP_SETSOCKOPT, NULL);
	rc = link < 0 ? -errno : link;
	bpf_object__close(object);
	return rc;
}

int es_window_attach(int *ret_fd)
{
	int group = open_group(), link;

	if (group < 0)
		return group;
	libbpf_set_print(NULL); /* the caller says what it means */
	link = attach_at(group);
	close(group);
	if (link < 0)
		return link;
	*ret_fd = link;
	return 0;
}

unsigned int es_window_of(int fd)
{
	struct tcp_info info = {};
	socklen_t len = sizeof(info);

	if (getsockopt(fd, ES_WINDOW_LEVEL, TCP_INFO, &info, &len) ||
	    (unsigned long long)info.tcpi_last_data_sent * 1000 > info.tcpi_rto)
		return 0;
	return info.tcpi_snd_cwnd < ES_WINDOW_MAX ? info.tcpi_snd_cwnd : ES_WINDOW_MAX;
}

void es_window_set(int fd, unsigned int segments)
{
	const int begin = (int)segments;

	setsockopt(fd, ES_WINDOW_LEVEL, ES_WINDOW_OPTION, &begin, sizeof(begin));
}
