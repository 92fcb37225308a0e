// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Answers GET / (the page), /metrics and /page.json. The thread runs libmicrohttpd's loop itself, and not by
 * libmicrohttpd's own thread, so that it can look after connections that take too long.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include "inspector/base/clock.h"
#include "inspector/base/sockaddr.h"
#include "inspector/status/accept.h"
#include "inspector/status/connections.h"
#include "inspector/status/host.h"
#include "inspector/status/page.h"
#include "inspector/status/server.h"

#define NS_PER_MS 1000000ULL
#define LOOK_MS	  500
#define BACKLOG	  64

/* @text: NULL: none was made yet; @at_ns: when; @is_wanted: another one is asked for */
struct document {
	char *text;
	size_t len;
	unsigned long long at_ns;
	int is_wanted;
};

/**
 * struct es_status_server
 * @wake: ends the thread's poll()
 * @lock, @given: for what follows them; @failed_ns: when nobody had made a document in time
 */
struct es_status_server {
	struct es_status_params params;
	char node[ES_CONF_NAME_SIZE];
	struct es_conf_list names;
	struct es_host host;
	unsigned int network_count;
	struct es_prefix *networks;
	struct MHD_Daemon *http;
	int listener;
	int wake;
	struct es_connections connections;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t given;
	struct document document[ES_STATUS_DOCUMENTS];
	unsigned long long failed_ns;
	int is_ending;
};

/* @policy: what a page may load and run; NULL: it is no page */
static enum MHD_Result reply_with(struct MHD_Connection *connection, unsigned int status, const char *type,
				  const char *text, size_t len, const char *policy)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(len, (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, "Content-Type", type);
	MHD_add_response_header(response, "Cache-Control", "no-store");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	if (policy) {
		MHD_add_response_header(response, "Content-Security-Policy", policy);
		MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
	}
	/* The time that a request may take is that of its connection. */
	MHD_add_response_header(response, "Connection", "close");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, "Allow", "GET, HEAD");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result reply(struct MHD_Connection *connection, unsigned int status, const char *type,
			     const char *text, size_t len)
{
	return reply_with(connection, status, type, text, len, NULL);
}

static enum MHD_Result reply_text(struct MHD_Connection *connection, unsigned int status, const char *text)
{
	return reply(connection, status, "text/plain; charset=utf-8", text, strlen(text));
}

/* Wait for a document that is made from now on. Returns 0, or -ETIMEDOUT; under the lock. */
static int wait_for(struct es_status_server *s, struct document *document, unsigned long long now_ns)
{
	unsigned long long until_ns = now_ns + ES_STATUS_WAIT_MS * NS_PER_MS;
	struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
				 .tv_nsec = (long)(until_ns % 1000000000)};

	/* It did not come a moment ago: nobody else waits for so long. */
	if (s->failed_ns && now_ns - s->failed_ns < ES_STATUS_WAIT_MS * NS_PER_MS)
		return -ETIMEDOUT;
	document->is_wanted = 1;
	s->params.ask(s->params.ctx);
	while (document->is_wanted && !s->is_ending)
		if (pthread_cond_timedwait(&s->given, &s->lock, &until))
			break;
	if (!document->is_wanted)
		return 0;
	s->failed_ns = es_clock_now_ns();
	return -ETIMEDOUT;
}

/* Answer with a document that is fresh. */
static enum MHD_Result give(struct es_status_server *s, struct MHD_Connection *connection, unsigned int which,
			    const char *type)
{
	struct document *document = &s->document[which];
	unsigned long long now_ns = es_clock_now_ns();
	enum MHD_Result result;
	int rc = 0;

	pthread_mutex_lock(&s->lock);
	if (!document->text || now_ns - document->at_ns >= ES_STATUS_FRESH_MS * NS_PER_MS)
		rc = wait_for(s, document, now_ns);
	if (rc || !document->text)
		result = reply_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
				    "The daemon's control thread does not answer.\n");
	else
		result = reply(connection, MHD_HTTP_OK, type, document->text, document->len);
	pthread_mutex_unlock(&s->lock);
	return result;
}

/* The JSON document of this moment for this thread alone; the caller's, NULL: there is none. */
static struct json_object *cluster(struct es_status_server *s)
{
	struct document *document = &s->document[ES_STATUS_CLUSTER];
	unsigned long long now_ns = es_clock_now_ns();
	struct json_object *view = NULL;
	int rc = 0;

	pthread_mutex_lock(&s->lock);
	if (!document->text || now_ns - document->at_ns >= ES_STATUS_FRESH_MS * NS_PER_MS)
		rc = wait_for(s, document, now_ns);
	if (!rc && document->text)
		view = json_tokener_parse(document->text);
	pthread_mutex_unlock(&s->lock);
	return view;
}

static int nonce_make(char *nonce)
{
	unsigned char bytes[(ES_PAGE_NONCE_SIZE - 1) / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(nonce + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

/* The page is made in this thread, not in the one that makes documents. */
static enum MHD_Result page(struct es_status_server *s, struct MHD_Connection *connection)
{
	char nonce[ES_PAGE_NONCE_SIZE], policy[320], *html = NULL;
	struct json_object *view = cluster(s);
	enum MHD_Result result;
	size_t len;

	if (!view || nonce_make(nonce) || es_page_html(view, nonce, &html, &len)) {
		json_object_put(view);
		return reply_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
				  "The daemon's control thread does not answer.\n");
	}
	snprintf(policy, sizeof(policy),
		 "default-src 'none'; style-src 'nonce-%s'; script-src 'nonce-%s'; connect-src 'self'; "
		 "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		 nonce, nonce);
	result = reply_with(connection, MHD_HTTP_OK, "text/html; charset=utf-8", html, len, policy);
	free(html);
	json_object_put(view);
	return result;
}

static enum MHD_Result metrics(struct es_status_server *s, struct MHD_Connection *connection)
{
	enum es_exposition_format format = es_accept_format(
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT));

	return give(s, connection, format, es_exposition_content_type[format]);
}

/* Each browser sends a Host; a collector that speaks HTTP/1.0 need not. */
static int is_meant(const struct es_status_server *s, struct MHD_Connection *connection)
{
	const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);

	return !host || es_host_is_called(&s->host, host);
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *data, size_t *size,
				  void **request)
{
	struct es_status_server *s = ctx;

	(void)version;
	(void)data;
	(void)size;
	(void)request;
	if (!is_meant(s, connection))
		return reply_text(connection, MHD_HTTP_MISDIRECTED_REQUEST,
				  "Host is not a name of this node: names in status { } of its configuration "
				  "has more.\n");
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return reply_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "Only GET and HEAD.\n");
	if (!strcmp(url, "/metrics"))
		return metrics(s, connection);
	if (!strcmp(url, "/page.json"))
		return give(s, connection, ES_STATUS_CLUSTER, "application/json");
	if (!strcmp(url, "/"))
		return page(s, connection);
	return reply_text(connection, MHD_HTTP_NOT_FOUND, "There are /, /metrics and /page.json.\n");
}

static enum MHD_Result on_accept(void *ctx, const struct sockaddr *address, socklen_t len)
{
	const struct es_status_server *s = ctx;
	struct es_addr from;

	if (!s->network_count)
		return MHD_YES;
	if (es_sockaddr_addr(address, len, &from))
		return MHD_NO;
	for (unsigned int i = 0; i < s->network_count; i++)
		if (es_prefix_has(&s->networks[i], &from))
			return MHD_YES;
	return MHD_NO;
}

static void on_connection(void *ctx, struct MHD_Connection *connection, void **socket,
			  enum MHD_ConnectionNotificationCode code)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct es_status_server *s = ctx;

	(void)socket;
	if (!info)
		return;
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		es_connections_add(&s->connections, info->connect_fd, es_clock_now_ns());
	else
		es_connections_remove(&s->connections, info->connect_fd);
}

static int is_ending(struct es_status_server *s)
{
	int ending;

	pthread_mutex_lock(&s->lock);
	ending = s->is_ending;
	pthread_mutex_unlock(&s->lock);
	return ending;
}

static void *run(void *arg)
{
	struct es_status_server *s = arg;
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->http, MHD_DAEMON_INFO_EPOLL_FD);
	struct pollfd fds[] = {{.fd = info->epoll_fd, .events = POLLIN}, {.fd = s->wake, .events = POLLIN}};

	while (!is_ending(s)) {
		MHD_UNSIGNED_LONG_LONG wait_ms;
		int timeout_ms = s->connections.count ? LOOK_MS : -1;

		if (MHD_get_timeout(s->http, &wait_ms) == MHD_YES &&
		    (timeout_ms < 0 || wait_ms < (unsigned int)timeout_ms))
			timeout_ms = wait_ms < LOOK_MS ? (int)wait_ms : LOOK_MS;
		poll(fds, sizeof(fds) / sizeof(fds[0]), timeout_ms);
		MHD_run(s->http);
		es_connections_end(&s->connections, es_clock_now_ns(),
				   ES_STATUS_REQUEST_S * 1000 * NS_PER_MS);
	}
	return NULL;
}

static int networks_new(const struct es_conf_list *allow, struct es_prefix **ret_networks)
{
	struct es_prefix *networks = calloc(allow->count + 1, sizeof(*networks));
	unsigned int i = 0;

	if (!networks)
		return -ENOMEM;
	for (const char *text = NULL; (text = es_conf_list_next(allow, text)) && i < allow->count;)
		if (!es_conf_network_parse(text, &networks[i]))
			i++; /* as all of them: the configuration was checked */
	*ret_networks = networks;
	return 0;
}

static int names_copy(const struct es_conf_list *names, struct es_conf_list *ret_names)
{
	struct es_conf_list copy = {.count = names->count, .used = names->used};

	if (!names->count)
		return 0;
	copy.text = malloc(names->used);
	if (!copy.text)
		return -ENOMEM;
	memcpy(copy.text, names->text, names->used);
	*ret_names = copy;
	return 0;
}

static int listen_on(const struct es_status_params *params)
{
	const union es_sockaddr at = es_sockaddr_of(&params->address, params->port);
	int fd = socket(at.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1, rc;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind(fd, &at.sa, es_sockaddr_len(&at)) && !listen(fd, BACKLOG))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

static int start(struct es_status_server *s)
{
	sigset_t all, before;
	int rc;

	s->http = MHD_start_daemon(MHD_USE_EPOLL, 0, on_accept, s, on_request, s, MHD_OPTION_LISTEN_SOCKET,
				   s->listener, MHD_OPTION_CONNECTION_LIMIT, (unsigned int)ES_CONNECTIONS_MAX,
				   MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned int)ES_STATUS_ADDRESS_MAX,
				   MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)ES_STATUS_REQUEST_S,
				   MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)ES_STATUS_HEAD_BYTES,
				   MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_END);
	if (!s->http)
		return -ENOMEM;
	s->listener = -1; /* MHD_stop_daemon() closes it */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = -pthread_create(&s->thread, NULL, run, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

static void destroy(struct es_status_server *s)
{
	if (s->http)
		MHD_stop_daemon(s->http);
	if (s->listener >= 0)
		close(s->listener);
	if (s->wake >= 0)
		close(s->wake);
	for (int i = 0; i < ES_STATUS_DOCUMENTS; i++)
		free(s->document[i].text);
	pthread_cond_destroy(&s->given);
	pthread_mutex_destroy(&s->lock);
	free(s->networks);
	free(s->names.text);
	free(s);
}

int es_status_server_new(const struct es_status_params *params, struct es_status_server **ret_server)
{
	struct es_status_server *s = calloc(1, sizeof(*s));
	pthread_condattr_t attributes;
	int rc;

	if (!s)
		return -ENOMEM;
	s->params = *params;
	s->params.allow = s->params.names = NULL;
	s->network_count = params->allow->count;
	snprintf(s->node, sizeof(s->node), "%s", params->node);
	s->host = (struct es_host){.address = params->address, .node = s->node, .names = &s->names};
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->given, &attributes);
	pthread_condattr_destroy(&attributes);
	s->listener = -1;
	s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = s->wake < 0 ? -errno : networks_new(params->allow, &s->networks);
	if (!rc)
		rc = names_copy(params->names, &s->names);
	if (!rc) {
		s->listener = listen_on(params);
		rc = s->listener < 0 ? s->listener : start(s);
	}
	if (rc) {
		destroy(s);
		return rc;
	}
	*ret_server = s;
	return 0;
}

void es_status_server_free(struct es_status_server **server)
{
	struct es_status_server *s = *server;
	const uint64_t one = 1;

	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->is_ending = 1;
	pthread_cond_signal(&s->given);
	pthread_mutex_unlock(&s->lock);
	/* It cannot fail: the counter is far from full. */
	if (write(s->wake, &one, sizeof(one)) == sizeof(one))
		pthread_join(s->thread, NULL);
	destroy(s);
	*server = NULL;
}

int es_status_server_is(const struct es_status_server *s, const struct es_status_params *params)
{
	struct es_prefix *networks;
	int is_same;

	if (!es_addr_equal(&s->params.address, &params->address) || s->params.port != params->port ||
	    s->network_count != params->allow->count || strcmp(s->node, params->node) != 0 ||
	    s->names.used != params->names->used ||
	    (s->names.used && memcmp(s->names.text, params->names->text, s->names.used) != 0) ||
	    networks_new(params->allow, &networks))
		return 0;
	is_same = !memcmp(networks, s->networks, s->network_count * sizeof(*networks));
	free(networks);
	return is_same;
}

int es_status_server_wants(struct es_status_server *s, unsigned int which)
{
	int is_wanted;

	pthread_mutex_lock(&s->lock);
	is_wanted = s->document[which].is_wanted;
	pthread_mutex_unlock(&s->lock);
	return is_wanted;
}

void es_status_server_give(struct es_status_server *s, unsigned int which, char *text, size_t len)
{
	struct document *document = &s->document[which];

	pthread_mutex_lock(&s->lock);
	free(document->text);
	document->text = text;
	document->len = len;
	document->at_ns = es_clock_now_ns();
	document->is_wanted = 0;
	s->failed_ns = 0;
	pthread_cond_signal(&s->given);
	pthread_mutex_unlock(&s->lock);
}
