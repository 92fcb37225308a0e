// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot report`: one archive with what whoever looks into a bug asks for, also when the daemon is dead or
 * hangs. No key is read for it; what the configuration may have that is secret is left out, here and in what
 * programs have printed of it.
 */
#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "earshot_version.h"
#include "inspector/base/wall.h"
#include "inspector/cli/archive.h"
#include "inspector/cli/capture.h"
#include "inspector/cli/cli.h"
#include "inspector/config/config.h"

#define CONFIG_DEFAULT	"/etc/earshot/earshot.conf"
#define FILE_MAX	(2U * 1024 * 1024) /* bytes of each file in the archive */
#define COMMAND_S	15.0
#define CHECK_S		90.0
#define ALL_S		240.0 /* what is not begun by then is left out */
#define WORDS_MAX	16
#define SECRETS_MAX	256
#define SECRET_MIN	6
#define SECRET_WORD_MIN 12
#define KEY_DIGITS	64 /* of a secret in the key file */

/* How much of what a source prints is kept. */
enum rule {
	KEPT,
	NO_SECRETS, /* only lines without "key" and "secret" in the name, what is before "=" or ":" */
};

/**
 * struct source - a file of the archive: what a command prints, or another file ("<PATH", and a pattern)
 * The first word "earshot" is this program, told which daemon is meant. @asks: only if that answers
 */
struct source {
	const char *name;
	const char *from;
	double limit_s;
	int asks;
	enum rule rule;
};

static const struct source sources[] = {
	{.name = "earshot/nodes.json", .from = "earshot --json nodes", .asks = 1},
	{.name = "earshot/nodes.txt", .from = "earshot nodes", .asks = 1},
	{.name = "earshot/ring.txt", .from = "earshot ring", .asks = 1},
	{.name = "earshot/counters.txt", .from = "earshot counters --all", .asks = 1},
	{.name = "earshot/metrics.txt", .from = "earshot metrics", .asks = 1},
	{.name = "earshot/events.txt", .from = "earshot events"},
	{.name = "earshot/event-files.txt", .from = "</var/lib/earshot/*.events*"},
	{.name = "earshot/log.txt", .from = "journalctl -q --no-pager -o short-iso -t earshotd -n 5000"},
	{.name = "earshot/unit.txt", .from = "systemctl status --no-pager --lines=0 earshotd"},
	{.name = "cluster/corosync.conf", .from = "</etc/corosync/corosync.conf", .rule = NO_SECRETS},
	{.name = "cluster/quorum.txt", .from = "corosync-quorumtool -s"},
	{.name = "cluster/links.txt", .from = "corosync-cfgtool -s"},
	{.name = "cluster/pacemaker.txt", .from = "crm_mon -1 -r -f"},
	{.name = "cluster/log.txt",
	 .from = "journalctl -q --no-pager -o short-iso -t corosync -t pacemakerd -t pacemaker-controld -n "
		 "2000"},
	{.name = "machine/kernel.txt", .from = "uname -a"},
	{.name = "machine/system.txt", .from = "</etc/os-release"},
	{.name = "machine/packages.txt",
	 .from = "dpkg-query -W earshot* libearshot* corosync* libcorosync* pacemaker* nginx* linux-image-*"},
	{.name = "machine/memory.txt", .from = "</proc/meminfo"},
	{.name = "machine/load.txt", .from = "</proc/loadavg"},
	{.name = "machine/modules.txt", .from = "</proc/modules"},
	{.name = "machine/errors.txt", .from = "dmesg --ctime --level=emerg,alert,crit,err"},
	{.name = "network/sysctl.txt", .from = "sysctl -a --pattern ^net", .rule = NO_SECRETS},
	{.name = "network/links.txt", .from = "ip -s -details link"},
	{.name = "network/addresses.txt", .from = "ip address"},
	{.name = "network/rules.txt", .from = "ip rule"},
	{.name = "network/routes.txt", .from = "ip route show table all"},
	{.name = "network/routes6.txt", .from = "ip -6 route show table all"},
	{.name = "network/neighbours.txt", .from = "ip neighbour"},
	{.name = "network/sockets.txt", .from = "ss -s"},
	{.name = "network/listeners.txt", .from = "ss -lntp"},
	{.name = "network/statistics.txt", .from = "nstat -asz"},
	{.name = "network/softnet.txt", .from = "</proc/net/softnet_stat"},
	{.name = "network/programs.txt", .from = "bpftool net show"},
	{.name = "network/nftables.txt", .from = "nft list ruleset"},
	{.name = "network/iptables.txt", .from = "iptables-save"},
	{.name = "network/ip6tables.txt", .from = "ip6tables-save"},
};

/**
 * struct report - @options: for this program, which daemon is meant; @manifest: what is in the archive, for
 * people, and
 * @contents for programs; @secret: texts that must not be in it
 */
struct report {
	struct es_archive archive;
	char option[512];
	int answers;
	double begin_s;
	FILE *manifest;
	struct json_object *contents;
	unsigned int secret_count;
	char *secret[SECRETS_MAX];
};

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Secrets */

static void keep_secret(struct report *report, const char *text, size_t len)
{
	char *copy = report->secret_count < SECRETS_MAX ? strndup(text, len) : NULL;

	if (copy)
		report->secret[report->secret_count++] = copy;
}

/* Texts that the configuration's copy leaves out: all of each, and its longer words. */
static void on_hidden(void *ctx, const char *text, size_t len)
{
	struct report *report = ctx;
	const char *word = text, *end = text + len;

	if (len >= SECRET_MIN)
		keep_secret(report, text, len);
	while (word < end) {
		const char *behind = word;

		while (behind < end && !isspace((unsigned char)*behind) && !strchr("\"'=,;()[]{}", *behind))
			behind++;
		if (behind - word >= SECRET_WORD_MIN && (size_t)(behind - word) < len)
			keep_secret(report, word, (size_t)(behind - word));
		word = behind + 1;
	}
}

static void blank(char *text, size_t len, const char *secret)
{
	size_t size = strlen(secret);
	char *at = text;

	while ((at = memmem(at, len - (size_t)(at - text), secret, size))) {
		memset(at, 'x', size);
		at += size;
	}
}

/* Whatever looks like a key of the key file, and what the configuration keeps to itself. */
static void hide(const struct report *report, char *text, size_t len)
{
	size_t digits = 0;

	for (unsigned int i = 0; i < report->secret_count; i++)
		blank(text, len, report->secret[i]);
	for (size_t i = 0; i <= len; i++) {
		if (i < len && isxdigit((unsigned char)text[i])) {
			digits++;
			continue;
		}
		if (digits >= KEY_DIGITS)
			memset(text + i - digits, 'x', digits);
		digits = 0;
	}
}

static int names_secret(const char *line, size_t len)
{
	char name[128];
	size_t n = 0;

	while (n < len && n < sizeof(name) - 1 && line[n] != '=' && line[n] != ':') {
		name[n] = line[n];
		n++;
	}
	name[n] = 0;
	return strcasestr(name, "key") || strcasestr(name, "secret") || strcasestr(name, "password");
}

/* Takes those lines out. Returns the new length. */
static size_t drop_secret_lines(char *text, size_t len)
{
	size_t kept = 0, at = 0;

	while (at < len) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t line = end ? (size_t)(end - text) - at + 1 : len - at;

		if (!names_secret(text + at, line)) {
			memmove(text + kept, text + at, line);
			kept += line;
		}
		at += line;
	}
	return kept;
}

/* The archive */

static void note(struct report *report, const char *name, const char *from, const struct es_capture *c)
{
	struct json_object *object = json_object_new_object();
	char how[64] = "";

	if (c->is_late)
		snprintf(how, sizeof(how), ", ended after %.0f s", c->took_s);
	else if (c->status)
		snprintf(how, sizeof(how), ", status %d", c->status);
	fprintf(report->manifest, "%-26s %s (%zu bytes%s%s)\n", name, from, c->len, how,
		c->is_cut ? ", the first of more" : "");
	json_object_object_add(object, "name", json_object_new_string(name));
	json_object_object_add(object, "from", json_object_new_string(from));
	json_object_object_add(object, "bytes", json_object_new_int64((int64_t)c->len));
	json_object_object_add(object, "status", json_object_new_int(c->status));
	json_object_object_add(object, "late", json_object_new_boolean(c->is_late));
	json_object_object_add(object, "cut", json_object_new_boolean(c->is_cut));
	json_object_array_add(report->contents, object);
}

static void leave_out(struct report *report, const char *name, const char *why)
{
	fprintf(report->manifest, "%-26s left out: %s\n", name, why);
}

static void add(struct report *report, const struct source *source, struct es_capture *c)
{
	const char *from = source->from + (*source->from == '<');

	if (c->text && source->rule == NO_SECRETS)
		c->len = drop_secret_lines(c->text, c->len);
	if (c->text)
		hide(report, c->text, c->len);
	es_archive_add(&report->archive, source->name, c->text, c->len);
	note(report, source->name, from, c);
}

/* The command's words into @argv; the first one's "earshot" is this very program. */
static void command_run(const struct report *report, const struct source *source, struct es_capture *ret)
{
	char words[256], *argv[WORDS_MAX + 1], *rest = words;
	unsigned int count = 0;

	snprintf(words, sizeof(words), "%s", source->from);
	for (char *word; count < WORDS_MAX && (word = strsep(&rest, " "));) {
		if (count || strcmp(word, "earshot") != 0) {
			argv[count++] = word;
			continue;
		}
		argv[count++] = (char *)"/proc/self/exe";
		if (report->option[0])
			argv[count++] = (char *)report->option;
	}
	argv[count] = NULL;
	es_capture_run(argv, source->limit_s > 0 ? source->limit_s : COMMAND_S, FILE_MAX, ret);
}

static void append_file(const char *path, struct es_capture *ret)
{
	FILE *file = fopen(path, "re");
	size_t n;

	if (!file) {
		ret->status = errno;
		return;
	}
	n = fread(ret->text + ret->len, 1, FILE_MAX - ret->len, file);
	ret->len += n;
	ret->is_cut |= fgetc(file) != EOF;
	fclose(file);
}

/* The files' texts, one behind another. */
static void files_read(const char *pattern, struct es_capture *ret)
{
	glob_t found = {};

	memset(ret, 0, sizeof(*ret));
	ret->text = malloc(FILE_MAX);
	if (ret->text && glob(pattern, GLOB_NOCHECK, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++)
			append_file(found.gl_pathv[i], ret);
	globfree(&found);
}

static void collect(struct report *report, const struct source *source)
{
	struct es_capture c;

	if (source->asks && !report->answers) {
		leave_out(report, source->name, "no daemon answers");
		return;
	}
	if (now_s() - report->begin_s > ALL_S) {
		leave_out(report, source->name, "all before took too long");
		return;
	}
	if (*source->from == '<')
		files_read(source->from + 1, &c);
	else
		command_run(report, source, &c);
	add(report, source, &c);
	free(c.text);
}

/* Its copy for strangers; from now on, what that leaves out is left out of all. */
static void add_config(struct report *report, const char *path)
{
	const struct source source = {.name = "earshot/earshot.conf", .from = path};
	struct es_capture c, shown = {};
	FILE *out;

	files_read(path, &c);
	shown.status = c.status;
	shown.is_cut = c.is_cut;
	out = open_memstream(&shown.text, &shown.len);
	if (c.text && out)
		es_conf_redact(c.text, c.len, out, on_hidden, report);
	if (out)
		fclose(out);
	add(report, &source, &shown);
	free(shown.text);
	free(c.text);
}

/* Ask for the daemon's status: so it is known whether one answers, and which configuration it has. */
static void ask_status(struct report *report, struct es_capture *ret, char *config, size_t size)
{
	static const struct source source = {.from = "earshot --json status"};
	struct json_object *status;

	command_run(report, &source, ret);
	report->answers = !ret->status && !ret->is_late;
	if (!report->answers || !ret->text || ret->len == FILE_MAX)
		return;
	ret->text[ret->len] = 0;
	status = json_tokener_parse(ret->text);
	if (status && *es_json_string(status, "config") == '/')
		snprintf(config, size, "%s", es_json_string(status, "config"));
	json_object_put(status);
}

static void begin_manifest(const struct report *report, const char *config)
{
	fprintf(report->manifest,
		"earshot %s report, of the configuration %s\n\n"
		"It has no keys. Comments, plugins' configurations, values of headers, queries and words "
		"that "
		"are not settings are left out of the configuration, here and in the output of programs. "
		"There may be addresses: of nodes, of neighbours, in packet filters and, where a request has "
		"ended a daemon, its client's. No file has more than %u bytes.\n\n",
		EARSHOT_VERSION, config, FILE_MAX);
}

static void collect_all(struct report *report, const struct es_cli *cli)
{
	static const struct source status = {.name = "earshot/status.json", .from = "earshot --json status"};
	char config[ES_CONF_PATH_SIZE] = CONFIG_DEFAULT, check[ES_CONF_PATH_SIZE + 64], *text = NULL;
	struct source checked = {.name = "earshot/check.txt", .from = check, .limit_s = CHECK_S};
	struct es_capture answer;
	size_t len = 0;

	report->manifest = open_memstream(&text, &len);
	if (!report->manifest) {
		report->archive.error = -ENOMEM;
		return;
	}
	ask_status(report, &answer, config, sizeof(config));
	if (cli->config)
		snprintf(config, sizeof(config), "%s", cli->config);
	begin_manifest(report, config);
	add_config(report, config);
	add(report, &status, &answer);
	free(answer.text);
	snprintf(check, sizeof(check), "earshot check --verbose --config=%s", config);
	collect(report, &checked);
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		collect(report, &sources[i]);
	fclose(report->manifest);
	es_archive_add(&report->archive, "README.txt", text, len);
	free(text);
}

static void name_make(const struct es_cli *cli, char *folder, size_t size)
{
	time_t now = (time_t)(es_wall_ns() / 1000000000ULL);
	struct utsname machine;
	char when[32] = "";
	struct tm tm;

	if (localtime_r(&now, &tm))
		strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &tm);
	uname(&machine);
	snprintf(folder, size, "earshot-report-%.32s-%s", cli->node ? cli->node : machine.nodename, when);
}

/* Returns ES_CLI_OK, also where none runs; then there is nothing to be named. */
static int daemon_find(const struct es_cli *cli, struct report *report)
{
	char why[512], path[480];
	int r;

	es_cli_hold(why, sizeof(why));
	r = es_cli_socket_path(cli, path, sizeof(path));
	es_cli_hold(NULL, 0);
	if (r == ES_CLI_NO_DAEMON)
		return ES_CLI_OK;
	if (r)
		return es_cli_fail("%s", why);
	if (cli->node)
		snprintf(report->option, sizeof(report->option), "--node=%s", cli->node);
	else
		snprintf(report->option, sizeof(report->option), "--control=%s", path);
	return ES_CLI_OK;
}

static int make(const struct es_cli *cli, struct report *report, const char *folder, const char *path)
{
	char *part = NULL;
	int rc;

	if (asprintf(&part, "%s.part", path) < 0)
		return es_cli_fail("out of memory");
	unlink(part);
	rc = access(path, F_OK) ? es_archive_open(&report->archive, part, folder) : -EEXIST;
	if (!rc) {
		collect_all(report, cli);
		rc = es_archive_close(&report->archive);
		if (!rc && rename(part, path))
			rc = -errno;
		if (rc)
			unlink(part);
	}
	free(part);
	return rc ? es_cli_fail("%s: cannot be written: %s", path, strerror(-rc)) : ES_CLI_OK;
}

static int run(const struct es_cli *cli)
{
	struct report report = {.begin_s = now_s()};
	char folder[80], name[96];
	const char *path = cli->output ? cli->output : name;
	struct stat made = {};
	int r = daemon_find(cli, &report);

	if (r)
		return r;
	if (es_capture_find_all() || setenv("LC_ALL", "C.UTF-8", 1))
		return es_cli_fail("out of memory");
	signal(SIGPIPE, SIG_IGN); /* of gzip, on a full disk */
	name_make(cli, folder, sizeof(folder));
	snprintf(name, sizeof(name), "%s.tar.gz", folder);
	report.contents = json_object_new_array();
	r = make(cli, &report, folder, path);
	if (!r && stat(path, &made))
		r = es_cli_fail("%s: %s", path, strerror(errno));
	if (!r && cli->json) {
		struct json_object *object = json_object_new_object();

		json_object_object_add(object, "file", json_object_new_string(path));
		json_object_object_add(object, "bytes", json_object_new_int64(made.st_size));
		json_object_object_add(object, "daemon", json_object_new_boolean(report.answers));
		json_object_object_add(object, "contents", json_object_get(report.contents));
		es_cli_print_json(object);
		json_object_put(object);
	} else if (!r) {
		printf("%s: %lld bytes%s; README.txt in it says what it has\n", path, (long long)made.st_size,
		       report.answers ? "" : ", made without a daemon");
	}
	json_object_put(report.contents);
	for (unsigned int i = 0; i < report.secret_count; i++)
		free(report.secret[i]);
	return r;
}

static const struct argp_option options[] = {
	{"config", ES_CLI_OPT_CONFIG, "FILE", 0,
	 "the configuration (default: the running daemon's, or " CONFIG_DEFAULT ")", 0},
	{"output", ES_CLI_OPT_OUTPUT, "FILE", 0,
	 "write FILE (default: earshot-report-MACHINE-TIME.tar.gz, here)", 0},
	{0},
};

const struct es_cli_command es_cli_report = {
	.name = "report",
	.doc = "Make one archive with all that a bug report needs: what the daemon says of itself, its log "
	       "and events, the "
	       "configuration without secrets, findings of check, the network's and the kernel's state. It "
	       "has no keys, "
	       "and needs no daemon.",
	.options = options,
	.run = run,
};
