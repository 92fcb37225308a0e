// SPDX-License-Identifier: GPL-2.0-or-later
/* By which turns entries are made again that the kernel has forgotten, with a kernel that is played. */
#include "cmocka_all.h"
#include <errno.h>
#include <string.h>
#include "netfilter/kernel/socket.h"
#include "netfilter/rebuild/recovery.h"

#define KNOWN 1000

/*
 * @losses: events that wait; @is_lost: and some that had no room; @looks, @restored: at entries, since reset
 */
static struct {
	int has_entry[KNOWN];
	unsigned int losses;
	int is_lost;
	unsigned int looks;
} played;

static struct es_flow flow(unsigned int number)
{
	return (struct es_flow){
		.client = es_addr_from_v4(es_htonl(0x0a000000 + number)),
		.service = es_addr_from_v4(es_htonl(0x0a010001)),
		.client_port = es_htons(40000),
		.service_port = es_htons(80),
	};
}

static int *has_entry(const struct es_flow *f)
{
	return &played.has_entry[es_ntohl(f->client.w[3]) - 0x0a000000];
}

int es_nf_losses_open(struct es_nf_losses *losses)
{
	(void)losses;
	return 0;
}

void es_nf_losses_close(struct es_nf_losses *losses)
{
	(void)losses;
}

int es_nf_losses_read(struct es_nf_losses *losses, size_t most, es_nf_loss_fn fn, void *ctx)
{
	(void)losses;
	if (played.is_lost) {
		played.is_lost = 0;
		return -ENOBUFS;
	}
	for (size_t n = 0; n < most; n++) {
		struct es_flow f;

		if (!played.losses)
			return 0;
		f = flow(--played.losses);
		fn(ctx, &f, 0);
	}
	return 1;
}

int es_nf_conntrack_get(struct es_nf_conntrack *ct, const struct es_flow *f, struct es_nf_entry *ret_entry)
{
	(void)ct;
	played.looks++;
	*ret_entry = (struct es_nf_entry){.flow = *f, .socket = *f, .has_synproxy = 1};
	return *has_entry(f) ? 0 : -ENOENT;
}

int es_nf_conntrack_restore(struct es_nf_conntrack *ct, const struct es_nf_entry *entry)
{
	(void)ct;
	*has_entry(&entry->flow) = 1;
	return 0;
}

int es_nf_conntrack_walk(struct es_nf_conntrack *ct, es_nf_entry_fn fn, void *ctx)
{
	(void)ct;
	for (unsigned int i = 0; i < KNOWN; i++) {
		const struct es_nf_entry entry = {.flow = flow(i), .socket = flow(i), .has_synproxy = 1};

		fn(ctx, &entry);
	}
	return 0;
}

int es_nf_socket_look(struct es_nf_netlink *nl, const struct es_flow *f, struct es_nf_socket *ret_socket)
{
	(void)nl;
	(void)f;
	*ret_socket = (struct es_nf_socket){.state = ES_NF_TCP_ESTABLISHED};
	return 0;
}

static struct es_nf_recovery begin(struct es_nf_conntrack *ct, struct es_nf_netlink *diag)
{
	struct es_nf_recovery r;

	memset(&played, 0, sizeof(played));
	assert_int_equal(es_nf_recovery_open(&r, KNOWN, ct, diag), 0);
	assert_int_equal(es_nf_kept_count(r.kept), KNOWN);
	assert_false(es_nf_recovery_is_due(&r));
	return r;
}

/*
 * All turns that are due. No turn asks for more than two times what it may look at: what was told, and what
 * was not.
 */
static size_t recover(struct es_nf_recovery *r)
{
	size_t restored = 0;

	do {
		played.looks = 0;
		restored += es_nf_recovery_turn(r);
		assert_in_range(played.looks, 0, 2 * ES_NF_RECOVERY_TURN);
	} while (es_nf_recovery_is_due(r));
	return restored;
}

static void test_what_is_told(void **state)
{
	struct es_nf_conntrack ct = {};
	struct es_nf_netlink diag = {};
	struct es_nf_recovery r = begin(&ct, &diag);

	(void)state;
	played.losses = KNOWN;
	assert_int_equal(recover(&r), KNOWN);
	assert_int_equal(recover(&r), 0);
	es_nf_recovery_close(&r);
}

static void test_what_is_not(void **state)
{
	struct es_nf_conntrack ct = {};
	struct es_nf_netlink diag = {};
	struct es_nf_recovery r = begin(&ct, &diag);

	(void)state;
	played.losses = KNOWN / 2;
	played.is_lost = 1;
	assert_int_equal(recover(&r), KNOWN);
	es_nf_recovery_close(&r);
}

/* A flow whose packet arrives need not wait for its turn. */
static void test_hurry(void **state)
{
	const struct es_flow first = flow(0), last = flow(KNOWN - 1),
			     stranger = {.service_port = es_htons(80)};
	struct es_nf_conntrack ct = {};
	struct es_nf_netlink diag = {};
	struct es_nf_recovery r = begin(&ct, &diag);

	(void)state;
	assert_int_equal(es_nf_recovery_hurry(&r, &first), 0);
	assert_int_equal(played.looks, 0); /* nothing was lost, and that costs nothing */
	played.is_lost = 1;
	(void)es_nf_recovery_turn(&r);
	(void)es_nf_recovery_hurry(&r, &first);
	(void)es_nf_recovery_hurry(&r, &last);
	assert_true(*has_entry(&first) && *has_entry(&last));
	assert_int_equal(es_nf_recovery_hurry(&r, &stranger), 0);
	assert_true(es_nf_recovery_is_due(&r));
	recover(&r);
	for (unsigned int i = 0; i < KNOWN; i++)
		assert_true(played.has_entry[i]);
	es_nf_recovery_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_told),
		cmocka_unit_test(test_what_is_not),
		cmocka_unit_test(test_hurry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
