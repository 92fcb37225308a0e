/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DATAPATH_PINS_H
#define ES_DATAPATH_PINS_H

#include "kmod/core/counters.h"

#define ES_COUNTER_FIRST_PIN (ES_COUNTER_COUNT - (ES_PIN_COUNT - 1)) /* those of pins are the last */

/* es_pin_name() - the word for an enum es_pin, "?" for a number that is none */
const char *es_pin_name(unsigned int pin);

/**
 * es_pin_counted() - how many connections were pinned for that reason
 * @counters: all ES_COUNTER_COUNT of the datapath; @pin: not ES_PIN_none, which is not counted
 */
unsigned long long es_pin_counted(const unsigned long long *counters, unsigned int pin);

#endif
