// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Checks of the corosync that tells the daemon who is a member: quorum, timing, its nodes against ours, its
 * links. In a static cluster they are advice, so no more than warnings.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inspector/check/check.h"
#include "inspector/check/cmap.h"

#define CONF "/etc/corosync/corosync.conf"

#define TOKEN_SLOW_MS	  3000 /* corosync's default at two nodes, and more with more of them */
#define TOKEN_FAST_MS	  300
#define PING_TIMEOUT_MS	  1500
#define GATHER_CONTINUOUS 10 /* tries to form a ring, one after the other, without success */

static int is_used(const struct es_check *check)
{
	return check->conf->cluster.membership == ES_CONF_MEMBERSHIP_COROSYNC;
}

static enum es_check_severity worst(const struct es_check *check)
{
	return is_used(check) ? ES_CHECK_ERROR : ES_CHECK_WARNING;
}

static long number(const struct es_check *check, const char *key, long missing)
{
	return es_cmap_number(check->facts->corosync.text, key, missing);
}

static int has_device(const struct es_check *check)
{
	char model[32];

	return es_cmap_string(check->facts->corosync.text, "quorum.device.model", model, sizeof(model));
}

static int is_two_node(const struct es_check *check)
{
	return number(check, "runtime.votequorum.two_node",
		      es_cmap_switch(check->facts->corosync.text, "quorum.two_node", 0)) > 0;
}

/* The nodelist, or NULL, and it is reported. The caller frees it. */
static struct es_cmap_node *nodelist(struct es_check *check, int *ret_count)
{
	struct es_cmap_node *nodes = NULL;
	int n = es_cmap_nodes(check->facts->corosync.text, &nodes);

	if (n > 0) {
		*ret_count = n;
		return nodes;
	}
	es_check_unchecked(check, "corosync has no nodelist");
	free(nodes);
	return NULL;
}

static const struct es_check_item running = {
	.name = "running",
	.why = "Without corosync nobody knows who is a member, and the node stays silent.",
};

static int enter(struct es_check *check)
{
	const int rc = check->facts->corosync.rc;

	check->item = &running;
	if (!rc) {
		es_check_ok(check, "corosync runs");
		return 0;
	}
	if (!is_used(check) && (rc == -ECONNREFUSED || rc == -ELIBACC)) {
		es_check_ok(check, "no corosync here, and membership = static needs none");
		return 1;
	}
	if (rc == -ECONNREFUSED)
		es_check_error(check, "systemctl start corosync",
			       "no corosync runs in this network namespace");
	else if (rc == -ELIBACC)
		es_check_error(check, "apt-get install corosync", "corosync's libraries are not installed");
	else if (rc == -ETIMEDOUT)
		es_check_error(check, "systemctl restart corosync",
			       "corosync hangs: it takes connections and answers nothing");
	else if (rc == -EACCES)
		es_check_unchecked(
			check,
			"corosync does not talk to user %u: run it as root, or uidgid { uid: NAME } in " CONF,
			(unsigned int)geteuid());
	else
		es_check_unchecked(check, "corosync cannot be asked: %s", strerror(-rc));
	es_check_unchecked(check, "corosync's quorum, timing, nodes and links");
	return 1;
}

static void check_provider(struct es_check *check)
{
	char provider[64];

	if (es_cmap_string(check->facts->corosync.text, "quorum.provider", provider, sizeof(provider)))
		es_check_ok(check, "quorum provider %s", provider);
	else
		es_check_error(check,
			       "quorum { provider: corosync_votequorum } in " CONF ", then restart corosync",
			       "corosync has no quorum provider");
}

static void check_quorate(struct es_check *check)
{
	long quorate = number(check, "quorate", -1);

	if (quorate < 0)
		es_check_unchecked(check, "whether this node is quorate: libquorum does not answer");
	else if (!quorate)
		es_check_error(check, "corosync-quorumtool -s; start corosync on the other nodes",
			       "this node is not quorate");
	else
		es_check_ok(check, "this node is quorate");
}

static void check_detection(struct es_check *check)
{
	long token = number(check, "runtime.config.totem.token", -1);
	long consensus = number(check, "runtime.config.totem.consensus", -1);
	double seconds = (double)(token + consensus) / 1000;

	if (token < 0 || consensus < 0)
		es_check_unchecked(check, "corosync does not tell token and consensus");
	else if (token >= TOKEN_SLOW_MS)
		es_check_warning(check,
				 "totem { token: 1000  token_coefficient: 0 } in " CONF
				 ", then corosync-cfgtool -R",
				 "a dead node is noticed after %.1f s (token %ld + consensus %ld ms)",
				 seconds, token, consensus);
	else
		es_check_info(check, "a dead node is noticed after %.1f s (token %ld + consensus %ld ms)",
			      seconds, token, consensus);
}

static void check_token_fast(struct es_check *check)
{
	long token = number(check, "runtime.config.totem.token", -1);

	if (token < 0)
		es_check_unchecked(check, "corosync does not tell its token timeout");
	else if (token < TOKEN_FAST_MS)
		es_check_warning(check, "totem { token: 1000 } in " CONF ", then corosync-cfgtool -R",
				 "token = %ld ms", token);
	else
		es_check_ok(check, "token = %ld ms", token);
}

static int is_knet(const struct es_check *check)
{
	char transport[32];

	return !es_cmap_string(check->facts->corosync.text, "totem.transport", transport,
			       sizeof(transport)) ||
	       !strcmp(transport, "knet");
}

static void check_ping(struct es_check *check)
{
	unsigned int link, wrong = 0, links = 0;
	char key[80];

	if (!is_knet(check)) {
		es_check_ok(check, "no knet links");
		return;
	}
	for (link = 0; link < ES_CMAP_LINKS_MAX; link++) {
		long timeout;

		snprintf(key, sizeof(key), "runtime.config.totem.interface.%u.knet_ping_timeout", link);
		timeout = number(check, key, -1);
		if (timeout < 0)
			continue;
		links++;
		if (timeout >= PING_TIMEOUT_MS)
			continue;
		wrong++;
		es_check_warning(
			check,
			es_check_action("totem { interface { linknumber: %u  knet_ping_interval: 300  "
					"knet_ping_timeout: %d } } in " CONF,
					link, PING_TIMEOUT_MS),
			"knet_ping_timeout of link %u is %ld ms", link, timeout);
	}
	if (!links)
		es_check_unchecked(check, "corosync does not tell knet_ping_timeout");
	else if (!wrong)
		es_check_ok(check, "knet_ping_timeout is %d ms or more", PING_TIMEOUT_MS);
}

/* Does Pacemaker fence? 1, 0, or -1 when its configuration cannot be read. */
static int has_fencing(const struct es_check *check)
{
	static const char enabled[] = "name=\"stonith-enabled\" value=\"";
	char *cib = NULL;
	const char *at;
	int rc = es_facts_file(check->facts, "/var/lib/pacemaker/cib/cib.xml", &cib), has;

	if (rc)
		return rc == -ENOENT ? 0 : -1;
	at = strstr(cib, enabled);
	has = strstr(cib, "class=\"stonith\"") != NULL && !(at && strchr("f0n", at[strlen(enabled)]));
	free(cib);
	return has;
}

static int has_survive(const struct es_conf *conf)
{
	for (unsigned int i = 0; i < conf->service_count; i++)
		if (conf->services[i].survive)
			return 1;
	return 0;
}

static void check_two_nodes(struct es_check *check)
{
	static const char action[] = "quorum { device { model: net  votes: 1  timeout: 1250  net { host: "
				     "QNETD  algorithm: ffsplit } } } "
				     "in " CONF;
	struct es_cmap_node *nodes;
	int fencing, n = 0;

	nodes = nodelist(check, &n);
	free(nodes);
	if (!nodes)
		return;
	if (n != 2 && !is_two_node(check)) {
		es_check_ok(check, "%d nodes", n);
		return;
	}
	if (has_device(check)) {
		es_check_ok(check, "two nodes, and a quorum device decides between them");
		return;
	}
	if (!is_two_node(check)) {
		es_check_warning(check, action,
				 "two nodes without a quorum device: either's death silences the other%s",
				 has_survive(check->conf) ? ", and survive takes no effect" : "");
		return;
	}
	fencing = has_fencing(check);
	if (fencing > 0)
		es_check_warning(
			check, action,
			"two_node without a quorum device: after a split both halves answer until Pacemaker "
			"has fenced one");
	else
		es_check_error(check, action,
			       "two_node without a quorum device, and %s: after a split both halves answer",
			       fencing ? "Pacemaker's configuration, which may fence, cannot be read"
				       : "without fencing");
}

static void check_wait_for_all(struct es_check *check)
{
	const char *text = check->facts->corosync.text;
	int wait = es_cmap_switch(text, "quorum.wait_for_all", is_two_node(check));
	const char *why = is_two_node(check)					? "two_node"
			  : es_cmap_switch(text, "quorum.auto_tie_breaker", 0)	? "auto_tie_breaker"
			  : es_cmap_switch(text, "quorum.last_man_standing", 0) ? "last_man_standing"
										: NULL;

	if (!why || wait)
		es_check_ok(check, "%s", wait ? "wait_for_all is on" : "wait_for_all is not needed");
	else if (is_two_node(check))
		es_check_error(check, "quorum { wait_for_all: 1 } in " CONF,
			       "two_node with wait_for_all off");
	else
		es_check_warning(check, "quorum { wait_for_all: 1 } in " CONF, "%s without wait_for_all",
				 why);
}

static void check_votes(struct es_check *check)
{
	long expected, total = 0, device = has_device(check) ? number(check, "quorum.device.votes", 1) : 0;
	const char *action = "no expected_votes in quorum { } of " CONF " (the nodelist says it)";
	struct es_cmap_node *nodes;
	int i, n = 0;

	nodes = nodelist(check, &n);
	if (!nodes)
		return;
	for (i = 0; i < n; i++)
		total += nodes[i].votes;
	free(nodes);
	expected = number(check, "quorum.expected_votes", total + device);
	if (2 * (expected / 2 + 1) <= total && !is_two_node(check))
		es_check_error(check, action,
			       "expected_votes is %ld, and the nodes have %ld votes: two halves can be "
			       "quorate at once",
			       expected, total);
	else if (expected != total + device)
		es_check_warning(check, action, "expected_votes is %ld, and there are %ld votes", expected,
				 total + device);
	else if (total != (long)es_conf_nodes_present(check->conf))
		es_check_warning(check, "the same nodes in both files, one vote each",
				 "%ld votes in corosync's nodelist, %u nodes in %s", total,
				 es_conf_nodes_present(check->conf), check->conf->path);
	else
		es_check_ok(check, "%ld votes expected, %ld for quorum", expected, expected / 2 + 1);
}

static void check_even(struct es_check *check)
{
	int breaker = es_cmap_switch(check->facts->corosync.text, "quorum.auto_tie_breaker", 0);
	struct es_cmap_node *nodes;
	int n = 0;

	nodes = nodelist(check, &n);
	free(nodes);
	if (!nodes)
		return;
	if (n % 2 || n == 2 || has_device(check))
		es_check_ok(check, "a split leaves a majority somewhere");
	else if (breaker)
		es_check_info(check, "%d nodes: in a split into halves, auto_tie_breaker lets one go on", n);
	else
		es_check_info(
			check,
			"%d nodes: a split into halves silences all of them (auto_tie_breaker, or a quorum "
			"device, lets one half go on)",
			n);
}

enum match { MATCH_NONE, MATCH_NAME, MATCH_ADDRESS };

static enum match match(const struct es_conf_node *ours, const struct es_cmap_node *theirs)
{
	unsigned int i;

	for (i = 0; i < theirs->links; i++)
		if (es_addr_equal(&theirs->address[i], &ours->address))
			return MATCH_ADDRESS;
	return strcmp(theirs->name, ours->name) != 0 ? MATCH_NONE : MATCH_NAME;
}

static enum match match_any(const struct es_conf_node *ours, const struct es_cmap_node *nodes, int count,
			    const struct es_cmap_node **ret_node)
{
	enum match m, best = MATCH_NONE;
	int i;

	for (i = 0; i < count; i++) {
		m = match(ours, &nodes[i]);
		if (m > best) {
			best = m;
			*ret_node = &nodes[i];
		}
	}
	return best;
}

/* Names that nobody could resolve leave it open whose they are. Return: how many nodes have one; reported. */
static unsigned int judge_resolved(struct es_check *check, const struct es_cmap_node *nodes, int count)
{
	unsigned int wrong = 0, k;
	int i;

	for (i = 0; i < count; i++)
		for (k = 0; k < nodes[i].links; k++)
			if (!es_addr_is_set(&nodes[i].address[k])) {
				wrong++;
				es_check_unchecked(
					check,
					"whose address %s (ring%u_addr of corosync's node %ld) is: it "
					"does not resolve",
					nodes[i].names[k], k, nodes[i].nodeid);
			}
	return wrong;
}

static void check_nodes(struct es_check *check)
{
	const struct es_cmap_node *theirs = NULL;
	struct es_cmap_node *nodes;
	char text[INET6_ADDRSTRLEN];
	unsigned int i, wrong = 0;
	int n = 0;

	nodes = nodelist(check, &n);
	if (!nodes)
		return;
	wrong += judge_resolved(check, nodes, n);
	for (i = 0; i < check->conf->node_count; i++) {
		const struct es_conf_node *ours = &check->conf->nodes[i];

		if (ours->removed || match_any(ours, nodes, n, &theirs))
			continue;
		wrong++;
		es_conf_addr_text(&ours->address, text);
		es_check_error(
			check,
			es_check_action(
				"nodelist { node { name: %s  nodeid: NUMBER  ring0_addr: %s } } in " CONF,
				ours->name, text),
			"node %s (%s) is not in corosync's nodelist", ours->name, text);
	}
	if (!wrong)
		es_check_ok(check, "all nodes are in corosync's nodelist");
	free(nodes);
}

static void check_strangers(struct es_check *check)
{
	struct es_cmap_node *nodes;
	unsigned int k, wrong = 0;
	int i, n = 0;

	nodes = nodelist(check, &n);
	for (i = 0; nodes && i < n; i++) {
		enum match best = MATCH_NONE;

		for (k = 0; k < check->conf->node_count && !best; k++)
			if (!check->conf->nodes[k].removed)
				best = match(&check->conf->nodes[k], &nodes[i]);
		if (best)
			continue;
		wrong++;
		es_check_warning(check,
				 es_check_action("node NAME { address = %s } in %s", nodes[i].names[0],
						 check->conf->path),
				 "corosync's node %ld (%s) is not a node in %s", nodes[i].nodeid,
				 nodes[i].names[0], check->conf->path);
	}
	if (nodes && !wrong)
		es_check_ok(check, "all of corosync's nodes are in %s", check->conf->path);
	free(nodes);
}

static void check_network(struct es_check *check)
{
	const struct es_cmap_node *theirs = NULL;
	struct es_cmap_node *nodes;
	char text[INET6_ADDRSTRLEN];
	unsigned int i, wrong = 0;
	int n = 0;

	nodes = nodelist(check, &n);
	for (i = 0; nodes && i < check->conf->node_count; i++) {
		const struct es_conf_node *ours = &check->conf->nodes[i];

		if (ours->removed || match_any(ours, nodes, n, &theirs) != MATCH_NAME)
			continue;
		wrong++;
		es_conf_addr_text(&ours->address, text);
		es_check_warning(check, es_check_action("ring0_addr: %s for it in " CONF, text),
				 "node %s: corosync knows it by %s only, not by %s", ours->name,
				 theirs->names[0], text);
	}
	if (nodes && !wrong)
		es_check_ok(check, "corosync is on the nodes' private network");
	free(nodes);
}

static void check_crypto(struct es_check *check)
{
	const char *text = check->facts->corosync.text;
	const char *action =
		"totem { crypto_cipher: aes256  crypto_hash: sha256 } in " CONF ", and corosync-keygen";
	char cipher[32], hash[32];

	es_cmap_string(text, "totem.crypto_cipher", cipher, sizeof(cipher));
	es_cmap_string(text, "totem.crypto_hash", hash, sizeof(hash));
	if (!is_knet(check))
		es_check_warning(
			check,
			"totem { transport: knet  crypto_cipher: aes256  crypto_hash: sha256 } in " CONF,
			"the transport is not knet, so there is no authentication");
	else if (!es_cmap_switch(text, "totem.secauth", 0) && (!*hash || !strcmp(hash, "none")))
		es_check_warning(check, action, "crypto_hash is none");
	else
		es_check_ok(check, "crypto_cipher %s, crypto_hash %s", *cipher ? cipher : "by secauth",
			    *hash ? hash : "by secauth");
}

static void check_links(struct es_check *check)
{
	struct es_cmap_node *nodes;
	int n = 0;

	nodes = nodelist(check, &n);
	if (nodes && nodes[0].links > 1)
		es_check_info(check,
			      "%u links: a node that corosync reaches over another network than the "
			      "handovers' stays a member without getting any",
			      nodes[0].links);
	else if (nodes)
		es_check_info(check,
			      "one link: make its network redundant below IP, by a bond over two switches");
	free(nodes);
}

static void check_links_up(struct es_check *check)
{
	struct es_cmap_node *nodes;
	unsigned int k, wrong = 0, told = 0;
	char key[64];
	int i, n = 0;

	nodes = nodelist(check, &n);
	for (i = 0; nodes && i < n; i++)
		for (k = 0; k < nodes[i].links; k++) {
			long connected;

			snprintf(key, sizeof(key), "stats.knet.node%ld.link%u.connected", nodes[i].nodeid, k);
			connected = number(check, key, -1);
			told += connected >= 0;
			if (connected)
				continue;
			wrong++;
			es_check_warning(check,
					 es_check_action("corosync-cfgtool -n; ping %s", nodes[i].names[k]),
					 "link %u to corosync's node %ld (%s) is down", k, nodes[i].nodeid,
					 nodes[i].names[k]);
		}
	if (nodes && !told)
		es_check_unchecked(check,
				   "whether the links to the other nodes are up: only knet tells that");
	else if (nodes && !wrong)
		es_check_ok(check, "all links are up");
	free(nodes);
}

static void check_ring(struct es_check *check)
{
	long gather = number(check, "stats.srp.continuous_gather", -1);

	if (gather < 0)
		es_check_unchecked(check, "corosync does not tell how its ring is");
	else if (gather > GATHER_CONTINUOUS ||
		 number(check, "stats.srp.firewall_enabled_or_nic_failure", 0) > 0)
		es_check_error(check, "let UDP port 5405 in on corosync's network; corosync-cfgtool -s",
			       "corosync cannot form a ring (firewall, or network down): %ld tries", gather);
	else
		es_check_ok(check, "corosync has formed a ring");
}

static const struct es_check_item items[] = {
	{"provider", "Without quorum each part of a split cluster answers.", check_provider},
	{"ring", "Without a ring there are no members but this one.", check_ring},
	{"quorate", "A node without quorum answers nothing.", check_quorate},
	{"detection", "Until a node's death is noticed, its share of new connections is not answered.",
	 check_detection},
	{"token_fast",
	 "A machine that stalls for a moment is taken for dead, and the ring changes again and again.",
	 check_token_fast},
	{"ping_timeout", "A short stall takes the link down.", check_ping},
	{"two_nodes", "Two nodes have no majority: after a split both answer a client, or none does.",
	 check_two_nodes},
	{"quorum_device", "While corosync asks a quorum device for its vote, no node answers.",
	 es_check_quorum_device},
	{"wait_for_all", "A node that starts alone, cut off from the others, becomes quorate beside them.",
	 check_wait_for_all},
	{"votes", "Quorum is more than half of the votes that are expected.", check_votes},
	{"even", "Half the votes are not a majority.", check_even},
	{"nodes", "A node that corosync does not know never becomes a member.", check_nodes},
	{"strangers", "Its vote counts, but it serves nobody.", check_strangers},
	{"network", "A node that cannot get handovers any more would stay a member.", check_network},
	{"crypto", "Whoever is on this network can make itself a member, or throw others out.", check_crypto},
	{"links",
	 "A node that can get no handovers must not stay a member, and a switch that fails must not part "
	 "all.",
	 check_links},
	{"links_up", "The next failure parts this node from that one, if it is not down anyway.",
	 check_links_up},
	{NULL, NULL, NULL},
};

const struct es_check_group es_check_corosync_group = {
	.name = "corosync",
	.items = items,
	.enter = enter,
	.worst = worst,
};
