// SPDX-License-Identifier: GPL-2.0-or-later
/* Gives the datagrams of other nodes that are not about loads to whom they are for. */
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/datagrams.h"
#include "inspector/daemon/directory.h"
#include "inspector/daemon/downloads.h"
#include "inspector/daemon/poison.h"
#include "inspector/daemon/rates.h"
#include "inspector/daemon/rollout.h"
#include "inspector/daemon/view.h"
#include "inspector/peers/download_words.h"
#include "inspector/peers/exchange.h"
#include "inspector/peers/kept_words.h"
#include "inspector/peers/rate_words.h"
#include "inspector/peers/snapshots.h"
#include "inspector/rollout/message.h"

int es_daemon_datagram(void *daemon, const void *data, size_t len)
{
	switch (((const struct es_loads_message *)data)->version) {
	case ES_DATAGRAM_SNAPSHOT:
		return es_daemon_view_message(daemon, data, len);
	case ES_DATAGRAM_ROLLOUT:
		return es_daemon_rollout_message(daemon, data, len);
	case ES_DATAGRAM_RATES:
		return es_daemon_rates_message(daemon, data, len);
	case ES_DATAGRAM_KEPT:
		return es_daemon_directory_message(daemon, data, len);
	case ES_DATAGRAM_DOWNLOAD:
		return es_daemon_downloads_message(daemon, data, len);
	default:
		return es_daemon_poison_message(daemon, data, len);
	}
}
