/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_H
#define ES_DAEMON_H

/*
 * The daemon's parts and their life: configuration, cluster, datapath, workers, control socket. One instance,
 * used by the control thread. The state of each part is declared in the header of its file, and the files
 * that use the part include that: CMakeLists.txt has the files in the order in which they call each other.
 */
#include <ev.h>
#include "inspector/cluster/cluster.h"
#include "inspector/config/config.h"
#include "inspector/daemon/start_settings.h"
#include "inspector/datapath/datapath.h"
#include "inspector/config/keyfile.h"
#include "inspector/datapath/network.h"
#include "inspector/inspect/worker.h"

/* struct es_daemon_options - the command line */
struct es_daemon_options {
	const char *config_path;
	const char *node;	  /* NULL: found by address */
	const char *control_path; /* NULL: by node name */
	int waits;		  /* for interfaces and addresses that are late */
};

struct es_daemon {
	struct es_daemon_options options;
	struct ev_loop *loop;
	struct es_conf *conf;
	struct es_cluster *cluster;
	struct es_membership *membership; /* NULL: static */
	struct es_daemon_contents *contents;
	struct es_plugins *plugins;
	struct ev_timer plugin_timer;
	struct es_url_tables *url_tables;
	struct es_daemon_route *route;
	struct es_daemon_load *load;
	struct es_daemon_exchange *exchange;
	struct es_heard *heard;
	struct es_daemon_serving *serving;
	struct es_daemon_checks *checks;
	struct es_daemon_observed *observed;
	struct es_daemon_outliers *outliers;
	struct es_daemon_vanishing *vanishing;
	struct es_daemon_metrics *metrics;
	struct es_daemon_view *view;
	struct es_daemon_trace *trace;
	struct es_daemon_request_log *request_log;
	struct es_daemon_rates *rates;
	struct es_daemon_directory *directory;
	struct es_daemon_downloads *downloads;
	struct es_daemon_waiting *waiting_clients;
	struct es_daemon_service_drains *service_drains;
	struct es_daemon_rollout *rollout;
	struct es_daemon_settings *settings;
	struct es_daemon_poison *poison;
	struct es_homes *homes;
	struct es_keys keys;
	struct es_network network;
	struct es_daemon_packet_max *packet_max;
	struct es_daemon_interfaces *interfaces;
	int solicited_fd; /* in the groups of neighbours' questions (machine/solicited.h); -1: none */
	enum es_datapath_kind datapath_kind;
	struct es_datapath_params datapath_params;
	struct es_datapath *datapath;
	struct es_handover_order *orders; /* of the decision table; see inspect/decision_table.h */
	struct es_health health;
	struct es_worker *worker[ES_WORKERS_MAX];
	struct es_control *control;
	struct es_programs *programs;
	struct es_askers *askers;
	char control_path[256];
	char program_path[256];
	char ask_path[256];
	char ledger_path[256];	/* earshot-tls makes it */
	char drained_path[256]; /* is there while this node is drained */
	char rollout_path[256];
	char weight_path[256]; /* while it has a weight that was set by hand */
	char events_path[256];
	char sysctl_path[256]; /* what sysctls were before the first daemon */
	struct es_daemon_clock *clock;
	struct ev_signal sigterm, sigint, sighup;
	unsigned long long started_ns; /* CLOCK_MONOTONIC */
	int detach_on_exit;
	int begins_anew;		      /* it is started again when it has ended (restart.c) */
	char waiting[ES_START_SETTINGS_SIZE]; /* what of the file needs that; "": nothing */
};

/**
 * es_daemon_init() - everything up to an attached datapath, in the order in which a failure costs least
 * Returns 0, or -errno and @err; then nothing of it is left, and a datapath that was attached before is
 * untouched.
 */
int es_daemon_init(struct es_daemon *daemon, const struct es_daemon_options *options,
		   struct es_conf_error *err);

/* es_daemon_stop() (stop.c) - leave the cluster in order, if there is membership, and end the loop */
void es_daemon_stop(struct es_daemon *daemon);

/* es_daemon_fini() - stop workers and control socket; the datapath stays and serves content-blind */
void es_daemon_fini(struct es_daemon *daemon);

/**
 * es_daemon_reload() - read configuration and keys again and put them in force
 * A failure changes nothing. A setting that a running daemon cannot change is refused by name.
 * @may_wait: settings that another start of this daemon alone can change (start_settings.h) are not refused:
 * they wait for it, in @waiting
 */
int es_daemon_reload(struct es_daemon *daemon, int may_wait, struct es_conf_error *err);

/* es_daemon_register() - the control commands (commands.c) */
int es_daemon_register(struct es_daemon *daemon);

#endif
