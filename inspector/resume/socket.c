// SPDX-License-Identifier: GPL-2.0-or-later
/* A socket in the middle of a connection, by TCP_REPAIR. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include "inspector/base/sockaddr.h"
#include "inspector/resume/socket.h"

/* The kernel's numbers of TCP options (include/net/tcp.h). */
#define OPTION_MSS	  2
#define OPTION_WINDOW	  3
#define OPTION_SACK	  4
#define OPTION_TIMESTAMPS 8

#define TCP_STATE_ESTABLISHED 1
#define TCP_STATE_CLOSE_WAIT  8

static int option_set(int fd, int option, int value)
{
	return setsockopt(fd, IPPROTO_TCP, option, &value, sizeof(value)) ? -errno : 0;
}

static int queue_seq_set(int fd, int queue, __u32 seq)
{
	int rc = option_set(fd, TCP_REPAIR_QUEUE, queue);

	return rc ? rc : option_set(fd, TCP_QUEUE_SEQ, (int)seq);
}

static int options_set(int fd, const struct es_tcp_options *o)
{
	struct tcp_repair_opt option[4] = {{.opt_code = OPTION_MSS, .opt_val = o->mss}};
	socklen_t count = 1;

	if (o->wscale_ok)
		option[count++] = (struct tcp_repair_opt){
			.opt_code = OPTION_WINDOW,
			.opt_val = o->snd_wscale | (__u32)o->rcv_wscale << 16,
		};
	if (o->sack_ok)
		option[count++] = (struct tcp_repair_opt){.opt_code = OPTION_SACK};
	if (o->tstamp_ok)
		option[count++] = (struct tcp_repair_opt){.opt_code = OPTION_TIMESTAMPS};
	return setsockopt(fd, IPPROTO_TCP, TCP_REPAIR_OPTIONS, option, count * sizeof(option[0])) ? -errno
												  : 0;
}

/* The client says itself how much it may be sent now. */
static int window_set(int fd, const struct es_download *d, const struct es_resume_client *client)
{
	struct tcp_repair_window window;
	socklen_t len = sizeof(window);

	if (getsockopt(fd, IPPROTO_TCP, TCP_REPAIR_WINDOW, &window, &len))
		return -errno;
	window.snd_wl1 = client->seq;
	window.snd_wnd = (__u32)client->window << (d->options.wscale_ok ? d->options.snd_wscale : 0);
	if (window.max_window < window.snd_wnd)
		window.max_window = window.snd_wnd;
	return setsockopt(fd, IPPROTO_TCP, TCP_REPAIR_WINDOW, &window, sizeof(window)) ? -errno : 0;
}

/*
 * Only the headers of what the client sends get in. A FIN behind a payload that is cut off would stand at the
 * wrong place: it does not get in, and comes again.
 */
static int payloads_cut(int fd)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, ES_TCP_FIN, 0, 7),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 12),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 4),
		BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 2),
		BPF_STMT(BPF_MISC | BPF_TAX, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, 1),
	};
	const struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) ? -errno : 0;
}

static int make(int fd, const struct es_download *d, const struct es_resume_client *client)
{
	const union es_sockaddr from = es_sockaddr_of(&d->flow.service, es_ntohs(d->flow.service_port));
	const union es_sockaddr to = es_sockaddr_of(&d->flow.client, es_ntohs(d->flow.client_port));
	int rc = option_set(fd, TCP_REPAIR, TCP_REPAIR_ON); /* its port may be a listener's, too */

	rc = rc ? rc : queue_seq_set(fd, TCP_RECV_QUEUE, client->seq);
	rc = rc ? rc : queue_seq_set(fd, TCP_SEND_QUEUE, client->ack);
	rc = rc ? rc : option_set(fd, TCP_REPAIR_QUEUE, TCP_NO_QUEUE);
	rc = rc ? rc : payloads_cut(fd);
	if (!rc && (bind(fd, &from.sa, es_sockaddr_len(&from)) || connect(fd, &to.sa, es_sockaddr_len(&to))))
		rc = -errno;
	rc = rc ? rc : options_set(fd, &d->options);
	/* The lowest bit says that the clock counts microseconds, which no client was told. */
	if (!rc && d->options.tstamp_ok)
		rc = option_set(fd, TCP_TIMESTAMP, (int)((client->tsecr + ES_RESUME_CLOCK_AHEAD) & ~1u));
	rc = rc ? rc : window_set(fd, d, client);
	if (!rc && fcntl(fd, F_SETFL, O_NONBLOCK))
		rc = -errno;
	return rc ? rc : option_set(fd, TCP_REPAIR, TCP_REPAIR_OFF);
}

int es_resume_socket(const struct es_download *d, const struct es_resume_client *client)
{
	int family = es_addr_is_v4(&d->flow.client) ? AF_INET : AF_INET6;
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return -errno;
	rc = make(fd, d, client);
	if (!rc)
		return fd;
	es_resume_socket_let_go(fd);
	return rc;
}

void es_resume_socket_let_go(int fd)
{
	option_set(fd, TCP_REPAIR, TCP_REPAIR_ON);
	close(fd);
}

static int state_of(int fd)
{
	struct tcp_info info = {};
	socklen_t len = sizeof(info);

	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) ? -errno : info.tcpi_state;
}

int es_resume_socket_unsent(int fd)
{
	int state = state_of(fd), unsent;

	if (state != TCP_STATE_ESTABLISHED && state != TCP_STATE_CLOSE_WAIT)
		return -ECONNRESET;
	return ioctl(fd, SIOCOUTQ, &unsent) ? -errno : unsent;
}

int es_resume_socket_is_closed(int fd)
{
	return state_of(fd) == TCP_STATE_CLOSE_WAIT;
}
