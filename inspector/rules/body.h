/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_RULES_BODY_H
#define ES_RULES_BODY_H

/*
 * Texts of answers that outlive the configuration that they come from: an answer that was sent is sent again,
 * byte for byte, to a client that did not hear it, also when a reload has changed the text.
 */

/**
 * es_body_keep() - keep a copy of @text for as long as the process lives
 * The same text is kept once, however often it is reloaded. Any thread. Returns 0 or -ENOMEM.
 */
int es_body_keep(const char *text, const char **ret_kept);

#endif
