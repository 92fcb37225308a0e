/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CHECK_FACTS_H
#define ES_CHECK_FACTS_H

/*
 * The facts that `earshot check` finds on this machine, before anything is judged. Each part says by its `rc`
 * whether it could be read: 0, or the -errno of the attempt, and then the rest of it means nothing. Files
 * under /proc and /var are read when a check asks, below @root, which tests point to a tree of their own.
 */
#include <json-c/json.h>
#include <stddef.h>

#include "inspector/certificate/certificate.h"
#include "inspector/config/config.h"
#include "inspector/datapath/datapath.h"
#include "inspector/machine/sock_diag.h"

/**
 * struct es_facts_link - a network interface
 * @rc: -ENODEV when there is none of this name
 * @master: index of the bridge or bond that it belongs to, or 0
 * @lro: merging of received packets by the NIC: 1, 0, or -1 when it does not say
 */
struct es_facts_link {
	int rc;
	unsigned int index;
	unsigned int flags; /* IFF_* */
	unsigned int mtu;
	unsigned int master;
	unsigned int promiscuity;
	int carrier;
	int lro;
	unsigned char mac[6];
};

struct es_facts_address {
	char interface[ES_CONF_IFNAME_SIZE];
	unsigned int flags; /* IFF_* of the interface */
	unsigned int prefix;
	struct es_addr address;
};

/*
 * @answers: how many different hardware addresses answered an ARP request or a solicitation, the first two in
 * @mac
 */
struct es_facts_answer {
	int rc;
	unsigned int answers;
	unsigned char mac[2][6];
};

/* Whether a node answered echo requests: a short one, and one as long as the network's MTU. */
struct es_facts_echo {
	int rc;
	int small;
	int full;
};

/*
 * An exception of the route to a node: packets are to be no longer than @mtu, for so long; @mtu 0: there is
 * none.
 */
struct es_facts_route {
	int rc;
	unsigned int mtu;
	unsigned int expires_s;
};

/**
 * struct es_facts_firewall - packet filter rules that see arriving packets
 * @has_v6: rules for IPv6 count, too, since a service or a node has such an address
 * @chains: base chains with rules, or with a policy that drops; @dropping: those whose policy drops
 * @name: the first of them, for people
 * @nat: how many base chains with rules translate addresses; @nat_name: the first of these
 */
struct es_facts_firewall {
	int rc;
	int has_v6;
	unsigned int chains;
	unsigned int dropping;
	char name[96];
	unsigned int nat;
	char nat_name[96];
};

/**
 * struct es_facts_translation - which rules of nf_tables translate packets for a service
 * @taken: for each service, the first such rule, for people; "": no rule certainly does
 */
struct es_facts_translation {
	int rc;
	char taken[ES_CONF_SERVICES_MAX][96];
};

/* How the names of our own tables of nf_tables begin. */
#define ES_FACTS_OUR_TABLES "earshot-"

/**
 * struct es_facts_zones - rules that put packets into conntrack zones; only for the netfilter datapath
 * @wanted: the zone that the configuration names; @is_right: a rule names it, too
 * @rules: how many rules there are; @first: the zone that the first one names; @name: where that rule is, for
 * people
 */
struct es_facts_zones {
	int rc;
	unsigned int wanted;
	int is_right;
	unsigned int rules;
	unsigned int first;
	char name[96];
};

/**
 * struct es_facts_corosync - the corosync of this network namespace
 * @rc: -ECONNREFUSED: none runs; -EACCES: it does not talk to this user; -ELIBACC: its libraries are not
 * installed; -ETIMEDOUT: it does not answer
 * @text: its settings and state, lines of "key = value" (cmap's keys, and "quorate"); see cmap.h
 */
struct es_facts_corosync {
	int rc;
	char *text;
};

/**
 * struct es_facts_packet_socket - a packet socket for IP alone (AF_PACKET, ETH_P_IP; not one for all
 * protocols)
 * @ifindex: the interface that it hears, 0: all; @process: one that has it open, @name: its name; 0: not
 * found, or not to be seen by this user
 */
struct es_facts_packet_socket {
	unsigned int ifindex;
	unsigned long inode;
	long process;
	char name[32];
};

/**
 * struct es_facts_daemon - what became of the attempt to ask this node's daemon
 * @socket: its control socket; "" if that is not known
 * @rc: of connecting to it: -ENOENT: there is none, as after a stop; -ECONNREFUSED: a daemon that died left
 * it; -EAGAIN: nobody takes connections off it
 * @runs: somebody listens there
 * @status, @counters: the replies to the commands of these names, NULL if there was none
 */
struct es_facts_daemon {
	char socket[108];
	int rc;
	int runs;
	struct json_object *status;
	struct json_object *counters;
};

/**
 * struct es_facts_startup - what the daemon would stumble over when it starts
 * @no_group: there is no program_group
 * @root_rc: of each service's document_root, es_startup_root_read()
 * @plugins_text: why the plugins cannot be used; "" if they can
 */
struct es_facts_startup {
	int no_group;
	int root_rc[ES_CONF_SERVICES_MAX];
	char plugins_text[512];
};

/**
 * struct es_facts_certificate - one of a service whose TLS Earshot ends
 * @service, @index: its place in the configuration
 * @rc: of reading it, @text: why it cannot be used; @key_rc, @key_text: likewise of it and its key together;
 * @ocsp_rc, @ocsp_text: likewise of its OCSP answer, which is good until @ocsp_until_s
 */
struct es_facts_certificate {
	unsigned int service;
	unsigned int index;
	int rc;
	struct es_conf_error text;
	int key_rc;
	struct es_conf_error key_text;
	struct es_certificate_facts says;
	int ocsp_rc;
	struct es_conf_error ocsp_text;
	long long ocsp_until_s;
};

/*
 * struct es_facts_tls - @wall_s: now, since 1970; @server_rc: of a connection to each server behind;
 * @has_ktls: the kernel can write records
 */
struct es_facts_tls {
	long long wall_s;
	int has_ktls;
	size_t count;
	struct es_facts_certificate *certificate;
	int server_rc[ES_CONF_SERVICES_MAX];
};

struct es_facts {
	const char *root;		/* "" for this machine */
	char self_text[512];		/* why it is not known which node this is */
	enum es_datapath_kind datapath; /* as earshotd chooses; bpf if all fail */
	int kernel_rc;
	char kernel_text[512];
	char module_text[256]; /* why the module does not run, where a later choice does */
	int is_root;
	int programs_rc;
	char programs_text[512];
	int attached;	  /* 1, 0 or -errno */
	int clock_synced; /* 1, 0 or -errno */
	struct es_facts_link public, cluster;
	int addresses_rc;
	size_t address_count;
	struct es_facts_address *addresses;
	int listeners_rc;
	size_t listener_count;
	struct es_sock_diag_listener *listeners;
	struct es_facts_firewall firewall;
	struct es_facts_zones zones;
	struct es_facts_translation translation;
	struct es_facts_answer self_arp;			  /* for this node's own address */
	struct es_facts_answer service_arp[ES_CONF_SERVICES_MAX]; /* for the services' addresses */
	struct es_facts_answer node_arp[ES_CONF_NODES_MAX];
	struct es_facts_answer self_ndp, service_ndp[ES_CONF_SERVICES_MAX]; /* for those that are of IPv6 */
	struct es_facts_echo node_echo[ES_CONF_NODES_MAX];
	struct es_facts_route node_route[ES_CONF_NODES_MAX];
	struct es_facts_daemon daemon;
	struct es_facts_corosync corosync;
	struct es_facts_startup startup;
	struct es_facts_tls tls;
};

/*
 * startup.c, for check-config too. The first tells whether there is no program_group of that name here, the
 * second looks at a service's document_root and returns 0 or -errno.
 */
int es_startup_group_is_missing(const struct es_conf *conf);
int es_startup_root_read(const struct es_conf_service *service);

/* Reads everything but the daemon's part and what the next one reads. @self: this node's index, or -1. */
void es_facts_read(const struct es_conf *conf, int self, struct es_facts *ret_facts);

/*
 * When the daemon's part is there: does the kernel take the datapath's programs? To try costs the better
 * part of a second of CPU time, so it is not tried where a daemon of this version has loaded them.
 */
void es_facts_read_programs(const struct es_conf *conf, struct es_facts *facts);
void es_facts_fini(struct es_facts *facts);

/* The parts of es_facts_read(), each in a file of its own: */
void es_facts_read_kernel(const struct es_conf *conf, struct es_facts *facts);
void es_facts_read_links(const struct es_conf *conf, struct es_facts *facts);
void es_facts_read_listeners(struct es_facts *facts);
void es_facts_read_firewall(const struct es_conf *conf, struct es_facts *facts);
void es_facts_read_translation(const struct es_conf *conf, struct es_facts *facts);
void es_facts_read_zones(const struct es_conf *conf, struct es_facts *facts);
void es_facts_read_arp(const struct es_conf *conf, int self, struct es_facts *facts);
void es_facts_read_ndp(const struct es_conf *conf, int self, struct es_facts *facts);
void es_facts_read_echo(const struct es_conf *conf, int self, struct es_facts *facts);
void es_facts_read_routes(const struct es_conf *conf, int self, struct es_facts *facts);
void es_facts_read_corosync(struct es_facts *facts);
void es_facts_read_startup(const struct es_conf *conf, struct es_facts *facts);
void es_facts_read_tls(const struct es_conf *conf, int self, struct es_facts *facts);
void es_facts_tls_fini(struct es_facts_tls *tls);

/* arp.c, for ndp.c, too: one more answer, with this hardware address */
void es_facts_answer_add(struct es_facts_answer *answer, const __u8 *mac);

/* files.c: the bytes of a file below the root, and a NUL after them; the caller frees. 0 or -errno. */
int es_facts_file(const struct es_facts *facts, const char *path, char **ret_text);
/* Up to @max numbers of a sysctl, "net/ipv4/tcp_rmem". Return: how many, or -errno. */
int es_facts_sysctl(const struct es_facts *facts, const char *name, long *ret_values, int max);
/* The TIME_WAIT sockets that there are. Return: 0 or -errno. */
int es_facts_time_wait(const struct es_facts *facts, long *ret_count);
/* Does /proc/net/dev_mcast list @mac for an interface? Return: 1, 0 or -errno. */
int es_facts_has_multicast(const struct es_facts *facts, const char *interface, const unsigned char *mac);
/* Does /proc/net/igmp6 list the multicast group for an interface? Return: 1, 0 or -errno. */
int es_facts_has_group(const struct es_facts *facts, const char *interface, const struct es_addr *group);
/* packet_sockets.c: up to @max packet sockets for IP of this network namespace. Return:
 * how many, or -errno. */
int es_facts_packet_sockets(const struct es_facts *facts, struct es_facts_packet_socket *ret_sockets,
			    int max);
/* The interface of the default route, "" without one. Return: 0 or -errno. */
int es_facts_default_interface(const struct es_facts *facts, char *ret_name, size_t size);

#endif
