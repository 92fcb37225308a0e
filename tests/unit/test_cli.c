// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The earshot program as a user runs it: its output for the example replies of docs/json.md, which daemon it
 * picks, its exit statuses. The daemon's place is taken by a control socket server in a child process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <ev.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "earshot_version.h"
#include "inspector/control/control.h"
#include "tests/unit/doc_examples.h"

static char directory[] = "/tmp/earshot-cli-XXXXXX";
static char n1[64], n2[64], output[65536];
static pid_t daemon_pid;

/* The first node says how busy it is, as in the example of a cluster with membership. */
static void load_copy(struct json_object *status)
{
	struct json_object *membership = doc_example("membership");
	struct json_object *from = json_object_array_get_idx(json_object_object_get(membership, "nodes"), 0);
	struct json_object *to = json_object_array_get_idx(json_object_object_get(status, "nodes"), 0);

	json_object_object_foreach(from, key, value) json_object_object_add(to, key, json_object_get(value));
	json_object_put(membership);
}

/* And a plugin, which has failed. */
static void plugin_copy(struct json_object *status)
{
	struct json_object *from = doc_example("plugins"), *plugins = json_object_object_get(from, "plugins");

	json_object_object_add(json_object_array_get_idx(plugins, 0), "last_error",
			       json_object_new_string("route.lua:3: what"));
	json_object_object_add(status, "plugins", json_object_get(plugins));
	json_object_put(from);
}

static struct json_object *example_of(const char *name)
{
	struct json_object *example = doc_example(name);

	if (!strcmp(name, "status")) {
		load_copy(example);
		plugin_copy(example);
	}
	return example;
}

/* Answers with the documentation's example, or with its look-up example, or shows what was asked. */
static int answer(void *ctx, struct json_object *request, struct json_object **ret_result,
		  struct es_conf_error *err)
{
	const char *name = ctx;
	struct json_object *lookup, *port;

	if (json_object_object_get_ex(request, "lookup", &lookup)) {
		name = "lookup";
		if (json_object_object_get_ex(lookup, "port", &port) && json_object_get_int(port) == 1) {
			es_conf_error_set(err, "asked: %s",
					  json_object_to_json_string_ext(request, JSON_C_TO_STRING_PLAIN));
			return -EINVAL;
		}
	}
	*ret_result = example_of(name);
	return *ret_result ? 0 : -ENOENT;
}

static void run_daemon(int ready_fd)
{
	struct ev_loop *loop = ev_loop_new(0);
	struct es_control *control;

	/* nothing here survives the test, however that ends */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || es_control_new(loop, n1, &control, NULL))
		_exit(1);
	es_control_register(control, "status", answer, "status");
	es_control_register(control, "ring", answer, "ring");
	es_control_register(control, "counters", answer, "counters");
	es_control_register(control, "flows", answer, "flows");
	es_control_register(control, "crash", answer, "crash");
	es_control_register(control, "reload", answer, "reload");
	es_control_register(control, "stop", answer, "stop");
	(void)!write(ready_fd, "", 1);
	ev_run(loop, 0);
	_exit(1);
}

static int start(void **state)
{
	int ready[2];
	char c;

	(void)state;
	if (!mkdtemp(directory) || pipe(ready))
		return -1;
	snprintf(n1, sizeof(n1), "%s/n1.sock", directory);
	snprintf(n2, sizeof(n2), "%s/n2.sock", directory);
	setenv("EARSHOT_DIRECTORY", directory, 1);
	unsetenv("EARSHOT_NODE");
	daemon_pid = fork();
	if (daemon_pid < 0)
		return -1;
	if (!daemon_pid) {
		close(ready[0]);
		run_daemon(ready[1]);
	}
	close(ready[1]);
	return read(ready[0], &c, 1) == 1 ? 0 : -1;
}

static int finish(void **state)
{
	(void)state;
	kill(daemon_pid, SIGKILL);
	waitpid(daemon_pid, NULL, 0);
	unlink(n1);
	return rmdir(directory);
}

/* Runs earshot with @arguments through the shell, leaves stdout and stderr in output. Return: its exit
 * status. */
static int earshot(const char *arguments)
{
	char command[1024];
	size_t used;
	FILE *pipe;
	int status;

	snprintf(command, sizeof(command), "%s %s 2>&1", EARSHOT_CLI, arguments);
	pipe = popen(command, "r"); /* NOLINT(cert-env33-c): arguments are those of this file */
	assert_non_null(pipe);
	used = fread(output, 1, sizeof(output) - 1, pipe);
	output[used] = 0;
	status = pclose(pipe);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void expect(const char *arguments, int status, const char *text)
{
	int got = earshot(arguments);

	if (got != status || strcmp(output, text) != 0)
		fail_msg("earshot %s: status %d:\n%s", arguments, got, output);
}

static void test_tables(void **state)
{
	(void)state;
	expect("status", 0,
	       "node      n1 of cluster lab, earshotd 0.1.0, up 1 h 2 min\n"
	       "datapath  bpf, inspecting\n"
	       "ring      epoch 3, members 2\n"
	       "\n"
	       "NODE  ADDRESS    WEIGHT  STATE  SHARE  CONNS  ACTIVE  LOAD    MEAN  CPU  DISK\n"
	       "n1 *  10.78.0.1     100  up     50.8%     17       3   300  2.5 ms  25%   12%\n"
	       "n2    10.78.0.2     100  up     49.2%      -       -     -       -    -     -\n"
	       "\n"
	       "SERVICE  ADDRESS      PORT  POLICY    INSPECT\n"
	       "web      10.77.0.100    80  uri-hash  first\n"
	       "\n"
	       "PLUGIN  SERVICE  VERSION  CALLS  NODE  NODES  PASS  MORE  REJECT  FAILED  MEAN US  MAX US\n"
	       "canary  web      1.0       1200     0   1199     0     0       0       1      0.4    17.9\n"
	       "plugin canary of service web failed last with: route.lua:3: what\n"
	       "\n"
	       "WORKERS    TOTAL  EACH\n"
	       "requests    2500  1200 1300\n"
	       "handovers   1200  590 610\n");
	expect("nodes", 0,
	       "NODE  ADDRESS    WEIGHT  STATE  SHARE  CONNS  ACTIVE  LOAD    MEAN  CPU  DISK\n"
	       "n1 *  10.78.0.1     100  up     50.8%     17       3   300  2.5 ms  25%   12%\n"
	       "n2    10.78.0.2     100  up     49.2%      -       -     -       -    -     -\n");
	expect("ring", 0,
	       "epoch 3, 63 virtual nodes at weight 100\n"
	       "\n"
	       "MEMBER  ADDRESS    VIRTUAL NODES  SHARE\n"
	       "n1      10.78.0.1             63  50.8%\n"
	       "n2      10.78.0.2             63  49.2%\n");
	expect("ring --points | tail -n 3", 0,
	       "POSITION          MEMBER\n"
	       "00d1f2a900000000  n2\n"
	       "80aa017c00000000  n1\n");
	expect("ring lookup 192.0.2.7 40000", 0,
	       "n2 (10.78.0.2) inspects 192.0.2.7 port 40000 to service web: position c0ffee0000000000, "
	       "epoch 3\n");
	expect("counters", 0,
	       "COUNTER                             VALUE  DESCRIPTION\n"
	       "deliver_established  18446744073709551615  segment of a connection whose socket is here\n"
	       "syn_answered                           42  SYN answered with a cookie\n");
	expect("counters --all | sed -n 3p", 0,
	       "drop_not_mine                           0  packet of a flow that another node inspects or "
	       "holds\n");
	expect("flows", 0,
	       "2 connections: 1 idle, 0 serving, 0 deciding, 1 pinned, 0 closing\n"
	       "\n"
	       "CLIENT      PORT  SERVICE  STATE   REQUESTS  MOVES  PINNED BY\n"
	       "10.77.1.1  40312  web      idle          17      5  none\n"
	       "10.77.1.1  40318  web      pinned         2      0  upgrade\n"
	       "\n"
	       "idle connections kept for other nodes: 1; of this one by others: 1\n"
	       "\n"
	       "CLIENT      PORT  SERVICE  KEPT FOR\n"
	       "10.77.1.9  51200  web      n2\n"
	       "\n"
	       "clients of other nodes that wait for an answer, known here: 1; of this one known to others: "
	       "2\n"
	       "\n"
	       "long responses kept for other nodes: 1; of this one by others: 2; gone on with: 3, broken "
	       "off: 0, "
	       "reset: 1\n");
	expect("explain --crash n2 | tail -n 2", 0,
	       "SERVICE  SURVIVE  RESUME  RESET  ANSWERING  DECIDING  PINNED  NOT TOLD  NO SURVIVE  NOT "
	       "READ\n"
	       "web          110       4     13          8         1       3         1           0         "
	       "0\n");
	expect("flows --limit x 2>&1", 64, "earshot: bad limit \"x\": expected 0..1000000\n");
	expect("reload", 0, "reloaded, epoch 4\n");
	expect("stop", 0, "");
	expect("version", 0, "earshot " EARSHOT_VERSION "\n");
	/* The daemon, which is a thread of this test here, would be left without its datapath. */
	assert_int_equal(earshot("detach 2>&1"), 1);
	assert_non_null(strstr(output, "earshot: detach: a daemon answers on "));
	assert_non_null(strstr(output, "/n1.sock and would be left without its datapath"));
}

static void expect_json(const char *arguments, const char *example_name)
{
	struct json_object *example = example_of(example_name), *printed;

	assert_int_equal(earshot(arguments), 0);
	printed = json_tokener_parse(output);
	assert_non_null(printed);
	if (!json_object_equal(example, printed))
		fail_msg("earshot %s:\n%s", arguments, output);
	json_object_put(example);
	json_object_put(printed);
}

static void test_json(void **state)
{
	(void)state;
	expect_json("--json status", "status");
	expect_json("status --json", "status");
	expect_json("ring -j -p", "ring");
	expect_json("ring lookup --json 192.0.2.7 40000", "lookup");
	expect_json("counters --json", "counters");
	expect_json("flows --json --pinned --limit 5", "flows");
	expect_json("reload --json", "reload");
	expect_json("stop --json", "stop");
	assert_int_equal(earshot("nodes --json"), 0);
	assert_non_null(strstr(output, "\"nodes\": ["));
	expect("version --json", 0, "{ \"version\": \"" EARSHOT_VERSION "\" }\n");
}

static void test_requests(void **state)
{
	(void)state;
	expect("ring lookup 192.0.2.7 1", 1,
	       "earshot: asked: {\"command\":\"ring\",\"lookup\":{\"address\":\"192.0.2.7\",\"port\":1}}\n");
	expect("ring --service web lookup 192.0.2.7 1", 1,
	       "earshot: asked: "
	       "{\"command\":\"ring\",\"lookup\":{\"address\":\"192.0.2.7\",\"port\":1,\"service\":"
	       "\"web\"}}\n");
	expect("ring lookup 192.0.2.7 ' 1'", 64, "earshot: bad client port \" 1\": expected 1..65535\n");
	expect("ring lookup 192.0.2.7 65536", 64, "earshot: bad client port \"65536\": expected 1..65535\n");
	expect("ring lookup 192.0.2.7", 64, "earshot: ring: expected nothing, or lookup ADDRESS PORT\n");
	expect("ring help", 64, "earshot: ring: expected nothing, or lookup ADDRESS PORT\n");
	expect("flows --limit -1", 64, "earshot: bad limit \"-1\": expected 0..1000000\n");
	expect("table --limit 100001", 64, "earshot: bad limit \"100001\": expected 0..100000\n");
	expect("weight n1 -- -5", 64, "earshot: bad weight \"-5\": expected 0..1000\n");
	expect("weight n1 5x", 64, "earshot: bad weight \"5x\": expected 0..1000\n");
	expect("drain n1 --wait 20", 64, "earshot: drain: --wait 20: expected --wait=20\n");
	expect("drain --wait 2.5", 64, "earshot: drain: --wait 2.5: expected --wait=2.5\n");
	expect("drain --wait=soon n1", 64, "earshot: bad time \"soon\": expected seconds\n");
	expect("explain nothing", 64,
	       "earshot: \"nothing\": expected a path, which begins with /, or 'METHOD PATH'\n");
	expect("explain / --client 192.0.2.1:-1", 64,
	       "earshot: bad client \"192.0.2.1:-1\": expected ADDRESS[:PORT], an IPv6 address in "
	       "brackets\n");
	expect("explain / --client [2001:db8::1]80", 64,
	       "earshot: bad client \"[2001:db8::1]80\": expected ADDRESS[:PORT], an IPv6 address in "
	       "brackets\n");
	expect("explain / --client [2001:db8::1:80", 64,
	       "earshot: bad client \"[2001:db8::1:80\": expected ADDRESS[:PORT], an IPv6 address in "
	       "brackets\n");
	expect("explain / -H X", 64, "earshot: bad header \"X\": expected NAME: VALUE\n");
}

static void test_which_daemon(void **state)
{
	char arguments[256], text[512];

	(void)state;
	expect("nodes --node n1 | wc -l", 0, "3\n");
	expect("--node=n1 nodes | wc -l", 0, "3\n");
	snprintf(arguments, sizeof(arguments), "nodes --control %s --node n7 | wc -l", n1);
	expect(arguments, 0, "3\n");
	snprintf(text, sizeof(text), "earshot: no earshotd answers on %s: No such file or directory\n", n2);
	expect("nodes --node n2", 2, text);
	setenv("EARSHOT_NODE", "n2", 1);
	expect("nodes", 2, text);
	expect("nodes --node n1 | wc -l", 0, "3\n");
	unsetenv("EARSHOT_NODE");
	expect("nodes --node ../x", 1,
	       "earshot: no node can be named \"../x\": expected the name of a node\n");
	expect("nodes --node ''", 1, "earshot: no node can be named \"\": expected the name of a node\n");

	fclose(fopen(n2, "w"));
	expect("nodes", 1, "earshot: several nodes run here: give --node NAME, one of n1, n2\n");
	snprintf(text, sizeof(text), "earshot: no earshotd answers on %s: Connection refused\n", n2);
	expect("nodes -n n2", 2, text);
	unlink(n2);

	setenv("EARSHOT_DIRECTORY", "/nonexistent", 1);
	expect("nodes", 2,
	       "earshot: no earshotd runs here (no socket in /nonexistent): start it, or give --control "
	       "PATH\n");
	setenv("EARSHOT_DIRECTORY", directory, 1);
}

/* A daemon that was not restarted since this program was updated. */
static void test_old_daemon(void **state)
{
	char arguments[128];

	(void)state;
	snprintf(arguments, sizeof(arguments), "--control %s drain", n1);
	assert_int_equal(earshot(arguments), 1);
	assert_non_null(strstr(output, "version before this program's"));
	assert_non_null(strstr(output, "systemctl restart earshotd"));
	assert_non_null(strstr(output, "unknown command \"drain\""));
}

static void test_command_line(void **state)
{
	(void)state;
	assert_int_equal(earshot(""), 64);
	assert_non_null(strstr(output, "expected a command"));
	assert_int_equal(earshot("sing"), 64);
	assert_non_null(strstr(output, "unknown command \"sing\""));
	assert_int_equal(earshot("status now"), 64);
	assert_non_null(strstr(output, "earshot status: unexpected argument \"now\""));
	assert_int_equal(earshot("status --all"), 64);
	assert_int_equal(earshot("keygen"), 64);
	assert_non_null(strstr(output, "earshot keygen: expected FILE"));
	assert_int_equal(earshot("--help"), 0);
	assert_non_null(strstr(output, "check-config"));
	assert_int_equal(earshot("keygen --help"), 0);
	assert_non_null(strstr(output, "--stage"));
	assert_non_null(strstr(output, "--json"));
	assert_int_equal(earshot("--version"), 0);
	assert_string_equal(output, "earshot " EARSHOT_VERSION "\n");
	assert_int_equal(earshot("-h"), 0);
	assert_non_null(strstr(output, "check-config"));
	assert_int_equal(earshot("help"), 0);
	assert_non_null(strstr(output, "check-config"));
	assert_int_equal(earshot("keygen -h"), 0);
	assert_non_null(strstr(output, "--stage"));
	assert_int_equal(earshot("help keygen"), 0);
	assert_non_null(strstr(output, "--stage"));
	assert_int_equal(earshot("--node n1 help keygen"), 0);
	assert_non_null(strstr(output, "--stage"));
	assert_int_equal(earshot("help sing"), 64);
	assert_non_null(strstr(output, "unknown command \"sing\""));
}

/* The result is the output: a disk that is full, or an end that nobody holds, is a failure. */
static void test_output_that_fails(void **state)
{
	static const char *const commands[] = {"status",    "status --json", "version",
					       "help",	    "--help",	     "-h",
					       "keygen -h", "--version",     "version --json"};
	char arguments[64], where[32];

	(void)state;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		for (int closed = 0; closed < 2; closed++) {
			snprintf(where, sizeof(where), "%s", closed ? ">&-" : ">/dev/full");
			snprintf(arguments, sizeof(arguments), "%s 2>&1 %s #", commands[i], where);
			assert_int_equal(earshot(arguments), 1);
			if (strncmp(output, "earshot", 7) != 0 || !strstr(output, "standard output: "))
				fail_msg("%s: %s", arguments, output);
		}
}

/* The findings about a machine are tests/check's; this tests how `earshot check` ends when it cannot look. */
static void test_check(void **state)
{
	(void)state;
	expect("check --config /nonexistent", 2,
	       "earshot: /nonexistent: cannot be opened: No such file or directory\n");
	expect("check --json --node nobody --config " EARSHOT_SOURCE "/conf/earshot.conf.example", 2,
	       "earshot: " EARSHOT_SOURCE "/conf/earshot.conf.example: no node named \"nobody\": expected n1 "
	       "(10.78.0.1), n2 (10.78.0.2), n3 (10.78.0.3)\n");
	assert_int_equal(earshot("check now"), 64);
	assert_int_equal(earshot("check --help"), 0);
	assert_non_null(strstr(output, "--strict"));
}

static void test_keygen(void **state)
{
	char arguments[128], text[256], file[80];
	struct stat st;

	(void)state;
	snprintf(file, sizeof(file), "%s/key", directory);
	snprintf(arguments, sizeof(arguments), "keygen %s", file);
	expect(arguments, 0, "");
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	snprintf(text, sizeof(text), "earshot: %s: cannot be created: File exists\n", file);
	expect(arguments, 1, text);
	snprintf(arguments, sizeof(arguments), "keygen --stage %s", file);
	expect(arguments, 0, "");
	snprintf(arguments, sizeof(arguments), "keygen --rotate %s", file);
	expect(arguments, 0, "");
	snprintf(arguments, sizeof(arguments), "keygen -f %s", file);
	expect(arguments, 0, "");
	snprintf(arguments, sizeof(arguments), "keygen -f --stage %s", file);
	expect(arguments, 64, "earshot: keygen: expected either --stage or --rotate\n");
	assert_int_equal(unlink(file), 0);
}

static void test_check_config(void **state)
{
	static const char example[] = EARSHOT_SOURCE "/conf/earshot.conf.example";
	char arguments[512], text[2048], file[80];
	FILE *conf;

	(void)state;
	snprintf(arguments, sizeof(arguments), "check-config %s", example);
	snprintf(text, sizeof(text),
		 "%s: correct, cluster lab\n"
		 "\n"
		 "NODE  ADDRESS    WEIGHT\n"
		 "n1    10.78.0.1     100\n"
		 "n2    10.78.0.2     100\n"
		 "n3    10.78.0.3     100\n"
		 "\n"
		 "SERVICE  ADDRESS      PORT  POLICY\n"
		 "web      10.77.0.100    80  uri-hash\n",
		 example);
	expect(arguments, 0, text);
	snprintf(arguments, sizeof(arguments), "check-config --json %s | tr -d '\\n'", example);
	snprintf(text, sizeof(text),
		 "{  \"path\": \"%s\",  \"cluster\": \"lab\",  \"nodes\": 3,  \"services\": 1,  \"plugins\": "
		 "[  ],  \"warnings\": [  ]}",
		 example);
	expect(arguments, 0, text);
	snprintf(file, sizeof(file), "%s/c", directory);
	conf = fopen(file, "w");
	assert_non_null(conf);
	fputs("cluster { name = \"caf\xc3\xa9\" }\ndatapath { interface = a cluster_interface = b }\n"
	      "inspector { program_group = no-such-group }\nnode n1 { address = 10.78.0.1 }\n"
	      "service s { address = 10.77.0.1 port = 80 document_root = /no/such }\n"
	      "location /a%20b/ { cost = 1 }\nrule r {\n path = {/c%2A, /%C3%A9/} suffix = .m%704 cost = 1 "
	      "}\n"
	      "rule bots { header = \"User-Agent: *bot*\" deny = yes }\n"
	      "rule images { header = \"Accept: image/*, */*;q=0.8\" cost = 2 }\n",
	      conf);
	fclose(conf);
	snprintf(arguments, sizeof(arguments), "check-config %s 2>&1 >/dev/null #", file);
	snprintf(text, sizeof(text),
		 "earshot: warning: %1$s:6: location /a%%20b/ is \"/a b/\": %%XX is decoded, and a percent "
		 "sign itself is "
		 "%%25\n"
		 "earshot: warning: %1$s:8: rule r: suffix = .m%%704 is \".mp4\": %%XX is decoded, and a "
		 "percent sign "
		 "itself is %%25\n"
		 "earshot: warning: %1$s:9: rule bots: header = User-Agent: *bot*: a value is compared as a "
		 "whole, and * stands for itself\n"
		 "earshot: warning: %1$s: inspector: program_group = no-such-group: no such group on this "
		 "machine: earshotd "
		 "does not start without\n"
		 "earshot: warning: %1$s: service s: document_root = /no/such: on this machine: No such file "
		 "or directory\n",
		 file);
	expect(arguments, 0, text);
	assert_int_equal(unlink(file), 0);
	conf = fopen(file, "w");
	assert_non_null(conf);
	fputs("cluster {\n  handover_port = 0\n  virtual_nodes = 0\n}\ndatapath { interface = a "
	      "cluster_interface = b }\n"
	      "node n1 { address = 10.78.0.1 }\nservice s { address = 10.77.0.1 port = 80 }\n",
	      conf);
	fclose(conf);
	snprintf(arguments, sizeof(arguments), "check-config %s", file);
	snprintf(text, sizeof(text),
		 "earshot: %1$s:2: cluster: handover_port = 0: expected 1..65535\n"
		 "earshot: %1$s:3: cluster: virtual_nodes = 0: expected 1..1024 (for a node with weight "
		 "100)\n",
		 file);
	expect(arguments, 1, text);
	snprintf(arguments, sizeof(arguments), "check-config --json %s 2>/dev/null | tr -d '\\n' #", file);
	snprintf(text, sizeof(text),
		 "{  \"path\": \"%1$s\",  \"errors\": [    \"%1$s:2: cluster: handover_port = 0: expected "
		 "1..65535\",    \"%1$s:3: cluster: virtual_nodes = 0: expected 1..1024 (for a node with "
		 "weight "
		 "100)\"  ]}",
		 file);
	expect(arguments, 0, text);
	assert_int_equal(unlink(file), 0);
}

/* Names of files, and what clients send, are any bytes; JSON is UTF-8. */
static void test_json_is_utf8(void **state)
{
	char path[80], arguments[160];

	(void)state;
	snprintf(path, sizeof(path), "%s/caf\xe9\xc3.conf", directory);
	snprintf(arguments, sizeof(arguments), "%s " EARSHOT_SOURCE "/conf/earshot.conf.example %s", "cp",
		 path);
	assert_int_equal(system(arguments), 0); /* NOLINT(cert-env33-c): as above */
	snprintf(arguments, sizeof(arguments), "check-config --json %s", path);
	assert_int_equal(earshot(arguments), 0);
	assert_non_null(strstr(output, "/caf\xef\xbf\xbd\xef\xbf\xbd.conf\""));
	assert_null(strstr(output, "\xe9"));
	snprintf(arguments, sizeof(arguments), "check-config %s", path); /* text has the name as it is */
	assert_int_equal(earshot(arguments), 0);
	assert_non_null(strstr(output, path));
	assert_int_equal(unlink(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),	     cmocka_unit_test(test_json),
		cmocka_unit_test(test_requests),     cmocka_unit_test(test_which_daemon),
		cmocka_unit_test(test_old_daemon),   cmocka_unit_test(test_command_line),
		cmocka_unit_test(test_keygen),	     cmocka_unit_test(test_check),
		cmocka_unit_test(test_check_config), cmocka_unit_test(test_output_that_fails),
		cmocka_unit_test(test_json_is_utf8),
	};

	return cmocka_run_group_tests_name("cli", tests, start, finish);
}
