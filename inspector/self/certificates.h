/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CERTIFICATES_H
#define ES_CERTIFICATES_H

/* The certificates of services whose TLS Earshot ends, as this machine has them. */
#include "inspector/config/config.h"

/**
 * es_certificates_note() - read the certificates and keys of the services that are on node @self
 * Notes in @conf when each certificate ends, and which they are (struct es_conf_tls). One that has expired or
 * is weak is noted like others: `earshot check` judges it.
 * Returns 0; or -errno of the first that cannot be used, and @err: file and line, and why.
 */
int es_certificates_note(struct es_conf *conf, unsigned int self, struct es_conf_error *err);

#endif
