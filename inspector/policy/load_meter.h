/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_LOAD_METER_H
#define ES_LOAD_METER_H

/*
 * How long a request takes on this node, by Little's law: what is in hand on average, divided by what comes
 * in. No request need be followed for that. Both are averaged over the last second, or over the last 20
 * requests where that is longer, but at most over a minute.
 */

struct es_load_meter {
	double busy_s;	 /* request-seconds that were spent */
	double requests; /* that came in */
	unsigned long long at_ns;
	unsigned long long accepted;
	unsigned int active;
};

/**
 * es_load_meter_add() - what was counted at @now_ns; later than the last time
 * @active: requests in hand; @accepted: requests that have come so far, a counter
 */
void es_load_meter_add(struct es_load_meter *meter, unsigned int active, unsigned long long accepted,
		       unsigned long long now_ns);

/* es_load_meter_mean_us() - 0 if it is not known */
unsigned int es_load_meter_mean_us(const struct es_load_meter *meter);

/**
 * struct es_load_recent - the same over the last five to ten seconds, for people: what was before says
 * nothing about now, however few came since
 * @busy_s, @requests: since @begun_ns, and in the five seconds before
 */
struct es_load_recent {
	double busy_s[2];
	double requests[2];
	unsigned long long begun_ns;
	unsigned long long at_ns;
	unsigned long long accepted;
	unsigned int active;
};

/* es_load_recent_add() - as es_load_meter_add() */
void es_load_recent_add(struct es_load_recent *recent, unsigned int active, unsigned long long accepted,
			unsigned long long now_ns);

/* es_load_recent_mean_us() - 0 if nothing came */
unsigned int es_load_recent_mean_us(const struct es_load_recent *recent);

#endif
