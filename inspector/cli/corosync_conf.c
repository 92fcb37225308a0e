// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot corosync-conf`: a corosync.conf for the nodes of a configuration, so that these are written down
 * once. Its values and the reasons for them are those of conf/corosync/corosync.conf.example.
 */
#include <arpa/inet.h>
#include <stdio.h>

#include "inspector/cli/cli.h"
#include "inspector/config/config.h"

static const char totem[] =
	"# Made by earshot corosync-conf from %s.\n"
	"# The same file on every node, and /etc/corosync/authkey (corosync-keygen) besides.\n"
	"# Reasons: corosync.conf.example of Earshot.\n"
	"totem {\n"
	"\tversion: 2\n"
	"\tcluster_name: %s\n"
	"\ttransport: knet\n"
	"\tcrypto_cipher: aes256\n"
	"\tcrypto_hash: sha256\n"
	"\ttoken: 1000\n"
	"\ttoken_coefficient: 0\n"
	"\tconsensus: 1200\n"
	"\tjoin: 50\n"
	"\tinterface {\n"
	"\t\tlinknumber: 0\n"
	"\t\tknet_ping_interval: 250\n"
	"\t\tknet_ping_timeout: 1500\n"
	"\t}\n"
	"}\n"
	"nodelist {\n";
static const char node[] = "\tnode {\n"
			   "\t\tnodeid: %u\n"
			   "\t\tname: %s\n"
			   "\t\tring0_addr: %s\n"
			   "\t}\n";
static const char quorum[] = "}\n"
			     "quorum {\n"
			     "\tprovider: corosync_votequorum\n"
			     "\twait_for_all: 0\n";
/* If both halves had the quorum, both would answer, so the operator has to choose. */
static const char quorum_of_two[] =
	"\t# Two nodes have no majority without each other: while one is off, the other is silent, too.\n"
	"\t# Use a quorum device (corosync.conf.example), or \"two_node: 1\" together with fencing.\n";
static const char logging[] = "}\n"
			      "logging {\n"
			      "\tto_stderr: no\n"
			      "\tto_syslog: yes\n"
			      "\tto_logfile: no\n"
			      "\ttimestamp: on\n"
			      "}\n";

/*
 * Without ids in the configuration, a node's place in it is its id, which corosync must never see change. A
 * cluster that was set up this way keeps these numbers.
 */
static void ids_warn(const struct es_conf *conf)
{
	fputs("earshot: warning: the nodes have no id in their sections, so they are numbered by their "
	      "places: when "
	      "one is deleted or moved, others would be renumbered, and corosync must not see that; write "
	      "into the "
	      "configuration, on all nodes:\n",
	      stderr);
	for (unsigned int i = 0; i < conf->node_count; i++)
		fprintf(stderr, "  node %s { id = %u … }\n", conf->nodes[i].name, i + 1);
}

static int run(const struct es_cli *cli)
{
	const char *path = cli->arg_count ? cli->args[0] : "/etc/earshot/earshot.conf";
	struct es_conf *conf = NULL;
	struct es_conf_error err;
	char text[INET6_ADDRSTRLEN];

	if (es_conf_read(path, &conf, &err))
		return es_cli_fail("%s", err.text);
	if (!conf->nodes[0].id)
		ids_warn(conf);
	printf(totem, conf->path, conf->cluster.name);
	for (unsigned int i = 0; i < conf->node_count; i++) {
		if (conf->nodes[i].removed)
			continue;
		printf(node, conf->nodes[i].id ? conf->nodes[i].id : i + 1, conf->nodes[i].name,
		       es_conf_addr_text(&conf->nodes[i].address, text));
	}
	fputs(quorum, stdout);
	if (es_conf_nodes_present(conf) == 2)
		fputs(quorum_of_two, stdout);
	fputs(logging, stdout);
	es_conf_free(&conf);
	return ES_CLI_OK;
}

const struct es_cli_command es_cli_corosync_conf = {
	.name = "corosync-conf",
	.args_doc = "[FILE]",
	.doc = "Print a corosync.conf for the nodes of a configuration (default /etc/earshot/earshot.conf).",
	.args_max = 1,
	.run = run,
};
