// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * membership/wire.h and group.h: a datagram of anything, from a member, from ourselves or from nobody we
 * know, breaks nothing; what is a message is written back as the same bytes. Another daemon's bug must not be
 * ours.
 */
#include "tests/fuzz/fuzz.h"
#include "membership/group.h"

static unsigned int asked_to_stop;

static void on_send(void *ctx, enum es_wire_type type, const void *payload, size_t len)
{
	(void)ctx;
	(void)type;
	(void)payload;
	(void)len;
}

static void on_stop(void *ctx, uint32_t epoch, const unsigned int *weights)
{
	const struct es_group *group = ctx;

	(void)epoch;
	for (unsigned int i = 0; i < ES_GROUP_NODES_MAX; i++)
		FUZZ_CHECK(!weights[i] || (i < group->node_count && group->node[i].is_accepted));
	asked_to_stop++;
}

static void on_serve(void *ctx, uint32_t epoch)
{
	const struct es_group *group = ctx;

	FUZZ_CHECK(asked_to_stop && group->phase == ES_GROUP_STABLE && group->epoch == epoch);
}

static void on_proofs(void *ctx, unsigned int node, const struct es_wire_proof *proofs, size_t count)
{
	const struct es_group *group = ctx;

	FUZZ_CHECK(node < group->node_count && proofs && count <= ES_WIRE_PROOFS_MAX);
}

static void on_word(void *ctx)
{
	(void)ctx;
}

static void on_text(void *ctx, const char *text)
{
	(void)ctx;
	FUZZ_CHECK(strlen(text) < 1024);
}

static const struct es_group_ops ops = {on_send, on_stop, on_serve, on_proofs,
					on_word, on_text, on_word,  on_text};

/* Fixed formats: reading and writing are inverse. */
static void check_round_trip(uint8_t type, const char *payload, size_t len)
{
	static struct es_wire_proof proofs[ES_WIRE_PROOFS_MAX];
	static char back[ES_WIRE_MESSAGE_MAX];
	static struct es_wire_hello hello;
	struct es_wire_stopped stopped;
	struct es_wire_suspect suspect;
	struct es_wire_change change;
	struct es_wire_load load;
	uint32_t epoch;
	size_t count, written = 0;

	if (type == ES_WIRE_HELLO && !es_wire_get_hello(payload, len, &hello)) {
		FUZZ_CHECK(strlen(hello.name) < sizeof(hello.name));
		FUZZ_CHECK(strlen(hello.settings) < sizeof(hello.settings));
		FUZZ_CHECK(es_wire_put_hello(back, sizeof(back), &hello));
		return; /* bytes behind a NUL are not kept */
	}
	if (type == ES_WIRE_PROOFS && !es_wire_get_proofs(payload, len, &epoch, proofs, &count))
		written = es_wire_put_proofs(back, sizeof(back), epoch, proofs, count);
	else if (type == ES_WIRE_STOPPED && !es_wire_get_stopped(payload, len, &stopped)) {
		written = es_wire_put_stopped(back, sizeof(back), &stopped);
		if (written > len) { /* of the version before, which tells no doubt */
			FUZZ_CHECK(!stopped.doubt_ms);
			written = len;
		}
	} else if (type == ES_WIRE_CHANGE && !es_wire_get_change(payload, len, &change))
		written = es_wire_put_change(back, sizeof(back), &change);
	else if (type == ES_WIRE_LOAD && !es_wire_get_load(payload, len, &load))
		written = es_wire_put_load(back, sizeof(back), &load);
	else if (type == ES_WIRE_SUSPECT && !es_wire_get_suspect(payload, len, &suspect))
		written = es_wire_put_suspect(back, sizeof(back), &suspect);
	FUZZ_CHECK(written <= len && !memcmp(back, payload, written));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"n1", "n2", "n3"};
	static const struct es_group_id members[] = {{1, 10}, {2, 20}, {3, 30}};
	static struct es_group group;
	uint64_t seed = fuzz_seed(data, size), now = 10000;
	char *copy = fuzz_copy(data, size);
	size_t at = 0, payload_len;
	const void *payload;
	uint8_t type;

	asked_to_stop = 0;
	es_group_init(&group, &ops, &group, names, 3, 0, 5, 1000, 3000);
	es_group_describe(&group, 100, "=protocol=1\n");
	es_group_view(&group, members[0], members, 3, NULL, 0, now);
	while (es_wire_next(copy, size, &at, &type, &payload, &payload_len) > 0) {
		struct es_group_id from = members[fuzz_random(&seed) % 3];

		FUZZ_CHECK(at <= size);
		check_round_trip(type, payload, payload_len);
		if (fuzz_random(&seed) % 16 == 0)
			from.pid++;
		es_group_message(&group, from, type, payload, payload_len, now);
		now += fuzz_random(&seed) % 2000;
		es_group_tick(&group, now);
		if (fuzz_random(&seed) % 32 == 0) {
			struct es_group_leaver gone = {members[2], ES_GROUP_NODE};

			es_group_view(&group, members[0], members, 2, &gone, 1, now);
		}
	}
	free(copy);
	return 0;
}
