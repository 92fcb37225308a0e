// SPDX-License-Identifier: GPL-2.0-or-later
/* Runs `earshot check` beside the daemon, and keeps what it found. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "inspector/base/clock.h"
#include "inspector/base/json.h"
#include "inspector/base/wall.h"
#include "inspector/daemon/problems.h"

#define NS_PER_S   1000000000ULL
#define BY_HAND	   "; do: earshot check, on this node"
#define LAST_GOOD  1 /* exit status: 0 no errors, 1 errors; all else: it could not look */
#define PROGRAM	   "earshot"
#define OWN_BINARY "/proc/self/exe"

/* The program beside this one, also when its file was replaced since. */
static int find_program(char *ret_path, size_t size)
{
	ssize_t len = readlink(OWN_BINARY, ret_path, size - 1);
	char *slash;

	if (len < 0)
		return -errno;
	ret_path[len] = 0;
	slash = strrchr(ret_path, '/');
	if (!slash || (size_t)(slash + 1 - ret_path) + sizeof(PROGRAM) > size)
		return -ENAMETOOLONG;
	memcpy(slash + 1, PROGRAM, sizeof(PROGRAM));
	return 0;
}

static void forget(struct es_problems *p)
{
	json_object_put(p->summary);
	json_object_put(p->findings);
	p->summary = p->findings = NULL;
	p->error[0] = 0;
}

static void begin_result(struct es_problems *p)
{
	forget(p);
	p->at_ns = es_clock_now_ns();
	p->at_s = es_wall_ns() / NS_PER_S;
}

/* Nothing that is well or only worth knowing. */
static struct json_object *problems_among(struct json_object *all)
{
	struct json_object *findings = json_object_new_array();

	for (size_t i = 0; i < json_object_array_length(all); i++) {
		struct json_object *finding = json_object_array_get_idx(all, i);
		const char *severity = es_json_string(finding, "severity");

		if (!strcmp(severity, "error") || !strcmp(severity, "warning"))
			json_object_array_add(findings, json_object_get(finding));
	}
	return findings;
}

/* The last line, without its end, of what was said to people. */
static const char *last_words(char *text)
{
	size_t len = strlen(text);
	char *line;

	while (len && text[len - 1] == '\n')
		text[--len] = 0;
	line = strrchr(text, '\n');
	return line ? line + 1 : text;
}

/* Why it found nothing out, if so. Returns 1, with @ret_error set, or 0. */
static int has_failed(struct es_run *run, int status, char *ret_error, size_t size)
{
	if (run->is_late)
		snprintf(ret_error, size, "it did not end within %.0f s" BY_HAND, ES_PROBLEMS_LIMIT_S);
	else if (WIFSIGNALED(status))
		snprintf(ret_error, size, "it was ended by signal %d" BY_HAND, WTERMSIG(status));
	else if (WEXITSTATUS(status) > LAST_GOOD)
		snprintf(ret_error, size, "status %d: %s", WEXITSTATUS(status), last_words(run->err.text));
	else if (run->out.is_cut)
		snprintf(ret_error, size, "it printed more than %u bytes" BY_HAND, ES_RUN_OUT_MAX);
	else
		return 0;
	return 1;
}

static void on_done(struct es_run *run, int status)
{
	struct es_problems *p = run->ctx;
	struct json_object *result;

	begin_result(p);
	if (has_failed(run, status, p->error, sizeof(p->error)))
		return;
	result = json_tokener_parse(run->out.text);
	if (json_object_object_get_ex(result, "findings", NULL)) {
		p->summary = json_object_get(es_json_object(result, "summary"));
		p->findings = problems_among(es_json_array(result, "findings"));
		es_problem_events_take(&p->events, es_json_array(result, "findings"));
	} else {
		snprintf(p->error, sizeof(p->error), "it printed no findings%s%s" BY_HAND,
			 run->err.len ? ", but: " : "", last_words(run->err.text));
	}
	json_object_put(result);
}

static void start(struct es_problems *p, struct ev_loop *loop, const struct es_problems_of *of)
{
	char program[PATH_MAX], control[PATH_MAX], node[256], config[PATH_MAX];
	char json[] = "--json", check[] = "check";
	char *const argv[] = {program, json, control, node, check, config, NULL};
	int rc = 0;

	if (of->program)
		snprintf(program, sizeof(program), "%s", of->program);
	else
		rc = find_program(program, sizeof(program));
	if (rc) {
		begin_result(p);
		snprintf(p->error, sizeof(p->error), OWN_BINARY ": cannot be read: %s" BY_HAND,
			 strerror(-rc));
		return;
	}
	snprintf(control, sizeof(control), "--control=%s", of->control);
	snprintf(node, sizeof(node), "--node=%s", of->node);
	snprintf(config, sizeof(config), "--config=%s", of->config);
	rc = es_run_start(&p->run, loop, argv, ES_PROBLEMS_LIMIT_S, on_done, p);
	if (!rc)
		return;
	begin_result(p);
	snprintf(p->error, sizeof(p->error), "%.200s: %s" BY_HAND, program, strerror(-rc));
}

void es_problems_look(struct es_problems *p, struct ev_loop *loop, const struct es_problems_of *of)
{
	unsigned long long now_ns = es_clock_now_ns();

	if (p->run.pid || (p->looked_ns && now_ns - p->looked_ns < ES_PROBLEMS_EVERY_S * NS_PER_S))
		return;
	p->looked_ns = now_ns;
	start(p, loop, of);
}

void es_problems_run(struct es_problems *p, struct ev_loop *loop, const struct es_problems_of *of)
{
	if (!p->run.pid)
		start(p, loop, of);
}

struct json_object *es_problems_report(const struct es_problems *p)
{
	double age_s = (double)(es_clock_now_ns() - p->at_ns) / (double)NS_PER_S;
	struct json_object *report = json_object_new_object();
	char age[64];

	snprintf(age, sizeof(age), "%.1f", age_s);
	json_object_object_add(report, "at_s", p->at_ns ? json_object_new_uint64(p->at_s) : NULL);
	json_object_object_add(report, "age_s", p->at_ns ? json_object_new_double_s(age_s, age) : NULL);
	json_object_object_add(report, "error", json_object_new_string(p->error));
	json_object_object_add(report, "summary", json_object_get(p->summary));
	json_object_object_add(report, "findings",
			       p->findings ? json_object_get(p->findings) : json_object_new_array());
	return report;
}

void es_problems_stop(struct es_problems *p)
{
	es_run_stop(&p->run);
	forget(p);
}
