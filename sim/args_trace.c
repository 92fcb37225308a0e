// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads the trace that the command line names, and says what of it is not in the results: an answer from a
 * tenth of a log must not look like one from all of it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "sim/args.h"

/* Fewer requests for files of unknown size than this are not worth a word. */
#define ES_UNSIZED_SHARE 0.01

static void es_say_foreign(const char *path, const struct es_trace_foreign *foreign)
{
	const char *name = strcmp(path, "-") ? path : "";
	const char *space = *name ? " " : "";

	if (foreign->command)
		es_error("%s: %s cannot be read; '%s%s%s | earshot-sim ... -' reads it from a pipe", path,
			 foreign->what, foreign->command, space, name);
	else
		es_error("%s: %s cannot be read%s%s", path, foreign->what, foreign->cure ? "; " : "",
			 foreign->cure ? foreign->cure : "");
}

int es_args_read_trace(const struct es_args *args, struct es_trace *ret_trace)
{
	int rc = es_trace_init(ret_trace, args->trace_format, (size_t)args->params.requests);

	if (!rc)
		rc = es_trace_read(ret_trace, args->trace);
	if (rc == -ENOTSUP && ret_trace->foreign)
		es_say_foreign(args->trace, ret_trace->foreign);
	else if (rc)
		es_error("%s: %s", args->trace,
			 rc == -EIO ? "the compressed data are damaged" : strerror(-rc));
	if (ret_trace->is_truncated)
		es_error("%s: the compressed data end too early; what is there is used", args->trace);
	return rc;
}

/* "4500: no time; 3: no client" */
static void es_list_reasons(const __u64 *skipped, enum es_trace_skip from, enum es_trace_skip to,
			    char *ret_text, size_t room)
{
	size_t len = 0;

	*ret_text = 0;
	for (int i = from; i < (int)to && len < room; i++)
		if (skipped[i])
			len += (size_t)snprintf(ret_text + len, room - len, "%s%llu: %s", len ? "; " : "",
						skipped[i], es_trace_skip_text((enum es_trace_skip)i));
}

static void es_say_first(const struct es_args *args, const struct es_trace_bad *bad)
{
	if (bad->line && *bad->text)
		es_error("%s:%llu: the first of them: %s", args->trace, bad->line, bad->text);
}

void es_args_say_loss(const struct es_args *args, const struct es_trace_loss *loss)
{
	__u64 unusable = es_trace_unusable(loss->skipped), used = loss->skipped[ES_TRACE_USED];
	__u64 unwanted = loss->skipped[ES_SKIP_METHOD] + loss->skipped[ES_SKIP_STATUS];
	char reasons[1024];

	if (unusable) {
		es_list_reasons(loss->skipped, ES_SKIP_TOO_LONG, ES_SKIP_METHOD, reasons, sizeof(reasons));
		es_error("%s: %llu of %llu lines (%.3g%%) could not be used and are left out: %s",
			 args->trace, unusable, loss->line_count,
			 100.0 * (double)unusable / (double)loss->line_count, reasons);
		es_say_first(args, &loss->bad);
	}
	/* Some posts and errors are in every log. */
	if (unwanted > used) {
		es_list_reasons(loss->skipped, ES_SKIP_METHOD, ES_TRACE_SKIP_COUNT, reasons, sizeof(reasons));
		es_error("%s: %llu of %llu requests are left out: %s", args->trace, unwanted, unwanted + used,
			 reasons);
	}
	if ((double)loss->unsized_requests > ES_UNSIZED_SHARE * (double)used)
		es_error("%s: the size of %llu of %llu files is unknown, as no 200 or 206 tells it: "
			 "they count as empty, and %.3g%% of the requests are for them",
			 args->trace, loss->unsized_files, loss->files,
			 100.0 * (double)loss->unsized_requests / (double)used);
}

void es_args_say_empty(const struct es_args *args, const struct es_trace_loss *loss)
{
	char reasons[1024];

	if (!loss->line_count) {
		es_error("%s: no request that could be replayed: there are no lines", args->trace);
		return;
	}
	es_list_reasons(loss->skipped, ES_SKIP_EMPTY, ES_TRACE_SKIP_COUNT, reasons, sizeof(reasons));
	es_error("%s: no request that could be replayed; lines that are left out, %llu: %s", args->trace,
		 loss->line_count, reasons);
	es_say_first(args, &loss->bad);
}
