/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_EXPLAIN_TEXT_H
#define ES_EXPLAIN_TEXT_H

#include "inspector/config/config.h"
#include "inspector/policy/policy.h"

#define ES_EXPLAIN_TEXT_SIZE (2 * ES_EXPLAIN_STEP_SIZE)

/**
 * es_explain_text() - a step of an explanation for people
 * Policies and plugins know numbers only: "#2" becomes the node's name. @text has room for
 * ES_EXPLAIN_TEXT_SIZE bytes. Returns @text.
 */
const char *es_explain_text(const struct es_conf *conf, const char *step, char *text);

#endif
