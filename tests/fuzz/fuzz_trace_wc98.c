// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * WorldCup98 records: every 20 bytes are used or counted.
 */
#include "fuzz_sim_trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct es_trace trace;
	uint64_t records = 0;

	(void)fuzz_trace_feed(&trace, ES_TRACE_WC98, data, size, NULL);
	for (int i = 0; i < ES_TRACE_SKIP_COUNT; i++)
		records += trace.skipped[i];
	FUZZ_CHECK(records == (size + ES_WC98_RECORD_BYTES - 1) / ES_WC98_RECORD_BYTES);
	es_trace_fini(&trace);
	fuzz_trace(ES_TRACE_WC98, data, size);
	return 0;
}
