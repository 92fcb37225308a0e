/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CLOSE_APART_H
#define ES_CLOSE_APART_H

/*
 * Closing what a program has sent us. Where ours is the last descriptor, close() may block: of a socket that
 * lingers, for as long as the program has set; of a file of FUSE or of a network, for as long as its server
 * hangs.
 */

/*
 * So many may hang at a time. A thread that takes descriptors waits for one to end, es_close_apart_is_full(),
 * before it takes more.
 */
#define ES_CLOSE_APART_MAX 64

/* es_close_apart() - close @fd; does not wait for it if that can last. */
void es_close_apart(int fd);

int es_close_apart_is_full(void);

#endif
