// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Workers come in generations: a reload starts another one, which accepts from the same listening sockets,
 * and the one before only serves whom it has. A worker that dies is started again, in its place.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "inspector/ask/wire.h"
#include "inspector/base/clock.h"
#include "inspector/base/log.h"
#include "inspector/base/wall.h"
#include "inspector/control/control.h"
#include "libearshot/wire.h"
#include "tls/serve/confine.h"
#include "tls/serve/ledger.h"
#include "tls/serve/parent.h"
#include "tls/serve/processes.h"
#include "tls/serve/window.h"
#include "tls/serve/worker.h"

#define NS_PER_S      1000000000ULL
#define TICK_MS	      1000
#define PROCESSES_MAX (ES_SETTINGS_WORKERS_MAX * 4) /* with those of generations before */
#define AGAIN_NS      (1 * NS_PER_S)	/* a worker that lived no longer than this begins only after it */
#define OLD_NS	      (3600 * NS_PER_S) /* so long a generation before serves whom it has */
#define END_NS	      (15 * NS_PER_S)	/* longer than a worker takes after ES_ORDER_END */

/**
 * struct parent
 * @ledger: what workers count; each element of @process has a place there
 * @again_ns: of each number: not before this is another one started
 * @ktls_has: what the kernel's record layer was seen to do, once it @has_looked
 * @day: for which the tickets' keys are
 * @window: es_window_attach()'s; -1: sockets begin as any
 */
struct parent {
	const struct es_parent_options *options;
	struct es_settings *settings;
	struct es_listeners listeners;
	struct es_identity identity;
	struct es_tls_taken *taken;
	struct es_peers *peers;
	struct es_serve_ledger ledger;
	struct es_process process[PROCESSES_MAX];
	unsigned long long again_ns[ES_SETTINGS_WORKERS_MAX];
	unsigned long long day;
	unsigned int ktls_has;
	int has_looked;
	int window;
	int signals;
	int is_ending;
	char ask[ES_CONF_PATH_SIZE];
	char handover[ES_CONF_PATH_SIZE];
	char ledger_path[ES_CONF_PATH_SIZE];
};

static void order(const struct es_process *process, enum es_order_kind kind, const struct es_tls_keys *keys)
{
	struct es_order message = {.kind = kind};

	if (keys) {
		message.keys = *keys;
		message.day = es_settings_day();
	}
	if (send(process->orders, &message, sizeof(message), MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
	    errno != EPIPE)
		es_log(ES_LOG_WARNING, "worker %u (process %d) does not hear: %s", process->number,
		       (int)process->pid, strerror(errno));
	es_tls_keys_wipe(&message.keys);
}

static struct es_process *running(struct parent *p, unsigned int number)
{
	for (unsigned int i = 0; i < PROCESSES_MAX; i++)
		if (p->process[i].pid && !p->process[i].is_old && p->process[i].number == number)
			return &p->process[i];
	return NULL;
}

/* --- a worker's life */

__attribute__((noreturn)) static void be_worker(struct parent *p, unsigned int number, int orders,
						struct es_ledger_block *counters)
{
	const struct es_worker_params params = {
		.number = number,
		.settings = p->settings,
		.listeners = &p->listeners,
		.orders = orders,
		.counters = counters,
		.taken = p->taken,
		.ktls_has = p->ktls_has,
		.peers = p->peers,
		.ask = p->ask,
		.handover = p->handover,
	};
	int rc;

	close(p->signals);
	for (unsigned int i = 0; i < PROCESSES_MAX; i++)
		if (p->process[i].pid)
			close(p->process[i].orders);
	if (p->window >= 0)
		close(p->window);
	rc = es_confine(&p->identity);
	if (rc) {
		es_log(ES_LOG_ERR, "worker %u: cannot give up its rights: %s", number, strerror(-rc));
		_exit(EXIT_FAILURE);
	}
	_exit(es_worker_run(&params));
}

static int start(struct parent *p, unsigned int number)
{
	struct es_process *free_one = NULL;
	struct es_ledger_block *counters;
	int orders[2], rc;
	pid_t pid;

	for (unsigned int i = 0; i < PROCESSES_MAX && !free_one; i++)
		if (!p->process[i].pid)
			free_one = &p->process[i];
	if (!free_one)
		return -EAGAIN;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, orders))
		return -errno;
	counters = es_serve_ledger_place(&p->ledger, (unsigned int)(free_one - p->process));
	pid = fork();
	if (pid < 0) {
		rc = -errno;
		close(orders[0]);
		close(orders[1]);
		return rc;
	}
	if (!pid) {
		close(orders[0]);
		be_worker(p, number, orders[1], counters);
	}
	close(orders[1]);
	*free_one = (struct es_process){
		.pid = pid, .number = number, .orders = orders[0], .since_ns = es_clock_now_ns()};
	return 0;
}

/* Each number has its worker. */
static void start_missing(struct parent *p)
{
	unsigned long long now_ns = es_clock_now_ns();
	int rc;

	for (unsigned int i = 0; i < p->settings->most_workers && !p->is_ending; i++) {
		if (running(p, i) || now_ns < p->again_ns[i])
			continue;
		rc = start(p, i);
		if (rc) {
			p->again_ns[i] = now_ns + AGAIN_NS;
			es_log(ES_LOG_ERR, "worker %u cannot be started: %s", i, strerror(-rc));
		}
	}
}

/* Whatever it is, it is said: a worker that nobody misses may die each night. */
static void report_end(struct parent *p, const struct es_process *process, int status)
{
	const char *then = process->is_old ? "" : "; another one takes its place";

	if (WIFSIGNALED(status))
		es_log(ES_LOG_ERR, "worker %u (process %d) was ended by signal %d (%s)%s", process->number,
		       (int)process->pid, WTERMSIG(status), strsignal(WTERMSIG(status)), then);
	else if (WEXITSTATUS(status) || !process->is_old)
		es_log(ES_LOG_ERR, "worker %u (process %d) has ended with %d%s", process->number,
		       (int)process->pid, WEXITSTATUS(status), then);
	else
		return;
	es_serve_ledger_died(&p->ledger);
}

static void is_gone(struct parent *p, struct es_process *process, int status)
{
	unsigned long long now_ns = es_clock_now_ns();

	close(process->orders);
	report_end(p, process, status);
	if (!process->is_old && now_ns - process->since_ns < AGAIN_NS)
		p->again_ns[process->number] = now_ns + AGAIN_NS;
	process->pid = 0;
	es_serve_ledger_leave(&p->ledger, (unsigned int)(process - p->process));
}

static void reap(struct parent *p)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (unsigned int i = 0; i < PROCESSES_MAX; i++)
			if (p->process[i].pid == pid)
				is_gone(p, &p->process[i], status);
}

static void end_process(struct es_process *process)
{
	if (process->is_ending) {
		kill(process->pid, SIGKILL);
		process->until_ns = 0;
		return;
	}
	order(process, ES_ORDER_END, NULL);
	process->is_ending = process->is_old = 1;
	process->until_ns = es_clock_now_ns() + END_NS;
}

/* --- generations */

static int is_served(const struct es_settings *s, const char *name)
{
	for (unsigned int i = 0; i < s->count; i++)
		if (!strcmp(s->service[i].name, name))
			return 1;
	return 0;
}

static void report_problems(const struct parent *p)
{
	const struct es_settings *s = p->settings;

	for (unsigned int i = 0; i < s->refused_count; i++)
		es_log(ES_LOG_ERR, "%s; the service is not served", s->refused[i].why.text);
	for (unsigned int i = 0; i < s->count; i++)
		if (s->problem[i].text[0])
			es_log(ES_LOG_ERR, "service %s: %s; the service is served all the same",
			       s->service[i].name, s->problem[i].text);
}

static void report(const struct parent *p)
{
	const struct es_settings *s = p->settings;
	char addresses[ES_CONF_ADDRESSES_SIZE];

	if (p->identity.is_set && p->identity.group == (gid_t)-1)
		es_log(ES_LOG_WARNING,
		       "%s: inspector: program_group is not set, so workers cannot use the daemon's sockets, "
		       "and serve "
		       "each request where it arrives; do: program_group = %s",
		       s->conf->path, ES_CONFINE_USER);
	if (!s->count && !s->refused_count)
		es_log(ES_LOG_WARNING, "%s: no service has tls { } for this node: there is nothing to do",
		       s->conf->path);
	for (unsigned int i = 0; i < s->conf->service_count; i++)
		if (is_served(s, s->conf->services[i].name))
			es_log(ES_LOG_INFO, "node %s: service %s: %s port %u", es_settings_self(s),
			       s->conf->services[i].name,
			       es_conf_service_text(&s->conf->services[i], addresses),
			       s->conf->services[i].port);
	report_problems(p);
}

/* Workers begin with what the kernel has now: its module may have been loaded since. */
static void look_for_ktls(struct parent *p)
{
	unsigned int before = p->ktls_has;
	int is_wanted = 0;

	for (unsigned int i = 0; i < p->settings->count; i++)
		is_wanted |= p->settings->service[i].has_ktls;
	p->ktls_has = is_wanted ? es_ktls_probe(&es_ktls_kernel) : 0;
	if (p->ktls_has && p->ktls_has != before)
		es_log(ES_LOG_INFO, "long responses: the kernel writes their records, %s",
		       p->ktls_has == ES_KTLS_ALL ? "with all ciphers" : "with some ciphers");
	else if (is_wanted && !p->ktls_has && (before || !p->has_looked))
		es_log(ES_LOG_INFO, "long responses: the kernel writes no records here (module tls)");
	p->has_looked = 1;
}

/*
 * There are places for this generation and for the next one, which may come at any moment: otherwise nobody
 * would accept until one of those before has ended. Their clients get what they have asked for.
 */
static void make_room(struct parent *p)
{
	struct es_process *process;
	unsigned int count = 0;

	while ((process = es_processes_excess(p->process, PROCESSES_MAX, 2 * p->settings->most_workers))) {
		end_process(process);
		count++;
	}
	if (count)
		es_log(ES_LOG_WARNING,
		       "%u workers of generations before end now, for want of room: too many reloads in an "
		       "hour",
		       count);
}

/* Other settings and sockets from now on; those before are freed. */
static void use(struct parent *p, struct es_settings *settings, const struct es_listeners *listeners,
		const struct es_identity *identity)
{
	unsigned long long now_ns = es_clock_now_ns();

	for (unsigned int i = 0; i < PROCESSES_MAX; i++) {
		struct es_process *each = &p->process[i];

		if (!each->pid || each->is_old)
			continue;
		order(each, ES_ORDER_DRAIN, NULL);
		each->is_old = 1;
		each->until_ns = now_ns + OLD_NS;
	}
	es_listeners_fini(&p->listeners, listeners);
	es_settings_free(&p->settings);
	p->settings = settings;
	p->listeners = *listeners;
	p->identity = *identity;
	p->day = es_settings_day();
	make_room(p);
	look_for_ktls(p);
	memset(p->again_ns, 0, sizeof(p->again_ns));
}

/* Returns 0; -errno, and nothing has changed. */
static int load(struct parent *p, struct es_conf_error *err)
{
	struct es_settings *settings = NULL;
	struct es_listeners listeners;
	struct es_identity identity;
	int rc = es_settings_new(p->options->config, p->options->node, p->settings, &settings, err);

	if (!rc)
		rc = es_identity_find(p->options->user, settings->conf->inspector.program_group, &identity,
				      err);
	if (!rc)
		rc = es_listeners_new(settings, &p->listeners, &listeners, err);
	if (rc) {
		es_settings_free(&settings);
		return rc;
	}
	use(p, settings, &listeners, &identity);
	if (p->ledger.file) /* not yet, the first time */
		es_serve_ledger_publish(&p->ledger, settings);
	report(p);
	return 0;
}

static void give_keys(struct parent *p)
{
	for (unsigned int i = 0; i < PROCESSES_MAX; i++)
		if (p->process[i].pid)
			order(&p->process[i], ES_ORDER_KEYS, &p->settings->keys);
}

static void reload(struct parent *p)
{
	struct es_conf_error err = {};
	int rc = load(p, &err);

	if (rc) {
		es_log(ES_LOG_ERR, "reload: %s; what was in force stays so",
		       err.text[0] ? err.text : strerror(-rc));
		return;
	}
	start_missing(p);
	give_keys(p);
	es_log(ES_LOG_INFO, "reloaded %s", p->options->config);
}

/* A certificate or an OCSP answer whose time has come is said once. */
static void judge(struct parent *p)
{
	if (!es_settings_judge(p->settings))
		return;
	es_serve_ledger_publish(&p->ledger, p->settings);
	report_problems(p);
}

static void renew(struct parent *p)
{
	unsigned long long day = es_settings_day();

	if (day == p->day)
		return;
	p->day = day;
	if (es_settings_use_keys(p->settings, &p->settings->keys, day))
		es_log(ES_LOG_ERR, "cannot make the keys of tickets; those of yesterday stay in force");
	else
		give_keys(p);
}

/* --- what people want */

static void print_counters(const struct parent *p)
{
	char line[1024];
	size_t used = 0;

	for (unsigned int i = 0; i < ES_LEDGER_COUNTER_COUNT; i++) {
		used += (size_t)snprintf(line + used, sizeof(line) - used, " %s=%llu",
					 es_ledger_counter_name[i],
					 (unsigned long long)es_serve_ledger_sum(&p->ledger, i));
		if (used > sizeof(line) / 2 || i + 1 == ES_LEDGER_COUNTER_COUNT) {
			es_log(ES_LOG_INFO, "counters:%s", line);
			used = 0;
		}
	}
}

static void end_all(struct parent *p)
{
	p->is_ending = 1;
	/* First, so that nobody can arrive at a socket that its worker has closed, or is about to close. */
	es_listeners_fini(&p->listeners, NULL);
	for (unsigned int i = 0; i < PROCESSES_MAX; i++)
		if (p->process[i].pid && !p->process[i].is_ending)
			end_process(&p->process[i]);
}

static void on_signal(struct parent *p)
{
	struct signalfd_siginfo info;

	while (read(p->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGHUP && !p->is_ending)
			reload(p);
		else if (info.ssi_signo == SIGUSR1)
			print_counters(p);
		else if ((info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT) && !p->is_ending)
			end_all(p);
	}
}

/* --- the run */

static int is_alone(const struct parent *p)
{
	for (unsigned int i = 0; i < PROCESSES_MAX; i++)
		if (p->process[i].pid)
			return 0;
	return 1;
}

static void tell_workers(struct parent *p)
{
	unsigned int workers = 0, leaving = 0;

	for (unsigned int i = 0; i < PROCESSES_MAX; i++) {
		workers += p->process[i].pid && !p->process[i].is_old;
		leaving += p->process[i].pid && p->process[i].is_old;
	}
	es_serve_ledger_workers(&p->ledger, workers, leaving);
}

static void loop(struct parent *p)
{
	struct pollfd fd = {.fd = p->signals, .events = POLLIN};
	unsigned long long now_ns;

	while (!p->is_ending || !is_alone(p)) {
		start_missing(p);
		tell_workers(p);
		if (poll(&fd, 1, TICK_MS) > 0)
			on_signal(p);
		reap(p);
		now_ns = es_clock_now_ns();
		for (unsigned int i = 0; i < PROCESSES_MAX; i++)
			if (p->process[i].pid && p->process[i].until_ns && now_ns >= p->process[i].until_ns)
				end_process(&p->process[i]);
		if (!p->is_ending) {
			renew(p);
			judge(p);
		}
	}
}

/* The daemon's sockets are beside its control socket. */
static int find_daemon(struct parent *p, struct es_conf_error *err)
{
	char control[ES_CONF_PATH_SIZE];
	size_t len;

	if (p->options->control)
		snprintf(control, sizeof(control), "%s", p->options->control);
	else if (es_control_path(es_settings_self(p->settings), control, sizeof(control)))
		return -ENAMETOOLONG;
	len = strlen(control);
	if (len > 5 && !strcmp(control + len - 5, ".sock"))
		len -= 5;
	if ((size_t)snprintf(p->ask, sizeof(p->ask), "%.*s%s", (int)len, control, ES_ASK_SUFFIX) >=
		    sizeof(p->ask) ||
	    (size_t)snprintf(p->handover, sizeof(p->handover), "%.*s%s", (int)len, control,
			     ES_PROGRAM_SUFFIX) >= sizeof(p->handover) ||
	    (size_t)snprintf(p->ledger_path, sizeof(p->ledger_path), "%.*s%s", (int)len, control,
			     ES_LEDGER_SUFFIX) >= sizeof(p->ledger_path)) {
		es_conf_error_set(err, "--control: %s: the path is too long", control);
		return -ENAMETOOLONG;
	}
	return 0;
}

static int open_ledger(struct parent *p)
{
	struct es_conf_error err = {};
	int rc = es_serve_ledger_open(p->ledger_path, es_wall_ns(), &p->ledger, &err);

	if (err.text[0])
		es_log(ES_LOG_WARNING, "%s", err.text);
	if (!rc)
		es_serve_ledger_publish(&p->ledger, p->settings);
	return rc;
}

static void open_windows(struct parent *p)
{
	int rc = es_window_attach(&p->window);

	if (rc)
		p->window = -1;
	if (rc)
		es_log(ES_LOG_INFO,
		       "connections that move here begin with the kernel's congestion window: %s",
		       strerror(-rc));
}

static sigset_t signals_heard(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGUSR1);
	sigaddset(&signals, SIGCHLD);
	return signals;
}

/* Workers inherit that, and hear nothing but their orders. */
void es_parent_hold_signals(void)
{
	const sigset_t signals = signals_heard();

	sigprocmask(SIG_BLOCK, &signals, NULL);
}

static int init(struct parent *p, struct es_conf_error *err)
{
	const sigset_t signals = signals_heard();
	int rc = es_confine_memory();

	p->signals = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
	if (rc || p->signals < 0)
		return rc ? rc : -errno;
	p->peers = mmap(NULL, sizeof(*p->peers), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p->peers == MAP_FAILED)
		return -errno;
	p->taken = es_tls_taken_new(es_wall_ns());
	if (!p->taken)
		return -ENOMEM;
	open_windows(p);
	rc = load(p, err);
	if (!rc)
		rc = find_daemon(p, err);
	return rc ? rc : open_ledger(p);
}

int es_parent_run(const struct es_parent_options *options)
{
	static struct parent p;
	struct es_conf_error err = {};
	int rc;

	p.options = options;
	rc = init(&p, &err);
	if (rc) {
		es_log(ES_LOG_ERR, "%s", err.text[0] ? err.text : strerror(-rc));
		return EXIT_FAILURE;
	}
	loop(&p);
	es_settings_free(&p.settings);
	es_tls_taken_free(&p.taken);
	return EXIT_SUCCESS;
}
