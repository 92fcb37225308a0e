// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Loads the BPF object. libbpf loads it whole or not at all, and kernels refuse kinds of programs that others
 * take (EPERM for tracing programs, without CAP_PERFMON or by policy); so what only looks at connections is
 * left out where it is refused, and what cannot be left out is named.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/libbpf.h>
#include "inspector/datapath/bpf.h"

static int es_libbpf_silent(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

/* The static analyzer takes the generated code's error path, where libbpf frees, for a leak: not for its
 * eyes. */
#ifdef __clang_analyzer__
struct earshot_bpf *es_skeleton_open(void);
#else
static struct earshot_bpf *es_skeleton_open(void)
{
	return earshot_bpf__open();
}
#endif

static int es_is_optional(const struct bpf_program *prog)
{
	return !strncmp(bpf_program__section_name(prog), "iter/", 5);
}

static int es_bpf_open(struct earshot_bpf **ret_skel)
{
	struct earshot_bpf *skel = es_skeleton_open();
	struct bpf_program *prog;

	if (!skel)
		return -errno;
	bpf_object__for_each_program(prog, skel->obj) if (!strcmp(bpf_program__section_name(prog), "tc"))
		bpf_program__set_type(prog, BPF_PROG_TYPE_SCHED_CLS);
	*ret_skel = skel;
	return 0;
}

/* Does the kernel take the program of this name, with no other beside it? 0 or -errno. */
static int es_bpf_try_one(const char *name)
{
	struct earshot_bpf *skel = NULL;
	struct bpf_program *prog;
	int rc = es_bpf_open(&skel);

	if (rc)
		return rc;
	bpf_object__for_each_program(prog, skel->obj)
		bpf_program__set_autoload(prog, !strcmp(bpf_program__name(prog), name));
	rc = earshot_bpf__load(skel);
	earshot_bpf__destroy(skel);
	return rc;
}

/* Leave out what is refused and can be. Returns how many are left out. */
static unsigned int es_bpf_leave_out(struct es_bpf_loaded *loaded)
{
	struct bpf_program *prog;
	unsigned int refused = 0;
	char names[256] = "";
	int rc = 0;

	bpf_object__for_each_program(prog, loaded->skel->obj)
	{
		int rc2 = es_is_optional(prog) ? es_bpf_try_one(bpf_program__name(prog)) : 0;

		if (!rc2)
			continue;
		bpf_program__set_autoload(prog, false);
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", refused ? ", " : "",
			 bpf_program__name(prog));
		refused++;
		rc = rc2;
	}
	if (refused)
		snprintf(loaded->note, sizeof(loaded->note),
			 "this kernel refuses the BPF iterator%s %s (%s); "
			 "the daemon asks for each connection by itself instead, which costs it more",
			 refused > 1 ? "s" : "", names, strerror(-rc));
	return refused;
}

static void es_bpf_name_refused(struct es_bpf_loaded *loaded, int rc, char *err, size_t err_len)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, loaded->skel->obj)
	{
		int rc2 = es_is_optional(prog) ? 0 : es_bpf_try_one(bpf_program__name(prog));

		if (!rc2)
			continue;
		snprintf(err, err_len,
			 "bpf datapath: the kernel refuses the program %s: %s (EARSHOT_BPF_DEBUG=1 shows the "
			 "verifier's reason)",
			 bpf_program__name(prog), strerror(-rc2));
		return;
	}
	snprintf(err, err_len, "bpf datapath: loading the BPF programs failed: %s", strerror(-rc));
}

static int es_bpf_reopen(struct es_bpf_loaded *loaded, int (*prepare)(void *ctx, struct earshot_bpf *skel),
			 void *ctx, char *err, size_t err_len)
{
	int rc;

	es_bpf_unload(loaded);
	rc = es_bpf_open(&loaded->skel);
	if (!rc)
		rc = prepare(ctx, loaded->skel);
	if (rc)
		snprintf(err, err_len, "bpf datapath: opening the BPF object failed: %s", strerror(-rc));
	return rc;
}

int es_bpf_load(struct es_bpf_loaded *loaded, int (*prepare)(void *ctx, struct earshot_bpf *skel), void *ctx,
		char *err, size_t err_len)
{
	int rc;

	if (!getenv("EARSHOT_BPF_DEBUG"))
		libbpf_set_print(es_libbpf_silent);
	loaded->note[0] = '\0';
	rc = es_bpf_reopen(loaded, prepare, ctx, err, err_len);
	if (rc)
		return rc;
	rc = earshot_bpf__load(loaded->skel);
	if (!rc)
		return 0;
	/* An object that has failed to load is of no more use; the reason to go on with is its own. */
	if (es_bpf_reopen(loaded, prepare, ctx, err, err_len))
		return rc;
	if (es_bpf_leave_out(loaded))
		rc = earshot_bpf__load(loaded->skel);
	if (rc)
		es_bpf_name_refused(loaded, rc, err, err_len);
	return rc;
}

void es_bpf_unload(struct es_bpf_loaded *loaded)
{
	earshot_bpf__destroy(loaded->skel);
	loaded->skel = NULL;
}
