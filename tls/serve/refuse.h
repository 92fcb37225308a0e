/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_REFUSE_H
#define ES_SERVE_REFUSE_H

/*
 * Responses of this process itself. The connection ends after each.
 */
#include <stddef.h>

#define ES_REFUSE_MAX 512

/* es_refuse_text() - the response with @status; @is_head: to HEAD, without a body. Returns its length. */
size_t es_refuse_text(unsigned int status, int is_head, char ret_text[ES_REFUSE_MAX]);

#endif
