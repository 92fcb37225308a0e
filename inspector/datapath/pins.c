// SPDX-License-Identifier: GPL-2.0-or-later
/* Words for why connections are pinned, and where the datapath counts them. */
#include "inspector/datapath/pins.h"

const char *es_pin_name(unsigned int pin)
{
	static const char *const names[ES_PIN_COUNT] = {[ES_PIN_none] = "none",
#define X(name, description) [ES_PIN_##name] = #name,
							ES_PINS(X, )
#undef X
	};

	return pin < ES_PIN_COUNT ? names[pin] : "?";
}

unsigned long long es_pin_counted(const unsigned long long *counters, unsigned int pin)
{
	return counters[ES_COUNTER_FIRST_PIN + pin - 1];
}
