/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_STATUS_ACCEPT_H
#define ES_STATUS_ACCEPT_H

#include "inspector/status/exposition.h"

/**
 * es_accept_format() - the format that a request's Accept prefers; NULL: it has none
 * By RFC 9110 section 12.5.1: of the ranges that name a type most exactly, the highest q. Prometheus' own
 * format where both are wanted alike, or neither at all, unless OpenMetrics is named before it.
 */
enum es_exposition_format es_accept_format(const char *accept);

#endif
