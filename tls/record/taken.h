/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TLS_TAKEN_H
#define ES_TLS_TAKEN_H

/* Private to tls/record/: the memory of sealed.h, without what it is a memory of. */
#include "tls/record/sealed.h"

/**
 * es_tls_taken_take() - remember @id, made at @made_ns, unless it is remembered
 * Returns ES_TLS_OPENED, ES_TLS_SEALED_REPEATED, ES_TLS_SEALED_LATE or ES_TLS_SEALED_FULL.
 */
enum es_tls_opened es_tls_taken_take(struct es_tls_taken *taken, uint64_t id, uint64_t made_ns,
				     uint64_t wall_ns);

#endif
