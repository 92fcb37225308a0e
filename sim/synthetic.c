// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Traces made from numbers.
 *
 * worldcup98. HyLARD section 4.3 says: 10,562 files, 16% of them of 500 KB or more, with 83% of the bytes.
 * The rest is chosen by what Arlitt and Jin, HPL-1999-35R1, found in the whole trace: a Zipf-like popularity
 * with an exponent of about 1.16, most requests for small images and pages (3.7 kB per response: 4,991 GB
 * in 1.35e9 responses), and sizes with a lognormal body and a Pareto tail. So: sizes below 500 KB are
 * lognormal, those above Pareto, bounded, and both are scaled to the shares of bytes. Large files are less
 * popular than their number says, as they are not what pages are made of: ES_LARGE_DEMOTION moves them down
 * the order of popularity, to about 2% of the requests.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "inspector/policy/random.h"
#include "sim/workload.h"

#define ES_LARGE_SHARE	    0.16
#define ES_LARGE_BYTE_SHARE 0.8302
/* A bounded Pareto from 500 KB to 4 MB. With a mean of 0.8 MB all files are 1.6 GB, more than one node's
 * memory and less than eight nodes', as it must have been for LARD to win in HyLARD's Fig. 4. */
#define ES_LARGE_MAX_BYTES (4096 * 1024.0)
#define ES_LARGE_TAIL	   2.2
#define ES_SMALL_SIGMA	   1.4
#define ES_LARGE_DEMOTION  2.5

/* Box and Muller's; the second number is not kept, which keeps the order of random numbers simple. */
static double es_random_normal(struct es_random *random)
{
	double radius = sqrt(-2 * log(1 - es_random_double(random)));

	return radius * cos(2 * M_PI * es_random_double(random));
}

static int es_workload_alloc(struct es_workload *w, __u32 files, __u32 requests)
{
	*w = (struct es_workload){.file_count = files, .request_count = requests};
	w->file = calloc(files, sizeof(*w->file));
	w->size = calloc(files, sizeof(*w->size));
	w->request = calloc(requests, sizeof(*w->request));
	if (!w->file || !w->size || !w->request)
		goto err_fini;
	for (__u32 i = 0; i < files; i++) {
		if (asprintf(&w->file[i].uri, "/files/%06u", i) < 0) {
			w->file[i].uri = NULL;
			goto err_fini;
		}
	}
	return 0;

err_fini:
	es_workload_fini(w);
	return -ENOMEM;
}

/* The place in @sum, which rises to sum[count - 1], where a random number falls. */
static __u32 es_pick(const double *sum, __u32 count, struct es_random *random)
{
	double value = es_random_double(random) * sum[count - 1];
	__u32 low = 0, high = count - 1;

	while (low < high) {
		__u32 middle = low + (high - low) / 2;

		if (sum[middle] > value)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Fills the requests: Zipf's law over files by @rank (rank[0] is the most popular one). */
static int es_requests_zipf(struct es_workload *w, const __u32 *rank, double exponent,
			    struct es_random *random)
{
	double *sum = calloc(w->file_count, sizeof(*sum));
	double total = 0;

	if (!sum)
		return -ENOMEM;
	for (__u32 i = 0; i < w->file_count; i++)
		sum[i] = total += pow(i + 1.0, -exponent);
	for (__u32 i = 0; i < w->request_count; i++)
		w->request[i] = rank[es_pick(sum, w->file_count, random)];
	free(sum);
	return 0;
}

static void es_requests_hot(struct es_workload *w, const __u32 *rank, const struct es_synthetic *s,
			    struct es_random *random)
{
	__u32 hot = (__u32)fmax(1, round(w->file_count * s->hot_share));

	for (__u32 i = 0; i < w->request_count; i++) {
		int is_hot = es_random_double(random) < s->hot_rate || hot >= w->file_count;

		w->request[i] = rank[is_hot ? es_random_below(random, hot)
					    : hot + es_random_below(random, w->file_count - hot)];
	}
}

struct es_ranked {
	double key;
	__u32 file;
};

static int es_ranked_compare(const void *a, const void *b)
{
	const struct es_ranked *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->file < y->file ? -1 : x->file > y->file;
}

/* An order of all files by random keys, those of large files (if @large_bytes) later by @demotion. The caller
 * frees it; NULL without memory. */
static __u32 *es_rank(const struct es_workload *w, __u64 large_bytes, double demotion,
		      struct es_random *random)
{
	struct es_ranked *ranked = calloc(w->file_count, sizeof(*ranked));
	__u32 *rank = calloc(w->file_count, sizeof(*rank));

	if (ranked && rank) {
		for (__u32 i = 0; i < w->file_count; i++) {
			ranked[i].file = i;
			ranked[i].key = es_random_normal(random);
			if (large_bytes && w->size[i] >= large_bytes)
				ranked[i].key += demotion;
		}
		qsort(ranked, w->file_count, sizeof(*ranked), es_ranked_compare);
		for (__u32 i = 0; i < w->file_count; i++)
			rank[i] = ranked[i].file;
	} else {
		free(rank);
		rank = NULL;
	}
	free(ranked);
	return rank;
}

/* Makes part of the files computed ones, so that @share of the requests are for them. Each request for one is
 * for any of them: what is computed is not popular by its file. */
static void es_requests_dynamic(struct es_workload *w, __u32 dynamic_files, double share,
				struct es_random *random)
{
	__u32 first = w->file_count - dynamic_files;

	if (share <= 0 || !dynamic_files)
		return;
	for (__u32 i = first; i < w->file_count; i++)
		w->file[i].is_dynamic = 1;
	for (__u32 i = 0; i < w->request_count; i++)
		if (es_random_double(random) < share)
			w->request[i] = first + (__u32)es_random_below(random, dynamic_files);
}

#define ES_DYNAMIC_FILES 100

static __u32 es_dynamic_files(const struct es_synthetic *s)
{
	return s->dynamic_share > 0 ? ES_DYNAMIC_FILES : 0;
}

/* Requests for the first file_count - @dynamic_files files by popularity, then the others. */
static int es_requests_make(struct es_workload *w, const struct es_synthetic *s, __u64 large_bytes,
			    double demotion, struct es_random *random)
{
	__u32 dynamic_files = es_dynamic_files(s);
	__u32 *rank;
	int rc = 0;

	w->file_count -= dynamic_files;
	rank = es_rank(w, large_bytes, demotion, random);
	if (!rank)
		rc = -ENOMEM;
	else if (s->hot_share > 0)
		es_requests_hot(w, rank, s, random);
	else
		rc = es_requests_zipf(w, rank, s->exponent, random);
	w->file_count += dynamic_files;
	free(rank);
	if (rc) {
		es_workload_fini(w);
		return rc;
	}
	es_requests_dynamic(w, dynamic_files, s->dynamic_share, random);
	return 0;
}

/* Lognormal sizes of files @from to @to with a sum of exactly (but for rounding) @bytes, all below @max. */
static void es_sizes_lognormal(__u64 *size, __u32 from, __u32 to, double bytes, double sigma, double max,
			       struct es_random *random)
{
	double scale, sum = 0;

	/* In 1/1000, then scaled; what is cut off at @max is too little to be seen. */
	for (__u32 i = from; i < to; i++) {
		size[i] = (__u64)(1e6 * exp(sigma * es_random_normal(random)));
		sum += (double)size[i];
	}
	for (int round = 0; round < 20; round++) {
		double now = 0;

		scale = bytes / sum;
		for (__u32 i = from; i < to; i++)
			now += fmin((double)size[i] * scale, max);
		if (now > bytes * 0.9999)
			break;
		sum *= now / bytes;
	}
	scale = bytes / sum;
	for (__u32 i = from; i < to; i++)
		size[i] = (__u64)fmax(64, fmin((double)size[i] * scale, max));
}

int es_synthetic_zipf(const struct es_synthetic *s, struct es_workload *ret_workload)
{
	struct es_random random = {.state = s->seed};
	struct es_workload w;
	int rc = es_workload_alloc(&w, s->files + es_dynamic_files(s), s->requests);

	if (rc)
		return rc;
	es_sizes_lognormal(w.size, 0, w.file_count, s->mean_bytes * w.file_count, s->sigma, 1e12, &random);
	rc = es_requests_make(&w, s, 0, 0, &random);
	if (!rc)
		*ret_workload = w;
	return rc;
}

int es_synthetic_worldcup98(const struct es_synthetic *s, struct es_workload *ret_workload)
{
	struct es_random random = {.state = s->seed};
	__u32 large = (__u32)(ES_WC98_FILES * ES_LARGE_SHARE);
	double bytes = 0, share_max = 1 - pow(ES_WC98_LARGE_BYTES / ES_LARGE_MAX_BYTES, ES_LARGE_TAIL);
	struct es_workload w;
	int rc = es_workload_alloc(&w, ES_WC98_FILES + es_dynamic_files(s), s->requests);

	if (rc)
		return rc;
	for (__u32 i = 0; i < large; i++) {
		double u = es_random_double(&random) * share_max;

		w.size[i] = (__u64)ceil(ES_WC98_LARGE_BYTES * pow(1 - u, -1 / ES_LARGE_TAIL));
		bytes += (double)w.size[i];
	}
	es_sizes_lognormal(w.size, large, ES_WC98_FILES, bytes * (1 / ES_LARGE_BYTE_SHARE - 1),
			   ES_SMALL_SIGMA, ES_WC98_LARGE_BYTES - 1, &random);
	for (__u32 i = ES_WC98_FILES; i < w.file_count; i++)
		w.size[i] = 13 * 1024;
	rc = es_requests_make(&w, s, ES_WC98_LARGE_BYTES, ES_LARGE_DEMOTION, &random);
	if (!rc)
		*ret_workload = w;
	return rc;
}
