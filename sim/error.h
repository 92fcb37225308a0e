/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SIM_ERROR_H
#define ES_SIM_ERROR_H

/* es_error() - "earshot-sim: ..." on stderr */
__attribute__((format(printf, 1, 2))) void es_error(const char *format, ...);

#endif
