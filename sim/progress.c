// SPDX-License-Identifier: GPL-2.0-or-later
/* A bar on the terminal while a simulation runs. */
#include <stdio.h>
#include <unistd.h>
#include "sim/report.h"

#define ES_BAR_WIDTH 40

void es_progress_begin(struct es_progress *progress, const char *what)
{
	*progress = (struct es_progress){
		.is_terminal = isatty(STDERR_FILENO), .to = 1, .shown = -1, .what = what};
}

void es_progress_show(void *ctx, double done)
{
	struct es_progress *progress = ctx;
	int percent = (int)(100 * (progress->from + done * (progress->to - progress->from)));

	if (!progress->is_terminal || percent == progress->shown)
		return;
	progress->shown = percent;
	fprintf(stderr, "\r%s [", progress->what);
	for (int i = 0; i < ES_BAR_WIDTH; i++)
		fputc(i * 100 < percent * ES_BAR_WIDTH ? '#' : ' ', stderr);
	fprintf(stderr, "] %3d%%", percent);
}

void es_progress_end(struct es_progress *progress)
{
	if (progress->shown >= 0)
		fprintf(stderr, "\r\033[K");
	progress->shown = -1;
}
