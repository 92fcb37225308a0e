// SPDX-License-Identifier: GPL-2.0-or-later
/* Looks whether this node can serve. Some 100 us of system calls; nothing of it waits. */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "inspector/datapath/network.h"
#include "inspector/machine/sock_diag.h"
#include "inspector/peers/node_load.h"
#include "inspector/self/serving.h"

static const char *const trouble_texts[] = {
	[ES_TROUBLE_NONE] = "",
	[ES_TROUBLE_NO_SERVER] = "nothing listens for the service",
	[ES_TROUBLE_MPTCP] = "the server's socket is one of MPTCP",
	[ES_TROUBLE_ADDRESS] = "the service address is missing",
	[ES_TROUBLE_SYNCOOKIES] = "sysctl net.ipv4.tcp_syncookies is wrong",
	[ES_TROUBLE_RP_FILTER] = "sysctl rp_filter is strict",
	[ES_TROUBLE_MTU] = "the MTU of the cluster interface is too small",
	[ES_TROUBLE_CHECK] = "the server fails its check",
	[ES_TROUBLE_OUTLIER] = "the server is an outlier: too many errors, or too slow",
	[ES_TROUBLE_CUT_OFF] = "it hears no other node on its cluster interface",
	[ES_TROUBLE_VANISHING] = "connections that are made there are not heard of again",
	[ES_TROUBLE_KEPT] = "its check fails, it serves all the same: max_out are out, or none passes",
};

const char *es_trouble_text(unsigned int trouble)
{
	return trouble < sizeof(trouble_texts) / sizeof(trouble_texts[0]) ? trouble_texts[trouble]
									  : "something of a later version";
}

/* The first one is told. */
__attribute__((format(printf, 3, 4))) static void found(struct es_serving *s, enum es_trouble trouble,
							const char *format, ...)
{
	va_list args;

	if (s->trouble)
		return;
	s->trouble = trouble;
	va_start(args, format);
	vsnprintf(s->text, sizeof(s->text), format, args);
	va_end(args);
}

/* A finding about one service; the first is its own to tell. */
__attribute__((format(printf, 5, 6))) static void found_of(struct es_serving *s, const struct es_conf *conf,
							   unsigned int service, enum es_trouble trouble,
							   const char *format, ...)
{
	struct es_serving_of *of = &s->of[service];
	struct es_serving_of now = {.trouble = trouble};
	va_list args;

	va_start(args, format);
	vsnprintf(now.text, sizeof(now.text), format, args);
	va_end(args);
	if (!of->trouble)
		*of = now;
	found(s, trouble, "service %s: %s", conf->services[service].name, now.text);
}

/* Is anything left that can be served? */
static void settle(struct es_serving *s)
{
	__u64 served = 0;

	for (unsigned int family = 0; family < ES_CONF_FAMILIES; family++)
		served |= s->listens[family] & ~s->absent[family];
	s->is_down = !s->inspects_only && !(served & ~s->elsewhere & ~s->refused);
}

/* The services of @conf, as bits. */
static __u64 all_of(const struct es_conf *conf)
{
	return conf->service_count >= 64 ? ~0ULL : (1ULL << conf->service_count) - 1;
}

static void look_at_kernel(const struct es_conf *conf, enum es_datapath_kind kind, unsigned int packet_max,
			   struct es_serving *s)
{
	const char *cluster = conf->datapath.cluster_interface;
	const char *const arrive_at[] = {cluster, "lo"};
	const char *why;

	if (es_network_cookies_are_wrong(kind, &why))
		found(s, ES_TROUBLE_SYNCOOKIES, "%s; do: sysctl -w net.ipv4.tcp_syncookies=1", why);
	for (size_t i = 0; i < sizeof(arrive_at) / sizeof(arrive_at[0]); i++)
		if (es_network_rp_filter(arrive_at[i]) == 1)
			found(s, ES_TROUBLE_RP_FILTER,
			      "sysctl rp_filter is strict on %s, and the kernel then drops what nodes hand "
			      "over; do: sysctl -w net.ipv4.conf.%s.rp_filter=2",
			      arrive_at[i], arrive_at[i]);
	if (!es_network_mtu_is_enough(cluster, packet_max + es_network_overhead(conf)))
		found(s, ES_TROUBLE_MTU,
		      "the MTU of %s has become too small for the handover messages of other nodes, which do "
		      "not "
		      "hear of it; do: ip link set %s mtu %u, or restart earshotd on all nodes",
		      cluster, cluster, packet_max + es_network_overhead(conf));
	if (s->trouble)
		s->refused = all_of(conf);
}

static void look_at_address(const struct es_conf *conf, unsigned int service, unsigned int family,
			    struct es_serving *s)
{
	const struct es_addr *address = es_conf_service_of(&conf->services[service], family);
	char text[INET6_ADDRSTRLEN];

	if (!address || s->elsewhere >> service & 1 || es_network_has_address(address))
		return;
	s->absent[family] |= 1ULL << service;
	s->lacks |= 1ULL << service;
	es_conf_addr_text(address, text);
	found_of(s, conf, service, ES_TROUBLE_ADDRESS,
		 "%s is not an address of this node; do: ip address add %s/%u dev lo", text, text,
		 es_addr_is_v4(address) ? 32 : 128);
}

static void look_at_addresses(const struct es_conf *conf, struct es_serving *s)
{
	for (unsigned int i = 0; i < conf->service_count; i++)
		for (unsigned int family = 0; family < ES_CONF_FAMILIES; family++)
			look_at_address(conf, i, family, s);
}

/*
 * struct listening - for which services' address of each family, as bits: any socket listens; and one that
 * the datapath can make connections for
 */
struct listening {
	const struct es_conf *conf;
	int takes_mptcp;
	__u64 any[ES_CONF_FAMILIES];
	__u64 usable[ES_CONF_FAMILIES];
};

static void on_listener(void *ctx, const struct es_sock_diag_listener *l)
{
	struct listening *listening = ctx;
	const struct es_conf *conf = listening->conf;
	int is_usable = !l->is_mptcp || listening->takes_mptcp;

	for (unsigned int i = 0; i < conf->service_count; i++)
		for (unsigned int family = 0; family < ES_CONF_FAMILIES; family++) {
			const struct es_addr *address = es_conf_service_of(&conf->services[i], family);

			if (!address || !es_sock_diag_takes(l, address, conf->services[i].port))
				continue;
			listening->any[family] |= 1ULL << i;
			listening->usable[family] |= (__u64)is_usable << i;
		}
}

/* Find the first address of a family for which only MPTCP listens, and that is not enough. */
static void look_for_mptcp(const struct listening *listening, unsigned int family, struct es_serving *s)
{
	const struct es_conf *conf = listening->conf;
	__u64 unusable = listening->any[family] & ~listening->usable[family] & ~s->elsewhere;

	for (unsigned int i = 0; i < conf->service_count; i++)
		if (unusable >> i & 1) {
			s->lacks |= 1ULL << i;
			found_of(s, conf, i, ES_TROUBLE_MPTCP,
				 "the server's socket for port %u is one of MPTCP, for which the kernel "
				 "rebuilds no connection; turn that off in the server (Go: "
				 "GODEBUG=multipathtcp=0)",
				 conf->services[i].port);
		}
}

/* Find the first address of a family for which nothing listens. */
static void look_for_none(const struct listening *listening, unsigned int family, struct es_serving *s)
{
	const struct es_conf *conf = listening->conf;
	char text[INET6_ADDRSTRLEN];

	for (unsigned int i = 0; i < conf->service_count; i++) {
		const struct es_addr *address = es_conf_service_of(&conf->services[i], family);

		if (address && !(s->elsewhere >> i & 1) && !(listening->any[family] >> i & 1)) {
			s->lacks |= 1ULL << i;
			found_of(s, conf, i, ES_TROUBLE_NO_SERVER, "nothing listens on %s port %u",
				 es_conf_addr_text(address, text), conf->services[i].port);
		}
	}
}

static void look_at_servers(const struct es_conf *conf, enum es_datapath_kind kind, struct es_serving *s)
{
	struct listening listening = {.conf = conf, .takes_mptcp = es_datapath_takes_mptcp(kind)};

	if (es_sock_diag_listeners(on_listener, &listening)) { /* a kernel without sock_diag */
		__u64 all = es_node_listens(conf) ? all_of(conf) : 0;

		listening.usable[0] = listening.usable[1] = all;
	} else {
		for (unsigned int family = 0; family < ES_CONF_FAMILIES; family++)
			look_for_mptcp(&listening, family, s);
		for (unsigned int family = 0; family < ES_CONF_FAMILIES; family++)
			look_for_none(&listening, family, s);
	}
	memcpy(s->listens, listening.usable, sizeof(s->listens));
	s->listening = s->listens[0] | s->listens[1];
}

void es_serving_look(const struct es_conf *conf, unsigned int self, enum es_datapath_kind kind,
		     unsigned int packet_max, struct es_serving *ret)
{
	__u64 here = es_conf_services_on(conf, self);

	*ret = (struct es_serving){.elsewhere = all_of(conf) & ~here, .inspects_only = !here};
	look_at_kernel(conf, kind, packet_max, ret);
	look_at_addresses(conf, ret);
	look_at_servers(conf, kind, ret);
	settle(ret);
}

/* That another service has no server, or a bad one, is told after what takes this node from its clients. */
static void tells_first(struct es_serving *s, unsigned int service, enum es_trouble than)
{
	if (s->trouble == than)
		s->trouble = ES_TROUBLE_NONE;
	if (s->of[service].trouble == than)
		s->of[service].trouble = ES_TROUBLE_NONE;
}

void es_serving_fails(struct es_serving *s, const struct es_conf *conf, unsigned int service, const char *why,
		      int refuses)
{
	s->failing |= 1ULL << service;
	tells_first(s, service, ES_TROUBLE_KEPT);
	found_of(s, conf, service, ES_TROUBLE_CHECK, "the server fails its check: %s", why);
	if (refuses)
		s->refused |= 1ULL << service;
	settle(s);
}

void es_serving_is_kept(struct es_serving *s, const struct es_conf *conf, unsigned int service,
			const char *why, const char *reason)
{
	s->failing |= 1ULL << service;
	found_of(s, conf, service, ES_TROUBLE_KEPT,
		 "the server fails its check: %s; this node serves all the same: %s", why, reason);
}

void es_serving_is_unchecked(struct es_serving *s, const struct es_conf *conf, unsigned int service,
			     int refuses)
{
	s->failing |= 1ULL << service;
	s->is_open = 1;
	if (!s->of[service].trouble)
		snprintf(s->of[service].text, sizeof(s->of[service].text),
			 "its server has not been checked yet");
	if (!s->trouble)
		snprintf(s->text, sizeof(s->text), "service %s: its server has not been checked yet",
			 conf->services[service].name);
	if (refuses)
		s->refused |= 1ULL << service;
	settle(s);
}

void es_serving_claims(struct es_serving *s, unsigned int service, int refuses)
{
	s->failing |= 1ULL << service;
	s->yields = 1;
	if (!s->of[service].trouble)
		snprintf(s->of[service].text, sizeof(s->of[service].text),
			 "its server does badly; whether the node goes for it is decided in a moment");
	s->refused |= (__u64)refuses << service;
	settle(s);
}

void es_serving_is_out(struct es_serving *s, const struct es_conf *conf, unsigned int service,
		       enum es_trouble trouble, const char *why)
{
	s->failing |= 1ULL << service;
	s->yields = 1;
	tells_first(s, service, ES_TROUBLE_NO_SERVER);
	tells_first(s, service, ES_TROUBLE_KEPT);
	found_of(s, conf, service, trouble, "%s%s",
		 trouble == ES_TROUBLE_OUTLIER ? "the server is an outlier: "
		 : trouble == ES_TROUBLE_CHECK ? "the server fails its check: "
					       : "",
		 why);
	s->refused |= 1ULL << service;
	settle(s);
}

void es_serving_spares(struct es_serving *s, unsigned int service)
{
	s->refused &= ~(1ULL << service);
	settle(s);
}

__u64 es_serving_away(__u64 failing, unsigned int trouble, int yields)
{
	return trouble == ES_TROUBLE_KEPT || (yields && trouble == ES_TROUBLE_NONE) ? 0 : failing;
}

/* Is it a setting of the machine, which concerns all services? */
static int is_of_machine(enum es_trouble trouble)
{
	return trouble == ES_TROUBLE_SYNCOOKIES || trouble == ES_TROUBLE_RP_FILTER ||
	       trouble == ES_TROUBLE_MTU;
}

enum es_serving_state es_serving_state(const struct es_serving *s, unsigned int service,
				       const char **ret_text)
{
	const struct es_serving_of *of = &s->of[service];
	int has_trouble = of->trouble != ES_TROUBLE_NONE, is_served;
	__u64 served = 0;

	for (unsigned int family = 0; family < ES_CONF_FAMILIES; family++)
		served |= s->listens[family] & ~s->absent[family] & ~s->refused;
	is_served = served >> service & 1;
	*ret_text = of->text;
	if (s->elsewhere >> service & 1)
		return ES_SERVING_ELSEWHERE;
	if (!has_trouble && is_of_machine(s->trouble)) {
		*ret_text = s->text;
		has_trouble = 1;
	}
	if (has_trouble)
		return is_served ? ES_SERVING_DEGRADED : ES_SERVING_DOWN;
	return s->failing >> service & 1 ? ES_SERVING_PENDING : ES_SERVING_UP;
}

const char *es_serving_state_name(enum es_serving_state state)
{
	static const char *const names[] = {
		[ES_SERVING_UP] = "up",
		[ES_SERVING_DEGRADED] = "degraded",
		[ES_SERVING_DOWN] = "down",
		[ES_SERVING_PENDING] = "pending",
		[ES_SERVING_ELSEWHERE] = "elsewhere",
	};

	return names[state];
}
