/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DATAPATH_MODULE_CONTROL_H
#define ES_DATAPATH_MODULE_CONTROL_H

/*
 * Talks to earshot.ko over generic netlink (kmod/core/control.h): a command and its answer at a time. Used by
 * one thread.
 */
#include <stddef.h>
#include "kmod/core/control.h"
#include "kmod/core/node_ring.h"

struct es_module_control;

/* struct es_module_attribute - of a command; a list of them ends with type 0 */
struct es_module_attribute {
	enum es_attribute type;
	const void *data;
	size_t size;
};

/* Called with each attribute of an answer. */
typedef void (*es_module_answer_fn)(void *ctx, int type, const void *data, size_t size);

/**
 * es_module_control_new() - find the family; the kernel may load the module for that
 * Returns 0; -ENOENT: there is no such module; -EPROTO: it speaks another version; or -errno.
 */
int es_module_control_new(struct es_module_control **ret_control);
void es_module_control_free(struct es_module_control **control);

/**
 * es_module_command() - send a command and wait for its end
 * @attributes: may be NULL; @dump: for those that list; @fn: may be NULL
 * Returns 0 or what the kernel answered (-errno).
 */
int es_module_command(struct es_module_control *control, enum es_command command,
		      const struct es_module_attribute *attributes, int dump, es_module_answer_fn fn,
		      void *ctx);

#endif
