// SPDX-License-Identifier: GPL-2.0-or-later
/* Picks the requests whose responses are measured. */
#include "inspector/inspect/sampler.h"

int es_sampler_wants(struct es_sampler *m, const struct es_request_view *request, unsigned long long now_ns)
{
	unsigned int at = (unsigned int)(request->url_key >> 32) & (ES_SAMPLER_PLACES - 1);

	if (!request->url_key)
		return 0;
	if (m->place[at].url_key == request->url_key && now_ns - m->place[at].at_ns < ES_SAMPLER_AGAIN_NS)
		return 0;
	if (m->second != now_ns / 1000000000ULL) {
		m->second = now_ns / 1000000000ULL;
		m->asked = 0;
	}
	if (m->asked == ES_SAMPLER_PER_SECOND)
		return 0;
	m->asked++;
	m->place[at].url_key = request->url_key;
	m->place[at].at_ns = now_ns;
	return 1;
}
