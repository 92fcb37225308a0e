/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_WINDOW_H
#define ES_SERVE_WINDOW_H

/*
 * The congestion window of a connection that moves. It says what the network between the client and the nodes
 * has carried, which does not change with the node; a socket that the kernel makes anew would find out again,
 * from ten segments (RFC 9040 section 4; RFC 6928). There is no socket option for it, so a small BPF program
 * makes one, for this program's sockets alone: those of its control group.
 */
#define ES_WINDOW_LEVEL	 6	/* IPPROTO_TCP */
#define ES_WINDOW_OPTION 0x4573 /* no option of any kernel's */
#define ES_WINDOW_MAX	 65535

/**
 * es_window_attach() - make the option, for the sockets of this process's group and those below
 * @ret_fd: it exists until this is closed, in all processes
 * Returns 0 or -errno: -ENOENT without control groups of version 2, -EPERM without CAP_BPF and CAP_NET_ADMIN.
 */
int es_window_attach(int *ret_fd);

/**
 * es_window_of() - the window that the connection's next socket may begin with, in segments, up to
 * ES_WINDOW_MAX
 * 0: as any. After a pause this one would begin anew, too (RFC 5681 section 4.1).
 */
unsigned int es_window_of(int fd);

/* es_window_set() - before anything is sent; it is no error that there is no such option */
void es_window_set(int fd, unsigned int segments);

#endif
