// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * An inspector as in Fig. 3 of the DTS paper: uploads go to one node, everything else is served here.
 * usage: upload-inspector ADDRESS PORT UPLOAD-NODE
 */
#define _GNU_SOURCE 1 /* memmem() */
#include <earshot/handover.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *upload_node;

static void *inspect(void *arg)
{
	static const char sorry[] =
		"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
	int fd = (int)(intptr_t)arg, rc = -1;
	char head[8192];
	size_t len = 0;
	ssize_t got;

	/* As much of the head as there is; what is behind it in the kernel's buffer travels along unread. */
	do {
		got = read(fd, head + len, sizeof(head) - len);
		len += got > 0 ? (size_t)got : 0;
	} while (got > 0 && len < sizeof(head) && !memmem(head, len, "\r\n\r\n", 4));
	if (len > 4 && (!memcmp(head, "POST", 4) || !memcmp(head, "PUT ", 4)))
		rc = request_handover(fd, upload_node, head, len);
	if (rc && len && rc != -ECONNRESET && rc != -ETIMEDOUT)
		rc = request_handover(fd, NULL, head, len); /* to the server of this node */
	if (rc && len && rc != -ECONNRESET && rc != -ETIMEDOUT && write(fd, sorry, sizeof(sorry) - 1) < 0)
		perror("write");
	close(fd);
	return NULL;
}

int main(int argc, char **argv)
{
	struct addrinfo numeric = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *at;
	int listener, on = 1, fd;
	pthread_t thread;

	if (argc != 4 || getaddrinfo(argv[1], argv[2], &numeric, &at))
		return fprintf(stderr, "usage: upload-inspector ADDRESS PORT UPLOAD-NODE\n"), 2;
	upload_node = argv[3];
	listener = socket(at->ai_family, SOCK_STREAM, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, at->ai_addr, at->ai_addrlen) || listen(listener, 1024))
		return perror("listen"), 1;
	while ((fd = accept(listener, NULL, NULL)) >= 0)
		if (pthread_create(&thread, NULL, inspect, (void *)(intptr_t)fd) || pthread_detach(thread))
			close(fd);
	return perror("accept"), 1;
}
