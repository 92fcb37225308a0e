// SPDX-License-Identifier: GPL-2.0-or-later
/* How busy this node is, on the bus: a sign of life for the others, and its lease when it comes back. */
#include "inspector/daemon/load.h"
#include "inspector/daemon/membership_internal.h"

#define BUS_LOAD_MS 200 /* between messages about our load: each makes the token run for a while */

void es_membership_load_send(struct es_membership *m)
{
	struct es_wire_load load = {.sent_ns = es_clock_now_ns()};
	unsigned int state_now = m->group.node[m->daemon->cluster->self].state;
	uint8_t buf[ES_WIRE_LOAD_SIZE];
	unsigned int queue = 0;
	struct es_bus_state bus;
	unsigned int pause_ms;

	/* A corosync that hangs would send it later, when it is not true any more. */
	es_bus_state(m->bus, &bus);
	if (bus.hangs_ms > m->lease_ms || !es_membership_workers_go_on(m))
		return;
	for (unsigned int i = 0; i < m->daemon->datapath_params.workers; i++)
		queue += es_worker_gathering(m->daemon->worker[i]);
	/* A count made in another state of this node does not hold in this one. */
	if (m->counted_in != state_now)
		m->daemon->load->counted_ns = 0;
	if (es_daemon_load_update(m->daemon))
		m->counted_in = (uint8_t)state_now;
	load.is_new = m->counted != m->daemon->load->counted;
	m->counted = m->daemon->load->counted;
	es_daemon_load_word(m->daemon, &load);
	load.state = m->counted_in;
	load.queue = (uint16_t)queue;
	es_bus_send(m->bus, ES_WIRE_LOAD, buf, es_wire_put_load(buf, sizeof(buf), &load));
	/* The lease must be renewed in time, and the others want to know. */
	pause_ms = m->lease_ms / 3;
	if (pause_ms > BUS_LOAD_MS)
		pause_ms = BUS_LOAD_MS;
	m->load_at_ms = es_membership_now_ms() + pause_ms;
}
