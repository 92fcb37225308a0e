// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Checks the quorum device that corosync is told to use: whether this node takes part, and for how long the
 * loss of a node stops all, since corosync asks for the vote anew then. The device gives it when it has
 * missed the lost node for 1.5 heartbeats; a heartbeat is 0.8 of the timeout.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inspector/check/check.h"
#include "inspector/check/cmap.h"

#define PID_FILE	 "/run/corosync-qdevice/corosync-qdevice.pid"
#define TIMEOUT_MS	 10000 /* without a setting */
#define TIMEOUT_LEAST_MS 1250  /* of a shorter one, corosync-qdevice makes the same heartbeat */
#define TIMEOUT_SLOW_MS	 2500
#define VOTE_MS(timeout) ((timeout)*12 / 10)

static void check_timeout(struct es_check *check)
{
	long timeout = es_cmap_number(check->facts->corosync.text, "quorum.device.timeout", TIMEOUT_MS);

	if (timeout < TIMEOUT_LEAST_MS)
		timeout = TIMEOUT_LEAST_MS;
	if (timeout > TIMEOUT_SLOW_MS)
		es_check_warning(
			check,
			"quorum { device { timeout: 1250 } } in /etc/corosync/corosync.conf on all "
			"nodes, then restart corosync, one node after the other",
			"when a node is lost, the others wait for the quorum device's vote for up to "
			"%ld.%ld s, and answer nothing (its timeout is %ld ms)",
			VOTE_MS(timeout) / 1000, VOTE_MS(timeout) % 1000 / 100, timeout);
	else
		es_check_ok(check, "a quorum device, whose vote is there within %ld.%ld s",
			    VOTE_MS(timeout) / 1000, VOTE_MS(timeout) % 1000 / 100);
}

void es_check_quorum_device(struct es_check *check)
{
	char model[32], *pid = NULL;
	int rc;

	if (!es_cmap_string(check->facts->corosync.text, "quorum.device.model", model, sizeof(model))) {
		es_check_ok(check, "no quorum device");
		return;
	}
	rc = es_facts_file(check->facts, PID_FILE, &pid);
	free(pid);
	if (rc == -ENOENT)
		es_check_warning(
			check, "systemctl enable --now corosync-qdevice",
			"corosync.conf names a quorum device, and no corosync-qdevice runs here: its "
			"vote is missing when the other node is lost");
	else if (rc)
		es_check_unchecked(check, "whether corosync-qdevice runs: %s: %s", PID_FILE, strerror(-rc));
	else
		check_timeout(check);
}
