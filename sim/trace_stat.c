// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The contents of a trace.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "sim/lru.h"
#include "sim/trace.h"

static int es_count_compare(const void *a, const void *b)
{
	__u32 x = *(const __u32 *)a, y = *(const __u32 *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

/*
 * A line through log(count) over log(rank), by least squares. Ranks are taken at equal steps of their
 * logarithm: the many files at the end, asked for once or twice, would else decide it all.
 */
static void es_zipf_fit(const __u32 *count, __u32 files, struct es_trace_stat *stat)
{
	double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0, syy = 0, slope, dx, dy;

	for (__u64 at = 1; at <= files; at += at / 10 + 1) {
		double x = log((double)at), y = log(count[at - 1]);

		if (count[at - 1] < 3)
			break;
		n++;
		sx += x;
		sy += y;
		sxx += x * x;
		sxy += x * y;
		syy += y * y;
	}
	dx = n * sxx - sx * sx;
	dy = n * syy - sy * sy;
	if (n < 3 || dx <= 0 || dy <= 0)
		return;
	slope = (n * sxy - sx * sy) / dx;
	stat->zipf_exponent = -slope;
	stat->zipf_r2 = slope * (n * sxy - sx * sy) / dy;
}

static int es_popularity(const struct es_trace *trace, struct es_trace_stat *stat)
{
	__u32 *count = calloc((size_t)trace->files.count + 1, sizeof(*count));
	__u64 top = 0;

	if (!count)
		return -ENOMEM;
	for (size_t i = 0; i < trace->request_count; i++)
		count[trace->request[i].file]++;
	qsort(count, trace->files.count, sizeof(*count), es_count_compare);
	for (__u32 i = 0; i < (trace->files.count + 9) / 10; i++)
		top += count[i];
	if (trace->request_count)
		stat->top_tenth_share = (double)top / (double)trace->request_count;
	es_zipf_fit(count, trace->files.count, stat);
	free(count);
	return 0;
}

/* The hits of one page cache of @cache_bytes, which begins empty. */
static int es_curve_point(const struct es_trace *trace, __u64 cache_bytes, double *ret_hit_rate)
{
	struct es_lru lru;
	__u64 hits = 0, looked_up = 0;
	int rc = es_lru_init(&lru, trace->files.count, cache_bytes);

	if (rc)
		return rc;
	for (size_t i = 0; i < trace->request_count; i++) {
		__u32 file = trace->request[i].file;

		if (trace->file[file].is_dynamic)
			continue;
		looked_up++;
		if (es_lru_use(&lru, file))
			hits++;
		else
			es_lru_put(&lru, file, trace->size);
	}
	es_lru_fini(&lru);
	*ret_hit_rate = looked_up ? (double)hits / (double)looked_up : 0;
	return 0;
}

int es_trace_measure(const struct es_trace *trace, struct es_trace_stat *ret_stat)
{
	struct es_trace_stat stat = {
		.requests = trace->request_count,
		.clients = trace->clients.count,
		.files = trace->files.count,
	};
	int rc;

	for (__u32 i = 0; i < trace->files.count; i++) {
		stat.files_sized += trace->sized[i] != ES_SIZE_UNKNOWN;
		stat.files_of_pieces += trace->sized[i] == ES_SIZE_OF_PIECES;
		if (trace->file[i].is_dynamic)
			continue;
		stat.working_set_bytes += trace->size[i];
		if (trace->size[i] > stat.largest_bytes)
			stat.largest_bytes = trace->size[i];
	}
	for (size_t i = 0; i < trace->request_count; i++) {
		const struct es_trace_request *r = &trace->request[i];

		stat.bytes += trace->size[r->file];
		stat.unsized_requests += trace->sized[r->file] == ES_SIZE_UNKNOWN;
		stat.dynamic_requests += trace->file[r->file].is_dynamic;
		if (!i || r->time_s < stat.first_s)
			stat.first_s = r->time_s;
		if (!i || r->time_s > stat.last_s)
			stat.last_s = r->time_s;
	}
	rc = es_popularity(trace, &stat);
	for (__u64 bytes = 1 << 20; !rc && stat.curve_count < ES_TRACE_CURVE_MAX; bytes *= 2) {
		stat.curve[stat.curve_count].cache_bytes = bytes;
		rc = es_curve_point(trace, bytes, &stat.curve[stat.curve_count].hit_rate);
		stat.curve_count++;
		if (bytes >= stat.working_set_bytes)
			break;
	}
	if (!rc)
		*ret_stat = stat;
	return rc;
}
