// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The load generator of ./dev bench https and xo: connections that ask again and again, in a closed loop, and
 * what it took them. wrk can neither make a full handshake each time nor say which node each request of a
 * connection is for; ab resumes nothing, and h2load neither.
 *
 * The n-th request of a connection is for /NODE/SIZE/NUMBER: another node than the one before with
 * probability --share, the next one in turn with --share turn; size and number at random. Each thread has
 * connections, an SSL_CTX and an epoll of its own. Without --ca it is HTTP that they speak. Prints one JSON
 * object.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LIST_MAX     16
#define TIMEOUT_NS   10000000000ULL
#define TURN_MS	     100
#define EVENTS	     64
#define HEAD_MAX     4096
#define TEXT_MAX     16384
#define FINE_BITS    4 /* latencies are told to a sixteenth */
#define BUCKETS_MAX  (64 << FINE_BITS)
#define THREADS_MAX  64
#define SHARE_IN_ALL 10000

enum mode { KEEP_ALIVE, RESUME, FULL };
static const char *const mode_names[] = {"keep-alive", "resume", "full"};

enum error { IN_CONNECT, IN_HANDSHAKE, IN_READ, IN_WRITE, IN_TIME, IN_STATUS, IN_RESUMING, ERRORS };
static const char *const error_names[ERRORS] = {
	"connect", "handshake", "read", "write", "timeout", "status", "resume",
};

static struct {
	struct sockaddr_in to;
	const char *ca;
	const char *name;
	const char *suite;
	enum mode mode;
	unsigned int share; /* of SHARE_IN_ALL */
	int in_turn;
	unsigned int connections, threads, seconds, files;
	unsigned int nodes, sizes;
	char node[LIST_MAX][32];
	char size[LIST_MAX][32];
	uint64_t bytes[LIST_MAX];
} opt = {.name = "www.example.org",
	 .suite = "TLS_AES_256_GCM_SHA384",
	 .connections = 64,
	 .threads = 2,
	 .seconds = 3,
	 .files = 1};

struct thread;

/**
 * struct connection
 * @ssl: NULL without TLS
 * @session: the last one that was given to it
 * @left: bytes of the body; @has_head: whether that is known
 */
struct connection {
	struct thread *thread;
	int fd;
	SSL *ssl;
	SSL_SESSION *session;
	int is_shaken;
	unsigned int node, size;
	char request[256];
	size_t request_len, request_sent;
	char head[HEAD_MAX];
	size_t head_len;
	int has_head;
	uint64_t left;
	uint64_t began_ns;
};

struct thread {
	pthread_t id;
	SSL_CTX *ctx;
	int epoll;
	unsigned int count;
	unsigned int seed;
	struct connection *connection;
	uint64_t requests, bytes, handshakes, resumed;
	uint64_t errors[ERRORS];
	uint64_t bucket[BUCKETS_MAX];
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static unsigned int draw(struct thread *t, unsigned int below)
{
	return (unsigned int)rand_r(&t->seed) % below;
}

/* --- latencies */

static unsigned int bucket_of(uint64_t us)
{
	unsigned int high = 63 - (unsigned int)__builtin_clzll(us | 1);

	if (high < FINE_BITS)
		return (unsigned int)us;
	return ((high - FINE_BITS + 1) << FINE_BITS) + (unsigned int)(us >> (high - FINE_BITS)) -
	       (1U << FINE_BITS);
}

static uint64_t bucket_us(unsigned int bucket)
{
	unsigned int shift = bucket >> FINE_BITS, fine = bucket & ((1U << FINE_BITS) - 1);

	return shift ? (uint64_t)(fine + (1U << FINE_BITS)) << (shift - 1) : fine;
}

/* --- connections */

static void hang_up(struct connection *c)
{
	SSL_free(c->ssl);
	c->ssl = NULL;
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

static int on_session(SSL *ssl, SSL_SESSION *session)
{
	struct connection *c = SSL_get_app_data(ssl);

	SSL_SESSION_free(c->session);
	c->session = session;
	return 1;
}

/* Returns 0 or -1. */
static int secure(struct connection *c)
{
	c->ssl = SSL_new(c->thread->ctx);
	if (!c->ssl)
		return -1;
	SSL_set_app_data(c->ssl, c);
	SSL_set_connect_state(c->ssl);
	if (!SSL_set_fd(c->ssl, c->fd) || !SSL_set_tlsext_host_name(c->ssl, opt.name) ||
	    !SSL_set1_host(c->ssl, opt.name))
		return -1;
	if (opt.mode == RESUME && c->session)
		SSL_set_session(c->ssl, c->session);
	return 0;
}

/* Returns 0 or -1. */
static int call(struct connection *c)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
	int one = 1;

	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	c->is_shaken = !opt.ca;
	if (c->fd < 0 || (opt.ca && secure(c)))
		return -1;
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(c->fd, (const struct sockaddr *)&opt.to, sizeof(opt.to)) && errno != EINPROGRESS)
		return -1;
	return epoll_ctl(c->thread->epoll, EPOLL_CTL_ADD, c->fd, &event);
}

static void prepare(struct connection *c)
{
	struct thread *t = c->thread;

	if (opt.in_turn)
		c->node = (c->node + 1) % opt.nodes;
	else if (opt.nodes > 1 && draw(t, SHARE_IN_ALL) < opt.share)
		c->node = (c->node + 1 + draw(t, opt.nodes - 1)) % opt.nodes;
	c->size = draw(t, opt.sizes);
	c->request_len = (size_t)snprintf(c->request, sizeof(c->request),
					  "GET /%s/%s/%u HTTP/1.1\r\nHost: %s\r\n%s\r\n", opt.node[c->node],
					  opt.size[c->size], draw(t, opt.files), opt.name,
					  opt.mode == KEEP_ALIVE ? "" : "Connection: close\r\n");
	c->request_sent = c->head_len = 0;
	c->has_head = 0;
	c->began_ns = now_ns();
}

static void begin(struct connection *c)
{
	prepare(c);
	if (call(c)) {
		c->thread->errors[IN_CONNECT]++;
		hang_up(c);
	}
}

static void failed(struct connection *c, enum error error)
{
	c->thread->errors[error]++;
	ERR_clear_error();
	hang_up(c);
	begin(c);
}

static void done(struct connection *c)
{
	struct thread *t = c->thread;

	t->requests++;
	t->bytes += opt.bytes[c->size];
	t->bucket[bucket_of((now_ns() - c->began_ns) / 1000)]++;
	if (opt.mode == KEEP_ALIVE) {
		prepare(c);
		return;
	}
	if (c->ssl)
		SSL_shutdown(c->ssl);
	hang_up(c);
	begin(c);
}

/* --- what is read */

/* Returns 0 or -1: this is not the response that was asked for. */
static int read_head(struct connection *c, const char *text, size_t len, size_t *ret_used)
{
	size_t before = c->head_len, part = len < HEAD_MAX - 1 - before ? len : HEAD_MAX - 1 - before;
	const char *end, *length;

	memcpy(c->head + before, text, part);
	c->head_len += part;
	c->head[c->head_len] = 0;
	end = strstr(c->head, "\r\n\r\n");
	*ret_used = part;
	if (!end)
		return part == len ? 0 : -1;
	*ret_used = (size_t)(end + 4 - c->head) - before;
	length = strcasestr(c->head, "\r\ncontent-length:");
	if (strncmp(c->head, "HTTP/1.1 200 ", 13) != 0 || !length || length > end)
		return -1;
	c->left = strtoull(length + 17, NULL, 10);
	c->has_head = 1;
	return c->left == opt.bytes[c->size] ? 0 : -1;
}

/* Returns 1: the response is whole, 0, or -1. */
static int take(struct connection *c, const char *text, size_t len)
{
	size_t used = 0;

	if (!c->has_head && read_head(c, text, len, &used))
		return -1;
	len -= used;
	if (!c->has_head || len > c->left)
		return len ? -1 : 0;
	c->left -= len;
	return !c->left;
}

/* --- what is next */

static int waits(const struct connection *c, int rc)
{
	int why;

	if (!c->ssl)
		return rc < 0 && errno == EAGAIN;
	why = SSL_get_error(c->ssl, rc);
	return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
}

/* Returns 1 to go on. */
static int shake(struct connection *c)
{
	int rc = SSL_do_handshake(c->ssl), was_resumed;

	if (rc != 1) {
		if (!waits(c, rc))
			failed(c, IN_HANDSHAKE);
		return 0;
	}
	was_resumed = SSL_session_reused(c->ssl);
	c->is_shaken = 1;
	c->thread->handshakes++;
	c->thread->resumed += (uint64_t)was_resumed;
	if (opt.mode == RESUME && c->session && !was_resumed)
		c->thread->errors[IN_RESUMING]++;
	return 1;
}

static int ask(struct connection *c)
{
	int rc = c->ssl ? SSL_write(c->ssl, c->request, (int)c->request_len)
			: (int)send(c->fd, c->request, c->request_len, MSG_NOSIGNAL);

	if (rc == (int)c->request_len) {
		c->request_sent = c->request_len;
		return 1;
	}
	if (!waits(c, rc))
		failed(c, IN_WRITE);
	return 0;
}

static int hear(struct connection *c)
{
	char text[TEXT_MAX];
	int rc = c->ssl ? SSL_read(c->ssl, text, sizeof(text)) : (int)recv(c->fd, text, sizeof(text), 0);
	int is_whole;

	if (rc <= 0) {
		if (!waits(c, rc))
			failed(c, IN_READ);
		return 0;
	}
	is_whole = take(c, text, (size_t)rc);
	if (is_whole < 0)
		failed(c, IN_STATUS);
	else if (is_whole)
		done(c);
	/* Another connection: its events will come. */
	return is_whole >= 0 && c->is_shaken;
}

static void go_on(struct connection *c)
{
	int goes_on = c->fd >= 0;

	while (goes_on) {
		if (!c->is_shaken)
			goes_on = shake(c);
		else if (!c->request_sent)
			goes_on = ask(c);
		else
			goes_on = hear(c);
	}
}

static void look_for_late(struct thread *t)
{
	uint64_t now = now_ns();

	for (unsigned int i = 0; i < t->count; i++) {
		struct connection *c = &t->connection[i];

		if (c->fd < 0)
			begin(c);
		else if (now - c->began_ns > TIMEOUT_NS)
			failed(c, IN_TIME);
	}
}

static void *run(void *arg)
{
	struct thread *t = arg;
	struct epoll_event events[EVENTS];
	uint64_t start = now_ns(), end = start + opt.seconds * 1000000000ULL, look = start;

	for (unsigned int i = 0; i < t->count; i++) {
		t->connection[i].thread = t;
		t->connection[i].node = draw(t, opt.nodes);
		begin(&t->connection[i]);
	}
	while (now_ns() < end) {
		int n = epoll_wait(t->epoll, events, EVENTS, TURN_MS);

		for (int i = 0; i < n; i++)
			go_on(events[i].data.ptr);
		if (now_ns() - look > TURN_MS * 1000000ULL) {
			look_for_late(t);
			look = now_ns();
		}
	}
	for (unsigned int i = 0; i < t->count; i++) {
		hang_up(&t->connection[i]);
		SSL_SESSION_free(t->connection[i].session);
	}
	return NULL;
}

/* --- the whole */

static void __attribute__((noreturn)) refuse(const char *what)
{
	fprintf(stderr, "https-load: %s\n", what);
	exit(2);
}

static void thread_init(struct thread *t, unsigned int number)
{
	*t = (struct thread){.ctx = SSL_CTX_new(TLS_client_method()), .epoll = epoll_create1(EPOLL_CLOEXEC)};
	t->count = opt.connections / opt.threads + (number < opt.connections % opt.threads);
	t->seed = (unsigned int)now_ns() + number;
	t->connection = calloc(t->count + 1, sizeof(*t->connection));
	if (!t->ctx || t->epoll < 0 || !t->connection)
		refuse("no memory");
	SSL_CTX_set_verify(t->ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_session_cache_mode(t->ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(t->ctx, on_session);
	SSL_CTX_set_mode(t->ctx, SSL_MODE_RELEASE_BUFFERS);
	if ((opt.ca && SSL_CTX_load_verify_locations(t->ctx, opt.ca, NULL) != 1) ||
	    SSL_CTX_set_min_proto_version(t->ctx, TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set_ciphersuites(t->ctx, opt.suite) != 1)
		refuse("--ca or --suite: not taken");
}

static uint64_t percentile(const struct thread *all, double share)
{
	uint64_t wanted = (uint64_t)((double)all->requests * share), seen = 0;

	for (unsigned int i = 0; i < BUCKETS_MAX; i++) {
		seen += all->bucket[i];
		if (seen > wanted)
			return bucket_us(i);
	}
	return 0;
}

static void report(const struct thread *thread, uint64_t took_ns)
{
	static struct thread all;

	for (unsigned int i = 0; i < opt.threads; i++) {
		const struct thread *t = &thread[i];

		all.requests += t->requests;
		all.bytes += t->bytes;
		all.handshakes += t->handshakes;
		all.resumed += t->resumed;
		for (unsigned int k = 0; k < ERRORS; k++)
			all.errors[k] += t->errors[k];
		for (unsigned int k = 0; k < BUCKETS_MAX; k++)
			all.bucket[k] += t->bucket[k];
	}
	printf("{\"requests\": %llu, \"duration_us\": %llu, \"bytes\": %llu, \"handshakes\": %llu, "
	       "\"resumed\": %llu, "
	       "\"p50_us\": %llu, \"p90_us\": %llu, \"p99_us\": %llu",
	       (unsigned long long)all.requests, (unsigned long long)took_ns / 1000,
	       (unsigned long long)all.bytes, (unsigned long long)all.handshakes,
	       (unsigned long long)all.resumed, (unsigned long long)percentile(&all, 0.5),
	       (unsigned long long)percentile(&all, 0.9), (unsigned long long)percentile(&all, 0.99));
	for (unsigned int k = 0; k < ERRORS; k++)
		printf(", \"%s\": %llu", error_names[k], (unsigned long long)all.errors[k]);
	printf("}\n");
}

static unsigned int number(const char *text, unsigned int most)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*end || end == text || value > most)
		refuse("a number that is none, or too large");
	return (unsigned int)value;
}

static void parse_to(char *text)
{
	char *colon = strrchr(text, ':');

	if (!colon)
		refuse("--to ADDRESS:PORT");
	*colon = 0;
	opt.to.sin_family = AF_INET;
	opt.to.sin_port = htons((uint16_t)number(colon + 1, 65535));
	if (inet_pton(AF_INET, text, &opt.to.sin_addr) != 1)
		refuse("--to ADDRESS:PORT, of IPv4");
}

/* "a,b" or, with sizes, "1k=1024,1m=1048576" */
static unsigned int parse_list(char *text, char names[LIST_MAX][32], uint64_t *bytes)
{
	unsigned int count = 0;

	for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) {
		char *equals = strchr(word, '=');

		if (count == LIST_MAX || (bytes && !equals))
			refuse("--nodes NAME,... --sizes NAME=BYTES,...");
		if (bytes) {
			*equals = 0;
			bytes[count] = number(equals + 1, 1U << 30);
		}
		snprintf(names[count++], 32, "%s", word);
	}
	return count;
}

static enum mode parse_mode(const char *text)
{
	for (unsigned int i = 0; i < sizeof(mode_names) / sizeof(*mode_names); i++)
		if (!strcmp(text, mode_names[i]))
			return (enum mode)i;
	refuse("--mode keep-alive, resume or full");
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {
		{"to", 1, NULL, 't'},
		{"ca", 1, NULL, 'a'},
		{"name", 1, NULL, 'h'},
		{"suite", 1, NULL, 'u'},
		{"mode", 1, NULL, 'm'},
		{"share", 1, NULL, 's'},
		{"connections", 1, NULL, 'c'},
		{"threads", 1, NULL, 'n'},
		{"seconds", 1, NULL, 'd'},
		{"nodes", 1, NULL, 'o'},
		{"sizes", 1, NULL, 'z'},
		{"files", 1, NULL, 'f'},
		{},
	};
	int letter;

	while ((letter = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (letter) {
		case 't':
			parse_to(optarg);
			break;
		case 'a':
			opt.ca = optarg;
			break;
		case 'h':
			opt.name = optarg;
			break;
		case 'u':
			opt.suite = optarg;
			break;
		case 'm':
			opt.mode = parse_mode(optarg);
			break;
		case 's':
			opt.in_turn = !strcmp(optarg, "turn");
			opt.share = opt.in_turn ? 0 : number(optarg, 100) * (SHARE_IN_ALL / 100);
			break;
		case 'c':
			opt.connections = number(optarg, 10000);
			break;
		case 'n':
			opt.threads = number(optarg, THREADS_MAX);
			break;
		case 'd':
			opt.seconds = number(optarg, 3600);
			break;
		case 'o':
			opt.nodes = parse_list(optarg, opt.node, NULL);
			break;
		case 'z':
			opt.sizes = parse_list(optarg, opt.size, opt.bytes);
			break;
		case 'f':
			opt.files = number(optarg, 1000000);
			break;
		default:
			refuse("an option that is not known");
		}
	if (!opt.to.sin_port || !opt.nodes || !opt.sizes || !opt.files || !opt.threads ||
	    opt.connections < opt.threads)
		refuse("--to, --nodes and --sizes are needed, and a connection for each thread");
}

int main(int argc, char **argv)
{
	static struct thread thread[THREADS_MAX];
	uint64_t start;

	parse(argc, argv);
	for (unsigned int i = 0; i < opt.threads; i++)
		thread_init(&thread[i], i);
	start = now_ns();
	for (unsigned int i = 0; i < opt.threads; i++)
		if (pthread_create(&thread[i].id, NULL, run, &thread[i]))
			refuse("no thread");
	for (unsigned int i = 0; i < opt.threads; i++)
		pthread_join(thread[i].id, NULL);
	report(thread, now_ns() - start);
	for (unsigned int i = 0; i < opt.threads; i++) {
		SSL_CTX_free(thread[i].ctx);
		close(thread[i].epoll);
		free(thread[i].connection);
	}
	return 0;
}
