// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Handovers over a network that is played: a real inspector gives requests to targets that decide and note as
 * the datapaths do. Messages and refusals are lost, late, doubled, and arrive in any order; clients repeat
 * their requests; listeners, leases and accept queues come and go; the daemon starts anew. At most one socket
 * may be made for one request, wherever it is made. And when all is well again, a client that goes on is
 * served.
 */
#include "cmocka_all.h"
#include "kmod/core/target.h"
#include "kmod/core/settled.h"
#include "tests/unit/inspect_world.h"

#define CLIENTS	   2
#define COOKIE_MS  384000
#define MESSAGE_MS 240000 /* what is older is not taken (kmod/core/handover.h) */
#define FLYING_MAX 256

/* A message under way, or its copy. */
struct flying {
	struct message m;
	unsigned long long sent_ms;
	int is_refusal;
};

struct target {
	int listening, silent, full;
	int swallows; /* a rule drops what a socket would be made of, or a program holds it back */
	struct message held[CLIENTS];
	unsigned long long held_ms[CLIENTS]; /* since when, 0: nothing is */
	struct es_settled_set settled;
	int socket[CLIENTS]; /* it is there */
	unsigned int made[CLIENTS];
};

static struct flying flying[FLYING_MAX];
static unsigned int flying_count;
static struct target target[NODES];
static unsigned long long began_ms;
static uint64_t seed;
static unsigned int client_flow[CLIENTS];

/* The rule as it was: a refusal leaves no note. To see that the worlds find it. */
static int forgets_refusals;

static unsigned long long now_ms(void)
{
	return in.now_ns / 1000000;
}

/* EARSHOT_TRACE=1 with EARSHOT_SEED and EARSHOT_WORLDS=1 shows what happened in a world. */
static void trace(const char *what, unsigned int client, unsigned int node, unsigned int attempt)
{
	if (getenv("EARSHOT_TRACE"))
		print_message("%8llu ms: %s: client %u, node %u, attempt %u\n", now_ms() - NOW_NS / 1000000,
			      what, client, node, attempt);
}

static unsigned int below(unsigned int n)
{
	return (unsigned int)(es_test_random(&seed) >> 33) % n;
}

static struct es_settled_answer settle(struct target *t, const struct message *m, enum es_settled_step step)
{
	struct es_ip_packet packet;

	assert_int_equal(es_ip_packet_parse(m->packet, m->len, &packet), 0);
	return es_settled_step(
		&t->settled,
		es_settled_request(es_flow_hash(&in.keys.ring, in.keys.ring_seed, &packet.flow),
				   packet.seg.seq),
		step, m->h.attempt, (__u32)now_ms(), es_settled_hold_ms(COOKIE_MS / 1000));
}

static unsigned int client_of(const struct message *m)
{
	struct es_ip_packet packet;

	assert_int_equal(es_ip_packet_parse(m->packet, m->len, &packet), 0);
	for (unsigned int i = 0; i < CLIENTS; i++)
		if (es_flow_hash(&in.keys.ring, in.keys.ring_seed, &packet.flow) == hash_of(client_flow[i]))
			return i;
	fail_msg("a message about nobody's request");
	return 0;
}

static void fly(const struct message *m, int is_refusal)
{
	unsigned int copies = below(10) ? 1 + !below(6) : 0; /* lost; doubled */

	while (copies-- && flying_count < FLYING_MAX)
		flying[flying_count++] =
			(struct flying){.m = *m, .sent_ms = now_ms(), .is_refusal = is_refusal};
}

/* Takes up the messages that the inspector has sent. */
static void collect(void)
{
	struct message m;

	es_handover_flush(in.sender);
	for (unsigned int i = 0; i < NODES; i++) {
		socklen_t len = sizeof(m.from);
		ssize_t got;

		while ((got = recvfrom(receiver[i], &m, sizeof(m.h) + sizeof(m.packet), 0,
				       (struct sockaddr *)&m.from, &len)) > 0) {
			m.len = (size_t)got - sizeof(m.h);
			fly(&m, 0);
			len = sizeof(m.from);
		}
	}
}

/* The kernel makes it. */
static void socket_make(struct target *t, const struct message *m, unsigned int client)
{
	settle(t, m, ES_SETTLED_SEEN);
	t->socket[client] = 1;
	t->made[client]++;
}

/* Makes the socket that was held back, within the time that the kernel may take. */
static void let_go(struct target *t, unsigned int client)
{
	if (t->held_ms[client] && !t->socket[client] && now_ms() - t->held_ms[client] < ES_SETTLED_MADE_MS) {
		trace("let go", client, (unsigned int)(t - target), t->held[client].h.attempt);
		socket_make(t, &t->held[client], client);
	}
	t->held_ms[client] = 0;
}

/* A request meets its target, as in kmod/bpf/target.h and kmod/module/target.c. */
static void arrive(struct message *m)
{
	struct target *t = &target[m->h.target];
	unsigned int client = client_of(m);
	struct es_settled_answer settled = settle(t, m, ES_SETTLED_LOOK);
	struct es_handover_view view = {
		.kind = m->h.kind,
		.seg = {.seq = ISN + 1, .len = sizeof(REQUEST) - 1, .flags = ES_TCP_ACK},
		.socket = t->socket[client] ? ES_SOCKET_ESTABLISHED : ES_SOCKET_NONE,
		.first_seq = ISN + 1,
		.rcv_nxt = ISN + sizeof(REQUEST),
		.listening = !t->socket[client] && t->listening,
		.accept_full = (__u8)t->full,
		.silent = (__u8)t->silent,
		.rebuilt = settled.as == ES_SETTLED_MADE || settled.as == ES_SETTLED_BUILT,
		.vanished = settled.has_vanished,
		.refused = settled.as == ES_SETTLED_REFUSED && m->h.attempt <= settled.attempt,
	};
	struct es_verdict verdict = {};

	es_decide_handover(&view, &verdict);
	trace(verdict.action == ES_REBUILD ? "made"
	      : verdict.action == ES_NACK  ? "refused"
					   : "dropped or delivered",
	      client, m->h.target, m->h.attempt);
	switch (verdict.action) {
	case ES_REBUILD:
		if (settle(t, m, ES_SETTLED_MAKE).as != ES_SETTLED_NOT)
			fail_msg("decided to make what must not be made");
		if (t->swallows) {
			t->held[client] = *m;
			t->held_ms[client] = now_ms();
		} else {
			socket_make(t, m, client);
		}
		break;
	case ES_NACK:
		if (!forgets_refusals) {
			settled = settle(t, m, ES_SETTLED_REFUSE);
			assert_int_equal(settled.as, ES_SETTLED_REFUSED);
			m->h.attempt = settled.attempt;
		}
		m->h.nack = (__u8)es_handover_nack_reason(&view);
		fly(m, 1);
		break;
	default:
		break;
	}
}

/* One of the messages under way arrives; the first that was sent need not be the first to arrive. */
static void deliver(void)
{
	struct flying f;
	unsigned int i;

	if (!flying_count)
		return;
	i = below(2) ? 0 : below(flying_count);
	f = flying[i];
	flying[i] = flying[--flying_count];
	if (now_ms() - f.sent_ms >= MESSAGE_MS)
		return;
	if (f.is_refusal)
		trace("a refusal arrives", client_of(&f.m), f.m.h.target, f.m.h.attempt);
	if (f.is_refusal)
		nack(&f.m, (enum es_nack_reason)f.m.h.nack);
	else
		arrive(&f.m);
	collect();
}

static unsigned int made(unsigned int client)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < NODES; i++)
		sum += target[i].made[client];
	return sum;
}

static void client_sends(unsigned int client)
{
	/* The datapath lets no request in whose cookie is over. */
	if (now_ms() - began_ms >= COOKIE_MS)
		return;
	trace("sends", client, 0, 0);
	inspect(client_flow[client], ES_FLOW_NEW, 0, REQUEST);
	collect();
}

/*
 * Another daemon starts: it has the decisions, which are the datapath's, and no more; refusals go to closed
 * ports.
 */
static void start_anew(void)
{
	unsigned int kept = 0;

	trace("the daemon starts anew", 0, 0, 0);
	memset(in.decisions.orders, 0, SETS * ES_DECISION_WAYS * sizeof(*in.decisions.orders));
	in.now_ns += 50000000ULL;
	in.decisions.since_ms = (__u32)now_ms();
	for (unsigned int i = 0; i < flying_count; i++)
		if (!flying[i].is_refusal)
			flying[kept++] = flying[i];
	flying_count = kept;
}

static void happen(void)
{
	struct target *t = &target[below(NODES)];

	switch (below(20)) {
	case 0:
	case 1:
		t->listening = !t->listening;
		break;
	case 2:
		t->silent = !t->silent;
		break;
	case 3:
		t->full = !below(4);
		break;
	case 17:
		t->swallows = !below(4);
		break;
	case 18:
		let_go(t, below(CLIENTS));
		break;
	case 4: /* the connection ends */
		t->socket[below(CLIENTS)] = 0;
		break;
	case 5:
		if (!below(3))
			start_anew();
		break;
	case 6:
		in.now_ns += 1000000ULL * below(below(8) ? 1500 : 200000);
		break;
	case 7:
	case 8:
	case 9:
		client_sends(below(CLIENTS));
		break;
	default:
		in.now_ns += 1000000ULL * below(20);
		deliver();
		break;
	}
}

static void begin(uint64_t number)
{
	seed = number * 0x9e3779b97f4a7c15ULL;
	flying_count = 0;
	memset(target, 0, sizeof(target));
	memset(&health, 0, sizeof(health));
	memset(in.decisions.sets, 0, SETS * sizeof(*in.decisions.sets));
	memset(in.decisions.orders, 0, SETS * ES_DECISION_WAYS * sizeof(*in.decisions.orders));
	es_router_fini(&in.router);
	assert_int_equal(es_router_init(&in.router, cluster, &health, NULL), 0);
	in.now_ns = NOW_NS;
	in.decisions.since_ms = (__u32)now_ms();
	began_ms = now_ms();
	for (unsigned int i = 0; i < NODES; i++)
		target[i].listening = (int)below(2);
	for (unsigned int c = 0; c < CLIENTS; c++)
		client_flow[c] = flow_find(c ? client_flow[c - 1] + 1 : 1, 1);
}

/* All is well, and nothing is lost any more: who goes on and was not served is, or is told by a RST. */
static void end_well(void)
{
	for (unsigned int i = 0; i < NODES; i++) {
		target[i].listening = 1;
		target[i].silent = target[i].full = target[i].swallows = 0;
	}
	in.now_ns += 2000000000ULL; /* nobody is left alone any more */
	for (unsigned int c = 0; c < CLIENTS; c++) {
		for (unsigned int i = 0; i < 40 && !made(c); i++) {
			client_sends(c);
			in.now_ns += 1100000000ULL;
			for (unsigned int k = 0; k < 20; k++)
				deliver();
		}
		assert_int_equal(made(c), 1);
	}
}

/* Returns how many of the worlds ended with two sockets. */
static unsigned int play(uint64_t first, uint64_t worlds, int stops)
{
	unsigned int bad = 0;

	for (uint64_t world = first; world < first + worlds; world++) {
		int is_bad = 0;

		trace("world", (unsigned int)world, 0, 0);
		begin(world);
		for (unsigned int i = 0; i < 120 && !is_bad; i++) {
			happen();
			for (unsigned int c = 0; c < CLIENTS; c++)
				is_bad |= made(c) > 1;
			if (stops && is_bad)
				fail_msg("world %llu: two sockets of one request", (unsigned long long)world);
		}
		bad += (unsigned int)is_bad;
		/* Is there time enough until the cookies are over? */
		if (stops && now_ms() - began_ms < COOKIE_MS - 150000)
			end_well();
	}
	return bad;
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

static void test_random_worlds(void **state)
{
	(void)state;
	forgets_refusals = 0;
	play(setting("EARSHOT_SEED", 1000), setting("EARSHOT_WORLDS", 3000), 1);
}

/* Without the notes, the same worlds end badly: the test is able to find it. */
static void test_refusals_matter(void **state)
{
	(void)state;
	forgets_refusals = 1;
	{
		unsigned int n = play(1000, 500, 0);
		print_message("bad: %u\n", n);
		assert_true(n > 5);
	}
	forgets_refusals = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_random_worlds),
		TEST(test_refusals_matter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
