// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A worker's rights. A system call that it does not need answers EPERM, so that a library that tries
 * something new fails there and not everywhere; one that only an intruder needs ends the process.
 */
#include <errno.h>
#include <pwd.h>
#include <seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tls/serve/confine.h"

static const int allowed[] = {
	/* sockets of clients, of the server behind, of the daemon */
	SCMP_SYS(accept4),
	SCMP_SYS(close),
	SCMP_SYS(connect),
	SCMP_SYS(fcntl),
	SCMP_SYS(getpeername),
	SCMP_SYS(getsockname),
	SCMP_SYS(getsockopt),
	SCMP_SYS(ioctl),
	SCMP_SYS(pipe2),
	SCMP_SYS(read),
	SCMP_SYS(readv),
	SCMP_SYS(recvfrom),
	SCMP_SYS(recvmsg),
	SCMP_SYS(sendmmsg),
	SCMP_SYS(sendmsg),
	SCMP_SYS(sendto),
	SCMP_SYS(setsockopt),
	SCMP_SYS(shutdown),
	SCMP_SYS(splice),
	SCMP_SYS(write),
	SCMP_SYS(writev),
	/* the loop */
	SCMP_SYS(epoll_create1),
	SCMP_SYS(epoll_ctl),
	SCMP_SYS(epoll_pwait),
	SCMP_SYS(epoll_wait),
	SCMP_SYS(eventfd2),
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_nanosleep),
	SCMP_SYS(nanosleep),
	/* calls where the vDSO cannot read the machine's clock source, as on some virtual machines */
	SCMP_SYS(gettimeofday),
	SCMP_SYS(time),
	/* memory */
	SCMP_SYS(brk),
	SCMP_SYS(madvise),
	SCMP_SYS(mlock),
	SCMP_SYS(mremap),
	SCMP_SYS(munlock),
	SCMP_SYS(munmap),
	/* the rest of a process's life */
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	SCMP_SYS(fstat),
	SCMP_SYS(newfstatat),
	SCMP_SYS(futex),
	SCMP_SYS(getpid),
	SCMP_SYS(gettid),
	SCMP_SYS(getrandom),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(tgkill),
	SCMP_SYS(sched_yield),
};

/* No program is started here, and no other process touched. */
static const int deadly[] = {
	SCMP_SYS(execve),
	SCMP_SYS(execveat),
	SCMP_SYS(fork),
	SCMP_SYS(vfork),
	SCMP_SYS(clone),
	SCMP_SYS(clone3),
	SCMP_SYS(ptrace),
	SCMP_SYS(process_vm_readv),
	SCMP_SYS(process_vm_writev),
	SCMP_SYS(setuid),
	SCMP_SYS(setgid),
	SCMP_SYS(mount),
	SCMP_SYS(bpf),
	SCMP_SYS(init_module),
	SCMP_SYS(finit_module),
	SCMP_SYS(kexec_load),
	SCMP_SYS(unshare),
	SCMP_SYS(setns),
};

int es_identity_find(const char *user, const char *group, struct es_identity *ret_identity,
		     struct es_conf_error *err)
{
	struct es_identity identity = {.group = (gid_t)-1};
	const struct passwd *entry = getpwnam(user ? user : ES_CONFINE_USER);
	const struct group *more = group[0] ? getgrnam(group) : NULL;

	if (user && !entry) {
		es_conf_error_set(err, "--user: there is no user %s", user);
		return -ENOENT;
	}
	if (group[0] && !more) {
		es_conf_error_set(err, "inspector: program_group: there is no group %s", group);
		return -ENOENT;
	}
	if (more)
		identity.group = more->gr_gid;
	if (entry && !geteuid()) {
		identity.is_set = 1;
		identity.user = entry->pw_uid;
		identity.own_group = entry->pw_gid;
	}
	*ret_identity = identity;
	return 0;
}

static int become(const struct es_identity *identity)
{
	const gid_t more = identity->group;

	if (!identity->is_set)
		return 0;
	if (setgroups(more != (gid_t)-1, &more) ||
	    setresgid(identity->own_group, identity->own_group, identity->own_group) ||
	    setresuid(identity->user, identity->user, identity->user))
		return -errno;
	return 0;
}

int es_confine_memory(void)
{
	const struct rlimit none = {};

	if (setrlimit(RLIMIT_CORE, &none) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return -errno;
	return 0;
}

/* Sanitizers need more than the program itself: they would be ended by their own report. */
#ifdef __SANITIZE_ADDRESS__
static int filter(void)
{
	(void)allowed;
	(void)deadly;
	return 0;
}
#else
static int filter(void)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	static const int families[] = {AF_UNIX, AF_INET, AF_INET6};
	static const int maps[] = {SCMP_SYS(mmap), SCMP_SYS(mprotect)};
	int rc = ctx ? 0 : -ENOMEM;

	for (size_t i = 0; !rc && i < sizeof(allowed) / sizeof(allowed[0]); i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0);
	for (size_t i = 0; !rc && i < sizeof(families) / sizeof(families[0]); i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
				      SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[i]));
	/* No memory becomes code. */
	for (size_t i = 0; !rc && i < sizeof(maps) / sizeof(maps[0]); i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, maps[i], 1,
				      SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	for (size_t i = 0; !rc && i < sizeof(deadly) / sizeof(deadly[0]); i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_KILL_PROCESS, deadly[i], 0);
	if (!rc)
		rc = seccomp_load(ctx);
	seccomp_release(ctx);
	return rc;
}
#endif

int es_confine(const struct es_identity *identity)
{
	int rc = become(identity);

	if (!rc)
		rc = es_confine_memory(); /* another user: the kernel asks for it anew */
	if (!rc && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		rc = -errno;
	return rc ? rc : filter();
}
