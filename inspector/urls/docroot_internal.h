/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DOCROOT_INTERNAL_H
#define ES_DOCROOT_INTERNAL_H

/* For the tests: one event, as inotify would give it. */
#include <sys/inotify.h>
#include "inspector/urls/docroot.h"

void es_docroot_event(struct es_docroot *docroot, const struct inotify_event *event);

#endif
