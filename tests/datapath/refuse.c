// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A kernel that refuses things, by LD_PRELOAD: BPF programs whose names stand in EARSHOT_REFUSED, between
 * blanks, get EPERM when they are loaded; with SOCK_DESTROY in it, so does who ends a socket by sock_diag.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/bpf.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>

static int is_refused(const char *name)
{
	const char *list = getenv("EARSHOT_REFUSED");
	char padded[256], word[64];

	if (!list || !*name)
		return 0;
	snprintf(padded, sizeof(padded), " %s ", list);
	snprintf(word, sizeof(word), " %s ", name);
	return strstr(padded, word) != NULL;
}

__attribute__((visibility("default"))) long syscall(long number, ...)
{
	static long (*real)(long number, ...);
	const union bpf_attr *attr;
	long a[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	attr = (const union bpf_attr *)a[1];
	if (number == __NR_bpf && a[0] == BPF_PROG_LOAD && is_refused(attr->prog_name)) {
		errno = EPERM;
		return -1;
	}
	if (!real)
		real = (long (*)(long number, ...))dlsym(RTLD_NEXT, "syscall");
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

__attribute__((visibility("default"))) ssize_t sendto(int fd, const void *data, size_t len, int flags,
						      const struct sockaddr *to, socklen_t to_len)
{
	static ssize_t (*real)(int, const void *, size_t, int, const struct sockaddr *, socklen_t);

	if (to && to->sa_family == AF_NETLINK && len >= sizeof(struct nlmsghdr) &&
	    ((const struct nlmsghdr *)data)->nlmsg_type == SOCK_DESTROY && is_refused("SOCK_DESTROY")) {
		errno = EPERM;
		return -1;
	}
	if (!real)
		real = (ssize_t(*)(int, const void *, size_t, int, const struct sockaddr *, socklen_t))dlsym(
			RTLD_NEXT, "sendto");
	return real(fd, data, len, flags, to, to_len);
}
