/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_FUZZ_SIM_TRACE_H
#define ES_TESTS_FUZZ_SIM_TRACE_H
/*
 * Duties of both readers of traces with any input: use or count all of it, the same however it is cut into
 * pieces, and make connections that have all requests.
 */
#include <errno.h>
#include "fuzz.h"
#include "sim/trace.h"

/* Returns 0, or -ENOTSUP if it is none of the formats. */
static inline int fuzz_trace_feed(struct es_trace *trace, enum es_trace_format format, const uint8_t *data,
				  size_t size, uint64_t *random)
{
	int rc = 0;

	FUZZ_CHECK(!es_trace_init(trace, format, 0));
	while (!rc && size) {
		size_t piece = random ? 1 + fuzz_random(random) % 50 : size;
		char *copy;

		if (piece > size)
			piece = size;
		copy = fuzz_copy(data, piece);
		rc = es_trace_feed(trace, copy, piece);
		free(copy);
		data += piece;
		size -= piece;
	}
	if (!rc)
		rc = es_trace_finish(trace);
	FUZZ_CHECK(!rc || (rc == -ENOTSUP && format == ES_TRACE_AUTO && trace->foreign));
	return rc;
}

static inline void fuzz_trace(enum es_trace_format format, const uint8_t *data, size_t size)
{
	uint64_t random = fuzz_seed(data, size);
	struct es_trace whole, cut;
	struct es_workload w = {};
	int rc;

	rc = fuzz_trace_feed(&whole, format, data, size, NULL);
	FUZZ_CHECK(fuzz_trace_feed(&cut, format, data, size, &random) == rc);
	FUZZ_CHECK(whole.foreign == cut.foreign);
	FUZZ_CHECK(whole.line_count == cut.line_count);
	FUZZ_CHECK(!memcmp(&whole.bad, &cut.bad, sizeof(whole.bad)));
	FUZZ_CHECK(whole.format == cut.format);
	FUZZ_CHECK(!memcmp(whole.skipped, cut.skipped, sizeof(whole.skipped)));
	FUZZ_CHECK(whole.request_count == cut.request_count);
	FUZZ_CHECK(whole.request_count == whole.skipped[ES_TRACE_USED]);
	for (size_t i = 0; i < whole.request_count; i++) {
		FUZZ_CHECK(whole.request[i].file == cut.request[i].file);
		FUZZ_CHECK(whole.request[i].file < whole.files.count);
		FUZZ_CHECK(whole.request[i].client < whole.clients.count);
		FUZZ_CHECK(whole.request[i].time_s == cut.request[i].time_s);
	}
	for (unsigned int i = 0; i < whole.files.count; i++)
		FUZZ_CHECK(whole.file[i].uri[0] == '/');
	rc = es_trace_workload(&whole, 3, 15, &w);
	FUZZ_CHECK(rc == (cut.request_count ? 0 : -ENODATA));
	if (!rc)
		FUZZ_CHECK(w.first[w.connection_count] == cut.request_count);
	es_workload_fini(&w);
	es_trace_fini(&whole);
	es_trace_fini(&cut);
}

#endif
