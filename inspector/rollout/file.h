/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_ROLLOUT_FILE_H
#define ES_ROLLOUT_FILE_H

/*
 * The configuration file's place: another one is written beside it (FILE.rollout-next), takes its place at
 * once, and goes again. The former file stays as FILE.previous; the former FILE.previous is beside it while
 * one may go back (FILE.rollout-before). A link is followed: what it leads to changes, not the link.
 */
#include <limits.h>
#include <stddef.h>
#include "inspector/base/error.h"

enum es_rollout_file_step { ES_ROLLOUT_FILE_NONE, ES_ROLLOUT_FILE_STAGED, ES_ROLLOUT_FILE_PLACED };

/* struct es_rollout_file - all zero at first; @is_same: the text that is there already, so nothing is
 * written; @has_before: there was a @previous, which is at @before now */
struct es_rollout_file {
	enum es_rollout_file_step step;
	int is_same;
	int has_before;
	char path[PATH_MAX];
	char next[PATH_MAX];
	char before[PATH_MAX];
	char previous[PATH_MAX];
};

/*
 * es_rollout_file_stage() - write @text beside the file at @path, as its owner and mode are. Returns 0, or
 * -errno and @err.
 */
int es_rollout_file_stage(struct es_rollout_file *file, const char *path, const char *text, size_t len,
			  struct es_conf_error *err);

/*
 * es_rollout_file_place() - what was staged is the file now. Returns 0, or -errno and @err: nothing has
 * changed.
 */
int es_rollout_file_place(struct es_rollout_file *file, struct es_conf_error *err);

/*
 * es_rollout_file_back() - the file and FILE.previous are as they were before. Returns 0, or -errno and @err.
 */
int es_rollout_file_back(struct es_rollout_file *file, struct es_conf_error *err);

/*
 * es_rollout_file_forget() - removes what is only staged; what was placed stays. May be called at any time.
 */
void es_rollout_file_forget(struct es_rollout_file *file);

#endif
