// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The child of a process with threads may call what is safe in signal handlers, no more: no memory is
 * allocated and no lock taken behind fork(). It keeps two descriptors: a pipe whose other end only the daemon
 * has, and the socket. The daemon's facts reach it through a page that both map, of which one half is in
 * force.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "inspector/base/clock.h"
#include "inspector/daemon/keeper.h"
#include "inspector/base/log.h"
#include "inspector/plugin/guard.h"
#include "inspector/inspect/poison.h"

#define TICK_MS 50

/*
 * From when on what is done about a request that is still inspected. The others are told by the clock, and
 * told again if it was only a busy machine. The node must not have served the request without inspection
 * before that (fallback_after_ms), for its client may then send it to another.
 */
#define LEAVE_MS 400
#define TELL_MS	 600
#define ABORT_MS 2000
#define KILL_MS	 4000

/* A lost datagram would cost another daemon. */
#define TELL_TIMES    3
#define TELL_PAUSE_MS 20

struct facts {
	unsigned int self;
	unsigned int node_count;
	union es_sockaddr address[ES_NODES_MAX];
	struct es_sipkey ring;
	struct es_sipkey handover;
};

struct shared {
	_Atomic unsigned int in_force;
	struct facts facts[2];
};

struct es_keeper {
	struct shared *shared;
	pid_t pid;
	int pipe_fd;
};

/**
 * struct patient - one worker, as the keeper sees it
 * @clock_ms: how long it has been inspecting this; @ms: how much of that counts
 * @left, @told, @ended, @killed: what was done about it; @poison: what was told
 */
struct patient {
	__u32 busy;
	unsigned long cpu;
	unsigned int ms, clock_ms;
	int left, told, ended, killed;
	struct es_poison poison;
};

struct watch {
	const struct es_state *state;
	const struct shared *shared;
	unsigned int workers;
	pid_t daemon;
	int pipe_fd;
	int socket_fd;
	struct patient patient[ES_WORKERS_MAX];
};

static const struct facts *facts_of(const struct shared *shared)
{
	return &shared->facts[atomic_load_explicit(&shared->in_force, memory_order_acquire) & 1];
}

static void send_to_all(const struct watch *w, const struct facts *f, const struct es_poison_message *message)
{
	for (unsigned int i = 0; i < f->node_count; i++)
		if (i != f->self)
			(void)!sendto(w->socket_fd, message, sizeof(*message), 0, &f->address[i].sa,
				      es_sockaddr_len(&f->address[i]));
}

static void tell(const struct watch *w, struct es_poison *poison, enum es_poison_kind kind)
{
	const struct facts *f = facts_of(w->shared);
	struct es_poison_message message;
	unsigned long long wall_ns;

	poison->kind = (__u8)kind;
	for (unsigned int i = 0; i < TELL_TIMES; i++) {
		if (i)
			poll(NULL, 0, TELL_PAUSE_MS);
		/* The daemon's, which may be gone: a page of its own process would be a copy. */
		wall_ns = es_clock_now_ns() + w->state->wall_offset_ns;
		es_poison_message_make(poison, f->self, &f->handover, wall_ns, &message);
		send_to_all(w, f, &message);
	}
}

/* Tell the other nodes what @worker was, or is, busy with. Returns whether there is anything to tell. */
static int worker_tell(const struct watch *w, unsigned int worker, enum es_poison_kind kind,
		       struct es_poison *ret_poison)
{
	char client[INET6_ADDRSTRLEN];

	if (es_poison_of_mark(&w->state->mark[worker], &facts_of(w->shared)->ring, ret_poison))
		return 0;
	tell(w, ret_poison, kind);
	es_log(ES_LOG_ERR,
	       "worker %u %s while it inspected a request of %s port %u; the other nodes "
	       "are told not to inspect it",
	       worker, kind == ES_POISON_HUNG ? "hangs" : "died",
	       es_conf_addr_text(&ret_poison->client, client), es_ntohs(ret_poison->client_port));
	return 1;
}

/* The number behind @count more words of @text. */
static unsigned long number_at(const char *text, unsigned int count)
{
	while (count-- && text)
		text = strchr(text + 1, ' ');
	return text ? strtoul(text, NULL, 10) : 0;
}

/* The thread's state and its CPU time in clock ticks (proc(5): fields 3, 14 and 15 of stat);
 * 0 if it is gone. */
static char thread_look(pid_t process, pid_t thread, unsigned long *ret_cpu)
{
	char path[64], text[512];
	const char *at;
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", process, thread);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[len > 0 ? len : 0] = 0;
	at = strrchr(text, ')');
	if (!at || !at[1])
		return 0;
	*ret_cpu = number_at(at, 12) + number_at(at, 13);
	return at[2];
}

/* How much of the last tick counts: see keeper.h. */
static unsigned int tick_ms(const struct watch *w, struct patient *p, pid_t thread)
{
	unsigned long cpu = p->cpu, before = p->cpu;
	char state = thread_look(w->daemon, thread, &cpu);
	unsigned long ran_ms = (cpu - before) * 1000 / (unsigned long)sysconf(_SC_CLK_TCK);

	p->cpu = cpu;
	if (state == 'S' || state == 'D')
		return TICK_MS;
	if (state != 'R')
		return 0;
	return ran_ms < TICK_MS ? (unsigned int)ran_ms : TICK_MS;
}

/* Have the worker leave the plugin that it is in, if it still is in this call of it. */
static void plugin_leave(const struct watch *w, pid_t thread, __u32 busy)
{
	siginfo_t info = {.si_signo = ES_GUARD_SIGNAL, .si_code = SI_QUEUE};

	info.si_pid = getpid();
	info.si_value.sival_int = (int)busy;
	syscall(SYS_rt_tgsigqueueinfo, w->daemon, thread, ES_GUARD_SIGNAL, &info);
}

static void worker_watch(struct watch *w, unsigned int worker)
{
	const struct es_mark *mark = &w->state->mark[worker];
	__u32 busy = __atomic_load_n(&mark->busy, __ATOMIC_ACQUIRE);
	struct patient *p = &w->patient[worker];
	pid_t thread = (pid_t)mark->tid;

	if (!busy || busy != p->busy) {
		if (p->told)
			tell(w, &p->poison, ES_POISON_OVER);
		*p = (struct patient){.busy = busy};
		if (busy)
			thread_look(w->daemon, thread, &p->cpu);
		return;
	}
	p->clock_ms += TICK_MS;
	p->ms += tick_ms(w, p, thread);
	if (p->clock_ms >= TELL_MS && p->ms && !p->told)
		p->told = worker_tell(w, worker, ES_POISON_HUNG, &p->poison);
	if (p->ms >= LEAVE_MS && !p->left) {
		p->left = 1;
		plugin_leave(w, thread, busy);
	} else if (p->ms >= ABORT_MS && !p->ended) {
		p->ended = 1;
		es_log(ES_LOG_ERR,
		       "worker %u: it has been inspecting one request for %u ms; the daemon is ended", worker,
		       p->ms);
		kill(w->daemon, SIGABRT);
	} else if (p->ms >= KILL_MS && !p->killed) {
		p->killed = 1;
		kill(w->daemon, SIGKILL);
	}
}

static void watch(struct watch *w)
{
	struct pollfd pipe = {.fd = w->pipe_fd, .events = POLLIN};
	struct es_poison poison;

	/* Nothing is ever written: the end of the pipe is the daemon's. */
	while (!poll(&pipe, 1, TICK_MS))
		for (unsigned int i = 0; i < w->workers; i++)
			worker_watch(w, i);
	for (unsigned int i = 0; i < w->workers; i++)
		if (!w->patient[i].told || w->patient[i].busy != w->state->mark[i].busy)
			worker_tell(w, i, ES_POISON_DIED, &poison);
}

/* Keep two descriptors, at the two lowest places behind standard error. */
static int descriptors_keep(struct watch *w)
{
	int pipe_fd = fcntl(w->pipe_fd, F_DUPFD_CLOEXEC, 1000),
	    socket_fd = fcntl(w->socket_fd, F_DUPFD_CLOEXEC, 1000);

	if (pipe_fd < 0 || socket_fd < 0)
		return -1;
	w->pipe_fd = dup2(pipe_fd, 3);
	w->socket_fd = dup2(socket_fd, 4);
	return w->pipe_fd < 0 || w->socket_fd < 0 || close_range(5, ~0U, 0) ? -1 : 0;
}

static _Noreturn void child(struct watch *w)
{
	sigset_t all;

	/* It ends when the daemon does; what ends the daemon's group of processes must not end it before. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_NAME, "earshotd-keeper");
	if (descriptors_keep(w))
		_exit(EXIT_FAILURE);
	watch(w);
	_exit(EXIT_SUCCESS);
}

void es_keeper_tell(struct es_keeper *keeper, const struct es_cluster *cluster, const struct es_keys *keys)
{
	unsigned int next;
	struct facts *f;

	if (!keeper)
		return;
	next = atomic_load_explicit(&keeper->shared->in_force, memory_order_relaxed) + 1;
	f = &keeper->shared->facts[next & 1];
	f->self = cluster->self;
	f->node_count = cluster->conf->node_count;
	memcpy(f->address, cluster->handover_address, sizeof(f->address));
	f->ring = keys->ring;
	f->handover = keys->key[0].handover;
	atomic_store_explicit(&keeper->shared->in_force, next, memory_order_release);
}

int es_keeper_start(struct es_state *state, unsigned int workers, const struct es_cluster *cluster,
		    const struct es_keys *keys, struct es_keeper **ret_keeper)
{
	struct es_keeper *k = calloc(1, sizeof(*k));
	struct watch w = {.state = state, .workers = workers, .daemon = getpid()};
	int pipe_fds[2] = {-1, -1}, rc;

	if (!k)
		return -ENOMEM;
	k->shared = mmap(NULL, sizeof(*k->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (k->shared == MAP_FAILED) {
		free(k);
		return -ENOMEM;
	}
	es_keeper_tell(k, cluster, keys);
	w.shared = k->shared;
	w.socket_fd = socket(cluster->handover_address[cluster->self].sa.sa_family,
			     SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	rc = w.socket_fd < 0 || pipe2(pipe_fds, O_CLOEXEC) ? -errno : 0;
	if (!rc) {
		w.pipe_fd = pipe_fds[0];
		k->pipe_fd = pipe_fds[1];
		k->pid = fork();
		rc = k->pid < 0 ? -errno : 0;
		if (!k->pid)
			child(&w);
		close(pipe_fds[0]);
	}
	if (w.socket_fd >= 0)
		close(w.socket_fd);
	*ret_keeper = k;
	if (rc) {
		k->pid = 0;
		es_keeper_stop(ret_keeper);
	}
	return rc;
}

pid_t es_keeper_pid(const struct es_keeper *keeper)
{
	return keeper->pid;
}

void es_keeper_stop(struct es_keeper **keeper)
{
	struct es_keeper *k = *keeper;

	if (!k)
		return;
	if (k->pipe_fd)
		close(k->pipe_fd);
	if (k->pid)
		waitpid(k->pid, NULL, 0);
	explicit_bzero(k->shared, sizeof(*k->shared));
	munmap(k->shared, sizeof(*k->shared));
	free(k);
	*keeper = NULL;
}
