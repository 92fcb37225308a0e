/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_DOWNLOADS_H
#define ES_DAEMON_DOWNLOADS_H

/*
 * Tells other nodes of this one's long responses, keeps theirs (cluster/downloads.h), and goes on with those
 * of a node that is lost (resume/transfer.h), for services with the key resume. Keepers are those of idle
 * connections (keepers.h). A response with which this node goes on is its own from then on, and is told like
 * the others.
 */
#include <ev.h>
#include "inspector/cluster/downloads.h"
#include "inspector/resume/figures.h"
#include "inspector/resume/transfer.h"

struct es_daemon;

#define ES_DOWNLOADS_LOOK_MS 50

/* So often what is true still is told again. */
#define ES_DOWNLOAD_AGAIN_NS 15000000000ULL

/* Clients that are asked or sent something at a time; further ones wait for their turn. */
#define ES_DOWNLOADS_JOBS 256

/**
 * struct es_daemon_downloads
 * @own: of this node; @others: of which others have told; both NULL: no service resumes here
 * @heard: the last sequence of each node
 */
struct es_daemon_downloads {
	struct es_downloads *own;
	struct es_downloads *others;
	struct es_resume_params resume;
	struct es_resume *job[ES_DOWNLOADS_JOBS];
	struct ev_timer timer;
	__u64 sequence;
	__u64 heard[ES_NODES_MAX];
	struct es_resume_figures figures;
};

/* es_daemon_downloads_prepare() - behind es_daemon_directory_prepare(). Returns 0 or -errno. */
int es_daemon_downloads_prepare(struct es_daemon *daemon);

/* es_daemon_downloads_rebind() - at the start, and after a reload: does any service resume? */
void es_daemon_downloads_rebind(struct es_daemon *daemon);

/* es_daemon_downloads_message() - what another node says. Returns 0 if it is such a message. */
int es_daemon_downloads_message(struct es_daemon *daemon, const void *data, size_t len);

/**
 * es_daemon_downloads_look() - all connections here are about to be looked through; es_daemon_downloads_see()
 * is called for each, and then es_daemon_downloads_seen(): those that were not seen are over
 */
void es_daemon_downloads_look(struct es_daemon *daemon);
void es_daemon_downloads_see(struct es_daemon *daemon, const struct es_track_entry *entry, __u64 flow_hash);
void es_daemon_downloads_seen(struct es_daemon *daemon);

/* es_daemon_downloads_knows() - has this node told others of a response of @entry's request? */
int es_daemon_downloads_knows(const struct es_daemon *daemon, const struct es_track_entry *entry,
			      __u64 flow_hash);

/*
 * es_daemon_downloads_has() - is something known of a lost node's response on this flow, or being done
 * about it?
 */
int es_daemon_downloads_has(const struct es_daemon *daemon, __u64 flow_hash);

/* es_daemon_downloads_go_on() - do others know a response of this flow, and can send the rest? */
int es_daemon_downloads_go_on(const struct es_daemon *daemon, __u64 flow_hash);

void es_daemon_downloads_stop(struct es_daemon *daemon);

#endif
