/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CERTIFICATE_FACTS_H
#define ES_CERTIFICATE_FACTS_H

#include "inspector/certificate/pem.h"

/* es_certificate_tell() - the facts of what was read; 0, or -errno: no usable certificate, as @err says */
int es_certificate_tell(const struct es_certificate *certificate, const char *certificate_file,
			struct es_certificate_facts *ret_facts, struct es_conf_error *err);

#endif
