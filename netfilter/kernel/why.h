/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_KERNEL_WHY_H
#define ES_NETFILTER_KERNEL_WHY_H

/* struct es_nf_why - a sentence for people, why something could not be done; "": there is nothing to tell */
struct es_nf_why {
	char text[256];
};

/* es_nf_why() - write the sentence; @why may be NULL. Returns @error, which is negative. */
int es_nf_why(struct es_nf_why *why, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
