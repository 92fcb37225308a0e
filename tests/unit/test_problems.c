// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program that is run beside the daemon, and `earshot check` as such: what it finds, and each way in which
 * it can fail.
 */
#include "tests/unit/cmocka_all.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "inspector/base/event.h"
#include "inspector/base/json.h"
#include "inspector/daemon/problems.h"

static struct ev_loop *loop;

/* --- run */

struct result {
	int done;
	int status;
	int is_late;
	int is_cut;
	size_t out_len;
	char out[256];
	char err[256];
};

static void note(struct es_run *run, int status)
{
	struct result *r = run->ctx;

	r->done++;
	r->status = status;
	r->is_late = run->is_late;
	r->is_cut = run->out.is_cut;
	r->out_len = run->out.len;
	snprintf(r->out, sizeof(r->out), "%s", run->out.text);
	snprintf(r->err, sizeof(r->err), "%s", run->err.text);
	ev_break(loop, EVBREAK_ALL);
}

static struct result run_script(const char *script, double limit_s)
{
	char sh[] = "/bin/sh", c[] = "-c", text[512];
	char *const argv[] = {sh, c, text, NULL};
	struct result result = {};
	struct es_run run = {};

	snprintf(text, sizeof(text), "%s", script);
	assert_int_equal(es_run_start(&run, loop, argv, limit_s, note, &result), 0);
	assert_int_equal(es_run_start(&run, loop, argv, limit_s, note, &result), -EBUSY);
	ev_run(loop, 0);
	assert_int_equal(result.done, 1);
	assert_int_equal(run.pid, 0);
	return result;
}

static void test_run(void **state)
{
	struct result r = run_script("echo yes; echo no >&2; cat; exit 3", 60);

	(void)state;
	assert_string_equal(r.out, "yes\n");
	assert_string_equal(r.err, "no\n");
	assert_int_equal(WEXITSTATUS(r.status), 3);
	assert_false(r.is_late);
	assert_false(r.is_cut);
}

static void test_much(void **state)
{
	struct result r = run_script("head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2; exit 4", 60);

	(void)state;
	assert_true(r.is_cut);
	assert_int_equal(r.out_len, ES_RUN_OUT_MAX);
	assert_int_equal(WEXITSTATUS(r.status), 4); /* what nobody keeps is read, so it comes to its end */
}

/* The late program is ended, and what it has started, which has the pipes open. */
static void test_late(void **state)
{
	struct result r = run_script("sleep 1000 & echo $!; wait", 0.3);
	pid_t pid = (pid_t)strtol(r.out, NULL, 10);

	(void)state;
	assert_true(r.is_late);
	assert_true(WIFSIGNALED(r.status) && WTERMSIG(r.status) == SIGKILL);
	assert_true(pid > 1);
	for (int i = 0; i < 1000 && !kill(pid, 0); i++) {
		char path[64], text[512] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
		file = fopen(path, "re");
		if (!file)
			break;
		(void)!fread(text, 1, sizeof(text) - 1, file);
		fclose(file);
		if (strstr(text, ") Z")) /* where nobody reaps orphans */
			return;
		usleep(10000);
	}
	assert_int_not_equal(kill(pid, 0), 0);
}

/* A program that ends leaves a process behind, which has the pipes open still. */
static void test_left_behind(void **state)
{
	struct result r = run_script("sleep 1000 & echo $!", 60);

	(void)state;
	assert_false(r.is_late);
	kill((pid_t)strtol(r.out, NULL, 10), SIGKILL);
}

static void test_no_program(void **state)
{
	char path[] = "/nowhere/at/all";
	char *const argv[] = {path, NULL};
	struct result result = {};
	struct es_run run = {};

	(void)state;
	assert_int_equal(es_run_start(&run, loop, argv, 1, note, &result), -ENOENT);
	assert_int_equal(run.pid, 0);
	es_run_stop(&run);
	assert_int_equal(result.done, 0);
}

static void test_stop(void **state)
{
	char sh[] = "/bin/sh", c[] = "-c", text[] = "sleep 1000";
	char *const argv[] = {sh, c, text, NULL};
	struct result result = {};
	struct es_run run = {};

	(void)state;
	assert_int_equal(es_run_start(&run, loop, argv, 60, note, &result), 0);
	es_run_stop(&run);
	ev_run(loop, EVRUN_NOWAIT); /* nothing is left to wait for */
	assert_int_equal(result.done, 0);
}

/* --- problems */

static char program[64];

static void write_program(const char *script)
{
	FILE *file = fopen(program, "we");

	assert_non_null(file);
	fprintf(file, "#!/bin/sh\n%s\n", script);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(program, 0755), 0);
}

static struct json_object *look_at(const char *script)
{
	const struct es_problems_of of = {program, "/run/x.sock", "n1", "/etc/x.conf"};
	struct es_problems problems = {};
	struct json_object *report;

	write_program(script);
	es_problems_look(&problems, loop, &of);
	while (problems.run.pid)
		ev_run(loop, EVRUN_ONCE);
	report = es_problems_report(&problems);
	es_problems_stop(&problems);
	assert_true(es_json_number(report, "at_s") > 0);
	return report;
}

static void test_findings(void **state)
{
	struct json_object *report, *findings;

	(void)state;
	report = look_at("cat <<END\n{\"summary\":{\"error\":1,\"warning\":1},\"findings\":["
			 "{\"id\":\"a.a\",\"severity\":\"ok\"},{\"id\":\"a.b\",\"severity\":\"warning\"},"
			 "{\"id\":\"a.c\",\"severity\":\"error\",\"found\":\"$*\"},"
			 "{\"id\":\"a.d\",\"severity\":\"unchecked\"}]}\nEND\nexit 1");
	findings = es_json_array(report, "findings");
	assert_string_equal(es_json_string(report, "error"), "");
	assert_int_equal(es_json_number(es_json_object(report, "summary"), "warning"), 1);
	assert_int_equal(json_object_array_length(findings), 2);
	assert_string_equal(es_json_string(json_object_array_get_idx(findings, 0), "id"), "a.b");
	assert_string_equal(es_json_string(json_object_array_get_idx(findings, 1), "found"),
			    "--json --control=/run/x.sock --node=n1 check --config=/etc/x.conf");
	json_object_put(report);
}

static void expect_failure(const char *script, const char *why)
{
	struct json_object *report = look_at(script);

	assert_string_equal(es_json_string(report, "error"), why);
	assert_int_equal(json_object_array_length(es_json_array(report, "findings")), 0);
	json_object_put(report);
}

static void test_failures(void **state)
{
	(void)state;
	expect_failure("echo 'earshot: one' >&2; echo 'earshot: x.conf:3: bad' >&2; exit 2",
		       "status 2: earshot: x.conf:3: bad");
	expect_failure("kill -9 $$", "it was ended by signal 9; do: earshot check, on this node");
	expect_failure("echo '[1]'; echo what >&2",
		       "it printed no findings, but: what; do: earshot check, on this node");
	expect_failure("true", "it printed no findings; do: earshot check, on this node");
	expect_failure("head -c 300000 /dev/zero",
		       "it printed more than 262144 bytes; do: earshot check, on this node");
}

static void test_cannot_be_run(void **state)
{
	const struct es_problems_of of = {"/nowhere/earshot", "/run/x.sock", "n1", "/etc/x.conf"};
	struct es_problems problems = {};
	struct json_object *report;

	(void)state;
	report = es_problems_report(&problems);
	assert_int_equal(es_json_number(report, "at_s"), 0); /* none yet */
	json_object_put(report);
	es_problems_look(&problems, loop, &of);
	report = es_problems_report(&problems);
	assert_string_equal(es_json_string(report, "error"),
			    "/nowhere/earshot: No such file or directory; do: earshot check, on this node");
	json_object_put(report);
	es_problems_stop(&problems);
}

static unsigned int lines_of(const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned int lines = 0;
	int c;

	assert_non_null(file);
	while ((c = getc(file)) != EOF)
		lines += c == '\n';
	fclose(file);
	return lines;
}

/* Not while one runs, and not within a minute. */
static void test_seldom(void **state)
{
	const struct es_problems_of of = {program, "/run/x.sock", "n1", "/etc/x.conf"};
	struct es_problems problems = {};
	char script[256], log[80];

	(void)state;
	snprintf(log, sizeof(log), "%s.log", program);
	snprintf(script, sizeof(script), "echo run >>%s", log);
	write_program(script);
	for (int i = 0; i < 3; i++)
		es_problems_look(&problems, loop, &of);
	while (problems.run.pid)
		ev_run(loop, EVRUN_ONCE);
	es_problems_look(&problems, loop, &of);
	assert_int_equal(problems.run.pid, 0);
	assert_int_equal(lines_of(log), 1);
	problems.looked_ns -= ES_PROBLEMS_EVERY_S * 1000000000ULL;
	es_problems_look(&problems, loop, &of);
	while (problems.run.pid)
		ev_run(loop, EVRUN_ONCE);
	assert_int_equal(lines_of(log), 2);
	/* The daemon's own turn does not wait for that, nor does who looks next see what was found before. */
	es_problems_run(&problems, loop, &of);
	es_problems_run(&problems, loop, &of);
	while (problems.run.pid)
		ev_run(loop, EVRUN_ONCE);
	assert_int_equal(lines_of(log), 3);
	es_problems_stop(&problems);
	unlink(log);
}

/* --- events */

static char journal[80];

static void journal_open(void)
{
	snprintf(journal, sizeof(journal), "%s.events", program);
	assert_int_equal(es_event_open(journal, "n1"), 0);
}

static void journal_end(void)
{
	es_event_close();
	unlink(journal);
}

static struct json_object *finding_of(const char *id, const char *severity, const char *found,
				      const char *action)
{
	struct json_object *finding = json_object_new_object();

	json_object_object_add(finding, "id", json_object_new_string(id));
	json_object_object_add(finding, "severity", json_object_new_string(severity));
	json_object_object_add(finding, "found", json_object_new_string(found));
	json_object_object_add(finding, "action", action ? json_object_new_string(action) : NULL);
	return finding;
}

/*
 * Takes the findings of one run: @first, and perhaps @second. Returns how many events there are then in all.
 */
static size_t found(struct es_problem_events *events, struct json_object *first, struct json_object *second)
{
	struct json_object *findings = json_object_new_array();
	static struct es_event kept[ES_EVENT_KEPT];

	json_object_array_add(findings, first);
	if (second)
		json_object_array_add(findings, second);
	es_problem_events_take(events, findings);
	json_object_put(findings);
	return es_event_newest(kept, ES_EVENT_KEPT);
}

static void expect_newest(enum es_event_kind kind, enum es_log_level level, const char *text)
{
	struct es_event event;

	assert_int_equal(es_event_newest(&event, 1), 1);
	assert_string_equal(event.text, text);
	assert_string_equal(event.node, "n1");
	assert_int_equal(event.kind, kind);
	assert_int_equal(event.level, level);
}

/* Only what changes is told: not how a text counts on, and not what could not be looked at. */
static void test_changes_are_events(void **state)
{
	struct es_problem_events events = {};

	(void)state;
	journal_open();
	assert_int_equal(found(&events, finding_of("a.a", "ok", "fine", NULL), NULL), 0);
	assert_int_equal(found(&events, finding_of("a.a", "warning", "7 s ahead", "set it"), NULL), 1);
	expect_newest(ES_EVENT_check_failed, ES_LOG_WARNING, "a.a: 7 s ahead; do: set it");
	assert_int_equal(found(&events, finding_of("a.a", "warning", "8 s ahead", "set it"), NULL), 1);
	assert_int_equal(found(&events, finding_of("a.a", "error", "999 s ahead", NULL), NULL), 2);
	expect_newest(ES_EVENT_check_failed, ES_LOG_ERR, "a.a: 999 s ahead");
	assert_int_equal(found(&events, finding_of("a.a", "unchecked", "who knows", NULL), NULL), 2);
	assert_int_equal(found(&events, finding_of("a.a", "error", "999 s ahead", NULL), NULL), 2);
	assert_int_equal(found(&events, finding_of("a.a", "info", "right", NULL), NULL), 3);
	expect_newest(ES_EVENT_check_passed, ES_LOG_INFO, "a.a: right");
	assert_int_equal(found(&events, finding_of("a.a", "ok", "right", NULL), NULL), 3);
	journal_end();
}

/* If one check says several things, the worst counts; a check that is not made any more is over. */
static void test_worst_is_told(void **state)
{
	struct es_problem_events events = {};

	(void)state;
	journal_open();
	assert_int_equal(found(&events, finding_of("a.a", "warning", "so", NULL),
			       finding_of("a.a", "error", "worse", NULL)),
			 1);
	expect_newest(ES_EVENT_check_failed, ES_LOG_ERR, "a.a: worse");
	assert_int_equal(found(&events, finding_of("a.a", "warning", "so", NULL),
			       finding_of("a.a", "ok", "fine", NULL)),
			 1);
	assert_int_equal(found(&events, finding_of("b.b", "ok", "fine", NULL), NULL), 2);
	expect_newest(ES_EVENT_check_passed, ES_LOG_INFO, "a.a: nothing is wrong any more");
	journal_end();
}

/* A daemon that starts anew knows from the journal what it has told. */
static void test_told_before(void **state)
{
	struct es_problem_events before = {}, after = {};

	(void)state;
	journal_open();
	found(&before, finding_of("a.a", "warning", "so", NULL), finding_of("b.b", "error", "so", NULL));
	assert_int_equal(
		found(&before, finding_of("a.a", "ok", "fine", NULL), finding_of("b.b", "error", "so", NULL)),
		3);
	es_event_close();
	journal_open();
	assert_int_equal(
		found(&after, finding_of("a.a", "ok", "fine", NULL), finding_of("b.b", "error", "so", NULL)),
		3);
	assert_int_equal(found(&after, finding_of("a.a", "warning", "again", NULL),
			       finding_of("b.b", "ok", "fine", NULL)),
			 5);
	journal_end();
}

/* However much goes wrong at once: so many events a run, and nothing is lost of what there is room for. */
static void test_bounded(void **state)
{
	struct json_object *findings = json_object_new_array();
	static struct es_event kept[ES_EVENT_KEPT];
	struct es_problem_events events = {};
	char id[16];

	(void)state;
	journal_open();
	for (int i = 0; i < 200; i++) {
		snprintf(id, sizeof(id), "a.%d", i);
		json_object_array_add(findings, finding_of(id, "error", "so", NULL));
	}
	es_problem_events_take(&events, findings);
	assert_int_equal(es_event_newest(kept, ES_EVENT_KEPT), ES_PROBLEM_EVENTS_MAX);
	for (int i = 0; i < 20; i++)
		es_problem_events_take(&events, findings);
	assert_int_equal(es_event_newest(kept, ES_EVENT_KEPT), ES_PROBLEM_EVENTS_KNOWN);
	json_object_put(findings);
	journal_end();
}

/* Findings that a run prints become events, whoever has begun the run. */
static void test_run_tells(void **state)
{
	const struct es_problems_of of = {program, "/run/x.sock", "n1", "/etc/x.conf"};
	struct es_problems problems = {};

	(void)state;
	journal_open();
	write_program(
		"echo '{\"findings\":[{\"id\":\"a.b\",\"severity\":\"error\",\"found\":\"x\"}]}'; exit 1");
	es_problems_run(&problems, loop, &of);
	while (problems.run.pid)
		ev_run(loop, EVRUN_ONCE);
	expect_newest(ES_EVENT_check_failed, ES_LOG_ERR, "a.b: x");
	es_problems_stop(&problems);
	journal_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_run),
		cmocka_unit_test(test_much),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_left_behind),
		cmocka_unit_test(test_no_program),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_findings),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_cannot_be_run),
		cmocka_unit_test(test_seldom),
		cmocka_unit_test(test_changes_are_events),
		cmocka_unit_test(test_worst_is_told),
		cmocka_unit_test(test_told_before),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_run_tells),
	};
	int failed;

	snprintf(program, sizeof(program), "/tmp/test_problems.%d", getpid());
	loop = ev_default_loop(EVFLAG_AUTO);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(program);
	ev_loop_destroy(loop);
	return failed;
}
