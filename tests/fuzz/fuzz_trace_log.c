// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Access logs, and what the detection of the format makes of anything.
 */
#include "fuzz_sim_trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_trace(ES_TRACE_LOG, data, size);
	fuzz_trace(ES_TRACE_AUTO, data, size);
	return 0;
}
